//! Where something is defined: a text and a stretch of it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHasher;
use warplens_syntax::{Expanded, Kind, Node};

use crate::namespaces::Space;
use crate::outline::Item;

/// Where something is defined.
#[derive(Clone)]
pub struct Definition {
    /// The text.
    pub text: Arc<Expanded>,
    /// Its bytes in the expanded text.
    pub range: Range<usize>,
    /// A hash of those bytes.
    pub hash: u64,
    /// True in a header.
    pub header: bool,
    /// The item that contains it.
    pub within: Within,
    /// The namespaces around it.
    pub space: Space,
}

/// The item of a file that contains a definition, or is it. While the file is edited elsewhere the item keeps its hash, and the
/// definition its distance from the item's first line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Within {
    /// The hash of the item's text.
    pub hash: u64,
    /// The line of its first byte.
    pub line: u32,
}

impl Within {
    pub(crate) fn item(text: &Expanded, item: &Item) -> Within {
        Within {
            hash: text_hash(&text.text[item.range.clone()]),
            line: item.line,
        }
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.text.path.display(), self.range)
    }
}

impl Definition {
    pub(crate) fn new(
        text: &Arc<Expanded>,
        range: Range<usize>,
        header: bool,
        within: Within,
        space: &Space,
    ) -> Definition {
        let hash = text_hash(&text.text[range.clone()]);
        Definition {
            text: Arc::clone(text),
            range,
            hash,
            header,
            within,
            space: Arc::clone(space),
        }
    }

    /// The node of one of these kinds that ends where the definition ends.
    pub fn node(&self, kinds: &[Kind]) -> Option<Node<'_>> {
        node_ending(&self.text, &self.range, kinds)
    }
}

/// The hash by which a function is known while it moves about its file.
pub fn text_hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The outermost node of one of these kinds that ends where the range ends and begins in it.
pub fn node_ending<'t>(
    parsed: &'t Expanded,
    range: &Range<usize>,
    kinds: &[Kind],
) -> Option<Node<'t>> {
    let last = range.end.checked_sub(1)?;
    let mut node = parsed.tree.root_node();
    loop {
        let fits = node.start_byte() >= range.start && node.end_byte() == range.end;
        if fits && kinds.contains(&node.kind()) {
            return Some(node);
        }
        node = node.child_with_byte(last)?;
    }
}
