//! What users see first: bounds of throughput and latency per SM, put together smoothly. Ours.
//!
//! For the busiest SM of the launch the model computes how long each of its resources is busy (issue and
//! arithmetic pipes, the shared-memory pipe, L1, L2 and DRAM bandwidth) and how long a warp's own chain of
//! dependent operations takes for as many rounds as the resident warps need. With the bounds b the time is
//!
//! ```text
//! T = (Σ b^p)^(1/p)
//! ```
//!
//! so it is never below any bound and above the largest only where another comes close. A part of the
//! breakdown is b^p / T^(p-1): by Euler's theorem the parts add up to T, and each says by how many per cent
//! the time falls if its bound falls by one per cent. docs/models/auto.md has the equations and their reasons.

use std::collections::BTreeMap;

use warplens_analysis::facts::{Op, Space};
use warplens_hardware::{Pipe, Profile, Timing};

use crate::reuse::{Traffic, traffic};
use crate::wfg::graph::{Branching, Kind};
use crate::wfg::reduce::Reduction;
use crate::work::{Request, Work, spread};
use crate::{Breakdown, Estimate, Factor, Input};

/// How sharply the largest bound dominates: 1 would add the bounds up, infinity take their maximum.
///
/// Of the whole numbers 2 fits best where issue, wavefronts, sectors and time were measured together: the
/// published counters of 5,000 variants of a convolution on an RTX 2080 Ti (median error 5 %, against 13 %
/// for 4 and more for the maximum).
const SHARPNESS: i32 = 2;

/// Resources whose busy cycles one warp adds to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Busy {
    /// Issue slots, then the pipes in their order.
    pipes: [f64; PIPES],
    shared: f64,
    /// L1, L2, DRAM.
    memory: [f64; 3],
}

/// Issue, then every [`Pipe`].
const PIPES: usize = 1 + Pipe::ALL.len();

/// Where [`Busy`] counts a pipe.
fn at(pipe: Pipe) -> usize {
    1 + pipe as usize
}

impl Busy {
    fn add(&mut self, other: &Busy, times: f64) {
        for (sum, value) in self.pipes.iter_mut().zip(other.pipes) {
            *sum += value * times;
        }
        self.shared += other.shared * times;
        for (sum, value) in self.memory.iter_mut().zip(other.memory) {
            *sum += value * times;
        }
    }

    fn compute(&self) -> f64 {
        largest(&self.pipes).1
    }

    fn bandwidth(&self) -> f64 {
        largest(&self.memory).1
    }

    /// The bounds together, as if they overlapped freely.
    fn together(&self) -> f64 {
        norm(&[self.compute(), self.shared, self.bandwidth()])
    }
}

/// Applies the model to a kernel.
pub fn estimate(input: &Input) -> Estimate {
    estimate_work(&Work::new(input))
}

pub(crate) fn estimate_work(work: &Work) -> Estimate {
    let outcome = Outcome::new(work);
    let breakdown = outcome.breakdown();
    let cycles = outcome.cycles;
    if !cycles.is_finite() {
        return Estimate {
            why: Some("the kernel's counts are too large to add up".to_owned()),
            ..Estimate::default()
        };
    }
    work.finish(cycles, breakdown, outcome.detail(), &outcome.shares())
}

/// The cycles alone.
pub(crate) fn cycles(work: &Work) -> f64 {
    Outcome::new(work).cycles
}

/// Everything the model computed.
struct Outcome<'w, 'a> {
    work: &'w Work<'a>,
    /// Executions of each node by one warp as its issue slots see them.
    visits: Vec<f64>,
    /// One execution of each node.
    busy: Vec<Busy>,
    /// One warp.
    warp: Busy,
    /// One warp if no branch split it.
    undivided: Busy,
    /// One warp's chain, and what it would be if no branch split it.
    chain: Reduction,
    undivided_chain: f64,
    /// One execution of each node by a warp that is alone.
    transition: Vec<f64>,
    rounds: f64,
    /// Time lost because barriers keep the resident blocks' phases apart.
    serialised: f64,
    cycles: f64,
    dram_bytes: f64,
    l2_bytes: f64,
}

/// Parts of the time before they are named.
#[derive(Debug, Clone, Copy)]
struct Parts {
    compute: f64,
    bandwidth: f64,
    shared: f64,
    latency: f64,
    barriers: f64,
}

impl<'w, 'a> Outcome<'w, 'a> {
    fn new(work: &'w Work<'a>) -> Outcome<'w, 'a> {
        let graph = &work.graph;
        let residency = &work.residency;
        let split = graph.visits(Branching::Sum);
        let diverges = graph.diverges();
        let undivided_visits = if diverges {
            graph.visits(Branching::Average)
        } else {
            split.clone()
        };
        let visits = if work.is_without(Factor::Divergence) {
            undivided_visits.clone()
        } else {
            split.clone()
        };

        // The data moved is the same whether a warp splits or not, so traffic counts both sides.
        let mut executions = vec![0.0; work.requests.len()];
        for (node, times) in graph.nodes.iter().zip(&split) {
            if let Kind::Memory(access) | Kind::Scratchpad(access) = node.kind {
                executions[access] += times * residency.warps();
            }
        }
        let facts = work.input.facts;
        let traffic = traffic(
            work.profile(),
            facts,
            &work.requests,
            &executions,
            residency,
        );
        let machine = Machine::new(work);
        let busy: Vec<Busy> = graph
            .nodes
            .iter()
            .map(|node| machine.busy(work, &node.kind, &traffic))
            .collect();

        let mut warp = Busy::default();
        let mut undivided = Busy::default();
        let mut stretches = vec![Busy::default(); graph.stretches()];
        for (index, node) in graph.nodes.iter().enumerate() {
            let mut now = busy[index];
            let memory = std::mem::take(&mut now.memory);
            now.memory = memory.map(|bytes| {
                if visits[index] > 0.0 {
                    bytes * split[index] / visits[index]
                } else {
                    0.0
                }
            });
            warp.add(&now, visits[index]);
            stretches[node.stretch].add(&now, visits[index]);
            undivided.add(&busy[index], undivided_visits[index]);
        }

        let transition: Vec<f64> = graph
            .nodes
            .iter()
            .map(|node| machine.alone(work, &node.kind))
            .collect();
        let dependence: Vec<f64> = graph
            .nodes
            .iter()
            .map(|node| {
                if node.loads {
                    machine.wait(work, &node.kind, &traffic)
                } else {
                    0.0
                }
            })
            .collect();
        let chain = graph.reduce(&transition, &dependence, work.branching());
        let undivided_chain = if diverges && !work.is_without(Factor::Divergence) {
            graph
                .reduce(&transition, &dependence, Branching::Average)
                .entry_to_exit
        } else {
            chain.entry_to_exit
        };

        let warps = residency.warps_on_sm();
        let rounds = if residency.resident_blocks >= 1.0 {
            (residency.blocks_on_sm / residency.resident_blocks.floor()).ceil()
        } else if residency.resident_blocks > 0.0 {
            (warps / residency.resident_warps).ceil()
        } else {
            0.0
        };
        let serialised =
            if work.is_without(Factor::Synchronisation) || residency.resident_blocks <= 0.0 {
                0.0
            } else {
                // Phases of one block cannot overlap; those of the other resident blocks fill in.
                let apart: f64 = stretches.iter().map(Busy::together).sum();
                let lost = (apart - warp.together()).max(0.0) * warps;
                lost / residency.resident_blocks.max(1.0)
            };
        let cycles = norm(&[
            warp.together() * warps + serialised,
            chain.entry_to_exit * rounds,
        ]);
        let count = |level: fn(&Traffic) -> f64| {
            executions
                .iter()
                .zip(&traffic)
                .map(|(times, bytes)| times * level(bytes))
                .sum()
        };
        Outcome {
            work,
            visits,
            busy,
            warp,
            undivided,
            chain,
            undivided_chain,
            transition,
            rounds,
            serialised,
            cycles,
            dram_bytes: count(|bytes| bytes.dram),
            l2_bytes: count(|bytes| bytes.l2),
        }
    }

    fn parts(&self) -> Parts {
        // A norm is homogeneous: its value is the sum of its arguments times its derivatives.
        let part = |bound: f64, whole: f64| {
            if whole > 0.0 {
                bound * (bound / whole).powi(SHARPNESS - 1)
            } else {
                0.0
            }
        };
        let together = self.warp.together();
        let overlapped = together * self.work.residency.warps_on_sm();
        let throughput = overlapped + self.serialised;
        let working = part(throughput, self.cycles);
        let resource = |busy: f64| {
            ratio(part(busy, together), together) * working * ratio(overlapped, throughput)
        };
        Parts {
            compute: resource(self.warp.compute()),
            bandwidth: resource(self.warp.bandwidth()),
            shared: resource(self.warp.shared),
            latency: part(self.chain.entry_to_exit * self.rounds, self.cycles),
            barriers: working * ratio(self.serialised, throughput),
        }
    }

    /// The chain's links by what they wait for: per node, by kind.
    fn links(&self) -> [Vec<f64>; 4] {
        let nodes = &self.work.graph.nodes;
        let mut links = [(); 4].map(|()| vec![0.0; nodes.len()]);
        for (index, node) in nodes.iter().enumerate() {
            let own = self.transition[index] * self.chain.visits[index];
            let waits = self.chain.exposed[index];
            match node.kind {
                Kind::Compute { .. } => links[0][index] = own,
                Kind::Memory(_) => links[1][index] = own + waits,
                Kind::Scratchpad(_) => links[2][index] = own + waits,
                Kind::Barrier => links[3][index] = own,
            }
        }
        links
    }

    fn breakdown(&self) -> Breakdown {
        let parts = self.parts();
        let links = self.links().map(|link| link.iter().sum::<f64>());
        let total: f64 = links.iter().sum();
        let share = |link: f64| {
            if total > 0.0 {
                parts.latency * link / total
            } else {
                0.0
            }
        };
        let idle = 1.0 - ratio(self.undivided.compute(), self.warp.compute()).min(1.0);
        let idle_chain = 1.0 - ratio(self.undivided_chain, self.chain.entry_to_exit).min(1.0);
        let arithmetic = share(links[0]);
        let mut breakdown = Breakdown {
            compute: parts.compute * (1.0 - idle) + arithmetic * (1.0 - idle_chain),
            memory_bandwidth: parts.bandwidth,
            memory_latency: share(links[1]),
            shared: parts.shared + share(links[2]),
            divergence: parts.compute * idle + arithmetic * idle_chain,
            synchronisation: share(links[3]) + parts.barriers,
            launch: 0.0,
        };
        if total <= 0.0 {
            breakdown.memory_latency += parts.latency;
        }
        breakdown
    }

    /// The cycles of each node.
    fn shares(&self) -> Vec<f64> {
        let nodes = &self.work.graph.nodes;
        let parts = self.parts();
        let weigh = |value: &dyn Fn(&Busy) -> f64| -> Vec<f64> {
            self.busy
                .iter()
                .zip(&self.visits)
                .map(|(busy, times)| value(busy) * times)
                .collect()
        };
        let (pipe, _) = largest(&self.warp.pipes);
        let (level, _) = largest(&self.warp.memory);
        let mut shares = vec![0.0; nodes.len()];
        spread(&mut shares, parts.compute, &weigh(&|busy| busy.pipes[pipe]));
        spread(
            &mut shares,
            parts.bandwidth,
            &weigh(&|busy| busy.memory[level]),
        );
        spread(&mut shares, parts.shared, &weigh(&|busy| busy.shared));
        let mut chain = vec![0.0; nodes.len()];
        for link in self.links() {
            for (sum, value) in chain.iter_mut().zip(link) {
                *sum += value;
            }
        }
        spread(&mut shares, parts.latency, &chain);
        let barriers: Vec<f64> = nodes
            .iter()
            .zip(&self.visits)
            .map(|(node, times)| {
                if node.kind == Kind::Barrier {
                    *times
                } else {
                    0.0
                }
            })
            .collect();
        spread(&mut shares, parts.barriers, &barriers);
        shares
    }

    fn detail(&self) -> BTreeMap<String, f64> {
        let residency = &self.work.residency;
        let warps = residency.warps_on_sm();
        [
            ("warps_on_busiest_sm", warps),
            ("resident_warps", residency.resident_warps),
            ("rounds", self.rounds),
            ("instructions_per_warp", self.instructions()),
            ("bound_compute", self.warp.compute() * warps),
            ("bound_issue", self.warp.pipes[0] * warps),
            ("bound_shared", self.warp.shared * warps),
            ("bound_l1", self.warp.memory[0] * warps),
            ("bound_l2", self.warp.memory[1] * warps),
            ("bound_dram", self.warp.memory[2] * warps),
            ("bound_latency", self.chain.entry_to_exit * self.rounds),
            ("warp_latency", self.chain.entry_to_exit),
            ("barrier_serialisation", self.serialised),
            ("l2_bytes", self.l2_bytes),
            ("dram_bytes", self.dram_bytes),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    fn instructions(&self) -> f64 {
        let nodes = &self.work.graph.nodes;
        nodes
            .iter()
            .zip(&self.visits)
            .map(|(node, times)| match &node.kind {
                Kind::Compute { mix, .. } => mix.total() * times,
                _ => *times,
            })
            .sum()
    }
}

/// The figures of the profile that the model needs, in its own units.
struct Machine<'p> {
    profile: &'p Profile,
    /// What one warp instruction costs on each pipe.
    timing: [Timing; Pipe::ALL.len()],
    issue: f64,
    /// Cycles of the SM for one byte of L1, of its share of L2, of its share of DRAM.
    byte: [f64; 3],
    cached: bool,
}

impl<'p> Machine<'p> {
    fn new(work: &'p Work) -> Machine<'p> {
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
            byte: [
                profile.l1_bandwidth_b_clk.map_or(0.0, f64::recip),
                l2.min(port).recip(),
                dram.min(port).recip(),
            ],
            cached: profile.l2_bytes.is_some(),
        }
    }

    /// What one execution by one warp keeps busy, in cycles of the SM.
    fn busy(&self, work: &Work, kind: &Kind, traffic: &[Traffic]) -> Busy {
        let mut busy = Busy::default();
        match kind {
            Kind::Compute { mix, .. } => {
                busy.pipes[0] = mix.total() * self.issue;
                for (pipe, timing) in Pipe::ALL.into_iter().zip(self.timing) {
                    busy.pipes[at(pipe)] = mix.of(pipe) * timing.issue;
                }
                // Branches and integers share a pipe; single precision's multiplications go through its own, and
                // products of integers take its slots too.
                busy.pipes[at(Pipe::Int)] += std::mem::take(&mut busy.pipes[at(Pipe::Branch)]);
                let multiply = std::mem::take(&mut busy.pipes[at(Pipe::Fp32Multiply)]);
                busy.pipes[at(Pipe::Fp32)] += multiply;
                busy.pipes[at(Pipe::Fp32)] += mix.int_mul * self.timing[Pipe::Fp32 as usize].issue;
            }
            Kind::Barrier => busy.pipes[0] = self.issue,
            Kind::Scratchpad(access) => {
                let request = &work.requests[*access];
                busy.pipes[0] = self.issue;
                if work.input.facts.accesses[*access].space == Space::Shared {
                    busy.shared = self.bank_cycles(request).max(self.load_store());
                } else {
                    // Constant memory gives one word to the whole warp; each other word is issued again.
                    busy.pipes[0] = self.issue * request.passes;
                }
            }
            Kind::Memory(access) => {
                let request = &work.requests[*access];
                busy.pipes[0] = self.issue;
                let traffic = &traffic[*access];
                if self.cached {
                    // L1 finds a line in a cycle, however few of its bytes are wanted.
                    let l1 = (request.moved_bytes * self.byte[0])
                        .max(request.lines)
                        .max(self.load_store());
                    // Lanes that update one address go one after the other.
                    let atomics = if work.input.facts.accesses[*access].op == Op::Atomic {
                        request.passes.max(request.transactions) * 32.0
                    } else {
                        0.0
                    };
                    busy.memory = [
                        l1,
                        traffic.l2.max(atomics) * self.byte[1],
                        traffic.dram * self.byte[2],
                    ];
                } else {
                    busy.memory = [0.0, 0.0, traffic.dram * self.byte[2]];
                }
            }
        }
        busy
    }

    /// Cycles of the load-store unit for the addresses of one request.
    fn load_store(&self) -> f64 {
        f64::from(self.profile.warp_size) / self.profile.load_store_lanes
    }

    /// Cycles of the bank array for one request.
    fn bank_cycles(&self, request: &Request) -> f64 {
        let row = f64::from(self.profile.bank_rule.banks) * 4.0;
        request.passes * row / self.profile.shared_bandwidth_b_clk
    }

    /// Cycles that a warp alone on the SM spends on one execution before its next instruction issues.
    fn alone(&self, work: &Work, kind: &Kind) -> f64 {
        let scheduler = 1.0 / self.profile.issue_per_scheduler;
        match kind {
            Kind::Compute { mix, chain } => {
                let schedulers = f64::from(self.profile.schedulers_per_sm);
                let total = mix.total();
                let (mut issue, mut latency) = (0.0, 0.0);
                for (pipe, timing) in Pipe::ALL.into_iter().zip(self.timing) {
                    let count = mix.of(pipe);
                    issue += count * (timing.issue * schedulers).max(scheduler);
                    latency += count * timing.latency;
                }
                issue.max(ratio(latency, total) * chain.min(total))
            }
            Kind::Barrier => {
                if work.is_without(Factor::Synchronisation) {
                    0.0
                } else {
                    self.profile.barrier_latency
                        + self.profile.barrier_warp_cycles * work.residency.warps_per_block
                }
            }
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
    fn wait(&self, work: &Work, kind: &Kind, traffic: &[Traffic]) -> f64 {
        match kind {
            Kind::Memory(access) if !work.is_without(Factor::Latency) => {
                let request = &work.requests[*access];
                let traffic = &traffic[*access];
                let dram = self.profile.dram_latency;
                let l2 = self.profile.l2_latency.unwrap_or(dram).min(dram);
                let l1 = self.profile.l1_latency.unwrap_or(l2).min(l2);
                // A request waits for the slowest of its transactions.
                let to_l2 = ratio(traffic.l2, request.ideal_bytes).min(1.0);
                let to_dram = ratio(traffic.dram, request.ideal_bytes).min(to_l2);
                let serial = if self.cached {
                    request.lines
                } else {
                    request.transactions
                };
                l1 + to_l2 * (l2 - l1) + to_dram * (dram - l2) + serial - 1.0
            }
            Kind::Scratchpad(access) if !work.is_without(Factor::Latency) => {
                self.profile.shared_latency + self.bank_cycles(&work.requests[*access])
            }
            _ => 0.0,
        }
    }
}

fn norm(bounds: &[f64]) -> f64 {
    let largest = bounds.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 || !largest.is_finite() {
        return largest;
    }
    // Scaled, so that no power overflows.
    let sum: f64 = bounds
        .iter()
        .map(|bound| (bound / largest).powi(SHARPNESS))
        .sum();
    largest * sum.powf(1.0 / f64::from(SHARPNESS))
}

fn largest(values: &[f64]) -> (usize, f64) {
    let mut best = (0, 0.0);
    for (index, value) in values.iter().enumerate() {
        if *value > best.1 {
            best = (index, *value);
        }
    }
    best
}

/// `part / whole`, 0 where there is no whole.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
