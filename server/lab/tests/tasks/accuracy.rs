//! `cargo lab accuracy` from a table to its page, on a kernel and a table of our own that was made up.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/accuracy")
}

fn accuracy(arguments: &[&str]) -> Output {
    let folder = fixtures();
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .arg("accuracy")
        .arg(&folder)
        .arg("--sources")
        .arg(&folder)
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn a_table_becomes_scores_a_page_and_plots() {
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("scores.md");
    std::fs::write(
        &page,
        "Outdated.\n<!-- begin: scores -->\nOutdated.\n<!-- end: scores -->\nKept.\n",
    )
    .unwrap();
    let details = scratch.path().join("details.jsonl");
    let run = accuracy(&[
        "--ablation",
        "--out",
        page.to_str().unwrap(),
        "--details",
        details.to_str().unwrap(),
    ]);
    let told = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}{errors}");
    // The last row has no time, and is named.
    assert!(
        told.contains("made_up: line 7: measured_ms is `soon`"),
        "{told}"
    );
    let text = std::fs::read_to_string(&page).unwrap();
    for part in [
        // Twice the rows take twice the time, in the table and in any model: the order is right.
        "| made_up |  | a100-sxm4-40gb | 4 | 1.00 | 1.00 |",
        // A block of 2048 threads cannot be launched, and nothing else is said not to.
        "| made_up | 1 | 0 of 4 | 0 |",
        "| made_up | L2 sectors | 4 |",
        "| made_up | registers | 4 |",
        "## Without each mechanism",
        "| made_up | ours: times that were never measured, in proportion to the bytes |  |",
        "| made_up: rho | 1.00 | at least 0.75 | yes |",
        "![Predicted against measured times, a panel a table](scores/times.svg)",
        "by `cargo lab accuracy TABLES --sources SOURCES --ablation`",
        "Kept.",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("Outdated."));
    let plot = std::fs::read_to_string(scratch.path().join("scores/times.svg")).unwrap();
    assert_eq!(plot.matches("<circle").count(), 4);
    assert!(!plot.contains("http://") || plot.matches("http").count() == 1);
    assert_eq!(
        std::fs::read_to_string(&details).unwrap().lines().count(),
        5
    );
}

#[test]
fn a_missed_target_fails_the_check_and_writes_nothing() {
    // The same launches with their times the other way round.
    let scratch = tempfile::tempdir().unwrap();
    let table = std::fs::read_to_string(fixtures().join("made_up.csv")).unwrap();
    let swapped = table
        .replace(",0.200,", ",first,")
        .replace(",0.400,", ",second,")
        .replace(",1.600,", ",0.200,")
        .replace(",0.800,", ",0.400,")
        .replace(",second,", ",0.800,")
        .replace(",first,", ",1.600,");
    std::fs::write(scratch.path().join("swapped.csv"), swapped).unwrap();
    std::fs::copy(
        fixtures().join("made_up.meta.json"),
        scratch.path().join("swapped.meta.json"),
    )
    .unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_lab"))
        .arg("accuracy")
        .arg(scratch.path())
        .arg("--sources")
        .arg(fixtures())
        .arg("--check")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{told}");
    for missed in [
        "missed: mean rho is -1.00, not at least 0.90",
        "missed: swapped: regret is 8.00, not at most 1.50",
    ] {
        assert!(told.contains(missed), "{missed}\n{told}");
    }
    assert!(!told.contains("wrote"), "{told}");
}

#[test]
fn what_is_not_there_is_said() {
    let folder = fixtures();
    let folder = folder.to_str().unwrap();
    let unknown = accuracy(&["--set", "other"]);
    let errors = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        errors.contains("no table is called other; there are made_up"),
        "{errors}"
    );
    assert_eq!(unknown.status.code(), Some(2));
    let empty = tempfile::tempdir().unwrap();
    let nothing = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["accuracy", folder, "--sources"])
        .arg(empty.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&nothing.stdout).into_owned();
    assert!(told.contains("made_up: left out: no source at"), "{told}");
    assert_eq!(nothing.status.code(), Some(2));
}
