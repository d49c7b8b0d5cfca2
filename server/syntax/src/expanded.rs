//! A text as the grammar saw it after preprocessing, with its tree and the way back to the source.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::mend::{EarlierMend, Known, Mended};
use crate::preprocess::{Preprocessed, Problem, SourceMap, UndecidedConditional, Word};
use crate::{Language, Tree, blanking, mend, preprocess};

/// One preprocessed text with its tree: a buffer or a header.
#[derive(Debug)]
pub struct Expanded {
    /// The file.
    pub path: Arc<Path>,
    /// Its language.
    pub language: Language,
    /// The text as the user wrote it.
    pub source: Arc<str>,
    /// The text as the grammar saw it: macros expanded, directives and inactive branches blank.
    pub text: String,
    /// From the text back to the source.
    pub map: SourceMap,
    /// The tree of the text.
    pub tree: Tree,
    /// Lines of the source that need not be preprocessed again.
    quiet: Vec<preprocess::Stretch>,
    /// What is known of its functions, for the next text.
    pub(crate) known: Known,
    /// Words that the grammar does not know, blanked in the text, in order.
    pub words: Vec<Word>,
    /// The headers it includes, in order.
    pub includes: Vec<Arc<Expanded>>,
    /// Programs in its string literals.
    pub embedded: Vec<Arc<Expanded>>,
    /// The same text with a branch taken that nothing decided and that holds kernels: the branch's bytes.
    pub alternatives: Vec<(Range<usize>, Arc<Expanded>)>,
    /// Definitions assumed because without them no branch of a conditional would be taken.
    pub assumed: Vec<(String, String)>,
    /// The same text without these, where there are some: what is alike in both does not depend on them.
    pub unassumed: Option<Arc<Expanded>>,
    /// Every file it depends on besides its own.
    pub reads: Vec<std::path::PathBuf>,
    /// Every file that was read to make it, branches that are not taken included, with the hash of its text.
    pub versions: Vec<(std::path::PathBuf, u64)>,
    /// Includes that were not found, as spelled.
    pub missing: Vec<String>,
    /// A header of another library that it includes was not found.
    pub lacks_a_library: bool,
    /// Conditionals that nothing decided.
    pub undecided: Vec<UndecidedConditional>,
    /// What was wrong with its directives.
    pub problems: Vec<Problem>,
    /// A hash of the file, its text before and after preprocessing, and of all it includes.
    pub hash: u64,
    /// The same without what it includes.
    pub own_hash: u64,
    /// Where each line of the source begins.
    pub(crate) lines: Vec<u32>,
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Bytes.
    pub range: Range<usize>,
    /// 0-based line of the first byte.
    pub line: u32,
    /// 0-based byte column of the first byte.
    pub column: u32,
}

impl Expanded {
    /// Parses what the preprocessor made of a text. `previous` is an earlier version of it.
    pub fn new(
        path: Arc<Path>,
        language: Language,
        source: Arc<str>,
        mut done: Preprocessed,
        includes: Vec<Arc<Expanded>>,
        previous: Option<&Expanded>,
    ) -> Expanded {
        blanking::blank_lambda_spaces(&mut done.text, language);
        blanking::blank_specifiers_of_friends(&mut done.text, language);
        blanking::join_launch_brackets(&mut done.text, language);
        blanking::blank_typename_of_objects(&mut done.text, language);
        blanking::blank_hints_of_loops(&mut done.text, language);
        blanking::blank_what_is_between(&mut done.text, language);
        blanking::mark_ranges_of_labels(&mut done.text, language);
        let old = previous.filter(|previous| previous.language == language);
        let earlier = old.map(|old| EarlierMend {
            text: &old.text,
            tree: &old.tree,
            known: &old.known,
        });
        let Mended { text, tree, known } = mend::parse(done.text, language, earlier);
        let mut hasher = FxHasher::default();
        (&path, language, &source, &text).hash(&mut hasher);
        for word in &done.words {
            (word.name, &word.argument).hash(&mut hasher);
        }
        let own_hash = hasher.finish();
        for include in &includes {
            include.hash.hash(&mut hasher);
        }
        let lines = line_starts(&source);
        Expanded {
            path,
            language,
            source,
            text,
            map: done.map,
            tree,
            quiet: done.quiet,
            known,
            words: done.words,
            includes,
            embedded: Vec::new(),
            alternatives: Vec::new(),
            assumed: Vec::new(),
            unassumed: None,
            reads: Vec::new(),
            versions: Vec::new(),
            missing: Vec::new(),
            lacks_a_library: false,
            undecided: done.undecided,
            problems: done.problems,
            hash: hasher.finish(),
            own_hash,
            lines,
        }
    }

    /// What the preprocessor needs of it to read the next version of its source.
    pub fn as_earlier(&self) -> preprocess::EarlierText<'_> {
        preprocess::EarlierText {
            text: &self.source,
            quiet: &self.quiet,
        }
    }

    /// A text of its own that needs no preprocessing: an expression from a directive, a type from an option.
    pub fn fragment(text: &str, language: Language) -> Arc<Expanded> {
        let done = Preprocessed {
            text: text.to_owned(),
            map: SourceMap::identity(text.len()),
            ..Preprocessed::default()
        };
        let path = Arc::from(Path::new(""));
        Arc::new(Expanded::new(
            path,
            language,
            text.into(),
            done,
            Vec::new(),
            None,
        ))
    }

    /// Where a range of the text came from.
    pub fn place(&self, range: Range<usize>) -> Place {
        let range = self.map.source_range(range);
        let (line, column) = self.position(range.start);
        Place {
            range,
            line,
            column,
        }
    }

    /// 0-based line and byte column of a byte of the source.
    pub fn position(&self, at: usize) -> (u32, u32) {
        let line = self
            .lines
            .partition_point(|&start| start as usize <= at)
            .saturating_sub(1);
        let start = self.lines.get(line).copied().unwrap_or(0);
        (line as u32, (at as u32).saturating_sub(start))
    }
}

/// Where each line begins.
pub(crate) fn line_starts(text: &str) -> Vec<u32> {
    std::iter::once(0)
        .chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1))
        .collect()
}
