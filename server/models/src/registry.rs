//! The registry of models: a line for each, in the order they are shown.
//!
//! Whatever lists models (options, settings, the schema, the editors' settings, the documentation) reads it from here.

use crate::entry::{Answers, ModelEntry};
use crate::{auto, linear, mwp_cwp, timing, trace, wfg};

/// One line per model: its variant and the module whose `MODEL` it is.
macro_rules! models {
    ($($variant:ident = $module:ident,)*) => {
        /// Which model.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ModelId {
            $(#[doc = concat!("The model of `", stringify!($module), "`.")] $variant,)*
        }

        impl ModelId {
            /// Every model, in the order they are shown.
            pub const ALL: [ModelId; [$(stringify!($module)),*].len()] = [$(ModelId::$variant),*];

            pub(crate) fn entry(self) -> &'static ModelEntry {
                match self {
                    $(ModelId::$variant => &$module::MODEL,)*
                }
            }
        }
    };
}

models! {
    Auto = auto,
    MwpCwp = mwp_cwp,
    Wfg = wfg,
    Timing = timing,
    Linear = linear,
    Trace = trace,
}

impl ModelId {
    /// The model of a name.
    pub fn named(name: &str) -> Option<ModelId> {
        ModelId::ALL.into_iter().find(|model| model.name() == name)
    }

    /// The name on the command line, in the settings and in the JSON.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// What it is and whom it is after, in a few words.
    pub fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// True where the model simulates warps, which takes tens of milliseconds.
    pub fn simulates(self) -> bool {
        self.entry().answers == Answers::Simulation
    }

    /// Those that answer within a keystroke, in the order they are shown.
    pub fn analytical() -> Vec<ModelId> {
        let mut models = ModelId::ALL.to_vec();
        models.retain(|model| !model.simulates());
        models
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;
    use std::{env, fs};

    use super::*;

    #[test]
    fn names_are_unique_and_lead_back_to_their_models() {
        for model in ModelId::ALL {
            assert_eq!(ModelId::named(model.name()), Some(model));
        }
        assert_eq!(ModelId::named("best"), None);
    }

    /// `docs/models/README.md` lists every model, and each has a page. `WARPLENS_BLESS=1` writes the list.
    #[test]
    fn docs_models_is_up_to_date() {
        const MARKS: (&str, &str) = ("<!-- models -->\n", "<!-- end of models -->\n");
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models");
        let path = docs.join("README.md");
        let found = fs::read_to_string(&path).expect("docs/models/README.md");
        let (before, rest) = found.split_once(MARKS.0).expect("the list's mark");
        let (_, after) = rest
            .split_once(MARKS.1)
            .expect("the mark of the list's end");
        let mut list = String::from(
            "| model | what it is | answers within a keystroke |\n| --- | --- | --- |\n",
        );
        for model in ModelId::ALL {
            let name = model.name();
            let page = format!("{name}.md");
            assert!(docs.join(&page).is_file(), "docs/models/{page} is missing");
            let quick = if model.simulates() {
                "no: it simulates warps"
            } else {
                "yes"
            };
            let _ = writeln!(list, "| [{name}]({page}) | {} | {quick} |", model.summary());
        }
        let text = format!("{before}{}{list}{}{after}", MARKS.0, MARKS.1);
        if env::var_os("WARPLENS_BLESS").is_some() {
            fs::write(&path, &text).expect("docs/models/README.md can be written");
        } else {
            assert_eq!(found, text, "`cargo xtask generate` writes it");
        }
    }
}
