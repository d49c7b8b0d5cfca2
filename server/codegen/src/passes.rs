//! What is done to the whole graph: code that nothing needs goes, what a loop computes alike each time moves out.

mod straight;

use rustc_hash::FxHashMap;
use warplens_ir::stop;

use crate::Backend;
use crate::graph::{Args, B, End, Graph, Inst, Loop, Op, Space, Ty, V};
use crate::thresholds::nvcc;

/// Registers for what is kept through a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    Short,
}

/// Everything, until it stays.
pub(crate) fn optimise(graph: &mut Graph, backend: Backend, room: Room) {
    let first: [fn(&mut Graph); 2] = [same_phis, dead];
    let last: [fn(&mut Graph); 2] = [contract, dead];
    for pass in first {
        stop::check();
        pass(graph);
    }
    stop::check();
    invariant(graph, room);
    for pass in last {
        stop::check();
        pass(graph);
    }
    straight::predicate(graph, backend);
    stop::check();
    straight::merge(graph);
}

/// A phi of one value is that value.
fn same_phis(graph: &mut Graph) {
    let mut stands_for: Vec<V> = (0..graph.values.len() as u32).map(V).collect();
    let find = |stands_for: &Vec<V>, mut v: V| {
        while stands_for[v.0 as usize] != v {
            v = stands_for[v.0 as usize];
        }
        v
    };
    let mut phis: Vec<V> = stands_for.clone();
    phis.retain(|v| graph.op(*v) == Op::Phi);
    let (mut changed, mut found) = (true, false);
    while changed {
        changed = false;
        for &v in &phis {
            let number = v.0 as usize;
            if stands_for[number] != v {
                continue;
            }
            let mut only = None;
            let mut same = true;
            for arg in &graph.inst(v).args {
                let arg = find(&stands_for, *arg);
                if arg == v {
                    continue;
                }
                match only {
                    None => only = Some(arg),
                    Some(other) if other == arg => {}
                    Some(_) => same = false,
                }
            }
            if let (true, Some(only)) = (same, only) {
                stands_for[number] = only;
                changed = true;
                found = true;
            }
        }
    }
    if !found {
        return;
    }
    for number in 0..graph.values.len() {
        for at in 0..graph.values[number].args.len() {
            let arg = graph.values[number].args[at];
            graph.values[number].args[at] = find(&stands_for, arg);
        }
    }
    for block in &mut graph.blocks {
        if let End::Branch(condition, yes, no) = block.end {
            block.end = End::Branch(find(&stands_for, condition), yes, no);
        }
        block.code.retain(|v| stands_for[v.0 as usize] == *v);
    }
}

/// Takes away what has no effect.
fn dead(graph: &mut Graph) {
    loop {
        let mut live = vec![false; graph.values.len()];
        let mut open: Vec<V> = Vec::new();
        for block in &graph.blocks {
            for &v in &block.code {
                if graph.op(v).has_effect() || graph.op(v) == Op::Other {
                    open.push(v);
                }
            }
            if let End::Branch(condition, ..) = block.end {
                open.push(condition);
            }
        }
        while let Some(v) = open.pop() {
            if !std::mem::replace(&mut live[v.0 as usize], true) {
                open.extend(graph.inst(v).args.iter().copied());
            }
        }
        for block in &mut graph.blocks {
            block.code.retain(|v| live[v.0 as usize]);
        }
        if !straighten(graph) {
            return;
        }
    }
}

/// A branch whose ways do nothing is none. True where one went.
fn straighten(graph: &mut Graph) -> bool {
    let mut changed = false;
    for number in 0..graph.blocks.len() {
        let block = B(number as u32);
        let End::Branch(_, yes, no) = graph.block(block).end else {
            continue;
        };
        let through = |graph: &Graph, way: B| -> Option<B> {
            let block = graph.block(way);
            match block.end {
                End::Jump(to) if block.code.is_empty() && block.from.len() == 1 => Some(to),
                _ => None,
            }
        };
        let (Some(a), Some(b)) = (through(graph, yes), through(graph, no)) else {
            continue;
        };
        if a != b || graph.block(a).from.len() != 2 {
            continue;
        }
        let phis = graph.block(a).code.iter().any(|v| graph.op(*v) == Op::Phi);
        if phis {
            continue;
        }
        graph.blocks[number].end = End::Jump(yes);
        graph.blocks[no.0 as usize].from.clear();
        graph.blocks[no.0 as usize].end = End::Exit;
        let from = &mut graph.blocks[a.0 as usize].from;
        from.retain(|b| *b != no);
        changed = true;
    }
    changed
}

/// True where a loop is in another one.
pub(crate) fn has_nested_loops(graph: &Graph) -> bool {
    (0..graph.loops.len()).any(|number| holds_loop(graph, number))
}

fn holds_loop(graph: &Graph, number: usize) -> bool {
    let around = &graph.loops[number];
    let mut others = graph.loops.iter();
    others.any(|inner| inner.header > around.header && inner.end <= around.end)
}

/// Moves what is the same in every iteration in front of its loop, from the innermost outwards. Where registers are short, what is
/// cheap stays in a loop that holds others: moved in front of it, it would have to be kept through these.
fn invariant(graph: &mut Graph, room: Room) {
    for number in (0..graph.loops.len()).rev() {
        let around = graph.loops[number].clone();
        let keeps_cheap = room == Room::Short && holds_loop(graph, number);
        for block in around.header.0..around.end.0 {
            let code = std::mem::take(&mut graph.blocks[block as usize].code);
            let mut stays = Vec::with_capacity(code.len());
            for v in code {
                let op = graph.op(v);
                let fixed = op.is_pure()
                    || matches!(op, Op::Load(space, _, _, version) if may_leave(graph, &around, block, space, version));
                let outside = graph
                    .inst(v)
                    .args
                    .iter()
                    .all(|arg| !graph.is_in(*arg, &around) || graph.op(*arg).is_operand());
                if fixed && outside && !(keeps_cheap && op.is_cheap()) {
                    graph.values[v.0 as usize].block = around.before;
                    graph.blocks[around.before.0 as usize].code.push(v);
                } else {
                    stays.push(v);
                }
            }
            graph.blocks[block as usize].code = stays;
        }
        regroup(graph, &around);
    }
    remainder(graph);
}

/// Adds first what a loop leaves alone, in front of it, and then what it changes: `(stage + row) + column` keeps one word, not two.
/// (LLVM's Reassociate, and what its LICM does to chains of addresses.)
fn regroup(graph: &mut Graph, around: &Loop) {
    for block in around.header.0..around.end.0 {
        for v in graph.blocks[block as usize].code.clone() {
            let outer = graph.inst(v).clone();
            let &[inner, last] = outer.args.as_slice() else {
                continue;
            };
            let fixed = |graph: &Graph, v: V| !graph.is_in(v, around) && !graph.op(v).is_operand();
            // What is added last of a sum is either.
            let (inner, last) = match outer.op {
                Op::Address(..) => (inner, last),
                Op::Add if outer.ty == Ty::I32 && fixed(graph, inner) => (last, inner),
                Op::Add if outer.ty == Ty::I32 => (inner, last),
                _ => continue,
            };
            if !fixed(graph, last) || !graph.is_in(inner, around) {
                continue;
            }
            let within = graph.inst(inner).clone();
            let &[first, second] = within.args.as_slice() else {
                continue;
            };
            let (kept, changed) = match (outer.op, within.op) {
                (Op::Add, Op::Add) if within.ty == Ty::I32 && fixed(graph, first) => {
                    (first, second)
                }
                (Op::Add, Op::Add) if within.ty == Ty::I32 => (second, first),
                (Op::Address(..), Op::Address(..)) => (first, second),
                _ => continue,
            };
            let outside = !graph.is_in(kept, around);
            if !outside || !graph.is_in(changed, around) || graph.op(changed).is_operand() {
                continue;
            }
            let together = V(graph.values.len() as u32);
            graph.values.push(Inst {
                args: smallvec::smallvec![kept, last],
                block: around.before,
                ..outer.clone()
            });
            graph.blocks[around.before.0 as usize].code.push(together);
            let made = &mut graph.values[v.0 as usize];
            made.op = within.op;
            made.args = smallvec::smallvec![together, changed];
        }
    }
}

/// What was hoisted before a loop need not be computed again before its remainder loop.
fn remainder(graph: &mut Graph) {
    for number in 1..graph.loops.len() {
        if !graph.loops[number].remainder {
            continue;
        }
        let inner = graph.loops[number].header;
        let before = graph.loops[number].before;
        let Some(main) = graph.loops[..number]
            .iter()
            .rev()
            .find(|other| other.end <= inner && other.before < before)
        else {
            continue;
        };
        let known: FxHashMap<(Op, Ty, Args), V> = (graph.block(main.before).code.iter())
            .map(|v| (graph.inst(*v), *v))
            .filter(|(inst, _)| inst.op.is_pure() || matches!(inst.op, Op::Load(..)))
            .map(|(inst, v)| ((inst.op, inst.ty, inst.args.clone()), v))
            .collect();
        for v in graph.block(before).code.clone() {
            // In order: what it is made of may have been found before.
            for at in 0..graph.inst(v).args.len() {
                let arg = graph.inst(v).args[at];
                if let (Op::Phi, &[same]) = (graph.op(arg), graph.inst(arg).args.as_slice()) {
                    graph.values[v.0 as usize].args[at] = same;
                }
            }
            let inst = graph.inst(v);
            if let Some(&same) = known.get(&(inst.op, inst.ty, inst.args.clone()))
                && same != v
            {
                let inst = &mut graph.values[v.0 as usize];
                inst.op = Op::Phi;
                inst.args = smallvec::smallvec![same];
            }
        }
    }
    same_phis(graph);
}

/// True where a loop that the assembler unrolls further loads from device memory.
pub(crate) fn loads_far_ahead(graph: &Graph) -> bool {
    let far = |v: &V| matches!(graph.op(*v), Op::Load(Space::Global, ..));
    (graph.blocks.iter())
        .any(|block| block.copies >= nvcc().assembler.copies_ahead && block.code.iter().any(far))
}

/// A load may leave a loop that runs it each time and does not change what it reads.
fn may_leave(
    graph: &Graph,
    around: &crate::graph::Loop,
    block: u32,
    space: Space,
    version: u32,
) -> bool {
    let constant = version == 0 || space == Space::Constant;
    let first = block == around.header.0
        || graph.blocks[block as usize].from.first() == Some(&around.header);
    (constant || version <= around.version) && first
}

/// A product that is added only is one with the addition.
fn contract(graph: &mut Graph) {
    let mut uses = vec![0u32; graph.values.len()];
    for block in &graph.blocks {
        for &v in &block.code {
            for arg in &graph.inst(v).args {
                uses[arg.0 as usize] += 1;
            }
        }
        if let End::Branch(condition, ..) = block.end {
            uses[condition.0 as usize] += 1;
        }
    }
    for block in 0..graph.blocks.len() {
        let code = graph.blocks[block].code.clone();
        for v in code {
            let inst = graph.inst(v);
            if !inst.ty.is_float() || !matches!(inst.op, Op::Add | Op::Sub) {
                continue;
            }
            let (a, b) = (inst.args[0], inst.args[1]);
            let product = |v: V| {
                let inner = graph.inst(v);
                // A negated product is one too.
                let inner_v = if inner.op == Op::Neg {
                    inner.args[0]
                } else {
                    v
                };
                (graph.op(inner_v) == Op::Mul && uses[inner_v.0 as usize] == 1).then_some(inner_v)
            };
            let (mul, other) = match (product(a), product(b)) {
                (Some(mul), _) => (mul, b),
                (None, Some(mul)) => (mul, a),
                _ => continue,
            };
            let args = graph.inst(mul).args.clone();
            let fused = &mut graph.values[v.0 as usize];
            fused.op = Op::Fma;
            fused.args = smallvec::smallvec![args[0], args[1], other];
        }
    }
}
