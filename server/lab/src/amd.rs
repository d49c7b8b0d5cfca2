//! `cargo lab amd`: the predicted VGPRs, SGPRs, LDS and occupancy held against what clang makes of the same sources.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use warplens_machine::{Profile, Profiles, occupancy};

use crate::corpus;
use xtask::{process, repository};

/// No file may take longer, to compile or to predict.
const LIMIT: Duration = Duration::from_mins(1);

/// Threads of a block as clang assumes them where a kernel does not say.
const BLOCK: u64 = 256;

/// VGPRs may be off by this many.
const NEAR: u64 = 4;

/// What is above the tables.
const HEAD: &str = "# AMD registers and LDS: predicted and real\n\n\
`cargo lab amd` writes this page: warplens predicts from the source the VGPRs, SGPRs and LDS of OpenCL kernels, and\n\
here the prediction is held against `-Rpass-analysis=kernel-resource-usage` of clang with libclc. No GPU is needed for\n\
it, and nothing is executed.\n\n\
What was calibrated on what: the registers of library functions and divisions (`server/codegen/recipes/gfx90a.tsv`)\n\
are measured on micro-kernels; the scheduler's habits were read from micro-kernels, our own kernels, and kernels of\n\
SHOC and Rodinia that are not in the table. *Beside it* is what one reaches without looking at the\n\
kernel at all. *Occupancy* is the waves on a SIMD that VGPRs and LDS allow at blocks of 256 work-items.\n";

/// Hold the predicted VGPRs, SGPRs and LDS against clang's: docs/accuracy/amd.md
///
/// Compiles every .cl of the folders and asks warplens for the same, or takes what was measured from a table. Files
/// that do not compile are counted and left out. Needs no GPU.
#[derive(Debug, Args)]
pub struct Amd {
    /// The folders
    #[arg(value_name = "DIR", default_value = "tests/kernels")]
    folders: Vec<PathBuf>,
    /// The clang
    #[arg(long, value_name = "PATH", default_value = "clang-19")]
    clang: PathBuf,
    /// libclc's bitcode for amdgcn
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/usr/lib/clc/amdgcn--amdhsa.bc"
    )]
    libclc: PathBuf,
    /// The profile to predict for; its architecture is the target
    #[arg(long, value_name = "ID", default_value = "mi210")]
    gpu: String,
    /// This warplens, instead of building one
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// Take what was measured from a table instead
    #[arg(long, value_name = "FILE", requires = "source")]
    csv: Option<PathBuf>,
    /// Where the files of a table are whose path begins with NAME (repeatable)
    #[arg(long, value_name = "NAME=DIR", value_parser = source)]
    source: Vec<(String, PathBuf)>,
    /// The table's heading
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The page that gets the table
    #[arg(long, value_name = "FILE", default_value = "docs/accuracy/amd.md")]
    out: PathBuf,
    /// Also a line for each kernel
    #[arg(long)]
    kernels: bool,
}

fn source(text: &str) -> Result<(String, PathBuf), String> {
    let (name, folder) = text
        .split_once('=')
        .ok_or("NAME=DIR, such as shoc=/src/shoc")?;
    Ok((name.to_owned(), PathBuf::from(folder)))
}

/// What a kernel takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Taken {
    vgprs: u64,
    sgprs: u64,
    lds: u64,
    /// Waves on a SIMD.
    waves: u64,
    /// Its stack's size is not known: the figures are none.
    dynamic: bool,
}

struct Row {
    kernel: String,
    measured: Taken,
    predicted: Taken,
}

#[derive(Default)]
struct Compared {
    rows: Vec<Row>,
    files: usize,
    not_compiled: usize,
    not_predicted: usize,
    not_found: usize,
}

impl Amd {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let bin = match &self.bin {
            Some(bin) => std::path::absolute(bin)?,
            None => corpus::build()?,
        };
        let profile = Profiles::builtin()
            .get(&self.gpu)
            .with_context(|| format!("no GPU is called {}", self.gpu))?;
        let mut compared = Compared::default();
        let (title, from) = match &self.csv {
            Some(csv) => {
                self.of_table(csv, &bin, &profile, &mut compared)?;
                let name = csv.file_name().unwrap_or_default().to_string_lossy();
                (name.clone().into_owned(), name.into_owned())
            }
            None => {
                self.of_folders(&bin, &profile, &mut compared)?;
                let names: Vec<_> = self
                    .folders
                    .iter()
                    .map(|f| f.display().to_string())
                    .collect();
                (names.join(", "), self.version()?)
            }
        };
        if compared.rows.is_empty() {
            bail!("no kernel to compare");
        }
        let title = self.title.clone().unwrap_or(title);
        let block = block(&title, &from, &profile, &compared);
        println!("{block}");
        if self.kernels {
            for row in &compared.rows {
                println!("{} {:?} {:?}", row.kernel, row.measured, row.predicted);
            }
        }
        let path = repository::root().join(&self.out);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, with(&before, &title, &block))
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
        Ok(ExitCode::SUCCESS)
    }

    fn version(&self) -> anyhow::Result<String> {
        let told = process::captured(Command::new(&self.clang).arg("--version"), LIMIT)?;
        let line = told.out.lines().next().unwrap_or_default();
        // The distribution's own notes are left out.
        let words: Vec<&str> = line
            .split_whitespace()
            .skip_while(|word| *word != "clang")
            .take(3)
            .collect();
        Ok(words.join(" "))
    }

    fn of_folders(
        &self,
        bin: &Path,
        profile: &Profile,
        compared: &mut Compared,
    ) -> anyhow::Result<()> {
        let mut files = Vec::new();
        for folder in &self.folders {
            let folder = if folder.is_dir() {
                std::path::absolute(folder)?
            } else {
                repository::root().join(folder)
            };
            corpus::walk(&folder, &mut files)?;
        }
        files.retain(|(path, _)| path.extension().is_some_and(|found| found == "cl"));
        files.sort();
        for (path, _) in files {
            let told = process::captured(
                Command::new(&self.clang)
                    .args(["-x", "cl", "-cl-std=CL1.2", "-O3", "-nogpulib", "-S"])
                    .args(["-Xclang", "-finclude-default-header"])
                    .args(["--target=amdgcn-amd-amdhsa"])
                    .arg(format!("-mcpu={}", profile.architecture))
                    .args(["-Xclang", "-mlink-builtin-bitcode", "-Xclang"])
                    .arg(&self.libclc)
                    .arg("-Rpass-analysis=kernel-resource-usage")
                    .args(["-o", "/dev/null"])
                    .arg(&path),
                LIMIT,
            )?;
            let kernels = remarks(&told.errors);
            compared.files += 1;
            if kernels.is_empty() {
                compared.not_compiled += 1;
                continue;
            }
            let predicted = self.predict(bin, &path, profile)?;
            hold(&path, kernels, &predicted, compared);
        }
        Ok(())
    }

    fn of_table(
        &self,
        table: &Path,
        bin: &Path,
        profile: &Profile,
        compared: &mut Compared,
    ) -> anyhow::Result<()> {
        let mut reader = csv::Reader::from_path(table)
            .with_context(|| format!("cannot read {}", table.display()))?;
        let mut files: BTreeMap<String, Vec<(String, Taken)>> = BTreeMap::new();
        for row in reader.deserialize::<BTreeMap<String, String>>() {
            let row = row?;
            let number = |name: &str| {
                let text = row.get(name).with_context(|| format!("no column {name}"))?;
                text.parse::<u64>()
                    .with_context(|| format!("{name}: {text}"))
            };
            let taken = Taken {
                vgprs: number("VGPRs")?,
                sgprs: number("SGPRs")?,
                lds: number("LDS Size [bytes/block]")?,
                waves: number("Occupancy [waves/SIMD]")?,
                dynamic: row.get("Dynamic Stack").is_some_and(|text| text == "True"),
            };
            let text = |name: &str| row.get(name).cloned().unwrap_or_default();
            files
                .entry(text("file"))
                .or_default()
                .push((text("kernel"), taken));
        }
        for (file, kernels) in files {
            let (first, rest) = file.split_once('/').unwrap_or(("", &file));
            let folder = self.source.iter().find(|(name, _)| name == first);
            let Some(path) = folder
                .map(|(_, folder)| folder.join(rest))
                .filter(|path| path.is_file())
            else {
                compared.not_found += kernels.len();
                continue;
            };
            compared.files += 1;
            let predicted = self.predict(bin, &path, profile)?;
            hold(Path::new(&file), kernels, &predicted, compared);
        }
        Ok(())
    }

    /// What is predicted of a file's kernels.
    fn predict(
        &self,
        bin: &Path,
        path: &Path,
        profile: &Profile,
    ) -> anyhow::Result<BTreeMap<String, Taken>> {
        let mut estimate = Command::new(bin);
        estimate.args(["estimate", "--format", "json", "--gpu", &self.gpu]);
        let told = process::captured(estimate.arg(path), LIMIT)?;
        let Ok(document) = serde_json::from_str::<Value>(&told.out) else {
            eprintln!("{}: no prediction: {}", path.display(), told.errors.trim());
            return Ok(BTreeMap::new());
        };
        let results = document["results"].as_array().into_iter().flatten();
        Ok(results
            .map(|result| {
                let resources = &result["resources"];
                let number = |name: &str| resources[name].as_u64().unwrap_or(0);
                let mut taken = Taken {
                    vgprs: number("registers_per_thread"),
                    sgprs: number("sgprs_per_wave"),
                    lds: number("static_shared_bytes"),
                    ..Taken::default()
                };
                let all = occupancy(profile, BLOCK, taken.vgprs as u32, taken.lds, u64::MAX);
                taken.waves = u64::from(all.active_warps_per_sm / profile.sub_partitions);
                let name = result["kernel"].as_str().unwrap_or_default();
                (name.to_owned(), taken)
            })
            .collect())
    }
}

/// What clang says of each kernel.
fn remarks(text: &str) -> Vec<(String, Taken)> {
    let mut kernels: Vec<(String, Taken)> = Vec::new();
    for line in text.lines() {
        let Some((_, remark)) = line.split_once("remark: ") else {
            continue;
        };
        let remark = remark.trim_end_matches("[-Rpass-analysis=kernel-resource-usage]");
        let Some((key, value)) = remark.rsplit_once(": ") else {
            continue;
        };
        // Some versions say the place once more.
        let key = key.rsplit(": ").next().unwrap_or(key).trim();
        let value = value.trim();
        if key == "Function Name" {
            kernels.push((value.to_owned(), Taken::default()));
            continue;
        }
        let (Some((_, taken)), number) = (kernels.last_mut(), value.parse().unwrap_or(0)) else {
            continue;
        };
        match key {
            "VGPRs" => taken.vgprs = number,
            "SGPRs" | "TotalSGPRs" => taken.sgprs = number,
            "LDS Size [bytes/block]" => taken.lds = number,
            "Occupancy [waves/SIMD]" => taken.waves = number,
            "Dynamic Stack" => taken.dynamic = value == "True",
            _ => {}
        }
    }
    kernels
}

fn hold(
    file: &Path,
    kernels: Vec<(String, Taken)>,
    predicted: &BTreeMap<String, Taken>,
    compared: &mut Compared,
) {
    for (kernel, measured) in kernels.into_iter().filter(|(_, taken)| !taken.dynamic) {
        match predicted.get(&kernel) {
            Some(&predicted) => compared.rows.push(Row {
                kernel: format!("{} {kernel}", file.display()),
                measured,
                predicted,
            }),
            None => compared.not_predicted += 1,
        }
    }
}

fn median(mut all: Vec<u64>) -> f64 {
    all.sort_unstable();
    match all.len() {
        0 => 0.0,
        count if count % 2 == 1 => all[count / 2] as f64,
        count => (all[count / 2 - 1] + all[count / 2]) as f64 / 2.0,
    }
}

fn share(rows: &[Row], right: impl Fn(&Row) -> bool) -> String {
    let right = rows.iter().filter(|row| right(row)).count();
    format!("{:.1} %", 100.0 * right as f64 / rows.len().max(1) as f64)
}

/// The table of a comparison.
fn block(title: &str, from: &str, profile: &Profile, compared: &Compared) -> String {
    let rows = &compared.rows;
    let usual = |of: fn(&Taken) -> u64| median(rows.iter().map(|row| of(&row.measured)).collect());
    let off = |of: fn(&Taken) -> u64| {
        let all = rows
            .iter()
            .map(|row| of(&row.measured).abs_diff(of(&row.predicted)));
        median(all.collect())
    };
    let flat = |of: fn(&Taken) -> u64, always: u64| {
        let all = rows.iter().map(|row| of(&row.measured).abs_diff(always));
        format!("{} (always {always})", median(all.collect()))
    };
    let (vgprs, sgprs) = (usual(|t| t.vgprs) as u64, usual(|t| t.sgprs) as u64);
    let most = u64::from(profile.max_warps_per_sm / profile.sub_partitions);
    let mut text = format!("## {title}\n\n");
    let _ = writeln!(
        text,
        "Held against {from} for {}: {} kernels of {} files.",
        profile.architecture,
        rows.len(),
        compared.files
    );
    let left_out: Vec<String> = [
        (compared.not_compiled, "files that do not compile"),
        (compared.not_found, "kernels whose source is not at hand"),
        (compared.not_predicted, "kernels without a prediction"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    if !left_out.is_empty() {
        let _ = writeln!(text, "Left out: {}.", left_out.join(", "));
    }
    text.push_str("\n| | predicted | beside it |\n| --- | ---: | ---: |\n");
    let lines = [
        (
            "VGPRs: median absolute error".to_owned(),
            off(|t| t.vgprs).to_string(),
            flat(|t| t.vgprs, vgprs),
        ),
        (
            format!("VGPRs within {NEAR}"),
            share(rows, |row| {
                row.measured.vgprs.abs_diff(row.predicted.vgprs) <= NEAR
            }),
            format!(
                "{} (always {vgprs})",
                share(rows, |row| row.measured.vgprs.abs_diff(vgprs) <= NEAR)
            ),
        ),
        (
            "occupancy right".to_owned(),
            share(rows, |row| row.measured.waves == row.predicted.waves),
            format!(
                "{} (always {most})",
                share(rows, |row| row.measured.waves == most)
            ),
        ),
        (
            "LDS exact".to_owned(),
            share(rows, |row| row.measured.lds == row.predicted.lds),
            format!("{} (always 0)", share(rows, |row| row.measured.lds == 0)),
        ),
        (
            "SGPRs: median absolute error".to_owned(),
            off(|t| t.sgprs).to_string(),
            flat(|t| t.sgprs, sgprs),
        ),
    ];
    for (what, ours, beside) in lines {
        let _ = writeln!(text, "| {what} | {ours} | {beside} |");
    }
    text
}

/// The page with a table put in, in the place of the one that it had under that title.
fn with(page: &str, title: &str, block: &str) -> String {
    let heading = format!("## {title}\n");
    let mut tables: Vec<String> = page
        .split("\n## ")
        .skip(1)
        .map(|table| format!("## {}\n", table.trim_end()))
        .collect();
    let table = format!("{}\n", block.trim_end());
    match tables.iter_mut().find(|table| table.starts_with(&heading)) {
        Some(found) => *found = table,
        None => tables.push(table),
    }
    format!("{HEAD}\n{}", tables.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_become_figures() {
        let text = "a.cl:3:1: remark: a.cl:3:0: Function Name: add [-Rpass-analysis=kernel-resource-usage]\n\
             a.cl:3:1: remark: a.cl:3:0:     SGPRs: 13 [-Rpass-analysis=kernel-resource-usage]\n\
             a.cl:3:1: remark:     VGPRs: 8 [-Rpass-analysis=kernel-resource-usage]\n\
             a.cl:3:1: remark:     VGPRs Spill: 2 [-Rpass-analysis=kernel-resource-usage]\n\
             a.cl:3:1: remark:     Occupancy [waves/SIMD]: 7 [-Rpass-analysis=kernel-resource-usage]\n\
             a.cl:3:1: remark:     LDS Size [bytes/block]: 1024 [-Rpass-analysis=kernel-resource-usage]\n";
        let taken = Taken {
            vgprs: 8,
            sgprs: 13,
            lds: 1024,
            waves: 7,
            dynamic: false,
        };
        assert_eq!(remarks(text), [("add".to_owned(), taken)]);
    }

    #[test]
    fn a_table_takes_the_place_of_its_own() {
        let once = with("", "a", "## a\n\nold\n");
        let both = with(&once, "b", "## b\n\nb\n");
        let again = with(&both, "a", "## a\n\nnew\n");
        assert!(
            again.contains("new") && again.contains("## b\n\nb\n"),
            "{again}"
        );
        assert!(!again.contains("old"), "{again}");
        assert_eq!(again.matches("# AMD").count(), 1, "{again}");
    }
}
