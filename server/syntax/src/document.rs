//! An open buffer and its tree.

use std::ops::Range;
use std::sync::Arc;

use ropey::Rope;
use tree_sitter::{InputEdit, Parser, Point, Tree};

use crate::Language;
use crate::blanking::{self, Word};

/// A buffer: text that edits change at once, and a tree that [`Document::parse`] brings up to date.
///
/// A clone is cheap and independent: rope and tree are shared until changed.
#[derive(Debug, Clone)]
pub struct Document {
    rope: Rope,
    language: Language,
    parsed: Arc<Parsed>,
    stale: bool,
}

/// One text with its tree.
#[derive(Debug)]
pub struct Parsed {
    /// The text as the user wrote it.
    pub text: String,
    /// The text as the grammar saw it: same length, unknown words blanked. `None` where nothing was blanked.
    blanked: Option<String>,
    /// Its tree.
    pub tree: Tree,
    /// The blanked words, in order.
    pub words: Vec<Word>,
}

impl Parsed {
    fn seen(&self) -> &str {
        self.blanked.as_deref().unwrap_or(&self.text)
    }
}

impl Document {
    /// A buffer, parsed.
    pub fn new(text: &str, language: Language) -> Document {
        Document {
            rope: Rope::from_str(text),
            language,
            parsed: Arc::new(parse(text.to_owned(), language, None)),
            stale: false,
        }
    }

    /// Replaces bytes of the text. Out-of-range and mid-character offsets are clamped to the nearest
    /// character boundary before them. The tree is not touched until [`Document::parse`].
    pub fn edit(&mut self, range: Range<usize>, new_text: &str) {
        let len = self.rope.len_bytes();
        let start = self.rope.byte_to_char(range.start.min(len));
        let end = self
            .rope
            .byte_to_char(range.end.min(len).max(range.start.min(len)));
        self.rope.remove(start..end);
        self.rope.insert(start, new_text);
        self.stale = true;
    }

    /// Brings the tree up to date, from the previous tree.
    pub fn parse(&mut self) {
        if self.stale {
            self.parsed = Arc::new(parse(
                self.rope.to_string(),
                self.language,
                Some(&self.parsed),
            ));
            self.stale = false;
        }
    }

    /// The text.
    pub fn rope(&self) -> &Rope {
        &self.rope
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.rope.len_bytes()
    }

    /// True without text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Text and tree as of the last [`Document::parse`].
    pub fn parsed(&self) -> &Arc<Parsed> {
        &self.parsed
    }
}

thread_local! {
    static PARSER: std::cell::RefCell<Option<Parser>> = const { std::cell::RefCell::new(None) };
}

fn parse(text: String, language: Language, previous: Option<&Parsed>) -> Parsed {
    let mut blanked = text.clone();
    let words = blanking::blank(&mut blanked, language);
    let blanked = (!words.is_empty()).then_some(blanked);
    let seen = blanked.as_deref().unwrap_or(&text);
    let old_tree = previous.map(|previous| {
        let mut tree = previous.tree.clone();
        if let Some(edit) = difference(previous.seen(), seen) {
            tree.edit(&edit);
        }
        tree
    });
    let tree = PARSER.with_borrow_mut(|parser| {
        let parser = parser.get_or_insert_with(|| {
            let mut parser = Parser::new();
            parser
                .set_language(&tree_sitter_cuda::LANGUAGE.into())
                .expect("tree-sitter and the grammar are pinned to one ABI");
            parser
        });
        parser
            .parse(seen, old_tree.as_ref())
            .expect("no timeout or cancellation is set")
    });
    Parsed {
        text,
        blanked,
        tree,
        words,
    }
}

/// The one edit that turns `old` into `new`: what differs between their common prefix and suffix. Blanking
/// may change text far from what the user typed, so the edit is found on what the grammar sees.
fn difference(old: &str, new: &str) -> Option<InputEdit> {
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let prefix = common(a.iter(), b.iter());
    if prefix == a.len() && prefix == b.len() {
        return None;
    }
    let suffix = common(a[prefix..].iter().rev(), b[prefix..].iter().rev());
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

fn common<'a>(a: impl Iterator<Item = &'a u8>, b: impl Iterator<Item = &'a u8>) -> usize {
    a.zip(b).take_while(|(x, y)| x == y).count()
}

fn advance(from: Point, bytes: &[u8]) -> Point {
    let newlines = bytes.split(|&byte| byte == b'\n').count() - 1;
    match bytes.iter().rposition(|&byte| byte == b'\n') {
        Some(last) => Point::new(from.row + newlines, bytes.len() - last - 1),
        None => Point::new(from.row, from.column + bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sexp(document: &Document) -> String {
        document.parsed().tree.root_node().to_sexp()
    }

    #[test]
    fn any_edits_give_the_tree_of_a_fresh_parse() {
        let source = "__global__ void k(float *a, int n) {\n  int i = threadIdx.x; // é𝄞\n  if (i < n) a[i] = 0;\n}\n";
        let pieces = [
            "",
            "x",
            "{",
            "}",
            "\n",
            "é",
            "a[i]",
            "/*",
            "__launch_bounds__(1,2,3)",
            ";",
        ];
        let mut document = Document::new(source, Language::Cuda);
        let mut state = 12345u64;
        for _ in 0..300 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let len = document.len() as u64 + 1;
            let start = ((state >> 33) % len) as usize;
            let end = start + ((state >> 20) % 6) as usize;
            document.edit(start..end, pieces[(state >> 50) as usize % pieces.len()]);
            document.parse();
            let fresh = Document::new(&document.rope().to_string(), Language::Cuda);
            assert_eq!(document.parsed().text, fresh.parsed().text);
            assert_eq!(
                sexp(&document),
                sexp(&fresh),
                "after editing to:\n{}",
                document.rope()
            );
        }
    }

    #[test]
    fn an_edit_out_of_range_is_clamped() {
        let mut document = Document::new("abc", Language::Cuda);
        document.edit(10..20, "d");
        document.parse();
        assert_eq!(document.parsed().text, "abcd");
    }
}
