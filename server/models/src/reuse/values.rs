//! How many values a summand of an address takes: quotients and remainders of coordinates, and what data decides.

use warplens_facts::facts::{AddressPart, LinearAddress, VariesWith};
use warplens_symbolic::gcd;

use super::extents::Extents;
use super::index::{Polynomial, Symbol};

/// Values of a summand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    Fixed(f64),
    /// That many times the blocks along an axis.
    Blocks(f64, usize),
    Quotient(Quotient),
    Drawn(Drawn),
}

impl Count {
    /// With this many blocks along each dimension: the distance of neighbouring values, and how many there are.
    pub(super) fn with(&self, blocks: [f64; 3]) -> (f64, f64) {
        match self {
            Count::Fixed(values) => (1.0, *values),
            Count::Blocks(values, axis) => (1.0, values * blocks[*axis]),
            Count::Quotient(quotient) => quotient.with(blocks),
            Count::Drawn(drawn) => drawn.with(blocks),
        }
    }
}

/// `of / divisor % modulus` of a sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quotient {
    /// What threads and iterations make of the sum: combinations, and the distance of the first from the last.
    combinations: f64,
    span: f64,
    /// What a block along each dimension moves it by.
    block: [f64; 3],
    /// The greatest common divisor of all movements.
    unit: f64,
    divisor: f64,
    modulus: f64,
}

impl Quotient {
    fn with(&self, blocks: [f64; 3]) -> (f64, f64) {
        let (mut combinations, mut span) = (self.combinations, self.span);
        for (factor, blocks) in self.block.into_iter().zip(blocks) {
            if factor > 0.0 {
                combinations *= blocks;
                span += factor * (blocks - 1.0);
            }
        }
        // Where the sum moves by more than the divisor, quotients do as well.
        let step = (self.unit / self.divisor).max(1.0).floor();
        let within = (self.modulus / step).max(1.0);
        let reached = ((span + self.unit) / self.divisor.max(self.unit)).ceil();
        (step, reached.min(within).min(combinations).max(1.0))
    }
}

/// What data decides: the same where what it varies with is, anywhere within a range otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn {
    factor: f64,
    /// How many values there are to draw from.
    range: f64,
    by_data: bool,
    /// Draws of the threads and iterations of a block.
    draws: f64,
    /// Dimensions of the grid along which blocks draw for themselves.
    block: [bool; 3],
    /// Thread coordinates and the loops by depth, as bits, that it varies with.
    thread: [bool; 3],
    loops: u64,
}

impl Drawn {
    fn with(&self, blocks: [f64; 3]) -> (f64, f64) {
        let mut draws = self.draws;
        for (own, blocks) in self.block.into_iter().zip(blocks) {
            if own {
                draws *= blocks;
            }
        }
        if !self.range.is_finite() {
            return (f64::MAX.sqrt(), draws);
        }
        // Some are drawn twice.
        let values = if self.by_data {
            self.range * -(-draws / self.range).exp_m1()
        } else {
            draws.min(self.range)
        };
        let values = values.max(1.0);
        (self.range / values, values)
    }

    /// True where the other summand is a coordinate that it varies with and that moves the address by less than it does: then the
    /// coordinate decides nothing beside it.
    pub(super) fn takes(&self, symbol: &Symbol, factor: f64) -> bool {
        self.varies_with(symbol) && factor < self.factor * self.range
    }

    fn varies_with(&self, symbol: &Symbol) -> bool {
        match symbol {
            Symbol::Thread(axis) => self.thread[*axis],
            Symbol::Block(axis) => self.block[*axis],
            Symbol::Loop(depth) => self.loops >> (*depth).min(63) & 1 == 1,
            Symbol::AnyThread | Symbol::Named(_) | Symbol::Part(_) => false,
        }
    }
}

impl Extents<'_> {
    /// Iterations of the loop of that depth.
    pub(super) fn turns(&self, depth: usize) -> f64 {
        self.loops.get(depth).copied().unwrap_or(1.0)
    }

    /// The values of a quotient or a remainder.
    pub(super) fn quotient(&self, part: &AddressPart) -> Count {
        let AddressPart::Digit {
            of,
            divisor,
            modulus,
        } = part
        else {
            return Count::Fixed(1.0);
        };
        let LinearAddress {
            thread,
            block,
            loops,
            ..
        } = of;
        let (mut combinations, mut span, mut unit) = (1.0, 0.0, 0);
        let threads = thread.iter().zip(self.block);
        let turns = (0..loops.len()).map(|depth| self.turns(depth));
        for (factor, values) in threads.chain(loops.iter().zip(turns)) {
            if *factor != 0 && values > 1.0 {
                combinations *= values;
                span += factor.unsigned_abs() as f64 * (values - 1.0);
                unit = gcd(unit, *factor);
            }
        }
        for factor in block.iter().filter(|factor| **factor != 0) {
            unit = gcd(unit, *factor);
        }
        Count::Quotient(Quotient {
            combinations,
            span,
            block: block.map(|factor| factor.unsigned_abs() as f64),
            unit: unit.unsigned_abs().max(1) as f64,
            divisor: (*divisor).max(1) as f64,
            modulus: modulus.map_or(f64::INFINITY, |modulus| modulus as f64),
        })
    }

    /// Summands that data decides. As they are the same for all that agree in what they vary with, an array that just holds what
    /// the other summands reach leaves little room for them.
    pub(super) fn drawn(&self, index: &Polynomial) -> Vec<(AddressPart, Drawn)> {
        let mut found = Vec::new();
        for (monomial, factor) in index.terms() {
            let [(Symbol::Part(part), 1)] = monomial.as_slice() else {
                continue;
            };
            let AddressPart::Values {
                count,
                with,
                by_data,
                ..
            } = part
            else {
                continue;
            };
            let factor = factor.numerator().unsigned_abs() as f64;
            let known = count.map_or(f64::INFINITY, |count| count as f64);
            let range = match self.array {
                Some(bytes) if *by_data => known.min(self.room(index, bytes) / factor.max(1.0)),
                _ => known,
            };
            let mut drawn = Drawn {
                factor,
                range: range.max(1.0),
                by_data: *by_data,
                draws: 1.0,
                block: with.block,
                thread: with.thread,
                loops: bits(&with.loops),
            };
            self.draw(index, with, &mut drawn);
            found.push((part.clone(), drawn));
        }
        found
    }

    /// Counts the draws. Where a coordinate moves the address past the range by itself, each of its values has draws of its own.
    fn draw(&self, index: &Polynomial, with: &VariesWith, drawn: &mut Drawn) {
        let apart = |symbol: Symbol| {
            let factors = index.terms().filter_map(|(monomial, factor)| {
                let alone = matches!(monomial.as_slice(), [(only, 1)] if *only == symbol);
                alone.then(|| factor.numerator().unsigned_abs() as f64)
            });
            factors.fold(0.0, f64::max) >= drawn.factor * drawn.range
        };
        let threads = (0..3).filter(|&axis| with.thread[axis] && !apart(Symbol::Thread(axis)));
        let loops =
            (0..with.loops.len()).filter(|&depth| with.loops[depth] && !apart(Symbol::Loop(depth)));
        let threads: f64 = threads.map(|axis| self.block[axis]).product();
        let loops: f64 = loops.map(|depth| self.turns(depth)).product();
        let blocks = [0, 1, 2].map(|axis| with.block[axis] && !apart(Symbol::Block(axis)));
        drawn.draws = threads * loops;
        drawn.block = blocks;
    }

    /// Bytes of the array that the known summands leave; where guards keep them inside of it, at most the longest step.
    fn room(&self, index: &Polynomial, bytes: f64) -> f64 {
        let (mut reached, mut longest) = (0.0, 0.0_f64);
        for (monomial, factor) in index.terms() {
            let factor = factor.numerator().unsigned_abs() as f64;
            let values = match monomial.as_slice() {
                [(Symbol::Thread(axis), 1)] => self.block[*axis],
                [(Symbol::Block(axis), 1)] => self.grid[*axis],
                [(Symbol::Loop(depth), 1)] => self.turns(*depth),
                [(Symbol::Part(part @ AddressPart::Digit { .. }), 1)] => {
                    self.quotient(part).with(self.grid).1
                }
                _ => 1.0,
            };
            reached += factor * (values - 1.0);
            if values > 1.0 {
                longest = longest.max(factor);
            }
        }
        if bytes > reached {
            bytes - reached
        } else {
            longest.min(bytes)
        }
    }
}

fn bits(loops: &[bool]) -> u64 {
    let loops = loops.iter().take(64).enumerate();
    loops.fold(0, |all, (depth, varies)| all | u64::from(*varies) << depth)
}
