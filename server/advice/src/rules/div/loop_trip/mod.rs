//! div/loop-trip: lanes of a warp execute different numbers of iterations of a loop.

use std::collections::HashMap;

use warplens_facts::facts::{Branch, BranchKind, Certainty, Span, Uniformity};
use warplens_ir::{ExprKind, Part, Stmt, StmtKind, parts};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "div/loop-trip",
    title: "lanes of a warp execute different numbers of iterations: all wait for the last one",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[],
};

/// Lanes that idle in an iteration, on average, as a part of the warp: less is the loop's ragged end.
const IDLE: f64 = 0.15;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let uneven: Vec<&Branch> = ctx
        .facts
        .branches
        .iter()
        .filter(|branch| {
            branch.kind == BranchKind::Loop
                && branch.uniformity == Uniformity::Divergent
                && branch.certainty != Certainty::Unknown
                && branch.site.callee == 0
        })
        .collect();
    if uneven.is_empty() {
        return Vec::new();
    }
    let lanes = lanes(ctx);
    let mut found = Vec::new();
    walk(ctx, &ctx.kernel.body, true, &mut |head, body, whole| {
        let branch = uneven.iter().find(|branch| branch.site.span == head);
        if let (Some(branch), true) = (branch, whole) {
            found.extend(finding(ctx, branch, body, &lanes));
        }
    });
    found
}

/// Average active lanes by line, of the operations there.
fn lanes(ctx: &Context<'_>) -> HashMap<u32, f64> {
    let mut by_line: HashMap<u32, (f64, f64)> = HashMap::new();
    for operation in &ctx.facts.operations {
        let sums = by_line.entry(operation.line).or_default();
        sums.0 += operation.threads;
        sums.1 += operation.warps;
    }
    let averages = by_line.into_iter().filter(|(_, (_, warps))| *warps > 0.0);
    averages
        .map(|(line, (threads, warps))| (line, threads / warps))
        .collect()
}

/// Visits loops with a condition: its place, the loop's body, and whether whole warps come there, a guard aside.
fn walk(
    ctx: &Context<'_>,
    statements: &[Stmt],
    whole: bool,
    visit: &mut dyn FnMut(Span, &[Stmt], bool),
) {
    for statement in statements {
        let mut inside = whole;
        match &statement.kind {
            StmtKind::Loop {
                condition: Some(condition),
                body,
                ..
            } => visit(condition.site.span, body, whole),
            StmtKind::If(condition, ..) => {
                let mut branches = ctx.facts.branches.iter();
                let found = branches.find(|branch| {
                    branch.kind == BranchKind::If && branch.site.span == condition.site.span
                });
                inside &= found.is_some_and(|branch| {
                    branch.guard || branch.divergent_warp_fraction == Some(0.0)
                });
            }
            _ => {}
        }
        for (_, inner) in statement.blocks() {
            walk(ctx, inner, inside, visit);
        }
    }
}

fn finding(
    ctx: &Context<'_>,
    branch: &Branch,
    body: &[Stmt],
    lanes: &HashMap<u32, f64>,
) -> Option<Finding> {
    let facts = ctx.facts;
    let warp = f64::from(facts.warp_size);
    let trips = branch
        .trips
        .filter(|trips| trips.is_finite() && *trips > 1.0)?;
    // The most lanes that are at work somewhere in the body: those of an iteration, without its own branches.
    let mut active: f64 = 0.0;
    parts(body, &mut |part| {
        let Part::Expression(expression) = part else {
            return;
        };
        let site = expression.site;
        if site.callee == 0 && site.line != branch.site.line {
            active = active.max(lanes.get(&site.line).copied().unwrap_or(0.0));
        }
        if matches!(expression.kind, ExprKind::Index(..) | ExprKind::Deref(_)) {
            let of_access = facts.accesses.iter().find(|access| access.site == site);
            let busy = of_access.and_then(|access| access.active_lanes_per_request);
            active = active.max(busy.unwrap_or(0.0));
        }
    });
    let busy = active / warp;
    if active <= 0.0 || busy > 1.0 - IDLE {
        return None;
    }
    let gain = ctx.trial(&[Change::TripCount {
        line: branch.site.line,
        factor: busy,
    }])?;
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let reservation = match branch.certainty {
        Certainty::Exact => (!branch.constraints.is_empty())
            .then(|| format!("holds when {}", branch.constraints.join(" and "))),
        Certainty::Assumed | Certainty::Unknown => wording::assumes(facts, &[&branch.text])
            .or_else(|| branch.why.as_ref().map(ToString::to_string)),
    };
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, branch.certainty, reservation.is_some()),
        place: Place::Site(branch.site),
        message: wording::sentence([
            Some(format!(
                "give the lanes of a warp equal trip counts ({} per warp, {} per lane on average)",
                number(trips),
                number(trips * busy)
            )),
            Some(format!(
                "{} iterations per warp, {} per lane on average: how long `{}` holds differs between lanes",
                number(trips),
                number(trips * busy),
                branch.text
            )),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}
