//! The page that shows the comparison.

use std::fmt::Write as _;

use super::Compared;
use super::figures::{Counts, MEMORY, Row, Share, blocks, median, registers_error, steps, within};

/// What is above the tables.
const HEAD: &str = "# What is compiled: predicted and real\n\n\
`cargo lab compiled` writes this page: warplens predicts from the source what the compiler makes of a kernel, its\n\
registers and its instructions by class, and here the prediction is held against what nvcc makes of the same source.\n\
No GPU is needed for it, and nothing is executed.\n\n\
What was calibrated on what: the recipes of mathematical functions and divisions (`server/codegen/recipes`) are\n\
measured on micro-kernels that do nothing else (`cargo lab recipes`), and from how many iterations on loops are\n\
unrolled was read from micro-kernels of one loop each. What does not fit into a bound on registers was read from\n\
sums, tiles, stencils and factorisations of growing sizes (`cargo lab compiled --maxrregcount 32` writes the tables\n\
of that bound). Which of a compiler's habits matter was looked for where predictions failed on PolyBench/GPU, Rodinia,\n\
SHOC, Parboil, llm.c, the CUDA samples and those programs of HeCBench that the table below does not hold; what was found\n\
there was measured again on micro-kernels.\n\n\
*Beside it* is what one reaches without looking at the kernel at all. A count is compared where the kernel or its\n\
prediction has any. *Theoretical occupancy* is what the registers allow at blocks of 256 threads; a step is the next\n\
number of blocks that registers can allow. An instance of a template, or an overload, is compared only where it is\n\
plain which prediction is its own. Of HeCBench (github.com/zjin-lcf/HeCBench) only the totals stand here, of its kernels\n\
that are no templates and that were understood in full.\n";

/// What is before and behind a table.
fn marks(title: &str) -> (String, String) {
    (
        format!("<!-- begin: {title} -->\n"),
        format!("<!-- end: {title} -->\n"),
    )
}

/// The page with a table put in, in the place of the one that it had under that title.
pub fn with(page: &str, title: &str, block: &str) -> String {
    let (begin, end) = marks(title);
    let table = format!("{begin}{block}{end}");
    let found = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, behind) = rest.split_once(&end)?;
        Some(format!("{before}{table}{behind}"))
    });
    let page = found.unwrap_or_else(|| {
        if page.is_empty() {
            format!("{HEAD}\n{table}")
        } else {
            format!("{page}\n{table}")
        }
    });
    // The head is of this version, the tables stay.
    match page.find("\n<!-- begin: ") {
        Some(at) => format!("{HEAD}{}", &page[at..]),
        None => page,
    }
}

/// The table of a comparison; with `each`, also one by kernel.
pub fn block(title: &str, source: &str, compared: &Compared, each: bool) -> String {
    let mut text = format!("## {title}\n\n");
    let rows = &compared.rows;
    let _ = writeln!(
        text,
        "Held against {source}: {} of {}.",
        counted(rows.len(), "kernel"),
        counted(compared.files, "file")
    );
    let left_out: Vec<String> = [
        (compared.not_compiled, "files that do not compile"),
        (compared.left_out, "instances of templates and overloads"),
        (
            compared.not_clean,
            "kernels whose source was not understood in full",
        ),
        (compared.not_predicted, "kernels without a prediction"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    if !left_out.is_empty() {
        let _ = writeln!(text, "Left out: {}.", left_out.join(", "));
    }
    text.push_str("\n| | predicted | beside it | kernels |\n| --- | ---: | ---: | ---: |\n");
    for [what, ours, beside, of] in lines(rows) {
        let _ = writeln!(text, "| {what} | {ours} | {beside} | {of} |");
    }
    if each {
        let _ = write!(text, "\n{}", kernels(rows));
    }
    text
}

/// The lines of the table.
fn lines(rows: &[Row]) -> Vec<[String; 4]> {
    let all = rows.len().to_string();
    let middle = median(rows.iter().map(|row| row.measured.registers));
    // Between two, the lower: registers are whole.
    let usual = middle as u64;
    let registers = |row: &Row| (row.measured.registers, row.predicted.registers);
    let near = |predicted: &dyn Fn(&Row) -> u64| {
        Share::of(rows, |row| {
            within(25, row.measured.registers, predicted(row))
        })
        .to_string()
    };
    let occupancy = |right: &dyn Fn(&Row) -> bool| Share::of(rows, |row| right(row)).to_string();
    let mut lines = vec![
        [
            "registers: median absolute error".to_owned(),
            format!("{}", registers_error(rows)),
            format!(
                "{} (always {usual})",
                median(
                    rows.iter()
                        .map(|row| row.measured.registers.abs_diff(usual))
                )
            ),
            all.clone(),
        ],
        [
            "registers within 25 %".to_owned(),
            near(&|row| row.predicted.registers),
            format!("{} (always {usual})", near(&|_| usual)),
            all.clone(),
        ],
        [
            "theoretical occupancy right".to_owned(),
            occupancy(&|row| {
                let (measured, predicted) = registers(row);
                blocks(measured) == blocks(predicted)
            }),
            format!(
                "{} (always 8 blocks)",
                occupancy(&|row| blocks(row.measured.registers) == 8)
            ),
            all.clone(),
        ],
        [
            "theoretical occupancy within one step".to_owned(),
            occupancy(&|row| {
                let (measured, predicted) = registers(row);
                steps(measured, predicted) <= 1
            }),
            format!(
                "{} (always 8 blocks)",
                occupancy(&|row| steps(row.measured.registers, 1) <= 1)
            ),
            all.clone(),
        ],
    ];
    let spilling = || rows.iter().filter(|row| row.measured.spills > 0);
    let said = || rows.iter().filter(|row| row.predicted.spills > 0);
    let both = |row: &&Row| row.measured.spills > 0 && row.predicted.spills > 0;
    for (what, share) in [
        ("kernels that spill, found", Share::of(spilling(), both)),
        ("kernels said to spill that do", Share::of(said(), both)),
    ] {
        lines.push([
            what.to_owned(),
            share.to_string(),
            String::new(),
            share.whole.to_string(),
        ]);
    }
    let mut compare = |what: String, count: &dyn Fn(&Counts) -> u64, percent: u64| {
        let having = rows
            .iter()
            .map(|row| (count(&row.measured), count(&row.predicted)))
            .filter(|(measured, predicted)| measured + predicted > 0);
        let share = Share::of(having, |&(measured, predicted)| {
            within(percent, measured, predicted)
        });
        lines.push([
            what,
            share.to_string(),
            String::new(),
            share.whole.to_string(),
        ]);
    };
    for (number, name) in MEMORY.iter().enumerate() {
        compare(format!("{name} equal"), &|counts| counts.memory[number], 0);
    }
    compare(
        "FP32 arithmetic within 10 %".to_owned(),
        &|counts| counts.fp32,
        10,
    );
    compare(
        "FP64 arithmetic within 10 %".to_owned(),
        &|counts| counts.fp64,
        10,
    );
    compare(
        "all instructions within 25 %".to_owned(),
        &|counts| counts.total,
        25,
    );
    lines
}

/// A table with a line for each kernel: what is predicted, and what nvcc makes where that differs.
pub fn kernels(rows: &[Row]) -> String {
    let mut text =
        "By kernel: predicted, and in brackets compiled where that is another.\n\n".to_owned();
    let mut heads = vec!["kernel", "registers"];
    heads.extend(MEMORY);
    heads.extend(["FP32", "FP64", "all"]);
    let _ = writeln!(text, "| {} |", heads.join(" | "));
    let _ = writeln!(text, "| ---{} |", " | ---:".repeat(heads.len() - 1));
    for row in rows {
        let counts = |counts: &Counts| {
            let mut all = vec![counts.registers];
            all.extend(counts.memory);
            all.extend([counts.fp32, counts.fp64, counts.total]);
            all
        };
        let cells = counts(&row.predicted)
            .into_iter()
            .zip(counts(&row.measured))
            .map(|(predicted, measured)| {
                if predicted == measured {
                    predicted.to_string()
                } else {
                    format!("{predicted} ({measured})")
                }
            });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "| `{}` | {} |", row.kernel, cells.join(" | "));
    }
    text
}

fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kernel: &str, measured: u64, predicted: u64) -> Row {
        let counts = |registers: u64| Counts {
            registers,
            memory: [2, 1, 0, 0, 0],
            total: 10 * registers,
            ..Counts::default()
        };
        Row {
            file: "a.cu".to_owned(),
            kernel: kernel.to_owned(),
            measured: counts(measured),
            predicted: counts(predicted),
        }
    }

    #[test]
    fn a_table_says_what_is_right_and_how_one_fares_without() {
        let mut rows = vec![row("a", 16, 16), row("b", 24, 30), row("c", 40, 36)];
        rows[1].measured.spills = 8;
        rows[2].measured.spills = 16;
        rows[2].predicted.spills = 4;
        let compared = Compared {
            rows,
            files: 1,
            left_out: 2,
            ..Compared::default()
        };
        let text = block("ours", "nvcc 13.0 for sm_80", &compared, true);
        for line in [
            "Held against nvcc 13.0 for sm_80: 3 kernels of 1 file.",
            "Left out: 2 instances of templates and overloads.",
            "| registers: median absolute error | 4 | 8 (always 24) | 3 |",
            "| registers within 25 % | 100 % | 33 % (always 24) | 3 |",
            "| theoretical occupancy right | 100 % | 67 % (always 8 blocks) | 3 |",
            "| kernels that spill, found | 50 % |  | 2 |",
            "| kernels said to spill that do | 100 % |  | 1 |",
            "| LDG equal | 100 % |  | 3 |",
            "| LDS equal | - |  | 0 |",
            "| all instructions within 25 % | 100 % |  | 3 |",
            "| `b` | 30 (24) | 2 | 1 | 0 | 0 | 0 | 0 | 0 | 300 (240) |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_table_takes_the_place_of_the_one_before() {
        let one = with("", "ours", "first\n");
        let two = with(&one, "theirs", "other\n");
        assert!(two.starts_with(HEAD) && two.contains("first") && two.contains("other"));
        let three = with(&two, "ours", "second\n");
        assert!(!three.contains("first") && three.contains("second") && three.contains("other"));
        assert_eq!(three.matches("# What is compiled").count(), 1);
    }
}
