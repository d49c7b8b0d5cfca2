//! What lies in the files beside one: who includes it, and who defines what it only calls.
//!
//! Folders are looked through once, by their words alone; what is found is preprocessed and parsed like any
//! other text before it counts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_base::Files;
use warplens_syntax::Document;

/// Files of one folder that are looked at.
const MOST_FILES: usize = 256;
/// Bytes of one folder that are looked at.
const MOST_BYTES: usize = 4 << 20;
/// Subfolders of a folder that are looked at: with more of them they are not parts of one program.
const MOST_FOLDERS: usize = 16;
/// Folders above a file's own that are looked at.
const LEVELS: usize = 2;
/// Files that are linked with one.
const MOST_LINKED: usize = 8;

/// The index of the folders looked through so far, and what it gave.
#[derive(Default)]
pub(crate) struct Beside {
    folders: Mutex<FxHashMap<PathBuf, Arc<Folder>>>,
    linked: Mutex<FxHashMap<PathBuf, Links>>,
    /// Linked files with their own expansions.
    documents: Mutex<FxHashMap<PathBuf, (u64, Document)>>,
}

/// What was found because a file lacked something.
#[derive(Default)]
struct Links {
    files: Vec<PathBuf>,
    /// The file that includes it.
    includer: Option<PathBuf>,
    /// The names that were looked for, and that an includer was.
    asked: FxHashSet<String>,
}

#[derive(Default)]
struct Folder {
    path: PathBuf,
    files: Vec<Words>,
    folders: Vec<PathBuf>,
}

/// The words of a file that matter to others.
struct Words {
    path: PathBuf,
    /// What its `#include "…"` lines name.
    includes: Vec<String>,
    /// Names with parentheses and a brace behind them.
    defines: FxHashSet<String>,
    /// Constants of the file, and what each is.
    constants: FxHashMap<String, String>,
}

impl Beside {
    /// Files were made, moved or deleted.
    pub(crate) fn forget(&self) {
        lock(&self.folders).clear();
        lock(&self.linked).clear();
        lock(&self.documents).clear();
    }

    /// The nearest file that includes this one. It is looked for once.
    pub(crate) fn includer(
        &self,
        path: &Path,
        roots: &[PathBuf],
        files: &dyn Files,
    ) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?;
        let once = format!("#include {name}");
        if !lock(&self.linked)
            .entry(path.to_owned())
            .or_default()
            .asked
            .insert(once)
        {
            return None;
        }
        let found = self
            .levels(path, roots, files)
            .into_iter()
            .find_map(|level| {
                level
                    .iter()
                    .flat_map(|folder| &folder.files)
                    .filter(|file| file.path != path)
                    .find(|file| {
                        let folder = file.path.parent();
                        file.includes.iter().any(|line| {
                            line.rsplit('/').next() == Some(name)
                                && folder.is_some_and(|folder| {
                                    warplens_base::normalise(&folder.join(line)) == path
                                })
                        })
                    })
                    .map(|file| file.path.clone())
            });
        lock(&self.linked)
            .entry(path.to_owned())
            .or_default()
            .includer
            .clone_from(&found);
        found
    }

    /// True where something was found for a file.
    pub(crate) fn knows(&self, path: &Path) -> bool {
        let linked = lock(&self.linked);
        let links = linked.get(path);
        links.is_some_and(|links| links.includer.is_some() || !links.files.is_empty())
    }

    /// Lets go of what was found for a file: the file that includes it.
    pub(crate) fn forget_file(&self, path: &Path) -> Option<PathBuf> {
        lock(&self.linked).remove(path)?.includer
    }

    /// Looks for files that define these names, and links them with `path`. A name that the nearest folder defines more than
    /// once links nothing, but for a constant that is the same everywhere.
    pub(crate) fn link(
        &self,
        path: &Path,
        names: &FxHashSet<String>,
        roots: &[PathBuf],
        files: &dyn Files,
    ) {
        let new: Vec<String> = {
            let mut linked = lock(&self.linked);
            let links = linked.entry(path.to_owned()).or_default();
            names
                .iter()
                .filter(|name| links.asked.insert((*name).clone()))
                .cloned()
                .collect()
        };
        if new.is_empty() {
            return;
        }
        let levels = self.levels(path, roots, files);
        for name in new {
            let mut found = levels.iter().map(|level| defining(level, path, &name));
            let Some(Defined::In(only)) = found.find(|found| !matches!(found, Defined::Nowhere))
            else {
                continue;
            };
            let mut linked = lock(&self.linked);
            let links = linked.entry(path.to_owned()).or_default();
            if !links.files.contains(&only.path) && links.files.len() < MOST_LINKED {
                links.files.push(only.path.clone());
            }
        }
    }

    /// The files that a file is linked with.
    pub(crate) fn linked(&self, path: &Path) -> Vec<PathBuf> {
        lock(&self.linked)
            .get(path)
            .map(|links| links.files.clone())
            .unwrap_or_default()
    }

    /// A file's document, kept with its expansion for as long as its text stays.
    pub(crate) fn document(
        &self,
        path: &Path,
        files: &dyn Files,
        language: warplens_syntax::Language,
    ) -> Option<Document> {
        let file = files.read(path)?;
        let mut documents = lock(&self.documents);
        if let Some((hash, document)) = documents.get(path)
            && *hash == file.hash
        {
            return Some(document.clone());
        }
        if documents.len() >= 4 * MOST_LINKED {
            documents.clear();
        }
        let document = Document::new(&file.text, language);
        documents.insert(path.to_owned(), (file.hash, document.clone()));
        Some(document)
    }

    /// The folders that are looked through for a file.
    pub(crate) fn around(&self, path: &Path, roots: &[PathBuf], files: &dyn Files) -> Vec<PathBuf> {
        let levels = self.levels(path, roots, files).into_iter().flatten();
        levels.map(|folder| folder.path.clone()).collect()
    }

    /// The folder of a file and those above it, each with its subfolders, the nearest first.
    fn levels(&self, path: &Path, roots: &[PathBuf], files: &dyn Files) -> Vec<Vec<Arc<Folder>>> {
        let mut levels = Vec::new();
        let mut at = path.parent();
        while let Some(folder) = at
            && levels.len() <= LEVELS
        {
            let whole = self.folder(folder, files);
            let mut level = vec![Arc::clone(&whole)];
            if whole.folders.len() <= MOST_FOLDERS {
                level.extend(whole.folders.iter().map(|inner| self.folder(inner, files)));
            }
            levels.push(level);
            if !roots
                .iter()
                .any(|root| folder.starts_with(root) && folder != root)
            {
                break;
            }
            at = folder.parent();
        }
        levels
    }

    fn folder(&self, path: &Path, files: &dyn Files) -> Arc<Folder> {
        if let Some(known) = lock(&self.folders).get(path) {
            return Arc::clone(known);
        }
        let folder = Arc::new(look_through(path, files));
        lock(&self.folders).insert(path.to_owned(), Arc::clone(&folder));
        folder
    }
}

/// Where a level defines a name.
enum Defined<'a> {
    Nowhere,
    In(&'a Words),
    /// In several files, each in its own way.
    Unclear,
}

fn defining<'a>(level: &'a [Arc<Folder>], path: &Path, name: &str) -> Defined<'a> {
    let others = level.iter().flat_map(|folder| &folder.files);
    let others = others.filter(|file| file.path != path);
    let functions: Vec<&Words> = others
        .clone()
        .filter(|file| file.defines.contains(name))
        .collect();
    let constants: Vec<(&Words, &String)> = others
        .filter_map(|file| Some((file, file.constants.get(name)?)))
        .collect();
    match (functions.as_slice(), constants.as_slice()) {
        ([], []) => Defined::Nowhere,
        ([only], []) => Defined::In(only),
        ([], [(first, value), rest @ ..]) if rest.iter().all(|(_, other)| other == value) => {
            Defined::In(first)
        }
        _ => Defined::Unclear,
    }
}

/// What a text defines that the files beside it may use.
pub(crate) fn offers(text: &str) -> FxHashSet<String> {
    let mut names = defines(text);
    names.extend(constants(text).into_keys());
    names
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look_through(path: &Path, files: &dyn Files) -> Folder {
    let mut folder = Folder {
        path: path.to_owned(),
        ..Folder::default()
    };
    let Ok(entries) = std::fs::read_dir(path) else {
        return folder;
    };
    let mut paths = Vec::new();
    for entry in entries.flatten().take(16 * MOST_FILES) {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden => folder.folders.push(entry.path()),
            Ok(kind) if kind.is_file() && is_source(&entry.path()) => paths.push(entry.path()),
            _ => {}
        }
    }
    folder.folders.sort();
    paths.sort();
    let mut bytes = 0;
    for path in paths.into_iter().take(MOST_FILES) {
        let Some(file) = files.read(&path) else {
            continue;
        };
        bytes += file.text.len();
        if bytes > MOST_BYTES {
            break;
        }
        folder.files.push(Words {
            includes: includes(&file.text),
            defines: defines(&file.text),
            constants: constants(&file.text),
            path,
        });
    }
    folder
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    crate::is_header(path) || matches!(extension, Some("cu" | "hip" | "c" | "cc" | "cpp" | "cxx"))
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
