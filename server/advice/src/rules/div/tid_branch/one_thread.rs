//! A loop that one thread of the block executes alone, where all could share it.

use warplens_facts::facts::{Branch, BranchKind};
use warplens_models::Change;

use super::RULE;
use crate::subjects::iterations;
use crate::wording::{self, counted};
use crate::{Context, Finding, Place};

/// Shorter loops are not worth an exchange between threads.
const LEAST: f64 = 64.0;

/// The finding about a condition that one thread of a block meets, with such a loop behind it.
pub(super) fn finding(ctx: &Context<'_>, branch: &Branch) -> Option<Finding> {
    let launch = &ctx.facts.launch;
    let threads = launch.threads_per_block();
    let alone = branch
        .taken_threads
        .is_some_and(|taken| taken > 0.0 && taken <= launch.blocks() as f64);
    if branch.kind != BranchKind::If || !alone || threads < u64::from(ctx.facts.warp_size) {
        return None;
    }
    let loops = iterations::divisible(ctx, LEAST, Some(branch.site.line));
    let changes: Vec<Change> = loops
        .iter()
        .map(|of| Change::TripCountAt {
            path: of.path.clone(),
            factor: 1.0 / of.iterations.min(threads as f64),
        })
        .collect();
    let longest = loops.iter().map(|of| of.iterations).fold(0.0, f64::max);
    if changes.is_empty() {
        return None;
    }
    let gain = ctx.trial(&changes)?;
    if gain < wording::COSTLY {
        return None;
    }
    let reservation = super::reservation(ctx, branch);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, branch.certainty, reservation.is_some()),
        place: Place::Site(branch.site),
        message: wording::sentence([
            Some(format!(
                "share the loop among the threads of the block (1 of {threads} executes it)"
            )),
            Some(format!(
                "1 of {threads} threads executes the loop of {} behind `{}`, whose iterations do not need each other's \
                 results: each thread could take some of them, and sums are put together at the end",
                counted(longest, "iteration", "iterations"),
                branch.text,
            )),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}
