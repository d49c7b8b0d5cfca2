//! Sizes as functions of a kernel's integer parameters: the blocks of a launch, the threads that a guard asks for.
//!
//! In: what a launch or a guard says. Out: [`Size`], evaluated for values of the parameters and printed as a person writes it. What
//! holds: a value is known only where those of all its parameters are, and nothing overflows.

use std::fmt;

use warplens_host::Blocks;

/// An integer made of parameters and numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Size {
    /// A number.
    Number(i64),
    /// A parameter by its name.
    Parameter(String),
    /// The blocks along an axis, which nothing gives.
    Blocks(u8),
    /// A sum.
    Sum(Box<Size>, Box<Size>),
    /// A difference.
    Difference(Box<Size>, Box<Size>),
    /// A product.
    Product(Box<Size>, Box<Size>),
    /// A quotient, rounded down.
    Quotient(Box<Size>, Box<Size>),
    /// A quotient by a number of at least 1, rounded up.
    Ceiling(Box<Size>, i64),
    /// The lesser of it and a number of at least 1.
    AtMost(Box<Size>, i64),
}

impl Size {
    /// The value where parameters (and open extents of the grid) have these values.
    pub(crate) fn value(&self, of: &dyn Fn(&Size) -> Option<i64>) -> Option<i64> {
        match self {
            Size::Number(number) => Some(*number),
            Size::Parameter(_) | Size::Blocks(_) => of(self),
            Size::Sum(a, b) => a.value(of)?.checked_add(b.value(of)?),
            Size::Difference(a, b) => a.value(of)?.checked_sub(b.value(of)?),
            Size::Product(a, b) => a.value(of)?.checked_mul(b.value(of)?),
            Size::Quotient(a, b) => {
                let (a, b) = (a.value(of)?, b.value(of)?);
                (b > 0).then(|| a.div_euclid(b))
            }
            Size::Ceiling(a, by) => {
                let a = a.value(of)?.checked_add(by - 1)?;
                Some(a.div_euclid(*by))
            }
            Size::AtMost(a, most) => Some(a.value(of)?.min(*most)),
        }
    }

    /// Blocks of this number: at least one.
    pub(crate) fn blocks(&self, of: &dyn Fn(&Size) -> Option<i64>) -> Option<u64> {
        u64::try_from(self.value(of)?.max(1)).ok()
    }

    /// Visits the symbols, from left to right.
    pub(crate) fn each_symbol<'a>(&'a self, visit: &mut dyn FnMut(&'a Size)) {
        match self {
            Size::Number(_) => {}
            Size::Parameter(_) | Size::Blocks(_) => visit(self),
            Size::Ceiling(a, _) | Size::AtMost(a, _) => a.each_symbol(visit),
            Size::Sum(a, b)
            | Size::Difference(a, b)
            | Size::Product(a, b)
            | Size::Quotient(a, b) => {
                a.each_symbol(visit);
                b.each_symbol(visit);
            }
        }
    }

    /// The parameter, what is added to it and by what that is divided, where it is ⌊(parameter + add) / divisor⌋.
    pub(crate) fn of_one(&self) -> Option<(&str, i64, i64)> {
        match self {
            Size::Parameter(name) => Some((name, 0, 1)),
            Size::Sum(of, number) => match (of.of_one()?, &**number) {
                ((name, add, 1), Size::Number(number)) => {
                    Some((name, add.checked_add(*number)?, 1))
                }
                _ => None,
            },
            Size::Difference(of, number) => match (of.of_one()?, &**number) {
                ((name, add, 1), Size::Number(number)) => {
                    Some((name, add.checked_sub(*number)?, 1))
                }
                _ => None,
            },
            Size::Quotient(of, number) => match (of.of_one()?, &**number) {
                ((name, add, divisor), Size::Number(number)) if *number > 0 => {
                    Some((name, add, divisor.checked_mul(*number)?))
                }
                _ => None,
            },
            Size::Ceiling(of, by) => {
                let (name, add, divisor) = of.of_one()?;
                let more = divisor.checked_mul(by - 1)?;
                Some((name, add.checked_add(more)?, divisor.checked_mul(*by)?))
            }
            Size::Number(_) | Size::Blocks(_) | Size::Product(..) | Size::AtMost(..) => None,
        }
    }

    /// The least multiple of a number with which the outermost division leaves nothing over.
    pub(crate) fn granule(&self, of: i64) -> i64 {
        let by = match self {
            Size::Ceiling(_, by) => *by,
            Size::Quotient(_, by) => match **by {
                Size::Number(by) => by,
                _ => 1,
            },
            Size::Product(quotient, _) => return quotient.granule(of),
            _ => 1,
        };
        let (mut a, mut b) = (of, by.max(1));
        while b != 0 {
            (a, b) = (b, a % b);
        }
        (of / a).saturating_mul(by.max(1))
    }

    /// Blocks as a launch in the source says them; `name` is the parameter that they follow.
    pub(crate) fn of_launch(blocks: Blocks, name: &str) -> Size {
        let (add, divisor, times, most) = match blocks {
            Blocks::Known(number) => {
                return Size::Number(i64::try_from(number).unwrap_or(i64::MAX));
            }
            Blocks::Follow {
                add,
                divisor,
                times,
                most,
                ..
            } => (add, divisor, times, most),
        };
        let parameter = Box::new(Size::Parameter(name.to_owned()));
        let quotient = if divisor > 1 && add == divisor - 1 {
            Size::Ceiling(parameter, divisor)
        } else {
            let sum = match add {
                0 => parameter,
                more @ 1.. => Box::new(Size::Sum(parameter, Box::new(Size::Number(more)))),
                less => Box::new(Size::Difference(
                    parameter,
                    Box::new(Size::Number(less.saturating_neg())),
                )),
            };
            match divisor {
                1 => *sum,
                _ => Size::Quotient(sum, Box::new(Size::Number(divisor))),
            }
        };
        let blocks = match times {
            1 => quotient,
            _ => Size::Product(Box::new(quotient), Box::new(Size::Number(times))),
        };
        match most {
            i64::MAX => blocks,
            _ => Size::AtMost(Box::new(blocks), most),
        }
    }

    /// How tightly its outermost operator binds.
    fn strength(&self) -> u8 {
        match self {
            Size::Sum(..) | Size::Difference(..) => 1,
            Size::Product(..) | Size::Quotient(..) => 2,
            _ => 3,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = |f: &mut fmt::Formatter<'_>, of: &Size, least: u8| {
            if of.strength() < least {
                write!(f, "({of})")
            } else {
                write!(f, "{of}")
            }
        };
        let (a, b, sign, least) = match self {
            Size::Number(number) => return write!(f, "{number}"),
            Size::Parameter(name) => return f.write_str(name),
            Size::Blocks(axis) => {
                return write!(f, "gridDim.{}", ["x", "y", "z"][usize::from(*axis) % 3]);
            }
            Size::Ceiling(of, by) => {
                f.write_str("ceil(")?;
                operand(f, of, 2)?;
                return write!(f, " / {by})");
            }
            Size::AtMost(of, most) => return write!(f, "min({of}, {most})"),
            Size::Sum(a, b) => (a, b, "+", 1),
            Size::Difference(a, b) => (a, b, "-", 1),
            Size::Product(a, b) => (a, b, "*", 2),
            Size::Quotient(a, b) => (a, b, "/", 2),
        };
        operand(f, a, least)?;
        write!(f, " {sign} ")?;
        operand(
            f,
            b,
            if matches!(sign, "-" | "/") {
                least + 1
            } else {
                least
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str) -> Size {
        Size::Parameter(name.to_owned())
    }

    #[test]
    fn a_launch_is_printed_as_a_person_writes_it() {
        let follow = |add, divisor, times| Blocks::Follow {
            most: i64::MAX,
            argument: 0,
            add,
            divisor,
            times,
        };
        let text = |blocks| Size::of_launch(blocks, "n").to_string();
        assert_eq!(text(follow(255, 256, 1)), "ceil(n / 256)");
        assert_eq!(text(follow(0, 256, 1)), "n / 256");
        assert_eq!(text(follow(-1, 64, 2)), "(n - 1) / 64 * 2");
        assert_eq!(text(follow(0, 1, 1)), "n");
        let area = Size::Ceiling(
            Box::new(Size::Product(
                Box::new(parameter("w")),
                Box::new(parameter("h")),
            )),
            256,
        );
        assert_eq!(area.to_string(), "ceil(w * h / 256)");
    }

    #[test]
    fn one_parameter_is_told_with_what_is_added_and_divided() {
        let size = Size::Ceiling(
            Box::new(Size::Difference(
                Box::new(parameter("n")),
                Box::new(Size::Number(2)),
            )),
            256,
        );
        assert_eq!(size.of_one(), Some(("n", 253, 256)));
        assert_eq!(size.value(&|_| Some(258)), Some(1));
        assert_eq!(size.value(&|_| Some(259)), Some(2));
        assert_eq!(size.value(&|_| None), None);
        let area = Size::Product(Box::new(parameter("w")), Box::new(parameter("h")));
        assert_eq!(area.of_one(), None);
    }
}
