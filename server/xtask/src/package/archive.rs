//! Archives that are the same, byte for byte, whenever and wherever they are made of the same files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

/// Writes the files below `folder` as a `.tar.gz`, in a folder of the same name, all of them of `time`.
pub fn write(folder: &Path, archive: &Path, time: u64) -> anyhow::Result<()> {
    let name = folder.file_name().context("a folder with a name")?;
    let file =
        File::create(archive).with_context(|| format!("cannot write {}", archive.display()))?;
    let mut tar = tar::Builder::new(GzEncoder::new(file, Compression::best()));
    for path in files(folder)? {
        let text = fs::read(&path)?;
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(if executable(&path)? { 0o755 } else { 0o644 });
        header.set_mtime(time);
        let inside = Path::new(name).join(path.strip_prefix(folder)?);
        tar.append_data(&mut header, inside, text.as_slice())?;
    }
    tar.into_inner()?.finish()?;
    Ok(())
}

/// Writes `text` with gzip, without a name and a time in it.
pub fn compress(text: &[u8], path: &Path) -> anyhow::Result<()> {
    let mut out = GzBuilder::new().write(File::create(path)?, Compression::best());
    std::io::Write::write_all(&mut out, text)?;
    out.finish()?;
    Ok(())
}

/// All files below a folder, sorted.
pub fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(unix)]
fn executable(path: &Path) -> anyhow::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(path)?.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn executable(path: &Path) -> anyhow::Result<bool> {
    Ok(path.extension().is_some_and(|extension| extension == "exe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_make_the_same_archive() {
        let top = tempfile::tempdir().unwrap();
        let made = |which: &str| {
            let folder = top.path().join(which).join("warplens-1");
            fs::create_dir_all(folder.join("man")).unwrap();
            // In another order, hence with other times and another order in the folder.
            let mut names = ["README.md", "man/warplens.1", "LICENSE-MIT"];
            if which == "b" {
                names.reverse();
            }
            for name in names {
                fs::write(folder.join(name), name).unwrap();
            }
            let archive = top.path().join(format!("{which}.tar.gz"));
            write(&folder, &archive, 1_700_000_000).unwrap();
            fs::read(archive).unwrap()
        };
        let (a, b) = (made("a"), made("b"));
        assert!(a == b, "they differ");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(a.as_slice()));
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(
            names,
            [
                "warplens-1/LICENSE-MIT",
                "warplens-1/README.md",
                "warplens-1/man/warplens.1"
            ]
        );
    }
}
