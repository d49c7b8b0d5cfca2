//! How findings and titles of actions speak, and how loud: the number first, then the cause, then the assumption, on one line.

use warplens_facts::facts::{Access, Assumed, Certainty, Source, SourceFacts, UNKNOWN};
use warplens_syntax::words_in;

use crate::Severity;

/// Predicted gain below which a finding is a hint.
pub(crate) const WORTH_KNOWING: f64 = 1.02;
/// Predicted gain from which a finding is a warning, where it is certain.
pub(crate) const COSTLY: f64 = 1.10;
/// More assumptions than this are cut short: a message is one line.
const ASSUMPTIONS_SHOWN: usize = 3;

/// A figure: whole where it is whole, else one decimal.
pub(crate) fn number(value: f64) -> String {
    if (value - value.round()).abs() < 0.05 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// `32 waits`, `1 wait`.
pub(crate) fn counted(value: f64, one: &str, many: &str) -> String {
    let figure = number(value);
    let unit = if figure == "1" { one } else { many };
    format!("{figure} {unit}")
}

/// A fraction in per cent.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", number(fraction * 100.0))
}

/// What removing the cause does to the whole kernel.
pub(crate) fn gain(gain: f64) -> String {
    if gain < WORTH_KNOWING {
        "under 2 % of the kernel (predicted)".to_owned()
    } else if gain < COSTLY {
        format!("kernel {} faster without (predicted)", percent(gain - 1.0))
    } else if gain < 9.95 {
        format!("kernel {gain:.1}x faster without (predicted)")
    } else {
        format!("kernel {gain:.0}x faster without (predicted)")
    }
}

/// What the whole kernel gains.
pub(crate) fn faster(gain: f64) -> String {
    if gain < 1.01 {
        "kernel time unchanged (predicted)".to_owned()
    } else if gain < 1.095 {
        format!("kernel {:.0} % faster (predicted)", (gain - 1.0) * 100.0)
    } else if gain < 9.95 {
        format!("kernel {gain:.1}x faster (predicted)")
    } else {
        format!("kernel {gain:.0}x faster (predicted)")
    }
}

/// `, occupancy 100 % -> 88 %`, where it changes.
pub(crate) fn occupancy(before: f64, after: f64) -> String {
    let percent = |fraction: f64| (fraction * 100.0).round();
    if percent(before) == percent(after) {
        String::new()
    } else {
        format!(", occupancy {} % -> {} %", percent(before), percent(after))
    }
}

/// Loudness of a performance finding: never an error, a warning only where it is certain. What rests on a guess of the launch or
/// of a value, which the message states, is a hint; what rests on what the compiler is predicted to do is no more than information.
pub(crate) fn severity(gain: f64, certainty: Certainty, stated: bool) -> Severity {
    match certainty {
        _ if gain < WORTH_KNOWING => Severity::Hint,
        Certainty::Assumed if stated => Severity::Hint,
        Certainty::Exact if gain >= COSTLY => Severity::Warning,
        Certainty::Exact | Certainty::Assumed | Certainty::Unknown => Severity::Information,
    }
}

/// Identifiers of an expression.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    words_in(text).filter(|word| !word.starts_with(|first: char| first.is_ascii_digit()))
}

/// `assumes n = 1024, block 256`: the assumptions that the given expressions depend on, or all of the
/// kernel's where none of them is named there. `None` where there is nothing to state.
///
/// The alignment of pointers is assumed everywhere (the contract says so) and is not repeated.
pub(crate) fn assumes(facts: &SourceFacts, expressions: &[&str]) -> Option<String> {
    let values: Vec<_> = facts
        .assumptions
        .iter()
        .filter(|a| {
            !matches!(
                a.symbol,
                Assumed::Block | Assumed::Grid | Assumed::Alignment
            )
        })
        .collect();
    let named: Vec<_> = values
        .iter()
        .copied()
        .filter(|a| {
            expressions
                .iter()
                .any(|text| identifiers(text).any(|id| a.symbol.is_named(id)))
        })
        .collect();
    let block_assumed = facts.launch.block_source.is_assumption();
    let grid_assumed = facts.launch.grid_source.is_assumption();
    // A figure can depend on a value that its own text does not name: a bound of a loop or a guard around it.
    let shown = if named.is_empty() && !block_assumed {
        values
    } else {
        named
    };
    let more = shown.len() > ASSUMPTIONS_SHOWN;
    let mut parts: Vec<String> = shown
        .iter()
        .take(ASSUMPTIONS_SHOWN)
        .map(|a| match a.source.as_str() {
            UNKNOWN => format!("a large {}", a.symbol),
            _ => format!("{} = {}", a.symbol, a.value),
        })
        .collect();
    if more {
        parts.push("…".to_owned());
    }
    if block_assumed {
        parts.push(format!("block {}", extents(facts.launch.block)));
    } else if parts.is_empty() && grid_assumed {
        parts.push(match facts.launch.grid_source {
            Source::Config => format!("grid {}", extents(facts.launch.grid)),
            _ => "many blocks".to_owned(),
        });
    }
    if parts.is_empty() {
        None
    } else {
        Some(format!("assumes {}", parts.join(", ")))
    }
}

/// The last clause about an access's figures: what they depend on, `None` where they are exact without
/// a condition.
pub(crate) fn reservation(facts: &SourceFacts, access: &Access) -> Option<String> {
    match access.certainty {
        Certainty::Exact => conditions(&access.constraints),
        Certainty::Assumed | Certainty::Unknown => {
            let stride = access.stride.as_ref().map_or("", |s| s.text.as_str());
            assumes(facts, &[&access.index, &access.text, stride])
                .or_else(|| access.why.as_ref().map(ToString::to_string))
                .or_else(|| conditions(&access.constraints))
        }
    }
}

/// `holds when n % 32 == 0`.
fn conditions(constraints: &[String]) -> Option<String> {
    if constraints.is_empty() {
        None
    } else {
        Some(format!("holds when {}", constraints.join(" and ")))
    }
}

/// `256`, `32x8`: a launch's extents without trailing ones.
pub(crate) fn extents(size: [u64; 3]) -> String {
    match size {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    }
}

/// Clauses joined to a message.
pub(crate) fn sentence(clauses: impl IntoIterator<Item = Option<String>>) -> String {
    clauses.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kernel, column_walk};

    #[test]
    fn severity_follows_gain_and_certainty() {
        assert_eq!(severity(1.019, Certainty::Exact, true), Severity::Hint);
        assert_eq!(
            severity(1.02, Certainty::Exact, true),
            Severity::Information
        );
        assert_eq!(severity(1.10, Certainty::Exact, false), Severity::Warning);
        assert_eq!(severity(3.0, Certainty::Assumed, true), Severity::Hint);
        assert_eq!(
            severity(3.0, Certainty::Assumed, false),
            Severity::Information
        );
        assert_eq!(
            severity(3.0, Certainty::Unknown, true),
            Severity::Information
        );
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(number(32.0), "32");
        assert_eq!(number(8.5), "8.5");
        assert_eq!(gain(1.0), "under 2 % of the kernel (predicted)");
        assert_eq!(gain(1.05), "kernel 5 % faster without (predicted)");
        assert_eq!(gain(2.94), "kernel 2.9x faster without (predicted)");
        assert_eq!(gain(14.2), "kernel 14x faster without (predicted)");
        assert_eq!(extents([32, 8, 1]), "32x8");
        assert_eq!(extents([8, 8, 4]), "8x8x4");
    }

    #[test]
    fn only_the_assumptions_that_matter_are_named() {
        let kernel = Kernel::new()
            .assume("n", "1024")
            .assume("m", "1024")
            .assume("alignment", "256-byte aligned");
        assert_eq!(
            assumes(&kernel.facts, &["i * n + nm"]).as_deref(),
            Some("assumes n = 1024"),
            "m is no part of nm"
        );
        assert_eq!(
            assumes(&kernel.facts, &["i"]).as_deref(),
            Some("assumes n = 1024, m = 1024"),
            "nothing is named: all are stated"
        );
    }

    #[test]
    fn an_assumed_block_is_named_and_a_given_one_is_not() {
        let mut kernel = Kernel::new()
            .assume("n", "1024")
            .assume("blockDim", "256,1,1");
        assert_eq!(
            assumes(&kernel.facts, &["n"]).as_deref(),
            Some("assumes n = 1024")
        );
        kernel.facts.launch.block_source = Source::Assumed;
        assert_eq!(
            assumes(&kernel.facts, &["n"]).as_deref(),
            Some("assumes n = 1024, block 256")
        );
        assert_eq!(
            assumes(&kernel.facts, &["i"]).as_deref(),
            Some("assumes block 256")
        );
    }

    #[test]
    fn exact_figures_have_no_reservation_but_their_conditions() {
        let kernel = Kernel::new().assume("n", "1024");
        let mut access = column_walk(3);
        assert_eq!(reservation(&kernel.facts, &access), None);
        access.constraints = vec!["n % 32 == 0".to_owned()];
        assert_eq!(
            reservation(&kernel.facts, &access).as_deref(),
            Some("holds when n % 32 == 0")
        );
    }

    #[test]
    fn titles_read_well() {
        assert_eq!(faster(1.004), "kernel time unchanged (predicted)");
        assert_eq!(faster(1.05), "kernel 5 % faster (predicted)");
        assert_eq!(faster(1.094), "kernel 9 % faster (predicted)");
        assert_eq!(faster(1.096), "kernel 1.1x faster (predicted)");
        assert_eq!(faster(2.94), "kernel 2.9x faster (predicted)");
        assert_eq!(faster(14.2), "kernel 14x faster (predicted)");
        assert_eq!(counted(32.0, "pass", "passes"), "32 passes");
        assert_eq!(counted(1.0, "pass", "passes"), "1 pass");
        assert_eq!(counted(8.5, "sector", "sectors"), "8.5 sectors");
        assert_eq!(occupancy(1.0, 0.875), ", occupancy 100 % -> 88 %");
        assert_eq!(occupancy(1.0, 0.999), "");
    }
}
