//! `compile_commands.json`: which command compiles a file.

mod database;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use crate::command::Command;
use crate::files::{EntryKind, Files};
use crate::paths::normalise;
use database::Database;

/// The compilation databases around the files that are asked for.
///
/// Databases are found, loaded and re-read as needed; nothing happens before the first question.
#[derive(Debug, Default)]
pub struct CompileCommands {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    databases: FxHashMap<PathBuf, Database>,
    /// The database in each folder looked into.
    found: FxHashMap<PathBuf, Option<PathBuf>>,
    /// [`Files::existence`] when these were looked for.
    existence: u64,
}

/// The command for one file.
#[derive(Clone, Debug)]
pub struct FileCommand {
    /// What the command line says.
    pub command: Arc<Command>,
    /// The database that it is in.
    pub database: Arc<Path>,
    /// The file that the command is for: another one where `inferred`.
    pub entry: Arc<Path>,
    /// Whether the file has no entry, and the command is that of the nearest file that has one.
    pub inferred: bool,
}

/// What became of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseState {
    /// Its file.
    pub path: PathBuf,
    /// The files that it has a command for.
    pub files: usize,
    /// Entries without a file or a command, or of the wrong type: they are left out.
    pub skipped: usize,
    /// Why it could not be read: then it has no commands.
    pub problem: Option<DatabaseProblem>,
}

/// Why a database could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseProblem {
    /// The line, from 1; 0 where the file as a whole is unreadable.
    pub line: usize,
    /// What is wrong, in one line.
    pub message: String,
}

const MAX_FOLDERS: usize = 10_000;

/// The name that all tools agree on.
const FILE_NAME: &str = "compile_commands.json";

impl CompileCommands {
    /// No databases known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The command that compiles `file`, an absolute path. `files` serves the response files.
    ///
    /// The database is the first in the file's folder and the folders above it, each with its build folders:
    /// `build*`, `out*` and `cmake-build-*`, and the folders in those (a preset's); of several the one
    /// written last. The file's entry is found by its path as spelled and by its real path; of several
    /// entries the first counts. Without an entry the file gets the command of another one: of its folder if
    /// there is one, else with most leading folders in common; among those of the same language and then of
    /// the same name but for the extension.
    pub fn command(&self, file: &Path, files: &dyn Files) -> Option<FileCommand> {
        let file = normalise(file);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let existence = files.existence();
        if state.existence != existence {
            state.existence = existence;
            state.found.clear();
        }
        let path = state.database_of(files, file.parent()?).or_else(|| {
            // Opened through a link from somewhere else.
            let real = files.real(&file)?;
            state.database_of(files, real.parent()?)
        })?;
        let database = state
            .databases
            .entry(path)
            .or_insert_with_key(|path| Database::new(path));
        database.command(&file, files)
    }

    /// The databases loaded so far, by path.
    pub fn databases(&self) -> Vec<DatabaseState> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = state.databases.values().map(Database::state).collect();
        all.sort_by(|one, other| one.path.cmp(&other.path));
        all
    }
}

impl State {
    fn database_of(&mut self, files: &dyn Files, folder: &Path) -> Option<PathBuf> {
        folder
            .ancestors()
            .find_map(|folder| self.database_in(files, folder))
    }

    fn database_in(&mut self, files: &dyn Files, folder: &Path) -> Option<PathBuf> {
        if let Some(found) = self.found.get(folder) {
            return found.clone();
        }
        let found = database_at(files, folder);
        if self.found.len() >= MAX_FOLDERS {
            self.found.clear();
        }
        self.found.insert(folder.to_owned(), found.clone());
        found
    }
}

/// The database in a folder or in its build folders.
fn database_at(files: &dyn Files, folder: &Path) -> Option<PathBuf> {
    let direct = folder.join(FILE_NAME);
    if files.stamp(&direct).is_some() {
        return Some(direct);
    }
    let builds: Vec<PathBuf> = folders_in(files, folder, |name| {
        name.starts_with("build") || name.starts_with("out") || name.starts_with("cmake-build-")
    });
    newest(files, &builds).or_else(|| {
        // A preset's folder: build/release, and out/build/x64-Debug as Visual Studio has it.
        let inner: Vec<PathBuf> = builds
            .iter()
            .flat_map(|build| folders_in(files, build, |_| true))
            .collect();
        newest(files, &inner).or_else(|| {
            let nested = inner.iter().filter(|inner| inner.ends_with("out/build"));
            newest(
                files,
                &nested
                    .flat_map(|build| folders_in(files, build, |_| true))
                    .collect::<Vec<_>>(),
            )
        })
    })
}

/// The folders in a folder whose names `wanted` takes, in order of their names.
fn folders_in(files: &dyn Files, folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = files.list(folder);
    let folders = entries.iter().filter(|entry| {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        // A link to a folder is a folder here.
        entry.kind != EntryKind::File && name.is_some_and(&wanted)
    });
    folders.map(|entry| entry.path.clone()).collect()
}

/// The database written last among those that lie directly in these folders; of equals the first.
fn newest(files: &dyn Files, folders: &[PathBuf]) -> Option<PathBuf> {
    let mut best: Option<(SystemTime, PathBuf)> = None;
    for folder in folders {
        let path = folder.join(FILE_NAME);
        let Some(stamp) = files.stamp(&path) else {
            continue;
        };
        let modified = stamp.modified.unwrap_or(SystemTime::UNIX_EPOCH);
        if best.as_ref().is_none_or(|(newest, _)| modified > *newest) {
            best = Some((modified, path));
        }
    }
    best.map(|(_, path)| path)
}
