//! Which register file a value lies in: one for the whole wave, or one for each lane.
//!
//! What is the same in every lane is computed once, by the scalar unit, into SGPRs. It has no floating point, cannot
//! read what a lane's load brought, and reads memory only where nothing before can have written.

use warplens_ir::Builtin;

use super::flow::Flow;
use crate::graph::{B, End, Graph, Op, Space, Ty, V};

/// Where a value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    /// In no register: it is part of the instruction that uses it.
    Nowhere,
    /// SGPRs.
    Scalar,
    /// VGPRs.
    Vector,
}

/// Every value's file. A predicate is `Vector` where lanes differ in it, though its mask lies in SGPRs.
pub(super) struct Files {
    vector: Vec<bool>,
    /// Loads that the scalar unit makes.
    scalar_loads: Vec<bool>,
}

impl Files {
    pub(super) fn of(graph: &Graph, flow: &Flow) -> Files {
        let mut files = Files {
            vector: vec![false; graph.values.len()],
            scalar_loads: unwritten(graph),
        };
        let mut changed = true;
        while changed {
            changed = false;
            for (number, block) in graph.blocks.iter().enumerate() {
                let parted = block.code.iter().any(|v| graph.op(*v) == Op::Phi)
                    && files.is_parted(graph, flow, B(number as u32));
                for &v in &block.code {
                    if !files.vector[v.0 as usize] && files.becomes_vector(graph, v, parted) {
                        files.vector[v.0 as usize] = true;
                        changed = true;
                    }
                }
            }
        }
        files
    }

    pub(super) fn is_vector(&self, v: V) -> bool {
        self.vector[v.0 as usize]
    }

    pub(super) fn of_value(&self, graph: &Graph, v: V) -> File {
        let inst = graph.inst(v);
        match inst.op {
            Op::Int(_) | Op::Float(_) | Op::Undefined => File::Nowhere,
            _ if inst.ty == Ty::None => File::Nowhere,
            _ if self.is_vector(v) => File::Vector,
            _ => File::Scalar,
        }
    }

    /// True for a load whose value comes into SGPRs.
    pub(super) fn is_scalar_load(&self, graph: &Graph, v: V) -> bool {
        matches!(graph.op(v), Op::Load(..)) && !self.is_vector(v)
    }

    fn becomes_vector(&self, graph: &Graph, v: V, parted: bool) -> bool {
        let inst = graph.inst(v);
        let varies = || inst.args.iter().any(|arg| self.is_vector(*arg));
        match inst.op {
            Op::Builtin(Builtin::ThreadIdx(_) | Builtin::GlobalIdx(_)) => true,
            Op::Builtin(_) | Op::Int(_) | Op::Float(_) | Op::Param(..) | Op::Base(_) => false,
            Op::Undefined => false,
            Op::Load(Space::Global | Space::Constant, bytes, ..) => {
                varies() || bytes < 4 || !self.scalar_loads[v.0 as usize]
            }
            Op::Load(..) | Op::Atomic(..) | Op::Shuffle | Op::Texture | Op::Other | Op::System => {
                true
            }
            Op::Phi => varies() || parted,
            // No floating point in the scalar unit; the bits of one may be looked at.
            Op::Bits
            | Op::Truncate
            | Op::Piece(_)
            | Op::Part(_)
            | Op::Join
            | Op::Select
            | Op::Neg
            | Op::Abs => varies(),
            Op::FromInt(_) | Op::ToInt(_) | Op::Resize | Op::Math(_) | Op::Fma => true,
            Op::Compare(..) => varies() || inst.args.iter().any(|arg| graph.ty(*arg).is_float()),
            _ => varies() || inst.ty.is_float(),
        }
    }

    /// True where lanes may come to a block by different ways.
    fn is_parted(&self, graph: &Graph, flow: &Flow, block: B) -> bool {
        let is_loop = graph.loops.iter().any(|around| around.header == block);
        if is_loop {
            // Lanes that left do not come back: those in the loop are in the same iteration.
            return false;
        }
        let top = flow.above(block);
        let mut seen = vec![false; graph.blocks.len()];
        let mut open: Vec<B> = graph.block(block).from.to_vec();
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at.0 as usize], true) {
                continue;
            }
            if let End::Branch(condition, ..) = graph.block(at).end
                && self.is_vector(condition)
            {
                return true;
            }
            if at != top && flow.is_reached(at) {
                open.extend(graph.block(at).from.iter().copied());
            }
        }
        false
    }
}

/// Loads of global memory that no store of the kernel can come before, or whose memory it does not write.
fn unwritten(graph: &Graph) -> Vec<bool> {
    let writes = |v: &V| {
        matches!(
            graph.op(*v),
            Op::Store(Space::Global, ..) | Op::Atomic(Space::Global, _) | Op::System
        )
    };
    let mut behind = vec![false; graph.blocks.len()];
    let mut open: Vec<B> = Vec::new();
    for (number, block) in graph.blocks.iter().enumerate() {
        if block.code.iter().any(writes) {
            open.extend(graph.to(B(number as u32)));
        }
    }
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut behind[block.0 as usize], true) {
            open.extend(graph.to(block));
        }
    }
    let mut unwritten = vec![false; graph.values.len()];
    for (number, block) in graph.blocks.iter().enumerate() {
        let mut written = behind[number];
        for v in &block.code {
            if let Op::Load(space, _, _, epoch) = graph.op(*v) {
                unwritten[v.0 as usize] = !written || epoch == 0 || space == Space::Constant;
            }
            written |= writes(v);
        }
    }
    unwritten
}
