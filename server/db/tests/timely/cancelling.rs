//! How soon work stops once its answer is no longer wanted: each keystroke cancels the one before.

use std::path::Path;
use std::time::{Duration, Instant};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides};
use warplens_machine::Profiles;
use warplens_models::ModelId;
use warplens_syntax::{Document, Language};

fn analysed(file: &str) -> FileAnalysis {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(file);
    let text = std::fs::read_to_string(&path).expect("one of our kernels");
    let settings = Settings {
        gpu: Some("a100-sxm4-40gb".to_owned()),
        ..Settings::default()
    };
    Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(&text, Language::Cuda),
            &path,
            &settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled")
}

/// How long a kernel's model takes to stop after it was cancelled so late; `None` where it had answered.
fn stops_after(file: &str, kernel: usize, model: ModelId, late: Duration) -> Option<Duration> {
    // Answers are kept, so each time asks anew.
    let file = analysed(file);
    let cancel = Cancel::default();
    let (answer, since) = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            std::thread::sleep(late);
            cancel.cancel();
            Instant::now()
        });
        let answer = file.kernels[kernel].analysis.estimate_by(model, &cancel);
        let ended = Instant::now();
        let cancelled = other.join().expect("no panic");
        (answer, ended.saturating_duration_since(cancelled))
    });
    answer.is_none().then_some(since)
}

#[test]
fn models_that_simulate_stop_soon_after_they_were_cancelled() {
    let mut stopped = 0;
    for (file, kernel) in [("matmul.cu", 1), ("matmul_tiles.cu", 1), ("n_body.cu", 0)] {
        for model in [ModelId::Timing, ModelId::Trace] {
            for late in [0, 1, 3, 6, 10, 15] {
                let late = Duration::from_millis(late);
                // Other programs on the machine do not count: the best of three.
                let times = (0..3).filter_map(|_| stops_after(file, kernel, model, late));
                let Some(since) = times.min() else {
                    continue;
                };
                stopped += 1;
                eprintln!("{file} {} after {late:?}: {since:?}", model.name());
                assert!(
                    since < Duration::from_millis(50),
                    "{file} {} after {late:?}: {since:?}",
                    model.name()
                );
            }
        }
    }
    assert!(stopped >= 6, "only {stopped} were under way");
}

/// How long the analysis of a text takes to stop after it was cancelled so late; `None` where it was done.
fn analysis_stops_after(text: &str, late: Duration) -> Option<Duration> {
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(text, Language::Cuda);
    let (settings, overrides) = (Settings::default(), Overrides::default());
    let cancel = Cancel::default();
    let (answer, since) = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            std::thread::sleep(late);
            cancel.cancel();
            Instant::now()
        });
        let path = Path::new("/k/slow.cu");
        let answer = engine.analyze(&document, path, &settings, &overrides, &cancel);
        let ended = Instant::now();
        let cancelled = other.join().expect("no panic");
        (answer, ended.saturating_duration_since(cancelled))
    });
    answer.is_none().then_some(since)
}

/// One kernel that takes long.
fn long_kernel() -> String {
    let loops = (0..1000).map(|k| {
        format!(
            "  for (int j = 0; j < m; j += {}) {{ if (i * {} + j * {} < n + {k}) \
             sum += in[(i * {} + j) % n] * out[j * {} + i]; }}\n  out[i + {k}] = sum;\n",
            k % 7 + 1,
            k % 5 + 1,
            k % 11,
            k + 3,
            k % 3 + 1,
        )
    });
    let body: String = loops.collect();
    format!(
        "// warplens: block=256 grid=1000 n=100000 m=1000\n\
         __global__ void slow(float *out, const float *in, int n, int m) {{\n  \
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n  float sum = 0;\n{body}}}\n"
    )
}

#[test]
fn an_analysis_stops_in_the_midst_of_one_kernel() {
    let text = long_kernel();
    let mut stopped = 0;
    for late in [5, 20, 50, 100, 200, 500, 1000] {
        let late = Duration::from_millis(late);
        // Other programs on the machine do not count: the best of three.
        let times = (0..3).filter_map(|_| analysis_stops_after(&text, late));
        let Some(since) = times.min() else {
            continue;
        };
        stopped += 1;
        eprintln!("after {late:?}: {since:?}");
        assert!(
            since < Duration::from_millis(100),
            "after {late:?}: {since:?}"
        );
    }
    assert!(stopped >= 3, "only {stopped} were under way");
}
