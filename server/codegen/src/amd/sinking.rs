//! Code that LLVM moves behind a branch of which one side alone needs it (`InstCombine`, `MachineSink`).
//!
//! What holds: a value is the same wherever it is computed; loads stay where memory may change on the way. A load that stays
//! lives until the code that reads it: where sums are stored under a guard, all that was loaded for them lives at the same time.

use super::flow::Flow;
use crate::graph::{B, End, Graph, Op, V};

/// The graph with such code where it is needed.
pub(super) fn sunk(graph: &Graph, flow: &Flow) -> Graph {
    let mut uses = Uses::of(graph);
    let mut moved: Vec<Vec<V>> = vec![Vec::new(); graph.blocks.len()];
    let mut graph = graph.clone();
    for number in (0..graph.blocks.len()).rev() {
        let block = B(number as u32);
        if !flow.is_reached(block) {
            continue;
        }
        let mut kept = Vec::new();
        let mut changes_memory = false;
        let code = std::mem::take(&mut graph.blocks[number].code);
        for v in code.into_iter().rev() {
            let op = graph.op(v);
            let is_load = matches!(op, Op::Load(..)) && !changes_memory;
            changes_memory |= op.has_effect() || op == Op::Other;
            let moves = is_load || op.is_pure() && !matches!(op, Op::Piece(_));
            let target = uses.common(v, flow).filter(|_| moves);
            let target = target
                .and_then(|at| entry(&graph, flow, block, at))
                // A load goes right behind the branch alone: nothing is between.
                .filter(|to| !is_load || graph.block(*to).from[..] == [block]);
            match target {
                Some(to) => {
                    moved[to.0 as usize].push(v);
                    graph.values[v.0 as usize].block = to;
                    uses.moved(&graph, v, block, to);
                }
                None => kept.push(v),
            }
        }
        kept.reverse();
        graph.blocks[number].code = kept;
    }
    for (number, mut first) in moved.into_iter().enumerate() {
        first.reverse();
        let phis = {
            let code = &graph.blocks[number].code;
            code.iter().take_while(|v| graph.op(**v) == Op::Phi).count()
        };
        graph.blocks[number].code.splice(phis..phis, first);
    }
    graph
}

/// Where code of `from` goes that is read in `at` alone: a block that ends the kernel, else the innermost side of a branch that
/// leads to `at`, in the loop of `from`; `None` where it stays.
fn entry(graph: &Graph, flow: &Flow, from: B, at: B) -> Option<B> {
    let in_loop = |block: B| graph.block(block).within;
    if at != from && graph.block(at).end == End::Exit && in_loop(at) == in_loop(from) {
        return Some(at);
    }
    let mut at = at;
    while at != from {
        let above = flow.above(at);
        if above == at {
            return None;
        }
        let is_side = graph.block(at).from.len() == 1
            && matches!(graph.block(above).end, End::Branch(_, yes, no) if yes != no);
        if is_side && in_loop(at) == in_loop(from) {
            return Some(at);
        }
        at = above;
    }
    None
}

/// Where each value is read: the last block on every way to all that read it.
struct Uses(Vec<Vec<B>>);

impl Uses {
    fn of(graph: &Graph) -> Uses {
        let mut uses = Uses(vec![Vec::new(); graph.values.len()]);
        for (number, block) in graph.blocks.iter().enumerate() {
            let at = B(number as u32);
            for &v in &block.code {
                let inst = graph.inst(v);
                for (place, arg) in inst.args.iter().enumerate() {
                    // A phi reads where its block is come from.
                    let at = match inst.op {
                        Op::Phi => block.from.get(place).copied().unwrap_or(at),
                        _ => at,
                    };
                    uses.0[arg.0 as usize].push(at);
                }
            }
            if let End::Branch(condition, ..) = block.end {
                uses.0[condition.0 as usize].push(at);
            }
        }
        uses
    }

    fn common(&self, v: V, flow: &Flow) -> Option<B> {
        let mut all = self.0[v.0 as usize].iter().copied();
        let first = all.next()?;
        Some(all.fold(first, |found, at| flow.common(found, at)))
    }

    /// What a value reads is read where it is now.
    fn moved(&mut self, graph: &Graph, v: V, from: B, to: B) {
        for arg in &graph.inst(v).args {
            let uses = &mut self.0[arg.0 as usize];
            if let Some(at) = uses.iter().position(|at| *at == from) {
                uses[at] = to;
            }
        }
    }
}
