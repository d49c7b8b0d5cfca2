//! The mechanisms that the model is made of, each of which can be taken away: what it is worth shows in the error
//! without it.

/// Something that the model takes into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// Instructions of different kinds take their own pipe's cycles, beside their issue slots.
    Pipes,
    /// The shared-memory pipe and its bank conflicts.
    SharedPipe,
    /// What blocks touch twice comes from L1 or L2; without it every request goes to DRAM.
    Caches,
    /// The bandwidth of L1, L2 and DRAM.
    Bandwidth,
    /// A warp's own chain of dependent operations, for as many rounds as the resident warps need.
    Latency,
    /// Loads of unrolled iterations wait together.
    LoadsTogether,
    /// Blocks run in whole waves; without it the last one takes the part of the time that it fills.
    WholeWaves,
    /// A block that ends leaves its place empty until the next one starts.
    BlockTurnover,
    /// A kernel takes its time before its first block computes and after its last one ends.
    KernelOverhead,
    /// Barriers keep the phases of a block apart.
    Barriers,
    /// A split warp pays for both sides of a branch.
    Divergence,
}

impl Mechanism {
    /// Every mechanism, in the order in which docs/models/auto.md explains them.
    pub const ALL: [Mechanism; 11] = [
        Mechanism::Pipes,
        Mechanism::SharedPipe,
        Mechanism::Caches,
        Mechanism::Bandwidth,
        Mechanism::Latency,
        Mechanism::LoadsTogether,
        Mechanism::WholeWaves,
        Mechanism::BlockTurnover,
        Mechanism::KernelOverhead,
        Mechanism::Barriers,
        Mechanism::Divergence,
    ];

    /// The name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Pipes => "pipes",
            Mechanism::SharedPipe => "shared-pipe",
            Mechanism::Caches => "caches",
            Mechanism::Bandwidth => "bandwidth",
            Mechanism::Latency => "latency",
            Mechanism::LoadsTogether => "loads-together",
            Mechanism::WholeWaves => "whole-waves",
            Mechanism::BlockTurnover => "block-turnover",
            Mechanism::KernelOverhead => "kernel-overhead",
            Mechanism::Barriers => "barriers",
            Mechanism::Divergence => "divergence",
        }
    }
}
