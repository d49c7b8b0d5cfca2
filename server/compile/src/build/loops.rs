//! Loops: written out where they are short, in fours where their end is not known, or kept.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;
use warplens_ir::{
    BinaryOp, Expr, ExprKind, Function, LoopKind, Stmt, StmtKind, Storage, Type, UnaryOp, VarId,
};

use super::{Builder, Env, Frame, Key};
use crate::graph::{B, End, Loop, Op, V};

/// What a loop's parts do.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Variables that they assign.
    assigned: FxHashSet<VarId>,
    /// They write memory or wait for other threads.
    writes: bool,
    /// What a warp must reach together: barriers, votes.
    together: bool,
    /// They leave the loop before its test does.
    exits: bool,
    /// They hold a loop.
    loops: bool,
    /// They call what the machine has no instruction for.
    calls: bool,
    /// Loads.
    loads: u64,
    /// Operations of an iteration, roughly as LLVM counts them.
    weight: u64,
    /// Pointer variables that they write through.
    through: FxHashSet<VarId>,
}

/// The most operations that a loop written out may have, counted as LLVM does.
const FULL: u64 = 330;
/// The most operations of some iterations that stand side by side.
const PARTIAL: u64 = 150;
/// Most iterations side by side where the end of the loop is not known.
const RUNTIME: u64 = 4;
/// The most machine instructions of a loop that the assembler unrolls whole, and of one that it unrolls further.
const ASSEMBLER_FULL: u64 = 500;
const ASSEMBLER_PARTIAL: u64 = 58;
/// The most loads of the latter.
const ASSEMBLER_LOADS: u64 = 20;

/// A loop's parts.
#[derive(Clone, Copy)]
struct Parts<'a> {
    kind: LoopKind,
    condition: Option<&'a Expr>,
    step: Option<&'a Expr>,
    body: &'a [Stmt],
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
        let size = touched.weight + 2;
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
            if trips <= 1
                || asked && trips <= 4096
                || unroll.is_none() && trips.saturating_mul(touched.weight.max(1)) <= FULL
            {
                self.written_out(parts, trips);
                return;
            }
            // Partly by the front half, the rest by the assembler.
            let mut times = 1;
            while free && times * 2 <= most && trips % (times * 2) == 0 && !touched.exits {
                times *= 2;
            }
            let machine = touched.weight * 3 / 4;
            if free && trips.saturating_mul(machine) <= ASSEMBLER_FULL && !touched.together {
                self.written_out(parts, trips);
                return;
            }
            self.kept(parts, &touched, times, 1);
            return;
        }
        let plain = !touched.exits && !touched.loops;
        let (times, copies) = match unroll {
            Some(1) => (1, 1),
            Some(times) if times > 1 => (times.min(64), 1),
            _ if plain && self.is_counted(parts, &touched) => {
                let times = if most >= RUNTIME {
                    RUNTIME
                } else if most >= 2 {
                    2
                } else {
                    1
                };
                let machine = touched.weight * 3 / 4 * times;
                let further = times == RUNTIME
                    && unroll.is_none()
                    && !touched.together
                    && !touched.calls
                    && !self.counts_wide(parts)
                    && machine <= ASSEMBLER_PARTIAL
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

    /// True for a counter of 64 bits.
    fn counts_wide(&self, parts: Parts) -> bool {
        match parts.condition.map(|condition| &condition.kind) {
            Some(ExprKind::Binary(_, a, b)) => a.ty.size().max(b.ty.size()) > 4,
            _ => false,
        }
    }

    /// Every iteration, one behind the other.
    fn written_out(&mut self, parts: Parts, trips: u64) {
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
    fn kept(&mut self, parts: Parts, touched: &Touched, times: u64, copies: u32) {
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
        if touched.writes {
            self.epoch += 1;
        }
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
    fn is_counted(&self, parts: Parts, touched: &Touched) -> bool {
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
        let (counter, bound) = match (counter(a), counter(b)) {
            (Some(id), None) => (id, b),
            (None, Some(id)) => (id, a),
            _ => return false,
        };
        let mut reads = Vec::new();
        variables(bound, &mut reads);
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
    fn fold(
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
    fn apply(
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

fn variables(expression: &Expr, out: &mut Vec<VarId>) {
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

fn reads_memory(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Inline(..) | ExprKind::Apply(..) => {
            true
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => reads_memory(a),
        ExprKind::Binary(_, a, b) => reads_memory(a) || reads_memory(b),
        _ => false,
    }
}

/// Looks at what statements do without building them.
struct Walk<'a, 'b, 'k> {
    builder: &'a Builder<'k>,
    touched: &'b mut Touched,
    /// Loops around.
    depth: u32,
    /// Functions around.
    functions: u32,
    /// What the loop assigns, where that is known.
    varies: Option<&'b FxHashSet<VarId>>,
}

impl Walk<'_, '_, '_> {
    fn all(&mut self, parts: Parts) {
        self.statements(parts.body);
        for part in parts.condition.into_iter().chain(parts.step) {
            self.expression(part);
        }
    }

    /// True for what is computed before the loop.
    fn is_fixed(&self, expression: &Expr) -> bool {
        let Some(varies) = self.varies else {
            return false;
        };
        if reads_memory(expression) {
            return false;
        }
        let mut reads = Vec::new();
        variables(expression, &mut reads);
        !reads.iter().any(|id| varies.contains(id))
    }

    fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            match &statement.kind {
                StmtKind::Declare(id, value) => {
                    self.touched.assigned.insert(*id);
                    value.iter().for_each(|value| self.expression(value));
                }
                StmtKind::Expr(value) => self.expression(value),
                StmtKind::If(condition, then, otherwise) => {
                    self.touched.weight += 1;
                    self.expression(condition);
                    self.statements(then);
                    self.statements(otherwise);
                }
                StmtKind::Loop {
                    init,
                    condition,
                    step,
                    body,
                    ..
                } => {
                    self.statements(init);
                    let before = self.touched.weight;
                    self.touched.weight = 0;
                    self.depth += 1;
                    condition
                        .iter()
                        .chain(step)
                        .for_each(|value| self.expression(value));
                    self.statements(body);
                    self.depth -= 1;
                    // Within, a loop counts as often as it would be written out.
                    let parts = Parts {
                        kind: LoopKind::For,
                        condition: condition.as_ref(),
                        step: step.as_ref(),
                        body,
                    };
                    let trips = self.constant_trips(init, parts);
                    if trips.is_none() {
                        self.touched.loops = true;
                    }
                    self.touched.weight = before
                        + self
                            .touched
                            .weight
                            .saturating_mul(trips.unwrap_or(2).max(1));
                }
                StmtKind::Block(inner) => self.statements(inner),
                StmtKind::Switch(_, inner) => {
                    self.depth += 1;
                    self.statements(inner);
                    self.depth -= 1;
                }
                StmtKind::Return(value) => {
                    if self.functions == 0 {
                        self.touched.exits = true;
                    }
                    value.iter().for_each(|value| self.expression(value));
                }
                StmtKind::Break => self.touched.exits |= self.depth == 0,
                StmtKind::Continue => {}
                StmtKind::Barrier => {
                    self.touched.writes = true;
                    self.touched.together = true;
                    self.touched.weight += 1;
                }
                StmtKind::Unknown(_) => self.touched.weight += 1,
            }
        }
    }

    /// Trips of an inner loop that starts and ends with constants.
    fn constant_trips(&self, init: &[Stmt], parts: Parts) -> Option<u64> {
        let (condition, step) = (parts.condition?, parts.step?);
        let mut numbers = FxHashMap::default();
        let inside = FxHashSet::default();
        for statement in init {
            match &statement.kind {
                StmtKind::Declare(id, Some(value)) => {
                    numbers.insert(*id, self.builder.fold(value, &numbers, &inside)?);
                }
                StmtKind::Expr(Expr {
                    kind: ExprKind::Assign(None, target, value),
                    ..
                }) => {
                    let ExprKind::Var(id) = target.kind else {
                        return None;
                    };
                    numbers.insert(id, self.builder.fold(value, &numbers, &inside)?);
                }
                _ => return None,
            }
        }
        let mut trips = 0;
        while trips < 4096 {
            if self.builder.fold(condition, &numbers, &inside)? == 0 {
                return Some(trips);
            }
            self.builder.apply(step, &mut numbers, &inside)?;
            trips += 1;
        }
        None
    }

    fn assign(&mut self, target: &Expr) {
        self.touched.through.extend(reached(target));
        match &target.kind {
            ExprKind::Var(id) => {
                self.touched.assigned.insert(*id);
                let storage = self.builder.kernel.var(*id).storage;
                if !matches!(storage, Storage::Local | Storage::Param(_)) {
                    self.touched.writes = true;
                }
            }
            ExprKind::Field(base, _) | ExprKind::Cast(_, base) => self.assign(base),
            ExprKind::Index(base, index) => {
                self.expression(index);
                if matches!(base.ty, warplens_ir::Type::Pointer(..)) {
                    self.touched.writes = true;
                    self.expression(base);
                } else {
                    self.assign(base);
                }
            }
            ExprKind::List(parts) => parts.iter().for_each(|part| self.assign(part)),
            other => {
                let _ = other;
                self.touched.writes = true;
                self.expression(target);
            }
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => {
                self.expression(a);
            }
            ExprKind::AddressOf(a) => {
                // Who has its address may write it.
                self.assign(a);
            }
            ExprKind::Deref(a) => {
                self.touched.weight += 1;
                self.expression(a);
            }
            ExprKind::Step(_, _, a) => {
                self.touched.weight += 1;
                self.assign(a);
            }
            ExprKind::Binary(op, a, b) => {
                if self.is_fixed(expression) {
                    return;
                }
                let float = !expression.ty.is_int() || !a.ty.is_int();
                let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem);
                if divides && !matches!(b.kind, ExprKind::Int(_) | ExprKind::Float(_)) {
                    self.touched.calls |= float;
                    self.touched.weight += if float { 8 } else { 12 };
                } else {
                    self.touched.weight += 1;
                }
                self.expression(a);
                self.expression(b);
            }
            ExprKind::Index(a, b) => {
                self.touched.loads += 1;
                // The address and the access; a part of an array of arrays is an address only.
                self.touched.weight += if matches!(expression.ty, Type::Array(..)) {
                    1
                } else {
                    2
                };
                self.expression(a);
                self.expression(b);
            }
            ExprKind::Assign(op, target, value) => {
                self.touched.weight +=
                    u64::from(op.is_some()) + u64::from(!matches!(target.kind, ExprKind::Var(_)));
                self.assign(target);
                self.expression(value);
            }
            ExprKind::Select(a, b, c) => {
                self.touched.weight += 1;
                self.expression(a);
                self.expression(b);
                self.expression(c);
            }
            ExprKind::Call(function, parts) => {
                match function {
                    Function::Atomic(_) | Function::Store | Function::Tile { .. } => {
                        self.touched.through.extend(parts.first().and_then(reached));
                        self.touched.writes = true;
                    }
                    Function::WarpExchange(_) => self.touched.together = true,
                    _ => {}
                }
                self.touched.weight += match function {
                    Function::Math(warplens_ir::MathClass::Special, name) => {
                        let double = matches!(expression.ty, Type::Float { bits: 64 });
                        let small = name.starts_with("__") || name.contains("exp");
                        self.touched.calls |= double || !small;
                        if small && !double { 12 } else { 40 }
                    }
                    _ => 1,
                };
                parts.iter().for_each(|part| self.expression(part));
            }
            ExprKind::List(parts) | ExprKind::Opaque(_, parts) => {
                parts.iter().for_each(|part| self.expression(part));
            }
            ExprKind::Apply(routine, parts) => {
                parts.iter().for_each(|part| self.expression(part));
                let routine = self.builder.kernel.routine(*routine);
                self.touched.assigned.extend(routine.params.iter().copied());
                self.touched.assigned.extend(routine.result);
                self.functions += 1;
                let depth = std::mem::replace(&mut self.depth, 1);
                if self.functions < 12 {
                    self.statements(&routine.body);
                }
                self.depth = depth;
                self.functions -= 1;
            }
            ExprKind::Inline(statements, result) => {
                self.touched.assigned.extend(*result);
                self.functions += 1;
                let depth = std::mem::replace(&mut self.depth, 1);
                self.statements(statements);
                self.depth = depth;
                self.functions -= 1;
            }
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) => {}
        }
    }
}

/// Pointer parameters that some statement writes through, as far as that is plain.
pub(super) fn written(kernel: &warplens_ir::Kernel, builder: &Builder) -> FxHashSet<VarId> {
    let mut touched = Touched::default();
    let mut walk = Walk {
        builder,
        touched: &mut touched,
        depth: 0,
        functions: 0,
        varies: None,
    };
    walk.statements(&kernel.body);
    touched.through
}

/// The pointer variable that a place is reached through.
fn reached(expression: &Expr) -> Option<VarId> {
    match &expression.kind {
        ExprKind::Var(id) => Some(*id),
        ExprKind::Index(base, _)
        | ExprKind::Deref(base)
        | ExprKind::Field(base, _)
        | ExprKind::Cast(_, base)
        | ExprKind::AddressOf(base)
        | ExprKind::Binary(_, base, _) => reached(base),
        ExprKind::List(parts) if parts.len() == 1 => reached(&parts[0]),
        _ => None,
    }
}
