//! An address as a sum of coordinates and loop counters with constant factors, where it is one.

use warplens_symbolic::{Arena, Id, Node, Symbol, SymbolKind};

use crate::facts::LinearAddress;

/// What may have a factor.
pub(crate) struct Variables<'a> {
    pub(crate) threads: [Symbol; 3],
    pub(crate) blocks: [Symbol; 3],
    /// Counters of the loops around, outermost first.
    pub(crate) loops: &'a [Symbol],
    /// What threads of one block have among themselves is left out, whatever it is.
    pub(crate) blocks_only: bool,
}

/// Expressions nested deeper than this are not read.
const DEEPEST: u32 = 16;

impl Variables<'_> {
    /// `None` where the address is no such sum under this launch and these arguments.
    pub(crate) fn read(&self, arena: &Arena, address: Id) -> Option<LinearAddress> {
        let mut sum = LinearAddress {
            constant: 0,
            thread: [0; 3],
            block: [0; 3],
            loops: vec![0; self.loops.len()],
        };
        self.add(arena, address, 1, &mut sum, 0)?;
        Some(sum)
    }

    fn add(
        &self,
        arena: &Arena,
        id: Id,
        factor: i64,
        sum: &mut LinearAddress,
        depth: u32,
    ) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        if self.blocks_only && self.is_of_threads(arena, id) {
            return Some(());
        }
        if let Some(value) = arena.value(id) {
            sum.constant = sum.constant.checked_add(value.checked_mul(factor)?)?;
            return Some(());
        }
        match arena.node(id) {
            Node::Symbol(symbol) => {
                let place = self.place(*symbol, sum)?;
                *place = place.checked_add(factor)?;
            }
            Node::Sum(constant, terms) => {
                sum.constant = sum.constant.checked_add(constant.checked_mul(factor)?)?;
                for &(term, coefficient) in terms.iter() {
                    let factor = factor.checked_mul(coefficient)?;
                    self.add(arena, term, factor, sum, depth + 1)?;
                }
            }
            Node::Product(factors) => {
                let mut moving = None;
                let mut product = factor;
                for &one in factors.iter() {
                    match arena.value(one) {
                        Some(value) => product = product.checked_mul(value)?,
                        None if moving.is_none() => moving = Some(one),
                        None => return None,
                    }
                }
                self.add(arena, moving?, product, sum, depth + 1)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// True for what depends on thread coordinates and constants alone.
    fn is_of_threads(&self, arena: &Arena, id: Id) -> bool {
        let mut symbols = arena.symbols_of(id).peekable();
        symbols.peek().is_some()
            && symbols.all(|symbol| {
                self.threads.contains(&symbol)
                    || matches!(arena.symbol_kind(symbol), SymbolKind::Fixed { .. })
            })
            && self
                .threads
                .iter()
                .any(|thread| arena.depends_on(id, *thread))
    }

    fn place<'s>(&self, symbol: Symbol, sum: &'s mut LinearAddress) -> Option<&'s mut i64> {
        if let Some(axis) = self.threads.iter().position(|&known| known == symbol) {
            return Some(&mut sum.thread[axis]);
        }
        if let Some(axis) = self.blocks.iter().position(|&known| known == symbol) {
            return Some(&mut sum.block[axis]);
        }
        let depth = self.loops.iter().position(|&known| known == symbol)?;
        Some(&mut sum.loops[depth])
    }
}
