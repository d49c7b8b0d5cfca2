//! The host programs near a kernel's file: those that may launch it, found by the words in them.
//!
//! The kernel's own folder is looked at first, then what lies around it, one folder up at a time and never
//! above the workspace. Of a file only the hashes of its words are kept; it is read as a program when a kernel
//! asks for it by name.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHasher};
use warplens_base::Files;
use warplens_ir::LAUNCH_WORDS;
use warplens_syntax::Language;

use crate::sources::names_sources;

/// Folders above the kernel's own that are looked into.
const MOST_UP: usize = 3;
/// Folders nest this deep below one that is looked into.
const DEEPEST: usize = 4;
/// Entries of folders, host files and their bytes that are looked at from one folder.
const MOST_ENTRIES: usize = 4_000;
const MOST_FILES: usize = 600;
const MOST_BYTES: u64 = 16 << 20;
/// A larger file is generated.
const LARGEST: u64 = 1 << 20;
/// Host programs that are read for one kernel file.
const MOST_HOSTS: usize = 8;
/// Folders remembered.
const MOST_FOLDERS: usize = 256;
/// Folders are listed again after this long, where files have changed since.
const LISTED_FOR: Duration = Duration::from_secs(20);
/// One of these, or of the words of launches, is in every file that builds or launches kernels.
const WORDS: [&str; 2] = ["BuildProgram", "CreateKernel"];

/// Which files are host programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kinds {
    /// C and C++ files, and CUDA and HIP.
    All,
    /// C and C++ files: the others are looked at anyway.
    Plain,
    /// Every file that may call a function, whatever else it does; in the folder itself and the one above it.
    Callers,
}

/// What is known of host programs, by folder.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// By folder, how deep below it, and which files.
    folders: Mutex<FxHashMap<(PathBuf, usize, Kinds), Listed>>,
}

/// The host programs below a folder.
#[derive(Debug, Clone)]
struct Listed {
    hosts: Arc<Vec<Host>>,
    at: Instant,
    generation: u64,
}

#[derive(Debug)]
struct Host {
    path: PathBuf,
    /// Hashes of its words, sorted.
    words: Vec<u32>,
}

impl Hosts {
    /// Files were made, moved or deleted.
    pub(crate) fn refresh(&self) {
        self.folders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// The host programs that have one of these words, the nearest; none from outside `roots`.
    pub(crate) fn near(
        &self,
        path: &Path,
        words: &[&str],
        kinds: Kinds,
        roots: &[PathBuf],
        files: &dyn Files,
    ) -> Vec<PathBuf> {
        let wanted: Vec<u32> = words.iter().map(|word| word_hash(word)).collect();
        let mut folder = path.parent();
        for up in 0..=MOST_UP {
            let Some(at) = folder.filter(|at| !at.as_os_str().is_empty()) else {
                break;
            };
            let too_far = kinds == Kinds::Callers && up > 1;
            if too_far || up > 0 && !roots.iter().any(|root| at.starts_with(root)) {
                break;
            }
            let depth = if up == 0 { 0 } else { DEEPEST };
            let found: Vec<PathBuf> = self
                .below((at.to_path_buf(), depth, kinds), files)
                .iter()
                .filter(|host| {
                    let has = |word: &u32| host.words.binary_search(word).is_ok();
                    host.path != path && wanted.iter().any(has)
                })
                .take(MOST_HOSTS)
                .map(|host| host.path.clone())
                .collect();
            if !found.is_empty() {
                return found;
            }
            folder = at.parent();
        }
        Vec::new()
    }

    fn below(&self, folder: (PathBuf, usize, Kinds), files: &dyn Files) -> Arc<Vec<Host>> {
        let generation = files.generation();
        let known = {
            let folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
            folders.get(&folder).cloned()
        };
        if let Some(known) = known
            && (known.generation == generation || known.at.elapsed() < LISTED_FOR)
        {
            return known.hosts;
        }
        let hosts = Arc::new(list(&folder.0, folder.1, folder.2, files));
        let listed = Listed {
            hosts: Arc::clone(&hosts),
            at: Instant::now(),
            generation: files.generation(),
        };
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.len() >= MOST_FOLDERS {
            folders.clear();
        }
        folders.insert(folder, listed);
        hosts
    }
}

/// Level by level, so that what is near comes first and what is cut off is far.
fn list(folder: &Path, depth: usize, kinds: Kinds, files: &dyn Files) -> Vec<Host> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    let (mut entries, mut read, mut bytes) = (0, 0, 0);
    for level in 0..=depth {
        let mut next = Vec::new();
        for folder in open {
            let Ok(listing) = std::fs::read_dir(&folder) else {
                continue;
            };
            let mut names: Vec<(PathBuf, bool)> = listing
                .flatten()
                .take(MOST_ENTRIES.saturating_sub(entries))
                .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?.is_dir())))
                .collect();
            entries += names.len();
            names.sort();
            for (path, is_folder) in names {
                if is_folder {
                    let hidden = path
                        .file_name()
                        .is_some_and(|name| name.to_string_lossy().starts_with('.'));
                    if level < depth && !hidden {
                        next.push(path);
                    }
                    continue;
                }
                if !is_host(&path, kinds) || read >= MOST_FILES || bytes >= MOST_BYTES {
                    continue;
                }
                let length = std::fs::metadata(&path).map_or(u64::MAX, |meta| meta.len());
                if length > LARGEST {
                    continue;
                }
                read += 1;
                bytes += length;
                if let Some(file) = files.read(&path)
                    && (kinds == Kinds::Callers
                        || LAUNCH_WORDS
                            .iter()
                            .chain(&WORDS)
                            .any(|word| file.text.contains(word))
                        || names_sources(&file.text))
                {
                    let words = words_of(&file.text);
                    found.push(Host { path, words });
                }
            }
        }
        open = next;
    }
    found
}

fn is_host(path: &Path, kinds: Kinds) -> bool {
    match Language::from_path(path) {
        Some(Language::OpenCl) => false,
        Some(_) => kinds != Kinds::Plain,
        None => path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| {
                matches!(
                    extension.to_ascii_lowercase().as_str(),
                    "c" | "cc" | "cpp" | "cxx" | "c++" | "h" | "hh" | "hpp" | "hxx" | "inl"
                )
            }),
    }
}

fn words_of(text: &str) -> Vec<u32> {
    let mut words: Vec<u32> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        .map(word_hash)
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

fn word_hash(word: &str) -> u32 {
    let mut hasher = FxHasher::default();
    word.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}
