//! What the machine executes: the kernel as a compiler leaves it, its instructions and its registers.
//!
//! The source says what is meant; compilers fold, hoist, unroll and fuse. [`compile`] does to a kernel's IR what
//! they do, closely enough to count by.

mod amd;
pub mod assembly;
mod build;
mod class;
mod graph;
mod passes;
mod recipes;
mod registers;
mod select;

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use warplens_ir::{Kernel, Site};

pub use class::Class;

/// The part of a compiler that makes machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// nvcc's: each lane has registers of its own.
    #[default]
    Nvidia,
    /// LLVM's AMDGPU: registers of a lane (VGPRs), and registers that a wave's lanes share (SGPRs).
    Amdgpu,
}

/// How a kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Options {
    /// `-use_fast_math`.
    pub fast_math: bool,
    /// `-maxrregcount`.
    pub max_registers: Option<u32>,
    /// Most threads of a block, where `__launch_bounds__` says it.
    pub max_threads: Option<u64>,
    /// What makes the machine code.
    pub backend: Backend,
}

/// A compiled kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compiled {
    /// Registers of a thread; on AMD its VGPRs.
    pub registers: u32,
    /// Registers that a wave's lanes share, where there are some (SGPRs).
    pub scalar_registers: Option<u32>,
    /// Bytes of static shared memory of a block, where the compiler lays it out otherwise than it is declared.
    pub shared_bytes: Option<u64>,
    /// Bytes of local memory of a thread: arrays that are subscripted with what the compiler does not know.
    pub local_bytes: u64,
    /// Bytes that did not find a register.
    pub spill_bytes: u64,
    /// Instructions by class.
    pub instructions: BTreeMap<Class, u64>,
    /// The same for each place of the source.
    pub places: Vec<(Site, Class, u32)>,
    /// False where the kernel is too big to be followed to its end.
    pub complete: bool,
}

impl Compiled {
    /// All instructions.
    pub fn total(&self) -> u64 {
        self.instructions.values().sum()
    }
}

/// Registers that every thread has besides: the stack's address, what the halves of pairs leave unused.
const FRAME: u32 = 5;

/// Registers that the convention of calls needs.
const CALLING: u32 = 24;

/// Compiles a kernel.
pub fn compile(kernel: &Kernel, options: &Options) -> Compiled {
    let mut in_memory = FxHashSet::default();
    let mut built = build::Builder::new(kernel, options, in_memory.clone()).run();
    // Arrays that turn out to lie in memory: once more, knowing it.
    for _ in 0..4 {
        if built.demoted.is_empty() {
            break;
        }
        in_memory.extend(built.demoted.iter().copied());
        built = build::Builder::new(kernel, options, in_memory.clone()).run();
    }
    let complete = !built.truncated && !built.cut;
    let calls = built.graph.values.iter().any(|v| v.op == graph::Op::System);
    let mut graph = built.graph;
    passes::optimise(&mut graph, options.backend);
    let code = select::select(&graph, kernel, options);
    let pressure = registers::pressure(&graph, &code);
    let mut compiled = Compiled {
        registers: (pressure + FRAME).clamp(if calls { CALLING } else { 8 }, 255),
        complete,
        ..Compiled::default()
    };
    if options.backend == Backend::Amdgpu {
        let registers = amd::registers(&graph, kernel);
        compiled.registers = registers.vector;
        compiled.scalar_registers = Some(registers.scalar);
        // Of what is not followed to its end it is not known what reads.
        compiled.shared_bytes = complete.then(|| amd::lds_bytes(&graph, kernel));
    }
    for var in &in_memory {
        compiled.local_bytes += kernel.var(*var).ty.size().next_multiple_of(4);
    }
    for (instruction, copies) in code.all(&graph) {
        let count = instruction.count * copies;
        *compiled.instructions.entry(instruction.class).or_default() += u64::from(count);
        compiled
            .places
            .push((instruction.site, instruction.class, count));
    }
    compiled
}
