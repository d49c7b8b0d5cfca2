//! The benchmark programs through real tools: nvcc where there is one, oclgrind where it is installed.
//!
//! Where a tool is missing its test says so and passes: `cargo xtask test` has the groups `compilers` and `oclgrind` for
//! machines that must have them.

use std::path::{Path, PathBuf};
use std::process::Command;

use warplens_calibrate::{Interface, write_sources};

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn below(folder: &Path) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let here = entries.iter().find(|path| path.ends_with("bin/nvcc"));
    here.cloned()
        .or_else(|| entries.iter().find_map(|path| below(path)))
}

/// `NVCC`, on the `PATH`, or in `.test-tools`.
fn nvcc() -> Option<PathBuf> {
    let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-tools/cuda");
    let named = std::env::var_os("NVCC").map(PathBuf::from);
    named
        .or_else(|| on_path("nvcc"))
        .or_else(|| below(&packaged))
}

#[test]
fn every_cuda_program_compiles_for_two_architectures() {
    let Some(nvcc) = nvcc() else {
        eprintln!("no nvcc: not compiled");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    write_sources(Interface::Cuda, folder.path()).unwrap();
    for (name, _) in Interface::Cuda.sources() {
        if !name.ends_with(".cu") {
            continue;
        }
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

#[test]
fn every_opencl_benchmark_runs_in_a_simulator() {
    let (Some(cc), Some(oclgrind)) = (on_path("cc"), on_path("oclgrind")) else {
        eprintln!("no cc or no oclgrind: not run");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    write_sources(Interface::OpenCl, folder.path()).unwrap();
    let arguments = Interface::OpenCl.arguments("opencl.c", "opencl", "");
    let output = Command::new(cc)
        .current_dir(folder.path())
        .args(["-Wall", "-Wextra", "-Werror"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A small part of the work: the figures mean nothing here. Instructions take a simulator too long in all their
    // configurations, and are built by every other run.
    let names = Interface::OpenCl.benches().map(|bench| bench.name);
    for bench in names
        .filter(|name| *name != "instruction")
        .chain(["device"])
    {
        let output = Command::new(&oclgrind)
            .current_dir(folder.path())
            .args(["./opencl", bench, "0", "1", "0.0001"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.trim().is_empty(),
            "{bench}: {said}"
        );
        let lines = text.lines().map(serde_json::from_str::<serde_json::Value>);
        let lines: Vec<serde_json::Value> = lines.collect::<Result<_, _>>().unwrap();
        assert!(!lines.is_empty(), "{bench}");
        assert!(
            bench == "device" || lines.iter().all(|line| line["bench"] == bench),
            "{text}"
        );
    }
}
