//! The published schemas are those of this build, and what it prints keeps to them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Folder;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema(name: &str) -> Value {
    let run = Folder::new().run(&["config", "schema", name]);
    let published = repository().join(format!("docs/schemas/{name}.schema.json"));
    let published = std::fs::read_to_string(&published).unwrap_or_default();
    assert!(run.out == published, "{name}: run `cargo xtask generate`");
    run.json()
}

#[track_caller]
fn keeps_to(name: &str, document: &Value) {
    let validator = jsonschema::validator_for(&schema(name)).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .take(5)
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}

/// Our own kernels, all of them: rules, loops, branches, shared memory, OpenCL.
fn kernels() -> String {
    repository().join("tests/kernels").display().to_string()
}

#[test]
fn check_keeps_to_its_schema() {
    let folder = Folder::with("bad.cu", b"\xff");
    let run = folder.run(&["check", &kernels(), "bad.cu", "--format", "json", "--stats"]);
    let document = run.json();
    assert!(
        document["stats"]["kernels"]
            .as_u64()
            .is_some_and(|kernels| kernels >= 10)
    );
    keeps_to("check", &document);
    keeps_to(
        "check",
        &folder
            .run(&["check", &kernels(), "--format", "json"])
            .json(),
    );
}

#[test]
fn estimate_keeps_to_its_schema() {
    let folder = Folder::new();
    for file in ["transpose.cu", "transpose.cl", "reduction.cu", "scan.cu"] {
        let path = format!("{}/{file}", kernels());
        for gpu in ["a100-sxm4-40gb", "gtx-280"] {
            let options = ["--model", "all", "--format", "json", "--gpu", gpu];
            let run = folder.run(&[&["estimate", path.as_str()], &options[..]].concat());
            let document = run.json();
            assert!(
                document["results"]
                    .as_array()
                    .is_some_and(|results| !results.is_empty())
            );
            keeps_to("estimate", &document);
        }
    }
}

#[test]
fn program_keeps_to_its_schema() {
    let folder = Folder::new();
    crate::program::write_heat(&folder);
    keeps_to(
        "program",
        &folder.run(&["program", ".", "--format", "json"]).json(),
    );
}

#[test]
fn gpus_keeps_to_its_schema() {
    keeps_to(
        "gpus",
        &Folder::new().run(&["gpus", "--format", "json"]).json(),
    );
}

#[test]
fn measurements_keep_to_their_schema() {
    let half: Value = serde_json::from_str(crate::calibrate::HALF).expect("JSON");
    keeps_to("measurements", &half);
    let validator = jsonschema::validator_for(&schema("measurements")).expect("a schema");
    let mut other = half;
    other["schema"] = "warplens.measured/1".into();
    assert!(!validator.is_valid(&other));
}

#[test]
fn the_schema_of_the_toml_takes_what_we_take_and_nothing_else() {
    let validator = jsonschema::validator_for(&schema("config")).expect("a schema");
    let of = |text: &str| -> Value {
        let table: toml::Table = text.parse().expect("TOML");
        serde_json::to_value(table).expect("JSON")
    };
    let good = "gpu = \"tesla-k40c\"\nassume = { n = 4096 }\n[rules]\nmem = \"hint\"\n\
                [kernels.k]\nblock = [32, 8]\nargs = { n = 3 }\n[inlayHints]\nenable = false\n";
    assert!(validator.is_valid(&of(good)));
    for bad in [
        "gpu = 3",
        "colour = 1",
        "[rules]\nmem = \"loud\"",
        "[kernels.k]\nblock = \"x\"",
    ] {
        assert!(!validator.is_valid(&of(bad)), "{bad}");
    }
}
