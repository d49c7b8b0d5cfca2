//! What the operations of a trace take: the classes of Table I with their latencies, and memory.
//!
//! The paper measures each class by micro-benchmarks at every number of active warps. We have two figures for each, its
//! latency and the lanes that execute it: few warps see the latency, many the lanes, and between the two the pipeline
//! finds the number by itself.

use warplens_analysis::facts::Mix;
use warplens_hardware::Profile;

/// A class of arithmetic operations. Those of Table I and what the machine has beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `int`, `uint`: add, sub, mul, mad, shl, shr. Division and remainder are the sequences that the machine executes.
    Integer,
    /// `float`: add, sub, mul, mad; division likewise.
    Single,
    /// `double`: the same.
    Double,
    /// sin, cos, tan, exp, log, sqrt and what they are made of.
    Special,
    /// Half precision.
    Half,
    /// Conversions that the machine executes. (The paper prunes those of its intermediate code.)
    Conversion,
    /// Branches.
    Branch,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 7] = [
        Class::Integer,
        Class::Single,
        Class::Double,
        Class::Special,
        Class::Half,
        Class::Conversion,
        Class::Branch,
    ];

    /// Operations of this class in a mix.
    pub fn count(self, mix: &Mix) -> f64 {
        match self {
            Class::Integer => mix.int,
            Class::Single => mix.fp32,
            Class::Double => mix.fp64,
            Class::Special => mix.sfu,
            Class::Half => mix.fp16,
            Class::Conversion => mix.conversion,
            Class::Branch => mix.branch,
        }
    }

    /// Latency of one in cycles and how many lanes execute it in a cycle; the error is the figure that the profile
    /// lacks.
    ///
    /// Integers, half precision and branches have the latency of single precision, conversions that of special
    /// functions, with whose units they are executed; a branch goes through the integer lanes.
    pub fn figures(self, profile: &Profile) -> Result<(f64, f64), &'static str> {
        Ok(match self {
            Class::Integer | Class::Branch => (profile.arithmetic_latency, profile.int_lanes),
            Class::Single => (profile.arithmetic_latency, profile.fp32_lanes),
            Class::Double => (
                profile.fp64_latency.ok_or("fp64_latency")?,
                profile.fp64_lanes.ok_or("fp64_lanes")?,
            ),
            Class::Special => (profile.sfu_latency, profile.sfu_lanes),
            Class::Half => (
                profile.arithmetic_latency,
                profile.fp16_lanes.ok_or("fp16_lanes")?,
            ),
            Class::Conversion => (profile.sfu_latency, profile.conversion_lanes),
        })
    }
}

/// Cycles for which a stretch of arithmetic holds the units of an SM, and cycles until its warp has the result.
///
/// The units are held for the issue slots of all operations or for the lanes of the busiest class, whichever is longer.
/// The warp waits for the latencies of the longest chain of dependent operations: that part of all of them.
pub fn arithmetic(mix: &Mix, chain: f64, profile: &Profile) -> Result<(f64, f64), &'static str> {
    let mut total = 0.0;
    let mut hold: f64 = 0.0;
    let mut latency = 0.0;
    for class in Class::ALL {
        let count = positive(class.count(mix));
        if count > 0.0 {
            let (each, lanes) = class.figures(profile)?;
            total += count;
            latency += count * each;
            hold = hold.max(count * f64::from(profile.warp_size) / lanes);
        }
    }
    if total <= 0.0 {
        return Ok((0.0, 0.0));
    }
    hold = hold.max(total / profile.issue_per_clock());
    let part = (positive(chain) / total).min(1.0);
    Ok((hold, (latency * part).max(hold)))
}

/// A count that can be computed with.
pub(crate) fn positive(value: f64) -> f64 {
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}

/// What the memory system is to one SM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Bytes of the L1 that global loads go through; 0 where they bypass it.
    pub l1_bytes: f64,
    /// Bytes of L2; 0 where there is none.
    pub l2_bytes: f64,
    /// Cycles of a load that hits L1.
    pub l1_latency: f64,
    /// Cycles of a load that hits L2.
    pub l2_latency: f64,
    /// Cycles of a load that goes to DRAM.
    pub dram_latency: f64,
    /// Bytes that L1 hands over in a cycle.
    pub l1_rate: f64,
    /// Bytes of an SM's share of L2 in a cycle.
    pub l2_rate: f64,
    /// Bytes of an SM's share of DRAM in a cycle.
    pub dram_rate: f64,
}

/// Bytes an SM takes from L2 in a cycle where the profile does not say it: one sector.
const L2_RATE: f64 = 32.0;
/// Bytes L1 hands over in a cycle where the profile does not say it: one line.
const L1_RATE: f64 = 128.0;

impl Memory {
    /// From the profile, with so many SMs at work and so much of an SM's shared memory in use (bytes). The error is the
    /// figure that the profile lacks.
    ///
    /// What L2 and DRAM deliver is shared evenly by the SMs at work, and no SM takes more from DRAM than from L2.
    pub fn new(
        profile: &Profile,
        active_sms: f64,
        shared_in_use: f64,
    ) -> Result<Memory, &'static str> {
        let share = |gb_s: f64| gb_s * 1e9 / profile.cycles_per_second() / active_sms.max(1.0);
        let l2_rate = profile.l2_bandwidth_gb_s.map_or(L2_RATE, share);
        // An L1 that is larger than the largest shared memory shares its place with it.
        let l1_bytes = match (profile.l1_latency, profile.l1_bytes) {
            (Some(_), Some(bytes)) if bytes >= u64::from(profile.shared_per_sm) => {
                (bytes as f64 - shared_in_use).max(0.0)
            }
            (Some(_), Some(bytes)) => bytes as f64,
            _ => 0.0,
        };
        let l2_bytes = profile.l2_bytes.unwrap_or(0) as f64;
        let l2_latency = match profile.l2_latency {
            Some(latency) => latency,
            None if profile.l2_bytes.is_some() => return Err("l2_latency"),
            None => profile.dram_latency,
        };
        Ok(Memory {
            l1_bytes,
            l2_bytes,
            l1_latency: profile.l1_latency.unwrap_or(l2_latency),
            l2_latency,
            dram_latency: profile.dram_latency,
            l1_rate: profile.l1_bandwidth_b_clk.unwrap_or(L1_RATE),
            l2_rate,
            dram_rate: share(profile.achieved_dram_bandwidth_gb_s()).min(l2_rate),
        })
    }
}
