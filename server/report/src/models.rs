//! The models side by side, and what they agree on.

use std::collections::BTreeMap;

use warplens_db::wire::{Estimate, KernelResult};

use crate::figure::{number, predicted, words};
use crate::style::Paint;
use crate::table::{Align, Cell, Table};

/// True where the model says something of the time, be it that it needs a size.
pub fn applies(estimate: &Estimate) -> bool {
    estimate.cycles.is_some() || !estimate.unknowns.is_empty()
}

/// A time that may be unknown, or depend on what is.
pub(crate) fn maybe_time(estimate: &Estimate) -> String {
    let least = estimate.time_formula_least.as_ref();
    let formula = estimate.time_formula.clone().map(|formula| match least {
        Some(least) => format!("{formula}, at least {least}"),
        None => formula,
    });
    predicted(estimate.time_ms, formula.as_deref(), &estimate.unknowns)
        .unwrap_or_else(|| "?".to_owned())
}

/// A row for each model.
pub fn table(result: &KernelResult) -> Table {
    let mut table = Table::new(&[
        ("model", Align::Left),
        ("time", Align::Right),
        ("cycles", Align::Right),
        ("bound by", Align::Left),
        ("", Align::Left),
    ])
    .elastic(4);
    for (name, estimate) in &result.estimates {
        let [time, cycles, bottleneck] = figures(estimate);
        table.row([
            name.as_str().into(),
            time.into(),
            cycles.into(),
            bottleneck.into(),
            Cell::new(remark(estimate), Paint::Quiet),
        ]);
    }
    table
}

/// The same without remarks, for places some 80 columns wide: [`remarks`] go below it.
pub fn narrow_table(result: &KernelResult) -> Table {
    let mut table = Table::new(&[
        ("model", Align::Left),
        ("time", Align::Right),
        ("cycles", Align::Right),
        ("bound by", Align::Left),
    ]);
    for (name, estimate) in &result.estimates {
        let [time, cycles, bottleneck] = figures(estimate);
        table.row([
            name.as_str().into(),
            time.into(),
            cycles.into(),
            bottleneck.into(),
        ]);
    }
    table
}

/// What the narrow table has no room for: why a model does not apply, and the cycles as a function.
pub fn remarks(result: &KernelResult) -> Vec<String> {
    let of = |(model, estimate): (&String, &Estimate)| {
        let said = match (&estimate.why, &estimate.cycles_function) {
            (Some(why), _) => why.clone(),
            // As code: a `*` would be emphasis.
            (None, Some(function)) => format!("`cycles = {function}`"),
            (None, None) => return None,
        };
        Some(format!("{model}: {said}"))
    };
    result.estimates.iter().filter_map(of).collect()
}

/// Which bottleneck the models see: `4 of 5 models: bound by memory bandwidth`. Nothing to say of fewer than two.
pub fn agreement(result: &KernelResult) -> Option<String> {
    let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
    let applied = result
        .estimates
        .values()
        .filter(|estimate| applies(estimate));
    for bottleneck in applied.filter_map(|estimate| estimate.bottleneck) {
        *votes.entry(bottleneck).or_insert(0) += 1;
    }
    let all: usize = votes.values().sum();
    let (most, count) = votes.into_iter().max_by_key(|(_, count)| *count)?;
    (all > 1).then(|| format!("{count} of {all} models: bound by {}", words(most)))
}

fn figures(estimate: &Estimate) -> [String; 3] {
    let unknown = || "-".to_owned();
    [
        if applies(estimate) {
            maybe_time(estimate)
        } else {
            unknown()
        },
        estimate
            .cycles
            .map_or_else(unknown, |cycles| number(cycles.round())),
        estimate.bottleneck.map_or_else(unknown, words),
    ]
}

/// Why a model does not apply, else its own quantities and the cycles as a function.
pub(crate) fn remark(estimate: &Estimate) -> String {
    if let Some(why) = &estimate.why {
        return why.clone();
    }
    let named = |key: &str, shown: &str| {
        let value = estimate.detail.get(key)?;
        Some(format!("{shown} {}", number(*value)))
    };
    let function = estimate.cycles_function.as_ref();
    let parts = [
        named("mwp", "MWP"),
        named("cwp", "CWP"),
        function.map(|function| format!("cycles = {function}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
