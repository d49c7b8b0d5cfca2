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
    around_each(flow, Some(1.0), &|node| match node {
        Node::Loop {
            trips, known: true, ..
        } => *trips,
        _ => 0.0,
    })
}

/// The innermost loop around each access that has one: the line of its head, and its iterations where they are a number.
pub(crate) fn innermost(flow: &[Node]) -> FxHashMap<usize, (u32, Option<f64>)> {
    around_each(flow, None, &|node| match node {
        Node::Loop {
            line,
            trips,
            known,
            count,
            ..
        } => {
            let number = *known && *count == TripCount::Number;
            (*line, number.then_some(*trips))
        }
        _ => (0, None),
    })
}

/// What `of_loop` says of the innermost loop around each access; outside of all loops `outside`, or nothing.
fn around_each<T: Copy>(
    flow: &[Node],
    outside: Option<T>,
    of_loop: &dyn Fn(&Node) -> T,
) -> FxHashMap<usize, T> {
    fn walk<T: Copy>(
        flow: &[Node],
        around: Option<T>,
        of_loop: &dyn Fn(&Node) -> T,
        found: &mut FxHashMap<usize, T>,
    ) {
        for node in flow {
            match node {
                Node::Access { access, .. } => {
                    if let Some(around) = around {
                        found.entry(*access).or_insert(around);
                    }
                }
                Node::Loop { body, .. } => walk(body, Some(of_loop(node)), of_loop, found),
                Node::Branch {
                    then, otherwise, ..
                } => {
                    walk(then, around, of_loop, found);
                    walk(otherwise, around, of_loop, found);
                }
                Node::Compute { .. } | Node::Barrier { .. } => {}
            }
        }
    }
    let mut found = FxHashMap::default();
    walk(flow, outside, of_loop, &mut found);
    found
}
