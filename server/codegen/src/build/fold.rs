//! Arithmetic with what every compiler folds on the way.

use smallvec::smallvec;
use warplens_ir::{BinaryOp, Storage};

use super::Builder;
use crate::graph::{Op, Ty, V};

/// Operations within each other that are looked through for an address.
const DEEPEST: u32 = 8;

impl Builder<'_> {
    /// An operation of two operands of one type.
    pub(super) fn binary(&mut self, op: Op, ty: Ty, a: V, b: V) -> V {
        let (mut a, mut b) = (a, b);
        let commutes = matches!(
            op,
            Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor | Op::Min(_) | Op::Max(_)
        );
        // Constants stand on the right.
        if commutes
            && (self.is_constant(a) && !self.is_constant(b) || !self.is_constant(b) && b < a)
        {
            (a, b) = (b, a);
        }
        if ty.is_float() {
            return self.floating(op, ty, a, b);
        }
        if let (Some(x), Some(y)) = (self.graph.int(a), self.graph.int(b))
            && let Some(value) = fold(op, ty, x, y)
        {
            return if ty == Ty::Pred {
                self.constant(value & 1, ty)
            } else {
                self.constant(value, ty)
            };
        }
        if let Some(y) = self.graph.int(b) {
            match (op, y) {
                (Op::Add | Op::Sub | Op::Shl | Op::Shr(_) | Op::Or | Op::Xor, 0)
                | (Op::Mul | Op::Div(_), 1)
                | (Op::And, -1) => return a,
                (Op::Mul | Op::And, 0) => return self.constant(0, ty),
                (Op::Rem(_), 1) => return self.constant(0, ty),
                // Predicates.
                (Op::And, 1) if ty == Ty::Pred => return a,
                (Op::Or, 1) if ty == Ty::Pred => return b,
                (Op::Sub, y) if y != i64::MIN => {
                    let negative = self.constant(-y, ty);
                    return self.binary(Op::Add, ty, a, negative);
                }
                (Op::And, y) if self.drops(a, y).is_some() => {
                    let kept = self.drops(a, y).unwrap_or(a);
                    return self.binary(op, ty, kept, b);
                }
                (Op::Add, y) if ty == Ty::I32 && self.is_shared_address(a) => {
                    return self.offset(a, y);
                }
                (Op::Add, y) => {
                    // (a + c) + d
                    let inst = self.graph.inst(a);
                    if inst.op == Op::Add
                        && let Some(x) = self.graph.int(inst.args[1])
                    {
                        let base = inst.args[0];
                        let sum = self.constant(x.wrapping_add(y), ty);
                        return self.binary(Op::Add, ty, base, sum);
                    }
                }
                (Op::Xor, y) => {
                    // (a ^ c) ^ d
                    let inst = self.graph.inst(a);
                    if inst.op == Op::Xor
                        && let Some(x) = self.graph.int(inst.args[1])
                    {
                        let base = inst.args[0];
                        let both = self.constant(x ^ y, ty);
                        return self.binary(op, ty, base, both);
                    }
                }
                (Op::Mul, y) => {
                    let inst = self.graph.inst(a);
                    if inst.op == Op::Mul
                        && let Some(x) = self.graph.int(inst.args[1])
                    {
                        let base = inst.args[0];
                        let product = self.constant(x.wrapping_mul(y), ty);
                        return self.binary(Op::Mul, ty, base, product);
                    }
                    if y > 1 && (y as u64).is_power_of_two() {
                        let by = self.constant(i64::from(y.trailing_zeros()), Ty::I32);
                        return self.binary(Op::Shl, ty, a, by);
                    }
                }
                (Op::Div(false), y) if y > 0 && (y as u64).is_power_of_two() => {
                    let by = self.constant(i64::from(y.trailing_zeros()), Ty::I32);
                    return self.binary(Op::Shr(false), ty, a, by);
                }
                (Op::Rem(false), y) if y > 0 && (y as u64).is_power_of_two() => {
                    let mask = self.constant(y - 1, ty);
                    return self.binary(Op::And, ty, a, mask);
                }
                _ => {}
            }
        }
        if op == Op::Or
            && let Some(both) = self.side_by_side(ty, a, b)
        {
            return both;
        }
        // c - (d - a)
        if op == Op::Sub
            && let Some(x) = self.graph.int(a)
            && self.graph.op(b) == Op::Sub
            && let [inner, from] = self.graph.inst(b).args[..]
            && let Some(y) = self.graph.int(inner)
        {
            let difference = self.constant(x.wrapping_sub(y), ty);
            return self.binary(Op::Add, ty, from, difference);
        }
        // A number added to an address: the constant part stays last, where accesses take it.
        if op == Op::Add && ty == Ty::I32 {
            for (address, number) in [(a, b), (b, a)] {
                if let Op::Offset(bytes) = self.graph.op(address) {
                    let base = self.graph.inst(address).args[0];
                    let sum = self.binary(op, ty, base, number);
                    return self.offset(sum, bytes);
                }
            }
        }
        if a == b {
            match op {
                Op::Sub | Op::Xor => return self.constant(0, ty),
                Op::And | Op::Or | Op::Min(_) | Op::Max(_) => return a,
                _ => {}
            }
        }
        self.share(op, ty, smallvec![a, b])
    }

    fn floating(&mut self, op: Op, ty: Ty, a: V, b: V) -> V {
        if let (Some(x), Some(y)) = (self.graph.float(a), self.graph.float(b)) {
            let value = match op {
                Op::Add => Some(x + y),
                Op::Sub => Some(x - y),
                Op::Mul => Some(x * y),
                Op::Div(_) => Some(x / y),
                _ => None,
            };
            if let Some(value) = value {
                return self.float(Some(value), ty);
            }
        }
        if let Some(y) = self.graph.float(b) {
            match op {
                Op::Mul | Op::Div(_) if y == 1.0 => return a,
                Op::Sub if y == 0.0 => return a,
                Op::Div(_)
                    if y != 0.0 && (y.abs().log2().fract() == 0.0 || self.options.fast_math) =>
                {
                    let inverse = self.float(Some(1.0 / y), ty);
                    return self.binary(Op::Mul, ty, a, inverse);
                }
                _ => {}
            }
        }
        self.share(op, ty, smallvec![a, b])
    }

    /// One operation of `double` on two `float`s whose result becomes a `float` again rounds once, as that of `float`
    /// does: it is that.
    fn narrowed(&mut self, v: V) -> Option<V> {
        let inst = self.graph.inst(v);
        if inst.ty != Ty::F64 || !matches!(inst.op, Op::Add | Op::Sub | Op::Mul | Op::Div(_)) {
            return None;
        }
        let (op, site, a, b) = (inst.op, inst.site, inst.args[0], inst.args[1]);
        let (a, b) = (self.single(a)?, self.single(b)?);
        // It is where the operation is, not where its result is converted.
        let here = std::mem::replace(&mut self.site, site);
        let narrow = self.binary(op, Ty::F32, a, b);
        self.site = here;
        Some(narrow)
    }

    /// The `float` that a `double` is.
    fn single(&mut self, v: V) -> Option<V> {
        if let Some(value) = self.graph.float(v) {
            let same = f64::from(value as f32) == value;
            return same.then(|| self.float(Some(value), Ty::F32));
        }
        let inst = self.graph.inst(v);
        let from = (inst.op == Op::Resize).then(|| inst.args[0])?;
        (self.graph.ty(from) == Ty::F32).then_some(from)
    }

    /// A sum without the part that a mask of its lowest bits takes away: `(x + 8 * i) & 7` is `x & 7`.
    fn drops(&self, sum: V, mask: i64) -> Option<V> {
        let low = mask > 0 && (mask as u64).wrapping_add(1).is_power_of_two();
        let inst = self.graph.inst(sum);
        if !low || inst.op != Op::Add {
            return None;
        }
        let zeros = (mask as u64).trailing_ones();
        let is_multiple = |v: V| match (self.graph.int(v), self.graph.op(v)) {
            (Some(value), _) => value & mask == 0,
            (None, Op::Shl) => {
                let by = self.graph.int(self.graph.inst(v).args[1]);
                by.is_some_and(|by| by >= i64::from(zeros))
            }
            _ => false,
        };
        match (is_multiple(inst.args[0]), is_multiple(inst.args[1])) {
            (_, true) => Some(inst.args[0]),
            (true, _) => Some(inst.args[1]),
            _ => None,
        }
    }

    /// The lower half of a value of 64 bits that holds an address of shared memory. Sums, products and their like are computed in
    /// 32 bits where nothing reads the rest.
    fn lower_half(&mut self, v: V, depth: u32) -> V {
        if let Some(value) = self.graph.int(v) {
            return self.constant(i64::from(value as i32), Ty::I32);
        }
        let inst = self.graph.inst(v);
        let (op, args) = (inst.op, inst.args.clone());
        match op {
            Op::Extend(_) => args[0],
            Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor if depth < DEEPEST => {
                let a = self.lower_half(args[0], depth + 1);
                let b = self.lower_half(args[1], depth + 1);
                self.binary(op, Ty::I32, a, b)
            }
            Op::Shl if depth < DEEPEST && self.graph.int(args[1]).is_some_and(|by| by < 32) => {
                let a = self.lower_half(args[0], depth + 1);
                self.binary(op, Ty::I32, a, args[1])
            }
            _ => self.share(Op::Truncate, Ty::I32, smallvec![v]),
        }
    }

    /// `low | high << 32` of two registers, `low | high << 16` of two halves: they lie beside each other.
    fn side_by_side(&mut self, ty: Ty, a: V, b: V) -> Option<V> {
        let (low, high) = (self.graph.inst(a), self.graph.inst(b));
        let by = (high.op == Op::Shl).then(|| self.graph.int(high.args[1]))??;
        let high = self.graph.inst(high.args[0]);
        let parts = [low.args.first().copied()?, high.args.first().copied()?];
        let are = |op: fn(Op) -> bool, part: Ty| {
            op(low.op) && op(high.op) && parts.iter().all(|v| self.graph.ty(*v) == part)
        };
        let beside = match (ty, by) {
            (Ty::I64, 32) => {
                low.op == Op::Extend(false) && are(|op| matches!(op, Op::Extend(_)), Ty::I32)
            }
            (Ty::I32, 16) => are(|op| op == Op::Bits, Ty::F16),
            _ => false,
        };
        beside.then(|| self.joined(&parts.into_iter().collect(), ty))
    }

    /// `(unsigned)(x >> 32)`: the second register of the pair that `x` is, shifted by what is left.
    fn upper_half(&mut self, op: Op, ty: Ty, shifted: V) -> Option<V> {
        let inst = self.graph.inst(shifted);
        let (Op::Truncate, Ty::I32, Op::Shr(_), Ty::I64) = (op, ty, inst.op, inst.ty) else {
            return None;
        };
        let (shift, whole, by) = (inst.op, inst.args[0], self.graph.int(inst.args[1])?);
        let left = by.checked_sub(32).filter(|left| (0..32).contains(left))?;
        let upper = self.share(Op::Part(1), Ty::I32, smallvec![whole]);
        let left = self.constant(left, Ty::I32);
        Some(self.binary(shift, Ty::I32, upper, left))
    }

    /// An operation of one operand.
    pub(super) fn unary(&mut self, op: Op, ty: Ty, a: V) -> V {
        if let Some(x) = self.graph.int(a) {
            let value = match op {
                Op::Not if ty == Ty::Pred => Some(1 - x),
                Op::Not => Some(!x),
                Op::Neg => Some(x.wrapping_neg()),
                Op::Abs => Some(x.wrapping_abs()),
                Op::Extend(true) => Some(x),
                Op::Extend(false) => Some(i64::from(x as u32)),
                Op::Truncate => Some(i64::from(x as i32)),
                Op::Narrow(8, true) => Some(i64::from(x as i8)),
                Op::Narrow(8, false) => Some(i64::from(x as u8)),
                Op::Narrow(16, true) => Some(i64::from(x as i16)),
                Op::Narrow(16, false) => Some(i64::from(x as u16)),
                _ => None,
            };
            if let Some(value) = value {
                return self.constant(value, ty);
            }
            if let Op::FromInt(signed) = op {
                let value = if signed { x as f64 } else { x as u64 as f64 };
                return self.float(Some(value), ty);
            }
        }
        if let Some(x) = self.graph.float(a) {
            match op {
                Op::Neg => return self.float(Some(-x), ty),
                Op::Abs => return self.float(Some(x.abs()), ty),
                Op::Resize if ty == Ty::F64 => return self.float(Some(x), ty),
                Op::Resize if ty == Ty::F32 => return self.float(Some(f64::from(x as f32)), ty),
                Op::ToInt(_) => return self.constant(x as i64, ty),
                _ => {}
            }
        }
        if (op, ty) == (Op::Resize, Ty::F32)
            && let Some(narrow) = self.narrowed(a)
        {
            return narrow;
        }
        // A narrowed sum may wrap, which keeps the neighbours of a subscript apart. An address of shared memory wraps anyway.
        if op == Op::Truncate && ty == Ty::I32 && self.holds_address(a, 0) {
            return self.lower_half(a, 0);
        }
        if let Some(upper) = self.upper_half(op, ty, a) {
            return upper;
        }
        let inst = self.graph.inst(a);
        match (op, inst.op) {
            (Op::Not, Op::Not) | (Op::Neg, Op::Neg) | (Op::Truncate, Op::Extend(_)) => {
                return inst.args[0];
            }
            (Op::Not, Op::Compare(compare, signed)) => {
                let args = inst.args.clone();
                // Not for floating point, where no order may hold.
                if !self.graph.ty(args[0]).is_float() {
                    return self.share(Op::Compare(opposite(compare), signed), Ty::Pred, args);
                }
            }
            _ => {}
        }
        self.share(op, ty, smallvec![a])
    }

    /// The predicate that a number is made of: 1 where it holds, else 0.
    fn predicate_in(&self, v: V) -> Option<V> {
        let inst = self.graph.inst(v);
        let &[condition, one, zero] = inst.args.as_slice() else {
            return None;
        };
        let numbers = (self.graph.int(one), self.graph.int(zero));
        (inst.op == Op::Select && numbers == (Some(1), Some(0))).then_some(condition)
    }

    pub(super) fn compare(&mut self, op: BinaryOp, signed: bool, a: V, b: V) -> V {
        if let (Some(x), Some(y)) = (self.graph.int(a), self.graph.int(b)) {
            let order = if signed {
                x.cmp(&y)
            } else {
                (x as u64).cmp(&(y as u64))
            };
            let holds = match op {
                BinaryOp::Lt => order.is_lt(),
                BinaryOp::Le => order.is_le(),
                BinaryOp::Gt => order.is_gt(),
                BinaryOp::Ge => order.is_ge(),
                BinaryOp::Eq => order.is_eq(),
                _ => order.is_ne(),
            };
            return self.constant(i64::from(holds), Ty::Pred);
        }
        // Two `float`s compare as `double`s as they do themselves.
        if self.graph.ty(a) == Ty::F64
            && let (Some(a), Some(b)) = (self.single(a), self.single(b))
        {
            return self.compare(op, signed, a, b);
        }
        if a == b && !self.graph.ty(a).is_float() {
            let holds = matches!(op, BinaryOp::Le | BinaryOp::Ge | BinaryOp::Eq);
            return self.constant(i64::from(holds), Ty::Pred);
        }
        // A predicate that was made a number.
        if let (Op::Select, Some(0), BinaryOp::Ne | BinaryOp::Eq) =
            (self.graph.op(a), self.graph.int(b), op)
        {
            let args = self.graph.inst(a).args.clone();
            if let (Some(1), Some(0)) = (self.graph.int(args[1]), self.graph.int(args[2])) {
                return if op == BinaryOp::Ne {
                    args[0]
                } else {
                    self.unary(Op::Not, Ty::Pred, args[0])
                };
            }
        }
        // Two of them differ where one holds alone.
        if let (BinaryOp::Ne | BinaryOp::Eq, Some(x), Some(y)) =
            (op, self.predicate_in(a), self.predicate_in(b))
        {
            let differ = self.binary(Op::Xor, Ty::Pred, x, y);
            return if op == BinaryOp::Ne {
                differ
            } else {
                self.unary(Op::Not, Ty::Pred, differ)
            };
        }
        if self.is_constant(a) && !self.is_constant(b) {
            return self.share(Op::Compare(mirrored(op), signed), Ty::Pred, smallvec![b, a]);
        }
        self.share(Op::Compare(op, signed), Ty::Pred, smallvec![a, b])
    }

    pub(super) fn select(&mut self, condition: V, yes: V, no: V) -> V {
        if let Some(value) = self.graph.int(condition) {
            return if value != 0 { yes } else { no };
        }
        if yes == no {
            return yes;
        }
        let ty = self.graph.ty(yes);
        self.share(Op::Select, ty, smallvec![condition, yes, no])
    }

    /// Moves a pointer by an index of elements of this size in bytes.
    pub(super) fn moved(&mut self, base: V, index: V, size: u32, signed: bool) -> V {
        // An address in shared memory has 32 bits: what wraps there wraps with it.
        let wraps = self.leads_into_shared(base);
        let (rest, constant) = if signed || wraps {
            self.split(index, wraps, 0)
        } else {
            match self.graph.int(index) {
                Some(value) => (None, value),
                None => (Some(index), 0),
            }
        };
        let mut offset = constant.wrapping_mul(i64::from(size));
        let mut base = base;
        if let Op::Offset(already) = self.graph.op(base) {
            base = self.graph.inst(base).args[0];
            offset = offset.wrapping_add(already);
        }
        let ty = self.graph.ty(base);
        if let Some(rest) = rest {
            base = self.share(Op::Address(size, signed), ty, smallvec![base, rest]);
        }
        self.offset(base, offset)
    }

    /// Moves a pointer by a number of bytes.
    pub(super) fn offset(&mut self, base: V, bytes: i64) -> V {
        if bytes == 0 {
            return base;
        }
        let ty = self.graph.ty(base);
        let (base, bytes) = match self.graph.op(base) {
            Op::Offset(already) => (self.graph.inst(base).args[0], already.wrapping_add(bytes)),
            _ => (base, bytes),
        };
        if bytes == 0 {
            return base;
        }
        self.share(Op::Offset(bytes), ty, smallvec![base])
    }

    /// True where an address of shared memory is a part of the value.
    fn holds_address(&self, v: V, depth: u32) -> bool {
        let inst = self.graph.inst(v);
        let arithmetic = matches!(
            inst.op,
            Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor | Op::Shl | Op::Extend(_)
        );
        let args = || inst.args.iter();
        self.is_shared_address(v)
            || arithmetic
                && depth < DEEPEST
                && args().any(|&arg| self.holds_address(arg, depth + 1))
    }

    /// True for an address of shared memory, also one that is a number in the source.
    fn is_shared_address(&self, v: V) -> bool {
        matches!(
            self.graph.op(v),
            Op::Base(_) | Op::Offset(_) | Op::Address(..)
        )
    }

    /// True for a place of an array in shared memory.
    fn leads_into_shared(&self, mut base: V) -> bool {
        loop {
            match self.graph.op(base) {
                Op::Base(id) => {
                    let storage = self.kernel.var(id).storage;
                    return matches!(storage, Storage::Shared | Storage::DynamicShared);
                }
                Op::Offset(_) | Op::Address(..) => base = self.graph.inst(base).args[0],
                _ => return false,
            }
        }
    }

    /// A sum without its constant part, and that part. Signed sums do not wrap, and of others `wraps` says that it
    /// does not matter.
    fn split(&mut self, v: V, wraps: bool, depth: u32) -> (Option<V>, i64) {
        if let Some(value) = self.graph.int(v) {
            return (None, value);
        }
        let inst = self.graph.inst(v);
        if depth > 8 || !matches!(inst.ty, Ty::I32 | Ty::I64) {
            return (Some(v), 0);
        }
        let (op, ty, args) = (inst.op, inst.ty, inst.args.clone());
        match op {
            Op::Add | Op::Sub if wraps || self.signed.contains(&v) => {
                let (a, x) = self.split(args[0], wraps, depth + 1);
                let (b, y) = self.split(args[1], wraps, depth + 1);
                let constant = match op {
                    Op::Add => x.wrapping_add(y),
                    _ => x.wrapping_sub(y),
                };
                if constant == 0 || (a, b) == (Some(args[0]), Some(args[1])) {
                    return (Some(v), 0);
                }
                let rest = match (a, b) {
                    (Some(a), Some(b)) => {
                        let sum = self.binary(op, ty, a, b);
                        if self.signed.contains(&v) {
                            self.does_not_wrap(sum);
                        }
                        Some(sum)
                    }
                    (Some(a), None) => Some(a),
                    (None, Some(b)) if op == Op::Add => Some(b),
                    (None, Some(b)) => Some(self.unary(Op::Neg, ty, b)),
                    (None, None) => None,
                };
                (rest, constant)
            }
            Op::Mul | Op::Shl if wraps || self.signed.contains(&v) => {
                let Some(factor) = self.graph.int(args[1]) else {
                    return (Some(v), 0);
                };
                let factor = if op == Op::Shl {
                    1i64.wrapping_shl(factor as u32)
                } else {
                    factor
                };
                let (rest, constant) = self.split(args[0], wraps, depth + 1);
                if constant == 0 {
                    return (Some(v), 0);
                }
                let rest = rest.map(|rest| {
                    let product = self.binary(op, ty, rest, args[1]);
                    if self.signed.contains(&v) {
                        self.does_not_wrap(product);
                    }
                    product
                });
                (rest, constant.wrapping_mul(factor))
            }
            Op::Extend(signed) if signed || wraps => {
                let (rest, constant) = self.split(args[0], wraps, depth + 1);
                if constant == 0 {
                    return (Some(v), 0);
                }
                let rest = rest.map(|rest| self.unary(Op::Extend(signed), Ty::I64, rest));
                (rest, constant)
            }
            _ => (Some(v), 0),
        }
    }

    pub(super) fn is_constant(&self, v: V) -> bool {
        matches!(self.graph.op(v), Op::Int(_) | Op::Float(_))
    }
}

fn fold(op: Op, ty: Ty, x: i64, y: i64) -> Option<i64> {
    let wide = ty == Ty::I64;
    Some(match op {
        Op::Add => x.wrapping_add(y),
        Op::Sub => x.wrapping_sub(y),
        Op::Mul => x.wrapping_mul(y),
        Op::Div(true) => x.checked_div(y)?,
        Op::Rem(true) => x.checked_rem(y)?,
        Op::Div(false) if wide => (x as u64).checked_div(y as u64)? as i64,
        Op::Rem(false) if wide => (x as u64).checked_rem(y as u64)? as i64,
        Op::Div(false) => i64::from((x as u32).checked_div(y as u32)?),
        Op::Rem(false) => i64::from((x as u32).checked_rem(y as u32)?),
        Op::Shl => x.checked_shl(u32::try_from(y).ok()?)?,
        Op::Shr(true) => x.checked_shr(u32::try_from(y).ok()?)?,
        Op::Shr(false) if wide => (x as u64).checked_shr(u32::try_from(y).ok()?)? as i64,
        Op::Shr(false) => i64::from((x as u32).checked_shr(u32::try_from(y).ok()?)?),
        Op::And => x & y,
        Op::Or => x | y,
        Op::Xor => x ^ y,
        Op::Min(true) => x.min(y),
        Op::Max(true) => x.max(y),
        Op::Min(false) => (x as u64).min(y as u64) as i64,
        Op::Max(false) => (x as u64).max(y as u64) as i64,
        _ => return None,
    })
}

fn opposite(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Eq => BinaryOp::Ne,
        _ => BinaryOp::Eq,
    }
}

fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        same => same,
    }
}
