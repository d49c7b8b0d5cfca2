//! `cargo lab memory DIR…`: what a server holds while large files are opened and closed in turn.
//!
//! In: a built `warplens` and folders of sources, which are one workspace each. Out: the resident memory after each file was opened
//! and after it was closed, the most at any time, what is left at the end, and what a made document of 40 MB takes.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use warplens_latency::client::Client;

use crate::corpus::sources;
use crate::history::session::uri;
use xtask::repository;

/// Open and close the largest files of these folders in turn and say what memory they take, and what stays
#[derive(Debug, Args)]
pub struct Memory {
    /// The folders, each a workspace
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The server
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// The largest files of each folder
    #[arg(long, value_name = "N", default_value_t = 60)]
    files: usize,
    /// Also a document of 40 MB
    #[arg(long)]
    huge: bool,
}

/// Larger files are generated.
const LARGEST: u64 = 4 << 20;
/// How long after a file was closed its memory may be held.
const RETURNED: Duration = Duration::from_secs(5);

/// What may be held, in MiB: with one file open, after all were closed, with the document of 40 MB.
const OPEN: f64 = 400.0;
const CLOSED: f64 = 200.0;
const HUGE: f64 = 500.0;
/// Bytes of the large document.
const BYTES: usize = 40_000_000;

impl Memory {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let server = self.server.clone();
        let server = server.unwrap_or_else(|| repository::built("release", "warplens"));
        let mut missed = Vec::new();
        let mut hold = |what: String, took: f64, most: f64| {
            println!("{what}: {took:.0} MiB, at most {most:.0}");
            if took > most {
                missed.push(format!("{what}: {took:.0} MiB, at most {most:.0}"));
            }
        };
        for folder in &self.folders {
            let folder = std::fs::canonicalize(folder)
                .with_context(|| format!("{} is no folder", folder.display()))?;
            let size = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
            let mut files: Vec<PathBuf> = sources(&folder)?
                .into_iter()
                .map(|(path, _)| path)
                .collect();
            files.retain(|path| size(path) <= LARGEST);
            files.sort_by_key(|path| std::cmp::Reverse(size(path)));
            files.truncate(self.files);
            let mut client = Client::start_in(
                Command::new(&server).args(["lsp", "--stdio"]),
                &uri(&folder),
            )?;
            let mut most = (0.0, Path::new(""));
            for path in &files {
                let Ok(text) = std::fs::read_to_string(path) else {
                    continue;
                };
                let open = opened(&mut client, &uri(path), &text)?;
                closed(&mut client, &uri(path))?;
                println!("{open:8.1}  {}", path.display());
                if open > most.0 {
                    most = (open, path);
                }
            }
            let left = returned(&client, CLOSED);
            let name = folder.display();
            hold(format!("{name}: {}", most.1.display()), most.0, OPEN);
            hold(
                format!("{name}: {} files closed", files.len()),
                left,
                CLOSED,
            );
            client.end()?;
        }
        if self.huge {
            let mut client = Client::start(Command::new(&server).args(["lsp", "--stdio"]))?;
            let line = "// a comment of a generated file, which has many of them\n";
            let mut text = line.repeat(BYTES / line.len());
            text.push_str("__global__ void k(float *a) { a[threadIdx.x] = 1.0f; }\n");
            let name = "file:///huge.cu";
            let open = opened(&mut client, name, &text)?;
            hold("40 MB of comments".to_owned(), open, HUGE);
            closed(&mut client, name)?;
            hold(
                "the same, closed".to_owned(),
                returned(&client, CLOSED),
                CLOSED,
            );
            client.end()?;
        }
        for line in &missed {
            println!("missed: {line}");
        }
        Ok(ExitCode::from(u8::from(!missed.is_empty())))
    }
}

/// Opens a document; the memory when its diagnostics are there, in MiB.
fn opened(client: &mut Client, uri: &str, text: &str) -> anyhow::Result<f64> {
    let extension = Path::new(uri).extension();
    let opencl = extension.is_some_and(|extension| extension == "cl");
    let language = if opencl { "opencl" } else { "cuda-cpp" };
    let document = json!({"uri": uri, "languageId": language, "version": 1, "text": text});
    let params = json!({"textDocument": document});
    client.shown("textDocument/didOpen", &params, uri, 1)?;
    client.memory().context("no memory is reported here")
}

fn closed(client: &mut Client, uri: &str) -> anyhow::Result<()> {
    client.notify(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": uri}}),
    )
}

/// The memory as soon as it is at most `enough`, or once it had its time.
fn returned(client: &Client, enough: f64) -> f64 {
    let began = Instant::now();
    loop {
        let held = client.memory().unwrap_or_default();
        if held <= enough || began.elapsed() > RETURNED {
            return held;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
