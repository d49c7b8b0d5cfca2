//! What a warp executes, as steps that an issue engine can follow: the facts' flow laid flat.
//!
//! Facts are averages: a stretch has 3.4 integer instructions, a branch is taken by 0.7 of the warps. An engine
//! issues whole instructions, so each warp carries what is left over to the next stretch (error diffusion): over
//! many stretches a warp issues what the facts say, and no figure hangs on chance.

use std::collections::HashMap;

use warplens_analysis::facts::{Access, KernelFacts, Link, Mix, Node, Op, Space};

use crate::work::Work;

/// Kinds of instructions that execute; each has a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Int,
    Conversion,
    Fp16,
    Multiply,
    Fp32,
    Fp64,
    Special,
    Branch,
}

impl Class {
    /// Every class, in the order in which a stretch issues them: addresses first, its branch last.
    pub const ALL: [Class; 8] = [
        Class::Int,
        Class::Conversion,
        Class::Fp16,
        Class::Multiply,
        Class::Fp32,
        Class::Fp64,
        Class::Special,
        Class::Branch,
    ];

    /// True for what makes addresses and conditions; the rest makes values.
    pub fn is_integer(self) -> bool {
        matches!(self, Class::Int | Class::Branch)
    }
}

/// How often each class is issued.
pub(crate) type Counts = [f64; Class::ALL.len()];

/// One step. Places to go on at are indices into [`Program::steps`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Straight computation.
    Compute {
        node: usize,
        counts: Counts,
        chain: f64,
        uses: Vec<usize>,
        /// The line it stands on: its results are waited for by what else stands there.
        slot: usize,
    },
    /// One memory instruction.
    Access {
        node: usize,
        access: usize,
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
    End {
        id: usize,
        body: usize,
        /// Lines whose values the next iteration does not wait for.
        forget: Vec<usize>,
    },
    /// A branch: the taken side follows.
    Branch {
        id: usize,
        taken: f64,
        other: f64,
        otherwise: usize,
        behind: usize,
    },
    /// The end of a branch's taken side.
    Side { id: usize },
    /// The end of a branch's other side.
    Join { id: usize },
}

impl Step {
    /// True where a warp may issue something here.
    fn issues(&self) -> bool {
        match self {
            Step::Compute { counts, .. } => counts.iter().any(|count| *count > 0.0),
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
}

impl Program {
    /// Lays the flow flat. Nodes are numbered as in [`Work::graph`].
    pub fn new(work: &Work) -> Program {
        let mut builder = Builder {
            work,
            facts: work.input.facts,
            program: Program::default(),
            slots: HashMap::new(),
            nodes: 0,
        };
        builder.sequence(&work.input.facts.flow);
        builder.program.slots = builder.slots.len();
        builder.program
    }
}

struct Builder<'w> {
    work: &'w Work<'w>,
    facts: &'w KernelFacts,
    program: Program,
    slots: HashMap<u32, usize>,
    nodes: usize,
}

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
                    self.program.steps.push(Step::Compute {
                        node,
                        counts: counts(mix),
                        chain: positive(*chain),
                        uses: uses.clone(),
                        slot,
                    });
                }
                Node::Access { access, uses } => {
                    let Some(facts) = self.facts.accesses.get(*access) else {
                        continue;
                    };
                    let operand = facts.space == Space::Shared
                        && facts.op == Op::Load
                        && self.work.profile().shared_operand_latency.is_some()
                        && self.next_reads(&flow[at + 1..], *access);
                    let slot = self.slot(facts.site.line);
                    let node = self.node();
                    self.program.steps.push(Step::Access {
                        node,
                        access: *access,
                        uses: uses.clone(),
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

    /// True where the next computation needs what the access loads and no other load of shared memory stands in
    /// between: an instruction takes one operand from there.
    fn next_reads(&self, behind: &[Node], access: usize) -> bool {
        for node in behind {
            match node {
                Node::Access {
                    access: other,
                    uses,
                } => {
                    let shared = |access: &Access| access.space == Space::Shared;
                    if uses.contains(&access) || self.facts.accesses.get(*other).is_some_and(shared)
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
        let id = self.program.loops;
        self.program.loops += 1;
        let head = self.program.steps.len();
        self.program.steps.push(Step::Loop {
            id,
            trips,
            behind: 0,
        });
        self.sequence(body);
        if !self.program.steps[head + 1..].iter().any(Step::issues) {
            // Nothing to wait for, however often.
            self.program.steps.truncate(head);
            return;
        }
        let forget = if carries_values(self.facts, line) {
            Vec::new()
        } else {
            let mut slots: Vec<usize> = self.program.steps[head..]
                .iter()
                .filter_map(|step| match step {
                    Step::Compute { slot, .. } => Some(*slot),
                    _ => None,
                })
                .collect();
            slots.sort_unstable();
            slots.dedup();
            slots
        };
        self.program.steps.push(Step::End {
            id,
            body: head + 1,
            forget,
        });
        let end = self.program.steps.len();
        if let Step::Loop { behind, .. } = &mut self.program.steps[head] {
            *behind = end;
        }
    }

    fn branch(&mut self, shares: (f64, f64), then: &[Node], otherwise: &[Node]) {
        let (taken, other) = self.work.branching().weights(
            fraction(shares.0),
            fraction(shares.1),
            (then.is_empty(), otherwise.is_empty()),
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
        self.program.steps.push(Step::Side { id });
        let second = self.program.steps.len();
        self.sequence(otherwise);
        self.program.steps.push(Step::Join { id });
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

/// True where one iteration's values go into the next one's; assumed where nobody looked.
fn carries_values(facts: &KernelFacts, line: u32) -> bool {
    let dependence = &facts.dependence;
    !dependence.complete
        || dependence.carried.iter().any(|carried| {
            carried.site.line == line
                && carried
                    .chain
                    .links()
                    .any(|(link, _)| !matches!(link, Link::Integer))
        })
}

fn counts(mix: &Mix) -> Counts {
    let multiply = positive(mix.fp32_multiply).min(positive(mix.fp32));
    [
        positive(mix.int + mix.int_mul + mix.shuffle),
        positive(mix.conversion + mix.to_float),
        positive(mix.fp16 + mix.tensor),
        multiply,
        positive(mix.fp32) - multiply,
        positive(mix.fp64),
        positive(mix.sfu),
        positive(mix.branch),
    ]
}

fn positive(value: f64) -> f64 {
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}

fn fraction(value: f64) -> f64 {
    positive(value).min(1.0)
}
