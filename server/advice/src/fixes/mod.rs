//! Code actions, each offered with its proof: the edit is applied to a copy of the document, the copy is
//! analysed again, and the title says what that changed.
//!
//! An action keeps the program's meaning or is not offered; what remains to be done by hand its title says. The actions
//! stand with the rules that they answer; here is what they share.

pub(crate) mod arithmetic;
pub(crate) mod guarded;
pub(crate) mod lanes;
pub(crate) mod layout;
pub(crate) mod polynomial;
pub(crate) mod proof;
pub(crate) mod source;
pub(crate) mod types;
pub(crate) mod ways;

use std::fmt;
use std::ops::Range;

use crate::Finding;
use warplens_facts::facts::{Places, Site, SourceFacts};
use warplens_hir::Semantics;
use warplens_hir::semantics::KernelSource;
use warplens_models::Resources;
use warplens_syntax::Document;

pub use proof::proved;

/// One kernel of an analysed text.
#[derive(Debug, Clone, Copy)]
pub struct Kernel<'a> {
    /// First byte of the kernel in its file.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// What is known about it.
    pub facts: &'a SourceFacts,
    /// What a thread and a block of it take of an SM.
    pub resources: Resources,
    /// What the rules say of it.
    pub findings: &'a [Finding],
    /// Bytes of its launch or of the directive that gives it, where that is in the file.
    pub launched_at: Option<&'a Range<usize>>,
    /// The blocks of every launch of it that was seen; `None` where one is not known.
    pub blocks: &'a [Option<[u64; 3]>],
    /// Where the sites of the facts stand, counted from that byte.
    pub places: &'a Places,
    /// Predicted cycles, where there is a prediction.
    pub cycles: Option<f64>,
    /// Instructions that a warp executes, on average, where that is predicted.
    pub instructions: Option<f64>,
    /// Resident warps over the most the GPU holds.
    pub occupancy: f64,
    /// False where the launch cannot happen.
    pub launchable: bool,
}

impl<'a> Kernel<'a> {
    /// Where a site is in the file.
    pub(crate) fn place(&self, site: Site) -> Range<usize> {
        let bytes = self.places.bytes(site.span);
        self.start + bytes.start..self.start + bytes.end
    }

    /// Its text, and what its sites were lowered from.
    pub(crate) fn source<'t>(&self, code: Semantics<'t>) -> Option<KernelSource<'t>>
    where
        'a: 't,
    {
        code.kernel_source(self.start..self.end, self.places)
    }

    /// How many findings of a rule it has.
    pub(crate) fn count(&self, rule: &str) -> usize {
        self.findings.iter().filter(|one| one.rule == rule).count()
    }

    /// True where it has a finding of the same rule that says the same.
    pub(crate) fn has_finding(&self, like: &Finding) -> bool {
        let same = |one: &Finding| one.rule == like.rule && one.message == like.message;
        self.findings.iter().any(same)
    }

    /// Cycles per thread: comparable where a default grid follows the occupancy.
    pub(crate) fn cost(&self) -> Option<f64> {
        let threads = (self.facts.launch.blocks() * self.facts.launch.threads_per_block()) as f64;
        self.cycles.map(|cycles| cycles / threads.max(1.0))
    }
}

/// The analysis of one text.
pub trait Analysis {
    /// Its kernels in source order.
    fn kernels(&self) -> Vec<Kernel<'_>>;
}

/// Analyses an edited text; `None` where that failed. Kernels outside the given names may be left out.
pub type Reanalyze<'a> = &'a dyn Fn(&Document, &[String]) -> Option<Box<dyn Analysis>>;

/// What is asked: which actions are there for this range?
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The document, code.
    pub document: &'a Document,
    /// Its analysis.
    pub analysis: &'a dyn Analysis,
    /// The selection, or the place of the cursor (an empty range), in bytes.
    pub range: &'a Range<usize>,
    /// For the proof.
    pub reanalyze: Reanalyze<'a>,
}

impl<'a> Request<'a> {
    /// The document's text with what it means.
    pub(crate) fn code(&self) -> Semantics<'a> {
        Semantics::new(self.document)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("range", self.range)
            .finish_non_exhaustive()
    }
}

/// An action with its proof done.
#[derive(Debug, Clone, PartialEq)]
pub struct Fix {
    /// What it does and the predicted difference.
    pub title: String,
    /// The rule it answers.
    pub rule: &'static str,
    /// Bytes of the document and their new text, in order, not overlapping.
    pub edits: Vec<(Range<usize>, String)>,
    /// Predicted speedup of the kernel; 1 is none.
    pub gain: f64,
    /// False where something remains to be done by hand, as the title says: nothing to apply unseen.
    pub complete: bool,
}

/// An edit as it is collected; [`in_order`] makes a list of them fit to apply.
pub type Edit = (Range<usize>, String);

/// Sorted; `None` where two overlap.
pub(crate) fn in_order(mut edits: Vec<Edit>) -> Option<Vec<Edit>> {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let apart = edits
        .windows(2)
        .all(|pair| pair[0].0.end <= pair[1].0.start);
    apart.then_some(edits)
}

/// A copy with the edits made, code.
pub(crate) fn edited(document: &Document, edits: &[Edit]) -> Document {
    let mut copy = document.clone();
    for (range, text) in edits.iter().rev() {
        copy.edit(range.clone(), text);
    }
    copy
}

/// True where two ranges share a byte or touch: a cursor at either end of a word is at the word.
pub(crate) fn touch(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start <= b.end && b.start <= a.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_come_in_order_and_never_overlap() {
        let edits = vec![
            (5..6, "b".to_owned()),
            (1..2, "a".to_owned()),
            (2..2, "c".to_owned()),
        ];
        let sorted = in_order(edits).unwrap();
        assert_eq!(
            sorted
                .iter()
                .map(|(range, _)| range.start)
                .collect::<Vec<_>>(),
            [1, 2, 5]
        );
        assert_eq!(
            in_order(vec![(1..4, String::new()), (3..5, String::new())]),
            None
        );
    }

    #[test]
    fn a_cursor_at_the_end_of_a_word_touches_it() {
        assert!(touch(&(7..7), &(3..7)));
        assert!(touch(&(3..3), &(3..7)));
        assert!(!touch(&(8..8), &(3..7)));
    }
}
