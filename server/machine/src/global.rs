//! Transactions of one warp's request to global memory. No allocation: this runs tens of thousands
//! of times for every keystroke.

use crate::profile::Profile;
use crate::rules::GlobalRule;

/// Most lanes of a warp on any GPU.
pub(crate) const MAX_LANES: usize = 64;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads, changes and writes where the memory is.
    Atomic,
}

/// What one warp's request to global memory costs before any cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GlobalRequest {
    /// Transactions; both half-warps together where the GPU serves them apart.
    pub transactions: u32,
    /// Transactions if the bytes touched lay side by side.
    pub ideal: u32,
    /// Bytes that the transactions move.
    pub bytes_moved: u32,
}

impl std::ops::AddAssign for GlobalRequest {
    fn add_assign(&mut self, other: Self) {
        self.transactions = self.transactions.saturating_add(other.transactions);
        self.ideal = self.ideal.saturating_add(other.ideal);
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
    }
}

/// The active lanes' addresses in a fixed array.
pub(crate) struct Lanes {
    addresses: [i64; MAX_LANES],
    len: usize,
}

impl Lanes {
    /// The active ones of `addresses`, lane `first` of the warp being the first of them.
    pub(crate) fn gather(addresses: &[i64], active: u64, first: usize) -> Self {
        let mut lanes = Self {
            addresses: [0; MAX_LANES],
            len: 0,
        };
        for (lane, &address) in addresses.iter().enumerate().take(MAX_LANES - first) {
            if active >> (first + lane) & 1 == 1 {
                lanes.addresses[lanes.len] = address;
                lanes.len += 1;
            }
        }
        lanes
    }

    /// The places of this width in which they are.
    pub(crate) fn align(&mut self, width: i64) {
        for address in &mut self.addresses[..self.len] {
            *address -= address.rem_euclid(width);
        }
    }

    /// Ascending.
    pub(crate) fn sorted(mut self) -> Self {
        self.addresses[..self.len].sort_unstable();
        self
    }

    pub(crate) fn get(&self) -> &[i64] {
        &self.addresses[..self.len]
    }
}

/// Transactions of one warp's request.
///
/// `addresses` holds the byte address of every lane (fewer than a warp's lanes where the warp is
/// partial), bit `i` of `active` says whether lane `i` takes part, and `bytes_per_lane` is the size
/// of the access. `ideal` is the distinct bytes touched over the unit, rounded up; a request
/// without an active lane costs nothing.
pub fn global_request(
    p: &Profile,
    op: Access,
    bytes_per_lane: u32,
    addresses: &[i64],
    active: u64,
) -> GlobalRequest {
    let mut all = GlobalRequest::default();
    if bytes_per_lane == 0 {
        return all;
    }
    let unit = global_unit_bytes_for(p, op, bytes_per_lane);
    let half = (p.warp_size / 2) as usize;
    match p.global_rule {
        GlobalRule::HalfWarpStrict => {
            for (index, lanes) in addresses.chunks(half).enumerate().take(2) {
                all += strict(lanes, active, index * half, bytes_per_lane, unit);
            }
        }
        GlobalRule::HalfWarpSegments => {
            for (index, lanes) in addresses.chunks(half).enumerate().take(2) {
                let lanes = Lanes::gather(lanes, active, index * half).sorted();
                all += segments(lanes.get(), bytes_per_lane, unit);
            }
        }
        GlobalRule::Lines128Loads32Stores
        | GlobalRule::Sectors { .. }
        | GlobalRule::CacheLine { .. } => {
            let lanes = Lanes::gather(addresses, active, 0).sorted();
            let touched = Touched::by(lanes.get(), bytes_per_lane, unit);
            all.transactions = touched.units;
            all.ideal = touched.bytes.div_ceil(unit);
            all.bytes_moved = touched.units.saturating_mul(unit);
        }
    }
    all
}

/// Bytes of the unit in which a request of 4-byte words is counted.
///
/// On 1.x, whose transactions vary, that is the transaction of a coalesced half-warp.
pub fn global_unit_bytes(p: &Profile, op: Access) -> u32 {
    global_unit_bytes_for(p, op, 4)
}

/// Bytes of the unit in which a request of words of that size is counted.
pub fn global_unit_bytes_for(p: &Profile, op: Access, bytes_per_lane: u32) -> u32 {
    match p.global_rule {
        // A half-warp's words side by side, within the smallest and the largest transaction.
        GlobalRule::HalfWarpStrict | GlobalRule::HalfWarpSegments => (bytes_per_lane.min(16)
            * (p.warp_size / 2))
            .next_power_of_two()
            .clamp(32, 128),
        GlobalRule::Lines128Loads32Stores => match op {
            Access::Load => 128,
            Access::Store | Access::Atomic => 32,
        },
        GlobalRule::Sectors { bytes } | GlobalRule::CacheLine { bytes } => bytes,
    }
}

/// Lanes whose addresses L1 looks up together: a warp's where each asks for up to 4 bytes, fewer for wider words, so
/// that they never ask for more than a line of 128.
const LOOKED_UP_TOGETHER: [usize; 3] = [32, 16, 8];

/// Lines of 128 bytes that L1 looks up for one request, were each lane's words 4, 8 or 16 bytes wide: the distinct ones
/// of the lanes that go together, group by group.
///
/// Measured on an RTX 3090 (8 rows 64 bytes apart, each read by four lanes, in the published times of a matrix product):
/// 3.7, 7 and 13 cycles for words of 4, 8 and 16 bytes.
pub fn lines_looked_up(addresses: &[i64], active: u64) -> [u32; 3] {
    LOOKED_UP_TOGETHER.map(|together| {
        let groups = addresses.chunks(together).enumerate();
        groups
            .map(|(group, lanes)| distinct_lines(lanes, active >> (group * together)))
            .sum()
    })
}

/// Distinct lines of the active lanes; neighbours mostly ascend, and then nothing has to be sorted.
fn distinct_lines(addresses: &[i64], active: u64) -> u32 {
    let (mut lines, mut last) = (0, None);
    for (lane, address) in addresses.iter().enumerate() {
        let line = address >> 7;
        if active >> lane & 1 == 0 || last == Some(line) {
            continue;
        }
        if last.is_some_and(|last| line < last) {
            let lanes = Lanes::gather(addresses, active, 0).sorted();
            return Touched::by(lanes.get(), 1, 128).units;
        }
        last = Some(line);
        lines += 1;
    }
    lines
}

/// A shift of all lanes by this many bytes never changes what [`global_request`] answers.
pub fn address_period(p: &Profile) -> i64 {
    match p.global_rule {
        GlobalRule::HalfWarpStrict
        | GlobalRule::HalfWarpSegments
        | GlobalRule::Lines128Loads32Stores => 128,
        GlobalRule::Sectors { bytes } | GlobalRule::CacheLine { bytes } => i64::from(bytes),
    }
}

/// Distinct units and distinct bytes.
struct Touched {
    units: u32,
    bytes: u32,
}

impl Touched {
    /// Of accesses that start at `starts`, ascending. `unit` is a power of two.
    fn by(starts: &[i64], bytes_per_lane: u32, unit: u32) -> Self {
        let shift = unit.trailing_zeros();
        let mut touched = Self { units: 0, bytes: 0 };
        // The first unit and the first byte not counted yet.
        let (mut next_unit, mut next_byte) = (i64::MIN, i64::MIN);
        for &start in starts {
            let end = start.saturating_add(i64::from(bytes_per_lane) - 1);
            let last = end >> shift;
            let from = next_unit.max(start >> shift);
            touched.units = touched
                .units
                .saturating_add((last - from + 1).max(0) as u32);
            next_unit = next_unit.max(last + 1);
            let from = next_byte.max(start);
            touched.bytes = touched
                .bytes
                .saturating_add((end - from).saturating_add(1) as u32);
            next_byte = end.saturating_add(1);
        }
        touched
    }
}

/// A half-warp on 1.0 and 1.1: lane k must take word k of an aligned run of words, else every
/// active lane costs a transaction of its own.
fn strict(
    addresses: &[i64],
    active: u64,
    first: usize,
    bytes_per_lane: u32,
    unit: u32,
) -> GlobalRequest {
    let size = i64::from(bytes_per_lane);
    let mut base = None;
    let mut in_sequence = matches!(bytes_per_lane, 4 | 8 | 16);
    for (lane, &address) in addresses.iter().enumerate() {
        if active >> (first + lane) & 1 == 1 {
            let start = address.wrapping_sub(size * lane as i64);
            in_sequence &= *base.get_or_insert(start) == start;
        }
    }
    let Some(base) = base else {
        return GlobalRequest::default();
    };
    let lanes = Lanes::gather(addresses, active, first).sorted();
    let touched = Touched::by(lanes.get(), bytes_per_lane, unit);
    let ideal = touched.bytes.div_ceil(unit);
    if in_sequence && base & i64::from(unit - 1) == 0 {
        // One transaction of 64 or 128 bytes, or two of 128 for words of 16 bytes.
        let transactions = touched.units;
        return GlobalRequest {
            transactions,
            ideal,
            bytes_moved: transactions * unit,
        };
    }
    let transactions = lanes.get().len() as u32 * bytes_per_lane.div_ceil(32);
    GlobalRequest {
        transactions,
        ideal,
        bytes_moved: transactions.saturating_mul(32),
    }
}

/// A half-warp on 1.2 and 1.3: one transaction for each segment, halved while one half of it is
/// unused.
fn segments(starts: &[i64], bytes_per_lane: u32, unit: u32) -> GlobalRequest {
    let segment: i64 = match bytes_per_lane {
        1 => 32,
        2 => 64,
        _ => 128,
    };
    let ideal = Touched::by(starts, bytes_per_lane, unit)
        .bytes
        .div_ceil(unit);
    let mut all = GlobalRequest {
        ideal,
        ..GlobalRequest::default()
    };
    let mut rest = starts;
    while let Some(&lowest) = rest.first() {
        // Words are aligned to their size, so none leaves its segment.
        let base = lowest & !(segment - 1);
        let within = rest.partition_point(|start| start & !(segment - 1) == base);
        let highest = rest[within - 1];
        let (mut low, mut size) = (base, segment);
        while size > 32 {
            let middle = low + size / 2;
            if lowest >= middle {
                low = middle;
            } else if highest.saturating_add(i64::from(bytes_per_lane)) > middle {
                break;
            }
            size /= 2;
        }
        all.transactions += 1;
        all.bytes_moved += size as u32;
        rest = &rest[within..];
    }
    all
}
