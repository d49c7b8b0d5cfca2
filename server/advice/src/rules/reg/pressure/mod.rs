//! reg/pressure: a few registers fewer would let in another block, and that would pay.

use warplens_facts::facts::Certainty;
use warplens_machine::{Limiter, registers_for_blocks};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::rules::occ::limiter;
use crate::wording;
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "reg/pressure",
    title: "a few registers fewer would let another block in, and the kernel wants it",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[],
};

/// What can be saved without another algorithm, as a part of the registers.
const FEW: f64 = 0.15;

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
    // Below, occ/limiter says it.
    let told = occupancy.fraction < limiter::ENOUGH;
    if told || occupancy.limiter != Limiter::Registers || occupancy.why_impossible.is_some() {
        return None;
    }
    let threads = facts.launch.threads_per_block();
    let registers = ctx.input.resources.registers_per_thread;
    let most = registers_for_blocks(profile, threads, occupancy.active_blocks_per_sm + 1)?;
    let fewer = registers.checked_sub(most).filter(|fewer| *fewer > 0)?;
    if f64::from(fewer) > f64::from(registers) * FEW {
        return None;
    }
    let gain = ctx.trial(&[Change::Registers(most)])?;
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let guessed = facts.launch.block_source.is_assumption();
    let (certainty, estimated) = if ctx.registers_known && !guessed {
        (Certainty::Exact, "")
    } else if ctx.registers_known {
        (Certainty::Assumed, "")
    } else {
        (Certainty::Assumed, " (estimated)")
    };
    let assumed = facts
        .launch
        .block_source
        .is_assumption()
        .then(|| format!("assumes block {}", wording::extents(facts.launch.block)));
    let plural = if fewer == 1 { "register" } else { "registers" };
    Some(Finding {
        rule: RULE.id,
        // A few registers more or less are within what an estimate is off by.
        severity: wording::severity(gain, certainty, true),
        place: Place::Kernel,
        message: wording::sentence([
            Some(format!(
                "save {fewer} {plural} per thread ({} blocks on an SM instead of {})",
                occupancy.active_blocks_per_sm + 1,
                occupancy.active_blocks_per_sm
            )),
            Some(format!(
                "{fewer} {plural} fewer let {} blocks of {threads} threads on an SM instead of {}: {registers} \
                 registers per thread{estimated}, limit {most}",
                occupancy.active_blocks_per_sm + 1,
                occupancy.active_blocks_per_sm
            )),
            Some(wording::gain(gain)),
            assumed,
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
    use crate::Severity;
    use crate::testing::Kernel;

    #[test]
    fn one_register_over_the_step_is_told_where_it_pays() {
        let mut kernel = Kernel::new().registers(41);
        assert_eq!(kernel.findings(|_| 1.0), [], "no gain");
        kernel.trial = 1.12;
        let findings = kernel.findings(|_| 1.0);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Hint);
        assert_eq!(
            findings[0].message,
            "1.12x: save 1 register per thread (6 blocks on an SM instead of 5)\n\
             1 register fewer let 6 blocks of 256 threads on an SM instead of 5: 41 registers per thread \
             (estimated), limit 40"
        );
        kernel.registers_known = true;
        assert_eq!(kernel.findings(|_| 1.0)[0].severity, Severity::Warning);
    }

    #[test]
    fn many_registers_are_another_algorithm() {
        let mut kernel = Kernel::new().registers(48);
        kernel.trial = 1.12;
        assert_eq!(kernel.findings(|_| 1.0), []);
    }
}
