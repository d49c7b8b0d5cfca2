//! Profiles for tests: the built-in ones, and rules of which no built-in GPU has.

use std::fmt::Write as _;
use std::sync::Arc;

use warplens_machine::{Profile, Profiles};

pub fn gpu(id: &str) -> Arc<Profile> {
    Profiles::builtin()
        .get(id)
        .unwrap_or_else(|| panic!("no profile {id}"))
}

/// A device file of an architecture that has no built-in GPU yet, made from one that has.
pub fn variant(id: &str, change: &[(&str, &str)]) -> Arc<Profile> {
    let mut text = String::from("schema = 1\n");
    let base = gpu(id);
    text += "id = \"variant\"\nname = \"V\"\narchitecture = \"none\"\nvendor = \"amd\"\n";
    for (key, figure) in base.figures() {
        let changed = change.iter().find(|(name, _)| name == key);
        let value = changed.map_or(figure.value.to_string(), |(_, value)| (*value).to_owned());
        writeln!(text, "{key} = {{ value = {value}, source = \"test\" }}").expect("a string grows");
    }
    for (key, rule) in base.rules() {
        let changed = change.iter().find(|(name, _)| name == key);
        let value = changed.map_or(rule.value.as_str(), |(_, value)| *value);
        writeln!(text, "{key} = {{ value = \"{value}\", source = \"test\" }}")
            .expect("a string grows");
    }
    Arc::new(Profiles::from_toml("variant.toml", &text).unwrap_or_else(|error| panic!("{error}")))
}

/// Fermi's rule.
pub fn fermi() -> Arc<Profile> {
    variant(
        "tesla-k40c",
        &[
            ("coalescing", "lines-128-loads-32-stores"),
            ("bank_mode", "whole-warp"),
        ],
    )
}

/// An AMD GPU with waves of 64 lanes and lines of 64 bytes.
pub fn wave64() -> Arc<Profile> {
    variant(
        "a100-sxm4-40gb",
        &[
            ("warp_size", "64"),
            ("coalescing", "cache-line-64"),
            ("max_warps_per_sm", "32"),
        ],
    )
}

/// An AMD GPU with waves of 32 lanes and lines of 128 bytes.
pub fn wave32() -> Arc<Profile> {
    variant("a100-sxm4-40gb", &[("coalescing", "cache-line-128")])
}

/// Kepler with the banks that a program may ask for.
pub fn eight_byte_banks() -> Arc<Profile> {
    Arc::new(
        gpu("tesla-k40c")
            .with_eight_byte_banks()
            .expect("3.x has two modes"),
    )
}
