//! HIP for AMD's GPUs: the macros that clang defines for the target choose between bodies, and a `.cpp` is known by its headers.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides, language_by_content};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// Strides of the stores of the only kernel, in elements.
fn strides(gpu: &str, body: &str) -> Vec<i64> {
    let text = format!(
        "__global__ void k(float *out) {{\n  const int i = blockIdx.x * 256 + threadIdx.x;\n{body}}}\n"
    );
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        ..Settings::default()
    };
    let engine = Engine::new(Profiles::builtin());
    let file = engine
        .analyze(
            &Document::new(&text, Language::Hip),
            Path::new("k.hip"),
            &settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, []);
    let linear = facts
        .accesses
        .iter()
        .map(|access| access.linear.as_ref().expect("linear"));
    linear.map(|linear| linear.thread[0] / 4).collect()
}

#[test]
fn the_architecture_chooses_its_body() {
    let body = "#if defined(__gfx90a__) || defined(__gfx942__)\n  out[i * 2] = 0;\n\
                #elif defined(__GFX11__)\n  out[i * 3] = 0;\n#elif __AMDGCN__\n  out[i * 4] = 0;\n\
                #else\n  out[i] = 0;\n#endif\n";
    for (gpu, stride) in [
        ("mi250x", 2),
        ("mi300x", 2),
        ("rx-7900-xtx", 3),
        ("mi100", 4),
        ("a100", 1),
    ] {
        assert_eq!(strides(gpu, body), [stride], "{gpu}");
    }
}

#[test]
fn a_wave_has_the_targets_lanes() {
    let body = "#if defined(__AMDGCN_WAVEFRONT_SIZE__)\n  out[i * __AMDGCN_WAVEFRONT_SIZE__] = 0;\n\
                #else\n  out[i] = 0;\n#endif\n";
    for (gpu, stride) in [("mi250x", 64), ("rx-7900-xtx", 32), ("a100", 1)] {
        assert_eq!(strides(gpu, body), [stride], "{gpu}");
    }
}

#[test]
fn hips_headers_make_cudas_compiler_hips() {
    let kernel = |includes: &str| {
        let text = format!(
            "{includes}__global__ void k(float *out) {{\n#ifdef __HIPCC__\n  out[threadIdx.x * 2] = 0;\n\
             #else\n  out[threadIdx.x] = 0;\n#endif\n}}\n"
        );
        let engine = Engine::new(Profiles::builtin());
        let file = engine
            .analyze(
                &Document::new(&text, Language::Cuda),
                Path::new("k.cu"),
                &Settings::default(),
                &Overrides::default(),
                &Cancel::default(),
            )
            .expect("not cancelled");
        let access = &file.kernels[0].analysis.facts.accesses[0];
        access.linear.as_ref().expect("linear").thread[0] / 4
    };
    assert_eq!(kernel("#include <hip/hip_runtime.h>\n"), 2);
    assert_eq!(kernel("#include <cuda_runtime.h>\n"), 1);
}

#[test]
fn cpp_that_includes_hips_headers_is_hip() {
    let kernel = "__global__ void k(float *p) { p[threadIdx.x] = 0; }\n";
    for (header, language) in [
        ("#include <hip/hip_runtime.h>\n", Language::Hip),
        ("  # include \"hip/hip_fp16.h\"\n", Language::Hip),
        ("#include <cuda_runtime.h>\n", Language::Cuda),
        ("// see hip/hip_runtime.h\n", Language::Cuda),
    ] {
        let text = format!("{header}{kernel}");
        assert_eq!(language_by_content(None, &text), language, "{header}");
    }
}
