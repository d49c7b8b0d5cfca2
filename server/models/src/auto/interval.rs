//! The interval around the figure: how much the machine may overlap, and what the facts leave open.

use super::{Outcome, largest};
use crate::work::Work;
use warplens_facts::facts::Assumed;

/// The factor that a time may be off by, either way, that depends on an assumed value: a launch, an argument, a
/// probability. A convention, not a bound: twice as much or half as much of what was assumed.
const GUESS: f64 = 2.0;

/// From the time if everything overlapped, the largest bound alone, to the time if nothing did, their sum. An access
/// whose addresses are not known counts as ideal in the one and as the worst in the other. Where the facts depend on
/// values that were assumed both ends move by [`GUESS`].
pub(super) fn around(work: &Work, outcome: &Outcome) -> Option<[f64; 2]> {
    let least = if work.requests.iter().all(|request| request.known) {
        overlapped(outcome)
    } else {
        let mut kinder = Work {
            graph: work.graph.clone(),
            requests: work.requests.clone(),
            ..*work
        };
        for request in kinder.requests.iter_mut().filter(|request| !request.known) {
            request.transactions = request.ideal_transactions;
            request.moved_bytes = request.moved_bytes.min(request.ideal_bytes);
            request.lines = request.lines.min((request.moved_bytes / 128.0).max(1.0));
        }
        overlapped(&Outcome::new(&kinder, None)).min(outcome.cycles)
    };
    let warp = &outcome.warp;
    let most = (warp.compute() + warp.shared + warp.described + warp.bandwidth()) * outcome.warps
        + outcome.serialised
        + outcome.waited
        + outcome.vacant
        + outcome.overhead;
    let input = work.input;
    let assumed = input
        .facts
        .assumptions
        .iter()
        .any(|assumption| assumption.symbol != Assumed::Alignment)
        || input.launch.grid_source.is_assumption()
        || input.launch.block_source.is_assumption();
    let guess = if assumed { GUESS } else { 1.0 };
    let interval = [
        least.min(outcome.cycles) / guess,
        most.max(outcome.cycles) * guess,
    ];
    interval
        .iter()
        .all(|end| end.is_finite())
        .then_some(interval)
}

fn overlapped(outcome: &Outcome) -> f64 {
    let warp = &outcome.warp;
    let busy = [
        warp.compute(),
        warp.shared + warp.described,
        warp.bandwidth(),
    ]
    .map(|bound| bound * outcome.warps);
    largest(&busy).1.max(outcome.waited) + outcome.overhead
}
