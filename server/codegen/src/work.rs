//! The kinds of work that a kernel does, to hold the compiled kernel against the source: nothing of it vanishes.

use warplens_ir::Site;

use crate::Class;
use crate::graph::{Graph, Op, Space, Ty, V};

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Work {
    /// A load from device memory, also through a texture.
    GlobalLoad,
    /// A store to device memory.
    GlobalStore,
    /// A load from shared memory.
    SharedLoad,
    /// A store to shared memory.
    SharedStore,
    /// An atomic operation.
    Atomic,
    /// A barrier.
    Barrier,
    /// Arithmetic of floating point, conversions and functions among it.
    Float,
    /// A matrix product.
    Tensor,
}

impl Work {
    /// All of them.
    pub const ALL: [Work; 8] = [
        Work::GlobalLoad,
        Work::GlobalStore,
        Work::SharedLoad,
        Work::SharedStore,
        Work::Atomic,
        Work::Barrier,
        Work::Float,
        Work::Tensor,
    ];

    /// The instructions that do it.
    pub fn classes(self) -> &'static [Class] {
        match self {
            Work::GlobalLoad => &[Class::Ldg, Class::Tex, Class::Ldc],
            Work::GlobalStore => &[Class::Stg],
            Work::SharedLoad => &[Class::Lds],
            // A copy that passes the registers by is one instruction.
            Work::SharedStore => &[Class::Sts, Class::Ldg],
            Work::Atomic => &[Class::Atom, Class::Red],
            Work::Barrier => &[Class::Bar],
            Work::Float => &[
                Class::Ffma,
                Class::Fadd,
                Class::Fmul,
                Class::Dfma,
                Class::Dadd,
                Class::Dmul,
                Class::Mufu,
                Class::Hfma2,
                Class::Fsetp,
                Class::F2f,
                Class::F2i,
                Class::I2f,
            ],
            Work::Tensor => &[Class::Hmma],
        }
    }
}

fn work_of(graph: &Graph, v: V) -> Option<Work> {
    let inst = graph.inst(v);
    Some(match inst.op {
        Op::Load(Space::Global | Space::Constant, ..) | Op::Texture => Work::GlobalLoad,
        Op::Load(Space::Shared, ..) => Work::SharedLoad,
        Op::Store(Space::Global, ..) => Work::GlobalStore,
        Op::Store(Space::Shared, ..) => Work::SharedStore,
        Op::Atomic(..) => Work::Atomic,
        Op::Barrier => Work::Barrier,
        Op::Product(..) => Work::Tensor,
        Op::Fixed(class, _) => {
            return Work::ALL
                .into_iter()
                .find(|work| work.classes().contains(&class));
        }
        Op::Math(_) | Op::Resize | Op::FromInt(_) | Op::ToInt(_) => Work::Float,
        Op::Add | Op::Sub | Op::Mul | Op::Div(_) | Op::Fma | Op::Min(_) | Op::Max(_)
            if inst.ty.is_float() =>
        {
            Work::Float
        }
        Op::Compare(..) if graph.ty(inst.args[0]).is_float() => Work::Float,
        _ => return None,
    })
}

/// The kinds of work in a graph.
pub(crate) fn of(graph: &Graph) -> Vec<Work> {
    let code = graph.blocks.iter().flat_map(|block| &block.code);
    let mut found: Vec<Work> = code.filter_map(|v| work_of(graph, *v)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Where instructions take a value that nothing gives.
pub(crate) fn unwritten(graph: &Graph) -> Vec<Site> {
    let mut found = Vec::new();
    for v in graph.blocks.iter().flat_map(|block| &block.code) {
        let inst = graph.inst(*v);
        // Where ways meet, some may give a variable nothing.
        let reads = !matches!(inst.op, Op::Phi | Op::Select) && inst.ty != Ty::Pred;
        if reads && inst.args.iter().any(|arg| graph.op(*arg) == Op::Undefined) {
            found.push(inst.site);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
