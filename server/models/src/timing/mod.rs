//! Lai and Seznec: a timing model of the instructions that the resident warps of one SM issue.
//!
//! Junjie Lai and André Seznec, "TEG: GPU Performance Estimation Using a Timing Model", INRIA RR-7804, 2011. The
//! parameters (Table 1, section 3.2) are in [`machine`], the trace in [`program`], the issue engine in [`issue`]. The
//! paper runs one trace per warp; ours comes from the facts' flow. docs/models/timing.md says what differs and why.

mod issue;
mod machine;
mod program;
mod steady;
mod units;
mod warp;

use std::collections::BTreeMap;

use warplens_machine::{Pipe, Profile};

use self::issue::{Limits, Policy, Resident, Run, part};
use self::machine::Machine;
use self::program::Program;
use crate::entry::{Answers, ModelEntry};
use crate::work::Work;
use crate::{Bottleneck, Breakdown, Estimate, Question};

/// Its line of the registry.
pub(crate) const MODEL: ModelEntry = ModelEntry {
    name: "timing",
    summary: "Instruction issue simulated, after Lai and Seznec, 2011",
    answers: Answers::Simulation,
    estimate: estimate_work,
    cycles: |work| estimate_work(work).cycles,
};

/// Steps (instructions that are issued, and steps of the program that are walked over) after which a run is cut off and
/// extrapolated from what it did.
const MOST_STEPS: u64 = 700_000;

/// Instructions up to which a run is repeated under the other policies.
const SHORT_RUN: f64 = 10_000.0;

/// Steps after which a repeated one is given up: under some policies a loop settles late or never.
const MOST_REPEATED: u64 = 100_000;

/// Instructions from which on one scheduler is simulated for all, where they are alike.
const LONG_RUN: f64 = 50_000.0;

/// Applies the model to a kernel.
pub fn estimate(question: &Question) -> Estimate {
    estimate_work(&Work::new(question))
}

/// The warps of the busiest SM run in rounds of as many as are resident, the last round with those that remain.
pub(crate) fn estimate_work(work: &Work) -> Estimate {
    let machine = Machine::new(work);
    let program = Program::new(work);
    let residency = &work.residency;
    let resident = residency.resident_warps.round().max(1.0);
    let warps = residency.warps_on_sm();
    let rounds = (warps / resident).floor();
    let rest = warps - rounds * resident;

    let rounds = [(resident, rounds), (rest.round(), 1.0)];
    let all = |policy: Policy, most_steps: u64| -> Option<(Total, Option<Run>)> {
        let mut total = Total::new(work.graph.nodes.len());
        let mut first = None;
        for (warps, times) in rounds {
            if warps < 1.0 || times <= 0.0 {
                continue;
            }
            let run = wave(work, &machine, &program, warps, (policy, most_steps))?;
            total.add(&run, times);
            first.get_or_insert(run);
        }
        Some((total, first))
    };
    let Some((total, first)) = all(Policy::InTurn, MOST_STEPS) else {
        return cancelled();
    };
    if !total.cycles.is_finite() {
        return Estimate {
            why: Some("the kernel's counts are too large to add up".to_owned()),
            ..Estimate::default()
        };
    }
    let mut interval = None;
    if first.as_ref().is_some_and(|run| run.simulated < SHORT_RUN) {
        let mut ends = Some([total.cycles; 2]);
        for policy in [Policy::Oldest, Policy::Greedy] {
            let Some((other, _)) = all(policy, MOST_REPEATED) else {
                return cancelled();
            };
            ends = ends
                .filter(|_| other.finished)
                .map(|[low, high]| [low.min(other.cycles), high.max(other.cycles)]);
        }
        interval = ends;
    }
    let mut detail = details(work.profile(), &machine);
    detail.insert("waves".to_owned(), warps / resident);
    detail.insert("active_warps".to_owned(), resident);
    if let Some(run) = &first {
        detail.insert("wave_cycles".to_owned(), run.cycles);
        detail.insert("wave_instructions".to_owned(), run.instructions);
        detail.insert("simulated_instructions".to_owned(), run.simulated);
        detail.insert(
            "simulated_to_the_end".to_owned(),
            f64::from(u8::from(run.finished)),
        );
    }
    Estimate {
        interval,
        ..work.finish(total.cycles, total.breakdown(), detail, &total.shares)
    }
}

fn cancelled() -> Estimate {
    Estimate {
        why: Some("the answer was no longer asked for".to_owned()),
        ..Estimate::default()
    }
}

/// One round. A run that was cut off is stretched to the instructions that it would have issued.
fn wave(
    work: &Work,
    machine: &Machine,
    program: &Program,
    warps: f64,
    (policy, most_steps): (Policy, u64),
) -> Option<Run> {
    let residency = &work.residency;
    let resident = Resident {
        warps: warps.min(f64::from(work.profile().max_warps_per_sm)) as usize,
        warps_per_block: residency.warps_per_block.max(1.0) as usize,
    };
    let expected = program.instructions(machine.barrier.is_some()) * resident.warps as f64;
    let nodes = work.graph.nodes.len();
    let limits = Limits {
        steps: most_steps,
        cancelled: &|_| work.question.is_cancelled(),
    };
    let mut run = match resident.of_one_scheduler(machine.schedulers, program) {
        Some(resident) if expected > LONG_RUN => {
            let machine = machine.of_one_scheduler();
            issue::run(&machine, program, nodes, resident, policy, &limits)?
        }
        _ => issue::run(machine, program, nodes, resident, policy, &limits)?,
    };
    if !run.finished {
        run.stretch((expected / run.instructions.max(1.0)).max(1.0));
    }
    Some(run)
}

impl Run {
    fn stretch(&mut self, times: f64) {
        self.cycles *= times;
        self.instructions *= times;
        for share in self.parts.iter_mut().chain(&mut self.shares) {
            *share *= times;
        }
    }
}

/// All rounds.
struct Total {
    cycles: f64,
    parts: Vec<f64>,
    shares: Vec<f64>,
    finished: bool,
}

impl Total {
    fn new(nodes: usize) -> Total {
        Total {
            cycles: 0.0,
            parts: Vec::new(),
            shares: vec![0.0; nodes],
            finished: true,
        }
    }

    fn add(&mut self, run: &Run, times: f64) {
        self.cycles += run.cycles * times;
        self.finished &= run.finished;
        self.parts.resize(run.parts.len(), 0.0);
        for (sum, share) in self.parts.iter_mut().zip(run.parts) {
            *sum += share * times;
        }
        for (sum, share) in self.shares.iter_mut().zip(&run.shares) {
            *sum += share * times;
        }
    }

    fn breakdown(&self) -> Breakdown {
        let of = |name: Bottleneck| self.parts.get(part(name)).copied().unwrap_or(0.0);
        Breakdown {
            compute: of(Bottleneck::Compute),
            tensor: of(Bottleneck::Tensor),
            async_copy: of(Bottleneck::AsyncCopy),
            memory_bandwidth: of(Bottleneck::MemoryBandwidth),
            memory_latency: of(Bottleneck::MemoryLatency),
            shared: of(Bottleneck::Shared),
            divergence: of(Bottleneck::Divergence),
            synchronisation: of(Bottleneck::Synchronisation),
        }
    }
}

fn details(profile: &Profile, machine: &Machine) -> BTreeMap<String, f64> {
    let mut detail: BTreeMap<String, f64> = [
        ("issue_every_cycles", machine.period),
        ("shared_latency", profile.shared_latency),
        ("global_latency", machine.memory_latency),
        ("c_mem_double", machine.c_mem_double),
        (
            "sms_per_tpc",
            f64::from(profile.sms_per_cluster.unwrap_or(1)),
        ),
        ("tpcs", machine.clusters),
        ("sharers", machine.sharers),
        ("bytes_per_cycle", machine.bytes_per_cycle),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    for (name, value) in [
        ("channels", profile.memory_channels),
        ("channel_width_bytes", profile.channel_bytes),
    ] {
        detail.extend(value.map(|value| (name.to_owned(), f64::from(value))));
    }
    for (name, pipe) in [
        ("int_add", Pipe::Int),
        ("float_add", Pipe::Fp32),
        ("float_mul", Pipe::Fp32Multiply),
        ("double_fma", Pipe::Fp64),
    ] {
        let arithmetic = machine.pipes[pipe as usize];
        detail.insert(format!("{name}_latency"), arithmetic.latency);
        detail.insert(format!("{name}_issue_other_warp"), arithmetic.other_warp);
        detail.insert(format!("{name}_issue_same_warp"), arithmetic.same_warp);
    }
    detail
}
