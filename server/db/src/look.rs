//! How texts are read: of the files as they are, or inside of a query through the database, which then knows what was read.
//!
//! In: paths, settings. Out: files, compile commands, where headers are looked for, what lies near. What holds: inside of a query
//! nothing is read past the database, so that a query depends on all that it looked at; outside of one the files are read as they
//! are and each question is asked of the database by itself, so that no long work keeps others from changing a file.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use rustc_hash::FxHasher;
use warplens_base::{Bounds, Command, Files, IncludeSearch, SourceFile};

use crate::database::{Db, Queries, world};
use crate::kinds::absolute;
use crate::queries::near::{self, Kinds};
use crate::readings::Headers;
use crate::replaced::Replaced;
use crate::settings::Settings;
use crate::stores::{Documents, Stores};

/// What marks the folder of a project.
const MARKS: [&str; 4] = [".git", ".hg", "warplens.toml", "compile_commands.json"];

/// A view of the files and of what is derived of them.
pub(crate) struct Look<'a> {
    /// The files.
    pub(crate) files: &'a dyn Files,
    /// What is kept by content.
    pub(crate) stores: &'a Stores,
    asks: Asks<'a>,
    /// Whether one of the files is replaced.
    is_replaced: bool,
}

/// Where queries are asked.
enum Asks<'a> {
    /// Outside of a query.
    Of(&'a Queries),
    /// Inside of one.
    Inside(&'a dyn Db),
}

impl<'a> Look<'a> {
    /// From outside of any query.
    pub(crate) fn new(files: &'a dyn Files, stores: &'a Stores, queries: &'a Queries) -> Look<'a> {
        Look {
            files,
            stores,
            asks: Asks::Of(queries),
            is_replaced: false,
        }
    }

    /// From inside of a query.
    pub(crate) fn inside(db: &'a dyn Db) -> Look<'a> {
        Look {
            files: db.files(),
            stores: db.stores(),
            asks: Asks::Inside(db),
            is_replaced: false,
        }
    }

    /// The same with the text of one file replaced: what lies near files, and which queries are asked, stays.
    pub(crate) fn with<'b>(&'b self, replaced: &'b Replaced<'b>) -> Look<'b> {
        Look {
            files: replaced,
            stores: self.stores,
            asks: match self.asks {
                Asks::Of(queries) => Asks::Of(queries),
                Asks::Inside(db) => Asks::Inside(db),
            },
            is_replaced: true,
        }
    }

    /// Whether the text of one file is replaced: what is made of it is kept by content alone.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// Asks a query.
    pub(crate) fn ask<T>(&self, ask: impl Fn(&dyn Db) -> T) -> T {
        match self.asks {
            Asks::Of(queries) => queries.ask(ask),
            Asks::Inside(db) => ask(db),
        }
    }

    /// The generation of the files, outside of a query: inside of one nothing may be taken for looked at, nor where a text is replaced.
    pub(crate) fn generation(&self) -> Option<u64> {
        match self.asks {
            _ if self.is_replaced => None,
            Asks::Of(_) => Some(self.files.generation()),
            Asks::Inside(_) => None,
        }
    }

    fn roots(&self) -> Vec<PathBuf> {
        match self.asks {
            Asks::Of(_) => self.stores.roots(),
            Asks::Inside(db) => world(db).roots(db).clone(),
        }
    }

    fn confined(&self) -> Option<Vec<PathBuf>> {
        match self.asks {
            Asks::Of(_) => self.stores.confined(),
            Asks::Inside(db) => world(db).confined(db).clone(),
        }
    }

    /// The readings of headers.
    pub(crate) fn headers(&self) -> MutexGuard<'a, Headers> {
        let headers = self.stores.headers.lock();
        headers.unwrap_or_else(PoisonError::into_inner)
    }

    /// The documents of files that others depend on.
    pub(crate) fn documents(&self) -> MutexGuard<'a, Documents> {
        let documents = self.stores.documents.lock();
        documents.unwrap_or_else(PoisonError::into_inner)
    }

    /// What a file and its headers are read from; none where they may be read from everywhere. A file in no folder of
    /// the workspace has its own, or the nearest above that is marked as a project's.
    pub(crate) fn bounds(&self, path: &Path) -> Option<Bounds> {
        let besides = self.confined()?;
        let path = absolute(path);
        let roots = self.roots();
        let folders = roots.iter().cloned().chain(besides);
        if roots.iter().any(|root| path.starts_with(root)) {
            return Some(Bounds::new(self.files, folders));
        }
        let own = path.parent().unwrap_or(Path::new(""));
        let marked = own.ancestors().find(|folder| is_marked(folder, self.files));
        let home = marked.unwrap_or(own).to_owned();
        Some(Bounds::new(self.files, folders.chain([home])))
    }

    pub(crate) fn search(
        &self,
        settings: &Settings,
        command: Option<&Command>,
        bounds: Option<&Bounds>,
    ) -> (Arc<IncludeSearch>, u64) {
        let mut hasher = FxHasher::default();
        bounds.hash(&mut hasher);
        settings.include_paths.hash(&mut hasher);
        if let Some(command) = command {
            (&command.quote_dirs, &command.include_dirs).hash(&mut hasher);
        }
        let key = hasher.finish();
        let mut searches = self
            .stores
            .searches
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let search = searches.entry(key).or_insert_with(|| {
            let mut dirs: Vec<PathBuf> = settings.include_paths.iter().map(PathBuf::from).collect();
            let mut quote = Vec::new();
            if let Some(command) = command {
                dirs.extend(command.include_dirs.iter().cloned());
                quote.clone_from(&command.quote_dirs);
            }
            let search = IncludeSearch::new(quote, dirs, self.stores.index());
            Arc::new(match bounds {
                Some(bounds) => {
                    let forced = command.iter().flat_map(|command| &command.forced_includes);
                    search.within(self.files, &bounds.and(self.files, forced))
                }
                None => search,
            })
        });
        (Arc::clone(search), key)
    }

    /// The host programs near a file that have one of these words in them, and their texts: those of the nearest folder.
    pub(crate) fn hosts_near(
        &self,
        path: &Path,
        words: &[&str],
        kinds: Kinds,
    ) -> Vec<Arc<SourceFile>> {
        let path = absolute(path);
        let found = self.ask(|db| near::hosts(db, &path, words, kinds, world(db).roots(db)));
        let found = found.iter();
        found.filter_map(|path| self.files.read(path)).collect()
    }

    /// The files near one that define these names.
    pub(crate) fn defining(&self, path: &Path, names: &[String]) -> Vec<PathBuf> {
        let path = absolute(path);
        self.ask(|db| near::defining(db, &path, names, world(db).roots(db)))
    }

    /// OpenCL files in a folder and below it.
    pub(crate) fn opencl_below(&self, folder: &Path) -> Vec<PathBuf> {
        let folder = absolute(folder);
        self.ask(|db| near::opencl_below(db, &folder))
    }

    /// The folders in which what a file lacks is looked for.
    pub(crate) fn around(&self, path: &Path) -> Vec<PathBuf> {
        let path = absolute(path);
        self.ask(|db| near::around(db, &path, world(db).roots(db)))
    }
}

fn is_marked(folder: &Path, files: &dyn Files) -> bool {
    let names = files.list(folder);
    let mut names = names.iter().map(|entry| entry.path.file_name());
    names.any(|name| MARKS.iter().any(|mark| name == Some(mark.as_ref())))
}
