//! atomic/in-loop: a thread adds to one address in every iteration of a loop.

pub(crate) mod add_once;

use warplens_facts::facts::{BranchKind, Certainty};
use warplens_ir::{Expr, ExprKind, Function, Part, Stmt, StmtKind, VarId, parts};
use warplens_models::Change;

use crate::rule::{Look, Rule, State};
use crate::subjects::atomics::{Atomic, invariant, root};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "atomic/in-loop",
    title: "a thread updates one address atomically in every iteration, where once after the loop is enough",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("atomic/hot-address"),
    actions: &[add_once::fixes],
};

/// Fewer atomics than this of a warp are not worth a variable.
const UPDATES: f64 = 2.0;

/// The finding about one addition.
pub(crate) fn finding(ctx: &Context<'_>, atomic: &Atomic<'_>) -> Option<Finding> {
    let around = atomic
        .loops
        .iter()
        .find(|around| leaves_alone(ctx, atomic, around))?;
    let StmtKind::Loop {
        condition: Some(condition),
        ..
    } = &around.kind
    else {
        return None;
    };
    let entered = ctx.facts.branches.iter().find(|branch| {
        branch.kind == BranchKind::Loop && branch.site.span == condition.site.span
    })?;
    let access = atomic.facts(ctx);
    let updates = access.requests? / entered.evaluations.filter(|times| *times > 0.0)?;
    if updates < UPDATES || access.certainty == Certainty::Unknown {
        return None;
    }
    let behind = vec![(atomic.access, around.site.line)];
    let gain = ctx.trial(&[Change::BehindLoop(behind)])?;
    let reservation = wording::reservation(ctx.facts, access);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, reservation.is_some()),
        place: Place::Site(atomic.site),
        message: wording::sentence([
            Some(format!(
                "add to `{}` once, after the loop ({} atomics per warp, ideal 1)",
                wording::short(&access.array),
                number(updates)
            )),
            Some(format!(
                "{} atomics per warp (ideal 1): `{}` is one address in all iterations of the loop",
                number(updates),
                access.text
            )),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: vec![(around.site, "the loop".to_owned())],
        access: Some(atomic.access),
        shared_array: None,
        cure: None,
    })
}

/// True where the sum can wait for the loop's end: the address stays, nothing in the loop names what is there or waits
/// for other threads, the test reads no memory, and every way out of it leads behind it.
fn leaves_alone(ctx: &Context<'_>, atomic: &Atomic<'_>, around: &Stmt) -> bool {
    let StmtKind::Loop {
        init,
        condition,
        step,
        body,
        ..
    } = &around.kind
    else {
        return false;
    };
    let Some(array) = root(atomic.pointer) else {
        return false;
    };
    if !invariant(ctx.kernel, atomic.pointer, &[init, body], step.as_ref()) {
        return false;
    }
    let mut quiet = true;
    let mut seen = 0;
    let mut look = |part: Part<'_>| match part {
        Part::Statement(statement) => {
            let returns = matches!(statement.kind, StmtKind::Return(_));
            quiet &= !returns && !statement.may_change_memory();
        }
        Part::Expression(expression) => {
            seen += usize::from(names(expression, array));
            quiet &= !matches!(
                &expression.kind,
                ExprKind::Apply(..)
                    | ExprKind::Opaque(..)
                    | ExprKind::Inline(..)
                    | ExprKind::Call(Function::Ignored(..) | Function::WarpExchange(..), _)
            );
        }
    };
    parts(body, &mut look);
    for head in condition.iter().chain(step) {
        head.parts(&mut look);
    }
    quiet && seen == 1 && !condition.as_ref().is_some_and(Expr::reads_or_forks)
}

fn names(expression: &Expr, array: VarId) -> bool {
    matches!(expression.kind, ExprKind::Var(var) if var == array)
}
