//! What the tests of host programs share.

// Each of them uses a part.
#![allow(dead_code)]

pub mod running;

use std::path::Path;
use std::sync::Arc;

use warplens_syntax::preprocess::{Macros, NoIncludes, Options, preprocess};
use warplens_syntax::{Expanded, Language, words};

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
    let done = preprocess(text, options, &mut NoIncludes);
    Arc::new(Expanded::new(
        Arc::from(Path::new("test.cu")),
        Language::Cuda,
        text.into(),
        done,
        Vec::new(),
        None,
    ))
}
