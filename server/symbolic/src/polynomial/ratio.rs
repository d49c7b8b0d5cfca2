//! Rational numbers that say when they would overflow.

use std::cmp::Ordering;

/// A rational number in lowest terms; its denominator is positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    /// None.
    pub const ZERO: Ratio = Ratio::whole(0);
    /// One.
    pub const ONE: Ratio = Ratio::whole(1);

    /// A whole number.
    pub const fn whole(value: i128) -> Ratio {
        Ratio {
            numerator: value,
            denominator: 1,
        }
    }

    /// `numerator / denominator`; `None` where the denominator is 0 or a number is out of reach.
    pub fn new(numerator: i128, denominator: i128) -> Option<Ratio> {
        if denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator, denominator)?;
        let (numerator, denominator) = (numerator / divisor, denominator / divisor);
        if denominator < 0 {
            return Some(Ratio {
                numerator: numerator.checked_neg()?,
                denominator: denominator.checked_neg()?,
            });
        }
        Some(Ratio {
            numerator,
            denominator,
        })
    }

    /// The upper part.
    pub fn numerator(self) -> i128 {
        self.numerator
    }

    /// The lower part, positive.
    pub fn denominator(self) -> i128 {
        self.denominator
    }

    /// The number, where it is whole.
    pub fn as_whole(self) -> Option<i128> {
        (self.denominator == 1).then_some(self.numerator)
    }

    /// Below 0.
    pub fn is_negative(self) -> bool {
        self.numerator < 0
    }

    /// `self + other`.
    pub fn plus(self, other: Ratio) -> Option<Ratio> {
        if let (Some(left), Some(right)) = (self.as_whole(), other.as_whole()) {
            return Some(Ratio::whole(left.checked_add(right)?));
        }
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Ratio::new(
            left.checked_add(right)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    /// `self * other`.
    pub fn times(self, other: Ratio) -> Option<Ratio> {
        if let (Some(left), Some(right)) = (self.as_whole(), other.as_whole()) {
            return Some(Ratio::whole(left.checked_mul(right)?));
        }
        Ratio::new(
            self.numerator.checked_mul(other.numerator)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    /// `-self`.
    pub fn negated(self) -> Option<Ratio> {
        Some(Ratio {
            numerator: self.numerator.checked_neg()?,
            denominator: self.denominator,
        })
    }

    /// Which of the two is larger; `None` where the numbers are out of reach.
    pub fn compare(self, other: Ratio) -> Option<Ordering> {
        let left = self.numerator.checked_mul(other.denominator)?;
        Some(left.cmp(&other.numerator.checked_mul(self.denominator)?))
    }
}

/// For sorting alike terms only: any total order does.
impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        (self.denominator, self.numerator).cmp(&(other.denominator, other.numerator))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The greatest number that divides both; 1 for two zeros.
pub(crate) fn gcd(a: i128, b: i128) -> Option<i128> {
    let (mut a, mut b) = (a.checked_abs()?, b.checked_abs()?);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Some(a.max(1))
}
