//! Variables of a loop that come back to what they began with: the stages of a pipeline, two buffers that change places.
//!
//! In: what an iteration leaves in each variable, as an expression of what it found in all of them. Out: the values that a
//! variable goes through, again and again.

use warplens_ir::VarId;
use warplens_symbolic::{BinaryOp, Id, Node, Symbol};

use crate::executor::Executor;
use crate::motion::{Look, Motion};
use crate::value::{Kind, Value};

/// Values that a variable goes through again and again, at most: the stages of a pipeline.
const MOST_STAGES: usize = 64;

/// What is put in place of variables to find them, at most.
const MOST_SUBSTITUTIONS: u32 = 1024;

/// A variable that may come back.
struct Turning {
    /// Its place among the variables of the loop.
    at: usize,
    /// Before each iteration.
    values: Vec<Id>,
}

impl Executor<'_> {
    /// Variables that come back to their first values together, made of each other, of what stays, and of counters where only
    /// a remainder of these decides.
    pub(crate) fn cycles(&mut self, entry: &[(VarId, Value)], look: &Look, motions: &mut [Motion]) {
        let mut turning = Vec::new();
        for (at, ((_, value), motion)) in entry.iter().zip(motions.iter()).enumerate() {
            if let (Motion::Lost(false, _), Kind::Int(first) | Kind::Pointer(_, first), Some(_)) =
                (motion, value.kind, look.ends[at])
                && !self.arena.has_opaque(first)
                && turning.len() < MOST_STAGES
            {
                let values = vec![first];
                turning.push(Turning { at, values });
            }
        }
        let mut left = MOST_SUBSTITUTIONS;
        while !turning.is_empty() {
            for one in &mut turning {
                one.values.truncate(1);
            }
            let before = turning.len();
            let periods: Vec<Option<i64>> = turning
                .iter()
                .map(|one| self.period(look.ends[one.at], entry, look, motions))
                .collect();
            let mut periods_of = periods.iter();
            turning.retain(|_| periods_of.next().is_some_and(Option::is_some));
            if turning.len() < before {
                continue;
            }
            let period = periods.into_iter().flatten().try_fold(1, common_multiple);
            match period
                .map(|period| self.turn(entry, look, motions, &mut turning, period, &mut left))
            {
                Some(true) => {
                    for one in turning {
                        motions[one.at] = Motion::Cyclic(one.values);
                    }
                    return;
                }
                Some(false) if turning.len() < before => {}
                _ => return,
            }
        }
    }

    /// Follows variables from iteration to iteration; true where all come back to their first values. Those that do not are
    /// left out.
    fn turn(
        &mut self,
        entry: &[(VarId, Value)],
        look: &Look,
        motions: &[Motion],
        turning: &mut Vec<Turning>,
        period: i64,
        left: &mut u32,
    ) -> bool {
        for step in 0..MOST_STAGES {
            let number = self.arena.constant(step as i64);
            let mut found: Vec<Option<Id>> = Vec::with_capacity(entry.len());
            for ((_, value), motion) in entry.iter().zip(motions) {
                found.push(match motion {
                    Motion::Still | Motion::Linear(_) => self.integer_at(value, motion, number),
                    _ => None,
                });
            }
            for one in turning.iter() {
                found[one.at] = one.values.last().copied();
            }
            let mut next = Vec::with_capacity(turning.len());
            for one in turning.iter() {
                let Some(rest) = left.checked_sub(1) else {
                    turning.clear();
                    return false;
                };
                *left = rest;
                let end = look.ends[one.at];
                next.push(end.and_then(|end| self.found_by(end, look, &found)));
            }
            if next.iter().any(Option::is_none) {
                // What depends on anything else is none of them; the others are followed anew.
                let mut known = next.iter();
                turning.retain(|_| known.next().is_some_and(Option::is_some));
                return false;
            }
            let back = next
                .iter()
                .zip(&*turning)
                .all(|(next, one)| *next == one.values.first().copied());
            if back && (step as i64 + 1) % period == 0 {
                return true;
            }
            for (next, one) in next.into_iter().zip(turning.iter_mut()) {
                one.values.extend(next);
            }
        }
        // What was there before the loop alone never comes back.
        turning.retain(|one| one.values[1..].contains(&one.values[0]));
        false
    }

    /// The value before an iteration of a variable that comes back.
    pub(crate) fn one_of_stages(&mut self, values: &[Id], iterations: Id) -> Id {
        let length = self.arena.constant(values.len() as i64);
        let at = self.arena.binary(BinaryOp::Rem, iterations, length);
        // Stages one after the other are a sum.
        let mut steps = Vec::with_capacity(values.len());
        for pair in values.windows(2) {
            steps.push(self.arena.sub(pair[1], pair[0]));
        }
        if let Some(&step) = steps.first()
            && let Some(step) = self.arena.as_const(step)
            && steps
                .iter()
                .all(|other| self.arena.as_const(*other) == Some(step))
        {
            let moved = self.arena.scale(at, step);
            return self.arena.add(values[0], moved);
        }
        let numbers: Option<Vec<i64>> = values.iter().map(|id| self.arena.as_const(*id)).collect();
        match numbers {
            Some(numbers) => self.arena.table(at, &numbers),
            None => self.one_of_each(values, at),
        }
    }

    /// After how many iterations the counters in an expression are the same to it again; `None` where they never are.
    fn period(
        &mut self,
        end: Option<Id>,
        entry: &[(VarId, Value)],
        look: &Look,
        motions: &[Motion],
    ) -> Option<i64> {
        let end = end?;
        let mut period = 1;
        for (((_, value), motion), stand_in) in entry.iter().zip(motions).zip(&look.stand_ins) {
            let (Motion::Linear(by), Some(counter)) = (motion, self.arena.as_symbol(*stand_in))
            else {
                continue;
            };
            if !self.arena.depends_on(end, counter) {
                continue;
            }
            let Kind::Int(first) = value.kind else {
                return None;
            };
            let (first, by) = (self.arena.as_const(first)?, self.arena.as_const(*by)?);
            if first < 0 || by <= 0 {
                return None;
            }
            period = common_multiple(period, self.period_of(end, counter, by)?)?;
        }
        Some(period)
    }

    /// The same of one counter, which moves by that number: remainders alone may look at it.
    fn period_of(&self, id: Id, counter: Symbol, by: i64) -> Option<i64> {
        if !self.arena.depends_on(id, counter) {
            return Some(1);
        }
        let all = |parts: &[Id]| {
            parts.iter().try_fold(1, |period, part| {
                common_multiple(period, self.period_of(*part, counter, by)?)
            })
        };
        match self.arena.node(id) {
            Node::Binary(op, value, of) => match self.remainder_of(*op, *of) {
                Some(of) if self.counts_up(*value, counter) => Some(of / common_divisor(of, by)),
                _ => all(&[*value, *of]),
            },
            Node::Select(condition, a, b) => all(&[*condition, *a, *b]),
            Node::Sum(_, terms) => all(&terms.iter().map(|term| term.0).collect::<Vec<_>>()),
            Node::Product(factors) => all(factors),
            Node::Wrap(_, _, inner) | Node::Table(inner, _) => all(&[*inner]),
            Node::Const(_) | Node::Symbol(_) => None,
        }
    }

    /// What an operation gives the remainder of a division by.
    pub(crate) fn remainder_of(&self, op: BinaryOp, by: Id) -> Option<i64> {
        let by = self.arena.as_const(by).filter(|by| *by > 0)?;
        match op {
            BinaryOp::Rem => Some(by),
            BinaryOp::And => by.checked_add(1).filter(|of| of.count_ones() == 1),
            _ => None,
        }
    }

    /// True for a counter, and for a whole number of times it plus something that is not negative.
    fn counts_up(&self, id: Id, counter: Symbol) -> bool {
        match self.arena.node(id) {
            Node::Symbol(symbol) => *symbol == counter,
            Node::Wrap(_, _, inner) => self.counts_up(*inner, counter),
            Node::Sum(constant, terms) => {
                *constant >= 0
                    && terms.iter().all(|(term, times)| {
                        let is_counter = self.arena.as_symbol(*term) == Some(counter);
                        let other = !self.arena.depends_on(*term, counter)
                            && self.arena.range(*term).non_negative();
                        *times >= 0 && (is_counter || other)
                    })
            }
            _ => false,
        }
    }
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The least number that both divide, where the values that a variable may go through are not more than that.
fn common_multiple(a: i64, b: i64) -> Option<i64> {
    let all = a.checked_mul(b / common_divisor(a, b))?;
    (all <= MOST_STAGES as i64).then_some(all)
}
