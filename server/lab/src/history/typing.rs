//! Edits at random, and what takes them back.

use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

/// What is typed and pasted; what is elsewhere in the file is pasted as well.
const PIECES: [&str; 17] = [
    "",
    "",
    "{",
    "}",
    "(",
    ";",
    "\n",
    "\r\n",
    "/*",
    "*/",
    "\"",
    "i",
    "#if 0\n",
    "[2 * threadIdx.x]",
    "if (threadIdx.x % 2) {",
    "__syncthreads();",
    "// é🚀\n",
];

/// A text that is edited, and the edits that make it again what it was.
#[derive(Debug)]
pub struct Typed {
    pub text: String,
    undo: Vec<(Range<usize>, String)>,
    random: Random,
}

impl Typed {
    pub fn new(text: String, random: Random) -> Typed {
        Typed {
            text,
            undo: Vec::new(),
            random,
        }
    }

    /// Edits it at random; the change as the protocol has it.
    pub fn edit(&mut self) -> Value {
        let (range, piece) = self.random.edit(&self.text);
        let taken = self.text[range.clone()].to_owned();
        let after = range.start..range.start + piece.len();
        let change = self.replace(range, &piece);
        self.undo.push((after, taken));
        change
    }

    /// Takes the last edit back that was not yet; none where the text is what it was.
    pub fn undo(&mut self) -> Option<Value> {
        let (range, taken) = self.undo.pop()?;
        Some(self.replace(range, &taken))
    }

    fn replace(&mut self, range: Range<usize>, piece: &str) -> Value {
        // Between CR and LF there is no cursor: the pair is replaced as a whole.
        let start = floor(&self.text, range.start);
        let mut end = range.end;
        let mut piece = format!("{}{piece}", &self.text[start..range.start]);
        if floor(&self.text, end) != end {
            piece.push('\n');
            end += 1;
        }
        let (from, to) = (position(&self.text, start), position(&self.text, end));
        self.text.replace_range(start..end, &piece);
        json!({"range": {"start": from, "end": to}, "text": piece})
    }
}

/// Choices that are the same in every run.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A seed's own.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A file's own, whatever others there are.
    pub fn of(path: &Path, seed: u64) -> Random {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hash = name.bytes().fold(seed | 1, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        Random(hash.max(1))
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count.max(1) as u64) as usize
    }

    /// Another order.
    pub fn shuffled<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let mut of = of.to_vec();
        for at in (1..of.len()).rev() {
            of.swap(at, self.below(at + 1));
        }
        of
    }

    /// Bytes to be replaced, and by what.
    fn edit(&mut self, text: &str) -> (Range<usize>, String) {
        let start = floor(text, self.below(text.len() + 1));
        let most = if self.below(5) == 0 { 400 } else { 3 };
        let end = floor(text, (start + self.below(most)).min(text.len())).max(start);
        let pasted = floor(text, self.below(text.len() + 1));
        let until = floor(text, (pasted + self.below(300)).min(text.len())).max(pasted);
        let piece = match self.below(PIECES.len() + 3) {
            chosen if chosen < PIECES.len() => PIECES[chosen],
            _ => &text[pasted..until],
        };
        (start..end, piece.to_owned())
    }
}

/// Not inside a character, and not between CR and LF: no editor has a cursor there.
pub fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) || (text[..at].ends_with('\r') && text[at..].starts_with('\n'))
    {
        at -= 1;
    }
    at
}

/// A place as the protocol has it.
pub fn position(text: &str, byte: usize) -> Value {
    let before = text[..byte].replace("\r\n", "\n").replace('\r', "\n");
    let line = before.matches('\n').count();
    let last = before.rsplit('\n').next().unwrap_or_default();
    json!({"line": line, "character": last.encode_utf16().count()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_that_were_all_taken_back_leave_the_text_as_it_was() {
        let text = "__global__ void k(float *a) {\r\n  a[0] = 1; // é🚀\r\n}\r\n";
        for seed in 0..200 {
            let mut typed = Typed::new(text.to_owned(), Random::new(seed));
            for _ in 0..20 {
                typed.edit();
            }
            assert_ne!(typed.text, text);
            while typed.undo().is_some() {}
            assert_eq!(typed.text, text);
        }
    }
}
