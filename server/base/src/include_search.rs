//! Where an `#include` leads.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::bounds::Bounds;
use crate::command::Command;
use crate::files::Files;
use crate::paths::{absolute, normalise};
use crate::system_headers::is_system_header;

/// The header-like files of a workspace, by name; to be shared by all searches in it.
///
/// The folders are walked when the index is first needed. What `.gitignore` excludes and what is hidden is
/// left out.
#[derive(Debug)]
pub struct HeaderIndex {
    roots: Vec<PathBuf>,
    built: Mutex<Option<Arc<ByName>>>,
    epoch: AtomicU64,
}

/// Paths in order of their spelling, under their last component.
type ByName = FxHashMap<Box<OsStr>, Vec<PathBuf>>;

/// The header-like files of a workspace of which is made use.
const MAX_INDEXED: usize = 200_000;
/// Folders above one that includes a header in which it is looked for.
const MAX_ABOVE: usize = 8;

const EXTENSIONS: &[&str] = &[
    "h", "hpp", "hh", "hxx", "cuh", "cu", "cl", "clh", "inc", "inl", "def", "ipp", "tcc", "hip",
];

impl HeaderIndex {
    /// An index of the files under these workspace folders; nothing is walked yet.
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            built: Mutex::new(None),
            epoch: AtomicU64::new(0),
        }
    }

    /// The next search that needs the index walks the folders again: files were made, moved or deleted.
    pub fn refresh(&self) {
        *self.built() = None;
        self.epoch.fetch_add(1, Ordering::Release);
    }

    fn built(&self) -> MutexGuard<'_, Option<Arc<ByName>>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn by_name(&self, files: &dyn Files) -> Arc<ByName> {
        // The lock is held on purpose: who comes second waits instead of walking as well.
        Arc::clone(
            self.built()
                .get_or_insert_with(|| Arc::new(walk(files, &self.roots))),
        )
    }

    /// The existing file whose path ends with `suffix` and that lies closest to `folder`; not `excluded`.
    fn closest(
        &self,
        files: &dyn Files,
        suffix: &Path,
        folder: &Path,
        excluded: Option<&Path>,
    ) -> Option<PathBuf> {
        let index = self.by_name(files);
        let candidates = index.get(suffix.file_name()?)?;
        let rank = |path: &PathBuf| {
            // Of equally close ones that of a like program, `blur-hip` and `blur-cuda`, then the least deep.
            let shared = shared_components(path, folder);
            (
                shared,
                alike(path, folder, shared),
                std::cmp::Reverse(path.components().count()),
            )
        };
        let mut fitting: Vec<_> = candidates
            .iter()
            .filter(|path| path.ends_with(suffix) && Some(path.as_path()) != excluded)
            .map(|path| (rank(path), path))
            .collect();
        fitting.sort_by(|(one, _), (other, _)| other.cmp(one));
        fitting
            .into_iter()
            .map(|(_, path)| path)
            .find(|path| files.exists(path))
            .cloned()
    }

    /// The file of that name in the folders above, which the index lacks where `.gitignore` names it and git holds it all the same.
    fn above(
        &self,
        files: &dyn Files,
        suffix: &Path,
        folder: &Path,
        excluded: Option<&Path>,
    ) -> Option<PathBuf> {
        let extension = suffix.extension().and_then(OsStr::to_str);
        if !extension.is_some_and(is_header) {
            return None;
        }
        let within = |folder: &&Path| self.roots.iter().any(|root| folder.starts_with(root));
        let mut folders = folder.ancestors().take_while(within).take(MAX_ABOVE);
        folders.find_map(|folder| {
            let path = folder.join(suffix);
            (Some(path.as_path()) != excluded && files.exists(&path)).then_some(path)
        })
    }
}

fn walk(files: &dyn Files, roots: &[PathBuf]) -> ByName {
    let mut index = ByName::default();
    let header = |path: &Path| {
        let extension = path.extension().and_then(OsStr::to_str);
        extension.is_some_and(is_header)
    };
    for path in files.walk(roots, MAX_INDEXED, &header) {
        let name = path.file_name().unwrap_or_default();
        index.entry(name.into()).or_default().push(path);
    }
    for paths in index.values_mut() {
        paths.sort_unstable();
        // Roots may lie within each other.
        paths.dedup();
    }
    index
}

fn is_header(extension: &str) -> bool {
    EXTENSIONS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(extension))
}

fn shared_components(one: &Path, other: &Path) -> usize {
    one.components()
        .zip(other.components())
        .take_while(|(a, b)| a == b)
        .count()
}

/// Bytes of whole words with which both names begin where two paths part: `blur-` of `blur-hip` and `blur-cuda`.
fn alike(one: &Path, other: &Path, shared: usize) -> usize {
    let name = |path: &Path| {
        let part = path.components().nth(shared)?;
        Some(part.as_os_str().to_string_lossy().into_owned())
    };
    let (Some(one), Some(other)) = (name(one), name(other)) else {
        return 0;
    };
    let same = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    one.as_bytes()[..same]
        .iter()
        .rposition(|byte| matches!(byte, b'-' | b'_' | b'.'))
        .map_or(0, |at| at + 1)
}

/// How one command's sources find what they include. Answers are kept until
/// [`Files::existence`] or the index changes.
#[derive(Debug)]
pub struct IncludeSearch {
    quote_dirs: Vec<PathBuf>,
    dirs: Vec<PathBuf>,
    index: Arc<HeaderIndex>,
    /// Nothing outside is found. None: everything may be.
    bounds: Option<Bounds>,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    /// The existence of the files and the epoch of the index that the answers belong to.
    state: (u64, u64),
    answers: usize,
    /// By the including folder; then, for `"…"` and for `<…>`, by the spelling.
    folders: FxHashMap<PathBuf, [Answers; 2]>,
}

type Answers = FxHashMap<Box<str>, Option<PathBuf>>;

const MAX_ANSWERS: usize = 100_000;

impl IncludeSearch {
    /// A search in the folders of `-iquote`, in those of `-I` and its like, and in the workspace.
    pub fn new(quote_dirs: Vec<PathBuf>, dirs: Vec<PathBuf>, index: Arc<HeaderIndex>) -> Self {
        Self {
            quote_dirs,
            dirs,
            index,
            bounds: None,
            cache: Mutex::default(),
        }
    }

    /// The same, and files outside these folders and its own are as good as absent.
    #[must_use]
    pub fn within(mut self, files: &dyn Files, bounds: &Bounds) -> Self {
        let named = self.quote_dirs.iter().chain(&self.dirs);
        self.bounds = Some(bounds.and(files, named));
        self
    }

    /// The search that a command's sources make.
    pub fn of_command(command: &Command, index: Arc<HeaderIndex>) -> Self {
        Self::new(
            command.quote_dirs.clone(),
            command.include_dirs.clone(),
            index,
        )
    }

    /// The file that `#include "spelled"` (or `<spelled>` where `system`) in the file `from` means.
    ///
    /// `"…"` is looked for beside `from`, in the quote folders, then in the folders; `<…>` in the folders,
    /// then beside `from`. What is in none of them and is no [system header](is_system_header) is taken
    /// from the workspace: of the files whose path ends as spelled, the one that shares most leading folders
    /// with `from`, and then the beginning of the next folder's name. Backslashes count as slashes.
    pub fn resolve(
        &self,
        files: &dyn Files,
        spelled: &str,
        system: bool,
        from: &Path,
    ) -> Option<PathBuf> {
        let state = (files.existence(), self.index.epoch.load(Ordering::Acquire));
        let folder = from.parent().unwrap_or(Path::new(""));
        let known = self
            .cache(state)
            .folders
            .get(folder)
            .and_then(|answers| answers[usize::from(system)].get(spelled).cloned());
        let answer = known.unwrap_or_else(|| {
            let answer = self.search(files, spelled, system, folder, None, self.bounds.as_ref());
            self.keep(state, folder, spelled, system, answer.clone());
            answer
        });
        if answer.as_deref() == Some(from) {
            // A header that wraps its namesake means another one; the other files of the folder do not.
            let bounds = self.bounds.as_ref();
            return self.search(files, spelled, system, folder, Some(from), bounds);
        }
        answer
    }

    /// Whether [`resolve`](Self::resolve) finds nothing only because what there is lies outside the bounds.
    pub fn is_outside(&self, files: &dyn Files, spelled: &str, system: bool, from: &Path) -> bool {
        let folder = from.parent().unwrap_or(Path::new(""));
        self.bounds.is_some()
            && self.resolve(files, spelled, system, from).is_none()
            && self
                .search(files, spelled, system, folder, Some(from), None)
                .is_some()
    }

    fn keep(
        &self,
        state: (u64, u64),
        folder: &Path,
        spelled: &str,
        system: bool,
        answer: Option<PathBuf>,
    ) {
        let mut cache = self.cache(state);
        if cache.answers >= MAX_ANSWERS {
            *cache = Cache {
                state,
                ..Cache::default()
            };
        }
        cache.answers += 1;
        let answers = cache.folders.entry(folder.to_owned()).or_default();
        answers[usize::from(system)].insert(spelled.into(), answer);
    }

    fn cache(&self, state: (u64, u64)) -> MutexGuard<'_, Cache> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.state != state {
            *cache = Cache {
                state,
                ..Cache::default()
            };
        }
        cache
    }

    fn search(
        &self,
        files: &dyn Files,
        spelled: &str,
        system: bool,
        folder: &Path,
        excluded: Option<&Path>,
        bounds: Option<&Bounds>,
    ) -> Option<PathBuf> {
        let spelled = spelled.trim().replace('\\', "/");
        if spelled.is_empty() || spelled.contains('\0') {
            return None;
        }
        let path = Path::new(&spelled);
        let may_be_read = |path: &Path| bounds.is_none_or(|bounds| bounds.hold(files, path));
        let at = |folder: &Path| {
            Some(absolute(folder, path)).filter(|path| files.exists(path) && may_be_read(path))
        };
        if path.is_absolute() {
            return at(Path::new(""));
        }
        let in_dirs = || self.dirs.iter().find_map(|dir| at(dir));
        let found = if system {
            in_dirs()
        } else {
            at(folder)
                .or_else(|| self.quote_dirs.iter().find_map(|dir| at(dir)))
                .or_else(in_dirs)
        };
        if found.is_some() {
            return found;
        }
        if is_system_header(&spelled) {
            return None;
        }
        if system && let Some(found) = at(folder) {
            return Some(found);
        }
        // A link among the workspace's own headers may lead outside.
        let suffix = suffix(path);
        self.index
            .closest(files, &suffix, folder, excluded)
            .or_else(|| self.index.above(files, &suffix, folder, excluded))
            .filter(|path| may_be_read(path))
    }
}

/// What a path must end with to be meant by `spelled`: all but the `..` at its start.
fn suffix(spelled: &Path) -> PathBuf {
    normalise(spelled)
        .components()
        .skip_while(|part| !matches!(part, Component::Normal(_)))
        .collect()
}
