//! Variables of a loop that count round a ring, from wherever they begin: `if (++stage == STAGES) stage = 0;`.
//!
//! In: what an iteration leaves in a variable, as an expression of what it found. Out: by how much it moves on, and the length of
//! the ring. What `cycles` lists value by value, from a first one that is known, is here a remainder: so that a loop that goes on where
//! another iteration of the loop around it ended is followed too.

use warplens_ir::VarId;
use warplens_symbolic::{BinaryOp, Id, Node};

use crate::executor::Executor;
use crate::motion::{Look, Motion};
use crate::value::{Kind, Value};

/// Places of a ring, at most.
const MOST: i64 = 1 << 16;

impl Executor<'_> {
    /// Finds the variables that count round a ring among those that are not followed otherwise.
    pub(crate) fn rings(&mut self, entry: &[(VarId, Value)], look: &Look, motions: &mut [Motion]) {
        for (at, ((_, value), motion)) in entry.iter().zip(motions.iter_mut()).enumerate() {
            let (Motion::Lost(false, _), Kind::Int(first), Some(end)) =
                (&*motion, value.kind, look.ends[at])
            else {
                continue;
            };
            let Some((by, of)) = self.ring(end, look.stand_ins[at]) else {
                continue;
            };
            // Where the loop around is only looked at, what it begins with is seen when that is executed.
            let range = self.arena.range(first);
            if range.non_negative() && range.hi < of || self.arena.has_placeholder(first) {
                *motion = Motion::Ring(by, of);
            }
        }
    }

    /// The step and the length of a ring that an expression goes one step along, from a place on it.
    fn ring(&mut self, end: Id, from: Id) -> Option<(Id, i64)> {
        let end = self.without_wraps(end);
        match self.arena.node(end).clone() {
            Node::Binary(op, moved, of) => {
                let of = self.remainder_of(op, of).filter(|of| *of <= MOST)?;
                let by = self.arena.sub(moved, from);
                let follows = !self.arena.has_placeholder(by)
                    && self.arena.opaque(by).is_none()
                    && self.arena.range(by).non_negative();
                follows.then_some((by, of))
            }
            Node::Select(condition, a, b) => {
                let (wraps, of) = self.wraps_at(condition, from)?;
                let (start, next) = if wraps { (a, b) } else { (b, a) };
                let by = self.arena.sub(next, from);
                let one = self.arena.as_const(by) == Some(1);
                let ring = one && self.arena.as_const(start) == Some(0);
                (ring && (2..=MOST).contains(&of)).then_some((by, of))
            }
            _ => None,
        }
    }

    /// Of a condition on a place of a ring, which holds at its last place alone, or everywhere else: which of the two, and the length.
    fn wraps_at(&mut self, condition: Id, from: Id) -> Option<(bool, i64)> {
        let Node::Binary(op, left, right) = self.arena.node(condition).clone() else {
            return None;
        };
        let difference = self.arena.sub(left, right);
        // place · factor + constant against 0.
        let (constant, terms) = self.arena.terms(difference);
        let [(term, factor)] = terms.as_slice() else {
            return None;
        };
        if *term != from {
            return None;
        }
        match (op, factor) {
            (BinaryOp::Eq, 1 | -1) => Some((true, 1 - constant * factor)),
            (BinaryOp::Ne, 1 | -1) => Some((false, 1 - constant * factor)),
            // place + constant < 0: all but the last.
            (BinaryOp::Lt, 1) => Some((false, 1 - constant)),
            (BinaryOp::Le, 1) => Some((false, 2 - constant)),
            // constant - place < 0: the last alone.
            (BinaryOp::Lt, -1) => Some((true, constant + 2)),
            (BinaryOp::Le, -1) => Some((true, constant + 1)),
            _ => None,
        }
    }

    /// The place after a number of iterations.
    pub(crate) fn along_ring(&mut self, first: Id, (by, of): (Id, i64), iterations: Id) -> Id {
        let length = self.arena.constant(of);
        // Whole rounds are none.
        let by = match self.arena.as_const(by) {
            Some(by) => self.arena.constant(by % of),
            None => by,
        };
        let way = self.arena.mul(by, iterations);
        let moved = self.arena.add(first, way);
        self.arena.binary(BinaryOp::Rem, moved, length)
    }
}
