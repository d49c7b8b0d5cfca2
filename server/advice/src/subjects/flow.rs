//! What an average warp executes in its order (`ExecutedFlow`): an access looked up in it.

use warplens_facts::facts::Node;

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
