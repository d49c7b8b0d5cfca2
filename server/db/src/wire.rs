//! The JSON that scripts and editors read (`shared contract: warplens.estimate/1`, `warplens.check/1`).
//!
//! Lines and columns are 1-based here; columns count UTF-8 bytes. A figure that is not known is null.

mod program;

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

pub use program::*;

/// `warplens estimate --format json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EstimateDocument {
    /// `warplens.estimate/1`.
    pub schema: &'static str,
    /// One for each kernel (launch variant) and GPU.
    pub results: Vec<KernelResult>,
    /// Findings of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// Headers of the file that were not found, as spelled.
    pub missing_includes: Vec<String>,
}

/// One kernel, one launch, one GPU.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KernelResult {
    /// Plain name.
    pub kernel: String,
    /// Template arguments by name.
    pub template_args: BTreeMap<String, String>,
    /// Path as given.
    pub file: String,
    /// Line of the kernel's name; 1 in compiled code.
    pub line: u32,
    /// `cuda`, `opencl`, `hip`, or `assembly` for compiled code.
    #[schemars(extend("enum" = ["cuda", "opencl", "hip", "assembly"]))]
    pub language: &'static str,
    /// Profile id.
    pub gpu: String,
    /// The launch.
    pub launch: Launch,
    /// Which of the kernel's launches this is.
    pub variant: Variant,
    /// Every number that the user did not give and the source does not fix.
    pub assumptions: Vec<Assumption>,
    /// Conditions on free symbols under which exact results hold.
    pub constraints: Vec<String>,
    /// Registers and memory.
    pub resources: Resources,
    /// Resident blocks and warps.
    pub occupancy: Occupancy,
    /// Accesses of the source as written.
    pub accesses: Vec<Access>,
    /// Branches and loops of the source as written.
    pub branches: Vec<Branch>,
    /// Operations summed over all threads of the launch.
    pub counts: Vec<Count>,
    /// Static instructions of the compiled kernel by class: as predicted, or as the compiler made them where
    /// `registers_source` is `compiler`. Empty where not known.
    pub instructions: BTreeMap<String, f64>,
    /// Instructions that the warps of the launch execute; `null` where the compiled kernel could not be followed.
    pub warp_instructions: Option<WarpInstructions>,
    /// By model name.
    pub estimates: BTreeMap<String, Estimate>,
    /// Cycles by source line; shares add up to 1.
    pub lines: Vec<Line>,
    /// The same kernel with one bottleneck removed.
    pub what_if: Vec<WhatIf>,
    /// Edits, findings and causes of waiting in one list, the largest gain first; null where it was not looked for: for the
    /// first GPU under a kernel's costliest launch it is.
    pub what_would_help: Option<Vec<Help>>,
    /// Statements that were not understood; the figures leave them out.
    pub not_understood: Vec<Loss>,
    /// Nothing that the kernel does was understood and no compiler says its registers: they are not known then, nor is the
    /// occupancy.
    #[serde(skip)]
    pub is_opaque: bool,
}

impl KernelResult {
    /// What would help, where it was looked for.
    #[must_use]
    pub fn help(&self) -> &[Help] {
        self.what_would_help.as_deref().unwrap_or_default()
    }
}

/// Executed instructions, each counted once for a warp.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WarpInstructions {
    /// By class, and `total`, over the launch.
    pub classes: BTreeMap<String, f64>,
    /// `estimated`, as the compiled kernel is; `assumed` where how often code runs depends on something assumed besides.
    pub certainty: &'static str,
}

/// `warplens diff --format json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiffDocument {
    /// `warplens.diff/1`.
    pub schema: &'static str,
    /// Every kernel of either version on every GPU asked, in order of file and line.
    pub kernels: Vec<KernelChange>,
    /// Programs whose account changed, in order of file, on the first GPU asked.
    pub programs: Vec<ProgramChange>,
    /// Findings that came and went.
    pub diagnostics: Changed,
}

/// One kernel in two versions.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KernelChange {
    /// Plain name.
    pub kernel: String,
    /// Template arguments by name.
    pub template_args: BTreeMap<String, String>,
    /// Path from the version's root; that of the later version.
    pub file: String,
    /// Where the earlier version had it, if elsewhere.
    pub moved_from: Option<String>,
    /// Profile id.
    pub gpu: String,
    /// Predicted time after over before; null where one is not known.
    pub slowdown: Option<f64>,
    /// True where it is slower than allowed, or has no prediction any more, and nothing justifies it.
    pub regression: bool,
    /// What the source says of it: `// warplens: slower(reason)`.
    pub justification: Option<String>,
    /// The earlier version; null where the kernel is new.
    pub before: Option<Standing>,
    /// The later version; null where the kernel is gone.
    pub after: Option<Standing>,
}

/// What one kernel is predicted to take, in short.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Standing {
    /// Line of the kernel's name.
    pub line: u32,
    /// Blocks; null where they follow from sizes that nothing gives.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block.
    pub block: [u64; 3],
    /// True where the source gives the block size.
    pub launch_known: bool,
    /// Milliseconds, as a profiler's duration of the kernel.
    pub time_ms: Option<f64>,
    /// The time by sizes that nothing gives, with units.
    pub time_formula: Option<String>,
    /// These sizes.
    pub unknowns: Vec<String>,
    /// SM clock cycles.
    pub cycles: Option<f64>,
    /// A key of an estimate's `breakdown`.
    pub bottleneck: Option<&'static str>,
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Bytes that a thread spills.
    pub spill_bytes: u64,
    /// Shared memory of a block, static and dynamic, in bytes.
    pub shared_bytes: u64,
    /// Resident warps over the most that the GPU holds.
    pub occupancy: f64,
    /// Transactions of all global accesses over the launch, before any cache; null where one access is not known.
    pub global_transactions: Option<f64>,
    /// Passes of all shared accesses over the launch; null where one access is not known.
    pub shared_passes: Option<f64>,
    /// Instructions that the warps of the launch execute; null where the compiled kernel could not be followed.
    pub warp_instructions: Option<f64>,
}

/// Findings that came and went.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Changed {
    /// Only in the later version.
    pub added: Vec<Diagnostic>,
    /// Only in the earlier version.
    pub removed: Vec<Diagnostic>,
}

/// One of the launches that were found of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Variant {
    /// From 1, which is the costliest on this GPU.
    pub number: u64,
    /// How many there are.
    pub of: u64,
    /// In a few words: `<<<64, 256>>>`, `?` for what is not known.
    pub text: String,
    /// Which of the launches it is in the order of the text, whatever the GPU.
    #[serde(skip)]
    pub at: usize,
}

/// The launch in force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Launch {
    /// Blocks; null where they follow from sizes that nothing gives.
    pub grid: Option<[u64; 3]>,
    /// The blocks along each axis that has several, by these sizes: `ceil(n / 256)`; `gridDim.x` where nothing says them.
    pub grid_formula: Option<String>,
    /// Threads of a block.
    pub block: [u64; 3],
    /// Bytes.
    pub dynamic_shared_bytes: u64,
    /// Where `block` comes from.
    #[schemars(extend("enum" = ["argument", "set-launch", "directive", "attribute", "launch-site", "run", "settings", "config", "guard", "assumed"]))]
    pub block_source: &'static str,
    /// Where `grid` comes from.
    #[schemars(extend("enum" = ["argument", "set-launch", "directive", "attribute", "launch-site", "run", "settings", "config", "guard", "assumed"]))]
    pub grid_source: &'static str,
    /// How often the program makes the launch, where a run of it was followed and says so.
    pub count: Option<u64>,
    /// How the program was started, and where that is said: `./main 100, Makefile:7`.
    pub run: Option<String>,
    /// It may begin before the launch ahead of it in its stream has ended (programmatic stream serialization); null where it
    /// begins behind it.
    pub begins_early: Option<EarlyStart>,
}

/// How a launch begins that need not wait for the one ahead of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EarlyStart {
    /// The line where the kernel waits for it, `griddepcontrol.wait`: what is before overlaps. Null where it nowhere waits.
    pub waits_at: Option<u32>,
}

/// An assumed number.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Assumption {
    /// What.
    pub symbol: String,
    /// Its value.
    pub value: String,
    /// Where from.
    pub source: String,
}

/// Registers and memory of a thread or block.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Resources {
    /// Registers; on AMD the VGPRs.
    pub registers_per_thread: u32,
    /// Registers that the lanes of a wave share (SGPRs); null where there are none, and where the compiler did not report them.
    pub sgprs_per_wave: Option<u32>,
    /// `estimated`, `compiler` or `user`.
    #[schemars(extend("enum" = ["estimated", "compiler", "user"]))]
    pub registers_source: &'static str,
    /// Static shared memory of a block in bytes.
    pub static_shared_bytes: u64,
    /// Local memory of a thread in bytes.
    pub local_bytes_per_thread: u64,
    /// Spilled bytes; null where not known.
    pub spill_bytes: Option<u64>,
    /// What a compiler said of the kernel last; null where none did.
    pub compiler: Option<Compiler>,
}

/// What a compiler said of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Compiler {
    /// The compiler: `nvcc`.
    pub tool: String,
    /// False where the kernel was edited since: then the figures beside this are estimates.
    pub current: bool,
    /// Registers.
    pub registers_per_thread: u32,
    /// Static shared memory of a block in bytes.
    pub static_shared_bytes: u64,
    /// Local memory of a thread in bytes.
    pub stack_bytes: u64,
    /// Bytes that spilling stores.
    pub spill_store_bytes: u64,
    /// Bytes that spilling loads.
    pub spill_load_bytes: u64,
    /// Static instructions by class.
    pub instructions: BTreeMap<String, u64>,
}

/// Resident blocks and warps.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Occupancy {
    /// Blocks on one SM.
    pub active_blocks_per_sm: u32,
    /// Warps on one SM.
    pub active_warps_per_sm: u32,
    /// Of the most the SM holds.
    pub fraction: f64,
    /// `registers`, `shared`, `warps`, `blocks` or `grid`.
    #[schemars(extend("enum" = ["registers", "shared", "warps", "blocks", "grid"]))]
    pub limiter: &'static str,
    /// What would let one more block in, in words; null at the top.
    pub next_step: Option<String>,
}

/// A line reached through a call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Via {
    /// File.
    pub file: String,
    /// Line.
    pub line: u32,
}

/// One access.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Access {
    pub file: String,
    pub line: u32,
    pub column: u32,
    /// The call chain, outermost first; empty in the kernel itself.
    pub via: Vec<Via>,
    pub text: String,
    #[schemars(extend("enum" = ["global", "shared", "local", "constant", "texture"]))]
    pub space: &'static str,
    #[schemars(extend("enum" = ["load", "store", "atomic"]))]
    pub op: &'static str,
    /// The PTX instruction by its mnemonic, where the source writes one.
    pub instruction: Option<String>,
    pub bytes_per_lane: u32,
    /// Bytes that one request moves.
    pub bytes_per_request: Option<f64>,
    pub index: String,
    #[schemars(extend("enum" = ["coalesced", "broadcast", "strided", "scattered", "data-dependent", "unknown"]))]
    pub pattern: &'static str,
    pub transactions_per_request: Option<f64>,
    pub ideal_transactions_per_request: Option<f64>,
    pub transaction_bytes: Option<u32>,
    pub passes_per_request: Option<f64>,
    pub ideal_passes_per_request: Option<f64>,
    pub bank_conflict_degree: Option<f64>,
    pub requests: Option<f64>,
    pub active_lanes_per_request: Option<f64>,
    pub exact: bool,
    #[schemars(extend("enum" = ["exact", "assumed", "unknown"]))]
    pub certainty: &'static str,
    /// Why it is not exact.
    pub why: Option<String>,
    pub constraints: Vec<String>,
    /// One case outside the constraints, where it costs something else.
    pub other_case: Option<OtherCase>,
}

/// What an access costs where its constraints do not hold.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OtherCase {
    /// The values it holds for: `n = 1025`.
    pub when: String,
    /// Transactions or passes per request.
    pub cost: f64,
    /// The same at best.
    pub ideal: f64,
}

/// One branch or loop.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Branch {
    pub file: String,
    pub line: u32,
    pub column: u32,
    /// The call chain, outermost first; empty in the kernel itself.
    pub via: Vec<Via>,
    #[schemars(extend("enum" = ["if", "loop", "switch", "select"]))]
    pub kind: &'static str,
    #[schemars(extend("enum" = ["uniform", "warp-uniform", "divergent", "data-dependent"]))]
    pub uniformity: &'static str,
    pub divergent_warp_fraction: Option<f64>,
    pub taken_warp_fraction: Option<f64>,
    pub exact: bool,
    #[schemars(extend("enum" = ["exact", "assumed", "unknown"]))]
    pub certainty: &'static str,
    /// Why it is not exact.
    pub why: Option<String>,
    pub constraints: Vec<String>,
}

/// Operations of one class.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Count {
    #[schemars(extend("enum" = ["fp16", "fp32", "fp64", "int", "sfu", "conversion", "global_load", "global_store", "shared_load", "shared_store", "constant_load", "local_load", "local_store", "atomic", "barrier", "branch", "tensor"]))]
    pub class: &'static str,
    /// As a function of the kernel's integer parameters, under this launch, for parameters of the sign that
    /// the arguments have.
    pub expr: Option<String>,
    pub value: Option<f64>,
    pub exact: bool,
}

/// What one model answers.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Estimate {
    /// SM clock cycles from the first block's start to the last one's end. Null where they depend on `unknowns`.
    pub cycles: Option<f64>,
    /// Milliseconds, `cycles` over the SM clock, as a profiler's duration of the kernel.
    pub time_ms: Option<f64>,
    /// Milliseconds that the launch takes beside that; in no other figure.
    pub launch_overhead_ms: f64,
    /// The time by the unknowns, with units: `0.0123 ns × n + 2.1 µs`. Null where it is a number, and where no short sum of products
    /// gives it.
    pub time_formula: Option<String>,
    /// The least values of the unknowns for which `time_formula` was found to hold: they fill the GPU.
    pub time_formula_from: BTreeMap<String, i64>,
    /// What the time does not fall below however small the unknown is that only says how often something is repeated, as a formula of
    /// the others: `6.17 ps × n + 1.60 µs`. Null where `time_formula` says as much.
    pub time_formula_least: Option<String>,
    /// Its least and its most in milliseconds where the unknowns are flags (`bool`), each combination of which was tried; else null.
    pub time_range: Option<[f64; 2]>,
    /// Sizes that nothing gives and that the time depends on: integer parameters, and extents of the grid.
    pub unknowns: Vec<String>,
    pub cycles_function: Option<String>,
    pub bottleneck: Option<&'static str>,
    pub breakdown: Breakdown,
    pub interval: Option<[f64; 2]>,
    pub detail: BTreeMap<String, f64>,
    /// Why the model does not apply, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Parts of `cycles`, in cycles; they sum to it. Where the time depends on unknowns they are shares of it, and sum
/// to 1.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Breakdown {
    pub compute: f64,
    /// The matrix units.
    pub tensor: f64,
    pub memory_bandwidth: f64,
    pub memory_latency: f64,
    /// Copies past the registers that are waited for.
    pub async_copy: f64,
    pub shared: f64,
    pub divergence: f64,
    pub synchronisation: f64,
}

/// Cost of one source line.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Line {
    pub file: String,
    pub line: u32,
    /// Null where the kernel's are.
    pub cycles: Option<f64>,
    pub share: f64,
}

/// Something that would help a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Help {
    /// `edit`: it is proved, and an editor offers it. `finding`: no edit cures it. `cause`: what the kernel waits for and no
    /// finding says.
    #[schemars(extend("enum" = ["edit", "finding", "cause"]))]
    pub kind: &'static str,
    /// One line with what it gains.
    pub title: String,
    /// Predicted time of the kernel before over after.
    pub gain: f64,
    /// From 1: where it is, or where most of it is; null where that is no place.
    pub line: Option<u32>,
    /// The rule of a finding or an edit.
    pub rule: Option<String>,
    /// The factor of a cause.
    pub factor: Option<&'static str>,
}

/// The kernel without one factor.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WhatIf {
    pub factor: &'static str,
    /// Null where the kernel's are.
    pub cycles: Option<f64>,
    pub speedup: f64,
}

/// One finding.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Diagnostic {
    pub rule: String,
    /// `error`, `warning`, `information` or `hint`.
    #[schemars(extend("enum" = ["error", "warning", "information", "hint"]))]
    pub severity: &'static str,
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
    /// One line: what it gains, what to do, the figure that says so.
    pub message: String,
    /// Further lines: the cause in full, what it depends on.
    pub details: Vec<String>,
    /// Predicted whole-kernel speedup of removing the cause; 1.0 when there is none.
    pub gain: f64,
    /// The finding that this one repeats: it is about a copy of the same line. Only where several files are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<Place>,
    /// Plain name of the kernel; null for a finding about the file.
    pub kernel: Option<String>,
    /// Predicted milliseconds of the kernel as it is; null where there is no prediction, and where its launches take different times.
    pub time_ms: Option<f64>,
    /// Address of the rule's page.
    pub help: String,
    /// Edits that remove the cause, each proved by analysing the edited text; null where none were looked for.
    pub fixes: Option<Vec<Fix>>,
}

impl Diagnostic {
    /// The message and the lines below it, for forms that have one text.
    #[must_use]
    pub fn whole(&self) -> String {
        let lines = std::iter::once(&self.message).chain(&self.details);
        lines.map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// One edit of a file, in one or several places.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Fix {
    /// What it does and what it gains.
    pub title: String,
    /// Predicted time of the kernel before over after.
    pub gain: f64,
    /// What it replaces, in the order of the text, none overlapping.
    pub edits: Vec<Replacement>,
}

/// One stretch of a file and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Replacement {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
    pub new_text: String,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

/// `warplens check --format json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckDocument {
    /// `warplens.check/1`.
    pub schema: &'static str,
    pub diagnostics: Vec<Diagnostic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
}

/// A statement that was not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Loss {
    pub kernel: String,
    pub file: String,
    pub line: u32,
    pub column: u32,
    /// In a few words.
    pub reason: String,
    /// The beginning of what is there.
    pub text: String,
}

/// How well the files were understood.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Stats {
    pub files: u64,
    pub unreadable_files: u64,
    pub kernels: u64,
    pub clean: u64,
    pub partial: u64,
    pub failed: u64,
    pub launch_known: u64,
    /// Of the kernels with a known block size: accesses to global and shared memory, and how many of them are
    /// exact, some under constraints that stand beside them.
    pub accesses: u64,
    pub accesses_exact: u64,
    /// The same of branches and loops.
    pub branches: u64,
    pub branches_exact: u64,
    pub seconds: f64,
    pub reasons: BTreeMap<String, u64>,
    /// Headers that were not found, as spelled, and how many files miss each.
    pub missing_includes: BTreeMap<String, u64>,
    /// Each of them with its place, where asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}

/// One line of `warplens sweep`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SweepLine {
    /// The configuration's id; of a space, its parameters and their values.
    pub id: serde_json::Value,
    /// Milliseconds, as a profiler's duration of the kernel; null where it cannot be launched, nothing is predicted, or a size is not given.
    pub time_ms: Option<f64>,
    /// The time by sizes that nothing gives, with units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_formula: Option<String>,
    /// These sizes; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknowns: Vec<String>,
    /// SM clock cycles.
    pub cycles: Option<f64>,
    /// A key of an estimate's `breakdown`.
    pub bottleneck: Option<&'static str>,
    /// Resident warps over the most that the GPU holds.
    pub occupancy: Option<f64>,
    /// Registers of a thread.
    pub registers_per_thread: Option<u32>,
    /// Shared memory of a block, static and dynamic, in bytes.
    pub shared_bytes: Option<u64>,
    /// False where it cannot be launched or nothing is predicted.
    pub valid: bool,
    /// Why not.
    pub why_invalid: Option<String>,
    /// What neither the configuration nor the source says; absent where they say all. Pointers are taken to be aligned besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<Assumption>,
}

impl SweepLine {
    /// A configuration that nothing is predicted of.
    pub fn invalid(id: serde_json::Value, why: String) -> SweepLine {
        SweepLine {
            id,
            time_ms: None,
            time_formula: None,
            unknowns: Vec::new(),
            cycles: None,
            bottleneck: None,
            occupancy: None,
            registers_per_thread: None,
            shared_bytes: None,
            valid: false,
            why_invalid: Some(why),
            assumptions: Vec::new(),
        }
    }
}
