//! Registers, LDS and occupancy of AMD GPUs as predicted, held against what clang makes of micro-kernels
//! (tests/fixtures/amd; measured.tsv says how it was asked).

use std::path::Path;
use std::sync::Arc;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, KernelAnalysis, Overrides};
use warplens_machine::{Profiles, occupancy};
use warplens_syntax::{Document, Language};

fn analysed(text: &str, gpu: &str) -> FileAnalysis {
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        ..Settings::default()
    };
    Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(text, Language::OpenCl),
            Path::new("a.cl"),
            &settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled")
}

fn kernel(text: &str, gpu: &str) -> Arc<KernelAnalysis> {
    Arc::clone(&analysed(text, gpu).kernels[0].analysis)
}

/// A fixture's text.
fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/amd");
    std::fs::read_to_string(path.join(name)).expect("our own fixture")
}

/// A kernel's name, and its VGPRs, SGPRs, LDS and waves on a SIMD: measured, predicted.
fn held() -> Vec<(String, [u64; 4], [u64; 4])> {
    let file = analysed(&fixture("micro.cl"), "mi210");
    let profile = Profiles::builtin().get("mi210").expect("it is built in");
    let table = fixture("measured.tsv");
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let (name, rest) = row.split_once('\t').expect("a name");
        let numbers: Vec<u64> = rest
            .split('\t')
            .map(|number| number.parse().expect("a number"))
            .collect();
        let measured = numbers.try_into().expect("four numbers");
        let found = file
            .kernels
            .iter()
            .find(|found| found.analysis.facts.name == name)
            .unwrap_or_else(|| panic!("no kernel {name}"));
        let input = &found.analysis.input;
        let compiled = &input.compiled;
        let all = occupancy(
            &profile,
            256,
            input.resources.registers_per_thread,
            input.resources.static_shared_bytes,
            u64::MAX,
        );
        let predicted = [
            u64::from(input.resources.registers_per_thread),
            u64::from(compiled.scalar_registers.expect("SGPRs of an AMD GPU")),
            input.resources.static_shared_bytes,
            u64::from(all.active_warps_per_sm / profile.sub_partitions),
        ];
        (name.to_owned(), measured, predicted)
    })
    .collect()
}

#[test]
fn vgprs_are_near_those_of_the_compiler() {
    let held = held();
    let mut off: Vec<u64> = held
        .iter()
        .map(|(_, measured, predicted)| measured[0].abs_diff(predicted[0]))
        .collect();
    off.sort_unstable();
    assert!(off[off.len() / 2] <= 2, "{held:#?}");
    let near = off.iter().filter(|off| **off <= 4).count();
    assert!(near * 100 >= off.len() * 85, "{near}: {held:#?}");
}

#[test]
fn sgprs_are_near_those_of_the_compiler() {
    let held = held();
    let mut off: Vec<u64> = held
        .iter()
        .map(|(_, measured, predicted)| measured[1].abs_diff(predicted[1]))
        .collect();
    off.sort_unstable();
    assert!(off[off.len() / 2] <= 3, "{held:#?}");
}

#[test]
fn the_lds_is_laid_out_as_by_the_compiler() {
    for (name, measured, predicted) in held() {
        assert_eq!(measured[2], predicted[2], "{name}");
    }
}

#[test]
fn waves_are_those_of_the_compiler() {
    for (name, measured, predicted) in held() {
        assert_eq!(measured[3], predicted[3], "{name}");
    }
}

#[test]
fn what_is_the_same_in_all_lanes_takes_no_vgprs() {
    let text = |index: &str| {
        format!(
            "__kernel void k(__global float *restrict o, __global const float *restrict a, int n) {{\n\
             float s = 0;\nfor (int j = 0; j < n; ++j) s += a[{index}];\no[get_local_id(0)] = s;\n}}\n"
        )
    };
    let shared = kernel(&text("j * n + get_group_id(0)"), "mi210");
    let own = kernel(&text("j * n + get_local_id(0)"), "mi210");
    assert!(
        shared.input.resources.registers_per_thread < own.input.resources.registers_per_thread,
        "{:?} {:?}",
        shared.input.compiled,
        own.input.compiled
    );
}

#[test]
fn a_gpu_with_one_kind_of_registers_has_no_sgprs() {
    let text = "__kernel void k(__global float *o) { __local float t[64];\n\
                int i = get_local_id(0); t[i] = o[i]; o[i] = i; }\n";
    let (amd, nvidia) = (kernel(text, "mi210"), kernel(text, "a100-sxm4-40gb"));
    assert!(amd.input.compiled.scalar_registers.is_some());
    assert_eq!(nvidia.input.compiled.scalar_registers, None);
    // What is never read LLVM takes away.
    assert_eq!(amd.input.resources.static_shared_bytes, 0);
    assert_eq!(nvidia.input.resources.static_shared_bytes, 256);
}

/// Two sums over what is loaded in straight code, each stored behind its guard.
fn two_sums(guards: [&str; 2]) -> Arc<KernelAnalysis> {
    let [low, high] = guards;
    let text = format!(
        "__kernel void two_sums(__global const float* in, __global float* out, int height) {{
            int x = get_global_id(0);
            int y = get_global_id(1);
            float low = 0.0f, high = 0.0f;
            #pragma unroll
            for (int k = 0; k < 100; k++) {{
                low += in[k * 4096 + x] * (float)(k + 3);
                high += in[k * 4096 + x + 2048] * (float)(k + 5);
            }}
            {low} out[y * 64 + x] = low;
            {high} out[(y + 4) * 64 + x] = high;
        }}"
    );
    kernel(&text, "mi210")
}

#[test]
fn what_is_loaded_for_sums_behind_guards_lives_until_then() {
    let registers = |kernel: &KernelAnalysis| kernel.input.resources.registers_per_thread;
    // clang 16.0.6 for gfx90a: 8 VGPRs without guards, 110 with them: the additions stand behind the guard, and the store
    // before them keeps the loads from following.
    let plain = registers(&two_sums(["", ""]));
    let guarded = registers(&two_sums(["if (y < height)", "if (y + 4 < height)"]));
    assert!(plain <= 64, "{plain}");
    assert!((90..=130).contains(&guarded), "{guarded}");
    // The first sum's loads stand behind its guard, the second's before it and its additions where the kernel ends: 110.
    let one = registers(&two_sums(["if (y < height)", ""]));
    assert!((90..=130).contains(&one), "{one}");
}
