//! Which arrays of a thread's own need no memory although their subscripts are not known.
//!
//! nvcc's assembler replaces an access by a comparison with each element's subscript and a choice, as long as the kernel does
//! not grow too much by it. Measured with nvcc 13.5 on kernels of our own over 2 to 96 elements and up to 64 accesses: those in
//! memory were those whose comparisons would outnumber the instructions that the kernel has without them, to some 5 %; a loop's
//! counted ten times, comparisons and instructions alike, a division or a function of the library as one instruction. Elements
//! of other sizes than a word never left memory.

use rustc_hash::FxHashSet;
use warplens_ir::{Kernel, VarId};

use crate::build::{WIDEST, common};
use crate::graph::{Block, Graph, Op, Space, V};
use crate::thresholds::nvcc;
use crate::{Options, build, passes, recipes, select};

/// Loops in each other that are told apart.
const DEEPEST: usize = 16;

/// True where accesses of these arrays, which lie in memory in the graph, become choices.
pub(crate) fn pays(
    graph: &Graph,
    kernel: &Kernel,
    options: Options,
    in_memory: &FxHashSet<VarId>,
) -> bool {
    let words = |id: &VarId| kernel.var(*id).ty.size().div_ceil(4);
    let all: u64 = in_memory.iter().map(words).sum();
    let of_words = |id: &VarId| {
        let parts = build::scalars(&kernel.var(*id).ty);
        parts.iter().all(|(_, part)| part.size() == 4)
    };
    if all == 0 || all > nvcc().promotion.words || !in_memory.iter().all(of_words) {
        return false;
    }
    let mut graph = graph.clone();
    passes::optimise(&mut graph, options.backend, passes::Room::Enough);
    let code = select::select(&graph, kernel, options);
    // Accesses of known elements that lie side by side are one.
    let beside = [4, 2, 1]
        .into_iter()
        .find(|words| all.is_multiple_of(*words));
    let saved = 1.0 - 1.0 / beside.unwrap_or(1) as f64;
    let (mut comparisons, mut instructions) = (0.0, 0.0);
    for (block, code) in graph.blocks.iter().zip(&code.blocks) {
        let times = times(&graph, block);
        // Words side by side are compared for together.
        let mut together: FxHashSet<(bool, V, i64)> = FxHashSet::default();
        for &v in &block.code {
            let inst = graph.inst(v);
            if inst.ty.is_float()
                && let Some(number) = select::called(&graph, v, options.fast_math)
            {
                let made = recipes::recipe(options.target, number).in_place.iter();
                let made: u32 = made.map(|(_, count)| count).sum();
                instructions -= times * f64::from(made.saturating_sub(1));
            }
            let (bytes, at) = match inst.op {
                Op::Load(Space::Local, bytes, at, _) | Op::Store(Space::Local, bytes, at) => {
                    (bytes, at)
                }
                Op::Atomic(Space::Local, _) => return false,
                _ => continue,
            };
            let Some(step) = step(&graph, inst.args[0], in_memory) else {
                return false;
            };
            if step == u32::MAX {
                instructions -= times * saved;
            } else {
                // One array of all: the assembler does not tell them apart.
                let step = common(u64::from(step), WIDEST).max(4);
                let elements = all * 4 / step;
                let loads = matches!(inst.op, Op::Load(..));
                if together.insert((loads, inst.args[0], at.div_euclid(step as i64))) {
                    comparisons += times * elements as f64 * f64::from(bytes).max(4.0) / 4.0;
                }
            }
        }
        let all = code.iter().map(|instruction| instruction.count);
        instructions += times * f64::from(all.sum::<u32>());
    }
    let once = code.once.iter().map(|instruction| instruction.count);
    instructions += f64::from(once.sum::<u32>());
    comparisons <= instructions
}

/// How often the assembler takes a block's code to be executed, all its copies together.
fn times(graph: &Graph, block: &Block) -> f64 {
    let weight = nvcc().promotion.loop_weight;
    let mut turns = 1.0;
    let mut within = block.within;
    for _ in 0..DEEPEST {
        let Some(around) = within else { break };
        turns *= weight;
        within = graph.block(graph.loops[around as usize].before).within;
    }
    // A loop's test is once before it.
    let before = f64::from(u8::from(block.again.is_some()));
    (f64::from(block.copies) - before) * turns + before * turns / weight
}

/// A number that a subscript is always a multiple of: a loop's counter begins at a number and moves by one.
fn multiple_of(graph: &Graph, v: V) -> u64 {
    let inst = graph.inst(v);
    match (inst.op, inst.args.as_slice()) {
        (Op::Int(value), _) => value.unsigned_abs(),
        (Op::Phi, &[first, mut last]) => {
            let mut moved: i64 = 0;
            for _ in 0..DEEPEST {
                if last == v {
                    let start = graph.int(first).map_or(1, i64::unsigned_abs);
                    return common(start, moved.unsigned_abs()).max(1);
                }
                let next = graph.inst(last);
                let (Op::Add, &[a, b]) = (next.op, next.args.as_slice()) else {
                    return 1;
                };
                let (rest, number) = match (graph.int(a), graph.int(b)) {
                    (Some(number), _) => (b, number),
                    (_, Some(number)) => (a, number),
                    _ => return 1,
                };
                (last, moved) = (rest, moved.wrapping_add(number));
            }
            1
        }
        _ => 1,
    }
}

/// The fewest bytes by which an address in one of the arrays moves, `u32::MAX` where it does not; `None` of others.
fn step(graph: &Graph, mut address: V, in_memory: &FxHashSet<VarId>) -> Option<u32> {
    let mut step = u32::MAX;
    loop {
        let inst = graph.inst(address);
        match inst.op {
            Op::Base(id) => return in_memory.contains(&id).then_some(step),
            Op::Address(size, _) => {
                let every = multiple_of(graph, inst.args[1]).clamp(1, u64::from(u32::MAX));
                let every = u32::try_from(every).unwrap_or(u32::MAX);
                step = step.min(size.saturating_mul(every));
            }
            Op::Offset(_) | Op::Extend(_) => {}
            _ => return None,
        }
        address = inst.args[0];
    }
}
