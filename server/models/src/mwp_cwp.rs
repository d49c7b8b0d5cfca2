//! MWP-CWP: memory warp parallelism and computation warp parallelism.
//!
//! Sunpyo Hong and Hyesoon Kim, "An Analytical Model for a GPU Architecture with Memory-level and
//! Thread-level Parallelism Awareness", ISCA 2009. Equation numbers are the paper's. The formulas stand in
//! [`Parameters::quantities`]; what is ours is how a kernel's facts become parameters, in [`estimate`].

use std::collections::BTreeMap;

use crate::entry::{Answers, ModelEntry};
use crate::wfg::graph::Kind;
use crate::work::{Work, spread};
use crate::{Breakdown, Estimate, Factor, Question};

/// Its line of the registry.
pub(crate) const MODEL: ModelEntry = ModelEntry {
    name: "mwp-cwp",
    summary: "Memory and computation warp parallelism, after Hong and Kim, ISCA 2009",
    answers: Answers::Equations,
    estimate: estimate_work,
    cycles: |work| estimate_work(work).cycles,
};

/// The model's inputs (Table 1). Instructions are those of one thread, which are those of its warp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// DRAM round trip in cycles.
    pub mem_ld: f64,
    /// Cycles between two transactions of an uncoalesced warp.
    pub departure_del_uncoal: f64,
    /// Cycles between two coalesced warps.
    pub departure_del_coal: f64,
    /// Cycles to issue one instruction for a warp.
    pub issue_cycles: f64,
    /// SM clock in GHz.
    pub freq_ghz: f64,
    /// DRAM bandwidth in GB/s.
    pub bandwidth_gb_s: f64,
    /// SMs that get a block.
    pub active_sms: f64,
    /// Warps of one block.
    pub warps_per_block: f64,
    /// Blocks of the launch.
    pub blocks: f64,
    /// Blocks resident on one SM.
    pub active_blocks_per_sm: f64,
    /// Warps resident on one SM, N.
    pub active_warps_per_sm: f64,
    /// Computation instructions; shared-memory accesses and barriers are among them.
    pub comp_insts: f64,
    /// Memory instructions that need more than one transaction per warp.
    pub uncoal_mem_insts: f64,
    /// Memory instructions that need one.
    pub coal_mem_insts: f64,
    /// Barriers.
    pub synch_insts: f64,
    /// Transactions of an uncoalesced warp.
    pub uncoal_per_mw: f64,
    /// Bytes that one memory instruction loads for a warp.
    pub load_bytes_per_warp: f64,
}

/// Which of the three equations gave the execution cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Equation 22: all warps wait for memory together.
    NotEnoughWarps,
    /// Equation 23: memory periods dominate.
    MemoryBound,
    /// Equation 24: computation periods dominate.
    ComputeBound,
}

impl Case {
    /// The number of the paper's equation.
    pub fn equation(self) -> u32 {
        match self {
            Case::NotEnoughWarps => 22,
            Case::MemoryBound => 23,
            Case::ComputeBound => 24,
        }
    }
}

/// The model's outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantities {
    /// Equation 10: latency of an uncoalesced warp.
    pub mem_l_uncoal: f64,
    /// Equation 11: latency of a coalesced warp.
    pub mem_l_coal: f64,
    /// Equation 12: the weighted average of both.
    pub mem_l: f64,
    /// Equation 15: least distance between two memory warps.
    pub departure_delay: f64,
    /// Equation 16.
    pub mwp_without_bw_full: f64,
    /// Equation 17.
    pub mwp_without_bw: f64,
    /// Equation 7.
    pub bw_per_warp_gb_s: f64,
    /// Equation 6.
    pub mwp_peak_bw: f64,
    /// Equation 5: warps of one SM that memory serves together.
    pub mwp: f64,
    /// Equation 18.
    pub mem_cycles: f64,
    /// Equation 19.
    pub comp_cycles: f64,
    /// Equation 8.
    pub cwp_full: f64,
    /// Equation 9: warps that compute while one waits for memory, and that one.
    pub cwp: f64,
    /// Equation 21: how often an SM runs its resident blocks; a fraction stays one.
    pub rep: f64,
    /// Equations 22 to 24.
    pub exec_cycles: f64,
    /// The part of `exec_cycles` that is memory's.
    pub memory_part: f64,
    /// Equation 26.
    pub synch_cost: f64,
    /// Equation 27.
    pub total_cycles: f64,
    /// Equation 25, of the execution cycles.
    pub cpi: f64,
    /// Which equation applied.
    pub case: Case,
}

impl Parameters {
    /// The model itself.
    ///
    /// Without memory instructions MWP and CWP have no meaning; then every warp computes in turn
    /// (equation 24 with no memory period). Equations 23 and 24 as printed overlap where computation is
    /// longer than memory; the text (section 3.2.2, case 5) gives that case to equation 24 when MWP is
    /// greater than CWP, and so do we.
    pub fn quantities(&self) -> Quantities {
        let n = self.active_warps_per_sm;
        let mem_insts = self.uncoal_mem_insts + self.coal_mem_insts;
        let weight_uncoal = ratio(self.uncoal_mem_insts, mem_insts);
        let weight_coal = ratio(self.coal_mem_insts, mem_insts);
        let mem_l_uncoal =
            self.mem_ld + (self.uncoal_per_mw - 1.0).max(0.0) * self.departure_del_uncoal;
        let mem_l_coal = self.mem_ld;
        let mem_l = mem_l_uncoal * weight_uncoal + mem_l_coal * weight_coal;
        let departure_delay = self.departure_del_uncoal * self.uncoal_per_mw * weight_uncoal
            + self.departure_del_coal * weight_coal;

        let mwp_without_bw_full = if departure_delay > 0.0 {
            mem_l / departure_delay
        } else {
            n
        };
        let mwp_without_bw = mwp_without_bw_full.min(n);
        let bw_per_warp_gb_s = ratio(self.freq_ghz * self.load_bytes_per_warp, mem_l);
        let demand = bw_per_warp_gb_s * self.active_sms;
        let mwp_peak_bw = if demand > 0.0 {
            self.bandwidth_gb_s / demand
        } else {
            n
        };
        let mwp = mwp_without_bw.min(mwp_peak_bw).min(n);

        let mem_cycles = mem_l_uncoal * self.uncoal_mem_insts + mem_l_coal * self.coal_mem_insts;
        let total_insts = self.comp_insts + mem_insts;
        let comp_cycles = self.issue_cycles * total_insts;
        let cwp_full = if comp_cycles > 0.0 {
            (mem_cycles + comp_cycles) / comp_cycles
        } else {
            n
        };
        let cwp = cwp_full.min(n);
        let resident = self.active_blocks_per_sm * self.active_sms;
        let rep = ratio(self.blocks, resident);

        let comp_p = ratio(comp_cycles, mem_insts);
        let (case, memory, computation) = if mem_insts <= 0.0 {
            (Case::ComputeBound, 0.0, comp_cycles * n)
        } else if mwp >= n && cwp >= n {
            let computation = comp_cycles + comp_p * (mwp - 1.0).max(0.0);
            (Case::NotEnoughWarps, mem_cycles, computation)
        } else if mwp > cwp {
            (Case::ComputeBound, mem_l, comp_cycles * n)
        } else {
            (
                Case::MemoryBound,
                mem_cycles * ratio(n, mwp),
                comp_p * (mwp - 1.0).max(0.0),
            )
        };
        let exec_cycles = (memory + computation) * rep;
        let synch_cost = departure_delay
            * (mwp - 1.0).max(0.0)
            * self.synch_insts
            * self.active_blocks_per_sm
            * rep;
        let warps_on_sm = self.warps_per_block * ratio(self.blocks, self.active_sms);
        Quantities {
            mem_l_uncoal,
            mem_l_coal,
            mem_l,
            departure_delay,
            mwp_without_bw_full,
            mwp_without_bw,
            bw_per_warp_gb_s,
            mwp_peak_bw,
            mwp,
            mem_cycles,
            comp_cycles,
            cwp_full,
            cwp,
            rep,
            exec_cycles,
            memory_part: memory * rep,
            synch_cost,
            total_cycles: exec_cycles + synch_cost,
            cpi: ratio(exec_cycles, total_insts * warps_on_sm),
            case,
        }
    }
}

/// Applies the model to a kernel.
///
/// Instructions are counted along the flow of an average warp: loops by their trips, each side of a branch
/// by the fraction of warps that execute it (a warp that splits executes both). Off-chip accesses are memory
/// instructions, uncoalesced where a warp needs more transactions than its data would fill; the rest, shared
/// and constant accesses and barriers among them, are computation. An access of unknown addresses is taken
/// as uncoalesced, one transaction per lane; `detail["unknown_accesses"]` counts those.
pub fn estimate(question: &Question) -> Estimate {
    let work = Work::new(question);
    estimate_work(&work)
}

pub(crate) fn estimate_work(work: &Work) -> Estimate {
    let profile = work.profile();
    let Some(memory) = &work.departure else {
        return Estimate {
            why: Some("not for this architecture: its profile has no departure delays".to_owned()),
            ..Estimate::default()
        };
    };
    let visits = work.graph.visits(work.branching());
    let mut comp = 0.0;
    let mut barriers = 0.0;
    let mut coalesced = 0.0;
    let mut uncoalesced = 0.0;
    let mut transactions = 0.0;
    let mut bytes = 0.0;
    let mut unknown = 0.0;
    for (node, times) in work.graph.nodes.iter().zip(&visits) {
        match &node.kind {
            Kind::Compute { mix, .. } => comp += mix.total() * times,
            Kind::Barrier => {
                comp += times;
                barriers += times;
            }
            Kind::Scratchpad(_) => comp += times,
            Kind::Memory(access) => {
                let request = &work.requests[*access];
                bytes += request.asked_bytes * times;
                unknown += f64::from(u8::from(!request.known));
                if request.uncoalesced() {
                    uncoalesced += times;
                    transactions += request.transactions * times;
                } else {
                    coalesced += times;
                }
            }
        }
    }
    let residency = &work.residency;
    let mem_insts = coalesced + uncoalesced;
    let parameters = Parameters {
        mem_ld: if work.is_without(Factor::Latency) {
            0.0
        } else {
            memory.mem_ld
        },
        departure_del_uncoal: memory.uncoalesced,
        departure_del_coal: memory.coalesced,
        issue_cycles: memory.issue_cycles,
        freq_ghz: profile.sm_clock_mhz / 1000.0,
        bandwidth_gb_s: profile.dram_bandwidth_gb_s,
        active_sms: residency.active_sms,
        warps_per_block: residency.warps_per_block,
        blocks: residency.blocks,
        active_blocks_per_sm: residency.resident_blocks,
        active_warps_per_sm: residency.resident_warps,
        comp_insts: comp,
        uncoal_mem_insts: uncoalesced,
        coal_mem_insts: coalesced,
        synch_insts: if work.is_without(Factor::Synchronisation) {
            0.0
        } else {
            barriers
        },
        uncoal_per_mw: if uncoalesced > 0.0 {
            transactions / uncoalesced
        } else {
            1.0
        },
        load_bytes_per_warp: ratio(bytes, mem_insts),
    };
    let quantities = parameters.quantities();
    let cycles = quantities.total_cycles;
    if !cycles.is_finite() {
        return Estimate {
            why: Some("the kernel's counts are too large to add up".to_owned()),
            ..Estimate::default()
        };
    }

    let latency_bound = quantities.case != Case::MemoryBound;
    let breakdown = Breakdown {
        compute: quantities.exec_cycles - quantities.memory_part,
        memory_bandwidth: if latency_bound {
            0.0
        } else {
            quantities.memory_part
        },
        memory_latency: if latency_bound {
            quantities.memory_part
        } else {
            0.0
        },
        synchronisation: quantities.synch_cost,
        ..Breakdown::default()
    };
    let lines = lines(work, &visits, &quantities);
    let mut detail = details(&parameters, &quantities);
    detail.insert("unknown_accesses".to_owned(), unknown);
    work.finish(cycles, breakdown, detail, &lines)
}

/// Shares of the parts over the nodes: memory periods by latency, computation by instructions.
fn lines(work: &Work, visits: &[f64], quantities: &Quantities) -> Vec<f64> {
    let mut memory = vec![0.0; visits.len()];
    let mut computation = vec![0.0; visits.len()];
    let mut barriers = vec![0.0; visits.len()];
    for (at, (node, times)) in work.graph.nodes.iter().zip(visits).enumerate() {
        match &node.kind {
            Kind::Compute { mix, .. } => computation[at] = mix.total() * times,
            Kind::Scratchpad(_) => computation[at] = *times,
            Kind::Barrier => {
                computation[at] = *times;
                barriers[at] = *times;
            }
            Kind::Memory(access) => {
                computation[at] = *times;
                let latency = if work.requests[*access].uncoalesced() {
                    quantities.mem_l_uncoal
                } else {
                    quantities.mem_l_coal
                };
                memory[at] = latency * times;
            }
        }
    }
    let mut shares = vec![0.0; visits.len()];
    spread(&mut shares, quantities.memory_part, &memory);
    spread(
        &mut shares,
        quantities.exec_cycles - quantities.memory_part,
        &computation,
    );
    spread(&mut shares, quantities.synch_cost, &barriers);
    shares
}

fn details(parameters: &Parameters, quantities: &Quantities) -> BTreeMap<String, f64> {
    [
        ("mem_ld", parameters.mem_ld),
        ("departure_del_uncoal", parameters.departure_del_uncoal),
        ("departure_del_coal", parameters.departure_del_coal),
        ("issue_cycles", parameters.issue_cycles),
        ("freq_ghz", parameters.freq_ghz),
        ("bandwidth_gb_s", parameters.bandwidth_gb_s),
        ("active_sms", parameters.active_sms),
        ("blocks", parameters.blocks),
        ("active_blocks_per_sm", parameters.active_blocks_per_sm),
        ("active_warps_per_sm", parameters.active_warps_per_sm),
        ("comp_insts", parameters.comp_insts),
        ("uncoal_mem_insts", parameters.uncoal_mem_insts),
        ("coal_mem_insts", parameters.coal_mem_insts),
        ("synch_insts", parameters.synch_insts),
        ("uncoal_per_mw", parameters.uncoal_per_mw),
        ("load_bytes_per_warp", parameters.load_bytes_per_warp),
        ("mem_l", quantities.mem_l),
        ("departure_delay", quantities.departure_delay),
        ("mwp_without_bw_full", quantities.mwp_without_bw_full),
        ("mwp_without_bw", quantities.mwp_without_bw),
        ("bw_per_warp_gb_s", quantities.bw_per_warp_gb_s),
        ("mwp_peak_bw", quantities.mwp_peak_bw),
        ("mwp", quantities.mwp),
        ("mem_cycles", quantities.mem_cycles),
        ("comp_cycles", quantities.comp_cycles),
        ("cwp_full", quantities.cwp_full),
        ("cwp", quantities.cwp),
        ("rep", quantities.rep),
        ("exec_cycles", quantities.exec_cycles),
        ("synch_cost", quantities.synch_cost),
        ("total_cycles", quantities.total_cycles),
        ("cpi", quantities.cpi),
        ("case", f64::from(quantities.case.equation())),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// `part / whole`, 0 where there is no whole.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
