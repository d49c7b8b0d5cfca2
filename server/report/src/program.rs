//! The page that `warplens program` prints: each program's kernels, copies and what to look at first.

use std::fmt::Write as _;

use warplens_db::wire::{
    LookFirst, ProgramAccount, ProgramDocument, ProgramKernel, ProgramLaunch, Times, Transfer,
    Unknown,
};

use crate::estimate::grid;
use crate::figure::{bytes, extents, grouped, percent, predicted, time, words};
use crate::style::{Paint, Style, printable, wrap};
use crate::table::{Align, Cell, Table};

/// Width of a page's paragraphs where the terminal does not say.
const PAGE: usize = 100;
/// Rows of a table; the others are counted.
const MOST: usize = 30;

/// All programs, a blank line between two of them.
pub fn page(document: &ProgramDocument, style: Style) -> String {
    let pages: Vec<String> = document
        .programs
        .iter()
        .map(|one| program(one, style))
        .collect();
    let mut out = pages.join("\n");
    if !document.without_launches.is_empty() {
        let text = format!(
            "launches nothing: {}",
            printable(&document.without_launches.join(", "))
        );
        out.push('\n');
        style.push(&mut out, Paint::Quiet, &text);
        out.push('\n');
    }
    out
}

/// An account as people read it: files as the program's folder calls them, loops and conditions by short names.
#[derive(Debug)]
pub struct Account<'a> {
    account: &'a ProgramAccount,
    /// The symbol of each loop and condition, and its short name.
    names: Vec<(&'a str, String)>,
}

impl<'a> Account<'a> {
    /// One account.
    pub fn new(account: &'a ProgramAccount) -> Account<'a> {
        let (mut loops, mut conditions) = (0, 0);
        let name = |unknown: &'a Unknown| {
            let (count, word) = match unknown.kind {
                "iterations" => (&mut loops, "loop"),
                _ => (&mut conditions, "if"),
            };
            *count += 1;
            (unknown.symbol.as_str(), format!("{word}{count}"))
        };
        Account {
            account,
            names: account.unknowns.iter().map(name).collect(),
        }
    }

    /// A formula with short names.
    fn short(&self, formula: &str) -> String {
        let mut text = formula.to_owned();
        for (symbol, name) in &self.names {
            text = text.replace(symbol, name);
        }
        text
    }

    /// A place, seen from the program's folder.
    fn at(&self, file: &str, line: u32) -> String {
        let folder = self
            .account
            .file
            .rfind('/')
            .map_or("", |end| &self.account.file[..=end]);
        format!("{}:{line}", file.strip_prefix(folder).unwrap_or(file))
    }

    /// What the program does altogether: title, text.
    pub fn summary(&self) -> Vec<(&'static str, String)> {
        vec![
            ("run as", self.account.run.clone()),
            ("GPU time", self.gpu_time()),
            ("launches", self.launches()),
            ("copies", self.transferred()),
        ]
    }

    /// What is not known, each in a line.
    pub fn unknowns(&self) -> Vec<String> {
        let all = self.account.unknowns.iter().zip(&self.names);
        all.map(|(unknown, (_, name))| {
            let place = self.at(&unknown.file, unknown.line);
            let what = match (unknown.kind, unknown.at_least) {
                ("iterations", 0) => "iterations of the loop while".to_owned(),
                ("iterations", least) => format!("iterations, at least {least}, of the loop while"),
                _ => "1 where this holds, else 0:".to_owned(),
            };
            format!("{name}  {what} `{}`, {place}", unknown.text)
        })
        .collect()
    }

    /// Where to look first, each in a sentence.
    pub fn look_first(&self) -> Vec<String> {
        self.account
            .look_first
            .iter()
            .map(|first| self.look(first))
            .collect()
    }

    fn gpu_time(&self) -> String {
        let totals = &self.account.totals;
        let sure = if totals.rests_on_assumptions {
            " (rests on assumed values)"
        } else {
            ""
        };
        match (totals.gpu_ms, &totals.gpu_formula) {
            (Some(total), _) => {
                let interval = totals.gpu_interval_ms;
                let interval = interval.map_or(String::new(), |[low, high]| {
                    format!(", between {} and {}", time(low), time(high))
                });
                format!("{}{interval}{sure}", time(total))
            }
            (None, Some(formula)) => format!("{}{sure}", self.short(formula)),
            (None, None) if totals.gpu_at_least_ms > 0.0 => {
                format!("not known, at least {}{sure}", time(totals.gpu_at_least_ms))
            }
            (None, None) => "not known".to_owned(),
        }
    }

    fn how_often(&self, times: &Times) -> String {
        match (times.number, &times.formula) {
            (Some(number), _) => grouped(number),
            (None, Some(formula)) => self.short(formula),
            (None, None) if times.at_least > 0 => format!("at least {}", grouped(times.at_least)),
            (None, None) => "?".to_owned(),
        }
    }

    fn launches(&self) -> String {
        let totals = &self.account.totals;
        let overhead = totals.launch_overhead_ms.map_or(String::new(), |overhead| {
            format!(", {} of the host to start them", time(overhead))
        });
        format!("{}{overhead}", self.how_often(&totals.launches))
    }

    fn transferred(&self) -> String {
        let totals = &self.account.totals;
        if self.account.transfers.is_empty() {
            return "none".to_owned();
        }
        let amount = |number: Option<u64>, formula: &Option<String>| {
            let formula = formula.as_ref().map(|formula| self.short(formula));
            number
                .map(bytes)
                .or(formula)
                .unwrap_or_else(|| "?".to_owned())
        };
        let mut text = format!(
            "{} to the GPU, {} from it",
            amount(totals.to_device_bytes, &totals.to_device_formula),
            amount(totals.to_host_bytes, &totals.to_host_formula)
        );
        let known = (
            totals.transfers_at_least_ms,
            totals.known_transfers_at_least_ms,
        );
        match (known, totals.host_link_gb_s) {
            ((Some(all), _), Some(link)) => {
                let _ = write!(text, "; {} at least, at {link} GB/s", time(all));
            }
            ((None, Some(known)), Some(link)) => {
                let _ = write!(
                    text,
                    "; those that are known {} at least, at {link} GB/s",
                    time(known)
                );
            }
            _ => text.push_str("; the profile says nothing of the link to the host"),
        }
        text
    }

    /// The kernels' table.
    pub fn kernels(&self) -> Table {
        let mut table = Table::new(&[
            ("share", Align::Right),
            ("total", Align::Right),
            ("launches", Align::Right),
            ("each", Align::Right),
            ("grid", Align::Left),
            ("block", Align::Left),
            ("bound by", Align::Left),
            ("kernel", Align::Left),
        ]);
        for kernel in self.account.kernels.iter().take(MOST) {
            let share = kernel.share.or(kernel.share_of_one_iteration);
            let formula = kernel
                .total_formula
                .as_ref()
                .map(|formula| self.short(formula));
            let total = kernel.total_ms.map(time).or(formula);
            let shape = kernel.made.first().filter(|_| kernel.made.len() == 1);
            let several = || format!("{} launches", kernel.made.len());
            let cells = [
                share.map_or_else(|| "?".to_owned(), percent),
                total.unwrap_or_else(|| "?".to_owned()),
                self.how_often(&kernel.launches),
                each(&kernel.made),
                shape.map_or_else(several, |one| grid(one.grid_formula.as_deref(), one.grid)),
                shape
                    .and_then(|one| one.block)
                    .map_or(String::new(), extents),
                kernel.bottleneck.map_or(String::new(), words),
                format!(
                    "{} {}",
                    kernel_name(kernel),
                    self.at(&kernel.file, kernel.line)
                ),
            ];
            table.row(cells.map(|text| Cell::from(printable(&text))));
        }
        more(&mut table, self.account.kernels.len());
        table
    }

    /// Whether a share counts each loop of unknown length once.
    fn counts_loops_once(&self) -> bool {
        let kernels = self.account.kernels.iter();
        kernels
            .clone()
            .any(|kernel| kernel.share.is_none() && kernel.share_of_one_iteration.is_some())
    }

    /// What the tables' figures rest on.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.counts_loops_once() {
            remarks.push("shares: each loop of unknown length counted once".to_owned());
        }
        let made = || self.account.kernels.iter().flat_map(|kernel| &kernel.made);
        let between = made().filter(|launch| launch.interpolated).count();
        if between > 0 {
            remarks.push(format!(
                "{between} of {} different launches: time interpolated between launches that were analysed",
                made().count()
            ));
        }
        let early = made().filter_map(|launch| Some((launch, launch.begins_early.as_ref()?)));
        for (launch, early) in early.take(MOST) {
            remarks.push(format!(
                "{} {}, which the times do not count",
                self.at(&launch.file, launch.line),
                super::estimate::early_start(early.waits_at)
            ));
        }
        remarks
    }

    /// The copies' table.
    pub fn transfers(&self) -> Table {
        let mut table = Table::new(&[
            ("direction", Align::Left),
            ("each", Align::Right),
            ("copies", Align::Right),
            ("at least", Align::Right),
            ("host memory", Align::Left),
            ("call", Align::Left),
        ]);
        for copy in self.account.transfers.iter().take(MOST) {
            let size = copy
                .bytes
                .map_or_else(|| format!("? ({})", copy.size), bytes);
            let least = match (copy.total_at_least_ms, copy.at_least_ms) {
                (Some(all), _) => time(all),
                (None, Some(one)) => format!("{} each", time(one)),
                (None, None) => "?".to_owned(),
            };
            let cells = [
                direction(copy).to_owned(),
                size,
                self.how_often(&copy.copies),
                least,
                copy.host_memory.unwrap_or_default().to_owned(),
                format!("{} {}", copy.call, self.at(&copy.file, copy.line)),
            ];
            table.row(cells.map(|text| Cell::from(printable(&text))));
        }
        more(&mut table, self.account.transfers.len());
        table
    }

    fn look(&self, first: &LookFirst) -> String {
        let saves = match (first.saves_ms, first.saves_share) {
            (Some(saves), Some(share)) => {
                format!(
                    " (saves {}, {} of the GPU time)",
                    time(saves),
                    percent(share)
                )
            }
            (Some(saves), None) => format!(" (saves {})", time(saves)),
            (None, Some(share)) => format!(" (saves {} of the GPU time)", percent(share)),
            (None, None) => String::new(),
        };
        let rule = first
            .rule
            .as_ref()
            .map_or(String::new(), |rule| format!(" [{rule}]"));
        let kernel = match &first.kernel {
            Some(kernel) if !first.message.contains(kernel.as_str()) => format!("`{kernel}`: "),
            _ => String::new(),
        };
        format!(
            "{}: {kernel}{}{saves}{rule}",
            self.at(&first.file, first.line),
            first.message
        )
    }
}

fn program(account: &ProgramAccount, style: Style) -> String {
    let shown = Account::new(account);
    let mut out = String::new();
    style.push(&mut out, Paint::Strong, &printable(&account.file));
    let _ = writeln!(out, "  on {}", account.gpu);
    for (title, text) in shown.summary() {
        let _ = writeln!(out, "  {title:<10}  {}", printable(&text));
    }
    section(&mut out, style, "kernels");
    if account.kernels.is_empty() {
        out.push_str("    none\n");
    } else {
        out.push_str(&shown.kernels().render(style, 4));
    }
    for remark in shown.remarks() {
        style.push(&mut out, Paint::Quiet, &format!("    {remark}\n"));
    }
    if !account.transfers.is_empty() {
        section(&mut out, style, "copies");
        out.push_str(&shown.transfers().render(style, 4));
    }
    paragraphs(&mut out, style, "look first at", &shown.look_first());
    paragraphs(&mut out, style, "not known", &shown.unknowns());
    paragraphs(&mut out, style, "not followed", &account.notes);
    out
}

fn paragraphs(out: &mut String, style: Style, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    section(out, style, title);
    let width = style.width.unwrap_or(PAGE).saturating_sub(6);
    for text in lines {
        for (at, line) in wrap(&printable(text), width).iter().enumerate() {
            let _ = writeln!(out, "    {}{line}", if at > 0 { "  " } else { "" });
        }
    }
}

fn section(out: &mut String, style: Style, title: &str) {
    out.push_str("\n  ");
    style.push(out, Paint::Strong, title);
    out.push('\n');
}

/// Template arguments behind a kernel's name.
fn kernel_name(kernel: &ProgramKernel) -> String {
    if kernel.template_args.is_empty() {
        return kernel.kernel.clone();
    }
    let arguments = kernel.template_args.iter();
    let arguments: Vec<String> = arguments
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{}<{}>", kernel.kernel, arguments.join(", "))
}

fn more(table: &mut Table, rows: usize) {
    if rows > MOST {
        table.heading(format!("and {} more", rows - MOST));
    }
}

/// The time of one launch, or from the shortest to the longest.
fn each(made: &[ProgramLaunch]) -> String {
    let times = made.iter().map(|launch| launch.time_ms);
    let times: Option<Vec<f64>> = times.collect();
    match (times.as_deref(), made) {
        (Some([one]), _) => time(*one),
        (Some(all), _) if !all.is_empty() => {
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let most = all.iter().copied().fold(0.0, f64::max);
            if time(least) == time(most) {
                time(least)
            } else {
                format!("{} to {}", time(least), time(most))
            }
        }
        (_, [one]) => predicted(None, one.time_formula.as_deref(), &one.unknowns)
            .or_else(|| one.why.clone())
            .unwrap_or_else(|| "?".to_owned()),
        _ => "?".to_owned(),
    }
}

fn direction(copy: &Transfer) -> &'static str {
    match copy.direction {
        Some("host-to-device") => "to the GPU",
        Some("device-to-host") => "from the GPU",
        Some("device-to-device") => "on the GPU",
        _ => "?",
    }
}
