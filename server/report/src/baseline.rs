//! Findings that a team lives with for now, so that only new ones are told.
//!
//! A finding is known again by its file, its rule and the text of its line: neither by the line's number, which moves with
//! every edit above it, nor by its message, whose figures change with the GPU and with each version of the models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warplens_db::wire::Diagnostic;

/// The version of the file's form.
pub const SCHEMA: &str = "warplens.baseline/1";

/// The text of a file by the name that findings call it.
pub type Texts<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

/// `warplens check --write-baseline FILE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// `warplens.baseline/1`.
    schema: String,
    /// In order of file, rule and line.
    findings: Vec<KnownFinding>,
}

/// Findings of a baseline that match as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownFinding {
    /// Path from the baseline's folder.
    file: String,
    /// Rule id.
    rule: String,
    /// The source line, without indentation.
    line: String,
    /// How many.
    count: u64,
}

/// What identifies a finding: file, rule, line.
type Key = (String, String, String);

impl Baseline {
    /// What these findings make. `name` is how the baseline calls a finding's file.
    pub fn of(
        diagnostics: &[Diagnostic],
        name: &dyn Fn(&Diagnostic) -> String,
        texts: &Texts<'_>,
    ) -> Baseline {
        let mut counts: BTreeMap<Key, u64> = BTreeMap::new();
        for diagnostic in diagnostics {
            if let Some(key) = key(diagnostic, name, texts) {
                *counts.entry(key).or_default() += 1;
            }
        }
        let known = |((file, rule, line), count)| KnownFinding {
            file,
            rule,
            line,
            count,
        };
        Baseline {
            schema: SCHEMA.to_owned(),
            findings: counts.into_iter().map(known).collect(),
        }
    }

    /// Reads one back.
    ///
    /// # Errors
    /// One line: it is not JSON of this form, or of another version.
    pub fn read(text: &str) -> Result<Baseline, String> {
        let read: Result<Baseline, _> = serde_json::from_str(text);
        let baseline = read.map_err(|error| error.to_string())?;
        if baseline.schema != SCHEMA {
            return Err(format!(
                "its schema is \"{}\", not \"{SCHEMA}\"",
                baseline.schema
            ));
        }
        Ok(baseline)
    }

    /// As it is written.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// How many findings it holds.
    pub fn len(&self) -> u64 {
        self.findings.iter().map(|known| known.count).sum()
    }

    /// True without findings.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Takes away the findings that it knows, of those that look alike the first ones; returns how many of its own are not
    /// there any more.
    pub fn subtract(
        &self,
        diagnostics: &mut Vec<Diagnostic>,
        name: &dyn Fn(&Diagnostic) -> String,
        texts: &Texts<'_>,
    ) -> u64 {
        let of = |known: &KnownFinding| {
            let key = (known.file.clone(), known.rule.clone(), known.line.clone());
            (key, known.count)
        };
        let mut left: BTreeMap<Key, u64> = self.findings.iter().map(of).collect();
        diagnostics.retain(|diagnostic| {
            let known = key(diagnostic, name, texts).and_then(|key| left.get_mut(&key));
            match known {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            }
        });
        left.values().sum()
    }
}

/// `None` for problems of the run rather than of a kernel: a baseline must not hide those.
fn key(
    diagnostic: &Diagnostic,
    name: &dyn Fn(&Diagnostic) -> String,
    texts: &Texts<'_>,
) -> Option<Key> {
    let category = diagnostic.rule.split('/').next().unwrap_or_default();
    if matches!(category, "config" | "input" | "internal") {
        return None;
    }
    Some((
        name(diagnostic),
        diagnostic.rule.clone(),
        line(diagnostic, texts),
    ))
}

/// The text of a finding's line, its white space folded.
pub fn line(diagnostic: &Diagnostic, texts: &Texts<'_>) -> String {
    let at = (diagnostic.line as usize).saturating_sub(1);
    let text = texts(&diagnostic.file).and_then(|text| text.lines().nth(at));
    let words: Vec<&str> = text.unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a[i] = 1;\nb[i] = 2;\n  a[i]  = 1;\n";

    fn finding(rule: &str, line: u32) -> Diagnostic {
        Diagnostic {
            rule: rule.to_owned(),
            severity: "warning",
            file: "k.cu".to_owned(),
            line,
            column: 1,
            end_line: line,
            end_column: 5,
            message: "32 sectors".to_owned(),
            gain: 2.0,
            ..Diagnostic::default()
        }
    }

    fn of(findings: &[Diagnostic]) -> Baseline {
        Baseline::of(findings, &|one| one.file.clone(), &|_| Some(TEXT))
    }

    fn left(baseline: &Baseline, mut findings: Vec<Diagnostic>, text: &str) -> (Vec<u32>, u64) {
        let gone = baseline.subtract(&mut findings, &|one| one.file.clone(), &|_| Some(text));
        (findings.iter().map(|one| one.line).collect(), gone)
    }

    #[test]
    fn a_finding_is_known_wherever_its_line_moves_and_a_second_one_is_new() {
        let baseline = of(&[finding("mem/strided", 1)]);
        let moved = "\n\n\ta[i] = 1;\n\na[i] = 1;";
        let found = vec![finding("mem/strided", 3), finding("mem/strided", 5)];
        assert_eq!(left(&baseline, found, moved), (vec![5], 0));
    }

    #[test]
    fn another_rule_or_another_line_is_new_and_what_is_gone_is_counted() {
        let baseline = of(&[finding("mem/strided", 1), finding("mem/strided", 3)]);
        assert_eq!(baseline.len(), 2);
        let found = vec![finding("mem/aos", 1), finding("mem/strided", 2)];
        assert_eq!(left(&baseline, found, TEXT), (vec![1, 2], 2));
    }

    #[test]
    fn what_is_wrong_with_the_run_is_never_known() {
        let baseline = of(&[finding("input/unreadable", 1), finding("config/invalid", 1)]);
        assert!(baseline.is_empty());
    }

    #[test]
    fn it_reads_what_it_writes_and_nothing_else() {
        let baseline = of(&[finding("mem/strided", 1)]);
        assert_eq!(Baseline::read(&baseline.text()).unwrap(), baseline);
        for wrong in [
            "",
            "[]",
            "{\"schema\":\"warplens.baseline/9\",\"findings\":[]}",
        ] {
            assert!(Baseline::read(wrong).is_err(), "{wrong}");
        }
    }
}
