//! launch/shared-opt-in: a program launches with more shared memory than a block has without asking, and does not ask.

pub(crate) mod ask;

use crate::rule::{Look, Rule, State, When};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "launch/shared-opt-in",
    title: "a launch needs more shared memory than it may have without `cudaFuncSetAttribute`",
    severity: "warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[ask::fixes],
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
    let most = u64::from(profile.shared_per_block_max());
    if ctx.asks_for_shared != Some(false)
        || dynamic == 0
        || all <= granted
        || all > most
        || ctx.occupancy.why_impossible.is_some()
    {
        return None;
    }
    Some(Finding {
        rule: RULE.id,
        severity: Severity::Warning,
        place: Place::Launch,
        message: format!(
            "call `cudaFuncSetAttribute` before this launch, else it fails ({all} bytes of shared memory)\n\
             {all} bytes of shared memory per block, {dynamic} of them dynamic: {} grants {granted} without asking and \
             up to {most} where the program sets `cudaFuncAttributeMaxDynamicSharedMemorySize`; no such call is seen",
            profile.name,
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
    fn only_a_program_that_is_seen_and_does_not_ask_is_told() {
        let mut kernel = Kernel::new().block([512, 1, 1]);
        for (asks, dynamic, told) in [
            (Some(false), 65_536, true),
            (Some(true), 65_536, false),
            (None, 65_536, false),
            (Some(false), 49_152, false),
            (Some(false), 200_000, false),
        ] {
            kernel.asks_for_shared = asks;
            kernel.facts.launch.dynamic_shared_bytes = dynamic;
            let findings = kernel.findings(|_| 1.0);
            let found = findings.iter().any(|finding| finding.rule == RULE.id);
            assert_eq!(found, told, "{asks:?} {dynamic}");
        }
    }
}
