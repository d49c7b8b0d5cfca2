//! `warplens.whatWouldHelp {uri, kernel}`

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_advice::{VISIBLE_GAIN, times};
use warplens_db::{Help, HelpKind, PlacedFinding, PlacedFix, PlacedKernel};
use warplens_models::Factor;

use crate::convert;
use crate::documents::Analysed;
use crate::peer::Peer;
use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct WhatWouldHelpParams {
    uri: String,
    kernel: String,
}

/// Returns what would help the kernel as one list, the largest gain first: `entries`, each with its `kind` (`edit`, `finding` or `cause`),
/// its title, its predicted gain and the place that it is about; an edit with what a client applies, a cause with its factor.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let WhatWouldHelpParams { uri, kernel } = super::params(super::WHAT_WOULD_HELP, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let (shared, name) = (session.clone(), kernel.clone());
    let page = session
        .run(move |_| {
            let mut kernels = analysed.file.kernels.iter();
            let placed = kernels.find(|placed| placed.analysis.facts.name == name)?;
            let (fixes, findings) = cures(&shared, &analysed, placed);
            let entries = warplens_db::what_would_help(placed, findings, &fixes);
            let entries: Vec<Value> = entries
                .iter()
                .map(|one| entry(&analysed, one, shared.peer()))
                .collect();
            Some(json!({"kernel": name, "entries": entries}))
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

/// An entry of the list.
pub fn entry(analysed: &Analysed, help: &Help, peer: &Peer) -> Value {
    let rope = analysed.document.rope();
    let range = help.range.as_ref();
    let mut entry = json!({
        "kind": help.kind.name(),
        "gain": help.gain,
        "range": range.map(|bytes| peer.encoding.to_range(rope, bytes)),
    });
    match help.kind {
        HelpKind::Edit(fix) => {
            entry["title"] = fix.title.clone().into();
            entry["rule"] = fix.rule.into();
            entry["edit"] = json!(convert::workspace_edit(analysed, &fix.edits, peer));
        }
        HelpKind::Finding(finding) => {
            entry["title"] = finding.message.clone().into();
            entry["rule"] = finding.rule.into();
        }
        HelpKind::Cause(factor) => {
            let line = range.map(|bytes| peer.encoding.to_range(rope, bytes).start.line + 1);
            let most = line.map_or_else(String::new, |line| format!(", most of it in line {line}"));
            let gain = times(help.gain);
            entry["title"] = format!("{gain}: without {}{most}", words(factor)).into();
            entry["factor"] = factor.name().into();
        }
    }
    entry
}

/// What a factor is, in words.
fn words(factor: Factor) -> &'static str {
    match factor {
        Factor::BankConflicts => "bank conflicts",
        Factor::Uncoalesced => "uncoalesced accesses",
        Factor::Divergence => "divergence",
        Factor::Latency => "the latency of memory",
        Factor::Synchronisation => "waits at barriers",
        Factor::Occupancy => "limits of occupancy",
    }
}
