//! `workspace/didChangeWorkspaceFolders`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidChangeWorkspaceFoldersParams;

use crate::session::Session;

pub fn handle(session: &Arc<Session>, params: &DidChangeWorkspaceFoldersParams) {
    {
        let mut state = session.state();
        for folder in &params.event.removed {
            let path = folder.uri.to_file_path();
            state
                .folders
                .retain(|known| Some(known.as_path()) != path.as_deref());
        }
        let added = params
            .event
            .added
            .iter()
            .filter_map(|folder| folder.uri.to_file_path());
        state
            .folders
            .extend(added.map(std::borrow::Cow::into_owned));
    }
    session.settings_changed();
}
