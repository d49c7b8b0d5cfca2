//! Expressions: their numbers and the requests that they make.

use warplens_ir::{
    AddressSpace, BinaryOp, Bits, Builtin, Expr, ExprKind, Function, Type, UnaryOp, VarId,
};

use super::numbers::{LANES, Value, extreme, fitted};
use super::{Done, Machine};
use crate::access::{cost, lines, shape};
use crate::facts::{Op, Space};

/// Something that can be read and written.
enum Place {
    Variable(VarId),
    /// So many bytes into a variable that is followed as a whole only.
    Part(VarId, u64),
    /// Bytes into an array; which one is not always known.
    Memory(Option<VarId>, Space, Box<Value>),
    Lost,
}

impl Machine<'_> {
    pub(super) fn eval(&mut self, expression: &Expr, here: u64) -> Done<Value> {
        self.step()?;
        if here == 0 {
            return Some(Value::UNKNOWN);
        }
        Some(match &expression.kind {
            ExprKind::Int(value) => Value::all(fitted(*value, &expression.ty)),
            ExprKind::Float(_) => Value::UNKNOWN,
            ExprKind::Builtin(builtin) => self.builtin(*builtin),
            ExprKind::Field(base, _) if !is_place(base) => {
                self.eval(base, here)?;
                Value::UNKNOWN
            }
            ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..) => {
                let place = self.place(expression, here)?;
                self.read(&place, expression, self.part(expression), here)
            }
            ExprKind::Unary(op, inner) => {
                let value = self.eval(inner, here)?;
                match op {
                    UnaryOp::Not if inner.ty.is_int() => {
                        value.number().map(|value| i64::from(value == 0))
                    }
                    UnaryOp::Neg | UnaryOp::BitNot if expression.ty.is_int() => {
                        let negate = *op == UnaryOp::Neg;
                        value.number().map(|value| {
                            let result = if negate { value.wrapping_neg() } else { !value };
                            fitted(result, &expression.ty)
                        })
                    }
                    _ => Value::UNKNOWN,
                }
            }
            ExprKind::Binary(BinaryOp::LogicalAnd, a, b) => self.logical(a, b, true, here)?,
            ExprKind::Binary(BinaryOp::LogicalOr, a, b) => self.logical(a, b, false, here)?,
            ExprKind::Binary(op, left, right) => {
                let a = self.eval(left, here)?;
                let b = self.eval(right, here)?;
                operation(*op, (left, &a), (right, &b), &expression.ty)
            }
            ExprKind::Assign(None, target, value) => {
                let found = self.eval(value, here)?;
                let found = self.fitting(&found, &value.ty, &target.ty);
                let place = self.place(target, here)?;
                self.write(&place, target, &found, self.part(&**target), here);
                found
            }
            ExprKind::Assign(Some(op), target, value) => {
                let place = self.place(target, here)?;
                let before = self.read(&place, target, self.part(&**target), here);
                let by = self.eval(value, here)?;
                let ty = match op {
                    BinaryOp::Shl | BinaryOp::Shr => target.ty.common(&Type::INT),
                    _ => target.ty.common(&value.ty),
                };
                let result = operation(*op, (target, &before), (value, &by), &ty);
                let result = self.fitting(&result, &ty, &target.ty);
                self.write(&place, target, &result, self.part(&**target), here);
                result
            }
            ExprKind::Step(by, postfix, target) => {
                let place = self.place(target, here)?;
                let before = self.read(&place, target, self.part(&**target), here);
                let after = match (&target.ty, before.array) {
                    (Type::Int { .. }, None) => {
                        before.map(|value| fitted(value.wrapping_add(*by), &target.ty))
                    }
                    (_, Some(_)) => {
                        let by = by * element_size(&target.ty);
                        before.map(|value| value.wrapping_add(by))
                    }
                    _ => Value::UNKNOWN,
                };
                self.write(&place, target, &after, self.part(&**target), here);
                if *postfix { before } else { after }
            }
            ExprKind::Select(condition, a, b) => {
                let value = self.eval(condition, here)?;
                self.went(condition, &value, here);
                let (yes, no) = self.sides(&value, here);
                let before = self.unsure;
                self.unsure = before | here & !value.known;
                let x = self.eval(a, yes)?;
                let y = self.eval(b, no)?;
                self.unsure = before;
                let mut result = self.fitting(&y, &b.ty, &expression.ty);
                let x = self.fitting(&x, &a.ty, &expression.ty);
                if no == 0 {
                    result = x;
                } else {
                    result.take(&x, yes);
                }
                result.known &= value.known;
                result
            }
            ExprKind::Cast(_, inner) => {
                let value = self.eval(inner, here)?;
                match expression.ty {
                    Type::Pointer(..) if value.array.is_some() => value,
                    Type::Int { .. } if inner.ty.is_int() => value.converted(&expression.ty),
                    _ => Value::UNKNOWN,
                }
            }
            ExprKind::AddressOf(inner) => match self.place(inner, here)? {
                Place::Memory(Some(array), _, bytes) => Value {
                    array: Some(array),
                    ..*bytes
                },
                Place::Variable(id) => Value {
                    array: Some(id),
                    ..Value::all(0)
                },
                Place::Part(id, at) => Value {
                    array: Some(id),
                    ..Value::all(at as i64)
                },
                Place::Memory(None, ..) | Place::Lost => Value::UNKNOWN,
            },
            ExprKind::Call(function, arguments) => {
                self.call(function, arguments, expression, here)?
            }
            ExprKind::List(parts) => {
                let mut last = Value::UNKNOWN;
                for part in parts {
                    last = self.eval(part, here)?;
                }
                match expression.ty {
                    Type::Int { .. } | Type::Pointer(..) => last,
                    Type::Vector(..) | Type::Struct(_) => Value::UNKNOWN,
                    _ if parts.len() == 1 => last,
                    _ => Value::UNKNOWN,
                }
            }
            ExprKind::Inline(statements, result) => self.function(statements, *result, here)?,
            ExprKind::Apply(routine, arguments) => {
                let kernel = self.kernel;
                let routine = kernel.routine(*routine);
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.eval(argument, here)?);
                }
                for ((param, argument), value) in routine.params.iter().zip(arguments).zip(values) {
                    let value = self.fitting(&value, &argument.ty, &kernel.var(*param).ty);
                    self.set(*param, &value, here);
                }
                let before = self.way;
                self.way = before.within(crate::value::address(expression));
                let value = self.function(&routine.body, routine.result, here)?;
                self.way = before;
                value
            }
            ExprKind::Opaque(_, parts) => {
                for part in parts {
                    self.eval(part, here)?;
                }
                Value::UNKNOWN
            }
        })
    }

    /// The value of what makes neither requests nor branches of the source.
    pub(super) fn silently(&mut self, expression: &Expr, here: u64) -> Done<Value> {
        let known = std::mem::take(&mut self.record);
        let value = self.eval(expression, here);
        self.record = known;
        value
    }

    fn builtin(&self, builtin: Builtin) -> Value {
        let launch = self.launch;
        match builtin {
            Builtin::ThreadIdx(axis) => self.thread[axis as usize],
            Builtin::BlockIdx(axis) => Value::all(self.block[axis as usize]),
            Builtin::GlobalIdx(axis) => {
                let first = self.block[axis as usize] * launch.block[axis as usize] as i64;
                self.thread[axis as usize].map(|thread| thread + first)
            }
            Builtin::BlockDim(axis) => Value::all(launch.block[axis as usize] as i64),
            Builtin::GridDim(axis) => Value::all(launch.grid[axis as usize] as i64),
            Builtin::WarpSize => Value::all(self.lanes as i64),
        }
    }

    /// The second operand is evaluated only where the first does not decide.
    fn logical(&mut self, a: &Expr, b: &Expr, and: bool, here: u64) -> Done<Value> {
        let first = self.eval(a, here)?;
        let (yes, no) = self.sides(&first, here);
        let before = self.unsure;
        self.unsure = before | here & !first.known;
        let second = self.eval(b, if and { yes } else { no })?;
        self.unsure = before;
        let (x, y) = (first.truth(), second.truth());
        let truth = if and { x & y } else { x | y };
        let decided = first.known & if and { !x } else { x };
        Some(Value {
            lanes: std::array::from_fn(|lane| (truth >> lane & 1) as i64),
            known: decided | first.known & second.known,
            array: None,
        })
    }

    /// What a variable of a type holds of a value.
    pub(super) fn fitting(&self, value: &Value, from: &Type, to: &Type) -> Value {
        match (from, to) {
            (Type::Int { .. }, Type::Int { .. }) => value.converted(to),
            (_, Type::Pointer(..) | Type::Unknown(_)) => *value,
            _ => Value::UNKNOWN,
        }
    }

    fn call(
        &mut self,
        function: &Function,
        arguments: &[Expr],
        whole: &Expr,
        here: u64,
    ) -> Done<Value> {
        match function {
            Function::Load => {
                let place = self.pointed_at(arguments.first()?, here)?;
                return Some(self.read(&place, whole, self.part(whole), here));
            }
            Function::Store => {
                if let [pointer, value] = arguments {
                    let ty = pointer.ty.element().cloned().unwrap_or(Type::INT);
                    let found = self.eval(value, here)?;
                    let found = self.fitting(&found, &value.ty, &ty);
                    let place = self.pointed_at(pointer, here)?;
                    self.store(&place, &ty, &found, self.part(whole), here);
                }
                return Some(Value::UNKNOWN);
            }
            Function::Atomic(_) | Function::Tile { .. } => {
                for argument in arguments.iter().skip(1) {
                    self.eval(argument, here)?;
                }
                let pointer = arguments.first()?;
                if let Place::Memory(array, space, bytes) = self.pointed_at(pointer, here)? {
                    let (op, size, bytes) = match function {
                        Function::Tile { store } => {
                            let size = pointer.ty.element().map_or(4, |ty| ty.size().clamp(1, 16));
                            let op = if *store { Op::Store } else { Op::Load };
                            (op, size as u32, Value::UNKNOWN)
                        }
                        _ => (Op::Atomic, whole.ty.size().max(4) as u32, *bytes),
                    };
                    self.request((self.part(whole), op, 0), space, size, &bytes, here);
                    self.spoil(array, here);
                }
                return Some(Value::UNKNOWN);
            }
            Function::Texture { store } => {
                for argument in arguments {
                    self.eval(argument, here)?;
                }
                let op = if *store { Op::Store } else { Op::Load };
                let size = (whole.ty.size() as u32).max(4);
                let key = (self.part(whole), op, 0);
                self.request(key, Space::Texture, size, &Value::UNKNOWN, here);
                return Some(Value::UNKNOWN);
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.eval(argument, here)?);
        }
        if !whole.ty.is_int() || arguments.iter().any(|argument| !argument.ty.is_int()) {
            return Some(Value::UNKNOWN);
        }
        let ty = &whole.ty;
        Some(match (function, values.as_slice()) {
            (Function::Min | Function::Max, [a, b]) => {
                let least = *function == Function::Min;
                let (a, b) = (a.converted(ty), b.converted(ty));
                a.zip(&b, |a, b| Some(extreme(ty, least, a, b)))
            }
            (Function::Abs, [a]) => a.map(|value| fitted(value.wrapping_abs(), ty)),
            (Function::Mul24, [a, b]) => product24(a, b, ty),
            (Function::Bits(bits), values) => named(*bits, &arguments[0].ty, ty, values),
            _ => Value::UNKNOWN,
        })
    }

    // ---- memory --------------------------------------------------------------------------------

    pub(super) fn is_memory(&self, id: VarId) -> bool {
        crate::evaluate::is_memory(self.kernel.var(id))
    }

    fn memory(&self, id: VarId, bytes: &Value) -> Place {
        Place::Memory(Some(id), self.space(id), Box::new(*bytes))
    }

    fn pointed_at(&mut self, pointer: &Expr, here: u64) -> Done<Place> {
        let value = self.eval(pointer, here)?;
        Some(match value.array {
            Some(id) => {
                let bytes = Value {
                    array: None,
                    ..value
                };
                self.memory(id, &bytes)
            }
            None => nowhere(space_behind(&pointer.ty)),
        })
    }

    fn place(&mut self, expression: &Expr, here: u64) -> Done<Place> {
        Some(match &expression.kind {
            ExprKind::Var(id) if self.is_memory(*id) => self.memory(*id, &Value::all(0)),
            ExprKind::Var(id) => Place::Variable(*id),
            ExprKind::Index(base, index) if matches!(base.ty, Type::Vector(..)) => {
                self.eval(index, here)?;
                match self.place(base, here)? {
                    Place::Variable(id) => Place::Part(id, 0),
                    Place::Memory(array, space, _) => {
                        Place::Memory(array, space, Box::new(Value::UNKNOWN))
                    }
                    place => place,
                }
            }
            ExprKind::Index(base, index) => {
                let from = match &base.ty {
                    Type::Array(..) => self.place(base, here)?,
                    _ => self.pointed_at(base, here)?,
                };
                let size = expression.ty.size().max(1) as i64;
                let by = self.eval(index, here)?.number();
                let by = by.map(|index| index.wrapping_mul(size));
                let sum = |from: &Value| from.zip(&by, |a, b| Some(a.wrapping_add(b)));
                match from {
                    Place::Memory(array, space, at) => {
                        Place::Memory(array, space, Box::new(sum(&at)))
                    }
                    Place::Variable(id) => self.memory(id, &by),
                    Place::Part(id, at) => self.memory(id, &sum(&Value::all(at as i64))),
                    Place::Lost => nowhere(space_behind(&base.ty)),
                }
            }
            ExprKind::Deref(pointer) => self.pointed_at(pointer, here)?,
            ExprKind::Field(base, offset) => match self.place(base, here)? {
                Place::Memory(array, space, at) => {
                    let bytes = at.map(|at| at.wrapping_add(*offset as i64));
                    Place::Memory(array, space, Box::new(bytes))
                }
                Place::Variable(id) => Place::Part(id, *offset),
                Place::Part(id, at) => Place::Part(id, at + offset),
                Place::Lost => Place::Lost,
            },
            ExprKind::Cast(_, inner) => self.place(inner, here)?,
            ExprKind::List(parts) if parts.len() == 1 => self.place(&parts[0], here)?,
            _ => {
                self.eval(expression, here)?;
                Place::Lost
            }
        })
    }

    fn read(&mut self, place: &Place, expression: &Expr, part: u64, here: u64) -> Value {
        match place {
            Place::Variable(id) if !self.kernel.var(*id).escapes => self.variables[id.0 as usize],
            Place::Memory(array, space, bytes) => {
                if matches!(expression.ty, Type::Array(..)) {
                    // An array as a value is its address.
                    return match array {
                        Some(_) => Value {
                            array: *array,
                            ..**bytes
                        },
                        None => Value::UNKNOWN,
                    };
                }
                self.pieces(part, Op::Load, *space, &expression.ty, bytes, here);
                match (array, expression.ty.is_int()) {
                    (Some(id), true) => self.held((*id, *space), &expression.ty, bytes, here),
                    _ => Value::UNKNOWN,
                }
            }
            Place::Variable(_) | Place::Part(..) | Place::Lost => Value::UNKNOWN,
        }
    }

    fn write(&mut self, place: &Place, target: &Expr, value: &Value, part: u64, here: u64) {
        match place {
            Place::Variable(id) => self.set(*id, value, here),
            Place::Memory(..) => self.store(place, &target.ty, value, part, here),
            Place::Part(..) | Place::Lost => {}
        }
    }

    fn store(&mut self, place: &Place, ty: &Type, value: &Value, part: u64, here: u64) {
        if let Place::Memory(array, space, bytes) = place {
            self.pieces(part, Op::Store, *space, ty, bytes, here);
            if let Some(id) = array {
                self.keep(*id, ty, bytes, value, here);
            }
        }
    }

    /// Structures and wide vectors are accessed in pieces of at most 16 bytes.
    fn pieces(&mut self, part: u64, op: Op, space: Space, ty: &Type, bytes: &Value, here: u64) {
        let (size, align) = (ty.size(), ty.align());
        let (mut done, mut count) = (0u64, 0);
        while done < size && count < 64 {
            let mut piece = 16u64.min(align.max(1));
            while piece > size - done || !done.is_multiple_of(piece) {
                piece /= 2;
            }
            let at = bytes.map(|at| at.wrapping_add(done as i64));
            self.request((part, op, done as u32), space, piece as u32, &at, here);
            done += piece;
            count += 1;
        }
    }

    /// The warp executes one memory instruction.
    fn request(
        &mut self,
        key: (u64, Op, u32),
        space: Space,
        bytes: u32,
        addresses: &Value,
        here: u64,
    ) {
        let requests = self.record.accesses.entry(key).or_default();
        requests.unsure |= here & (self.unsure | !addresses.known) != 0;
        if requests.unsure || here == 0 {
            return;
        }
        let addresses = &addresses.lanes[..self.lanes];
        let figures = cost(self.profile, space, key.1, bytes, addresses, here);
        let lines = lines(space, addresses, here);
        requests
            .sums
            .add(1.0, figures, lines, || shape(addresses, here));
    }

    // ---- what memory holds ---------------------------------------------------------------------

    fn is_own_array(&self, id: VarId) -> bool {
        self.space(id) == Space::Local && matches!(self.kernel.var(id).ty, Type::Array(..))
    }

    fn held(&mut self, (id, space): (VarId, Space), ty: &Type, bytes: &Value, here: u64) -> Value {
        let mut value = Value::UNKNOWN;
        let size = ty.size();
        if !self.is_own_array(id) {
            return match space {
                Space::Shared => self.shared.read(id, size, bytes, here),
                _ => self.given.read(id, ty, bytes, here),
            };
        }
        for lane in lanes_of(here & bytes.known) {
            if let Some(&(of, number)) = self.local.get(&(id, lane, bytes.lanes[lane]))
                && of == size
            {
                value.lanes[lane] = number;
                value.known |= 1 << lane;
            }
        }
        value
    }

    fn keep(&mut self, id: VarId, ty: &Type, bytes: &Value, value: &Value, here: u64) {
        let size = ty.size();
        if !self.is_own_array(id) {
            self.given.write(id);
            let sure = if ty.is_int() { here & !self.unsure } else { 0 };
            self.shared.write(id, size, bytes, value, (here, sure));
            return;
        }
        self.spoil(Some(id), here & !bytes.known);
        for lane in lanes_of(here & bytes.known) {
            let at = bytes.lanes[lane];
            for near in at.saturating_sub(15)..at.saturating_add(size as i64) {
                if let Some(&(of, _)) = self.local.get(&(id, lane, near))
                    && near.saturating_add(of as i64) > at
                {
                    self.local.remove(&(id, lane, near));
                }
            }
            if ty.is_int() && value.array.is_none() && value.known & !self.unsure & 1 << lane != 0 {
                self.local.insert((id, lane, at), (size, value.lanes[lane]));
            }
        }
    }

    /// Nothing is known of an array any more.
    fn spoil(&mut self, array: Option<VarId>, lanes: u64) {
        if lanes != 0 {
            if let Some(id) = array
                && !self.is_own_array(id)
            {
                self.given.write(id);
                self.shared.lose(id);
            }
            self.local.retain(|(id, lane, _), _| {
                array.is_some_and(|array| array != *id) || lanes >> lane & 1 == 0
            });
        }
    }

    pub(super) fn forget_array(&mut self, id: VarId, here: u64) {
        if self.is_own_array(id) {
            self.spoil(Some(id), here);
        }
    }
}

pub(super) fn lanes_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

fn is_place(expression: &Expr) -> bool {
    matches!(
        expression.kind,
        ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..)
    )
}

fn element_size(ty: &Type) -> i64 {
    ty.element()
        .map_or(1, |element| element.size().max(1) as i64)
}

fn nowhere(space: Space) -> Place {
    Place::Memory(None, space, Box::new(Value::UNKNOWN))
}

fn space_behind(pointer: &Type) -> Space {
    match pointer {
        Type::Pointer(_, AddressSpace::Shared) => Space::Shared,
        Type::Pointer(_, AddressSpace::Constant) => Space::Constant,
        _ => Space::Global,
    }
}

/// An operator that evaluates both operands.
fn operation(op: BinaryOp, left: (&Expr, &Value), right: (&Expr, &Value), ty: &Type) -> Value {
    let ((left, a), (right, b)) = (left, right);
    let offset = |by: &Value, size: i64| by.map(|by| by.wrapping_mul(size));
    match (a.array, b.array, op) {
        (Some(array), None, BinaryOp::Add | BinaryOp::Sub) if right.ty.is_int() => {
            let size = element_size(&left.ty);
            let by = offset(b, if op == BinaryOp::Sub { -size } else { size });
            let moved = a.zip(&by, |a, by| Some(a.wrapping_add(by)));
            return Value {
                array: Some(array),
                ..moved
            };
        }
        (None, Some(array), BinaryOp::Add) if left.ty.is_int() => {
            let by = offset(a, element_size(&right.ty));
            let moved = b.zip(&by, |b, by| Some(b.wrapping_add(by)));
            return Value {
                array: Some(array),
                ..moved
            };
        }
        (Some(x), Some(y), BinaryOp::Sub) if x == y => {
            let size = element_size(&left.ty);
            return a.zip(b, |a, b| Some(a.wrapping_sub(b) / size));
        }
        (Some(x), Some(y), _) if x == y => {
            return a.combined(op, &Type::LONG, b);
        }
        (None, None, _) => {}
        _ => return Value::UNKNOWN,
    }
    if !left.ty.is_int() || !right.ty.is_int() {
        return Value::UNKNOWN;
    }
    if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
        let of = left.ty.common(&Type::INT);
        return a.converted(&of).combined(op, &of, b).fitted(&of);
    }
    let operands = left.ty.common(&right.ty);
    let (x, y) = (a.converted(&operands), b.converted(&operands));
    let result = x.combined(op, &operands, &y);
    let comparison = matches!(
        op,
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne
    );
    if comparison {
        result
    } else {
        result.fitted(ty)
    }
}

fn product24(a: &Value, b: &Value, ty: &Type) -> Value {
    let signed = !matches!(ty, Type::Int { signed: false, .. });
    let part = Type::Int { bits: 24, signed };
    let (a, b) = (a.converted(&part), b.converted(&part));
    let product = a.zip(&b, |a, b| Some(a.wrapping_mul(b)));
    product.converted(&Type::Int { bits: 32, signed })
}

/// Integer arithmetic that has no operator.
fn named(bits: Bits, operand: &Type, ty: &Type, values: &[Value]) -> Value {
    let (
        Type::Int {
            bits: width,
            signed,
        },
        Some(first),
    ) = (operand, values.first())
    else {
        return Value::UNKNOWN;
    };
    let width_bits = u32::from(*width);
    let plain = |value: i64| value as u64 & (u64::MAX >> (64 - width_bits));
    let result = match (bits, values) {
        (Bits::Population, _) => first.map(|value| i64::from(plain(value).count_ones())),
        (Bits::LeadingZeros, _) => {
            first.map(|value| i64::from(plain(value).leading_zeros()) - i64::from(64 - width_bits))
        }
        (Bits::TrailingZeros, _) => {
            first.map(|value| i64::from(plain(value).trailing_zeros().min(width_bits)))
        }
        (Bits::FirstSet, _) => first.map(|value| match plain(value) {
            0 => 0,
            some => i64::from(some.trailing_zeros()) + 1,
        }),
        (Bits::Reverse, _) => {
            first.map(|value| (plain(value).reverse_bits() >> (64 - width_bits)) as i64)
        }
        (Bits::MultiplyHigh, [a, b]) if *width == 32 => a.zip(b, |a, b| {
            Some(((i128::from(a) * i128::from(b)) >> 32) as i64)
        }),
        (Bits::MultiplyAdd24, [a, b, c]) => {
            let of = Type::Int {
                bits: *width,
                signed: *signed,
            };
            product24(a, b, &of).zip(c, |product, c| Some(product.wrapping_add(c)))
        }
        (Bits::Clamp, [value, least, most]) => {
            let raised = value.zip(least, |a, b| Some(extreme(operand, false, a, b)));
            raised.zip(most, |a, b| Some(extreme(operand, true, a, b)))
        }
        (Bits::Expect, _) => *first,
        _ => Value::UNKNOWN,
    };
    result.map(|value| fitted(value, ty))
}
