//! Numbers that are not known, of which it is known how they hang together: `(n + 255) / 256` is the grid and
//! `n` an argument.
//!
//! A variable whose value is not known represents a number of its own ([`Linked::new`]); adding, multiplying,
//! dividing and rounding keep the form ⌊(number + add) / divisor⌋ · times, and what leaves that form is not
//! known again. Numbers are taken as not negative and not wrapping: they count elements.

use warplens_syntax::BinaryOperator as Op;

use super::value::Value;

/// ⌊(number + add) / divisor⌋ · times; without the rounding where it is not `whole`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Linked {
    /// Which number.
    pub(super) number: u32,
    pub(super) add: i64,
    pub(super) divisor: i64,
    pub(super) times: i64,
    /// False for a floating-point quotient that is not rounded yet.
    whole: bool,
}

impl Linked {
    pub(super) fn new(number: u32) -> Linked {
        Linked {
            number,
            add: 0,
            divisor: 1,
            times: 1,
            whole: true,
        }
    }

    /// The number itself, moved by a constant: how far.
    pub(super) fn moved(&self) -> Option<i64> {
        (self.divisor == 1 && self.times == 1).then_some(self.add)
    }

    fn plus(self, by: i64) -> Option<Linked> {
        if by % self.times != 0 {
            return None;
        }
        let add = (by / self.times).checked_mul(self.divisor)?;
        Some(Linked {
            add: self.add.checked_add(add)?,
            ..self
        })
    }

    fn multiplied(self, by: i64) -> Option<Linked> {
        // `(n / 16.0f) * 16` is nothing that extents are made of.
        (by > 0 && self.whole).then_some(())?;
        Some(Linked {
            times: self.times.checked_mul(by)?,
            ..self
        })
    }

    fn divided(self, by: i64) -> Option<Linked> {
        (by > 0).then_some(())?;
        if self.times % by == 0 {
            return Some(Linked {
                times: self.times / by,
                ..self
            });
        }
        (by % self.times == 0).then_some(())?;
        Some(Linked {
            divisor: self.divisor.checked_mul(by / self.times)?,
            times: 1,
            ..self
        })
    }

    /// As an integer: what is behind the point is cut off.
    pub(super) fn truncated(self) -> Linked {
        Linked {
            whole: true,
            ..self
        }
    }

    /// As a floating-point number.
    pub(super) fn real(self) -> Option<Linked> {
        (self.divisor == 1 && self.times == 1).then_some(Linked {
            whole: false,
            ..self
        })
    }

    /// The next whole number.
    pub(super) fn ceiling(self) -> Option<Linked> {
        if self.whole {
            return Some(self);
        }
        Some(Linked {
            add: self.add.checked_add(self.divisor - 1)?,
            whole: true,
            ..self
        })
    }

    /// `n % d ? n / d + 1 : n / d`, from its two sides in any order.
    pub(super) fn rounded_up(self, other: Linked) -> Option<Linked> {
        let (less, more) = if self.add < other.add {
            (self, other)
        } else {
            (other, self)
        };
        let by_one = less.add + less.divisor == more.add
            && Linked { add: 0, ..less } == Linked { add: 0, ..more };
        (by_one && less.whole).then_some(Linked {
            add: less.add + less.divisor - 1,
            ..less
        })
    }
}

/// An operator of which one side is such a number and the other is known.
pub(super) fn binary(operator: Op, a: &Value, b: &Value) -> Value {
    let number = |value: &Value| match value {
        Value::Int(value, ..) => Some(*value),
        Value::Float(value, _) if value.fract() == 0.0 && value.abs() < 1e15 => Some(*value as i64),
        _ => None,
    };
    let real = |value: &Value| matches!(value, Value::Float(..));
    let of = |linked: Linked, known: &Value| {
        if real(known) {
            linked.real()
        } else {
            Some(linked)
        }
    };
    let result = match (a, b) {
        (Value::Linked(linked), known) => number(known).and_then(|by| {
            let linked = of(*linked, known)?;
            match operator {
                Op::Add => linked.plus(by),
                Op::Subtract => linked.plus(by.checked_neg()?),
                Op::Multiply => linked.multiplied(by),
                Op::Divide => linked.divided(by),
                Op::ShiftRight if (0..32).contains(&by) => linked.divided(1 << by),
                Op::ShiftLeft if (0..32).contains(&by) => linked.multiplied(1 << by),
                _ => None,
            }
        }),
        (known, Value::Linked(linked)) => number(known).and_then(|by| {
            let linked = of(*linked, known)?;
            match operator {
                Op::Add => linked.plus(by),
                Op::Multiply => linked.multiplied(by),
                _ => None,
            }
        }),
        _ => None,
    };
    result.map_or(Value::Unknown, Value::Linked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(linked: Linked, n: i64) -> i64 {
        (n + linked.add).div_euclid(linked.divisor) * linked.times
    }

    #[test]
    fn the_form_computes_what_the_operators_do() {
        let n = Value::Linked(Linked::new(0));
        let int = Value::int;
        let up = binary(Op::Divide, &binary(Op::Add, &n, &int(255)), &int(256));
        let also_up = binary(
            Op::Add,
            &binary(Op::Divide, &binary(Op::Subtract, &n, &int(1)), &int(256)),
            &int(1),
        );
        let padded = binary(Op::Multiply, &up, &int(256));
        let quarter = binary(Op::Divide, &padded, &int(64));
        for value in 1..2000 {
            let of = |linked: &Value| match linked {
                Value::Linked(linked) => apply(*linked, value),
                other => panic!("{other:?}"),
            };
            assert_eq!(of(&up), (value + 255) / 256);
            assert_eq!(of(&also_up), (value - 1) / 256 + 1);
            assert_eq!(of(&padded), (value + 255) / 256 * 256);
            assert_eq!(of(&quarter), (value + 255) / 256 * 256 / 64);
        }
    }

    #[test]
    fn what_leaves_the_form_is_not_known() {
        let n = Value::Linked(Linked::new(0));
        assert_eq!(binary(Op::Remainder, &n, &Value::int(4)), Value::Unknown);
        assert_eq!(binary(Op::Multiply, &n, &n), Value::Unknown);
        assert_eq!(binary(Op::Divide, &Value::int(4), &n), Value::Unknown);
    }
}
