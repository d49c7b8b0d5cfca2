//! Integer expressions over the coordinates of threads and blocks, loop counters and parameters.
//!
//! [`Arena`] holds hash-consed, canonical expressions with C's integer semantics and a range for each.
//! [`Domain`] says which values the symbols take: lanes of a warp, warps of a block, blocks of a grid,
//! iterations of loops. [`Domain::visit`] runs over all of them, folding what provably repeats, and calls back
//! with each distinct case and its multiplicity.
//!
//! Nothing here knows GPUs: a warp is a number of lanes.

mod arena;
mod closed;
mod domain;
mod interval;
mod points;
mod polynomial;
mod print;
mod shift;

pub use arena::{Arena, BinaryOp, Fit, Id, Node, Symbol, SymbolKind, SymbolSet};
pub use closed::Closed;
pub use domain::{Case, Domain, Guard, Outcome, Query, WARP_MAX};
pub use interval::Interval;
pub use polynomial::{Bound, Bounds, Indeterminate, Monomial, Name, Polynomial, Ratio};
pub use shift::gcd;
