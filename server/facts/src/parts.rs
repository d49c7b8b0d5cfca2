//! An address as a sum of parts that each take some values, where it is no sum of coordinates: quotients and remainders of
//! them, and what data decides.

use warplens_symbolic::{Arena, BinaryOp, Id, Node, Symbol};

use crate::facts::{AddressPart, LinearAddress, VariesWith};
use crate::linear::Variables;

/// Expressions nested deeper than this are not read.
const DEEPEST: u32 = 16;

/// Numbers of this many bits have few values.
const NARROW: u8 = 16;

/// Parts of one address, at most.
const MOST_PARTS: usize = 32;

impl Variables<'_> {
    /// Bytes that a step of each part moves the address by; `None` where it is no such sum. What conversions cut off and what
    /// keeps an index inside of its array is passed over.
    pub(crate) fn parts(&self, arena: &Arena, address: Id) -> Option<Vec<(i64, AddressPart)>> {
        let mut parts = Vec::new();
        self.collect(arena, address, 1, &mut parts, 0)?;
        Some(parts)
    }

    fn collect(
        &self,
        arena: &Arena,
        id: Id,
        factor: i64,
        parts: &mut Vec<(i64, AddressPart)>,
        depth: u32,
    ) -> Option<()> {
        if depth > DEEPEST || parts.len() > MOST_PARTS {
            return None;
        }
        if arena.value(id).is_some() {
            return Some(());
        }
        match arena.node(id) {
            Node::Symbol(symbol) => {
                let part = match self.coordinate(*symbol) {
                    Some(coordinate) => coordinate,
                    None => self.values(arena, id)?,
                };
                parts.push((factor, part));
            }
            Node::Sum(_, terms) => {
                for &(term, coefficient) in terms.iter() {
                    let factor = factor.checked_mul(coefficient)?;
                    self.collect(arena, term, factor, parts, depth + 1)?;
                }
            }
            Node::Product(factors) => {
                let mut moving = None;
                let mut product = factor;
                for &one in factors.iter() {
                    match arena.value(one) {
                        Some(value) => product = product.checked_mul(value)?,
                        None if moving.is_none() => moving = Some(one),
                        None => {
                            parts.push((factor, self.values(arena, id)?));
                            return Some(());
                        }
                    }
                }
                self.collect(arena, moving?, product, parts, depth + 1)?;
            }
            // A byte of a number that data decides: one of its values.
            Node::Wrap(bits, _, inner) if *bits <= NARROW && arena.opaque(*inner).is_some() => {
                parts.push((factor, self.values(arena, id)?));
            }
            Node::Wrap(_, _, inner) => self.collect(arena, *inner, factor, parts, depth + 1)?,
            // What keeps an index inside of its array.
            &Node::Binary(BinaryOp::Min | BinaryOp::Max, a, b)
                if arena.value(a).is_some() || arena.value(b).is_some() =>
            {
                let inner = if arena.value(a).is_some() { b } else { a };
                self.collect(arena, inner, factor, parts, depth + 1)?;
            }
            &Node::Select(_, a, b) if arena.value(a).is_some() || arena.value(b).is_some() => {
                let inner = if arena.value(a).is_some() { b } else { a };
                self.collect(arena, inner, factor, parts, depth + 1)?;
            }
            &Node::Binary(op @ (BinaryOp::Div | BinaryOp::Rem), inner, by)
                if let Some(terms) = divided(arena, op, inner, by) =>
            {
                for (term, coefficient) in terms {
                    let factor = factor.checked_mul(coefficient)?;
                    self.collect(arena, term, factor, parts, depth + 1)?;
                }
            }
            _ => {
                let part = match self.digit(arena, id) {
                    Some(digit) => digit,
                    None => self.values(arena, id)?,
                };
                parts.push((factor, part));
            }
        }
        Some(())
    }

    fn coordinate(&self, symbol: Symbol) -> Option<AddressPart> {
        let at = |all: &[Symbol]| all.iter().position(|one| *one == symbol);
        at(&self.threads)
            .map(AddressPart::Thread)
            .or_else(|| at(&self.blocks).map(AddressPart::Block))
            .or_else(|| at(self.loops).map(AddressPart::Loop))
    }

    /// `of / divisor % modulus` with numbers for both, of a sum.
    fn digit(&self, arena: &Arena, id: Id) -> Option<AddressPart> {
        let (of, divisor, modulus) = self.quotient(arena, id, 0)?;
        Some(AddressPart::Digit {
            of,
            divisor,
            modulus,
        })
    }

    fn quotient(
        &self,
        arena: &Arena,
        id: Id,
        depth: u32,
    ) -> Option<(LinearAddress, i64, Option<i64>)> {
        if depth > DEEPEST {
            return None;
        }
        let (op, inner, number) = match arena.node(id) {
            &Node::Binary(op, inner, by) => (op, inner, arena.value(by)?),
            Node::Wrap(_, _, inner) => return self.quotient(arena, *inner, depth + 1),
            _ => {
                let sum = self.read(arena, id).map(|sum| (sum, 1, None));
                return sum.or_else(|| self.shifted(arena, id, depth));
            }
        };
        let (of, divisor, modulus) = self.quotient(arena, inner, depth + 1)?;
        let number = match op {
            BinaryOp::Shr => 1_i64.checked_shl(u32::try_from(number).ok()?)?,
            BinaryOp::And if number < i64::MAX && (number + 1).count_ones() == 1 => number + 1,
            BinaryOp::Div | BinaryOp::Rem => number,
            _ => return None,
        };
        if number <= 0 {
            return None;
        }
        Some(match (op, modulus) {
            (BinaryOp::Div | BinaryOp::Shr, None) => (of, divisor.checked_mul(number)?, None),
            (BinaryOp::Div | BinaryOp::Shr, Some(modulus)) if modulus % number == 0 => {
                (of, divisor.checked_mul(number)?, Some(modulus / number))
            }
            (BinaryOp::Rem | BinaryOp::And, None) => (of, divisor, Some(number)),
            (BinaryOp::Rem | BinaryOp::And, Some(modulus)) if modulus % number == 0 => {
                (of, divisor, Some(number))
            }
            _ => return None,
        })
    }

    /// A quotient or a remainder plus a constant: `i / w + 1` is `(i + w) / w`, and `(i % w + 1) % w` is `(i + 1) % w`.
    fn shifted(
        &self,
        arena: &Arena,
        id: Id,
        depth: u32,
    ) -> Option<(LinearAddress, i64, Option<i64>)> {
        let Node::Sum(constant, terms) = arena.node(id) else {
            return None;
        };
        let (mut shift, mut moving) = (*constant, None);
        for &(term, coefficient) in terms.iter() {
            match arena.value(term) {
                Some(value) => shift = shift.checked_add(value.checked_mul(coefficient)?)?,
                None if moving.is_none() && coefficient == 1 => moving = Some(term),
                None => return None,
            }
        }
        let (mut of, divisor, modulus) = self.quotient(arena, moving?, depth + 1)?;
        of.constant = of.constant.checked_add(shift.checked_mul(divisor)?)?;
        Some((of, divisor, modulus))
    }

    /// Any function of coordinates and data, by what it varies with and how many values its range leaves.
    fn values(&self, arena: &Arena, id: Id) -> Option<AddressPart> {
        let with = arena.varies_with(id);
        let varies = |symbol: &Symbol| arena.is_in(*symbol, with);
        let range = arena.range(id);
        let count = (range.bounded())
            .then(|| range.hi.checked_sub(range.lo)?.checked_add(1))
            .flatten()
            .and_then(|count| u64::try_from(count).ok());
        let by_data = arena.opaque(id).is_some();
        if !by_data && count.is_none() {
            return None;
        }
        Some(AddressPart::Values {
            number: id.number(),
            count,
            with: VariesWith {
                thread: self.threads.map(|symbol| varies(&symbol)),
                block: self.blocks.map(|symbol| varies(&symbol)),
                loops: self.loops.iter().map(varies).collect(),
            },
            by_data,
        })
    }
}

/// `(row * width + column) / width` and its remainder, where the column is less than the width: the terms of the row, and those of the
/// column.
fn divided(arena: &Arena, op: BinaryOp, sum: Id, by: Id) -> Option<Vec<(Id, i64)>> {
    let divisor = arena.value(by).filter(|by| *by > 1)?;
    let (constant, terms) = arena.terms(sum);
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    let mut range = (constant, constant);
    for (term, coefficient) in terms {
        if let Some(part) = multiple(arena, term, coefficient, divisor) {
            whole.push(part);
            continue;
        }
        let of = arena.range(term);
        let (a, b) = (
            of.lo.checked_mul(coefficient)?,
            of.hi.checked_mul(coefficient)?,
        );
        range = (
            range.0.checked_add(a.min(b))?,
            range.1.checked_add(a.max(b))?,
        );
        rest.push((term, coefficient));
    }
    let fits = !whole.is_empty() && range.0 >= 0 && range.1 < divisor;
    fits.then_some(if op == BinaryOp::Div { whole } else { rest })
}

/// A term divided by what it is a multiple of.
fn multiple(arena: &Arena, term: Id, coefficient: i64, divisor: i64) -> Option<(Id, i64)> {
    if coefficient % divisor == 0 {
        return Some((term, coefficient / divisor));
    }
    let Node::Product(factors) = arena.node(term) else {
        return None;
    };
    let mut moving = None;
    let mut product = coefficient;
    for &factor in factors.iter() {
        match arena.value(factor) {
            Some(value) => product = product.checked_mul(value)?,
            None if moving.is_none() => moving = Some(factor),
            None => return None,
        }
    }
    (product % divisor == 0).then_some((moving?, product / divisor))
}
