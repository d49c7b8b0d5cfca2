//! occ/no-launch-bounds: a big block that can launch only while the compiler happens to use few registers.

pub(crate) mod launch_bounds;

use warplens_ir::Language;
use warplens_machine::registers_for_blocks;

use crate::rule::{Look, Rule, State, When};
use crate::wording;
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "occ/no-launch-bounds",
    title: "nothing tells the compiler how big the block is, and the registers are near what that block can have",
    severity: "hint",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[launch_bounds::fixes],
};

/// From this part of the registers that a block of the size can have on.
const NEAR: f64 = 0.75;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let Context { facts, profile, .. } = *ctx;
    let kernel = ctx.kernel;
    let bounded = kernel.max_threads.is_some()
        || kernel.max_registers.is_some()
        || kernel.required_block.is_some();
    if bounded || facts.launch.block_source.is_assumption() {
        return None;
    }
    let threads = facts.launch.threads_per_block();
    let most = registers_for_blocks(profile, threads, 1)?;
    let registers = ctx.input.resources.registers_per_thread;
    // A block that can have every register there is needs no promise.
    if most >= profile.max_registers_per_thread || f64::from(registers) < f64::from(most) * NEAR {
        return None;
    }
    let words = match kernel.language {
        Language::OpenCl => "`reqd_work_group_size`",
        _ => "`__launch_bounds__`",
    };
    let estimated = if ctx.registers_known {
        ""
    } else {
        " (estimated)"
    };
    Some(Finding {
        rule: RULE.id,
        severity: Severity::Hint,
        place: Place::Kernel,
        message: format!(
            "add {words}: {registers} registers per thread{estimated}, the launch allows {most}\n\
             {registers} registers per thread{estimated}, and a block of {} can have {most}: without {words} nothing \
             keeps a compiler from using more, and the launch would fail",
            wording::extents(facts.launch.block)
        ),
        gain: 1.0,
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
    use warplens_facts::facts::Source;

    fn told(kernel: &Kernel) -> bool {
        let findings = kernel.findings(|_| 1.0);
        findings.iter().any(|finding| finding.rule == RULE.id)
    }

    #[test]
    fn sixty_registers_and_a_thousand_threads_are_near_the_end() {
        let kernel = Kernel::new().block([1024, 1, 1]).registers(60);
        let findings = kernel.findings(|_| 1.0);
        assert_eq!(
            findings[0].message,
            "add `__launch_bounds__`: 60 registers per thread (estimated), the launch allows 64\n\
             60 registers per thread (estimated), and a block of 1024 can have 64: without `__launch_bounds__` \
             nothing keeps a compiler from using more, and the launch would fail"
        );
        assert_eq!(findings[0].place, Place::Kernel);
    }

    #[test]
    fn few_registers_small_blocks_and_assumed_blocks_are_none() {
        assert!(!told(&Kernel::new().block([1024, 1, 1]).registers(40)));
        assert!(!told(&Kernel::new().block([256, 1, 1]).registers(250)));
        let mut assumed = Kernel::new().block([1024, 1, 1]).registers(60);
        assumed.facts.launch.block_source = Source::Assumed;
        assert!(!told(&assumed));
    }
}
