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
struct BreakdownParams {
    uri: String,
    kernel: String,
}

/// Returns everything known about one kernel, as Markdown.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let BreakdownParams { uri, kernel } = super::params(super::BREAKDOWN, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let shared = session.clone();
    let page = session
        .run(move |cancel| {
            render::page::of(
                shared.engine(),
                &analysed,
                &kernel,
                markdown::breakdown,
                cancel,
            )
        })
        .await?;
    Ok(json!({"markdown": page.map_err(invalid)?}))
}
