//! Facts of the source and the compiled kernel, joined.
//!
//! In go immutable facts, the compiled kernel, the GPU and what a block takes of an SM; out comes a [`ModelInput`].

use std::sync::Arc;

use warplens_codegen::CompiledKernel;
use warplens_facts::facts::{Access, Launch, SourceFacts, Space};
use warplens_machine::{Occupancy, Profile, occupancy};

use super::calls::ExecutedCall;
use super::copies;
use super::dynamic::{DynamicCounts, WarpInstructions};
use super::executed::{self, ExecutedAccess, ExecutedFlow};

/// What a thread and a block take of an SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// Registers of a thread; 0 where they are not known.
    pub registers_per_thread: u32,
    /// Static shared memory of a block.
    pub static_shared_bytes: u64,
    /// Bytes of the arguments of a block, where they live in shared memory.
    pub argument_shared_bytes: u64,
    /// Bytes of arrays that a thread keeps in local memory.
    pub local_bytes_per_thread: u64,
    /// Bytes of registers that a thread keeps there.
    pub spill_bytes_per_thread: u64,
}

/// One kernel under one launch on one GPU, as the machine executes it.
#[derive(Debug, Clone)]
pub struct ModelInput {
    /// The source as written.
    pub facts: Arc<SourceFacts>,
    /// What the machine executes.
    pub compiled: Arc<CompiledKernel>,
    /// The GPU.
    pub profile: Arc<Profile>,
    /// The launch: the facts', unless a change has another one.
    pub launch: Launch,
    /// What a thread and a block take of an SM.
    pub resources: Resources,
    /// Resident blocks and warps.
    pub occupancy: Occupancy,
    /// What an average warp executes, in order.
    pub flow: ExecutedFlow,
    /// The accesses that the flow names by their number: the source's by their numbers in the facts, and behind them those
    /// that only the compiled kernel has.
    pub accesses: Vec<ExecutedAccess>,
    /// The calls whose instructions are in the flow.
    pub calls: Vec<ExecutedCall>,
    /// Instructions that the warps of the launch execute; `None` where the compiled kernel cannot be followed.
    pub instructions: Option<WarpInstructions>,
}

impl ModelInput {
    /// Joins a kernel's facts with what the machine executes for it.
    pub fn new(
        facts: Arc<SourceFacts>,
        compiled: Arc<CompiledKernel>,
        profile: Arc<Profile>,
        resources: Resources,
    ) -> ModelInput {
        let counts = DynamicCounts::new(&compiled, &facts);
        let (flow, mut accesses) = match &counts {
            Some(counts) => counts.executed(&facts),
            None => executed::as_written(&facts),
        };
        copies::pair(&facts, &profile, &mut accesses);
        let instructions = counts.as_ref().map(DynamicCounts::by_class);
        let launch = facts.launch;
        ModelInput {
            occupancy: residence(&profile, &launch, &resources, launch.blocks()),
            instructions,
            facts,
            compiled,
            profile,
            launch,
            resources,
            flow,
            accesses,
            calls: Vec::new(),
        }
    }

    /// The same of a launch that the driver refuses: no block of it runs.
    #[must_use]
    pub fn refused(mut self, why: String) -> ModelInput {
        self.occupancy = self.occupancy.refused(why);
        self
    }

    /// An access as the source writes it; of one that the source does not have, what it goes to.
    pub fn text(&self, access: &ExecutedAccess) -> String {
        let source = access.source.and_then(|at| self.facts.accesses.get(at));
        source.map_or_else(|| access.object.to_string(), |source| source.text.clone())
    }

    /// The accesses that only the compiled kernel has.
    pub fn compilers_own(&self) -> impl Iterator<Item = &ExecutedAccess> {
        self.accesses
            .iter()
            .filter(|access| access.source.is_none())
    }

    /// True for an access that goes to memory: an array of the thread's own may lie in registers.
    pub fn is_memory(&self, access: &Access) -> bool {
        access.space != Space::Local || !self.compiled.keeps_in_registers(&access.array)
    }

    /// Warps of the launch.
    pub fn warps(&self) -> f64 {
        let warps = self.launch.warps_per_block(self.facts.warp_size);
        self.launch.blocks() as f64 * warps as f64
    }
}

/// Blocks and warps that are resident on an SM, of a grid of this number of blocks.
pub fn residence(
    profile: &Profile,
    launch: &Launch,
    resources: &Resources,
    blocks: u64,
) -> Occupancy {
    occupancy(
        profile,
        launch.threads_per_block(),
        resources.registers_per_thread,
        resources.static_shared_bytes
            + launch.dynamic_shared_bytes
            + resources.argument_shared_bytes,
        blocks,
    )
}
