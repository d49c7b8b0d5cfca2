//! `warplens.graph {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;

use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct GraphParams {
    uri: String,
    kernel: String,
}

/// Returns the work flow graph of one kernel, before and after its reduction: `{svg, html}`, a standalone picture and
/// the same as a page in the editor's colours.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let GraphParams { uri, kernel } = super::params(super::GRAPH, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let drawn = session
        .run(move |_| {
            let mut kernels = analysed.file.kernels.iter();
            let placed = kernels.find(|placed| placed.analysis.facts.name == kernel);
            let placed =
                placed.ok_or_else(|| format!("there is no kernel `{kernel}` in this file"))?;
            let flow = placed.work_flow()?;
            Ok((
                warplens_report::graph::svg(&flow),
                warplens_report::graph_page(&flow),
            ))
        })
        .await?;
    let (svg, html) = drawn.map_err(|why: String| invalid(why))?;
    Ok(json!({"svg": svg, "html": html}))
}
