//! A file read and its kernels analysed: nothing panics, every figure is a number, and it ends.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_fuzz::Case;
use warplens_machine::Profiles;
use warplens_syntax::Document;

/// One engine for all inputs, as one serves all edits: what it keeps of one must not show in another.
static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

fuzz_target!(|bytes: &[u8]| {
    let case = Case::read(bytes);
    let document = Document::new(&case.text, case.language);
    let found = ENGINE
        .analyze(
            &document,
            Path::new(case.name()),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    assert_eq!(found.problems, Vec::<String>::new());
    for kernel in &found.kernels {
        let facts = &kernel.analysis.facts;
        for count in &facts.counts {
            assert!(
                count
                    .value
                    .is_none_or(|value| value.is_finite() && value >= 0.0),
                "{count:?}"
            );
        }
        let cycles = kernel.analysis.estimate().cycles;
        assert!(
            cycles.is_none_or(|cycles| cycles.is_finite() && cycles >= 0.0),
            "{cycles:?}"
        );
    }
});
