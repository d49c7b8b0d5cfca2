//! occ/limiter: too few resident warps, and what keeps more out.

use warplens_facts::facts::Certainty;
use warplens_machine::Limiter;
use warplens_models::Factor;

use crate::rule::{Look, Rule, State, When};
use crate::rules::launch::tail;
use crate::wording::{self, percent};
use crate::{Context, Finding, Place, Removal};

pub(crate) const RULE: Rule = Rule {
    id: "occ/limiter",
    title: "too few resident warps to hide latency, and what keeps further blocks out",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[],
};

/// Half of the warps an SM holds is enough for most kernels; above it nothing is said.
pub(crate) const ENOUGH: f64 = 0.5;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let Context {
        facts,
        profile,
        occupancy,
        ..
    } = *ctx;
    // A program that tries several blocks knows that they differ.
    if occupancy.why_impossible.is_some() || occupancy.fraction >= ENOUGH || ctx.block_varies {
        return None;
    }
    let threads = facts.launch.threads_per_block();
    let blocks = match occupancy.active_blocks_per_sm {
        1 => "one block".to_owned(),
        n => format!("{n} blocks"),
    };
    let (why, place) = match occupancy.limiter {
        // A grid that does not fill the GPU is no matter of residency.
        Limiter::Grid => return None,
        Limiter::Registers => {
            let registers = ctx.input.resources.registers_per_thread;
            let source = if ctx.registers_known {
                ""
            } else {
                " (estimated)"
            };
            (
                format!(
                    "{registers} registers per thread{source} leave room for {blocks} of {threads} threads"
                ),
                Place::Kernel,
            )
        }
        Limiter::Shared => {
            let bytes = ctx.input.resources.static_shared_bytes + facts.launch.dynamic_shared_bytes;
            (
                format!(
                    "{bytes} bytes of shared memory per block leave room for {blocks} of {threads} threads"
                ),
                Place::Kernel,
            )
        }
        Limiter::Warps => (
            format!("an SM has room for the warps of {blocks} of {threads} threads"),
            Place::Launch,
        ),
        Limiter::Blocks => (
            format!("an SM holds at most {blocks}, of {threads} threads each"),
            Place::Launch,
        ),
    };
    let gain = ctx.gain(Removal::Factor(Factor::Occupancy));
    if gain < wording::WORTH_KNOWING || tail::says_residency(ctx) {
        return None;
    }
    let estimated = occupancy.limiter == Limiter::Registers && !ctx.registers_known;
    let certainty = if estimated || facts.launch.block_source.is_assumption() {
        Certainty::Assumed
    } else {
        Certainty::Exact
    };
    // The estimate of the registers is stated in the sentence itself.
    let block = facts
        .launch
        .block_source
        .is_assumption()
        .then(|| format!("assumes block {}", wording::extents(facts.launch.block)));
    Some(Finding {
        rule: RULE.id,
        // Registers predicted from the source are no ground for a warning.
        severity: wording::severity(gain, certainty, true),
        place,
        message: wording::sentence([
            Some(format!(
                "keep more warps resident ({} of {} per SM, {} occupancy)",
                occupancy.active_warps_per_sm,
                profile.max_warps_per_sm,
                percent(occupancy.fraction)
            )),
            Some(format!(
                "{} occupancy, {} of {} warps: {why}",
                percent(occupancy.fraction),
                occupancy.active_warps_per_sm,
                profile.max_warps_per_sm
            )),
            occupancy.next_step.clone(),
            Some(wording::gain(gain)),
            Some("the gain is that of all warps resident".to_owned()),
            block,
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
    use crate::Severity;
    use crate::testing::Kernel;
    use warplens_facts::facts::Source;

    #[test]
    fn estimated_registers_are_no_ground_for_more_than_a_hint() {
        let findings = Kernel::new().registers(200).findings(|_| 1.5);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Hint);
        assert!(findings[0].message.contains("(estimated)"));
    }

    #[test]
    fn shared_memory_that_keeps_blocks_out_is_named_with_the_next_step() {
        let findings = Kernel::new()
            .block([128, 1, 1])
            .shared(49_152)
            .findings(|_| 1.5);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].rule, "occ/limiter");
        assert_eq!(findings[0].severity, Severity::Warning);
        assert_eq!(findings[0].place, Place::Kernel);
        let message = &findings[0].message;
        assert!(
            message.starts_with(
                "1.50x: keep more warps resident (12 of 64 per SM, 18.8 % occupancy)\n\
                 18.8 % occupancy, 12 of 64 warps: 49152 bytes of shared memory per block leave room for \
                 3 blocks of 128 threads\nuse at most "
            ),
            "{message}"
        );
        assert!(
            message.contains("the gain is that of all warps"),
            "{message}"
        );
    }

    #[test]
    fn enough_warps_or_no_gain_are_none() {
        assert_eq!(Kernel::new().findings(|_| 1.5), []);
        let idle = Kernel::new()
            .block([128, 1, 1])
            .shared(49_152)
            .findings(|_| 1.01);
        assert_eq!(idle, []);
    }

    #[test]
    fn a_small_grid_is_not_this_rule() {
        let mut kernel = Kernel::new();
        kernel.facts.launch.grid = [8, 1, 1];
        let findings = kernel.findings(|_| 1.5);
        assert!(findings.iter().all(|finding| finding.rule != RULE.id));
    }

    #[test]
    fn estimated_registers_and_an_assumed_block_are_said() {
        let mut kernel = Kernel::new().registers(128);
        kernel.facts.launch.block_source = Source::Assumed;
        let message = &kernel.findings(|_| 1.5)[0].message;
        assert!(
            message.contains("128 registers per thread (estimated)"),
            "{message}"
        );
        assert!(message.ends_with("\nassumes block 256"), "{message}");
    }
}
