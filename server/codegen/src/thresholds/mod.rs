//! The thresholds by which a compiler decides, as data: `nvcc.toml` and `amdgcn.toml`, one file per compiler.
//!
//! In goes a file whose entries have a value, a unit, what they decide and an origin; out comes a struct of plain numbers that
//! the code reads by name. A file holds exactly the entries of its struct, and every entry names an origin of the file: how the
//! value is known, on what data it was chosen, and how far off it is there.

use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};

/// Makes the struct of a file: its groups, and in each the entries with their types.
macro_rules! thresholds {
    ($(#[$doc:meta])* $name:ident { $($group:ident: $of:ident { $($entry:ident: $ty:ty,)* })* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            #[cfg_attr(not(test), expect(dead_code, reason = "read by people, and by the tests"))]
            origins: toml::Table,
            $(pub $group: $of,)*
        }
        $(
            #[derive(Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub(crate) struct $of {
                $(#[serde(deserialize_with = "value")] pub $entry: $ty,)*
            }
        )*
    };
}

thresholds! {
    /// nvcc: its front end and its assembler.
    Nvcc {
        unroll: Unroll {
            full: u64,
            full_private: u64,
            partial: u64,
            runtime_factor: u64,
            pragma_factor: u64,
            pragma_trips: u64,
        }
        assembler: Assembler {
            full: u64,
            full_few_turns: u64,
            few_turns: u64,
            full_squares: u64,
            full_without_loads: u64,
            counted: u64,
            counted_turns: u64,
            partial: u64,
            accesses: u64,
            factor: u64,
            copies: u32,
            copies_peeled: u32,
            remainder_unsigned: u32,
            remainder_nested: u32,
            turns_per_test: u64,
            copies_ahead: u32,
        }
        size: Size {
            branch: u64,
            unknown_loop_copies: u64,
            unknown_loop_tests: u64,
            divide_float: u64,
            divide_float_machine: u64,
            divide_integer: u64,
            divide_integer_machine: u64,
            root: u64,
            approximate: u64,
            approximate_machine: u64,
            function: u64,
            reduced: u64,
            address: u64,
            address_most: u64,
        }
        registers: Registers {
            frame: u32,
            fewest: u32,
            calls: u32,
            loads_ahead: u32,
            unit: u32,
            widest: u32,
            recompute: u32,
            recompute_words: u32,
            window: u32,
            spills_in_flight: f32,
        }
        latency: Latency {
            memory: u32,
            shared: u32,
            special: u32,
            double: u32,
            other: u32,
        }
        promotion: Promotion {
            loop_weight: f64,
            words: u64,
        }
        predication: Predication {
            operations: usize,
        }
    }
}

thresholds! {
    /// LLVM's AMDGPU back end.
    Amdgcn {
        unroll: AmdgcnUnroll {
            full: u64,
            private_percent: u64,
            lds_percent: u64,
            lds_depth: u32,
            partial: u64,
            runtime_factor: u64,
            pragma_factor: u64,
            pragma_trips: u64,
            array_bytes: u64,
        }
        registers: AmdgcnRegisters {
            system: u32,
            scalar_most: u32,
            unmeasured_vector: u32,
            unmeasured_scalar: u32,
        }
        schedule: AmdgcnSchedule {
            relaxed: u32,
            cluster: usize,
            clause: u32,
            quick: u32,
        }
        memory: AmdgcnMemory {
            global_offset: i64,
            lds_offset: i64,
            lds_align: u64,
        }
        latency: AmdgcnLatency {
            global: u32,
            lds: u32,
            scalar_load: u32,
            library: u32,
            double: u32,
            other: u32,
        }
    }
}

/// An entry of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<T> {
    value: T,
    #[serde(rename = "unit")]
    _unit: String,
    #[serde(rename = "what")]
    _what: String,
    #[serde(rename = "origin")]
    _origin: String,
}

/// The number of an entry.
fn value<'de, D: Deserializer<'de>, T: Deserialize<'de>>(entry: D) -> Result<T, D::Error> {
    Entry::deserialize(entry).map(|entry| entry.value)
}

/// What an entry in hundredths is divided by.
pub(crate) const PERCENT: u64 = 100;

const NVCC: &str = include_str!("nvcc.toml");
const AMDGCN: &str = include_str!("amdgcn.toml");

/// nvcc's thresholds.
pub(crate) fn nvcc() -> &'static Nvcc {
    static TABLE: LazyLock<Nvcc> =
        LazyLock::new(|| toml::from_str(NVCC).expect("embedded; a test reads it"));
    &TABLE
}

/// The thresholds of LLVM's AMDGPU back end.
pub(crate) fn amdgcn() -> &'static Amdgcn {
    static TABLE: LazyLock<Amdgcn> =
        LazyLock::new(|| toml::from_str(AMDGCN).expect("embedded; a test reads it"));
    &TABLE
}

#[cfg(test)]
mod tests {
    use toml::{Table, Value};

    use super::*;

    /// Kinds of origins, and what each must say beside its data.
    const KINDS: [(&str, &[&str]); 5] = [
        ("measured", &["compiler", "command", "error"]),
        ("training set", &["compiler", "error"]),
        ("LLVM option", &["compiler"]),
        ("published", &[]),
        ("unknown", &[]),
    ];

    fn text<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
        table
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    }

    #[test]
    fn every_threshold_has_a_unit_a_purpose_and_an_origin_that_its_file_explains() {
        let origins = [&nvcc().origins, &amdgcn().origins];
        for (file, origins) in [NVCC, AMDGCN].into_iter().zip(origins) {
            for (name, origin) in origins {
                let origin = origin.as_table().expect("a table");
                let kind = text(origin, "kind").unwrap_or_default();
                let (_, needed) = KINDS
                    .iter()
                    .find(|(known, _)| *known == kind)
                    .unwrap_or_else(|| panic!("{name}: no kind of origin is \"{kind}\""));
                for key in ["data"].iter().chain(*needed) {
                    assert!(text(origin, key).is_some(), "{name}: no {key}");
                }
            }
            let groups: Table = file.parse().expect("TOML");
            let mut used = Vec::new();
            for (group, entries) in groups.iter().filter(|(group, _)| *group != "origins") {
                for (name, entry) in entries.as_table().expect("a group") {
                    let entry = entry.as_table().expect("an entry");
                    for key in ["unit", "what", "origin"] {
                        assert!(text(entry, key).is_some(), "{group}.{name}: no {key}");
                    }
                    let origin = text(entry, "origin").unwrap_or_default();
                    assert!(
                        origins.contains_key(origin),
                        "{group}.{name}: no origin {origin}"
                    );
                    used.push(origin);
                }
            }
            for name in origins.keys() {
                assert!(used.contains(&name.as_str()), "nothing comes from {name}");
            }
        }
    }

    /// What a line of Rust says, without comments, strings and the sizes of small vectors.
    fn code(line: &str) -> String {
        let line = line.split("//").next().unwrap_or_default();
        let parts = line.split('"').step_by(2).collect::<String>();
        match parts.find("SmallVec<[") {
            Some(at) => parts[..at].to_owned(),
            None => parts,
        }
    }

    /// The digits of a number, without what says its type; nothing of a name.
    fn digits(word: &str) -> &str {
        let end = word
            .find(|c: char| !c.is_ascii_digit() && c != '_')
            .unwrap_or(word.len());
        word[..end].trim_matches('_')
    }

    #[test]
    fn code_that_unrolls_and_allocates_holds_no_number_above_two() {
        let files = [
            ("build/loops.rs", include_str!("../build/loops.rs")),
            ("build/amdgpu.rs", include_str!("../build/amdgpu.rs")),
            ("registers.rs", include_str!("../registers.rs")),
            ("passes/straight.rs", include_str!("../passes/straight.rs")),
        ];
        for (name, file) in files {
            for (at, line) in file.lines().enumerate() {
                let code = code(line);
                let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let number = words
                    .map(digits)
                    .find(|digits| !matches!(*digits, "" | "0" | "1" | "2"));
                assert_eq!(number, None, "{name}:{}", at + 1);
            }
        }
    }
}
