//! `warplens.setRun {uri, arguments}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tower_lsp_server::jsonrpc::Result;

use crate::configuration::folder_of;
use crate::session::Session;

/// How the programs beside a document are run.
#[derive(Deserialize)]
struct RunParams {
    uri: String,
    /// As a shell splits them; without them an earlier choice is taken back.
    arguments: Option<String>,
}

/// Sets the arguments that programs in a document's folder are run with for this session.
pub fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let argument: RunParams = super::params(super::SET_RUN, argument)?;
    {
        let mut state = session.state();
        let folder = folder_of(&argument.uri).to_owned();
        match argument.arguments {
            Some(arguments) => state.chosen.runs.insert(folder, arguments),
            None => state.chosen.runs.remove(&folder),
        };
    }
    session.settings_changed();
    Ok(Value::Null)
}
