//! loop/uniform-branch: a condition inside a loop that is the same in every iteration.

pub(crate) mod unswitch_loop;

use warplens_facts::facts::{Branch, BranchKind, Certainty, Uniformity};
use warplens_ir::{
    BinaryOp, Expr, ExprKind, Part, Runs, Site, Stmt, StmtKind, Storage, VarId, parts,
};

use crate::rule::{Look, Rule, State, When};
use crate::wording::{self, number};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "loop/uniform-branch",
    title: "a condition inside a loop that is the same in every iteration",
    severity: "by predicted gain: information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[unswitch_loop::fixes],
};

/// Fewer iterations are not worth it.
const FEWEST: f64 = 4.0;
/// Lines of a loop that may be written twice.
const LONGEST: u32 = 12;
/// Instructions of an iteration that must go.
const STAYS: f64 = 0.2;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let same = |branch: &&Branch| {
        branch.kind == BranchKind::If
            && branch.site.callee == 0
            && matches!(
                branch.uniformity,
                Uniformity::Uniform | Uniformity::WarpUniform
            )
            && branch.certainty != Certainty::Unknown
    };
    let branches: Vec<&Branch> = ctx.facts.branches.iter().filter(same).collect();
    if branches.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    parts(&ctx.kernel.body, &mut |part| {
        let Part::Statement(statement) = part else {
            return;
        };
        let Some((trips, conditions)) = invariant(ctx, statement) else {
            return;
        };
        for condition in conditions {
            let branch = branches.iter().find(|branch| branch.site == condition.site);
            let Some(branch) = branch else { continue };
            found.extend(finding(ctx, branch, trips));
        }
    });
    found
}

/// The iterations of an innermost loop, and the conditions in it that nothing in it changes.
fn invariant<'a>(ctx: &Context<'_>, statement: &'a Stmt) -> Option<(f64, Vec<&'a Expr>)> {
    let StmtKind::Loop {
        condition: Some(head),
        step,
        body,
        ..
    } = &statement.kind
    else {
        return None;
    };
    let mut loops = ctx.facts.branches.iter();
    let branch = loops.find(|one| one.kind == BranchKind::Loop && one.site == head.site)?;
    let trips = branch.trips.filter(|trips| *trips >= FEWEST)?;
    let mut assigned: Vec<VarId> = Vec::new();
    let mut plain = true;
    let mut last = head.site.line;
    parts(body, &mut |part| match part {
        Part::Statement(inner) => {
            last = last.max(inner.site.line);
            let repeats = inner.blocks().any(|(runs, _)| runs == Runs::Repeatedly);
            plain &= !repeats && !inner.may_change_memory();
            if let StmtKind::Declare(var, _) = inner.kind {
                assigned.push(var);
            }
        }
        Part::Expression(expression) => {
            if let ExprKind::Assign(_, place, _) | ExprKind::Step(_, _, place) = &expression.kind
                && let ExprKind::Var(id) = place.kind
            {
                assigned.push(id);
            }
        }
    });
    if let Some(step) = step {
        changed(step, &mut assigned);
    }
    if !plain || last - head.site.line >= LONGEST {
        return None;
    }
    let mut found = Vec::new();
    for inner in body {
        if let StmtKind::If(condition, ..) = &inner.kind
            && stays(ctx, condition, &assigned)
        {
            found.push(condition);
        }
    }
    (!found.is_empty()).then_some((trips, found))
}

fn changed(step: &Expr, assigned: &mut Vec<VarId>) {
    match &step.kind {
        ExprKind::Assign(_, place, _) | ExprKind::Step(_, _, place) => {
            if let ExprKind::Var(id) = place.kind {
                assigned.push(id);
            }
        }
        ExprKind::List(all) => all.iter().for_each(|one| changed(one, assigned)),
        _ => {}
    }
}

/// True for what evaluates its second operand only sometimes.
fn parts_control(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::LogicalAnd | BinaryOp::LogicalOr)
}

/// True for arithmetic on variables that nothing in the loop changes; at least one, or the compiler knows it.
fn stays(ctx: &Context<'_>, condition: &Expr, assigned: &[VarId]) -> bool {
    fn walk(ctx: &Context<'_>, part: &Expr, assigned: &[VarId], variables: &mut usize) -> bool {
        match &part.kind {
            ExprKind::Var(id) => {
                *variables += 1;
                let var = ctx.kernel.var(*id);
                let own = matches!(var.storage, Storage::Param(_) | Storage::Local);
                own && !var.escapes && !var.volatile && !assigned.contains(id)
            }
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Builtin(_) => true,
            ExprKind::Unary(_, a) | ExprKind::Cast(_, a) => walk(ctx, a, assigned, variables),
            ExprKind::Binary(op, a, b) if !parts_control(*op) => {
                walk(ctx, a, assigned, variables) && walk(ctx, b, assigned, variables)
            }
            _ => false,
        }
    }
    let mut variables = 0;
    walk(ctx, condition, assigned, &mut variables) && variables > 0
}

fn finding(ctx: &Context<'_>, branch: &Branch, trips: f64) -> Option<Finding> {
    // Which side it is: what warps decide differently is left alone.
    let taken = match branch.taken_warp_fraction? {
        0.0 => 0,
        1.0 => 1,
        _ => return None,
    };
    let mut kernel = ctx.kernel.clone();
    decide(&mut kernel.body, branch.site, taken);
    let again = ctx.recompile(&kernel)?;
    let gain = crate::believed(again.gain);
    let (before, after) = again.instructions;
    // What the test costs once for each iteration.
    if gain < wording::WORTH_KNOWING || before - after < STAYS * trips {
        return None;
    }
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, Certainty::Assumed, false).min(Severity::Information),
        place: Place::Site(branch.site),
        message: wording::sentence([
            Some(format!(
                "decide the branch once, before the loop ({} instructions per warp, ideal {})",
                number(before),
                number(after)
            )),
            Some(format!(
                "{} instructions per warp (ideal {}, predicted): `{}` is the same in all {} iterations and decided in \
                 each",
                number(before),
                number(after),
                branch.text,
                number(trips),
            )),
            Some(wording::gain(gain)),
            match branch.certainty {
                Certainty::Exact => None,
                _ => wording::assumes(ctx.facts, &[&branch.text]),
            },
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}

/// Puts a number in the place of a condition. Everything else stays where it is, so that what was counted of it still
/// holds.
fn decide(statements: &mut [Stmt], site: Site, taken: i64) {
    for statement in statements {
        if let StmtKind::If(condition, ..) = &mut statement.kind
            && condition.site == site
        {
            condition.kind = ExprKind::Int(taken);
        }
        for (_, inner) in statement.blocks_mut() {
            decide(inner, site, taken);
        }
    }
}
