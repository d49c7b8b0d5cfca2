//! Accesses that a warp serves one word, or one lane, at a time.

use crate::global::Lanes;

/// Passes of one warp's read of constant memory: the distinct words its active lanes ask for.
///
/// A word is what one lane reads, at least 4 bytes.
pub fn constant_passes(bytes: u32, addresses: &[i64], active: u64) -> u32 {
    let word = i64::from(bytes.clamp(4, 1 << 16).next_power_of_two());
    let lanes = Lanes::gather(addresses, active, 0).sorted();
    lanes
        .get()
        .chunk_by(|a, b| a.div_euclid(word) == b.div_euclid(word))
        .count() as u32
}

/// Passes of one warp's atomic: the most active lanes that meet on one object of `bytes` bytes.
pub fn atomic_passes(bytes: u32, addresses: &[i64], active: u64) -> u32 {
    let word = i64::from(bytes.max(1));
    let lanes = Lanes::gather(addresses, active, 0).sorted();
    lanes
        .get()
        .chunk_by(|a, b| a.div_euclid(word) == b.div_euclid(word))
        .map(<[i64]>::len)
        .max()
        .unwrap_or(0) as u32
}
