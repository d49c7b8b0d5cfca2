//! What an average warp executes in its order (`ExecutedFlow`): an access looked up in it.

use rustc_hash::FxHashMap;
use warplens_facts::facts::{Node, TripCount};

/// True where the iterations of some loop are a guess: so is the time, then.
pub(crate) fn guesses_iterations(flow: &[Node]) -> bool {
    flow.iter().any(|node| match node {
        Node::Loop { known, body, .. } => !known || guesses_iterations(body),
        Node::Branch {
            then, otherwise, ..
        } => guesses_iterations(then) || guesses_iterations(otherwise),
        _ => false,
    })
}

/// Iterations of the innermost loop around an access; `None` where they are a guess.
pub(crate) fn iterations(flow: &[Node], access: usize, around: f64) -> Option<f64> {
    flow.iter().find_map(|node| match node {
        Node::Access { access: of, .. } if *of == access => Some(around),
        Node::Loop {
            trips, known, body, ..
        } => iterations(body, access, if *known { *trips } else { 0.0 }),
        Node::Branch {
            then, otherwise, ..
        } => iterations(then, access, around).or_else(|| iterations(otherwise, access, around)),
        _ => None,
    })
}

/// [`iterations`] of every access, looked up once for all; 0 where they are a guess.
pub(crate) fn iterations_of_all(flow: &[Node]) -> FxHashMap<usize, f64> {
    fn walk(flow: &[Node], around: f64, found: &mut FxHashMap<usize, f64>) {
        for node in flow {
            match node {
                Node::Access { access, .. } => {
                    found.entry(*access).or_insert(around);
                }
                Node::Loop {
                    trips, known, body, ..
                } => walk(body, if *known { *trips } else { 0.0 }, found),
                Node::Branch {
                    then, otherwise, ..
                } => {
                    walk(then, around, found);
                    walk(otherwise, around, found);
                }
                Node::Compute { .. } | Node::Barrier { .. } => {}
            }
        }
    }
    let mut found = FxHashMap::default();
    walk(flow, 1.0, &mut found);
    found
}

/// The innermost loop around each access that has one: the line of its head, and its iterations where they are a number.
pub(crate) fn innermost(flow: &[Node]) -> FxHashMap<usize, (u32, Option<f64>)> {
    fn walk(
        flow: &[Node],
        around: Option<(u32, Option<f64>)>,
        found: &mut FxHashMap<usize, (u32, Option<f64>)>,
    ) {
        for node in flow {
            match node {
                Node::Access { access, .. } => {
                    if let Some(around) = around {
                        found.entry(*access).or_insert(around);
                    }
                }
                Node::Loop {
                    body,
                    line,
                    trips,
                    known,
                    count,
                } => {
                    let number = *known && *count == TripCount::Number;
                    walk(body, Some((*line, number.then_some(*trips))), found);
                }
                Node::Branch {
                    then, otherwise, ..
                } => {
                    walk(then, around, found);
                    walk(otherwise, around, found);
                }
                Node::Compute { .. } | Node::Barrier { .. } => {}
            }
        }
    }
    let mut found = FxHashMap::default();
    walk(flow, None, &mut found);
    found
}
