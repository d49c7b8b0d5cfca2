//! Names that act on a terminal, a page or a runner, and links that leave a project.
#![cfg(unix)]

use std::os::unix::fs::symlink;

use crate::Folder;

/// A loss, a finding, and a kernel for the table.
const KERNEL: &str = "// warplens: block=256 grid=64\n\
    __global__ void copy(float *out, const float *in) {\n    \
    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
    out[i] = in[32 * i] + not_known(i);\n}\n";

const NAMES: [&str; 7] = [
    "line\n::error file=x::made up.cu",
    "escape\u{1b}[31m\u{1b}]0;title\u{7}.cu",
    "turned\u{202e}uc.cu",
    "isolated\u{2066}\u{2028}.cu",
    "<img src=x>.cu",
    "a](http:b).cu",
    "back`tick|cell.cu",
];

/// Characters that act: of what reaches a terminal, a log or a page only the ends of lines.
#[track_caller]
fn harmless(what: &str, text: &str) {
    let acts = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.chars().any(|c| acts(&c)), "{what}: {text:?}");
    let own_line = text.lines().any(|line| line.starts_with("::error file=x"));
    assert!(!own_line, "{what}: {text}");
}

#[test]
fn names_of_files_act_in_no_output() {
    let folder = Folder::new();
    for name in NAMES {
        folder.write(name, KERNEL);
    }
    let options: [&[&str]; 5] = [
        &["check", ".", "--show", "hint"],
        &["check", ".", "--stats", "--losses", "--no-fixes"],
        &["check", ".", "--format", "github"],
        &["check", ".", "--diff"],
        &["program", "."],
    ];
    for options in options {
        let run = folder.run(options);
        harmless(&options.join(" "), &run.out);
        harmless(&options.join(" "), &run.err);
    }
    for name in NAMES {
        let options = ["estimate", name];
        let run = folder.run(&options);
        harmless(name, &run.out);
        harmless(name, &run.err);
        let missing = format!("no-{name}");
        let run = folder.run(&["estimate", &missing]);
        assert_eq!(run.code, 2, "{run:?}");
        harmless(name, &run.err);
        assert_eq!(run.err.lines().count(), 1, "{run:?}");
    }
    // JSON has a name as it is; what is read by people besides is harmless.
    let run = folder.run(&["check", ".", "--format", "gitlab"]);
    let report = run.json();
    let report = report.as_array().expect("a list");
    assert!(report.len() >= NAMES.len(), "{}", report.len());
    for finding in report {
        let description = finding["description"].as_str().expect("words");
        harmless("gitlab", description);
        let path = finding["location"]["path"].as_str().expect("a path");
        assert!(NAMES.contains(&path), "{path:?}");
    }
}

#[test]
fn names_of_files_are_no_markup_of_a_pull_request() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("before")).expect("a folder");
    for name in NAMES {
        folder.write(&format!("after/{name}"), KERNEL);
    }
    for format in ["markdown", "human"] {
        let run = folder.run(&["diff", "before", "after", "--format", format]);
        harmless(format, &run.out);
        if format == "markdown" {
            assert!(
                !run.out.contains("<img") && !run.out.contains("](http"),
                "{}",
                run.out
            );
            assert!(run.out.contains("&lt;img"), "{}", run.out);
        }
    }
}

/// A kernel in a project, and a program that launches it.
fn projects() -> Folder {
    let folder = Folder::new();
    folder.write("own/.git/HEAD", "");
    folder.write("beside/.git/HEAD", "");
    folder.write(
        "own/k.cu",
        "__global__ void copy(float *out, const float *in) {\n    \
         out[threadIdx.x] = in[threadIdx.x];\n}\n",
    );
    folder
}

const PROGRAM: &str = "#include \"k.cu\"\n\
    int main() {\n    float *a, *b;\n    cudaMalloc(&a, 4096);\n    cudaMalloc(&b, 4096);\n    \
    copy<<<7, 96>>>(a, b);\n}\n";

#[test]
fn a_program_behind_a_link_that_leaves_the_project_launches_nothing_here() {
    let folder = projects();
    folder.write("beside/main.cu", PROGRAM);
    symlink("../beside/main.cu", folder.path().join("own/main.cu")).expect("a link");
    let block = |folder: &Folder| {
        let document = folder
            .run(&["estimate", "own/k.cu", "--format", "json"])
            .json();
        let launch = &document["results"][0]["launch"];
        (launch["block"][0].as_u64(), launch["block_source"].clone())
    };
    let (_, source) = block(&folder);
    assert_eq!(source, "assumed");
    // The same program inside, behind a link too.
    let folder = projects();
    folder.write("own/inner/deep/main.txt", PROGRAM);
    symlink("inner/deep/main.txt", folder.path().join("own/main.cu")).expect("a link");
    let (threads, source) = block(&folder);
    assert_eq!(threads, Some(96), "{source}");
}

/// A kernel whose stride a header beside its project decides, as JSON says it.
fn beside_a_secret(include: &str) -> Folder {
    let folder = Folder::new();
    folder.write("secret.h", "#define STRIDE 32\n");
    folder.write("own/.git/HEAD", "");
    folder.write(
        "own/src/copy.cu",
        format!(
            "#include \"{include}\"\n#ifndef STRIDE\n#define STRIDE 1\n#endif\n\
             __global__ void copy(float *out, const float *in) {{\n    \
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n    out[i] = in[STRIDE * i];\n}}\n"
        ),
    );
    folder
}

#[test]
fn an_include_leads_out_of_the_project_only_where_the_command_line_lets_it() {
    let linked = beside_a_secret("link.h");
    symlink("../../secret.h", linked.path().join("own/src/link.h")).expect("a link");
    let dots = beside_a_secret("../../secret.h");
    for folder in [linked, dots] {
        let strided = |options: &[&str]| {
            let run = folder.run(&[&["check", "--show", "hint"], options].concat());
            run.out.contains("mem/strided")
        };
        // Whether the file is named, its folder or its project.
        for place in ["own/src/copy.cu", "own/src", "own"] {
            assert!(!strided(&[place]), "{place}");
            assert!(strided(&[place, "--includes-outside-workspace"]), "{place}");
            assert!(strided(&[place, "-I", "."]), "{place}");
        }
        // What is checked is read whole.
        assert!(strided(&["."]));
        let estimate = folder.run(&["estimate", "own/src/copy.cu", "--format", "json"]);
        let missing = estimate.json()["missing_includes"].to_string();
        assert!(
            missing.contains("outside the workspace")
                && missing.contains("--includes-outside-workspace"),
            "{missing}"
        );
    }
}

#[test]
fn a_folder_that_is_checked_alone_reads_the_headers_of_its_project() {
    let folder = beside_a_secret("../include/stride.h");
    folder.write("own/include/stride.h", "#define STRIDE 32\n");
    for place in ["own/src/copy.cu", "own/src"] {
        let run = folder.run(&["check", "--show", "hint", place]);
        assert!(run.out.contains("mem/strided"), "{place}: {}", run.out);
    }
}

/// Code that carries what acts wherever it is quoted: in names, assembly, options and names of headers.
const ACTING: &str = "#include \"no\u{1b}[31m\u{202e}.h\"\n\
    __global__ void copy(float *out\u{202e}, const float *in, int n) {\n    \
    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
    asm volatile(\"none\u{1b}[31m\u{7}\u{202e} %0;\" :: \"r\"(i));\n    \
    if (i < n) out\u{202e}[i * 32] = in[i] + no\u{202e}(i);\n}\n\
    int main() {\n    float *a, *b;\n    cudaMalloc(&a, 4096);\n    cudaMalloc(&b, 4096);\n    \
    copy<<<1, 32>>>(a, b, atoi(\"3\u{1b}[31m\"));\n}\n";

#[test]
fn what_a_project_spells_acts_in_no_output() {
    let folder = Folder::new();
    folder.write("k.cu", ACTING);
    folder.write(
        "warplens.toml",
        "[rules]\n\"mem/none\\u001b[31m\\u202e\" = \"off\"\n\"none\\u0007\\u202e\" = 3\n\
         [defines]\n\"A\\u001b[31m\" = \"\\u202e\"\n",
    );
    let options: [&[&str]; 13] = [
        &["check", ".", "--show", "hint", "--stats", "--losses"],
        &["check", ".", "--format", "json"],
        &["check", ".", "--format", "sarif"],
        &["check", ".", "--format", "github"],
        &["check", ".", "--format", "gitlab"],
        &["estimate", "k.cu"],
        &["estimate", "k.cu", "--format", "json"],
        &["program", "."],
        &["program", ".", "--format", "json"],
        &["program", ".", "--format", "html"],
        &["report", "k.cu"],
        &["doctor"],
        &["estimate", "k.cu", "--kernel", "no\u{1b}[31m\u{202e}"],
    ];
    for options in options {
        let run = folder.run(options);
        assert!(!(run.out.is_empty() && run.err.is_empty()), "{options:?}");
        harmless(&options.join(" "), &run.out);
        harmless(&options.join(" "), &run.err);
    }
}
