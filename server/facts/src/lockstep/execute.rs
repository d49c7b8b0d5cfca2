//! Statements: active masks, early exits, loops, and the counts of branches.

use warplens_ir::{Expr, LoopKind, Stmt, StmtKind, VarId};

use super::numbers::{LANES, LaneValues};
use super::{Agreement, Attempt, Exits, LoopExits, Machine};
use crate::value::address;

impl Machine<'_> {
    /// Executes statements in order and removes lanes that leave from `active`.
    pub(super) fn all(&mut self, statements: &[Stmt], active: &mut u64) -> Attempt<()> {
        for statement in statements {
            if *active == 0 {
                break;
            }
            self.statement(statement, active)?;
        }
        Some(())
    }

    fn statement(&mut self, statement: &Stmt, active: &mut u64) -> Attempt<()> {
        self.step()?;
        if !Self::understood(&statement.kind) {
            return None;
        }
        match &statement.kind {
            StmtKind::Declare(id, init) => {
                let value = match init {
                    Some(init) => {
                        let value = self.eval(init, *active)?;
                        self.fitting(&value, &init.ty, &self.kernel.var(*id).ty)
                    }
                    None => LaneValues::UNKNOWN,
                };
                if self.is_memory(*id) {
                    self.forget_array(*id, *active);
                } else {
                    self.set(*id, &value, *active);
                }
            }
            StmtKind::Expr(expression) => {
                self.eval(expression, *active)?;
            }
            StmtKind::If(condition, then, otherwise) => {
                let value = self.eval(condition, *active)?;
                self.record_branch(condition, &value, *active);
                let (mut yes, mut no) = self.sides(&value, *active);
                let before = self.unsure;
                self.unsure = before | *active & !value.known;
                self.all(then, &mut yes)?;
                self.unsure |= before | *active & !value.known;
                self.all(otherwise, &mut no)?;
                *active = yes | no;
                self.unsure = before | self.possibly_gone();
            }
            StmtKind::Switch(path, branches) => {
                // The lowered comparisons of its cases are not branches of the source.
                let value = self.eval_unrecorded(path, *active)?;
                self.record_switch(path, &value, *active);
                self.all(branches, active)?;
            }
            StmtKind::Loop {
                kind,
                init,
                condition,
                step,
                body,
                ..
            } => {
                self.all(init, active)?;
                let head = (*kind, condition.as_ref(), step.as_ref());
                self.run_loop(statement, head, body, active)?;
            }
            StmtKind::Block(inner) => self.all(inner, active)?,
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.eval(value, *active)?;
                }
                let sure = *active & !self.unsure;
                let frame = self.frames.last_mut()?;
                frame.gone |= sure;
                frame.perhaps |= *active & !sure;
                *active &= !sure;
            }
            StmtKind::Break | StmtKind::Continue => {
                let sure = *active & !self.unsure;
                let exits = self.loops.last_mut()?;
                let reason = match statement.kind {
                    StmtKind::Break => &mut exits.broke,
                    _ => &mut exits.continued,
                };
                reason.gone |= sure;
                reason.perhaps |= *active & !sure;
                *active &= !sure;
            }
            StmtKind::Barrier | StmtKind::Unknown(_) => {}
        }
        Some(())
    }

    /// Lanes still active that may have left the function or the loop.
    fn possibly_gone(&self) -> u64 {
        let of_loop = self
            .loops
            .last()
            .map_or(0, |exits| exits.broke.perhaps | exits.continued.perhaps);
        self.frames.last().map_or(0, |frame| frame.perhaps) | of_loop
    }

    /// The mask of lanes that may take a branch, and the mask of those that may not take it.
    pub(super) fn sides(&self, value: &LaneValues, active: u64) -> (u64, u64) {
        let (truth, open) = (value.truth(), !value.known);
        (active & (truth | open), active & (!truth | open))
    }

    fn run_loop(
        &mut self,
        statement: &Stmt,
        (kind, condition, step): (LoopKind, Option<&Expr>, Option<&Expr>),
        body: &[Stmt],
        active: &mut u64,
    ) -> Attempt<()> {
        let entered = *active;
        let before = self.unsure;
        let mut moved = Vec::new();
        crate::loops::assigned_in(body, &mut moved);
        for part in condition.iter().chain(step.iter()) {
            crate::loops::assigned_by(part, &mut moved);
        }
        self.loops.push(LoopExits::default());
        let mut trips = [0i64; LANES];
        let mut running = entered;
        // Unsure lanes whose loop-carried variables are already unknown, and those that have since run one iteration.
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
                // Lanes with an unknown loop condition are unsure from here on.
                let open = running & !value.known & !self.unsure;
                self.unsure |= open;
                running = stay;
                self.forget(&moved, open & !forgotten);
                forgotten |= open;
                if let Some(exits) = self.loops.last_mut() {
                    exits.broke.perhaps |= open;
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
            let exits = self.loops.last_mut()?;
            running |= exits.continued.gone;
            exits.continued.gone = 0;
            if let Some(step) = step
                && running != 0
            {
                self.eval(step, running)?;
            }
        }
        let exits = self.loops.pop()?;
        let left = self.frames.last().copied().unwrap_or_default();
        let open = before | exits.broke.perhaps | exits.continued.perhaps | left.perhaps;
        let count = LaneValues {
            lanes: trips,
            known: !open,
            array: None,
        };
        self.record_loop(statement, &count, entered, iterations);
        *active = entered & !left.gone;
        self.unsure = before | self.possibly_gone();
        Some(())
    }

    /// Executes an inlined function; `return` ends it.
    pub(super) fn function(
        &mut self,
        statements: &[Stmt],
        result: Option<VarId>,
        active: u64,
    ) -> Attempt<LaneValues> {
        let before = self.unsure;
        self.frames.push(Exits::default());
        let loops = std::mem::take(&mut self.loops);
        let mut inside = active;
        self.all(statements, &mut inside)?;
        self.loops = loops;
        self.frames.pop();
        self.unsure = before;
        Some(match result {
            Some(id) if !self.kernel.var(id).escapes => self.variables[id.0 as usize],
            _ => LaneValues::UNKNOWN,
        })
    }

    /// Makes these variables and all local arrays unknown for some lanes.
    fn forget(&mut self, variables: &[VarId], lanes: u64) {
        if lanes == 0 {
            return;
        }
        for id in variables {
            self.variables[id.0 as usize].known &= !lanes;
        }
        self.local.retain(|(_, lane, _), _| lanes >> lane & 1 == 0);
    }

    pub(super) fn set(&mut self, id: VarId, value: &LaneValues, active: u64) {
        let unsure = self.unsure;
        let variable = &mut self.variables[id.0 as usize];
        variable.take(value, active);
        variable.known &= !(active & unsure);
    }
}

/// Recording of branches.
impl Machine<'_> {
    /// Records a branch on a condition.
    pub(super) fn record_branch(&mut self, condition: &Expr, value: &LaneValues, active: u64) {
        let truth = value.truth() & active;
        let unsure = active & (self.unsure | !value.known) != 0;
        let part = self.part(condition);
        let counts = self.record.branches.entry(part).or_default();
        counts.unsure |= unsure;
        counts.evaluations += 1.0;
        counts.taken += f64::from(u8::from(truth != 0));
        counts.split += f64::from(u8::from(truth != 0 && truth != active));
        counts.taken_threads += f64::from(truth.count_ones());
        counts.threads += f64::from(active.count_ones());
        counts.agree((truth == 0 || truth == active).then_some(i64::from(truth != 0)));
    }

    /// Records which case of a switch each lane takes.
    fn record_switch(&mut self, path: &Expr, value: &LaneValues, active: u64) {
        let unsure = active & (self.unsure | !value.known) != 0;
        self.record_values(self.part(path), value, active, unsure);
    }

    /// Records a loop's trip count per lane, and its iterations.
    fn record_loop(&mut self, statement: &Stmt, trips: &LaneValues, entered: u64, iterations: u32) {
        let unsure = entered & (self.unsure | !trips.known) != 0;
        self.record_values(self.part(statement), trips, entered, unsure);
        if let Some(counts) = self
            .record
            .branches
            .get_mut(&self.path.within(address(statement)).behind(0))
        {
            counts.iterations += f64::from(iterations);
            let lanes = super::evaluate::lanes_of(entered);
            counts.thread_iterations += lanes.map(|lane| trips.lanes[lane] as f64).sum::<f64>();
        }
    }

    /// Records a decision by value: lanes with different values diverge.
    fn record_values(&mut self, part: u64, value: &LaneValues, active: u64, unsure: bool) {
        let numbers = (0..self.lanes).filter(|lane| active >> lane & 1 == 1);
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for lane in numbers {
            least = least.min(value.lanes[lane]);
            most = most.max(value.lanes[lane]);
        }
        let counts = self.record.branches.entry(part).or_default();
        counts.unsure |= unsure;
        counts.evaluations += 1.0;
        counts.taken += f64::from(u8::from(most > 0));
        counts.threads += f64::from(active.count_ones());
        counts.split += f64::from(u8::from(least != most));
        counts.agree((least == most).then_some(most));
    }
}

impl super::BranchCounts {
    /// Merges the path of one more warp; `None` where its lanes diverge.
    fn agree(&mut self, path: Option<i64>) {
        self.agreement = match (self.agreement, path) {
            (Agreement::NoLane, Some(path)) => Agreement::One(path),
            (Agreement::One(before), Some(path)) if before == path => Agreement::One(before),
            _ => Agreement::Several,
        };
    }
}
