//! host/launch-loop: a loop launches a kernel that runs shorter than the host takes to launch it.
//!
//! The GPU then waits for the host between two launches. A loop in which the host waits as well is host/sync-each's.

use warplens_host::LoopCallKind;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::host;
use crate::wording::{self, percent};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "host/launch-loop",
    title: "a loop launches a kernel that runs shorter than its launch takes: the GPU waits for the host",
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
    let around = host::busy_loop(ctx).filter(|around| host::launches_once(around))?;
    if host::first_call(around, &[LoopCallKind::Wait, LoopCallKind::Copy]).is_some() {
        return None;
    }
    let (kernel, launch) = host::times_us(ctx)?;
    if kernel >= launch {
        return None;
    }
    let idle = percent(1.0 - kernel / launch);
    let message = wording::sentence([
            Some(format!(
            "launch the whole loop at once (the GPU waits for the host {idle} of the time)"
        )),
        Some(format!(
            "the GPU waits for the host {idle} of the time: a launch takes {}, `{}` runs {}",
            host::microseconds(launch),
            ctx.facts.name,
            host::microseconds(kernel)
        )),
        Some("a graph (`cudaGraphLaunch`) starts all launches of the loop at once, a kernel that loops needs one".to_owned()),
    ]);
    Some(host::finding(RULE.id, Place::HostLoop(None), message))
}
