//! Loops: written out where they are short, in fours where their end is not known, or kept.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;
use warplens_ir::{
    BinaryOp, Builtin, Control, Expr, ExprKind, LoopKind, Stmt, StmtKind, Storage, Type, UnaryOp,
    VarId,
};

use super::touched::{Touched, Walk};
use super::versions::{Object, Versions};
use super::{Builder, Env, Frame, Key};
use crate::Backend;
use crate::frequency::Share;
use crate::graph::{B, End, Loop, Op, Space, Ty, V};

/// The most operations that a loop written out may have, counted as LLVM does.
pub(super) const FULL: u64 = 440;
/// The former where arrays of the thread's own become registers by it.
const PRIVATE: u64 = 2000;
/// The most operations of some iterations that stand side by side.
const PARTIAL: u64 = 200;
/// Most iterations side by side where the end of the loop is not known.
const RUNTIME: u64 = 4;
/// The most machine instructions of a loop that the assembler unrolls whole, and of one that it unrolls further.
const ASSEMBLER_FULL: u64 = 500;
/// The former where no loads from device memory stand side by side.
const ASSEMBLER_APART: u64 = 2000;
const ASSEMBLER_PARTIAL: u64 = 58;
/// The most loads and stores of the latter.
const ASSEMBLER_ACCESSES: u64 = 20;
/// The most iterations side by side that it unrolls further.
const ASSEMBLER_TIMES: u64 = 16;

/// A place of memory that a loop keeps in a register: its access, its base, the value at the loop's head.
type Carried = ((Space, u8, i64), V, V);

/// A loop's parts.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) kind: LoopKind,
    pub(super) control: Option<Control>,
    pub(super) condition: Option<&'a Expr>,
    pub(super) step: Option<&'a Expr>,
    pub(super) body: &'a [Stmt],
}

impl Builder<'_> {
    pub(super) fn looping(
        &mut self,
        statement: &Stmt,
        kind: LoopKind,
        condition: Option<&Expr>,
        step: Option<&Expr>,
        body: &[Stmt],
        unroll: Option<u64>,
    ) {
        let parts = Parts {
            kind,
            control: self.controls.of_loop(statement),
            condition,
            step,
            body,
        };
        self.nesting += 1;
        self.unrolled(statement, parts, unroll);
        self.nesting -= 1;
    }

    /// A loop, written out as far as it is.
    fn unrolled(&mut self, statement: &Stmt, parts: Parts, unroll: Option<u64>) {
        let touched = self.touched(statement, parts);
        let trips = self.trips(parts);
        if self.options.backend == Backend::Amdgpu {
            self.looping_on_amdgpu(parts, &touched, trips, unroll);
            return;
        }
        // With the branch back.
        let size = touched.weight + 1;
        let asked = match unroll {
            Some(0) => trips.is_some(),
            Some(times) => trips.is_some_and(|trips| times >= trips && times > 1),
            None => false,
        };
        let most = (PARTIAL - 2) / size.saturating_sub(2).max(1);
        if let Some(trips) = trips
            && unroll != Some(1)
        {
            let free = unroll.is_none() && !touched.loops;
            // The counter and its test go.
            let each = touched.weight.saturating_sub(2).max(1);
            let full = if self.subscripts_own(&touched) {
                PRIVATE
            } else {
                FULL
            };
            if trips <= 1
                || asked && trips <= 4096
                || unroll.is_none() && trips.saturating_mul(each) <= full
            {
                self.written_out(parts, trips);
                return;
            }
            // Partly by the front half, further by the assembler.
            let mut times = 1;
            while free && times * 2 <= most && trips % (times * 2) == 0 && !touched.exits {
                times *= 2;
            }
            let plain = free && !touched.together && !touched.calls && !touched.forks;
            // Many loads that nothing keeps apart would wait for each other's registers.
            let apart = free
                && !touched.calls
                && !touched.forks
                && !touched.exits
                && (touched.together || touched.fetches == 0);
            let all = trips.saturating_mul(touched.machine());
            if apart && all <= ASSEMBLER_APART || plain && all <= ASSEMBLER_FULL {
                self.written_out(parts, trips);
                return;
            }
            let turns = trips / times;
            let further = plain
                && turns >= 4
                && times <= ASSEMBLER_TIMES
                && touched.machine() * times <= ASSEMBLER_PARTIAL
                && touched.loads * times <= ASSEMBLER_ACCESSES;
            let copies = match turns {
                _ if !further => 1,
                512.. => 7,
                256.. => 6,
                64.. if turns % 5 == 0 && turns % 4 != 0 => 5,
                64.. => 4,
                _ if turns % 2 == 1 => 7,
                _ => 6,
            };
            self.kept(parts, &touched, (times, copies), false);
            return;
        }
        let plain = !touched.exits && !touched.loops;
        let (times, copies, left) = match unroll {
            Some(1) => (1, 1, 1),
            Some(times) if times > 1 => {
                // Without a count each iteration has its own test, and nothing is left over.
                let times = times.min(64);
                if !self.is_counted(parts, &touched) {
                    self.kept(parts, &touched, (1, times as u32), false);
                    return;
                }
                (times, 1, 1)
            }
            _ if plain && self.is_counted(parts, &touched) => {
                let times = match most {
                    RUNTIME.. => RUNTIME,
                    2.. => 2,
                    _ => 1,
                };
                let from_constant = self.starts_at_constant(parts, &touched);
                let further = times == RUNTIME
                    && unroll.is_none()
                    && !touched.together
                    && !touched.forks
                    && !touched.written_out
                    && !self.calls
                    && !(self.counts_wide(parts) && from_constant)
                    && self.steps_evenly(parts)
                    && (touched.stores == 0 || !self.starts_by_lane(parts, &touched))
                    && touched.machine() * times <= ASSEMBLER_PARTIAL
                    && (touched.loads + touched.stores) * times <= ASSEMBLER_ACCESSES;
                // 16, 8 and 4 iterations, and one; what is left over in fours again where the number of iterations is
                // not plain, and written out within a loop.
                let left = match further {
                    true if !from_constant && self.counts_unsigned(parts) => 5,
                    true if self.nesting > 1 => 3,
                    _ => 1,
                };
                (times, if further { 7 } else { 1 }, left)
            }
            _ => (1, 1, 1),
        };
        let both = times > 1 && !touched.exits;
        if both {
            self.kept(parts, &touched, (times, copies), true);
            self.left_over = times;
        }
        let number = self.graph.loops.len();
        self.kept(parts, &touched, (1, left), false);
        if let Some(last) = self.graph.loops.get_mut(number) {
            last.left_over = both;
        }
    }

    /// True where a thread's own array is subscripted with what varies.
    fn subscripts_own(&self, touched: &Touched) -> bool {
        touched.subscripted.iter().any(|id| {
            let var = self.kernel.var(*id);
            var.storage == Storage::Local && matches!(var.ty, Type::Array(..))
        })
    }

    /// True for a counter that starts at a constant.
    fn starts_at_constant(&self, parts: Parts, touched: &Touched) -> bool {
        let mut reads = Vec::new();
        if let Some(condition) = parts.condition {
            variables(condition, &mut reads);
        }
        let starts = |id: &VarId| self.graph.int(*self.env.get(&(*id, 0))?);
        let mut counters = reads.iter().filter(|id| touched.assigned.contains(id));
        counters.any(|id| starts(id).is_some())
    }

    /// What moves the counter: the step, or the one statement of the body that assigns what the condition reads.
    fn step<'a>(&self, parts: Parts<'a>) -> Option<&'a Expr> {
        if parts.step.is_some() {
            return parts.step;
        }
        let mut reads = Vec::new();
        variables(parts.condition?, &mut reads);
        let mut found = None;
        for statement in parts.body {
            if let StmtKind::Expr(step) = &statement.kind
                && let ExprKind::Step(_, _, target) | ExprKind::Assign(_, target, _) = &step.kind
                && let ExprKind::Var(id) = target.kind
                && reads.contains(&id)
                && found.is_none()
            {
                found = Some((step, id));
                continue;
            }
            let does = self.does(std::slice::from_ref(statement));
            if does.continues || reads.iter().any(|id| does.assigned.contains(id)) {
                return None;
            }
        }
        found.map(|(step, _)| step)
    }

    /// What statements do, wherever they stand.
    fn does(&self, statements: &[Stmt]) -> Touched {
        let mut touched = Touched::default();
        Walk {
            builder: self,
            touched: &mut touched,
            depth: 0,
            functions: 0,
            varies: None,
            changes: None,
            addressing: false,
        }
        .statements(statements);
        touched
    }

    /// True for a counter that starts elsewhere in each thread.
    fn starts_by_lane(&self, parts: Parts, touched: &Touched) -> bool {
        let mut reads = Vec::new();
        if let Some(condition) = parts.condition {
            variables(condition, &mut reads);
        }
        let mut counters = reads.iter().filter(|id| touched.assigned.contains(id));
        counters.any(|id| {
            (self.env.get(&(*id, 0))).is_some_and(|start| self.hangs_on_thread(*start, 0))
        })
    }

    fn hangs_on_thread(&self, v: V, depth: u32) -> bool {
        let inst = self.graph.inst(v);
        match inst.op {
            Op::Builtin(Builtin::ThreadIdx(_) | Builtin::GlobalIdx(_)) => true,
            _ if depth < 6 => (inst.args.iter()).any(|arg| self.hangs_on_thread(*arg, depth + 1)),
            _ => false,
        }
    }

    /// True for a counter without a sign.
    fn counts_unsigned(&self, parts: Parts) -> bool {
        let unsigned = |side: &Expr| matches!(side.ty, Type::Int { signed: false, .. });
        match parts.condition.map(|condition| &condition.kind) {
            Some(ExprKind::Binary(_, a, b)) => unsigned(a) || unsigned(b),
            _ => false,
        }
    }

    /// True for a step that the source fixes.
    fn steps_evenly(&self, parts: Parts) -> bool {
        match self.step(parts).map(|step| &step.kind) {
            Some(ExprKind::Step(..)) => true,
            Some(ExprKind::Assign(_, _, by)) => self
                .fold(by, &FxHashMap::default(), &FxHashSet::default())
                .is_some(),
            _ => false,
        }
    }

    /// True for a counter of 64 bits.
    fn counts_wide(&self, parts: Parts) -> bool {
        match parts.condition.map(|condition| &condition.kind) {
            Some(ExprKind::Binary(_, a, b)) => a.ty.size().max(b.ty.size()) > 4,
            _ => false,
        }
    }

    /// Every iteration, one behind the other.
    pub(super) fn written_out(&mut self, parts: Parts, trips: u64) {
        let mut breaks = Vec::new();
        let frequency = self.frequency;
        for _ in 0..trips {
            if self.at.is_none() || self.truncated {
                break;
            }
            self.frames.push(Frame::default());
            self.statements(parts.body);
            let frame = self.frames.pop().expect("pushed above");
            breaks.extend(frame.breaks);
            self.returns_from(frame.returns);
            self.join(frame.continues);
            if let Some(step) = parts.step {
                self.value(step);
            }
        }
        self.frequency = frequency;
        self.join(breaks);
    }

    /// Returns within a loop belong to the function around it.
    fn returns_from(&mut self, returns: Vec<(B, Env)>) {
        if let Some(function) = self.frames.iter_mut().rev().find(|frame| frame.function) {
            function.returns.extend(returns);
        }
    }

    /// A loop that stays one: so many iterations side by side, its code there so often; `followed` where a loop for what
    /// is left over comes behind it.
    pub(super) fn kept(
        &mut self,
        parts: Parts,
        touched: &Touched,
        (times, copies): (u64, u32),
        followed: bool,
    ) {
        let left_over = std::mem::take(&mut self.left_over);
        let Some(before) = self.at else { return };
        let enters = parts.condition.is_some_and(|condition| {
            let first = self.fold(condition, &FxHashMap::default(), &FxHashSet::default());
            first.is_some_and(|first| first != 0)
        });
        let around = self.copies;
        let frequency = self.frequency;
        self.frequency = self.graph.frequencies.add(match left_over {
            0 => Share::Turns(frequency, parts.control, times),
            _ => Share::LeftOver(frequency, parts.control, left_over),
        });
        self.copies = around.saturating_mul(copies).min(64);
        let mark = self.mark();
        let outer = self.within;
        let number = self.graph.loops.len() as u32;
        self.within = Some(number);
        let header = self.block();
        self.graph.loops.push(Loop {
            header,
            before,
            end: header,
            left_over: false,
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
            .collect();
        keys.sort_unstable();
        for key in keys {
            let first = self.env[&key];
            let ty = self.graph.ty(first);
            let phi = self.push(Op::Phi, ty, smallvec![first]);
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
                // The assembler keeps one test of four.
                if copies > 1 && (enters || self.is_counted(parts, touched)) {
                    let turns = Share::Turns(frequency, parts.control, times * 4);
                    let turns = self.graph.frequencies.add(turns);
                    self.graph.blocks[header.0 as usize].frequency = turns;
                }
            }
        }
        for turn in 0..times {
            self.statements(parts.body);
            let continues = self
                .frames
                .last_mut()
                .map(|frame| std::mem::take(&mut frame.continues))
                .unwrap_or_default();
            self.join(continues);
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
            self.from_the_last(header, before, &phis, (&entry, &first));
            kept_back = self.kept_back(header, &carried);
        }
        if let Some(at) = self.at {
            for (key, phi) in &phis {
                let last = self.env.get(key).copied().unwrap_or(*phi);
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
            let stands = &mut self.graph.blocks[block.0 as usize];
            if stands.code.is_empty() && stands.end == End::Open {
                stands.within = outer;
                stands.copies = around;
                stands.frequency = frequency;
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
                            alone &= matches!(object, Object::Alone(_))
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
    fn from_the_last(
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
            self.graph.blocks[block.0 as usize]
                .code
                .retain(|other| *other != v);
            self.graph.blocks[header.0 as usize].code.insert(0, v);
            let inst = &mut self.graph.values[v.0 as usize];
            inst.op = Op::Phi;
            inst.block = header;
            inst.args = smallvec![first, loaded];
        }
        self.at = here;
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
            self.graph.blocks[block.0 as usize]
                .code
                .retain(|other| *other != v);
            self.graph.blocks[header.0 as usize].code.insert(0, v);
            let inst = &mut self.graph.values[v.0 as usize];
            inst.op = Op::Phi;
            inst.block = header;
            inst.args = smallvec![first, stored];
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

    /// True where what is read of memory may be among what changes.
    pub(super) fn is_changed(&self, expression: &Expr, changes: &FxHashSet<Object>) -> bool {
        let of = |part: &Expr| self.is_changed(part, changes);
        match &expression.kind {
            ExprKind::Index(base, index) => {
                let object = self.object_of(expression);
                changes.iter().any(|changed| changed.meets(object)) || of(base) || of(index)
            }
            ExprKind::Deref(pointer) => {
                let object = self.object_of(expression);
                changes.iter().any(|changed| changed.meets(object)) || of(pointer)
            }
            ExprKind::Inline(statements, _) => {
                let does = self.does(statements);
                does.loads > 0 || !does.changes.is_empty()
            }
            ExprKind::Apply(..) | ExprKind::Opaque(..) => true,
            ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => of(a),
            ExprKind::Binary(_, a, b) => of(a) || of(b),
            ExprKind::Select(a, b, c) => of(a) || of(b) || of(c),
            ExprKind::Call(_, parts) | ExprKind::List(parts) => parts.iter().any(of),
            _ => false,
        }
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

    /// What its parts do, found once.
    fn touched(&mut self, statement: &Stmt, parts: Parts) -> Rc<Touched> {
        let key = std::ptr::from_ref(statement) as usize;
        if let Some(found) = self.assigned.get(&key) {
            return Rc::clone(found);
        }
        let mut touched = Touched::default();
        let mut walk = Walk {
            builder: self,
            touched: &mut touched,
            depth: 0,
            functions: 0,
            varies: None,
            changes: None,
            addressing: false,
        };
        walk.all(parts);
        // Once more: what the loop does not change is computed before it.
        let Touched {
            assigned: varies,
            changes,
            ..
        } = touched;
        let mut touched = Touched::default();
        Walk {
            builder: self,
            touched: &mut touched,
            depth: 0,
            functions: 0,
            varies: Some(&varies),
            changes: Some(&changes),
            addressing: false,
        }
        .all(parts);
        let touched = Rc::new(touched);
        self.assigned.insert(key, Rc::clone(&touched));
        touched
    }

    /// How often a loop runs, where constants say it.
    fn trips(&self, parts: Parts) -> Option<u64> {
        let condition = parts.condition?;
        let mut inside = self.does(parts.body).assigned;
        let mut numbers: FxHashMap<VarId, i64> = FxHashMap::default();
        let Some(step) = self.step(parts) else {
            // `while (false)`, `do … while (0)`.
            let value = self.fold(condition, &numbers, &inside)?;
            return (value == 0).then_some(u64::from(parts.kind == LoopKind::Do));
        };
        if parts.step.is_none()
            && let ExprKind::Step(_, _, target) | ExprKind::Assign(_, target, _) = &step.kind
            && let ExprKind::Var(id) = target.kind
        {
            inside.remove(&id);
        }
        let last = parts.kind == LoopKind::Do;
        let mut trips = 0;
        loop {
            if !last && self.fold(condition, &numbers, &inside)? == 0 {
                return Some(trips);
            }
            self.apply(step, &mut numbers, &inside)?;
            trips += 1;
            if last && self.fold(condition, &numbers, &inside)? == 0 {
                return Some(trips);
            }
            if trips > 4096 {
                return None;
            }
        }
    }

    /// A counter that moves by a constant to a bound that stays.
    pub(super) fn is_counted(&self, parts: Parts, touched: &Touched) -> bool {
        let Some(ExprKind::Binary(op, a, b)) = parts.condition.map(|condition| &condition.kind)
        else {
            return false;
        };
        let ordered = matches!(
            op,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Ne
        );
        let counter = |side: &Expr| match &uncast(side).kind {
            ExprKind::Var(id) => touched.assigned.contains(id).then_some(*id),
            _ => None,
        };
        let (counter, bound, counter_on_left) = match (counter(a), counter(b)) {
            (Some(id), None) => (id, b, true),
            (None, Some(id)) => (id, a, false),
            _ => return false,
        };
        let mut reads = Vec::new();
        variables(bound, &mut reads);
        // A counter that is widened for the test may wrap before.
        let side = if counter_on_left { a } else { b };
        if side.ty.size() != uncast(side).ty.size() {
            return false;
        }
        let stays = reads.iter().all(|id| !touched.assigned.contains(id))
            && !self.is_changed(bound, &touched.changes);
        let moves = self.step(parts).is_some_and(|step| match &step.kind {
            ExprKind::Step(_, _, target) => {
                matches!(target.kind, ExprKind::Var(id) if id == counter)
            }
            ExprKind::Assign(Some(BinaryOp::Add | BinaryOp::Sub), target, by) => {
                let mut reads = Vec::new();
                variables(by, &mut reads);
                let signed = matches!(
                    uncast(by).ty,
                    Type::Int {
                        signed: true,
                        bits: 32
                    }
                );
                matches!(target.kind, ExprKind::Var(id) if id == counter)
                    && (signed || matches!(uncast(by).kind, ExprKind::Int(_)))
                    && reads.iter().all(|id| !touched.assigned.contains(id))
            }
            _ => false,
        });
        ordered && stays && moves
    }

    /// An expression's number under the numbers of the counters.
    pub(super) fn fold(
        &self,
        expression: &Expr,
        numbers: &FxHashMap<VarId, i64>,
        inside: &FxHashSet<VarId>,
    ) -> Option<i64> {
        let of = |part: &Expr| self.fold(part, numbers, inside);
        Some(match &expression.kind {
            ExprKind::Int(value) => *value,
            ExprKind::Var(id) => {
                if inside.contains(id) {
                    return None;
                }
                match numbers.get(id) {
                    Some(value) => *value,
                    None => self.graph.int(*self.env.get(&(*id, 0))?)?,
                }
            }
            ExprKind::Cast(_, inner) if expression.ty.is_int() && inner.ty.is_int() => of(inner)?,
            ExprKind::List(parts) if parts.len() == 1 => of(&parts[0])?,
            ExprKind::Unary(UnaryOp::Neg, a) if expression.ty.is_int() => of(a)?.checked_neg()?,
            ExprKind::Unary(UnaryOp::Not, a) if a.ty.is_int() => i64::from(of(a)? == 0),
            ExprKind::Binary(BinaryOp::LogicalAnd, a, b) => i64::from(of(a)? != 0 && of(b)? != 0),
            ExprKind::Binary(BinaryOp::LogicalOr, a, b) => i64::from(of(a)? != 0 || of(b)? != 0),
            ExprKind::Binary(op, a, b) if a.ty.is_int() && b.ty.is_int() => {
                let (x, y) = (of(a)?, of(b)?);
                match op {
                    BinaryOp::Add => x.checked_add(y)?,
                    BinaryOp::Sub => x.checked_sub(y)?,
                    BinaryOp::Mul => x.checked_mul(y)?,
                    BinaryOp::Div => x.checked_div(y)?,
                    BinaryOp::Rem => x.checked_rem(y)?,
                    BinaryOp::Shl => x.checked_shl(u32::try_from(y).ok()?)?,
                    BinaryOp::Shr => x.checked_shr(u32::try_from(y).ok()?)?,
                    BinaryOp::And => x & y,
                    BinaryOp::Or => x | y,
                    BinaryOp::Xor => x ^ y,
                    BinaryOp::Lt => i64::from(x < y),
                    BinaryOp::Le => i64::from(x <= y),
                    BinaryOp::Gt => i64::from(x > y),
                    BinaryOp::Ge => i64::from(x >= y),
                    BinaryOp::Eq => i64::from(x == y),
                    BinaryOp::Ne => i64::from(x != y),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// What a loop's step does to the numbers.
    pub(super) fn apply(
        &self,
        step: &Expr,
        numbers: &mut FxHashMap<VarId, i64>,
        inside: &FxHashSet<VarId>,
    ) -> Option<()> {
        let target = |target: &Expr| match target.kind {
            ExprKind::Var(id) if target.ty.is_int() && !inside.contains(&id) => Some(id),
            _ => None,
        };
        match &step.kind {
            ExprKind::Step(by, _, place) => {
                let id = target(place)?;
                let value = self.fold(place, numbers, inside)?;
                numbers.insert(id, value.checked_add(*by)?);
            }
            ExprKind::Assign(None, place, value) => {
                let id = target(place)?;
                let value = self.fold(value, numbers, inside)?;
                numbers.insert(id, value);
            }
            ExprKind::Assign(Some(op), place, by) => {
                let id = target(place)?;
                let (x, y) = (
                    self.fold(place, numbers, inside)?,
                    self.fold(by, numbers, inside)?,
                );
                let value = match op {
                    BinaryOp::Add => x.checked_add(y)?,
                    BinaryOp::Sub => x.checked_sub(y)?,
                    BinaryOp::Mul => x.checked_mul(y)?,
                    BinaryOp::Div => x.checked_div(y)?,
                    BinaryOp::Shl => x.checked_shl(u32::try_from(y).ok()?)?,
                    BinaryOp::Shr => x.checked_shr(u32::try_from(y).ok()?)?,
                    _ => return None,
                };
                numbers.insert(id, value);
            }
            ExprKind::List(parts) => {
                for part in parts {
                    // Other variables may move in ways that do not matter.
                    if self.apply(part, numbers, inside).is_none() {
                        let mut moved = Touched::default();
                        Walk {
                            builder: self,
                            touched: &mut moved,
                            depth: 0,
                            functions: 0,
                            varies: None,
                            changes: None,
                            addressing: false,
                        }
                        .expression(part);
                        if moved.assigned.iter().any(|id| numbers.contains_key(id)) {
                            return None;
                        }
                    }
                }
            }
            ExprKind::Cast(_, inner) => self.apply(inner, numbers, inside)?,
            _ => return None,
        }
        Some(())
    }
}

pub(super) fn uncast(expression: &Expr) -> &Expr {
    match &expression.kind {
        ExprKind::Cast(_, inner) => uncast(inner),
        ExprKind::List(parts) if parts.len() == 1 => uncast(&parts[0]),
        _ => expression,
    }
}

pub(super) fn variables(expression: &Expr, out: &mut Vec<VarId>) {
    match &expression.kind {
        ExprKind::Var(id) => out.push(*id),
        ExprKind::Unary(_, a)
        | ExprKind::Cast(_, a)
        | ExprKind::Deref(a)
        | ExprKind::Field(a, _)
        | ExprKind::AddressOf(a)
        | ExprKind::Step(_, _, a) => variables(a, out),
        ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) | ExprKind::Assign(_, a, b) => {
            variables(a, out);
            variables(b, out);
        }
        ExprKind::Select(a, b, c) => {
            variables(a, out);
            variables(b, out);
            variables(c, out);
        }
        ExprKind::Call(_, parts)
        | ExprKind::List(parts)
        | ExprKind::Opaque(_, parts)
        | ExprKind::Apply(_, parts) => parts.iter().for_each(|part| variables(part, out)),
        ExprKind::Inline(statements, _) => {
            for statement in statements {
                if let StmtKind::Declare(_, Some(value)) | StmtKind::Expr(value) = &statement.kind {
                    variables(value, out);
                }
            }
        }
        _ => {}
    }
}

pub(super) fn reads_memory(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Inline(..) | ExprKind::Apply(..) => {
            true
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => reads_memory(a),
        ExprKind::Binary(_, a, b) => reads_memory(a) || reads_memory(b),
        _ => false,
    }
}
