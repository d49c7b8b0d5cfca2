//! Lines in which no macro and no directive is: where they are what they were, they are not read again.

use std::ops::Range;

/// Shorter stretches are not worth remembering.
const LEAST: usize = if cfg!(test) { 8 } else { 256 };

/// Lines of a text without a directive and without a name that means something.
#[derive(Debug, Clone)]
pub struct Stretch {
    lines: Range<usize>,
    /// The fingerprint of the macros in force there.
    macros: u64,
}

/// An earlier version of a text.
#[derive(Debug, Clone, Copy)]
pub struct EarlierText<'a> {
    /// What it was.
    pub text: &'a str,
    /// Its [`Preprocessed::quiet`](super::Preprocessed::quiet).
    pub quiet: &'a [Stretch],
}

/// What is known of the lines of a text while it is read.
pub(super) struct Quiet<'a> {
    /// Of the earlier text, from the next one on.
    known: std::slice::Iter<'a, Stretch>,
    /// This many bytes at the beginning, and those from here on at the end, are those of the earlier text.
    prefix: usize,
    suffix: usize,
    /// Lengths of the text and of the earlier one.
    length: usize,
    earlier: usize,
    /// Where the stretch that is being read begins.
    from: Option<usize>,
    found: Vec<Stretch>,
}

impl<'a> Quiet<'a> {
    pub(super) fn new(text: &str, earlier: Option<EarlierText<'a>>) -> Quiet<'a> {
        let (old, known) = earlier.map_or(("", &[][..]), |earlier| (earlier.text, earlier.quiet));
        let (prefix, suffix) = crate::parser::common_ends(old.as_bytes(), text.as_bytes());
        Quiet {
            known: known.iter(),
            prefix,
            suffix: old.len() - suffix,
            length: text.len(),
            earlier: old.len(),
            from: Some(0),
            found: Vec::new(),
        }
    }

    /// Something is in this line.
    pub(super) fn disturbed(&mut self) {
        self.from = None;
    }

    /// A line begins at `at`; gives where to go on, at most at `limit`.
    pub(super) fn line(&mut self, at: usize, limit: usize, macros: u64) -> usize {
        let from = *self.from.get_or_insert(at);
        let mut at = at;
        while let Some((stretch, lines)) = self.next(at) {
            if lines.start > at {
                break;
            }
            self.known.next();
            if lines.start == at && lines.end <= limit && stretch.macros == macros {
                at = lines.end;
            }
        }
        if at - from >= LEAST {
            let lines = from..at;
            self.found.push(Stretch { lines, macros });
            self.from = Some(at);
        }
        at
    }

    /// The next known stretch that is what it was, and its lines in this text.
    fn next(&mut self, at: usize) -> Option<(&'a Stretch, Range<usize>)> {
        loop {
            let stretch = self.known.as_slice().first()?;
            let Range { start, end } = stretch.lines;
            let lines = if end <= self.prefix {
                start..end
            } else if start >= self.suffix {
                let behind = |old: usize| self.length - (self.earlier - old);
                behind(start)..behind(end)
            } else {
                self.known.next();
                continue;
            };
            if lines.start >= at {
                return Some((stretch, lines));
            }
            self.known.next();
        }
    }

    pub(super) fn found(self) -> Vec<Stretch> {
        self.found
    }
}
