//! `warplens report` and `warplens replay`.

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
        .refused(&["line 1 is no recorded message"]);
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
