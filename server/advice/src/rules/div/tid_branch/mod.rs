//! div/tid-branch: a condition that splits warps, with work behind it.

mod first_threads;
mod one_thread;

use warplens_facts::facts::{Branch, BranchKind, Certainty, Uniformity, Why};
use warplens_models::Factor;

use crate::rule::{Look, Rule, State, When};
use crate::wording::{self, percent};
use crate::{Context, Finding, Place, Removal, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "div/tid-branch",
    title: "a condition splits the lanes of a warp and both ways are long enough to cost",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[],
};

/// Fewer split warps than one in ten are a boundary, not a habit.
const FRACTION: f64 = 0.1;
/// Compilers predicate bodies of about this many instructions instead of branching around them: a hint about those is noise.
const PREDICATED: u32 = 8;
/// A body of less than this is a select or two. One between the two counts in a loop, where it is predicted to cost: an access
/// to memory takes its turn under a predicate as well. Once, it is a border.
const SELECTED: u32 = 4;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let branches = ctx.facts.branches.iter();
    let mut found: Vec<Finding> = branches
        .filter_map(|branch| one_thread::finding(ctx, branch))
        .collect();
    let others = split(ctx);
    let told = |one: &Finding| found.iter().any(|other| other.place == one.place);
    let others: Vec<Finding> = others.into_iter().filter(|one| !told(one)).collect();
    found.extend(others);
    found
}

/// Conditions that split warps, with work on both sides or for some lanes.
fn split(ctx: &Context<'_>) -> Vec<Finding> {
    let splitting: Vec<(&Branch, f64)> = ctx
        .facts
        .branches
        .iter()
        .filter(|branch| !packed(ctx, branch))
        .filter(|branch| operations(branch) >= PREDICATED || is_repeated(ctx, branch))
        .filter_map(|branch| Some((branch, splits(branch)?)))
        .collect();
    // What the model gains without any divergence is shared out by the work behind each branch; loops that
    // diverge have their part of it too, though this rule does not report them.
    let weights: f64 = ctx
        .facts
        .branches
        .iter()
        .filter(|branch| branch.uniformity == Uniformity::Divergent)
        .map(weight)
        .sum();
    if splitting.is_empty() || weights <= 0.0 {
        return Vec::new();
    }
    let saved = 1.0 - ctx.gain(Removal::Factor(Factor::Divergence)).recip();
    splitting
        .into_iter()
        .filter_map(|(branch, fraction)| {
            let shared = (1.0 - saved * weight(branch) / weights).recip();
            let rewritten = first_threads::gain(ctx, branch).filter(|gain| *gain > shared);
            let gain = rewritten.unwrap_or(shared);
            let often = fraction >= 0.5 && operations(branch) >= PREDICATED;
            let matters = gain >= wording::WORTH_KNOWING || often;
            matters.then(|| finding(ctx, branch, fraction, gain, rewritten.is_some()))
        })
        .collect()
}

/// True where no arrangement of the work would need fewer warps: one thread of a block that does what only
/// one can do, the first `k` threads.
fn packed(ctx: &Context<'_>, branch: &Branch) -> bool {
    let (Some(threads), Some(fraction), Some(evaluations)) = (
        branch.taken_threads,
        branch.taken_warp_fraction,
        branch.evaluations,
    ) else {
        return false;
    };
    let warps_per_block = ctx.facts.launch.warps_per_block(ctx.facts.warp_size) as f64;
    let blocks = evaluations / warps_per_block;
    if branch.other_operations > 0 || blocks <= 0.0 {
        return false;
    }
    let least = (threads / blocks / f64::from(ctx.facts.warp_size)).ceil();
    fraction * warps_per_block <= least + 1e-6
}

/// True where one lane writes what its warp has found: no other lane has anything to do.
fn is_one_lane(branch: &Branch) -> bool {
    let warps = branch.evaluations.zip(branch.taken_warp_fraction);
    let warps = warps.map(|(evaluations, fraction)| evaluations * fraction);
    branch.other_operations == 0
        && branch
            .taken_threads
            .zip(warps)
            .is_some_and(|(threads, warps)| threads <= 1.01 * warps)
}

/// True where one warp of the whole launch comes there, once: what a set-up kernel does with a few threads.
fn is_one_warp(branch: &Branch) -> bool {
    branch.evaluations.is_some_and(|times| times <= 1.0)
}

/// True where some lanes do a little more, once: what lies around a tile is loaded by those next to it.
fn is_border(ctx: &Context<'_>, branch: &Branch, gain: f64) -> bool {
    branch.other_operations == 0
        && operations(branch) < 2 * PREDICATED
        && gain < wording::COSTLY
        && !is_repeated(ctx, branch)
}

/// The divergent fraction, where the branch is a case of this rule.
fn splits(branch: &Branch) -> Option<f64> {
    let fraction = branch.divergent_warp_fraction?;
    let case = branch.uniformity == Uniformity::Divergent
        && branch.kind != BranchKind::Loop
        && !branch.guard
        && fraction >= FRACTION
        && operations(branch) >= SELECTED;
    case.then_some(fraction)
}

/// True where a warp comes by again and again.
fn is_repeated(ctx: &Context<'_>, branch: &Branch) -> bool {
    let launch = &ctx.facts.launch;
    let warps = launch.blocks() as f64 * launch.warps_per_block(ctx.facts.warp_size) as f64;
    branch.evaluations.is_some_and(|times| times >= 2.0 * warps)
}

/// Operations of both ways.
fn operations(branch: &Branch) -> u32 {
    branch.taken_operations + branch.other_operations
}

/// Operations executed under a split warp, up to a common factor.
fn weight(branch: &Branch) -> f64 {
    branch.divergent_warp_fraction.unwrap_or(0.0)
        * branch.evaluations.unwrap_or(1.0)
        * branch.trips.unwrap_or(1.0).max(1.0)
        * f64::from(operations(branch))
}

/// What the figures of a branch depend on.
fn reservation(ctx: &Context<'_>, branch: &Branch) -> Option<String> {
    match branch.certainty {
        Certainty::Exact => (!branch.constraints.is_empty())
            .then(|| format!("holds when {}", branch.constraints.join(" and "))),
        Certainty::Assumed | Certainty::Unknown => wording::assumes(ctx.facts, &[&branch.text])
            .or_else(|| branch.why.as_ref().map(ToString::to_string)),
    }
}

fn finding(
    ctx: &Context<'_>,
    branch: &Branch,
    fraction: f64,
    gain: f64,
    by_first_threads: bool,
) -> Finding {
    let warps = if fraction > 0.9995 {
        "every warp diverges".to_owned()
    } else {
        format!("{} of the warps diverge", percent(fraction))
    };
    let sides = if branch.other_operations == 0 {
        format!(
            "lanes that fail it idle through {} operations",
            branch.taken_operations
        )
    } else {
        format!(
            "both ways run one after the other, {} and {} operations",
            branch.taken_operations, branch.other_operations
        )
    };
    let reservation = reservation(ctx, branch);
    // A sample is of the launch at hand: no value of it is made up.
    let stated = reservation.is_some() && branch.why != Some(Why::ManyCases);
    let mut severity = wording::severity(gain, branch.certainty, stated);
    if is_one_lane(branch) || is_one_warp(branch) || is_border(ctx, branch, gain) {
        severity = Severity::Hint;
    }
    Finding {
        rule: RULE.id,
        severity,
        place: Place::Site(branch.site),
        message: wording::sentence([
            Some(format!(
                "branch by whole warps ({warps} on `{}`)",
                branch.text
            )),
            Some(format!("{warps} on `{}`: {sides}", branch.text)),
            by_first_threads.then(|| {
                "let the first threads of the block do what every m-th does: `t * m < blockDim.x` in place of \
                 `t % m == 0`, with `t * m` for `t` behind it"
                    .to_owned()
            }),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kernel, branch};

    #[test]
    fn odd_and_even_lanes_are_a_finding() {
        let findings = Kernel::new().branch(branch(5)).findings(|_| 1.4);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].rule, "div/tid-branch");
        assert_eq!(findings[0].severity, Severity::Warning);
        assert_eq!(
            findings[0].message,
            "1.40x: branch by whole warps (every warp diverges on `threadIdx.x % 2`)\n\
             every warp diverges on `threadIdx.x % 2`: both ways run one after the other, 20 and 14 \
             operations"
        );
    }

    #[test]
    fn guards_uniform_conditions_loops_and_short_bodies_are_none() {
        let mut guard = branch(5);
        guard.guard = true;
        let mut warp_uniform = branch(5);
        warp_uniform.uniformity = Uniformity::WarpUniform;
        warp_uniform.divergent_warp_fraction = Some(0.0);
        let mut data = branch(5);
        data.uniformity = Uniformity::DataDependent;
        let mut trip_count = branch(5);
        trip_count.kind = BranchKind::Loop;
        let mut short = branch(5);
        short.taken_operations = 3;
        short.other_operations = 0;
        let mut boundary = branch(5);
        boundary.divergent_warp_fraction = Some(0.03);
        for silent in [guard, warp_uniform, data, trip_count, short, boundary] {
            assert_eq!(
                Kernel::new().branch(silent.clone()).findings(|_| 1.4),
                [],
                "{silent:?}"
            );
        }
    }

    #[test]
    fn one_warp_of_a_launch_that_diverges_once_is_a_hint() {
        for (evaluations, severity) in [(1.0, Severity::Hint), (64.0, Severity::Warning)] {
            let mut once = branch(5);
            once.evaluations = Some(evaluations);
            let findings = Kernel::new().branch(once).findings(|_| 1.4);
            assert_eq!(findings[0].severity, severity);
        }
    }

    #[test]
    fn some_diverging_warps_without_cost_are_none_and_many_a_hint() {
        let mut few = branch(5);
        few.divergent_warp_fraction = Some(0.2);
        assert_eq!(Kernel::new().branch(few).findings(|_| 1.0), []);
        let many = Kernel::new().branch(branch(5)).findings(|_| 1.0);
        assert_eq!(many[0].severity, Severity::Hint);
    }

    #[test]
    fn a_few_operations_are_a_finding_in_a_loop_where_they_cost() {
        let mut few = branch(5);
        few.taken_operations = 5;
        few.other_operations = 0;
        let once = few.clone();
        few.evaluations = few.evaluations.map(|times| 8.0 * times);
        assert_eq!(Kernel::new().branch(few.clone()).findings(|_| 1.0), []);
        assert_eq!(Kernel::new().branch(few).findings(|_| 1.4).len(), 1);
        assert_eq!(Kernel::new().branch(once).findings(|_| 1.4), []);
    }

    #[test]
    fn the_gain_is_shared_out_by_work() {
        let mut heavy = branch(5);
        heavy.taken_operations = 68;
        heavy.other_operations = 34;
        let findings = Kernel::new()
            .branch(heavy)
            .branch(branch(9))
            .findings(|_| 2.0);
        // Half the time is saved; three quarters of that stand behind the first branch.
        assert!((findings[0].gain - 1.0 / (1.0 - 0.375)).abs() < 1e-9);
        assert!((findings[1].gain - 1.0 / (1.0 - 0.125)).abs() < 1e-9);
    }
}
