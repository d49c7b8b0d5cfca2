//! The database: the files and folders that answers depend on, as inputs, and the queries that are derived of them.
//!
//! In: [`Files`], which alone read. Out: [`Queries`], under which queries are asked; each is computed once and again only
//! where something that it asked for has changed. A file that does not exist is an input too: who asked for it is computed
//! again when it appears.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use salsa::Setter as _;
use warplens_base::{Entry, Files, SourceFile};

/// What queries are given.
#[salsa::db]
pub(crate) trait Db: salsa::Database {
    fn inputs(&self) -> &Inputs;
}

/// A file, whether it exists or not.
#[salsa::input(debug)]
pub(crate) struct File {
    /// Absolute.
    #[returns(ref)]
    pub(crate) path: PathBuf,
    /// A hash of its text; `None` where there is none.
    #[returns(copy)]
    version: Option<u64>,
}

/// A folder, whether it exists or not.
#[salsa::input(debug)]
pub(crate) struct Folder {
    /// Absolute.
    #[returns(ref)]
    pub(crate) path: PathBuf,
    /// What lies in it.
    #[returns(ref)]
    pub(crate) entries: Arc<[Entry]>,
}

/// The inputs that were asked for, and where they are read from.
pub(crate) struct Inputs {
    disk: Arc<dyn Files>,
    files: DashMap<PathBuf, File>,
    folders: DashMap<PathBuf, Folder>,
}

/// The file of a path. Whoever asks for its text depends on it from then on.
pub(crate) fn file(db: &dyn Db, path: &Path) -> File {
    let inputs = db.inputs();
    if let Some(known) = inputs.files.get(path) {
        return *known;
    }
    let version = inputs.version(path);
    let known = inputs.files.entry(path.to_owned());
    *known.or_insert_with(|| File::new(db, path.to_owned(), version))
}

/// The folder of a path.
pub(crate) fn folder(db: &dyn Db, path: &Path) -> Folder {
    let inputs = db.inputs();
    if let Some(known) = inputs.folders.get(path) {
        return *known;
    }
    let entries = inputs.disk.list(path);
    let known = inputs.folders.entry(path.to_owned());
    *known.or_insert_with(|| Folder::new(db, path.to_owned(), entries))
}

/// The text of a file. Texts are not compared: what is derived of them is.
#[salsa::tracked(returns(clone), no_eq, lru = 256)]
pub(crate) fn text(db: &dyn Db, of: File) -> Option<Arc<SourceFile>> {
    of.version(db)?;
    db.inputs().disk.read(of.path(db))
}

impl Inputs {
    fn version(&self, path: &Path) -> Option<u64> {
        self.disk.read(path).map(|file| file.hash)
    }
}

/// One of any number of handles of one database.
#[salsa::db]
#[derive(Clone)]
pub(crate) struct Database {
    storage: salsa::Storage<Self>,
    inputs: Arc<Inputs>,
}

impl Database {
    fn new(disk: Arc<dyn Files>, told: Option<Told>) -> Database {
        let inputs = Inputs {
            disk,
            files: DashMap::new(),
            folders: DashMap::new(),
        };
        Database {
            storage: salsa::Storage::new(told),
            inputs: Arc::new(inputs),
        }
    }
}

#[salsa::db]
impl salsa::Database for Database {}

#[salsa::db]
impl Db for Database {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }
}

/// The database of a project.
pub(crate) struct Queries {
    /// The handle that inputs are changed with, and the generation of the files that they are of.
    whole: Mutex<(Database, u64)>,
}

impl Queries {
    /// A database of these files; nothing is read yet. `told` hears of what is computed.
    pub(crate) fn new(disk: Arc<dyn Files>, told: Option<Told>) -> Queries {
        let generation = disk.generation();
        Queries {
            whole: Mutex::new((Database::new(disk, told), generation)),
        }
    }

    /// Lets go of all inputs and of what was derived of them. Who is asking meanwhile keeps his.
    pub(crate) fn forget(&self) {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let disk = Arc::clone(&whole.0.inputs.disk);
        let generation = disk.generation();
        *whole = (Database::new(disk, None), generation);
    }

    /// Asks queries of the files as they are. Where files change meanwhile it is asked again.
    pub(crate) fn ask<T>(&self, ask: impl Fn(&dyn Db) -> T) -> T {
        loop {
            let database = self.current();
            let asked = AssertUnwindSafe(|| ask(&database));
            if let Ok(answer) = salsa::Cancelled::catch(asked) {
                return answer;
            }
        }
    }

    /// A handle, once the inputs are what the files are. Changing them waits for who is asking, and makes him ask again.
    fn current(&self) -> Database {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let (database, of) = &mut *whole;
        let generation = database.inputs.disk.generation();
        if generation != *of {
            let inputs = Arc::clone(&database.inputs);
            let files: Vec<File> = inputs.files.iter().map(|file| *file).collect();
            for file in files {
                let version = inputs.version(file.path(database));
                if version != file.version(database) {
                    file.set_version(database).to(version);
                }
            }
            let folders: Vec<Folder> = inputs.folders.iter().map(|folder| *folder).collect();
            for folder in folders {
                let entries = inputs.disk.list(folder.path(database));
                if entries != *folder.entries(database) {
                    folder.set_entries(database).to(entries);
                }
            }
            *of = generation;
        }
        database.clone()
    }
}

/// Hears of what is computed.
pub(crate) type Told = Box<dyn Fn(salsa::Event) + Send + Sync>;
