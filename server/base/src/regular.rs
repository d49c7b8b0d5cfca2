//! The one way in which files are opened: whatever a folder holds under a name, reading it ends and takes no more memory than
//! allowed.
//!
//! Only regular files are read. Devices, pipes and sockets are refused, and so is what a kernel makes up as it is read
//! (`/proc`, `/sys`): reading such a file may wait for ever, never end, or take away what others wait for. The length is counted
//! while reading, because some files have none and some grow.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a regular file.
///
/// # Errors
///
/// It cannot be read, is no regular file, or has more than `most` bytes ([`io::ErrorKind::FileTooLarge`]).
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {}", in_units(most)),
        ));
    }
    Ok(bytes)
}

/// A regular file, opened to be read without waiting.
///
/// # Errors
///
/// It cannot be opened, or is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Opening a device may do something by itself, so it is asked before what it is; between the two it may become another.
    is_regular(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    is_regular(&file.metadata()?)?;
    #[cfg(target_os = "linux")]
    is_stored(&file)?;
    Ok(file)
}

fn is_regular(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() {
        "a folder, not a file"
    } else {
        "not a regular file"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Refuses the file systems that show the kernel itself.
#[cfg(target_os = "linux")]
fn is_stored(file: &File) -> io::Result<()> {
    // `statfs(2)`: PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC.
    const MADE_UP: [u32; 4] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163];
    let kind = rustix::fs::fstatfs(file)?.f_type;
    if u32::try_from(kind).is_ok_and(|kind| MADE_UP.contains(&kind)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "made up by the kernel, not a stored file",
        ));
    }
    Ok(())
}

fn in_units(bytes: u64) -> String {
    if bytes >= 1 << 20 {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{} KiB", bytes >> 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("k.cu");
        fs::write(&path, "12345").expect("written");
        assert_eq!(read_regular(&path, 5).expect("short enough"), b"12345");
        let error = read_regular(&path, 4).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = read_regular(folder.path(), 5).expect_err("a folder");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_never_ends_or_waits_is_refused() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        for path in [
            &pipe,
            &link,
            Path::new("/dev/zero"),
            Path::new("/proc/self/status"),
        ] {
            let error = read_regular(path, 1 << 20).expect_err("no stored file");
            assert_eq!(
                error.kind(),
                io::ErrorKind::InvalidInput,
                "{}",
                path.display()
            );
        }
    }
}
