//! The tests of the whole workspace: built once, then as many test binaries at a time as there are cores.
//!
//! `cargo test` runs one binary after another, and each ends with the one test that takes longest while the other cores wait.
//! Here every binary runs its tests one by one, beside others: the machine is as busy as it is under `cargo test`, but to the end.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;
use xtask::process::{self, Outcome};

/// Binaries that take longest: they start first, so that the cores end together.
const LONGEST: [&str; 5] = ["sessions", "session_stdio", "queries", "clean", "oracle"];
/// Binaries that hold times against each other: nothing else runs beside them.
const TIMED: &str = "timely";

/// Something that tests.
struct Job {
    name: String,
    program: PathBuf,
    arguments: Vec<&'static str>,
    folder: PathBuf,
}

/// Builds and runs them; `limit` holds for the building, and for the running.
pub fn run(limit: Duration) -> anyhow::Result<Outcome> {
    let built = process::run(&mut cargo(&["--no-run"]), limit)?;
    if !built.success {
        return Ok(built);
    }
    let list = process::captured(
        cargo(&["--no-run", "--message-format", "json"]).current_dir(xtask::repository::root()),
        limit,
    )?;
    let mut jobs = binaries(&list.out)?;
    jobs.push(Job {
        name: "documentation".to_owned(),
        program: "cargo".into(),
        arguments: vec!["test", "--workspace", "--locked", "--doc", "--quiet"],
        folder: xtask::repository::root(),
    });
    jobs.sort_by_key(|job| {
        let place = LONGEST.iter().position(|name| *name == job.name);
        (place.unwrap_or(LONGEST.len()), job.program.clone())
    });
    let (timed, others): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.name == TIMED);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ends = Instant::now() + limit;
    let mut outcome = Outcome {
        success: true,
        ..Outcome::default()
    };
    side_by_side(others, cores, ends, &mut outcome);
    side_by_side(timed, 1, ends, &mut outcome);
    Ok(outcome)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--locked"]);
    command.args(arguments);
    command
}

/// The test binaries that cargo's messages name, each to be run in its package's folder, as cargo does.
fn binaries(messages: &str) -> anyhow::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let (Some(program), Some(true)) = (
            message["executable"].as_str(),
            message["profile"]["test"].as_bool(),
        ) else {
            continue;
        };
        let manifest = message["manifest_path"].as_str().unwrap_or_default();
        let folder = Path::new(manifest).parent();
        jobs.push(Job {
            name: message["target"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            program: program.into(),
            arguments: vec!["--test-threads=1"],
            folder: folder
                .context("a test binary without a package")?
                .to_owned(),
        });
    }
    if jobs.is_empty() {
        bail!("cargo names no test binary");
    }
    Ok(jobs)
}

/// Runs `jobs` on `workers` threads, prints what each wrote when it ends, and adds it up in `outcome`.
fn side_by_side(jobs: Vec<Job>, workers: usize, ends: Instant, outcome: &mut Outcome) {
    let jobs = Mutex::new(VecDeque::from(jobs));
    let sum = Mutex::new(outcome);
    let next = || jobs.lock().ok().and_then(|mut jobs| jobs.pop_front());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let started = Instant::now();
                    let left = ends.saturating_duration_since(started);
                    let mut command = Command::new(&job.program);
                    command
                        .args(&job.arguments)
                        .current_dir(&job.folder)
                        .env("CARGO_MANIFEST_DIR", &job.folder);
                    let told = process::captured(&mut command, left).unwrap_or_else(|error| {
                        process::Captured {
                            errors: format!("{error:#}\n"),
                            ..process::Captured::default()
                        }
                    });
                    let Ok(mut sum) = sum.lock() else { return };
                    let place = job.folder.file_name().unwrap_or_default().display();
                    let seconds = started.elapsed().as_secs_f64();
                    println!("\n{} of {place}, {seconds:.1} s", job.name);
                    print!("{}{}", told.out, told.errors);
                    sum.add(&told);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/r/a/Cargo.toml","target":{"name":"a"},"profile":{"test":false},"executable":"/t/a"}
{"reason":"compiler-artifact","manifest_path":"/r/a/Cargo.toml","target":{"name":"rules"},"profile":{"test":true},"executable":"/t/rules-1"}
{"reason":"compiler-artifact","manifest_path":"/r/b/Cargo.toml","target":{"name":"b"},"profile":{"test":true},"executable":null}
not a message"#;
        let jobs = binaries(messages).unwrap();
        let [job] = jobs.as_slice() else {
            panic!("{} binaries", jobs.len())
        };
        assert_eq!(job.name, "rules");
        assert_eq!(job.program, Path::new("/t/rules-1"));
        assert_eq!(job.folder, Path::new("/r/a"));
        assert!(binaries("").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn one_that_fails_beside_others_is_counted() {
        let shell = |text| Job {
            name: "sh".to_owned(),
            program: "sh".into(),
            arguments: vec!["-c", text],
            folder: std::env::temp_dir(),
        };
        let jobs = vec![
            shell("echo 'test result: ok. 3 passed; 0 failed'"),
            shell("echo 'test result: FAILED. 1 passed; 2 failed'; exit 101"),
            shell("exit 134"),
        ];
        let mut outcome = Outcome {
            success: true,
            ..Outcome::default()
        };
        let ends = Instant::now() + Duration::from_secs(20);
        side_by_side(jobs, 2, ends, &mut outcome);
        assert_eq!((outcome.passed, outcome.failed), (4, 3));
        assert!(!outcome.success);
    }
}
