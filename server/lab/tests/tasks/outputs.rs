//! `cargo lab outputs` on a folder of our own and on programs that are scripts.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program that answers with one kernel and one finding, then what `more` prints.
fn program(folder: &Path, name: &str, time: &str, more: &str) -> PathBuf {
    let path = folder.join(name);
    let script = format!(
        r#"#!/bin/sh
case "$1" in
--version) echo "warplens {name}" ;;
check) echo '{{"diagnostics": [{{"rule": "mem/gather", "line": 2}}], "stats": {{"seconds": '"$(date +%s%N)"'}}}}' ;;
estimate) echo '{{"results": [{{"kernel": "k", "launch": {{"grid": [4, 1, 1], "grid_source": "directive"}}, "time_ms": {time}}}]}}' ;;
sweep) echo '{{"id": "0", "time_ms": 2}}' ;;
report) echo "made by warplens {name}" >"$4" ;;
diff) echo '{{"kernels": []}}' ;;
esac
{more}
"#
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn sources(folder: &Path) -> PathBuf {
    let sources = folder.join("sources");
    std::fs::create_dir_all(&sources).unwrap();
    let kernel = "// one\n__global__ void k(int *a) { a[0] = 1; }\n";
    std::fs::write(sources.join("k.cu"), kernel).unwrap();
    sources
}

fn outputs(before: &Path, after: &Path, arguments: &[&Path]) -> (Option<i32>, String) {
    let run: Output = Command::new(env!("CARGO_BIN_EXE_lab"))
        .arg("outputs")
        .args([before, after])
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    (
        run.status.code(),
        text + &String::from_utf8_lossy(&run.stderr),
    )
}

#[test]
fn programs_that_say_the_same_have_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let one = program(top, "one", "1.5", "");
    // Only its version differs, which is no part of what it says.
    let other = program(top, "other", "1.5", "");
    let (status, text) = outputs(&one, &other, &[&sources(top)]);
    assert_eq!(status, Some(0), "{text}");
    let counts = "2 check, 1 estimate, 1 sweep, 1 report, 1 diff compared in ";
    assert!(
        text.contains(counts) && text.contains(", 1 configurations with a time: 0 differences"),
        "{text}"
    );
}

#[test]
fn a_difference_is_shown_with_its_place_and_fails_until_it_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let one = program(top, "one", "1.5", "");
    let other = program(top, "other", "1.75", "");
    let sources = sources(top);
    let (status, text) = outputs(&one, &other, &[&sources]);
    assert_eq!(status, Some(1), "{text}");
    for part in [
        "estimate.out.results[].time_ms: 1 differences in 1 inputs",
        "k.cu (.out.results[0].time_ms)\n    before: 1.5\n    after:  1.75\n",
        ": 1 differences, 0 of them explained",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let allow = top.join("allow.toml");
    std::fs::write(
        &allow,
        "[[allow]]\npath = \"estimate.*.time_ms\"\nnew = \"1.75\"\nreason = \"a better time\"\n",
    )
    .unwrap();
    let details = top.join("details.jsonl");
    let arguments = [
        &sources,
        Path::new("--allow"),
        &allow,
        Path::new("--details"),
        &details,
    ];
    let (status, text) = outputs(&one, &other, &arguments);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("explained 1 times: a better time"), "{text}");
    let details = std::fs::read_to_string(&details).unwrap();
    assert!(
        details.contains("\"before\":1.5,\"after\":1.75"),
        "{details}"
    );
}

#[test]
fn a_program_that_says_something_else_each_time_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let one = program(top, "one", "1.5", "[ \"$1\" = sweep ] && echo \"$$\"; true");
    let (status, text) = outputs(&one, &one, &[&sources(top)]);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("sweep[].swept.out[]: 1 differences"),
        "{text}"
    );
}

#[test]
fn what_does_not_end_is_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let one = program(top, "one", "1.5", "");
    let slow = program(
        top,
        "slow",
        "1.5",
        "[ \"$1\" = diff ] && exec sleep 60; true",
    );
    let limit = [Path::new("--limit"), Path::new("2")];
    let sources = sources(top);
    let (status, text) = outputs(&slow, &slow, &[&sources, limit[0], limit[1]]);
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("neither program ended within 2 s: diff"),
        "{text}"
    );
    let (status, text) = outputs(&one, &slow, &[&sources, limit[0], limit[1]]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("did not end within the limit"), "{text}");
}
