//! `warplens.tryLaunch {uri, kernel, grid?, block?, dynamic_shared_bytes?, args?}`

use std::sync::Arc;

use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::Result;
use warplens_db::LaunchValues;
use warplens_report::check;
use warplens_report::figure::words;

use crate::commands::set_launch::LaunchParams;
use crate::convert;
use crate::directive;
use crate::documents::Analysed;
use crate::peer::Peer;
use crate::render::launch;
use crate::requests::invalid;
use crate::session::Session;
use crate::trial::Trial;

/// Returns what the kernel is predicted to take under these values, what fills the GPU, the blocks that the launch could have, and
/// the edit that states the values above the kernel. Nothing is chosen by it. What is left out is what holds without.
pub async fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let params: LaunchParams = super::params(super::TRY_LAUNCH, argument)?;
    let values = params.values()?;
    let (uri, kernel) = (params.uri, params.kernel);
    let analysed = super::document::analysed(session, &uri).await?;
    let (shared, name) = (session.clone(), kernel.clone());
    let answer = session
        .run(move |cancel| {
            let tried = (values != LaunchValues::default()).then(|| values.clone());
            let trial = Trial::of(shared.engine(), &analysed, &name, None, tried, cancel)?;
            Some(answer(&analysed, &trial, &values, shared.peer()))
        })
        .await?;
    answer.ok_or_else(|| invalid(format!("there is no kernel `{kernel}` in this file")))
}

fn answer(analysed: &Analysed, trial: &Trial, tried: &LaunchValues, peer: &Peer) -> Value {
    let analysis = &trial.kernel.analysis;
    let launch = analysis.facts.launch;
    let occupancy = &analysis.input.occupancy;
    let possible = occupancy.why_impossible.is_none();
    let estimate = analysis.estimate();
    let grid_formula = analysis.grid_formula();
    let arguments = analysis.launch_arguments();
    let arguments: Vec<Value> = arguments
        .iter()
        .map(|one| json!({"name": one.name, "value": one.value, "given": one.is_given}))
        .collect();
    let choices: Vec<Value> = trial
        .choices
        .choices
        .iter()
        .map(|choice| {
            json!({
                "block": choice.block,
                "grid": choice.grid,
                "time_ms": choice.time_ms,
                "time": launch::shown_time(choice),
                "occupancy": choice.occupancy,
                "now": choice.is_present,
                "why_impossible": choice.why_impossible,
            })
        })
        .collect();
    let stated = stated(trial, tried, grid_formula.is_none());
    let rope = analysed.document.rope();
    let line = rope.byte_to_line(trial.kernel.start.min(rope.len_bytes()));
    let edit = directive::stating(rope, line, &stated);
    json!({
        "kernel": analysis.facts.name,
        "gpu": {"id": analysis.profile.id, "name": analysis.profile.name},
        "launch": {
            "grid": grid_formula.is_none().then_some(launch.grid),
            "grid_formula": grid_formula,
            "block": launch.block,
            "dynamic_shared_bytes": launch.dynamic_shared_bytes,
            "grid_source": launch.grid_source.name(),
            "block_source": launch.block_source.name(),
        },
        "arguments": arguments,
        "why_impossible": occupancy.why_impossible,
        "time": possible.then(|| check::shown_time(&estimate)).flatten(),
        "time_ms": estimate.time_ms.filter(|_| possible),
        "bottleneck": estimate.bottleneck.filter(|_| possible).map(|bound| words(bound.name())),
        "occupancy": occupancy.fraction,
        "limiter": occupancy.limiter.name(),
        "waves": analysis.waves().filter(|_| possible),
        "choices": choices,
        "stand_ins": launch::stand_ins(trial),
        "fixed": trial.choices.fixed.as_ref().map(launch::why_fixed),
        "directive": directive::comment(&stated),
        "edit": edit.map(|edit| convert::workspace_edit(analysed, &[edit], peer)),
    })
}

/// What a directive states of a launch: what was tried, and the parts of the launch that are known.
fn stated(trial: &Trial, tried: &LaunchValues, grid_is_known: bool) -> Vec<(String, String)> {
    let launch = trial.kernel.analysis.facts.launch;
    let mut values = vec![("block".to_owned(), directive::extents(launch.block))];
    if grid_is_known {
        values.push(("grid".to_owned(), directive::extents(launch.grid)));
    }
    if launch.dynamic_shared_bytes > 0 {
        let bytes = launch.dynamic_shared_bytes.to_string();
        values.push(("dynamic_shared".to_owned(), bytes));
    }
    let arguments = tried.args.iter();
    values.extend(arguments.map(|(name, value)| (name.clone(), value.to_string())));
    let reals = tried.reals.iter();
    values.extend(reals.map(|(name, value)| (name.clone(), value.value().to_string())));
    values
}
