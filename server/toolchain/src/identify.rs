//! Which compiler a program is.

use std::path::Path;

use crate::Failure;
use crate::process::{self, Limits};

/// A compiler that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// NVIDIA's driver.
    Nvcc,
    /// NVIDIA's assembler: takes PTX.
    Ptxas,
    /// LLVM's, for either maker.
    Clang,
    /// AMD's driver.
    Hipcc,
}

/// A compiler with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Which.
    pub kind: Kind,
    /// Major and minor.
    pub version: (u32, u32),
}

impl Known {
    /// `nvcc 13.0`.
    pub fn name(&self) -> String {
        let name = match self.kind {
            Kind::Nvcc => "nvcc",
            Kind::Ptxas => "ptxas",
            Kind::Clang => "clang",
            Kind::Hipcc => "hipcc",
        };
        format!("{name} {}.{}", self.version.0, self.version.1)
    }

    /// The first version whose options and output are those that are used here.
    fn least(self) -> (u32, u32) {
        match self.kind {
            Kind::Nvcc | Kind::Ptxas => (10, 0),
            // The remarks on resources.
            Kind::Clang => (15, 0),
            Kind::Hipcc => (5, 3),
        }
    }
}

/// Asks a program what it is.
pub fn identify(tool: &Path, limits: &Limits) -> Result<Known, Failure> {
    // Where only a name is given, the system looks for it as a shell would.
    if tool.components().count() > 1 && !tool.exists() {
        return Err(Failure::NotFound(tool.to_owned()));
    }
    let folder = process::private_folder()?;
    let said = process::run(tool, &["--version".to_owned()], folder.path(), limits)?;
    let known = of_version(&said.output).ok_or_else(|| Failure::Unknown(tool.to_owned()))?;
    let least = known.least();
    if known.version < least {
        return Err(Failure::TooOld {
            tool: known.name(),
            least: format!("{}.{}", least.0, least.1),
        });
    }
    Ok(known)
}

/// Reads what `--version` prints.
fn of_version(text: &str) -> Option<Known> {
    let after = |mark: &str| version(text.split_once(mark)?.1);
    // hipcc prints its own version, then its clang's.
    let (kind, version) = if text.contains("HIP version") {
        (Kind::Hipcc, after("HIP version:")?)
    } else if text.starts_with("nvcc:") {
        (Kind::Nvcc, after("release ")?)
    } else if text.starts_with("ptxas:") {
        (Kind::Ptxas, after("release ")?)
    } else {
        (Kind::Clang, after("clang version ")?)
    };
    Some(Known { kind, version })
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
        let known = |text| of_version(text).map(|known| known.name());
        let nvcc = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n";
        assert_eq!(known(nvcc).as_deref(), Some("nvcc 13.0"));
        let hipcc = "HIP version: 6.2.41133-dd7f95766\nAMD clang version 18.0.0git\n";
        assert_eq!(known(hipcc).as_deref(), Some("hipcc 6.2"));
        let clang = "Debian clang version 19.1.7 (3)\nTarget: x86_64-pc-linux-gnu\n";
        assert_eq!(known(clang).as_deref(), Some("clang 19.1"));
        assert_eq!(known("gcc (Debian 14.2.0) 14.2.0"), None);
        assert_eq!(known("clang version "), None);
        assert_eq!(known(""), None);
    }
}
