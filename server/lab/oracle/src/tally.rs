//! What is counted while a kernel runs: requests, branches, operations.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::lexer::Position;

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
pub enum BranchKind {
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
    /// First token of the expression.
    pub place: Position,
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
    /// Sectors that the bytes of all lanes would fill, those of lanes that read the same twice: what Nsight Compute calls ideal.
    pub asked_sectors: u64,
    /// Sectors if each stretch of neighbouring bytes began where a sector does.
    pub aligned_sectors: u64,
    /// Distinct segments of 128 bytes.
    pub segments: u64,
    /// Times the 32 banks are cycled: an access of 8 bytes by half-warps, of 16 by quarters.
    pub passes: u64,
    /// One for each of those parts of a warp that has a lane.
    pub ideal_passes: u64,
    /// The same as `passes` with 16 banks and half-warps.
    pub half_warp_passes: u64,
    /// Distinct words of 4 bytes.
    pub words: u64,
    /// Most lanes on one address.
    pub serial: u64,
    /// Lanes that go where they went the time before, in the same block.
    pub again: u64,
}

/// Which branch of the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchKey {
    /// First token of the condition; of a loop without one, its keyword.
    pub place: Position,
    /// Lines of the calls, outermost first.
    pub via: Vec<u32>,
    /// What it is.
    pub fork: BranchKind,
}

/// How the warps went at one branch. A loop is evaluated once by each warp that comes to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BranchCounts {
    /// Warps that came with a lane.
    pub evaluations: u64,
    /// With a lane that takes it.
    pub taken: u64,
    /// With lanes that differ: one takes it and one does not, or in their iterations.
    pub divergent: u64,
    /// Instructions issued on its paths beyond those of full warps, had the block's lanes been regrouped by path.
    pub wasted: f64,
}

/// The words of device memory that the loads of one line take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reuse {
    /// Words of 4 bytes, once for each request that takes them.
    pub loads: u64,
    /// Words of 4 bytes, once for each block that takes them.
    pub words: u64,
}

/// Everything counted in a run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// By line: in a called function, that of the outermost call.
    pub reuse: BTreeMap<u32, Reuse>,
    /// By access.
    pub accesses: BTreeMap<AccessKey, Requests>,
    /// By branch.
    pub branches: BTreeMap<BranchKey, BranchCounts>,
    /// Operations summed over threads. What a loop's last test needs, the one that fails, is not in it.
    pub counts: BTreeMap<Class, u64>,
    /// Operations of the loops' last tests.
    pub exit_tests: BTreeMap<Class, u64>,
    /// Operations and accesses that warps issue, each once for a warp.
    pub issued: f64,
}

/// The requests of one access so far.
#[derive(Debug, Default)]
struct Stream {
    requests: Requests,
    /// The block that `last` is about.
    block: u64,
    /// Where each thread of it went last.
    last: Vec<Option<u64>>,
}

/// The loads of one line so far.
#[derive(Debug, Default)]
struct Shared {
    reuse: Reuse,
    /// The block that `seen` is about.
    block: u64,
    /// Words that it has taken.
    seen: HashSet<u64>,
}

impl Shared {
    /// One request of a block takes these words.
    fn add(&mut self, block: u64, words: impl Iterator<Item = u64>) {
        if self.block != block {
            self.block = block;
            self.seen.clear();
        }
        let words: BTreeSet<u64> = words.collect();
        self.reuse.loads += words.len() as u64;
        let before = self.seen.len();
        self.seen.extend(words);
        self.reuse.words += (self.seen.len() - before) as u64;
    }
}

/// Where a [`Tally`] is filled: calls have numbers, so that a key is small.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    accesses: HashMap<(Position, usize, Access, Space), Stream>,
    shared: HashMap<u32, Shared>,
    branches: HashMap<(Position, usize, BranchKind), BranchCounts>,
    pub(crate) counts: BTreeMap<Class, u64>,
    pub(crate) exit_tests: BTreeMap<Class, u64>,
    pub(crate) issued: f64,
    /// Blocks begun.
    pub(crate) blocks: u64,
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

    /// One warp executes an access: the addresses of its active lanes, and the block's thread that is its first.
    pub(crate) fn request(
        &mut self,
        (place, chain): (Position, usize),
        access: Access,
        space: Space,
        bytes: u64,
        first: usize,
        lanes: &[(usize, u64)],
    ) {
        if lanes.is_empty() || bytes == 0 {
            return;
        }
        if (access, space) == (Access::Load, Space::Global) {
            let calls = self.chains.get(chain).and_then(|calls| calls.first());
            let line = calls.copied().unwrap_or(place.line);
            let words = lanes
                .iter()
                .flat_map(|&(_, address)| address / 4..=(address + bytes - 1) / 4);
            let shared = self.shared.entry(line).or_default();
            shared.add(self.blocks, words);
        }
        let stream = self
            .accesses
            .entry((place, chain, access, space))
            .or_default();
        if stream.block != self.blocks {
            stream.block = self.blocks;
            stream.last.clear();
        }
        let entry = &mut stream.requests;
        for &(lane, address) in lanes {
            let thread = first + lane;
            if stream.last.len() <= thread {
                stream.last.resize(thread + 1, None);
            }
            entry.again += u64::from(stream.last[thread].replace(address) == Some(address));
        }
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
            entry.asked_sectors += (lanes.len() as u64 * bytes).div_ceil(32);
            entry.aligned_sectors += stretches(lanes, bytes)
                .iter()
                .map(|length| length.div_ceil(32))
                .sum::<u64>();
        }
        entry.words += units(4);
        if space == Space::Shared {
            let phase = (128 / bytes.max(4)).max(1) as usize;
            entry.passes += passes(lanes, bytes, phase, 32);
            let mut parts: Vec<usize> = lanes.iter().map(|(lane, _)| lane / phase).collect();
            parts.dedup();
            entry.ideal_passes += parts.len() as u64;
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
        place: Position,
        chain: usize,
        fork: BranchKind,
        taken: bool,
        divergent: bool,
    ) {
        let entry = self.branches.entry((place, chain, fork)).or_default();
        entry.evaluations += 1;
        entry.taken += u64::from(taken);
        entry.divergent += u64::from(divergent);
    }

    /// Adds to what a branch wastes.
    pub(crate) fn wasted(
        &mut self,
        (place, chain, fork): (Position, usize, BranchKind),
        issues: f64,
    ) {
        self.branches
            .entry((place, chain, fork))
            .or_default()
            .wasted += issues;
    }

    pub(crate) fn finish(self) -> Tally {
        let via = |chain: usize| self.chains.get(chain).cloned().unwrap_or_default();
        let reuse = self.shared.into_iter();
        Tally {
            reuse: reuse.map(|(line, of)| (line, of.reuse)).collect(),
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
                    (key, found.requests.clone())
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
            issued: self.issued,
        }
    }
}

/// The lengths of the stretches of neighbouring bytes that lanes ask for.
fn stretches(lanes: &[(usize, u64)], bytes: u64) -> Vec<u64> {
    let mut starts: Vec<u64> = lanes.iter().map(|&(_, address)| address).collect();
    starts.sort_unstable();
    let mut found: Vec<(u64, u64)> = Vec::new();
    for start in starts {
        match found.last_mut() {
            Some((_, end)) if start <= *end => *end = (*end).max(start + bytes),
            _ => found.push((start, start + bytes)),
        }
    }
    found.iter().map(|(start, end)| end - start).collect()
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
