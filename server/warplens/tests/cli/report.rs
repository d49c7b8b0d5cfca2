//! `warplens report` and `warplens replay`.

use std::fmt::Write as _;

use crate::Folder;

const KERNEL: &str = "// warplens: block=256 grid=4096
__global__ void scale(float *a) { a[(blockIdx.x * 256 + threadIdx.x) * 2] *= 2.0f; }
";

#[test]
fn a_report_is_one_page_without_scripts_or_the_network() {
    let folder = Folder::with("k.cu", KERNEL);
    let run = folder.run(&[
        "report",
        "k.cu",
        "-o",
        "k.html",
        "--gpu",
        "t4",
        "--gpu",
        "h100-sxm5",
    ]);
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
    let page = std::fs::read_to_string(folder.path().join("k.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for part in ["scale", "t4", "h100-sxm5", "mem/strided"] {
        assert!(page.contains(part), "{part}");
    }
    for bad in ["<script", "http://", "src="] {
        assert!(!page.contains(bad), "{bad}");
    }
    let run = folder.run(&["report", "k.cu", "-o", "k.md"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let page = std::fs::read_to_string(folder.path().join("k.md")).expect("a page");
    assert!(page.contains("scale") && !page.contains("<html"), "{page}");
}

/// Every tag that is opened is closed in order, every attribute is quoted, and no name is used twice.
#[track_caller]
fn well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    let mut rest = page
        .strip_prefix("<!DOCTYPE html>")
        .expect("a document type");
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("the end of a tag");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next();
        let name = name.expect("a name");
        let letters = |c: char| c.is_ascii_alphanumeric();
        assert!(!name.is_empty() && name.chars().all(letters), "<{tag}>");
        if tag.starts_with('/') {
            assert_eq!(
                open.pop(),
                Some(name),
                "</{name}> before {}",
                &rest[..rest.len().min(200)]
            );
        } else {
            assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
            if let Some((_, id)) = tag.split_once(" id=\"") {
                let id = id.split('"').next().expect("its end");
                assert!(ids.insert(id.to_owned()), "{id} twice");
            }
            if !tag.ends_with('/') && name != "meta" {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_report_of_ten_kernels_is_well_formed_self_contained_and_below_a_mebibyte() {
    let folder = Folder::new();
    let kernels = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let read = |name: &str| std::fs::read_to_string(kernels.join(name)).expect("a kernel's file");
    for name in ["harness.cuh", "transpose.cu", "matmul.cu"] {
        folder.write(name, read(name));
    }
    let mut text = read("transpose.cu");
    for number in 0..7 {
        // Loops, branches, shared memory, special functions and every way to lose bandwidth.
        let _ = write!(
            text,
            "__global__ void more{number}(float *out, const float *in, const int *at, int n) {{\n\
             __shared__ float tile[32][32];\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    float sum = 0;\n\
             for (int k = 0; k < n; k++) sum += in[i * n + k] * sinf(in[k * n + i + {number}]);\n\
             tile[threadIdx.x % 32][threadIdx.x / 32] = sum;\n    __syncthreads();\n\
             if (threadIdx.x % 2) sum += tile[threadIdx.x % 32][{number}]; else sum -= in[at[i]];\n\
             out[i * 17] = sum;\n}}\n"
        );
    }
    folder.write("ten.cu", text);
    let run = folder.run(&["report", "ten.cu", "-o", "ten.html"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let page = std::fs::read_to_string(folder.path().join("ten.html")).expect("a page");
    well_formed(&page);
    assert_eq!(page.matches("<section id=\"k").count(), 10);
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    for outside in [
        "http:",
        "https:",
        "src=",
        "href=\"http",
        "url(//",
        "@import",
        "<link",
        "<script",
        "javascript:",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    for part in [
        "Where the cycles go",
        "Cost by line",
        "Roofline",
        "Warp scaling",
        "Occupancy",
        "Lanes of the accesses",
        "Models side by side",
        "Other GPUs",
        "Work flow graph",
        "default-src 'none'",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for unknown in ["NaN", "inf\"", "inf ", "-0.0"] {
        let drawn = page
            .split("<svg")
            .skip(1)
            .filter_map(|svg| svg.split("</svg>").next());
        assert!(
            drawn.into_iter().all(|svg| !svg.contains(unknown)),
            "{unknown}"
        );
    }
}

#[test]
fn markup_in_names_and_text_stays_text() {
    let name = "<script>alert(1)<&\"'.cu";
    let text = "// warplens: block=256 grid=64 n=64\n\
                __global__ void k(float *a, int n) { a[threadIdx.x * 2 /* <script>alert(2)</script> */] = n \
                < 3 && \"</style><script>\"[0] > 1; }\n";
    let folder = Folder::with(name, text);
    let run = folder.run(&["report", name]);
    assert_eq!(run.code, 0, "{}", run.err);
    well_formed(&run.out);
    assert!(!run.out.to_lowercase().contains("<script"), "{}", run.out);
    assert!(run.out.contains("&lt;script&gt;alert(1)"), "{}", run.out);
    assert!(run.out.contains("&lt;script&gt;alert(2)"), "{}", run.out);
}

#[test]
fn what_cannot_be_reported_or_replayed_is_one_line() {
    let folder = Folder::with("k.cu", KERNEL);
    folder.run(&["report", "none.cu"]).refused(&["none.cu"]);
    folder
        .run(&["report", "k.cu", "--gpu", "t5"])
        .refused(&["t5"]);
    folder
        .run(&["report", "k.cu", "--kernel", "nothing"])
        .refused(&["nothing"]);
    folder
        .run(&["report", "k.cu", "-o", "no/such/folder.html"])
        .refused(&["cannot write"]);
    folder
        .run(&["replay", "none.jsonl"])
        .refused(&["cannot read"]);
    folder
        .run(&["replay", "k.cu"])
        .refused(&["line 1 is not a recorded message"]);
}

#[test]
fn a_recorded_session_is_replayed_with_its_latencies() {
    let folder = Folder::new();
    let session = [
        r#"{"ms":0,"message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":1,"capabilities":{}}}}"#,
        r#"{"ms":9,"message":{"jsonrpc":"2.0","method":"initialized","params":{}}}"#,
        r#"{"ms":9999,"message":{"jsonrpc":"2.0","id":2,"method":"shutdown"}}"#,
        r#"{"ms":9999,"message":{"jsonrpc":"2.0","method":"exit"}}"#,
    ];
    folder.write("session.jsonl", session.join("\n"));
    let run = folder.run(&["replay", "session.jsonl", "--longest-pause", "10"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.out.contains("initialize") && run.out.contains("median"),
        "{}",
        run.out
    );
}
