//! What a warp's request costs on every architecture, worked out by hand from the vendors' guides.
//!
//! CG: CUDA C Programming Guide, release 4.2, appendix F (compute capability 1.0 to 3.0). CG11: CUDA C++ Programming
//! Guide, release 11.7, appendix K (3.x to 8.x). GCN, RDNA: AMD's instruction set architecture manuals and
//! optimisation guides. Bases are aligned to 256 bytes.

use std::sync::Arc;

use crate::variants::{eight_byte_banks, fermi, gpu, wave32, wave64};
use warplens_machine::{
    Access, Profile, atomic_passes, constant_passes, global_request, shared_request,
};

const ALL: u64 = u64::MAX;

/// Where the lanes of a warp go, and which take part.
struct Pattern {
    name: &'static str,
    bytes: u32,
    address: fn(i64) -> i64,
    active: u64,
}

fn pattern(name: &'static str, bytes: u32, address: fn(i64) -> i64) -> Pattern {
    Pattern {
        name,
        bytes,
        address,
        active: ALL,
    }
}

fn masked(name: &'static str, active: u64, address: fn(i64) -> i64) -> Pattern {
    Pattern {
        active,
        ..pattern(name, 4, address)
    }
}

/// Transactions and bytes moved of one request.
fn moved(profile: &Profile, op: Access, pattern: &Pattern) -> (u32, u32) {
    let addresses: Vec<i64> = (0..i64::from(profile.warp_size))
        .map(pattern.address)
        .collect();
    let request = global_request(profile, op, pattern.bytes, &addresses, pattern.active);
    (request.transactions, request.bytes_moved)
}

fn global_patterns() -> [Pattern; 17] {
    [
        pattern("bytes side by side", 1, |i| i),
        pattern("2-byte words side by side", 2, |i| 2 * i),
        pattern("4-byte words side by side", 4, |i| 4 * i),
        pattern("8-byte words side by side", 8, |i| 8 * i),
        pattern("16-byte words side by side", 16, |i| 16 * i),
        pattern("one word further", 4, |i| 4 * i + 4),
        pattern("every second word", 4, |i| 8 * i),
        pattern("every third word", 4, |i| 12 * i),
        pattern("a column of rows of 32 words", 4, |i| 128 * i),
        // Reversed within 32 lanes, so that a wave of 64 does the same twice.
        pattern("reversed", 4, |i| 4 * (i / 32 * 32 + 31 - i % 32)),
        pattern("one word for all", 4, |_| 0),
        // 5 is coprime to 16: each half-warp permutes its own 16 words.
        pattern("permuted within half-warps", 4, |i| {
            4 * (i / 16 * 16 + i % 16 * 5 % 16)
        }),
        masked("even lanes", 0x5555_5555_5555_5555, |i| 4 * i),
        masked("the first 20 lanes", (1 << 20) - 1, |i| 4 * i),
        pattern("a block 16 wide in rows of 1024 words", 4, |i| {
            i % 16 * 4 + i / 16 * 4096
        }),
        pattern("a block 8 wide in rows of 1024 words", 4, |i| {
            i % 8 * 4 + i / 8 * 4096
        }),
        masked("one lane", 1, |i| 4 * i),
    ]
}

/// Holds one figure a pattern, in the order of [`global_patterns`].
#[track_caller]
fn holds(profile: &Profile, op: Access, expected: [(u32, u32); 17]) {
    for (pattern, expected) in global_patterns().iter().zip(expected) {
        let found = moved(profile, op, pattern);
        assert_eq!(
            found, expected,
            "{} {op:?}: {}",
            profile.architecture, pattern.name
        );
    }
}

#[test]
fn capability_1_0_and_1_1() {
    // CG F.3.2.1: a half-warp whose lane k takes word k (of 4, 8, 16 bytes) of an aligned segment is one transaction
    // of 64 bytes, one of 128, two of 128, also where lanes do not take part; else each lane is one of 32 bytes.
    let lanes = (32, 32 * 32);
    let expected = [
        lanes,
        lanes,
        (2, 2 * 64),
        (2, 2 * 128),
        (4, 4 * 128),
        lanes,
        lanes,
        lanes,
        lanes,
        lanes,
        lanes,
        lanes,
        (2, 2 * 64),
        (2, 2 * 64),
        (2, 2 * 64),
        lanes,
        (1, 64),
    ];
    for op in [Access::Load, Access::Store] {
        holds(&gpu("geforce-8800-gtx"), op, expected);
    }
}

#[test]
fn capability_1_2_and_1_3() {
    // CG F.3.2.2: for each half-warp the segment (32 bytes for 1-byte words, 64 for 2-byte ones, else 128) of the
    // lowest lane serves all lanes in it; it is halved while only one half is used; then the next lane.
    let expected = [
        (2, 2 * 32),
        // 32 of 64 bytes: halved.
        (2, 2 * 32),
        (2, 2 * 64),
        (2, 2 * 128),
        (4, 4 * 128),
        // Bytes 4 to 67: 128. Bytes 68 to 127: 64, and 128 to 131: 32.
        (3, 128 + 64 + 32),
        (2, 2 * 128),
        // Lanes 0 to 10 span 128 bytes, 11 to 15 bytes 4 to 55 of the next: 64; lanes 16 to 21 its upper 64, 22 to 31
        // bytes 8 to 119 of the third: 128.
        (4, 128 + 64 + 64 + 128),
        (32, 32 * 32),
        (2, 2 * 64),
        (2, 2 * 32),
        (2, 2 * 64),
        (2, 2 * 64),
        // The last four lanes: 16 bytes.
        (2, 64 + 32),
        (2, 2 * 64),
        // Four rows of 32 bytes.
        (4, 4 * 32),
        (1, 32),
    ];
    for op in [Access::Load, Access::Store] {
        holds(&gpu("gtx-280"), op, expected);
    }
}

/// Distinct sectors of 32 bytes for 32 lanes.
const SECTORS: [u32; 17] = [1, 2, 4, 8, 16, 5, 8, 12, 32, 4, 1, 4, 4, 3, 4, 4, 1];
/// Distinct lines of 128 bytes for 32 lanes.
const LINES: [u32; 17] = [1, 1, 1, 2, 4, 2, 2, 3, 32, 1, 1, 1, 1, 1, 2, 4, 1];

#[test]
fn capability_2_x() {
    // CG F.4.2: loads cached in L1 come in lines of 128 bytes; what L2 alone caches in segments of 32.
    let fermi = fermi();
    holds(
        &fermi,
        Access::Load,
        LINES.map(|lines| (lines, lines * 128)),
    );
    for op in [Access::Store, Access::Atomic] {
        holds(&fermi, op, SECTORS.map(|sectors| (sectors, sectors * 32)));
    }
}

#[test]
fn capability_3_x_and_later() {
    // CG11 K.3.2: on 3.x L1 is for local memory, global loads are cached in L2 alone, in segments of 32 bytes. K.4 and
    // later: lines of 128 bytes are filled by sectors of 32.
    for id in [
        "tesla-k40c",
        "v100-sxm2-16gb",
        "rtx-2080-ti",
        "a100-sxm4-40gb",
        "h100-sxm5",
    ] {
        for op in [Access::Load, Access::Store, Access::Atomic] {
            holds(&gpu(id), op, SECTORS.map(|sectors| (sectors, sectors * 32)));
        }
    }
}

#[test]
fn waves_of_64_lanes_and_of_32() {
    // GCN: lines of 64 bytes for 64 lanes: twice the bytes of a warp where no lane is off, half the line.
    let lines = [1, 2, 4, 8, 16, 5, 8, 12, 64, 4, 1, 4, 4, 2, 4, 8, 1];
    for op in [Access::Load, Access::Store] {
        holds(&wave64(), op, lines.map(|lines| (lines, lines * 64)));
        // RDNA: lines of 128 bytes for 32 lanes.
        holds(&wave32(), op, LINES.map(|lines| (lines, lines * 128)));
    }
}

/// A pattern in shared memory with its passes and those without conflicts, by architecture.
struct Banks {
    pattern: Pattern,
    /// 1.x: 16 banks for half a warp, one word broadcast a pass, wide words in requests of 4 bytes. CG F.3.3.
    half_warps: (u32, u32),
    /// 2.x, 5.0 and later: 32 banks of 4 bytes, any word to any lanes; 8-byte words by half-warps, 16-byte ones by
    /// quarters. CG F.4.3, CG11 K.4.3.
    words: (u32, u32),
    /// 3.x in its default mode: words 32 apart in one aligned row of 64 come together. CG F.5.3.
    kepler: (u32, u32),
    /// 3.x in its 8-byte mode: 32 banks of 8 bytes. CG F.5.3, "64-bit mode".
    kepler_eight: (u32, u32),
    /// GCN: 32 banks of 4 bytes, a wave of 64 in two halves. GCN3 ISA, chapter 12 (LDS).
    wave64: (u32, u32),
}

#[rustfmt::skip]
fn bank_table() -> Vec<Banks> {
    let row = |pattern, half_warps, words, kepler, kepler_eight, wave64| Banks {
        pattern, half_warps, words, kepler, kepler_eight, wave64,
    };
    vec![
        row(pattern("words side by side", 4, |i| 4 * i), (2, 2), (1, 1), (1, 1), (1, 1), (2, 2)),
        row(pattern("reversed", 4, |i| 4 * (63 - i)), (2, 2), (1, 1), (1, 1), (1, 1), (2, 2)),
        row(pattern("permuted", 4, |i| 4 * (i * 5 % 64)), (2, 2), (1, 1), (1, 1),
            // Banks of 8 bytes: lane i has word i * 5 / 2 modulo 32, a row of 64 words has one word per bank.
            (1, 1), (2, 2)),
        // Two lanes per bank; on Kepler the two words are of one row, or of one word of 8 bytes each.
        row(pattern("every second word", 4, |i| 8 * i), (4, 2), (2, 1), (1, 1), (1, 1), (4, 2)),
        // 3 is odd: every bank once. 8-byte words 3k and 3k + 1 up to 46: 1, 4, … 13 share a bank with 33 … 45.
        row(pattern("every third word", 4, |i| 12 * i), (2, 2), (1, 1), (1, 1), (2, 1), (2, 2)),
        row(pattern("every 16th word", 4, |i| 64 * i), (32, 2), (16, 1), (8, 1), (8, 1), (32, 2)),
        row(pattern("a column of [32][32]", 4, |i| 128 * i), (32, 2), (32, 1), (16, 1), (16, 1), (64, 2)),
        row(pattern("a column of [32][33]", 4, |i| 132 * i), (2, 2), (1, 1), (1, 1), (1, 1), (2, 2)),
        row(pattern("one word for all", 4, |_| 20), (2, 2), (1, 1), (1, 1), (1, 1), (2, 2)),
        // Two words of one bank for half of the lanes each: 1.x broadcasts one after the other.
        row(pattern("two words 32 apart", 4, |i| i % 2 * 128), (4, 2), (2, 1), (1, 1), (1, 1), (4, 2)),
        row(pattern("two words 64 apart", 4, |i| i % 2 * 256), (4, 2), (2, 1), (2, 1), (2, 1), (4, 2)),
        // Two words of two banks: any lanes may share a word in one pass, but 1.x broadcasts one of the two.
        row(pattern("two words side by side for all", 4, |i| i % 2 * 4), (4, 2), (1, 1), (1, 1), (1, 1), (2, 2)),
        // Four lanes a word: 1.x needs four passes for four words (one broadcast a pass is no faster).
        row(pattern("bytes side by side", 1, |i| i), (8, 2), (1, 1), (1, 1), (1, 1), (2, 2)),
        row(pattern("2-byte words side by side", 2, |i| 2 * i), (4, 2), (1, 1), (1, 1), (1, 1), (2, 2)),
        // 1.x: two requests with a stride of two words.
        row(pattern("8-byte words side by side", 8, |i| 8 * i), (8, 4), (2, 2), (2, 2), (1, 1), (4, 4)),
        row(pattern("every second 8-byte word", 8, |i| 16 * i), (16, 4), (4, 2), (2, 2), (2, 1), (8, 4)),
        row(pattern("16-byte words side by side", 16, |i| 16 * i), (32, 8), (4, 4), (4, 4), (2, 2), (8, 8)),
        row(masked("the first 16 lanes", 0xffff, |i| 4 * i), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)),
        row(masked("even lanes, every second word", 0x5555_5555_5555_5555, |i| 8 * i),
            // The words are 4 apart: of 16 banks 4 have two lanes of a half-warp each, of 32 banks 8 two of a warp.
            (4, 2), (2, 1), (1, 1), (1, 1), (4, 2)),
    ]
}

#[test]
fn banks_of_shared_memory() {
    type Column = (Arc<Profile>, fn(&Banks) -> (u32, u32));
    let columns: [Column; 8] = [
        (gpu("geforce-8800-gtx"), |row| row.half_warps),
        (gpu("gtx-280"), |row| row.half_warps),
        (fermi(), |row| row.words),
        (gpu("tesla-k40c"), |row| row.kepler),
        (eight_byte_banks(), |row| row.kepler_eight),
        (gpu("a100-sxm4-40gb"), |row| row.words),
        (wave32(), |row| row.words),
        (wave64(), |row| row.wave64),
    ];
    for row in bank_table() {
        for (profile, expected) in &columns {
            let addresses: Vec<i64> = (0..i64::from(profile.warp_size))
                .map(row.pattern.address)
                .collect();
            let found = shared_request(profile, row.pattern.bytes, &addresses, row.pattern.active);
            assert_eq!(
                (found.passes, found.ideal),
                expected(&row),
                "{}: {}",
                profile.name,
                row.pattern.name
            );
        }
    }
}

#[test]
fn constant_memory_gives_one_word_a_pass() {
    // CG 5.3.2.4: as many requests as there are different addresses.
    type Row = (&'static str, u32, fn(i64) -> i64, u64, [u32; 2]);
    let rows: [Row; 7] = [
        ("one word", 4, |_| 64, ALL, [1, 1]),
        ("a word for each two lanes", 4, |i| i / 2 * 4, ALL, [16, 32]),
        ("side by side", 4, |i| 4 * i, ALL, [32, 64]),
        ("two words", 4, |i| i % 2 * 400, ALL, [2, 2]),
        ("bytes of a word", 1, |i| i, ALL, [8, 16]),
        ("8-byte words", 8, |i| i / 8 * 8, ALL, [4, 8]),
        ("three lanes", 4, |i| 4 * i, 0b1011, [3, 3]),
    ];
    for (name, bytes, address, active, expected) in rows {
        for (lanes, expected) in [32, 64].into_iter().zip(expected) {
            let addresses: Vec<i64> = (0..lanes).map(address).collect();
            assert_eq!(
                constant_passes(bytes, &addresses, active),
                expected,
                "{name}, {lanes} lanes"
            );
        }
    }
}

#[test]
fn atomics_on_one_address_come_one_after_another() {
    type Row = (&'static str, u32, fn(i64) -> i64, u64, [u32; 2]);
    let rows: [Row; 7] = [
        ("all on one", 4, |_| 64, ALL, [32, 64]),
        ("each its own", 4, |i| 4 * i, ALL, [1, 1]),
        ("a histogram of four bins", 4, |i| i % 4 * 4, ALL, [8, 16]),
        (
            "one bin for most",
            4,
            |i| i64::from(i < 5) * 4,
            ALL,
            [27, 59],
        ),
        ("8-byte counters", 8, |i| i / 4 * 8, ALL, [4, 4]),
        (
            "even lanes on one",
            4,
            |_| 0,
            0x5555_5555_5555_5555,
            [16, 32],
        ),
        ("no active lane", 4, |_| 0, 0, [0, 0]),
    ];
    for (name, bytes, address, active, expected) in rows {
        for (lanes, expected) in [32, 64].into_iter().zip(expected) {
            let addresses: Vec<i64> = (0..lanes).map(address).collect();
            assert_eq!(
                atomic_passes(bytes, &addresses, active),
                expected,
                "{name}, {lanes} lanes"
            );
        }
    }
}
