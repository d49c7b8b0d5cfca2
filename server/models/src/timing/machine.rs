//! The GPU as the issue engine sees it: what each instruction occupies and when its result is there, in SM cycles.

use warplens_facts::facts::{Op, Space};
use warplens_machine::{Pipe, Profile};

use crate::Factor;
use crate::reuse::{Traffic, traffic};
use crate::wfg::graph::{Branching, Kind};
use crate::work::Work;

/// What one kind of arithmetic costs (Table 1 of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Arithmetic {
    /// From issue to result.
    pub latency: f64,
    /// Until the pipe takes an instruction of another warp.
    pub other_warp: f64,
    /// Until the same warp issues again.
    pub same_warp: f64,
    /// True where it goes through the SM's one dispatch port for arithmetic.
    pub port: bool,
}

/// What one access costs each time that a warp executes it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Transfer {
    /// From issue to result where nothing else is under way.
    pub latency: f64,
    /// Cycles of the load and store units.
    pub units: f64,
    /// Until the same warp issues again.
    pub same_warp: f64,
    /// Cycles of the shared-memory banks; 0 for other memory.
    pub banks: f64,
    /// Of `latency`, what a conflict adds.
    pub conflict: f64,
    /// Bytes in flight, of all SMs of the cluster; 0 for memory on the chip.
    pub bytes: f64,
    /// Cycles of the way to memory.
    pub service: f64,
    /// The same if its data lay side by side.
    pub ideal_service: f64,
    /// True where a later instruction may wait for it.
    pub loads: bool,
}

/// A GPU under one launch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Machine {
    /// Schedulers of an SM, each with warps and pipes of its own.
    pub schedulers: usize,
    /// Schedulers of which only this one is simulated, being alike.
    pub stands_for: usize,
    /// Cycles between two instructions of a scheduler.
    pub period: f64,
    /// Cycles that the arithmetic port is taken by one instruction.
    pub port: f64,
    /// By pipe.
    pub pipes: [Arithmetic; Pipe::ALL.len()],
    /// One for each access of the facts.
    pub transfers: Vec<Transfer>,
    /// Latency of an arithmetic instruction with an operand in shared memory.
    pub shared_operand: f64,
    /// Most bytes in flight between a cluster and memory.
    pub in_flight_bytes: f64,
    /// Ways to memory.
    pub clusters: f64,
    /// SMs with a block that share one.
    pub sharers: f64,
    /// What a cluster can move, in bytes per cycle.
    pub bytes_per_cycle: f64,
    /// Round trip to memory.
    pub memory_latency: f64,
    /// `C_mem`: transactions of a warp of doubles that a cluster may have in flight.
    pub c_mem_double: f64,
    /// From the last warp's arrival at a barrier until all go on; none where barriers are imagined away. What each
    /// warp adds is the issue of its own barrier instruction.
    pub barrier: Option<f64>,
}

impl Machine {
    pub fn new(work: &Work) -> Machine {
        let profile = work.profile();
        let schedulers = f64::from(profile.schedulers_per_sm.max(1));
        let warp = f64::from(profile.warp_size);
        let slot = 1.0 / profile.issue_per_scheduler;
        let pipes = Pipe::ALL.map(|pipe| {
            let timing = profile.timing(pipe);
            let other_warp = timing.issue * schedulers;
            // Multiplications that go to other units too do not hold the port.
            let elsewhere = pipe == Pipe::Fp32Multiply && profile.fp32_multiply_lanes.is_some();
            Arithmetic {
                latency: timing.latency,
                other_warp,
                same_warp: profile.same_warp_issue.unwrap_or(0.0).max(other_warp),
                port: other_warp <= slot && !elsewhere,
            }
        });

        let cluster = f64::from(profile.sms_per_cluster.unwrap_or(1).max(1));
        let clusters = (f64::from(profile.sms) / cluster).max(1.0);
        // Blocks go to clusters in turn, so a small launch has fewer SMs a cluster.
        let sharers = (work.residency.active_sms / clusters)
            .ceil()
            .clamp(1.0, cluster);
        let peak = profile.dram_bandwidth_gb_s * 1e9 / profile.cycles_per_second();
        let bytes_per_cycle = peak / clusters;
        let memory_latency = profile.dram_latency;
        let mut machine = Machine {
            schedulers: profile.schedulers_per_sm.max(1) as usize,
            stands_for: 1,
            period: profile.issue_period.unwrap_or(slot),
            port: slot,
            pipes,
            transfers: Vec::new(),
            shared_operand: profile
                .shared_operand_latency
                .unwrap_or(profile.shared_latency),
            in_flight_bytes: bytes_per_cycle * memory_latency,
            clusters,
            sharers,
            bytes_per_cycle,
            memory_latency,
            c_mem_double: (bytes_per_cycle * memory_latency / (warp * 8.0)).floor(),
            barrier: (!work.is_without(Factor::Synchronisation)).then_some(profile.barrier_latency),
        };
        machine.transfers = machine.transfers(work);
        machine
    }

    /// One scheduler of several that are alike. While it issues an access the others issue one too, so that the units
    /// that they share take that many times as long; the last of these accesses is the one that counts.
    pub fn of_one_scheduler(&self) -> Machine {
        let times = self.schedulers as f64;
        let transfers = self.transfers.iter().map(|transfer| Transfer {
            units: transfer.units * times,
            banks: transfer.banks * times,
            bytes: transfer.bytes * times,
            service: transfer.service * times,
            ..*transfer
        });
        Machine {
            schedulers: 1,
            stands_for: self.schedulers,
            transfers: transfers.collect(),
            ..self.clone()
        }
    }

    fn transfers(&self, work: &Work) -> Vec<Transfer> {
        let profile = work.profile();
        let input = work.input;
        let traffic = traffic(input, &work.requests, &executions(work), &work.residency);
        let units = f64::from(profile.warp_size) / profile.load_store_lanes;
        let pass = f64::from(profile.bank_rule.banks) * 4.0 / profile.shared_bandwidth_b_clk;
        let mut transfers = Vec::with_capacity(input.accesses.len());
        for (at, access) in input.accesses.iter().enumerate() {
            let request = &work.requests[at];
            let on_chip = matches!(access.space, Space::Shared | Space::Constant);
            let same_warp = if on_chip {
                profile.same_warp_issue
            } else {
                profile.same_warp_memory_issue
            };
            let mut transfer = Transfer {
                units,
                same_warp: same_warp.unwrap_or(0.0).max(units),
                loads: access.op != Op::Store,
                ..Transfer::default()
            };
            if on_chip {
                let ideal = f64::from(profile.warp_size) / f64::from(profile.bank_rule.banks);
                let words = f64::from(access.bytes_per_lane.max(1).div_ceil(4));
                let extra = (request.passes - ideal.max(1.0) * words).max(0.0);
                transfer.conflict = extra * conflict_latency(profile, pass);
                transfer.latency = profile.shared_latency + transfer.conflict;
                transfer.banks = request.passes * pass;
            } else {
                let share = &traffic[at];
                // Lanes on one address follow one another.
                let serial = (request.passes - 1.0).max(0.0) * units;
                transfer.latency = serial
                    + if work.is_without(Factor::Latency) {
                        0.0
                    } else {
                        latency(profile, share, request.moved_bytes.min(request.ideal_bytes))
                    };
                // One transaction follows another where they go out by themselves; L1 takes a line a cycle.
                transfer.units = if profile.l1_latency.is_some() {
                    units.max(request.lines)
                } else {
                    let more = request.transactions - request.ideal_transactions;
                    units * (1.0 + more.max(0.0))
                };
                transfer.same_warp = transfer.same_warp.max(transfer.units);
                let skew = if request.uncoalesced() {
                    skew(profile, access.stride.as_ref().map(|stride| stride.bytes))
                } else {
                    1.0
                };
                transfer.bytes = share.dram * self.sharers;
                let level_two = profile.l2_bandwidth_gb_s.map_or(0.0, |bandwidth| {
                    share.l2 * profile.dram_bandwidth_gb_s / bandwidth
                });
                let service = |bytes: f64| bytes * self.sharers / self.bytes_per_cycle;
                transfer.service = service((share.dram * skew).max(level_two));
                transfer.ideal_service =
                    service(share.dram.min(request.ideal_bytes)).min(transfer.service);
            }
            transfers.push(transfer);
        }
        transfers
    }
}

/// Requests of each access over the launch.
fn executions(work: &Work) -> Vec<f64> {
    let mut executions = vec![0.0; work.requests.len()];
    let visits = work.graph.visits(Branching::Sum);
    for (node, times) in work.graph.nodes.iter().zip(visits) {
        if let Kind::Memory(access) | Kind::Scratchpad(access) = node.kind {
            executions[access] += times * work.residency.warps();
        }
    }
    executions
}

/// What each pass beyond those of a conflict-free request adds to the latency. It is measured where the paper
/// measured it; elsewhere a pass takes as long as the banks do.
fn conflict_latency(profile: &Profile, pass: f64) -> f64 {
    let measured = profile
        .shared_operand_conflict_latency
        .zip(profile.shared_operand_latency);
    measured.map_or(pass, |(worst, best)| {
        let warp = f64::from(profile.warp_size);
        let more = warp - (warp / f64::from(profile.bank_rule.banks)).max(1.0);
        ((worst - best) / more.max(1.0)).max(0.0)
    })
}

/// The mean round trip of a request, by where its bytes come from. It is there when its last transaction is, so what one
/// moves beyond what it needs makes none quicker: as many bytes as it needs from a level are the whole request's wait.
fn latency(profile: &Profile, traffic: &Traffic, needed: f64) -> f64 {
    if needed <= 0.0 {
        return profile.dram_latency;
    }
    let dram = (traffic.dram / needed).min(1.0);
    let beyond_l1 = (traffic.l2 / needed).min(1.0).max(dram);
    let l2 = profile.l2_latency.unwrap_or(profile.dram_latency);
    let l1 = profile.l1_latency.unwrap_or(l2);
    dram * profile.dram_latency + (beyond_l1 - dram) * l2 + (1.0 - beyond_l1) * l1
}

/// How many times longer a request takes because its lanes fall into few channels: lanes that are a multiple of
/// a channel's bytes apart step over some.
fn skew(profile: &Profile, stride: Option<i64>) -> f64 {
    let (Some(channels), Some(bytes), Some(stride)) =
        (profile.memory_channels, profile.channel_bytes, stride)
    else {
        return 1.0;
    };
    let (channels, bytes, stride) = (
        u128::from(channels.max(1)),
        u128::from(bytes.max(1)),
        u128::from(stride.unsigned_abs()),
    );
    let lanes = u128::from(profile.warp_size);
    let mut hit: Vec<u128> = (0..lanes)
        .map(|lane| lane * stride / bytes % channels)
        .collect();
    hit.sort_unstable();
    hit.dedup();
    let could = (lanes * stride).div_ceil(bytes).clamp(1, channels);
    (could as f64 / hit.len() as f64).max(1.0)
}
