//! The distinct bytes that blocks touch, in closed form.

use super::extents::Extents;
use super::index::{Monomial, Polynomial, Symbol};
use super::values::Count;

/// What one summand moves an address by, and how many values it takes.
#[derive(Debug, Clone, Copy)]
struct Movement {
    factor: f64,
    count: Count,
}

impl Movement {
    fn fixed(factor: f64, values: f64) -> Movement {
        Movement {
            factor,
            count: Count::Fixed(values),
        }
    }

    /// The distance of neighbouring values, and how many there are with this many blocks along each dimension.
    fn with(&self, blocks: [f64; 3]) -> (f64, f64) {
        let (step, values) = self.count.with(blocks);
        (self.factor * step, values)
    }

    fn moves(&self) -> bool {
        let moves = match self.count {
            Count::Fixed(values) => values > 1.0,
            Count::Blocks(..) | Count::Quotient(_) | Count::Drawn(_) => true,
        };
        moves && self.factor > 0.0
    }
}

/// Movements with one symbolic stride.
type Movements = (Monomial, Vec<Movement>);

/// Where a group of accesses goes.
pub(super) struct Footprint {
    bases: Vec<Movements>,
    /// Bytes of an index's unit, and of the element.
    scale: f64,
    element: f64,
    /// Bytes of a sector.
    unit: f64,
}

impl Footprint {
    pub(super) fn new(
        index: &Polynomial,
        shifts: &[(Monomial, i64)],
        extents: &Extents,
        (scale, element): (f64, f64),
        unit: f64,
    ) -> Footprint {
        let mut footprint = Footprint {
            bases: Vec::new(),
            scale,
            element,
            unit,
        };
        let drawn = extents.drawn(index);
        for (monomial, factor) in index.terms() {
            let mut base = Vec::new();
            let factor = factor.numerator().unsigned_abs() as f64;
            if let [(symbol, 1)] = monomial.as_slice()
                && drawn.iter().any(|(_, drawn)| drawn.takes(symbol, factor))
            {
                continue;
            }
            let mut movement = Movement::fixed(factor, 1.0);
            let mut extent = 1.0;
            for (symbol, power) in monomial {
                let values = match symbol {
                    Symbol::Thread(axis) => extents.block[*axis],
                    Symbol::AnyThread => extents.block.iter().product::<f64>(),
                    Symbol::Block(axis) => {
                        movement.count = Count::Blocks(1.0, *axis);
                        continue;
                    }
                    Symbol::Loop(depth) => extents.turns(*depth),
                    Symbol::Named(name) if extents.walks.contains(&name) => extents.each,
                    Symbol::Named(_) => {
                        base.push((symbol.clone(), *power));
                        continue;
                    }
                    Symbol::Part(part) => {
                        let known = drawn.iter().find(|(of, _)| of == part);
                        movement.count = match known {
                            Some((_, drawn)) => Count::Drawn(*drawn),
                            None => extents.quotient(part),
                        };
                        continue;
                    }
                };
                for _ in 0..*power {
                    extent *= values;
                }
            }
            match &mut movement.count {
                Count::Fixed(values) | Count::Blocks(values, _) => *values *= extent,
                Count::Quotient(_) | Count::Drawn(_) => {}
            }
            footprint.push(base, movement);
        }
        let mut distinct: Vec<&(Monomial, i64)> = Vec::new();
        for shift in shifts {
            if shift.1 != 0 && !distinct.contains(&shift) {
                distinct.push(shift);
            }
        }
        while let Some(shift) = distinct.pop() {
            let (same, rest): (Vec<_>, Vec<_>) =
                distinct.into_iter().partition(|other| other.0 == shift.0);
            let least = same
                .iter()
                .map(|s| s.1.unsigned_abs())
                .chain([shift.1.unsigned_abs()]);
            let least = least.min().unwrap_or(1) as f64;
            let movement = Movement::fixed(least, same.len() as f64 + 2.0);
            footprint.push(shift.0.clone(), movement);
            distinct = rest;
        }
        footprint
    }

    fn push(&mut self, base: Monomial, movement: Movement) {
        if movement.moves() {
            match self.bases.iter_mut().find(|known| known.0 == base) {
                Some(known) => known.1.push(movement),
                None => self.bases.push((base, vec![movement])),
            }
        }
    }

    /// True where data decides a part of the address.
    pub(super) fn is_drawn(&self) -> bool {
        let movements = self.bases.iter().flat_map(|(_, movements)| movements);
        let mut drawn = movements.filter(|movement| matches!(movement.count, Count::Drawn(_)));
        drawn.next().is_some()
    }

    /// Distinct bytes with this many blocks along each dimension.
    pub(super) fn bytes(&self, blocks: [f64; 3]) -> f64 {
        self.touched(blocks, false)
    }

    /// The same in the sectors that hold them.
    pub(super) fn sectors(&self, blocks: [f64; 3]) -> f64 {
        self.touched(blocks, true)
    }

    /// Movements that fit together fill a run of neighbours; those that step over it are rows of such runs, and rows
    /// whose movements fit together are counted once; the others multiply.
    fn touched(&self, blocks: [f64; 3], whole_sectors: bool) -> f64 {
        let mut runs = 1.0;
        let mut length = self.element;
        let mut aligned = true;
        for (base, movements) in &self.bases {
            let plain = base.is_empty();
            let mut movements: Vec<(f64, f64)> = movements
                .iter()
                .map(|movement| movement.with(blocks))
                .collect();
            movements.sort_by(|a, b| a.0.total_cmp(&b.0));
            // Along a symbolic stride the first movement sets the scale; holes smaller than a sector are moved too.
            let (scale, hole) = if plain {
                (self.scale, self.unit)
            } else {
                (1.0 / movements[0].0.max(1.0), 1.0)
            };
            let mut pitch = 1.0;
            let mut span = if plain { self.element } else { 1.0 };
            let mut first = true;
            for (factor, extent) in movements {
                if extent <= 1.0 {
                    continue;
                }
                let step = factor * scale;
                aligned &= !plain || step < self.unit || step % self.unit == 0.0;
                let reach = if first { hole.max(span) } else { pitch * span };
                if step <= reach {
                    span += step / pitch * (extent - 1.0);
                    continue;
                }
                if first && plain {
                    length = span;
                } else {
                    runs *= span;
                }
                first = false;
                pitch = step;
                span = extent;
            }
            if first && plain {
                length = span;
            } else {
                runs *= span;
            }
        }
        runs * if !whole_sectors {
            if length >= 4.0 * self.unit {
                length
            } else {
                (length / self.unit).ceil() * self.unit
            }
        } else if aligned {
            (length / self.unit).ceil() * self.unit
        } else {
            // A run that begins at any element touches a sector more, but for what the element fills of it.
            length + self.unit - self.element.min(self.unit)
        }
    }
}
