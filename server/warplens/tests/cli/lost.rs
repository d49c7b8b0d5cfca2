//! Kernels whose analysis fails inside warplens, made to fail by the variable that debug builds read.

use std::process::Command;

use serde_json::Value;

use crate::{Folder, of_rule};

const TWO: &str = "__global__ void sound(float *out, const float *in) {\n    \
                   out[threadIdx.x] = in[32 * threadIdx.x];\n}\n\n\
                   __global__ void broken(float *out) {\n    out[threadIdx.x] = 1.0f;\n}\n\n\
                   void run(float *out, const float *in) {\n    sound<<<64, 256>>>(out, in);\n    \
                   broken<<<64, 256>>>(out);\n}\n";

const STAGES: [&str; 2] = ["lowering:broken", "analysing:broken"];

/// What a command answers where a stage fails: its status, standard output, standard error.
fn failing(folder: &Folder, stage: &str, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_warplens"))
        .args(arguments)
        .current_dir(folder.path())
        .env("XDG_CONFIG_HOME", folder.settings())
        .env("APPDATA", folder.settings())
        .env_remove("RUST_BACKTRACE")
        .env("WARPLENS_TEST_PANIC", stage)
        .output()
        .expect("warplens runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let code = output.status.code().expect("ended by itself");
    (code, text(&output.stdout), text(&output.stderr))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The name of the kernel is line 5, columns 17 to 22.
#[track_caller]
fn at_its_name(document: &Value) {
    let [lost] = of_rule(document, "internal/lost-kernel")[..] else {
        panic!("{document:#}");
    };
    let place = ["line", "column", "end_line", "end_column"].map(|key| lost[key].as_u64());
    assert_eq!(place, [5, 17, 5, 23].map(Some), "{lost:#}");
    assert_eq!(lost["severity"], "error");
    assert_eq!(lost["kernel"], "broken");
    let details = lost["details"].to_string();
    assert!(
        details.contains("issues/new?template=crash.yml"),
        "{lost:#}"
    );
}

#[test]
fn a_lost_kernel_is_a_finding_at_its_name_and_the_others_are_answered() {
    let folder = Folder::with("k.cu", TWO);
    for stage in STAGES {
        let (code, out, err) = failing(&folder, stage, &["check", "--format", "json", "--stats"]);
        assert_eq!(code, 2, "{stage}: {out}{err}");
        let document = json(&out);
        at_its_name(&document);
        assert_eq!(of_rule(&document, "mem/strided").len(), 1, "{document:#}");
        assert_eq!(document["stats"]["kernels"], 2);
        assert_eq!(document["stats"]["failed"], 1);
        // Where it failed, in one line a failure.
        assert!(
            err.lines()
                .all(|line| line.starts_with("warplens: internal error at ")),
            "{err}"
        );
        let (code, out, _) = failing(&folder, stage, &["estimate", "k.cu", "--format", "json"]);
        assert_eq!(code, 2, "{stage}: {out}");
        let document = json(&out);
        at_its_name(&document);
        assert_eq!(document["results"][0]["kernel"], "sound");
        assert_eq!(document["results"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn nothing_hides_a_lost_kernel() {
    let folder = Folder::with("k.cu", TWO);
    folder.write("warplens.toml", "[rules]\ninternal = \"off\"\n");
    let check = ["check", "--format", "json"];
    let options: [&[&str]; 5] = [
        &[],
        &["--fail-on", "error", "--select", "mem"],
        &["--ignore", "internal"],
        &["--kernel", "broken"],
        &["--baseline", "known.json"],
    ];
    let written = ["check", "--write-baseline", "known.json"];
    assert_eq!(failing(&folder, STAGES[0], &written).0, 0);
    for options in options {
        let arguments = [&check[..], options].concat();
        let (code, out, err) = failing(&folder, STAGES[0], &arguments);
        assert_eq!(code, 2, "{options:?}: {out}{err}");
        at_its_name(&json(&out));
    }
    // Who asks for the other kernel alone is not told.
    let (code, out, _) = failing(&folder, STAGES[0], &["check", "--kernel", "sound"]);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn every_format_names_a_lost_kernel() {
    let folder = Folder::with("k.cu", TWO);
    for format in ["human", "sarif", "github", "gitlab"] {
        let (code, out, _) = failing(&folder, STAGES[1], &["check", "--format", format]);
        assert_eq!(code, 2, "{format}: {out}");
        assert!(out.contains("internal/lost-kernel"), "{format}: {out}");
    }
}
