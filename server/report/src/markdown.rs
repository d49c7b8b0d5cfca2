//! A kernel's page in Markdown, for hovers, web views and pull requests.

use std::fmt::Write as _;

use warplens_db::wire::KernelResult;

use crate::estimate::{
    MOST_LOSSES, access_table, branch_table, cost, first_estimate, grid, line_name, part_cycles,
    parts, share, whole,
};
use crate::figure::{bytes, extents, losses, percent, words};
use crate::models;
use crate::models::maybe_time;
use crate::resources::{registers, residency, spilled};
use crate::style::truncate;
use crate::table::{Align, Table};

/// Letters of source in a table that has to be narrow.
const NARROW: usize = 22;
/// Letters of a launch with its template arguments.
const LONGEST_LAUNCH: usize = 40;

/// The whole breakdown of one kernel: prediction, launch, occupancy, accesses, branches, models, what-if.
pub fn breakdown(result: &KernelResult) -> String {
    let mut out = head(result);
    section(&mut out, "Memory accesses", &access_table(result));
    section(&mut out, "Branches and loops", &branch_table(result));
    section(&mut out, "Models", &models::table(result));
    agreement(&mut out, result);
    tail(&mut out, result);
    out
}

/// The same for a hover, which clips what is wider than some 80 columns: tables keep the columns that matter
/// most, remarks follow them.
pub fn summary(result: &KernelResult) -> String {
    let mut out = head(result);
    section(&mut out, "Memory accesses", &narrow_accesses(result));
    section(&mut out, "Branches and loops", &narrow_branches(result));
    section(&mut out, "Models", &models::narrow_table(result));
    let remarks = models::remarks(result);
    if !remarks.is_empty() {
        let _ = writeln!(out, "- {}\n", remarks.join("\n- "));
    }
    agreement(&mut out, result);
    tail(&mut out, result);
    out
}

/// The launches of a kernel side by side, where there are several; the one in `shown` is marked.
pub fn launches(results: &[&KernelResult], shown: u64) -> String {
    let mut out = String::new();
    if results.len() < 2 {
        return out;
    }
    let mut table = Table::new(&[
        ("", Align::Left),
        ("launch", Align::Left),
        ("time", Align::Right),
        ("bound by", Align::Left),
    ]);
    for result in results {
        let estimate = first_estimate(result).map(|(_, estimate)| estimate);
        let mark = if result.variant.number == shown {
            " (shown)"
        } else {
            ""
        };
        let unknown = || "-".to_owned();
        let launch = truncate(&result.variant.text, LONGEST_LAUNCH).replace('`', "'");
        table.row([
            format!("{}{mark}", result.variant.number).into(),
            format!("`{launch}`").into(),
            estimate.map_or_else(unknown, maybe_time).into(),
            estimate
                .and_then(|estimate| estimate.bottleneck)
                .map_or_else(unknown, words)
                .into(),
        ]);
    }
    section(&mut out, "Launches", &table);
    out
}

/// Title, prediction, launch, occupancy, and what was not understood.
fn head(result: &KernelResult) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "## `{}` on {}\n", result.kernel, result.gpu);
    if let Some((model, estimate)) = first_estimate(result) {
        let _ = write!(out, "**{}**", maybe_time(estimate));
        if let Some(bottleneck) = estimate.bottleneck {
            let _ = write!(out, ", bound by {}", words(bottleneck));
        }
        let _ = writeln!(out, " (model {model}).\n");
    }
    let launch = &result.launch;
    let occupancy = &result.occupancy;
    let _ = writeln!(
        out,
        "Grid {} ({}), block {} ({}). Occupancy {}.{}\n",
        grid(launch.grid_formula.as_deref(), launch.grid),
        launch.grid_source,
        extents(launch.block),
        launch.block_source,
        residency(result),
        occupancy
            .next_step
            .as_ref()
            .filter(|_| !result.is_opaque)
            .map_or_else(String::new, |step| format!(" {step}."))
    );
    if let Some(run) = crate::estimate::run(launch) {
        let _ = writeln!(out, "`{}`\n", run.replace('`', "'"));
    }
    // Print registers only from a compiler report, where they come in two kinds, or where they spill.
    let said = result.resources.compiler.as_ref();
    if said.is_some() || result.resources.sgprs_per_wave.is_some() {
        let _ = write!(out, "{}", registers(&result.resources));
        if let Some(said) = said
            && said.current
            && said.spill_store_bytes + said.spill_load_bytes > 0
        {
            let _ = write!(
                out,
                ", {} of spill stores and {} of spill loads",
                bytes(said.spill_store_bytes),
                bytes(said.spill_load_bytes)
            );
        }
        let _ = writeln!(out, ".\n");
    } else if let Some(spilled) = spilled(&result.resources) {
        let _ = writeln!(out, "{}, {spilled}.\n", registers(&result.resources));
    }
    if let Some(title) = losses(result.not_understood.len()) {
        let _ = writeln!(out, "### {title}\n");
        for loss in result.not_understood.iter().take(MOST_LOSSES) {
            let text = truncate(&loss.text, 48).replace('`', "'");
            let line = line_name(result, &loss.file, loss.line);
            let _ = writeln!(out, "- {line}: `{text}`: {}", loss.reason);
        }
        let more = result.not_understood.len().saturating_sub(MOST_LOSSES);
        if more > 0 {
            let _ = writeln!(out, "- and {more} more");
        }
        out.push('\n');
    }
    out
}

/// The cycles and the assumptions behind them.
fn tail(out: &mut String, result: &KernelResult) {
    section(out, "Where the cycles go", &cycles_table(result));
    what_would_help(out, result);
    if !result.assumptions.is_empty() {
        out.push_str("### Assumed\n\n");
        for assumption in &result.assumptions {
            let _ = writeln!(
                out,
                "- `{}` = {} ({})",
                assumption.symbol, assumption.value, assumption.source
            );
        }
    }
}

fn section(out: &mut String, title: &str, table: &Table) {
    if !table.is_empty() {
        let _ = writeln!(out, "### {title}\n\n{}", table.markdown());
    }
}

fn cycles_table(result: &KernelResult) -> Table {
    let mut table = Table::new(&[
        ("part", Align::Left),
        ("cycles", Align::Right),
        ("share", Align::Right),
    ]);
    if let Some((_, estimate)) = first_estimate(result)
        && let Some(whole) = whole(estimate)
    {
        for (name, part) in parts(&estimate.breakdown) {
            if part > 0.0 {
                table.row([
                    words(name).into(),
                    part_cycles(estimate, part).into(),
                    percent(part / whole).into(),
                ]);
            }
        }
    }
    table
}

fn what_would_help(out: &mut String, result: &KernelResult) {
    if result.help().is_empty() {
        return;
    }
    out.push_str("### What would help\n\n");
    for one in result.help() {
        // A cause says its line itself.
        let line = one.line.filter(|_| one.kind != "cause");
        let line = line.map_or_else(String::new, |line| format!(" (line {line})"));
        let _ = writeln!(out, "- {}{line}", one.title);
    }
    out.push('\n');
}

fn narrow_accesses(result: &KernelResult) -> Table {
    let mut table = Table::new(&[
        ("line", Align::Right),
        ("access", Align::Left),
        ("pattern", Align::Left),
        ("per request", Align::Left),
        ("line's share", Align::Right),
    ]);
    for access in &result.accesses {
        let (cost, ideal, unit) = cost(access);
        let text = truncate(&access.text, NARROW);
        table.row([
            line_name(result, &access.file, access.line).into(),
            format!("{} `{}`", access.op, text.replace('`', "'")).into(),
            access.pattern.into(),
            format!("{cost} {unit}, ideal {ideal}").into(),
            share(result, &access.file, access.line)
                .map_or_else(String::new, percent)
                .into(),
        ]);
    }
    table
}

fn narrow_branches(result: &KernelResult) -> Table {
    let mut table = Table::new(&[
        ("line", Align::Right),
        ("kind", Align::Left),
        ("lanes", Align::Left),
        ("warps diverge", Align::Right),
        ("warps take it", Align::Right),
    ]);
    let fraction = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), percent);
    for branch in &result.branches {
        table.row([
            line_name(result, &branch.file, branch.line).into(),
            branch.kind.into(),
            branch.uniformity.into(),
            fraction(branch.divergent_warp_fraction).into(),
            fraction(branch.taken_warp_fraction).into(),
        ]);
    }
    table
}

fn agreement(out: &mut String, result: &KernelResult) {
    if let Some(agreement) = models::agreement(result) {
        let _ = writeln!(out, "{agreement}\n");
    }
}
