//! Text, grammars and incremental trees of CUDA, HIP and OpenCL buffers.
//!
//! A [`Document`] is an open buffer: a rope that edits change at once, and a tree that [`Document::parse`]
//! brings up to date from the previous one. Nothing here knows what a kernel means.

mod blanking;
mod comments;
mod document;
mod embedded;
mod expanded;
mod language;
mod lexer;
mod mend;
mod names;
mod parser;
pub mod preprocess;
pub mod stop;
mod tree;

pub use blanking::{RANGE_OF_LABELS, words};
pub use comments::{Directive, DirectiveKind, directives};
pub use document::{Document, Parsed};
pub use embedded::{EmbeddedProgram, embedded_programs};
pub use expanded::{Expanded, Place};
pub use language::Language;
pub use names::{has_word, is_identifier, is_restrict, is_word_part, words_in};
pub use tree::{
    AssignOperator, BinaryOperator, Children, Field, Kind, Node, PointerOperator, Tree,
    UnaryOperator, UpdateOperator, assigned, binary, nodes,
};
