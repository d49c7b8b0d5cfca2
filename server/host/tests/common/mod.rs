//! What the tests of host programs share.

use std::path::Path;
use std::sync::Arc;

use warplens_syntax::preprocess::{
    IncludeLine, IncludeResult, Includes, Macros, Options, preprocess,
};
use warplens_syntax::{Expanded, Language, words};

struct NoHeaders;

impl Includes for NoHeaders {
    fn include(&mut self, _: &IncludeLine<'_>, _: &Macros, _: bool) -> IncludeResult {
        IncludeResult::Nothing
    }
    fn enter(&mut self, _: &Path) {}
    fn leave(&mut self) {}
    fn has_include(&mut self, _: &str, _: bool) -> bool {
        false
    }
}

/// A text of CUDA as the walk reads it, without headers.
pub fn expanded(text: &str) -> Arc<Expanded> {
    let options = Options {
        macros: Macros::default(),
        known_absent: &|_| false,
        words: words(Language::Cuda),
        file: "test.cu",
        traced: false,
        earlier: None,
    };
    let done = preprocess(text, options, &mut NoHeaders);
    Arc::new(Expanded::new(
        Arc::from(Path::new("test.cu")),
        Language::Cuda,
        text.into(),
        done,
        Vec::new(),
        None,
    ))
}
