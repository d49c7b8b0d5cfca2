//! What the machine executes: the kernel as a compiler leaves it, its instructions and its registers.
//!
//! The source says what is meant; compilers fold, hoist, unroll and fuse. [`compile`] does to a kernel's IR what
//! they do, closely enough to count by.

// A byte that is no boundary would cost the kernel.
#![cfg_attr(not(test), deny(clippy::string_slice))]

mod amd;
pub mod assembly;
mod build;
mod class;
mod executed;
mod frequency;
mod graph;
mod passes;
mod picking;
mod recipes;
mod registers;
mod select;
mod target;
mod thresholds;
mod work;

use std::collections::BTreeMap;

use build::steady::Steady;
use frequency::Share;
use passes::Room;
use rustc_hash::FxHashSet;
use warplens_ir::{Controls, ExprKind, Function, Kernel, Site, Storage, VarId, expressions};

pub use amd::MatrixUnits;
pub use class::Class;
pub use executed::Code;
pub use frequency::{Executions, Frequency, WarpsAtControl};
pub use recipes::library;
pub use target::Target;
pub use work::Work;

/// The part of a compiler that makes machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// nvcc's: each lane has registers of its own.
    #[default]
    Nvidia,
    /// LLVM's AMDGPU: registers of a lane (VGPRs), and registers that a wave's lanes share (SGPRs).
    Amdgpu,
}

/// The registers of a quarter of today's SMs, which [`Options::warps`] share.
pub const WARPS_REGISTERS: u32 = 16_384;

/// Lanes of a warp.
const WARP: u32 = 32;

/// How a kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Options {
    /// The architecture.
    pub target: Target,
    /// `-use_fast_math`.
    pub fast_math: bool,
    /// What makes the machine code.
    pub backend: Backend,
    /// Whose matrix products it makes.
    pub matrices: MatrixUnits,
    /// Most registers of a thread: what `-maxrregcount`, `__launch_bounds__` or the GPU allow.
    pub max_registers: u32,
    /// The most warps that share [`WARPS_REGISTERS`] registers on an SM: a thread with fewer than that leaves it gains
    /// nothing.
    pub warps: u32,
    /// Whether that bound says how many warps an SM is to hold, so that fewer registers gain nothing.
    pub occupancy_given: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            target: Target::default(),
            fast_math: false,
            backend: Backend::default(),
            matrices: MatrixUnits::default(),
            max_registers: MOST_REGISTERS,
            warps: 16,
            occupancy_given: false,
        }
    }
}

/// A compiled kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompiledKernel {
    /// Registers of a thread; on AMD its VGPRs.
    pub registers: u32,
    /// Registers that a wave's lanes share, where there are some (SGPRs).
    pub scalar_registers: Option<u32>,
    /// Bytes of static shared memory of a block, where the compiler lays it out otherwise than it is declared.
    pub shared_bytes: Option<u64>,
    /// Bytes of local memory of a thread: arrays that are subscripted with what the compiler does not know.
    pub local_bytes: u64,
    /// The names of these arrays.
    pub in_memory: Vec<String>,
    /// Bytes that did not find a register, as often as they are written.
    pub spill_bytes: u64,
    /// The most of these at one time: the places that a thread has for them.
    pub spill_frame: u64,
    /// Instructions by class.
    pub instructions: BTreeMap<Class, u64>,
    /// The same for each place of the source.
    pub places: Vec<(Site, Class, u32)>,
    /// What is executed, and how often.
    pub code: Vec<Code>,
    frequencies: Vec<Share>,
    /// False where the kernel is too big to be followed to its end.
    pub complete: bool,
    /// The kinds of work that the kernel had before what has no effect was taken away.
    pub built: Vec<Work>,
    /// Where instructions that stay take a value that nothing gives: an uninitialised variable of the source, or a value that
    /// was lost on the way.
    pub unwritten: Vec<Site>,
}

impl CompiledKernel {
    /// All instructions.
    pub fn total(&self) -> u64 {
        self.instructions.values().sum()
    }

    /// True for an array of the thread's own that is known to lie in registers: no access of it goes to memory.
    pub fn keeps_in_registers(&self, array: &str) -> bool {
        let none = self.local_bytes == 0;
        let others = !self.in_memory.is_empty() && !self.in_memory.iter().any(|of| of == array);
        self.complete && (none || others)
    }
}

/// The most registers that an instruction can name.
pub const MOST_REGISTERS: u32 = 255;

/// Compiles a kernel.
pub fn compile(kernel: &Kernel, options: &Options) -> CompiledKernel {
    let limits = &thresholds::nvcc().registers;
    let controls = Controls::of(kernel);
    let none = FxHashSet::default();
    let build = |in_memory: &FxHashSet<_>, picked: &FxHashSet<_>, steady: &Steady| {
        build::Builder::new(
            kernel,
            options,
            &controls,
            in_memory.clone(),
            picked.clone(),
            steady.clone(),
        )
        .run()
    };
    let mut in_memory = FxHashSet::default();
    let mut steady = Steady::default();
    let mut built = build(&in_memory, &none, &steady);
    // Variables that turn out to keep a constant in a loop: once more, knowing it.
    for _ in 0..2 {
        let known = steady.len();
        steady.extend(built.found_steady.steady());
        if steady.len() == known {
            break;
        }
        built = build(&in_memory, &none, &steady);
    }
    // Arrays that turn out to lie in memory: once more, knowing it.
    for _ in 0..4 {
        if built.demoted.is_empty() {
            break;
        }
        in_memory.extend(built.demoted.iter().copied());
        // What lies in memory was not followed when it seemed to keep a constant.
        steady.retain(|(_, (var, _))| !in_memory.contains(var));
        built = build(&in_memory, &none, &steady);
    }
    // Elements of small ones are chosen instead.
    let mut picked = FxHashSet::default();
    if options.backend == Backend::Nvidia
        && picking::pays(&built.graph, kernel, *options, &in_memory)
    {
        let chosen = build(&none, &in_memory, &steady);
        if chosen.demoted.is_empty() && !chosen.truncated {
            built = chosen;
            picked = std::mem::take(&mut in_memory);
        }
    }
    let complete = !built.truncated && !built.cut;
    let calls = built.graph.values.iter().any(|v| v.op == graph::Op::System);
    let mut graph = built.graph;
    let work = work::of(&graph);
    passes::optimise(&mut graph, options.backend, Room::Enough);
    let mut code = select::select(&graph, kernel, *options);
    let mut scalar = None;
    let roles = redistributed(kernel).filter(|_| options.occupancy_given);
    let own = Options {
        max_registers: options.max_registers.max(roles.unwrap_or(0)),
        ..*options
    };
    let allocation = match options.backend {
        Backend::Nvidia => {
            let mut allocation = registers::allocate(&graph, &code, own, limits.calls);
            // Where registers run out, what is cheap is computed again behind an inner loop instead of kept through it.
            if allocation.words_spilled() > 0 && passes::has_nested_loops(&graph) {
                let mut tight = build(&in_memory, &picked, &steady).graph;
                passes::optimise(&mut tight, options.backend, Room::Short);
                let selected = select::select(&tight, kernel, *options);
                let other = registers::allocate(&tight, &selected, own, limits.calls);
                if other.words_spilled() < allocation.words_spilled() {
                    (graph, code, allocation) = (tight, selected, other);
                }
            }
            allocation
        }
        Backend::Amdgpu => {
            let found = amd::registers(&graph, kernel, options.max_registers);
            scalar = Some(found.scalar);
            registers::Allocation {
                registers: found.vector,
                spilled: found.spilled,
            }
        }
    };
    let mut fewest = if calls { limits.calls } else { limits.fewest };
    if passes::loads_far_ahead(&graph) {
        fewest = fewest.max(limits.loads_ahead.min(options.max_registers));
    }
    // What the register file is dealt out by later begins with all that the bounds leave (ptxas 13: 168 of 384 threads).
    let mut registers = allocation.registers.max(fewest);
    if roles.is_some() {
        registers = options.max_registers;
    }
    let mut compiled = CompiledKernel {
        registers,
        spill_bytes: allocation.words_spilled() * 4,
        spill_frame: allocation.most_spilled() * 4,
        complete,
        built: work,
        unwritten: work::unwritten(&graph),
        ..CompiledKernel::default()
    };
    if options.backend == Backend::Amdgpu {
        compiled.registers = allocation.registers;
        compiled.scalar_registers = scalar;
        // Of what is not followed to its end it is not known what reads.
        compiled.shared_bytes = complete.then(|| amd::lds_bytes(&graph, kernel));
    }
    for var in in_memory.iter().filter(|var| !is_only_read(kernel, **var)) {
        compiled.local_bytes += kernel.var(*var).ty.size().next_multiple_of(4);
        compiled.in_memory.push(kernel.var(*var).name.clone());
    }
    compiled.in_memory.sort_unstable();
    for (instruction, copies) in code.all(&graph) {
        let count = instruction.count * copies;
        *compiled.instructions.entry(instruction.class).or_default() += u64::from(count);
        compiled
            .places
            .push((instruction.site, instruction.class, count));
    }
    compiled.code = executed::executed(&graph, &code);
    // Each word that found no register is written where it is made and read where it is used.
    for spilled in &allocation.spilled {
        let block = &graph.blocks[spilled.block];
        let copies = std::iter::once(block.frequency).chain(block.again);
        for (frequency, class) in copies.flat_map(|f| [(f, Class::Stl), (f, Class::Ldl)]) {
            *compiled.instructions.entry(class).or_default() += u64::from(spilled.words);
            let place = (kernel.name_site, class, spilled.words);
            compiled.places.push(place);
            compiled.code.push(Code {
                site: kernel.name_site,
                class,
                count: spilled.words,
                work: spilled.words as f32,
                accesses: spilled.words,
                stores: 0,
                chain: spilled.words as f32 / limits.spills_in_flight,
                frequency,
            });
        }
    }
    compiled.frequencies = graph.frequencies.list;
    compiled
}

/// The registers that a thread of some role gets where warps give each other registers; `None` where they do not (PTX ISA,
/// `setmaxnreg`).
fn redistributed(kernel: &Kernel) -> Option<u32> {
    let mut most = None;
    warplens_ir::executed(kernel, &mut |expression, _| {
        if let ExprKind::Call(Function::Ignored(_, mnemonic), arguments) = &expression.kind
            && mnemonic.starts_with("setmaxnreg")
        {
            let count = match arguments.first().map(|count| &count.kind) {
                Some(ExprKind::Int(count)) => u32::try_from(*count).unwrap_or(0),
                _ => 0,
            };
            most = most.max(Some(count.min(MOST_REGISTERS)));
        }
    });
    most
}

/// True for a parameter that the kernel only reads: no copy of it is made.
pub(crate) fn is_only_read(kernel: &Kernel, id: VarId) -> bool {
    let var = kernel.var(id);
    if !matches!(var.storage, Storage::Param(_)) || var.escapes {
        return false;
    }
    let mut written = false;
    expressions(&kernel.body, &mut |expression| {
        let (ExprKind::Assign(_, target, _) | ExprKind::Step(_, _, target)) = &expression.kind
        else {
            return;
        };
        let mut at = &**target;
        while let ExprKind::Index(inner, _) | ExprKind::Field(inner, _) | ExprKind::Cast(_, inner) =
            &at.kind
        {
            at = inner;
        }
        written |= matches!(at.kind, ExprKind::Var(of) if of == id);
    });
    !written
}
