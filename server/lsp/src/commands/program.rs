//! `warplens.program {uri}`

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::wire::ProgramDocument;

use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct ProgramParams {
    uri: String,
}

/// Returns the accounts of the programs that may launch a file's kernels, as HTML that needs nothing but itself.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let ProgramParams { uri } = super::params(super::PROGRAM, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let shared = session.clone();
    let page = session
        .run(move |cancel| {
            let engine = shared.engine();
            let settings = &analysed.effective.settings;
            let folder = analysed.path.parent().unwrap_or(Path::new(""));
            let name = |path: &Path| {
                let inside = path.strip_prefix(folder).unwrap_or(path);
                inside.display().to_string()
            };
            let mains = engine.programs_near(&analysed.path).into_iter();
            let accounts = mains.filter_map(|main| engine.account(&main, settings, &name, cancel));
            let (programs, without): (Vec<_>, Vec<_>) =
                accounts.partition(|account| !account.kernels.is_empty());
            if cancel.is_cancelled() {
                return Err("cancelled".to_owned());
            }
            if programs.is_empty() {
                let file = analysed.path.display();
                return Err(format!(
                    "no file with a `main` near {file} launches a kernel"
                ));
            }
            Ok(warplens_report::program_page(&ProgramDocument {
                schema: "warplens.program/1",
                programs,
                without_launches: without.into_iter().map(|account| account.file).collect(),
            }))
        })
        .await?;
    Ok(json!({"html": page.map_err(invalid)?}))
}
