//! The page `warplens estimate` prints: one kernel, one launch, one GPU, everything known about it.

use std::fmt::Write as _;
use std::path::Path;

use warplens_db::wire::{Access, Breakdown, Estimate, EstimateDocument, KernelResult, Launch};

use crate::check::details;
use crate::figure::{bytes, extents, losses, maybe, number, percent, time, words};
use crate::models::{self, applies, maybe_time};
use crate::resources::{registers, residency, shared_memory, spilled};
use crate::style::{Paint, Style, printable, truncate, wrap};
use crate::table::{Align, Cell, Table};

/// Width of a page's paragraphs where the terminal does not say.
const PAGE: usize = 100;
/// Statements not understood that are listed; the others are counted.
pub const MOST_LOSSES: usize = 10;
/// Headers that were not found that are listed; the others are counted.
const MOST_HEADERS: usize = 10;
/// Columns of a full bar.
const BAR: usize = 32;

/// The whole document as pages, a blank line between two of them, then the file's findings.
pub fn page(document: &EstimateDocument, style: Style) -> String {
    let mut out = String::new();
    for result in &document.results {
        if !out.is_empty() {
            out.push('\n');
        }
        kernel(&mut out, result, style);
    }
    if document.results.is_empty() {
        out.push_str("no kernels found\n");
    }
    if !document.missing_includes.is_empty() {
        let text = printable(&missing_headers(&document.missing_includes));
        out.push_str("\n  ");
        style.push(&mut out, Paint::Warning, &text);
        out.push('\n');
    }
    findings(&mut out, document, style);
    out
}

/// The estimate shown first: `auto` where it is there and applies, else the first that applies.
pub fn first_estimate(result: &KernelResult) -> Option<(&str, &Estimate)> {
    let applies = |(_, estimate): &(&String, &Estimate)| applies(estimate);
    let auto = result.estimates.get_key_value("auto").filter(applies);
    auto.or_else(|| result.estimates.iter().find(applies))
        .map(|(name, estimate)| (name.as_str(), estimate))
}

/// What the parts of the breakdown are parts of: the cycles, or 1 where the parts are shares.
pub(crate) fn whole(estimate: &Estimate) -> Option<f64> {
    let shares = (!estimate.unknowns.is_empty()).then_some(1.0);
    estimate.cycles.or(shares).filter(|whole| *whole > 0.0)
}

/// Cycles of a part; `?` where they are shares.
pub(crate) fn part_cycles(estimate: &Estimate, part: f64) -> String {
    maybe(estimate.cycles.map(|_| part.round()))
}

/// Blocks, or how they follow from sizes that nothing gives.
pub fn grid(formula: Option<&str>, grid: Option<[u64; 3]>) -> String {
    match (formula, grid) {
        (Some(formula), _) => formula.to_owned(),
        (None, Some(grid)) => extents(grid),
        (None, None) => "?".to_owned(),
    }
}

/// The parts of a breakdown by their names in the JSON.
pub fn parts(breakdown: &Breakdown) -> [(&'static str, f64); 8] {
    [
        ("compute", breakdown.compute),
        ("tensor", breakdown.tensor),
        ("memory_bandwidth", breakdown.memory_bandwidth),
        ("memory_latency", breakdown.memory_latency),
        ("async_copy", breakdown.async_copy),
        ("shared", breakdown.shared),
        ("divergence", breakdown.divergence),
        ("synchronisation", breakdown.synchronisation),
    ]
}

/// What a request of this access costs, what it would cost at best, and in which unit.
pub fn cost(access: &Access) -> (String, String, &'static str) {
    let unit = match access.transaction_bytes {
        Some(32) => "sectors",
        Some(64 | 128) => "lines",
        _ => "transactions",
    };
    match access.space {
        "shared" | "constant" => (
            maybe(access.passes_per_request),
            maybe(access.ideal_passes_per_request),
            "passes",
        ),
        _ => (
            maybe(access.transactions_per_request),
            maybe(access.ideal_transactions_per_request),
            unit,
        ),
    }
}

/// How far an access is from its ideal: 1.0 where it is there; `None` where not known.
pub fn excess(access: &Access) -> Option<f64> {
    let (cost, ideal) = match access.space {
        "shared" | "constant" => (access.passes_per_request, access.ideal_passes_per_request),
        _ => (
            access.transactions_per_request,
            access.ideal_transactions_per_request,
        ),
    };
    match (cost, ideal) {
        (Some(cost), Some(ideal)) if ideal > 0.0 => Some(cost / ideal),
        _ => None,
    }
}

/// Share of a line in its kernel's cycles.
pub fn share(result: &KernelResult, file: &str, line: u32) -> Option<f64> {
    result
        .lines
        .iter()
        .find(|entry| entry.line == line && entry.file == file)
        .map(|e| e.share)
}

/// `launch 1 of 3: <<<64, 256>>>`
pub fn variant(result: &KernelResult) -> String {
    let variant = &result.variant;
    format!(
        "launch {} of {}: {}",
        variant.number, variant.of, variant.text
    )
}

/// A line: its number, with the file's name where it is not the kernel's own.
pub fn line_name(result: &KernelResult, file: &str, line: u32) -> String {
    if file == result.file {
        return line.to_string();
    }
    let name = Path::new(file).file_name().unwrap_or_default();
    format!("{}:{line}", name.to_string_lossy())
}

/// `headers not found: a.h, b.h`, and what to do about it.
pub fn missing_headers(missing: &[String]) -> String {
    let (named, more) = missing.split_at(missing.len().min(MOST_HEADERS));
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "headers not found: {}{more} (name their folders with `includePaths`, -I or a \
         compile_commands.json)",
        named.join(", ")
    )
}

fn kernel(out: &mut String, result: &KernelResult, style: Style) {
    heading(out, result, style);
    facts(out, result, style);
    not_understood(out, result, style);
    accesses(out, result, style);
    branches(out, result, style);
    estimates(out, result, style);
    breakdown(out, result, style);
    help(out, result, style);
    assumptions(out, result, style);
}

fn section(out: &mut String, style: Style, title: &str) {
    out.push_str("\n  ");
    style.push(out, Paint::Strong, title);
    out.push('\n');
}

fn heading(out: &mut String, result: &KernelResult, style: Style) {
    style.push(out, Paint::Strong, &printable(&result.kernel));
    if !result.template_args.is_empty() {
        let arguments: Vec<String> = result
            .template_args
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let _ = write!(out, "<{}>", printable(&arguments.join(", ")));
    }
    let place = format!("  {}:{}", result.file, result.line);
    style.push(out, Paint::Quiet, &printable(&place));
    let _ = writeln!(out, "  on {}", result.gpu);
    out.push('\n');
    let Some((model, estimate)) = first_estimate(result) else {
        for (name, estimate) in &result.estimates {
            let why = estimate.why.as_deref().unwrap_or("no estimate");
            label(
                out,
                style,
                "predicted",
                &format!("no time by {name}: {why}"),
            );
        }
        return;
    };
    let mut text = style.paint(Paint::Strong, &maybe_time(estimate));
    if let Some(cycles) = estimate.cycles {
        let _ = write!(text, "  {} cycles", number(cycles.round()));
    }
    if let Some(bottleneck) = estimate.bottleneck {
        let _ = write!(text, ", bound by {}", words(bottleneck));
    }
    let _ = write!(
        text,
        "  {}",
        style.paint(Paint::Quiet, &format!("model {model}"))
    );
    label(out, style, "predicted", &text);
    if let Some([low, high]) = estimate.interval {
        let text = format!("{} to {} cycles", number(low.round()), number(high.round()));
        label(out, style, "", &text);
    }
}

/// How the program is run that makes the launch, and how often it does.
pub(crate) fn run(launch: &Launch) -> Option<String> {
    let said = launch.run.as_ref()?;
    Some(match launch.count {
        Some(1) => format!("run as {said}: once"),
        Some(count) => format!("run as {said}: {} times", number(count as f64)),
        None => format!("run as {said}"),
    })
}

/// How a launch begins that need not wait for the one ahead of it; `waits_at` is the line where the kernel does, from 1.
pub fn early_start(waits_at: Option<u32>) -> String {
    let begins = "begins while the launch before it ends (programmatic stream serialization)";
    match waits_at {
        Some(line) => format!("{begins}: what is before line {line} overlaps with it"),
        None => format!("{begins} and nowhere waits for what that writes"),
    }
}

fn label(out: &mut String, style: Style, name: &str, text: &str) {
    out.push_str("  ");
    style.push(out, Paint::Quiet, &format!("{name:<11}"));
    out.push_str(text);
    out.push('\n');
}

fn facts(out: &mut String, result: &KernelResult, style: Style) {
    let launch = &result.launch;
    let text = format!(
        "grid {} ({}), block {} ({}){}",
        grid(launch.grid_formula.as_deref(), launch.grid),
        launch.grid_source,
        extents(launch.block),
        launch.block_source,
        if launch.dynamic_shared_bytes > 0 {
            format!(
                ", {} dynamic shared memory",
                bytes(launch.dynamic_shared_bytes)
            )
        } else {
            String::new()
        }
    );
    label(out, style, "launch", &text);
    if let Some(run) = run(launch) {
        label(out, style, "", &printable(&run));
    }
    if let Some(early) = &launch.begins_early {
        label(out, style, "", &early_start(early.waits_at));
    }
    if result.variant.of > 1 {
        label(out, style, "", &printable(&variant(result)));
    }
    if result.is_opaque {
        return;
    }
    let resources = &result.resources;
    let mut text = format!("{}, {}", registers(resources), shared_memory(result));
    if resources.local_bytes_per_thread > 0 {
        let _ = write!(
            text,
            ", {} local memory per thread",
            bytes(resources.local_bytes_per_thread)
        );
    }
    if let Some(spilled) = spilled(resources) {
        let _ = write!(text, ", {spilled}");
    }
    label(out, style, "resources", &text);
    // Of source they are for scripts: what they cost is said by the models.
    if result.language == "assembly" && !result.instructions.is_empty() {
        let width = style.width.unwrap_or(PAGE).saturating_sub(15).max(30);
        for (at, line) in wrap(&instructions(result), width).iter().enumerate() {
            let name = if at == 0 { "code" } else { "" };
            label(out, style, name, line);
        }
    }
    let occupancy = &result.occupancy;
    label(out, style, "occupancy", &residency(result));
    if let Some(step) = &occupancy.next_step {
        for line in wrap(step, style.width.unwrap_or(PAGE).saturating_sub(15).max(30)) {
            label(out, style, "", &line);
        }
    }
}

/// `120: 40 ffma, 12 ldg`, the most frequent first.
fn instructions(result: &KernelResult) -> String {
    let mut classes: Vec<(&str, f64)> = result
        .instructions
        .iter()
        .filter(|(name, _)| *name != "total")
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    classes.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
    let classes: Vec<String> = classes
        .iter()
        .map(|(name, count)| format!("{} {name}", number(*count)))
        .collect();
    let total = result.instructions.get("total").copied().unwrap_or(0.0);
    format!("{}: {}", number(total), classes.join(", "))
}

/// The first statements of a kernel that were not understood, as a table.
pub fn loss_table(result: &KernelResult, most: usize) -> Table {
    let mut table = Table::new(&[
        ("line", Align::Right),
        ("statement", Align::Left),
        ("why", Align::Left),
    ])
    .elastic(1);
    for loss in result.not_understood.iter().take(most) {
        table.row([
            printable(&line_name(result, &loss.file, loss.line)).into(),
            Cell::code(printable(&truncate(&loss.text, 48))),
            printable(&loss.reason).into(),
        ]);
    }
    table
}

fn not_understood(out: &mut String, result: &KernelResult, style: Style) {
    let Some(title) = losses(result.not_understood.len()) else {
        return;
    };
    section(out, style, &title);
    out.push_str(&loss_table(result, MOST_LOSSES).render(style, 2));
    let more = result.not_understood.len().saturating_sub(MOST_LOSSES);
    if more > 0 {
        let _ = writeln!(out, "  and {more} more: `warplens check --stats --losses`");
    }
}

/// The accesses of a kernel as a table.
pub fn access_table(result: &KernelResult) -> Table {
    let mut table = Table::new(&[
        ("line", Align::Right),
        ("access", Align::Left),
        ("what", Align::Left),
        ("pattern", Align::Left),
        ("cost", Align::Right),
        ("ideal", Align::Right),
        ("per request", Align::Left),
        ("requests", Align::Right),
        ("lanes", Align::Right),
        ("line's share", Align::Right),
        ("sure", Align::Left),
    ])
    .elastic(1);
    for access in &result.accesses {
        let (cost, ideal, unit) = cost(access);
        let paint = match excess(access) {
            None => Paint::Quiet,
            Some(excess) if excess >= 2.0 => Paint::Warning,
            Some(excess) if excess > 1.0 => Paint::Information,
            Some(_) => Paint::Good,
        };
        table.row([
            printable(&line_name(result, &access.file, access.line)).into(),
            Cell::code(printable(&truncate(&access.text, 48))),
            format!("{} {}", access.space, access.op).into(),
            access.pattern.into(),
            Cell::new(cost, paint),
            ideal.into(),
            unit.into(),
            maybe(access.requests).into(),
            maybe(access.active_lanes_per_request).into(),
            share(result, &access.file, access.line)
                .map_or_else(String::new, percent)
                .into(),
            Cell::new(access.certainty, Paint::Quiet),
        ]);
    }
    table
}

fn accesses(out: &mut String, result: &KernelResult, style: Style) {
    if result.accesses.is_empty() {
        return;
    }
    section(out, style, "Memory accesses");
    out.push_str(&access_table(result).render(style, 2));
}

/// The branches and loops of a kernel as a table.
pub fn branch_table(result: &KernelResult) -> Table {
    let mut table = Table::new(&[
        ("line", Align::Right),
        ("kind", Align::Left),
        ("lanes", Align::Left),
        ("warps that diverge", Align::Right),
        ("warps that take it", Align::Right),
        ("sure", Align::Left),
    ]);
    let fraction = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), percent);
    for branch in &result.branches {
        let paint = match branch.divergent_warp_fraction {
            Some(split) if split >= 0.1 => Paint::Warning,
            _ => Paint::Plain,
        };
        table.row([
            printable(&line_name(result, &branch.file, branch.line)).into(),
            branch.kind.into(),
            branch.uniformity.into(),
            Cell::new(fraction(branch.divergent_warp_fraction), paint),
            fraction(branch.taken_warp_fraction).into(),
            Cell::new(branch.certainty, Paint::Quiet),
        ]);
    }
    table
}

fn branches(out: &mut String, result: &KernelResult, style: Style) {
    if result.branches.is_empty() {
        return;
    }
    section(out, style, "Branches and loops");
    out.push_str(&branch_table(result).render(style, 2));
}

fn estimates(out: &mut String, result: &KernelResult, style: Style) {
    if result.estimates.len() < 2 {
        return;
    }
    section(out, style, "Models side by side");
    out.push_str(&models::table(result).render(style, 2));
    if let Some(agreement) = models::agreement(result) {
        style.push(out, Paint::Quiet, &format!("  {agreement}\n"));
    }
}

fn bar(share: f64) -> String {
    "█".repeat(((share * BAR as f64).round().max(0.0) as usize).min(BAR))
}

fn breakdown(out: &mut String, result: &KernelResult, style: Style) {
    let Some((_, estimate)) = first_estimate(result) else {
        return;
    };
    let Some(whole) = whole(estimate) else {
        return;
    };
    section(out, style, "Where the cycles go");
    let mut table = Table::new(&[
        ("part", Align::Left),
        ("cycles", Align::Right),
        ("share", Align::Right),
        ("", Align::Left),
    ]);
    let mut parts: Vec<_> = parts(&estimate.breakdown)
        .into_iter()
        .filter(|(_, part)| *part > 0.0)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (name, part) in parts {
        table.row([
            words(name).into(),
            part_cycles(estimate, part).into(),
            percent(part / whole).into(),
            Cell::new(bar(part / whole), Paint::Information),
        ]);
    }
    out.push_str(&table.render(style, 2));
    if estimate.launch_overhead_ms > 0.0 {
        let launch = format!(
            "  launch overhead, beside this: about {}\n",
            time(estimate.launch_overhead_ms)
        );
        style.push(out, Paint::Quiet, &launch);
    }
    let mut lines: Vec<_> = result
        .lines
        .iter()
        .filter(|line| line.share >= 0.005)
        .collect();
    lines.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.line.cmp(&b.line)));
    if lines.is_empty() {
        return;
    }
    section(out, style, "Costliest lines");
    let mut table = Table::new(&[
        ("line", Align::Right),
        ("cycles", Align::Right),
        ("share", Align::Right),
        ("", Align::Left),
    ]);
    for line in lines.into_iter().take(8) {
        table.row([
            line.line.to_string().into(),
            maybe(line.cycles.map(f64::round)).into(),
            percent(line.share).into(),
            Cell::new(bar(line.share), Paint::Information),
        ]);
    }
    out.push_str(&table.render(style, 2));
}

/// What would help, the largest gain first.
fn help(out: &mut String, result: &KernelResult, style: Style) {
    if result.help().is_empty() {
        return;
    }
    section(out, style, "What would help");
    let mut table = Table::new(&[
        ("line", Align::Right),
        ("edit, finding or cause", Align::Left),
        ("rule", Align::Left),
    ]);
    for one in result.help() {
        let line = one.line.map_or_else(String::new, |line| line.to_string());
        table.row([
            line.into(),
            Cell::new(printable(&one.title), Paint::Good),
            one.rule.as_deref().unwrap_or_default().into(),
        ]);
    }
    out.push_str(&table.render(style, 2));
}

fn assumptions(out: &mut String, result: &KernelResult, style: Style) {
    if !result.assumptions.is_empty() {
        section(
            out,
            style,
            "Assumed (override with --arg, --block, --grid or a directive)",
        );
        for assumption in &result.assumptions {
            let line = format!(
                "  {} = {}  ({})",
                assumption.symbol, assumption.value, assumption.source
            );
            out.push_str(&printable(&line));
            out.push('\n');
        }
    }
    if !result.constraints.is_empty() {
        section(out, style, "Exact where");
        for constraint in &result.constraints {
            let _ = writeln!(out, "  {}", printable(constraint));
        }
    }
}

fn findings(out: &mut String, document: &EstimateDocument, style: Style) {
    if document.diagnostics.is_empty() {
        return;
    }
    section(out, style, "Findings");
    for finding in &document.diagnostics {
        let place = format!("{}:{}:{}", finding.file, finding.line, finding.column);
        let mut head = format!("  {}: ", printable(&place));
        let title = format!("{}[{}]", finding.severity, finding.rule);
        style.push(&mut head, Paint::of_severity(finding.severity), &title);
        let _ = writeln!(out, "{} {}", head, printable(&finding.message));
        details(out, finding, style);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use warplens_db::wire::{
        Assumption, Help, Launch, Line, Loss, Occupancy, Resources, Variant, WhatIf,
    };

    use super::*;

    fn access(text: &str, space: &'static str, cost: Option<f64>, ideal: f64) -> Access {
        let shared = space == "shared";
        Access {
            file: "k.cu".to_owned(),
            line: 4,
            column: 5,
            via: Vec::new(),
            text: text.to_owned(),
            space,
            op: "load",
            bytes_per_lane: 4,
            instruction: None,
            bytes_per_request: Some(128.0),
            index: "i".to_owned(),
            pattern: "strided",
            transactions_per_request: cost.filter(|_| !shared),
            ideal_transactions_per_request: Some(ideal).filter(|_| !shared),
            transaction_bytes: Some(32).filter(|_| !shared),
            passes_per_request: cost.filter(|_| shared),
            ideal_passes_per_request: Some(ideal).filter(|_| shared),
            bank_conflict_degree: None,
            requests: Some(8192.0),
            active_lanes_per_request: Some(32.0),
            exact: true,
            certainty: "exact",
            why: None,
            constraints: Vec::new(),
            other_case: None,
        }
    }

    fn estimate(cycles: Option<f64>) -> Estimate {
        Estimate {
            cycles,
            time_ms: cycles.map(|cycles| cycles / 1e6),
            launch_overhead_ms: 0.005,
            time_formula: None,
            time_formula_from: std::collections::BTreeMap::new(),
            time_formula_least: None,
            time_range: None,
            unknowns: Vec::new(),
            cycles_function: None,
            bottleneck: cycles.map(|_| "memory_bandwidth"),
            breakdown: Breakdown {
                compute: 0.0,
                memory_bandwidth: cycles.unwrap_or(0.0),
                memory_latency: 0.0,
                shared: 0.0,
                divergence: 0.0,
                tensor: 0.0,
                async_copy: 0.0,
                synchronisation: 0.0,
            },
            interval: None,
            detail: [("mwp".to_owned(), 2.28125), ("cwp".to_owned(), 20.0)].into(),
            why: cycles
                .is_none()
                .then(|| "not for this architecture".to_owned()),
        }
    }

    pub(crate) fn document() -> EstimateDocument {
        let result = KernelResult {
            kernel: "k".to_owned(),
            template_args: [("T".to_owned(), "float".to_owned())].into(),
            file: "k.cu".to_owned(),
            line: 1,
            language: "cuda",
            gpu: "a100-sxm4-40gb".to_owned(),
            launch: Launch {
                grid: Some([64, 1, 1]),
                grid_formula: None,
                block: [32, 8, 1],
                dynamic_shared_bytes: 0,
                block_source: "directive",
                grid_source: "assumed",
                count: None,
                run: None,
                begins_early: None,
            },
            variant: Variant {
                number: 1,
                of: 1,
                text: "<<<64, 32x8>>>".to_owned(),
                at: 0,
            },
            assumptions: vec![Assumption {
                symbol: "n".to_owned(),
                value: "1024".to_owned(),
                source: "default".to_owned(),
            }],
            constraints: vec!["n % 32 == 0".to_owned()],
            resources: Resources {
                registers_per_thread: 24,
                sgprs_per_wave: None,
                registers_source: "estimated",
                static_shared_bytes: 4096,
                local_bytes_per_thread: 0,
                spill_bytes: None,
                compiler: None,
            },
            occupancy: Occupancy {
                active_blocks_per_sm: 8,
                active_warps_per_sm: 64,
                fraction: 1.0,
                limiter: "warps",
                next_step: None,
            },
            accesses: vec![
                access("in[32 * i]", "global", Some(32.0), 4.0),
                access("tile[x][y]", "shared", Some(16.0), 1.0),
                access("in[p[i]]", "global", None, 4.0),
            ],
            branches: Vec::new(),
            counts: Vec::new(),
            instructions: std::collections::BTreeMap::new(),
            warp_instructions: None,
            estimates: [
                ("auto".to_owned(), estimate(Some(123_456.0))),
                ("wfg".to_owned(), estimate(None)),
            ]
            .into(),
            lines: vec![Line {
                file: "k.cu".to_owned(),
                line: 4,
                cycles: Some(123_456.0),
                share: 1.0,
            }],
            what_if: vec![
                WhatIf {
                    factor: "uncoalesced",
                    cycles: Some(61_728.0),
                    speedup: 2.0,
                },
                WhatIf {
                    factor: "divergence",
                    cycles: Some(123_456.0),
                    speedup: 1.0,
                },
            ],
            what_would_help: Some(vec![Help {
                kind: "cause",
                title: "2.00x: without uncoalesced accesses, most of it in line 4".to_owned(),
                gain: 2.0,
                line: Some(4),
                rule: None,
                factor: Some("uncoalesced"),
            }]),
            not_understood: Vec::new(),
            is_opaque: false,
        };
        EstimateDocument {
            schema: "warplens.estimate/1",
            results: vec![result],
            diagnostics: vec![],
            missing_includes: Vec::new(),
        }
    }

    #[track_caller]
    fn row<'a>(page: &'a str, holds: &str) -> Vec<&'a str> {
        let line = page.lines().find(|line| line.contains(holds));
        line.unwrap_or_else(|| panic!("{holds}: {page}"))
            .split_whitespace()
            .collect()
    }

    #[test]
    fn a_page_has_every_figure_where_people_look_for_it() {
        let page = page(&document(), Style::PLAIN);
        assert!(
            page.starts_with("k<T=float>  k.cu:1  on a100-sxm4-40gb\n"),
            "{page}"
        );
        assert!(
            page.contains("123 µs  123,456 cycles, bound by memory bandwidth"),
            "{page}"
        );
        assert!(
            page.contains("grid (64) (assumed), block (32,8) (directive)"),
            "{page}"
        );
        assert!(
            page.contains("100 %: 64 warps in 8 blocks on each SM, limited by warps"),
            "{page}"
        );
        let global = row(&page, "in[32 * i]");
        assert!(
            global
                .windows(3)
                .any(|cells| cells == ["32", "4", "sectors"]),
            "{page}"
        );
        assert!(
            row(&page, "tile[x][y]")
                .windows(3)
                .any(|cells| cells == ["16", "1", "passes"])
        );
        // What is not known is not a number.
        assert!(
            row(&page, "in[p[i]]")
                .windows(3)
                .any(|cells| cells == ["?", "4", "sectors"])
        );
        assert!(page.contains("not for this architecture"), "{page}");
        let help = page.split("What would help").nth(1).expect("a section");
        assert!(
            help.contains("4  2.00x: without uncoalesced accesses, most of it in line 4"),
            "{page}"
        );
        assert!(page.contains("n = 1024"), "{page}");
        assert!(page.contains("n % 32 == 0"), "{page}");
    }

    /// `count` statements of the kernel's file, and one of a header.
    fn partial(own: u32) -> KernelResult {
        let loss = |file: &str, line| Loss {
            kernel: "k".to_owned(),
            file: file.to_owned(),
            line,
            column: 1,
            reason: "call to an unseen function".to_owned(),
            text: "mystery(`a`);".to_owned(),
        };
        let mut result = document().results.remove(0);
        result.not_understood = (1..=own).map(|line| loss("k.cu", line)).collect();
        result.not_understood.insert(0, loss("inc/u.cuh", 77));
        result
    }

    #[test]
    fn what_was_not_understood_is_listed_up_to_a_limit() {
        let none = page(&document(), Style::PLAIN);
        assert!(!none.contains("not understood"), "{none}");
        let few = EstimateDocument {
            results: vec![partial(1)],
            ..document()
        };
        let text = page(&few, Style::PLAIN);
        assert!(text.contains("2 statements not understood\n"), "{text}");
        assert!(
            row(&text, "mystery").starts_with(&["u.cuh:77", "mystery(`a`);"]),
            "{text}"
        );
        assert!(!text.contains(" more: "), "{text}");
        let many = EstimateDocument {
            results: vec![partial(14)],
            ..document()
        };
        let text = page(&many, Style::PLAIN);
        assert!(text.contains("15 statements not understood\n"), "{text}");
        assert_eq!(text.matches("mystery").count(), MOST_LOSSES, "{text}");
        assert!(text.contains("and 5 more: "), "{text}");

        let markdown = crate::markdown::summary(&partial(14));
        assert!(
            markdown.contains("### 15 statements not understood"),
            "{markdown}"
        );
        assert!(
            markdown
                .contains("- u.cuh:77: `mystery('a');`: call to an unseen function\n- 1: `mystery"),
            "{markdown}"
        );
        assert_eq!(
            markdown.matches("mystery").count(),
            MOST_LOSSES,
            "{markdown}"
        );
        assert!(markdown.contains("- and 5 more\n"), "{markdown}");
        let one = crate::markdown::summary(&partial(0));
        assert!(one.contains("### 1 statement not understood"), "{one}");
    }

    #[test]
    fn one_of_several_launches_says_which_it_is() {
        let mut document = document();
        assert!(!page(&document, Style::PLAIN).contains("launch 1 of"));
        document.results[0].variant.of = 3;
        let text = page(&document, Style::PLAIN);
        assert!(text.contains("launch 1 of 3: <<<64, 32x8>>>"), "{text}");
    }

    #[test]
    fn headers_that_are_missing_are_told_once() {
        let mut document = document();
        document.missing_includes = vec!["a.h".to_owned(), "b/c.h".to_owned()];
        let text = page(&document, Style::PLAIN);
        assert_eq!(
            text.matches("headers not found: a.h, b/c.h (").count(),
            1,
            "{text}"
        );
    }

    #[test]
    fn markdown_holds_the_same_figures() {
        let text = crate::markdown::breakdown(&document().results[0]);
        assert!(text.starts_with("## `k` on a100-sxm4-40gb"), "{text}");
        assert!(
            text.contains("| 4 | `in[32 * i]` | global load | strided | 32 | 4 | sectors |"),
            "{text}"
        );
        assert!(
            text.contains("- 2.00x: without uncoalesced accesses, most of it in line 4"),
            "{text}"
        );
        assert!(text.contains("- `n` = 1024 (default)"), "{text}");
    }

    #[test]
    fn no_kernels_is_said() {
        let empty = EstimateDocument {
            results: vec![],
            ..document()
        };
        assert_eq!(page(&empty, Style::PLAIN), "no kernels found\n");
    }
}
