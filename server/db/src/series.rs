//! OpenCL programs in numbered pieces: `gemm_1.cl`, `gemm_2.cl`, which the host concatenates before it builds them.
//!
//! In go the paths of a folder's files, out come those that belong to a series: more than one file of the same extension whose
//! names differ in their last number alone. Pieces of one program differ from versions of one kernel, which are numbered as
//! well, in that they define nothing twice; [`Pieces::take`] sees to that.

use std::path::Path;

use rustc_hash::FxHashMap;
use warplens_syntax::Language;

use crate::options::kernel_names;

/// The series of a folder, and the kernels of those pieces that were taken so far.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Files by what is before their number.
    series: FxHashMap<String, usize>,
    kernels: Vec<String>,
}

impl Pieces {
    /// Of these files; `own` is the text that the pieces are to stand before.
    pub(crate) fn of<'p>(files: impl Iterator<Item = &'p Path>, own: &str) -> Pieces {
        let mut series: FxHashMap<String, usize> = FxHashMap::default();
        for name in files.filter_map(before_number) {
            *series.entry(name).or_default() += 1;
        }
        series.retain(|_, files| *files > 1);
        Pieces {
            series,
            kernels: kernel_names(own),
        }
    }

    /// True for a piece that defines no kernel which is already there; its own are from then on.
    pub(crate) fn take(&mut self, path: &Path, text: &str) -> bool {
        if before_number(path).is_none_or(|name| !self.series.contains_key(&name)) {
            return false;
        }
        let kernels = kernel_names(text);
        let twice = kernels.iter().any(|kernel| self.kernels.contains(kernel));
        if !twice {
            self.kernels.extend(kernels);
        }
        !twice
    }
}

/// What is before the number at the end of an OpenCL file's stem.
fn before_number(path: &Path) -> Option<String> {
    if Language::from_path(path) != Some(Language::OpenCl) {
        return None;
    }
    let stem = path.file_stem()?.to_str()?;
    let before = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    (before.len() < stem.len()).then(|| before.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_program_are_numbered_and_define_nothing_twice() {
        let files = [
            "gemm1.cl", "gemm2.cl", "gemm3.cl", "scan1.cl", "tool.cl", "a1.cu", "a2.cu",
        ];
        let mut pieces = Pieces::of(files.iter().map(Path::new), "kernel void own(int n) {}");
        let mut take = |path: &str, text: &str| pieces.take(Path::new(path), text);
        assert!(take("gemm1.cl", "float two() { return 2; }"));
        assert!(take("gemm2.cl", "kernel void gemm(global float *a) {}"));
        // A further version of a kernel that is there; the one that is asked about.
        assert!(!take("gemm3.cl", "kernel void gemm(global float *a) {}"));
        assert!(!take("gemm3.cl", "kernel void own(int n) {}"));
        // A number alone is no series; the texts of CUDA are not concatenated.
        assert!(!take("scan1.cl", ""));
        assert!(!take("tool.cl", ""));
        assert!(!take("a1.cu", ""));
    }
}
