//! `warplens.kernels {}`

use std::sync::Arc;

use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::PlacedKernel;
use warplens_report::check;
use warplens_report::figure::words;

use crate::documents::Analysed;
use crate::peer::Peer;
use crate::session::Session;

/// Returns the kernels of all open documents, those that take longest first and those whose time depends on what nothing gives
/// last: `{kernels: [{uri, kernel, range, …}]}`.
pub async fn run(session: &Arc<Session>) -> Result<Value> {
    let snapshots = session.source_snapshots();
    let mut analysed: Vec<Arc<Analysed>> = Vec::new();
    for snapshot in snapshots {
        analysed.extend(session.analysed(snapshot).await);
    }
    let shared = session.clone();
    let kernels = session
        .run(move |_| {
            let mut kernels: Vec<(Option<f64>, Value)> = Vec::new();
            for file in &analysed {
                let of_file = file.file.kernels.iter();
                kernels.extend(of_file.map(|kernel| of(kernel, file, shared.peer())));
            }
            // The sort is stable: equal ones stay in the order of the files and their lines.
            kernels.sort_by(|(a, _), (b, _)| {
                let key = |time: &Option<f64>| time.unwrap_or(f64::NEG_INFINITY);
                key(b).total_cmp(&key(a))
            });
            kernels
                .into_iter()
                .map(|(_, kernel)| kernel)
                .collect::<Vec<_>>()
        })
        .await?;
    Ok(json!({"kernels": kernels}))
}

fn of(kernel: &PlacedKernel, file: &Analysed, peer: &Peer) -> (Option<f64>, Value) {
    let analysis = &kernel.analysis;
    let occupancy = &analysis.input.occupancy;
    let possible = occupancy.why_impossible.is_none();
    let estimate = analysis.estimate();
    let time_ms = estimate.time_ms.filter(|_| possible);
    let findings = file.file.causes(kernel);
    let best = findings
        .iter()
        .max_by(|a, b| a.gain.total_cmp(&b.gain))
        .filter(|best| best.gain >= warplens_advice::VISIBLE_GAIN);
    let name = kernel.place(analysis.name_site.span);
    let told = json!({
        "uri": file.uri,
        "kernel": analysis.facts.name,
        "range": peer.encoding.to_range(file.document.rope(), &name),
        "gpu": analysis.profile.id,
        "time_ms": time_ms,
        "time": possible.then(|| check::shown_time(&estimate)).flatten(),
        "bottleneck": estimate.bottleneck.filter(|_| possible).map(|bound| words(bound.name())),
        "occupancy": occupancy.fraction,
        "why_impossible": occupancy.why_impossible,
        "findings": findings.len(),
        "best": best.map(|best| json!({"rule": best.rule, "gain": best.gain})),
    });
    (time_ms, told)
}
