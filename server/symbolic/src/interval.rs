//! Closed intervals of integers, saturating far outside what any address reaches.

use crate::BinaryOp;

/// The bound from which on an interval means "any value".
const FAR: i64 = 1 << 61;

/// All integers from `lo` to `hi`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Smallest value.
    pub lo: i64,
    /// Largest value.
    pub hi: i64,
}

impl Interval {
    /// Any value.
    pub const ANY: Interval = Interval { lo: -FAR, hi: FAR };
    /// A truth value.
    pub const BOOL: Interval = Interval { lo: 0, hi: 1 };

    /// One value.
    pub fn point(value: i64) -> Interval {
        Interval {
            lo: clamp(i128::from(value)),
            hi: clamp(i128::from(value)),
        }
    }

    /// From `lo` to `hi`.
    pub fn new(lo: i64, hi: i64) -> Interval {
        Interval { lo, hi: hi.max(lo) }
    }

    /// The one value, where there is only one.
    pub fn single(self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// True where no value is negative.
    pub fn non_negative(self) -> bool {
        self.lo >= 0
    }

    /// True where every value lies in `lo..=hi`.
    pub fn within(self, lo: i64, hi: i64) -> bool {
        lo <= self.lo && self.hi <= hi
    }

    /// True where the bounds are real ones.
    pub fn bounded(self) -> bool {
        self.lo > -FAR && self.hi < FAR
    }

    /// The smallest interval that holds both.
    pub fn union(self, other: Interval) -> Interval {
        Interval {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
        }
    }

    pub(crate) fn scale(self, factor: i64) -> Interval {
        let (a, b) = (
            i128::from(self.lo) * i128::from(factor),
            i128::from(self.hi) * i128::from(factor),
        );
        Interval {
            lo: clamp(a.min(b)),
            hi: clamp(a.max(b)),
        }
    }

    pub(crate) fn plus(self, other: Interval) -> Interval {
        Interval {
            lo: clamp(i128::from(self.lo) + i128::from(other.lo)),
            hi: clamp(i128::from(self.hi) + i128::from(other.hi)),
        }
    }

    pub(crate) fn times(self, other: Interval) -> Interval {
        let products = [
            i128::from(self.lo) * i128::from(other.lo),
            i128::from(self.lo) * i128::from(other.hi),
            i128::from(self.hi) * i128::from(other.lo),
            i128::from(self.hi) * i128::from(other.hi),
        ];
        Interval {
            lo: clamp(*products.iter().min().expect("four products")),
            hi: clamp(*products.iter().max().expect("four products")),
        }
    }

    fn truth(always: bool, never: bool) -> Interval {
        match (always, never) {
            (true, _) => Interval::point(1),
            (_, true) => Interval::point(0),
            _ => Interval::BOOL,
        }
    }

    /// What an operator makes of two intervals: it holds every value that the operator can give.
    pub(crate) fn binary(op: BinaryOp, a: Interval, b: Interval) -> Interval {
        if let (Some(x), Some(y)) = (a.single(), b.single()) {
            return Interval::point(op.apply(x, y));
        }
        match op {
            BinaryOp::Div => {
                if b.lo <= 0 && b.hi >= 0 {
                    // Division by zero gives 0 here; otherwise magnitudes shrink.
                    let most = a.lo.unsigned_abs().max(a.hi.unsigned_abs()).min(FAR as u64) as i64;
                    return Interval {
                        lo: if a.lo >= 0 && b.lo >= 0 { 0 } else { -most },
                        hi: most,
                    };
                }
                let quotients = [
                    op.apply(a.lo, b.lo),
                    op.apply(a.lo, b.hi),
                    op.apply(a.hi, b.lo),
                    op.apply(a.hi, b.hi),
                ];
                let mut lo = *quotients.iter().min().expect("four");
                let mut hi = *quotients.iter().max().expect("four");
                if a.lo <= 0 && a.hi >= 0 {
                    lo = lo.min(0);
                    hi = hi.max(0);
                }
                Interval { lo, hi }
            }
            BinaryOp::Rem => {
                let most =
                    b.lo.unsigned_abs()
                        .max(b.hi.unsigned_abs())
                        .saturating_sub(1);
                let most = most.min(FAR as u64) as i64;
                if a.lo >= 0 && b.lo > 0 && a.hi < b.lo {
                    return a;
                }
                Interval {
                    lo: if a.lo >= 0 { 0 } else { (-most).max(a.lo) },
                    hi: if a.hi <= 0 { 0 } else { most.min(a.hi) },
                }
            }
            BinaryOp::Shl => match b.single() {
                Some(amount @ 0..=61) => a.scale(1 << amount),
                _ if b.within(0, 61) => a.times(Interval::new(1 << b.lo, 1 << b.hi)),
                _ => Interval::ANY,
            },
            BinaryOp::Shr => {
                if b.within(0, 63) {
                    let ends = [a.lo >> b.lo, a.lo >> b.hi, a.hi >> b.lo, a.hi >> b.hi];
                    Interval {
                        lo: *ends.iter().min().expect("four"),
                        hi: *ends.iter().max().expect("four"),
                    }
                } else {
                    Interval::ANY
                }
            }
            BinaryOp::And => {
                if a.lo >= 0 && b.lo >= 0 {
                    Interval::new(0, a.hi.min(b.hi))
                } else if a.lo >= 0 {
                    Interval::new(0, a.hi)
                } else if b.lo >= 0 {
                    Interval::new(0, b.hi)
                } else {
                    Interval::ANY
                }
            }
            BinaryOp::Or | BinaryOp::Xor => {
                if a.lo >= 0 && b.lo >= 0 && a.bounded() && b.bounded() {
                    let bits = 64 - (a.hi | b.hi).leading_zeros();
                    let lo = if op == BinaryOp::Or {
                        a.lo.max(b.lo)
                    } else {
                        0
                    };
                    Interval::new(lo, (1i64 << bits.min(61)) - 1)
                } else {
                    Interval::ANY
                }
            }
            BinaryOp::Min => Interval {
                lo: a.lo.min(b.lo),
                hi: a.hi.min(b.hi),
            },
            BinaryOp::Max => Interval {
                lo: a.lo.max(b.lo),
                hi: a.hi.max(b.hi),
            },
            BinaryOp::Lt => Interval::truth(a.hi < b.lo, a.lo >= b.hi),
            BinaryOp::Le => Interval::truth(a.hi <= b.lo, a.lo > b.hi),
            BinaryOp::Eq => Interval::truth(false, a.hi < b.lo || b.hi < a.lo),
            BinaryOp::Ne => Interval::truth(a.hi < b.lo || b.hi < a.lo, false),
            BinaryOp::LogicalAnd => Interval::truth(
                a.never_zero() && b.never_zero(),
                a == Interval::point(0) || b == Interval::point(0),
            ),
            BinaryOp::Population => Interval::new(0, b.hi.clamp(1, 64)),
            BinaryOp::LeadingZeros => match b.single() {
                Some(bits @ 1..=61) if a.within(0, (1 << bits) - 1) => {
                    Interval::new(op.apply(a.hi, bits), op.apply(a.lo, bits))
                }
                _ => Interval::new(0, b.hi.clamp(1, 64)),
            },
            BinaryOp::Reverse => match b.single() {
                Some(bits @ 1..=60) => Interval::new(0, (1 << bits) - 1),
                _ => Interval::ANY,
            },
            BinaryOp::MulHigh => {
                let product = a.times(b);
                if product.bounded() {
                    Interval::new(product.lo >> 32, product.hi >> 32)
                } else {
                    Interval::ANY
                }
            }
            BinaryOp::LogicalOr => Interval::truth(
                a.never_zero() || b.never_zero(),
                a == Interval::point(0) && b == Interval::point(0),
            ),
        }
    }

    /// True where zero is not among the values.
    pub fn never_zero(self) -> bool {
        self.lo > 0 || self.hi < 0
    }

    /// The interval after wrapping to `bits` bits.
    pub(crate) fn wrap(self, bits: u8, signed: bool) -> Interval {
        let full = Interval::of_type(bits, signed);
        if self.within(full.lo, full.hi) {
            self
        } else {
            full
        }
    }

    /// Every value of an integer type.
    pub fn of_type(bits: u8, signed: bool) -> Interval {
        match (bits, signed) {
            (0..=60, true) => {
                Interval::new(-(1 << (bits.max(1) - 1)), (1 << (bits.max(1) - 1)) - 1)
            }
            (0..=60, false) => Interval::new(0, (1 << bits) - 1),
            (_, true) => Interval::ANY,
            (_, false) => Interval::new(0, FAR),
        }
    }
}

fn clamp(value: i128) -> i64 {
    value.clamp(i128::from(-FAR), i128::from(FAR)) as i64
}
