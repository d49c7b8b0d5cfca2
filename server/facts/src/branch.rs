//! How the warps of a launch split at each branch and loop.

use crate::why::{NoValue, Why, reason_in};
use rustc_hash::FxHashMap;
use warplens_symbolic::{Arena, BinaryOp, Domain, Guard, Id, Node, Query, Symbol, SymbolKind};

use crate::cases::{Cases, Figure};
use crate::context::{Budget, Context, Executions, Origin, any_of, assumed};
use crate::draft::{BarrierDraft, BranchDraft, From};
use crate::facts::{BarrierHazard, Branch, BranchKind, Certainty, Uniformity};
use crate::lockstep::{Agreement, BranchCounts};

/// Cases looked at for one loop's trip counts, at most: they seldom repeat.
const LOOP_BUDGET: u32 = 2048;

/// Numbers of iterations that are listed for one loop, at most.
const MOST_TURNS_LISTED: usize = 16;

/// Warps that come by, that take it with some lane, that split.
type Sides = (f64, f64, f64);

/// True where the condition is a number rather than a truth: of iterations, of the case that is gone to.
fn counts_ways(kind: BranchKind) -> bool {
    matches!(kind, BranchKind::Loop | BranchKind::Switch)
}

/// Makes the figures of a branch those that were counted warp by warp.
pub(crate) fn counted(branch: &mut Branch, ways: BranchCounts) {
    let some = ways.evaluations > 0.0;
    let share = |part: f64| some.then(|| part / ways.evaluations);
    branch.certainty = Certainty::Exact;
    branch.why = None;
    branch.constraints.clear();
    branch.evaluations = Some(ways.evaluations);
    branch.taken_warp_fraction = share(ways.taken);
    branch.divergent_warp_fraction = share(ways.split);
    branch.taken_threads = (!counts_ways(branch.kind)).then_some(ways.taken_threads);
    if branch.kind == BranchKind::Loop {
        branch.trips = Some(share(ways.iterations).unwrap_or(0.0));
        branch.turns.clear();
    }
    let agreed = ways.agreement != Agreement::Several;
    branch.uniformity = if ways.split > 0.0 {
        Uniformity::Divergent
    } else if agreed || branch.uniformity == Uniformity::Uniform {
        Uniformity::Uniform
    } else {
        Uniformity::WarpUniform
    };
}

pub(crate) struct Measure<'a> {
    pub(crate) arena: &'a mut Arena,
    pub(crate) domain: &'a Domain,
    pub(crate) budget: &'a Budget,
    pub(crate) cases: &'a mut Cases,
    pub(crate) contexts: &'a [Context],
    pub(crate) executions: &'a [Executions],
    pub(crate) blocks: [Symbol; 3],
    /// The same as expressions.
    pub(crate) block: [Id; 3],
    pub(crate) threads_per_block: u64,
    /// True where the block's shape was assumed, or something to read the kernel at all.
    pub(crate) block_assumed: bool,
    pub(crate) grid_assumed: bool,
    /// Why unknown values are unknown.
    pub(crate) reasons: &'a FxHashMap<Symbol, NoValue>,
}

impl Measure<'_> {
    pub(crate) fn branch(&mut self, draft: &BranchDraft) -> Branch {
        let contexts = self.contexts;
        let context = &contexts[draft.context];
        let evaluations = self.executions[draft.context].warps;
        let mut branch = Branch {
            site: draft.site,
            text: draft.text.clone(),
            kind: draft.kind,
            uniformity: Uniformity::DataDependent,
            divergent_warp_fraction: None,
            taken_warp_fraction: None,
            taken_threads: None,
            evaluations: Some(evaluations),
            trips: draft.inner.map(|inner| {
                if evaluations > 0.0 {
                    self.executions[inner].warps / evaluations
                } else {
                    0.0
                }
            }),
            turns: Vec::new(),
            certainty: Certainty::Unknown,
            why: draft.why.clone().or_else(|| context.why.clone()),
            constraints: Vec::new(),
            taken_operations: draft.taken_operations,
            other_operations: draft.other_operations,
            guard: false,
            barrier_hazard: None,
        };
        let Some(condition) = draft.condition else {
            branch.why.get_or_insert(Why::NoTripCount);
            return branch;
        };
        if let Some(data) = self.arena.opaque(condition) {
            if data && draft.kind != BranchKind::Loop {
                // Lanes decide independently with the stated probability.
                let p = draft.probability;
                let outer = self.executions[draft.context];
                let lanes = outer.active_threads(self.domain.warp_size());
                if self.arena.varies_in_warp(condition) {
                    let taken = any_of(p, lanes);
                    branch.taken_warp_fraction = Some(taken);
                    branch.divergent_warp_fraction = Some((taken - p.powf(lanes)).max(0.0));
                } else {
                    branch.taken_warp_fraction = Some(p);
                    branch.divergent_warp_fraction = Some(0.0);
                }
                branch.certainty = Certainty::Assumed;
                let from = match draft.probability_from {
                    From::Directive => "as the directive says",
                    From::Expectation => "from `__builtin_expect`",
                    From::Chance => "assumed: such numbers are equal by chance",
                    From::Record => {
                        "assumed: of n values in any order ln n go beyond all before them"
                    }
                    From::Ticket => "assumed: one of the threads that count gets this number",
                    From::Default => "assumed",
                };
                branch.why = Some(Why::Chance {
                    probability: p,
                    from,
                });
            } else {
                let reason = reason_in(self.arena, self.reasons, condition);
                branch.why.get_or_insert_with(|| match reason {
                    Some(reason) => Why::WithoutValue(reason.clone()),
                    None if data => Why::ByData,
                    None => Why::NotUnderstood,
                });
            }
            return branch;
        }
        let (sum, same, complete) = if counts_ways(draft.kind) {
            let (sum, turns, same, complete) = self.trips(condition, context);
            // Of a loop that may be left before, these are not the iterations.
            if draft.kind == BranchKind::Loop && draft.why.is_none() && complete {
                branch.turns = turns;
            }
            (sum, same, complete)
        } else {
            let (sum, threads, same, complete) = self.sides(condition, context);
            // Of a routine's body it is not followed which threads come there.
            branch.taken_threads = context.routine.is_none().then_some(threads);
            (sum, same, complete)
        };
        // A routine's body is measured for all threads, whether or not some thread calls it.
        let varies = sum.0 > 0.0 && (context.routine.is_none() || evaluations > 0.0);
        branch.taken_warp_fraction = varies.then(|| sum.1 / sum.0);
        branch.divergent_warp_fraction = varies.then(|| sum.2 / sum.0);
        branch.uniformity = if same || !varies || self.launch_uniform(condition) {
            Uniformity::Uniform
        } else if sum.2 == 0.0 {
            Uniformity::WarpUniform
        } else {
            Uniformity::Divergent
        };
        branch.certainty = Certainty::Assumed;
        // A loop's trips are known but for lanes that leave before.
        let left_early = draft.kind == BranchKind::Loop && draft.why.is_some();
        // Nor is it known that a routine is called where its calls are not counted exactly.
        let called = context.routine.is_none() || self.executions[draft.context].exact;
        if complete
            && called
            && !left_early
            && let Some(constraints) = self.holds(draft.kind, condition, context)
        {
            branch.certainty = Certainty::Exact;
            branch.constraints = constraints;
        }
        if branch.certainty == Certainty::Exact {
            branch.why = None;
        } else {
            branch.why.get_or_insert(if complete {
                Why::LaunchAssumed
            } else {
                Why::ManyCases
            });
        }
        branch.guard = draft.kind == BranchKind::If
            && (draft.other_operations == 0 || draft.taken_operations == 0)
            && self.bounds_guard(condition);
        branch
    }

    /// The constraints under which the fractions hold, whatever else was assumed; `None`: they depend on it.
    fn holds(&mut self, kind: BranchKind, condition: Id, context: &Context) -> Option<Vec<String>> {
        if self.block_assumed || context.why.is_some() {
            return None;
        }
        let looping = counts_ways(kind);
        if self.arena.value(condition).is_some() && !assumed(self.arena, condition) {
            return Some(Vec::new());
        }
        if assumed(self.arena, condition) {
            return if looping {
                self.cases
                    .alike(self.arena, self.domain, condition, context)
            } else {
                self.cases.decided(self.arena, condition, context)
            };
        }
        let figure = Figure {
            root: condition,
            period: 0,
            unit: 1,
            bytes: 1,
            context,
            varied: false,
        };
        let lanes = self.domain.warp_size();
        self.cases
            .constraints(self.arena, self.domain, self.budget, &figure, &mut |case| {
                let active = (0..lanes).filter(|lane| case.active >> lane & 1 == 1);
                let values = active.map(|lane| case.values[0][lane]);
                let (mut least, mut most) = (i64::MAX, i64::MIN);
                for value in values {
                    // A loop's lanes differ in the number of iterations, a branch's in the side.
                    let value = if looping {
                        value
                    } else {
                        i64::from(value != 0)
                    };
                    least = least.min(value);
                    most = most.max(value);
                }
                [u32::from(most > 0), u32::from(least != most), 0, 0, 0, 0]
            })
            .map(|conditions| conditions.texts)
    }

    /// Warps that evaluate a condition, that take it with some lane, that split; threads that take it;
    /// whether all agree.
    fn sides(&self, condition: Id, context: &Context) -> ((f64, f64, f64), f64, bool, bool) {
        let mut guards = context.guards();
        let count = |guards: &[Guard]| {
            self.budget
                .count(self.domain, &*self.arena, &context.counters, guards)
        };
        let all = count(&guards);
        guards.push(Guard {
            condition,
            holds: true,
        });
        let taken = count(&guards);
        guards.pop();
        guards.push(Guard {
            condition,
            holds: false,
        });
        let other = count(&guards);
        let both = (taken.warps + other.warps - all.warps).max(0.0);
        (
            (all.warps, taken.warps, both),
            taken.lanes,
            taken.warps == 0.0 || other.warps == 0.0,
            all.complete && taken.complete && other.complete,
        )
    }

    /// Warps that reach a loop, that run it with some lane, whose lanes differ in trips; whether all trips
    /// of the launch are one number.
    fn trips(&self, trips: Id, context: &Context) -> (Sides, Vec<(u64, f64)>, bool, bool) {
        let guards = context.guards();
        let roots = [(trips, 0)];
        let query = Query {
            counters: &context.counters,
            guards: &guards,
            roots: &roots,
            budget: LOOP_BUDGET,
        };
        let lanes = self.domain.warp_size();
        let (mut all, mut some, mut split) = (0.0, 0.0, 0.0);
        let mut one: Option<i64> = None;
        let mut same = true;
        let mut turns: Vec<(u64, f64)> = Vec::new();
        let mut many = false;
        let complete = self
            .budget
            .visit(self.domain, &*self.arena, &query, &mut |case| {
                let values = (0..lanes)
                    .filter(|lane| case.active >> lane & 1 == 1)
                    .map(|lane| case.values[0][lane]);
                let (mut least, mut most) = (i64::MAX, i64::MIN);
                for value in values {
                    least = least.min(value);
                    most = most.max(value);
                }
                same &= least == most && *one.get_or_insert(most) == most;
                all += case.weight;
                some += if most > 0 { case.weight } else { 0.0 };
                split += if least == most { 0.0 } else { case.weight };
                // The warp goes on until its last lane is done.
                let most = most.max(0) as u64;
                match turns.iter().position(|(of, _)| *of == most) {
                    Some(at) => turns[at].1 += case.weight,
                    None if turns.len() < MOST_TURNS_LISTED => turns.push((most, case.weight)),
                    None => many = true,
                }
            });
        if many {
            turns.clear();
        }
        ((all, some, split), turns, same, complete)
    }

    /// One value at each evaluation in the whole launch: it depends on loop counters and fixed values alone.
    fn launch_uniform(&self, condition: Id) -> bool {
        self.arena
            .symbols_of(condition)
            .all(|symbol| match self.arena.symbol_kind(symbol) {
                SymbolKind::Fixed { .. } => true,
                SymbolKind::Counter { .. } => !self.blocks.contains(&symbol),
                _ => false,
            })
    }

    /// A conjunction or disjunction of comparisons of a global coordinate with a bound.
    fn bounds_guard(&self, condition: Id) -> bool {
        match self.arena.node(condition) {
            Node::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, a, b) => {
                self.bounds_guard(*a) && self.bounds_guard(*b)
            }
            Node::Binary(BinaryOp::Lt | BinaryOp::Le, a, b) => {
                let by_lane = |id: Id| self.arena.varies_by_lane(id);
                let by_block = |id: Id| self.blocks.iter().any(|&b| self.arena.depends_on(id, b));
                let linear = |id: Id| {
                    self.arena.terms(id).1.iter().all(|&(term, _)| {
                        matches!(self.arena.node(term), Node::Symbol(_) | Node::Product(_))
                    })
                };
                let (a, b) = (*a, *b);
                (by_lane(a) != by_lane(b)
                    && (by_block(a) || by_block(b))
                    && linear(a)
                    && linear(b))
                    // A coordinate that does not depend on the lane along a further axis.
                    || (!by_lane(a) && !by_lane(b) && (by_block(a) || by_block(b)))
            }
            _ => false,
        }
    }

    /// Sets the hazards of barriers that threads of one block may miss.
    pub(crate) fn hazards(&mut self, barriers: &[BarrierDraft], branches: &mut [Branch]) {
        for barrier in barriers {
            let contexts = self.contexts;
            let context = &contexts[barrier.context];
            let known = |arena: &Arena, guards: &[(Guard, Origin)]| -> Vec<Guard> {
                let guards = guards.iter().map(|(guard, _)| *guard);
                guards
                    .filter(|guard| arena.opaque(guard.condition).is_none())
                    .collect()
            };
            let all = known(self.arena, &context.guards);
            // Who else comes there, and whether anybody does, may depend on what is not known.
            let followed = all.len() == context.guards.len()
                && context.why.is_none()
                && context.warp_factor == 1.0;
            let parted = self.parts_a_block(&all, context);
            let met = self.is_met(&all, context);
            for (at, (guard, origin)) in context.guards.iter().enumerate() {
                let Some(branch) = branches.get(origin.branch) else {
                    continue;
                };
                if branch.barrier_hazard.is_some() || !self.arena.varies_by_lane(guard.condition) {
                    continue;
                }
                // Threads part here, and are neither together again nor all gone where the barrier is.
                let parts = parted
                    && self.arena.opaque(guard.condition).is_none()
                    && self.parts_a_block(&known(self.arena, &context.guards[..=at]), context);
                // An assumed bound cuts the coordinate somewhere: for other values inside a block.
                let bound_assumed = assumed(self.arena, guard.condition);
                let assumed = self.block_assumed || self.grid_assumed || bound_assumed;
                if !(parts || bound_assumed && met) {
                    continue;
                }
                let when = if parts { "" } else { "for other arguments" };
                branches[origin.branch].barrier_hazard = Some(BarrierHazard {
                    barrier: barrier.site,
                    early_exit: origin.early_exit,
                    certainty: match (parts && followed, assumed) {
                        (true, false) => Certainty::Exact,
                        (true, true) => Certainty::Assumed,
                        (false, _) => Certainty::Unknown,
                    },
                    when: when.to_owned(),
                });
            }
        }
    }

    /// True unless it is known that no lane comes there.
    fn is_met(&self, guards: &[Guard], context: &Context) -> bool {
        let counted = self
            .budget
            .count(self.domain, &*self.arena, &context.counters, guards);
        !counted.complete || counted.warps > 0.0
    }

    /// True where these conditions let some threads of a block through and others not.
    fn parts_a_block(&mut self, guards: &[Guard], context: &Context) -> bool {
        if self.are_no_whole_blocks(guards, context) {
            return true;
        }
        // Half of the warps of each of two blocks are as many as those of one: the first block by itself, and the last.
        let ends = self
            .blocks
            .map(|block| match self.arena.symbol_kind(block) {
                SymbolKind::Counter { extent } => extent,
                _ => 1,
            });
        [false, true].into_iter().any(|last| {
            let mut within = guards.to_vec();
            for (block, end) in self.block.into_iter().zip(ends) {
                let at = if last { end - 1 } else { 0 };
                let at = self.arena.constant(at);
                within.push(Guard {
                    condition: self.arena.binary(BinaryOp::Eq, block, at),
                    holds: true,
                });
            }
            self.are_no_whole_blocks(&within, context)
        })
    }

    /// True where those who come there cannot be all the threads of some blocks, each as often as the others.
    fn are_no_whole_blocks(&self, guards: &[Guard], context: &Context) -> bool {
        let counted = self
            .budget
            .count(self.domain, &*self.arena, &context.counters, guards);
        let threads = self.threads_per_block as f64;
        let warps = self
            .threads_per_block
            .div_ceil(self.domain.warp_size() as u64) as f64;
        counted.complete
            && (counted.warps % warps != 0.0 || counted.lanes * warps != counted.warps * threads)
    }
}
