//! The text of files: from the disk, and from buffers that are open in an editor.

use std::fs;
use std::hash::Hasher;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use rustc_hash::{FxHashMap, FxHasher};

use crate::paths::normalised;
use crate::text::decode;

/// Where the text of files comes from. Paths are taken as spelled, after [`normalise`](crate::normalise).
pub trait Files: Send + Sync {
    /// The text of a file. None: there is no such file, or it is no text, or too large, or unreadable.
    fn read(&self, path: &Path) -> Option<Arc<SourceFile>>;

    /// Whether there is a file of that name; a folder is none.
    fn exists(&self, path: &Path) -> bool;

    /// Grows whenever an answer may have changed. An answer given after the generation was asked for is good
    /// for as long as the generation stays.
    fn generation(&self) -> u64;
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
    fn new(path: &Path, text: Arc<str>) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(text.as_bytes());
        Self {
            path: path.into(),
            hash: hasher.finish(),
            text,
        }
    }
}

/// No files at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> Option<Arc<SourceFile>> {
        None
    }

    fn exists(&self, _: &Path) -> bool {
        false
    }

    fn generation(&self) -> u64 {
        0
    }
}

/// Larger files are not read: 8 MiB.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// The text kept: 64 MiB.
const MAX_CACHED_BYTES: usize = 64 << 20;
/// The paths remembered; most are places where an include was looked for in vain.
const MAX_SLOTS: usize = 200_000;
/// How long an answer is given without a look at the disk.
const RECHECK_AFTER: Duration = Duration::from_millis(200);
/// A file this young when it was read may change once more without a new time stamp.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// The files on the disk, cached.
///
/// A file's stamp (time and length) is compared with the disk's when the last look at it is 200 ms ago; a
/// file that changes is noticed when it is asked for again. [`forget`](Self::forget) says that one changed.
#[derive(Debug, Default)]
pub struct DiskFiles {
    cache: Mutex<Cache>,
    generation: AtomicU64,
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
    checked: Instant,
    last_use: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
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
        // What was resolved by its absence has changed as well, whether or not it was asked for.
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file exists, and its content if that is wanted. The lock is not held while the disk is
    /// asked.
    fn look(&self, path: &Path, wants_text: bool) -> (bool, Option<Arc<SourceFile>>) {
        let path = normalised(path);
        let now = Instant::now();
        {
            let mut cache = self.cache();
            if let Some(slot) = cache.used(&path)
                && now.duration_since(slot.checked) < RECHECK_AFTER
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
        if cache.store(&path, stamp, content, now) {
            self.generation.fetch_add(1, Ordering::Release);
        }
        match cache.used(&path).and_then(|slot| slot.answer(wants_text)) {
            Some(answer) => answer,
            None => (stamp.is_some(), None),
        }
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        self.look(path, true).1
    }

    fn exists(&self, path: &Path) -> bool {
        self.look(path, false).0
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

impl Cache {
    /// Puts the disk's answer in; true if an answer given before may be wrong now.
    fn store(
        &mut self,
        path: &Path,
        stamp: Option<Stamp>,
        mut content: Content,
        now: Instant,
    ) -> bool {
        let mut changed = false;
        if let Some(old) = self.remove(path) {
            changed = old.stamp.is_some() != stamp.is_some();
            if matches!(content, Content::Unknown) && old.stamp == stamp && stamp.is_some() {
                // Only existence was asked for: what is known of the text stays.
                content = old.content;
            } else {
                changed |= old.content.differs(&content);
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
        changed | self.trim()
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
            let mut texts: Vec<&mut Slot> = self
                .slots
                .values_mut()
                .filter(|slot| slot.content.bytes() > 0)
                .collect();
            texts.sort_unstable_by_key(|slot| slot.last_use);
            for slot in texts {
                // Some room is made, so that the next file does not sort them all again.
                if self.text_bytes <= MAX_CACHED_BYTES / 4 * 3 {
                    break;
                }
                self.text_bytes -= slot.content.bytes();
                if let Content::Text { file, .. } = &slot.content {
                    slot.content = Content::Dropped { hash: file.hash };
                }
            }
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

    /// Whether somebody was told something else.
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
    let file = fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    // The length is asked of what is read: some files have none, some grow.
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return None;
    }
    decode(bytes).ok().map(Into::into)
}

/// Open buffers in front of other files: what is typed counts before it is saved.
#[derive(Debug, Default)]
pub struct OpenFiles<F> {
    inner: F,
    open: RwLock<FxHashMap<PathBuf, Arc<SourceFile>>>,
    changes: AtomicU64,
}

impl<F: Files> OpenFiles<F> {
    /// No buffer open yet.
    pub fn new(inner: F) -> Self {
        Self {
            inner,
            open: RwLock::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// The files behind the buffers.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// The text of an open buffer, of any size.
    pub fn set(&self, path: &Path, text: impl Into<Arc<str>>) {
        let path = normalised(path);
        let file = Arc::new(SourceFile::new(&path, text.into()));
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let old = open.insert(path.into_owned(), Arc::clone(&file));
        if old.is_none_or(|old| old.text != file.text) {
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// The buffer is closed: the file behind it counts again.
    pub fn close(&self, path: &Path) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.remove(&*normalised(path)).is_some() {
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    fn buffer(&self, path: &Path) -> Option<Arc<SourceFile>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&*normalised(path)).cloned()
    }
}

impl<F: Files> Files for OpenFiles<F> {
    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        self.buffer(path).or_else(|| self.inner.read(path))
    }

    fn exists(&self, path: &Path) -> bool {
        self.buffer(path).is_some() || self.inner.exists(path)
    }

    fn generation(&self) -> u64 {
        self.changes.load(Ordering::Acquire) + self.inner.generation()
    }
}
