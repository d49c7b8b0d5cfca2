//! Hash-consed integer expressions in a canonical form.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::Interval;

/// An expression: an index into its [`Arena`]. Children always have smaller ids than parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(crate) u32);

impl Id {
    /// Its number, by which those of one arena are told apart.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A symbol: an index into the arena's symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub(crate) u32);

impl Symbol {
    /// Its number, by which polynomials name it.
    pub fn number(self) -> crate::Name {
        self.0
    }
}

/// What kind of values a symbol takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// One coordinate of the thread in its block: axis 0, 1 or 2. Differs between lanes.
    Thread(u8),
    /// The same for all lanes of a warp at one moment; runs from 0 to one below its extent: a block
    /// coordinate, an iteration of a loop.
    Counter {
        /// Number of values.
        extent: i64,
    },
    /// One value for the whole launch: a parameter, an extent of the launch.
    Fixed {
        /// The value.
        value: i64,
        /// True where that value was assumed.
        assumed: bool,
    },
    /// One value for the whole launch, left open: a parameter that results are functions of.
    Parameter,
    /// A placeholder for a loop-carried value during the first pass over a loop's body.
    Placeholder,
    /// An opaque value.
    Opaque {
        /// True: it depends on data in memory; false: it comes from code that is not modelled.
        data: bool,
        /// True where all lanes of a warp have the same value.
        uniform: bool,
    },
}

/// Binary operators. Comparisons and logic give 0 or 1; division truncates; by zero gives 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Div,
    Rem,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Min,
    Max,
    Lt,
    Le,
    Eq,
    Ne,
    LogicalAnd,
    LogicalOr,
    /// The number of ones in the lowest `b` bits.
    Population,
    /// The number of leading zeros in `b` bits.
    LeadingZeros,
    /// The lowest `b` bits reversed.
    Reverse,
    /// A product shifted right by 32.
    MulHigh,
}

impl BinaryOp {
    /// Evaluates it on two numbers.
    pub fn apply(self, a: i64, b: i64) -> i64 {
        match self {
            BinaryOp::Div => a.checked_div(b).unwrap_or(0),
            BinaryOp::Rem => a.checked_rem(b).unwrap_or(0),
            BinaryOp::Shl => {
                if (0..64).contains(&b) {
                    a.wrapping_shl(b as u32)
                } else {
                    0
                }
            }
            BinaryOp::Shr => a >> b.clamp(0, 63),
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Min => a.min(b),
            BinaryOp::Max => a.max(b),
            BinaryOp::Lt => i64::from(a < b),
            BinaryOp::Le => i64::from(a <= b),
            BinaryOp::Eq => i64::from(a == b),
            BinaryOp::Ne => i64::from(a != b),
            BinaryOp::LogicalAnd => i64::from(a != 0 && b != 0),
            BinaryOp::LogicalOr => i64::from(a != 0 || b != 0),
            BinaryOp::Population => i64::from(lowest(a, b).count_ones()),
            BinaryOp::LeadingZeros => {
                i64::from(lowest(a, b).leading_zeros()) - (64 - b.clamp(1, 64))
            }
            BinaryOp::Reverse => (lowest(a, b).reverse_bits() >> (64 - b.clamp(1, 64))) as i64,
            BinaryOp::MulHigh => ((i128::from(a) * i128::from(b)) >> 32) as i64,
        }
    }
}

/// A mask of the lowest `count` bits, at least one.
fn lowest(a: i64, bits: i64) -> u64 {
    a as u64 & (u64::MAX >> (64 - bits.clamp(1, 64)))
}

/// One expression. Sums and products are canonical: sorted, without repetition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// A number.
    Const(i64),
    /// A symbol.
    Symbol(Symbol),
    /// `constant + Σ coefficient · term`; terms are neither constants nor sums.
    Sum(i64, Rc<[(Id, i64)]>),
    /// A product of two or more expressions, none of them a constant.
    Product(Rc<[Id]>),
    /// Any other operator.
    Binary(BinaryOp, Id, Id),
    /// `condition ? a : b`.
    Select(Id, Id, Id),
    /// A table indexed by an expression: the values of an induction variable that is not affine.
    Table(Id, Rc<[i64]>),
    /// Wrapped to a number of bits, signed or not.
    Wrap(u8, bool, Id),
}

/// Symbols that a value varies with, those among them that it reaches through opaque values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolSet(u128);

impl SymbolSet {
    /// One value.
    pub const NONE: SymbolSet = SymbolSet(0);
    /// It may vary with anything.
    pub const ALL: SymbolSet = SymbolSet(u128::MAX);

    /// True where some symbol is in both.
    pub fn meets(self, other: SymbolSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for SymbolSet {
    type Output = SymbolSet;

    fn bitor(self, other: SymbolSet) -> SymbolSet {
        SymbolSet(self.0 | other.0)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    /// Bit of each symbol it depends on.
    pub(crate) symbols: u128,
    /// The same, and what opaque ones among them depend on.
    pub(crate) reached: u128,
    pub(crate) range: Interval,
    /// The range over all values of assumed symbols: the one that rewriting may rely on.
    pub(crate) wide: Interval,
}

/// Expressions of one kernel under one launch.
#[derive(Debug, Default)]
pub struct Arena {
    nodes: Vec<Node>,
    meta: Vec<Meta>,
    /// The size of each expression as a tree, without sharing.
    weights: Vec<u32>,
    /// How the threads of a block are warps; without, nothing of a thread is the same for the lanes of its warp.
    warps: Option<Warps>,
    ids: FxHashMap<Node, Id>,
    symbols: Vec<(String, SymbolKind)>,
    /// The bit of each symbol in [`Meta::symbols`]; opaque symbols of one kind share theirs.
    bits: Vec<u32>,
    /// A symbol for each bit.
    by_bit: Vec<Option<Symbol>>,
    used_bits: u32,
    /// Counters that got no bit, and their extents.
    nameless: FxHashMap<Symbol, i64>,
    fits: Vec<Fit>,
    /// Cache of [`Arena::replace`].
    substituted: FxHashMap<(Id, Symbol, Id), Id>,
}

/// How the threads of a block are warps.
#[derive(Debug, Clone, Copy)]
struct Warps {
    lanes: i64,
    block: [i64; 3],
}

impl Warps {
    /// Threads from one to the next along an axis.
    fn stride(self, axis: u8) -> i64 {
        let before = self.block.iter().take(usize::from(axis));
        before.fold(1i64, |product, extent| product.saturating_mul(*extent))
    }

    /// True where the lanes of a warp share that coordinate: a row of the block is whole warps.
    fn share(self, axis: u8) -> bool {
        axis > 0 && self.stride(axis) % self.lanes == 0
    }

    /// True where a warp is in one row of the block, or there is one row.
    fn rows_are_whole(self) -> bool {
        let [x, y, z] = self.block;
        x % self.lanes == 0 || y <= 1 && z <= 1
    }
}

/// Choices within sums within choices that are looked into.
const DEEPEST_CHOICE: u32 = 6;
/// Parts of one condition that are told apart.
const MOST_PARTS: usize = 16;
/// Expressions looked at for one answer to whether lanes differ, at most.
const MOST_LOOKED_AT: u32 = 256;

/// An expression that was taken to fit its type, which other values of assumed symbols could change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// The expression.
    pub id: Id,
    /// Width of its type.
    pub bits: u8,
    /// True for a signed type.
    pub signed: bool,
}

/// The most expressions remembered as taken to fit.
const MOST_FITS: usize = 512;

/// Expressions whose tree is larger become opaque: each round of a hash function doubles its size.
const MOST_WEIGHT: u32 = 4096;

/// Bits for symbols that are not opaque; further ones become opaque.
const OWN_BITS: u32 = 124;

impl Arena {
    /// An arena without expressions.
    pub fn new() -> Arena {
        Arena::default()
    }

    /// A new symbol. A fixed symbol keeps its name in text and its value in evaluation.
    ///
    /// `range` is every value it can have. Where that is more than its kind says (a parameter whose value is
    /// assumed, the counter of a loop whose bound is), no rewriting relies on the value or the extent.
    pub fn symbol(&mut self, name: &str, kind: SymbolKind, range: Interval) -> Id {
        let own = !matches!(kind, SymbolKind::Opaque { .. });
        let wanted = kind;
        let kind = if own && self.used_bits >= OWN_BITS {
            SymbolKind::Opaque {
                data: false,
                // What lanes have in common they have in common without a bit of its own.
                uniform: !matches!(kind, SymbolKind::Thread(_) | SymbolKind::Placeholder),
            }
        } else {
            kind
        };
        let all = range;
        let range = match kind {
            SymbolKind::Fixed { value, .. } => Interval::point(value),
            SymbolKind::Counter { extent } => Interval::new(0, (extent - 1).max(0)),
            _ => range,
        };
        let wide = if all == Interval::ANY {
            range
        } else {
            range.union(all)
        };
        let bit = match kind {
            SymbolKind::Opaque { data, uniform } => {
                OWN_BITS + 2 * u32::from(data) + u32::from(uniform)
            }
            _ => {
                self.used_bits += 1;
                self.used_bits - 1
            }
        };
        let symbol = Symbol(self.symbols.len() as u32);
        if let (SymbolKind::Counter { extent }, SymbolKind::Opaque { .. }) = (wanted, kind) {
            self.nameless.insert(symbol, extent);
        }
        self.symbols.push((name.to_owned(), kind));
        self.bits.push(bit);
        self.by_bit.resize(128, None);
        self.by_bit[bit as usize] = Some(symbol);
        self.add_node(
            Node::Symbol(symbol),
            Meta {
                symbols: 1 << bit,
                reached: if matches!(kind, SymbolKind::Opaque { .. }) {
                    u128::MAX
                } else {
                    1 << bit
                },
                range,
                wide,
            },
        )
    }

    /// An opaque value that varies with those symbols alone.
    pub fn opaque_of(
        &mut self,
        name: &str,
        data: bool,
        uniform: bool,
        with: SymbolSet,
        range: Interval,
    ) -> Id {
        let kind = SymbolKind::Opaque { data, uniform };
        let id = self.symbol(name, kind, range);
        self.meta[id.0 as usize].reached = with.0;
        id
    }

    /// The symbols that it varies with, also through opaque values.
    pub fn varies_with(&self, id: Id) -> SymbolSet {
        SymbolSet(self.meta[id.0 as usize].reached)
    }

    /// True where a symbol is in a set.
    pub fn is_in(&self, symbol: Symbol, set: SymbolSet) -> bool {
        set.0 >> self.bits[symbol.0 as usize] & 1 == 1
    }

    /// Says how the threads of a block are warps: their lanes, and the extents of the block.
    pub fn set_warps(&mut self, lanes: i64, block: [i64; 3]) {
        self.warps = Some(Warps { lanes, block });
    }

    /// True where lanes of one warp may differ in it under this block's shape; [`Arena::varies_by_lane`] holds for any.
    pub fn varies_in_warp(&self, id: Id) -> bool {
        let mut left = MOST_LOOKED_AT;
        self.varies(id, &mut left)
    }

    fn varies(&self, id: Id, left: &mut u32) -> bool {
        let varying = |symbol| match self.symbol_kind(symbol) {
            SymbolKind::Thread(axis) => !self.warps.is_some_and(|warps| warps.share(axis)),
            SymbolKind::Opaque { uniform, .. } => !uniform,
            _ => false,
        };
        if !self.symbols_of(id).any(varying) {
            return false;
        }
        if *left == 0 {
            return true;
        }
        *left -= 1;
        match self.node(id) {
            Node::Const(_) => false,
            Node::Symbol(_) => true,
            Node::Sum(_, terms) => terms.iter().any(|(term, _)| self.varies(*term, left)),
            Node::Product(factors) => factors.iter().any(|factor| self.varies(*factor, left)),
            &Node::Binary(op, a, b) => {
                !self.cuts_lanes_off(op, a, b, left)
                    && (self.varies(a, left) || self.varies(b, left))
            }
            &Node::Select(condition, a, b) => [condition, a, b]
                .into_iter()
                .any(|one| self.varies(one, left)),
            &Node::Table(inner, _) | &Node::Wrap(_, _, inner) => self.varies(inner, left),
        }
    }

    /// True for the number of a warp: `threadIdx.x / 32`, `tid >> 5`, `tid & 96`.
    fn cuts_lanes_off(&self, op: BinaryOp, a: Id, b: Id, left: &mut u32) -> bool {
        let (Some(warps), Some(by)) = (self.warps, self.as_const(b)) else {
            return false;
        };
        let cuts = match op {
            BinaryOp::Div => by > 0 && by % warps.lanes == 0,
            BinaryOp::Shr => (0..32).contains(&by) && (1i64 << by) % warps.lanes == 0,
            BinaryOp::And => warps.lanes.count_ones() == 1 && by & (warps.lanes - 1) == 0,
            _ => false,
        };
        cuts && self.range(a).lo >= 0 && self.counts_lanes(a, left)
    }

    /// A coordinate of the thread, and what it is multiplied by: `threadIdx.y * blockDim.x`.
    fn coordinate(&self, id: Id) -> Option<(u8, i64)> {
        let axis = |id: Id| match self.symbol_kind(self.as_symbol(id)?) {
            SymbolKind::Thread(axis) => Some(axis),
            _ => None,
        };
        let Node::Product(factors) = self.node(id) else {
            return Some((axis(id)?, 1));
        };
        let mut found = None;
        let mut times = 1i64;
        for &factor in factors.iter() {
            match axis(factor) {
                Some(axis) if found.is_none() => found = Some(axis),
                _ => times = times.checked_mul(self.value(factor)?)?,
            }
        }
        Some((found?, times))
    }

    /// What divides a summand for certain: `blockIdx.x * blockDim.x` in blocks of 256 is a multiple of 256.
    fn known_times(&self, term: Id, factor: i64) -> i64 {
        let Node::Product(factors) = self.node(term) else {
            return factor;
        };
        let mut values = factors.iter().filter_map(|&one| self.value(one));
        let times = values.try_fold(factor, i64::checked_mul);
        times.unwrap_or(factor)
    }

    /// True for a value that is a multiple of a warp's lanes, one for all of them, and the lane.
    fn counts_lanes(&self, id: Id, left: &mut u32) -> bool {
        let Some(warps) = self.warps else {
            return false;
        };
        match self.node(id) {
            Node::Symbol(symbol) => {
                self.symbol_kind(*symbol) == SymbolKind::Thread(0) && warps.rows_are_whole()
            }
            &Node::Binary(BinaryOp::Rem, inner, by) => {
                let by = self.as_const(by);
                by.is_some_and(|by| by > 0 && by % warps.lanes == 0)
                    && self.range(inner).lo >= 0
                    && self.counts_lanes(inner, left)
            }
            Node::Sum(constant, terms) => {
                let mut rank = [false; 3];
                let mut others = Vec::new();
                for &(term, factor) in terms.iter() {
                    match self.coordinate(term) {
                        Some((axis, times))
                            if times.checked_mul(factor) == Some(warps.stride(axis)) =>
                        {
                            rank[usize::from(axis)] = true;
                        }
                        _ => others.push((term, factor)),
                    }
                }
                let [x, y, z] = warps.block;
                let whole = rank[0] && (rank[1] || y <= 1) && (rank[2] || z <= 1);
                let mut carried = whole || rank[0] && warps.rows_are_whole();
                constant % warps.lanes == 0
                    && x > 0
                    && others.into_iter().all(|(term, factor)| {
                        let times = self.known_times(term, factor);
                        if times % warps.lanes == 0 && !self.varies(term, left) {
                            return true;
                        }
                        let carries = !carried && factor == 1 && self.counts_lanes(term, left);
                        carried |= carries;
                        carries
                    })
                    && carried
            }
            _ => false,
        }
    }

    /// How many values a counter has, one that became opaque too; `None` for what is none.
    pub(crate) fn extent(&self, counter: Symbol) -> Option<i64> {
        match self.symbol_kind(counter) {
            SymbolKind::Counter { extent } => Some(extent),
            _ => self.nameless.get(&counter).copied(),
        }
    }

    /// How many symbols there are: the number of the next one.
    pub(crate) fn symbol_count(&self) -> u32 {
        self.symbols.len() as u32
    }

    /// The symbol of that number, as a polynomial names it; `None` where there is none.
    pub fn symbol_named(&self, name: crate::Name) -> Option<Symbol> {
        ((name as usize) < self.symbols.len()).then_some(Symbol(name))
    }

    /// A symbol as an expression.
    pub fn of_symbol(&mut self, symbol: Symbol) -> Id {
        let node = Node::Symbol(symbol);
        match self.ids.get(&node) {
            Some(&id) => id,
            None => self.constant(0),
        }
    }

    /// The symbol, where the expression is one.
    pub fn as_symbol(&self, id: Id) -> Option<Symbol> {
        match self.node(id) {
            Node::Symbol(symbol) => Some(*symbol),
            _ => None,
        }
    }

    /// The symbol's name.
    pub fn symbol_name(&self, symbol: Symbol) -> &str {
        &self.symbols[symbol.0 as usize].0
    }

    /// The symbol's kind.
    pub fn symbol_kind(&self, symbol: Symbol) -> SymbolKind {
        self.symbols[symbol.0 as usize].1
    }

    /// The expression itself.
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Every value it can have, over-approximated.
    pub fn range(&self, id: Id) -> Interval {
        self.meta[id.0 as usize].range
    }

    /// The range, whatever the assumed values are.
    fn wide(&self, id: Id) -> Interval {
        self.meta[id.0 as usize].wide
    }

    /// The number, where it is one.
    pub fn as_const(&self, id: Id) -> Option<i64> {
        match self.node(id) {
            Node::Const(value) => Some(*value),
            _ => None,
        }
    }

    /// The number it has under this launch and these arguments, where it is one for the whole launch.
    pub fn value(&self, id: Id) -> Option<i64> {
        let fixed = self
            .symbols_of(id)
            .all(|symbol| matches!(self.symbol_kind(symbol), SymbolKind::Fixed { .. }));
        if fixed { self.range(id).single() } else { None }
    }

    /// The symbols it depends on; of opaque ones, one for each kind.
    pub fn symbols_of(&self, id: Id) -> impl Iterator<Item = Symbol> + '_ {
        let mut bits = self.meta[id.0 as usize].symbols;
        std::iter::from_fn(move || {
            if bits == 0 {
                return None;
            }
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            self.by_bit[bit as usize]
        })
    }

    /// True where it depends on the symbol (or, for an opaque one, on one of its kind).
    pub fn depends_on(&self, id: Id, symbol: Symbol) -> bool {
        self.meta[id.0 as usize].symbols >> self.bits[symbol.0 as usize] & 1 == 1
    }

    /// True where it depends on a placeholder.
    pub fn has_placeholder(&self, id: Id) -> bool {
        self.symbols_of(id)
            .any(|symbol| self.symbol_kind(symbol) == SymbolKind::Placeholder)
    }

    /// True where lanes of one warp may differ in it.
    pub fn varies_by_lane(&self, id: Id) -> bool {
        self.symbols_of(id).any(|symbol| {
            matches!(
                self.symbol_kind(symbol),
                SymbolKind::Thread(_) | SymbolKind::Opaque { uniform: false, .. }
            )
        })
    }

    /// Why it is opaque: `Some(true)` data in memory, `Some(false)` only code that is not modelled. Data wins where both
    /// apply, because modelling the code would not make the value known.
    pub fn opaque(&self, id: Id) -> Option<bool> {
        let mut found = None;
        for symbol in self.symbols_of(id) {
            match self.symbol_kind(symbol) {
                SymbolKind::Opaque { data, .. } => found = Some(found.unwrap_or(false) || data),
                SymbolKind::Placeholder => found = Some(found.unwrap_or(false)),
                _ => {}
            }
        }
        found
    }

    /// True where data or code that is not modelled is in it; what only takes the place of a value is neither.
    pub fn has_opaque(&self, id: Id) -> bool {
        self.symbols_of(id)
            .any(|symbol| matches!(self.symbol_kind(symbol), SymbolKind::Opaque { .. }))
    }

    fn add_node(&mut self, node: Node, meta: Meta) -> Id {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        let weight = self.weight_of(&node);
        if weight > MOST_WEIGHT {
            let symbols = || {
                let mut bits = meta.symbols;
                std::iter::from_fn(move || {
                    let bit = bits.trailing_zeros();
                    bits &= bits.wrapping_sub(1);
                    (bit < 128).then_some(bit)
                })
                .filter_map(|bit| self.by_bit[bit as usize])
                .map(|symbol| self.symbol_kind(symbol))
            };
            let data = symbols().any(|kind| matches!(kind, SymbolKind::Opaque { data: true, .. }));
            let uniform = !symbols().any(|kind| {
                matches!(
                    kind,
                    SymbolKind::Thread(_)
                        | SymbolKind::Placeholder
                        | SymbolKind::Opaque { uniform: false, .. }
                )
            });
            let kind = SymbolKind::Opaque { data, uniform };
            let id = self.symbol("?", kind, meta.wide);
            self.meta[id.0 as usize].reached = meta.reached;
            self.ids.insert(node, id);
            return id;
        }
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.meta.push(meta);
        self.weights.push(weight);
        self.ids.insert(node, id);
        id
    }

    fn weight_of(&self, node: &Node) -> u32 {
        let of = |id: &Id| self.weights[id.0 as usize];
        let parts = match node {
            Node::Const(_) | Node::Symbol(_) => 0,
            Node::Sum(_, terms) => terms
                .iter()
                .fold(0u32, |sum, (term, _)| sum.saturating_add(of(term))),
            Node::Product(factors) => factors
                .iter()
                .fold(0u32, |sum, factor| sum.saturating_add(of(factor))),
            Node::Binary(_, a, b) => of(a).saturating_add(of(b)),
            Node::Select(a, b, c) => of(a).saturating_add(of(b)).saturating_add(of(c)),
            Node::Table(index, _) => of(index),
            Node::Wrap(_, _, inner) => of(inner),
        };
        parts.saturating_add(1)
    }

    /// A number.
    pub fn constant(&mut self, value: i64) -> Id {
        self.add_node(
            Node::Const(value),
            Meta {
                symbols: 0,
                reached: 0,
                range: Interval::point(value),
                wide: Interval::point(value),
            },
        )
    }

    /// `a + b`.
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        self.combine(a, 1, b, 1)
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Id, b: Id) -> Id {
        self.combine(a, 1, b, -1)
    }

    /// `-a`.
    pub fn neg(&mut self, a: Id) -> Id {
        self.scale(a, -1)
    }

    /// `a · factor`.
    pub fn scale(&mut self, a: Id, factor: i64) -> Id {
        let zero = self.constant(0);
        self.combine(a, factor, zero, 0)
    }

    /// As a sum: constant and terms.
    pub fn terms(&self, id: Id) -> (i64, Vec<(Id, i64)>) {
        match self.node(id) {
            Node::Const(value) => (*value, Vec::new()),
            Node::Sum(constant, terms) => (*constant, terms.to_vec()),
            _ => (0, vec![(id, 1)]),
        }
    }

    fn combine(&mut self, a: Id, fa: i64, b: Id, fb: i64) -> Id {
        let (ca, ta) = self.terms(a);
        let (cb, tb) = self.terms(b);
        let constant = ca.wrapping_mul(fa).wrapping_add(cb.wrapping_mul(fb));
        let mut merged: Vec<(Id, i64)> = Vec::with_capacity(ta.len() + tb.len());
        let (mut i, mut j) = (0, 0);
        while i < ta.len() || j < tb.len() {
            let from_a = j >= tb.len() || (i < ta.len() && ta[i].0 <= tb[j].0);
            let from_b = i >= ta.len() || (j < tb.len() && tb[j].0 <= ta[i].0);
            let id = if from_a { ta[i].0 } else { tb[j].0 };
            let mut coefficient = 0i64;
            if from_a {
                coefficient = coefficient.wrapping_add(ta[i].1.wrapping_mul(fa));
                i += 1;
            }
            if from_b {
                coefficient = coefficient.wrapping_add(tb[j].1.wrapping_mul(fb));
                j += 1;
            }
            if coefficient != 0 {
                merged.push((id, coefficient));
            }
        }
        self.sum(constant, merged)
    }

    /// The constant and each expression times its factor, as one sum: adding them one by one would make as many sums.
    fn combination(&mut self, mut constant: i64, parts: &[(Id, i64)]) -> Id {
        let mut terms: Vec<(Id, i64)> = Vec::with_capacity(parts.len());
        for &(part, factor) in parts {
            match self.node(part) {
                Node::Const(value) => constant = constant.wrapping_add(value.wrapping_mul(factor)),
                Node::Sum(own, of_part) => {
                    constant = constant.wrapping_add(own.wrapping_mul(factor));
                    let scaled = of_part.iter();
                    terms.extend(
                        scaled.map(|&(id, coefficient)| (id, coefficient.wrapping_mul(factor))),
                    );
                }
                _ => terms.push((part, factor)),
            }
        }
        terms.sort_unstable_by_key(|&(id, _)| id);
        terms.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 = first.1.wrapping_add(later.1);
            }
            same
        });
        terms.retain(|&(_, coefficient)| coefficient != 0);
        self.sum(constant, terms)
    }

    /// `terms` sorted by id, without zeros.
    fn sum(&mut self, constant: i64, terms: Vec<(Id, i64)>) -> Id {
        if let Some(simpler) = self
            .with_a_remainder(constant, &terms)
            .or_else(|| self.recombined(constant, &terms))
        {
            return simpler;
        }
        match terms.as_slice() {
            [] => return self.constant(constant),
            [(id, 1)] if constant == 0 => return *id,
            _ => {}
        }
        let mut meta = Meta {
            symbols: 0,
            reached: 0,
            range: Interval::point(constant),
            wide: Interval::point(constant),
        };
        for &(id, coefficient) in &terms {
            let of = self.meta[id.0 as usize];
            meta.range = meta.range.plus(of.range.scale(coefficient));
            meta.wide = meta.wide.plus(of.wide.scale(coefficient));
            meta.symbols |= of.symbols;
            meta.reached |= of.reached;
        }
        self.add_node(Node::Sum(constant, terms.into()), meta)
    }

    /// A sum in which `x - (x / d) · d` is `x % d`, times a factor: the remainder has the range that the difference lacks.
    fn with_a_remainder(&mut self, constant: i64, terms: &[(Id, i64)]) -> Option<Id> {
        if terms.len() < 2 {
            return None;
        }
        let (at, x, d, factor) = terms
            .iter()
            .enumerate()
            .find_map(|(at, (id, coefficient))| {
                let Node::Binary(BinaryOp::Div, x, d) = *self.node(*id) else {
                    return None;
                };
                let divisor = self.as_const(d).filter(|d| *d > 1)?;
                let whole = coefficient % divisor == 0;
                whole.then_some((at, x, d, -(coefficient / divisor)))
            })?;
        let (of_x, terms_of_x) = self.terms(x);
        let has = |wanted: &(Id, i64)| {
            let scaled = wanted.1.checked_mul(factor);
            terms
                .iter()
                .any(|one| one.0 == wanted.0 && Some(one.1) == scaled)
        };
        if terms_of_x.is_empty() || !terms_of_x.iter().all(has) {
            return None;
        }
        let remainder = self.binary(BinaryOp::Rem, x, d);
        let mut parts = vec![(remainder, factor)];
        let others = terms.iter().enumerate().filter(|(other, (id, _))| {
            *other != at && terms_of_x.iter().all(|(of_x, _)| of_x != id)
        });
        parts.extend(others.map(|(_, part)| *part));
        let constant = constant.wrapping_sub(of_x.wrapping_mul(factor));
        Some(self.combination(constant, &parts))
    }

    /// A sum in which `(x / d) · d + x % d` is `x`, times whatever: an index that was split into two coordinates and put together
    /// again.
    fn recombined(&mut self, constant: i64, terms: &[(Id, i64)]) -> Option<Id> {
        if terms.len() < 2
            || !terms
                .iter()
                .any(|(id, _)| self.factor(*id, BinaryOp::Div).is_some())
        {
            return None;
        }
        for (at, &(id, coefficient)) in terms.iter().enumerate() {
            let Some((x, d, others)) = self.factor(id, BinaryOp::Rem) else {
                continue;
            };
            let mut factors = others.clone();
            factors.push(self.binary(BinaryOp::Div, x, d));
            let wanted = match self.as_const(d) {
                Some(divisor) => coefficient.checked_mul(divisor),
                None => {
                    factors.push(d);
                    Some(coefficient)
                }
            };
            let quotient = match factors.as_slice() {
                [one] => *one,
                _ => self.product(&factors),
            };
            let partner =
                |(_, (id, times)): &(usize, &(Id, i64))| *id == quotient && Some(*times) == wanted;
            let Some((with, _)) = terms.iter().enumerate().find(partner) else {
                continue;
            };
            let mut whole = x;
            for other in others {
                whole = self.mul(whole, other);
            }
            let mut parts = vec![(whole, coefficient)];
            let rest = terms.iter().enumerate();
            parts.extend(
                rest.filter(|(n, _)| *n != at && *n != with)
                    .map(|(_, part)| *part),
            );
            return Some(self.combination(constant, &parts));
        }
        None
    }

    /// What `op` is taken of in a term, by what, and the term's other factors.
    fn factor(&self, term: Id, op: BinaryOp) -> Option<(Id, Id, Vec<Id>)> {
        let operands = |id: &Id| match *self.node(*id) {
            Node::Binary(of, x, d) if of == op => Some((x, d)),
            _ => None,
        };
        if let Some((x, d)) = operands(&term) {
            return Some((x, d, Vec::new()));
        }
        let Node::Product(factors) = self.node(term) else {
            return None;
        };
        let (at, (x, d)) = factors
            .iter()
            .enumerate()
            .find_map(|(at, factor)| Some((at, operands(factor)?)))?;
        let mut others = factors.to_vec();
        others.remove(at);
        Some((x, d, others))
    }

    /// `a · b`, multiplied out where that stays small.
    pub fn mul(&mut self, a: Id, b: Id) -> Id {
        if let Some(factor) = self.as_const(a) {
            return self.scale(b, factor);
        }
        if let Some(factor) = self.as_const(b) {
            return self.scale(a, factor);
        }
        let (ca, ta) = self.terms(a);
        let (cb, tb) = self.terms(b);
        if (ta.len() + 1) * (tb.len() + 1) > 24 {
            return self.product(&[a, b]);
        }
        let mut parts: Vec<(Id, i64)> = Vec::with_capacity((ta.len() + 1) * (tb.len() + 1));
        parts.extend(tb.iter().map(|&(y, fy)| (y, fy.wrapping_mul(ca))));
        for &(x, fx) in &ta {
            parts.push((x, fx.wrapping_mul(cb)));
            for &(y, fy) in &tb {
                parts.push((self.product(&[x, y]), fx.wrapping_mul(fy)));
            }
        }
        self.combination(ca.wrapping_mul(cb), &parts)
    }

    fn product(&mut self, factors: &[Id]) -> Id {
        let mut flat: Vec<Id> = Vec::new();
        for &factor in factors {
            match self.node(factor) {
                Node::Product(inner) => flat.extend(inner.iter()),
                _ => flat.push(factor),
            }
        }
        flat.sort_unstable();
        let mut meta = Meta {
            symbols: 0,
            reached: 0,
            range: Interval::point(1),
            wide: Interval::point(1),
        };
        for &id in &flat {
            let of = self.meta[id.0 as usize];
            meta.range = meta.range.times(of.range);
            meta.wide = meta.wide.times(of.wide);
            meta.symbols |= of.symbols;
            meta.reached |= of.reached;
        }
        if flat.len() == 2 && flat[0] == flat[1] {
            // A square.
            meta.range = Interval::new(0.max(meta.range.lo), meta.range.hi);
            meta.wide = Interval::new(0.max(meta.wide.lo), meta.wide.hi);
        }
        self.add_node(Node::Product(flat.into()), meta)
    }

    /// Any other operator.
    pub fn binary(&mut self, op: BinaryOp, a: Id, b: Id) -> Id {
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
            return self.constant(op.apply(x, y));
        }
        if let Some(simpler) = self.simplify(op, a, b) {
            return simpler;
        }
        self.raw_binary(op, a, b)
    }

    fn simplify(&mut self, op: BinaryOp, a: Id, b: Id) -> Option<Id> {
        let (ra, rb) = (self.wide(a), self.wide(b));
        let constant = self.as_const(b);
        match op {
            BinaryOp::Div | BinaryOp::Rem => {
                let divisor = constant?;
                if divisor == 1 {
                    return Some(if op == BinaryOp::Div {
                        a
                    } else {
                        self.constant(0)
                    });
                }
                if divisor <= 0 {
                    return None;
                }
                // (x / c) / d = x / (c d): division truncates.
                if op == BinaryOp::Div
                    && let Node::Binary(BinaryOp::Div, x, by) = *self.node(a)
                    && let Some(whole) = self.as_const(by).filter(|by| *by > 0)
                    && let Some(whole) = whole.checked_mul(divisor)
                {
                    let whole = self.constant(whole);
                    return Some(self.binary(BinaryOp::Div, x, whole));
                }
                // (d·q + r) / d = q + r / d, where nothing is negative.
                let (c, terms) = self.terms(a);
                let mut quotient = self.constant(c.div_euclid(divisor));
                let mut rest = self.constant(c.rem_euclid(divisor));
                for (id, coefficient) in terms {
                    if coefficient % divisor == 0 {
                        let term = self.scale(id, coefficient / divisor);
                        quotient = self.add(quotient, term);
                    } else {
                        let term = self.scale(id, coefficient);
                        rest = self.add(rest, term);
                    }
                }
                let exact = self.as_const(rest) == Some(0);
                let plain = ra.non_negative() && self.wide(rest).non_negative();
                if exact || (plain && self.wide(quotient).non_negative()) {
                    let small = self.wide(rest).within(0, divisor - 1);
                    return match (op, exact || small) {
                        (BinaryOp::Div, true) => Some(quotient),
                        (BinaryOp::Rem, true) => Some(rest),
                        (BinaryOp::Div, false) if rest != a => {
                            let divided = self.raw_binary(op, rest, b);
                            Some(self.add(quotient, divided))
                        }
                        (BinaryOp::Rem, false) if rest != a => Some(self.raw_binary(op, rest, b)),
                        _ => None,
                    };
                }
                None
            }
            BinaryOp::Shl => match constant {
                Some(amount @ 0..=62) => Some(self.scale(a, 1 << amount)),
                _ => None,
            },
            BinaryOp::Shr => match constant {
                Some(0) => Some(a),
                Some(amount @ 1..=62) if ra.non_negative() => {
                    let divisor = self.constant(1 << amount);
                    Some(self.binary(BinaryOp::Div, a, divisor))
                }
                _ => None,
            },
            BinaryOp::And => {
                let (value, mask) = match (self.as_const(a), constant) {
                    (_, Some(mask)) => (a, mask),
                    (Some(mask), _) => (b, mask),
                    _ => return None,
                };
                if mask == 0 {
                    return Some(self.constant(0));
                }
                if mask > 0
                    && (mask as u64 + 1).is_power_of_two()
                    && self.wide(value).non_negative()
                {
                    let divisor = self.constant(mask + 1);
                    return Some(self.binary(BinaryOp::Rem, value, divisor));
                }
                None
            }
            BinaryOp::Or | BinaryOp::Xor => {
                if constant == Some(0) {
                    return Some(a);
                }
                // (x ^ c) ^ d
                if let (BinaryOp::Xor, Some(second)) = (op, constant)
                    && let Node::Binary(BinaryOp::Xor, value, by) = *self.node(a)
                    && let Some(first) = self.as_const(by)
                {
                    let both = self.constant(first ^ second);
                    return Some(self.binary(op, value, both));
                }
                (self.as_const(a) == Some(0)).then_some(b)
            }
            BinaryOp::Min | BinaryOp::Max => {
                let less = if op == BinaryOp::Min { (a, b) } else { (b, a) };
                if a == b || ra.hi <= rb.lo {
                    return Some(less.0);
                }
                (rb.hi <= ra.lo).then_some(less.1)
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => {
                // Only what holds whatever the launch: the two sides' difference is a number.
                let difference = self.sub(a, b);
                match self.as_const(difference) {
                    Some(value) => Some(self.constant(op.apply(value, 0))),
                    None => self.compared_choice(op, a, b),
                }
            }
            BinaryOp::LogicalAnd | BinaryOp::LogicalOr => {
                let absorbing = i64::from(op == BinaryOp::LogicalOr);
                for (side, other) in [(a, b), (b, a)] {
                    if let Some(value) = self.as_const(side) {
                        return Some(if i64::from(value != 0) == absorbing {
                            self.constant(absorbing)
                        } else {
                            self.truth(other)
                        });
                    }
                }
                None
            }
            BinaryOp::Population
            | BinaryOp::LeadingZeros
            | BinaryOp::Reverse
            | BinaryOp::MulHigh => None,
        }
    }

    /// `c ? x : y` compared with a number, where the comparison of one side is decided: `(c ? -1 : t) < 0` is `c || t < 0`.
    fn compared_choice(&mut self, op: BinaryOp, a: Id, b: Id) -> Option<Id> {
        let (condition, sides) = match (self.node(a), self.node(b)) {
            (&Node::Select(condition, x, y), Node::Const(_)) => (condition, [(x, b), (y, b)]),
            (Node::Const(_), &Node::Select(condition, x, y)) => (condition, [(a, x), (a, y)]),
            _ => return None,
        };
        let [first, second] = sides.map(|(left, right)| self.binary(op, left, right));
        let (decided, open, takes_first) = match (self.as_const(first), self.as_const(second)) {
            (Some(decided), _) => (decided, second, true),
            (_, Some(decided)) => (decided, first, false),
            (None, None) => return None,
        };
        let chosen = if takes_first {
            self.truth(condition)
        } else {
            self.not(condition)
        };
        Some(if decided != 0 {
            self.binary(BinaryOp::LogicalOr, chosen, open)
        } else {
            let other = self.not(chosen);
            self.binary(BinaryOp::LogicalAnd, other, open)
        })
    }

    /// The expression where these conditions hold: what they choose is chosen.
    pub fn supposing(&mut self, id: Id, hold: &[Id]) -> Id {
        self.supposing_within(id, hold, 0)
    }

    fn supposing_within(&mut self, id: Id, hold: &[Id], depth: u32) -> Id {
        if depth > DEEPEST_CHOICE {
            return id;
        }
        match self.node(id).clone() {
            Node::Select(condition, x, y) => {
                let fails = self.not(condition);
                if hold.contains(&condition) {
                    self.supposing_within(x, hold, depth + 1)
                } else if hold.contains(&fails) {
                    self.supposing_within(y, hold, depth + 1)
                } else {
                    let [x, y] = [x, y].map(|side| self.supposing_within(side, hold, depth + 1));
                    self.select(condition, x, y)
                }
            }
            Node::Sum(constant, terms) => {
                let mut sum = self.constant(constant);
                for &(term, coefficient) in terms.iter() {
                    let term = self.supposing_within(term, hold, depth + 1);
                    let term = self.scale(term, coefficient);
                    sum = self.add(sum, term);
                }
                sum
            }
            Node::Wrap(bits, signed, inner) => {
                let inner = self.supposing_within(inner, hold, depth + 1);
                self.wrap(bits, signed, inner)
            }
            _ => id,
        }
    }

    /// The parts of a condition that hold where it does.
    pub fn parts_that_hold(&self, condition: Id) -> Vec<Id> {
        let (mut open, mut found) = (vec![condition], Vec::new());
        while let Some(id) = open.pop() {
            match *self.node(id) {
                Node::Binary(BinaryOp::LogicalAnd, x, y) if found.len() < MOST_PARTS => {
                    open.extend([x, y]);
                }
                _ => found.push(id),
            }
        }
        found
    }

    fn raw_binary(&mut self, op: BinaryOp, a: Id, b: Id) -> Id {
        let (ma, mb) = (self.meta[a.0 as usize], self.meta[b.0 as usize]);
        self.add_node(
            Node::Binary(op, a, b),
            Meta {
                symbols: ma.symbols | mb.symbols,
                reached: ma.reached | mb.reached,
                range: Interval::binary(op, ma.range, mb.range),
                wide: Interval::binary(op, ma.wide, mb.wide),
            },
        )
    }

    /// 1 where `a` is not zero, else 0.
    pub fn truth(&mut self, a: Id) -> Id {
        if self.wide(a).within(0, 1) {
            return a;
        }
        let zero = self.constant(0);
        self.binary(BinaryOp::Ne, a, zero)
    }

    /// 1 where `a` is zero, else 0.
    pub fn not(&mut self, a: Id) -> Id {
        match *self.node(a) {
            Node::Binary(BinaryOp::Lt, x, y) => return self.binary(BinaryOp::Le, y, x),
            Node::Binary(BinaryOp::Le, x, y) => return self.binary(BinaryOp::Lt, y, x),
            Node::Binary(BinaryOp::Eq, x, y) => return self.binary(BinaryOp::Ne, x, y),
            Node::Binary(BinaryOp::Ne, x, y) => return self.binary(BinaryOp::Eq, x, y),
            Node::Binary(BinaryOp::LogicalAnd, x, y) => {
                let (x, y) = (self.not(x), self.not(y));
                return self.binary(BinaryOp::LogicalOr, x, y);
            }
            Node::Binary(BinaryOp::LogicalOr, x, y) => {
                let (x, y) = (self.not(x), self.not(y));
                return self.binary(BinaryOp::LogicalAnd, x, y);
            }
            _ => {}
        }
        let zero = self.constant(0);
        self.binary(BinaryOp::Eq, a, zero)
    }

    /// `condition ? a : b`.
    pub fn select(&mut self, condition: Id, a: Id, b: Id) -> Id {
        if a == b {
            return a;
        }
        if let Some(value) = self.as_const(condition) {
            return if value != 0 { a } else { b };
        }
        let (mc, ma, mb) = (
            self.meta[condition.0 as usize],
            self.meta[a.0 as usize],
            self.meta[b.0 as usize],
        );
        let range = match mc.range.single() {
            Some(0) => mb.range,
            Some(_) => ma.range,
            None => ma.range.union(mb.range),
        };
        self.add_node(
            Node::Select(condition, a, b),
            Meta {
                symbols: mc.symbols | ma.symbols | mb.symbols,
                reached: mc.reached | ma.reached | mb.reached,
                range,
                wide: ma.wide.union(mb.wide),
            },
        )
    }

    /// `values[index]`; an index outside gives the nearest value.
    pub fn table(&mut self, index: Id, values: &[i64]) -> Id {
        let Some((&first, rest)) = values.split_first() else {
            return self.constant(0);
        };
        if let Some(at) = self.as_const(index) {
            return self.constant(values[at.clamp(0, values.len() as i64 - 1) as usize]);
        }
        let range = rest.iter().fold(Interval::point(first), |range, &value| {
            range.union(Interval::point(value))
        });
        let Meta {
            symbols, reached, ..
        } = self.meta[index.0 as usize];
        let meta = Meta {
            symbols,
            reached,
            range,
            wide: range,
        };
        self.add_node(Node::Table(index, values.into()), meta)
    }

    /// Wrapped to an integer type; nothing where it fits anyway.
    pub fn wrap(&mut self, bits: u8, signed: bool, a: Id) -> Id {
        let meta = self.meta[a.0 as usize];
        let full = Interval::of_type(bits, signed);
        if bits >= 61 || meta.range.within(full.lo, full.hi) {
            if bits < 61 && !meta.wide.within(full.lo, full.hi) {
                let fit = Fit {
                    id: a,
                    bits,
                    signed,
                };
                if self.fits.len() < MOST_FITS && !self.fits.contains(&fit) {
                    self.fits.push(fit);
                }
            }
            return a;
        }
        if let Some(value) = self.as_const(a) {
            return self.constant(wrap_value(bits, signed, value));
        }
        self.add_node(
            Node::Wrap(bits, signed, a),
            Meta {
                symbols: meta.symbols,
                reached: meta.reached,
                range: meta.range.wrap(bits, signed),
                wide: meta.wide.wrap(bits, signed),
            },
        )
    }

    /// Marked as a value of an unsigned type of 64 bits, whose values here are signed ones: what relies on its
    /// order has to show that it is not below zero.
    pub fn unsigned(&mut self, a: Id) -> Id {
        let meta = self.meta[a.0 as usize];
        self.add_node(Node::Wrap(64, false, a), meta)
    }

    /// The expressions that [`Arena::wrap`] left unwrapped only because of the value of an assumed symbol; `None` where
    /// there were too many to remember.
    pub fn fits(&self) -> Option<&[Fit]> {
        (self.fits.len() < MOST_FITS).then_some(&self.fits)
    }

    /// Replaces a symbol by an expression.
    pub fn substitute(&mut self, id: Id, symbol: Symbol, by: Id) -> Id {
        if !self.depends_on(id, symbol) {
            return id;
        }
        if matches!(self.node(id), Node::Symbol(_)) {
            return by;
        }
        let known = (id, symbol, by);
        if let Some(&known) = self.substituted.get(&known) {
            return known;
        }
        let made = self.substituted_anew(id, symbol, by);
        self.substituted.insert(known, made);
        made
    }

    fn substituted_anew(&mut self, id: Id, symbol: Symbol, by: Id) -> Id {
        match self.node(id).clone() {
            Node::Const(_) | Node::Symbol(_) => id,
            Node::Sum(constant, terms) => {
                let terms: Vec<(Id, i64)> = terms
                    .iter()
                    .map(|&(term, coefficient)| (self.substitute(term, symbol, by), coefficient))
                    .collect();
                self.combination(constant, &terms)
            }
            Node::Product(factors) => {
                let mut result = self.constant(1);
                for &factor in factors.iter() {
                    let factor = self.substitute(factor, symbol, by);
                    result = self.mul(result, factor);
                }
                result
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (
                    self.substitute(a, symbol, by),
                    self.substitute(b, symbol, by),
                );
                self.binary(op, a, b)
            }
            Node::Select(c, a, b) => {
                let c = self.substitute(c, symbol, by);
                let (a, b) = (
                    self.substitute(a, symbol, by),
                    self.substitute(b, symbol, by),
                );
                self.select(c, a, b)
            }
            Node::Table(index, values) => {
                let index = self.substitute(index, symbol, by);
                self.table(index, &values)
            }
            Node::Wrap(bits, signed, a) => {
                let a = self.substitute(a, symbol, by);
                self.wrap(bits, signed, a)
            }
        }
    }
}

pub(crate) fn wrap_value(bits: u8, signed: bool, value: i64) -> i64 {
    if bits >= 64 {
        return value;
    }
    let shift = 64 - u32::from(bits.max(1));
    if signed {
        value.wrapping_shl(shift) >> shift
    } else {
        ((value as u64).wrapping_shl(shift) >> shift) as i64
    }
}
