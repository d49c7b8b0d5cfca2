//! async/narrow-copy: asynchronous copies of 4 or 8 bytes, where 16 lie side by side.

use warplens_facts::facts::{Access, Certainty, Form, Op, Pattern, Space};

use crate::rule::{Look, Rule, State, When};
use crate::wording::number;
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "async/narrow-copy",
    title: "asynchronous copies of 4 or 8 bytes, where lanes side by side have 16 aligned bytes",
    severity: "hint",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// What one instruction copies at most, and what alone passes L1 by.
const WIDEST: u32 = 16;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let accesses = ctx.facts.accesses.iter().enumerate();
    accesses
        .filter(|(_, access)| is_narrow(access, ctx.facts.warp_size))
        .filter(|(_, access)| fills_rows(ctx, access))
        .filter_map(|(index, access)| {
            let warps = ctx.input.warps();
            let copies = access.requests? / warps;
            let bytes = access.bytes_per_lane;
            let enough = copies * f64::from(bytes) / f64::from(WIDEST);
            Some(Finding {
                rule: RULE.id,
                severity: Severity::Hint,
                place: Place::Site(access.site),
                message: format!(
                    "copy {WIDEST} bytes per lane at a time ({} copies per warp, {} are enough)\n\
                     {} copies per warp of {bytes} bytes a lane ({} of {WIDEST} are enough): `{}` lies side by side with its \
                     neighbours in both memories, and copies of {WIDEST} bytes pass L1 by",
                    number(copies),
                    number(enough),
                    number(copies),
                    number(enough),
                    access.text
                ),
                gain: 1.0,
                related: Vec::new(),
                access: Some(index),
                shared_array: None,
                cure: None,
            })
        })
        .collect()
}

/// Whole warps that copy words side by side from a sector's start on.
fn is_narrow(access: &Access, lanes: u32) -> bool {
    access.ahead.is_some()
        && access.op == Op::Load
        && access.space == Space::Global
        && access.form == Form::Lanes
        && access.bytes_per_lane < WIDEST
        && access.pattern == Pattern::Coalesced
        && access.certainty == Certainty::Exact
        && access.active_lanes_per_request == Some(f64::from(lanes))
        && access.transactions_per_request == access.ideal_transactions_per_request
        && access.requests.is_some_and(|requests| requests > 0.0)
}

/// True where its store lies side by side as well.
fn fills_rows(ctx: &Context<'_>, load: &Access) -> bool {
    ctx.facts.accesses.iter().any(|store| {
        store.site == load.site
            && store.op == Op::Store
            && store.space == Space::Shared
            && store.pattern == Pattern::Coalesced
            && store.passes_per_request == Some(f64::from(store.bytes_per_lane) / 4.0)
    })
}
