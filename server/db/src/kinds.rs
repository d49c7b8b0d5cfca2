//! What a file is, by its name and its words.

use std::path::{Path, PathBuf};

use warplens_syntax::{Language, is_word_part};

/// A file that others include, by its extension.
pub fn is_header(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(
        extension,
        Some("cuh" | "h" | "hpp" | "hh" | "hxx" | "inc" | "inl" | "clh" | "ipp" | "tcc")
    )
}

/// The language of a text: its extension's, unless the words say something else. Kernels are kept in all kinds
/// of files: HIP in `.cpp`, which includes HIP's headers, OpenCL in `.c`, programs in raw strings in `.opencl`.
pub fn language_by_content(by_extension: Option<Language>, text: &str) -> Language {
    let kernel = |line: &str| {
        let line = line.trim_start();
        line.starts_with("__kernel") || line.starts_with("kernel void")
    };
    match by_extension {
        Some(language) => language,
        None if !text.contains("__global__")
            && !text.contains("R\"")
            && text.lines().any(kernel) =>
        {
            Language::OpenCl
        }
        None if includes_hip(text) => Language::Hip,
        None => Language::Cuda,
    }
}

/// `#include <hip/hip_runtime.h>` and its like.
fn includes_hip(text: &str) -> bool {
    text.contains("hip/")
        && text.lines().any(|line| {
            let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
            let header = directive.and_then(|directive| directive.strip_prefix("include"));
            header.is_some_and(|header| {
                header
                    .trim_start_matches([' ', '\t', '<', '"'])
                    .starts_with("hip/")
            })
        })
}

/// True where a text may define a kernel or hold one in a string literal, by its words.
pub fn may_hold_kernels(text: &str) -> bool {
    ["__global__", "__kernel", "kernel void"]
        .iter()
        .any(|word| text.contains(word))
}

/// The macros of a text that put the word of a kernel where they are used, `#define KERNEL __global__ void`: another file that
/// uses one of them may define a kernel as well.
pub fn kernel_macros(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
        let Some(definition) = directive.and_then(|directive| directive.strip_prefix("define "))
        else {
            continue;
        };
        let mut holds = may_hold_kernels(line);
        let mut last = line;
        while last.ends_with('\\')
            && let Some(next) = lines.next()
        {
            holds |= may_hold_kernels(next);
            last = next;
        }
        let name = definition.trim_start();
        let end = name.find(|letter| !is_word_part(letter));
        let name = &name[..end.unwrap_or(name.len())];
        if holds && !name.is_empty() {
            found.push(name);
        }
    }
    found
}

/// The path as it is meant from the current folder; an empty one, of a text in no file, stays empty.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        return PathBuf::new();
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    warplens_base::normalise(&path)
}
