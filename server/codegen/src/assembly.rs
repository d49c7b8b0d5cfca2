//! Compiled code as compilers write it down: disassemblies, PTX, cubins, accounts of resources.
//!
//! Text or bytes in, kernels out. Nothing here fails: what is not understood is left out.

mod cubin;
mod machine;
mod name;
mod ptx;
mod sass;
mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Class;

pub use cubin::{cubin, is_cubin};
pub use name::Name;
pub use ptx::ptx;
pub use sass::sass;
pub use usage::{Usage, amd_remarks, ptxas_verbose};

/// One compiled kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AssembledKernel {
    /// The linker's name.
    pub mangled: String,
    /// `sm_80`; empty where nothing says it.
    pub architecture: String,
    /// Registers of a thread: what the compiler allotted, else the least that the code needs.
    pub registers: Option<u32>,
    /// True where `registers` is what the compiler allotted.
    pub allotted: bool,
    /// Static shared memory of a block.
    pub shared_bytes: Option<u64>,
    /// Local memory of a thread.
    pub stack_bytes: Option<u64>,
    /// Instructions by class, without the padding behind the code.
    pub instructions: BTreeMap<Class, u64>,
    /// Instructions by file and line from 1. One that was inlined counts at each of its places.
    pub lines: BTreeMap<(Arc<str>, u32), BTreeMap<Class, u64>>,
}

impl AssembledKernel {
    fn named(mangled: &str, architecture: &str) -> AssembledKernel {
        AssembledKernel {
            mangled: mangled.to_owned(),
            architecture: architecture.to_owned(),
            ..AssembledKernel::default()
        }
    }

    /// All instructions.
    pub fn total(&self) -> u64 {
        self.instructions.values().sum()
    }

    fn count(&mut self, class: Class, at: &[(Arc<str>, u32)]) {
        *self.instructions.entry(class).or_default() += 1;
        for place in at {
            let line = self.lines.entry(place.clone()).or_default();
            *line.entry(class).or_default() += 1;
        }
    }
}

/// What the kernel declares of the shared memory that an object file of that architecture gives it: since `sm_90`
/// the file counts what the system keeps for itself, where the kernel has any.
fn declared_shared(architecture: &str, bytes: u64) -> u64 {
    const RESERVED: u64 = 1024;
    let reserved = number_after::<u32>(architecture, "sm_").is_some_and(|number| number >= 90);
    bytes.saturating_sub(if reserved { RESERVED } else { 0 })
}

/// Reads `"FILE", line N` behind a mark.
fn file_and_line(text: &str) -> Option<(&str, u32)> {
    let (_, rest) = text.split_once('"')?;
    let (file, rest) = rest.split_once('"')?;
    let (_, rest) = rest.split_once("line ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((file, digits.parse().ok()?))
}

/// The first number behind `mark`.
fn number_after<T: std::str::FromStr>(text: &str, mark: &str) -> Option<T> {
    let (_, rest) = text.split_once(mark)?;
    let digits = rest
        .trim_start()
        .split(|c: char| !c.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}
