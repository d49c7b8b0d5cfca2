//! arith/half-scalar: half precision one number at a time.

use rustc_hash::FxHashSet;
use warplens_codegen::Class;
use warplens_facts::facts::Site;
use warplens_ir::Type;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, instead};
use crate::wording::{WORTH_KNOWING, counted, number};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/half-scalar",
    title: "half precision one number at a time where an instruction does two",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut halves: FxHashSet<Site> = FxHashSet::default();
    arith::expressions(ctx, &mut |expression| {
        if matches!(expression.ty, Type::Float { bits: 16, .. }) {
            halves.insert(expression.site);
        }
    });
    if halves.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let only = |class| (class == Class::Hfma2).then_some(class);
    let before = executed.at(|site| halves.contains(&site)).map(only);
    let count = before.total();
    if before.is_rare() || count <= 0.0 {
        return Vec::new();
    }
    let after = before.by(&[(Class::Hfma2, 0.5)], count);
    let gain = instead(ctx, &before, &after);
    let costliest = halves.iter().max_by(|a, b| {
        let of = |site: &Site| executed.at(|at| at == *site).map(only).total();
        of(a).total_cmp(&of(b)).then(b.cmp(a))
    });
    let Some(site) = costliest.copied().filter(|_| gain >= WORTH_KNOWING) else {
        return Vec::new();
    };
    let says = format!(
        "compute two half-precision numbers at a time ({} per warp, ideal {})\n\
         a warp executes {} of half precision (ideal {}, two numbers at a time): `{}` uses half of each",
        counted(count, "instruction", "instructions"),
        number(count / 2.0),
        counted(count, "instruction", "instructions"),
        number(count / 2.0),
        arith::quote(ctx, site),
    );
    arith::finding(RULE.id, &executed, &[(site, String::new())], says, gain)
        .into_iter()
        .collect()
}
