//! How findings and titles of actions speak, and how loud: a headline with what it gains and what to do, then lines with the
//! cause and what it depends on.

use warplens_facts::facts::{Access, Assumed, Certainty, Source, SourceFacts, UNKNOWN};
use warplens_syntax::words_in;

use crate::{Finding, Severity};

/// Predicted gain below which most rules find nothing.
pub(crate) const WORTH_KNOWING: f64 = 1.02;
/// Predicted gain from which a finding is a warning, where it is certain.
pub(crate) const COSTLY: f64 = 1.10;
/// Gain from which a profiler shows it; a finding with less is a hint.
pub const VISIBLE: f64 = 1.05;
/// Letters of a headline, at most.
pub(crate) const HEADLINE: usize = 100;
/// Letters of a name in a headline, at most; and where the figure would not fit otherwise.
const NAME: usize = 24;
const SHORTEST_NAME: usize = 12;
/// More assumptions than this are cut short: a message is one line.
const ASSUMPTIONS_SHOWN: usize = 3;

/// A figure: whole where it is whole or large, else one decimal.
pub(crate) fn number(value: f64) -> String {
    if (value - value.round()).abs() < 0.05 || value >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// ` on average` behind a count of whole things that is no whole number: no one of them has it.
pub(crate) fn on_average(value: f64) -> &'static str {
    if number(value).contains('.') {
        " on average"
    } else {
        ""
    }
}

/// `an 8-way`, `a 32-way`: a number that counts the ways of a conflict, with its article.
pub(crate) fn a_number(value: f64) -> String {
    let figure = number(value);
    let vowel = figure.starts_with('8') || matches!(figure.as_str(), "11" | "18");
    format!("{} {figure}", if vowel { "an" } else { "a" })
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

/// What removing the cause, or an edit, does to the time of the whole kernel: the one form of a gain.
pub(crate) fn faster(gain: f64) -> String {
    if gain < VISIBLE {
        "no visible gain".to_owned()
    } else {
        format!("{} faster", times(gain))
    }
}

/// The same as a clause of a finding.
pub(crate) use self::faster as gain;

/// `1.33x`, `14.2x`, `120x`.
pub fn times(gain: f64) -> String {
    let places = if gain < 9.995 {
        2
    } else {
        usize::from(gain < 99.95)
    };
    format!("{gain:.places$}x")
}

/// A name that is quoted in a headline, its middle left out where it is long.
pub(crate) fn short(name: &str) -> String {
    shortened(name, NAME)
}

/// The array that an access goes to, as a headline quotes it: the access itself where it is not known which array that is.
pub(crate) fn array_of(access: &Access) -> String {
    short(if access.array.is_empty() {
        &access.text
    } else {
        &access.array
    })
}

/// A name of at most that many letters, its middle left out where it is longer.
fn shortened(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let (head, tail) = (most / 2, most.saturating_sub(most / 2 + 1));
    let tail = &letters[letters.len() - tail..];
    letters[..head].iter().chain(&['…']).chain(tail).collect()
}

/// Letters of an action's title, at most.
pub(crate) const TITLE: usize = 100;

/// An action's title in at most that many letters. It begins with what is done and ends with what that gains and what is left to
/// do: its middle goes, after long names were shortened. What code marks enclose stays whole or goes.
pub(crate) fn titled(title: &str) -> String {
    if title.chars().count() <= TITLE {
        return title.to_owned();
    }
    let pieces = title.split('`').enumerate();
    let pieces = pieces.map(|(at, piece)| match at % 2 {
        0 => piece.to_owned(),
        _ => short(piece),
    });
    let title = pieces.collect::<Vec<_>>().join("`");
    let letters = title.chars().count();
    if letters <= TITLE {
        return title;
    }
    // Blanks outside of code marks, and those of them behind a clause: the end begins with a whole one.
    let letters: Vec<char> = title.chars().collect();
    let mut code = false;
    let mut blanks = Vec::new();
    for (at, letter) in letters.iter().enumerate() {
        code ^= *letter == '`';
        if *letter == ' ' && !code {
            blanks.push(at);
        }
    }
    let gap: Vec<char> = " … ".chars().collect();
    let room = TITLE - gap.len();
    let least = blanks.iter().rfind(|at| **at <= room / 3);
    let least = least.copied().unwrap_or_default();
    let behind_clause = |at: &&usize| letters[..**at].ends_with(&[',']);
    let tail = |at: &&usize| least + letters.len() - **at <= room + 1;
    let ends = || blanks.iter().filter(tail);
    let Some(end) = ends().find(behind_clause).or_else(|| ends().next()) else {
        return letters[..TITLE - 1].iter().chain(&['…']).collect();
    };
    let end = &letters[end + 1..];
    let head = blanks.iter().rfind(|at| **at + end.len() <= room);
    let head = &letters[..head.copied().unwrap_or(least)];
    head.iter().chain(&gap).chain(end).collect()
}

/// Makes the first clause of a finding the headline, what it gains before what to do, and leaves the others as lines below.
/// What does not fit is told in full below.
pub(crate) fn headed(finding: &mut Finding) {
    let told = gain(finding.gain);
    let gains = finding.message.split('\n').any(|clause| clause == told);
    let mut clauses = finding.message.split('\n').filter(|clause| *clause != told);
    let what = clauses.next().unwrap_or_default();
    let (before, after) = match gains {
        true if finding.gain >= VISIBLE => (format!("{}: ", times(finding.gain)), ""),
        true => (String::new(), "; no visible gain"),
        false => (String::new(), ""),
    };
    let room = HEADLINE.saturating_sub(before.chars().count() + after.chars().count());
    let fitted = fitted(&with_short_names(what, room), room);
    let cut = (fitted != what && !is_told(what, &fitted, clauses.clone())).then_some(what);
    let mut lines = vec![format!("{before}{fitted}{after}")];
    lines.extend(cut.into_iter().chain(clauses).map(str::to_owned));
    finding.message = lines.join("\n");
}

/// `text` with the names in code marks shortened as far as it takes to fit into `room` letters, where that is enough.
fn with_short_names(text: &str, room: usize) -> String {
    let fits = |text: &str| text.chars().count() <= room;
    let tries = (SHORTEST_NAME..NAME).rev().map(|most| {
        let pieces = text.split('`').enumerate();
        let pieces = pieces.map(|(at, piece)| match at % 2 {
            0 => piece.to_owned(),
            _ => shortened(piece, most),
        });
        pieces.collect::<Vec<_>>().join("`")
    });
    let mut tries = tries.skip_while(|shorter| !fits(shorter));
    let shorter = if fits(text) { None } else { tries.next() };
    shorter.unwrap_or_else(|| text.to_owned())
}

/// True where the clauses below tell what a headline has no room for.
fn is_told<'a>(what: &str, fitted: &str, clauses: impl Iterator<Item = &'a str>) -> bool {
    let below: Vec<&str> = clauses.flat_map(words).collect();
    let mut left = words(fitted).collect::<Vec<_>>();
    let lost = words(what).filter(|word| {
        let at = left.iter().position(|kept| kept == word);
        at.map(|at| left.swap_remove(at)).is_none()
    });
    let mut lost = lost.peekable();
    lost.peek().is_none() || lost.all(|word| below.contains(&word))
}

/// The words and numbers of a clause.
fn words(clause: &str) -> impl Iterator<Item = &str> {
    let parts = clause.split(|letter: char| !(letter.is_alphanumeric() || "_.%".contains(letter)));
    parts.filter(|part| !part.is_empty())
}

/// `text` in at most `room` letters: without its last clauses, else cut at a word.
fn fitted(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let end = text
        .char_indices()
        .nth(room.saturating_sub(1))
        .map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    // Not within a name in code marks.
    let whole = |cut: &&str| cut.matches('`').count().is_multiple_of(2) && 2 * cut.len() > end;
    let at_clause = [": ", "; ", ", ", " ("]
        .iter()
        .filter_map(|mark| head.rfind(mark))
        .map(|at| &head[..at])
        .filter(whole)
        .max_by_key(|cut| cut.len());
    if let Some(cut) = at_clause {
        let open = cut.matches('(').count() > cut.matches(')').count();
        return if open {
            cut[..cut.rfind(" (").unwrap_or(cut.len())].to_owned()
        } else {
            cut.to_owned()
        };
    }
    let cut = head.rfind(' ').map_or(head, |at| &head[..at]);
    format!("{cut}…")
}

/// `, occupancy 100 % → 88 %`, where it changes.
pub(crate) fn occupancy(before: f64, after: f64) -> String {
    let percent = |fraction: f64| (fraction * 100.0).round();
    if percent(before) == percent(after) {
        String::new()
    } else {
        format!(", occupancy {} % → {} %", percent(before), percent(after))
    }
}

/// Loudness of a performance finding: never an error, a warning only where it is certain. What rests on a guess of the launch or
/// of a value, which the message states, is a hint; what rests on what the compiler is predicted to do is no more than information.
pub(crate) fn severity(gain: f64, certainty: Certainty, stated: bool) -> Severity {
    match certainty {
        _ if gain < VISIBLE => Severity::Hint,
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

/// Clauses as the lines of a message: what to do, then why, then what it depends on.
pub(crate) fn sentence(clauses: impl IntoIterator<Item = Option<String>>) -> String {
    clauses.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kernel, column_walk};

    #[test]
    fn severity_follows_gain_and_certainty() {
        assert_eq!(severity(1.049, Certainty::Exact, true), Severity::Hint);
        assert_eq!(
            severity(1.05, Certainty::Exact, true),
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
        assert_eq!(a_number(8.0), "an 8");
        assert_eq!(a_number(32.0), "a 32");
        assert_eq!(number(29_826_161.8), "29826162");
        assert_eq!(gain(1.0), "no visible gain");
        assert_eq!(gain(1.049), "no visible gain");
        assert_eq!(gain(1.05), "1.05x faster");
        assert_eq!(gain(2.938), "2.94x faster");
        assert_eq!(gain(14.23), "14.2x faster");
        assert_eq!(gain(120.4), "120x faster");
        assert_eq!(extents([32, 8, 1]), "32x8");
        assert_eq!(extents([8, 8, 4]), "8x8x4");
    }

    #[test]
    fn a_long_title_loses_its_middle() {
        let fits = "Pad `tile` to [32][33]: 32 passes → 1, 1.33x faster";
        assert_eq!(titled(fits), fits);
        let name = "a_name_that_is_longer_than_the_headline_of_a_finding_has_room_for";
        let named = titled(&format!(
            "Load `{name}` once, before the loop, {}",
            faster(1.4)
        ));
        assert!(named.contains('…') && named.ends_with("` once, before the loop, 1.40x faster"));
        let long = format!(
            "Stage `{name}` through a tile of 32x32 in shared memory: 32 sectors → 4, occupancy 100 % → 75 %, 1.20x faster \
             (launch not seen: blocks must be 32x32)"
        );
        let cut = titled(&long);
        assert!(cut.chars().count() <= TITLE, "{cut}");
        assert!(
            cut.starts_with("Stage `a_name") && cut.matches('`').count() == 2,
            "{cut}"
        );
        assert!(
            cut.contains(" … ")
                && cut.ends_with(" 1.20x faster (launch not seen: blocks must be 32x32)"),
            "{cut}"
        );
        // Nothing to cut at.
        assert!(titled(&"x".repeat(300)).chars().count() <= TITLE);
        assert!(
            titled(&format!("Move `{}` out", "a b ".repeat(60)))
                .chars()
                .count()
                <= TITLE
        );
    }

    #[test]
    fn what_a_headline_has_no_room_for_is_told_once() {
        let message = |clauses: &[&str]| {
            let mut finding = Kernel::new()
                .access(column_walk(5))
                .findings(|_| 1.0)
                .remove(0);
            finding.message = clauses.join("\n");
            headed(&mut finding);
            finding.message
        };
        let long = "store each of the many fields that a structure of the array has as an array \
                    of its own so that warps read less (32 sectors per request, ideal 4)";
        let below = "32 sectors per request (ideal 4): `p[i].mass` is 32 bytes apart";
        let told = message(&[long, below]);
        assert!(told.ends_with(&format!("\n{long}\n{below}")), "{told}");
        let words = long.rsplit_once(" (").map_or("", |(words, _)| words);
        let below = format!("{words}: 32 sectors per request, ideal 4");
        let told = message(&[long, &below]);
        assert_eq!(told.matches("fields").count(), 2, "{told}");
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
    fn a_headline_has_what_it_gains_first_and_fits() {
        let told = |gain: f64, message: &str| {
            let mut finding = Kernel::new()
                .access(column_walk(3))
                .findings(|_| 2.0)
                .remove(0);
            (finding.gain, finding.message) = (gain, message.to_owned());
            headed(&mut finding);
            finding.message
        };
        assert_eq!(
            told(1.333, "pad `tile` (32 passes)\n1.33x faster\nwhy"),
            "1.33x: pad `tile` (32 passes)\nwhy"
        );
        assert_eq!(
            told(1.01, "pad `tile` (32 passes)\nno visible gain"),
            "pad `tile` (32 passes); no visible gain"
        );
        assert_eq!(told(1.0, "the launch fails"), "the launch fails");
        let long = format!(
            "sum over the warp before adding to `{}` (32 lanes, ideal 1)",
            "a + ".repeat(30)
        );
        for text in [long, "word ".repeat(40), "x".repeat(300), "é, ".repeat(80)] {
            let message = told(2.0, &format!("{text}\n2.00x faster"));
            let (headline, rest) = message.split_once('\n').expect("the whole below");
            assert!(headline.chars().count() <= HEADLINE, "{headline}");
            assert_eq!(
                headline.matches('(').count(),
                headline.matches(')').count(),
                "{headline}"
            );
            assert!(rest.contains(text.trim()), "{rest}");
        }
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(short("tile"), "tile");
        assert_eq!(short(&"abcdefgh".repeat(5)).chars().count(), NAME);
    }

    #[test]
    fn titles_read_well() {
        assert_eq!(counted(32.0, "pass", "passes"), "32 passes");
        assert_eq!(counted(1.0, "pass", "passes"), "1 pass");
        assert_eq!(counted(8.5, "sector", "sectors"), "8.5 sectors");
        assert_eq!(occupancy(1.0, 0.875), ", occupancy 100 % → 88 %");
        assert_eq!(occupancy(1.0, 0.999), "");
    }
}
