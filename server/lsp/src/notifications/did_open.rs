//! `textDocument/didOpen`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidOpenTextDocumentParams;

use crate::compiler::Occasion;
use crate::session::Session;

pub fn handle(session: &Arc<Session>, params: DidOpenTextDocumentParams) {
    let item = params.text_document;
    let uri = item.uri.as_str().to_owned();
    session.look_again();
    session.open(item.uri, &item.language_id, item.version, &item.text);
    session.request_compile(&uri, Occasion::Seen);
}
