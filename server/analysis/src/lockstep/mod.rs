//! The launch on numbers, warp by warp in lock step: what the symbolic execution leaves open under a launch and
//! arguments that are known.
//!
//! Each lane of a warp holds a number or nothing that is known (data). Where a condition is not known for a lane,
//! both sides are executed with the lane *unsure*: what it writes is not known, and what is recorded meanwhile is
//! not used. So what is used hangs on no data.

mod evaluate;
mod execute;
mod numbers;

use rustc_hash::FxHashMap;
use warplens_hardware::Profile;
use warplens_ir::{Kernel, StmtKind, Storage, Type, VarId};

use crate::access::{AccessDraft, Sums};
use crate::branch::BranchDraft;
use crate::facts::{Launch, Op, Space};
use crate::value::{Part, address};
use numbers::{LANES, Value};

/// Statements and expressions executed by some warp, at most: a keystroke waits for them.
const MOST_STEPS: u32 = 400_000;

/// The requests of one access.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) sums: Sums,
    /// Some lane was there that may not have been, or its address is not known.
    pub(crate) unsure: bool,
}

/// Whether all lanes of the launch go one way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    #[default]
    Nobody,
    One(i64),
    Several,
}

/// How warps went at one branch or loop.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) evaluations: f64,
    /// With a lane that takes it.
    pub(crate) taken: f64,
    /// With lanes that differ.
    pub(crate) split: f64,
    pub(crate) taken_threads: f64,
    /// Iterations of warps.
    pub(crate) iterations: f64,
    pub(crate) agreement: Agreement,
    pub(crate) unsure: bool,
}

impl Ways {
    /// Those of another call.
    fn add(&mut self, other: &Ways) {
        self.evaluations += other.evaluations;
        self.taken += other.taken;
        self.split += other.split;
        self.taken_threads += other.taken_threads;
        self.iterations += other.iterations;
        self.unsure |= other.unsure;
        self.agreement = match (self.agreement, other.agreement) {
            (agreement, Agreement::Nobody) | (Agreement::Nobody, agreement) => agreement,
            (a, b) if a == b => a,
            _ => Agreement::Several,
        };
    }
}

/// The ways that lead to the bodies which were executed once for several calls.
#[derive(Debug, Default)]
pub(crate) struct Leading {
    /// By body; none where there are too many.
    pub(crate) bodies: Vec<Option<Vec<u64>>>,
}

impl Leading {
    fn to(&self, part: Part) -> Option<&[u64]> {
        match part.body {
            None => Some(&[0]),
            Some(body) => self.bodies.get(body)?.as_deref(),
        }
    }
}

/// All that was recorded, by part of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Record {
    accesses: FxHashMap<(u64, Op, u32), Requests>,
    branches: FxHashMap<u64, Ways>,
}

impl Record {
    /// What was recorded of an access; nothing recorded is nothing executed. `None` where it is not known.
    pub(crate) fn access(&self, draft: &AccessDraft, leading: &Leading) -> Option<&Requests> {
        static NONE: std::sync::LazyLock<Requests> = std::sync::LazyLock::new(Requests::default);
        let part = draft.origin?;
        // A body for several calls touches no memory but the thread's own.
        let [way] = leading.to(part)? else {
            return None;
        };
        let found = self
            .accesses
            .get(&(part.behind(*way), draft.op, draft.piece));
        let found = found.unwrap_or(&NONE);
        (!found.unsure).then_some(found)
    }

    /// The same of a branch.
    pub(crate) fn branch(&self, draft: &BranchDraft, leading: &Leading) -> Option<Ways> {
        let part = draft.origin?;
        let mut sum = Ways::default();
        for way in leading.to(part)? {
            if let Some(found) = self.branches.get(&part.behind(*way)) {
                sum.add(found);
            }
        }
        (!sum.unsure).then_some(sum)
    }
}

/// Runs the launch; `None` where it is too much, or something in it is not followed.
pub(crate) fn run(
    kernel: &Kernel,
    profile: &Profile,
    launch: &Launch,
    arguments: &[(String, i64, bool)],
) -> Option<Record> {
    let lanes = profile.warp_size as usize;
    let warps = launch.warps_per_block(profile.warp_size);
    let all = launch.blocks().checked_mul(warps)?;
    if lanes > LANES || all > u64::from(MOST_STEPS) / 4 {
        return None;
    }
    let mut machine = Machine::new(kernel, profile, launch, arguments)?;
    let threads = launch.threads_per_block();
    for block in 0..launch.blocks() {
        machine.block = split(block, launch.grid);
        for warp in 0..warps {
            let first = warp * lanes as u64;
            let there = (threads - first).min(lanes as u64);
            machine.warp(first, u64::MAX >> (64 - there))?;
        }
    }
    Some(machine.record)
}

fn split(number: u64, extents: [u64; 3]) -> [i64; 3] {
    let [x, y, _] = extents;
    [number % x, number / x % y, number / x / y].map(|part| part as i64)
}

/// Lanes that leave a function or a loop before its end.
#[derive(Debug, Default, Clone, Copy)]
struct Exits {
    /// Surely.
    gone: u64,
    /// Perhaps: they stay, unsure.
    perhaps: u64,
}

/// A loop being executed.
#[derive(Debug, Default, Clone, Copy)]
struct Turn {
    broke: Exits,
    continued: Exits,
}

/// One warp at work.
struct Machine<'a> {
    kernel: &'a Kernel,
    profile: &'a Profile,
    launch: &'a Launch,
    lanes: usize,
    parameters: Vec<(VarId, Value)>,
    record: Record,
    steps: u32,
    /// The calls around what is executed.
    way: Part,
    block: [i64; 3],
    thread: [Value; 3],
    variables: Vec<Value>,
    /// Integers in a thread's own arrays: by array, lane and byte; with their size.
    local: FxHashMap<(VarId, usize, i64), (u64, i64)>,
    /// Lanes that may not be where the others are.
    unsure: u64,
    /// Of the functions being executed, the kernel first.
    frames: Vec<Exits>,
    turns: Vec<Turn>,
}

/// Nothing: the execution is given up.
type Done<T> = Option<T>;

impl<'a> Machine<'a> {
    fn new(
        kernel: &'a Kernel,
        profile: &'a Profile,
        launch: &'a Launch,
        arguments: &[(String, i64, bool)],
    ) -> Option<Machine<'a>> {
        let mut parameters = Vec::new();
        for (at, var) in kernel.vars.iter().enumerate() {
            let id = VarId(at as u32);
            let value = match (&var.ty, var.storage) {
                (Type::Pointer(..), Storage::Param(_) | Storage::DynamicShared) => Value {
                    array: Some(id),
                    ..Value::all(0)
                },
                (ty @ Type::Int { .. }, Storage::Param(_)) => {
                    let given = arguments.iter().find(|(name, ..)| *name == var.name);
                    match given {
                        Some((_, value, false)) => Value::all(numbers::fitted(*value, ty)),
                        _ => return None,
                    }
                }
                _ => continue,
            };
            parameters.push((id, value));
        }
        Some(Machine {
            kernel,
            profile,
            launch,
            lanes: profile.warp_size as usize,
            parameters,
            record: Record::default(),
            steps: 0,
            way: Part::whole(None),
            block: [0; 3],
            thread: [Value::UNKNOWN; 3],
            variables: vec![Value::UNKNOWN; kernel.vars.len()],
            local: FxHashMap::default(),
            unsure: 0,
            frames: Vec::new(),
            turns: Vec::new(),
        })
    }

    /// One warp from beginning to end.
    fn warp(&mut self, first: u64, active: u64) -> Done<()> {
        let block = self.launch.block;
        for axis in 0..3 {
            self.thread[axis] = Value::of(|lane| split(first + lane as u64, block)[axis]);
        }
        self.variables.fill(Value::UNKNOWN);
        for (id, value) in &self.parameters {
            self.variables[id.0 as usize] = *value;
        }
        self.local.clear();
        self.unsure = 0;
        self.frames.push(Exits::default());
        let mut here = active;
        let kernel = self.kernel;
        self.all(&kernel.body, &mut here)?;
        self.frames.pop();
        Some(())
    }

    /// What a part of the kernel is known by.
    fn part<T>(&self, part: &T) -> u64 {
        self.way.within(address(part)).behind(0)
    }

    fn step(&mut self) -> Done<()> {
        self.steps += 1;
        (self.steps <= MOST_STEPS).then_some(())
    }

    /// The memory that an array lies in.
    fn space(&self, id: VarId) -> Space {
        crate::evaluate::space_of(self.kernel.var(id))
    }

    /// A barrier, a value: nothing that a warp does by itself. What is not understood ends it all.
    fn understood(statement: &StmtKind) -> bool {
        !matches!(statement, StmtKind::Unknown(_))
    }
}
