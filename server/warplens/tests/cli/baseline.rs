//! `warplens check --baseline`: only new findings are told.

use serde_json::Value;

use crate::Folder;

const STRIDED: &str = "// warplens: block=256 grid=4096
__global__ void scale(float *a) {
    a[(blockIdx.x * 256 + threadIdx.x) * 8] = 1.0f;
}
";

fn findings(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["check", ".", "--format", "json"];
    all.extend(arguments);
    let run = folder.run(&all);
    let document: Value = serde_json::from_str(&run.out).expect("JSON");
    document["diagnostics"].as_array().expect("a list").clone()
}

#[test]
fn findings_of_the_baseline_neither_show_nor_fail_and_a_new_one_does() {
    let folder = Folder::with("k.cu", STRIDED);
    let strict = ["check", ".", "--fail-on", "hint"];
    assert_eq!(folder.run(&strict).code, 1);
    let before = findings(&folder, &[]);
    assert!(!before.is_empty());

    let run = folder.run(&["check", ".", "--write-baseline", "known.json"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""));
    let wanted = format!("{} finding", before.len());
    assert!(run.err.contains(&wanted), "{}", run.err);
    let known = [&strict[..], &["--baseline", "known.json"]].concat();
    let run = folder.run(&known);
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(run.out.contains("of the baseline hidden"), "{}", run.out);

    // The old one has moved and still matches; the new one is on a line of its own.
    let text = format!(
        "\n\n{}",
        STRIDED.replace(
            "}\n",
            "    a[(blockIdx.x * 256 + threadIdx.x) * 9 + 3] = 2.0f;\n}\n"
        )
    );
    folder.write("k.cu", text);
    assert_eq!(folder.run(&known).code, 1);
    let new = findings(&folder, &["--baseline", "known.json"]);
    let lines: Vec<&Value> = new.iter().map(|one| &one["line"]).collect();
    assert!(
        !lines.is_empty() && lines.iter().all(|line| **line == 6),
        "{new:?}"
    );
}

#[test]
fn a_baseline_holds_wherever_the_command_is_run_and_says_what_is_gone() {
    let folder = Folder::new();
    folder.write("src/k.cu", STRIDED);
    let run = folder.run(&["check", "src", "--write-baseline", "known.json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let inside = folder.path().join("src").join("k.cu");
    let run = folder.run(&[
        "check",
        inside.to_str().expect("a path"),
        "--baseline",
        "known.json",
        "--fail-on",
        "hint",
    ]);
    assert_eq!(run.code, 0, "{}", run.out);

    folder.write("src/k.cu", STRIDED.replace(" * 8]", "]"));
    let run = folder.run(&["check", "src", "--baseline", "known.json"]);
    assert!(run.out.contains("no longer found"), "{}", run.out);
}

#[test]
fn what_is_no_baseline_is_refused_in_a_line() {
    let folder = Folder::with("k.cu", STRIDED);
    folder.write("junk.json", "{\"schema\": 3}");
    folder.write(
        "other.json",
        "{\"schema\":\"warplens.baseline/9\",\"findings\":[]}",
    );
    for (file, says) in [
        ("missing.json", "cannot read"),
        ("junk.json", "not a baseline"),
        ("other.json", "warplens.baseline/9"),
    ] {
        let run = folder.run(&["check", ".", "--baseline", file]);
        assert_eq!(run.code, 2, "{file}");
        assert!(run.err.contains(says), "{file}: {}", run.err);
    }
}
