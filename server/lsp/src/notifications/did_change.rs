//! `textDocument/didChange`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidChangeTextDocumentParams;

use crate::session::Session;

pub fn handle(session: &Arc<Session>, params: DidChangeTextDocumentParams) {
    let document = params.text_document;
    session.change(&document.uri, document.version, params.content_changes);
}
