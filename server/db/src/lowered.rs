//! A kernel in IR under the name that its analysis and its compiled form are known by.
//!
//! What holds: the fingerprint says nothing of where the kernel is, so that what is typed above it changes neither.

use warplens_ir::{Kernel, Storage, Var};
use warplens_machine::{KernelArguments, Profile};

/// A kernel in IR, with what the default launch needs to know of it.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) kernel: Kernel,
    /// A hash of the kernel apart from where it is: what its analysis is kept under.
    pub(crate) fingerprint: u64,
    /// A hash of what is compiled: what the compiled kernel is kept under.
    pub(crate) shape: u64,
}

impl Lowered {
    pub(crate) fn new(kernel: Kernel) -> Lowered {
        Lowered {
            fingerprint: kernel.fingerprint(),
            shape: kernel.shape(),
            kernel,
        }
    }
}

/// Bytes of a kernel's arguments where they live in shared memory (capability 1.x).
pub(crate) fn argument_bytes(kernel: &Kernel, profile: &Profile) -> u64 {
    if profile.kernel_arguments != KernelArguments::Shared {
        return 0;
    }
    kernel
        .vars
        .iter()
        .take(kernel.params as usize)
        .map(|var| var.ty.size())
        .sum()
}

/// The kernel's array parameters, and the bytes of their elements.
pub(crate) fn arrays(kernel: &Kernel) -> Vec<(String, u64)> {
    let parameters = kernel.vars.iter().take(kernel.params as usize);
    let element = |var: &Var| Some((var.name.clone(), var.ty.element()?.size().max(1)));
    parameters.filter_map(element).collect()
}

/// The kernel's parameters that are no arrays, and the members that it reads of those that are structures.
pub(crate) fn scalars(kernel: &Kernel) -> Vec<String> {
    let given = |var: &&Var| matches!(var.storage, Storage::Param(_)) && var.ty.element().is_none();
    kernel
        .vars
        .iter()
        .filter(given)
        .map(|var| var.name.clone())
        .collect()
}
