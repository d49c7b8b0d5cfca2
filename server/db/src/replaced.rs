//! The files with the text of one replaced, as one caller sees them.
//!
//! In: files, a path and its text. Out: the same files, of which that one says something else. What it is for: the edited copy that
//! proves a code action is read where its file is read, in the programs that include it, and the file stays what it is.

use std::path::Path;
use std::sync::Arc;

use warplens_base::{Files, SourceFile};

/// See the module.
pub(crate) struct Replaced<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) file: Arc<SourceFile>,
}

impl Files for Replaced<'_> {
    fn behind(&self) -> &dyn Files {
        self.files
    }

    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        if *path == *self.file.path {
            return Some(Arc::clone(&self.file));
        }
        self.files.read(path)
    }

    fn exists(&self, path: &Path) -> bool {
        *path == *self.file.path || self.files.exists(path)
    }
}
