//! Findings of a whole tree as a list to read: what repeats is told of its first, what costs most comes first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use warplens_db::wire::{Diagnostic, Place};

/// What repeats have in common: the rule, and the message without its numbers.
type Key = (String, String);

/// Marks what repeats another finding: of those that are alike the most severe, and of these the costliest, is the one that the others
/// name. `text` is a file's text, where it is known.
///
/// A finding repeats another where rule and message are the same but for numbers (a twin that is launched otherwise may gain less, and
/// be information where the other is a warning), and
///
/// - so is the line of source: a copy of a kernel, an instantiation, the text of a kernel once as a file and once as a string;
/// - or the kernel: copies of a statement, for another word each;
/// - or the file, of what is told of a whole kernel or its launch: the variants of a kernel.
///
/// Hints are left as they are.
pub fn mark<'a>(diagnostics: &mut [Diagnostic], text: &dyn Fn(&str) -> Option<&'a str>) {
    let mut alike: HashMap<Key, Vec<(usize, String)>> = HashMap::new();
    for (at, diagnostic) in diagnostics.iter().enumerate() {
        let line = text(&diagnostic.file)
            .and_then(|text| text.lines().nth(diagnostic.line.saturating_sub(1) as usize));
        let Some(line) = line.filter(|_| diagnostic.severity != "hint") else {
            continue;
        };
        let key = (
            diagnostic.rule.clone(),
            without_numbers(&diagnostic.message),
        );
        alike.entry(key).or_default().push((at, code(line)));
    }
    let groups: Vec<Vec<usize>> = alike
        .into_values()
        .flat_map(|alike| of_one_cause(diagnostics, alike))
        .collect();
    for group in groups {
        let costliest = group.iter().copied().max_by(|a, b| {
            let one = |at: &usize| &diagnostics[*at];
            severity(one(a))
                .cmp(&severity(one(b)))
                .then(one(a).gain.total_cmp(&one(b).gain))
                .then(b.cmp(a))
        });
        let Some(first) = costliest else {
            continue;
        };
        let place = place(&diagnostics[first]);
        for at in group {
            if at != first {
                diagnostics[at].same_as = Some(place.clone());
            }
        }
    }
}

/// Findings that say the same, apart where their causes are.
fn of_one_cause(diagnostics: &[Diagnostic], alike: Vec<(usize, String)>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<(usize, String)>> = Vec::new();
    for (at, line) in alike {
        let one = &diagnostics[at];
        let (category, _) = one.rule.split_once('/').unwrap_or((&one.rule, ""));
        let of_kernel = matches!(category, "launch" | "local" | "occ" | "reg");
        let same = |(other, its_line): &(usize, String)| {
            let other = &diagnostics[*other];
            let file = other.file == one.file;
            *its_line == line
                || file && (of_kernel || one.kernel.is_some() && other.kernel == one.kernel)
        };
        match groups.iter_mut().find(|group| group.iter().any(same)) {
            Some(group) => group.push((at, line)),
            None => groups.push(vec![(at, line)]),
        }
    }
    let places = |group: Vec<(usize, String)>| group.into_iter().map(|(at, _)| at).collect();
    groups.into_iter().map(places).collect()
}

/// A line of source without white space, and without the quotes of a string that holds it.
fn code(line: &str) -> String {
    let mut line = line.trim().trim_end_matches('\\').trim_end();
    if let Some(inner) = line.strip_prefix('"') {
        line = inner.trim_end_matches(';').trim_end_matches('"');
        line = line.trim_end_matches("\\n").trim_end_matches("\\t");
    }
    line.split_whitespace().collect()
}

/// The findings in the order in which they are read, each with those that repeat it: errors, then by gain; tests behind what
/// they test, hints last.
pub fn ranked(diagnostics: &[Diagnostic]) -> Vec<(&Diagnostic, Vec<&Diagnostic>)> {
    let own = diagnostics.iter().filter(|one| one.same_as.is_none());
    let mut ranked: Vec<(&Diagnostic, Vec<&Diagnostic>)> = own
        .map(|own| {
            let own_place = place(own);
            let repeats = diagnostics.iter().filter(|other| {
                other.rule == own.rule && other.same_as.as_ref() == Some(&own_place)
            });
            (own, repeats.collect())
        })
        .collect();
    ranked.sort_by(|(a, _), (b, _)| {
        let rank = |one: &Diagnostic| (one.severity == "hint", is_test(&one.file));
        let error = |one: &Diagnostic| Reverse(one.severity == "error");
        rank(a)
            .cmp(&rank(b))
            .then(error(a).cmp(&error(b)))
            .then(b.gain.total_cmp(&a.gain))
    });
    ranked
}

/// The severities, the mildest first.
const SEVERITIES: [&str; 4] = ["hint", "information", "warning", "error"];

fn severity(diagnostic: &Diagnostic) -> Option<usize> {
    let mut all = SEVERITIES.iter();
    all.position(|name| *name == diagnostic.severity)
}

fn place(diagnostic: &Diagnostic) -> Place {
    Place {
        file: diagnostic.file.clone(),
        line: diagnostic.line,
        column: diagnostic.column,
    }
}

fn without_numbers(message: &str) -> String {
    message
        .chars()
        .filter(|c| !c.is_ascii_digit() && *c != '.')
        .collect()
}

/// True for the file of a test, by its folders and its name.
pub fn is_test(file: &str) -> bool {
    let path = Path::new(file);
    let folders = path.components().rev().skip(1);
    let mut names = folders.map(|part| part.as_os_str().to_string_lossy().to_lowercase());
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    names.any(|name| {
        matches!(
            &*name,
            "test" | "tests" | "testing" | "unittest" | "unittests"
        )
    }) || stem.starts_with("test_")
        || stem.ends_with("_test")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(file: &str, line: u32, severity: &'static str, gain: f64) -> Diagnostic {
        Diagnostic {
            rule: "mem/strided".to_owned(),
            severity,
            file: file.to_owned(),
            line,
            column: 5,
            end_line: line,
            end_column: 9,
            message: format!("{} sectors per request (ideal 4)", gain * 8.0),
            gain,
            ..Diagnostic::default()
        }
    }

    const TEXT: &str = "y = x[2 * i];\n    y = x[2 * i];\ny = x[3 * i];\n";

    #[test]
    fn a_copy_is_told_of_the_costliest() {
        let mut all = vec![
            finding("a.cu", 1, "warning", 1.5),
            finding("b.cu", 2, "warning", 2.0),
            finding("c.cu", 3, "warning", 1.2),
        ];
        mark(&mut all, &|_| Some(TEXT));
        let same: Vec<Option<&str>> = all
            .iter()
            .map(|one| one.same_as.as_ref().map(|place| place.file.as_str()))
            .collect();
        assert_eq!(same, [Some("b.cu"), None, None]);
        let ranked = ranked(&all);
        let told: Vec<_> = ranked
            .iter()
            .map(|(one, repeats)| (one.file.as_str(), repeats.len()))
            .collect();
        assert_eq!(told, [("b.cu", 1), ("c.cu", 0)]);
    }

    #[test]
    fn twins_that_are_launched_otherwise_are_one_and_the_most_severe_is_told() {
        let mut all = vec![
            finding("k-cuda/a.cu", 1, "information", 2.5),
            finding("k-hip/a.cu", 1, "warning", 2.0),
            finding("k-omp/a.cu", 1, "warning", 1.5),
            finding("k-sycl/a.cu", 1, "hint", 3.0),
        ];
        mark(&mut all, &|_| Some(TEXT));
        let told: Vec<_> = ranked(&all)
            .iter()
            .map(|(one, repeats)| (one.file.clone(), repeats.len()))
            .collect();
        let expected = [("k-hip/a.cu", 2), ("k-sycl/a.cu", 0)];
        assert_eq!(told, expected.map(|(file, also)| (file.to_owned(), also)));
    }

    #[test]
    fn a_kernel_and_its_text_in_a_string_are_one() {
        let texts = |file: &str| match file {
            "a.cl" => Some("y = x[2 * i];\n"),
            _ => Some("\"  y = x[2 * i];\\n\"\n"),
        };
        let mut all = vec![
            finding("a.cl", 1, "warning", 1.5),
            finding("a.h", 1, "warning", 1.5),
        ];
        mark(&mut all, &texts);
        assert_eq!(ranked(&all).len(), 1);
    }

    #[test]
    fn copies_of_a_statement_in_one_kernel_are_one_and_those_of_two_are_not() {
        let folded = |kernels: [&str; 2]| {
            let mut all = vec![
                finding("a.cu", 1, "warning", 1.5),
                finding("a.cu", 3, "warning", 1.4),
            ];
            for (one, kernel) in all.iter_mut().zip(kernels) {
                one.kernel = Some(kernel.to_owned());
            }
            mark(&mut all, &|_| Some(TEXT));
            ranked(&all).len()
        };
        assert_eq!((folded(["k", "k"]), folded(["k", "l"])), (1, 2));
    }

    #[test]
    fn what_is_told_of_the_variants_of_a_kernel_is_told_once() {
        let folded = |files: [&str; 2]| {
            let mut all = files.map(|file| finding(file, 1, "warning", 1.5));
            for (one, line) in all.iter_mut().zip([1, 3]) {
                one.rule = "occ/limiter".to_owned();
                one.line = line;
                one.kernel = Some(format!("k{line}"));
            }
            mark(&mut all, &|_| Some(TEXT));
            ranked(&all).len()
        };
        assert_eq!((folded(["a.cu", "a.cu"]), folded(["a.cu", "b.cu"])), (1, 2));
    }

    #[test]
    fn hints_and_lines_that_are_not_known_stay_apart() {
        let apart = |severity: &'static str, text: Option<&'static str>| {
            let mut all = vec![
                finding("a.cu", 1, severity, 1.5),
                finding("b.cu", 1, severity, 1.5),
            ];
            mark(&mut all, &|_| text);
            all.iter().all(|one| one.same_as.is_none())
        };
        assert!(apart("hint", Some(TEXT)));
        assert!(apart("warning", None));
        assert!(!apart("warning", Some(TEXT)));
    }

    #[test]
    fn what_costs_most_comes_first_and_tests_and_hints_last() {
        let all = vec![
            finding("a.cu", 1, "hint", 9.0),
            finding("tests/b.cu", 1, "warning", 8.0),
            finding("c.cu", 3, "information", 1.05),
            finding("d.cu", 1, "warning", 3.0),
            finding("e.cu", 1, "error", 1.0),
        ];
        let order: Vec<&str> = ranked(&all)
            .into_iter()
            .map(|(one, _)| one.file.as_str())
            .collect();
        assert_eq!(order, ["e.cu", "d.cu", "c.cu", "tests/b.cu", "a.cu"]);
    }
}
