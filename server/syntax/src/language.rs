//! Which language a buffer is in.

use std::path::Path;

use tree_sitter_language::LanguageFn;

/// The languages that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// CUDA C++.
    Cuda,
    /// OpenCL C.
    OpenCl,
    /// HIP C++.
    Hip,
}

impl Language {
    /// By file extension; `None` where it is not one of ours.
    pub fn from_path(path: &Path) -> Option<Language> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "cu" | "cuh" => Some(Language::Cuda),
            "cl" | "clh" | "opencl" => Some(Language::OpenCl),
            "hip" => Some(Language::Hip),
            _ => None,
        }
    }

    /// By an editor's language id; `None` where the id does not decide (`c`, `cpp`).
    pub fn from_id(id: &str) -> Option<Language> {
        match id {
            "cuda" | "cuda-cpp" => Some(Language::Cuda),
            "opencl" => Some(Language::OpenCl),
            "hip" => Some(Language::Hip),
            _ => None,
        }
    }

    /// The name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Language::Cuda => "cuda",
            Language::OpenCl => "opencl",
            Language::Hip => "hip",
        }
    }

    /// The grammar that reads it, with its version.
    pub fn grammar(self) -> String {
        match self {
            Language::OpenCl => {
                let language: tree_sitter::Language = self.tree_sitter().into();
                let version = language.metadata().map_or_else(String::new, |version| {
                    let (major, minor) = (version.major_version, version.minor_version);
                    format!(" {major}.{minor}.{}", version.patch_version)
                });
                format!("tree-sitter-opencl{version}")
            }
            Language::Cuda | Language::Hip => CUDA_GRAMMAR.to_owned(),
        }
    }

    pub(crate) fn tree_sitter(self) -> LanguageFn {
        match self {
            Language::OpenCl => warplens_grammar_opencl::LANGUAGE,
            Language::Cuda | Language::Hip => tree_sitter_cuda::LANGUAGE,
        }
    }
}

/// As `Cargo.toml` of the workspace pins it: the parser itself still names an earlier version.
const CUDA_GRAMMAR: &str = "tree-sitter-cuda 0.21.2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars_are_named_with_their_versions() {
        assert_eq!(Language::OpenCl.grammar(), "tree-sitter-opencl 0.1.0");
        let (name, version) = CUDA_GRAMMAR.split_once(' ').unwrap();
        assert_eq!(Language::Cuda.grammar(), CUDA_GRAMMAR);
        let lock = include_str!("../../../Cargo.lock");
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "Cargo.lock has another {name}");
    }
}
