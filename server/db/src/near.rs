//! What lies near a file: which files there launch, call, include or define something, by their words alone.
//!
//! In: a view of the files, the workspace's folders, a path and names. Out: paths, the nearest first. An answer depends on
//! nothing else: not on what was analysed before, nor on the file's own text. What is found is preprocessed and parsed like
//! any other text before it counts.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use warplens_base::{EntryKind, Files};
use warplens_host::LAUNCH_WORDS;
use warplens_syntax::Language;

use crate::kinds::is_header;
use crate::sources::names_sources;

/// Folders above a file's own that are looked into for hosts and includers, and how deep below each.
const MOST_UP: usize = 3;
const DEEPEST: usize = 4;
/// Names in folders, files and their bytes that are looked at from one folder.
const MOST_ENTRIES: usize = 4_000;
const MOST_FILES: usize = 600;
const MOST_BYTES: usize = 16 << 20;
/// A larger file is generated.
const LARGEST: usize = 1 << 20;
/// Host programs that are read for one kernel file.
const MOST_HOSTS: usize = 8;
/// Folders above a file's own that are looked through for what it does not define.
const LEVELS: usize = 2;
/// Files of one such folder, their bytes, and its folders: with more of them they are not parts of one program.
const MOST_DEFINING: usize = 256;
const MOST_DEFINING_BYTES: usize = 4 << 20;
const MOST_FOLDERS: usize = 16;
/// Files that are linked with one.
const MOST_LINKED: usize = 8;
/// Folders, files and answers that are remembered.
const MOST_LISTED: usize = 1_024;
const MOST_INDEXED: usize = 100_000;
const MOST_ANSWERS: usize = 8_192;
/// One of these, or of the words of launches, is in every file that builds or launches kernels.
const WORDS: [&str; 2] = ["BuildProgram", "CreateKernel"];

/// Which files are host programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kinds {
    /// C and C++ files, and CUDA and HIP, that launch or build kernels.
    Hosts,
    /// Every such file that may call a function, whatever else it does; in the folder itself and the one above it.
    Callers,
}

/// What is looked at: the files, and the folders of the workspace, above which nothing is.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) roots: &'a [PathBuf],
}

/// The index, as far as it was asked for.
#[derive(Default)]
pub(crate) struct Near {
    indexed: Mutex<FxHashMap<PathBuf, Arc<Indexed>>>,
    folders: Mutex<FxHashMap<PathBuf, (u64, Arc<Folder>)>>,
    below: Mutex<FxHashMap<(PathBuf, usize), (u64, Arc<[Arc<Indexed>]>)>>,
    hosts: Mutex<FxHashMap<u64, (u64, Arc<[PathBuf]>)>>,
}

/// The source files and the folders of a folder, in the order of their names.
#[derive(Default)]
struct Folder {
    path: PathBuf,
    files: Vec<(EntryKind, Arc<Indexed>)>,
    folders: Vec<PathBuf>,
    /// Names in it.
    entries: usize,
}

/// A file, and what its words say.
struct Indexed {
    path: PathBuf,
    /// For the generation of the files in which that was last compared.
    words: Mutex<Option<(u64, Option<Arc<Words>>)>>,
}

/// What is known of one text, each part when somebody first asks for it.
struct Words {
    hash: u64,
    bytes: usize,
    launches: OnceLock<bool>,
    /// Hashes of its words, sorted.
    names: OnceLock<Vec<u32>>,
    /// What its `#include "…"` lines name.
    includes: OnceLock<Vec<String>>,
    /// Names with parentheses and a brace behind them.
    defines: OnceLock<FxHashSet<String>>,
    /// Constants of the file, and what each is.
    constants: OnceLock<FxHashMap<String, String>>,
}

impl Indexed {
    /// What its text is known to say; `None` where there is none.
    fn words(&self, files: &dyn Files) -> Option<Arc<Words>> {
        let generation = files.generation();
        let mut known = lock(&self.words);
        if let Some((seen, words)) = &*known
            && *seen == generation
        {
            return words.clone();
        }
        let words = files.read(&self.path).map(|file| match &*known {
            Some((_, Some(words))) if words.hash == file.hash => Arc::clone(words),
            _ => Arc::new(Words {
                hash: file.hash,
                bytes: file.text.len(),
                launches: OnceLock::new(),
                names: OnceLock::new(),
                includes: OnceLock::new(),
                defines: OnceLock::new(),
                constants: OnceLock::new(),
            }),
        });
        *known = Some((files.generation(), words.clone()));
        words
    }

    fn of<'w, T>(
        &self,
        part: &'w OnceLock<T>,
        files: &dyn Files,
        make: impl FnOnce(&str) -> T,
    ) -> &'w T {
        part.get_or_init(|| {
            let file = files.read(&self.path);
            make(file.as_ref().map_or("", |file| &file.text))
        })
    }

    fn is_host(&self, kinds: Kinds, words: &Words, files: &dyn Files) -> bool {
        let launches = |text: &str| {
            LAUNCH_WORDS
                .iter()
                .chain(&WORDS)
                .any(|word| text.contains(word))
                || names_sources(text)
        };
        kinds == Kinds::Callers || *self.of(&words.launches, files, launches)
    }
}

impl Near {
    /// The host programs that have one of these words in them, of the nearest folder that holds some.
    pub(crate) fn hosts(
        &self,
        path: &Path,
        words: &[&str],
        kinds: Kinds,
        view: View<'_>,
    ) -> Arc<[PathBuf]> {
        (0..=MOST_UP)
            .map_while(|up| self.hosts_at(path, words, kinds, up, view))
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    /// Those of the folder that many above the file's own; `None` where that is not looked into.
    pub(crate) fn hosts_at(
        &self,
        path: &Path,
        words: &[&str],
        kinds: Kinds,
        up: usize,
        view: View<'_>,
    ) -> Option<Arc<[PathBuf]>> {
        if kinds == Kinds::Callers && up > 1 {
            return None;
        }
        let folder = folder_above(path, up, view.roots)?;
        let generation = view.files.generation();
        let mut hasher = FxHasher::default();
        (path, words, kinds, folder).hash(&mut hasher);
        let key = hasher.finish();
        if let Some((seen, hosts)) = lock(&self.hosts).get(&key)
            && *seen == generation
        {
            return Some(Arc::clone(hosts));
        }
        let wanted: Vec<u32> = words.iter().map(|word| word_hash(word)).collect();
        let below = self.below(folder, if up == 0 { 0 } else { DEEPEST }, view.files);
        let mut found = Vec::new();
        let (mut read, mut bytes) = (0, 0);
        for file in below.iter() {
            if file.path == path || !may_be_host(&file.path) {
                continue;
            }
            if found.len() >= MOST_HOSTS || read >= MOST_FILES || bytes >= MOST_BYTES {
                break;
            }
            let Some(words) = file.words(view.files) else {
                continue;
            };
            if words.bytes > LARGEST {
                continue;
            }
            read += 1;
            bytes += words.bytes;
            let has = || {
                let names = file.of(&words.names, view.files, words_of);
                wanted.iter().any(|word| names.binary_search(word).is_ok())
            };
            if file.is_host(kinds, &words, view.files) && has() {
                found.push(file.path.clone());
            }
        }
        let found: Arc<[PathBuf]> = found.into();
        put(
            &self.hosts,
            MOST_ANSWERS,
            key,
            (generation, Arc::clone(&found)),
        );
        Some(found)
    }

    /// The nearest file that includes this one, as `includes` finds out of a line in a file: of one folder a source before
    /// a header.
    pub(crate) fn includer(
        &self,
        path: &Path,
        view: View<'_>,
        includes: &dyn Fn(&Path, &str) -> bool,
    ) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?;
        for up in 0..=MOST_UP {
            let folder = folder_above(path, up, view.roots)?;
            let below = self.below(folder, if up == 0 { 0 } else { DEEPEST }, view.files);
            let mut header = None;
            for file in below.iter().filter(|file| file.path != path) {
                if header.is_some() && is_header(&file.path) {
                    continue;
                }
                let Some(words) = file.words(view.files) else {
                    continue;
                };
                let lines = file.of(&words.includes, view.files, self::includes);
                let mut named = lines
                    .iter()
                    .filter(|line| line.rsplit(['/', '\\']).next() == Some(name));
                if !named.any(|line| includes(&file.path, line)) {
                    continue;
                }
                if !is_header(&file.path) {
                    return Some(file.path.clone());
                }
                header = Some(file.path.clone());
            }
            if header.is_some() {
                return header;
            }
        }
        None
    }

    /// The files that define these names. A name that the nearest folder defines more than once links nothing, but for a
    /// constant that is the same everywhere.
    pub(crate) fn defining(&self, path: &Path, names: &[String], view: View<'_>) -> Vec<PathBuf> {
        let mut linked: Vec<PathBuf> = Vec::new();
        if names.is_empty() {
            return linked;
        }
        let levels = self.levels(path, view);
        let levels: Vec<Vec<(&Arc<Indexed>, Arc<Words>)>> = levels
            .iter()
            .map(|level| {
                let folders = level.iter();
                let files = folders.flat_map(|folder| sources(folder, path, view.files));
                files.collect()
            })
            .collect();
        for name in names {
            let mut found = levels.iter().map(|level| defining(level, name, view.files));
            let found = found.find(|found| !matches!(found, Defined::Nowhere));
            if let Some(Defined::In(only)) = found
                && !linked.contains(only)
                && linked.len() < MOST_LINKED
            {
                linked.push(only.clone());
            }
        }
        linked
    }

    /// The folders that are looked through for what a file does not define.
    pub(crate) fn around(&self, path: &Path, view: View<'_>) -> Vec<PathBuf> {
        let levels = self.levels(path, view).into_iter().flatten();
        levels.map(|folder| folder.path.clone()).collect()
    }

    /// The folder of a file and those above it, each with its subfolders, the nearest first.
    fn levels(&self, path: &Path, view: View<'_>) -> Vec<Vec<Arc<Folder>>> {
        let folder = |path: &Path| self.folder(path, view.files);
        let up = (0..=LEVELS).map_while(|up| folder_above(path, up, view.roots));
        up.map(|at| {
            let whole = folder(at);
            let mut level = vec![Arc::clone(&whole)];
            if whole.folders.len() <= MOST_FOLDERS {
                level.extend(whole.folders.iter().map(|inner| folder(inner)));
            }
            level
        })
        .collect()
    }

    /// The source files in a folder and so deep below it, level by level: what is cut off is far.
    fn below(&self, folder: &Path, depth: usize, files: &dyn Files) -> Arc<[Arc<Indexed>]> {
        let existence = files.existence();
        let key = (folder.to_path_buf(), depth);
        if let Some((seen, below)) = lock(&self.below).get(&key)
            && *seen == existence
        {
            return Arc::clone(below);
        }
        let mut found = Vec::new();
        let mut open = vec![folder.to_path_buf()];
        let mut left = MOST_ENTRIES;
        for _ in 0..=depth {
            let mut next = Vec::new();
            for folder in open {
                if left == 0 {
                    break;
                }
                let folder = self.folder(&folder, files);
                left = left.saturating_sub(folder.entries);
                found.extend(folder.files.iter().map(|(_, file)| Arc::clone(file)));
                next.extend(folder.folders.iter().cloned());
            }
            open = next;
        }
        let found: Arc<[Arc<Indexed>]> = found.into();
        put(
            &self.below,
            MOST_LISTED,
            key,
            (existence, Arc::clone(&found)),
        );
        found
    }

    fn folder(&self, path: &Path, files: &dyn Files) -> Arc<Folder> {
        let existence = files.existence();
        if let Some((seen, folder)) = lock(&self.folders).get(path)
            && *seen == existence
        {
            return Arc::clone(folder);
        }
        let mut folder = Folder {
            path: path.to_owned(),
            ..Folder::default()
        };
        for entry in files.list(path).iter().take(MOST_ENTRIES) {
            folder.entries += 1;
            match entry.kind {
                EntryKind::Folder if !entry.is_hidden() => {
                    folder.folders.push(entry.path.clone());
                }
                EntryKind::File | EntryKind::Link if is_source(&entry.path) => {
                    folder.files.push((entry.kind, self.indexed(&entry.path)));
                }
                _ => {}
            }
        }
        let folder = Arc::new(folder);
        let known = (existence, Arc::clone(&folder));
        put(&self.folders, MOST_LISTED, path.to_owned(), known);
        folder
    }

    fn indexed(&self, path: &Path) -> Arc<Indexed> {
        let mut indexed = lock(&self.indexed);
        if let Some(known) = indexed.get(path) {
            return Arc::clone(known);
        }
        if indexed.len() >= MOST_INDEXED {
            indexed.clear();
        }
        let new = Arc::new(Indexed {
            path: path.to_owned(),
            words: Mutex::default(),
        });
        indexed.insert(path.to_owned(), Arc::clone(&new));
        new
    }
}

/// The folder that many above a file's own, as long as that is in the workspace.
fn folder_above<'a>(path: &'a Path, up: usize, roots: &[PathBuf]) -> Option<&'a Path> {
    let folder = path.ancestors().nth(up + 1)?;
    let inside = up == 0 || roots.iter().any(|root| folder.starts_with(root));
    (inside && !folder.as_os_str().is_empty()).then_some(folder)
}

/// The files of a folder that may define what another one calls, each with its words.
fn sources<'a>(
    folder: &'a Folder,
    path: &Path,
    files: &dyn Files,
) -> Vec<(&'a Arc<Indexed>, Arc<Words>)> {
    let mut found = Vec::new();
    let mut bytes = 0;
    let regular = folder.files.iter().filter(|(kind, file)| {
        *kind == EntryKind::File && may_define(&file.path) && file.path != path
    });
    for (_, file) in regular.take(MOST_DEFINING) {
        let Some(words) = file.words(files) else {
            continue;
        };
        bytes += words.bytes;
        if bytes > MOST_DEFINING_BYTES {
            break;
        }
        found.push((file, words));
    }
    found
}

/// Where a level defines a name.
enum Defined<'a> {
    Nowhere,
    In(&'a PathBuf),
    /// In several files, each in its own way.
    Unclear,
}

fn defining<'a>(
    level: &'a [(&'a Arc<Indexed>, Arc<Words>)],
    name: &str,
    files: &dyn Files,
) -> Defined<'a> {
    let mut functions = level
        .iter()
        .filter(|(file, words)| file.of(&words.defines, files, defines).contains(name));
    let function = functions.next();
    if functions.next().is_some() {
        return Defined::Unclear;
    }
    let mut constant: Option<(&PathBuf, &String)> = None;
    for (file, words) in level {
        let constants = file.of(&words.constants, files, constants);
        match (constants.get(name), constant) {
            (Some(value), None) => constant = Some((&file.path, value)),
            (Some(value), Some((_, other))) if value != other => return Defined::Unclear,
            _ => {}
        }
    }
    match (function, constant) {
        (None, None) => Defined::Nowhere,
        (Some((only, _)), None) => Defined::In(&only.path),
        (None, Some((first, _))) => Defined::In(first),
        (Some(_), Some(_)) => Defined::Unclear,
    }
}

fn is_source(path: &Path) -> bool {
    may_be_host(path) || may_define(path) || Language::from_path(path).is_some()
}

fn may_define(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    is_header(path) || matches!(extension, Some("cu" | "hip" | "c" | "cc" | "cpp" | "cxx"))
}

fn may_be_host(path: &Path) -> bool {
    match Language::from_path(path) {
        Some(language) => language != Language::OpenCl,
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

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn put<K: Hash + Eq, V>(into: &Mutex<FxHashMap<K, V>>, most: usize, key: K, value: V) {
    let mut map = lock(into);
    if map.len() >= most {
        map.clear();
    }
    map.insert(key, value);
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

/// What a text defines that the files beside it may use.
pub(crate) fn offers(text: &str) -> FxHashSet<String> {
    let mut names = defines(text);
    names.extend(constants(text).into_keys());
    names
}

fn includes(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let rest = line.trim_start().strip_prefix('#')?.trim_start();
            let rest = rest.strip_prefix("include")?.trim_start();
            Some(rest.strip_prefix('"')?.split_once('"')?.0.to_owned())
        })
        .collect()
}

/// Constants that lines of their own define outside of everything: `const int WIDTH = 32;`.
fn constants(text: &str) -> FxHashMap<String, String> {
    let mut found = FxHashMap::default();
    for line in text.lines() {
        let line = line.strip_prefix("static ").unwrap_or(line);
        let rest = line.strip_prefix("constexpr ");
        let Some(rest) = rest.or_else(|| line.strip_prefix("const ")) else {
            continue;
        };
        if let Some((declared, value)) = rest.split_once('=')
            && let Some((value, _)) = value.split_once(';')
            && let Some(name) = declared.split_whitespace().last()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            found.insert(name.to_owned(), value.trim().to_owned());
        }
    }
    found
}

/// Names in front of parentheses that a brace follows: functions, and words like `if` that nobody asks for.
fn defines(text: &str) -> FxHashSet<String> {
    let bytes = text.as_bytes();
    let mut found = FxHashSet::default();
    // Where each parenthesis that is open was opened, with the name before it.
    let mut open: Vec<Option<(usize, usize)>> = Vec::new();
    let mut closed: Option<(usize, usize)> = None;
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = text[at + 2..]
                    .find("*/")
                    .map_or(bytes.len(), |end| at + end + 4);
                continue;
            }
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'(' => {
                let end = text[..at].trim_end().len();
                let start = bytes[..end]
                    .iter()
                    .rposition(|&byte| !word(byte))
                    .map_or(0, |p| p + 1);
                open.push((start < end).then_some((start, end)));
                closed = None;
            }
            b')' => closed = open.pop().flatten(),
            b'{' => {
                if let Some((start, end)) = closed.take()
                    && open.is_empty()
                {
                    found.insert(text[start..end].to_owned());
                }
            }
            b'}' | b';' => {
                closed = None;
                open.clear();
            }
            byte if byte.is_ascii_whitespace() || word(byte) => {}
            _ if open.is_empty() => closed = None,
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_told_from_calls_and_declarations() {
        let text = "int declared(int x);\n\
                    // int commented(int x) { }\n\
                    __device__ float one(const float (*p)[3], int n = f(2)) { return called(n); }\n\
                    char *s = \"quoted() {\";\n\
                    void Class::member() const\n{ other(1); }\n";
        let mut found: Vec<String> = defines(text).into_iter().collect();
        found.sort();
        assert_eq!(found, ["member", "one"]);
        assert_eq!(defines("((((((((((").len() + defines("a(b{c)d}e)").len(), 0);
    }

    #[test]
    fn constants_of_a_file_are_found() {
        let text = "const int WIDTH = 32; // lanes\nstatic constexpr unsigned ROWS = WIDTH / 4;\n  const int inside = 1;\n\
                    const int table[2] = {1, 2};\nextern const int elsewhere;\n";
        let mut found: Vec<_> = constants(text).into_iter().collect();
        found.sort();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(found, [pair("ROWS", "WIDTH / 4"), pair("WIDTH", "32")]);
    }

    #[test]
    fn lines_that_include_are_found() {
        let text = "#include <math.h>\n  # include \"../a/b.cuh\" // \"c\"\n//#include \"d.h\"\n";
        assert_eq!(includes(text), ["../a/b.cuh"]);
    }
}
