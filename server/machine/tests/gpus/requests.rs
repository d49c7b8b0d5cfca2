//! What one warp's request costs: known cases, and random ones against a reference that goes byte
//! by byte and word by word through sets.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::variants::{eight_byte_banks, fermi, gpu, wave32, wave64};
use proptest::prelude::*;
use warplens_machine::{
    Access, GlobalRequest, Profile, Profiles, SharedRequest, address_period, atomic_passes,
    bank_period, constant_passes, global_request, global_unit_bytes, lines_looked_up,
    shared_request,
};

const ALL: u64 = u64::MAX;

fn lanes(of: impl Fn(i64) -> i64) -> Vec<i64> {
    (0..32).map(of).collect()
}

fn load(id: &str, of: impl Fn(i64) -> i64) -> (u32, u32) {
    let request = global_request(&gpu(id), Access::Load, 4, &lanes(of), ALL);
    (request.transactions, request.ideal)
}

/// Lines are looked up for groups of lanes, the smaller the wider their words are.
#[test]
fn lines_are_counted_by_the_lanes_that_go_together() {
    let looked_up = |of: &dyn Fn(i64) -> i64| lines_looked_up(&lanes(of), ALL);
    // Side by side: a line of 32 floats; spread over four lines by their places alone.
    assert_eq!(looked_up(&|lane| 4 * lane), [1, 2, 4]);
    assert_eq!(looked_up(&|lane| 16 * lane), [4, 4, 4]);
    // Eight rows 64 bytes apart, each read by every eighth lane: four lines, for each group again.
    assert_eq!(looked_up(&|lane| 64 * (lane % 8)), [4, 8, 16]);
    // The same by four neighbours each.
    assert_eq!(looked_up(&|lane| 64 * (lane / 4)), [4, 4, 4]);
    assert_eq!(looked_up(&|lane| -128 * lane), [32, 32, 32]);
    let half = lines_looked_up(&lanes(|lane| 128 * lane), 0xffff);
    assert_eq!(half, [16, 16, 16]);
    assert_eq!(lines_looked_up(&lanes(|lane| lane), 0), [0, 0, 0]);
}

fn passes(id: &str, bytes: u32, of: impl Fn(i64) -> i64) -> (u32, u32) {
    let request = shared_request(&gpu(id), bytes, &lanes(of), ALL);
    (request.passes, request.ideal)
}

#[test]
fn sectors_of_a_modern_gpu() {
    let a100 = "a100-sxm4-40gb";
    assert_eq!(load(a100, |i| 4 * i), (4, 4));
    assert_eq!(load(a100, |i| 8 * i), (8, 4));
    assert_eq!(load(a100, |i| 128 * i), (32, 4));
    assert_eq!(load(a100, |_| 40), (1, 1));
    // One sector more where the run starts in the middle of one.
    assert_eq!(load(a100, |i| 4 * i + 4), (5, 4));
    // A transpose's column store: rows of 1024 floats, blocks of 32 x 8 and 16 x 16.
    assert_eq!(load(a100, |i| i * 4096), (32, 4));
    assert_eq!(load(a100, |i| (i % 16) * 4096 + (i / 16) * 4), (16, 4));
    // The Kepler of the profiles bypasses L1: sectors too.
    assert_eq!(load("tesla-k40c", |i| 4 * i), (4, 4));
    assert_eq!(global_unit_bytes(&gpu(a100), Access::Atomic), 32);
}

#[test]
fn half_warps_of_1_0_coalesce_only_in_sequence() {
    let g80 = "geforce-8800-gtx";
    assert_eq!(load(g80, |i| 4 * i), (2, 2));
    // Shifted by a word, reversed, broadcast: a transaction for every lane.
    assert_eq!(load(g80, |i| 4 * i + 4), (32, 2));
    assert_eq!(load(g80, |i| 4 * (31 - i)).0, 32);
    assert_eq!(load(g80, |_| 64), (32, 2));
    let p = gpu(g80);
    // Lanes that are switched off do not break the sequence.
    let some = global_request(&p, Access::Load, 4, &lanes(|i| 4 * i), 0x0000_5555);
    assert_eq!((some.transactions, some.bytes_moved), (1, 64));
    let wide = global_request(&p, Access::Store, 16, &lanes(|i| 16 * i), ALL);
    assert_eq!(
        (wide.transactions, wide.ideal, wide.bytes_moved),
        (4, 4, 512)
    );
    let bytes = global_request(&p, Access::Load, 1, &lanes(|i| i), ALL);
    assert_eq!((bytes.transactions, bytes.bytes_moved), (32, 1024));
}

#[test]
fn half_warps_of_1_3_take_shrinking_segments() {
    let p = gpu("gtx-280");
    let request = |bytes, addresses: &[i64]| {
        let request = global_request(&p, Access::Load, bytes, addresses, ALL);
        (request.transactions, request.bytes_moved)
    };
    assert_eq!(request(4, &lanes(|i| 4 * i)), (2, 128));
    // Reversed costs nothing here; shifted by a word, the first half fits a 128-byte segment and
    // the second crosses.
    assert_eq!(request(4, &lanes(|i| 4 * (31 - i))), (2, 128));
    assert_eq!(request(4, &lanes(|i| 4 * i + 4)), (3, 128 + 64 + 32));
    assert_eq!(request(4, &lanes(|_| 64)), (2, 64));
    assert_eq!(request(4, &lanes(|i| 128 * i)), (32, 32 * 32));
    assert_eq!(request(1, &lanes(|i| i)), (2, 64));
    assert_eq!(request(8, &lanes(|i| 8 * i)), (2, 256));
}

#[test]
fn fermi_loads_lines_and_stores_sectors() {
    let p = fermi();
    let strided = lanes(|i| 8 * i);
    let load = global_request(&p, Access::Load, 4, &strided, ALL);
    assert_eq!(
        (load.transactions, load.ideal, load.bytes_moved),
        (2, 1, 256)
    );
    let store = global_request(&p, Access::Store, 4, &strided, ALL);
    assert_eq!(
        (store.transactions, store.ideal, store.bytes_moved),
        (8, 4, 256)
    );
    assert_eq!(global_request(&p, Access::Atomic, 4, &strided, ALL), store);
}

#[test]
fn a_wave_of_64_lanes_counts_its_cache_lines() {
    let addresses: Vec<i64> = (0..64).map(|i| 4 * i).collect();
    let request = global_request(&wave64(), Access::Load, 4, &addresses, ALL);
    assert_eq!(
        (request.transactions, request.ideal, request.bytes_moved),
        (4, 4, 256)
    );
    // LDS: 32 lanes at a time.
    let request = shared_request(&wave64(), 4, &addresses, ALL);
    assert_eq!((request.passes, request.ideal), (2, 2));
}

/// Xe-HPG: 16 lanes, lines of 64 bytes, 16 banks of 4 bytes (Intel's oneAPI GPU optimization guide, shared local memory).
#[test]
fn a_thread_of_16_lanes_counts_lines_and_banks() {
    let arc = gpu("arc-a770");
    let sixteen = |of: fn(i64) -> i64| -> Vec<i64> { (0..16).map(of).collect() };
    let line = global_request(&arc, Access::Load, 4, &sixteen(|i| 4 * i), ALL);
    assert_eq!((line.transactions, line.ideal), (1, 1));
    let lines = global_request(&arc, Access::Load, 4, &sixteen(|i| 64 * i), ALL);
    assert_eq!((lines.transactions, lines.ideal), (16, 1));
    let passes = |bytes, of| {
        let found = shared_request(&arc, bytes, &sixteen(of), ALL);
        (found.passes, found.ideal)
    };
    assert_eq!(passes(4, |i| 4 * i), (1, 1));
    // A column of [16][16] lies in one bank, one of [16][17] in all.
    assert_eq!(passes(4, |i| 64 * i), (16, 1));
    assert_eq!(passes(4, |i| 68 * i), (1, 1));
    // Words of 8 bytes fill the banks twice, of 16 four times.
    assert_eq!(passes(8, |i| 8 * i), (2, 2));
    assert_eq!(passes(16, |i| 16 * i), (4, 4));
}

/// RDNA: waves of 32 lanes over lines of 128 bytes; the LDS of a compute unit has 32 banks (RDNA 2 ISA guide, LDS).
#[test]
fn a_wave_of_32_lanes_on_rdna() {
    let navi = gpu("rx-6900-xt");
    let floats = global_request(&navi, Access::Load, 4, &lanes(|i| 4 * i), ALL);
    assert_eq!((floats.transactions, floats.ideal), (1, 1));
    let strided = global_request(&navi, Access::Store, 4, &lanes(|i| 64 * i), ALL);
    assert_eq!((strided.transactions, strided.bytes_moved), (16, 2048));
    assert_eq!(passes("rx-6900-xt", 4, |i| 128 * i), (32, 1));
    assert_eq!(passes("rx-6900-xt", 8, |i| 8 * i), (2, 2));
}

#[test]
fn partial_warps_and_idle_lanes() {
    let p = gpu("a100-sxm4-40gb");
    let none = global_request(&p, Access::Load, 4, &lanes(|i| i * 4), 0);
    assert_eq!(none, GlobalRequest::default());
    assert_eq!(
        shared_request(&p, 4, &lanes(|i| i * 4), 0),
        SharedRequest::default()
    );
    let three = global_request(&p, Access::Load, 4, &[0, 4, 8], ALL);
    assert_eq!((three.transactions, three.ideal), (1, 1));
    let last = global_request(&p, Access::Load, 4, &lanes(|i| i * 128), 1 << 31 | 1);
    assert_eq!(last.transactions, 2);
    assert_eq!(
        global_request(&p, Access::Load, 4, &[], ALL),
        GlobalRequest::default()
    );
}

#[test]
fn banks() {
    let a100 = "a100-sxm4-40gb";
    assert_eq!(passes(a100, 4, |i| 4 * i), (1, 1));
    assert_eq!(passes(a100, 4, |i| 8 * i), (2, 1));
    // A column of [32][32] and of [32][33].
    assert_eq!(passes(a100, 4, |i| 128 * i), (32, 1));
    assert_eq!(passes(a100, 4, |i| 132 * i), (1, 1));
    assert_eq!(passes(a100, 4, |_| 64), (1, 1));
    // Multicast of two words of one bank: two passes.
    assert_eq!(passes(a100, 4, |i| (i % 2) * 128), (2, 1));
    // Four chars share a word.
    assert_eq!(passes(a100, 1, |i| i), (1, 1));
    assert_eq!(passes(a100, 8, |i| 8 * i), (2, 2));
    assert_eq!(passes(a100, 16, |i| 16 * i), (4, 4));
    assert_eq!(passes(a100, 8, |i| 16 * i), (4, 2));
    // Kepler's 4-byte mode: words 32 apart inside a row of 64 come together.
    assert_eq!(passes("tesla-k40c", 4, |i| 128 * i), (16, 1));
    assert_eq!(passes("tesla-k40c", 4, |i| 8 * i), (1, 1));
    assert_eq!(passes("tesla-k40c", 4, |i| 4 * i), (1, 1));
}

#[test]
fn banks_of_1_x_serve_half_warps_and_broadcast_one_word() {
    let gt200 = "gtx-280";
    assert_eq!(passes(gt200, 4, |i| 4 * i), (2, 2));
    assert_eq!(passes(gt200, 4, |i| 8 * i), (4, 2));
    assert_eq!(passes(gt200, 4, |i| 64 * i), (32, 2));
    assert_eq!(passes(gt200, 4, |i| 68 * i), (2, 2));
    assert_eq!(passes(gt200, 4, |_| 20), (2, 2));
    // Two words of two banks, eight lanes each: two broadcasts, no multicast.
    assert_eq!(passes(gt200, 4, |i| (i % 2) * 4), (4, 2));
    // A word for fifteen lanes and another bank's for one: one broadcast serves them.
    assert_eq!(passes(gt200, 4, |i| i64::from(i % 16 == 3) * 4), (2, 2));
    // Words of 8 bytes are two requests with a stride of two words.
    assert_eq!(passes(gt200, 8, |i| 8 * i), (8, 4));
}

#[test]
fn constant_memory_and_atomics() {
    assert_eq!(constant_passes(4, &lanes(|_| 8), ALL), 1);
    assert_eq!(constant_passes(4, &lanes(|i| 4 * i), ALL), 32);
    assert_eq!(constant_passes(4, &lanes(|i| 4 * (i % 3)), ALL), 3);
    assert_eq!(constant_passes(1, &lanes(|i| i), ALL), 8);
    assert_eq!(constant_passes(8, &lanes(|_| 16), ALL), 1);
    assert_eq!(constant_passes(4, &lanes(|i| 4 * i), 0b101), 2);
    assert_eq!(atomic_passes(4, &lanes(|_| 8), ALL), 32);
    assert_eq!(atomic_passes(4, &lanes(|i| 4 * i), ALL), 1);
    assert_eq!(atomic_passes(4, &lanes(|i| 4 * (i % 4)), ALL), 8);
    assert_eq!(atomic_passes(4, &lanes(|i| 4 * (i / 20)), ALL), 20);
    assert_eq!(atomic_passes(4, &lanes(|_| 8), 0), 0);
}

#[test]
fn extreme_addresses_do_not_panic() {
    let far: Vec<i64> = (0..64)
        .map(|i| if i % 2 == 0 { i64::MAX } else { i64::MIN })
        .collect();
    for p in every() {
        for bytes in [0, 1, 3, 4, 8, 12, 16, 33, 1000, u32::MAX] {
            let global = global_request(&p, Access::Load, bytes, &far, ALL);
            assert_eq!(global.transactions == 0, bytes == 0);
            let shared = shared_request(&p, bytes, &far, ALL);
            assert_eq!(shared.passes == 0, bytes == 0);
            assert!(constant_passes(bytes, &far, ALL) == 2);
            assert!(atomic_passes(bytes, &far, ALL) == 32);
        }
    }
}

fn every() -> Vec<Arc<Profile>> {
    let mut all: Vec<Arc<Profile>> = Profiles::builtin().iter().collect();
    all.extend([fermi(), wave32(), wave64(), eight_byte_banks()]);
    all
}

// ---- The reference ----

/// Active lanes as (lane, address).
fn active_lanes(addresses: &[i64], active: u64) -> Vec<(usize, i64)> {
    addresses
        .iter()
        .copied()
        .enumerate()
        .filter(|(lane, _)| active & (1 << lane) != 0)
        .collect()
}

fn bytes_of(lanes: &[(usize, i64)], size: i64) -> BTreeSet<i64> {
    lanes
        .iter()
        .flat_map(|(_, address)| *address..*address + size)
        .collect()
}

fn units_of(bytes: &BTreeSet<i64>, unit: i64) -> usize {
    bytes
        .iter()
        .map(|byte| byte.div_euclid(unit))
        .collect::<BTreeSet<_>>()
        .len()
}

/// Transactions and bytes moved of one half-warp on 1.0: CUDA C guide 4.2, F.3.2.1.
fn strict_half(lanes: &[(usize, i64)], size: i64) -> (usize, i64) {
    if lanes.is_empty() {
        return (0, 0);
    }
    let run = size * 16;
    let aligned = run.min(128);
    let in_order = [4, 8, 16].contains(&size)
        && (0..)
            .map(|k| k * aligned - 100 * aligned)
            .take(300)
            .any(|start| {
                lanes
                    .iter()
                    .all(|(lane, address)| *address == start + (*lane as i64 % 16) * size)
            });
    if in_order {
        let segments = units_of(&bytes_of(lanes, size), aligned);
        (segments, segments as i64 * aligned)
    } else {
        (lanes.len(), lanes.len() as i64 * 32)
    }
}

/// The same on 1.3, as F.3.2.2 tells it: lane after lane.
fn segment_half(lanes: &[(usize, i64)], size: i64) -> (usize, i64) {
    let segment = match size {
        1 => 32,
        2 => 64,
        _ => 128,
    };
    let mut waiting = lanes.to_vec();
    let (mut transactions, mut moved) = (0, 0);
    while let Some((_, address)) = waiting.first().copied() {
        let mut low = address.div_euclid(segment) * segment;
        let mut high = low + segment;
        let (served, rest): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|(_, address)| (low..high).contains(address));
        let used = bytes_of(&served, size);
        while high - low > 32 {
            let middle = i64::midpoint(low, high);
            if used.range(middle..).next().is_none() {
                high = middle;
            } else if used.range(..middle).next().is_none() {
                low = middle;
            } else {
                break;
            }
        }
        transactions += 1;
        moved += high - low;
        waiting = rest;
    }
    (transactions, moved)
}

fn naive_global(p: &Profile, op: Access, size: i64, addresses: &[i64], active: u64) -> [i64; 3] {
    let lanes = active_lanes(addresses, active);
    let (halves, rule): (bool, &str) = (
        p.rules()["coalescing"].value.starts_with("half"),
        &p.rules()["coalescing"].value,
    );
    if halves {
        let unit = (size * 16).clamp(32, 128);
        return [false, true].into_iter().fold([0; 3], |sum, upper| {
            let half: Vec<_> = lanes
                .iter()
                .copied()
                .filter(|(lane, _)| (*lane >= 16) == upper)
                .collect();
            let ideal = (bytes_of(&half, size).len() as i64 + unit - 1) / unit;
            let (transactions, moved) = if rule == "half-warp-strict" {
                strict_half(&half, size)
            } else {
                segment_half(&half, size)
            };
            [sum[0] + transactions as i64, sum[1] + ideal, sum[2] + moved]
        });
    }
    let unit = match (rule, op) {
        ("lines-128-loads-32-stores", Access::Load) => 128,
        ("cache-line-64", _) => 64,
        ("cache-line-128", _) => 128,
        _ => 32,
    };
    let bytes = bytes_of(&lanes, size);
    let transactions = units_of(&bytes, unit) as i64;
    [
        transactions,
        (bytes.len() as i64 + unit - 1) / unit,
        transactions * unit,
    ]
}

/// The fewest passes on 1.x by trying every broadcast word and every lane for every other bank.
fn search(waiting: &[i64], seen: &mut HashMap<Vec<i64>, u32>) -> u32 {
    if waiting.is_empty() {
        return 0;
    }
    if let Some(known) = seen.get(waiting) {
        return *known;
    }
    let words: BTreeSet<i64> = waiting.iter().copied().collect();
    let mut best = u32::MAX;
    for word in &words {
        let mut by_bank: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        let rest: Vec<i64> = waiting
            .iter()
            .copied()
            .filter(|other| other != word)
            .collect();
        for other in rest
            .iter()
            .filter(|other| (*other - word).rem_euclid(16) != 0)
        {
            by_bank
                .entry(other.rem_euclid(16))
                .or_default()
                .insert(*other);
        }
        let mut choices = vec![rest];
        for words in by_bank.values() {
            choices = choices
                .iter()
                .flat_map(|left| {
                    words.iter().map(move |word| {
                        let mut left = left.clone();
                        left.remove(left.iter().position(|other| other == word).unwrap_or(0));
                        left
                    })
                })
                .collect();
        }
        for left in choices {
            best = best.min(1 + search(&left, seen));
        }
    }
    seen.insert(waiting.to_vec(), best);
    best
}

fn naive_shared(p: &Profile, size: i64, addresses: &[i64], active: u64) -> [u32; 2] {
    let lanes = active_lanes(addresses, active);
    let mode = p.rules()["bank_mode"].value.as_str();
    let mut sum = [0, 0];
    if mode == "half-warp" {
        for upper in [false, true] {
            for word in 0..(size + 3) / 4 {
                let mut words: Vec<i64> = lanes
                    .iter()
                    .filter(|(lane, _)| (*lane >= 16) == upper)
                    .map(|(_, address)| address.div_euclid(4) + word)
                    .collect();
                words.sort_unstable();
                if !words.is_empty() {
                    sum[0] += search(&words, &mut HashMap::new());
                    sum[1] += 1;
                }
            }
        }
        return sum;
    }
    let eight = mode == "kepler-8-byte";
    // As many lanes as their words fill the banks once.
    let banks = p.banks as usize;
    let together = match (size, eight) {
        (8, false) | (16, true) => banks / 2,
        (16, false) => banks / 4,
        _ => banks,
    };
    let mut parts: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for (lane, address) in lanes {
        parts.entry(lane / together).or_default().push(address);
    }
    for part in parts.values() {
        let mut rows_of_bank: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for byte in part.iter().flat_map(|address| *address..*address + size) {
            let word = byte.div_euclid(if eight { 8 } else { 4 });
            let row = if mode == "kepler-4-byte" {
                word.div_euclid(64)
            } else {
                word
            };
            rows_of_bank
                .entry(word.rem_euclid(banks as i64))
                .or_default()
                .insert(row);
        }
        sum[0] += rows_of_bank.values().map(BTreeSet::len).max().unwrap_or(0) as u32;
        sum[1] += 1;
    }
    sum
}

/// Addresses as kernels make them: strided, two-dimensional, gathered, all aligned to the access.
fn addresses(count: usize, size: i64) -> impl Strategy<Value = Vec<i64>> {
    let strided = (-40_i64..40, -9_i64..40).prop_map(move |(base, stride)| {
        (0..count as i64)
            .map(|i| (base + i * stride) * size)
            .collect::<Vec<_>>()
    });
    let tiled = (-40_i64..40, 1_i64..20, 0_i64..70, 0_i64..40).prop_map(
        move |(base, width, row, column)| {
            let at = |i| base + i / width * row + i % width * column;
            (0..count as i64).map(|i| at(i) * size).collect()
        },
    );
    let spread = prop_oneof![Just(3_i64), Just(20), Just(100), Just(700)];
    let gathered = spread.prop_flat_map(move |spread| {
        proptest::collection::vec((-spread..spread).prop_map(move |i| i * size), count)
    });
    let swapped = (0..count, 0..count, -4_i64..40).prop_map(move |(a, b, base)| {
        let mut list: Vec<i64> = (0..count as i64).map(|i| (base * 16 + i) * size).collect();
        list.swap(a, b);
        list
    });
    prop_oneof![strided, tiled, gathered, swapped]
}

fn request() -> impl Strategy<Value = (Arc<Profile>, i64, Vec<i64>, u64)> {
    let size = prop_oneof![Just(1_i64), Just(2), Just(4), Just(4), Just(8), Just(16)];
    (proptest::sample::select(every()), size)
        .prop_flat_map(|(p, size)| {
            let lanes = p.warp_size as usize;
            (Just(p), Just(size), prop_oneof![Just(lanes), 1..=lanes])
        })
        .prop_flat_map(|(p, size, count)| {
            let active = prop_oneof![Just(ALL), any::<u64>(), Just(0x5555_5555_5555_5555_u64)];
            (Just(p), Just(size), addresses(count, size), active)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn global_requests_agree_with_the_reference((p, size, addresses, active) in request()) {
        for op in [Access::Load, Access::Store, Access::Atomic] {
            let found = global_request(&p, op, size as u32, &addresses, active);
            let found = [found.transactions, found.ideal, found.bytes_moved].map(i64::from);
            let expected = naive_global(&p, op, size, &addresses, active);
            prop_assert_eq!(found, expected, "{} {:?}", p.id, op);
            prop_assert!(found[0] >= found[1], "never better than ideal: {:?}", found);
        }
    }

    #[test]
    fn shared_requests_agree_with_the_reference((p, size, addresses, active) in request()) {
        // The exhaustive search of 1.x is for a few lanes only.
        let active = if p.bank_rule.half_warp { active & 0x0421_8843 } else { active };
        let found = shared_request(&p, size as u32, &addresses, active);
        let expected = naive_shared(&p, size, &addresses, active);
        prop_assert_eq!([found.passes, found.ideal], expected, "{}", p.id);
        prop_assert!(found.passes >= found.ideal);
    }

    #[test]
    fn half_warps_of_1_x_with_few_words_agree_with_the_search(
        words in proptest::collection::vec(0_usize..6, 7),
        pool in proptest::sample::subsequence(vec![0_i64, 1, 16, 32, 48, 17, 2, 18], 6),
    ) {
        let addresses: Vec<i64> = words.iter().map(|word| pool[*word] * 4).collect();
        let found = shared_request(&gpu("gtx-280"), 4, &addresses, ALL);
        let expected = naive_shared(&gpu("gtx-280"), 4, &addresses, ALL);
        prop_assert_eq!([found.passes, found.ideal], expected);
    }

    #[test]
    fn a_shift_by_the_period_changes_nothing(
        (p, size, addresses, active) in request(),
        times in -1_000_000_i64..1_000_000,
    ) {
        let shifted = |period: i64| -> Vec<i64> {
            addresses.iter().map(|address| address + times * period).collect()
        };
        for op in [Access::Load, Access::Store] {
            let before = global_request(&p, op, size as u32, &addresses, active);
            let after = global_request(&p, op, size as u32, &shifted(address_period(&p)), active);
            prop_assert_eq!(before, after);
        }
        let before = shared_request(&p, size as u32, &addresses, active);
        let after = shared_request(&p, size as u32, &shifted(bank_period(&p)), active);
        prop_assert_eq!(before, after);
    }

    #[test]
    fn the_order_of_lanes_matters_only_where_the_rule_says_so(
        (p, size, addresses, _) in request(),
    ) {
        if p.rules()["coalescing"].value.starts_with("half") {
            return Ok(());
        }
        let mut reversed = addresses.clone();
        reversed.reverse();
        prop_assert_eq!(
            global_request(&p, Access::Load, size as u32, &addresses, ALL),
            global_request(&p, Access::Load, size as u32, &reversed, ALL)
        );
    }
}
