//! `warplens program --format json`: what whole programs do with the GPU.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::EarlyStart;

/// `warplens program --format json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProgramDocument {
    /// `warplens.program/1`.
    pub schema: &'static str,
    /// One for each file with a `main` that launches something, in the order of their names.
    pub programs: Vec<ProgramAccount>,
    /// Files with a `main` that launches nothing, as far as it was followed.
    pub without_launches: Vec<String>,
}

/// What one program does with the GPU.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProgramAccount {
    /// The file with `main`.
    pub file: String,
    /// How the program is started, and where that is said: `./main 100, Makefile:7`.
    pub run: String,
    /// Profile id.
    pub gpu: String,
    /// Its kernels in order of launches × time; a loop whose iterations are not known counts once.
    pub kernels: Vec<ProgramKernel>,
    /// Copies, in the order in which the program makes the first of each.
    pub transfers: Vec<Transfer>,
    /// Where the host waits for the GPU, in order.
    pub waits: Vec<HostCall>,
    /// Memory that is taken, given back and filled, in order.
    pub memory: Vec<HostCall>,
    /// What would save most, first.
    pub look_first: Vec<LookFirst>,
    /// Sums over the program.
    pub totals: Totals,
    /// Loops and conditions of the host program that decide how often something is done and whose outcome is not known.
    pub unknowns: Vec<Unknown>,
    /// What was not followed, in words.
    pub notes: Vec<String>,
}

/// One kernel of a program.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProgramKernel {
    /// Plain name.
    pub kernel: String,
    /// Template arguments by name.
    pub template_args: BTreeMap<String, String>,
    /// Its file.
    pub file: String,
    /// Line of its name.
    pub line: u32,
    /// How often it is launched.
    pub launches: Times,
    /// Time of all launches; null where it depends on something that is not known.
    pub total_ms: Option<f64>,
    /// Time of the launches whose number and time are known.
    pub at_least_ms: f64,
    /// The time of all launches by what is not known, with units; null where `total_ms` is a number, and where nothing is predicted.
    pub total_formula: Option<String>,
    /// Share of the GPU time of all kernels; null where one of these times is not known.
    pub share: Option<f64>,
    /// The same where each loop whose iterations are not known counts once; null where a time of a launch is not known.
    pub share_of_one_iteration: Option<f64>,
    /// What bounds its longest launch: a key of an estimate's `breakdown`.
    pub bottleneck: Option<&'static str>,
    /// Its different launches, in the order in which the program makes the first of each.
    pub made: Vec<ProgramLaunch>,
}

/// One launch of a kernel, made once or many times.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProgramLaunch {
    /// File of the launch.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// Blocks; null where they follow from sizes that nothing gives.
    pub grid: Option<[u64; 3]>,
    /// The blocks by these sizes.
    pub grid_formula: Option<String>,
    /// Threads of a block; null where the launch does not say them.
    pub block: Option<[u64; 3]>,
    /// How often it is made.
    pub launches: Times,
    /// It may begin before the launch ahead of it in its stream has ended; the times do not count what overlaps.
    pub begins_early: Option<EarlyStart>,
    /// Time of one launch on the GPU; null where it depends on `unknowns`, or nothing is predicted.
    pub time_ms: Option<f64>,
    /// The time by `unknowns`.
    pub time_formula: Option<String>,
    /// Sizes that the time depends on and that nothing gives.
    pub unknowns: Vec<String>,
    /// An interval around `time_ms`, where the model has one.
    pub interval_ms: Option<[f64; 2]>,
    /// A key of an estimate's `breakdown`.
    pub bottleneck: Option<&'static str>,
    /// `estimated`; `assumed` where the launch or an argument that matters is assumed; `unknown` where there is no number.
    #[schemars(extend("enum" = ["estimated", "assumed", "unknown"]))]
    pub certainty: &'static str,
    /// Its time lies between those of launches that were analysed, or it represents launches of a long loop.
    pub interpolated: bool,
    /// Why there is no number.
    pub why: Option<String>,
}

/// How often something is done.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Times {
    /// The number; null where something that is not known decides it.
    pub number: Option<u64>,
    /// As often at least.
    pub at_least: u64,
    /// The number by what decides it: `1 + 2 × iterations(main.cu:57)`; null where it is known.
    pub formula: Option<String>,
}

/// A loop or a condition whose outcome is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unknown {
    /// As formulas write it: `iterations(main.cu:57)`, `if(main.cu:60)`, `else(main.cu:60)`, `case 2 (main.cu:63)`.
    pub symbol: String,
    /// `iterations` of a loop, or `condition`: 1 where it holds, else 0.
    #[schemars(extend("enum" = ["iterations", "condition"]))]
    pub kind: &'static str,
    /// The condition: `n > 0`, of an `else` `!(n > 0)`, of a case `kind == 2`.
    pub text: String,
    /// File.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Iterations that are certain; 0 of a condition.
    pub at_least: u64,
}

/// A copy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Transfer {
    /// The function that is called.
    pub call: String,
    /// File.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Null where it is not known.
    #[schemars(extend("enum" = ["host-to-device", "device-to-host", "device-to-device", null]))]
    pub direction: Option<&'static str>,
    /// Bytes of one copy; null where they are not known.
    pub bytes: Option<u64>,
    /// The number of bytes as the source writes it.
    pub size: String,
    /// The host's side; null where it is not known, and between devices.
    #[schemars(extend("enum" = ["pageable", "pinned", "managed", "device", null]))]
    pub host_memory: Option<&'static str>,
    /// The call may return before the copy is made.
    pub asynchronous: bool,
    /// How often it is made.
    pub copies: Times,
    /// Bytes of all copies; null where one of the two is not known.
    pub total_bytes: Option<u64>,
    /// Time of one copy at the bandwidth of the link (between devices: of device memory): no copy is faster.
    pub at_least_ms: Option<f64>,
    /// The same of all copies.
    pub total_at_least_ms: Option<f64>,
}

/// A call that waits, or that takes or gives back memory.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HostCall {
    /// The function that is called.
    pub call: String,
    /// What it does: `device`, `stream`, `event` (what is waited for); `allocate`, `free`, `fill`.
    pub kind: &'static str,
    /// File.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Bytes, where they are known.
    pub bytes: Option<u64>,
    /// How often.
    pub times: Times,
}

/// Where to look first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LookFirst {
    /// In one sentence.
    pub message: String,
    /// The kernel, where it is one.
    pub kernel: Option<String>,
    /// The rule whose finding says it, where one does.
    pub rule: Option<String>,
    /// File.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Predicted speedup of the kernel, or of the program's GPU time; 1 where none is predicted.
    pub gain: f64,
    /// Time that is saved; null where the number of launches is not known.
    pub saves_ms: Option<f64>,
    /// Part of the GPU time that is saved, a loop whose iterations are not known counted once; null where that is not known.
    pub saves_share: Option<f64>,
}

/// Sums over a program.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Totals {
    /// Time of all kernels; null where it depends on something that is not known.
    pub gpu_ms: Option<f64>,
    /// An interval around it, where each launch has one.
    pub gpu_interval_ms: Option<[f64; 2]>,
    /// Time of the launches whose number and time are known.
    pub gpu_at_least_ms: f64,
    /// The time by what is not known, with units; null where `gpu_ms` is a number, and where a kernel has neither number nor formula.
    pub gpu_formula: Option<String>,
    /// `estimated`, `assumed` where a launch or an argument that matters is assumed, `open` where something is not known.
    #[schemars(extend("enum" = ["estimated", "assumed", "open"]))]
    pub certainty: &'static str,
    /// A launch or an argument that matters is assumed.
    pub rests_on_assumptions: bool,
    /// Launches.
    pub launches: Times,
    /// Launches × the GPU's launch overhead, which the host spends besides; null where their number is not known.
    pub launch_overhead_ms: Option<f64>,
    /// Bytes of all copies to the GPU; null where they are not known.
    pub to_device_bytes: Option<u64>,
    /// The same by what decides how often copies are made; null where it is a number, and where a copy's size is not known.
    pub to_device_formula: Option<String>,
    /// Bytes of all copies from the GPU; null where they are not known.
    pub to_host_bytes: Option<u64>,
    /// The same by what decides how often copies are made.
    pub to_host_formula: Option<String>,
    /// Time of all copies between host and GPU at the bandwidth of the link, at least; null where bytes, their number, their direction or
    /// the link is not known.
    pub transfers_at_least_ms: Option<f64>,
    /// The same of the copies whose bytes and number are known; null where the link is not known.
    pub known_transfers_at_least_ms: Option<f64>,
    /// Bandwidth of the link between host and GPU in one direction, in GB/s; null where the profile does not say it.
    pub host_link_gb_s: Option<f64>,
    /// Where that figure comes from.
    pub host_link_source: Option<String>,
}

/// One program in two versions.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProgramChange {
    /// The file with `main`, from the version's root.
    pub file: String,
    /// Profile id.
    pub gpu: String,
    /// GPU time after over before; null where one is no number.
    pub slowdown: Option<f64>,
    /// The earlier version; null where the program is new.
    pub before: Option<ProgramStanding>,
    /// The later version; null where the program is gone.
    pub after: Option<ProgramStanding>,
}

/// What one program does, in short.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProgramStanding {
    /// How the program is started, and where that is said.
    pub run: String,
    /// Time of all kernels; null where it depends on something that is not known.
    pub gpu_ms: Option<f64>,
    /// The time by what is not known.
    pub gpu_formula: Option<String>,
    /// Launches.
    pub launches: Times,
    /// Bytes of all copies to the GPU; null where they are not known.
    pub to_device_bytes: Option<u64>,
    /// Bytes of all copies from the GPU; null where they are not known.
    pub to_host_bytes: Option<u64>,
    /// Time of all copies at the bandwidth of the link, at least.
    pub transfers_at_least_ms: Option<f64>,
}

impl From<&ProgramAccount> for ProgramStanding {
    fn from(account: &ProgramAccount) -> ProgramStanding {
        let totals = &account.totals;
        ProgramStanding {
            run: account.run.clone(),
            gpu_ms: totals.gpu_ms,
            gpu_formula: totals.gpu_formula.clone(),
            launches: totals.launches.clone(),
            to_device_bytes: totals.to_device_bytes,
            to_host_bytes: totals.to_host_bytes,
            transfers_at_least_ms: totals.transfers_at_least_ms,
        }
    }
}
