//! Kernels that end never, late or at once: every model answers with a finite figure or says why not, soon.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_models::ModelId;
use warplens_syntax::{Document, Language};

const SOURCE: &str = r"
__global__ void forever(int* a) { while (true) { a[threadIdx.x] += 1; } }

__global__ void forever_empty() { while (true) {} }

__global__ void until_data(const int* a, int* b) {
  for (;;) {
    if (a[threadIdx.x] == 0) break;
    b[threadIdx.x] += 1;
  }
}

__global__ void until_zero(int n, int* b) {
  do { b[threadIdx.x] = n; n /= 3; } while (n);
}

__global__ void very_long(float* a) {
  float sum = 0;
  for (long long i = 0; i < 1000000000000000000LL; ++i) sum += a[i & 1023];
  a[threadIdx.x] = sum;
}

__global__ void very_long_twice(float* a) {
  __shared__ float tile[256];
  for (long long i = 0; i < 1000LL; ++i)
    for (long long j = 0; j < 1000LL; ++j) {
      tile[threadIdx.x] = a[(i + j) & 1023];
      __syncthreads();
      a[threadIdx.x] += tile[threadIdx.x ^ 1];
      __syncthreads();
    }
}

__global__ void unlaunched(float* a) {
  if (threadIdx.x >= 4096) a[threadIdx.x] = sqrtf(a[threadIdx.x]);
}

__global__ void no_turn(float* a) {
  for (int i = 0; i < 0; ++i) a[i] = 1.0f;
}

__global__ void backwards(float* a, int n) {
  for (int i = n; i < -n; ++i) a[i] = 1.0f;
}

__global__ void empty() {}

__global__ void only_memory(const float4* __restrict__ a, float4* __restrict__ b) {
  b[threadIdx.x] = a[threadIdx.x];
}

__global__ void only_computation(float x) {
  for (int i = 0; i < 100; ++i) x = x * x + 1.0f;
}

__global__ void only_barriers() {
  for (int i = 0; i < 1000000; ++i) __syncthreads();
}

__global__ void one_lane(float* a) {
  if (threadIdx.x == 0) for (int i = 0; i < 1000; ++i) a[i] = a[i + 1];
}

__global__ void doubles(double* a) { a[threadIdx.x] *= 3.0; }

__global__ void divided_by_nothing(int* a, int n) { a[threadIdx.x / 0] = n % 0; }
";

/// Each answers so soon, on a busy machine too.
const SOON: Duration = Duration::from_secs(3);

#[test]
fn strange_kernels_have_finite_answers_soon() {
    // The oldest has no figures of doubles.
    for gpu in ["geforce-8800-gtx", "gtx-280", "a100-sxm4-40gb", "mi210"] {
        for (grid, block) in [
            ([1, 1, 1], [1, 1, 1]),
            ([4096, 1, 1], [256, 1, 1]),
            ([1, 1, 1], [2048, 1, 1]),
        ] {
            let settings = Settings {
                gpu: Some(gpu.to_owned()),
                ..Settings::default()
            };
            let overrides = Overrides {
                argument: LaunchValues {
                    grid: Some(grid),
                    block: Some(block),
                    ..LaunchValues::default()
                },
                ..Overrides::default()
            };
            let file = Engine::new(Profiles::builtin())
                .analyze(
                    &Document::new(SOURCE, Language::Cuda),
                    Path::new("strange.cu"),
                    &settings,
                    &overrides,
                    &Cancel::default(),
                )
                .expect("not cancelled");
            assert_eq!(file.kernels.len(), SOURCE.matches("__global__").count());
            for kernel in &file.kernels {
                let analysis = &kernel.analysis;
                let name = &analysis.facts.name;
                let mut answers = BTreeMap::new();
                for model in ModelId::ALL {
                    let begun = Instant::now();
                    let answer = analysis.estimate_by(model, &Cancel::default());
                    let answer = answer.expect("not cancelled");
                    let which = format!("{} {block:?} on {gpu} by {}", name, model.name());
                    assert!(begun.elapsed() < SOON, "{which}: {:?}", begun.elapsed());
                    let why = answer.why.as_deref().unwrap_or_default();
                    assert!(!why.contains("failed"), "{which}: {why}");
                    match answer.cycles {
                        Some(cycles) => {
                            assert!(cycles.is_finite() && cycles >= 0.0, "{which}: {cycles}");
                            assert!(answer.time_ms.is_some_and(f64::is_finite), "{which}");
                            let steps = ["simulated_instructions", "simulated_operations"]
                                .iter()
                                .filter_map(|name| answer.detail.get(*name));
                            for steps in steps {
                                assert!(*steps <= 700_000.0, "{which}: {steps} steps");
                            }
                        }
                        None => assert!(
                            !why.is_empty() || answer.open.is_some(),
                            "{which}: no reason"
                        ),
                    }
                    answers.insert(model, answer.cycles);
                }
                if name == "very_long_twice" && block == [256, 1, 1] {
                    // What is skipped in what is skipped counts.
                    let auto = answers[&ModelId::Auto].expect("answers");
                    for model in [ModelId::Timing, ModelId::Trace] {
                        let ratio = answers[&model].map_or(1.0, |cycles| cycles / auto);
                        assert!((0.1..10.0).contains(&ratio), "{gpu} {model:?}: {ratio}");
                    }
                }
                if name == "doubles" && gpu == "geforce-8800-gtx" {
                    assert_eq!(answers[&ModelId::Trace], None);
                }
            }
        }
    }
}

#[test]
fn a_kernel_of_which_nothing_was_understood_has_no_time() {
    let launched = Overrides {
        argument: LaunchValues {
            grid: Some([64, 1, 1]),
            block: Some([128, 1, 1]),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let time = |text: &str| {
        let file = Engine::new(Profiles::builtin())
            .analyze(
                &Document::new(text, Language::Cuda),
                Path::new("lost.cu"),
                &Settings::default(),
                &launched,
                &Cancel::default(),
            )
            .expect("not cancelled");
        let estimate = file.kernels[0].analysis.estimate();
        (estimate.time_ms, estimate.why.clone())
    };
    let (lost, why) =
        time("__global__ void k(int *a) { elsewhere::count(a, [&](char c) { return c == 1; }); }");
    assert_eq!(lost, None);
    assert_eq!(
        why.as_deref(),
        Some("nothing that the kernel does was understood")
    );
    let (partly, _) =
        time("__global__ void k(int *a) { elsewhere::count(a); a[threadIdx.x] = 1; }");
    assert!(partly.is_some_and(|ms| ms > 0.001), "{partly:?}");
    let (empty, _) = time("__global__ void k(int *a) {}");
    assert_eq!(empty, Some(0.0));
    let (prints, _) = time("__global__ void k() { printf(\"hello\\n\"); }");
    assert!(prints.is_some_and(|ms| ms > 0.0005), "{prints:?}");
}
