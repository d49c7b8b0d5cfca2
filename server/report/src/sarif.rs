//! SARIF 2.1.0, the format code-scanning services read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use warplens_engine::wire::Diagnostic;

use crate::baseline::line;

/// A rule as SARIF describes it: id, title, page.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'a> {
    /// Id.
    pub id: &'a str,
    /// One line.
    pub title: &'a str,
    /// The whole explanation in Markdown.
    pub text: &'a str,
}

/// One run with these findings. `version` is the tool's; rules that found nothing are described too.
/// `source` gives the text of a file by the name its findings carry, to turn byte columns into characters.
pub fn log<'a>(
    diagnostics: &[Diagnostic],
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
                "help": {"text": rule.text, "markdown": rule.text},
            })
        })
        .collect();
    let mut alike: BTreeMap<(&str, &str, String), u64> = BTreeMap::new();
    let results: Vec<Value> = diagnostics
        .iter()
        .map(|diagnostic| {
            let mut result = result(diagnostic, rules, source(&diagnostic.file));
            let line = line(diagnostic, source);
            let key = (diagnostic.file.as_str(), diagnostic.rule.as_str(), line);
            let print = fingerprint(&key);
            let before = alike.entry(key).or_default();
            result["partialFingerprints"] =
                json!({"warplensLine/v1": format!("{print:016x}:{before}")});
            *before += 1;
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

/// A number by which a service knows a finding again after its line has moved: FNV-1a, which is the same on every machine
/// and in every version, of its file, its rule and its line's text.
fn fingerprint((file, rule, line): &(&str, &str, String)) -> u64 {
    let bytes = [*file, *rule, line.as_str()]
        .into_iter()
        .flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
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
        "message": {"text": diagnostic.message},
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
        };
        let rules = [Rule {
            id: "mem/aos",
            title: "t",
            text: "x",
        }];
        let text = "\n\n/*ä*/ x = a[i];\n";
        let log = log(&[diagnostic], &rules, "0.1.0", &|_| Some(text));
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["level"], "note");
        assert_eq!(result["ruleIndex"], 0);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "dir/a%20b.cu");
        assert_eq!(place["region"]["startLine"], 3);
        // Byte 5 of the line stands after `/*ä`, which is three characters.
        assert_eq!(place["region"]["startColumn"], 4);
        assert_eq!(
            log["runs"][0]["tool"]["driver"]["rules"][0]["id"],
            "mem/aos"
        );
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
            };
            let log = log(&[diagnostic(line), diagnostic(line)], &[], "0", &|_| {
                Some(text)
            });
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
