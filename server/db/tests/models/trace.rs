//! The trace model from source to answer, and the addresses that it follows.

use std::path::Path;
use std::sync::Arc;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, KernelAnalysis, LaunchValues, Overrides};
use warplens_facts::facts::{LinearAddress, Op, SourceFacts, Space};
use warplens_machine::Profiles;
use warplens_models::{Estimate, ModelId};
use warplens_syntax::{Document, Language};

fn analyses(
    text: &str,
    language: Language,
    gpu: &str,
    argument: LaunchValues,
) -> Vec<Arc<KernelAnalysis>> {
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        ..Settings::default()
    };
    let overrides = Overrides {
        argument,
        ..Overrides::default()
    };
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(text, language),
            Path::new("trace.cu"),
            &settings,
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    let kernels = file.kernels.iter();
    kernels.map(|kernel| Arc::clone(&kernel.analysis)).collect()
}

/// One kernel of 64 blocks of 16 x 16 threads on a GPU of the paper.
fn facts(text: &str, args: &[(&str, i64)]) -> SourceFacts {
    let launch = LaunchValues {
        grid: Some([8, 8, 1]),
        block: Some([16, 16, 1]),
        args: args.iter().map(|&(n, v)| (n.to_owned(), v)).collect(),
        ..LaunchValues::default()
    };
    analyses(text, Language::Cuda, "quadro-k620", launch)[0]
        .facts
        .as_ref()
        .clone()
}

fn linear(constant: i64, thread: [i64; 3], block: [i64; 3], loops: &[i64]) -> LinearAddress {
    LinearAddress {
        constant,
        thread,
        block,
        loops: loops.to_vec(),
    }
}

/// The addresses of all accesses, which are all sums.
fn addresses(facts: &SourceFacts) -> Vec<LinearAddress> {
    let accesses = facts.accesses.iter();
    let known = accesses.map(|access| access.linear.clone().expect(&access.text));
    known.collect()
}

#[test]
fn addresses_of_a_tile_are_sums_of_coordinates_and_iterations() {
    let text = "__global__ void k(const float *a, float *c, int n) {\n\
        int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
        float s = 0;\n\
        for (int t = 0; t < n; t += 16)\n\
          for (int i = 0; i < 16; i++) s += a[y * n + t + i + 3];\n\
        c[y * n + x] = s;\n}\n";
    let found = addresses(&facts(text, &[("n", 128)]));
    // A row has 512 bytes, a block 16 rows.
    assert_eq!(
        found,
        [
            linear(12, [0, 512, 0], [0, 8192, 0], &[64, 4]),
            linear(0, [4, 512, 0], [64, 8192, 0], &[]),
        ]
    );
    // Loops that count down or start somewhere count their iterations all the same.
    let text = "__global__ void k(float *c) {\n\
        for (int i = 9; i > 1; i -= 2) c[i * 8 + threadIdx.x] = 0;\n}\n";
    let found = addresses(&facts(text, &[]));
    assert_eq!(found, [linear(9 * 32, [4, 0, 0], [0; 3], &[-64])]);
}

#[test]
fn addresses_that_are_no_sums_are_not_taken_for_such() {
    let text = "__global__ void k(const int *p, float *c, int n) {\n\
        __shared__ float tile[256];\n\
        int t = threadIdx.y * 16 + threadIdx.x;\n\
        tile[t] = c[t / 8];\n\
        c[p[t]] = tile[t];\n\
        c[t * t] = 1;\n\
        c[t ^ 1] = 2;\n}\n";
    let facts = facts(text, &[("n", 128)]);
    for access in &facts.accesses {
        let cached = access.space == Space::Global && access.array == "p";
        assert_eq!(access.linear.is_some(), cached, "{}", access.text);
    }
}

#[test]
fn work_items_of_opencl_have_addresses_too() {
    let text = "__kernel void k(__global float *c, int n) {\n\
        c[get_global_id(1) * n + get_global_id(0)] = 0;\n}\n";
    let launch = LaunchValues {
        grid: Some([8, 8, 1]),
        block: Some([32, 4, 1]),
        args: [("n".to_owned(), 256)].into(),
        ..LaunchValues::default()
    };
    let kernel = &analyses(text, Language::OpenCl, "quadro-k620", launch)[0];
    assert_eq!(
        addresses(&kernel.facts),
        [linear(0, [4, 1024, 0], [128, 4096, 0], &[])]
    );
}

fn sound(estimate: &Estimate) -> f64 {
    let cycles = estimate
        .cycles
        .unwrap_or_else(|| panic!("{:?}", estimate.why));
    let b = &estimate.breakdown;
    let parts = b.compute
        + b.memory_bandwidth
        + b.memory_latency
        + b.shared
        + b.divergence
        + b.synchronisation;
    let lines: f64 = estimate.lines.iter().map(|(_, cycles)| cycles).sum();
    assert!(cycles.is_finite() && cycles > 0.0);
    assert!((parts - cycles).abs() <= 1e-9 * cycles);
    assert!((lines - cycles).abs() <= 1e-9 * cycles);
    cycles
}

fn ours(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    std::fs::read_to_string(path.join(file)).expect("our own kernel")
}

#[test]
fn every_kernel_of_ours_gets_an_answer_on_the_gpus_of_the_paper() {
    let mut answers = 0;
    for file in [
        "matmul.cu",
        "particles.cu",
        "reduction.cu",
        "scan.cu",
        "stencil.cu",
        "transpose.cu",
        "vector_add.cu",
    ] {
        for gpu in ["quadro-k600", "gtx-645", "quadro-k620", "geforce-940m"] {
            let launch = LaunchValues::default();
            for analysis in analyses(&ours(file), Language::Cuda, gpu, launch) {
                let estimate = analysis
                    .estimate_by(ModelId::Trace, &Cancel::default())
                    .expect("not cancelled");
                sound(&estimate);
                answers += 1;
            }
        }
    }
    assert!(answers >= 60, "{answers}");
}

#[test]
fn transposes_come_in_the_order_of_what_they_waste() {
    let launch = LaunchValues::default();
    let kernels = analyses(&ours("transpose.cu"), Language::Cuda, "quadro-k620", launch);
    let cycles = |name: &str| {
        let of = kernels.iter().find(|kernel| kernel.facts.name == name);
        let estimate = of
            .expect("it is there")
            .estimate_by(ModelId::Trace, &Cancel::default());
        sound(&estimate.expect("not cancelled"))
    };
    let [naive, tiled, padded] =
        ["naive", "tiled", "padded"].map(|name| cycles(&format!("transpose_{name}")));
    assert!(naive > tiled && tiled > padded, "{naive} {tiled} {padded}");
}

#[test]
fn a_matrix_that_l2_holds_is_read_from_dram_once() {
    // Each block reads all of b: 64 x 64 floats, which 64 blocks share.
    let text = "__global__ void k(const float *b, float *c, int n) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        float s = 0;\n\
        for (int t = 0; t < n; t++) s += b[t * 64 + threadIdx.x];\n\
        c[i] = s;\n}\n";
    let launch = LaunchValues {
        grid: Some([64, 1, 1]),
        block: Some([64, 1, 1]),
        args: [("n".to_owned(), 64)].into(),
        ..LaunchValues::default()
    };
    let kernel = &analyses(text, Language::Cuda, "quadro-k620", launch)[0];
    let estimate = kernel
        .estimate_by(ModelId::Trace, &Cancel::default())
        .expect("not cancelled");
    sound(&estimate);
    assert!(
        estimate.detail["l2_hit_rate"] > 0.9,
        "{:?}",
        estimate.detail
    );
    assert_eq!(estimate.detail["unknown_addresses"], 0.0);
}

#[test]
fn warps_with_more_iterations_have_traces_of_their_own() {
    let text = "__global__ void k(float *c) {\n\
        float s = 0;\n\
        for (int t = 0; t < 8 + 100 * (threadIdx.x / 128); t++) s = s * s + 1.5f;\n\
        c[blockIdx.x * blockDim.x + threadIdx.x] = s;\n}\n";
    let launch = LaunchValues {
        grid: Some([64, 1, 1]),
        block: Some([256, 1, 1]),
        ..LaunchValues::default()
    };
    let kernel = &analyses(text, Language::Cuda, "quadro-k620", launch)[0];
    let stores = kernel.facts.accesses.iter();
    assert_eq!(stores.filter(|access| access.op == Op::Store).count(), 1);
    let estimate = kernel
        .estimate_by(ModelId::Trace, &Cancel::default())
        .expect("not cancelled");
    sound(&estimate);
    assert_eq!(estimate.detail["distinct_warps"], 2.0);
}

#[test]
fn a_cancelled_simulation_leaves_nothing() {
    let kernel = &analyses(
        &ours("matmul.cu"),
        Language::Cuda,
        "quadro-k620",
        LaunchValues::default(),
    )[0];
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(kernel.estimate_by(ModelId::Trace, &cancel), None);
    assert_eq!(kernel.simulated(ModelId::Trace), None);
    assert!(
        kernel
            .estimate_by(ModelId::Trace, &Cancel::default())
            .is_some()
    );
}
