//! A kernel of a text, without an engine around it.

use std::path::Path;
use std::sync::Arc;

use warplens_hir::{TemplateArguments, Unit, lower, outline};
use warplens_ir::Kernel;
use warplens_syntax::preprocess::{Macros, NoIncludes, Options, preprocess};
use warplens_syntax::{Expanded, Language, words};

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
    let done = preprocess(source, options, &mut NoIncludes);
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
