//! async/wait-all: a loop waits for the copies that it has just issued.

use warplens_facts::facts::{Access, Op, Space};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::wording;
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "async/wait-all",
    title: "a loop waits for the asynchronous copies of the same iteration: nothing overlaps them",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Speedups below this are not reported.
const GAIN: f64 = 1.02;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let copies: Vec<usize> = ctx
        .facts
        .accesses
        .iter()
        .enumerate()
        .filter(|(_, access)| is_waited_for(access))
        .map(|(number, _)| number)
        .collect();
    let &first = copies.first()?;
    let access = &ctx.facts.accesses[first];
    let gain = ctx.trial(&[Change::CopiesAhead {
        accesses: copies.clone(),
        iterations: 2,
    }])?;
    if gain < GAIN {
        return None;
    }
    let mut related: Vec<_> = copies[1..]
        .iter()
        .map(|&copy| &ctx.facts.accesses[copy])
        .map(|copy| (copy.site, format!("so it does for `{}`", copy.text)))
        .filter(|(site, _)| *site != access.site)
        .collect();
    related.dedup_by_key(|(site, _)| *site);
    let reservation = wording::reservation(ctx.facts, access);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, reservation.is_some()),
        place: Place::Site(access.site),
        message: wording::sentence([
            Some(
                "copy the next tile while this one is used (0 iterations between copy and wait)"
                    .to_owned(),
            ),
            Some(format!(
                "0 iterations between `{}` and the wait for it: the loop waits for the latency of memory; a second \
                 stage of the tile lets the copies of the next iteration run meanwhile",
                access.text
            )),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related,
        access: Some(first),
        shared_array: None,
        cure: None,
    })
}

/// A copy in a loop that the same iteration waits for.
fn is_waited_for(access: &Access) -> bool {
    access.ahead == Some(0)
        && access.op == Op::Load
        && access.space == Space::Global
        && access.loop_depth > 0
        && access.requests != Some(0.0)
}
