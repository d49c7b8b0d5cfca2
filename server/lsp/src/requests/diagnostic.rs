//! `textDocument/diagnostic`

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::{
    Diagnostic, DocumentDiagnosticParams, DocumentDiagnosticReport, DocumentDiagnosticReportResult,
    FullDocumentDiagnosticReport, RelatedFullDocumentDiagnosticReport,
    RelatedUnchangedDocumentDiagnosticReport, UnchangedDocumentDiagnosticReport, Uri,
};

use crate::configuration::ConfigFile;
use crate::convert;
use crate::session::Session;

pub async fn handle(
    session: &Arc<Session>,
    params: DocumentDiagnosticParams,
) -> Result<DocumentDiagnosticReportResult> {
    let uri = params.text_document.uri;
    let config = session.open_config(&uri);
    let snapshot = session.snapshot(&uri);
    let mut items = Vec::new();
    let mut related = None;
    if let Some((path, rope)) = config {
        let shared = session.clone();
        items = session
            .run(move |_| {
                let profiles = shared.engine().profiles();
                let file = ConfigFile::parse(path, &rope.to_string(), profiles);
                convert::config_problems(&file, shared.peer())
            })
            .await?;
    } else if let Some(snapshot) = snapshot
        && let Some(analysed) = session.analysed(snapshot).await
    {
        items = convert::diagnostics(&analysed, session.peer());
        related.clone_from(&analysed.effective.file);
    }
    let related = related
        .filter(|file| session.peer().related_documents && !session.is_open_config(&file.path));
    let related = related.and_then(|file| {
        let report = FullDocumentDiagnosticReport {
            result_id: None,
            items: convert::config_problems(&file, session.peer()),
        };
        Some(
            [(Uri::from_file_path(&file.path)?, report.into())]
                .into_iter()
                .collect(),
        )
    });
    let result_id = id(&items);
    let report = if params.previous_result_id.as_ref() == Some(&result_id) {
        DocumentDiagnosticReport::Unchanged(RelatedUnchangedDocumentDiagnosticReport {
            related_documents: related,
            unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
        })
    } else {
        DocumentDiagnosticReport::Full(RelatedFullDocumentDiagnosticReport {
            related_documents: related,
            full_document_diagnostic_report: FullDocumentDiagnosticReport {
                result_id: Some(result_id),
                items,
            },
        })
    };
    Ok(report.into())
}

/// Names a list by its content: the same findings at the same places have the same name.
fn id(items: &[Diagnostic]) -> String {
    let mut hasher = DefaultHasher::new();
    for item in items {
        let range = item.range;
        (
            range.start.line,
            range.start.character,
            range.end.line,
            range.end.character,
        )
            .hash(&mut hasher);
        item.message.hash(&mut hasher);
        format!(
            "{:?} {:?} {:?}",
            item.severity, item.code, item.related_information
        )
        .hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}
