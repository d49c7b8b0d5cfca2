//! Which requests hit which cache, by the reuse distances of the lines that a round of work groups touches.
//!
//! Section III-B.3 of the paper: arrays get places in a virtual address space, each memory operation of the traces
//! becomes the lines that its warp touches, and a cache holds what was used last. The paper has one warp after the
//! other's trace; here warps take turns, one memory operation each. An address that is not known touches lines that
//! nothing else touches: the pessimistic case, as in the paper.

use warplens_facts::facts::{LinearAddress, Op, Space};
use warplens_machine::Profile;

use super::operations::Memory;
use super::program::{Entry, Program};
use super::reuse::Stack;
use crate::Object;
use crate::wfg::graph::Kind;
use crate::work::Work;

/// Lines touched to find the hits of one cache, at most.
const TOUCHES: usize = 25_000;
/// Between two looks at whether anybody still waits.
const LOOK: usize = 128;

/// How an access fares.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Hits {
    /// Fraction of its lines that L1 has.
    pub l1: f64,
    /// Fraction that L2 has, of all.
    pub l2: f64,
    /// Fraction of its requests of which L1 has all lines.
    pub l1_requests: f64,
    /// Fraction of its requests of which some line comes from DRAM.
    pub dram_requests: f64,
}

/// The warps of a round, and the trace of each.
pub(crate) struct Traces<'t> {
    /// Different traces.
    pub distinct: &'t [Vec<Entry>],
    /// The trace of each warp of a round, group by group.
    pub of_warp: &'t [usize],
    pub warps_per_group: usize,
    pub scales: &'t [f64],
}

/// What the caches do for each access; `None` where it was cancelled.
pub(crate) fn hits(
    work: &Work,
    program: &Program,
    traces: &Traces,
    memory: &Memory,
) -> Option<Vec<Hits>> {
    let accesses = work.input.accesses.len();
    let mut all = vec![Hits::default(); accesses];
    if memory.l2_bytes <= 0.0 {
        for hits in &mut all {
            hits.dram_requests = 1.0;
        }
        return Some(all);
    }
    let requests: Vec<Vec<&Entry>> = traces
        .distinct
        .iter()
        .map(|trace| trace.iter().filter(|e| cached(work, e.node)).collect())
        .collect();
    let units = Units::new(work, program, traces.scales);
    let groups_in_round = traces.of_warp.len().div_ceil(traces.warps_per_group);
    let sms = work.residency.active_sms.max(1.0) as u64;
    let blocks = work.input.launch.blocks();

    // L1: the groups of the first SM, which gets every so manieth.
    let mut l1 = vec![Tally::default(); accesses];
    if memory.l1_bytes > 0.0 {
        let groups: Vec<u64> = (0..groups_in_round as u64)
            .map(|group| group.saturating_mul(sms).min(blocks - 1))
            .collect();
        let level = Level {
            capacity: memory.l1_bytes,
            stores: false,
        };
        l1 = units.touch(&level, &requests, traces, &groups)?;
    }
    // L2: as many groups of a whole round as the bound allows, with their share of the cache.
    let wave = (groups_in_round as u64).saturating_mul(sms).min(blocks);
    let sampled = (TOUCHES as f64 / units.per_group(&requests, traces)).floor() as u64;
    let sampled = sampled.clamp(1, wave.max(1));
    let groups: Vec<u64> = (0..sampled).collect();
    let level = Level {
        capacity: memory.l2_bytes * sampled as f64 / wave.max(1) as f64,
        stores: true,
    };
    let l2 = units.touch(&level, &requests, traces, &groups)?;
    for ((hits, near), far) in all.iter_mut().zip(&l1).zip(&l2) {
        hits.l1 = near.lines();
        hits.l2 = far.lines().max(hits.l1);
        hits.dram_requests = 1.0 - far.requests();
        hits.l1_requests = near.requests().min(1.0 - hits.dram_requests);
    }
    for (hits, access) in all.iter_mut().zip(&work.input.accesses) {
        // A thread's own array stays in the nearest cache.
        if access.space == Space::Local {
            let near = if memory.l1_bytes > 0.0 { 1.0 } else { 0.0 };
            *hits = Hits {
                l1: near,
                l2: 1.0,
                l1_requests: near,
                dram_requests: 0.0,
            };
        }
    }
    Some(all)
}

/// True for a memory operation that goes through L2 and whose lines are worth following.
fn cached(work: &Work, node: usize) -> bool {
    match work.graph.nodes[node].kind {
        Kind::Memory(access) => work.input.accesses[access].space != Space::Local,
        _ => false,
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    lines: f64,
    hit_lines: f64,
    requests: f64,
    hit_requests: f64,
}

impl Tally {
    fn lines(&self) -> f64 {
        if self.lines > 0.0 {
            self.hit_lines / self.lines
        } else {
            0.0
        }
    }

    fn requests(&self) -> f64 {
        if self.requests > 0.0 {
            self.hit_requests / self.requests
        } else {
            0.0
        }
    }
}

struct Level {
    /// In bytes.
    capacity: f64,
    /// Whether stores stay in it.
    stores: bool,
}

/// Bytes from the first lane's to the last one's, for lanes that follow each other closely.
type Run = (i64, i64);

/// What each node touches.
struct Units<'w> {
    work: &'w Work<'w>,
    /// Of each node the array's number, its unit in bytes and the weight of a line.
    nodes: Vec<Option<NodeUnits<'w>>>,
    groups: [u64; 3],
}

struct NodeUnits<'w> {
    access: usize,
    array: u64,
    unit: i64,
    lines_stand_for: f64,
    address: Option<&'w LinearAddress>,
    /// Lines of a request whose address is not known.
    transactions: f64,
    /// Runs of lanes by the warp of the group.
    runs: Vec<Vec<Run>>,
}

impl<'w> Units<'w> {
    fn new(work: &'w Work, program: &'w Program, scales: &[f64]) -> Units<'w> {
        let input = work.input;
        let mut arrays: Vec<&Object> = Vec::new();
        let nodes = work.graph.nodes.iter().enumerate().map(|(node, of)| {
            let Kind::Memory(access) = of.kind else {
                return None;
            };
            let known = &input.accesses[access];
            let at = arrays.iter().position(|of| **of == known.object);
            let array = at.unwrap_or_else(|| {
                arrays.push(&known.object);
                arrays.len() - 1
            });
            let unit = i64::from(known.transaction_bytes.max(1));
            let request = &work.requests[access];
            let address = program.address(node);
            Some(NodeUnits {
                access,
                array: array as u64,
                unit,
                lines_stand_for: program.lines_stand_for(node, scales),
                address,
                transactions: request.transactions.max(1.0),
                runs: address.map_or_else(Vec::new, |address| {
                    runs(work, address, i64::from(known.bytes_per_lane), unit)
                }),
            })
        });
        Units {
            work,
            nodes: nodes.collect(),
            groups: input.launch.grid,
        }
    }

    /// Lines that a group of average warps touches.
    fn per_group(&self, requests: &[Vec<&Entry>], traces: &Traces) -> f64 {
        let of_warp = |warp: &usize| -> f64 {
            requests[*warp]
                .iter()
                .filter_map(|entry| self.nodes[entry.node].as_ref())
                .map(|node| {
                    if node.address.is_some() {
                        node.transactions
                    } else {
                        1.0
                    }
                })
                .sum()
        };
        let each: Vec<f64> = (0..requests.len()).map(|trace| of_warp(&trace)).collect();
        let all: f64 = traces.of_warp.iter().map(|&trace| each[trace]).sum();
        let groups = traces.of_warp.len() as f64 / traces.warps_per_group as f64;
        (all / groups.max(1.0)).max(1.0)
    }

    /// Lets the warps of these groups touch memory in turns.
    fn touch(
        &self,
        level: &Level,
        requests: &[Vec<&Entry>],
        traces: &Traces,
        groups: &[u64],
    ) -> Option<Vec<Tally>> {
        let input = self.work.input;
        let mut tallies = vec![Tally::default(); input.accesses.len()];
        let mut stack = Stack::default();
        let longest = requests.iter().map(Vec::len).max().unwrap_or(0);
        let (mut touched, mut looked) = (0, 0);
        for turn in 0..longest {
            for (at, &group) in groups.iter().enumerate() {
                let first = at * traces.warps_per_group % traces.of_warp.len().max(1);
                for warp in 0..traces.warps_per_group {
                    let Some(&trace) = traces.of_warp.get(first + warp) else {
                        continue;
                    };
                    let Some(entry) = requests[trace].get(turn) else {
                        continue;
                    };
                    looked += 1;
                    if looked % LOOK == 0 && self.work.question.is_cancelled() {
                        return None;
                    }
                    if touched >= TOUCHES {
                        return Some(tallies);
                    }
                    let Some(node) = &self.nodes[entry.node] else {
                        continue;
                    };
                    let op = input.accesses[node.access].op;
                    if op != Op::Load && !level.stores {
                        continue;
                    }
                    touched += self.request(
                        level,
                        node,
                        entry,
                        (group, warp),
                        &mut stack,
                        &mut tallies[node.access],
                    );
                }
            }
        }
        Some(tallies)
    }

    /// One request; how many lines it touched.
    fn request(
        &self,
        level: &Level,
        node: &NodeUnits,
        entry: &Entry,
        (group, warp): (u64, usize),
        stack: &mut Stack,
        tally: &mut Tally,
    ) -> usize {
        let Some((address, runs)) = node.address.zip(node.runs.get(warp)) else {
            stack.pass(node.transactions * node.lines_stand_for);
            tally.lines += node.transactions * entry.stands_for;
            tally.requests += entry.stands_for;
            return 1;
        };
        let [x, y, _] = self.groups.map(|extent| extent.max(1));
        let place = [group % x, group / x % y, group / x / y];
        let base = (0..3)
            .map(|axis| address.block[axis].wrapping_mul(place[axis] as i64))
            .fold(
                address.constant.wrapping_add(entry.offset),
                i64::wrapping_add,
            );
        // Weights are fractions of iterations: a sum of them may be a little off.
        let most = level.capacity / node.unit as f64 * (1.0 + 1e-9);
        let mut lines = 0;
        let mut hit = 0;
        let mut last = None;
        for &(from, to) in runs {
            let begin = base.wrapping_add(from).div_euclid(node.unit);
            let end = base.wrapping_add(to).div_euclid(node.unit);
            for line in begin..=end.clamp(begin, begin.saturating_add(64)) {
                if last == Some(line) {
                    continue;
                }
                last = Some(line);
                // Arrays lie so far apart that none reaches into the next.
                let key = node.array << 48 ^ (line as u64 & 0xffff_ffff_ffff);
                let distance = stack.touch(key, node.lines_stand_for);
                lines += 1;
                hit += usize::from(distance.is_some_and(|distance| distance <= most));
            }
        }
        tally.lines += lines as f64 * entry.stands_for;
        tally.hit_lines += hit as f64 * entry.stands_for;
        tally.requests += entry.stands_for;
        if hit == lines {
            tally.hit_requests += entry.stands_for;
        }
        lines.max(1)
    }
}

/// The lanes of each warp of a group as runs of bytes without a gap of a whole unit.
fn runs(work: &Work, address: &LinearAddress, bytes: i64, unit: i64) -> Vec<Vec<Run>> {
    let launch = &work.input.launch;
    let lanes = u64::from(work.profile().warp_size);
    let threads = launch.threads_per_block();
    let warps = threads.div_ceil(lanes).min(1 << 12);
    let [x, y, _] = launch.block.map(|extent| extent.max(1));
    (0..warps)
        .map(|warp| {
            let mut offsets: Vec<i64> = (warp * lanes..((warp + 1) * lanes).min(threads))
                .map(|thread| {
                    let place = [thread % x, thread / x % y, thread / x / y];
                    (0..3)
                        .map(|axis| address.thread[axis].wrapping_mul(place[axis] as i64))
                        .fold(0, i64::wrapping_add)
                })
                .collect();
            offsets.sort_unstable();
            offsets.dedup();
            let mut runs: Vec<Run> = Vec::new();
            for offset in offsets {
                let end = offset.wrapping_add(bytes.max(1) - 1);
                match runs.last_mut() {
                    Some((_, to)) if offset.saturating_sub(*to) <= unit => *to = end,
                    _ => runs.push((offset, end)),
                }
            }
            runs
        })
        .collect()
}

/// Bytes of shared memory that the work groups of an SM have: L1 may share its place with it.
pub(crate) fn shared_in_use(work: &Work, profile: &Profile) -> f64 {
    let input = work.input;
    let of_block = input.resources.static_shared_bytes as f64
        + input.launch.dynamic_shared_bytes as f64
        + f64::from(profile.shared_reserved_per_block);
    of_block * work.residency.caching_blocks
}
