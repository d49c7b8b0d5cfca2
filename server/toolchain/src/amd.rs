//! clang and hipcc for AMD's GPUs. Both print resource usage as remarks.

use std::path::Path;

use warplens_codegen::assembly::amd_remarks;

use crate::identify::{Compiler, CompilerKind};
use crate::process::{self, Limits};
use crate::{CompileRequest, Failure, KernelReport, arguments, nvidia};

/// Compiles a source file with clang or hipcc.
pub fn compile(
    tool: &Path,
    compiler: &Compiler,
    request: &CompileRequest,
    limits: &Limits,
) -> Result<Vec<KernelReport>, Failure> {
    let (folder, file) = (process::private_folder()?, nvidia::file(request)?);
    let mut options = arguments::passed(&request.arguments, file.parent().unwrap_or(&file), false);
    let opencl = file
        .extension()
        .is_some_and(|extension| extension == "cl" || extension == "opencl");
    if opencl {
        options.extend(["-x", "cl", "-target", "amdgcn-amd-amdhsa"].map(str::to_owned));
        options.push(format!("-mcpu={}", request.architecture));
    } else {
        options.extend(["-x", "hip", "--cuda-device-only"].map(str::to_owned));
        options.push(format!("--offload-arch={}", request.architecture));
    }
    if !options.iter().any(|option| option.starts_with("-O")) {
        options.push("-O3".to_owned());
    }
    options.extend(["-w", "-S", "-Rpass-analysis=kernel-resource-usage", "-o"].map(str::to_owned));
    options.push(nvidia::spelled(&folder.path().join("device.s")));
    options.push(nvidia::spelled(&file));
    let outcome = process::run(tool, &options, folder.path(), limits)?;
    if !outcome.success {
        return Err(Failure::Failed(process::first_error(&outcome)));
    }
    let mut usages = amd_remarks(&outcome.errors);
    if compiler.kind == CompilerKind::Hipcc && usages.is_empty() {
        usages = amd_remarks(&outcome.output);
    }
    Ok(usages
        .into_iter()
        .map(|usage| KernelReport {
            registers: usage.registers,
            static_shared_bytes: usage.shared_bytes,
            stack_bytes: usage.stack_bytes,
            spill_store_bytes: usage.spill_store_bytes,
            spill_load_bytes: usage.spill_load_bytes,
            ..nvidia::named_report(&usage.mangled)
        })
        .collect())
}
