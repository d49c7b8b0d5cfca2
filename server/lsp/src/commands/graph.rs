//! `warplens.graph {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;

use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct Argument {
    uri: String,
    kernel: String,
}

/// Returns the work flow graph of one kernel, before and after its reduction, as a picture.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let Argument { uri, kernel } = super::argument(super::GRAPH, argument)?;
    let analysed = super::breakdown::analysed(session, &uri).await?;
    let svg = session
        .ask(move |_| {
            let mut kernels = analysed.file.kernels.iter();
            let placed = kernels.find(|placed| placed.analysis.facts.name == kernel);
            let placed =
                placed.ok_or_else(|| format!("there is no kernel `{kernel}` in this file"))?;
            Ok(warplens_report::graph::svg(&placed.work_flow()?))
        })
        .await?;
    Ok(json!({"svg": svg.map_err(|why: String| invalid(why))?}))
}
