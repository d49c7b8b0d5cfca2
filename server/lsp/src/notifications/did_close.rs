//! `textDocument/didClose`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidCloseTextDocumentParams;

use crate::session::Session;

pub fn handle(session: &Arc<Session>, params: &DidCloseTextDocumentParams) {
    session.close(&params.text_document.uri);
}
