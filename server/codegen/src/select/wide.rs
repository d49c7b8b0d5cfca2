//! Loads and stores of neighbouring words that are one instruction.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use warplens_ir::{Kernel, Storage, VarId};

use super::Selector;
use crate::graph::{Graph, Op, Space, V};

/// What one instruction moves at most.
const WIDEST: i64 = 16;

/// Accesses that may lie beside each other: their memory, their address where it is not fixed, the version that they
/// see, their bytes, and the stretch of code.
type Key = (Space, Option<V>, u32, u8, u32);

/// Where the arrays of shared memory begin: one behind the other, as they are declared.
pub(super) fn layout(kernel: &Kernel) -> FxHashMap<VarId, i64> {
    let mut end = 0u64;
    let mut starts = FxHashMap::default();
    for (number, var) in kernel.vars.iter().enumerate() {
        if var.storage == Storage::Shared {
            let start = end.next_multiple_of(var.ty.align().max(1));
            end = start.saturating_add(var.ty.size());
            starts.insert(VarId(number as u32), start as i64);
        }
    }
    starts
}

/// The array that an address leads into.
fn array(graph: &Graph, mut v: V) -> Option<VarId> {
    loop {
        match graph.op(v) {
            Op::Base(id) | Op::Param(id, _) => return Some(id),
            Op::Offset(_) | Op::Address(..) | Op::Extend(_) => v = graph.inst(v).args[0],
            _ => return None,
        }
    }
}

/// Which of some accesses by their first bytes, in ascending order, are one: of an aligned stretch of 16 bytes all, or
/// for loads all but one word, or of 8 bytes both words. Returns how many from the first are, at least one.
fn together(starts: &[i64], bytes: i64, aligned: i64, loads: bool) -> usize {
    let first = starts[0];
    for stretch in [WIDEST, WIDEST / 2] {
        let begin = first - first.rem_euclid(stretch);
        let words = (stretch / bytes) as usize;
        let whole = |number: usize| {
            let place = starts[number] - begin;
            let new = number == 0 || starts[number] > starts[number - 1];
            place < stretch && place % bytes == 0 && new
        };
        let most = words.min(starts.len());
        let found = (0..most).take_while(|number| whole(*number)).count();
        let enough = if loads && words == 4 { 3 } else { words };
        if aligned >= stretch && found > 1 && found >= enough {
            return found;
        }
    }
    1
}

impl Selector<'_> {
    /// Neighbouring words are one access where the first is aligned: in shared memory by its subscript and where its
    /// array lies, in device memory by the source's vectors.
    pub(super) fn vectorise(&mut self) {
        let graph = self.graph;
        for block in &graph.blocks {
            self.loads(&block.code);
            self.stores(&block.code);
        }
    }

    fn loads(&mut self, code: &[V]) {
        let mut groups: FxHashMap<Key, Vec<(i64, usize)>> = FxHashMap::default();
        let mut order = Vec::new();
        let mut stretch = 0;
        for (at, &v) in code.iter().enumerate() {
            stretch += u32::from(self.branches_off(v));
            if let Op::Load(space, bytes, offset, version) = self.graph.op(v)
                && let Some((base, offset)) = self.neighbours(v, space, bytes, offset)
            {
                // The front half joins what is aligned as declared, the assembler what it finds in one stretch.
                let declared = base.is_some_and(|base| self.is_declared(base));
                let stretch = if declared { 0 } else { stretch };
                let key = (space, base, version, bytes, stretch);
                let group = groups.entry(key).or_default();
                if group.is_empty() {
                    order.push(key);
                }
                group.push((offset, at));
            }
        }
        for key in order {
            let group = groups.get_mut(&key).expect("put there above");
            for all in self.wide(group, key, true) {
                // The first in the code brings them all.
                let all: SmallVec<[V; 2]> = all.iter().map(|at| code[*at]).collect();
                self.brought.extend(all[1..].iter().copied());
                self.pieces.insert(all[0], all);
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

    /// Stores are one where nothing else comes to their memory in between.
    fn stores(&mut self, code: &[V]) {
        let mut group: Vec<(i64, usize)> = Vec::new();
        let mut key = None;
        for (at, &v) in code.iter().enumerate() {
            let next = match self.graph.op(v) {
                Op::Store(space, bytes, offset) if self.graph.inst(v).args.len() == 2 => self
                    .neighbours(v, space, bytes, offset)
                    .map(|(base, offset)| ((space, base, 0, bytes, 0), offset)),
                Op::Store(..)
                | Op::Atomic(..)
                | Op::Barrier
                | Op::Fence
                | Op::System
                | Op::Shuffle
                | Op::Fixed(..)
                | Op::Product(..)
                | Op::Other => None,
                _ if self.branches_off(v) => None,
                // Another one brings it.
                Op::Load(..) if self.brought.contains(&v) => continue,
                Op::Load(space, ..) if key.is_some_and(|(of, ..): Key| of == space) => None,
                _ => continue,
            };
            let of = next.map(|(of, _)| of);
            if of != key || of.is_none() {
                self.join_stores(&mut group, key, code);
                key = of;
            }
            if let Some((_, offset)) = next {
                group.push((offset, at));
            }
        }
        self.join_stores(&mut group, key, code);
    }

    fn join_stores(&mut self, group: &mut Vec<(i64, usize)>, key: Option<Key>, code: &[V]) {
        let Some(key) = key else { return };
        for all in self.wide(group, key, false) {
            // The last in the code writes them all.
            let mut all: SmallVec<[V; 2]> = all.iter().map(|at| code[*at]).collect();
            let last = all.pop().expect("more than one");
            self.brought.extend(all.iter().copied());
            self.written.insert(last, all);
        }
        group.clear();
    }

    /// True where the declaration says that an address is aligned: of vectors, of memory that the launch sizes.
    fn is_declared(&self, base: V) -> bool {
        let dynamic = |id: VarId| self.kernel.var(id).storage == Storage::DynamicShared;
        self.graph.aligned.contains_key(&base) || array(self.graph, base).is_some_and(dynamic)
    }

    /// What others may lie beside: the address, none for a fixed one, and the first byte from there.
    fn neighbours(&self, v: V, space: Space, bytes: u8, offset: i64) -> Option<(Option<V>, i64)> {
        let base = self.graph.inst(v).args[0];
        let known = space == Space::Shared
            || space == Space::Global && self.graph.aligned.contains_key(&base);
        if !known || !matches!(bytes, 4 | 8) {
            return None;
        }
        if array(self.graph, base).is_some_and(|id| self.kernel.var(id).volatile) {
            return None;
        }
        match self.graph.op(base) {
            Op::Base(id) if self.layout.contains_key(&id) => {
                Some((None, offset.saturating_add(self.layout[&id])))
            }
            _ => Some((Some(base), offset)),
        }
    }

    /// Those of a group that are one access, some at a time, by their places in the code in its order.
    fn wide(&self, group: &mut [(i64, usize)], key: Key, loads: bool) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        if group.len() < 2 {
            return found;
        }
        group.sort_unstable();
        let starts: Vec<i64> = group.iter().map(|(offset, _)| *offset).collect();
        let (_, base, _, bytes, _) = key;
        let aligned = match base.map(|base| (base, self.graph.aligned.get(&base))) {
            None => WIDEST,
            Some((_, Some(&aligned))) => i64::from(aligned),
            Some((base, None)) => self.alignment(base, 0, &mut FxHashMap::default()),
        };
        let mut at = 0;
        while at < group.len() {
            let count = together(&starts[at..], i64::from(bytes), aligned, loads);
            if count > 1 {
                let mut all: Vec<usize> = group[at..at + count].iter().map(|x| x.1).collect();
                all.sort_unstable();
                found.push(all);
            }
            at += count;
        }
        found
    }

    /// A power of two that divides an address or an index, at most 16. What a loop's counter starts at and moves by
    /// divides it: of a phi that is being asked about, `phis` says that it divides itself.
    fn alignment(&self, v: V, depth: u32, phis: &mut FxHashMap<V, i64>) -> i64 {
        let inst = self.graph.inst(v);
        if depth > 12 {
            return 1;
        }
        if inst.op == Op::Phi {
            if let Some(&known) = phis.get(&v) {
                return known;
            }
            phis.insert(v, 16);
            let all = inst.args.iter();
            let power = all
                .map(|arg| self.alignment(*arg, depth + 1, phis))
                .min()
                .unwrap_or(1);
            phis.insert(v, power);
            return power;
        }
        let mut of = |number: usize| self.alignment(inst.args[number], depth + 1, phis);
        let low = |value: i64| -> i64 {
            if value == 0 {
                16
            } else {
                1 << value.trailing_zeros().min(4)
            }
        };
        let power = match inst.op {
            Op::Int(value) => low(value),
            Op::Base(id) if self.kernel.var(id).storage == Storage::DynamicShared => WIDEST,
            Op::Base(id) => self.layout.get(&id).map_or(1, |start| low(*start)),
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
        power.min(WIDEST)
    }
}
