//! Our results as the protocol's types.

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use ropey::Rope;
use tower_lsp_server::ls_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location,
    NumberOrString, OptionalVersionedTextDocumentIdentifier, Position, Range, TextDocumentEdit,
    TextEdit, Uri, WorkspaceEdit,
};
use warplens_db::{PlacedFinding, Severity};
use warplens_report::style::printable;

use crate::configuration::ConfigFile;
use crate::documents::Analysed;
use crate::peer::Peer;
use crate::position::Lines;

/// The `source` of every diagnostic.
pub const SOURCE: &str = "warplens";

/// All findings of a document.
pub fn diagnostics(analysed: &Analysed, peer: &Peer) -> Vec<Diagnostic> {
    let findings = &analysed.file.findings;
    if findings.is_empty() {
        return Vec::new();
    }
    let lines = Lines::new(Arc::clone(analysed.document.source()), peer.encoding);
    let one = |finding| diagnostic(analysed, finding, peer, &lines);
    findings.iter().map(one).collect()
}

fn diagnostic(
    analysed: &Analysed,
    finding: &PlacedFinding,
    peer: &Peer,
    lines: &Lines,
) -> Diagnostic {
    let related = finding
        .related
        .iter()
        .map(|(bytes, message)| DiagnosticRelatedInformation {
            location: Location::new(analysed.uri.clone(), lines.to_range(bytes)),
            message: printable(message),
        });
    let details = finding.details.iter();
    let details = details.map(|message| DiagnosticRelatedInformation {
        location: Location::new(analysed.uri.clone(), lines.to_range(&finding.range)),
        message: printable(message),
    });
    let related = details.chain(related);
    let related: Vec<_> = related.chain(callee(analysed, finding, peer)).collect();
    Diagnostic {
        range: lines.to_range(&finding.range),
        severity: Some(severity(finding.severity)),
        code: Some(NumberOrString::String(finding.rule.to_owned())),
        code_description: page(finding.rule),
        source: Some(SOURCE.to_owned()),
        message: printable(&finding.message),
        related_information: (!related.is_empty()).then_some(related),
        tags: None,
        data: None,
    }
}

/// The location of the cause where the finding itself is at the call that leads there, and the calls
/// between the two.
fn callee(
    analysed: &Analysed,
    finding: &PlacedFinding,
    peer: &Peer,
) -> Vec<DiagnosticRelatedInformation> {
    let Some(callee) = &finding.callee else {
        return Vec::new();
    };
    let at = |path: &Option<Arc<Path>>, line, column, message: String| {
        let location = match path {
            Some(path) => {
                // The header's text is not at hand: in UTF-16 the column is that of a line in ASCII.
                let place = Position::new(line, column);
                Location::new(Uri::from_file_path(path)?, Range::new(place, place))
            }
            None => {
                let rope = analysed.document.rope();
                let start = rope.try_line_to_byte(line as usize).ok()?;
                let byte = (start + column as usize).min(rope.len_bytes());
                Location::new(
                    analysed.uri.clone(),
                    peer.encoding.to_range(rope, &(byte..byte)),
                )
            }
        };
        Some(DiagnosticRelatedInformation { location, message })
    };
    // The first call is the finding's own place.
    let calls = callee.via.iter().skip(1).rev();
    let calls = calls.map(|(path, line)| at(path, *line, 0, "called here".to_owned()));
    let cause = format!("in the function called: {}", printable(&callee.text));
    let cause = at(&callee.path, callee.line, callee.column, cause);
    std::iter::once(cause).chain(calls).flatten().collect()
}

/// What is wrong in a `warplens.toml`.
pub fn config_problems(file: &ConfigFile, peer: &Peer) -> Vec<Diagnostic> {
    let problems = file.problems.iter().map(|problem| Diagnostic {
        range: peer.encoding.to_range(&file.rope, &problem.range),
        severity: Some(DiagnosticSeverity::ERROR),
        code: Some(NumberOrString::String("config/invalid".to_owned())),
        code_description: page("config/invalid"),
        source: Some(SOURCE.to_owned()),
        message: printable(&problem.message),
        ..Diagnostic::default()
    });
    problems.collect()
}

fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Hint => DiagnosticSeverity::HINT,
        Severity::Information => DiagnosticSeverity::INFORMATION,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Error => DiagnosticSeverity::ERROR,
    }
}

/// The rule's page. Each is made once: an address is checked letter by letter.
fn page(rule: &str) -> Option<CodeDescription> {
    static PAGES: LazyLock<HashMap<&'static str, Uri>> = LazyLock::new(|| {
        let rules = warplens_advice::catalogue().iter().map(|rule| rule.id);
        rules
            .filter_map(|id| Some((id, Uri::from_str(&warplens_advice::href(id)).ok()?)))
            .collect()
    });
    let href = PAGES.get(rule).cloned();
    let href = href.or_else(|| Uri::from_str(&warplens_advice::href(rule)).ok())?;
    Some(CodeDescription { href })
}

/// Edits of one document, for the version they were made for where the client can check that.
pub fn workspace_edit(
    analysed: &Analysed,
    edits: &[(std::ops::Range<usize>, String)],
    peer: &Peer,
) -> WorkspaceEdit {
    let edits = text_edits(analysed.document.rope(), edits, peer);
    if peer.versioned_edits {
        let document = OptionalVersionedTextDocumentIdentifier {
            uri: analysed.uri.clone(),
            version: Some(analysed.version),
        };
        let edits = edits
            .into_iter()
            .map(tower_lsp_server::ls_types::OneOf::Left)
            .collect();
        let changes = vec![TextDocumentEdit {
            text_document: document,
            edits,
        }];
        WorkspaceEdit {
            document_changes: Some(tower_lsp_server::ls_types::DocumentChanges::Edits(changes)),
            ..WorkspaceEdit::default()
        }
    } else {
        WorkspaceEdit {
            changes: Some([(analysed.uri.clone(), edits)].into_iter().collect()),
            ..WorkspaceEdit::default()
        }
    }
}

fn text_edits(
    rope: &Rope,
    edits: &[(std::ops::Range<usize>, String)],
    peer: &Peer,
) -> Vec<TextEdit> {
    edits
        .iter()
        .map(|(bytes, text)| TextEdit::new(peer.encoding.to_range(rope, bytes), text.clone()))
        .collect()
}
