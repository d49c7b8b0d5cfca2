//! `warplens.setLaunch {uri, kernel, grid, block, args}`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tower_lsp_server::jsonrpc::Result;
use warplens_db::LaunchValues;

use crate::configuration::three;
use crate::requests::invalid;
use crate::session::Session;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetLaunchParams {
    uri: String,
    kernel: String,
    grid: Option<Extents>,
    block: Option<Extents>,
    #[serde(alias = "dynamicShared", alias = "dynamic_shared_bytes")]
    dynamic_shared_bytes: Option<u64>,
    args: Option<BTreeMap<String, i64>>,
}

/// `256`, `[16, 16]` or `[8, 8, 4]`.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Extents {
    One(u64),
    Several(Vec<u64>),
}

/// Sets a kernel's launch for this session. What is left out is left to the source and the settings;
/// leaving everything out takes an earlier choice back.
pub fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let argument: SetLaunchParams = super::params(super::SET_LAUNCH, argument)?;
    let values = LaunchValues {
        grid: extents("grid", argument.grid)?,
        block: extents("block", argument.block)?,
        global: None,
        dynamic_shared_bytes: argument.dynamic_shared_bytes,
        args: argument.args.unwrap_or_default(),
    };
    {
        let mut state = session.state();
        let launches = state.chosen.launches.entry(argument.uri).or_default();
        if values == LaunchValues::default() {
            launches.remove(&argument.kernel);
        } else {
            launches.insert(argument.kernel, values);
        }
    }
    session.settings_changed();
    Ok(Value::Null)
}

/// One to three numbers from 1 on as three.
pub fn extents(name: &str, given: Option<Extents>) -> Result<Option<[u64; 3]>> {
    let given = match given {
        None => return Ok(None),
        Some(Extents::One(x)) => vec![x],
        Some(Extents::Several(all)) => all,
    };
    if given.is_empty() || given.len() > 3 || given.contains(&0) {
        return Err(invalid(format!(
            "`{name}` is one to three numbers from 1 on, not {given:?}"
        )));
    }
    Ok(Some(three(&given)))
}
