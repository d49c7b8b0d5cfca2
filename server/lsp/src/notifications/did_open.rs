//! `textDocument/didOpen`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidOpenTextDocumentParams;

use crate::session::Session;

pub fn handle(session: &Arc<Session>, params: DidOpenTextDocumentParams) {
    let item = params.text_document;
    session.open(item.uri, &item.language_id, item.version, &item.text);
}
