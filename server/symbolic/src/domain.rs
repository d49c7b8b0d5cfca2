//! All warps, blocks and iterations of a launch, and the sum over them.

use crate::arena::wrap_value;
use crate::shift::{Shift, lcm, shift};
use crate::{Arena, Id, Interval, Node, Symbol, SymbolKind};

/// Most lanes a warp may have.
pub const WARP_MAX: usize = 64;

/// The lanes of every warp of a block.
#[derive(Debug, Clone)]
pub struct Domain {
    warp_size: usize,
    block: [i64; 3],
    layout: Layout,
}

/// How warps lie in a block. In the first two a warp's coordinates are those of warp 0 moved by whole steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Warps step regularly along the axes: how many along each, and by how far.
    Regular { counts: [i64; 3], steps: [i64; 3] },
    /// Warps numbered by linear thread id; the last may be partial.
    Linear { warps: i64 },
}

/// A condition that must hold, or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The condition.
    pub condition: Id,
    /// The truth it must have.
    pub holds: bool,
}

/// What to sum.
#[derive(Debug, Clone, Default)]
pub struct Query<'a> {
    /// The counters in scope: block coordinates and iterations of enclosing loops.
    pub counters: &'a [Symbol],
    /// Lanes take part where all of these agree.
    pub guards: &'a [Guard],
    /// Expressions to evaluate, each with the movement that leaves its effect unchanged when all lanes
    /// make it together (the size of a memory segment, say); 0 where only the value itself counts.
    pub roots: &'a [(Id, i64)],
    /// Most cases to look at.
    pub budget: u32,
}

/// One warp at one moment, standing for `weight` that behave alike.
#[derive(Debug)]
pub struct Case<'a> {
    /// How many warp-level executions it stands for.
    pub weight: f64,
    /// Bit i: lane i is there and all guards agree for it. Never 0.
    pub active: u64,
    /// For each root the value of each lane; lanes that are not active hold anything.
    pub values: &'a [[i64; WARP_MAX]],
}

/// How a visit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// True: every execution was accounted for. False: a sample, weighted to the whole.
    pub complete: bool,
    /// What it took: boxes and cases looked at.
    pub looked_at: u32,
}

impl Domain {
    /// Warps of `warp_size` lanes over a block. `warp_size` is at most [`WARP_MAX`].
    pub fn new(warp_size: u32, block: [u64; 3]) -> Domain {
        let warp_size = (warp_size as usize).clamp(1, WARP_MAX);
        let block = block.map(|extent| extent.clamp(1, 1 << 20) as i64);
        let lanes = warp_size as i64;
        let [x, y, z] = block;
        let layout = if x % lanes == 0 {
            Layout::Regular {
                counts: [x / lanes, y, z],
                steps: [lanes, 1, 1],
            }
        } else if lanes % x == 0 && y % (lanes / x) == 0 {
            Layout::Regular {
                counts: [1, y / (lanes / x), z],
                steps: [0, lanes / x, 1],
            }
        } else if lanes % (x * y) == 0 && z % (lanes / (x * y)) == 0 {
            Layout::Regular {
                counts: [1, 1, z / (lanes / (x * y))],
                steps: [0, 0, lanes / (x * y)],
            }
        } else {
            Layout::Linear {
                warps: (x * y * z + lanes - 1) / lanes,
            }
        };
        Domain {
            warp_size,
            block,
            layout,
        }
    }

    /// Lanes of a warp.
    pub fn warp_size(&self) -> usize {
        self.warp_size
    }

    /// Values of a thread coordinate.
    pub fn thread_range(&self, axis: u8) -> Interval {
        Interval::new(0, self.block[axis as usize] - 1)
    }

    /// Runs over every warp-level execution in which some lane takes part, folding what repeats.
    ///
    /// Roots and guards must not hang on opaque symbols.
    pub fn visit(&self, arena: &Arena, query: &Query, each: &mut dyn FnMut(&Case)) -> Outcome {
        let mut walk = Walk::new(self, arena, query, each);
        let ranges = walk.whole();
        let undecided: Vec<usize> = (0..walk.guards.len()).collect();
        walk.boxed(&ranges, &undecided);
        let cases = query.budget.saturating_sub(walk.budget);
        Outcome {
            complete: walk.complete,
            looked_at: walk.boxes + cases,
        }
    }
}

/// A variable that the walk runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable {
    Counter(Symbol),
    /// Warps along an axis of a regular layout.
    Warp(u8),
    /// Warps of a linear layout.
    LinearWarp,
}

/// Values from the first to one below the second.
type Range = (i64, i64);

struct Walk<'a> {
    domain: &'a Domain,
    arena: &'a Arena,
    each: &'a mut dyn FnMut(&Case),
    variables: Vec<Variable>,
    extents: Vec<i64>,
    /// Executions that differ in nothing: product of the extents of counters that nothing hangs on.
    multiplicity: f64,
    /// Every expression needed, children first, with its position.
    program: Vec<Id>,
    /// Position in the program by id.
    position: Vec<u32>,
    varies: Vec<bool>,
    roots: Vec<(Id, i64)>,
    guards: Vec<Guard>,
    intervals: Vec<Interval>,
    shifts: Vec<Option<Shift>>,
    scalars: Vec<i64>,
    vectors: Vec<[i64; WARP_MAX]>,
    out: Vec<[i64; WARP_MAX]>,
    /// Lanes that exist in the warp at hand.
    present: u64,
    budget: u32,
    boxes: u32,
    most_boxes: u32,
    complete: bool,
}

const MOST_BOXES: u32 = 4096;

impl<'a> Walk<'a> {
    fn new(
        domain: &'a Domain,
        arena: &'a Arena,
        query: &Query,
        each: &'a mut dyn FnMut(&Case),
    ) -> Walk<'a> {
        // Conjunctions fall apart into guards that can be decided one by one.
        let mut guards = Vec::new();
        for guard in query.guards {
            split(arena, *guard, &mut guards);
        }
        let mut program = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for id in query
            .roots
            .iter()
            .map(|root| root.0)
            .chain(guards.iter().map(|g| g.condition))
        {
            collect(arena, id, &mut seen, &mut program);
        }
        program.sort_unstable();
        let mut position = vec![0u32; program.last().map_or(0, |last| last.0 as usize + 1)];
        for (at, id) in program.iter().enumerate() {
            position[id.0 as usize] = at as u32;
        }
        let used = |symbol: Symbol| {
            program
                .iter()
                .any(|&id| arena.as_symbol(id) == Some(symbol))
        };

        let mut variables = Vec::new();
        let mut extents = Vec::new();
        let mut multiplicity = 1.0;
        for &counter in query.counters {
            let SymbolKind::Counter { extent } = arena.symbol_kind(counter) else {
                continue;
            };
            if used(counter) && extent != 1 {
                variables.push(Variable::Counter(counter));
                extents.push(extent);
            } else {
                multiplicity *= extent.max(0) as f64;
            }
        }
        let axis_used = |axis: u8| {
            program.iter().any(|&id| match arena.node(id) {
                Node::Symbol(symbol) => arena.symbol_kind(*symbol) == SymbolKind::Thread(axis),
                _ => false,
            })
        };
        match domain.layout {
            Layout::Regular { counts, .. } => {
                for axis in 0..3u8 {
                    let count = counts[axis as usize];
                    if count > 1 && axis_used(axis) {
                        variables.push(Variable::Warp(axis));
                        extents.push(count);
                    } else {
                        multiplicity *= count as f64;
                    }
                }
            }
            // Partial warps differ in their lanes even where nothing hangs on a coordinate.
            Layout::Linear { warps } => {
                if warps > 1 {
                    variables.push(Variable::LinearWarp);
                    extents.push(warps);
                }
            }
        }
        let varies = program.iter().map(|&id| arena.varies_by_lane(id)).collect();
        let len = program.len();
        Walk {
            domain,
            arena,
            each,
            variables,
            extents,
            multiplicity,
            program,
            position,
            varies,
            roots: query.roots.to_vec(),
            guards,
            intervals: vec![Interval::ANY; len],
            shifts: vec![None; len],
            scalars: vec![0; len],
            vectors: vec![[0; WARP_MAX]; len],
            out: vec![[0; WARP_MAX]; query.roots.len()],
            present: 0,
            budget: query.budget,
            boxes: 0,
            most_boxes: query.budget.min(MOST_BOXES),
            complete: true,
        }
    }

    fn whole(&self) -> Vec<Range> {
        self.extents
            .iter()
            .map(|&extent| (0, extent.max(0)))
            .collect()
    }

    /// One box of values: decide guards by intervals, fold by shifts, or cut in two.
    fn boxed(&mut self, ranges: &[Range], undecided: &[usize]) {
        if ranges.iter().any(|(lo, hi)| lo >= hi) || self.multiplicity == 0.0 {
            return;
        }
        self.boxes += 1;
        self.compute_intervals(ranges);
        let mut open: Vec<usize> = Vec::with_capacity(undecided.len());
        for &guard in undecided {
            let Guard { condition, holds } = self.guards[guard];
            let range = self.interval(condition);
            if range.never_zero() {
                if !holds {
                    return;
                }
            } else if range.single() == Some(0) {
                if holds {
                    return;
                }
            } else {
                open.push(guard);
            }
        }
        if self.boxes < self.most_boxes
            && let Some(variable) = self.variable_to_cut(ranges, &open)
        {
            let (lo, hi) = ranges[variable];
            let middle = lo + (hi - lo) / 2;
            for half in [(lo, middle), (middle, hi)] {
                let mut ranges = ranges.to_vec();
                ranges[variable] = half;
                self.boxed(&ranges, &open);
            }
            return;
        }
        let periods = self.periods(ranges, &open);
        self.leaf(ranges, &open, &periods);
    }

    /// A variable that some open guard hangs on without a period, largest range first.
    fn variable_to_cut(&mut self, ranges: &[Range], open: &[usize]) -> Option<usize> {
        if open.is_empty() {
            return None;
        }
        let mut best: Option<usize> = None;
        for (variable, &(lo, hi)) in ranges.iter().enumerate() {
            if hi - lo <= 1 || best.is_some_and(|best| ranges[best].1 - ranges[best].0 >= hi - lo) {
                continue;
            }
            self.compute_shifts(variable);
            let aperiodic = open.iter().any(|&guard| {
                let condition = self.guards[guard].condition;
                self.shift_of(condition)
                    .and_then(|moved| moved.modulo(0))
                    .is_none()
            });
            if aperiodic {
                best = Some(variable);
            }
        }
        best
    }

    /// For each variable the period of everything open, where it has one.
    fn periods(&mut self, ranges: &[Range], open: &[usize]) -> Vec<Option<i64>> {
        let mut periods = Vec::with_capacity(ranges.len());
        for (variable, &(lo, hi)) in ranges.iter().enumerate() {
            if hi - lo <= 1 {
                periods.push(Some(1));
                continue;
            }
            if self.variables[variable] == Variable::LinearWarp {
                // The last warp may be partial: each is looked at.
                periods.push(None);
                continue;
            }
            self.compute_shifts(variable);
            let mut period = Some(1i64);
            let moduli = self
                .roots
                .iter()
                .copied()
                .chain(open.iter().map(|&guard| (self.guards[guard].condition, 0)));
            for (id, modulus) in moduli {
                let own = self.shift_of(id).and_then(|moved| moved.modulo(modulus));
                period = match (period, own) {
                    (Some(period), Some(own)) => lcm(period, own.period),
                    _ => None,
                };
            }
            periods.push(period);
        }
        periods
    }

    fn leaf(&mut self, ranges: &[Range], open: &[usize], periods: &[Option<i64>]) {
        // How many values of each variable to look at: one period, or all.
        let counts: Vec<i64> = ranges
            .iter()
            .zip(periods)
            .map(|(&(lo, hi), period)| period.map_or(hi - lo, |period| period.min(hi - lo)))
            .collect();
        let total = counts
            .iter()
            .try_fold(1i64, |total, &count| total.checked_mul(count));
        let allowed = i64::from(self.budget);
        let mut stride = vec![1i64; counts.len()];
        if total.is_none_or(|total| total > allowed) {
            // A sample, spread evenly: the largest variable is thinned until it fits.
            self.complete = false;
            let mut looked: Vec<i64> = counts.clone();
            while looked
                .iter()
                .try_fold(1i64, |t, &c| t.checked_mul(c))
                .is_none_or(|t| t > allowed.max(16))
            {
                let largest = (0..looked.len())
                    .max_by_key(|&at| looked[at])
                    .expect("some variable");
                if looked[largest] <= 1 {
                    break;
                }
                stride[largest] *= 2;
                looked[largest] = (counts[largest] + stride[largest] - 1) / stride[largest];
            }
        }
        let mut at: Vec<i64> = vec![0; counts.len()];
        loop {
            let mut weight = self.multiplicity;
            for (variable, &(lo, hi)) in ranges.iter().enumerate() {
                let n = hi - lo;
                let step = stride[variable];
                let here = at[variable];
                // Values that this one stands for: same residue within the period, neighbours in a sample.
                let neighbours = step.min(counts[variable] - here);
                let period = counts[variable];
                // A residue below the remainder occurs once more than the others.
                let extra = (here + neighbours).min(n % period) - here;
                let repeats = neighbours * (n / period) + extra.max(0);
                weight *= repeats as f64;
            }
            self.budget = self.budget.saturating_sub(1);
            self.evaluate(ranges, &at);
            self.emit(open, weight);
            let mut variable = 0;
            loop {
                if variable == at.len() {
                    return;
                }
                at[variable] += stride[variable];
                if at[variable] < counts[variable] {
                    break;
                }
                at[variable] = 0;
                variable += 1;
            }
        }
    }

    fn emit(&mut self, open: &[usize], weight: f64) {
        let lanes = self.domain.warp_size;
        let mut active = self.present;
        for &guard in open {
            let Guard { condition, holds } = self.guards[guard];
            let at = self.position[condition.0 as usize] as usize;
            if self.varies[at] {
                for lane in 0..lanes {
                    if (self.vectors[at][lane] != 0) != holds {
                        active &= !(1 << lane);
                    }
                }
            } else if (self.scalars[at] != 0) != holds {
                return;
            }
        }
        if active == 0 {
            return;
        }
        for (slot, (id, _)) in self.roots.iter().enumerate() {
            let at = self.position[id.0 as usize] as usize;
            if self.varies[at] {
                self.out[slot] = self.vectors[at];
            } else {
                self.out[slot] = [self.scalars[at]; WARP_MAX];
            }
        }
        (self.each)(&Case {
            weight,
            active,
            values: &self.out,
        });
    }
}

impl Walk<'_> {
    fn interval(&self, id: Id) -> Interval {
        self.intervals[self.position[id.0 as usize] as usize]
    }

    fn shift_of(&self, id: Id) -> Option<Shift> {
        self.shifts[self.position[id.0 as usize] as usize]
    }

    fn compute_intervals(&mut self, ranges: &[Range]) {
        for at in 0..self.program.len() {
            let id = self.program[at];
            let range = match self.arena.node(id) {
                Node::Const(value) => Interval::point(*value),
                Node::Symbol(symbol) => self.symbol_interval(*symbol, id, ranges),
                Node::Sum(constant, terms) => terms
                    .iter()
                    .fold(Interval::point(*constant), |sum, &(term, coefficient)| {
                        sum.plus(self.interval(term).scale(coefficient))
                    }),
                Node::Product(factors) => factors.iter().fold(Interval::point(1), |product, &f| {
                    product.times(self.interval(f))
                }),
                Node::Binary(op, a, b) => {
                    Interval::binary(*op, self.interval(*a), self.interval(*b))
                }
                Node::Select(condition, a, b) => {
                    let condition = self.interval(*condition);
                    if condition.never_zero() {
                        self.interval(*a)
                    } else if condition.single() == Some(0) {
                        self.interval(*b)
                    } else {
                        self.interval(*a).union(self.interval(*b))
                    }
                }
                Node::Table(index, values) => {
                    let last = values.len() as i64 - 1;
                    let index = self.interval(*index);
                    let (lo, hi) = (index.lo.clamp(0, last), index.hi.clamp(0, last));
                    values[lo as usize..=hi as usize]
                        .iter()
                        .map(|&value| Interval::point(value))
                        .reduce(Interval::union)
                        .unwrap_or(Interval::ANY)
                }
                Node::Wrap(bits, signed, a) => self.interval(*a).wrap(*bits, *signed),
            };
            self.intervals[at] = range;
        }
    }

    fn symbol_interval(&self, symbol: Symbol, id: Id, ranges: &[Range]) -> Interval {
        match self.arena.symbol_kind(symbol) {
            SymbolKind::Counter { .. } => self
                .variables
                .iter()
                .position(|&variable| variable == Variable::Counter(symbol))
                .map_or(self.arena.range(id), |at| {
                    Interval::new(ranges[at].0, ranges[at].1 - 1)
                }),
            SymbolKind::Thread(axis) => self.thread_interval(axis, ranges),
            _ => self.arena.range(id),
        }
    }

    fn thread_interval(&self, axis: u8, ranges: &[Range]) -> Interval {
        let whole = self.domain.thread_range(axis);
        let lanes = self.domain.warp_size as i64;
        let [x, y, _] = self.domain.block;
        for (variable, &(lo, hi)) in self.variables.iter().zip(ranges) {
            match (*variable, self.domain.layout) {
                (Variable::Warp(of), Layout::Regular { counts, steps }) if of == axis => {
                    let step = steps[axis as usize];
                    let width = (whole.hi + 1) / counts[axis as usize];
                    return Interval::new(step * lo, step * (hi - 1) + width - 1);
                }
                (Variable::LinearWarp, _) => {
                    let (first, last) = (lo * lanes, hi * lanes - 1);
                    return match axis {
                        0 if first / x == last / x => Interval::new(first % x, last % x),
                        1 if first / (x * y) == last / (x * y) => {
                            Interval::new(first / x % y, last / x % y)
                        }
                        2 => Interval::new(first / (x * y), (last / (x * y)).min(whole.hi)),
                        _ => whole,
                    };
                }
                _ => {}
            }
        }
        whole
    }

    fn compute_shifts(&mut self, variable: usize) {
        let variable = self.variables[variable];
        let layout = self.domain.layout;
        let arena = self.arena;
        for at in 0..self.program.len() {
            let id = self.program[at];
            let leaf = |symbol: Symbol| match arena.symbol_kind(symbol) {
                SymbolKind::Counter { .. } if variable == Variable::Counter(symbol) => {
                    Some(Shift {
                        period: 1,
                        delta: crate::shift::Delta::Exact(1),
                    })
                }
                SymbolKind::Counter { .. } | SymbolKind::Fixed { .. } => Some(Shift::STILL),
                SymbolKind::Thread(axis) => match (variable, layout) {
                    (Variable::Warp(of), Layout::Regular { steps, .. }) if of == axis => {
                        Some(Shift {
                            period: 1,
                            delta: crate::shift::Delta::Exact(steps[axis as usize]),
                        })
                    }
                    (Variable::LinearWarp, _) => None,
                    _ => Some(Shift::STILL),
                },
                SymbolKind::Placeholder | SymbolKind::Opaque { .. } => None,
            };
            let of = |child: Id| self.shift_of(child);
            let range = |child: Id| self.interval(child);
            let moved = shift(arena, id, &leaf, &of, &range);
            self.shifts[at] = moved;
        }
    }

    /// Every expression of the program at one point, for all lanes of the warp.
    fn evaluate(&mut self, ranges: &[Range], at: &[i64]) {
        let lanes = self.domain.warp_size;
        let full = if lanes == 64 {
            u64::MAX
        } else {
            (1u64 << lanes) - 1
        };
        self.present = full;
        let threads: i64 = self.domain.block.iter().product();
        let mut linear = 0;
        if let Some(which) = self
            .variables
            .iter()
            .position(|&v| v == Variable::LinearWarp)
        {
            linear = (ranges[which].0 + at[which]) * lanes as i64;
        }
        if let Layout::Linear { .. } = self.domain.layout {
            let left = threads - linear;
            if left < lanes as i64 {
                self.present = (1u64 << left.max(0)) - 1;
            }
        }
        for position in 0..self.program.len() {
            let id = self.program[position];
            if let Node::Symbol(symbol) = self.arena.node(id) {
                match self.arena.symbol_kind(*symbol) {
                    SymbolKind::Thread(axis) => {
                        self.vectors[position] = self.coordinates(axis, linear, ranges, at);
                    }
                    SymbolKind::Counter { .. } => {
                        self.scalars[position] = self
                            .variables
                            .iter()
                            .position(|&variable| variable == Variable::Counter(*symbol))
                            .map_or(0, |which| ranges[which].0 + at[which]);
                    }
                    SymbolKind::Fixed { value, .. } => self.scalars[position] = value,
                    SymbolKind::Placeholder | SymbolKind::Opaque { .. } => {
                        self.scalars[position] = 0;
                    }
                }
            } else if self.varies[position] {
                self.evaluate_vector(position, lanes);
            } else {
                self.scalars[position] = self.evaluate_scalar(id);
            }
        }
    }

    fn coordinates(&self, axis: u8, linear: i64, ranges: &[Range], at: &[i64]) -> [i64; WARP_MAX] {
        let [x, y, _] = self.domain.block;
        let mut step = 0;
        if let Layout::Regular { steps, .. } = self.domain.layout
            && let Some(which) = self
                .variables
                .iter()
                .position(|&v| v == Variable::Warp(axis))
        {
            step = steps[axis as usize] * (ranges[which].0 + at[which]);
        }
        let mut values = [0; WARP_MAX];
        for (lane, value) in values.iter_mut().enumerate().take(self.domain.warp_size) {
            let thread = linear + lane as i64;
            *value = step
                + match axis {
                    0 => thread % x,
                    1 => thread / x % y,
                    _ => thread / (x * y),
                };
        }
        values
    }

    fn scalar(&self, id: Id) -> i64 {
        self.scalars[self.position[id.0 as usize] as usize]
    }

    fn evaluate_scalar(&self, id: Id) -> i64 {
        match self.arena.node(id) {
            Node::Const(value) => *value,
            Node::Symbol(_) => 0,
            Node::Sum(constant, terms) => {
                terms.iter().fold(*constant, |sum, &(term, coefficient)| {
                    sum.wrapping_add(self.scalar(term).wrapping_mul(coefficient))
                })
            }
            Node::Product(factors) => factors
                .iter()
                .fold(1, |product: i64, &f| product.wrapping_mul(self.scalar(f))),
            Node::Binary(op, a, b) => op.apply(self.scalar(*a), self.scalar(*b)),
            Node::Select(condition, a, b) => {
                self.scalar(if self.scalar(*condition) != 0 { *a } else { *b })
            }
            Node::Table(index, values) => look_up(values, self.scalar(*index)),
            Node::Wrap(bits, signed, a) => wrap_value(*bits, *signed, self.scalar(*a)),
        }
    }

    fn evaluate_vector(&mut self, position: usize, lanes: usize) {
        let mut out = [0i64; WARP_MAX];
        let varies = &self.varies;
        let vectors = &self.vectors;
        let scalars = &self.scalars;
        let places = &self.position;
        let get = |id: Id| {
            let at = places[id.0 as usize] as usize;
            (varies[at], at)
        };
        let lane_of = |(varies, at): (bool, usize), lane: usize| {
            if varies {
                vectors[at][lane]
            } else {
                scalars[at]
            }
        };
        match self.arena.node(self.program[position]) {
            Node::Const(_) | Node::Symbol(_) => {}
            Node::Sum(constant, terms) => {
                let mut base = *constant;
                for &(term, coefficient) in terms.iter() {
                    let (vector, at) = get(term);
                    if !vector {
                        base = base.wrapping_add(scalars[at].wrapping_mul(coefficient));
                    }
                }
                out[..lanes].fill(base);
                for &(term, coefficient) in terms.iter() {
                    let (vector, at) = get(term);
                    if vector {
                        for (value, term) in out[..lanes].iter_mut().zip(&vectors[at]) {
                            *value = value.wrapping_add(term.wrapping_mul(coefficient));
                        }
                    }
                }
            }
            Node::Product(factors) => {
                out[..lanes].fill(1);
                for &factor in factors.iter() {
                    let factor = get(factor);
                    for (lane, value) in out[..lanes].iter_mut().enumerate() {
                        *value = value.wrapping_mul(lane_of(factor, lane));
                    }
                }
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (get(*a), get(*b));
                for (lane, value) in out[..lanes].iter_mut().enumerate() {
                    *value = op.apply(lane_of(a, lane), lane_of(b, lane));
                }
            }
            Node::Select(condition, a, b) => {
                let (condition, a, b) = (get(*condition), get(*a), get(*b));
                for (lane, value) in out[..lanes].iter_mut().enumerate() {
                    *value = if lane_of(condition, lane) != 0 {
                        lane_of(a, lane)
                    } else {
                        lane_of(b, lane)
                    };
                }
            }
            Node::Table(index, values) => {
                let index = get(*index);
                for (lane, value) in out[..lanes].iter_mut().enumerate() {
                    *value = look_up(values, lane_of(index, lane));
                }
            }
            Node::Wrap(bits, signed, a) => {
                let a = get(*a);
                for (lane, value) in out[..lanes].iter_mut().enumerate() {
                    *value = wrap_value(*bits, *signed, lane_of(a, lane));
                }
            }
        }
        self.vectors[position] = out;
    }
}

fn look_up(values: &[i64], index: i64) -> i64 {
    values[index.clamp(0, values.len() as i64 - 1) as usize]
}

/// Falls a conjunction apart into conditions that hold (or, negated, a disjunction into ones that do not).
fn split(arena: &Arena, guard: Guard, out: &mut Vec<Guard>) {
    let wanted = if guard.holds {
        crate::BinaryOp::LogicalAnd
    } else {
        crate::BinaryOp::LogicalOr
    };
    match arena.node(guard.condition) {
        Node::Binary(op, a, b) if *op == wanted => {
            split(
                arena,
                Guard {
                    condition: *a,
                    ..guard
                },
                out,
            );
            split(
                arena,
                Guard {
                    condition: *b,
                    ..guard
                },
                out,
            );
        }
        _ => {
            if !out.contains(&guard) {
                out.push(guard);
            }
        }
    }
}

fn collect(arena: &Arena, id: Id, seen: &mut rustc_hash::FxHashSet<Id>, out: &mut Vec<Id>) {
    if !seen.insert(id) {
        return;
    }
    out.push(id);
    match arena.node(id) {
        Node::Const(_) | Node::Symbol(_) => {}
        Node::Sum(_, terms) => {
            terms
                .iter()
                .for_each(|&(term, _)| collect(arena, term, seen, out));
        }
        Node::Product(factors) => factors.iter().for_each(|&f| collect(arena, f, seen, out)),
        Node::Binary(_, a, b) => {
            collect(arena, *a, seen, out);
            collect(arena, *b, seen, out);
        }
        Node::Select(condition, a, b) => {
            collect(arena, *condition, seen, out);
            collect(arena, *a, seen, out);
            collect(arena, *b, seen, out);
        }
        Node::Table(a, _) | Node::Wrap(_, _, a) => collect(arena, *a, seen, out),
    }
}

#[cfg(test)]
mod tests;
