//! launch/small-grid: fewer blocks than the GPU has SMs.

use warplens_facts::facts::{Certainty, Source};
use warplens_models::Change;

use crate::rule::{Look, Rule, State};
use crate::subjects::{iterations, launch};
use crate::wording;
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "launch/small-grid",
    title: "fewer blocks than SMs: the others idle for the whole kernel",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("launch/tail"),
    actions: &[],
};

/// Blocks are not made smaller than this, in threads.
const SMALLEST: u64 = 64;

/// Of the warps that an SM holds, a grid that leaves it this part or fewer leaves room for more blocks on each.
const FEW_WARPS: f64 = 0.25;
/// The gain from which a kernel of one warp or less is not meant to be serial.
const PARALLEL: f64 = 4.0;

pub(crate) fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let Context { facts, profile, .. } = *ctx;
    let (blocks, sms) = (facts.launch.blocks(), u64::from(profile.sms));
    if blocks == 0 || blocks >= sms || !launch::grid_given(ctx) || launch::brief(ctx) {
        return None;
    }
    let times = sms / blocks;
    let smaller = (times >= 2).then(|| smaller_blocks(ctx, times)).flatten();
    // The SMs that have a block may have room for others: all of them full, or each with one.
    let few = ctx.occupancy.fraction <= FEW_WARPS;
    let split = [times, filled(ctx) / blocks]
        .into_iter()
        .filter(|parts| *parts >= 2 && (few || *parts == times))
        .filter_map(|parts| split_loop(ctx, parts));
    let (gain, cure) = split.chain(smaller).max_by(|a, b| a.0.total_cmp(&b.0))?;
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let grid = wording::extents(facts.launch.grid);
    let one = if blocks == 1 { "block" } else { "blocks" };
    let busy = if few {
        format!(
            ", {} of {} warps on the others",
            ctx.occupancy.active_warps_per_sm, profile.max_warps_per_sm
        )
    } else {
        String::new()
    };
    // One block is meant to be one, unless it takes so long that another kernel, which puts the parts of several together, is
    // little beside it; a grid that a run's arguments make is as large as its problem.
    let by_problem = facts.launch.grid_source == Source::Run && !ctx.grid_by_text;
    let severity = if by_problem || blocks == 1 && !launch::pays_for_a_launch(ctx, gain) {
        Severity::Hint
    } else {
        wording::severity(gain, Certainty::Exact, true)
    };
    Some(Finding {
        rule: RULE.id,
        severity,
        place: Place::Launch,
        message: wording::sentence([
            Some(format!(
                "launch more blocks ({} of {sms} SMs idle{busy})",
                sms - blocks
            )),
            Some(format!(
                "{} of {sms} SMs idle: a grid of {grid} is {blocks} {one} of {} threads; {cure}",
                sms - blocks,
                facts.launch.threads_per_block()
            )),
            Some(wording::gain(gain)),
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}

/// Less than a warp in all: what one thread, or a few, do one after another, the GPU could do at once.
pub(crate) fn serial(ctx: &Context<'_>) -> Option<Finding> {
    let launch = &ctx.facts.launch;
    if !launch::grid_given(ctx) || launch::brief(ctx) {
        return None;
    }
    // As many parts as the GPU holds such blocks, or as a shorter loop has.
    let parts = [
        filled(ctx),
        u64::from(ctx.profile.sms),
        u64::from(ctx.facts.warp_size),
    ];
    let (gain, _) = parts.into_iter().find_map(|parts| split_loop(ctx, parts))?;
    if gain < PARALLEL || !launch::pays_for_a_launch(ctx, gain) {
        return None;
    }
    let threads = launch.threads_per_block();
    let who = wording::counted(threads as f64, "thread", "threads");
    let holds = u64::from(ctx.profile.max_warps_per_sm)
        * u64::from(ctx.facts.warp_size)
        * u64::from(ctx.profile.sms);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, Certainty::Exact, true),
        place: Place::Launch,
        message: wording::sentence([
            Some(format!(
                "launch many blocks of 128 to 256 threads ({who} at work, the GPU holds {holds})"
            )),
            Some(format!(
                "{who} at work, the GPU holds {holds}: the iterations of the loop do not need each other's results; give \
                 each thread some of them"
            )),
            Some(wording::gain(gain)),
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}

/// Blocks like these that fill the GPU.
fn filled(ctx: &Context<'_>) -> u64 {
    let warps = ctx.facts.launch.warps_per_block(ctx.facts.warp_size).max(1);
    let of_sm = u64::from(ctx.profile.max_warps_per_sm) / warps;
    of_sm.min(u64::from(ctx.profile.max_blocks_per_sm)).max(1) * u64::from(ctx.profile.sms)
}

/// The same threads in more blocks.
fn smaller_blocks(ctx: &Context<'_>, times: u64) -> Option<(f64, String)> {
    let launch = &ctx.facts.launch;
    let warp = u64::from(ctx.facts.warp_size).max(1);
    let others = launch.block[1] * launch.block[2];
    // Halves, so that rows of the block stay whole.
    let mut x = launch.block[0];
    let mut parts = 1;
    while parts < times
        && x.is_multiple_of(2)
        && x / 2 * others >= SMALLEST
        && (x / 2 * others).is_multiple_of(warp)
    {
        x /= 2;
        parts *= 2;
    }
    if parts == 1 {
        return None;
    }
    let [gx, gy, gz] = launch.grid;
    let block = [x, launch.block[1], launch.block[2]];
    let gain = launch::reshaped(ctx, [gx * parts, gy, gz], block);
    let text = format!(
        "{} blocks of {} hold the same threads",
        launch.blocks() * parts,
        wording::extents(block)
    );
    Some((gain, text))
}

/// The iterations of the outermost loops over more blocks.
fn split_loop(ctx: &Context<'_>, parts: u64) -> Option<(f64, String)> {
    let loops = iterations::divisible(ctx, parts as f64, None).into_iter();
    let loops: Vec<_> = loops.map(|of| of.path).collect();
    if loops.is_empty() {
        return None;
    }
    let axis = (0..3)
        .rev()
        .find(|axis| ctx.facts.launch.grid[*axis] == 1)?;
    let gain = ctx.trial(&[Change::SplitLoops { loops, parts, axis }])?;
    Some((gain, "split each thread's loop over more blocks".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Kernel;

    #[test]
    fn eight_fat_blocks_leave_a_hundred_sms_idle() {
        let mut kernel = Kernel::new().block([1024, 1, 1]);
        kernel.facts.launch.grid = [8, 1, 1];
        let findings = kernel.findings(|_| 3.0);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].rule, "launch/small-grid");
        assert_eq!(findings[0].place, Place::Launch);
        assert_eq!(findings[0].severity, Severity::Warning);
        assert_eq!(
            findings[0].message,
            "3.00x: launch more blocks (100 of 108 SMs idle)\n\
             100 of 108 SMs idle: a grid of 8 is 8 blocks of 1024 threads; 128 blocks of 64 hold the same \
             threads"
        );
    }

    #[test]
    fn one_block_and_a_grid_as_large_as_the_runs_problem_are_hints() {
        let mut kernel = Kernel::new().block([1024, 1, 1]);
        let mut severity = |blocks, source, by_text| {
            kernel.facts.launch.grid = [blocks, 1, 1];
            kernel.facts.launch.grid_source = source;
            kernel.grid_by_text = by_text;
            kernel.findings(|_| 3.0)[0].severity
        };
        assert_eq!(severity(8, Source::LaunchSite, true), Severity::Warning);
        assert_eq!(severity(8, Source::Run, true), Severity::Warning);
        assert_eq!(severity(8, Source::Run, false), Severity::Hint);
        // One block that takes long is not meant to; one that is soon done saves less than another launch costs.
        assert_eq!(severity(1, Source::LaunchSite, true), Severity::Warning);
        kernel.cycles = Some(2e4);
        kernel.facts.launch.grid_source = Source::LaunchSite;
        assert_eq!(kernel.findings(|_| 3.0)[0].severity, Severity::Hint);
    }

    #[test]
    fn assumed_grids_brief_kernels_and_nearly_full_ones_are_none() {
        let mut kernel = Kernel::new().block([1024, 1, 1]);
        kernel.facts.launch.grid = [100, 1, 1];
        assert_eq!(kernel.findings(|_| 3.0), []);
        kernel.facts.launch.grid = [8, 1, 1];
        kernel.cycles = Some(3000.0);
        assert_eq!(kernel.findings(|_| 3.0), [], "two microseconds");
        kernel.cycles = Some(1e6);
        kernel.facts.launch.grid_source = Source::Assumed;
        assert_eq!(kernel.findings(|_| 3.0), []);
    }

    #[test]
    fn one_small_block_without_a_loop_has_nothing_to_split() {
        let mut kernel = Kernel::new().block([64, 1, 1]);
        kernel.facts.launch.grid = [1, 1, 1];
        assert_eq!(kernel.findings(|_| 3.0), []);
    }
}
