//! smem/over-budget: a block that must be granted its shared memory before it can be launched.

use crate::rule::{Look, Rule, State, When};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "smem/over-budget",
    title: "more shared memory than a block has without opting in",
    severity: "information",
    // Whether the host program opts in is not seen from the kernel.
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let Context { facts, profile, .. } = *ctx;
    let (fixed, dynamic) = (
        ctx.input.resources.static_shared_bytes,
        facts.launch.dynamic_shared_bytes,
    );
    let all = fixed + dynamic;
    let granted = u64::from(profile.shared_per_block);
    // A program that is seen to launch is the affair of `launch/shared-opt-in`.
    if ctx.asks_for_shared.is_some()
        || dynamic == 0
        || all <= granted
        || ctx.occupancy.why_impossible.is_some()
    {
        return None;
    }
    let parts = if fixed > 0 {
        format!("{fixed} static and {dynamic} dynamic")
    } else {
        "dynamic".to_owned()
    };
    Some(Finding {
        rule: RULE.id,
        severity: Severity::Information,
        place: Place::Launch,
        message: format!(
            "ask for {all} bytes of shared memory with `cudaFuncSetAttribute`, else the launch fails\n\
             {all} bytes of shared memory per block, {parts}: more than the {granted} that {} grants; the launch fails \
             unless `cudaFuncSetAttribute` asks for them (at most {})",
            profile.name,
            profile.shared_per_block_max()
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

    #[test]
    fn what_needs_an_opt_in_is_told_and_what_is_granted_is_not() {
        let mut kernel = Kernel::new().block([512, 1, 1]).shared(1024);
        for (dynamic, told) in [
            (40_000, false),
            (48_128, false),
            (48_129, true),
            (80_000, true),
            (200_000, false),
        ] {
            kernel.facts.launch.dynamic_shared_bytes = dynamic;
            let findings = kernel.findings(|_| 1.0);
            assert_eq!(
                findings.iter().any(|finding| finding.rule == RULE.id),
                told,
                "{dynamic}"
            );
        }
    }
}
