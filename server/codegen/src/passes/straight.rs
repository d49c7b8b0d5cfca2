//! Longer stretches of straight code: short branches under predicates, blocks that follow each other.

use rustc_hash::FxHashSet;

use crate::graph::{B, End, Graph, Op, Space};
use crate::thresholds::nvcc;
use crate::{Backend, Class};

/// Puts short branches where their condition is: what they leave is chosen.
pub(super) fn predicate(graph: &mut Graph, backend: Backend) {
    let headers: FxHashSet<B> = graph.loops.iter().map(|l| l.header).collect();
    for number in (0..graph.blocks.len()).rev() {
        let block = B(number as u32);
        while let End::Branch(condition, yes, no) = graph.block(block).end {
            let (Some(a), Some(b)) = (side(graph, yes, backend), side(graph, no, backend)) else {
                break;
            };
            let copies = graph.block(block).copies;
            if a.0 != b.0
                || a.1 + b.1 > nvcc().predication.operations
                || headers.contains(&a.0)
                || graph.block(a.0).from.len() != 2
                || graph.block(a.0).copies != copies
                || graph.block(a.0).within != graph.block(block).within
            {
                break;
            }
            let join = a.0;
            for way in [yes, no] {
                append(graph, block, way);
            }
            let first = graph.block(join).from[0];
            let code = graph.blocks[join.0 as usize].code.clone();
            for v in code {
                if graph.op(v) != Op::Phi {
                    continue;
                }
                let inst = &mut graph.values[v.0 as usize];
                let (mut on_yes, mut on_no) = (inst.args[0], inst.args[1]);
                if first != yes {
                    std::mem::swap(&mut on_yes, &mut on_no);
                }
                inst.op = Op::Select;
                inst.args = smallvec::smallvec![condition, on_yes, on_no];
            }
            append(graph, block, join);
            take_over(graph, block, join);
        }
    }
}

/// Where a side leads and how much it does; none where it must stay a branch.
fn side(graph: &Graph, way: B, backend: Backend) -> Option<(B, usize)> {
    let block = graph.block(way);
    let End::Jump(to) = block.end else {
        return None;
    };
    if block.from.len() != 1 {
        return None;
    }
    let mut size = 0;
    for &v in &block.code {
        match graph.op(v) {
            // A copy past the registers takes a predicate as a load does.
            Op::Fixed(Class::Ldg, 1) if backend == Backend::Nvidia => size += 2,
            Op::Barrier
            | Op::Shuffle
            | Op::Vote
            | Op::Atomic(..)
            | Op::Fixed(..)
            | Op::Product(..)
            | Op::Texture
            | Op::Math(_)
            | Op::Div(_)
            | Op::Rem(_)
            | Op::Phi => return None,
            // Lanes are masked there, by branches.
            Op::Load(..) | Op::Store(..) if backend == Backend::Amdgpu => return None,
            Op::Load(Space::Global, ..) | Op::Store(Space::Global, ..) => size += 2,
            op if op.is_operand() => {}
            _ => size += 1,
        }
    }
    Some((to, size))
}

/// Joins blocks of which one only leads to the other, as often as it is executed.
pub(super) fn merge(graph: &mut Graph) {
    let headers: FxHashSet<B> = graph.loops.iter().map(|l| l.header).collect();
    for number in 0..graph.blocks.len() {
        let block = B(number as u32);
        while let End::Jump(next) = graph.block(block).end {
            let own = graph.block(next);
            if own.from.len() != 1
                || headers.contains(&next)
                || next == block
                || own.copies != graph.block(block).copies
                || own.within != graph.block(block).within
                || own.frequency != graph.block(block).frequency
            {
                break;
            }
            append(graph, block, next);
            take_over(graph, block, next);
        }
    }
}

/// Moves a block's code behind another's.
fn append(graph: &mut Graph, to: B, from: B) {
    let code = std::mem::take(&mut graph.blocks[from.0 as usize].code);
    for v in &code {
        graph.values[v.0 as usize].block = to;
    }
    graph.blocks[to.0 as usize].code.extend(code);
}

/// A block ends as another did, which is gone.
fn take_over(graph: &mut Graph, block: B, gone: B) {
    let end = graph.block(gone).end;
    for to in graph.to(gone) {
        for from in &mut graph.blocks[to.0 as usize].from {
            if *from == gone {
                *from = block;
            }
        }
    }
    graph.blocks[block.0 as usize].end = end;
    let gone = &mut graph.blocks[gone.0 as usize];
    gone.end = End::Exit;
    gone.from.clear();
}
