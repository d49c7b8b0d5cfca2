//! arith/int-div-mod: integer divisions by what the compiler does not know, where they cost.

pub(crate) mod shift_division;

use warplens_codegen::Class;
use warplens_ir::{BinaryOp, ExprKind, Site};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, instead};
use crate::wording::{COSTLY, WORTH_KNOWING, counted};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/int-div-mod",
    title: "integer division or remainder by a value that the compiler does not know",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[shift_division::fixes],
};

/// What a division by a number that was prepared before takes: the upper half of a product, a shift, a correction.
const PREPARED: [(Class, f64); 3] = [(Class::Imad, 1.0), (Class::Shf, 1.0), (Class::Iadd3, 1.0)];

/// A warp that comes there so often is in a loop.
const OFTEN: f64 = 2.0;

/// More divisions than this of one kernel are not looked at one by one.
const MOST: usize = 64;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut divisions = Vec::new();
    arith::expressions(ctx, &mut |expression| {
        let divides = match &expression.kind {
            ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, _, by)
            | ExprKind::Assign(Some(BinaryOp::Div | BinaryOp::Rem), _, by) => {
                arith::constant(by).is_none() && by.ty.is_int()
            }
            _ => false,
        };
        if divides && expression.ty.is_int() && divisions.len() < MOST {
            divisions.push(expression.site);
        }
    });
    if divisions.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let (mut before, mut after) = (Part::default(), Part::default());
    let mut sites = Vec::new();
    let mut others = Vec::new();
    for site in divisions {
        let part = executed.at(|at| at == site);
        if part.is_rare() {
            continue;
        }
        // A division that is left as one goes through the reciprocal of a float.
        if part.count(|class| class == Class::Mufu) <= 0.0 {
            others.push(site);
            continue;
        }
        before.merge(&part);
        after.merge(&part.by(&PREPARED, part.calls()));
        sites.push((site, "a division as well".to_owned()));
    }
    // A remainder that comes of a division's quotient is a division once that one is none.
    let of_quotient = |site: &Site| {
        let text = arith::quote(ctx, *site);
        let divided = text.replace('%', "/");
        let mut known = sites.iter();
        text != divided && known.any(|(of, _)| arith::quote(ctx, *of) == divided)
    };
    others.retain(of_quotient);
    sites.extend(
        others
            .into_iter()
            .map(|site| (site, "its remainder as well".to_owned())),
    );
    let Some((first, _)) = sites.iter().min_by_key(|(site, _)| site.span).cloned() else {
        return Vec::new();
    };
    let gain = instead(ctx, &before, &after);
    // A thread that finds its row and column once is what most kernels do.
    let hot = before.times >= OFTEN || gain >= COSTLY;
    if gain < WORTH_KNOWING || !hot {
        return Vec::new();
    }
    let says = format!(
        "divide by a value that the compiler knows ({} per warp for integer divisions)\n\
         a warp executes {} for integer divisions: the compiler does not know what `{}` divides by",
        counted(before.total(), "instruction", "instructions"),
        counted(before.total(), "instruction", "instructions"),
        arith::quote(ctx, first),
    );
    arith::finding(RULE.id, &executed, &sites, says, gain)
        .into_iter()
        .collect()
}
