//! How a loop counts: what moves its counter, from where to where, and how often where constants say it.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{
    BinaryOp, Builtin, Expr, ExprKind, LoopKind, Stmt, StmtKind, Type, UnaryOp, VarId, wrapped,
};

use super::Builder;
use super::parts::Parts;
use super::syntactic::variables;
use super::tally::Touched;
use super::touched::Walk;
use crate::graph::{Op, V};

impl Builder<'_> {
    /// What moves the counter: the step, or the one statement of the body that assigns what the condition reads.
    pub(super) fn step<'a>(&self, parts: Parts<'a>) -> Option<&'a Expr> {
        let mut reads = Vec::new();
        variables(parts.condition?, &mut reads);
        if let Some(step) = parts.step {
            return Some(self.own_step(step, &reads).unwrap_or(step));
        }
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

    /// Of several steps the one that moves what the condition reads, where no other does.
    fn own_step<'a>(&self, step: &'a Expr, reads: &[VarId]) -> Option<&'a Expr> {
        let ExprKind::List(all) = &step.kind else {
            return None;
        };
        let moves = |part: &&Expr| {
            let (ExprKind::Step(_, _, place) | ExprKind::Assign(_, place, _)) = &part.kind else {
                return true;
            };
            !matches!(place.kind, ExprKind::Var(id) if !reads.contains(&id))
        };
        let mut moving = all.iter().filter(moves);
        moving.next().filter(|_| moving.next().is_none())
    }

    /// What the variables begin with that the test reads and the loop moves.
    fn starts(&self, parts: Parts, touched: &Touched) -> Vec<V> {
        let mut reads = Vec::new();
        if let Some(condition) = parts.condition {
            variables(condition, &mut reads);
        }
        reads.retain(|id| touched.assigned.contains(id));
        let first = |id: &VarId| self.env.get(&(*id, 0)).copied();
        reads.iter().filter_map(first).collect()
    }

    /// True for a counter that starts at a constant.
    pub(super) fn starts_at_constant(&self, parts: Parts, touched: &Touched) -> bool {
        let starts = self.starts(parts, touched);
        starts.iter().any(|start| self.graph.int(*start).is_some())
    }

    /// True for a counter that starts elsewhere in each thread.
    pub(super) fn starts_by_lane(&self, parts: Parts, touched: &Touched) -> bool {
        let starts = self.starts(parts, touched);
        starts.iter().any(|start| self.depends_on_thread(*start, 0))
    }

    /// True for a counter whose bound is another one in each thread.
    pub(super) fn ends_by_lane(&self, parts: Parts, touched: &Touched) -> bool {
        let mut reads = Vec::new();
        if let Some(condition) = parts.condition {
            variables(condition, &mut reads);
        }
        reads.retain(|id| !touched.assigned.contains(id));
        let mut held = reads.iter().filter_map(|id| self.env.get(&(*id, 0)));
        held.any(|v| self.depends_on_thread(*v, 0))
    }

    pub(super) fn depends_on_thread(&self, v: V, depth: u32) -> bool {
        let inst = self.graph.inst(v);
        match inst.op {
            Op::Builtin(Builtin::ThreadIdx(_) | Builtin::GlobalIdx(_)) => true,
            _ if depth < 6 => (inst.args.iter()).any(|arg| self.depends_on_thread(*arg, depth + 1)),
            _ => false,
        }
    }

    /// True for a counter whose bound is a parameter as it is.
    pub(super) fn ends_at_parameter(&self, parts: Parts, touched: &Touched) -> bool {
        let Some(ExprKind::Binary(_, a, b)) = parts.condition.map(|condition| &condition.kind)
        else {
            return false;
        };
        let parameter = |side: &Expr| match side.without_casts().kind {
            ExprKind::Var(id) if !touched.assigned.contains(&id) => {
                let held = self.env.get(&(id, 0));
                held.is_some_and(|v| matches!(self.graph.op(*v), Op::Param(..)))
            }
            _ => false,
        };
        parameter(a) || parameter(b)
    }

    /// True for a counter without a sign.
    pub(super) fn counts_unsigned(&self, parts: Parts) -> bool {
        let unsigned = |side: &Expr| matches!(side.ty, Type::Int { signed: false, .. });
        match parts.condition.map(|condition| &condition.kind) {
            Some(ExprKind::Binary(_, a, b)) => unsigned(a) || unsigned(b),
            _ => false,
        }
    }

    /// True for a step that the source fixes.
    pub(super) fn steps_evenly(&self, parts: Parts) -> bool {
        match self.step(parts).map(|step| &step.kind) {
            Some(ExprKind::Step(..)) => true,
            Some(ExprKind::Assign(_, _, by)) => self
                .fold(by, &FxHashMap::default(), &FxHashSet::default())
                .is_some(),
            _ => false,
        }
    }

    /// True for a counter that may pass its bound and begin again at the other end, by a step of more than one: only
    /// the assembler knows its trip count.
    pub(super) fn may_wrap(&self, parts: Parts) -> bool {
        if !self.strides(parts) {
            return false;
        }
        if !self.counts_unsigned(parts) {
            return self.ends_after_bound(parts);
        }
        // What is at least the step before it falls by it does not pass 0.
        let Some(ExprKind::Binary(op, _, bound)) = parts.condition.map(|condition| &condition.kind)
        else {
            return true;
        };
        let by = match self.step(parts).map(|step| &step.kind) {
            Some(ExprKind::Assign(Some(BinaryOp::Sub), _, by)) => self.plain_number(by),
            _ => None,
        };
        let (Some(by), Some(bound)) = (by, self.plain_number(bound)) else {
            return true;
        };
        match op {
            BinaryOp::Ge => bound < by,
            BinaryOp::Gt => bound + 1 < by,
            _ => true,
        }
    }

    /// What an expression is, where it is a number.
    pub(super) fn plain_number(&self, expression: &Expr) -> Option<i64> {
        self.fold(expression, &FxHashMap::default(), &FxHashSet::default())
    }

    /// True for a step by a constant other than one.
    fn strides(&self, parts: Parts) -> bool {
        let Some(ExprKind::Assign(_, _, by)) = self.step(parts).map(|step| &step.kind) else {
            return false;
        };
        self.plain_number(by).is_some_and(|by| by.abs() != 1)
    }

    /// True for a counter whose bound is a number.
    pub(super) fn ends_at_constant(&self, parts: Parts) -> bool {
        match parts.condition.map(|condition| &condition.kind) {
            Some(ExprKind::Binary(_, a, b)) => {
                self.plain_number(a).is_some() || self.plain_number(b).is_some()
            }
            _ => false,
        }
    }

    /// True for a counter that falls.
    pub(super) fn counts_down(&self, parts: Parts) -> bool {
        match self.step(parts).map(|step| &step.kind) {
            Some(ExprKind::Step(by, ..)) => *by < 0,
            Some(ExprKind::Assign(Some(op), ..)) => *op == BinaryOp::Sub,
            _ => false,
        }
    }

    /// True for a test that the bound itself passes, by a step of more than one: its first iteration is before the
    /// loop. A bound less one is none.
    pub(super) fn ends_after_bound(&self, parts: Parts) -> bool {
        let Some(ExprKind::Binary(BinaryOp::Le | BinaryOp::Ge, _, bound)) =
            parts.condition.map(|condition| &condition.kind)
        else {
            return false;
        };
        let less_one = match bound.without_casts().kind {
            ExprKind::Var(id) => self.env.get(&(id, 0)).is_some_and(|v| {
                let inst = self.graph.inst(*v);
                inst.op == Op::Add
                    && self.signed.contains(v)
                    && self.graph.int(inst.args[1]) == Some(-1)
            }),
            ExprKind::Binary(BinaryOp::Sub, ..) => !self.counts_unsigned(parts),
            _ => false,
        };
        if self.plain_number(bound).is_some() {
            return false;
        }
        !less_one && self.strides(parts)
    }

    /// True for a counter of 64 bits.
    pub(super) fn counts_wide(&self, parts: Parts) -> bool {
        self.counter_type(parts).is_some_and(|ty| ty.size() > 4)
    }

    /// True for a variable without a sign that counts, whatever it is tested as.
    pub(super) fn counter_is_unsigned(&self, parts: Parts) -> bool {
        let ty = self.counter_type(parts);
        ty.is_some_and(|ty| matches!(ty, Type::Int { signed: false, .. }))
    }

    fn counter_type<'a>(&self, parts: Parts<'a>) -> Option<&'a Type> {
        match &self.step(parts)?.kind {
            ExprKind::Step(_, _, target) | ExprKind::Assign(_, target, _) => Some(&target.ty),
            _ => None,
        }
    }

    /// How often a loop runs, where constants say it.
    pub(super) fn trips(&mut self, parts: Parts) -> Option<u64> {
        let condition = parts.condition?;
        let mut inside = self.assigned_by(parts.body);
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
            Rc::make_mut(&mut inside).remove(&id);
        }
        // What else is stepped may be what the counter moves by.
        let step = parts.step.unwrap_or(step);
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

    /// What a loop's body assigns, found once: loops within one that is fully unrolled are built once per copy.
    fn assigned_by(&mut self, body: &[Stmt]) -> Rc<FxHashSet<VarId>> {
        let key = body.as_ptr() as usize;
        if let Some(found) = self.bodies.get(&key) {
            return Rc::clone(found);
        }
        let found = Rc::new(self.does(body).assigned);
        self.bodies.insert(key, Rc::clone(&found));
        found
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
        let counter = |side: &Expr| match &side.without_casts().kind {
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
                    by.without_casts().ty,
                    Type::Int {
                        signed: true,
                        bits: 32
                    }
                );
                // By how much one moves on that may wrap must be known.
                let known = self.plain_number(by).is_some();
                matches!(target.kind, ExprKind::Var(id) if id == counter)
                    && (known || signed && !self.counts_unsigned(parts))
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
        let value = match &expression.kind {
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
                let ty = match op {
                    BinaryOp::Shl | BinaryOp::Shr => a.ty.common(&Type::INT),
                    _ => a.ty.common(&b.ty),
                };
                let (x, y) = (in_type(&ty, of(a)?), in_type(&ty, of(b)?));
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
        };
        Some(in_type(&expression.ty, value))
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
                numbers.insert(id, in_type(&place.ty, value.checked_add(*by)?));
            }
            ExprKind::Assign(None, place, value) => {
                let id = target(place)?;
                let value = self.fold(value, numbers, inside)?;
                numbers.insert(id, in_type(&place.ty, value));
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
                numbers.insert(id, in_type(&place.ty, value));
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
                            stored: None,
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

/// A number as a variable of that type holds it.
fn in_type(ty: &Type, value: i64) -> i64 {
    match ty {
        Type::Int { bits, signed } => wrapped(value, *bits, *signed),
        _ => value,
    }
}
