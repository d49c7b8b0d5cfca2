//! The bodies of routines that are executed once for all their calls, and those calls.
//!
//! What holds: a body that touched memory, synchronised or asked for its thread is no such body (`None` in
//! [`Routines::known`]).

use rustc_hash::FxHashMap;
use warplens_ir::RoutineId;
use warplens_machine::Mix;

use crate::context::Executions;
use crate::facts::Node;
use crate::flow::{self, Draft};
use crate::lockstep::CallPaths;
use crate::value::PartId;

/// Ways to one body that are told apart, at most.
const MOST_WAYS: usize = 1024;

/// What is known of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// The same number in every call.
    Constant(i64),
    /// An integer that depends on data, and whether a warp's lanes agree in it.
    Integer { uniform: bool },
    /// Floating point.
    Data { uniform: bool },
    /// Somewhere in an array of the thread's own.
    Array,
}

/// A body as it was executed once.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) flow: Vec<Draft>,
    /// Operations in the source.
    pub(crate) operations: u32,
    /// The value, where it is the same number for all calls.
    pub(crate) value: Option<i64>,
}

/// All bodies, and their calls.
#[derive(Debug, Default)]
pub(crate) struct Routines {
    pub(crate) bodies: Vec<Body>,
    /// `None` for a body that must be put in place.
    pub(crate) known: FxHashMap<(RoutineId, Vec<Shape>), Option<usize>>,
    /// Body, the context of the call, and its place.
    pub(crate) calls: Vec<(usize, usize, PartId)>,
    /// Bodies being executed within one another.
    pub(crate) depth: u32,
    pub(crate) failed: bool,
}

impl Routines {
    /// Memory is accessed, or a barrier met.
    pub(crate) fn touches_memory(&mut self) {
        self.failed |= self.depth > 0;
    }

    /// A coordinate of the thread is asked for.
    pub(crate) fn depends_on_thread(&mut self) {
        self.failed |= self.depth > 0;
    }

    /// True where the body being executed has to be put in place after all.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// The ways from the kernel to each body.
    pub(crate) fn ways(&self) -> CallPaths {
        let mut known = FxHashMap::default();
        CallPaths {
            bodies: (0..self.bodies.len())
                .map(|body| self.ways_to(body, &mut known))
                .collect(),
        }
    }

    /// None within: too many, or the place of some call is not known.
    fn ways_to(
        &self,
        body: usize,
        known: &mut FxHashMap<usize, Option<Vec<u64>>>,
    ) -> Option<Vec<u64>> {
        if let Some(found) = known.get(&body) {
            return found.clone();
        }
        let mut found = Some(Vec::new());
        for (_, _, place) in self.calls.iter().filter(|(of, ..)| *of == body) {
            let outer = place.and_then(|place| match place.body {
                Some(outer) => self.ways_to(outer, known),
                None => Some(vec![0]),
            });
            found = match (found, outer, place) {
                (Some(mut ways), Some(outer), Some(place)) => {
                    ways.extend(outer.iter().map(|&way| place.behind(way)));
                    (ways.len() <= MOST_WAYS).then_some(ways)
                }
                _ => None,
            };
        }
        if let Some(ways) = &mut found {
            // A loop's test may be executed symbolically more than once.
            ways.sort_unstable();
            ways.dedup();
        }
        known.insert(body, found.clone());
        found
    }

    /// What one call of each body issues, and its longest chain.
    pub(crate) fn totals(&mut self, executions: &[Executions]) -> Vec<(Mix, f64)> {
        let flows: Vec<Vec<Draft>> = self
            .bodies
            .iter_mut()
            .map(|body| std::mem::take(&mut body.flow))
            .collect();
        let mut totals = vec![(Mix::default(), 0.0); flows.len()];
        let mut left: Vec<Option<Vec<Draft>>> = flows.into_iter().map(Some).collect();
        for body in 0..left.len() {
            total(body, &mut left, executions, &mut totals);
        }
        totals
    }
}

/// Sums one body up, those that it calls before it.
fn total(
    body: usize,
    left: &mut [Option<Vec<Draft>>],
    executions: &[Executions],
    totals: &mut [(Mix, f64)],
) {
    let Some(flow) = left[body].take() else {
        return;
    };
    let mut called = Vec::new();
    callees(&flow, &mut called);
    for callee in called {
        total(callee, left, executions, totals);
    }
    let nodes = flow::finish(flow, executions, totals);
    let mut sum = (Mix::default(), 0.0);
    add_up(&nodes, 1.0, &mut sum);
    totals[body] = sum;
}

fn callees(flow: &[Draft], out: &mut Vec<usize>) {
    for draft in flow {
        match draft {
            Draft::Call { body, .. } => out.push(*body),
            Draft::Loop { body, .. } => callees(body, out),
            Draft::Branch {
                then, otherwise, ..
            } => {
                callees(then, out);
                callees(otherwise, out);
            }
            Draft::Compute { .. } | Draft::Access { .. } | Draft::Barrier { .. } => {}
        }
    }
}

fn add_up(nodes: &[Node], times: f64, sum: &mut (Mix, f64)) {
    for node in nodes {
        match node {
            Node::Compute { mix, chain, .. } => {
                sum.0.add(mix, times);
                sum.1 += chain * times;
            }
            Node::Loop { trips, body, .. } => add_up(body, times * trips, sum),
            Node::Branch {
                taken,
                other,
                then,
                otherwise,
                ..
            } => {
                add_up(then, times * taken, sum);
                add_up(otherwise, times * other, sum);
            }
            Node::Access { .. } | Node::Barrier { .. } => {}
        }
    }
}
