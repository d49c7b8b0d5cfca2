//! Runs a compiler with limits on time and output, and ends it together with its children.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warplens_base::open_regular;

use crate::Failure;

/// Most bytes that a program may write to either of its streams, in MiB.
const MOST: u64 = 64;
/// How often a running program is polled.
const TICK: Duration = Duration::from_millis(10);

/// Limits of a program.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// The deadline of all programs of a request.
    pub until: Instant,
    /// The whole time limit, for the message.
    pub bound: Duration,
    /// Set by a caller that no longer needs the report.
    pub cancelled: &'a AtomicBool,
}

/// What a program wrote.
#[derive(Debug)]
pub struct Outcome {
    /// It ended with status 0.
    pub success: bool,
    /// Its standard output; invalid UTF-8 is replaced.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

/// Runs a program in `folder`, with its streams in files: a file cannot stall, as a pipe can that an orphaned child
/// holds open.
pub fn run(
    tool: &Path,
    arguments: &[String],
    folder: &Path,
    limits: &Limits,
) -> Result<Outcome, Failure> {
    let no_folder = |error: std::io::Error| Failure::Folder(error.to_string());
    let paths = [folder.join("output.txt"), folder.join("errors.txt")];
    let mut command = Command::new(tool);
    command
        .args(arguments)
        // Not the workspace: some systems look for programs in the current folder first.
        .current_dir(folder)
        .env("TMPDIR", folder)
        .env("TEMP", folder)
        .env("TMP", folder)
        // `arguments` has already filtered the flags.
        .env_remove("NVCC_PREPEND_FLAGS")
        .env_remove("NVCC_APPEND_FLAGS")
        .env_remove("HIPCC_COMPILE_FLAGS_APPEND")
        .env_remove("HIPCC_VERBOSE")
        // English messages, because they are parsed.
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(File::create(&paths[0]).map_err(no_folder)?)
        .stderr(File::create(&paths[1]).map_err(no_folder)?);
    // A process group ends together with its children.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound if !tool.exists() => Failure::NotFound(tool.to_owned()),
        _ => Failure::NotExecutable {
            tool: tool.to_owned(),
            reason: error.to_string(),
        },
    })?;
    let group = Group {
        watch: Watch::over(&child, folder),
        child,
    };
    let success = group.wait(&paths, limits)?;
    let [output, errors] = paths.map(|path| read(&path));
    Ok(Outcome {
        success,
        output: output?,
        errors: errors?,
    })
}

/// A program and its children. Dropping it ends them all and leaves no zombie.
struct Group {
    child: Child,
    watch: Option<Watch>,
}

impl Group {
    fn wait(mut self, written: &[std::path::PathBuf], limits: &Limits) -> Result<bool, Failure> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) => {}
                Err(error) => return Err(Failure::Failed(error.to_string())),
            }
            if limits.cancelled.load(Ordering::Relaxed) {
                return Err(Failure::Cancelled);
            }
            if Instant::now() >= limits.until {
                return Err(Failure::TooLong(limits.bound));
            }
            let large = |path| std::fs::metadata(path).is_ok_and(|file| file.len() > MOST << 20);
            if written.iter().any(large) {
                return Err(Failure::TooMuch(MOST));
            }
            std::thread::sleep(TICK);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // After success too: a compiler must leave no child running.
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        // Before the number of the group is free for another.
        drop(self.watch.take());
        let _ = self.child.wait();
    }
}

/// Ends a program, its children and its folder where this process is killed and drops nothing: a shell that waits for the end of a
/// pipe, which the system closes however this process ends.
struct Watch(Child);

/// What it runs: the number of the group and the folder are its arguments.
#[cfg(unix)]
const WATCH: &str = r#"read -r _; kill -s KILL -- "-$1"; rm -rf -- "$2""#;

impl Watch {
    #[cfg(unix)]
    fn over(program: &Child, folder: &Path) -> Option<Watch> {
        use std::os::unix::process::CommandExt as _;
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", WATCH, "warplens-watch"])
            .arg(program.id().to_string())
            .arg(folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What a terminal sends to this process's group is not for it.
            .process_group(0);
        // Without a shell there is no watch: the program ends where this process exits in order.
        shell.spawn().ok().map(Watch)
    }

    /// Windows has job objects for this, which are not used: a program ends when it is done.
    #[cfg(not(unix))]
    fn over(_: &Child, _: &Path) -> Option<Watch> {
        None
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Killed first: at the end of its pipe it would act.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    open_regular(path)
        .and_then(|file| file.take(MOST << 20).read_to_end(&mut bytes))
        .map_err(|error| Failure::Folder(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A folder that only this user can read, removed when dropped.
pub fn private_folder() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new()
        .prefix("warplens-")
        .tempdir()
        .map_err(|error| Failure::Folder(error.to_string()))
}

/// The first line that reports an error.
pub fn first_error(outcome: &Outcome) -> String {
    let lines = || outcome.errors.lines().chain(outcome.output.lines());
    lines()
        .find(|line| line.contains("error") || line.contains("fatal"))
        .or_else(|| lines().find(|line| !line.trim().is_empty()))
        .map_or_else(
            || "it printed no error".to_owned(),
            |line| line.trim().chars().take(200).collect(),
        )
}
