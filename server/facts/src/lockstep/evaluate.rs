//! Expressions: the value of each lane, and the memory requests of the warp.

use warplens_ir::{
    AddressSpace, BinaryOp, Bits, Builtin, Expr, ExprKind, Function, Type, UnaryOp, VarId,
};

use super::numbers::{LANES, LaneValues, extreme, fitted};
use super::{Attempt, Machine};
use crate::access::{by_width, cost, shape};
use crate::draft::RequestKind;
use crate::facts::{Form, Op, Space};
use crate::value::ALIGNMENT;

/// A request each of whose lanes accesses what its own address says.
fn lanes_of_their_own(space: Space, op: Op, bytes: u32) -> RequestKind {
    RequestKind {
        space,
        op,
        form: Form::Lanes,
        bytes,
    }
}

/// What an lvalue designates.
enum LValue {
    Variable(VarId),
    /// A byte offset into a variable whose members are not tracked.
    Part(VarId, u64),
    /// Byte offsets into an array; `None` where the array is unknown.
    Memory(Option<VarId>, Space, Box<LaneValues>),
    Lost,
}

impl Machine<'_> {
    pub(super) fn eval(&mut self, expression: &Expr, active: u64) -> Attempt<LaneValues> {
        self.step()?;
        if active == 0 {
            return Some(LaneValues::UNKNOWN);
        }
        Some(match &expression.kind {
            ExprKind::Int(value) => LaneValues::all(fitted(*value, &expression.ty)),
            ExprKind::Float(_) => LaneValues::UNKNOWN,
            ExprKind::Builtin(builtin) => self.builtin(*builtin),
            ExprKind::Field(base, _) if !is_lvalue(base) => {
                self.eval(base, active)?;
                LaneValues::UNKNOWN
            }
            ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..) => {
                let lvalue = self.lvalue(expression, active)?;
                self.read(&lvalue, expression, self.part(expression), active)
            }
            ExprKind::Unary(op, inner) => {
                let value = self.eval(inner, active)?;
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
                    _ => LaneValues::UNKNOWN,
                }
            }
            ExprKind::Binary(BinaryOp::LogicalAnd, a, b) => self.logical(a, b, true, active)?,
            ExprKind::Binary(BinaryOp::LogicalOr, a, b) => self.logical(a, b, false, active)?,
            ExprKind::Binary(op, left, right) => {
                let a = self.eval(left, active)?;
                let b = self.eval(right, active)?;
                operation(*op, (left, &a), (right, &b), &expression.ty)
            }
            ExprKind::Assign(None, target, value) => {
                let found = self.eval(value, active)?;
                let found = self.fitting(&found, &value.ty, &target.ty);
                let lvalue = self.lvalue(target, active)?;
                self.write(&lvalue, target, &found, self.part(&**target), active);
                found
            }
            ExprKind::Assign(Some(op), target, value) => {
                let lvalue = self.lvalue(target, active)?;
                let before = self.read(&lvalue, target, self.part(&**target), active);
                let by = self.eval(value, active)?;
                let ty = match op {
                    BinaryOp::Shl | BinaryOp::Shr => target.ty.common(&Type::INT),
                    _ => target.ty.common(&value.ty),
                };
                let result = operation(*op, (target, &before), (value, &by), &ty);
                let result = self.fitting(&result, &ty, &target.ty);
                self.write(&lvalue, target, &result, self.part(&**target), active);
                result
            }
            ExprKind::Step(by, postfix, target) => {
                let lvalue = self.lvalue(target, active)?;
                let before = self.read(&lvalue, target, self.part(&**target), active);
                let after = match (&target.ty, before.array) {
                    (Type::Int { .. }, None) => {
                        before.map(|value| fitted(value.wrapping_add(*by), &target.ty))
                    }
                    (_, Some(_)) => {
                        let by = by * element_size(&target.ty);
                        before.map(|value| value.wrapping_add(by))
                    }
                    _ => LaneValues::UNKNOWN,
                };
                self.write(&lvalue, target, &after, self.part(&**target), active);
                if *postfix { before } else { after }
            }
            ExprKind::Select(condition, a, b) => {
                let value = self.eval(condition, active)?;
                self.record_branch(condition, &value, active);
                let (yes, no) = self.sides(&value, active);
                let before = self.unsure;
                self.unsure = before | active & !value.known;
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
                let value = self.eval(inner, active)?;
                match expression.ty {
                    Type::Pointer(..) | Type::Int { bits: 32.., .. } if value.array.is_some() => {
                        value
                    }
                    Type::Int { .. } if inner.ty.is_int() => value.converted(&expression.ty),
                    _ => LaneValues::UNKNOWN,
                }
            }
            ExprKind::AddressOf(inner) => match self.lvalue(inner, active)? {
                LValue::Memory(Some(array), _, bytes) => LaneValues {
                    array: Some(array),
                    ..*bytes
                },
                LValue::Variable(id) => LaneValues {
                    array: Some(id),
                    ..LaneValues::all(0)
                },
                LValue::Part(id, at) => LaneValues {
                    array: Some(id),
                    ..LaneValues::all(at as i64)
                },
                LValue::Memory(None, ..) | LValue::Lost => LaneValues::UNKNOWN,
            },
            ExprKind::Call(function, arguments) => {
                self.call(function, arguments, expression, active)?
            }
            ExprKind::List(parts) => {
                let mut last = LaneValues::UNKNOWN;
                for part in parts {
                    last = self.eval(part, active)?;
                }
                match expression.ty {
                    Type::Int { .. } | Type::Pointer(..) => last,
                    Type::Vector(..) | Type::Struct(_) => LaneValues::UNKNOWN,
                    _ if parts.len() == 1 => last,
                    _ => LaneValues::UNKNOWN,
                }
            }
            ExprKind::Inline(statements, result) => self.function(statements, *result, active)?,
            ExprKind::Apply(routine, arguments) => {
                let kernel = self.kernel;
                let routine = kernel.routine(*routine);
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.eval(argument, active)?);
                }
                for ((param, argument), value) in routine.params.iter().zip(arguments).zip(values) {
                    let value = self.fitting(&value, &argument.ty, &kernel.var(*param).ty);
                    self.set(*param, &value, active);
                }
                let before = self.path;
                self.path = before.within(crate::value::address(expression));
                let value = self.function(&routine.body, routine.result, active)?;
                self.path = before;
                value
            }
            ExprKind::Opaque(_, parts) => {
                for part in parts {
                    self.eval(part, active)?;
                }
                LaneValues::UNKNOWN
            }
        })
    }

    /// Evaluates without recording requests or branches.
    pub(super) fn eval_unrecorded(
        &mut self,
        expression: &Expr,
        active: u64,
    ) -> Attempt<LaneValues> {
        let known = std::mem::take(&mut self.record);
        let value = self.eval(expression, active);
        self.record = known;
        value
    }

    fn builtin(&self, builtin: Builtin) -> LaneValues {
        let launch = self.launch;
        match builtin {
            Builtin::ThreadIdx(axis) => self.thread[axis as usize],
            Builtin::BlockIdx(axis) => LaneValues::all(self.block[axis as usize]),
            Builtin::GlobalIdx(axis) => {
                let first = self.block[axis as usize] * launch.block[axis as usize] as i64;
                self.thread[axis as usize].map(|thread| thread + first)
            }
            Builtin::BlockDim(axis) => LaneValues::all(launch.block[axis as usize] as i64),
            Builtin::GridDim(axis) => LaneValues::all(launch.grid[axis as usize] as i64),
            Builtin::WarpSize => LaneValues::all(self.lanes as i64),
            Builtin::ClusterDim(axis) => match self.kernel.cluster {
                Some(blocks) => LaneValues::all(blocks[axis as usize] as i64),
                None => LaneValues::UNKNOWN,
            },
        }
    }

    /// Evaluates `&&` or `||`: only lanes that the first operand leaves open evaluate the second.
    fn logical(&mut self, a: &Expr, b: &Expr, and: bool, active: u64) -> Attempt<LaneValues> {
        let first = self.eval(a, active)?;
        let (yes, no) = self.sides(&first, active);
        let before = self.unsure;
        self.unsure = before | active & !first.known;
        let second = self.eval(b, if and { yes } else { no })?;
        self.unsure = before;
        let (x, y) = (first.truth(), second.truth());
        let truth = if and { x & y } else { x | y };
        let decided = first.known & if and { !x } else { x };
        Some(LaneValues {
            lanes: std::array::from_fn(|lane| (truth >> lane & 1) as i64),
            known: decided | first.known & second.known,
            array: None,
        })
    }

    /// Converts a value to the type of a variable.
    pub(super) fn fitting(&self, value: &LaneValues, from: &Type, to: &Type) -> LaneValues {
        match (from, to) {
            (Type::Int { .. }, Type::Int { .. }) => value.converted(to),
            (_, Type::Pointer(..) | Type::Unknown(_)) => *value,
            _ => LaneValues::UNKNOWN,
        }
    }

    fn call(
        &mut self,
        function: &Function,
        arguments: &[Expr],
        whole: &Expr,
        active: u64,
    ) -> Attempt<LaneValues> {
        match function {
            Function::Instruction(_, function) => {
                return self.call(function, arguments, whole, active);
            }
            Function::Rows { store, matrices } => {
                for argument in arguments.iter().skip(1) {
                    self.eval(argument, active)?;
                }
                let lvalue = self.pointed_at(arguments.first()?, active)?;
                if let LValue::Memory(array, space, bytes) = lvalue {
                    let kind = RequestKind {
                        space,
                        op: if *store { Op::Store } else { Op::Load },
                        form: Form::Rows(*matrices),
                        bytes: 4 * u32::from(*matrices),
                    };
                    self.request(self.part(whole), 0, kind, &bytes, active);
                    if *store {
                        self.invalidate(array, active);
                    }
                }
                return Some(LaneValues::UNKNOWN);
            }
            Function::CopyPastRegisters => {
                self.copy_past_registers(arguments, whole, active)?;
                return Some(LaneValues::UNKNOWN);
            }
            // A run knows no tensor.
            Function::BulkBox { .. } | Function::Bulk { multicast: true } => return None,
            Function::Bulk { multicast: false } => {
                self.bulk_copy(arguments, whole, active)?;
                return Some(LaneValues::UNKNOWN);
            }
            Function::Load => {
                let lvalue = self.pointed_at(arguments.first()?, active)?;
                return Some(self.read(&lvalue, whole, self.part(whole), active));
            }
            Function::Store => {
                if let [pointer, value] = arguments {
                    let ty = pointer.ty.element().cloned().unwrap_or(Type::INT);
                    let found = self.eval(value, active)?;
                    let found = self.fitting(&found, &value.ty, &ty);
                    let lvalue = self.pointed_at(pointer, active)?;
                    self.store(&lvalue, &ty, &found, self.part(whole), active);
                }
                return Some(LaneValues::UNKNOWN);
            }
            Function::Atomic(..) | Function::Tile { .. } => {
                for argument in arguments.iter().skip(1) {
                    self.eval(argument, active)?;
                }
                let pointer = arguments.first()?;
                if let LValue::Memory(array, space, bytes) = self.pointed_at(pointer, active)? {
                    let (op, size, bytes) = match function {
                        Function::Tile { store } => {
                            let size = pointer.ty.element().map_or(4, |ty| ty.size().clamp(1, 16));
                            let op = if *store { Op::Store } else { Op::Load };
                            (op, size as u32, LaneValues::UNKNOWN)
                        }
                        _ => (Op::Atomic, whole.ty.size().max(4) as u32, *bytes),
                    };
                    let kind = lanes_of_their_own(space, op, size);
                    self.request(self.part(whole), 0, kind, &bytes, active);
                    self.invalidate(array, active);
                }
                return Some(LaneValues::UNKNOWN);
            }
            Function::Texture { store } => {
                for argument in arguments {
                    self.eval(argument, active)?;
                }
                let op = if *store { Op::Store } else { Op::Load };
                let size = (whole.ty.size() as u32).max(4);
                let kind = lanes_of_their_own(Space::Texture, op, size);
                self.request(self.part(whole), 0, kind, &LaneValues::UNKNOWN, active);
                return Some(LaneValues::UNKNOWN);
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.eval(argument, active)?);
        }
        if !whole.ty.is_int() || arguments.iter().any(|argument| !argument.ty.is_int()) {
            return Some(LaneValues::UNKNOWN);
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
            _ => LaneValues::UNKNOWN,
        })
    }

    /// A load and a store of one instruction, under the condition that it reads anything.
    fn copy_past_registers(
        &mut self,
        arguments: &[Expr],
        whole: &Expr,
        active: u64,
    ) -> Attempt<()> {
        let Some(Expr {
            kind: ExprKind::Assign(None, to, from),
            ..
        }) = arguments.first()
        else {
            return None;
        };
        let mut reading = active;
        if let Some(size) = arguments.get(1) {
            let size = self.eval(size, active)?;
            if active & !size.known != 0 {
                return None;
            }
            reading = size.truth() & active;
        }
        let part = self.part(whole);
        if reading != 0 {
            let lvalue = self.lvalue(from, reading)?;
            self.read(&lvalue, from, part, reading);
        }
        let lvalue = self.lvalue(to, active)?;
        self.write(&lvalue, to, &LaneValues::UNKNOWN, part, active);
        Some(())
    }

    /// A copy that lanes start, each whole.
    fn bulk_copy(&mut self, arguments: &[Expr], whole: &Expr, active: u64) -> Attempt<()> {
        let [to, from, size] = arguments else {
            return None;
        };
        let size = self.eval(size, active)?;
        let lane = (active & size.known).trailing_zeros() as usize;
        let bytes = u32::try_from(*size.lanes.get(lane)?).ok()?;
        for (pointer, op) in [(from, Op::Load), (to, Op::Store)] {
            let LValue::Memory(array, space, addresses) = self.pointed_at(pointer, active)? else {
                continue;
            };
            let kind = RequestKind {
                space,
                op,
                form: Form::Bulk(bytes),
                bytes,
            };
            self.request(self.part(whole), 0, kind, &addresses, active);
            if op == Op::Store {
                self.invalidate(array, active);
            }
        }
        Some(())
    }

    // ---- memory --------------------------------------------------------------------------------

    pub(super) fn is_memory(&self, id: VarId) -> bool {
        crate::value::is_memory(self.kernel.var(id))
    }

    fn memory(&self, id: VarId, bytes: &LaneValues) -> LValue {
        LValue::Memory(Some(id), self.space(id), Box::new(*bytes))
    }

    fn pointed_at(&mut self, pointer: &Expr, active: u64) -> Attempt<LValue> {
        let value = self.eval(pointer, active)?;
        Some(match value.array {
            Some(id) => {
                let bytes = LaneValues {
                    array: None,
                    ..value
                };
                self.memory(id, &bytes)
            }
            None => nowhere(space_behind(&pointer.ty)),
        })
    }

    fn lvalue(&mut self, expression: &Expr, active: u64) -> Attempt<LValue> {
        Some(match &expression.kind {
            ExprKind::Var(id) if self.is_memory(*id) => self.memory(*id, &LaneValues::all(0)),
            ExprKind::Var(id) => LValue::Variable(*id),
            ExprKind::Index(base, index) if matches!(base.ty, Type::Vector(..)) => {
                self.eval(index, active)?;
                match self.lvalue(base, active)? {
                    LValue::Variable(id) => LValue::Part(id, 0),
                    LValue::Memory(array, space, _) => {
                        LValue::Memory(array, space, Box::new(LaneValues::UNKNOWN))
                    }
                    lvalue => lvalue,
                }
            }
            ExprKind::Index(base, index) => {
                let from = match &base.ty {
                    Type::Array(..) => self.lvalue(base, active)?,
                    _ => self.pointed_at(base, active)?,
                };
                let size = expression.ty.size().max(1) as i64;
                let by = self.eval(index, active)?.number();
                let by = if expression.ty.is_unread() {
                    LaneValues::UNKNOWN
                } else {
                    by.map(|index| index.wrapping_mul(size))
                };
                let sum = |from: &LaneValues| from.zip(&by, |a, b| Some(a.wrapping_add(b)));
                match from {
                    LValue::Memory(array, space, at) => {
                        LValue::Memory(array, space, Box::new(sum(&at)))
                    }
                    LValue::Variable(id) => self.memory(id, &by),
                    LValue::Part(id, at) => self.memory(id, &sum(&LaneValues::all(at as i64))),
                    LValue::Lost => nowhere(space_behind(&base.ty)),
                }
            }
            ExprKind::Deref(pointer) => self.pointed_at(pointer, active)?,
            ExprKind::Field(base, offset) => match self.lvalue(base, active)? {
                LValue::Memory(array, space, at) => {
                    let bytes = at.map(|at| at.wrapping_add(*offset as i64));
                    LValue::Memory(array, space, Box::new(bytes))
                }
                LValue::Variable(id) => LValue::Part(id, *offset),
                LValue::Part(id, at) => LValue::Part(id, at + offset),
                LValue::Lost => LValue::Lost,
            },
            ExprKind::Cast(_, inner) => self.lvalue(inner, active)?,
            ExprKind::List(parts) if parts.len() == 1 => self.lvalue(&parts[0], active)?,
            _ => {
                self.eval(expression, active)?;
                LValue::Lost
            }
        })
    }

    fn read(&mut self, lvalue: &LValue, expression: &Expr, part: u64, active: u64) -> LaneValues {
        match lvalue {
            LValue::Variable(id) if !self.kernel.var(*id).escapes => self.variables[id.0 as usize],
            LValue::Memory(array, space, bytes) => {
                if matches!(expression.ty, Type::Array(..)) {
                    // An array decays to its address.
                    return match array {
                        Some(_) => LaneValues {
                            array: *array,
                            ..**bytes
                        },
                        None => LaneValues::UNKNOWN,
                    };
                }
                self.pieces(part, Op::Load, *space, &expression.ty, bytes, active);
                match (array, expression.ty.is_int()) {
                    (Some(id), true) => {
                        self.contents_at((*id, *space), &expression.ty, bytes, active)
                    }
                    _ => LaneValues::UNKNOWN,
                }
            }
            LValue::Variable(_) | LValue::Part(..) | LValue::Lost => LaneValues::UNKNOWN,
        }
    }

    fn write(
        &mut self,
        lvalue: &LValue,
        target: &Expr,
        value: &LaneValues,
        part: u64,
        active: u64,
    ) {
        match lvalue {
            LValue::Variable(id) => self.set(*id, value, active),
            LValue::Memory(..) => self.store(lvalue, &target.ty, value, part, active),
            LValue::Part(..) | LValue::Lost => {}
        }
    }

    fn store(&mut self, lvalue: &LValue, ty: &Type, value: &LaneValues, part: u64, active: u64) {
        if let LValue::Memory(array, space, bytes) = lvalue {
            self.pieces(part, Op::Store, *space, ty, bytes, active);
            if let Some(id) = array {
                self.store_local(*id, ty, bytes, value, active);
            }
        }
    }

    /// Splits an access to a structure or a wide vector into requests of at most 16 bytes per lane.
    fn pieces(
        &mut self,
        part: u64,
        op: Op,
        space: Space,
        ty: &Type,
        bytes: &LaneValues,
        active: u64,
    ) {
        let (size, align) = (ty.size(), ty.align());
        let (mut done, mut count) = (0u64, 0);
        while done < size && count < 64 {
            let mut piece = 16u64.min(align.max(1));
            while piece > size - done || !done.is_multiple_of(piece) {
                piece /= 2;
            }
            let at = bytes.map(|at| at.wrapping_add(done as i64));
            let kind = lanes_of_their_own(space, op, piece as u32);
            self.request(part, done as u32, kind, &at, active);
            done += piece;
            count += 1;
        }
    }

    /// Records one memory instruction of the warp.
    fn request(
        &mut self,
        part: u64,
        piece: u32,
        kind: RequestKind,
        addresses: &LaneValues,
        active: u64,
    ) {
        let key = (part, kind.op, piece);
        let requests = self.record.accesses.entry(key).or_default();
        requests.unsure |= active & (self.unsure | !addresses.known) != 0;
        if requests.unsure || active == 0 {
            return;
        }
        let addresses = &addresses.lanes[..self.lanes];
        let figures = cost(self.profile, kind, addresses, active);
        let by_width = by_width(self.profile, kind, addresses, active);
        requests
            .sums
            .add(1.0, figures, by_width, || shape(addresses, active));
    }

    // ---- contents of memory --------------------------------------------------------------------

    fn is_own_array(&self, id: VarId) -> bool {
        self.space(id) == Space::Local && matches!(self.kernel.var(id).ty, Type::Array(..))
    }

    fn contents_at(
        &mut self,
        (id, space): (VarId, Space),
        ty: &Type,
        bytes: &LaneValues,
        active: u64,
    ) -> LaneValues {
        let mut value = LaneValues::UNKNOWN;
        let size = ty.size();
        if !self.is_own_array(id) {
            return match space {
                Space::Shared => self.shared.read(id, size, bytes, active),
                _ => self.given.read(id, ty, bytes, active),
            };
        }
        for lane in lanes_of(active & bytes.known) {
            if let Some(&(of, number)) = self.local.get(&(id, lane, bytes.lanes[lane]))
                && of == size
            {
                value.lanes[lane] = number;
                value.known |= 1 << lane;
            }
        }
        value
    }

    fn store_local(
        &mut self,
        id: VarId,
        ty: &Type,
        bytes: &LaneValues,
        value: &LaneValues,
        active: u64,
    ) {
        let size = ty.size();
        if !self.is_own_array(id) {
            self.given.write(id);
            let sure = if ty.is_int() {
                active & !self.unsure
            } else {
                0
            };
            self.shared.write(id, size, bytes, value, (active, sure));
            return;
        }
        self.invalidate(Some(id), active & !bytes.known);
        for lane in lanes_of(active & bytes.known) {
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

    /// Makes an array unknown for some lanes.
    fn invalidate(&mut self, array: Option<VarId>, lanes: u64) {
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

    pub(super) fn forget_array(&mut self, id: VarId, active: u64) {
        if self.is_own_array(id) {
            self.invalidate(Some(id), active);
        }
    }
}

pub(super) fn lanes_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

fn is_lvalue(expression: &Expr) -> bool {
    matches!(
        expression.kind,
        ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..)
    )
}

fn element_size(ty: &Type) -> i64 {
    ty.element()
        .map_or(1, |element| element.size().max(1) as i64)
}

fn nowhere(space: Space) -> LValue {
    LValue::Memory(None, space, Box::new(LaneValues::UNKNOWN))
}

fn space_behind(pointer: &Type) -> Space {
    match pointer {
        Type::Pointer(_, AddressSpace::Shared) => Space::Shared,
        Type::Pointer(_, AddressSpace::Constant) => Space::Constant,
        _ => Space::Global,
    }
}

/// True where every lane that is known is below the alignment of arrays.
fn is_low(value: &LaneValues) -> bool {
    lanes_of(value.known).all(|lane| (0..ALIGNMENT).contains(&value.lanes[lane]))
}

/// Applies an operator that evaluates both operands.
fn operation(
    op: BinaryOp,
    left: (&Expr, &LaneValues),
    right: (&Expr, &LaneValues),
    ty: &Type,
) -> LaneValues {
    let ((left, a), (right, b)) = (left, right);
    let offset = |by: &LaneValues, size: i64| by.map(|by| by.wrapping_mul(size));
    match (a.array, b.array, op) {
        (Some(array), None, BinaryOp::Add | BinaryOp::Sub) if right.ty.is_int() => {
            let size = element_size(&left.ty);
            let by = offset(b, if op == BinaryOp::Sub { -size } else { size });
            let moved = a.zip(&by, |a, by| Some(a.wrapping_add(by)));
            return LaneValues {
                array: Some(array),
                ..moved
            };
        }
        (None, Some(array), BinaryOp::Add) if left.ty.is_int() => {
            let by = offset(a, element_size(&right.ty));
            let moved = b.zip(&by, |b, by| Some(b.wrapping_add(by)));
            return LaneValues {
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
        // The bits below the alignment of arrays are those of the offset.
        (Some(array), None, BinaryOp::Xor | BinaryOp::Or) if is_low(b) => {
            let changed = a.combined(op, &Type::LONG, b);
            return LaneValues {
                array: Some(array),
                ..changed
            };
        }
        (Some(_), None, BinaryOp::And) if is_low(b) => {
            return a.combined(op, &Type::LONG, b);
        }
        (None, None, _) => {}
        _ => return LaneValues::UNKNOWN,
    }
    if !left.ty.is_int() || !right.ty.is_int() {
        return LaneValues::UNKNOWN;
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

fn product24(a: &LaneValues, b: &LaneValues, ty: &Type) -> LaneValues {
    let signed = !matches!(ty, Type::Int { signed: false, .. });
    let part = Type::Int { bits: 24, signed };
    let (a, b) = (a.converted(&part), b.converted(&part));
    let product = a.zip(&b, |a, b| Some(a.wrapping_mul(b)));
    product.converted(&Type::Int { bits: 32, signed })
}

/// Applies an intrinsic of integer arithmetic.
fn named(bits: Bits, operand: &Type, ty: &Type, values: &[LaneValues]) -> LaneValues {
    let (
        Type::Int {
            bits: width,
            signed,
        },
        Some(first),
    ) = (operand, values.first())
    else {
        return LaneValues::UNKNOWN;
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
        _ => LaneValues::UNKNOWN,
    };
    result.map(|value| fitted(value, ty))
}
