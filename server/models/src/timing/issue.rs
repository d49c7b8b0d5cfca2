//! The issue engine of one SM: resident warps issue the program's instructions in order, one a scheduler at a time.

use super::machine::Machine;
use super::program::{Program, Step};
use super::steady::{PARTS, Progress, State, Sum};
use super::units::{Common, Memory, NOTHING, Scheduler, Waiting};
use super::warp::{Fetched, Instruction, Kind, Ready, Warp};
use crate::Bottleneck;

/// Steps between two looks at whether anybody still waits for the answer.
const STEPS_BETWEEN_LOOKS: u64 = 512;

/// Warps that start together on an SM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Resident {
    pub warps: usize,
    pub warps_per_block: usize,
}

impl Resident {
    /// The warps of one scheduler of several that are alike: as many of each block, if there is anything to wait for
    /// the others of the block for.
    pub fn of_one_scheduler(self, schedulers: usize, program: &Program) -> Option<Resident> {
        let barriers = program
            .steps
            .iter()
            .any(|step| matches!(step, Step::Barrier { .. }));
        let even = |warps: usize| warps.is_multiple_of(schedulers);
        let alike = even(self.warps) && (even(self.warps_per_block) || !barriers);
        (schedulers > 1 && alike).then(|| Resident {
            warps: self.warps / schedulers,
            warps_per_block: (self.warps_per_block / schedulers).max(1),
        })
    }
}

/// Which of the warps that could issue at the same moment does: the scoreboard's policy, which is not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The one after the one that issued last.
    InTurn,
    /// The one that began first.
    Oldest,
    /// The one that issued last, then the oldest.
    Greedy,
}

/// What ends a run early.
pub(crate) struct Limits<'c> {
    /// Steps after which it is cut off.
    pub steps: u64,
    /// Says that the answer is not needed any more; asked every few steps, with how many were made.
    pub cancelled: &'c dyn Fn(u64) -> bool,
}

/// What a run comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    /// From the first issue to the last result.
    pub cycles: f64,
    /// Where they went: the breakdown's parts, `launch` excepted, in its order.
    pub parts: [f64; PARTS],
    /// By node.
    pub shares: Vec<f64>,
    /// Instructions issued, those of skipped iterations among them.
    pub instructions: f64,
    /// Instructions that were simulated one by one.
    pub simulated: f64,
    /// False where the run was cut off.
    pub finished: bool,
}

/// An SM that runs its warps.
struct Engine<'m> {
    policy: Policy,
    machine: &'m Machine,
    program: &'m Program,
    progress: Progress,
    /// Each warp's next instruction; none while it waits at a barrier or is done.
    next: Vec<Option<Instruction>>,
    /// The same as far as choosing one takes it.
    waiting: Vec<Waiting>,
    schedulers: Vec<Scheduler>,
    common: Common,
    memory: Memory,
    /// The last issue.
    now: f64,
    /// The last result.
    end: Ready,
    /// The warp that issued last.
    last: usize,
    steps: u64,
    limits: &'m Limits<'m>,
    /// [`STEPS_BETWEEN_LOOKS`] that were over at the last look, and what it came to.
    looks: u64,
    stopped: bool,
    simulated: f64,
}

/// Runs the resident warps to their end or to the limit. `None` where the answer is not needed any more.
pub(crate) fn run(
    machine: &Machine,
    program: &Program,
    nodes: usize,
    resident: Resident,
    policy: Policy,
    limits: &Limits,
) -> Option<Run> {
    let warps: Vec<Warp> = (0..resident.warps)
        .map(|warp| {
            let phase = (warp as f64 + 0.5) / resident.warps as f64;
            let block = warp / resident.warps_per_block.max(1);
            Warp::new(program, block, phase)
        })
        .collect();
    let mut engine = Engine {
        policy,
        machine,
        program,
        next: vec![None; warps.len()],
        waiting: vec![NOTHING; warps.len()],
        progress: Progress::new(warps, nodes, program.loops),
        schedulers: (0..machine.schedulers).map(Scheduler::new).collect(),
        common: Common::default(),
        memory: Memory::default(),
        now: 0.0,
        end: Ready::at(0.0, 0, Bottleneck::Compute),
        last: 0,
        steps: 0,
        limits,
        looks: 0,
        stopped: false,
        simulated: 0.0,
    };
    for warp in 0..engine.progress.warps.len() {
        engine.fetch(warp);
    }
    let finished = loop {
        if !engine.goes_on() {
            break false;
        }
        let Some((warp, at, cause)) = engine.choose() else {
            break true;
        };
        engine.issue(warp, at, cause);
    };
    if engine.stopped {
        return None;
    }
    // What is still under way when the last instruction has issued.
    let end = engine.end;
    engine.advance(end.at, end, false);
    Some(Run {
        cycles: engine.progress.ledger.time.total(),
        parts: engine.progress.ledger.parts.map(Sum::total),
        shares: engine
            .progress
            .ledger
            .shares
            .iter()
            .map(|sum| sum.total())
            .collect(),
        instructions: engine.progress.ledger.instructions.total() * machine.stands_for as f64,
        simulated: engine.simulated,
        finished,
    })
}

impl Engine<'_> {
    /// False once the run is over before its end.
    fn goes_on(&mut self) -> bool {
        let looks = self.steps / STEPS_BETWEEN_LOOKS;
        if looks != self.looks {
            self.looks = looks;
            self.stopped |= (self.limits.cancelled)(self.steps);
        }
        !self.stopped && self.steps <= self.limits.steps
    }

    /// The warp that can issue first, when, and what it waits for until then. Of several the policy says which.
    fn choose(&self) -> Option<(usize, f64, Ready)> {
        let mut best: Option<usize> = None;
        let mut soonest = f64::INFINITY;
        let count = self.schedulers.len();
        let free = self.schedulers.iter().map(|scheduler| scheduler.free);
        // Nothing issues before this, so a warp that can then needs no comparison with those that are asked later.
        let at_once = free.fold(f64::INFINITY, f64::min).max(self.now);
        // Schedulers come in turn to the units that they share.
        let after = self.last % count + 1;
        'found: for own in (after..count).chain(0..after.min(count)) {
            let last = self.schedulers[own].last;
            let warps = own..self.progress.warps.len();
            if warps.is_empty() {
                continue;
            }
            let (again, first) = match self.policy {
                Policy::InTurn => (0..0, last + count),
                Policy::Oldest => (0..0, own),
                // The greedy one is in two places; no other one loses by that.
                Policy::Greedy => (last..last + 1, own),
            };
            let behind = (first.min(warps.end)..warps.end).step_by(count);
            let before = (own..first.min(warps.end)).step_by(count);
            for warp in again.chain(behind).chain(before) {
                let can = self.waiting[warp].can_issue(&self.schedulers, &self.common);
                if can < soonest {
                    best = Some(warp);
                    soonest = can;
                    if can <= at_once {
                        break 'found;
                    }
                }
            }
        }
        let warp = best?;
        let cause = self.cause(warp, self.next[warp].as_ref()?);
        Some((warp, soonest, cause))
    }

    /// What an instruction waits for last until then: its operands, or one of the units.
    fn cause(&self, warp: usize, instruction: &Instruction) -> Ready {
        let node = instruction.node;
        let scheduler = &self.schedulers[warp % self.schedulers.len()];
        let busy = |at: f64, part: Bottleneck| Ready::at(at, node, part);
        let mut ready = instruction
            .ready
            .later(busy(scheduler.free, Bottleneck::Compute));
        match instruction.kind {
            Kind::Arithmetic(pipe) => {
                let mut free = scheduler.pipes_free[pipe as usize];
                if self.machine.pipes[pipe as usize].port {
                    free = free.max(scheduler.port_free);
                }
                ready = ready.later(busy(free, Bottleneck::Compute));
                if instruction.operand.is_some() {
                    ready = ready.later(busy(self.common.banks_free, Bottleneck::Shared));
                }
            }
            Kind::Access { access, .. } => {
                let transfer = &self.machine.transfers[access];
                if transfer.banks > 0.0 {
                    ready = ready
                        .later(busy(self.common.units_free, Bottleneck::Shared))
                        .later(busy(self.common.banks_free, Bottleneck::Shared));
                } else {
                    ready = ready.later(busy(self.common.units_free, Bottleneck::Compute));
                }
                if transfer.service > 0.0 {
                    ready = ready.later(busy(self.memory.room, Bottleneck::MemoryBandwidth));
                }
            }
            Kind::Barrier => {
                ready = ready.later(busy(scheduler.port_free, Bottleneck::Compute));
            }
        }
        ready
    }

    fn issue(&mut self, warp: usize, at: f64, cause: Ready) {
        let Some(instruction) = self.next[warp].take() else {
            return;
        };
        self.waiting[warp] = NOTHING;
        self.advance(at, cause, self.progress.warps[warp].divergent > 0);
        self.steps += 1;
        self.simulated += 1.0;
        self.progress.ledger.instructions.add(1.0);
        self.last = warp;
        let machine = self.machine;
        let node = instruction.node;
        let own = warp % self.schedulers.len();
        let scheduler = &mut self.schedulers[own];
        scheduler.last = warp;
        scheduler.free = at + machine.period;
        let mut same_warp = machine.period;
        match instruction.kind {
            Kind::Arithmetic(pipe) => {
                let arithmetic = machine.pipes[pipe as usize];
                scheduler.pipes_free[pipe as usize] = at + arithmetic.other_warp;
                if arithmetic.port {
                    scheduler.port_free = at + machine.port;
                }
                same_warp = arithmetic.same_warp;
                let mut done = Ready::at(at + arithmetic.latency, node, Bottleneck::Compute);
                if let Some(access) = instruction.operand {
                    let transfer = &machine.transfers[access];
                    self.common.banks_free = at + transfer.banks;
                    let latency =
                        machine.shared_operand.max(arithmetic.latency) + transfer.conflict;
                    done = Ready::at(at + latency, node, Bottleneck::Shared);
                }
                self.end = self.end.later(done);
                self.progress.warps[warp].executed(pipe, done);
            }
            Kind::Access { access, value } => {
                let transfer = machine.transfers[access];
                same_warp = transfer.same_warp;
                self.common.units_free = at + transfer.units;
                let mut done = Ready::at(at + transfer.latency, node, Bottleneck::Shared);
                if transfer.banks > 0.0 {
                    self.common.banks_free = at + transfer.banks;
                } else {
                    done = self.memory.send(machine, access, at, node);
                }
                self.end = self.end.later(done);
                if transfer.loads {
                    self.progress.warps[warp].loads[value] = done;
                }
            }
            Kind::Barrier => {
                scheduler.port_free = at + machine.port;
                self.progress.state[warp] = State::Waiting(at);
            }
        }
        self.schedulers[own].update(machine);
        self.common.update(self.memory.room);
        let free = at + same_warp.max(machine.period);
        self.progress.warps[warp].free = Ready::at(free, node, Bottleneck::Compute);
        if instruction.kind == Kind::Barrier {
            self.release(self.progress.warps[warp].block, node);
        } else {
            self.fetch(warp);
        }
    }

    /// Lets time go on to an issue; what it waited for takes the cycles since the one before.
    fn advance(&mut self, at: f64, cause: Ready, divergent: bool) {
        let cycles = at - self.now;
        if cycles <= 0.0 {
            return;
        }
        self.now = at;
        self.progress.ledger.time.add(cycles);
        if let Some(share) = self.progress.ledger.shares.get_mut(cause.node) {
            share.add(cycles);
        }
        let parts = &mut self.progress.ledger.parts;
        if divergent {
            parts[part(Bottleneck::Divergence)].add(cycles);
        } else {
            let queue = cycles * cause.queue;
            parts[part(Bottleneck::MemoryBandwidth)].add(queue);
            parts[part(cause.part)].add(cycles - queue);
        }
    }

    fn fetch(&mut self, warp: usize) {
        loop {
            let barriers = self.machine.barrier.is_some();
            match self.progress.warps[warp].fetch(self.program, barriers, &mut self.steps) {
                Fetched::Next(instruction) => {
                    let scheduler = warp % self.schedulers.len();
                    self.waiting[warp] = Waiting::new(&instruction, scheduler, self.machine);
                    self.next[warp] = Some(instruction);
                    return;
                }
                Fetched::Iteration => {
                    // Iterations may come and go without an instruction.
                    if !self.goes_on() {
                        return;
                    }
                    if self.progress.leads(warp) {
                        self.progress.watch(warp, self.machine.stands_for);
                    }
                }
                Fetched::Done => {
                    self.progress.state[warp] = State::Done;
                    self.release(self.progress.warps[warp].block, 0);
                    return;
                }
            }
        }
    }

    /// Lets a block's warps go on once all that have not ended are at a barrier.
    fn release(&mut self, block: usize, node: usize) {
        let mut last = None;
        for (warp, state) in self.progress.warps.iter().zip(&self.progress.state) {
            if warp.block == block {
                match state {
                    State::Running => return,
                    State::Waiting(since) => {
                        last = Some(last.map_or(*since, |last: f64| last.max(*since)));
                    }
                    State::Done => {}
                }
            }
        }
        let (Some(last), Some(latency)) = (last, self.machine.barrier) else {
            return;
        };
        let open = Ready::at(last + latency, node, Bottleneck::Synchronisation);
        let waiting: Vec<usize> = (0..self.progress.warps.len())
            .filter(|&warp| {
                self.progress.warps[warp].block == block
                    && matches!(self.progress.state[warp], State::Waiting(_))
            })
            .collect();
        for &warp in &waiting {
            self.progress.state[warp] = State::Running;
            self.progress.warps[warp].free = self.progress.warps[warp].free.later(open);
        }
        for warp in waiting {
            self.fetch(warp);
        }
    }
}

/// Where a part is in [`Run::parts`].
pub(crate) fn part(part: Bottleneck) -> usize {
    match part {
        Bottleneck::Compute => 0,
        Bottleneck::MemoryBandwidth => 1,
        Bottleneck::MemoryLatency => 2,
        Bottleneck::Shared => 3,
        Bottleneck::Divergence => 4,
        Bottleneck::Synchronisation => 5,
        // Nothing that is issued here waits for these.
        Bottleneck::Tensor => 6,
        Bottleneck::AsyncCopy => 7,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Most steps between two looks of a run of 64 warps that execute `steps`, and all that it made.
    fn longest_between_looks(steps: Vec<Step>) -> (u64, u64) {
        let machine = Machine {
            schedulers: 4,
            stands_for: 1,
            period: 1.0,
            port: 1.0,
            pipes: Default::default(),
            transfers: Vec::new(),
            shared_operand: 0.0,
            in_flight_bytes: 1.0,
            clusters: 1.0,
            sharers: 1.0,
            bytes_per_cycle: 1.0,
            memory_latency: 1.0,
            c_mem_double: 1.0,
            barrier: Some(1.0),
        };
        let program = Program {
            steps,
            loops: 2,
            slots: 1,
            ..Program::default()
        };
        let (last, longest) = (Cell::new(0), Cell::new(0));
        let limits = Limits {
            steps: 50_000,
            cancelled: &|steps| {
                longest.set(longest.get().max(steps - last.get()));
                last.set(steps);
                false
            },
        };
        let resident = Resident {
            warps: 64,
            warps_per_block: 16,
        };
        run(&machine, &program, 1, resident, Policy::InTurn, &limits).expect("not cancelled");
        (longest.get(), last.get())
    }

    fn compute(count: f64) -> Step {
        Step::Compute {
            node: 0,
            counts: vec![(0, count)],
            chain: 1.0,
            uses: Vec::new(),
            slot: 0,
            linked: false,
        }
    }

    fn nested(inside: Vec<Step>) -> Vec<Step> {
        let behind = inside.len() + 4;
        let mut steps = vec![
            Step::Loop {
                id: 0,
                trips: 1e18,
                behind,
            },
            Step::Loop {
                id: 1,
                trips: 1e18,
                behind: behind - 1,
            },
        ];
        steps.extend(inside);
        steps.push(Step::End { body: 2 });
        steps.push(Step::End { body: 1 });
        steps
    }

    #[test]
    fn looks_are_few_steps_apart_whatever_is_simulated() {
        let straight = vec![compute(3.0); 2000];
        let barriers = nested(vec![compute(0.1), Step::Barrier { node: 0 }]);
        // Iterations that issue next to nothing.
        let idle = nested(vec![compute(1e-12)]);
        for steps in [straight, barriers, idle] {
            let (longest, all) = longest_between_looks(steps);
            assert!(all > 10_000, "{all}");
            // An issue may let a block's warps go on, each over some steps.
            assert!(longest <= STEPS_BETWEEN_LOOKS + 64 * 4, "{longest}");
        }
    }
}
