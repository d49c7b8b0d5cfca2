//! The work of a warp in its order (`KernelFacts::flow`): an access looked up in it, and copies of it with an access taken
//! out or made rarer, for what-ifs.

use warplens_facts::facts::Node;

/// Takes accesses out of the work of a warp.
pub(crate) fn drop_accesses(flow: &mut Vec<Node>, accesses: &[usize]) {
    flow.retain(|node| !matches!(node, Node::Access { access, .. } if accesses.contains(access)));
    for node in flow {
        match node {
            Node::Loop { body, .. } => drop_accesses(body, accesses),
            Node::Branch {
                then, otherwise, ..
            } => {
                drop_accesses(then, accesses);
                drop_accesses(otherwise, accesses);
            }
            Node::Compute { uses, .. } | Node::Access { uses, .. } => {
                uses.retain(|used| !accesses.contains(used));
            }
            Node::Barrier { .. } => {}
        }
    }
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

/// Leaves a part of the executions of an access.
pub(crate) fn thin(nodes: &mut [Node], access: usize, part: f64) {
    for node in nodes {
        match node {
            Node::Access { access: of, .. } if *of == access => {
                let load = node.clone();
                *node = Node::Branch {
                    taken: part,
                    other: 1.0 - part,
                    then: vec![load],
                    otherwise: Vec::new(),
                    line: 0,
                };
            }
            Node::Loop { body, .. } => thin(body, access, part),
            Node::Branch {
                then, otherwise, ..
            } => {
                thin(then, access, part);
                thin(otherwise, access, part);
            }
            _ => {}
        }
    }
}
