//! The commands of `workspace/executeCommand`, one a file. Each takes one object.

pub mod breakdown;
pub mod compare_gpus;
pub mod compare_kernels;
mod document;
pub mod estimate;
pub mod fixes;
pub mod graph;
pub mod heat;
pub mod kernels;
pub mod lanes;
pub mod next_launch;
pub mod pin;
pub mod program;
pub mod report;
pub mod select_gpu;
pub mod set_launch;
pub mod set_run;
pub mod target;
pub mod try_launch;
pub mod what_would_help;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tower_lsp_server::jsonrpc::Result;

use crate::requests::invalid;

pub const SELECT_GPU: &str = "warplens.selectGpu";
pub const SET_LAUNCH: &str = "warplens.setLaunch";
pub const SET_RUN: &str = "warplens.setRun";
pub const TRY_LAUNCH: &str = "warplens.tryLaunch";
pub const NEXT_LAUNCH: &str = "warplens.nextLaunch";
pub const PIN: &str = "warplens.pin";
pub const ESTIMATE: &str = "warplens.estimate";
pub const BREAKDOWN: &str = "warplens.breakdown";
pub const COMPARE_GPUS: &str = "warplens.compareGpus";
pub const COMPARE_KERNELS: &str = "warplens.compareKernels";
pub const KERNELS: &str = "warplens.kernels";
pub const FIXES: &str = "warplens.fixes";
pub const TARGET: &str = "warplens.target";
pub const REPORT: &str = "warplens.report";
pub const PROGRAM: &str = "warplens.program";
pub const GRAPH: &str = "warplens.graph";
pub const HEAT: &str = "warplens.heat";
pub const LANES: &str = "warplens.lanes";
pub const WHAT_WOULD_HELP: &str = "warplens.whatWouldHelp";

/// All of them.
pub const NAMES: [&str; 19] = [
    SELECT_GPU,
    SET_LAUNCH,
    SET_RUN,
    TRY_LAUNCH,
    NEXT_LAUNCH,
    PIN,
    ESTIMATE,
    BREAKDOWN,
    COMPARE_GPUS,
    COMPARE_KERNELS,
    KERNELS,
    FIXES,
    TARGET,
    REPORT,
    PROGRAM,
    GRAPH,
    HEAT,
    LANES,
    WHAT_WOULD_HELP,
];

/// What is going on while one of them takes long.
pub fn title(command: &str) -> &'static str {
    match command {
        COMPARE_GPUS => "warplens: comparing GPUs",
        REPORT => "warplens: making the report",
        PROGRAM => "warplens: accounting for the program",
        WHAT_WOULD_HELP | FIXES => "warplens: trying what would help",
        BREAKDOWN => "warplens: running every model",
        _ => "warplens: predicting",
    }
}

/// Reads the parameters of a command.
fn params<T: DeserializeOwned>(command: &str, value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| invalid(format!("{command}: {error}")))
}
