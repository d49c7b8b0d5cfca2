//! Under which conditions, and how often, a statement runs.

use crate::why::Why;
use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;
use warplens_ir::stop;
use warplens_symbolic::{
    Arena, BinaryOp, Case, Domain, Guard, Id, Node, Query, Symbol, SymbolKind,
};

/// Cases looked at for one sum, at most: beyond, the result is a sample and not exact.
pub(crate) const BUDGET: u32 = 8192;

/// All cases that one kernel may take: a keystroke waits for them.
const KERNEL_BUDGET: u32 = 60_000;
/// What a sum may still take when the kernel's budget is spent.
const LEAST_BUDGET: u32 = 64;
/// Guards that are looked at for the price of one case. A branch behind thousands of others takes more of the budget.
const GUARDS_OF_A_CASE: usize = 64;
/// However many guards there are, a sum takes that many cases.
const FEWEST_CASES: u32 = 4;

/// Counters and guards that something was counted under.
type Counted = (Vec<Symbol>, Vec<Guard>);

/// What is left of a kernel's budget, and what was counted with it.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u32>,
    counted: RefCell<FxHashMap<Counted, Population>>,
}

/// How many there are of what some guards let through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Population {
    /// Executions of warps in which some lane takes part.
    pub(crate) warps: f64,
    /// Lanes that take part in them.
    pub(crate) lanes: f64,
    /// False where it is a sample.
    pub(crate) complete: bool,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget {
            left: Cell::new(KERNEL_BUDGET),
            counted: RefCell::default(),
        }
    }

    /// Counts what passes all guards. A side of a branch is asked for by the branch and by what is
    /// inside it: it is counted once.
    pub(crate) fn count(
        &self,
        domain: &Domain,
        arena: &Arena,
        counters: &[Symbol],
        guards: &[Guard],
    ) -> Population {
        let mut key = (counters.to_vec(), guards.to_vec());
        key.1.sort_unstable();
        key.1.dedup();
        if let Some(known) = self.counted.borrow().get(&key) {
            return *known;
        }
        let query = Query {
            counters,
            guards,
            roots: &[],
            budget: BUDGET,
        };
        let (mut warps, mut lanes) = (0.0, 0.0);
        let complete = self.visit(domain, arena, &query, &mut |case| {
            warps += case.weight;
            lanes += case.weight * f64::from(case.active.count_ones());
        });
        let counted = Population {
            warps,
            lanes,
            complete,
        };
        self.counted.borrow_mut().insert(key, counted);
        counted
    }

    /// Sums over a query within its own budget and what is left; true where nothing was left out.
    pub(crate) fn visit(
        &self,
        domain: &Domain,
        arena: &Arena,
        query: &Query,
        each: &mut dyn FnMut(&Case),
    ) -> bool {
        let left = self.left.get();
        let price =
            1 + u32::try_from(query.guards.len() / GUARDS_OF_A_CASE).unwrap_or(u32::MAX - 1);
        let affordable = (left.max(LEAST_BUDGET) / price).max(FEWEST_CASES);
        let query = Query {
            budget: query.budget.min(affordable),
            ..query.clone()
        };
        let outcome = domain.visit(arena, &query, &mut |case| {
            stop::check();
            each(case);
        });
        let spent = outcome.looked_at.saturating_mul(price);
        self.left.set(left.saturating_sub(spent));
        outcome.complete
    }
}

/// Where a guard comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Index into the branch drafts; `usize::MAX` for the first operand of `&&` and `||`.
    pub(crate) branch: usize,
    /// True: lanes left before; false: the statement is inside the branch.
    pub(crate) early_exit: bool,
}

/// A set of warp-level executions.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The context it is a part of; none of the kernel's own and of a body that is shared by several calls.
    pub(crate) parent: Option<usize>,
    pub(crate) counters: Vec<Symbol>,
    pub(crate) guards: Vec<(Guard, Origin)>,
    /// The conditions on the way that are not known.
    pub(crate) chances: Chances,
    /// What these multiply the executions of warps by, once it is known how many of a warp's threads come to them.
    pub(crate) warp_factor: f64,
    /// The same for threads.
    pub(crate) lane_factor: f64,
    /// Why the context is not exact.
    pub(crate) why: Option<Why>,
    /// True where data decides which lanes take part.
    pub(crate) by_data: bool,
    pub(crate) loop_depth: u32,
    /// The counter of the innermost loop.
    pub(crate) innermost: Option<Symbol>,
    /// The body it belongs to, of those that are executed once for all their calls.
    pub(crate) routine: Option<usize>,
    /// Counters of loops whose number of iterations depends on an assumed value, and that number.
    pub(crate) loose: Vec<(Symbol, Id)>,
}

/// With which probability conditions hold that are not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Chances {
    /// For a warp as a whole.
    warp: f64,
    /// For each of its threads by itself.
    thread: f64,
}

impl Chances {
    /// No condition.
    pub(crate) const CERTAIN: Chances = Chances {
        warp: 1.0,
        thread: 1.0,
    };

    fn and(self, probability: f64, by_thread: bool) -> Chances {
        let mut both = self;
        if by_thread {
            both.thread *= probability;
        } else {
            both.warp *= probability;
        }
        both
    }

    /// The share of warps in which some thread goes on, of warps with that number of active threads, and the share of threads that do.
    fn shares(self, threads: f64) -> (f64, f64) {
        let some = any_of(self.thread, threads);
        (self.warp * some, self.warp * self.thread)
    }
}

/// The probability that something holds for at least one of several threads, of which each decides by itself.
pub(crate) fn any_of(probability: f64, threads: f64) -> f64 {
    1.0 - (1.0 - probability).powf(threads)
}

/// Executions of a context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Executions {
    pub(crate) warps: f64,
    pub(crate) lanes: f64,
    pub(crate) exact: bool,
}

impl Executions {
    /// The threads of a warp that take part, on average; all of a warp where it never runs.
    pub(crate) fn active_threads(self, warp_size: usize) -> f64 {
        let whole = warp_size as f64;
        if self.warps > 0.0 {
            (self.lanes / self.warps).clamp(1.0, whole)
        } else {
            whole
        }
    }
}

impl Context {
    /// Counters of the loops around, outermost first; those of blocks come before them.
    pub(crate) fn loops(&self) -> &[Symbol] {
        let blocks = self.counters.len().saturating_sub(self.loop_depth as usize);
        &self.counters[blocks..]
    }

    pub(crate) fn guards(&self) -> Vec<Guard> {
        self.guards.iter().map(|(guard, _)| *guard).collect()
    }

    /// True where a value that was assumed decides which lanes take part, or how often.
    pub(crate) fn depends_on_assumption(&self, arena: &Arena) -> bool {
        self.guards
            .iter()
            .any(|(guard, _)| assumed(arena, guard.condition))
    }

    /// Adds a condition. Known parts become guards; the others scale by `probability`.
    pub(crate) fn narrow(
        &mut self,
        arena: &Arena,
        condition: Id,
        holds: bool,
        origin: Origin,
        probability: f64,
    ) {
        let split = if holds {
            BinaryOp::LogicalAnd
        } else {
            BinaryOp::LogicalOr
        };
        if arena.opaque(condition).is_none() {
            self.guards.push((Guard { condition, holds }, origin));
            return;
        }
        if let Node::Binary(op, a, b) = *arena.node(condition)
            && op == split
        {
            self.narrow(arena, a, holds, origin, probability);
            self.narrow(arena, b, holds, origin, probability);
            return;
        }
        let probability = if holds {
            probability
        } else {
            1.0 - probability
        };
        let by_thread = arena.varies_in_warp(condition);
        self.chances = self.chances.and(probability, by_thread);
        let by_data = arena.opaque(condition) == Some(true);
        self.by_data |= by_data;
        self.why.get_or_insert(if by_data {
            Why::GuardByData
        } else {
            Why::GuardNotUnderstood
        });
    }

    /// How often it runs. From here on it is known what its chances multiply that by.
    pub(crate) fn executions(
        &mut self,
        arena: &Arena,
        domain: &Domain,
        budget: &Budget,
    ) -> Executions {
        let counted = budget.count(domain, arena, &self.counters, &self.guards());
        let known = Executions {
            warps: counted.warps,
            lanes: counted.lanes,
            exact: counted.complete && self.why.is_none(),
        };
        let threads = known.active_threads(domain.warp_size());
        (self.warp_factor, self.lane_factor) = self.chances.shares(threads);
        Executions {
            warps: known.warps * self.warp_factor,
            lanes: known.lanes * self.lane_factor,
            ..known
        }
    }
}

/// True where some symbol of the expression has an assumed value.
pub(crate) fn assumed(arena: &Arena, id: Id) -> bool {
    arena.symbols_of(id).any(|symbol| {
        matches!(
            arena.symbol_kind(symbol),
            SymbolKind::Fixed { assumed: true, .. }
        )
    })
}
