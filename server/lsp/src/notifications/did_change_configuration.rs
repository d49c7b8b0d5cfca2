//! `workspace/didChangeConfiguration`

use std::sync::Arc;

use tower_lsp_server::ls_types::DidChangeConfigurationParams;

use crate::configuration;
use crate::notifications::initialized;
use crate::session::Session;

/// The payload counts where it says something of ours; a client that sends it empty and answers
/// the server requests `workspace/configuration`.
pub fn handle(session: &Arc<Session>, params: &DidChangeConfigurationParams) {
    let said = configuration::is_ours(&params.settings);
    if session.peer().configuration && !said {
        initialized::pull_configuration(session);
    } else {
        session.change_editor_settings(|editor| editor.set_section(Some(&params.settings)));
    }
}
