//! The set of profiles: the embedded ones, read when first asked for, and those a user adds.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::error::ProfileError;
use crate::load;
use crate::name::{architecture, is_short_for, squeeze, without_memory};
use crate::profile::Profile;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The GPU that is meant where nothing names one; among several that a name fits it comes first.
pub const DEFAULT_GPU: &str = "a100-sxm4-40gb";

/// One profile: its text until someone asks for it.
#[derive(Debug, Clone)]
struct Entry {
    text: &'static str,
    loaded: OnceLock<Option<Arc<Profile>>>,
}

/// GPU profiles by id.
///
/// Cheap to make: an embedded profile is read when it is first asked for.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    entries: BTreeMap<String, Entry>,
}

impl Profiles {
    /// The profiles that come with warplens.
    pub fn builtin() -> Self {
        let entries = DEVICES
            .iter()
            .map(|&(id, text)| {
                (
                    id.to_owned(),
                    Entry {
                        text,
                        loaded: OnceLock::new(),
                    },
                )
            })
            .collect();
        Self { entries }
    }

    /// What tells the embedded profiles of one build from another's: the version of their form, how many GPUs, and a
    /// checksum over their files.
    pub fn builtin_version() -> String {
        let schema = load::SCHEMA;
        format!("schema {schema}, {} GPUs, {CHECKSUM:08x}", DEVICES.len())
    }

    /// Reads a profile file, embedded architectures at hand. `file_name` is only used in errors.
    pub fn from_toml(file_name: &str, text: &str) -> Result<Profile, ProfileError> {
        load::profile(file_name, text, ARCHITECTURES)
    }

    /// Adds a profile, in place of one with the same id.
    pub fn insert(&mut self, profile: Profile) {
        let id = profile.id.clone();
        let loaded = OnceLock::from(Some(Arc::new(profile)));
        self.entries.insert(id, Entry { text: "", loaded });
    }

    /// The profile of that id.
    pub fn get(&self, id: &str) -> Option<Arc<Profile>> {
        let (id, entry) = self.entries.get_key_value(id)?;
        // Every embedded file is read by a test, so none is lost here.
        entry
            .loaded
            .get_or_init(|| {
                let file = format!("hw-profiles/{id}.toml");
                Self::from_toml(&file, entry.text).ok().map(Arc::new)
            })
            .clone()
    }

    /// The profile that a person means by `name`: its id; the GPU's name or id without case, punctuation and the words
    /// that belong to its maker, its series, its board or its memory (`RTX 3090`, `h100`, `v100-sxm2`, `7900 XTX`); or an
    /// architecture (`sm_90`, `sm_90a`, `compute_90`, `gfx942`). Of several the default, else the [largest](Self::largest).
    pub fn named(&self, name: &str) -> Option<Arc<Profile>> {
        self.get(name).or_else(|| {
            let wanted = squeeze(without_memory(name));
            let architecture = architecture(&wanted);
            self.largest(|profile| {
                squeeze(&profile.architecture) == architecture
                    || is_short_for(&wanted, &profile.id)
                    || is_short_for(&wanted, &profile.name)
            })
        })
    }

    /// All ids, sorted.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// All profiles, by id.
    pub fn iter(&self) -> impl Iterator<Item = Arc<Profile>> {
        self.ids().filter_map(|id| self.get(id))
    }

    /// Of the profiles that `wanted` holds for the one that represents the others where a name does not say which is meant:
    /// the default, else the one with the most single-precision results a second, of equals the first by id.
    pub fn largest(&self, wanted: impl Fn(&Profile) -> bool) -> Option<Arc<Profile>> {
        let rate = |profile: &Profile| {
            f64::from(profile.sms) * profile.fp32_lanes * profile.cycles_per_second()
        };
        let default = self.get(DEFAULT_GPU).filter(|default| wanted(default));
        default.or_else(|| {
            let fitting = self.iter().filter(|profile| wanted(profile));
            fitting.reduce(|best, next| {
                if rate(&next) > rate(&best) {
                    next
                } else {
                    best
                }
            })
        })
    }

    /// Up to `most` ids that an unknown one may have been meant to be: the nearest, the shortest of these first.
    /// Spelling is compared without case and punctuation.
    pub fn near(&self, unknown: &str, most: usize) -> Vec<&str> {
        let wanted = squeeze(unknown);
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<(usize, usize, &str)> = self
            .ids()
            .map(|id| {
                let squeezed = squeeze(id);
                let apart = difference(&wanted, &squeezed).min(from_model(&wanted, id));
                (apart, squeezed.len().abs_diff(wanted.len()), id)
            })
            // More than a third wrong is another name, not a misspelt one.
            .filter(|(apart, ..)| *apart <= wanted.len().max(3) / 3)
            .collect();
        found.sort_unstable();
        let nearest = found.first().map(|(apart, ..)| *apart);
        let nearest = found
            .into_iter()
            .take_while(|(apart, ..)| Some(*apart) == nearest);
        nearest.take(most).map(|(.., id)| id).collect()
    }
}

/// The edits to the nearest beginning of an id that names a model, which goes by it: `a100x` is one letter from `a100-sxm4-40gb`.
fn from_model(wanted: &str, id: &str) -> usize {
    let ends = id.match_indices('-').map(|(at, _)| at);
    let beginnings = ends.map(|at| squeeze(&id[..at]));
    // A family is not enough: `rtx`, `tesla`.
    let models = beginnings.filter(|name| name.contains(|c: char| c.is_ascii_digit()));
    let edits = models.map(|name| crate::spelling::edits(wanted, &name));
    edits.min().unwrap_or(usize::MAX)
}

/// How far apart two names are: 0 where one contains the other, else the edits between them.
fn difference(wanted: &str, id: &str) -> usize {
    if wanted.len().min(id.len()) >= 3 && (id.contains(wanted) || wanted.contains(id)) {
        return 0;
    }
    crate::spelling::edits(wanted, id)
}
