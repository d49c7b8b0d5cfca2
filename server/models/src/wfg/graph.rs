//! The work flow graph: an average warp's operations and the arcs between them.
//!
//! The graph of a structured program is kept as what its reduction rules need: nodes in program order, and
//! regions for loops and branches. A node has one outgoing transition arc, so the arc's weight is kept under
//! the node's index. A data-dependence arc runs from a load to each node that names the load in its `uses`.

use crate::ExecutedAccess;
use crate::input::positive;
use warplens_facts::facts::{Form, Node as Flow, Op, Space};
use warplens_machine::{Mix, Pipe};

/// What a node of the graph does (section 2.1 of the paper).
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// M: a long-latency memory operation. The index is into the kernel's accesses.
    Memory(usize),
    /// S: a low-latency memory operation (shared or constant memory).
    Scratchpad(usize),
    /// B: a barrier.
    Barrier,
    /// `C_n`: computation without a memory operation in between.
    Compute {
        /// The n instructions by pipe.
        mix: Mix,
        /// The longest chain of dependent instructions among them.
        chain: f64,
    },
}

/// A node of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it does.
    pub kind: Kind,
    /// Source line, relative to the kernel.
    pub line: u32,
    /// Accesses whose loaded value it needs: the data-dependence arcs that end here.
    pub uses: Vec<usize>,
    /// True where a later use of its value must wait for it.
    pub loads: bool,
    /// The region it is in, an index into [`Graph::regions`].
    pub region: usize,
    /// The stretch between two barriers it is in; barriers end a stretch.
    pub stretch: usize,
}

/// A region of the program dependence graph: code under one control condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Fraction of the kernel's warps that execute it: the product of the weights on the way there.
    pub reached: f64,
    /// Iterations of the loops around it by one warp that comes there.
    pub trips: f64,
}

/// One element of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Node(usize),
    Loop {
        trips: f64,
        body: Vec<Step>,
    },
    Branch {
        taken: f64,
        other: f64,
        /// What is on a side is no lane's own: products and copies that one thread starts.
        by_one: bool,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
}

/// How the two sides of a branch are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branching {
    /// Figure 3's weighted average. A side with nothing on it weighs as much as the warps that go no other way:
    /// it is no path of its own for those that split.
    Weighted,
    /// The mean of both sides for a warp that splits, as if no warp did.
    Average,
    /// A warp that splits pays for both sides.
    Sum,
    /// The warp with the longest way: outside of loops, where a branch is met once, it is the one that takes the longer side. In a
    /// loop warps take turns, so that a branch there is a [`Branching::Sum`].
    Longest,
}

impl Branching {
    /// Weights of the two sides of a branch, of which `empty` says whether nothing is on them. What is there `by_one` thread for all
    /// is as much for a warp that does not split.
    pub(crate) fn weights(
        self,
        (taken, other): (f64, f64),
        empty: (bool, bool),
        by_one: bool,
    ) -> (f64, f64) {
        let both = taken + other;
        match (self, empty) {
            (Branching::Average, _) if by_one => (taken, other),
            (Branching::Weighted, (false, true)) => (taken, (1.0 - taken).max(0.0)),
            (Branching::Weighted, (true, false)) => ((1.0 - other).max(0.0), other),
            (Branching::Weighted | Branching::Average, _) if both > 0.0 => {
                (taken / both, other / both)
            }
            _ => (taken, other),
        }
    }
}

/// The graph between its entry and its exit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// Every node, in program order.
    pub nodes: Vec<Node>,
    /// Every region; the first is the whole kernel.
    pub regions: Vec<Region>,
    pub(super) steps: Vec<Step>,
    stretches: usize,
}

impl Graph {
    /// Builds the graph of an average warp's work.
    pub fn new(flow: &[Flow], accesses: &[ExecutedAccess]) -> Graph {
        let mut graph = Graph {
            regions: vec![Region {
                reached: 1.0,
                trips: 1.0,
            }],
            ..Graph::default()
        };
        graph.steps = graph.sequence(flow, accesses, 0);
        graph.stretches += 1;
        graph
    }

    /// Stretches between barriers; node stretches are below this number.
    pub fn stretches(&self) -> usize {
        self.stretches
    }

    fn sequence(&mut self, flow: &[Flow], accesses: &[ExecutedAccess], region: usize) -> Vec<Step> {
        let mut steps = Vec::with_capacity(flow.len());
        for item in flow {
            match item {
                Flow::Compute {
                    mix,
                    uses,
                    chain,
                    line,
                } => {
                    let kind = Kind::Compute {
                        mix: *mix,
                        chain: positive(*chain),
                    };
                    steps.push(self.node(kind, *line, uses, false, region));
                }
                Flow::Access { access, uses } => {
                    let Some(facts) = accesses.get(*access) else {
                        continue;
                    };
                    let kind = match facts.space {
                        Space::Global | Space::Local | Space::Texture => Kind::Memory(*access),
                        Space::Shared | Space::Constant => Kind::Scratchpad(*access),
                    };
                    let loads = facts.op != Op::Store;
                    steps.push(self.node(kind, facts.site.line, uses, loads, region));
                }
                Flow::Barrier { line } => {
                    steps.push(self.node(Kind::Barrier, *line, &[], false, region));
                    self.stretches += 1;
                }
                Flow::Loop { trips, body, .. } => {
                    let inner = self.region(region, 1.0, positive(*trips));
                    let barriers = has_barrier(body);
                    self.stretches += usize::from(barriers);
                    let body = self.sequence(body, accesses, inner);
                    self.stretches += usize::from(barriers);
                    steps.push(Step::Loop {
                        trips: positive(*trips),
                        body,
                    });
                }
                Flow::Branch {
                    taken,
                    other,
                    then,
                    otherwise,
                    ..
                } => {
                    let (taken, other) = (fraction(*taken), fraction(*other));
                    let by_one = is_by_one(then, accesses) || is_by_one(otherwise, accesses);
                    let on = self.region(region, taken, 1.0);
                    let then = self.sequence(then, accesses, on);
                    let off = self.region(region, other, 1.0);
                    let otherwise = self.sequence(otherwise, accesses, off);
                    steps.push(Step::Branch {
                        taken,
                        other,
                        by_one,
                        then,
                        otherwise,
                    });
                }
            }
        }
        steps
    }

    fn node(&mut self, kind: Kind, line: u32, uses: &[usize], loads: bool, region: usize) -> Step {
        self.nodes.push(Node {
            kind,
            line,
            uses: uses.to_vec(),
            loads,
            region,
            stretch: self.stretches,
        });
        Step::Node(self.nodes.len() - 1)
    }

    fn region(&mut self, parent: usize, fraction: f64, trips: f64) -> usize {
        let parent = self.regions[parent];
        self.regions.push(Region {
            reached: parent.reached * fraction,
            trips: parent.trips * trips,
        });
        self.regions.len() - 1
    }

    /// True where some warps have work outside of all loops that others do not have.
    pub fn differs_by_warp(&self) -> bool {
        fn any(steps: &[Step]) -> bool {
            steps.iter().any(|step| match step {
                Step::Node(_) | Step::Loop { .. } => false,
                Step::Branch {
                    taken,
                    other,
                    then,
                    otherwise,
                    ..
                } => {
                    let part = |share: f64| share > 0.0 && share < 1.0 - 1e-9;
                    part(*taken) || part(*other) || any(then) || any(otherwise)
                }
            })
        }
        any(&self.steps)
    }

    /// True where some warp executes both sides of a branch.
    pub fn diverges(&self) -> bool {
        fn any(steps: &[Step]) -> bool {
            steps.iter().any(|step| match step {
                Step::Node(_) => false,
                Step::Loop { body, .. } => any(body),
                Step::Branch {
                    taken,
                    other,
                    then,
                    otherwise,
                    ..
                } => taken + other > 1.0 + 1e-9 || any(then) || any(otherwise),
            })
        }
        any(&self.steps)
    }

    /// Executions of each node by one average warp.
    pub fn visits(&self, branching: Branching) -> Vec<f64> {
        fn count(steps: &[Step], times: f64, branching: Branching, visits: &mut [f64]) {
            for step in steps {
                match step {
                    Step::Node(node) => visits[*node] += times,
                    Step::Loop { trips, body } => count(body, times * trips, branching, visits),
                    Step::Branch {
                        taken,
                        other,
                        by_one,
                        then,
                        otherwise,
                    } => {
                        let empty = (then.is_empty(), otherwise.is_empty());
                        let (on, off) = branching.weights((*taken, *other), empty, *by_one);
                        count(then, times * on, branching, visits);
                        count(otherwise, times * off, branching, visits);
                    }
                }
            }
        }
        let mut visits = vec![0.0; self.nodes.len()];
        count(&self.steps, 1.0, branching, &mut visits);
        visits
    }
}

/// True where one thread of a warp starts something for all: products of matrix units and copies of many bytes. Products of whole warps
/// are never within what splits one.
pub(crate) fn is_by_one(flow: &[Flow], accesses: &[ExecutedAccess]) -> bool {
    flow.iter().any(|item| match item {
        Flow::Compute { mix, .. } => mix[Pipe::Tensor] > 0.0,
        Flow::Access { access, .. } => accesses
            .get(*access)
            .is_some_and(|access| matches!(access.form, Form::Bulk(_) | Form::Described { .. })),
        Flow::Barrier { .. } => false,
        Flow::Loop { body, .. } => is_by_one(body, accesses),
        Flow::Branch {
            then, otherwise, ..
        } => is_by_one(then, accesses) || is_by_one(otherwise, accesses),
    })
}

fn has_barrier(flow: &[Flow]) -> bool {
    flow.iter().any(|item| match item {
        Flow::Barrier { .. } => true,
        Flow::Loop { body, .. } => has_barrier(body),
        Flow::Branch {
            then, otherwise, ..
        } => has_barrier(then) || has_barrier(otherwise),
        Flow::Compute { .. } | Flow::Access { .. } => false,
    })
}

fn fraction(value: f64) -> f64 {
    if value.is_finite() {
        value.clamp(0.0, 1.0)
    } else {
        1.0
    }
}
