//! What rules about the shape of a launch ask of it.

use warplens_models::Factor;

use crate::{Context, Removal};

/// A kernel that takes less than this is launch overhead: its shape does not matter, in seconds.
const OVERHEAD: f64 = 5e-6;

/// True where the grid was given, by the source or by its reader.
pub(crate) fn grid_given(ctx: &Context<'_>) -> bool {
    !ctx.facts.launch.grid_source.is_assumption() && !ctx.facts.launch.block_source.is_assumption()
}

/// True where the launch is over before its shape matters, or its duration is unknown.
pub(crate) fn brief(ctx: &Context<'_>) -> bool {
    let clock = ctx.profile.sm_clock_mhz * 1e6;
    (ctx.cycles)().is_none_or(|cycles| cycles / clock < OVERHEAD)
}

/// True where what a change gains is more than the launch of another kernel costs, which puts its results together.
pub(crate) fn pays_for_a_launch(ctx: &Context<'_>, gain: f64) -> bool {
    let clock = ctx.profile.sm_clock_mhz * 1e6;
    let saved = |cycles: f64| cycles / clock * (1.0 - gain.recip());
    (ctx.cycles)().is_some_and(|cycles| saved(cycles) >= 2.0 * OVERHEAD)
}

/// True where blocks wait at barriers.
pub(crate) fn has_barriers(ctx: &Context<'_>) -> bool {
    ctx.facts
        .operations
        .iter()
        .any(|operation| operation.operator == warplens_facts::facts::Operator::Barrier)
}

/// True where the threads of a block do not work together: other blocks hold the same threads.
pub(crate) fn is_free(ctx: &Context<'_>) -> bool {
    ctx.facts.shared_arrays.is_empty() && !has_barriers(ctx) && ctx.kernel.required_block.is_none()
}

/// The gain of the same threads in other blocks; 1 where threads of a block may work together, or have other work then.
pub(crate) fn reshaped(ctx: &Context<'_>, grid: [u64; 3], block: [u64; 3]) -> f64 {
    if is_free(ctx) {
        ctx.gain(Removal::Launch { grid, block })
    } else {
        1.0
    }
}

/// The gain of an SM that is full.
pub(crate) fn full(ctx: &Context<'_>) -> f64 {
    ctx.gain(Removal::Factor(Factor::Occupancy))
}
