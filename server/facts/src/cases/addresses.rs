//! Whether addresses move by whole memory segments.

use warplens_symbolic::{Arena, BinaryOp, Id, Node, Symbol, SymbolKind, WARP_MAX};

use super::classes::Free;
use super::{Cases, Figure, MOST_VARIANTS};
use crate::context::Context;

/// How a step of the classes moves the addresses of a warp: by whole periods.
pub(super) enum Movement {
    /// All lanes by the same.
    Together,
    /// Each by its own multiple, which the expression says, with steps of this free symbol.
    Apart(usize, Id),
}

impl Cases {
    /// `None` where it is not shown to be by whole periods.
    pub(super) fn moves(
        &self,
        arena: &mut Arena,
        (root, _): (Id, bool),
        period: i64,
        free: &[Free],
    ) -> Option<Movement> {
        let steps: Vec<(usize, Symbol)> = free
            .iter()
            .enumerate()
            .filter_map(|(at, one)| {
                let id = self.stand_ins.get(&one.symbol)?;
                Some((at, arena.as_symbol(*id)?))
            })
            .collect();
        let (_, terms) = arena.terms(root);
        let mut apart: Option<(usize, Id)> = None;
        for (term, coefficient) in terms {
            let of: Vec<(usize, Symbol)> = steps
                .iter()
                .copied()
                .filter(|&(_, symbol)| arena.depends_on(term, symbol))
                .collect();
            if of.is_empty() {
                continue;
            }
            if period == 0 {
                return None;
            }
            let factors: Vec<Id> = match arena.node(term) {
                Node::Product(factors) => factors.to_vec(),
                _ => vec![term],
            };
            let known = factors
                .iter()
                .filter_map(|&factor| arena.value(factor))
                .fold(coefficient, i64::wrapping_mul);
            if known % period != 0 {
                return None;
            }
            if !arena.varies_by_lane(term) {
                continue;
            }
            // Each lane by its own multiple: linear in one symbol.
            let [(at, symbol)] = of[..] else {
                return None;
            };
            let mut rest = arena.constant(coefficient);
            let mut seen = false;
            for factor in factors {
                if arena.as_symbol(factor) == Some(symbol) && !seen {
                    seen = true;
                } else if arena.depends_on(factor, symbol) {
                    return None;
                } else {
                    rest = arena.mul(rest, factor);
                }
            }
            if !seen {
                return None;
            }
            apart = match apart {
                None => Some((at, rest)),
                Some((before, sum)) if before == at => Some((at, arena.add(sum, rest))),
                Some(_) => return None,
            };
        }
        Some(match apart {
            None => Movement::Together,
            Some((at, way)) => Movement::Apart(at, way),
        })
    }
}

/// From which value of the class on lanes that move by different amounts share no unit; `None` where they do
/// at the value assumed.
pub(super) fn apart_from(
    starts: &[i64; WARP_MAX],
    ways: &[i64; WARP_MAX],
    active: u64,
    figure: &Figure,
    class: &Free,
) -> Option<i64> {
    let mut lanes: Vec<(i64, i64)> = (0..WARP_MAX)
        .filter(|lane| active >> lane & 1 == 1)
        .map(|lane| (ways[lane], starts[lane]))
        .collect();
    lanes.sort_unstable();
    let unit = figure.unit.max(1);
    let mut least = 1;
    let mut before: Option<(i64, i64)> = None;
    for group in lanes.chunk_by(|a, b| a.0 == b.0) {
        let (way, first) = *group.first()?;
        let last = group.last()?.1;
        if let Some((slower, end)) = before {
            // Units between the two now, and how many more with each step.
            let gap = first.div_euclid(unit) * unit - end;
            if gap < 0 {
                return None;
            }
            let steps = gap / (way - slower);
            least = least.max(class.value - steps.saturating_mul(class.modulus));
        }
        let end = (last + figure.bytes - 1).div_euclid(unit) * unit + unit;
        before = Some((way, end));
    }
    Some(if least <= class.first() { 1 } else { least })
}

/// The expression for each value of the loop counters that some divisor depends on; true where there are
/// several.
pub(super) fn variants(arena: &mut Arena, id: Id, context: &Context) -> Vec<(Id, bool)> {
    let mut all = vec![id];
    for &counter in &context.counters {
        let SymbolKind::Counter { extent } = arena.symbol_kind(counter) else {
            continue;
        };
        let small = extent as usize <= MOST_VARIANTS
            && all.len().saturating_mul(extent as usize) <= MOST_VARIANTS;
        if !small || !divides(arena, id, counter) {
            continue;
        }
        let mut next = Vec::new();
        for id in all {
            for value in 0..extent {
                let value = arena.constant(value);
                next.push(arena.substitute(id, counter, value));
            }
        }
        all = next;
    }
    let several = all.len() > 1;
    all.into_iter().map(|id| (id, several)).collect()
}

/// True where the symbol is in a divisor or a shift's width.
fn divides(arena: &Arena, id: Id, symbol: Symbol) -> bool {
    if !arena.depends_on(id, symbol) {
        return false;
    }
    let within = |id: &Id| divides(arena, *id, symbol);
    match arena.node(id) {
        Node::Const(_) | Node::Symbol(_) => false,
        Node::Sum(_, terms) => terms.iter().any(|(term, _)| within(term)),
        Node::Product(factors) => factors.iter().any(within),
        Node::Binary(op, a, b) => {
            let width = matches!(
                op,
                BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr | BinaryOp::And
            );
            (width && arena.depends_on(*b, symbol)) || within(a) || within(b)
        }
        Node::Select(a, b, c) => [a, b, c].into_iter().any(within),
        Node::Table(index, _) => within(index),
        Node::Wrap(_, _, inner) => within(inner),
    }
}
