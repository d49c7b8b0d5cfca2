//! Compiled code as input: PTX, a disassembly, a cubin.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{anyhow, bail};
use warplens_codegen::assembly::{AssembledKernel, cubin, ptx, sass};

use crate::compiler::BOUND;
use crate::{input, output};

/// Which kind a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assembly {
    /// The virtual machine's.
    Ptx,
    /// What `cuobjdump -sass` or `nvdisasm` prints.
    Sass,
    /// The bytes.
    Cubin,
}

impl Assembly {
    /// By the extension.
    pub fn of(path: &Path) -> Option<Assembly> {
        let extension = path.extension()?.to_str()?.to_lowercase();
        match extension.as_str() {
            "ptx" => Some(Assembly::Ptx),
            "sass" => Some(Assembly::Sass),
            "cubin" => Some(Assembly::Cubin),
            _ => None,
        }
    }
}

/// Reads the kernels of a file. A cubin's instructions need a disassembler beside `compiler`.
pub fn read(
    path: &Path,
    kind: Assembly,
    compiler: Option<&Path>,
) -> anyhow::Result<Vec<AssembledKernel>> {
    let bytes = input::bytes(path).map_err(|unreadable| anyhow!(unreadable.line(path)))?;
    let shown = path.display();
    let text = || String::from_utf8_lossy(&bytes);
    let mut kernels = match kind {
        Assembly::Ptx => ptx(&text()),
        Assembly::Sass => sass(&text()),
        Assembly::Cubin => {
            let Some(kernels) = cubin(&bytes) else {
                bail!("{shown}: not a cubin");
            };
            kernels
        }
    };
    if kernels.is_empty() {
        bail!("{shown}: no kernels in it");
    }
    if kind == Assembly::Cubin {
        disassemble(path, compiler, &mut kernels);
    }
    Ok(kernels)
}

fn disassemble(path: &Path, compiler: Option<&Path>, kernels: &mut [AssembledKernel]) {
    let Some(compiler) = compiler else {
        output::complain(
            "instructions of a cubin need a disassembler: --compiler with the path of nvcc, or a .sass file",
        );
        return;
    };
    match warplens_toolchain::disassemble(compiler, path, BOUND, &AtomicBool::new(false)) {
        Ok(code) => {
            for code in code {
                if let Some(kernel) = kernels.iter_mut().find(|k| k.mangled == code.mangled) {
                    kernel.instructions = code.instructions;
                    kernel.lines = code.lines;
                }
            }
        }
        Err(failure) => output::complain(&format!("{failure}; no instructions")),
    }
}
