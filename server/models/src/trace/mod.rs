//! Execution traces of distinct warps, run through the pipeline of an SM.
//!
//! Xiebing Wang, Kai Huang, Alois Knoll and Xuehai Qian, "A Hybrid Framework for Fast and Accurate GPU Performance
//! Estimation through Source-Level Analysis and Trace-Based Simulation", HPCA 2019. Equation, algorithm and table
//! numbers are the paper's. Each part of it is a file: [`cfg`] and [`search`] (the traces), [`groups`] (equations 1 to
//! 7), [`operations`] (Table I), [`reuse`] (the caches), [`pipeline`]; equation 8 is below.

mod caches;
pub mod cfg;
pub mod groups;
pub mod operations;
pub mod pipeline;
mod program;
pub mod reuse;
pub mod search;

use std::collections::BTreeMap;

use warplens_facts::facts::{Op, Space};

use self::caches::{Hits, Traces, hits, shared_in_use};
use self::operations::{Memory, arithmetic};
use self::pipeline::{Operation, Part, Port, Round, Step, Timing};
use self::program::{Entry, Program};
use crate::entry::{Answers, ModelEntry};
use crate::wfg::graph::Kind;
use crate::work::Work;
use crate::{Breakdown, Estimate, Factor};

/// Its line of the registry.
pub(crate) const MODEL: ModelEntry = ModelEntry {
    name: "trace",
    summary: "Execution traces of distinct warps, after Wang and others, 2019",
    answers: Answers::Simulation,
    estimate: estimate_work,
    cycles: |work| estimate_work(work).cycles,
};

/// Operations of all simulated traces together, about: loops are cut where there would be more.
const OPERATIONS: f64 = 160_000.0;
/// Steps of one warp's search, at most, however long the code is.
const LONGEST: usize = 400_000;
/// Warps of a round, at most.
const MOST_WARPS: f64 = 2048.0;
/// How far the place of a request moves with each operation of a trace.
const STEP: f64 = 0.618_033_988_749_894_9;

pub(crate) fn estimate_work(work: &Work) -> Estimate {
    match simulate(work) {
        Ok(estimate) => estimate,
        Err(why) => Estimate {
            why: Some(why),
            ..Estimate::default()
        },
    }
}

fn simulate(work: &Work) -> Result<Estimate, String> {
    let profile = work.profile();
    let lacks = |figure: &str| format!("the profile of {} has no `{figure}`", profile.name);
    let cancelled = || "cancelled".to_owned();
    let memory = Memory::new(
        profile,
        work.residency.active_sms,
        shared_in_use(work, profile),
    )
    .map_err(lacks)?;
    let program = Program::new(work.input, work.is_without(Factor::Divergence))
        .ok_or_else(|| format!("more than {} blocks to trace", cfg::MOST_BLOCKS))?;

    // The traces of a round of active work groups.
    let warps = work.residency.resident_warps.round().clamp(1.0, MOST_WARPS) as usize;
    let warps_per_group = (work.residency.warps_per_block as usize).clamp(1, warps);
    let scales = program.scales(OPERATIONS / warps as f64);
    let mut keys: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let mut distinct: Vec<Vec<Entry>> = Vec::new();
    let mut of_warp = Vec::with_capacity(warps);
    let places: Vec<f64> = (0..warps)
        .map(|warp| place(warp, warps, warps_per_group))
        .collect();
    for &place in &places {
        let trace = *keys.entry(program.key(place)).or_insert(distinct.len());
        if trace == distinct.len() {
            let stop = || work.question.is_cancelled();
            let made = program.trace(place, &scales, LONGEST, &stop);
            distinct.push(made.ok_or_else(cancelled)?);
        }
        of_warp.push(trace);
    }
    let traces = Traces {
        distinct: &distinct,
        of_warp: &of_warp,
        warps_per_group,
        scales: &scales,
    };
    let caches = hits(work, &program, &traces, &memory).ok_or_else(cancelled)?;
    let operations = work
        .graph
        .nodes
        .iter()
        .map(|node| template(work, &node.kind, &memory, &caches, warps_per_group))
        .collect::<Result<Vec<_>, _>>()
        .map_err(lacks)?;
    let round = Warps {
        work,
        traces: &traces,
        places: &places,
        operations: &operations,
    };
    let timing = pipeline::run(&round);
    if !timing.complete {
        return Err(cancelled());
    }
    let visits = work.graph.visits(work.branching());
    let weights = weights(&round, &program, &visits);
    finish(work, &round, &timing, &weights, &visits, &caches)
}

/// Where a warp is among all: first warps of groups before second ones, so that a condition on the thread's number
/// holds for the same warps of each group.
fn place(warp: usize, warps: usize, warps_per_group: usize) -> f64 {
    let groups = warps.div_ceil(warps_per_group);
    let (group, of_group) = (warp / warps_per_group, warp % warps_per_group);
    ((of_group * groups + group) as f64 + 0.5) / (groups * warps_per_group) as f64
}

/// A node of the kernel as the pipeline has it; a memory request still depends on where it is served.
#[derive(Debug, Clone, Copy)]
enum Template {
    Fixed(Operation),
    /// A request of the memory system: cycles of issue and delay, and where it is served.
    Global {
        access: usize,
        issue: f64,
        delay: f64,
        hits: Hits,
        latencies: [f64; 3],
        loads: bool,
    },
}

fn template(
    work: &Work,
    kind: &Kind,
    memory: &Memory,
    caches: &[Hits],
    warps_per_group: usize,
) -> Result<Template, &'static str> {
    let profile = work.profile();
    let issue = 1.0 / profile.issue_per_clock();
    Ok(match kind {
        Kind::Compute { mix, chain } => {
            let (hold, latency) = arithmetic(mix, *chain, profile)?;
            Template::Fixed(Operation::Compute { hold, latency })
        }
        Kind::Barrier if work.is_without(Factor::Synchronisation) => {
            Template::Fixed(Operation::Compute {
                hold: 0.0,
                latency: 0.0,
            })
        }
        Kind::Barrier => Template::Fixed(Operation::Barrier {
            latency: profile.barrier_latency + profile.barrier_warp_cycles * warps_per_group as f64,
        }),
        Kind::Scratchpad(access) => {
            let facts = &work.input.accesses[*access];
            let passes = work.requests[*access].passes.max(1.0);
            let (port, cycle) = match facts.space {
                Space::Constant => (Port::Constant, 1.0),
                // A pass takes a word from each bank.
                _ => {
                    let bytes = 4.0 * f64::from(profile.bank_rule.banks);
                    (
                        Port::Shared,
                        (bytes / profile.shared_bandwidth_b_clk).max(0.0),
                    )
                }
            };
            let delay = passes * cycle;
            let waits = facts.op != Op::Store;
            Template::Fixed(Operation::Memory {
                port,
                issue,
                delay,
                latency: profile.shared_latency - cycle + delay,
                loads: waits.then_some(*access),
            })
        }
        Kind::Memory(access) => {
            let facts = &work.input.accesses[*access];
            let request = &work.requests[*access];
            let hits = caches[*access];
            let bytes = request.moved_bytes;
            let (l1, l2) = (hits.l1, (hits.l2 - hits.l1).max(0.0));
            let dram = (1.0 - l1 - l2).max(0.0);
            let mut delay =
                bytes * (l1 / memory.l1_rate + l2 / memory.l2_rate + dram / memory.dram_rate);
            if facts.op == Op::Atomic {
                // Lanes on one address come one after the other.
                delay = delay.max(request.passes);
            }
            let latencies = if work.is_without(Factor::Latency) {
                [0.0; 3]
            } else {
                [memory.l1_latency, memory.l2_latency, memory.dram_latency]
            };
            Template::Global {
                access: *access,
                issue: issue.max(f64::from(profile.warp_size) / profile.load_store_lanes),
                delay,
                hits,
                latencies,
                loads: facts.op != Op::Store,
            }
        }
    })
}

/// A round as the pipeline sees it.
struct Warps<'w> {
    work: &'w Work<'w>,
    traces: &'w Traces<'w>,
    places: &'w [f64],
    operations: &'w [Template],
}

impl Round for Warps<'_> {
    fn warps(&self) -> usize {
        self.places.len()
    }

    fn group(&self, warp: usize) -> usize {
        warp / self.traces.warps_per_group
    }

    fn step(&self, warp: usize, place: usize) -> Option<Step<'_>> {
        let entry = self.traces.distinct[self.traces.of_warp[warp]].get(place)?;
        let operation = match self.operations[entry.node] {
            Template::Fixed(operation) => operation,
            Template::Global {
                access,
                issue,
                delay,
                hits,
                latencies,
                loads,
            } => {
                let at = (self.places[warp] + place as f64 * STEP).fract();
                let latency = match at {
                    at if at < hits.dram_requests => latencies[2],
                    at if at < 1.0 - hits.l1_requests => latencies[1],
                    _ => latencies[0],
                };
                Operation::Memory {
                    port: Port::Global,
                    issue,
                    delay,
                    latency: latency.max(delay),
                    loads: loads.then_some(access),
                }
            }
        };
        let nodes = self.work.graph.nodes.len();
        Some(Step {
            operation,
            needs: &self.work.graph.nodes[entry.node].uses,
            source: entry.node + nodes * (usize::from(entry.split) + 2 * usize::from(entry.edge)),
        })
    }

    fn values(&self) -> usize {
        self.work.input.accesses.len()
    }

    fn sources(&self) -> usize {
        4 * self.work.graph.nodes.len()
    }

    fn is_cancelled(&self) -> bool {
        self.work.question.is_cancelled()
    }
}

/// Executions of each node that one execution in the simulated round represents: within the outermost loop, and in its
/// first and last iteration.
fn weights(round: &Warps, program: &Program, visits: &[f64]) -> [Vec<f64>; 2] {
    let mut of_trace = vec![0.0; round.traces.distinct.len()];
    for &trace in round.traces.of_warp {
        of_trace[trace] += 1.0;
    }
    let mut sampled = [vec![0.0; visits.len()], vec![0.0; visits.len()]];
    for (trace, warps) in round.traces.distinct.iter().zip(&of_trace) {
        for entry in trace {
            sampled[usize::from(entry.edge)][entry.node] += warps;
        }
    }
    let mut weights = [vec![0.0; visits.len()], vec![0.0; visits.len()]];
    for (node, &visits) in visits.iter().enumerate() {
        let all = visits * round.warps() as f64;
        let [within, edge] = [sampled[0][node], sampled[1][node]];
        // What was seen in one of the two only represents both.
        let part = match (within > 0.0, edge > 0.0) {
            (true, true) => program.edge_part(node),
            (_, seen) => f64::from(u8::from(seen)),
        };
        for (to, (sampled, part)) in [(within, 1.0 - part), (edge, part)].into_iter().enumerate() {
            if sampled > 0.0 {
                weights[to][node] = all * part / sampled;
            }
        }
    }
    weights
}

fn finish(
    work: &Work,
    round: &Warps,
    timing: &Timing,
    weights: &[Vec<f64>; 2],
    visits: &[f64],
    caches: &[Hits],
) -> Result<Estimate, String> {
    let nodes = work.graph.nodes.len();
    let residency = &work.residency;
    // Equation 8: the last factor but one is the work groups that an SM gets.
    let rounds = residency.warps_on_sm() / residency.resident_warps.max(1.0);
    let mut breakdown = Breakdown::default();
    let mut shares = vec![0.0; nodes];
    let mut pipeline = 0.0;
    for (source, parts) in timing.by_source.iter().enumerate().take(4 * nodes) {
        let (node, kind) = (source % nodes, source / nodes);
        let weight = weights[kind / 2][node];
        for part in Part::ALL {
            let cycles = parts[part as usize] * weight;
            pipeline += cycles;
            let cycles = cycles * rounds;
            shares[node] += cycles;
            let to = match part {
                Part::Compute if kind % 2 == 1 => &mut breakdown.divergence,
                Part::Compute => &mut breakdown.compute,
                Part::Bandwidth => &mut breakdown.memory_bandwidth,
                Part::Latency => &mut breakdown.memory_latency,
                Part::Shared => &mut breakdown.shared,
                Part::Synchronisation => &mut breakdown.synchronisation,
            };
            *to += cycles;
        }
    }
    // Of nothing the sum of floats is -0.
    let cycles = shares.iter().sum::<f64>() + 0.0;
    if !cycles.is_finite() {
        return Err("the kernel's counts are too large to add up".to_owned());
    }
    let mut detail = groups_detail(work);
    let served = served(work, visits, caches);
    let length: f64 = visits.iter().sum();
    let cut = round.traces.scales.iter().copied().fold(1.0, f64::min);
    let share = |held: f64| {
        if timing.cycles > 0.0 {
            held / timing.cycles
        } else {
            0.0
        }
    };
    let more = [
        ("t_pipeline", pipeline),
        ("t_kernel", cycles),
        ("rounds", rounds),
        ("active_work_groups", residency.resident_blocks),
        ("active_warps", residency.resident_warps),
        ("distinct_warps", round.traces.distinct.len() as f64),
        ("trace_length", length),
        ("simulated_operations", timing.operations as f64),
        ("simulated_cycles", timing.cycles),
        ("loop_sampling", cut),
        ("l1_hit_rate", served.l1),
        ("l2_hit_rate", served.l2),
        ("memory_transactions", served.transactions),
        ("unknown_addresses", served.unknown),
        ("units_busy", share(timing.units_held)),
        ("memory_busy", share(timing.global_held)),
        (
            "value_stall_per_warp",
            timing.waited_for_values / round.warps() as f64,
        ),
        (
            "barrier_stall_per_warp",
            timing.waited_at_barriers / round.warps() as f64,
        ),
    ];
    detail.extend(more.map(|(name, value)| (name.to_owned(), value)));
    detail.retain(|_, value| value.is_finite());
    Ok(work.finish(cycles, breakdown, detail, &shares))
}

/// Equations 1 to 7, under the paper's names.
fn groups_detail(work: &Work) -> BTreeMap<String, f64> {
    let input = work.input;
    let shared = input
        .resources
        .static_shared_bytes
        .saturating_add(input.launch.dynamic_shared_bytes);
    let groups = groups::Parameters::new(
        work.profile(),
        input.launch.threads_per_block(),
        u64::from(input.resources.registers_per_thread),
        shared,
    )
    .groups();
    let mut detail = BTreeMap::new();
    let mut say = |name: &str, value: u64| detail.insert(name.to_owned(), value as f64);
    say("n_warp_per_wg", groups.warps_per_group);
    say("n_lim_wg_arch", groups.by_architecture);
    if let Some(limit) = groups.by_registers {
        say("n_lim_wg_reg", limit);
        say("n_lim_warp_reg", groups.warps_by_registers);
    }
    if let Some(limit) = groups.by_shared {
        say("n_lim_wg_sm", limit);
        say("n_sm_alloc", groups.shared_allocated);
    }
    say("n_awg", groups.active);
    detail
}

/// Who serves the memory transactions of an average warp.
struct Served {
    transactions: f64,
    l1: f64,
    /// Of what L1 does not have.
    l2: f64,
    unknown: f64,
}

fn served(work: &Work, visits: &[f64], caches: &[Hits]) -> Served {
    let (mut all, mut near, mut far, mut unknown) = (0.0, 0.0, 0.0, 0.0);
    for (node, visits) in work.graph.nodes.iter().zip(visits) {
        let Kind::Memory(access) = node.kind else {
            continue;
        };
        let transactions = work.requests[access].transactions * visits;
        all += transactions;
        near += transactions * caches[access].l1;
        far += transactions * (caches[access].l2 - caches[access].l1).max(0.0);
        let facts = &work.input.accesses[access];
        unknown += f64::from(u8::from(
            facts.linear.is_none() && facts.space != Space::Local,
        ));
    }
    let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    Served {
        transactions: all,
        l1: ratio(near, all),
        l2: ratio(far, all - near),
        unknown,
    }
}
