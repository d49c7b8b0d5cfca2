//! Compiler reports: registers, spills, shared memory and instructions by line, from the user's own compiler.
//!
//! In: a [`CompileRequest`]. Out: a [`CompilerReport`] or one line of [`Failure`]. What holds: only the compiler that the
//! user names is executed, never a program that a workspace names; the flags of a workspace's compile commands pass
//! through `arguments`, an allow list; nothing is written outside a private folder, and no process outlives its time limit.

mod amd;
mod arguments;
mod failure;
mod identify;
pub mod machine;
mod nvidia;
mod process;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use warplens_codegen::Class;
use warplens_codegen::assembly::{self, AssembledKernel};

pub use failure::Failure;
use identify::CompilerKind;

/// One run of a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileRequest {
    /// The source file on disk.
    pub file: PathBuf,
    /// Flags of its compile command; those that do not change device code are dropped. Relative paths start at the
    /// file's folder.
    pub arguments: Vec<String>,
    /// `sm_80`, `gfx90a`. Empty: the compiler's default.
    pub architecture: String,
    /// Time limit of the compiler and its tools together.
    pub bound: Duration,
}

/// What a compiler reports about a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompilerReport {
    /// In the order of its output.
    pub kernels: Vec<KernelReport>,
    /// `nvcc 13.0`.
    pub tool: String,
}

/// What a compiler reports about one kernel (about one instance, where it is a template).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct KernelReport {
    /// The mangled name: `_Z2tkILi3EfEvPT0_`.
    pub mangled: String,
    /// The name without namespaces: `tk`.
    pub name: String,
    /// Template arguments: numbers and fundamental types as text (`3`, `float`), others empty.
    pub template_arguments: Vec<String>,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of static shared memory per block.
    pub static_shared_bytes: u64,
    /// Bytes of local memory per thread.
    pub stack_bytes: u64,
    /// Bytes of spill stores per thread.
    pub spill_store_bytes: u64,
    /// Bytes of spill loads per thread.
    pub spill_load_bytes: u64,
    /// Instructions by class; empty where no disassembler lies beside the compiler.
    pub instructions: BTreeMap<Class, u64>,
    /// File, line from 1, and its instructions, with those inlined into it. An inlined instruction counts at its own
    /// line and at each call on its inline stack, so the lines may sum to more than the kernel.
    pub lines: Vec<(Arc<str>, u32, BTreeMap<Class, u64>)>,
}

/// Runs the compiler `tool` on a file and reads its report. Blocks for as long as the compiler runs.
pub fn compile(
    tool: &Path,
    request: &CompileRequest,
    cancelled: &AtomicBool,
) -> Result<CompilerReport, Failure> {
    let limits = process::Limits {
        until: Instant::now() + request.bound,
        bound: request.bound,
        cancelled,
    };
    let compiler = identify::identify(tool, &limits)?;
    let kernels = match compiler.kind {
        CompilerKind::Nvcc | CompilerKind::Ptxas => {
            nvidia::compile(tool, &compiler, request, &limits)?
        }
        CompilerKind::Clang | CompilerKind::Hipcc if request.architecture.starts_with("gfx") => {
            amd::compile(tool, &compiler, request, &limits)?
        }
        CompilerKind::Clang | CompilerKind::Hipcc => nvidia::clang(tool, request, &limits)?,
    };
    Ok(CompilerReport {
        kernels,
        tool: compiler.name(),
    })
}

/// Disassembles a cubin with the tools beside the compiler `tool`.
pub fn disassemble(
    tool: &Path,
    cubin: &Path,
    bound: Duration,
    cancelled: &AtomicBool,
) -> Result<Vec<AssembledKernel>, Failure> {
    let limits = process::Limits {
        until: Instant::now() + bound,
        bound,
        cancelled,
    };
    // The disassembler runs in another folder.
    let cubin = std::path::absolute(cubin).unwrap_or_else(|_| cubin.to_owned());
    let text = nvidia::disassembly(tool, &cubin, &limits)?;
    Ok(assembly::sass(&text))
}
