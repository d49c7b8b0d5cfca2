//! atomic/hot-address: the lanes of a warp add floating-point numbers to one address, one after the other.

pub(crate) mod sum_over_warp;

use warplens_facts::facts::{Certainty, Pattern, Space};
use warplens_ir::Type;
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::rules::atomic::in_loop;
use crate::subjects::atomics::{Atomic, unused};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "atomic/hot-address",
    title: "the lanes of a warp add to one address, one after the other",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[sum_over_warp::fixes],
};

/// The findings about atomics: one access, one rule.
pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let sums = unused(ctx).into_iter().filter(Atomic::adds);
    sums.filter_map(|atomic| in_loop::finding(ctx, &atomic).or_else(|| finding(ctx, &atomic)))
        .collect()
}

/// Fewer lanes on one address are not worth an exchange between lanes, which costs five steps.
const LANES: f64 = 8.0;

/// Whole numbers are summed over the warp by the compiler, where the address is seen to be one.
fn is_hot(ctx: &Context<'_>, atomic: &Atomic<'_>) -> bool {
    let access = atomic.facts(ctx);
    let of_floats = matches!(&atomic.pointer.ty, Type::Pointer(to, _) if to.is_float());
    of_floats
        && matches!(access.space, Space::Global | Space::Shared)
        && access.pattern == Pattern::Broadcast
        && access.requests.is_some_and(|requests| requests > 0.0)
        && access.certainty != Certainty::Unknown
        && access
            .passes_per_request
            .is_some_and(|lanes| lanes >= LANES)
}

/// The finding about one addition.
pub(crate) fn finding(ctx: &Context<'_>, atomic: &Atomic<'_>) -> Option<Finding> {
    if !is_hot(ctx, atomic) {
        return None;
    }
    let access = atomic.facts(ctx);
    let lanes = access.passes_per_request?;
    let gain = ctx.trial(&[Change::OneLane {
        access: atomic.access,
    }]);
    let reservation = wording::reservation(ctx.facts, access);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, reservation.is_some()),
        place: Place::Site(atomic.site),
        message: wording::sentence([
            Some(format!(
                "sum over the warp before adding to `{}` ({} lanes add to one address, ideal 1)",
                wording::short(&access.array),
                number(lanes)
            )),
            Some(format!(
                "{} lanes on one address (ideal 1): each lane of the warp adds to `{}` by itself",
                number(lanes),
                access.text
            )),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: Vec::new(),
        access: Some(atomic.access),
        shared_array: None,
        cure: None,
    })
}
