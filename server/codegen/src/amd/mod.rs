//! Registers of a kernel that LLVM's AMDGPU back end compiles: VGPRs, of which each lane has its own, and SGPRs, which
//! a wave's lanes share.

mod code;
mod files;
mod flow;
mod lds;
mod library;
mod moving;
mod pressure;

pub(crate) use lds::bytes as lds_bytes;
use warplens_ir::Kernel;

use crate::graph::Graph;
use crate::thresholds::amdgcn;

/// Registers of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Registers {
    /// Of each lane.
    pub vector: u32,
    /// Of the wave.
    pub scalar: u32,
}

pub(crate) fn registers(graph: &Graph, kernel: &Kernel) -> Registers {
    let flow = flow::Flow::of(graph);
    let files = files::Files::of(graph, &flow);
    let code = code::make(graph, kernel, &files, &flow);
    let limits = &amdgcn().registers;
    let [vector, scalar] = pressure::most(graph, &code);
    Registers {
        vector: vector.max(1),
        scalar: (scalar + limits.system).min(limits.scalar_most),
    }
}
