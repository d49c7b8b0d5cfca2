//! Measures what the facts of a tiled matrix multiplication take: its IR is there, nothing is cached.
//!
//! `cargo bench -p warplens-db --bench facts`

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's report goes to standard output"
)]

mod kernel;

use std::path::Path;
use std::time::{Duration, Instant};

use warplens_facts::facts::{Launch, Source};
use warplens_facts::{Request, analyze};
use warplens_machine::Profiles;

const ROUNDS: usize = 500;
/// What issue 4 asks for.
const MEDIAN: Duration = Duration::from_millis(1);

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/matmul.cu");
    let source = std::fs::read_to_string(path).expect("our kernel");
    let kernel = kernel::read(&source, "matmul_tiled");
    let profile = Profiles::builtin()
        .get("a100-sxm4-40gb")
        .expect("the default GPU");
    let launch = Launch {
        grid: [64, 64, 1],
        block: [16, 16, 1],
        dynamic_shared_bytes: 0,
        block_source: Source::Directive,
        grid_source: Source::Directive,
        shared_source: Source::Directive,
    };
    let arguments = [("n".to_owned(), 1024, false)];
    let request = Request {
        kernel: &kernel,
        launch,
        profile: &profile,
        arguments: &arguments,
        covers: &[],
        probabilities: &[],
        contents: &[],
        reals: &[],
        extents: &[],
        boxes: &[],
        cluster: None,
    };
    let facts = analyze(&request);
    assert_eq!(facts.not_understood, []);
    assert!(
        facts
            .accesses
            .iter()
            .all(warplens_facts::facts::Access::exact)
    );

    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            let found = analyze(&request);
            let took = started.elapsed();
            assert_eq!(found.accesses.len(), facts.accesses.len());
            took
        })
        .collect();
    times.sort_unstable();
    let (median, p99) = (times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
    println!("facts of matmul_tiled: median {median:?}, 99 % within {p99:?}, asked for {MEDIAN:?}");
    if median > MEDIAN {
        std::process::exit(1);
    }
}
