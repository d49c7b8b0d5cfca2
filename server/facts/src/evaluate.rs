//! Expressions of the kernel: their values, the accesses they make and the operations they cost.

use warplens_ir::{
    AddressSpace, BinaryOp as IrOp, Bits, Builtin, Expr, ExprKind, Function, MathClass, Opaque,
    Reason, Site, Storage, Type, UnaryOp, Update, VarId,
};
use warplens_machine::Mix;
use warplens_symbolic::{BinaryOp, Id, Interval, SymbolKind, SymbolSet};

use crate::boxes::moved_to;
use crate::described::is_said_by_operand;
use crate::draft::{AccessDraft, BranchDraft, Unseen};
use crate::executor::Executor;
use crate::facts::{
    Alias, Arithmetic, BranchKind, Form, Link, Number, Op, OpClass, Operator, Space, StructField,
};
use crate::flow::{Draft, compute};
use crate::issued;
use crate::reals;
use crate::value::{
    ALIGNMENT, Array, ArrayId, Held, Kind, Place, SOMEWHERE, Value, Variation, is_memory, space_of,
};

/// Bytes between two arrays of which a lane takes one: more than an array has, and a multiple of what arrays are aligned to.
const APART: i64 = 1 << 40;

impl Executor<'_> {
    /// From here on what is executed is only looked at: nothing is recorded.
    pub(crate) fn begin_look(&mut self) {
        self.dry += 1;
        self.dependence.pause();
    }

    pub(crate) fn end_look(&mut self) {
        self.dry -= 1;
        self.dependence.resume();
    }

    /// A value to be stored is complete: what is evaluated from here on makes the address.
    pub(crate) fn settle(&mut self) {
        self.dependence.settle();
        self.doubted = None;
    }

    // ---- cost ----------------------------------------------------------------------------------

    /// Counts source operations and adds what a compiled kernel issues for them.
    pub(crate) fn operation(
        &mut self,
        arithmetic: Arithmetic,
        written: f64,
        issued: &Mix,
        line: u32,
        operands: &mut [&mut Value],
    ) {
        self.static_operations += written as u32;
        if self.dry > 0 {
            return;
        }
        let operator = Operator::Arithmetic(arithmetic);
        let class = operator.class();
        *self.counts.entry((self.context, class)).or_insert(0.0) += written;
        if written > 0.0 {
            let key = (self.context, line, operator);
            *self.operators.entry(key).or_insert(0.0) += written;
        }
        if self.counting_only {
            return;
        }
        let mut needs: Vec<usize> = Vec::new();
        if issued.total() > 0.0 {
            for operand in operands {
                needs.append(&mut operand.loads);
            }
            needs.sort_unstable();
            needs.dedup();
        }
        self.dependence.issue(class, issued);
        if issued.total() > 0.0 || !needs.is_empty() {
            let chain = issued.total();
            compute(&mut self.flow, line, issued, &needs, chain);
        }
    }

    /// An integer operation: what gives a value that is known already, or once for all iterations, costs
    /// nothing here.
    fn integer(&mut self, result: Option<Id>, line: u32, operands: &mut [&mut Value]) {
        self.integer_by(Arithmetic::Sum, result, line, operands);
    }

    fn integer_by(
        &mut self,
        kind: fn(Number) -> Arithmetic,
        result: Option<Id>,
        line: u32,
        operands: &mut [&mut Value],
    ) {
        let fresh = match result {
            Some(id) => self.is_fresh(id),
            None => true,
        };
        let issued = issued::integer(f64::from(u8::from(fresh)));
        self.operation(kind(Number::Integer), 1.0, &issued, line, operands);
        match result {
            Some(id) if fresh => self.dependence.computed(id),
            _ => {}
        }
    }

    /// True the first time that a value must be computed where the execution is.
    pub(crate) fn is_fresh(&mut self, id: Id) -> bool {
        if self.dry > 0 || self.counting_only || self.arena.value(id).is_some() {
            return false;
        }
        if let Some(counter) = self.contexts[self.context].innermost
            && !self.arena.depends_on(id, counter)
            && self.arena.opaque(id).is_none()
        {
            // Computed before the loop.
            return false;
        }
        // A constant offset is part of the instruction that uses it.
        let (constant, terms) = self.arena.terms(id);
        let base = if constant != 0 && !terms.is_empty() {
            let offset = self.arena.constant(constant);
            self.arena.sub(id, offset)
        } else {
            id
        };
        self.computed
            .insert((self.contexts[self.context].innermost, base))
    }

    fn floating(
        &mut self,
        kind: fn(Number) -> Arithmetic,
        ty: &Type,
        operations: f64,
        instructions: f64,
        line: u32,
        operands: &mut [&mut Value],
    ) {
        let (number, lanes) = match ty {
            Type::Vector(element, lanes) => (number(element), f64::from(*lanes)),
            ty => (number(ty), 1.0),
        };
        let amount = instructions * lanes;
        let issued = issued::arithmetic(number, amount);
        // A function that multiplies and adds is as many of the one as of the other.
        let products = (operations / 2.0).floor();
        if products > 0.0 {
            let none = Mix::default();
            let product = Arithmetic::Product(number);
            self.operation(product, products * lanes, &none, line, &mut []);
        }
        let rest = (operations - products) * lanes;
        self.operation(kind(number), rest, &issued, line, operands);
        if amount > 0.0 && self.dry == 0 {
            // The lanes of a vector do not wait for one another.
            self.dependence.is(Link::Add, instructions);
        }
    }

    pub(crate) fn conversion(&mut self, from: &Type, to: &Type, line: u32, value: &mut Value) {
        let needed = match (from, to) {
            (Type::Float { .. }, Type::Float { .. }) => from != to,
            (Type::Float { .. }, Type::Int { .. }) | (Type::Int { .. }, Type::Float { .. }) => true,
            _ => false,
        };
        if needed {
            let issued = issued::conversion();
            self.operation(Arithmetic::Conversion, 1.0, &issued, line, &mut [value]);
        }
    }

    // ---- values --------------------------------------------------------------------------------

    /// A fresh unknown integer.
    pub(crate) fn unknown(&mut self, data: bool, variation: Variation) -> Id {
        self.unknown_within(data, variation, Interval::ANY)
    }

    /// A number of a type that was read from memory.
    fn loaded(&mut self, ty: &Type, variation: Variation) -> Id {
        let range = match ty {
            Type::Int { bits, signed } => Interval::of_type(*bits, *signed),
            _ => Interval::ANY,
        };
        self.unknown_within(true, variation, range)
    }

    fn unknown_within(&mut self, data: bool, variation: Variation, range: Interval) -> Id {
        let name = if data { "data" } else { "?" };
        let Variation {
            uniform,
            with,
            along,
        } = variation;
        let id = self.arena.opaque_of(name, data, uniform, with, range);
        if let (Some(along), Some(symbol)) = (along, self.arena.as_symbol(id)) {
            self.evenly.insert(symbol, along);
        }
        id
    }

    /// What a sum or a product of floating point varies with: evenly along what one side does where the other is the same there.
    fn variation_by(&self, op: IrOp, a: &Value, b: &Value) -> Variation {
        let (x, y) = (self.variation(a), self.variation(b));
        let along = |one: Variation, other: Variation| {
            let apart = |sum: &Id| !self.arena.varies_with(*sum).meets(other.with);
            one.along.filter(apart)
        };
        let along = match op {
            IrOp::Div => along(x, y),
            IrOp::Mul => along(x, y).or_else(|| along(y, x)),
            IrOp::Add | IrOp::Sub if x.along.is_some() && x.along == y.along => x.along,
            IrOp::Add | IrOp::Sub => along(x, y).or_else(|| along(y, x)),
            _ => None,
        };
        Variation { along, ..x | y }
    }

    /// A fresh integer that is a function of those and not followed: data where one of them is.
    fn unknown_of(&mut self, operands: &[Id], variation: Variation) -> Id {
        let data = operands.iter().any(|&id| self.depends_on_data(id));
        self.unknown(data, variation)
    }

    /// The threads that add to one counter: of a block to one in shared memory, of the launch to one in global memory, where under
    /// a condition one of each block does. `None` where threads add to several.
    fn threads_that_draw(&self, array: ArrayId, offset: Id) -> Option<f64> {
        if self.arena.varies_with(offset) != SymbolSet::NONE {
            return None;
        }
        let launch = &self.request.launch;
        let guarded = !self.contexts[self.context].guards.is_empty();
        let threads = launch.threads_per_block() as f64;
        match self.arrays[array.0 as usize].space {
            Space::Shared => Some(threads),
            Space::Global if guarded => Some(launch.blocks() as f64),
            Space::Global => Some(launch.blocks() as f64 * threads),
            _ => None,
        }
    }

    pub(crate) fn depends_on_data(&self, id: Id) -> bool {
        self.arena.opaque(id) == Some(true)
    }

    /// The value as an integer expression.
    pub(crate) fn as_int(&mut self, value: &Value) -> Id {
        match value.kind {
            Kind::Int(id) | Kind::Pointer(_, id) => id,
            Kind::Data => {
                let variation = value.variation;
                self.unknown(true, variation)
            }
        }
    }

    pub(crate) fn variation(&self, value: &Value) -> Variation {
        match value.kind {
            Kind::Int(id) | Kind::Pointer(_, id) => self.variation_of(id),
            Kind::Data => value.variation,
        }
    }

    pub(crate) fn variation_of(&self, id: Id) -> Variation {
        Variation {
            uniform: !self.arena.varies_in_warp(id),
            with: self.arena.varies_with(id),
            along: self.line(id),
        }
    }

    /// What an integer moves evenly along.
    fn line(&self, id: Id) -> Option<Id> {
        if let Some(along) = self
            .arena
            .as_symbol(id)
            .and_then(|symbol| self.evenly.get(&symbol))
        {
            return Some(*along);
        }
        let moves = self.arena.varies_with(id) != SymbolSet::NONE;
        (moves && self.arena.opaque(id).is_none()).then_some(id)
    }

    /// True where some values may be below zero.
    fn may_be_negative(&self, id: Id) -> bool {
        let range = self.arena.range(id);
        // Closed forms are about positive arguments; what a loop moves is looked at when its iterations are counted.
        if range.non_negative()
            || self.arena.has_placeholder(id)
            || (self.open.is_some() && !range.bounded())
        {
            return false;
        }
        self.arena.value(id).is_none_or(|value| value < 0)
    }

    /// What arithmetic in a type makes of a result. Signed overflow is undefined: it does not happen.
    pub(crate) fn wrap(&mut self, ty: &Type, id: Id) -> Id {
        match ty {
            &Type::BOOL => self.arena.truth(id),
            Type::Int {
                bits,
                signed: false,
            } if self.never_wraps_open(*bits, false, id) => id,
            Type::Int { bits, signed } if *bits < 32 || !signed => {
                self.arena.wrap(*bits, *signed, id)
            }
            _ => id,
        }
    }

    /// What a conversion between integer types makes of a value.
    pub(crate) fn convert(&mut self, from: &Type, to: &Type, id: Id) -> Id {
        match (from, to) {
            (_, &Type::BOOL) => self.arena.truth(id),
            (Type::Int { bits: a, signed: s }, Type::Int { bits: b, signed: t })
                if (s == t && a <= b) || (!s && *t && a < b) =>
            {
                id
            }
            (_, Type::Int { bits, signed }) if self.never_wraps_open(*bits, *signed, id) => id,
            (_, Type::Int { bits, signed }) => self.arena.wrap(*bits, *signed, id),
            _ => id,
        }
    }

    /// The value of an expression; its accesses and operations are recorded.
    pub(crate) fn eval(&mut self, expression: &Expr) -> Value {
        self.dependence.enter();
        let mut value = self.with_doubts(|executor| executor.evaluate(expression));
        let own = value.origin.or_else(|| match value.kind {
            Kind::Int(id) => self.dependence.known(id),
            Kind::Pointer(..) | Kind::Data => None,
        });
        value.origin = self.dependence.leave(own);
        value
    }

    fn evaluate(&mut self, expression: &Expr) -> Value {
        self.steps = self.steps.saturating_add(1);
        let line = expression.site.line;
        match &expression.kind {
            ExprKind::Int(value) => Value::int(self.arena.constant(*value)),
            ExprKind::Float(number) => match number {
                Some(number) => Value::real(number.value(), &expression.ty),
                None => Value::data(Variation::NONE),
            },
            ExprKind::Builtin(Builtin::GlobalIdx(axis)) => self.global_index(*axis, line),
            ExprKind::Builtin(builtin) => Value::int(self.builtin(*builtin)),
            ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..) => {
                if let ExprKind::Field(base, _) = &expression.kind
                    && !base.is_place()
                {
                    // A field of a value: f().x
                    let value = self.eval(base);
                    return Value {
                        kind: Kind::Data,
                        real: None,
                        ..value
                    };
                }
                let place = self.place(expression);
                self.read(&place, expression)
            }
            ExprKind::Unary(op, inner) => {
                let mut value = self.eval(inner);
                match op {
                    UnaryOp::Neg if expression.ty.is_int() => {
                        let id = self.as_int(&value);
                        let negated = self.arena.neg(id);
                        let result = self.wrap(&expression.ty, negated);
                        self.integer(Some(result), line, &mut [&mut value]);
                        Value::int(result)
                    }
                    UnaryOp::Neg => {
                        let variation = self.variation(&value);
                        self.floating(
                            Arithmetic::Sum,
                            &expression.ty,
                            1.0,
                            0.0,
                            line,
                            &mut [&mut value],
                        );
                        Value {
                            variation,
                            kind: Kind::Data,
                            loads: value.loads,
                            origin: None,
                            doubt: None,
                            parts: None,
                            real: value.real.map(|number| -number),
                        }
                    }
                    UnaryOp::Not => {
                        let id = self.as_int(&value);
                        let truth = self.arena.truth(id);
                        let result = self.arena.not(truth);
                        self.integer(Some(result), line, &mut [&mut value]);
                        Value::int(result)
                    }
                    UnaryOp::BitNot => {
                        let id = self.as_int(&value);
                        let negated = self.arena.neg(id);
                        let one = self.arena.constant(1);
                        let inverted = self.arena.sub(negated, one);
                        let result = self.wrap(&expression.ty, inverted);
                        self.integer(Some(result), line, &mut [&mut value]);
                        Value::int(result)
                    }
                }
            }
            ExprKind::Binary(op, left, right) => {
                self.binary(*op, left, right, &expression.ty, expression.site)
            }
            ExprKind::Assign(op, target, value) => self.assign(*op, target, value, expression),
            ExprKind::Step(by, postfix, target) => {
                let place = self.place(target);
                let mut before = self.read(&place, target);
                let scale = target
                    .ty
                    .element()
                    .map_or(1, |element| element.size().max(1) as i64);
                self.dependence.input(before.origin);
                let mut after = match before.kind {
                    Kind::Int(id) => {
                        let step = self.arena.constant(*by);
                        let sum = self.arena.add(id, step);
                        let sum = self.wrap(&target.ty, sum);
                        Value::int(sum)
                    }
                    Kind::Pointer(array, offset) => {
                        let step = self.arena.constant(by * scale);
                        let moved = match target.ty.element() {
                            Some(element) if element.is_unread() => self.at_unread(target.site),
                            _ => self.arena.add(offset, step),
                        };
                        Value::pointer(array, moved)
                    }
                    Kind::Data => Value::data(before.variation),
                };
                if target.ty.is_float() {
                    self.floating(
                        Arithmetic::Sum,
                        &target.ty,
                        1.0,
                        1.0,
                        line,
                        &mut [&mut before],
                    );
                } else {
                    let id = match after.kind {
                        Kind::Int(id) | Kind::Pointer(_, id) => Some(id),
                        Kind::Data => None,
                    };
                    self.integer(id, line, &mut [&mut before]);
                }
                after.origin = self.dependence.result(None);
                self.write(&place, target, after.clone());
                if *postfix { before } else { after }
            }
            ExprKind::Select(condition, a, b) => self.select(condition, a, b, expression),
            ExprKind::Cast(_, inner) => {
                let mut value = self.eval(inner);
                self.conversion(&inner.ty, &expression.ty, line, &mut value);
                match (&expression.ty, value.kind) {
                    (Type::Int { .. }, Kind::Int(id)) => {
                        let wrapped = self.convert(&inner.ty, &expression.ty, id);
                        Value {
                            kind: Kind::Int(wrapped),
                            ..value
                        }
                    }
                    (Type::Pointer(..), Kind::Pointer(..)) => value,
                    // An address stays one as an integer that holds it.
                    (Type::Int { bits: 32.., .. }, Kind::Pointer(..)) => value,
                    (Type::Int { .. }, Kind::Pointer(_, id)) => Value {
                        kind: Kind::Int(id),
                        ..value
                    },
                    (ty, kind) => {
                        if let (Type::Int { .. }, Kind::Data) = (ty, kind)
                            && let Some(whole) = self.whole_of(&value, ty)
                        {
                            return Value::int(self.arena.constant(whole));
                        }
                        let variation = self.variation(&value);
                        let number = self.real_of(&value);
                        Value {
                            kind: Kind::Data,
                            variation,
                            loads: value.loads,
                            origin: None,
                            doubt: None,
                            parts: None,
                            real: number.and_then(|number| Value::real(number, ty).real),
                        }
                    }
                }
            }
            ExprKind::AddressOf(inner) => match self.place(inner) {
                Place::Memory(array, offset) => Value::pointer(array, offset),
                Place::Variable(id) => {
                    let array = self.array_of(id);
                    let zero = self.arena.constant(0);
                    Value::pointer(array, zero)
                }
                Place::Part(id, at) => {
                    let array = self.array_of(id);
                    let offset = match at {
                        SOMEWHERE => self.unknown(false, Variation::ANY),
                        at => self.arena.constant(at as i64),
                    };
                    Value::pointer(array, offset)
                }
                Place::Lost => Value::data(Variation::ANY),
            },
            ExprKind::Call(function, arguments) => self.call(function, arguments, expression),
            ExprKind::List(parts) if crate::elements::is_aggregate(&expression.ty) => {
                self.list(parts, &expression.ty)
            }
            ExprKind::List(parts) => {
                let mut last = Value::data(Variation::NONE);
                let mut loads = Vec::new();
                let mut variation = Variation::NONE;
                let mut taken = None;
                for (at, part) in parts.iter().enumerate() {
                    last = self.eval(part);
                    match at {
                        0 => taken.clone_from(&last.parts),
                        _ => self.take_apart(taken.as_deref(), &parts[0], part, at - 1),
                    }
                    loads.append(&mut last.loads.clone());
                    variation = variation | self.variation(&last);
                }
                if parts.len() == 1 {
                    return last;
                }
                let kind = match (&expression.ty, last.kind) {
                    // The comma operator.
                    (Type::Int { .. } | Type::Pointer(..), kind) => kind,
                    _ => Kind::Data,
                };
                Value {
                    kind,
                    loads,
                    variation,
                    origin: None,
                    doubt: None,
                    parts: None,
                    real: None,
                }
            }
            ExprKind::Inline(statements, result) => {
                self.inline(statements, *result, &expression.ty)
            }
            ExprKind::Apply(routine, arguments) => {
                // It may write to what it is given, and is not executed for each call.
                self.elements.clear();
                let value = self.apply(*routine, arguments, expression);
                self.elements.clear();
                self.held.values_mut().for_each(|held| *held = Held::Data);
                value
            }
            ExprKind::Opaque(reason, parts) => {
                let build = *reason == Opaque::Build;
                let own = if build {
                    Variation::NONE
                } else {
                    Variation::ANY
                };
                let (mut loads, mut variation, mut data) =
                    (Vec::new(), own, *reason == Opaque::Loaded);
                for part in parts {
                    let mut value = self.eval(part);
                    self.forget_pointees([&value]);
                    variation = variation | self.variation(&value);
                    data |= build && matches!(value.kind, Kind::Data);
                    loads.append(&mut value.loads);
                }
                let kind = if data && matches!(expression.ty, Type::Float { .. }) {
                    Kind::Data
                } else {
                    Kind::Int(self.unknown(data, variation))
                };
                Value {
                    kind,
                    loads,
                    variation,
                    origin: None,
                    doubt: None,
                    parts: None,
                    real: None,
                }
            }
        }
    }

    /// `get_global_id`: a multiplication and an addition issue, but none is written.
    fn global_index(&mut self, axis: u8, line: u32) -> Value {
        let result = self.builtin(Builtin::GlobalIdx(axis));
        let first = self
            .arena
            .mul(self.block[axis as usize], self.block_dim[axis as usize]);
        for id in [first, result] {
            let issued = issued::integer(f64::from(u8::from(self.is_fresh(id))));
            self.operation(
                Arithmetic::Sum(Number::Integer),
                0.0,
                &issued,
                line,
                &mut [],
            );
        }
        Value::int(result)
    }

    fn builtin(&mut self, builtin: Builtin) -> Id {
        self.routines.depends_on_thread();
        match builtin {
            Builtin::ThreadIdx(axis) => self.thread[axis as usize],
            Builtin::BlockIdx(axis) => self.block[axis as usize],
            Builtin::GlobalIdx(axis) => {
                let axis = axis as usize;
                let first = self.arena.mul(self.block[axis], self.block_dim[axis]);
                self.arena.add(first, self.thread[axis])
            }
            Builtin::BlockDim(axis) => self.block_dim[axis as usize],
            Builtin::GridDim(axis) => self.grid_dim[axis as usize],
            Builtin::WarpSize => {
                let size = self.domain.warp_size() as i64;
                self.arena.constant(size)
            }
            Builtin::ClusterDim(axis) => match self.request.cluster() {
                Some(blocks) => self.arena.constant(blocks[axis as usize] as i64),
                None => self.unknown(false, Variation::NONE),
            },
        }
    }

    fn binary(&mut self, op: IrOp, left: &Expr, right: &Expr, ty: &Type, site: Site) -> Value {
        let line = site.line;
        let mut a = self.eval(left);
        if matches!(op, IrOp::LogicalAnd | IrOp::LogicalOr) {
            let first = self.as_int(&a);
            let x = self.arena.truth(first);
            // The second operand is evaluated only where the first does not decide.
            let outer = self.context;
            self.enter(x, op == IrOp::LogicalAnd, usize::MAX, false);
            let second = self.context;
            let contexts = match op {
                IrOp::LogicalAnd => (outer, second, None),
                _ => (outer, outer, Some(second)),
            };
            self.parted(left, usize::MAX, contexts);
            let mut b = self.eval(right);
            self.context = outer;
            let second = self.as_int(&b);
            let y = self.arena.truth(second);
            let op = if op == IrOp::LogicalAnd {
                BinaryOp::LogicalAnd
            } else {
                BinaryOp::LogicalOr
            };
            let result = self.arena.binary(op, x, y);
            self.integer(Some(result), line, &mut [&mut a, &mut b]);
            return Value::int(result);
        }
        let mut b = self.eval(right);
        let comparison = matches!(
            op,
            IrOp::Lt | IrOp::Le | IrOp::Gt | IrOp::Ge | IrOp::Eq | IrOp::Ne
        );
        let operand_type = left.ty.common(&right.ty);
        let float = !matches!(
            operand_type,
            Type::Int { .. } | Type::Pointer(..) | Type::Array(..)
        );
        if float {
            let variation = self.variation_by(op, &a, &b);
            let numbers = self.real_of(&a).zip(self.real_of(&b));
            let numbers =
                numbers.filter(|_| matches!(operand_type, Type::Float { bits: 32 | 64, .. }));
            if matches!(operand_type, Type::Float { .. }) {
                self.conversion(&left.ty, &operand_type, line, &mut a);
                self.conversion(&right.ty, &operand_type, line, &mut b);
            }
            let instructions = match op {
                // The multiplication before it is already counted: together they are one FMA.
                IrOp::Add | IrOp::Sub if is_product(left) || is_product(right) => 0.0,
                // A division is a sequence of multiplications around a reciprocal.
                IrOp::Div => 8.0,
                _ => 1.0,
            };
            let mut both = [&mut a, &mut b];
            if instructions == 0.0 {
                // The addend of an FMA is still waited for.
                let needs: Vec<usize> = both
                    .iter_mut()
                    .flat_map(|value| std::mem::take(&mut value.loads))
                    .collect();
                self.floating(Arithmetic::Sum, &operand_type, 1.0, 0.0, line, &mut []);
                if is_product(left) {
                    self.dependence.fuse(a.origin, b.origin);
                } else {
                    self.dependence.fuse(b.origin, a.origin);
                }
                if self.dry == 0 && !needs.is_empty() {
                    compute(&mut self.flow, line, &Mix::default(), &needs, 0.0);
                }
            } else {
                self.floating(
                    kind_of(op),
                    &operand_type,
                    1.0,
                    instructions,
                    line,
                    &mut both,
                );
                if self.dry == 0 && matches!(operand_type, Type::Float { .. } | Type::Vector(..)) {
                    match op {
                        IrOp::Mul => self.dependence.is(Link::Multiply, instructions),
                        IrOp::Div => self.dependence.is(Link::Divide, instructions),
                        _ => {}
                    }
                }
                if op == IrOp::Div {
                    let issued = issued::reciprocal();
                    self.operation(
                        Arithmetic::Special(Number::Single),
                        0.0,
                        &issued,
                        line,
                        &mut [],
                    );
                }
            }
            if comparison {
                let known = numbers.and_then(|(x, y)| reals::comparison(op, x, y));
                let id = match known {
                    Some(holds) => self.arena.constant(i64::from(holds)),
                    None => self.unknown_within(true, variation, Interval::BOOL),
                };
                return Value::int(id);
            }
            if let Some((x, y)) = numbers
                && let Some(number) = reals::arithmetic(op, x, y)
            {
                return Value::real(number, &operand_type);
            }
            let mut loads = a.loads;
            loads.append(&mut b.loads);
            return Value {
                kind: Kind::Data,
                loads,
                variation,
                origin: None,
                doubt: None,
                parts: None,
                real: None,
            };
        }
        // Pointers move by elements.
        if let (Kind::Pointer(array, offset), IrOp::Add | IrOp::Sub) = (a.kind, op)
            && !matches!(b.kind, Kind::Pointer(..))
        {
            return self.move_pointer(array, offset, left, &b, op == IrOp::Sub, line);
        }
        if let (Kind::Pointer(array, offset), IrOp::Add) = (b.kind, op)
            && !matches!(a.kind, Kind::Pointer(..))
        {
            return self.move_pointer(array, offset, right, &a, false, line);
        }
        if ty.is_int() && (left.ty.is_int() || right.ty.is_int()) {
            let found = self.address_arithmetic(op, &a, &b);
            if let Some(kind) = found {
                let id = match kind {
                    Kind::Int(id) | Kind::Pointer(_, id) => Some(id),
                    Kind::Data => None,
                };
                self.integer_by(kind_of(op), id, line, &mut [&mut a, &mut b]);
                return Value {
                    kind,
                    ..Value::data(Variation::ANY)
                };
            }
        }
        let (x, y) = (self.as_int(&a), self.as_int(&b));
        // Comparisons and arithmetic happen in the common type.
        let (x, y) = match (&operand_type, op) {
            (_, IrOp::Shl | IrOp::Shr) => (x, y),
            (Type::Int { .. }, _) => (
                self.convert(&left.ty, &operand_type, x),
                self.convert(&right.ty, &operand_type, y),
            ),
            _ => (x, y),
        };
        // Values are kept as signed numbers of 64 bits: where an unsigned one may be below zero there, its order, its
        // quotients and what comes from the left of it are not known.
        let depends_on_sign = matches!(
            op,
            IrOp::Div | IrOp::Rem | IrOp::Lt | IrOp::Le | IrOp::Gt | IrOp::Ge
        );
        let bare = match op {
            IrOp::Shr => left.ty.common(&Type::INT) == Type::SIZE && self.may_be_negative(x),
            _ => {
                operand_type == Type::SIZE
                    && depends_on_sign
                    && (self.may_be_negative(x) || self.may_be_negative(y))
            }
        };
        if bare {
            let variation = self.variation(&a) | self.variation(&b);
            let id = self.unknown_of(&[x, y], variation);
            self.integer_by(kind_of(op), Some(id), line, &mut [&mut a, &mut b]);
            return Value::int(id);
        }
        let (x, y) = if operand_type == Type::SIZE && depends_on_sign && comparison {
            (self.of_loop_unsigned(x), self.of_loop_unsigned(y))
        } else {
            (x, y)
        };
        if let Some(why) = self.undefined(op, ty, y) {
            let id = self.without_value(self.variation_of(x), why);
            self.integer_by(kind_of(op), Some(id), line, &mut [&mut a, &mut b]);
            return Value::int(id);
        }
        let raw = match op {
            IrOp::Add => self.arena.add(x, y),
            IrOp::Sub => self.arena.sub(x, y),
            IrOp::Mul => self.arena.mul(x, y),
            IrOp::Div => self.arena.binary(BinaryOp::Div, x, y),
            IrOp::Rem => self.arena.binary(BinaryOp::Rem, x, y),
            IrOp::Shl => self.arena.binary(BinaryOp::Shl, x, y),
            IrOp::Shr => self.arena.binary(BinaryOp::Shr, x, y),
            IrOp::And => self.arena.binary(BinaryOp::And, x, y),
            IrOp::Or => self.arena.binary(BinaryOp::Or, x, y),
            IrOp::Xor => self.arena.binary(BinaryOp::Xor, x, y),
            IrOp::Lt => self.arena.binary(BinaryOp::Lt, x, y),
            IrOp::Le => self.arena.binary(BinaryOp::Le, x, y),
            IrOp::Gt => self.arena.binary(BinaryOp::Lt, y, x),
            IrOp::Ge => self.arena.binary(BinaryOp::Le, y, x),
            IrOp::Eq => self.arena.binary(BinaryOp::Eq, x, y),
            IrOp::Ne => self.arena.binary(BinaryOp::Ne, x, y),
            IrOp::LogicalAnd | IrOp::LogicalOr => x,
        };
        if !comparison {
            self.doubt(op, ty, y, raw);
        }
        let result = if comparison { raw } else { self.wrap(ty, raw) };
        self.integer_by(kind_of(op), Some(result), line, &mut [&mut a, &mut b]);
        Value::int(result)
    }

    /// A value that moves with a loop, compared as an unsigned one of 64 bits.
    fn of_loop_unsigned(&mut self, id: Id) -> Id {
        if self.arena.has_placeholder(id) && !self.arena.range(id).non_negative() {
            self.arena.unsigned(id)
        } else {
            id
        }
    }

    /// A product of the lowest 24 bits of two numbers.
    fn product24(&mut self, ty: &Type, x: Id, y: Id) -> Id {
        let signed = !matches!(ty, Type::Int { signed: false, .. });
        let (x, y) = (
            self.arena.wrap(24, signed, x),
            self.arena.wrap(24, signed, y),
        );
        let product = self.arena.mul(x, y);
        self.arena.wrap(32, signed, product)
    }

    /// Named integer arithmetic; `None` where it is of more than 32 bits and not followed.
    fn bits(&mut self, bits: Bits, operand: &Type, result: &Type, ids: &[Id]) -> Option<Id> {
        let Type::Int {
            bits: width,
            signed,
        } = *operand
        else {
            return None;
        };
        let &first = ids.first()?;
        let second = ids.get(1).copied();
        let third = ids.get(2).copied();
        // The bits themselves, whatever sign the type gives them.
        let plain = self.arena.wrap(width, false, first);
        let of_width = self.arena.constant(i64::from(width));
        let lowest_one = |executor: &mut Self| {
            let negated = executor.arena.neg(plain);
            executor.arena.binary(BinaryOp::And, plain, negated)
        };
        let id = match bits {
            Bits::Population => self.arena.binary(BinaryOp::Population, plain, of_width),
            Bits::LeadingZeros => self.arena.binary(BinaryOp::LeadingZeros, plain, of_width),
            Bits::TrailingZeros => {
                let one = self.arena.constant(1);
                let lowest = lowest_one(self);
                let below = self.arena.sub(lowest, one);
                self.arena.binary(BinaryOp::Population, below, of_width)
            }
            Bits::FirstSet => {
                let lowest = lowest_one(self);
                let above = self.arena.binary(BinaryOp::LeadingZeros, lowest, of_width);
                self.arena.sub(of_width, above)
            }
            Bits::Reverse => self.arena.binary(BinaryOp::Reverse, plain, of_width),
            Bits::MultiplyHigh if width == 32 => {
                self.arena.binary(BinaryOp::MulHigh, first, second?)
            }
            Bits::MultiplyHigh => return None,
            Bits::MultiplyAdd24 => {
                let product = self.product24(operand, first, second?);
                let sum = self.arena.add(product, third?);
                self.arena.wrap(width, signed, sum)
            }
            Bits::Clamp => {
                let least = self.arena.binary(BinaryOp::Max, first, second?);
                self.arena.binary(BinaryOp::Min, least, third?)
            }
            Bits::Expect => first,
        };
        Some(self.wrap(result, id))
    }

    fn move_pointer(
        &mut self,
        array: ArrayId,
        offset: Id,
        pointer: &Expr,
        by: &Value,
        back: bool,
        line: u32,
    ) -> Value {
        let size = pointer
            .ty
            .element()
            .map_or(1, |element| element.size().max(1) as i64);
        let by_id = self.as_int(by);
        let bytes = self.arena.scale(by_id, if back { -size } else { size });
        let moved = self.arena.add(offset, bytes);
        let moved = match pointer.ty.element() {
            Some(element) if element.is_unread() => self.at_unread(pointer.site),
            _ => moved,
        };
        let mut by = by.clone();
        self.integer(Some(moved), line, &mut [&mut by]);
        Value::pointer(array, moved)
    }

    /// An operator on an address as an integer: its array begins at a multiple of [`ALIGNMENT`], so that the bits below
    /// that are those of the offset. What depends on more of them is assumed of the launch.
    fn address_arithmetic(&mut self, op: IrOp, a: &Value, b: &Value) -> Option<Kind> {
        let (array, offset, by) = match (a.kind, b.kind) {
            (Kind::Pointer(p, x), Kind::Pointer(q, y)) if op == IrOp::Sub => {
                return Some(Kind::Int(if p == q {
                    self.arena.sub(x, y)
                } else {
                    self.unknown(false, Variation::NONE)
                }));
            }
            (Kind::Pointer(array, offset), Kind::Int(by)) => (array, offset, by),
            (Kind::Int(by), Kind::Pointer(array, offset))
                if matches!(op, IrOp::Xor | IrOp::Or | IrOp::And) =>
            {
                (array, offset, by)
            }
            _ => return None,
        };
        let range = self.arena.range(by);
        let low = range.non_negative() && range.hi < ALIGNMENT;
        let op = match op {
            IrOp::Xor => BinaryOp::Xor,
            IrOp::Or => BinaryOp::Or,
            IrOp::And => BinaryOp::And,
            IrOp::Rem => BinaryOp::Rem,
            IrOp::Shr => BinaryOp::Shr,
            IrOp::Div => BinaryOp::Div,
            IrOp::Shl => BinaryOp::Shl,
            _ => return None,
        };
        match op {
            BinaryOp::Xor | BinaryOp::Or => {
                let offset = if low {
                    offset
                } else {
                    self.absolute(array, offset)
                };
                Some(Kind::Pointer(array, self.arena.binary(op, offset, by)))
            }
            // Down to a multiple of a power of two.
            BinaryOp::And if !low => {
                let mask = self.arena.as_const(by).map(|mask| i64::from(mask as i32));
                let clears = mask.filter(|mask| *mask < 0).map(i64::wrapping_neg);
                let size = clears.filter(|size| size.count_ones() == 1);
                let offset = if size.is_some_and(|size| size <= ALIGNMENT) {
                    offset
                } else {
                    self.absolute(array, offset)
                };
                if size.is_some() {
                    let mask = self.arena.constant(-size?);
                    return Some(Kind::Pointer(array, self.arena.binary(op, offset, mask)));
                }
                Some(Kind::Int(self.arena.binary(op, offset, by)))
            }
            BinaryOp::And => Some(Kind::Int(self.arena.binary(op, offset, by))),
            BinaryOp::Rem
                if self
                    .arena
                    .as_const(by)
                    .is_some_and(|by| by > 0 && ALIGNMENT % by == 0) =>
            {
                Some(Kind::Int(self.arena.binary(op, offset, by)))
            }
            _ => {
                let absolute = self.absolute(array, offset);
                Some(Kind::Int(self.arena.binary(op, absolute, by)))
            }
        }
    }

    /// An offset with where its array begins: at 0 where it is the only one of its memory, assumed to be there otherwise.
    fn absolute(&mut self, array: ArrayId, offset: Id) -> Id {
        let of = self.arrays[array.0 as usize].clone();
        let shared = |var: &warplens_ir::Var| {
            matches!(var.storage, Storage::Shared | Storage::DynamicShared)
        };
        let alone = of.space == Space::Shared
            && self.kernel.vars.iter().filter(|var| shared(var)).count() == 1;
        if alone {
            return offset;
        }
        let name = format!("&{}", of.name);
        let base = match self.bases.get(&array) {
            Some(&base) => base,
            None => {
                let kind = SymbolKind::Fixed {
                    value: 0,
                    assumed: true,
                };
                let base = self
                    .arena
                    .symbol(&name, kind, Interval::new(0, i64::from(i32::MAX)));
                self.bases.insert(array, base);
                base
            }
        };
        self.arena.add(offset, base)
    }

    fn assign(&mut self, op: Option<IrOp>, target: &Expr, value: &Expr, whole: &Expr) -> Value {
        let line = whole.site.line;
        let from = op.map_or_else(|| value.ty.clone(), |_| target.ty.common(&value.ty));
        let result = match op {
            None => {
                let mut result = self.eval(value);
                self.conversion(&value.ty, &target.ty, line, &mut result);
                result
            }
            Some(op) => {
                // a op= b reads and writes a.
                let ty = target.ty.common(&value.ty);
                let mut result = self.binary(op, target, value, &ty, whole.site);
                self.conversion(&ty, &target.ty, line, &mut result);
                result
            }
        };
        let result = match (&target.ty, result.kind) {
            (Type::Int { .. }, Kind::Int(id)) => {
                let wrapped = self.convert(&from, &target.ty, id);
                Value {
                    kind: Kind::Int(wrapped),
                    ..result
                }
            }
            (Type::Int { .. }, Kind::Data) => {
                let id = match self.whole_of(&result, &target.ty) {
                    Some(whole) => self.arena.constant(whole),
                    None => self.unknown(true, result.variation),
                };
                Value {
                    kind: Kind::Int(id),
                    real: None,
                    ..result
                }
            }
            (Type::Int { bits: 32.., .. }, Kind::Pointer(..)) => result,
            (Type::Int { .. }, Kind::Pointer(_, id)) => Value {
                kind: Kind::Int(id),
                ..result
            },
            (Type::Pointer(..), _) => result,
            _ => {
                let variation = self.variation(&result);
                let number = self.real_of(&result);
                let number = number.and_then(|number| Value::real(number, &target.ty).real);
                Value {
                    kind: Kind::Data,
                    variation,
                    loads: result.loads,
                    origin: None,
                    doubt: None,
                    parts: result.parts,
                    real: number,
                }
            }
        };
        let mut result = result;
        result.origin = self.dependence.result(None);
        result.doubt = result.doubt.or_else(|| self.doubted.take());
        self.settle();
        // `a[f(i)] += x` evaluates its subscript once.
        let tracked = self.tracked;
        if op.is_some() {
            if !self.is_only_looked_at() {
                self.tracked = self.dry + 1;
            }
            self.begin_look();
        }
        let place = self.place(target);
        if op.is_some() {
            self.end_look();
            self.tracked = tracked;
        }
        self.write(&place, target, result.clone());
        result
    }

    fn select(&mut self, condition: &Expr, a: &Expr, b: &Expr, whole: &Expr) -> Value {
        let line = whole.site.line;
        let mut test = self.eval(condition);
        let id = self.as_int(&test);
        let truth = self.arena.truth(id);
        let before = self.static_operations;
        let outer = self.context;
        let (probability, probability_from) = self.probability(condition, truth);
        let branch = self.new_branch(BranchDraft {
            site: condition.site,
            text: self.quote(condition.site),
            kind: BranchKind::Select,
            condition: Some(truth),
            context: outer,
            inner: None,
            taken_operations: 0,
            other_operations: 0,
            probability,
            probability_from,
            why: None,
            origin: self.origin(condition),
        });
        // Only the side that is chosen is executed.
        self.enter(truth, true, branch, false);
        let x = self.eval(a);
        let taken = self.static_operations - before;
        let on_taken = self.context;
        self.context = outer;
        self.enter(truth, false, branch, false);
        self.parted(condition, branch, (outer, on_taken, Some(self.context)));
        let mut y = self.eval(b);
        self.context = outer;
        self.set_operations(branch, taken, self.static_operations - before - taken);
        if self.arena.as_const(truth).is_none() {
            // It issues, but it is no operator on integers.
            let issued = issued::integer(1.0);
            self.operation(
                Arithmetic::Sum(Number::Integer),
                0.0,
                &issued,
                line,
                &mut [&mut test],
            );
        }
        match (x.kind, y.kind, &whole.ty) {
            (Kind::Int(p), Kind::Int(q), Type::Int { .. }) => {
                let mut loads = x.loads;
                loads.append(&mut y.loads);
                // Both sides come as the type of the whole: -1 beside an unsigned is a big number.
                let p = self.convert(&a.ty, &whole.ty, p);
                let q = self.convert(&b.ty, &whole.ty, q);
                let result = self.arena.select(truth, p, q);
                Value {
                    kind: Kind::Int(result),
                    loads,
                    variation: Variation::ANY,
                    origin: None,
                    doubt: None,
                    parts: None,
                    real: None,
                }
            }
            (Kind::Pointer(p, _), Kind::Pointer(q, _), _)
                if p != q && self.arena.as_const(truth).is_some() =>
            {
                let first = self.arena.as_const(truth) != Some(0);
                if first { x } else { y }
            }
            (kind_x, kind_y, _) => {
                if let (Kind::Pointer(p, i), Kind::Pointer(q, j)) = (kind_x, kind_y)
                    && let Some((array, at)) = self.chosen(truth, (p, i), (q, j))
                {
                    return Value::pointer(array, at);
                }
                let variation = self.variation(&x) | self.variation(&y) | self.variation_of(truth);
                let mut loads = x.loads;
                loads.append(&mut y.loads);
                Value {
                    kind: Kind::Data,
                    loads,
                    variation,
                    origin: None,
                    doubt: None,
                    parts: None,
                    real: None,
                }
            }
        }
    }

    /// The pointer that a condition chooses of two: into one array, or into one of two arrays of device memory.
    pub(crate) fn chosen(
        &mut self,
        truth: Id,
        (p, i): (ArrayId, Id),
        (q, j): (ArrayId, Id),
    ) -> Option<(ArrayId, Id)> {
        if p == q {
            return Some((p, self.arena.select(truth, i, j)));
        }
        let global = |array: ArrayId| self.arrays[array.0 as usize].space == Space::Global;
        if !global(p) || !global(q) {
            return None;
        }
        // Lanes of one warp that go to different arrays share no sector, unless both are one array.
        let j = if self.arena.varies_in_warp(truth) {
            let [from, to] = [p, q].map(|array| &self.arrays[array.0 as usize].name);
            let kind = SymbolKind::Fixed {
                value: APART,
                assumed: true,
            };
            let name = format!("&{to} - &{from}");
            let apart = self.arena.symbol(&name, kind, Interval::new(0, APART));
            self.arena.add(j, apart)
        } else {
            j
        };
        Some((self.either(p, q), self.arena.select(truth, i, j)))
    }

    /// One of two arrays of device memory, which one is not known: what else reaches it is not known either.
    fn either(&mut self, p: ArrayId, q: ArrayId) -> ArrayId {
        let [p, q] = [p, q].map(|array| &self.arrays[array.0 as usize]);
        let name = format!("{} or {}", p.name, q.name);
        let extent = p.extent.zip(q.extent).map(|(p, q)| p.max(q));
        let known = self.arrays.iter().position(|array| array.name == name);
        match known {
            Some(at) => ArrayId(at as u32),
            None => {
                let array = self.array(&name, Space::Global);
                self.arrays[array.0 as usize].extent = extent;
                array
            }
        }
    }

    fn call(&mut self, function: &Function, arguments: &[Expr], whole: &Expr) -> Value {
        let line = whole.site.line;
        let first = self.accesses.len();
        match function {
            Function::Instruction(mnemonic, function) => {
                let value = self.call(function, arguments, whole);
                let texts = [Op::Load, Op::Store].map(|op| self.written(mnemonic, op, arguments));
                for draft in self.accesses.iter_mut().skip(first) {
                    if draft.site == whole.site {
                        draft.instruction = Some(std::sync::Arc::clone(mnemonic));
                        if is_said_by_operand(draft.form) {
                            continue;
                        }
                        let [load, store] = &texts;
                        let text = if draft.op == Op::Load { load } else { store };
                        draft.text.clone_from(text);
                    }
                }
                return value;
            }
            Function::Rows { store, matrices } => {
                return self.rows(*store, *matrices, arguments, whole);
            }
            Function::Bulk { multicast } => {
                self.bulk_copy(*multicast, arguments, whole);
                return Value::data(Variation::NONE);
            }
            Function::BulkBox { multicast } => {
                self.box_copy(*multicast, arguments, whole);
                return Value::data(Variation::NONE);
            }
            Function::CopyPastRegisters => {
                self.copy_past_registers(arguments, whole);
                return Value::data(Variation::NONE);
            }
            Function::Mapped => {
                let Some(address) = arguments.first() else {
                    return Value::data(Variation::ANY);
                };
                let mut value = self.eval(address);
                if let Kind::Pointer(array, offset) = value.kind {
                    value.kind = Kind::Pointer(self.remote(array), offset);
                }
                return value;
            }
            Function::Load => {
                let Some(pointer) = arguments.first() else {
                    return Value::data(Variation::ANY);
                };
                let target = Expr {
                    kind: ExprKind::Deref(Box::new(pointer.clone())),
                    ty: whole.ty.clone(),
                    site: whole.site,
                };
                let place = self.pointed_at(pointer);
                let value = self.read(&place, &target);
                self.stands_for(first, &target, whole);
                return value;
            }
            Function::Store => {
                if let [pointer, value, ..] = arguments {
                    let ty = pointer.ty.element().cloned().unwrap_or(Type::INT);
                    let target = Expr {
                        kind: ExprKind::Deref(Box::new(pointer.clone())),
                        ty,
                        site: whole.site,
                    };
                    let value = self.eval(value);
                    self.settle();
                    let place = self.pointed_at(pointer);
                    self.write(&place, &target, value);
                    self.stands_for(first, &target, whole);
                }
                return Value::data(Variation::NONE);
            }
            Function::Atomic(update, _) => {
                // The others' sum is in front of each lane's own where each adds the same.
                let gives_back = self.discarded != Some(whole.site);
                let same = |operand: &Expr| matches!(operand.kind, ExprKind::Int(_));
                let combines = *update == Update::Combine
                    && whole.ty.is_int()
                    && whole.ty.size() == 4
                    && (!gives_back || arguments.iter().skip(1).all(same));
                let mut loads = Vec::new();
                for argument in arguments.iter().skip(1) {
                    loads.append(&mut self.eval(argument).loads);
                }
                self.settle();
                let mut draws = None;
                let mut given_back = Vec::new();
                if let Some(pointer) = arguments.first() {
                    let target = Expr {
                        kind: ExprKind::Deref(Box::new(pointer.clone())),
                        ty: whole.ty.clone(),
                        site: pointer.site,
                    };
                    if let Place::Memory(array, offset) = self.pointed_at(pointer) {
                        draws = self.threads_that_draw(array, offset);
                        let bytes = whole.ty.size().max(4) as u32;
                        let draft =
                            self.record(array, offset, bytes, bytes, Op::Atomic, &target, &loads);
                        if gives_back {
                            given_back.push(draft);
                        }
                        for draft in &mut self.accesses[first..] {
                            draft.combines = combines;
                        }
                        self.stands_for(first, &target, whole);
                    }
                }
                let id = self.unknown(true, Variation::ANY);
                if *update == Update::Combine
                    && let (Some(threads), Some(symbol)) = (draws, self.arena.as_symbol(id))
                {
                    self.tickets.insert(symbol, threads);
                }
                let value = if whole.ty.is_int() {
                    Value::int(id)
                } else {
                    Value::data(Variation::ANY)
                };
                return Value {
                    loads: given_back,
                    ..value
                };
            }
            Function::Tile { store } => {
                if let Some(value) = self.fragment(function, arguments, whole) {
                    return value;
                }
                let mut loads = Vec::new();
                for argument in arguments.iter().skip(1) {
                    loads.append(&mut self.eval(argument).loads);
                }
                if let Some(pointer) = arguments.first() {
                    let op = if *store { Op::Store } else { Op::Load };
                    loads.extend(self.somewhere_in(pointer, op, whole, &loads.clone()));
                }
                return Value {
                    loads,
                    ..Value::data(Variation::ANY)
                };
            }
            Function::Pipe { store } => {
                return self.placed_by_runtime(*store, Unseen::Pipe, arguments, whole);
            }
            Function::Launched { store } => {
                if let Some(place) = arguments.first() {
                    self.launched(place, if *store { Op::Store } else { Op::Load });
                }
                return Value::data(Variation::ANY);
            }
            Function::Runtime => {
                let mut needs = Vec::new();
                for argument in arguments {
                    needs.append(&mut self.eval(argument).loads);
                }
                return Value {
                    loads: needs,
                    ..Value::int(self.unknown(true, Variation::ANY))
                };
            }
            Function::Texture { store } => {
                return self.placed_by_runtime(*store, Unseen::Image, arguments, whole);
            }
            _ => {}
        }
        let mut values: Vec<Value> = arguments
            .iter()
            .map(|argument| self.eval(argument))
            .collect();
        let variation = values
            .iter()
            .fold(Variation::NONE, |all, value| all | self.variation(value));
        let known = match function {
            Function::Math(MathClass::Float(_) | MathClass::Special, name) => {
                self.known_result(name, &values, &whole.ty)
            }
            _ => None,
        };
        if let (Function::Math(MathClass::Convert, name), [from]) = (function, arguments)
            && (name.contains("_as_") || name.starts_with("as_"))
        {
            let value = values.swap_remove(0);
            return self.same_bits(value, &from.ty, &whole.ty);
        }
        let exchanged = match function {
            Function::WarpExchange(_, name) => self.exchanged(name, &values),
            _ => None,
        };
        let mut operands: Vec<&mut Value> = values.iter_mut().collect();
        match function {
            Function::Min | Function::Max if operands.len() == 2 => {
                let (x, y) = (self.as_int(&values[0]), self.as_int(&values[1]));
                let (x, y) = (
                    self.convert(&arguments[0].ty, &whole.ty, x),
                    self.convert(&arguments[1].ty, &whole.ty, y),
                );
                let op = if *function == Function::Min {
                    BinaryOp::Min
                } else {
                    BinaryOp::Max
                };
                let result = self.arena.binary(op, x, y);
                let mut operands: Vec<&mut Value> = values.iter_mut().collect();
                self.integer(Some(result), line, &mut operands);
                Value::int(result)
            }
            Function::Abs if operands.len() == 1 => {
                let x = self.as_int(&values[0]);
                let negated = self.arena.neg(x);
                let result = self.arena.binary(BinaryOp::Max, x, negated);
                self.integer(Some(result), line, &mut [&mut values[0]]);
                Value::int(result)
            }
            Function::Mul24 if operands.len() == 2 => {
                let (x, y) = (self.as_int(&values[0]), self.as_int(&values[1]));
                let result = self.product24(&whole.ty, x, y);
                let mut operands: Vec<&mut Value> = values.iter_mut().collect();
                self.integer_by(Arithmetic::Product, Some(result), line, &mut operands);
                Value::int(result)
            }
            Function::SameBits => match (arguments, values.pop()) {
                ([from], Some(value)) => self.same_bits(value, &from.ty, &whole.ty),
                _ if whole.ty.is_int() => Value::int(self.unknown(true, variation)),
                _ => Value::data(variation),
            },
            Function::Bits(bits) => {
                let ids: Vec<Id> = values.iter().map(|value| self.as_int(value)).collect();
                let operand = arguments
                    .first()
                    .map_or(Type::INT, |first| first.ty.clone());
                let result = self.bits(*bits, &operand, &whole.ty, &ids);
                let mut operands: Vec<&mut Value> = values.iter_mut().collect();
                self.integer(result, line, &mut operands);
                let id = match result {
                    Some(id) => id,
                    None => self.unknown_of(&ids, variation),
                };
                Value::int(id)
            }
            Function::Math(MathClass::Float(operations), _) => {
                let instructions = f64::from(operations.div_ceil(2));
                self.floating(
                    Arithmetic::Sum,
                    &whole.ty,
                    f64::from(*operations),
                    instructions,
                    line,
                    &mut operands,
                );
                if let Some(known) = known {
                    return known;
                }
                let loads = values.into_iter().flat_map(|value| value.loads).collect();
                Value {
                    kind: Kind::Data,
                    loads,
                    variation,
                    origin: None,
                    doubt: None,
                    parts: None,
                    real: None,
                }
            }
            Function::Math(MathClass::Special, _) => {
                let issued = issued::function(whole.ty == Type::DOUBLE);
                self.operation(
                    Arithmetic::Special(number(&whole.ty)),
                    1.0,
                    &issued,
                    line,
                    &mut operands,
                );
                known.unwrap_or_else(|| Value::data(variation))
            }
            Function::Math(MathClass::Int(operations), name) => {
                let issued = issued::integer(f64::from(*operations));
                self.operation(
                    Arithmetic::Sum(Number::Integer),
                    f64::from(*operations),
                    &issued,
                    line,
                    &mut operands,
                );
                let ids: Vec<Id> = values.iter().map(|value| self.as_int(value)).collect();
                let known = match (&**name, ids.as_slice()) {
                    ("__byte_perm", &[low, high, selector]) => {
                        self.bytes_chosen(low, high, selector)
                    }
                    _ => None,
                };
                Value::int(known.unwrap_or_else(|| self.unknown_of(&ids, variation)))
            }
            Function::Math(MathClass::Tensor, name) => {
                self.described(name, arguments, &values, whole);
                let mut operands: Vec<&mut Value> = values.iter_mut().collect();
                self.operation(
                    Arithmetic::Matrix,
                    1.0,
                    &issued::matrix(),
                    line,
                    &mut operands,
                );
                Value::data(Variation::ANY)
            }
            Function::Math(MathClass::Convert, _) => {
                let issued = issued::conversion();
                self.operation(Arithmetic::Conversion, 1.0, &issued, line, &mut operands);
                if whole.ty.is_int() {
                    let id = self.unknown(true, variation);
                    Value::int(id)
                } else {
                    Value::data(variation)
                }
            }
            Function::WarpExchange(..) => {
                let issued = issued::integer(1.0);
                self.operation(
                    Arithmetic::Sum(Number::Integer),
                    1.0,
                    &issued,
                    line,
                    &mut operands,
                );
                let id = exchanged.unwrap_or_else(|| self.unknown(true, Variation::ANY));
                if whole.ty.is_int() {
                    Value::int(id)
                } else {
                    Value::data(Variation::ANY)
                }
            }
            Function::Ignored(_, name) => {
                let left = values.first().map(|left| self.as_int(left));
                self.wait_for_copies(name, left, line);
                self.wait_for_products(name, left);
                Value::data(Variation::NONE)
            }
            _ => Value::data(Variation::NONE),
        }
    }

    /// `__byte_perm` with a selector that is a number: each of its four lowest digits is the byte that it takes of both words (CUDA
    /// Math API, Integer Intrinsics).
    fn bytes_chosen(&mut self, low: Id, high: Id, selector: Id) -> Option<Id> {
        let selector = self.arena.as_const(selector)?;
        let mut sum = self.arena.constant(0);
        for place in 0..4 {
            let byte = (selector >> (4 * place)) & 7;
            let word = if byte < 4 { low } else { high };
            let word = self.arena.wrap(32, false, word);
            let shift = self.arena.constant(8 * (byte % 4));
            let byte = self.arena.binary(BinaryOp::Shr, word, shift);
            let byte = self.arena.wrap(8, false, byte);
            let byte = self.arena.scale(byte, 1 << (8 * place));
            sum = self.arena.add(sum, byte);
        }
        Some(sum)
    }

    /// What lanes get of an integer that one of them has, or all have: `__shfl_sync(mask, threadIdx.x / 32, 0)`. `None` where
    /// arithmetic does not say it.
    fn exchanged(&mut self, name: &str, values: &[Value]) -> Option<Id> {
        let plain = name.rsplit("::").next().unwrap_or(name);
        let all_lanes = |word: &str| {
            ["max", "min", "and", "or"]
                .iter()
                .any(|op| word.contains(op))
        };
        let (value, from) = match plain {
            _ if plain.starts_with("__shfl") && plain.ends_with("_sync") => (
                values.get(1)?,
                values.get(2).filter(|_| plain == "__shfl_sync"),
            ),
            _ if plain.starts_with("__shfl") => {
                (values.first()?, values.get(1).filter(|_| plain == "__shfl"))
            }
            "__builtin_amdgcn_readfirstlane" => (values.first()?, None),
            "__builtin_amdgcn_readlane" | "sub_group_broadcast" | "sub_group_shuffle" => {
                (values.first()?, values.get(1))
            }
            _ if plain.starts_with("__reduce_") && all_lanes(plain) => (values.get(1)?, None),
            _ => return None,
        };
        let value = self.as_int(value);
        if !self.arena.varies_in_warp(value) {
            return Some(value);
        }
        // The lane's own place in the block in place of the thread's, where a warp is a part of a row.
        let from = from.map(|from| self.as_int(from))?;
        let lane = self.arena.as_const(from)?;
        let warp = i64::from(self.request.profile.warp_size.max(1));
        let [width, height, depth] = self.request.launch.block;
        let in_rows = height * depth == 1 || width % warp.unsigned_abs() == 0;
        // Of a part of a warp the lane is counted within it.
        let whole = values.len() <= if plain.ends_with("_sync") { 3 } else { 2 };
        if !in_rows || !whole || !(0..warp).contains(&lane) || self.arena.opaque(value).is_some() {
            return None;
        }
        let thread = self.thread[0];
        let symbol = self.arena.as_symbol(thread)?;
        let size = self.arena.constant(warp);
        let own = self.arena.binary(BinaryOp::Div, thread, size);
        let own = self.arena.mul(own, size);
        let at = self.arena.add(own, from);
        Some(self.arena.substitute(value, symbol, at))
    }

    /// Copies past the registers are grouped, or waited for but for the last groups.
    fn wait_for_copies(&mut self, name: &str, left: Option<Id>, line: u32) {
        if self.dry > 0 || self.counting_only {
            return;
        }
        let left = match name {
            "cp.async.commit_group" | "__pipeline_commit" => return self.copies.commit(),
            "cp.async.wait_group" | "__pipeline_wait_prior" | "wait_prior" => {
                left.and_then(|id| self.arena.as_const(id)).unwrap_or(0)
            }
            "cp.async.wait_all" => 0,
            _ => return,
        };
        let waited = self.copies.wait(usize::try_from(left).unwrap_or(0));
        compute(&mut self.flow, line, &Mix::default(), &waited, 0.0);
    }

    /// `ldmatrix`, `stmatrix`: each lane gives the address of a row.
    fn rows(&mut self, store: bool, matrices: u8, arguments: &[Expr], whole: &Expr) -> Value {
        let mut loads = Vec::new();
        for argument in arguments.iter().skip(1) {
            loads.append(&mut self.eval(argument).loads);
        }
        self.settle();
        let Some(pointer) = arguments.first() else {
            return Value::data(Variation::ANY);
        };
        if let Place::Memory(array, offset) = self.pointed_at(pointer) {
            let op = if store { Op::Store } else { Op::Load };
            let bytes = 4 * u32::from(matrices);
            let draft = self.record(array, offset, bytes, 16, op, whole, &loads);
            self.shape_of(draft, Form::Rows(matrices));
            if !store {
                return Value {
                    loads: vec![draft],
                    ..Value::data(Variation::ANY)
                };
            }
        }
        Value::data(Variation::ANY)
    }

    /// An instruction with its address as the source writes it: `ldmatrix [addr]`.
    fn written(&self, mnemonic: &str, op: Op, arguments: &[Expr]) -> String {
        let address = match arguments {
            [
                Expr {
                    kind: ExprKind::Assign(None, to, from),
                    ..
                },
                ..,
            ] => Some(if op == Op::Load { &**from } else { &**to }),
            // To where, from where.
            [_, from, ..] if op == Op::Load && mnemonic.contains(".bulk") => Some(from),
            arguments => arguments.first(),
        };
        let word = mnemonic.split(".sync").next().unwrap_or(mnemonic);
        let word = match word.split('.').next() {
            Some("cp") => word.split_once(".shared").map_or(word, |(word, _)| word),
            _ => mnemonic.split('.').next().unwrap_or(mnemonic),
        };
        match address {
            Some(address) => format!("{word} [{}]", self.quote(innermost(address).site)),
            None => word.to_owned(),
        }
    }

    /// What the access that was recorded last moves.
    pub(crate) fn shape_of(&mut self, draft: usize, form: Form) {
        if self.dry > 0 || self.counting_only {
            return;
        }
        if let Some(draft) = self.accesses.get_mut(draft) {
            draft.form = form;
        }
    }

    /// A copy that waits for nothing: a load and a store, under the condition that it reads anything.
    fn copy_past_registers(&mut self, arguments: &[Expr], whole: &Expr) {
        let Some(Expr {
            kind: ExprKind::Assign(None, to, from),
            ..
        }) = arguments.first()
        else {
            for argument in arguments {
                self.eval(argument);
            }
            return;
        };
        let first = self.accesses.len();
        let reads = arguments.get(1).map(|size| {
            let size = self.eval(size);
            let id = self.as_int(&size);
            self.arena.truth(id)
        });
        let outer = self.context;
        if let Some(reads) = reads {
            self.enter(reads, true, usize::MAX, false);
        }
        self.eval(from);
        // Of all that is loaded on the way, a subscript's value among it, the last is what is copied.
        let loaded = self.accesses.get(first..).unwrap_or_default();
        let copied = loaded.iter().rfind(|draft| draft.op == Op::Load);
        let copied = copied.map(|draft| draft.site);
        self.context = outer;
        self.settle();
        let place = self.place(to);
        self.write(&place, to, Value::data(Variation::ANY));
        let origin = self.origin(whole);
        let added = self.accesses.iter_mut().enumerate().skip(first);
        for (number, draft) in added {
            let of_copy = draft.op != Op::Load || Some(draft.site) == copied;
            if of_copy && matches!(draft.space, Space::Global | Space::Shared) {
                draft.site = whole.site;
                draft.origin = origin;
                draft.ahead = Some(0);
                if draft.op == Op::Load {
                    self.copies.issue(number);
                }
            }
        }
    }

    /// A copy that one thread starts: a load and a store, whole in one request each.
    fn bulk_copy(&mut self, multicast: bool, arguments: &[Expr], whole: &Expr) {
        let (arguments, blocks) = self.receivers(multicast, arguments);
        let [to, from, rest @ ..] = arguments else {
            return;
        };
        let bytes = rest.first().and_then(|size| {
            let size = self.eval(size);
            let id = self.as_int(&size);
            // A size that is only assumed tells nothing of the request.
            let known = !crate::context::assumed(&self.arena, id);
            self.arena.value(id).filter(|_| known)
        });
        let bytes = bytes
            .and_then(|bytes| u32::try_from(bytes).ok())
            .unwrap_or(0);
        for (pointer, op) in [(from, Op::Load), (to, Op::Store)] {
            self.settle();
            let Place::Memory(array, mut offset) = self.pointed_at(pointer) else {
                continue;
            };
            let moved = moved_to(op, bytes, blocks);
            if moved == 0 {
                offset = self.unknown(false, Variation::ANY);
            }
            let draft = self.record(array, offset, moved.max(1), 1, op, whole, &[]);
            self.shape_of(draft, Form::Bulk(moved));
        }
    }

    /// The arguments of a copy without that which says the blocks that get it, and how many these are; 0 where that is not known.
    pub(crate) fn receivers<'e>(
        &mut self,
        multicast: bool,
        arguments: &'e [Expr],
    ) -> (&'e [Expr], u32) {
        let Some((blocks, rest)) = arguments.split_last().filter(|_| multicast) else {
            return (arguments, 1);
        };
        let blocks = self.eval(blocks);
        let blocks = self.as_int(&blocks);
        let known = self.arena.as_const(blocks);
        // A bit for each of sixteen blocks.
        (rest, known.map_or(0, |bits| (bits as u16).count_ones()))
    }

    /// Accesses through an expression that was made up for a call are the call's.
    fn stands_for(&mut self, first: usize, made_up: &Expr, call: &Expr) {
        let (from, to) = (self.origin(made_up), self.origin(call));
        for draft in self.accesses.iter_mut().skip(first) {
            if draft.origin == from {
                draft.origin = to;
            }
        }
    }

    /// An access to a pipe, or to a texture, a surface or an image: the runtime decides where.
    fn placed_by_runtime(
        &mut self,
        store: bool,
        unseen: Unseen,
        arguments: &[Expr],
        whole: &Expr,
    ) -> Value {
        let mut needs = Vec::new();
        for argument in arguments {
            needs.append(&mut self.eval(argument).loads);
        }
        let (name, space, least) = match unseen {
            Unseen::Pipe => ("pipe", Space::Global, 1),
            _ => ("", Space::Texture, 4),
        };
        let array = self.array(name, space);
        let address = self.unknown(true, Variation::ANY);
        let bytes = (whole.ty.size() as u32).max(least);
        let op = if store { Op::Store } else { Op::Load };
        let load = self.record(array, address, bytes, bytes, op, whole, &needs);
        let recorded = self.dry == 0 && !self.counting_only;
        if let Some(draft) = self.accesses.get_mut(load).filter(|_| recorded) {
            draft.unseen = Some(unseen);
        }
        Value {
            loads: if store { Vec::new() } else { vec![load] },
            ..Value::data(Variation::ANY)
        }
    }

    /// An access to the array that a pointer points into, at an address that is not known.
    fn somewhere_in(
        &mut self,
        pointer: &Expr,
        op: Op,
        whole: &Expr,
        needs: &[usize],
    ) -> Vec<usize> {
        let value = self.eval(pointer);
        let array = match value.kind {
            Kind::Pointer(array, _) => array,
            _ => match self.somewhere(&pointer.ty) {
                Place::Memory(array, _) => array,
                _ => return Vec::new(),
            },
        };
        let bytes = pointer
            .ty
            .element()
            .map_or(4, |element| (element.size() as u32).clamp(1, 16));
        let address = self.unknown(true, Variation::ANY);
        let load = self.record(array, address, bytes, bytes, op, whole, needs);
        if op == Op::Load {
            vec![load]
        } else {
            Vec::new()
        }
    }

    /// An access that another launch makes: listed, and counted nowhere.
    fn launched(&mut self, place: &Expr, op: Op) {
        if self.dry > 0 || self.counting_only {
            return;
        }
        let mut root = place;
        let array = loop {
            root = match &root.kind {
                ExprKind::Index(base, _)
                | ExprKind::Deref(base)
                | ExprKind::Field(base, _)
                | ExprKind::Cast(_, base)
                | ExprKind::AddressOf(base)
                | ExprKind::Binary(_, base, _) => base,
                ExprKind::Var(id) => break Some(self.array_of(*id)),
                _ => break None,
            };
        };
        let (name, space) = match (array, &root.ty) {
            (Some(array), _) => {
                let array = &self.arrays[array.0 as usize];
                (array.name.clone(), array.space)
            }
            (None, Type::Pointer(_, AddressSpace::Shared)) => (String::new(), Space::Shared),
            (None, _) => (String::new(), Space::Global),
        };
        let bytes = (place.ty.size() as u32).max(1);
        let address = self.unknown(true, Variation::ANY);
        self.accesses.push(AccessDraft {
            remote: false,
            site: place.site,
            text: self.quote(place.site),
            array: name,
            space,
            shared: None,
            op,
            bytes,
            is_aligned: false,
            form: Form::Lanes,
            of_tensor: false,
            instruction: None,
            ahead: None,
            combines: false,
            element: bytes,
            address,
            context: self.context,
            field: Self::struct_field(place),
            // The other launch runs at its own time: with what it shares memory is not known.
            alias: Alias::Unknown,
            extent: None,
            doubt: None,
            origin: None,
            piece: 0,
            unseen: Some(Unseen::Launch),
        });
    }

    pub(crate) fn array(&mut self, name: &str, space: Space) -> ArrayId {
        self.arrays.push(Array {
            name: name.to_owned(),
            space,
            shared: None,
            alias: Alias::Unknown,
            extent: None,
            remote: false,
        });
        ArrayId(self.arrays.len() as u32 - 1)
    }

    /// The same array of another block of the cluster.
    fn remote(&mut self, array: ArrayId) -> ArrayId {
        let own = self.arrays[array.0 as usize].clone();
        if own.space != Space::Shared {
            return array;
        }
        let known = self
            .arrays
            .iter()
            .position(|other| other.remote && other.shared == own.shared && other.name == own.name);
        let at = known.unwrap_or_else(|| {
            self.arrays.push(Array {
                remote: true,
                ..own
            });
            self.arrays.len() - 1
        });
        ArrayId(at as u32)
    }

    // ---- memory --------------------------------------------------------------------------------

    /// The array that a variable is, or that a pointer parameter points into.
    pub(crate) fn array_of(&mut self, id: VarId) -> ArrayId {
        if let Some(&array) = self.arrays_by_var.get(&id) {
            self.mirror(id, array);
            return array;
        }
        let var = self.kernel.var(id);
        let space = space_of(var);
        let shared = self.shared_index(id);
        let alias = match (var.storage, &var.ty) {
            _ if space == Space::Constant => Alias::ReadOnly,
            (Storage::Param(_), Type::Pointer(..)) if var.restrict => Alias::Restrict,
            (Storage::Param(_), Type::Pointer(..)) => Alias::Parameter,
            _ => Alias::Own,
        };
        let extent = match (var.storage, &var.ty) {
            (Storage::Global, Type::Array(..)) => Some(var.ty.size()),
            (Storage::Param(_), Type::Pointer(..)) => {
                let mut given = self.request.extents.iter();
                given
                    .find(|(name, _)| *name == var.name)
                    .map(|(_, bytes)| *bytes)
            }
            _ => None,
        };
        self.arrays.push(Array {
            name: var.name.clone(),
            space,
            shared,
            alias,
            extent: extent.filter(|bytes| *bytes > 0),
            remote: false,
        });
        let array = ArrayId(self.arrays.len() as u32 - 1);
        self.arrays_by_var.insert(id, array);
        self.mirror(id, array);
        array
    }

    /// The place that an expression names; subscripts are evaluated.
    pub(crate) fn place(&mut self, expression: &Expr) -> Place {
        match &expression.kind {
            ExprKind::Var(id) => {
                let var = self.kernel.var(*id);
                if is_memory(var) {
                    let array = self.array_of(*id);
                    Place::Memory(array, self.arena.constant(0))
                } else {
                    Place::Variable(*id)
                }
            }
            ExprKind::Index(base, index) => {
                let size = expression.ty.size().max(1) as i64;
                if let Type::Vector(..) = base.ty {
                    // A lane of a vector.
                    let mut lane = self.eval(index);
                    let id = self.as_int(&lane);
                    let within = |at: u64, lane: Option<i64>| {
                        let lane = lane.and_then(|lane| u64::try_from(lane * size).ok());
                        lane.map_or(SOMEWHERE, |lane| at.saturating_add(lane))
                    };
                    let number = self.arena.as_const(id);
                    return match self.place(base) {
                        Place::Variable(id) => Place::Part(id, within(0, number)),
                        Place::Part(id, at) => Place::Part(id, within(at, number)),
                        Place::Memory(array, offset) => {
                            self.pending.append(&mut lane.loads);
                            let bytes = self.arena.scale(id, size);
                            Place::Memory(array, self.arena.add(offset, bytes))
                        }
                        Place::Lost => Place::Lost,
                    };
                }
                let from = match &base.ty {
                    Type::Array(..) => self.place(base),
                    _ => match self.eval(base).kind {
                        Kind::Pointer(array, offset) => Place::Memory(array, offset),
                        _ => Place::Lost,
                    },
                };
                let mut index_value = self.eval(index);
                let id = self.as_int(&index_value);
                self.pending.append(&mut index_value.loads);
                match from {
                    Place::Memory(array, _) if expression.ty.is_unread() => {
                        Place::Memory(array, self.at_unread(expression.site))
                    }
                    Place::Memory(array, offset) => {
                        let bytes = self.arena.scale(id, size);
                        Place::Memory(array, self.arena.add(offset, bytes))
                    }
                    // An array inside a structure that is a thread's own, or an argument.
                    Place::Variable(of) | Place::Part(of, _) => {
                        let at = match from {
                            Place::Part(_, at) => at as i64,
                            _ => 0,
                        };
                        let array = self.array_of(of);
                        let bytes = self.arena.scale(id, size);
                        let start = self.arena.constant(at);
                        Place::Memory(array, self.arena.add(start, bytes))
                    }
                    Place::Lost => self.somewhere(&base.ty),
                }
            }
            ExprKind::Deref(pointer) => self.pointed_at(pointer),
            ExprKind::Field(base, offset) => match self.place(base) {
                Place::Memory(array, at) => {
                    let bytes = self.arena.constant(*offset as i64);
                    Place::Memory(array, self.arena.add(at, bytes))
                }
                Place::Variable(id) => Place::Part(id, *offset),
                Place::Part(id, at) => Place::Part(id, at.saturating_add(*offset)),
                Place::Lost => Place::Lost,
            },
            ExprKind::Cast(_, inner) => self.place(inner),
            ExprKind::List(parts) if parts.len() == 1 => self.place(&parts[0]),
            _ => {
                self.eval(expression);
                Place::Lost
            }
        }
    }

    /// Where an element is whose size is not known.
    fn at_unread(&mut self, site: Site) -> Id {
        self.lose(site, Reason::UnreadType);
        self.unknown(true, Variation::ANY)
    }

    pub(crate) fn pointed_at(&mut self, pointer: &Expr) -> Place {
        let value = self.eval(pointer);
        self.pending.extend(value.loads);
        match value.kind {
            Kind::Pointer(array, offset) => Place::Memory(array, offset),
            _ => self.somewhere(&pointer.ty),
        }
    }

    /// A pointer that was itself read from memory: global memory, at an unknown address.
    fn somewhere(&mut self, pointer: &Type) -> Place {
        let space = match pointer {
            Type::Pointer(_, AddressSpace::Shared) => Space::Shared,
            Type::Pointer(_, AddressSpace::Constant) => Space::Constant,
            _ => Space::Global,
        };
        let array = self.array("", space);
        let offset = self.unknown(true, Variation::ANY);
        Place::Memory(array, offset)
    }

    /// The value at a place; a read from memory is an access.
    pub(crate) fn read(&mut self, place: &Place, expression: &Expr) -> Value {
        match place {
            Place::Variable(id) => {
                let value = self.variable(*id);
                if !crate::elements::is_aggregate(&expression.ty) {
                    return value;
                }
                let parts = self.pieces_of(*id, 0, &expression.ty);
                Value { parts, ..value }
            }
            // An array in a structure as a value is its address.
            Place::Part(id, at) if matches!(expression.ty, Type::Array(..)) => {
                let array = self.array_of(*id);
                let offset = self.arena.constant(*at as i64);
                Value::pointer(array, offset)
            }
            Place::Part(id, at) => {
                let whole = self.variable(*id);
                let variation = self.variation(&whole);
                let parts = self.pieces_of(*id, *at, &expression.ty);
                let at = if *at == SOMEWHERE { &0 } else { at };
                let origin = self.dependence.part(whole.origin, *at);
                let known = parts.as_ref();
                let known = known.and_then(|parts| self.scalar_of(parts, &expression.ty));
                if let Some(known) = known {
                    return Value {
                        loads: whole.loads,
                        origin,
                        ..known
                    };
                }
                if expression.ty.is_int() {
                    let unknown = self.loaded(&expression.ty, variation);
                    Value {
                        kind: Kind::Int(unknown),
                        loads: whole.loads,
                        variation,
                        origin,
                        doubt: None,
                        parts: None,
                        real: None,
                    }
                } else {
                    // What the launch gave, unless the kernel wrote to its copy.
                    let number = self.given_real(*id, *at);
                    let number = number.filter(|_| variation == Variation::NONE);
                    Value {
                        kind: Kind::Data,
                        loads: whole.loads,
                        variation,
                        origin,
                        doubt: None,
                        parts: None,
                        real: number.and_then(|of| Value::real(of, &expression.ty).real),
                    }
                }
            }
            Place::Memory(array, offset) => {
                // An array as a value is its address.
                if matches!(expression.ty, Type::Array(..)) {
                    return Value::pointer(*array, *offset);
                }
                if let Some(member) = self.member_at(*array, *offset, &expression.ty) {
                    return self.variable(member);
                }
                let loads = if self.is_own_scalar(*array, *offset, expression) {
                    Vec::new()
                } else {
                    self.access(*array, *offset, Op::Load, expression, &[])
                };
                if let Some(known) = self.element(*array, *offset, &expression.ty) {
                    return Value { loads, ..known };
                }
                if let Some(known) = self.some_element(*array, &expression.ty) {
                    return Value { loads, ..known };
                }
                // What blocks and iterations write to shared memory is theirs.
                let variation = match self.arrays[array.0 as usize].space {
                    Space::Local => Variation::ANY,
                    Space::Shared => Variation::unknown(self.variation_of(*offset).uniform),
                    _ => Variation {
                        along: None,
                        ..self.variation_of(*offset)
                    },
                };
                match &expression.ty {
                    Type::Int { .. } => {
                        let id = self.loaded(&expression.ty, variation);
                        Value {
                            kind: Kind::Int(id),
                            loads,
                            variation,
                            origin: None,
                            doubt: None,
                            parts: None,
                            real: None,
                        }
                    }
                    _ => Value {
                        kind: Kind::Data,
                        loads,
                        variation,
                        origin: None,
                        doubt: None,
                        parts: self.pieces_at(*array, *offset, &expression.ty),
                        real: None,
                    },
                }
            }
            Place::Lost => {
                let id = self.unknown(false, Variation::ANY);
                if expression.ty.is_float() {
                    Value::data(Variation::ANY)
                } else {
                    Value::int(id)
                }
            }
        }
    }

    pub(crate) fn write(&mut self, place: &Place, target: &Expr, value: Value) {
        match place {
            Place::Variable(id) => {
                self.keep_part(*id, 0, &target.ty, &value);
                self.env.set(*id, Some(value));
            }
            Place::Part(id, at) => {
                let parts = self.with_part(*id, *at, &target.ty, &value);
                let at = if *at == SOMEWHERE { &0 } else { at };
                let whole = self.variable(*id);
                let variation = self.variation(&value) | self.variation(&whole);
                let mut loads = value.loads;
                let mut origin = None;
                if let Some(old) = self.env.get(*id) {
                    loads.extend(&old.loads);
                    origin = old.origin;
                }
                let origin = self.dependence.with_part(origin, *at, value.origin);
                loads.sort_unstable();
                loads.dedup();
                let value = Value {
                    kind: Kind::Data,
                    loads,
                    variation,
                    origin,
                    doubt: None,
                    parts,
                    real: None,
                };
                self.env.set(*id, Some(value));
            }
            Place::Memory(array, offset) => {
                if let Some(member) = self.member_at(*array, *offset, &target.ty) {
                    self.env.set(member, Some(value));
                    return;
                }
                self.keep_element(*array, *offset, &target.ty, &value);
                if self.is_own_scalar(*array, *offset, target) {
                    self.pending.extend(value.loads);
                } else {
                    self.access(*array, *offset, Op::Store, target, &value.loads);
                }
            }
            Place::Lost => {}
        }
    }

    /// The variable's value as far as execution has come.
    pub(crate) fn variable(&mut self, id: VarId) -> Value {
        if let Some(value) = self.env.get(id)
            && !self.kernel.var(id).escapes
        {
            return value.clone();
        }
        let var = self.kernel.var(id);
        if var.escapes {
            if let Some(known) = self.mirrored_scalar(id) {
                return known;
            }
            let var = self.kernel.var(id);
            let value = match var.ty {
                Type::Int { .. } => Value::int(self.unknown(true, Variation::ANY)),
                _ => Value::data(Variation::ANY),
            };
            return value;
        }
        let value = match (&var.ty, var.storage) {
            (Type::Pointer(..), Storage::Param(_) | Storage::DynamicShared) => {
                let array = self.array_of(id);
                let zero = self.arena.constant(0);
                Value::pointer(array, zero)
            }
            (Type::Int { .. }, Storage::Param(_)) if self.open.is_some() => {
                let open = self.open_parameter(id);
                Value::int(open.unwrap_or_else(|| self.unknown(false, Variation::NONE)))
            }
            (Type::Int { bits, signed }, Storage::Param(_)) => {
                // One symbol, also where a side of a branch or a first look at a loop read it before.
                if let Some(&known) = self.parameters.get(&id) {
                    return Value::int(known);
                }
                let given = self.arguments.iter().find(|(name, ..)| *name == var.name);
                let (value, assumed) =
                    given.map_or((crate::value::DEFAULT_ARGUMENT, true), |(_, v, a)| (*v, *a));
                let value = of_type(value, *bits, *signed);
                let kind = SymbolKind::Fixed { value, assumed };
                let range = if assumed {
                    Interval::of_type(*bits, *signed)
                } else {
                    Interval::ANY
                };
                let symbol = self.arena.symbol(&var.name, kind, range);
                self.parameters.insert(id, symbol);
                Value::int(symbol)
            }
            (Type::Float { .. }, Storage::Param(_)) => match self.given_real(id, 0) {
                Some(number) => Value::real(number, &var.ty),
                None => Value::data(Variation::NONE),
            },
            (_, Storage::Param(_)) => Value::data(Variation::NONE),
            // Not yet written: undefined.
            (Type::Int { .. }, _) => {
                let unknown = self.unknown(false, Variation::ANY);
                Value::int(unknown)
            }
            _ => Value::data(Variation::ANY),
        };
        self.env.set(id, Some(value.clone()));
        value
    }

    /// Records an access of a whole value: structures and wide vectors in pieces of at most 16 bytes.
    fn access(
        &mut self,
        array: ArrayId,
        offset: Id,
        op: Op,
        expression: &Expr,
        needs: &[usize],
    ) -> Vec<usize> {
        let (size, align) = (expression.ty.size(), expression.ty.align());
        let mut loads = Vec::new();
        let mut done = 0u64;
        let element = expression.ty.size() as u32;
        if size == 0 || expression.ty.is_unread() {
            self.lose(expression.site, Reason::UnreadType);
            return loads;
        }
        while done < size && loads.len() < 64 {
            let mut piece = 16u64.min(align.max(1));
            while piece > size - done || !done.is_multiple_of(piece) {
                piece /= 2;
            }
            let bytes = self.arena.constant(done as i64);
            let address = self.arena.add(offset, bytes);
            let draft = self.record(array, address, piece as u32, element, op, expression, needs);
            if self.dry == 0
                && let Some(draft) = self.accesses.get_mut(draft)
            {
                draft.piece = done as u32;
            }
            loads.push(draft);
            done += piece;
        }
        if op == Op::Load { loads } else { Vec::new() }
    }

    /// Records one memory instruction; its draft's index.
    #[allow(clippy::too_many_arguments, reason = "all of it is the access")]
    pub(crate) fn record(
        &mut self,
        array: ArrayId,
        address: Id,
        bytes: u32,
        element: u32,
        op: Op,
        expression: &Expr,
        needs: &[usize],
    ) -> usize {
        let Array {
            name,
            space,
            shared,
            alias,
            extent,
            remote,
        } = self.arrays[array.0 as usize].clone();
        let class = match (space, op) {
            (_, Op::Atomic) => OpClass::Atomic,
            (Space::Global | Space::Texture, Op::Load) => OpClass::GlobalLoad,
            (Space::Global | Space::Texture, _) => OpClass::GlobalStore,
            (Space::Shared, Op::Load) => OpClass::SharedLoad,
            (Space::Shared, _) => OpClass::SharedStore,
            (Space::Constant, _) => OpClass::ConstantLoad,
            (Space::Local, Op::Load) => OpClass::LocalLoad,
            (Space::Local, _) => OpClass::LocalStore,
        };
        self.static_operations += 1;
        let mut waits = std::mem::take(&mut self.pending);
        if self.dry > 0 || self.counting_only {
            return 0;
        }
        waits.extend(needs);
        waits.sort_unstable();
        waits.dedup();
        let field = Self::struct_field(expression);
        *self.counts.entry((self.context, class)).or_insert(0.0) += 1.0;
        // An index that a thread knows at compile time keeps a local array in registers.
        let registers = space == Space::Local && self.arena.as_const(address).is_some();
        if !registers {
            self.routines.touches_memory();
        }
        let site = expression.site;
        self.accesses.push(AccessDraft {
            site,
            text: self.quote(site),
            array: name,
            space,
            shared,
            remote,
            op,
            bytes,
            is_aligned: !is_by_bytes(expression),
            form: Form::Lanes,
            of_tensor: false,
            instruction: None,
            ahead: None,
            combines: false,
            element,
            address,
            context: self.context,
            field,
            alias,
            extent,
            unseen: None,
            origin: self.origin(expression),
            piece: 0,
            doubt: self.doubted.take(),
        });
        let draft = self.accesses.len() - 1;
        if space == Space::Local && !registers {
            self.indexed_local.insert(array);
        }
        if !registers {
            // One instruction forms the 64-bit address of each new base.
            if space != Space::Shared && self.is_fresh_address(array, address) {
                let issued = issued::integer(1.0);
                compute(&mut self.flow, site.line, &issued, &[], 1.0);
                self.dependence.address();
            }
            self.flow.push(Draft::Access {
                access: draft,
                uses: waits,
            });
        }
        self.dependence
            .access(array, address, op, space, draft, !registers);
        draft
    }

    /// True for `p->n` where `p` points to a structure in the thread's registers: no access, as in `s.n`.
    fn is_own_scalar(&self, array: ArrayId, offset: Id, expression: &Expr) -> bool {
        let mut at = expression;
        while let ExprKind::Field(base, _) = &at.kind {
            at = base;
        }
        matches!(expression.kind, ExprKind::Field(..))
            && matches!(at.kind, ExprKind::Deref(_))
            && self.arrays[array.0 as usize].space == Space::Local
            && self.arena.as_const(offset).is_some()
    }

    fn is_fresh_address(&mut self, array: ArrayId, address: Id) -> bool {
        let (constant, _) = self.arena.terms(address);
        let offset = self.arena.constant(constant);
        let base = self.arena.sub(address, offset);
        let innermost = self.contexts[self.context].innermost;
        if let Some(counter) = innermost
            && !self.arena.depends_on(base, counter)
            && self.arena.opaque(base).is_none()
        {
            return false;
        }
        self.addressed.insert((innermost, array, base))
    }

    fn struct_field(expression: &Expr) -> Option<StructField> {
        let mut at = expression;
        let mut path = Vec::new();
        while let ExprKind::Field(base, offset) = &at.kind {
            if let Type::Struct(structure) = &base.ty {
                let name = structure
                    .fields
                    .iter()
                    .find(|field| field.offset == *offset)?;
                path.push(name.name.clone());
                if let ExprKind::Index(..) | ExprKind::Deref(_) = base.kind {
                    path.reverse();
                    return Some(StructField {
                        structure: structure.name.clone(),
                        field: path.join("."),
                        size: structure.size as u32,
                        touched: 0,
                    });
                }
            } else if !matches!(base.ty, Type::Vector(..)) {
                return None;
            }
            at = base;
        }
        None
    }

    /// The text at a site.
    pub(crate) fn quote(&self, site: Site) -> String {
        let lines = self.kernel.places.callees().len();
        let copied = (site.callee as usize)
            .checked_sub(lines + 1)
            .and_then(|at| self.copied_lines.get(at));
        let callee = copied.map_or(site.callee, |line| line.of);
        self.kernel.places.quote(Site { callee, ..site })
    }
}

/// What a variable of an integer type holds of a value.
fn of_type(value: i64, bits: u8, signed: bool) -> i64 {
    match (bits, signed) {
        (1, _) => i64::from(value != 0),
        (2..=63, true) => value << (64 - bits) >> (64 - bits),
        (2..=63, false) => value & ((1 << bits) - 1),
        _ => value,
    }
}

/// What an operator between two numbers is.
fn kind_of(op: IrOp) -> fn(Number) -> Arithmetic {
    match op {
        IrOp::Mul => Arithmetic::Product,
        IrOp::Div | IrOp::Rem => Arithmetic::Quotient,
        _ => Arithmetic::Sum,
    }
}

fn number(ty: &Type) -> Number {
    match ty {
        Type::Float { bits: 64, .. } => Number::Double,
        Type::Float { bits: 16, .. } => Number::Half,
        Type::Int { .. } => Number::Integer,
        _ => Number::Single,
    }
}

/// What an address is made of by conversions alone.
fn innermost(address: &Expr) -> &Expr {
    let mut at = address;
    while let ExprKind::Cast(_, inner)
    | ExprKind::Deref(inner)
    | ExprKind::AddressOf(inner)
    | ExprKind::Field(inner, _) = &at.kind
    {
        at = inner;
    }
    at
}

fn is_product(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Binary(IrOp::Mul, ..) => !expression.ty.is_int(),
        ExprKind::List(parts) if parts.len() == 1 => is_product(&parts[0]),
        _ => false,
    }
}

/// True where the lowering and not the program says of what type is accessed: copies of bytes, and vectors that lie as their
/// elements do (`memcpy`, OpenCL C 6.13.7 vload and vstore).
fn is_by_bytes(place: &Expr) -> bool {
    let mut at = place;
    loop {
        at = match &at.kind {
            ExprKind::Deref(of)
            | ExprKind::Index(of, _)
            | ExprKind::Field(of, _)
            | ExprKind::Binary(_, of, _) => of,
            ExprKind::Cast(written, of) => {
                return !written && matches!(of.ty, Type::Pointer(..));
            }
            _ => return false,
        };
    }
}
