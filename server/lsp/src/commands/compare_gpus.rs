//! `warplens.compareGpus {uri, kernel, all?}`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::wire::{EstimateDocument, KernelResult};
use warplens_db::{Cancel, Engine, Overrides};
use warplens_models::ModelId;
use warplens_report::{compare, figure, gpus};

use crate::documents::Analysed;
use crate::render::page::is_shown;
use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
struct CompareGpusParams {
    uri: String,
    kernel: String,
    #[serde(default)]
    all: bool,
}

/// Returns the kernel on the target and the GPUs of `compare`, as Markdown; where none are named on the target and the largest of each
/// of the vendor's four newest other architectures. `all`: on every GPU that has a profile.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let CompareGpusParams { uri, kernel, all } = super::params(super::COMPARE_GPUS, argument)?;
    let analysed = super::document::analysed(session, &uri).await?;
    let shared = session.clone();
    let page = session
        .run(move |cancel| page(shared.engine(), &analysed, &kernel, all, cancel))
        .await?;
    Ok(json!({"markdown": page.map_err(invalid)?}))
}

fn page(
    engine: &Engine,
    analysed: &Analysed,
    kernel: &str,
    all: bool,
    cancel: &Cancel,
) -> std::result::Result<String, String> {
    let settings = &analysed.effective.settings;
    let named = settings.model.as_deref().and_then(ModelId::named);
    let model = named.unwrap_or(ModelId::Auto);
    let estimate = |overrides: &Overrides, gpus: &[String]| {
        engine.estimate(
            &analysed.document,
            &analysed.path,
            settings,
            overrides,
            gpus,
            &[model],
            &[kernel.to_owned()],
        )
    };
    let mut overrides = analysed.effective.overrides.clone();
    let base = estimate(&overrides, &[])?;
    let shown = base
        .results
        .iter()
        .find(|result| is_shown(analysed, result));
    let Some(first) = shown else {
        return Err(format!("there is no kernel `{kernel}` in this file"));
    };
    let target = first.gpu.clone();
    let mut notes = Vec::new();
    if first.launch.grid_source == "assumed"
        && let Some(grid) = first.launch.grid
    {
        // A grid that fills each GPU would be other work on each.
        overrides.editor.entry(kernel.to_owned()).or_default().grid = Some(grid);
        notes.push(format!(
            "The grid is assumed: {} as on `{target}`, the same on all.",
            figure::extents(grid)
        ));
    }
    let mut gpus = settings.compare.clone();
    if all {
        gpus = engine.profiles().ids().map(str::to_owned).collect();
    } else if gpus.is_empty() {
        gpus = gpus::beside(engine.profiles(), &target);
        notes.push(
            "`compare` in the settings names other GPUs; all are shown on request.".to_owned(),
        );
    }
    if !gpus.contains(&target) {
        gpus.push(target.clone());
    }
    gpus.sort_unstable();
    gpus.dedup();
    // Several kernels may share a name: compare each template instance with itself.
    let mut instances: BTreeMap<(u32, BTreeMap<String, String>), Vec<KernelResult>> =
        BTreeMap::new();
    for gpu in gpus {
        if cancel.is_cancelled() {
            return Err("cancelled".to_owned());
        }
        match estimate(&overrides, std::slice::from_ref(&gpu)) {
            Ok(EstimateDocument { results, .. }) => {
                for result in results.into_iter().filter(|one| is_shown(analysed, one)) {
                    let instance = (result.line, result.template_args.clone());
                    instances.entry(instance).or_default().push(result);
                }
            }
            Err(why) => notes.push(format!("`{gpu}`: {why}")),
        }
    }
    let pages = instances
        .values()
        .map(|results| compare::markdown(results, model.name(), Some(&target), &notes));
    Ok(pages.collect::<Vec<_>>().join("\n---\n\n"))
}
