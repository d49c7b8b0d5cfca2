//! The Debian package, made by `dpkg-deb` of what the archive holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::{VERSION, archive};
use xtask::{process, repository};

/// Debian's name of a target's machine; `None` where the target is not Linux.
pub fn architecture(target: &str) -> Option<&'static str> {
    if !target.contains("-linux-") {
        return None;
    }
    match target.split('-').next() {
        Some("x86_64") => Some("amd64"),
        Some("aarch64") => Some("arm64"),
        _ => None,
    }
}

/// Writes the package into `out`. `files` is the folder of the archive.
pub fn write(files: &Path, architecture: &str, out: &Path, time: u64) -> anyhow::Result<PathBuf> {
    if repository::program("dpkg-deb").is_none() {
        bail!("dpkg-deb is not installed (the package dpkg of any distribution)");
    }
    let top = tempfile::tempdir()?;
    let tree = top.path();
    lay_out(files, tree)?;
    let size: u64 = archive::files(tree)?
        .iter()
        .filter_map(|path| Some(fs::metadata(path).ok()?.len()))
        .sum();
    let control = format!(
        "Package: warplens\n\
         Version: {VERSION}\n\
         Architecture: {architecture}\n\
         Maintainer: The warplens authors <warplens@users.noreply.github.com>\n\
         Installed-Size: {}\n\
         Section: devel\n\
         Priority: optional\n\
         Homepage: {}\n\
         Description: predicts what GPU kernels cost\n \
         A language server and command line that reads CUDA, HIP and OpenCL\n \
         source and says what its kernels will cost on a GPU, without one:\n \
         memory transactions, bank conflicts, divergence, occupancy, time.\n",
        size.div_ceil(1024),
        env!("CARGO_PKG_REPOSITORY"),
    );
    put(tree, "DEBIAN/control", control.as_bytes())?;
    permit(tree)?;
    let package = out.join(format!("warplens_{VERSION}_{architecture}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--build"]);
    dpkg.arg(tree).arg(&package);
    dpkg.env("SOURCE_DATE_EPOCH", time.to_string());
    let told = process::captured(&mut dpkg, Duration::from_mins(5))?;
    if !told.success {
        bail!("dpkg-deb: {}", told.errors.trim());
    }
    Ok(package)
}

/// Everything where Debian has it.
fn lay_out(files: &Path, tree: &Path) -> anyhow::Result<()> {
    let read = |name: &str| fs::read(files.join(name)).with_context(|| name.to_owned());
    put(tree, "usr/bin/warplens", &read("warplens")?)?;
    let pages = archive::files(&files.join("man"))?;
    for page in pages {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        squeeze(
            tree,
            &format!("usr/share/man/man1/{name}.gz"),
            &fs::read(&page)?,
        )?;
    }
    for (from, to) in [
        ("warplens.bash", "bash-completion/completions/warplens"),
        ("_warplens", "zsh/vendor-completions/_warplens"),
        ("warplens.fish", "fish/vendor_completions.d/warplens.fish"),
    ] {
        let script = read(&format!("completions/{from}"))?;
        put(tree, &format!("usr/share/{to}"), &script)?;
    }
    let doc = "usr/share/doc/warplens";
    squeeze(tree, &format!("{doc}/changelog.gz"), &read("CHANGELOG.md")?)?;
    for name in ["README.md", "THIRD-PARTY.txt", "warplens.cdx.json"] {
        put(tree, &format!("{doc}/{name}"), &read(name)?)?;
    }
    put(
        tree,
        &format!("{doc}/copyright"),
        &copyright(&read("LICENSE-MIT")?),
    )
}

/// The machine-readable form that Debian asks for; it carries the Apache licence itself.
fn copyright(mit: &[u8]) -> Vec<u8> {
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: warplens\n\
         Source: {}\n\n\
         Files: *\n\
         Copyright: The warplens authors\n\
         License: MIT or Apache-2.0\n\
         Comment: What is linked into the program is listed in THIRD-PARTY.txt.\n\n\
         License: Apache-2.0\n On Debian its text is in /usr/share/common-licenses/Apache-2.0.\n\n\
         License: MIT\n",
        env!("CARGO_PKG_REPOSITORY")
    );
    for line in String::from_utf8_lossy(mit).lines() {
        text.push(' ');
        text.push_str(if line.is_empty() { "." } else { line });
        text.push('\n');
    }
    text.into_bytes()
}

fn put(tree: &Path, name: &str, text: &[u8]) -> anyhow::Result<()> {
    let path = room(tree, name)?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn squeeze(tree: &Path, name: &str, text: &[u8]) -> anyhow::Result<()> {
    archive::compress(text, &room(tree, name)?)
}

/// The path of a file, its folder made.
fn room(tree: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = tree.join(name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(path)
}

/// Whatever the umask of who packages.
#[cfg(unix)]
fn permit(tree: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for path in archive::files(tree)? {
        let mode = if path.ends_with("bin/warplens") {
            0o755
        } else {
            0o644
        };
        fs::set_permissions(&path, PermissionsExt::from_mode(mode))?;
        let folders = path.ancestors().skip(1);
        for folder in folders.take_while(|folder| folder.starts_with(tree)) {
            fs::set_permissions(folder, PermissionsExt::from_mode(0o755))?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn permit(_tree: &Path) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_linux_has_debian_packages() {
        assert_eq!(architecture("x86_64-unknown-linux-musl"), Some("amd64"));
        assert_eq!(architecture("aarch64-unknown-linux-gnu"), Some("arm64"));
        assert_eq!(architecture("aarch64-apple-darwin"), None);
        assert_eq!(architecture("riscv64gc-unknown-linux-gnu"), None);
    }

    #[test]
    fn a_licence_is_indented_as_debian_reads_it() {
        let text = String::from_utf8(copyright(b"MIT License\n\nPermission")).unwrap();
        assert!(
            text.ends_with("License: MIT\n MIT License\n .\n Permission\n"),
            "{text}"
        );
    }
}
