//! arith/fp64-slow-gpu: double precision on a GPU that has hardly any of it.

use rustc_hash::FxHashSet;
use warplens_facts::facts::Site;
use warplens_ir::Type;
use warplens_machine::Pipe;

use crate::rule::{Look, Rule, State, When};
use crate::rules::arith::double_literal;
use crate::subjects::arith::{self, Executed, holds, instead, is_double, single};
use crate::wording::{WORTH_KNOWING, counted, number};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/fp64-slow-gpu",
    title: "double precision on a GPU that does it at 1/16 of the rate or less",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[],
};

/// Single precision faster by this factor makes a GPU slow at double.
const SLOW: f64 = 16.0;

/// Fewer instructions than this of a warp are no work.
const FEW: f64 = 4.0;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let issue = |pipe| ctx.profile.timing(pipe).issue;
    let ratio = issue(Pipe::Fp64) / issue(Pipe::Fp32);
    if !ratio.is_finite() || ratio < SLOW {
        return Vec::new();
    }
    let mut doubles: FxHashSet<Site> = FxHashSet::default();
    arith::expressions(ctx, &mut |expression| {
        if expression.ty == Type::DOUBLE {
            doubles.insert(expression.site);
        }
    });
    if doubles.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    // Where only a constant makes it double, that is the finding.
    let literals = double_literal::regions(ctx);
    let meant = |site: Site| {
        doubles.contains(&site) && !literals.iter().any(|region| holds(ctx, *region, site))
    };
    let before = executed.at(meant);
    let count = before.count(is_double);
    if before.is_rare() || count < FEW {
        return Vec::new();
    }
    let gain = instead(ctx, &before, &before.map(single));
    let costliest = doubles.iter().filter(|site| meant(**site)).max_by(|a, b| {
        let of = |site: &Site| executed.at(|at| at == *site).count(is_double);
        of(a).total_cmp(&of(b)).then(b.cmp(a))
    });
    let Some(site) = costliest.copied().filter(|_| gain >= WORTH_KNOWING) else {
        return Vec::new();
    };
    let says = format!(
        "use single precision (double runs at 1/{} of its rate, {} per warp)\n\
         a warp executes {} in double precision, which this GPU does at 1/{} of the rate of single \
         precision: most at `{}`",
        number(ratio),
        counted(count, "instruction", "instructions"),
        counted(count, "instruction", "instructions"),
        number(ratio),
        arith::quote(ctx, site),
    );
    arith::finding(RULE.id, &executed, &[(site, String::new())], says, gain)
        .into_iter()
        .collect()
}
