//! What is not computed again: a comment that changes, a kernel that moves.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use warplens_base::{DiskFiles, OpenFiles};
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, PlacedFinding, PlacedKernel, Project};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

const TEXT: &str = "// A product.\n\
    __global__ void product(float *c, const float *a, int n) {\n\
    \x20 int i = blockIdx.x * blockDim.x + threadIdx.x; // the element\n\
    \x20 if (i < n) c[i] = a[i] * a[i]; /* squared */\n\
    }\n\
    // A copy.\n\
    __global__ void copy(float *c, const float *a) { c[threadIdx.x] = a[threadIdx.x]; }\n";

struct Session {
    engine: Engine,
    path: PathBuf,
    document: Document,
}

impl Session {
    fn new() -> Session {
        Session::of(TEXT)
    }

    fn of(text: &str) -> Session {
        Session {
            engine: Engine::new(Profiles::builtin()),
            path: PathBuf::from("k.cu"),
            document: Document::new(text, Language::Cuda),
        }
    }

    /// The same text for an engine that knows nothing yet.
    fn fresh(&self) -> Session {
        let text = self.document.rope().to_string();
        Session {
            engine: Engine::new(Profiles::builtin()),
            path: self.path.clone(),
            document: Document::new(&text, self.document.language()),
        }
    }

    /// All that is said of the text: results as JSON, and findings with their places.
    fn everything(&self) -> (String, Vec<PlacedFinding>) {
        let (settings, overrides) = (Settings::default(), Overrides::default());
        let results = self
            .engine
            .estimate(
                &self.document,
                &self.path,
                &settings,
                &overrides,
                &[],
                &[],
                &[],
            )
            .expect("the default GPU");
        let results = serde_json::to_string_pretty(&results).expect("JSON");
        (results, self.analysis().findings)
    }

    fn analysis(&self) -> FileAnalysis {
        self.engine
            .analyze(
                &self.document,
                &self.path,
                &Settings::default(),
                &Overrides::default(),
                &Cancel::default(),
            )
            .expect("not cancelled")
    }

    fn replace(&mut self, old: &str, new: &str) {
        let text = self.document.rope().to_string();
        let at = text.find(old).unwrap_or_else(|| panic!("no {old}"));
        self.document.edit(at..at + old.len(), new);
    }

    /// Which kernels are computed again after an edit.
    fn computed_again(&mut self, old: &str, new: &str) -> Vec<String> {
        let before = self.analysis();
        self.replace(old, new);
        let after = self.analysis();
        assert_eq!(before.kernels.len(), after.kernels.len());
        before
            .kernels
            .iter()
            .zip(&after.kernels)
            .filter(|(before, after)| !Arc::ptr_eq(&before.analysis, &after.analysis))
            .map(|(_, after)| after.analysis.facts.name.clone())
            .collect()
    }
}

#[test]
fn a_comment_outside_kernels_computes_nothing_again() {
    for (old, new) in [
        (
            "// A product.",
            "// A product of two numbers,\n// one and the same.",
        ),
        ("// A copy.", ""),
        ("// A copy.\n", "\n\n\n// A copy.\n\n"),
    ] {
        let again = Session::new().computed_again(old, new);
        assert_eq!(again, [""; 0], "{old} -> {new}");
    }
}

#[test]
fn a_comment_inside_a_kernel_computes_nothing_again() {
    for (old, new) in [
        ("// the element", "// the element of this thread"),
        ("// the element", ""),
        ("/* squared */", ""),
        ("/* squared */", "/* squared,\n with no rounding between */"),
        (
            "  if (i < n)",
            "\n\n  // Within the bounds.\n  if   (i < n) /* only */",
        ),
        ("a[i] * a[i]", "a[i] /* once */  *\ta[i]"),
        ("(float *c, const", "(float *c, /* read */ const"),
    ] {
        let again = Session::new().computed_again(old, new);
        assert_eq!(again, [""; 0], "{old} -> {new}");
    }
}

#[test]
fn what_the_kernel_says_is_computed_again_alone() {
    for (old, new) in [
        ("a[i] * a[i]", "a[i] + a[i]"),
        ("c[i] = a[i]", "c[i + 1] = a[i]"),
        ("// A product.", "// warplens: block=128"),
        // What is quoted of it looks otherwise; two statements no longer share a line.
        ("a[i] * a[i]", "a[i ] * a[i]"),
        ("c[i] = a[i]", "\n    c[i] = a[i]"),
    ] {
        let again = Session::new().computed_again(old, new);
        assert_eq!(again, ["product"], "{old} -> {new}");
    }
}

#[test]
fn a_comment_that_directs_counts() {
    let text = "__global__ void k(float *c, const float *a) {\n\
        \x20 float v = a[threadIdx.x];\n\
        \x20 // as it comes\n\
        \x20 if (v > 3) c[threadIdx.x] = v;\n\
        \x20 // often\n\
        \x20 for (int i = 0; i < 8; ++i) c[threadIdx.x * 32 + i] = v;\n}\n";
    let mut session = Session::of(text);
    let again = session.computed_again("// as it comes", "// warplens: probability=0.02");
    assert_eq!(again, ["k"]);
    let taken = |session: &Session| {
        let file = session.analysis();
        let branches = file.kernels[0].analysis.facts.branches.iter();
        branches
            .map(|branch| branch.taken_warp_fraction)
            .collect::<Vec<_>>()
    };
    let with = taken(&session);
    // It holds for the line below it, wherever that goes; one line further up it holds no more.
    assert_eq!(
        session.computed_again("  float v", "\n\n  float v"),
        [""; 0]
    );
    assert_eq!(session.computed_again("0.02\n", "0.02\n\n"), ["k"]);
    assert_ne!(taken(&session), with);
    assert_eq!(session.computed_again("// often", "#pragma unroll"), ["k"]);

    // A finding that moves away from its suppression is shown again.
    let mut session = Session::of(
        "__global__ void k(float *c) {\n\
         \x20 // warplens: allow(mem) known\n\
         \x20 c[threadIdx.x * 32] = 0;\n}\n",
    );
    let rules = |session: &Session| {
        let findings = session.analysis().findings;
        findings.iter().map(|one| one.rule).collect::<Vec<_>>()
    };
    let silenced = rules(&session);
    assert_eq!(session.computed_again("known\n", "known\n\n"), [""; 0]);
    assert_ne!(rules(&session), silenced);
}

#[test]
fn a_comment_in_what_a_kernel_calls_computes_nothing_again() {
    let text = "// Squares.\n\
        __device__ float square(const float *p, int i) {\n\
        \x20 float v = p[i]; // the value\n\
        \x20 return v * v;\n}\n\
        __global__ void k(float *c, const float *a) { c[threadIdx.x] = square(a, 32 * threadIdx.x); }\n";
    let mut session = Session::of(text);
    let line_of_cause = |session: &Session| {
        let findings = session.analysis().findings;
        let mut causes = findings.iter().filter_map(|one| one.callee.as_ref());
        causes.next().map(|cause| (cause.line, cause.column))
    };
    assert_eq!(line_of_cause(&session), Some((2, 12)));
    let again = session.computed_again("  float v", "\n  /* from\n  afar */ float v");
    assert_eq!(again, [""; 0]);
    assert_eq!(line_of_cause(&session), Some((4, 20)));
    assert_eq!(session.computed_again("// the value", ""), [""; 0]);
}

#[test]
fn a_comment_in_a_header_computes_nothing_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("square.cuh");
    let path = folder.path().join("k.cu");
    let text = "#include \"square.cuh\"\n\
        __global__ void k(float *c, const float *a) { c[threadIdx.x] = square(a, threadIdx.x); }\n";
    let function = "__device__ float square(const float *p, int i) { return p[i] * p[i]; }\n";
    fs::write(&header, function).expect("written");
    let open = Arc::new(OpenFiles::new(DiskFiles::new()));
    let project = Project::new(open.clone(), vec![folder.path().to_path_buf()]);
    let session = Session {
        engine: Engine::with_project(Profiles::builtin(), project),
        path,
        document: Document::new(text, Language::Cuda),
    };
    let before = session.analysis();
    open.set(&header, format!("// A square.\n\n{function}"));
    let after = session.analysis();
    let (before, after) = (&before.kernels[0], &after.kernels[0]);
    assert!(Arc::ptr_eq(&before.analysis, &after.analysis));
    let lines = |kernel: &PlacedKernel| {
        let accesses = kernel.analysis.facts.accesses.iter();
        let callees = accesses.filter_map(|access| kernel.callee(access.site));
        callees.map(|callee| callee.line).collect::<Vec<_>>()
    };
    assert_eq!(lines(before), [0, 0]);
    assert_eq!(lines(after), [2, 2]);
}

/// What a kernel writes decides what a run of its program finds in memory: a store that was half-typed and is there again is not forgotten.
#[test]
fn a_run_is_another_once_the_kernel_writes_something_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k.cu");
    let text = |body: &str| {
        format!(
            "__global__ void k(int *o, const int *a) {{ int i = threadIdx.x; if (o[i] > 2) {{ {body} }} }}\n\
             int main() {{\n  int h[64]; for (int i = 0; i < 64; i++) h[i] = i;\n  int *d, *e;\n\
             cudaMalloc(&d, 256); cudaMalloc(&e, 256);\n\
             cudaMemcpy(e, h, 256, cudaMemcpyHostToDevice); cudaMemset(d, 0, 256);\n\
             for (int r = 0; r < 2; r++) k<<<1, 64>>>(d, e);\n}}\n"
        )
    };
    let shown = |session: &Session| {
        let analysis = session.analysis();
        let facts = &analysis.kernels[0].analysis.facts;
        let branches = facts.branches.iter();
        branches
            .map(|branch| format!("{:?} {:?}", branch.divergent_warp_fraction, branch.why))
            .collect::<Vec<_>>()
    };
    let open = Arc::new(OpenFiles::new(DiskFiles::new()));
    let engine = || {
        let project = Project::new(open.clone(), vec![folder.path().to_path_buf()]);
        Engine::with_project(Profiles::builtin(), project)
    };
    let of = |engine: Engine, body: &str| {
        open.set(&path, text(body));
        Session {
            engine,
            path: path.clone(),
            document: Document::new(&text(body), Language::Cuda),
        }
    };
    let (store, none) = ("o[i] = a[i];", "o[i];");
    let fresh = shown(&of(engine(), store));
    let without = of(engine(), none);
    assert_ne!(
        shown(&without),
        fresh,
        "what is set is known where nothing is stored"
    );
    let mended = of(without.engine, store);
    assert_eq!(shown(&mended), fresh);
}

#[test]
fn a_header_that_misses_another_serves_the_next_keystroke_until_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("common.cuh");
    fs::write(
        &header,
        "#include \"missing.h\"\n#include <absent.h>\n#if __has_include(\"missing.h\")\n\
         #define BY 2\n#else\n#define BY 1\n#endif\n\
         __device__ float at(const float *p, int i) { return p[i * BY]; }\n",
    )
    .expect("written");
    let text = "#include \"common.cuh\"\n\
        __global__ void k(float *c, const float *a) { c[threadIdx.x] = at(a, threadIdx.x); }\n";
    let project = Project::new(
        Arc::new(DiskFiles::new()),
        vec![folder.path().to_path_buf()],
    );
    let mut session = Session {
        engine: Engine::with_project(Profiles::builtin(), project),
        path: folder.path().join("k.cu"),
        document: Document::new(text, Language::Cuda),
    };
    let loads = |file: &FileAnalysis| {
        let accesses = &file.kernels[0].analysis.facts.accesses;
        let load = accesses.iter().find(|access| access.array == "a");
        load.expect("a load").transactions_per_request
    };
    let first = session.analysis();
    assert_eq!(loads(&first), Some(4.0));
    let read = session.engine.project().header_readings().0;
    for letter in ["c[threadIdx.x] = 0; c", "c[threadIdx.x + 1] = 0; c"] {
        session.replace("{ c", &format!("{{ {letter}"));
        session.analysis();
    }
    assert_eq!(session.engine.project().header_readings().0, read);
    fs::write(folder.path().join("missing.h"), "\n").expect("written");
    session.engine.project().refresh();
    assert_eq!(loads(&session.analysis()), Some(8.0));
}

/// Where white space is outside comments, literals and directives; and the comments that direct nothing.
fn gaps(text: &str) -> (Vec<usize>, Vec<Range<usize>>) {
    let (mut spaces, mut comments) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let until = |what: &str| rest.find(what).unwrap_or(rest.len());
        let line_start = text[..at].rsplit('\n').next().unwrap_or_default();
        let next = match text.as_bytes()[at] {
            b'#' if line_start.trim().is_empty() => {
                let mut end = until("\n");
                while rest[..end].ends_with('\\') {
                    end += 1 + rest[end + 1..].find('\n').unwrap_or(0);
                }
                end
            }
            b'/' if rest.starts_with("//") => until("\n"),
            b'/' if rest.starts_with("/*") => until("*/") + 2,
            quote @ (b'"' | b'\'') => {
                let mut end = 1;
                while rest.as_bytes()[end] != quote {
                    end += 1 + usize::from(rest.as_bytes()[end] == b'\\');
                }
                end + 1
            }
            b' ' | b'\n' => {
                spaces.push(at);
                1
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        if rest.starts_with('/') && next > 1 && !rest[..next].contains("warplens:") {
            comments.push(at..at + next);
        }
        at += next;
    }
    (spaces, comments)
}

/// True where a line uses a macro with arguments.
fn calls_macro(line: &str, text: &str) -> bool {
    let mut macros = text
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split_once('('));
    macros.any(|(name, _)| line.contains(name))
}

/// One edit of white space or a comment; with whether it leaves every line's tokens together.
fn edit(text: &str, chance: &mut impl FnMut(usize) -> usize) -> (Range<usize>, &'static str, bool) {
    let (spaces, comments) = gaps(text);
    if chance(4) == 0 && !comments.is_empty() {
        let comment = comments[chance(comments.len())].clone();
        let new = ["", "/* other */", "/* wider than it was\n and higher */"];
        let blank = text[..comment.start].ends_with([' ', '\n']);
        let ends = text[comment.end..].starts_with('\n');
        let low = !text[comment.clone()].contains('\n');
        return match chance(3) {
            0 if blank => (comment, new[0], ends || low),
            1 => (comment, new[1], ends || low),
            // Behind it nothing may stand in its last line.
            _ => (comment, new[2], ends),
        };
    }
    let at = spaces[chance(spaces.len())];
    if text[at..].starts_with('\n') {
        let new = [
            " // a note",
            "\n",
            "\n // a note alone\n",
            "  ",
            " /* a\n note */",
        ];
        // What is written behind `//` is a part of it; directives hold for their own line and the next.
        let directed = text[..at].rsplit('\n').next().unwrap_or_default();
        let new = new[chance(new.len())];
        if directed.contains("//") || directed.trim_start().starts_with('#') {
            return (at + 1..at + 1, " ", true);
        }
        return (at..at, new, true);
    }
    let (new, together) = [
        ("  ", true),
        (" /* a note */", true),
        ("\t", true),
        ("\n", false),
    ][chance(4)];
    (at..at, new, together)
}

#[test]
fn what_is_kept_is_what_a_fresh_analysis_says() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut chance = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let (mut kept, mut all) = (0, 0);
    for entry in fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let Some(language) =
            Language::from_path(&path).filter(|_| path.extension() != Some("cuh".as_ref()))
        else {
            continue;
        };
        let text = fs::read_to_string(&path).expect("text");
        let mut session = Session {
            engine: Engine::new(Profiles::builtin()),
            document: Document::new(&text, language),
            path,
        };
        let mut before = session.analysis();
        for _ in 0..24 {
            let text = session.document.rope().to_string();
            let (range, new, together) = edit(&text, &mut chance);
            session.document.edit(range.clone(), new);
            let after = session.analysis();
            let near = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
            let near = text[near..].lines().next().unwrap_or_default();
            let said = format!(
                "{} {range:?} -> {new:?} in {near:?}",
                session.path.display()
            );
            let same = |(before, after): &(&PlacedKernel, &PlacedKernel)| {
                Arc::ptr_eq(&before.analysis, &after.analysis)
            };
            let again = before
                .kernels
                .iter()
                .zip(&after.kernels)
                .filter(same)
                .count();
            all += after.kernels.len();
            kept += again;
            // What is in a macro's argument may map to another stretch of the source.
            if together && !calls_macro(near, &text) {
                assert_eq!(again, after.kernels.len(), "{said}");
            }
            assert_eq!(session.everything(), session.fresh().everything(), "{said}");
            before = after;
        }
    }
    assert!(kept * 10 > all * 8, "{kept} of {all}");
}

/// `cargo test -p warplens-db --test queries unchanged -- --nocapture` shows the times.
#[test]
#[allow(clippy::print_stdout, reason = "a figure for who looks")]
fn a_comment_costs_less_than_an_analysis() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/matmul.cu");
    let mut session = Session {
        engine: Engine::new(Profiles::builtin()),
        document: Document::new(
            &fs::read_to_string(&path).expect("our kernel"),
            Language::Cuda,
        ),
        path,
    };
    session.analysis();
    // The shortest: other work of the machine only adds to it.
    let mut shortest = |new: &dyn Fn(usize) -> String| {
        let mut old = "int tx = threadIdx.x".to_owned();
        let times = (0..15)
            .map(|round| {
                let next = new(round);
                session.replace(&old, &next);
                old = next;
                let started = Instant::now();
                session.analysis();
                started.elapsed()
            })
            .min();
        session.replace(&old, "int tx = threadIdx.x");
        times.unwrap_or_default()
    };
    let comment = shortest(&|round| format!("int tx = /* {round} */ threadIdx.x"));
    let other = shortest(&|round| format!("int tx = {round} + threadIdx.x"));
    println!("a comment in matmul.cu: {comment:?}; a number: {other:?}");
    assert!(comment < other);
}

#[test]
fn a_library_that_only_a_kernel_mentions_is_known_once_it_is_typed() {
    let before = "__global__ void k(int *o) { o[threadIdx.x] = 1; }\n";
    let mut session = Session::of(before);
    session.everything();
    let typed = "cuda::atomic_ref<int>(o[0]).fetch_add(1);";
    let text = before.replace("o[threadIdx.x] = 1;", typed);
    session.document = Document::new(&text, Language::Cuda);
    assert_eq!(session.everything(), session.fresh().everything());
}
