//! `warplens.selectGpu {uri?, gpu}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::settings::unknown_gpu;
use warplens_machine::Profiles;

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
        named(engine.profiles(), &gpu)
    } else {
        // On a worker: the first use reads the profiles.
        let (shared, gpu) = (session.clone(), gpu.clone());
        session
            .run(move |_| named(shared.engine().profiles(), &gpu))
            .await?
    };
    let name = named.map_err(invalid)?;
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
    Ok(json!({"gpu": gpu, "name": name}))
}

/// The GPU's name; the error names the id that was probably meant.
fn named(profiles: &Profiles, id: &str) -> std::result::Result<String, String> {
    match profiles.get(id) {
        Some(profile) => Ok(profile.name.clone()),
        None => Err(unknown_gpu(id, profiles)),
    }
}
