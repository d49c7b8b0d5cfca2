//! `warplens.target {uri}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;

use crate::session::Session;

#[derive(Deserialize)]
struct TargetParams {
    uri: String,
}

/// Returns the GPU that a document's costs are predicted for, and who chose it: `{gpu, name, source}`, the source one of `session`
/// (`warplens.selectGpu`), `settings` (the editor's), `config` (`warplens.toml`), `build` (the architecture that the file is compiled
/// for) and `default`.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let TargetParams { uri } = super::params(super::TARGET, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let shared = session.clone();
    session
        .run(move |_| {
            let profile = &analysed.file.profile;
            let engine = shared.engine();
            let source = analysed.effective.gpu_source.unwrap_or_else(|| {
                let built = engine.project().target(&analysed.path, engine.profiles());
                if built.is_some() { "build" } else { "default" }
            });
            json!({"gpu": profile.id, "name": profile.name, "source": source})
        })
        .await
}
