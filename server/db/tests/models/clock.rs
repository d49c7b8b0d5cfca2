//! The clock of the target: the user's, or what a limit on the power leaves.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Document, Engine, Language, Overrides, wire};
use warplens_machine::Profiles;
use warplens_models::ModelId;

const STREAM: &str = "// warplens: block=256 grid=8192
__global__ void k(float4 *out, const float4 *in) {
  int i = blockIdx.x * 256 + threadIdx.x;
  out[i] = in[i];
}";
const COMPUTE: &str = "// warplens: block=256 grid=8192
__global__ void k(float *out) {
  float x = threadIdx.x, y = 1.0f, z = 2.0f, w = 3.0f;
  for (int i = 0; i < 4096; ++i) { x = x * y + z; y = y * z + w; z = z * w + x; w = w * x + y; }
  out[blockIdx.x * 256 + threadIdx.x] = x + y + z + w;
}";

fn estimate(text: &str, settings: &str) -> wire::KernelResult {
    let (settings, problems) = Settings::from_toml(settings);
    assert!(problems.is_empty(), "{problems:?}");
    let document = Document::new(text, Language::Cuda);
    let results = Engine::new(Profiles::builtin()).estimate(
        &document,
        Path::new("k.cu"),
        &settings,
        &Overrides::default(),
        &[],
        &[ModelId::Auto],
        &[],
    );
    let mut results = results.expect("a result").results;
    results.remove(0)
}

fn time(text: &str, settings: &str) -> (f64, f64) {
    let result = estimate(text, settings);
    let estimate = &result.estimates["auto"];
    (
        estimate.cycles.expect("cycles"),
        estimate.time_ms.expect("a time"),
    )
}

#[test]
fn half_the_clock_doubles_the_time_of_what_computes_and_not_of_what_streams() {
    let at = |clock: u32| format!("gpu = 'a100-sxm4-40gb'\nclock = {clock}");
    let ((cycles, ms), (same, twice)) = (time(COMPUTE, &at(1410)), time(COMPUTE, &at(705)));
    assert!((same / cycles - 1.0).abs() < 0.01, "{cycles} {same}");
    assert!((1.95..2.05).contains(&(twice / ms)), "{ms} {twice}");
    let ((_, ms), (_, slower)) = (time(STREAM, &at(1410)), time(STREAM, &at(705)));
    assert!((1.0..1.3).contains(&(slower / ms)), "{ms} {slower}");
    assert_eq!(
        time(COMPUTE, &at(1410)),
        time(COMPUTE, "gpu = 'a100-sxm4-40gb'")
    );
}

#[test]
fn a_limit_on_the_power_lowers_the_clock_and_says_so() {
    let limited = estimate(COMPUTE, "gpu = 'a100-sxm4-40gb'\npowerLimit = 50");
    let said = |result: &wire::KernelResult| {
        let clock = result
            .assumptions
            .iter()
            .find(|one| one.symbol == "SM clock");
        clock.map(|one| (one.value.clone(), one.source.clone()))
    };
    let (value, source) = said(&limited).expect("said");
    assert_eq!(value, "705 MHz");
    assert!(source.contains("50 of 400 W"), "{source}");
    let (_, whole) = time(COMPUTE, "gpu = 'a100-sxm4-40gb'");
    let (_, slow) = time(COMPUTE, "gpu = 'a100-sxm4-40gb'\npowerLimit = 50");
    assert!((1.95..2.05).contains(&(slow / whole)), "{whole} {slow}");
    // A limit above what the board draws changes nothing; a clock that the user gives is none of ours.
    let ample = "gpu = 'a100-sxm4-40gb'\npowerLimit = 600";
    assert_eq!(time(COMPUTE, ample).1, whole);
    let given = estimate(
        COMPUTE,
        "gpu = 'a100-sxm4-40gb'\nclock = 705\npowerLimit = 50",
    );
    assert_eq!(said(&given), None);
}

#[test]
fn a_limit_that_says_nothing_about_the_clock_is_left_aside_and_told() {
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(COMPUTE, Language::Cuda);
    let (settings, _) = Settings::from_toml("gpu = 'gtx-645'\npowerLimit = 50");
    let found = engine
        .analyze(
            &document,
            Path::new("k.cu"),
            &settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("a result");
    assert_eq!(found.kernels.len(), 1);
    assert!(
        found.problems[0].contains("board_power_w"),
        "{:?}",
        found.problems
    );
    for wrong in [
        "clock = 0",
        "clock = -1",
        "clock = nan",
        "powerLimit = 1e9",
        "powerLimit = 'x'",
    ] {
        let (settings, problems) = Settings::from_toml(wrong);
        assert_eq!(problems.len(), 1, "{wrong}");
        assert_eq!(settings, Settings::default(), "{wrong}");
    }
}
