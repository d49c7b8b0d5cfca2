//! The C preprocessor, with a map back to the buffer.
//!
//! [`preprocess`] turns one buffer of CUDA, HIP or OpenCL C into the text that the grammar parses: macros are
//! expanded, conditionals decided, directives and inactive branches overwritten with spaces, and the words that
//! the grammar lacks as well. Where no macro is used the result equals the buffer byte for byte apart from
//! those spaces, so that a keystroke changes one place of it.

mod condition;
mod expand;
mod left_open;
mod macros;
mod pass;
#[cfg(test)]
mod properties;
mod quiet;
mod source_map;
mod state;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use macros::{Macros, Trace};
pub use quiet::{EarlierText, Stretch};
pub use source_map::{Piece, SourceMap};

/// Words that the grammar lacks: by spelling, the short name and whether a parenthesised argument belongs to it.
pub type WordTable = FxHashMap<&'static str, (&'static str, bool)>;

/// What [`preprocess`] is told besides the text.
#[derive(Clone)]
pub struct Options<'a> {
    /// The macros in force at the first byte. To look at a branch that nothing decided, define its
    /// [`Branch::assume`] in addition.
    pub macros: Macros,
    /// Names that are certainly not defined (of another platform, say): testing one decides.
    pub known_absent: &'a dyn Fn(&str) -> bool,
    /// Words to overwrite with spaces, and to remember.
    pub words: &'a WordTable,
    /// The value of `__FILE__`.
    pub file: &'a str,
    /// Whether to note which macros the text depends on and which it changes.
    pub traced: bool,
    /// An earlier version of the text: what is as it was is not read again. Makes no difference to the result.
    pub earlier: Option<EarlierText<'a>>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Options")
            .field("macros", &self.macros)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// An `#include` line of active code.
#[derive(Debug, Clone, Copy)]
pub struct IncludeLine<'a> {
    /// The path between the quotes or angle brackets.
    pub spelled: &'a str,
    /// Whether in angle brackets.
    pub system: bool,
    /// Whether `#include_next`.
    pub next: bool,
    /// Where the line's `#` is, in bytes of the buffer; within text put in place, where the buffer's own
    /// `#include` line is.
    pub at: usize,
}

/// What an `#include` line comes to.
#[derive(Debug, Clone)]
pub enum IncludeResult {
    /// Known but not read, or not found.
    Nothing,
    /// Preprocessed on its own, from the macros that were passed.
    Header {
        /// The macros at its end: they replace those in force.
        macros: Macros,
        /// What it had to do with those that were passed.
        trace: Arc<Trace>,
    },
    /// Text to be put in the line's place.
    Text {
        /// What the file holds.
        text: Arc<str>,
        /// Where it lies.
        path: Arc<Path>,
    },
}

/// Finds and reads what `#include` lines name.
pub trait Includes {
    /// `inside_braces`: the line is inside braces other than those of a namespace or a linkage block.
    fn include(
        &mut self,
        line: &IncludeLine<'_>,
        macros: &Macros,
        inside_braces: bool,
    ) -> IncludeResult;

    /// The text of this file is put in place from here on: includes resolve relative to it.
    fn enter(&mut self, path: &Path);

    /// The text entered last ends.
    fn leave(&mut self);

    /// Whether `__has_include` of this path holds.
    fn has_include(&mut self, spelled: &str, system: bool) -> bool;
}

/// No file is found: of a text that is read alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoIncludes;

impl Includes for NoIncludes {
    fn include(&mut self, _: &IncludeLine<'_>, _: &Macros, _: bool) -> IncludeResult {
        IncludeResult::Nothing
    }

    fn enter(&mut self, _: &Path) {}

    fn leave(&mut self) {}

    fn has_include(&mut self, _: &str, _: bool) -> bool {
        false
    }
}

/// A word that the grammar lacks, where it was overwritten with spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Bytes in the output, the argument included.
    pub range: Range<usize>,
    /// The short name from the table: `global`, `launch_bounds`.
    pub name: &'static str,
    /// The text between the outer parentheses, macros expanded; empty where there are none.
    pub argument: String,
}

/// A conditional whose outcome depends on names that are not defined here and that may be defined elsewhere. The
/// output follows the rules of C: such a name counts as undefined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecidedConditional {
    /// The names that it depends on, in the order they are tested.
    pub names: Vec<String>,
    /// From `#if` to `#endif`, in order.
    pub branches: Vec<Branch>,
}

/// One branch of an [`UndecidedConditional`] conditional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The lines between its directive and the next, in bytes of the source.
    pub range: Range<usize>,
    /// Whether it is in the output.
    pub taken: bool,
    /// Definitions under which it would be: name and value, `None` to leave the name undefined. Empty where no
    /// easy set was found.
    pub assume: Vec<(String, Option<String>)>,
}

/// Something that a user should know about the directives or macros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the source.
    pub range: Range<usize>,
    /// One line.
    pub message: String,
}

/// Where an `#include` line of active code is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludeSite {
    /// The line's `#`, in bytes of the source.
    pub source: usize,
    /// The place in the output where what it names becomes visible.
    pub output: usize,
    /// The path as it is spelled.
    pub spelled: String,
    /// Whether in angle brackets.
    pub system: bool,
}

/// What [`preprocess`] makes of a buffer.
#[derive(Debug, Clone, Default)]
pub struct Preprocessed {
    /// What the grammar parses.
    pub text: String,
    /// Where the text came from.
    pub map: SourceMap,
    /// The overwritten words, in the order of the text.
    pub words: Vec<Word>,
    /// The conditionals that nothing decided, in the order of their `#endif`.
    pub undecided: Vec<UndecidedConditional>,
    /// What went wrong.
    pub problems: Vec<Problem>,
    /// The macros in force at the end.
    pub macros: Macros,
    /// The include lines that were acted upon.
    pub include_sites: Vec<IncludeSite>,
    /// What the text had to do with the macros in force, where that was asked for.
    pub trace: Trace,
    /// Its quiet lines, for the next version of it; none where it was traced.
    pub quiet: Vec<Stretch>,
}

/// Preprocesses one buffer. Time and memory are bounded: a macro that expands to more than 256 KiB at one use, or
/// a text that expands to more than 16 MiB and eight times its size, is left unexpanded from there on, and a
/// problem says so.
pub fn preprocess(source: &str, options: Options<'_>, includes: &mut dyn Includes) -> Preprocessed {
    let open = left_open::left_open(source);
    let mut options = options;
    // What is quiet depends on where comments end.
    options.earlier = options
        .earlier
        .filter(|earlier| open.is_empty() && left_open::left_open(earlier.text).is_empty());
    let mut made = pass::run(&left_open::without(source, &open), options, includes);
    made.map.overwritten(&open);
    made
}
