//! A host program walked and run with arguments: nothing panics, it ends, and what it launches is a launch.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use warplens_db::settings::{RunSettings, Settings};
use warplens_db::{Cancel, Engine, Overrides, Variants};
use warplens_fuzz::Case;
use warplens_machine::Profiles;
use warplens_syntax::Document;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

/// Kernels that a program can launch; its own text follows.
const KERNELS: &str = "#include <cstdio>\n#include <cstdlib>\n#include <vector>\n#include <string>\n\
    template <typename T> __global__ void scale(T *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n\
    __global__ void sum(float *out, const float *in, unsigned long long n, float by) { if (threadIdx.x < n) out[blockIdx.x] += by * in[threadIdx.x]; }\n";

fuzz_target!(|bytes: &[u8]| {
    let case = Case::read(bytes);
    let text = format!("{KERNELS}{}", case.text);
    let document = Document::new(&text, case.language);
    // The choices are the arguments.
    let arguments = String::from_utf8_lossy(&case.script).into_owned();
    let run = RunSettings {
        arguments,
        ..RunSettings::default()
    };
    let settings = Settings {
        run: vec![run],
        ..Settings::default()
    };
    let overrides = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    let found = ENGINE.analyze(
        &document,
        Path::new(case.name()),
        &settings,
        &overrides,
        &Cancel::default(),
    );
    let found = found.expect("not cancelled");
    assert_eq!(found.problems, Vec::<String>::new());
    for kernel in &found.kernels {
        let launch = &kernel.analysis.facts.launch;
        assert!(launch.block.iter().all(|&extent| extent > 0), "{launch:?}");
        assert!(launch.grid.iter().all(|&extent| extent > 0), "{launch:?}");
    }
});
