//! `codeAction/resolve`: the edit of an action that does everywhere in a file what another does in one place.
//!
//! It takes an analysis of every place, so it is made when the user has chosen it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tower_lsp_server::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp_server::ls_types::{CodeAction, Uri, WorkspaceEdit};

use crate::convert;
use crate::documents::Analysed;
use crate::long_work;
use crate::requests::invalid;
use crate::session::Session;

/// The `data` of an action on the whole file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FixAllData {
    /// The document.
    pub uri: Uri,
    /// Its version when the action was offered.
    pub version: i32,
    /// The rule, and the first word of the titles of its actions; `None`: the best action of every rule.
    pub kind: Option<(String, String)>,
}

/// Gives the action its edit. An action that has one, or is none of ours, comes back as it is.
pub async fn handle(session: &Arc<Session>, mut action: CodeAction) -> Result<CodeAction> {
    let Some(data) = action.data.clone().filter(|_| action.edit.is_none()) else {
        return Ok(action);
    };
    let Ok(everywhere) = serde_json::from_value::<FixAllData>(data) else {
        return Err(invalid("data of an action that was not offered here"));
    };
    let Some(snapshot) = session.snapshot(&everywhere.uri) else {
        return Err(invalid("the action's document is not open"));
    };
    let Some(analysed) = session.analysed(snapshot).await else {
        return Err(invalid("the action's document is not analysed"));
    };
    if analysed.version != everywhere.version {
        return Err(Error::new(ErrorCode::ContentModified));
    }
    let shared = session.clone();
    let work = session.run(move |_| edit(&shared, &analysed, &everywhere));
    let edit = long_work::with(session, "warplens: trying the edits", None, work).await?;
    action.edit = Some(edit.unwrap_or_default());
    Ok(action)
}

/// The edit; `None` where nothing helps.
pub fn edit(
    session: &Arc<Session>,
    analysed: &Analysed,
    everywhere: &FixAllData,
) -> Option<WorkspaceEdit> {
    let kind = everywhere.kind.as_ref();
    let fix = session.engine().fix_all(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        &analysed.effective.overrides,
        kind.map(|(rule, word)| (rule.as_str(), word.as_str())),
    )?;
    Some(convert::workspace_edit(
        analysed,
        &fix.edits,
        session.peer(),
    ))
}
