//! mem/warp-same-address: all lanes of a warp load one word after the other, each alone.

use warplens_facts::facts::{Access, Op, Pattern, Space};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::flow::iterations;
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "mem/warp-same-address",
    title: "all lanes of a warp load the same word of device memory, another one in each iteration",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Words that one load could bring: 16 bytes.
const WIDE: f64 = 16.0;
/// Words that follow in fewer iterations are not worth it.
const FEWEST: f64 = 8.0;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let accesses = ctx.facts.accesses.iter().enumerate();
    accesses
        .filter(|(_, access)| walks_alone(access))
        .filter_map(|(index, access)| {
            let trips = iterations(&ctx.input.flow.nodes, index, 1.0)?;
            let part = f64::from(access.bytes_per_lane) / WIDE;
            if trips < FEWEST || part >= 1.0 {
                return None;
            }
            let gain = ctx.trial(&[Change::PartOfAccess {
                access: index,
                part,
            }])?;
            if gain < wording::WORTH_KNOWING {
                return None;
            }
            let reservation = wording::reservation(ctx.facts, access);
            Some(Finding {
                rule: RULE.id,
                severity: wording::severity(gain, access.certainty, reservation.is_some()),
                place: Place::Site(access.site),
                message: wording::sentence([
            Some(format!(
                        "load a word of `{}` per lane and broadcast it ({} loads of one word per warp)",
                        wording::array_of(access),
                        number(trips)
                    )),
                    Some(format!(
                        "{} loads of {} bytes for a warp: all its lanes read the same word of `{}`, the next one in \
                         each iteration",
                        number(trips),
                        access.bytes_per_lane,
                        access.text
                    )),
                    Some(wording::gain(gain)),
                    reservation,
                ]),
                gain,
                related: Vec::new(),
                access: Some(index),
                shared_array: None,
                cure: None,
            })
        })
        .collect()
}

/// One word for all lanes, and in each iteration the one behind it.
fn walks_alone(access: &Access) -> bool {
    let step = access
        .linear
        .as_ref()
        .and_then(|linear| linear.loops.last());
    access.space == Space::Global
        && access.op == Op::Load
        && access.pattern == Pattern::Broadcast
        && step.is_some_and(|step| step.unsigned_abs() == u64::from(access.bytes_per_lane))
}
