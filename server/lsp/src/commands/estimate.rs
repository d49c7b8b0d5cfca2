//! `warplens.estimate {uri, kernel?}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tower_lsp_server::jsonrpc::Result;

use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct EstimateParams {
    uri: String,
    kernel: Option<String>,
}

/// Returns what `warplens estimate --format json` prints.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let EstimateParams { uri, kernel } = super::params(super::ESTIMATE, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let shared = session.clone();
    session
        .run(move |_| {
            let document = shared.engine().estimate(
                &analysed.document,
                &analysed.path,
                &analysed.effective.settings,
                &analysed.effective.overrides,
                &[],
                &[],
                kernel.as_slice(),
            );
            let mut document = document.map_err(invalid)?;
            shared.engine().add_help(
                &analysed.document,
                &analysed.path,
                &analysed.effective.settings,
                &analysed.effective.overrides,
                &mut document,
            );
            serde_json::to_value(document).map_err(|error| invalid(error.to_string()))
        })
        .await?
}
