//! Loops: written out where they are short, in fours where their end is not known, or kept.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;
use warplens_ir::{BinaryOp, Expr, ExprKind, LoopKind, Stmt, Type, UnaryOp, VarId};

use super::touched::{Touched, Walk};
use super::{Builder, Env, Frame, Key};
use crate::Backend;
use crate::graph::{B, End, Loop, Op, Space, V};

/// The most operations that a loop written out may have, counted as LLVM does.
pub(super) const FULL: u64 = 440;
/// The most operations of some iterations that stand side by side.
const PARTIAL: u64 = 200;
/// Most iterations side by side where the end of the loop is not known.
const RUNTIME: u64 = 4;
/// The most machine instructions of a loop that the assembler unrolls whole, and of one that it unrolls further.
const ASSEMBLER_FULL: u64 = 500;
const ASSEMBLER_PARTIAL: u64 = 58;
/// The most loads of the latter.
const ASSEMBLER_LOADS: u64 = 20;
/// The most iterations side by side that it unrolls further.
const ASSEMBLER_TIMES: u64 = 8;

/// A place of memory that a loop keeps in a register: its access, its base, the value at the loop's head.
type Carried = ((Space, u8, i64), V, V);

/// A loop's parts.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) kind: LoopKind,
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
            condition,
            step,
            body,
        };
        let touched = self.touched(statement, parts);
        let trips = self.trips(parts, &touched);
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
            if trips <= 1
                || asked && trips <= 4096
                || unroll.is_none() && trips.saturating_mul(each) <= FULL
            {
                self.written_out(parts, trips);
                return;
            }
            // Partly by the front half, further by the assembler.
            let mut times = 1;
            while free && times * 2 <= most && trips % (times * 2) == 0 && !touched.exits {
                times *= 2;
            }
            let plain = free && !touched.together && !touched.calls;
            if plain && trips.saturating_mul(touched.machine()) <= ASSEMBLER_FULL {
                self.written_out(parts, trips);
                return;
            }
            let turns = trips / times;
            let further = plain
                && turns >= 4
                && times <= ASSEMBLER_TIMES
                && touched.machine() * times <= ASSEMBLER_PARTIAL
                && touched.loads * times <= ASSEMBLER_LOADS;
            let copies = match turns {
                _ if !further => 1,
                512.. => 7,
                256.. => 6,
                64.. => 4,
                _ if turns % 2 == 1 => 7,
                _ => 6,
            };
            self.kept(parts, &touched, times, copies);
            return;
        }
        let plain = !touched.exits && !touched.loops;
        let (times, copies) = match unroll {
            Some(1) => (1, 1),
            Some(times) if times > 1 => {
                // Without a count each iteration has its own test, and nothing is left over.
                let times = times.min(64);
                if !self.is_counted(parts, &touched) {
                    self.kept(parts, &touched, 1, times as u32);
                    return;
                }
                (times, 1)
            }
            _ if plain && self.is_counted(parts, &touched) => {
                let times = match most {
                    RUNTIME.. => RUNTIME,
                    2.. => 2,
                    _ => 1,
                };
                let further = times == RUNTIME
                    && unroll.is_none()
                    && !touched.together
                    && !self.calls
                    && !self.counts_wide(parts)
                    && self.steps_evenly(parts)
                    && self.starts_at_zero(parts)
                    && touched.machine() * times <= ASSEMBLER_PARTIAL
                    && touched.loads * times <= ASSEMBLER_LOADS;
                // 16, 8 and 4 iterations, and one.
                (times, if further { 7 } else { 1 })
            }
            _ => (1, 1),
        };
        if times > 1 && !touched.exits {
            self.kept(parts, &touched, times, copies);
        }
        self.kept(parts, &touched, 1, 1);
    }

    /// False for a counter that starts at another constant.
    fn starts_at_zero(&self, parts: Parts) -> bool {
        let mut reads = Vec::new();
        if let Some(condition) = parts.condition {
            variables(condition, &mut reads);
        }
        let starts = |id: &VarId| self.graph.int(*self.env.get(&(*id, 0))?);
        reads.iter().filter_map(starts).all(|start| start == 0)
    }

    /// True for a step that the source fixes.
    fn steps_evenly(&self, parts: Parts) -> bool {
        match parts.step.map(|step| &step.kind) {
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
        self.join(breaks);
    }

    /// Returns within a loop belong to the function around it.
    fn returns_from(&mut self, returns: Vec<(B, Env)>) {
        if let Some(function) = self.frames.iter_mut().rev().find(|frame| frame.function) {
            function.returns.extend(returns);
        }
    }

    /// A loop that stays one.
    pub(super) fn kept(&mut self, parts: Parts, touched: &Touched, times: u64, copies: u32) {
        let Some(before) = self.at else { return };
        let around = self.copies;
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
            writes: touched.writes,
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
        let entry_epoch = self.epoch;
        if touched.writes {
            self.epoch += 1;
        }
        let first_epoch = self.epoch;
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
        if self.at.is_some() && touched.writes {
            carried = self.forwarded(header, before, entry_epoch, first_epoch);
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
        self.graph.loops[number as usize].end = B(self.graph.blocks.len() as u32);
        // Blocks that only lead out stand behind the loop.
        for (block, _) in &leave {
            let stands = &mut self.graph.blocks[block.0 as usize];
            if stands.code.is_empty() && stands.end == End::Open {
                stands.within = outer;
                stands.copies = around;
            }
        }
        self.forget(mark);
        if touched.writes {
            self.epoch += 1;
        }
        self.meet(leave);
        // Behind the loop it is known as well.
        for ((space, bytes, offset), base, v) in carried {
            let ty = self.graph.ty(v);
            let key = (
                Op::Load(space, bytes, offset, self.epoch),
                ty,
                smallvec![base],
            );
            if parts.kind == LoopKind::For
                && self.at.is_some()
                && self.known.insert(key.clone(), v).is_none()
            {
                self.added.push(key);
            }
        }
    }

    /// What an iteration stores last at a place that stays, the next one need not load: it is loaded once before.
    fn forwarded(&mut self, header: B, before: B, entry: u32, epoch: u32) -> Vec<Carried> {
        let end = self.graph.blocks.len() as u32;
        let mut found: Vec<(B, V, V)> = Vec::new();
        for number in header.0..end {
            for &v in &self.graph.block(B(number)).code {
                let inst = self.graph.inst(v);
                let Op::Load(space, bytes, offset, at) = inst.op else {
                    continue;
                };
                if at != epoch || !self.is_fixed(inst.args[0], header, 0) {
                    continue;
                }
                let key = (
                    Op::Load(space, bytes, offset, self.epoch),
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
                Op::Load(space, bytes, offset, entry),
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
            addressing: false,
        };
        walk.all(parts);
        // Once more: what the loop does not change is computed before it.
        let varies = touched.assigned.clone();
        let mut touched = Touched::default();
        Walk {
            builder: self,
            touched: &mut touched,
            depth: 0,
            functions: 0,
            varies: Some(&varies),
            addressing: false,
        }
        .all(parts);
        let touched = Rc::new(touched);
        self.assigned.insert(key, Rc::clone(&touched));
        touched
    }

    /// How often a loop runs, where constants say it.
    fn trips(&self, parts: Parts, touched: &Touched) -> Option<u64> {
        let (condition, step) = (parts.condition?, parts.step);
        let mut inside = FxHashSet::default();
        let mut walk_body = Touched::default();
        Walk {
            builder: self,
            touched: &mut walk_body,
            depth: 0,
            functions: 0,
            varies: None,
            addressing: false,
        }
        .statements(parts.body);
        inside.extend(walk_body.assigned.iter().copied());
        let _ = touched;
        let mut numbers: FxHashMap<VarId, i64> = FxHashMap::default();
        let Some(step) = step else {
            // `while (false)`, `do … while (0)`.
            let value = self.fold(condition, &numbers, &inside)?;
            return (value == 0).then_some(u64::from(parts.kind == LoopKind::Do));
        };
        let mut trips = 0;
        if parts.kind == LoopKind::Do {
            return None;
        }
        loop {
            if self.fold(condition, &numbers, &inside)? == 0 {
                return Some(trips);
            }
            self.apply(step, &mut numbers, &inside)?;
            trips += 1;
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
        let stays = reads.iter().all(|id| !touched.assigned.contains(id)) && !reads_memory(bound);
        let moves = parts.step.is_some_and(|step| match &step.kind {
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

fn uncast(expression: &Expr) -> &Expr {
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
