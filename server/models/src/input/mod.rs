//! What every model, rule and report reads of one kernel: the source's facts and the compiled kernel, joined.
//!
//! In go the facts of the source, the compiled kernel, the GPU and what a block takes of an SM; none of them changes.
//! Out comes a [`ModelInput`]: what the warps of the launch execute, as values of its own ([`ExecutedFlow`],
//! [`ExecutedAccess`]), and the occupancy. Where the compiled kernel cannot be followed, the source's own flow takes its place.
//! A what-if is a [`Change`]: it makes another input and leaves the one that it starts from as it is.

mod calls;
mod change;
mod copies;
mod dynamic;
mod executed;
mod expected;
mod join;
mod reshape;
mod sound;
mod weigh;

pub use calls::ExecutedCall;
pub use change::Change;
pub use dynamic::{DynamicCounts, WarpInstructions};
pub use executed::{ExecutedAccess, ExecutedFlow, Object};
pub use expected::ExpectedRequest;
pub use join::{ModelInput, Resources, residence};
pub use reshape::Instructions;
pub use sound::Defect;

/// A count that can be computed with.
pub(crate) fn positive(value: f64) -> f64 {
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}
