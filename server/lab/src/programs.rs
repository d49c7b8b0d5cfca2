//! `cargo lab programs`: what is found of whole programs, held against a profiler's table of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::accuracy::score::{self, Errors};
use crate::corpus;
use xtask::process;

/// A file may take so long.
const LIMIT: Duration = Duration::from_mins(2);

/// Shorter launches are mostly the launch itself, in microseconds.
const SHORT: f64 = 20.0;

/// Bytes and operations count as found within this.
const NEAR: f64 = 0.25;

/// Hold launches, times, bytes and operations of whole programs against what a profiler measured
///
/// TABLE has a line a launch: benchmark (a folder of SOURCES), kernel, arguments (of the program), block, grid, `time_us`,
/// `dram_bytes`, and `fp32_flops` and `fp64_flops` where these were counted. Each program's files are estimated with the program's arguments and nothing else.
/// Exit status 2 where a file could not be estimated at all.
#[derive(Debug, Args)]
pub struct Programs {
    /// The folder with a folder a benchmark
    #[arg(value_name = "SOURCES")]
    sources: PathBuf,
    /// The table
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// The GPU that was measured
    #[arg(long, value_name = "ID", default_value = "rtx-3080")]
    gpu: String,
    /// The SM clock that was measured at
    #[arg(long, value_name = "MHZ", default_value_t = 1440)]
    clock: u32,
    /// A line for each launch, too
    #[arg(long)]
    each: bool,
    /// Only this benchmark
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Not this benchmark: its sizes are in a file that is not beside its sources (repeatable)
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// This warplens, instead of building one
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
}

/// A launch of the table.
#[derive(Debug, Clone, Deserialize)]
struct Row {
    benchmark: String,
    kernel: String,
    arguments: String,
    block: String,
    grid: String,
    time_us: f64,
    dram_bytes: f64,
    fp32_flops: Option<f64>,
    fp64_flops: Option<f64>,
}

/// What was found of a row.
#[derive(Debug, Default)]
struct Found {
    /// The kernel was found at all.
    kernel: bool,
    block: bool,
    /// Block and grid of one launch.
    launch: bool,
    /// The value of each parameter that something was asked of is known.
    arguments: bool,
    /// Microseconds.
    time: Option<f64>,
    dram: Option<f64>,
    fp32: Option<f64>,
    fp64: Option<f64>,
    /// The launches that were found instead, or the sizes that the time depends on.
    says: String,
}

impl Programs {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let bin = match &self.bin {
            Some(given) => given.clone(),
            None => corpus::build()?,
        };
        let mut table = csv::Reader::from_path(&self.table)
            .with_context(|| format!("cannot read {}", self.table.display()))?;
        let rows: Vec<Row> = table.deserialize().collect::<Result<_, _>>()?;
        let mut programs: BTreeMap<(&str, &str), Vec<&Row>> = BTreeMap::new();
        for row in &rows {
            let wanted = self.only.as_ref().is_none_or(|only| *only == row.benchmark)
                && !self.without.contains(&row.benchmark);
            if wanted {
                let program = (row.benchmark.as_str(), row.arguments.as_str());
                programs.entry(program).or_default().push(row);
            }
        }
        let programs: Vec<_> = programs.into_iter().collect();
        let answers: Vec<anyhow::Result<Vec<Value>>> = programs
            .par_iter()
            .map(|((benchmark, arguments), _)| {
                self.results(&bin, &self.sources.join(benchmark), arguments)
            })
            .collect();
        let mut found = Vec::new();
        let mut broken = false;
        for (((benchmark, _), rows), answer) in programs.iter().zip(answers) {
            let results = answer.unwrap_or_else(|error| {
                eprintln!("{benchmark}: {error:#}");
                broken = true;
                Vec::new()
            });
            found.extend(rows.iter().map(|row| (*row, of_row(row, &results))));
        }
        if self.each {
            for (row, found) in &found {
                println!("{}", line(row, found));
            }
        }
        print!("{}", summary(&found));
        Ok(if broken {
            ExitCode::from(2)
        } else {
            ExitCode::SUCCESS
        })
    }

    /// All results of the files of a folder that hold kernels.
    fn results(&self, bin: &Path, folder: &Path, arguments: &str) -> anyhow::Result<Vec<Value>> {
        let mut files = Vec::new();
        corpus::walk(folder, &mut files)?;
        let mut files: Vec<PathBuf> = files
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| {
                let extension = path.extension().and_then(|extension| extension.to_str());
                matches!(extension, Some("cu" | "cuh" | "h" | "hpp"))
                    && std::fs::read_to_string(path).is_ok_and(|text| text.contains("__global__"))
            })
            .collect();
        files.sort();
        let mut results = Vec::new();
        for file in files {
            let mut command = Command::new(bin);
            command
                .args(["estimate", "--format", "json", "--gpu", &self.gpu])
                .args(["--clock", &self.clock.to_string(), "--run", arguments])
                .arg(&file);
            let told = process::captured(&mut command, LIMIT)?;
            let Ok(mut document) = serde_json::from_str::<Value>(&told.out) else {
                bail!("{}: {}", file.display(), told.errors.trim());
            };
            if let Some(Value::Array(some)) = document.get_mut("results").map(Value::take) {
                results.extend(some);
            }
        }
        Ok(results)
    }
}

/// `gen_copy` of `void gen_copy<int, int>(T1 *, int)` and of `_ZL8gen_copyPii`, as static functions are written.
fn plain(signature: &str) -> &str {
    let head = signature.split(['(', '<']).next().unwrap_or(signature);
    let name = head.rsplit([' ', ':', '*', '&']).next().unwrap_or(head);
    let Some(mangled) = name.strip_prefix("_ZL") else {
        return name;
    };
    let digits = mangled.len()
        - mangled
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    let (length, rest) = mangled.split_at(digits);
    let length = length.parse().unwrap_or(rest.len());
    rest.get(..length).unwrap_or(name)
}

/// `8,8,4`, as the table writes it.
fn extents(value: &Value) -> Option<String> {
    let axes = value.as_array()?.iter();
    let axes: Option<Vec<String>> = axes
        .map(|axis| axis.as_u64().map(|axis| axis.to_string()))
        .collect();
    Some(axes?.join(","))
}

fn of_row(row: &Row, results: &[Value]) -> Found {
    let name = plain(&row.kernel);
    let of_kernel = || results.iter().filter(|result| result["kernel"] == name);
    let block =
        |result: &&Value| extents(&result["launch"]["block"]).is_some_and(|of| of == row.block);
    let grid =
        |result: &&Value| extents(&result["launch"]["grid"]).is_some_and(|of| of == row.grid);
    let launched = of_kernel().find(|result| block(result) && grid(result));
    let Some(best) = launched
        .or_else(|| of_kernel().find(block))
        .or_else(|| of_kernel().next())
    else {
        return Found::default();
    };
    let auto = &best["estimates"]["auto"];
    let counted = |class: &str| {
        let counts = best["counts"].as_array()?;
        let count = counts.iter().find(|count| count["class"] == class);
        count.map_or(Some(0.0), |count| count["value"].as_f64())
    };
    let mut assumptions = best["assumptions"].as_array().into_iter().flatten();
    let assumed = assumptions.any(|assumption| assumption["source"] == "unknown");
    let shapes: Vec<String> = of_kernel()
        .take(4)
        .map(|result| {
            let launch = &result["launch"];
            let shape = |name: &str| extents(&launch[name]).unwrap_or_else(|| "?".to_owned());
            format!("<<<{}; {}>>>", shape("grid"), shape("block"))
        })
        .collect();
    let says = match auto["time_formula"].as_str() {
        _ if launched.is_none() => format!("launches {}", shapes.join(" ")),
        Some(formula) => formula.to_owned(),
        None => auto["why"].as_str().unwrap_or_default().to_owned(),
    };
    Found {
        kernel: true,
        block: of_kernel().any(|result| block(&result)),
        launch: launched.is_some(),
        arguments: !assumed,
        time: auto["time_ms"].as_f64().map(|ms| ms * 1e3),
        dram: auto["detail"]["dram_bytes"].as_f64(),
        fp32: counted("fp32"),
        fp64: counted("fp64"),
        says,
    }
}

fn line(row: &Row, found: &Found) -> String {
    let figure = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |v| format!("{v:.1}"));
    let mark = match (found.kernel, found.block, found.launch) {
        (false, ..) => "no kernel",
        (_, _, true) => "launch",
        (_, true, _) => "block",
        _ => "-",
    };
    let factor = found.time.map_or_else(
        || "?".to_owned(),
        |time| format!("{:.2}x", time / row.time_us),
    );
    format!(
        "{}\t{}\t{}\t<<<{}; {}>>>\t{mark}\t{} us\t{} us\t{factor}\tdram {:.0}\t{}\tfp32 {}\t{}\tfp64 {}\t{}\t{}",
        row.benchmark,
        plain(&row.kernel),
        if found.arguments { "known" } else { "assumed" },
        row.grid,
        row.block,
        row.time_us,
        figure(found.time),
        row.dram_bytes,
        figure(found.dram),
        figure(row.fp32_flops),
        figure(found.fp32),
        figure(row.fp64_flops),
        figure(found.fp64),
        found.says
    )
}

/// True where a prediction is near what was measured, or both are nothing beside a thousand.
fn near(predicted: Option<f64>, measured: f64) -> bool {
    predicted.is_some_and(|predicted| {
        let few = predicted.max(measured) < 1000.0;
        few || (predicted - measured).abs() <= NEAR * measured
    })
}

fn summary(found: &[(&Row, Found)]) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    let share = |count: usize, of: usize| {
        let percent = 100.0 * count as f64 / of.max(1) as f64;
        format!("{count} of {of} ({percent:.0} %)")
    };
    let count = |is: &dyn Fn(&(&Row, Found)) -> bool| found.iter().filter(|one| is(one)).count();
    let all = found.len();
    let _ = writeln!(
        out,
        "kernel found       {}",
        share(count(&|(_, f)| f.kernel), all)
    );
    let _ = writeln!(
        out,
        "block              {}",
        share(count(&|(_, f)| f.block), all)
    );
    let _ = writeln!(
        out,
        "block and grid     {}",
        share(count(&|(_, f)| f.launch), all)
    );
    let _ = writeln!(
        out,
        "arguments          {}",
        share(count(&|(_, f)| f.arguments), all)
    );
    let long = |row: &Row| row.time_us > SHORT;
    let longs = count(&|(row, _)| long(row));
    let timed: Vec<(f64, f64)> = found
        .iter()
        .filter(|(row, _)| long(row))
        .filter_map(|(row, f)| Some((f.time.filter(|time| *time > 0.0)?, row.time_us)))
        .collect();
    let _ = writeln!(
        out,
        "over {SHORT} us, a time  {}",
        share(timed.len(), longs)
    );
    let (predicted, measured): (Vec<f64>, Vec<f64>) = timed.iter().copied().unzip();
    let errors = score::raw(&timed);
    let within = errors.iter().filter(|error| **error <= 2f64.ln()).count();
    if let (Some(rho), Some(of)) = (score::spearman(&predicted, &measured), Errors::of(&errors)) {
        let _ = writeln!(
            out,
            "  rho {rho:.2}; within a factor of two {}; factor: median {:.2}, 90th percentile {:.2}",
            share(within, timed.len()),
            of.median.exp(),
            of.p90.exp()
        );
    }
    let dram =
        count(&|(row, f)| long(row) && near(f.dram.filter(|_| f.time.is_some()), row.dram_bytes));
    let _ = writeln!(out, "  DRAM bytes within 25 %  {}", share(dram, longs));
    let counted = count(&|(row, _)| long(row) && row.fp32_flops.is_some());
    let operations = count(&|(row, f)| {
        let near =
            |found, counted: Option<f64>| counted.is_some_and(|counted| near(found, counted));
        long(row) && near(f.fp32, row.fp32_flops) && near(f.fp64, row.fp64_flops)
    });
    if counted > 0 {
        let _ = writeln!(
            out,
            "  floating-point operations within 25 %  {}",
            share(operations, counted)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_has_a_plain_name() {
        assert_eq!(plain("void gen_copy<int, int>(T1 *, T1 *)"), "gen_copy");
        assert_eq!(plain("jacobi_step(float *, const float *)"), "jacobi_step");
        assert_eq!(plain("ns::kernel(double (*)[400])"), "kernel");
    }

    #[test]
    fn a_launch_is_found_by_block_and_grid_together() {
        let result = |grid: u64, block: u64| {
            serde_json::json!({
                "kernel": "k", "launch": {"grid": [grid, 1, 1], "block": [block, 1, 1]}, "assumptions": [],
                "counts": [], "estimates": {"auto": {"time_ms": 0.5}},
            })
        };
        let row = Row {
            benchmark: "b".to_owned(),
            kernel: "k(int)".to_owned(),
            arguments: String::new(),
            block: "256,1,1".to_owned(),
            grid: "8,1,1".to_owned(),
            time_us: 250.0,
            dram_bytes: 0.0,
            fp32_flops: Some(0.0),
            fp64_flops: None,
        };
        let both = of_row(&row, &[result(4, 256), result(8, 256)]);
        assert!(both.launch && both.block && both.arguments);
        assert_eq!(both.time, Some(500.0));
        let apart = of_row(&row, &[result(4, 256), result(8, 128)]);
        assert!(!apart.launch && apart.block);
        assert!(!of_row(&row, &[]).kernel);
    }
}
