//! GitLab's code quality report: findings beside the changed lines of a merge request.

use serde_json::{Value, json};
use warplens_db::wire::Diagnostic;

use crate::baseline::Texts;
use crate::fingerprint::fingerprints;
use crate::style::printable_lines;

/// The report. `texts` gives the text of a file by the name its findings carry.
pub fn code_quality(diagnostics: &[Diagnostic], texts: &Texts<'_>) -> Value {
    let prints = fingerprints(diagnostics, texts);
    diagnostics
        .iter()
        .zip(prints)
        .map(|(diagnostic, fingerprint)| {
            let severity = match diagnostic.severity {
                "error" => "critical",
                "warning" => "major",
                "information" => "minor",
                _ => "info",
            };
            json!({
                "description": printable_lines(&diagnostic.whole()),
                "check_name": diagnostic.rule,
                "fingerprint": fingerprint,
                "severity": severity,
                "location": {
                    // From the repository's top, as GitLab calls files: no `./` before it.
                    "path": diagnostic.file.strip_prefix("./").unwrap_or(&diagnostic.file),
                    "lines": {"begin": diagnostic.line, "end": diagnostic.end_line},
                },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_stands_at_its_lines_under_a_name_of_its_own() {
        let finding = |line| Diagnostic {
            rule: "mem/aos".to_owned(),
            severity: "information",
            file: "./src/k.cu".to_owned(),
            line,
            column: 5,
            end_line: line,
            end_column: 9,
            message: "50 % idle".to_owned(),
            gain: 1.0,
            ..Diagnostic::default()
        };
        let report = code_quality(&[finding(1), finding(2)], &|_| Some("x;\nx;\n"));
        assert_eq!(report[0]["severity"], "minor");
        assert_eq!(report[0]["location"]["path"], "src/k.cu");
        assert_eq!(report[1]["location"]["lines"]["begin"], 2);
        assert_ne!(report[0]["fingerprint"], report[1]["fingerprint"]);
    }
}
