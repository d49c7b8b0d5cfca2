//! Our results as the protocol's types.

use std::ops::Range;
use std::str::FromStr;

use ropey::Rope;
use tower_lsp_server::ls_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location,
    NumberOrString, OptionalVersionedTextDocumentIdentifier, TextDocumentEdit, TextEdit, Uri,
    WorkspaceEdit,
};
use warplens_engine::{PlacedFinding, Severity};

use crate::configuration::ConfigFile;
use crate::documents::Analysed;
use crate::peer::Peer;

/// The `source` of every diagnostic.
pub const SOURCE: &str = "warplens";

/// All findings of a document.
pub fn diagnostics(analysed: &Analysed, peer: &Peer) -> Vec<Diagnostic> {
    analysed
        .file
        .findings
        .iter()
        .map(|finding| diagnostic(analysed, finding, peer))
        .collect()
}

/// One finding.
pub fn diagnostic(analysed: &Analysed, finding: &PlacedFinding, peer: &Peer) -> Diagnostic {
    let rope = analysed.document.rope();
    let related = finding
        .related
        .iter()
        .map(|(bytes, message)| DiagnosticRelatedInformation {
            location: Location::new(analysed.uri.clone(), peer.encoding.to_range(rope, bytes)),
            message: message.clone(),
        });
    let related: Vec<_> = related.collect();
    Diagnostic {
        range: peer.encoding.to_range(rope, &finding.range),
        severity: Some(severity(finding.severity)),
        code: Some(NumberOrString::String(finding.rule.to_owned())),
        code_description: page(finding.rule),
        source: Some(SOURCE.to_owned()),
        message: finding.message.clone(),
        related_information: (!related.is_empty()).then_some(related),
        tags: None,
        data: None,
    }
}

/// What is wrong in a `warplens.toml`.
pub fn config_problems(file: &ConfigFile, peer: &Peer) -> Vec<Diagnostic> {
    let problems = file.problems.iter().map(|problem| Diagnostic {
        range: peer.encoding.to_range(&file.rope, &problem.range),
        severity: Some(DiagnosticSeverity::ERROR),
        code: Some(NumberOrString::String("config/invalid".to_owned())),
        code_description: page("config/invalid"),
        source: Some(SOURCE.to_owned()),
        message: problem.message.clone(),
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

/// The rule's page.
fn page(rule: &str) -> Option<CodeDescription> {
    let href = Uri::from_str(&warplens_rules::href(rule)).ok()?;
    Some(CodeDescription { href })
}

/// Edits of one document, for the version they were made for where the client can check that.
pub fn workspace_edit(
    analysed: &Analysed,
    edits: &[(Range<usize>, String)],
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

fn text_edits(rope: &Rope, edits: &[(Range<usize>, String)], peer: &Peer) -> Vec<TextEdit> {
    edits
        .iter()
        .map(|(bytes, text)| TextEdit::new(peer.encoding.to_range(rope, bytes), text.clone()))
        .collect()
}
