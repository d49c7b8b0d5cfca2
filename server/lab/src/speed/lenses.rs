//! How long the time above a kernel takes: each of `tests/kernels` changed, until its lens says the new one.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use warplens_latency::client::Client;
use warplens_latency::figures::{milliseconds, percentile};
use warplens_latency::session::CHANGED;

use xtask::repository;

/// `auto` has one tier: its first answer is its last, and has to keep what the refined one is given.
const TARGET: Duration = Duration::from_millis(150);
/// Changes of each kernel.
const CHANGES: usize = 3;

pub fn section(server: &Path) -> anyhow::Result<String> {
    let folder = repository::root().join("tests/kernels");
    let mut files: Vec<_> = std::fs::read_dir(&folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|of| of == "cu" || of == "cl"))
        .collect();
    files.sort();
    let mut times = Vec::new();
    let mut kernels = 0;
    let mut slowest = (Duration::ZERO, String::new());
    for file in &files {
        for (name, took) in changed(server, file)? {
            kernels += 1;
            let longest = took.iter().max().copied().unwrap_or_default();
            if longest > slowest.0 {
                slowest = (longest, name);
            }
            times.extend(took);
        }
    }
    let of = |percent| percentile(&times, percent).map_or(0.0, milliseconds);
    Ok(format!(
        "\n## The time above a kernel\n\n{kernels} kernels of `tests/kernels`, each changed {CHANGES} times by a new \
         statement: from the change until the lens above it gives the time that `auto` predicts now. `auto` answers once; there is no \
         second, refined answer to wait for. {:.1} ms median, {:.1} ms 99th percentile, {:.1} ms the longest ({}); target: under {} ms, {}.\n",
        of(50),
        of(99),
        milliseconds(slowest.0),
        slowest.1,
        TARGET.as_millis(),
        if slowest.0 < TARGET { "met" } else { "over" }
    ))
}

/// The kernels of a file, and how long each change took.
fn changed(server: &Path, file: &Path) -> anyhow::Result<Vec<(String, Vec<Duration>)>> {
    let text = std::fs::read_to_string(file)?;
    let uri = format!("file://{}", file.display());
    let language = if file.extension().is_some_and(|of| of == "cl") {
        "opencl"
    } else {
        "cuda-cpp"
    };
    let mut client = Client::start(Command::new(server).args(["lsp", "--stdio"]))?;
    let document = json!({"textDocument":
        {"uri": uri, "languageId": language, "version": 1, "text": text}});
    client.shown("textDocument/didOpen", &document, &uri, 1)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut version = 1;
    let mut found = Vec::new();
    for kernel in timed(&mut client, &uri)? {
        let opening = lines[kernel..].iter().position(|line| line.ends_with('{'));
        let inside = kernel + opening.context("a kernel without a body")? + 1;
        let mut took = Vec::new();
        for change in 0..CHANGES {
            let typed = format!("int typed = {version};\n");
            let started = Instant::now();
            version += 1;
            replace(&mut client, &uri, version, [inside, inside], &typed)?;
            let shown = timed(&mut client, &uri)?;
            took.push(started.elapsed());
            anyhow::ensure!(
                shown.contains(&kernel),
                "{uri}: no time at {kernel}, {change}"
            );
            version += 1;
            replace(&mut client, &uri, version, [inside, inside + 1], "")?;
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        found.push((format!("{name}, line {}", kernel + 1), took));
    }
    client.end()?;
    Ok(found)
}

fn replace(
    client: &mut Client,
    uri: &str,
    version: i64,
    [from, to]: [usize; 2],
    text: &str,
) -> anyhow::Result<()> {
    let range =
        json!({"start": {"line": from, "character": 0}, "end": {"line": to, "character": 0}});
    let params = json!({"textDocument": {"uri": uri, "version": version},
        "contentChanges": [{"range": range, "text": text}]});
    client.shown(CHANGED, &params, uri, version)?;
    Ok(())
}

/// The lines that have a time above them.
fn timed(client: &mut Client, uri: &str) -> anyhow::Result<Vec<usize>> {
    let params = json!({"textDocument": {"uri": uri}});
    let lenses = client.request("textDocument/codeLens", &params)?.message;
    let lenses = lenses["result"].as_array().cloned().unwrap_or_default();
    let time = |lens: &Value| {
        let title = lens["command"]["title"].as_str().unwrap_or_default();
        let says = [" ns", " µs", " ms", " s"]
            .iter()
            .any(|unit| title.contains(unit));
        let line = lens["range"]["start"]["line"].as_u64()?;
        says.then_some(line as usize)
    };
    let mut lines: Vec<usize> = lenses.iter().filter_map(time).collect();
    lines.dedup();
    Ok(lines)
}
