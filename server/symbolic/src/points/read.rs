//! Conditions as pieces between affine bounds.

use super::{Defined, Division, Extreme, Piece, Points};
use crate::polynomial::{Bound, Polynomial, Ratio};
use crate::{BinaryOp, Id, Node, SymbolKind};

/// A value that depends on cases: each with its piece.
type Cases = Vec<(Piece, Polynomial)>;

impl Points<'_> {
    /// Adds to `out` the disjoint pieces of `piece` in which the condition has the given truth value.
    pub(super) fn assume(
        &mut self,
        piece: Piece,
        condition: Id,
        holds: bool,
        out: &mut Vec<Piece>,
    ) -> Option<()> {
        self.another_piece()?;
        match *self.arena.node(condition) {
            Node::Const(value) => {
                if (value != 0) == holds {
                    out.push(piece);
                }
                Some(())
            }
            Node::Binary(op @ (BinaryOp::LogicalAnd | BinaryOp::LogicalOr), a, b) => {
                if (op == BinaryOp::LogicalAnd) == holds {
                    let mut first = Vec::new();
                    self.assume(piece, a, holds, &mut first)?;
                    for piece in first {
                        self.assume(piece, b, holds, out)?;
                    }
                    return Some(());
                }
                // One is enough: the first, or else the second without the first.
                self.assume(piece.clone(), a, holds, out)?;
                let mut rest = Vec::new();
                self.assume(piece, a, !holds, &mut rest)?;
                for piece in rest {
                    self.assume(piece, b, holds, out)?;
                }
                Some(())
            }
            Node::Binary(op @ (BinaryOp::Lt | BinaryOp::Le), a, b) => {
                for (mut piece, difference) in self.difference(piece, b, a)? {
                    let bound = match (op, holds) {
                        (BinaryOp::Lt, true) => difference.offset(-1)?,
                        (_, true) => difference,
                        (BinaryOp::Lt, false) => difference.neg()?,
                        (_, false) => difference.neg()?.offset(-1)?,
                    };
                    piece.least.push(bound);
                    out.push(piece);
                }
                Some(())
            }
            Node::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) => {
                for (piece, difference) in self.difference(piece, a, b)? {
                    self.zero(piece, difference, (op == BinaryOp::Eq) == holds, out)?;
                }
                Some(())
            }
            _ => {
                for (piece, value) in self.value(piece, condition)? {
                    self.zero(piece, value, !holds, out)?;
                }
                Some(())
            }
        }
    }

    fn zero(
        &mut self,
        mut piece: Piece,
        value: Polynomial,
        is: bool,
        out: &mut Vec<Piece>,
    ) -> Option<()> {
        if is {
            piece.equal.push(value);
            out.push(piece);
            return Some(());
        }
        self.another_piece()?;
        let mut above = piece.clone();
        above.least.push(value.offset(-1)?);
        out.push(above);
        piece.least.push(value.neg()?.offset(-1)?);
        out.push(piece);
        Some(())
    }

    fn difference(&mut self, piece: Piece, a: Id, b: Id) -> Option<Cases> {
        let mut cases = Vec::new();
        for (piece, left) in self.value(piece, a)? {
            for (piece, right) in self.value(piece, b)? {
                cases.push((piece, left.sub(&right)?));
            }
        }
        Some(cases)
    }

    /// The value as a polynomial, in disjoint cases that together make up the piece.
    fn value(&mut self, piece: Piece, id: Id) -> Option<Cases> {
        let arena = self.arena;
        match arena.node(id) {
            Node::Const(value) => Some(vec![(piece, Polynomial::constant(i128::from(*value)))]),
            Node::Symbol(symbol) => {
                let value = match arena.symbol_kind(*symbol) {
                    SymbolKind::Fixed { value, .. } => Polynomial::constant(i128::from(value)),
                    SymbolKind::Parameter => {
                        let range = arena.range(id);
                        let known = |end: i64| range.bounded().then_some(i128::from(end));
                        let bound = Bound::new(known(range.lo), known(range.hi));
                        self.bounds.set(symbol.0, bound);
                        Polynomial::name(symbol.0)
                    }
                    _ if self.variables.contains(&symbol.0) => Polynomial::name(symbol.0),
                    _ => return None,
                };
                Some(vec![(piece, value)])
            }
            Node::Sum(constant, terms) => {
                let mut cases = vec![(piece, Polynomial::constant(i128::from(*constant)))];
                for &(term, coefficient) in terms.iter() {
                    let coefficient = Ratio::whole(i128::from(coefficient));
                    cases = self.each(cases, term, |sum, value| {
                        sum.add(&value.scale(coefficient)?)
                    })?;
                }
                Some(cases)
            }
            Node::Product(factors) => {
                let mut cases = vec![(piece, Polynomial::constant(1))];
                for &factor in factors.iter() {
                    cases = self.each(cases, factor, Polynomial::mul)?;
                }
                Some(cases)
            }
            Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => {
                self.extreme(piece, *op == BinaryOp::Min, *a, *b)
            }
            Node::Binary(op @ (BinaryOp::Div | BinaryOp::Rem), a, b) => {
                let divisor = i128::from(arena.value(*b)?);
                let whole = arena.range(*a).non_negative();
                (divisor > 0 && whole).then_some(())?;
                self.divide(piece, *a, divisor, *op == BinaryOp::Div)
            }
            Node::Binary(BinaryOp::Shr, a, b) => {
                let amount = u32::try_from(arena.value(*b)?).ok()?;
                (amount < 63).then_some(())?;
                self.divide(piece, *a, 1 << amount, true)
            }
            Node::Binary(
                BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::LogicalAnd
                | BinaryOp::LogicalOr,
                ..,
            ) => {
                let mut cases = Vec::new();
                for holds in [false, true] {
                    let mut pieces = Vec::new();
                    self.assume(piece.clone(), id, holds, &mut pieces)?;
                    let value = Polynomial::constant(i128::from(holds));
                    cases.extend(pieces.into_iter().map(|piece| (piece, value.clone())));
                }
                Some(cases)
            }
            Node::Select(condition, a, b) => {
                let mut cases = Vec::new();
                for (holds, side) in [(true, *a), (false, *b)] {
                    let mut pieces = Vec::new();
                    self.assume(piece.clone(), *condition, holds, &mut pieces)?;
                    for piece in pieces {
                        cases.extend(self.value(piece, side)?);
                    }
                }
                Some(cases)
            }
            Node::Binary(
                BinaryOp::Shl
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Population
                | BinaryOp::LeadingZeros
                | BinaryOp::Reverse
                | BinaryOp::MulHigh,
                ..,
            )
            | Node::Table(..)
            | Node::Wrap(..) => None,
        }
    }

    fn each(
        &mut self,
        cases: Cases,
        part: Id,
        join: impl Fn(&Polynomial, &Polynomial) -> Option<Polynomial>,
    ) -> Option<Cases> {
        let mut joined = Vec::new();
        for (piece, so_far) in cases {
            for (piece, value) in self.value(piece, part)? {
                joined.push((piece, join(&so_far, &value)?));
            }
        }
        Some(joined)
    }

    fn extreme(&mut self, piece: Piece, least: bool, a: Id, b: Id) -> Option<Cases> {
        let mut cases = Vec::new();
        for (piece, left) in self.value(piece, a)? {
            for (mut piece, right) in self.value(piece, b)? {
                let name = self.fresh(None);
                let (a, b) = (self.bounds.range(&left), self.bounds.range(&right));
                self.bounds.set(name, a.extreme(b, least));
                piece.defined.push(Defined::Extreme(Extreme {
                    name,
                    least,
                    of: [left.clone(), right],
                }));
                piece.variables.push(name);
                cases.push((piece, Polynomial::name(name)));
            }
        }
        Some(cases)
    }

    /// Quotient (or remainder) of a division that rounds down.
    fn divide(&mut self, piece: Piece, a: Id, divisor: i128, quotient: bool) -> Option<Cases> {
        let mut cases = Vec::new();
        for (mut piece, value) in self.value(piece, a)? {
            let rest = self.fresh(Some(divisor - 1));
            let floor = self.fresh(None);
            let range = self.bounds.range(&value);
            let down = |end: Option<Ratio>| {
                let end = end?;
                Some(
                    end.numerator()
                        .div_euclid(end.denominator().checked_mul(divisor)?),
                )
            };
            let bound = Bound::new(down(range.lo), down(range.hi));
            self.bounds.set(floor, bound);
            let (rest_value, floor_value) = (Polynomial::name(rest), Polynomial::name(floor));
            // Both are fixed by the point, which is counted once still.
            piece.defined.push(Defined::Division(Division {
                value,
                divisor,
                floor,
                rest,
            }));
            piece.variables.extend([rest, floor]);
            cases.push((piece, if quotient { floor_value } else { rest_value }));
        }
        Some(cases)
    }
}
