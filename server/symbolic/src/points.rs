//! How many threads and iterations satisfy some conditions, as a function of the parameters.
//!
//! The conditions are read as unions of sets of integer points between affine bounds (`points/read.rs`:
//! quotients and remainders by numbers become variables of their own, minima, disjunctions and selections
//! fall apart into disjoint pieces); each piece is then summed variable by variable (`points/eliminate.rs`;
//! W. Pugh, "Counting Solutions to Presburger Formulas: How and Why", PLDI 1994, section 4).

mod eliminate;
mod read;
#[cfg(test)]
mod tests;

use crate::domain::Query;
use crate::polynomial::{Bound, Bounds, Name, Polynomial};
use crate::{Arena, Domain, Guard, Symbol, SymbolKind};

/// Pieces that one count may fall apart into.
const MOST_PIECES: u32 = 96;
/// Cases looked at where a count without parameters has no closed form.
const ENUMERATION_BUDGET: u32 = 2048;

impl Domain {
    /// The number of threads and iterations, over all blocks, for which every guard holds, in the symbols of
    /// kind [`SymbolKind::Parameter`] (a polynomial's names are the symbols' numbers). Threads of the block
    /// and `counters` are summed over; those in `endless` are bounded only by the guards. `None` where there is no closed form, or none was found in reason.
    pub fn count(
        &self,
        arena: &Arena,
        counters: &[Symbol],
        endless: &[Symbol],
        guards: &[Guard],
    ) -> Option<Polynomial> {
        let mut total = Polynomial::constant(1);
        let mut threads_left: Vec<u8> = vec![0, 1, 2];
        let mut counters_left = counters.to_vec();
        for guards in connected(arena, counters, guards) {
            let mut threads = Vec::new();
            let mut own = Vec::new();
            let mut open = false;
            let conditions = guards.iter().map(|guard| guard.condition);
            for symbol in conditions.flat_map(|id| arena.symbols_of(id)) {
                match arena.symbol_kind(symbol) {
                    SymbolKind::Thread(axis) if threads_left.contains(&axis) => {
                        threads_left.retain(|&left| left != axis);
                        threads.push((symbol, axis));
                    }
                    SymbolKind::Counter { .. } if counters_left.contains(&symbol) => {
                        counters_left.retain(|&left| left != symbol);
                        own.push(symbol);
                    }
                    SymbolKind::Parameter => open = true,
                    SymbolKind::Opaque { .. } | SymbolKind::Placeholder => return None,
                    _ => {}
                }
            }
            let part = match self.closed_form(arena, &threads, &own, endless, &guards) {
                Some(part) => part,
                None if open => return None,
                None => self.enumerated(arena, &threads, &own, &guards)?,
            };
            total = total.mul(&part)?;
        }
        for axis in threads_left {
            total = total.mul(&Polynomial::constant(self.extent(axis)))?;
        }
        for counter in counters_left {
            let SymbolKind::Counter { extent } = arena.symbol_kind(counter) else {
                return None;
            };
            total = total.mul(&Polynomial::constant(i128::from(extent.max(0))))?;
        }
        Some(total)
    }

    fn extent(&self, axis: u8) -> i128 {
        i128::from(self.thread_range(axis).hi) + 1
    }

    fn closed_form(
        &self,
        arena: &Arena,
        threads: &[(Symbol, u8)],
        counters: &[Symbol],
        endless: &[Symbol],
        guards: &[Guard],
    ) -> Option<Polynomial> {
        let mut set = Points {
            arena,
            bounds: Bounds::default(),
            variables: Vec::new(),
            next: arena.symbol_count(),
            pieces: 0,
        };
        for &(symbol, axis) in threads {
            set.declare(symbol.0, Some(self.extent(axis) - 1));
        }
        for &counter in counters {
            let SymbolKind::Counter { extent } = arena.symbol_kind(counter) else {
                return None;
            };
            if extent <= 0 {
                return Some(Polynomial::zero());
            }
            // The guard is the bound: its own range would only hide it.
            let bounded = endless.contains(&counter);
            set.declare(counter.0, (!bounded).then(|| i128::from(extent) - 1));
        }
        let mut pieces = vec![Piece {
            variables: set.variables.clone(),
            defined: Vec::new(),
            equal: Vec::new(),
            least: Vec::new(),
            factor: Polynomial::constant(1),
        }];
        for guard in guards {
            let mut narrowed = Vec::new();
            for piece in pieces {
                set.assume(piece, guard.condition, guard.holds, &mut narrowed)?;
            }
            pieces = narrowed;
        }
        let mut total = Polynomial::zero();
        for piece in pieces {
            total = total.add(&set.sum(piece)?)?;
        }
        Some(total)
    }

    /// What has no parameter can be counted case by case.
    fn enumerated(
        &self,
        arena: &Arena,
        threads: &[(Symbol, u8)],
        counters: &[Symbol],
        guards: &[Guard],
    ) -> Option<Polynomial> {
        let query = Query {
            counters,
            guards,
            roots: &[],
            budget: ENUMERATION_BUDGET,
        };
        let mut lanes = 0.0;
        let outcome = self.visit(arena, &query, &mut |case| {
            lanes += case.weight * f64::from(case.active.count_ones());
        });
        // The walk is over whole blocks: every other thread coordinate is counted elsewhere.
        let others: i128 = (0..3u8)
            .filter(|axis| threads.iter().all(|(_, own)| own != axis))
            .map(|axis| self.extent(axis))
            .product();
        let exact = outcome.complete && lanes < 9e15;
        exact.then(|| Polynomial::constant(lanes as i128 / others.max(1)))
    }
}

/// Guards in groups that share no variable.
fn connected(arena: &Arena, counters: &[Symbol], guards: &[Guard]) -> Vec<Vec<Guard>> {
    let variables = |guard: &Guard| -> Vec<Symbol> {
        arena
            .symbols_of(guard.condition)
            .filter(|symbol| {
                matches!(arena.symbol_kind(*symbol), SymbolKind::Thread(_))
                    || counters.contains(symbol)
            })
            .collect()
    };
    let mut groups: Vec<(Vec<Symbol>, Vec<Guard>)> = Vec::new();
    for guard in guards {
        let mut own = (variables(guard), vec![*guard]);
        let mut apart = Vec::with_capacity(groups.len() + 1);
        for group in groups {
            if group.0.iter().any(|symbol| own.0.contains(symbol)) {
                own.0.extend(group.0);
                own.1.extend(group.1);
            } else {
                apart.push(group);
            }
        }
        apart.push(own);
        groups = apart;
    }
    groups.into_iter().map(|(_, guards)| guards).collect()
}

/// What is being counted.
struct Points<'a> {
    arena: &'a Arena,
    /// Numbers between which parameters and variables lie; a variable's are conditions on it.
    bounds: Bounds,
    variables: Vec<Name>,
    next: Name,
    pieces: u32,
}

/// A set of integer points between affine bounds, each weighted by a polynomial.
#[derive(Debug, Clone)]
struct Piece {
    /// Summed over, within their bounds.
    variables: Vec<Name>,
    /// The definitions of some variables, inner ones first.
    defined: Vec<Defined>,
    /// These are 0.
    equal: Vec<Polynomial>,
    /// These are not negative.
    least: Vec<Polynomial>,
    factor: Polynomial,
}

/// Variables that are no coordinate: the others fix their values.
#[derive(Debug, Clone)]
enum Defined {
    Division(Division),
    Extreme(Extreme),
}

/// `name` is the least (or the greatest) of two.
#[derive(Debug, Clone)]
struct Extreme {
    name: Name,
    least: bool,
    of: [Polynomial; 2],
}

/// `value = divisor · floor + rest`, with `rest` from 0 to below the divisor.
#[derive(Debug, Clone)]
struct Division {
    value: Polynomial,
    divisor: i128,
    floor: Name,
    rest: Name,
}

impl Points<'_> {
    fn declare(&mut self, name: Name, last: Option<i128>) {
        self.bounds.set(name, Bound::new(Some(0), last));
        self.variables.push(name);
    }

    /// A variable of its own.
    fn fresh(&mut self, last: Option<i128>) -> Name {
        let name = self.next;
        self.next += 1;
        self.bounds.set(name, Bound::new(Some(0), last));
        name
    }

    /// `None` where too many pieces were made.
    fn another_piece(&mut self) -> Option<()> {
        self.pieces += 1;
        (self.pieces <= MOST_PIECES).then_some(())
    }
}
