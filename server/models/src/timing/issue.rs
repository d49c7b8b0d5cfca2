//! The issue engine of one SM: resident warps issue the program's instructions in order, one a scheduler at a time.

use std::collections::VecDeque;

use warplens_hardware::Pipe;

use super::machine::Machine;
use super::program::Program;
use super::warp::{Fetched, Instruction, Kind, Ready, Warp};
use crate::Bottleneck;

/// Instructions and steps that one run looks at; a longer one is extrapolated from what it did.
const MOST_STEPS: u64 = 200_000;

/// Steps between two looks at whether anybody still waits for the answer.
const STEPS_BETWEEN_LOOKS: u64 = 512;

/// Most iterations that a window has at first: their mean cost is compared with that of as many before.
const WINDOW: u64 = 8;

/// Instructions of all warps that are enough for a window: of long iterations it has fewer.
const ENOUGH_INSTRUCTIONS: f64 = 2048.0;

/// Comparisons after which windows are made twice as long: what goes up and down evens out in longer ones.
const PATIENCE: u32 = 4;

/// Two windows that differ by no more are the loop's steady state.
const STEADY: f64 = 0.005;

/// Warps that start together on an SM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Resident {
    pub warps: usize,
    pub warps_per_block: usize,
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

const PARTS: usize = 6;

/// What is known of a loop's iterations, by one warp's.
#[derive(Debug, Clone)]
struct Watch {
    /// Iterations of a window.
    window: u64,
    /// How many have ended where the next window does.
    due: u64,
    /// Comparisons that failed with windows of this length.
    failed: u32,
    /// Cycles of an iteration in the steady state that was found last: an inner loop is entered again and again.
    known: Option<f64>,
    /// A window before the last mark, where it was watched then.
    before: Option<Ledger>,
    last: Ledger,
}

/// Everything that goes on evenly in a steady state.
#[derive(Debug, Clone, PartialEq)]
struct Ledger {
    time: f64,
    parts: [f64; PARTS],
    shares: Vec<f64>,
    instructions: f64,
}

struct Engine<'m> {
    policy: Policy,
    machine: &'m Machine,
    program: &'m Program,
    warps: Vec<Warp>,
    /// Each warp's next instruction; none while it waits at a barrier or is done.
    next: Vec<Option<Instruction>>,
    /// When its operands and its warp allow that, infinite where there is none: what most warps are passed over by.
    ready: Vec<f64>,
    state: Vec<State>,
    schedulers: Vec<Scheduler>,
    units_free: f64,
    banks_free: f64,
    memory: Memory,
    ledger: Ledger,
    /// The last issue.
    now: f64,
    /// The last result.
    end: Ready,
    /// The warp that issued last.
    last: usize,
    watches: Vec<Option<Watch>>,
    steps: u64,
    simulated: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Running,
    /// At a barrier since.
    Waiting(f64),
    Done,
}

#[derive(Debug, Clone, Default)]
struct Scheduler {
    free: f64,
    port_free: f64,
    pipes_free: [f64; Pipe::ALL.len()],
}

/// The way to memory of a cluster: so many bytes a cycle, and no more in flight than that fills its latency with.
#[derive(Debug, Clone, Default)]
struct Memory {
    /// When what was asked for arrives, in order, and its bytes.
    flying: VecDeque<(f64, f64)>,
    bytes: f64,
    /// When there is room.
    room: f64,
    /// The last result.
    last: f64,
}

/// Runs the resident warps to their end. `None` where `cancelled` says that nobody waits.
pub(crate) fn run(
    machine: &Machine,
    program: &Program,
    nodes: usize,
    resident: Resident,
    policy: Policy,
    cancelled: &dyn Fn() -> bool,
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
        ready: vec![f64::INFINITY; warps.len()],
        state: vec![State::Running; warps.len()],
        warps,
        schedulers: vec![Scheduler::default(); machine.schedulers],
        units_free: 0.0,
        banks_free: 0.0,
        memory: Memory::default(),
        ledger: Ledger {
            time: 0.0,
            parts: [0.0; PARTS],
            shares: vec![0.0; nodes],
            instructions: 0.0,
        },
        now: 0.0,
        end: Ready::at(0.0, 0, Bottleneck::Compute),
        last: 0,
        watches: vec![None; program.loops],
        steps: 0,
        simulated: 0.0,
    };
    for warp in 0..engine.warps.len() {
        engine.fetch(warp);
    }
    let mut looks = 0;
    let finished = loop {
        if engine.steps / STEPS_BETWEEN_LOOKS != looks {
            looks = engine.steps / STEPS_BETWEEN_LOOKS;
            if cancelled() {
                return None;
            }
        }
        if engine.steps > MOST_STEPS {
            break false;
        }
        let Some((warp, at, cause)) = engine.choose() else {
            break true;
        };
        engine.issue(warp, at, cause);
    };
    // What is still under way when the last instruction has issued.
    let end = engine.end;
    engine.advance(end.at, end, false);
    Some(Run {
        cycles: engine.ledger.time,
        parts: engine.ledger.parts,
        shares: engine.ledger.shares,
        instructions: engine.ledger.instructions,
        simulated: engine.simulated,
        finished,
    })
}

impl Engine<'_> {
    /// The warp that can issue first, when, and what it waits for until then. Of several the policy says which.
    fn choose(&self) -> Option<(usize, f64, Ready)> {
        let mut best: Option<usize> = None;
        let mut soonest = f64::INFINITY;
        let count = self.warps.len();
        let free = self.schedulers.iter().map(|scheduler| scheduler.free);
        // Nothing issues before this, so whoever can then needs no comparison with those who are asked later.
        let at_once = free.fold(f64::INFINITY, f64::min).max(self.now);
        let first = match self.policy {
            Policy::InTurn => (self.last + 1) % count.max(1),
            Policy::Oldest | Policy::Greedy => 0,
        };
        // The greedy one stands in two places; nobody loses by that.
        let again = (self.policy == Policy::Greedy).then_some(self.last);
        for warp in again.into_iter().chain(first..count).chain(0..first) {
            if soonest <= self.ready[warp] {
                continue;
            }
            let Some(instruction) = &self.next[warp] else {
                continue;
            };
            let at = self.free_at(warp, instruction);
            if at < soonest {
                best = Some(warp);
                soonest = at;
                if at <= at_once {
                    break;
                }
            }
        }
        let warp = best?;
        let cause = self.cause(warp, self.next[warp].as_ref()?);
        Some((warp, soonest, cause))
    }

    /// The earliest that an instruction can issue.
    fn free_at(&self, warp: usize, instruction: &Instruction) -> f64 {
        let scheduler = &self.schedulers[warp % self.schedulers.len()];
        let at = instruction.ready.at.max(scheduler.free);
        match instruction.kind {
            Kind::Arithmetic(pipe) => {
                let mut at = at.max(scheduler.pipes_free[pipe as usize]);
                if self.machine.pipes[pipe as usize].port {
                    at = at.max(scheduler.port_free);
                }
                if instruction.operand.is_some() {
                    at = at.max(self.banks_free);
                }
                at
            }
            Kind::Access { access, .. } => {
                let transfer = &self.machine.transfers[access];
                let mut at = at.max(self.units_free);
                if transfer.banks > 0.0 {
                    at = at.max(self.banks_free);
                }
                if transfer.service > 0.0 {
                    at = at.max(self.memory.room);
                }
                at
            }
            Kind::Barrier => at.max(scheduler.port_free),
        }
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
                    ready = ready.later(busy(self.banks_free, Bottleneck::Shared));
                }
            }
            Kind::Access { access, .. } => {
                let transfer = &self.machine.transfers[access];
                if transfer.banks > 0.0 {
                    ready = ready
                        .later(busy(self.units_free, Bottleneck::Shared))
                        .later(busy(self.banks_free, Bottleneck::Shared));
                } else {
                    ready = ready.later(busy(self.units_free, Bottleneck::Compute));
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
        self.ready[warp] = f64::INFINITY;
        self.advance(at, cause, self.warps[warp].divergent > 0);
        self.steps += 1;
        self.simulated += 1.0;
        self.ledger.instructions += 1.0;
        self.last = warp;
        let machine = self.machine;
        let node = instruction.node;
        let own = warp % self.schedulers.len();
        let scheduler = &mut self.schedulers[own];
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
                    self.banks_free = at + transfer.banks;
                    let latency =
                        machine.shared_operand.max(arithmetic.latency) + transfer.conflict;
                    done = Ready::at(at + latency, node, Bottleneck::Shared);
                }
                self.end = self.end.later(done);
                self.warps[warp].executed(pipe, done);
            }
            Kind::Access { access, value } => {
                let transfer = machine.transfers[access];
                same_warp = transfer.same_warp;
                self.units_free = at + transfer.units;
                let mut done = Ready::at(at + transfer.latency, node, Bottleneck::Shared);
                if transfer.banks > 0.0 {
                    self.banks_free = at + transfer.banks;
                } else {
                    done = self.memory.send(machine, access, at, node);
                }
                self.end = self.end.later(done);
                if transfer.loads {
                    self.warps[warp].loads[value] = done;
                }
            }
            Kind::Barrier => {
                scheduler.port_free = at + machine.port;
                self.state[warp] = State::Waiting(at);
            }
        }
        let free = at + same_warp.max(machine.period);
        self.warps[warp].free = Ready::at(free, node, Bottleneck::Compute);
        if instruction.kind == Kind::Barrier {
            self.release(self.warps[warp].block, node);
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
        self.ledger.time += cycles;
        if let Some(share) = self.ledger.shares.get_mut(cause.node) {
            *share += cycles;
        }
        let parts = &mut self.ledger.parts;
        if divergent {
            parts[part(Bottleneck::Divergence)] += cycles;
        } else {
            let queue = cycles * cause.queue;
            parts[part(Bottleneck::MemoryBandwidth)] += queue;
            parts[part(cause.part)] += cycles - queue;
        }
    }

    fn fetch(&mut self, warp: usize) {
        loop {
            let barriers = self.machine.barrier.is_some();
            match self.warps[warp].fetch(self.program, barriers, &mut self.steps) {
                Fetched::Next(instruction) => {
                    self.ready[warp] = instruction.ready.at;
                    self.next[warp] = Some(instruction);
                    return;
                }
                Fetched::Iteration => {
                    if self.steps > MOST_STEPS {
                        // Nothing is issued in here: the run is cut off.
                        return;
                    }
                    if self.leads(warp) {
                        self.watch(warp);
                    }
                }
                Fetched::Done => {
                    self.state[warp] = State::Done;
                    self.release(self.warps[warp].block, 0);
                    return;
                }
            }
        }
    }

    /// Lets a block's warps go on once all that have not ended are at a barrier.
    fn release(&mut self, block: usize, node: usize) {
        let mut last = None;
        for (warp, state) in self.warps.iter().zip(&self.state) {
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
        let waiting: Vec<usize> = (0..self.warps.len())
            .filter(|&warp| {
                self.warps[warp].block == block && matches!(self.state[warp], State::Waiting(_))
            })
            .collect();
        for &warp in &waiting {
            self.state[warp] = State::Running;
            self.warps[warp].free = self.warps[warp].free.later(open);
        }
        for warp in waiting {
            self.fetch(warp);
        }
    }

    /// The warp by which steady states are known.
    fn leads(&self, warp: usize) -> bool {
        self.state.iter().position(|state| *state != State::Done) == Some(warp)
    }

    /// The leader ends an iteration. Where the last two windows cost the same, or the last one what the loop's steady
    /// state is known to cost, all warps skip what the loop has left but a window: it would go on like that.
    fn watch(&mut self, leader: usize) {
        let depth = self.warps[leader].frames.len() - 1;
        let frame = &self.warps[leader].frames[depth];
        let (id, ended, left) = (frame.id, frame.ended, frame.left);
        let ledger = &self.ledger;
        if ended == 1 {
            let before = self.watches[id].take();
            // How long an iteration is shows when the second has ended.
            let window = before.as_ref().map_or(0, |watch| watch.window);
            self.watches[id] = Some(Watch {
                window,
                due: ended + window.max(1),
                failed: 0,
                known: before.and_then(|watch| watch.known),
                before: None,
                last: ledger.clone(),
            });
            return;
        }
        let Some(watch) = &mut self.watches[id] else {
            return;
        };
        if ended < watch.due || left <= watch.window as f64 {
            return;
        }
        if watch.window == 0 {
            let issued = (ledger.instructions - watch.last.instructions).max(1.0);
            watch.window = ((ENOUGH_INSTRUCTIONS / issued).ceil() as u64).clamp(1, WINDOW);
            watch.due = ended + watch.window;
            watch.last = ledger.clone();
            return;
        }
        let window = watch.window;
        let cycles = ledger.time - watch.last.time;
        let same = |then: f64| (cycles - then).abs() <= STEADY * cycles;
        let steady = match &watch.before {
            Some(before) if same(watch.last.time - before.time) => {
                Some((before.clone(), 2.0 * window as f64))
            }
            _ if watch.known.is_some_and(|known| same(known * window as f64)) => {
                Some((watch.last.clone(), window as f64))
            }
            _ => None,
        };
        let last = std::mem::replace(&mut watch.last, ledger.clone());
        watch.before = Some(last);
        watch.due = ended + window;
        if let Some((mark, iterations)) = steady {
            watch.known = Some((ledger.time - mark.time) / iterations);
            if self.skip(id, depth, &mark, iterations, window)
                && let Some(watch) = &mut self.watches[id]
            {
                // What is left is not looked at again.
                watch.due = u64::MAX;
            }
            return;
        }
        watch.failed += 1;
        if watch.failed == PATIENCE {
            watch.failed = 0;
            watch.window *= 2;
            watch.due = ended + watch.window;
            watch.before = None;
        }
    }

    /// Adds what went on since the mark, which was so many iterations ago, for all iterations that every warp has left
    /// but the last window's. False where there are none.
    fn skip(
        &mut self,
        id: usize,
        depth: usize,
        mark: &Ledger,
        iterations: f64,
        window: u64,
    ) -> bool {
        let mut left = f64::INFINITY;
        for (warp, state) in self.warps.iter().zip(&self.state) {
            if *state == State::Done {
                continue;
            }
            match warp.frames.get(depth) {
                Some(frame) if frame.id == id => left = left.min(frame.left),
                // Some warp is elsewhere: it has not settled.
                _ => return false,
            }
        }
        let skipped = (left - window as f64).floor();
        if skipped < 1.0 || !skipped.is_finite() {
            return false;
        }
        for (warp, state) in self.warps.iter_mut().zip(&self.state) {
            if *state != State::Done {
                warp.frames[depth].left -= skipped;
            }
        }
        let times = skipped / iterations;
        let ledger = &mut self.ledger;
        let more = |now: &mut f64, then: f64| {
            let grown = (*now - then) * times;
            *now += grown;
        };
        more(&mut ledger.time, mark.time);
        more(&mut ledger.instructions, mark.instructions);
        for (now, then) in ledger.parts.iter_mut().zip(mark.parts) {
            more(now, then);
        }
        for (now, then) in ledger.shares.iter_mut().zip(&mark.shares) {
            more(now, *then);
        }
        true
    }
}

impl Memory {
    /// A request goes out; its result.
    fn send(&mut self, machine: &Machine, access: usize, at: f64, node: usize) -> Ready {
        let transfer = &machine.transfers[access];
        let alone = at + (transfer.latency - transfer.ideal_service).max(0.0);
        let done = alone.max(self.last) + transfer.service;
        let done = done.max(at + transfer.latency);
        if transfer.service > 0.0 {
            self.last = done;
        }
        // Its transactions arrive one after another, on average half of the transfer before the last.
        let arrived = done - transfer.service / 2.0;
        self.flying.push_back((arrived, transfer.bytes));
        self.bytes += transfer.bytes;
        while self.bytes >= machine.in_flight_bytes {
            let Some((arrived, bytes)) = self.flying.pop_front() else {
                break;
            };
            self.room = self.room.max(arrived);
            self.bytes -= bytes;
        }
        let wait = done - at;
        let queue = if wait > 0.0 {
            ((wait - transfer.latency) / wait).clamp(0.0, 1.0)
        } else {
            0.0
        };
        Ready {
            queue,
            ..Ready::at(done, node, Bottleneck::MemoryLatency)
        }
    }
}

/// Where a part stands in [`Run::parts`].
pub(crate) fn part(part: Bottleneck) -> usize {
    match part {
        Bottleneck::Compute | Bottleneck::Launch => 0,
        Bottleneck::MemoryBandwidth => 1,
        Bottleneck::MemoryLatency => 2,
        Bottleneck::Shared => 3,
        Bottleneck::Divergence => 4,
        Bottleneck::Synchronisation => 5,
    }
}
