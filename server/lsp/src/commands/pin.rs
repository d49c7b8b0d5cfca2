//! `warplens.pin {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_report::figure;

use crate::earlier::{self, EarlierTime};
use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct PinParams {
    uri: String,
    kernel: String,
}

/// Pins what the kernel takes now: until it is unpinned, its lens gives the change since (`1.11 ms → 0.92 ms`). Unpins a
/// kernel that takes what was pinned. Returns `{pinned, time_ms, time}`; `time_ms` and `time` are those that were pinned or
/// unpinned. An error where no time is known.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let PinParams { uri, kernel } = super::params(super::PIN, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let named = kernel.clone();
    let now = session
        .run(move |_| {
            let kernels = earlier::keys(&analysed.file).zip(&analysed.file.kernels);
            let named = kernels.filter(|((name, _), _)| *name == named);
            named
                .map(|(key, kernel)| (key, EarlierTime::of(kernel)))
                .collect::<Vec<_>>()
        })
        .await?;
    if now.is_empty() {
        return Err(invalid(format!(
            "there is no kernel `{kernel}` in this file"
        )));
    }
    let known: Vec<_> = now
        .into_iter()
        .filter_map(|(key, time)| Some((key, time?)))
        .collect();
    let Some(time_ms) = known.first().map(|(_, time)| time.time_ms) else {
        return Err(invalid(format!(
            "the time of `{kernel}` depends on values that nothing gives: set its launch first"
        )));
    };
    let pinned = {
        let mut state = session.state();
        let pins = state.chosen.pins.entry(uri).or_default();
        let same = known.iter().all(|(key, time)| pins.get(key) == Some(time));
        pins.retain(|(name, _), _| *name != kernel);
        if !same {
            pins.extend(known);
        }
        !same
    };
    session.refresh();
    Ok(json!({"pinned": pinned, "time_ms": time_ms, "time": figure::time(time_ms)}))
}
