//! What is asked of a program about a folder, and its answer as JSON.
//!
//! In: a folder. Out: runs, each one command with all it reads. A run's answer is the same for each program that says the
//! same: it holds the document, the status and what is on standard error, without the program's version and without
//! times of running.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use xtask::process::captured;

use crate::corpus::{sources, walk};
use crate::count::Definition;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Command {
    /// Findings of a file alone, and of a folder, which files share
    Check,
    /// Every figure of every model
    Estimate,
    /// Made-up configurations of each kernel
    Sweep,
    /// The page, as HTML and as Markdown
    Report,
    /// A folder against a copy in which one kernel differs
    Diff,
}

impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        formatter.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A program, and what it says of its version.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    version: String,
}

impl Program {
    /// Asks it for its version.
    pub fn new(path: &Path) -> anyhow::Result<Program> {
        let path = std::path::absolute(path)?;
        let asked = captured(
            process::Command::new(&path).arg("--version"),
            Duration::from_secs(20),
        )?;
        if !asked.success {
            bail!("{} --version: {}", path.display(), asked.errors.trim());
        }
        let version = asked.out.lines().next().unwrap_or_default().to_owned();
        Ok(Program { path, version })
    }

    /// Its answer; none where it did not end in time.
    fn ask(&self, ask: &[&std::ffi::OsStr], limit: Duration) -> anyhow::Result<Option<Answer>> {
        let mut command = process::Command::new(&self.path);
        command.args(ask).env("COLUMNS", "100");
        let done = captured(&mut command, limit)?;
        // What did not end says so in the place of what it wrote.
        if !done.success && done.out.is_empty() && done.errors.starts_with("ended after ") {
            return Ok(None);
        }
        Ok(Some(Answer {
            success: done.success,
            out: self.unversioned(&done.out),
            errors: self.unversioned(&done.errors),
        }))
    }

    fn unversioned(&self, text: &str) -> String {
        if self.version.is_empty() {
            return text.to_owned();
        }
        text.replace(&self.version, "warplens VERSION")
    }
}

struct Answer {
    success: bool,
    out: String,
    errors: String,
}

/// One question.
#[derive(Debug)]
pub struct Run {
    pub command: Command,
    /// The file or folder that is asked about.
    pub input: PathBuf,
    /// With `diff`, the copy in which one kernel differs.
    copy: Option<PathBuf>,
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.command, self.input.display())
    }
}

/// Figures that say how long something took.
const TIMES: [&str; 1] = ["seconds"];

/// Block shapes that a kernel is swept over, and one that no GPU launches.
const BLOCKS: [[u32; 3]; 6] = [
    [32, 1, 1],
    [128, 1, 1],
    [256, 1, 1],
    [16, 16, 1],
    [32, 8, 1],
    [2048, 1, 1],
];

impl Run {
    /// How many configurations of a sweep were given a time: a comparison of refusals compares little.
    pub fn timed(&self, output: &Value) -> usize {
        let kernels = output.as_array().into_iter().flatten();
        let lines = kernels.filter_map(|kernel| kernel["swept"]["out"].as_array());
        let swept = self.command == Command::Sweep;
        lines
            .flatten()
            .filter(|line| swept && line["time_ms"].is_number())
            .count()
    }

    /// What a program says; none where it did not end within the limit.
    pub fn output(&self, program: &Program, limit: Duration) -> anyhow::Result<Option<Value>> {
        let input = self.input.as_os_str();
        let ask = |words: &[&str], paths: &[&std::ffi::OsStr]| {
            let words = words.iter().map(std::ffi::OsStr::new);
            let ask: Vec<&std::ffi::OsStr> = words.chain(paths.iter().copied()).collect();
            program.ask(&ask, limit)
        };
        let answer = match (self.command, &self.copy) {
            (Command::Check, _) => ask(
                &["check", "--format", "json", "--stats", "--losses"],
                &[input],
            )?,
            (Command::Estimate, _) => ask(
                &["estimate", "--format", "json", "--model", "all"],
                &[input],
            )?,
            (Command::Diff, Some(copy)) => {
                ask(&["diff", "--format", "json"], &[input, copy.as_os_str()])?
            }
            (Command::Diff, None) => bail!("a diff without a copy"),
            (Command::Sweep, _) => return self.swept(program, limit),
            (Command::Report, _) => return self.reported(program, limit),
        };
        Ok(answer.map(|answer| answer.document()))
    }

    /// Lines of all kernels, by their names.
    fn swept(&self, program: &Program, limit: Duration) -> anyhow::Result<Option<Value>> {
        let input = self.input.as_os_str();
        let estimate = ["estimate", "--format", "json"].map(std::ffi::OsStr::new);
        let estimate: Vec<_> = estimate.into_iter().chain([input]).collect();
        let Some(known) = program.ask(&estimate, limit)? else {
            return Ok(None);
        };
        let scratch = tempfile::tempdir()?;
        let list = scratch.path().join("configurations.jsonl");
        let mut lines = serde_json::Map::new();
        let document = known.document();
        for kernel in document["out"]["results"].as_array().into_iter().flatten() {
            let name = kernel["kernel"].as_str().unwrap_or_default();
            if lines.contains_key(name) {
                continue;
            }
            std::fs::write(&list, configurations(kernel))?;
            let ask: Vec<&std::ffi::OsStr> = vec![
                "sweep".as_ref(),
                input,
                "--kernel".as_ref(),
                name.as_ref(),
                "--configs".as_ref(),
                list.as_os_str(),
            ];
            let Some(answer) = program.ask(&ask, limit)? else {
                return Ok(None);
            };
            let answer = answer.without(scratch.path());
            lines.insert(name.to_owned(), answer.lines());
        }
        // The kernels are no places of a document: theirs would be groups of their own.
        let kernels = lines
            .into_iter()
            .map(|(name, swept)| json!({"kernel": name, "swept": swept}));
        Ok(Some(Value::Array(kernels.collect())))
    }

    fn reported(&self, program: &Program, limit: Duration) -> anyhow::Result<Option<Value>> {
        let scratch = tempfile::tempdir()?;
        let mut pages = serde_json::Map::new();
        for name in ["page.html", "page.md"] {
            let page = scratch.path().join(name);
            let ask = [
                "report".as_ref(),
                self.input.as_os_str(),
                "-o".as_ref(),
                page.as_os_str(),
            ];
            let Some(answer) = program.ask(&ask, limit)? else {
                return Ok(None);
            };
            let answer = answer.without(scratch.path());
            let text = std::fs::read_to_string(&page).unwrap_or_default();
            let text = program.unversioned(&text);
            let mut document = answer.lines();
            document["page"] = text.lines().collect();
            pages.insert(name.to_owned(), document);
        }
        Ok(Some(Value::Object(pages)))
    }
}

impl Answer {
    /// Where our own files of one run stand is no part of it.
    fn without(self, folder: &Path) -> Answer {
        let folder = folder.display().to_string();
        Answer {
            success: self.success,
            out: self.out.replace(&folder, ""),
            errors: self.errors.replace(&folder, ""),
        }
    }

    /// What it wrote, read as one document.
    fn document(&self) -> Value {
        let out = serde_json::from_str(&self.out);
        self.with(out.unwrap_or_else(|_| self.out.lines().collect()))
    }

    /// What it wrote, each line a document or a text.
    fn lines(&self) -> Value {
        let lines = self.out.lines();
        let documents: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.into()))
            .collect();
        self.with(documents.into())
    }

    fn with(&self, mut out: Value) -> Value {
        untimed(&mut out);
        let errors: Value = self.errors.lines().collect();
        json!({"success": self.success, "out": out, "errors": errors})
    }
}

/// Takes the times of running out.
fn untimed(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|key, value| !(TIMES.contains(&key.as_str()) && value.is_number()));
            object.values_mut().for_each(untimed);
        }
        Value::Array(array) => array.iter_mut().for_each(untimed),
        _ => {}
    }
}

/// A grid, and a number for each parameter that a time is a formula of.
const GRID: [u32; 3] = [64, 1, 1];
const SIZE: u32 = 4096;

/// Lines of configurations of a kernel as it was estimated: with the grid that it has, where it has one, and with a grid and
/// sizes that are made up, so that each model gives a time.
fn configurations(kernel: &Value) -> String {
    let grid = &kernel["launch"]["grid"];
    let unknowns = kernel["estimates"]["auto"]["unknowns"].as_array();
    let names = unknowns.into_iter().flatten().filter_map(Value::as_str);
    let given: serde_json::Map<String, Value> = names
        .filter(|name| !name.contains('.'))
        .map(|name| (name.to_owned(), SIZE.into()))
        .collect();
    let of_source = BLOCKS
        .iter()
        .map(|block| json!({"grid": grid, "block": block}));
    let made_up = BLOCKS
        .iter()
        .map(|block| json!({"grid": GRID, "block": block, "args": given}));
    let lines = of_source.chain(made_up).enumerate().map(|(id, mut line)| {
        line["id"] = id.into();
        format!("{line}\n")
    });
    lines.collect()
}

/// What is asked about a folder: about each file with kernels, about the folder, and about the folder against a copy.
/// What has to be copied goes into `copies`, which may not be there yet.
pub fn of(folder: &Path, sample: Option<usize>, copies: &Path) -> anyhow::Result<Vec<Run>> {
    let mut files = sources(folder)?;
    let all = files.len();
    if let Some(most) = sample
        && most < all
    {
        let chosen = (0..most).map(|number| number * all / most);
        let chosen: Vec<_> = chosen.map(|at| files[at].clone()).collect();
        files = chosen;
    }
    let run = |command, input: &Path, copy: Option<&Path>| Run {
        command,
        input: input.to_owned(),
        copy: copy.map(Path::to_owned),
    };
    let mut runs = Vec::new();
    let Some((edited, definitions)) = files.get(files.len() / 2) else {
        bail!("no file with kernels under {}", folder.display());
    };
    // The longest first. Of a sample the folder holds only what was sampled, and what the others include.
    let base = copies.join("base");
    let head = copies.join("head");
    let kept: Vec<&Path> = files.iter().map(|(path, _)| path.as_path()).collect();
    for copy in [&base, &head] {
        copied(folder, copy, &kept)?;
    }
    let inside = edited.strip_prefix(folder)?;
    edit(&head.join(inside), definitions)?;
    runs.push(run(Command::Diff, &base, Some(&head)));
    runs.push(run(Command::Check, &base, None));
    for (file, _) in &files {
        let asked = [
            Command::Check,
            Command::Estimate,
            Command::Report,
            Command::Sweep,
        ];
        runs.extend(asked.map(|command| run(command, file, None)));
    }
    Ok(runs)
}

/// Copies the sources of a folder, those that hold no kernels, and of the others these.
fn copied(folder: &Path, copy: &Path, kept: &[&Path]) -> anyhow::Result<()> {
    let mut found = Vec::new();
    walk(folder, &mut found)?;
    let kernels: std::collections::BTreeSet<PathBuf> =
        sources(folder)?.into_iter().map(|(path, _)| path).collect();
    for (path, _) in found {
        if kernels.contains(&path) && !kept.contains(&path.as_path()) {
            continue;
        }
        let to = copy.join(path.strip_prefix(folder)?);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::copy(&path, &to).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    Ok(())
}

/// Has the first kernel of a file wait at one more barrier.
fn edit(file: &Path, definitions: &[Definition]) -> anyhow::Result<()> {
    let text = String::from_utf8_lossy(&std::fs::read(file)?).into_owned();
    let line = definitions.first().map_or(1, |kernel| kernel.line);
    let before: usize = text
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let Some(brace) = text[before..].find('{') else {
        bail!("{}: no body behind line {line}", file.display());
    };
    let extension = file.extension().and_then(|extension| extension.to_str());
    let barrier = match extension {
        Some("cl" | "clh" | "opencl") => " barrier(CLK_LOCAL_MEM_FENCE);",
        _ => " __syncthreads();",
    };
    let at = before + brace + 1;
    let edited = format!("{}{barrier}{}", &text[..at], &text[at..]);
    std::fs::write(file, edited)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_running_are_no_part_of_an_answer() {
        let answer = Answer {
            success: true,
            out: r#"{"stats": {"seconds": 0.5, "files": 1}, "array": [{"seconds": "text"}]}"#
                .to_owned(),
            errors: "one\ntwo\n".to_owned(),
        };
        let expected = json!({"stats": {"files": 1}, "array": [{"seconds": "text"}]});
        assert_eq!(
            answer.document(),
            json!({"success": true, "out": expected, "errors": ["one", "two"]})
        );
    }

    #[test]
    fn a_folder_is_asked_about_file_by_file_and_against_a_copy() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("sources");
        std::fs::create_dir(&folder).unwrap();
        let kernel =
            |name: &str| format!("// one\n__global__ void {name}(int *a) {{ a[0] = 1; }}\n");
        for name in ["a", "b", "c", "d"] {
            std::fs::write(folder.join(format!("{name}.cu")), kernel(name)).unwrap();
        }
        std::fs::write(folder.join("common.h"), "#define ONE 1\n").unwrap();
        let copies = scratch.path().join("copies");
        let runs = of(&folder, Some(2), &copies).unwrap();
        assert_eq!(runs.len(), 2 + 2 * 4);
        let files = |copy: &str| {
            let entries = std::fs::read_dir(copies.join(copy)).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(files("base"), ["a.cu", "c.cu", "common.h"]);
        let read =
            |copy: &str, name: &str| std::fs::read_to_string(copies.join(copy).join(name)).unwrap();
        assert_eq!(read("base", "a.cu"), read("head", "a.cu"));
        assert!(read("head", "c.cu").contains("void c(int *a) { __syncthreads(); a[0]"));
    }

    #[test]
    fn a_kernel_is_swept_with_its_own_grid_and_with_sizes_that_are_made_up() {
        let kernel = json!({
            "launch": {"grid": [4, 1, 1]},
            "estimates": {"auto": {"unknowns": ["n", "gridDim.y"]}},
        });
        let text = configurations(&kernel);
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2 * BLOCKS.len());
        assert_eq!(
            lines[0],
            json!({"id": 0, "grid": [4, 1, 1], "block": [32, 1, 1]})
        );
        let made_up = json!({"id": 6, "grid": GRID, "block": [32, 1, 1], "args": {"n": SIZE}});
        assert_eq!(lines[BLOCKS.len()], made_up);
    }
}
