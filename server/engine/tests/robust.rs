//! Whatever is typed, an answer comes, and soon.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

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
fn functions_that_call_themselves_are_named_not_followed() {
    let found = analyse(
        "__device__ int f(int x) { return x ? f(x - 1) + f(x - 2) : 0; }\n\
         __global__ void k(float *a) { a[f(threadIdx.x)] = 0; }",
    );
    let lost = &found.kernels[0].analysis.facts.not_understood;
    assert!(
        lost.iter().any(|lost| lost.reason.contains("recursive")),
        "{lost:?}"
    );
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
