//! `warplens.setLaunch {uri, kernel, grid, block, args}`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tower_lsp_server::jsonrpc::Result;
use warplens_db::LaunchValues;
use warplens_db::settings::Scalar;

use crate::configuration::three;
use crate::requests::invalid;
use crate::session::Session;

/// A launch of a kernel, as an editor says it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchParams {
    pub uri: String,
    pub kernel: String,
    grid: Option<Extents>,
    block: Option<Extents>,
    #[serde(alias = "dynamicShared", alias = "dynamic_shared_bytes")]
    dynamic_shared_bytes: Option<u64>,
    args: Option<BTreeMap<String, Scalar>>,
}

/// `256`, `[16, 16]` or `[8, 8, 4]`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Extents {
    One(u64),
    Several(Vec<u64>),
}

impl LaunchParams {
    /// Its values: what is left out is left to the source and the settings.
    pub fn values(&self) -> Result<LaunchValues> {
        let mut values = LaunchValues {
            grid: extents("grid", self.grid.as_ref())?,
            block: extents("block", self.block.as_ref())?,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            ..LaunchValues::default()
        };
        for (name, value) in self.args.iter().flatten() {
            values.give(name, *value);
        }
        Ok(values)
    }
}

/// Sets a kernel's launch for this session. What is left out is left to the source and the settings;
/// leaving everything out takes an earlier choice back.
pub fn run(session: &Arc<Session>, argument: Value) -> Result<Value> {
    let argument: LaunchParams = super::params(super::SET_LAUNCH, argument)?;
    let values = argument.values()?;
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
fn extents(name: &str, given: Option<&Extents>) -> Result<Option<[u64; 3]>> {
    let given = match given {
        None => return Ok(None),
        Some(Extents::One(x)) => std::slice::from_ref(x),
        Some(Extents::Several(all)) => all,
    };
    if given.is_empty() || given.len() > 3 || given.contains(&0) {
        return Err(invalid(format!(
            "`{name}` is one to three numbers from 1 on, not {given:?}"
        )));
    }
    Ok(Some(three(given)))
}
