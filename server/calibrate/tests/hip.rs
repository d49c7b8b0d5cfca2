//! The HIP benchmark programs, compiled by hipcc. No AMD GPU is needed.
//!
//! `cargo xtask test --group compilers`, where hipcc is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use warplens_calibrate::{Interface, find_compiler, write_sources};

/// CDNA with 64 lanes per wave, RDNA with 32.
const ARCHITECTURES: [&str; 2] = ["gfx90a", "gfx1030"];

fn hipcc() -> PathBuf {
    let found = find_compiler(Some(Interface::Hip));
    found.expect("hipcc on the PATH").1
}

/// What it prints, where it succeeds.
fn compile(hipcc: &Path, folder: &Path, arguments: &[String]) {
    let output = Command::new(hipcc)
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// With the arguments of a calibration.
#[test]
fn every_hip_program_compiles_and_says_that_there_is_no_gpu() {
    let hipcc = hipcc();
    let folder = tempfile::tempdir().unwrap();
    write_sources(Interface::Hip, folder.path()).unwrap();
    let sources = Interface::Hip.sources().iter();
    for program in sources.filter_map(|(name, _)| name.strip_suffix(".cu")) {
        let source = Interface::Hip.source(program);
        let mut arguments = Interface::Hip.arguments(&source, program, ARCHITECTURES[0]);
        arguments.push(format!("--offload-arch={}", ARCHITECTURES[1]));
        arguments
            .extend(["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"].map(str::to_owned));
        compile(&hipcc, folder.path(), &arguments);
        if !Path::new("/dev/kfd").exists() {
            let output = Command::new(folder.path().join(program)).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{program}: {said}");
            assert!(said.starts_with("no GPU: "), "{program}: {said}");
        }
    }
}

/// What a benchmark means to time is there, as often as it says, and nothing else of its kind.
#[test]
fn the_instructions_that_are_timed_are_in_the_machine_code() {
    // Program, part of the kernel's name, how the instruction begins, how often at least, and what must not be there.
    const HELD: [(&str, &str, &str, usize, &str); 23] = [
        (
            "instructions",
            "5issueI4Fp32Li1E",
            "v_fma_f32",
            64,
            "v_pk_fma_f32",
        ),
        (
            "instructions",
            "5issueI4Fp32Li4E",
            "v_fma_f32",
            256,
            "v_pk_fma_f32",
        ),
        (
            "instructions",
            "5issueI12Fp32MultiplyLi4E",
            "v_mul_f32",
            256,
            "v_pk_mul_f32",
        ),
        (
            "instructions",
            "5issueI4Fp64Li4E",
            "v_fma_f64",
            256,
            "flat_",
        ),
        (
            "instructions",
            "5issueI3IntLi4E",
            "v_xor_b32",
            256,
            "v_xad_u32",
        ),
        ("instructions", "5issueI3IntLi4E", "v_sub", 256, "v_xad_u32"),
        (
            "instructions",
            "5issueI6IntMulLi4E",
            "v_mul_lo_u32",
            256,
            "v_mad_u",
        ),
        (
            "instructions",
            "5issueI3SfuLi4E",
            "v_rsq_f32",
            256,
            "v_mul_f32",
        ),
        (
            "instructions",
            "5issueI9FromFloatLi4E",
            "v_cvt_i32_f32",
            256,
            "v_rndne_f32",
        ),
        (
            "instructions",
            "5issueI7ToFloatLi4E",
            "v_cvt_f32_i32",
            256,
            "v_mul_f32",
        ),
        (
            "instructions",
            "5issueI7ShuffleLi4E",
            "ds_bpermute_b32",
            256,
            "v_add_lshl_u32",
        ),
        (
            "instructions",
            "5issueI4Fp16Li4E",
            "v_pk_fma_f16",
            256,
            "v_fma_f16",
        ),
        ("onchip", "9conflictsIfE", "ds_read_b32", 64, "flat_load"),
        (
            "onchip",
            "9conflictsI15HIP_vector_typeIfLj4E",
            "ds_read_b128",
            64,
            "buffer_store",
        ),
        ("onchip", "8barriers", "s_barrier", 16, "flat_"),
        ("latency", "5chase", "global_load_dwordx2", 17, "flat_load"),
        (
            "latency",
            "11chase_smallILb0E",
            "ds_read_b32",
            16,
            "flat_load",
        ),
        (
            "latency",
            "11chase_smallILb1E",
            "s_load_dword",
            16,
            "flat_load",
        ),
        (
            "bandwidth",
            "7read_l1I15HIP_vector_typeIfLj4EELi256E",
            "global_load_dwordx4",
            8,
            "flat_load",
        ),
        (
            "departure",
            "5loadsILi4ELi32E",
            "global_load_dword",
            4,
            "flat_load",
        ),
        ("linear", "10lm_f32_mul", "v_mul_f32", 64, "flat_load"),
        ("linear", "10lm_f64_mul", "v_mul_f64", 64, "flat_load"),
        ("linear", "7lm_load", "global_load_dword", 8, "flat_load"),
    ];
    let hipcc = hipcc();
    let folder = tempfile::tempdir().unwrap();
    write_sources(Interface::Hip, folder.path()).unwrap();
    let mut listings = std::collections::BTreeMap::new();
    for architecture in ARCHITECTURES {
        for (program, kernel, instruction, least, never) in HELD {
            let listing = listings.entry((program, architecture)).or_insert_with(|| {
                let source = Interface::Hip.source(program);
                let mut arguments = Interface::Hip.arguments(&source, "out.s", architecture);
                arguments.extend(["--cuda-device-only", "-S"].map(str::to_owned));
                compile(&hipcc, folder.path(), &arguments);
                std::fs::read_to_string(folder.path().join("out.s")).unwrap()
            });
            // From a function's name to what describes it.
            let mut functions = listing.split("\t.globl\t").skip(1);
            let code = functions.find(|function| {
                let name = function.split_whitespace().next();
                name.is_some_and(|name| name.contains(kernel))
            });
            let code = code.unwrap_or_else(|| panic!("{program}: {kernel}"));
            let code = code.split(".amdhsa_kernel").next().unwrap_or_default();
            let begins = |with: &str| {
                let lines = code
                    .lines()
                    .filter_map(|line| line.split_whitespace().next());
                lines.filter(|word| word.starts_with(with)).count()
            };
            let (count, other) = (begins(instruction), begins(never));
            assert!(
                count >= least && other == 0,
                "{architecture}, {program}: {kernel}: {count} of {instruction}, {other} of {never}"
            );
        }
    }
}
