//! The walk over a query's warps: boxes cut in two until guards are decided, then what is left.

use super::lanes::Lanes;
use super::program::{Needs, Program, ROOTS, Variable, Variables, guard_bit};
use super::residues::{Residues, Steps, most_residues, residues};
use super::{Case, Domain, Guard, Layout, Outcome, Query, WARP_MAX};
use crate::shift::{Delta, Movement, Shift, lcm, shift};
use crate::{Arena, BinaryOp, Interval, Node, SymbolKind};

/// Values from the first to one below the second.
type Range = (i64, i64);

/// Which values of a variable are evaluated.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// The number of values evaluated, from the first: one period, or all.
    count: i64,
    /// By how much one period moves the root, modulo its movement that changes nothing.
    step: i64,
}

const MOST_BOXES: u32 = 4096;
/// Larger movements are not told apart by residues.
const LARGEST_MODULUS: i64 = 4096;

pub(crate) struct Walk<'a> {
    domain: &'a Domain,
    each: &'a mut dyn FnMut(&Case),
    program: Program<'a>,
    variables: Vec<Variable>,
    extents: Vec<i64>,
    /// Executions that differ in nothing: product of the extents of counters that nothing depends on.
    multiplicity: f64,
    /// Positions of the roots, each with the movement that leaves its effect unchanged.
    roots: Vec<(usize, i64)>,
    /// Positions of the conditions, each with the truth it must have.
    guards: Vec<(usize, bool)>,
    intervals: Vec<Interval>,
    /// The box whose intervals those are.
    intervals_of: Vec<Range>,
    shifts: Vec<Option<Shift>>,
    lanes: Lanes,
    out: Vec<[i64; WARP_MAX]>,
    budget: u32,
    boxes: u32,
    most_boxes: u32,
    complete: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
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
        let wanted = query.roots.iter().map(|root| root.0);
        let mut program = Program::new(arena, wanted.chain(guards.iter().map(|g| g.condition)));

        let mut variables = Vec::new();
        let mut symbols = Vec::new();
        let mut extents = Vec::new();
        let (mut multiplicity, mut complete) = (1.0, true);
        for &counter in query.counters {
            let Some(extent) = arena.extent(counter) else {
                continue;
            };
            let followed = matches!(arena.symbol_kind(counter), SymbolKind::Counter { .. });
            match program.find(arena, counter).filter(|_| extent != 1) {
                Some(_) if !followed => complete = false,
                Some(at) => {
                    symbols.push((at, variables.len()));
                    variables.push(Variable::Counter(counter));
                    extents.push(extent);
                }
                None => multiplicity *= extent.max(0) as f64,
            }
        }
        match domain.layout {
            Layout::Regular { counts, .. } => {
                for axis in 0..3u8 {
                    let count = counts[axis as usize];
                    if count > 1 && program.uses_axis(axis) {
                        variables.push(Variable::Warp(axis));
                        extents.push(count);
                    } else {
                        multiplicity *= count as f64;
                    }
                }
            }
            // Partial warps differ in their lanes even where nothing depends on a coordinate.
            Layout::Linear { warps } => {
                if warps > 1 {
                    variables.push(Variable::LinearWarp);
                    extents.push(warps);
                }
            }
        }
        let roots: Vec<(usize, i64)> = query
            .roots
            .iter()
            .map(|&(id, modulus)| (program.position(id), modulus))
            .collect();
        let guards: Vec<(usize, bool)> = guards
            .iter()
            .map(|guard| (program.position(guard.condition), guard.holds))
            .collect();
        let needs = guards
            .iter()
            .enumerate()
            .map(|(guard, &(at, _))| (at, guard_bit(guard)))
            .chain(roots.iter().map(|&(at, _)| (at, ROOTS)));
        program.settle(&variables, &symbols, needs);
        let len = program.len();
        Walk {
            domain,
            each,
            lanes: Lanes::new(&program, domain.warp_size),
            program,
            variables,
            extents,
            multiplicity,
            out: vec![[0; WARP_MAX]; roots.len()],
            roots,
            guards,
            intervals: vec![Interval::ANY; len],
            intervals_of: Vec::new(),
            shifts: vec![None; len],
            budget: query.budget,
            boxes: 0,
            most_boxes: query.budget.min(MOST_BOXES),
            complete,
        }
    }

    /// Runs over everything.
    pub(crate) fn run(mut self) -> Outcome {
        let budget = self.budget;
        let ranges: Vec<Range> = self
            .extents
            .iter()
            .map(|&extent| (0, extent.max(0)))
            .collect();
        let undecided: Vec<usize> = (0..self.guards.len()).collect();
        self.boxed(&ranges, &undecided);
        Outcome {
            complete: self.complete,
            looked_at: self.boxes + (budget - self.budget),
        }
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
            let (condition, holds) = self.guards[guard];
            let range = self.intervals[condition];
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
            let cut = self.cut(ranges, variable, &open);
            for part in [(lo, cut), (cut, hi)] {
                let mut ranges = ranges.to_vec();
                ranges[variable] = part;
                self.boxed(&ranges, &open);
            }
            return;
        }
        let plans = self.plans(ranges, &open);
        self.leaf(ranges, &open, &plans);
    }

    /// A variable that some open guard depends on without a period, largest range first.
    fn variable_to_cut(&mut self, ranges: &[Range], open: &[usize]) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (variable, &(lo, hi)) in ranges.iter().enumerate() {
            if hi - lo <= 1 || best.is_some_and(|best| ranges[best].1 - ranges[best].0 >= hi - lo) {
                continue;
            }
            let depends = |guard: &&usize| {
                self.program.depends_on[self.guards[**guard].0] >> variable & 1 == 1
            };
            if !open.iter().any(|guard| depends(&guard)) {
                continue;
            }
            self.compute_shifts(variable, needs_of(open));
            if self.period_of_guards(variable, open).is_none() {
                best = Some(variable);
            }
        }
        best
    }

    /// Where a box is cut along a variable: behind the most values, from either end, for which some guard is decided,
    /// else in the middle. Each piece more along one variable is cut again along all others.
    fn cut(&mut self, ranges: &[Range], variable: usize, open: &[usize]) -> i64 {
        let (lo, hi) = ranges[variable];
        let middle = lo + (hi - lo) / 2;
        let mut part = ranges.to_vec();
        if self.decides(&mut part, variable, (lo, middle), open) {
            // All up to `decided` are, those up to `beyond` are not.
            let (mut decided, mut beyond) = (middle, hi);
            while beyond - decided > 1 {
                let to = decided + (beyond - decided) / 2;
                self.boxes += 1;
                if self.decides(&mut part, variable, (lo, to), open) {
                    decided = to;
                } else {
                    beyond = to;
                }
            }
            return decided;
        }
        if self.decides(&mut part, variable, (middle, hi), open) {
            let (mut decided, mut beyond) = (middle, lo);
            while decided - beyond > 1 {
                let from = beyond + (decided - beyond) / 2;
                self.boxes += 1;
                if self.decides(&mut part, variable, (from, hi), open) {
                    decided = from;
                } else {
                    beyond = from;
                }
            }
            return decided;
        }
        middle
    }

    /// True where some open guard is decided for these values of a variable, `part` being the box around it.
    fn decides(
        &mut self,
        part: &mut [Range],
        variable: usize,
        values: Range,
        open: &[usize],
    ) -> bool {
        part[variable] = values;
        self.compute_intervals(part);
        open.iter().any(|&guard| {
            let range = self.intervals[self.guards[guard].0];
            range.never_zero() || range.single() == Some(0)
        })
    }

    /// After how many values of the variable every open guard is as before. The shifts must be known.
    fn period_of_guards(&self, variable: usize, open: &[usize]) -> Option<i64> {
        open.iter().try_fold(1, |period, &guard| {
            let moved = self.shift_of(variable, self.guards[guard].0)?.modulo(0)?;
            lcm(period, moved.period)
        })
    }

    fn shift_of(&self, variable: usize, at: usize) -> Option<Shift> {
        let moving = Movement {
            program: &self.program,
            intervals: &self.intervals,
            shifts: &self.shifts,
            variable: 1 << variable,
        };
        moving.of(at)
    }

    /// What of each variable must be looked at.
    fn plans(&mut self, ranges: &[Range], open: &[usize]) -> Vec<Plan> {
        let mut plans = Vec::with_capacity(ranges.len());
        for (variable, &(lo, hi)) in ranges.iter().enumerate() {
            let values = hi - lo;
            let all = Plan {
                count: values,
                step: 0,
            };
            // The last warp of a linear layout may be partial: each is looked at.
            if values <= 1 || self.variables[variable] == Variable::LinearWarp {
                plans.push(all);
                continue;
            }
            self.compute_shifts(variable, needs_of(open) | ROOTS);
            let plan = self.period_of_guards(variable, open).and_then(|period| {
                if let [(root, modulus @ 1..=LARGEST_MODULUS)] = self.roots[..] {
                    let moved = self.shift_of(variable, root)?;
                    return Self::step(moved, period, modulus, values);
                }
                let count = self
                    .roots
                    .iter()
                    .try_fold(period, |period, &(root, modulus)| {
                        let moved = self.shift_of(variable, root)?.modulo(modulus)?;
                        lcm(period, moved.period)
                    })?;
                Some(Plan { count, step: 0 })
            });
            plans.push(plan.filter(|plan| plan.count < values).unwrap_or(all));
        }
        plans
    }

    /// How the only root moves over a multiple of `period`, for a variable with `values` values.
    fn step(moved: Shift, period: i64, modulus: i64, values: i64) -> Option<Plan> {
        if let Delta::Exact(delta) = moved.delta {
            let count = lcm(period, moved.period)?;
            let step = delta.checked_mul(count / moved.period)?.rem_euclid(modulus);
            // Of a few periods only, the last in part, telling residues apart saves nothing.
            if step == 0 || count == 1 || values / count >= 4 {
                return Some(Plan { count, step });
            }
        }
        let count = lcm(period, moved.modulo(modulus)?.period)?;
        Some(Plan { count, step: 0 })
    }

    fn leaf(&mut self, ranges: &[Range], open: &[usize], plans: &[Plan]) {
        let modulus = self.roots.first().map_or(1, |root| root.1.max(1));
        let repeats = |variable: usize| {
            let (lo, hi) = ranges[variable];
            let plan: Plan = plans[variable];
            ((hi - lo) / plan.count, (hi - lo) % plan.count)
        };
        let stepping: Vec<usize> = (0..plans.len())
            .filter(|&variable| plans[variable].step != 0)
            .collect();
        let steps = stepping
            .iter()
            .map(|&variable| (plans[variable].step, repeats(variable).0 + 1));
        let shared = most_residues(modulus, steps);
        let allowed = (i64::from(self.budget) / shared).max(1);
        let strides = self.strides(plans, allowed);
        let needs = needs_of(open) | ROOTS;
        let order = self.order(plans, needs);

        // How often each residue occurs, given how many values of each stepping variable a case represents.
        let mut known: Vec<(Vec<Steps>, Residues)> = Vec::new();
        let mut mixture: Vec<Steps> = Vec::with_capacity(stepping.len());
        let mut at: Vec<i64> = vec![0; plans.len()];
        let neighbours =
            |variable: usize, at: i64| strides[variable].min(plans[variable].count - at);
        let value = |variable: usize, at: i64| {
            ranges[variable].0 + at + picked(variable, at, neighbours(variable, at))
        };
        let mut values: Vec<i64> = (0..plans.len())
            .map(|variable| value(variable, 0))
            .collect();
        let mut changed = Variables::MAX;
        loop {
            let mut weight = self.multiplicity;
            mixture.clear();
            for (variable, plan) in plans.iter().enumerate() {
                let (whole, rest) = repeats(variable);
                let here = at[variable];
                // The values that this one represents: the same position in each period, neighbours in a sample.
                let neighbours = neighbours(variable, here);
                // A place before the remainder occurs once more than the others.
                let longer = ((here + neighbours).min(rest) - here).max(0);
                if plan.step == 0 {
                    weight *= (neighbours * whole + longer) as f64;
                } else {
                    mixture.push(Steps {
                        by: plan.step,
                        values: whole,
                        times: neighbours - longer,
                        longer,
                    });
                }
            }
            let which = known
                .iter()
                .position(|(of, _)| *of == mixture)
                .unwrap_or_else(|| {
                    known.push((mixture.clone(), residues(modulus, &mixture)));
                    known.len() - 1
                });
            let warp = self.warp(&values);
            let lanes = &mut self.lanes;
            lanes.evaluate(&self.program, self.domain, needs, changed, &values, warp);
            self.budget = self.budget.saturating_sub(1);
            self.emit(open, warp, weight, &known[which].1);

            changed = 0;
            let mut turn = order.iter();
            loop {
                let Some(&variable) = turn.next() else {
                    return;
                };
                changed |= 1 << variable;
                at[variable] += strides[variable];
                if at[variable] < plans[variable].count {
                    values[variable] = value(variable, at[variable]);
                    break;
                }
                at[variable] = 0;
                values[variable] = value(variable, 0);
            }
        }
    }

    /// By how much each variable advances: by 1, or more where not all can be looked at.
    fn strides(&mut self, plans: &[Plan], allowed: i64) -> Vec<i64> {
        let mut strides = vec![1i64; plans.len()];
        let mut looked: Vec<i64> = plans.iter().map(|plan| plan.count).collect();
        let product = |counts: &[i64]| {
            counts
                .iter()
                .try_fold(1i64, |total, &count| total.checked_mul(count))
        };
        if product(&looked).is_some_and(|total| total <= allowed) {
            return strides;
        }
        // A sample, spread evenly: the largest variable is thinned until it fits.
        self.complete = false;
        while product(&looked).is_none_or(|total| total > allowed.max(16)) {
            let Some(largest) = (0..looked.len()).max_by_key(|&at| looked[at]) else {
                break;
            };
            if looked[largest] <= 1 {
                break;
            }
            strides[largest] *= 2;
            looked[largest] = (plans[largest].count + strides[largest] - 1) / strides[largest];
        }
        strides
    }

    /// The variables that are looked at, those first that the least has to be evaluated again for.
    fn order(&self, plans: &[Plan], needs: Needs) -> Vec<usize> {
        let mut order: Vec<usize> = (0..plans.len())
            .filter(|&variable| plans[variable].count > 1)
            .collect();
        if order.len() > 1 {
            order.sort_by_cached_key(|&variable| {
                (0..self.program.len())
                    .filter(|&at| {
                        self.program.varies[at]
                            && self.program.needed[at] & needs != 0
                            && self.program.depends_on[at] >> variable & 1 == 1
                    })
                    .count()
            });
        }
        order
    }

    /// The warp's number along each axis, or in the first of a linear layout.
    fn warp(&self, values: &[i64]) -> [i64; 3] {
        let mut warp = [0; 3];
        for (variable, &value) in self.variables.iter().zip(values) {
            match variable {
                Variable::Counter(_) => {}
                Variable::Warp(axis) => warp[*axis as usize] = value,
                Variable::LinearWarp => warp[0] = value,
            }
        }
        warp
    }

    fn emit(&mut self, open: &[usize], warp: [i64; 3], weight: f64, residues: &Residues) {
        let lanes = self.domain.warp_size;
        let mut active = self.domain.present(warp);
        for &guard in open {
            let (condition, holds) = self.guards[guard];
            if self.program.varies[condition] {
                let mut truth = 0;
                for (lane, &value) in self.lanes.vector(condition)[..lanes].iter().enumerate() {
                    truth |= u64::from(value != 0) << lane;
                }
                active &= if holds { truth } else { !truth };
            } else if (self.lanes.scalar(condition) != 0) != holds {
                return;
            }
        }
        if active == 0 {
            return;
        }
        for (out, &(root, _)) in self.out.iter_mut().zip(&self.roots) {
            if self.program.varies[root] {
                *out = *self.lanes.vector(root);
            } else {
                *out = [self.lanes.scalar(root); WARP_MAX];
            }
        }
        let mut moved = 0;
        for (index, &(residue, often)) in residues.0.iter().enumerate() {
            if residue != moved {
                // Residues are told apart for an only root.
                for value in &mut self.out[0][..lanes] {
                    *value = value.wrapping_add(residue - moved);
                }
                moved = residue;
            }
            if index > 0 {
                self.budget = self.budget.saturating_sub(1);
            }
            (self.each)(&Case {
                weight: weight * often,
                active,
                values: &self.out,
            });
        }
    }

    /// The intervals of all expressions in a box; only those that differ from the last box's are computed.
    fn compute_intervals(&mut self, ranges: &[Range]) {
        let first = self.intervals_of.len() != ranges.len() || self.boxes == 1;
        let mut changed: Variables = 0;
        if !first {
            for (variable, (now, before)) in ranges.iter().zip(&self.intervals_of).enumerate() {
                changed |= Variables::from(now != before) << variable;
            }
        }
        for at in 0..self.program.len() {
            if first || self.program.depends_on[at] & changed != 0 {
                self.intervals[at] = self.program.interval(
                    at,
                    &self.intervals,
                    self.domain,
                    &self.variables,
                    ranges,
                );
            }
        }
        self.intervals_of.clear();
        self.intervals_of.extend_from_slice(ranges);
    }

    /// The shifts of what `needs` need and depends on a variable.
    fn compute_shifts(&mut self, variable: usize, needs: Needs) {
        let bit: Variables = 1 << variable;
        let leaf = match (self.variables[variable], self.domain.layout) {
            (Variable::Counter(_), _) => Some(1),
            (Variable::Warp(axis), Layout::Regular { steps, .. }) => Some(steps[axis as usize]),
            _ => None,
        };
        let leaf = leaf.map(|step| Shift {
            period: 1,
            delta: Delta::Exact(step),
        });
        for at in 0..self.program.len() {
            if self.program.depends_on[at] & bit == 0 || self.program.needed[at] & needs == 0 {
                continue;
            }
            let moving = Movement {
                program: &self.program,
                intervals: &self.intervals,
                shifts: &self.shifts,
                variable: bit,
            };
            let moved = shift(&moving, at, leaf);
            self.shifts[at] = moved;
        }
    }
}

/// Which of the neighbours that one case of a sample represents is looked at. Not always the first: where one variable bounds
/// another, all guards hold in that corner, and its distance from the others is a power of two. The same in each walk: multiples of
/// the golden ratio, whose fractions are spread evenly.
fn picked(variable: usize, at: i64, neighbours: i64) -> i64 {
    let number = (at as u64).wrapping_add((variable as u64) << 20);
    let fraction = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(fraction) * neighbours as u128) >> 64) as i64
}

fn needs_of(guards: &[usize]) -> Needs {
    guards
        .iter()
        .fold(0, |needs, &guard| needs | guard_bit(guard))
}

/// Falls a conjunction apart into conditions that hold (or, negated, a disjunction into ones that do not).
fn split(arena: &Arena, guard: Guard, out: &mut Vec<Guard>) {
    let wanted = if guard.holds {
        BinaryOp::LogicalAnd
    } else {
        BinaryOp::LogicalOr
    };
    match arena.node(guard.condition) {
        Node::Binary(op, a, b) if *op == wanted => {
            for &condition in [a, b] {
                split(arena, Guard { condition, ..guard }, out);
            }
        }
        _ => {
            if !out.contains(&guard) {
                out.push(guard);
            }
        }
    }
}
