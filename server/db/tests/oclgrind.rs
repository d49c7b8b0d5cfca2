//! Our OpenCL kernels, run by oclgrind: the loads and stores that it executes by address space against what the
//! analysis counts.
//!
//! `cargo xtask test --group oclgrind`, where oclgrind is installed.

#[allow(
    dead_code,
    reason = "the figures of a run are compared by another test"
)]
#[path = "oracle/against/mod.rs"]
mod against;
#[allow(
    dead_code,
    reason = "the results of a run are compared by another test"
)]
#[path = "oracle/problems/mod.rs"]
mod problems;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use problems::{Problem, problems, text_of};
use warplens_oracle::Argument;

/// What oclgrind calls an operation, and what we call it.
const CLASSES: [(&str, &str); 6] = [
    ("load global", "global_load"),
    ("store global", "global_store"),
    ("load local", "shared_load"),
    ("store local", "shared_store"),
    ("load constant", "constant_load"),
    ("call _Z7barrierj()", "barrier"),
];

/// The description of a launch that oclgrind reads.
fn description(problem: &Problem) -> String {
    let [x, y, z] = problem.block;
    let global: [u32; 3] = [0, 1, 2].map(|axis| problem.grid[axis] * problem.block[axis]);
    let mut text = format!(
        "kernel.cl\n{}\n{} {} {}\n{x} {y} {z}\n",
        problem.kernel, global[0], global[1], global[2]
    );
    for (name, argument) in &problem.arguments {
        // A buffer's contents are bytes; a scalar is a buffer of one number.
        let line = match argument {
            Argument::Buffer(bytes) => {
                let words: Vec<String> = bytes
                    .chunks(4)
                    .map(|word| {
                        let mut four = [0; 4];
                        four[..word.len()].copy_from_slice(word);
                        format!("0x{:08x}", u32::from_le_bytes(four))
                    })
                    .collect();
                format!("<size={} uint hex>\n{}", bytes.len(), words.join(" "))
            }
            Argument::Int(value) => format!("<size=4 int>\n{value}"),
            Argument::Float(value) => format!("<size=4 float>\n{value}"),
            Argument::Shared(bytes) => format!("<size={bytes}>"),
            Argument::Endless | Argument::Fields(_) => panic!("no such argument in OpenCL: {name}"),
        };
        writeln!(text, "{line}").expect("a string grows");
    }
    text
}

/// Operations as oclgrind counts them, under our names.
fn executed(problem: &Problem) -> BTreeMap<&'static str, f64> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("kernel.cl"), text_of(problem.file)).expect("written");
    fs::write(folder.path().join("launch.sim"), description(problem)).expect("written");
    let output = Command::new("oclgrind-kernel")
        .args(["--inst-counts", "launch.sim"])
        .current_dir(folder.path())
        .output()
        .expect("oclgrind is installed");
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(
        out.contains("Instructions executed") && errors.is_empty(),
        "{}: {out}{errors}",
        problem.name()
    );
    let mut counts = BTreeMap::new();
    for line in out.lines() {
        let Some((count, what)) = line.split_once(" - ") else {
            continue;
        };
        let what = what.split(" (").next().unwrap_or(what).trim();
        if let Some((_, class)) = CLASSES.iter().find(|(name, _)| what.starts_with(name)) {
            *counts.entry(*class).or_insert(0.0) += count.trim().parse::<f64>().expect("a number");
        }
    }
    counts
}

#[test]
fn loads_and_stores_are_those_that_a_run_executes() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    let all = problems();
    for problem in all
        .iter()
        .filter(|one| one.file.contains(".cl") && !one.on_data)
    {
        let text = text_of(problem.file);
        let found = problem.case(&text).analysis();
        let executed = executed(problem);
        for (_, class) in CLASSES {
            let count = found.counts.iter().find(|count| count.class == class);
            let ours = count.and_then(|count| count.value).unwrap_or(0.0);
            let theirs = executed.get(class).copied().unwrap_or(0.0);
            if count.is_some_and(|count| !count.exact) {
                wrong.push(format!("{} {class}: not exact", problem.name()));
            }
            if (ours - theirs).abs() > 0.5 {
                wrong.push(format!(
                    "{} {class}: {ours}, executed {theirs}",
                    problem.name()
                ));
            }
            compared += usize::from(theirs > 0.0);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 40, "only {compared} counts were compared");
}
