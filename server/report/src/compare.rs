//! One kernel on several GPUs, side by side.

use std::fmt::Write as _;

use warplens_db::wire::{Estimate, KernelResult};

use crate::estimate::grid;
use crate::figure::{extents, percent, speedup, words};
use crate::models::maybe_time;
use crate::table::{Align, Cell, Table};

/// A comparison as Markdown, the fastest GPU first. All `results` are of one kernel under one launch; `model` is
/// the one that decides (a key of their `estimates`), `target` the GPU that the user works for. `notes` say
/// what the figures rest on.
pub fn markdown(
    results: &[KernelResult],
    model: &str,
    target: Option<&str>,
    notes: &[String],
) -> String {
    let Some(first) = results.first() else {
        return "No GPU to compare.\n".to_owned();
    };
    let mut out = format!("## `{}` on {} GPUs\n\n", first.kernel, results.len());
    let launch = &first.launch;
    let _ = writeln!(
        out,
        "Grid {}, block {}. Times by model {model}.\n",
        grid(launch.grid_formula.as_deref(), launch.grid),
        extents(launch.block)
    );
    out.push_str(&table(results, model, target).markdown());
    let silent = results.iter().filter_map(|result| {
        let why = result.estimates.get(model)?.why.as_ref()?;
        Some(format!("`{}`: {why}", result.gpu))
    });
    let assumed: Vec<String> = first
        .assumptions
        .iter()
        .map(|assumption| format!("`{}` = {}", assumption.symbol, assumption.value))
        .collect();
    let assumed = (!assumed.is_empty()).then(|| format!("Assumed: {}.", assumed.join(", ")));
    let remarks: Vec<String> = silent.chain(notes.iter().cloned()).chain(assumed).collect();
    if !remarks.is_empty() {
        let _ = write!(out, "\n- {}\n", remarks.join("\n- "));
    }
    out
}

fn table(results: &[KernelResult], model: &str, target: Option<&str>) -> Table {
    let mut others: Vec<&str> = results
        .iter()
        .flat_map(|result| result.estimates.keys().map(String::as_str))
        .filter(|name| *name != model)
        .collect();
    others.sort_unstable();
    others.dedup();
    let titles: Vec<String> = others.iter().map(|other| format!("by {other}")).collect();
    let mut columns = vec![
        ("GPU", Align::Left),
        ("time", Align::Right),
        ("slower", Align::Right),
        ("bound by", Align::Left),
        ("occupancy", Align::Left),
    ];
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    let time_on = |result: &KernelResult| result.estimates.get(model).and_then(|e| e.time_ms);
    let mut sorted: Vec<&KernelResult> = results.iter().collect();
    sorted.sort_by(|a, b| {
        let key = |result| time_on(result).unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b)).then_with(|| a.gpu.cmp(&b.gpu))
    });
    let fastest = sorted.first().and_then(|result| time_on(result));
    for result in sorted {
        let estimate = result.estimates.get(model);
        let gpu = if target == Some(result.gpu.as_str()) {
            format!("{} (target)", result.gpu)
        } else {
            result.gpu.clone()
        };
        let slower = match (fastest, time_on(result)) {
            (Some(fastest), Some(time)) if fastest > 0.0 => speedup(time / fastest),
            _ => String::new(),
        };
        let mut row: Vec<Cell> = vec![
            gpu.into(),
            estimate.map_or_else(|| "?".to_owned(), maybe_time).into(),
            slower.into(),
            bound(estimate).into(),
            format!(
                "{} ({})",
                percent(result.occupancy.fraction),
                result.occupancy.limiter
            )
            .into(),
        ];
        row.extend(others.iter().map(|other| {
            let other = result.estimates.get(*other).map(maybe_time);
            let other = other.filter(|time| time != "?");
            Cell::from(other.unwrap_or_else(|| "-".to_owned()))
        }));
        table.row(row);
    }
    table
}

fn bound(estimate: Option<&Estimate>) -> String {
    let bottleneck = estimate.and_then(|estimate| estimate.bottleneck);
    bottleneck.map_or_else(|| "-".to_owned(), words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::document;

    fn on(gpu: &str, milliseconds: Option<f64>) -> KernelResult {
        let mut result = document().results.remove(0);
        gpu.clone_into(&mut result.gpu);
        let auto = result.estimates.get_mut("auto").expect("a model");
        auto.time_ms = milliseconds;
        if milliseconds.is_none() {
            auto.why = Some("a block of 256 threads is too large".to_owned());
            auto.bottleneck = None;
        }
        result
    }

    #[test]
    fn the_fastest_comes_first_and_who_has_no_answer_last() {
        let results = [
            on("slow", Some(0.5)),
            on("none", None),
            on("fast", Some(0.125)),
        ];
        let notes = ["the grid is assumed".to_owned()];
        let text = markdown(&results, "auto", Some("slow"), &notes);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
        assert_eq!(
            rows[2..],
            [
                "| fast | 125 µs | 1.00x | memory bandwidth | 100 % (warps) | - |",
                "| slow (target) | 500 µs | 4.00x | memory bandwidth | 100 % (warps) | - |",
                "| none | ? |  | - | 100 % (warps) | - |",
            ],
            "{text}"
        );
        assert!(
            text.ends_with(
                "- `none`: a block of 256 threads is too large\n- the grid is assumed\n\
                 - Assumed: `n` = 1024.\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_other_models_have_a_column_each() {
        let text = markdown(&[on("one", Some(1.5))], "wfg", None, &[]);
        assert!(text.contains("| by auto |"), "{text}");
        assert!(text.contains("| 1.50 ms |"), "{text}");
    }
}
