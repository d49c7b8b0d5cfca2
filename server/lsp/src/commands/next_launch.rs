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
    let (launches, shown) = match named.next() {
        Some(placed) => (placed.variants.clone(), placed.variant),
        None => {
            return Err(invalid(format!(
                "there is no kernel `{kernel}` in this file"
            )));
        }
    };
    let next = {
        let mut state = session.state();
        let chosen = state.chosen.variants.entry(uri).or_default();
        let number = chosen.entry(kernel).or_insert(shown);
        *number = (*number + 1) % launches.len().max(1);
        *number
    };
    if launches.len() > 1 {
        session.settings_changed();
    }
    Ok(json!({"number": next + 1, "of": launches.len(), "launch": launches.get(next)}))
}
