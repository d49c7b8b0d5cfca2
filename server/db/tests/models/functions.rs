//! Cycles as a function of a parameter that is not given: once it is given, the estimate is what the function says.

use std::path::Path;
use std::sync::LazyLock;

use warplens_db::settings::Settings;
use warplens_db::wire::Estimate;
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

fn estimates(body: &str, gpu: &str, n: Option<i64>) -> [(&'static str, Estimate); 3] {
    let text = format!(
        "__global__ void k(const float *a, float *y, int n) {{\n\
         int i = blockIdx.x * 256 + threadIdx.x;\n{body}\n}}\n"
    );
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([2048, 1, 1]),
            block: Some([256, 1, 1]),
            args: n.map(|n| ("n".to_owned(), n)).into_iter().collect(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let mut document = ENGINE
        .estimate(
            &Document::new(&text, Language::Cuda),
            Path::new("k.cu"),
            &Settings::default(),
            &overrides,
            &[gpu.to_owned()],
            &[],
            &[],
        )
        .expect("a known GPU");
    let mut estimates = document.results.remove(0).estimates;
    ["auto", "mwp-cwp", "wfg"].map(|model| {
        let estimate = estimates.remove(model).expect("asked for");
        (model, estimate)
    })
}

/// A function of the form `fixed + slope * (n)`, with n put in.
fn at(function: &str, n: i64) -> f64 {
    let (fixed, term) = function.split_once(" + ").expect("two terms");
    let (slope, trips) = term.split_once(" * ").expect("a product");
    assert!(matches!(trips, "(n)" | "(max(n, 0))"), "{trips}");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    number(fixed) + number(slope) * n as f64
}

#[test]
fn a_given_parameter_specialises_the_function() {
    for body in [
        "float sum = 0;\n#pragma unroll 1\nfor (int k = 0; k < n; ++k) sum += a[k * 524288 + i];\ny[i] = sum;",
        "float sum = 0;\n#pragma unroll 1\nfor (int k = 0; k < n; ++k) sum = sum * sum + 1;\ny[i] = sum;",
        "if (i % 64 < 32) {\nfloat sum = 0;\n#pragma unroll 1\nfor (int k = 0; k < n; ++k) sum = sum * sum + a[i];\ny[i] = sum;\n}",
    ] {
        for gpu in ["geforce-8800-gtx", "gtx-280", "a100-sxm4-40gb"] {
            let open = estimates(body, gpu, None);
            for n in [200, 4000] {
                for ((model, open), (_, given)) in open.iter().zip(estimates(body, gpu, Some(n))) {
                    let Some(cycles) = given.cycles else { continue };
                    let function = open.cycles_function.as_deref().expect("n is free");
                    let said = at(function, n);
                    assert!(
                        (said / cycles - 1.0).abs() < 0.03,
                        "{model} on {gpu} at {n}: {function} is {said}, not {cycles}\n{body}"
                    );
                }
            }
        }
    }
}
