//! `textDocument/didSave`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidSaveTextDocumentParams;

use crate::configuration;
use crate::session::Session;

/// Only a saved `warplens.toml` changes anything that `didChange` has not: clients that do not watch files
/// tell of it here.
pub fn handle(session: &Arc<Session>, params: &DidSaveTextDocumentParams) {
    if params
        .text_document
        .uri
        .path()
        .as_str()
        .ends_with(configuration::FILE_NAME)
    {
        session.reload();
    }
}
