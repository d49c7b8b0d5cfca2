//! `estimate --model`: whichever model answers first, its parts, lines and what-ifs are its own and add up.

use serde_json::Value;

use crate::Folder;

const MODELS: [&str; 6] = ["auto", "mwp-cwp", "wfg", "timing", "linear", "trace"];

const KERNELS: [(&str, &str); 5] = [
    (
        "matmul.cu",
        include_str!("../../../../tests/kernels/matmul.cu"),
    ),
    (
        "reduction.cu",
        include_str!("../../../../tests/kernels/reduction.cu"),
    ),
    ("scan.cu", include_str!("../../../../tests/kernels/scan.cu")),
    ("spmv.cu", include_str!("../../../../tests/kernels/spmv.cu")),
    (
        "transpose.cu",
        include_str!("../../../../tests/kernels/transpose.cu"),
    ),
];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// What is wrong with a kernel's result where `model` answers first.
fn faults(result: &Value, model: &str) -> Vec<String> {
    let estimate = &result["estimates"][model];
    let empty = Vec::new();
    let list = |key: &str| result[key].as_array().unwrap_or(&empty);
    let mut faults = Vec::new();
    let Some(cycles) = estimate["cycles"].as_f64() else {
        if !estimate["why"].is_string() || !list("what_if").is_empty() {
            faults.push(format!("no answer, no reason: {estimate}"));
        }
        return faults;
    };
    let parts: f64 = estimate["breakdown"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "launch")
        .map(|(_, part)| number(part))
        .sum();
    if (parts - cycles).abs() > 1e-6 * cycles {
        faults.push(format!("parts {parts} of {cycles}"));
    }
    let lines = list("lines");
    // Of no cycles no line has a share.
    let shared = if cycles > 0.0 { 1.0 } else { 0.0 };
    for (key, whole) in [("share", shared), ("cycles", cycles)] {
        let sum: f64 = lines.iter().map(|line| number(&line[key])).sum();
        if (sum - whole).abs() > 1e-6 * whole {
            faults.push(format!("lines have {sum} of {whole} {key}"));
        }
    }
    let what_if = list("what_if");
    if what_if.len() != 6 {
        faults.push(format!("{} factors", what_if.len()));
    }
    for factor in what_if {
        let (without, speedup) = (number(&factor["cycles"]), number(&factor["speedup"]));
        let expected = (cycles / without.max(1.0)).max(1.0);
        let slower = without > 1.02 * cycles;
        if slower || (speedup - expected).abs() > 1e-6 * expected {
            faults.push(format!("{factor} of {cycles}"));
        }
    }
    faults
}

#[test]
fn every_model_has_parts_lines_and_what_ifs_of_its_own() {
    let folder = Folder::new();
    let (mut answers, mut faulty) = (0, Vec::new());
    for (file, text) in KERNELS {
        folder.write(file, text);
        for model in MODELS {
            let document = folder
                .run(&[
                    "estimate",
                    file,
                    "--gpu",
                    "gtx-280",
                    "--gpu",
                    "a100-sxm4-40gb",
                    "--model",
                    model,
                    "--format",
                    "json",
                ])
                .json();
            for result in document["results"].as_array().expect("results") {
                let place = format!("{} on {} by {model}", result["kernel"], result["gpu"]);
                let found = faults(result, model);
                faulty.extend(found.iter().map(|fault| format!("{place}: {fault}")));
                answers += usize::from(result["estimates"][model]["cycles"].is_number());
            }
        }
    }
    assert!(faulty.is_empty(), "{}", faulty.join("\n"));
    // All models on the old GPU; on the new one all that its figures are known for.
    assert!(answers > 100, "{answers}");
}

/// Loops without an end, and one of 1e18 iterations.
const ENDLESS: &str = "\
__global__ void turns(float *out) {
    while (true) out[threadIdx.x] += 1.0f;
}
__global__ void waits(volatile int *flag) {
    while (true) {
        if (flag[0]) break;
        __syncthreads();
    }
}
__global__ void nothing() {
    while (true) { }
}
__global__ void counts(float *out) {
    float sum = 0;
    for (long long k = 0; k < 1000000000000000000LL; ++k) sum += out[k & 31];
    out[threadIdx.x] = sum;
}
__global__ void empty() {
}
";

#[test]
fn loops_without_an_end_have_an_answer_or_a_reason_from_every_model() {
    let folder = Folder::with("k.cu", ENDLESS);
    for gpu in ["gtx-280", "a100-sxm4-40gb"] {
        for model in MODELS {
            let document = folder.estimate(&["--gpu", gpu, "--model", model]);
            let results = document["results"].as_array().expect("results");
            assert_eq!(results.len(), 5, "{document:#}");
            for result in results {
                let found = faults(result, model);
                assert!(
                    found.is_empty(),
                    "{} on {gpu} by {model}: {found:?}",
                    result["kernel"]
                );
            }
        }
    }
}
