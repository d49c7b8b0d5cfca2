//! Identifies a compiler and its version.

use std::path::Path;

use crate::Failure;
use crate::process::{self, Limits};

/// The compilers whose output the server reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompilerKind {
    /// NVIDIA's driver.
    Nvcc,
    /// NVIDIA's assembler: takes PTX.
    Ptxas,
    /// LLVM's, for NVIDIA's and AMD's GPUs.
    Clang,
    /// AMD's driver.
    Hipcc,
}

/// A compiler with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compiler {
    /// Which compiler.
    pub kind: CompilerKind,
    /// Major and minor.
    pub version: (u32, u32),
}

impl Compiler {
    /// `nvcc 13.0`.
    pub fn name(&self) -> String {
        let name = match self.kind {
            CompilerKind::Nvcc => "nvcc",
            CompilerKind::Ptxas => "ptxas",
            CompilerKind::Clang => "clang",
            CompilerKind::Hipcc => "hipcc",
        };
        format!("{name} {}.{}", self.version.0, self.version.1)
    }

    /// The first version with the options and the output format used here.
    fn oldest_supported(self) -> (u32, u32) {
        match self.kind {
            CompilerKind::Nvcc | CompilerKind::Ptxas => (10, 0),
            // The first with remarks on resource usage.
            CompilerKind::Clang => (15, 0),
            CompilerKind::Hipcc => (5, 3),
        }
    }
}

/// Runs `--version` and identifies the compiler.
pub fn identify(tool: &Path, limits: &Limits) -> Result<Compiler, Failure> {
    // A name without a folder is looked up on the PATH.
    if tool.components().count() > 1 && !tool.exists() {
        return Err(Failure::NotFound(tool.to_owned()));
    }
    let folder = process::private_folder()?;
    let outcome = process::run(tool, &["--version".to_owned()], folder.path(), limits)?;
    let compiler =
        parse_version(&outcome.output).ok_or_else(|| Failure::Unknown(tool.to_owned()))?;
    let oldest_supported = compiler.oldest_supported();
    if compiler.version < oldest_supported {
        return Err(Failure::TooOld {
            tool: compiler.name(),
            oldest_supported: format!("{}.{}", oldest_supported.0, oldest_supported.1),
        });
    }
    Ok(compiler)
}

/// Reads what `--version` prints.
fn parse_version(text: &str) -> Option<Compiler> {
    let after = |mark: &str| version(text.split_once(mark)?.1);
    // hipcc prints its own version, then its clang's.
    let (kind, version) = if text.contains("HIP version") {
        (CompilerKind::Hipcc, after("HIP version:")?)
    } else if text.starts_with("nvcc:") {
        (CompilerKind::Nvcc, after("release ")?)
    } else if text.starts_with("ptxas:") {
        (CompilerKind::Ptxas, after("release ")?)
    } else {
        (CompilerKind::Clang, after("clang version ")?)
    };
    Some(Compiler { kind, version })
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text
        .trim_start()
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let major = numbers.next()?.ok()?;
    Some((major, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_known_by_what_they_print() {
        let compiler = |text| parse_version(text).map(|compiler| compiler.name());
        let nvcc = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n";
        assert_eq!(compiler(nvcc).as_deref(), Some("nvcc 13.0"));
        let hipcc = "HIP version: 6.2.41133-dd7f95766\nAMD clang version 18.0.0git\n";
        assert_eq!(compiler(hipcc).as_deref(), Some("hipcc 6.2"));
        let clang = "Debian clang version 19.1.7 (3)\nTarget: x86_64-pc-linux-gnu\n";
        assert_eq!(compiler(clang).as_deref(), Some("clang 19.1"));
        assert_eq!(compiler("gcc (Debian 14.2.0) 14.2.0"), None);
        assert_eq!(compiler("clang version "), None);
        assert_eq!(compiler(""), None);
    }
}
