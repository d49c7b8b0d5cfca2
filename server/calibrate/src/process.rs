//! Running a compiler or a benchmark: bounded in time and output, ended with all that it started.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use warplens_base::open_regular;

use crate::Failure;

/// Most bytes that a program may write to either of its streams.
const MOST: u64 = 16 << 20;

/// How often a program is looked after.
const TICK: Duration = Duration::from_millis(10);

/// What a program did.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status; `None` where a signal ended it.
    pub status: Option<i32>,
    /// Its standard output; bytes that are no text are replaced.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

impl Outcome {
    /// The line that says what is wrong.
    pub fn problem(&self) -> String {
        let lines = || self.errors.lines().chain(self.output.lines());
        let telling = |line: &&str| line.contains("error") || line.contains("fatal");
        let line = lines()
            .find(telling)
            .or_else(|| lines().find(|line| !line.trim().is_empty()));
        match (line, self.status) {
            (Some(line), _) => line.trim().chars().take(200).collect(),
            (None, Some(status)) => format!("exit status {status}, without a message"),
            (None, None) => "ended by a signal".to_owned(),
        }
    }
}

/// Runs a program in `folder`, where its streams are kept: a file cannot stall, as a pipe does.
pub fn run(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    bound: Duration,
    cancelled: &AtomicBool,
) -> Result<Outcome, Failure> {
    let not_executable = |error: std::io::Error| Failure::NotExecutable {
        tool: program.to_owned(),
        problem: error.to_string(),
    };
    let name = program.file_name().unwrap_or(program.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let paths = [folder.join("output.txt"), folder.join("errors.txt")];
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .env("TMPDIR", folder)
        .env("TEMP", folder)
        .env("TMP", folder)
        // Messages are read.
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(File::create(&paths[0]).map_err(not_executable)?)
        .stderr(File::create(&paths[1]).map_err(not_executable)?);
    // A group of its own can be ended with all that it started, and does not get the terminal's Ctrl-C.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut group = Group(command.spawn().map_err(not_executable)?);
    let until = Instant::now() + bound;
    let status = loop {
        if let Some(status) = group.0.try_wait().map_err(not_executable)? {
            break status.code();
        }
        if cancelled.load(Ordering::Relaxed) {
            return Err(Failure::Cancelled);
        }
        if Instant::now() >= until {
            return Err(Failure::TooLong {
                program: name,
                bound,
            });
        }
        let large = |path| std::fs::metadata(path).is_ok_and(|file| file.len() > MOST);
        if paths.iter().any(large) {
            return Err(Failure::Program {
                program: name,
                problem: format!("it wrote more than {} MiB", MOST >> 20),
            });
        }
        std::thread::sleep(TICK);
    };
    let [output, errors] = paths.map(|path| read(&path));
    Ok(Outcome {
        status,
        output,
        errors,
    })
}

fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    let opened = open_regular(path);
    let _ = opened.and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A program and what it started. Dropping it ends them all, and leaves no zombie.
#[derive(Debug)]
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.0.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
