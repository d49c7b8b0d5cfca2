//! Instructions by line, and which of the lines are still there after an edit.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use warplens_codegen::Class;
use warplens_ir::Places;
use warplens_syntax::Document;

/// Instructions of a kernel's lines, by the numbers of those that hold something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Lines {
    /// In the order of the lines.
    pub counts: Vec<(u32, BTreeMap<Class, u64>)>,
    /// A hash of each line's text.
    pub texts: Vec<u64>,
}

impl Lines {
    /// What was said of the lines that another text begins and ends with alike. What lies between was edited: no report
    /// knows which of its lines is which.
    pub fn within(&self, texts: Vec<u64>) -> Lines {
        let alike = |pair: &(&u64, &u64)| pair.0 == pair.1;
        let before = self.texts.iter().zip(&texts).take_while(alike).count();
        let rest = (&self.texts[before..], &texts[before..]);
        let pairs = rest.0.iter().rev().zip(rest.1.iter().rev());
        let behind = pairs.take_while(alike).count();
        let (from, to) = (self.texts.len() - behind, texts.len() - behind);
        let moved = |number: u32| match number as usize {
            at if at < before => Some(number),
            at if at >= from => Some((at - from + to) as u32),
            _ => None,
        };
        let counts = self.counts.iter();
        Lines {
            counts: counts
                .filter_map(|(number, counts)| Some((moved(*number)?, counts.clone())))
                .collect(),
            texts,
        }
    }
}

/// A hash of each line that holds something, of a kernel that begins on `first`. White space around it is no part of it.
pub(super) fn texts(document: &Document, first: u32, places: &Places) -> Vec<u64> {
    let rope = document.rope();
    let text = |line: &u32| {
        let mut hasher = FxHasher::default();
        if let Some(text) = rope.get_line((first + line) as usize) {
            text.to_string().trim().hash(&mut hasher);
        }
        hasher.finish()
    };
    places.lines().iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_an_edit_keep_their_instructions() {
        let count = |number: u32| (number, BTreeMap::from([(Class::Ffma, u64::from(number))]));
        let lines = Lines {
            counts: (0..5).map(count).collect(),
            texts: vec![10, 11, 12, 13, 13],
        };
        let kept = |texts: &[u64]| -> Vec<(u32, u64)> {
            let within = lines.within(texts.to_vec()).counts;
            let total = |counts: &BTreeMap<Class, u64>| counts.values().sum();
            within
                .iter()
                .map(|(at, counts)| (*at, total(counts)))
                .collect()
        };
        // Edited, added, taken away.
        assert_eq!(kept(&[10, 11, 7, 13, 13]), [(0, 0), (1, 1), (3, 3), (4, 4)]);
        assert_eq!(
            kept(&[10, 7, 8, 11, 12, 13, 13]),
            [(0, 0), (3, 1), (4, 2), (5, 3), (6, 4)]
        );
        assert_eq!(kept(&[10, 13, 13]), [(0, 0), (1, 3), (2, 4)]);
        // One of two that are alike: no line is counted twice.
        assert_eq!(kept(&[10, 11, 12, 13]), [(0, 0), (1, 1), (2, 2), (3, 3)]);
        assert_eq!(kept(&[]), []);
    }
}
