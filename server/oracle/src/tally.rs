//! What is counted while a kernel runs: requests, branches, operations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::lexer::Place;

/// Where an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Device memory.
    Global,
    /// A block's shared memory.
    Shared,
    /// Constant memory.
    Constant,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes at once.
    Atomic,
}

/// Kinds of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fork {
    /// `if`
    If,
    /// Any loop.
    Loop,
    /// `switch`
    Switch,
    /// `? :`
    Select,
}

/// Classes of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Half precision; each operator, and each component of a vector, is one.
    Fp16,
    /// Single precision.
    Fp32,
    /// Double precision.
    Fp64,
    /// Each integer operator written; addressing is none.
    Int,
    /// `sqrtf`, `expf` …
    Sfu,
    /// From one format to another that has other bits for the same number; not of literals.
    Conversion,
    /// By its name.
    GlobalLoad,
    /// By its name.
    GlobalStore,
    /// By its name.
    SharedLoad,
    /// By its name.
    SharedStore,
    /// By its name.
    ConstantLoad,
    /// By its name.
    Atomic,
    /// Threads that come to a barrier.
    Barrier,
    /// An `if` or `switch` decided, an iteration of a loop.
    Branch,
}

impl Class {
    /// The name in `counts`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Fp16 => "fp16",
            Class::Fp32 => "fp32",
            Class::Fp64 => "fp64",
            Class::Int => "int",
            Class::Sfu => "sfu",
            Class::Conversion => "conversion",
            Class::GlobalLoad => "global_load",
            Class::GlobalStore => "global_store",
            Class::SharedLoad => "shared_load",
            Class::SharedStore => "shared_store",
            Class::ConstantLoad => "constant_load",
            Class::Atomic => "atomic",
            Class::Barrier => "barrier",
            Class::Branch => "branch",
        }
    }
}

/// Which access of the source: where, through which calls (their lines, outermost first), what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessKey {
    /// First word of the expression.
    pub place: Place,
    /// Lines of the calls, outermost first.
    pub via: Vec<u32>,
    /// What it does.
    pub access: Access,
    /// Where it goes.
    pub space: Space,
}

/// Sums over the requests of one access. A structure that is copied makes a request for each piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// Warps that execute it with a lane.
    pub requests: u64,
    /// Their active lanes.
    pub lanes: u64,
    /// Distinct sectors of 32 bytes.
    pub sectors: u64,
    /// Sectors that the distinct bytes would fill.
    pub ideal_sectors: u64,
    /// Distinct segments of 128 bytes.
    pub segments: u64,
    /// Times the 32 banks are cycled: an access of 8 bytes by half-warps, of 16 by quarters.
    pub passes: u64,
    /// The same with 16 banks and half-warps.
    pub half_warp_passes: u64,
    /// Distinct words of 4 bytes.
    pub words: u64,
    /// Most lanes on one address.
    pub serial: u64,
}

/// Which branch of the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchKey {
    /// First word of the condition; of a loop without one, its keyword.
    pub place: Place,
    /// Lines of the calls, outermost first.
    pub via: Vec<u32>,
    /// What it is.
    pub fork: Fork,
}

/// How the warps went at one branch. A loop is evaluated once by each warp that comes to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ways {
    /// Warps that came with a lane.
    pub evaluations: u64,
    /// With a lane that takes it.
    pub taken: u64,
    /// With lanes that differ: one takes it and one does not, or in their iterations.
    pub divergent: u64,
}

/// Everything counted in a run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// By access.
    pub accesses: BTreeMap<AccessKey, Requests>,
    /// By branch.
    pub branches: BTreeMap<BranchKey, Ways>,
    /// Operations summed over threads. What a loop's last test needs, the one that fails, is not in it.
    pub counts: BTreeMap<Class, u64>,
    /// Operations of the loops' last tests.
    pub exit_tests: BTreeMap<Class, u64>,
}

/// Where a [`Tally`] is filled: calls have numbers, so that a key is small.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    accesses: HashMap<(Place, usize, Access, Space), Requests>,
    branches: HashMap<(Place, usize, Fork), Ways>,
    pub(crate) counts: BTreeMap<Class, u64>,
    pub(crate) exit_tests: BTreeMap<Class, u64>,
    /// The chains of calls seen, by number; the kernel itself is the first.
    chains: Vec<Vec<u32>>,
}

impl Counter {
    pub(crate) fn chain(&mut self, lines: &[u32]) -> usize {
        match self.chains.iter().position(|known| known == lines) {
            Some(found) => found,
            None => {
                self.chains.push(lines.to_vec());
                self.chains.len() - 1
            }
        }
    }

    /// One warp executes an access: the addresses of its active lanes.
    pub(crate) fn request(
        &mut self,
        place: Place,
        chain: usize,
        access: Access,
        space: Space,
        bytes: u64,
        lanes: &[(usize, u64)],
    ) {
        if lanes.is_empty() || bytes == 0 {
            return;
        }
        let entry = self
            .accesses
            .entry((place, chain, access, space))
            .or_default();
        entry.requests += 1;
        entry.lanes += lanes.len() as u64;
        let units = |size: u64| {
            let mut found: Vec<u64> = lanes
                .iter()
                .flat_map(|&(_, address)| address / size..=(address + bytes - 1) / size)
                .collect();
            found.sort_unstable();
            found.dedup();
            found.len() as u64
        };
        if space == Space::Global {
            entry.sectors += units(32);
            entry.segments += units(128);
            entry.ideal_sectors += units(1).div_ceil(32);
        }
        entry.words += units(4);
        if space == Space::Shared {
            let phase = (128 / bytes.max(4)).max(1) as usize;
            entry.passes += passes(lanes, bytes, phase, 32);
            entry.half_warp_passes += passes(lanes, bytes, (64 / bytes.max(4)).max(1) as usize, 16);
        }
        if access == Access::Atomic {
            let mut count: HashMap<u64, u64> = HashMap::new();
            for &(_, address) in lanes {
                *count.entry(address).or_default() += 1;
            }
            entry.serial += count.values().copied().max().unwrap_or(0);
        }
    }

    pub(crate) fn branch(
        &mut self,
        place: Place,
        chain: usize,
        fork: Fork,
        taken: bool,
        divergent: bool,
    ) {
        let entry = self.branches.entry((place, chain, fork)).or_default();
        entry.evaluations += 1;
        entry.taken += u64::from(taken);
        entry.divergent += u64::from(divergent);
    }

    pub(crate) fn finish(self) -> Tally {
        let via = |chain: usize| self.chains.get(chain).cloned().unwrap_or_default();
        Tally {
            accesses: self
                .accesses
                .iter()
                .map(|(&(place, chain, access, space), found)| {
                    let key = AccessKey {
                        place,
                        via: via(chain),
                        access,
                        space,
                    };
                    (key, found.clone())
                })
                .collect(),
            branches: self
                .branches
                .iter()
                .map(|(&(place, chain, fork), found)| {
                    let key = BranchKey {
                        place,
                        via: via(chain),
                        fork,
                    };
                    (key, found.clone())
                })
                .collect(),
            counts: self.counts,
            exit_tests: self.exit_tests,
        }
    }
}

/// Most distinct words in one bank, summed over the phases of a request.
fn passes(lanes: &[(usize, u64)], bytes: u64, phase: usize, banks: u64) -> u64 {
    let mut sum = 0;
    let mut at = 0;
    while at < lanes.len() {
        let group = lanes[at].0 / phase;
        let end = lanes[at..]
            .iter()
            .position(|&(lane, _)| lane / phase != group)
            .map_or(lanes.len(), |found| at + found);
        let words: BTreeSet<u64> = lanes[at..end]
            .iter()
            .flat_map(|&(_, address)| address / 4..=(address + bytes - 1) / 4)
            .collect();
        let mut load: HashMap<u64, u64> = HashMap::new();
        for word in words {
            *load.entry(word % banks).or_default() += 1;
        }
        sum += load.values().copied().max().unwrap_or(0);
        at = end;
    }
    sum
}
