//! `cargo lab budget`: how many instructions the server executes, held against a committed file.
//!
//! Times differ from machine to machine and from minute to minute; instructions hardly do. The server that is counted is
//! the one that users have, fed in step: it is never told the next thing before it has answered the last.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use warplens_latency::client::Client;
use warplens_latency::session::{Session, Times};

use crate::sessions;
use xtask::{process, repository};

/// Count the server's instructions under valgrind: against tests/budget.toml, or into it
#[derive(Debug, Args)]
pub struct Budget {
    /// Fail where a scenario executes more than its budget and the margin (what it does when nothing is said)
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Take what is counted as the budget
    #[arg(long)]
    write: bool,
    /// Count this many times and say how far the counts lie apart
    #[arg(long, default_value_t = 1, value_name = "RUNS")]
    runs: usize,
    /// The server; else it is built first
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
}

/// What every file begins with.
const HEAD: &str = "\
# How many instructions the server may execute. `cargo lab budget` counts them under valgrind and fails where there are
# more than stated here and the margin; `cargo lab budget --write` writes this file, after a change that is worth it.
#
# Two runs of one program differ by less than 1 %: seeds of hash tables, the order in which threads wake. Other
# machines have other processors, for which the C library and memchr choose other loops, and other C libraries: the
# margin is for these.
";
/// Percent.
const MARGIN: f64 = 3.0;
/// How long one scenario may take under valgrind.
const LIMIT: Duration = Duration::from_mins(4);

/// Instructions by scenario.
type Counts = BTreeMap<String, u64>;

impl Budget {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if repository::program("valgrind").is_none() {
            bail!("valgrind is not installed (`apt-get install valgrind`)");
        }
        let server = match self.server {
            Some(server) => server,
            None => build()?,
        };
        let mut all: Vec<Counts> = Vec::new();
        for _ in 0..self.runs.max(1) {
            all.push(count(&server)?);
        }
        let counted = all.first().cloned().unwrap_or_default();
        if all.len() > 1 {
            for name in counted.keys() {
                let counts: Vec<u64> = all
                    .iter()
                    .filter_map(|run| run.get(name).copied())
                    .collect();
                println!("{name:<24} apart by {:.3} %", apart(&counts));
            }
        }
        let path = repository::root().join("tests/budget.toml");
        if self.write {
            std::fs::write(&path, written(&counted))?;
            println!("wrote tests/budget.toml");
            return Ok(ExitCode::SUCCESS);
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let (table, over) = compare(&read(&text)?, &counted);
        print!("{table}");
        let held = counted.len() - over;
        println!("{held} passed, {over} failed");
        Ok(if over == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn build() -> anyhow::Result<PathBuf> {
    let mut build = Command::new("cargo");
    build.args([
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--package",
        "warplens",
    ]);
    if !process::run(&mut build, Duration::from_mins(15))?.success {
        bail!("the server could not be built");
    }
    Ok(repository::built("release", "warplens"))
}

/// Counts every scenario.
fn count(server: &Path) -> anyhow::Result<Counts> {
    let sessions = Session::read_all(&sessions::folder())?;
    let root = repository::root();
    let mut counts = Counts::new();
    let all: Vec<&Session> = sessions.iter().map(|(_, session)| session).collect();
    // Under valgrind a large file takes long to open, and no longer for a keystroke in it than for a hundred.
    let shortest = all.iter().copied().min_by_key(|one| one.keystrokes());
    for (lines, of) in [(1_000, all), (10_000, Vec::from_iter(shortest))] {
        let of: Vec<Session> = of
            .iter()
            .map(|session| session.inside(&root).within(lines))
            .collect();
        let keystrokes: usize = of.iter().map(Session::keystrokes).sum();
        let opened = served(server, &of, false)?;
        let typed = served(server, &of, true)?;
        // What was typed is what there is more than opening.
        let each = typed.saturating_sub(opened) / keystrokes.max(1) as u64;
        counts.insert(format!("start, {lines} lines"), opened / of.len() as u64);
        counts.insert(format!("keystroke, {lines} lines"), each);
    }
    let mut check = valgrind(server);
    check
        .args(["check", "tests/kernels", "tests/corpus"])
        .env("RAYON_NUM_THREADS", "1")
        .current_dir(&root);
    // It ends with 1 where it has findings.
    let said = process::captured(&mut check, LIMIT)?;
    let count = instructions(&said.errors).context("the folder was not counted")?;
    counts.insert("check of a folder".to_owned(), count);
    Ok(counts)
}

fn valgrind(server: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args([
            "--tool=cachegrind",
            "--cache-sim=no",
            "--cachegrind-out-file=/dev/null",
        ])
        .arg(server);
    command
}

/// The instructions of a server that opens these documents one after the other, and has them typed into.
fn served(server: &Path, sessions: &[Session], typed: bool) -> anyhow::Result<u64> {
    let log = tempfile::NamedTempFile::new()?;
    let mut command = Command::new("valgrind");
    command
        .args([
            "--tool=cachegrind",
            "--cache-sim=no",
            "--cachegrind-out-file=/dev/null",
        ])
        .arg(format!("--log-file={}", log.path().display()))
        .arg(server)
        .args(["lsp", "--stdio"]);
    let mut client = Client::start(&mut command)?;
    let mut times = Times::new();
    for session in sessions {
        session.open(&mut client)?;
        if typed {
            session.replay(&mut client, &mut times, || {})?;
        }
        session.close(&mut client)?;
    }
    client.end()?;
    let said = std::fs::read_to_string(log.path())?;
    instructions(&said).context("valgrind gave no count")
}

/// The count in valgrind's last words.
fn instructions(said: &str) -> Option<u64> {
    let line = said
        .lines()
        .find(|line| line.contains("I refs:") || line.contains("I   refs:"))?;
    let (_, number) = line.split_once("refs:")?;
    number.trim().replace(',', "").parse().ok()
}

/// How far counts lie apart, in percent of the least.
fn apart(counts: &[u64]) -> f64 {
    let least = counts.iter().min().copied().unwrap_or(0);
    let most = counts.iter().max().copied().unwrap_or(0);
    (most - least) as f64 / least.max(1) as f64 * 100.0
}

fn written(counts: &Counts) -> String {
    let mut text = format!("{HEAD}\nmargin_percent = {MARGIN:.1}\n\n[instructions]\n");
    for (name, count) in counts {
        let _ = writeln!(text, "\"{name}\" = {count}");
    }
    text
}

/// Margin and budgets.
fn read(text: &str) -> anyhow::Result<(f64, Counts)> {
    let table: toml::Table = text.parse()?;
    let margin = table.get("margin_percent").and_then(toml::Value::as_float);
    let margin = margin.context("no margin_percent")?;
    let budgets = table.get("instructions").and_then(toml::Value::as_table);
    let mut counts = Counts::new();
    for (name, count) in budgets.context("no [instructions]")? {
        let count = count
            .as_integer()
            .and_then(|count| u64::try_from(count).ok());
        counts.insert(
            name.clone(),
            count.with_context(|| format!("{name}: no count"))?,
        );
    }
    Ok((margin, counts))
}

/// A table, and how many scenarios are over their budget or have none.
fn compare((margin, budgets): &(f64, Counts), counted: &Counts) -> (String, usize) {
    let mut table = format!(
        "{:<24} {:>16} {:>16} {:>11}\n",
        "scenario", "budget", "counted", "difference"
    );
    let mut over = 0;
    for (name, count) in counted {
        let Some(budget) = budgets.get(name) else {
            over += 1;
            let _ = writeln!(table, "{name:<24} {:>16} {count:>16}  no budget", "");
            continue;
        };
        // In hundredths of a per cent: what is just at the margin is not over it.
        let more = (*count as f64 / (*budget).max(1) as f64 - 1.0) * 100.0;
        let more = (more * 100.0).round() / 100.0;
        let verdict = if more > *margin {
            over += 1;
            "  OVER"
        } else if more < -*margin {
            "  better: `cargo lab budget --write`"
        } else {
            ""
        };
        let _ = writeln!(
            table,
            "{name:<24} {budget:>16} {count:>16} {more:>+9.2} %{verdict}"
        );
    }
    (table, over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_the_margin_fails_and_under_it_does_not() {
        let budgets = Counts::from([("a".to_owned(), 1000), ("b".to_owned(), 1000)]);
        let file = read(&written(&budgets)).unwrap();
        let counted = |a, b| Counts::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        assert_eq!(compare(&file, &counted(1030, 900)).1, 0);
        let (table, over) = compare(&file, &counted(1031, 1000));
        assert_eq!(over, 1, "{table}");
        assert!(table.contains("+3.10 %  OVER"), "{table}");
    }

    #[test]
    fn a_scenario_without_a_budget_fails() {
        let file = read(&written(&Counts::new())).unwrap();
        assert_eq!(compare(&file, &Counts::from([("new".to_owned(), 1)])).1, 1);
    }

    #[test]
    fn a_budget_that_cannot_be_read_is_said() {
        assert!(read("margin_percent = 3.0\n").is_err());
        assert!(read("margin_percent = 3.0\n[instructions]\na = \"x\"\n").is_err());
    }

    #[test]
    fn valgrinds_count_is_found() {
        let said = "==1== \n==1== I   refs:      12,345,678\n";
        assert_eq!(instructions(said), Some(12_345_678));
        assert_eq!(instructions("==1== I refs:  5\n"), Some(5));
        assert_eq!(instructions("killed"), None);
    }
}
