//! One resident warp: where it is in the program, and what its next instruction waits for.

use warplens_machine::Pipe;

use super::program::{Counts, ORDER, Program, Step, is_integer};
use crate::Bottleneck;

/// When something is there, and what made it late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ready {
    pub at: f64,
    /// The node that takes the blame.
    pub node: usize,
    pub part: Bottleneck,
    /// Of a memory wait, the share that is queueing for bandwidth.
    pub queue: f64,
}

impl Ready {
    pub fn at(at: f64, node: usize, part: Bottleneck) -> Ready {
        Ready {
            at,
            node,
            part,
            queue: 0.0,
        }
    }

    pub fn later(self, other: Ready) -> Ready {
        if other.at > self.at { other } else { self }
    }
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Arithmetic(Pipe),
    /// Of the facts' accesses one, and where its value goes.
    Access {
        access: usize,
        value: usize,
    },
    Barrier,
}

/// A warp's next instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Instruction {
    pub kind: Kind,
    pub node: usize,
    /// The earliest that its operands and its warp allow.
    pub ready: Ready,
    /// The access whose shared memory it reads as its operand.
    pub operand: Option<usize>,
}

/// A loop that a warp is in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub id: usize,
    /// Iterations that have not ended.
    pub left: f64,
    /// Iterations that have.
    pub ended: u64,
}

/// A branch that a warp is in.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Side {
    /// It goes on with the other side.
    other_follows: bool,
    /// It executes the other side because lanes part.
    second: bool,
    behind: usize,
}

/// Instructions of a stretch that wait for one another: they stand in as many levels as their chain is long, and
/// each level waits for the one before it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Levels {
    total: f64,
    chain: f64,
    issued: f64,
    level: f64,
    /// When the level before this one is done, and this one so far.
    before: Ready,
    now: Ready,
}

impl Levels {
    fn new(total: f64, chain: f64, before: Ready) -> Levels {
        Levels {
            total,
            chain: (chain * total).round().clamp(1.0, total.max(1.0)),
            issued: 0.0,
            level: 0.0,
            before,
            now: Ready { at: 0.0, ..before },
        }
    }

    /// What the next instruction waits for.
    fn next(&mut self) -> Ready {
        let level = down(self.issued * self.chain / self.total);
        if level > self.level {
            self.level = level;
            self.before = self.now;
        }
        self.issued += 1.0;
        self.before
    }
}

/// A stretch of computation that has begun. What makes addresses and conditions does not wait for what makes values,
/// nor the other way round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    node: usize,
    slot: usize,
    /// Instructions left, by pipe.
    left: [u64; ORDER.len()],
    /// The first pipe that has some left.
    first: usize,
    integers: Levels,
    values: Levels,
}

/// A memory access that waits for what it is to be: an instruction, or another one's operand.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Operand {
    access: usize,
    value: usize,
    node: usize,
    /// When its address is known.
    address: f64,
}

/// What a fetch comes to.
pub(super) enum Fetched {
    Next(Instruction),
    /// An iteration of a loop has ended and another begins; fetch again.
    Iteration,
    Done,
}

/// A resident warp.
#[derive(Debug, Clone)]
pub(super) struct Warp {
    pub block: usize,
    pub frames: Vec<Frame>,
    /// More than 0 while it executes the second side of a branch that it was split by.
    pub divergent: u32,
    /// When it may issue again.
    pub free: Ready,
    /// Each loaded value.
    pub loads: Vec<Ready>,
    at: usize,
    /// Where in the fractions of instructions it begins, from 0 to 1: warps differ in it, so that a branch taken
    /// by a third of the warps is taken by every third warp.
    phase: f64,
    carry: [f64; ORDER.len()],
    branches: Vec<[f64; 2]>,
    sides: Vec<Side>,
    stretch: Option<Stretch>,
    /// By line: when the values made there are ready, and when the addresses are.
    values: Vec<Ready>,
    addresses: Vec<f64>,
    last_value: Ready,
    /// What an instruction that did not come waited for.
    pending: Ready,
    operand: Option<Operand>,
}

impl Warp {
    pub fn new(program: &Program, block: usize, phase: f64) -> Warp {
        let never = Ready::at(0.0, 0, Bottleneck::Compute);
        Warp {
            block,
            frames: Vec::new(),
            divergent: 0,
            free: never,
            loads: vec![never; program.values],
            at: 0,
            phase,
            carry: [phase; ORDER.len()],
            branches: vec![[phase; 2]; program.branches],
            sides: Vec::new(),
            stretch: None,
            values: vec![never; program.slots],
            addresses: vec![0.0; program.slots],
            last_value: never,
            pending: never,
            operand: None,
        }
    }

    /// The next instruction. `steps` counts what was walked over on the way.
    pub fn fetch(&mut self, program: &Program, barriers: bool, steps: &mut u64) -> Fetched {
        loop {
            *steps += 1;
            if let Some(instruction) = self.of_stretch() {
                return Fetched::Next(instruction);
            }
            let Some(step) = program.steps.get(self.at) else {
                return match self.operand.take() {
                    Some(alone) => Fetched::Next(self.access(alone)),
                    None => Fetched::Done,
                };
            };
            match step {
                Step::Compute {
                    node,
                    counts,
                    chain,
                    uses,
                    slot,
                    linked,
                } => {
                    self.wait_for(uses);
                    self.begin(*node, counts, *chain, *slot, *linked);
                    self.at += 1;
                }
                Step::Access {
                    node,
                    access,
                    value,
                    uses,
                    slot,
                    operand,
                    writes,
                } => {
                    self.wait_for(uses);
                    if *writes {
                        self.pending = self.pending.later(self.last_value);
                    }
                    let this = Operand {
                        access: *access,
                        value: *value,
                        node: *node,
                        address: self.addresses[*slot],
                    };
                    self.at += 1;
                    if !operand {
                        return Fetched::Next(self.access(this));
                    }
                    self.loads[*value].at = 0.0;
                    if let Some(alone) = self.operand.replace(this) {
                        return Fetched::Next(self.access(alone));
                    }
                }
                Step::Barrier { node } => {
                    if let Some(alone) = self.operand.take() {
                        return Fetched::Next(self.access(alone));
                    }
                    self.at += 1;
                    if barriers {
                        return Fetched::Next(Instruction {
                            kind: Kind::Barrier,
                            node: *node,
                            ready: self.free,
                            operand: None,
                        });
                    }
                }
                Step::Loop { id, trips, behind } => {
                    let whole = (trips + self.phase).floor();
                    if whole < 1.0 {
                        self.at = *behind;
                    } else {
                        self.at += 1;
                        self.frames.push(Frame {
                            id: *id,
                            left: whole,
                            ended: 0,
                        });
                    }
                }
                Step::End { body } => {
                    self.at += 1;
                    let Some(frame) = self.frames.last_mut() else {
                        continue;
                    };
                    frame.left -= 1.0;
                    frame.ended += 1;
                    if frame.left < 0.5 {
                        self.frames.pop();
                        continue;
                    }
                    self.at = *body;
                    return Fetched::Iteration;
                }
                Step::Branch {
                    id,
                    taken,
                    other,
                    otherwise,
                    behind,
                } => self.part(*id, *taken, *other, *otherwise, *behind),
                Step::Side => {
                    self.at += 1;
                    if let Some(side) = self.sides.pop() {
                        if side.other_follows {
                            self.divergent += 1;
                            self.sides.push(Side {
                                other_follows: false,
                                second: true,
                                ..side
                            });
                        } else {
                            self.at = side.behind;
                        }
                    }
                }
                Step::Join => {
                    self.at += 1;
                    if self.sides.pop().is_some_and(|side| side.second) {
                        self.divergent -= 1;
                    }
                }
            }
        }
    }

    /// Notes when the instruction of a stretch that was issued last is done.
    pub fn executed(&mut self, pipe: Pipe, done: Ready) {
        let Some(stretch) = &mut self.stretch else {
            return;
        };
        if is_integer(pipe) {
            stretch.integers.now = stretch.integers.now.later(done);
            let address = &mut self.addresses[stretch.slot];
            *address = address.max(done.at);
        } else {
            stretch.values.now = stretch.values.now.later(done);
        }
        if stretch.first == ORDER.len() {
            let (slot, values) = (stretch.slot, stretch.values);
            self.stretch = None;
            if values.total > 0.0 {
                self.values[slot] = values.now;
                self.last_value = self.last_value.later(values.now);
            }
        }
    }

    /// Gives whole sides to the fractions of the warps that take them.
    fn part(&mut self, id: usize, taken: f64, other: f64, otherwise: usize, behind: usize) {
        let [on, off] = &mut self.branches[id];
        let takes = whole(on, taken);
        let both = (taken + other - 1.0).max(0.0);
        let share = if takes {
            both / taken.max(f64::MIN_POSITIVE)
        } else {
            (other - both) / (1.0 - taken).max(f64::MIN_POSITIVE)
        };
        let other_follows = whole(off, share.clamp(0.0, 1.0));
        let side = Side {
            other_follows: takes && other_follows,
            second: false,
            behind,
        };
        if takes {
            self.sides.push(side);
            self.at += 1;
        } else if other_follows {
            self.sides.push(side);
            self.at = otherwise;
        } else {
            self.at = behind;
        }
    }

    fn begin(&mut self, node: usize, counts: &Counts, chain: f64, slot: usize, linked: bool) {
        let mut left = [0; ORDER.len()];
        let (mut integers, mut values) = (0.0, 0.0);
        for &(at, count) in counts {
            let now = self.carry[at] + count;
            let issued = down((now + 1e-9).clamp(0.0, 1e15));
            self.carry[at] = (now - issued).clamp(0.0, 1.0);
            left[at] = issued as u64;
            if is_integer(ORDER[at]) {
                integers += issued;
            } else {
                values += issued;
            }
        }
        if integers + values <= 0.0 {
            return;
        }
        let nothing = Ready::at(0.0, node, Bottleneck::Compute);
        let before = if linked { self.values[slot] } else { nothing };
        self.stretch = Some(Stretch {
            node,
            slot,
            left,
            first: left.iter().position(|left| *left > 0).unwrap_or(0),
            integers: Levels::new(integers, chain, nothing),
            values: Levels::new(values, chain, before),
        });
    }

    /// The stretch's next instruction.
    fn of_stretch(&mut self) -> Option<Instruction> {
        let stretch = self.stretch.as_mut()?;
        let pipe = *ORDER.get(stretch.first)?;
        stretch.left[stretch.first] -= 1;
        while stretch.left.get(stretch.first) == Some(&0) {
            stretch.first += 1;
        }
        let levels = if is_integer(pipe) {
            &mut stretch.integers
        } else {
            &mut stretch.values
        };
        let mut ready = self.free.later(levels.next()).later(self.pending);
        self.pending.at = 0.0;
        let reads = if stretch.values.total > 0.0 {
            !is_integer(pipe)
        } else {
            pipe == Pipe::Int
        };
        let node = stretch.node;
        let operand = if reads { self.operand.take() } else { None };
        if let Some(operand) = operand {
            ready = ready.later(Ready::at(operand.address, node, Bottleneck::Compute));
        }
        Some(Instruction {
            kind: Kind::Arithmetic(pipe),
            node,
            ready,
            operand: operand.map(|operand| operand.access),
        })
    }

    fn access(&mut self, alone: Operand) -> Instruction {
        let Operand {
            access,
            value,
            node,
            address,
        } = alone;
        let address = Ready::at(address, node, Bottleneck::Compute);
        let ready = self.free.later(address).later(self.pending);
        self.pending.at = 0.0;
        Instruction {
            kind: Kind::Access { access, value },
            node,
            ready,
            operand: None,
        }
    }

    fn wait_for(&mut self, uses: &[usize]) {
        for value in uses {
            self.pending = self.pending.later(self.loads[*value]);
        }
    }
}

/// Rounds what is not negative down; quicker than the library's rounding on processors at large.
fn down(value: f64) -> f64 {
    value as i64 as f64
}

/// Adds a fraction to what is carried; true where that makes one.
fn whole(carried: &mut f64, fraction: f64) -> bool {
    *carried += fraction;
    let one = *carried >= 1.0 - 1e-9;
    if one {
        *carried -= 1.0;
    }
    one
}
