//! NVIDIA's compilers: nvcc, ptxas, and clang for NVIDIA's GPUs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_base::read_regular;
use warplens_codegen::assembly::{AssembledKernel, Name, Usage, cubin, ptxas_verbose, sass};

use crate::identify::{Compiler, CompilerKind};
use crate::process::{self, Limits};
use crate::{CompileRequest, Failure, KernelReport, arguments};

/// Largest cubin that is read, in MiB.
const LARGEST: u64 = 256;

/// Compiles a source file with nvcc, or a file of PTX with ptxas.
pub fn compile(
    tool: &Path,
    compiler: &Compiler,
    request: &CompileRequest,
    limits: &Limits,
) -> Result<Vec<KernelReport>, Failure> {
    let (folder, file) = (process::private_folder()?, file(request)?);
    let cubin = folder.path().join("device.cubin");
    let mut options = Vec::new();
    if compiler.kind == CompilerKind::Ptxas {
        options.extend(["-v", "-lineinfo"].map(str::to_owned));
    } else {
        options.extend(passed(request, &file));
        // -w: the author sees warnings in the build.
        options.extend(["-cubin", "-w", "-Xptxas", "-v"].map(str::to_owned));
        if !options
            .iter()
            .any(|option| matches!(option.as_str(), "-G" | "--device-debug"))
        {
            options.push("-lineinfo".to_owned());
        }
        // A header, or another extension, may hold kernels too.
        if !options.iter().any(|option| option == "-x") && !is_cuda(&file) {
            options.extend(["-x", "cu"].map(str::to_owned));
        }
    }
    if !request.architecture.is_empty() {
        options.push(format!("-arch={}", request.architecture));
    }
    options.extend(["-o".to_owned(), spelled(&cubin), spelled(&file)]);
    let outcome = process::run(tool, &options, folder.path(), limits)?;
    answer(tool, &cubin, &outcome, &compiler.name(), limits)
}

/// Compiles a source file with clang for one of NVIDIA's GPUs.
pub fn clang(
    tool: &Path,
    request: &CompileRequest,
    limits: &Limits,
) -> Result<Vec<KernelReport>, Failure> {
    let (folder, file) = (process::private_folder()?, file(request)?);
    let cubin = folder.path().join("device.cubin");
    let folder_of = file.parent().unwrap_or(&file);
    let mut options = arguments::passed(&request.arguments, folder_of, false);
    options.extend(
        [
            "-x",
            "cuda",
            "--cuda-device-only",
            "-c",
            "-w",
            "-O3",
            "-gline-tables-only",
            "-Xcuda-ptxas",
            "-v",
        ]
        .map(str::to_owned),
    );
    if !request.architecture.is_empty() {
        options.push(format!("--offload-arch={}", request.architecture));
    }
    options.extend(["-o".to_owned(), spelled(&cubin), spelled(&file)]);
    let outcome = process::run(tool, &options, folder.path(), limits)?;
    answer(tool, &cubin, &outcome, "clang", limits)
}

/// Disassembles a cubin: with nvdisasm, which prints lines, else with cuobjdump, which does not.
pub fn disassembly(tool: &Path, cubin: &Path, limits: &Limits) -> Result<String, Failure> {
    let folder = process::private_folder()?;
    let mut missing = true;
    for (name, options) in [
        // `-gi` prints inlined calls since CUDA 11.2.
        ("nvdisasm", &["-c", "-gi"][..]),
        ("nvdisasm", &["-c", "-g"]),
        ("cuobjdump", &["-sass"]),
    ] {
        let Some(program) = beside(tool, name) else {
            continue;
        };
        missing = false;
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        options.push(spelled(cubin));
        let outcome = process::run(&program, &options, folder.path(), limits)?;
        if outcome.success && outcome.output.contains("/*0000*/") {
            return Ok(outcome.output);
        }
    }
    Err(if missing {
        Failure::Incomplete {
            program: "nvdisasm".to_owned(),
        }
    } else {
        Failure::NotUnderstood("nvdisasm".to_owned())
    })
}

fn answer(
    tool: &Path,
    path: &Path,
    outcome: &process::Outcome,
    name: &str,
    limits: &Limits,
) -> Result<Vec<KernelReport>, Failure> {
    if !outcome.success {
        return Err(Failure::Failed(process::first_error(outcome)));
    }
    let not_understood = || Failure::NotUnderstood(name.to_owned());
    let bytes = read_regular(path, LARGEST << 20).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => Failure::TooMuch(LARGEST),
        ErrorKind::NotFound => not_understood(),
        _ => Failure::Folder(error.to_string()),
    })?;
    let resources = cubin(&bytes).ok_or_else(not_understood)?;
    let mut usages = ptxas_verbose(&outcome.errors);
    usages.extend(ptxas_verbose(&outcome.output));
    // Registers need no disassembly, and they matter most.
    let code = if resources.is_empty() {
        Vec::new()
    } else {
        match disassembly(tool, path, limits) {
            Ok(text) => sass(&text),
            Err(Failure::Incomplete { .. } | Failure::NotUnderstood(_)) => Vec::new(),
            Err(failure) => return Err(failure),
        }
    };
    Ok(kernels(&usages, &resources, code))
}

/// Joins ptxas's usage lines, the cubin's resources and the disassembly by kernel.
fn kernels(
    usages: &[Usage],
    resources: &[AssembledKernel],
    code: Vec<AssembledKernel>,
) -> Vec<KernelReport> {
    let mut found = Vec::new();
    for usage in usages {
        let mut kernel = named_report(&usage.mangled);
        kernel.registers = usage.registers;
        kernel.static_shared_bytes = usage.shared_bytes;
        kernel.stack_bytes = usage.stack_bytes;
        kernel.spill_store_bytes = usage.spill_store_bytes;
        kernel.spill_load_bytes = usage.spill_load_bytes;
        found.push(kernel);
    }
    for resource in resources {
        // Only where ptxas printed no usage: a cubin also lists device functions, without registers.
        if usages.is_empty() {
            let mut kernel = named_report(&resource.mangled);
            kernel.registers = resource.registers.unwrap_or(0);
            kernel.static_shared_bytes = resource.shared_bytes.unwrap_or(0);
            kernel.stack_bytes = resource.stack_bytes.unwrap_or(0);
            found.push(kernel);
        }
    }
    for code in code {
        if let Some(kernel) = found
            .iter_mut()
            .find(|kernel| kernel.mangled == code.mangled)
        {
            kernel.instructions = code.instructions;
            kernel.lines = code
                .lines
                .into_iter()
                .map(|((file, line), counts)| (Arc::clone(&file), line, counts))
                .collect();
        }
    }
    found
}

/// A report with only the kernel's names.
pub fn named_report(mangled: &str) -> KernelReport {
    let name = Name::of_mangled(mangled);
    KernelReport {
        mangled: mangled.to_owned(),
        name: name.plain,
        template_arguments: name.template_arguments,
        ..KernelReport::default()
    }
}

/// The file's absolute path, refused where a shell would interpret a character of it.
pub fn file(request: &CompileRequest) -> Result<PathBuf, Failure> {
    let file = std::path::absolute(&request.file).unwrap_or_else(|_| request.file.clone());
    if !arguments::is_harmless(&file.to_string_lossy()) {
        return Err(Failure::Refused(file));
    }
    Ok(file)
}

fn passed(request: &CompileRequest, file: &Path) -> Vec<String> {
    arguments::passed(&request.arguments, file.parent().unwrap_or(file), true)
}

fn is_cuda(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "cu")
}

/// A path as an argument.
pub fn spelled(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A program in the folder of the compiler.
fn beside(tool: &Path, name: &str) -> Option<PathBuf> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let found = |tool: &Path| Some(tool.parent()?.join(&name)).filter(|path| path.is_file());
    // A name without a folder is looked up on the PATH; a link is followed.
    let on_path = || {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(&name))
            .find(|path| path.is_file())
    };
    if tool.components().count() == 1 {
        return on_path();
    }
    found(tool).or_else(|| found(&std::fs::canonicalize(tool).ok()?))
}
