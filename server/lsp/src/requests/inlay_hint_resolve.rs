//! `inlayHint/resolve`: the tooltip of a hint.

use std::sync::Arc;

use tower_lsp_server::jsonrpc::Result;
use tower_lsp_server::ls_types::InlayHint;

use crate::render;
use crate::requests::inlay_hint::{self, Origin};
use crate::requests::invalid;
use crate::session::Session;

/// Gives the hint its tooltip. One that has it, and one of a line that has nothing to tell any more, comes back as it is.
pub async fn handle(session: &Arc<Session>, mut hint: InlayHint) -> Result<InlayHint> {
    let Some(data) = hint.data.clone().filter(|_| hint.tooltip.is_none()) else {
        return Ok(hint);
    };
    let Ok(Origin { uri }) = serde_json::from_value(data) else {
        return Err(invalid("data of a hint that was not shown here"));
    };
    let Some(snapshot) = session.snapshot(&uri) else {
        return Ok(hint);
    };
    let Some(analysed) = session.analysed(snapshot).await else {
        return Ok(hint);
    };
    let line = hint.position.line;
    let tooltip = session
        .run(move |_| render::hint::tooltip(&analysed, line))
        .await?;
    hint.tooltip = tooltip.map(|text| inlay_hint::tooltip(session.peer(), &text));
    Ok(hint)
}
