//! Rows that data places, each walked along by one thread: a thread per row of a sparse matrix, rows that were looked up.

use warplens_facts::facts::{Access, AddressPart, Op, Pattern, Space};

use crate::{Context, evidence};

/// Rows of fewer elements are a sector or two, which their thread uses up.
const LONG: f64 = 16.0;

/// True for a load along a row of its own thread's: an iteration of its loop goes on by an element, where the row begins is
/// data of the thread's, and neighbouring threads do not go side by side. Of rows whose length is not known, those that are
/// summed. `innermost`: the loop around each access, as [`crate::subjects::flow::innermost`] finds it.
pub(crate) fn is_walked(
    ctx: &Context<'_>,
    index: usize,
    innermost: impl Fn(usize) -> Option<(u32, Option<f64>)>,
) -> bool {
    let access = &ctx.facts.accesses[index];
    is_own_row(access)
        && innermost(index).is_some_and(|(line, trips)| match trips {
            Some(trips) => trips >= LONG,
            None => evidence::sums_at(ctx, line),
        })
}

fn is_own_row(access: &Access) -> bool {
    let loads = access.space == Space::Global && access.op == Op::Load;
    // Where it is not known which array a pointer leads into, nothing is known of its rows.
    if !loads
        || access.array.is_empty()
        || access.pattern != Pattern::DataDependent
        || access.loop_depth == 0
    {
        return false;
    }
    let element = i64::from(access.bytes_per_lane);
    let parts = access.parts.iter().flatten();
    let (mut walks, mut own, mut beside) = (false, false, false);
    for (step, part) in parts {
        match part {
            AddressPart::Loop(depth) => {
                walks |= *step == element && *depth + 1 == access.loop_depth as usize;
            }
            AddressPart::Thread(_) | AddressPart::Digit { .. } => beside |= step.abs() <= element,
            AddressPart::Values { with, by_data, .. } => {
                own |= *by_data && with.thread.contains(&true);
            }
            AddressPart::Block(_) => {}
        }
    }
    walks && own && !beside
}

/// Why, in words.
pub(crate) fn cause(access: &Access) -> String {
    format!(
        "each thread walks along a row of its own by `{}`, and where rows begin is data: the lanes of a warp are rows apart",
        access.text
    )
}
