//! From a buffer to what is analysed: its preprocessed text, its headers, the programs in its strings.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use warplens_base::{
    Bounds, Command, CompileCommands, Define, Files, HeaderIndex, IncludeSearch, NoFiles,
    SourceFile,
};
use warplens_machine::{Profile, Profiles};
use warplens_syntax::preprocess::{
    self, IncludeLine, Included, Includes, Macros, Options, Piece, SourceMap, Trace, Undecided,
};
use warplens_syntax::{Document, Expanded, Kind, Language, embedded_programs, words};

use crate::database::{Db, Queries};
use crate::kinds::{absolute, is_header, may_hold_kernels};
use crate::macros::{known_absent, predefined};
use crate::near::{self, Kinds};
use crate::series::Pieces;
use crate::settings::{READS_OUTSIDE, Settings};
use crate::sources::{SUFFIXES, sources_before};

/// Headers include headers this deep at most.
const DEEPEST: usize = 100;
/// Files that include a file, one including the other, are followed so far.
const DEEPEST_INCLUDERS: usize = 8;
/// Files of a folder that are looked at as neighbours.
const MOST_NEIGHBOURS: usize = 256;
/// Bytes of neighbours that are read.
const MOST_BESIDE: usize = 256 << 10;
/// Branches that nothing decided of which each is looked at.
const MOST_ALTERNATIVES: usize = 6;
/// Bytes of headers kept, as preprocessed, with their trees; the least used go when there are more.
const MOST_KEPT: usize = 96 << 20;
/// Bytes that a node of a tree takes, about.
const NODE_BYTES: usize = 56;
/// Readings of one header under different macros that are kept.
const MOST_READINGS: usize = 8;
/// Bytes of headers read for one file; further ones are left out, and said to be.
const MOST_READ: usize = 4 << 20;
/// Conditionals of one text whose name is looked for in its code.
const MOST_TESTED: usize = 16;
/// Places of such a name that are looked at.
const MOST_USES: usize = 1000;
/// Files that others depend on whose documents are kept, and files whose includers are.
const MOST_DOCUMENTS: usize = 32;
const MOST_INCLUDERS: usize = 8_192;
/// Files that include one and are looked at.
const MOST_INCLUDING: usize = 8;
/// Programs in strings of one file that are read.
const MOST_PROGRAMS: usize = 256;

/// What marks the folder of a project.
const MARKS: [&str; 4] = [".git", ".hg", "warplens.toml", "compile_commands.json"];

/// The files that include one, by its path and a hash of what the search depends on; each with the generation of the files it is of.
type Includers = FxHashMap<(PathBuf, u64), (u64, Arc<[PathBuf]>)>;

/// What surrounds the buffers: other files, compile commands, the workspace's folders.
pub struct Project {
    files: Arc<dyn Files>,
    commands: CompileCommands,
    roots: RwLock<(Vec<PathBuf>, Arc<HeaderIndex>)>,
    /// Whether includes may lead out of the workspace.
    confined: AtomicBool,
    headers: Mutex<Headers>,
    searches: Mutex<FxHashMap<u64, Arc<IncludeSearch>>>,
    /// What is derived of the files.
    queries: Queries,
    /// Who includes a file.
    includers: Mutex<Includers>,
    /// Files that others depend on, each with its own expansion.
    documents: Mutex<FxHashMap<PathBuf, (u64, Arc<Document>)>>,
}

impl std::fmt::Debug for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Project").finish_non_exhaustive()
    }
}

/// The readings of each header, and the bytes of all of them.
#[derive(Default)]
struct Headers {
    by_key: FxHashMap<u64, Vec<Arc<Header>>>,
    bytes: usize,
    /// Counts up with each use.
    clock: u64,
    /// How many headers were read, and how often a reading served again.
    read: usize,
    shared: usize,
}

impl Headers {
    /// Keeps a reading; those that were not used for longest make room.
    fn keep(&mut self, key: u64, header: &Arc<Header>) {
        self.clock += 1;
        self.read += 1;
        header.used.store(self.clock, Ordering::Relaxed);
        self.bytes += header.weight;
        let readings = self.by_key.entry(key).or_default();
        readings.push(Arc::clone(header));
        if readings.len() > MOST_READINGS {
            let oldest = readings
                .iter()
                .enumerate()
                .min_by_key(|(_, reading)| reading.used.load(Ordering::Relaxed))
                .map_or(0, |(at, _)| at);
            self.bytes -= readings.swap_remove(oldest).weight;
        }
        if self.bytes <= MOST_KEPT {
            return;
        }
        let mut ages: Vec<(u64, usize)> = self
            .by_key
            .values()
            .flatten()
            .map(|reading| (reading.used.load(Ordering::Relaxed), reading.weight))
            .collect();
        ages.sort_unstable();
        let mut limit = 0;
        let mut left = self.bytes;
        for (used, bytes) in ages {
            if left <= MOST_KEPT / 4 * 3 || used == self.clock {
                break;
            }
            left -= bytes;
            limit = used;
        }
        self.bytes = left;
        self.by_key.retain(|_, readings| {
            readings.retain(|reading| reading.used.load(Ordering::Relaxed) > limit);
            !readings.is_empty()
        });
    }
}

/// A header as it reads under certain macros.
struct Header {
    text: Arc<Expanded>,
    /// The macros it was read under.
    start: Macros,
    /// The macros at its end.
    end: Macros,
    /// Which of them matter to it, and which it changes.
    trace: Arc<Trace>,
    /// When it was last used, by the clock of [`Headers`].
    used: AtomicU64,
    /// Every file it depends on, with the hash of its text.
    reads: Vec<(PathBuf, u64)>,
    missing: Vec<String>,
    /// Bytes of it and of all it includes.
    bytes: usize,
    /// Bytes that its text and its tree take in memory, about.
    weight: usize,
    /// Definitions assumed in it and in all it includes.
    assumed: Vec<(String, String)>,
    /// The generation of the files for which all that was last seen to hold.
    seen: AtomicU64,
}

/// A file as it is analysed.
pub(crate) struct Translation {
    pub(crate) text: Arc<Expanded>,
    /// Texts before it, in the order they are read, none twice: headers, and for a header the file that
    /// includes it.
    pub(crate) headers: Vec<Arc<Expanded>>,
    /// Those of them that it does not include but is linked with.
    pub(crate) linked: Vec<PathBuf>,
    /// Whether it is read as another file includes it.
    pub(crate) is_included: bool,
}

impl Default for Project {
    fn default() -> Self {
        Project::new(Arc::new(NoFiles), Vec::new())
    }
}

impl Project {
    /// Files as `files` gives them; `roots` are the workspace's folders, where headers are looked for last.
    pub fn new(files: Arc<dyn Files>, roots: Vec<PathBuf>) -> Project {
        Project {
            queries: Queries::new(Arc::clone(&files), None),
            files,
            commands: CompileCommands::new(),
            roots: RwLock::new((roots.clone(), Arc::new(HeaderIndex::new(roots)))),
            confined: AtomicBool::new(false),
            headers: Mutex::default(),
            searches: Mutex::default(),
            includers: Mutex::default(),
            documents: Mutex::default(),
        }
    }

    /// The workspace's folders are these now.
    pub fn set_roots(&self, roots: &[PathBuf]) {
        if self.roots.read().unwrap_or_else(PoisonError::into_inner).0 == roots {
            return;
        }
        let index = Arc::new(HeaderIndex::new(roots.to_vec()));
        *self.roots.write().unwrap_or_else(PoisonError::into_inner) = (roots.to_vec(), index);
        self.searches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Whether files outside the workspace's folders, and those that settings and compile commands name for headers,
    /// stay unread from now on.
    pub fn confine(&self, confined: bool) {
        self.confined.store(confined, Ordering::Relaxed);
    }

    /// What a file and its headers are read from; none where they may be read from everywhere. A file in no folder of
    /// the workspace has its own, or the nearest above that is marked as a project's.
    fn bounds(&self, path: &Path) -> Option<Bounds> {
        if !self.confined.load(Ordering::Relaxed) {
            return None;
        }
        let path = absolute(path);
        let roots = self.roots.read().unwrap_or_else(PoisonError::into_inner);
        if roots.0.iter().any(|root| path.starts_with(root)) {
            return Some(Bounds::new(roots.0.iter().cloned()));
        }
        let own = path.parent().unwrap_or(Path::new(""));
        let marked = own
            .ancestors()
            .find(|folder| is_marked(folder, &*self.files));
        let home = marked.unwrap_or(own).to_owned();
        Some(Bounds::new(roots.0.iter().cloned().chain([home])))
    }

    /// Files may have been made, moved, changed or deleted by others: everything is looked at again.
    pub fn refresh(&self) {
        self.files.look_again();
        self.index().refresh();
    }

    pub(crate) fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// The folders of the workspace.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let roots = self.roots.read();
        roots.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Asks queries about what lies near files, in the folders of the workspace.
    fn near<T>(&self, ask: impl Fn(&dyn Db, &[PathBuf]) -> T) -> T {
        let roots = {
            let roots = self.roots.read().unwrap_or_else(PoisonError::into_inner);
            roots.0.clone()
        };
        self.queries.ask(|db| ask(db, &roots))
    }

    /// The host programs near a file that have one of these words in them, and their texts: those of the nearest folder.
    pub(crate) fn hosts_near(
        &self,
        path: &Path,
        words: &[&str],
        kinds: Kinds,
    ) -> Vec<Arc<SourceFile>> {
        let path = absolute(path);
        let found = self.near(|db, roots| near::hosts(db, &path, words, kinds, roots));
        found
            .iter()
            .filter_map(|path| self.files.read(path))
            .collect()
    }

    /// Those of the folder that many above the file's own; `None` where that is not looked into.
    pub(crate) fn hosts_at(
        &self,
        path: &Path,
        word: &str,
        up: usize,
    ) -> Option<Vec<Arc<SourceFile>>> {
        let path = absolute(path);
        let ask = |db: &dyn Db, roots: &[PathBuf]| {
            near::hosts_at(db, &path, &[word], Kinds::Hosts, up, roots)
        };
        let found = self.near(ask)?;
        Some(
            found
                .iter()
                .filter_map(|path| self.files.read(path))
                .collect(),
        )
    }

    /// The files near one that define these names.
    pub(crate) fn defining(&self, path: &Path, names: &[String]) -> Vec<PathBuf> {
        let path = absolute(path);
        self.near(|db, roots| near::defining(db, &path, names, roots))
    }

    /// Lets go of what was derived of files: none is open any more.
    pub(crate) fn forget(&self) {
        self.queries.forget();
        let includers = self.includers.lock();
        includers.unwrap_or_else(PoisonError::into_inner).clear();
        let documents = self.documents.lock();
        documents.unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The folders in which what a file lacks is looked for.
    pub(crate) fn around(&self, path: &Path) -> Vec<PathBuf> {
        let path = absolute(path);
        self.near(|db, roots| near::around(db, &path, roots))
    }

    fn index(&self) -> Arc<HeaderIndex> {
        Arc::clone(&self.roots.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// The command that compiles a file, where a `compile_commands.json` has one.
    pub fn command(&self, path: &Path) -> Option<Arc<Command>> {
        if !path.is_absolute() {
            let absolute = std::path::absolute(path).ok()?;
            return self
                .commands
                .command(&absolute, &*self.files)
                .map(|found| found.command);
        }
        self.commands
            .command(path, &*self.files)
            .map(|found| found.command)
    }

    /// The GPU that a file is compiled for, as far as there is a profile of its architecture.
    pub(crate) fn target(&self, path: &Path, profiles: &Profiles) -> Option<Arc<Profile>> {
        if path.as_os_str().is_empty() {
            return None;
        }
        let command = self.command(path)?;
        // The newest architecture is the one a user runs.
        let wanted = command
            .architectures
            .iter()
            .filter_map(|name| name.strip_prefix("sm_"))
            .filter_map(|digits| {
                digits
                    .trim_end_matches(char::is_alphabetic)
                    .parse::<u32>()
                    .ok()
            })
            .max()?;
        profiles.largest(|profile| {
            profile
                .compute_capability
                .is_some_and(|(major, minor)| major * 10 + minor == wanted)
        })
    }

    fn search(
        &self,
        settings: &Settings,
        command: Option<&Command>,
        bounds: Option<&Bounds>,
    ) -> (Arc<IncludeSearch>, u64) {
        let mut hasher = FxHasher::default();
        bounds.hash(&mut hasher);
        settings.include_paths.hash(&mut hasher);
        if let Some(command) = command {
            (&command.quote_dirs, &command.include_dirs).hash(&mut hasher);
        }
        let key = hasher.finish();
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        let search = searches.entry(key).or_insert_with(|| {
            let mut dirs: Vec<PathBuf> = settings.include_paths.iter().map(PathBuf::from).collect();
            let mut quote = Vec::new();
            if let Some(command) = command {
                dirs.extend(command.include_dirs.iter().cloned());
                quote.clone_from(&command.quote_dirs);
            }
            let search = IncludeSearch::new(quote, dirs, self.index());
            Arc::new(match bounds {
                Some(bounds) => {
                    let forced = command.iter().flat_map(|command| &command.forced_includes);
                    search.within(&bounds.and(forced))
                }
                None => search,
            })
        });
        (Arc::clone(search), key)
    }

    /// What a buffer is analysed as, linked with these files. One that others include is read as the nearest of them reads it.
    pub(crate) fn translate(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
        neighbours: bool,
        linked: &[PathBuf],
    ) -> Translation {
        if let Some(translation) = self.as_included(path, document, settings, profile) {
            return translation;
        }
        let text = self.expand(document, path, settings, profile, neighbours);
        let own = flatten(&text.includes);
        let mut linked = linked.to_vec();
        let mut headers = self.linked_texts(&linked, document.language(), settings, profile);
        if !headers.is_empty() {
            let read: FxHashSet<&Path> = own.iter().map(|header| &*header.path).collect();
            headers.retain(|linked| !read.contains(&*linked.path));
            linked.retain(|linked| !read.contains(&**linked));
        }
        // All readings of one header count: behind its guard the second has nothing left.
        headers.extend(own);
        Translation {
            text,
            headers,
            linked,
            is_included: false,
        }
    }

    /// A file on its own, as a host program is read for what it launches.
    pub(crate) fn alone(
        &self,
        file: &SourceFile,
        settings: &Settings,
        profile: &Profile,
    ) -> Arc<Expanded> {
        let language = Language::from_path(&file.path).unwrap_or(Language::Cuda);
        let document = self.document(file, language);
        self.expand(&document, &file.path, settings, profile, false)
    }

    /// A file's document. It keeps its expansion, from which that of a later text starts.
    fn document(&self, file: &SourceFile, language: Language) -> Arc<Document> {
        let mut documents = self
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = documents.get(&*file.path);
        let known = known.filter(|(_, document)| document.language() == language);
        let document = match known {
            Some((hash, document)) if *hash == file.hash => return Arc::clone(document),
            Some((_, document)) => {
                let mut document = Document::clone(document);
                document.edit(0..document.len(), &file.text);
                Arc::new(document)
            }
            None => Arc::new(Document::new(&file.text, language)),
        };
        if documents.len() >= MOST_DOCUMENTS {
            documents.clear();
        }
        let known = (file.hash, Arc::clone(&document));
        documents.insert(file.path.to_path_buf(), known);
        document
    }

    /// The texts of the files that a file is linked with, each behind its headers.
    fn linked_texts(
        &self,
        linked: &[PathBuf],
        language: Language,
        settings: &Settings,
        profile: &Profile,
    ) -> Vec<Arc<Expanded>> {
        let mut texts: Vec<Arc<Expanded>> = Vec::new();
        for linked in linked {
            let Some(file) = self.files.read(linked) else {
                continue;
            };
            let document = self.document(&file, language);
            let text = self.expand(&document, linked, settings, profile, false);
            for header in flatten(&text.includes).into_iter().chain([text]) {
                if !texts.iter().any(|known| known.path == header.path) {
                    texts.push(header);
                }
            }
        }
        texts
    }

    /// The files that a host program near an OpenCL file names before it in the list of its sources.
    fn sources(&self, path: &Path) -> Vec<PathBuf> {
        let path = absolute(path);
        let (Some(folder), Some(stem), Some(extension)) = (
            path.parent(),
            path.file_stem().and_then(|stem| stem.to_str()),
            path.extension().and_then(|extension| extension.to_str()),
        ) else {
            return Vec::new();
        };
        let variable = format!("{stem}_{extension}");
        let words: Vec<String> = (SUFFIXES.iter())
            .map(|suffix| format!("{variable}{suffix}"))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut hosts = self.hosts_near(&path, &words, Kinds::Hosts);
        if hosts.is_empty() {
            hosts = self.hosts_near(&path, &[stem], Kinds::Hosts);
        }
        hosts
            .iter()
            .map(|host| {
                let written = sources_before(&host.text, stem, extension);
                let beside_host = host.path.parent().unwrap_or(folder);
                written
                    .iter()
                    .filter_map(|file| {
                        let name = Path::new(file).file_name()?;
                        [
                            beside_host.join(file),
                            folder.join(name),
                            folder.parent()?.join(name),
                        ]
                        .into_iter()
                        .map(|file| warplens_base::normalise(&file))
                        .find(|file| self.files.exists(file))
                    })
                    .collect::<Vec<PathBuf>>()
            })
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    /// Files that a host program most likely puts in front of an OpenCL file: without kernels, beside it or one
    /// folder up.
    fn neighbours(&self, path: &Path, bounds: Option<&Bounds>) -> Vec<PathBuf> {
        let path = absolute(path);
        let Some(folder) = path.parent() else {
            return Vec::new();
        };
        let own = path.extension();
        let own_text = self
            .files
            .read(&path)
            .map_or_else(String::new, |file| file.text.to_string());
        let mut found = Vec::new();
        let mut bytes = 0;
        for folder in [folder.parent(), Some(folder)].into_iter().flatten() {
            if bounds.is_some_and(|bounds| !bounds.hold(folder)) {
                continue;
            }
            let files: Vec<PathBuf> = self
                .files
                .list(folder)
                .iter()
                .map(|entry| &entry.path)
                .filter(|file| **file != path && (file.extension() == own || is_header(file)))
                .take(MOST_NEIGHBOURS)
                .cloned()
                .collect();
            let all = files.iter().map(PathBuf::as_path).chain([path.as_path()]);
            let mut pieces = Pieces::of(all, &own_text);
            found.extend(files.into_iter().filter(|file| {
                self.files.read(file).is_some_and(|file| {
                    let text = &file.text;
                    if bytes + text.len() > MOST_BESIDE {
                        return false;
                    }
                    let plain = !["namespace", "template", "class ", "std::"]
                        .iter()
                        .any(|word| text.contains(word));
                    let taken = plain && (!may_hold_kernels(text) || pieces.take(&file.path, text));
                    bytes += if taken { text.len() } else { 0 };
                    taken
                })
            }));
        }
        found
    }

    /// How often a header was read, and how often such a reading served again.
    pub fn header_readings(&self) -> (usize, usize) {
        let headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        (headers.read, headers.shared)
    }

    /// Bytes that the kept readings of headers take, about.
    pub fn header_bytes(&self) -> usize {
        let headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        headers.bytes
    }

    /// The files that include this one, the nearest first, a source before a header.
    fn including(&self, path: &Path, opencl: bool, settings: &Settings) -> Arc<[PathBuf]> {
        let mut hasher = FxHasher::default();
        let confined = self.confined.load(Ordering::Relaxed);
        (&settings.include_paths, confined, opencl).hash(&mut hasher);
        let key = (path.to_path_buf(), hasher.finish());
        // Who includes a file does not depend on its own text.
        let generation = self.files.generation_but_for(path);
        let known = || {
            let includers = self.includers.lock();
            includers.unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((seen, including)) = known().get(&key)
            && *seen == generation
        {
            return Arc::clone(including);
        }
        let includes = |from: &Path, line: &str| {
            // A host program that includes OpenCL as a string does not compile it.
            if opencl && Language::from_path(from) != Some(Language::OpenCl) {
                return false;
            }
            let command = self.command(from);
            let bounds = self.bounds(from);
            let (search, _) = self.search(settings, command.as_deref(), bounds.as_ref());
            search.resolve(&*self.files, line, false, from).as_deref() == Some(path)
        };
        let named = self.near(|db, roots| near::includers(db, path, roots));
        let named = named
            .into_iter()
            .filter(|(from, line)| includes(from, line));
        let mut including: Vec<PathBuf> =
            named.map(|(from, _)| from).take(MOST_INCLUDING).collect();
        including.dedup();
        let including: Arc<[PathBuf]> = including.into();
        let mut known = known();
        if known.len() >= MOST_INCLUDERS {
            known.clear();
        }
        known.insert(key, (generation, Arc::clone(&including)));
        including
    }

    /// The files that include a file, one the other, the outermost first: what it knows stands before all the others.
    fn includers_of(&self, path: &Path, opencl: bool, settings: &Settings) -> Vec<PathBuf> {
        let mut chain: Vec<PathBuf> = Vec::new();
        let mut at = path.to_path_buf();
        while chain.len() < DEEPEST_INCLUDERS
            && let Some(next) = self.including(&at, opencl, settings).first()
            && *next != path
            && !chain.contains(next)
        {
            chain.push(next.clone());
            at.clone_from(next);
        }
        chain.reverse();
        chain
    }

    /// The programs that a host file is a part of: those that include it, by way of others or not, and none of its own where
    /// nobody does.
    pub(crate) fn programs_with(&self, host: &Path, settings: &Settings) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Vec::new();
        for direct in self.including(host, false, settings).iter() {
            let outermost = self
                .includers_of(direct, false, settings)
                .into_iter()
                .next();
            let outermost = outermost.unwrap_or_else(|| direct.clone());
            if outermost != host && !found.contains(&outermost) {
                found.push(outermost);
            }
        }
        found
    }

    fn as_included(
        &self,
        path: &Path,
        document: &Document,
        settings: &Settings,
        profile: &Profile,
    ) -> Option<Translation> {
        if path.as_os_str().is_empty() {
            return None;
        }
        let opencl = document.language() == Language::OpenCl;
        self.includers_of(&absolute(path), opencl, settings)
            .iter()
            .find_map(|includer| self.included_by(includer, path, document, settings, profile))
    }

    fn included_by(
        &self,
        includer: &Path,
        path: &Path,
        document: &Document,
        settings: &Settings,
        profile: &Profile,
    ) -> Option<Translation> {
        let key = absolute(path);
        let file = self.files.read(includer)?;
        let language = Language::from_path(includer).unwrap_or(document.language());
        let outer = self.document(&file, language);
        let text = self.expand(&outer, includer, settings, profile, false);
        let all = flatten(&text.includes);
        let at = all
            .iter()
            .position(|header| *header.path == *key || *header.path == *path)?;
        // What the editor shows must be what was read.
        if all[at].source != *document.source() {
            return None;
        }
        let own = Arc::clone(&all[at]);
        // What the includer declares itself is visible as well: a kernel's header often follows its types.
        let mut headers: Vec<Arc<Expanded>> = all
            .into_iter()
            .filter(|of| !Arc::ptr_eq(of, &own))
            .collect();
        headers.push(text);
        Some(Translation {
            text: own,
            headers,
            linked: Vec::new(),
            is_included: true,
        })
    }

    fn expand(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
        neighbours: bool,
    ) -> Arc<Expanded> {
        let language = document.language();
        let command = self.command(path);
        let bounds = self.bounds(path);
        let (search, search_key) = self.search(settings, command.as_deref(), bounds.as_ref());
        let generation = self.files.generation();
        let mut hasher = FxHasher::default();
        (
            path,
            self.files.existence(),
            search_key,
            language,
            profile.compute_capability,
        )
            .hash(&mut hasher);
        let mut beside = if language == Language::OpenCl {
            self.sources(path)
        } else {
            Vec::new()
        };
        if neighbours {
            let more = self.neighbours(path, bounds.as_ref());
            for file in more {
                if !beside.contains(&file) {
                    beside.push(file);
                }
            }
        }
        if let Some(bounds) = &bounds {
            beside.retain(|file| bounds.hold(file));
        }
        beside.hash(&mut hasher);
        settings.defines.hash(&mut hasher);
        settings.kernel_macros.hash(&mut hasher);
        if let Some(command) = &command {
            Arc::as_ptr(command).hash(&mut hasher);
        }
        let holds = |last: &Expanded| {
            let same = |(path, hash): &(PathBuf, u64)| {
                self.files.read(path).is_some_and(|file| file.hash == *hash)
            };
            last.versions.iter().all(same)
        };
        document.expanded(hasher.finish(), holds, |source, previous| {
            let mut macros = predefined(language, profile);
            let marker = if language == Language::OpenCl {
                "__kernel"
            } else {
                "__global__"
            };
            for name in &settings.kernel_macros {
                macros.define(name, marker);
            }
            if let Some(command) = &command {
                for define in &command.defines {
                    match define {
                        Define::Set { name, value } => macros.define(name, value),
                        Define::Unset(name) => macros.undefine(name),
                    }
                }
            }
            for (name, value) in &settings.defines {
                macros.define(name, value);
            }
            let mut reader = Reader {
                project: self,
                search: &search,
                search_key,
                language,
                generation,
                stack: vec![absolute(path)],
                includes: Vec::new(),
                reads: Vec::new(),
                missing: Vec::new(),
                bytes: 0,
                assumed: Vec::new(),
                once: Vec::new(),
            };
            let forced = command
                .as_ref()
                .map_or(&[][..], |command| &command.forced_includes);
            let unwrapped = (language == Language::OpenCl)
                .then(|| unwrapped(&source))
                .flatten();
            let read = unwrapped.as_deref().unwrap_or(&source);
            let start = reader.before(forced, &beside, macros.clone());
            let earlier =
                previous.filter(|previous| unwrapped.is_none() && previous.language == language);
            let earlier = earlier.map(Expanded::as_earlier);
            let mut done = reader.preprocess(read, start, false, earlier);
            // `#if A … #elif B …` with neither: the build defines one of them. The first is as good as any.
            let assumed = first_of_several(&source, &done.undecided, &|spelled, system| {
                reader.finds(spelled, system)
            });
            if !assumed.is_empty() {
                for (name, value) in &assumed {
                    macros.define(name, value);
                }
                reader.start_again();
                let start = reader.before(forced, &beside, macros.clone());
                done = reader.preprocess(read, start, false, earlier);
            }
            if unwrapped.is_some() {
                // Not of the text that the next one is compared with.
                done.quiet.clear();
            }
            let includes = std::mem::take(&mut reader.includes);
            let alternatives = kernels_left_out(&source, &done.undecided);
            let mut text = Expanded::new(
                absolute(path).into(),
                language,
                Arc::clone(&source),
                done,
                includes,
                previous,
            );
            text.assumed = assumed;
            text.assumed.append(&mut reader.assumed);
            text.assumed.sort();
            text.assumed.dedup();
            // What only a branch that is not taken reads is nothing that the file depends on, but what is made of it does.
            let mut tried = Vec::new();
            for (range, assume) in alternatives {
                let mut macros = macros.clone();
                for (name, value) in &assume {
                    match value {
                        Some(value) => macros.define(name, value),
                        None => macros.undefine(name),
                    }
                }
                let missing = reader.missing.len();
                let own = reader.reads.len();
                let start = reader.before(forced, &beside, macros);
                let done = reader.run(read, start);
                let includes = std::mem::take(&mut reader.includes);
                reader.missing.truncate(missing);
                tried.extend(reader.reads.drain(own..));
                let other = Expanded::new(
                    absolute(path).into(),
                    language,
                    Arc::clone(&source),
                    done,
                    includes,
                    None,
                );
                text.alternatives.push((range, Arc::new(other)));
            }
            text.missing = std::mem::take(&mut reader.missing);
            text.reads = reader.reads.iter().map(|(path, _)| path.clone()).collect();
            if language != Language::OpenCl {
                text.embedded = self.embedded(&source, path, settings, profile, &mut reader);
            }
            tried.append(&mut reader.reads);
            tried.sort_unstable();
            tried.dedup();
            text.versions = tried;
            text
        })
    }

    /// The OpenCL programs in the string literals of host code.
    fn embedded(
        &self,
        source: &Arc<str>,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
        reader: &mut Reader,
    ) -> Vec<Arc<Expanded>> {
        embedded_programs(source)
            .into_iter()
            .take(MOST_PROGRAMS)
            .map(|program| {
                let mut macros = predefined(Language::OpenCl, profile);
                for (name, value) in &settings.defines {
                    macros.define(name, value);
                }
                let pieces: Vec<Piece> = program
                    .pieces
                    .iter()
                    .map(|piece| {
                        let source_length = if piece.verbatim { piece.len } else { 1 };
                        Piece {
                            output: piece.at..piece.at + piece.len,
                            source: piece.source..(piece.source + source_length).min(source.len()),
                            verbatim: piece.verbatim,
                        }
                    })
                    .collect();
                let outer = SourceMap::from_pieces(&pieces, source.len());
                reader.language = Language::OpenCl;
                let mut done = reader.run(&program.text, macros);
                let includes = std::mem::take(&mut reader.includes);
                done.map = done.map.compose(&outer);
                Arc::new(Expanded::new(
                    absolute(path).into(),
                    Language::OpenCl,
                    Arc::clone(source),
                    done,
                    includes,
                    None,
                ))
            })
            .collect()
    }
}

/// Reads what `#include` lines name, while a text is preprocessed.
struct Reader<'a> {
    project: &'a Project,
    search: &'a IncludeSearch,
    search_key: u64,
    language: Language,
    generation: u64,
    /// The files being read, outermost first.
    stack: Vec<PathBuf>,
    includes: Vec<Arc<Expanded>>,
    reads: Vec<(PathBuf, u64)>,
    missing: Vec<String>,
    /// Bytes of headers read so far.
    bytes: usize,
    /// Definitions assumed in headers.
    assumed: Vec<(String, String)>,
    /// Markers of `#pragma once` that were looked up.
    once: Vec<String>,
}

impl Reader<'_> {
    fn run(&mut self, source: &str, macros: Macros) -> preprocess::Preprocessed {
        self.preprocess(source, macros, false, None)
    }

    fn preprocess(
        &mut self,
        source: &str,
        macros: Macros,
        traced: bool,
        earlier: Option<preprocess::Earlier>,
    ) -> preprocess::Preprocessed {
        let language = self.language;
        let file = self.stack.last().map(|path| path.display().to_string());
        let options = Options {
            macros,
            known_absent: &|name| known_absent(language, name),
            words: words(language),
            file: file.as_deref().unwrap_or(""),
            traced,
            earlier,
        };
        preprocess::preprocess(source, options, self)
    }

    /// A header under these macros, and the macros after it. A reading under others serves as well where those
    /// that differ do not matter to it.
    fn header(
        &mut self,
        path: &Path,
        file: &warplens_base::SourceFile,
        macros: &Macros,
    ) -> (Arc<Header>, Macros) {
        let mut hasher = FxHasher::default();
        (path, file.hash, self.search_key, self.language).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = self.known_header(key, macros) {
            let after = if known.start.fingerprint() == macros.fingerprint() {
                known.end.clone()
            } else {
                macros.after(&known.trace, &known.end)
            };
            return (known, after);
        }
        let mut inner = Reader {
            project: self.project,
            search: self.search,
            search_key: self.search_key,
            language: self.language,
            generation: self.generation,
            stack: self.stack.clone(),
            includes: Vec::new(),
            reads: vec![(path.to_path_buf(), file.hash)],
            missing: Vec::new(),
            bytes: self.bytes + file.text.len(),
            assumed: Vec::new(),
            once: Vec::new(),
        };
        inner.stack.push(path.to_path_buf());
        let mut start = macros.clone();
        let marker = once(&file.text).then(|| once_marker(path));
        if let Some(marker) = &marker {
            start.define(marker, "1");
        }
        let unwrapped = (self.language == Language::OpenCl)
            .then(|| unwrapped(&file.text))
            .flatten();
        let read = unwrapped.as_deref().unwrap_or(&file.text);
        let mut done = inner.preprocess(read, start.clone(), true, None);
        let assumed = first_of_several(read, &done.undecided, &|spelled, system| {
            inner.finds(spelled, system)
        });
        // What decided that is looked up again in the second reading, or before what is assumed.
        let mut first = None;
        if !assumed.is_empty() {
            for (name, value) in &assumed {
                start.define(name, value);
            }
            inner.start_again();
            inner.bytes = self.bytes + file.text.len();
            inner.reads.push((path.to_path_buf(), file.hash));
            let again = inner.preprocess(read, start, true, None);
            first = Some(std::mem::replace(&mut done, again).trace);
        }
        let mut trace = std::mem::take(&mut done.trace);
        for marker in &inner.once {
            trace.look_up(marker);
        }
        if let Some(first) = &first {
            trace.read_before(first);
        }
        for name in marker.iter().chain(assumed.iter().map(|(name, _)| name)) {
            trace.change(name);
        }
        trace.finish(macros, &done.macros);
        inner.assumed.extend(assumed);
        let end = done.macros.clone();
        let text = Expanded::new(
            path.into(),
            self.language,
            Arc::clone(&file.text),
            done,
            inner.includes,
            None,
        );
        // What its guard leaves empty was read before.
        let root = text.tree.root_node();
        let empty = root.children().all(|child| child.kind() == Kind::Comment);
        if empty {
            inner.bytes -= file.text.len();
        }
        let weight = text.text.len() + NODE_BYTES * text.tree.root_node().descendant_count();
        let header = Arc::new(Header {
            weight,
            text: Arc::new(text),
            start: macros.clone(),
            end: end.clone(),
            trace: Arc::new(trace),
            used: AtomicU64::new(0),
            reads: inner.reads,
            missing: inner.missing,
            bytes: inner.bytes - self.bytes,
            assumed: inner.assumed,
            seen: AtomicU64::new(self.generation),
        });
        let mut headers = self
            .project
            .headers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        headers.keep(key, &header);
        (header, end)
    }

    /// A kept reading that holds under these macros.
    fn known_header(&self, key: u64, macros: &Macros) -> Option<Arc<Header>> {
        let readings = {
            let headers = self
                .project
                .headers
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            headers.by_key.get(&key).cloned()?
        };
        let known = readings.into_iter().rev().find(|reading| {
            reading.start.reads_alike(macros, &reading.trace) && self.still_holds(reading)
        })?;
        let mut headers = self
            .project
            .headers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        headers.clock += 1;
        headers.shared += 1;
        known.used.store(headers.clock, Ordering::Relaxed);
        Some(known)
    }

    /// True where no file that a header depends on has changed.
    fn still_holds(&self, header: &Header) -> bool {
        if header.seen.load(Ordering::Relaxed) == self.generation {
            return true;
        }
        let holds = header.reads.iter().all(|(path, hash)| {
            self.project
                .files
                .read(path)
                .is_some_and(|file| file.hash == *hash)
        }) && header.missing.is_empty();
        if holds {
            header.seen.store(self.generation, Ordering::Relaxed);
        }
        holds
    }

    /// What is read before the first line: forced includes and neighbours. Gives the macros after them.
    fn before(&mut self, forced: &[PathBuf], beside: &[PathBuf], mut macros: Macros) -> Macros {
        for forced in forced {
            let spelled = forced.to_string_lossy();
            let line = IncludeLine {
                spelled: &spelled,
                system: false,
                next: false,
                at: 0,
            };
            if let Included::Header { macros: after, .. } = self.include(&line, &macros, false) {
                macros = after;
            }
        }
        for path in beside {
            if let Some(file) = self.project.files.read(path) {
                let (header, after) = self.header(path, &file, &macros);
                macros = after;
                self.reads.extend(header.reads.iter().cloned());
                self.missing.extend(header.missing.iter().cloned());
                self.includes.push(Arc::clone(&header.text));
            }
        }
        macros
    }

    fn start_again(&mut self) {
        self.includes.clear();
        self.bytes = 0;
        self.reads.clear();
        self.missing.clear();
    }

    fn from(&self) -> PathBuf {
        self.stack.last().cloned().unwrap_or_default()
    }

    /// True for a header that is there to be read.
    fn finds(&self, spelled: &str, system: bool) -> bool {
        !warplens_base::is_system_header(spelled)
            && self
                .search
                .resolve(&*self.project.files, spelled, system, &self.from())
                .is_some()
    }
}

impl Includes for Reader<'_> {
    fn include(
        &mut self,
        line: &IncludeLine<'_>,
        macros: &Macros,
        inside_braces: bool,
    ) -> Included {
        let files = &*self.project.files;
        let from = self.from();
        // The toolkit's own headers are known, wherever a command finds them.
        if line.system && warplens_base::is_system_header(line.spelled) {
            return Included::Nothing;
        }
        let found = self
            .search
            .resolve(files, line.spelled, line.system, &from)
            .or_else(|| {
                // A folder that only the build names: `INCLUDE_PATH/types.h`.
                let (folder, rest) = line.spelled.split_once('/')?;
                let named = !folder.is_empty()
                    && folder
                        .chars()
                        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
                named
                    .then(|| self.search.resolve(files, rest, line.system, &from))
                    .flatten()
            });
        let Some(path) = found else {
            if self
                .search
                .is_outside(files, line.spelled, line.system, &from)
            {
                self.missing.push(format!(
                    "{} (outside the workspace: not read without `warplens.{READS_OUTSIDE}`)",
                    line.spelled
                ));
            } else if !line.system && !warplens_base::is_system_header(line.spelled) {
                self.missing.push(line.spelled.to_owned());
            }
            return Included::Nothing;
        };
        if self.stack.len() > DEEPEST || self.stack.contains(&path) {
            return Included::Nothing;
        }
        let Some(file) = files.read(&path) else {
            self.missing.push(line.spelled.to_owned());
            return Included::Nothing;
        };
        let marker = once_marker(&path);
        let was_read = macros.is_defined(&marker);
        self.once.push(marker);
        if was_read {
            return Included::Nothing;
        }
        if inside_braces {
            self.reads.push((path.clone(), file.hash));
            return Included::Text {
                text: Arc::clone(&file.text),
                path: path.into(),
            };
        }
        if self.bytes + file.text.len() > MOST_READ {
            self.missing
                .push(format!("{} (too many headers)", line.spelled));
            return Included::Nothing;
        }
        let (header, after) = self.header(&path, &file, macros);
        self.bytes += header.bytes;
        self.assumed.extend(header.assumed.iter().cloned());
        self.reads.extend(header.reads.iter().cloned());
        self.missing.extend(header.missing.iter().cloned());
        self.includes.push(Arc::clone(&header.text));
        Included::Header {
            macros: after,
            trace: Arc::clone(&header.trace),
        }
    }

    fn enter(&mut self, path: &Path) {
        self.stack.push(path.to_path_buf());
    }

    fn leave(&mut self) {
        if self.stack.len() > 1 {
            self.stack.pop();
        }
    }

    fn has_include(&mut self, spelled: &str, system: bool) -> bool {
        warplens_base::is_system_header(spelled) || self.finds(spelled, system)
    }
}

/// What the first branch assumes of each conditional that takes none, where it has several or where the branch
/// only includes headers, of which one is there (`finds`), and defines names.
fn first_of_several(
    source: &str,
    undecided: &[Undecided],
    finds: &dyn Fn(&str, bool) -> bool,
) -> Vec<(String, String)> {
    let includes = |range: &Range<usize>| {
        source.get(range.clone()).is_some_and(|text| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            // What stands in a header of the system is known either way.
            lines.clone().all(|line| line.starts_with(['#', '/', '*']))
                && text.contains("#include")
                && lines.clone().any(|line| {
                    spells_by_macro(line)
                        || line.starts_with("#define")
                        || included(line).is_some_and(|(spelled, system)| finds(spelled, system))
                })
        })
    };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut left = MOST_TESTED;
    for conditional in undecided {
        let [first, rest @ ..] = conditional.branches.as_slice() else {
            continue;
        };
        // `#else #error …` is no branch to take.
        let refuses = |range: &Range<usize>| {
            source.get(range.clone()).is_some_and(|text| {
                let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                text.contains("#error") && lines.all(|line| line.starts_with(['#', '/', '*']))
            })
        };
        let none = conditional
            .branches
            .iter()
            .all(|branch| !branch.taken || refuses(&branch.range));
        if !none || (rest.is_empty() && !includes(&first.range)) {
            // `#if WIDTH == 1 … #endif`, or `#else` with others in it, where the code that is left uses WIDTH: it
            // cannot do without.
            let [(name, Some(value))] = first.assume.as_slice() else {
                continue;
            };
            let read = match conditional.branches.iter().find(|branch| branch.taken) {
                Some(taken) => taken.range.clone(),
                None => 0..source.len(),
            };
            let number = value.parse::<i64>().is_ok_and(|value| value != 0);
            if !number || first.taken || left == 0 {
                continue;
            }
            left -= 1;
            if !source.get(read).is_some_and(|code| is_used(code, name)) {
                continue;
            }
        }
        for (name, value) in &first.assume {
            if let Some(value) = value
                && !found.iter().any(|(known, _)| known == name)
            {
                found.push((name.clone(), value.clone()));
            }
        }
    }
    found
}

/// True for `#include NAME(…)`: only the build says which header that is.
fn spells_by_macro(line: &str) -> bool {
    let directive = line.strip_prefix('#').map(str::trim_start);
    let spelled = directive.and_then(|line| line.strip_prefix("include"));
    spelled.is_some_and(|spelled| spelled.trim_start().starts_with(char::is_alphabetic))
}

/// The header that a line includes, and whether it is spelled in angle brackets.
fn included(line: &str) -> Option<(&str, bool)> {
    let directive = line.strip_prefix('#')?.trim_start();
    let spelled = directive.strip_prefix("include")?.trim_start();
    let (close, system) = match spelled.chars().next()? {
        '<' => ('>', true),
        '"' => ('"', false),
        _ => return None,
    };
    let (name, _) = spelled[1..].split_once(close)?;
    Some((name, system))
}

/// True where a name stands as a word of its own on a line that is no directive.
fn is_used(source: &str, name: &str) -> bool {
    let word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = source.as_bytes();
    let mut whole = source.match_indices(name).filter(|(at, _)| {
        !word(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && !word(bytes.get(at + name.len()))
    });
    whole.by_ref().take(MOST_USES).any(|(at, _)| {
        let line = source[..at].rfind('\n').map_or(0, |end| end + 1);
        let begins = source[line..at].trim_start();
        !begins.starts_with('#') && !begins.starts_with("//") && !begins.starts_with('*')
    })
}

/// Definitions to take a branch: name and value, `None` to leave the name undefined.
type Assumption = Vec<(String, Option<String>)>;

/// Branches that nothing decided and that are left out with kernels in them: their bytes, and what takes them.
fn kernels_left_out(source: &str, undecided: &[Undecided]) -> Vec<(Range<usize>, Assumption)> {
    undecided
        .iter()
        .flat_map(|conditional| &conditional.branches)
        .filter(|branch| !branch.taken && !branch.assume.is_empty())
        .filter(|branch| {
            source
                .get(branch.range.clone())
                .is_some_and(|text| may_hold_kernels(text) || text.contains("kernel "))
        })
        .take(MOST_ALTERNATIVES)
        .map(|branch| (branch.range.clone(), branch.assume.clone()))
        .collect()
}

/// OpenCL C in raw strings, as host programs include it: the quotes blank, everything else in its place.
fn unwrapped(text: &str) -> Option<String> {
    text.contains("R\"(")
        .then(|| text.replace("R\"(", "   ").replace(")\"", "  "))
}

fn is_marked(folder: &Path, files: &dyn Files) -> bool {
    let names = files.list(folder);
    let mut names = names.iter().map(|entry| entry.path.file_name());
    names.any(|name| MARKS.iter().any(|mark| name == Some(mark.as_ref())))
}

/// `#pragma once`, remembered as a macro so that it holds for one translation and not for the next.
fn once_marker(path: &Path) -> String {
    let mut hasher = FxHasher::default();
    path.hash(&mut hasher);
    format!("__pragma_once_{:016x}", hasher.finish())
}

fn once(text: &str) -> bool {
    text.lines().take(400).any(|line| {
        let line = line.trim_start();
        line.starts_with('#')
            && line[1..]
                .trim_start()
                .strip_prefix("pragma")
                .is_some_and(|rest| rest.trim() == "once")
    })
}

/// Headers in the order in which they are read, none twice.
pub(crate) fn flatten(includes: &[Arc<Expanded>]) -> Vec<Arc<Expanded>> {
    fn walk(
        includes: &[Arc<Expanded>],
        seen: &mut FxHashSet<*const Expanded>,
        out: &mut Vec<Arc<Expanded>>,
    ) {
        for include in includes {
            if !seen.insert(Arc::as_ptr(include)) {
                continue;
            }
            walk(&include.includes, seen, out);
            out.push(Arc::clone(include));
        }
    }
    let mut out = Vec::new();
    walk(includes, &mut FxHashSet::default(), &mut out);
    out
}
