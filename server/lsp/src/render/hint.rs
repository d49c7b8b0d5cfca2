//! The hints at the ends of lines: the number that matters, and what the line weighs.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use warplens_db::PlacedKernel;
use warplens_db::settings::Hints;
use warplens_report::figure::counted;

use crate::documents::Analysed;
use crate::earlier;
use crate::pinned::LinesByName;
use crate::render::hover;
use crate::render::line::{self, Cost, Instructions, Line, Unit};

/// The longest predicted label: the user wants to see code. What the line took when its kernel was pinned and an instruction count
/// from a compiler report may follow.
const LONGEST: usize = 40;
/// A share of the time that changed by less since the kernel was pinned is not told.
const CHANGED: f64 = 0.02;
/// Below this an average of transactions is as good as its ideal.
const NOTABLE: f64 = 1.02;

/// A hint.
#[derive(Debug, PartialEq)]
pub struct Hint {
    /// 0-based line of the analysed text.
    pub line: u32,
    /// `32 sectors, ideal 4 · 41 % of time`
    pub label: String,
    /// Markdown; `None` where the client resolves it later.
    pub tooltip: Option<String>,
}

/// The enabled hints in these lines of the analysed text, at most one per line; with tooltips unless the client resolves
/// them later. `pinned`: what lines took when their kernels were pinned.
pub fn within(
    analysed: &Analysed,
    lines: &Range<u32>,
    wanted: &Hints,
    pinned: &LinesByName,
    tooltips: bool,
) -> Vec<Hint> {
    let rope = analysed.document.rope();
    let mut hints = BTreeMap::new();
    let found = lines_with_findings(analysed);
    for (number, kernel) in earlier::numbered(&analysed.file) {
        // An editor requests only the lines it shows: skip the other kernels.
        let last = rope.byte_to_line(kernel.end.min(rope.len_bytes())) as u32;
        if last < lines.start || lines.end <= kernel.line {
            continue;
        }
        let pinned = pinned.get(&kernel.analysis.facts.name);
        let pinned = pinned.and_then(|pinned| pinned.get(number));
        let before = pinned.map_or_else(BTreeMap::new, |pinned| pinned.before(kernel, rope));
        for (at, line) in line::of(kernel) {
            if !lines.contains(&at) {
                continue;
            }
            // Several launches of one kernel share its lines: show the first one.
            if let Entry::Vacant(place) = hints.entry(at)
                && let Some(label) =
                    label(&line, wanted, found.contains(&at), before.get(&at).copied())
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
    let found = lines_with_findings(analysed).contains(&at);
    let told = |kernel: &PlacedKernel| {
        let line = line::of(kernel).remove(&at)?;
        label(&line, wanted, found, None).map(|_| hover::line(kernel, &line))
    };
    analysed.file.kernels.iter().find_map(told)
}

/// The lines at which the user sees a finding.
fn lines_with_findings(analysed: &Analysed) -> BTreeSet<u32> {
    let rope = analysed.document.rope();
    let findings = analysed.file.findings.iter();
    let starts = findings.map(|finding| finding.range.start.min(rope.len_bytes()));
    starts
        .map(|start| rope.byte_to_line(start) as u32)
        .collect()
}

/// The label at the end of a line; `found`: the line has a finding. `None` for a line without one and with less than the
/// share of the time that the settings ask for, now and `before`: its share when the kernel was pinned.
fn label(line: &Line<'_>, wanted: &Hints, found: bool, before: Option<f64>) -> Option<String> {
    let was = before.filter(|was| wanted.share && (was - line.share).abs() >= CHANGED);
    let share = line.share.max(was.unwrap_or_default());
    if !found && share * 100.0 < f64::from(wanted.minimum_share) {
        return None;
    }
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
            let (figure, ideal) = (short(cost.figure), short(cost.ideal));
            let text = format!("{}, ideal {ideal}", unit.counted(&figure));
            parts.push((cost.excess(), text));
        }
    }
    if parts.is_empty()
        && let Some(unit) = unknown(line, wanted)
    {
        parts.push((1.0, format!("? {}", unit.name())));
    }
    let splits = line.branches.iter().filter(|branch| !branch.guard);
    let split = splits
        .filter_map(|branch| branch.divergent_warp_fraction)
        .fold(0.0, f64::max);
    if wanted.divergence && split >= 0.01 {
        parts.push((1.0 + split, format!("{} of warps diverge", percent(split))));
    }
    let share = wanted.share && (line.share >= 0.01 || was.is_some());
    let share = share.then(|| format!("{} of time", percent(line.share)));
    let was = was.map(|was| format!(" (was {})", percent(was)));
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
    let share = share.map(|share| share + was.as_deref().unwrap_or_default());
    let made = line.instructions.as_ref().filter(|_| wanted.instructions);
    let texts: Vec<String> = parts
        .into_iter()
        .map(|(_, text)| text)
        .chain(share)
        .chain(made.map(compiled))
        .collect();
    (!texts.is_empty()).then(|| texts.join(" · "))
}

/// What an access of the line costs that nothing says the cost of.
fn unknown(line: &Line<'_>, wanted: &Hints) -> Option<Unit> {
    let units = line
        .accesses
        .iter()
        .filter(|access| Cost::of(access).is_none())
        .map(|access| Cost::unit(access));
    units.into_iter().find(|unit| match unit {
        Unit::Passes => wanted.shared,
        Unit::Sectors | Unit::Lines => wanted.memory,
    })
}

/// `14 instructions`; `was 14 instructions` where the kernel was edited since.
fn compiled(made: &Instructions) -> String {
    let was = if made.current { "" } else { "was " };
    format!("{was}{}", counted(made.total(), "instruction"))
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
        let label = label(&line, &Hints::default(), false, None);
        assert_eq!(label.as_deref(), expected);
        assert!(label.is_none_or(|label| label.chars().count() <= LONGEST));
    }

    #[test]
    fn the_number_that_matters_and_the_share() {
        let strided = access(Space::Global, 32.0, 4.0);
        let conflict = access(Space::Shared, 32.0, 1.0);
        let fine = access(Space::Global, 4.0, 4.0);
        let broadcast = access(Space::Shared, 1.0, 1.0);
        let strided_costs = "32 sectors, ideal 4 · 41 % of time";
        check(&[&strided], None, 0.41, Some(strided_costs));
        check(&[&strided, &fine], None, 0.41, Some(strided_costs));
        let conflict_costs = "32 passes, ideal 1 · 12 % of time";
        check(&[&conflict], None, 0.12, Some(conflict_costs));
        check(&[&fine, &broadcast], None, 0.41, Some("41 % of time"));
        check(&[&fine], None, 0.04, None);
        check(&[&strided], None, 0.04, None);
        let splits = "100 % of warps diverge · 20 % of time";
        check(&[], Some(1.0), 0.2, Some(splits));
        check(&[], Some(0.0), 0.01, None);
    }

    #[test]
    fn an_unknown_cost_has_a_question_mark() {
        let unknown = |space| Access {
            transactions_per_request: None,
            passes_per_request: None,
            ..access(space, 1.0, 1.0)
        };
        let (gathered, shared) = (unknown(Space::Global), unknown(Space::Shared));
        check(&[&gathered], None, 0.41, Some("? sectors · 41 % of time"));
        check(&[&shared], None, 0.41, Some("? passes · 41 % of time"));
        let strided = access(Space::Global, 32.0, 4.0);
        let known = "32 sectors, ideal 4 · 41 % of time";
        check(&[&gathered, &strided], None, 0.41, Some(known));
    }

    #[test]
    fn a_light_line_has_a_hint_where_something_was_found_or_the_user_asks() {
        let strided = access(Space::Global, 32.0, 4.0);
        let line = Line {
            compilers_own: Vec::new(),
            accesses: vec![&strided],
            branches: Vec::new(),
            share: 0.004,
            instructions: None,
        };
        let text = "32 sectors, ideal 4";
        assert_eq!(
            label(&line, &Hints::default(), true, None).as_deref(),
            Some(text)
        );
        assert_eq!(label(&line, &Hints::default(), false, None), None);
        let all = Hints {
            minimum_share: 0,
            ..Hints::default()
        };
        assert_eq!(label(&line, &all, false, None).as_deref(), Some(text));
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
            label(&line, &Hints::default(), false, None)
        };
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(label_of(&[], 0.01, true), None);
        let edited = "20 % of time · was 14 instructions";
        assert_eq!(label_of(&[], 0.2, false), says(edited));
        assert_eq!(
            label_of(&[&strided], 1.0, true),
            says("17.5 sectors, ideal 4.2 · 100 % of time · 14 instructions")
        );
    }

    #[test]
    fn a_share_that_changed_visibly_since_a_pin_is_told() {
        let label_of = |share: f64, before: f64| {
            let line = Line {
                share,
                ..Line::default()
            };
            label(&line, &Hints::default(), false, Some(before))
        };
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(label_of(0.41, 0.52), says("41 % of time (was 52 %)"));
        assert_eq!(label_of(0.41, 0.42), says("41 % of time"));
        assert_eq!(label_of(0.001, 0.3), says("0 % of time (was 30 %)"));
        assert_eq!(label_of(0.3, 0.0), says("30 % of time (was 0 %)"));
        assert_eq!(label_of(0.001, 0.03), None);
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
            ..Hints::default()
        };
        let says = |wanted: Hints| label(&line, &wanted, false, None);
        let off = || nothing.clone();
        assert_eq!(says(off()), None);
        for (wanted, text) in [
            (
                Hints {
                    memory: true,
                    ..off()
                },
                "32 sectors, ideal 4",
            ),
            (
                Hints {
                    shared: true,
                    ..off()
                },
                "32 passes, ideal 1",
            ),
            (
                Hints {
                    divergence: true,
                    ..off()
                },
                "50 % of warps diverge",
            ),
            (
                Hints {
                    share: true,
                    ..off()
                },
                "41 % of time",
            ),
            (
                Hints {
                    instructions: true,
                    ..off()
                },
                "12 instructions",
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
            Some("32 passes, ideal 1 · 41 % of time"),
        );
        let fractions = "17.5 sectors, ideal 4.2 · 100 % of time";
        check(&[&strided], None, 1.0, Some(fractions));
    }
}
