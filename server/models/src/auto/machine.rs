//! What one execution of a node costs on the machine: busy cycles of the SM's resources, and a warp's own waiting.

use warplens_facts::facts::{Form, LinearAddress, Op, Space};
use warplens_machine::{Mix, Pipe, Profile, Timing};

use super::mechanism::Mechanism;
use super::ratio;
use crate::Factor;
use crate::input::ExecutedAccess;
use crate::reuse::Traffic;
use crate::wfg::graph::{Kind, Node};
use crate::work::{Request, Work};

/// Resources whose busy cycles one warp adds to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Busy {
    /// Issue slots, then the pipes in their order.
    pub pipes: [f64; PIPES],
    pub shared: f64,
    /// What matrix units read of shared memory by themselves.
    pub described: f64,
    /// The unit that counts the warps at a barrier, one after the other.
    pub barriers: f64,
    /// L1, L2, DRAM.
    pub memory: [f64; 3],
    /// What of that is of copies past the registers that a later iteration waits for.
    pub ahead: [f64; 3],
}

/// Issue, then every [`Pipe`].
const PIPES: usize = 1 + Pipe::ALL.len();

/// Atomics of one address in a cycle: NVIDIA's white paper of Kepler GK110, "one operation per clock".
const UPDATES_OF_A_WORD: f64 = 1.0;

/// Bytes that a store takes of the way to L2 for each 128-byte line in which it has a byte: an SM hands on a line at a time, however
/// little of it is written. Measured on an H100 with stores down a column, `transpose_naive` (docs/models/auto.md).
const STORED_LINE: f64 = 128.0;

/// Where [`Busy`] counts a pipe.
fn at(pipe: Pipe) -> usize {
    1 + pipe as usize
}

/// Where [`Busy`] counts the matrix units.
pub(super) const TENSOR: usize = 1 + Pipe::Tensor as usize;

/// The figures of the profile that the model needs, in its own units.
pub(super) struct Machine<'p> {
    profile: &'p Profile,
    /// What one warp instruction costs on each pipe.
    timing: [Timing; Pipe::ALL.len()],
    issue: f64,
    off: Option<Mechanism>,
    /// SMs at work.
    sharers: f64,
    /// Cycles of the SM for one byte of L1, of its share of L2, of its share of DRAM.
    byte: [f64; 3],
    cached: bool,
    /// Lines with products of matrices that the warp issues and a later iteration waits for.
    behind: Vec<u32>,
    /// Its stores go on by lines: NVIDIA's from Volta on, whose L1 has sectors and writes through.
    stores_lines: bool,
}

impl<'p> Machine<'p> {
    pub(super) fn new(work: &'p Work, off: Option<Mechanism>) -> Machine<'p> {
        let profile = work.profile();
        // One SM's share of what all of them draw on, where the blocks of the launch are spread as evenly as
        // they can be; an SM alone draws at most half of what its L1 delivers.
        let residency = &work.residency;
        let sharers = ratio(residency.warps(), residency.warps_on_sm()).max(1.0);
        let per_cycle = 1e9 / profile.cycles_per_second();
        let port = profile
            .l1_bandwidth_b_clk
            .map_or(f64::INFINITY, |bytes| bytes / 2.0);
        let l2 = profile
            .l2_bandwidth_gb_s
            .map_or(f64::INFINITY, |gb| gb * per_cycle / sharers);
        let dram = profile.achieved_dram_bandwidth_gb_s() * per_cycle / sharers;
        Machine {
            profile,
            timing: Pipe::ALL.map(|pipe| profile.timing(pipe)),
            issue: 1.0 / profile.issue_per_clock(),
            off,
            sharers,
            byte: [
                profile.l1_bandwidth_b_clk.map_or(0.0, f64::recip),
                l2.min(port).recip(),
                dram.min(port).recip(),
            ],
            cached: profile.l2_bytes.is_some(),
            behind: lines_behind(work),
            stores_lines: profile.compute_capability.is_some_and(|of| of >= (7, 0)),
        }
    }

    /// What one execution by one warp keeps busy, in cycles of the SM.
    pub(super) fn busy(&self, work: &Work, kind: &Kind, traffic: &[Traffic]) -> Busy {
        let mut busy = self.all_busy(work, kind, traffic);
        match self.off {
            Some(Mechanism::Pipes) => busy.pipes[1..].fill(0.0),
            Some(Mechanism::SharedPipe) => (busy.shared, busy.described) = (0.0, 0.0),
            Some(Mechanism::Barriers) => busy.barriers = 0.0,
            Some(Mechanism::Bandwidth) => (busy.memory, busy.ahead) = ([0.0; 3], [0.0; 3]),
            _ => {}
        }
        busy
    }

    fn all_busy(&self, work: &Work, kind: &Kind, traffic: &[Traffic]) -> Busy {
        let mut busy = Busy::default();
        match kind {
            Kind::Compute { mix, .. } => {
                busy.pipes[0] = mix.total() * self.issue;
                for (pipe, timing) in Pipe::ALL.into_iter().zip(self.timing) {
                    busy.pipes[at(pipe)] = mix[pipe] * timing.issue;
                }
                // Branches and integers share a pipe; single precision's multiplications go through its own, and
                // products of integers take its slots too.
                busy.pipes[at(Pipe::Int)] += std::mem::take(&mut busy.pipes[at(Pipe::Branch)]);
                let multiply = std::mem::take(&mut busy.pipes[at(Pipe::Fp32Multiply)]);
                busy.pipes[at(Pipe::Fp32)] += multiply;
                busy.pipes[at(Pipe::Fp32)] +=
                    mix[Pipe::IntMul] * self.timing[Pipe::Fp32 as usize].issue;
            }
            Kind::Barrier => {
                busy.pipes[0] = self.issue;
                // The guide of NVIDIA's has the rate; of others only the latency is known.
                let counts = self.profile.compute_capability.is_some();
                if counts && !work.is_without(Factor::Synchronisation) {
                    busy.barriers = self.profile.barrier_warp_cycles;
                }
            }
            Kind::Scratchpad(access) if is_described(&work.input.accesses[*access]) => {
                busy.described = self.bank_cycles(&work.requests[*access]);
            }
            Kind::Scratchpad(access) => {
                let request = &work.requests[*access];
                let merged = work.merged(*access);
                busy.pipes[0] = self.issue / merged;
                if work.input.accesses[*access].space == Space::Shared {
                    // What an instruction reads of each lane lies side by side, where accesses of their own would meet
                    // in banks.
                    let least = work.conflict_free_passes(*access).min(request.passes);
                    let passes = match work.joined_passes(*access) {
                        Some(passes) => passes / merged,
                        None => (request.passes / merged).max(least),
                    };
                    busy.shared = self.row_cycles(passes).max(self.load_store() / merged);
                } else {
                    // Constant memory gives one word to the whole warp; each other word is issued again.
                    busy.pipes[0] = self.issue * request.passes;
                }
            }
            Kind::Memory(access) => {
                let request = &work.requests[*access];
                let merged = work.merged(*access);
                busy.pipes[0] = self.issue / merged;
                let traffic = &traffic[*access];
                if self.cached {
                    // L1 finds a line in a cycle, however few of its bytes are wanted.
                    let l1 = (request.moved_bytes * self.byte[0])
                        .max(request.lines / merged)
                        .max(self.load_store() / merged);
                    // Lanes that update one address go one after the other.
                    let access = &work.input.accesses[*access];
                    let (atomics, word) = if access.op == Op::Atomic {
                        let bytes = request.passes.max(request.transactions) * 32.0;
                        (bytes, self.on_one_word(access, request))
                    } else {
                        (0.0, 0.0)
                    };
                    let stored = if access.op == Op::Store && self.stores_lines {
                        request.lines * STORED_LINE / merged
                    } else {
                        0.0
                    };
                    // A sector that is asked for twice, for two places in shared memory, is counted twice by L2 but does not
                    // take its way twice: `hgemm_async` on an H100 would need 6.7 TB/s.
                    let delivered = traffic.l2 / access.requests_per_sector.max(1.0);
                    let l2 = delivered.max(atomics).max(stored);
                    let l2 = (l2 * self.byte[1]).max(word);
                    busy.memory = [l1, l2, traffic.dram * self.byte[2]];
                } else {
                    busy.memory = [0.0, 0.0, traffic.dram * self.byte[2]];
                }
                if work.input.accesses[*access]
                    .ahead
                    .is_some_and(|ahead| ahead > 0)
                {
                    busy.ahead = busy.memory;
                }
            }
        }
        busy
    }

    /// Cycles that an SM waits for the word which all threads of the launch update: L2 takes one update in each, of all SMs
    /// together.
    fn on_one_word(&self, access: &ExecutedAccess, request: &Request) -> f64 {
        let linear = access.linear.as_ref();
        if linear.is_some_and(LinearAddress::is_one_for_the_launch) {
            request.passes * self.sharers / UPDATES_OF_A_WORD
        } else {
            0.0
        }
    }

    /// The part of a stretch's latency that is products of matrices.
    pub(super) fn part_of_matrices(&self, mix: &Mix, line: u32) -> f64 {
        if self.behind.binary_search(&line).is_ok() {
            return 0.0;
        }
        let latency = |pipe: Pipe| mix[pipe] * self.timing[pipe as usize].latency;
        let all: f64 = Pipe::ALL.into_iter().map(latency).sum();
        ratio(latency(Pipe::Tensor), all)
    }

    /// Loads of an access whose latencies overlap.
    fn together(&self, work: &Work, access: usize) -> f64 {
        if self.off == Some(Mechanism::LoadsTogether) {
            1.0
        } else {
            work.together(access)
        }
    }

    /// Cycles of the load-store unit for the addresses of one request.
    fn load_store(&self) -> f64 {
        f64::from(self.profile.warp_size) / self.profile.load_store_lanes
    }

    /// Cycles of the bank array for one request.
    fn bank_cycles(&self, request: &Request) -> f64 {
        self.row_cycles(request.passes)
    }

    /// Cycles of the bank array for this many passes.
    fn row_cycles(&self, passes: f64) -> f64 {
        let row = f64::from(self.profile.bank_rule.banks) * 4.0;
        passes * row / self.profile.shared_bandwidth_b_clk
    }

    /// Cycles that a warp alone on the SM spends on one execution before its next instruction issues.
    pub(super) fn alone(&self, work: &Work, node: &Node) -> f64 {
        let scheduler = 1.0 / self.profile.issue_per_scheduler;
        match &node.kind {
            Kind::Compute { mix, chain } => {
                let schedulers = f64::from(self.profile.schedulers_per_sm);
                let total = mix.total();
                let (mut issue, mut latency) = (0.0, 0.0);
                for (pipe, timing) in Pipe::ALL.into_iter().zip(self.timing) {
                    let mut count = mix[pipe];
                    if pipe == Pipe::Tensor && self.behind.binary_search(&node.line).is_ok() {
                        // The warp goes on meanwhile.
                        count = 0.0;
                    }
                    issue += count * (timing.issue * schedulers).max(scheduler);
                    latency += count * timing.latency;
                }
                let serial = &work.input.flow.serial;
                let chain = match serial.binary_search_by_key(&node.line, |known| known.0) {
                    Ok(at) => total * serial[at].1,
                    Err(_) => chain.min(total),
                };
                issue.max(ratio(latency, total) * chain)
            }
            Kind::Barrier => {
                if work.is_without(Factor::Synchronisation) {
                    0.0
                } else {
                    self.profile.barrier_latency
                        + self.profile.barrier_warp_cycles * work.residency.warps_per_block
                }
            }
            Kind::Scratchpad(access) if is_described(&work.input.accesses[*access]) => 0.0,
            Kind::Scratchpad(access) => scheduler.max(self.bank_cycles(&work.requests[*access])),
            Kind::Memory(access) => {
                let request = &work.requests[*access];
                scheduler.max(if self.cached {
                    request.lines
                } else {
                    request.transactions
                })
            }
        }
    }

    /// Cycles from a load's issue to its value.
    pub(super) fn wait(&self, work: &Work, kind: &Kind, traffic: &[Traffic]) -> f64 {
        match kind {
            Kind::Memory(access) if !work.is_without(Factor::Latency) => {
                let request = &work.requests[*access];
                let traffic = &traffic[*access];
                let dram = self.profile.dram_latency;
                let l2 = self.profile.l2_latency.unwrap_or(dram).min(dram);
                let l1 = self.profile.l1_latency.unwrap_or(l2).min(l2);
                // What is loaded together waits for the slowest.
                let together = self.together(work, *access);
                let missed = missed_bytes(&work.input.accesses[*access], request);
                let to_l2 = slowest(ratio(traffic.l2, missed), together);
                let to_dram = slowest(ratio(traffic.dram, missed), together).min(to_l2);
                let serial = if self.cached {
                    request.lines
                } else {
                    request.transactions
                };
                let trip = l1 + to_l2 * (l2 - l1) + to_dram * (dram - l2) + serial - 1.0;
                // Of a copy that is waited for later, as many iterations pass meanwhile.
                let ahead = work.input.accesses[*access].ahead.unwrap_or(0);
                trip / together / f64::from(ahead.max(1))
            }
            Kind::Scratchpad(access) if is_described(&work.input.accesses[*access]) => 0.0,
            Kind::Scratchpad(access) if !work.is_without(Factor::Latency) => {
                let trip = self.profile.shared_latency + self.bank_cycles(&work.requests[*access]);
                trip / self.together(work, *access)
            }
            _ => 0.0,
        }
    }
}

/// True for what matrix units read by themselves: no warp issues it or waits for it.
fn is_described(access: &ExecutedAccess) -> bool {
    matches!(access.form, Form::Described { .. })
}

/// The lines of products that only a later iteration waits for, in their order.
fn lines_behind(work: &Work) -> Vec<u32> {
    let accesses = work.input.accesses.iter();
    let mut lines: Vec<u32> = accesses
        .filter(|access| is_described(access) && access.ahead.is_some_and(|ahead| ahead > 0))
        .map(|access| access.site.line)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Bytes that a request brings where it finds nothing in the cache: its sectors where a loop walks along those of all lanes, whole
/// sectors apart from one another, and so comes to the end of all in the same iteration. Elsewhere some lane does in nearly every one,
/// or other warps wait for the same sectors at the same time: what is wanted counts.
fn missed_bytes(access: &ExecutedAccess, request: &Request) -> f64 {
    let unit = i64::from(access.transaction_bytes.max(1));
    let apart = access.stride.as_ref().map_or(0, |stride| stride.bytes);
    let steps = access.linear.iter().flat_map(|linear| &linear.loops);
    let along = steps.copied().any(|step| step != 0 && step.abs() < unit);
    if along && apart != 0 && apart % unit == 0 {
        request.moved_bytes.max(request.ideal_bytes)
    } else {
        request.ideal_bytes
    }
}

/// How likely it is that one of this many comes from where this part of all does.
fn slowest(part: f64, together: f64) -> f64 {
    1.0 - (1.0 - part.clamp(0.0, 1.0)).powf(together)
}
