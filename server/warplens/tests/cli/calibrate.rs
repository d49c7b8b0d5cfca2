//! `warplens calibrate`: fitting files, comparing, writing programs, and what it refuses. Runs of benchmarks are tested in
//! the crate, with programs that stand in for a GPU.

use crate::Folder;

/// What a short run would have left.
pub const HALF: &str = r#"{
  "schema": "warplens.measurements/1", "warplens": "0.1.0", "date": "2026-01-31",
  "device": {"name": "NVIDIA Half", "vendor": "nvidia", "architecture": "sm_90", "interface": "cuda",
             "driver": "13.0", "properties": {"sms": 100, "l2_bytes": 41943040}},
  "finished": ["clock", "latency_shared"],
  "samples": [
    {"bench": "clock", "parameters": {}, "unit": "MHz", "repetitions": [1700, 1701, 1699]},
    {"bench": "latency_shared", "parameters": {}, "unit": "cycles", "repetitions": [58, 58.1, 57.9]},
    {"bench": "barrier", "parameters": {"warps": 1}, "unit": "cycles", "repetitions": [24]}
  ]
}"#;

#[test]
fn half_a_file_is_fitted_and_what_is_missing_is_said() {
    let folder = Folder::with("half.json", HALF);
    let run = folder.run(&["calibrate", "--from", "half.json", "--compare", "h100-sxm5"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for line in [
        "NVIDIA Half: profile nvidia-half in nvidia-half.toml",
        "2 figures measured, 2 reported by the driver",
        "barriers of two numbers of warps are needed",
        "linear_weights: the benchmark linear is missing",
        "against h100-sxm5",
    ] {
        assert!(run.out.contains(line), "{line}: {}", run.out);
    }
    let to_use = format!(
        "to use it: move nvidia-half.toml to {} (for all workspaces) or to .warplens/profiles (of one workspace), \
         then --gpu nvidia-half",
        folder.settings().join("warplens/profiles").display()
    );
    assert_eq!(run.out.lines().last(), Some(to_use.as_str()));
    let changed = run.out.lines().find(|line| line.contains("shared_latency"));
    let words: Vec<&str> = changed.expect("a change").split_whitespace().collect();
    assert_eq!(
        &words[..5],
        ["shared_latency", "[cycles]", "23", "58", "2.52"]
    );
    let text = std::fs::read_to_string(folder.path().join("nvidia-half.toml")).unwrap();
    let profile = warplens_machine::Profiles::from_toml("nvidia-half.toml", &text).unwrap();
    assert_eq!(profile.sms, 100);
    assert_eq!(
        profile.figures()["shared_latency"].source,
        "measured by warplens calibrate 0.1.0 (latency_shared, 2026-01-31)"
    );
    assert!(profile.figures()["dram_latency"].is_estimated());

    let run = folder.run(&[
        "calibrate",
        "--from",
        "half.json",
        "--id",
        "mine",
        "-o",
        "there.toml",
    ]);
    assert_eq!(run.code, 0);
    let text = std::fs::read_to_string(folder.path().join("there.toml")).unwrap();
    assert!(text.contains("id = \"mine\""));
}

#[test]
fn a_profile_that_is_written_where_it_is_looked_for_is_in_force() {
    let folder = Folder::with("half.json", HALF);
    let own = "no-settings/warplens/profiles";
    for (at, place) in [own, ".warplens/profiles"].into_iter().enumerate() {
        std::fs::create_dir_all(folder.path().join(place)).unwrap();
        let (id, file) = (format!("mine-{at}"), format!("{place}/mine-{at}.toml"));
        let run = folder.run(&["calibrate", "--from", "half.json", "--id", &id, "-o", &file]);
        let to_use = format!("to use it: --gpu {id}");
        assert_eq!(run.out.lines().last(), Some(to_use.as_str()), "{}", run.err);
        assert_eq!(folder.run(&["gpus", &id]).code, 0);
    }
}

#[test]
fn what_cannot_be_read_or_written_is_one_line_and_status_2() {
    let folder = Folder::with("half.json", HALF);
    folder.write("junk.json", "{\"schema\": 3");
    folder.write("other.json", "{\"schema\": \"warplens.measured/1\"}");
    for (arguments, holds) in [
        (&["calibrate", "--from", "none.json"][..], "none.json"),
        (&["calibrate", "--from", "junk.json"], "junk.json"),
        (
            &["calibrate", "--from", "other.json"],
            "warplens.measurements/1",
        ),
        (
            &["calibrate", "--from", "half.json", "--compare", "h10"],
            "h10",
        ),
        (
            &["calibrate", "--from", "half.json", "--id", "My GPU"],
            "hyphens",
        ),
        (
            &["calibrate", "--from", "half.json", "-o", "no/such/x.toml"],
            "no folder",
        ),
        (&["calibrate", "--from", "half.json", "-o", "."], "folder"),
        (&["calibrate", "--from", "half.json", "--fresh"], "--fresh"),
        (&["calibrate", "--compiler", "nvcc"], "--interface"),
        (
            &["calibrate", "--interface", "cuda", "--compiler", "no/nvcc"],
            "nvcc",
        ),
        (&["calibrate", "--minutes", "0"], "0"),
    ] {
        folder.run(arguments).refused(&[holds]);
    }
    assert!(!folder.path().join("warplens-measurements.json").exists());
}

#[test]
fn a_dry_run_writes_the_programs() {
    let folder = Folder::new();
    let run = folder.run(&["calibrate", "--dry-run", "--sources", "programs"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for file in run.out.lines() {
        assert!(folder.path().join(file).is_file(), "{file}");
    }
    assert!(run.out.contains("latency.cu") && run.out.contains("kernels.cl"));
    assert!(!folder.path().join("warplens-measurements.json").exists());
}
