//! How many values what an index is made of takes: threads, blocks, iterations, the array.

use warplens_facts::facts::Launch;

use super::index::{Polynomial, Symbol};

/// How many values the free names of an index take.
pub(super) struct Extents<'p> {
    pub(super) block: [f64; 3],
    /// Iterations of the loops around the access.
    pub(super) loops: &'p [f64],
    /// Names that a loop around the access moves.
    pub(super) walks: Vec<&'p String>,
    /// Values of each of them, as far as the number of executions tells.
    pub(super) each: f64,
    /// Blocks of the launch, and bytes of the array where they are known.
    pub(super) grid: [f64; 3],
    pub(super) array: Option<f64>,
}

impl<'p> Extents<'p> {
    pub(super) fn new(
        launch: &Launch,
        index: &'p Polynomial,
        loops: &'p [f64],
        parameters: &[String],
        per_warp: f64,
        array: Option<u64>,
    ) -> Extents<'p> {
        let mut walks = Vec::new();
        if !loops.is_empty() {
            for (symbol, _) in index.terms().flat_map(|(monomial, _)| monomial) {
                if let Symbol::Named(name) = symbol
                    && !walks.contains(&name)
                    && !parameters.contains(name)
                {
                    walks.push(name);
                }
            }
        }
        let each = per_warp.max(1.0).powf(1.0 / walks.len().max(1) as f64);
        Extents {
            block: launch.block.map(|n| n as f64),
            loops,
            walks,
            each,
            grid: launch.grid.map(|n| n as f64),
            array: array.map(|bytes| bytes as f64),
        }
    }

    /// One iteration of every loop.
    pub(super) fn once(&self) -> Extents<'p> {
        Extents {
            loops: &[],
            walks: self.walks.clone(),
            each: 1.0,
            ..*self
        }
    }
}
