//! An index as sums and products.

use warplens_symbolic::{Arena, Id, Node, Symbol, SymbolKind};

use crate::facts::{IndexExpression, IndexSymbol};

/// Terms and factors of one index, at most.
const MOST_PARTS: usize = 64;

/// What tells threads and blocks apart, and how many there are.
pub(crate) struct Coordinates {
    pub(crate) threads: [Symbol; 3],
    pub(crate) blocks: [Symbol; 3],
    pub(crate) block_dim: [Id; 3],
    pub(crate) grid_dim: [Id; 3],
}

impl Coordinates {
    /// The expression; what is no sum or product in it, or too much, is [`IndexExpression::Other`].
    pub(crate) fn read(&self, arena: &Arena, index: Id) -> IndexExpression {
        let mut room = MOST_PARTS;
        self.part(arena, index, &mut room)
    }

    fn part(&self, arena: &Arena, id: Id, room: &mut usize) -> IndexExpression {
        if *room == 0 {
            return IndexExpression::Other;
        }
        *room -= 1;
        match arena.node(id) {
            Node::Const(value) => IndexExpression::Number(*value),
            Node::Symbol(symbol) => {
                let symbol = self.symbol(arena, id, *symbol);
                symbol.map_or(IndexExpression::Other, IndexExpression::Symbol)
            }
            Node::Sum(constant, terms) => {
                let terms = arena.in_order(terms).into_iter();
                let terms = terms.map(|(term, factor)| (self.part(arena, term, room), factor));
                IndexExpression::Sum(*constant, terms.collect())
            }
            Node::Product(factors) => {
                let factors = factors.iter().map(|&factor| self.part(arena, factor, room));
                IndexExpression::Product(factors.collect())
            }
            // A conversion of width does not move an element.
            Node::Wrap(_, _, inner) => match self.part(arena, *inner, room) {
                // The constant of what may wrap around is none of the index.
                sum @ IndexExpression::Sum(..) => IndexExpression::Product(vec![sum]),
                other => other,
            },
            Node::Binary(..) | Node::Select(..) | Node::Table(..) => IndexExpression::Other,
        }
    }

    fn symbol(&self, arena: &Arena, id: Id, symbol: Symbol) -> Option<IndexSymbol> {
        let axis = |all: &[Symbol; 3]| all.iter().position(|one| *one == symbol);
        let extent = |all: &[Id; 3]| all.iter().position(|one| *one == id);
        if let Some(axis) = axis(&self.threads) {
            return Some(IndexSymbol::Thread(axis));
        }
        if let Some(axis) = axis(&self.blocks) {
            return Some(IndexSymbol::Block(axis));
        }
        if let Some(axis) = extent(&self.block_dim) {
            return Some(IndexSymbol::BlockDim(axis));
        }
        if let Some(axis) = extent(&self.grid_dim) {
            return Some(IndexSymbol::GridDim(axis));
        }
        match arena.symbol_kind(symbol) {
            SymbolKind::Opaque { .. } | SymbolKind::Placeholder => None,
            _ => Some(IndexSymbol::Named(arena.symbol_name(symbol).into())),
        }
    }
}
