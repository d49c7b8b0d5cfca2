//! The folders that may be read from.

use std::path::{Path, PathBuf};

use crate::files::Files;
use crate::paths::normalise;

/// Folders beyond which nothing is read: a workspace and what its user named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    folders: Vec<PathBuf>,
}

impl Bounds {
    /// These folders and what lies in them.
    pub fn new(files: &dyn Files, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let folders = folders.into_iter();
        let mut folders: Vec<PathBuf> = folders.map(|folder| real(files, &folder)).collect();
        folders.sort_unstable();
        folders.dedup();
        Self { folders }
    }

    /// These folders as well.
    #[must_use]
    pub fn and<'a>(
        &self,
        files: &dyn Files,
        folders: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Self {
        let own = self.folders.iter().cloned();
        Self::new(files, own.chain(folders.into_iter().cloned()))
    }

    /// Whether a file lies in one of them, wherever links lead.
    pub fn hold(&self, files: &dyn Files, path: &Path) -> bool {
        let path = real(files, path);
        self.folders.iter().any(|folder| path.starts_with(folder))
    }
}

/// Where a path leads; as spelled where there is nothing, as with a buffer that was never saved.
fn real(files: &dyn Files, path: &Path) -> PathBuf {
    files.real(path).unwrap_or_else(|| normalise(path))
}
