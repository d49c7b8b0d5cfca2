//! Query family: the command that compiles a file.
//!
//! In: a path. Out: its command in the nearest `compile_commands.json`, or that of the file most like it; where there is none, the
//! command of a Makefile beside the file or above it, or one of the macros that `setup.py` or CMake define. What holds: it is looked for again where it may have changed which files there
//! are, as the caller says ([`warplens_base::Files::look_again`]); nothing is executed.

use std::path::Path;
use std::sync::Arc;

use warplens_base::{Command, Makefile, build_macros};
use warplens_syntax::Language;

use crate::database::{Db, File, file, text, world};
use crate::look::Look;

/// What a Makefile is called, in the order in which make looks for it.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// Bytes of a Makefile.
const LARGEST: usize = 1 << 20;
/// Folders above a file in which its Makefile may be.
const MOST_FOLDERS: usize = 3;
/// The same of what builds a whole project.
const MOST_OF_PROJECT: usize = 8;

/// The command that compiles a file, where a `compile_commands.json` or a Makefile has one.
#[salsa::tracked(returns(clone))]
fn command(db: &dyn Db, of: File) -> Option<Arc<Command>> {
    db.files().existence();
    let found = db.stores().commands.command(of.path(db), db.files());
    let found = found.map(|found| found.command);
    found
        .or_else(|| of_makefile(db, of.path(db)))
        .or_else(|| of_project(db, of.path(db)))
}

/// The same by the nearest Makefile that compiles something. The architecture that it names is often one of years ago, which says
/// nothing of the GPU that the program is to run on: it is left out.
fn of_makefile(db: &dyn Db, path: &Path) -> Option<Arc<Command>> {
    let roots = world(db).roots(db);
    let within = |folder: &&Path| roots.iter().any(|root| folder.starts_with(root));
    let beside = path.parent()?;
    let above = beside.ancestors().skip(1).take_while(within);
    let mut folders = std::iter::once(beside).chain(above).take(MOST_FOLDERS);
    folders.find_map(|folder| {
        let source = path.strip_prefix(folder).ok()?.to_str()?;
        let words = MAKEFILES.iter().find_map(|name| {
            let makefile = makefile(db, file(db, &folder.join(name)))?;
            makefile.compiler(source)
        })?;
        let mut command = Command::read(&words, folder, db.files());
        command.architectures.clear();
        Some(Arc::new(command))
    })
}

/// The macros that the project's own build defines for a CUDA file or a header, of all folders above it.
fn of_project(db: &dyn Db, path: &Path) -> Option<Arc<Command>> {
    // Conditions are decided for CUDA.
    let language = Language::from_path(path);
    if language.is_some_and(|language| language != Language::Cuda) {
        return None;
    }
    let roots = world(db).roots(db);
    let within = |folder: &&Path| roots.iter().any(|root| folder.starts_with(root));
    let folders: Vec<&Path> = path.ancestors().skip(1).take_while(within).collect();
    let mut words: Vec<String> = Vec::new();
    for folder in folders.iter().take(MOST_OF_PROJECT).rev() {
        for name in ["CMakeLists.txt", "setup.py"] {
            words.extend_from_slice(&macros(db, file(db, &folder.join(name))));
        }
    }
    if words.is_empty() {
        return None;
    }
    words.insert(0, "nvcc".to_owned());
    let mut command = Command::read(&words, folders.first()?, db.files());
    command.language = None;
    Some(Arc::new(command))
}

/// The macros that such a file defines.
#[salsa::tracked(returns(clone))]
fn macros(db: &dyn Db, of: File) -> Arc<[String]> {
    let Some(text) = text(db, of).filter(|text| text.text.len() <= LARGEST) else {
        return Arc::default();
    };
    let found = if of.path(db).ends_with("setup.py") {
        build_macros::in_setup(&text.text)
    } else {
        build_macros::in_cmake(&text.text)
    };
    found.into()
}

/// What a Makefile says; `None` where there is none.
#[salsa::tracked(returns(clone))]
fn makefile(db: &dyn Db, of: File) -> Option<Arc<Makefile>> {
    let text = text(db, of).filter(|text| text.text.len() <= LARGEST)?;
    Some(Arc::new(Makefile::read(&text.text)))
}

impl Look<'_> {
    /// The command that compiles a file.
    pub(crate) fn command(&self, path: &Path) -> Option<Arc<Command>> {
        let path = std::path::absolute(path).ok()?;
        self.ask(|db| command(db, file(db, &path)))
    }
}
