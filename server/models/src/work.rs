//! What every model starts from: the kernel's facts as this launch on this GPU sees them, with whatever
//! the caller imagines away already gone.

use std::collections::BTreeMap;

use warplens_facts::facts::{AddressPart, Form, Op, Pattern, Space};
use warplens_machine::Profile;

use crate::wfg::graph::{Branching, Graph};
use crate::{Bottleneck, Breakdown, Estimate, ExecutedAccess, Factor, ModelInput, Question};

/// The part of a thread's registers that may wait for loads: the others hold sums and addresses. Estimated.
const LOADED_REGISTERS: f64 = 0.5;

/// One access as one warp executes it once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Request {
    /// Units of the memory system touched; 0 for on-chip memory.
    pub transactions: f64,
    /// The same if the data lay side by side.
    pub ideal_transactions: f64,
    /// Bytes those transactions move.
    pub moved_bytes: f64,
    /// Bytes they would move if the data lay side by side.
    pub ideal_bytes: f64,
    /// Bytes the active lanes ask for.
    pub asked_bytes: f64,
    /// Cycles of the bank array (shared), distinct words (constant), lanes on one address (atomics).
    pub passes: f64,
    /// Distinct 128-byte lines, which is what L1 serves in one cycle each.
    pub lines: f64,
    /// False where the addresses are not known and the worst was assumed.
    pub known: bool,
}

impl Request {
    /// True where the warp moves more than its data would fill.
    pub fn uncoalesced(&self) -> bool {
        self.transactions > self.ideal_transactions + 1e-9
    }
}

/// Departure delays of the MWP-CWP model, where the profile has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Departure {
    pub mem_ld: f64,
    pub uncoalesced: f64,
    pub coalesced: f64,
    pub issue_cycles: f64,
}

/// Blocks and warps on the SMs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Residency {
    /// Blocks of the launch.
    pub blocks: f64,
    /// Warps of a block.
    pub warps_per_block: f64,
    /// SMs that get a block.
    pub active_sms: f64,
    /// Blocks that the busiest SM executes.
    pub blocks_on_sm: f64,
    /// Blocks resident on an SM at a time; a fraction where fewer warps than a block's may run.
    pub resident_blocks: f64,
    /// Warps resident on an SM at a time.
    pub resident_warps: f64,
    /// Resident blocks by the GPU's own limits, whatever the caller imagines: what shares the caches.
    pub caching_blocks: f64,
}

impl Residency {
    fn new(question: &Question) -> Residency {
        let input = question.input;
        let profile = &*input.profile;
        let blocks = input.launch.blocks() as f64;
        let warps_per_block = input.launch.warps_per_block(profile.warp_size) as f64;
        if blocks <= 0.0 || warps_per_block <= 0.0 {
            return Residency::default();
        }
        let active_sms = blocks.min(f64::from(profile.sms));
        let blocks_on_sm = (blocks / f64::from(profile.sms)).ceil();
        let limit = f64::from(input.occupancy.active_blocks_per_sm);
        let caching_blocks = limit.clamp(1.0, blocks_on_sm);
        let limit = if question.without.contains(&Factor::Occupancy) {
            let most = f64::from(profile.max_warps_per_sm);
            (most / warps_per_block).floor().max(limit)
        } else {
            limit
        };
        let mut resident_blocks = limit.clamp(1.0, blocks_on_sm);
        let mut resident_warps = resident_blocks * warps_per_block;
        if let Some(forced) = question.warps_per_sm
            && !question.without.contains(&Factor::Occupancy)
            && f64::from(forced) < resident_warps
        {
            resident_warps = f64::from(forced.max(1));
            resident_blocks = resident_warps / warps_per_block;
        }
        Residency {
            blocks,
            warps_per_block,
            active_sms,
            blocks_on_sm,
            resident_blocks,
            resident_warps,
            caching_blocks,
        }
    }

    /// Warps that the busiest SM executes.
    pub fn warps_on_sm(&self) -> f64 {
        self.blocks_on_sm * self.warps_per_block
    }

    /// Warps of the launch.
    pub fn warps(&self) -> f64 {
        self.blocks * self.warps_per_block
    }
}

/// The input, resolved.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub question: Question<'a>,
    pub input: &'a ModelInput,
    pub graph: Graph,
    /// One for each access of the input.
    pub requests: Vec<Request>,
    pub residency: Residency,
    pub departure: Option<Departure>,
}

impl<'a> Work<'a> {
    pub fn new(question: &Question<'a>) -> Work<'a> {
        let input = question.input;
        Work {
            question: *question,
            input,
            graph: Graph::new(&input.flow.nodes, &input.accesses),
            requests: (0..input.accesses.len())
                .map(|access| request(question, access))
                .collect(),
            residency: Residency::new(question),
            departure: departure(&input.profile),
        }
    }

    pub fn profile(&self) -> &Profile {
        &self.input.profile
    }

    pub fn is_without(&self, factor: Factor) -> bool {
        self.question.without.contains(&factor)
    }

    /// True where the caller imagines an access ideal.
    pub fn is_ideal(&self, access: usize) -> bool {
        self.question.ideal_access == Some(access)
    }

    /// Passes of a request to shared memory if its lanes met in no bank.
    pub fn conflict_free_passes(&self, access: usize) -> f64 {
        let access = &self.input.accesses[access];
        finite(access.ideal_passes_per_request)
            .unwrap_or_else(|| conflict_free_passes(self.profile(), access.bytes_per_lane))
    }

    /// Passes of the instruction that the compiler makes of several accesses, where what it reads of each lane is known to lie side by
    /// side and its conflicts count.
    pub fn joined_passes(&self, access: usize) -> Option<f64> {
        let counted = self.requests[access].passes;
        let access = &self.input.accesses[access];
        let passes = access.joined_passes()?;
        // Asked without its conflicts it has fewer passes than were counted.
        let all = access.passes_per_request.is_none_or(|all| counted >= all);
        Some(if all {
            passes
        } else {
            passes.min(access.joined_words())
        })
    }

    /// Loads of an access that wait at the same time, as far as a thread has registers for what they bring.
    pub fn together(&self, access: usize) -> f64 {
        let registers = self.input.resources.registers_per_thread;
        let access = &self.input.accesses[access];
        let words = f64::from(access.bytes_per_lane.div_ceil(4).max(1));
        let room = if registers > 0 {
            f64::from(registers) * LOADED_REGISTERS / words
        } else {
            f64::INFINITY
        };
        finite(Some(access.together))
            .unwrap_or(1.0)
            .min(room)
            .max(1.0)
    }

    /// Accesses that one instruction does.
    pub fn merged(&self, access: usize) -> f64 {
        finite(Some(self.input.accesses[access].merged))
            .unwrap_or(1.0)
            .max(1.0)
    }

    /// How a split warp's two sides add up.
    pub fn branching(&self) -> Branching {
        if self.is_without(Factor::Divergence) {
            Branching::Average
        } else {
            Branching::Sum
        }
    }

    /// The estimate from its parts: `shares` holds the cycles of each node of the graph.
    pub fn finish(
        &self,
        cycles: f64,
        breakdown: Breakdown,
        detail: BTreeMap<String, f64>,
        shares: &[f64],
    ) -> Estimate {
        Estimate {
            cycles: Some(cycles),
            time_ms: Some(self.milliseconds(cycles)),
            launch_overhead_ms: self.profile().launch_overhead_us / 1e3,
            cycles_function: None,
            bottleneck: bottleneck(&breakdown, cycles),
            breakdown,
            interval: None,
            detail,
            why: None,
            open: None,
            lines: self.lines(shares),
        }
    }

    pub fn milliseconds(&self, cycles: f64) -> f64 {
        cycles / (self.profile().sm_clock_mhz * 1e3)
    }

    fn lines(&self, shares: &[f64]) -> Vec<(u32, f64)> {
        let mut lines = BTreeMap::new();
        for (node, share) in self.graph.nodes.iter().zip(shares) {
            if *share > 0.0 {
                *lines.entry(node.line).or_insert(0.0) += share;
            }
        }
        lines.into_iter().collect()
    }
}

/// The largest part; no work has none.
fn bottleneck(breakdown: &Breakdown, cycles: f64) -> Option<Bottleneck> {
    if cycles <= 0.0 {
        return None;
    }
    [
        (Bottleneck::Compute, breakdown.compute),
        (Bottleneck::Tensor, breakdown.tensor),
        (Bottleneck::MemoryBandwidth, breakdown.memory_bandwidth),
        (Bottleneck::MemoryLatency, breakdown.memory_latency),
        (Bottleneck::AsyncCopy, breakdown.async_copy),
        (Bottleneck::Shared, breakdown.shared),
        (Bottleneck::Divergence, breakdown.divergence),
        (Bottleneck::Synchronisation, breakdown.synchronisation),
    ]
    .into_iter()
    .reduce(|best, part| if part.1 > best.1 { part } else { best })
    .map(|(name, _)| name)
}

/// Adds `amount` to `shares` in proportion to `weights`; evenly over the nodes where all weigh nothing.
pub(crate) fn spread(shares: &mut [f64], amount: f64, weights: &[f64]) {
    if amount <= 0.0 || shares.is_empty() {
        return;
    }
    let total: f64 = weights.iter().sum();
    if total > 0.0 {
        for (share, weight) in shares.iter_mut().zip(weights) {
            *share += amount * weight / total;
        }
    } else {
        let even = amount / shares.len() as f64;
        for share in shares {
            *share += even;
        }
    }
}

fn departure(profile: &Profile) -> Option<Departure> {
    Some(Departure {
        mem_ld: profile.mem_ld?,
        uncoalesced: profile.departure_del_uncoal?,
        coalesced: profile.departure_del_coal?,
        issue_cycles: profile.issue_cycles?,
    })
}

/// One access under what the caller imagines.
fn request(question: &Question, index: usize) -> Request {
    let input = question.input;
    let access = &input.accesses[index];
    let profile = &*input.profile;
    let warp = f64::from(profile.warp_size);
    let lanes = finite(access.active_lanes_per_request)
        .unwrap_or(warp)
        .clamp(0.0, warp);
    let asked_bytes = lanes * f64::from(access.bytes_per_lane);
    let imagined = question.ideal_access == Some(index);
    let ideal = imagined || question.without.contains(&Factor::Uncoalesced);
    let no_conflicts = imagined || question.without.contains(&Factor::BankConflicts);
    let mut request = Request {
        asked_bytes,
        known: true,
        ..Request::default()
    };
    match access.space {
        Space::Shared => {
            let best = finite(access.ideal_passes_per_request)
                .unwrap_or_else(|| conflict_free_passes(profile, access.bytes_per_lane));
            let passes = finite(access.passes_per_request);
            request.known = passes.is_some();
            request.passes = if no_conflicts {
                best
            } else {
                passes.unwrap_or(best).max(best)
            };
            if let Form::Described { warps, .. } = access.form {
                // Each of the warps that do the product together has its part.
                request.passes /= f64::from(warps.max(1));
            }
        }
        Space::Constant => {
            let passes = finite(access.passes_per_request);
            request.known = passes.is_some();
            request.passes = if imagined {
                1.0
            } else {
                passes.unwrap_or(1.0).max(1.0)
            };
        }
        Space::Global | Space::Local | Space::Texture => {
            let unit = f64::from(access.transaction_bytes.max(1));
            let expected = access.expected.as_ref();
            let best = finite(access.ideal_transactions_per_request)
                .or(expected.map(|request| request.ideal_transactions))
                .unwrap_or_else(|| (asked_bytes / unit).ceil().max(1.0));
            let known = finite(access.transactions_per_request);
            let transactions = known.or(expected.map(|request| request.transactions));
            // A thread's own array is interleaved by lane, so its accesses coalesce unless facts say otherwise.
            let worst = if access.space == Space::Local {
                best
            } else {
                distinct(access, unit, lanes).max(best)
            };
            request.known = known.is_some() || access.space == Space::Local;
            request.ideal_transactions = best;
            request.ideal_bytes = best * unit;
            let now = transactions.unwrap_or(worst).max(best);
            request.transactions = if ideal { best } else { now };
            let worst_unit = if transactions.is_some() {
                unit
            } else {
                f64::from(profile.uncoalesced_transaction_bytes).min(unit)
            };
            let moved = finite(access.bytes_moved_per_request)
                .or(expected.map(|request| request.bytes_moved))
                .filter(|_| transactions.is_some())
                .unwrap_or(now * worst_unit);
            request.moved_bytes = if ideal { moved.min(best * unit) } else { moved };
            request.lines = lines(access, ideal, &request);
            let contended = access.op == Op::Atomic && !imagined;
            let passes = finite(access.passes_per_request).filter(|_| contended);
            request.passes = passes.unwrap_or(1.0).max(1.0);
        }
    }
    request
}

/// Units of memory that a request's lanes go to whose places are not known: one each, and fewer where they all lie in a small array,
/// or the index takes few values. Draws from n units meet: `n (1 - (1 - 1/n)^lanes)` are different ones on average.
fn distinct(access: &ExecutedAccess, unit: f64, lanes: f64) -> f64 {
    let Some((bytes, places)) = reach(access, lanes) else {
        return lanes;
    };
    let units = (bytes / unit).min(places).max(1.0);
    units * (1.0 - (1.0 - 1.0 / units).powf(lanes))
}

/// Bytes that the lanes of one request may spread over, and places that they may go to; `None` where nothing bounds them.
fn reach(access: &ExecutedAccess, lanes: f64) -> Option<(f64, f64)> {
    let element = f64::from(access.bytes_per_lane.max(1));
    let array = access.array_bytes.map(|bytes| bytes as f64);
    let values = access.parts.as_ref().and_then(|parts| {
        let (mut bytes, mut places) = (element, 1.0);
        for (step, part) in parts {
            let count = match part {
                AddressPart::Block(_) | AddressPart::Loop(_) => 1.0,
                AddressPart::Values { with, .. } if !with.thread.contains(&true) => 1.0,
                AddressPart::Values { count, .. } => (*count)? as f64,
                AddressPart::Thread(_) => lanes,
                AddressPart::Digit { modulus, .. } => modulus.map_or(lanes, |all| all as f64),
            };
            bytes += step.unsigned_abs() as f64 * (count - 1.0).max(0.0);
            places *= count.max(1.0);
        }
        Some((bytes, places))
    });
    match (values, array) {
        (Some((bytes, places)), Some(array)) => Some((bytes.min(array), places)),
        (Some(values), None) => Some(values),
        (None, Some(array)) => Some((array, array / element)),
        (None, None) => None,
    }
}

/// Lines of 128 bytes that L1 looks up for what one access has of an instruction. Where the lanes' addresses are not known:
/// lanes per line or more apart have one each, neighbours share them.
fn lines(access: &ExecutedAccess, ideal: bool, request: &Request) -> f64 {
    let packed = (request.moved_bytes / 128.0).max(1.0);
    if ideal {
        return packed;
    }
    let expected = access.expected.map(|request| request.lines);
    if let Some(lines) = access.by_width.or(expected) {
        // The wider the words, the fewer lanes go together.
        let width = f64::from(access.bytes_per_lane) * access.merged.max(1.0);
        let between = |low: usize, part: f64| lines[low] + part * (lines[low + 1] - lines[low]);
        return if width <= 8.0 {
            between(0, (width / 4.0 - 1.0).max(0.0))
        } else {
            between(1, (width / 8.0 - 1.0).min(1.0))
        };
    }
    let apart = match access.pattern {
        Pattern::Coalesced | Pattern::Broadcast => return packed,
        Pattern::Strided => {
            let stride = access.stride.as_ref();
            stride.is_some_and(|stride| stride.bytes.unsigned_abs() >= 128)
        }
        Pattern::Scattered | Pattern::DataDependent | Pattern::Unknown => true,
    };
    if apart && request.uncoalesced() {
        let lanes = finite(access.active_lanes_per_request).unwrap_or(request.transactions);
        let reached = distinct(access, 128.0, lanes);
        request.transactions.min(reached).max(packed)
    } else {
        packed
    }
}

/// Passes of a conflict-free request: one for words of 4 bytes, doubled where half-warps go apart.
pub(crate) fn conflict_free_passes(profile: &Profile, bytes_per_lane: u32) -> f64 {
    let words = f64::from(bytes_per_lane.max(1).div_ceil(4));
    let groups = f64::from(profile.warp_size) / f64::from(profile.bank_rule.banks);
    words * groups.max(1.0)
}

/// A figure that can be computed with.
pub(crate) fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value >= 0.0)
}
