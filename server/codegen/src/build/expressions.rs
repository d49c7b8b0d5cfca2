//! Expressions as values.

use smallvec::smallvec;
use warplens_ir::{
    AddressSpace, BinaryOp, Builtin, Expr, ExprKind, Function, Opaque, Site, Type, UnaryOp,
};

use super::place::Place;
use super::{Builder, Frame, Value, machine, scalars};
use crate::graph::{Args, End, Op, Ty, V};

/// Calls of functions kept once that are put in place.
const MOST_APPLIED: u32 = 8192;

impl Builder<'_> {
    /// The scalars of an expression.
    pub(super) fn value(&mut self, expression: &Expr) -> Value {
        self.evaluated(expression).all()
    }

    /// An expression of one scalar.
    pub(super) fn scalar(&mut self, expression: &Expr) -> V {
        match self.evaluated(expression) {
            Found::One(v) => v,
            Found::All(value) => match value.first() {
                Some(&v) => v,
                None => self.undefined(machine(&expression.ty)),
            },
        }
    }

    fn evaluated(&mut self, expression: &Expr) -> Found {
        if self.truncated || self.at.is_none() {
            return Found::All(self.nothing(&expression.ty));
        }
        let before = self.site;
        if expression.site.span.end > 0 {
            self.site = self.placed(expression.site);
        }
        let value = self.found(expression);
        self.site = before;
        value
    }

    /// A place in the text; one in a function that is kept once for all its calls is where this call is.
    pub(super) fn placed(&self, site: Site) -> Site {
        match self.call {
            Some(call) if site.callee == 0 => call,
            Some(call) => Site {
                callee: site.callee,
                ..call
            },
            None => site,
        }
    }

    pub(super) fn nothing(&mut self, ty: &Type) -> Value {
        let parts = scalars(ty);
        parts
            .into_iter()
            .map(|(_, part)| self.undefined(machine(part)))
            .collect()
    }

    /// What is computed with, or put into a pointer: of an array that is its address.
    fn operand(&mut self, expression: &Expr) -> Found {
        if matches!(expression.ty, Type::Array(..)) && expression.is_place() {
            return Found::All(self.address_of(expression));
        }
        self.evaluated(expression)
    }

    /// A structure that is loaded into variables for its fields, in their order.
    fn loaded(&mut self, whole: &Expr, fields: &[Expr]) -> Value {
        let mut scalars = self.value(whole).into_iter();
        for field in fields {
            let (Some(target), Some(v)) = (taken_from(field), scalars.next()) else {
                self.value(field);
                continue;
            };
            let place = self.place(target);
            self.write(place, &target.ty, &smallvec![v]);
        }
        Value::new()
    }

    /// Where something lies; an array as a pointer to its first element.
    pub(super) fn address_of(&mut self, inner: &Expr) -> Value {
        match self.place(inner) {
            Place::Own(id, offset) => {
                let base = self.leaf(Op::Base(id), Ty::I32);
                smallvec![self.offset(base, i64::from(offset))]
            }
            Place::Memory(pointer, _) => smallvec![pointer],
            Place::Picked(pick) => {
                // What has an address lies in memory.
                self.demote(pick.id);
                smallvec![self.undefined(Ty::I64)]
            }
            Place::Lost => smallvec![self.undefined(Ty::I64)],
        }
    }

    fn found(&mut self, expression: &Expr) -> Found {
        let ty = &expression.ty;
        let number = |ty: &Type| matches!(ty, Type::Int { .. } | Type::Float { .. });
        Found::All(match &expression.kind {
            ExprKind::Int(value) => {
                return Found::One(match ty {
                    Type::Float { .. } => self.float(Some(*value as f64), machine(ty)),
                    _ => self.constant(*value, machine(ty)),
                });
            }
            ExprKind::Float(value) => {
                let value = value.map(warplens_ir::Real::value);
                return Found::One(self.float(value, machine(ty)));
            }
            ExprKind::Builtin(builtin) => return Found::One(self.builtin(*builtin)),
            ExprKind::Field(base, offset) if !base.is_place() => {
                let whole = self.value(base);
                let parts = scalars(&base.ty);
                let wanted = scalars(ty);
                let at: Value = wanted
                    .iter()
                    .filter_map(|(at, _)| {
                        let found = parts.iter().position(|(o, _)| *o == at + *offset as u32)?;
                        whole.get(found).copied()
                    })
                    .collect();
                if at.len() == wanted.len() {
                    at
                } else {
                    self.nothing(ty)
                }
            }
            ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..) => {
                let place = self.place(expression);
                let value = self.read_as(expression, place, ty);
                match value[..] {
                    [v] if number(ty) => return Found::One(v),
                    _ => value,
                }
            }
            ExprKind::Unary(op, inner) => {
                let value = self.value(inner);
                match op {
                    UnaryOp::Not => {
                        let condition = self.truth_of(&value, &inner.ty);
                        let not = self.unary(Op::Not, Ty::Pred, condition);
                        smallvec![self.number(not)]
                    }
                    UnaryOp::Neg | UnaryOp::BitNot => {
                        let op = if *op == UnaryOp::Neg {
                            Op::Neg
                        } else {
                            Op::Not
                        };
                        let from = element(&inner.ty);
                        let to = element(ty);
                        let made = machine(to);
                        value
                            .into_iter()
                            .map(|v| {
                                let v = self.convert(v, from, to);
                                self.unary(op, made, v)
                            })
                            .collect()
                    }
                }
            }
            ExprKind::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, ..) => {
                let condition = self.condition(expression);
                smallvec![self.number(condition)]
            }
            ExprKind::Binary(op, left, right) => match (self.operand(left), self.operand(right)) {
                (Found::One(a), Found::One(b)) if number(&left.ty) && number(&right.ty) => {
                    let v = self.arithmetic(*op, a, &left.ty, b, &right.ty);
                    return Found::One(v);
                }
                (a, b) => {
                    let (a, b) = (a.all(), b.all());
                    self.operation(*op, &a, &left.ty, &b, &right.ty, ty)
                }
            },
            ExprKind::Assign(None, target, value) => {
                let found = match target.ty {
                    Type::Pointer(..) => self.operand(value).all(),
                    _ => self.value(value),
                };
                let found = self.fit(found, &value.ty, &target.ty);
                let place = self.place(target);
                self.write_as(target, place, &found);
                found
            }
            ExprKind::Assign(Some(op), target, value) => {
                let place = self.place(target);
                let before = self.read_as(target, place, &target.ty);
                let by = self.value(value);
                let common = match op {
                    BinaryOp::Shl | BinaryOp::Shr => target.ty.common(&Type::INT),
                    _ => target.ty.common(&value.ty),
                };
                let result = self.operation(*op, &before, &target.ty, &by, &value.ty, &common);
                let result = self.fit(result, &common, &target.ty);
                self.write_as(target, place, &result);
                result
            }
            ExprKind::Step(by, postfix, target) => {
                let place = self.place(target);
                let before = self.read_as(target, place, &target.ty);
                let one = Value::from_slice(&[self.constant(*by, Ty::I32)]);
                let common = target.ty.common(&Type::INT);
                let after = self.operation(
                    BinaryOp::Add,
                    &before,
                    &target.ty,
                    &one,
                    &Type::INT,
                    &common,
                );
                let after = self.fit(after, &common, &target.ty);
                self.write_as(target, place, &after);
                if *postfix { before } else { after }
            }
            ExprKind::Select(condition, a, b) => self.choice(condition, a, b, ty),
            ExprKind::Cast(_, inner)
                if matches!((ty, &inner.ty), (Type::Pointer(..), Type::Array(..)))
                    && inner.is_place() =>
            {
                self.address_of(inner)
            }
            ExprKind::Cast(_, inner) => {
                let value = self.value(inner);
                self.fit(value, &inner.ty, ty)
            }
            ExprKind::AddressOf(inner) => self.address_of(inner),
            ExprKind::Call(function, arguments) => self.call(function, arguments, expression),
            ExprKind::List(parts) => match parts.split_first() {
                Some((whole, fields)) if fields.iter().any(|field| taken_from(field).is_some()) => {
                    self.loaded(whole, fields)
                }
                _ => self.list(parts, ty),
            },
            ExprKind::Inline(statements, result) => self.function(statements, *result, ty),
            ExprKind::Apply(routine, arguments) => {
                let kernel = self.kernel;
                let routine = kernel.routine(*routine);
                for (param, argument) in routine.params.iter().zip(arguments) {
                    let value = self.given(*param, argument);
                    let to = &kernel.var(*param).ty;
                    for ((at, _), v) in scalars(to).into_iter().zip(&value) {
                        self.env.insert((*param, at), *v);
                    }
                }
                self.applied += 1;
                if self.depth > 24 || self.applied > MOST_APPLIED {
                    // A real call, as far as is known.
                    self.cut = true;
                    let wanted = scalars(ty);
                    return Found::All(
                        wanted
                            .iter()
                            .map(|(_, part)| self.push(Op::Other, machine(part), Args::new()))
                            .collect(),
                    );
                }
                self.depth += 1;
                let around = self.call.replace(self.site);
                let value = self.function(&routine.body, routine.result, ty);
                self.call = around;
                self.depth -= 1;
                value
            }
            ExprKind::Opaque(_, parts) => {
                let mut args = Args::new();
                for part in parts {
                    args.extend(self.value(part).first().copied());
                }
                let wanted = scalars(ty);
                wanted
                    .iter()
                    .map(|(_, part)| self.push(Op::Other, machine(part), args.clone()))
                    .collect()
            }
        })
    }

    fn builtin(&mut self, builtin: Builtin) -> V {
        if let Builtin::GlobalIdx(axis) = builtin {
            let block = self.leaf(Op::Builtin(Builtin::BlockIdx(axis)), Ty::I32);
            let size = self.leaf(Op::Builtin(Builtin::BlockDim(axis)), Ty::I32);
            let thread = self.leaf(Op::Builtin(Builtin::ThreadIdx(axis)), Ty::I32);
            let first = self.binary(Op::Mul, Ty::I32, block, size);
            return self.binary(Op::Add, Ty::I32, first, thread);
        }
        self.leaf(Op::Builtin(builtin), Ty::I32)
    }

    fn list(&mut self, parts: &[Expr], ty: &Type) -> Value {
        let wanted = scalars(ty);
        if let ([only], Type::Vector(..)) = (parts, ty)
            && !matches!(only.ty, Type::Vector(..))
        {
            // A scalar in every lane.
            let v = self.scalar(only);
            let v = self.convert(v, &only.ty, element(ty));
            return wanted.iter().map(|_| v).collect();
        }
        let aggregate = matches!(ty, Type::Vector(..) | Type::Struct(_) | Type::Array(..));
        let mut all = Value::new();
        let mut last = Value::new();
        let mut last_ty = &Type::Void;
        for part in parts {
            last = self.value(part);
            last_ty = &part.ty;
            if aggregate {
                for (&v, (_, from)) in last.iter().zip(scalars(&part.ty)) {
                    let v = match wanted.get(all.len()) {
                        Some((_, to)) => self.convert(v, from, to),
                        None => v,
                    };
                    all.push(v);
                }
            }
        }
        if !aggregate {
            return self.fit(last, last_ty, ty);
        }
        if last.len() == wanted.len() && parts.len() > 1 && all.len() != wanted.len() {
            return last;
        }
        while all.len() < wanted.len() {
            let ty = machine(wanted[all.len()].1);
            let zero = if ty.is_float() {
                self.float(Some(0.0), ty)
            } else {
                self.constant(0, ty)
            };
            all.push(zero);
        }
        all.truncate(wanted.len());
        all
    }

    /// A function in place of its call.
    pub(super) fn function(
        &mut self,
        statements: &[warplens_ir::Stmt],
        result: Option<warplens_ir::VarId>,
        ty: &Type,
    ) -> Value {
        self.frames.push(Frame {
            function: true,
            result,
            ..Frame::default()
        });
        let mark = self.mark();
        let frequency = self.frequency;
        self.statements(statements);
        self.frequency = frequency;
        let frame = self.frames.pop().expect("pushed above");
        if !frame.returns.is_empty() {
            let mut ways = frame.returns;
            if let Some(at) = self.at {
                ways.push((at, std::mem::take(&mut self.env)));
            }
            self.meet(ways);
            self.forget(mark);
        }
        match result {
            Some(id) if self.at.is_some() => {
                let kernel = self.kernel;
                let from = &kernel.var(id).ty;
                let value = self.read(Place::Own(id, 0), from);
                self.fit(value, from, ty)
            }
            _ => self.nothing(ty),
        }
    }

    // ---- conditions ----------------------------------------------------------------------------

    /// A condition as a predicate.
    pub(super) fn condition(&mut self, expression: &Expr) -> V {
        match &expression.kind {
            ExprKind::Binary(op @ (BinaryOp::LogicalAnd | BinaryOp::LogicalOr), a, b) => {
                let and = *op == BinaryOp::LogicalAnd;
                let first = self.condition(a);
                if let Some(value) = self.graph.int(first) {
                    return if (value != 0) == and {
                        self.condition(b)
                    } else {
                        first
                    };
                }
                let op = if and { Op::And } else { Op::Or };
                if !forks(b) {
                    let second = self.condition(b);
                    return self.binary(op, Ty::Pred, first, second);
                }
                // The second operand is evaluated only where the first does not decide.
                let Some(from) = self.at else {
                    return first;
                };
                let mark = self.mark();
                let inner = self.block();
                let short = self.block();
                let around = self.frequency;
                let control = self.controls.of_condition(a);
                let (yes, no) = if and { (inner, short) } else { (short, inner) };
                let sides = self.sides(control, yes, no);
                if and {
                    self.end(from, End::Branch(first, inner, short));
                } else {
                    self.end(from, End::Branch(first, short, inner));
                }
                let before = self.env.clone();
                self.at = Some(inner);
                self.frequency = sides[usize::from(!and)];
                let second = self.condition(b);
                self.frequency = around;
                let key = (warplens_ir::VarId(u32::MAX), self.frames.len() as u32);
                let decided = self.constant(i64::from(!and), Ty::Pred);
                let mut ways = Vec::new();
                if let Some(at) = self.at {
                    self.env.insert(key, second);
                    ways.push((at, std::mem::take(&mut self.env)));
                }
                let mut other = before;
                other.insert(key, decided);
                ways.push((short, other));
                self.meet(ways);
                self.forget(mark);
                self.env.remove(&key).unwrap_or(decided)
            }
            ExprKind::Unary(UnaryOp::Not, inner) => {
                let inner = self.condition(inner);
                self.unary(Op::Not, Ty::Pred, inner)
            }
            ExprKind::List(parts) if parts.len() == 1 => self.condition(&parts[0]),
            _ => {
                let value = self.value(expression);
                self.truth_of(&value, &expression.ty)
            }
        }
    }

    fn truth_of(&mut self, value: &Value, ty: &Type) -> V {
        let Some(&v) = value.first() else {
            return self.undefined(Ty::Pred);
        };
        if self.graph.ty(v) == Ty::Pred {
            return v;
        }
        let made = machine(element(ty));
        let zero = if made.is_float() {
            self.float(Some(0.0), made)
        } else {
            self.constant(0, made)
        };
        self.compare(BinaryOp::Ne, true, v, zero)
    }

    /// A predicate as a number.
    fn number(&mut self, condition: V) -> V {
        if let Some(value) = self.graph.int(condition) {
            return self.constant(value, Ty::I32);
        }
        let one = self.constant(1, Ty::I32);
        let zero = self.constant(0, Ty::I32);
        self.select(condition, one, zero)
    }

    fn choice(&mut self, condition: &Expr, a: &Expr, b: &Expr, ty: &Type) -> Value {
        let chosen = self.condition(condition);
        if let Some(value) = self.graph.int(chosen) {
            let side = if value != 0 { a } else { b };
            let value = self.value(side);
            return self.fit(value, &side.ty, ty);
        }
        if !forks(a) && !forks(b) {
            let yes = self.value(a);
            let yes = self.fit(yes, &a.ty, ty);
            let no = self.value(b);
            let no = self.fit(no, &b.ty, ty);
            return yes
                .iter()
                .zip(&no)
                .map(|(&yes, &no)| self.select(chosen, yes, no))
                .collect();
        }
        let Some(from) = self.at else {
            return self.nothing(ty);
        };
        let mark = self.mark();
        let (yes, no) = (self.block(), self.block());
        let around = self.frequency;
        let control = self.controls.of_condition(condition);
        let sides = self.sides(control, yes, no);
        self.end(from, End::Branch(chosen, yes, no));
        let before = self.env.clone();
        let depth = self.frames.len() as u32 * 64;
        let mut ways = Vec::new();
        let mut width = 0;
        for (block, side, env) in [(yes, a, self.env.clone()), (no, b, before)] {
            self.at = Some(block);
            self.frequency = sides[usize::from(block == no)];
            self.env = env;
            let value = self.value(side);
            let value = self.fit(value, &side.ty, ty);
            width = value.len();
            if let Some(at) = self.at {
                for (number, v) in value.into_iter().enumerate() {
                    let key = (warplens_ir::VarId(u32::MAX - 1), depth + number as u32);
                    self.env.insert(key, v);
                }
                ways.push((at, std::mem::take(&mut self.env)));
            }
            self.forget(mark);
        }
        self.frequency = around;
        self.meet(ways);
        (0..width as u32)
            .map(|number| {
                let key = (warplens_ir::VarId(u32::MAX - 1), depth + number);
                match self.env.remove(&key) {
                    Some(v) => v,
                    None => self.undefined(machine(element(ty))),
                }
            })
            .collect()
    }

    // ---- conversions ---------------------------------------------------------------------------

    /// A value of one type as one of another, scalar by scalar.
    pub(super) fn fit(&mut self, value: Value, from: &Type, to: &Type) -> Value {
        match (from, to) {
            (Type::Struct(_), _) | (_, Type::Struct(_)) => {
                let wanted = scalars(to).len();
                if value.len() == wanted {
                    value
                } else {
                    self.nothing(to)
                }
            }
            (Type::Vector(..), Type::Vector(..)) => {
                let (from, to) = (element(from), element(to));
                value
                    .into_iter()
                    .map(|v| self.convert(v, from, to))
                    .collect()
            }
            (_, Type::Vector(inner, lanes)) if value.len() == 1 => {
                let v = self.convert(value[0], from, inner);
                (0..*lanes).map(|_| v).collect()
            }
            _ => {
                let (from, to) = (element(from), element(to));
                let mut value = value;
                for v in &mut value {
                    *v = self.convert(*v, from, to);
                }
                value
            }
        }
    }

    pub(super) fn convert(&mut self, v: V, from: &Type, to: &Type) -> V {
        if from == to {
            return v;
        }
        let have = self.graph.ty(v);
        let want = machine(to);
        match (from, to) {
            // An address of shared memory is a word.
            (Type::Int { .. }, Type::Pointer(_, AddressSpace::Shared)) => match have {
                Ty::I64 => self.unary(Op::Truncate, Ty::I32, v),
                _ => v,
            },
            (_, Type::Pointer(..) | Type::Array(..)) => {
                if have == Ty::I32 && from.is_int() {
                    return self.unary(Op::Extend(is_signed(from)), Ty::I64, v);
                }
                v
            }
            (_, Type::Int { bits: 1, .. }) => {
                let condition = self.truth_of(&smallvec![v], from);
                self.number(condition)
            }
            (Type::Int { .. } | Type::Pointer(..) | Type::Array(..), Type::Int { bits, .. }) => {
                let signed = matches!(to, Type::Int { signed: true, .. });
                match (have, want) {
                    (Ty::Pred, _) => {
                        let v = self.number(v);
                        self.convert(v, &Type::INT, to)
                    }
                    (Ty::I32, Ty::I64) => self.unary(Op::Extend(is_signed(from)), Ty::I64, v),
                    (Ty::I64, Ty::I32) => {
                        let v = self.unary(Op::Truncate, Ty::I32, v);
                        if *bits < 32 {
                            self.unary(Op::Narrow(*bits, signed), Ty::I32, v)
                        } else {
                            v
                        }
                    }
                    _ if *bits < 32 => {
                        let narrower = matches!(from, Type::Int { bits: b, signed: s } if b < bits && (*s == signed || !s));
                        if narrower {
                            v
                        } else {
                            self.unary(Op::Narrow(*bits, signed), Ty::I32, v)
                        }
                    }
                    _ => v,
                }
            }
            (Type::Int { .. }, Type::Float { .. }) => {
                self.unary(Op::FromInt(is_signed(from)), want, v)
            }
            (Type::Float { .. }, Type::Int { .. }) => self.unary(Op::ToInt(is_signed(to)), want, v),
            (Type::Float { .. }, Type::Float { .. }) => self.unary(Op::Resize, want, v),
            _ => v,
        }
    }

    // ---- operators -----------------------------------------------------------------------------

    fn operation(
        &mut self,
        op: BinaryOp,
        a: &Value,
        left: &Type,
        b: &Value,
        right: &Type,
        ty: &Type,
    ) -> Value {
        let pointer = |ty: &Type| matches!(ty, Type::Pointer(..) | Type::Array(..));
        if pointer(left) || pointer(right) {
            return self.pointers(op, a, left, b, right);
        }
        let (l, r) = (element(left), element(right));
        let width = a.len().max(b.len());
        let mut out = Value::new();
        for lane in 0..width {
            let (Some(&x), Some(&y)) = (a.get(lane).or(a.first()), b.get(lane).or(b.first()))
            else {
                return self.nothing(ty);
            };
            out.push(self.arithmetic(op, x, l, y, r));
        }
        self.pair(&out);
        out
    }

    /// An operation of two numbers; what compares gives a number too.
    fn arithmetic(&mut self, op: BinaryOp, x: V, left: &Type, y: V, right: &Type) -> V {
        let shifts = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        let common = left.common(if shifts { &Type::INT } else { right });
        let x = self.convert(x, left, &common);
        let y = self.convert(y, right, if shifts { &Type::INT } else { &common });
        let signed = is_signed(&common);
        let made = machine(&common);
        let op = match op {
            BinaryOp::Add => Op::Add,
            BinaryOp::Sub => Op::Sub,
            BinaryOp::Mul => Op::Mul,
            BinaryOp::Div => Op::Div(signed),
            BinaryOp::Rem => Op::Rem(signed),
            BinaryOp::Shl => Op::Shl,
            BinaryOp::Shr => Op::Shr(signed),
            BinaryOp::And => Op::And,
            BinaryOp::Or => Op::Or,
            BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne => {
                let condition = self.compare(op, signed, x, y);
                return self.number(condition);
            }
            _ => Op::Xor,
        };
        let v = self.binary(op, made, x, y);
        if signed && !made.is_float() {
            self.does_not_wrap(v);
        }
        v
    }

    /// Notes the values that one operation makes of two lanes of half precision.
    pub(super) fn pair(&mut self, lanes: &Value) {
        for pair in lanes.chunks_exact(2) {
            let (first, second) = (self.graph.inst(pair[0]), self.graph.inst(pair[1]));
            let paired = matches!(
                first.op,
                Op::Add
                    | Op::Sub
                    | Op::Mul
                    | Op::Fma
                    | Op::Neg
                    | Op::Min(_)
                    | Op::Max(_)
                    | Op::Abs
                    | Op::Resize
            );
            if paired
                && first.op == second.op
                && (first.ty, second.ty) == (Ty::F16, Ty::F16)
                && pair[0] < pair[1]
            {
                self.graph.pairs.insert(pair[1], pair[0]);
            }
        }
    }

    fn pointers(&mut self, op: BinaryOp, a: &Value, left: &Type, b: &Value, right: &Type) -> Value {
        let (Some(&x), Some(&y)) = (a.first(), b.first()) else {
            return smallvec![self.undefined(Ty::I64)];
        };
        let size = |ty: &Type| ty.element().map_or(1, |element| element.size().max(1)) as u32;
        match (op, right.is_int(), left.is_int()) {
            (BinaryOp::Add, true, _) => {
                smallvec![self.moved(x, y, size(left), is_signed(right))]
            }
            (BinaryOp::Add, _, true) => {
                smallvec![self.moved(y, x, size(right), is_signed(left))]
            }
            (BinaryOp::Sub, true, _) => {
                let ty = self.graph.ty(y);
                let by = self.unary(Op::Neg, ty, y);
                smallvec![self.moved(x, by, size(left), true)]
            }
            (BinaryOp::Sub, ..) => {
                let bytes = self.binary(Op::Sub, Ty::I64, x, y);
                let by = self.constant(i64::from(size(left).trailing_zeros()), Ty::I32);
                smallvec![self.binary(Op::Shr(true), Ty::I64, bytes, by)]
            }
            _ => {
                let condition = self.compare(op, false, x, y);
                smallvec![self.number(condition)]
            }
        }
    }
}

/// What an expression gives.
enum Found {
    /// The only scalar of what is sure to have no more, as most of what kernels compute.
    One(V),
    All(Value),
}

impl Found {
    fn all(self) -> Value {
        match self {
            Found::One(v) => smallvec![v],
            Found::All(value) => value,
        }
    }
}

/// A variable that takes a field of the structure loaded before it.
fn taken_from(assignment: &Expr) -> Option<&Expr> {
    match &assignment.kind {
        ExprKind::Assign(None, target, value) => match &value.kind {
            ExprKind::Opaque(Opaque::Loaded, parts) if parts.is_empty() => Some(target),
            _ => None,
        },
        _ => None,
    }
}

/// True where the evaluation may read memory, go several ways or change something.
fn forks(expression: &Expr) -> bool {
    let mut found = expression.reads_or_forks();
    if !found {
        found = changes(expression);
    }
    found
}

fn changes(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Assign(..) | ExprKind::Step(..) | ExprKind::Call(Function::Atomic(..), _) => true,
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => changes(a),
        ExprKind::Binary(_, a, b) => changes(a) || changes(b),
        ExprKind::Call(_, parts) | ExprKind::List(parts) | ExprKind::Opaque(_, parts) => {
            parts.iter().any(changes)
        }
        _ => false,
    }
}

/// A vector's scalar, or the type itself.
pub(super) fn element(ty: &Type) -> &Type {
    match ty {
        Type::Vector(inner, _) => inner,
        Type::Struct(_) => scalars(ty).first().map_or(&Type::INT, |(_, ty)| *ty),
        ty => ty,
    }
}

pub(super) fn is_signed(ty: &Type) -> bool {
    // Smaller integers become `int`.
    matches!(ty, Type::Int { signed, bits } if *signed || *bits < 32)
}
