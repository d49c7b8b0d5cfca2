//! Addresses that a loop moves on by a constant: they live in registers of their own, in place of what they are made
//! of (LLVM's loop strength reduction).

use rustc_hash::FxHashMap;

use crate::graph::{B, End, Graph, Loop, Op, Ty, V};

/// Which addresses move, and what is computed then at all.
pub(super) struct Moving {
    /// By address: its loop.
    loops: FxHashMap<V, u32>,
    needed: Vec<bool>,
}

impl Moving {
    pub(super) fn of(graph: &Graph) -> Moving {
        let mut moving = Moving {
            loops: FxHashMap::default(),
            needed: vec![false; graph.values.len()],
        };
        for block in &graph.blocks {
            let Some(number) = block.within else { continue };
            let around = &graph.loops[number as usize];
            for &v in &block.code {
                let inst = graph.inst(v);
                if matches!(inst.op, Op::Address(..))
                    && inst.ty == Ty::I64
                    && is_fixed(graph, inst.args[0], around)
                    && step(graph, inst.args[1], around, 0).is_some_and(|by| by != 0)
                {
                    moving.loops.insert(v, number);
                }
            }
        }
        moving.mark(graph);
        moving
    }

    /// The loop that moves an address on.
    pub(super) fn within(&self, v: V) -> Option<u32> {
        self.loops.get(&v).copied()
    }

    /// False for what only addresses needed that move by themselves.
    pub(super) fn is_needed(&self, v: V) -> bool {
        self.needed[v.0 as usize]
    }

    /// What a moving address is made of before its loop.
    pub(super) fn leaves(&self, graph: &Graph, v: V) -> Vec<V> {
        let Some(&number) = self.loops.get(&v) else {
            return Vec::new();
        };
        let around = &graph.loops[number as usize];
        let mut leaves = Vec::new();
        let mut open = graph.inst(v).args.to_vec();
        while let Some(v) = open.pop() {
            if is_fixed(graph, v, around) {
                if !leaves.contains(&v) {
                    leaves.push(v);
                }
            } else if graph.op(v) == Op::Phi {
                open.extend(first(graph, v, around));
            } else {
                open.extend(graph.inst(v).args.iter().copied());
            }
        }
        leaves
    }

    fn mark(&mut self, graph: &Graph) {
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
            if std::mem::replace(&mut self.needed[v.0 as usize], true) {
                continue;
            }
            if self.loops.contains_key(&v) {
                open.extend(self.leaves(graph, v));
            } else {
                open.extend(graph.inst(v).args.iter().copied());
            }
        }
    }
}

fn is_fixed(graph: &Graph, v: V, around: &Loop) -> bool {
    graph.op(v).is_operand() || !graph.is_in(v, around)
}

/// What a loop's counter is in its first iteration.
fn first(graph: &Graph, phi: V, around: &Loop) -> Option<V> {
    arguments(graph, phi, around).map(|(first, _)| first)
}

/// A counter's first value, and the one that an iteration leaves.
fn arguments(graph: &Graph, phi: V, around: &Loop) -> Option<(V, V)> {
    let inst = graph.inst(phi);
    let header: B = around.header;
    match (&inst.args[..], &graph.block(header).from[..]) {
        ([a, b], [from, _]) if inst.op == Op::Phi && inst.block == header => {
            if *from == around.before {
                Some((*a, *b))
            } else {
                Some((*b, *a))
            }
        }
        _ => None,
    }
}

/// By how much an iteration moves a value, where that is a constant.
fn step(graph: &Graph, v: V, around: &Loop, depth: u32) -> Option<i64> {
    if is_fixed(graph, v, around) {
        return Some(0);
    }
    if depth > 8 {
        return None;
    }
    let inst = graph.inst(v);
    let of = |number: usize| step(graph, inst.args[number], around, depth + 1);
    let constant = |number: usize| graph.int(inst.args[number]);
    match inst.op {
        Op::Phi => {
            let (_, next) = arguments(graph, v, around)?;
            let next = graph.inst(next);
            let by = |a: usize, b: usize| (next.args[a] == v).then(|| graph.int(next.args[b]))?;
            match next.op {
                Op::Add => by(0, 1).or_else(|| by(1, 0)),
                Op::Sub => by(0, 1).and_then(i64::checked_neg),
                _ => None,
            }
        }
        Op::Add => of(0)?.checked_add(of(1)?),
        Op::Sub => of(0)?.checked_sub(of(1)?),
        Op::Mul => match (constant(0), constant(1)) {
            (_, Some(by)) => of(0)?.checked_mul(by),
            (Some(by), _) => of(1)?.checked_mul(by),
            _ => None,
        },
        Op::Shl => of(0)?.checked_mul(1i64.checked_shl(u32::try_from(constant(1)?).ok()?)?),
        Op::Extend(true) => of(0),
        _ => None,
    }
}
