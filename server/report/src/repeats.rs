//! Findings of a whole tree as a list to read: what repeats is told of its first, what costs most comes first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use warplens_db::wire::{Diagnostic, Place};

/// Marks what repeats another finding: the costliest of those that are alike is the one that the others name. `text` is a
/// file's text, where it is known.
///
/// A finding repeats another where rule, severity and message are the same but for numbers, and so is the line of source: a
/// copy of a kernel, an instantiation, the text of a kernel once as a file and once as a string. Hints are left as they are.
pub fn mark<'a>(diagnostics: &mut [Diagnostic], text: &dyn Fn(&str) -> Option<&'a str>) {
    let mut alike: HashMap<(String, &'static str, String, String), Vec<usize>> = HashMap::new();
    for (at, diagnostic) in diagnostics.iter().enumerate() {
        let line = text(&diagnostic.file)
            .and_then(|text| text.lines().nth(diagnostic.line.saturating_sub(1) as usize));
        let Some(line) = line.filter(|_| diagnostic.severity != "hint") else {
            continue;
        };
        let key = (
            diagnostic.rule.clone(),
            diagnostic.severity,
            without_numbers(&diagnostic.message),
            line.split_whitespace().collect(),
        );
        alike.entry(key).or_default().push(at);
    }
    for group in alike.into_values() {
        let costliest = group.iter().copied().max_by(|a, b| {
            let gain = |at: &usize| diagnostics[*at].gain;
            gain(a).total_cmp(&gain(b)).then(b.cmp(a))
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
fn is_test(file: &str) -> bool {
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
