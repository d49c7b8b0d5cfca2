//! What follows from the graph: how far each load is from its first use, how many operations of a stretch could
//! go at once, what a loop's iterations wait for.

use super::{Graph, Handed, Looped};
use crate::context::Executions;
use crate::facts::{Chain, Dependence, FirstUse, Link, LoopCarried, Region};

/// Steps spent on chains; a kernel that needs more has no further loops looked at.
const MOST_STEPS: usize = 4_000_000;
/// A value that meets others waits for this many loads, at most.
const MOST_LOADS: usize = 32;

pub(super) fn facts(
    graph: &Graph,
    accesses: usize,
    executions: &[Executions],
    latency: &dyn Fn(Link) -> f64,
) -> (Dependence, Vec<Option<FirstUse>>) {
    let (carried, complete) = chains(graph, executions, latency);
    let dependence = Dependence {
        regions: regions(graph),
        carried,
        complete: complete && !graph.partial,
    };
    (dependence, first_uses(graph, accesses))
}

/// Operations of each stretch of straight code, and the longest row of them that wait for one another there.
fn regions(graph: &Graph) -> Vec<Region> {
    let mut found: Vec<Region> = graph
        .regions
        .iter()
        .map(|region| Region {
            line: region.line,
            operations: 0.0,
            critical_path: 0.0,
        })
        .collect();
    let mut ends = vec![0.0_f64; graph.operations.len()];
    for (index, operation) in graph.operations.iter().enumerate() {
        let begins = graph
            .after(index as u32)
            .iter()
            .filter(|before| graph.operations[before.0 as usize].region == operation.region)
            .map(|before| ends[before.0 as usize])
            .fold(0.0, f64::max);
        ends[index] = begins + operation.depth;
        let region = &mut found[operation.region as usize];
        region.operations += operation.issued;
        region.critical_path = region.critical_path.max(ends[index]);
    }
    found.retain(|region| region.operations > 0.0);
    found
}

/// For each access, if it is a load, where its value is first needed.
fn first_uses(graph: &Graph, accesses: usize) -> Vec<Option<FirstUse>> {
    // Operations issued before each.
    let mut issued = Vec::with_capacity(graph.operations.len() + 1);
    let mut sum = 0.0;
    for operation in &graph.operations {
        issued.push(sum);
        sum += operation.issued;
    }
    issued.push(sum);

    // What an operation that issues nothing waits for: loads, and the entries of loops.
    let mut stands_for: Vec<Vec<u32>> = vec![Vec::new(); graph.operations.len()];
    let mut first: Vec<Option<u32>> = vec![None; graph.operations.len()];
    let mut is_entry = vec![false; graph.operations.len()];
    for handed in &graph.handed {
        is_entry[handed.from.0 as usize] |= graph.operations[handed.from.0 as usize].link.is_none();
    }
    for (index, operation) in graph.operations.iter().enumerate() {
        let mut sources = Vec::new();
        for before in graph.after(index as u32) {
            if graph.operations[before.0 as usize].access.is_some() {
                sources.push(before.0);
            }
            sources.extend_from_slice(&stands_for[before.0 as usize]);
        }
        sources.sort_unstable();
        sources.dedup();
        if operation.link.is_some() {
            for source in sources {
                first[source as usize].get_or_insert(index as u32);
            }
        } else {
            sources.truncate(MOST_LOADS);
            if is_entry[index] {
                sources.push(index as u32);
            }
            stands_for[index] = sources;
        }
    }

    let mut uses = vec![None; accesses];
    let distance = |load: usize, to: u32| FirstUse {
        operations: (issued[to as usize] - issued[load] - graph.operations[load].issued).max(0.0),
        straight: graph.operations[load].region == graph.operations[to as usize].region,
        next_iteration: false,
    };
    for (index, operation) in graph.operations.iter().enumerate() {
        if let (Some(access), Some(to)) = (operation.access, first[index])
            && operation.link != Some(Link::Store)
            && let Some(place) = uses.get_mut(access as usize)
        {
            *place = Some(distance(index, to));
        }
    }
    // Loaded in one iteration, used in the next: to the end of the body, and on from its beginning.
    for Handed {
        in_loop, from, to, ..
    } in &graph.handed
    {
        let around = graph.loops[*in_loop as usize];
        let (true, Some(user)) = (is_entry[from.0 as usize], first[from.0 as usize]) else {
            continue;
        };
        let own = graph.operations[to.0 as usize].access.map(|_| to.0);
        for &load in own.iter().chain(&stands_for[to.0 as usize]) {
            let Some(access) = graph.operations[load as usize].access else {
                continue;
            };
            let behind = issued[around.end as usize]
                - issued[load as usize]
                - graph.operations[load as usize].issued;
            let ahead = issued[user as usize] - issued[around.first as usize];
            // Used in its own iteration first.
            if first[load as usize].is_some_and(|op| op < around.end) || load < around.first {
                continue;
            }
            if let Some(place) = uses.get_mut(access as usize) {
                *place = Some(FirstUse {
                    operations: (behind + ahead).max(0.0),
                    straight: false,
                    next_iteration: true,
                });
            }
        }
    }
    uses
}

/// The longest way to an operation: its latency, and what it is made of.
#[derive(Debug, Clone, Copy)]
struct Way {
    cycles: f64,
    chain: Chain,
}

/// What each loop hands on, inner loops before those around them; false where not all were looked at.
fn chains(
    graph: &Graph,
    executions: &[Executions],
    latency: &dyn Fn(Link) -> f64,
) -> (Vec<LoopCarried>, bool) {
    let mut found: Vec<(u32, f64, LoopCarried)> = Vec::new();
    let mut steps = 0;
    // The way of each value handed on, for the loops around.
    let mut ways: Vec<Option<Way>> = vec![None; graph.handed.len()];
    let mut complete = true;
    for (index, handed) in graph.handed.iter().enumerate() {
        steps += (handed.to.0 + 1).saturating_sub(handed.from.0) as usize;
        if steps > MOST_STEPS {
            complete = false;
            break;
        }
        let Some(way) = longest(graph, handed, &ways, executions, latency) else {
            continue;
        };
        ways[index] = Some(way);
        if way.cycles > 0.0 {
            let carried = LoopCarried {
                site: graph.loops[handed.in_loop as usize].site,
                through: handed.name.clone(),
                chain: way.chain,
            };
            found.push((handed.in_loop, way.cycles, carried));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let carried = found.into_iter().map(|(.., carried)| carried).collect();
    (carried, complete)
}

/// The longest way from the beginning of an iteration to its end.
fn longest(
    graph: &Graph,
    handed: &Handed,
    ways: &[Option<Way>],
    executions: &[Executions],
    latency: &dyn Fn(Link) -> f64,
) -> Option<Way> {
    let (from, to) = (handed.from.0 as usize, handed.to.0 as usize);
    if to < from {
        return None;
    }
    let own = |index: usize| {
        let operation = &graph.operations[index];
        let mut way = Way {
            cycles: 0.0,
            chain: Chain::default(),
        };
        if let Some(link) = operation.link {
            way.cycles = latency(link) * operation.depth;
            way.chain.add(link, operation.depth);
        }
        way
    };
    let mut best: Vec<Option<Way>> = vec![None; to - from + 1];
    best[0] = Some(own(from));
    for index in from + 1..=to {
        let operation = &graph.operations[index];
        let mut longest: Option<Way> = None;
        for before in graph.after(index as u32) {
            let before = before.0 as usize;
            let Some(mut way) = before.checked_sub(from).and_then(|at| best[at]) else {
                continue;
            };
            // Through an inner loop: its own chain, as often as it runs.
            if let Some(repeated) = operation.repeats
                && before <= graph.handed[repeated as usize].from.0 as usize
                && let Some(inner) = ways[repeated as usize]
            {
                let around = &graph.loops[graph.handed[repeated as usize].in_loop as usize];
                let times = trips(around, executions);
                way.cycles += inner.cycles * times;
                way.chain.add_all(&inner.chain, times);
            }
            if longest.is_none_or(|longest| way.cycles > longest.cycles) {
                longest = Some(way);
            }
        }
        best[index - from] = longest.map(|mut way| {
            let own = own(index);
            way.cycles += own.cycles;
            way.chain.add_all(&own.chain, 1.0);
            way
        });
    }
    best[to - from]
}

/// Iterations of a warp that enters a loop.
fn trips(around: &Looped, executions: &[Executions]) -> f64 {
    let (outer, inner) = (
        executions[around.outer].warps,
        executions[around.inner].warps,
    );
    if outer > 0.0 { inner / outer } else { 0.0 }
}
