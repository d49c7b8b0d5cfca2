//! arith/narrow-int: conversions between integers and floating point in loops.

use rustc_hash::FxHashSet;
use warplens_codegen::Class;
use warplens_facts::facts::Site;
use warplens_ir::{Expr, ExprKind};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, instead};
use crate::wording::{WORTH_KNOWING, number};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/narrow-int",
    title: "conversions between integers and floating point in a loop",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// A warp that comes there so often is in a loop.
const OFTEN: f64 = 2.0;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut places: FxHashSet<Site> = FxHashSet::default();
    arith::expressions(ctx, &mut |expression| {
        if converts(expression) {
            places.insert(expression.site);
        }
    });
    if places.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let (mut before, mut sites) = (Part::default(), Vec::new());
    for site in places {
        let part = executed
            .at(|at| at == site)
            .map(|class| matches!(class, Class::I2f | Class::F2i).then_some(class));
        if part.total() > 0.0 && part.times >= OFTEN {
            before.merge(&part);
            sites.push((site, "a conversion as well".to_owned()));
        }
    }
    let Some((first, _)) = sites.iter().min_by_key(|(site, _)| site.span).cloned() else {
        return Vec::new();
    };
    let gain = instead(ctx, &before, &Part::default());
    if gain < WORTH_KNOWING {
        return Vec::new();
    }
    let says = format!(
        "convert outside of the loop ({} conversions per warp of integers and floating point)\n\
         a warp executes {} conversions between integers and floating point in loops: `{}`",
        number(before.total()),
        number(before.total()),
        arith::quote(ctx, first),
    );
    arith::finding(RULE.id, &executed, &sites, says, gain)
        .into_iter()
        .collect()
}

/// True where an operand of one kind meets the other: not a division of integers, which converts for itself.
fn converts(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Cast(_, inner) => inner.ty.is_int() != expression.ty.is_int(),
        ExprKind::Binary(_, a, b) | ExprKind::Assign(_, a, b) => a.ty.is_int() != b.ty.is_int(),
        _ => false,
    }
}
