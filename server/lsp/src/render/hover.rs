//! What a line costs and why, as Markdown.

use std::fmt::Display;

use std::fmt::Write as _;
use std::ops::Range;

use warplens_db::PlacedKernel;
use warplens_facts::facts::{
    Access, Branch, BranchKind, Certainty, FirstUse, LoopCarried, Op, Space, Uniformity,
};
use warplens_models::ExecutedAccess;
use warplens_report::figure::{counted, maybe, number, percent};
use warplens_report::table::{Align, Table};

use crate::documents::Analysed;
use crate::render::line::{self, Cost, Line, Unit};

/// Longest piece of source in a table: editors clip tables where they wrap text.
const LONGEST_CELL: usize = 18;
/// Findings of one line that are shown.
const MOST_FINDINGS: usize = 3;
/// Longest piece of source or index in a list.
const LONGEST: usize = 160;

/// What there is to say at a byte.
#[derive(Debug, PartialEq)]
pub enum At {
    /// The name of this kernel.
    Kernel(Range<usize>, String),
    /// A line of it, as Markdown.
    Line(Range<usize>, String),
}

/// Finds it; `None` where there is nothing to show. `beside`: the client shows the diagnostics at the byte itself.
pub fn at(analysed: &Analysed, byte: usize, beside: bool) -> Option<At> {
    let rope = analysed.document.rope();
    let line_at = rope.byte_to_line(byte.min(rope.len_bytes())) as u32;
    let mut told = advice(analysed, line_at, beside.then_some(byte));
    for kernel in &analysed.file.kernels {
        let facts = &kernel.analysis.facts;
        let name = kernel.place(facts.name_site.span);
        if name.start <= byte && byte <= name.end {
            return Some(At::Kernel(name, facts.name.clone()));
        }
        if !(kernel.start <= byte && byte <= kernel.end) {
            continue;
        }
        let Some(found) = line::of(kernel).remove(&line_at) else {
            continue;
        };
        let says = !found.accesses.is_empty()
            || !found.compilers_own.is_empty()
            || !found.branches.is_empty();
        if says || found.instructions.is_some() {
            if !told.is_empty() {
                told.push_str("\n---\n\n");
            }
            told.push_str(&line(kernel, &found));
        }
    }
    let text = rope.line(line_at as usize).to_string();
    let start = rope.line_to_byte(line_at as usize);
    let indent = text.len() - text.trim_start().len();
    (!told.is_empty()).then(|| At::Line(start + indent..start + text.trim_end().len(), told))
}

/// True where a byte is inside of a kernel: no launch of the host is there.
pub fn is_in_kernel(analysed: &Analysed, byte: usize) -> bool {
    let mut kernels = analysed.file.kernels.iter();
    kernels.any(|kernel| (kernel.start..kernel.end).contains(&byte))
}

/// A launch of the host: what was found there, then `launch`. `told`: a byte whose diagnostics the client shows itself.
pub fn launch(
    analysed: &Analysed,
    bytes: &Range<usize>,
    launch: &str,
    told: Option<usize>,
) -> String {
    let rope = analysed.document.rope();
    let line = rope.byte_to_line(bytes.start.min(rope.len_bytes())) as u32;
    let advice = advice(analysed, line, told);
    if advice.is_empty() {
        return launch.to_owned();
    }
    format!("{advice}\n---\n\n{launch}")
}

/// What was found on a line, in the order of gains: the message, which says what to do, as its own paragraph. What was found at
/// the byte `told` is left out.
fn advice(analysed: &Analysed, line: u32, told: Option<usize>) -> String {
    let rope = analysed.document.rope();
    let findings = analysed.file.findings.iter();
    let mut here: Vec<_> = findings
        .filter(|finding| {
            let is_told =
                told.is_some_and(|byte| finding.range.start <= byte && byte <= finding.range.end);
            rope.byte_to_line(finding.range.start.min(rope.len_bytes())) as u32 == line && !is_told
        })
        .collect();
    here.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    let shown = here.iter().take(MOST_FINDINGS);
    let mut out = String::new();
    for finding in shown {
        let _ = write!(
            out,
            "**{}** ({})\n\n",
            strong(&finding.message),
            finding.rule
        );
    }
    if here.len() > MOST_FINDINGS {
        let more = counted((here.len() - MOST_FINDINGS) as u64, "finding");
        let _ = write!(out, "{more} more\n\n");
    }
    out
}

/// A message within strong text: code keeps its asterisks, others would end it.
fn strong(message: &str) -> String {
    let pieces = message.split('`').enumerate();
    let pieces: Vec<String> = pieces
        .map(|(index, piece)| match index % 2 {
            0 => piece.replace('*', "\\*"),
            _ => piece.to_owned(),
        })
        .collect();
    pieces.join("`")
}

/// One line of one kernel.
pub fn line(kernel: &PlacedKernel, line: &Line<'_>) -> String {
    let mut out = format!(
        "{} of the time of `{}` on {}{}\n",
        percent(line.share),
        kernel.analysis.facts.name,
        kernel.analysis.profile.name,
        instructions(kernel, line).unwrap_or_default()
    );
    if !line.accesses.is_empty() || !line.compilers_own.is_empty() {
        let open = kernel.analysis.depends_on_sizes();
        let _ = write!(out, "\n{}", accesses(line, open).aligned_markdown());
    }
    if !line.branches.is_empty() {
        let open = kernel.analysis.depends_on_sizes();
        let _ = write!(
            out,
            "\n{}",
            branches(&line.branches, open).aligned_markdown()
        );
    }
    let accesses = line.accesses.iter().map(|access| access_note(access));
    let own = line.compilers_own.iter();
    let accesses = accesses.chain(own.map(|access| compilers_note(access)));
    let mut notes: Vec<String> = accesses
        .chain(line.branches.iter().map(|branch| {
            let runs = (branch.kind == BranchKind::Loop)
                .then(|| kernel.analysis.expressions().of_loop(branch.site));
            // The longest chain comes first.
            let chains = &kernel.analysis.facts.dependence.carried;
            let chain = chains.iter().find(|chain| chain.site == branch.site);
            branch_note(
                branch,
                runs.flatten().map(|runs| runs.text.as_str()),
                chain.filter(|_| branch.kind == BranchKind::Loop),
            )
        }))
        .collect();
    notes.dedup();
    if !notes.is_empty() {
        let _ = write!(out, "\n- {}\n", notes.join("\n- "));
    }
    out
}

/// `, 14 instructions (nvcc 12.4): FFMA 12 · LDG 2`, where a compiler made them.
fn instructions(kernel: &PlacedKernel, line: &Line<'_>) -> Option<String> {
    let tool = &kernel.compiler.as_ref()?.report.tool;
    let made = line.instructions.as_ref()?;
    let when = if made.current {
        ""
    } else {
        ", before the last edit"
    };
    let class = |(name, count): &(&str, u64)| format!("{} {count}", name.to_uppercase());
    let classes: Vec<String> = made.classes.iter().map(class).collect();
    Some(format!(
        ", {} ({tool}{when}): {}",
        counted(made.total(), "instruction"),
        classes.join(" · ")
    ))
}

/// The accesses of a line; `open` where sizes that nothing gives decide how often they are executed.
fn accesses(line: &Line<'_>, open: bool) -> Table {
    let requests = |count: Option<f64>| maybe(count.filter(|_| !open));
    let mut table = Table::new(&[
        ("access", Align::Left),
        ("pattern", Align::Left),
        ("per request", Align::Left),
        ("requests", Align::Right),
    ]);
    for access in &line.accesses {
        table.row([
            format!("{} {}", access.op.name(), code(&access.text, LONGEST_CELL)).into(),
            access.pattern.name().into(),
            cost(access).into(),
            requests(access.requests).into(),
        ]);
    }
    for access in &line.compilers_own {
        let text = access.object.to_string();
        table.row([
            format!("{} {}", access.op.name(), code(&text, LONGEST_CELL)).into(),
            access.pattern.name().into(),
            "unknown".to_owned().into(),
            requests(access.requests).into(),
        ]);
    }
    table
}

/// What the table has no room for: memory, width, index, lanes, and how sure all of it is.
fn access_note(access: &Access) -> String {
    let mut parts = vec![format!(
        "{} {} of {} B per lane",
        access.memory(),
        access.op.name(),
        access.bytes_per_lane
    )];
    if !access.index.is_empty() {
        parts.push(format!("index {}", code(&access.index, LONGEST)));
    }
    if let Some(lanes) = access.active_lanes_per_request {
        parts.push(format!("{} lanes active", number(lanes)));
    }
    if let Some(degree) = access.bank_conflict_degree.filter(|degree| *degree > 1.0) {
        parts.push(format!("{}-way bank conflict", number(degree)));
    }
    // An atomic on global memory moves transactions and waits its turn on each address.
    if let (Op::Atomic, Space::Global, Some(passes)) =
        (access.op, access.space, access.passes_per_request)
    {
        parts.push(Unit::Passes.counted(&number(passes)));
    }
    parts.extend(access.first_use.map(first_use));
    parts.extend(sure(
        access.certainty,
        access.why.as_ref().map(|why| why as &dyn Display),
        &access.constraints,
    ));
    if let Some(other) = &access.other_case {
        parts.push(format!(
            "else {}, ideal {}, for {}",
            number(other.cost),
            number(other.ideal),
            other.when
        ));
    }
    format!("{}: {}", code(&access.text, LONGEST), parts.join(", "))
}

/// The same of an access that only the compiled kernel has.
fn compilers_note(access: &ExecutedAccess) -> String {
    let mut parts = vec![format!(
        "{} {} of {} B per lane",
        access.space.name(),
        access.op.name(),
        access.bytes_per_lane
    )];
    parts.extend(sure(
        Certainty::Unknown,
        access.why().as_ref().map(|why| why as &dyn Display),
        &[],
    ));
    let text = access.object.to_string();
    format!("{}: {}", code(&text, LONGEST), parts.join(", "))
}

/// How many operations there are to do before a load's value is needed.
fn first_use(at: FirstUse) -> String {
    let ahead = match at.operations {
        0.0 => "needed by the next operation".to_owned(),
        1.0 => "needed 1 operation later".to_owned(),
        operations => format!("needed {} operations later", number(operations)),
    };
    let also = match (at.straight, at.next_iteration) {
        (true, _) => "",
        (_, true) => ", in the next iteration",
        _ => ", behind a barrier, a branch or a loop's end",
    };
    format!("{ahead}{also}")
}

/// What each iteration of a loop waits for: `1 fma` through `sum`.
fn carried(carried: &LoopCarried) -> String {
    let links: Vec<String> = carried
        .chain
        .links()
        .map(|(link, count)| format!("{} {}", number(count), link.name()))
        .collect();
    format!(
        "each iteration waits for {} of the one before through {}",
        links.join(" + "),
        code(&carried.through, LONGEST)
    )
}

/// `runs`: how often a loop's body runs over the launch, in the parameters.
fn branch_note(branch: &Branch, runs: Option<&str>, chain: Option<&LoopCarried>) -> String {
    let runs = runs.map(|runs| format!("runs {} times in all threads", code(runs, LONGEST)));
    let parts: Vec<String> = runs
        .into_iter()
        .chain(chain.map(carried))
        .chain(sure(
            branch.certainty,
            branch.why.as_ref().map(|why| why as &dyn Display),
            &branch.constraints,
        ))
        .collect();
    format!("{}: {}", code(&branch.text, LONGEST), parts.join(", "))
}

/// How sure a figure is, why not surer, and when it holds.
fn sure(
    how: Certainty,
    why: Option<&dyn Display>,
    constraints: &[String],
) -> impl Iterator<Item = String> {
    let reason = why.map_or_else(String::new, |why| format!(" ({why})"));
    let conditions: Vec<String> = constraints.iter().map(|one| code(one, LONGEST)).collect();
    let holds = (!conditions.is_empty()).then(|| format!("holds when {}", conditions.join(", ")));
    std::iter::once(format!("{}{reason}", how.name())).chain(holds)
}

/// `32 sectors, ideal 4`: what a request takes, and what it would take at best.
fn cost(access: &Access) -> String {
    Cost::of(access).map_or_else(
        || "unknown".to_owned(),
        |cost| {
            format!(
                "{}, ideal {}",
                cost.unit.counted(&number(cost.figure)),
                number(cost.ideal)
            )
        },
    )
}

fn branches(branches: &[&Branch], open: bool) -> Table {
    let mut table = Table::new(&[
        ("branch", Align::Left),
        ("lanes", Align::Left),
        ("warps diverge", Align::Right),
        ("warps take it", Align::Right),
        ("iterations", Align::Right),
    ]);
    let fraction = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), percent);
    for branch in branches {
        let iterations = match branch.kind {
            BranchKind::Loop => {
                let known = !open || branch.certainty == Certainty::Exact;
                maybe(branch.trips.filter(|_| known))
            }
            BranchKind::If | BranchKind::Switch | BranchKind::Select => String::new(),
        };
        let source = code(&branch.text, LONGEST_CELL);
        table.row([
            format!("{} {source}", kind(branch.kind)).into(),
            uniformity(branch.uniformity).into(),
            fraction(branch.divergent_warp_fraction).into(),
            fraction(branch.taken_warp_fraction).into(),
            iterations.into(),
        ]);
    }
    table
}

/// Source text of at most `most` characters, as inline code that breaks no table or paragraph.
fn code(text: &str, most: usize) -> String {
    let text = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('`', "'");
    if text.is_empty() {
        return String::new();
    }
    match text.char_indices().nth(most) {
        Some((cut, _)) => format!("`{}…`", &text[..cut]),
        None => format!("`{text}`"),
    }
}

fn kind(kind: BranchKind) -> &'static str {
    match kind {
        BranchKind::If => "if",
        BranchKind::Loop => "loop",
        BranchKind::Switch => "switch",
        BranchKind::Select => "select",
    }
}

fn uniformity(uniformity: Uniformity) -> &'static str {
    match uniformity {
        Uniformity::Uniform => "uniform",
        Uniformity::WarpUniform => "warp-uniform",
        Uniformity::Divergent => "divergent",
        Uniformity::DataDependent => "data-dependent",
    }
}

#[cfg(test)]
mod tests {
    use warplens_facts::facts::Why;
    use warplens_facts::facts::{Chain, Link};

    use super::*;
    use crate::render::testing::{access, branch};
    use warplens_facts::facts::Pattern;

    /// Columns a table takes where code marks do not show.
    fn widths(table: &str) -> usize {
        let rows = table.lines().filter(|line| !line.contains("---"));
        let cells = rows.map(|row| {
            let cells = row.trim_matches(['|', ' ']).split(" | ");
            let widths = cells.map(|cell| cell.trim().replace('`', "").chars().count());
            widths.collect::<Vec<_>>()
        });
        let widest = cells.reduce(|a, b| a.iter().zip(&b).map(|(a, b)| *a.max(b)).collect());
        widest.map_or(0, |widest| widest.iter().sum::<usize>() + 3 * widest.len())
    }

    #[test]
    fn tables_fit_where_text_would_wrap() {
        let mut wide = access(Space::Global, 17.5, 4.25);
        wide.op = Op::Store;
        wide.text = "histogram[(blockIdx.x * blockDim.x + threadIdx.x) * stride % bins]".to_owned();
        wide.pattern = Pattern::DataDependent;
        wide.requests = Some(1_048_576.0);
        let line = Line {
            accesses: vec![&wide],
            ..Line::default()
        };
        let table = accesses(&line, false).markdown();
        assert!(widths(&table) <= 84, "{} {table}", widths(&table));
        assert!(table.contains("17.5 sectors, ideal 4.25"), "{table}");
        for (space, one) in [
            (Space::Global, "1 sector, ideal 1"),
            (Space::Shared, "1 pass, ideal 1"),
        ] {
            assert_eq!(cost(&access(space, 1.0, 1.0)), one);
        }
        let mut wide = branch(Some(0.031));
        wide.kind = BranchKind::Switch;
        wide.text = "(blockIdx.x * blockDim.x + threadIdx.x) % stride".to_owned();
        wide.uniformity = Uniformity::DataDependent;
        let table = branches(&[&wide], false).markdown();
        assert!(widths(&table) <= 84, "{} {table}", widths(&table));
    }

    #[test]
    fn what_the_table_leaves_out_stands_below_it() {
        let mut shared = access(Space::Shared, 32.0, 1.0);
        shared.index = "threadIdx.x * 32 + threadIdx.y".to_owned();
        shared.certainty = Certainty::Assumed;
        shared.why = Some(Why::Assumed("n".to_owned()));
        shared.constraints = vec!["n % 32 == 0".to_owned()];
        assert_eq!(
            access_note(&shared),
            "`a[i]`: shared load of 4 B per lane, index `threadIdx.x * 32 + threadIdx.y`, 32 lanes active, \
             32-way bank conflict, assumed (depends on the assumed n), holds when `n % 32 == 0`"
        );
        assert_eq!(
            branch_note(&branch(None), None, None),
            "`threadIdx.x % 2`: exact"
        );
        shared.first_use = Some(FirstUse {
            operations: 3.0,
            straight: true,
            next_iteration: false,
        });
        let note = access_note(&shared);
        assert!(
            note.contains(", needed 3 operations later, assumed"),
            "{note}"
        );
        let mut chain = LoopCarried {
            site: branch(None).site,
            through: "sum".to_owned(),
            chain: Chain::default(),
        };
        chain.chain.add(Link::GlobalLoad, 1.0);
        chain.chain.add(Link::Fma, 2.0);
        assert_eq!(
            branch_note(&branch(None), None, Some(&chain)),
            "`threadIdx.x % 2`: each iteration waits for 2 fma + 1 global load of the one before through `sum`, \
             exact"
        );
        assert_eq!(
            branch_note(&branch(None), Some("n*m"), None),
            "`threadIdx.x % 2`: runs `n*m` times in all threads, exact"
        );
    }
}
