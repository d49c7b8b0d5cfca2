//! How warps go on where control parts: the figures that a compiled kernel's code is weighed by.
//!
//! They are noted by the place in the IR, so that the compiled kernel, which is made of the same IR, finds them. What
//! was executed several times (a body in place of several calls) adds up.

use warplens_ir::Controls;

use crate::context::Executions;
use crate::draft::ControlDraft;
use crate::executor::Executor;
use crate::facts::{Branch, BranchKind, Certainty, ControlCounts};
use crate::value::address;

impl Executor<'_> {
    /// Notes where control parted: the contexts before it, where it was taken (a loop's body), and where not.
    pub(crate) fn parted<T>(
        &mut self,
        place: &T,
        branch: usize,
        (outer, taken, other): (usize, usize, Option<usize>),
    ) {
        if self.dry > 0 {
            return;
        }
        let at = address(place);
        let original = match &self.originals {
            Some(originals) => originals.get(&at).copied(),
            None => Some(at),
        };
        if let Some(place) = original {
            self.ways.push(ControlDraft {
                place,
                branch,
                outer,
                taken,
                other,
            });
        }
    }

    /// The figures of every control by its number.
    pub(crate) fn finished_ways(
        &self,
        executions: &[Executions],
        branches: &[Branch],
        assumed: bool,
    ) -> Vec<Option<ControlCounts>> {
        let controls = Controls::of(self.kernel);
        let mut all: Vec<Option<ControlCounts>> = vec![None; controls.count()];
        for draft in &self.ways {
            let Some(control) = controls.at(draft.place) else {
                continue;
            };
            let way = way(draft, executions, branches.get(draft.branch), assumed);
            let known = &mut all[control.0 as usize];
            *known = Some(match known.take() {
                Some(known) => joined(known, way),
                None => way,
            });
        }
        all
    }
}

fn way(
    draft: &ControlDraft,
    executions: &[Executions],
    branch: Option<&Branch>,
    assumed: bool,
) -> ControlCounts {
    let warps = |context: usize| executions[context].warps;
    let by_context = ControlCounts {
        reached: warps(draft.outer),
        taken: warps(draft.taken),
        other: draft.other.map_or(0.0, warps),
        turns: Vec::new(),
        exact: !assumed && executions[draft.outer].exact && executions[draft.taken].exact,
    };
    // What was counted warp by warp is in the branch.
    let Some((branch, reached)) = branch.and_then(|branch| Some((branch, branch.evaluations?)))
    else {
        return by_context;
    };
    let exact = branch.certainty == Certainty::Exact;
    match (branch.kind, branch.trips, branch.taken_warp_fraction) {
        (BranchKind::Loop, Some(trips), _) => ControlCounts {
            reached,
            taken: reached * trips,
            other: 0.0,
            turns: branch.turns.clone(),
            exact,
        },
        (BranchKind::If | BranchKind::Select, _, Some(taken)) => {
            let split = branch.divergent_warp_fraction.unwrap_or(0.0);
            ControlCounts {
                reached,
                taken: reached * taken,
                other: reached * (1.0 - taken + split),
                turns: Vec::new(),
                exact,
            }
        }
        _ => ControlCounts {
            exact: exact && by_context.exact,
            ..by_context
        },
    }
}

/// Two executions of one place.
fn joined(a: ControlCounts, b: ControlCounts) -> ControlCounts {
    let mut turns = a.turns;
    if b.turns.is_empty() {
        turns.clear();
    } else if !turns.is_empty() {
        for (trips, warps) in b.turns {
            match turns.iter_mut().find(|(of, _)| *of == trips) {
                Some((_, known)) => *known += warps,
                None => turns.push((trips, warps)),
            }
        }
    }
    ControlCounts {
        reached: a.reached + b.reached,
        taken: a.taken + b.taken,
        other: a.other + b.other,
        turns,
        exact: a.exact && b.exact,
    }
}
