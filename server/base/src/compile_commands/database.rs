//! One `compile_commands.json`.
//!
//! Only the files and the places of their entries are kept: a command is read from the file when it is asked
//! for.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{DatabaseProblem, DatabaseState, FileCommand};
use crate::command::{Command, split_command};
use crate::files::{EntryKind, Files, Stamp};
use crate::paths::{absolute, normalise};

/// Larger ones are refused: 1 GiB.
const MAX_BYTES: u64 = 1 << 30;
/// The commands kept; more are read again.
const MAX_ANSWERS: usize = 10_000;
/// Read files change under our hands now and then; not more often than this in a row.
const MAX_ATTEMPTS: usize = 3;

#[derive(Debug)]
pub(super) struct Database {
    path: Arc<Path>,
    /// None: not loaded yet, or not readable.
    stamp: Option<Stamp>,
    entries: Entries,
    skipped: usize,
    problem: Option<DatabaseProblem>,
    /// The answers given, and for those that depend on response files the generation of the files.
    answers: FxHashMap<PathBuf, (Option<u64>, Option<FileCommand>)>,
}

/// The entries, the first for each file only.
#[derive(Debug, Default)]
struct Entries {
    list: Vec<Entry>,
    by_path: FxHashMap<Arc<Path>, usize>,
    /// The entries by their real paths; made when a file is not found as spelled.
    by_real_path: Option<FxHashMap<PathBuf, usize>>,
    /// The entries in order of their paths, so that a folder's lie together; made for the same reason.
    order: Option<Vec<usize>>,
}

#[derive(Debug)]
struct Entry {
    file: Arc<Path>,
    /// Where its object is in the database, in bytes.
    place: Range<u64>,
}

impl Database {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            stamp: None,
            entries: Entries::default(),
            skipped: 0,
            problem: None,
            answers: FxHashMap::default(),
        }
    }

    pub(super) fn state(&self) -> DatabaseState {
        DatabaseState {
            path: self.path.to_path_buf(),
            files: self.entries.list.len(),
            skipped: self.skipped,
            problem: self.problem.clone(),
        }
    }

    pub(super) fn command(&mut self, file: &Path, files: &dyn Files) -> Option<FileCommand> {
        for _ in 0..MAX_ATTEMPTS {
            self.refresh(files);
            let generation = files.generation();
            if let Some((made_at, answer)) = self.answers.get(file)
                && made_at.is_none_or(|made_at| made_at == generation)
            {
                return answer.clone();
            }
            let (index, inferred) = match self.entries.of_file(file, files) {
                Some(index) => (index, false),
                None => (self.entries.nearest(file)?, true),
            };
            let Ok(command) = self.read_command(index, files) else {
                // Rewritten since it was loaded.
                self.stamp = None;
                continue;
            };
            let of_files =
                !command.response_files.is_empty() || !command.unread_response_files.is_empty();
            let answer = Some(FileCommand {
                command: Arc::new(command),
                database: Arc::clone(&self.path),
                entry: Arc::clone(&self.entries.list[index].file),
                inferred,
            });
            if self.answers.len() >= MAX_ANSWERS {
                self.answers.clear();
            }
            self.answers.insert(
                file.to_owned(),
                (of_files.then_some(generation), answer.clone()),
            );
            return answer;
        }
        None
    }

    /// Loads the file if it is not what was loaded.
    fn refresh(&mut self, files: &dyn Files) {
        let stamp = stamp(files, &self.path);
        if stamp.is_some() && stamp == self.stamp {
            return;
        }
        self.entries = Entries::default();
        self.answers.clear();
        self.skipped = 0;
        self.problem = None;
        // Known to be loaded once it is: who asks may be stopped in between.
        self.stamp = None;
        let loaded = read_whole(files, &self.path)
            .map_err(|message| DatabaseProblem { line: 0, message })
            .and_then(|bytes| parse(&bytes, &self.path));
        match loaded {
            Ok((entries, skipped)) => {
                self.entries = entries;
                self.skipped = skipped;
            }
            Err(problem) => self.problem = Some(problem),
        }
        self.stamp = stamp;
    }

    /// Reads the command of an entry, if the file is still the one that was loaded.
    fn read_command(&self, index: usize, files: &dyn Files) -> Result<Command, Outdated> {
        let place = self.entries.list[index].place.clone();
        let bytes = files.bytes(&self.path, place).map_err(|_| Outdated)?;
        // Read first: of what is written between the two the stamp tells.
        if stamp(files, &self.path) != self.stamp {
            return Err(Outdated);
        }
        let raw: WholeEntry = serde_json::from_slice(&bytes).map_err(|_| Outdated)?;
        let arguments = match (raw.arguments, raw.command) {
            (Some(arguments), _) => arguments,
            (None, Some(command)) => split_command(&command),
            (None, None) => return Err(Outdated),
        };
        let directory = folder_of_entry(&self.path, raw.directory.as_deref());
        Ok(Command::read(&arguments, &directory, files))
    }
}

/// The database is no longer what was loaded.
struct Outdated;

impl Entries {
    fn of_file(&mut self, file: &Path, files: &dyn Files) -> Option<usize> {
        if let Some(&index) = self.by_path.get(file) {
            return Some(index);
        }
        if self.list.is_empty() {
            return None;
        }
        let mut folders = RealFolders::default();
        let real = folders.real_path(file, files)?;
        let list = &self.list;
        let by_real_path = self.by_real_path.get_or_insert_with(|| {
            let mut map = FxHashMap::default();
            for (index, entry) in list.iter().enumerate() {
                if let Some(real) = folders.real_path(&entry.file, files) {
                    map.entry(real).or_insert(index);
                }
            }
            map
        });
        by_real_path.get(&real).copied()
    }

    /// The entry whose command suits a file that has none.
    fn nearest(&mut self, file: &Path) -> Option<usize> {
        let list = &self.list;
        let order = self.order.get_or_insert_with(|| {
            let mut order: Vec<usize> = (0..list.len()).collect();
            order.sort_by(|&one, &other| folders_first(&list[one].file, &list[other].file));
            order
        });
        let folder = file.parent()?;
        let candidates = folder.ancestors().map(|above| under(list, order, above));
        let candidates = candidates.into_iter().find(|under| !under.is_empty())?;
        let rank = |index: usize| {
            let candidate: &Path = &list[index].file;
            let same_folder = candidate.parent() == Some(folder);
            let same_stem = candidate.file_stem() == file.file_stem();
            let fit = fit(language(file), language(candidate));
            (Reverse((same_folder, fit, same_stem)), index)
        };
        candidates.iter().copied().min_by_key(|&index| rank(index))
    }
}

/// The entries, of those in `order`, that lie under a folder at any depth.
fn under<'a>(list: &[Entry], order: &'a [usize], folder: &Path) -> &'a [usize] {
    let start = order.partition_point(|&index| folders_first(&list[index].file, folder).is_lt());
    let rest = &order[start..];
    let folder = folder.as_os_str().as_encoded_bytes();
    let end = rest.partition_point(|&index| {
        let path = list[index].file.as_os_str().as_encoded_bytes();
        path.strip_prefix(folder).is_some_and(|inner| {
            folder.last() == Some(&SEPARATOR) || inner.first() == Some(&SEPARATOR)
        })
    });
    &rest[..end]
}

const SEPARATOR: u8 = MAIN_SEPARATOR as u8;

/// An order in which what lies under a folder follows it at once: the separator is the least byte. (Paths'
/// own order has this property too and takes many times as long.)
fn folders_first(one: &Path, other: &Path) -> std::cmp::Ordering {
    let key = |byte: &u8| if *byte == SEPARATOR { 0 } else { *byte };
    let one = one.as_os_str().as_encoded_bytes();
    let other = other.as_os_str().as_encoded_bytes();
    one.iter().map(key).cmp(other.iter().map(key))
}

/// The language that a file's extension tells; None where several may use it.
fn language(file: &Path) -> Option<&'static str> {
    Some(match file.extension()?.to_str()? {
        "cu" | "cuh" => "cuda",
        "hip" => "hip",
        "cl" | "clh" | "opencl" => "opencl",
        "c" => "c",
        "cc" | "cpp" | "cxx" | "c++" | "C" | "hh" | "hpp" | "hxx" => "c++",
        _ => return None,
    })
}

/// How well a command for the one language serves the other.
fn fit(wanted: Option<&str>, candidate: Option<&str>) -> u8 {
    match (wanted, candidate) {
        (Some(one), Some(other)) if one == other => 2,
        (Some(_), Some(_)) => 0,
        _ => 1,
    }
}

/// Real paths, with each folder asked for once.
#[derive(Default)]
struct RealFolders {
    known: FxHashMap<PathBuf, Option<PathBuf>>,
}

impl RealFolders {
    /// The path with its links followed. The file need not exist, its folder must.
    fn real_path(&mut self, file: &Path, files: &dyn Files) -> Option<PathBuf> {
        let folder = file.parent()?;
        if is_link(file, folder, files)
            && let Some(real) = files.real(file)
        {
            return Some(real);
        }
        if !self.known.contains_key(folder) {
            self.known.insert(folder.to_owned(), files.real(folder));
        }
        Some(self.known.get(folder)?.as_ref()?.join(file.file_name()?))
    }
}

fn is_link(file: &Path, folder: &Path, files: &dyn Files) -> bool {
    let entries = files.list(folder);
    let at = entries.binary_search_by(|entry| entry.path.as_path().cmp(file));
    at.is_ok_and(|at| entries[at].kind == EntryKind::Link)
}

/// The stamp by which a change of the file is noticed.
fn stamp(files: &dyn Files, path: &Path) -> Option<Stamp> {
    files.stamp(path).filter(|stamp| stamp.modified.is_some())
}

fn read_whole(files: &dyn Files, path: &Path) -> Result<Vec<u8>, String> {
    let bytes = files
        .bytes(path, 0..MAX_BYTES + 1)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("is larger than 1 GiB and is not read".to_owned());
    }
    Ok(bytes)
}

/// The entries of a database, and how many were left out.
fn parse(bytes: &[u8], path: &Path) -> Result<(Entries, usize), DatabaseProblem> {
    let mut cursor = Cursor { bytes, at: 0 };
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        cursor.at = 3;
    }
    if cursor.symbol() != Some(b'[') {
        return Err(cursor.problem("expected `[`, the start of the list of commands"));
    }
    cursor.at += 1;
    let mut entries = Entries::default();
    let mut skipped = 0;
    // One list of commands has few folders and many files.
    let mut folders: FxHashMap<String, PathBuf> = FxHashMap::default();
    if cursor.symbol() == Some(b']') {
        cursor.at += 1;
    } else {
        loop {
            cursor.symbol();
            let start = cursor.at;
            match cursor.entry()? {
                Some(entry) => {
                    let folder = match entry
                        .directory
                        .as_deref()
                        .and_then(|name| folders.get(name))
                    {
                        Some(folder) => folder,
                        None => {
                            let name = entry.directory.as_deref().unwrap_or_default().to_owned();
                            let folder = folder_of_entry(path, entry.directory.as_deref());
                            folders.entry(name).or_insert(folder)
                        }
                    };
                    let file: Arc<Path> = absolute(folder, Path::new(&*entry.file)).into();
                    entries.by_path.entry(Arc::clone(&file)).or_insert_with(|| {
                        let place = start as u64..cursor.at as u64;
                        entries.list.push(Entry { file, place });
                        entries.list.len() - 1
                    });
                }
                None => skipped += 1,
            }
            match cursor.symbol() {
                Some(b',') => cursor.at += 1,
                Some(b']') => {
                    cursor.at += 1;
                    break;
                }
                Some(_) => return Err(cursor.problem("expected `,` or `]` after an entry")),
                None => return Err(cursor.problem("the file ends before the list does")),
            }
        }
    }
    match cursor.symbol() {
        None => Ok((entries, skipped)),
        Some(_) => Err(cursor.problem("something follows the list of commands")),
    }
}

fn folder_of_entry(database: &Path, directory: Option<&str>) -> PathBuf {
    let base = database.parent().unwrap_or(Path::new(""));
    match directory {
        Some(directory) => absolute(base, Path::new(directory)),
        None => normalise(base),
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next byte that is no white space.
    fn symbol(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Reads one element of the list. None: it is JSON, but no entry.
    fn entry(&mut self) -> Result<Option<NamedEntry<'a>>, DatabaseProblem> {
        let rest = &self.bytes[self.at..];
        let mut json = serde_json::Deserializer::from_slice(rest);
        if let Ok(entry) = NamedEntry::deserialize(&mut json) {
            self.at += json.into_iter::<IgnoredAny>().byte_offset();
            let complete =
                !entry.file.is_empty() && (entry.arguments.is_some() || entry.command.is_some());
            return Ok(complete.then_some(entry));
        }
        let mut json = serde_json::Deserializer::from_slice(rest);
        match IgnoredAny::deserialize(&mut json) {
            Ok(_) => {
                self.at += json.into_iter::<IgnoredAny>().byte_offset();
                Ok(None)
            }
            Err(error) => {
                // The message ends with a place that counts from the entry's start.
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default();
                let line = self.line() + error.line().saturating_sub(1);
                Err(DatabaseProblem {
                    line,
                    message: message.to_owned(),
                })
            }
        }
    }

    fn line(&self) -> usize {
        self.bytes[..self.at].split(|&byte| byte == b'\n').count()
    }

    fn problem(&self, message: &str) -> DatabaseProblem {
        DatabaseProblem {
            line: self.line(),
            message: message.to_owned(),
        }
    }
}

/// An entry as far as it is read at first.
#[derive(Deserialize)]
struct NamedEntry<'a> {
    #[serde(borrow)]
    directory: Option<Cow<'a, str>>,
    #[serde(borrow)]
    file: Cow<'a, str>,
    command: Option<Text>,
    arguments: Option<Texts>,
}

#[derive(Deserialize)]
struct WholeEntry {
    directory: Option<String>,
    command: Option<String>,
    arguments: Option<Vec<String>>,
}

/// A string of which only that it is one matters.
struct Text;

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Check;
        impl Visitor<'_> for Check {
            type Value = Text;
            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("a string")
            }
            fn visit_str<E>(self, _: &str) -> Result<Text, E> {
                Ok(Text)
            }
        }
        deserializer.deserialize_str(Check)
    }
}

/// A list of strings that is not empty.
struct Texts;

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Check;
        impl<'de> Visitor<'de> for Check {
            type Value = Texts;
            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("a list of strings")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut length = 0_usize;
                while list.next_element::<Text>()?.is_some() {
                    length += 1;
                }
                if length == 0 {
                    Err(A::Error::custom("an empty command"))
                } else {
                    Ok(Texts)
                }
            }
        }
        deserializer.deserialize_seq(Check)
    }
}
