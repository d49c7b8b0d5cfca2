//! arith/no-fma: a product and a sum that are kept apart.

pub(crate) mod fused;

use warplens_ir::{Expr, ExprKind, Function};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, instead, product};
use crate::{Context, Finding};
use warplens_codegen::Class;

pub(crate) const RULE: Rule = Rule {
    id: "arith/no-fma",
    title: "a product and a sum that intrinsics keep apart",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[fused::fixes],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut sums = Vec::new();
    arith::expressions(ctx, &mut |expression| {
        if let Some(bits) = apart(expression) {
            sums.push((expression.site, bits));
        }
    });
    if sums.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let (mut before, mut after) = (Part::default(), Part::default());
    let mut sites = Vec::new();
    for (site, bits) in sums {
        let part = executed.at(|at| arith::holds(ctx, site, at));
        if part.is_rare() || part.total() <= 0.0 {
            continue;
        }
        let (sum, both) = if bits == 64 {
            (Class::Dadd, Class::Dfma)
        } else {
            (Class::Fadd, Class::Ffma)
        };
        before.merge(&part.by(&[(product(bits), 1.0), (sum, 1.0)], part.times));
        after.merge(&part.by(&[(both, 1.0)], part.times));
        sites.push((site, "kept apart as well".to_owned()));
    }
    let Some((first, _)) = sites.iter().min_by_key(|(site, _)| site.span).cloned() else {
        return Vec::new();
    };
    let says = format!(
        "multiply and add in one instruction (2 instructions, ideal 1)\n\
         2 instructions (ideal 1): `{}` rounds the product before the sum, which the intrinsics ask for",
        arith::quote(ctx, first),
    );
    let gain = instead(ctx, &before, &after);
    arith::finding(RULE.id, &executed, &sites, says, gain)
        .into_iter()
        .collect()
}

/// Bits of `__fadd_rn(__fmul_rn(a, b), c)`.
fn apart(expression: &Expr) -> Option<u8> {
    let name = |expression: &Expr| match &expression.kind {
        ExprKind::Call(Function::Math(_, name), _) => Some(name.clone()),
        _ => None,
    };
    let ExprKind::Call(_, arguments) = &expression.kind else {
        return None;
    };
    let (product, bits) = match &*name(expression)? {
        "__fadd_rn" => ("__fmul_rn", 32),
        "__dadd_rn" => ("__dmul_rn", 64),
        _ => return None,
    };
    let multiplied = arguments
        .iter()
        .any(|argument| name(argument).is_some_and(|name| &*name == product));
    multiplied.then_some(bits)
}
