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

/// A GPU's name taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// What tells models apart, without case and punctuation: `a100`, `1080ti`.
    pub(crate) model: String,
    board: Option<String>,
    memory: Option<String>,
}

impl Parts {
    /// The parts of a name, whatever their order behind the series: `NVIDIA A100 80GB PCIe`, `Tesla V100-SXM2-32GB`.
    pub(crate) fn of(name: &str) -> Parts {
        let words = name.split(|c: char| !c.is_ascii_alphanumeric());
        let words = words.map(str::to_ascii_lowercase);
        let words = words.filter(|word| !word.is_empty());
        let mut parts = Parts {
            model: String::new(),
            board: None,
            memory: None,
        };
        for word in words.skip_while(|word| SERIES.contains(&word.as_str())) {
            if is_memory(&word) {
                parts.memory = Some(word);
            } else if is_board(&word) {
                parts.board = Some(word);
            } else if word != "gpu" && !word.starts_with("hbm") {
                parts.model.push_str(&word);
            }
        }
        parts
    }

    /// How many of the board and the memory that this one names are another's.
    pub(crate) fn shared(&self, other: &Parts) -> usize {
        let same = |own: &Option<String>, other: &Option<String>| own.is_some() && own == other;
        usize::from(same(&self.board, &other.board))
            + usize::from(same(&self.memory, &other.memory))
    }

    /// Whether another has the model, the board and the memory, as far as this one names them.
    pub(crate) fn is_all_of(&self, other: &Parts) -> bool {
        let named = usize::from(self.board.is_some()) + usize::from(self.memory.is_some());
        self.model == other.model && self.shared(other) == named
    }

    /// Whether the model is another's but for letters at its end: `k40` of `k40c`, `1080` of `1080ti`.
    pub(crate) fn begins(&self, other: &Parts) -> bool {
        let has_digits = self.model.contains(|c: char| c.is_ascii_digit());
        let rest = other.model.strip_prefix(&self.model);
        let letters = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        has_digits && self.model.len() >= 3 && letters
    }
}

/// The architectures that a name of a generation or a compute capability means, as profiles call them, without punctuation.
pub(crate) fn generation(name: &str) -> Vec<String> {
    if let Some((major, minor)) = name.trim().split_once('.')
        && !major.is_empty()
        && !minor.is_empty()
        && is_number(major)
        && is_number(minor)
    {
        return vec![format!("sm{major}{minor}")];
    }
    let of: &[&str] = match squeeze(name).as_str() {
        "fermi" => &["sm20"],
        "kepler" => &["sm30", "sm35"],
        "maxwell" => &["sm50", "sm52"],
        "pascal" => &["sm60", "sm61"],
        "volta" => &["sm70"],
        "turing" => &["sm75"],
        "ampere" => &["sm80", "sm86", "sm87"],
        "ada" | "lovelace" | "adalovelace" => &["sm89"],
        "hopper" => &["sm90"],
        "blackwell" => &["sm100", "sm120"],
        "cdna" | "cdna1" => &["gfx908"],
        "cdna2" => &["gfx90a"],
        "cdna3" => &["gfx942"],
        "rdna2" => &["gfx1030", "gfx1032"],
        "rdna3" => &["gfx1100"],
        _ => &[],
    };
    of.iter().map(|&one| one.to_owned()).collect()
}

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
    if first {
        SERIES.contains(&word)
    } else {
        is_memory(word) || is_board(word) || word == "gpu"
    }
}

/// `80gb`.
fn is_memory(word: &str) -> bool {
    word.strip_suffix("gb").is_some_and(is_number)
}

/// `pcie`, `sxm4`, `nvl`.
fn is_board(word: &str) -> bool {
    word == "pcie" || word == "nvl" || word.strip_prefix("sxm").is_some_and(is_number)
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
