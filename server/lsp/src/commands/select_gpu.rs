//! `warplens.selectGpu {uri?, gpu}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::settings::gpu_named;

use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct SelectGpuParams {
    uri: Option<String>,
    gpu: String,
}

/// Sets the target for one document or, without `uri`, for all. Returns its id and name.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let SelectGpuParams { uri, gpu } = super::params(super::SELECT_GPU, argument)?;
    let named = if let Some(engine) = session.engine_if_built() {
        gpu_named(&gpu, engine.profiles())
    } else {
        // On a worker: the first use reads the profiles.
        let (shared, gpu) = (session.clone(), gpu.clone());
        session
            .run(move |_| gpu_named(&gpu, shared.engine().profiles()))
            .await?
    };
    let profile = named.map_err(invalid)?;
    let gpu = profile.id.clone();
    {
        let mut state = session.state();
        if let Some(uri) = uri {
            state.chosen.gpu_of.insert(uri, gpu.clone());
        } else {
            state.chosen.gpu_of.clear();
            state.chosen.gpu = Some(gpu.clone());
        }
    }
    session.settings_changed();
    Ok(json!({"gpu": gpu, "name": profile.name}))
}
