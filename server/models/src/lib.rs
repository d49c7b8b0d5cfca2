//! Performance models: facts, launch and hardware profile in, an estimate with its own named quantities out.
//!
//! One model a file. A model sees facts, never syntax; it is pure and answers in well under a millisecond.

pub mod auto;
mod entry;
mod function;
pub mod input;
pub mod linear;
pub mod mwp_cwp;
mod registry;
mod reuse;
pub mod timing;
pub mod trace;
pub mod wfg;
mod work;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

pub use input::{
    Change, Defect, DynamicCounts, ExecutedAccess, ExecutedCall, ExecutedFlow, ExpectedRequest,
    Instructions, ModelInput, Object, Resources, WarpInstructions, residence,
};
pub use registry::ModelId;

use entry::Answers;
use warplens_facts::facts::Reason;

/// What a model may be asked to imagine away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Factor {
    /// Every shared request in its ideal number of passes.
    BankConflicts,
    /// Every global request in its ideal number of transactions.
    Uncoalesced,
    /// No branch splits a warp.
    Divergence,
    /// Memory answers at once.
    Latency,
    /// Barriers cost nothing.
    Synchronisation,
    /// As many warps resident as the SM holds.
    Occupancy,
}

impl Factor {
    /// Every factor, in the order of the contract.
    pub const ALL: [Factor; 6] = [
        Factor::BankConflicts,
        Factor::Uncoalesced,
        Factor::Divergence,
        Factor::Latency,
        Factor::Synchronisation,
        Factor::Occupancy,
    ];

    /// The name on the command line and in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Factor::BankConflicts => "bank-conflicts",
            Factor::Uncoalesced => "uncoalesced",
            Factor::Divergence => "divergence",
            Factor::Latency => "latency",
            Factor::Synchronisation => "synchronisation",
            Factor::Occupancy => "occupancy",
        }
    }
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The kernel under its launch on its GPU.
    pub input: &'a ModelInput,
    /// Imagine these away.
    pub without: &'a [Factor],
    /// Run at most this many warps at a time on each SM, the launch unchanged.
    pub warps_per_sm: Option<u32>,
    /// One access imagined ideal (index into the input's accesses): what a finding would gain.
    pub ideal_access: Option<usize>,
    /// Set once the answer is not needed any more: a model that simulates stops soon after.
    pub cancel: Option<&'a AtomicBool>,
}

impl<'a> Question<'a> {
    /// The kernel as it is, nothing imagined away.
    pub fn of(input: &'a ModelInput) -> Question<'a> {
        Question {
            input,
            without: &[],
            warps_per_sm: None,
            ideal_access: None,
            cancel: None,
        }
    }

    /// True where the answer is not needed any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancel
            .is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}

/// Where the cycles go; the parts sum to the estimate's cycles.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Breakdown {
    /// Issuing and executing arithmetic.
    pub compute: f64,
    /// The matrix units.
    pub tensor: f64,
    /// Waiting for the memory's bandwidth.
    pub memory_bandwidth: f64,
    /// Waiting for memory latency that nothing covers.
    pub memory_latency: f64,
    /// Waiting for copies past the registers that nothing covers.
    pub async_copy: f64,
    /// The shared-memory pipe.
    pub shared: f64,
    /// Work of lanes that are switched off.
    pub divergence: f64,
    /// Barriers.
    pub synchronisation: f64,
}

impl Breakdown {
    /// Multiplies each part.
    pub(crate) fn scale(&mut self, by: f64) {
        for part in [
            &mut self.compute,
            &mut self.tensor,
            &mut self.memory_bandwidth,
            &mut self.memory_latency,
            &mut self.async_copy,
            &mut self.shared,
            &mut self.divergence,
            &mut self.synchronisation,
        ] {
            *part *= by;
        }
    }
}

/// A key of [`Breakdown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bottleneck {
    /// Arithmetic.
    Compute,
    /// Matrix units.
    Tensor,
    /// Bandwidth.
    MemoryBandwidth,
    /// Latency.
    MemoryLatency,
    /// Copies past the registers.
    AsyncCopy,
    /// Shared memory.
    Shared,
    /// Divergence.
    Divergence,
    /// Barriers.
    Synchronisation,
}

impl Bottleneck {
    /// The name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Bottleneck::Compute => "compute",
            Bottleneck::Tensor => "tensor",
            Bottleneck::AsyncCopy => "async_copy",
            Bottleneck::MemoryBandwidth => "memory_bandwidth",
            Bottleneck::MemoryLatency => "memory_latency",
            Bottleneck::Shared => "shared",
            Bottleneck::Divergence => "divergence",
            Bottleneck::Synchronisation => "synchronisation",
        }
    }
}

/// What a time depends on that nothing gives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenTime {
    /// Integer parameters, and extents of the grid as the language writes them: `n`, `gridDim.x`.
    pub unknowns: Vec<String>,
    /// The time in these, with units: `0.0123 ns × n + 2.1 µs`, or from its least to its most where all unknowns are flags:
    /// `1.2 ms to 3.4 ms`; `None` where no short sum gives it.
    pub formula: Option<String>,
    /// The least values for which the formula was found to hold: they fill the GPU.
    pub from: Vec<(String, i64)>,
    /// What the time does not fall below however small the size is that only says how often something is repeated, as a formula
    /// of the others; `None` where the formula says as much.
    pub least: Option<String>,
    /// Its least and its most in milliseconds, where all unknowns are flags: each combination was tried.
    pub range: Option<[f64; 2]>,
}

impl OpenTime {
    /// The formula with what it does not fall below: `0.31 µs × n, at least 12 µs`.
    pub fn text(&self) -> Option<String> {
        let formula = self.formula.clone()?;
        Some(match &self.least {
            Some(least) => format!("{formula}, at least {least}"),
            None => formula,
        })
    }
}

/// What a model answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// SM clock cycles from the first block's start to the last one's end; `None` where the model does not apply.
    pub cycles: Option<f64>,
    /// `cycles / SM clock`, as a profiler's duration of the kernel.
    pub time_ms: Option<f64>,
    /// What the launch takes beside that; in no other figure.
    pub launch_overhead_ms: f64,
    /// The cycles as a function of a parameter, where one is free.
    pub cycles_function: Option<String>,
    /// The largest part.
    pub bottleneck: Option<Bottleneck>,
    /// All parts.
    pub breakdown: Breakdown,
    /// An honest interval around `cycles`, where the model has one.
    pub interval: Option<[f64; 2]>,
    /// The model's own quantities under their published names.
    pub detail: BTreeMap<String, f64>,
    /// Why it does not apply, where it does not.
    pub why: Option<String>,
    /// Where the time depends on sizes that nothing gives: which, and how. `cycles` and `time_ms` are `None` then, and the
    /// parts are shares of the time. No model sets it; who asks for several sizes does.
    pub open: Option<OpenTime>,
    /// Cycles attributed to source lines (relative to the kernel); they sum to `cycles`.
    pub lines: Vec<(u32, f64)>,
}

/// Applies one model.
///
/// The answer is finite, or `cycles` is `None` and `why` says what is missing. A model that simulates and was cancelled
/// says so.
pub fn estimate(model: ModelId, question: &Question) -> Estimate {
    let mut estimates = apply(std::slice::from_ref(&model), question);
    estimates.remove(&model).unwrap_or_default()
}

/// Applies every model that answers within a keystroke: one reading of the facts serves them all.
pub fn estimates(question: &Question) -> BTreeMap<ModelId, Estimate> {
    apply(&ModelId::analytical(), question)
}

fn apply(models: &[ModelId], question: &Question) -> BTreeMap<ModelId, Estimate> {
    if let Some(why) = nothing_to_run(question) {
        let nothing = Estimate {
            why: Some(why),
            ..Estimate::default()
        };
        return models.iter().map(|&of| (of, nothing.clone())).collect();
    }
    let work = work::Work::new(question);
    let mut estimates: BTreeMap<ModelId, Estimate> = models
        .iter()
        .map(|&model| (model, (model.entry().estimate)(&work)))
        .collect();
    for (&model, estimate) in &mut estimates {
        if let Some(cycles) = estimate.cycles
            && estimate.cycles_function.is_none()
            && model.entry().answers == Answers::Equations
        {
            let solve = |question: &Question| cycles_by(model, question);
            estimate.cycles_function = function::of_trips(question, cycles, &solve);
        }
    }
    estimates
}

/// The time by a model with each factor imagined away, one at a time on top of `input.without`, and how many times
/// faster that is. Empty where the launch cannot run or the model does not apply.
///
/// Less work never takes longer here. A model that simulates may find a worse order of the same instructions where
/// something less is waited for, and one whose equations weigh a factor otherwise than the machine may gain by it: the
/// answer is then that there is nothing to gain.
pub fn what_if(model: ModelId, question: &Question) -> Vec<(Factor, f64, f64)> {
    let Some(now) = cycles_by(model, question) else {
        return Vec::new();
    };
    let mut without = question.without.to_vec();
    let mut answers = Vec::with_capacity(Factor::ALL.len());
    for factor in Factor::ALL {
        without.push(factor);
        let imagined = Question {
            without: &without,
            ..*question
        };
        if let Some(cycles) = cycles_by(model, &imagined) {
            answers.push((factor, cycles.min(now), speedup(now, cycles)));
        }
        without.pop();
    }
    answers
}

/// The cycles by [`auto`] alone, without what else an estimate has: the cheap answer for gains.
pub fn cycles(question: &Question) -> Option<f64> {
    cycles_by(ModelId::Auto, question)
}

/// How many times faster `after` is than `before`, `before` being the same kernel with more to do; 1 where
/// there was no time to save.
pub fn speedup(before: f64, after: f64) -> f64 {
    // Nothing takes less than a cycle. Where loops carry loads from one iteration to the next the chain's
    // length is approximate and may differ by a little in the wrong direction.
    (before / after.max(1.0)).max(1.0)
}

/// The cycles by one model, without what else it says.
pub fn cycles_by(model: ModelId, question: &Question) -> Option<f64> {
    if nothing_to_run(question).is_some() {
        return None;
    }
    let work = work::Work::new(question);
    let cycles = (model.entry().cycles)(&work);
    cycles.filter(|cycles| cycles.is_finite())
}

/// Why there is no time to speak of.
fn nothing_to_run(question: &Question) -> Option<String> {
    let input = question.input;
    let launch = &input.launch;
    if launch.blocks() == 0 || launch.threads_per_block() == 0 {
        Some("the launch has no threads".to_owned())
    } else if input.occupancy.limiter == warplens_machine::Limiter::Grid
        && let Some(why) = &input.occupancy.why_impossible
    {
        Some(format!("the launch fails: {why}"))
    } else if input.occupancy.active_blocks_per_sm == 0 {
        Some(format!(
            "no block of this launch fits on {}",
            input.profile.name
        ))
    } else if input.flow.nodes.is_empty() && !input.facts.not_understood.is_empty() {
        let mut lost = input.facts.not_understood.iter();
        let layouts = lost.find(|one| one.reason == Reason::Layouts);
        Some(match layouts {
            Some(layouts) => layouts.reason.to_string(),
            None => "nothing that the kernel does was understood".to_owned(),
        })
    } else {
        None
    }
}
