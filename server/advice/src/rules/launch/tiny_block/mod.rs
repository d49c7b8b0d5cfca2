//! launch/tiny-block: blocks so small that an SM runs out of blocks before it runs out of room for warps.

use warplens_facts::facts::Certainty;
use warplens_machine::Limiter;

use crate::rule::{Look, Rule, State};
use crate::subjects::launch;
use crate::wording::{self, percent};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "launch/tiny-block",
    title: "blocks so small that an SM holds few warps",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("launch/tail"),
    actions: &[],
};

/// Blocks of fewer threads are tiny, in threads.
const TINY: u64 = 64;
/// The part of the time from which on starting blocks is what costs.
const STARTS: f64 = 0.5;
/// What is a usual block to begin with, in threads.
const USUAL: u64 = 128;

pub(crate) fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let Context {
        facts,
        profile,
        occupancy,
        ..
    } = *ctx;
    let threads = facts.launch.threads_per_block();
    if threads == 0
        || threads >= TINY
        || occupancy.why_impossible.is_some()
        || occupancy.limiter != Limiter::Blocks
        || launch::brief(ctx)
    {
        return None;
    }
    let times = USUAL.div_ceil(threads);
    let [x, y, z] = facts.launch.grid;
    let block = facts.launch.block;
    let usual = launch::reshaped(
        ctx,
        [x.div_ceil(times).max(1), y, z],
        [block[0] * times, block[1], block[2]],
    );
    let full = launch::full(ctx);
    let (gain, whose) = if usual > full {
        (
            usual,
            format!(
                "the gain is that of the same threads in blocks of {}",
                threads * times
            ),
        )
    } else {
        (full, "the gain is that of all warps resident".to_owned())
    };
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let blocks = facts.launch.blocks() as f64;
    let starting = blocks * profile.block_start_cycles();
    let starts = (ctx.cycles)().map_or(0.0, |cycles| (starting / cycles).min(1.0));
    // The GPU starts one block after another: where that takes the time, more warps at a time would not help.
    let by_starts = starts >= STARTS;
    let whose = if by_starts {
        format!(
            "the GPU starts one block after another: {} of them take {} of the time; larger blocks are fewer",
            wording::number(blocks),
            percent(starts)
        )
    } else {
        whose
    };
    let why = if by_starts {
        format!("starting the blocks takes {} of the time", percent(starts))
    } else {
        format!("{} occupancy with {threads}", percent(occupancy.fraction))
    };
    let assumed = facts.launch.block_source.is_assumption();
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(
            gain,
            if assumed {
                Certainty::Assumed
            } else {
                Certainty::Exact
            },
            true,
        ),
        place: Place::Launch,
        message: wording::sentence([
            Some(format!("launch blocks of {USUAL} to 256 threads ({why})")),
            Some(format!(
                "{} occupancy, {} of {} warps: an SM holds at most {} blocks, and a block of {} is {threads} \
                 threads; begin with {USUAL} to 256",
                percent(occupancy.fraction),
                occupancy.active_warps_per_sm,
                profile.max_warps_per_sm,
                occupancy.active_blocks_per_sm,
                wording::extents(block),
            )),
            Some(wording::gain(gain)),
            Some(whose),
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Kernel;
    use crate::{Place, Severity};

    #[test]
    fn one_warp_a_block_leaves_half_of_an_sm_idle() {
        let findings = Kernel::new().block([32, 1, 1]).findings(|_| 1.4);
        assert_eq!(findings.len(), 1, "the limiter does not say it again");
        assert_eq!(findings[0].rule, "launch/tiny-block");
        assert_eq!(findings[0].place, Place::Launch);
        assert_eq!(findings[0].severity, Severity::Warning);
        assert_eq!(
            findings[0].message,
            "1.40x: launch blocks of 128 to 256 threads (50 % occupancy with 32)\n\
             50 % occupancy, 32 of 64 warps: an SM holds at most 32 blocks, and a block of 32 is 32 threads; \
             begin with 128 to 256\n\
             the gain is that of all warps resident"
        );
    }

    #[test]
    fn two_warps_a_block_and_small_blocks_without_gain_are_none() {
        assert_eq!(Kernel::new().block([64, 1, 1]).findings(|_| 1.4), []);
        assert_eq!(Kernel::new().block([32, 1, 1]).findings(|_| 1.0), []);
    }

    #[test]
    fn one_of_several_blocks_that_are_tried_is_none() {
        let mut kernel = Kernel::new().block([32, 1, 1]);
        kernel.block_varies = true;
        assert_eq!(kernel.findings(|_| 1.4), []);
    }

    #[test]
    fn registers_that_keep_blocks_out_are_not_the_blocks_fault() {
        let mut kernel = Kernel::new().block([32, 1, 1]).registers(200);
        kernel.trial = 1.4;
        let findings = kernel.findings(|_| 1.4);
        assert_eq!(findings[0].rule, "occ/limiter");
    }
}
