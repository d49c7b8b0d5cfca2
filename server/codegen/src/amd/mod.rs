//! Registers of a kernel that LLVM's AMDGPU back end compiles: VGPRs, of which each lane has its own, and SGPRs, which
//! a wave's lanes share.

mod code;
mod files;
mod flow;
mod lds;
mod library;
mod matrices;
mod moving;
mod pressure;
mod sinking;

pub(crate) use lds::bytes as lds_bytes;
pub use matrices::MatrixUnits;
pub(crate) use matrices::work as product_work;
use warplens_ir::Kernel;

use crate::graph::Graph;
use crate::registers::Spilled;
use crate::thresholds::amdgcn;

/// Registers of a wave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registers {
    /// Of each lane.
    pub vector: u32,
    /// Of the wave.
    pub scalar: u32,
    /// Words of each lane that found none.
    pub spilled: Vec<Spilled>,
}

/// The registers of a kernel of which a lane has `most` at most.
pub(crate) fn registers(graph: &Graph, kernel: &Kernel, most: u32) -> Registers {
    let flow = flow::Flow::of(graph);
    let graph = &sinking::sunk(graph, &flow);
    let files = files::Files::of(graph, &flow);
    let code = code::make(graph, kernel, &files, &flow);
    let limits = &amdgcn().registers;
    let live = pressure::most(graph, &code);
    let widest = |file: usize| live.iter().map(|block| block[file]).max().unwrap_or(0);
    // Where most live, those of longest wait go to memory and come back when they are read.
    let fullest = (0..live.len()).max_by_key(|number| live[*number][0]);
    let words = widest(0).saturating_sub(most);
    let spilled = fullest.filter(|_| words > 0);
    Registers {
        vector: widest(0).clamp(1, most.max(1)),
        scalar: (widest(1) + limits.system).min(limits.scalar_most),
        spilled: spilled
            .map(|block| Spilled { block, words })
            .into_iter()
            .collect(),
    }
}
