//! Trees of texts, from the trees of earlier texts where there are any.

use std::cell::RefCell;
use std::ops::Range;

use tree_sitter::{InputEdit, Parser, Point};

use crate::{Language, Tree};

thread_local! {
    static CUDA: RefCell<Option<Parser>> = const { RefCell::new(None) };
    static OPENCL: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// The tree of a text. `old` is an earlier text with its tree.
pub(crate) fn parse(text: &str, language: Language, old: Option<(&str, &Tree)>) -> Tree {
    let old_tree = old.map(|(old, tree)| {
        let mut tree = tree.raw().clone();
        if let Some(edit) = difference(old, text) {
            tree.edit(&edit);
        }
        tree
    });
    run(text, language, old_tree.as_ref())
}

/// The tree of a text that differs from an earlier one in white space alone, without parsing: white space between two tokens has
/// no part in a tree. `None` where more differs, or where a line feed may matter: behind other text of its line, which may be a
/// directive or a comment that ends with the line, and on a line that continues one.
pub(crate) fn spaced(text: &str, (old, tree): (&str, &Tree), language: Language) -> Option<Tree> {
    let Some(edit) = difference(old, text) else {
        return Some(tree.clone());
    };
    let start = edit.start_byte;
    let is_space = |part: &str| part.bytes().all(|byte| byte.is_ascii_whitespace());
    let line = old[..start].rfind('\n').map_or(0, |at| at + 1);
    let continues = old[..line].trim_end_matches(['\n', '\r']).ends_with('\\');
    if continues
        || !is_space(&old[line..start])
        || !is_space(&old[start..edit.old_end_byte])
        || !is_space(&text[start..edit.new_end_byte])
    {
        return None;
    }
    let mut raw = tree.raw().clone();
    raw.edit(&edit);
    Some(Tree::new(raw, language))
}

/// The tree of a text that differs from an equally long one, whose tree `old` is, in these bytes, which are in order, and
/// nowhere in its line feeds.
pub(crate) fn parse_filled(
    text: &str,
    language: Language,
    old: &Tree,
    changed: impl IntoIterator<Item = Range<usize>>,
) -> Tree {
    let bytes = text.as_bytes();
    let mut tree = old.raw().clone();
    let (mut at, mut position) = (0, Point::new(0, 0));
    for range in changed {
        let start_position = advance(position, &bytes[at..range.start]);
        (at, position) = (range.end, advance(start_position, &bytes[range.clone()]));
        tree.edit(&InputEdit {
            start_byte: range.start,
            old_end_byte: range.end,
            new_end_byte: range.end,
            start_position,
            old_end_position: position,
            new_end_position: position,
        });
    }
    run(text, language, Some(&tree))
}

fn run(text: &str, language: Language, old_tree: Option<&tree_sitter::Tree>) -> Tree {
    let parser = match language {
        Language::OpenCl => &OPENCL,
        Language::Cuda | Language::Hip => &CUDA,
    };
    let raw = parser.with_borrow_mut(|parser| {
        parser
            .get_or_insert_with(|| {
                let mut parser = Parser::new();
                parser
                    .set_language(&language.tree_sitter().into())
                    .expect("tree-sitter and the grammars are pinned to one ABI");
                parser
            })
            .parse(text, old_tree)
            .expect("no timeout or cancellation is set")
    });
    Tree::new(raw, language)
}

/// The one edit that turns `old` into `new`: what differs between their common prefix and suffix.
/// Preprocessing may change text far from what the user typed, so the edit is found on what the grammar sees.
fn difference(old: &str, new: &str) -> Option<InputEdit> {
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let (prefix, suffix) = common_ends(a, b);
    if prefix == a.len() && prefix == b.len() {
        return None;
    }
    let (old_end, new_end) = (a.len() - suffix, b.len() - suffix);
    let start_position = advance(Point::new(0, 0), &a[..prefix]);
    Some(InputEdit {
        start_byte: prefix,
        old_end_byte: old_end,
        new_end_byte: new_end,
        start_position,
        old_end_position: advance(start_position, &a[prefix..old_end]),
        new_end_position: advance(start_position, &b[prefix..new_end]),
    })
}

/// How many bytes are the same at the beginning, and at the end of what is left.
pub(crate) fn common_ends(a: &[u8], b: &[u8]) -> (usize, usize) {
    let prefix = common_prefix(a, b);
    (prefix, common_suffix(&a[prefix..], &b[prefix..]))
}

/// Bytes compared at a time: files are long, and almost all of them is the same.
const BLOCK: usize = 64;

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let same = blocks.take_while(|(x, y)| x == y).count() * BLOCK;
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(x, y)| x == y).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let same = blocks.take_while(|(x, y)| x == y).count() * BLOCK;
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    let rest = a.iter().rev().zip(b.iter().rev());
    same + rest.take_while(|(x, y)| x == y).count()
}

fn advance(from: Point, bytes: &[u8]) -> Point {
    let newlines = memchr::memchr_iter(b'\n', bytes).count();
    match memchr::memrchr(b'\n', bytes) {
        Some(last) => Point::new(from.row + newlines, bytes.len() - last - 1),
        None => Point::new(from.row, from.column + bytes.len()),
    }
}
