//! Running a program: its output passed on as it comes, its tests counted, a limit on its time.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;

/// What came of a program.
#[derive(Debug, Default, Clone)]
pub struct Outcome {
    /// It ended by itself with status 0.
    pub success: bool,
    /// It ran past its limit and was ended.
    pub timed_out: bool,
    /// Tests it said have passed.
    pub passed: u64,
    /// Tests it said have failed.
    pub failed: u64,
    /// The last lines it wrote, output and errors together.
    pub tail: String,
}

impl Outcome {
    /// Adds a program that ran beside others: one that fails without a count has failed once.
    pub fn add(&mut self, told: &Captured) {
        let (mut passed, mut failed) = (0, 0);
        for line in told.out.lines() {
            let (more, wrong) = counts(line);
            passed += more;
            failed += wrong;
        }
        if !told.success && failed == 0 {
            failed = 1;
        }
        self.success &= told.success;
        self.passed += passed;
        self.failed += failed;
    }
}

/// Lines kept of what a program wrote.
const TAIL: usize = 200;

/// Runs `command` in the repository.
pub fn run(command: &mut Command, limit: Duration) -> anyhow::Result<Outcome> {
    let name = Path::new(command.get_program()).display().to_string();
    command
        .current_dir(crate::repository::root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    // In a group of its own a program can be ended with all its children. On a terminal it stays in ours,
    // so that Control-C reaches it.
    #[cfg(unix)]
    if !std::io::stdin().is_terminal() {
        std::os::unix::process::CommandExt::process_group(command, 0);
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let seen = Arc::new(Mutex::new(Outcome::default()));
    let readers = [
        child
            .stdout
            .take()
            .map(|pipe| pass_on(pipe, std::io::stdout(), Arc::clone(&seen))),
        child
            .stderr
            .take()
            .map(|pipe| pass_on(pipe, std::io::stderr(), Arc::clone(&seen))),
    ];
    let (success, timed_out) = wait(&mut child, limit)?;
    if !timed_out {
        for reader in readers.into_iter().flatten() {
            let _ = reader.join();
        }
    }
    let mut outcome = seen.lock().map(|seen| seen.clone()).unwrap_or_default();
    outcome.success = success;
    outcome.timed_out = timed_out;
    Ok(outcome)
}

/// What a program wrote that was asked for its output.
#[derive(Debug, Default)]
pub struct Captured {
    /// It ended by itself with status 0.
    pub success: bool,
    pub out: String,
    pub errors: String,
}

/// Runs a program for what it writes, from the folder that it is in.
pub fn captured(command: &mut Command, limit: Duration) -> anyhow::Result<Captured> {
    let name = Path::new(command.get_program()).display().to_string();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // As in `run`: compilers start others, which end with them.
    #[cfg(unix)]
    if !std::io::stdin().is_terminal() {
        std::os::unix::process::CommandExt::process_group(command, 0);
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let readers = [
        child.stdout.take().map(|pipe| whole(Box::new(pipe))),
        child.stderr.take().map(|pipe| whole(Box::new(pipe))),
    ];
    let (success, timed_out) = wait(&mut child, limit)?;
    if timed_out {
        return Ok(Captured {
            errors: format!("ended after {} seconds", limit.as_secs()),
            ..Captured::default()
        });
    }
    let [out, errors] = readers.map(|reader| {
        reader
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default()
    });
    Ok(Captured {
        success,
        out,
        errors,
    })
}

fn whole(mut pipe: Box<dyn Read + Send>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, limit: Duration) -> anyhow::Result<(bool, bool)> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status.success(), false));
        }
        if started.elapsed() > limit {
            end(child);
            return Ok((false, true));
        }
        std::thread::sleep(Duration::from_millis(30));
    }
}

fn end(child: &mut Child) {
    #[cfg(unix)]
    if !std::io::stdin().is_terminal() {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn pass_on(
    pipe: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    seen: Arc<Mutex<Outcome>>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while matches!(pipe.read_until(b'\n', &mut line), Ok(length) if length > 0) {
            let _ = to.write_all(&line).and_then(|()| to.flush());
            let text = String::from_utf8_lossy(&line);
            if let Ok(mut seen) = seen.lock() {
                let (passed, failed) = counts(&text);
                seen.passed += passed;
                seen.failed += failed;
                seen.tail.push_str(&text);
                if seen.tail.lines().count() > 2 * TAIL {
                    let lines: Vec<&str> = seen.tail.lines().collect();
                    let mut kept = lines[lines.len() - TAIL..].join("\n");
                    kept.push('\n');
                    seen.tail = kept;
                }
            }
            line.clear();
        }
    })
}

/// `N passed` and `N failed` of one line of output, as cargo and our own scripts print them.
fn counts(line: &str) -> (u64, u64) {
    let words: Vec<&str> = line
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let before = |what: &str| {
        words
            .windows(2)
            .find(|pair| pair[1] == what)
            .and_then(|pair| pair[0].parse::<u64>().ok())
    };
    match before("passed") {
        Some(passed) => (passed, before("failed").unwrap_or(0)),
        None => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_cargo_and_from_scripts() {
        let cargo =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; finished in 0.1s";
        assert_eq!(counts(cargo), (12, 3));
        assert_eq!(counts("9 passed, 0 failed\n"), (9, 0));
        assert_eq!(counts("every test passed"), (0, 0));
        assert_eq!(counts("3 failed"), (0, 0));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let started = Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", "echo started; sleep 60 | sleep 60"]);
        let outcome = run(&mut command, Duration::from_millis(400)).unwrap();
        assert!(outcome.timed_out && !outcome.success);
        assert!(outcome.tail.contains("started"));
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[cfg(unix)]
    #[test]
    fn what_a_program_writes_is_captured() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo no >&2"]);
        let told = captured(&mut command, Duration::from_secs(20)).unwrap();
        assert!(told.success);
        assert_eq!((told.out.as_str(), told.errors.as_str()), ("out\n", "no\n"));
        let mut command = Command::new("sleep");
        let told = captured(command.arg("60"), Duration::from_millis(50)).unwrap();
        assert!(!told.success && told.errors.contains("ended"));
    }

    #[test]
    fn what_cannot_be_run_is_an_error_with_its_name() {
        let error = run(&mut Command::new("no-such-program"), Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("no-such-program"));
    }
}
