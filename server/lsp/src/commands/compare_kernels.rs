//! `warplens.compareKernels {uri, kernel, with: {uri?, kernel}}`

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::Engine;
use warplens_db::wire::KernelResult;
use warplens_models::ModelId;
use warplens_report::pair;

use crate::documents::Analysed;
use crate::render::page::is_shown;
use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct CompareKernelsParams {
    uri: String,
    kernel: String,
    with: Other,
}

#[derive(Deserialize)]
struct Other {
    uri: Option<String>,
    kernel: String,
}

/// Returns two kernels side by side, each under the launch and on the GPU that it is shown with, as Markdown.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let CompareKernelsParams { uri, kernel, with } =
        super::params(super::COMPARE_KERNELS, argument)?;
    let first = super::document::analysed(session, &uri).await?;
    let second = match &with.uri {
        Some(other) if *other != uri => super::document::analysed(session, other).await?,
        _ => Arc::clone(&first),
    };
    let shared = session.clone();
    let page = session
        .run(move |_| {
            let model = first.effective.settings.model.as_deref();
            let model = model.and_then(ModelId::named).unwrap_or(ModelId::Auto);
            let a = result(shared.engine(), &first, &kernel, model)?;
            let b = result(shared.engine(), &second, &with.kernel, model)?;
            Ok::<String, String>(pair::markdown(&a, &b, model.name()))
        })
        .await?;
    Ok(json!({"markdown": page.map_err(invalid)?}))
}

fn result(
    engine: &Engine,
    analysed: &Analysed,
    kernel: &str,
    model: ModelId,
) -> std::result::Result<KernelResult, String> {
    let document = engine.estimate(
        &analysed.document,
        &analysed.path,
        &analysed.effective.settings,
        &analysed.effective.overrides,
        &[],
        &[model],
        &[kernel.to_owned()],
    )?;
    let mut results = document.results.into_iter();
    let shown = results.find(|result| is_shown(analysed, result));
    shown.ok_or_else(|| format!("there is no kernel `{kernel}` in this file"))
}
