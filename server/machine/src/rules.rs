//! The rules that are names rather than numbers: how requests coalesce, how banks conflict,
//! how registers are handed out.

use std::fmt;

/// How global-memory requests of one warp become transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GlobalRule {
    /// Compute capability 1.0 and 1.1: a half-warp coalesces only in sequence and aligned, else
    /// every lane costs a transaction of 32 bytes (CUDA C guide 4.2, F.3.2.1).
    HalfWarpStrict,
    /// 1.2 and 1.3: one transaction for each segment a half-warp touches, halved while one half
    /// is unused (CUDA C guide 4.2, F.3.2.2).
    HalfWarpSegments,
    /// 2.x: loads in 128-byte lines of L1, stores and atomics in 32-byte sectors of L2.
    Lines128Loads32Stores,
    /// Distinct sectors of this many bytes; 32 on 3.x, where loads bypass L1, and from 5.0 on.
    Sectors {
        /// Bytes of a sector, a power of two.
        bytes: u32,
    },
    /// Distinct cache lines of this many bytes (AMD, Intel).
    CacheLine {
        /// Bytes of a line, a power of two.
        bytes: u32,
    },
}

/// How shared memory (LDS, SLM) is banked. Banks are 4 bytes wide to the program, but in one mode of 3.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BankRule {
    /// Number of banks: 16 or 32.
    pub banks: u32,
    /// A warp is served as two half-warps, and one pass broadcasts one word only (1.x).
    pub half_warp: bool,
    /// Banks are 8 bytes wide in their 4-byte mode (3.x): words 32 apart inside one aligned row of
    /// 64 words do not conflict.
    pub kepler_four_byte: bool,
    /// Banks are 8 bytes wide and words of 8 bytes are served for all lanes at once (3.x on request).
    pub kepler_eight_byte: bool,
}

/// What registers are allocated to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegisterScope {
    /// A whole block at once (1.x).
    Block,
    /// Each warp, inside the register file of its sub-partition.
    Warp,
}

/// Where the arguments of a kernel live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KernelArguments {
    /// In the shared memory of every block (1.x): their bytes add to what the block uses.
    Shared,
    /// In constant memory; they cost a block nothing.
    Constant,
}

/// A rule of a profile as its file writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Rule {
    /// The rule's name, such as `sectors-32`.
    pub value: String,
    /// Where it is stated; `estimated: …` where it is not published.
    pub source: String,
}

/// What the schema says about a key whose value is a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSpec {
    /// The key.
    pub name: &'static str,
    /// The names it accepts.
    pub choices: &'static [&'static str],
    /// What it means.
    pub about: &'static str,
}

/// Every key of a profile file whose value is a name; all are required.
pub(crate) static RULES: &[RuleSpec] = &[
    RuleSpec {
        name: "coalescing",
        choices: &[
            "half-warp-strict",
            "half-warp-segments",
            "lines-128-loads-32-stores",
            "sectors-32",
            "cache-line-32",
            "cache-line-64",
            "cache-line-128",
            "cache-line-256",
        ],
        about: "How the addresses of one warp's global request become transactions.",
    },
    RuleSpec {
        name: "bank_mode",
        choices: &["half-warp", "whole-warp", "kepler-4-byte", "kepler-8-byte"],
        about: "How the banks of shared memory serve a warp.",
    },
    RuleSpec {
        name: "register_scope",
        choices: &["block", "warp"],
        about: "What registers are allocated to.",
    },
    RuleSpec {
        name: "kernel_arguments",
        choices: &["shared", "constant"],
        about: "Where kernel arguments live; in shared memory they add to what a block uses.",
    },
];

impl GlobalRule {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "half-warp-strict" => Self::HalfWarpStrict,
            "half-warp-segments" => Self::HalfWarpSegments,
            "lines-128-loads-32-stores" => Self::Lines128Loads32Stores,
            "sectors-32" => Self::Sectors { bytes: 32 },
            "cache-line-32" => Self::CacheLine { bytes: 32 },
            "cache-line-64" => Self::CacheLine { bytes: 64 },
            "cache-line-128" => Self::CacheLine { bytes: 128 },
            "cache-line-256" => Self::CacheLine { bytes: 256 },
            _ => return None,
        })
    }

    /// Bytes of its largest transaction through a cache; `None` where requests go to memory past all caches (1.x).
    pub(crate) fn largest_unit(self) -> Option<u32> {
        match self {
            Self::HalfWarpStrict | Self::HalfWarpSegments => None,
            Self::Lines128Loads32Stores => Some(128),
            Self::Sectors { bytes } | Self::CacheLine { bytes } => Some(bytes),
        }
    }
}

impl fmt::Display for GlobalRule {
    /// The rule in words, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HalfWarpStrict => f.write_str("half-warps, in sequence and aligned"),
            Self::HalfWarpSegments => f.write_str("half-warps, shrinking segments of 32 to 128 B"),
            Self::Lines128Loads32Stores => {
                f.write_str("128 B lines (loads), 32 B sectors (stores)")
            }
            Self::Sectors { bytes } => write!(f, "{bytes} B sectors"),
            Self::CacheLine { bytes } => write!(f, "{bytes} B cache lines"),
        }
    }
}

impl RegisterScope {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "block" => Self::Block,
            "warp" => Self::Warp,
            _ => return None,
        })
    }
}

impl KernelArguments {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "shared" => Self::Shared,
            "constant" => Self::Constant,
            _ => return None,
        })
    }
}

impl BankRule {
    /// True where each word of 4 bytes is given on its own.
    pub fn is_of_words(self) -> bool {
        !self.kepler_four_byte && !self.kepler_eight_byte
    }

    pub(crate) fn parse(text: &str, banks: u32) -> Option<Self> {
        if !["half-warp", "whole-warp", "kepler-4-byte", "kepler-8-byte"].contains(&text) {
            return None;
        }
        Some(Self {
            banks,
            half_warp: text == "half-warp",
            kepler_four_byte: text == "kepler-4-byte",
            kepler_eight_byte: text == "kepler-8-byte",
        })
    }
}
