//! `warplens.heat {uri}`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;

use crate::session::Session;

/// A line below this share of its kernel is cold.
const LEAST: f64 = 0.005;

#[derive(Debug, Deserialize)]
struct HeatParams {
    uri: String,
}

/// Returns the share of each line in its kernel's cost, for the current text: `{version, lines: [{line, kernel, share, heat}]}`. `line` is from 0, `share`
/// of the kernel's cycles, `heat` of its costliest line, both up to 1. Lines of kernels that share them come once, as the
/// hottest.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let HeatParams { uri } = super::params(super::HEAT, argument)?;
    let Some(snapshot) = session.snapshot(&super::document::uri(&uri)?) else {
        return Ok(json!({"version": null, "lines": []}));
    };
    let Some(analysed) = session.analysed(snapshot).await else {
        return Ok(json!({"version": null, "lines": []}));
    };
    session
        .run(move |_| {
            let mut lines: BTreeMap<u32, (f64, f64, &str)> = BTreeMap::new();
            for placed in &analysed.file.kernels {
                let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
                for (line, share) in placed.analysis.lines() {
                    *shares.entry(placed.place_line(line)).or_default() += share;
                }
                let hottest = shares.values().copied().fold(0.0, f64::max);
                for (line, share) in shares {
                    let heat = share / hottest;
                    let known = lines.get(&line).is_some_and(|(known, ..)| *known >= heat);
                    if share >= LEAST && heat.is_finite() && !known {
                        lines.insert(line, (heat, share, &placed.analysis.facts.name));
                    }
                }
            }
            let lines: Vec<Value> = lines
                .into_iter()
                .map(|(line, (heat, share, kernel))| json!({"line": line, "kernel": kernel, "share": share, "heat": heat}))
                .collect();
            json!({"version": analysed.version, "lines": lines})
        })
        .await
}
