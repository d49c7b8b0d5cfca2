//! The race detector: accesses of a block's threads that no barrier orders. The interpreter's own order hides such races.

use std::collections::HashMap;

/// An earlier access, to compare later ones with.
#[derive(Debug, Clone, Copy)]
struct PriorAccess {
    lane: usize,
    block_turn: u64,
    warp_turn: u64,
    atomic: bool,
}

#[derive(Debug, Default)]
struct Byte {
    written: Option<PriorAccess>,
    read: Vec<PriorAccess>,
}

/// Watches the accesses of one block.
#[derive(Debug)]
pub(crate) struct Races {
    warp: usize,
    block_turn: u64,
    warp_turns: Vec<u64>,
    bytes: HashMap<u64, Byte>,
    /// The accesses that follow are an atomic's.
    pub(crate) atomic: bool,
    /// The first two lanes that met.
    pub(crate) found: Option<(usize, usize)>,
}

impl Races {
    pub(crate) fn new(lanes: usize, warp: usize) -> Races {
        Races {
            warp,
            block_turn: 0,
            warp_turns: vec![0; lanes.div_ceil(warp)],
            bytes: HashMap::new(),
            atomic: false,
            found: None,
        }
    }

    /// Another block, or all threads of this one met.
    pub(crate) fn met(&mut self) {
        self.bytes.clear();
        self.block_turn += 1;
    }

    /// The lanes of a warp met.
    pub(crate) fn warps_met(&mut self, mask: &[bool]) {
        for (turn, lanes) in self.warp_turns.iter_mut().zip(mask.chunks(self.warp)) {
            *turn += u64::from(lanes.contains(&true));
        }
    }

    pub(crate) fn access(&mut self, lane: usize, address: u64, size: u64, writes: bool) {
        let now = PriorAccess {
            lane,
            block_turn: self.block_turn,
            warp_turn: self.warp_turns[lane / self.warp],
            atomic: self.atomic,
        };
        let warp = self.warp;
        let meets = |before: &PriorAccess| {
            let ordered = before.lane == lane
                || before.block_turn != now.block_turn
                || (before.lane / warp == lane / warp && before.warp_turn != now.warp_turn);
            !(ordered || before.atomic && now.atomic)
        };
        for at in address..address + size {
            let byte = self.bytes.entry(at).or_default();
            let reads = byte.read.iter().filter(|_| writes);
            let met = byte.written.iter().chain(reads).find(|seen| meets(seen));
            if let (Some(met), None) = (met, self.found) {
                self.found = Some((met.lane, lane));
            }
            if writes {
                byte.written = Some(now);
                byte.read.retain(|seen| seen.lane != lane);
            } else if byte.read.iter().all(|seen| seen.lane != lane) {
                byte.read.push(now);
            } else if let Some(seen) = byte.read.iter_mut().find(|seen| seen.lane == lane) {
                *seen = now;
            }
        }
    }
}
