//! Bad input: a clear message at the right place, everything else still answered.

use crate::{Folder, of_rule};

const GOOD: &str = "\
__global__ void good(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}
";

const STRIDED: &str = "\
// warplens: block=256 grid=4096
__global__ void strided(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * 32];
}
";

#[test]
fn an_unknown_gpu_is_refused_with_the_closest() {
    let folder = Folder::with("k.cu", GOOD);
    for command in ["check", "estimate"] {
        folder
            .run(&[command, "k.cu", "--gpu", "a100-sxm-40gb"])
            .refused(&[
                "unknown GPU \"a100-sxm-40gb\"",
                "did you mean \"a100-sxm4-40gb\"",
            ]);
    }
    folder
        .run(&["gpus", "h100sxm3"])
        .refused(&["did you mean \"h100-sxm5\""]);
    folder
        .run(&["gpus", "h10"])
        .refused(&["did you mean \"h100-pcie\" or \"h100-sxm5\"?"]);
    folder
        .run(&["check", "k.cu", "--gpu", "h1000"])
        .refused(&["did you mean \"h100-pcie\" or \"h100-sxm5\"?"]);
    folder
        .run(&["estimate", "k.cu", "--gpu", "a100x"])
        .refused(&["did you mean \"a100-pcie-40gb\", "]);
    folder
        .run(&["estimate", "k.cu", "--gpu", "zzzzzz"])
        .refused(&["unknown GPU", "warplens gpus"]);
}

#[test]
fn an_unknown_gpu_in_the_toml_is_reported_there_and_the_rest_answered() {
    let folder = Folder::with("sub/k.cu", STRIDED);
    folder.write("warplens.toml", "compare = []\ngpu = \"a100-sxm-40gb\"\n");
    let run = folder.run(&["check", "sub", "--format", "json"]);
    assert_eq!(run.code, 1);
    let document = run.json();
    let invalid = of_rule(&document, "config/invalid");
    assert_eq!(invalid.len(), 1, "{document:#}");
    assert_eq!(invalid[0]["file"], "warplens.toml");
    assert_eq!(
        (&invalid[0]["line"], &invalid[0]["column"]),
        (&2.into(), &7.into())
    );
    assert!(
        invalid[0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("a100-sxm4-40gb"))
    );
    assert_eq!(of_rule(&document, "mem/strided").len(), 1, "{document:#}");
}

#[test]
fn a_broken_toml_is_reported_at_its_place_and_the_rest_answered() {
    for (toml, line, column) in [
        ("gpu = \"tesla-k40c\"\nassume = { n = }\n", 2, 16),
        ("gpu = \"tesla-k40c\"\n\ncolour = 3\n", 3, 1),
        ("[inlayHints]\nenable = 7\n", 2, 10),
        ("[rules]\n\"mem/stride\" = \"off\"\n", 2, 1),
    ] {
        let folder = Folder::with("k.cu", STRIDED);
        folder.write("warplens.toml", toml);
        let document = folder.run(&["check", "k.cu", "--format", "json"]).json();
        let invalid = of_rule(&document, "config/invalid");
        assert_eq!(invalid.len(), 1, "{toml}: {document:#}");
        assert_eq!(invalid[0]["file"], "warplens.toml");
        assert_eq!(invalid[0]["line"], line, "{toml}: {document:#}");
        assert_eq!(invalid[0]["column"], column, "{toml}: {document:#}");
        assert_eq!(
            of_rule(&document, "mem/strided").len(),
            1,
            "{toml}: {document:#}"
        );

        let estimate = folder.estimate(&[]);
        assert_eq!(of_rule(&estimate, "config/invalid").len(), 1, "{toml}");
        assert_eq!(estimate["results"][0]["kernel"], "strided", "{toml}");
    }
}

#[test]
fn what_is_right_in_a_toml_with_a_mistake_is_followed() {
    let folder = Folder::with("k.cu", GOOD);
    folder.write("warplens.toml", "gpu = \"tesla-k40c\"\ncolour = 3\n");
    assert_eq!(folder.estimate(&[])["results"][0]["gpu"], "tesla-k40c");
}

#[test]
fn a_block_of_two_thousand_threads_cannot_launch() {
    let folder = Folder::with("k.cu", GOOD);
    let refused = folder.run(&["estimate", "k.cu", "--block", "2000"]);
    refused.refused(&["--block 2000", "1024"]);

    folder.write("k.cu", format!("// warplens: block=2000\n{GOOD}"));
    let run = folder.run(&["check", "k.cu", "--format", "json"]);
    assert_eq!(run.code, 1);
    let document = run.json();
    let impossible = of_rule(&document, "launch/impossible");
    assert_eq!(impossible.len(), 1, "{document:#}");
    assert_eq!(impossible[0]["severity"], "error");
    let message = impossible[0]["message"].as_str().expect("words");
    assert!(
        message.contains("2,000") || message.contains("2000"),
        "{message}"
    );
    assert!(
        message.contains("1,024") || message.contains("1024"),
        "{message}"
    );
}

#[test]
fn shared_memory_over_the_limit_cannot_launch() {
    let text = "\
__global__ void k(float *out) {
    __shared__ float tile[200][200];
    tile[threadIdx.y][threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
";
    let folder = Folder::with("k.cu", text);
    let run = folder.run(&["check", "k.cu", "--format", "json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let document = run.json();
    let impossible = of_rule(&document, "launch/impossible");
    assert_eq!(impossible.len(), 1, "{document:#}");
    let message = impossible[0]["message"].as_str().expect("words");
    assert!(message.contains("shared"), "{message}");
    // 200 * 200 * 4 bytes.
    assert!(
        message.contains("160,000") || message.contains("160000"),
        "{message}"
    );
}

#[test]
fn what_is_no_text_is_reported_and_the_others_answered_with_latin_1_among_them() {
    let folder = Folder::with("k.cu", STRIDED);
    // A comment of the nineties before the same kernel: read, and every place as in the other file.
    let mut latin = b"// caf\xe9 \xa9 1998\n".to_vec();
    latin.extend_from_slice(STRIDED.as_bytes());
    folder.write("latin.cu", &latin);
    folder.write("utf16.cu", b"\xff\xfe_\0_\0");
    folder.write("program.cu", b"\x7fELF\x02\x01\x01\0\0");
    folder.write("zeros.cu", b"\0\0\0");
    let run = folder.run(&["check", ".", "--format", "json", "--stats"]);
    assert_eq!(run.code, 1, "{run:?}");
    let document = run.json();
    let unreadable = of_rule(&document, "input/unreadable");
    assert_eq!(unreadable.len(), 3, "{document:#}");
    for (finding, (file, words)) in unreadable.iter().zip([
        ("program.cu", "binary"),
        ("utf16.cu", "UTF-16"),
        ("zeros.cu", "binary"),
    ]) {
        assert_eq!(finding["file"], file);
        let message = finding["message"].as_str().expect("words");
        assert!(message.contains(words), "{message}");
    }
    let strided = of_rule(&document, "mem/strided");
    let place = |at: usize| {
        let number = |key: &str| strided[at][key].as_u64().expect("a number");
        (number("line"), number("column"))
    };
    assert_eq!(strided.len(), 2, "{document:#}");
    assert_eq!(place(1), (place(0).0 + 1, place(0).1));
    assert_eq!(document["stats"]["files"], 5);
    assert_eq!(document["stats"]["unreadable_files"], 3);
    folder
        .run(&["estimate", "program.cu"])
        .refused(&["program.cu: is binary, not source text"]);
}

#[test]
fn status_2_only_where_nothing_could_be_read() {
    let folder = Folder::with("utf16.cu", b"\xff\xfe_\0");
    folder.write("k.cu", GOOD);
    let run = folder.run(&["check", "utf16.cu"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(run.err.lines().count(), 1, "{run:?}");
    assert!(run.err.contains("utf16.cu"), "{run:?}");
    let run = folder.run(&["check", "nowhere.cu", "k.cu", "--format", "json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(
        of_rule(&run.json(), "input/unreadable")[0]["file"],
        "nowhere.cu"
    );
    folder
        .run(&["estimate", "nowhere.cu"])
        .refused(&["nowhere.cu: no such file or folder"]);
    folder.run(&["estimate", "."]).refused(&["is a folder"]);
    let empty = Folder::new();
    assert_eq!(empty.run(&["check", "."]).code, 0);
}

#[test]
fn half_typed_kernels_lose_only_themselves() {
    let folder = Folder::new();
    // As a keyboard leaves them: every prefix of a kernel, before a whole one.
    let mut kernels = 0;
    for end in (0..STRIDED.len()).step_by(7) {
        folder.write("k.cu", format!("{GOOD}\n{}", &STRIDED[..end]));
        let run = folder.run(&["estimate", "k.cu", "--format", "json"]);
        let results = run.json();
        let names = results["results"].as_array().expect("results");
        assert!(
            names.iter().any(|result| result["kernel"] == "good"),
            "{end}: {run:?}"
        );
        kernels += names.len();
    }
    assert!(kernels > 0);
}

#[test]
fn nonsense_is_answered_without_a_panic() {
    let deep = format!(
        "__global__ void k(int *p) {{ p[{}0{}] = 1; }}",
        "(".repeat(2000),
        ")".repeat(2000)
    );
    let blocks = format!(
        "__global__ void k() {{ {}{} }}",
        "{".repeat(3000),
        "}".repeat(3000)
    );
    for text in [
        "",
        "\u{feff}",
        "__global__",
        "__global__ void",
        "__global__ void k(",
        "__global__ void k() {",
        "}}}}",
        "#if",
        "#define X X\n__global__ void k() { X; }",
        "__global__ void k(int n, float *p) { p[n / 0] = 1 % 0 << 99; }",
        "__global__ void k(float *p) { for (;;) p[threadIdx.x] = 1; }",
        "k<<<>>>();",
        "__global__ void k() { __shared__ float a[-1]; a[9223372036854775807] = 1; }",
        &deep,
        &blocks,
    ] {
        let folder = Folder::with("k.cu", text);
        let run = folder.run(&["check", "k.cu", "--format", "json"]);
        run.json();
        let run = folder.run(&["estimate", "k.cu", "--format", "json"]);
        run.json();
    }
}

#[test]
fn an_unknown_kernel_is_refused_with_those_there_are() {
    let folder = Folder::with("k.cu", GOOD);
    folder
        .run(&["estimate", "k.cu", "--kernel", "goood"])
        .refused(&["unknown kernel \"goood\"", "did you mean \"good\""]);
}
