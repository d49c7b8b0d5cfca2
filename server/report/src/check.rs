//! What `warplens check` prints for people: each finding under its source line, then the kernels in one table.

use std::fmt::Write as _;

use warplens_db::wire::{Diagnostic, Loss, Stats};
use warplens_db::{FileAnalysis, PlacedKernel};
use warplens_facts::facts::Source;
use warplens_models::{ModelId, OpenTime};

use crate::figure::{counted, extents, losses, number, percent, predicted, words};
use crate::style::{Paint, Style, printable, truncate, wrap};
use crate::table::{Align, Cell, Table};

/// A source line wider than this is shown in part.
const SNIPPET: usize = 160;
/// Columns of a tab in a shown line.
const TAB: usize = 4;

/// One finding: where, what, the line with carets under the cause, and where it repeats. `source` is the file's text, where
/// there is one.
pub fn finding(
    diagnostic: &Diagnostic,
    also: &[&Diagnostic],
    source: Option<&str>,
    style: Style,
) -> String {
    let mut out = String::new();
    let place = format!(
        "{}:{}:{}: ",
        diagnostic.file, diagnostic.line, diagnostic.column
    );
    style.push(&mut out, Paint::Strong, &printable(&place));
    let title = format!("{}[{}]", diagnostic.severity, diagnostic.rule);
    let paint = Paint::of_severity(diagnostic.severity);
    style.push(&mut out, paint, &title);
    out.push(' ');
    match style.width {
        Some(width) => {
            let used = place.chars().count() + title.chars().count() + 1;
            out.push_str(&hanging(&printable(&diagnostic.message), used, width));
        }
        None => out.push_str(&printable(&diagnostic.message)),
    }
    out.push('\n');
    if let Some(text) = source.and_then(|text| text.lines().nth(diagnostic.line as usize - 1)) {
        snippet(&mut out, diagnostic, text, paint, style);
    }
    details(&mut out, diagnostic, style);
    if !also.is_empty() {
        style.push(&mut out, Paint::Quiet, &printable(&elsewhere(also)));
        out.push('\n');
    }
    out
}

/// Other places of one finding that are listed; the rest are counted.
const PLACES: usize = 4;

/// ` also at b.cu:3, c.cu:4 and 7 more`.
fn elsewhere(also: &[&Diagnostic]) -> String {
    let shown = also.iter().take(PLACES);
    let places: Vec<String> = shown
        .map(|place| format!("{}:{}", place.file, place.line))
        .collect();
    let more = match also.len().saturating_sub(PLACES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" also at {}{more}", places.join(", "))
}

/// `message` wrapped, its first line beginning after `used` columns, the others after four.
fn hanging(message: &str, used: usize, width: usize) -> String {
    let width = width.max(40);
    let room = width.saturating_sub(used);
    if room < 24 {
        return format!("\n    {}", wrap(message, width - 4).join("\n    "));
    }
    let first = wrap(message, room).into_iter().next().unwrap_or_default();
    let rest = message.trim_start().get(first.len()..).unwrap_or("");
    let mut text = first;
    for line in wrap(rest, width - 4) {
        text.push_str("\n    ");
        text.push_str(&line);
    }
    text
}

/// The lines below a finding: the cause in full, what it depends on.
pub(crate) fn details(out: &mut String, diagnostic: &Diagnostic, style: Style) {
    for detail in &diagnostic.details {
        let detail = printable(detail);
        let lines = match style.width {
            Some(width) => wrap(&detail, width.max(40) - 4),
            None => vec![detail],
        };
        style.push(out, Paint::Quiet, &format!("  = {}", lines.join("\n    ")));
        out.push('\n');
    }
}

fn snippet(out: &mut String, diagnostic: &Diagnostic, text: &str, paint: Paint, style: Style) {
    let start = diagnostic.column as usize - 1;
    let end = if diagnostic.end_line > diagnostic.line {
        text.len()
    } else {
        (diagnostic.end_column as usize)
            .saturating_sub(1)
            .clamp(start, text.len().max(start))
    };
    // Columns count bytes; a terminal shows characters, and a tab as a few blanks.
    let mut shown = String::new();
    let mut first = None;
    let mut last = 0;
    let mut column = 0;
    for (offset, c) in text.char_indices() {
        if column >= SNIPPET {
            break;
        }
        let width = if c == '\t' { TAB } else { 1 };
        if offset >= start && offset < end {
            first.get_or_insert(column);
            last = column + width;
        }
        if c == '\t' {
            shown.push_str(&" ".repeat(TAB));
        } else {
            shown.push(c);
        }
        column += width;
    }
    let number = diagnostic.line.to_string();
    let margin = " ".repeat(number.len());
    let first = first.unwrap_or(start.min(column));
    let carets = "^".repeat(last.saturating_sub(first).max(1));
    style.push(out, Paint::Quiet, &format!(" {number} | "));
    let _ = writeln!(out, "{}", printable(&shown).trim_end());
    style.push(out, Paint::Quiet, &format!(" {margin} | "));
    out.push_str(&" ".repeat(first));
    style.push(out, paint, &carets);
    out.push('\n');
}

/// The kernels of all files: launch, predicted time, what bounds it, occupancy, and the two warp parallelisms.
#[derive(Debug)]
pub struct KernelTable {
    table: Table,
    assumed: bool,
    /// A kernel has statements that were not understood.
    partial: bool,
    /// A kernel is that of another GPU than the target.
    elsewhere: bool,
}

impl Default for KernelTable {
    fn default() -> Self {
        KernelTable {
            table: Table::new(&[
                ("  kernel", Align::Left),
                ("line", Align::Right),
                ("grid", Align::Left),
                ("block", Align::Left),
                ("time", Align::Right),
                ("bound by", Align::Left),
                ("occupancy", Align::Right),
                ("limit", Align::Left),
                ("MWP/CWP", Align::Right),
            ])
            // Of a narrow line the time and what bounds it are left.
            .elastic_names(0, &[8, 7, 2, 3, 6, 1]),
            assumed: false,
            partial: false,
            elsewhere: false,
        }
    }
}

impl KernelTable {
    /// Adds the kernels of one file that are wanted.
    pub fn add(&mut self, file: &str, analysis: &FileAnalysis, wanted: &dyn Fn(&str) -> bool) {
        let wanted = |kernel: &&PlacedKernel| wanted(&kernel.analysis.facts.name);
        let mut kernels = analysis.kernels.iter().filter(wanted).peekable();
        if kernels.peek().is_some() {
            let profile = &analysis.profile;
            self.table
                .heading(printable(&format!("{file} on {}", profile.id)));
        }
        for kernel in kernels {
            self.kernel(kernel, &analysis.profile.id);
        }
    }

    fn kernel(&mut self, kernel: &PlacedKernel, target: &str) {
        let analysis = &kernel.analysis;
        let facts = &analysis.facts;
        let launch = &facts.launch;
        let estimate = analysis.estimate();
        let line = kernel.place_line(facts.name_site.line) + 1;
        let mut marked = |text: String, source: Source| {
            if source.is_assumption() {
                self.assumed = true;
                Cell::new(format!("{text}*"), Paint::Quiet)
            } else {
                Cell::from(text)
            }
        };
        let mut time = shown_time(&estimate).unwrap_or_else(|| "-".to_owned());
        if !facts.not_understood.is_empty() {
            self.partial = true;
            time.push('?');
        }
        let grid = analysis.grid_formula();
        let grid = grid.unwrap_or_else(|| extents(launch.grid));
        let grid = marked(grid, launch.grid_source);
        let block = marked(extents(launch.block), launch.block_source);
        let mut name = format!("  {}", printable(&facts.name));
        if analysis.profile.id != target {
            self.elsewhere = true;
            name = format!("{name} ({})", analysis.profile.id);
        }
        let (occupancy, limit) = if analysis.is_opaque() {
            ("-".to_owned(), "-")
        } else {
            let occupancy = &analysis.input.occupancy;
            (percent(occupancy.fraction), occupancy.limiter.name())
        };
        self.table.row([
            name.into(),
            Cell::new(line.to_string(), Paint::Quiet),
            grid,
            block,
            Cell::new(time, Paint::Strong),
            estimate
                .bottleneck
                .map_or_else(|| "-".to_owned(), |b| words(b.name()))
                .into(),
            occupancy.into(),
            limit.into(),
            warp_parallelism(kernel).into(),
        ]);
    }

    /// True without kernels.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The table, with a legend where a `*` or a `?` occurs.
    pub fn render(&self, style: Style) -> String {
        let mut out = self.table.render(style, 0);
        if self.assumed {
            style.push(
                &mut out,
                Paint::Quiet,
                "* assumed: say it in the source with `// warplens: block=(x,y) grid=(x,y)`, \
                 in warplens.toml, or with --block and --grid\n",
            );
        }
        if self.elsewhere {
            style.push(
                &mut out,
                Paint::Quiet,
                "(GPU) on the nearest GPU that runs the kernel: the target does not\n",
            );
        }
        if self.partial {
            style.push(
                &mut out,
                Paint::Quiet,
                "? without statements that were not understood: `warplens check --stats --losses` lists them\n",
            );
        }
        out
    }
}

/// The time of an estimate, or how it depends on what nothing gives.
pub fn shown_time(estimate: &warplens_models::Estimate) -> Option<String> {
    let open = estimate.open.as_ref();
    predicted(
        estimate.time_ms,
        open.and_then(OpenTime::text).as_deref(),
        open.map_or(&[], |open| &open.unknowns),
    )
}

fn tenths(value: f64) -> String {
    number((value * 10.0).round() / 10.0)
}

fn warp_parallelism(kernel: &PlacedKernel) -> String {
    let detail = kernel
        .analysis
        .estimates()
        .get(&ModelId::MwpCwp)
        .map(|estimate| &estimate.detail);
    let value = |key: &str| detail.and_then(|detail| detail.get(key)).copied();
    match (value("mwp"), value("cwp")) {
        (Some(mwp), Some(cwp)) => format!("{}/{}", tenths(mwp), tenths(cwp)),
        _ => "-".to_owned(),
    }
}

/// The last line: how many findings of which severity in how many files.
pub fn summary(diagnostics: &[Diagnostic], files: u64, kernels: u64, style: Style) -> String {
    let mut parts = Vec::new();
    for severity in ["error", "warning", "information", "hint"] {
        let count = diagnostics
            .iter()
            .filter(|d| d.severity == severity)
            .count() as u64;
        if count > 0 {
            let noun = if severity == "information" {
                format!("{count} information")
            } else {
                counted(count, severity)
            };
            parts.push(style.paint(Paint::of_severity(severity), &noun));
        }
    }
    let found = if parts.is_empty() {
        style.paint(Paint::Good, "nothing found")
    } else {
        parts.join(", ")
    };
    format!(
        "{found} in {} of {}\n",
        counted(kernels, "kernel"),
        counted(files, "file")
    )
}

/// The figures of `--stats`.
pub fn stats(stats: &Stats, style: Style) -> String {
    let mut out = String::new();
    let share = |count: u64, of: u64| {
        if of == 0 {
            String::new()
        } else {
            percent(count as f64 / of as f64)
        }
    };
    let mut table = Table::new(&[
        ("understood", Align::Left),
        ("count", Align::Right),
        ("share", Align::Right),
    ]);
    for (name, count, of) in [
        ("files", stats.files, 0),
        ("unreadable files", stats.unreadable_files, 0),
        ("kernels", stats.kernels, 0),
        ("  clean", stats.clean, stats.kernels),
        ("  partial", stats.partial, stats.kernels),
        ("  failed", stats.failed, stats.kernels),
        (
            "  block size in the source",
            stats.launch_known,
            stats.kernels,
        ),
        ("accesses of those", stats.accesses, 0),
        ("  exact", stats.accesses_exact, stats.accesses),
        ("branches of those", stats.branches, 0),
        ("  exact", stats.branches_exact, stats.branches),
    ] {
        let part = share(count, of);
        table.row([name.into(), number(count as f64).into(), part.into()]);
    }
    out.push_str(&table.render(style, 0));
    if !stats.reasons.is_empty() {
        let mut reasons: Vec<_> = stats.reasons.iter().collect();
        reasons.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let mut table = Table::new(&[("not understood", Align::Left), ("times", Align::Right)]);
        for (reason, count) in reasons {
            table.row([printable(reason).into(), number(*count as f64).into()]);
        }
        out.push('\n');
        out.push_str(&table.render(style, 0));
    }
    if !stats.missing_includes.is_empty() {
        let mut missing: Vec<_> = stats.missing_includes.iter().collect();
        missing.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let mut table = Table::new(&[("headers not found", Align::Left), ("files", Align::Right)]);
        for (header, files) in missing {
            table.row([printable(header).into(), number(*files as f64).into()]);
        }
        out.push('\n');
        out.push_str(&table.render(style, 0));
    }
    let _ = writeln!(
        out,
        "\n{} s",
        number((stats.seconds * 100.0).round() / 100.0)
    );
    out
}

/// The kernels of one file that were not understood in full: how many statements of each, and with `each`
/// their places.
pub fn partial(file: &str, found: &[Loss], each: bool, style: Style) -> String {
    let mut kernels: Vec<(&str, Vec<&Loss>)> = Vec::new();
    for loss in found {
        match kernels.iter_mut().find(|(name, _)| *name == loss.kernel) {
            Some((_, of)) => of.push(loss),
            None => kernels.push((&loss.kernel, vec![loss])),
        }
    }
    let mut out = String::new();
    for (kernel, found) in kernels {
        let Some(count) = losses(found.len()) else {
            continue;
        };
        style.push(&mut out, Paint::Strong, &printable(kernel));
        let _ = writeln!(out, " in {}: {count}", printable(file));
        for loss in found.into_iter().filter(|_| each) {
            let place = format!("  {}:{}:{}: ", loss.file, loss.line, loss.column);
            style.push(&mut out, Paint::Quiet, &printable(&place));
            let text = format!("{}: {}", loss.reason, truncate(&loss.text, 60));
            let _ = writeln!(out, "{}", printable(&text));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(line: u32, column: u32, end_column: u32) -> Diagnostic {
        Diagnostic {
            rule: "mem/strided".to_owned(),
            severity: "warning",
            file: "k.cu".to_owned(),
            line,
            column,
            end_line: line,
            end_column,
            message: "32 sectors per request (ideal 4)".to_owned(),
            gain: 2.0,
            ..Diagnostic::default()
        }
    }

    #[test]
    fn carets_stand_under_the_cause() {
        let text = finding(
            &diagnostic(2, 12, 24),
            &[],
            Some("{\n  out[i] = in[i * 32];\n}\n"),
            Style::PLAIN,
        );
        assert_eq!(
            text,
            "k.cu:2:12: warning[mem/strided] 32 sectors per request (ideal 4)\n \
             2 |   out[i] = in[i * 32];\n   |            ^^^^^^^^^^^\n"
        );
    }

    #[test]
    fn repeats_are_listed_and_many_are_counted() {
        let first = diagnostic(2, 12, 24);
        let copies: Vec<Diagnostic> = (3..9).map(|line| diagnostic(line, 12, 24)).collect();
        let also: Vec<&Diagnostic> = copies.iter().collect();
        let text = finding(&first, &also, None, Style::PLAIN);
        assert!(
            text.ends_with(" also at k.cu:3, k.cu:4, k.cu:5, k.cu:6 and 2 more\n"),
            "{text}"
        );
    }

    #[test]
    fn tabs_and_letters_beyond_ascii_do_not_move_the_carets() {
        // `\t` is one byte and four columns, `ö` two bytes and one column.
        let text = finding(
            &diagnostic(1, 6, 10),
            &[],
            Some("\töx = a[i];"),
            Style::PLAIN,
        );
        let lines: Vec<&str> = text.lines().collect();
        let caret = lines[2].find('^').unwrap();
        let shown: Vec<char> = lines[1].chars().collect();
        assert_eq!(shown[caret], '=', "{text}");
    }

    #[test]
    fn places_outside_the_text_do_no_harm() {
        for (line, column, end) in [(9, 1, 2), (1, 99, 120), (1, 1, 1)] {
            let text = finding(
                &diagnostic(line, column, end),
                &[],
                Some("abc"),
                Style::PLAIN,
            );
            assert!(text.starts_with("k.cu:"));
        }
    }

    #[test]
    fn long_messages_wrap_on_a_terminal_and_lose_nothing() {
        let mut long = diagnostic(1, 1, 2);
        long.message = "word ".repeat(60).trim().to_owned();
        let text = finding(
            &long,
            &[],
            None,
            Style {
                colour: false,
                width: Some(80),
            },
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert_eq!(text.matches("word").count(), 60);
    }

    #[test]
    fn what_was_not_understood_is_told_by_kernel() {
        let loss = |kernel: &str, line| Loss {
            kernel: kernel.to_owned(),
            file: "k.cu".to_owned(),
            line,
            column: 5,
            reason: "inline assembly".to_owned(),
            text: "asm(x)".to_owned(),
        };
        let found = [loss("a", 3), loss("a", 4), loss("b", 9)];
        assert_eq!(
            partial("k.cu", &found, false, Style::PLAIN),
            "a in k.cu: 2 statements not understood\nb in k.cu: 1 statement not understood\n"
        );
        assert_eq!(
            partial("k.cu", &found[1..], true, Style::PLAIN),
            "a in k.cu: 1 statement not understood\n  k.cu:4:5: inline assembly: asm(x)\n\
             b in k.cu: 1 statement not understood\n  k.cu:9:5: inline assembly: asm(x)\n"
        );
        assert_eq!(partial("k.cu", &[], true, Style::PLAIN), "");
    }

    #[test]
    fn the_summary_counts_by_severity() {
        let text = summary(
            &[diagnostic(1, 1, 2), diagnostic(1, 1, 2)],
            1,
            3,
            Style::PLAIN,
        );
        assert_eq!(text, "2 warnings in 3 kernels of 1 file\n");
        assert_eq!(
            summary(&[], 2, 1, Style::PLAIN),
            "nothing found in 1 kernel of 2 files\n"
        );
    }
}
