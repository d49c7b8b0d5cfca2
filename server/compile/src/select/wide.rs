//! Loads of neighbouring words that are one instruction.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use warplens_ir::Storage;

use super::Selector;
use crate::graph::{Op, Space, V};

impl Selector<'_> {
    /// Loads of neighbouring words are one where the first is aligned: by its subscript in shared memory, by the
    /// source's vectors in device memory.
    pub(super) fn vectorise(&mut self) {
        let graph = self.graph;
        for block in &graph.blocks {
            let mut groups: FxHashMap<(V, u32), Vec<(i64, V)>> = FxHashMap::default();
            let mut order = Vec::new();
            for &v in &block.code {
                if let Op::Load(space @ (Space::Shared | Space::Global), 4, offset, version) =
                    graph.op(v)
                {
                    let base = graph.inst(v).args[0];
                    if space == Space::Global && !graph.aligned.contains_key(&base) {
                        continue;
                    }
                    let key = (base, version);
                    let group = groups.entry(key).or_default();
                    if group.is_empty() {
                        order.push(key);
                    }
                    group.push((offset, v));
                }
            }
            for key in order {
                let group = groups.get_mut(&key).expect("put there above");
                group.sort_unstable_by_key(|(offset, _)| *offset);
                let aligned = match graph.aligned.get(&key.0) {
                    Some(&bytes) => i64::from(bytes),
                    None => self.alignment(key.0, 0),
                };
                let mut at = 0;
                while at < group.len() {
                    let start = group[at].0;
                    let run = |words: usize| {
                        let bytes = words as i64 * 4;
                        aligned >= bytes
                            && start.rem_euclid(bytes) == 0
                            && group.len() >= at + words
                            && (0..words).all(|k| group[at + k].0 == start + 4 * k as i64)
                    };
                    let words = if run(4) {
                        4
                    } else if run(2) {
                        2
                    } else {
                        1
                    };
                    if words > 1 {
                        // The first in the code brings them all.
                        let mut all: Vec<V> = group[at..at + words].iter().map(|x| x.1).collect();
                        all.sort_unstable();
                        self.pieces.insert(all[0], SmallVec::from_slice(&all));
                        self.brought.extend(all[1..].iter().copied());
                    }
                    at += words;
                }
            }
        }
    }

    /// What is done to both halves of a pair is one instruction.
    pub(super) fn halves(&mut self) {
        let graph = self.graph;
        if graph.pairs.is_empty() {
            return;
        }
        for block in &graph.blocks {
            let mut before = FxHashSet::default();
            for &v in &block.code {
                if let Some(&first) = graph.pairs.get(&v)
                    && before.contains(&first)
                    && graph.op(first) == graph.op(v)
                {
                    self.pieces.insert(first, SmallVec::from_slice(&[first, v]));
                    self.brought.insert(v);
                }
                before.insert(v);
            }
        }
    }

    /// A power of two that divides an address or an index, at most 16.
    fn alignment(&self, v: V, depth: u32) -> i64 {
        let inst = self.graph.inst(v);
        if depth > 12 {
            return 1;
        }
        let of = |number: usize| self.alignment(inst.args[number], depth + 1);
        let low = |value: i64| -> i64 {
            if value == 0 {
                16
            } else {
                1 << value.trailing_zeros().min(4)
            }
        };
        let power = match inst.op {
            Op::Int(value) => low(value),
            Op::Base(id) if self.kernel.var(id).storage == Storage::Shared => 16,
            Op::Address(size, _) => of(0).min(low(i64::from(size)).saturating_mul(of(1))),
            Op::Offset(bytes) => of(0).min(low(bytes)),
            Op::Add | Op::Sub | Op::Or => of(0).min(of(1)),
            Op::Mul => of(0).saturating_mul(of(1)),
            Op::Shl => match self.graph.int(inst.args[1]) {
                Some(by) => of(0) << by.clamp(0, 4),
                None => of(0),
            },
            Op::And => of(0).max(of(1)),
            Op::Extend(_) | Op::Truncate => of(0),
            _ => 1,
        };
        power.min(16)
    }
}
