//! Embeds every file of `hw-profiles/`, so that a new GPU is a new file and nothing else: of the repository's folder, or of the
//! copy that a package holds.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// FNV-1a: it only has to tell one set of figures from another, and be the same on every machine.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let packaged = root.join("hw-profiles");
    let folder = if packaged.exists() {
        packaged
    } else {
        root.join("../../hw-profiles")
    };
    let mut code = String::new();
    let mut checksum = FNV_OFFSET;
    list(&folder, "DEVICES", &mut code, &mut checksum);
    let architectures = folder.join("architectures");
    list(&architectures, "ARCHITECTURES", &mut code, &mut checksum);
    let folded = (checksum >> 32 ^ checksum) as u32;
    let (high, low) = (folded >> 16, folded & 0xffff);
    writeln!(code, "const CHECKSUM: u32 = 0x{high:04x}_{low:04x};").expect("a string grows");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("embedded.rs");
    fs::write(out, code).expect("the build folder is writable");
}

/// Writes one sorted `(file stem, text)` list, its files added to the checksum.
fn list(folder: &Path, name: &str, code: &mut String, checksum: &mut u64) {
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
        let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for byte in stem.bytes().chain(text) {
            *checksum = (*checksum ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        let path = file.display().to_string();
        writeln!(code, "    ({stem:?}, include_str!({path:?})),").expect("a string grows");
    }
    code.push_str("];\n");
}
