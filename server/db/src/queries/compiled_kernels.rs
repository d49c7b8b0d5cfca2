//! Query family: what the machine executes of a kernel.
//!
//! In: a kernel in IR, how it is compiled ([`crate::compiled`]). Out: [`CompiledKernel`]. What holds: it is known by the kernel's shape,
//! which is what a compiler sees of it: changed copies that a what-if compiles are the same query.

use std::sync::Arc;

use warplens_codegen::{CompiledKernel, Options, compile};
use warplens_ir::Kernel;

use crate::contents::Contents;

impl Contents {
    /// A kernel of this shape, compiled.
    pub(crate) fn compiled_kernel(
        &self,
        kernel: &Kernel,
        shape: u64,
        options: Options,
    ) -> Arc<CompiledKernel> {
        let make = || compile(kernel, &options);
        self.compiled.get_or((shape, options), make)
    }
}
