//! Parallelism of warps and of instructions in the regions of the program dependence graph (section 2.2).

use super::graph::{Graph, Kind};
use super::parameters::Parameters;
use crate::work::Work;

/// Local parallelism by region, and averages over the kernel.
pub(super) struct Regions {
    pub(super) wlp: Vec<f64>,
    pub(super) ilp: Vec<f64>,
    /// Equation 7.
    pub(super) wlp_avg: f64,
    /// Equation 8.
    pub(super) ilp_avg: f64,
}

impl Regions {
    pub(super) fn new(graph: &Graph, p: &Parameters) -> Regions {
        let count = graph.regions.len();
        let mut instructions = vec![0.0; count];
        let mut chains = vec![0.0; count];
        for node in &graph.nodes {
            if let Kind::Compute { mix, chain } = &node.kind {
                instructions[node.region] += mix.total();
                chains[node.region] += chain.min(mix.total() / stretch_ilp(p, node.line));
            }
        }
        let wlp: Vec<f64> = graph
            .regions
            .iter()
            .map(|region| region.reached * p.active_warps)
            .collect();
        let ilp: Vec<f64> = instructions
            .iter()
            .zip(&chains)
            .map(|(n, chain)| {
                if *chain > 0.0 {
                    (n / chain).max(1.0)
                } else {
                    1.0
                }
            })
            .collect();
        // A loop's instructions weigh its trips.
        let executed = || {
            let regions = instructions.iter().zip(&graph.regions);
            regions.map(|(n, region)| n * region.trips)
        };
        // Equation 7: regions with more instructions contribute more.
        let wlp_avg = mean(executed(), &wlp).unwrap_or(p.active_warps);
        // Equation 8: here the warps that execute a region count too.
        let reached = graph.regions.iter().map(|region| region.reached);
        let weights = executed().zip(reached).map(|(n, reached)| n * reached);
        let ilp_avg = mean(weights, &ilp).unwrap_or(1.0);
        Regions {
            wlp,
            ilp,
            wlp_avg,
            ilp_avg,
        }
    }
}

/// The parallelism of the stretch that a line is in.
fn stretch_ilp(p: &Parameters, line: u32) -> f64 {
    let behind = p.stretches.partition_point(|(first, _)| *first <= line);
    let within = behind.checked_sub(1).and_then(|at| p.stretches.get(at));
    within.map_or(1.0, |(_, ilp)| ilp.max(1.0))
}

/// The weighted mean; `None` where nothing weighs anything.
fn mean(weights: impl Iterator<Item = f64>, values: &[f64]) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for (weight, value) in weights.zip(values) {
        sum += weight * value;
        total += weight;
    }
    (total > 0.0 && total.is_finite()).then(|| sum / total)
}

/// The parallelism of stretches of straight code, by line. One line may begin several: the longest is its own.
pub(super) fn stretches(work: &Work) -> Vec<(u32, f64)> {
    let mut regions = work.input.facts.dependence.regions.clone();
    regions.sort_by(|a, b| {
        let longer = b.operations.total_cmp(&a.operations);
        a.line.cmp(&b.line).then(longer)
    });
    regions.dedup_by_key(|region| region.line);
    regions
        .iter()
        .filter(|region| region.ilp().is_finite())
        .map(|region| (region.line, region.ilp()))
        .collect()
}
