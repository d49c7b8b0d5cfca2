//! Statements of the kernel, executed symbolically.

use warplens_ir::{ExprKind, Reason, Stmt, StmtKind, Storage, Type, VarId, any_statement, stop};
use warplens_symbolic::{BinaryOp, Guard, Id};

use crate::chance;
use crate::context::Origin as GuardOrigin;
use crate::draft::{BarrierDraft, BranchDraft, From};
use crate::env::Changes;
use crate::executor::{Executor, Exits};
use crate::facts::{BranchKind, NotUnderstood, OpClass, Operator};
use crate::flow::{Draft, compute};
use crate::issued;
use crate::value::{Kind, Origin, Value, Variation};

/// A kernel that takes more evaluations than this is cut off, and says so.
const MOST_STEPS: u32 = 400_000;

impl Executor<'_> {
    /// Runs the kernel's body.
    pub(crate) fn execute(&mut self) {
        self.shared = self.shared_arrays();
        let kernel = self.kernel;
        self.block_of(&kernel.body);
    }

    /// Statements one behind the other; the context is afterwards what it was before.
    pub(crate) fn block_of(&mut self, statements: &[Stmt]) -> Exits {
        let outer = self.context;
        let mut all = self.no_exits();
        let mut live_env = None;
        for statement in statements {
            let exits = self.statement(statement);
            let left = self.leaving(exits);
            // Who went on to the next iteration, or left the loop, does not come to a later `return`.
            let elsewhere = self.or(all.broke, all.continued);
            let returned = if self.arena.as_const(elsewhere) == Some(0) {
                exits.returned
            } else {
                let here = self.arena.not(elsewhere);
                self.arena
                    .binary(BinaryOp::LogicalAnd, here, exits.returned)
            };
            all = self.join(all, Exits { returned, ..exits });
            match self.arena.as_const(left) {
                Some(0) => {}
                // The rest is never reached: it is in the source, but changes nothing.
                Some(_) => {
                    if live_env.is_none() {
                        live_env = Some(self.env.mark());
                    }
                    if self.dry == 0 {
                        let mut context = self.contexts[self.context].clone();
                        let guard = Guard {
                            condition: left,
                            holds: false,
                        };
                        let origin = GuardOrigin {
                            branch: usize::MAX,
                            early_exit: true,
                        };
                        context.guards.push((guard, origin));
                        self.context = self.push_context(context);
                    }
                }
                None => {
                    let branch = self.branches.len().saturating_sub(1);
                    let branch = self.exit_branch(statement, branch);
                    if self.dry == 0 && branch < self.branches.len() {
                        self.enter(left, false, branch, true);
                    }
                    if self.arena.as_const(all.continued) == Some(0) {
                        self.suppose_not(left);
                    }
                }
            }
        }
        if let Some(mark) = live_env {
            self.env.take_back(&mark);
        }
        self.context = outer;
        all
    }

    /// Who has left the innermost loop does not come back to what it assigns: from here on that is what it is for those who stay.
    fn suppose_not(&mut self, left: Id) {
        let stays = self.arena.not(left);
        let hold = self.arena.parts_that_hold(stays);
        for id in self.moving.clone() {
            let Some(value) = self.env.get(id) else {
                continue;
            };
            let (Kind::Int(known) | Kind::Pointer(_, known)) = value.kind else {
                continue;
            };
            let supposed = self.arena.supposing(known, &hold);
            if supposed != known {
                let value = value.holding(supposed);
                self.env.set(id, Some(value));
            }
        }
    }

    /// The branch through which a statement was left: the one whose condition has its place.
    fn exit_branch(&self, statement: &Stmt, last: usize) -> usize {
        self.branches
            .iter()
            .rposition(|branch| branch.site == statement.site)
            .unwrap_or(last)
    }

    fn statement(&mut self, statement: &Stmt) -> Exits {
        stop::check();
        self.dependence.enter();
        self.doubted = None;
        let exits = self.perform(statement);
        self.dependence.end();
        exits
    }

    fn perform(&mut self, statement: &Stmt) -> Exits {
        let mut exits = self.no_exits();
        if self.routines.failed() {
            return exits;
        }
        if self.steps > MOST_STEPS {
            if self.steps != u32::MAX {
                self.steps = u32::MAX;
                self.lost.push(NotUnderstood {
                    site: statement.site,
                    reason: Reason::TooMuch,
                });
            }
            return exits;
        }
        if let Some(exits) = self.in_rounds(statement) {
            return exits;
        }
        let line = statement.site.line;
        match &statement.kind {
            StmtKind::Declare(id, init) => {
                let value = init.as_ref().map(|init| {
                    let ty = &self.kernel.var(*id).ty;
                    let mut value = match &init.kind {
                        ExprKind::List(parts) if matches!(ty, Type::Array(..)) => {
                            self.list(parts, ty)
                        }
                        _ => self.eval(init),
                    };
                    value = self.converted(value, &init.ty, ty, line);
                    value.origin = self.dependence.result(None);
                    value
                });
                let memory = matches!(
                    self.kernel.var(*id).storage,
                    Storage::Shared | Storage::DynamicShared
                ) || matches!(self.kernel.var(*id).ty, Type::Array(..));
                let ty = &self.kernel.var(*id).ty;
                if !memory {
                    let none = Value::data(Variation::ANY);
                    self.keep_part(*id, 0, ty, value.as_ref().unwrap_or(&none));
                    self.env.set(*id, value);
                } else if let Some(value) = value.filter(|value| value.parts.is_some()) {
                    let array = self.array_of(*id);
                    let zero = self.arena.constant(0);
                    self.keep_element(array, zero, ty, &value);
                }
            }
            StmtKind::Expr(expression) => {
                let mut call = expression;
                while let ExprKind::Cast(_, inner) = &call.kind {
                    call = inner;
                }
                self.discarded = Some(call.site);
                self.eval(expression);
            }
            StmtKind::If(condition, then, otherwise) => {
                exits = self.branch(condition, then, otherwise);
            }
            StmtKind::Loop { .. } => exits = self.looping(statement),
            StmtKind::Block(inner) => exits = self.block_of(inner),
            StmtKind::Switch(way, inner) => exits = self.switch(way, inner),
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.eval(value);
                }
                exits.returned = self.arena.constant(1);
            }
            StmtKind::Break => exits.broke = self.arena.constant(1),
            StmtKind::Continue => exits.continued = self.arena.constant(1),
            StmtKind::Barrier => {
                self.routines.touches_memory();
                if self.dry == 0 {
                    *self
                        .counts
                        .entry((self.context, OpClass::Barrier))
                        .or_insert(0.0) += 1.0;
                    *self
                        .operators
                        .entry((self.context, line, Operator::Barrier))
                        .or_insert(0.0) += 1.0;
                    self.barriers.push(BarrierDraft {
                        site: statement.site,
                        context: self.context,
                    });
                    self.flow.push(Draft::Barrier { line });
                    self.dependence.region(line);
                }
            }
            StmtKind::Unknown(_) => {}
        }
        exits
    }

    /// What an initialisation makes of a value.
    pub(crate) fn converted(&mut self, value: Value, from: &Type, to: &Type, line: u32) -> Value {
        let mut value = value;
        self.conversion(from, to, line, &mut value);
        match (to, value.kind) {
            (Type::Int { .. }, Kind::Int(id)) => {
                let wrapped = self.convert(from, to, id);
                Value {
                    kind: Kind::Int(wrapped),
                    ..value
                }
            }
            (Type::Int { .. }, Kind::Data) => {
                let id = match self.whole_of(&value, to) {
                    Some(whole) => self.arena.constant(whole),
                    None => self.unknown(true, value.variation),
                };
                Value {
                    kind: Kind::Int(id),
                    real: None,
                    ..value
                }
            }
            (Type::Int { bits: 32.., .. }, Kind::Pointer(..)) => value,
            (Type::Int { .. }, Kind::Pointer(_, id)) => Value {
                kind: Kind::Int(id),
                ..value
            },
            (Type::Pointer(..) | Type::Unknown(_), _) => value,
            (_, Kind::Int(id)) => {
                let variation = self.variation_of(id);
                let number = self.real_of(&value);
                Value {
                    kind: Kind::Data,
                    variation,
                    loads: value.loads,
                    origin: None,
                    doubt: None,
                    parts: None,
                    real: number.and_then(|number| Value::real(number, to).real),
                }
            }
            (_, Kind::Data) => Value {
                real: value.real.and_then(|number| Value::real(number, to).real),
                ..value
            },
            _ => value,
        }
    }

    fn branch(
        &mut self,
        condition: &warplens_ir::Expr,
        then: &[Stmt],
        otherwise: &[Stmt],
    ) -> Exits {
        let line = condition.site.line;
        let of_switch = self.switch.filter(|(site, _)| *site == condition.site);
        self.dry += u32::from(of_switch.is_some());
        let mut value = self.eval(condition);
        self.dry -= u32::from(of_switch.is_some());
        let id = self.as_int(&value);
        let truth = self.arena.truth(id);
        let advance = self.advance_under(truth);
        let truth = advance.as_ref().map_or(truth, |advance| advance.holds);
        let outer = self.context;
        let mut probability = self.probability(condition, truth);
        if let (_, From::Default) = probability
            && let Some(turns) = self.turns.last()
            && chance::is_record(condition, then)
        {
            probability = (chance::record(*turns as f64), From::Record);
        }
        let (probability, probability_from) = probability;
        let branch = match of_switch {
            Some((_, branch)) => branch,
            None => self.new_branch(BranchDraft {
                site: condition.site,
                text: self.quote(condition.site),
                kind: BranchKind::If,
                condition: Some(truth),
                context: outer,
                inner: None,
                taken_operations: 0,
                other_operations: 0,
                probability,
                probability_from,
                why: None,
                origin: self.origin(condition),
            }),
        };
        if self.dry == 0 && of_switch.is_none() {
            *self.counts.entry((outer, OpClass::Branch)).or_insert(0.0) += 1.0;
            let issued = issued::branch(1.0);
            let needs = std::mem::take(&mut value.loads);
            compute(&mut self.flow, line, &issued, &needs, 1.0);
            self.dependence.issue(OpClass::Branch, &issued);
        }
        let decided = value.origin;
        self.dependence.region(line);
        let mark = self.env.mark();
        let start = self.static_operations;

        let saved = std::mem::take(&mut self.flow);
        let copies = (self.dry == 0).then(|| self.copies.clone());
        self.enter(truth, true, branch, false);
        let taken = self.context;
        if let Some(advance) = &advance {
            self.advance(advance);
        }
        let then_exits = self.block_of(then);
        let then_changes = self.env.take_back(&mark);
        let mark = self.env.mark();
        let then_flow = std::mem::take(&mut self.flow);
        let then_copies = copies.map(|copies| std::mem::replace(&mut self.copies, copies));
        let taken_operations = self.static_operations - start;
        self.context = outer;

        self.enter(truth, false, branch, false);
        self.dependence.region(line);
        let other = self.context;
        self.parted(condition, branch, (outer, taken, Some(other)));
        let other_exits = self.block_of(otherwise);
        let other_flow = std::mem::replace(&mut self.flow, saved);
        if let Some(copies) = then_copies {
            self.copies.meet(copies);
        }
        self.context = outer;
        if of_switch.is_none() {
            self.set_operations(
                branch,
                taken_operations,
                self.static_operations - start - taken_operations,
            );
        }
        if self.dry == 0 {
            self.flow.push(Draft::Branch {
                outer,
                taken,
                other,
                then: then_flow,
                otherwise: other_flow,
                line,
            });
        }
        let other_changes = self.env.take_back(&mark);
        let then_left = self.leaving(then_exits);
        let other_left = self.leaving(other_exits);
        self.dependence.region(line);
        self.merge(
            (truth, decided),
            then_changes,
            other_changes,
            self.arena.as_const(then_left) == Some(1),
            self.arena.as_const(other_left) == Some(1),
        );
        let not = self.arena.not(truth);
        let returns = [then_exits.returned, other_exits.returned];
        self.returns_by_data |= self.depends_on_data(truth)
            && returns
                .iter()
                .any(|&left| self.arena.as_const(left) != Some(0));
        let a = self.under(truth, then_exits);
        let b = self.under(not, other_exits);
        self.join(a, b)
    }

    /// A switch: the branches that stand for it are no branches of the source.
    fn switch(&mut self, way: &warplens_ir::Expr, branches: &[Stmt]) -> Exits {
        let (site, line) = (way.site, way.site.line);
        self.dry += 1;
        let value = self.eval(way);
        self.dry -= 1;
        let id = self.as_int(&value);
        let (probability, probability_from) = self.probability(way, id);
        let branch = self.new_branch(BranchDraft {
            site,
            text: self.quote(site),
            kind: BranchKind::Switch,
            condition: Some(id),
            context: self.context,
            inner: None,
            taken_operations: 0,
            other_operations: 0,
            probability,
            probability_from,
            why: None,
            origin: self.origin(way),
        });
        if self.dry == 0 {
            *self
                .counts
                .entry((self.context, OpClass::Branch))
                .or_insert(0.0) += 1.0;
            let issued = issued::jump_table();
            compute(&mut self.flow, line, &issued, &[], 1.0);
        }
        let start = self.static_operations;
        let around = self.switch.replace((site, branch));
        let exits = self.block_of(branches);
        self.switch = around;
        self.set_operations(branch, self.static_operations - start, 0);
        exits
    }

    /// Joins the variables of two sides; a side that was left does not count.
    fn merge(
        &mut self,
        (condition, decided): (Id, Origin),
        then_changes: Changes,
        other_changes: Changes,
        then_left: bool,
        other_left: bool,
    ) {
        if then_left {
            self.env.make(other_changes);
            return;
        }
        if other_left {
            self.env.make(then_changes);
            return;
        }
        let mut changed: Vec<VarId> = then_changes
            .keys()
            .chain(other_changes.keys())
            .copied()
            .collect();
        changed.sort_unstable();
        changed.dedup();
        for id in changed {
            let before = self.env.get(id);
            let taken = then_changes
                .get(&id)
                .map_or(before, Option::as_ref)
                .cloned();
            let other = other_changes
                .get(&id)
                .map_or(before, Option::as_ref)
                .cloned();
            let (Some(a), Some(b)) = (&taken, &other) else {
                // Known on one side only: read there for the first time, or undefined on the other.
                self.env.set(id, other.or(taken));
                continue;
            };
            let origin = if a.origin == b.origin {
                a.origin
            } else {
                self.dependence.meet([a.origin, b.origin, decided])
            };
            if a.is_like(b) {
                let same = Value {
                    origin,
                    ..a.clone()
                };
                self.env.set(id, Some(same));
                continue;
            }
            let mut loads = a.loads.clone();
            loads.extend(&b.loads);
            loads.sort_unstable();
            loads.dedup();
            let (a, b) = (a.clone(), b.clone());
            let kind = match (a.kind, b.kind) {
                (Kind::Int(x), Kind::Int(y)) => Kind::Int(self.arena.select(condition, x, y)),
                (Kind::Pointer(p, x), Kind::Pointer(q, y)) => self
                    .chosen(condition, (p, x), (q, y))
                    .map_or(Kind::Data, |(array, at)| Kind::Pointer(array, at)),
                _ => Kind::Data,
            };
            let variation = a.variation | b.variation | self.variation_of(condition);
            let parts = self.chosen_pieces(condition, &a, &b);
            let merged = Value {
                kind,
                loads,
                variation,
                origin,
                doubt: None,
                parts,
                real: None,
            };
            self.env.set(id, Some(merged));
        }
    }

    /// A device function's statements; `return` ends it.
    pub(crate) fn inline(
        &mut self,
        statements: &[Stmt],
        result: Option<VarId>,
        ty: &Type,
    ) -> Value {
        let outer = std::mem::take(&mut self.returns_by_data);
        // Lanes that return from the function come back.
        let moving = std::mem::take(&mut self.moving);
        self.block_of(statements);
        self.moving = moving;
        let data = std::mem::replace(&mut self.returns_by_data, outer);
        let result = match result {
            // Which of several returns a lane took is not followed.
            Some(result) if !returns_once(statements) => {
                let unknown = if ty.is_int() {
                    let id = self.unknown(data, Variation::ANY);
                    Value::int(id)
                } else {
                    Value::data(Variation::ANY)
                };
                self.env.set(result, Some(unknown));
                Some(result)
            }
            result => result,
        };
        match result {
            Some(result) if crate::elements::is_aggregate(ty) => {
                let parts = self.pieces_of(result, 0, ty);
                let value = self.env.get(result).cloned();
                let value = value.unwrap_or_else(|| Value::data(Variation::ANY));
                Value { parts, ..value }
            }
            Some(result) => self.env.get(result).cloned().unwrap_or_else(|| {
                if ty.is_int() {
                    let id = self.unknown(false, Variation::ANY);
                    Value::int(id)
                } else {
                    Value::data(Variation::ANY)
                }
            }),
            None => Value::data(Variation::NONE),
        }
    }
}

/// True where nothing leaves a function but its end: no `return`, or one as its last statement.
fn returns_once(statements: &[Stmt]) -> bool {
    let mut count = 0;
    any_statement(statements, &mut |statement| {
        count += usize::from(matches!(statement.kind, StmtKind::Return(_)));
        false
    });
    match count {
        0 => true,
        1 => matches!(
            statements.last().map(|last| &last.kind),
            Some(StmtKind::Return(_))
        ),
        _ => false,
    }
}
