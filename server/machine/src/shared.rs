//! Passes of one warp's request to shared memory (LDS, SLM). No allocation, as in `global`.

use crate::global::Lanes;
use crate::profile::Profile;
use crate::rules::BankRule;

/// Most banks, and so most lanes that they serve at a time.
const MOST: usize = 32;

/// What one warp's request to shared memory costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SharedRequest {
    /// Times the bank array is cycled.
    pub passes: u32,
    /// The same without conflicts: 1 for words of 4 bytes and less, 2 for 8, 4 for 16; twice that
    /// where half-warps or waves of twice as many lanes as banks are served apart. Parts without an
    /// active lane do not count.
    pub ideal: u32,
}

/// Passes of one warp's request; arguments as in [`global_request`](crate::global_request).
///
/// Lanes that read one word share a pass. As many lanes as there are banks are served at a time; of words of 8 bytes half
/// as many, of 16 a quarter (in the 8-byte mode of 3.x all and half). On 1.x a half-warp's pass serves each bank once and broadcasts
/// one word (CUDA C guide 4.2, F.3.3; which one is unspecified there: the best is taken), and wider
/// words are requests of 4 bytes each.
pub fn shared_request(
    p: &Profile,
    bytes_per_lane: u32,
    addresses: &[i64],
    active: u64,
) -> SharedRequest {
    // No access is wider than 16 bytes; 128 keeps the arrays bounded whatever the caller says.
    let words = bytes_per_lane.min(128).div_ceil(4).next_power_of_two() as usize;
    if bytes_per_lane == 0 {
        return SharedRequest::default();
    }
    let mut all = SharedRequest::default();
    if p.bank_rule.half_warp {
        let half = (p.warp_size / 2) as usize;
        for (index, lanes) in addresses.chunks(half).enumerate() {
            let lanes = Lanes::gather(lanes, active, index * half);
            if lanes.get().is_empty() {
                continue;
            }
            for word in 0..words {
                all.passes += broadcast_passes(lanes.get(), word as i64, p.bank_rule.banks);
                all.ideal += 1;
            }
        }
        return all;
    }
    let phases = if p.bank_rule.kepler_eight_byte {
        words.div_ceil(2)
    } else {
        words
    };
    let together = p.bank_rule.banks as usize;
    // Words as wide as a row of all banks are served lane by lane.
    let of_phase = (together / phases).max(1);
    for (group, lanes) in addresses.chunks(together).enumerate() {
        for (phase, lanes) in lanes.chunks(of_phase).enumerate() {
            let first = group * together + phase * of_phase;
            if first >= crate::global::MAX_LANES {
                break;
            }
            let lanes = Lanes::gather(lanes, active, first);
            if !lanes.get().is_empty() {
                all.passes += multicast_passes(lanes.get(), bytes_per_lane.min(128), p.bank_rule);
                all.ideal += 1;
            }
        }
    }
    all
}

/// Passes of one request, were each lane's words 4, 8 or 16 bytes wide and aligned to that: of accesses that the compiler joins.
/// Half-warps are served apart from 8 bytes on; what the lanes of one want takes as many passes as the busiest bank has words, a
/// broadcast one.
///
/// Measured on an H100: 2 wavefronts where all lanes of a half-warp read one 16-byte word, 16 and 32 where they read a row of 64 or 128
/// bytes each (`matmul_abt16_conflict`, `matmul_abt_conflict`).
///
/// Nothing where the lanes lie differently within such words: then the compiler joins nothing.
pub fn passes_by_width(p: &Profile, addresses: &[i64], active: u64) -> [u32; 3] {
    let all = Lanes::gather(addresses, active, 0);
    let joined = |width: i64| {
        let mut within = all.get().iter().map(|address| address.rem_euclid(width));
        let first = within.next();
        within.all(|at| Some(at) == first)
    };
    if !joined(8) {
        return [0; 3];
    }
    let passes = |width: i64| -> u32 {
        let together = if width > 4 { MOST / 2 } else { MOST };
        let groups = addresses.chunks(together).enumerate();
        let passes = groups.map(|(group, lanes)| {
            let mut lanes = Lanes::gather(lanes, active, group * together);
            lanes.align(width);
            multicast_passes(lanes.get(), width as u32, p.bank_rule)
        });
        passes.sum()
    };
    let pairs = passes(8);
    let quads = if joined(16) { passes(16) } else { 2 * pairs };
    [passes(4), pairs, quads]
}

/// Passes of `ldmatrix` and `stmatrix`, which move rows of 16 bytes: each phase serves the eight rows of one matrix, whose
/// addresses lanes 8·i to 8·i + 7 give (PTX ISA, `ldmatrix`).
pub fn rows_request(p: &Profile, matrices: u8, addresses: &[i64], active: u64) -> SharedRequest {
    let mut all = SharedRequest::default();
    let phases = addresses.chunks(ROWS).take(usize::from(matrices));
    for (phase, rows) in phases.enumerate() {
        let rows = Lanes::gather(rows, active, phase * ROWS);
        if !rows.get().is_empty() {
            all.passes += multicast_passes(rows.get(), ROW_BYTES, p.bank_rule);
            all.ideal += 1;
        }
    }
    all
}

/// Rows of a matrix that are served at a time.
const ROWS: usize = 8;

/// Bytes of such a row.
const ROW_BYTES: u32 = 16;

/// A shift of all lanes by this many bytes never changes what [`shared_request`] answers.
pub fn bank_period(p: &Profile) -> i64 {
    let row = i64::from(p.bank_rule.banks) * 4;
    if p.bank_rule.kepler_four_byte || p.bank_rule.kepler_eight_byte {
        2 * row
    } else {
        row
    }
}

/// The bank that holds an address, and the row of it that is read at a time: lanes on one row of a bank share a pass.
pub fn bank_of(p: &Profile, address: i64) -> (u32, i64) {
    let rule = p.bank_rule;
    let word = address >> if rule.kepler_eight_byte { 3 } else { 2 };
    let row = row_of(rule, word);
    // A bank's number is less than their count.
    ((row & (i64::from(rule.banks) - 1)) as u32, row)
}

/// Words of one such number come together.
fn row_of(rule: BankRule, word: i64) -> i64 {
    // In Kepler's 4-byte mode word w and word w + 32 of a row of 64.
    if rule.kepler_four_byte {
        (word >> 6 << 5) | (word & 31)
    } else {
        word
    }
}

/// The most distinct words (rows of a bank) that one bank must give.
fn multicast_passes(starts: &[i64], bytes: u32, rule: BankRule) -> u32 {
    let banks = i64::from(rule.banks);
    // What a bank gives at a time: 4 bytes, or 8.
    let shift = if rule.kepler_eight_byte { 3 } else { 2 };
    // Up to 32 words, and one more for each lane whose address is not aligned.
    let mut rows = [0_i64; 2 * MOST];
    let mut len = 0;
    for &start in starts {
        let last = start.saturating_add(i64::from(bytes) - 1) >> shift;
        for word in start >> shift..=last {
            if let Some(row) = rows.get_mut(len) {
                *row = row_of(rule, word);
                len += 1;
            }
        }
    }
    let rows = &mut rows[..len];
    rows.sort_unstable();
    let mut count = [0_u32; MOST];
    for row in rows.chunk_by(|a, b| a == b) {
        count[(row[0] & (banks - 1)) as usize] += 1;
    }
    count.into_iter().max().unwrap_or(0)
}

/// The fewest passes for a half-warp on 1.x. A pass broadcasts one word to all lanes that want it
/// and gives every other bank's word to one lane.
fn broadcast_passes(starts: &[i64], word: i64, banks: u32) -> u32 {
    let mut words = [0_i64; MOST];
    let mut len = 0;
    for (slot, &start) in words.iter_mut().zip(starts) {
        *slot = (start >> 2).wrapping_add(word);
        len += 1;
    }
    let words = &mut words[..len];
    words.sort_unstable();

    let mut lanes_of_bank = [0_u8; MOST];
    for word in words.iter() {
        lanes_of_bank[(word & i64::from(banks - 1)) as usize] += 1;
    }
    let most = lanes_of_bank.iter().copied().max().unwrap_or(0);
    if most <= 1 {
        return u32::from(most);
    }
    // A broadcast of a word that n lanes want saves its bank n - 1 passes; each pass has one
    // broadcast, so the fewest passes are the first number within which the broadcasts fit that
    // every bank needs.
    let mut saved = [(0_u8, 0_u8); MOST];
    let mut groups = 0;
    for group in words.chunk_by(|a, b| a == b) {
        saved[groups] = (
            group.len() as u8 - 1,
            (group[0] & i64::from(banks - 1)) as u8,
        );
        groups += 1;
    }
    let saved = &mut saved[..groups];
    saved.sort_unstable_by(|a, b| b.cmp(a));
    for passes in 1..most {
        let mut left = lanes_of_bank;
        let mut broadcasts = 0;
        // Largest savings first, only in banks that still need more than this many passes.
        for &(saving, bank) in saved.iter() {
            if left[bank as usize] > passes && saving > 0 {
                left[bank as usize] -= saving;
                broadcasts += 1;
            }
        }
        if broadcasts <= passes && left.iter().all(|lanes| *lanes <= passes) {
            return u32::from(passes);
        }
    }
    u32::from(most)
}
