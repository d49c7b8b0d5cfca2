//! What a person at a terminal does all day: check what is here, a pipe, some rules, one kernel, a launch; apply edits, watch.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::{Folder, Run, of_rule};

/// A transposition whose reads of shared memory conflict, and a walk with a stride under another launch.
const KERNELS: &str = "\
// warplens: block=(32,8) grid=(64,64) n=2048
__global__ void transpose(float *out, const float *in, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
// warplens: block=256 grid=4096
template <int T = 2> __global__ void strided(float *out, const float *in, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * 32 * T];
}
";

fn piped(folder: &Folder, arguments: &[&str], text: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warplens"))
        .args(arguments)
        .current_dir(folder.path())
        .env("XDG_CONFIG_HOME", folder.settings())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("warplens runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("written");
    drop(input);
    Run::new(&child.wait_with_output().expect("ended"))
}

#[test]
fn without_a_path_the_current_folder_is_checked_and_the_best_gain_comes_first() {
    let folder = Folder::with("src/k.cu", KERNELS);
    let document = folder.run(&["check", "--format", "json"]).json();
    let findings = document["diagnostics"].as_array().expect("diagnostics");
    assert!(findings.len() >= 2, "{document:#}");
    let gains: Vec<f64> = findings
        .iter()
        .map(|finding| finding["gain"].as_f64().expect("a number"))
        .collect();
    assert!(gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
    let first = folder
        .run(&["check", "--format", "json", "--top", "1"])
        .json();
    assert_eq!(first["diagnostics"][0]["message"], findings[0]["message"]);
    assert_eq!(first["diagnostics"].as_array().map(Vec::len), Some(1));
    let human = folder.run(&["check", "--top", "1"]).out;
    assert!(human.contains("--top prints 1 of 2 findings"), "{human}");
}

#[test]
fn of_the_most_findings_only_their_kernels_are_in_the_table() {
    let mut text = KERNELS.to_owned();
    for at in 0..6 {
        let kernel =
            "__global__ void plain_AT(float *a) { a[blockIdx.x * 256 + threadIdx.x] = 0; }\n";
        text += "// warplens: block=256 grid=4096\n";
        text += &kernel.replace("AT", &at.to_string());
    }
    let folder = Folder::with("k.cu", text);
    let rows = |options: &[&str]| {
        let out = folder.run(&[&["check", "k.cu"][..], options].concat()).out;
        let rows = out.lines().filter(|line| line.contains(" warps  "));
        (rows.count(), out)
    };
    assert_eq!(rows(&[]).0, 8);
    let (one, out) = rows(&["--top", "1"]);
    assert_eq!(one, 1, "{out}");
    assert!(
        out.contains("--top prints 1 of 2 findings, 1 of 8 kernels"),
        "{out}"
    );
    // The findings are of two kernels; the third is one of those that take longest.
    let (three, out) = rows(&["--top", "3"]);
    assert_eq!(three, 3, "{out}");
    for kernel in ["transpose", "strided", "plain_"] {
        assert!(out.contains(&format!("\n  {kernel}")), "{out}");
    }
    assert!(
        out.contains("--top prints 2 of 2 findings, 3 of 8 kernels"),
        "{out}"
    );
    assert_eq!(rows(&["--top", "99"]).0, 8);
    for command in [&["check", "k.cu"][..], &["sweep", "k.cu", "--configs", "-"]] {
        let refused = folder.run(&[command, &["--top", "0"]].concat());
        refused.refused(&["--top", "\"0\" is not a whole number of 1 or more"]);
    }
}

#[test]
fn of_an_estimate_the_kernels_that_take_longest_and_what_would_help_them() {
    let folder = Folder::with("k.cu", KERNELS);
    let names = |options: &[&str]| -> Vec<String> {
        let command = [&["estimate", "k.cu", "--format", "json"], options].concat();
        let document = folder.run(&command).json();
        let results = document["results"].as_array().expect("results");
        let names = results.iter().map(|one| one["kernel"].as_str());
        names.map(|name| name.expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&[]), ["transpose", "strided"]);
    assert_eq!(names(&["--top", "2"]), ["transpose", "strided"]);
    assert_eq!(names(&["--top", "1"]), ["transpose"]);
    let command = ["estimate", "k.cu", "--top", "1", "--format", "json"];
    let longest = folder.run(&command).json();
    let findings = longest["diagnostics"].as_array().expect("findings");
    assert!(findings.iter().all(|one| one["kernel"] == "transpose"));
    // The edit in place of the finding that it cures, and no cause that it takes away.
    let help = &longest["results"][0]["what_would_help"];
    assert_eq!(help[0]["kind"], "edit", "{help:#}");
    assert_eq!(help[0]["rule"], "smem/bank-conflict", "{help:#}");
    let told = help.as_array().expect("a list");
    assert!(
        told.iter().all(|one| one["factor"] != "bank-conflicts"),
        "{help:#}"
    );
    let page = folder
        .run(&["estimate", "k.cu", "--kernel", "transpose"])
        .out;
    let section = page.split("What would help").nth(1).expect("a section");
    assert!(section.contains("Pad `tile` to [32][33]"), "{page}");
}

#[test]
fn an_assumed_block_is_told_with_what_gives_it() {
    let text = "__global__ void k(float *a) { a[blockIdx.x * blockDim.x + threadIdx.x] = 0; }\n";
    let folder = Folder::with("k.cu", text);
    let assumed = folder.run(&["check", "k.cu"]).out;
    assert!(
        assumed.contains("or with --block and --grid\n"),
        "{assumed}"
    );
    let given = folder.run(&["check", "k.cu", "--block", "128", "--grid", "64"]);
    assert!(!given.out.contains("--block and --grid"), "{given:?}");
}

#[test]
fn findings_in_json_carry_kernel_time_page_and_proved_edits() {
    let folder = Folder::with("k.cu", KERNELS);
    let document = folder.run(&["check", "--format", "json"]).json();
    let conflict = of_rule(&document, "smem/bank-conflict")[0];
    assert_eq!(conflict["kernel"], "transpose");
    let estimate = folder.estimate(&["--kernel", "transpose"]);
    assert_eq!(
        conflict["time_ms"],
        estimate["results"][0]["estimates"]["auto"]["time_ms"]
    );
    let help = conflict["help"].as_str().expect("an address");
    assert!(help.ends_with("rules/smem-bank-conflict.md"), "{help}");
    let pad = &conflict["fixes"][0];
    assert!(
        pad["title"].as_str().expect("words").contains("Pad"),
        "{pad}"
    );
    assert_eq!(
        (&pad["edits"][0]["line"], &pad["edits"][0]["new_text"]),
        (&3.into(), &"33".into())
    );
    for quick in [&["--no-fixes"][..], &["--stats"]] {
        let arguments = [&["check", "--format", "json"][..], quick].concat();
        let document = folder.run(&arguments).json();
        assert!(
            document["diagnostics"][0]["fixes"].is_null(),
            "{document:#}"
        );
    }
}

#[test]
fn standard_input_is_a_file_of_its_language() {
    let folder = Folder::new();
    let run = piped(&folder, &["check", "-", "--format", "json"], KERNELS);
    let document = run.json();
    let conflict = of_rule(&document, "smem/bank-conflict")[0];
    assert_eq!(conflict["file"], "stdin.cu");
    let opencl = "__kernel void k(__global float *a) { a[get_global_id(0) * 32] = 1.0f; }\n";
    let options = ["estimate", "-", "--language", "opencl", "--format", "json"];
    let document = piped(&folder, &options, opencl).json();
    assert_eq!(document["results"][0]["language"], "opencl");
    let named = [
        "estimate",
        "-",
        "--stdin-name",
        "sub/a.cl",
        "--format",
        "json",
    ];
    let document = piped(&folder, &named, opencl).json();
    assert_eq!(document["results"][0]["file"], "sub/a.cl");
    assert_eq!(document["results"][0]["language"], "opencl");
    let report = [
        "report",
        "-",
        "--language",
        "opencl",
        "--format",
        "markdown",
    ];
    let page = piped(&folder, &report, opencl);
    assert!(page.out.contains("`a[get_global_id(0) * 32]`"), "{page:?}");
}

#[test]
fn fix_applies_what_diff_shows_and_nothing_else() {
    let folder = Folder::with("k.cu", KERNELS);
    let diff = folder.run(&["check", "--diff"]);
    assert_eq!(diff.code, 1, "{diff:?}");
    assert!(
        diff.out.contains("-    __shared__ float tile[32][32];"),
        "{}",
        diff.out
    );
    assert!(
        diff.out.contains("+    __shared__ float tile[32][33];"),
        "{}",
        diff.out
    );
    let read = || std::fs::read_to_string(folder.path().join("k.cu")).expect("the file");
    assert_eq!(read(), KERNELS, "--diff writes nothing");

    let through = piped(&folder, &["check", "-", "--fix"], KERNELS).out;
    let other = folder.run(&["check", "--fix", "--kernel", "strided"]);
    assert_eq!((other.code, read().as_str()), (0, KERNELS), "{other:?}");
    let fixed = folder.run(&["check", "--fix", "--format", "json"]);
    assert_eq!(read(), KERNELS.replace("tile[32][32]", "tile[32][33]"));
    assert_eq!(through, read());
    assert!(
        fixed.err.contains("1 finding in 1 file fixed"),
        "{}",
        fixed.err
    );
    assert_eq!(of_rule(&fixed.json(), "smem/bank-conflict").len(), 0);
    let again = folder.run(&["check", "--diff"]);
    assert_eq!((again.code, again.out.as_str()), (0, ""), "{again:?}");
}

#[test]
fn rules_are_selected_and_ignored_by_id_or_category() {
    let folder = Folder::with("k.cu", KERNELS);
    folder.write("warplens.toml", "[rules]\nsmem = \"off\"\n");
    let rules = |options: &[&str]| {
        let arguments = [&["check", "--format", "json", "--no-fixes"][..], options].concat();
        let document = folder.run(&arguments).json();
        let all = document["diagnostics"].as_array().expect("diagnostics");
        let mut rules: Vec<String> = all
            .iter()
            .map(|finding| finding["rule"].as_str().expect("a rule").to_owned())
            .collect();
        rules.dedup();
        rules
    };
    assert_eq!(rules(&["--select", "smem"]), ["smem/bank-conflict"]);
    assert_eq!(
        rules(&["--select", "mem,smem", "--ignore", "mem/strided"]),
        ["smem/bank-conflict"]
    );
    assert_eq!(rules(&["--select", "mem"]), ["mem/strided"]);
    assert!(
        !rules(&["--ignore", "mem"])
            .iter()
            .any(|rule| rule.starts_with("mem/"))
    );
    let refused = folder.run(&["check", "--select", "mem/stride"]);
    refused.refused(&["mem/strided"]);
}

#[test]
fn a_kernel_and_its_launch_are_given_as_estimate_takes_them() {
    let folder = Folder::with("k.cu", KERNELS);
    let options = [
        "check",
        "--format",
        "json",
        "--kernel",
        "transpose",
        "--block",
        "32,16",
        "--arg",
        "n=4096",
    ];
    let document = folder.run(&options).json();
    let found = document["diagnostics"].as_array().expect("diagnostics");
    assert!(
        found.iter().all(|finding| finding["kernel"] == "transpose"),
        "{document:#}"
    );
    let estimate = folder.estimate(&[
        "--kernel",
        "transpose",
        "--block",
        "32,16",
        "--arg",
        "n=4096",
    ]);
    assert_eq!(
        found[0]["time_ms"],
        estimate["results"][0]["estimates"]["auto"]["time_ms"]
    );
    let table = folder.run(&["check", "--kernel", "transpose"]).out;
    assert!(
        table.contains("transpose  ") && !table.contains("strided  "),
        "{table}"
    );
}

#[test]
fn what_no_kernel_has_is_refused_by_name_with_what_was_meant() {
    let folder = Folder::with("k.cu", KERNELS);
    for command in [&["check", "k.cu"][..], &["estimate", "k.cu"]] {
        for (options, holds) in [
            (
                &["--kernel", "transpos"][..],
                &["transpos", "\"transpose\""][..],
            ),
            (&["--arg", "nn=3"], &["\"nn\"", "\"n\""]),
            (
                &["--arg", "n=999999999999999999999"],
                &["--arg", "\"999999999999999999999\" is out of range"],
            ),
            (
                &["--block", "2048"],
                &[
                    "--block 2048",
                    "1024 threads",
                    "a100-sxm4-40gb",
                    "try --block 1024",
                ],
            ),
            (
                &["--block", "64,32"],
                &["--block 64,32", "try --block 32,32"],
            ),
        ] {
            folder.run(&[command, options].concat()).refused(holds);
        }
    }
    folder
        .run(&["estimate", "k.cu", "-T", "S=2"])
        .refused(&["template parameter \"S\"", "T"]);
    // A smaller limit of another GPU.
    folder
        .run(&[
            "estimate",
            "k.cu",
            "--gpu",
            "geforce-8800-gtx",
            "--block",
            "1024",
        ])
        .refused(&["512 threads", "try --block 512"]);
}

#[test]
fn several_files_are_one_document() {
    let folder = Folder::with("a.cu", KERNELS);
    folder.write(
        "b.cl",
        "__kernel void k(__global float *a) { a[get_global_id(0)] = 1.0f; }\n",
    );
    let kernels = |options: &[&str]| {
        let arguments = [
            &["estimate", "a.cu", "b.cl", "--format", "json"][..],
            options,
        ]
        .concat();
        let document = folder.run(&arguments).json();
        let all = document["results"].as_array().expect("results").clone();
        all.iter()
            .map(|result| format!("{}:{}", result["file"], result["kernel"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(kernels(&[]), ["a.cu:transpose", "a.cu:strided", "b.cl:k"]);
    assert_eq!(kernels(&["--kernel", "k"]), ["b.cl:k"]);
    let unknown = folder.run(&["estimate", "a.cu", "b.cl", "--kernel", "transposed"]);
    unknown.refused(&["transposed", "\"transpose\""]);
}

#[test]
fn output_goes_to_a_file_whatever_the_command() {
    let folder = Folder::with("k.cu", KERNELS);
    for arguments in [
        &["check", "--format", "json"][..],
        &["estimate", "k.cu"],
        &["gpus", "v100-sxm2-16gb"],
        &["explain", "mem/strided"],
        &["diff", "k.cu", "k.cu"],
        &["report", "k.cu", "--format", "markdown"],
        &["config", "schema"],
    ] {
        let printed = folder.run(arguments);
        let to_file = folder.run(&[arguments, &["-o", "out.txt"]].concat());
        assert_eq!(
            (to_file.code, to_file.out.as_str()),
            (printed.code, ""),
            "{arguments:?}"
        );
        let written = std::fs::read_to_string(folder.path().join("out.txt")).expect("the file");
        assert_eq!(written, printed.out, "{arguments:?}");
    }
    folder
        .run(&["check", "-o", "no/such/folder/out.txt"])
        .refused(&["cannot write no/such/folder/out.txt"]);
}

#[test]
fn lines_fit_the_terminal() {
    let folder = Folder::with("k.cu", KERNELS);
    for columns in [60, 80, 120] {
        for arguments in [
            &["check", "--show", "hint"][..],
            &["explain", "smem/bank-conflict"],
        ] {
            let output = Command::new(env!("CARGO_BIN_EXE_warplens"))
                .args(arguments)
                .current_dir(folder.path())
                .env("XDG_CONFIG_HOME", folder.settings())
                .env("COLUMNS", columns.to_string())
                .output()
                .expect("warplens runs");
            let run = Run::new(&output);
            // Source, tables and code keep their lines.
            let running = run.out.lines().filter(|line| !line.contains(" | "));
            let running = running.filter(|line| !line.starts_with([' ', '|']));
            for line in running {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }
}

#[test]
fn watch_checks_again_when_a_file_changes() {
    let folder = Folder::with("k.cu", KERNELS);
    let mut child = Command::new(env!("CARGO_BIN_EXE_warplens"))
        .args(["check", "--watch"])
        .current_dir(folder.path())
        .env("XDG_CONFIG_HOME", folder.settings())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("warplens runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    // A run ends with its summary.
    let mut run = || {
        let mut text = String::new();
        for line in lines.by_ref() {
            let line = line.expect("UTF-8");
            text.push_str(&line);
            text.push('\n');
            if line.contains(" of 1 file") {
                break;
            }
        }
        text
    };
    let before = run();
    folder.write("k.cu", KERNELS.replace("tile[32][32]", "tile[32][33]"));
    let after = run();
    child.kill().expect("ended");
    child.wait().expect("ended");
    assert!(before.contains("[smem/bank-conflict]"), "{before}");
    assert!(!after.contains("[smem/bank-conflict]"), "{after}");
    assert!(after.contains("transpose"), "{after}");
}
