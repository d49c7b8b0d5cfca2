//! `cargo lab compiled`: the predicted instructions and registers held against what nvcc makes of the same sources.

mod figures;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use warplens_codegen::assembly::Name;

use crate::corpus;
use crate::machine_code::{Compiler, Function, Scratch, needed};
use figures::{Counts, Row};
use xtask::{process, repository};

/// No file may take longer, to compile or to predict.
const LIMIT: Duration = Duration::from_mins(1);

/// Counts of memory instructions and barriers of our own kernels that may differ from nvcc's: that another nvcc
/// writes a loop out further is no defect.
const MAY_DIFFER: usize = 3;

/// The registers' median absolute error on our own kernels may be so large.
const REGISTERS_ERROR: f64 = 4.0;

/// Our own kernels.
const OWN: &str = "tests/kernels";

/// Hold the predicted instructions and registers against nvcc's: docs/accuracy/compiled.md
///
/// Compiles every .cu of the folders, reads what became of each kernel, and asks warplens for the same. Files that
/// do not compile are counted and left out. Needs no GPU.
#[derive(Debug, Args)]
pub struct Compiled {
    /// The folders
    #[arg(value_name = "DIR", default_value = OWN)]
    folders: Vec<PathBuf>,
    /// The nvcc; without it $NVCC, the PATH's, or the one that tests/kernels/compile.sh installed
    #[arg(long, value_name = "PATH")]
    nvcc: Option<PathBuf>,
    /// The target
    #[arg(long, value_name = "ARCH", default_value = "sm_80")]
    arch: String,
    /// The profile to predict for: one of that architecture
    #[arg(long, value_name = "ID", default_value = "a100-sxm4-40gb")]
    gpu: String,
    /// Compile for this many registers per thread at most: what spills, and what is said to
    #[arg(long = "maxrregcount", value_name = "N", conflicts_with = "csv")]
    max_registers: Option<u32>,
    /// Search a folder for `#include "…"` (repeatable)
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// This warplens, instead of building one
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// Take what was measured from a table instead; its files begin in the one folder that is given
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The page that gets the table
    #[arg(long, value_name = "FILE", default_value = "docs/accuracy/compiled.md")]
    out: PathBuf,
    /// Write nothing; fail where our own kernels' counts or registers are further off than they may be
    #[arg(long)]
    check: bool,
    /// Also a line for each kernel
    #[arg(long)]
    kernels: bool,
}

/// What was compared, and what was not.
#[derive(Debug, Default)]
struct Compared {
    rows: Vec<Row>,
    files: usize,
    /// Files that nvcc does not compile.
    not_compiled: usize,
    /// Instances of templates and overloads of which it is not plain which prediction is theirs.
    left_out: usize,
    /// Kernels without a prediction.
    not_predicted: usize,
    /// Kernels whose source was not understood in full, where only those are asked for.
    not_clean: usize,
}

/// What is predicted of a kernel.
#[derive(Debug, Clone, PartialEq)]
struct Prediction {
    kernel: String,
    line: u64,
    /// Template arguments.
    arguments: Vec<String>,
    clean: bool,
    counts: Counts,
}

impl Compiled {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let bin = match &self.bin {
            Some(bin) => std::path::absolute(bin)?,
            None => corpus::build()?,
        };
        let (title, source, compared) = match &self.csv {
            Some(csv) => self.against_table(&bin, csv)?,
            None => self.against_compiler(&bin)?,
        };
        if compared.rows.is_empty() {
            bail!("no kernel to compare");
        }
        let own = self.csv.is_none() && title == OWN;
        let block = page::block(&title, &source, &compared, own);
        println!("{block}");
        if self.kernels && !own {
            println!("{}", page::kernels(&compared.rows));
        }
        if self.check {
            return Ok(verdict(&compared.rows));
        }
        let path = repository::root().join(&self.out);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, page::with(&before, &title, &block))
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
        Ok(ExitCode::SUCCESS)
    }

    /// The title, what the figures are held against, and the comparison with what nvcc makes of the folders.
    fn against_compiler(&self, bin: &Path) -> anyhow::Result<(String, String, Compared)> {
        let compiler = Compiler::of(self.nvcc.as_deref(), &self.arch)?;
        let version = compiler.version()?;
        let mut files = Vec::new();
        let mut titles = Vec::new();
        for folder in &self.folders {
            // As the default is: under the top of the checkout, wherever this is called.
            let folder = if folder.is_dir() {
                std::path::absolute(folder)?
            } else {
                repository::root().join(folder)
            };
            titles.push(shown(&folder));
            let mut found = Vec::new();
            corpus::walk(&folder, &mut found)?;
            found.retain(|(path, _)| path.extension().is_some_and(|found| found == "cu"));
            found.retain(|(path, _)| needed(path).is_none_or(|needed| needed == self.arch));
            found.sort();
            files.extend(found.into_iter().map(|(path, _)| (folder.clone(), path)));
        }
        let scratch = Scratch::new("compiled")?;
        let compared = Mutex::new(Compared::default());
        each(files.into_iter().enumerate(), |(number, (folder, path))| {
            let mut options = Vec::new();
            let beside = [path.parent(), path.parent().and_then(Path::parent)];
            for include in self
                .include
                .iter()
                .map(PathBuf::as_path)
                .chain(beside.into_iter().flatten())
                .chain([&*folder])
            {
                options.push(format!("-I{}", include.display()));
            }
            let read = match self.max_registers {
                Some(most) => {
                    options.push(format!("-maxrregcount={most}"));
                    bounded(&path, most, &scratch.file(&number.to_string()))?
                }
                None => path.clone(),
            };
            let binary = scratch.file(&format!("{number}.cubin"));
            let kernels = compiler.kernels(&path, &options, &binary, LIMIT)?;
            let _ = std::fs::remove_file(&binary);
            let Ok(kernels) = kernels else {
                let mut compared = lock(&compared);
                compared.files += 1;
                compared.not_compiled += 1;
                return Ok(());
            };
            let predictions = if kernels.is_empty() {
                Vec::new()
            } else {
                let includes = options.iter().filter(|option| option.starts_with("-I"));
                let includes: Vec<&str> = match self.max_registers {
                    Some(_) => includes.map(String::as_str).collect(),
                    None => Vec::new(),
                };
                self.predict(bin, &read, &includes)?
            };
            let mut compared = lock(&compared);
            compared.files += 1;
            match_kernels(&shown(&path), &kernels, &predictions, &mut compared);
            Ok(())
        })?;
        let mut compared = compared.into_inner().unwrap_or_default();
        compared
            .rows
            .sort_by(|a, b| (&a.file, &a.kernel).cmp(&(&b.file, &b.kernel)));
        let source = format!("nvcc {version} for {}", self.arch);
        let mut title = titles.join(", ");
        if let Some(most) = self.max_registers {
            let _ = write!(title, " with -maxrregcount {most}");
        }
        Ok((title, source, compared))
    }

    /// The same with what a table says, for its kernels that are no templates and that are understood in full.
    fn against_table(
        &self,
        bin: &Path,
        table: &Path,
    ) -> anyhow::Result<(String, String, Compared)> {
        let [root] = &self.folders[..] else {
            bail!("--csv takes the one folder in which its files begin");
        };
        let mut reader = csv::Reader::from_path(table)
            .with_context(|| format!("cannot read {}", table.display()))?;
        let mut files: BTreeMap<PathBuf, Vec<BTreeMap<String, String>>> = BTreeMap::new();
        let mut said = BTreeSet::new();
        let mut title = String::new();
        for row in reader.deserialize::<BTreeMap<String, String>>() {
            let row = row?;
            let text = |name: &str| row.get(name).map_or("", String::as_str);
            if text("arch") != self.arch || text("template") != "0" {
                continue;
            }
            said.insert(text("compiler").replace('-', " "));
            text("corpus").clone_into(&mut title);
            // The first folder is the corpus, which lies in the one given.
            let path: PathBuf = Path::new(text("file")).components().skip(1).collect();
            files.entry(path).or_default().push(row);
        }
        let compared = Mutex::new(Compared::default());
        each(files.into_iter(), |(path, rows)| {
            let predictions = self.predict(bin, &root.join(&path), &[])?;
            let mut compared = lock(&compared);
            compared.files += 1;
            for row in &rows {
                let name = row.get("kernel").map_or("", String::as_str);
                let line = row.get("line").and_then(|line| line.parse::<u64>().ok());
                let of_name = |found: &&Prediction| found.kernel == name;
                let named = distinct(predictions.iter().filter(of_name));
                let placed = distinct(
                    predictions
                        .iter()
                        .filter(of_name)
                        .filter(|found| Some(found.line) == line),
                );
                match (&named[..], &placed[..]) {
                    ([], _) => compared.not_predicted += 1,
                    ([found], _) | (_, [found]) if !found.clean => compared.not_clean += 1,
                    ([found], _) | (_, [found]) => compared.rows.push(Row {
                        file: path.display().to_string(),
                        kernel: name.to_owned(),
                        measured: Counts::of_table(row)?,
                        predicted: found.counts,
                    }),
                    _ => compared.left_out += 1,
                }
            }
            Ok(())
        })?;
        let compared = compared.into_inner().unwrap_or_default();
        let said: Vec<String> = said.into_iter().collect();
        let source = format!("{} for {}", said.join(", "), self.arch);
        Ok((title, source, compared))
    }

    /// What is predicted of a file's kernels.
    fn predict(
        &self,
        bin: &Path,
        path: &Path,
        options: &[&str],
    ) -> anyhow::Result<Vec<Prediction>> {
        let mut estimate = Command::new(bin);
        estimate.args(["estimate", "--format", "json", "--gpu", &self.gpu]);
        for include in &self.include {
            estimate.arg("-I").arg(include);
        }
        estimate.args(options);
        let told = process::captured(estimate.arg(path), LIMIT)?;
        let Ok(document) = serde_json::from_str::<Value>(&told.out) else {
            eprintln!("{}: no prediction: {}", path.display(), told.errors.trim());
            return Ok(Vec::new());
        };
        let results = document["results"].as_array().into_iter().flatten();
        Ok(results.map(prediction).collect())
    }
}

/// A copy of a file in a folder of its own, beside a compile command that bounds the registers.
fn bounded(path: &Path, most: u32, folder: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default();
    let copy = folder.join(name);
    std::fs::copy(path, &copy)?;
    let commands = serde_json::json!([{
        "directory": folder,
        "file": name.to_string_lossy(),
        "arguments": ["nvcc", format!("-maxrregcount={most}"), "-c", name.to_string_lossy()],
    }]);
    std::fs::write(folder.join("compile_commands.json"), commands.to_string())?;
    Ok(copy)
}

fn prediction(result: &Value) -> Prediction {
    let arguments = result["template_args"].as_object();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    Prediction {
        kernel: result["kernel"].as_str().unwrap_or_default().to_owned(),
        line: result["line"].as_u64().unwrap_or(0),
        arguments: arguments
            .map(|all| all.values().map(text).collect())
            .unwrap_or_default(),
        clean: result["not_understood"]
            .as_array()
            .is_none_or(Vec::is_empty),
        counts: Counts::of_prediction(result),
    }
}

/// Predictions that differ: a kernel has one for each of its launches.
fn distinct<'a>(predictions: impl Iterator<Item = &'a Prediction>) -> Vec<&'a Prediction> {
    let mut found: Vec<&Prediction> = Vec::new();
    for prediction in predictions {
        if !found.iter().any(|known| {
            (&known.arguments, known.counts) == (&prediction.arguments, prediction.counts)
        }) {
            found.push(prediction);
        }
    }
    found
}

/// Joins a file's compiled kernels with what is predicted of them.
fn match_kernels(
    file: &str,
    kernels: &BTreeMap<String, Function>,
    predictions: &[Prediction],
    compared: &mut Compared,
) {
    let compiled: Vec<(Name, &Function)> = kernels
        .iter()
        .map(|(symbol, function)| (Name::of_mangled(symbol), function))
        .collect();
    for (name, function) in &compiled {
        let candidates = distinct(
            predictions
                .iter()
                .filter(|found| found.kernel == name.plain),
        );
        if candidates.is_empty() {
            compared.not_predicted += 1;
            continue;
        }
        let others = compiled
            .iter()
            .filter(|(other, _)| other.plain == name.plain);
        let found = if others.clone().count() == 1 && candidates.len() == 1 {
            Some(candidates[0])
        } else {
            // The instance whose arguments are the prediction's, where no other has the same in another order.
            let same = |a: &[String], b: &[String]| sorted(a) == sorted(b);
            let arguments = &name.template_arguments;
            let fitting: Vec<_> = candidates
                .iter()
                .filter(|found| same(&found.arguments, arguments))
                .collect();
            let alike = others
                .filter(|(other, _)| same(&other.template_arguments, arguments))
                .count();
            match fitting[..] {
                [found] if alike == 1 && !arguments.is_empty() => Some(*found),
                _ => None,
            }
        };
        match found {
            Some(found) => compared.rows.push(Row {
                file: file.to_owned(),
                kernel: instance(name),
                measured: Counts::of_function(function),
                predicted: found.counts,
            }),
            None => compared.left_out += 1,
        }
    }
}

/// A kernel with its template arguments, as it is shown.
fn instance(name: &Name) -> String {
    match &name.template_arguments[..] {
        [] => name.plain.clone(),
        all => format!("{}<{}>", name.plain, all.join(", ")),
    }
}

fn sorted(arguments: &[String]) -> Vec<&String> {
    let mut sorted: Vec<&String> = arguments.iter().collect();
    sorted.sort();
    sorted
}

/// Whether our own kernels are as close as they may be.
fn verdict(rows: &[Row]) -> ExitCode {
    let differing: Vec<String> = rows.iter().flat_map(Row::differing).collect();
    let error = figures::registers_error(rows);
    println!(
        "memory and barrier counts that differ: {} ({MAY_DIFFER} may)",
        differing.len()
    );
    for line in &differing {
        println!("  {line}");
    }
    println!("registers: median absolute error {error} (at most {REGISTERS_ERROR})");
    let failed = usize::from(differing.len() > MAY_DIFFER) + usize::from(error > REGISTERS_ERROR);
    println!("{} passed, {failed} failed", 2 - failed);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A path as it is in the checkout; of another folder, its name.
fn shown(path: &Path) -> String {
    path.strip_prefix(repository::root()).map_or_else(
        |_| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        },
        |path| path.display().to_string(),
    )
}

/// Does something to each, as many at a time as the machine has processors.
fn each<T: Send>(
    all: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let queue = Mutex::new(all);
    let failed = Mutex::new(None);
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = lock(&queue).next();
                    let Some(next) = next else { break };
                    if let Err(error) = work(next) {
                        lock(&failed).get_or_insert(error);
                        break;
                    }
                }
            });
        }
    });
    match failed.into_inner().unwrap_or_default() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(kernel: &str, arguments: &[&str], registers: u64) -> Prediction {
        Prediction {
            kernel: kernel.to_owned(),
            line: 1,
            arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
            clean: true,
            counts: Counts {
                registers,
                ..Counts::default()
            },
        }
    }

    fn compare(symbols: &[&str], predictions: &[Prediction]) -> (Vec<(String, u64)>, usize, usize) {
        let kernels = symbols
            .iter()
            .map(|&symbol| (symbol.to_owned(), Function::default()))
            .collect();
        let mut compared = Compared::default();
        match_kernels("a.cu", &kernels, predictions, &mut compared);
        let rows = compared.rows.into_iter();
        (
            rows.map(|row| (row.kernel, row.predicted.registers))
                .collect(),
            compared.left_out,
            compared.not_predicted,
        )
    }

    #[test]
    fn an_instance_is_matched_by_its_arguments() {
        let symbols = [
            "_Z18vector_add_stridedILi1EEvPKfS1_Pfi",
            "_Z18vector_add_stridedILi32EEvPKfS1_Pfi",
        ];
        let predictions = [
            prediction("vector_add_strided", &["1"], 10),
            prediction("vector_add_strided", &["32"], 12),
            // Another launch of the same.
            prediction("vector_add_strided", &["32"], 12),
        ];
        let (rows, left_out, missing) = compare(&symbols, &predictions);
        assert_eq!(
            rows,
            [
                ("vector_add_strided<1>".to_owned(), 10),
                ("vector_add_strided<32>".to_owned(), 12)
            ]
        );
        assert_eq!((left_out, missing), (0, 0));
    }

    #[test]
    fn what_could_be_another_is_left_out() {
        // One prediction cannot be both instances', one of two predictions belongs to neither.
        let symbols = ["_Z1kIfEvPT_", "_Z1kIdEvPT_", "_Z5otherPf"];
        let assumed = [prediction("k", &["int"], 10)];
        assert_eq!(compare(&symbols, &assumed), (Vec::new(), 2, 1));
        let two = [prediction("other", &[], 10), prediction("other", &[], 12)];
        assert_eq!(compare(&["_Z5otherPf"], &two), (Vec::new(), 1, 0));
        // One of each is one pair, whatever the arguments are called.
        let (rows, ..) = compare(&["_Z1kI3OneEvT_"], &[prediction("k", &["One"], 9)]);
        assert_eq!(rows, [("k<One>".to_owned(), 9)]);
    }
}
