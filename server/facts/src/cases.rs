//! Figures that depend on an assumed value: for which other values they hold.
//!
//! After Baghsorkhi et al., "An Adaptive Performance Modeling Tool for GPU Architectures" (PPoPP 2010),
//! section 3: an expression is taken apart into a part of the thread and a part of everything else by binding
//! constraints to free symbols. Here a free symbol `n` with the assumed value `v` becomes `v % m + m · k` for
//! any `k`; what holds for every `k` holds for the whole residue class. A figure is kept where
//!
//! - the conditions around it that depend on `n` agree for all lanes of a warp, so that they decide which warps
//!   come, but not what one of them does; or hold for every lane of the launch from some `n` on;
//! - `k` moves the addresses of all lanes by whole memory segments, and lanes that it moves by different
//!   amounts (rows of a matrix) share no segment from some `n` on;
//! - and, where `n` decides how many warps or iterations there are, each of any number of them costs the same.

mod addresses;
mod classes;
mod lattice;

use rustc_hash::FxHashMap;
use warplens_symbolic::{
    Arena, BinaryOp, Case, Domain, Guard, Id, Interval, Node, Query, Symbol, SymbolKind,
};

use addresses::{Movement, apart_from, variants};
use classes::{Free, free_symbols, texts};
use lattice::{gcd, same_for_warp};

use crate::Cover;
use crate::context::{Budget, Context};

/// Iterations of a loop and blocks of a grid, at most, where nothing bounds them.
pub(crate) const MOST_TURNS: i64 = (1 << 31) - 1;
/// The longest period of a free symbol that is tried.
const LONGEST_PERIOD: i64 = 4096;
/// Cases looked at for one proof, at most.
const PROOF_BUDGET: u32 = 2048;
/// Values of loop counters that a divisor depends on, at most: each is a proof of its own.
const MOST_VARIANTS: usize = 64;
/// Letters of a condition that becomes a constraint as it is, at most.
const LONGEST_TEXT: usize = 60;
/// Free symbols of one figure, at most.
const MOST_FREE: usize = 6;

/// What one request costs, or how one warp decides: where all are equal, how many there are is no matter.
pub(crate) type Cost = [u32; 6];

/// What assumed values must be for a figure to hold.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    /// Each as a person would write it: `n % 32 == 0`.
    pub(crate) texts: Vec<String>,
    /// The symbols of which only one residue class is covered.
    pub(crate) classes: Vec<Symbol>,
}

/// A figure that is to be shown independent of assumed values.
pub(crate) struct Figure<'a> {
    /// What it is a figure of: an address in bytes, or a condition.
    pub(crate) root: Id,
    /// A movement of all lanes together by this much changes nothing; 0: every movement does.
    pub(crate) period: i64,
    /// Lanes whose addresses lie in different multiples of this share nothing. Divides `period`.
    pub(crate) unit: i64,
    /// Bytes from `root` on that a lane touches.
    pub(crate) bytes: i64,
    pub(crate) context: &'a Context,
    /// True where requests are known to differ in cost.
    pub(crate) varied: bool,
}

/// Free symbols and the symbols that stand for all their values.
#[derive(Debug)]
pub(crate) struct Cases {
    /// Block coordinates, where the grid was assumed.
    blocks: Vec<Symbol>,
    /// What the launch covers with its blocks.
    covers: Vec<Cover>,
    stand_ins: FxHashMap<Symbol, Id>,
    /// From which value of a symbol on everything fits its type.
    fitting: FxHashMap<Symbol, Option<i64>>,
    /// Counters of other extents.
    others: FxHashMap<(Symbol, i64), Id>,
}

/// An expression with the numbers of what is known: the block's extents, arguments.
fn with_known(arena: &mut Arena, id: Id) -> Id {
    let known: Vec<(Symbol, i64)> = arena
        .symbols_of(id)
        .filter_map(|symbol| match arena.symbol_kind(symbol) {
            SymbolKind::Fixed {
                value,
                assumed: false,
            } => Some((symbol, value)),
            _ => None,
        })
        .collect();
    known.into_iter().fold(id, |id, (symbol, value)| {
        let value = arena.constant(value);
        arena.substitute(id, symbol, value)
    })
}

/// What a choice of residue classes leaves to be looked at.
struct Plan {
    /// Guards that are not shown to treat all lanes of a warp alike.
    kept: Vec<Guard>,
    /// True where a guard was let go that decides how many warps there are.
    loosened: bool,
    /// By how much one step of the class moves each lane, where lanes differ in it; of which symbol.
    apart: Option<(usize, Id)>,
    /// Smallest value of each free symbol.
    least: Vec<i64>,
}

impl Cases {
    /// `blocks` are the block coordinates where the grid was assumed.
    pub(crate) fn new(blocks: Option<[Symbol; 3]>, covers: Vec<Cover>) -> Cases {
        Cases {
            covers: if blocks.is_some() { covers } else { Vec::new() },
            blocks: blocks.map(Vec::from).unwrap_or_default(),
            stand_ins: FxHashMap::default(),
            fitting: FxHashMap::default(),
            others: FxHashMap::default(),
        }
    }

    /// The constraints under which the figure holds, none where it holds whatever the assumed values are;
    /// `None` where that is not shown. `cost` is asked for some requests.
    pub(crate) fn constraints(
        &mut self,
        arena: &mut Arena,
        domain: &Domain,
        budget: &Budget,
        figure: &Figure,
        cost: &mut dyn FnMut(&Case) -> Cost,
    ) -> Option<Conditions> {
        if let Some(found) = self.proved(arena, domain, budget, figure, cost) {
            return Some(found);
        }
        // Quotients of what the launch says come out: with 256 threads `(blockIdx.x * blockDim.x + threadIdx.x) / 32` is
        // `blockIdx.x * 8 + threadIdx.x / 32`.
        let root = with_known(arena, figure.root);
        let mut context = figure.context.clone();
        let mut changed = root != figure.root;
        for (guard, _) in &mut context.guards {
            let condition = with_known(arena, guard.condition);
            changed |= condition != guard.condition;
            guard.condition = condition;
        }
        let figure = Figure {
            root,
            context: &context,
            ..*figure
        };
        changed
            .then(|| self.proved(arena, domain, budget, &figure, cost))
            .flatten()
    }

    /// The same for the figure as it is.
    fn proved(
        &mut self,
        arena: &mut Arena,
        domain: &Domain,
        budget: &Budget,
        figure: &Figure,
        cost: &mut dyn FnMut(&Case) -> Cost,
    ) -> Option<Conditions> {
        let guards = figure.context.guards();
        let mut parts = vec![figure.root];
        parts.extend(guards.iter().map(|guard| guard.condition));
        let mut free = free_symbols(arena, &parts)?;
        let loose = self.loose(arena, figure.context, &parts);
        if free.is_empty() && loose.is_empty() {
            return Some(Conditions::default());
        }
        let mut covered = vec![1; free.len()];
        let mut multiples = vec![1; free.len()];
        let mut plan = None;
        if !figure.varied || free.iter().all(|one| !depends(arena, &guards, one.symbol)) {
            plan = self.smallest(arena, domain, figure, &guards, &mut free);
        }
        if plan.is_none() {
            // Conditions that hold for the whole launch from some value on.
            let mut rest = Vec::new();
            for &guard in &guards {
                if let Some((at, least)) = self.covering(arena, guard, &free, figure.context) {
                    covered[at] = covered[at].max(least);
                } else if let Some(found) = self.covered(arena, guard, &free, figure.context) {
                    for (at, divisor, least) in found {
                        multiples[at] = common_multiple(multiples[at], divisor);
                        covered[at] = covered[at].max(least);
                    }
                } else {
                    rest.push(guard);
                }
            }
            if rest.len() == guards.len() {
                return None;
            }
            plan = self.smallest(arena, domain, figure, &rest, &mut free);
        }
        let mut plan = plan?;
        for (least, covered) in plan.least.iter_mut().zip(covered) {
            *least = (*least).max(covered);
        }
        let weighed = plan.loosened || !loose.is_empty();
        if weighed && figure.varied {
            return None;
        }
        if weighed || plan.apart.is_some() {
            self.walk(
                arena, domain, budget, figure, &free, &mut plan, &loose, cost,
            )?;
        }
        for (one, multiple) in free.iter_mut().zip(multiples) {
            one.modulus = common_multiple(one.modulus, multiple);
        }
        let classes = free.iter().filter(|one| one.modulus > 1);
        Some(Conditions {
            texts: texts(arena, &free, &plan.least),
            classes: classes.map(|one| one.symbol).collect(),
        })
    }

    /// The constraints under which a condition over fixed values alone, or one that every lane of the launch
    /// agrees on, has the truth that it has now.
    pub(crate) fn decided(
        &mut self,
        arena: &mut Arena,
        condition: Id,
        context: &Context,
    ) -> Option<Vec<String>> {
        let free = free_symbols(arena, &[condition])?;
        let fixed = arena
            .symbols_of(condition)
            .all(|symbol| matches!(arena.symbol_kind(symbol), SymbolKind::Fixed { .. }));
        let mut bound = None;
        for holds in [true, false] {
            let guard = Guard { condition, holds };
            if let Some((at, least)) = self.covering(arena, guard, &free, context) {
                let mut all = vec![1; free.len()];
                all[at] = least;
                bound = Some(texts(arena, &free, &all));
            } else if let Some(found) = self.covered(arena, guard, &free, context) {
                let (mut all, mut classes) = (vec![1; free.len()], free.clone());
                for (at, divisor, least) in found {
                    classes[at].modulus = common_multiple(classes[at].modulus, divisor);
                    all[at] = all[at].max(least);
                }
                bound = Some(texts(arena, &classes, &all));
            }
        }
        let value = arena.value(condition).filter(|_| fixed);
        match (bound, value) {
            (Some(bound), None) => Some(bound),
            (Some(bound), Some(_)) if bound.is_empty() => Some(bound),
            (bound, Some(value)) => {
                let holds = if value == 0 {
                    arena.not(condition)
                } else {
                    condition
                };
                let text = arena.text(holds);
                if text.len() <= LONGEST_TEXT {
                    Some(vec![text])
                } else {
                    bound
                }
            }
            (None, None) => None,
        }
    }

    /// The constraints under which all lanes of a warp run a loop equally often, and at least once.
    pub(crate) fn alike(
        &mut self,
        arena: &mut Arena,
        domain: &Domain,
        trips: Id,
        context: &Context,
    ) -> Option<Vec<String>> {
        let free = free_symbols(arena, &[trips])?;
        let [one] = free.as_slice() else {
            return None;
        };
        let mut modulus = 1;
        while modulus <= LONGEST_PERIOD {
            let class = Free { modulus, ..*one };
            let number = self.in_class(arena, trips, &class, 0)?;
            if same_for_warp(arena, domain, number) {
                let condition = {
                    let zero = arena.constant(0);
                    arena.binary(BinaryOp::Lt, zero, trips)
                };
                let least = self.least(arena, &class, |cases, arena, from| {
                    let held = cases.in_class(arena, condition, &class, from);
                    held.is_some_and(|held| cases.always(arena, held, true, context))
                })?;
                let fits = self.fitting(arena, &class)?;
                return Some(texts(arena, &[class], &[least.max(fits)]));
            }
            modulus *= 2;
        }
        None
    }

    /// The address and the context with a free symbol one above the value assumed, which lies outside every
    /// class, and the words for it.
    pub(crate) fn other(
        &mut self,
        arena: &mut Arena,
        address: Id,
        context: &Context,
        conditions: &Conditions,
    ) -> Option<(Id, Context, String)> {
        let mut parts = vec![address];
        parts.extend(context.guards().iter().map(|guard| guard.condition));
        let free = free_symbols(arena, &parts)?;
        let one = free
            .iter()
            .find(|one| conditions.classes.contains(&one.symbol))?;
        let value = one.value.checked_add(1)?;
        let when = format!("{} = {value}", arena.symbol_name(one.symbol));
        let by = arena.constant(value);
        let mut swaps = vec![(one.symbol, by)];
        let mut counters = context.counters.clone();
        for &(counter, trips) in &context.loose {
            let trips = arena.substitute(trips, one.symbol, by);
            let extent = arena.range(trips).hi.max(0);
            let id = match self.others.get(&(counter, extent)) {
                Some(&id) => id,
                None => {
                    let name = arena.symbol_name(counter).to_owned();
                    let id = arena.symbol(&name, SymbolKind::Counter { extent }, Interval::ANY);
                    self.others.insert((counter, extent), id);
                    id
                }
            };
            let made = arena.as_symbol(id)?;
            matches!(arena.symbol_kind(made), SymbolKind::Counter { .. }).then_some(())?;
            for slot in &mut counters {
                if *slot == counter {
                    *slot = made;
                }
            }
            swaps.push((counter, id));
        }
        let swap = |arena: &mut Arena, id: Id| {
            swaps
                .iter()
                .fold(id, |id, &(symbol, by)| arena.substitute(id, symbol, by))
        };
        let mut changed = context.clone();
        changed.counters = counters;
        for (guard, _) in &mut changed.guards {
            guard.condition = swap(arena, guard.condition);
        }
        Some((swap(arena, address), changed, when))
    }

    // ---- classes -------------------------------------------------------------------------------

    /// Counters that run over more values than at hand for other assumed values, where anything depends on
    /// them.
    fn loose(&self, arena: &Arena, context: &Context, parts: &[Id]) -> Vec<Symbol> {
        let mut loose: Vec<Symbol> = self
            .blocks
            .iter()
            .copied()
            .chain(context.loose.iter().map(|&(counter, _)| counter))
            .collect();
        loose.retain(|&symbol| parts.iter().any(|&id| arena.depends_on(id, symbol)));
        loose
    }

    /// The classes with the smallest moduli for which there is a plan.
    fn smallest(
        &mut self,
        arena: &mut Arena,
        domain: &Domain,
        figure: &Figure,
        guards: &[Guard],
        free: &mut [Free],
    ) -> Option<Plan> {
        let set = |free: &mut [Free], modulus| {
            for one in free {
                one.modulus = modulus;
            }
        };
        set(free, LONGEST_PERIOD);
        let mut plan = self.plan(arena, domain, figure, guards, free)?;
        let mut modulus = 1;
        while modulus < LONGEST_PERIOD {
            set(free, modulus);
            if let Some(smaller) = self.plan(arena, domain, figure, guards, free) {
                plan = smaller;
                break;
            }
            modulus *= 2;
        }
        set(free, modulus);
        if modulus > 1 && free.len() > 1 {
            for at in 0..free.len() {
                free[at].modulus = 1;
                match self.plan(arena, domain, figure, guards, free) {
                    Some(smaller) => plan = smaller,
                    None => free[at].modulus = modulus,
                }
            }
        }
        Some(plan)
    }

    /// What is left to look at for these classes; `None` where they do not do.
    fn plan(
        &mut self,
        arena: &mut Arena,
        domain: &Domain,
        figure: &Figure,
        guards: &[Guard],
        free: &[Free],
    ) -> Option<Plan> {
        let mut plan = Plan {
            kept: Vec::new(),
            loosened: false,
            apart: None,
            least: vec![1; free.len()],
        };
        for (one, least) in free.iter().zip(&mut plan.least) {
            *least = self.fitting(arena, one)?;
        }
        for &guard in guards {
            let condition = self.in_classes(arena, guard.condition, free, &plan.least)?;
            if condition == guard.condition {
                plan.kept.push(guard);
                continue;
            }
            match arena.as_const(condition) {
                Some(value) if (value != 0) == guard.holds => {}
                Some(_) => return None,
                None if same_for_warp(arena, domain, condition) => plan.loosened = true,
                None => return None,
            }
        }
        let root = self.in_classes(arena, figure.root, free, &plan.least)?;
        if root != figure.root {
            for root in variants(arena, root, figure.context) {
                if let Movement::Apart(at, way) = self.moves(arena, root, figure.period, free)? {
                    // Of several variants the walk would have to look at each.
                    if root.1 {
                        return None;
                    }
                    plan.apart = Some((at, way));
                }
            }
        }
        Some(plan)
    }

    // ---- conditions ----------------------------------------------------------------------------

    /// Which free symbol makes the guard hold for every lane of the launch, and from which value on.
    fn covering(
        &mut self,
        arena: &mut Arena,
        guard: Guard,
        free: &[Free],
        context: &Context,
    ) -> Option<(usize, i64)> {
        let mut of = free
            .iter()
            .enumerate()
            .filter(|(_, one)| arena.depends_on(guard.condition, one.symbol));
        let (at, one) = of.next()?;
        if of.next().is_some() {
            return None;
        }
        let class = Free { modulus: 1, ..*one };
        let least = self.least(arena, &class, |cases, arena, from| {
            cases
                .in_class(arena, guard.condition, &class, from)
                .is_some_and(|held| cases.always(arena, held, guard.holds, context))
        })?;
        let fits = self.fitting(arena, &class)?;
        Some((at, least.max(fits)))
    }

    /// What each free symbol must be a multiple of, and at least, for the guard to hold for every lane of the
    /// launch because the launch has just the blocks that they ask for: of `n / d` blocks the one with `q` blocks
    /// behind it is number `n / d - 1 - q`.
    fn covered(
        &mut self,
        arena: &mut Arena,
        guard: Guard,
        free: &[Free],
        context: &Context,
    ) -> Option<Vec<(usize, i64, i64)>> {
        let mut condition = guard.condition;
        let mut found = Vec::new();
        for (at, one) in free.iter().enumerate() {
            if !arena.depends_on(guard.condition, one.symbol) {
                continue;
            }
            let mut covers = self.covers.clone();
            covers.retain(|cover| cover.parameter == arena.symbol_name(one.symbol));
            let divisor = covers.first()?.divisor;
            if one.value % divisor != 0 || covers.iter().any(|cover| cover.divisor != divisor) {
                return None;
            }
            let least = self.fitting(arena, one)?;
            let more = self.stand_in(arena, one.symbol)?;
            let first = arena.constant(1);
            let blocks = arena.add(first, more);
            let value = arena.scale(blocks, divisor);
            condition = arena.substitute(condition, one.symbol, value);
            for cover in covers {
                let block = *self.blocks.get(cover.axis as usize)?;
                let behind = self.stand_in(arena, block)?;
                let place = arena.sub(more, behind);
                condition = arena.substitute(condition, block, place);
            }
            found.push((at, divisor, least));
        }
        // The parts cancel only as numbers: `blockDim.x` is known.
        let condition = with_known(arena, condition);
        let shown = !found.is_empty() && self.always(arena, condition, guard.holds, context);
        shown.then_some(found)
    }

    /// True where interval arithmetic shows the condition to have this truth everywhere.
    fn always(&mut self, arena: &mut Arena, condition: Id, holds: bool, context: &Context) -> bool {
        let Some(condition) = self.loosened(arena, condition, context) else {
            return false;
        };
        let condition = if holds {
            condition
        } else {
            arena.not(condition)
        };
        Self::shown(arena, condition, 16)
    }

    fn shown(arena: &mut Arena, condition: Id, depth: u32) -> bool {
        if depth == 0 {
            return false;
        }
        match *arena.node(condition) {
            Node::Binary(BinaryOp::LogicalAnd, a, b) => {
                Self::shown(arena, a, depth - 1) && Self::shown(arena, b, depth - 1)
            }
            Node::Binary(BinaryOp::LogicalOr, a, b) => {
                Self::shown(arena, a, depth - 1) || Self::shown(arena, b, depth - 1)
            }
            Node::Binary(op @ (BinaryOp::Lt | BinaryOp::Le | BinaryOp::Ne), a, b) => {
                let difference = arena.sub(a, b);
                let range = arena.range(difference);
                match op {
                    BinaryOp::Lt => range.hi < 0,
                    BinaryOp::Le => range.hi <= 0,
                    _ => range.never_zero(),
                }
            }
            _ => arena.range(condition).never_zero(),
        }
    }

    /// With every loose counter running over all it could.
    fn loosened(&mut self, arena: &mut Arena, id: Id, context: &Context) -> Option<Id> {
        let mut id = id;
        for symbol in self.loose(arena, context, &[id]) {
            let any = self.stand_in(arena, symbol)?;
            id = arena.substitute(id, symbol, any);
        }
        Some(id)
    }

    // ---- addresses -----------------------------------------------------------------------------

    /// Looks at requests, of any number where that is not fixed: all must cost the same, and lanes that move
    /// apart must share nothing.
    #[allow(clippy::too_many_arguments, reason = "one step of one proof")]
    fn walk(
        &mut self,
        arena: &mut Arena,
        domain: &Domain,
        budget: &Budget,
        figure: &Figure,
        free: &[Free],
        plan: &mut Plan,
        loose: &[Symbol],
        cost: &mut dyn FnMut(&Case) -> Cost,
    ) -> Option<()> {
        let weighed = plan.loosened || !loose.is_empty();
        let mut counters = figure.context.counters.clone();
        let mut root = figure.root;
        let mut way = plan.apart.map(|(_, way)| way);
        let mut guards = plan.kept.clone();
        for &symbol in loose {
            let any = self.stand_in(arena, symbol)?;
            let made = arena.as_symbol(any)?;
            root = arena.substitute(root, symbol, any);
            way = way.map(|way| arena.substitute(way, symbol, any));
            for guard in &mut guards {
                guard.condition = arena.substitute(guard.condition, symbol, any);
            }
            for counter in &mut counters {
                if *counter == symbol {
                    *counter = made;
                }
            }
        }
        let mut roots = vec![(root, figure.period)];
        roots.extend(way.map(|way| (way, 1)));
        let query = Query {
            counters: &counters,
            guards: &guards,
            roots: &roots,
            budget: PROOF_BUDGET,
        };
        let mut seen: Option<Cost> = None;
        let mut holds = true;
        let mut least = plan.apart.map_or(1, |(at, _)| plan.least[at]);
        let class = plan.apart.map(|(at, _)| free[at]);
        let complete = budget.visit(domain, arena, &query, &mut |case| {
            if weighed {
                let this = cost(case);
                holds &= *seen.get_or_insert(this) == this;
            }
            if let (Some(class), [starts, ways, ..]) = (&class, case.values) {
                match apart_from(starts, ways, case.active, figure, class) {
                    Some(from) => least = least.max(from),
                    None => holds = false,
                }
            }
        });
        if let Some((at, _)) = plan.apart {
            plan.least[at] = least;
            holds &= least <= free[at].value;
        }
        // What never comes at the values assumed may cost anything at others.
        (complete && holds && (seen.is_some() || !weighed)).then_some(())
    }
}

fn common_multiple(a: i64, b: i64) -> i64 {
    a / gcd(a, b) * b
}

fn depends(arena: &Arena, guards: &[Guard], symbol: Symbol) -> bool {
    guards
        .iter()
        .any(|guard| arena.depends_on(guard.condition, symbol))
}
