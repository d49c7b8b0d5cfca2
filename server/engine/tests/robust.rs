//! Whatever is typed, an answer comes, and soon.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use warplens_analysis::facts::OpClass;
use warplens_engine::settings::Settings;
use warplens_engine::{Cancel, Engine, FileAnalysis, Overrides};
use warplens_hardware::Profiles;
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
    let text = include_str!("../../../tests/kernels/scan.cu");
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
