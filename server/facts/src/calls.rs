//! How often warps make the calls that no compiler puts a body in place of.
//!
//! In: a kernel in IR and its facts. Out: the executions of each such call. What holds: a call that is in no loop, is not made, or whose
//! number is not known, has none.

use warplens_ir::{
    Control, Controls, ExprKind, Kernel, MachineCall, Part, StaysCall, Stmt, StmtKind,
};
use warplens_ir::{expressions, parts};

use crate::facts::SourceFacts;

/// Calls of a kernel that are followed: each walks the kernel.
const MOST: usize = 32;

/// The executions of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallExecutions {
    /// The call's number in [`Kernel::calls`].
    pub call: usize,
    /// How often an average warp makes it.
    pub of_a_warp: f64,
    /// False where an assumed value decides it.
    pub exact: bool,
}

/// Those of a kernel's calls, in their order.
pub fn call_executions(kernel: &Kernel, facts: &SourceFacts) -> Vec<CallExecutions> {
    if kernel.calls.is_empty() {
        return Vec::new();
    }
    let controls = Controls::of(kernel);
    let launch = &facts.launch;
    let warps = launch.warps_per_block(facts.warp_size) as f64 * launch.blocks() as f64;
    let calls = kernel.calls.iter().take(MOST).enumerate();
    calls
        .filter_map(|(at, call)| {
            let (times, exact) = executions(kernel, facts, &controls, call)?;
            Some(CallExecutions {
                call: at,
                of_a_warp: times / warps.max(1.0),
                exact,
            })
        })
        .collect()
}

/// How often all warps make a call, and whether that is exact.
fn executions(
    kernel: &Kernel,
    facts: &SourceFacts,
    controls: &Controls,
    call: &MachineCall,
) -> Option<(f64, bool)> {
    let site = call.site;
    let calls = |statements: &[Stmt]| {
        let mut found = false;
        expressions(statements, &mut |expression| {
            found |= expression.site == site
                && matches!(expression.kind, ExprKind::Inline(..) | ExprKind::Apply(..));
        });
        found
    };
    let way = |control: Option<Control>| facts.ways.get(control?.0 as usize)?.as_ref();
    let mut in_loop = false;
    // The innermost path that leads there: outer ones are met before.
    let mut innermost: Option<(f64, bool)> = None;
    let mut look = |part: Part<'_>| {
        let Part::Statement(statement) = part else {
            return;
        };
        match &statement.kind {
            // A function that calls itself is a loop at its call: as often as its body, the call.
            StmtKind::Loop { body, .. }
                if calls(body) || (call.why == StaysCall::Recursive && statement.site == site) =>
            {
                in_loop = true;
                innermost = way(controls.of_loop(statement)).map(|way| (way.taken, way.exact));
            }
            StmtKind::If(condition, then, otherwise) => {
                let taken = calls(then);
                if taken || calls(otherwise) {
                    innermost = way(controls.of_condition(condition))
                        .map(|way| (if taken { way.taken } else { way.other }, way.exact));
                }
            }
            _ => {}
        }
    };
    parts(&kernel.body, &mut look);
    for routine in &kernel.routines {
        parts(&routine.body, &mut look);
    }
    innermost.filter(|(times, _)| in_loop && times.is_finite())
}
