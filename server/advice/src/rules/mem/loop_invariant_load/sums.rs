//! Sums that a loop keeps in memory: one word of device memory, read and written in each iteration.
//!
//! The compiler keeps the value in a register between iterations, but may not leave out a store that another pointer could
//! read.

use warplens_codegen::Class;
use warplens_facts::facts::{Access, Op, Site, Space};
use warplens_models::Change;

use super::RULE;
use super::turns::Turns;
use crate::subjects::flow::innermost;
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(super) fn in_memory(ctx: &Context<'_>, turns: &Turns<'_>) -> Vec<Finding> {
    let stores = ctx.facts.accesses.iter().enumerate();
    let sums = stores.filter(|(_, store)| is_sum(ctx, turns, store));
    sums.filter_map(|(index, _)| finding(ctx, index)).collect()
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

fn finding(ctx: &Context<'_>, index: usize) -> Option<Finding> {
    let accesses = &ctx.facts.accesses;
    let store = &accesses[index];
    let (line, trips) = innermost(&ctx.input.flow.nodes, index)?;
    let mut changes = vec![Change::BehindLoop {
        access: index,
        line,
    }];
    let loads = accesses.iter().enumerate().filter(|(_, load)| {
        load.op == Op::Load && load.array == store.array && load.loop_depth == store.loop_depth
    });
    changes.extend(loads.map(|(access, _)| Change::BeforeLoop { access }));
    let gain = ctx.trial(&changes);
    if trips.is_some_and(|trips| trips < 2.0) {
        return None;
    }
    let each = match trips {
        Some(trips) => format!("{} stores, ideal 1", number(trips)),
        None => "a store in each iteration, ideal 1".to_owned(),
    };
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
        related: Vec::new(),
        access: Some(index),
        shared_array: None,
        cure: None,
    })
}
