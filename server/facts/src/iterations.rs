//! Variables of a loop that follow no rule: what one iteration makes of them, put one behind the other.
//!
//! In: what an iteration leaves in each variable, as an expression of what it found in all of them. Out: values before each
//! iteration of a loop of few, and values that each iteration makes anew of the number of the iteration.

use warplens_ir::VarId;
use warplens_symbolic::{BinaryOp, Id, Symbol};

use crate::executor::Executor;
use crate::motion::{Look, Motion};
use crate::value::{Kind, Value};

/// Iterations that are followed one by one, at most.
const MOST_ITERATIONS: i64 = 8;

/// Variables that are put in place of each other for one loop, at most.
const MOST_VARIABLES: usize = 48;

impl Executor<'_> {
    /// Values before each iteration, of variables that are not followed otherwise.
    pub(crate) fn one_by_one(
        &mut self,
        entry: &[(VarId, Value)],
        look: &Look,
        mut motions: Vec<Motion>,
        trips: Id,
    ) -> Vec<Motion> {
        let Some(count) = self.arena.as_const(trips) else {
            return motions;
        };
        if !(1..=MOST_ITERATIONS).contains(&count) || entry.len() > MOST_VARIABLES {
            return motions;
        }
        let mut values: Vec<Option<Vec<Id>>> = (motions.iter().zip(entry).zip(&look.ends))
            .map(
                |((motion, (_, value)), end)| match (motion, value.kind, end) {
                    (
                        Motion::Lost(false, _),
                        Kind::Int(first) | Kind::Pointer(_, first),
                        Some(_),
                    ) => Some(vec![first]),
                    _ => None,
                },
            )
            .collect();
        for iteration in 0..count {
            let number = self.arena.constant(iteration);
            let found: Vec<Option<Id>> = (values.iter().zip(&motions).zip(entry))
                .map(|((own, motion), (_, value))| match own {
                    Some(own) => own.last().copied(),
                    None => self.integer_at(value, motion, number),
                })
                .collect();
            for (own, end) in values.iter_mut().zip(&look.ends) {
                let next = end.filter(|_| own.is_some());
                let next = next.and_then(|end| self.found_by(end, look, &found));
                match (next, own.as_mut()) {
                    (Some(next), Some(own)) => own.push(next),
                    // It depends on what is not followed.
                    _ => *own = None,
                }
            }
        }
        for (motion, own) in motions.iter_mut().zip(values) {
            let Some(own) = own else { continue };
            let numbers: Option<Vec<i64>> = own.iter().map(|id| self.arena.as_const(*id)).collect();
            *motion = match numbers {
                Some(numbers) => Motion::Listed(numbers),
                None => Motion::Each(own),
            };
        }
        motions
    }

    /// Variables that an iteration makes of others alone, whose motion is known.
    pub(crate) fn renewed(
        &mut self,
        entry: &[(VarId, Value)],
        look: &Look,
        motions: &mut [Motion],
    ) {
        if entry.len() > MOST_VARIABLES {
            return;
        }
        let lost: Vec<usize> = (0..entry.len())
            .filter(|at| matches!(motions[*at], Motion::Lost(false, _)))
            .filter(|at| !matches!(entry[*at].1.kind, Kind::Data))
            .collect();
        if lost.is_empty() {
            return;
        }
        let number = self.placeholder(u32::MAX - 1);
        let Some(symbol) = self.arena.as_symbol(number) else {
            return;
        };
        let known: Vec<Option<Id>> = entry
            .iter()
            .zip(motions.iter())
            .map(|((_, value), motion)| self.integer_at(value, motion, number))
            .collect();
        for at in lost {
            let Some(end) = look.ends[at] else {
                continue;
            };
            if let Some(made) = self.found_by(end, look, &known) {
                motions[at] = Motion::Renewed(made, symbol);
                continue;
            }
            // Up to a goal that only moves on: the last one, where the variable did not begin behind it.
            let goal = self.goal(end, look.stand_ins[at]);
            let made = goal.and_then(|goal| self.found_by(goal, look, &known));
            if let (Some(made), Kind::Int(first) | Kind::Pointer(_, first)) =
                (made, entry[at].1.kind)
                && self.never_falls(made, number)
            {
                let made = self.arena.binary(BinaryOp::Max, first, made);
                motions[at] = Motion::Renewed(made, symbol);
            }
        }
    }

    /// An integer, or how far a pointer is from where its array starts; `None` where it is not followed.
    pub(crate) fn integer_at(
        &mut self,
        value: &Value,
        motion: &Motion,
        iteration: Id,
    ) -> Option<Id> {
        if matches!(
            motion,
            Motion::Lost(..) | Motion::Geometric(..) | Motion::While { .. }
        ) {
            return None;
        }
        match self.moved(value, motion, iteration).kind {
            Kind::Int(id) | Kind::Pointer(_, id) => Some(id),
            Kind::Data => None,
        }
    }

    /// What an iteration leaves that finds these values.
    pub(crate) fn found_by(&mut self, end: Id, look: &Look, values: &[Option<Id>]) -> Option<Id> {
        let mut made = end;
        let mut open: Vec<(Symbol, Id)> = Vec::new();
        for (stand_in, value) in look.stand_ins.iter().zip(values) {
            let symbol = self.arena.as_symbol(*stand_in)?;
            if self.arena.depends_on(made, symbol) {
                open.push((symbol, (*value)?));
            }
        }
        // Within a loop around, values hold stand-ins themselves: one is put in place when no other that is still to come is
        // in its value.
        while !open.is_empty() {
            let free = open.iter().position(|(own, value)| {
                let mut others = open.iter().filter(|(other, _)| other != own);
                others.all(|(other, _)| !self.arena.depends_on(*value, *other))
            })?;
            let (symbol, value) = open.swap_remove(free);
            made = self.arena.substitute(made, symbol, value);
        }
        (!self.arena.has_opaque(made)).then_some(made)
    }

    /// The value before an iteration of a loop of few.
    pub(crate) fn one_of_each(&mut self, values: &[Id], iterations: Id) -> Id {
        let last = values.len() - 1;
        if let Some(number) = self.arena.as_const(iterations) {
            return values[usize::try_from(number).unwrap_or(0).min(last)];
        }
        let mut chosen = values[last];
        for (number, value) in values[..last].iter().enumerate().rev() {
            let number = self.arena.constant(number as i64);
            let is = self.arena.binary(BinaryOp::Eq, iterations, number);
            chosen = self.arena.select(is, *value, chosen);
        }
        chosen
    }

    /// The value before an iteration, which the one before made; before the first it is what the loop began with.
    pub(crate) fn made_before(
        &mut self,
        value: &Value,
        made: Id,
        symbol: Symbol,
        iterations: Id,
    ) -> Id {
        let (zero, one) = (self.arena.constant(0), self.arena.constant(1));
        let before = self.arena.sub(iterations, one);
        let before = self.arena.binary(BinaryOp::Max, before, zero);
        let made = self.arena.substitute(made, symbol, before);
        let (Kind::Int(first) | Kind::Pointer(_, first)) = value.kind else {
            return made;
        };
        let is_first = self.arena.binary(BinaryOp::Eq, iterations, zero);
        self.arena.select(is_first, first, made)
    }
}
