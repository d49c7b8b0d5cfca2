//! Statements: who executes them.

use warplens_ir::{Expr, LoopKind, Stmt, StmtKind, VarId};

use super::numbers::{LANES, Value};
use super::{Agreement, Done, Exits, Machine, Turn};
use crate::value::address;

impl Machine<'_> {
    /// Statements one behind the other; lanes that leave are taken out of `here`.
    pub(super) fn all(&mut self, statements: &[Stmt], here: &mut u64) -> Done<()> {
        for statement in statements {
            if *here == 0 {
                break;
            }
            self.statement(statement, here)?;
        }
        Some(())
    }

    fn statement(&mut self, statement: &Stmt, here: &mut u64) -> Done<()> {
        self.step()?;
        if !Self::understood(&statement.kind) {
            return None;
        }
        match &statement.kind {
            StmtKind::Declare(id, init) => {
                let value = match init {
                    Some(init) => {
                        let value = self.eval(init, *here)?;
                        self.fitting(&value, &init.ty, &self.kernel.var(*id).ty)
                    }
                    None => Value::UNKNOWN,
                };
                if self.is_memory(*id) {
                    self.forget_array(*id, *here);
                } else {
                    self.set(*id, &value, *here);
                }
            }
            StmtKind::Expr(expression) => {
                self.eval(expression, *here)?;
            }
            StmtKind::If(condition, then, otherwise) => {
                let value = self.eval(condition, *here)?;
                self.went(condition, &value, *here);
                let (mut yes, mut no) = self.sides(&value, *here);
                let before = self.unsure;
                self.unsure = before | *here & !value.known;
                self.all(then, &mut yes)?;
                self.unsure |= before | *here & !value.known;
                self.all(otherwise, &mut no)?;
                *here = yes | no;
                self.unsure = before | self.perhaps_gone();
            }
            StmtKind::Switch(way, branches) => {
                // Its value is read from a variable: its tests are no branches of the source.
                let value = self.silently(way, *here)?;
                self.ways(way, &value, *here);
                self.all(branches, here)?;
            }
            StmtKind::Loop {
                kind,
                init,
                condition,
                step,
                body,
                ..
            } => {
                self.all(init, here)?;
                let head = (*kind, condition.as_ref(), step.as_ref());
                self.looping(statement, head, body, here)?;
            }
            StmtKind::Block(inner) => self.all(inner, here)?,
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.eval(value, *here)?;
                }
                let sure = *here & !self.unsure;
                let frame = self.frames.last_mut()?;
                frame.gone |= sure;
                frame.perhaps |= *here & !sure;
                *here &= !sure;
            }
            StmtKind::Break | StmtKind::Continue => {
                let sure = *here & !self.unsure;
                let turn = self.turns.last_mut()?;
                let exits = match statement.kind {
                    StmtKind::Break => &mut turn.broke,
                    _ => &mut turn.continued,
                };
                exits.gone |= sure;
                exits.perhaps |= *here & !sure;
                *here &= !sure;
            }
            StmtKind::Barrier | StmtKind::Unknown(_) => {}
        }
        Some(())
    }

    /// Lanes that are still executed and may have left the function or the loop.
    fn perhaps_gone(&self) -> u64 {
        let of_turn = self
            .turns
            .last()
            .map_or(0, |turn| turn.broke.perhaps | turn.continued.perhaps);
        self.frames.last().map_or(0, |frame| frame.perhaps) | of_turn
    }

    /// Lanes for which a condition holds or may hold, and those for which it does not or may not.
    pub(super) fn sides(&self, value: &Value, here: u64) -> (u64, u64) {
        let (truth, open) = (value.truth(), !value.known);
        (here & (truth | open), here & (!truth | open))
    }

    fn looping(
        &mut self,
        statement: &Stmt,
        (kind, condition, step): (LoopKind, Option<&Expr>, Option<&Expr>),
        body: &[Stmt],
        here: &mut u64,
    ) -> Done<()> {
        let came = *here;
        let before = self.unsure;
        let mut moved = Vec::new();
        crate::loops::assigned_in(body, &mut moved);
        for part in condition.iter().chain(step.iter()) {
            crate::loops::assigned_by(part, &mut moved);
        }
        self.turns.push(Turn::default());
        let mut trips = [0i64; LANES];
        let mut running = came;
        // Unsure lanes of which everything that the loop moves is forgotten, and those that then went round once.
        let (mut forgotten, mut round) = (0u64, 0u64);
        let mut first = kind == LoopKind::Do;
        let mut iterations = 0u32;
        loop {
            let unsure = running & self.unsure & !forgotten;
            self.forget(&moved, unsure);
            forgotten |= unsure;
            if !first && let Some(condition) = condition {
                let value = self.eval(condition, running)?;
                let (stay, _) = self.sides(&value, running);
                // Whoever may go on or not is unsure from here on.
                let open = running & !value.known & !self.unsure;
                self.unsure |= open;
                running = stay;
                self.forget(&moved, open & !forgotten);
                forgotten |= open;
                if let Some(turn) = self.turns.last_mut() {
                    turn.broke.perhaps |= open;
                }
            }
            first = false;
            if running & !self.unsure == 0 && running & !round == 0 {
                break;
            }
            if iterations == 0 && crate::loops::never_ends(condition, body, &moved) {
                return None;
            }
            round |= running & forgotten;
            self.step()?;
            iterations += 1;
            for (lane, trips) in trips.iter_mut().enumerate() {
                *trips += i64::from(running >> lane & 1 == 1);
            }
            self.all(body, &mut running)?;
            let turn = self.turns.last_mut()?;
            running |= turn.continued.gone;
            turn.continued.gone = 0;
            if let Some(step) = step
                && running != 0
            {
                self.eval(step, running)?;
            }
        }
        let turn = self.turns.pop()?;
        let left = self.frames.last().copied().unwrap_or_default();
        let open = before | turn.broke.perhaps | turn.continued.perhaps | left.perhaps;
        let count = Value {
            lanes: trips,
            known: !open,
            array: None,
        };
        self.went_round(statement, &count, came, iterations);
        *here = came & !left.gone;
        self.unsure = before | self.perhaps_gone();
        Some(())
    }

    /// A function's statements in place of its call; `return` ends it.
    pub(super) fn function(
        &mut self,
        statements: &[Stmt],
        result: Option<VarId>,
        here: u64,
    ) -> Done<Value> {
        let before = self.unsure;
        self.frames.push(Exits::default());
        let turns = std::mem::take(&mut self.turns);
        let mut inside = here;
        self.all(statements, &mut inside)?;
        self.turns = turns;
        self.frames.pop();
        self.unsure = before;
        Some(match result {
            Some(id) if !self.kernel.var(id).escapes => self.variables[id.0 as usize],
            _ => Value::UNKNOWN,
        })
    }

    /// What these variables, and arrays of a thread's own, hold for some lanes is no longer known.
    fn forget(&mut self, variables: &[VarId], lanes: u64) {
        if lanes == 0 {
            return;
        }
        for id in variables {
            self.variables[id.0 as usize].known &= !lanes;
        }
        self.local.retain(|(_, lane, _), _| lanes >> lane & 1 == 0);
    }

    pub(super) fn set(&mut self, id: VarId, value: &Value, here: u64) {
        let unsure = self.unsure;
        let variable = &mut self.variables[id.0 as usize];
        variable.take(value, here);
        variable.known &= !(here & unsure);
    }
}

/// Recording of branches.
impl Machine<'_> {
    /// A branch on a condition.
    pub(super) fn went(&mut self, condition: &Expr, value: &Value, here: u64) {
        let truth = value.truth() & here;
        let unsure = here & (self.unsure | !value.known) != 0;
        let part = self.part(condition);
        let ways = self.record.branches.entry(part).or_default();
        ways.unsure |= unsure;
        ways.evaluations += 1.0;
        ways.taken += f64::from(u8::from(truth != 0));
        ways.split += f64::from(u8::from(truth != 0 && truth != here));
        ways.taken_threads += f64::from(truth.count_ones());
        ways.threads += f64::from(here.count_ones());
        ways.agree((truth == 0 || truth == here).then_some(i64::from(truth != 0)));
    }

    /// A switch: which case each lane goes to.
    fn ways(&mut self, way: &Expr, value: &Value, here: u64) {
        let unsure = here & (self.unsure | !value.known) != 0;
        self.numbered(self.part(way), value, here, unsure);
    }

    fn went_round(&mut self, statement: &Stmt, trips: &Value, came: u64, iterations: u32) {
        let unsure = came & (self.unsure | !trips.known) != 0;
        self.numbered(self.part(statement), trips, came, unsure);
        if let Some(ways) = self
            .record
            .branches
            .get_mut(&self.way.within(address(statement)).behind(0))
        {
            ways.iterations += f64::from(iterations);
            let lanes = super::evaluate::lanes_of(came);
            ways.thread_iterations += lanes.map(|lane| trips.lanes[lane] as f64).sum::<f64>();
        }
    }

    fn numbered(&mut self, part: u64, value: &Value, here: u64, unsure: bool) {
        let numbers = (0..self.lanes).filter(|lane| here >> lane & 1 == 1);
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for lane in numbers {
            least = least.min(value.lanes[lane]);
            most = most.max(value.lanes[lane]);
        }
        let ways = self.record.branches.entry(part).or_default();
        ways.unsure |= unsure;
        ways.evaluations += 1.0;
        ways.taken += f64::from(u8::from(most > 0));
        ways.threads += f64::from(here.count_ones());
        ways.split += f64::from(u8::from(least != most));
        ways.agree((least == most).then_some(most));
    }
}

impl super::Ways {
    /// One warp more went a way, or its lanes went several.
    fn agree(&mut self, way: Option<i64>) {
        self.agreement = match (self.agreement, way) {
            (Agreement::Nobody, Some(way)) => Agreement::One(way),
            (Agreement::One(before), Some(way)) if before == way => Agreement::One(before),
            _ => Agreement::Several,
        };
    }
}
