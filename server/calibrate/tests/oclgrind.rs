//! The OpenCL benchmark programs, run by oclgrind in the place of a GPU.
//!
//! `cargo xtask test --group oclgrind`, where oclgrind is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use warplens_calibrate::fit::linear;
use warplens_calibrate::{Device, Interface, Measurements, Sample, fit, profile, write_sources};
use warplens_machine::{Profiles, Property};

/// A folder with the compiled program.
fn compiled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_sources(Interface::OpenCl, folder.path()).unwrap();
    let arguments = Interface::OpenCl.arguments("opencl.c", "opencl", "");
    let output = Command::new("cc")
        .current_dir(folder.path())
        .args(["-Wall", "-Wextra", "-Werror"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder
}

/// What a benchmark prints there, with options for the simulator. A small part of the work: the figures mean nothing.
fn run(folder: &Path, options: &[&str], bench: &str) -> String {
    let output = Command::new("oclgrind")
        .current_dir(folder)
        .args(options)
        .args(["./opencl", bench, "0", "1", "0.0001"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // It tells accesses beside a buffer, and races.
    assert!(
        output.status.success() && said.trim().is_empty(),
        "{bench}: {said}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_opencl_benchmark_runs_in_a_simulator() {
    let folder = compiled();
    // Instructions take a simulator too long in all their configurations, and are built by every other run.
    let names = Interface::OpenCl.benches().map(|bench| bench.name);
    for bench in names
        .filter(|name| *name != "instruction")
        .chain(["device"])
    {
        let text = run(folder.path(), &["--data-races"], bench);
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let lines: Vec<Value> = lines.collect::<Result<_, _>>().unwrap();
        assert!(!lines.is_empty(), "{bench}");
        assert!(
            bench == "device" || lines.iter().all(|line| line["bench"] == bench),
            "{text}"
        );
    }
}

/// The parameters that the fit looks for, which are those of the CUDA programs.
#[test]
fn the_samples_have_the_parameters_that_the_fit_reads() {
    let folder = compiled();
    for (bench, unit, names) in [
        ("shared_conflict", "ns", &["degree", "width", "warps"][..]),
        ("atomic", "ns", &["addresses", "hot"]),
        ("bandwidth_l1", "B/clk/SM", &["width", "warps"]),
        (
            "departure",
            "ns",
            &[
                "loads",
                "rounds",
                "computations",
                "warps",
                "transactions",
                "bytes",
            ],
        ),
    ] {
        let mut configurations = BTreeSet::new();
        for line in run(folder.path(), &[], bench).lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let parameters = line["parameters"].as_object().unwrap();
            assert_eq!(line["unit"], unit, "{bench}");
            assert!(parameters.keys().eq(names), "{bench}: {parameters:?}");
            assert!(parameters.values().all(Value::is_u64), "{parameters:?}");
            configurations.insert(line["parameters"].to_string());
        }
        assert!(configurations.len() >= 2, "{bench}");
    }
}

/// The linear model's kernels: what is executed is what the model counts, and their times become prices.
#[test]
fn the_linear_kernels_execute_what_the_model_counts() {
    let folder = compiled();
    let mut measured = Measurements::new(Device {
        name: "a simulator".to_owned(),
        interface: "opencl".to_owned(),
        ..Device::default()
    });
    // By kernel and size, as `Counts` has them.
    let mut executed: BTreeMap<(String, u64), BTreeMap<String, f64>> = BTreeMap::new();
    let mut operations = BTreeMap::new();
    let mut line = String::new();
    for part in run(folder.path(), &["--inst-counts"], "linear").lines() {
        // The executed instructions are in the middle of their sample.
        if let Some((count, name)) = part.split_once(" - ") {
            operations.insert(name.to_owned(), count.trim().parse().unwrap());
            continue;
        }
        let figures = part.split("Instructions executed").next().unwrap_or("");
        line.push_str(figures.trim());
        if let Ok(sample) = serde_json::from_str::<Sample>(&line) {
            assert!(sample.unit == "s" && sample.is_sound(), "{line}");
            let size = sample.number("n").unwrap() as u64;
            let kernel = sample.text("kernel").unwrap().to_owned();
            executed.insert((kernel, size), std::mem::take(&mut operations));
            measured.samples.push(sample);
            line.clear();
        }
    }
    let counts = linear::counts(&measured, "h100-sxm5").unwrap();
    assert_eq!(counts.len(), executed.len());
    // Operations by what the simulator and the model call them; the model tells apart how lanes spread over memory.
    const SAME: [(&str, &[&str]); 10] = [
        ("load global", &["global_load_"]),
        ("store global", &["global_store_"]),
        ("load local", &["shared_load_"]),
        ("store local", &["shared_store_"]),
        ("call _Z7barrierj", &["barrier"]),
        ("call _Z10atomic_add", &["global_atomic_"]),
        ("call _Z3expf", &["f32_special"]),
        ("fadd", &["f32_add", "f64_add"]),
        ("fmul", &["f32_mul", "f64_mul"]),
        ("fdiv", &["f32_div"]),
    ];
    let mut seen = BTreeSet::new();
    for (which, properties) in &counts {
        for (theirs, ours) in SAME {
            let all = executed[which].iter();
            let run: f64 = all
                .filter(|(name, _)| name.starts_with(theirs))
                .map(|(_, count)| count)
                .sum();
            let counted: f64 = properties
                .iter()
                .filter(|(property, _)| {
                    ours.iter()
                        .any(|name| property.to_string().starts_with(name))
                })
                .map(|(_, count)| count)
                .sum();
            assert_eq!(run, counted, "{which:?}: {theirs}");
            if run > 0.0 {
                seen.insert(theirs);
            }
        }
    }
    assert_eq!(seen.len(), SAME.len(), "{seen:?}");

    let nearest = Profiles::builtin().get("h100-sxm5").unwrap();
    let mut fitted = fit(&measured, &nearest, &counts);
    let (text, loaded) = profile::write(&measured, &mut fitted, &nearest, "simulated").unwrap();
    assert!(text.contains("[linear_weights]"), "{:?}", fitted.missing);
    assert!(loaded.linear_weights.contains_key(&Property::Launch));
}

/// What a benchmark means to time is executed, as often as it says.
#[test]
fn the_loads_that_are_timed_are_executed() {
    let folder = compiled();
    // Loads of one launch and their bytes, over all launches of a kernel; a work-group has 1, 4 or 16 work-items.
    let executed = |bench: &str, what: &str| {
        let mut found: BTreeSet<(String, u64, u64)> = BTreeSet::new();
        let mut kernel = String::new();
        for line in run(folder.path(), &["--inst-counts"], bench).lines() {
            if let Some((_, name)) = line.split_once("Instructions executed for kernel '") {
                name.trim_end_matches("':").clone_into(&mut kernel);
            }
            let Some((count, rest)) = line.split_once(&format!(" - {what} (")) else {
                continue;
            };
            let bytes = rest.trim_end_matches(" bytes)");
            let numbers = [count.trim(), bytes].map(|text| text.parse().unwrap());
            found.insert((kernel.clone(), numbers[0], numbers[1]));
        }
        found
    };
    let of = |kernel: &str, all: &[(u64, u64)]| -> Vec<(String, u64, u64)> {
        let all = all.iter();
        all.map(|(count, bytes)| (kernel.to_owned(), *count, *bytes))
            .collect()
    };
    // 64 a round, of 1 round and of 4.
    let counts = [64, 256, 1024, 4096];
    let expected = [("conflicts_4", 4), ("conflicts_16", 16)]
        .into_iter()
        .flat_map(|(kernel, width)| of(kernel, &counts.map(|count| (count, width * count))));
    assert_eq!(
        executed("shared_conflict", "load local"),
        expected.collect()
    );
    let expected = [("departure_1", 1), ("departure_2", 2), ("departure_4", 4)]
        .into_iter()
        .flat_map(|(kernel, loads)| of(kernel, &[(loads, 4 * loads), (2 * loads, 8 * loads)]));
    assert_eq!(executed("departure", "load global"), expected.collect());
    // The chunk once and four times, whatever the width.
    for (kernel, _, bytes) in executed("bandwidth_l1", "load global") {
        assert!(bytes == 16384 || bytes == 65536, "{kernel}: {bytes} bytes");
    }
}
