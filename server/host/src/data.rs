//! Numbers in memory, as far as they are known.

use std::rc::Rc;
use std::sync::Arc;

use super::kinds::Number;
use warplens_ir::Type;

/// Bytes of one array that are followed.
pub(crate) const LARGEST: u64 = 32 << 20;

/// Numbers one behind the other. Only the bytes up to the last one that was written are kept: what a program only allocates, or
/// fills with one value, costs nothing.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    /// What an element is; `None` where nothing has said it, as behind `memset`.
    pub(crate) element: Option<Type>,
    /// Bytes in all.
    length: usize,
    /// The first of them.
    bytes: Vec<u8>,
    /// A bit for each of these that is not known; empty where all are known.
    open: Vec<u64>,
    /// What each byte behind these is; `None`: not known.
    rest: Option<u8>,
}

impl Data {
    /// Bytes that are all known.
    pub(crate) fn known(element: Option<Type>, bytes: Vec<u8>) -> Data {
        Data {
            element,
            length: bytes.len(),
            bytes,
            open: Vec::new(),
            rest: Some(0),
        }
    }

    /// That many bytes, each of that value; `None`: not known.
    pub(crate) fn filled(element: Option<Type>, length: usize, byte: Option<u8>) -> Data {
        Data {
            element,
            length,
            bytes: Vec::new(),
            open: Vec::new(),
            rest: byte,
        }
    }

    /// That many bytes of which nothing is known.
    pub(crate) fn unknown(element: Option<Type>, length: usize) -> Data {
        Data::filled(element, length, None)
    }

    /// Bytes in all.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The bytes from there on, where all of them are known.
    pub(crate) fn bytes_from(&self, from: usize) -> Option<Arc<[u8]>> {
        let count = self.length.checked_sub(from)?;
        if !self.is_known(from, count) {
            return None;
        }
        let kept = self.bytes.get(from..).unwrap_or_default();
        if kept.len() == count {
            return Some(kept.into());
        }
        let mut bytes = Vec::with_capacity(count);
        bytes.extend_from_slice(kept);
        bytes.resize(count, self.rest.unwrap_or(0));
        Some(bytes.into())
    }

    /// Whether that many bytes from there on are known.
    pub(crate) fn is_known(&self, from: usize, bytes: usize) -> bool {
        let end = from + bytes;
        if end > self.bytes.len() && bytes > 0 && self.rest.is_none() {
            return false;
        }
        let end = end.min(self.bytes.len());
        if self.open.is_empty() || from >= end {
            return true;
        }
        match within_a_word(from, end - from) {
            Some(mask) => self.open[from / 64] & mask == 0,
            None => (from..end).all(|at| self.open[at / 64] >> (at % 64) & 1 == 0),
        }
    }

    /// Keeps the bytes up to there one by one.
    fn reach(&mut self, end: usize) {
        let before = self.bytes.len();
        if end <= before {
            return;
        }
        let now = end.max(before * 2).min(self.length);
        self.bytes.resize(now, self.rest.unwrap_or(0));
        if !self.open.is_empty() {
            self.open.resize(now.div_ceil(64), 0);
        }
        if self.rest.is_none() {
            self.mark(before, now - before, false);
        }
    }

    /// Marks bytes that are kept.
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
        let end = from.checked_add(size).filter(|end| *end <= self.length)?;
        let mut word = [0u8; 8];
        match self.bytes.get(from..end) {
            Some(bytes) => word[..size].copy_from_slice(bytes),
            None => {
                word[..size].fill(self.rest.unwrap_or(0));
                let kept = self.bytes.get(from..).unwrap_or_default();
                word[..kept.len()].copy_from_slice(kept);
            }
        }
        let known = self.is_known(from, size);
        Some((kind.widened(u64::from_le_bytes(word)), known))
    }

    /// Puts a number there; false past the end.
    pub(crate) fn store(&mut self, from: usize, kind: Number, value: Option<i64>) -> bool {
        let size = kind.size();
        let end = from.saturating_add(size);
        if end > self.length {
            return false;
        }
        // Not known it is already.
        if value.is_none() && self.rest.is_none() && from >= self.bytes.len() {
            return true;
        }
        self.reach(end);
        if let Some(value) = value {
            let word = kind.narrowed(value).to_le_bytes();
            self.bytes[from..end].copy_from_slice(&word[..size]);
        }
        self.mark(from, size, value.is_some());
        true
    }

    /// Makes it that many bytes; what is new is 0.
    pub(crate) fn resize(&mut self, length: usize) {
        if length > self.length && self.rest != Some(0) {
            self.reach(self.length);
        }
        if length > self.length {
            self.rest = Some(0);
        }
        self.length = length;
        if self.bytes.len() > length {
            self.bytes.truncate(length);
            self.open.truncate(length.div_ceil(64));
            if let (Some(last), 1..) = (self.open.last_mut(), length % 64) {
                *last &= u64::MAX >> (64 - length % 64);
            }
        }
    }

    /// Copies a part of another one; false where either is too small.
    pub(crate) fn copy(&mut self, to: usize, other: &Data, from: usize, bytes: usize) -> bool {
        let (end, last) = (to.saturating_add(bytes), from.saturating_add(bytes));
        if end > self.length || last > other.length {
            return false;
        }
        if self.element.is_none() {
            self.element.clone_from(&other.element);
        }
        if (to, from, bytes) == (0, 0, self.length) && other.length == bytes {
            self.bytes.clone_from(&other.bytes);
            self.open.clone_from(&other.open);
            self.rest = other.rest;
            return true;
        }
        // The bytes that the other one keeps one by one, then those that are all alike.
        let alike = other.bytes.len().clamp(from, last);
        let kept = alike - from;
        self.reach(if kept > 0 { to + kept } else { 0 });
        if kept > 0 {
            self.bytes[to..to + kept].copy_from_slice(&other.bytes[from..alike]);
        }
        if other.open.is_empty() {
            self.mark(to, kept, true);
        } else {
            for at in 0..kept {
                self.mark(to + at, 1, other.is_known(from + at, 1));
            }
        }
        self.fill(to + kept, bytes - kept, other.rest)
    }

    /// Sets bytes; false past the end.
    pub(crate) fn fill(&mut self, to: usize, bytes: usize, value: Option<u8>) -> bool {
        let end = to.saturating_add(bytes);
        if end > self.length {
            return false;
        }
        if bytes == 0 {
            return true;
        }
        if end == self.length && to <= self.bytes.len() {
            self.resize(to);
            (self.length, self.rest) = (end, value);
            return true;
        }
        if value == self.rest && to >= self.bytes.len() {
            return true;
        }
        self.reach(end);
        self.bytes[to..end].fill(value.unwrap_or(0));
        self.mark(to, bytes, value.is_some());
        true
    }

    /// Nothing is left to be told apart where all bytes are known.
    pub(crate) fn settled(mut self) -> Data {
        if !self.open.is_empty() && self.is_known(0, self.bytes.len()) {
            self.open = Vec::new();
        }
        self
    }
}

/// Equal where they hold the same, however much of it is kept.
impl PartialEq for Data {
    fn eq(&self, other: &Data) -> bool {
        let byte = |data: &Data, at: usize| {
            let held = data.bytes.get(at).copied().or(data.rest);
            held.filter(|_| data.is_known(at, 1))
        };
        let kept = self.bytes.len().max(other.bytes.len());
        self.element == other.element
            && self.length == other.length
            && (kept == self.length || self.rest == other.rest)
            && (0..kept).all(|at| byte(self, at) == byte(other, at))
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

/// Arrays up to this many bytes, and those whose bytes are all alike, are compared by what they hold, others by identity.
const COMPARED: usize = 4096;

impl PartialEq for DataRef {
    fn eq(&self, other: &DataRef) -> bool {
        let cheap = |data: &Data| data.length <= COMPARED || data.bytes.is_empty();
        Rc::ptr_eq(&self.0, &other.0) || cheap(&self.0) && cheap(&other.0) && *self.0 == *other.0
    }
}

impl DataRef {
    pub(crate) fn new(data: Data) -> DataRef {
        DataRef(Rc::new(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Number = Number::Int {
        bits: 32,
        signed: true,
    };

    /// The same with every byte kept one by one.
    #[derive(Clone)]
    struct Plain(Vec<Option<u8>>);

    impl Plain {
        fn of(data: &Data) -> Plain {
            let byte = |at| {
                let known = data.is_known(at, 1);
                let held = data.bytes.get(at).copied().or(data.rest);
                held.filter(|_| known)
            };
            Plain((0..data.len()).map(byte).collect())
        }
    }

    #[test]
    fn it_is_what_keeping_every_byte_would_be() {
        let mut seed = 1u64;
        let mut draw = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..200 {
            let length = 1 + draw(300);
            let byte = [None, Some(0), Some(7)][draw(3)];
            let mut data = Data::filled(None, length, byte);
            let mut plain = Plain(vec![byte; length]);
            let mut before = (data.clone(), plain.clone());
            for _ in 0..12 {
                let (to, bytes) = (draw(length + 4), draw(80));
                let end = to + bytes;
                let fits = end <= plain.0.len();
                match draw(4) {
                    0 => {
                        let value = [None, Some(0x0102_0304)][draw(2)];
                        let fits = to + 4 <= plain.0.len();
                        assert_eq!(data.store(to, INT, value), fits);
                        if fits {
                            let word = value.map(|value| (value as u32).to_le_bytes());
                            for at in 0..4 {
                                plain.0[to + at] = word.map(|word| word[at]);
                            }
                            let loaded = data.load(to, INT).expect("it fits");
                            assert_eq!(loaded.1.then_some(loaded.0), value);
                        }
                    }
                    1 => {
                        let value = [None, Some(0), Some(9)][draw(3)];
                        assert_eq!(data.fill(to, bytes, value), fits);
                        if fits {
                            plain.0[to..end].fill(value);
                        }
                    }
                    2 => {
                        let from = draw(40);
                        let can = fits && from + bytes <= before.1.0.len();
                        assert_eq!(data.copy(to, &before.0, from, bytes), can);
                        if can {
                            plain.0[to..end].copy_from_slice(&before.1.0[from..from + bytes]);
                        }
                    }
                    _ => {
                        before = (data.clone(), plain.clone());
                        let length = draw(2 * length);
                        data.resize(length);
                        plain.0.resize(length, Some(0));
                    }
                }
                assert_eq!(Plain::of(&data).0, plain.0);
                let known = plain.0.iter().copied().collect::<Option<Arc<[u8]>>>();
                assert_eq!(data.bytes_from(0), known);
                assert_eq!(data.clone().settled(), data);
            }
        }
    }
}
