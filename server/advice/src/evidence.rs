//! Evidence before advice: whether the values that decide a finding are known.
//!
//! Above a hint, each value that decides a finding's fact or its severity is given by the source, the program or the user, or
//! the fact is the same for any value. Rules make findings of what holds under the launch and the arguments at hand;
//! [`weighed`] lowers those that other values would take back. Nothing else in this crate does.

use warplens_facts::facts::{Access, Assumed, Branch, Space};
use warplens_ir::{
    Assumption, AssumptionKind, BinaryOp, Expr, ExprKind, Kernel, Part, Site, Stmt, StmtKind,
    Storage, VarId, parts,
};
use warplens_syntax::words_in;

use crate::{Context, Finding, Severity};

/// The finding, a hint where it rests on a guess.
pub(crate) fn weighed(ctx: &Context<'_>, mut finding: Finding) -> Finding {
    finding.severity = finding.severity.min(most(ctx, &finding));
    finding
}

/// What the fact of a rule's finding depends on.
enum Depends {
    /// The program around the kernels.
    Host,
    /// What one thread does, whatever the launch.
    Thread,
    /// What the compiler makes of the whole kernel.
    Resources,
    /// That, and how many of its blocks an SM holds.
    Residency,
    /// The launch.
    Launch,
}

impl Depends {
    fn of(rule: &str) -> Depends {
        match rule.split('/').next() {
            Some("host") => Depends::Host,
            Some("arith" | "call" | "loop" | "tensor") => Depends::Thread,
            Some("occ" | "reg") => Depends::Residency,
            Some("local") => Depends::Resources,
            // Who gives an impossible block in the settings is told.
            _ if rule == "launch/impossible" => Depends::Resources,
            _ if matches!(rule, "mem/no-restrict" | "mem/loop-invariant-load") => Depends::Thread,
            _ => Depends::Launch,
        }
    }
}

/// The loudest that a finding may be.
fn most(ctx: &Context<'_>, finding: &Finding) -> Severity {
    let block_guessed = ctx.facts.launch.block_source.is_assumption();
    let taken = |template: bool| {
        let decides = |one: &Assumption| match one.kind {
            // Its strides are looked at one by one.
            AssumptionKind::Layout => false,
            AssumptionKind::Template => true,
            _ => !template && one.is_taken(),
        };
        ctx.kernel.assumed.iter().any(decides)
    };
    let access = finding.access.map(|index| &ctx.facts.accesses[index]);
    match Depends::of(finding.rule) {
        Depends::Host => Severity::Error,
        Depends::Thread if taken(true) => Severity::Hint,
        // How much it is of the whole depends on the launch after all.
        Depends::Thread if block_guessed => Severity::Information,
        Depends::Thread => Severity::Error,
        _ if finding.gain > 1.0 && is_idle(ctx) => Severity::Hint,
        Depends::Resources | Depends::Residency if taken(false) => Severity::Hint,
        Depends::Residency | Depends::Launch if block_guessed => Severity::Hint,
        Depends::Launch if access.is_some_and(|access| has_guessed_stride(ctx, access)) => {
            Severity::Hint
        }
        // Which lanes are neighbours is decided by the first of several blocks.
        Depends::Launch if ctx.block_varies && is_narrow(ctx) => Severity::Hint,
        Depends::Resources | Depends::Residency | Depends::Launch => Severity::Error,
    }
}

/// Less than this part of the warps at work is a launch that no program makes.
const WORKING: f64 = 0.05;

/// True where assumed sizes leave nearly all warps of an assumed grid without an access: a gain is then one on an idle GPU.
fn is_idle(ctx: &Context<'_>) -> bool {
    let launch = &ctx.facts.launch;
    let warps = launch.blocks() as f64 * launch.warps_per_block(ctx.facts.warp_size) as f64;
    let requests = ctx.facts.accesses.iter().map(|access| access.requests);
    let most = requests.fold(None, |most: Option<f64>, one| {
        Some(most.unwrap_or(0.0).max(one.unwrap_or(f64::INFINITY)))
    });
    launch.grid_source.is_assumption() && most.is_some_and(|most| most < WORKING * warps)
}

/// True where a warp spans several rows of the block.
fn is_narrow(ctx: &Context<'_>) -> bool {
    ctx.facts.launch.block[0] < u64::from(ctx.facts.warp_size)
}

/// True where the distance between lanes is a parameter that nothing gives and nothing shows to be large: an increment may be
/// one. A leading dimension is no less than the row that another term of the index walks along; what bounds a coordinate is
/// as large as the problem. What bounds a counter from a constant on alone may be the length of a short row.
fn has_guessed_stride(ctx: &Context<'_>, access: &Access) -> bool {
    let Some(stride) = access.stride.as_ref().filter(|stride| stride.symbolic) else {
        return false;
    };
    if access.space != Space::Global {
        return false;
    }
    let guessed = ctx.facts.assumptions.iter().filter_map(|one| {
        let Assumed::Named(name) = &one.symbol else {
            return None;
        };
        words_in(&stride.text)
            .any(|word| word == name)
            .then_some(name)
    });
    guessed.into_iter().any(|name| {
        let bounds = Bounds::of(ctx.kernel, name);
        !bounds.a_coordinate && (bounds.a_counter || !stride.unit_elsewhere)
    })
}

/// What is compared with a parameter.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// The counter of a loop that begins at a constant.
    a_counter: bool,
    /// Anything else, such as what a thread computes of its place in the launch.
    a_coordinate: bool,
}

impl Bounds {
    fn of(kernel: &Kernel, name: &str) -> Bounds {
        let mut bounds = Bounds::default();
        let mut counted: Vec<Site> = Vec::new();
        parts(&kernel.body, &mut |part| match part {
            Part::Statement(statement) => {
                if let StmtKind::Loop {
                    init,
                    condition: Some(condition),
                    ..
                } = &statement.kind
                    && init.iter().any(begins_at_a_constant)
                {
                    counted.push(condition.site);
                }
            }
            Part::Expression(expression) if compares(kernel, expression, name) => {
                if counted.contains(&expression.site) {
                    bounds.a_counter = true;
                } else {
                    bounds.a_coordinate = true;
                }
            }
            Part::Expression(_) => {}
        });
        bounds
    }
}

fn begins_at_a_constant(statement: &Stmt) -> bool {
    let value = match &statement.kind {
        StmtKind::Declare(_, Some(value)) => value,
        StmtKind::Expr(Expr {
            kind: ExprKind::Assign(None, _, value),
            ..
        }) => value,
        _ => return false,
    };
    matches!(uncast(value).kind, ExprKind::Int(_))
}

/// True where an order is asked for between the parameter and something else.
fn compares(kernel: &Kernel, expression: &Expr, name: &str) -> bool {
    let ExprKind::Binary(BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, a, b) =
        &expression.kind
    else {
        return false;
    };
    [a, b].into_iter().any(
        |side| matches!(uncast(side).kind, ExprKind::Var(var) if is_parameter(kernel, var, name)),
    )
}

fn uncast(expression: &Expr) -> &Expr {
    match &expression.kind {
        ExprKind::Cast(_, inner) => uncast(inner),
        _ => expression,
    }
}

fn is_parameter(kernel: &Kernel, var: VarId, name: &str) -> bool {
    let var = kernel.var(var);
    matches!(var.storage, Storage::Param(_)) && var.name == name
}

/// True where the program makes as many blocks as the condition's bound asks for, rounded up: the last of them is not full.
pub(crate) fn is_rounded_up(ctx: &Context<'_>, branch: &Branch) -> bool {
    words_in(&branch.text).any(|word| ctx.rounded_up.iter().any(|name| name == word))
}

/// True where the settings give what the condition's bound is assumed to be, and nothing else in it is assumed.
pub(crate) fn is_supposed(ctx: &Context<'_>, branch: &Branch) -> bool {
    let assumptions = ctx.facts.assumptions.iter().filter(|one| {
        let Assumed::Named(name) = &one.symbol else {
            return false;
        };
        words_in(&branch.text).any(|word| word == name)
    });
    let mut sources = assumptions.map(|one| one.source.as_str()).peekable();
    sources.peek().is_some() && sources.all(|source| source == "config")
}
