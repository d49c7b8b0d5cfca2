//! The cycles as a function of what the launch leaves free: the trip counts that depend on a parameter or on data.

use std::fmt::Write;

use warplens_facts::facts::{Node, TripCount};

use crate::{Change, Question};

/// Loops that appear in the function; more would not be read.
const MOST_LOOPS: usize = 3;

/// `fixed + per_trip * (trips)`, a term for each outermost loop whose trip count is not a number, wherever it
/// is: the tangent at the present trips, which is the function itself as long as the same bound holds.
///
/// Outermost is a free loop that is in no other free one. Under a branch a loop's term holds the share of the
/// warps that come to it.
pub(crate) fn of_trips(
    question: &Question,
    cycles: f64,
    solve: &dyn Fn(&Question) -> Option<f64>,
) -> Option<String> {
    let input = question.input;
    let mut free = Vec::new();
    let mut seen = 0;
    collect(
        &input.flow.nodes,
        &mut Vec::new(),
        false,
        &mut seen,
        &mut free,
    );
    free.truncate(MOST_LOOPS);
    if free.is_empty() {
        return None;
    }
    let mut fixed = cycles;
    let mut terms = String::new();
    for Free {
        path,
        number,
        trips,
        count,
    } in free
    {
        let count = match count {
            TripCount::Expression(text) => format!("({text})"),
            // A line would not hold on when a comment moves the loop.
            TripCount::Number | TripCount::Unknown => format!("trips(loop {number})"),
        };
        let changed = input.with(&[Change::TripCountAt { path, factor: 2.0 }]);
        let doubled = solve(&Question {
            input: &changed,
            ..*question
        })?;
        let slope = (doubled - cycles).max(0.0) / trips;
        fixed -= slope * trips;
        let _ = write!(terms, " + {} * {count}", rounded(slope));
    }
    Some(format!("{}{terms}", rounded(fixed.max(0.0))))
}

/// A loop whose trip count is not a number.
struct Free {
    /// Where it is: an index into each list of nodes from the outermost, and the side of a branch.
    path: Vec<(usize, bool)>,
    /// Its number among the outermost loops of the kernel, from 1.
    number: usize,
    /// Its trip count, as a number and as the source has it.
    trips: f64,
    count: TripCount,
}

/// Lists the outermost free loops; `inside` is true within a loop of a fixed count.
fn collect(
    flow: &[Node],
    path: &mut Vec<(usize, bool)>,
    inside: bool,
    seen: &mut usize,
    free: &mut Vec<Free>,
) {
    for (index, node) in flow.iter().enumerate() {
        match node {
            Node::Loop {
                known,
                count,
                trips,
                body,
                ..
            } => {
                *seen += usize::from(!inside);
                path.push((index, true));
                if *trips > 0.0 && (!known || matches!(count, TripCount::Expression(_))) {
                    free.push(Free {
                        path: path.clone(),
                        number: *seen,
                        trips: *trips,
                        count: count.clone(),
                    });
                } else {
                    collect(body, path, true, seen, free);
                }
                path.pop();
            }
            Node::Branch {
                then, otherwise, ..
            } => {
                for (side, nodes) in [(true, then), (false, otherwise)] {
                    path.push((index, side));
                    collect(nodes, path, inside, seen, free);
                    path.pop();
                }
            }
            Node::Compute { .. } | Node::Access { .. } | Node::Barrier { .. } => {}
        }
    }
}

/// Whole cycles where there are thousands, else enough digits that a long loop's term keeps four.
fn rounded(value: f64) -> String {
    if value >= 1000.0 {
        format!("{value:.0}")
    } else if value >= 10.0 || value == 0.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}
