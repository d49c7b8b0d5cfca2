//! `cargo lab speed`: what someone waits for who types, against the targets, the floor and clangd, in one run.

mod lenses;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use warplens_latency::client::Client;
use warplens_latency::figures::{milliseconds, percentile};
use warplens_latency::floor::Floor;
use warplens_latency::kernels;
use warplens_latency::session::{CHANGED, HINTS, Session, Times};

use crate::sessions;
use xtask::repository;

/// Measure the server on recorded sessions, beside the grammar's own parse and clangd, and write docs/speed.md
#[derive(Debug, Args)]
pub struct Speed {
    /// The server
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// A clangd to compare with
    #[arg(long, value_name = "PROGRAM")]
    clangd: Option<PathBuf>,
    /// Type this many characters more and say how far memory grows by them
    #[arg(long, default_value_t = 0, value_name = "KEYSTROKES")]
    growth: usize,
    /// Write docs/speed.md
    #[arg(long)]
    write: bool,
}

/// Lines of the files that are typed into.
const LENGTHS: [usize; 2] = [1_000, 10_000];
/// Between two keys: short, but the server is done with background work.
const PAUSE: Duration = Duration::from_millis(3);
/// How long an idle server is watched.
const IDLE: Duration = Duration::from_secs(2);
/// Keystrokes of each session that clangd is asked for: it takes most of a second for one in a large file.
const THEIRS: usize = 10;
/// How long a server from which everything was closed is left alone.
const RESTED: Duration = Duration::from_secs(8);
/// How often the floor of a message is measured.
const MESSAGES: usize = 5;
/// A server may take this many times the floor.
const TIMES_THE_FLOOR: f64 = 4.0;

/// What is to be reached in a file of one length, in milliseconds and MiB.
struct Target {
    median: f64,
    rare: f64,
    start: f64,
    memory: f64,
}

const TARGETS: [Target; 2] = [
    Target {
        median: 1.0,
        rare: 5.0,
        start: 40.0,
        memory: 60.0,
    },
    Target {
        median: 4.0,
        rare: 20.0,
        start: 200.0,
        memory: 150.0,
    },
];
const HINTS_TARGET: f64 = 3.0;
const HOVER: &str = "textDocument/hover";
const HOVER_TARGET: f64 = 2.0;

/// What was measured in files of one length.
#[derive(Default)]
struct Measured {
    times: Times,
    starts: Vec<Duration>,
    memory: f64,
    parses: Vec<Duration>,
    first_parse: Vec<Duration>,
    messages: Vec<Duration>,
    clangd: Vec<Duration>,
    clangd_starts: Vec<Duration>,
    /// Clock ticks that the server computed while it was idle.
    idle: u64,
}

impl Speed {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let server = self
            .server
            .clone()
            .unwrap_or_else(|| repository::built("release", "warplens"));
        let recorded = Session::read_all(&sessions::folder())?;
        let mut page = page_head(&recorded);
        for (lines, target) in LENGTHS.into_iter().zip(&TARGETS) {
            let mut measured = Measured::default();
            for (name, session) in &recorded {
                println!("{name}, {lines} lines");
                let session = session.inside(&repository::root()).within(lines);
                measure(&server, &session, &mut measured)?;
                if let Some(clangd) = &self.clangd {
                    compare(clangd, &session, &mut measured)?;
                }
            }
            page.push_str(&section(lines, target, &measured));
        }
        println!("the kernels of tests/kernels");
        page.push_str(&lenses::section(&server)?);
        if self.growth > 0 {
            page.push_str(&growth(&server, self.growth)?);
        }
        println!("\n{page}");
        if self.write {
            std::fs::write(repository::root().join("docs/speed.md"), page)?;
            println!("wrote docs/speed.md");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn measure(server: &Path, session: &Session, measured: &mut Measured) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut client = Client::start(Command::new(server).args(["lsp", "--stdio"]))?;
    session.open(&mut client)?;
    measured.starts.push(started.elapsed());
    session.replay(&mut client, &mut measured.times, || {
        std::thread::sleep(PAUSE);
    })?;
    // What the last answer left to do is done by now.
    std::thread::sleep(Duration::from_millis(500));
    let before = client.ticks().unwrap_or(0);
    std::thread::sleep(IDLE);
    measured.idle += client.ticks().unwrap_or(0) - before;
    measured.memory = measured.memory.max(client.memory().unwrap_or(0.0));
    // The same change back and forth gives the message that the floor writes.
    let message = session.diagnostics(&mut client)?;
    client.end()?;
    let mut floor = Floor::new(&session.text)?;
    measured.first_parse.push(floor.first_parse()?);
    for (method, params) in &session.said {
        if method == CHANGED {
            measured.parses.push(floor.parse(params)?);
        }
    }
    for _ in 0..MESSAGES {
        measured.messages.push(floor.write(&message)?);
    }
    Ok(())
}

/// What clangd needs to read CUDA where no toolkit is: the words of the language, in front of every file.
const PRELUDE: &str = "\
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1); };
extern const __device__ uint3 threadIdx, blockIdx;
extern const __device__ dim3 blockDim, gridDim;
__device__ void __syncthreads();
__device__ unsigned atomicAdd(unsigned *, unsigned);
template <class T> __device__ T __shfl_down_sync(unsigned, T, int);
";

/// The same session in clangd: what it publishes after each change.
fn compare(clangd: &Path, session: &Session, measured: &mut Measured) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("prelude.cuh"), PRELUDE)?;
    let flags =
        "-xcuda\n-std=c++17\n-nocudainc\n-nocudalib\n--cuda-host-only\n-include\nprelude.cuh\n";
    std::fs::write(folder.path().join("compile_flags.txt"), flags)?;
    let file = folder.path().join("kernels.cu");
    std::fs::write(&file, &session.text)?;
    let mut session = session.named(&format!("file://{}", file.display()), "cuda");
    session.said.retain(|(method, _)| method == CHANGED);
    session.said.truncate(THEIRS);
    let started = Instant::now();
    let mut command = Command::new(clangd);
    command
        .args(["--log=error", "--background-index=false", "-j=4"])
        .current_dir(folder.path());
    let mut client = Client::start(&mut command)?;
    session.open(&mut client)?;
    measured.clangd_starts.push(started.elapsed());
    let mut times = Times::new();
    session.replay(&mut client, &mut times, || std::thread::sleep(PAUSE))?;
    measured
        .clangd
        .extend(times.remove(CHANGED).unwrap_or_default());
    client.end()?;
    Ok(())
}

/// Types and deletes a character, this many times, and says how far memory grew behind the first hundredth.
fn growth(server: &Path, keystrokes: usize) -> anyhow::Result<String> {
    let uri = "file:///growth/kernels.cu";
    let text = kernels::text(0, LENGTHS[0] / kernels::LINES);
    let mut client = Client::start(Command::new(server).args(["lsp", "--stdio"]))?;
    let document = json!({"textDocument":
        {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text}});
    client.shown("textDocument/didOpen", &document, uri, 1)?;
    let line = text.lines().position(|line| line.contains("value = in["));
    let line = line.context("a kernel with a load")?;
    let column = text.lines().nth(line).and_then(|line| line.find("in["));
    let column = column.context("a load")? + 3;
    let mut warm = 0.0;
    let first = (keystrokes / 100).max(2000).min(keystrokes);
    for keystroke in 0..keystrokes {
        // No text comes twice: a number that counts.
        let length = if keystroke == 0 { 0 } else { 9 };
        let end = json!({"line": line, "character": column + length});
        let change = json!({
            "range": {"start": {"line": line, "character": column}, "end": end},
            "text": format!("{:6} + ", keystroke),
        });
        let version = keystroke as i64 + 2;
        let params = json!({"textDocument": {"uri": uri, "version": version},
            "contentChanges": [change]});
        client.shown(CHANGED, &params, uri, version)?;
        if keystroke + 1 == first {
            warm = client.memory().unwrap_or(0.0);
        }
    }
    let last = client.memory().unwrap_or(0.0);
    client.notify(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": uri}}),
    )?;
    // The server's threads end when they had nothing to do for a while, and what they leave is found by the next thing done.
    std::thread::sleep(RESTED);
    let other = json!({"textDocument": {"uri": "file:///growth/other.cu",
        "languageId": "cuda-cpp", "version": 1, "text": kernels::text(0, 1)}});
    client.shown("textDocument/didOpen", &other, "file:///growth/other.cu", 1)?;
    let closed = client.memory().unwrap_or(0.0);
    client.end()?;
    Ok(format!(
        "\n## Memory over a long session\n\n{keystrokes} keystrokes in a file of {} lines, each of which changes what a kernel \
         does: {warm:.1} MiB after the first {first}, {last:.1} MiB after the last ({:+.1} %; target: under 5 %), {closed:.1} MiB with one small file \
         instead, {} seconds after that one was closed.\n",
        LENGTHS[0],
        (last / warm.max(1.0) - 1.0) * 100.0,
        RESTED.as_secs()
    ))
}

fn page_head(recorded: &[(String, Session)]) -> String {
    let keystrokes: usize = recorded.iter().map(|(_, one)| one.keystrokes()).sum();
    let names: Vec<String> = recorded
        .iter()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    format!(
        "# How fast the server answers\n\n\
         Written by `cargo lab speed --clangd PATH --write`. The sessions of `tests/sessions` ({}; {keystrokes} keystrokes) \
         are replayed in files of 1,000 and 10,000 lines: the kernels that they were recorded in stand in the middle of \
         others, 20 lines each. Times go from writing a message to reading the last byte of its answer, over the pipes of a \
         process, {} ms between an answer and the next key.\n\n\
         *Floor* is what no server stays under that parses and publishes: tree-sitter's own parse of the same edit, and the \
         same message as JSON through a pipe. clangd is given the first {THEIRS} keystrokes of each session, and no CUDA \
         toolkit but a few lines that declare the language's words; it waits a moment before it looks at an edit, on purpose, and that is in its times. Times are those of one \
         machine while other work may run on it; ratios travel better.\n\n\
         Machine: {}.\n",
        names.join(", "),
        PAUSE.as_millis(),
        machine()
    )
}

/// Cores and the processor's model.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |line| {
            line.trim_start_matches(['\t', ' ', ':'])
        });
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores of {model}, load average {load} when the page was begun")
}

fn section(lines: usize, target: &Target, measured: &Measured) -> String {
    let of = |times: &[Duration], percent| percentile(times, percent).map(milliseconds);
    let answers = |method: &str, percent| of(measured.times.get(method)?, percent);
    let mut text = format!(
        "\n## {lines} lines\n\n| what | measured | target | |\n| --- | ---: | ---: | --- |\n"
    );
    let mut row = |what: &str, figure: Option<f64>, unit: &str, target: Option<f64>| {
        let Some(figure) = figure else { return };
        let limit = target.map_or(String::new(), |target| format!("{target:.0} {unit}"));
        let verdict = match target {
            Some(target) if figure > target => "over",
            Some(_) => "met",
            None => "",
        };
        let _ = writeln!(
            text,
            "| {what} | {figure:.2} {unit} | {limit} | {verdict} |"
        );
    };
    let median = answers(CHANGED, 50);
    row(
        "change to diagnostics, median",
        median,
        "ms",
        Some(target.median),
    );
    row(
        "the same, 99th percentile",
        answers(CHANGED, 99),
        "ms",
        Some(target.rare),
    );
    row(
        "hints of the visible lines, median",
        answers(HINTS, 50),
        "ms",
        Some(HINTS_TARGET),
    );
    row(
        "hover, median",
        answers(HOVER, 50),
        "ms",
        Some(HOVER_TARGET),
    );
    row(
        "start to first diagnostics, median",
        of(&measured.starts, 50),
        "ms",
        Some(target.start),
    );
    row(
        "resident memory",
        Some(measured.memory),
        "MiB",
        Some(target.memory),
    );
    row(
        "processor ticks while idle",
        Some(measured.idle as f64),
        "",
        Some(0.0),
    );
    let parse = of(&measured.parses, 50);
    let message = of(&measured.messages, 50);
    row("floor: parse of the same edit, median", parse, "ms", None);
    row("floor: the same message, median", message, "ms", None);
    let first = of(&measured.first_parse, 50);
    row("floor of the start: first parse, median", first, "ms", None);
    if let (Some(median), Some(parse), Some(message)) = (median, parse, message) {
        let ratio = median / (parse + message);
        row(
            "change over the floor",
            Some(ratio),
            "times",
            Some(TIMES_THE_FLOOR),
        );
    }
    let theirs = of(&measured.clangd, 50);
    row("clangd: change to diagnostics, median", theirs, "ms", None);
    row(
        "clangd: the same, 99th percentile",
        of(&measured.clangd, 99),
        "ms",
        None,
    );
    row(
        "clangd: start to first diagnostics, median",
        of(&measured.clangd_starts, 50),
        "ms",
        None,
    );
    if let (Some(ours), Some(theirs)) = (median, theirs) {
        row(
            "clangd over warplens, change to diagnostics",
            Some(theirs / ours),
            "times",
            None,
        );
    }
    text
}
