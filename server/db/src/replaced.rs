//! The files with the text of one replaced, as one caller sees them.
//!
//! In: files, a path and its text. Out: the same files, of which that one says something else. What it is for: the edited copy that
//! proves a code action is read where its file is read, in the programs that include it, and the file stays what it is.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_base::{Entry, Files, SourceFile, Stamp};

/// See the module.
pub(crate) struct Replaced<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) file: Arc<SourceFile>,
}

impl Files for Replaced<'_> {
    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        if *path == *self.file.path {
            return Some(Arc::clone(&self.file));
        }
        self.files.read(path)
    }

    fn exists(&self, path: &Path) -> bool {
        *path == *self.file.path || self.files.exists(path)
    }

    fn list(&self, folder: &Path) -> Arc<[Entry]> {
        self.files.list(folder)
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        self.files.stamp(path)
    }

    fn bytes(&self, path: &Path, part: Range<u64>) -> io::Result<Vec<u8>> {
        self.files.bytes(path, part)
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        self.files.real(path)
    }

    fn walk(
        &self,
        folders: &[PathBuf],
        most: usize,
        wanted: &dyn Fn(&Path) -> bool,
    ) -> Vec<PathBuf> {
        self.files.walk(folders, most, wanted)
    }

    fn generation(&self) -> u64 {
        self.files.generation()
    }

    fn existence(&self) -> u64 {
        self.files.existence()
    }

    fn look_again(&self) {
        self.files.look_again();
    }
}
