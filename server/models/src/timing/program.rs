//! What a warp executes, as steps that an issue engine can follow: the facts' flow laid flat.
//!
//! Facts are averages: a stretch has 3.4 integer instructions, a branch is taken by 0.7 of the warps. An engine
//! issues whole instructions, so each warp carries what is left over to the next stretch (error diffusion): over
//! many stretches a warp issues what the facts say, and no figure depends on chance.
//!
//! Facts keep the order of the source; compilers do not. Loops of few known iterations are unrolled, and in straight
//! code loads of device memory go as far ahead of what waits for them as the registers allow ([`hoist`]).

use std::collections::{HashMap, VecDeque};

use warplens_facts::facts::{Alias, Link, Node, Op, SourceFacts, Space};
use warplens_machine::{Mix, Pipe};

use crate::input::positive;
use crate::wfg::graph::is_by_one;
use crate::work::Work;
use crate::{ExecutedAccess, ModelInput};

/// The pipes in the order in which a stretch issues to them: addresses first, its branch last.
pub(crate) const ORDER: [Pipe; Pipe::ALL.len()] = [
    Pipe::Int,
    Pipe::IntMul,
    Pipe::Conversion,
    Pipe::ToFloat,
    Pipe::Fp16,
    Pipe::Tensor,
    Pipe::Fp32Multiply,
    Pipe::Fp32,
    Pipe::Fp64,
    Pipe::Sfu,
    Pipe::Shuffle,
    Pipe::Branch,
];

/// True for what makes addresses and conditions; the rest makes values.
pub(crate) fn is_integer(pipe: Pipe) -> bool {
    matches!(pipe, Pipe::Int | Pipe::IntMul | Pipe::Branch)
}

/// How often a pipe is issued to, by its place in [`ORDER`]; the others are not.
pub(crate) type Counts = Vec<(usize, f64)>;

/// One step. Places to go on at are indices into [`Program::steps`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Straight computation.
    Compute {
        node: usize,
        counts: Counts,
        /// Of the instructions the share that wait for one another.
        chain: f64,
        uses: Vec<usize>,
        /// The line it is on: accesses of that line wait for its addresses.
        slot: usize,
        /// Its values go on from those that the line made last: a sum in a loop.
        linked: bool,
    },
    /// One memory instruction.
    Access {
        node: usize,
        access: usize,
        /// What it loads, as `uses` name it.
        value: usize,
        uses: Vec<usize>,
        slot: usize,
        /// A load of shared memory that the next arithmetic instruction reads as its operand.
        operand: bool,
        /// A store of a value that was computed.
        writes: bool,
    },
    /// A barrier.
    Barrier { node: usize },
    /// The head of a loop, which ends behind its [`Step::End`].
    Loop {
        id: usize,
        trips: f64,
        behind: usize,
    },
    /// The end of an iteration.
    End { body: usize },
    /// A branch: the taken side follows.
    Branch {
        id: usize,
        taken: f64,
        other: f64,
        otherwise: usize,
        behind: usize,
    },
    /// The end of a branch's taken side.
    Side,
    /// The end of a branch's other side.
    Join,
}

impl Step {
    /// True where a warp may issue something here.
    fn issues(&self) -> bool {
        match self {
            Step::Compute { counts, .. } => !counts.is_empty(),
            Step::Access { .. } | Step::Barrier { .. } => true,
            _ => false,
        }
    }
}

/// The steps of one warp.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Program {
    pub steps: Vec<Step>,
    pub loops: usize,
    pub branches: usize,
    /// Lines.
    pub slots: usize,
    /// Loaded values.
    pub values: usize,
}

impl Program {
    /// Lays the flow flat. Nodes are numbered as in [`Work::graph`].
    pub fn new(work: &Work) -> Program {
        let mut builder = Builder {
            work,
            input: work.input,
            program: Program::default(),
            slots: HashMap::new(),
            nodes: 0,
            values: (0..work.input.accesses.len()).collect(),
            seen: vec![false; work.input.accesses.len()],
            linked: false,
            written_out: 0,
        };
        builder.program.values = builder.values.len();
        builder.sequence(&work.input.flow.nodes);
        builder.program.slots = builder.slots.len();
        let mut program = builder.program;
        hoist(work, &mut program.steps);
        program
    }

    /// Instructions that a warp issues, on average.
    pub fn instructions(&self, barriers: bool) -> f64 {
        let mut sum = 0.0;
        let mut times = 1.0;
        // What holds behind a loop or a branch, and on a branch's other side.
        let mut outside: Vec<(f64, f64)> = Vec::new();
        for step in &self.steps {
            match step {
                Step::Compute { counts, .. } => sum += times * total(counts),
                Step::Access { operand, .. } => sum += if *operand { 0.0 } else { times },
                Step::Barrier { .. } => sum += if barriers { times } else { 0.0 },
                Step::Loop { trips, .. } => {
                    outside.push((times, 0.0));
                    times *= trips;
                }
                Step::Branch { taken, other, .. } => {
                    outside.push((times, times * other));
                    times *= taken;
                }
                Step::Side => times = outside.last().map_or(times, |(_, other)| *other),
                Step::End { .. } | Step::Join => {
                    times = outside.pop().map_or(times, |(behind, _)| behind);
                }
            }
        }
        sum
    }
}

struct Builder<'w> {
    work: &'w Work<'w>,
    input: &'w ModelInput,
    program: Program,
    slots: HashMap<u32, usize>,
    nodes: usize,
    /// By access, the value that it loaded last, and whether it is anywhere so far.
    values: Vec<usize>,
    seen: Vec<bool>,
    /// Inside a loop that sums up.
    linked: bool,
    /// Nodes that loops were unrolled to.
    written_out: usize,
}

/// Iterations of a loop that compilers write out.
const FEW_TRIPS: f64 = 16.0;

/// Most nodes that one loop is unrolled to, and all loops together.
const MOST_OF_ONE: usize = 512;
const MOST_WRITTEN_OUT: usize = 4096;

impl Builder<'_> {
    fn sequence(&mut self, flow: &[Node]) {
        for (at, node) in flow.iter().enumerate() {
            match node {
                Node::Compute {
                    mix,
                    uses,
                    chain,
                    line,
                } => {
                    let slot = self.slot(*line);
                    let node = self.node();
                    let counts = counts(mix);
                    let total = total(&counts);
                    self.program.steps.push(Step::Compute {
                        node,
                        counts,
                        chain: if total > 0.0 {
                            positive(*chain) / total
                        } else {
                            1.0
                        },
                        uses: self.values(uses),
                        slot,
                        linked: self.linked,
                    });
                }
                Node::Access { access, uses } => {
                    let Some(facts) = self.input.accesses.get(*access) else {
                        continue;
                    };
                    let operand = facts.space == Space::Shared
                        && facts.op == Op::Load
                        && self.work.profile().shared_operand_latency.is_some()
                        && self.next_reads(&flow[at + 1..], *access);
                    let slot = self.slot(facts.site.line);
                    let node = self.node();
                    let needs = self.values(uses);
                    let value = self.value(*access);
                    self.program.steps.push(Step::Access {
                        node,
                        access: *access,
                        value,
                        uses: needs,
                        slot,
                        operand,
                        writes: facts.op == Op::Store && uses.is_empty(),
                    });
                }
                Node::Barrier { .. } => {
                    let node = self.node();
                    self.program.steps.push(Step::Barrier { node });
                }
                Node::Loop {
                    trips, body, line, ..
                } => self.repeat(positive(*trips), body, *line),
                Node::Branch {
                    taken,
                    other,
                    then,
                    otherwise,
                    ..
                } => self.branch((*taken, *other), then, otherwise),
            }
        }
    }

    /// True where the next computation needs what the access loads and no other load of shared memory is in
    /// between: an instruction takes one operand from there.
    fn next_reads(&self, behind: &[Node], access: usize) -> bool {
        for node in behind {
            match node {
                Node::Access {
                    access: other,
                    uses,
                } => {
                    let shared = |access: &ExecutedAccess| access.space == Space::Shared;
                    if uses.contains(&access) || self.input.accesses.get(*other).is_some_and(shared)
                    {
                        return false;
                    }
                }
                Node::Compute { uses, .. } => return uses.contains(&access),
                _ => return false,
            }
        }
        false
    }

    fn repeat(&mut self, trips: f64, body: &[Node], line: u32) {
        let outside = self.linked;
        self.linked = sums_up(&self.input.facts, body, line);
        let few = trips.fract() == 0.0 && (1.0..=FEW_TRIPS).contains(&trips);
        let copies = if few { trips as usize } else { 1 };
        let size = straight(body).map(|nodes| nodes * copies).filter(|nodes| {
            few && *nodes <= MOST_OF_ONE && self.written_out + nodes <= MOST_WRITTEN_OUT
        });
        if let Some(size) = size {
            self.written_out += size;
            let first = self.nodes;
            for _ in 0..copies {
                self.nodes = first;
                self.sequence(body);
            }
            self.linked = outside;
            return;
        }
        let id = self.program.loops;
        let head = self.program.steps.len();
        self.program.loops += 1;
        self.program.steps.push(Step::Loop {
            id,
            trips,
            behind: 0,
        });
        self.sequence(body);
        self.linked = outside;
        if !self.program.steps[head + 1..].iter().any(Step::issues) {
            // Nothing to wait for, however often.
            self.program.steps.truncate(head);
            return;
        }
        self.program.steps.push(Step::End { body: head + 1 });
        let end = self.program.steps.len();
        if let Step::Loop { behind, .. } = &mut self.program.steps[head] {
            *behind = end;
        }
    }

    /// The values that accesses loaded last.
    fn values(&self, uses: &[usize]) -> Vec<usize> {
        uses.iter()
            .filter_map(|access| self.values.get(*access).copied())
            .collect()
    }

    /// A place for what an access loads: each copy of an unrolled loop has its own.
    fn value(&mut self, access: usize) -> usize {
        if self.seen[access] {
            self.values[access] = self.program.values;
            self.program.values += 1;
        }
        self.seen[access] = true;
        self.values[access]
    }

    fn branch(&mut self, shares: (f64, f64), then: &[Node], otherwise: &[Node]) {
        let accesses = &self.work.input.accesses;
        let (taken, other) = self.work.branching().weights(
            (fraction(shares.0), fraction(shares.1)),
            (then.is_empty(), otherwise.is_empty()),
            is_by_one(then, accesses) || is_by_one(otherwise, accesses),
        );
        let id = self.program.branches;
        self.program.branches += 1;
        let head = self.program.steps.len();
        self.program.steps.push(Step::Branch {
            id,
            taken,
            other,
            otherwise: 0,
            behind: 0,
        });
        self.sequence(then);
        self.program.steps.push(Step::Side);
        let second = self.program.steps.len();
        self.sequence(otherwise);
        self.program.steps.push(Step::Join);
        let end = self.program.steps.len();
        if let Step::Branch {
            otherwise, behind, ..
        } = &mut self.program.steps[head]
        {
            *otherwise = second;
            *behind = end;
        }
    }

    fn slot(&mut self, line: u32) -> usize {
        let next = self.slots.len();
        *self.slots.entry(line).or_insert(next)
    }

    fn node(&mut self) -> usize {
        self.nodes += 1;
        self.nodes - 1
    }
}

/// Nodes of code without barriers, branches and loops of many iterations, loops unrolled; `None` for other code.
fn straight(body: &[Node]) -> Option<usize> {
    let mut nodes: usize = 0;
    for node in body {
        nodes = nodes.saturating_add(match node {
            Node::Compute { .. } | Node::Access { .. } => 1,
            Node::Loop { trips, body, .. }
                if trips.fract() == 0.0 && (1.0..=FEW_TRIPS).contains(trips) =>
            {
                straight(body)?.saturating_mul(*trips as usize)
            }
            _ => return None,
        });
    }
    Some(nodes)
}

/// True where most of the values that an iteration makes go on from those of the one before: one after the other.
/// Assumed where it was not looked at.
fn sums_up(facts: &SourceFacts, body: &[Node], line: u32) -> bool {
    let dependence = &facts.dependence;
    let carried = dependence.carried.iter().filter(|it| it.site.line == line);
    let longest = carried
        .map(|carried| {
            let values = carried.chain.links();
            values
                .filter(|(link, _)| !matches!(link, Link::Integer))
                .map(|(_, count)| count)
                .sum()
        })
        .fold(0.0, f64::max);
    let made: f64 = body
        .iter()
        .map(|node| match node {
            Node::Compute { mix, .. } => {
                mix.total() - mix[Pipe::Int] - mix[Pipe::IntMul] - mix[Pipe::Branch]
            }
            _ => 0.0,
        })
        .sum();
    !dependence.complete || (longest > 0.0 && longest >= 0.5 * made)
}

fn counts(mix: &Mix) -> Counts {
    let counts = ORDER.iter().map(|pipe| positive(mix[*pipe]));
    counts
        .enumerate()
        .filter(|(_, count)| *count > 0.0)
        .collect()
}

fn total(counts: &Counts) -> f64 {
    counts.iter().map(|(_, count)| count).sum()
}

fn fraction(value: f64) -> f64 {
    positive(value).min(1.0)
}

/// Loads of device memory go ahead of what waits for others, as compilers place them: no further than stores that may
/// write what they read, and with no more values under way than half of a thread's registers hold.
fn hoist(work: &Work, steps: &mut [Step]) {
    let registers = f64::from(work.input.resources.registers_per_thread.max(16));
    let mut begin = 0;
    while begin < steps.len() {
        let length = steps[begin..]
            .iter()
            .take_while(|step| matches!(step, Step::Compute { .. } | Step::Access { .. }))
            .count();
        if length > 1 {
            hoist_straight(work, &mut steps[begin..begin + length], registers / 2.0);
        }
        begin += length + 1;
    }
}

fn hoist_straight(work: &Work, steps: &mut [Step], room: f64) {
    let accesses = &work.input.accesses;
    let words = |access: usize| f64::from(accesses[access].bytes_per_lane.max(1).div_ceil(4));
    // Loads that need no other load of this code, and what is before them that they cannot pass.
    let mut made: Vec<usize> = Vec::new();
    let mut written: Vec<usize> = Vec::new();
    let mut free = VecDeque::new();
    for (at, step) in steps.iter().enumerate() {
        let Step::Access {
            access,
            value,
            uses,
            ..
        } = step
        else {
            continue;
        };
        let facts = &accesses[*access];
        if facts.op != Op::Load {
            written.push(*access);
        } else if !matches!(facts.space, Space::Shared | Space::Constant) {
            let alone = !uses.iter().any(|needed| made.contains(needed));
            let passes = written.iter().all(|store| apart(&accesses[*store], facts));
            if alone && passes && made.len() < MOST_OF_ONE {
                free.push_back(at);
            }
            made.push(*value);
        }
    }
    if free.len() < 2 {
        return;
    }
    let mut order = Vec::with_capacity(steps.len());
    let mut placed = vec![false; steps.len()];
    let mut flying: Vec<(usize, f64)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if placed[at] {
            continue;
        }
        let (Step::Compute { uses, .. } | Step::Access { uses, .. }) = step else {
            continue;
        };
        if uses
            .iter()
            .any(|needed| flying.iter().any(|(value, _)| value == needed))
        {
            // Something waits: what can be asked for goes first.
            while let Some(&load) = free.front() {
                let Step::Access { access, value, .. } = &steps[load] else {
                    break;
                };
                let held: f64 = flying.iter().map(|(_, words)| words).sum();
                if placed[load] {
                    free.pop_front();
                } else if held + words(*access) <= room {
                    free.pop_front();
                    placed[load] = true;
                    order.push(load);
                    flying.push((*value, words(*access)));
                } else {
                    break;
                }
            }
            flying.retain(|(value, _)| !uses.contains(value));
        }
        placed[at] = true;
        order.push(at);
        if let Step::Access { access, value, .. } = step
            && made.contains(value)
        {
            flying.push((*value, words(*access)));
        }
    }
    let ordered: Vec<Step> = order.iter().map(|at| steps[*at].clone()).collect();
    steps.clone_from_slice(&ordered);
}

/// True where a load certainly reads nothing that a store writes.
fn apart(store: &ExecutedAccess, load: &ExecutedAccess) -> bool {
    let alone = |access: &ExecutedAccess| {
        matches!(access.alias, Alias::Own | Alias::Restrict | Alias::ReadOnly)
    };
    store.space != load.space || (store.object != load.object && (alone(store) || alone(load)))
}
