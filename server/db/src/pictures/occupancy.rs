//! Occupancy over block size, registers and shared memory, each with the others as they are.

use warplens_machine::{Occupancy, Profile, occupancy};

use crate::KernelAnalysis;

/// Points of the curve over shared memory, at most.
const SHARED_POINTS: u64 = 192;

/// Resident warps of the most an SM holds, over one quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct OccupancyCurve {
    /// The quantity and the fraction from there on, up to the next; in order. A fraction of 0 is a launch that is refused.
    pub steps: Vec<(u64, f64)>,
    /// The largest value that was looked at.
    pub end: u64,
    /// The kernel's own value; `None` where it is not known.
    pub now: Option<u64>,
}

/// The three curves of a kernel under its launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Residence {
    /// Over threads of a block; the launch's threads are dealt out to as many blocks as they then need.
    pub block: OccupancyCurve,
    /// Over registers of a thread.
    pub registers: OccupancyCurve,
    /// Over bytes of shared memory of a block, static and dynamic together.
    pub shared: OccupancyCurve,
    /// The kernel's own occupancy.
    pub now: f64,
    /// What keeps another block out.
    pub limiter: &'static str,
}

impl Residence {
    pub(crate) fn of(analysis: &KernelAnalysis) -> Residence {
        let (facts, profile) = (&analysis.facts, &*analysis.profile);
        let launch = facts.launch;
        let (threads, blocks) = (launch.threads_per_block(), launch.blocks());
        let registers = analysis.input.resources.registers_per_thread;
        let shared = analysis.input.resources.static_shared_bytes + launch.dynamic_shared_bytes;
        let arguments = analysis.argument_bytes();
        let all = threads.saturating_mul(blocks);
        let warp = u64::from(profile.warp_size.max(1));
        let fraction = |threads: u64, registers: u32, shared: u64, blocks: u64| {
            let Occupancy { fraction, .. } =
                occupancy(profile, threads, registers, shared + arguments, blocks);
            fraction
        };
        let most = shared_range(profile, shared);
        let step = u64::from(profile.shared_unit.max(1));
        let step = (most / SHARED_POINTS).next_multiple_of(step).max(step);
        Residence {
            block: curve(
                (1..=u64::from(profile.max_threads_per_block) / warp).map(|warps| warps * warp),
                Some(threads),
                |threads| fraction(threads, registers, shared, all.div_ceil(threads.max(1))),
            ),
            registers: curve(
                1..=u64::from(profile.max_registers_per_thread),
                (registers > 0).then_some(u64::from(registers)),
                |registers| fraction(threads, registers as u32, shared, blocks),
            ),
            shared: curve(
                (0..=most / step).map(|index| index * step),
                Some(shared),
                |shared| fraction(threads, registers, shared, blocks),
            ),
            now: analysis.input.occupancy.fraction,
            limiter: analysis.input.occupancy.limiter.name(),
        }
    }
}

/// The most that a block can have, or what this one asks for.
fn shared_range(profile: &Profile, shared: u64) -> u64 {
    u64::from(profile.shared_per_block_max()).max(shared.min(1 << 24))
}

/// Where the fraction changes.
fn curve(
    values: impl Iterator<Item = u64>,
    now: Option<u64>,
    fraction: impl Fn(u64) -> f64,
) -> OccupancyCurve {
    let mut steps: Vec<(u64, f64)> = Vec::new();
    let mut end = now.unwrap_or(0);
    for value in values {
        let here = fraction(value);
        if steps
            .last()
            .is_none_or(|(_, last)| (last - here).abs() > 1e-12)
        {
            steps.push((value, here));
        }
        end = end.max(value);
    }
    OccupancyCurve { steps, end, now }
}
