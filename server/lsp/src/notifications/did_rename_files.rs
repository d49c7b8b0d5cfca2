//! `workspace/didRenameFiles`

use std::str::FromStr;
use std::sync::Arc;

use tower_lsp_server::ls_types::{RenameFilesParams, Uri};

use crate::session::Session;

/// What was chosen for a document goes with it, and headers are looked for again: one of them may have another name now.
/// The client closes the document under its old name and opens it under the new one by itself, before or after.
pub fn handle(session: &Arc<Session>, params: &RenameFilesParams) {
    let mut paths = Vec::new();
    for file in &params.files {
        session.state().chosen.renamed(&file.old_uri, &file.new_uri);
        let uris = [&file.old_uri, &file.new_uri].map(|uri| Uri::from_str(uri).ok());
        let named = uris.iter().flatten().filter_map(Uri::to_file_path);
        paths.extend(named.map(std::borrow::Cow::into_owned));
    }
    if !params.files.is_empty() {
        session.changed_on_disk(&paths, true);
    }
}
