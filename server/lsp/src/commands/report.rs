//! `warplens.report {uri}`

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_models::ModelId;

use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct ReportParams {
    uri: String,
}

/// Returns the page about a file, as HTML that needs nothing but itself.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let ReportParams { uri } = super::params(super::REPORT, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let shared = session.clone();
    let page = session
        .run(move |cancel| {
            if cancel.is_cancelled() {
                return Err("cancelled".to_owned());
            }
            analysed.simulate(None, &ModelId::ALL, cancel);
            let pictures = shared.engine().pictures(
                &analysed.document,
                &analysed.path,
                &analysed.effective.settings,
                &analysed.effective.overrides,
                &[],
                &[],
                &[],
                cancel,
            )?;
            let folders = shared.state().folders.clone();
            let folder = folders.iter().find(|root| analysed.path.starts_with(root));
            Ok(warplens_report::html(
                &pictures,
                folder.map(PathBuf::as_path),
            ))
        })
        .await?;
    Ok(json!({"html": page.map_err(invalid)?}))
}
