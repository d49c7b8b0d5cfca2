//! Every profile answers for the kernels of `tests/kernels`, and what it answers is possible on that GPU.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use warplens_db::settings::Settings;
use warplens_db::wire::{Estimate, KernelResult};
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::{Profile, Profiles};
use warplens_models::ModelId;
use warplens_syntax::{Document, Language};

/// Of that many files a GPU is asked about one, each GPU about others; optimised builds ask every GPU about every file.
const ONE_OF: usize = if cfg!(debug_assertions) { 3 } else { 1 };

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels")
}

fn files() -> Vec<(PathBuf, Document)> {
    let entries = std::fs::read_dir(folder()).expect("the folder");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let known = files.into_iter().filter_map(|path| {
        let language = Language::from_path(&path)?;
        let text = std::fs::read_to_string(&path).expect("text");
        Some((path, Document::new(&text, language)))
    });
    known.collect()
}

fn answers(
    path: &Path,
    document: &Document,
    gpu: &str,
    overrides: &Overrides,
    models: &[ModelId],
) -> Vec<KernelResult> {
    let found = ENGINE.estimate(
        document,
        path,
        &Settings::default(),
        overrides,
        &[gpu.to_owned()],
        models,
        &[],
    );
    found.expect("a known GPU").results
}

/// True where there is a number; a model without one says why.
fn sound(result: &KernelResult, model: &str, estimate: &Estimate) -> bool {
    let name = format!("{} {} {model}", result.gpu, result.kernel);
    match (estimate.cycles, estimate.time_ms) {
        (Some(cycles), Some(time)) => {
            // One of ours has no statement.
            let some = cycles > 0.0 || (result.kernel == "empty" && cycles == 0.0);
            assert!(cycles.is_finite() && some, "{name}: {cycles}");
            assert!(
                time.is_finite() && (time > 0.0) == (cycles > 0.0),
                "{name}: {time}"
            );
            let detail = estimate.detail.values();
            assert!(detail.into_iter().all(|value| value.is_finite()), "{name}");
            true
        }
        (None, None) => {
            assert!(
                estimate.why.as_ref().is_some_and(|why| !why.is_empty()),
                "{name}"
            );
            false
        }
        half => panic!("{name}: {half:?}"),
    }
}

#[test]
fn every_gpu_answers_for_our_kernels() {
    let files = files();
    let ids: Vec<&str> = ENGINE.profiles().ids().collect();
    let next = AtomicUsize::new(0);
    let (asked, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let work = || {
            while let Some((turn, gpu)) = Some(next.fetch_add(1, Ordering::Relaxed))
                .and_then(|turn| Some((turn, *ids.get(turn)?)))
            {
                for (path, document) in files.iter().skip(turn % ONE_OF).step_by(ONE_OF) {
                    for result in answers(
                        path,
                        document,
                        gpu,
                        &Overrides::default(),
                        &ModelId::analytical(),
                    ) {
                        for model in ModelId::analytical() {
                            let estimate = &result.estimates[model.name()];
                            let some = sound(&result, model.name(), estimate);
                            asked.fetch_add(1, Ordering::Relaxed);
                            answered.fetch_add(usize::from(some), Ordering::Relaxed);
                            // What cannot be launched there has no time; whatever can has one by the model of every GPU.
                            let launched = result.occupancy.active_blocks_per_sm > 0;
                            assert!(
                                some || !launched || model != ModelId::Auto,
                                "{gpu} {}: {:?}",
                                result.kernel,
                                estimate.why
                            );
                        }
                    }
                }
            }
        };
        for _ in 0..4 {
            std::thread::Builder::new()
                .stack_size(64 << 20)
                .spawn_scoped(scope, work)
                .expect("a thread");
        }
    });
    let (asked, answered) = (asked.into_inner(), answered.into_inner());
    assert!(asked > 4 * ids.len(), "{asked}");
    assert!(answered * 10 > asked * 7, "{answered} of {asked}");
}

/// Bytes that a launch moves over the time that a model gives it, as a share of the data sheet's bandwidth.
fn share_of_bandwidth(profile: &Profile, bytes: f64, estimate: &Estimate) -> f64 {
    let cycles = estimate.cycles.expect("a copy can be launched");
    let seconds = cycles / profile.cycles_per_second();
    bytes / seconds / (profile.dram_bandwidth_gb_s * 1e9)
}

const ADDITION: &str = "__global__ void add(const float *a, const float *b, float *c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] + b[i];
}
";

fn addition(blocks: u64, gpu: &str, models: &[ModelId]) -> KernelResult {
    let document = Document::new(ADDITION, Language::Cuda);
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([blocks, 1, 1]),
            block: Some([256, 1, 1]),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    answers(Path::new("add.cu"), &document, gpu, &overrides, models).remove(0)
}

/// c = a + b over 201 MB, more than any L2: bound by DRAM, so never faster than the data sheet, and not much slower.
#[test]
fn a_vector_addition_stays_within_the_bandwidth_of_every_gpu() {
    // The most that 1.x launches in a row.
    const BLOCKS: u64 = 65_535;
    let bytes = (BLOCKS * 256 * 12) as f64;
    for profile in ENGINE.profiles().iter() {
        let result = addition(BLOCKS, &profile.id, &ModelId::analytical());
        for model in ModelId::analytical() {
            let share = share_of_bandwidth(&profile, bytes, &result.estimates[model.name()]);
            // Hong and Kim's model knows latency and issue besides bandwidth; on some it says that these count. The linear
            // model adds up what blocks take to start, which others have while memory is read.
            let adds = [ModelId::MwpCwp, ModelId::Linear].contains(&model);
            let least = if adds { 0.3 } else { 0.4 };
            assert!(
                (least..1.0 + 1e-9).contains(&share),
                "{} {}: {share}",
                profile.id,
                model.name()
            );
        }
    }
}

/// The models that simulate run where they are asked for: a launch of eight blocks per SM.
#[test]
fn every_gpu_can_be_simulated() {
    for profile in ENGINE.profiles().iter() {
        let blocks = 8 * u64::from(profile.sms);
        let result = addition(blocks, &profile.id, &ModelId::ALL);
        for model in ModelId::ALL {
            let some = sound(&result, model.name(), &result.estimates[model.name()]);
            assert!(some, "{} {}", profile.id, model.name());
        }
    }
}
