//! async/shallow-pipeline: copies that run ahead of their use, but not far enough for the latency of memory.

use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::access::ahead;
use crate::wording::{self, counted};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "async/shallow-pipeline",
    title: "asynchronous copies run too few iterations ahead to cover the latency of memory",
    severity: "by predicted gain: information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Iterations ahead of which a further one is tried; more stages than these are rarely worth their shared memory.
const DEEPEST: u32 = 4;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let copies: Vec<usize> = (0..ctx.facts.accesses.len())
        .filter(|&number| ahead(&ctx.facts.accesses[number]).is_some())
        .collect();
    let &first = copies.first()?;
    let now = copies
        .iter()
        .filter_map(|&copy| ahead(&ctx.facts.accesses[copy]))
        .min()?;
    if now >= DEEPEST || !has_room(ctx, now) {
        return None;
    }
    let access = &ctx.facts.accesses[first];
    let gain = ctx.trial(&[Change::CopiesAhead {
        accesses: copies,
        iterations: now + 1,
    }])?;
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let reservation = wording::reservation(ctx.facts, access);
    let iterations = counted(f64::from(now), "iteration", "iterations");
    let latency = ctx.profile.dram_latency;
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, reservation.is_some()),
        place: Place::Site(access.site),
        message: wording::sentence([
            Some(format!(
                "add a stage to the pipeline ({iterations} between copy and wait)"
            )),
            Some(format!(
                "{iterations} between `{}` and the wait for it take less than the {latency:.0} cycles of device \
                 memory's latency: the loop waits for the rest; shared memory has room for one more stage",
                access.text
            )),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: Vec::new(),
        access: Some(first),
        shared_array: None,
        cure: None,
    })
}

/// One more stage in shared memory leaves as many blocks on an SM.
fn has_room(ctx: &Context<'_>, now: u32) -> bool {
    let (profile, facts) = (ctx.profile, ctx.facts);
    let bytes = ctx.input.resources.static_shared_bytes + facts.launch.dynamic_shared_bytes;
    let more = bytes + bytes / u64::from(now + 1);
    let blocks = u64::from(ctx.occupancy.active_blocks_per_sm.max(1));
    more <= u64::from(profile.shared_per_block_max())
        && more * blocks <= u64::from(profile.shared_per_sm)
}
