//! Latency of a keystroke: `cargo bench -p warplens --bench latency`.
//!
//! The recorded sessions of `tests/sessions` are replayed, over real pipes, in the server that users have. `cargo lab
//! speed` holds the same against the targets and beside clangd; here each part is timed by itself, so that a change can be
//! compared with what was there before.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use serde_json::json;
use warplens_latency::client::Client;
use warplens_latency::floor::Floor;
use warplens_latency::session::{CHANGED, HINTS, Session, Times};

const SERVER: &str = env!("CARGO_BIN_EXE_warplens");
const LENGTHS: [usize; 2] = [1_000, 10_000];

fn main() {
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(5));
    for lines in LENGTHS {
        typing(&mut criterion, lines);
        floor(&mut criterion, lines);
        questions(&mut criterion, lines);
        start(&mut criterion, lines);
    }
    header(&mut criterion);
    folder(&mut criterion);
    criterion.final_summary();
}

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

fn sessions(lines: usize) -> Vec<(String, Session)> {
    let root = repository();
    let sessions = Session::read_all(&root.join("tests/sessions")).expect("recordings");
    let placed = sessions
        .into_iter()
        .map(|(name, session)| (name, session.inside(&root).within(lines)));
    placed.collect()
}

fn serve() -> Client {
    Client::start(Command::new(SERVER).args(["lsp", "--stdio"])).expect("a server")
}

/// From a change to its diagnostics: the mean over the keystrokes of a session.
fn typing(criterion: &mut Criterion, lines: usize) {
    let mut group = criterion.benchmark_group("change to diagnostics");
    for (name, session) in sessions(lines) {
        group.bench_function(BenchmarkId::new(name, lines), |bencher| {
            bencher.iter_custom(|iterations| {
                let mut took = Duration::ZERO;
                for _ in 0..iterations {
                    let mut client = serve();
                    let mut times = Times::new();
                    session.open(&mut client).expect("opened");
                    session
                        .replay(&mut client, &mut times, || {})
                        .expect("replayed");
                    let changes = &times[CHANGED];
                    took += changes.iter().sum::<Duration>() / changes.len() as u32;
                }
                took
            });
        });
    }
}

/// The grammar's own parse of the same edits.
fn floor(criterion: &mut Criterion, lines: usize) {
    let mut group = criterion.benchmark_group("parse of the same edits");
    for (name, session) in sessions(lines) {
        group.bench_function(BenchmarkId::new(name, lines), |bencher| {
            bencher.iter_custom(|iterations| {
                let mut took = Duration::ZERO;
                for _ in 0..iterations {
                    let mut floor = Floor::new(&session.text).expect("a pipe");
                    let changes = session.said.iter().filter(|(method, _)| method == CHANGED);
                    for (_, change) in changes {
                        took += floor.parse(change).expect("a tree") / session.keystrokes() as u32;
                    }
                }
                took
            });
        });
    }
}

/// Hints of the visible lines, and a hover: the last of each in the first session.
fn questions(criterion: &mut Criterion, lines: usize) {
    let sessions = sessions(lines);
    let (_, session) = sessions.first().expect("a session");
    let mut client = serve();
    session.open(&mut client).expect("opened");
    let mut times = Times::new();
    session
        .replay(&mut client, &mut times, || {})
        .expect("replayed");
    for (name, method) in [("hints", HINTS), ("hover", "textDocument/hover")] {
        let asked = session.said.iter().rfind(|(of, _)| of == method);
        let (_, params) = asked.expect("asked in the session");
        criterion.bench_function(&format!("{name}/{lines}"), |bencher| {
            bencher.iter(|| client.request(method, params).expect("an answer"));
        });
    }
    client.end().expect("an end");
}

/// From the start of the program to the first diagnostics.
fn start(criterion: &mut Criterion, lines: usize) {
    let sessions = sessions(lines);
    let (_, session) = sessions.first().expect("a session");
    criterion.bench_function(&format!("start to first diagnostics/{lines}"), |bencher| {
        bencher.iter_custom(|iterations| {
            let mut took = Duration::ZERO;
            for _ in 0..iterations {
                let started = Instant::now();
                let mut client = serve();
                session.open(&mut client).expect("opened");
                took += started.elapsed();
            }
            took
        });
    });
}

/// From a change of a header to the new diagnostics of a file that includes it.
fn header(criterion: &mut Criterion) {
    const HEADER: &str = "file:///bench/scale.h";
    const DEPENDENT: &str = "file:///bench/scaled.cu";
    let header = |scale: usize| {
        format!(
            "#pragma once\n__device__ float scale(const float *in, int i) {{\n    \
             return in[2 * i] * {scale}.0f;\n}}\n"
        )
    };
    let kernels = (0..5).map(|k| {
        format!(
            "__global__ void scaled_{k}(float *out, const float *in) {{\n    \
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
             out[i] = scale(in, i + {k});\n}}\n"
        )
    });
    let dependent = format!("#include \"scale.h\"\n{}", kernels.collect::<String>());
    let mut client = serve();
    for (uri, text) in [(DEPENDENT, dependent), (HEADER, header(0))] {
        let document = json!({"textDocument":
            {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text}});
        let started = Instant::now();
        let method = "textDocument/didOpen";
        client.notify(method, &document).expect("opened");
        // The second time because of the header, which was not there when the file was first looked at.
        client.shown_again(started, DEPENDENT).expect("shown");
    }
    let mut version = 1;
    criterion.bench_function("header to its file's diagnostics", |bencher| {
        bencher.iter(|| {
            version += 1;
            let change = json!({
                "textDocument": {"uri": HEADER, "version": version},
                "contentChanges": [{"text": header(version)}],
            });
            let started = Instant::now();
            client.notify(CHANGED, &change).expect("changed");
            client.shown_again(started, DEPENDENT).expect("shown")
        });
    });
}

/// A check of the repository's kernels.
fn folder(criterion: &mut Criterion) {
    criterion.bench_function("check of a folder", |bencher| {
        bencher.iter(|| {
            Command::new(SERVER)
                .args(["check", "tests/kernels", "tests/corpus"])
                .current_dir(repository())
                .stdout(Stdio::null())
                .status()
                .expect("checked")
        });
    });
}
