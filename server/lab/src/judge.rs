//! `cargo lab judge`: findings about other people's code, held against runs of the kernels they are about.

mod judged;
mod kernels;
mod lines;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use warplens_oracle::{Access, BranchKind, Space, Tally, Verdict};

use crate::corpus;
use kernels::{File, Ran};
use xtask::process;

/// A check of a whole folder.
const LIMIT: Duration = Duration::from_mins(30);

/// Sample findings about other people's code and contradict them by brute force
///
/// Each sampled finding's kernel runs on the interpreter of `server/lab/oracle`, under the launch and the arguments that the
/// finding states, on arrays without end and with made-up contents. What is counted confirms the finding or contradicts it.
/// Also the lines of device code to a finding. Fails where a finding is contradicted.
#[derive(Debug, Args)]
pub struct Judge {
    /// The folder; with `--judged` any number
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Instead: what became of the findings that were judged by reading; `tests/judged` has the lists
    #[arg(long, value_name = "LISTS")]
    judged: Option<PathBuf>,
    /// With `--judged`: keep what was seen in `LISTS/replayed.tsv`
    #[arg(long, requires = "judged")]
    write: bool,
    /// Findings
    #[arg(long, value_name = "N", default_value_t = 200)]
    sample: usize,
    /// What decides which
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Instead: all accesses of the kernels that run, and how many of the uncoalesced ones are found
    #[arg(long)]
    recall: bool,
    /// This binary, instead of building one
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
}

/// What came of a finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Confirmed,
    Contradicted,
    /// It ran and does not tell.
    Open,
    /// It did not run: why.
    NotRun(String),
}

/// Rules whose findings a run can contradict.
const JUDGED: [&str; 14] = [
    "atomic/hot-address",
    "atomic/in-loop",
    "const/divergent-index",
    "div/early-exit-before-barrier",
    "div/loop-trip",
    "div/tid-branch",
    "mem/aos",
    "mem/column-walk",
    "mem/loop-invariant-load",
    "mem/misaligned",
    "mem/strided",
    "mem/uncoalesced",
    "smem/bank-conflict",
    "sync/redundant-barrier",
];

impl Judge {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let bin = match &self.bin {
            Some(bin) => std::path::absolute(bin)?,
            None => corpus::build()?,
        };
        if let Some(lists) = &self.judged {
            judged::replay(&bin, lists, &self.folders, self.write)?;
            return Ok(ExitCode::SUCCESS);
        }
        let [folder] = &self.folders[..] else {
            bail!("one folder at a time");
        };
        let mut check = Command::new(&bin);
        check
            .args(["check", "--fail-on", "error", "--format", "json"])
            .arg(folder);
        let findings = json(&mut check)?["diagnostics"].take();
        let findings: Vec<Value> = serde_json::from_value(findings)?;
        let device = lines::of_folder(folder)?;
        println!(
            "{} findings on {device} lines of device code: one to {:.1}",
            findings.len(),
            device as f64 / findings.len().max(1) as f64
        );
        if self.recall {
            return recall(&bin, folder, &findings);
        }
        let rule = |finding: &Value| finding["rule"].as_str().unwrap_or_default().to_owned();
        let mut judged: Vec<&Value> = findings
            .iter()
            .filter(|finding| JUDGED.contains(&rule(finding).as_str()))
            .collect();
        println!(
            "{} of them are of rules that a run can contradict",
            judged.len()
        );
        shuffle(&mut judged, self.seed);
        judged.truncate(self.sample);
        let mut files: BTreeMap<PathBuf, File> = BTreeMap::new();
        let mut outcomes: BTreeMap<String, Vec<Outcome>> = BTreeMap::new();
        for finding in judged {
            let path = PathBuf::from(finding["file"].as_str().unwrap_or_default());
            let file = match files.entry(path) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(new) => {
                    let file = File::read(&bin, new.key());
                    new.insert(file)
                }
            };
            let outcome = judge(file, finding);
            if outcome != Outcome::Confirmed {
                println!(
                    "{outcome:?}: {} {}:{} {}",
                    rule(finding),
                    finding["file"].as_str().unwrap_or_default(),
                    finding["line"],
                    finding["message"].as_str().unwrap_or_default(),
                );
            }
            outcomes.entry(rule(finding)).or_default().push(outcome);
        }
        Ok(report(&outcomes))
    }
}

/// What a run of warplens prints.
fn json(command: &mut Command) -> anyhow::Result<Value> {
    let told = process::captured(command, LIMIT)?;
    if told.out.is_empty() {
        bail!("no answer: {}", told.errors.trim());
    }
    serde_json::from_str(&told.out).context("an answer that is no JSON")
}

/// Fisher and Yates, with Knuth's MMIX.
fn shuffle<T>(all: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..all.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        all.swap(last, (state >> 33) as usize % (last + 1));
    }
}

fn report(outcomes: &BTreeMap<String, Vec<Outcome>>) -> ExitCode {
    println!("\n| rule | sampled | confirmed | contradicted | open | not run |");
    println!("| --- | --: | --: | --: | --: | --: |");
    let mut sums = [0; 5];
    for (rule, all) in outcomes {
        let count = |wanted: &Outcome| all.iter().filter(|one| *one == wanted).count();
        let ran = [
            count(&Outcome::Confirmed),
            count(&Outcome::Contradicted),
            count(&Outcome::Open),
        ];
        let row = [
            all.len(),
            ran[0],
            ran[1],
            ran[2],
            all.len() - ran.iter().sum::<usize>(),
        ];
        println!("| {rule} | {} |", row.map(|n| n.to_string()).join(" | "));
        for (sum, n) in sums.iter_mut().zip(row) {
            *sum += n;
        }
    }
    println!("| all | {} |", sums.map(|n| n.to_string()).join(" | "));
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in outcomes.values().flatten() {
        if let Outcome::NotRun(why) = outcome {
            *reasons.entry(why).or_default() += 1;
        }
    }
    let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    println!("\nnot run:");
    for (why, n) in reasons {
        println!("{n:5} {why}");
    }
    if sums[2] > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn judge(file: &mut File, finding: &Value) -> Outcome {
    let number = |name: &str| finding[name].as_u64().unwrap_or(0) as u32;
    let line = number("line");
    let rule = finding["rule"].as_str().unwrap_or_default();
    let Some(kernel) = file.kernel_at(line) else {
        return Outcome::NotRun("it is in no kernel of the file".to_owned());
    };
    match file.run(kernel) {
        Err(why) => Outcome::NotRun(why),
        Ok(ran) => {
            let verdict = match rule {
                "sync/redundant-barrier" => redundant(file, kernel, line),
                "div/early-exit-before-barrier" => Some(Verdict::of(ran.run.parted)),
                _ => counted(rule, &ran, line..=number("end_line").max(line)),
            };
            // A finding about another run than this one is not contradicted by it.
            let other = ran.made_up
                || finding["message"]
                    .as_str()
                    .is_some_and(|message| message.contains("for other arguments"))
                || file.other_lanes(kernel, line, &ran);
            match verdict {
                Some(Verdict::Yes) => Outcome::Confirmed,
                Some(Verdict::No) if !other => Outcome::Contradicted,
                _ => Outcome::Open,
            }
        }
    }
}

/// Whether threads race once a barrier only holds warps together; `None` where they do so anyway.
fn redundant(file: &File, kernel: usize, line: u32) -> Option<Verdict> {
    let races = |narrowed| {
        let run = file.run_for_races(kernel, narrowed).ok()?;
        Some(run.race.is_some())
    };
    if races(None)? {
        return None;
    }
    Some(Verdict::of(!races(Some(line))?))
}

/// What the counts of some lines say; `None` where nothing of the kind was executed there.
fn counted(rule: &str, ran: &Ran, lines: std::ops::RangeInclusive<u32>) -> Option<Verdict> {
    let Tally {
        accesses,
        branches,
        issued,
        ..
    } = &ran.run.tally;
    let here = |line: u32, via: &[u32]| {
        let line = via.first().copied().unwrap_or(line);
        line > ran.before && lines.contains(&(line - ran.before))
    };
    let of_accesses = accesses
        .iter()
        .filter(|(key, _)| here(key.place.line, &key.via))
        .filter_map(|(key, requests)| {
            let atomic = key.access == Access::Atomic;
            Some(match (rule, key.space) {
                ("atomic/hot-address", Space::Global) if atomic => requests.hot(),
                ("atomic/in-loop", Space::Global) if atomic => requests.repeated(),
                ("const/divergent-index", Space::Constant) => requests.several_words(),
                ("mem/loop-invariant-load", Space::Global) if key.access == Access::Load => {
                    requests.repeated()
                }
                ("mem/misaligned", Space::Global) => requests.misaligned(),
                (
                    "mem/aos" | "mem/column-walk" | "mem/strided" | "mem/uncoalesced",
                    Space::Global,
                ) => requests.uncoalesced(),
                // Atomics of one address wait for one another as well.
                ("smem/bank-conflict", Space::Shared) if !atomic => requests.conflict(),
                _ => return None,
            })
        });
    let of_branches = branches
        .iter()
        .filter(|(key, _)| here(key.place.line, &key.via))
        .filter_map(|(key, ways)| {
            let loops = key.fork == BranchKind::Loop;
            let asked = matches!(
                (rule, loops),
                ("div/tid-branch", false) | ("div/loop-trip", true)
            );
            asked.then(|| ways.splits(*issued))
        });
    of_accesses.chain(of_branches).max()
}

/// Of all accesses of device memory in the kernels that run, those that are uncoalesced, and those of them that are found.
fn recall(bin: &Path, folder: &Path, findings: &[Value]) -> anyhow::Result<ExitCode> {
    let rules = [
        "mem/aos",
        "mem/column-walk",
        "mem/strided",
        "mem/uncoalesced",
    ];
    let (mut ran, mut kernels, mut all, mut found) = (0, 0, 0, 0);
    let mut by_data = 0;
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for path in lines::files(folder)? {
        let mut file = File::read(bin, &path);
        for kernel in 0..file.kernels() {
            kernels += 1;
            let run = match file.run(kernel) {
                Ok(run) => run,
                Err(why) => {
                    *reasons.entry(why).or_default() += 1;
                    continue;
                }
            };
            ran += 1;
            let mut uncoalesced: Vec<u32> = Vec::new();
            for (key, requests) in &run.run.tally.accesses {
                let line = key.via.first().copied().unwrap_or(key.place.line);
                let worth = key.space == Space::Global && key.access != Access::Atomic;
                if worth && line > run.before && requests.uncoalesced() == Verdict::Yes {
                    uncoalesced.push(line - run.before);
                }
            }
            uncoalesced.sort_unstable();
            uncoalesced.dedup();
            for line in uncoalesced {
                all += 1;
                let said = findings.iter().any(|finding| {
                    let number = |name: &str| finding[name].as_u64().unwrap_or(0) as u32;
                    rules.contains(&finding["rule"].as_str().unwrap_or_default())
                        && Path::new(finding["file"].as_str().unwrap_or_default()) == path
                        && (number("line")..=number("end_line").max(number("line"))).contains(&line)
                });
                let data = file.by_data(kernel, line);
                found += usize::from(said);
                by_data += usize::from(!said && data);
                if !said {
                    let why = if data { "missed, by data" } else { "missed" };
                    println!("{why}: {}:{line}", path.display());
                }
            }
        }
    }
    println!(
        "{ran} of {kernels} kernels ran; {all} lines with uncoalesced accesses, {found} found, {by_data} of the others depend on data"
    );
    for (why, n) in reasons {
        println!("{n:5} {why}");
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_one_order() {
        let order = |seed| {
            let mut all: Vec<u32> = (0..50).collect();
            shuffle(&mut all, seed);
            all
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
