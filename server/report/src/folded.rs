//! Findings of a whole tree as a list to read: what repeats is said once, with its other places; what costs most comes first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use warplens_db::wire::{Diagnostic, Place};

/// Folds what repeats and sorts the rest: errors, then by gain, tests behind what they test. `text` is a file's text, where
/// it is known.
///
/// A finding repeats another where rule, severity and message are the same but for numbers, and so is the line of source: a
/// copy of a kernel, an instantiation, the text of a kernel once as a file and once as a string. Hints are left as they are.
pub fn folded<'a>(
    diagnostics: Vec<Diagnostic>,
    text: &dyn Fn(&str) -> Option<&'a str>,
) -> Vec<Diagnostic> {
    let mut kept: Vec<Diagnostic> = Vec::new();
    let mut known: HashMap<(String, &'static str, String, String), usize> = HashMap::new();
    for diagnostic in diagnostics {
        let line = text(&diagnostic.file)
            .and_then(|text| text.lines().nth(diagnostic.line.saturating_sub(1) as usize));
        let Some(line) = line.filter(|_| diagnostic.severity != "hint") else {
            kept.push(diagnostic);
            continue;
        };
        let key = (
            diagnostic.rule.clone(),
            diagnostic.severity,
            without_numbers(&diagnostic.message),
            line.split_whitespace().collect(),
        );
        match known.get(&key) {
            Some(&at) => join(&mut kept[at], diagnostic),
            None => {
                known.insert(key, kept.len());
                kept.push(diagnostic);
            }
        }
    }
    kept.sort_by(|a, b| {
        let rank = |one: &Diagnostic| (one.severity == "hint", is_test(&one.file));
        let error = |one: &Diagnostic| Reverse(one.severity == "error");
        rank(a)
            .cmp(&rank(b))
            .then(error(a).cmp(&error(b)))
            .then(b.gain.total_cmp(&a.gain))
    });
    kept
}

/// The costlier of two stays, with the place of the other.
fn join(kept: &mut Diagnostic, other: Diagnostic) {
    let mut other = other;
    if other.gain > kept.gain {
        std::mem::swap(kept, &mut other);
        kept.also = std::mem::take(&mut other.also);
    }
    kept.also.push(Place {
        file: other.file,
        line: other.line,
        column: other.column,
    });
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
            also: Vec::new(),
        }
    }

    const TEXT: &str = "y = x[2 * i];\n    y = x[2 * i];\ny = x[3 * i];\n";

    #[test]
    fn a_copy_is_said_once_and_the_costlier_stays() {
        let all = vec![
            finding("a.cu", 1, "warning", 1.5),
            finding("b.cu", 2, "warning", 2.0),
            finding("c.cu", 3, "warning", 1.2),
        ];
        let told = folded(all, &|_| Some(TEXT));
        let places: Vec<_> = told
            .iter()
            .map(|one| (one.file.as_str(), one.also.len()))
            .collect();
        assert_eq!(places, [("b.cu", 1), ("c.cu", 0)]);
        assert_eq!(
            (told[0].also[0].file.as_str(), told[0].also[0].line),
            ("a.cu", 1)
        );
    }

    #[test]
    fn hints_and_lines_that_are_not_known_stay_apart() {
        let hints = vec![
            finding("a.cu", 1, "hint", 1.0),
            finding("b.cu", 1, "hint", 1.0),
        ];
        assert_eq!(folded(hints, &|_| Some(TEXT)).len(), 2);
        let unread = vec![
            finding("a.cu", 1, "warning", 1.5),
            finding("b.cu", 1, "warning", 1.5),
        ];
        assert_eq!(folded(unread, &|_| None).len(), 2);
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
        let order: Vec<String> = folded(all, &|_| None)
            .into_iter()
            .map(|one| one.file)
            .collect();
        assert_eq!(order, ["e.cu", "d.cu", "c.cu", "tests/b.cu", "a.cu"]);
    }
}
