//! Sizes as functions of a kernel's integer parameters: the blocks of a launch, the threads that a guard asks for.
//!
//! In: what a launch or a guard says. Out: [`Size`], evaluated for values of the parameters and printed as a person writes it. What
//! holds: a value is known only where those of all its parameters are, and nothing overflows.

use std::fmt;

use warplens_host::{Blocks, Composed, Followed};

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

    /// Visits the parameters that it is divided by.
    pub(crate) fn each_divisor<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        match self {
            Size::Number(_) | Size::Parameter(_) | Size::Blocks(_) => {}
            Size::Ceiling(a, _) | Size::AtMost(a, _) => a.each_divisor(visit),
            Size::Sum(a, b) | Size::Difference(a, b) | Size::Product(a, b) => {
                a.each_divisor(visit);
                b.each_divisor(visit);
            }
            Size::Quotient(a, b) => {
                if let Size::Parameter(name) = &**b {
                    visit(name);
                }
                a.each_divisor(visit);
                b.each_divisor(visit);
            }
        }
    }

    /// The same with a number in place of a parameter.
    pub(crate) fn with(&self, name: &str, number: i64) -> Size {
        let both = |a: &Size, b: &Size| (a.with(name, number), b.with(name, number));
        match self {
            Size::Parameter(of) if of == name => Size::Number(number),
            Size::Number(_) | Size::Parameter(_) | Size::Blocks(_) => self.clone(),
            Size::Ceiling(a, by) => Size::Ceiling(Box::new(a.with(name, number)), *by),
            Size::AtMost(a, most) => Size::AtMost(Box::new(a.with(name, number)), *most),
            Size::Sum(a, b) => match both(a, b) {
                (Size::Number(a), b) => b.plus(a),
                (a, Size::Number(b)) => a.plus(b),
                (a, b) => Size::Sum(Box::new(a), Box::new(b)),
            },
            Size::Difference(a, b) => match both(a, b) {
                (a, Size::Number(b)) => a.plus(b.saturating_neg()),
                (a, b) => Size::Difference(Box::new(a), Box::new(b)),
            },
            Size::Product(a, b) => {
                let (a, b) = both(a, b);
                Size::Product(Box::new(a), Box::new(b))
            }
            Size::Quotient(a, b) => match both(a, b) {
                (Size::Sum(a, more), Size::Number(by))
                    if by > 1 && *more == Size::Number(by - 1) =>
                {
                    Size::Ceiling(a, by)
                }
                (a, b) => Size::Quotient(Box::new(a), Box::new(b)),
            },
        }
    }

    /// The sum with a number.
    fn plus(self, more: i64) -> Size {
        match (self, more) {
            (of, 0) => of,
            (Size::Number(number), more) => Size::Number(number.saturating_add(more)),
            (Size::Sum(a, b), more) => match *b {
                Size::Number(b) => a.plus(b.saturating_add(more)),
                b => Size::Sum(a, Box::new(b.plus(more))),
            },
            (Size::Difference(a, b), more) if matches!(*b, Size::Number(_)) => match *b {
                Size::Number(less) => a.plus(more.saturating_sub(less)),
                b => Size::Difference(Box::new(a.plus(more)), Box::new(b)),
            },
            (of, more @ 1..) => Size::Sum(Box::new(of), Box::new(Size::Number(more))),
            (of, less) => {
                let less = Size::Number(less.saturating_neg());
                Size::Difference(Box::new(of), Box::new(less))
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

    /// The least multiple of a number with which the divisions of a symbol leave nothing over.
    pub(crate) fn granule(&self, symbol: &Size, of: i64) -> i64 {
        if !self.depends_on(symbol) {
            return of;
        }
        let (inner, by) = match self {
            Size::Ceiling(inner, by) => (&**inner, *by),
            Size::Quotient(inner, by) => match **by {
                Size::Number(by) => (&**inner, by),
                _ => (&**inner, 1),
            },
            Size::AtMost(inner, _) => (&**inner, 1),
            Size::Product(a, b) | Size::Sum(a, b) | Size::Difference(a, b) => {
                let first = a.granule(symbol, of);
                return b.granule(symbol, first);
            }
            Size::Number(_) | Size::Parameter(_) | Size::Blocks(_) => return of,
        };
        let of = inner.granule(symbol, of);
        let (mut a, mut b) = (of, by.max(1));
        while b != 0 {
            (a, b) = (b, a % b);
        }
        (of / a).saturating_mul(by.max(1))
    }

    fn depends_on(&self, symbol: &Size) -> bool {
        let mut found = false;
        self.each_symbol(&mut |of| found |= of == symbol);
        found
    }

    /// Blocks along an axis as a launch in the source says them; `name` is that of the argument at a position. `None` where one
    /// is no size.
    pub(crate) fn of_launch(
        blocks: &Blocks,
        axis: u8,
        name: &dyn Fn(usize) -> Option<String>,
    ) -> Option<Size> {
        let (number, add, divisor, times, most) = match blocks {
            Blocks::Open => return Some(Size::Blocks(axis)),
            Blocks::Known(number) => {
                return Some(Size::Number(i64::try_from(*number).unwrap_or(i64::MAX)));
            }
            Blocks::Follow {
                number,
                add,
                divisor,
                times,
                most,
            } => (number, *add, *divisor, *times, *most),
        };
        let number = Box::new(match number {
            Followed::Argument(at) => Size::Parameter(name(*at)?),
            Followed::Of(composed, both) => {
                let [a, b] = both.each_ref();
                let a = Box::new(Size::of_launch(a, axis, name)?);
                let b = Box::new(Size::of_launch(b, axis, name)?);
                match composed {
                    Composed::Sum => Size::Sum(a, b),
                    Composed::Difference => Size::Difference(a, b),
                    Composed::Product => Size::Product(a, b),
                    Composed::Quotient => Size::Quotient(a, b),
                }
            }
        });
        let quotient = if divisor > 1 && add == divisor - 1 {
            Size::Ceiling(number, divisor)
        } else {
            let sum = match add {
                0 => number,
                more @ 1.. => Box::new(Size::Sum(number, Box::new(Size::Number(more)))),
                less => Box::new(Size::Difference(
                    number,
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
        Some(match most {
            i64::MAX => blocks,
            _ => Size::AtMost(Box::new(blocks), most),
        })
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
            number: Followed::Argument(0),
            add,
            divisor,
            times,
        };
        let name = |at: usize| ["n", "m"].get(at).map(|name| (*name).to_owned());
        let text = |blocks| {
            Size::of_launch(&blocks, 0, &name)
                .expect("sizes")
                .to_string()
        };
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
        let rows = Blocks::Follow {
            number: Followed::Argument(1),
            add: 63,
            divisor: 64,
            times: 1,
            most: i64::MAX,
        };
        let both = Followed::Of(Composed::Product, [follow(127, 128, 1), rows].into());
        let tiles = Blocks::Follow {
            number: both,
            add: 0,
            divisor: 1,
            times: 1,
            most: i64::MAX,
        };
        assert_eq!(text(tiles), "ceil(n / 128) * ceil(m / 64)");
        assert_eq!(text(Blocks::Open), "gridDim.x");
    }

    #[test]
    fn a_size_is_a_multiple_of_what_it_is_divided_by() {
        let tiles = |name: &str, by| Size::Ceiling(Box::new(parameter(name)), by);
        let grid = Size::Product(Box::new(tiles("m", 96)), Box::new(tiles("n", 128)));
        assert_eq!(grid.granule(&parameter("m"), 32), 96);
        assert_eq!(grid.granule(&parameter("n"), 32), 128);
        assert_eq!(grid.granule(&parameter("k"), 32), 32);
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
