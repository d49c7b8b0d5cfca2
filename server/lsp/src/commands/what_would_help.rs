//! `warplens.whatWouldHelp {uri, kernel}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::{Help, HelpKind};

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
            let entries = shared.engine().what_would_help(
                &analysed.document,
                &analysed.path,
                &analysed.effective.settings,
                &analysed.effective.overrides,
                &analysed.file,
                placed,
            );
            let entries: Vec<Value> = entries
                .iter()
                .map(|one| entry(&analysed, one, shared.peer()))
                .collect();
            Some(json!({"kernel": name, "entries": entries}))
        })
        .await?;
    page.ok_or_else(|| invalid(format!("there is no kernel `{kernel}` in this file")))
}

/// An entry of the list.
pub fn entry(analysed: &Analysed, help: &Help, peer: &Peer) -> Value {
    let rope = analysed.document.rope();
    let range = help.range.as_ref();
    let mut entry = json!({
        "kind": help.kind.name(),
        "title": help.title(&analysed.document),
        "gain": help.gain,
        "range": range.map(|bytes| peer.encoding.to_range(rope, bytes)),
    });
    match &help.kind {
        HelpKind::Edit(fix) => {
            entry["rule"] = fix.rule.into();
            entry["edit"] = json!(convert::workspace_edit(analysed, &fix.edits, peer));
        }
        HelpKind::Finding(finding) => entry["rule"] = finding.rule.into(),
        HelpKind::Cause(factor) => entry["factor"] = factor.name().into(),
    }
    entry
}
