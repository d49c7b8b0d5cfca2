//! SARIF 2.1.0, the format code-scanning services read.

use std::fmt::Write as _;

use serde_json::{Value, json};
use warplens_db::PlacedFix;
use warplens_db::wire::Diagnostic;

use crate::fingerprint::fingerprints;

/// A rule as SARIF describes it: id, title, page and the page's URL.
#[derive(Debug, Clone)]
pub struct Rule<'a> {
    /// Id.
    pub id: &'a str,
    /// One line.
    pub title: &'a str,
    /// The whole explanation in Markdown.
    pub text: &'a str,
    /// Its URL.
    pub uri: String,
}

/// One run with these findings. `version` is the tool's; rules that found nothing are described too.
/// `source` gives the text of a file by the name its findings carry, to turn byte columns into characters.
/// `fixes` are the edits that answer each finding, in the findings' order; findings past its end have none.
pub fn log<'a>(
    diagnostics: &[Diagnostic],
    fixes: &[Vec<PlacedFix>],
    rules: &[Rule<'_>],
    version: &str,
    source: &(dyn Fn(&str) -> Option<&'a str> + 'a),
) -> Value {
    let described: Vec<Value> = rules
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "helpUri": rule.uri,
                "help": {"text": rule.text, "markdown": rule.text},
                "properties": {"tags": ["performance", rule.id.split('/').next()]},
            })
        })
        .collect();
    let prints = fingerprints(diagnostics, source);
    let results: Vec<Value> = diagnostics
        .iter()
        .enumerate()
        .map(|(index, diagnostic)| {
            let text = source(&diagnostic.file);
            let mut result = result(diagnostic, rules, text);
            if let (Some(found), Some(text)) = (fixes.get(index), text)
                && !found.is_empty()
            {
                let fixes = found.iter().map(|one| fix(one, &diagnostic.file, text));
                result["fixes"] = fixes.collect();
            }
            result["partialFingerprints"] = json!({"warplensLine/v1": prints[index]});
            result
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "warplens",
                "semanticVersion": version,
                "informationUri": "https://github.com/warplens/warplens",
                "rules": described,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// The 1-based character column of a 1-based byte column.
fn character(source: Option<&str>, line: u32, column: u32) -> usize {
    let bytes = (column as usize).saturating_sub(1);
    let text = source.and_then(|source| source.lines().nth((line as usize).saturating_sub(1)));
    match text {
        Some(text) => {
            let inside = text
                .char_indices()
                .take_while(|(offset, _)| *offset < bytes)
                .count();
            inside + 1 + bytes.saturating_sub(text.len())
        }
        None => bytes + 1,
    }
}

fn result(diagnostic: &Diagnostic, rules: &[Rule<'_>], source: Option<&str>) -> Value {
    let level = match diagnostic.severity {
        "error" => "error",
        "warning" => "warning",
        _ => "note",
    };
    let mut result = json!({
        "ruleId": diagnostic.rule,
        "level": level,
        "message": {"text": diagnostic.whole()},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&diagnostic.file)},
            "region": {
                "startLine": diagnostic.line,
                "startColumn": character(source, diagnostic.line, diagnostic.column),
                "endLine": diagnostic.end_line,
                "endColumn": character(source, diagnostic.end_line, diagnostic.end_column),
            },
        }}],
        "properties": {"gain": diagnostic.gain},
    });
    if let Some(index) = rules.iter().position(|rule| rule.id == diagnostic.rule) {
        result["ruleIndex"] = json!(index);
    }
    result
}

/// One proposed change: what it does, what it gains, and each stretch of the file that it replaces.
fn fix(fix: &PlacedFix, file: &str, text: &str) -> Value {
    let replacements: Vec<Value> = fix
        .edits
        .iter()
        .map(|(bytes, inserted)| {
            let (start_line, start_column) = position(text, bytes.start);
            let (end_line, end_column) = position(text, bytes.end);
            json!({
                "deletedRegion": {
                    "startLine": start_line,
                    "startColumn": start_column,
                    "endLine": end_line,
                    "endColumn": end_column,
                },
                "insertedContent": {"text": inserted},
            })
        })
        .collect();
    json!({
        "description": {"text": fix.title},
        "artifactChanges": [{
            "artifactLocation": {"uri": uri(file)},
            "replacements": replacements,
        }],
        "properties": {"gain": fix.gain},
    })
}

/// The 1-based line and character column of a byte.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// A path as a URI reference: relative stays relative, what is not allowed is percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(byte as char);
            }
            b'\\' => out.push('/'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_becomes_a_result_with_its_rule() {
        let diagnostic = Diagnostic {
            rule: "mem/aos".to_owned(),
            severity: "hint",
            file: "dir/a b.cu".to_owned(),
            line: 3,
            column: 5,
            end_line: 3,
            end_column: 9,
            message: "m".to_owned(),
            gain: 1.5,
            ..Diagnostic::default()
        };
        let rules = [Rule {
            id: "mem/aos",
            title: "t",
            text: "x",
            uri: "https://example.org/mem-aos.md".to_owned(),
        }];
        let text = "\n\n/*ä*/ x = a[i];\n";
        let swap = PlacedFix {
            title: "Swap, kernel 1.5x faster (predicted)".to_owned(),
            rule: "mem/aos",
            edits: vec![(3..13, String::new()), (16..16, "\n".to_owned())],
            preferred: true,
            complete: true,
            gain: 1.5,
        };
        let fixes = [vec![swap]];
        let log = log(&[diagnostic], &fixes, &rules, "0.1.0", &|_| Some(text));
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["level"], "note");
        assert_eq!(result["ruleIndex"], 0);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "dir/a%20b.cu");
        assert_eq!(place["region"]["startLine"], 3);
        // Byte 5 of the line follows `/*ä`, which is three characters.
        assert_eq!(place["region"]["startColumn"], 4);
        let fix = &result["fixes"][0];
        assert_eq!(
            fix["description"]["text"],
            "Swap, kernel 1.5x faster (predicted)"
        );
        let change = &fix["artifactChanges"][0];
        assert_eq!(change["artifactLocation"]["uri"], "dir/a%20b.cu");
        // Byte 13 follows `ä`, which is two bytes and one character.
        let (first, second) = (&change["replacements"][0], &change["replacements"][1]);
        assert_eq!(
            first["deletedRegion"],
            json!({"startLine": 3, "startColumn": 2, "endLine": 3, "endColumn": 11})
        );
        assert_eq!(first["insertedContent"]["text"], "");
        assert_eq!(
            second["deletedRegion"]["startColumn"],
            second["deletedRegion"]["endColumn"]
        );
        let rule = &log["runs"][0]["tool"]["driver"]["rules"][0];
        assert_eq!(rule["id"], "mem/aos");
        assert_eq!(rule["helpUri"], "https://example.org/mem-aos.md");
    }

    #[test]
    fn a_finding_keeps_its_fingerprint_when_its_line_moves() {
        let at = |line: u32, text: &'static str| {
            let diagnostic = |line| Diagnostic {
                rule: "mem/aos".to_owned(),
                severity: "hint",
                file: "k.cu".to_owned(),
                line,
                column: 1,
                end_line: line,
                end_column: 2,
                message: "m".to_owned(),
                gain: 1.0,
                ..Diagnostic::default()
            };
            let log = log(
                &[diagnostic(line), diagnostic(line)],
                &[],
                &[],
                "0",
                &|_| Some(text),
            );
            let results = log["runs"][0]["results"].as_array().unwrap().clone();
            let prints = results
                .iter()
                .map(|one| one["partialFingerprints"].to_string());
            prints.collect::<Vec<_>>()
        };
        let before = at(1, "x = a[i];\n");
        assert_eq!(before, at(3, "\n\n  x =  a[i];\n"));
        assert_ne!(before[0], before[1]);
        assert_ne!(before[0], at(1, "x = b[i];\n")[0]);
    }
}
