//! The tree-sitter grammar for OpenCL C, compiled in.
//!
//! The grammar is `grammars/opencl/grammar.js`; the nodes that it adds to those of tree-sitter-c are listed in
//! the `README.md` beside it.

use tree_sitter_language::LanguageFn;

#[allow(unsafe_code)]
unsafe extern "C" {
    fn tree_sitter_opencl() -> *const ();
}

/// OpenCL C 1.0 to 3.0 after preprocessing: of all directives only `#pragma` lines are understood.
#[allow(unsafe_code)]
// Sound: the symbol is the generated parser's entry point, which returns a pointer to a static language.
pub const LANGUAGE: LanguageFn = unsafe { LanguageFn::from_raw(tree_sitter_opencl) };
