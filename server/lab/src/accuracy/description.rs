//! What is known of the data sets beside their own descriptions: `sets.toml`.
//!
//! In goes the embedded file, out come, by the names of sets, what they were used for ([`Tier`]) and what their programs pass,
//! and of all sets the changes between rows that are those of code actions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    /// Parameters whose next larger value is a change.
    pub parameters: BTreeMap<String, Change>,
    /// Kernels of which the second is the first with a change made.
    pub steps: Vec<Step>,
    sets: BTreeMap<String, Description>,
}

/// Two kernels, one change apart.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The kernel without it.
    pub before: String,
    /// The kernel with it.
    pub after: String,
    /// The change.
    pub change: Change,
}

/// What is known of one set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What it was used for.
    pub tier: Tier,
    /// What makes it so.
    pub why: String,
    /// Arguments that the measured program passes and the set does not hold.
    #[serde(default)]
    pub passed: BTreeMap<String, Passed>,
    /// The rank correlation that is wanted, where it is another than of all.
    pub rho: Option<Rho>,
}

/// An argument that a program passes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    /// Its value.
    pub value: i64,
    /// Why it is known.
    #[expect(dead_code, reason = "read by people")]
    reason: String,
}

/// A rank correlation that is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rho {
    /// At least this.
    pub wanted: f64,
    /// Why it is another than of all.
    #[expect(dead_code, reason = "read by people")]
    reason: String,
}

/// What a set was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// A constant or a figure was taken from it, or chosen by its scores.
    Calibration,
    /// Its scores were read while rules were written.
    Validation,
    /// Never scored while anything was chosen.
    Unseen,
}

impl Tier {
    /// Every tier, the most used first.
    pub const ALL: [Tier; 3] = [Tier::Calibration, Tier::Validation, Tier::Unseen];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Calibration => "calibration",
            Tier::Validation => "validation",
            Tier::Unseen => "unseen",
        }
    }
}

/// What a code action does to a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Neighbouring threads take neighbouring elements.
    Coalesced,
    /// Threads of a warp no longer meet in a bank: a shared array is padded, or subscripted in another way.
    Banks,
    /// What several threads load is put into shared memory first.
    Staged,
    /// Loads of what is only read go the read-only way.
    ReadOnly,
    /// Several words per access.
    Wider,
    /// A loop is unrolled (further).
    Unrolled,
    /// A bound for the registers.
    Bounds,
}

impl Change {
    /// Every change, in the order shown.
    pub const ALL: [Change; 7] = [
        Change::Coalesced,
        Change::Banks,
        Change::Staged,
        Change::ReadOnly,
        Change::Wider,
        Change::Unrolled,
        Change::Bounds,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Change::Coalesced => "accesses coalesced",
            Change::Banks => "bank conflicts taken away",
            Change::Staged => "staged in shared memory",
            Change::ReadOnly => "loaded as read-only",
            Change::Wider => "several words per access",
            Change::Unrolled => "a loop unrolled",
            Change::Bounds => "launch bounds",
        }
    }
}

/// What the file says.
pub fn described() -> &'static Described {
    static FILE: LazyLock<Described> = LazyLock::new(|| {
        toml::from_str(include_str!("sets.toml")).expect("embedded; a test reads it")
    });
    &FILE
}

impl Described {
    /// What is known of a set; nothing of one's own measurements.
    pub fn set(&self, id: &str) -> Option<&Description> {
        self.sets.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_says_what_it_was_used_for() {
        let file = described();
        // A set is unseen until its scores are read.
        for tier in [Tier::Calibration, Tier::Validation] {
            assert!(
                file.sets.values().any(|set| set.tier == tier),
                "{}",
                tier.name()
            );
        }
        assert!(file.sets.values().all(|set| set.why.len() > 20));
        assert_eq!(
            file.set("gpu_stream_public").expect("known").tier,
            Tier::Calibration
        );
        assert!(file.set("my_own_gpu").is_none());
    }
}
