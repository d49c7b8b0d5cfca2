//! Runs a launch on concrete numbers, warp by warp in lock step.
//!
//! In: a kernel, its launch, its arguments, the contents of arrays where the user gave them. Out: a [`Record`] of the
//! requests, branches and iterations that the symbolic execution could not decide. What holds: a recorded figure is exact,
//! or a sample of blocks spread over the grid ([`Record::blocks`] says how many ran).
//!
//! Each lane holds a number, or is unknown because it depends on data. Where a lane's predicate is unknown, the lane
//! executes both sides *unsure*: its writes become unknown, and nothing recorded meanwhile is used. So every figure depends
//! on no data but the contents given for array parameters and what the kernel copies of them to shared memory.

mod evaluate;
mod execute;
mod memory;
mod numbers;

use rustc_hash::FxHashMap;
use warplens_ir::{Kernel, StmtKind, Storage, Type, VarId, stop};
use warplens_machine::Profile;

use crate::Contents;
use crate::access::Sums;
use crate::draft::{AccessDraft, BranchDraft};
use crate::facts::{Launch, Op, Space};
use crate::value::{DEFAULT_ARGUMENT, Part, address, space_of};
use numbers::{LANES, LaneValues};

/// The most statements and expressions that all warps together execute: a keystroke waits for them.
const MOST_STEPS: u32 = 400_000;

/// The limit where the user gave contents of memory, which only the command line does; contents that the host program fills
/// have [`MOST_STEPS`], for every keystroke waits for them. Beyond it no further block starts, and the blocks that ran are a
/// sample of the grid.
const MOST_STEPS_ON_CONTENTS: u32 = 8_000_000;

/// After this many steps the run extrapolates its total and stops where that exceeds [`TOO_MUCH`]. Blocks run in an order
/// spread over the grid, so the first ones are representative; the margin covers blocks that differ.
const FIRST_LOOK: u32 = MOST_STEPS / 16;
const TOO_MUCH: f64 = 1.5 * MOST_STEPS as f64;

/// A single block may take this multiple of the limit.
const LARGEST_BLOCK: u32 = 4;

/// The requests of one access.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) sums: Sums,
    /// Some lane's predicate or address was unknown.
    pub(crate) unsure: bool,
}

/// Whether all lanes of the launch take the same branch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    #[default]
    NoLane,
    One(i64),
    Several,
}

/// Counts of one branch or loop, summed over warps.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct BranchCounts {
    /// Warps that evaluate it.
    pub(crate) evaluations: f64,
    /// Warps with a lane that takes it.
    pub(crate) taken: f64,
    /// Warps that diverge.
    pub(crate) split: f64,
    /// Threads that take it.
    pub(crate) taken_threads: f64,
    /// Threads that evaluate it.
    pub(crate) threads: f64,
    /// Iterations, per warp.
    pub(crate) iterations: f64,
    /// Iterations, per thread.
    pub(crate) thread_iterations: f64,
    pub(crate) agreement: Agreement,
    pub(crate) unsure: bool,
}

impl BranchCounts {
    /// Extrapolates a sample: multiplies every sum.
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

    /// Adds the counts of another call.
    fn add(&mut self, other: &BranchCounts) {
        self.evaluations += other.evaluations;
        self.taken += other.taken;
        self.split += other.split;
        self.taken_threads += other.taken_threads;
        self.threads += other.threads;
        self.iterations += other.iterations;
        self.thread_iterations += other.thread_iterations;
        self.unsure |= other.unsure;
        self.agreement = match (self.agreement, other.agreement) {
            (agreement, Agreement::NoLane) | (Agreement::NoLane, agreement) => agreement,
            (a, b) if a == b => a,
            _ => Agreement::Several,
        };
    }
}

/// The call paths to each function body that the symbolic execution ran once for several calls.
#[derive(Debug, Default)]
pub(crate) struct CallPaths {
    /// Hashes of the call paths by body; `None` where there are too many.
    pub(crate) bodies: Vec<Option<Vec<u64>>>,
}

impl CallPaths {
    fn to(&self, part: Part) -> Option<&[u64]> {
        match part.body {
            None => Some(&[0]),
            Some(body) => self.bodies.get(body)?.as_deref(),
        }
    }
}

/// What the run recorded, by part of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Record {
    accesses: FxHashMap<(u64, Op, u32), Requests>,
    branches: FxHashMap<u64, BranchCounts>,
    /// Blocks that ran; fewer than the grid has where the run reached its limit.
    pub(crate) blocks: u64,
    /// Arrays read past the end of their given contents, each with the first such element.
    pub(crate) past_end: Vec<(String, i64)>,
    /// Arrays whose given contents are unusable because the kernel writes to them.
    pub(crate) written: Vec<String>,
}

impl Record {
    /// The requests of an access; zero where no warp executed it. `None` where they are unknown.
    pub(crate) fn access(&self, draft: &AccessDraft, leading: &CallPaths) -> Option<&Requests> {
        static NONE: std::sync::LazyLock<Requests> = std::sync::LazyLock::new(Requests::default);
        let part = draft.origin?;
        // A body shared by several calls accesses only the thread's local memory.
        let [path] = leading.to(part)? else {
            return None;
        };
        let found = self
            .accesses
            .get(&(part.behind(*path), draft.op, draft.piece));
        let found = found.unwrap_or(&NONE);
        (!found.unsure).then_some(found)
    }

    /// The counts of a branch, summed over the call paths. `None` where they are unknown.
    pub(crate) fn branch(&self, draft: &BranchDraft, leading: &CallPaths) -> Option<BranchCounts> {
        let part = draft.origin?;
        let mut sum = BranchCounts::default();
        for path in leading.to(part)? {
            if let Some(found) = self.branches.get(&part.behind(*path)) {
                sum.add(found);
            }
        }
        (!sum.unsure).then_some(sum)
    }
}

/// What to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchInput<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) profile: &'a Profile,
    pub(crate) launch: &'a Launch,
    pub(crate) arguments: &'a [(String, i64, bool)],
    /// Contents of arrays. Where there are none, assumed arguments are refused, and the grid runs whole or not at all.
    pub(crate) contents: &'a [Contents],
}

/// Runs the launch; `None` where it takes too many steps or contains a construct that is not modelled.
pub(crate) fn run(question: &LaunchInput) -> Option<Record> {
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
        if machine.given.contents_hold() {
            return Some(machine.record);
        }
        // The kernel wrote to an array after reading its given contents: run again without them.
        machine.restart();
    }
}

/// The numbers below `count`, ordered so that every prefix is spread evenly.
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

/// Masks of lanes that leave a function or a loop early.
#[derive(Debug, Default, Clone, Copy)]
struct Exits {
    /// They left.
    gone: u64,
    /// They may have left: they stay active, unsure.
    perhaps: u64,
}

/// The early exits of the loop being executed.
#[derive(Debug, Default, Clone, Copy)]
struct LoopExits {
    broke: Exits,
    continued: Exits,
}

/// The interpreter of one warp at a time.
struct Machine<'a> {
    kernel: &'a Kernel,
    profile: &'a Profile,
    launch: &'a Launch,
    lanes: usize,
    parameters: Vec<(VarId, LaneValues)>,
    record: Record,
    steps: u32,
    /// Steps after which no further block starts, where contents are known.
    most_on_contents: u32,
    /// Blocks started.
    begun: u64,
    /// The call path of the code being executed.
    path: Part,
    block: [i64; 3],
    thread: [LaneValues; 3],
    variables: Vec<LaneValues>,
    /// Integers in local arrays, with their size, by array, lane and byte.
    local: FxHashMap<(VarId, usize, i64), (u64, i64)>,
    /// The contents given for array parameters.
    given: memory::ArrayContents<'a>,
    /// What the block stored in shared memory.
    shared: memory::Shared,
    /// Mask of lanes whose predicate is unknown.
    unsure: u64,
    /// Early exits of the functions being executed, the kernel first.
    frames: Vec<Exits>,
    loops: Vec<LoopExits>,
}

/// `None`: the run gives up.
type Attempt<T> = Option<T>;

impl<'a> Machine<'a> {
    fn new(question: &LaunchInput<'a>) -> Option<Machine<'a>> {
        let LaunchInput {
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
                (Type::Pointer(..), Storage::Param(_) | Storage::DynamicShared) => LaneValues {
                    array: Some(id),
                    ..LaneValues::all(0)
                },
                (ty @ Type::Int { .. }, Storage::Param(_)) => {
                    let given = arguments.iter().find(|(name, ..)| *name == var.name);
                    match given {
                        Some((_, value, assumed)) if on_contents || !assumed => {
                            LaneValues::all(numbers::fitted(*value, ty))
                        }
                        None if on_contents => {
                            LaneValues::all(numbers::fitted(DEFAULT_ARGUMENT, ty))
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
            most_on_contents: if contents.iter().all(|one| one.of_run) {
                MOST_STEPS
            } else {
                MOST_STEPS_ON_CONTENTS
            },
            begun: 0,
            path: Part::whole(None),
            block: [0; 3],
            thread: [LaneValues::UNKNOWN; 3],
            variables: vec![LaneValues::UNKNOWN; kernel.vars.len()],
            local: FxHashMap::default(),
            given: memory::ArrayContents::new(kernel, contents),
            shared: memory::Shared::default(),
            unsure: 0,
            frames: Vec::new(),
            loops: Vec::new(),
        })
    }

    /// Runs as many blocks as the limit allows, spread over the grid.
    fn blocks(&mut self, warps: u64) -> Attempt<()> {
        let launch = self.launch;
        let writes_shared = self
            .kernel
            .vars
            .iter()
            .any(|var| matches!(var.storage, Storage::Shared | Storage::DynamicShared));
        for block in spread(launch.blocks()) {
            if self.steps > self.most_on_contents {
                break;
            }
            self.shared.clear();
            if writes_shared {
                // Warps run one after another, so shared memory is known only after all have written: run the block twice.
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
        for counts in self.record.branches.values_mut() {
            counts.scale(times);
        }
        let name = |id: VarId| self.kernel.var(id).name.clone();
        self.record.past_end = self
            .given
            .past_end()
            .map(|(id, at)| (name(id), at))
            .collect();
        self.record.written = self.given.written().map(name).collect();
        Some(())
    }

    /// Drops the record and the arrays that the kernel writes to.
    fn restart(&mut self) {
        self.record = Record::default();
        self.steps = 0;
        self.begun = 0;
        self.given.drop_written();
    }

    /// Runs all warps of a block.
    fn block(&mut self, block: u64, warps: u64) -> Attempt<()> {
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

    /// True where the whole grid must run and the blocks so far extrapolate to too many steps.
    fn is_too_much(&self) -> bool {
        let each = f64::from(self.steps) / self.begun as f64;
        self.given.is_empty()
            && self.steps > FIRST_LOOK
            && each * self.launch.blocks() as f64 > TOO_MUCH
    }

    /// Runs one warp.
    fn warp(&mut self, first: u64, launched: u64) -> Attempt<()> {
        let block = self.launch.block;
        for axis in 0..3 {
            self.thread[axis] = LaneValues::of(|lane| split(first + lane as u64, block)[axis]);
        }
        self.variables.fill(LaneValues::UNKNOWN);
        for (id, value) in &self.parameters {
            self.variables[id.0 as usize] = *value;
        }
        self.local.clear();
        self.unsure = 0;
        self.frames.push(Exits::default());
        let mut active = launched;
        let kernel = self.kernel;
        self.all(&kernel.body, &mut active)?;
        self.frames.pop();
        Some(())
    }

    /// The key of a statement or expression on the current call path.
    fn part<T>(&self, part: &T) -> u64 {
        self.path.within(address(part)).behind(0)
    }

    fn step(&mut self) -> Attempt<()> {
        stop::check();
        self.steps += 1;
        let most = if self.given.is_empty() {
            MOST_STEPS
        } else {
            LARGEST_BLOCK * self.most_on_contents
        };
        (self.steps <= most).then_some(())
    }

    /// The memory space of an array.
    fn space(&self, id: VarId) -> Space {
        space_of(self.kernel.var(id))
    }

    /// False for a statement that the front end could not lower: the run gives up.
    fn understood(statement: &StmtKind) -> bool {
        !matches!(statement, StmtKind::Unknown(_))
    }
}
