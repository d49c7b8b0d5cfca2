//! An open buffer, and what was made of it.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::blanking;
use crate::expanded::Expanded;
use crate::parser;
use crate::{Language, Tree};
use ropey::Rope;

/// A buffer: text that edits change at once; its trees are made when they are asked for.
///
/// A clone is cheap and independent: text and trees are shared until changed.
#[derive(Debug)]
pub struct Document {
    rope: Rope,
    language: Language,
    /// Tells one text from every other.
    revision: u64,
    source: OnceLock<Arc<str>>,
    raw: OnceLock<Arc<Parsed>>,
    expanded: Mutex<Option<Expansion>>,
}

/// The newest expansion, and what it was made from.
#[derive(Debug, Clone)]
struct Expansion {
    revision: u64,
    surroundings: u64,
    text: Arc<Expanded>,
}

/// The buffer's own text with its tree, before any preprocessing: what code actions edit.
#[derive(Debug)]
pub struct Parsed {
    /// The text as the user wrote it; words that the grammar does not know are blank for the tree.
    pub text: Arc<str>,
    /// Its tree.
    pub tree: Tree,
}

impl Clone for Document {
    fn clone(&self) -> Document {
        let expanded = self.expanded.lock().unwrap_or_else(PoisonError::into_inner);
        Document {
            rope: self.rope.clone(),
            language: self.language,
            revision: self.revision,
            source: self.source.clone(),
            raw: self.raw.clone(),
            expanded: Mutex::new(expanded.clone()),
        }
    }
}

fn new_revision() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

impl Document {
    /// A buffer with this text.
    pub fn new(text: &str, language: Language) -> Document {
        Document {
            rope: Rope::from_str(text),
            language,
            revision: new_revision(),
            source: OnceLock::new(),
            raw: OnceLock::new(),
            expanded: Mutex::new(None),
        }
    }

    /// Replaces bytes of the text. Out-of-range and mid-character offsets are clamped to the nearest
    /// character boundary before them. No tree is touched.
    pub fn edit(&mut self, range: Range<usize>, new_text: &str) {
        let len = self.rope.len_bytes();
        let start = self.rope.byte_to_char(range.start.min(len));
        let end = self
            .rope
            .byte_to_char(range.end.min(len).max(range.start.min(len)));
        self.rope.remove(start..end);
        self.rope.insert(start, new_text);
        self.revision = new_revision();
        self.source = OnceLock::new();
        self.raw = OnceLock::new();
    }

    /// The text.
    pub fn rope(&self) -> &Rope {
        &self.rope
    }

    /// The text in one piece, made the first time it is asked for.
    pub fn source(&self) -> &Arc<str> {
        self.source.get_or_init(|| {
            let mut source = String::with_capacity(self.len());
            self.rope.chunks().for_each(|chunk| source.push_str(chunk));
            source.into()
        })
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

    /// The buffer's own text and tree, parsed the first time they are asked for.
    pub fn parsed(&self) -> &Arc<Parsed> {
        self.raw.get_or_init(|| {
            let text = Arc::clone(self.source());
            let mut blanked = text.to_string();
            blanking::blank(&mut blanked, self.language);
            let tree = parser::parse(&blanked, Language::Cuda, None);
            Arc::new(Parsed { text, tree })
        })
    }

    /// The preprocessed text. `surroundings` is a number for what besides the buffer `make` looks at, but for the files that the
    /// last expansion read: of these `holds` says whether they are what they were. Where nothing has changed the last answer
    /// is given again. `make` is given the text and the last expansion, whose tree it may start from.
    pub fn expanded(
        &self,
        surroundings: u64,
        holds: impl FnOnce(&Expanded) -> bool,
        make: impl FnOnce(Arc<str>, Option<&Expanded>) -> Expanded,
    ) -> Arc<Expanded> {
        let last = self
            .expanded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(last) = &last
            && last.revision == self.revision
            && last.surroundings == surroundings
            && holds(&last.text)
        {
            return Arc::clone(&last.text);
        }
        let source = Arc::clone(self.source());
        let text = Arc::new(make(source, last.as_ref().map(|last| &*last.text)));
        *self.expanded.lock().unwrap_or_else(PoisonError::into_inner) = Some(Expansion {
            revision: self.revision,
            surroundings,
            text: Arc::clone(&text),
        });
        text
    }
}
