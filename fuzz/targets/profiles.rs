//! Profiles of GPUs: a file is refused with a line of words, or every figure of it is a number and a kernel has a
//! finite time on it.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

const KERNEL: &str = "__global__ void k(float *a, const float *b) {\n\
    __shared__ float s[256];\n\
    int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
    s[threadIdx.x * 2 % 256] = b[i * 3];\n\
    __syncthreads();\n\
    if (i % 2) a[i] = sqrtf(s[threadIdx.x]);\n}\n";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let profile = match Profiles::from_toml("fuzz.toml", &text) {
        Ok(profile) => profile,
        Err(problem) => {
            assert!(!problem.to_string().trim().is_empty());
            return;
        }
    };
    let id = profile.id.clone();
    let mut profiles = Profiles::builtin();
    profiles.insert(profile);
    let settings = Settings {
        gpu: Some(id),
        ..Settings::default()
    };
    let found = Engine::new(profiles)
        .analyze(
            &Document::new(KERNEL, Language::Cuda),
            Path::new("k.cu"),
            &settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    assert_eq!(found.problems, Vec::<String>::new());
    for kernel in &found.kernels {
        let cycles = kernel.analysis.estimate().cycles;
        assert!(
            cycles.is_none_or(|cycles| cycles.is_finite() && cycles >= 0.0),
            "{cycles:?}"
        );
    }
});
