//! What is kept beside the database: readers of things that are no texts, and values by content.
//!
//! What holds: nothing here decides an answer. What is by content ([`crate::memo`], [`crate::readings`]) never goes out of date;
//! the compile commands and searches ask the files whether they do.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use warplens_base::{CompileCommands, HeaderIndex, IncludeSearch};
use warplens_syntax::Document;

use crate::contents::Contents;
use crate::readings::Headers;

/// Documents of files that others depend on, each with the hash of its text; it keeps its expansion, from which that of a later
/// text starts.
pub(crate) type Documents = FxHashMap<PathBuf, (u64, Arc<Document>)>;

/// See the module.
pub(crate) struct Stores {
    pub(crate) commands: CompileCommands,
    pub(crate) headers: Mutex<Headers>,
    pub(crate) searches: Mutex<FxHashMap<u64, Arc<IncludeSearch>>>,
    pub(crate) documents: Mutex<Documents>,
    pub(crate) contents: Contents,
    roots: RwLock<(Vec<PathBuf>, Arc<HeaderIndex>)>,
    /// Whether includes may lead out of the workspace.
    confined: RwLock<Option<Vec<PathBuf>>>,
    /// Counts the changes of the two.
    changes: AtomicU64,
}

impl Stores {
    pub(crate) fn new(roots: Vec<PathBuf>) -> Stores {
        Stores {
            commands: CompileCommands::new(),
            headers: Mutex::default(),
            searches: Mutex::default(),
            documents: Mutex::default(),
            contents: Contents::default(),
            roots: RwLock::new((roots.clone(), Arc::new(HeaderIndex::new(roots)))),
            confined: RwLock::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// The workspace's folders.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let roots = self.roots.read();
        roots.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// The headers below them, by name.
    pub(crate) fn index(&self) -> Arc<HeaderIndex> {
        let roots = self.roots.read();
        Arc::clone(&roots.unwrap_or_else(PoisonError::into_inner).1)
    }

    pub(crate) fn set_roots(&self, roots: &[PathBuf]) {
        if self.roots() == roots {
            return;
        }
        let index = Arc::new(HeaderIndex::new(roots.to_vec()));
        *self.roots.write().unwrap_or_else(PoisonError::into_inner) = (roots.to_vec(), index);
        let searches = self.searches.lock();
        searches.unwrap_or_else(PoisonError::into_inner).clear();
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The folders beside the workspace's that may be read; none where every folder may be.
    pub(crate) fn confined(&self) -> Option<Vec<PathBuf>> {
        let confined = self.confined.read();
        confined.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn confine(&self, to: Option<Vec<PathBuf>>) {
        let confined = self.confined.write();
        let mut confined = confined.unwrap_or_else(PoisonError::into_inner);
        if *confined != to {
            *confined = to;
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Grows with each change of the workspace's folders and bounds.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Lets go of headers, documents and what is kept by content.
    pub(crate) fn forget(&self) {
        let headers = self.headers.lock();
        *headers.unwrap_or_else(PoisonError::into_inner) = Headers::default();
        let documents = self.documents.lock();
        documents.unwrap_or_else(PoisonError::into_inner).clear();
        self.contents.clear();
    }
}
