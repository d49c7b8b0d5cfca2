//! What one access costs: its addresses for every warp of the launch, through the target's rules.

use crate::why::{NoValue, Why, reason_in};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_machine::{
    Access as HardwareOp, Profile, atomic_passes, bank_period, constant_passes, global_request,
    global_unit_bytes_for, lines_looked_up, passes_by_width, rows_request, shared_request,
};
use warplens_symbolic::{Arena, Closed, Domain, Guard, Id, Node, Query, Symbol, SymbolKind};

use crate::cases::{Cases, Conditions, Cost, Figure};
use crate::context::{BUDGET, Budget, Context, Executions, assumed};
use crate::draft::{AccessDraft, RequestKind, Unseen, word};
use crate::facts::{
    Access, AddressPart, AlignedRequests, Certainty, Form, IndexExpression, LinearAddress, Op,
    OtherCase, Pattern, Space, Stride,
};
use crate::index::Coordinates;
use crate::linear::Variables;

pub(crate) struct Measure<'a> {
    pub(crate) arena: &'a mut Arena,
    pub(crate) domain: &'a Domain,
    pub(crate) budget: &'a Budget,
    pub(crate) cases: &'a mut Cases,
    pub(crate) profile: &'a Profile,
    pub(crate) threads: [Symbol; 3],
    pub(crate) blocks: [Symbol; 3],
    pub(crate) block_dim: [Id; 3],
    pub(crate) grid_dim: [Id; 3],
    /// True where the block's shape was assumed: then everything about warps is.
    pub(crate) block_assumed: bool,
    pub(crate) grid_assumed: bool,
    /// What was taken for something to read the kernel at all: a type, a template parameter.
    pub(crate) taken: &'a [&'a str],
    /// How the tensors of some parameters are taken to lie in memory.
    pub(crate) layouts: &'a [(&'a str, &'a str)],
    /// Why unknown values are unknown.
    pub(crate) reasons: &'a FxHashMap<Symbol, NoValue>,
    /// Unknown values that move evenly along a sum of coordinates.
    pub(crate) evenly: &'a FxHashMap<Symbol, Id>,
}

/// Cases looked at for the other case of an access, at most.
pub(crate) const OTHER_BUDGET: u32 = 1024;

/// Sums over all requests.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) requests: f64,
    lanes: f64,
    transactions: f64,
    ideal: f64,
    bytes: f64,
    passes: f64,
    ideal_passes: f64,
    by_width: [f64; 3],
    /// The first cost seen; where all are equal nothing depends on how often a case occurs.
    seen: Option<Cost>,
    varied: bool,
    first: Option<Lanes>,
}

impl Sums {
    /// Adds requests of that cost, `weight` of them.
    pub(crate) fn add(
        &mut self,
        weight: f64,
        cost: Cost,
        by_width: [u32; 3],
        shape: impl FnOnce() -> Lanes,
    ) {
        let [transactions, ideal, bytes, passes, ideal_passes, count] = cost.map(f64::from);
        self.requests += weight;
        self.lanes += weight * count;
        self.transactions += weight * transactions;
        self.ideal += weight * ideal;
        self.bytes += weight * bytes;
        self.passes += weight * passes;
        self.ideal_passes += weight * ideal_passes;
        for (sum, each) in self.by_width.iter_mut().zip(by_width) {
            *sum += weight * f64::from(each);
        }
        self.varied |= *self.seen.get_or_insert(cost) != cost;
        if self.first.is_none() {
            self.first = Some(shape());
        }
    }

    /// Extrapolates a sample to a multiple of it.
    pub(crate) fn scale(&mut self, times: f64) {
        let own = [
            &mut self.requests,
            &mut self.lanes,
            &mut self.transactions,
            &mut self.ideal,
            &mut self.bytes,
            &mut self.passes,
            &mut self.ideal_passes,
        ];
        for sum in own.into_iter().chain(&mut self.by_width) {
            *sum *= times;
        }
    }

    /// The sums as those of one alignment.
    pub(crate) fn aligned(&self) -> AlignedRequests {
        AlignedRequests {
            requests: self.requests,
            transactions: self.transactions,
            ideal_transactions: self.ideal,
            bytes_moved: self.bytes,
            lines: self.by_width,
        }
    }

    /// Warps that made the request, and their active lanes.
    pub(crate) fn population(&self) -> (f64, f64) {
        (self.requests, self.lanes)
    }

    /// Puts the averages where they belong; of requests there are some.
    fn fill(&self, access: &mut Access) {
        access.active_lanes_per_request = Some(self.lanes / self.requests);
        match access.space {
            Space::Shared => {
                access.passes_per_request = Some(self.passes / self.requests);
                access.ideal_passes_per_request = Some(self.ideal_passes / self.requests);
                access.bank_conflict_degree = Some(self.passes / self.ideal_passes);
                let joined = self.by_width[2] > 0.0;
                access.by_width = joined.then(|| self.by_width.map(|each| each / self.requests));
            }
            Space::Constant => {
                access.passes_per_request = Some(self.passes / self.requests);
                access.ideal_passes_per_request = Some(1.0);
            }
            Space::Local => {}
            Space::Global | Space::Texture => {
                access.transactions_per_request = Some(self.transactions / self.requests);
                access.ideal_transactions_per_request = Some(self.ideal / self.requests);
                access.bytes_moved_per_request = Some(self.bytes / self.requests);
                access.by_width = Some(self.by_width.map(|each| each / self.requests));
            }
        }
        if access.op == Op::Atomic {
            access.passes_per_request = Some(self.passes / self.requests);
            access.ideal_passes_per_request = Some(1.0);
        }
        access.pattern = pattern(access, self);
    }
}

/// Makes the figures of an access those that were counted request by request.
pub(crate) fn counted(access: &mut Access, sums: &Sums) {
    access.certainty = Certainty::Exact;
    access.why = None;
    access.constraints.clear();
    access.other_case = None;
    access.requests = Some(sums.requests);
    if sums.requests > 0.0 {
        sums.fill(access);
    }
}

/// Averages that differ by less are the same.
const SAME: f64 = 1e-9;

/// The constraint of a figure that holds wherever the part of an address lies that is not known.
fn any_offset(data: bool) -> String {
    let part = if data {
        "data decides"
    } else {
        "is not followed"
    };
    format!("any value of the offset that {part}")
}

/// An access with the figures that were found for another address, and its own place.
fn placed_as(access: Access, found: Access) -> Access {
    Access {
        index: access.index,
        index_expression: access.index_expression,
        stride: access.stride,
        linear: access.linear,
        linear_in_blocks: access.linear_in_blocks,
        parts: access.parts,
        ..found
    }
}

/// Transactions per request where they are fewest and where they are most.
fn least_and_most(places: &[AlignedRequests]) -> Option<(f64, f64)> {
    let each = places.iter().filter(|place| place.requests > 0.0);
    let mut each = each.map(|place| place.transactions / place.requests);
    let first = each.next()?;
    Some(each.fold((first, first), |(least, most), one| {
        (least.min(one), most.max(one))
    }))
}

#[derive(Debug)]
pub(crate) struct Lanes {
    same: bool,
    constant_step: Option<i64>,
}

impl Measure<'_> {
    pub(crate) fn access(
        &mut self,
        draft: &AccessDraft,
        context: &Context,
        executions: Executions,
    ) -> Access {
        let unit = match draft.space {
            Space::Shared | Space::Constant | Space::Local => 0,
            _ => global_unit_bytes_for(self.profile, hardware_op(draft.op), draft.bytes),
        };
        let (index, index_expression) = self.index(draft);
        let linear = self.linear(draft, context, false);
        let parts = if linear.is_none() {
            self.parts(draft, context)
        } else {
            None
        };
        let mut access = Access {
            site: draft.site,
            text: draft.text.clone(),
            array: draft.array.clone(),
            space: draft.space,
            remote: draft.remote,
            op: draft.op,
            bytes_per_lane: draft.bytes,
            form: draft.form,
            instruction: draft.instruction.clone(),
            index,
            index_expression,
            pattern: Pattern::Unknown,
            stride: self.stride(draft, context),
            linear,
            linear_in_blocks: self.linear(draft, context, true),
            parts,
            in_array: self.in_array(draft, context),
            field: draft.field.clone(),
            transactions_per_request: None,
            ideal_transactions_per_request: None,
            transaction_bytes: unit,
            bytes_moved_per_request: None,
            by_width: None,
            by_alignment: Vec::new(),
            passes_per_request: None,
            ideal_passes_per_request: None,
            bank_conflict_degree: None,
            requests: Some(executions.warps),
            active_lanes_per_request: (executions.warps > 0.0)
                .then(|| executions.lanes / executions.warps),
            certainty: Certainty::Unknown,
            why: None,
            constraints: Vec::new(),
            other_case: None,
            ahead: draft.ahead,
            combines: draft.combines,
            loop_depth: context.loop_depth,
            shared_array: draft.shared,
            array_bytes: draft.extent,
            alias: draft.alias,
            first_use: None,
        };
        if let Some(unseen) = draft.unseen {
            let why = match unseen {
                Unseen::Pipe => Why::Pipe,
                Unseen::Image => Why::Image,
                Unseen::Box => Why::Box,
                Unseen::Reserved => Why::ReservedBits,
                Unseen::DescribedInBytes => Why::DescribedInBytes,
                Unseen::Launch => {
                    access.requests = None;
                    access.active_lanes_per_request = None;
                    Why::EnqueuedLaunch
                }
            };
            access.why = Some(why);
            return access;
        }
        if let Some(data) = self.arena.opaque(draft.address)
            // What has no value is at no place.
            && reason_in(self.arena, self.reasons, draft.address).is_none()
            && let Some(address) = self.without_whole_periods(draft)
        {
            let known = AccessDraft {
                address,
                ..draft.clone()
            };
            let mut found = self.access(&known, context, executions);
            if found.certainty == Certainty::Exact && found.requests != Some(0.0) {
                found.constraints.push(any_offset(data));
            }
            return placed_as(access, found);
        }
        if let Some(data) = self.arena.opaque(draft.address) {
            access.pattern = if data {
                Pattern::DataDependent
            } else {
                Pattern::Unknown
            };
            // What is never executed makes no requests, wherever it points.
            let nowhere = AccessDraft {
                address: self.arena.constant(0),
                ..draft.clone()
            };
            if executions.warps == 0.0
                && self
                    .holds(&nowhere, context, executions.exact, true)
                    .is_some_and(|conditions| conditions.texts.is_empty())
            {
                access.certainty = Certainty::Exact;
                return access;
            }
            let reason = reason_in(self.arena, self.reasons, draft.address);
            access.why = Some(match reason {
                Some(reason) => Why::IndexWithoutValue(reason.clone()),
                None if data => Why::IndexByData,
                None => Why::IndexNotUnderstood,
            });
            access.by_alignment = self.by_alignment(draft, context, i64::from(unit));
            // What has no value is at no place.
            let has_value = reason.is_none();
            if let Some((least, most)) = least_and_most(&access.by_alignment).filter(|_| has_value)
            {
                if (most - least).abs() < SAME
                    && let Some(mut found) = self.wherever_it_begins(draft, context, executions)
                {
                    if found.certainty == Certainty::Exact {
                        found.constraints.push(any_offset(data));
                    }
                    return placed_as(access, found);
                }
                if access.why == Some(Why::IndexByData)
                    && most - least >= SAME
                    && self.starts(draft, i64::from(unit)).is_some()
                {
                    access.why = Some(Why::StartByData { least, most });
                }
            }
            return access;
        }
        if let Some(doubt) = &draft.doubt
            && !self.depends_on_assumption(doubt.when, context)
        {
            let mut guards = context.guards();
            guards.push(Guard {
                condition: doubt.when,
                holds: true,
            });
            let budget = self.budget;
            let met = budget.count(self.domain, self.arena, &context.counters, &guards);
            if met.lanes > 0.0 {
                access.why = Some(Why::IndexWithoutValue(doubt.why.clone()));
                access.by_alignment = self.as_if_defined(draft, context);
                return access;
            }
        }
        if draft.space == Space::Local && self.arena.as_const(draft.address).is_some() {
            return Self::in_registers(access, context, executions);
        }
        let (sums, complete) = self.sum(draft, draft.address, context, BUDGET);
        if sums.requests == 0.0 {
            access.certainty = if self
                .holds(draft, context, complete, true)
                .is_some_and(|conditions| conditions.texts.is_empty())
            {
                Certainty::Exact
            } else {
                Certainty::Assumed
            };
            if access.certainty == Certainty::Assumed {
                access.why = Some(context.why.clone().unwrap_or(Why::NeverExecuted));
            }
            access.pattern = pattern(&access, &sums);
            access.requests = Some(0.0);
            return access;
        }
        sums.fill(&mut access);
        access.requests = Some(sums.requests * context.warp_factor);
        if access.op == Op::Atomic && context.warp_factor > 0.0 {
            // Of the lanes that may come, as many do as the chances on the way let through.
            let come = (context.lane_factor / context.warp_factor).min(1.0);
            let fewer = |figure: f64| (figure * come).max(1.0);
            access.passes_per_request = access.passes_per_request.map(fewer);
            access.active_lanes_per_request = access.active_lanes_per_request.map(fewer);
        }
        access.certainty = Certainty::Assumed;
        if let Some(conditions) = self.holds(draft, context, complete, sums.varied) {
            access.certainty = Certainty::Exact;
            access.other_case = self.other_case(draft, context, &conditions, &sums);
            access.constraints = conditions.texts;
            access.constraints.extend(self.layout_of(draft));
        }
        access.why = match access.certainty {
            Certainty::Exact => None,
            _ if !complete => Some(Why::ManyCases),
            _ => context
                .why
                .clone()
                .or_else(|| Some(Why::Assumed(self.assumption(draft)))),
        };
        if draft.space == Space::Local {
            access.why = Some(Why::InRegisters);
        }
        access
    }

    /// The figures of an access whose start is not known, where they are the same wherever it lies.
    fn wherever_it_begins(
        &mut self,
        draft: &AccessDraft,
        context: &Context,
        executions: Executions,
    ) -> Option<Access> {
        let unit = global_unit_bytes_for(self.profile, hardware_op(draft.op), draft.bytes);
        let mut found: Option<Access> = None;
        for address in self.starts(draft, i64::from(unit))? {
            let at = AccessDraft {
                address,
                ..draft.clone()
            };
            let one = self.access(&at, context, executions);
            let figures = |of: &Access| (of.transactions_per_request, of.bytes_moved_per_request);
            let same = found.as_ref().is_none_or(|first| {
                figures(first) == figures(&one)
                    && first.constraints == one.constraints
                    && first.certainty == one.certainty
            });
            // An access in a loop that data ends is executed an assumed number of times.
            let known = match one.certainty {
                Certainty::Exact => true,
                Certainty::Assumed => context.why.is_some(),
                Certainty::Unknown => false,
            };
            if !same || !known || one.requests == Some(0.0) {
                return None;
            }
            found.get_or_insert(one);
        }
        found
    }

    /// What requests take if the index means what it says.
    fn as_if_defined(&self, draft: &AccessDraft, context: &Context) -> Vec<AlignedRequests> {
        let (sums, _) = self.sum(draft, draft.address, context, OTHER_BUDGET);
        let some = sums.requests > 0.0 && !matches!(draft.space, Space::Shared | Space::Constant);
        some.then(|| sums.aligned()).into_iter().collect()
    }

    /// True where another launch or argument than the one assumed could change a condition.
    fn depends_on_assumption(&self, condition: Id, context: &Context) -> bool {
        let loose = context.loose.iter();
        self.block_assumed
            || self.grid_assumed
            || !self.taken.is_empty()
            || assumed(self.arena, condition)
            || loose
                .map(|(counter, _)| *counter)
                .any(|counter| self.arena.depends_on(condition, counter))
    }

    /// Of an array in registers every lane has the same element: nothing needs to be summed.
    fn in_registers(access: Access, context: &Context, executions: Executions) -> Access {
        let runs = executions.warps > 0.0;
        let lanes =
            executions.lanes * context.warp_factor / (executions.warps * context.lane_factor);
        Access {
            pattern: if runs {
                Pattern::Broadcast
            } else {
                Pattern::Unknown
            },
            active_lanes_per_request: (runs && lanes.is_finite()).then_some(lanes),
            certainty: Certainty::Assumed,
            why: runs.then_some(Why::InRegisters),
            ..access
        }
    }

    pub(crate) fn sum(
        &self,
        draft: &AccessDraft,
        address: Id,
        context: &Context,
        budget: u32,
    ) -> (Sums, bool) {
        let guards = context.guards();
        let roots = [(address, draft.period(self.profile))];
        let query = Query {
            counters: &context.counters,
            guards: &guards,
            roots: &roots,
            budget,
        };
        let mut sums = Sums::default();
        let lanes = self.domain.warp_size();
        let (profile, arena) = (self.profile, &*self.arena);
        let complete = self.budget.visit(self.domain, arena, &query, &mut |case| {
            let addresses = &case.values[0][..lanes];
            let cost = cost(profile, draft.kind(), addresses, case.active);
            let by_width = by_width(profile, draft.kind(), addresses, case.active);
            sums.add(case.weight, cost, by_width, || {
                shape(addresses, case.active)
            });
        });
        (sums, complete)
    }

    /// The constraints under which the figures hold, whatever else was assumed; `None`: they depend on it.
    fn holds(
        &mut self,
        draft: &AccessDraft,
        context: &Context,
        complete: bool,
        varied: bool,
    ) -> Option<Conditions> {
        let depends = self.block_assumed
            || !self.taken.is_empty()
            || context.why.is_some()
            || draft.space == Space::Local;
        if !complete || depends {
            return None;
        }
        let period = draft.period(self.profile);
        let figure = Figure {
            root: draft.address,
            period,
            // Words that two lanes share come once; on Kepler two of one row, or of one bank.
            unit: match draft.space {
                Space::Shared if self.profile.bank_rule.is_of_words() => word(draft.width()),
                _ => period,
            },
            bytes: i64::from(draft.width()),
            context,
            varied,
        };
        let (profile, lanes) = (self.profile, self.domain.warp_size());
        self.cases
            .constraints(self.arena, self.domain, self.budget, &figure, &mut |case| {
                let addresses = &case.values[0][..lanes];
                cost(profile, draft.kind(), addresses, case.active)
            })
    }

    /// How the tensor lies in memory that an access goes to, as the figures have it.
    fn layout_of(&self, draft: &AccessDraft) -> Option<String> {
        let is_of = |name: &str| {
            let rest = draft.array.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let (name, layout) = self.layouts.iter().find(|(name, _)| is_of(name))?;
        Some(format!("{name} is {layout}"))
    }

    /// What the access costs one value beside the one assumed, where that is another figure.
    fn other_case(
        &mut self,
        draft: &AccessDraft,
        context: &Context,
        conditions: &Conditions,
        expected: &Sums,
    ) -> Option<OtherCase> {
        let (address, context, when) =
            self.cases
                .other(self.arena, draft.address, context, conditions)?;
        let (sums, complete) = self.sum(draft, address, &context, OTHER_BUDGET);
        if !complete || sums.requests == 0.0 {
            return None;
        }
        let figure = |sums: &Sums| match draft.space {
            Space::Shared | Space::Constant => (sums.passes, sums.ideal_passes),
            _ => (sums.transactions, sums.ideal),
        };
        let ((cost, ideal), (usual, _)) = (figure(&sums), figure(expected));
        let (cost, ideal) = (cost / sums.requests, ideal / sums.requests);
        ((cost - usual / expected.requests).abs() > 1e-9).then_some(OtherCase { when, cost, ideal })
    }

    fn assumption(&self, draft: &AccessDraft) -> String {
        let names: Vec<&str> = self
            .arena
            .symbols_of(draft.address)
            .filter(|&symbol| {
                matches!(
                    self.arena.symbol_kind(symbol),
                    SymbolKind::Fixed { assumed: true, .. }
                )
            })
            .map(|symbol| self.arena.symbol_name(symbol))
            .collect();
        if !names.is_empty() {
            names.join(", ")
        } else if !self.taken.is_empty() {
            self.taken.join(", ")
        } else if self.block_assumed {
            "block".to_owned()
        } else {
            "grid or arguments".to_owned()
        }
    }

    /// The index in elements, as text and as an expression; in bytes, as text alone, where elements do not divide it.
    fn index(&mut self, draft: &AccessDraft) -> (String, Option<Arc<IndexExpression>>) {
        let element = i64::from(draft.element.max(1));
        let (constant, terms) = self.arena.terms(draft.address);
        if constant % element == 0 && terms.iter().all(|&(_, c)| c % element == 0) {
            let divisor = self.arena.constant(element);
            let index = self
                .arena
                .binary(warplens_symbolic::BinaryOp::Div, draft.address, divisor);
            if self.arena.opaque(index).is_none() || terms.len() < 8 {
                let expression = Coordinates {
                    threads: self.threads,
                    blocks: self.blocks,
                    block_dim: self.block_dim,
                    grid_dim: self.grid_dim,
                }
                .read(self.arena, index);
                return (self.arena.text(index), Some(Arc::new(expression)));
            }
        }
        (format!("({}) bytes", self.arena.text(draft.address)), None)
    }

    /// The address as it can be evaluated later, of shared memory and of copies.
    fn in_array(&self, draft: &AccessDraft, context: &Context) -> Option<Arc<Closed>> {
        let bulk = matches!(draft.form, Form::Bulk(_))
            && !draft.of_tensor
            && !assumed(self.arena, draft.address);
        let shared = draft.space == Space::Shared && draft.shared.is_some();
        let copied = draft.space == Space::Global && draft.ahead.is_some();
        let closed = (bulk || shared || copied)
            .then(|| Closed::of(self.arena, draft.address, &context.counters))
            .flatten();
        closed.map(Arc::new)
    }

    /// The address as a sum, of what goes through caches.
    fn linear(
        &self,
        draft: &AccessDraft,
        context: &Context,
        blocks_only: bool,
    ) -> Option<LinearAddress> {
        let variables = self.variables(context, blocks_only);
        is_cached(draft)
            .then(|| variables.read(self.arena, draft.address))
            .flatten()
    }

    /// The address as a sum of parts, of what goes through caches.
    fn parts(&mut self, draft: &AccessDraft, context: &Context) -> Option<Vec<(i64, AddressPart)>> {
        if !is_cached(draft) {
            return None;
        }
        let straight = self.straightened(draft, context);
        let variables = self.variables(context, false);
        variables.parts(self.arena, straight.unwrap_or(draft.address))
    }

    fn variables<'c>(&self, context: &'c Context, blocks_only: bool) -> Variables<'c> {
        Variables {
            threads: self.threads,
            blocks: self.blocks,
            loops: context.loops(),
            blocks_only,
        }
    }

    /// The distance between x-neighbours (or the innermost thread axis that has more than one thread).
    fn stride(&mut self, draft: &AccessDraft, context: &Context) -> Option<Stride> {
        let axis = (0..3u8)
            .find(|&axis| self.domain.thread_range(axis).hi > 0)
            .unwrap_or(0);
        let thread = self.threads[axis as usize];
        let (_, terms) = self.arena.terms(draft.address);
        let mut total = self.arena.constant(0);
        let mut unit_elsewhere = false;
        let bytes = i64::from(draft.element.max(1));
        for (term, coefficient) in terms {
            if !self.arena.depends_on(term, thread) {
                let moving = self.arena.as_symbol(term).is_some_and(|symbol| {
                    self.threads.contains(&symbol) || context.counters.contains(&symbol)
                });
                unit_elsewhere |= moving && coefficient.abs() == bytes;
                continue;
            }
            let factor = self.linear_factor(term, thread)?;
            let scaled = self.arena.scale(factor, coefficient);
            total = self.arena.add(total, scaled);
        }
        let value = self.arena.value(total)?;
        let symbolic = self.arena.as_const(total).is_none();
        // A walk to lower addresses is as far from lane to lane: what is read is the distance, without its direction.
        let distance = if value < 0 {
            self.arena.neg(total)
        } else {
            total
        };
        let (constant, terms) = self.arena.terms(distance);
        let in_bytes = constant % bytes != 0 || terms.iter().any(|&(_, c)| c % bytes != 0);
        let told = if in_bytes {
            distance
        } else {
            let divisor = self.arena.constant(bytes);
            self.arena
                .binary(warplens_symbolic::BinaryOp::Div, distance, divisor)
        };
        Some(Stride {
            bytes: value,
            text: self.arena.text(told),
            in_bytes,
            symbolic,
            unit_elsewhere,
        })
    }

    /// `f` where the term is `f · thread` and `f` does not depend on the thread.
    fn linear_factor(&mut self, term: Id, thread: Symbol) -> Option<Id> {
        match self.arena.node(term).clone() {
            Node::Symbol(symbol) if symbol == thread => Some(self.arena.constant(1)),
            Node::Product(factors) => {
                let mut rest = self.arena.constant(1);
                let mut seen = false;
                for &factor in factors.iter() {
                    if self.arena.as_symbol(factor) == Some(thread) && !seen {
                        seen = true;
                    } else if self.arena.depends_on(factor, thread) {
                        return None;
                    } else {
                        rest = self.arena.mul(rest, factor);
                    }
                }
                seen.then_some(rest)
            }
            _ => None,
        }
    }
}

fn is_cached(draft: &AccessDraft) -> bool {
    matches!(
        draft.space,
        Space::Global | Space::Texture | Space::Constant
    )
}

fn pattern(access: &Access, sums: &Sums) -> Pattern {
    let Some(first) = &sums.first else {
        return Pattern::Unknown;
    };
    if first.same {
        return Pattern::Broadcast;
    }
    let bytes = i64::from(access.bytes_per_lane);
    let step = access
        .stride
        .as_ref()
        .map(|stride| stride.bytes)
        .or(first.constant_step);
    match step {
        Some(step) if step.abs() == bytes => Pattern::Coalesced,
        Some(_) => Pattern::Strided,
        None => Pattern::Scattered,
    }
}

/// Transactions, the ideal, bytes moved, passes, the ideal, active lanes of one request.
pub(crate) fn cost(profile: &Profile, kind: RequestKind, addresses: &[i64], active: u64) -> Cost {
    let RequestKind {
        space,
        op,
        form,
        bytes,
    } = kind;
    let mut cost = [0, 0, 0, 0, 0, active.count_ones()];
    if let Form::Bulk(bytes) = form {
        return bulk(profile, space, op, bytes, addresses, active);
    }
    if let Form::Described { bytes, .. } = form {
        // Each layout that a descriptor says has all banks at work.
        let row = bank_period(profile).max(1) as u32;
        cost[3] = active.count_ones() * bytes.div_ceil(row);
        cost[4] = cost[3];
        return cost;
    }
    match space {
        Space::Shared => {
            let request = match form {
                Form::Rows(matrices) => rows_request(profile, matrices, addresses, active),
                _ => shared_request(profile, bytes, addresses, active),
            };
            cost[3] = request.passes;
            cost[4] = request.ideal;
            if op == Op::Atomic {
                // Lanes on one word come one after the other, as do words of one bank.
                cost[3] = cost[3].max(atomic_passes(bytes, addresses, active));
            }
        }
        Space::Constant => {
            cost[3] = constant_passes(bytes, addresses, active);
            cost[4] = 1;
        }
        Space::Local => {}
        Space::Global | Space::Texture => {
            let request = global_request(profile, hardware_op(op), bytes, addresses, active);
            cost[0] = request.transactions;
            cost[1] = request.ideal;
            cost[2] = request.bytes_moved;
            if op == Op::Atomic {
                cost[3] = atomic_passes(bytes, addresses, active);
                cost[4] = 1;
            }
        }
    }
    cost
}

/// What copies of `bytes` cost that the active lanes start, each from its address on.
fn bulk(
    profile: &Profile,
    space: Space,
    op: Op,
    bytes: u32,
    addresses: &[i64],
    active: u64,
) -> Cost {
    let mut cost = [0, 0, 0, 0, 0, active.count_ones()];
    let unit = match space {
        Space::Shared => bank_period(profile).max(1),
        _ => i64::from(global_unit_bytes_for(profile, hardware_op(op), 16).max(1)),
    };
    for (lane, &start) in addresses.iter().enumerate() {
        if active >> lane & 1 == 0 {
            continue;
        }
        let end = start.saturating_add(i64::from(bytes)) - 1;
        let units = (end.div_euclid(unit) - start.div_euclid(unit) + 1) as u32;
        let ideal = bytes.div_ceil(unit as u32);
        if space == Space::Shared {
            cost[3] = cost[3].saturating_add(units);
            cost[4] = cost[4].saturating_add(ideal);
        } else {
            cost[0] = cost[0].saturating_add(units);
            cost[1] = cost[1].saturating_add(ideal);
            cost[2] = cost[2].saturating_add(units.saturating_mul(unit as u32));
        }
    }
    cost
}

/// What one request takes for words of 4, 8 and 16 bytes, which the compiler may make of several accesses: lines that L1 looks up,
/// passes of shared memory; nothing where neither is asked.
pub(crate) fn by_width(
    profile: &Profile,
    kind: RequestKind,
    addresses: &[i64],
    active: u64,
) -> [u32; 3] {
    match kind.space {
        Space::Global | Space::Texture => lines_looked_up(addresses, active),
        Space::Shared if kind.is_joined_in_shared_memory(profile) => {
            passes_by_width(profile, addresses, active)
        }
        Space::Shared | Space::Constant | Space::Local => [0; 3],
    }
}

pub(crate) fn shape(addresses: &[i64], active: u64) -> Lanes {
    let mut step = None;
    let mut constant = true;
    let mut previous: Option<(usize, i64)> = None;
    for (lane, &address) in addresses.iter().enumerate() {
        if active >> lane & 1 == 0 {
            continue;
        }
        if let Some((before, from)) = previous {
            let apart = (lane - before) as i64;
            let this = address.wrapping_sub(from) / apart;
            constant &=
                address.wrapping_sub(from) % apart == 0 && *step.get_or_insert(this) == this;
        }
        previous = Some((lane, address));
    }
    Lanes {
        same: constant && step.unwrap_or(0) == 0,
        constant_step: step.filter(|_| constant),
    }
}

fn hardware_op(op: Op) -> HardwareOp {
    match op {
        Op::Load => HardwareOp::Load,
        Op::Store => HardwareOp::Store,
        Op::Atomic => HardwareOp::Atomic,
    }
}
