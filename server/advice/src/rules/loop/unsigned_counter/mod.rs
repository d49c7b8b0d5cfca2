//! loop/unsigned-counter: an unsigned counter in a subscript with other terms.

use warplens_codegen::Class;
use warplens_ir::{BinaryOp, Expr, ExprKind, Part as Source, Stmt, StmtKind, Type, VarId, parts};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, instead};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "loop/unsigned-counter",
    title: "an unsigned counter in a subscript with other terms",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// What an access costs more: of four iterations side by side, signed ones share one address.
const MORE: [(Class, f64); 2] = [(Class::Imad, 0.75), (Class::Iadd3, 0.75)];

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut subscripts = Vec::new();
    let mut look = |part: Source| {
        if let Source::Statement(statement) = part
            && let StmtKind::Loop { init, body, .. } = &statement.kind
            && let Some(counter) = counter(ctx, init)
        {
            parts(body, &mut |part| {
                if let Source::Expression(expression) = part
                    && let ExprKind::Index(_, index) = &expression.kind
                    && adds(index, counter)
                {
                    subscripts.push(expression.site);
                }
            });
        }
    };
    arith::bodies(ctx).for_each(|body| parts(body, &mut look));
    if subscripts.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let (mut before, mut sites) = (Part::default(), Vec::new());
    for site in subscripts {
        let part = executed.at(|at| arith::holds(ctx, site, at));
        // A fully unrolled loop counts nothing.
        if part.times > 1.0 {
            before.merge(&part.by(&MORE, part.times));
            sites.push((site, "counted alike".to_owned()));
        }
    }
    let Some((first, _)) = sites.iter().min_by_key(|(site, _)| site.span).cloned() else {
        return Vec::new();
    };
    let says = format!(
        "make the loop counter signed (up to 2 instructions less for each access)\n\
         up to 2 instructions more for each access: the subscript of `{}` is counted in unsigned integers, which wrap \
         around",
        arith::quote(ctx, first),
    );
    let gain = instead(ctx, &before, &Part::default());
    arith::finding(RULE.id, &executed, &sites, says, gain)
        .into_iter()
        .collect()
}

const UNSIGNED: Type = Type::UINT;

/// The counter that a loop declares, where it is an unsigned integer of 32 bits.
fn counter(ctx: &Context<'_>, init: &[Stmt]) -> Option<VarId> {
    init.iter().find_map(|statement| match &statement.kind {
        StmtKind::Declare(var, Some(_)) if ctx.kernel.var(*var).ty == UNSIGNED => Some(*var),
        _ => None,
    })
}

/// True for a sum of the counter and something that is no constant, in unsigned integers.
fn adds(index: &Expr, counter: VarId) -> bool {
    let mut terms = Vec::new();
    sum(index, &mut terms);
    let counts = |term: &&Expr| matches!(term.kind, ExprKind::Var(id) if id == counter);
    terms.iter().any(counts)
        && terms
            .iter()
            .any(|term| !counts(term) && arith::constant(term).is_none())
}

fn sum<'a>(value: &'a Expr, terms: &mut Vec<&'a Expr>) {
    match &value.kind {
        ExprKind::Binary(BinaryOp::Add, a, b) if value.ty == UNSIGNED => {
            sum(a, terms);
            sum(b, terms);
        }
        _ => terms.push(value),
    }
}
