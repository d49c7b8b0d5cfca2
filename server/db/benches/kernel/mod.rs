//! A kernel of a text, without an engine around it.

use std::path::Path;
use std::sync::Arc;

use warplens_hir::{TemplateArguments, Unit, lower, outline};
use warplens_ir::Kernel;
use warplens_syntax::preprocess::{
    IncludeLine, IncludeResult, Includes, Macros, Options, preprocess,
};
use warplens_syntax::{Expanded, Language, words};

/// The kernel needs nothing of its harness.
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

/// A kernel's IR.
pub fn read(source: &str, name: &str) -> Kernel {
    let options = Options {
        macros: Macros::default(),
        known_absent: &|_| false,
        words: words(Language::Cuda),
        file: "kernel.cu",
        traced: false,
        earlier: None,
    };
    let done = preprocess(source, options, &mut NoHeaders);
    let parsed = Arc::new(Expanded::new(
        Arc::from(Path::new("kernel.cu")),
        Language::Cuda,
        source.into(),
        done,
        Vec::new(),
        None,
    ));
    let items = outline(&parsed);
    let unit = Arc::new(Unit::new(&parsed, &items, None, false));
    let found = items.iter().find_map(|item| {
        let kernel = lower(&parsed, item, &unit, &TemplateArguments::default())?;
        (kernel.name == name).then_some(kernel)
    });
    found.expect("the kernel is there")
}
