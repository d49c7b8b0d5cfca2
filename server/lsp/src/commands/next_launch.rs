//! `warplens.nextLaunch {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;

use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct NextLaunchParams {
    uri: String,
    kernel: String,
}

/// Shows the kernel under the next of its launches, after the last one the first. Returns which one that is:
/// `{number, of, launch}`.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let NextLaunchParams { uri, kernel } = super::params(super::NEXT_LAUNCH, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let kernels = analysed.file.kernels.iter();
    let mut named = kernels.filter(|placed| placed.analysis.facts.name == kernel);
    let Some(placed) = named.next() else {
        return Err(invalid(format!(
            "there is no kernel `{kernel}` in this file"
        )));
    };
    let order = &placed.order;
    let mut state = session.state();
    let chosen = state.chosen.variants.entry(uri).or_default();
    let shown = chosen.get(&kernel).unwrap_or(&placed.variant);
    let shown = order.iter().position(|at| at == shown);
    let number = shown.map_or(0, |shown| (shown + 1) % order.len());
    let next = order.get(number).copied();
    if let Some(next) = next.filter(|_| order.len() > 1) {
        chosen.insert(kernel, next);
        drop(state);
        session.settings_changed();
    }
    let text = next.and_then(|next| placed.variants.get(next));
    Ok(json!({"number": number + 1, "of": order.len(), "launch": text}))
}
