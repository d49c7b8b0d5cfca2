//! `cargo lab judge --judged LISTS DIR…`: findings about public trees judged by reading, replayed.
//!
//! A list is a file of tab-separated values, one for each repository: its name and commit in the first line, then for each
//! finding its path, line and rule, whether the fact is `right`, `partly` right or `wrong`, whether an invented value decided
//! it, whether the gain is plausible, whether the advice is useful, and why. No code of the repository is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::json;

/// A finding that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Judgement {
    path: String,
    line: u64,
    rule: String,
    fact: Fact,
    useful: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Right,
    Partly,
    Wrong,
}

/// What a list says of one repository.
#[derive(Debug)]
struct List {
    repository: String,
    judgements: Vec<Judgement>,
}

impl List {
    fn read(text: &str) -> anyhow::Result<List> {
        let mut lines = text.lines();
        let first = lines.next().and_then(|line| line.strip_prefix("# "));
        let Some(repository) = first.and_then(|first| first.split(' ').next()) else {
            bail!("the first line names no repository");
        };
        let judgements = lines.skip(1).map(Judgement::read);
        Ok(List {
            repository: repository.to_owned(),
            judgements: judgements.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Files of this list that a folder has.
    fn files_in(&self, folder: &Path) -> usize {
        let paths: BTreeSet<&str> = self
            .judgements
            .iter()
            .map(|one| one.path.as_str())
            .collect();
        paths
            .iter()
            .filter(|path| folder.join(path).is_file())
            .count()
    }
}

impl Judgement {
    fn read(line: &str) -> anyhow::Result<Judgement> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [path, at, rule, fact, _invented, _gain, useful, _why] = fields[..] else {
            bail!("not eight values: {line}");
        };
        Ok(Judgement {
            path: path.to_owned(),
            line: at.parse().with_context(|| format!("no line: {line}"))?,
            rule: rule.to_owned(),
            fact: match fact {
                "right" => Fact::Right,
                "partly" => Fact::Partly,
                "wrong" => Fact::Wrong,
                _ => bail!("neither right nor partly nor wrong: {line}"),
            },
            useful: useful == "yes",
        })
    }
}

/// Of the findings that were judged, by rule: how many are still above hints.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    judged: usize,
    shown: usize,
    right: usize,
    partly: usize,
    wrong: usize,
    useful: usize,
    /// Judged useful and shown no more.
    lost: usize,
}

impl Tally {
    fn count(&mut self, judgement: &Judgement, shown: bool) {
        self.judged += 1;
        self.lost += usize::from(judgement.useful && !shown);
        if shown {
            self.shown += 1;
            self.useful += usize::from(judgement.useful);
            match judgement.fact {
                Fact::Right => self.right += 1,
                Fact::Partly => self.partly += 1,
                Fact::Wrong => self.wrong += 1,
            }
        }
    }

    fn row(&self, rule: &str) -> String {
        let precision = match self.shown {
            0 => "–".to_owned(),
            shown => format!("{:.0} %", 100.0 * self.right as f64 / shown as f64),
        };
        format!(
            "| {rule} | {} | {} | {} | {} | {} | {precision} | {} | {} |",
            self.judged, self.shown, self.right, self.partly, self.wrong, self.useful, self.lost
        )
    }
}

/// Checks each folder, finds the list of its repository by its files, and prints what became of the judged findings.
pub fn replay(bin: &Path, lists: &Path, folders: &[PathBuf]) -> anyhow::Result<()> {
    let mut known = Vec::new();
    for entry in std::fs::read_dir(lists)?.flatten() {
        if entry.path().extension().is_some_and(|kind| kind == "tsv") {
            let name = entry.path().display().to_string();
            let text = std::fs::read_to_string(entry.path())?;
            known.push(List::read(&text).with_context(|| name)?);
        }
    }
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut all = Tally::default();
    for folder in folders {
        let nearest = known.iter().max_by_key(|list| list.files_in(folder));
        let Some(list) = nearest.filter(|list| list.files_in(folder) > 0) else {
            bail!("{}: no list is about its files", folder.display());
        };
        let mut check = Command::new(bin);
        check.args(["check", "--format", "json"]).arg(folder);
        let findings = json(&mut check)?;
        let shown = shown(&findings["diagnostics"], folder);
        println!("{}: {} findings above hints", list.repository, shown.len());
        for judgement in &list.judgements {
            if !folder.join(&judgement.path).is_file() {
                continue;
            }
            let place = (
                judgement.path.clone(),
                judgement.line,
                judgement.rule.clone(),
            );
            let is_shown = shown.contains(&place);
            if judgement.useful && !is_shown {
                let Judgement {
                    path, line, rule, ..
                } = judgement;
                println!("no longer shown: {path}:{line} {rule}");
            }
            let of_rule = tallies.entry(judgement.rule.clone()).or_default();
            of_rule.count(judgement, is_shown);
            all.count(judgement, is_shown);
        }
    }
    println!(
        "\n| rule | judged | shown | right | partly | wrong | precision | useful | useful, lost |"
    );
    println!("| --- | --: | --: | --: | --: | --: | --: | --: | --: |");
    for (rule, tally) in &tallies {
        println!("{}", tally.row(rule));
    }
    println!("{}", all.row("all"));
    Ok(())
}

/// Path in the folder, line and rule of what is above a hint.
fn shown(findings: &Value, folder: &Path) -> BTreeSet<(String, u64, String)> {
    let mut places = BTreeSet::new();
    for finding in findings.as_array().into_iter().flatten() {
        if finding["severity"] == "hint" {
            continue;
        }
        let file = Path::new(finding["file"].as_str().unwrap_or_default());
        let inside = file.strip_prefix(folder).unwrap_or(file);
        let rule = finding["rule"].as_str().unwrap_or_default();
        places.insert((
            inside.display().to_string(),
            finding["line"].as_u64().unwrap_or_default(),
            rule.to_owned(),
        ));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_the_repository_are_read() {
        let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/judged");
        let mut judged = 0;
        for entry in std::fs::read_dir(lists).unwrap().flatten() {
            if entry.path().extension().is_some_and(|kind| kind == "tsv") {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                let list =
                    List::read(&text).unwrap_or_else(|why| panic!("{:?}: {why:#}", entry.path()));
                assert!(list.repository.contains('/'), "{}", list.repository);
                let places: BTreeSet<_> = list
                    .judgements
                    .iter()
                    .map(|one| (&one.path, one.line, &one.rule))
                    .collect();
                assert_eq!(
                    places.len(),
                    list.judgements.len(),
                    "{}: judged twice",
                    list.repository
                );
                judged += list.judgements.len();
            }
        }
        assert!(judged > 0);
    }

    #[test]
    fn what_is_shown_no_more_is_lost_only_where_it_was_useful() {
        let line =
            |useful: &str| format!("a.cu\t3\tmem/aos\tright\tno\tyes\t{useful}\tsome reason");
        let useful = Judgement::read(&line("yes")).unwrap();
        let other = Judgement::read(&line("no")).unwrap();
        let mut tally = Tally::default();
        tally.count(&useful, true);
        tally.count(&useful, false);
        tally.count(&other, false);
        assert_eq!(
            (tally.judged, tally.shown, tally.right, tally.lost),
            (3, 1, 1, 1)
        );
        assert!(tally.row("mem/aos").contains("100 %"));
    }

    #[test]
    fn hints_are_not_shown() {
        let findings = serde_json::json!([
            {"rule": "mem/aos", "severity": "warning", "file": "t/a.cu", "line": 3},
            {"rule": "mem/aos", "severity": "hint", "file": "t/c.cu", "line": 5},
        ]);
        let places = shown(&findings, Path::new("t"));
        let files: Vec<&str> = places.iter().map(|(file, ..)| file.as_str()).collect();
        assert_eq!(files, ["a.cu"]);
    }
}
