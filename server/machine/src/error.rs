//! What is wrong with a profile file, and where.

use std::ops::Range;

/// Why a profile file was refused.
///
/// Shown as `file:line:column: key: what would be right`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {}{problem}", position(*.line, *.column), prefix(.key.as_deref()))]
pub struct ProfileError {
    /// The file as it was named by the caller.
    pub file: String,
    /// The key concerned, dotted where nested (`sms.source`); none for a syntax error.
    pub key: Option<String>,
    /// Bytes of the text concerned; none where a key is missing.
    pub span: Option<Range<usize>>,
    /// Line of the span, from 1; 0 where there is no span.
    pub line: usize,
    /// Column of the span in characters, from 1; 0 where there is no span.
    pub column: usize,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl ProfileError {
    pub(crate) fn new(
        file: &str,
        text: &str,
        key: Option<&str>,
        span: Option<Range<usize>>,
        problem: String,
    ) -> Self {
        let (line, column) = span.as_ref().map_or((0, 0), |span| {
            let before = text.get(..span.start.min(text.len())).unwrap_or_default();
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            (
                before.matches('\n').count() + 1,
                before[line_start..].chars().count() + 1,
            )
        });
        Self {
            file: file.to_owned(),
            key: key.map(str::to_owned),
            span,
            line,
            column,
            problem,
        }
    }
}

fn position(line: usize, column: usize) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(":{line}:{column}")
    }
}

fn prefix(key: Option<&str>) -> String {
    key.map(|key| format!("{key}: ")).unwrap_or_default()
}
