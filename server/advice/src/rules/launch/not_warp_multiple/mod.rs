//! launch/not-warp-multiple: the last warp of every block has idle lanes.

pub(crate) mod round_block;

use warplens_facts::facts::{Certainty, Source};

use crate::rule::{Look, Rule, State};
use crate::subjects::flow::guesses_iterations;
use crate::subjects::launch;
use crate::wording;
use crate::{Context, Finding, Place, Removal, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "launch/not-warp-multiple",
    title: "the block is not a multiple of the warp: lanes idle in every block",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("launch/tail"),
    actions: &[round_block::fixes],
};

/// A block of a warp's lanes divided by this, or fewer, leaves nearly all of them idle.
const FEW: u64 = 8;
/// Fewer blocks than this may be meant to be one thread each.
const MANY: u64 = 32;

pub(crate) fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let given = &ctx.facts.launch;
    let warp = u64::from(ctx.facts.warp_size);
    let threads = given.threads_per_block();
    // The default block is not the user's choice.
    if given.block_source == Source::Assumed || warp == 0 || threads.is_multiple_of(warp) {
        return None;
    }
    let warps = threads.div_ceil(warp);
    let idle = warps * warp - threads;
    let gain = ctx.gain(Removal::IdleLanes);
    // Most lanes of every warp idle, whatever the time that nothing predicts: how long a loop is, or how many blocks there are. Fewer
    // warps gain nothing where the SMs had room for all.
    let open = given.grid_source.is_assumption();
    let unknown = open
        || gain < wording::VISIBLE
            && given.blocks() >= MANY
            && guesses_iterations(&ctx.input.flow.nodes);
    // Of a kernel that is over before the next can be launched, no time is won.
    let brief = launch::brief(ctx) && (ctx.cycles)().is_some();
    let many = given.blocks() >= MANY;
    let unpredicted = threads * FEW <= warp && (unknown || brief && many);
    let gain = if unpredicted || brief { 1.0 } else { gain };
    let predicted = wording::severity(gain, Certainty::Exact, true);
    let severity = if unpredicted {
        Severity::Information
    } else if open {
        predicted.min(Severity::Information)
    } else {
        predicted
    };
    let worth = if brief && unpredicted {
        format!(
            "up to {warp} threads share the issue of one; at this size the launch takes longer than the kernel"
        )
    } else if unpredicted {
        format!("up to {warp} threads share the issue of one (no prediction)")
    } else {
        wording::gain(gain)
    };
    let full = match warps {
        1 => "the only warp of every block".to_owned(),
        n => format!("the last of every block's {n} warps"),
    };
    Some(Finding {
        rule: RULE.id,
        severity,
        place: Place::Launch,
        message: wording::sentence([
            Some(format!(
                "make the block a multiple of {warp} threads ({idle} of {warp} lanes idle in a warp)"
            )),
            Some(format!(
                "{idle} of {warp} lanes idle in {full}: a block of {} is {}, no multiple of \
                 {warp}",
                wording::extents(given.block),
                wording::counted(threads as f64, "thread", "threads")
            )),
            Some(worth),
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
    use super::*;
    use crate::testing::Kernel;

    #[test]
    fn a_hundred_threads_leave_lanes_idle() {
        let findings = Kernel::new()
            .block([100, 1, 1])
            .findings(|removal| match removal {
                Removal::IdleLanes => 1.05,
                _ => 1.0,
            });
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].rule, "launch/not-warp-multiple");
        assert_eq!(findings[0].place, Place::Launch);
        assert_eq!(findings[0].severity, Severity::Information);
        assert_eq!(
            findings[0].message,
            "1.05x: make the block a multiple of 32 threads (28 of 32 lanes idle in a warp)\n\
             28 of 32 lanes idle in the last of every block's 4 warps: a block of 100 is 100 threads, \
             no multiple of 32"
        );
    }

    #[test]
    fn less_than_a_warp_is_told_too() {
        let findings = Kernel::new().block([5, 3, 1]).findings(|_| 1.0);
        assert!(
            findings[0]
                .message
                .contains("17 of 32 lanes idle in the only warp of every block"),
            "{}",
            findings[0].message
        );
        assert_eq!(findings[0].severity, Severity::Hint);
    }

    #[test]
    fn whole_warps_and_the_assumed_block_are_none() {
        assert_eq!(Kernel::new().block([16, 6, 1]).findings(|_| 1.5), []);
        let mut assumed = Kernel::new().block([100, 1, 1]);
        assumed.facts.launch.block_source = Source::Assumed;
        assert_eq!(assumed.findings(|_| 1.5), []);
    }
}
