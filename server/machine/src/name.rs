//! How people name a GPU: with or without its maker, its series, its board and its memory.

use crate::profile::Profile;

/// Companies whose names begin those of GPUs.
const MAKERS: [&str; 3] = ["NVIDIA ", "AMD ", "Intel "];

impl Profile {
    /// The name without its maker: `A100 SXM4 40GB`.
    pub fn plain_name(&self) -> &str {
        let plain = MAKERS
            .iter()
            .find_map(|maker| self.name.strip_prefix(maker));
        plain.unwrap_or(&self.name)
    }

    /// That without its board and memory: `A100`. Several GPUs may share it.
    pub fn model_name(&self) -> &str {
        let mut name = self.plain_name();
        while let Some((before, word)) = name.rsplit_once(' ')
            && is_optional(&word.to_ascii_lowercase(), false)
        {
            name = before;
        }
        name
    }
}

/// Words before what tells GPUs apart: makers and series.
const SERIES: [&str; 15] = [
    "nvidia", "amd", "intel", "geforce", "gtx", "rtx", "tesla", "quadro", "jetson", "agx",
    "radeon", "pro", "rx", "instinct", "arc",
];

/// Whether `wanted`, squeezed, is what is left of a GPU's name or id without some words that may be left out.
pub(crate) fn is_short_for(wanted: &str, name: &str) -> bool {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    begins(wanted, &words, true)
}

/// Whether the words, without some that may be left out, make up all of `wanted`; `first`: no word was taken yet.
fn begins(wanted: &str, words: &[String], first: bool) -> bool {
    let Some((word, rest)) = words.split_first() else {
        return wanted.is_empty() && !first;
    };
    let taken = wanted.strip_prefix(word.as_str());
    taken.is_some_and(|left| begins(left, rest, false))
        || (is_optional(word, first) && begins(wanted, rest, first))
}

/// Makers and series stand before what tells GPUs apart, boards and sizes of memory behind it.
fn is_optional(word: &str, first: bool) -> bool {
    let memory = word.strip_suffix("gb").is_some_and(is_number);
    let board = word == "pcie" || word.strip_prefix("sxm").is_some_and(is_number);
    if first {
        SERIES.contains(&word)
    } else {
        memory || board || word == "gpu"
    }
}

/// A driver's name of a GPU without the kind of its memory, which some end with (`NVIDIA H100 80GB HBM3`).
pub(crate) fn without_memory(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((before, kind)) if kind.to_ascii_lowercase().starts_with("hbm") => before,
        _ => name,
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A squeezed architecture as profiles call it: `compute_90` and `sm_90a` are `sm90`.
pub(crate) fn architecture(wanted: &str) -> String {
    let number = wanted
        .strip_prefix("compute")
        .or_else(|| wanted.strip_prefix("sm"));
    match number {
        Some(number) => format!("sm{}", number.trim_end_matches(char::is_alphabetic)),
        None => wanted.to_owned(),
    }
}

/// A name without case and punctuation.
pub(crate) fn squeeze(id: &str) -> String {
    id.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
