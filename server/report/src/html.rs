//! The report of one file: a page of HTML that needs nothing but itself.
//!
//! No scripts, no network, no fonts: the page forbids them to itself. All text that is not ours is escaped.

use std::fmt::Write as _;
use std::path::Path;

use warplens_advice::VISIBLE_GAIN;
use warplens_db::WorkFlow;
use warplens_db::pictures::{KernelPictures, LanePicture, Pictures};
use warplens_db::wire::{Diagnostic, Estimate, KernelResult, ProgramAccount, ProgramDocument};

use crate::escape::escape;
use crate::estimate::{
    access_table, branch_table, first_estimate, grid, loss_table, missing_headers, variant,
};
use crate::figure::{bytes, extents, losses, maybe, number, percent, speedup, words};
use crate::graph;
use crate::models;
use crate::models::maybe_time;
use crate::plots::{self, bar, breakdown, gpus, heat, lanes, occupancy, roofline, scaling};
use crate::program::Account;
use crate::resources::{registers, residency, shared_memory};
use crate::sheet;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};

/// Lines of source shown as the costliest.
const MOST_LINES: usize = 10;
/// Nodes of a work flow graph up to which a report draws it.
const MOST_NODES: usize = 60;
/// A gain below this is noise.
const LEAST_GAIN: f64 = 1.005;
/// Changes named at the top of a kernel.
const MOST_CHANGES: usize = 3;

/// The whole file as one page. Each kernel: what it costs, why and what to change first, its launch, its findings, its cost by
/// line; then what each cause costs, the roofs of the GPU, what warps, blocks, registers and shared memory change, the lanes of its
/// costliest accesses, models and GPUs; last and folded, the tables. Light or dark as the reader's system or editor is. Files below
/// `root` are named relative to it.
pub fn html(pictures: &Pictures, root: Option<&Path>) -> String {
    let document = &pictures.estimate;
    let file = document
        .results
        .first()
        .map_or("no kernels", |result| below(&result.file, root));
    let mut body = format!("<h1>{}</h1>\n", escape(file));
    if document.results.is_empty() {
        body.push_str("<p>No kernels found.</p>\n");
    }
    if document.results.len() > 1 {
        contents(&mut body, &document.results);
    }
    let mut told: Vec<&str> = Vec::new();
    for (at, result) in document.results.iter().enumerate() {
        // Variants of a kernel share its findings.
        let findings: Vec<&Diagnostic> = if told.contains(&result.kernel.as_str()) {
            Vec::new()
        } else {
            of_kernel(&document.diagnostics, result)
        };
        told.push(&result.kernel);
        let _ = write!(
            body,
            "<section id=\"k{at}\">\n{}</section>\n",
            kernel(result, &findings, pictures.kernels.get(at), at, root)
        );
    }
    if !document.missing_includes.is_empty() {
        let missing = escape(&missing_headers(&document.missing_includes));
        let _ = writeln!(body, "<p>{missing}</p>");
    }
    let others = document.diagnostics.iter();
    let others: Vec<&Diagnostic> = others
        .filter(|finding| {
            let kernel = finding.kernel.as_deref();
            kernel.is_none_or(|kernel| !told.contains(&kernel))
        })
        .collect();
    findings(&mut body, "h2", "Findings about the file", &others);
    page(file, &body)
}

/// A file's name relative to a folder that it is in.
fn below<'a>(file: &'a str, root: Option<&Path>) -> &'a str {
    root.and_then(|root| Path::new(file).strip_prefix(root).ok())
        .and_then(Path::to_str)
        .unwrap_or(file)
}

/// A kernel's findings, the largest gain first.
fn of_kernel<'a>(findings: &'a [Diagnostic], result: &KernelResult) -> Vec<&'a Diagnostic> {
    let own = findings.iter();
    let mut own: Vec<&Diagnostic> = own
        .filter(|finding| finding.kernel.as_deref() == Some(&result.kernel))
        .collect();
    own.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.line.cmp(&b.line)));
    own
}

/// The lanes of some accesses as a page of their own; `place` names them, `pictures` may be none.
pub fn lanes_page(place: &str, pictures: &[LanePicture]) -> String {
    let mut body = format!("<h1>{}</h1>\n", escape(place));
    if pictures.is_empty() {
        body.push_str("<p>No memory access with known addresses.</p>\n");
    }
    body.push_str("<div class=\"plots\">\n");
    for picture in pictures {
        body.push_str(&lanes::draw(picture));
    }
    body.push_str("</div>\n");
    page(place, &body)
}

/// The work flow graph of a kernel as a page of its own.
pub fn graph_page(flow: &WorkFlow) -> String {
    let drawn = graph::picture(flow, "");
    page(
        &flow.kernel,
        &format!("<div class=\"wide\">{drawn}</div>\n"),
    )
}

/// The accounts of programs as one page.
pub fn program_page(document: &ProgramDocument) -> String {
    let mut body = String::new();
    for account in &document.programs {
        body.push_str(&program(account));
    }
    if !document.without_launches.is_empty() {
        let files = escape(&document.without_launches.join(", "));
        let _ = writeln!(body, "<p class=\"quiet\">Launches nothing: {files}</p>");
    }
    let title = document
        .programs
        .first()
        .map_or("no programs", |account| &account.file);
    page(title, &body)
}

fn program(account: &ProgramAccount) -> String {
    let shown = Account::new(account);
    let mut out = format!(
        "<section>\n<h1>{} <span class=\"quiet\">on {}</span></h1>\n<dl>\n",
        escape(&account.file),
        escape(&account.gpu)
    );
    for (title, text) in shown.summary() {
        let _ = writeln!(out, "<dt>{title}</dt><dd>{}</dd>", escape(&text));
    }
    out.push_str("</dl>\n<h3>Kernels</h3>\n");
    if account.kernels.is_empty() {
        out.push_str("<p>None.</p>\n");
    } else {
        out.push_str(&shown.kernels().html());
    }
    for remark in shown.remarks() {
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", escape(&remark));
    }
    if !account.transfers.is_empty() {
        let _ = write!(out, "<h3>Copies</h3>\n{}", shown.transfers().html());
    }
    list(&mut out, "Look first at", "ol", &shown.look_first());
    list(&mut out, "Not known", "ul", &shown.unknowns());
    list(&mut out, "Not followed", "ul", &account.notes);
    out.push_str("</section>\n");
    out
}

fn list(out: &mut String, title: &str, kind: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(out, "<h3>{title}</h3>\n<{kind}>\n");
    for line in lines {
        let _ = writeln!(out, "<li>{}</li>", escape(line));
    }
    let _ = writeln!(out, "</{kind}>");
}

/// A page that needs nothing but itself; `body` is markup.
fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - warplens</title>\n<style>{}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title),
        sheet::text()
    )
}

fn contents(out: &mut String, results: &[KernelResult]) {
    out.push_str(
        "<div class=\"wide\"><table>\n<thead><tr><th>kernel</th><th>GPU</th><th class=\"n\">time</th>\
         <th>bound by</th></tr></thead>\n<tbody>\n",
    );
    for (at, result) in results.iter().enumerate() {
        let estimate = first_estimate(result).map(|(_, estimate)| estimate);
        let time = estimate.map_or_else(|| "?".to_owned(), maybe_time);
        let bottleneck = estimate.and_then(|estimate| estimate.bottleneck);
        let _ = writeln!(
            out,
            "<tr><td><a href=\"#k{at}\">{}</a></td><td>{}</td><td class=\"n\">{time}</td><td>{}</td></tr>",
            escape(&name(result)),
            escape(&result.gpu),
            bottleneck.map_or_else(|| "-".to_owned(), words)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

/// `copy<T=float>`, and which of its launches where it has several.
fn name(result: &KernelResult) -> String {
    let arguments = result.template_args.iter();
    let arguments: Vec<String> = arguments
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut name = result.kernel.clone();
    if !arguments.is_empty() {
        let _ = write!(name, "<{}>", arguments.join(", "));
    }
    if result.variant.of > 1 {
        let _ = write!(name, " {}", variant(result));
    }
    name
}

fn kernel(
    result: &KernelResult,
    found: &[&Diagnostic],
    pictures: Option<&KernelPictures>,
    at: usize,
    root: Option<&Path>,
) -> String {
    let mut out = format!(
        "<h2>{} <span class=\"quiet\">line {} on {}</span></h2>\n",
        escape(&name(result)),
        result.line,
        escape(&result.gpu)
    );
    let first = first_estimate(result);
    if let Some((model, estimate)) = first {
        prediction(&mut out, model, estimate);
    } else {
        for (model, estimate) in &result.estimates {
            let why = estimate.why.as_deref().unwrap_or("no estimate");
            let _ = writeln!(out, "<p>Nothing by {}: {}</p>", escape(model), escape(why));
        }
    }
    best_first(&mut out, result, found);
    facts(&mut out, result);
    findings(&mut out, "h3", "Findings", found);
    match pictures {
        Some(pictures) => out.push_str(&heat::draw(pictures)),
        None => lines(&mut out, result, root),
    }
    assumptions(&mut out, result);
    if let Some((_, estimate)) = first {
        out.push_str(&breakdown::draw(estimate));
    }
    what_if(&mut out, result);
    if let Some(pictures) = pictures {
        plots_of(&mut out, pictures);
    }
    out.push_str(&plots::models::draw(result));
    if let Some(agreement) = models::agreement(result) {
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", escape(&agreement));
    }
    if let Some(pictures) = pictures {
        out.push_str(&gpus::draw(&pictures.elsewhere));
        work_flow(&mut out, pictures, at);
    }
    folded(&mut out, "Memory accesses", &access_table(result));
    folded(&mut out, "Branches and loops", &branch_table(result));
    if let Some(title) = losses(result.not_understood.len()) {
        folded(&mut out, &title, &loss_table(result, usize::MAX));
    }
    out
}

/// What would help most, each once with the lines that ask for it: edits, findings and causes, or of launches that no edit was
/// looked for the findings.
fn best_first(out: &mut String, result: &KernelResult, found: &[&Diagnostic]) {
    let told: Vec<(&str, Option<u32>)> = match &result.what_would_help {
        Some(all) => all
            .iter()
            // A cause says its line itself.
            .map(|one| (one.title.as_str(), one.line.filter(|_| one.kind != "cause")))
            .collect(),
        None => {
            let visible = found.iter().filter(|one| one.gain >= VISIBLE_GAIN);
            let told = visible.map(|one| (one.message.as_str(), Some(one.line)));
            told.collect()
        }
    };
    let mut better: Vec<(&str, Vec<u32>)> = Vec::new();
    for (title, line) in told {
        match better.iter_mut().find(|(known, _)| *known == title) {
            Some((_, lines)) => lines.extend(line),
            None => better.push((title, line.into_iter().collect())),
        }
    }
    better.truncate(MOST_CHANGES);
    if better.is_empty() {
        return;
    }
    out.push_str("<ol class=\"best\">\n");
    for (title, mut lines) in better {
        lines.sort_unstable();
        lines.dedup();
        let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
        let at = match lines.as_slice() {
            [] => String::new(),
            [line] => format!(" <span class=\"quiet\">(line {line})</span>"),
            several => format!(
                " <span class=\"quiet\">(lines {})</span>",
                several.join(", ")
            ),
        };
        let _ = writeln!(out, "<li>{}{at}</li>", escape(title));
    }
    out.push_str("</ol>\n");
}

fn plots_of(out: &mut String, pictures: &KernelPictures) {
    out.push_str("<div class=\"plots\">\n");
    out.push_str(&match &pictures.roofline {
        Ok(roofline) => roofline::draw(roofline),
        Err(why) => plots::missing("Roofline", why),
    });
    out.push_str(&scaling::draw(&pictures.scaling));
    out.push_str("</div>\n");
    out.push_str(&occupancy::draw(&pictures.residence));
    if !pictures.lanes.is_empty() {
        out.push_str("<h3>Lanes of the accesses that move the most beyond their ideal</h3>\n<div class=\"plots\">\n");
        for picture in &pictures.lanes {
            out.push_str(&lanes::draw(picture));
        }
        out.push_str("</div>\n");
    }
}

fn work_flow(out: &mut String, pictures: &KernelPictures, at: usize) {
    const TITLE: &str = "Work flow graph";
    let drawn = match &pictures.work_flow {
        Err(why) => plots::missing(TITLE, why),
        Ok(flow) if flow.drawing.nodes.len() > MOST_NODES => {
            let nodes = flow.drawing.nodes.len();
            let why = format!(
                "its {nodes} nodes do not fit on this page; the standalone picture has them"
            );
            plots::missing(TITLE, &why)
        }
        Ok(flow) => {
            let drawn = graph::picture(flow, &format!("k{at}"));
            format!(
                "<details>\n<summary>{TITLE}</summary>\n<div class=\"wide\">{drawn}</div>\n</details>\n"
            )
        }
    };
    out.push_str(&drawn);
}

fn prediction(out: &mut String, model: &str, estimate: &Estimate) {
    let _ = write!(
        out,
        "<p><span class=\"lead\">{}</span>",
        escape(&maybe_time(estimate))
    );
    if let Some(cycles) = estimate.cycles {
        let _ = write!(out, " {} cycles", number(cycles.round()));
    }
    if let Some(bottleneck) = estimate.bottleneck {
        let _ = write!(out, ", bound by {}", words(bottleneck));
    }
    let _ = write!(out, " <span class=\"quiet\">(model {}", escape(model));
    if let Some([low, high]) = estimate.interval {
        let _ = write!(
            out,
            "; {} to {} cycles",
            number(low.round()),
            number(high.round())
        );
    }
    out.push_str(")</span></p>\n");
}

fn facts(out: &mut String, result: &KernelResult) {
    let (launch, resources, occupancy) = (&result.launch, &result.resources, &result.occupancy);
    let mut launched = format!(
        "grid {} ({}), block {} ({})",
        grid(launch.grid_formula.as_deref(), launch.grid),
        launch.grid_source,
        extents(launch.block),
        launch.block_source
    );
    if launch.dynamic_shared_bytes > 0 {
        let dynamic = bytes(launch.dynamic_shared_bytes);
        let _ = write!(launched, ", {dynamic} dynamic shared memory");
    }
    let mut needs = if result.is_opaque {
        "not known".to_owned()
    } else {
        format!("{}, {}", registers(resources), shared_memory(result))
    };
    if resources.local_bytes_per_thread > 0 {
        let _ = write!(
            needs,
            ", {} local memory per thread",
            bytes(resources.local_bytes_per_thread)
        );
    }
    let mut resident = residency(result);
    if let Some(step) = occupancy.next_step.as_ref().filter(|_| !result.is_opaque) {
        let _ = write!(resident, "; {step}");
    }
    out.push_str("<dl>\n");
    for (name, text) in [
        ("launch", launched),
        ("resources", needs),
        ("occupancy", resident),
    ] {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escape(&text));
    }
    out.push_str("</dl>\n");
}

/// A table that opens at a click.
fn folded(out: &mut String, title: &str, table: &Table) {
    if !table.is_empty() {
        let _ = write!(
            out,
            "<details>\n<summary>{title}</summary>\n{}</details>\n",
            table.html()
        );
    }
}

fn lines(out: &mut String, result: &KernelResult, root: Option<&Path>) {
    let mut lines: Vec<_> = result
        .lines
        .iter()
        .filter(|line| line.share >= 0.005)
        .collect();
    lines.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.line.cmp(&b.line)));
    let rows = lines.into_iter().take(MOST_LINES).map(|line| {
        let place = if line.file == result.file {
            line.line.to_string()
        } else {
            format!("{}:{}", below(&line.file, root), line.line)
        };
        (
            place,
            maybe(line.cycles.map(f64::round)),
            percent(line.share),
            line.share,
        )
    });
    bars(out, "Costliest lines", ["line", "cycles", "share"], rows);
}

fn what_if(out: &mut String, result: &KernelResult) {
    let better = result
        .what_if
        .iter()
        .filter(|what| what.speedup > LEAST_GAIN);
    let mut better: Vec<_> = better.collect();
    better.sort_by(|a, b| b.speedup.total_cmp(&a.speedup));
    // The bar is the part of the time that would go.
    let rows = better.into_iter().map(|what| {
        (
            what.factor.to_owned(),
            maybe(what.cycles.map(f64::round)),
            speedup(what.speedup),
            1.0 - 1.0 / what.speedup,
        )
    });
    let titles = ["without", "cycles left", "faster"];
    bars(out, "What if this one thing cost nothing", titles, rows);
}

/// A table of name, number and figure with a bar for each row.
fn bars(
    out: &mut String,
    title: &str,
    [a, b, c]: [&str; 3],
    rows: impl Iterator<Item = (String, String, String, f64)>,
) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = write!(
        out,
        "<h3>{title}</h3>\n<div class=\"wide\"><table>\n<thead><tr><th>{a}</th><th class=\"n\">{b}</th>\
         <th class=\"n\">{c}</th><th></th></tr></thead>\n<tbody>\n"
    );
    for (name, number, figure, share) in rows {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{number}</td><td class=\"n\">{figure}</td><td>{}</td></tr>",
            escape(&name),
            bar(share, ""),
            figure = escape(&figure)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

fn assumptions(out: &mut String, result: &KernelResult) {
    let list = |out: &mut String, title: &str, items: Vec<String>| {
        if !items.is_empty() {
            let _ = write!(out, "<h3>{title}</h3>\n<ul>\n");
            for item in items {
                let _ = writeln!(out, "<li>{item}</li>");
            }
            out.push_str("</ul>\n");
        }
    };
    let assumed = result.assumptions.iter().map(|assumption| {
        format!(
            "<code>{}</code> = {} <span class=\"quiet\">({})</span>",
            escape(&assumption.symbol),
            escape(&assumption.value),
            escape(&assumption.source)
        )
    });
    list(out, "Assumed", assumed.collect());
    let constraints = result.constraints.iter();
    let constraints = constraints.map(|one| format!("<code>{}</code>", escape(one)));
    list(out, "Exact where", constraints.collect());
}

fn findings(out: &mut String, level: &str, title: &str, found: &[&Diagnostic]) {
    if found.is_empty() {
        return;
    }
    let mut table = Table::new(&[
        ("line", Align::Right),
        ("", Align::Left),
        ("rule", Align::Left),
        ("finding", Align::Left),
    ]);
    for finding in found {
        table.row([
            finding.line.to_string().into(),
            Cell::new(finding.severity, Paint::of_severity(finding.severity)),
            finding.rule.as_str().into(),
            finding.whole().replace('\n', "; ").into(),
        ]);
    }
    let _ = write!(
        out,
        "<{level}>{title}</{level}>\n<div class=\"findings\">\n{}</div>\n",
        table.html()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::document;
    use warplens_db::wire::EstimateDocument;

    fn plain(estimate: &EstimateDocument) -> String {
        let pictures = Pictures {
            estimate: estimate.clone(),
            kernels: Vec::new(),
        };
        html(&pictures, None)
    }

    /// Every tag that is opened is closed in order, and every attribute is quoted.
    #[track_caller]
    fn well_formed(page: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = page
            .strip_prefix("<!DOCTYPE html>")
            .expect("a document type");
        while let Some(start) = rest.find('<') {
            let end = start + rest[start..].find('>').expect("the end of a tag");
            let tag = &rest[start + 1..end];
            rest = &rest[end + 1..];
            let name = tag
                .trim_start_matches('/')
                .split([' ', '\n'])
                .next()
                .expect("a name");
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "{page}");
            } else if !tag.ends_with('/') && name != "meta" {
                open.push(name);
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn the_page_has_every_part() {
        let page = plain(&document());
        well_formed(&page);
        for part in [
            "k&lt;T=float&gt;",
            "123 µs",
            "grid (64) (assumed), block (32,8) (directive)",
            "<code>in[32 * i]</code>",
            "100 %: 64 warps in 8 blocks",
            "class=\"p-memory_bandwidth\" x=\"0.00\" width=\"100.00\"",
            "<td>uncoalesced</td>",
            "2.00x",
            "<code>n</code> = 1024",
            "<code>n % 32 == 0</code>",
        ] {
            assert!(page.contains(part), "`{part}` in {page}");
        }
    }

    #[test]
    fn the_conclusion_comes_first_and_the_tables_last() {
        let mut document = document();
        let kernel = document.results[0].kernel.clone();
        document.results[0].what_would_help = None;
        let finding = |rule: &str, gain: f64, kernel: Option<String>| Diagnostic {
            rule: rule.to_owned(),
            severity: "warning",
            line: 3,
            message: format!("{gain:.2}x: mend {rule}"),
            gain,
            kernel,
            ..Diagnostic::default()
        };
        document.diagnostics = vec![
            finding("a", 1.01, Some(kernel.clone())),
            finding("b", 1.5, Some(kernel.clone())),
            finding("c", 2.5, Some(kernel)),
            finding("d", 1.0, None),
        ];
        let page = plain(&document);
        well_formed(&page);
        let order = [
            "class=\"lead\"",
            "<li>2.50x: mend c",
            "<li>1.50x: mend b",
            "<dt>launch</dt>",
            "<h3>Findings</h3>",
            "mend a",
            "Costliest lines",
            "<summary>Memory accesses</summary>",
            "<h2>Findings about the file</h2>",
            "mend d",
        ];
        let places = order.map(|part| {
            page.find(part)
                .unwrap_or_else(|| panic!("{part} in {page}"))
        });
        assert!(places.is_sorted(), "{places:?}");
        assert!(!page.contains("<li>1.01x"), "no visible gain");
    }

    #[test]
    fn the_conclusion_names_edits_findings_and_causes() {
        let document = document();
        let page = plain(&document);
        let told = "<li>2.00x: without uncoalesced accesses, most of it in line 4";
        assert!(page.contains(told), "{page}");
    }

    #[test]
    fn files_below_the_root_are_named_relative_to_it() {
        let root = Path::new("/home/me/project");
        assert_eq!(below("/home/me/project/src/a.cu", Some(root)), "src/a.cu");
        assert_eq!(
            below("/home/me/other/a.cu", Some(root)),
            "/home/me/other/a.cu"
        );
        assert_eq!(below("src/a.cu", Some(root)), "src/a.cu");
    }

    #[test]
    fn nothing_from_the_source_becomes_markup() {
        let hostile = "</style></title><script>alert('x')</script>\"&\x1b";
        let mut document = document();
        let result = &mut document.results[0];
        for text in [
            &mut result.kernel,
            &mut result.file,
            &mut result.gpu,
            &mut result.accesses[0].text,
            &mut result.assumptions[0].symbol,
            &mut result.constraints[0],
            &mut result.lines[0].file,
        ] {
            hostile.clone_into(text);
        }
        hostile.clone_into(&mut result.assumptions[0].value);
        result.occupancy.next_step = Some(hostile.to_owned());
        result.template_args = [(hostile.to_owned(), hostile.to_owned())].into();
        for estimate in result.estimates.values_mut() {
            estimate.why = Some(hostile.to_owned());
        }
        document.results.push(document.results[0].clone());
        document.diagnostics.push(Diagnostic {
            rule: hostile.to_owned(),
            severity: "warning",
            file: hostile.to_owned(),
            line: 1,
            column: 1,
            end_line: 1,
            end_column: 2,
            message: hostile.to_owned(),
            gain: 1.0,
            ..Diagnostic::default()
        });
        let page = plain(&document);
        well_formed(&page);
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains('\x1b'), "{page}");
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"), "{page}");
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = plain(&document());
        for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'"));
        assert!(page.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn no_kernels_is_said() {
        let empty = EstimateDocument {
            results: Vec::new(),
            ..document()
        };
        let page = plain(&empty);
        well_formed(&page);
        assert!(page.contains("No kernels found."));
    }
}
