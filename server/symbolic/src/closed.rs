//! An expression taken out of its arena: it can be kept, sent elsewhere and evaluated at single points.

use crate::arena::{Arena, BinaryOp, Id, Node, Symbol, SymbolKind, wrap_value};

/// Expressions with more nodes than this are not taken out.
const MOST_NODES: usize = 512;

/// An expression over coordinates of a thread and counters. Every operator has C's integer semantics, as in the [`Arena`] that
/// it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Operands come before what is made of them; the last one is the expression.
    nodes: Vec<Part>,
    /// Number of values of each counter, in the order of the counters that were given.
    extents: Vec<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Number(i64),
    Thread(usize),
    Counter(usize),
    Sum(i64, Box<[(usize, i64)]>),
    Product(Box<[usize]>),
    Binary(BinaryOp, usize, usize),
    Select(usize, usize, usize),
    Table(usize, Box<[i64]>),
    Wrap(u8, bool, usize),
}

impl Closed {
    /// The expression, where it depends on coordinates of the thread, on these counters and on nothing else.
    pub fn of(arena: &Arena, id: Id, counters: &[Symbol]) -> Option<Closed> {
        let mut reader = Reader {
            arena,
            counters,
            nodes: Vec::new(),
            known: Vec::new(),
        };
        reader.read(id)?;
        let extents = counters
            .iter()
            .map(|counter| match arena.symbol_kind(*counter) {
                SymbolKind::Counter { extent } => extent,
                _ => 1,
            });
        Some(Closed {
            nodes: reader.nodes,
            extents: extents.collect(),
        })
    }

    /// Number of values of each counter.
    pub fn extents(&self) -> &[i64] {
        &self.extents
    }

    /// True where the value depends on a counter, by its number.
    pub fn depends_on(&self, counter: usize) -> bool {
        self.nodes.contains(&Part::Counter(counter))
    }

    /// True where the value depends on the thread.
    pub fn depends_on_thread(&self) -> bool {
        let mut parts = self.nodes.iter();
        parts.any(|part| matches!(part, Part::Thread(_)))
    }

    /// The value for a thread and the counters' values. `values` is room that calls share.
    pub fn at(&self, thread: [i64; 3], counters: &[i64], values: &mut Vec<i64>) -> i64 {
        values.clear();
        for part in &self.nodes {
            let value = match part {
                Part::Number(value) => *value,
                Part::Thread(axis) => thread[*axis],
                Part::Counter(number) => counters.get(*number).copied().unwrap_or(0),
                Part::Sum(constant, terms) => {
                    terms.iter().fold(*constant, |sum, (term, factor)| {
                        sum.wrapping_add(values[*term].wrapping_mul(*factor))
                    })
                }
                Part::Product(factors) => factors.iter().fold(1i64, |product, factor| {
                    product.wrapping_mul(values[*factor])
                }),
                Part::Binary(op, a, b) => op.apply(values[*a], values[*b]),
                Part::Select(condition, a, b) => {
                    values[if values[*condition] != 0 { *a } else { *b }]
                }
                Part::Table(index, entries) => {
                    let last = entries.len().saturating_sub(1) as i64;
                    let index = values[*index].clamp(0, last.max(0)) as usize;
                    entries.get(index).copied().unwrap_or(0)
                }
                Part::Wrap(bits, signed, inner) => wrap_value(*bits, *signed, values[*inner]),
            };
            values.push(value);
        }
        values.last().copied().unwrap_or(0)
    }
}

struct Reader<'a> {
    arena: &'a Arena,
    counters: &'a [Symbol],
    nodes: Vec<Part>,
    known: Vec<(Id, usize)>,
}

impl Reader<'_> {
    /// Where an expression's value is among the nodes.
    fn read(&mut self, id: Id) -> Option<usize> {
        if let Some((_, at)) = self.known.iter().find(|(known, _)| *known == id) {
            return Some(*at);
        }
        let part = match self.arena.node(id) {
            Node::Const(value) => Part::Number(*value),
            Node::Symbol(symbol) => self.symbol(*symbol)?,
            Node::Sum(constant, terms) => {
                let terms = terms.iter();
                let terms: Option<Vec<_>> = terms
                    .map(|(term, factor)| Some((self.read(*term)?, *factor)))
                    .collect();
                Part::Sum(*constant, terms?.into())
            }
            Node::Product(factors) => {
                let factors: Option<Vec<_>> =
                    factors.iter().map(|factor| self.read(*factor)).collect();
                Part::Product(factors?.into())
            }
            Node::Binary(op, a, b) => Part::Binary(*op, self.read(*a)?, self.read(*b)?),
            Node::Select(condition, a, b) => {
                Part::Select(self.read(*condition)?, self.read(*a)?, self.read(*b)?)
            }
            Node::Table(index, entries) => Part::Table(self.read(*index)?, (**entries).into()),
            Node::Wrap(bits, signed, inner) => Part::Wrap(*bits, *signed, self.read(*inner)?),
        };
        if self.nodes.len() >= MOST_NODES {
            return None;
        }
        self.nodes.push(part);
        let at = self.nodes.len() - 1;
        self.known.push((id, at));
        Some(at)
    }

    fn symbol(&self, symbol: Symbol) -> Option<Part> {
        if let Some(number) = self.counters.iter().position(|one| *one == symbol) {
            return Some(Part::Counter(number));
        }
        match self.arena.symbol_kind(symbol) {
            SymbolKind::Thread(axis) => Some(Part::Thread(usize::from(axis))),
            SymbolKind::Fixed { value, .. } => Some(Part::Number(value)),
            SymbolKind::Counter { .. }
            | SymbolKind::Parameter
            | SymbolKind::Placeholder
            | SymbolKind::Opaque { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;

    #[test]
    fn a_swizzled_address_has_the_value_that_its_formula_has() {
        let mut arena = Arena::new();
        let x = arena.symbol(
            "threadIdx.x",
            SymbolKind::Thread(0),
            Interval { lo: 0, hi: 255 },
        );
        let k = arena.symbol(
            "k",
            SymbolKind::Counter { extent: 4 },
            Interval { lo: 0, hi: 3 },
        );
        let n = arena.symbol(
            "n",
            SymbolKind::Fixed {
                value: 64,
                assumed: true,
            },
            Interval::point(64),
        );
        let eight = arena.constant(8);
        let row = arena.binary(BinaryOp::Div, x, eight);
        let low = arena.binary(BinaryOp::Rem, x, eight);
        let turned = arena.binary(BinaryOp::Xor, low, k);
        let start = arena.mul(row, n);
        let inside = arena.scale(turned, 16);
        let address = arena.add(start, inside);
        let counter = arena.as_symbol(k).expect("a symbol");
        let closed = Closed::of(&arena, address, &[counter]).expect("no data in it");
        assert_eq!(closed.extents(), [4]);
        let mut room = Vec::new();
        for x in 0..256 {
            for k in 0..4 {
                let wanted = x / 8 * 64 + ((x % 8) ^ k) * 16;
                assert_eq!(closed.at([x, 0, 0], &[k], &mut room), wanted);
            }
        }
        assert_eq!(
            Closed::of(&arena, address, &[]),
            None,
            "a counter that is not given"
        );
        let data = arena.opaque_of("v", true, false, crate::SymbolSet::ALL, Interval::ANY);
        let gathered = arena.add(address, data);
        assert_eq!(Closed::of(&arena, gathered, &[counter]), None);
    }

    /// Whether lanes of a warp of 32 differ in an expression of x, y and a counter, by the rule and by trying all threads.
    fn differs(block: [i64; 3], make: impl Fn(&mut Arena, Id, Id, Id) -> Id) -> (bool, bool) {
        let mut arena = Arena::new();
        arena.set_warps(32, block);
        let interval = |hi| Interval { lo: 0, hi };
        let x = arena.symbol("x", SymbolKind::Thread(0), interval(block[0] - 1));
        let y = arena.symbol("y", SymbolKind::Thread(1), interval(block[1] - 1));
        let k = arena.symbol("k", SymbolKind::Counter { extent: 5 }, interval(4));
        let made = make(&mut arena, x, y, k);
        let counter = arena.as_symbol(k).expect("a symbol");
        let closed = Closed::of(&arena, made, &[counter]).expect("no data");
        let mut room = Vec::new();
        let mut found = false;
        for warp in 0..block[0] * block[1] / 32 {
            for k in 0..5 {
                let mut of = |lane: i64| {
                    let rank = warp * 32 + lane;
                    closed.at([rank % block[0], rank / block[0], 0], &[k], &mut room)
                };
                let first = of(0);
                found |= (1..32).any(|lane| of(lane) != first);
            }
        }
        (arena.varies_in_warp(made), found)
    }

    #[test]
    fn the_number_of_a_warp_is_one_for_its_lanes() {
        let by = |arena: &mut Arena, op, a, b| {
            let b = arena.constant(b);
            arena.binary(op, a, b)
        };
        // What the rule says to be the same for all lanes is.
        let same = [
            differs([128, 1, 1], |arena, x, _, _| {
                by(arena, BinaryOp::Div, x, 32)
            }),
            differs([128, 1, 1], |arena, x, _, k| {
                let turned = arena.scale(k, 64);
                let sum = arena.add(x, turned);
                let rest = by(arena, BinaryOp::Rem, sum, 96);
                by(arena, BinaryOp::Div, rest, 32)
            }),
            differs([128, 1, 1], |arena, x, _, _| {
                by(arena, BinaryOp::And, x, 96)
            }),
            differs([16, 16, 1], |arena, x, y, _| {
                let rows = arena.scale(y, 16);
                let rank = arena.add(x, rows);
                let warp = by(arena, BinaryOp::Div, rank, 32);
                arena.scale(warp, 1024)
            }),
            differs([32, 4, 1], |_, _, y, _| y),
        ];
        assert_eq!(same, [(false, false); 5]);
        let apart = [
            differs([128, 1, 1], |arena, x, _, _| {
                by(arena, BinaryOp::Div, x, 16)
            }),
            differs([16, 16, 1], |arena, x, y, _| {
                let rows = arena.scale(y, 32);
                let rank = arena.add(x, rows);
                by(arena, BinaryOp::Div, rank, 32)
            }),
            differs([128, 1, 1], |arena, x, _, k| {
                let sum = arena.add(x, k);
                by(arena, BinaryOp::Div, sum, 32)
            }),
            differs([128, 1, 1], |arena, x, _, _| {
                by(arena, BinaryOp::Rem, x, 32)
            }),
        ];
        assert_eq!(apart, [(true, true); 4]);
    }
}
