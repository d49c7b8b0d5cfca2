//! Decides whether a client must refresh what it shows of a document.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::documents::Analysed;
use crate::pinned::LinesByName;
use crate::render;

/// A hash of everything that a client shows of a document unprompted: findings, hints and
/// lenses, headers that were not found, and what is wrong in the project's file.
pub fn fingerprint(analysed: &Analysed) -> u64 {
    *analysed.shown.get_or_init(|| number(analysed))
}

fn number(analysed: &Analysed) -> u64 {
    let mut hasher = DefaultHasher::new();
    for finding in &analysed.file.findings {
        format!("{finding:?}").hash(&mut hasher);
    }
    let effective = &analysed.effective;
    effective.settings.inlay_hints.enable.hash(&mut hasher);
    let wanted = &effective.settings.inlay_hints;
    for hint in render::hint::within(analysed, &(0..u32::MAX), wanted, &LinesByName::new(), true) {
        (hint.line, hint.label, hint.tooltip).hash(&mut hasher);
    }
    format!("{:?}", analysed.file.missing_headers()).hash(&mut hasher);
    effective.settings.code_lens.enable.hash(&mut hasher);
    let formulas = render::lens::formulas_are_shown(&analysed.file);
    for kernel in &analysed.file.kernels {
        kernel.line.hash(&mut hasher);
        render::lens::title(kernel, formulas, None).hash(&mut hasher);
        render::lens::registers(kernel).hash(&mut hasher);
        render::lens::assumptions(kernel).hash(&mut hasher);
        render::lens::losses(kernel).hash(&mut hasher);
        render::lens::launch(kernel).hash(&mut hasher);
        render::lens::help(kernel, &analysed.file).hash(&mut hasher);
    }
    if let Some(file) = &effective.file {
        format!("{:?}", file.problems).hash(&mut hasher);
    }
    hasher.finish()
}
