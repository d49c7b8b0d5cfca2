//! Numbers that are not known, of which it is known how they hang together: `(n + 255) / 256` is the grid and
//! `n` an argument.
//!
//! A variable whose value is not known represents a number of its own ([`Linked::new`]); adding, multiplying,
//! dividing and rounding keep the form ⌊(number + add) / divisor⌋ · times, two of which make one number
//! ([`Linked::with`]), and what leaves that form is not known again. Numbers are taken as not negative and not
//! wrapping: they count elements.

use std::rc::Rc;

use warplens_syntax::BinaryOperator as Op;

use super::Composed;

/// Numbers are made of numbers this deep.
const DEEPEST: u32 = 4;

/// A number that is not known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Number {
    /// By itself, and which one.
    Own(u32),
    /// Made of two.
    Of(Composed, Rc<[Linked; 2]>),
}

/// ⌊(number + add) / divisor⌋ · times, and at most `most`; without the rounding where it is not `whole`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linked {
    pub(super) number: Number,
    pub(super) add: i64,
    pub(super) divisor: i64,
    pub(super) times: i64,
    /// `i64::MAX` where nothing limits it.
    pub(super) most: i64,
    /// False for a floating-point quotient that is not rounded yet.
    whole: bool,
}

impl Linked {
    pub(super) fn new(number: u32) -> Linked {
        Linked::of(Number::Own(number))
    }

    fn of(number: Number) -> Linked {
        Linked {
            number,
            add: 0,
            divisor: 1,
            times: 1,
            most: i64::MAX,
            whole: true,
        }
    }

    /// The number that an operator makes of it and another.
    pub(super) fn with(&self, operator: Op, other: &Linked) -> Option<Linked> {
        let composed = match operator {
            Op::Add => Composed::Sum,
            Op::Subtract => Composed::Difference,
            Op::Multiply => Composed::Product,
            Op::Divide => Composed::Quotient,
            _ => return None,
        };
        let bounded = self.depth().max(other.depth()) < DEEPEST;
        (self.whole && other.whole && bounded).then(|| {
            let both = Rc::new([self.clone(), other.clone()]);
            Linked::of(Number::Of(composed, both))
        })
    }

    /// How deep it is made of others.
    fn depth(&self) -> u32 {
        match &self.number {
            Number::Own(_) => 0,
            Number::Of(_, both) => 1 + both[0].depth().max(both[1].depth()),
        }
    }

    /// True where it is never more than a limit: nothing is computed with it any more.
    fn is_limited(&self) -> bool {
        self.most < i64::MAX
    }

    /// What it never is more than, where something limits it.
    pub(super) fn limit(&self) -> Option<u64> {
        let limited = self.is_limited().then_some(self.most);
        limited.and_then(|most| u64::try_from(most).ok())
    }

    /// The lesser of it and a number.
    pub(super) fn at_most(self, most: i64) -> Option<Linked> {
        (self.whole && most > 0).then(|| Linked {
            most: self.most.min(most),
            ..self
        })
    }

    /// The number itself, moved by a constant: how far.
    pub(super) fn moved(&self) -> Option<i64> {
        (self.divisor == 1 && self.times == 1 && !self.is_limited()).then_some(self.add)
    }

    /// The number before an operator with a known side; `real` where that is floating point.
    pub(super) fn before(self, operator: Op, by: i64, real: bool) -> Option<Linked> {
        let number = if real { self.real()? } else { self };
        if number.is_limited() {
            return None;
        }
        match operator {
            Op::Add => number.plus(by),
            Op::Subtract => number.plus(by.checked_neg()?),
            Op::Multiply => number.multiplied(by),
            Op::Divide => number.divided(by),
            Op::ShiftRight if (0..32).contains(&by) => number.divided(1 << by),
            Op::ShiftLeft if (0..32).contains(&by) => number.multiplied(1 << by),
            _ => None,
        }
    }

    /// The same behind the operator.
    pub(super) fn behind(self, operator: Op, by: i64, real: bool) -> Option<Linked> {
        let number = if real { self.real()? } else { self };
        if number.is_limited() {
            return None;
        }
        match operator {
            Op::Add => number.plus(by),
            Op::Multiply => number.multiplied(by),
            _ => None,
        }
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
        (self.divisor == 1 && self.times == 1 && !self.is_limited()).then_some(Linked {
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
            && Linked {
                add: 0,
                ..less.clone()
            } == Linked { add: 0, ..more };
        (by_one && less.whole).then(|| Linked {
            add: less.add + less.divisor - 1,
            ..less
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(linked: &Linked, n: i64) -> i64 {
        (n + linked.add).div_euclid(linked.divisor) * linked.times
    }

    #[test]
    fn the_form_computes_what_the_operators_do() {
        let n = Linked::new(0);
        let before = |number: &Linked, operator, by| {
            let result = number.clone().before(operator, by, false);
            result.expect("the form is kept")
        };
        let up = before(&before(&n, Op::Add, 255), Op::Divide, 256);
        let down = before(&before(&n, Op::Subtract, 1), Op::Divide, 256);
        let also_up = down.behind(Op::Add, 1, false).expect("the form is kept");
        let padded = before(&up, Op::Multiply, 256);
        let quarter = before(&padded, Op::Divide, 64);
        for value in 1..2000 {
            assert_eq!(apply(&up, value), (value + 255) / 256);
            assert_eq!(apply(&also_up, value), (value - 1) / 256 + 1);
            assert_eq!(apply(&padded, value), (value + 255) / 256 * 256);
            assert_eq!(apply(&quarter, value), (value + 255) / 256 * 256 / 64);
        }
    }

    #[test]
    fn what_leaves_the_form_is_not_known() {
        let n = Linked::new(0);
        assert_eq!(n.clone().before(Op::Remainder, 4, false), None);
        assert_eq!(n.behind(Op::Divide, 4, false), None);
    }

    #[test]
    fn two_make_one_number_of_bounded_depth() {
        let (m, n) = (Linked::new(0), Linked::new(1));
        let product = m.with(Op::Multiply, &n).expect("whole numbers");
        let again = m.with(Op::Multiply, &n).expect("whole numbers");
        assert_eq!(product, again, "the same product is the same number");
        assert_eq!(product.moved(), Some(0));
        let half = n.clone().real().and_then(|n| n.before(Op::Divide, 2, true));
        let half = half.expect("a quotient");
        assert_eq!(m.with(Op::Multiply, &half), None, "not rounded yet");
        let mut deep = product;
        let mut times = 1;
        while let Some(more) = deep.with(Op::Add, &n) {
            deep = more;
            times += 1;
        }
        assert_eq!(times, DEEPEST);
    }
}
