//! `warplens diff`: two versions side by side.

use std::process::Command;

use serde_json::Value;

use crate::Folder;

const ROWS: &str = "// warplens: block=256 grid=4096
__global__ void rows(const float *a, float *b) {
    int i = blockIdx.x * 256 + threadIdx.x;
    b[i] = a[i];
}
";

const OTHER: &str = "// warplens: block=128 grid=64
__global__ void other(float *a) { a[blockIdx.x * 128 + threadIdx.x] = 0.0f; }
";

/// The same kernel, each access in more sectors.
fn strided() -> String {
    ROWS.replace("a[i];", "a[i * 16];")
}

fn document(folder: &Folder, arguments: &[&str]) -> Value {
    let mut all = vec!["diff"];
    all.extend(arguments);
    all.extend(["--format", "json"]);
    let run = folder.run(&all);
    assert!(run.code != 2, "{}", run.err);
    serde_json::from_str(&run.out).expect("JSON")
}

fn git(folder: &Folder, arguments: &[&str]) {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.c",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .expect("git runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn a_kernel_that_became_slower_fails_and_one_that_says_why_does_not() {
    let folder = Folder::new();
    folder.write("old/k.cu", format!("{ROWS}{OTHER}"));
    folder.write("new/k.cu", format!("{}{OTHER}", strided()));
    let diff = document(&folder, &["old", "new"]);
    let kernels = diff["kernels"].as_array().expect("kernels");
    assert_eq!(kernels.len(), 2, "{diff}");
    let rows = &kernels[0];
    assert_eq!(rows["kernel"], "rows");
    assert!(
        rows["slowdown"]
            .as_f64()
            .is_some_and(|slowdown| slowdown > 1.2),
        "{rows}"
    );
    let sectors = |side: &str| rows[side]["global_transactions"].as_f64().expect("known");
    assert!(sectors("after") > 4.0 * sectors("before"), "{rows}");
    assert_eq!(rows["regression"], false, "nothing was said of failing");
    assert_eq!(diff["diagnostics"]["removed"], Value::Array(Vec::new()));
    assert_eq!(diff["diagnostics"]["added"][0]["rule"], "mem/strided");

    let strict = ["diff", "old", "new", "--fail-on-regression", "10"];
    let run = folder.run(&strict);
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.out.contains("slower than allowed"), "{}", run.out);
    assert!(run.out.contains("1 kernel unchanged"), "{}", run.out);

    let said = format!(
        "// warplens: slower(rows are written by another kernel now)\n{}{OTHER}",
        strided()
    );
    folder.write("new/k.cu", said);
    let run = folder.run(&strict);
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(
        run.out
            .contains("may be slower: rows are written by another kernel now"),
        "{}",
        run.out
    );
    // The other way round it is faster.
    let run = folder.run(&["diff", "new", "old", "--fail-on-regression", "0"]);
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(run.out.contains("1 kernel faster"), "{}", run.out);
}

#[test]
fn kernels_that_moved_came_or_went_are_told_apart() {
    let folder = Folder::new();
    folder.write("old/a.cu", ROWS);
    folder.write("old/b.cu", OTHER);
    folder.write("new/c.cu", ROWS);
    folder.write("new/d.cu", OTHER.replace("other", "another"));
    let diff = document(&folder, &["old", "new"]);
    let of = |name: &str| {
        let mut kernels = diff["kernels"].as_array().expect("kernels").iter();
        kernels
            .find(|one| one["kernel"] == name)
            .unwrap_or_else(|| panic!("{name}: {diff}"))
    };
    assert_eq!(
        (&of("rows")["file"], &of("rows")["moved_from"]),
        (&"c.cu".into(), &"a.cu".into())
    );
    assert_eq!(of("rows")["slowdown"], 1.0);
    assert!(of("other")["after"].is_null() && of("another")["before"].is_null());
}

#[test]
fn revisions_are_compared_with_what_lies_there_and_nothing_of_them_is_run() {
    let folder = Folder::new();
    git(&folder, &["init", "-q"]);
    folder.write("src/k.cu", "#include \"../scale.h\"\n".to_owned() + ROWS);
    folder.write("scale.h", "#define SCALE 1\n");
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "one"]);
    folder.write(
        "src/k.cu",
        "#include \"../scale.h\"\n".to_owned() + &strided(),
    );
    // What would be run by a git that trusts the repository.
    let touched = folder.path().join("touched");
    git(
        &folder,
        &[
            "config",
            "core.fsmonitor",
            &format!("touch {}", touched.display()),
        ],
    );

    let diff = document(&folder, &["HEAD"]);
    assert_eq!(diff["kernels"][0]["file"], "src/k.cu");
    assert!(
        diff["kernels"][0]["slowdown"]
            .as_f64()
            .is_some_and(|slowdown| slowdown > 1.2),
        "{diff}"
    );
    let alone = document(&folder, &["HEAD", "src/k.cu"]);
    assert_eq!(alone["kernels"][0]["file"], "k.cu");
    assert_eq!(
        alone["kernels"][0]["slowdown"],
        diff["kernels"][0]["slowdown"]
    );
    assert!(!touched.exists());

    git(
        &folder,
        &[
            "-c",
            "core.fsmonitor=false",
            "commit",
            "-q",
            "-a",
            "-m",
            "two",
        ],
    );
    let both = document(
        &folder,
        &["HEAD~1", "HEAD", "--gpu", "t4", "--gpu", "v100-sxm2-16gb"],
    );
    let gpus: Vec<&str> = both["kernels"]
        .as_array()
        .expect("kernels")
        .iter()
        .filter_map(|one| one["gpu"].as_str())
        .collect();
    assert_eq!(gpus, ["t4", "v100-sxm2-16gb"]);
    let same = folder.run(&["diff", "HEAD", "HEAD"]);
    assert_eq!(same.out, "1 kernel unchanged\n");
}

#[test]
fn what_cannot_be_compared_is_one_line() {
    let folder = Folder::with("k.cu", ROWS);
    for arguments in [
        &["diff", "nowhere"][..],
        &["diff", "k.cu", "k.cu", "--fail-on-regression", "much"],
        &["diff", "k.cu", "k.cu", "--gpu", "t5"],
        &["diff", "--upload-pack=touch x"],
    ] {
        let run = folder.run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.out);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    }
    // The later version is by default the current folder, with which no file is compared.
    for arguments in [&["diff", "k.cu"][..], &["diff", ".", "k.cu"]] {
        folder.run(arguments).refused(&[
            "`k.cu` is a file and `.` a folder",
            "warplens diff HEAD k.cu",
        ]);
    }
}

#[test]
fn a_pull_request_gets_markdown() {
    let folder = Folder::new();
    folder.write("old.cu", ROWS);
    folder.write("new.cu", strided());
    let run = folder.run(&["diff", "old.cu", "new.cu", "--format", "markdown"]);
    assert!(run.out.starts_with("### "), "{}", run.out);
    assert!(
        run.out.contains("| rows |") && run.out.contains("mem/strided"),
        "{}",
        run.out
    );
}

/// A program of several files that depend on each other in every way.
const PROGRAM: [(&str, &str); 8] = [
    ("a/scale.h", "#define SCALE 4\n"),
    (
        "a/kernels.cuh",
        "#include \"scale.h\"\n__global__ void shared_by(float *a) { a[(blockIdx.x * 64 + threadIdx.x) * SCALE] = 0.0f; }\n",
    ),
    (
        "a/main.cu",
        "#include \"kernels.cuh\"\nint main() { float *a; shared_by<<<32, 64>>>(a); }\n",
    ),
    (
        "a/far.cu",
        "__global__ void far(float *a) { a[blockIdx.x * blockDim.x + threadIdx.x] = 0.0f; }\n",
    ),
    (
        "b/launch.cu",
        "extern __global__ void far(float *a);\nvoid go(float *a) { far<<<1024, 512>>>(a); }\n",
    ),
    (
        "b/width.cu",
        "const int WIDTH = 32;\n__device__ float load(const float *p, int i) { return p[i * 8]; }\n",
    ),
    (
        "b/uses.cu",
        "extern __device__ float load(const float *p, int i);\n\
         __global__ void uses(float *a) { __shared__ float t[WIDTH * 33]; t[threadIdx.x * WIDTH] = load(a, threadIdx.x); a[0] = t[0]; }\n",
    ),
    (
        "c/alone.cu",
        "__global__ void alone(float *a) { a[threadIdx.x * 2] = 0.0f; }\nvoid run(float *a) { alone<<<8, 256>>>(a); }\n",
    ),
];

/// What an edit puts in whose place, in which file.
const EDITS: [(&str, &str, &str); 9] = [
    ("a/scale.h", "SCALE 4", "SCALE 8"),
    ("a/kernels.cuh", "* SCALE", "* 1"),
    ("a/main.cu", "<<<32, 64>>>", "<<<32, 128>>>"),
    ("a/far.cu", "blockDim.x +", "blockDim.x + 1 +"),
    ("b/launch.cu", "<<<1024, 512>>>", "<<<64, 128>>>"),
    ("b/width.cu", "WIDTH = 32", "WIDTH = 16"),
    ("b/width.cu", "i * 8", "i"),
    ("b/uses.cu", "a[0] = t", "a[threadIdx.x * 4] = t"),
    ("c/alone.cu", "* 2", "* 16"),
];

#[test]
fn what_is_not_looked_at_again_is_what_it_would_be() {
    // A file that nothing depends on, and one whose difference makes everything be looked at again.
    for chosen in 0..EDITS.len() + 2 {
        let folder = Folder::new();
        for side in ["old", "new"] {
            for (name, text) in PROGRAM {
                let mut text = text.to_owned();
                for (at, (file, from, to)) in EDITS.into_iter().enumerate() {
                    let made = at == chosen || chosen == EDITS.len() && at % 4 == 0;
                    if side == "new" && file == name && made {
                        assert!(text.contains(from), "{file}: {from}");
                        text = text.replacen(from, to, 1);
                    }
                }
                let gone = side == "old" && chosen == EDITS.len() + 1 && name == "b/launch.cu";
                if !gone {
                    folder.write(&format!("{side}/{name}"), text);
                }
            }
        }
        let quick = document(&folder, &["old", "new"]);
        for side in ["old", "new"] {
            folder.write(&format!("{side}/warplens.toml"), format!("# {side}\n"));
        }
        let whole = document(&folder, &["old", "new"]);
        assert_eq!(quick, whole, "edit {chosen}");
        let mut kernels = whole["kernels"].as_array().expect("kernels").iter();
        assert!(
            kernels.any(|kernel| kernel["before"] != kernel["after"]),
            "edit {chosen} changes nothing: {whole}"
        );
    }
}
