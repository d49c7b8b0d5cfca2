//! Values by the content that they are made of.
//!
//! In: a hash of all that a value depends on, and how to make it. Out: the value, made once. What holds: a value never changes, so
//! nothing here is ever out of date; the least used half goes when there are more than have room, and with the documents that are
//! closed what was made for them.
//!
//! Why by content, when files' own queries ([`crate::database`]) are by what they read: a kernel's trees, IR and analysis are the
//! same whichever text they stand in. Undoing an edit, the edited copies that prove a code action, both sides of a comparison and
//! the files of a folder that include one header share them, and a document that is being typed in changes its revision at every
//! keystroke but the content of one kernel in fifty. The database gives memory back when an input changes; a command that looks at
//! ten thousand files changes none.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHasher};

/// What was computed once, by content, and how many values have room.
#[derive(Debug)]
pub(crate) struct Memo<K, V>(Mutex<Dated<K, V>>, AtomicUsize);

/// What was used before the last few documents were closed is let go of: one that is closed is often opened again.
const CLOSED: usize = 4;

/// Values with the moment of their last use, that clock, and what it said when documents were closed.
#[derive(Debug)]
struct Dated<K, V> {
    values: FxHashMap<K, (u64, Arc<V>)>,
    clock: u64,
    closed: VecDeque<u64>,
}

impl<K: Hash + Eq + Copy, V> Memo<K, V> {
    pub(crate) fn new(most: usize) -> Self {
        let nothing = Dated {
            values: FxHashMap::default(),
            clock: 0,
            closed: VecDeque::new(),
        };
        Memo(Mutex::new(nothing), AtomicUsize::new(most))
    }

    /// Room for this many values from now on.
    pub(crate) fn set_room(&self, most: usize) {
        self.1.store(most, Ordering::Relaxed);
    }

    /// A file has this many of these. What it has now must outlast what it had before: else each keystroke in a file larger
    /// than the room would compute again what it throws away.
    pub(crate) fn make_room(&self, live: usize) {
        self.1.fetch_max(2 * live + live / 2, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, key: K) -> Option<Arc<V>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let clock = kept.clock;
        kept.values.get_mut(&key).map(|(used, value)| {
            *used = clock;
            Arc::clone(value)
        })
    }

    pub(crate) fn put(&self, key: K, value: V) -> Arc<V> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let clock = kept.clock;
        let map = &mut kept.values;
        if map.len() >= self.1.load(Ordering::Relaxed) {
            let mut ages: Vec<u64> = map.values().map(|(used, _)| *used).collect();
            ages.sort_unstable();
            let limit = ages[ages.len() / 2];
            map.retain(|_, (used, _)| *used > limit);
        }
        match map.entry(key) {
            Entry::Occupied(entry) => Arc::clone(&entry.get().1),
            Entry::Vacant(entry) => Arc::clone(&entry.insert((clock, Arc::new(value))).1),
        }
    }

    pub(crate) fn get_or(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        self.get(key).unwrap_or_else(|| self.put(key, make()))
    }
}

/// What is kept, whatever it is.
pub(crate) trait Kept {
    /// A document was closed: what was last used some documents ago goes, unless a caller holds it.
    fn closed(&self);
    /// Everything goes.
    fn clear(&self);
}

impl<K: Hash + Eq + Copy, V> Kept for Memo<K, V> {
    fn closed(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = kept.clock;
        kept.closed.push_back(now);
        if kept.closed.len() <= CLOSED {
            return;
        }
        if let Some(limit) = kept.closed.pop_front() {
            kept.values
                .retain(|_, (used, value)| *used > limit || Arc::strong_count(value) > 1);
        }
    }

    fn clear(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.values = FxHashMap::default();
    }
}

pub(crate) fn hash(parts: &[&dyn HashInto]) -> u64 {
    let mut hasher = FxHasher::default();
    for part in parts {
        part.hash_into(&mut hasher);
    }
    hasher.finish()
}

/// Anything that hashes, as an object.
pub(crate) trait HashInto {
    fn hash_into(&self, hasher: &mut FxHasher);
}

impl<T: Hash + ?Sized> HashInto for T {
    fn hash_into(&self, hasher: &mut FxHasher) {
        self.hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_for_closed_documents_goes_and_what_is_held_stays() {
        let memo: Memo<usize, usize> = Memo::new(100);
        let held = memo.put(0, 0);
        for document in 1..=CLOSED + 1 {
            memo.put(document, document);
            memo.get_or(CLOSED + 9, || 9);
            memo.closed();
        }
        memo.closed();
        assert_eq!(memo.get(0), Some(held));
        assert_eq!(memo.get(CLOSED + 9), Some(Arc::new(9)));
        assert_eq!(memo.get(CLOSED + 1), Some(Arc::new(CLOSED + 1)));
        assert_eq!(memo.get(2), None);
    }
}
