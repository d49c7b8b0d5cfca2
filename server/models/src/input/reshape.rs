//! The flow of an average warp with accesses, barriers or instructions moved, taken away or replaced.

use std::mem;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_codegen::Class;
use warplens_facts::facts::{Node, each_stretch};
use warplens_machine::{Mix, Pipe};

use super::executed::ExecutedFlow;

/// Instructions that a warp executes, by line and class.
pub type Instructions = FxHashMap<u32, Vec<(Class, f64)>>;

/// Takes accesses out of the work of a warp.
pub(super) fn drop_accesses(flow: &mut Vec<Node>, accesses: &[usize]) {
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

/// Leaves a part of the executions of an access.
pub(super) fn thin(nodes: &mut [Node], access: usize, part: f64) {
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

/// Moves loads out of their innermost loops, each in front of it; takes those that it moved out of `wanted`.
pub(super) fn hoist(nodes: &mut Vec<Node>, wanted: &mut FxHashSet<usize>) {
    for mut node in mem::take(nodes) {
        match &mut node {
            Node::Loop { body, .. } => {
                let own = |node: &mut Node| matches!(node, Node::Access { access, .. } if wanted.remove(access));
                nodes.extend(body.extract_if(.., own));
                hoist(body, wanted);
            }
            Node::Branch {
                then, otherwise, ..
            } => {
                hoist(then, wanted);
                hoist(otherwise, wanted);
            }
            _ => {}
        }
        nodes.push(node);
    }
}

/// Moves accesses out of loops, each behind the loop at its line; takes those that it moved out of `wanted`.
pub(super) fn sink(nodes: &mut Vec<Node>, wanted: &mut FxHashMap<u32, FxHashSet<usize>>) {
    for mut node in mem::take(nodes) {
        let mut behind = Vec::new();
        match &mut node {
            Node::Loop { body, line, .. } => {
                if let Some(here) = wanted.get_mut(line) {
                    take(body, here, &mut behind);
                }
                sink(body, wanted);
            }
            Node::Branch {
                then, otherwise, ..
            } => {
                sink(then, wanted);
                sink(otherwise, wanted);
            }
            _ => {}
        }
        nodes.push(node);
        nodes.append(&mut behind);
    }
}

/// Moves the accesses of `wanted` to `taken`.
fn take(nodes: &mut Vec<Node>, wanted: &mut FxHashSet<usize>, taken: &mut Vec<Node>) {
    let own =
        |node: &mut Node| matches!(node, Node::Access { access, .. } if wanted.remove(access));
    taken.extend(nodes.extract_if(.., own));
    for node in nodes {
        match node {
            Node::Loop { body, .. } => take(body, wanted, taken),
            Node::Branch {
                then, otherwise, ..
            } => {
                take(then, wanted, taken);
                take(otherwise, wanted, taken);
            }
            _ => {}
        }
    }
}

/// Takes the barriers of a line out of the work.
pub(super) fn drop_barriers(flow: &mut Vec<Node>, at: u32) {
    flow.retain(|node| !matches!(node, Node::Barrier { line } if *line == at));
    for node in flow {
        match node {
            Node::Loop { body, .. } => drop_barriers(body, at),
            Node::Branch {
                then, otherwise, ..
            } => {
                drop_barriers(then, at);
                drop_barriers(otherwise, at);
            }
            Node::Compute { .. } | Node::Access { .. } | Node::Barrier { .. } => {}
        }
    }
}

/// Multiplies the trip count of the loops at a line.
pub(super) fn shorten(flow: &mut [Node], at: u32, by: f64) {
    for node in flow {
        match node {
            Node::Loop {
                trips, body, line, ..
            } => {
                if *line == at {
                    *trips *= by;
                }
                shorten(body, at, by);
            }
            Node::Branch {
                then, otherwise, ..
            } => {
                shorten(then, at, by);
                shorten(otherwise, at, by);
            }
            Node::Compute { .. } | Node::Access { .. } | Node::Barrier { .. } => {}
        }
    }
}

/// Takes from an iteration's chain what several sums would not wait for: from the source's, and from the part of a line's
/// compiled instructions that wait for one another.
pub(super) fn split_sums(flow: &mut ExecutedFlow, head: u32, lines: &[u32], waits: f64, sums: u32) {
    let kept = waits / f64::from(sums);
    let ExecutedFlow { nodes, serial } = flow;
    within(nodes, head, &mut |mix, chain, line| {
        if !lines.contains(&line) {
            return;
        }
        *chain = (*chain - waits + kept).max(kept);
        let total = mix.total();
        if total > 0.0 {
            for (_, part) in serial.iter_mut().filter(|known| known.0 == line) {
                *part = (*part - (waits - kept) / total).max(kept / total).min(1.0);
            }
        }
    });
}

/// Visits the straight computation of a loop.
fn within(flow: &mut [Node], head: u32, visit: &mut dyn FnMut(&Mix, &mut f64, u32)) {
    for node in flow {
        match node {
            Node::Loop { line, body, .. } if *line == head => {
                for node in body {
                    if let Node::Compute {
                        mix, chain, line, ..
                    } = node
                    {
                        visit(mix, chain, *line);
                    }
                }
            }
            Node::Loop { body, .. } => within(body, head, visit),
            Node::Branch {
                then, otherwise, ..
            } => {
                within(then, head, visit);
                within(otherwise, head, visit);
            }
            _ => {}
        }
    }
}

/// The change, spread over the stretches of each line as its instructions are. What is on a line without a stretch
/// of its own is among those of all lines.
pub(super) fn replace(flow: &mut [Node], before: &Instructions, after: &Instructions) {
    let mut lines: FxHashMap<u32, Mix> = FxHashMap::default();
    let mut anywhere = Mix::default();
    each_stretch(flow, 1.0, &mut |mix, _, line, visits| {
        lines.entry(line).or_default().add(mix, visits);
        anywhere.add(mix, visits);
    });
    let mut changes: FxHashMap<u32, (Mix, Mix)> = FxHashMap::default();
    let mut rest = (Mix::default(), Mix::default());
    for (part, added) in [(before, false), (after, true)] {
        for (line, classes) in part {
            let known = lines.get(line).is_some_and(|mix| mix.total() > 0.0);
            let change = if known {
                changes.entry(*line).or_default()
            } else {
                &mut rest
            };
            let mix = if added { &mut change.1 } else { &mut change.0 };
            for (class, count) in classes {
                if let Some(pipe) = class.pipe() {
                    mix[pipe] += count;
                }
            }
        }
    }
    let apply = |mix: &mut Mix, all: &Mix, (less, more): &(Mix, Mix)| {
        let share = if all.total() > 0.0 {
            mix.total() / all.total()
        } else {
            0.0
        };
        for pipe in Pipe::ALL {
            let (of, taken) = (all[pipe], less[pipe]);
            let kept = if of > 0.0 {
                (1.0 - taken / of).max(0.0)
            } else {
                1.0
            };
            mix[pipe] *= kept;
        }
        mix.add(more, share);
    };
    each_stretch(flow, 1.0, &mut |mix, chain, line, _| {
        if let (Some(change), Some(all)) = (changes.get(&line), lines.get(&line)) {
            apply(mix, all, change);
        }
        apply(mix, &anywhere, &rest);
        *chain = chain.min(mix.total());
    });
}

/// Puts instructions that a warp executes some times on a line.
pub(super) fn add(flow: &mut Vec<Node>, at: u32, each: &Mix, times: f64) {
    let mut left = times;
    each_stretch(flow, 1.0, &mut |mix, chain, line, visits| {
        if line == at && visits > 0.0 && left != 0.0 {
            mix.add(each, left / visits);
            *chain += each.total() * left / visits;
            left = 0.0;
        }
    });
    if left != 0.0 {
        let mut mix = Mix::default();
        mix.add(each, left);
        flow.push(Node::Compute {
            mix,
            uses: Vec::new(),
            chain: mix.total(),
            line: at,
        });
    }
}

/// The node at the end of a path.
pub(super) fn at<'f>(flow: &'f mut [Node], path: &[(usize, bool)]) -> Option<&'f mut Node> {
    let (&(index, side), rest) = path.split_first()?;
    let node = flow.get_mut(index)?;
    if rest.is_empty() {
        return Some(node);
    }
    match node {
        Node::Loop { body, .. } => at(body, rest),
        Node::Branch {
            then, otherwise, ..
        } => at(if side { then } else { otherwise }, rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use warplens_facts::facts::TripCount;

    use super::*;

    fn load(access: usize) -> Node {
        Node::Access {
            access,
            uses: Vec::new(),
        }
    }

    fn turns(trips: f64, body: Vec<Node>) -> Node {
        Node::Loop {
            trips,
            known: true,
            count: TripCount::Number,
            body,
            line: 1,
        }
    }

    #[test]
    fn loads_move_out_of_their_innermost_loops_alone() {
        let inner = turns(8.0, vec![load(1), load(2), load(3)]);
        let mut flow = vec![turns(4.0, vec![load(4), inner])];
        let mut wanted = [2, 3, 4, 7].into_iter().collect();
        hoist(&mut flow, &mut wanted);
        let inner = turns(8.0, vec![load(1)]);
        let expected = vec![load(4), turns(4.0, vec![load(2), load(3), inner])];
        assert_eq!(flow, expected);
        assert_eq!(wanted, [7].into_iter().collect());
    }

    #[test]
    fn accesses_move_behind_the_loop_at_their_line() {
        let mut flow = vec![
            turns(4.0, vec![turns(8.0, vec![load(1), load(2)])]),
            load(3),
        ];
        let mut wanted = [(1, [2].into_iter().collect())].into_iter().collect();
        sink(&mut flow, &mut wanted);
        let expected = vec![
            turns(4.0, vec![turns(8.0, vec![load(1)])]),
            load(2),
            load(3),
        ];
        assert_eq!(flow, expected);
    }
}
