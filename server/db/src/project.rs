//! What surrounds the buffers: other files, compile commands, the workspace's folders.
//!
//! In: where files are read from. Out: [`Look`], through which everything else sees them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_base::{Command, Files, NoFiles};
use warplens_machine::{Profile, Profiles};

use crate::database::Queries;
use crate::look::Look;
use crate::stores::Stores;

/// What surrounds the buffers.
pub struct Project {
    files: Arc<dyn Files + Send + Sync>,
    stores: Arc<Stores>,
    queries: Queries,
}

impl std::fmt::Debug for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Project").finish_non_exhaustive()
    }
}

impl Default for Project {
    fn default() -> Self {
        Project::new(Arc::new(NoFiles), Vec::new())
    }
}

impl Project {
    /// Files as `files` gives them; `roots` are the workspace's folders, where headers are looked for last.
    pub fn new(files: Arc<dyn Files + Send + Sync>, roots: Vec<PathBuf>) -> Project {
        let stores = Arc::new(Stores::new(roots));
        Project {
            queries: Queries::new(Arc::clone(&files), Arc::clone(&stores), None),
            files,
            stores,
        }
    }

    /// One that tells of each query that is computed.
    #[cfg(test)]
    pub(crate) fn telling(
        files: Arc<dyn Files + Send + Sync>,
        roots: Vec<PathBuf>,
        told: crate::database::Told,
    ) -> Project {
        let stores = Arc::new(Stores::new(roots));
        Project {
            queries: Queries::new(Arc::clone(&files), Arc::clone(&stores), Some(told)),
            files,
            stores,
        }
    }

    /// The workspace's folders are these now.
    pub fn set_roots(&self, roots: &[PathBuf]) {
        self.stores.set_roots(roots);
    }

    /// From now on includes lead into the workspace's folders, into these, and into those that settings and compile commands name
    /// for headers; with none, everywhere.
    pub fn confine(&self, to: Option<Vec<PathBuf>>) {
        self.stores.confine(to);
    }

    /// Files may have been made, moved, changed or deleted by others: everything is looked at again.
    pub fn refresh(&self) {
        self.files.look_again();
        self.stores.index().refresh();
    }

    /// The command that compiles a file, where a `compile_commands.json` has one.
    pub fn command(&self, path: &Path) -> Option<Arc<Command>> {
        self.look().command(path)
    }

    /// How often a header was read, and how often such a reading served again.
    pub fn header_readings(&self) -> (usize, usize) {
        let look = self.look();
        let headers = look.headers();
        (headers.read, headers.shared)
    }

    /// Bytes that the kept readings of headers take, about.
    pub fn header_bytes(&self) -> usize {
        self.look().headers().bytes
    }

    /// The files and what is derived of them, seen from outside of queries.
    pub(crate) fn look(&self) -> Look<'_> {
        Look::new(&*self.files, &self.stores, &self.queries)
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.stores
    }

    pub(crate) fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// Lets go of what was derived of files: none is open any more.
    pub(crate) fn forget(&self) {
        self.queries.forget();
        self.stores.forget();
    }

    /// The GPU that a file is compiled for, as far as there is a profile of its architecture.
    pub fn target(&self, path: &Path, profiles: &Profiles) -> Option<Arc<Profile>> {
        if path.as_os_str().is_empty() {
            return None;
        }
        let command = self.look().command(path)?;
        // The newest architecture is the one a user runs.
        let wanted = command
            .architectures
            .iter()
            .filter_map(|name| name.strip_prefix("sm_"))
            .filter_map(|digits| {
                digits
                    .trim_end_matches(char::is_alphabetic)
                    .parse::<u32>()
                    .ok()
            })
            .max()?;
        profiles.largest(|profile| {
            profile
                .compute_capability
                .is_some_and(|(major, minor)| major * 10 + minor == wanted)
        })
    }
}
