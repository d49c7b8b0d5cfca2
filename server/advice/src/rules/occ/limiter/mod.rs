//! occ/limiter: too few resident warps, and what keeps more out.

use warplens_facts::facts::{Certainty, OpClass};
use warplens_machine::{Limiter, Step};
use warplens_models::{Change, Factor};

use crate::rule::{Look, Rule, State, When};
use crate::rules::launch::tail;
use crate::subjects::access::ahead;
use crate::subjects::launch::{is_free, reshaped};
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
    if is_pipelined(ctx) {
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
    let (gain, of_step) = gain(ctx)?;
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
            Some(if of_step {
                "the gain is that of this step".to_owned()
            } else {
                "the gain is that of all warps resident".to_owned()
            }),
            block,
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}

/// True where matrices are multiplied while copies run ahead of them: few warps with large tiles are how such a kernel is made, and
/// what more of them would still gain is less than a model can tell.
fn is_pipelined(ctx: &Context<'_>) -> bool {
    let mut operations = ctx.facts.operations.iter();
    operations.any(|operation| operation.operator.class() == OpClass::Tensor)
        && ctx
            .facts
            .accesses
            .iter()
            .any(|access| ahead(access).is_some())
}

/// What the next step gains, and true; where a block of another shape cannot be followed what all warps resident gain, and false.
fn gain(ctx: &Context<'_>) -> Option<(f64, bool)> {
    let resources = &ctx.input.resources;
    let launch = &ctx.facts.launch;
    let all = || (ctx.gain(Removal::Factor(Factor::Occupancy)), false);
    match ctx.occupancy.step? {
        Step::Grid => None,
        Step::Lighter { registers, shared } => {
            let now = resources.static_shared_bytes + launch.dynamic_shared_bytes;
            let mut changes = Vec::new();
            if registers < resources.registers_per_thread {
                changes.push(Change::Registers(registers));
            }
            if shared < now {
                changes.push(Change::LessSharedMemory(now - shared));
            }
            Some((ctx.trial(&changes)?, true))
        }
        Step::Block(threads) => {
            let [x, y, z] = launch.block;
            let rows = y * z;
            if rows == 0 || !threads.is_multiple_of(rows) {
                return Some(all());
            }
            let grid = launch.grid;
            let block = [threads / rows, y, z];
            let grid = [(grid[0] * x).div_ceil(block[0].max(1)), grid[1], grid[2]];
            if !is_free(ctx) {
                return Some(all());
            }
            Some((reshaped(ctx, grid, block), true))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::testing::{Kernel, access, barrier};
    use warplens_facts::facts::{Operation, Operator, Source};
    use warplens_machine::Arithmetic;

    #[test]
    fn estimated_registers_are_no_ground_for_more_than_a_hint() {
        let mut kernel = Kernel::new().registers(200);
        kernel.trial = 1.5;
        let findings = kernel.findings(|_| 1.0);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Hint);
        assert!(findings[0].message.contains("(estimated)"));
    }

    #[test]
    fn shared_memory_that_keeps_blocks_out_is_named_with_the_next_step() {
        let mut kernel = Kernel::new().block([128, 1, 1]).shared(49_152);
        kernel.trial = 1.5;
        // All warps resident would gain more: that is not what is advised.
        let findings = kernel.findings(|_| 3.0);
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
            message.contains("for 4 blocks\nthe gain is that of this step"),
            "{message}"
        );
    }

    #[test]
    fn enough_warps_or_no_gain_are_none() {
        let mut full = Kernel::new();
        full.trial = 1.5;
        assert_eq!(full.findings(|_| 1.5), []);
        let mut idle = Kernel::new().block([128, 1, 1]).shared(49_152);
        idle.trial = 1.01;
        assert_eq!(idle.findings(|_| 1.5), []);
    }

    #[test]
    fn matrices_that_copies_run_ahead_of_need_no_more_warps() {
        let mut copy = access(5);
        copy.loop_depth = 1;
        let mut kernel = Kernel::new().block([128, 1, 1]).shared(49_152).access(copy);
        kernel.trial = 1.5;
        let matrices = Operation {
            operator: Operator::Arithmetic(Arithmetic::Matrix),
            ..barrier(7)
        };
        kernel.facts.operations.push(matrices);
        let told = |kernel: &Kernel| {
            let findings = kernel.findings(|_| 1.0);
            findings.iter().any(|finding| finding.rule == RULE.id)
        };
        assert!(told(&kernel));
        kernel.facts.accesses[0].ahead = Some(2);
        assert!(!told(&kernel));
        kernel.facts.operations.clear();
        assert!(told(&kernel));
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
        kernel.trial = 1.5;
        let message = &kernel.findings(|_| 1.5)[0].message;
        assert!(
            message.contains("128 registers per thread (estimated)"),
            "{message}"
        );
        assert!(message.ends_with("\nassumes block 256"), "{message}");
    }
}
