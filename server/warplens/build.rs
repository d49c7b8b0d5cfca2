//! Puts the commit into `--version` where the source is a git checkout; a source archive builds without.

use std::path::Path;
use std::process::Command;

fn main() {
    // Only paths that exist: a missing one would make every build run this again.
    for watched in ["../../.git/HEAD", "../../.git/logs/HEAD"] {
        if Path::new(watched).exists() {
            println!("cargo::rerun-if-changed={watched}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=WARPLENS_VERSION={version}");
}

/// The commit, only where the checkout is this project's own (not one it was unpacked into).
fn commit() -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let output = Command::new("git")
        .args(["log", "-1", "--date=short", "--format=%h %cd"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
