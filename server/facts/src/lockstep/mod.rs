//! The launch on numbers, warp by warp in lock step: what the symbolic execution leaves open under a launch and
//! arguments that are known.
//!
//! Each lane of a warp holds a number or nothing that is known (data). Where a condition is not known for a lane,
//! both sides are executed with the lane *unsure*: what it writes is not known, and what is recorded meanwhile is
//! not used. So what is used depends on no data but what was given: contents of array parameters, and what the
//! kernel copies of them to shared memory.

mod evaluate;
mod execute;
mod held;
mod numbers;

use rustc_hash::FxHashMap;
use warplens_ir::{Kernel, StmtKind, Storage, Type, VarId};
use warplens_machine::Profile;

use crate::Contents;
use crate::access::{AccessDraft, Sums};
use crate::branch::BranchDraft;
use crate::facts::{Launch, Op, Space};
use crate::value::{Part, address};
use numbers::{LANES, Value};

/// Statements and expressions executed by some warp, at most: a keystroke waits for them.
const MOST_STEPS: u32 = 400_000;

/// The same where contents of memory were given, which happens on a command line: behind it no further block is
/// begun, and those that ran stand for all.
const MOST_STEPS_ON_CONTENTS: u32 = 8_000_000;

/// Behind this part of the steps it is looked how far they will go: a launch that will not come to its end is given
/// up early. Blocks are run in an order that is spread over the launch, and where they differ it may take somewhat less than
/// the first of them say.
const FIRST_LOOK: u32 = MOST_STEPS / 16;
const TOO_MUCH: f64 = 1.5 * MOST_STEPS as f64;

/// One block may take the steps so many times over.
const LARGEST_BLOCK: u32 = 4;

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
    /// Threads that come by.
    pub(crate) threads: f64,
    /// Iterations of warps.
    pub(crate) iterations: f64,
    /// Iterations of threads.
    pub(crate) thread_iterations: f64,
    pub(crate) agreement: Agreement,
    pub(crate) unsure: bool,
}

impl Ways {
    /// Makes a sample stand for so many times as much.
    fn scale(&mut self, times: f64) {
        for sum in [
            &mut self.evaluations,
            &mut self.taken,
            &mut self.split,
            &mut self.taken_threads,
            &mut self.threads,
            &mut self.iterations,
            &mut self.thread_iterations,
        ] {
            *sum *= times;
        }
    }

    /// Those of another call.
    fn add(&mut self, other: &Ways) {
        self.evaluations += other.evaluations;
        self.taken += other.taken;
        self.split += other.split;
        self.taken_threads += other.taken_threads;
        self.threads += other.threads;
        self.iterations += other.iterations;
        self.thread_iterations += other.thread_iterations;
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
    /// Blocks that ran; fewer than the launch has where it is too much.
    pub(crate) blocks: u64,
    /// Arrays of which more was read than was given: the array, and the first element behind its end.
    pub(crate) beyond: Vec<(String, i64)>,
    /// Arrays whose contents say nothing, because the kernel writes to them.
    pub(crate) written: Vec<String>,
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

/// What is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) profile: &'a Profile,
    pub(crate) launch: &'a Launch,
    pub(crate) arguments: &'a [(String, i64, bool)],
    /// Without any, arguments that were assumed are not run on, and a launch runs whole or not at all.
    pub(crate) contents: &'a [Contents],
}

/// Runs the launch; `None` where it is too much, or something in it is not followed.
pub(crate) fn run(question: &Question) -> Option<Record> {
    let launch = question.launch;
    let lanes = question.profile.warp_size as usize;
    let warps = launch.warps_per_block(question.profile.warp_size);
    let all = launch.blocks().checked_mul(warps)?;
    let on_contents = !question.contents.is_empty();
    if lanes > LANES || !on_contents && all > u64::from(MOST_STEPS) / 4 {
        return None;
    }
    let mut machine = Machine::new(question)?;
    if !on_contents {
        for block in spread(launch.blocks()) {
            machine.block(block, warps)?;
        }
        return Some(machine.record);
    }
    loop {
        machine.blocks(warps)?;
        if machine.given.all_kept() {
            return Some(machine.record);
        }
        // What was read of an array that the kernel turned out to write was not known after all.
        machine.begin_anew();
    }
}

/// Numbers below `count` in an order whose beginnings are spread evenly.
fn spread(count: u64) -> impl Iterator<Item = u64> {
    let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
    let all = 1u64.checked_shl(bits).unwrap_or(u64::MAX);
    let order = move |at: u64| at.reverse_bits().checked_shr(64 - bits).unwrap_or(0);
    (0..all).map(order).filter(move |number| *number < count)
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
    /// Blocks that ran or began to.
    begun: u64,
    /// The calls around what is executed.
    way: Part,
    block: [i64; 3],
    thread: [Value; 3],
    variables: Vec<Value>,
    /// Integers in a thread's own arrays: by array, lane and byte; with their size.
    local: FxHashMap<(VarId, usize, i64), (u64, i64)>,
    /// What array parameters were given to point to.
    given: held::Given<'a>,
    /// What the block keeps in shared memory of what was given.
    shared: held::Shared,
    /// Lanes that may not be where the others are.
    unsure: u64,
    /// Of the functions being executed, the kernel first.
    frames: Vec<Exits>,
    turns: Vec<Turn>,
}

/// Nothing: the execution is given up.
type Done<T> = Option<T>;

impl<'a> Machine<'a> {
    fn new(question: &Question<'a>) -> Option<Machine<'a>> {
        let Question {
            kernel,
            profile,
            launch,
            arguments,
            contents,
        } = *question;
        let on_contents = !contents.is_empty();
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
                        Some((_, value, assumed)) if on_contents || !assumed => {
                            Value::all(numbers::fitted(*value, ty))
                        }
                        None if on_contents => {
                            Value::all(numbers::fitted(crate::execute::DEFAULT_ARGUMENT, ty))
                        }
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
            begun: 0,
            way: Part::whole(None),
            block: [0; 3],
            thread: [Value::UNKNOWN; 3],
            variables: vec![Value::UNKNOWN; kernel.vars.len()],
            local: FxHashMap::default(),
            given: held::Given::new(kernel, contents),
            shared: held::Shared::default(),
            unsure: 0,
            frames: Vec::new(),
            turns: Vec::new(),
        })
    }

    /// As many blocks of the launch as the steps suffice for, spread over it.
    fn blocks(&mut self, warps: u64) -> Done<()> {
        let launch = self.launch;
        let writes_shared = self
            .kernel
            .vars
            .iter()
            .any(|var| matches!(var.storage, Storage::Shared | Storage::DynamicShared));
        for block in spread(launch.blocks()) {
            if self.steps > MOST_STEPS_ON_CONTENTS {
                break;
            }
            self.shared.clear();
            if writes_shared {
                // Warps run one behind the other: what they read of shared memory is known once all have written.
                let record = std::mem::take(&mut self.record);
                self.shared.writing = true;
                self.block(block, warps)?;
                self.shared.writing = false;
                self.record = record;
            }
            self.block(block, warps)?;
            self.record.blocks += 1;
        }
        let times = launch.blocks() as f64 / (self.record.blocks as f64).max(1.0);
        for requests in self.record.accesses.values_mut() {
            requests.sums.scale(times);
        }
        for ways in self.record.branches.values_mut() {
            ways.scale(times);
        }
        let name = |id: VarId| self.kernel.var(id).name.clone();
        self.record.beyond = self.given.beyond().map(|(id, at)| (name(id), at)).collect();
        self.record.written = self.given.written().map(name).collect();
        Some(())
    }

    /// Forgets what was recorded.
    fn begin_anew(&mut self) {
        self.record = Record::default();
        self.steps = 0;
        self.begun = 0;
        self.given.drop_written();
    }

    /// All warps of a block.
    fn block(&mut self, block: u64, warps: u64) -> Done<()> {
        self.block = split(block, self.launch.grid);
        self.begun += 1;
        let threads = self.launch.threads_per_block();
        for warp in 0..warps {
            let first = warp * self.lanes as u64;
            let there = (threads - first).min(self.lanes as u64);
            self.warp(first, u64::MAX >> (64 - there))?;
            if self.is_too_much() {
                return None;
            }
        }
        Some(())
    }

    /// True where all blocks are to be run, and those that began say, as far as they are, that the steps will not do.
    fn is_too_much(&self) -> bool {
        let each = f64::from(self.steps) / self.begun as f64;
        self.given.is_empty()
            && self.steps > FIRST_LOOK
            && each * self.launch.blocks() as f64 > TOO_MUCH
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
        let most = if self.given.is_empty() {
            MOST_STEPS
        } else {
            LARGEST_BLOCK * MOST_STEPS_ON_CONTENTS
        };
        (self.steps <= most).then_some(())
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
