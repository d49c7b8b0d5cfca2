//! `warplens.whatWouldHelp {uri, kernel}`

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_advice::VISIBLE_GAIN;
use warplens_db::{PlacedFinding, PlacedFix, PlacedKernel};

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
/// waiting; `actions`, each with its title, its rule, its predicted speedup and the edit that a client applies; and `findings` of a
/// visible gain that no action cures, each with its headline, its rule, what it is predicted to gain and its place.
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
            let (mut fixes, findings) = cures(&shared, &analysed, placed);
            fixes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
            let actions: Vec<Value> = fixes
                .iter()
                .map(|fix| action(&analysed, fix, shared.peer()))
                .collect();
            let findings = findings.into_iter();
            let findings: Vec<Value> = findings
                .map(|one| finding(&analysed, one, shared.peer()))
                .collect();
            Some(json!({"kernel": name, "factors": factors, "actions": actions, "findings": findings}))
        })
        .await?;
    page.ok_or_else(|| invalid(format!("there is no kernel `{kernel}` in this file")))
}

/// The actions that are offered for a kernel, and its findings that none of them answers, the one that gains most first.
fn cures<'a>(
    session: &Session,
    analysed: &'a Analysed,
    placed: &PlacedKernel,
) -> (Vec<PlacedFix>, Vec<&'a PlacedFinding>) {
    let within = |bytes: Range<usize>| {
        session.engine().fixes(
            &analysed.document,
            &analysed.path,
            &analysed.effective.settings,
            &analysed.effective.overrides,
            bytes,
        )
    };
    let mut fixes = within(placed.start..placed.end);
    let name = placed.analysis.facts.name.as_str();
    let found = analysed.file.findings.iter();
    let found: Vec<_> = found
        .filter(|one| one.kernel.as_deref() == Some(name))
        .collect();
    let mut left: Vec<&PlacedFinding> = Vec::new();
    for one in found.iter().filter(|one| one.gain >= VISIBLE_GAIN) {
        let inside = (placed.start..=placed.end).contains(&one.range.start);
        let answered = fixes.iter().any(|fix| fix.rule == one.rule);
        let alone = found.iter().filter(|other| other.rule == one.rule).count() == 1;
        if answered && alone {
            continue;
        }
        // What was found at a launch is outside of the kernel, and one action need not be for all findings of its rule.
        if answered || !inside {
            let mut here = within(one.range.clone());
            here.retain(|fix| fix.rule == one.rule);
            if !here.is_empty() {
                here.retain(|fix| fixes.iter().all(|known| known.edits != fix.edits));
                fixes.extend(here);
                continue;
            }
        }
        if left.iter().all(|known| !known.is_cause_of(one)) {
            left.push(one);
        }
    }
    left.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    (fixes, left)
}

/// A finding with its headline, its rule and what it is predicted to gain.
fn finding(analysed: &Analysed, found: &PlacedFinding, peer: &Peer) -> Value {
    json!({
        "title": found.message,
        "rule": found.rule,
        "speedup": found.gain,
        "range": peer.encoding.to_range(analysed.document.rope(), &found.range),
    })
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
