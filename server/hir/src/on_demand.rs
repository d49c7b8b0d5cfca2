//! Libraries that are declared in C++ behind the texts that mention them, and that others do not pay for.

use std::sync::{Arc, OnceLock};

use warplens_syntax::{Expanded, Language};

use crate::{Item, Unit, outline};

/// A text with its items, once it was needed.
type Kept = OnceLock<(Arc<Expanded>, Vec<Item>)>;

/// A library of CUDA and HIP programs.
pub(crate) struct Library {
    /// One of these is in every text that needs it.
    pub(crate) words: &'static [&'static str],
    /// A unit is its own.
    is_own: fn(&Unit) -> bool,
    text: fn() -> String,
    cuda: Kept,
    hip: Kept,
}

impl Library {
    pub(crate) const fn new(
        words: &'static [&'static str],
        is_own: fn(&Unit) -> bool,
        text: fn() -> String,
    ) -> Library {
        Library {
            words,
            is_own,
            text,
            cuda: OnceLock::new(),
            hip: OnceLock::new(),
        }
    }

    /// The library behind a unit that does not have it.
    pub(crate) fn behind(&self, earlier: Arc<Unit>) -> Arc<Unit> {
        let kept = match earlier.language {
            Language::Cuda => &self.cuda,
            Language::Hip => &self.hip,
            Language::OpenCl => return earlier,
        };
        let mut units = std::iter::successors(Some(&earlier), |unit| unit.earlier.as_ref());
        if units.any(|unit| (self.is_own)(unit)) {
            return earlier;
        }
        let (parsed, items) = kept.get_or_init(|| {
            let parsed = Expanded::fragment(&(self.text)(), earlier.language);
            let items = outline(&parsed);
            (parsed, items)
        });
        Arc::new(Unit::behind(parsed, items, Some(earlier), true))
    }
}
