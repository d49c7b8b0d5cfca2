//! The work flow graph model.
//!
//! Baghsorkhi, Delahaye, Patel, Gropp and Hwu, "An Adaptive Performance Modeling Tool for GPU
//! Architectures", `PPoPP` 2010. Equation numbers are the paper's. The graph is in [`graph`], its reduction in
//! [`reduce`], what a picture shows of both in [`drawing`]; the weights of equations 1 to 6 are here, in
//! [`Model::new`]. The paper stops at the latency of an
//! average warp; how a kernel's time follows from it is ours, see [`Model::round_cycles`].

pub mod drawing;
pub mod graph;
mod parameters;
pub mod reduce;
mod regions;

use std::collections::BTreeMap;

use warplens_facts::facts::Space;
use warplens_machine::{Pipe, Profile};

pub use self::parameters::Parameters;

use self::graph::{Branching, Graph, Kind};
use self::reduce::Reduction;
use self::regions::{Regions, stretches};
use crate::entry::{Answers, ModelEntry};
use crate::reuse::traffic;
use crate::work::{Request, Residency, Work, conflict_free_passes, finite, spread};
use crate::{Breakdown, Estimate, Factor, Question};

/// Its line of the registry.
pub(crate) const MODEL: ModelEntry = ModelEntry {
    name: "wfg",
    summary: "Work flow graph, after Baghsorkhi and others, PPoPP 2010",
    answers: Answers::Equations,
    estimate: estimate_work,
    cycles: |work| estimate_work(work).cycles,
};

/// A weighted graph and what its reduction says.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Equation 3 for the kernel's top region.
    pub latency_comp: f64,
    /// Compute cycles of an average warp: the first reduction.
    pub cyc_compute: f64,
    /// Cycles to move its data.
    pub cyc_mem: f64,
    /// Global memory operations of an average warp.
    pub num_mem: f64,
    /// Bytes they move.
    pub num_bytes: f64,
    /// Barriers.
    pub num_sync: f64,
    /// Equation 4: weight of the arcs out of memory operations.
    pub latency_bw: f64,
    /// Equation 5: cycles of a warp between two context switches.
    pub nbc_avg: f64,
    /// Equation 6 for the first load in program order.
    pub latency_exposed: f64,
    /// Weight of that load's outgoing transition arc once its data-dependence arc is collapsed.
    pub weight_after_collapse: f64,
    /// Latency of an average warp: the second reduction.
    pub entry_to_exit: f64,
    /// Equation 7.
    pub wlp_avg: f64,
    /// Equation 8.
    pub ilp_avg: f64,
    /// The second reduction, node by node.
    pub reduction: Reduction,
    /// Weights of the outgoing transition arcs before memory is looked at.
    pub compute_weights: Vec<f64>,
    /// Equation 6: weights of the data-dependence arcs that leave each node.
    pub dependence: Vec<f64>,
    active_warps: f64,
}

impl Model {
    /// Specialises the graph for the hardware and reduces it twice.
    pub fn new(graph: &Graph, p: &Parameters) -> Model {
        // SIMD_work / SIMD_engine: the cycles in which one instruction of a warp issues.
        let issue = p.warp_size / p.simd_engine;
        let regions = Regions::new(graph, p);
        let blocks = p.active_blocks.max(1.0);
        // Equations 1 and 2.
        let effective = |local: f64, average: f64| (local + (blocks - 1.0) * average) / blocks;
        let wlp: Vec<f64> = regions
            .wlp
            .iter()
            .map(|local| effective(*local, regions.wlp_avg).max(1e-9))
            .collect();
        let ilp: Vec<f64> = regions
            .ilp
            .iter()
            .map(|local| effective(*local, regions.ilp_avg).max(1e-9))
            .collect();
        // Equation 3, times the issue cycles of one instruction.
        let instruction = |region: usize, latency: f64, lanes: f64| {
            let issue = p.warp_size / lanes;
            (latency / (issue * ilp[region] * wlp[region])).max(1.0) * issue
        };

        let mut weights: Vec<f64> = graph
            .nodes
            .iter()
            .map(|node| match &node.kind {
                Kind::Compute { mix, .. } => {
                    let plain = instruction(node.region, p.pipeline_latency, p.simd_engine);
                    let other = |unit: Option<(f64, f64)>| {
                        unit.map_or(plain, |(latency, lanes)| {
                            instruction(node.region, latency, lanes).max(plain)
                        })
                    };
                    let special = mix[Pipe::Sfu] + mix[Pipe::Conversion] + mix[Pipe::ToFloat];
                    (mix.total() - special - mix[Pipe::Fp64]).max(0.0) * plain
                        + special * other(p.special)
                        + mix[Pipe::Fp64] * other(p.double)
                }
                Kind::Scratchpad(access) => {
                    p.scratchpad.get(*access).copied().unwrap_or(0.0).max(issue)
                }
                Kind::Barrier if !p.barriers => 0.0,
                Kind::Barrier | Kind::Memory(_) => issue,
            })
            .collect();
        let compute_weights = weights.clone();
        let first = graph.reduce(&weights, &vec![0.0; weights.len()], p.branching);
        let cyc_compute = first.entry_to_exit;

        let (mut num_mem, mut num_bytes, mut num_sync) = (0.0, 0.0, 0.0);
        for (node, visits) in graph.nodes.iter().zip(&first.visits) {
            match node.kind {
                Kind::Memory(access) => {
                    num_mem += visits;
                    num_bytes += visits * p.bytes.get(access).copied().unwrap_or(0.0);
                }
                Kind::Barrier if p.barriers => num_sync += visits,
                _ => {}
            }
        }
        let cyc_mem = num_bytes / p.bandwidth_bytes_per_cycle_per_sm;
        // Equation 4.
        let stall = if num_mem > 0.0 {
            ((cyc_mem - cyc_compute) / num_mem).max(0.0)
        } else {
            0.0
        };
        let latency_bw = stall + issue;
        // Equation 5.
        let nbc_avg = cyc_compute / (num_mem + num_sync + 1.0);
        // Equation 6; nothing is exposed where the other warps cover it all.
        let exposed =
            |region: usize| (p.memory_latency - (wlp[region] - 1.0).max(0.0) * nbc_avg).max(0.0);

        let mut dependence = vec![0.0; weights.len()];
        let mut load = None;
        for (index, node) in graph.nodes.iter().enumerate() {
            if let Kind::Memory(_) = node.kind {
                weights[index] = latency_bw;
                if node.loads {
                    dependence[index] = exposed(node.region);
                    load = load.or(Some(index));
                }
            }
        }
        let reduction = graph.reduce(&weights, &dependence, p.branching);
        Model {
            latency_comp: (p.pipeline_latency / (issue * ilp[0] * wlp[0])).max(1.0),
            cyc_compute,
            cyc_mem,
            num_mem,
            num_bytes,
            num_sync,
            latency_bw,
            nbc_avg,
            latency_exposed: load.map_or(0.0, |load| dependence[load]),
            weight_after_collapse: load.map_or(0.0, |load| reduction.transitions[load]),
            entry_to_exit: reduction.entry_to_exit,
            wlp_avg: regions.wlp_avg,
            ilp_avg: regions.ilp_avg,
            reduction,
            compute_weights,
            dependence,
            active_warps: p.active_warps,
        }
    }

    /// True where the memory's bandwidth and not the warps' own progress sets the pace of a round.
    pub fn bandwidth_bound(&self) -> bool {
        self.active_warps * self.cyc_mem > self.warp_paced()
    }

    /// Cycles in which the resident warps run from start to end together.
    ///
    /// One warp's latency is what is left of it after the others' instructions have covered what they can,
    /// so the others' compute cycles come on top; and a round is never shorter than the transfer of all its
    /// data. (With latency fully covered this is the sum of all warps' compute cycles, with one warp its
    /// latency.)
    pub fn round_cycles(&self) -> f64 {
        self.warp_paced().max(self.active_warps * self.cyc_mem)
    }

    fn warp_paced(&self) -> f64 {
        self.entry_to_exit + (self.active_warps - 1.0).max(0.0) * self.cyc_compute
    }
}

/// Applies the model to a kernel.
pub fn estimate(question: &Question) -> Estimate {
    estimate_work(&Work::new(question))
}

pub(crate) fn estimate_work(work: &Work) -> Estimate {
    let residency = &work.residency;
    let warps = residency.warps_on_sm();
    let resident = residency.resident_warps.max(1.0);
    let rounds = (warps / resident).floor();
    let rest = warps - rounds * resident;

    let mut parts = Parts::default();
    let mut shares = vec![0.0; work.graph.nodes.len()];
    let mut parameters = Parameters::new(work);
    let model = Model::new(&work.graph, &parameters);
    parts.add(work, (&parameters, &model), rounds, &mut shares);
    if rest > 1e-9 {
        parameters.active_blocks = rest / residency.warps_per_block.max(1.0);
        parameters.active_warps = rest;
        let rest = Model::new(&work.graph, &parameters);
        parts.add(work, (&parameters, &rest), 1.0, &mut shares);
    }
    let cycles = parts.cycles();
    if !cycles.is_finite() {
        return Estimate {
            why: Some("the kernel's counts are too large to add up".to_owned()),
            ..Estimate::default()
        };
    }
    let mut detail = details(&parameters, &model);
    detail.insert("rounds".to_owned(), warps / resident);
    detail.insert("active_warps".to_owned(), resident);
    work.finish(cycles, parts.0, detail, &shares)
}

impl Parameters {
    fn new(work: &Work) -> Parameters {
        let profile: &Profile = work.profile();
        let residency: &Residency = &work.residency;
        let mut executions = vec![0.0; work.requests.len()];
        for (node, times) in work
            .graph
            .nodes
            .iter()
            .zip(work.graph.visits(Branching::Sum))
        {
            if let Kind::Memory(access) | Kind::Scratchpad(access) = node.kind {
                executions[access] += times * residency.warps();
            }
        }
        let input = work.input;
        let traffic = traffic(input, &work.requests, &executions, residency);
        let per_cycle = 1e9 / profile.cycles_per_second();
        let sharers = (residency.warps() / residency.warps_on_sm().max(1.0)).max(1.0);
        let bandwidth = profile.dram_bandwidth_gb_s * per_cycle / sharers;
        Parameters {
            pipeline_latency: profile.pipeline_latency,
            warp_size: f64::from(profile.warp_size),
            simd_engine: profile.simd_engine,
            special: Some((profile.sfu_latency, profile.sfu_lanes)),
            double: Some((
                profile
                    .fp64_latency
                    .unwrap_or(4.0 * profile.pipeline_latency),
                profile.fp64_lanes.unwrap_or(profile.fp32_lanes / 32.0),
            )),
            active_warps: residency.resident_warps.max(1.0),
            active_blocks: residency.resident_blocks.max(1.0),
            bandwidth_bytes_per_cycle_per_sm: bandwidth,
            memory_latency: if work.is_without(Factor::Latency) {
                0.0
            } else {
                profile.memory_latency
            },
            bytes: traffic
                .iter()
                .zip(&work.requests)
                .map(|(bytes, request)| bytes.dram * word_by_word(profile, request))
                .collect(),
            scratchpad: (0..work.requests.len())
                .map(|access| scratchpad(work, access))
                .collect(),
            barriers: !work.is_without(Factor::Synchronisation),
            stretches: stretches(work),
            branching: if work.is_without(Factor::Divergence) {
                Branching::Average
            } else {
                Branching::Weighted
            },
        }
    }
}

/// How many times more an uncoalesced request moves in this model than its transactions: the paper's GPU fetches 16
/// words for one (section 4.1), which is the profile's `uncoalesced_transaction_bytes`.
fn word_by_word(profile: &Profile, request: &Request) -> f64 {
    let least = request.transactions * f64::from(profile.uncoalesced_transaction_bytes);
    if request.uncoalesced() && request.moved_bytes > 0.0 {
        (least / request.moved_bytes).max(1.0)
    } else {
        1.0
    }
}

/// Cycles of a warp at an access to shared or constant memory: issue, and where banks conflict the whole instruction
/// once more for each further lane on a bank. A half-warp in which no lane is active takes part in that, as the
/// instruction of a whole warp does.
fn scratchpad(work: &Work, access: usize) -> f64 {
    let profile = work.profile();
    let facts = &work.input.accesses[access];
    let request = &work.requests[access];
    let row = f64::from(profile.bank_rule.banks) * 4.0;
    let cycles_per_pass = row / profile.shared_bandwidth_b_clk;
    if facts.space != Space::Shared {
        return request.passes * cycles_per_pass;
    }
    let once = conflict_free_passes(profile, facts.bytes_per_lane) * cycles_per_pass;
    let best = finite(facts.ideal_passes_per_request).filter(|best| *best > 0.0);
    let degree = best.map_or(1.0, |best| (request.passes / best).max(1.0));
    let issue = f64::from(profile.warp_size) / profile.simd_engine;
    once.max(issue) + (degree - 1.0) * once
}

/// The breakdown while rounds are added up.
#[derive(Default)]
struct Parts(Breakdown);

impl Parts {
    fn cycles(&self) -> f64 {
        let parts = &self.0;
        parts.compute
            + parts.memory_bandwidth
            + parts.memory_latency
            + parts.shared
            + parts.synchronisation
    }

    /// Adds `times` rounds. Where bandwidth sets their pace they are all bandwidth's; else each node has its
    /// compute weight once for every resident warp and its stalls once.
    fn add(
        &mut self,
        work: &Work,
        (parameters, model): (&Parameters, &Model),
        times: f64,
        shares: &mut [f64],
    ) {
        if times <= 0.0 {
            return;
        }
        let nodes = &work.graph.nodes;
        let visits = &model.reduction.visits;
        if model.bandwidth_bound() {
            let cycles = model.round_cycles() * times;
            self.0.memory_bandwidth += cycles;
            let moved: Vec<f64> = nodes
                .iter()
                .zip(visits)
                .map(|(node, visits)| match node.kind {
                    Kind::Memory(access) => parameters.bytes[access] * visits,
                    _ => 0.0,
                })
                .collect();
            spread(shares, cycles, &moved);
            return;
        }
        let warps = model.active_warps;
        for (index, node) in nodes.iter().enumerate() {
            let own = model.compute_weights[index] * visits[index] * warps * times;
            let (mut stalls, mut waits) = (0.0, 0.0);
            match node.kind {
                Kind::Compute { .. } => self.0.compute += own,
                Kind::Scratchpad(_) => {
                    self.0.shared += own;
                    waits = model.reduction.exposed[index] * times;
                }
                Kind::Barrier => self.0.synchronisation += own,
                Kind::Memory(_) => {
                    self.0.compute += own;
                    let stall = model.latency_bw - model.compute_weights[index];
                    stalls = stall * visits[index] * times;
                    waits = model.reduction.exposed[index] * times;
                }
            }
            self.0.memory_bandwidth += stalls;
            self.0.memory_latency += waits;
            shares[index] += own + stalls + waits;
        }
    }
}

fn details(parameters: &Parameters, model: &Model) -> BTreeMap<String, f64> {
    [
        ("latency_comp", model.latency_comp),
        ("cyc_compute", model.cyc_compute),
        ("cyc_mem", model.cyc_mem),
        ("num_mem", model.num_mem),
        ("num_bytes", model.num_bytes),
        ("num_sync", model.num_sync),
        ("latency_bw", model.latency_bw),
        ("nbc_avg", model.nbc_avg),
        ("latency_exposed", model.latency_exposed),
        ("weight_after_collapse", model.weight_after_collapse),
        ("entry_to_exit", model.entry_to_exit),
        ("wlp_avg", model.wlp_avg),
        ("ilp_avg", model.ilp_avg),
        ("round_cycles", model.round_cycles()),
        ("pipeline_latency", parameters.pipeline_latency),
        ("warp_size", parameters.warp_size),
        ("simd_engine", parameters.simd_engine),
        (
            "bandwidth_bytes_per_cycle_per_sm",
            parameters.bandwidth_bytes_per_cycle_per_sm,
        ),
        ("memory_latency", parameters.memory_latency),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
