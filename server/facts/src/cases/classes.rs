//! Residue classes of free symbols.

use warplens_symbolic::{Arena, Id, Interval, Symbol, SymbolKind};

use super::{Cases, MOST_FREE, MOST_TURNS};

/// One free symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Free {
    pub(super) symbol: Symbol,
    pub(super) value: i64,
    /// The modulus of its class; 1 is no constraint.
    pub(super) modulus: i64,
}

impl Free {
    /// The smallest positive value of the class.
    pub(super) fn first(&self) -> i64 {
        match self.value.rem_euclid(self.modulus) {
            0 => self.modulus,
            residue => residue,
        }
    }
}

impl Cases {
    /// A symbol for any number of steps.
    pub(super) fn stand_in(&mut self, arena: &mut Arena, symbol: Symbol) -> Option<Id> {
        if let Some(&id) = self.stand_ins.get(&symbol) {
            return Some(id);
        }
        let name = arena.symbol_name(symbol).to_owned();
        let kind = SymbolKind::Counter {
            extent: MOST_TURNS + 1,
        };
        let id = arena.symbol(&name, kind, Interval::ANY);
        let made = arena.as_symbol(id)?;
        // One symbol too many is opaque.
        matches!(arena.symbol_kind(made), SymbolKind::Counter { .. }).then_some(())?;
        self.stand_ins.insert(symbol, id);
        Some(id)
    }

    /// The expression for all values of the class that are at least `from`.
    pub(super) fn in_class(
        &mut self,
        arena: &mut Arena,
        id: Id,
        free: &Free,
        from: i64,
    ) -> Option<Id> {
        if !arena.depends_on(id, free.symbol) {
            return Some(id);
        }
        let residue = free.value.rem_euclid(free.modulus);
        let steps = self.stand_in(arena, free.symbol)?;
        let below = (from - residue + free.modulus - 1).div_euclid(free.modulus);
        let start = arena.constant(residue + free.modulus * below.max(0));
        let way = arena.scale(steps, free.modulus);
        let any = arena.add(start, way);
        Some(arena.substitute(id, free.symbol, any))
    }

    pub(super) fn in_classes(
        &mut self,
        arena: &mut Arena,
        id: Id,
        free: &[Free],
        least: &[i64],
    ) -> Option<Id> {
        let mut id = id;
        for (one, &from) in free.iter().zip(least) {
            id = self.in_class(arena, id, one, from)?;
        }
        Some(id)
    }

    /// Smallest value from which on everything fits its type that was taken to.
    pub(super) fn fitting(&mut self, arena: &mut Arena, free: &Free) -> Option<i64> {
        if let Some(&known) = self.fitting.get(&free.symbol) {
            return known;
        }
        let found = self.find_fitting(
            arena,
            &Free {
                modulus: 1,
                ..*free
            },
        );
        self.fitting.insert(free.symbol, found);
        found
    }

    fn find_fitting(&mut self, arena: &mut Arena, free: &Free) -> Option<i64> {
        let fits = arena.fits()?.to_vec();
        let mut least = 1;
        for fit in fits {
            if !arena.depends_on(fit.id, free.symbol) {
                continue;
            }
            let mut id = fit.id;
            for other in free_symbols(arena, &[id])? {
                if other.symbol != free.symbol {
                    id = self.in_class(arena, id, &other, 1)?;
                }
            }
            let full = Interval::of_type(fit.bits, fit.signed);
            let from = self.least(arena, free, |cases, arena, from| {
                cases.in_class(arena, id, free, from).is_some_and(|id| {
                    let range = arena.range(id);
                    // An index that leaves 32 bits upwards leaves every array.
                    range.lo >= full.lo && (fit.bits >= 32 || range.hi <= full.hi)
                })
            })?;
            least = least.max(from);
        }
        Some(least)
    }

    /// The smallest value of the class from which on something holds, where it does at the value assumed.
    pub(super) fn least(
        &mut self,
        arena: &mut Arena,
        free: &Free,
        mut holds: impl FnMut(&mut Cases, &mut Arena, i64) -> bool,
    ) -> Option<i64> {
        let residue = free.value.rem_euclid(free.modulus);
        let step = |at: i64| (residue + free.modulus * at).max(1);
        let (mut low, mut high) = (0, (free.value - residue) / free.modulus);
        if high < 0 || !holds(self, arena, free.value) {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self, arena, step(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // The first value of the class needs no bound.
        let least = step(high);
        Some(if least <= free.first() { 1 } else { least })
    }
}

/// Symbols of the expressions whose value was assumed; `None` where there are too many.
pub(super) fn free_symbols(arena: &Arena, parts: &[Id]) -> Option<Vec<Free>> {
    let mut free: Vec<Free> = Vec::new();
    for &id in parts {
        for symbol in arena.symbols_of(id) {
            if let SymbolKind::Fixed {
                value,
                assumed: true,
            } = arena.symbol_kind(symbol)
                && !free.iter().any(|one| one.symbol == symbol)
            {
                free.push(Free {
                    symbol,
                    value,
                    modulus: 1,
                });
            }
        }
    }
    // A class is of positive values.
    (free.len() <= MOST_FREE && free.iter().all(|one| one.value > 0)).then_some(free)
}

pub(super) fn texts(arena: &Arena, free: &[Free], least: &[i64]) -> Vec<String> {
    let mut out = Vec::new();
    for (one, &least) in free.iter().zip(least) {
        let name = arena.symbol_name(one.symbol);
        if one.modulus > 1 {
            let residue = one.value.rem_euclid(one.modulus);
            out.push(format!("{name} % {} == {residue}", one.modulus));
        }
        if least > 1 {
            out.push(format!("{name} >= {least}"));
        }
    }
    out
}
