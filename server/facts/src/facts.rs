//! What is known about one kernel, for one launch on one GPU.
//!
//! Everything here is plain data: rules and models read it, nothing below knows them. Positions and lines are
//! numbers in their order: [`Places`] knows where they stand, so that facts can be kept while comments and white
//! space move the kernel's text.

use std::fmt;

pub use crate::why::{NoValue, Unbounded, Why};
pub use warplens_ir::{CalleeLine, Launch, NotUnderstood, Places, Reason, Site, Source, Span};
use warplens_machine::Mix;
pub use warplens_machine::{Arithmetic, Number};

/// How far a figure can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// Derived for this launch and these arguments, every one of which was given or fixed by the source.
    Exact,
    /// Derived, but it depends on a launch, an argument or a probability that was assumed.
    Assumed,
    /// Not known; the figure is absent.
    Unknown,
}

impl Certainty {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Exact => "exact",
            Certainty::Assumed => "assumed",
            Certainty::Unknown => "unknown",
        }
    }
}

/// The memory an access goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Device memory through a pointer.
    Global,
    /// Shared (CUDA) or local (OpenCL) memory of a block.
    Shared,
    /// A thread's own array.
    Local,
    /// Constant memory.
    Constant,
    /// Through a texture or image unit.
    Texture,
}

impl Space {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Constant => "constant",
            Space::Texture => "texture",
        }
    }
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads, changes and writes atomically.
    Atomic,
}

impl Op {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Op::Load => "load",
            Op::Store => "store",
            Op::Atomic => "atomic",
        }
    }
}

/// How the lanes of one warp spread over memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// Neighbouring lanes touch neighbouring elements.
    Coalesced,
    /// All active lanes touch one element.
    Broadcast,
    /// Neighbouring lanes are a constant distance of more than one element apart.
    Strided,
    /// Known addresses without a constant distance.
    Scattered,
    /// The address depends on data in memory.
    DataDependent,
    /// Not understood.
    Unknown,
}

impl Pattern {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Coalesced => "coalesced",
            Pattern::Broadcast => "broadcast",
            Pattern::Strided => "strided",
            Pattern::Scattered => "scattered",
            Pattern::DataDependent => "data-dependent",
            Pattern::Unknown => "unknown",
        }
    }
}

/// What all requests of an access take together, for one place where its start may lie within a transaction unit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AlignedRequests {
    /// Requests over the launch.
    pub requests: f64,
    /// Distinct transaction units touched.
    pub transactions: f64,
    /// ceil(distinct bytes / unit).
    pub ideal_transactions: f64,
    /// Bytes the memory system moves.
    pub bytes_moved: f64,
    /// Lines of 128 bytes that L1 looks up, if one instruction moves 4, 8 or 16 bytes per lane.
    pub lines: [f64; 3],
}

/// The distance between lanes that are neighbours along one thread coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct Stride {
    /// In bytes, under this launch and these arguments; below zero where the next lane has the lower address.
    pub bytes: i64,
    /// As the source says it, in elements and without its sign: `1`, `32`, `n`.
    pub text: String,
    /// The text is in bytes: the distance is no whole number of elements.
    pub in_bytes: bool,
    /// True where the distance depends on a parameter (a leading dimension, usually).
    pub symbolic: bool,
    /// True where some other term of the index (another coordinate or a loop counter) moves by one element:
    /// the walk goes down a column of a row-major array.
    pub unit_elsewhere: bool,
}

/// An address as a sum: bytes from the start of the array.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinearAddress {
    /// What all threads have in common.
    pub constant: i64,
    /// Bytes a step of each thread coordinate moves it by.
    pub thread: [i64; 3],
    /// The same of each block coordinate.
    pub block: [i64; 3],
    /// Bytes an iteration of each loop around it moves it by, outermost first.
    pub loops: Vec<i64>,
}

/// Coordinates and counters that something varies with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariesWith {
    /// Thread coordinates.
    pub thread: [bool; 3],
    /// Block coordinates.
    pub block: [bool; 3],
    /// Counters of the loops around, outermost first.
    pub loops: Vec<bool>,
}

/// A summand of an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressPart {
    /// A coordinate of the thread in its block.
    Thread(usize),
    /// A coordinate of the block in its grid.
    Block(usize),
    /// The counter of a loop around the access, by its depth.
    Loop(usize),
    /// `of / divisor % modulus`.
    Digit {
        /// A sum of coordinates and counters.
        of: LinearAddress,
        /// At least 1.
        divisor: i64,
        /// `None`: the quotient itself.
        modulus: Option<i64>,
    },
    /// Something else, which is the same where what it varies with is.
    Values {
        /// Tells apart those of one kernel.
        number: u32,
        /// How many values it may have, where its range is known.
        count: Option<u64>,
        /// What it varies with.
        with: VariesWith,
        /// True where data or code that is not followed decides it.
        by_data: bool,
    },
}

/// What an index is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexSymbol {
    /// A coordinate of the thread in its block.
    Thread(usize),
    /// A coordinate of the block in its grid.
    Block(usize),
    /// An extent of the block.
    BlockDim(usize),
    /// An extent of the grid.
    GridDim(usize),
    /// A loop counter or a parameter, by its name.
    Named(std::sync::Arc<str>),
}

/// An index as sums and products of whole numbers and symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexExpression {
    /// A number.
    Number(i64),
    /// A symbol.
    Symbol(IndexSymbol),
    /// A constant, and terms with their factors, in the order in which they are written.
    Sum(i64, Vec<(IndexExpression, i64)>),
    /// Factors.
    Product(Vec<IndexExpression>),
    /// Another operator, a value that is not known, or too much.
    Other,
}

impl IndexExpression {
    /// True where no coordinate of a thread is in it.
    fn is_one_for_a_block(&self) -> bool {
        match self {
            IndexExpression::Number(_) => true,
            IndexExpression::Symbol(symbol) => !matches!(symbol, IndexSymbol::Thread(_)),
            IndexExpression::Sum(_, terms) => {
                terms.iter().all(|(term, _)| term.is_one_for_a_block())
            }
            IndexExpression::Product(factors) => factors.iter().all(Self::is_one_for_a_block),
            IndexExpression::Other => false,
        }
    }
    /// The same with 0 in place of the block's coordinates: what the first block would have.
    #[must_use]
    pub fn in_first_block(&self) -> IndexExpression {
        match self {
            IndexExpression::Symbol(IndexSymbol::Block(_)) => IndexExpression::Number(0),
            IndexExpression::Number(_) | IndexExpression::Symbol(_) | IndexExpression::Other => {
                self.clone()
            }
            IndexExpression::Sum(constant, terms) => {
                let terms = terms.iter();
                let terms = terms.map(|(term, factor)| (term.in_first_block(), *factor));
                IndexExpression::Sum(*constant, terms.collect())
            }
            IndexExpression::Product(factors) => {
                IndexExpression::Product(factors.iter().map(Self::in_first_block).collect())
            }
        }
    }
}

/// A field reached through an array of structures: `p[i].x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructField {
    /// The structure's name.
    pub structure: String,
    /// The field's name.
    pub field: String,
    /// Size of the whole structure in bytes.
    pub size: u32,
    /// Bytes of the structure that the kernel touches through this array, all fields together.
    pub touched: u32,
}

/// What an access costs where its constraints do not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherCase {
    /// The values it was evaluated for: `n = 1025`.
    pub when: String,
    /// Transactions or passes per request.
    pub cost: f64,
    /// The same without conflicts and with all bytes side by side.
    pub ideal: f64,
}

/// One access as the source writes it. Averages are over requests: one warp executing it once with at
/// least one active lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// Where.
    pub site: Site,
    /// The subscript or dereference as written: `tile[threadIdx.x][j]`.
    pub text: String,
    /// The array or pointer it goes through: `tile`.
    pub array: String,
    /// Which memory.
    pub space: Space,
    /// Of shared memory: that of another block of the cluster (CUDA C++ Programming Guide, "Distributed Shared Memory").
    pub remote: bool,
    /// What it does.
    pub op: Op,
    /// Bytes each active lane moves.
    pub bytes_per_lane: u32,
    /// What a request moves together.
    pub form: Form,
    /// The PTX instruction that the source writes, by its mnemonic.
    pub instruction: Option<std::sync::Arc<str>>,
    /// The element index, symbolically: `blockIdx.x * 256 + threadIdx.x`.
    pub index: String,
    /// The same as an expression; `None` where elements do not divide it.
    pub index_expression: Option<std::sync::Arc<IndexExpression>>,
    /// How lanes spread.
    pub pattern: Pattern,
    /// Distance between x-neighbours, where it is one number.
    pub stride: Option<Stride>,
    /// Where a lane goes, if that is a sum of coordinates and loop counters under this launch and these arguments;
    /// for memory that is cached.
    pub linear: Option<LinearAddress>,
    /// The same without what the threads of one block have among themselves, which may then be no such sum.
    pub linear_in_blocks: Option<LinearAddress>,
    /// Of an address that is no such sum: bytes that a step of each part moves it by.
    pub parts: Option<Vec<(i64, AddressPart)>>,
    /// Of shared memory, of copies past the registers, and of copies that one thread starts where nothing in it is assumed:
    /// bytes from the start of the array, by thread and by the counters of the blocks and loops around.
    pub in_array: Option<std::sync::Arc<warplens_symbolic::Closed>>,
    /// Set where the element is a structure's field.
    pub field: Option<StructField>,
    /// Global, local, texture: distinct transaction units touched.
    pub transactions_per_request: Option<f64>,
    /// ceil(distinct bytes / unit).
    pub ideal_transactions_per_request: Option<f64>,
    /// The unit in bytes, 0 for shared and constant memory.
    pub transaction_bytes: u32,
    /// Bytes the memory system moves for one request (units differ in size on capability 1.x).
    pub bytes_moved_per_request: Option<f64>,
    /// If one instruction moves 4, 8 or 16 bytes per lane: global, texture: lines of 128 bytes that L1 looks up; of the
    /// alignments that leave the transactions as they are, that of one. Shared: passes.
    pub by_width: Option<[f64; 3]>,
    /// Where the start is unknown but the same for all lanes of a warp: what requests take for each place where it may lie
    /// within a transaction unit, evenly spaced. Where the index has no value for some thread: what they take if it had the one
    /// that it says. Empty otherwise.
    pub by_alignment: Vec<AlignedRequests>,
    /// Shared: times the bank array is cycled; constant: distinct words; atomics: most lanes on one address.
    pub passes_per_request: Option<f64>,
    /// The same without conflicts.
    pub ideal_passes_per_request: Option<f64>,
    /// `passes / ideal passes`; 1.0 is none. Shared memory only.
    pub bank_conflict_degree: Option<f64>,
    /// Requests over the whole launch.
    pub requests: Option<f64>,
    /// Active lanes, averaged.
    pub active_lanes_per_request: Option<f64>,
    /// How sure all of this is.
    pub certainty: Certainty,
    /// Why it is not exact, where it is not.
    pub why: Option<Why>,
    /// Conditions on free symbols under which an exact result holds: `n % 8 == 0`, `n >= 16`. They are over
    /// positive values for which no index leaves the range of its type.
    pub constraints: Vec<String>,
    /// One case outside the constraints, where there are some and it differs.
    pub other_case: Option<OtherCase>,
    /// Of a copy past the registers: iterations of its loop from its issue to where it is waited for; 0 where that is the
    /// same one.
    pub ahead: Option<u32>,
    /// Atomics: where the address is one for the warp, the compiler combines the lanes' operands and one lane makes the
    /// update. Words of 32 bits alone (nvcc 13.5 for `sm_75` to `sm_90`): what adds to 64-bit numbers or floating-point ones, and
    /// what compares and swaps, each lane makes by itself.
    pub combines: bool,
    /// Depth of loops around it.
    pub loop_depth: u32,
    /// Index into [`SourceFacts::shared_arrays`] for shared accesses.
    pub shared_array: Option<usize>,
    /// Bytes of the array, where its declaration or the launch says them.
    pub array_bytes: Option<u64>,
    /// What else may reach the same memory.
    pub alias: Alias,
    /// Loads: where the value is first needed; `None` where it never is, or that was not followed.
    pub first_use: Option<FirstUse>,
}

/// What the lanes of a request move together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// Each lane what its own address says.
    #[default]
    Lanes,
    /// Rows of 16 bytes, eight for each of this number of matrices: `ldmatrix`, `stmatrix`.
    Rows(u8),
    /// As many bytes, one behind the other, for each lane that starts the copy.
    Bulk(u32),
    /// A factor of a product that matrix units read by themselves, where a descriptor says: its bytes, for the warps that do the product together.
    Described {
        /// Of the factor.
        bytes: u32,
        /// Which do the product together.
        warps: u8,
    },
}

impl LinearAddress {
    /// True where each thread of the launch has it, in every iteration.
    pub fn is_one_for_the_launch(&self) -> bool {
        let none = |steps: &[i64]| steps.iter().all(|step| *step == 0);
        none(&self.thread) && none(&self.block) && none(&self.loops)
    }
}

impl Access {
    /// The memory as it is printed: shared memory of another block is the cluster's.
    pub fn memory(&self) -> &'static str {
        if self.remote {
            "cluster"
        } else {
            self.space.name()
        }
    }

    /// True where all threads of a block go to one address at a time, as the source shows.
    pub fn is_one_for_a_block(&self) -> bool {
        match (&self.linear, &self.index_expression) {
            (Some(linear), _) => linear.thread == [0; 3],
            (None, Some(index)) => index.is_one_for_a_block(),
            (None, None) => false,
        }
    }

    /// Bytes that one request moves, lanes that share an address counted each.
    pub fn bytes_per_request(&self) -> Option<f64> {
        match self.form {
            Form::Rows(matrices) => Some(f64::from(matrices) * 128.0),
            Form::Bulk(0) => None,
            Form::Bulk(bytes) | Form::Described { bytes, .. } => {
                Some(f64::from(bytes) * self.active_lanes_per_request?)
            }
            Form::Lanes => Some(f64::from(self.bytes_per_lane) * self.active_lanes_per_request?),
        }
    }
}

/// What else may reach the memory that an access goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alias {
    /// An array that only its own name reaches: shared, the thread's own, a variable of the file.
    Own,
    /// A pointer that the source calls `__restrict__`: what it points to is reached through it alone.
    Restrict,
    /// Memory that a kernel does not write: constant.
    ReadOnly,
    /// A parameter: any other one that is not `__restrict__` may point to the same.
    Parameter,
    /// A pointer of unknown origin: anything.
    Unknown,
}

/// How far a load is from the first operation that needs its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstUse {
    /// Operations issued in between, in the order of the source.
    pub operations: f64,
    /// True where no barrier, branch or end of a loop lies between: the distance holds for every warp.
    pub straight: bool,
    /// True where the next iteration of the loop needs it.
    pub next_iteration: bool,
}

/// Kinds of operations in a chain of dependent ones: each has a latency of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Link {
    /// Floating point, other than what follows: additions, comparisons.
    Add,
    /// A multiplication.
    Multiply,
    /// A multiplication and an addition in one.
    Fma,
    /// The instructions of a division.
    Divide,
    /// Integers and addresses.
    Integer,
    /// Special functions.
    Special,
    /// Conversions.
    Conversion,
    /// Matrix instructions.
    Tensor,
    /// What a called function issues.
    Call,
    /// Loads.
    GlobalLoad,
    /// Loads from shared memory.
    SharedLoad,
    /// Loads from constant memory.
    ConstantLoad,
    /// Loads of a thread's own array that is not in registers.
    LocalLoad,
    /// Atomics.
    Atomic,
    /// Stores, where a load waits for what they wrote.
    Store,
}

impl Link {
    /// Every kind.
    pub const ALL: [Link; 15] = [
        Link::Add,
        Link::Multiply,
        Link::Fma,
        Link::Divide,
        Link::Integer,
        Link::Special,
        Link::Conversion,
        Link::Tensor,
        Link::Call,
        Link::GlobalLoad,
        Link::SharedLoad,
        Link::ConstantLoad,
        Link::LocalLoad,
        Link::Atomic,
        Link::Store,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Link::Add => "add",
            Link::Multiply => "mul",
            Link::Fma => "fma",
            Link::Divide => "division",
            Link::Integer => "int",
            Link::Special => "special function",
            Link::Conversion => "conversion",
            Link::Tensor => "tensor",
            Link::Call => "call",
            Link::GlobalLoad => "global load",
            Link::SharedLoad => "shared load",
            Link::ConstantLoad => "constant load",
            Link::LocalLoad => "local load",
            Link::Atomic => "atomic",
            Link::Store => "store",
        }
    }
}

/// Dependent operations in a row, counted by kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Chain {
    counts: [f64; Link::ALL.len()],
}

impl Chain {
    /// This many more of a kind.
    pub fn add(&mut self, link: Link, count: f64) {
        self.counts[link as usize] += count;
    }

    /// Another chain, `times` over.
    pub fn add_all(&mut self, other: &Chain, times: f64) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more * times;
        }
    }

    /// The kinds it has, and how many of each.
    pub fn links(&self) -> impl Iterator<Item = (Link, f64)> {
        let counts = self.counts;
        Link::ALL
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0.0)
    }
}

/// A stretch of straight code: between barriers, branches and the ends of loops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// The line of what it begins behind, as sites number it.
    pub line: u32,
    /// Instructions.
    pub operations: f64,
    /// The most of them that wait for one another.
    pub critical_path: f64,
}

impl Region {
    /// Instructions that could go at once, on average.
    pub fn ilp(&self) -> f64 {
        if self.critical_path > 0.0 {
            self.operations / self.critical_path
        } else {
            1.0
        }
    }
}

/// What one iteration of a loop hands to the next, and the chain that it takes there: iterations cannot follow one
/// another faster.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopCarried {
    /// The loop.
    pub site: Site,
    /// The variable, or the array where it goes through memory.
    pub through: String,
    /// The longest chain of one iteration, by the target's latencies.
    pub chain: Chain,
}

/// Who waits for whom.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dependence {
    /// Stretches of straight code, in the order of the source.
    pub regions: Vec<Region>,
    /// What loops carry, inner loops before those around them, and of one loop the longest chain first.
    pub carried: Vec<LoopCarried>,
    /// False where the kernel is too big to follow all of it.
    pub complete: bool,
}

impl Access {
    /// Figures known and derived for this launch with nothing assumed that matters.
    pub fn exact(&self) -> bool {
        self.certainty == Certainty::Exact
    }
}

/// What makes a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BranchKind {
    /// `if`, with or without `else`.
    If,
    /// `for`, `while`, `do`.
    Loop,
    /// `switch`.
    Switch,
    /// `?:`, `&&`, `||`.
    Select,
}

/// Who agrees about a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Uniformity {
    /// One value in the whole launch at each evaluation.
    Uniform,
    /// One value in each warp.
    WarpUniform,
    /// Lanes of some warp disagree.
    Divergent,
    /// Depends on data in memory.
    DataDependent,
}

/// Threads of one block that do not meet at a barrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarrierHazard {
    /// The barrier.
    pub barrier: Site,
    /// True: a return or exit before the barrier; false: the barrier is inside the branch.
    pub early_exit: bool,
    /// How sure it is that threads of one block part here under this launch.
    pub certainty: Certainty,
    /// In words, empty where it is so under this launch: `for other arguments`.
    pub when: String,
}

/// How warps go on where control parts, over the launch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ControlCounts {
    /// Warps that come there.
    pub reached: f64,
    /// Those of which some lane takes it; of a loop, the iterations of warps.
    pub taken: f64,
    /// Those of which some lane does not; of a loop nothing.
    pub other: f64,
    /// Loops: iterations of a warp, and how many warps have that number, where that was followed.
    pub turns: Vec<(u64, f64)>,
    /// Nothing was assumed that these figures depend on.
    pub exact: bool,
}

/// One branch or loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Where: the condition for an `if` or a loop.
    pub site: Site,
    /// The condition as written.
    pub text: String,
    /// What it is.
    pub kind: BranchKind,
    /// Who agrees.
    pub uniformity: Uniformity,
    /// Fraction of warp-level evaluations in which at least one active lane takes it and one does not.
    pub divergent_warp_fraction: Option<f64>,
    /// Fraction in which at least one takes it.
    pub taken_warp_fraction: Option<f64>,
    /// Threads that take it, over the launch; `None` for loops and where it is not known.
    pub taken_threads: Option<f64>,
    /// Warp-level evaluations over the launch (a loop: warps entering it).
    pub evaluations: Option<f64>,
    /// Loops: iterations of a warp that enters, averaged.
    pub trips: Option<f64>,
    /// The same warp by warp: a number of iterations, and how many warps have them. Empty where they are of many
    /// numbers, or that was not followed.
    pub turns: Vec<(u64, f64)>,
    /// How sure.
    pub certainty: Certainty,
    /// Why not exact.
    pub why: Option<Why>,
    /// Conditions under which it holds.
    pub constraints: Vec<String>,
    /// Instructions (source operations) on the taken side, a static count.
    pub taken_operations: u32,
    /// The same on the other side.
    pub other_operations: u32,
    /// True for a bounds guard: the not-taken side does nothing and at most one warp of the launch splits
    /// along each dimension.
    pub guard: bool,
    /// Set where a barrier is at risk.
    pub barrier_hazard: Option<BarrierHazard>,
}

/// Classes of source operations (`counts` in the JSON).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpClass {
    /// Half-precision arithmetic.
    Fp16,
    /// Single-precision arithmetic: a multiplication and an addition are two.
    Fp32,
    /// Double precision.
    Fp64,
    /// Each integer operator written.
    Int,
    /// Special functions: `sinf`, `rsqrtf`, `expf` …
    Sfu,
    /// Conversions between types.
    Conversion,
    /// Global loads.
    GlobalLoad,
    /// Global stores.
    GlobalStore,
    /// Shared loads.
    SharedLoad,
    /// Shared stores.
    SharedStore,
    /// Constant loads.
    ConstantLoad,
    /// Local loads.
    LocalLoad,
    /// Local stores.
    LocalStore,
    /// Atomics.
    Atomic,
    /// Barriers.
    Barrier,
    /// Branches.
    Branch,
    /// Tensor operations.
    Tensor,
}

impl OpClass {
    /// Every class, in the order of the contract.
    pub const ALL: [OpClass; 17] = [
        OpClass::Fp16,
        OpClass::Fp32,
        OpClass::Fp64,
        OpClass::Int,
        OpClass::Sfu,
        OpClass::Conversion,
        OpClass::GlobalLoad,
        OpClass::GlobalStore,
        OpClass::SharedLoad,
        OpClass::SharedStore,
        OpClass::ConstantLoad,
        OpClass::LocalLoad,
        OpClass::LocalStore,
        OpClass::Atomic,
        OpClass::Barrier,
        OpClass::Branch,
        OpClass::Tensor,
    ];

    /// The name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            OpClass::Fp16 => "fp16",
            OpClass::Fp32 => "fp32",
            OpClass::Fp64 => "fp64",
            OpClass::Int => "int",
            OpClass::Sfu => "sfu",
            OpClass::Conversion => "conversion",
            OpClass::GlobalLoad => "global_load",
            OpClass::GlobalStore => "global_store",
            OpClass::SharedLoad => "shared_load",
            OpClass::SharedStore => "shared_store",
            OpClass::ConstantLoad => "constant_load",
            OpClass::LocalLoad => "local_load",
            OpClass::LocalStore => "local_store",
            OpClass::Atomic => "atomic",
            OpClass::Barrier => "barrier",
            OpClass::Branch => "branch",
            OpClass::Tensor => "tensor",
        }
    }
}

/// Operations of one class summed over all threads of the launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// Which operations.
    pub class: OpClass,
    /// How many; `None` where some statement's count is not known.
    pub value: Option<f64>,
    /// True where derived with nothing assumed.
    pub exact: bool,
    /// True where every thread was accounted for: no sample, no condition or trip count that was guessed.
    pub complete: bool,
}

/// What a source operation is that is no access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// Arithmetic.
    Arithmetic(Arithmetic),
    /// A block-wide barrier.
    Barrier,
}

impl Operator {
    /// The class that it is counted in.
    pub fn class(self) -> OpClass {
        match self {
            Operator::Arithmetic(arithmetic) => match arithmetic {
                Arithmetic::Special(_) => OpClass::Sfu,
                Arithmetic::Conversion => OpClass::Conversion,
                Arithmetic::Matrix => OpClass::Tensor,
                Arithmetic::Sum(of) | Arithmetic::Product(of) | Arithmetic::Quotient(of) => {
                    match of {
                        Number::Half => OpClass::Fp16,
                        Number::Single => OpClass::Fp32,
                        Number::Double => OpClass::Fp64,
                        Number::Integer => OpClass::Int,
                    }
                }
            },
            Operator::Barrier => OpClass::Barrier,
        }
    }
}

/// Operations of one kind on one source line, over the launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operation {
    /// What they are.
    pub operator: Operator,
    /// Source line, as sites number it.
    pub line: u32,
    /// Threads that execute one, summed over operations.
    pub threads: f64,
    /// Warps of which some thread does.
    pub warps: f64,
}

/// What a loop's trip count is in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TripCount {
    /// A number.
    Number,
    /// An expression, as text: `n / 16`.
    Expression(std::sync::Arc<str>),
    /// No expression says it.
    Unknown,
}

/// What an average warp executes, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// Straight computation.
    Compute {
        /// Instructions by pipe.
        mix: Mix,
        /// Accesses (indices into [`SourceFacts::accesses`]) whose loaded value is first used here.
        uses: Vec<usize>,
        /// Longest chain of dependent instructions in this stretch.
        chain: f64,
        /// Source line, as sites number it.
        line: u32,
    },
    /// One memory instruction.
    Access {
        /// Index into [`SourceFacts::accesses`].
        access: usize,
        /// Loads whose value this access needs (for its address or the value it stores).
        uses: Vec<usize>,
    },
    /// A block-wide barrier.
    Barrier {
        /// Source line.
        line: u32,
    },
    /// A loop.
    Loop {
        /// Iterations of a warp that enters it, averaged.
        trips: f64,
        /// True where `trips` is exact or assumed, false where it is a stated guess (depends on data).
        known: bool,
        /// What the trip count is in the source.
        count: TripCount,
        /// One iteration, its test and step included.
        body: Vec<Node>,
        /// Source line of the loop's head.
        line: u32,
    },
    /// A branch.
    Branch {
        /// Fraction of the warps reaching it in which some lane takes it.
        taken: f64,
        /// Fraction in which some lane does not.
        other: f64,
        /// The taken side.
        then: Vec<Node>,
        /// The other side.
        otherwise: Vec<Node>,
        /// Source line of the condition.
        line: u32,
    },
}

/// Visits the stretches of straight computation: their instructions, longest chain and line, and how often one warp comes
/// there.
pub fn each_stretch(
    nodes: &mut [Node],
    visits: f64,
    visit: &mut dyn FnMut(&mut Mix, &mut f64, u32, f64),
) {
    for node in nodes {
        match node {
            Node::Compute {
                mix, chain, line, ..
            } => visit(mix, chain, *line, visits),
            Node::Loop { trips, body, .. } => each_stretch(body, visits * *trips, visit),
            Node::Branch {
                taken,
                other,
                then,
                otherwise,
                ..
            } => {
                each_stretch(then, visits * *taken, visit);
                each_stretch(otherwise, visits * *other, visit);
            }
            Node::Access { .. } | Node::Barrier { .. } => {}
        }
    }
}

/// A shared array declared by the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedArray {
    /// Its name.
    pub name: String,
    /// The declaration's declarator: `tile[32][32]`.
    pub site: Site,
    /// Extents, outermost first, with the site of each extent expression.
    pub extents: Vec<(u64, Site)>,
    /// Element size in bytes.
    pub element_bytes: u32,
    /// Total bytes.
    pub bytes: u64,
    /// True for `extern __shared__` (size given at launch).
    pub dynamic: bool,
}

/// What something is assumed of, printed as in the JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assumed {
    /// Threads of a block: `block`.
    Block,
    /// Blocks of the launch: `grid`.
    Grid,
    /// Bytes of dynamic shared memory, where the kernel has some: `dynamic shared memory`.
    DynamicShared,
    /// A parameter, a template parameter, a macro, a function: its name.
    Named(String),
    /// How pointers and shared arrays are aligned: `alignment`.
    Alignment,
    /// Elements of an array: `contents(a)`.
    Contents(String),
    /// All blocks, by those that were run: `sample`.
    Sample,
    /// How often a loop runs whose condition this is: ``trips(`i < n`)``.
    Trips(String),
    /// How often a condition holds, or any that data decides: ``probability(`v > 3`)``, `probability`.
    Probability(Option<String>),
}

impl Assumed {
    /// Of which kind it is, without the expression: `trips`; a name is its own.
    pub fn kind(&self) -> &str {
        match self {
            Assumed::Block => "block",
            Assumed::Grid => "grid",
            Assumed::DynamicShared => "dynamic shared memory",
            Assumed::Named(name) => name,
            Assumed::Alignment => "alignment",
            Assumed::Contents(_) => "contents",
            Assumed::Sample => "sample",
            Assumed::Trips(_) => "trips",
            Assumed::Probability(_) => "probability",
        }
    }

    /// True for the parameter, macro or function of that name.
    pub fn is_named(&self, name: &str) -> bool {
        matches!(self, Assumed::Named(own) if own == name)
    }
}

impl fmt::Display for Assumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Assumed::Contents(array) => write!(f, "({array})"),
            Assumed::Trips(condition) | Assumed::Probability(Some(condition)) => {
                write!(f, "(`{condition}`)")
            }
            _ => Ok(()),
        }
    }
}

/// A number that the user did not give and the source does not fix.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumption {
    /// What it is about.
    pub symbol: Assumed,
    /// Its value as text: `1024`, `256,1,1`, `256-byte aligned`.
    pub value: String,
    /// Where from: `default`, `config`, [`UNKNOWN`].
    pub source: String,
}

/// Where the value of an assumption comes from that is any size of a kind: figures that depend on it have no number.
pub const UNKNOWN: &str = "unknown";

/// A line of a called function as another call leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedLine {
    /// The line that it is a copy of, from 1.
    pub of: u32,
    /// The call that leads to it: a line, from 1.
    pub caller: u32,
}

/// Everything known about one kernel under one launch on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceFacts {
    /// Plain name.
    pub name: String,
    /// Where the name is.
    pub name_site: Site,
    /// Lines of copies of called functions: a site's `callee` counts on to them behind [`Places::callees`].
    pub copied_lines: std::sync::Arc<[CopiedLine]>,
    /// The launch these facts hold for.
    pub launch: Launch,
    /// Lanes of a warp or wave on the target.
    pub warp_size: u32,
    /// Every access in source order.
    pub accesses: Vec<Access>,
    /// Every branch and loop in source order.
    pub branches: Vec<Branch>,
    /// Operations over the launch.
    pub counts: Vec<Count>,
    /// The same of arithmetic and barriers by kind and line, in the order of lines.
    pub operations: Vec<Operation>,
    /// The average warp's work.
    pub flow: Vec<Node>,
    /// How warps go on at each [`warplens_ir::Control`] of the kernel, by its number; `None` where the analysis
    /// did not come.
    pub ways: Vec<Option<ControlCounts>>,
    /// Which operations wait for which.
    pub dependence: Dependence,
    /// Shared arrays.
    pub shared_arrays: Vec<SharedArray>,
    /// Static shared memory of a block, as the source declares it.
    pub static_shared_bytes: u64,
    /// `__launch_bounds__`: most threads per block, where stated.
    pub max_threads_per_block: Option<u64>,
    /// What was assumed.
    pub assumptions: Vec<Assumption>,
    /// Conditions on free symbols under which exact results hold.
    pub constraints: Vec<String>,
    /// What was not understood.
    pub not_understood: Vec<NotUnderstood>,
}
