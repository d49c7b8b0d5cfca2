//! Which language a buffer is in.

use std::path::Path;

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
}
