//! Our kernels, compiled by nvcc: what is read of its output against what it says itself.
//!
//! `cargo xtask test --group compilers`, which has an nvcc: `NVCC`, on the `PATH`, or in `.test-tools`.

mod compiler;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warplens_codegen::Class;
use warplens_codegen::assembly::{cubin, ptx};
use warplens_toolchain::{CompileRequest, KernelReport, compile};

use compiler::nvcc;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources() -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = std::fs::read_dir(root().join("tests/kernels"))
        .unwrap()
        .flatten()
        .map(|entry| std::fs::canonicalize(entry.path()).unwrap())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .collect();
    sources.sort();
    sources
}

/// The architecture that a program says it needs.
fn needed(source: &Path) -> Option<String> {
    let text = std::fs::read_to_string(source).unwrap();
    let mut lines = text.lines();
    let needed = lines.find_map(|line| line.strip_prefix("// architecture: "));
    needed.map(str::to_owned)
}

fn report_of(file: &Path, architecture: &str) -> Vec<KernelReport> {
    let request = CompileRequest {
        file: file.to_owned(),
        arguments: vec!["-std=c++17".to_owned()],
        architecture: architecture.to_owned(),
        bound: Duration::from_mins(2),
    };
    let report = compile(&nvcc(), &request, &AtomicBool::new(false)).unwrap();
    assert!(report.tool.starts_with("nvcc "), "{}", report.tool);
    report.kernels
}

/// Runs a program and gives what it prints.
fn printed(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {text}", program.display());
    text + &String::from_utf8_lossy(&output.stderr)
}

/// Instructions of a disassembly by name and kernel, counted in the plainest way: a word at its place.
fn plainly(sass: &str, opcode: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut kernel = String::new();
    for line in sass.lines() {
        if let Some((_, name)) = line.split_once("Function : ") {
            name.trim().clone_into(&mut kernel);
            found.insert(kernel.clone(), 0);
        }
        let mut words = line.split_whitespace().skip(1);
        let word = words.next().unwrap_or("");
        let word = match word {
            // Never executed: it holds a place.
            "@!PT" => "",
            _ if word.starts_with('@') => words.next().unwrap_or(""),
            _ => word,
        };
        // Copies load, and matrices are loaded and stored, by instructions of their own.
        let name = match word.split(['.', ';']).next().unwrap_or("") {
            "LDGSTS" => "LDG",
            "LDSM" => "LDS",
            "STSM" => "STS",
            // Another block's shared memory has generic addresses, as device memory may.
            "LD" => "LDG",
            "ST" => "STG",
            // A block waits for its cluster.
            "UCGABAR_WAIT" => "BAR",
            other => other,
        };
        if name == opcode {
            *found.get_mut(&kernel).unwrap() += 1;
        }
    }
    found
}

#[test]
fn registers_and_memory_instructions_are_nvccs() {
    let nvcc = nvcc();
    let cuobjdump = nvcc.with_file_name("cuobjdump");
    let folder = tempfile::tempdir().unwrap();
    for architecture in ["sm_75", "sm_80", "sm_90", "sm_120"] {
        for source in sources() {
            let name = source.file_name().unwrap_or_default();
            // `cp.async` and products 16 deep are 8.0's.
            let since_8 = name == "attention.cu" || name == "hgemm.cu" || name == "quantised.cu";
            if architecture == "sm_75" && since_8 {
                continue;
            }
            // Clusters are 9.0's, `wgmma` that one's alone.
            let needed = needed(&source);
            let architecture = match &needed {
                Some(needed) if needed.starts_with(architecture) => needed.as_str(),
                Some(_) => continue,
                None => architecture,
            };
            let path = folder.path().join("k.cubin");
            let out = path.to_string_lossy().into_owned();
            let arch = format!("-arch={architecture}");
            let file = source.to_string_lossy();
            printed(&nvcc, &["-cubin", "-std=c++17", &arch, "-o", &out, &file]);
            let usage = printed(&cuobjdump, &["-res-usage", &out]);
            let code = printed(&cuobjdump, &["-sass", &out]);
            let report = report_of(&source, architecture);
            assert!(!report.is_empty(), "{file}");
            let bytes = std::fs::read(&path).unwrap();
            let resources = cubin(&bytes).unwrap();
            for kernel in &report {
                let what = format!("{architecture} {file} {}", kernel.mangled);
                let (_, line) = usage
                    .split_once(&format!("Function {}:", kernel.mangled))
                    .unwrap();
                let number = |mark: &str| -> u64 {
                    let (_, rest) = line.split_once(mark).unwrap();
                    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
                    digits.parse().unwrap()
                };
                assert_eq!(u64::from(kernel.registers), number("REG:"), "{what}");
                // Since sm_90 cuobjdump counts what the system keeps for itself.
                let reserved = if matches!(architecture, "sm_90" | "sm_90a" | "sm_120") {
                    number("SHARED:").min(1024)
                } else {
                    0
                };
                let shared = number("SHARED:") - reserved;
                assert_eq!(kernel.static_shared_bytes, shared, "{what}");
                assert_eq!(kernel.stack_bytes, number("STACK:"), "{what}");
                for (class, opcode) in [
                    (Class::Ldg, "LDG"),
                    (Class::Stg, "STG"),
                    (Class::Lds, "LDS"),
                    (Class::Sts, "STS"),
                    (Class::Bar, "BAR"),
                    (Class::Ffma, "FFMA"),
                ] {
                    let counted = kernel.instructions.get(&class).copied().unwrap_or(0);
                    let theirs = plainly(&code, opcode)[&kernel.mangled];
                    assert_eq!(counted, theirs, "{what} {opcode}");
                }
                let of_file = kernel
                    .lines
                    .iter()
                    .filter(|(path, ..)| {
                        path.ends_with(source.file_name().unwrap().to_str().unwrap())
                    })
                    .count();
                // An empty kernel has its end.
                assert!(of_file > 0, "{what}: no lines");
                let resource = resources
                    .iter()
                    .find(|resource| resource.mangled == kernel.mangled)
                    .unwrap();
                assert_eq!(resource.registers, Some(kernel.registers), "{what}");
                let shared = Some(kernel.static_shared_bytes);
                assert_eq!(resource.shared_bytes, shared, "{what}");
                // A cubin does not say what only one architecture has: `sm_90a`.
                let plain = architecture.trim_end_matches('a');
                let said = resource.architecture.trim_end_matches('a');
                assert_eq!(said, plain, "{what}");
            }
        }
    }
}

#[test]
fn ptx_has_the_kernels_and_their_memory_instructions() {
    let nvcc = nvcc();
    let folder = tempfile::tempdir().unwrap();
    for source in sources().iter().filter(|source| needed(source).is_none()) {
        let out = folder.path().join("k.ptx");
        let (path, file) = (out.to_string_lossy(), source.to_string_lossy());
        let flags = ["-ptx", "-std=c++17", "-arch=sm_80", "-lineinfo", "-o"];
        printed(&nvcc, &[&flags[..], &[&path, &file]].concat());
        let text = std::fs::read_to_string(&out).unwrap();
        let kernels = ptx(&text);
        let report = report_of(source, "sm_80");
        assert_eq!(kernels.len(), report.len(), "{file}");
        let all = |class: Class| -> u64 {
            let counts = kernels.iter().filter_map(|k| k.instructions.get(&class));
            counts.sum()
        };
        let plainly = |word: &str| text.matches(word).count() as u64;
        // Fragments are loaded and stored through addresses that name no memory, which is taken for global.
        let loads = [
            "ld.global",
            "ld.volatile.global",
            "cp.async.cg.shared.global",
            "wmma.load",
        ];
        let loads = loads.map(plainly);
        let loads: u64 = loads.iter().sum();
        assert_eq!(all(Class::Ldg), loads, "{file}");
        let stores = ["st.global", "st.volatile.global", "wmma.store"].map(plainly);
        let stores: u64 = stores.iter().sum();
        assert_eq!(all(Class::Stg), stores, "{file}");
        assert_eq!(
            all(Class::Bar),
            plainly("bar.sync") + plainly("barrier.sync"),
            "{file}"
        );
        for kernel in &kernels {
            let compiled = report.iter().find(|k| k.mangled == kernel.mangled).unwrap();
            assert_eq!(kernel.shared_bytes, Some(compiled.static_shared_bytes));
            let (ours, theirs) = (kernel.registers.unwrap(), compiled.registers);
            println!(
                "{}: {ours} registers from PTX, {theirs} compiled",
                kernel.mangled
            );
            // An estimate: what the assembler moves and merges is not followed. PTX has all 64 loads of one kernel before
            // its sums; the assembler takes them as it sums.
            if kernel.mangled.contains("shared_loads") {
                assert!(
                    ours > 64,
                    "{ours} of {theirs}: then it belongs with the others"
                );
                continue;
            }
            let low = theirs / 3;
            assert!((low..=theirs * 3).contains(&ours), "{ours} of {theirs}");
        }
    }
}
