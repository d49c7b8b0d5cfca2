//! What lies near a file: which files there launch, call, include or define something, by their words alone.
//!
//! In: the files as they are, the workspace's folders, a path and names. Out: paths, the nearest first. Everything here is a
//! query of the database ([`crate::database`]): an answer depends on nothing else, not on what was analysed before, nor on the
//! file's own text, and is computed again where what it asked for has changed. What is found is preprocessed and parsed like
//! any other text before it counts.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a query owns what it is asked under"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_base::{Bounds, EntryKind, normalise};
use warplens_host::LAUNCH_WORDS;
use warplens_syntax::Language;

use crate::database::{Db, File, Folder, file, folder, text, world};
use crate::kinds::is_header;
use crate::sources::names_sources;

mod textual;

pub(crate) use textual::offers;
use textual::{
    constants_of, defined, included, is_source, may_be_host, may_define, word_hash, words_of,
};

/// Folders above a file's own that are looked into for hosts and includers, and how deep below each.
const MOST_UP: usize = 3;
const DEEPEST: usize = 4;
/// Names in folders, files and their bytes that are looked at from one folder.
const MOST_ENTRIES: usize = 4_000;
const MOST_FILES: usize = 600;
const MOST_BYTES: usize = 16 << 20;
/// Sizes of files are told in blocks of this many bytes.
const BLOCK: usize = 1 << 12;
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

/// The host programs that have one of these words in them, of the nearest folder that holds some.
pub(crate) fn hosts(
    db: &dyn Db,
    path: &Path,
    words: &[&str],
    kinds: Kinds,
    roots: &[PathBuf],
) -> Arc<[PathBuf]> {
    (0..=MOST_UP)
        .map_while(|up| hosts_at(db, path, words, kinds, up, roots))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// Those of the folder that many above the file's own; `None` where that is not looked into.
pub(crate) fn hosts_at(
    db: &dyn Db,
    path: &Path,
    words: &[&str],
    kinds: Kinds,
    up: usize,
    roots: &[PathBuf],
) -> Option<Arc<[PathBuf]>> {
    if up > MOST_UP || kinds == Kinds::Callers && up > 2 {
        return None;
    }
    let at = folder(db, folder_above(path, up, roots)?);
    let wanted = words.iter().map(|word| word_hash(word)).collect();
    let depth = if up == 0 { 0 } else { DEEPEST };
    Some(hosts_below(db, path.to_owned(), at, depth, kinds, wanted))
}

/// The files that include this one by its name, of each folder looked into a source before a header, the nearest folder
/// first; and the line in each that does.
pub(crate) fn includers(db: &dyn Db, path: &Path, roots: &[PathBuf]) -> Vec<(PathBuf, String)> {
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    for up in 0..=MOST_UP {
        let Some(at) = folder_above(path, up, roots) else {
            break;
        };
        let depth = if up == 0 { 0 } else { DEEPEST };
        let below = includers_below(db, path.to_owned(), folder(db, at), depth);
        let mut new: Vec<_> = below
            .iter()
            .filter(|one| !found.contains(one))
            .cloned()
            .collect();
        new.sort_by_key(|(path, _)| is_header(path));
        found.append(&mut new);
    }
    found
}

/// The files that define these names. A name that the nearest folder defines more than once links nothing, but for a
/// constant that is the same everywhere.
pub(crate) fn defining(
    db: &dyn Db,
    path: &Path,
    names: &[String],
    roots: &[PathBuf],
) -> Vec<PathBuf> {
    let mut known: BTreeMap<&str, Defined> = BTreeMap::new();
    let mut open: Vec<String> = names.to_vec();
    for level in levels(db, path, roots) {
        if open.is_empty() {
            break;
        }
        let found = definitions(db, path.to_owned(), level, open.as_slice().into());
        open.retain(|name| !found.contains_key(name));
        known.extend(
            found
                .iter()
                .map(|(name, defined)| (name.as_str(), *defined)),
        );
    }
    let mut linked: Vec<PathBuf> = Vec::new();
    for name in names {
        if let Some(Defined::In(only)) = known.get(name.as_str())
            && !linked.contains(only.path(db))
            && linked.len() < MOST_LINKED
        {
            linked.push(only.path(db).clone());
        }
    }
    linked
}

/// The folders that are looked through for what a file does not define.
pub(crate) fn around(db: &dyn Db, path: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let levels = levels(db, path, roots).into_iter().flatten();
    levels.map(|folder| folder.path(db).clone()).collect()
}

/// OpenCL files in a folder and below it.
pub(crate) fn opencl_below(db: &dyn Db, path: &Path) -> Vec<PathBuf> {
    let files = below(db, folder(db, path), DEEPEST).iter();
    let opencl = files.filter(|path| Language::from_path(path) == Some(Language::OpenCl));
    opencl.take(MOST_HOSTS).cloned().collect()
}

/// The folder of a file and those above it, each with its subfolders, the nearest first.
fn levels(db: &dyn Db, path: &Path, roots: &[PathBuf]) -> Vec<Vec<Folder>> {
    let up = (0..=LEVELS).map_while(|up| folder_above(path, up, roots));
    up.map(|at| {
        let whole = folder(db, at);
        let inner = &sources(db, whole).folders;
        let mut level = vec![whole];
        if inner.len() <= MOST_FOLDERS {
            level.extend(inner);
        }
        level
    })
    .collect()
}

/// The folder that many above a file's own, as long as that is in the workspace.
fn folder_above<'a>(path: &'a Path, up: usize, roots: &[PathBuf]) -> Option<&'a Path> {
    let folder = path.ancestors().nth(up + 1)?;
    let inside = up == 0 || roots.iter().any(|root| folder.starts_with(root));
    (inside && !folder.as_os_str().is_empty()).then_some(folder)
}

// ----- queries ---------------------------------------------------------------------------------

/// The source files and the folders of a folder, in the order of their names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sources {
    files: Vec<(EntryKind, PathBuf)>,
    folders: Vec<Folder>,
    /// Names in it.
    entries: usize,
}

#[salsa::tracked]
fn sources(db: &dyn Db, of: Folder) -> Sources {
    let mut found = Sources::default();
    for entry in of.entries(db).iter().take(MOST_ENTRIES) {
        found.entries += 1;
        match entry.kind {
            EntryKind::Folder if !entry.is_hidden() => {
                found.folders.push(folder(db, &entry.path));
            }
            EntryKind::File if is_source(&entry.path) => {
                found.files.push((entry.kind, entry.path.clone()));
            }
            EntryKind::Link if is_source(&entry.path) && leads_inside(db, of, &entry.path) => {
                found.files.push((entry.kind, entry.path.clone()));
            }
            _ => {}
        }
    }
    found
}

/// Whether a link of a folder leads into the workspace; without one, into the folder itself. What a project beside it launches is
/// not this one's.
fn leads_inside(db: &dyn Db, of: Folder, link: &Path) -> bool {
    let mut roots = world(db).roots(db).clone();
    if !roots.iter().any(|root| link.starts_with(root)) {
        roots.push(of.path(db).clone());
    }
    let files = db.files();
    Bounds::new(files, roots).hold(files, link)
}

/// The source files in a folder and so deep below it, level by level: what is cut off is far.
#[salsa::tracked]
fn below(db: &dyn Db, folder: Folder, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder];
    let mut left = MOST_ENTRIES;
    for _ in 0..=depth {
        let mut next = Vec::new();
        for folder in open {
            if left == 0 {
                break;
            }
            let sources = sources(db, folder);
            left = left.saturating_sub(sources.entries);
            found.extend(sources.files.iter().map(|(_, path)| path.clone()));
            next.extend(&sources.folders);
        }
        open = next;
    }
    found
}

/// How large a file is, in blocks: what is typed in it seldom changes that.
#[salsa::tracked(returns(copy))]
fn blocks(db: &dyn Db, of: File) -> usize {
    text(db, of).map_or(0, |file| file.text.len().div_ceil(BLOCK))
}

/// Whether a file launches or builds kernels.
#[salsa::tracked(returns(copy))]
fn launches(db: &dyn Db, of: File) -> bool {
    let launches = |text: &str| {
        let mut words = LAUNCH_WORDS.iter().chain(&WORDS);
        words.any(|word| text.contains(word)) || names_sources(text)
    };
    text(db, of).is_some_and(|file| launches(&file.text))
}

/// Whether a file includes one that launches or builds kernels, by a path from its own folder or from one above it.
#[salsa::tracked(returns(copy))]
fn includes_launches(db: &dyn Db, of: File) -> bool {
    let path: &Path = of.path(db);
    let roots = world(db).roots(db);
    let above: Vec<&Path> = (0..=MOST_UP)
        .map_while(|up| folder_above(path, up, roots))
        .collect();
    let Some(highest) = above.last() else {
        return false;
    };
    let named = above.iter().flat_map(|at| {
        let lines = includes(db, of).iter();
        lines.flat_map(|line| [at.join(line), at.join("include").join(line)])
    });
    let mut named = named.map(|path| normalise(&path));
    named.any(|path| path.starts_with(highest) && is_source(&path) && launches(db, file(db, &path)))
}

/// Hashes of a file's words, sorted.
#[salsa::tracked]
fn words(db: &dyn Db, of: File) -> Vec<u32> {
    text(db, of).map_or_else(Vec::new, |file| words_of(&file.text))
}

/// What a file's `#include "…"` lines name.
#[salsa::tracked]
fn includes(db: &dyn Db, of: File) -> Vec<String> {
    text(db, of).map_or_else(Vec::new, |file| included(&file.text))
}

/// A file's names with parentheses and a brace behind them.
#[salsa::tracked]
fn defines(db: &dyn Db, of: File) -> BTreeSet<String> {
    let file = text(db, of);
    file.map_or_else(BTreeSet::new, |file| {
        defined(&file.text).into_iter().collect()
    })
}

/// Constants of a file, and what each is.
#[salsa::tracked]
fn constants(db: &dyn Db, of: File) -> BTreeMap<String, String> {
    let file = text(db, of);
    file.map_or_else(BTreeMap::new, |file| {
        constants_of(&file.text).into_iter().collect()
    })
}

/// The host programs below a folder that have one of these words in them.
#[salsa::tracked(returns(clone))]
fn hosts_below(
    db: &dyn Db,
    own: PathBuf,
    folder: Folder,
    depth: usize,
    kinds: Kinds,
    wanted: Vec<u32>,
) -> Arc<[PathBuf]> {
    let mut found = Vec::new();
    let (mut read, mut bytes) = (0, 0);
    for path in below(db, folder, depth) {
        if *path == own || !may_be_host(path) {
            continue;
        }
        if found.len() >= MOST_HOSTS || read >= MOST_FILES || bytes >= MOST_BYTES {
            break;
        }
        let of = file(db, path);
        let size = BLOCK * blocks(db, of);
        if size > LARGEST {
            continue;
        }
        read += 1;
        bytes += size;
        let has = || {
            let words = words(db, of);
            wanted.iter().any(|word| words.binary_search(word).is_ok())
        };
        let may_launch = || launches(db, of) || includes_launches(db, of);
        if (kinds == Kinds::Callers || may_launch()) && has() {
            found.push(path.clone());
        }
    }
    found.into()
}

/// The files below a folder that include one by its name, and the line in each that does.
#[salsa::tracked(returns(clone))]
fn includers_below(
    db: &dyn Db,
    own: PathBuf,
    folder: Folder,
    depth: usize,
) -> Arc<[(PathBuf, String)]> {
    let Some(name) = own.file_name().and_then(|name| name.to_str()) else {
        return Arc::default();
    };
    let named = |line: &&String| line.rsplit(['/', '\\']).next() == Some(name);
    let others = below(db, folder, depth).iter().filter(|path| **path != own);
    others
        .flat_map(|path| {
            let lines = includes(db, file(db, path)).iter().filter(named);
            lines.map(|line| (path.clone(), line.clone()))
        })
        .collect()
}

/// Where some folders define a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defined {
    In(File),
    /// In several files, each in its own way.
    Unclear,
}

/// Where these folders define some names, the file itself apart; without those that they do not define. One question for all
/// names: a program calls hundreds.
#[salsa::tracked]
fn definitions(
    db: &dyn Db,
    own: PathBuf,
    folders: Vec<Folder>,
    names: Arc<[String]>,
) -> BTreeMap<String, Defined> {
    let wanted: FxHashSet<&String> = names.iter().collect();
    let mut all: BTreeMap<String, Defined> = BTreeMap::new();
    let mut another = |name: &String, of: File| {
        let known = all.entry(name.clone());
        known
            .and_modify(|known| *known = Defined::Unclear)
            .or_insert(Defined::In(of));
    };
    let mut values: FxHashMap<&str, &str> = FxHashMap::default();
    for folder in folders {
        let mut bytes = 0;
        let files = sources(db, folder).files.iter();
        let files = files
            .filter(|(kind, path)| *kind == EntryKind::File && *path != own && may_define(path));
        for (_, path) in files.take(MOST_DEFINING) {
            let of = file(db, path);
            bytes += BLOCK * blocks(db, of);
            if bytes > MOST_DEFINING_BYTES {
                break;
            }
            for name in defines(db, of).iter().filter(|name| wanted.contains(name)) {
                another(name, of);
            }
            for (name, value) in constants(db, of) {
                // A constant may be the same everywhere.
                if wanted.contains(name) && values.insert(name, value) != Some(value) {
                    another(name, of);
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use warplens_base::{NoFiles, OpenFiles};

    use super::*;
    use crate::database::Queries;
    use crate::stores::Stores;

    const KERNEL: &str = "/p/k.cu";
    const HOST: &str = "/p/host.cu";
    const LAUNCHES: &str = "#include \"k.h\"\nvoid run() { // once\n  scale<<<1, 64>>>(p);\n}\n";

    /// Files that are open, and the names of the queries that were computed.
    struct World {
        files: Arc<OpenFiles<NoFiles>>,
        queries: Queries,
        computed: Arc<Mutex<Vec<String>>>,
    }

    impl World {
        fn new(files: &[(&str, &str)]) -> World {
            let open = Arc::new(OpenFiles::new(NoFiles));
            for (path, text) in files {
                open.set(Path::new(path), *text);
            }
            let computed = Arc::new(Mutex::new(Vec::new()));
            let told = Arc::clone(&computed);
            let told = move |event: salsa::Event| {
                if let salsa::EventKind::WillExecute { database_key } = event.kind {
                    let name = format!("{database_key:?}");
                    let name = name.split('(').next().unwrap_or_default();
                    told.lock().unwrap().push(name.to_owned());
                }
            };
            World {
                queries: Queries::new(
                    open.clone(),
                    Arc::new(Stores::new(Vec::new())),
                    Some(Box::new(told)),
                ),
                files: open,
                computed,
            }
        }

        fn hosts(&self, path: &str) -> Vec<String> {
            let roots = [PathBuf::from("/p")];
            let found = self
                .queries
                .ask(|db| hosts(db, Path::new(path), &["scale"], Kinds::Hosts, &roots));
            found
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        }

        fn defining(&self, path: &str, name: &str) -> Vec<PathBuf> {
            let (roots, names) = ([PathBuf::from("/p")], [name.to_owned()]);
            self.queries
                .ask(|db| defining(db, Path::new(path), &names, &roots))
        }

        fn computed(&self) -> Vec<String> {
            let mut computed = std::mem::take(&mut *self.computed.lock().unwrap());
            computed.sort();
            computed
        }
    }

    #[test]
    fn what_is_typed_in_a_kernels_own_file_asks_nothing_again() {
        let world = World::new(&[
            (KERNEL, "__global__ void scale(float *p) {}"),
            (HOST, LAUNCHES),
        ]);
        assert_eq!(world.hosts(KERNEL), [HOST]);
        assert_eq!(
            world.computed(),
            [
                "below",
                "blocks",
                "hosts_below",
                "launches",
                "sources",
                "text",
                "words"
            ]
        );
        for typed in ["__global__ void scale(float *p) { p[0] =", ""] {
            world.files.set(Path::new(KERNEL), typed);
            assert_eq!(world.hosts(KERNEL), [HOST]);
            assert_eq!(world.computed(), [""; 0]);
        }
    }

    #[test]
    fn what_is_typed_in_a_host_is_looked_at_as_far_as_its_words_change() {
        let world = World::new(&[
            (KERNEL, "__global__ void scale(float *p) {}"),
            (HOST, LAUNCHES),
        ]);
        assert_eq!(world.hosts(KERNEL), [HOST]);
        world.computed();
        // The same words, and as many bytes: who asked for them is not computed again.
        world
            .files
            .set(Path::new(HOST), LAUNCHES.replace("// once", "/* once"));
        assert_eq!(world.hosts(KERNEL), [HOST]);
        assert_eq!(world.computed(), ["blocks", "launches", "text", "words"]);
        world
            .files
            .set(Path::new(HOST), LAUNCHES.replace("scale", "other"));
        assert_eq!(world.hosts(KERNEL), [""; 0]);
        assert_eq!(
            world.computed(),
            ["blocks", "hosts_below", "launches", "text", "words"]
        );
    }

    #[test]
    fn a_file_that_appears_is_found() {
        let helper = Path::new("/p/helper.h");
        let world = World::new(&[(KERNEL, "__global__ void k() { help(); }")]);
        assert_eq!(world.defining(KERNEL, "help"), [""; 0].map(PathBuf::from));
        world.files.set(helper, "__device__ void help() {\n}\n");
        assert_eq!(world.defining(KERNEL, "help"), [helper]);
        world.computed();
        // A body's text does not matter to where it is.
        world.files.set(helper, "__device__ void help() {\n  }");
        assert_eq!(world.defining(KERNEL, "help"), [helper]);
        let computed = world.computed();
        assert!(
            !computed.contains(&"definitions".to_owned()),
            "{computed:?}"
        );
        world.files.close(helper);
        assert_eq!(world.defining(KERNEL, "help"), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn who_asks_while_files_change_gets_an_answer_of_one_moment() {
        let world = World::new(&[(KERNEL, ""), (HOST, LAUNCHES)]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for at in 0..200 {
                    let name = if at % 2 == 0 { "other" } else { "scale" };
                    world
                        .files
                        .set(Path::new(HOST), LAUNCHES.replace("scale", name));
                }
            });
            for _ in 0..200 {
                let found = world.hosts(KERNEL);
                assert!(found.is_empty() || found == [HOST], "{found:?}");
            }
        });
        assert_eq!(world.hosts(KERNEL), [HOST]);
    }
}
