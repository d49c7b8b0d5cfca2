//! A loop that stays one, and what its iterations hand on to each other.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use warplens_ir::{BinaryOp, ExprKind, LoopKind};

use super::parts::Parts;
use super::place::common;
use super::tally::Touched;
use super::versions::{Object, Versions};
use super::{Builder, Env, Frame, Key};
use crate::frequency::{Frequency, Share};
use crate::graph::{B, End, Loop, Op, Space, Ty, V};
use crate::thresholds::nvcc;

/// A place of memory that a loop keeps in a register: its access, its base, the value at the loop's head.
type Carried = ((Space, u8, i64), V, V);

/// The most copies of a block that are counted.
const MOST_COPIES: u32 = 512;

impl Builder<'_> {
    /// A loop that is unrolled by the first number, of a trip count that is the second.
    pub(super) fn fully_unrolled(
        &mut self,
        parts: Parts,
        touched: &Touched,
        (times, trips): (u64, u64),
    ) {
        let mut breaks = Vec::new();
        let frequency = self.frequency;
        let each = if touched.exits && trips > 1 {
            self.evenly(parts, (1, trips))
        } else {
            frequency
        };
        for _ in 0..times {
            if self.at.is_none() || self.truncated {
                break;
            }
            self.begins(each);
            self.frames.push(Frame::default());
            self.statements(parts.body);
            let frame = self.frames.pop().expect("pushed above");
            breaks.extend(frame.breaks);
            self.returns_from(frame.returns);
            self.continued(frame.continues, each);
            if let Some(step) = parts.step {
                self.value(step);
            }
        }
        if breaks.is_empty() {
            self.begins(frequency);
        }
        self.frequency = frequency;
        self.join(breaks);
    }

    /// How often each block is executed over which the iterations of a loop with exits are spread: this share of all
    /// iterations that are counted.
    fn evenly(&mut self, parts: Parts, (part, whole): (u64, u64)) -> Frequency {
        let all = Share::Turns(self.frequency, parts.control, 1);
        let all = self.graph.frequencies.add(all);
        self.graph.frequencies.add(Share::Part(all, part, whole))
    }

    /// An iteration begins, or what follows the last: where some left before, in a block of its own.
    fn begins(&mut self, frequency: Frequency) {
        let before = std::mem::replace(&mut self.frequency, frequency);
        if let Some(at) = self.at
            && before != frequency
        {
            let next = self.block();
            self.end(at, End::Jump(next));
            self.at = Some(next);
        }
    }

    /// Who went on early meets the others at an iteration's end.
    fn continued(&mut self, continues: Vec<(B, Env)>, each: Frequency) {
        if !continues.is_empty() {
            self.frequency = each;
            self.join(continues);
        }
    }

    /// Returns within a loop belong to the function around it.
    fn returns_from(&mut self, returns: Vec<(B, Env)>) {
        if let Some(function) = self.frames.iter_mut().rev().find(|frame| frame.function) {
            function.returns.extend(returns);
        }
    }

    /// A loop that stays one, with its unroll factor and the copies of its code; `followed` where a loop for what
    /// is left over comes behind it. Where more than one stand side by side that may be left from within, the iterations
    /// counted are shared out evenly over all that the bound allows.
    pub(super) fn kept(
        &mut self,
        parts: Parts,
        touched: &Touched,
        (times, copies): (u64, u32),
        followed: bool,
    ) {
        let remainder = std::mem::take(&mut self.remainder);
        let Some(before) = self.at else { return };
        let enters = parts.condition.is_some_and(|condition| {
            let first = self.fold(condition, &FxHashMap::default(), &FxHashSet::default());
            first.is_some_and(|first| first != 0)
        });
        let around = self.copies;
        let frequency = self.frequency;
        self.frequency = match remainder {
            0 if touched.exits && times > 1 => {
                let bound = self.trips(parts).unwrap_or(times);
                self.evenly(parts, ((bound / times).max(1), bound))
            }
            0 => {
                let turns = Share::Turns(frequency, parts.control, times);
                self.graph.frequencies.add(turns)
            }
            _ => {
                let left = Share::LeftOver(frequency, parts.control, remainder);
                self.graph.frequencies.add(left)
            }
        };
        let each = self.frequency;
        self.copies = around.saturating_mul(copies).min(MOST_COPIES);
        let mark = self.mark();
        let outer = self.within;
        let number = self.graph.loops.len() as u32;
        self.within = Some(number);
        let header = self.block();
        self.graph.loops.push(Loop {
            header,
            before,
            end: header,
            remainder: false,
            version: self.clock,
        });
        self.end(before, End::Jump(header));
        self.at = Some(header);
        let mut phis: Vec<(Key, V)> = Vec::new();
        let mut keys: Vec<Key> = self
            .env
            .keys()
            .filter(|(id, _)| touched.assigned.contains(id))
            .copied()
            .filter(|key| !self.is_steady(parts.body, *key))
            .collect();
        keys.sort_unstable();
        for key in keys {
            let first = self.env[&key];
            let ty = self.graph.ty(first);
            let phi = self.push(Op::Phi, ty, smallvec![first]);
            if let Some(stride) = self.stride(parts, key, first, times) {
                self.strides.insert(phi, stride);
            }
            self.env.insert(key, phi);
            phis.push((key, phi));
        }
        let entry = self.versions.clone();
        self.all_change(touched);
        let first = self.versions.clone();
        let mut leave: Vec<(B, Env)> = Vec::new();
        self.frames.push(Frame::default());
        let go_on = |builder: &mut Self, leave: &mut Vec<(B, Env)>| {
            let Some(condition) = parts.condition else {
                return;
            };
            let chosen = builder.condition(condition);
            let Some(at) = builder.at else { return };
            if let Some(value) = builder.graph.int(chosen) {
                if value == 0 {
                    leave.push((at, std::mem::take(&mut builder.env)));
                    builder.at = None;
                }
                return;
            }
            let (on, out) = (builder.block(), builder.block());
            builder.end(at, End::Branch(chosen, on, out));
            leave.push((out, builder.env.clone()));
            builder.at = Some(on);
        };
        if parts.kind == LoopKind::For {
            go_on(self, &mut leave);
            // Tested at the end of an iteration, and once before the first.
            if leave.len() == 1 {
                self.graph.blocks[header.0 as usize].copies += around;
                // That it runs at all may be known.
                if !enters {
                    self.graph.blocks[header.0 as usize].again = Some(frequency);
                }
                // The assembler keeps one test of several.
                if copies > 2 && (enters || self.is_counted(parts, touched)) {
                    let turns = Share::Turns(
                        frequency,
                        parts.control,
                        times * nvcc().assembler.turns_per_test,
                    );
                    let turns = self.graph.frequencies.add(turns);
                    self.graph.blocks[header.0 as usize].frequency = turns;
                }
            }
        }
        for turn in 0..times {
            self.begins(each);
            self.statements(parts.body);
            let continues = self
                .frames
                .last_mut()
                .map(|frame| std::mem::take(&mut frame.continues))
                .unwrap_or_default();
            self.continued(continues, each);
            if let Some(step) = parts.step
                && self.at.is_some()
            {
                self.value(step);
            }
            if parts.kind == LoopKind::Do && self.at.is_some() && turn + 1 == times {
                go_on(self, &mut leave);
            }
        }
        let frame = self.frames.pop().expect("pushed above");
        leave.extend(frame.breaks);
        self.returns_from(frame.returns);
        // The back edge.
        let mut carried = Vec::new();
        if self.at.is_some() && !touched.changes.is_empty() {
            carried = self.forwarded(header, before, &entry, &first);
        }
        let mut kept_back = Vec::new();
        if self.at.is_some() && parts.kind == LoopKind::For && leave.len() == 1 {
            self.carry_loads(header, before, &phis, (&entry, &first));
            kept_back = self.kept_back(header, &carried);
        }
        if let Some(at) = self.at {
            for (key, phi) in &phis {
                let last = self.env.get(key).copied().unwrap_or(*phi);
                self.gives_back(parts.body, *key, *phi, last);
                self.graph.values[phi.0 as usize].args.push(last);
            }
            self.end(at, End::Jump(header));
        }
        self.within = outer;
        self.copies = around;
        self.frequency = frequency;
        self.graph.loops[number as usize].end = B(self.graph.blocks.len() as u32);
        // Blocks that only lead out stand behind the loop.
        for (block, _) in &leave {
            let own = &mut self.graph.blocks[block.0 as usize];
            if own.code.is_empty() && own.end == End::Open {
                own.within = outer;
                own.copies = around;
                own.frequency = frequency;
            }
        }
        self.forget(mark);
        self.all_change(touched);
        self.meet(leave);
        // Behind the loop it is known as well.
        for ((space, bytes, offset), base, v) in carried {
            // What is left over of the loop loads again what the first iteration loaded, and every one stores.
            let waits = kept_back.iter().any(|(_, _, other)| *other == v);
            let loaded = matches!(self.graph.op(self.graph.inst(v).args[0]), Op::Load(..));
            if followed && loaded && !waits {
                continue;
            }
            self.remember(base, before);
            let ty = self.graph.ty(v);
            let version = self.versions.of(self.object(base, space));
            let key = (Op::Load(space, bytes, offset, version), ty, smallvec![base]);
            if parts.kind == LoopKind::For
                && self.at.is_some()
                && self.known.insert(key.clone(), v).is_none()
            {
                self.added.push(key);
            }
        }
        // What no iteration stores any more is stored once.
        for ((space, bytes, offset), base, v) in kept_back {
            if !followed && self.at.is_some() {
                let op = Op::Store(space, bytes, offset);
                self.push(op, Ty::None, smallvec![base, v]);
            }
        }
    }

    /// What a loop's counter is always a multiple of, where it begins at a number and moves by one.
    fn stride(&self, parts: Parts, key: Key, first: V, times: u64) -> Option<u64> {
        let start = self.graph.int(first)?;
        let (target, by) = match &self.step(parts)?.kind {
            ExprKind::Step(by, _, target) => (target, *by),
            ExprKind::Assign(Some(BinaryOp::Add), target, by) => (target, self.plain_number(by)?),
            _ => return None,
        };
        let own = matches!(target.kind, ExprKind::Var(id) if (id, 0) == key);
        let step = by.unsigned_abs().checked_mul(times)?;
        own.then(|| common(start.unsigned_abs(), step))
    }

    /// A value that was moved before a loop is known behind it.
    fn remember(&mut self, v: V, before: B) {
        let inst = self.graph.inst(v).clone();
        if inst.block != before || !inst.op.is_pure() || inst.op.is_operand() {
            return;
        }
        for &arg in &inst.args {
            self.remember(arg, before);
        }
        let key = (inst.op, inst.ty, inst.args);
        if self.known.insert(key.clone(), v).is_none() {
            self.added.push(key);
        }
    }

    /// Places that stay, that no other access of the loop meets: their stores wait until the loop is over.
    fn kept_back(&mut self, header: B, carried: &[Carried]) -> Vec<Carried> {
        let end = self.graph.blocks.len() as u32;
        let mut found = Vec::new();
        for &((space, bytes, offset), base, v) in carried {
            let object = self.object(base, space);
            let mut stores = Vec::new();
            let mut alone = true;
            for number in header.0..end {
                for &other in &self.graph.block(B(number)).code {
                    let inst = self.graph.inst(other);
                    match inst.op {
                        Op::Store(s, b, o)
                            if (s, b, o) == (space, bytes, offset) && inst.args[0] == base =>
                        {
                            stores.push((B(number), other));
                        }
                        Op::Load(space, ..) | Op::Store(space, ..) | Op::Atomic(space, _) => {
                            alone &= !self.object(inst.args[0], space).meets(object);
                        }
                        Op::Barrier | Op::Fence | Op::System => {
                            alone &= matches!(object, Object::Alone(_));
                        }
                        _ => {}
                    }
                }
            }
            // One of them at least is in the last block of each iteration.
            if alone && stores.iter().any(|(block, _)| Some(*block) == self.at) {
                for (block, store) in stores {
                    self.graph.blocks[block.0 as usize]
                        .code
                        .retain(|other| *other != store);
                }
                found.push(((space, bytes, offset), base, v));
            }
        }
        found
    }

    /// What the iteration before loaded at the place that this one comes to need not be loaded again.
    fn carry_loads(
        &mut self,
        header: B,
        before: B,
        phis: &[(Key, V)],
        (entry, first): (&Versions, &Versions),
    ) {
        let end = self.graph.blocks.len() as u32;
        let mut found = Vec::new();
        for number in header.0..end {
            let block = B(number);
            if block != header && self.graph.block(block).from.first() != Some(&header) {
                continue;
            }
            for &v in &self.graph.block(block).code {
                let inst = self.graph.inst(v);
                let Op::Load(space, bytes, offset, version) = inst.op else {
                    continue;
                };
                let base = inst.args[0];
                let object = self.object(base, space);
                let Op::Address(size, signed) = self.graph.op(base) else {
                    continue;
                };
                let (pointer, index) =
                    (self.graph.inst(base).args[0], self.graph.inst(base).args[1]);
                let Some((key, _)) = phis.iter().find(|(_, phi)| *phi == index) else {
                    continue;
                };
                let Some(by) = self
                    .env
                    .get(key)
                    .and_then(|last| self.moved_by(*last, index))
                else {
                    continue;
                };
                if !self.is_fixed(pointer, header, 0) || version != 0 && version != first.of(object)
                {
                    continue;
                }
                let last = if version == 0 {
                    0
                } else {
                    self.versions.of(object)
                };
                let next = Op::Load(space, bytes, offset + by * i64::from(size), last);
                let Some(&loaded) = self.known.get(&(next, inst.ty, inst.args.clone())) else {
                    continue;
                };
                if loaded != v {
                    found.push((block, v, loaded, (pointer, index, size, signed)));
                }
            }
        }
        let here = self.at;
        for (block, v, loaded, (pointer, index, size, signed)) in found {
            let Op::Load(space, bytes, offset, version) = self.graph.op(v) else {
                continue;
            };
            self.hoist(pointer, header, before);
            self.at = Some(before);
            let start = self.graph.inst(index).args[0];
            let at = self.moved(pointer, start, size, signed);
            let at = self.offset(at, offset);
            let (base, offset) = self.base(at);
            let version = if version == 0 {
                0
            } else {
                entry.of(self.object(base, space))
            };
            let ty = self.graph.ty(v);
            let first = self.push(Op::Load(space, bytes, offset, version), ty, smallvec![base]);
            self.carry(v, block, header, [first, loaded]);
        }
        self.at = here;
    }

    /// A load becomes what the iterations hand on: what is there before the first, and what each leaves.
    fn carry(&mut self, v: V, from: B, header: B, args: [V; 2]) {
        let code = &mut self.graph.blocks[from.0 as usize].code;
        code.retain(|other| *other != v);
        self.graph.blocks[header.0 as usize].code.insert(0, v);
        let inst = &mut self.graph.values[v.0 as usize];
        inst.op = Op::Phi;
        inst.block = header;
        inst.args = SmallVec::from_slice(&args);
    }

    /// By how much a value is more than another one, where that is a constant.
    fn moved_by(&self, v: V, from: V) -> Option<i64> {
        let inst = self.graph.inst(v);
        if inst.op != Op::Add {
            return None;
        }
        match (inst.args[0] == from, inst.args[1] == from) {
            (true, _) => self.graph.int(inst.args[1]),
            (_, true) => self.graph.int(inst.args[0]),
            _ => None,
        }
    }

    /// What an iteration stores last at a place that stays, the next one need not load: it is loaded once before.
    fn forwarded(
        &mut self,
        header: B,
        before: B,
        entry: &Versions,
        first: &Versions,
    ) -> Vec<Carried> {
        let end = self.graph.blocks.len() as u32;
        let mut found: Vec<(B, V, V)> = Vec::new();
        for number in header.0..end {
            for &v in &self.graph.block(B(number)).code {
                let inst = self.graph.inst(v);
                let Op::Load(space, bytes, offset, at) = inst.op else {
                    continue;
                };
                let object = self.object(inst.args[0], space);
                if at != first.of(object)
                    || at == entry.of(object)
                    || !self.is_fixed(inst.args[0], header, 0)
                {
                    continue;
                }
                let key = (
                    Op::Load(space, bytes, offset, self.versions.of(object)),
                    inst.ty,
                    inst.args.clone(),
                );
                if let Some(&stored) = self.known.get(&key)
                    && stored != v
                {
                    found.push((B(number), v, stored));
                }
            }
        }
        let mut carried = Vec::new();
        for (block, v, stored) in found {
            let mut first = self.graph.inst(v).clone();
            let Op::Load(space, bytes, offset, _) = first.op else {
                continue;
            };
            let base = first.args[0];
            self.hoist(base, header, before);
            carried.push(((space, bytes, offset), base, v));
            let key = (
                Op::Load(space, bytes, offset, entry.of(self.object(base, space))),
                first.ty,
                first.args.clone(),
            );
            let first = match self.known.get(&key) {
                Some(&known) => known,
                None => {
                    first.block = before;
                    self.graph.values.push(first);
                    let first = V(self.graph.values.len() as u32 - 1);
                    self.graph.blocks[before.0 as usize].code.push(first);
                    first
                }
            };
            self.carry(v, block, header, [first, stored]);
        }
        carried
    }

    /// Memory that a loop may change holds something else from here on.
    fn all_change(&mut self, touched: &Touched) {
        for &object in &touched.changes {
            self.changes(object);
        }
        self.unread.clear();
    }

    /// True for what a loop does not change.
    fn is_fixed(&self, v: V, header: B, depth: u32) -> bool {
        let inst = self.graph.inst(v);
        inst.block < header
            || inst.op.is_operand()
            || depth < 8
                && inst.op.is_pure()
                && inst
                    .args
                    .iter()
                    .all(|arg| self.is_fixed(*arg, header, depth + 1))
    }

    /// Moves what a loop does not change in front of it.
    fn hoist(&mut self, v: V, header: B, before: B) {
        let inst = self.graph.inst(v);
        if inst.block < header || inst.op.is_operand() {
            return;
        }
        let (args, from) = (inst.args.clone(), inst.block);
        for arg in args {
            self.hoist(arg, header, before);
        }
        self.graph.blocks[from.0 as usize]
            .code
            .retain(|other| *other != v);
        self.graph.blocks[before.0 as usize].code.push(v);
        self.graph.values[v.0 as usize].block = before;
    }
}
