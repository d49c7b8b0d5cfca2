//! `cargo lab judge --judged LISTS DIR…`: what was judged of public trees by reading, replayed.
//!
//! A list is a file of tab-separated values, one for each repository: its name and commit in the first line, the names of the
//! columns in the second. No code of the repository is in it. There are three kinds:
//!
//! - `LISTS/*.tsv`, findings: path, line and rule, whether the fact is `right`, `partly` right or `wrong`, whether an
//!   invented value decided it, whether the gain is plausible, whether the advice is useful, and why;
//! - `LISTS/again/*.tsv`, some of the same findings judged a second time, in the same columns;
//! - `LISTS/problems/*.tsv`, what costs in kernels of the repository, found or not: path, the lines at any of which it may
//!   be named, the rules that would name it (`a|b`), whether it costs over 10 %, and why.
//!
//! `LISTS/replayed.tsv` is what the last `--write` saw of each: what changed since is printed, and `docs/accuracy/rules.md`
//! is made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
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

impl Fact {
    fn name(self) -> &'static str {
        match self {
            Fact::Right => "right",
            Fact::Partly => "partly",
            Fact::Wrong => "wrong",
        }
    }
}

/// What costs in a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    path: String,
    /// At any of which it may be named.
    lines: Vec<u64>,
    /// Any of which names it.
    rules: Vec<String>,
    /// Over a tenth of the kernel's time.
    costs: bool,
}

/// What is said of one repository.
#[derive(Debug, Default)]
struct List {
    repository: String,
    judgements: Vec<Judgement>,
    again: Vec<Judgement>,
    problems: Vec<Problem>,
}

/// All lists, by repository.
fn read(lists: &Path) -> anyhow::Result<BTreeMap<String, List>> {
    let mut known: BTreeMap<String, List> = BTreeMap::new();
    for kind in ["", "again", "problems"] {
        let Ok(entries) = std::fs::read_dir(lists.join(kind)) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|kind| kind != "tsv") || path.ends_with(REPLAYED) {
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            let of_file = || path.display().to_string();
            let repository = repository(&text).with_context(of_file)?;
            let list = known.entry(repository.to_owned()).or_default();
            repository.clone_into(&mut list.repository);
            match kind {
                "problems" => list
                    .problems
                    .extend(rows(&text, Problem::read).with_context(of_file)?),
                "again" => list
                    .again
                    .extend(rows(&text, Judgement::read).with_context(of_file)?),
                _ => list
                    .judgements
                    .extend(rows(&text, Judgement::read).with_context(of_file)?),
            }
        }
    }
    Ok(known)
}

fn repository(text: &str) -> anyhow::Result<&str> {
    let first = text.lines().next().and_then(|line| line.strip_prefix("# "));
    let Some(repository) = first.and_then(|first| first.split(' ').next()) else {
        bail!("the first line names no repository");
    };
    Ok(repository)
}

fn rows<T>(text: &str, row: fn(&str) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    text.lines().skip(2).map(row).collect()
}

impl List {
    /// Files of this list that a folder has.
    fn files_in(&self, folder: &Path) -> usize {
        let judged = self.judgements.iter().map(|one| one.path.as_str());
        let problems = self.problems.iter().map(|one| one.path.as_str());
        let paths: BTreeSet<&str> = judged.chain(problems).collect();
        let found = paths.iter().filter(|path| folder.join(path).is_file());
        found.count()
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

    fn is_about(&self, other: &Judgement) -> bool {
        (&self.path, self.line, &self.rule) == (&other.path, other.line, &other.rule)
    }
}

impl Problem {
    fn read(line: &str) -> anyhow::Result<Problem> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [path, lines, rules, costs, _why] = fields[..] else {
            bail!("not five values: {line}");
        };
        let lines = lines.split(',').map(str::parse);
        Ok(Problem {
            path: path.to_owned(),
            lines: lines
                .collect::<Result<_, _>>()
                .with_context(|| format!("no line: {line}"))?,
            rules: rules.split('|').map(str::to_owned).collect(),
            costs: costs == "yes",
        })
    }

    /// The loudest of the findings that name it.
    fn named(&self, found: &Findings) -> State {
        let lines = self.lines.iter();
        let places = lines.flat_map(|line| self.rules.iter().map(move |rule| (line, rule)));
        let states = places.map(|(line, rule)| found.state(&self.path, *line, rule));
        states.max().unwrap_or(State::Silent)
    }

    fn lines(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(u64::to_string).collect();
        lines.join(",")
    }
}

/// How loud a finding is, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Silent,
    Hint,
    Shown,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Silent => "silent",
            State::Hint => "hint",
            State::Shown => "shown",
        }
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
        format!(
            "| {rule} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.judged,
            self.shown,
            self.right,
            self.partly,
            self.wrong,
            percent(self.right, self.shown),
            self.useful,
            self.lost
        )
    }
}

/// Of the known problems, by the first rule that would name it: how many are named.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Recall {
    problems: usize,
    named: usize,
    /// Those that cost over a tenth.
    costly: usize,
    /// Of those, named above a hint.
    shown: usize,
}

impl Recall {
    fn count(&mut self, problem: &Problem, state: State) {
        self.problems += 1;
        self.named += usize::from(state > State::Silent);
        if problem.costs {
            self.costly += 1;
            self.shown += usize::from(state == State::Shown);
        }
    }

    fn row(&self, rule: &str) -> String {
        format!(
            "| {rule} | {} | {} | {} | {} | {} | {} |",
            self.problems,
            self.named,
            percent(self.named, self.problems),
            self.costly,
            self.shown,
            percent(self.shown, self.costly),
        )
    }
}

fn percent(part: usize, all: usize) -> String {
    match all {
        0 => "–".to_owned(),
        all => format!("{:.0} %", 100.0 * part as f64 / all as f64),
    }
}

/// What the last `--write` saw.
const REPLAYED: &str = "replayed.tsv";

/// One line of [`REPLAYED`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// What it is about: kind, repository, path, lines, rules.
    about: [String; 5],
    state: State,
    /// `right`, `partly`, `wrong`; of a problem whether it costs.
    worth: &'static str,
    useful: bool,
}

impl Seen {
    fn line(&self) -> String {
        let Seen {
            about,
            state,
            worth,
            useful,
        } = self;
        let useful = if *useful { "yes" } else { "no" };
        format!("{}\t{}\t{worth}\t{useful}", about.join("\t"), state.name())
    }
}

/// Checks each folder, finds the list of its repository by its files, and prints what became of the judged findings and
/// which of the known problems are named. `write` keeps what was seen.
pub fn replay(bin: &Path, lists: &Path, folders: &[PathBuf], write: bool) -> anyhow::Result<()> {
    let known = read(lists)?;
    let mut seen: Vec<Seen> = Vec::new();
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut recalls: BTreeMap<&str, Recall> = BTreeMap::new();
    let (mut all, mut every) = (Tally::default(), Recall::default());
    for folder in folders {
        let nearest = known.values().max_by_key(|list| list.files_in(folder));
        let Some(list) = nearest.filter(|list| list.files_in(folder) > 0) else {
            bail!("{}: no list is about its files", folder.display());
        };
        let mut check = Command::new(bin);
        check
            .args(["check", "--format", "json", "--no-fixes"])
            .arg(folder);
        let found = Findings::of(&json(&mut check)?["diagnostics"], folder);
        println!(
            "{}: {} findings above hints, {} of them repeat another",
            list.repository, found.shown, found.repeats
        );
        let about = |kind: &str, path: &str, lines: String, rules: String| {
            let repository = list.repository.clone();
            [kind.to_owned(), repository, path.to_owned(), lines, rules]
        };
        let is_here = |path: &str| folder.join(path).is_file();
        for judgement in list.judgements.iter().filter(|one| is_here(&one.path)) {
            let Judgement {
                path, line, rule, ..
            } = judgement;
            let state = found.state(path, *line, rule);
            if judgement.useful && state < State::Shown {
                println!("no longer shown: {path}:{line} {rule} ({})", state.name());
            }
            if judgement.fact != Fact::Right && state == State::Shown {
                println!("{}: {path}:{line} {rule}", judgement.fact.name());
            }
            let of_rule = tallies.entry(rule.as_str()).or_default();
            of_rule.count(judgement, state == State::Shown);
            all.count(judgement, state == State::Shown);
            seen.push(Seen {
                about: about("finding", path, line.to_string(), rule.clone()),
                state,
                worth: judgement.fact.name(),
                useful: judgement.useful,
            });
        }
        for problem in list.problems.iter().filter(|one| is_here(&one.path)) {
            let state = problem.named(&found);
            let wanted = if problem.costs {
                State::Shown
            } else {
                State::Hint
            };
            if state < wanted {
                let (path, lines) = (&problem.path, problem.lines());
                let rules = problem.rules.join("|");
                println!("not named: {path}:{lines} {rules} ({})", state.name());
            }
            let of_rule = recalls.entry(problem.rules[0].as_str()).or_default();
            of_rule.count(problem, state);
            every.count(problem, state);
            seen.push(Seen {
                about: about(
                    "problem",
                    &problem.path,
                    problem.lines(),
                    problem.rules.join("|"),
                ),
                state,
                worth: if problem.costs { "costs" } else { "little" },
                useful: true,
            });
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
    println!("\n| problem | known | named | recall | over 10 % | shown | recall |");
    println!("| --- | --: | --: | --: | --: | --: | --: |");
    for (rule, recall) in &recalls {
        println!("{}", recall.row(rule));
    }
    println!("{}", every.row("all"));
    agreement(&known);
    let file = lists.join(REPLAYED);
    let before = std::fs::read_to_string(&file).unwrap_or_default();
    print!("{}", changed(&before, &seen));
    if write {
        let mut text = String::from("kind\trepository\tpath\tlines\trules\tstate\tworth\tuseful\n");
        for one in &seen {
            let _ = writeln!(text, "{}", one.line());
        }
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// How often a second judgement is the first.
fn agreement(known: &BTreeMap<String, List>) {
    let (mut twice, mut facts, mut useful) = (0, 0, 0);
    for list in known.values() {
        for again in &list.again {
            let first = list.judgements.iter().find(|first| first.is_about(again));
            let Some(first) = first else {
                continue;
            };
            twice += 1;
            facts += usize::from(first.fact == again.fact);
            useful += usize::from(first.useful == again.useful);
        }
    }
    println!(
        "\n{twice} judged twice: one verdict about the fact in {}, about the use in {}",
        percent(facts, twice),
        percent(useful, twice)
    );
}

/// What is louder or quieter than it was, of what both replays saw.
fn changed(before: &str, seen: &[Seen]) -> String {
    let mut was: BTreeMap<Vec<&str>, &str> = BTreeMap::new();
    for line in before.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        if let [about @ .., state, _worth, _useful] = &fields[..] {
            was.insert(about.to_vec(), state);
        }
    }
    let mut text = String::new();
    for one in seen {
        let about: Vec<&str> = one.about.iter().map(String::as_str).collect();
        let Some(was) = was.get(&about).filter(|was| **was != one.state.name()) else {
            continue;
        };
        let [kind, repository, path, lines, rules] = &one.about;
        let now = one.state.name();
        let _ = writeln!(
            text,
            "{kind} {was} before, {now} now: {repository} {path}:{lines} {rules} ({})",
            one.worth
        );
    }
    text
}

/// The findings of a folder by path in it, line and rule.
#[derive(Debug, Default)]
struct Findings {
    places: BTreeMap<(String, u64, String), State>,
    /// Above hints.
    shown: usize,
    /// Of those, told of another.
    repeats: usize,
}

impl Findings {
    fn of(findings: &Value, folder: &Path) -> Findings {
        let mut all = Findings::default();
        for finding in findings.as_array().into_iter().flatten() {
            let state = if finding["severity"] == "hint" {
                State::Hint
            } else {
                State::Shown
            };
            if state == State::Shown {
                all.shown += 1;
                all.repeats += usize::from(finding["same_as"].is_object());
            }
            let file = Path::new(finding["file"].as_str().unwrap_or_default());
            let inside = file.strip_prefix(folder).unwrap_or(file);
            let rule = finding["rule"].as_str().unwrap_or_default();
            let place = (
                inside.display().to_string(),
                finding["line"].as_u64().unwrap_or_default(),
                rule.to_owned(),
            );
            let known = all.places.entry(place).or_insert(state);
            *known = state.max(*known);
        }
        all
    }

    fn state(&self, path: &str, line: u64, rule: &str) -> State {
        let place = (path.to_owned(), line, rule.to_owned());
        self.places.get(&place).copied().unwrap_or(State::Silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_the_repository_are_read() {
        let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/judged");
        let known = read(&lists).unwrap();
        for list in known.values() {
            assert!(list.repository.contains('/'), "{}", list.repository);
            let judged = list.judgements.iter();
            let places: BTreeSet<_> = judged.map(|one| (&one.path, one.line, &one.rule)).collect();
            let twice = list.judgements.len() - places.len();
            assert_eq!(twice, 0, "{}: judged twice in one list", list.repository);
            for again in &list.again {
                let first = list.judgements.iter().any(|first| first.is_about(again));
                assert!(
                    first,
                    "{}: no first judgement of {again:?}",
                    list.repository
                );
            }
            for rule in list.problems.iter().flat_map(|problem| &problem.rules) {
                let rule = warplens_advice::find(rule);
                assert!(rule.is_some(), "{}: no rule {rule:?}", list.repository);
            }
        }
        let judged: usize = known.values().map(|list| list.judgements.len()).sum();
        let problems: usize = known.values().map(|list| list.problems.len()).sum();
        assert!(judged > 0 && problems > 0);
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

    fn findings() -> Findings {
        let findings = serde_json::json!([
            {"rule": "mem/aos", "severity": "warning", "file": "t/a.cu", "line": 3},
            {"rule": "mem/aos", "severity": "hint", "file": "t/a.cu", "line": 3},
            {"rule": "mem/strided", "severity": "hint", "file": "t/c.cu", "line": 5},
        ]);
        Findings::of(&findings, Path::new("t"))
    }

    #[test]
    fn hints_are_not_shown() {
        let found = findings();
        assert_eq!(found.shown, 1);
        assert_eq!(found.state("a.cu", 3, "mem/aos"), State::Shown);
        assert_eq!(found.state("c.cu", 5, "mem/strided"), State::Hint);
        assert_eq!(found.state("c.cu", 6, "mem/strided"), State::Silent);
    }

    #[test]
    fn a_problem_is_named_at_any_of_its_lines_by_any_of_its_rules() {
        let problem = |line: &str| Problem::read(line).unwrap();
        let shown = problem("a.cu\t2,3\tmem/strided|mem/aos\tyes\twhy");
        let hint = problem("c.cu\t5\tmem/strided\tyes\twhy");
        let found = findings();
        let mut recall = Recall::default();
        for one in [&shown, &hint] {
            recall.count(one, one.named(&found));
        }
        assert_eq!((recall.named, recall.costly, recall.shown), (2, 2, 1));
    }

    #[test]
    fn what_changed_since_is_told() {
        let seen = |state| Seen {
            about: ["finding", "a/b", "a.cu", "3", "mem/aos"].map(str::to_owned),
            state,
            worth: "right",
            useful: true,
        };
        let before = format!("header\n{}\n", seen(State::Hint).line());
        assert_eq!(changed(&before, &[seen(State::Hint)]), "");
        let told = changed(&before, &[seen(State::Shown)]);
        assert!(told.contains("hint before, shown now"), "{told}");
    }
}
