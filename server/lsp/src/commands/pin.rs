//! `warplens.pin {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;

use crate::earlier;
use crate::pinned;
use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct PinParams {
    uri: String,
    kernel: String,
}

/// Pins what the kernel takes now: until it is unpinned, its lens gives the change since (`1.11 ms → 0.92 ms`), and its hints those of
/// their lines (`41 % of time (was 52 %)`). Unpins a
/// kernel that takes what was pinned. Returns `{pinned, time_ms, time}`; `time`, a number or a formula, and `time_ms`, null of
/// a formula, are those that were pinned or unpinned. An error where no time is known.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let PinParams { uri, kernel } = super::params(super::PIN, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let (shown, named) = (analysed, kernel.clone());
    let now = session
        .run(move |_| {
            let times = earlier::of_file(&shown.file, true).remove(&named)?;
            let lines = pinned::of_file(&shown.file, shown.document.rope()).remove(&named)?;
            Some((times, lines))
        })
        .await?;
    let Some((now, lines)) = now else {
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
        let pins = Arc::make_mut(state.chosen.pins.entry(uri.clone()).or_default());
        let same = pins.get(&kernel) == Some(&now);
        if same {
            pins.remove(&kernel);
        } else {
            pins.insert(kernel.clone(), now);
        }
        let of_lines = state.chosen.pinned_lines.entry(uri).or_default();
        let of_lines = Arc::make_mut(of_lines);
        if same {
            of_lines.remove(&kernel);
        } else {
            of_lines.insert(kernel, lines);
        }
        !same
    };
    session.refresh();
    Ok(json!({"pinned": pinned, "time_ms": first.time_ms, "time": first.text}))
}
