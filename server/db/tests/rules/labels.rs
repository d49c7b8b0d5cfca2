//! How often rules are right: their findings on kernels whose sites are labelled by a run (`tests/labels`), held against
//! the labels. `BLESS=1 cargo test -p warplens-db --test rules labels` writes docs/accuracy/rules.md.

mod compiler;
mod elsewhere;
mod kernels;
mod sites;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use compiler::Words;
use elsewhere::Elsewhere;
use kernels::{Kernel, Labelled};
use sites::{Family, Sites, Where, label};
use warplens_advice::{State, catalogue};
use warplens_oracle::Verdict;

/// A rule that is on by default is right this often, at least.
const PRECISION: f64 = 0.9;
/// All of them together are.
const TOGETHER: f64 = 0.95;
/// What is found of uncoalesced accesses and of bank conflicts.
const RECALL: f64 = 0.9;

/// Everything labelled and everything found.
struct Measured {
    compiler: String,
    kernels: usize,
    sites: Sites,
    /// Kernels that could not be labelled.
    faults: Vec<String>,
    /// By rule.
    found: BTreeMap<&'static str, BTreeSet<Where>>,
}

static MEASURED: LazyLock<Measured> = LazyLock::new(measure);

fn measure() -> Measured {
    let words = Words::read();
    let mut measured = Measured {
        compiler: words.compiler.clone(),
        kernels: 0,
        sites: Sites::new(),
        faults: Vec::new(),
        found: BTreeMap::new(),
    };
    for file in kernels::files() {
        let kernels = file.kernels();
        for kernel in &kernels {
            measured.kernels += 1;
            if let Err(error) = label(kernel, &words, &mut measured.sites) {
                measured.faults.push(format!("{}: {error}", kernel.id()));
            }
        }
        find(&file, &kernels, &mut measured.found);
    }
    measured
}

/// Where findings stand, their further places among them.
fn find(
    file: &Labelled,
    kernels: &[Kernel<'_>],
    found: &mut BTreeMap<&'static str, BTreeSet<Where>>,
) {
    let line = |byte: usize| file.text[..byte].matches('\n').count() as u32 + 1;
    for finding in &file.analysis.findings {
        let Some(family) = Family::of(finding.rule) else {
            continue;
        };
        let first = line(finding.range.start);
        // What is said of a launch is above its kernel.
        let kernel = kernels
            .iter()
            .filter(|kernel| *kernel.lines.end() >= first)
            .min_by_key(|kernel| *kernel.lines.end());
        let Some(kernel) = kernel else {
            continue;
        };
        let mut lines = vec![first];
        if matches!(
            family,
            Family::Coalescing | Family::Gathers | Family::Alignment | Family::Banks
        ) {
            lines.extend(finding.related.iter().map(|(range, _)| line(range.start)));
        }
        for line in lines {
            let line = if family.of_kernels() { 0 } else { line };
            let at = (file.name.clone(), kernel.name.clone(), line);
            found.entry(finding.rule).or_default().insert(at);
        }
    }
}

/// How a rule did.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    sites: usize,
    positives: usize,
    right: usize,
    wrong: usize,
    /// Findings that cannot be judged.
    open: usize,
    /// Positives that the rule, or another one of its family, finds.
    recalled: usize,
}

impl Score {
    fn precision(self) -> Option<f64> {
        let judged = self.right + self.wrong;
        (judged > 0).then(|| self.right as f64 / judged as f64)
    }

    fn recall(self) -> Option<f64> {
        (self.positives > 0).then(|| self.recalled as f64 / self.positives as f64)
    }
}

impl Measured {
    fn label(&self, family: Family, at: &Where) -> Verdict {
        let key = (family, at.clone());
        self.sites.get(&key).copied().unwrap_or(Verdict::Open)
    }

    /// The findings of the rules of one family.
    fn family(&self, family: Family, states: &[State]) -> BTreeSet<&Where> {
        let rules = catalogue()
            .iter()
            .filter(|rule| Family::of(rule.id) == Some(family) && states.contains(&rule.state));
        rules
            .filter_map(|rule| self.found.get(rule.id))
            .flatten()
            .collect()
    }

    fn score(&self, rule: &'static str) -> Option<Score> {
        let family = Family::of(rule)?;
        let none = BTreeSet::new();
        let found = self.found.get(rule).unwrap_or(&none);
        let mut score = Score::default();
        for at in found {
            match self.label(family, at) {
                Verdict::Yes => score.right += 1,
                Verdict::No => score.wrong += 1,
                Verdict::Open => score.open += 1,
            }
        }
        let together = self.family(family, &[State::Stable, State::Preview]);
        for ((of, at), verdict) in &self.sites {
            if *of != family || *verdict == Verdict::Open {
                continue;
            }
            score.sites += 1;
            if *verdict == Verdict::Yes {
                score.positives += 1;
                score.recalled += usize::from(together.contains(at));
            }
        }
        Some(score)
    }

    /// What the rules that are on by default find of a family, and of how many.
    fn recall_by_default(&self, family: Family) -> (usize, usize) {
        let found = self.family(family, &[State::Stable]);
        let positives = self
            .sites
            .iter()
            .filter(|((of, _), verdict)| *of == family && **verdict == Verdict::Yes);
        let all: Vec<&Where> = positives.map(|((_, at), _)| at).collect();
        let recalled = all.iter().filter(|at| found.contains(**at)).count();
        (recalled, all.len())
    }

    /// Findings of the rules that are on by default which are right, and those that could be judged.
    fn together(&self) -> (usize, usize) {
        let stable = catalogue()
            .iter()
            .filter(|rule| rule.state == State::Stable);
        let scores = stable.filter_map(|rule| self.score(rule.id));
        scores.fold((0, 0), |(right, judged), score| {
            (right + score.right, judged + score.right + score.wrong)
        })
    }

    /// Findings at which the label says no, and positives that were not found.
    fn mistakes(&self) -> String {
        let mut text = String::new();
        for rule in catalogue() {
            let Some(family) = Family::of(rule.id) else {
                continue;
            };
            for at in self.found.get(rule.id).into_iter().flatten() {
                let verdict = self.label(family, at);
                if verdict != Verdict::Yes {
                    let _ = writeln!(text, "{verdict:?} {} at {at:?}", rule.id);
                }
            }
        }
        for ((family, at), verdict) in &self.sites {
            let found = self.family(*family, &[State::Stable]);
            if *verdict == Verdict::Yes && !found.contains(at) {
                let _ = writeln!(text, "missed {family:?} at {at:?}");
            }
        }
        text
    }
}

fn percent(part: Option<f64>) -> String {
    part.map_or("–".to_owned(), |part| format!("{:.0} %", part * 100.0))
}

/// What was found by hand of other people's code.
const ELSEWHERE: &str = "\n\
    The kernels are ours and in the manner of what the rules were made for: the figures say that nothing broke, more than what\n\
    to expect of other code. For that `cargo lab judge DIR --sample N --seed N` (run by hand) samples findings about a folder and\n\
    runs their kernels. Of 400 findings about HeCBench (seeds 7 and 8; 2716 findings, one to 36.2 lines of device code), 143 were\n\
    confirmed and two contradicted; 45 were left open (the run was another case than the finding's, by its data or by an\n\
    argument that is not stated, or the definitions differ) and 210 kernels did not run, most of them for what the interpreter\n\
    cannot read. Both that were contradicted are branches that few warps come to: of those that do, as many split as is said, but\n\
    a run weighs them by all that the kernel executes. With `--recall` on Rodinia's CUDA kernels 33 of 92 ran: 13 of 15 lines with\n\
    uncoalesced accesses are found.\n\n\
    What counts as open was settled after first runs, not before: findings at accesses that move between a fifth and a half more,\n\
    or half more by a shifted beginning alone, and banks that take between a twentieth and a quarter more, were wrong at first; so\n\
    the 100 % is of findings where a run leaves no doubt. Earlier samples contradicted what is no finding any more: a bank\n\
    conflict where atomics wait for one word, a misaligned row of which every second lane is off.\n\n\
    Of what is missed: all loops whose lanes have different trip counts, and nearly all rows that begin in the wrong place,\n\
    are those of sparse matrices and walks whose lengths and beginnings are in memory: the source does not tell them.\n\
    Loads that go to one address in every iteration and are no finding are mostly moved out of the loop by the compiler, or another\n\
    rule's (`mem/no-restrict`). Branches that are missed are those of trees within a warp and of borders, where little is\n\
    predicted to be won. Of the barriers, some are worth less than 2 %, some are needed by larger blocks that the kernel would be\n\
    right for, too, and in OpenCL no barrier of one warp could take their place; in loops it is not followed how far each turn\n\
    hands on.\n";

/// What was judged of other people's code, in words.
fn replayed(elsewhere: &Elsewhere) -> String {
    let (all, problems) = (elsewhere.all, elsewhere.problems);
    let part = |part: usize, of: usize| percent((of > 0).then(|| part as f64 / of as f64));
    format!(
        "\n`cargo lab judge --judged tests/judged DIR… --write` replays what was judged of public trees by reading kernels and\n\
         launches; `tests/judged` has repository, commit, place, verdict and reason, of findings and of problems that a reader\n\
         named, found or not. The columns *elsewhere* are of the {} trees of the last replay: findings above hints that were\n\
         judged, those of them with a fact that is right, and those of use. Of {} judged findings {} are above hints, the fact is\n\
         right in {} ({}), {} are of use ({}), and {} that are of use are no longer shown. Of {} known problems {} are named on\n\
         their line ({}); of the {} that cost over a tenth of their kernel's time, {} are named above hints ({}). Who judged had\n\
         seen the rules: no blind test. A rule whose fact is right in less than 90 % of 25 or more is a preview; of fewer nothing is concluded.\n",
        elsewhere.trees.len(),
        all.all,
        all.shown,
        all.right,
        part(all.right, all.shown),
        all.useful,
        part(all.useful, all.shown),
        all.lost,
        problems.known,
        problems.met,
        part(problems.met, problems.known),
        problems.costly,
        problems.shown,
        part(problems.shown, problems.costly),
    )
}

/// Three columns: shown, right, useful.
fn columns(judged: Option<elsewhere::Judged>) -> String {
    let judged = judged.unwrap_or_default();
    let of_shown = |part: usize| {
        let share = (judged.shown > 0).then(|| part as f64 / judged.shown as f64);
        percent(share)
    };
    let (right, useful) = (of_shown(judged.right), of_shown(judged.useful));
    format!("{} | {right} | {useful}", judged.shown)
}

/// The rules that no label is of, where they were judged.
fn only_elsewhere(elsewhere: &Elsewhere) -> String {
    let mut text = String::new();
    for rule in catalogue() {
        let judged = elsewhere.rules.get(rule.id).copied();
        if Family::of(rule.id).is_none() && judged.is_some_and(|judged| judged.shown > 0) {
            let (state, columns) = (rule.state.name(), columns(judged));
            let _ = writeln!(
                text,
                "| {} | {state} | – | – | – | – | – | – | – | – | {columns} |",
                rule.id
            );
        }
    }
    text
}

/// The page.
fn page(measured: &Measured) -> String {
    let mut text = String::from(
        "# How often rules are right\n\n\
         `BLESS=1 cargo test -p warplens-db --test rules labels` writes this page (`cargo xtask generate` as well); without\n\
         `BLESS` the test fails where the page is out of date, where a rule that is on by default falls under 90 % precision, all\n\
         of them together under 95 %, or the recall of uncoalesced accesses or bank conflicts under 90 %.\n\n\
         A site is a line of a kernel, or a kernel, and what a family of rules asks about it. Who labels it knows no rule:\n\n\
         - **oracle**: the kernel runs thread by thread on the interpreter of `server/lab/oracle`, blocks spread over the launch, and what\n\
         \u{20} its warps do is counted (`verdict.rs` says from which figure on the label is yes). An access is uncoalesced where it takes\n\
         \u{20} half as many sectors again as its bytes fill, a shifted beginning aside: the distinct bytes and those of all lanes both;\n\
         \u{20} where the two differ, or it is little, it is not judged. What moves other sectors with other contents of the arrays\n\
         \u{20} depends on data: that is `mem/gather`'s, and of the other rules' recall no part. A barrier is redundant where no threads race once it only holds warps together. A\n\
         \u{20} branch is yes where a tenth of its warps part and 2 % of the kernel's issues would be saved if lanes that go one way\n\
         \u{20} filled warps.\n\
         - **compiler**: `tests/labels/compiler.tsv`, written by `cargo lab labels` from what nvcc makes of the kernel as it is and\n\
         \u{20} with the advice taken: yes where at least 1 % of the instructions are saved.\n\
         - **arithmetic**: the rule's definition applied to the launch, by hand in the test.\n\n\
         *Right* and *wrong* are findings at sites labelled yes and no; *open* ones are undecided. Precision is right of\n\
         right and wrong. Recall is what the rules of one family find of its positives together, hints among them: `mem/aos`,\n\
         `mem/column-walk`, `mem/strided` and `mem/uncoalesced` share out one family. Of the families in which rules\n\
         speak only where it is worth something (branches, barriers), recall is what it is.\n\n",
    );
    let (right, judged) = measured.together();
    let positives = measured
        .sites
        .values()
        .filter(|v| **v == Verdict::Yes)
        .count();
    let judged_sites = measured
        .sites
        .values()
        .filter(|v| **v != Verdict::Open)
        .count();
    let _ = writeln!(
        text,
        "{} kernels, {judged_sites} sites, {positives} positives; compiler: {}.\n",
        measured.kernels, measured.compiler,
    );
    let _ = writeln!(
        text,
        "Rules that are on by default: {right} of {judged} findings right, {}.",
        percent(Some(right as f64 / judged.max(1) as f64))
    );
    for (name, family) in [
        ("Uncoalesced accesses", Family::Coalescing),
        ("Uncoalesced accesses that depend on data", Family::Gathers),
        ("Bank conflicts", Family::Banks),
    ] {
        let (found, all) = measured.recall_by_default(family);
        let share = percent(Some(found as f64 / all.max(1) as f64));
        let _ = writeln!(text, "{name} that they find: {found} of {all}, {share}.");
    }
    text.push_str(ELSEWHERE);
    let elsewhere = Elsewhere::read();
    text.push_str(&replayed(&elsewhere));
    text.push_str(
        "\n| rule | state | labelled by | sites | positives | right | wrong | open | precision | recall | \
         elsewhere | right | useful |\n\
         | --- | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    let mut unlabelled = Vec::new();
    for rule in catalogue() {
        let (Some(family), Some(score)) = (Family::of(rule.id), measured.score(rule.id)) else {
            unlabelled.push(format!("`{}`", rule.id));
            continue;
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            rule.id,
            rule.state.name(),
            family.labeller(),
            score.sites,
            score.positives,
            score.right,
            score.wrong,
            score.open,
            percent(score.precision()),
            percent(score.recall()),
            columns(elsewhere.rules.get(rule.id).copied()),
        );
    }
    text.push_str(&only_elsewhere(&elsewhere));
    let _ = writeln!(
        text,
        "\nNot labelled, so nothing is known of how often they are right: {}.",
        unlabelled.join(", ")
    );
    text
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/accuracy/rules.md");
    let page = page(&MEASURED);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).expect("docs/accuracy can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/accuracy/rules.md is out of date: BLESS=1 cargo test -p warplens-db --test rules labels\n{page}"
    );
}

#[test]
fn rules_that_are_on_by_default_are_right() {
    let mut faults = Vec::new();
    for rule in catalogue()
        .iter()
        .filter(|rule| rule.state == State::Stable)
    {
        let precision = MEASURED.score(rule.id).and_then(Score::precision);
        if precision.is_some_and(|precision| precision < PRECISION) {
            faults.push(format!("{}: {}", rule.id, percent(precision)));
        }
    }
    let (right, judged) = MEASURED.together();
    if (right as f64) < judged as f64 * TOGETHER {
        faults.push(format!("together: {right} of {judged}"));
    }
    assert!(
        faults.is_empty(),
        "{}\n{}",
        faults.join("\n"),
        MEASURED.mistakes()
    );
}

#[test]
fn rules_that_are_wrong_elsewhere_are_previews() {
    let elsewhere = Elsewhere::read();
    let stable = catalogue()
        .iter()
        .filter(|rule| rule.state == State::Stable);
    let wrong: Vec<String> = stable
        .filter_map(|rule| {
            let judged = elsewhere.rules.get(rule.id)?;
            let precision = judged.precision()?;
            (precision < PRECISION).then(|| format!("{}: {judged:?}", rule.id))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn uncoalesced_accesses_and_bank_conflicts_are_found() {
    for family in [Family::Coalescing, Family::Banks] {
        let (found, all) = MEASURED.recall_by_default(family);
        assert!(
            found as f64 >= all as f64 * RECALL,
            "{family:?}: {found} of {all}\n{}",
            MEASURED.mistakes()
        );
    }
}

#[test]
fn every_kernel_is_labelled() {
    assert!(MEASURED.faults.is_empty(), "{}", MEASURED.faults.join("\n"));
}

#[test]
fn there_is_enough_to_find() {
    let labelled = |wanted| MEASURED.sites.values().filter(|v| **v == wanted).count();
    assert!(labelled(Verdict::Yes) + labelled(Verdict::No) >= 300);
    for family in [Family::Coalescing, Family::Banks] {
        let (_, positives) = MEASURED.recall_by_default(family);
        assert!(positives >= 60, "{family:?}: {positives}");
    }
}
