//! Two kernels side by side.

use std::fmt::Write as _;

use warplens_db::wire::{Estimate, KernelResult};

use crate::estimate::{grid, parts, whole};
use crate::figure::{bytes, extents, percent, speedup, words};
use crate::models::maybe_time;
use crate::table::{Align, Cell, Table};

/// The comparison as Markdown; `model` is a key of both results' `estimates`. A row for each figure.
pub fn markdown(a: &KernelResult, b: &KernelResult, model: &str) -> String {
    let mut out = format!("## `{}` and `{}`\n\n", a.kernel, b.kernel);
    let _ = writeln!(out, "{}\n", verdict(a, b, model));
    let (left, right) = columns(a, b);
    let mut table = Table::new(&[
        ("", Align::Left),
        (left.as_str(), Align::Right),
        (right.as_str(), Align::Right),
    ]);
    let mut row = |name: &str, of: &dyn Fn(&KernelResult) -> String| {
        table.row([Cell::from(name), of(a).into(), of(b).into()]);
    };
    let estimate = |result: &KernelResult| result.estimates.get(model).cloned();
    row("time", &|one| {
        estimate(one).map_or_else(|| "?".to_owned(), |estimate| maybe_time(&estimate))
    });
    row("bound by", &|one| {
        let bound = estimate(one).and_then(|estimate| estimate.bottleneck);
        bound.map_or_else(String::new, words)
    });
    if a.gpu != b.gpu {
        row("GPU", &|one| one.gpu.clone());
    }
    row("grid", &|one| {
        grid(one.launch.grid_formula.as_deref(), one.launch.grid)
    });
    row("block", &|one| extents(one.launch.block));
    row("occupancy", &|one| {
        let occupancy = &one.occupancy;
        format!("{} ({})", percent(occupancy.fraction), occupancy.limiter)
    });
    row("registers per thread", &|one| {
        one.resources.registers_per_thread.to_string()
    });
    row("shared memory per block", &|one| {
        bytes(one.resources.static_shared_bytes + one.launch.dynamic_shared_bytes)
    });
    for (at, (name, _)) in parts_of(estimate(a).as_ref()).into_iter().enumerate() {
        let share = |one: &KernelResult| {
            let estimate = estimate(one);
            let share = parts_of(estimate.as_ref()).get(at).map(|(_, share)| *share);
            share.unwrap_or_default()
        };
        if share(a) > 0.0 || share(b) > 0.0 {
            row(&format!("share of {}", words(name)), &|one| {
                percent(share(one))
            });
        }
    }
    out.push_str(&table.markdown());
    out
}

/// The titles of the two columns, which differ also where the kernels have one name.
fn columns(a: &KernelResult, b: &KernelResult) -> (String, String) {
    let title = |one: &KernelResult| {
        if a.kernel != b.kernel {
            return format!("`{}`", one.kernel);
        }
        let file = one.file.rsplit(['/', '\\']).next().unwrap_or(&one.file);
        format!("`{}` ({file}:{})", one.kernel, one.line)
    };
    (title(a), title(b))
}

/// Each part's share of the cycles.
fn parts_of(estimate: Option<&Estimate>) -> Vec<(&'static str, f64)> {
    let Some(estimate) = estimate else {
        return Vec::new();
    };
    let whole = whole(estimate).filter(|whole| *whole > 0.0);
    let parts = parts(&estimate.breakdown).into_iter();
    parts
        .map(|(name, part)| (name, whole.map_or(0.0, |whole| part / whole)))
        .collect()
}

/// Which is faster, by how much.
fn verdict(a: &KernelResult, b: &KernelResult, model: &str) -> String {
    let time = |result: &KernelResult| result.estimates.get(model)?.time_ms;
    let (Some(first), Some(second)) = (time(a), time(b)) else {
        return format!(
            "Which is faster depends on values that nothing gives. Times by model {model}."
        );
    };
    let (left, right) = columns(a, b);
    let (fast, slow, by) = if first <= second {
        (left, right, second / first)
    } else {
        (right, left, first / second)
    };
    if !by.is_finite() || by < 1.005 {
        return format!("They take the same time by model {model}.");
    }
    format!(
        "{fast} is {} faster than {slow}. Times by model {model}.",
        speedup(by)
    )
}
