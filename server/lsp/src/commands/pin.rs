//! `warplens.pin {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;

use crate::earlier;
use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct PinParams {
    uri: String,
    kernel: String,
}

/// Pins what the kernel takes now: until it is unpinned, its lens gives the change since (`1.11 ms → 0.92 ms`). Unpins a
/// kernel that takes what was pinned. Returns `{pinned, time_ms, time}`; `time`, a number or a formula, and `time_ms`, null of
/// a formula, are those that were pinned or unpinned. An error where no time is known.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let PinParams { uri, kernel } = super::params(super::PIN, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let (shown, named) = (analysed, kernel.clone());
    let now = session
        .run(move |_| earlier::of_file(&shown.file, true).remove(&named))
        .await?;
    let Some(now) = now else {
        return Err(invalid(format!(
            "there is no kernel `{kernel}` in this file"
        )));
    };
    let Some(first) = now.iter().flatten().next().cloned() else {
        return Err(invalid(format!(
            "the time of `{kernel}` depends on values that nothing gives: set its launch first"
        )));
    };
    let pinned = {
        let mut state = session.state();
        let pins = Arc::make_mut(state.chosen.pins.entry(uri).or_default());
        let same = pins.get(&kernel) == Some(&now);
        if same {
            pins.remove(&kernel);
        } else {
            pins.insert(kernel, now);
        }
        !same
    };
    session.refresh();
    Ok(json!({"pinned": pinned, "time_ms": first.time_ms, "time": first.text}))
}
