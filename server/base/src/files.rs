//! The text of files: from the disk, and from buffers that are open in an editor.

use std::collections::VecDeque;
use std::fs;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustc_hash::{FxHashMap, FxHasher};

use crate::paths::{normalise, normalised};
use crate::regular::{open_regular, read_regular};
use crate::text::decode;
use crate::walk::walk;

/// Where the text of files comes from. Paths are taken as spelled, after [`normalise`](crate::normalise).
///
/// Files over others say only what they answer themselves: the rest is what the ones [behind](Files::behind) them answer.
pub trait Files {
    /// The files that answer what these do not; those that read by themselves have none behind them, which is [`NoFiles`].
    fn behind(&self) -> &dyn Files;

    /// The text of a file. None: there is no such file, or it is no text, or too large, or unreadable.
    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        self.behind().read(path)
    }

    /// Whether there is a file of that name; a folder is none.
    fn exists(&self, path: &Path) -> bool {
        self.behind().exists(path)
    }

    /// What lies in a folder, in the order of the names; nothing where there is no such folder.
    fn list(&self, folder: &Path) -> Arc<[Entry]> {
        self.behind().list(folder)
    }

    /// When a file was written last and how long it is, as the disk says now; nothing where there is no such file. Buffers
    /// have no stamp.
    fn stamp(&self, path: &Path) -> Option<Stamp> {
        self.behind().stamp(path)
    }

    /// A part of a file's bytes as they are on the disk now, as many of them as there are.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    fn bytes(&self, path: &Path, part: Range<u64>) -> io::Result<Vec<u8>> {
        self.behind().bytes(path, part)
    }

    /// Where a path leads once links are followed; nothing where it leads nowhere.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        self.behind().real(path)
    }

    /// The files in and below these folders that `wanted` takes by their paths, as many as `most`; what `.gitignore` excludes and
    /// what is hidden is left out.
    fn walk(
        &self,
        folders: &[PathBuf],
        most: usize,
        wanted: &dyn Fn(&Path) -> bool,
    ) -> Vec<PathBuf> {
        self.behind().walk(folders, most, wanted)
    }

    /// Grows whenever an answer may have changed. An answer given after the generation was asked for is good
    /// for as long as the generation stays.
    fn generation(&self) -> u64 {
        self.behind().generation()
    }

    /// Whether a file is being edited, so that its text changes again and again.
    fn is_open(&self, path: &Path) -> bool {
        self.behind().is_open(path)
    }

    /// The files whose text is all that changed since that generation; nothing where more may have, or it is not known.
    fn changed_since(&self, generation: u64) -> Option<Vec<PathBuf>> {
        self.behind().changed_since(generation)
    }

    /// Grows whenever it may have changed which files there are, and not where only the text of one did.
    fn existence(&self) -> u64 {
        self.behind().existence()
    }

    /// From here on every answer is as the files are now: something outside may have changed any of them.
    fn look_again(&self) {
        self.behind().look_again();
    }
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The folder's path as it was asked for, with the name.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
}

/// What a name in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A link: it is not followed, but a file may be behind it.
    Link,
}

impl Entry {
    /// True for a name that begins with a dot.
    pub fn is_hidden(&self) -> bool {
        let name = self.path.file_name();
        name.is_some_and(|name| name.as_encoded_bytes().first() == Some(&b'.'))
    }
}

/// A file's text, as read.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The normalised path that it was asked for by.
    pub path: Arc<Path>,
    /// The content; each byte that is not UTF-8 is a `?`.
    pub text: Arc<str>,
    /// A hash of the text: files of equal text have equal hashes, in this process.
    pub hash: u64,
}

impl SourceFile {
    /// A text under a normalised path.
    pub fn new(path: &Path, text: Arc<str>) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(text.as_bytes());
        Self {
            path: path.into(),
            hash: hasher.finish(),
            text,
        }
    }
}

/// By what a change of a file is noticed without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When it was written last, where the disk says.
    pub modified: Option<SystemTime>,
    /// Its bytes.
    pub length: u64,
}

/// No files at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn behind(&self) -> &dyn Files {
        self
    }

    fn read(&self, _: &Path) -> Option<Arc<SourceFile>> {
        None
    }

    fn exists(&self, _: &Path) -> bool {
        false
    }

    fn list(&self, _: &Path) -> Arc<[Entry]> {
        Arc::default()
    }

    fn stamp(&self, _: &Path) -> Option<Stamp> {
        None
    }

    fn bytes(&self, _: &Path, _: Range<u64>) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn real(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn walk(&self, _: &[PathBuf], _: usize, _: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
        Vec::new()
    }

    fn generation(&self) -> u64 {
        0
    }

    fn is_open(&self, _: &Path) -> bool {
        false
    }

    fn changed_since(&self, _: u64) -> Option<Vec<PathBuf>> {
        None
    }

    fn existence(&self) -> u64 {
        0
    }

    fn look_again(&self) {}
}

/// Larger files are not read: 8 MiB.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// The text kept: 64 MiB.
const MAX_CACHED_BYTES: usize = 64 << 20;
/// The paths remembered; most are places where an include was looked for in vain.
const MAX_SLOTS: usize = 200_000;
/// The files and folders walked in search of some.
const MAX_WALKED: usize = 1_000_000;
/// The last changes that are remembered one by one.
const MAX_LOGGED: usize = 64;
/// The names of one folder that are listed.
const MAX_ENTRIES: usize = 20_000;
/// The folders whose names are remembered.
const MAX_FOLDERS: usize = 4_096;
/// A file this young when it was read may change once more without a new time stamp.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// What lies in each folder, and the look that it was seen in.
type Listings = FxHashMap<PathBuf, (u64, Arc<[Entry]>)>;

/// The files on the disk, cached.
///
/// An answer stays what it was until someone says that a file changed ([`forget`](Self::forget)) or that any may have
/// ([`Files::look_again`]); then a file is read again where its stamp (time and length) is another one.
#[derive(Debug, Default)]
pub struct DiskFiles {
    cache: Mutex<Cache>,
    folders: Mutex<Listings>,
    generation: AtomicU64,
    existence: AtomicU64,
    /// Counts the looks: what was seen in an earlier one is compared with the disk again.
    look: AtomicU64,
}

#[derive(Debug, Default)]
struct Cache {
    slots: FxHashMap<Arc<Path>, Slot>,
    text_bytes: usize,
    /// Counts the answers, to know which slot was used last.
    uses: u64,
}

#[derive(Debug)]
struct Slot {
    /// None: there is no such file.
    stamp: Option<Stamp>,
    content: Content,
    /// The look in which it was compared with the disk.
    checked: u64,
    last_use: u64,
}

#[derive(Clone, Debug)]
enum Content {
    /// Only asked whether it exists.
    Unknown,
    /// No text, too large or unreadable.
    Refused,
    /// `settled`: the stamp is older than what was read, so an equal stamp means equal content.
    Text {
        file: Arc<SourceFile>,
        settled: bool,
    },
    /// Given up for its memory; what it was is told by its hash.
    Dropped { hash: u64 },
}

impl DiskFiles {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next question about this path goes to the disk: a file watcher or an editor says that it changed.
    pub fn forget(&self, path: &Path) {
        let path = normalised(path);
        let mut cache = self.cache();
        cache.remove(&path);
        if let Some(folder) = path.parent() {
            self.folders().remove(folder);
        }
        // What was resolved by its absence has changed as well, whether or not it was asked for.
        self.existence.fetch_add(1, Ordering::Release);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Lets go of the texts of all files: what is read again is compared with what it was.
    pub fn drop_texts(&self) {
        self.cache().drop_texts(0);
    }

    fn folders(&self) -> MutexGuard<'_, Listings> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file exists, and its content if that is wanted. The lock is not held while the disk is
    /// asked.
    fn look(&self, path: &Path, wants_text: bool) -> (bool, Option<Arc<SourceFile>>) {
        let path = normalised(path);
        let now = self.look.load(Ordering::Acquire);
        {
            let mut cache = self.cache();
            if let Some(slot) = cache.used(&path)
                && slot.checked == now
                && let Some(answer) = slot.answer(wants_text)
            {
                return answer;
            }
        }
        let stamp = stamp(&path);
        {
            let mut cache = self.cache();
            if let Some(slot) = cache.used(&path)
                && slot.stamp == stamp
                && (slot.is_settled() || !wants_text)
                && let Some(answer) = slot.answer(wants_text)
            {
                if slot.is_settled() {
                    slot.checked = now;
                }
                return answer;
            }
        }
        let content = match stamp {
            Some(stamp) if wants_text => read(&path, stamp),
            _ => Content::Unknown,
        };
        let mut cache = self.cache();
        let changed = cache.store(&path, stamp, content, now);
        if changed.existence {
            self.existence.fetch_add(1, Ordering::Release);
        }
        if changed.existence || changed.text {
            self.generation.fetch_add(1, Ordering::Release);
        }
        match cache.used(&path).and_then(|slot| slot.answer(wants_text)) {
            Some(answer) => answer,
            None => (stamp.is_some(), None),
        }
    }
}

impl Files for DiskFiles {
    fn behind(&self) -> &dyn Files {
        &NoFiles
    }

    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        self.look(path, true).1
    }

    fn exists(&self, path: &Path) -> bool {
        self.look(path, false).0
    }

    fn list(&self, folder: &Path) -> Arc<[Entry]> {
        let folder = normalised(folder);
        let now = self.look.load(Ordering::Acquire);
        if let Some((look, entries)) = self.folders().get(&*folder)
            && *look == now
        {
            return Arc::clone(entries);
        }
        let entries = listed(&folder);
        let mut folders = self.folders();
        if folders.len() >= MAX_FOLDERS {
            folders.clear();
        }
        folders.insert(folder.into_owned(), (now, Arc::clone(&entries)));
        entries
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        stamp(path)
    }

    fn bytes(&self, path: &Path, part: Range<u64>) -> io::Result<Vec<u8>> {
        let mut file = open_regular(path)?;
        file.seek(SeekFrom::Start(part.start))?;
        let mut bytes = Vec::new();
        file.take(part.end - part.start).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        fs::canonicalize(path).ok()
    }

    fn walk(
        &self,
        folders: &[PathBuf],
        most: usize,
        wanted: &dyn Fn(&Path) -> bool,
    ) -> Vec<PathBuf> {
        // A folder that is no git repository may have a .gitignore just as well.
        let walk = walk(folders, true);
        // Links to files are files here: only links to folders could lead in circles.
        let found = walk.take(MAX_WALKED).filter(|entry| {
            wanted(entry.path()) && entry.file_type().is_some_and(|kind| !kind.is_dir())
        });
        found
            .take(most)
            .map(|entry| normalise(entry.path()))
            .collect()
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn existence(&self) -> u64 {
        self.existence.load(Ordering::Acquire)
    }

    fn look_again(&self) {
        self.look.fetch_add(1, Ordering::Release);
        self.existence.fetch_add(1, Ordering::Release);
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// Which answers given before may be wrong now.
#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    existence: bool,
    text: bool,
}

/// What lies in a folder. The whole of it is listed before it is cut: which names come first is the disk's affair.
fn listed(folder: &Path) -> Arc<[Entry]> {
    let Ok(names) = fs::read_dir(folder) else {
        return Arc::default();
    };
    let mut entries: Vec<Entry> = names
        .flatten()
        .filter_map(|entry| {
            let kind = entry.file_type().ok()?;
            let kind = if kind.is_dir() {
                EntryKind::Folder
            } else if kind.is_file() {
                EntryKind::File
            } else if kind.is_symlink() {
                EntryKind::Link
            } else {
                return None;
            };
            let path = entry.path();
            Some(Entry { path, kind })
        })
        .collect();
    entries.sort_unstable();
    entries.truncate(MAX_ENTRIES);
    entries.into()
}

impl Cache {
    /// Puts the disk's answer in, and says what that changes.
    fn store(
        &mut self,
        path: &Path,
        stamp: Option<Stamp>,
        mut content: Content,
        now: u64,
    ) -> Changed {
        let mut changed = Changed::default();
        if let Some(old) = self.remove(path) {
            changed.existence = old.stamp.is_some() != stamp.is_some();
            if matches!(content, Content::Unknown) && old.stamp == stamp && stamp.is_some() {
                // Only existence was asked for: what is known of the text stays.
                content = old.content;
            } else {
                changed.text = old.content.differs(&content);
            }
        }
        self.insert(
            path,
            Slot {
                stamp,
                content,
                checked: now,
                last_use: 0,
            },
        );
        changed.existence |= self.trim();
        changed
    }

    /// Gives up the texts that were not used for longest, until no more than these bytes are left.
    fn drop_texts(&mut self, left: usize) {
        let mut texts: Vec<&mut Slot> = self
            .slots
            .values_mut()
            .filter(|slot| slot.content.bytes() > 0)
            .collect();
        texts.sort_unstable_by_key(|slot| slot.last_use);
        for slot in texts {
            if self.text_bytes <= left {
                break;
            }
            self.text_bytes -= slot.content.bytes();
            if let Content::Text { file, .. } = &slot.content {
                slot.content = Content::Dropped { hash: file.hash };
            }
        }
    }

    fn used(&mut self, path: &Path) -> Option<&mut Slot> {
        self.uses += 1;
        let slot = self.slots.get_mut(path)?;
        slot.last_use = self.uses;
        Some(slot)
    }

    fn insert(&mut self, path: &Path, mut slot: Slot) {
        self.uses += 1;
        slot.last_use = self.uses;
        self.text_bytes += slot.content.bytes();
        let key = match &slot.content {
            Content::Text { file, .. } => Arc::clone(&file.path),
            _ => path.into(),
        };
        self.slots.insert(key, slot);
    }

    fn remove(&mut self, path: &Path) -> Option<Slot> {
        let slot = self.slots.remove(path)?;
        self.text_bytes -= slot.content.bytes();
        Some(slot)
    }

    /// Gives up what was not used for longest where there is too much. True if paths were given up: changes
    /// of those are no longer noticed.
    fn trim(&mut self) -> bool {
        if self.text_bytes > MAX_CACHED_BYTES {
            // Some room is made, so that the next file does not sort them all again.
            self.drop_texts(MAX_CACHED_BYTES / 4 * 3);
        }
        if self.slots.len() <= MAX_SLOTS {
            return false;
        }
        let mut uses: Vec<u64> = self.slots.values().map(|slot| slot.last_use).collect();
        let middle = uses.len() / 2;
        let (_, &mut median, _) = uses.select_nth_unstable(middle);
        self.slots.retain(|_, slot| slot.last_use > median);
        self.text_bytes = self.slots.values().map(|slot| slot.content.bytes()).sum();
        true
    }
}

impl Slot {
    /// The answer that the slot can give without the disk.
    fn answer(&self, wants_text: bool) -> Option<(bool, Option<Arc<SourceFile>>)> {
        match (&self.content, self.stamp) {
            (_, None) => Some((false, None)),
            (_, Some(_)) if !wants_text => Some((true, None)),
            (Content::Text { file, .. }, _) => Some((true, Some(Arc::clone(file)))),
            (Content::Refused, _) => Some((true, None)),
            (Content::Unknown | Content::Dropped { .. }, _) => None,
        }
    }

    fn is_settled(&self) -> bool {
        !matches!(self.content, Content::Text { settled: false, .. })
    }
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            // A path and a slot cost something too: a million empty files are not free.
            Self::Text { file, .. } => file.text.len() + 64,
            _ => 0,
        }
    }

    fn hash(&self) -> Option<u64> {
        match self {
            Self::Text { file, .. } => Some(file.hash),
            Self::Dropped { hash } => Some(*hash),
            Self::Unknown | Self::Refused => None,
        }
    }

    /// Whether someone was told something else.
    fn differs(&self, new: &Self) -> bool {
        match self {
            Self::Unknown => false,
            _ => matches!(new, Self::Unknown) || self.hash() != new.hash(),
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(Stamp {
        modified: metadata.modified().ok(),
        length: metadata.len(),
    })
}

fn read(path: &Path, stamp: Stamp) -> Content {
    let started = SystemTime::now();
    match read_text(path) {
        Some(text) => {
            let age = stamp
                .modified
                .and_then(|modified| started.duration_since(modified).ok());
            let settled = age.is_some_and(|age| age > SETTLED_AFTER);
            Content::Text {
                file: Arc::new(SourceFile::new(path, text)),
                settled,
            }
        }
        None => Content::Refused,
    }
}

fn read_text(path: &Path) -> Option<Arc<str>> {
    let bytes = read_regular(path, MAX_FILE_BYTES).ok()?;
    decode(bytes).ok().map(Into::into)
}

/// Open buffers in front of other files: what is typed counts before it is saved.
#[derive(Debug, Default)]
pub struct OpenFiles<F> {
    inner: F,
    open: RwLock<FxHashMap<PathBuf, Buffer>>,
    changes: AtomicU64,
    existence: AtomicU64,
    /// The last changes of texts that were read, each with the generation that it began.
    log: Mutex<VecDeque<(u64, PathBuf)>>,
}

#[derive(Debug)]
struct Buffer {
    file: Arc<SourceFile>,
    /// Whether this text was read: a change of a text that was not read changes no answer.
    read: AtomicBool,
}

impl<F: Files> OpenFiles<F> {
    /// No buffer open yet.
    pub fn new(inner: F) -> Self {
        Self {
            inner,
            open: RwLock::default(),
            changes: AtomicU64::new(0),
            existence: AtomicU64::new(0),
            log: Mutex::default(),
        }
    }

    /// The files behind the buffers.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// The text that others read of a file now. A caller of this is not one of them: it does not count as read.
    pub fn shared_text(&self, path: &Path) -> Option<Arc<str>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let buffer = open.get(&*normalised(path));
        let buffer = buffer.map(|buffer| Arc::clone(&buffer.file.text));
        buffer.or_else(|| Some(Arc::clone(&self.inner.read(path)?.text)))
    }

    /// The text of an open buffer, of any size. True where an answer given before may be wrong now.
    pub fn set(&self, path: &Path, text: impl Into<Arc<str>>) -> bool {
        let path = normalised(path);
        let text = text.into();
        // The text on the disk may have been read.
        let behind = (!self.is_open(&path)).then(|| {
            let file = self.inner.read(&path);
            let same = file.is_some_and(|file| file.text == text);
            (same, self.inner.exists(&path))
        });
        // A text that the disk has as well may have been read there.
        let read = matches!(behind, Some((true, _)));
        let buffer = Buffer {
            file: Arc::new(SourceFile::new(&path, text)),
            read: AtomicBool::new(read),
        };
        // With the lock held no other thread can read the old text: one that read it after the question would keep it.
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let (changes, exists) = match (open.get(&*path), behind) {
            (Some(old), _) if old.file.text == buffer.file.text => return false,
            (Some(old), _) => (old.read.load(Ordering::Acquire), true),
            (None, Some((same, exists))) => (!same, exists),
            (None, None) => (true, false),
        };
        // Counted before anybody can read the new text: who asks in between asks once more than he need.
        if changes {
            self.count(&path);
        }
        open.insert(path.into_owned(), buffer);
        drop(open);
        if !exists {
            self.existence.fetch_add(1, Ordering::Release);
        }
        changes
    }

    /// The buffer is closed: the file behind it counts again. True where an answer given before may be wrong now.
    pub fn close(&self, path: &Path) -> bool {
        let path = normalised(path);
        let closed = {
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            open.remove(&*path)
        };
        let Some(closed) = closed else {
            return false;
        };
        let behind = self.inner.read(&path);
        if behind
            .as_ref()
            .is_some_and(|file| file.text == closed.file.text)
        {
            return false;
        }
        if !self.inner.exists(&path) {
            self.existence.fetch_add(1, Ordering::Release);
        }
        self.count(&path);
        true
    }

    /// One text changed, and nothing else.
    fn count(&self, path: &Path) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Release);
        if log.len() == MAX_LOGGED {
            log.pop_front();
        }
        log.push_back((self.generation(), path.to_owned()));
    }

    fn buffer(&self, path: &Path) -> Option<Arc<SourceFile>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let buffer = open.get(&*normalised(path))?;
        buffer.read.store(true, Ordering::Release);
        Some(Arc::clone(&buffer.file))
    }
}

impl<F: Files> Files for OpenFiles<F> {
    fn behind(&self) -> &dyn Files {
        &self.inner
    }

    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        self.buffer(path).or_else(|| self.inner.read(path))
    }

    fn exists(&self, path: &Path) -> bool {
        self.is_open(path) || self.inner.exists(path)
    }

    fn list(&self, folder: &Path) -> Arc<[Entry]> {
        let folder = normalised(folder);
        let below = self.inner.list(&folder);
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let mut unsaved: Vec<Entry> = open
            .keys()
            .filter(|path| path.parent() == Some(&folder))
            .filter(|path| {
                below
                    .binary_search_by(|entry| entry.path.cmp(path))
                    .is_err()
            })
            .map(|path| Entry {
                path: path.clone(),
                kind: EntryKind::File,
            })
            .collect();
        if unsaved.is_empty() {
            return below;
        }
        unsaved.extend(below.iter().cloned());
        unsaved.sort_unstable();
        unsaved.into()
    }

    fn generation(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
            + self.existence.load(Ordering::Acquire)
            + self.inner.generation()
    }

    fn is_open(&self, path: &Path) -> bool {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.contains_key(&*normalised(path))
    }

    fn changed_since(&self, generation: u64) -> Option<Vec<PathBuf>> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = usize::try_from(self.generation().checked_sub(generation)?).ok()?;
        let start = log.len().checked_sub(changes)?;
        // Where something else changed in between, the generations are not one behind the other.
        let mut expected = generation;
        let mut paths = Vec::new();
        for (at, path) in log.range(start..) {
            expected += 1;
            if *at != expected {
                return None;
            }
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        Some(paths)
    }

    fn existence(&self) -> u64 {
        self.existence.load(Ordering::Acquire) + self.inner.existence()
    }
}
