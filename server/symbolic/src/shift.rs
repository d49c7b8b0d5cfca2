//! How an expression moves when one variable moves: the proof behind every folded repetition.
//!
//! A [`Shift`] of an expression by a variable says: within the box at hand, raising the variable by `period`
//! raises the expression by `delta`, whatever the other variables and the lane.

use crate::domain::program::{Links, Op, Program, Variables};
use crate::{BinaryOp, Interval};

/// By how much an expression moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delta {
    /// Always by this.
    Exact(i64),
    /// By some multiple of this (never 0), the same for all lanes.
    MultipleOf(i64),
}

/// Raising the variable by `period` raises the expression by `delta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift {
    pub(crate) period: i64,
    pub(crate) delta: Delta,
}

/// Longer periods are of no use: enumeration is as good.
const LONGEST: i64 = 1 << 20;

impl Shift {
    pub(crate) const STILL: Shift = Shift {
        period: 1,
        delta: Delta::Exact(0),
    };

    fn times(self, factor: i64) -> Option<Shift> {
        let period = self
            .period
            .checked_mul(factor)
            .filter(|&period| period <= LONGEST)?;
        let delta = match self.delta {
            Delta::Exact(delta) => Delta::Exact(delta.checked_mul(factor)?),
            Delta::MultipleOf(of) => Delta::MultipleOf(of.checked_mul(factor)?),
        };
        Some(Shift { period, delta })
    }

    /// Brought to a period that both have.
    fn align(self, other: Shift) -> Option<(Shift, Shift)> {
        let common = lcm(self.period, other.period)?;
        Some((
            self.times(common / self.period)?,
            other.times(common / other.period)?,
        ))
    }

    fn still(self) -> bool {
        self.delta == Delta::Exact(0)
    }

    /// Lengthened until the movement is a multiple of `modulus` (0: until there is none).
    pub(crate) fn modulo(self, modulus: i64) -> Option<Shift> {
        if self.still() {
            return Some(self);
        }
        if modulus == 0 {
            return None;
        }
        let (Delta::Exact(of) | Delta::MultipleOf(of)) = self.delta;
        self.times(modulus / gcd(of, modulus))
    }
}

/// How the expressions of a program move with one variable, in one box.
pub(crate) struct Movement<'a> {
    pub(crate) program: &'a Program<'a>,
    /// The interval of each expression in the box.
    pub(crate) intervals: &'a [Interval],
    /// The shift of each expression that depends on the variable, as far as they are known.
    pub(crate) shifts: &'a [Option<Shift>],
    /// The variable's bit.
    pub(crate) variable: Variables,
}

impl Movement<'_> {
    /// The shift of an expression whose children's are known.
    pub(crate) fn of(&self, at: usize) -> Option<Shift> {
        if self.program.depends_on[at] & self.variable == 0 {
            return Some(Shift::STILL);
        }
        self.shifts[at]
    }

    fn range(&self, at: usize) -> Interval {
        self.intervals[at]
    }
}

/// The shift of an expression that depends on the variable, given those of its children; `leaf` is the
/// shift of the variable's own symbols.
pub(crate) fn shift(moving: &Movement, at: usize, leaf: Option<Shift>) -> Option<Shift> {
    let of = |child: usize| moving.of(child);
    let range = |child: usize| moving.range(child);
    if range(at).single().is_some() {
        return Some(Shift::STILL);
    }
    match moving.program.ops[at] {
        Op::Const(_) => Some(Shift::STILL),
        Op::Leaf(_) => leaf,
        Op::Sum(_, terms) => {
            let mut total = Shift::STILL;
            for &(term, coefficient) in moving.program.links(terms) {
                let moved = of(term)?;
                let scaled = Shift {
                    period: moved.period,
                    delta: match moved.delta {
                        Delta::Exact(delta) => Delta::Exact(delta.checked_mul(coefficient)?),
                        Delta::MultipleOf(m) => {
                            Delta::MultipleOf(m.checked_mul(coefficient)?.abs())
                        }
                    },
                };
                let (a, b) = total.align(scaled)?;
                let delta = match (a.delta, b.delta) {
                    (Delta::Exact(x), Delta::Exact(y)) => Delta::Exact(x.checked_add(y)?),
                    (Delta::MultipleOf(m), Delta::Exact(x) | Delta::MultipleOf(x))
                    | (Delta::Exact(x), Delta::MultipleOf(m)) => Delta::MultipleOf(gcd(m, x)),
                };
                total = Shift {
                    period: a.period,
                    delta,
                };
            }
            Some(total)
        }
        Op::Product(factors) => product(moving, factors),
        Op::Binary(op, a, b) => binary(moving, op, a, b),
        Op::Select(condition, a, b) => {
            if let Some(value) = range(condition).single() {
                return of(if value != 0 { a } else { b });
            }
            let condition = of(condition).filter(|moved| moved.still())?;
            let (a, b) = of(a)?.align(of(b)?)?;
            let (a, condition) = (a.align(condition)?.0, condition);
            let b = b.align(a)?.0.align(condition)?.0;
            match (a.delta, b.delta) {
                (Delta::Exact(x), Delta::Exact(y)) if x == y => Some(a),
                _ => None,
            }
        }
        Op::Table(index, _) => of(index).filter(|moved| moved.still()),
        Op::Wrap(bits, signed, a) => {
            let full = Interval::of_type(bits, signed);
            let moved = of(a)?;
            if moved.still() || range(a).within(full.lo, full.hi) {
                return Some(moved);
            }
            None
        }
    }
}

/// At most one factor may move. Where the others are numbers the product moves by one number; where they
/// are at least the same for all lanes it moves by some multiple.
fn product(moving: &Movement, factors: Links) -> Option<Shift> {
    let factors = moving.program.links(factors);
    let mut change: Option<Delta> = None;
    let mut period = 1;
    let mut constant = 1i64;
    let (mut number, mut same_for_lanes) = (true, true);
    let mut shifts = Vec::with_capacity(factors.len());
    for &(factor, _) in factors {
        let moved = moving.of(factor)?;
        period = lcm(period, moved.period)?;
        shifts.push((factor, moved));
    }
    for (factor, moved) in shifts {
        if moved.still() {
            match moving.range(factor).single() {
                Some(value) => constant = constant.checked_mul(value)?,
                None => {
                    number = false;
                    same_for_lanes &= !moving.program.varies[factor];
                }
            }
        } else if change
            .replace(moved.times(period / moved.period)?.delta)
            .is_some()
        {
            return None;
        }
    }
    let delta = match change {
        None => Delta::Exact(0),
        Some(Delta::Exact(delta)) if number => Delta::Exact(delta.checked_mul(constant)?),
        Some(Delta::Exact(of) | Delta::MultipleOf(of)) if number || same_for_lanes => {
            Delta::MultipleOf(of.checked_mul(constant)?.abs().max(1))
        }
        Some(_) => return None,
    };
    Some(Shift { period, delta })
}

fn binary(moving: &Movement, op: BinaryOp, a: usize, b: usize) -> Option<Shift> {
    let of = |child: usize| moving.of(child);
    let range = |child: usize| moving.range(child);
    let constant = range(b).single();
    let still_both = || {
        let (x, y) = (of(a)?, of(b)?);
        (x.still() && y.still()).then_some(())?;
        Some(Shift {
            period: lcm(x.period, y.period)?,
            delta: Delta::Exact(0),
        })
    };
    match op {
        BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shr => {
            let divisor = match (op, constant) {
                (BinaryOp::Shr, Some(amount @ 0..=40)) => 1i64 << amount,
                (BinaryOp::Div | BinaryOp::Rem, Some(divisor)) if divisor > 0 => divisor,
                _ => return still_both(),
            };
            // Truncation is floor only where nothing is negative; an arithmetic shift always is.
            if op != BinaryOp::Shr && !range(a).non_negative() {
                return still_both();
            }
            let moved = of(a)?;
            if op == BinaryOp::Rem {
                let moved = moved.modulo(divisor)?;
                return Some(Shift {
                    period: moved.period,
                    delta: Delta::Exact(0),
                });
            }
            let Delta::Exact(delta) = moved.delta else {
                return None;
            };
            if delta == 0 {
                return Some(moved);
            }
            let moved = moved.times(divisor / gcd(delta, divisor))?;
            let Delta::Exact(delta) = moved.delta else {
                return None;
            };
            Some(Shift {
                period: moved.period,
                delta: Delta::Exact(delta / divisor),
            })
        }
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
            let (value, mask) = match (range(a).single(), constant) {
                (_, Some(mask)) => (a, mask),
                (Some(mask), _) => (b, mask),
                _ => return still_both(),
            };
            let moved = of(value)?;
            if mask >= 0 {
                let bits = 64 - mask.leading_zeros();
                let moved = moved.modulo(1i64.checked_shl(bits.min(40))?)?;
                return Some(if op == BinaryOp::And {
                    Shift {
                        period: moved.period,
                        delta: Delta::Exact(0),
                    }
                } else {
                    moved
                });
            }
            if op == BinaryOp::And
                && mask.trailing_zeros() < 40
                && mask == -(1 << mask.trailing_zeros())
            {
                return moved.modulo(1 << mask.trailing_zeros());
            }
            still_both()
        }
        BinaryOp::Min | BinaryOp::Max => {
            let (ra, rb) = (range(a), range(b));
            let (first, second) = if op == BinaryOp::Min { (a, b) } else { (b, a) };
            if ra.hi <= rb.lo {
                return of(first);
            }
            if rb.hi <= ra.lo {
                return of(second);
            }
            let (x, y) = of(a)?.align(of(b)?)?;
            (matches!((x.delta, y.delta), (Delta::Exact(p), Delta::Exact(q)) if p == q))
                .then_some(x)
        }
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => {
            let (x, y) = of(a)?.align(of(b)?)?;
            match (x.delta, y.delta) {
                (Delta::Exact(p), Delta::Exact(q)) if p == q => Some(Shift {
                    period: x.period,
                    delta: Delta::Exact(0),
                }),
                _ => None,
            }
        }
        BinaryOp::Shl
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::Population
        | BinaryOp::LeadingZeros
        | BinaryOp::Reverse
        | BinaryOp::MulHigh => still_both(),
    }
}

/// The greatest common divisor; 1 of two zeros.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    (a as i64).max(1)
}

pub(crate) fn lcm(a: i64, b: i64) -> Option<i64> {
    (a / gcd(a, b))
        .checked_mul(b)
        .filter(|&period| period <= LONGEST)
}
