//! launch/tail: the last wave of blocks is partial and costs.

pub(crate) mod grid_stride;

use warplens_facts::facts::{Certainty, Node, Source};
use warplens_machine::Limiter;
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::rules::launch::{not_warp_multiple, one_fat_block, small_grid, tiny_block};
use crate::subjects::launch;
use crate::wording::{self, percent};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "launch/tail",
    title: "the last wave of blocks fills only part of the GPU",
    severity: "information",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[grid_stride::fixes],
};

/// From the most specific to the most general: what the block leaves idle in a warp, what the grid leaves idle of the
/// GPU, what small blocks leave idle of an SM, what big blocks make wait, what the last wave leaves idle.
const SHAPES: &[fn(&Context<'_>) -> Option<Finding>] = &[
    not_warp_multiple::finding,
    small_grid::finding,
    tiny_block::finding,
    one_fat_block::finding,
    last_wave,
];

/// One launch, one finding: of the rules about a launch's shape the first that has something to say.
pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

/// The finding about this launch's shape.
fn finding(ctx: &Context<'_>) -> Option<Finding> {
    // The default block is not the user's choice; a program that tries several blocks knows that they differ.
    let launch = &ctx.facts.launch;
    if launch.block_source == Source::Assumed || ctx.block_varies {
        return None;
    }
    // One block of less than a warp is serial on purpose, where it is soon done or has nothing to share out.
    if launch.blocks() <= 1 && launch.threads_per_block() < u64::from(ctx.facts.warp_size) {
        return small_grid::serial(ctx);
    }
    SHAPES.iter().find_map(|rule| rule(ctx))
}

/// True where a finding about the launch's shape says why few warps are resident.
pub(crate) fn says_residency(ctx: &Context<'_>) -> bool {
    finding(ctx).is_some_and(|finding| {
        finding.rule == tiny_block::RULE.id || finding.rule == one_fat_block::RULE.id
    })
}

/// Idle time that is worth a word, as a part of the kernel's.
const COSTS: f64 = 0.2;

/// The part of the whole waves that a grid has to fill to stand for them.
const NEAR: f64 = 0.9;

/// The finding about the last wave.
fn last_wave(ctx: &Context<'_>) -> Option<Finding> {
    let Context {
        facts,
        profile,
        occupancy,
        ..
    } = *ctx;
    // A register more or less makes another wave.
    if occupancy.limiter == Limiter::Registers && !ctx.registers_known {
        return None;
    }
    let wave = u64::from(occupancy.active_blocks_per_sm) * u64::from(profile.sms);
    let blocks = facts.launch.blocks();
    if wave == 0 || blocks <= wave || occupancy.limiter == Limiter::Grid || !launch::grid_given(ctx)
    {
        return None;
    }
    let (full, rest) = (blocks / wave, blocks % wave);
    let waves = blocks as f64 / wave as f64;
    let idle = 1.0 - waves / (full + 1) as f64;
    // Blocks that differ in length fill each other's gaps.
    if rest == 0 || idle < COSTS || uneven(&ctx.input.flow.nodes) || launch::brief(ctx) {
        return None;
    }
    // The time of the full waves alone, for as many blocks as there are; no more than the idle time can be gained.
    let whole = whole_waves(facts.launch.grid, full * wave)?;
    let without = ctx.trial(&[Change::Grid(whole)])?;
    let kept = whole.iter().product::<u64>();
    let gain = (without * kept as f64 / blocks as f64).clamp(1.0, 1.0 / (1.0 - idle));
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let waves_word = if full == 1 { "wave" } else { "waves" };
    Some(Finding {
        rule: RULE.id,
        // Blocks that end early make room for the next: waves are a picture, not a clock.
        severity: wording::severity(gain, Certainty::Exact, true).min(Severity::Information),
        place: Place::Launch,
        message: wording::sentence([
            Some(format!(
                "fill the last wave of blocks ({waves:.2} waves, the last has {} of the GPU)",
                percent(rest as f64 / wave as f64)
            )),
            Some(format!(
                "{waves:.2} waves: the last is {} of the GPU and takes up to {} of the time, behind {full} full \
                 {waves_word} of {wave} blocks ({} per SM)",
                percent(rest as f64 / wave as f64),
                percent(1.0 / (full + 1) as f64),
                occupancy.active_blocks_per_sm,
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

/// A grid of the same shape with at most this many blocks: which blocks are neighbours, and so what they share, stays as it is.
/// `None` where a shorter outermost axis comes nowhere near.
fn whole_waves(grid: [u64; 3], most: u64) -> Option<[u64; 3]> {
    let outermost = (0..3).rev().find(|axis| grid[*axis] > 1)?;
    let row: u64 = grid[..outermost].iter().product();
    let mut whole = grid;
    whole[outermost] = most / row.max(1);
    let kept = whole[outermost] * row;
    (kept as f64 >= NEAR * most as f64).then_some(whole)
}

/// True where some loop's turns depend on data.
fn uneven(flow: &[Node]) -> bool {
    flow.iter().any(|node| match node {
        Node::Loop { known, body, .. } => !known || uneven(body),
        Node::Branch {
            then, otherwise, ..
        } => uneven(then) || uneven(otherwise),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::whole_waves;
    use crate::testing::Kernel;
    use crate::{Place, Severity};

    fn of_blocks(blocks: u64) -> Kernel {
        let mut kernel = Kernel::new();
        kernel.facts.launch.grid = [blocks, 1, 1];
        kernel
    }

    #[test]
    fn a_wave_and_a_bit_costs_nearly_half() {
        // Eight blocks of 256 threads on each of 108 SMs.
        let mut kernel = of_blocks(900);
        kernel.trial = 2.0;
        let findings = kernel.findings(|_| 1.0);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].rule, "launch/tail");
        assert_eq!(findings[0].place, Place::Launch);
        assert_eq!(findings[0].severity, Severity::Information);
        assert_eq!(
            findings[0].message,
            "1.92x: fill the last wave of blocks (1.04 waves, the last has 4.2 % of the GPU)\n\
             1.04 waves: the last is 4.2 % of the GPU and takes up to 50 % of the time, behind 1 full wave of \
             864 blocks (8 per SM)"
        );
    }

    #[test]
    fn the_shape_of_the_grid_stays_and_idle_time_alone_can_be_gained() {
        assert_eq!(whole_waves([32, 32, 1], 864), Some([32, 27, 1]));
        assert_eq!(whole_waves([1, 900, 1], 864), Some([1, 864, 1]));
        assert_eq!(whole_waves([600, 2, 1], 864), None);
        assert_eq!(whole_waves([900, 2, 1], 864), None);
        let mut kernel = of_blocks(1024);
        kernel.trial = 100.0;
        let gain = kernel.findings(|_| 1.0)[0].gain;
        assert!((gain - 2.0 * 864.0 / 1024.0).abs() < 1e-9, "{gain}");
    }

    #[test]
    fn whole_waves_many_waves_and_nearly_full_ones_are_none() {
        for blocks in [864, 1728, 864 * 9 + 1, 1700, 500] {
            let mut kernel = of_blocks(blocks);
            kernel.trial = 2.0;
            assert_eq!(kernel.findings(|_| 1.0), [], "{blocks}");
        }
    }

    #[test]
    fn a_wave_that_costs_no_time_is_none() {
        assert_eq!(of_blocks(900).findings(|_| 1.0), []);
    }
}
