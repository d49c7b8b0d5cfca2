//! Workflow commands that GitHub turns into annotations on the changed lines.

use std::fmt::Write as _;

use warplens_db::wire::Diagnostic;

use crate::style::printable_lines;

/// One `::error` / `::warning` / `::notice` command for each finding.
pub fn annotations(diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let command = match diagnostic.severity {
            "error" => "error",
            "warning" => "warning",
            _ => "notice",
        };
        let _ = writeln!(
            out,
            "::{command} file={},line={},col={},endLine={},endColumn={},title={}::{}",
            property(&diagnostic.file),
            diagnostic.line,
            diagnostic.column,
            diagnostic.end_line,
            diagnostic.end_column,
            property(&diagnostic.rule),
            data(&diagnostic.whole())
        );
    }
    out
}

fn data(text: &str) -> String {
    printable_lines(text)
        .replace('%', "%25")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_to_the_runner_is_escaped() {
        let text = annotations(&[Diagnostic {
            rule: "mem/aos".to_owned(),
            severity: "information",
            file: "a,b.cu".to_owned(),
            line: 3,
            column: 5,
            end_line: 3,
            end_column: 9,
            message: "50 % idle\nnext".to_owned(),
            gain: 1.0,
            ..Diagnostic::default()
        }]);
        assert_eq!(
            text,
            "::notice file=a%2Cb.cu,line=3,col=5,endLine=3,endColumn=9,title=mem/aos::50 %25 idle%0Anext\n"
        );
    }
}
