//! Matrix products of AMD's builtins: vectors of `_Float16`, counts, and the cycles that the units take.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::wire::KernelResult;
use warplens_db::{LaunchValues, Overrides};
use warplens_models::ModelId;
use warplens_syntax::{Document, Language};

use crate::tensor::ENGINE;

const TYPES: &str = "typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
using half16 = _Float16 __attribute__((ext_vector_type(16)));
typedef __bf16 short4v __attribute__((ext_vector_type(4)));
typedef float float4v __attribute__((ext_vector_type(4)));
typedef float float8v __attribute__((ext_vector_type(8)));
typedef float float16v __attribute__((ext_vector_type(16)));
typedef int int4v __attribute__((ext_vector_type(4)));
";

/// A loop of products, in two sums so that none waits for the one before; blocks of 1024 threads, two for each unit.
fn product(call: &str, factor: &str, sum: &str, gpu: &str, units: u64) -> KernelResult {
    let text = format!(
        "{TYPES}__global__ void k(const {factor}* a, const {factor}* b, {sum}* c, int n) {{
    const int t = blockIdx.x * 1024 + threadIdx.x;
    const {factor} x = a[t], y = b[t];
    {sum} s = {{0}}, r = {{0}};
    for (int i = 0; i < n; i++) {{
        s = {};
        r = {};
    }}
    c[2 * t] = s;
    c[2 * t + 1] = r;
}}",
        call.replace('@', "s"),
        call.replace('@', "r"),
    );
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        ..Settings::default()
    };
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([2 * units, 1, 1]),
            block: Some([1024, 1, 1]),
            args: [("n".to_owned(), 4096)].into(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let document = ENGINE
        .estimate(
            &Document::new(&text, Language::Hip),
            Path::new("product.hip"),
            &settings,
            &overrides,
            &[],
            &[ModelId::Auto],
            &[],
        )
        .expect("a known GPU");
    document.results.into_iter().next().expect("a kernel")
}

#[test]
fn products_are_read_counted_and_take_the_cycles_that_amd_states() {
    // GPU, compute units, SIMDs of one, lanes of a warp; cycles that a product takes of a SIMD.
    let cdna2 = ("mi250x", 110, 4, 64);
    let cdna3 = ("mi300x", 304, 4, 64);
    let rdna3 = ("rx-7900-xtx", 96, 2, 32);
    for (call, factor, sum, (gpu, units, simds, lanes), cycles) in [
        (
            "__builtin_amdgcn_mfma_f32_16x16x16f16(x, y, @, 0, 0, 0)",
            "half4",
            "float4v",
            cdna2,
            32,
        ),
        (
            "__builtin_amdgcn_mfma_f32_16x16x16f16(x, y, @, 0, 0, 0)",
            "half4",
            "float4v",
            cdna3,
            16,
        ),
        (
            "__builtin_amdgcn_mfma_f32_32x32x8f16(x, y, @, 0, 0, 0)",
            "half4",
            "float16v",
            cdna2,
            64,
        ),
        (
            "__builtin_amdgcn_mfma_f32_16x16x4f32(x, y, @, 0, 0, 0)",
            "float",
            "float4v",
            cdna3,
            32,
        ),
        (
            "__builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, @, 0, 0, 0)",
            "short4v",
            "float4v",
            cdna3,
            16,
        ),
        (
            "__builtin_amdgcn_mfma_i32_16x16x32_i8(x, y, @, 0, 0, 0)",
            "long",
            "int4v",
            cdna3,
            16,
        ),
        (
            "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, @)",
            "half16",
            "float8v",
            rdna3,
            32,
        ),
    ] {
        let found = product(call, factor, sum, gpu, units);
        let what = format!("{call} on {gpu}");
        assert!(
            found.not_understood.is_empty(),
            "{what}: {:?}",
            found.not_understood
        );
        assert!(found.accesses.iter().all(|access| access.exact), "{what}");
        let threads = 1024.0 * 2.0 * units as f64;
        let count = found.counts.iter().find(|count| count.class == "tensor");
        let count = count.and_then(|count| count.value);
        assert_eq!(count, Some(threads * 2.0 * 4096.0), "{what}");
        let estimate = &found.estimates["auto"];
        // Each unit has two blocks' warps.
        let warps = 2.0 * 1024.0 / f64::from(lanes) / f64::from(simds);
        let expected = warps * 2.0 * 4096.0 * f64::from(cycles);
        let ratio = estimate.cycles.expect("a time") / expected;
        assert!((0.99..1.15).contains(&ratio), "{what}: {ratio}");
        assert_eq!(estimate.bottleneck, Some("tensor"), "{what}");
    }
}
