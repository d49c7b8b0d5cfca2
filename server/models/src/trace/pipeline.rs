//! The warp pipeline: warps consume their traces and contend for what an SM has one of.
//!
//! Section IV-B of the paper. A global timer goes from event to event; a warp that comes to an operation locks what the
//! operation needs, or waits until that is free. Ours differs in what a load does: it does not stop its warp. The warp
//! waits at the first operation that needs the value, as the scoreboards of these GPUs have it; the paper's traces do
//! not say which that is. A store does not stop its warp either.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What only one operation can hold at a time, beside the arithmetic units, through which all operations issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// An SM's share of the memory system.
    Global,
    /// Shared memory.
    Shared,
    /// The constant cache.
    Constant,
}

/// One operation of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operation {
    /// Arithmetic.
    Compute {
        /// Cycles for which the units are held.
        hold: f64,
        /// Cycles until the warp goes on.
        latency: f64,
    },
    /// Memory: the waiting before, the delay, in which the port is held, and the waiting after.
    Memory {
        /// What it contends for.
        port: Port,
        /// Cycles of issue.
        issue: f64,
        /// Cycles of reading or writing.
        delay: f64,
        /// All cycles without contention: the delay, and waiting before and after in equal parts.
        latency: f64,
        /// Which value it loads, a number that [`Step::needs`] names.
        loads: Option<usize>,
    },
    /// A barrier of the work group.
    Barrier {
        /// Cycles from the last warp's arrival.
        latency: f64,
    },
}

/// An operation as a warp comes to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step<'t> {
    /// What is done.
    pub operation: Operation,
    /// The values that must have arrived.
    pub needs: &'t [usize],
    /// Which operation of the kernel this is: what its cycles are noted under.
    pub source: usize,
}

/// The traces of a round of active work groups.
pub trait Round {
    /// How many warps.
    fn warps(&self) -> usize;
    /// The work group of a warp; warps of a group stand together.
    fn group(&self, warp: usize) -> usize;
    /// The operation at that place of a warp's trace; `None` at its end.
    fn step(&self, warp: usize, place: usize) -> Option<Step<'_>>;
    /// Values that loads are numbered by: one more than the highest.
    fn values(&self) -> usize;
    /// How many operations there are for cycles to be noted under.
    fn sources(&self) -> usize;
    /// True where the result is not needed any more.
    fn is_cancelled(&self) -> bool;
}

/// Where cycles went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Arithmetic: the units held, or the latency of an operation that no other warp covered.
    Compute,
    /// Waiting for the memory's port and while it is held.
    Bandwidth,
    /// The rest of a memory access.
    Latency,
    /// Shared memory and the constant cache.
    Shared,
    /// Barriers.
    Synchronisation,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 5] = [
        Part::Compute,
        Part::Bandwidth,
        Part::Latency,
        Part::Shared,
        Part::Synchronisation,
    ];
}

/// What a round took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timing {
    /// Cycles until the last warp has finished and the last port is free.
    pub cycles: f64,
    /// They again, by operation and by [`Part`]: they sum to `cycles`.
    pub by_source: Vec<[f64; Part::ALL.len()]>,
    /// Cycles for which the arithmetic units were held.
    pub units_held: f64,
    /// Cycles for which the memory's port was.
    pub global_held: f64,
    /// Cycles that warps waited for values, summed over them.
    pub waited_for_values: f64,
    /// Cycles that warps waited at barriers, summed over them.
    pub waited_at_barriers: f64,
    /// Operations consumed.
    pub operations: usize,
    /// False where it was cancelled.
    pub complete: bool,
}

/// Why a warp could not go on before.
#[derive(Debug, Clone, Copy)]
struct Reason {
    source: usize,
    parts: [f64; Part::ALL.len()],
}

impl Reason {
    fn only(part: Part, source: usize) -> Reason {
        let mut parts = [0.0; Part::ALL.len()];
        parts[part as usize] = 1.0;
        Reason { source, parts }
    }
}

/// A value on its way.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: f64,
    reason: Reason,
}

/// Times are finite: their order is total.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Time(f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Time) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Time) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Between two looks at whether anybody still waits for the result.
const LOOK: usize = 512;

struct Warp {
    place: usize,
    reason: Reason,
    /// When it came to the barrier at which it waits, and that barrier's latency.
    waits_since: Option<(f64, f64)>,
    done: bool,
}

struct Pipeline<'r, R> {
    round: &'r R,
    warps: Vec<Warp>,
    arrivals: Vec<Option<Arrival>>,
    ready: BinaryHeap<Reverse<(Time, usize)>>,
    units_free: f64,
    ports_free: [f64; 3],
    /// The last operation that held each port.
    ports_used: [usize; 3],
    timing: Timing,
}

/// Runs the traces.
pub fn run(round: &impl Round) -> Timing {
    let warps = round.warps();
    let mut pipeline = Pipeline {
        round,
        warps: (0..warps)
            .map(|_| Warp {
                place: 0,
                reason: Reason::only(Part::Compute, 0),
                waits_since: None,
                done: false,
            })
            .collect(),
        arrivals: vec![None; warps * round.values()],
        ready: (0..warps).map(|warp| Reverse((Time(0.0), warp))).collect(),
        units_free: 0.0,
        ports_free: [0.0; 3],
        ports_used: [0; 3],
        timing: Timing {
            by_source: vec![[0.0; Part::ALL.len()]; round.sources().max(1)],
            complete: true,
            ..Timing::default()
        },
    };
    let mut end = (0.0, Reason::only(Part::Compute, 0));
    while let Some(Reverse((Time(now), warp))) = pipeline.ready.pop() {
        pipeline.timing.operations += 1;
        if pipeline.timing.operations.is_multiple_of(LOOK) && round.is_cancelled() {
            pipeline.timing.complete = false;
            return pipeline.timing;
        }
        if !pipeline.advance(warp, now) && now >= end.0 {
            end = (now, pipeline.warps[warp].reason);
        }
    }
    pipeline.finish(end)
}

impl<R: Round> Pipeline<'_, R> {
    /// One operation of a warp; false at the end of its trace.
    fn advance(&mut self, warp: usize, now: f64) -> bool {
        let Some(step) = self.round.step(warp, self.warps[warp].place) else {
            self.warps[warp].done = true;
            self.open_barrier(self.round.group(warp), now);
            return false;
        };
        let values = self.round.values();
        let late = step
            .needs
            .iter()
            .filter(|&&value| value < values)
            .filter_map(|&value| self.arrivals[warp * values + value])
            .filter(|arrival| arrival.at > now)
            .max_by(|a, b| a.at.total_cmp(&b.at));
        if let Some(arrival) = late {
            self.timing.waited_for_values += arrival.at - now;
            self.warps[warp].reason = arrival.reason;
            self.ready.push(Reverse((Time(arrival.at), warp)));
            return true;
        }
        self.warps[warp].place += 1;
        match step.operation {
            Operation::Compute { hold, latency } => {
                let start = self.hold_units(warp, now, hold, step.source);
                self.go_on(warp, start + hold.max(latency), Part::Compute, step.source);
            }
            Operation::Memory {
                port,
                issue,
                delay,
                latency,
                loads,
            } => {
                // It issues beside the arithmetic that is under way, and takes issue slots from what follows.
                self.hold_units(warp, now, issue, step.source);
                let issued = now + issue;
                let waiting = (latency - delay).max(0.0) / 2.0;
                let reached = issued + waiting;
                let begin = self.ports_free[port as usize].max(reached);
                self.ports_free[port as usize] = begin + delay;
                self.ports_used[port as usize] = step.source;
                let queued = begin - reached;
                if port == Port::Global {
                    self.timing.global_held += delay;
                }
                let part = match port {
                    Port::Global => Part::Bandwidth,
                    Port::Shared | Port::Constant => Part::Shared,
                };
                if let Some(value) = loads.filter(|&value| value < self.round.values()) {
                    self.arrivals[warp * self.round.values() + value] = Some(Arrival {
                        at: begin + delay + waiting,
                        reason: shared_out(part, queued + delay, 2.0 * waiting, step.source),
                    });
                }
                // A warp's next operation does not overtake the queue of the port.
                let (at, part) = if queued > 0.0 {
                    (issued + queued, part)
                } else {
                    (issued, Part::Compute)
                };
                self.go_on(warp, at, part, step.source);
            }
            Operation::Barrier { latency } => {
                self.warps[warp].waits_since = Some((now, latency));
                self.warps[warp].reason = Reason::only(Part::Synchronisation, step.source);
                self.open_barrier(self.round.group(warp), now);
            }
        }
        true
    }

    /// Locks the arithmetic units; when that was. Time in which they were idle goes to what this warp waited for.
    fn hold_units(&mut self, warp: usize, now: f64, hold: f64, source: usize) -> f64 {
        if hold <= 0.0 {
            return now;
        }
        if now > self.units_free {
            let reason = self.warps[warp].reason;
            self.note(reason, now - self.units_free);
            self.units_free = now;
        }
        let start = self.units_free;
        self.note(Reason::only(Part::Compute, source), hold);
        self.timing.units_held += hold;
        self.units_free = start + hold;
        start
    }

    fn go_on(&mut self, warp: usize, at: f64, part: Part, source: usize) {
        self.warps[warp].reason = Reason::only(part, source);
        self.ready.push(Reverse((Time(at), warp)));
    }

    /// Lets a work group go on where all its warps wait or are done.
    fn open_barrier(&mut self, group: usize, now: f64) {
        let of_group = |warp: &usize| self.round.group(*warp) == group;
        let first = (0..self.warps.len()).find(of_group).unwrap_or(0);
        let last = (first..self.warps.len())
            .take_while(of_group)
            .last()
            .unwrap_or(first);
        let members = first..=last;
        for member in members.clone() {
            let member = &self.warps[member];
            if member.waits_since.is_none() && !member.done {
                return;
            }
        }
        for member in members {
            if let Some((since, latency)) = self.warps[member].waits_since.take() {
                self.timing.waited_at_barriers += now + latency - since;
                self.ready.push(Reverse((Time(now + latency), member)));
            }
        }
    }

    fn note(&mut self, reason: Reason, cycles: f64) {
        let parts = &mut self.timing.by_source[reason.source];
        for (noted, share) in parts.iter_mut().zip(reason.parts) {
            *noted += share * cycles;
        }
    }

    /// The end: the last warp's, or of the port that is held longest.
    fn finish(mut self, (last, reason): (f64, Reason)) -> Timing {
        if last > self.units_free {
            self.note(reason, last - self.units_free);
            self.units_free = last;
        }
        for port in [Port::Global, Port::Shared, Port::Constant] {
            let free = self.ports_free[port as usize];
            if free > self.units_free {
                let part = match port {
                    Port::Global => Part::Bandwidth,
                    Port::Shared | Port::Constant => Part::Shared,
                };
                let source = self.ports_used[port as usize];
                self.note(Reason::only(part, source), free - self.units_free);
                self.units_free = free;
            }
        }
        self.timing.cycles = self.units_free;
        self.timing
    }
}

/// Cycles of a memory access as parts of a whole.
fn shared_out(port: Part, held: f64, waiting: f64, source: usize) -> Reason {
    if port == Part::Shared {
        return Reason::only(Part::Shared, source);
    }
    let all = held + waiting;
    if all <= 0.0 {
        return Reason::only(Part::Latency, source);
    }
    let mut parts = [0.0; Part::ALL.len()];
    parts[Part::Bandwidth as usize] = held / all;
    parts[Part::Latency as usize] = waiting / all;
    Reason { source, parts }
}
