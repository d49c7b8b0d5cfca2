//! Headers as they read under macros, kept by content.
//!
//! In: a header's file, text and search path, and the macros before it. Out: an earlier reading under macros that do not differ in what
//! the header looks at. Why by content: one reading serves every file that includes the header, under macros of which most are
//! others, so what it is a function of is known only once it was read (its [`Trace`]); a query would be one reading for each set of
//! macros. What holds: who uses a reading looks at each file that it read, so that the query it works for depends on them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;
use warplens_syntax::Expanded;
use warplens_syntax::preprocess::{Macros, Trace};

/// Bytes of headers kept, as preprocessed, with their trees; the least used go when there are more.
const MOST_KEPT: usize = 96 << 20;
/// Readings of one header under different macros that are kept.
const MOST_READINGS: usize = 8;
/// Bytes, counted alike, of readings that serve no other file, but whose trees the next ones start from.
const MOST_CUT: usize = 16 << 20;

/// The readings of each header, and the bytes of all of them.
#[derive(Default)]
pub(crate) struct Headers {
    pub(crate) by_key: FxHashMap<u64, Vec<Arc<Header>>>,
    /// The last reading of each file, as long as it is kept: where the tree of the next one starts from.
    latest: FxHashMap<Arc<Path>, Weak<Expanded>>,
    /// Readings in which something was left out because not all fits, the oldest first, and their bytes.
    cut: VecDeque<Arc<Header>>,
    cut_bytes: usize,
    pub(crate) bytes: usize,
    /// Counts up with each use.
    pub(crate) clock: u64,
    /// How many headers were read, and how often a reading served again.
    pub(crate) read: usize,
    pub(crate) shared: usize,
}

impl Headers {
    /// The last reading of a file, of whatever text and under whatever macros.
    pub(crate) fn latest(&self, path: &Path) -> Option<Arc<Expanded>> {
        self.latest.get(path)?.upgrade()
    }

    /// Keeps the tree of a reading that depends on what was read before it.
    pub(crate) fn keep_cut(&mut self, header: &Arc<Header>) {
        let text = &header.text;
        self.latest
            .insert(Arc::clone(&text.path), Arc::downgrade(text));
        self.cut_bytes += header.weight;
        self.cut.push_back(Arc::clone(header));
        while self.cut_bytes > MOST_CUT
            && let Some(oldest) = self.cut.pop_front()
        {
            self.cut_bytes -= oldest.weight;
        }
    }

    /// Keeps a reading; those that were not used for longest make room.
    pub(crate) fn keep(&mut self, key: u64, header: &Arc<Header>) {
        self.clock += 1;
        self.read += 1;
        header.used.store(self.clock, Ordering::Relaxed);
        self.bytes += header.weight;
        let text = &header.text;
        self.latest
            .insert(Arc::clone(&text.path), Arc::downgrade(text));
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
        self.latest.retain(|_, text| text.strong_count() > 0);
    }
}

/// A header that is not there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Absent {
    /// As the line has it, without quotes.
    pub(crate) spelled: String,
    /// Whether that was in angle brackets.
    pub(crate) system: bool,
    /// The file that includes it.
    pub(crate) from: PathBuf,
    /// Whether it lies outside of what may be read.
    pub(crate) outside: bool,
}

/// A header as it reads under certain macros.
pub(crate) struct Header {
    pub(crate) text: Arc<Expanded>,
    /// The macros it was read under.
    pub(crate) start: Macros,
    /// The macros at its end.
    pub(crate) end: Macros,
    /// Which of them matter to it, and which it changes.
    pub(crate) trace: Arc<Trace>,
    /// When it was last used, by the clock of [`Headers`].
    pub(crate) used: AtomicU64,
    /// Every file it depends on, with the hash of its text.
    pub(crate) reads: Vec<(PathBuf, u64)>,
    pub(crate) missing: Vec<String>,
    /// What it and all it includes looked for and did not find.
    pub(crate) absent: Vec<Absent>,
    /// What it leaves out although it includes it, because that was being read when the header was: it may include the header.
    pub(crate) within: Vec<PathBuf>,
    /// Bytes of it and of all it includes.
    pub(crate) bytes: usize,
    /// The most of them that were held against the limit at one time; without end where one did not fit.
    pub(crate) peak: usize,
    /// Bytes that its text and its tree take in memory, about.
    pub(crate) weight: usize,
    /// Definitions assumed in it and in all it includes.
    pub(crate) assumed: Vec<(String, String)>,
    /// Something would have been assumed in it, or in what it includes, had that been asked for.
    pub(crate) withheld: bool,
    /// The generation of the files for which all that was last seen to hold.
    pub(crate) seen: AtomicU64,
}
