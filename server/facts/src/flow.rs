//! The average warp's work, drafted while the kernel is executed and finished once it is known how often
//! each context runs.

use crate::context::Executions;
use crate::facts::{Node, TripCount};
use warplens_machine::Mix;

/// A node of the flow whose weights are not known yet; contexts are indices into the executor's.
#[derive(Debug, Clone)]
pub(crate) enum Draft {
    Compute {
        mix: Mix,
        uses: Vec<usize>,
        chain: f64,
        line: u32,
    },
    Access {
        access: usize,
        uses: Vec<usize>,
    },
    Barrier {
        line: u32,
    },
    /// A call of a body that is executed once for all its calls.
    Call {
        body: usize,
        uses: Vec<usize>,
        line: u32,
    },
    Loop {
        outer: usize,
        inner: usize,
        known: bool,
        count: TripCount,
        body: Vec<Draft>,
        line: u32,
    },
    Branch {
        outer: usize,
        taken: usize,
        other: usize,
        then: Vec<Draft>,
        otherwise: Vec<Draft>,
        line: u32,
    },
}

/// Adds instructions to the stretch at hand, or begins a new one where a load's value is first used.
pub(crate) fn compute(list: &mut Vec<Draft>, line: u32, add: &Mix, needs: &[usize], chain: f64) {
    if let Some(Draft::Compute {
        mix,
        uses,
        chain: longest,
        line: at,
    }) = list.last_mut()
        && *at == line
        && (needs.is_empty() || needs.iter().all(|need| uses.contains(need)))
    {
        mix.add(add, 1.0);
        *longest += chain;
        return;
    }
    if add.total() > 0.0 || !needs.is_empty() {
        list.push(Draft::Compute {
            mix: *add,
            uses: needs.to_vec(),
            chain,
            line,
        });
    }
}

/// Fills in trips and weights; `bodies` are what the calls of each routine's body issue, and their chains.
pub(crate) fn finish(
    drafts: Vec<Draft>,
    executions: &[Executions],
    bodies: &[(Mix, f64)],
) -> Vec<Node> {
    let ratio = |part: usize, whole: usize| {
        if executions[whole].warps > 0.0 {
            executions[part].warps / executions[whole].warps
        } else {
            0.0
        }
    };
    drafts
        .into_iter()
        .map(|draft| match draft {
            Draft::Compute {
                mix,
                uses,
                chain,
                line,
            } => Node::Compute {
                mix,
                uses,
                chain: chain.min(mix.total()),
                line,
            },
            Draft::Access { access, uses } => Node::Access { access, uses },
            Draft::Barrier { line } => Node::Barrier { line },
            Draft::Call { body, uses, line } => {
                let (mix, chain) = bodies[body];
                Node::Compute {
                    mix,
                    uses,
                    chain,
                    line,
                }
            }
            Draft::Loop {
                outer,
                inner,
                known,
                count,
                body,
                line,
            } => Node::Loop {
                trips: ratio(inner, outer),
                known,
                count,
                body: finish(body, executions, bodies),
                line,
            },
            Draft::Branch {
                outer,
                taken,
                other,
                then,
                otherwise,
                line,
            } => Node::Branch {
                taken: ratio(taken, outer),
                other: ratio(other, outer),
                then: finish(then, executions, bodies),
                otherwise: finish(otherwise, executions, bodies),
                line,
            },
        })
        .collect()
}
