//! Puts the commit into `--version` where the source is a git checkout, or cargo's package of one; a source archive builds
//! without. Also the machine that it is built for.

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
    let version = match commit().or_else(packaged_commit) {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=WARPLENS_VERSION={version}");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=WARPLENS_TARGET={target}");
}

/// The commit, only where the checkout is this project's own (not one it was unpacked into).
fn commit() -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let output = Command::new("git")
        .args(["log", "-1", "--date=short", "--abbrev=9", "--format=%h %cd"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The commit that `cargo package` noted down.
fn packaged_commit() -> Option<String> {
    let noted = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, behind) = noted.split_once("\"sha1\"")?;
    let commit = behind.split('"').nth(1)?;
    let short = commit.get(..9)?;
    short
        .chars()
        .all(|digit| digit.is_ascii_hexdigit())
        .then(|| short.to_owned())
}
