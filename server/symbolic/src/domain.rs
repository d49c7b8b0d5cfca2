//! Sums over all warps, blocks and iterations of a launch.

use crate::{Arena, Id, Interval, Symbol};

mod lanes;
pub(crate) mod program;
mod residues;
mod walk;

use walk::Walk;

/// Most lanes a warp may have.
pub const WARP_MAX: usize = 64;

/// The lanes of every warp of a block.
#[derive(Debug, Clone)]
pub struct Domain {
    warp_size: usize,
    block: [i64; 3],
    layout: Layout,
}

/// How warps lie in a block. In the first two a warp's coordinates are those of warp 0 moved by whole steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Warps step regularly along the axes: how many along each, and by how far.
    Regular { counts: [i64; 3], steps: [i64; 3] },
    /// Warps numbered by linear thread id; the last may be partial.
    Linear { warps: i64 },
}

/// A condition that must hold, or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guard {
    /// The condition.
    pub condition: Id,
    /// The truth it must have.
    pub holds: bool,
}

/// A sum: the counters, the guards and the expressions.
#[derive(Debug, Clone, Default)]
pub struct Query<'a> {
    /// The counters in scope: block coordinates and iterations of enclosing loops.
    pub counters: &'a [Symbol],
    /// Lanes take part where all of these agree.
    pub guards: &'a [Guard],
    /// Expressions to evaluate, each with the movement that leaves its effect unchanged when all lanes
    /// make it together (the size of a memory segment, say); 0 where only the value itself counts.
    pub roots: &'a [(Id, i64)],
    /// The most cases to evaluate.
    pub budget: u32,
}

/// One execution by one warp, representing `weight` equivalent ones.
#[derive(Debug)]
pub struct Case<'a> {
    /// The number of warp-level executions that it represents.
    pub weight: f64,
    /// The active mask: bit i is set where lane i exists and all its guards hold. Never 0.
    pub active: u64,
    /// For each root, the value of each lane; values of inactive lanes are unspecified.
    pub values: &'a [[i64; WARP_MAX]],
}

/// How a visit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// True: every execution was accounted for. False: a sample, weighted to the whole.
    pub complete: bool,
    /// Its cost: boxes and cases evaluated.
    pub looked_at: u32,
}

impl Domain {
    /// Warps of `warp_size` lanes over a block. `warp_size` is at most [`WARP_MAX`].
    pub fn new(warp_size: u32, block: [u64; 3]) -> Domain {
        let warp_size = (warp_size as usize).clamp(1, WARP_MAX);
        let block = block.map(|extent| extent.clamp(1, 1 << 20) as i64);
        let lanes = warp_size as i64;
        let [x, y, z] = block;
        let layout = if x % lanes == 0 {
            Layout::Regular {
                counts: [x / lanes, y, z],
                steps: [lanes, 1, 1],
            }
        } else if lanes % x == 0 && y % (lanes / x) == 0 {
            Layout::Regular {
                counts: [1, y / (lanes / x), z],
                steps: [0, lanes / x, 1],
            }
        } else if lanes % (x * y) == 0 && z % (lanes / (x * y)) == 0 {
            Layout::Regular {
                counts: [1, 1, z / (lanes / (x * y))],
                steps: [0, 0, lanes / (x * y)],
            }
        } else {
            Layout::Linear {
                warps: (x * y * z + lanes - 1) / lanes,
            }
        };
        Domain {
            warp_size,
            block,
            layout,
        }
    }

    /// Lanes of a warp.
    pub fn warp_size(&self) -> usize {
        self.warp_size
    }

    /// Values of a thread coordinate.
    pub fn thread_range(&self, axis: u8) -> Interval {
        Interval::new(0, self.block[axis as usize] - 1)
    }

    /// How one warp lies along an axis: its smallest coordinate is a multiple of the first number (0: is 0),
    /// the others lie less than the second above it.
    pub fn warp_span(&self, axis: u8) -> (i64, i64) {
        let axis = axis as usize;
        match self.layout {
            Layout::Regular { counts, steps } => (steps[axis], self.block[axis] / counts[axis]),
            Layout::Linear { .. } => (0, self.block[axis]),
        }
    }

    /// Runs over every warp-level execution in which some lane takes part, folding what repeats.
    ///
    /// Roots and guards must not depend on opaque symbols.
    pub fn visit(&self, arena: &Arena, query: &Query, each: &mut dyn FnMut(&Case)) -> Outcome {
        Walk::new(self, arena, query, each).run()
    }
}

#[cfg(test)]
mod tests;
