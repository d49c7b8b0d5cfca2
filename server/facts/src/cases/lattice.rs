//! Whether the lanes of a warp agree, by what the rest of a sum can be.

use warplens_symbolic::{Arena, BinaryOp, Domain, Id, Interval, Node, SymbolKind};

/// True where all lanes of any warp agree on the value of the expression.
pub(super) fn same_for_warp(arena: &mut Arena, domain: &Domain, id: Id) -> bool {
    if !arena.varies_by_lane(id) {
        return true;
    }
    match *arena.node(id) {
        Node::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, a, b) => {
            same_for_warp(arena, domain, a) && same_for_warp(arena, domain, b)
        }
        Node::Binary(op @ (BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne), a, b) => {
            let difference = arena.sub(a, b);
            let Some(Lattice {
                start,
                step,
                lanes: (low, high),
            }) = Lattice::of(arena, domain, difference)
            else {
                return false;
            };
            // Lanes part where the others' part lies such that some are on one side of 0 and some not.
            let (first, last) = match op {
                BinaryOp::Lt => (-high, -low - 1),
                BinaryOp::Le => (1 - high, -low),
                _ => (-high, -low),
            };
            !meets(start, step, first, last)
        }
        Node::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => {
            same_for_warp(arena, domain, a) && same_for_warp(arena, domain, b)
        }
        Node::Binary(BinaryOp::Div, a, b) => {
            // What is not negative, or made so: then it is the floor of the one or 0.
            let inner = match *arena.node(a) {
                Node::Binary(BinaryOp::Max, value, zero) if arena.as_const(zero) == Some(0) => {
                    value
                }
                _ if arena.range(a).non_negative() => a,
                _ => return false,
            };
            let by = arena.value(b).filter(|&by| by > 0);
            match (by, Lattice::of(arena, domain, inner)) {
                (Some(by), Some(lattice)) => lattice.same_floor(by),
                _ => false,
            }
        }
        Node::Sum(_, ref terms) => {
            let terms = terms.clone();
            terms
                .iter()
                .all(|&(term, _)| same_for_warp(arena, domain, term))
        }
        _ => false,
    }
}

/// The values that one part of a sum takes: `start` plus multiples of `step`, plus, by lane, what lies
/// between the bounds of `lanes`.
struct Lattice {
    start: i64,
    step: i64,
    lanes: (i64, i64),
}

impl Lattice {
    fn of(arena: &Arena, domain: &Domain, id: Id) -> Option<Lattice> {
        let (mut start, terms) = arena.terms(id);
        let mut step = 0i64;
        let (mut low, mut high) = (0i64, 0i64);
        for (term, coefficient) in terms {
            let factors: &[Id] = match arena.node(term) {
                Node::Product(factors) => factors,
                _ => std::slice::from_ref(&term),
            };
            let mut known = coefficient;
            let mut open = Vec::new();
            for &factor in factors {
                match arena.value(factor) {
                    Some(value) => known = known.checked_mul(value)?,
                    None => open.push(factor),
                }
            }
            if open.is_empty() {
                start = start.checked_add(known)?;
                continue;
            }
            if !arena.varies_by_lane(term) {
                step = gcd(step, known);
                continue;
            }
            let thread = match open[..] {
                [only] => {
                    arena
                        .as_symbol(only)
                        .and_then(|symbol| match arena.symbol_kind(symbol) {
                            SymbolKind::Thread(axis) => Some(axis),
                            _ => None,
                        })
                }
                _ => None,
            };
            let range = match thread {
                Some(axis) => {
                    let (stride, width) = domain.warp_span(axis);
                    step = gcd(step, known.checked_mul(stride)?);
                    Interval::new(0, width - 1)
                }
                None => {
                    let range = open
                        .iter()
                        .try_fold(Interval::point(1), |product, &factor| {
                            let range = arena.range(factor);
                            let ends = [
                                product.lo.checked_mul(range.lo)?,
                                product.lo.checked_mul(range.hi)?,
                                product.hi.checked_mul(range.lo)?,
                                product.hi.checked_mul(range.hi)?,
                            ];
                            Some(Interval::new(*ends.iter().min()?, *ends.iter().max()?))
                        })?;
                    range.bounded().then_some(range)?
                }
            };
            let ends = [range.lo.checked_mul(known)?, range.hi.checked_mul(known)?];
            low = low.checked_add(ends[0].min(ends[1]))?;
            high = high.checked_add(ends[0].max(ends[1]))?;
        }
        Some(Lattice {
            start,
            step,
            lanes: (low, high),
        })
    }

    /// True where all lanes have one quotient, rounded down.
    fn same_floor(&self, by: i64) -> bool {
        let (low, high) = self.lanes;
        // No multiple of `by` above the least of the lanes and up to the greatest.
        !meets(-self.start, gcd(self.step, by), low + 1, high)
    }
}

/// True where some `start + step · i` lies between the bounds, both included.
fn meets(start: i64, step: i64, first: i64, last: i64) -> bool {
    if first > last {
        return false;
    }
    if step == 0 {
        return (first..=last).contains(&start);
    }
    let above = i128::from(first) - i128::from(start);
    let step = i128::from(step);
    let next = i128::from(start) + step * (above + step - 1).div_euclid(step);
    next <= i128::from(last)
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
