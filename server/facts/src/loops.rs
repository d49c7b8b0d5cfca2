//! Loops: how values move from one iteration to the next, and how many there are.

use crate::why::{Unbounded, Why};
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;
use warplens_ir::{
    Expr, ExprKind, LoopKind, Runs, Stmt, StmtKind, Type, VarId, Visitor, any_in_iteration,
    any_statement, walk,
};
use warplens_machine::Mix;
use warplens_symbolic::{BinaryOp, Id, Interval, Node, Symbol, SymbolKind};

use crate::cases::MOST_TURNS;
use crate::context::{Origin as GuardOrigin, assumed};
use crate::draft::{BranchDraft, From};
use crate::executor::{Executor, Exits};
use crate::facts::{Assumed, Assumption, BranchKind, OpClass, TripCount};
use crate::flow::{Draft, compute};
use crate::issued;
use crate::motion::{Look, Motion};
use crate::value::{ArrayId, Kind, Origin, Value, Variation};
use crate::waits::only_waits;

/// Iterations of a loop whose bound is not known.
pub(crate) const GUESSED_TRIPS: i64 = 16;
/// A value that follows no line is listed for at most this many iterations.
const LONGEST_TABLE: usize = 4096;

/// Numbers from here on are no drafts of loads: each is what a variable waits for at the beginning of an iteration, of which only the
/// iteration's end tells which loads that are.
const HANDED: usize = usize::MAX / 2;

/// The keys of placeholders for any of a number of iterations end here: no variable has that number.
const ANY_ITERATION: u32 = u32::MAX - 1;

impl Executor<'_> {
    pub(crate) fn looping(&mut self, statement: &Stmt) -> Exits {
        let StmtKind::Loop {
            kind,
            init,
            condition,
            step,
            body,
            unroll,
        } = &statement.kind
        else {
            return self.no_exits();
        };
        for before in init {
            self.block_of_one(before);
        }
        let own_memory = self.own_memory();
        let mut assigned = Vec::new();
        assigned_in(body, &mut assigned);
        if let Some(step) = step {
            assigned_by(step, &mut assigned);
        }
        if let Some(condition) = condition {
            assigned_by(condition, &mut assigned);
        }
        assigned.sort_unstable();
        assigned.dedup();
        // What the loop assigns is another number in each iteration.
        let entry: Vec<(VarId, Value)> = assigned
            .iter()
            .map(|&id| {
                (
                    id,
                    Value {
                        real: None,
                        ..self.variable(id)
                    },
                )
            })
            .collect();
        for (id, value) in &entry {
            if matches!(value.kind, Kind::Data) {
                self.env.set(*id, Some(value.clone()));
            }
        }
        let around = std::mem::replace(&mut self.moving, assigned);
        let (mut motions, ending, look) =
            self.motions(*kind, condition.as_ref(), step.as_ref(), body, &entry);
        // What a branch changes before it leaves is not in the state after one iteration.
        let mut leaving = Leaving::default();
        leaving.search(body);
        for ((id, _), motion) in entry.iter().zip(&mut motions) {
            if leaving.continued.contains(id) {
                let data = ending.continues_by_data || matches!(motion, Motion::Lost(true, _));
                *motion = Motion::Lost(data, false);
            }
        }

        // The condition as a function of the iteration.
        let iteration = self.placeholder(u32::MAX);
        let (motions, trips) =
            match self.left_after(ending, condition.as_ref(), &entry, &look, &motions) {
                Some(trips) => (motions, trips),
                None => self.trips(
                    (*kind, body),
                    condition.as_ref(),
                    &entry,
                    motions,
                    iteration,
                ),
            };
        // Where it ends by a `break` alone the number of its iterations says when.
        let ends_by_break = ending.may_break && is_endless(condition.as_ref());
        let ends_by_break = ends_by_break && matches!(trips, Trips::Known { .. });
        let has_break = ending.may_break && !ends_by_break;
        let trips = self.ended(trips, condition.as_ref(), &entry, &motions);
        let trips = match trips {
            // Waiting is no work: who waits is suspended, not busy.
            Trips::Unknown(why, _) if only_waits(condition.as_ref(), body) => {
                Trips::Unknown(why, 1)
            }
            trips => trips,
        };
        let motions = match &trips {
            Trips::Known { trips, .. } if !ending.may_break => {
                self.one_by_one(&entry, &look, motions, *trips)
            }
            _ => motions,
        };

        let outer = self.context;
        let (extent, exact_trips) = match &trips {
            Trips::Known { most, same, .. } => (*most, *same),
            Trips::Unknown(_, guess) => (*guess, true),
        };
        let loose = matches!(&trips, Trips::Known { trips, .. } if assumed(&self.arena, *trips));
        let counter = self.counter(statement, extent, loose);
        let Some(symbol) = self.arena.as_symbol(counter) else {
            return self.no_exits();
        };

        if let Trips::Known { trips, .. } = &trips {
            self.open_counter(symbol, *trips);
        }

        let line = statement.site.line;
        let why = match &trips {
            Trips::Unknown(Unbounded::Endless, _) if !has_break => Some(Why::NothingEnds),
            Trips::Unknown(Unbounded::Endless, _) if ending.by_data => Some(Why::BreakByData),
            Trips::Unknown(why, _) => Some(Why::Loop(*why)),
            Trips::Known { .. } if has_break && ending.by_data => Some(Why::MayBreakByData),
            Trips::Known { .. } if has_break => Some(Why::MayBreak),
            Trips::Known { pinned: true, .. } => Some(Why::IterationsAssumed),
            Trips::Known { .. } => None,
        };
        let trips_id = match &trips {
            Trips::Known { trips, .. } => Some(*trips),
            Trips::Unknown(..) => None,
        };
        let branch = self.new_branch(BranchDraft {
            site: statement.site,
            text: self.quote(statement.site),
            kind: BranchKind::Loop,
            condition: trips_id,
            context: outer,
            inner: None,
            taken_operations: 0,
            other_operations: 0,
            probability: 1.0,
            probability_from: From::Default,
            why: why.clone(),
            origin: self.origin(statement),
        });
        if self.dry == 0
            && let Trips::Unknown(_, guess) = &trips
        {
            self.guesses.push(Assumption {
                symbol: Assumed::Trips(self.quote(statement.site)),
                value: guess.to_string(),
                source: "default".to_owned(),
            });
        }

        // One iteration, with everything that moves as a function of the counter.
        self.dependence.enter_loop(statement.site);
        let copied = self.handed_by_copies(&entry, body);
        for ((id, value), motion) in entry.iter().zip(&motions) {
            let mut now = self.moved(value, motion, counter);
            if !matches!(motion, Motion::Still) {
                now.origin = self.dependence.entry(*id, value.origin);
            }
            let handed = copied.iter().filter(|(of, _)| of == id);
            now.loads.extend(handed.map(|(_, handed)| *handed));
            self.env.set(*id, Some(now));
        }
        let advances = self.advances.len();
        self.note_advances(&entry, &look, &motions, counter);
        let saved = std::mem::take(&mut self.flow);
        if self.dry == 0 {
            self.copies.enter_loop();
            self.products.enter_loop();
        }
        self.forget_elements(body);
        let start = self.static_operations;
        let mut inner = self.context;
        if self.dry == 0 {
            let mut context = self.contexts[outer].clone();
            context.counters.push(symbol);
            context.loop_depth += 1;
            context.innermost = Some(symbol);
            if loose && let Some(trips) = trips_id {
                context.loose.push((symbol, trips));
            }
            if let Some(why) = &why {
                context.why.get_or_insert(why.clone());
            }
            inner = self.push_context(context);
            self.context = inner;
            if !exact_trips && let Trips::Known { trips, going, .. } = &trips {
                let within = self.within(*going, *trips, iteration, counter);
                self.contexts[inner].guards.push((
                    warplens_symbolic::Guard {
                        condition: within,
                        holds: true,
                    },
                    GuardOrigin {
                        branch,
                        early_exit: false,
                    },
                ));
            }
        }
        if *kind == LoopKind::For
            && let Some(condition) = condition
        {
            self.tested(condition);
        }
        self.turns.push(extent);
        let exits = self.block_of(body);
        self.moving = around;
        self.turns.pop();
        self.advances.truncate(advances);
        if let Some(step) = step {
            self.eval(step);
        }
        if *kind == LoopKind::Do
            && let Some(condition) = condition
        {
            self.eval(condition);
        }
        if self.dry == 0 {
            *self.counts.entry((inner, OpClass::Branch)).or_insert(0.0) += 1.0;
            // An unrolled loop jumps back once for its copies; one unrolled whole does not.
            let iterations = trips_id.and_then(|id| self.arena.as_const(id));
            let back = match (unroll, iterations) {
                (Some(0), Some(_)) => 0.0,
                (Some(factor), _) if *factor > 1 => 1.0 / *factor as f64,
                _ => 1.0,
            };
            let issued = issued::branch(back);
            compute(&mut self.flow, line, &issued, &[], 1.0);
            self.dependence.issue(OpClass::Branch, &issued);
        }
        if self.dry == 0 {
            self.wait_for_earlier_copies(line);
            self.leave_products();
        }
        let mut body_flow = std::mem::replace(&mut self.flow, saved);
        let handed_on = self.handed_on(&copied);
        wait_for_handed(&mut body_flow, &handed_on);
        self.context = outer;
        self.parted(statement, branch, (outer, inner, None));
        if let Some(draft) = self.branches.get_mut(branch) {
            draft.inner = Some(inner);
            draft.taken_operations = self.static_operations - start;
        }
        if self.dry == 0 {
            let count = match trips_id {
                None => TripCount::Unknown,
                Some(id) if self.arena.as_const(id).is_some() => TripCount::Number,
                Some(id) => TripCount::Expression(self.arena.text(id).into()),
            };
            self.flow.push(Draft::Loop {
                outer,
                inner,
                known: trips_id.is_some() && !has_break,
                count,
                body: body_flow,
                line,
            });
        }

        let origins = self.carried(&entry, (outer, inner), (counter, symbol));
        // What a variable holds behind a loop that data ends depends on that data.
        let ends_by_data = ending.by_data || matches!(&trips, Trips::Unknown(Unbounded::ByData, _));
        // After the last iteration. The test that fails may move a variable once more.
        let mut by_test = Vec::new();
        if *kind == LoopKind::For
            && let Some(condition) = condition
        {
            assigned_by(condition, &mut by_test);
        }
        let together = match trips_id {
            Some(trips) => !self.arena.varies_in_warp(trips),
            None => !ending.leaves_apart,
        };
        for ((id, value), motion) in entry.iter().zip(&motions) {
            let after = match (trips_id, ending.may_break || by_test.contains(id)) {
                _ if leaving.broke.contains(id) => {
                    let data = ends_by_data || matches!(motion, Motion::Lost(true, _));
                    self.moved(value, &Motion::Lost(data, false), counter)
                }
                (Some(_), false) if matches!(motion, Motion::Lost(_, true)) && !together => {
                    let data = matches!(motion, Motion::Lost(true, _));
                    self.moved(value, &Motion::Lost(data, false), counter)
                }
                (Some(trips), false) => self.moved(value, motion, trips),
                _ => match motion {
                    Motion::Still => value.clone(),
                    Motion::Lost(data, uniform) => {
                        let uniform = *uniform && together;
                        let motion = Motion::Lost(*data || ends_by_data, uniform);
                        self.moved(value, &motion, counter)
                    }
                    _ => self.moved(value, &Motion::Lost(ends_by_data, false), counter),
                },
            };
            let origin = origins.get(id).copied().unwrap_or(after.origin);
            let mut after = Value { origin, ..after };
            if let Some((_, handed)) = copied.iter().find(|(of, _)| of == id) {
                after.loads.extend(&handed_on[handed]);
            }
            self.env.set(*id, Some(after));
        }
        if let (Some(condition), Some(_), LoopKind::For, false) =
            (condition, trips_id, *kind, ending.may_break)
        {
            self.count_last_test(condition);
        }
        if ending.may_break {
            self.forget_elements(body);
        } else if let (Some(before), Some(trips)) = (own_memory, trips_id) {
            self.go_through(statement, trips, &entry, before);
        }
        let mut left = self.no_exits();
        // Lanes that returned from some iteration stay away; which iteration is not followed.
        if self.arena.as_const(exits.returned) != Some(0) {
            left.returned = match trips_id {
                Some(trips) if !self.arena.depends_on(exits.returned, symbol) => {
                    // The first iteration decides, for lanes that have one.
                    let zero = self.arena.constant(0);
                    let enters = self.arena.binary(BinaryOp::Lt, zero, trips);
                    self.arena
                        .binary(BinaryOp::LogicalAnd, enters, exits.returned)
                }
                _ => {
                    let data = ends_by_data || self.depends_on_data(exits.returned);
                    let uniform = !self.arena.varies_in_warp(exits.returned);
                    self.unknown(data, Variation::unknown(uniform))
                }
            };
        }
        left
    }

    /// Copies that a later iteration waits for: their latency is over when the iterations between are.
    fn wait_for_earlier_copies(&mut self, line: u32) {
        let pending = self.copies.leave_loop();
        let mut waited = Vec::with_capacity(pending.len());
        for (draft, ahead) in pending {
            if let Some(copy) = self.accesses.get_mut(draft) {
                copy.ahead = Some(ahead);
                waited.push(draft);
            }
        }
        if !waited.is_empty() {
            compute(&mut self.flow, line, &Mix::default(), &waited, 0.0);
        }
    }

    /// Ends the loop in the graph of dependences: where each variable comes from behind it.
    fn carried(
        &mut self,
        entry: &[(VarId, Value)],
        contexts: (usize, usize),
        (iteration, counter): (Id, Symbol),
    ) -> FxHashMap<VarId, Origin> {
        let values: Vec<_> = entry
            .iter()
            .map(|(id, _)| {
                let origin = self.env.get(*id).and_then(|value| value.origin);
                (*id, self.kernel.var(*id).name.clone(), origin)
            })
            .collect();
        let (arena, arrays) = (&mut self.arena, &self.arrays);
        let mut next = |address| {
            let one = arena.constant(1);
            let then = arena.add(iteration, one);
            arena.substitute(address, counter, then)
        };
        let name = |array: ArrayId| arrays[array.0 as usize].name.clone();
        self.dependence
            .leave_loop(contexts, &values, &mut next, &name)
    }

    /// The variables that an iteration may leave with a load's value as it is, each with what its value in the next iteration waits
    /// for until that is known: no draft has this number.
    fn handed_by_copies(&mut self, entry: &[(VarId, Value)], body: &[Stmt]) -> Vec<(VarId, usize)> {
        if self.dry > 0 {
            return Vec::new();
        }
        let mut copied = Vec::new();
        let _ = walk::walk_block(&mut Copied(&mut copied), body);
        let copied = entry.iter().filter(|(id, _)| copied.contains(id));
        let numbered = copied.map(|(id, _)| {
            self.handed += 1;
            (*id, HANDED + self.handed)
        });
        numbered.collect()
    }

    /// At the end of an iteration: the loads that each of these waits for in the next.
    fn handed_on(&self, copied: &[(VarId, usize)]) -> FxHashMap<usize, Vec<usize>> {
        let loads = |id: &VarId| self.env.get(*id).map_or(Vec::new(), |v| v.loads.clone());
        let mut found: FxHashMap<usize, Vec<usize>> = copied
            .iter()
            .map(|(id, handed)| (*handed, loads(id)))
            .collect();
        // One variable may be handed the value that another one had.
        for _ in copied {
            let known = found.clone();
            for loads in found.values_mut() {
                let through = loads.iter().filter_map(|load| known.get(load)).flatten();
                let through: Vec<usize> = through.copied().collect();
                loads.extend(through);
                loads.sort_unstable();
                loads.dedup();
            }
            if found == known {
                break;
            }
        }
        for loads in found.values_mut() {
            loads.retain(|load| !copied.iter().any(|(_, handed)| handed == load));
        }
        found
    }

    /// A condition tested before each iteration. The last test, which fails, is not in the context of the
    /// iterations: what warps do inside the condition is not exact.
    fn tested(&mut self, condition: &Expr) {
        let within = self.context;
        if self.dry == 0 && condition.reads_or_forks() {
            let mut context = self.contexts[within].clone();
            context.why.get_or_insert(Why::LastTest);
            self.context = self.push_context(context);
        }
        self.eval(condition);
        self.context = within;
    }

    /// The condition under which a lane takes part in an iteration.
    fn within(&mut self, going: Option<Id>, trips: Id, iteration: Id, counter: Id) -> Id {
        match (going, self.arena.as_symbol(iteration)) {
            // The loop's own condition is linear where the number of iterations is a quotient.
            (Some(going), Some(symbol)) => self.arena.substitute(going, symbol, counter),
            _ => self.arena.binary(BinaryOp::Lt, counter, trips),
        }
    }

    pub(crate) fn block_of_one(&mut self, statement: &Stmt) {
        self.block_of(std::slice::from_ref(statement));
    }

    pub(crate) fn placeholder(&mut self, key: u32) -> Id {
        if let Some(&id) = self.placeholders.get(&key) {
            return id;
        }
        let id = self
            .arena
            .symbol("·", SymbolKind::Placeholder, Interval::ANY);
        self.placeholders.insert(key, id);
        id
    }

    /// One counter for each loop and extent, however often the loop is looked at.
    fn counter(&mut self, statement: &Stmt, extent: i64, loose: bool) -> Id {
        // A copy of a function's body is known by what it is a copy of: where it lies other copies will lie.
        let key = self.origin(statement).map(|part| (part, extent));
        if let Some(&id) = key.as_ref().and_then(|key| self.loop_counters.get(key)) {
            return id;
        }
        let name = self.counter_name(statement);
        let range = if loose {
            Interval::new(0, MOST_TURNS)
        } else {
            Interval::ANY
        };
        let id = self
            .arena
            .symbol(&name, SymbolKind::Counter { extent }, range);
        if let Some(key) = key {
            self.loop_counters.insert(key, id);
        }
        id
    }

    /// The loop variable's name, where the loop has one that counts from 0 by 1; else `iteration`.
    fn counter_name(&self, statement: &Stmt) -> String {
        if let StmtKind::Loop { init, step: Some(step), .. } = &statement.kind
            && let ExprKind::Step(1, _, target) = &step.kind
            && let ExprKind::Var(id) = target.kind
            && init.iter().any(|before| {
                matches!(&before.kind, StmtKind::Declare(var, Some(Expr { kind: ExprKind::Int(0), .. })) if *var == id)
            })
        {
            return self.kernel.var(id).name.clone();
        }
        "iteration".to_owned()
    }

    /// Looks at one iteration to see how each variable moves, and what ends the loop before its condition.
    fn motions(
        &mut self,
        kind: LoopKind,
        condition: Option<&Expr>,
        step: Option<&Expr>,
        body: &[Stmt],
        entry: &[(VarId, Value)],
    ) -> (Vec<Motion>, Ending, Look) {
        self.begin_look();
        let pending = std::mem::take(&mut self.pending);
        let mark = self.env.mark();
        let context = self.context;
        let mut stand_ins = Vec::new();
        for (id, value) in entry {
            let stand_in = self.placeholder(id.0);
            stand_ins.push(stand_in);
            let kind = match value.kind {
                Kind::Int(_) => Kind::Int(stand_in),
                Kind::Pointer(array, _) => Kind::Pointer(array, stand_in),
                Kind::Data => Kind::Data,
            };
            let value = Value {
                kind,
                loads: Vec::new(),
                variation: value.variation,
                origin: None,
                doubt: None,
                parts: None,
                real: None,
            };
            self.env.set(*id, Some(value));
        }
        let mut tested = None;
        if kind == LoopKind::For
            && let Some(condition) = condition
        {
            tested = Some(self.eval(condition));
        }
        let exits = self.block_of(body);
        if let Some(step) = step {
            self.eval(step);
        }
        if kind == LoopKind::Do
            && let Some(condition) = condition
        {
            tested = Some(self.eval(condition));
        }
        let (mut ends, mut stays) = (Vec::new(), Vec::new());
        let mut motions: Vec<Motion> =
            entry
                .iter()
                .zip(&stand_ins)
                .map(|((id, before), &stand_in)| {
                    let after = self.env.get(*id).cloned();
                    ends.push(after.as_ref().and_then(|after| match after.kind {
                        Kind::Int(end) | Kind::Pointer(_, end) => Some(end),
                        Kind::Data => None,
                    }));
                    stays.push(after.as_ref().is_some_and(|after| {
                        match (before.kind, after.kind) {
                            (Kind::Int(_), Kind::Int(_)) => true,
                            (Kind::Pointer(p, _), Kind::Pointer(q, _)) => p == q,
                            _ => false,
                        }
                    }));
                    self.motion(before, after, stand_in)
                })
                .collect();
        self.env.take_back(&mark);
        self.context = context;
        self.pending = pending;
        self.end_look();
        let look = Look {
            ends: ends
                .iter()
                .zip(&stays)
                .map(|(end, stays)| end.filter(|_| *stays))
                .collect(),
            stand_ins,
        };
        self.cycles(entry, &look, &mut motions);
        self.rings(entry, &look, &mut motions);
        self.advances(entry, &look, &mut motions);
        let stand_ins = &look.stand_ins;
        let by_data = self.moved_by_data(entry, &ends, stand_ins, &motions);
        for (motion, &data) in motions.iter_mut().zip(&by_data) {
            if let Motion::Lost(of_data, _) = motion {
                *of_data |= data;
            }
        }
        let apart = self.moved_apart(entry, &ends, stand_ins, &motions);
        for (motion, &apart) in motions.iter_mut().zip(&apart) {
            if let Motion::Lost(_, uniform) = motion {
                *uniform &= !apart;
            }
        }
        // What leaves by `return` ends the loop for that lane as well.
        let breaks = [exits.broke, exits.returned];
        let tested_apart = tested.is_some_and(|tested| match tested.kind {
            Kind::Int(id) | Kind::Pointer(_, id) => self.is_apart(id, stand_ins, &apart),
            Kind::Data => !tested.variation.uniform,
        });
        let ending = Ending {
            leaves_apart: tested_apart
                || (breaks.iter()).any(|&left| self.is_apart(left, stand_ins, &apart)),
            may_break: (breaks.iter()).any(|&left| self.arena.as_const(left) != Some(0)),
            by_data: (breaks.iter()).any(|&left| self.is_by_data(left, stand_ins, &by_data)),
            continues_by_data: self.is_by_data(exits.continued, stand_ins, &by_data),
            left: self.or(exits.broke, exits.returned),
        };
        self.renewed(entry, &look, &mut motions);
        (motions, ending, look)
    }

    /// Which variables depend on data in some iteration: through what they begin with, through what is assigned,
    /// or through another one that does.
    fn moved_by_data(
        &self,
        entry: &[(VarId, Value)],
        ends: &[Option<Id>],
        stand_ins: &[Id],
        motions: &[Motion],
    ) -> Vec<bool> {
        let by_data: Vec<bool> = (entry.iter().zip(ends).zip(stand_ins).zip(motions))
            .map(|((((_, before), end), &stand_in), motion)| {
                let keeps = match (end, self.arena.as_symbol(stand_in)) {
                    (Some(end), Some(own)) => self.arena.depends_on(*end, own),
                    _ => false,
                };
                matches!(motion, Motion::Lost(true, _)) || (keeps && self.is_data(before))
            })
            .collect();
        spread(by_data, ends, |end, by_data| {
            self.is_by_data(end, stand_ins, by_data)
        })
    }

    /// Which variables lanes of a warp may differ in, in some iteration: by what they begin with, by what is assigned, or by
    /// another one that they differ in.
    fn moved_apart(
        &self,
        entry: &[(VarId, Value)],
        ends: &[Option<Id>],
        stand_ins: &[Id],
        motions: &[Motion],
    ) -> Vec<bool> {
        let apart: Vec<bool> = (entry.iter().zip(motions))
            .map(|((_, before), motion)| {
                let begins_apart = match before.kind {
                    Kind::Int(id) | Kind::Pointer(_, id) => self.arena.varies_in_warp(id),
                    Kind::Data => false,
                };
                let moves_apart = matches!(
                    motion,
                    Motion::Lost(_, false) | Motion::While { uniform: false, .. }
                );
                begins_apart || moves_apart
            })
            .collect();
        spread(apart, ends, |end, apart| {
            self.is_apart(end, stand_ins, apart)
        })
    }

    /// True where lanes of a warp may differ in an expression of one iteration, by itself or through a variable in which they do.
    fn is_apart(&self, id: Id, stand_ins: &[Id], apart: &[bool]) -> bool {
        self.arena.varies_in_warp(id) || self.depends_on_any(id, stand_ins, apart)
    }

    /// True where an expression of one iteration depends on data, itself or through a variable that does.
    fn is_by_data(&self, id: Id, stand_ins: &[Id], by_data: &[bool]) -> bool {
        self.depends_on_data(id) || self.depends_on_any(id, stand_ins, by_data)
    }

    /// True where an expression of one iteration depends on one of the variables that are marked.
    fn depends_on_any(&self, id: Id, stand_ins: &[Id], marked: &[bool]) -> bool {
        stand_ins.iter().zip(marked).any(|(&stand_in, &marked)| {
            marked
                && (self.arena.as_symbol(stand_in))
                    .is_some_and(|symbol| self.arena.depends_on(id, symbol))
        })
    }

    fn motion(&mut self, before: &Value, after: Option<Value>, stand_in: Id) -> Motion {
        let Some(after) = after else {
            return Motion::Lost(false, false);
        };
        let end = match (before.kind, after.kind) {
            (Kind::Int(_), Kind::Int(end)) => end,
            (Kind::Pointer(p, _), Kind::Pointer(q, end)) if p == q => end,
            (Kind::Data, _) | (_, Kind::Data) => {
                return Motion::Lost(true, before.variation.uniform && after.variation.uniform);
            }
            _ => return Motion::Lost(false, false),
        };
        // As if nothing wrapped on the way: the values that follow are checked by their ranges.
        let plain = self.without_wraps(end);
        let difference = self.arena.sub(plain, stand_in);
        if self.arena.as_const(difference) == Some(0) {
            return Motion::Still;
        }
        if !self.arena.has_placeholder(difference) && self.arena.opaque(difference).is_none() {
            // Values that are made anew in each iteration have no placeholder in them either: their
            // difference has.
            return Motion::Linear(difference);
        }
        match self.arena.node(plain).clone() {
            Node::Sum(0, terms) if terms.len() == 1 && terms[0].0 == stand_in => {
                return Motion::Geometric(BinaryOp::Shl, terms[0].1, false);
            }
            Node::Binary(op @ (BinaryOp::Div | BinaryOp::Shr), value, by) if value == stand_in => {
                if let Some(factor) = self.arena.value(by) {
                    return Motion::Geometric(op, factor, assumed(&self.arena, by));
                }
            }
            _ => {}
        }
        let data = self.arena.opaque(end).unwrap_or(false);
        Motion::Lost(data, !self.arena.varies_in_warp(end))
    }

    /// The value after a number of iterations.
    pub(crate) fn moved(&mut self, value: &Value, motion: &Motion, iterations: Id) -> Value {
        let lost = |executor: &mut Self, data: bool, uniform: bool| match value.kind {
            Kind::Int(_) => Value::int(executor.unknown(data, Variation::unknown(uniform))),
            Kind::Pointer(array, _) => {
                let offset = executor.unknown(data, Variation::unknown(uniform));
                Value::pointer(array, offset)
            }
            Kind::Data => Value::data(Variation::unknown(uniform)),
        };
        match motion {
            Motion::Still => value.clone(),
            Motion::Lost(data, uniform) => lost(self, *data, *uniform),
            Motion::While { uniform, .. } => {
                let data = self.is_data(value);
                lost(self, data, *uniform)
            }
            Motion::Geometric(..) => {
                let data = self.is_data(value);
                lost(self, data, false)
            }
            Motion::Each(values) => value.holding(self.one_of_each(values, iterations)),
            Motion::Renewed(made, symbol) => {
                value.holding(self.made_before(value, *made, *symbol, iterations))
            }
            Motion::Listed(values) => value.holding(self.arena.table(iterations, values)),
            Motion::Ring(by, of) => match value.kind {
                Kind::Int(first) => Value::int(self.along_ring(first, (*by, *of), iterations)),
                _ => value.clone(),
            },
            Motion::Cyclic(values) => value.holding(self.one_of_stages(values, iterations)),
            Motion::Linear(by) => {
                let way = self.arena.mul(*by, iterations);
                match value.kind {
                    Kind::Int(from) => Value::int(self.arena.add(from, way)),
                    Kind::Pointer(array, from) => Value::pointer(array, self.arena.add(from, way)),
                    Kind::Data => value.clone(),
                }
            }
        }
    }

    /// The condition with every variable as it is after `iterations`.
    fn condition_at(
        &mut self,
        condition: &Expr,
        entry: &[(VarId, Value)],
        motions: &[Motion],
        iterations: Id,
    ) -> Id {
        self.begin_look();
        let mark = self.env.mark();
        let pending = std::mem::take(&mut self.pending);
        for ((id, value), motion) in entry.iter().zip(motions) {
            let now = self.moved(value, motion, iterations);
            self.env.set(*id, Some(now));
        }
        let value = self.eval(condition);
        let id = self.as_int(&value);
        let truth = self.arena.truth(id);
        self.env.take_back(&mark);
        self.pending = pending;
        self.end_look();
        truth
    }

    /// How often the body runs; geometric motions are listed on the way.
    fn trips(
        &mut self,
        (kind, body): (LoopKind, &[Stmt]),
        condition: Option<&Expr>,
        entry: &[(VarId, Value)],
        motions: Vec<Motion>,
        iteration: Id,
    ) -> (Vec<Motion>, Trips) {
        let Some(condition) = condition else {
            return (motions, Trips::guessed(Unbounded::Endless));
        };
        let geometric = motions
            .iter()
            .any(|motion| matches!(motion, Motion::Geometric(..)));
        let (mut by_test, mut by_body) = (Vec::new(), Vec::new());
        assigned_by(condition, &mut by_test);
        assigned_in(body, &mut by_body);
        let test_moves = kind == LoopKind::Do && !by_test.is_empty();
        if test_moves && (geometric || condition.reads(&by_body)) {
            return (motions, Trips::guessed(Unbounded::TestMoves));
        }
        if geometric {
            return self.listed(kind, condition, entry, motions);
        }
        let truth = self.condition_at(condition, entry, &motions, iteration);
        let plain = self.without_wraps(truth);
        let trips = self.solve(plain, iteration).filter(|&trips| {
            let looked_at = self.dry > 0 && self.arena.has_placeholder(trips);
            plain == truth || looked_at || self.never_wraps(truth, trips, iteration)
        });
        let trips = match trips {
            Some(trips) => {
                // `do` tests after the body: what it tests in iteration j is the value after j + 1.
                let trips = if test_moves {
                    // Unless the test itself moves it on: then it is the value of iteration j, moved.
                    let one = self.arena.constant(1);
                    self.arena.add(trips, one)
                } else if kind == LoopKind::Do {
                    let one = self.arena.constant(1);
                    self.arena.binary(BinaryOp::Max, trips, one)
                } else {
                    trips
                };
                let range = self.arena.range(trips);
                if range.bounded() {
                    let same = self.arena.value(trips).is_some();
                    Trips::Known {
                        trips,
                        most: range.hi.max(0),
                        same,
                        pinned: false,
                        going: (kind != LoopKind::Do).then_some(plain),
                    }
                } else if self.dry > 0 && self.arena.has_placeholder(trips) {
                    // The loop around is only looked at: where its variables begin and end is not known yet.
                    Trips::Known {
                        trips,
                        most: GUESSED_TRIPS,
                        same: false,
                        pinned: false,
                        going: None,
                    }
                } else {
                    Trips::guessed(Unbounded::NotKnown)
                }
            }
            None => {
                let why = match self.arena.opaque(truth) {
                    Some(true) => Unbounded::ByData,
                    _ if self.never_fails(truth, plain, iteration) => Unbounded::Endless,
                    _ => Unbounded::NotUnderstood,
                };
                let halved = self.halvings(condition, body, entry);
                let guess = halved.unwrap_or_else(|| self.at_most(plain, iteration));
                Trips::Unknown(why, guess)
            }
        };
        (motions, trips)
    }

    /// How often the body of a loop runs that a `break` or a `return` ends, in the last iteration in part; `None` where that is not
    /// known.
    fn left_after(
        &mut self,
        ending: Ending,
        condition: Option<&Expr>,
        entry: &[(VarId, Value)],
        look: &Look,
        motions: &[Motion],
    ) -> Option<Trips> {
        if !ending.may_break || ending.by_data || !is_endless(condition) {
            return None;
        }
        let iteration = self.placeholder(u32::MAX);
        let mut stays = self.arena.not(ending.left);
        for (((_, value), motion), &stand_in) in entry.iter().zip(motions).zip(&look.stand_ins) {
            let symbol = self.arena.as_symbol(stand_in)?;
            if !self.arena.depends_on(stays, symbol) {
                continue;
            }
            let (Kind::Int(now) | Kind::Pointer(_, now)) =
                self.moved(value, motion, iteration).kind
            else {
                return None;
            };
            stays = self.arena.substitute(stays, symbol, now);
        }
        let plain = self.without_wraps(stays);
        let whole = self.solve(plain, iteration).filter(|&whole| {
            let looked_at = self.dry > 0 && self.arena.has_placeholder(whole);
            plain == stays || looked_at || self.never_wraps(stays, whole, iteration)
        })?;
        let one = self.arena.constant(1);
        let trips = self.arena.add(whole, one);
        let range = self.arena.range(trips);
        let looked_at = self.dry > 0 && self.arena.has_placeholder(trips);
        (range.bounded() || looked_at).then(|| Trips::Known {
            trips,
            most: if range.bounded() {
                range.hi.max(0)
            } else {
                GUESSED_TRIPS
            },
            same: range.bounded() && self.arena.value(trips).is_some(),
            pinned: false,
            going: None,
        })
    }

    /// True where a condition holds in each of that number of iterations.
    fn always_holds(&mut self, condition: Id, iteration: Id, trips: Id) -> bool {
        if self.never_fails(condition, condition, iteration) {
            return true;
        }
        let Some(symbol) = self.arena.as_symbol(iteration) else {
            return false;
        };
        // One for each power of two: an expression has room for few symbols.
        let last = self.arena.range(trips).hi.clamp(0, MOST_TURNS);
        let bits = i64::BITS - last.leading_zeros();
        let key = ANY_ITERATION - bits;
        let any = match self.placeholders.get(&key) {
            Some(&any) => any,
            None => {
                let range = Interval::new(0, (1 << bits) - 1);
                let any = self.arena.symbol("·", SymbolKind::Placeholder, range);
                self.placeholders.insert(key, any);
                any
            }
        };
        let some = self.arena.substitute(condition, symbol, any);
        self.arena.range(some).single() == Some(1)
    }

    /// True where a condition holds in the first iteration and only gets further from failing.
    fn never_fails(&mut self, truth: Id, plain: Id, iteration: Id) -> bool {
        if let Some(value) = self.arena.as_const(truth) {
            return value != 0;
        }
        let Node::Binary(BinaryOp::Lt | BinaryOp::Le, a, b) = *self.arena.node(plain) else {
            return false;
        };
        let Some(symbol) = self.arena.as_symbol(iteration) else {
            return false;
        };
        let (zero, one) = (self.arena.constant(0), self.arena.constant(1));
        let room = self.arena.sub(b, a);
        let next = self.arena.add(iteration, one);
        let later = self.arena.substitute(room, symbol, next);
        let gained = self.arena.sub(later, room);
        let first = self.arena.substitute(plain, symbol, zero);
        self.arena
            .as_const(gained)
            .is_some_and(|gained| gained >= 0)
            && self.arena.range(first).single() == Some(1)
    }

    /// A counter that is tested and would go below 0 begins again at the top of its unsigned type: the number of
    /// iterations is another one then.
    fn ended(
        &mut self,
        trips: Trips,
        condition: Option<&Expr>,
        entry: &[(VarId, Value)],
        motions: &[Motion],
    ) -> Trips {
        let (Trips::Known { trips: count, .. }, Some(condition)) = (&trips, condition) else {
            return trips;
        };
        for ((id, value), motion) in entry.iter().zip(motions) {
            let unsigned = matches!(self.kernel.var(*id).ty, Type::Int { signed: false, .. });
            if let (true, Motion::Linear(by), Kind::Int(from)) = (unsigned, motion, value.kind)
                && condition.reads(&[*id])
            {
                let way = self.arena.mul(*by, *count);
                let end = self.arena.add(from, way);
                if self.arena.value(end).is_some_and(|end| end < 0) {
                    return Trips::guessed(Unbounded::WrapsAround);
                }
            }
        }
        trips
    }

    /// The number of iterations from 0 on for which the condition holds, where it is solved.
    fn solve(&mut self, condition: Id, iteration: Id) -> Option<Id> {
        match *self.arena.node(condition) {
            Node::Const(0) => Some(self.arena.constant(0)),
            Node::Binary(BinaryOp::LogicalAnd, a, b) => {
                match (self.solve(a, iteration), self.solve(b, iteration)) {
                    (Some(a), Some(b)) => Some(self.arena.binary(BinaryOp::Min, a, b)),
                    (Some(trips), None) if self.always_holds(b, iteration, trips) => Some(trips),
                    (None, Some(trips)) if self.always_holds(a, iteration, trips) => Some(trips),
                    _ => None,
                }
            }
            Node::Binary(op @ (BinaryOp::Lt | BinaryOp::Le | BinaryOp::Ne), left, right) => {
                let difference = self.arena.sub(left, right);
                let (start, by) = self.linear(difference, iteration)?;
                let step = by;
                let by = self.arena.value(by)?;
                // Of a loop around that is only looked at, stand-ins are as good as what they stand for.
                let unknown = self.arena.has_opaque(start)
                    || self.dry == 0 && self.arena.has_placeholder(start);
                if unknown {
                    return None;
                }
                // A step that depends on assumed values stays an expression, for what other values do.
                let size = if by < 0 { self.arena.neg(step) } else { step };
                let zero = self.arena.constant(0);
                // start + by·j < 0 for j below ceil(-start / by).
                let negated = self.arena.neg(start);
                let trips = match op {
                    BinaryOp::Lt if by > 0 => self.ceil_div(negated, size),
                    BinaryOp::Le if by > 0 => {
                        let one = self.arena.constant(1);
                        let more = self.arena.add(negated, one);
                        self.ceil_div(more, size)
                    }
                    BinaryOp::Ne if by > 0 && self.arena.range(start).hi <= 0 => {
                        self.exact_div(negated, size)?
                    }
                    BinaryOp::Ne if by < 0 && self.arena.range(start).non_negative() => {
                        self.exact_div(start, size)?
                    }
                    _ => return None,
                };
                Some(self.arena.binary(BinaryOp::Max, trips, zero))
            }
            _ => None,
        }
    }

    /// The expression as if values that move with the loop never wrapped.
    pub(crate) fn without_wraps(&mut self, id: Id) -> Id {
        if !self.arena.has_placeholder(id) {
            return id;
        }
        match self.arena.node(id).clone() {
            Node::Wrap(_, _, inner) => self.without_wraps(inner),
            Node::Binary(op, a, b) => {
                let (a, b) = (self.without_wraps(a), self.without_wraps(b));
                self.arena.binary(op, a, b)
            }
            Node::Sum(constant, terms) => {
                let mut sum = self.arena.constant(constant);
                for &(term, coefficient) in terms.iter() {
                    let term = self.without_wraps(term);
                    let term = self.arena.scale(term, coefficient);
                    sum = self.arena.add(sum, term);
                }
                sum
            }
            _ => id,
        }
    }

    /// True where indeed nothing wraps from the first test to the last.
    fn never_wraps(&mut self, condition: Id, trips: Id, iteration: Id) -> bool {
        let Some(symbol) = self.arena.as_symbol(iteration) else {
            return false;
        };
        if self.depends_on_open(trips) {
            // Wrapping that only other arguments would bring is theirs to exclude.
            let (given, trips) = (self.as_given(condition), self.as_given(trips));
            if !self.never_wraps(given, trips, iteration) {
                self.note_wrapping();
            }
            return true;
        }
        let last = self.arena.range(trips).hi.max(0);
        let mut fits = true;
        for at in [0, last] {
            let at = self.arena.constant(at);
            let mut stack = vec![condition];
            while let Some(id) = stack.pop() {
                match *self.arena.node(id) {
                    Node::Wrap(bits, signed, inner) if self.arena.depends_on(inner, symbol) => {
                        let full = warplens_symbolic::Interval::of_type(bits, signed);
                        let value = self.arena.substitute(inner, symbol, at);
                        fits &= self.arena.range(value).within(full.lo, full.hi);
                    }
                    Node::Binary(_, a, b) => stack.extend([a, b]),
                    Node::Sum(_, ref terms) => stack.extend(terms.iter().map(|term| term.0)),
                    _ => {}
                }
            }
        }
        fits
    }

    fn ceil_div(&mut self, value: Id, by: Id) -> Id {
        let by = self.numeric(by);
        let one = self.arena.constant(1);
        let round = self.arena.sub(by, one);
        let value = self.arena.add(value, round);
        let zero = self.arena.constant(0);
        // Truncation is floor for what is not negative; what is, gives no iteration.
        let value = self.arena.binary(BinaryOp::Max, value, zero);
        self.arena.binary(BinaryOp::Div, value, by)
    }

    fn exact_div(&mut self, value: Id, by: Id) -> Option<Id> {
        let by = self.numeric(by);
        if self.arena.as_const(by) == Some(1) {
            return Some(value);
        }
        let (number, of) = (self.arena.value(value)?, self.arena.value(by)?);
        if number % of != 0 {
            return None;
        }
        let value = self.numeric(value);
        Some(self.arena.binary(BinaryOp::Div, value, by))
    }

    /// The number that an expression is under this launch, where nothing of it was assumed.
    fn numeric(&mut self, id: Id) -> Id {
        match self.arena.value(id) {
            Some(value) if !assumed(&self.arena, id) => self.arena.constant(value),
            _ => id,
        }
    }

    /// `start` and `by` where the expression is `start + by · iteration`.
    pub(crate) fn linear(&mut self, id: Id, iteration: Id) -> Option<(Id, Id)> {
        let symbol = self.arena.as_symbol(iteration)?;
        let zero = self.arena.constant(0);
        let one = self.arena.constant(1);
        let start = self.arena.substitute(id, symbol, zero);
        let next = self.arena.substitute(id, symbol, one);
        let by = self.arena.sub(next, start);
        // Linear indeed: start + by · iteration is the expression.
        let way = self.arena.mul(by, iteration);
        let again = self.arena.add(start, way);
        (again == id).then_some((start, by))
    }

    /// Runs the loop on numbers: `s >>= 1`, `s *= 2`.
    fn listed(
        &mut self,
        kind: LoopKind,
        condition: &Expr,
        entry: &[(VarId, Value)],
        motions: Vec<Motion>,
    ) -> (Vec<Motion>, Trips) {
        let starts = |executor: &Self, start: &dyn Fn(&Self, Id) -> Option<i64>| -> Vec<List> {
            let each = entry.iter().zip(&motions);
            each.map(|((_, value), motion)| match (motion, value.kind) {
                (Motion::Geometric(..), Kind::Int(id)) => {
                    start(executor, id).map(|start| (start, vec![start]))
                }
                _ => None,
            })
            .collect()
        };
        let mut lists = starts(self, &|executor, id| executor.arena.value(id));
        // Lists are of numbers: where a start or a factor was assumed, they hold for that value alone.
        let mut pinned = entry.iter().zip(&motions).any(|((_, value), motion)| {
            matches!((motion, value.kind), (Motion::Geometric(.., factor), Kind::Int(id)) if *factor || assumed(&self.arena, id))
        });
        let (trips, decides_by_data, holds_for_assumed) =
            self.turns_of_lists(kind, condition, entry, &motions, &mut lists);
        pinned |= holds_for_assumed;
        // From a start that differs or is not known: as many as from the middle of its range.
        let guess = trips.is_none().then(|| {
            let mut lists = starts(self, &|executor, id| middle(executor.arena.range(id)));
            let turns = self.turns_of_lists(kind, condition, entry, &motions, &mut lists);
            turns.0.map(|turns| (turns as i64).max(1))
        });
        let guess = guess.flatten();
        // A list that does not reach the loop's end says nothing of the iterations behind its own; where data ends the
        // loop, these are the ones that are looked at.
        for (list, motion) in lists.iter_mut().zip(&motions) {
            if let (Some((last, values)), Motion::Geometric(op, by, _), true) =
                (list, motion, decides_by_data)
            {
                while values.len() as i64 <= guess.unwrap_or(GUESSED_TRIPS) {
                    *last = following(*op, *last, *by);
                    values.push(*last);
                }
            }
        }
        let motions = (motions.into_iter().zip(lists).zip(entry))
            .map(|((motion, list), (_, before))| match (motion, list) {
                (Motion::Geometric(..), Some((_, values)))
                    if trips.is_some() || decides_by_data =>
                {
                    Motion::Listed(values)
                }
                (Motion::Geometric(..), _) => Motion::Lost(self.is_data(before), false),
                (motion, _) => motion,
            })
            .collect();
        let trips = match trips {
            Some(count) => Trips::Known {
                trips: self.arena.constant(count as i64),
                most: count as i64,
                same: true,
                pinned,
                going: None,
            },
            None => {
                let why = if decides_by_data {
                    Unbounded::ByData
                } else {
                    Unbounded::NotUnderstood
                };
                Trips::Unknown(why, guess.unwrap_or(GUESSED_TRIPS))
            }
        };
        (motions, trips)
    }

    /// How many iterations there are of a loop whose variables hold these lists of numbers, which grow as they are needed; whether
    /// data decides that, and whether it holds for assumed values alone.
    fn turns_of_lists(
        &mut self,
        kind: LoopKind,
        condition: &Expr,
        entry: &[(VarId, Value)],
        motions: &[Motion],
        lists: &mut [List],
    ) -> (Option<usize>, bool, bool) {
        let mut pinned = false;
        for turn in 0..LONGEST_TABLE {
            let after = turn + usize::from(kind == LoopKind::Do);
            while lists
                .iter()
                .flatten()
                .any(|(_, values)| values.len() <= after)
            {
                for (list, motion) in lists.iter_mut().zip(motions) {
                    if let (Some((last, values)), Motion::Geometric(op, by, _)) = (list, motion) {
                        *last = following(*op, *last, *by);
                        values.push(*last);
                    }
                }
            }
            let now: Vec<Motion> = (motions.iter().zip(&*lists).zip(entry))
                .map(|((motion, list), (_, before))| match (motion, list) {
                    (Motion::Geometric(..), Some((_, values))) => Motion::Listed(values.clone()),
                    (Motion::Geometric(..), None) => Motion::Lost(self.is_data(before), false),
                    (motion, _) => motion.clone(),
                })
                .collect();
            let at = self.arena.constant(after as i64);
            let truth = self.condition_at(condition, entry, &now, at);
            pinned |= assumed(&self.arena, truth);
            let range = self.arena.range(truth);
            let decided = self.arena.value(truth).or_else(|| {
                (range.never_zero() || range == Interval::point(0))
                    .then(|| i64::from(range.never_zero()))
            });
            match decided {
                Some(0) => {
                    let count = turn + usize::from(kind == LoopKind::Do);
                    return (Some(count), false, pinned);
                }
                Some(_) => {}
                None => return (None, self.depends_on_data(truth), pinned),
            }
            // A value that has come to rest ends no loop.
            if turn > 200 {
                break;
            }
        }
        (None, false, pinned)
    }

    fn is_data(&self, value: &Value) -> bool {
        match value.kind {
            Kind::Int(id) | Kind::Pointer(_, id) => self.depends_on_data(id),
            Kind::Data => true,
        }
    }
}

/// The numbers that a variable goes through, with the last of them.
type List = Option<(i64, Vec<i64>)>;

/// A number in the middle of a range, where the range is of a value and not of all that its type holds.
fn middle(range: Interval) -> Option<i64> {
    let is_narrow = range.lo >= 0 && range.hi < i64::from(i32::MAX);
    is_narrow.then(|| i64::midpoint(range.lo, range.hi))
}

/// What a variable that moves by a factor holds next.
fn following(op: BinaryOp, value: i64, by: i64) -> i64 {
    match op {
        BinaryOp::Shl => value.wrapping_mul(by),
        op => op.apply(value, by),
    }
}

/// What ends a loop beside its condition.
#[derive(Debug, Clone, Copy)]
struct Ending {
    /// A `break` or a `return` may.
    may_break: bool,
    /// Data decides who leaves the loop so.
    by_data: bool,
    /// Data decides who goes on to the next iteration before the end of this one.
    continues_by_data: bool,
    /// Lanes of a warp may leave it after different iterations.
    leaves_apart: bool,
    /// Whether a lane leaves it in an iteration, by what stood for the variables before that.
    left: Id,
}

/// True where a loop's own condition never ends it.
fn is_endless(condition: Option<&Expr>) -> bool {
    condition.is_none_or(|condition| matches!(condition.kind, ExprKind::Int(1..)))
}

/// How often a loop runs.
#[derive(Debug, Clone)]
enum Trips {
    /// As an expression; the most over the launch; whether it is one number.
    Known {
        trips: Id,
        most: i64,
        same: bool,
        /// True where the number holds for the assumed values alone.
        pinned: bool,
        /// The condition as a function of the iteration, where it holds before each and no longer after the
        /// last.
        going: Option<Id>,
    },
    /// Why, and how many are assumed.
    Unknown(Unbounded, i64),
}

impl Trips {
    /// Of which nothing is known.
    fn guessed(why: Unbounded) -> Trips {
        Trips::Unknown(why, GUESSED_TRIPS)
    }
}

/// Variables that the branches of a loop's body assign before they leave the iteration.
#[derive(Default)]
struct Leaving {
    /// Before a `break` or a `return`.
    broke: Vec<VarId>,
    /// Before a `continue`.
    continued: Vec<VarId>,
}

impl Leaving {
    fn search(&mut self, statements: &[Stmt]) {
        for (runs, inner) in statements.iter().flat_map(Stmt::blocks) {
            match runs {
                Runs::If => {
                    if any_in_iteration(inner, &mut breaks) {
                        assigned_in(inner, &mut self.broke);
                    }
                    if any_in_iteration(inner, &mut |one| one.kind == StmtKind::Continue) {
                        assigned_in(inner, &mut self.continued);
                    }
                }
                Runs::Once => self.search(inner),
                Runs::Repeatedly => {}
            }
        }
    }
}

/// The end of a function in place of its call leaves the loop; what comes behind the call goes on.
fn breaks(statement: &Stmt) -> bool {
    matches!(statement.kind, StmtKind::Break | StmtKind::Return(_))
}

/// True for a loop that nothing ends once it runs: what it tests stays, and no statement leaves it. `moved` is what an
/// iteration assigns.
pub(crate) fn never_ends(condition: Option<&Expr>, body: &[Stmt], moved: &[VarId]) -> bool {
    fn stays(expression: &Expr, moved: &[VarId]) -> bool {
        match &expression.kind {
            ExprKind::Int(_) | ExprKind::Builtin(_) => true,
            ExprKind::Var(id) => !moved.contains(id),
            ExprKind::Unary(_, operand) | ExprKind::Cast(_, operand) => stays(operand, moved),
            ExprKind::Binary(_, left, right) => stays(left, moved) && stays(right, moved),
            _ => false,
        }
    }
    condition.is_none_or(|condition| stays(condition, moved))
        && !any_in_iteration(body, &mut breaks)
        && !any_statement(body, &mut |one| matches!(one.kind, StmtKind::Return(_)))
}

/// The variables of a loop that are marked, and those whose value at an iteration's end is made so by others, however many iterations
/// that takes.
fn spread(
    mut marked: Vec<bool>,
    ends: &[Option<Id>],
    is_made_so: impl Fn(Id, &[bool]) -> bool,
) -> Vec<bool> {
    loop {
        let more: Vec<bool> = ends
            .iter()
            .zip(&marked)
            .map(|(end, &known)| known || end.is_some_and(|end| is_made_so(end, &marked)))
            .collect();
        if more == marked {
            return marked;
        }
        marked = more;
    }
}

/// In the flow of a loop's body: what is handed from one iteration to the next is waited for where it is used.
fn wait_for_handed(flow: &mut [Draft], handed: &FxHashMap<usize, Vec<usize>>) {
    if handed.is_empty() {
        return;
    }
    for draft in flow {
        match draft {
            Draft::Compute { uses, .. } | Draft::Access { uses, .. } | Draft::Call { uses, .. } => {
                if uses.iter().any(|used| handed.contains_key(used)) {
                    let loads = uses.iter().filter_map(|used| handed.get(used)).flatten();
                    let loads: Vec<usize> = loads.copied().collect();
                    uses.retain(|used| !handed.contains_key(used));
                    uses.extend(loads);
                    uses.sort_unstable();
                    uses.dedup();
                }
            }
            Draft::Barrier { .. } => {}
            Draft::Loop { body, .. } => wait_for_handed(body, handed),
            Draft::Branch {
                then, otherwise, ..
            } => {
                wait_for_handed(then, handed);
                wait_for_handed(otherwise, handed);
            }
        }
    }
}

/// Variables that are assigned what may be a load's value as it is: an operation on it would have waited.
struct Copied<'v>(&'v mut Vec<VarId>);

impl Visitor<'_> for Copied<'_> {
    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let ExprKind::Assign(None, target, value) = &expression.kind {
            let mut value = &**value;
            while let ExprKind::Cast(_, inner) = &value.kind {
                value = inner;
            }
            let is_new = matches!(
                value.kind,
                ExprKind::Unary(..)
                    | ExprKind::Binary(..)
                    | ExprKind::Int(_)
                    | ExprKind::Float(_)
                    | ExprKind::Builtin(_)
                    | ExprKind::Step(..)
            );
            if !is_new {
                written(target, self.0);
            }
        }
        walk::walk_expression(self, expression)
    }
}

/// Variables that statements assign.
pub(crate) fn assigned_in(statements: &[Stmt], out: &mut Vec<VarId>) {
    let _ = walk::walk_block(&mut Assigned(out), statements);
}

/// Variables that an expression assigns.
pub(crate) fn assigned_by(expression: &Expr, out: &mut Vec<VarId>) {
    let _ = Assigned(out).expression(expression);
}

struct Assigned<'v>(&'v mut Vec<VarId>);

impl Visitor<'_> for Assigned<'_> {
    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        match &expression.kind {
            // Who has the address may write.
            ExprKind::Assign(_, target, _) | ExprKind::AddressOf(target) => written(target, self.0),
            ExprKind::Step(_, _, target) => {
                written(target, self.0);
                return ControlFlow::Continue(());
            }
            _ => {}
        }
        walk::walk_expression(self, expression)
    }
}

/// The variable behind a scalar target; arrays are memory.
fn written(target: &Expr, out: &mut Vec<VarId>) {
    match &target.kind {
        ExprKind::Var(id) if !matches!(target.ty, Type::Array(..)) => out.push(*id),
        ExprKind::Field(base, _) | ExprKind::Cast(_, base) => written(base, out),
        ExprKind::Index(base, _) if matches!(base.ty, Type::Vector(..)) => written(base, out),
        ExprKind::List(parts) if parts.len() == 1 => written(&parts[0], out),
        _ => {}
    }
}
