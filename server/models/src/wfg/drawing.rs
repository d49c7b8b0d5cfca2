//! What a picture of the work flow graph shows: plain data, for the report that draws it.

use warplens_facts::facts::Op;

use super::graph::{Branching, Graph, Kind, Step};
use super::{Model, Parameters};
use crate::work::Work;
use crate::{ModelInput, Question, nothing_to_run};

/// Nodes that a picture has, at most: those behind are left out.
const MOST_NODES: usize = 160;

/// Arcs of data dependences that a picture has, at most.
const MOST_DEPENDENCES: usize = 320;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Where the kernel begins.
    Entry,
    /// Where it ends.
    Exit,
    /// M: global memory.
    Memory,
    /// S: shared or constant memory.
    Scratchpad,
    /// B: a barrier.
    Barrier,
    /// C: computation.
    Compute,
    /// In place of nodes that are left out.
    Elided,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnNode {
    /// What it is.
    pub role: Role,
    /// In words: `load a[i]`, `12 instructions`.
    pub label: String,
    /// Source line, as sites number it.
    pub line: Option<u32>,
    /// Loops and branches around it.
    pub depth: usize,
    /// Executions by an average warp.
    pub visits: f64,
}

/// What an arc says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The next node; the weight is cycles at the node that it leaves.
    Transition,
    /// Back to the beginning of a loop; the weight is its trips.
    Back,
    /// A use waits for a load; the weight is the latency that other warps do not cover.
    Dependence,
}

/// An arc between two nodes, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arc {
    /// Where it leaves.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// What it says.
    pub relation: Relation,
    /// Cycles, or trips of an arc back.
    pub weight: f64,
    /// Where the arc is a side of a branch: the part of the warps that takes it.
    pub share: Option<f64>,
}

/// The graph of a kernel, specialised for a GPU, and what its reduction leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Nodes in program order, entry first and exit last.
    pub nodes: Vec<DrawnNode>,
    /// Arcs between them.
    pub arcs: Vec<Arc>,
    /// Nodes that are left out.
    pub elided: usize,
    /// Compute cycles of an average warp: entry to exit after the first reduction, without memory.
    pub cyc_compute: f64,
    /// Cycles to move its data.
    pub cyc_mem: f64,
    /// Weight of the arcs out of memory operations (equation 4).
    pub latency_bw: f64,
    /// Latency of an average warp: entry to exit after the second reduction.
    pub entry_to_exit: f64,
    /// Warps resident on an SM.
    pub active_warps: f64,
}

/// The work flow graph as a picture shows it; `Err` says why there is none.
pub fn draw(question: &Question) -> Result<Drawing, String> {
    if let Some(why) = nothing_to_run(question) {
        return Err(why);
    }
    let work = Work::new(question);
    let parameters = Parameters::new(&work);
    let model = Model::new(&work.graph, &parameters);
    if !model.entry_to_exit.is_finite() {
        return Err("the kernel's counts are too large to add up".to_owned());
    }
    let kept = work.graph.nodes.len().min(MOST_NODES);
    let mut sketch = Sketch {
        graph: &work.graph,
        model: &model,
        branching: parameters.branching,
        kept,
        depths: vec![0; work.graph.nodes.len()],
        arcs: Vec::new(),
    };
    let entry = vec![End {
        node: None,
        share: None,
    }];
    let ends = sketch.sequence(&work.graph.steps, entry, 0);
    sketch.join(&ends, kept + usize::from(kept < work.graph.nodes.len()) + 1);
    sketch.dependences();
    let Sketch { depths, arcs, .. } = sketch;
    let mut nodes = vec![end(Role::Entry, "entry")];
    let shown = work.graph.nodes.iter().zip(depths).take(kept);
    nodes.extend(shown.enumerate().map(|(at, (node, depth))| DrawnNode {
        role: match node.kind {
            Kind::Memory(_) => Role::Memory,
            Kind::Scratchpad(_) => Role::Scratchpad,
            Kind::Barrier => Role::Barrier,
            Kind::Compute { .. } => Role::Compute,
        },
        label: label(&node.kind, question.input),
        line: (node.line > 0).then_some(node.line),
        depth,
        visits: model.reduction.visits[at],
    }));
    let elided = work.graph.nodes.len() - kept;
    if elided > 0 {
        nodes.push(end(Role::Elided, &format!("{elided} more nodes")));
    }
    nodes.push(end(Role::Exit, "exit"));
    Ok(Drawing {
        nodes,
        arcs,
        elided,
        cyc_compute: model.cyc_compute,
        cyc_mem: model.cyc_mem,
        latency_bw: model.latency_bw,
        entry_to_exit: model.entry_to_exit,
        active_warps: parameters.active_warps,
    })
}

fn end(role: Role, label: &str) -> DrawnNode {
    DrawnNode {
        role,
        label: label.to_owned(),
        line: None,
        depth: 0,
        visits: 1.0,
    }
}

fn label(kind: &Kind, input: &ModelInput) -> String {
    match kind {
        Kind::Memory(at) | Kind::Scratchpad(at) => {
            input.accesses.get(*at).map_or_else(String::new, |access| {
                let op = match access.op {
                    Op::Load => "load",
                    Op::Store => "store",
                    Op::Atomic => "atomic",
                };
                format!("{op} {}", input.text(access))
            })
        }
        Kind::Barrier => "barrier".to_owned(),
        Kind::Compute { mix, .. } => format!("{:.1} instructions", mix.total()),
    }
}

/// An arc that has no end yet.
#[derive(Debug, Clone, Copy)]
struct End {
    /// The node of the graph that it leaves; none leaves the entry.
    node: Option<usize>,
    share: Option<f64>,
}

/// The arcs as they are found.
struct Sketch<'a> {
    graph: &'a Graph,
    model: &'a Model,
    branching: Branching,
    kept: usize,
    depths: Vec<usize>,
    arcs: Vec<Arc>,
}

impl Sketch<'_> {
    /// The number that a node of the graph has in the picture.
    fn shown(&self, node: usize) -> usize {
        1 + node.min(self.kept)
    }

    /// Leads arcs to a node of the picture.
    fn join(&mut self, ends: &[End], to: usize) {
        for end in ends {
            let from = end.node.map_or(0, |node| self.shown(node));
            let weight = end.node.map_or(0.0, |node| self.weight(node));
            let arc = Arc {
                from,
                to,
                relation: Relation::Transition,
                weight,
                share: end.share,
            };
            let known = |other: &Arc| (other.from, other.to) == (from, to);
            if from != to && !self.arcs.iter().rev().take(8).any(known) {
                self.arcs.push(arc);
            }
        }
    }

    /// The weight of a node's outgoing transition arc before data-dependence arcs are collapsed.
    fn weight(&self, node: usize) -> f64 {
        match self.graph.nodes[node].kind {
            Kind::Memory(_) => self.model.latency_bw,
            _ => self.model.compute_weights[node],
        }
    }

    /// Draws steps one behind the other; returns the arcs that leave the last.
    fn sequence(&mut self, steps: &[Step], mut ends: Vec<End>, depth: usize) -> Vec<End> {
        for step in steps {
            match step {
                Step::Node(node) => {
                    self.depths[*node] = depth;
                    self.join(&ends, self.shown(*node));
                    ends = vec![End {
                        node: Some(*node),
                        share: None,
                    }];
                }
                Step::Loop { trips, body } => {
                    let first = first_node(body);
                    let after = self.sequence(body, ends.clone(), depth + 1);
                    if let Some(first) = first {
                        let to = self.shown(first);
                        for end in &after {
                            let from = end.node.map_or(0, |node| self.shown(node));
                            if from >= to && from <= self.kept {
                                self.arcs.push(Arc {
                                    from,
                                    to,
                                    relation: Relation::Back,
                                    weight: *trips,
                                    share: None,
                                });
                            }
                        }
                        ends = after;
                    }
                }
                Step::Branch {
                    taken,
                    other,
                    by_one,
                    then,
                    otherwise,
                } => {
                    if first_node(then).or_else(|| first_node(otherwise)).is_none() {
                        continue;
                    }
                    let empty = (then.is_empty(), otherwise.is_empty());
                    let (on, off) = self.branching.weights((*taken, *other), empty, *by_one);
                    let mut after = Vec::new();
                    for (side, share) in [(then, on), (otherwise, off)] {
                        let begin = ends
                            .iter()
                            .map(|end| End {
                                node: end.node,
                                share: Some(share),
                            })
                            .collect();
                        after.extend(self.sequence(side, begin, depth + 1));
                    }
                    after.dedup_by_key(|end| end.node);
                    // Ways through many branches: the last stand for all.
                    let many = after.len().saturating_sub(MOST_ENDS);
                    after.drain(..many);
                    ends = after;
                }
            }
        }
        ends
    }

    /// Arcs from each load to the nodes that wait for it.
    fn dependences(&mut self) {
        let mut count = 0;
        for (to, node) in self.graph.nodes.iter().enumerate().take(self.kept) {
            for access in &node.uses {
                let is_load = |other: &usize| {
                    let other = &self.graph.nodes[*other];
                    other.loads && matches!(other.kind, Kind::Memory(of) if of == *access)
                };
                // The load before it, or of the iteration before.
                let before = (0..to).rev().find(is_load);
                let Some(from) = before.or_else(|| (to..self.kept).find(is_load)) else {
                    continue;
                };
                count += 1;
                if count > MOST_DEPENDENCES {
                    return;
                }
                self.arcs.push(Arc {
                    from: self.shown(from),
                    to: self.shown(to),
                    relation: Relation::Dependence,
                    weight: self.model.dependence[from],
                    share: None,
                });
            }
        }
    }
}

/// Arcs that leave a sequence, at most.
const MOST_ENDS: usize = 16;

fn first_node(steps: &[Step]) -> Option<usize> {
    steps.iter().find_map(|step| match step {
        Step::Node(node) => Some(*node),
        Step::Loop { body, .. } => first_node(body),
        Step::Branch {
            then, otherwise, ..
        } => first_node(then).or_else(|| first_node(otherwise)),
    })
}
