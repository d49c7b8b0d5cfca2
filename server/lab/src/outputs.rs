//! `cargo lab outputs BEFORE AFTER DIR…`: what two programs say of the same files, compared as JSON.
//!
//! In: two `warplens` programs and folders. Out: every difference of what they print, grouped by where it is. What is
//! compared holds nothing that may differ between two runs of one program: versions and times of running are taken out
//! (`runs`). So the same program given twice has no difference, and one that shows is an answer that depends on something
//! besides its input.

mod allowed;
pub mod difference;
mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use rayon::prelude::*;
use xtask::repository;

use allowed::Allowed;
use difference::Difference;
use runs::{Command, Program, Run};

/// Compare what two programs say: check, estimate, sweep, report and diff over folders
///
/// Fails where a difference is left that --allow does not explain. The same program twice finds what depends on more
/// than its input.
#[derive(Debug, Args)]
pub struct Outputs {
    /// The program as it was
    before: PathBuf,
    /// The program as it is
    after: PathBuf,
    /// Folders of sources
    #[arg(value_name = "DIR", default_values_os_t = OURS.map(|folder| repository::root().join(folder)))]
    folders: Vec<PathBuf>,
    /// Differences that are explained: TOML, a table `[[allow]]` each, with `path`, `reason` and, if not all, `old` and
    /// `new`; `*` represents anything
    #[arg(long, value_name = "FILE")]
    allow: Option<PathBuf>,
    /// At most this many files with kernels of each folder, spread over it
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Only these commands (repeatable)
    #[arg(long, value_enum, value_name = "COMMAND")]
    only: Vec<Command>,
    /// Seconds that one call of a program may take; what takes longer in both is left out and counted, in one has four
    /// times as long
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
    /// Also write every difference into this file, a line of JSON each
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,
}

/// Looked at where no folder is named.
const OURS: [&str; 3] = ["tests/kernels", "tests/corpus", "tests/fixtures"];
/// Limits that a run may take which only the other program ended in time.
const PATIENCE: u32 = 4;
/// Values listed of each group.
const VALUES: usize = 4;
/// Characters shown of a value.
const SHOWN: usize = 160;

/// A difference and where it was found.
struct Found {
    command: Command,
    /// The file or folder that was looked at.
    input: PathBuf,
    difference: Difference,
}

/// What came of all runs.
#[derive(Default)]
struct Outcome {
    /// Runs that were compared, by command.
    compared: BTreeMap<Command, usize>,
    /// Configurations that the sweeps gave a time.
    timed: usize,
    /// Runs that neither program ended in time.
    unended: Vec<String>,
    found: Vec<Found>,
}

impl Outputs {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let limit = Duration::from_secs(self.limit);
        let before = Program::new(&self.before)?;
        let after = Program::new(&self.after)?;
        let allowed = match &self.allow {
            Some(file) => Allowed::read(file)?,
            None => Allowed::default(),
        };
        let started = Instant::now();
        let scratch = tempfile::tempdir()?;
        let mut runs = Vec::new();
        for (number, folder) in self.folders.iter().enumerate() {
            if !folder.is_dir() {
                bail!("{} is not a folder", folder.display());
            }
            let folder = std::path::absolute(folder)?;
            let copies = scratch.path().join(number.to_string());
            runs.extend(runs::of(&folder, self.sample, &copies)?);
        }
        if !self.only.is_empty() {
            runs.retain(|run| self.only.contains(&run.command));
        }
        let outcome = compare(&before, &after, &runs, limit)?;
        if let Some(file) = &self.details {
            write_details(file, &outcome.found)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let (explained, left): (Vec<&Found>, Vec<&Found>) = outcome
            .found
            .iter()
            .partition(|found| allowed.explain(&found.path(), &found.difference).is_some());
        print!("{}", groups(&left));
        for (reason, times) in allowed.reasons(explained.iter().map(|found| {
            let path = found.path();
            (path, &found.difference)
        })) {
            println!("explained {times} times: {reason}");
        }
        for run in &outcome.unended {
            println!("neither program ended within {} s: {run}", self.limit);
        }
        let counts: Vec<String> = outcome
            .compared
            .iter()
            .map(|(command, times)| format!("{times} {command}"))
            .collect();
        println!(
            "{} compared in {:.0} s, {} configurations with a time: {} differences, {} of them explained",
            counts.join(", "),
            started.elapsed().as_secs_f64(),
            outcome.timed,
            outcome.found.len(),
            explained.len(),
        );
        Ok(ExitCode::from(u8::from(!left.is_empty())))
    }
}

/// Every run in both programs, as many at once as there are processors.
fn compare(
    before: &Program,
    after: &Program,
    runs: &[Run],
    limit: Duration,
) -> anyhow::Result<Outcome> {
    let differences = runs.par_iter().map(|run| {
        let mut old = run.output(before, limit)?;
        let mut new = run.output(after, limit)?;
        if old.is_none() && new.is_none() {
            return Ok(None);
        }
        // On a busy machine the limit alone may fall between two that take as long.
        if old.is_none() {
            old = run.output(before, limit * PATIENCE)?;
        }
        if new.is_none() {
            new = run.output(after, limit * PATIENCE)?;
        }
        let unended = || serde_json::json!("did not end within the limit");
        let old = old.unwrap_or_else(unended);
        let new = new.unwrap_or_else(unended);
        Ok(Some((difference::between(&old, &new), run.timed(&new))))
    });
    let differences: Vec<_> = differences.collect::<anyhow::Result<_>>()?;
    let mut outcome = Outcome::default();
    for (run, differences) in runs.iter().zip(differences) {
        let Some((differences, timed)) = differences else {
            outcome.unended.push(run.to_string());
            continue;
        };
        outcome.timed += timed;
        *outcome.compared.entry(run.command).or_insert(0) += 1;
        let found = differences.into_iter();
        outcome.found.extend(found.map(|difference| Found {
            command: run.command,
            input: run.input.clone(),
            difference,
        }));
    }
    Ok(outcome)
}

impl Found {
    /// The command and the place in what it prints.
    fn path(&self) -> String {
        format!("{}{}", self.command, self.difference.path)
    }
}

/// The differences by their place: how many, in how many files, which values, where first.
fn groups(found: &[&Found]) -> String {
    let mut groups: BTreeMap<String, Vec<&Found>> = BTreeMap::new();
    for found in found {
        groups.entry(found.path()).or_default().push(found);
    }
    let mut groups: Vec<(String, Vec<&Found>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.len()));
    let mut text = String::new();
    for (path, group) in groups {
        let files: BTreeSet<&Path> = group.iter().map(|found| found.input.as_path()).collect();
        let _ = writeln!(
            text,
            "{path}: {} differences in {} inputs",
            group.len(),
            files.len()
        );
        let mut values: BTreeMap<(String, String), Vec<&Found>> = BTreeMap::new();
        for found in group {
            let (old, new) = &found.difference.values();
            let values = values.entry((shown(old), shown(new))).or_default();
            values.push(found);
        }
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
        let more = values.len().saturating_sub(VALUES);
        for ((old, new), found) in values.into_iter().take(VALUES) {
            let first = found[0];
            let _ = writeln!(
                text,
                "  {}x in {} ({})\n    before: {old}\n    after:  {new}",
                found.len(),
                first.input.display(),
                first.difference.place
            );
        }
        if more > 0 {
            let _ = writeln!(text, "  and {more} other pairs of values");
        }
    }
    text
}

fn shown(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

fn write_details(file: &Path, found: &[Found]) -> anyhow::Result<()> {
    let mut lines = std::io::BufWriter::new(std::fs::File::create(file)?);
    for found in found {
        let line = serde_json::json!({
            "command": found.command.to_string(),
            "input": found.input,
            "place": found.difference.place,
            "before": found.difference.old,
            "after": found.difference.new,
        });
        writeln!(lines, "{line}")?;
    }
    Ok(lines.flush()?)
}
