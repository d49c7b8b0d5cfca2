//! What changed between two versions: a table for people, Markdown for a pull request.

use std::fmt::Write as _;

use warplens_db::wire::{Diagnostic, DiffDocument, KernelChange, ProgramStanding, Standing};

use crate::escape::escape_markdown;
use crate::figure::{bytes, counted, grouped, number, percent, predicted, words};
use crate::style::{Paint, Style, printable};
use crate::table::{Align, Cell, Table};

/// Findings listed of each kind; the others are counted.
const LISTED: usize = 20;

/// For a terminal.
pub fn page(document: &DiffDocument, style: Style) -> String {
    let table = table(document);
    let mut out = String::new();
    if !table.is_empty() {
        out.push_str(&table.render(style, 0));
        out.push('\n');
    }
    let programs = programs(document);
    if !programs.is_empty() {
        out.push_str(&programs.render(style, 0));
        out.push('\n');
    }
    for line in justified(document) {
        let _ = writeln!(out, "{}", printable(&line));
    }
    for (title, findings, paint) in [
        ("new", &document.diagnostics.added, Paint::Warning),
        ("gone", &document.diagnostics.removed, Paint::Good),
    ] {
        for finding in findings.iter().take(LISTED) {
            style.push(&mut out, paint, &format!("{title} "));
            let _ = writeln!(out, "{}", printable(&described(finding)));
        }
        if let Some(more) = findings.len().checked_sub(LISTED + 1) {
            let _ = writeln!(out, "and {} {title} ones more", more + 1);
        }
    }
    let _ = writeln!(out, "{}", summary(document));
    out
}

/// For a pull request.
pub fn markdown(document: &DiffDocument) -> String {
    let mut out = String::from("### Predicted cost of the kernels\n\n");
    let _ = writeln!(out, "{}\n", summary(document));
    let table = table(document);
    if !table.is_empty() {
        out.push_str(&table.markdown());
        out.push('\n');
    }
    let programs = programs(document);
    if !programs.is_empty() {
        let _ = writeln!(out, "{}", programs.markdown());
    }
    for line in justified(document) {
        let _ = writeln!(out, "- {}", escape_markdown(&line));
    }
    for (title, findings) in [
        ("New findings", &document.diagnostics.added),
        ("Findings that are gone", &document.diagnostics.removed),
    ] {
        if findings.is_empty() {
            continue;
        }
        let _ = writeln!(
            out,
            "\n<details><summary>{title}: {}</summary>\n",
            findings.len()
        );
        for finding in findings.iter().take(LISTED) {
            let _ = writeln!(out, "- {}", escape_markdown(&described(finding)));
        }
        if findings.len() > LISTED {
            let _ = writeln!(out, "- and {} more", findings.len() - LISTED);
        }
        out.push_str("\n</details>\n");
    }
    out.push_str("\nPredicted from the source, not measured.\n");
    out
}

/// The programs whose account changed.
fn programs(document: &DiffDocument) -> Table {
    let mut table = Table::new(&[
        ("program", Align::Left),
        ("GPU", Align::Left),
        ("GPU time", Align::Right),
        ("change", Align::Right),
        ("launches", Align::Right),
        ("to the GPU", Align::Right),
        ("from the GPU", Align::Right),
    ])
    .elastic(0);
    for change in &document.programs {
        let of = |figure: &dyn Fn(&ProgramStanding) -> String| {
            let [before, after] =
                [&change.before, &change.after].map(|one| one.as_ref().map(figure));
            match (before, after) {
                (Some(before), Some(after)) if before == after => after,
                (before, after) => {
                    let said = |one: Option<String>| one.unwrap_or_else(|| "none".to_owned());
                    format!("{} -> {}", said(before), said(after))
                }
            }
        };
        let amount = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), bytes);
        let cells = [
            change.file.clone(),
            change.gpu.clone(),
            of(&|one| {
                predicted(one.gpu_ms, one.gpu_formula.as_deref(), &[])
                    .unwrap_or_else(|| "?".to_owned())
            }),
            change.slowdown.map_or(String::new(), |slowdown| {
                format!("{:+.1} %", (slowdown - 1.0) * 100.0)
            }),
            of(&|one| {
                let formula = one.launches.formula.clone();
                let number = one.launches.number.map(grouped);
                number.or(formula).unwrap_or_else(|| "?".to_owned())
            }),
            of(&|one| amount(one.to_device_bytes)),
            of(&|one| amount(one.to_host_bytes)),
        ];
        table.row(cells.map(|text| Cell::from(printable(&text))));
    }
    table
}

fn described(finding: &Diagnostic) -> String {
    format!(
        "{}:{}: {}[{}] {}",
        finding.file, finding.line, finding.severity, finding.rule, finding.message
    )
}

fn justified(document: &DiffDocument) -> Vec<String> {
    let kernels = document.kernels.iter();
    let slower = kernels.filter(|change| change.is_slower());
    let said = slower.filter_map(|change| {
        let reason = change.justification.as_ref()?;
        Some(format!("`{}` may be slower: {reason}", change.kernel))
    });
    said.collect()
}

/// The last line of the page, the first of the Markdown.
fn summary(document: &DiffDocument) -> String {
    let count = |of: &dyn Fn(&KernelChange) -> bool| {
        document.kernels.iter().filter(|change| of(change)).count() as u64
    };
    let mut parts = Vec::new();
    for (count, what) in [
        (count(&|change| change.regression), "slower than allowed"),
        (count(&KernelChange::is_slower), "slower"),
        (count(&KernelChange::is_faster), "faster"),
        (count(&|change| change.before.is_none()), "new"),
        (count(&|change| change.after.is_none()), "gone"),
        (count(&KernelChange::is_same), "unchanged"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", counted(count, "kernel")));
        }
    }
    for (findings, what) in [
        (&document.diagnostics.added, "new"),
        (&document.diagnostics.removed, "gone"),
    ] {
        if !findings.is_empty() {
            parts.push(format!(
                "{} {what}",
                counted(findings.len() as u64, "finding")
            ));
        }
    }
    if parts.is_empty() {
        "no kernels in either version".to_owned()
    } else {
        parts.join(", ")
    }
}

/// The kernels that changed.
fn table(document: &DiffDocument) -> Table {
    let mut table = Table::new(&[
        ("kernel", Align::Left),
        ("GPU", Align::Left),
        ("time", Align::Right),
        ("change", Align::Right),
        ("bound by", Align::Left),
        ("registers", Align::Right),
        ("spills", Align::Right),
        ("shared", Align::Right),
        ("occupancy", Align::Right),
        ("transactions", Align::Right),
        ("bank passes", Align::Right),
    ])
    .elastic(0);
    let mut file = "";
    for change in document.kernels.iter().filter(|change| !change.is_same()) {
        if change.file != file {
            file = &change.file;
            let moved = change.moved_from.as_ref();
            let moved = moved.map_or_else(String::new, |from| format!(" (from {from})"));
            table.heading(printable(&format!("{file}{moved}")));
        }
        table.row(row(change));
    }
    table
}

fn row(change: &KernelChange) -> [Cell; 11] {
    let both = |of: &dyn Fn(&Standing) -> String| -> Cell {
        let (before, after) = (
            change.before.as_ref().map(of),
            change.after.as_ref().map(of),
        );
        match (before, after) {
            (Some(before), Some(after)) if before == after => Cell::from(after),
            (Some(before), Some(after)) => Cell::from(format!("{before} -> {after}")),
            (None, Some(one)) | (Some(one), None) => Cell::from(one),
            (None, None) => Cell::from(""),
        }
    };
    let unknown = || "?".to_owned();
    let verdict = match (change.slowdown, &change.before, &change.after) {
        (_, None, _) => Cell::new("new", Paint::Quiet),
        (_, _, None) => Cell::new("gone", Paint::Quiet),
        (Some(slowdown), ..) => {
            let sign = if slowdown > 1.0 { "+" } else { "-" };
            let paint = match change {
                change if change.regression => Paint::Error,
                change if change.is_slower() => Paint::Warning,
                change if change.is_faster() => Paint::Good,
                _ => Paint::Quiet,
            };
            Cell::new(format!("{sign}{}", percent((slowdown - 1.0).abs())), paint)
        }
        (None, ..) => Cell::new(
            "?",
            if change.regression {
                Paint::Error
            } else {
                Paint::Quiet
            },
        ),
    };
    let arguments: Vec<&str> = change.template_args.values().map(String::as_str).collect();
    let name = if arguments.is_empty() {
        change.kernel.clone()
    } else {
        format!("{}<{}>", change.kernel, arguments.join(", "))
    };
    [
        Cell::new(printable(&name), Paint::Strong),
        Cell::from(change.gpu.clone()),
        both(&|one| {
            predicted(one.time_ms, one.time_formula.as_deref(), &one.unknowns)
                .unwrap_or_else(unknown)
        }),
        verdict,
        both(&|one| one.bottleneck.map_or_else(unknown, words)),
        both(&|one| one.registers_per_thread.to_string()),
        both(&|one| number(one.spill_bytes as f64)),
        both(&|one| number(one.shared_bytes as f64)),
        both(&|one| percent(one.occupancy)),
        both(&|one| one.global_transactions.map_or_else(unknown, number)),
        both(&|one| one.shared_passes.map_or_else(unknown, number)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_db::wire::Changed;

    fn standing(time_ms: f64, registers_per_thread: u32) -> Standing {
        Standing {
            line: 3,
            grid: Some([64, 1, 1]),
            block: [256, 1, 1],
            launch_known: true,
            time_ms: Some(time_ms),
            time_formula: None,
            unknowns: Vec::new(),
            cycles: Some(time_ms * 1e6),
            bottleneck: Some("memory_bandwidth"),
            registers_per_thread,
            spill_bytes: 0,
            shared_bytes: 0,
            occupancy: 1.0,
            global_transactions: Some(4096.0),
            shared_passes: Some(0.0),
            warp_instructions: None,
        }
    }

    fn change(before: Option<Standing>, after: Option<Standing>) -> KernelChange {
        let time = |one: &Option<Standing>| one.as_ref().and_then(|one| one.time_ms);
        KernelChange {
            kernel: "scale".to_owned(),
            template_args: [("T".to_owned(), "float".to_owned())].into(),
            file: "k.cu".to_owned(),
            moved_from: None,
            gpu: "a100-sxm4-40gb".to_owned(),
            slowdown: time(&after)
                .zip(time(&before))
                .map(|(after, before)| after / before),
            regression: false,
            justification: Some("doubles are needed".to_owned()),
            before,
            after,
        }
    }

    fn document(kernels: Vec<KernelChange>) -> DiffDocument {
        DiffDocument {
            schema: "warplens.diff/1",
            kernels,
            programs: Vec::new(),
            diagnostics: Changed::default(),
        }
    }

    #[test]
    fn a_slower_kernel_shows_what_changed_and_why_it_may() {
        let slower = change(Some(standing(1.0, 32)), Some(standing(1.5, 40)));
        let text = page(&document(vec![slower]), Style::PLAIN);
        for part in [
            "scale<float>",
            "1.00 ms -> 1.50 ms",
            "+50 %",
            "32 -> 40",
            "may be slower: doubles are needed",
            "1 kernel slower",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_is_the_same_is_only_counted() {
        let same = change(Some(standing(1.0, 32)), Some(standing(1.001, 32)));
        let text = page(&document(vec![same]), Style::PLAIN);
        assert_eq!(text, "1 kernel unchanged\n");
    }

    #[test]
    fn new_and_gone_kernels_say_so() {
        let kernels = vec![
            change(None, Some(standing(1.0, 32))),
            change(Some(standing(1.0, 32)), None),
        ];
        let text = markdown(&document(kernels));
        assert!(text.contains("1 kernel new, 1 kernel gone"), "{text}");
        assert!(
            text.contains("| new |") && text.contains("| gone |"),
            "{text}"
        );
    }
}
