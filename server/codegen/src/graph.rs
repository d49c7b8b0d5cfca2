//! The optimised IR: values in single-assignment form, in blocks.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warplens_ir::{BinaryOp, Builtin, Site, VarId};

use crate::Class;
use crate::frequency::{Frequencies, Frequency};

/// A value: an index into [`Graph::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct V(pub u32);

/// A block: an index into [`Graph::blocks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct B(pub u32);

/// What a register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    /// Nothing.
    None,
    /// A predicate.
    Pred,
    /// An integer of at most 32 bits, or an address of shared memory.
    I32,
    /// An integer of 64 bits, or an address of device memory.
    I64,
    F16,
    F32,
    F64,
}

impl Ty {
    /// Registers of 32 bits.
    pub fn words(self) -> u32 {
        match self {
            Ty::None | Ty::Pred => 0,
            Ty::I32 | Ty::F16 | Ty::F32 => 1,
            Ty::I64 | Ty::F64 => 2,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Ty::F16 | Ty::F32 | Ty::F64)
    }
}

/// Where an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Space {
    Global,
    Shared,
    Local,
    Constant,
}

/// A kind of atomic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Update {
    /// Its old value need not come back.
    Reduction,
    /// Compare and swap, exchange.
    Swap,
    /// An addition of floating point, which shared memory has no instruction for.
    FloatAdd,
}

/// What an instruction of the IR does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Int(i64),
    /// Bits of a `f64`.
    Float(u64),
    Undefined,
    /// A parameter at a byte offset: a word of the constant bank.
    Param(VarId, u32),
    Builtin(Builtin),
    /// The first byte of an array.
    Base(VarId),
    Add,
    Sub,
    Mul,
    MulHigh,
    Div(bool),
    Rem(bool),
    Shl,
    Shr(bool),
    And,
    Or,
    Xor,
    Not,
    Neg,
    Min(bool),
    Max(bool),
    Abs,
    Popc,
    /// Leading zeros and their like.
    FindBit,
    Reverse,
    /// a · b + c.
    Fma,
    /// A comparison; signed.
    Compare(BinaryOp, bool),
    Select,
    /// To 64 bits.
    Extend(bool),
    /// To 32 bits.
    Truncate,
    /// Truncated to a number of bits within a register; signed.
    Narrow(u8, bool),
    FromInt(bool),
    ToInt(bool),
    Resize,
    /// The same bits as another type.
    Bits,
    /// A pointer moved by a constant.
    Offset(i64),
    /// A pointer moved by an index times a size in bytes; true where the index is signed.
    Address(u32, bool),
    /// Bytes, and the constant of the address; the number tells loads apart between which memory may change.
    Load(Space, u8, i64, u32),
    /// A part of what a wide load brings.
    Piece(u8),
    /// A part of a register or of a pair of registers, which instructions read in place.
    Part(u8),
    /// Neighbouring parts as one value, the lowest first.
    Join,
    Store(Space, u8, i64),
    Atomic(Space, Update),
    /// A function of the mathematical library: an index into the recipes.
    Math(u16),
    Shuffle,
    Vote,
    Barrier,
    Fence,
    /// A call of the system's: `printf`, `malloc`. It follows the convention of calls.
    System,
    Texture,
    /// A number of instructions of a class that leave no value behind: a warp's access to a matrix, its product.
    Fixed(Class, u8),
    /// A number of instructions that multiply matrices, and what they take of the matrix units: in 64ths of a product of
    /// 16 · 8 · 16 in half precision.
    Product(u8, u32),
    /// Something not followed: an instruction.
    Other,
    Phi,
}

impl Op {
    /// False for what must stay where it is.
    pub fn is_pure(self) -> bool {
        !matches!(
            self,
            Op::Load(..)
                | Op::Store(..)
                | Op::Atomic(..)
                | Op::Shuffle
                | Op::Vote
                | Op::Barrier
                | Op::Fence
                | Op::System
                | Op::Texture
                | Op::Fixed(..)
                | Op::Product(..)
                | Op::Other
                | Op::Phi
                | Op::Undefined
        )
    }

    /// True for an instruction or two on integers.
    pub fn is_cheap(self) -> bool {
        matches!(
            self,
            Op::Add
                | Op::Sub
                | Op::Mul
                | Op::Shl
                | Op::Shr(_)
                | Op::And
                | Op::Or
                | Op::Xor
                | Op::Not
                | Op::Neg
                | Op::Min(_)
                | Op::Max(_)
                | Op::Compare(..)
                | Op::Select
                | Op::Extend(_)
                | Op::Truncate
                | Op::Narrow(..)
                | Op::Offset(_)
                | Op::Address(..)
        )
    }

    /// True for what must happen whether its value is used or not.
    pub fn has_effect(self) -> bool {
        matches!(
            self,
            Op::Store(..)
                | Op::Atomic(..)
                | Op::Barrier
                | Op::Fence
                | Op::System
                | Op::Fixed(..)
                | Op::Product(..)
        )
    }

    /// True for what is an operand wherever it is used: no instruction makes it.
    pub fn is_operand(self) -> bool {
        matches!(
            self,
            Op::Int(_) | Op::Float(_) | Op::Undefined | Op::Param(..)
        ) || matches!(
            self,
            Op::Builtin(Builtin::BlockDim(_) | Builtin::GridDim(_) | Builtin::WarpSize)
        )
    }
}

pub(crate) type Args = SmallVec<[V; 3]>;

/// An instruction of the IR.
#[derive(Debug, Clone)]
pub(crate) struct Inst {
    pub op: Op,
    pub ty: Ty,
    pub args: Args,
    pub site: Site,
    pub block: B,
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Not yet known.
    Open,
    Jump(B),
    Branch(V, B, B),
    /// The thread ends.
    Exit,
}

/// A stretch of straight code.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub code: Vec<V>,
    pub end: End,
    /// Copies of its code in the program.
    pub copies: u32,
    /// How often it is executed.
    pub frequency: Frequency,
    /// How often the test of a loop is executed before the first iteration.
    pub again: Option<Frequency>,
    /// The innermost loop that it is in: an index into [`Graph::loops`].
    pub within: Option<u32>,
    /// Blocks that lead here; the arguments of a phi have this order.
    pub from: SmallVec<[B; 2]>,
}

/// A loop that stayed one.
#[derive(Debug, Clone)]
pub(crate) struct Loop {
    /// Where its iterations begin.
    pub header: B,
    /// The block before it.
    pub before: B,
    /// One past its last block: its blocks are numbered in one stretch.
    pub end: B,
    /// The remainder loop of the loop before it in the list.
    pub remainder: bool,
    /// The last version of memory before it: what has a later one may change in it.
    pub version: u32,
}

/// A kernel as values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    pub values: Vec<Inst>,
    pub blocks: Vec<Block>,
    pub loops: Vec<Loop>,
    /// The alignment in bytes that the source states of an address: that of a vector.
    pub aligned: FxHashMap<V, u32>,
    /// Of pairs of half precision the second, with the first: one operation makes both.
    pub pairs: FxHashMap<V, V>,
    /// Of stores the least number of a load that may see what they wrote.
    pub seen_from: FxHashMap<V, u32>,
    pub frequencies: Frequencies,
}

impl Graph {
    pub fn inst(&self, v: V) -> &Inst {
        &self.values[v.0 as usize]
    }

    pub fn op(&self, v: V) -> Op {
        self.values[v.0 as usize].op
    }

    pub fn ty(&self, v: V) -> Ty {
        self.values[v.0 as usize].ty
    }

    pub fn int(&self, v: V) -> Option<i64> {
        match self.op(v) {
            Op::Int(value) => Some(value),
            _ => None,
        }
    }

    pub fn float(&self, v: V) -> Option<f64> {
        match self.op(v) {
            Op::Float(bits) => Some(f64::from_bits(bits)).filter(|value| !value.is_nan()),
            _ => None,
        }
    }

    /// True for two halves that one instruction makes.
    pub fn is_pair(&self, parts: &Args) -> bool {
        matches!(parts[..], [first, second] if self.pairs.get(&second) == Some(&first))
    }

    pub fn block(&self, b: B) -> &Block {
        &self.blocks[b.0 as usize]
    }

    /// Blocks that a block may lead to.
    pub fn to(&self, b: B) -> SmallVec<[B; 2]> {
        match self.block(b).end {
            End::Open | End::Exit => SmallVec::new(),
            End::Jump(to) => SmallVec::from_slice(&[to]),
            End::Branch(_, yes, no) => SmallVec::from_slice(&[yes, no]),
        }
    }

    /// True where a value is made in a loop.
    pub fn is_in(&self, v: V, around: &Loop) -> bool {
        let block = self.values[v.0 as usize].block;
        block >= around.header && block < around.end
    }
}
