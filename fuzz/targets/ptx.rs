//! Inline PTX of any text: nothing panics, and it costs itself only.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

/// The text as the inside of a string literal.
fn literal(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\0' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fuzz_target!(|bytes: &[u8]| {
    let assembly = literal(&String::from_utf8_lossy(bytes));
    let text = format!(
        "// warplens: block=128 grid=64\n\
         __global__ void k(float *out, const float *in, int n) {{\n\
         \x20 __shared__ float tile[1024];\n\
         \x20 unsigned at = __cvta_generic_to_shared(&tile[threadIdx.x * 4]);\n\
         \x20 unsigned r[4]; float f[4] = {{0, 1, 2, 3}};\n\
         \x20 const float *from = in + threadIdx.x * 4;\n\
         \x20 asm volatile(\"{assembly}\" : \"=r\"(r[0]), \"=r\"(r[1]), \"+f\"(f[0]), \"+f\"(f[1]) : \"r\"(at), \"l\"(from), \"r\"(n), \"n\"(16));\n\
         \x20 out[threadIdx.x] = f[0] + r[1];\n}}\n"
    );
    let document = Document::new(&text, Language::Cuda);
    let settings = Settings {
        gpu: Some("h100-sxm5".to_owned()),
        ..Settings::default()
    };
    let found = ENGINE.analyze(
        &document,
        Path::new("k.cu"),
        &settings,
        &Overrides::default(),
        &Cancel::default(),
    );
    let found = found.expect("not cancelled");
    assert_eq!(found.problems, Vec::<String>::new());
    for kernel in &found.kernels {
        let cycles = kernel.analysis.estimate().cycles;
        assert!(
            cycles.is_none_or(|cycles| cycles.is_finite() && cycles >= 0.0),
            "{cycles:?}"
        );
    }
});
