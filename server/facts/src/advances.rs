//! Variables that run ahead of a loop: those that an iteration moves on while there is something left, and those that it moves
//! up to a goal.
//!
//! In: what one iteration leaves in each variable. Out: `if (fetch < n) { …; ++fetch; }` moves evenly wherever its condition
//! holds, for once that fails it fails for good; `for (; fetch < n && fetch < k + 4; ++fetch)` leaves its goal, or what was
//! there before where that is farther.

use warplens_ir::VarId;
use warplens_symbolic::{BinaryOp, Id, Node};

use crate::executor::Executor;
use crate::motion::{Advance, Look, Motion};
use crate::value::{Kind, Value};

/// Operators inside of each other that are looked through, at most.
const MOST_DEPTH: u32 = 8;

impl Executor<'_> {
    /// Finds the variables that move on under a condition that, once it fails, fails for good.
    pub(crate) fn advances(
        &mut self,
        entry: &[(VarId, Value)],
        look: &Look,
        motions: &mut [Motion],
    ) {
        let mut found: Vec<(usize, Id, i64)> = Vec::new();
        for (at, motion) in motions.iter().enumerate() {
            let (Motion::Lost(..), Some(end)) = (motion, look.ends[at]) else {
                continue;
            };
            let stand_in = look.stand_ins[at];
            let Node::Select(going, moved, kept) = *self.arena.node(end) else {
                continue;
            };
            let moved = self.without_wraps(moved);
            let by = self.arena.sub(moved, stand_in);
            if kept == stand_in
                && let Some(by) = self.arena.as_const(by)
            {
                found.push((at, going, by));
            }
        }
        for &(at, going, by) in &found {
            let together: Vec<(Id, i64)> = found
                .iter()
                .filter(|(_, of, _)| *of == going)
                .map(|(at, _, by)| (look.stand_ins[*at], *by))
                .collect();
            if self.fails_for_good(going, &together, MOST_DEPTH) {
                let apart = match entry[at].1.kind {
                    Kind::Int(from) | Kind::Pointer(_, from) => self.arena.varies_in_warp(from),
                    Kind::Data => true,
                };
                let uniform = !apart && !self.arena.varies_in_warp(going);
                motions[at] = Motion::While { by, going, uniform };
            }
        }
    }

    /// True where a condition that fails once fails in all iterations behind it, while these variables move on.
    fn fails_for_good(&mut self, going: Id, moving: &[(Id, i64)], depth: u32) -> bool {
        if self.arena.has_opaque(going) || depth == 0 {
            return false;
        }
        if !self.arena.has_placeholder(going) {
            return true;
        }
        let going = self.without_wraps(going);
        match *self.arena.node(going) {
            Node::Binary(BinaryOp::LogicalAnd, a, b) => {
                self.fails_for_good(a, moving, depth - 1)
                    && self.fails_for_good(b, moving, depth - 1)
            }
            Node::Binary(BinaryOp::Lt | BinaryOp::Le, left, right) => {
                let mut rest = self.arena.sub(left, right);
                let mut way = 0i64;
                for &(stand_in, by) in moving {
                    let Some((start, factor)) = self.linear(rest, stand_in) else {
                        return false;
                    };
                    let Some(factor) = self.arena.as_const(factor) else {
                        return false;
                    };
                    way = way.saturating_add(factor.saturating_mul(by));
                    rest = start;
                }
                // It gets nearer to failing with each step, whatever else is in it.
                way > 0 && !self.arena.has_placeholder(rest)
            }
            _ => false,
        }
    }

    /// Notes what holds inside of the conditions of one iteration; `counter` is its number.
    pub(crate) fn note_advances(
        &mut self,
        entry: &[(VarId, Value)],
        look: &Look,
        motions: &[Motion],
        counter: Id,
    ) {
        let mut noted: Vec<Id> = Vec::new();
        for motion in motions {
            let Motion::While { going, .. } = motion else {
                continue;
            };
            if noted.contains(going) {
                continue;
            }
            noted.push(*going);
            let (mut tested, mut holds) = (*going, self.without_wraps(*going));
            let mut values = Vec::new();
            for (at, motion) in motions.iter().enumerate() {
                let Motion::While { by, going: of, .. } = motion else {
                    continue;
                };
                let now = self.env.get(entry[at].0).map(|value| value.kind);
                let (Some(from), Some(now), Some(symbol)) = (
                    place(entry[at].1.kind),
                    now.and_then(place),
                    self.arena.as_symbol(look.stand_ins[at]),
                ) else {
                    continue;
                };
                if of != going {
                    continue;
                }
                let way = self.arena.scale(counter, *by);
                let value = self.arena.add(from, way);
                tested = self.arena.substitute(tested, symbol, now);
                holds = self.arena.substitute(holds, symbol, value);
                values.push((entry[at].0, now, value));
            }
            self.advances.push(Advance {
                tested,
                holds,
                values,
            });
        }
    }

    /// A condition as a function of the iteration, where variables move on under it.
    pub(crate) fn advance_under(&self, truth: Id) -> Option<Advance> {
        let known = self.advances.iter().rfind(|known| known.tested == truth)?;
        // Those that the iteration has changed before are others.
        let same = known.values.iter().all(|(id, now, _)| {
            let value = self.env.get(*id).map(|value| value.kind);
            value.and_then(place) == Some(*now)
        });
        same.then(|| known.clone())
    }

    /// What the variables are where the condition holds.
    pub(crate) fn advance(&mut self, known: &Advance) {
        for (id, _, value) in &known.values {
            let now = self.env.get(*id).map(|now| now.holding(*value));
            self.env.set(*id, now);
        }
    }

    /// Up to where an iteration moves a variable that lies before it: `goal` of `variable + max(goal - variable, 0)`.
    pub(crate) fn goal(&mut self, end: Id, stand_in: Id) -> Option<Id> {
        let way = self.arena.sub(end, stand_in);
        let Node::Binary(BinaryOp::Max, a, b) = *self.arena.node(way) else {
            return None;
        };
        let left = match (self.arena.as_const(a), self.arena.as_const(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => return None,
        };
        let goal = self.plus(left, stand_in, MOST_DEPTH)?;
        let symbol = self.arena.as_symbol(stand_in)?;
        (!self.arena.depends_on(goal, symbol)).then_some(goal)
    }

    /// A sum, into what is the least or the most of several.
    fn plus(&mut self, value: Id, more: Id, depth: u32) -> Option<Id> {
        match *self.arena.node(value) {
            Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) if depth > 0 => {
                let a = self.plus(a, more, depth - 1)?;
                let b = self.plus(b, more, depth - 1)?;
                Some(self.arena.binary(op, a, b))
            }
            _ => Some(self.arena.add(value, more)),
        }
    }

    /// True where a value is never less in a later iteration.
    pub(crate) fn never_falls(&mut self, value: Id, iteration: Id) -> bool {
        let Some(symbol) = self.arena.as_symbol(iteration) else {
            return false;
        };
        if !self.arena.depends_on(value, symbol) {
            return true;
        }
        match *self.arena.node(value) {
            Node::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => {
                self.never_falls(a, iteration) && self.never_falls(b, iteration)
            }
            _ => {
                let moved = self.linear(value, iteration);
                moved
                    .and_then(|(_, by)| self.arena.as_const(by))
                    .is_some_and(|by| by >= 0)
            }
        }
    }
}

/// An integer, or how far a pointer is from where its array starts.
fn place(kind: Kind) -> Option<Id> {
    match kind {
        Kind::Int(id) | Kind::Pointer(_, id) => Some(id),
        Kind::Data => None,
    }
}
