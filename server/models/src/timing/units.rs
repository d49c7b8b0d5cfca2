//! What instructions take of an SM: its schedulers, the units that they share, the way to memory.

use std::collections::VecDeque;

use warplens_machine::Pipe;

use super::machine::Machine;
use super::warp::{Instruction, Kind, Ready};
use crate::Bottleneck;

/// What decides when a warp's next instruction can issue: every warp's is looked at for every issue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    /// When its operands and its warp allow it, infinite where there is none.
    ready: f64,
    scheduler: u32,
    /// What it takes of its scheduler, in [`Scheduler::from`].
    own: u16,
    /// What it takes of the units that schedulers share, in [`Common::from`].
    shared: u16,
}

/// No instruction.
pub(super) const NOTHING: Waiting = Waiting {
    ready: f64::INFINITY,
    scheduler: 0,
    own: 0,
    shared: 0,
};

impl Waiting {
    pub fn new(instruction: &Instruction, scheduler: usize, machine: &Machine) -> Waiting {
        let (own, shared) = match instruction.kind {
            Kind::Arithmetic(pipe) => {
                let operand = instruction.operand.is_some();
                (pipe as usize, if operand { OPERAND } else { ALONE })
            }
            Kind::Access { access, .. } => {
                let transfer = &machine.transfers[access];
                let shared = if transfer.banks > 0.0 {
                    BANKS
                } else if transfer.service > 0.0 {
                    ROOM
                } else {
                    UNITS
                };
                (ACCESS, shared)
            }
            Kind::Barrier => (BARRIER, ALONE),
        };
        Waiting {
            ready: instruction.ready.at,
            scheduler: scheduler as u32,
            own: own as u16,
            shared: shared as u16,
        }
    }

    /// The earliest that it can issue.
    pub fn can_issue(&self, schedulers: &[Scheduler], common: &Common) -> f64 {
        let own = schedulers[self.scheduler as usize].from[usize::from(self.own)];
        let shared = common.from[usize::from(self.shared)];
        later(later(self.ready, own), shared)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Scheduler {
    pub free: f64,
    pub port_free: f64,
    pub pipes_free: [f64; Pipe::ALL.len()],
    /// Its warp that issued last.
    pub last: usize,
    /// From when on it takes an instruction of each pipe, then a barrier, then an access.
    from: [f64; BARRIER + 2],
}

/// Where barriers and accesses stand in [`Scheduler::from`], behind the pipes.
const BARRIER: usize = Pipe::ALL.len();
const ACCESS: usize = BARRIER + 1;

impl Scheduler {
    /// A scheduler that has issued nothing; its warps begin with the second, as after the first one's turn.
    pub fn new(first: usize) -> Scheduler {
        Scheduler {
            last: first,
            ..Scheduler::default()
        }
    }

    /// To be called when one of its units is taken.
    pub fn update(&mut self, machine: &Machine) {
        let ported = later(self.free, self.port_free);
        for (at, pipe) in machine.pipes.iter().enumerate() {
            let free = if pipe.port { ported } else { self.free };
            self.from[at] = later(free, self.pipes_free[at]);
        }
        self.from[BARRIER] = ported;
        self.from[ACCESS] = self.free;
    }
}

/// The units of the SM that its schedulers share.
#[derive(Debug, Clone, Default)]
pub(super) struct Common {
    pub units_free: f64,
    pub banks_free: f64,
    /// From when on instructions can issue that need some of them.
    from: [f64; 5],
}

/// Where instructions stand in [`Common::from`] by what they need: nothing, the banks for an operand, the load and
/// store units alone, with the banks, with room on the way to memory.
const ALONE: usize = 0;
const OPERAND: usize = 1;
const UNITS: usize = 2;
const BANKS: usize = 3;
const ROOM: usize = 4;

impl Common {
    /// To be called when one of the units is taken, with when there is room on the way to memory.
    pub fn update(&mut self, room: f64) {
        self.from[OPERAND] = self.banks_free;
        self.from[UNITS] = self.units_free;
        self.from[BANKS] = later(self.units_free, self.banks_free);
        self.from[ROOM] = later(self.units_free, room);
    }
}

/// The way to memory of a cluster: its bytes per cycle, with at most as many bytes in flight as cover its latency.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// When what was asked for arrives, in order, and its bytes.
    flying: VecDeque<(f64, f64)>,
    bytes: f64,
    /// When there is room.
    pub room: f64,
    /// The last result.
    last: f64,
}

impl Memory {
    /// A request goes out; its result.
    pub fn send(&mut self, machine: &Machine, access: usize, at: f64, node: usize) -> Ready {
        let transfer = &machine.transfers[access];
        let alone = at + (transfer.latency - transfer.ideal_service).max(0.0);
        let done = alone.max(self.last) + transfer.service;
        let done = done.max(at + transfer.latency);
        if transfer.service > 0.0 {
            self.last = done;
        }
        // Its transactions arrive one after another, on average half of the transfer before the last.
        let arrived = done - transfer.service / 2.0;
        self.flying.push_back((arrived, transfer.bytes));
        self.bytes += transfer.bytes;
        while self.bytes >= machine.in_flight_bytes {
            let Some((arrived, bytes)) = self.flying.pop_front() else {
                break;
            };
            self.room = self.room.max(arrived);
            self.bytes -= bytes;
        }
        let wait = done - at;
        let queue = if wait > 0.0 {
            ((wait - transfer.latency) / wait).clamp(0.0, 1.0)
        } else {
            0.0
        };
        Ready {
            queue,
            ..Ready::at(done, node, Bottleneck::MemoryLatency)
        }
    }
}

/// The later of two times: none is ever not a number.
fn later(one: f64, other: f64) -> f64 {
    if other > one { other } else { one }
}
