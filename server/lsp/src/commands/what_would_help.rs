//! `warplens.whatWouldHelp {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::PlacedFix;

use crate::convert;
use crate::documents::Analysed;
use crate::peer::Peer;
use crate::requests::invalid;
use crate::session::Session;

/// A factor below this speedup would not help.
const HELPS: f64 = 1.01;

#[derive(Deserialize)]
struct WhatWouldHelpParams {
    uri: String,
    kernel: String,
}

/// Returns what the kernel would gain, the most first: `factors`, each the speedup of the kernel without one cause of
/// waiting, and `actions`, each with its title, its rule, its predicted speedup and the edit that a client applies.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let WhatWouldHelpParams { uri, kernel } = super::params(super::WHAT_WOULD_HELP, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let (shared, name) = (session.clone(), kernel.clone());
    let page = session
        .run(move |_| {
            let mut kernels = analysed.file.kernels.iter();
            let placed = kernels.find(|placed| placed.analysis.facts.name == name)?;
            let mut factors: Vec<(&str, f64)> = placed
                .analysis
                .what_if()
                .iter()
                .filter(|(_, _, speedup)| speedup.is_finite() && *speedup >= HELPS)
                .map(|(factor, _, speedup)| (factor.name(), *speedup))
                .collect();
            factors.sort_by(|a, b| b.1.total_cmp(&a.1));
            let factors: Vec<Value> = factors
                .into_iter()
                .map(|(factor, speedup)| json!({"factor": factor, "speedup": speedup}))
                .collect();
            let mut fixes = shared.engine().fixes(
                &analysed.document,
                &analysed.path,
                &analysed.effective.settings,
                &analysed.effective.overrides,
                placed.start..placed.end,
            );
            fixes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
            let actions: Vec<Value> = fixes
                .iter()
                .map(|fix| action(&analysed, fix, shared.peer()))
                .collect();
            Some(json!({"kernel": name, "factors": factors, "actions": actions}))
        })
        .await?;
    page.ok_or_else(|| invalid(format!("there is no kernel `{kernel}` in this file")))
}

/// An edit with its title, its rule and its predicted speedup.
pub fn action(analysed: &Analysed, fix: &PlacedFix, peer: &Peer) -> Value {
    let rope = analysed.document.rope();
    let first = fix.edits.first().map(|(bytes, _)| bytes.clone());
    json!({
        "title": fix.title,
        "rule": fix.rule,
        "speedup": fix.gain,
        "range": first.map(|bytes| peer.encoding.to_range(rope, &bytes)),
        "edit": convert::workspace_edit(analysed, &fix.edits, peer),
    })
}
