//! Paths as text: nothing here asks the file system.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// The path without `.` and with each `name/..` taken away, as spelled: symbolic links are not followed.
/// `..` stays at the start of a relative path and is dropped at the root. What is left of `a/..` is `.`.
pub fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => {
                    out.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                Some(Component::CurDir | Component::ParentDir) | None => out.push(".."),
            },
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    if out.as_os_str().is_empty() {
        out.push(".");
    }
    out
}

/// [`normalise`] that copies only a path that needs it.
pub(crate) fn normalised(path: &Path) -> Cow<'_, Path> {
    let parts = path.components();
    let clean = !path.as_os_str().is_empty()
        && parts.clone().all(|part| !matches!(part, Component::ParentDir | Component::CurDir))
        // Doubled and trailing separators, and inner `.`, are dropped by the iterator already.
        && parts.map(|part| part.as_os_str().len()).sum::<usize>() + separators(path)
            == path.as_os_str().len();
    if clean {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(normalise(path))
    }
}

/// `path` as seen from `directory`, normalised.
pub(crate) fn absolute(directory: &Path, path: &Path) -> PathBuf {
    normalise(&directory.join(path))
}

/// The separators of the shortest spelling of `path`, those that are components of their own left out.
fn separators(path: &Path) -> usize {
    let normal = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .count();
    normal.saturating_sub(1)
}
