//! Numbers in memory, as far as they are known.

use std::rc::Rc;

use super::kinds::Number;
use warplens_ir::Type;

/// Bytes of one array that are followed.
pub(crate) const LARGEST: u64 = 32 << 20;

/// Numbers one behind the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Data {
    /// What an element is; `None` where nothing has said it, as behind `memset`.
    pub(crate) element: Option<Type>,
    pub(crate) bytes: Vec<u8>,
    /// A bit for each byte that is not known; empty where all are known.
    open: Vec<u64>,
}

impl Data {
    /// Bytes that are all known.
    pub(crate) fn known(element: Option<Type>, bytes: Vec<u8>) -> Data {
        Data {
            element,
            bytes,
            open: Vec::new(),
        }
    }

    /// That many bytes of which nothing is known.
    pub(crate) fn unknown(element: Option<Type>, bytes: usize) -> Data {
        Data {
            element,
            bytes: vec![0; bytes],
            open: vec![u64::MAX; bytes.div_ceil(64)],
        }
    }

    /// Whether that many bytes from there on are known.
    pub(crate) fn is_known(&self, from: usize, bytes: usize) -> bool {
        if self.open.is_empty() {
            return true;
        }
        match within_a_word(from, bytes) {
            Some(mask) => self.open[from / 64] & mask == 0,
            None => (from..from + bytes).all(|at| self.open[at / 64] >> (at % 64) & 1 == 0),
        }
    }

    /// Whether all of it is known.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_known(0, self.bytes.len())
    }

    fn mark(&mut self, from: usize, bytes: usize, known: bool) {
        if self.open.is_empty() {
            if known {
                return;
            }
            self.open = vec![0; self.bytes.len().div_ceil(64)];
        }
        let mut at = from;
        while at < from + bytes {
            let count = (from + bytes - at).min(64 - at % 64);
            let mask = (u64::MAX >> (64 - count)) << (at % 64);
            if known {
                self.open[at / 64] &= !mask;
            } else {
                self.open[at / 64] |= mask;
            }
            at += count;
        }
    }

    /// The number there: its bits as a register holds them, and whether they are known; `None` past the end.
    pub(crate) fn load(&self, from: usize, kind: Number) -> Option<(i64, bool)> {
        let size = kind.size();
        let bytes = self.bytes.get(from..from.checked_add(size)?)?;
        let mut word = [0u8; 8];
        word[..size].copy_from_slice(bytes);
        let known = self.is_known(from, size);
        Some((kind.widened(u64::from_le_bytes(word)), known))
    }

    /// Puts a number there; false past the end.
    pub(crate) fn store(&mut self, from: usize, kind: Number, value: Option<i64>) -> bool {
        let size = kind.size();
        let Some(bytes) = self.bytes.get_mut(from..from.saturating_add(size)) else {
            return false;
        };
        if let Some(value) = value {
            let word = kind.narrowed(value).to_le_bytes();
            bytes.copy_from_slice(&word[..size]);
        }
        self.mark(from, size, value.is_some());
        true
    }

    /// Makes it that many bytes; what is new is 0.
    pub(crate) fn resize(&mut self, bytes: usize) {
        let before = self.bytes.len();
        self.bytes.resize(bytes, 0);
        if !self.open.is_empty() {
            self.open.resize(bytes.div_ceil(64), 0);
            if bytes > before {
                self.mark(before, bytes - before, true);
            }
        }
    }

    /// Copies a part of another one; false where either is too small.
    pub(crate) fn copy(&mut self, to: usize, other: &Data, from: usize, bytes: usize) -> bool {
        let (Some(source), Some(target)) = (
            other.bytes.get(from..from.saturating_add(bytes)),
            self.bytes.get_mut(to..to.saturating_add(bytes)),
        ) else {
            return false;
        };
        target.copy_from_slice(source);
        if other.open.is_empty() {
            self.mark(to, bytes, true);
        } else {
            for at in 0..bytes {
                self.mark(to + at, 1, other.is_known(from + at, 1));
            }
        }
        if self.element.is_none() {
            self.element.clone_from(&other.element);
        }
        true
    }

    /// Sets bytes; false past the end.
    pub(crate) fn fill(&mut self, to: usize, bytes: usize, value: Option<u8>) -> bool {
        let Some(target) = self.bytes.get_mut(to..to.saturating_add(bytes)) else {
            return false;
        };
        target.fill(value.unwrap_or(0));
        self.mark(to, bytes, value.is_some());
        true
    }

    /// Nothing is left to be told apart where all bytes are known.
    pub(crate) fn settled(mut self) -> Data {
        if !self.open.is_empty() && self.is_whole() {
            self.open = Vec::new();
        }
        self
    }
}

/// The bits of some bytes where these are in one word.
fn within_a_word(from: usize, bytes: usize) -> Option<u64> {
    ((1..=64).contains(&bytes) && from % 64 + bytes <= 64)
        .then(|| (u64::MAX >> (64 - bytes)) << (from % 64))
}

/// Numbers in memory that variables share.
#[derive(Debug, Clone)]
pub(crate) struct DataRef(pub(crate) Rc<Data>);

/// Arrays up to this many bytes are compared by what they hold, larger ones by identity.
const COMPARED: usize = 4096;

impl PartialEq for DataRef {
    fn eq(&self, other: &DataRef) -> bool {
        Rc::ptr_eq(&self.0, &other.0) || (self.0.bytes.len() <= COMPARED && *self.0 == *other.0)
    }
}

impl DataRef {
    pub(crate) fn new(data: Data) -> DataRef {
        DataRef(Rc::new(data))
    }
}
