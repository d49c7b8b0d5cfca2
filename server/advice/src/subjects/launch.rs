//! One launch, one finding: of the rules about a launch's shape the first that has something to say.

use warplens_facts::facts::Source;
use warplens_models::Factor;

use crate::{
    Context, Finding, Removal, launch_not_warp_multiple, launch_one_fat_block, launch_small_grid,
    launch_tail, launch_tiny_block,
};

/// A kernel that takes less than this is launch overhead: its shape does not matter, in seconds.
const OVERHEAD: f64 = 5e-6;

/// From the most specific to the most general: what the block leaves idle in a warp, what the grid leaves idle of the
/// GPU, what small blocks leave idle of an SM, what big blocks make wait, what the last wave leaves idle.
const RULES: &[fn(&Context<'_>) -> Option<Finding>] = &[
    launch_not_warp_multiple::finding,
    launch_small_grid::finding,
    launch_tiny_block::finding,
    launch_one_fat_block::finding,
    launch_tail::finding,
];

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

/// The finding about this launch's shape.
pub(crate) fn finding(ctx: &Context<'_>) -> Option<Finding> {
    // Nobody is to blame for the default block, and one block of less than a warp is serial on purpose.
    let launch = &ctx.facts.launch;
    let serial =
        launch.blocks() <= 1 && launch.threads_per_block() < u64::from(ctx.facts.warp_size);
    // A program that tries several blocks knows that they differ.
    if launch.block_source == Source::Assumed || serial || ctx.block_varies {
        return None;
    }
    RULES.iter().find_map(|rule| rule(ctx))
}

/// True where a finding about the launch's shape says why few warps are resident.
pub(crate) fn says_residency(ctx: &Context<'_>) -> bool {
    finding(ctx).is_some_and(|finding| {
        finding.rule == launch_tiny_block::INFO.id || finding.rule == launch_one_fat_block::INFO.id
    })
}

/// True where the grid was given, by the source or by its reader.
pub(crate) fn grid_given(ctx: &Context<'_>) -> bool {
    !ctx.facts.launch.grid_source.is_assumption() && !ctx.facts.launch.block_source.is_assumption()
}

/// True where the launch is over before its shape matters, or nobody knows how long it takes.
pub(crate) fn brief(ctx: &Context<'_>) -> bool {
    let clock = ctx.profile.sm_clock_mhz * 1e6;
    (ctx.cycles)().is_none_or(|cycles| cycles / clock < OVERHEAD)
}

/// True where blocks wait at barriers.
pub(crate) fn has_barriers(ctx: &Context<'_>) -> bool {
    ctx.facts
        .operations
        .iter()
        .any(|operation| operation.operator == warplens_facts::facts::Operator::Barrier)
}

/// The gain of the same threads in other blocks; 1 where threads of a block may work together.
pub(crate) fn reshaped(ctx: &Context<'_>, grid: [u64; 3], block: [u64; 3]) -> f64 {
    let free = ctx.facts.shared_arrays.is_empty()
        && !has_barriers(ctx)
        && ctx.kernel.required_block.is_none();
    if free {
        ctx.gain(Removal::Launch { grid, block })
    } else {
        1.0
    }
}

/// The gain of an SM that is full.
pub(crate) fn full(ctx: &Context<'_>) -> f64 {
    ctx.gain(Removal::Factor(Factor::Occupancy))
}
