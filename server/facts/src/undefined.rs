//! Values that C does not define: what divides by 0, shifts past the width of its type or leaves the range of `int`.
//!
//! Where it is so for every thread the value is unknown from there on. Where it may be so for some, the condition
//! under which it is goes along with the value as a *doubt*; the access that uses it looks whether any thread of the
//! launch meets it. What only assumed sizes bring about is no matter: others were meant.

use warplens_ir::{BinaryOp as IrOp, Type};
use warplens_symbolic::{BinaryOp, Id, Interval, SymbolKind};

use crate::executor::Executor;
use crate::value::{Doubt, Value, Variation};
use crate::why::NoValue;

impl Executor<'_> {
    /// A value that no thread has; `why`: what is wrong.
    pub(crate) fn without_value(&mut self, variation: Variation, why: NoValue) -> Id {
        let id = self.unknown(false, variation);
        if let Some(symbol) = self.arena.as_symbol(id) {
            self.reasons.insert(symbol, why);
        }
        id
    }

    /// Why the result of an operator has no value for any thread, where it has none.
    pub(crate) fn undefined(&self, op: IrOp, ty: &Type, right: Id) -> Option<NoValue> {
        let right = self.arena.value(right)?;
        match (op, ty) {
            (IrOp::Div | IrOp::Rem, _) if right == 0 => Some(NoValue::DividedByZero),
            (IrOp::Shl | IrOp::Shr, Type::Int { bits, .. })
                if !(0..i64::from((*bits).max(32))).contains(&right) =>
            {
                Some(NoValue::Shifted {
                    by: right,
                    bits: *bits,
                })
            }
            _ => None,
        }
    }

    /// Notes where the result of an operator may have no value for some threads.
    pub(crate) fn doubt(&mut self, op: IrOp, ty: &Type, right: Id, result: Id) {
        let Type::Int { bits, signed } = *ty else {
            return;
        };
        if self.dry > 0 || self.open.is_some() || self.arena.as_const(result).is_some() {
            return;
        }
        match op {
            IrOp::Div | IrOp::Rem if !self.range_given(right).never_zero() => {
                let zero = self.arena.constant(0);
                let when = self.arena.binary(BinaryOp::Eq, right, zero);
                self.doubts(when, NoValue::MayDivideByZero);
            }
            IrOp::Shl | IrOp::Shr => {
                let bits = i64::from(bits.max(32));
                if !self.range_given(right).within(0, bits - 1) {
                    let when = self.outside(right, Interval::new(0, bits - 1));
                    self.doubts(when, NoValue::MayShiftPast(bits));
                }
            }
            IrOp::Add | IrOp::Sub | IrOp::Mul if signed && bits == 32 => {
                let full = Interval::of_type(bits, signed);
                if !self.range_given(result).within(full.lo, full.hi) {
                    let when = self.outside(result, full);
                    self.doubts(when, NoValue::MayOverflow);
                }
            }
            _ => {}
        }
    }

    fn doubts(&mut self, when: Id, why: NoValue) {
        if self.arena.opaque(when).is_none() && !self.arena.has_placeholder(when) {
            self.doubted.get_or_insert(Doubt { when, why });
        }
    }

    fn outside(&mut self, id: Id, range: Interval) -> Id {
        let (lo, hi) = (self.arena.constant(range.lo), self.arena.constant(range.hi));
        let below = self.arena.binary(BinaryOp::Lt, id, lo);
        let above = self.arena.binary(BinaryOp::Lt, hi, id);
        self.arena.binary(BinaryOp::LogicalOr, below, above)
    }

    /// The range of a value with every parameter as it was given or assumed.
    fn range_given(&mut self, id: Id) -> Interval {
        let fixed: Vec<_> = self
            .arena
            .symbols_of(id)
            .filter_map(|symbol| match self.arena.symbol_kind(symbol) {
                SymbolKind::Fixed { value, .. } => Some((symbol, value)),
                _ => None,
            })
            .collect();
        let mut given = id;
        for (symbol, value) in fixed {
            let value = self.arena.constant(value);
            given = self.arena.substitute(given, symbol, value);
        }
        self.arena.range(given)
    }

    /// Executes a part whose doubts go with its value.
    pub(crate) fn with_doubts(&mut self, part: impl FnOnce(&mut Self) -> Value) -> Value {
        let outer = self.doubted.take();
        let mut value = part(self);
        if value.doubt.is_none() {
            value.doubt = self.doubted.take();
        }
        self.doubted = outer.or_else(|| value.doubt.clone());
        value
    }
}
