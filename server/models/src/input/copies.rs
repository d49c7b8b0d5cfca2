//! What the copies past the registers take of the memory system: `cp.async`, in SASS `LDGSTS`.
//!
//! In: the two addresses of each copy, by thread. Out: sectors that L2 is asked for, and wavefronts of the SM's data stage.
//! The hardware handles a copy as pairs of where the data comes from and where it goes to, which the facts, a load and a store
//! each by its own rule, do not know:
//!
//! - sectors: distinct pairs of a global sector of 32 bytes and a shared segment of 32 bytes,
//! - wavefronts: for each pair of a global and a shared line of 128 bytes, the largest number of shared segments that one of
//!   its sectors goes to; they add up.
//!
//! Read from `lts__t_sectors` and `l1tex__data_pipe_lsu_wavefronts` of four kernels of tests/kernels on an H100
//! (docs/accuracy/counters.md); assumed of every GPU that has the instruction. Copies of 16 bytes alone.

use std::collections::BTreeMap;

use warplens_codegen::Target;
use warplens_facts::facts::{Access, Op, SourceFacts, Space};
use warplens_machine::Profile;
use warplens_symbolic::Closed;

use super::executed::ExecutedAccess;

/// Bytes of a sector, and of the segment of shared memory that one goes to.
const SECTOR: i64 = 32;
/// Bytes that each lane copies: these pass L1 by (`.cg`). What copies of 4 and 8 bytes take, which go through L1, was not measured.
const WIDE: u32 = 16;
/// Bytes of a line.
const LINE: i64 = 128;
/// Iterations looked at of each loop.
const ITERATIONS: i64 = 4;

/// Puts what copies take in place of what a load and a store by themselves would.
pub(super) fn pair(facts: &SourceFacts, profile: &Profile, accesses: &mut [ExecutedAccess]) {
    let Some(capability) = profile.compute_capability else {
        return;
    };
    if !Target::of(Some(capability)).copies_past_registers() {
        return;
    }
    for (number, store) in facts.accesses.iter().enumerate() {
        if store.ahead.is_none() || store.op != Op::Store || store.space != Space::Shared {
            continue;
        }
        let loaded = facts.accesses.iter().take(number).rposition(|load| {
            load.ahead.is_some() && load.op == Op::Load && load.site == store.site
        });
        let Some(load) = loaded else { continue };
        let Some(request) = Pair::of(facts, &facts.accesses[load], store) else {
            continue;
        };
        if let Some(load) = accesses.get_mut(load)
            && let Some(sectors) = load
                .transactions_per_request
                .filter(|sectors| *sectors > 0.0)
        {
            load.requests_per_sector = (request.sectors / sectors).max(1.0);
        }
        if let Some(store) = accesses.get_mut(number) {
            store.passes_per_request = Some(request.wavefronts);
        }
    }
}

/// A request's average over the warps of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    sectors: f64,
    wavefronts: f64,
}

impl Pair {
    /// `None` where an address is not known by thread alone.
    fn of(facts: &SourceFacts, load: &Access, store: &Access) -> Option<Pair> {
        // Where some lanes do not copy, which do is not known here.
        let suits = |access: &Access| {
            access.bytes_per_lane == WIDE
                && access.active_lanes_per_request == Some(f64::from(facts.warp_size))
        };
        if !suits(load) || !suits(store) {
            return None;
        }
        let (from, to) = (load.in_array.as_deref()?, store.in_array.as_deref()?);
        let block = facts
            .launch
            .block
            .map(|extent| i64::try_from(extent).unwrap_or(1));
        let threads = block.iter().product::<i64>();
        let warp = i64::from(facts.warp_size).max(1);
        let mut room = Vec::new();
        let (mut sectors, mut wavefronts, mut requests) = (0, 0, 0);
        for iteration in 0..ITERATIONS {
            let at = |closed: &Closed| -> Vec<i64> {
                let last = closed.extents().iter().map(|extent| (extent - 1).max(0));
                last.map(|last| iteration.min(last)).collect()
            };
            let (inside, outside) = (at(from), at(to));
            for first in (0..threads).step_by(warp as usize) {
                let lanes: Vec<(i64, i64)> = (first..(first + warp).min(threads))
                    .map(|thread| {
                        let thread = [
                            thread % block[0],
                            thread / block[0] % block[1],
                            thread / (block[0] * block[1]),
                        ];
                        let from = from.at(thread, &inside, &mut room);
                        (from, to.at(thread, &outside, &mut room))
                    })
                    .collect();
                let request = request(&lanes);
                sectors += request.0;
                wavefronts += request.1;
                requests += 1;
            }
        }
        (requests > 0).then(|| Pair {
            sectors: sectors as f64 / f64::from(requests),
            wavefronts: wavefronts as f64 / f64::from(requests),
        })
    }
}

/// Sectors and wavefronts of one request, whose lanes copy 16 bytes each from one address to another.
fn request(lanes: &[(i64, i64)]) -> (usize, usize) {
    // A copy is as aligned as it is long: it lies in one sector and one segment.
    let mut pairs: Vec<(i64, i64)> = lanes
        .iter()
        .map(|(from, to)| (from.div_euclid(SECTOR), to.div_euclid(SECTOR)))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let line = |sector: i64| sector.div_euclid(LINE / SECTOR);
    // Segments by pair of lines and by sector.
    let mut segments: BTreeMap<(i64, i64), BTreeMap<i64, usize>> = BTreeMap::new();
    for &(from, to) in &pairs {
        let lines = segments.entry((line(from), line(to))).or_default();
        *lines.entry(from).or_default() += 1;
    }
    let wavefronts = segments
        .values()
        .map(|sectors| sectors.values().copied().max().unwrap_or(0))
        .sum();
    (pairs.len(), wavefronts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lane by lane, 16 bytes each: a tile with rows of `row` bytes from rows of `pitch` bytes, `place` says where a chunk of a
    /// row goes.
    fn tile(row: i64, pitch: i64, place: impl Fn(i64, i64) -> i64) -> (usize, usize) {
        let chunks = row / 16;
        let lanes: Vec<(i64, i64)> = (0..32)
            .map(|lane| (lane / chunks, lane % chunks))
            .map(|(y, x)| (y * pitch + 16 * x, place(y, x)))
            .collect();
        request(&lanes)
    }

    #[test]
    fn lines_that_go_to_lines_take_one_wavefront_each() {
        assert_eq!(tile(128, 4096, |y, x| 128 * y + 16 * x), (16, 4));
        assert_eq!(tile(512, 4096, |y, x| 512 * y + 16 * x), (16, 4));
    }

    #[test]
    fn a_swizzle_within_a_line_costs_nothing() {
        let swizzled = tile(128, 4096, |y, x| 128 * y + 16 * (x ^ (y & 7)));
        assert_eq!(swizzled, (16, 4));
    }

    /// `hgemm_swizzled` on an H100: 8 wavefronts for its first tile, 4 for its second, 6 on average.
    #[test]
    fn short_rows_that_share_a_shared_line_take_a_wavefront_each() {
        assert_eq!(tile(64, 4096, |y, x| 64 * y + 16 * x), (16, 8));
    }

    /// `hgemm_async` on an H100: 24 sectors, 15 and 10.5 wavefronts, 12.75 on average.
    #[test]
    fn rows_that_a_pad_shifts_by_half_a_segment_ask_for_sectors_twice() {
        assert_eq!(tile(64, 4096, |y, x| 80 * y + 16 * x), (24, 15));
        let warps = (0..8).map(|warp| tile(256, 4096, |y, x| 272 * (2 * warp + y) + 16 * x));
        let (sectors, wavefronts): (Vec<usize>, Vec<usize>) = warps.unzip();
        assert_eq!(sectors, [24; 8]);
        assert_eq!(wavefronts.iter().sum::<usize>(), 84);
    }
}
