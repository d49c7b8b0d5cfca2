//! `cargo lab keystrokes DIR…`: what someone waits for who types into a kernel of other people's code.
//!
//! In: a built `warplens` and folders of sources, each a workspace of its own. Some files with kernels are chosen of each; in each a
//! statement is typed, character by character, behind a statement of a kernel. Out: the time from each character to the
//! diagnostics of the kernel at the cursor, and from opening the file to its diagnostics. Beside the time that passed there is the
//! processor time that the server took meanwhile, which others that use the machine leave as it is.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};
use warplens_latency::client::Client;
use warplens_latency::figures::{milliseconds, percentile};

use crate::corpus::sources;
use crate::history::session::uri;
use crate::history::typing::{Random, floor, position};
use xtask::repository;

/// Type a statement into kernels of these folders and measure how long each character takes
#[derive(Debug, Args)]
pub struct Keystrokes {
    /// The folders, each a workspace
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The server
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// At most this many files of each folder
    #[arg(long, value_name = "N", default_value_t = 10)]
    files: usize,
    /// Another choice of files and places
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Only files whose path holds this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Type into `main` instead of a kernel, in files that have one
    #[arg(long)]
    host: bool,
    /// Fail where a target is missed
    #[arg(long)]
    check: bool,
}

/// Between two keys: the server is done with what an answer leaves to do.
const PAUSE: Duration = Duration::from_millis(5);
/// Larger files are generated.
const LARGEST: usize = 1 << 20;

/// What is to be reached, in milliseconds, with the percentile.
const KEYSTROKE: [(usize, f64); 3] = [(50, 3.0), (99, 16.0), (100, 50.0)];
const OPEN: [(usize, f64); 2] = [(95, 100.0), (100, 500.0)];

/// Times of one kind.
#[derive(Debug, Default, Clone)]
struct Times {
    /// That passed.
    waited: Vec<Duration>,
    /// Of processors.
    computed: Vec<Duration>,
}

impl Times {
    fn add(&mut self, other: &Times) {
        self.waited.extend(&other.waited);
        self.computed.extend(&other.computed);
    }

    fn line(&self) -> String {
        let of = |times: &[Duration]| {
            let at = |percent| percentile(times, percent).map_or(0.0, milliseconds);
            format!(
                "{:8.1} {:8.1} {:8.1} {:8.1}",
                at(50),
                at(95),
                at(99),
                at(100)
            )
        };
        format!("{} |{}", of(&self.waited), of(&self.computed))
    }

    /// The targets that the processor time misses.
    fn misses(&self, name: &str, targets: &[(usize, f64)]) -> Vec<String> {
        let missed = targets.iter().filter_map(|&(percent, most)| {
            let took = milliseconds(percentile(&self.computed, percent)?);
            let missed = format!("{name}, percentile {percent}: {took:.1} ms, target {most} ms");
            (took > most).then_some(missed)
        });
        missed.collect()
    }
}

impl Keystrokes {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let server = self.server.clone();
        let server = server.unwrap_or_else(|| repository::built("release", "warplens"));
        let (mut opened, mut typed) = (Times::default(), Times::default());
        let mut files = 0;
        println!(
            "{:>68} |{:>35}\n{:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} |{:>8} {:>8} {:>8} {:>8}",
            "ms that passed",
            "ms of processors",
            "open",
            "(proc.)",
            "lines",
            "median",
            "p95",
            "p99",
            "worst",
            "median",
            "p95",
            "p99",
            "worst",
        );
        for folder in &self.folders {
            let folder = std::fs::canonicalize(folder)
                .with_context(|| format!("{} is no folder", folder.display()))?;
            let chosen = self.chosen(&folder)?;
            let mut client = Client::start_in(
                Command::new(&server).args(["lsp", "--stdio"]),
                &uri(&folder),
            )?;
            for (path, line) in chosen {
                let Some(place) = Place::behind(&path, line, self.seed)? else {
                    continue;
                };
                let (open, keys) = place.typed(&mut client, self.host)?;
                println!(
                    "{:8.1} {:8.1} {:8} {}  {}",
                    milliseconds(open.waited[0]),
                    milliseconds(open.computed[0]),
                    place.text.lines().count(),
                    keys.line(),
                    path.display()
                );
                opened.add(&open);
                typed.add(&keys);
                files += 1;
            }
            client.end()?;
        }
        if files == 0 {
            bail!("no kernel to type into");
        }
        println!(
            "\n{files} files, {} keystrokes: median, p95, p99, worst\nkeystroke {}\nopen      {}",
            typed.waited.len(),
            typed.line(),
            opened.line()
        );
        let mut missed = typed.misses("keystroke", &KEYSTROKE);
        missed.extend(opened.misses("open", &OPEN));
        for line in &missed {
            println!("missed: {line}");
        }
        Ok(ExitCode::from(u8::from(self.check && !missed.is_empty())))
    }

    /// Files with kernels, each with the line of one.
    fn chosen(&self, folder: &Path) -> anyhow::Result<Vec<(PathBuf, usize)>> {
        let mut random = Random::of(folder, self.seed);
        let wanted = |path: &Path| {
            let only = self.only.as_deref();
            only.is_none_or(|only| path.to_string_lossy().contains(only))
        };
        let mut found = sources(folder)?;
        found.retain(|(path, _)| wanted(path) && (!self.host || main_line(path).is_some()));
        let mut chosen = random.shuffled(&found.iter().collect::<Vec<_>>());
        chosen.truncate(self.files);
        let place = |(path, kernels): &(PathBuf, Vec<crate::count::Definition>)| {
            let kernel = random.below(kernels.len());
            let main = main_line(path).filter(|_| self.host);
            (path.clone(), main.unwrap_or(kernels[kernel].line))
        };
        Ok(chosen.into_iter().map(place).collect())
    }
}

/// The line of a file's `main`, from 1.
fn main_line(path: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(path).ok()?;
    let at = text.find(" main(")?;
    Some(text[..at].matches('\n').count() + 1)
}

/// Where in a file something is typed.
struct Place {
    path: PathBuf,
    text: String,
    at: usize,
    opencl: bool,
}

impl Place {
    /// Behind a statement of the kernel that is defined at a line (from 1); none where there is none.
    fn behind(path: &Path, line: usize, seed: u64) -> anyhow::Result<Option<Place>> {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        let Ok(text) = String::from_utf8(bytes) else {
            return Ok(None);
        };
        if text.len() > LARGEST {
            return Ok(None);
        }
        let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
        let kernel: usize = lines.map(str::len).sum();
        let Some(brace) = text[kernel..].find('{') else {
            return Ok(None);
        };
        let body = kernel + brace + 1;
        let mut depth = 1;
        let mut end = body;
        for (at, byte) in text.bytes().enumerate().skip(body) {
            depth += i32::from(byte == b'{') - i32::from(byte == b'}');
            if depth == 0 {
                end = at;
                break;
            }
        }
        let statements: Vec<usize> = text[body..end]
            .match_indices(";\n")
            .map(|(at, _)| body + at + 1)
            .collect();
        let mut random = Random::of(path, seed);
        let at = match statements.as_slice() {
            [] => body,
            some => some[random.below(some.len())],
        };
        let at = floor(&text, at);
        let opencl = path.extension().is_some_and(|of| of == "cl");
        Ok(Some(Place {
            path: path.to_owned(),
            text,
            at,
            opencl,
        }))
    }

    /// Opens the file, types, and closes it: the times of opening and of each character.
    fn typed(&self, client: &mut Client, host: bool) -> anyhow::Result<(Times, Times)> {
        let uri = uri(&self.path);
        let (mut open, mut keys) = (Times::default(), Times::default());
        let language = if self.opencl { "opencl" } else { "cuda-cpp" };
        let document = json!({"uri": uri, "languageId": language, "version": 1, "text": self.text});
        let params = json!({"textDocument": document});
        measured(
            client,
            "textDocument/didOpen",
            &params,
            (&uri, 1),
            &mut open,
        )?;
        let statement = if host {
            "\n    int typed_here = 7 * 3 + 1;"
        } else if self.opencl {
            "\n    int typed_here = get_local_id(0) * 3 + 1;"
        } else {
            "\n    int typed_here = threadIdx.x * 3 + 1;"
        };
        let (mut text, mut at) = (self.text.clone(), self.at);
        for (version, letter) in (2..).zip(statement.chars()) {
            std::thread::sleep(PAUSE);
            let place = position(&text, at);
            let change = json!([{"range": {"start": place, "end": place}, "text": letter}]);
            let document = json!({"uri": uri, "version": version});
            let params = json!({"textDocument": document, "contentChanges": change});
            measured(
                client,
                "textDocument/didChange",
                &params,
                (&uri, version),
                &mut keys,
            )?;
            text.insert(at, letter);
            at += letter.len_utf8();
        }
        let closed = json!({"textDocument": {"uri": uri}});
        client.notify("textDocument/didClose", &closed)?;
        Ok((open, keys))
    }
}

/// Sends something about a document and waits for the diagnostics of that version.
fn measured(
    client: &mut Client,
    method: &str,
    params: &Value,
    (uri, version): (&str, i64),
    times: &mut Times,
) -> anyhow::Result<()> {
    let before = client.computed().unwrap_or_default();
    let shown = client.shown(method, params, uri, version)?;
    let after = client.computed().unwrap_or_default();
    times.waited.push(shown.took);
    times.computed.push(after.saturating_sub(before));
    Ok(())
}
