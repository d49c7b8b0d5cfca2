//! Options, formats, exit status, where files come from.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::{Folder, Run, of_rule};

const STRIDED: &str = "\
// warplens: block=256 grid=4096
__global__ void strided(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * 32];
}
";

const OPENCL: &str = "\
__kernel void strided(__global float *out, __global const float *in) {
    int i = get_global_id(0);
    out[i] = in[i * 32];
}
";

#[test]
fn bad_usage_is_one_line_and_status_2() {
    let folder = Folder::with("k.cu", STRIDED);
    for (arguments, holds) in [
        (&[][..], "--help"),
        (&["chekc", "k.cu"], "check"),
        (&["check", "k.cu", "--format", "xml"], "xml"),
        (&["check", "k.cu", "--fail-on", "never"], "never"),
        (&["estimate", "k.cu", "--block", "0"], "--block"),
        (&["estimate", "k.cu", "--block", "1,2,3,4"], "three"),
        (&["estimate", "k.cu", "--arg", "n"], "NAME=VALUE"),
        (&["estimate", "k.cu", "--arg", "n=many"], "many"),
        (
            &["estimate", "k.cu", "--without", "bank-conflict"],
            "bank-conflicts",
        ),
        (
            &["estimate", "k.cu", "--block", "32", "--local", "32"],
            "--local",
        ),
        (&["explain", "mem/stride"], "mem/strided"),
        (&["lsp", "--log", "no/such/folder/x.log"], "x.log"),
    ] {
        folder.run(arguments).refused(&[holds]);
    }
}

#[test]
fn help_is_complete_and_version_is_there() {
    let folder = Folder::new();
    let run = folder.run(&["--help"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for command in [
        "check",
        "estimate",
        "gpus",
        "calibrate",
        "explain",
        "lsp",
        "config",
    ] {
        assert!(run.out.contains(command), "{command}");
        let help = folder.run(&[command, "--help"]);
        assert_eq!(help.code, 0, "{command}");
        assert!(help.out.contains("Usage:"), "{command}");
    }
    let version = folder.run(&["--version"]);
    assert!(
        version
            .out
            .starts_with(concat!("warplens ", env!("CARGO_PKG_VERSION"))),
        "{version:?}"
    );
}

#[test]
fn findings_fail_at_the_level_asked_for() {
    let folder = Folder::with("k.cu", STRIDED);
    let document = folder.run(&["check", "k.cu", "--format", "json"]).json();
    assert_eq!(
        of_rule(&document, "mem/strided")[0]["severity"],
        "warning",
        "{document:#}"
    );
    for (level, code) in [
        ("error", 0),
        ("warning", 1),
        ("information", 1),
        ("hint", 1),
    ] {
        assert_eq!(
            folder.run(&["check", "k.cu", "--fail-on", level]).code,
            code,
            "{level}"
        );
    }
}

#[test]
fn hints_are_counted_and_shown_on_demand() {
    // Next to a kernel of compute a conflict of two ways is worth a hint.
    let text = "\
// warplens: block=(16,16) grid=(64,64)
__global__ void k(float *out) {
    __shared__ float tile[16][32];
    float sum = out[threadIdx.x];
    for (int i = 0; i < 4096; ++i) sum = sum * 1.5f + 2.0f;
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    out[(blockIdx.x * 16 + threadIdx.y) * 16 + threadIdx.x] = tile[15 - threadIdx.y][threadIdx.x];
}
";
    let folder = Folder::with("k.cu", text);
    let document = folder.run(&["check", "k.cu", "--format", "json"]).json();
    let conflicts = of_rule(&document, "smem/bank-conflict");
    assert!(
        conflicts
            .iter()
            .all(|finding| finding["severity"] == "hint"),
        "{document:#}"
    );
    assert!(!conflicts.is_empty(), "{document:#}");
    let quiet = folder.run(&["check", "k.cu"]).out;
    assert!(
        !quiet.contains("hint[") && quiet.contains("--show hint"),
        "{quiet}"
    );
    for options in [["--show", "hint"], ["--fail-on", "hint"]] {
        let run = folder.run(&[&["check", "k.cu"][..], &options].concat());
        assert!(run.out.contains("hint[smem/bank-conflict]"), "{}", run.out);
    }
}

#[test]
fn people_see_the_place_the_line_and_the_kernels() {
    let folder = Folder::with("k.cu", STRIDED);
    let run = folder.run(&["check", "k.cu"]);
    assert!(run.out.contains("k.cu:4:"), "{}", run.out);
    assert!(run.out.contains("warning[mem/strided]"), "{}", run.out);
    let lines: Vec<&str> = run.out.lines().collect();
    let shown = lines
        .iter()
        .position(|line| line.contains("4 |     out[i] = in[i * 32];"));
    let under = shown
        .and_then(|at| lines.get(at + 1))
        .expect("the source line, then the carets");
    assert!(under.contains('^'), "{}", run.out);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("  strided ") && line.contains("(256)"))
    );
    assert!(!run.out.contains('\x1b'), "plain when piped");
    assert!(
        folder
            .run(&["check", "k.cu", "--color", "always"])
            .out
            .contains("\x1b[")
    );

    let page = folder.run(&["estimate", "k.cu", "--model", "all"]).out;
    for part in [
        "in[i * 32]",
        "mwp-cwp",
        "wfg",
        "occupancy",
        "Where the cycles go",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn folders_are_walked_in_order_and_gitignore_is_honoured() {
    let folder = Folder::new();
    for name in [
        "b.cu",
        "a/z.cuh",
        "a/y.cl",
        "h.hip",
        "out/generated.cu",
        "notes.txt",
        "x.cpp",
    ] {
        let text = if name == "a/y.cl" { OPENCL } else { STRIDED };
        folder.write(name, text);
    }
    // Host code is looked at where it holds kernels.
    folder.write("plain.cpp", "int main() { return 0; }\n");
    folder.write(".gitignore", "out/\n");
    let document = folder
        .run(&["check", ".", "b.cu", "--format", "json", "--stats"])
        .json();
    let mut files: Vec<&str> = of_rule(&document, "mem/strided")
        .iter()
        .filter_map(|finding| finding["file"].as_str())
        .collect();
    // The costliest is first.
    files.sort_unstable();
    assert_eq!(
        files,
        ["a/y.cl", "a/z.cuh", "b.cu", "h.hip", "x.cpp"],
        "{document:#}"
    );
    assert_eq!(document["stats"]["files"], 5);
    assert_eq!(document["stats"]["kernels"], 5);
    assert_eq!(document["stats"]["clean"], 5);
    assert!(
        document["stats"]["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds > 0.0)
    );
}

#[test]
fn a_named_file_is_read_whatever_its_extension() {
    let folder = Folder::new();
    folder.write("k.opencl", OPENCL);
    folder.write("k.h", STRIDED);
    for name in ["k.opencl", "k.h"] {
        let document = folder
            .run(&["check", name, "--format", "json", "--stats"])
            .json();
        assert_eq!(document["stats"]["kernels"], 1, "{name}: {document:#}");
        assert_eq!(
            of_rule(&document, "mem/strided").len(),
            1,
            "{name}: {document:#}"
        );
    }
    let run = folder.run(&["estimate", "k.opencl", "--format", "json"]);
    assert_eq!(run.json()["results"][0]["language"], "opencl");
}

#[test]
fn a_folder_is_searched_for_kernels_behind_the_macros_of_its_headers() {
    let folder = Folder::new();
    folder.write(
        "macros.h",
        "#if 1\n#define KERNEL \\\n  __global__ void\n#endif\n",
    );
    let kernel = STRIDED.replace("__global__ void", "KERNEL");
    folder.write("k.hpp", format!("#include \"macros.h\"\n{kernel}"));
    folder.write("host.hpp", "#include \"macros.h\"\nint f();\n");
    let document = folder
        .run(&["check", ".", "--format", "json", "--stats"])
        .json();
    assert_eq!(of_rule(&document, "mem/strided").len(), 1, "{document:#}");
    assert_eq!(document["stats"]["files"], 2, "{document:#}");
}

#[test]
fn many_files_answer_the_same_every_time() {
    let folder = Folder::new();
    for i in 0..40 {
        folder.write(
            &format!("k{i:02}.cu"),
            STRIDED.replace("strided", &format!("k{i}")),
        );
    }
    let first = folder.run(&["check", ".", "--format", "json"]);
    assert_eq!(of_rule(&first.json(), "mem/strided").len(), 40);
    for _ in 0..3 {
        assert_eq!(
            folder.run(&["check", ".", "--format", "json"]).out,
            first.out
        );
    }
}

#[test]
fn the_nearest_toml_counts_and_the_command_line_wins() {
    let folder = Folder::with("sub/k.cu", STRIDED);
    folder.write("warplens.toml", "gpu = \"tesla-k40c\"\n");
    let gpu = |options: &[&str]| {
        let mut arguments = vec!["estimate", "sub/k.cu", "--format", "json"];
        arguments.extend(options);
        folder.run(&arguments).json()["results"][0]["gpu"].clone()
    };
    assert_eq!(gpu(&[]), "tesla-k40c");
    assert_eq!(gpu(&["--gpu", "h100-sxm5"]), "h100-sxm5");
    folder.write("sub/warplens.toml", "gpu = \"rtx-2080-ti\"\n");
    assert_eq!(gpu(&[]), "rtx-2080-ti");
}

#[test]
fn several_gpus_and_all() {
    let folder = Folder::with("k.cu", STRIDED);
    let two = folder.estimate(&["--gpu", "a100-sxm4-40gb", "--gpu", "tesla-k40c"]);
    let ids = |document: &serde_json::Value| -> Vec<String> {
        let results = document["results"].as_array().expect("results");
        results
            .iter()
            .filter_map(|r| r["gpu"].as_str().map(str::to_owned))
            .collect()
    };
    assert_eq!(ids(&two), ["a100-sxm4-40gb", "tesla-k40c"]);
    let all = folder.estimate(&["--gpu", "all"]);
    let known = folder.run(&["gpus", "--format", "json"]).json();
    assert_eq!(
        ids(&all).len(),
        known["gpus"].as_array().map_or(0, Vec::len)
    );
    assert!(ids(&all).len() >= 10);
}

#[test]
fn only_the_kernels_asked_for() {
    let two = format!("{STRIDED}\n{}", STRIDED.replace("strided", "other"));
    let folder = Folder::with("k.cu", two);
    let document = folder.estimate(&["--kernel", "other"]);
    assert_eq!(document["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["results"][0]["kernel"], "other");
    assert_eq!(
        folder.estimate(&[])["results"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn macros_of_the_command_line_hold() {
    let text = "\
__global__ void k(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * STEP];
}
";
    let folder = Folder::with("k.cu", text);
    let sectors = |step: &str| {
        let document = folder.estimate(&["-D", step, "--block", "256", "--grid", "64"]);
        let accesses = document["results"][0]["accesses"]
            .as_array()
            .expect("accesses")
            .clone();
        let load = accesses
            .into_iter()
            .find(|access| access["op"] == "load")
            .expect("a load");
        load["transactions_per_request"].as_f64()
    };
    assert_eq!(sectors("STEP=1"), Some(4.0));
    assert_eq!(sectors("STEP=2"), Some(8.0));
    assert_eq!(sectors("STEP"), Some(4.0));
}

#[test]
fn without_a_factor_the_kernel_is_no_slower() {
    let folder = Folder::with("k.cu", STRIDED);
    let cycles = |options: &[&str]| {
        folder.estimate(options)["results"][0]["estimates"]["auto"]["cycles"].as_f64()
    };
    let (with, without) = (cycles(&[]), cycles(&["--without", "uncoalesced"]));
    assert!(without.is_some() && without < with, "{without:?} {with:?}");
}

#[test]
fn sarif_and_annotations_carry_the_findings() {
    let folder = Folder::with("k.cu", STRIDED);
    let log = folder.run(&["check", "k.cu", "--format", "sarif"]).json();
    assert_eq!(log["version"], "2.1.0");
    let results = log["runs"][0]["results"].as_array().expect("results");
    let finding = results
        .iter()
        .find(|result| result["ruleId"] == "mem/strided")
        .expect("it");
    assert_eq!(
        finding["locations"][0]["physicalLocation"]["region"]["startLine"],
        4
    );
    let rule =
        &log["runs"][0]["tool"]["driver"]["rules"][finding["ruleIndex"].as_u64().unwrap() as usize];
    assert_eq!(rule["id"], "mem/strided");
    let annotations = folder.run(&["check", "k.cu", "--format", "github"]).out;
    assert!(
        annotations.contains("::warning file=k.cu,line=4,"),
        "{annotations}"
    );
}

#[test]
fn explain_lists_rules_and_shows_one() {
    let folder = Folder::new();
    let list = folder.run(&["explain"]);
    for rule in [
        "mem/uncoalesced",
        "smem/bank-conflict",
        "div/tid-branch",
        "launch/impossible",
    ] {
        assert!(
            list.out
                .lines()
                .any(|line| line.split_whitespace().next() == Some(rule)),
            "{rule}"
        );
        let page = folder.run(&["explain", rule]);
        assert_eq!(page.code, 0);
        assert!(
            page.out.contains(rule) && page.out.lines().count() > 10,
            "{rule}"
        );
    }
}

#[test]
fn gpus_have_figures_with_sources() {
    let folder = Folder::new();
    let list = folder.run(&["gpus"]).out;
    assert!(
        list.contains("a100-sxm4-40gb") && list.contains("gtx-280"),
        "{list}"
    );
    let document = folder.run(&["gpus", "--format", "json"]).json();
    for gpu in document["gpus"].as_array().expect("gpus") {
        let figures = gpu["figures"].as_object().expect("figures");
        assert!(figures.len() > 20, "{}", gpu["id"]);
        for (name, figure) in figures {
            let source = figure["source"].as_str().unwrap_or_default();
            assert!(!source.trim().is_empty(), "{}: {name}", gpu["id"]);
        }
    }
    let one = folder
        .run(&["gpus", "a100-sxm4-40gb", "--format", "json"])
        .json();
    assert_eq!(one["gpus"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["gpus"][0]["figures"]["sms"]["value"], 108);

    // A100: 64 lanes of single precision, 16 of special functions, results after 4 and 18 cycles.
    let instructions = &one["gpus"][0]["instructions"];
    assert_eq!(instructions["ffma"]["issue"], 0.5);
    assert_eq!(instructions["ffma"]["latency"], 4.0);
    assert_eq!(instructions["mufu"]["issue"], 2.0);
    assert_eq!(instructions["mufu"]["latency"], 18.0);
    assert_eq!(instructions["imad"]["latency"], 3.0);
    assert_eq!(instructions["hmma"]["issue"], 2.0);
    assert_eq!(instructions["ldg"], serde_json::Value::Null);
    let page = folder.run(&["gpus", "gtx-280"]).out;
    assert!(
        page.lines()
            .any(|line| line.split_whitespace().eq(["dfma", "32", "48"])),
        "{page}"
    );
}

#[test]
fn gpus_are_listed_by_vendor_and_architecture() {
    let folder = Folder::new();
    let list = folder.run(&["gpus"]).out;
    let line = |start: &str| {
        let found = list
            .lines()
            .position(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("{start}: {list}"))
    };
    // What an architecture's GPUs share comes above them, once.
    let shared = list.lines().nth(line("nvidia sm_86")).expect("a line");
    for part in ["48 warps of 32", "100 KiB shared memory", "128 FP32 lanes"] {
        assert!(shared.contains(part), "{shared}");
    }
    assert_eq!(list.matches("nvidia sm_86").count(), 1, "{list}");
    // From the oldest to the newest, vendor by vendor.
    let order = [
        "nvidia sm_10",
        "nvidia sm_90",
        "h100-sxm5",
        "nvidia sm_100",
        "b200",
        "amd gfx803",
        "amd gfx90a",
        "mi250x",
        "amd gfx1030",
        "intel xe-hpg",
        "arc-a770",
    ];
    let places = order.map(line);
    assert!(places.is_sorted(), "{places:?} {list}");
    let a40 = list.lines().nth(line("a40 ")).expect("a row");
    let cells: Vec<&str> = a40.split_whitespace().collect();
    assert!(
        cells.ends_with(&["84", "1740", "696", "6", "MiB", "37.42"]),
        "{a40}"
    );
    assert!(
        list.lines().all(|line| line.chars().count() <= 110),
        "{list}"
    );
}

const MINE: &str = include_str!("../../../../hw-profiles/a100-sxm4-40gb.toml");

#[test]
fn profiles_of_the_workspace_and_the_user_stand_over_the_built_in_ones() {
    let folder = Folder::with(
        "src/k.cu",
        "__global__ void k(float *a) { a[threadIdx.x] = 0; }\n",
    );
    let own = MINE.replace("a100-sxm4-40gb", "our-a100");
    folder.write(".warplens/profiles/our.toml", &own);
    let settings = Folder::with(
        "warplens/profiles/a.toml",
        MINE.replace("value = 108", "value = 7"),
    );
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_warplens"))
            .args(arguments)
            .current_dir(folder.path())
            .env("XDG_CONFIG_HOME", settings.path())
            .env("APPDATA", settings.path())
            .output();
        Run::new(&output.expect("warplens runs"))
    };
    let sms = |id: &str| {
        let document = run(&["gpus", id, "--format", "json"]).json();
        document["gpus"][0]["figures"]["sms"]["value"].clone()
    };
    assert_eq!(
        (sms("our-a100"), sms("a100-sxm4-40gb")),
        (108.into(), 7.into())
    );
    // Files below the workspace know its profiles, from any folder.
    let document = run(&[
        "estimate", "src/k.cu", "--gpu", "our-a100", "--format", "json",
    ])
    .json();
    assert_eq!(document["results"][0]["gpu"], "our-a100");
    assert_eq!(run(&["check", "src", "--gpu", "our-a100"]).code, 0);

    // A broken one is reported at its position; the rest works.
    folder.write(
        ".warplens/profiles/our.toml",
        own.replace("value = 108", "value = 0"),
    );
    let document = run(&["check", "src", "--format", "json"]).json();
    let invalid = of_rule(&document, "config/invalid");
    assert_eq!(invalid.len(), 1, "{document:#}");
    assert_eq!(invalid[0]["file"], ".warplens/profiles/our.toml");
    assert_eq!(
        (&invalid[0]["line"], &invalid[0]["column"]),
        (&8.into(), &17.into())
    );
    let message = invalid[0]["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("sms: must be a whole number from 1"),
        "{message}"
    );
    let list = run(&["gpus"]);
    assert!(list.code == 0 && list.out.contains("h100-sxm5"), "{list:?}");
    assert!(list.err.contains("our.toml:8:17: sms: must be"), "{list:?}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_warplens"))
        .args(["gpus", "--format", "json"])
        .current_dir(folder.path())
        .env("XDG_CONFIG_HOME", folder.settings())
        .env("APPDATA", folder.settings())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("warplens runs");
    // Far more is written than a pipe holds.
    drop(child.stdout.take());
    let mut complaint = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut complaint)
        .expect("text");
    assert_eq!(child.wait().expect("ends").code(), Some(0), "{complaint}");
    assert_eq!(complaint, "");
}
