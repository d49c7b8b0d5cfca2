//! `warplens.fixes {uri}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::Help;

use crate::commands::what_would_help::entry;
use crate::session::Session;

#[derive(Deserialize)]
struct FixesParams {
    uri: String,
}

/// Returns the edits that are offered anywhere in a file, the largest predicted gain first; of equal ones those with fewer changes:
/// `{entries}`, each as `warplens.whatWouldHelp` has it.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let FixesParams { uri } = super::params(super::FIXES, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let shared = session.clone();
    let entries = session
        .run(move |_| {
            let mut fixes = shared.engine().fixes(
                &analysed.document,
                &analysed.path,
                &analysed.effective.settings,
                &analysed.effective.overrides,
                0..analysed.document.len(),
            );
            fixes.sort_by(|a, b| {
                let changed = |fix: &warplens_db::PlacedFix| fix.edits.len();
                b.gain
                    .total_cmp(&a.gain)
                    .then_with(|| changed(a).cmp(&changed(b)))
            });
            let entries = fixes.into_iter();
            entries
                .map(|fix| entry(&analysed, &Help::edit(fix), shared.peer()))
                .collect::<Vec<_>>()
        })
        .await?;
    Ok(json!({"entries": entries}))
}
