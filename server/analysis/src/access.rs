//! What one access costs: its addresses for every warp of the launch, through the target's rules.

use warplens_hardware::{
    Access as HardwareOp, Profile, address_period, atomic_passes, bank_period, constant_passes,
    global_request, global_unit_bytes_for, shared_request,
};
use warplens_symbolic::{Arena, Domain, Id, Interval, Node, Query, Symbol, SymbolKind};

use crate::context::{BUDGET, Budget, Context, Executions, assumed};
use crate::facts::{Access, Certainty, Op, Pattern, Site, Space, Stride, StructField};

/// An access before it is measured.
#[derive(Debug, Clone)]
pub(crate) struct AccessDraft {
    pub(crate) site: Site,
    pub(crate) text: String,
    pub(crate) array: String,
    pub(crate) space: Space,
    pub(crate) shared: Option<usize>,
    pub(crate) op: Op,
    pub(crate) bytes: u32,
    pub(crate) element: u32,
    pub(crate) address: Id,
    pub(crate) context: usize,
    pub(crate) field: Option<StructField>,
}

pub(crate) struct Measure<'a> {
    pub(crate) arena: &'a mut Arena,
    pub(crate) domain: &'a Domain,
    pub(crate) budget: &'a Budget,
    pub(crate) profile: &'a Profile,
    pub(crate) threads: [Symbol; 3],
    /// True where the block's shape was assumed: then everything about warps is.
    pub(crate) block_assumed: bool,
    /// True where the grid was assumed.
    pub(crate) grid_assumed: bool,
}

/// Sums over all requests.
#[derive(Default)]
struct Sums {
    requests: f64,
    lanes: f64,
    transactions: f64,
    ideal: f64,
    bytes: f64,
    passes: f64,
    ideal_passes: f64,
    /// Smallest and largest cost seen: where they are equal nothing hangs on how often a case occurs.
    least: Option<(u32, u32, u32)>,
    varied: bool,
    first: Option<Lanes>,
}

struct Lanes {
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
        let index = self.index_text(draft);
        let mut access = Access {
            site: draft.site,
            text: draft.text.clone(),
            array: draft.array.clone(),
            space: draft.space,
            op: draft.op,
            bytes_per_lane: draft.bytes,
            index,
            pattern: Pattern::Unknown,
            stride: self.stride(draft, context),
            field: draft.field.clone(),
            transactions_per_request: None,
            ideal_transactions_per_request: None,
            transaction_bytes: unit,
            bytes_moved_per_request: None,
            passes_per_request: None,
            ideal_passes_per_request: None,
            bank_conflict_degree: None,
            requests: Some(executions.warps),
            active_lanes_per_request: (executions.warps > 0.0)
                .then(|| executions.lanes / executions.warps),
            certainty: Certainty::Unknown,
            why: None,
            constraints: Vec::new(),
            loop_depth: context.loop_depth,
            shared_array: draft.shared,
        };
        if let Some(data) = self.arena.opaque(draft.address) {
            access.pattern = if data {
                Pattern::DataDependent
            } else {
                Pattern::Unknown
            };
            access.why = Some(if data {
                "the index hangs on data in memory".to_owned()
            } else {
                "part of the index was not understood".to_owned()
            });
            return access;
        }
        let (sums, complete) = self.sum(draft, context);
        if sums.requests == 0.0 {
            access.certainty = self.certainty(draft, context, true, true);
            access.pattern = Self::pattern(&access, &sums);
            access.requests = Some(0.0);
            return access;
        }
        access.active_lanes_per_request = Some(sums.lanes / sums.requests);
        access.requests = Some(sums.requests * context.warp_factor);
        match draft.space {
            Space::Shared => {
                access.passes_per_request = Some(sums.passes / sums.requests);
                access.ideal_passes_per_request = Some(sums.ideal_passes / sums.requests);
                access.bank_conflict_degree = Some(sums.passes / sums.ideal_passes);
            }
            Space::Constant => {
                access.passes_per_request = Some(sums.passes / sums.requests);
                access.ideal_passes_per_request = Some(1.0);
            }
            Space::Local => {}
            Space::Global | Space::Texture => {
                access.transactions_per_request = Some(sums.transactions / sums.requests);
                access.ideal_transactions_per_request = Some(sums.ideal / sums.requests);
                access.bytes_moved_per_request = Some(sums.bytes / sums.requests);
            }
        }
        if draft.op == Op::Atomic {
            access.passes_per_request = Some(sums.passes / sums.requests);
            access.ideal_passes_per_request = Some(1.0);
        }
        access.pattern = Self::pattern(&access, &sums);
        access.certainty = self.certainty(draft, context, complete, sums.varied);
        access.why = match access.certainty {
            Certainty::Exact => None,
            _ if !complete => Some("a sample of the launch: too many distinct cases".to_owned()),
            _ => context.why.clone().or_else(|| Some(self.assumption(draft))),
        };
        if draft.space == Space::Local {
            access.why = Some("registers or local memory: the compiler decides".to_owned());
        }
        access
    }

    fn sum(&mut self, draft: &AccessDraft, context: &Context) -> (Sums, bool) {
        let modulus = match draft.space {
            Space::Shared => bank_period(self.profile),
            Space::Constant => 4,
            _ => address_period(self.profile),
        };
        let guards = context.guards();
        let roots = [(draft.address, modulus.max(1))];
        let query = Query {
            counters: &context.counters,
            guards: &guards,
            roots: &roots,
            budget: BUDGET,
        };
        let mut sums = Sums::default();
        let lanes = self.domain.warp_size();
        let (profile, arena) = (self.profile, &*self.arena);
        let complete = self.budget.visit(self.domain, arena, &query, &mut |case| {
            let addresses = &case.values[0][..lanes];
            let weight = case.weight;
            let active = case.active;
            let count = active.count_ones();
            sums.requests += weight;
            sums.lanes += weight * f64::from(count);
            let mut cost = (0, 0);
            match draft.space {
                Space::Shared => {
                    let request = shared_request(profile, draft.bytes, addresses, active);
                    sums.passes += weight * f64::from(request.passes);
                    sums.ideal_passes += weight * f64::from(request.ideal);
                    cost = (request.passes, request.ideal);
                }
                Space::Constant => {
                    let passes = constant_passes(draft.bytes, addresses, active);
                    sums.passes += weight * f64::from(passes);
                    cost.0 = passes;
                }
                Space::Local => {}
                Space::Global | Space::Texture => {
                    let request = global_request(
                        profile,
                        hardware_op(draft.op),
                        draft.bytes,
                        addresses,
                        active,
                    );
                    sums.transactions += weight * f64::from(request.transactions);
                    sums.ideal += weight * f64::from(request.ideal);
                    sums.bytes += weight * f64::from(request.bytes_moved);
                    cost = (request.transactions, request.ideal);
                }
            }
            if draft.op == Op::Atomic {
                let passes = atomic_passes(draft.bytes, addresses, active);
                if draft.space != Space::Shared {
                    sums.passes += weight * f64::from(passes);
                }
            }
            let seen = (cost.0, cost.1, count);
            sums.varied |= *sums.least.get_or_insert(seen) != seen;
            if sums.first.is_none() {
                sums.first = Some(shape(addresses, active));
            }
        });
        (sums, complete)
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

    fn certainty(
        &self,
        draft: &AccessDraft,
        context: &Context,
        complete: bool,
        varied: bool,
    ) -> Certainty {
        let hangs = self.block_assumed
            || context.why.is_some()
            || assumed(self.arena, draft.address)
            || (varied && (self.grid_assumed || context.hangs_on_assumption(self.arena)));
        if !complete || hangs || draft.space == Space::Local {
            Certainty::Assumed
        } else {
            Certainty::Exact
        }
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
            format!("hangs on the assumed {}", names.join(", "))
        } else if self.block_assumed {
            "hangs on the assumed block".to_owned()
        } else {
            "hangs on the assumed grid or arguments".to_owned()
        }
    }

    /// The index in elements, as text; in bytes where elements do not divide it.
    fn index_text(&mut self, draft: &AccessDraft) -> String {
        let element = i64::from(draft.element.max(1));
        let (constant, terms) = self.arena.terms(draft.address);
        if constant % element == 0 && terms.iter().all(|&(_, c)| c % element == 0) {
            let divisor = self.arena.constant(element);
            let index = self
                .arena
                .binary(warplens_symbolic::BinaryOp::Div, draft.address, divisor);
            if self.arena.opaque(index).is_none() || terms.len() < 8 {
                return self.arena.text(index);
            }
        }
        format!("({}) bytes", self.arena.text(draft.address))
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
        let text = {
            let divisor = self.arena.constant(bytes);
            let (constant, terms) = self.arena.terms(total);
            if constant % bytes == 0 && terms.iter().all(|&(_, c)| c % bytes == 0) {
                let elements = self
                    .arena
                    .binary(warplens_symbolic::BinaryOp::Div, total, divisor);
                self.arena.text(elements)
            } else {
                format!("{value} bytes")
            }
        };
        Some(Stride {
            bytes: value,
            text,
            symbolic,
            unit_elsewhere,
        })
    }

    /// `f` where the term is `f · thread` and `f` does not hang on the thread.
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

fn shape(addresses: &[i64], active: u64) -> Lanes {
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

/// Any value an opaque integer may have.
pub(crate) fn any() -> Interval {
    Interval::ANY
}
