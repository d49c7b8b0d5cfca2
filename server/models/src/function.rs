//! The cycles as a function of what the launch leaves free: the trip counts that hang on a parameter or on data.

use std::fmt::Write;

use warplens_analysis::facts::{KernelFacts, Node};

use crate::Input;

/// Loops that appear in the function; more would not be read.
const MOST_LOOPS: usize = 3;

/// `fixed + per_trip * (trips)`, a term for each outermost loop whose trip count is not a number: the
/// tangent at the present trips, which is the function itself as long as the same bound holds.
pub(crate) fn of_trips(
    input: &Input,
    cycles: f64,
    solve: &dyn Fn(&Input) -> Option<f64>,
) -> Option<String> {
    let free: Vec<usize> = input
        .facts
        .flow
        .iter()
        .enumerate()
        .filter(|(_, node)| matches!(node, Node::Loop { known, text, trips, .. } if *trips > 0.0 && (!known || is_symbolic(text))))
        .map(|(index, _)| index)
        .take(MOST_LOOPS)
        .collect();
    if free.is_empty() {
        return None;
    }
    let mut fixed = cycles;
    let mut terms = String::new();
    for index in free {
        let mut facts: KernelFacts = input.facts.clone();
        let Some(Node::Loop {
            trips, text, known, ..
        }) = facts.flow.get_mut(index)
        else {
            continue;
        };
        let before = *trips;
        *trips = 2.0 * before;
        let count = if *known || is_symbolic(text) {
            format!("({text})")
        } else {
            // A line would not hold on when a comment moves the loop.
            format!("trips(loop {})", loops(&input.facts.flow[..=index]))
        };
        let doubled = solve(&Input {
            facts: &facts,
            ..*input
        })?;
        let slope = (doubled - cycles).max(0.0) / before;
        fixed -= slope * before;
        let _ = write!(terms, " + {} * {count}", rounded(slope));
    }
    Some(format!("{}{terms}", rounded(fixed.max(0.0))))
}

/// Loops that stand side by side.
fn loops(flow: &[Node]) -> usize {
    let is_loop = |node: &&Node| matches!(node, Node::Loop { .. });
    flow.iter().filter(is_loop).count()
}

fn is_symbolic(text: &str) -> bool {
    text.chars().any(char::is_alphabetic)
}

/// Four figures are more than the model is worth.
fn rounded(value: f64) -> String {
    if value >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
