//! launch/one-fat-block: an SM holds one big block, and idles while that waits at a barrier.

use warplens_facts::facts::Certainty;
use warplens_machine::Limiter;
use warplens_models::Factor;

use crate::rule::{Look, Rule, State};
use crate::subjects::launch;
use crate::wording;
use crate::{Context, Finding, Place, Removal};

pub(crate) const RULE: Rule = Rule {
    id: "launch/one-fat-block",
    title: "one large block per SM: nothing runs while it waits at a barrier",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("launch/tail"),
    actions: &[],
};

/// Blocks of at least this many threads are large.
const FAT: u64 = 512;

pub(crate) fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let Context {
        facts,
        profile,
        occupancy,
        ..
    } = *ctx;
    let threads = facts.launch.threads_per_block();
    // A grid that gives each SM one block would not give it two smaller ones of the same work either way.
    let alone = occupancy.active_blocks_per_sm == 1 && occupancy.limiter != Limiter::Grid;
    if threads < FAT || !alone || !launch::has_barriers(ctx) || launch::brief(ctx) {
        return None;
    }
    let why = match occupancy.limiter {
        Limiter::Registers if ctx.registers_known => format!(
            "{} registers per thread leave room for no second",
            ctx.input.resources.registers_per_thread
        ),
        Limiter::Shared => format!(
            "{} bytes of shared memory per block leave room for no second",
            ctx.input.resources.static_shared_bytes + facts.launch.dynamic_shared_bytes
        ),
        Limiter::Warps => format!("an SM holds {} warps", profile.max_warps_per_sm),
        // Registers that are estimated, one block too many: no ground.
        Limiter::Registers | Limiter::Blocks | Limiter::Grid => return None,
    };
    let gain = ctx.gain(Removal::Factor(Factor::Synchronisation));
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, Certainty::Exact, true),
        place: Place::Launch,
        message: wording::sentence([
            Some(format!(
                "launch two smaller blocks per SM (1 block of {} threads waits alone)",
                wording::extents(facts.launch.block)
            )),
            Some(format!(
                "1 block of {} threads an SM waits at its barriers alone: {why}; two smaller blocks run while \
                 the other waits",
                wording::extents(facts.launch.block)
            )),
            Some(wording::gain(gain)),
            Some("the gain is that of barriers without a wait".to_owned()),
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
    use crate::testing::{Kernel, barrier};

    fn told(kernel: &Kernel) -> Vec<String> {
        let findings = kernel.findings(|_| 1.3).into_iter();
        let own = findings.filter(|finding| finding.rule == RULE.id);
        own.map(|finding| finding.message).collect()
    }

    #[test]
    fn a_block_that_waits_alone_is_a_finding() {
        // Two blocks with these bytes fit on an A100.
        let kernel = Kernel::new()
            .block([1024, 1, 1])
            .shared(40_000)
            .operation(barrier(9));
        assert_eq!(told(&kernel), Vec::<String>::new());
        let mut fat = Kernel::new().block([1024, 1, 1]).operation(barrier(9));
        fat.facts.launch.dynamic_shared_bytes = 100_000;
        assert_eq!(
            told(&fat),
            [
                "1.30x: launch two smaller blocks per SM (1 block of 1024 threads waits alone)\n\
             1 block of 1024 threads an SM waits at its barriers alone: 100000 bytes of shared memory per block \
                 leave room for no second; two smaller blocks run while the other waits\n\
             the gain is that of barriers without a wait"
            ]
        );
    }

    #[test]
    fn without_barriers_no_warp_waits() {
        let mut fat = Kernel::new().block([1024, 1, 1]);
        fat.facts.launch.dynamic_shared_bytes = 100_000;
        assert_eq!(told(&fat), Vec::<String>::new());
    }
}
