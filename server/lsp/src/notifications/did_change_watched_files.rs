//! `workspace/didChangeWatchedFiles`

use std::sync::Arc;

use tower_lsp_server::ls_types::{DidChangeWatchedFilesParams, FileChangeType};

use crate::session::Session;

/// What is watched (`warplens.toml`, compile commands, headers) may change every result; what did not change
/// is cached.
pub fn handle(session: &Arc<Session>, params: &DidChangeWatchedFilesParams) {
    let changes = &params.changes;
    if changes.is_empty() {
        return;
    }
    let paths = changes
        .iter()
        .filter_map(|change| change.uri.to_file_path());
    let paths: Vec<_> = paths.map(std::borrow::Cow::into_owned).collect();
    let others = changes
        .iter()
        .any(|change| change.typ != FileChangeType::CHANGED);
    session.changed_on_disk(&paths, others);
}
