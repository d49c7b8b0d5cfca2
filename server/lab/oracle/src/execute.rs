//! Statements, each for the lanes that are there.

use crate::Error;
use crate::lexer::Position;
use crate::machine::{Data, Machine, RunResult, ThreadValues};
use crate::tally::{BranchKind, Class};
use crate::tree::{Expr, Loop, Stmt};
use crate::types::Type;

fn none(mask: &[bool]) -> bool {
    !mask.contains(&true)
}

impl Machine<'_> {
    /// Runs a statement; lanes that leave (by `return`, `break`, `continue`) are taken out of `active`.
    pub(crate) fn execute(&mut self, statement: &Stmt, active: &mut Vec<bool>) -> RunResult<()> {
        if none(active) {
            return Ok(());
        }
        self.step(Position::default(), active.len())?;
        match statement {
            Stmt::Declare(declaration) => self.declare(declaration, active),
            Stmt::Expr(expression) => {
                let top = self.top;
                self.eval(expression, active)?;
                self.top = top;
                Ok(())
            }
            Stmt::Block(body, false) => {
                for statement in body {
                    self.execute(statement, active)?;
                }
                Ok(())
            }
            Stmt::Block(body, true) => self.deeper(Position::default(), |machine| {
                machine.block_of(body, active)
            }),
            Stmt::If(condition, then, otherwise) => {
                let truth = self.truth(condition, active)?;
                self.fork(condition.place, BranchKind::If, active, &truth, false);
                self.count(Class::Branch, active, 1);
                let mut yes: Vec<bool> = active
                    .iter()
                    .zip(&truth)
                    .map(|(a, t)| *a && *t != 0)
                    .collect();
                let mut no: Vec<bool> = active
                    .iter()
                    .zip(&truth)
                    .map(|(a, t)| *a && *t == 0)
                    .collect();
                let came = active.clone();
                self.deeper(condition.place, |machine| {
                    let branch = (condition.place, BranchKind::If);
                    machine.way(branch, &came, &mut yes, |machine, yes| {
                        machine.scoped(then, yes)
                    })?;
                    match otherwise {
                        Some(otherwise) => machine.way(branch, &came, &mut no, |machine, no| {
                            machine.scoped(otherwise, no)
                        }),
                        None => Ok(()),
                    }
                })?;
                for (lane, here) in active.iter_mut().enumerate() {
                    *here = yes[lane] || no[lane];
                }
                Ok(())
            }
            Stmt::Chosen(condition, then, otherwise) => {
                self.silent += 1;
                let truth = self.truth(condition, active);
                self.silent -= 1;
                // The same for every lane.
                let holds = truth?.first().is_some_and(|truth| *truth != 0);
                match (holds, otherwise) {
                    (true, _) => self.scoped(then, active),
                    (false, Some(otherwise)) => self.scoped(otherwise, active),
                    (false, None) => Ok(()),
                }
            }
            Stmt::Loop(body) => self.deeper(body.place, |machine| machine.looping(body, active)),
            Stmt::Switch(value, parts) => {
                self.deeper(value.place, |machine| machine.switch(value, parts, active))
            }
            Stmt::Break => leave(self.breaks.last_mut(), active),
            Stmt::Continue => leave(self.continues.last_mut(), active),
            Stmt::Return(value, place) => self.returning(value.as_ref(), *place, active),
        }
    }

    /// Executes what some of the lanes that came to a branch do.
    fn way(
        &mut self,
        (place, fork): (Position, BranchKind),
        came: &[bool],
        lanes: &mut Vec<bool>,
        run: impl FnOnce(&mut Self, &mut Vec<bool>) -> RunResult<()>,
    ) -> RunResult<()> {
        self.splits.open(came, lanes, self.launch.warp);
        let outcome = run(self, lanes);
        let wasted = self.splits.close();
        if wasted > 0.0 {
            self.counter.wasted((place, self.chain, fork), wasted);
        }
        outcome
    }

    fn scoped(&mut self, statement: &Stmt, active: &mut Vec<bool>) -> RunResult<()> {
        let (names, top) = (self.scopes.len(), self.top);
        self.execute(statement, active)?;
        self.scopes.truncate(names);
        self.top = top;
        Ok(())
    }

    fn returning(
        &mut self,
        value: Option<&Expr>,
        place: Position,
        active: &mut [bool],
    ) -> RunResult<()> {
        if let Some(value) = value {
            let wanted = self
                .frames
                .last()
                .and_then(|frame| frame.result_type.clone());
            let top = self.top;
            let found = match wanted {
                Some(ty) => {
                    let found = self.eval_as(value, &ty, active)?;
                    self.converted_counting(found, &ty, active, value)?
                }
                None => self.eval(value, active)?,
            };
            self.top = top;
            if let Some(frame) = self.frames.last_mut() {
                match &mut frame.result {
                    None => frame.result = Some(found),
                    Some(before) => merge(before, &found, active)
                        .ok_or_else(|| Error::new(place, "results of several types"))?,
                }
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            for (gone, here) in frame.returned.iter_mut().zip(active.iter_mut()) {
                *gone |= *here;
                *here = false;
            }
        }
        Ok(())
    }

    fn looping(&mut self, looping: &Loop, active: &mut Vec<bool>) -> RunResult<()> {
        let (names, top) = (self.scopes.len(), self.top);
        if let Some(init) = &looping.init {
            self.execute(init, active)?;
        }
        let came = active.clone();
        let mut trips = vec![0u64; self.lanes];
        self.breaks.push(vec![false; self.lanes]);
        self.continues.push(vec![false; self.lanes]);
        let mut running = came.clone();
        let mut first = true;
        let place = looping
            .condition
            .as_ref()
            .map_or(looping.place, |c| c.place);
        loop {
            if !(looping.body_first && first)
                && let Some(condition) = &looping.condition
            {
                let truth = self.tested(condition, &running)?;
                if !looping.body_first {
                    let leaving: Vec<bool> = running
                        .iter()
                        .zip(&truth)
                        .map(|(here, holds)| *here && *holds == 0)
                        .collect();
                    self.exit_test = true;
                    self.count(Class::Branch, &leaving, 1);
                    self.exit_test = false;
                }
                for (here, holds) in running.iter_mut().zip(truth) {
                    *here &= holds != 0;
                }
            }
            first = false;
            if none(&running) {
                break;
            }
            self.step(place, self.lanes)?;
            for (trip, here) in trips.iter_mut().zip(&running) {
                *trip += u64::from(*here);
            }
            self.count(Class::Branch, &running, 1);
            self.way(
                (place, BranchKind::Loop),
                &came,
                &mut running,
                |machine, running| machine.scoped(&looping.body, running),
            )?;
            if let Some(continues) = self.continues.last_mut() {
                for (here, again) in running.iter_mut().zip(continues.iter_mut()) {
                    *here |= *again;
                    *again = false;
                }
            }
            if let Some(step) = &looping.step
                && !none(&running)
            {
                let top = self.top;
                self.eval(step, &running)?;
                self.top = top;
            }
        }
        self.breaks.pop();
        self.continues.pop();
        self.fork(place, BranchKind::Loop, &came, &trips, true);
        self.scopes.truncate(names);
        self.top = top;
        let returned = self.frames.last().map(|frame| frame.returned.clone());
        for (lane, here) in active.iter_mut().enumerate() {
            *here = came[lane] && !returned.as_ref().is_some_and(|gone| gone[lane]);
        }
        // Lanes that left an outer loop from within this one are not here either: `break` and `continue`
        // belong to the innermost loop, so there are none.
        Ok(())
    }

    /// A loop's condition. Counts for lanes that leave by it are kept apart.
    fn tested(&mut self, condition: &Expr, running: &[bool]) -> RunResult<Vec<u64>> {
        // Evaluated twice, once for its value alone: that must not change anything.
        if !pure(condition) {
            return self.truth(condition, running);
        }
        self.silent += 1;
        let truth = self.truth(condition, running);
        self.silent -= 1;
        let truth = truth?;
        for exit in [false, true] {
            let lanes: Vec<bool> = running
                .iter()
                .zip(&truth)
                .map(|(here, holds)| *here && (*holds == 0) == exit)
                .collect();
            // Requests and branches are those of the whole warp: they are noted once, by the first.
            if !none(&lanes) && !has_accesses(condition) {
                self.exit_test = exit;
                self.truth(condition, &lanes)?;
                self.exit_test = false;
            }
        }
        if has_accesses(condition) {
            return self.truth(condition, running);
        }
        Ok(truth)
    }

    fn switch(
        &mut self,
        value: &Expr,
        parts: &[(Vec<Option<Expr>>, Vec<Stmt>)],
        active: &mut [bool],
    ) -> RunResult<()> {
        let found = self.eval(value, active)?;
        self.count(Class::Branch, active, 1);
        let Data::Words(words) = &found.data else {
            return Err(Error::new(value.place, "a `switch` over no number"));
        };
        let mut target: Vec<Option<usize>> = vec![None; self.lanes];
        let mut default = None;
        for (which, (labels, _)) in parts.iter().enumerate() {
            for label in labels {
                match label {
                    None => default = Some(which),
                    Some(label) => {
                        self.silent += 1;
                        let all = vec![true; self.lanes];
                        let known = self.eval(label, &all);
                        self.silent -= 1;
                        if let Data::Words(known) = known?.data {
                            for lane in 0..self.lanes {
                                if words[lane] == known[0] {
                                    target[lane] = Some(which);
                                }
                            }
                        }
                    }
                }
            }
        }
        for to in &mut target {
            *to = to.or(default);
        }
        let ways: Vec<u64> = target
            .iter()
            .map(|to| to.map_or(0, |to| to as u64 + 1))
            .collect();
        self.fork(value.place, BranchKind::Switch, active, &ways, true);
        self.breaks.push(vec![false; self.lanes]);
        let (names, top) = (self.scopes.len(), self.top);
        let mut running = vec![false; self.lanes];
        for (which, (_, body)) in parts.iter().enumerate() {
            for lane in 0..self.lanes {
                running[lane] |= active[lane] && target[lane] == Some(which);
            }
            self.way(
                (value.place, BranchKind::Switch),
                active,
                &mut running,
                |machine, running| {
                    body.iter()
                        .try_for_each(|statement| machine.execute(statement, running))
                },
            )?;
        }
        self.scopes.truncate(names);
        self.top = top;
        let left = self.breaks.pop().unwrap_or_default();
        for lane in 0..self.lanes {
            active[lane] &= running[lane] || left[lane] || target[lane].is_none();
        }
        Ok(())
    }

    pub(crate) fn truth(&mut self, condition: &Expr, mask: &[bool]) -> RunResult<Vec<u64>> {
        let top = self.top;
        let value = self.eval(condition, mask)?;
        self.top = top;
        self.as_truth(value, condition.place)
    }

    pub(crate) fn as_truth(&mut self, value: ThreadValues, place: Position) -> RunResult<Vec<u64>> {
        match (&value.ty, value.data) {
            (Type::Scalar(scalar), Data::Words(words)) if scalar.is_float() => Ok(words
                .iter()
                .map(|&word| u64::from(crate::types::float_of(*scalar, word) != 0.0))
                .collect()),
            (_, Data::Words(words)) => Ok(words.iter().map(|&word| u64::from(word != 0)).collect()),
            _ => Err(Error::new(place, "a condition that is no number")),
        }
    }
}

fn leave(to: Option<&mut Vec<bool>>, active: &mut [bool]) -> RunResult<()> {
    match to {
        Some(to) => {
            for (to, here) in to.iter_mut().zip(active.iter_mut()) {
                *to |= *here;
                *here = false;
            }
            Ok(())
        }
        None => Err(Error::new(Position::default(), "a jump out of no loop")),
    }
}

/// Takes over the lanes of the mask; `None` where the types differ.
pub(crate) fn merge(into: &mut ThreadValues, from: &ThreadValues, mask: &[bool]) -> Option<()> {
    let size = into.ty.size() as usize;
    match (&mut into.data, &from.data) {
        (Data::Words(a), Data::Words(b)) => {
            for (lane, here) in mask.iter().enumerate() {
                if *here {
                    a[lane] = b[lane];
                }
            }
        }
        (Data::Bytes(a), Data::Bytes(b)) if a.len() == b.len() => {
            for (lane, here) in mask.iter().enumerate() {
                if *here {
                    a[lane * size..][..size].copy_from_slice(&b[lane * size..][..size]);
                }
            }
        }
        _ => return None,
    }
    Some(())
}

/// Evaluating it twice is as good as once.
fn pure(expression: &Expr) -> bool {
    use crate::tree::Kind;
    match &expression.kind {
        Kind::Int(..) | Kind::Float(..) | Kind::Name(_) | Kind::SizeOf(_) | Kind::SizeOfType(_) => {
            true
        }
        Kind::Negate(a)
        | Kind::Plus(a)
        | Kind::Not(a)
        | Kind::Invert(a)
        | Kind::Deref(a)
        | Kind::AddressOf(a)
        | Kind::Cast(_, a)
        | Kind::Field(a, _) => pure(a),
        Kind::Binary(_, a, b) | Kind::Logic(_, a, b) | Kind::Comma(a, b) | Kind::Index(a, b) => {
            pure(a) && pure(b)
        }
        Kind::Select(a, b, c) => pure(a) && pure(b) && pure(c),
        Kind::List(_, parts) => parts.iter().all(pure),
        Kind::Call(name, _, parts) => {
            parts.iter().all(pure)
                && (name.starts_with("get_") || matches!(&**name, "min" | "max" | "abs"))
        }
        Kind::Assign(..) | Kind::Step(..) | Kind::Method(..) => false,
    }
}

/// May read memory, or fork.
fn has_accesses(expression: &Expr) -> bool {
    use crate::tree::Kind;
    match &expression.kind {
        Kind::Index(..) | Kind::Deref(_) | Kind::Select(..) => true,
        Kind::Negate(a)
        | Kind::Plus(a)
        | Kind::Not(a)
        | Kind::Invert(a)
        | Kind::AddressOf(a)
        | Kind::Cast(_, a)
        | Kind::Field(a, _) => has_accesses(a),
        Kind::Binary(_, a, b) | Kind::Logic(_, a, b) | Kind::Comma(a, b) => {
            has_accesses(a) || has_accesses(b)
        }
        Kind::List(_, parts) | Kind::Call(_, _, parts) => parts.iter().any(has_accesses),
        _ => false,
    }
}
