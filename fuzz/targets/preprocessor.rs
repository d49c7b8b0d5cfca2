//! The preprocessor: it ends, its output is bounded, and its map leads to and fro within both texts.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use warplens_fuzz::Case;
use warplens_syntax::preprocess::{
    EarlierText, IncludeLine, IncludeResult, Includes, Macros, Options, Preprocessed, WordTable, preprocess,
};
use warplens_syntax::words;

/// Every file can be included, and is the text itself.
struct Itself<'a> {
    text: &'a str,
    entered: usize,
}

impl Includes for Itself<'_> {
    fn include(&mut self, line: &IncludeLine<'_>, _: &Macros, _: bool) -> IncludeResult {
        if self.entered > 0 || line.system {
            return IncludeResult::Nothing;
        }
        IncludeResult::Text {
            text: self.text.into(),
            path: Path::new("itself.h").into(),
        }
    }

    fn enter(&mut self, _: &Path) {
        self.entered += 1;
    }

    fn leave(&mut self) {
        self.entered -= 1;
    }

    fn has_include(&mut self, _: &str, system: bool) -> bool {
        system
    }
}

fn run(text: &str, table: &WordTable, traced: bool, earlier: Option<EarlierText>) -> Preprocessed {
    let options = Options {
        macros: Macros::default(),
        known_absent: &|name| name.starts_with("_WIN"),
        words: table,
        file: "k.cu",
        traced,
        earlier,
    };
    let made = preprocess(text, options, &mut Itself { text, entered: 0 });
    assert!(made.text.len() <= (17 << 20) + 9 * text.len());
    made
}

fuzz_target!(|bytes: &[u8]| {
    let case = Case::read(bytes);
    let text = &case.text;
    let table = words(case.language);
    let made = run(text, table, true, None);
    // A line was typed in the middle: what is not read again would have come to the same.
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|at| text.is_char_boundary(*at));
    let (before, behind) = text.split_at(middle.unwrap_or(0));
    let old = [
        before,
        behind.split_once('\n').map_or("", |(_, behind)| behind),
    ]
    .concat();
    let quiet = &run(&old, table, false, None).quiet;
    let earlier = EarlierText { text: &old, quiet };
    let after = run(text, table, false, Some(earlier));
    assert_eq!(after.text, made.text);
    assert_eq!(after.macros.fingerprint(), made.macros.fingerprint());
    for output in (0..=made.text.len()).step_by(1 + made.text.len() / 4096) {
        assert!(made.map.to_source(output) <= text.len());
        let range = made
            .map
            .source_range(output..(output + 1).min(made.text.len()));
        assert!(range.start <= range.end && range.end <= text.len());
    }
    for source in 0..=text.len() {
        if let Some(output) = made.map.to_output(source) {
            assert!(output <= made.text.len());
        }
    }
    for place in made.problems.iter().map(|problem| &problem.range).chain(
        made.undecided
            .iter()
            .flat_map(|one| &one.branches)
            .map(|branch| &branch.range),
    ) {
        assert!(place.start <= place.end && place.end <= text.len());
    }
    for word in &made.words {
        assert!(made.text.get(word.range.clone()).is_some());
    }
});
