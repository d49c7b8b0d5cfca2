//! Sums that a loop keeps in memory: one word of device memory, read and written in each iteration.
//!
//! The compiler keeps the value in a register between iterations, but may not leave out a store that another pointer could
//! read.

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_codegen::Class;
use warplens_facts::facts::{Access, Op, Site, Space};
use warplens_models::Change;

use super::RULE;
use super::turns::Turns;
use crate::subjects::flow::innermost;
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

/// One finding for an array: at the store of its longest loop, with those of other loops beside it.
pub(super) fn in_memory(ctx: &Context<'_>, turns: &Turns<'_>) -> Vec<Finding> {
    let mut of_arrays: FxHashMap<&str, Vec<Sum>> = FxHashMap::default();
    let mut arrays = Vec::new();
    let mut around = None;
    for (index, store) in ctx.facts.accesses.iter().enumerate() {
        if !is_sum(ctx, turns, store) {
            continue;
        }
        let Some(&(line, trips)) = around
            .get_or_insert_with(|| innermost(&ctx.input.flow.nodes))
            .get(&index)
        else {
            continue;
        };
        if trips.is_some_and(|trips| trips < 2.0) {
            continue;
        }
        let sums = of_arrays.entry(&store.array).or_insert_with(|| {
            arrays.push(store.array.as_str());
            Vec::new()
        });
        sums.push(Sum { index, line, trips });
    }
    arrays
        .into_iter()
        .filter_map(|array| finding(ctx, turns, of_arrays.get(array)?))
        .collect()
}

/// A store that a loop repeats.
struct Sum {
    /// Of the store, among the kernel's accesses.
    index: usize,
    /// Of the loop's head.
    line: u32,
    /// The loop's, where they are known.
    trips: Option<f64>,
}

/// True for a store to one word in each iteration of its loop, which the loop also reads; nothing else of the array is
/// touched there, and no other thread waits for it.
fn is_sum(ctx: &Context<'_>, turns: &Turns<'_>, store: &Access) -> bool {
    let in_the_kernel = store.space == Space::Global && store.site.callee == 0;
    if store.op != Op::Store || store.loop_depth == 0 || !in_the_kernel || !turns.fixed(store) {
        return false;
    }
    let waits = turns
        .around(store)
        .is_none_or(|(turn, _)| turn.barrier || turn.unknown);
    let line = store.site.line;
    let made = |(site, class, count): &(Site, Class, u32)| {
        site.line == line && *class == Class::Stg && *count > 0
    };
    let mut of_array = ctx
        .facts
        .accesses
        .iter()
        .filter(|other| other.array == store.array && other.loop_depth >= store.loop_depth);
    let mut read = false;
    let alone = of_array.all(|other| {
        let here = other.text == store.text;
        read |= here && other.op == Op::Load && other.site.line == store.site.line;
        here && other.op != Op::Atomic
    });
    !waits && alone && read && ctx.compiled.places.iter().any(made)
}

/// The finding about the sums of one array.
fn finding(ctx: &Context<'_>, turns: &Turns<'_>, sums: &[Sum]) -> Option<Finding> {
    let accesses = &ctx.facts.accesses;
    let worst = sums.iter().rev().max_by(|one, other| {
        let trips = |sum: &Sum| sum.trips.unwrap_or(f64::INFINITY);
        trips(one).total_cmp(&trips(other))
    })?;
    let store = &accesses[worst.index];
    let heads: FxHashSet<usize> = sums
        .iter()
        .filter_map(|sum| turns.number(&accesses[sum.index]))
        .collect();
    let loads = accesses.iter().enumerate().filter(|(_, load)| {
        load.op == Op::Load
            && load.array == store.array
            && turns
                .number(load)
                .is_some_and(|number| heads.contains(&number))
    });
    let gain = ctx.trial(&[
        Change::BehindLoop(sums.iter().map(|sum| (sum.index, sum.line)).collect()),
        Change::BeforeLoop(loads.map(|(load, _)| load).collect()),
    ])?;
    let each = match worst.trips {
        Some(trips) => format!("{} stores, ideal 1", number(trips)),
        None => "a store in each iteration, ideal 1".to_owned(),
    };
    let others = sums.iter().map(|sum| &accesses[sum.index]);
    let others = others.filter(|other| other.site != store.site);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, store.certainty, false),
        place: Place::Site(store.site),
        message: wording::sentence([
            Some(format!(
                "sum `{}` in a register, store it after the loop ({each})",
                wording::short(&store.text)
            )),
            Some(format!(
                "{each}: `{}` is one word in every iteration, and goes through memory for other pointers may lead there",
                store.text
            )),
            Some(wording::gain(gain)),
            wording::reservation(ctx.facts, store),
        ]),
        gain,
        related: others
            .map(|other| (other.site, format!("`{}` is another such sum", other.text)))
            .collect(),
        access: Some(worst.index),
        shared_array: None,
        cure: None,
    })
}
