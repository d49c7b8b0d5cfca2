//! The set of profiles: the embedded ones, read when first asked for, and those a user adds.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::error::ProfileError;
use crate::load;
use crate::name::{Parts, architecture, generation, is_short_for, squeeze, without_memory};
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
    /// that belong to its maker, its series, its board or its memory (`RTX 3090`, `h100`, `v100-sxm2`, `7900 XTX`), in
    /// any order; the beginning of one model's name (`k40`); an architecture (`sm_90`, `sm_90a`, `compute_90`, `gfx942`, `8.0`)
    /// or a generation (`hopper`). Of several the default, else the [largest](Self::largest).
    /// A board or a memory that no such GPU has is a mistake.
    pub fn named(&self, name: &str) -> Option<Arc<Profile>> {
        let (profile, is_it) = self.meant(name)?;
        let same_model = Parts::of(name).model == Parts::of(&profile.name).model;
        (is_it || !same_model).then_some(profile)
    }

    /// The same, and whether it is the GPU of that name itself, not one that is like it.
    pub fn meant(&self, name: &str) -> Option<(Arc<Profile>, bool)> {
        if let Some(profile) = self.get(name) {
            return Some((profile, true));
        }
        let wanted = squeeze(without_memory(name));
        let short = self.largest(|profile| {
            is_short_for(&wanted, &profile.id) || is_short_for(&wanted, &profile.name)
        });
        if let Some(profile) = short {
            return Some((profile, true));
        }
        let like = || self.like(name).map(|profile| (profile, false));
        let of_model = self.of_model(name).or_else(like);
        of_model.or_else(|| self.of_architecture(name).map(|profile| (profile, false)))
    }

    /// A GPU of the model that a name names, with its board and its memory where there is one, and whether they are its.
    fn of_model(&self, name: &str) -> Option<(Arc<Profile>, bool)> {
        let wanted = Parts::of(name);
        let alike = |profile: &Profile| {
            let parts = Parts::of(&profile.name);
            (!wanted.model.is_empty() && parts.model == wanted.model).then(|| wanted.shared(&parts))
        };
        let most = self.iter().filter_map(|profile| alike(&profile)).max()?;
        let found = self.largest(|profile| alike(profile) == Some(most))?;
        let is_it = wanted.is_all_of(&Parts::of(&found.name));
        Some((found, is_it))
    }

    /// The GPU whose model a name begins, where it begins no other.
    fn like(&self, name: &str) -> Option<Arc<Profile>> {
        let wanted = Parts::of(name);
        let mut models: Vec<String> = self
            .iter()
            .map(|profile| Parts::of(&profile.name))
            .filter(|parts| wanted.begins(parts))
            .map(|parts| parts.model)
            .collect();
        models.dedup();
        match &models[..] {
            [model] => self.largest(|profile| Parts::of(&profile.name).model == *model),
            _ => None,
        }
    }

    /// A GPU of an architecture, a compute capability or a generation.
    fn of_architecture(&self, name: &str) -> Option<Arc<Profile>> {
        let mut wanted = generation(name);
        if wanted.is_empty() {
            wanted.push(architecture(&squeeze(name)));
        }
        self.largest(|profile| wanted.contains(&squeeze(&profile.architecture)))
    }

    /// A GPU of a compute capability (`8.6`), else of the nearest one before it of the same generation.
    pub fn of_capability(&self, capability: &str) -> Option<Arc<Profile>> {
        let (major, minor) = capability.trim().split_once('.')?;
        let wanted: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        let known = self.iter().filter_map(|profile| profile.compute_capability);
        let nearest = known
            .filter(|known| known.0 == wanted.0 && *known <= wanted)
            .max()?;
        self.largest(|profile| profile.compute_capability == Some(nearest))
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
