//! `textDocument/didSave`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidSaveTextDocumentParams;

use crate::configuration;
use crate::session::Session;

/// Of what is shown, only a saved `warplens.toml` changes anything that `didChange` has not: clients that do not
/// watch files tell of it here. A compiler reads what is saved.
pub fn handle(session: &Arc<Session>, params: &DidSaveTextDocumentParams) {
    if params
        .text_document
        .uri
        .path()
        .as_str()
        .ends_with(configuration::FILE_NAME)
    {
        session.reload();
    } else {
        session.keep_saved_version(params.text_document.uri.as_str());
        session.look_again();
        session.saved(params.text_document.uri.as_str());
    }
}
