//! arith/slow-trig-range: sines of arguments that may be big.

use warplens_ir::Type;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, instead};
use crate::wording::{WORTH_KNOWING, number};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/slow-trig-range",
    title: "a sine, cosine or tangent whose argument may be big",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut calls = Vec::new();
    arith::expressions(ctx, &mut |expression| {
        let fast = match arith::called(expression) {
            Some(("sin", _)) => "__sinf",
            Some(("cos", _)) => "__cosf",
            Some(("tan" | "tanf", _)) => "__tanf",
            _ => return,
        };
        if expression.ty == Type::FLOAT {
            calls.push((expression.site, fast));
        }
    });
    if calls.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let (mut before, mut after) = (Part::default(), Part::default());
    let mut sites = Vec::new();
    for (site, fast) in calls {
        let part = executed.at(|at| at == site);
        let Some(others) = executed.library(fast, 32) else {
            continue;
        };
        let becomes = part.by(&others, part.calls());
        if part.is_rare() || part.total() <= becomes.total() {
            continue;
        }
        before.merge(&part);
        after.merge(&becomes);
        sites.push((site, "of any argument as well".to_owned()));
    }
    let Some((first, _)) = sites.iter().min_by_key(|(site, _)| site.span).cloned() else {
        return Vec::new();
    };
    let gain = instead(ctx, &before, &after);
    if gain < WORTH_KNOWING {
        return Vec::new();
    }
    let says = format!(
        "reduce the argument first ({} instructions per warp, {} for small arguments)\n\
         a warp has {} instructions for `{}` and its like, {} with an argument known to be small: the way for big \
         arguments is in each",
        number(before.total()),
        number(after.total()),
        number(before.total()),
        arith::quote(ctx, first),
        number(after.total()),
    );
    arith::finding(RULE.id, &executed, &sites, says, gain)
        .into_iter()
        .collect()
}
