//! The CUDA benchmark programs, compiled by nvcc.
//!
//! `cargo xtask test --group compilers`, which has an nvcc with its disassembler beside it.

#[path = "../../toolchain/tests/compiler/mod.rs"]
mod compiler;

use std::path::Path;
use std::process::Command;

use compiler::nvcc;
use warplens_calibrate::{Interface, write_sources};

#[test]
fn every_cuda_program_compiles_for_two_architectures() {
    let nvcc = nvcc();
    let folder = tempfile::tempdir().unwrap();
    write_sources(Interface::Cuda, folder.path()).unwrap();
    let sources = Interface::Cuda.sources().iter();
    for name in sources.filter_map(|(name, _)| name.strip_suffix(".cu")) {
        let name = &format!("{name}.cu");
        // One run for both: nvcc reads a file once.
        let output = Command::new(&nvcc)
            .current_dir(folder.path())
            .args(["-std=c++17", "-Werror", "all-warnings"])
            .args([
                "-gencode",
                "arch=compute_80,code=sm_80",
                "-gencode",
                "arch=compute_90,code=sm_90",
            ])
            .args(["-fatbin", name, "-o", "out.fatbin"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }
}

/// What a benchmark means to time is there, as often as it says: a compiler that made less of it would not be noticed in
/// the figures.
#[test]
fn the_instructions_that_are_timed_are_in_the_machine_code() {
    // Program, part of the kernel's name, how the instruction begins, how often at least.
    const HELD: [(&str, &str, &str, usize); 24] = [
        ("instructions", "5issueI4Fp32Li1E", "FFMA", 64),
        ("instructions", "5issueI4Fp32Li4E", "FFMA", 256),
        ("instructions", "5issueI12Fp32MultiplyLi4E", "FMUL", 256),
        ("instructions", "5issueI4Fp64Li4E", "DFMA", 256),
        ("instructions", "5issueI3IntLi4E", "LOP3", 256),
        ("instructions", "5issueI6IntMulLi4E", "IMAD", 256),
        ("instructions", "5issueI3SfuLi4E", "MUFU", 256),
        ("instructions", "5issueI9FromFloatLi4E", "F2I", 256),
        ("instructions", "5issueI7ToFloatLi4E", "I2F", 256),
        ("instructions", "5issueI7ShuffleLi4E", "SHFL", 256),
        ("instructions", "5issueI4Fp16Li4E", "HFMA2", 256),
        ("instructions", "5issueI6TensorLi4E", "HMMA", 256),
        ("onchip", "9conflictsIfE", "LDS", 64),
        ("onchip", "8barriers", "BAR", 16),
        ("latency", "5chase", "LD", 16),
        ("bandwidth", "7read_l1I6float4Li256E", "LDG", 8),
        ("linear", "10lm_f32_add", "FADD", 64),
        ("linear", "10lm_f32_mul", "FMUL", 64),
        ("linear", "10lm_int_mul", "IMAD", 64),
        ("linear", "10lm_int_add", "LOP3", 64),
        ("linear", "10lm_f64_add", "DADD", 64),
        ("linear", "14lm_shared_load", "LDS", 64),
        ("linear", "15lm_shared_store", "STS", 16),
        ("linear", "7lm_load", "LDG", 8),
    ];
    let nvcc = nvcc();
    let dump = nvcc.with_file_name("cuobjdump");
    let folder = tempfile::tempdir().unwrap();
    write_sources(Interface::Cuda, folder.path()).unwrap();
    let run = |tool: &Path, arguments: &[&str]| {
        let output = Command::new(tool)
            .current_dir(folder.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut listings = std::collections::BTreeMap::new();
    for (program, kernel, instruction, least) in HELD {
        let listing = listings.entry(program).or_insert_with(|| {
            let source = format!("{program}.cu");
            run(
                &nvcc,
                &[
                    "-O3",
                    "-std=c++17",
                    "-arch=sm_90",
                    "-cubin",
                    &source,
                    "-o",
                    "out.cubin",
                ],
            );
            run(&dump, &["-sass", "out.cubin"])
        });
        let mut functions = listing.split("Function : ").skip(1);
        let code = functions.find(|function| {
            function
                .lines()
                .next()
                .is_some_and(|name| name.contains(kernel))
        });
        let code = code.unwrap_or_else(|| panic!("{program}: {kernel}"));
        let holds = |line: &&str| {
            line.split_whitespace()
                .any(|word| word.starts_with(instruction))
        };
        let count = code.lines().filter(holds).count();
        assert!(
            count >= least,
            "{program}: {kernel}: {count} of {instruction}"
        );
    }
}
