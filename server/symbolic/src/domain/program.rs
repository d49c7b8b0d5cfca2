//! The expressions of one query as a list, children first, with what each depends on.

use super::{Domain, Layout};
use crate::{Arena, BinaryOp, Id, Interval, Node, Symbol, SymbolKind};

/// A variable that the walk runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variable {
    Counter(Symbol),
    /// Warps along an axis of a regular layout.
    Warp(u8),
    /// Warps of a linear layout.
    LinearWarp,
}

/// One expression; children are positions in the list.
#[derive(Debug)]
pub(crate) enum Op<'a> {
    Const(i64),
    Leaf(Leaf),
    /// `constant + Σ coefficient · term`, the terms at [`Program::links`].
    Sum(i64, Links),
    /// The factors at [`Program::links`].
    Product(Links),
    Binary(BinaryOp, usize, usize),
    Select(usize, usize, usize),
    Table(usize, &'a [i64]),
    Wrap(u8, bool, usize),
}

/// Where a symbol's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// A coordinate of the thread.
    Thread(u8),
    /// A variable of the walk.
    Variable(usize),
    /// One value for the whole launch.
    Fixed(i64),
    /// A counter that the walk does not run over: its range counts, and 0 as its value.
    Bounded(Interval),
    /// Not known: it lies in the range.
    Unknown(Interval),
}

/// A stretch of [`Program::links`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links {
    from: u32,
    to: u32,
}

/// A set of variables of the walk; an arena has fewer than 128 symbols that are one.
pub(crate) type Variables = u128;

/// Who needs an expression: a bit for each guard, one for the roots.
pub(crate) type Needs = u64;

/// The bit of the roots. Guards from this one on share the bit before.
pub(crate) const ROOTS: Needs = 1 << 63;

/// The bit of a guard.
pub(crate) fn guard_bit(guard: usize) -> Needs {
    1 << guard.min(62)
}

/// The list.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    ids: Vec<Id>,
    pub(crate) ops: Vec<Op<'a>>,
    links: Vec<(usize, i64)>,
    /// True where lanes of one warp may differ.
    pub(crate) varies: Vec<bool>,
    /// The variables of the walk that each depends on.
    pub(crate) depends_on: Vec<Variables>,
    /// Who needs it.
    pub(crate) needed: Vec<Needs>,
}

impl<'a> Program<'a> {
    /// Builds the list of `wanted` and all their subexpressions.
    pub(crate) fn new(arena: &'a Arena, wanted: impl Iterator<Item = Id>) -> Program<'a> {
        let mut stack: Vec<Id> = wanted.collect();
        let most = stack.iter().map(|id| id.0 as usize + 1).max().unwrap_or(0);
        let mut seen = vec![0u64; most.div_ceil(64)];
        while let Some(id) = stack.pop() {
            let (word, bit) = (id.0 as usize / 64, 1u64 << (id.0 % 64));
            if seen[word] & bit != 0 {
                continue;
            }
            seen[word] |= bit;
            match arena.node(id) {
                Node::Const(_) | Node::Symbol(_) => {}
                Node::Sum(_, terms) => stack.extend(terms.iter().map(|term| term.0)),
                Node::Product(factors) => stack.extend(factors.iter()),
                Node::Binary(_, a, b) => stack.extend([*a, *b]),
                Node::Select(condition, a, b) => stack.extend([*condition, *a, *b]),
                Node::Table(a, _) | Node::Wrap(_, _, a) => stack.push(*a),
            }
        }
        // Children have smaller ids than parents: in the order of ids they come first.
        let mut ids = Vec::new();
        for (word, &bits) in seen.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                ids.push(Id((word * 64) as u32 + bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
        let len = ids.len();
        let mut program = Program {
            ids,
            ops: Vec::with_capacity(len),
            links: Vec::new(),
            varies: Vec::with_capacity(len),
            depends_on: vec![0; len],
            needed: vec![0; len],
        };
        for at in 0..len {
            let id = program.ids[at];
            let op = program.op(arena, id);
            let varies = match (&op, arena.node(id)) {
                (Op::Leaf(_), Node::Symbol(symbol)) => matches!(
                    arena.symbol_kind(*symbol),
                    SymbolKind::Thread(_) | SymbolKind::Opaque { uniform: false, .. }
                ),
                _ => program.children(&op).any(|child| program.varies[child]),
            };
            program.ops.push(op);
            program.varies.push(varies);
        }
        program
    }

    fn op(&mut self, arena: &'a Arena, id: Id) -> Op<'a> {
        match arena.node(id) {
            Node::Const(value) => Op::Const(*value),
            Node::Symbol(symbol) => Op::Leaf(match arena.symbol_kind(*symbol) {
                SymbolKind::Thread(axis) => Leaf::Thread(axis),
                SymbolKind::Fixed { value, .. } => Leaf::Fixed(value),
                SymbolKind::Counter { .. } => Leaf::Bounded(arena.range(id)),
                SymbolKind::Parameter | SymbolKind::Placeholder | SymbolKind::Opaque { .. } => {
                    Leaf::Unknown(arena.range(id))
                }
            }),
            Node::Sum(constant, terms) => {
                let from = self.links.len() as u32;
                for &(term, coefficient) in terms.iter() {
                    self.links.push((self.position(term), coefficient));
                }
                let to = self.links.len() as u32;
                Op::Sum(*constant, Links { from, to })
            }
            Node::Product(factors) => {
                let from = self.links.len() as u32;
                for &factor in factors.iter() {
                    self.links.push((self.position(factor), 1));
                }
                let to = self.links.len() as u32;
                Op::Product(Links { from, to })
            }
            Node::Binary(op, a, b) => Op::Binary(*op, self.position(*a), self.position(*b)),
            Node::Select(condition, a, b) => Op::Select(
                self.position(*condition),
                self.position(*a),
                self.position(*b),
            ),
            Node::Table(index, values) => Op::Table(self.position(*index), values),
            Node::Wrap(bits, signed, a) => Op::Wrap(*bits, *signed, self.position(*a)),
        }
    }

    /// The position of an expression. It must be one of those requested or a part of one.
    pub(crate) fn position(&self, id: Id) -> usize {
        self.ids.binary_search(&id).unwrap_or(0)
    }

    /// The position of a symbol, if the list has it.
    pub(crate) fn find(&self, arena: &Arena, symbol: Symbol) -> Option<usize> {
        self.ids
            .iter()
            .position(|&id| arena.as_symbol(id) == Some(symbol))
    }

    /// True where some expression depends on a thread's coordinate.
    pub(crate) fn uses_axis(&self, axis: u8) -> bool {
        self.ops
            .iter()
            .any(|op| matches!(op, Op::Leaf(Leaf::Thread(of)) if *of == axis))
    }

    /// Expressions in the list.
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// Terms with their coefficients, or factors with 1.
    pub(crate) fn links(&self, links: Links) -> &[(usize, i64)] {
        &self.links[links.from as usize..links.to as usize]
    }

    fn children(&self, op: &Op) -> impl Iterator<Item = usize> {
        let (links, own): (&[(usize, i64)], [Option<usize>; 3]) = match *op {
            Op::Const(_) | Op::Leaf(_) => (&[], [None; 3]),
            Op::Sum(_, links) | Op::Product(links) => (self.links(links), [None; 3]),
            Op::Binary(_, a, b) => (&[], [Some(a), Some(b), None]),
            Op::Select(condition, a, b) => (&[], [Some(condition), Some(a), Some(b)]),
            Op::Table(a, _) | Op::Wrap(_, _, a) => (&[], [Some(a), None, None]),
        };
        links
            .iter()
            .map(|link| link.0)
            .chain(own.into_iter().flatten())
    }

    /// Tells the list what the walk runs over, and who needs what.
    pub(crate) fn settle(
        &mut self,
        variables: &[Variable],
        symbols: &[(usize, usize)],
        needs: impl Iterator<Item = (usize, Needs)>,
    ) {
        for &(at, variable) in symbols {
            self.ops[at] = Op::Leaf(Leaf::Variable(variable));
        }
        for at in 0..self.len() {
            let own: Variables = match self.ops[at] {
                Op::Leaf(Leaf::Variable(variable)) => 1 << variable,
                Op::Leaf(Leaf::Thread(axis)) => variables
                    .iter()
                    .position(|&variable| {
                        variable == Variable::Warp(axis) || variable == Variable::LinearWarp
                    })
                    .map_or(0, |variable| 1 << variable),
                _ => 0,
            };
            let all = self
                .children(&self.ops[at])
                .fold(own, |all, child| all | self.depends_on[child]);
            self.depends_on[at] = all;
        }
        for (at, need) in needs {
            self.needed[at] |= need;
        }
        for at in (0..self.len()).rev() {
            let need = self.needed[at];
            let links = match self.ops[at] {
                Op::Sum(_, links) | Op::Product(links) => links.from..links.to,
                _ => 0..0,
            };
            for link in links {
                let child = self.links[link as usize].0;
                self.needed[child] |= need;
            }
            match self.ops[at] {
                Op::Binary(_, a, b) => [a, b].map(|child| self.needed[child] |= need),
                Op::Table(a, _) | Op::Wrap(_, _, a) => {
                    [a, a].map(|child| self.needed[child] |= need)
                }
                Op::Select(condition, a, b) => {
                    self.needed[condition] |= need;
                    [a, b].map(|child| self.needed[child] |= need)
                }
                _ => [(); 2],
            };
        }
    }

    /// Every value of one expression, given those of its children.
    pub(crate) fn interval(
        &self,
        at: usize,
        intervals: &[Interval],
        domain: &Domain,
        variables: &[Variable],
        ranges: &[(i64, i64)],
    ) -> Interval {
        match self.ops[at] {
            Op::Const(value) => Interval::point(value),
            Op::Leaf(leaf) => match leaf {
                Leaf::Thread(axis) => domain.coordinates_within(axis, variables, ranges),
                Leaf::Variable(variable) => {
                    Interval::new(ranges[variable].0, ranges[variable].1 - 1)
                }
                Leaf::Fixed(value) => Interval::point(value),
                Leaf::Bounded(range) | Leaf::Unknown(range) => range,
            },
            Op::Sum(constant, terms) => self
                .links(terms)
                .iter()
                .fold(Interval::point(constant), |sum, &(term, coefficient)| {
                    sum.plus(intervals[term].scale(coefficient))
                }),
            Op::Product(factors) => self
                .links(factors)
                .iter()
                .fold(Interval::point(1), |product, &(factor, _)| {
                    product.times(intervals[factor])
                }),
            Op::Binary(op, a, b) => Interval::binary(op, intervals[a], intervals[b]),
            Op::Select(condition, a, b) => {
                if intervals[condition].never_zero() {
                    intervals[a]
                } else if intervals[condition].single() == Some(0) {
                    intervals[b]
                } else {
                    intervals[a].union(intervals[b])
                }
            }
            Op::Table(index, values) => {
                let last = values.len() as i64 - 1;
                let index = intervals[index];
                let (lo, hi) = (index.lo.clamp(0, last), index.hi.clamp(0, last));
                values[lo as usize..=hi as usize]
                    .iter()
                    .map(|&value| Interval::point(value))
                    .reduce(Interval::union)
                    .unwrap_or(Interval::ANY)
            }
            Op::Wrap(bits, signed, a) => intervals[a].wrap(bits, signed),
        }
    }
}

impl Domain {
    /// The values of a thread's coordinate in the warps at hand.
    fn coordinates_within(
        &self,
        axis: u8,
        variables: &[Variable],
        ranges: &[(i64, i64)],
    ) -> Interval {
        let whole = self.thread_range(axis);
        let lanes = self.warp_size as i64;
        let [x, y, _] = self.block;
        for (variable, &(lo, hi)) in variables.iter().zip(ranges) {
            match (*variable, self.layout) {
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
}
