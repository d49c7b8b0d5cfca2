//! Where things stand in the checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// The top of the checkout: the one this was built in, or, where it was carried to another machine, the
/// current folder.
pub fn root() -> PathBuf {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR"));
    match built_in.ancestors().nth(2) {
        Some(root) if root.is_dir() => root.to_owned(),
        _ => std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
    }
}

/// What tasks install for themselves; ignored by git.
pub fn tools() -> PathBuf {
    root().join(".test-tools")
}

/// The build folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A built binary.
pub fn built(profile: &str, name: &str) -> PathBuf {
    target()
        .join(profile)
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// A program of the workspace as its integration test `test` builds it: with the features that all tests together ask of other
/// crates. Selected alone it would have fewer, and everything below it would be built a second time.
pub fn tested_program(name: &str, test: &str) -> anyhow::Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["test", "--workspace", "--locked", "--quiet", "--no-run"])
        .args(["--test", test])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "{name} could not be built");
    Ok(built("debug", name))
}

/// A program on the PATH, or among what tasks installed.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = [
        name.to_owned(),
        format!("{name}.exe"),
        format!("{name}.cmd"),
    ];
    let names = if cfg!(windows) {
        &names[..]
    } else {
        &names[..1]
    };
    std::env::split_paths(&path)
        .chain([tools().join("bin")])
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file())
}
