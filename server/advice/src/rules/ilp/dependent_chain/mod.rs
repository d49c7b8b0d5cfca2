//! ilp/dependent-chain: a sum in which each addition waits for the one before, with too few warps to fill the time.

pub(crate) mod split_sum;

use warplens_facts::facts::{Branch, BranchKind, Certainty, Link, LoopCarried};
use warplens_ir::{
    BinaryOp, Expr, ExprKind, Part, Site, Stmt, StmtKind, Storage, Type, VarId, parts,
};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::wording::{self, counted, number};
use crate::{Context, Cure, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "ilp/dependent-chain",
    title: "a sum whose additions wait for one another, with too few warps to fill the time",
    severity: "by predicted gain: information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[split_sum::fixes],
};

/// Accumulators that one becomes.
const SPLIT: u32 = 4;
/// A loop with more sums than this has others to work on while one waits.
const FEW_SUMS: usize = 2;
/// Fewer iterations are not worth it.
const FEWEST: f64 = 16.0;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let adds = |carried: &&LoopCarried| carried.site.callee == 0 && additions(carried).is_some();
    let mut chains = ctx.facts.dependence.carried.iter().filter(adds).peekable();
    if chains.peek().is_none() {
        return Vec::new();
    }
    let chains: Vec<&LoopCarried> = chains.collect();
    let mut found = Vec::new();
    parts(&ctx.kernel.body, &mut |part| {
        if let Part::Statement(statement) = part
            && let StmtKind::Loop {
                condition: Some(condition),
                step,
                body,
                ..
            } = &statement.kind
            && let Some(sums) = sums(ctx, condition, step.as_ref(), body)
        {
            found.extend(finding(ctx, &chains, condition, &sums));
        }
    });
    found
}

/// The additions of an iteration, where it hands nothing else on. What is multiplied and added may as well be a power.
fn additions(carried: &LoopCarried) -> Option<f64> {
    let mut adds = 0.0;
    for (link, count) in carried.chain.links() {
        match link {
            Link::Add | Link::Fma | Link::Integer => adds += count,
            _ => return None,
        }
    }
    (adds > 0.0).then_some(adds)
}

/// A variable that a loop does nothing with but add to it once in each iteration.
struct Sum {
    variable: VarId,
    site: Site,
}

/// The sums of a loop that is straight code; `None` for other loops, and where there are none or many.
fn sums(
    ctx: &Context<'_>,
    condition: &Expr,
    step: Option<&Expr>,
    body: &[Stmt],
) -> Option<Vec<Sum>> {
    let mut found = Vec::new();
    straight(body, &mut |expression| {
        if let Some(variable) = added_to(expression) {
            let var = ctx.kernel.var(variable);
            let number = matches!(var.ty, Type::Float { .. } | Type::Int { .. });
            if var.storage == Storage::Local && number && !var.escapes {
                found.push(Sum {
                    variable,
                    site: expression.site,
                });
            }
        }
    })?;
    found.retain(|sum| {
        let mut named = 0;
        let mut look = |expression: &Expr| {
            named +=
                usize::from(matches!(expression.kind, ExprKind::Var(id) if id == sum.variable));
        };
        warplens_ir::expressions(body, &mut look);
        condition.expressions(&mut look);
        if let Some(step) = step {
            step.expressions(&mut look);
        }
        named == 1
    });
    (!found.is_empty() && found.len() <= FEW_SUMS).then_some(found)
}

/// Visits the statements' own expressions; `None` where control parts or threads meet.
fn straight(statements: &[Stmt], visit: &mut dyn FnMut(&Expr)) -> Option<()> {
    for statement in statements {
        match &statement.kind {
            StmtKind::Declare(..) => {}
            StmtKind::Expr(expression) => visit(expression),
            StmtKind::Block(inner) => straight(inner, visit)?,
            _ => return None,
        }
    }
    Some(())
}

/// `v` of `v += …`.
fn added_to(expression: &Expr) -> Option<VarId> {
    match &expression.kind {
        ExprKind::Assign(Some(BinaryOp::Add | BinaryOp::Sub), place, _) => match place.kind {
            ExprKind::Var(id) => Some(id),
            _ => None,
        },
        _ => None,
    }
}

fn finding(
    ctx: &Context<'_>,
    chains: &[&LoopCarried],
    condition: &Expr,
    sums: &[Sum],
) -> Option<Finding> {
    let branch: &Branch = ctx
        .facts
        .branches
        .iter()
        .find(|branch| branch.kind == BranchKind::Loop && branch.site == condition.site)?;
    let trips = branch.trips.filter(|trips| *trips >= FEWEST)?;
    if branch.certainty == Certainty::Unknown || branch.evaluations.is_none_or(|warps| warps <= 0.0)
    {
        return None;
    }
    let (sum, waits) = sums.iter().find_map(|sum| {
        let name = &ctx.kernel.var(sum.variable).name;
        let here = |carried: &&&LoopCarried| {
            carried.site.line == condition.site.line && carried.through == *name
        };
        let carried = chains.iter().find(here)?;
        Some((sum, additions(carried)?))
    })?;
    let line = branch.site.line;
    let lines: Vec<u32> = sums.iter().map(|sum| sum.site.line).collect();
    let gain = ctx.trial(&[Change::SplitSums {
        head: line,
        lines,
        waits,
        sums: SPLIT,
    }])?;
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let name = &ctx.kernel.var(sum.variable).name;
    let warps = f64::from(ctx.occupancy.active_blocks_per_sm)
        * ctx.facts.launch.warps_per_block(ctx.facts.warp_size) as f64;
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, branch.certainty, true).min(Severity::Information),
        place: Place::Site(sum.site),
        message: wording::sentence([
            Some(format!(
                "split `{}` into {SPLIT} sums ({} in a row wait for each other)",
                wording::short(name),
                counted(trips * waits, "addition", "additions")
            )),
            Some(format!(
                "{} in a row, each waits for the one before: `{name}` is one sum, and {} on an SM are too few to \
                 fill the time; {SPLIT} sums would be {} in a row",
                counted(trips * waits, "addition", "additions"),
                counted(warps, "warp", "warps"),
                number((trips * waits / f64::from(SPLIT)).ceil()),
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
        cure: Some(Cure::Split(SPLIT)),
    })
}
