//! host/allocate-in-loop: device memory is taken or given back in each iteration of a loop that launches.
//!
//! `cudaFree` waits for all work of the device. `cudaMallocAsync` and `cudaFreeAsync` take memory from a pool in the order of a
//! stream and are none.

use warplens_host::LoopCallKind;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::host;
use crate::wording;
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "host/allocate-in-loop",
    title: "device memory is taken or given back in each iteration of a loop that launches",
    severity: "information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let around = host::busy_loop(ctx)?;
    let kinds = [LoopCallKind::Allocate, LoopCallKind::Free];
    let (at, call) = host::first_call(around, &kinds)?;
    let all = around.turns.calls.iter();
    let others = all.filter(|call| kinds.contains(&call.kind)).count() - 1;
    let others = match others {
        0 => String::new(),
        1 => " and 1 other such call".to_owned(),
        more => format!(" and {more} other such calls"),
    };
    let waits = around
        .turns
        .calls
        .iter()
        .any(|call| call.kind == LoopCallKind::Free);
    let message = wording::sentence([
            Some(format!(
            "allocate once, before the loop (`{}`{others} in each iteration)",
            call.name
        )),
        Some(format!(
            "`{}`{others} in each iteration of the loop that launches `{}`",
            call.name, ctx.facts.name
        )),
        waits.then(|| "giving memory back waits for all work of the GPU".to_owned()),
        Some("taken once before the loop, or from a pool (`cudaMallocAsync`), it costs the loop nothing".to_owned()),
    ]);
    Some(host::finding(RULE.id, Place::HostLoop(Some(at)), message))
}
