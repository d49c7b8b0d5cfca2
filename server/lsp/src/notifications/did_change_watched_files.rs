//! `workspace/didChangeWatchedFiles`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidChangeWatchedFilesParams;

use crate::session::Session;

/// What is watched (`warplens.toml`) may change every result; what did not change is cached.
pub fn handle(session: &Arc<Session>, params: &DidChangeWatchedFilesParams) {
    if !params.changes.is_empty() {
        session.reload();
    }
}
