//! The comparison as it is shown: on a terminal, and as the page.

use std::fmt::Write as _;

use super::compare::{Row, Verdict};
use super::{Compared, Device, TARGET};

/// What is above the tables.
const HEAD: &str = "# What a GPU counts: predicted and measured\n\n\
`cargo lab counters` writes this page from what `cargo lab measure` wrote on a machine with a GPU: of each access of\n\
our kernels (`tests/kernels`) the sectors per request (device memory) or the wavefronts per request (shared memory), as\n\
warplens says before the kernel is compiled and as ncu counted them in the very same launch. A fact that is called\n\
*exact* has to be what was counted; where one is not, that is a bug.\n\n\
Accesses of one line, memory and operation are one row: their sum over the sum of their requests. Measured are ncu's\n\
*L2 Theoretical Sectors Global* and *L1 Wavefronts Shared* over *Instructions Executed* of the line's instructions.\n\
Where the compiler made wider accesses of several, no request of the source was executed, and the row is not judged.\n";

/// Rows that differ first, then all by kernel.
pub fn page(devices: &[Device]) -> String {
    let mut text = HEAD.to_owned();
    for device in devices.iter().filter(|device| !device.kernels.is_empty()) {
        let _ = write!(
            text,
            "\n## {}\n\nMeasured with {}; predicted for `{}`.\n\n",
            device.name, device.provenance, device.gpu
        );
        for line in sums(device) {
            let _ = writeln!(text, "- {line}");
        }
        let tables = [
            ("What differs", differing(device)),
            ("All accesses", device.kernels.iter().map(all).collect()),
        ];
        for (title, kernels) in tables {
            if kernels.iter().all(|(_, rows)| rows.is_empty()) {
                continue;
            }
            let _ = write!(text, "\n### {title}\n");
            text.push_str(
                "\n| kernel | place | access | unit | predicted | measured | difference | requests predicted | measured | fact | |\n\
                 | --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |\n",
            );
            for (kernel, rows) in kernels {
                for row in rows {
                    let _ = writeln!(text, "{}", line(kernel, row));
                }
            }
        }
    }
    text
}

fn all(kernel: &Compared) -> (&Compared, Vec<&Row>) {
    (kernel, kernel.rows.iter().collect())
}

fn differing(device: &Device) -> Vec<(&Compared, Vec<&Row>)> {
    let differs = |row: &&Row| row.verdict == Verdict::Differs;
    let kernels = device.kernels.iter();
    kernels
        .map(|kernel| (kernel, kernel.rows.iter().filter(differs).collect()))
        .collect()
}

fn line(kernel: &Compared, row: &Row) -> String {
    let [predicted, measured] = row.requests.map(whole);
    // A pipe would end the cell.
    let text = row.text.replace('|', "\\|");
    format!(
        "| `{}` | {}:{} | {} `{text}` | {} | {} | {} | {} | {predicted} | {measured} | {} | {} |",
        kernel.kernel,
        kernel.file,
        row.key.line,
        row.key.op,
        row.key.space.unit(),
        figure(row.predicted),
        figure(row.measured),
        difference(row),
        row.certainty,
        remark(row.verdict),
    )
}

/// What is printed: the sums, each row that differs or could not be judged, and what is wrong with the file.
pub fn terminal(device: &Device) -> String {
    let mut text = format!(
        "{} ({}), predicted for {}\n",
        device.name, device.provenance, device.gpu
    );
    for kernel in &device.kernels {
        let _ = writeln!(text, "{} in {}", kernel.kernel, kernel.file);
        for row in &kernel.rows {
            let _ = writeln!(
                text,
                "  line {:<5} {:<6} {:<10} {:>9} predicted {:>9} measured {:>9} difference  {:<7} {:<28} {}",
                row.key.line,
                row.key.op,
                row.key.space.unit(),
                figure(row.predicted),
                figure(row.measured),
                difference(row),
                row.certainty,
                remark(row.verdict),
                row.text,
            );
        }
    }
    for line in sums(device) {
        let _ = writeln!(text, "{line}");
    }
    for problem in &device.problems {
        let _ = writeln!(text, "not compared: {problem}");
    }
    if let Some(why) = &device.no_counters {
        let _ = writeln!(text, "{}", refused(why, device.kernels.is_empty()));
    }
    text
}

/// Why there are no counters, and what to do about it.
fn refused(why: &str, none: bool) -> String {
    let which = if none {
        "no counters"
    } else {
        "no further counters"
    };
    let mut text = format!("{which} were measured: {why}");
    if why.contains(crate::measure::REFUSED) {
        text.push_str(
            "\nthe driver keeps counters for administrators: run `cargo lab measure` as root, or load the module \
             with NVreg_RestrictProfilingToAdminUsers=0",
        );
    }
    text
}

/// The sum line, and one for what is not in it.
fn sums(device: &Device) -> Vec<String> {
    if device.kernels.is_empty() {
        return Vec::new();
    }
    let (equal, differing) = (device.count(Verdict::Equal), device.count(Verdict::Differs));
    let exact = equal + differing;
    let share = if exact == 0 {
        "none was counted".to_owned()
    } else {
        let share = equal as f64 / exact as f64;
        let met = if share >= TARGET { "met" } else { "missed" };
        // A disagreement is never rounded away.
        format!(
            "{:.1} % (target: {:.0} %, {met})",
            (1000.0 * share).floor() / 10.0,
            100.0 * TARGET
        )
    };
    let others: Vec<String> = [
        (Verdict::Open, "whose fact is not called exact"),
        (Verdict::Joined, "made wider by the compiler"),
        (Verdict::NotMeasured, "without an instruction at their line"),
        (Verdict::NotPredicted, "executed, not predicted"),
    ]
    .into_iter()
    .map(|(verdict, what)| (device.count(verdict), what))
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    let mut lines = vec![format!("{equal} of {exact} exact facts equal, {share}")];
    if !others.is_empty() {
        lines.push(format!("not in this sum: {}", others.join(", ")));
    }
    lines
}

fn remark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Differs => "**differs**",
        Verdict::Equal => "equal",
        Verdict::Open => "not exact",
        Verdict::Joined => "wider accesses",
        Verdict::NotMeasured => "no instruction",
        Verdict::NotPredicted => "not predicted",
    }
}

/// As many digits as tell it apart.
fn figure(value: Option<f64>) -> String {
    value.map_or_else(
        || "-".to_owned(),
        |value| {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        },
    )
}

fn difference(row: &Row) -> String {
    match row.difference() {
        Some(value) if row.verdict == Verdict::Equal || value == 0.0 => "0".to_owned(),
        Some(value) => format!(
            "{}{}",
            if value > 0.0 { "+" } else { "" },
            figure(Some(value))
        ),
        None => "-".to_owned(),
    }
}

fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}
