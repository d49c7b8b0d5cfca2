//! What the operations of a trace take: the classes of Table I with their latencies, and memory.
//!
//! The paper measures each class by micro-benchmarks at every number of active warps. We have two figures for each, its
//! latency and the lanes that execute it: few warps see the latency, many the lanes, and between the two the pipeline
//! finds the number by itself.

use crate::input::positive;
use warplens_machine::{Mix, Pipe, Profile};

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
    /// Matrix products.
    Matrix,
    /// Conversions that the machine executes. (The paper prunes those of its intermediate code.)
    Conversion,
    /// Exchanges between lanes.
    Shuffle,
    /// Branches.
    Branch,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 9] = [
        Class::Integer,
        Class::Single,
        Class::Double,
        Class::Special,
        Class::Half,
        Class::Matrix,
        Class::Conversion,
        Class::Shuffle,
        Class::Branch,
    ];

    /// What executes it.
    pub fn pipes(self) -> &'static [Pipe] {
        match self {
            Class::Integer => &[Pipe::Int, Pipe::IntMul],
            Class::Single => &[Pipe::Fp32, Pipe::Fp32Multiply],
            Class::Double => &[Pipe::Fp64],
            Class::Special => &[Pipe::Sfu],
            Class::Half => &[Pipe::Fp16],
            Class::Matrix => &[Pipe::Tensor],
            Class::Conversion => &[Pipe::Conversion, Pipe::ToFloat],
            Class::Shuffle => &[Pipe::Shuffle],
            Class::Branch => &[Pipe::Branch],
        }
    }

    /// The figure that a profile lacks for it.
    fn lacks(self, profile: &Profile) -> Option<&'static str> {
        let lacks = |figure: Option<f64>, name| figure.is_none().then_some(name);
        match self {
            Class::Double => lacks(profile.fp64_latency, "fp64_latency")
                .or_else(|| lacks(profile.fp64_lanes, "fp64_lanes")),
            Class::Half => lacks(profile.fp16_lanes, "fp16_lanes"),
            Class::Matrix => lacks(profile.tensor_fp16_fma, "tensor_fp16_fma"),
            _ => None,
        }
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
        let mut busy = 0.0;
        for &pipe in class.pipes() {
            let count = positive(mix[pipe]);
            if count > 0.0 {
                if let Some(figure) = class.lacks(profile) {
                    return Err(figure);
                }
                let timing = profile.timing(pipe);
                total += count;
                latency += count * timing.latency;
                busy += count * timing.issue;
            }
        }
        hold = hold.max(busy);
    }
    if total <= 0.0 {
        return Ok((0.0, 0.0));
    }
    hold = hold.max(total / profile.issue_per_clock());
    let part = (positive(chain) / total).min(1.0);
    Ok((hold, (latency * part).max(hold)))
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
    /// From the profile, with this many SMs at work and this much of an SM's shared memory in use (bytes). The error is the
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
