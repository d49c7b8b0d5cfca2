//! What the hardware and the launch give the graph: the figures that its weights are computed from.

use super::graph::Branching;

/// What the graph is specialised for.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Latency of the arithmetic pipeline in cycles.
    pub pipeline_latency: f64,
    /// Lanes of a warp, `SIMD_work`.
    pub warp_size: f64,
    /// Lanes that execute in one cycle, `SIMD_engine`.
    pub simd_engine: f64,
    /// Latency and lanes of special functions and of double precision, where they have units of their own.
    pub special: Option<(f64, f64)>,
    /// The same for double precision.
    pub double: Option<(f64, f64)>,
    /// Warps resident on an SM, `WLP_max`.
    pub active_warps: f64,
    /// Blocks resident on an SM, `NUM_blocks`.
    pub active_blocks: f64,
    /// Memory bandwidth allotted to one SM.
    pub bandwidth_bytes_per_cycle_per_sm: f64,
    /// Latency of a global load.
    pub memory_latency: f64,
    /// Bytes one warp moves to or from memory with one execution of each access.
    pub bytes: Vec<f64>,
    /// Cycles of one warp at each access to shared or constant memory.
    pub scratchpad: Vec<f64>,
    /// False where barriers are imagined away.
    pub barriers: bool,
    /// Stretches of the source, by their first line: instructions over the longest chain of dependent ones.
    pub stretches: Vec<(u32, f64)>,
    /// How the sides of a branch are put together.
    pub branching: Branching,
}
