//! The work flow graph: an average warp's operations, the arcs between them, and their reduction.
//!
//! The graph of a structured program is kept as what its reduction rules need: nodes in program order, and
//! regions for loops and branches. A node has one outgoing transition arc, so the arc's weight is kept under
//! the node's index. A data-dependence arc runs from a load to each node that names the load in its `uses`.

use warplens_analysis::facts::{Access, Mix, Node as Flow, Op, Space};

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
    /// The region it stands in, an index into [`Graph::regions`].
    pub region: usize,
    /// The stretch between two barriers it stands in; barriers end a stretch.
    pub stretch: usize,
}

/// A region of the program dependence graph: code under one control condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Fraction of the kernel's warps that execute it.
    pub reached: f64,
}

/// One element of a sequence.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Node(usize),
    Loop {
        trips: f64,
        body: Vec<Step>,
    },
    Branch {
        taken: f64,
        other: f64,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
}

/// How the two sides of a branch are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branching {
    /// Figure 3's weighted average: each warp takes one side.
    Average,
    /// A warp that splits pays for both sides.
    Sum,
}

impl Branching {
    pub(crate) fn weights(self, taken: f64, other: f64) -> (f64, f64) {
        let both = taken + other;
        match self {
            Branching::Average if both > 0.0 => (taken / both, other / both),
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
    steps: Vec<Step>,
    stretches: usize,
}

/// What the reduction of a weighted graph to one arc leaves.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reduction {
    /// Weight of the arc from entry to exit.
    pub entry_to_exit: f64,
    /// Executions of each node by one average warp.
    pub visits: Vec<f64>,
    /// Weight of each node's outgoing transition arc once the data-dependence arcs are collapsed, per visit.
    pub transitions: Vec<f64>,
    /// Uncovered latency that each load causes, over all its visits.
    pub exposed: Vec<f64>,
}

/// A load whose value has not been asked for yet.
#[derive(Debug, Clone, Copy)]
struct Flight {
    access: usize,
    node: usize,
    elapsed: f64,
    /// Fraction of the warps that have not asked for the value yet.
    outstanding: f64,
    /// How many loads the walk had issued with it.
    issued: usize,
}

/// Loops nested deeper than this are walked in their steady state only, which bounds the reduction's cost.
const DEEPEST_FIRST_ITERATION: usize = 3;

/// Iterations walked apart: the first, which waits for what was loaded before the loop; one in which loads
/// carried over from it settle; and one that stands for all that follow.
const WALKS: usize = 3;

impl Graph {
    /// Builds the graph of an average warp's work.
    pub fn new(flow: &[Flow], accesses: &[Access]) -> Graph {
        let mut graph = Graph {
            regions: vec![Region { reached: 1.0 }],
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

    fn sequence(&mut self, flow: &[Flow], accesses: &[Access], region: usize) -> Vec<Step> {
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
                    let inner = self.region(region, 1.0);
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
                    let on = self.region(region, taken);
                    let then = self.sequence(then, accesses, on);
                    let off = self.region(region, other);
                    let otherwise = self.sequence(otherwise, accesses, off);
                    steps.push(Step::Branch {
                        taken,
                        other,
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

    fn region(&mut self, parent: usize, fraction: f64) -> usize {
        let reached = self.regions[parent].reached * fraction;
        self.regions.push(Region { reached });
        self.regions.len() - 1
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
                        then,
                        otherwise,
                    } => {
                        let (on, off) = branching.weights(*taken, *other);
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

    /// Collapses the graph to one arc (Figures 2 to 4 of the paper).
    ///
    /// `transition` holds the weight of each node's outgoing transition arc, `dependence` the weight of the
    /// data-dependence arcs that leave it. Straight paths add up; a loop is its body times its trips, where
    /// the first iteration alone waits for loads issued before the loop; a branch is put together as
    /// `branching` says, and a use inside it weighs as much as its side. A data-dependence arc heavier than
    /// the path from its load to its use adds the difference to the last transition arc of that path; arcs
    /// go in the order of their uses, so that overlapped latency counts once.
    pub fn reduce(
        &self,
        transition: &[f64],
        dependence: &[f64],
        branching: Branching,
    ) -> Reduction {
        let mut walk = Walk {
            graph: self,
            transition,
            dependence,
            branching,
            visits: vec![0.0; self.nodes.len()],
            added: vec![0.0; self.nodes.len()],
            exposed: vec![0.0; self.nodes.len()],
            previous: None,
            issued: 0,
        };
        let entry_to_exit = walk.sequence(&self.steps, 1.0, 0, &mut Vec::new());
        let transitions = (0..self.nodes.len())
            .map(|node| {
                let visits = walk.visits[node];
                let added = if visits > 0.0 {
                    walk.added[node] / visits
                } else {
                    0.0
                };
                transition[node] + added
            })
            .collect();
        Reduction {
            entry_to_exit,
            visits: walk.visits,
            transitions,
            exposed: walk.exposed,
        }
    }
}

struct Walk<'g> {
    graph: &'g Graph,
    transition: &'g [f64],
    dependence: &'g [f64],
    branching: Branching,
    visits: Vec<f64>,
    added: Vec<f64>,
    exposed: Vec<f64>,
    previous: Option<usize>,
    issued: usize,
}

impl Walk<'_> {
    fn sequence(
        &mut self,
        steps: &[Step],
        times: f64,
        depth: usize,
        flights: &mut Vec<Flight>,
    ) -> f64 {
        let mut time = 0.0;
        for step in steps {
            time += match step {
                Step::Node(node) => self.node(*node, times, flights),
                Step::Loop { trips, body } => self.repeat(*trips, body, times, depth, flights),
                Step::Branch {
                    taken,
                    other,
                    then,
                    otherwise,
                } => {
                    let (on, off) = self.branching.weights(*taken, *other);
                    if on <= 0.0 || off <= 0.0 {
                        let (weight, side) = if on > 0.0 {
                            (on, then)
                        } else {
                            (off, otherwise)
                        };
                        if weight <= 0.0 {
                            continue;
                        }
                        time += weight * self.sequence(side, times * weight, depth, flights);
                        continue;
                    }
                    let before = flights.clone();
                    let mut off_flights = flights.clone();
                    let fork = self.previous;
                    let with = self.sequence(then, times * on, depth, flights);
                    let join = self.previous;
                    self.previous = fork;
                    let without = self.sequence(otherwise, times * off, depth, &mut off_flights);
                    if on >= off {
                        self.previous = join;
                    }
                    let both = on * with + off * without;
                    merge(flights, &off_flights, &before, both, (on, off));
                    both
                }
            };
        }
        time
    }

    fn node(&mut self, index: usize, times: f64, flights: &mut Vec<Flight>) -> f64 {
        let node = &self.graph.nodes[index];
        let mut time = 0.0;
        for &access in &node.uses {
            let Some(at) = flights.iter().position(|flight| flight.access == access) else {
                continue;
            };
            let flight = flights.swap_remove(at);
            let wait =
                (self.dependence[flight.node] - flight.elapsed).max(0.0) * flight.outstanding;
            self.exposed[flight.node] += wait * times;
            self.added[self.previous.unwrap_or(flight.node)] += wait * times;
            advance(flights, wait);
            time += wait;
        }
        advance(flights, self.transition[index]);
        if node.loads
            && let Kind::Memory(access) | Kind::Scratchpad(access) = node.kind
        {
            flights.retain(|flight| flight.access != access);
            if flights.len() >= MOST_IN_FLIGHT {
                // The oldest has arrived by now: a warp cannot have so many loads outstanding.
                let oldest = (0..flights.len())
                    .max_by(|&a, &b| flights[a].elapsed.total_cmp(&flights[b].elapsed));
                if let Some(oldest) = oldest {
                    flights.swap_remove(oldest);
                }
            }
            let elapsed = self.transition[index];
            self.issued += 1;
            flights.push(Flight {
                access,
                node: index,
                elapsed,
                outstanding: 1.0,
                issued: self.issued,
            });
        }
        self.visits[index] += times;
        self.previous = Some(index);
        time + self.transition[index]
    }

    fn repeat(
        &mut self,
        trips: f64,
        body: &[Step],
        times: f64,
        depth: usize,
        flights: &mut Vec<Flight>,
    ) -> f64 {
        // Loads from before the loop: whoever waits for one has done so in the first iteration.
        let mut outside = Vec::new();
        let shallow = depth < DEEPEST_FIRST_ITERATION;
        if !shallow {
            outside.append(flights);
        }
        let mut time = 0.0;
        let mut left = trips;
        for walk in 0..WALKS {
            if left <= 0.0 {
                break;
            }
            // An iteration that carries no load over to the next is like all that follow.
            let carries = walk == 0 || !flights.is_empty();
            let last = walk + 1 == WALKS || !shallow || !carries;
            let repeats = if last { left } else { left.min(1.0) };
            let began = self.issued;
            let once = self.sequence(body, times * repeats, depth + 1, flights);
            time += repeats * once;
            left -= repeats;
            let (mut before, inside): (Vec<Flight>, _) =
                flights.iter().partition(|flight| flight.issued <= began);
            *flights = inside;
            advance(&mut outside, repeats * once);
            advance(&mut before, (repeats - 1.0).max(0.0) * once);
            outside.append(&mut before);
        }
        outside.retain(|old| !flights.iter().any(|new| new.access == old.access));
        flights.append(&mut outside);
        time
    }
}

/// Loads of one warp that are followed at a time.
const MOST_IN_FLIGHT: usize = 64;

fn advance(flights: &mut [Flight], time: f64) {
    for flight in flights {
        flight.elapsed += time;
    }
}

/// After a branch: the loads still in flight. One that a side asked for is outstanding for the warps that do
/// not execute that side, one that a side issued for those that do; where neither side asked for an earlier
/// load, the branch's whole time has passed for it.
fn merge(
    on: &mut Vec<Flight>,
    off: &[Flight],
    before: &[Flight],
    time: f64,
    (on_weight, off_weight): (f64, f64),
) {
    let earlier = |flight: &Flight| before.iter().find(|other| other.issued == flight.issued);
    let outstanding = |flight: &Flight, own: f64, other: f64| {
        let executing = if earlier(flight).is_some() {
            1.0 - other
        } else {
            own
        };
        flight.outstanding * executing.clamp(0.0, 1.0)
    };
    for flight in on.iter_mut() {
        match off.iter().find(|other| other.access == flight.access) {
            None => flight.outstanding = outstanding(flight, on_weight, off_weight),
            Some(twin) if twin.issued == flight.issued => {
                if let Some(old) = earlier(flight) {
                    flight.elapsed = old.elapsed + time;
                }
                flight.outstanding = flight.outstanding.min(twin.outstanding);
            }
            Some(twin) => {
                // Issued again on one side at least: the busier side stands for both.
                if off_weight > on_weight {
                    *flight = *twin;
                }
            }
        }
    }
    for flight in off {
        if !on.iter().any(|other| other.access == flight.access) {
            let outstanding = outstanding(flight, off_weight, on_weight);
            on.push(Flight {
                outstanding,
                ..*flight
            });
        }
    }
    on.retain(|flight| flight.outstanding > 0.0);
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

fn positive(value: f64) -> f64 {
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}

fn fraction(value: f64) -> f64 {
    if value.is_finite() {
        value.clamp(0.0, 1.0)
    } else {
        1.0
    }
}
