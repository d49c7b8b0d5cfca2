//! The nvcc that tests ask: `NVCC`, on the `PATH`, or in `.test-tools`.

use std::path::{Path, PathBuf};

/// Its path.
pub fn nvcc() -> PathBuf {
    let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-tools/cuda");
    let named = std::env::var_os("NVCC").map(PathBuf::from);
    let on_path = || {
        std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join("nvcc"))
            .find(|path| path.is_file())
    };
    named
        .or_else(on_path)
        .or_else(|| below(&packaged))
        .expect("an nvcc: NVCC, on the PATH or in .test-tools")
}

fn below(folder: &Path) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let here = entries.iter().find(|path| path.ends_with("bin/nvcc"));
    here.cloned()
        .or_else(|| entries.iter().find_map(|path| below(path)))
}
