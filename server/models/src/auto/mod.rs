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

use crate::entry::{Answers, ModelEntry};
use crate::reuse::{Traffic, traffic};
use crate::wfg::graph::{Branching, Kind};
use crate::wfg::reduce::Reduction;
use crate::work::{Work, spread};
use crate::{Breakdown, Estimate, Factor, Question};

/// Its line of the registry.
pub(crate) const MODEL: ModelEntry = ModelEntry {
    name: "auto",
    summary: "Our own: bounds of compute, shared memory and bandwidth, and the latency of a warp's chain",
    answers: Answers::Equations,
    estimate: estimate_work,
    cycles: |work| Some(cycles(work)),
};

mod interval;
mod machine;
mod mechanism;

use machine::{Busy, Machine};
pub use mechanism::Mechanism;

/// How sharply the largest bound dominates: 1 would add the bounds up, infinity take their maximum.
///
/// Of the whole numbers 2 fits best where issue, wavefronts, sectors and time were measured together: the
/// published counters of 5,000 variants of a convolution on an RTX 2080 Ti (median error 5 %, against 13 %
/// for 4 and more for the maximum).
const SHARPNESS: i32 = 2;

/// The same where the memory system's part is of copies past the registers that run ahead: no warp waits for them in turn.
///
/// Of the whole numbers 4 fits best where products of matrices were timed on an H100 (`hgemm_async`, `hgemm_swizzled` and
/// `hgemm_stages` for 1024 to 4096).
const SHARPNESS_AHEAD: f64 = 4.0;

/// Warps of a block that a launch with enough warps on each SM has: 256 threads of NVIDIA's.
const LARGE_BLOCK: f64 = 8.0;

impl Busy {
    fn add(&mut self, other: &Busy, times: f64) {
        for (sum, value) in self.pipes.iter_mut().zip(other.pipes) {
            *sum += value * times;
        }
        self.shared += other.shared * times;
        self.described += other.described * times;
        self.barriers += other.barriers * times;
        for (sum, value) in self.memory.iter_mut().zip(other.memory) {
            *sum += value * times;
        }
        for (sum, value) in self.ahead.iter_mut().zip(other.ahead) {
            *sum += value * times;
        }
    }

    fn compute(&self) -> f64 {
        largest(&self.pipes).1
    }

    fn bandwidth(&self) -> f64 {
        largest(&self.memory).1
    }

    /// What the SM does itself.
    fn of_the_sm(&self) -> f64 {
        let together = norm(&[self.compute(), self.shared, self.barriers]);
        together.max(self.of_shared_memory())
    }

    /// What shared memory is busy with. What matrix units read of it overlaps with their products: 16 + N / 4 cycles beside N / 2 of a
    /// `wgmma` of 64 · N are the larger of the two on an H100, and writes of copies add up with it.
    fn of_shared_memory(&self) -> f64 {
        if self.described > 0.0 {
            self.shared + self.described
        } else {
            0.0
        }
    }

    /// How sharply the memory system's part and the SM's own join.
    fn sharpness(&self) -> f64 {
        let (level, all) = largest(&self.memory);
        let plain = f64::from(SHARPNESS);
        plain + (SHARPNESS_AHEAD - plain) * ratio(self.ahead[level], all).min(1.0)
    }

    /// The bounds together, as if they overlapped freely.
    fn together(&self) -> f64 {
        join(&[self.of_the_sm(), self.bandwidth()], self.sharpness())
    }

    /// The parts of that: compute, shared memory, bandwidth, barriers.
    fn parts(&self) -> [f64; 4] {
        let (own, memory) = (self.of_the_sm(), self.bandwidth());
        let sharpness = self.sharpness();
        let together = join(&[own, memory], sharpness);
        let part = |of: f64, whole: f64, sharpness: f64| ratio(of, whole).powf(sharpness);
        let inside = part(own, together, sharpness);
        let bound = self.of_shared_memory();
        if bound > 0.0 && bound >= own {
            return [0.0, inside, part(memory, together, sharpness), 0.0];
        }
        let each = |of: f64| inside * part(of, own, f64::from(SHARPNESS));
        [
            each(self.compute()),
            each(self.shared),
            part(memory, together, sharpness),
            each(self.barriers),
        ]
    }
}

/// Applies the model to a kernel.
pub fn estimate(question: &Question) -> Estimate {
    estimate_work(&Work::new(question))
}

/// The cycles without one mechanism; `None` where there is nothing to run.
pub fn cycles_without(question: &Question, mechanism: Mechanism) -> Option<f64> {
    if crate::nothing_to_run(question).is_some() {
        return None;
    }
    let cycles = Outcome::new(&Work::new(question), Some(mechanism)).cycles;
    cycles.is_finite().then_some(cycles)
}

pub(crate) fn estimate_work(work: &Work) -> Estimate {
    let outcome = Outcome::new(work, None);
    let breakdown = outcome.breakdown();
    let cycles = outcome.cycles;
    if !cycles.is_finite() {
        return Estimate {
            why: Some("the kernel's counts are too large to add up".to_owned()),
            ..Estimate::default()
        };
    }
    let mut estimate = work.finish(cycles, breakdown, outcome.detail(), &outcome.shares());
    estimate.interval = interval::around(work, &outcome);
    estimate
}

/// The cycles alone, of a kernel that does something: what it takes besides its blocks stays when a change leaves nothing else.
pub(crate) fn cycles(work: &Work) -> f64 {
    let cycles = Outcome::new(work, None).cycles;
    cycles.max(work.profile().kernel_overhead_cycles())
}

/// Everything the model computed.
struct Outcome<'w, 'a> {
    work: &'w Work<'a>,
    machine: Machine<'w>,
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
    /// Warps of the busiest SM, and how many times over its resident ones they are.
    warps: f64,
    rounds: f64,
    /// The chains of all rounds one behind the other, and what the time until new blocks start adds to everything else.
    waited: f64,
    vacant: f64,
    /// Time lost because barriers keep the resident blocks' phases apart.
    serialised: f64,
    /// What the kernel takes besides its blocks.
    overhead: f64,
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
    vacant: f64,
    barriers: f64,
}

impl<'w, 'a> Outcome<'w, 'a> {
    fn new(work: &'w Work<'a>, off: Option<Mechanism>) -> Outcome<'w, 'a> {
        let graph = &work.graph;
        let residency = &work.residency;
        let split = graph.visits(Branching::Sum);
        let diverges = graph.diverges();
        let undivided_visits = if diverges {
            graph.visits(Branching::Average)
        } else {
            split.clone()
        };
        let one_sided = work.is_without(Factor::Divergence) || off == Some(Mechanism::Divergence);
        let branching = if one_sided {
            Branching::Average
        } else {
            Branching::Sum
        };
        let visits = if one_sided {
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
        let input = work.input;
        let traffic = if off == Some(Mechanism::Caches) {
            work.requests.iter().map(Traffic::uncached).collect()
        } else {
            traffic(input, &work.requests, &executions, residency)
        };
        let machine = Machine::new(work, off);
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
            let ahead = std::mem::take(&mut now.ahead);
            let both_sides = |bytes: f64| {
                if visits[index] > 0.0 {
                    bytes * split[index] / visits[index]
                } else {
                    0.0
                }
            };
            (now.memory, now.ahead) = (memory.map(both_sides), ahead.map(both_sides));
            warp.add(&now, visits[index]);
            stretches[node.stretch].add(&now, visits[index]);
            undivided.add(&busy[index], undivided_visits[index]);
        }

        let transition: Vec<f64> = graph
            .nodes
            .iter()
            .map(|node| machine.alone(work, node))
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
        let chain = graph.reduce(&transition, &dependence, branching);
        let undivided_chain = if diverges && !one_sided {
            graph
                .reduce(&transition, &dependence, Branching::Average)
                .entry_to_exit
        } else {
            chain.entry_to_exit
        };

        let (warps, rounds) = waves(work, off != Some(Mechanism::WholeWaves));
        let together = work.is_without(Factor::Synchronisation)
            || off == Some(Mechanism::Barriers)
            || residency.resident_blocks <= 0.0;
        let serialised = if together {
            0.0
        } else {
            // Phases of one block cannot overlap; those of the other resident blocks fill in.
            let apart: f64 = stretches.iter().map(Busy::together).sum();
            let lost = (apart - warp.together()).max(0.0) * warps;
            lost / residency.resident_blocks.max(1.0)
        };
        let rounds = if off == Some(Mechanism::Latency) {
            0.0
        } else {
            rounds
        };
        let mut waited = chain.entry_to_exit * rounds;
        let (mut chain, mut undivided_chain) = (chain, undivided_chain);
        if graph.differs_by_warp() && waited > 0.0 {
            // The launch is not over before its longest warp is: `if (i == 0)` with a loop behind it.
            let longest = graph.reduce(&transition, &dependence, Branching::Longest);
            if longest.entry_to_exit > waited {
                waited = longest.entry_to_exit;
                undivided_chain = waited;
                chain = longest;
            }
        }
        let (waited, chain, undivided_chain) = (waited, chain, undivided_chain);
        let filled = norm(&[warp.together() * warps + serialised, waited]);
        let between = match work.profile().block_turnover {
            Some(turnover) if waited > 0.0 && off != Some(Mechanism::BlockTurnover) => turnover,
            _ => 0.0,
        };
        // Other blocks' work fills a place that is empty; where there is none it is waited for.
        let vacant = (waited + between * (rounds - 1.0).max(0.0) - filled).max(0.0);
        // Blocks are started one after the other for the whole device, while others work.
        // With all warps resident blocks are large.
        let blocks = if work.is_without(Factor::Occupancy) {
            residency.blocks * (residency.warps_per_block / LARGE_BLOCK).min(1.0)
        } else {
            residency.blocks
        };
        let starting = blocks * work.profile().block_start_cycles();
        let cycles = if waited > 0.0 && off != Some(Mechanism::BlockTurnover) {
            // Sharper than where resources are shared: the two hardly meet.
            let work = (filled + vacant).powi(2);
            norm(&[work, starting.powi(2)]).sqrt()
        } else {
            filled + vacant
        };
        let vacant = cycles - filled;
        // A kernel that does nothing has no line that the time could be at.
        let overhead = if cycles > 0.0 && off != Some(Mechanism::KernelOverhead) {
            work.profile().kernel_overhead_cycles()
        } else {
            0.0
        };
        let cycles = cycles + overhead;
        let count = |level: fn(&Traffic) -> f64| {
            let each = executions.iter().zip(&traffic);
            let sum: f64 = each.map(|(times, bytes)| times * level(bytes)).sum();
            // The sum of nothing is -0.
            sum + 0.0
        };
        Outcome {
            work,
            machine,
            visits,
            busy,
            warp,
            undivided,
            chain,
            undivided_chain,
            transition,
            warps,
            rounds,
            waited,
            vacant,
            serialised,
            overhead,
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
        let overlapped = together * self.warps;
        let throughput = overlapped + self.serialised;
        let busy = self.cycles - self.vacant - self.overhead;
        let working = part(throughput, busy);
        let of_all = self.warp.parts();
        let [compute, shared, bandwidth, barriers] =
            of_all.map(|part| part * working * ratio(overlapped, throughput));
        Parts {
            compute,
            bandwidth,
            shared,
            latency: part(self.waited, busy),
            vacant: self.vacant,
            barriers: working * ratio(self.serialised, throughput) + barriers,
        }
    }

    /// The chain's links by what they wait for: per node, by kind.
    fn links(&self) -> [Vec<f64>; 6] {
        let nodes = &self.work.graph.nodes;
        let mut links = [(); 6].map(|()| vec![0.0; nodes.len()]);
        for (index, node) in nodes.iter().enumerate() {
            let own = self.transition[index] * self.chain.visits[index];
            let waits = self.chain.exposed[index];
            match &node.kind {
                Kind::Compute { mix, .. } => {
                    let products = own * self.machine.part_of_matrices(mix, node.line);
                    links[0][index] = own - products;
                    links[4][index] = products;
                }
                Kind::Memory(access) if self.work.input.accesses[*access].ahead.is_some() => {
                    links[1][index] = own;
                    links[5][index] = waits;
                }
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
        let products = share(links[4]);
        let of_matrices = largest(&self.warp.pipes).0 == machine::TENSOR;
        let busy = parts.compute * (1.0 - idle);
        let (busy, matrices) = if of_matrices {
            (0.0, busy)
        } else {
            (busy, 0.0)
        };
        let mut breakdown = Breakdown {
            compute: busy + arithmetic * (1.0 - idle_chain),
            tensor: matrices + products * (1.0 - idle_chain),
            memory_bandwidth: parts.bandwidth,
            async_copy: share(links[5]),
            memory_latency: share(links[1]),
            shared: parts.shared + share(links[2]),
            divergence: parts.compute * idle + (arithmetic + products) * idle_chain,
            synchronisation: share(links[3]) + parts.barriers,
        };
        if total <= 0.0 {
            breakdown.memory_latency += parts.latency;
        }
        // More resident warps would fill what waits for blocks, as they fill what waits for memory.
        if total > 0.0 && links[1] <= 0.0 {
            breakdown.compute += parts.vacant;
        } else {
            breakdown.memory_latency += parts.vacant;
        }
        // It is the time of whatever the blocks do, not a cause of its own.
        let blocks = self.cycles - self.overhead;
        if blocks > 0.0 {
            breakdown.scale(self.cycles / blocks);
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
        spread(
            &mut shares,
            parts.shared,
            &weigh(&|busy| busy.shared + busy.described),
        );
        let mut chain = vec![0.0; nodes.len()];
        for link in self.links() {
            for (sum, value) in chain.iter_mut().zip(link) {
                *sum += value;
            }
        }
        spread(&mut shares, parts.latency + parts.vacant, &chain);
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
        // It is no line's: each keeps its share.
        let known = shares.clone();
        spread(&mut shares, self.overhead, &known);
        shares
    }

    fn detail(&self) -> BTreeMap<String, f64> {
        let residency = &self.work.residency;
        let warps = self.warps;
        [
            ("warps_on_busiest_sm", warps),
            ("resident_warps", residency.resident_warps),
            ("rounds", self.rounds),
            ("instructions_per_warp", self.instructions()),
            ("bound_compute", self.warp.compute() * warps),
            ("bound_issue", self.warp.pipes[0] * warps),
            (
                "bound_shared",
                (self.warp.shared + self.warp.described) * warps,
            ),
            ("bound_l1", self.warp.memory[0] * warps),
            ("bound_l2", self.warp.memory[1] * warps),
            ("bound_dram", self.warp.memory[2] * warps),
            ("bound_latency", self.waited),
            ("block_turnover", self.vacant),
            ("kernel_overhead", self.overhead),
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

/// Warps that the busiest SM executes, and in how many rounds of as many as are resident.
fn waves(work: &Work, whole: bool) -> (f64, f64) {
    let residency = &work.residency;
    let warps = residency.warps_on_sm();
    let rounds = if residency.resident_blocks >= 1.0 {
        residency.blocks_on_sm / residency.resident_blocks.floor()
    } else if residency.resident_blocks > 0.0 {
        warps / residency.resident_warps
    } else {
        0.0
    };
    if whole {
        return (warps, rounds.ceil());
    }
    let even = ratio(
        residency.blocks,
        residency.blocks_on_sm * f64::from(work.profile().sms),
    );
    (warps * even, rounds * even)
}

fn norm(bounds: &[f64]) -> f64 {
    join(bounds, f64::from(SHARPNESS))
}

/// Bounds joined with this sharpness.
fn join(bounds: &[f64], sharpness: f64) -> f64 {
    let largest = bounds.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 || !largest.is_finite() {
        return largest;
    }
    // Scaled, so that no power overflows.
    let sum: f64 = bounds
        .iter()
        .map(|bound| (bound / largest).powf(sharpness))
        .sum();
    largest * sum.powf(sharpness.recip())
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
