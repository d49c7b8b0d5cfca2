//! host/sync-each: the host waits for the GPU in each iteration of a loop that launches.
//!
//! Launches that follow each other without a wait are launched while the one before runs. A wait in each iteration adds the time of a
//! launch to that of the kernel, which matters where the kernel is short.

use warplens_host::LoopCallKind;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::host;
use crate::wording::{self, percent};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "host/sync-each",
    title: "the host waits for the GPU after each launch of a loop: no launch is prepared while a kernel runs",
    severity: "information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Less than this part of an iteration is not worth a finding.
const LEAST: f64 = 0.1;

fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let around = host::busy_loop(ctx).filter(|around| host::launches_once(around))?;
    let (at, call) = host::first_call(around, &[LoopCallKind::Wait, LoopCallKind::Copy])?;
    let (kernel, launch) = host::times_us(ctx)?;
    let part = launch / (kernel + launch);
    if part < LEAST {
        return None;
    }
    let cure = match call.kind {
        LoopCallKind::Copy => {
            "copied once after the loop, or every few iterations, it leaves launches to follow each other"
        }
        _ => "without it launches of one stream follow each other in their order",
    };
    let message = wording::sentence([
        Some(format!(
            "do not wait in each iteration ({} of it is the overhead of the next launch)",
            percent(part)
        )),
        Some(format!(
            "the host waits for `{}` in each iteration: {} of it are the {} that the next launch takes",
            ctx.facts.name,
            percent(part),
            host::microseconds(launch)
        )),
        Some(cure.to_owned()),
    ]);
    Some(host::finding(RULE.id, Place::HostLoop(Some(at)), message))
}
