//! `cargo xtask test --corpus DIR`: the checker over other people's code.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::{process, repository};

/// No corpus may take longer.
const LIMIT: Duration = Duration::from_mins(30);

/// Checks everything under `folder` and reports what was understood; fails where a file was lost to an
/// internal error.
pub fn run(folder: &Path) -> anyhow::Result<ExitCode> {
    if !folder.is_dir() {
        bail!("{} is not a folder", folder.display());
    }
    let folder = std::path::absolute(folder)?;
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked", "--package", "warplens"]);
    if !process::run(&mut build, Duration::from_mins(15))?.success {
        bail!("the release build failed");
    }
    let started = Instant::now();
    let output = Command::new("timeout")
        .arg(LIMIT.as_secs().to_string())
        .arg(repository::built("release", "warplens"))
        .args(["check", "--format", "json", "--stats"])
        .arg(&folder)
        .stdin(Stdio::null())
        .output()
        .context("cannot run the checker")?;
    let took = started.elapsed().as_secs_f64();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let document: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "no document after {took:.0} s ({}): {}",
            output.status,
            complaints.trim()
        )
    })?;
    report(&document);
    let panics = complaints
        .lines()
        .filter(|line| line.contains("internal error"))
        .count();
    for line in complaints
        .lines()
        .filter(|line| line.contains("internal error"))
        .take(10)
    {
        println!("{line}");
    }
    println!("{took:.1} s, {panics} internal errors");
    Ok(if panics == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn report(document: &Value) {
    let stats = &document["stats"];
    let count = |key: &str| stats[key].as_u64().unwrap_or(0);
    let kernels = count("kernels");
    let share = |part: u64| {
        if kernels == 0 {
            0.0
        } else {
            100.0 * part as f64 / kernels as f64
        }
    };
    println!(
        "files {} ({} unreadable)",
        count("files"),
        count("unreadable_files")
    );
    println!("kernels {kernels}");
    for key in ["clean", "partial", "failed", "launch_known"] {
        println!("  {key:<13} {:>7}  {:5.1} %", count(key), share(count(key)));
    }
    let mut reasons: Vec<(&String, u64)> = stats["reasons"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(reason, count)| (reason, count.as_u64().unwrap_or(0)))
        .collect();
    reasons.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    println!("not understood");
    for (reason, count) in reasons.into_iter().take(25) {
        println!("  {count:>7}  {reason}");
    }
    let mut rules = std::collections::BTreeMap::new();
    for finding in document["diagnostics"].as_array().into_iter().flatten() {
        *rules
            .entry(finding["rule"].as_str().unwrap_or("?"))
            .or_insert(0_u64) += 1;
    }
    println!("findings");
    for (rule, count) in rules {
        println!("  {count:>7}  {rule}");
    }
}
