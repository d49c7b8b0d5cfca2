//! What an average warp executes in its order (`ExecutedFlow`): an access looked up in it.

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

/// The innermost loop around an access: the line of its head, and its iterations where they are a number.
pub(crate) fn innermost(flow: &[Node], access: usize) -> Option<(u32, Option<f64>)> {
    flow.iter().find_map(|node| match node {
        Node::Loop {
            body,
            line,
            trips,
            known,
            count,
        } => innermost(body, access).or_else(|| {
            let number = *known && *count == TripCount::Number;
            in_branches(body, access).then(|| (*line, number.then_some(*trips)))
        }),
        Node::Branch {
            then, otherwise, ..
        } => innermost(then, access).or_else(|| innermost(otherwise, access)),
        _ => None,
    })
}

/// True where branches, and no loop, are around the access.
fn in_branches(flow: &[Node], wanted: usize) -> bool {
    flow.iter().any(|node| match node {
        Node::Access { access, .. } => *access == wanted,
        Node::Branch {
            then, otherwise, ..
        } => in_branches(then, wanted) || in_branches(otherwise, wanted),
        _ => false,
    })
}
