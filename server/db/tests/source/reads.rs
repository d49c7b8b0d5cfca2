//! What tests ask of a text.

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, Variants};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

pub(crate) fn analysed(text: &str, overrides: &Overrides) -> FileAnalysis {
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(text, Language::Cuda);
    engine
        .analyze(
            &document,
            "a.cu".as_ref(),
            &Settings::default(),
            overrides,
            &Cancel::default(),
        )
        .expect("not cancelled")
}

/// CUDA with every launch of its kernels.
pub(crate) fn launched(text: &str) -> FileAnalysis {
    let all = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    analysed(text, &all)
}

/// The sectors, or passes, per request of each access of the first kernel, of which everything is understood.
pub(crate) fn sectors(text: &str) -> Vec<f64> {
    let file = analysed(text, &Overrides::default());
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, [], "{text}");
    let of_each = facts.accesses.iter();
    of_each
        .filter_map(|access| {
            let passes = access.passes_per_request;
            access.transactions_per_request.or(passes)
        })
        .collect()
}

/// How many expressions and statements of the first kernel are not understood.
pub(crate) fn losses(text: &str) -> usize {
    let file = analysed(text, &Overrides::default());
    file.kernels[0].analysis.facts.not_understood.len()
}
