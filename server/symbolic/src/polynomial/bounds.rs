//! What is known about the values of parameters and variables, and of polynomials in them.

use super::{Atom, Name, Polynomial, Ratio};

/// Values from `lo` to `hi`, both included; `None` is without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bound {
    /// The smallest.
    pub lo: Option<Ratio>,
    /// The largest.
    pub hi: Option<Ratio>,
}

/// The range of each name; a name that was not given one can be anything.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    of: Vec<Bound>,
}

impl Bound {
    /// One value.
    fn point(value: Ratio) -> Bound {
        Bound {
            lo: Some(value),
            hi: Some(value),
        }
    }

    /// Whole numbers from `lo` to `hi`.
    pub fn new(lo: Option<i128>, hi: Option<i128>) -> Bound {
        Bound {
            lo: lo.map(Ratio::whole),
            hi: hi.map(Ratio::whole),
        }
    }

    fn neg(self) -> Bound {
        Bound {
            lo: self.hi.and_then(Ratio::negated),
            hi: self.lo.and_then(Ratio::negated),
        }
    }

    fn add(self, other: Bound) -> Bound {
        let sum = |a: Option<Ratio>, b: Option<Ratio>| a?.plus(b?);
        Bound {
            lo: sum(self.lo, other.lo),
            hi: sum(self.hi, other.hi),
        }
    }

    fn never_negative(self) -> bool {
        self.lo.is_some_and(|lo| !lo.is_negative())
    }

    fn never_positive(self) -> bool {
        self.neg().never_negative()
    }

    fn mul(self, other: Bound) -> Bound {
        let product = |a: Option<Ratio>, b: Option<Ratio>| a?.times(b?);
        if self.never_negative() && other.never_negative() {
            return Bound {
                lo: product(self.lo, other.lo),
                hi: product(self.hi, other.hi),
            };
        }
        if self.never_positive() && self.lo != self.hi {
            return self.neg().mul(other).neg();
        }
        if other.never_positive() && other.lo != other.hi {
            return self.mul(other.neg()).neg();
        }
        let corners = [
            product(self.lo, other.lo),
            product(self.lo, other.hi),
            product(self.hi, other.lo),
            product(self.hi, other.hi),
        ];
        let mut all = Bound::default();
        for (position, corner) in corners.into_iter().enumerate() {
            let Some(corner) = corner else {
                return Bound::default();
            };
            if position == 0 {
                all = Bound::point(corner);
                continue;
            }
            all = all.union(Bound::point(corner));
        }
        all
    }

    /// The range of the least (or greatest) of two values.
    pub(crate) fn extreme(self, other: Bound, least: bool) -> Bound {
        if least {
            Bound {
                lo: pick(self.lo, other.lo, true),
                hi: tighter(self.hi, other.hi, false),
            }
        } else {
            Bound {
                lo: tighter(self.lo, other.lo, true),
                hi: pick(self.hi, other.hi, false),
            }
        }
    }

    fn union(self, other: Bound) -> Bound {
        Bound {
            lo: pick(self.lo, other.lo, true),
            hi: pick(self.hi, other.hi, false),
        }
    }
}

/// The least (or greatest) of two; `None` where one is not known.
fn pick(a: Option<Ratio>, b: Option<Ratio>, least: bool) -> Option<Ratio> {
    let (a, b) = (a?, b?);
    let order = a.compare(b)?;
    Some(if order.is_le() == least { a } else { b })
}

/// The better known of two bounds on one side: the greatest lower, the least upper.
fn tighter(a: Option<Ratio>, b: Option<Ratio>, lower: bool) -> Option<Ratio> {
    match (a, b) {
        (Some(_), Some(_)) => pick(a, b, !lower),
        (some, None) | (None, some) => some,
    }
}

impl Bounds {
    /// Says which values a name has.
    pub fn set(&mut self, name: Name, bound: Bound) {
        let at = name as usize;
        if self.of.len() <= at {
            self.of.resize(at + 1, Bound::default());
        }
        self.of[at] = bound;
    }

    /// Which values a name has.
    pub fn get(&self, name: Name) -> Bound {
        self.of.get(name as usize).copied().unwrap_or_default()
    }

    /// Every value of the polynomial, over-approximated.
    pub fn range(&self, polynomial: &Polynomial) -> Bound {
        let mut sum = Bound::point(Ratio::ZERO);
        for (monomial, coefficient) in polynomial.terms() {
            let mut product = Bound::point(Ratio::ONE);
            for (atom, exponent) in monomial {
                let factor = self.atom(atom);
                for _ in 0..*exponent {
                    product = product.mul(factor);
                }
            }
            let scaled = if coefficient.is_negative() {
                let Some(positive) = coefficient.negated() else {
                    return Bound::default();
                };
                product.mul(Bound::point(positive)).neg()
            } else {
                product.mul(Bound::point(coefficient))
            };
            sum = sum.add(scaled);
        }
        sum
    }

    /// True where no value of the polynomial is negative.
    pub fn never_negative(&self, polynomial: &Polynomial) -> bool {
        self.range(polynomial).never_negative()
    }

    fn atom(&self, atom: &Atom) -> Bound {
        match atom {
            Atom::Name(name) => self.get(*name),
            Atom::Holds(_) => Bound::new(Some(0), Some(1)),
            Atom::Floor(inner, divisor) => {
                let range = self.range(inner);
                let floor = |value: Option<Ratio>| {
                    let value = value?;
                    let whole = value.denominator().checked_mul(*divisor)?;
                    Some(Ratio::whole(value.numerator().div_euclid(whole)))
                };
                Bound {
                    lo: floor(range.lo),
                    hi: floor(range.hi),
                }
            }
            Atom::Min(parts) | Atom::Max(parts) => {
                let least = matches!(atom, Atom::Min(_));
                let mut ranges = parts.iter().map(|part| self.range(part));
                let Some(mut all) = ranges.next() else {
                    return Bound::default();
                };
                for range in ranges {
                    all = all.extreme(range, least);
                }
                all
            }
        }
    }
}
