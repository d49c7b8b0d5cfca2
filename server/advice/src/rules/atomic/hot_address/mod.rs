//! atomic/hot-address: the lanes of a warp update one address, one after the other, or the warps of a launch one word.

pub(crate) mod sum_over_warp;

use warplens_facts::facts::{Access, Certainty, Op, Pattern, Space};
use warplens_models::Change;

use crate::evidence;
use crate::rule::{Look, Rule, State, When};
use crate::rules::atomic::in_loop;
use crate::subjects::atomics::{Atomic, unused};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "atomic/hot-address",
    title: "lanes, or warps, update one address, one after the other",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[sum_over_warp::fixes],
};

/// The findings about atomics: one access, one rule.
pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let sums: Vec<Atomic<'_>> = unused(ctx).into_iter().filter(Atomic::adds).collect();
    for atomic in &sums {
        let one = in_loop::finding(ctx, atomic)
            .or_else(|| finding(ctx, atomic.access, Place::Site(atomic.site), true));
        found.extend(one);
    }
    let others = 0..ctx.facts.accesses.len();
    for index in others.filter(|index| sums.iter().all(|sum| sum.access != *index)) {
        let place = Place::Site(ctx.facts.accesses[index].site);
        found.extend(finding(ctx, index, place, false));
    }
    found
}

/// Fewer lanes on one address are not worth an exchange between lanes, which costs five steps.
const LANES: f64 = 8.0;

fn is_hot(access: &Access) -> bool {
    access.op == Op::Atomic
        && matches!(access.space, Space::Global | Space::Shared)
        && access.pattern == Pattern::Broadcast
        && access.requests.is_some_and(|requests| requests > 0.0)
        && access.certainty != Certainty::Unknown
        && access
            .passes_per_request
            .is_some_and(|lanes| lanes >= LANES)
}

/// What takes the lanes off the address.
enum Cure {
    /// The lanes' operands are summed before one lane adds.
    Sum,
    /// One lane updates for all.
    OneLane,
    /// The compiler has one lane do it; one of the block is left.
    OneWarp(f64),
}

impl Cure {
    fn of(ctx: &Context<'_>, access: &Access, adds: bool) -> Option<Cure> {
        if access.combines && access.is_one_for_a_block() {
            let warps = ctx.facts.launch.warps_per_block(ctx.facts.warp_size);
            return (warps > 1).then_some(Cure::OneWarp(warps as f64));
        }
        Some(if adds { Cure::Sum } else { Cure::OneLane })
    }

    fn gain(&self, ctx: &Context<'_>, access: usize) -> Option<f64> {
        match self {
            Cure::Sum | Cure::OneLane => ctx.trial(&[Change::OneLane { access }]),
            Cure::OneWarp(warps) => {
                let part = warps.recip();
                ctx.trial(&[Change::PartOfAccess { access, part }])
            }
        }
    }

    /// What to do, and what the lanes do now.
    fn words(&self, access: &Access, lanes: f64) -> (String, String) {
        let array = wording::array_of(access);
        let average = wording::on_average(lanes);
        let lanes = number(lanes);
        let text = &access.text;
        match self {
            Cure::Sum => (
                format!(
                    "sum over the warp before adding to `{array}` ({lanes} lanes add to one address{average}, ideal 1)"
                ),
                format!(
                    "{lanes} lanes on one address{average} (ideal 1): each lane of the warp adds to `{text}` by itself"
                ),
            ),
            Cure::OneLane => (
                format!(
                    "let one lane update `{array}` for its warp ({lanes} lanes on one address{average}, ideal 1)"
                ),
                format!(
                    "{lanes} lanes on one address{average} (ideal 1): each lane of the warp updates `{text}` by itself"
                ),
            ),
            Cure::OneWarp(warps) => {
                let warps = number(*warps);
                (
                    format!(
                        "combine over the block before `{array}` ({warps} warps of a block update one address, ideal 1)"
                    ),
                    format!(
                        "{warps} updates of one address by each block (ideal 1): the compiler combines the lanes of a warp in \
                         `{text}`, and each warp makes an update of its own"
                    ),
                )
            }
        }
    }
}

/// The finding about one atomic; `adds` where its result is unused.
pub(crate) fn finding(
    ctx: &Context<'_>,
    index: usize,
    place: Place,
    adds: bool,
) -> Option<Finding> {
    let access = &ctx.facts.accesses[index];
    if !is_hot(access) {
        return None;
    }
    let lanes = access.passes_per_request?;
    let cure = Cure::of(ctx, access, adds)?;
    let gain = cure.gain(ctx, index)?;
    // A word of the block is where a block is summed.
    let of_block = access.space == Space::Shared && matches!(cure, Cure::OneWarp(_));
    if of_block && gain < wording::WORTH_KNOWING {
        return None;
    }
    let reservation = wording::reservation(ctx.facts, access);
    let (what, why) = cure.words(access, lanes);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, evidence::is_guess(ctx, access)),
        place,
        message: wording::sentence([
            Some(what),
            Some(why),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: Vec::new(),
        access: Some(index),
        shared_array: None,
        cure: None,
    })
}
