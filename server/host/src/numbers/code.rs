//! What a loop of numbers is compiled to: steps on registers and memory.

use std::rc::Rc;

use warplens_syntax::{BinaryOperator, Node};

use crate::data::Data;
use crate::kinds::Number;
use crate::random::{Distribution, Generator};

/// A loop as the source writes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loop<'t> {
    pub(crate) condition: Option<Node<'t>>,
    pub(crate) update: Option<Node<'t>>,
    pub(crate) body: Option<Node<'t>>,
    /// `do`: the condition is behind the body.
    pub(crate) body_first: bool,
}

/// A register, by number.
pub(super) type Register = u32;

/// One step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Unknown(Register),
    Move(Register, Register),
    Integer(BinaryOperator, u8, bool, Register, [Register; 2]),
    Real(BinaryOperator, Number, Register, [Register; 2]),
    Convert(Number, Number, Register, Register),
    /// That many elements behind a pointer; the bytes of one.
    Element(Register, Register, Register, u32),
    Load(Number, Register, Register),
    Store(Number, Register, Register),
    /// Bytes from the second pointer to the first.
    Copy(Register, Register, u32),
    /// Bytes that are not known any more, or are 0.
    Clear(Register, u32, bool),
    Jump(u32),
    IfFalse(Register, u32),
    IfTrue(Register, u32),
    /// An iteration of the outermost loop begins; the registers that its condition compares.
    Iteration(Option<[Register; 2]>),
    Call(Function, Number, Register, [Register; 2]),
    /// The next number of a generator, as its function gives it.
    Draw(Draw, u32, Register),
    Seed(u32, Register),
    /// Elements in a container; the bytes of one.
    Length(Register, u32, u32),
    Push(u32, Number, Register),
    /// A container has that many elements; the bytes of one.
    Resize(u32, Register, u32),
}

/// A function of the C library.
#[derive(Debug, Clone, Copy)]
pub(super) enum Function {
    Absolute,
    Minimum,
    Maximum,
    Power,
    Of(fn(f64) -> f64),
}

/// How a number is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Draw {
    /// `rand`, and a generator that is called.
    Word,
    /// `drand48`.
    Unit48,
    /// `lrand48`.
    Long48,
    /// By a distribution of the C++ library.
    By(Distribution),
}

/// Memory that a loop works on.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    /// `None` where nothing is known of it and nothing can be kept.
    pub(super) data: Option<Rc<Data>>,
    pub(super) written: bool,
}

/// A number, or not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) bits: i64,
    pub(super) known: bool,
}

impl Cell {
    pub(super) const UNKNOWN: Cell = Cell {
        bits: 0,
        known: false,
    };

    pub(super) fn known(bits: i64) -> Cell {
        Cell { bits, known: true }
    }
}

/// Bits of a pointer that say where in its memory it leads.
const OFFSET: u32 = 44;
/// Offsets count from here, so that one before the first byte stays in its memory.
const MIDDLE: i64 = 1 << (OFFSET - 1);
/// Memories that pointers tell apart.
pub(super) const MOST_MEMORIES: usize = 1 << 16;

/// A pointer into a memory; number 0 is that of no pointer.
pub(super) fn pointer(memory: usize, offset: i64) -> i64 {
    ((memory as i64) << OFFSET) + MIDDLE + offset
}

/// Where a pointer leads.
pub(super) fn place(pointer: i64) -> Option<(usize, i64)> {
    let memory = usize::try_from(pointer >> OFFSET).ok()?;
    (memory > 0).then_some((memory, (pointer & ((1 << OFFSET) - 1)) - MIDDLE))
}

/// A compiled loop with what it begins with.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) registers: Vec<Cell>,
    /// The first is none.
    pub(super) memories: Vec<Memory>,
    /// Generators, where they are known.
    pub(super) generators: Vec<Option<Generator>>,
}
