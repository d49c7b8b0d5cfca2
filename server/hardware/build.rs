//! Embeds every file of `hw-profiles/`, so that a new GPU is a new file and nothing else.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let folder = root.join("../../hw-profiles");
    let mut code = String::new();
    list(&folder, "DEVICES", &mut code);
    list(&folder.join("architectures"), "ARCHITECTURES", &mut code);
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("embedded.rs");
    fs::write(out, code).expect("the build folder is writable");
}

/// Writes one sorted `(file stem, text)` list.
fn list(folder: &Path, name: &str, code: &mut String) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    writeln!(code, "pub(crate) static {name}: &[(&str, &str)] = &[").expect("a string grows");
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let stem = file
            .file_stem()
            .expect("it has an extension")
            .to_string_lossy();
        let path = file.display().to_string();
        writeln!(code, "    ({stem:?}, include_str!({path:?})),").expect("a string grows");
    }
    code.push_str("];\n");
}
