//! What a kernel reads from the constant bank: its parameters, the launch's sizes, constants at a fixed place.
//!
//! Where the machine takes them as operands an instruction has one for nothing. Elsewhere each is loaded once, with its
//! neighbour where both are used in a block: into registers next to its use, or into uniform registers, of which an instruction takes one.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use warplens_ir::{Builtin, Kernel, Storage, VarId};

use super::{Instruction, Selector};
use crate::Class;
use crate::graph::{Op, Space, V};

/// What one load can bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Pair {
    /// Eight bytes of the parameters.
    Parameters(u64),
    Size(Builtin),
    /// Eight bytes of an array.
    Array(VarId, u64),
}

/// What was loaded so far.
#[derive(Debug)]
pub(super) struct Bank {
    /// The first byte of each parameter; the fields of structures are parameters of their own.
    starts: FxHashMap<VarId, u64>,
    loaded: FxHashSet<V>,
    /// What the loads of the block at hand bring.
    pairs: FxHashSet<Pair>,
    /// What lies in its registers.
    here: FxHashSet<V>,
}

impl Bank {
    pub fn of(kernel: &Kernel) -> Bank {
        let mut end = 0u64;
        let mut starts = FxHashMap::default();
        for (number, var) in kernel.vars.iter().enumerate() {
            if let Storage::Param(_) = var.storage {
                let start = end.next_multiple_of(var.ty.align().max(1));
                end = start + var.ty.size();
                starts.insert(VarId(number as u32), start);
            }
        }
        Bank {
            starts,
            loaded: FxHashSet::default(),
            pairs: FxHashSet::default(),
            here: FxHashSet::default(),
        }
    }

    pub fn next_block(&mut self) {
        self.pairs.clear();
        self.here.clear();
    }
}

impl Selector<'_> {
    /// Loads what `v` reads from the bank, or moves what cannot be its operand, and puts what then lies in registers
    /// among what it reads.
    pub(super) fn load_operands(&mut self, v: V, uses: &mut SmallVec<[V; 4]>) {
        let loads = self.machine.loads_parameters;
        let inst = self.graph.inst(v);
        let site = inst.site;
        let mut read = SmallVec::new();
        for &arg in &inst.args {
            self.in_bank(arg, &mut read);
        }
        // What accesses memory takes registers only. Else one operand may be in the bank, or in a uniform register.
        let mut free = !matches!(inst.op, Op::Load(..) | Op::Store(..) | Op::Atomic(..));
        for of in read {
            let words = self.graph.ty(of).words();
            let operand = free && (!loads || words == 1);
            free &= !operand;
            if loads {
                if let Some(pair) = self.pair(of)
                    && self.bank.loaded.insert(of)
                    && self.bank.pairs.insert(pair)
                {
                    self.once.push(Instruction::new(Class::Ldc, 1, site));
                }
            } else if !operand && self.bank.loaded.insert(of) {
                self.once.push(Instruction::new(Class::Mov, words, site));
            }
            if operand {
                continue;
            }
            if self.bank.here.insert(of) {
                let class = if loads { Class::Ldc } else { Class::Mov };
                self.code.push(Instruction {
                    values: SmallVec::from_slice(&[of]),
                    ..Instruction::new(class, 0, site)
                });
            }
            if !uses.contains(&of) {
                uses.push(of);
            }
        }
    }

    /// Operands from the bank, also of what an instruction does on the way.
    fn in_bank(&self, v: V, out: &mut SmallVec<[V; 4]>) {
        let inst = self.graph.inst(v);
        if self.pair(v).is_some() {
            if !out.contains(&v) {
                out.push(v);
            }
        } else if self.fused[v.0 as usize] && !matches!(inst.op, Op::Phi | Op::Piece(_)) {
            for &arg in &inst.args {
                self.in_bank(arg, out);
            }
        }
    }

    fn pair(&self, v: V) -> Option<Pair> {
        let inst = self.graph.inst(v);
        match inst.op {
            Op::Param(id, offset) => {
                let start = self.bank.starts.get(&id).copied().unwrap_or(0);
                Some(Pair::Parameters((start + u64::from(offset)) / 8))
            }
            Op::Builtin(size @ (Builtin::BlockDim(_) | Builtin::GridDim(_))) => {
                Some(Pair::Size(size))
            }
            Op::Load(Space::Constant, _, offset, _) if self.fused[v.0 as usize] => {
                match self.graph.op(inst.args[0]) {
                    Op::Base(id) => Some(Pair::Array(id, offset as u64 / 8)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// True for what makes no register of its own: a word or two at a fixed place of the bank.
    pub(super) fn is_fixed_constant(&self, v: V) -> bool {
        let inst = self.graph.inst(v);
        let Op::Load(Space::Constant, bytes, ..) = inst.op else {
            return false;
        };
        // A vector has parts.
        u32::from(bytes) <= 4 * inst.ty.words()
            && matches!(self.graph.op(inst.args[0]), Op::Base(_))
    }
}
