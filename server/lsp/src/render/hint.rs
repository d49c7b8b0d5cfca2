//! The hints at the ends of lines: the number that matters, and what the line weighs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use warplens_db::PlacedKernel;
use warplens_db::settings::Hints;

use crate::documents::Analysed;
use crate::render::hover;
use crate::render::line::{self, Cost, Instructions, Line, Unit};

/// The longest predicted label: the user wants to see code. An instruction count from a compiler report may follow.
const LONGEST: usize = 25;
/// Below this an average of transactions is as good as its ideal.
const NOTABLE: f64 = 1.02;
/// A line without a defect gets a hint from this share of the cost on.
const HEAVY: f64 = 0.05;

/// A hint.
#[derive(Debug, PartialEq)]
pub struct Hint {
    /// 0-based line of the analysed text.
    pub line: u32,
    /// `32/4 sectors · 41 %`
    pub label: String,
    /// Markdown; `None` where the client resolves it later.
    pub tooltip: Option<String>,
}

/// The enabled hints in these lines of the analysed text, at most one per line; with tooltips unless the client resolves
/// them later.
pub fn within(
    analysed: &Analysed,
    lines: &Range<u32>,
    wanted: &Hints,
    tooltips: bool,
) -> Vec<Hint> {
    let rope = analysed.document.rope();
    let mut hints = BTreeMap::new();
    for kernel in &analysed.file.kernels {
        // An editor requests only the lines it shows: skip the other kernels.
        let last = rope.byte_to_line(kernel.end.min(rope.len_bytes())) as u32;
        if last < lines.start || lines.end <= kernel.line {
            continue;
        }
        for (at, line) in line::of(kernel) {
            if !lines.contains(&at) {
                continue;
            }
            // Several launches of one kernel share its lines: show the first one.
            if let Entry::Vacant(place) = hints.entry(at)
                && let Some(label) = label(&line, wanted)
            {
                place.insert(Hint {
                    line: at,
                    label,
                    tooltip: tooltips.then(|| hover::line(kernel, &line)),
                });
            }
        }
    }
    hints.into_values().collect()
}

/// The tooltip of the hint of one line.
pub fn tooltip(analysed: &Analysed, at: u32) -> Option<String> {
    let wanted = &analysed.effective.settings.inlay_hints;
    let told = |kernel: &PlacedKernel| {
        let line = line::of(kernel).remove(&at)?;
        label(&line, wanted).map(|_| hover::line(kernel, &line))
    };
    analysed.file.kernels.iter().find_map(told)
}

fn label(line: &Line<'_>, wanted: &Hints) -> Option<String> {
    let mut parts: Vec<(f64, String)> = Vec::new();
    let units = [
        (Unit::Sectors, wanted.memory),
        (Unit::Lines, wanted.memory),
        (Unit::Passes, wanted.shared),
    ];
    for unit in units
        .into_iter()
        .filter_map(|(unit, wanted)| wanted.then_some(unit))
    {
        let costs = line.accesses.iter().filter_map(|access| Cost::of(access));
        let worst = costs
            .filter(|cost| cost.unit == unit && cost.excess() >= NOTABLE)
            .max_by(|a, b| a.excess().total_cmp(&b.excess()));
        if let Some(cost) = worst {
            let figure = short(cost.figure);
            let text = match unit {
                Unit::Passes => format!("{figure} passes"),
                unit => format!("{figure}/{} {}", short(cost.ideal), unit.name()),
            };
            parts.push((cost.excess(), text));
        }
    }
    let splits = line.branches.iter().filter(|branch| !branch.guard);
    let split = splits
        .filter_map(|branch| branch.divergent_warp_fraction)
        .fold(0.0, f64::max);
    if wanted.divergence && split >= 0.01 {
        parts.push((1.0 + split, format!("{} split", percent(split))));
    }
    let weight = if parts.is_empty() { HEAVY } else { 0.01 };
    let share = (wanted.share && line.share >= weight).then(|| percent(line.share));
    let length = |parts: &[(f64, String)]| {
        let texts = parts.iter().map(|(_, text)| text).chain(&share);
        texts
            .map(|text| text.chars().count() + 3)
            .sum::<usize>()
            .saturating_sub(3)
    };
    while parts.len() > 1 && length(&parts) > LONGEST {
        // The mildest goes; the tooltip has them all.
        let mildest = (0..parts.len()).min_by(|a, b| parts[*a].0.total_cmp(&parts[*b].0))?;
        parts.remove(mildest);
    }
    let made = line.instructions.as_ref().filter(|_| wanted.instructions);
    let texts: Vec<String> = parts
        .into_iter()
        .map(|(_, text)| text)
        .chain(share)
        .chain(made.map(compiled))
        .collect();
    (!texts.is_empty()).then(|| texts.join(" · "))
}

/// `14 instr`; `was 14 instr` where the kernel was edited since.
fn compiled(made: &Instructions) -> String {
    let was = if made.current { "" } else { "was " };
    format!("{was}{} instr", made.total())
}

/// A figure in as few characters as tell it from its neighbours.
fn short(value: f64) -> String {
    if (value - value.round()).abs() < 0.05 || value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// Whole percents: what changes with every keystroke is not worth a decimal.
fn percent(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).min(100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{access, branch};
    use warplens_facts::facts::{Access, Space};

    #[track_caller]
    fn check(accesses: &[&Access], split: Option<f64>, share: f64, expected: Option<&str>) {
        let branch = branch(split);
        let line = Line {
            compilers_own: Vec::new(),
            accesses: accesses.to_vec(),
            branches: split.map(|_| &branch).into_iter().collect(),
            share,
            instructions: None,
        };
        let label = label(&line, &Hints::default());
        assert_eq!(label.as_deref(), expected);
        assert!(label.is_none_or(|label| label.chars().count() <= LONGEST));
    }

    #[test]
    fn the_number_that_matters_and_the_share() {
        let strided = access(Space::Global, 32.0, 4.0);
        let conflict = access(Space::Shared, 32.0, 1.0);
        let fine = access(Space::Global, 4.0, 4.0);
        let broadcast = access(Space::Shared, 1.0, 1.0);
        check(&[&strided], None, 0.41, Some("32/4 sectors · 41 %"));
        check(&[&conflict], None, 0.12, Some("32 passes · 12 %"));
        check(&[&strided, &fine], None, 0.004, Some("32/4 sectors"));
        check(&[&fine, &broadcast], None, 0.41, Some("41 %"));
        check(&[&fine], None, 0.04, None);
        check(&[], Some(1.0), 0.2, Some("100 % split · 20 %"));
        check(&[], Some(0.0), 0.01, None);
    }

    #[test]
    fn a_compilers_count_stands_behind_the_rest() {
        let strided = access(Space::Global, 17.5, 4.25);
        let label_of = |accesses: &[&Access], share: f64, current: bool| {
            let instructions = Instructions {
                classes: vec![("ffma", 12), ("ldg", 2)],
                current,
            };
            let line = Line {
                compilers_own: Vec::new(),
                accesses: accesses.to_vec(),
                branches: Vec::new(),
                share,
                instructions: Some(instructions),
            };
            label(&line, &Hints::default())
        };
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(label_of(&[], 0.01, true), says("14 instr"));
        assert_eq!(label_of(&[], 0.2, false), says("20 % · was 14 instr"));
        assert_eq!(
            label_of(&[&strided], 1.0, true),
            says("17.5/4.2 sectors · 100 % · 14 instr")
        );
    }

    #[test]
    fn each_category_can_be_left_out() {
        let (strided, conflict) = (
            access(Space::Global, 32.0, 4.0),
            access(Space::Shared, 32.0, 1.0),
        );
        let branch = branch(Some(0.5));
        let line = Line {
            compilers_own: Vec::new(),
            accesses: vec![&strided, &conflict],
            branches: vec![&branch],
            share: 0.41,
            instructions: Some(Instructions {
                classes: vec![("ffma", 12)],
                current: true,
            }),
        };
        let nothing = Hints {
            enable: true,
            memory: false,
            shared: false,
            divergence: false,
            share: false,
            instructions: false,
        };
        let says = |wanted: Hints| label(&line, &wanted);
        let off = || nothing.clone();
        assert_eq!(says(off()), None);
        for (wanted, text) in [
            (
                Hints {
                    memory: true,
                    ..off()
                },
                "32/4 sectors",
            ),
            (
                Hints {
                    shared: true,
                    ..off()
                },
                "32 passes",
            ),
            (
                Hints {
                    divergence: true,
                    ..off()
                },
                "50 % split",
            ),
            (
                Hints {
                    share: true,
                    ..off()
                },
                "41 %",
            ),
            (
                Hints {
                    instructions: true,
                    ..off()
                },
                "12 instr",
            ),
        ] {
            assert_eq!(says(wanted).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_label_stays_short() {
        let strided = access(Space::Global, 17.5, 4.25);
        let conflict = access(Space::Shared, 32.0, 1.0);
        check(
            &[&strided, &conflict],
            Some(0.5),
            0.41,
            Some("32 passes · 41 %"),
        );
        check(&[&strided], None, 1.0, Some("17.5/4.2 sectors · 100 %"));
    }
}
