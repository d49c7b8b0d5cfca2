//! `warplens.toml` and the settings of editors: whatever is in them, what is right is taken, each problem has a
//! place in the text, and a kernel is analysed under them.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

const KERNEL: &str = "#ifdef WIDE\n#define STEP 2\n#else\n#define STEP 1\n#endif\n\
    __global__ void k(float *a, int n) {\n\
    int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
    if (i < n) a[i * STEP] = 1;\n}\n";

fn analyse(settings: &Settings) {
    let found = ENGINE
        .analyze(
            &Document::new(KERNEL, Language::Cuda),
            Path::new("k.cu"),
            settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    assert_eq!(found.problems, Vec::<String>::new());
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let settings = match serde_json::from_str(&text) {
        Ok(json) => {
            let (settings, problems) = Settings::from_json(&json);
            assert!(problems.iter().all(|problem| !problem.is_empty()));
            settings
        }
        Err(_) => {
            let (settings, problems) = Settings::from_toml_with(&text, ENGINE.profiles());
            for problem in &problems {
                assert!(problem.range.end <= text.len(), "{problem:?}");
                assert!(text.get(problem.range.clone()).is_some(), "{problem:?}");
            }
            settings
        }
    };
    analyse(&settings);
    // What was taken can be written and taken again.
    let written = serde_json::to_value(&settings).expect("settings are data");
    let (again, problems) = Settings::from_json(&written);
    assert_eq!((&again, problems), (&settings, Vec::new()));
});
