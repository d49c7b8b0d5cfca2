//! Which of the libraries that are declared on demand a text mentions.

use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;

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

/// What finds the words of each library.
static WORDS: LazyLock<Vec<Vec<Finder<'static>>>> = LazyLock::new(|| {
    let finders = |library: &&Library| library.words.iter().map(Finder::new).collect();
    LIBRARIES.iter().map(finders).collect()
});

/// The libraries that a text mentions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Mentioned(u16);

/// Of two texts.
impl std::ops::BitOr for Mentioned {
    type Output = Mentioned;

    fn bitor(self, other: Mentioned) -> Mentioned {
        Mentioned(self.0 | other.0)
    }
}

impl Mentioned {
    /// Those of a text.
    #[must_use]
    pub fn by(text: &str) -> Mentioned {
        let all = WORDS.iter().enumerate();
        let found = |words: &[Finder]| {
            words
                .iter()
                .any(|word| word.find(text.as_bytes()).is_some())
        };
        let mentioned = all.filter(|(_, words)| found(words));
        Mentioned(mentioned.fold(0, |set, (at, _)| set | 1 << at))
    }

    /// The libraries among them behind a unit that does not have them.
    pub(crate) fn behind(self, earlier: Arc<Unit>) -> Arc<Unit> {
        let all = LIBRARIES.iter().enumerate();
        let mentioned = all.filter(|(at, _)| self.0 & 1 << at != 0);
        mentioned.fold(earlier, |earlier, (_, library)| library.behind(earlier))
    }
}
