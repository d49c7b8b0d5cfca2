//! `cargo xtask test`: every check of the repository, in groups.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::additions;
use crate::fuzz::Fuzz;
use xtask::process::{self, Outcome};
use xtask::repository;

/// Run the tests: the fast groups, or with --all also editors, compilers and advisories
///
/// The editors and compilers come from the package registries into .test-tools/ the first time.
#[derive(Debug, Args)]
pub struct Test {
    /// Every group but fuzz and python, which build the engine once more, and those that are a part of tests: these are asked for by name
    #[arg(long)]
    all: bool,
    /// Only these groups (repeatable)
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "all")]
    group: Vec<Group>,
    /// Check other people's code in a folder instead: no panic, within the time, how much is understood
    #[arg(long, value_name = "DIR", conflicts_with_all = ["all", "group"])]
    corpus: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// cargo fmt
    Format,
    /// cargo clippy, warnings denied
    Lint,
    /// The tests of the whole workspace, a binary on each core
    Tests,
    /// What an analysis costs grows with each construct no faster than n log n (a part of tests)
    Scaling,
    /// Files, names, calls and clients that mean harm: nothing panics, waits or acts (a part of tests)
    Hostile,
    /// The same answer whatever came before, in any order, by any number of threads, typed or opened (a part of tests, and files of ours
    /// in the built program)
    Determinism,
    /// Files derived from the code are up to date
    Generated,
    /// Licences, bans and sources of the dependencies
    Licences,
    /// nvcc compiles tests/kernels, which is understood, and what it makes of them is what is predicted; programs run from
    /// end to end launch what is predicted; and calibrate's benchmarks
    Compilers,
    /// oclgrind executes the OpenCL kernels of tests/kernels, and its counts are ours; and calibrate's benchmarks
    Oclgrind,
    /// The extension in a real Neovim
    Neovim,
    /// The configuration of docs/editors/others.md in a real Emacs
    Emacs,
    /// The extension in a real VS Code, in headless Chromium
    Vscode,
    /// The GitHub Action, the GitLab template and the pre-commit hook, run; their YAML and our SARIF under published schemas
    Integrations,
    /// The fuzz targets, each for some seconds
    Fuzz,
    /// The Python package built, installed and asked, beside the command line and with Kernel Tuner
    Python,
    /// The page of `warplens report` in headless Chromium
    Report,
    /// The crates, the archive, the Debian package and those of the editors, made, unpacked and run
    Packages,
    /// A rule, a model, a device function and a GPU, added in a copy as CONTRIBUTING.md says, and used
    Additions,
    /// The server executes no more instructions than tests/budget.toml allows
    Budget,
    /// mdbook builds the documentation
    Book,
    /// Known vulnerabilities of the dependencies
    Advisories,
}

impl Group {
    const FAST: [Group; 5] = [
        Group::Format,
        Group::Lint,
        Group::Tests,
        Group::Generated,
        Group::Licences,
    ];
    const SLOW: [Group; 12] = [
        Group::Compilers,
        Group::Oclgrind,
        Group::Neovim,
        Group::Emacs,
        Group::Vscode,
        Group::Integrations,
        Group::Report,
        Group::Packages,
        Group::Budget,
        Group::Book,
        Group::Additions,
        Group::Advisories,
    ];

    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Generous: what a cold start takes on two cores, twice.
    fn limit(self) -> Duration {
        let minutes = match self {
            Group::Format => 2,
            Group::Lint | Group::Generated | Group::Licences | Group::Additions | Group::Book => 15,
            Group::Tests | Group::Scaling | Group::Hostile | Group::Determinism => 25,
            // Most of it is the server built once more, with coverage.
            Group::Fuzz => 30,
            Group::Compilers | Group::Vscode | Group::Python | Group::Packages | Group::Budget => {
                20
            }
            Group::Neovim
            | Group::Emacs
            | Group::Advisories
            | Group::Oclgrind
            | Group::Integrations
            | Group::Report => 10,
        };
        Duration::from_mins(minutes)
    }
}

/// Seconds that each fuzz target runs: what it finds in them is what every change is tried on.
const FUZZED: u64 = 15;

/// What came of a group.
struct Verdict {
    group: Group,
    passed: u64,
    failed: u64,
    /// Why it was not run, where it was not.
    skipped: Option<String>,
    /// Why it failed, where the counts do not say.
    remark: String,
    took: Duration,
}

impl Test {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(folder) = &self.corpus {
            return crate::lab(&["corpus".into(), folder.into()]);
        }
        let groups: Vec<Group> = if self.all {
            Group::FAST.into_iter().chain(Group::SLOW).collect()
        } else if self.group.is_empty() {
            Group::FAST.to_vec()
        } else {
            self.group.clone()
        };
        let mut verdicts = Vec::new();
        for group in groups {
            println!("\n=== {} ===", group.name());
            let started = Instant::now();
            let mut verdict = self.group(group);
            verdict.took = started.elapsed();
            verdicts.push(verdict);
        }
        Ok(summary(&verdicts))
    }

    fn group(&self, group: Group) -> Verdict {
        let limit = group.limit();
        let script = |path: &str| {
            let mut command = Command::new("bash");
            command.arg(repository::root().join(path));
            command
        };
        match group {
            Group::Format => finish(
                group,
                process::run(&mut cargo(&["fmt", "--all", "--check"]), limit),
            ),
            Group::Lint => {
                let mut clippy = cargo(&["clippy", "--workspace", "--all-targets", "--locked"]);
                clippy.arg("--keep-going");
                clippy.args(["--quiet", "--", "-D", "warnings"]);
                finish(group, process::run(&mut clippy, limit))
            }
            Group::Tests => finish(group, crate::workspace_tests::run(limit)),
            Group::Scaling => suite(group, &SCALING),
            Group::Hostile => suite(group, &HOSTILE),
            Group::Determinism => determinism(group),
            Group::Generated => {
                let mut generate = cargo(&["xtask", "generate", "--check"]);
                if self.group.is_empty() || self.group.contains(&Group::Tests) {
                    generate.arg("--tested");
                }
                finish(group, process::run(&mut generate, limit))
            }
            Group::Licences => self.deny(group, &["licenses", "bans", "sources"]),
            Group::Advisories => self.deny(group, &["advisories"]),
            Group::Compilers => compilers(group, script("tests/kernels/compile.sh")),
            Group::Oclgrind => oclgrind(group),
            Group::Neovim => editor(group, script("editors/neovim/test/run.sh")),
            Group::Emacs if repository::program("emacs").is_none() => skip(
                group,
                "Emacs is not installed (`apt-get install emacs-nox elpa-eglot`)",
            ),
            Group::Emacs => editor(group, script("editors/emacs/test/run.sh")),
            Group::Vscode => editor(group, script("editors/vscode/test/run.sh")),
            Group::Integrations => editor(group, script("integrations/test.sh")),
            Group::Fuzz => match self.tool(group, "cargo-fuzz", &[]) {
                Ok(program) => finish(group, Fuzz::all(FUZZED).with(&program)),
                Err(verdict) => verdict,
            },
            Group::Python if repository::program("python3").is_none() => skip(
                group,
                "Python is not installed (`apt-get install python3 python3-venv`)",
            ),
            Group::Python => editor(group, script("server/python/test.sh")),
            Group::Report => editor(group, script("tests/report/run.sh")),
            Group::Packages => editor(group, script("packaging/test.sh")),
            Group::Additions => finish(
                group,
                additions::try_all().map(|passed| Outcome {
                    success: true,
                    passed,
                    ..Outcome::default()
                }),
            ),
            Group::Budget if repository::program("valgrind").is_none() => skip(
                group,
                "valgrind is not installed (`apt-get install valgrind`)",
            ),
            Group::Budget => finish(group, laboratory(&["budget", "--check"], limit)),
            Group::Book => self.book(group),
        }
    }

    /// A program of the registry: on the PATH, or with --all installed among the tools.
    fn tool(&self, group: Group, name: &str, options: &[&str]) -> Result<PathBuf, Verdict> {
        if let Some(program) = repository::program(name) {
            return Ok(program);
        }
        if !self.all {
            let why =
                format!("{name} is not installed (`cargo install {name} --locked`, or --all)");
            return Err(skip(group, &why));
        }
        println!("installing {name} into .test-tools");
        let mut install = cargo(&["install", name, "--locked", "--debug"]);
        install.args(options).arg("--root").arg(repository::tools());
        match process::run(&mut install, group.limit()) {
            Ok(outcome) if outcome.success => {}
            other => return Err(finish(group, other)),
        }
        let why = format!("{name} could not be installed");
        repository::program(name).ok_or_else(|| skip(group, &why))
    }

    fn book(&self, group: Group) -> Verdict {
        // Neither its server nor what watches files.
        let options = ["--no-default-features", "--features", "search"];
        match self.tool(group, "mdbook", &options) {
            Ok(mdbook) => {
                let mut build = Command::new(mdbook);
                build.args(["build", "docs"]);
                finish(group, process::run(&mut build, group.limit()))
            }
            Err(verdict) => verdict,
        }
    }

    fn deny(&self, group: Group, checks: &[&str]) -> Verdict {
        let program = match self.tool(group, "cargo-deny", &[]) {
            Ok(program) => program,
            Err(verdict) => return verdict,
        };
        let mut deny = Command::new(program);
        deny.args([
            "--all-features",
            "--workspace",
            "check",
            "--hide-inclusion-graph",
        ])
        .args(checks);
        let outcome = process::run(&mut deny, group.limit());
        if group == Group::Advisories
            && let Ok(outcome) = &outcome
            && !outcome.success
            && unreachable(&outcome.tail)
        {
            return skip(group, "advisories: not checked (database unreachable)");
        }
        finish(group, outcome)
    }
}

/// True where cargo-deny could not get the advisory database, as opposed to having found something in it.
fn unreachable(output: &str) -> bool {
    output.contains("advisory database") && (output.contains("fetch") || output.contains("clone"))
        || output.contains("failed to fetch")
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments);
    command
}

/// Integration tests of these names. Of the whole workspace, so that other crates have the features that they have in its tests:
/// selected by package they would be built again, and all of ours with them.
fn named_tests(names: &[&str]) -> Command {
    let mut tests = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    for name in names {
        tests.args(["--test", name]);
    }
    tests
}

/// Tests of the workspace that are one matter: the binaries that they are in, and their modules.
struct Suite {
    binaries: &'static [&'static str],
    modules: &'static [&'static str],
}

const SCALING: Suite = Suite {
    binaries: &["timely"],
    modules: &["scaling::"],
};
const HOSTILE: Suite = Suite {
    binaries: &["timely", "cli", "sessions", "session_stdio"],
    modules: &[
        "robust::",
        "calls::",
        "hostile::",
        "bad_input::",
        "lost::",
        "junk::",
        "faults::",
    ],
};
const DETERMINISM: Suite = Suite {
    binaries: &["queries", "sessions"],
    modules: &["history::", "edited::", "steady::"],
};

fn suite(group: Group, suite: &Suite) -> Verdict {
    let mut tests = named_tests(suite.binaries);
    tests.arg("--").args(suite.modules);
    let mut verdict = finish(group, process::run(&mut tests, group.limit()));
    if verdict.passed == 0 && verdict.failed == 0 {
        verdict.failed = 1;
        "no test of these modules is left".clone_into(&mut verdict.remark);
    }
    verdict
}

/// The suite, and files of ours in the built program.
fn determinism(group: Group) -> Verdict {
    let mut verdict = suite(group, &DETERMINISM);
    let files = ["history", "tests/kernels", "--files", "12", "--edits", "10"];
    match laboratory(&files, group.limit()) {
        Ok(held) if held.success => verdict.passed += 1,
        Ok(_) => {
            verdict.failed += 1;
            "`cargo lab history` found a difference".clone_into(&mut verdict.remark);
        }
        Err(error) => {
            verdict.failed += 1;
            verdict.remark = error.to_string();
        }
    }
    verdict
}

/// A task of the laboratory.
fn laboratory(arguments: &[&str], limit: Duration) -> anyhow::Result<Outcome> {
    let mut program = Command::new(repository::tested_program("lab", "tasks")?);
    process::run(program.args(arguments), limit)
}

/// The OpenCL kernels, and calibrate's OpenCL benchmarks, on a device of software, where it is installed.
fn oclgrind(group: Group) -> Verdict {
    if repository::program("oclgrind-kernel").is_none() {
        return skip(
            group,
            "oclgrind is not installed (`apt-get install oclgrind`)",
        );
    }
    finish(
        group,
        process::run(&mut named_tests(&["oclgrind"]), group.limit()),
    )
}

/// nvcc compiles our kernels, calibrate's benchmarks, and what code actions make of others; what we read of its output is held against what it
/// says, what we predict against what it made, and what we say of launches against those of programs that run. The script finds or installs the compiler; the others look in the same places.
fn compilers(group: Group, mut script: Command) -> Verdict {
    let mut passed = match process::run(&mut script, group.limit()) {
        Ok(outcome) if outcome.success => outcome.passed,
        other => return finish(group, other),
    };
    let mut tests = vec!["nvcc", "fixed_compile"];
    let mut remark = String::new();
    if repository::program("hipcc").is_some() {
        tests.push("hip");
    } else {
        "HIP skipped: hipcc is not installed (`apt-get install hipcc libamdhip64-dev`)"
            .clone_into(&mut remark);
        println!("{remark}");
    }
    match process::run(&mut named_tests(&tests), group.limit()) {
        Ok(outcome) if outcome.success => passed += outcome.passed,
        other => return finish(group, other),
    }
    let mut failed = 0;
    let mut success = true;
    for task in ["compiled", "hosts"] {
        match laboratory(&[task, "--check"], group.limit()) {
            Ok(held) => {
                passed += held.passed;
                // One that ends without a verdict has failed as well.
                failed += held.failed.max(u64::from(!held.success));
                success &= held.success;
            }
            other => return finish(group, other),
        }
    }
    let mut verdict = finish(
        group,
        Ok(Outcome {
            success,
            passed,
            failed,
            ..Outcome::default()
        }),
    );
    if verdict.remark.is_empty() {
        verdict.remark = remark;
    }
    verdict
}

/// Editors, services and the Python package are tested with the server a user would have, or against it.
fn editor(group: Group, mut script: Command) -> Verdict {
    let mut build = cargo(&[
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--package",
        "warplens",
    ]);
    match process::run(&mut build, Duration::from_mins(15)) {
        Ok(outcome) if outcome.success => {}
        other => return finish(group, other),
    }
    script.env("WARPLENS_BIN", repository::built("release", "warplens"));
    finish(group, process::run(&mut script, group.limit()))
}

fn skip(group: Group, why: &str) -> Verdict {
    println!("skipped: {why}");
    let skipped = Some(why.to_owned());
    Verdict {
        group,
        passed: 0,
        failed: 0,
        skipped,
        remark: String::new(),
        took: Duration::ZERO,
    }
}

fn finish(group: Group, outcome: anyhow::Result<Outcome>) -> Verdict {
    let (outcome, mut remark) = match outcome {
        Ok(outcome) => (outcome, String::new()),
        Err(error) => (Outcome::default(), format!("{error:#}")),
    };
    if outcome.timed_out {
        remark = format!("ended after {} minutes", group.limit().as_secs() / 60);
    }
    let mut verdict = Verdict {
        group,
        passed: outcome.passed,
        failed: outcome.failed,
        skipped: None,
        remark,
        took: Duration::ZERO,
    };
    // A group that counts nothing is one check; one that fails without a count has failed once.
    if outcome.success && verdict.passed == 0 {
        verdict.passed = 1;
    }
    if !outcome.success && verdict.failed == 0 {
        verdict.failed = 1;
    }
    verdict
}

fn summary(verdicts: &[Verdict]) -> ExitCode {
    println!(
        "\n{:<12} {:>8} {:>8} {:>8}",
        "group", "passed", "failed", "seconds"
    );
    for verdict in verdicts {
        let remark = verdict
            .skipped
            .as_ref()
            .map_or_else(|| verdict.remark.clone(), |why| format!("skipped: {why}"));
        println!(
            "{:<12} {:>8} {:>8} {:>8.1}  {remark}",
            verdict.group.name(),
            verdict.passed,
            verdict.failed,
            verdict.took.as_secs_f64()
        );
    }
    let passed: u64 = verdicts.iter().map(|verdict| verdict.passed).sum();
    let failed: u64 = verdicts.iter().map(|verdict| verdict.failed).sum();
    let skipped = verdicts
        .iter()
        .filter(|verdict| verdict.skipped.is_some())
        .count();
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_fails_without_a_count_has_failed() {
        let failed = finish(Group::Lint, Ok(Outcome::default()));
        assert_eq!((failed.passed, failed.failed), (0, 1));
        let quiet = finish(
            Group::Lint,
            Ok(Outcome {
                success: true,
                ..Outcome::default()
            }),
        );
        assert_eq!((quiet.passed, quiet.failed), (1, 0));
        let lost = finish(Group::Lint, Err(anyhow::anyhow!("no such program")));
        assert_eq!((lost.failed, lost.remark.as_str()), (1, "no such program"));
        let counted = Outcome {
            success: false,
            passed: 3,
            failed: 2,
            ..Outcome::default()
        };
        assert_eq!(finish(Group::Tests, Ok(counted)).failed, 2);
    }

    #[test]
    fn each_module_of_a_suite_is_there() {
        for suite in [SCALING, HOSTILE, DETERMINISM] {
            for module in suite.modules {
                let file = format!("{}.rs", module.trim_end_matches(':'));
                let is_there = |binary: &&str| {
                    let rooms = ["db", "lsp", "warplens"].into_iter();
                    let mut tests = rooms.map(|room| format!("server/{room}/tests/{binary}"));
                    tests.any(|tests| repository::root().join(tests).join(&file).is_file())
                };
                assert!(suite.binaries.iter().any(is_there), "{module}");
            }
        }
    }

    #[test]
    fn an_unreachable_database_is_told_from_a_vulnerability() {
        let offline = "[ERROR] failed to fetch advisory database https://example.org";
        assert!(unreachable(offline));
        assert!(!unreachable(
            "error[vulnerability]: heap overflow in foo\nadvisories FAILED"
        ));
    }
}
