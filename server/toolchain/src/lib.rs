//! What the user's own compiler says of a file: registers, spills, shared memory, instructions by line.
//!
//! The compiler is the one that the user names; nothing that a workspace names is executed. What a workspace
//! does give, the file and the flags of its compile commands, goes through `arguments`, which lets pass only
//! what is known. Nothing is written outside a private folder, and nothing outlives the bound on its time.

mod amd;
mod arguments;
mod failure;
mod identify;
mod nvidia;
mod process;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use warplens_codegen::Class;
use warplens_codegen::assembly::{self, Assembled};

pub use failure::Failure;

/// What a compiler is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The source file, as it is saved.
    pub file: PathBuf,
    /// Its flags, as a compile command has them. What does not concern device code is left out here.
    /// Relative folders are the file's folder's.
    pub arguments: Vec<String>,
    /// `sm_80`, `gfx90a`. Empty: what the compiler takes by itself.
    pub architecture: String,
    /// Longest that everything together may take.
    pub bound: Duration,
}

/// What a compiler answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// In the order of its output.
    pub kernels: Vec<SaidKernel>,
    /// `nvcc 13.0`.
    pub tool: String,
}

/// What a compiler says of one kernel (of one instance, where it is a template).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SaidKernel {
    /// The linker's name: `_Z2tkILi3EfEvPT0_`.
    pub mangled: String,
    /// The source's name, without namespaces: `tk`.
    pub name: String,
    /// Template arguments, as far as they are numbers and fundamental types: `3`, `float`. Others are empty.
    pub template_arguments: Vec<String>,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block.
    pub static_shared_bytes: u64,
    /// Local memory of a thread.
    pub stack_bytes: u64,
    /// Bytes that a thread writes for want of registers.
    pub spill_store_bytes: u64,
    /// Bytes that a thread reads back.
    pub spill_load_bytes: u64,
    /// Instructions by class; empty where the tools beside the compiler cannot disassemble.
    pub instructions: BTreeMap<Class, u64>,
    /// File, line from 1, and the instructions of it and of what was inlined into it. An instruction of an
    /// inlined function is counted at its own line and at each call that leads there, so that lines may have
    /// more than the kernel has.
    pub lines: Vec<(Arc<str>, u32, BTreeMap<Class, u64>)>,
}

/// Asks the compiler `tool` about a file. Takes as long as a compiler does: not for a thread that others wait for.
pub fn ask(tool: &Path, asked: &Asked, cancelled: &AtomicBool) -> Result<Said, Failure> {
    let limits = process::Limits {
        until: Instant::now() + asked.bound,
        bound: asked.bound,
        cancelled,
    };
    let known = identify::identify(tool, &limits)?;
    let kernels = match known.kind {
        identify::Kind::Nvcc | identify::Kind::Ptxas => nvidia::ask(tool, &known, asked, &limits)?,
        identify::Kind::Clang | identify::Kind::Hipcc if asked.architecture.starts_with("gfx") => {
            amd::ask(tool, &known, asked, &limits)?
        }
        identify::Kind::Clang | identify::Kind::Hipcc => nvidia::clang(tool, asked, &limits)?,
    };
    Ok(Said {
        kernels,
        tool: known.name(),
    })
}

/// Disassembles a cubin with the tools that lie beside the compiler `tool`.
pub fn disassemble(
    tool: &Path,
    cubin: &Path,
    bound: Duration,
    cancelled: &AtomicBool,
) -> Result<Vec<Assembled>, Failure> {
    let limits = process::Limits {
        until: Instant::now() + bound,
        bound,
        cancelled,
    };
    // It is read from another folder.
    let cubin = std::path::absolute(cubin).unwrap_or_else(|_| cubin.to_owned());
    let text = nvidia::disassembly(tool, &cubin, &limits)?;
    Ok(assembly::sass(&text))
}
