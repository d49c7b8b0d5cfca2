//! The database: the files and folders that answers depend on, as inputs, and the queries that are derived of them.
//!
//! In: [`Files`], which alone read. Out: [`Queries`], under which queries are asked; each is computed once and again only
//! where something that it asked for has changed. A file that does not exist is an input too: who asked for it is computed
//! again when it appears.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dashmap::DashMap;
use salsa::{Durability, Setter as _};
use warplens_base::{Entry, Files, SourceFile};
use warplens_syntax::stop;

use crate::stores::Stores;

/// What queries are given.
#[salsa::db]
pub(crate) trait Db: salsa::Database {
    fn inputs(&self) -> &Inputs;

    /// What is kept by content beside it.
    fn stores(&self) -> &Stores;

    /// The files, through queries.
    fn files(&self) -> &dyn Files;
}

/// What is no one file's.
#[salsa::input(debug)]
pub(crate) struct World {
    /// The folders of the workspace.
    #[returns(ref)]
    pub(crate) roots: Vec<PathBuf>,
    /// Where includes may lead besides; none where they may lead everywhere.
    #[returns(ref)]
    pub(crate) confined: Option<Vec<PathBuf>>,
    /// Grows where it may have changed which files there are: who looked for one and did not read it depends on that.
    #[returns(copy)]
    existence: u64,
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
    disk: Disk,
    world: OnceLock<World>,
    files: DashMap<PathBuf, File>,
    folders: DashMap<PathBuf, Folder>,
}

/// Where files are read from.
pub(crate) type Disk = Arc<dyn Files + Send + Sync>;

/// What is no one file's.
pub(crate) fn world(db: &dyn Db) -> World {
    let world = db.inputs().world.get();
    *world.expect("made with the database")
}

/// The file of a path. A query that asks for its text depends on it from then on.
pub(crate) fn file(db: &dyn Db, path: &Path) -> File {
    let inputs = db.inputs();
    if let Some(known) = inputs.files.get(path) {
        return *known;
    }
    let version = inputs.version(path);
    let known = inputs.files.entry(path.to_owned());
    *known.or_insert_with(|| {
        let durability = if inputs.disk.is_open(path) {
            Durability::LOW
        } else {
            Durability::HIGH
        };
        let file = File::builder(path.to_owned(), version);
        file.durability(durability).new(db)
    })
}

/// The folder of a path.
pub(crate) fn folder(db: &dyn Db, path: &Path) -> Folder {
    let inputs = db.inputs();
    if let Some(known) = inputs.folders.get(path) {
        return *known;
    }
    let entries = inputs.disk.list(path);
    let known = inputs.folders.entry(path.to_owned());
    *known.or_insert_with(|| {
        let folder = Folder::builder(path.to_owned(), entries);
        folder.durability(Durability::HIGH).new(db)
    })
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
    stores: Arc<Stores>,
}

impl Database {
    fn new(disk: Disk, stores: Arc<Stores>, told: Option<Told>) -> Database {
        let existence = disk.existence();
        let inputs = Inputs {
            disk,
            world: OnceLock::new(),
            files: DashMap::new(),
            folders: DashMap::new(),
        };
        let database = Database {
            storage: salsa::Storage::new(told),
            inputs: Arc::new(inputs),
            stores,
        };
        let stores = &database.stores;
        let world = World::builder(stores.roots(), stores.confined(), existence);
        let world = world.durability(Durability::HIGH).new(&database);
        database.inputs.world.get_or_init(|| world);
        database
    }

    /// The inputs are what the files are. Changing them waits for who is asking, and makes him ask again.
    fn take_in(&mut self, since: u64) {
        let inputs = Arc::clone(&self.inputs);
        // An editor changes one file at each keystroke, and most of those that were read never change.
        let changed: Vec<File> = match inputs.disk.changed_since(since) {
            Some(paths) => {
                let files = paths.iter().filter_map(|path| inputs.files.get(path));
                files.map(|file| *file).collect()
            }
            None => inputs.files.iter().map(|file| *file).collect(),
        };
        for file in changed {
            let version = inputs.version(file.path(self));
            if version != file.version(self) {
                let file = file.set_version(self);
                file.with_durability(Durability::LOW).to(version);
            }
        }
        let existence = inputs.disk.existence();
        let world = world(self);
        if existence == world.existence(self) {
            return;
        }
        world.set_existence(self).to(existence);
        let folders: Vec<Folder> = inputs.folders.iter().map(|folder| *folder).collect();
        for folder in folders {
            let entries = inputs.disk.list(folder.path(self));
            if entries != *folder.entries(self) {
                folder.set_entries(self).to(entries);
            }
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

    fn stores(&self) -> &Stores {
        &self.stores
    }

    fn files(&self) -> &dyn Files {
        self
    }
}

/// The files as a query sees them: it depends on what it reads, and where it asks the disk for anything else, on which files there
/// are.
impl Files for Database {
    fn behind(&self) -> &dyn Files {
        self.existence();
        &*self.inputs.disk
    }

    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        text(self, file(self, path))
    }

    fn list(&self, path: &Path) -> Arc<[Entry]> {
        Arc::clone(folder(self, path).entries(self))
    }

    fn existence(&self) -> u64 {
        world(self).existence(self)
    }
}

/// The database of a project.
pub(crate) struct Queries {
    /// The handle that inputs are changed with, and what it has taken in.
    whole: Mutex<(Database, TakenIn)>,
    /// A thread waits to change them.
    changing: Arc<AtomicBool>,
}

/// The generation of the files and the changes of the workspace that the inputs are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TakenIn {
    files: u64,
    workspace: u64,
}

impl TakenIn {
    fn now(disk: &dyn Files, stores: &Stores) -> TakenIn {
        TakenIn {
            files: disk.generation(),
            workspace: stores.changes(),
        }
    }
}

impl Queries {
    /// A database of these files; nothing is read yet. `told` is called with what is computed.
    pub(crate) fn new(disk: Disk, stores: Arc<Stores>, told: Option<Told>) -> Queries {
        let now = TakenIn::now(&*disk, &stores);
        Queries {
            whole: Mutex::new((Database::new(disk, stores, told), now)),
            changing: Arc::default(),
        }
    }

    /// Lets go of all inputs and of what was derived of them. Who is asking meanwhile keeps his.
    pub(crate) fn forget(&self) {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let disk = Arc::clone(&whole.0.inputs.disk);
        let stores = Arc::clone(&whole.0.stores);
        let now = TakenIn::now(&*disk, &stores);
        *whole = (Database::new(disk, stores, None), now);
    }

    /// Asks queries of the files as they are. Where files change meanwhile it is asked again.
    pub(crate) fn ask<T>(&self, ask: impl Fn(&dyn Db) -> T) -> T {
        loop {
            let database = self.current();
            let asked = AssertUnwindSafe(|| ask(&database));
            // Also in the midst of a query.
            let asked = stop::until(&self.changing, || salsa::Cancelled::catch(asked));
            if let Some(Ok(answer)) = asked {
                return answer;
            }
        }
    }

    /// A handle, once the inputs are what the files are.
    fn current(&self) -> Database {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let (database, of) = &mut *whole;
        let now = TakenIn::now(&*database.inputs.disk, &database.stores);
        if now == *of {
            return database.clone();
        }
        self.changing.store(true, Ordering::Relaxed);
        if now.files != of.files {
            database.take_in(of.files);
        }
        if now.workspace != of.workspace {
            let world = world(database);
            let (roots, confined) = (database.stores.roots(), database.stores.confined());
            world.set_roots(database).to(roots);
            world.set_confined(database).to(confined);
        }
        *of = now;
        self.changing.store(false, Ordering::Relaxed);
        database.clone()
    }
}

/// Is called with what is computed.
pub(crate) type Told = Box<dyn Fn(salsa::Event) + Send + Sync>;
