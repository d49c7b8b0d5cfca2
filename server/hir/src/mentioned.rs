//! Which of the libraries that are declared on demand a text mentions.

use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;

use crate::Unit;
use crate::on_demand::Library;

static LIBRARIES: [&Library; 9] = [
    &crate::glm::LIBRARY,
    &crate::mdspan::LIBRARY,
    &crate::complex::LIBRARY,
    &crate::cub::LIBRARY,
    &crate::atomic::LIBRARY,
    &crate::copies::LIBRARY,
    &crate::random::LIBRARY,
    &crate::torch_random::LIBRARY,
    &crate::optional::LIBRARY,
];

/// Finds the words of all libraries in one pass: a text is looked through with each keystroke.
static WORDS: LazyLock<(AhoCorasick, Vec<usize>)> = LazyLock::new(|| {
    let words = || LIBRARIES.iter().enumerate();
    let of = words().flat_map(|(at, library)| library.words.iter().map(move |_| at));
    let words = words().flat_map(|(_, library)| library.words);
    let found = AhoCorasick::new(words).unwrap_or_else(|error| unreachable!("{error}"));
    (found, of.collect())
});

/// The libraries that a text mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mentioned(u16);

impl Mentioned {
    /// Those of a text.
    #[must_use]
    pub fn by(text: &str) -> Mentioned {
        let (words, of) = &*WORDS;
        let all = words.find_iter(text);
        Mentioned(all.fold(0, |set, found| set | 1 << of[found.pattern().as_usize()]))
    }

    /// The libraries among them behind a unit that does not have them.
    pub(crate) fn behind(self, earlier: Arc<Unit>) -> Arc<Unit> {
        let all = LIBRARIES.iter().enumerate();
        let mentioned = all.filter(|(at, _)| self.0 & 1 << at != 0);
        mentioned.fold(earlier, |earlier, (_, library)| library.behind(earlier))
    }
}
