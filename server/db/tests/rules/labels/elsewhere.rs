//! What was judged of other people's code, as `cargo lab judge --judged tests/judged DIR… --write` saw it last.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What became of the judged findings of one rule, or of all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judged {
    /// Judged at all.
    pub all: usize,
    /// Above hints.
    pub shown: usize,
    /// Of those, with a fact that is right.
    pub right: usize,
    /// Of those, of use.
    pub useful: usize,
    /// Of use, and a hint or no finding any more.
    pub lost: usize,
}

impl Judged {
    /// How often the fact is right; `None` where too few are shown to say so.
    pub fn precision(self) -> Option<f64> {
        (self.shown >= ENOUGH).then(|| self.right as f64 / self.shown as f64)
    }
}

/// Fewer judgements than this say nothing of a rule.
const ENOUGH: usize = 25;

/// What of the known problems is named.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named {
    /// Known.
    pub known: usize,
    /// With a finding on their lines, hints among them.
    pub met: usize,
    /// That cost over a tenth of their kernel's time.
    pub costly: usize,
    /// Of those, with a finding above hints.
    pub shown: usize,
}

/// The last replay.
#[derive(Debug, Default)]
pub struct Elsewhere {
    /// By rule.
    pub rules: BTreeMap<String, Judged>,
    /// All rules.
    pub all: Judged,
    /// Problems.
    pub problems: Named,
    /// Repositories.
    pub trees: BTreeSet<String>,
}

impl Elsewhere {
    /// Reads `tests/judged/replayed.tsv`.
    pub fn read() -> Elsewhere {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/judged/replayed.tsv");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut all = Elsewhere::default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [kind, repository, _path, _lines, rules, state, worth, useful] = fields[..] else {
                panic!("not eight values: {line}");
            };
            all.trees.insert(repository.to_owned());
            let shown = state == "shown";
            if kind == "problem" {
                let costs = worth == "costs";
                all.problems.known += 1;
                all.problems.met += usize::from(state != "silent");
                all.problems.costly += usize::from(costs);
                all.problems.shown += usize::from(costs && shown);
                continue;
            }
            let of_rule = all.rules.entry(rules.to_owned()).or_default();
            for judged in [of_rule, &mut all.all] {
                judged.all += 1;
                judged.shown += usize::from(shown);
                judged.right += usize::from(shown && worth == "right");
                judged.useful += usize::from(shown && useful == "yes");
                judged.lost += usize::from(!shown && useful == "yes");
            }
        }
        all
    }
}
