//! Whatever is typed, an answer comes, and soon.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, PlacedFinding};
use warplens_facts::facts::{Certainty, OpClass};
use warplens_ir::Reason;
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn analyse(text: &str) -> FileAnalysis {
    let engine = Engine::new(Profiles::builtin());
    let started = Instant::now();
    let document = Document::new(text, Language::Cuda);
    let analysis = engine
        .analyze(
            &document,
            Path::new("k.cu"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    let took = started.elapsed();
    assert!(
        took < Duration::from_secs(2),
        "{took:?} for\n{}",
        &text[..text.len().min(400)]
    );
    assert_eq!(analysis.problems, Vec::<String>::new());
    analysis
}

#[test]
fn enormous_trip_counts_are_summed_not_run() {
    let found = analyse(
        "__global__ void k(float *a, int n) {\n\
         for (int i = threadIdx.x & 1; i < 2000000000; i++)\n\
           for (unsigned j = i; j < 4000000000u; j += 3) a[(i >> threadIdx.x) ^ j] = 0;\n\
         for (int i = 0; i >= 0; i++) a[i] = 0;\n\
         for (;;) a[threadIdx.x] = 1;\n}",
    );
    assert_eq!(found.kernels[0].analysis.facts.accesses.len(), 3);
}

#[test]
fn deep_nests_and_long_bodies_end() {
    let mut text = String::from("__global__ void k(float *a, int n) {\n");
    for depth in 0..9 {
        let _ = writeln!(
            text,
            "for (int i{depth} = 0; i{depth} < n; i{depth}++) if (a[i{depth}] > 0 || i{depth} % 3) {{"
        );
    }
    for line in 0..200 {
        let _ = writeln!(text, "a[i8 * {line} + i0 * threadIdx.x] = a[i3 ^ i5];");
    }
    text.push_str(&"}".repeat(10));
    assert_eq!(analyse(&text).kernels.len(), 1);
}

#[test]
fn macros_that_grow_without_end_are_cut_off() {
    let mut text = String::from("#define X0 threadIdx.x\n");
    for level in 1..40 {
        let _ = writeln!(text, "#define X{level} (X{0} + X{0})", level - 1);
    }
    text.push_str("#define SELF SELF + 1\n__global__ void k(float *a) { a[X39] = SELF; }\n");
    let found = analyse(&text);
    assert!(!found.kernels[0].analysis.facts.not_understood.is_empty());
}

#[test]
fn what_a_function_that_calls_itself_gives_is_not_known() {
    let found = analyse(
        "__device__ int f(int x) { return x ? f(x - 1) + f(x - 2) : 0; }\n\
         __global__ void k(float *a) { a[f(threadIdx.x)] = 0; }",
    );
    let accesses = &found.kernels[0].analysis.facts.accesses;
    let store = accesses.iter().find(|access| access.array == "a");
    assert!(store.is_some_and(|store| !store.exact()), "{accesses:?}");
}

#[test]
fn every_prefix_of_a_kernel_is_answered() {
    let text = include_str!("../../../../tests/kernels/scan.cu");
    let mut end = 0;
    while end < text.len() {
        end = (end + 37).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        analyse(&text[..end]);
    }
}

#[test]
fn junk_is_answered() {
    analyse("");
    analyse("\0\u{1}\u{ffff}{{{{((((<<<<%%%%\"'\\\n__global__");
    analyse(&"__global__ void k(float*a){a[".repeat(300));
    analyse(&"(".repeat(20_000));
}

#[test]
fn calls_that_double_at_each_level_are_counted_not_repeated() {
    let levels = 24;
    let mut text = "__device__ unsigned f0(unsigned a) { return a * 3u + 1u; }\n".to_owned();
    for level in 1..=levels {
        let below = level - 1;
        let _ = writeln!(
            text,
            "__device__ unsigned f{level}(unsigned a) {{ return f{below}(a) ^ f{below}(a + 1u); }}"
        );
    }
    let _ = writeln!(
        text,
        "__global__ void k(unsigned *out, const unsigned *in) {{ out[threadIdx.x] = f{levels}(in[threadIdx.x]); }}"
    );
    let started = Instant::now();
    let file = analyse(&text);
    assert!(started.elapsed() < Duration::from_secs(5));
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    let threads = (facts.launch.threads_per_block() * facts.launch.blocks()) as f64;
    let operations = facts
        .counts
        .iter()
        .find(|count| count.class == OpClass::Int)
        .and_then(|count| count.value)
        .expect("counted");
    // Two in each leaf, two in each other call.
    let leaves = f64::from(1 << levels);
    assert_eq!(operations / threads, 2.0 * leaves + 2.0 * (leaves - 1.0));
}

#[test]
fn calls_of_functions_count_as_their_text_in_place() {
    let body = "s[0] += k; s[1] ^= s[0]; if (s[1] & 1u) { s[2] = s[0] * k; } else { s[3]++; }";
    let kernel = |call: &str| {
        format!(
            "__global__ void q(unsigned *out, const unsigned *in) {{ \
             unsigned s[4]; int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned k = in[i]; {call} \
             for (int n = 0; n < 5; n++) {{ {call} }} if (i < 100) {{ {call} }} \
             if (k > 7u) {{ {call} }} out[i] = s[0] + s[1] + s[2] + s[3]; }}"
        )
    };
    let called = format!(
        "__device__ void mix(unsigned *s, unsigned k) {{ {body} }}\n{}",
        kernel("mix(s, k);")
    );
    let written = kernel(&format!("{{ {body} }}"));
    let counts = |text: &str| {
        let file = analyse(text);
        let facts = &file.kernels[0].analysis.facts;
        assert_eq!(facts.not_understood, []);
        facts
            .counts
            .iter()
            .map(|count| (count.class, count.value.expect("counted")))
            .collect::<Vec<_>>()
    };
    let (called, written) = (counts(&called), counts(&written));
    assert_eq!(called.len(), written.len());
    for (a, b) in called.iter().zip(&written) {
        assert_eq!(a.0, b.0);
        assert!((a.1 - b.1).abs() <= 1e-9 * b.1, "{a:?} and {b:?}");
    }
}

#[test]
fn functions_on_structures_count_as_their_text_in_place() {
    // Long, so that it is read once; the inner one takes arrays of the structure.
    let steps = |h: &str, n: &str| {
        let step = format!("{h}[0] += {n}; {h}[1] ^= {h}[0]; {h}[2] = {h}[1] * {n}; {h}[3]++; ");
        step.repeat(16)
    };
    let kernel = |call: &str| {
        format!(
            "__global__ void q(unsigned *out, const unsigned *in) {{ struct state s; s.n = 1u; \
             s.h[0] = 1u; s.h[1] = 2u; s.h[2] = 3u; s.h[3] = 4u; \
             int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned k = in[i]; {call} \
             for (int n = 0; n < 5; n++) {{ {call} }} if (i < 100) {{ {call} }} \
             if (s.n & 1u) out[i] = s.h[0]; else out[i] = s.h[3]; }}"
        )
    };
    let structure = "struct state { unsigned h[4]; unsigned n; };\n";
    let called = format!(
        "{structure}__device__ void inner(unsigned *h, unsigned k) {{ {} }}\n\
         __device__ void mix(struct state *s, unsigned k) {{ inner(s->h, k); {} s->n += k; }}\n{}",
        steps("h", "k"),
        steps("s->h", "k"),
        kernel("mix(&s, k);")
    );
    let written = format!(
        "{structure}{}",
        kernel(&format!(
            "{} {} s.n += k;",
            steps("s.h", "k"),
            steps("s.h", "k")
        ))
    );
    let counts = |text: &str| {
        let file = analyse(text);
        let facts = &file.kernels[0].analysis.facts;
        assert_eq!(facts.not_understood, []);
        let last = facts.branches.last().expect("the branch on `s.n`");
        assert_eq!(last.text, "s.n & 1u");
        assert_ne!(last.certainty, Certainty::Exact, "lanes differ in it");
        facts
            .counts
            .iter()
            .map(|count| (count.class, count.value.expect("counted")))
            .collect::<Vec<_>>()
    };
    let (called, written) = (counts(&called), counts(&written));
    assert_eq!(called.len(), written.len());
    for (a, b) in called.iter().zip(&written) {
        assert_eq!(a.0, b.0);
        assert!((a.1 - b.1).abs() <= 1e-9 * b.1, "{a:?} and {b:?}");
    }
}

#[test]
fn a_kernel_that_expands_without_end_is_cut_off_and_says_so() {
    // Memory is written at the bottom, so that no level can be read once: a thousand million calls.
    let levels = 30;
    let mut text =
        "__device__ void f0(unsigned *out, unsigned a) { out[a] = a * 3u + 1u; }\n".to_owned();
    for level in 1..=levels {
        let below = level - 1;
        let _ = writeln!(
            text,
            "__device__ void f{level}(unsigned *out, unsigned a) {{ f{below}(out, a); f{below}(out, a + 1u); }}"
        );
    }
    let _ = writeln!(
        text,
        "__global__ void k(unsigned *out) {{ f{levels}(out, threadIdx.x); }}\n\
         __global__ void plain(unsigned *out) {{ out[threadIdx.x] = 0; }}"
    );
    let engine = Engine::for_many_files(Profiles::builtin(), warplens_db::Project::default());
    let started = Instant::now();
    let document = Document::new(&text, Language::Cuda);
    let (_, stats, file) = engine.check(
        &document,
        Path::new("k.cu"),
        &Settings::default(),
        &Overrides::default(),
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    let file = file.expect("analysed");
    assert_eq!((stats.kernels, stats.clean), (2, 1));
    let [cut, plain] = &file.kernels[..] else {
        panic!("two kernels");
    };
    let lost = &cut.analysis.facts.not_understood;
    assert!(!lost.is_empty());
    assert!(lost.iter().all(|lost| lost.reason == Reason::TooMuch));
    assert_eq!(plain.analysis.facts.not_understood, []);
}

#[test]
fn very_many_accesses_of_one_cause_are_told_once() {
    let mut body = String::new();
    for at in 0..600 {
        let _ = writeln!(body, "sum += in[i * 32 * n + {at}];");
    }
    let text = format!(
        "__global__ void k(float *out, const float *in, int n) {{\n\
         int i = blockIdx.x * blockDim.x + threadIdx.x; float sum = 0;\n{body}out[i] = sum; }}\n\
         void host(float *o, const float *i) {{ k<<<64, 256>>>(o, i, 50); }}\n"
    );
    let file = analyse(&text);
    let of_memory = |finding: &&PlacedFinding| finding.rule.starts_with("mem/");
    let found: Vec<&PlacedFinding> = file.findings.iter().filter(of_memory).collect();
    assert_eq!(found.len(), 600, "one a line");
    // One is told for all; they have one cause, and each says what all of them gain.
    let (told, apart): (Vec<&PlacedFinding>, Vec<&PlacedFinding>) = found
        .into_iter()
        .partition(|finding| !finding.related.is_empty());
    assert_eq!(told.len(), 1);
    let together = told[0].gain;
    assert!(together > 1.1 && together < 1000.0, "{together}");
    let same = |finding: &&PlacedFinding| {
        finding.gain == together && finding.severity == warplens_db::Severity::Hint
    };
    assert!(apart.iter().all(same), "{apart:?}");
}
