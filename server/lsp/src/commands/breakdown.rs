//! `warplens.breakdown {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_report::markdown;

use crate::render;
use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct Argument {
    uri: String,
    kernel: String,
}

/// Returns the whole story of one kernel as Markdown.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let Argument { uri, kernel } = super::argument(super::BREAKDOWN, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let asker = session.clone();
    let page = session
        .ask(move |cancel| {
            render::page::of(
                asker.engine(),
                &analysed,
                &kernel,
                markdown::breakdown,
                cancel,
            )
        })
        .await?;
    Ok(json!({"markdown": page.map_err(invalid)?}))
}
