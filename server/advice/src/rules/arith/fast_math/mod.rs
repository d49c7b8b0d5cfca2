//! arith/fast-math: a square root and a division where one function does both.

pub(crate) mod inverse_root;

use warplens_ir::{BinaryOp, Expr, ExprKind};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, bits, constant};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/fast-math",
    title: "a square root and a division where rsqrt does both",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[inverse_root::fixes],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut quotients = Vec::new();
    arith::expressions(ctx, &mut |expression| {
        quotients.extend(
            inverse_root(expression).map(|root| (expression.site, root.site, root.ty.clone())),
        );
    });
    if quotients.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let (mut before, mut after) = (Part::default(), Part::default());
    let mut sites = Vec::new();
    for (quotient, root, ty) in quotients {
        let division = executed.at(|site| site == quotient);
        let mut part = executed.at(|site| site == root);
        let Some(others) = bits(&ty).and_then(|bits| executed.library("rsqrt", bits)) else {
            continue;
        };
        let becomes = part.by(&others, part.calls());
        // The root is needed elsewhere too, or was shared with another one.
        if division.total() <= 0.0 || part.total() <= 0.0 {
            continue;
        }
        part.merge(&division);
        if part.is_rare() || part.total() <= becomes.total() {
            continue;
        }
        before.merge(&part);
        after.merge(&becomes);
        sites.push((quotient, "rsqrt does the same".to_owned()));
    }
    arith::cheaper(RULE.id, &executed, &sites, (&before, &after), |quote, _| {
        format!("`{quote}` is a root and a division, rsqrt is both in one")
    })
}

/// The root of `1 / sqrt(x)`.
fn inverse_root(expression: &Expr) -> Option<&Expr> {
    let ExprKind::Binary(BinaryOp::Div, one, root) = &expression.kind else {
        return None;
    };
    let mut root: &Expr = root;
    while let ExprKind::Cast(false, inner) = &root.kind {
        root = inner;
    }
    let ("sqrt", [_]) = arith::called(root)? else {
        return None;
    };
    (constant(one)? == 1.0).then_some(root)
}
