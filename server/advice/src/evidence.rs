//! Evidence before advice: whether the values that decide a finding are known.
//!
//! Above a hint, each value that decides a finding's fact or its severity is given by the source, the program or the user, or
//! the fact is the same for any value. Rules make findings of what holds under the launch and the arguments at hand;
//! [`weighed`] lowers those that other values would take back. Nothing else in this crate does.

use warplens_facts::facts::{
    Access, Assumed, Assumption, Branch, Certainty, Link, Op, SourceFacts, Space, UNKNOWN, Why,
};
use warplens_ir::{
    Assumption as Taken, AssumptionKind, BinaryOp, Builtin, Expr, ExprKind, Kernel, Part, Site,
    Stmt, StmtKind, Storage, VarId, parts,
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
            _ if rule == "launch/tiny-block" => Depends::Residency,
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
        let decides = |one: &Taken| match one.kind {
            // Its strides are looked at one by one.
            AssumptionKind::Layout { .. } => false,
            AssumptionKind::Template => true,
            _ => !template && one.is_taken(),
        };
        ctx.kernel.assumed.iter().any(decides)
    };
    let access = finding.access.map(|index| &ctx.facts.accesses[index]);
    match Depends::of(finding.rule) {
        Depends::Host => Severity::Error,
        Depends::Thread if taken(true) => Severity::Hint,
        // One word that all threads of the launch update is that of any block.
        Depends::Launch if block_guessed && access.is_some_and(is_one_word) => {
            Severity::Information
        }
        // How much it is of the whole depends on the launch after all.
        Depends::Thread if block_guessed => Severity::Information,
        Depends::Thread => Severity::Error,
        _ if finding.gain > 1.0 && (is_idle(ctx) || is_split(ctx)) => Severity::Hint,
        Depends::Resources | Depends::Residency if taken(false) => Severity::Hint,
        Depends::Residency | Depends::Launch if block_guessed => Severity::Hint,
        Depends::Residency if is_shared_open(ctx) => Severity::Hint,
        Depends::Launch if access.is_some_and(|access| has_guessed_stride(ctx, access)) => {
            Severity::Hint
        }
        // Which lanes are neighbours is decided by the first of several blocks.
        Depends::Launch if ctx.block_varies && is_narrow(ctx) => Severity::Hint,
        Depends::Resources | Depends::Residency | Depends::Launch => Severity::Error,
    }
}

/// True for an atomic whose address is the same in every thread of the launch.
fn is_one_word(access: &Access) -> bool {
    access.op == Op::Atomic
        && access
            .linear
            .as_ref()
            .is_some_and(|linear| linear.thread == [0; 3] && linear.block == [0; 3])
}

/// True where nothing says how many bytes of dynamic shared memory each block has, which bound how many of them an SM holds.
fn is_shared_open(ctx: &Context<'_>) -> bool {
    let mut assumed = ctx.facts.assumptions.iter();
    assumed.any(|one| one.symbol == Assumed::DynamicShared)
}

/// True where a thread's place in its block is its x coordinate alone: which lanes are neighbours is the same for any block.
fn is_one_row(kernel: &Kernel) -> bool {
    let mut other = false;
    parts(&kernel.body, &mut |part| {
        if let Part::Expression(Expr {
            kind:
                ExprKind::Builtin(
                    Builtin::ThreadIdx(axis) | Builtin::GlobalIdx(axis) | Builtin::BlockDim(axis),
                ),
            ..
        }) = part
        {
            other |= *axis > 0;
        }
    });
    !other
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

/// True where work is divided into a number of parts that nothing gives: sizes that nothing gives are taken to be large, and a large
/// number of parts leaves none of the work. What is a remainder of the same number is a coordinate: that number is an extent.
fn is_split(ctx: &Context<'_>) -> bool {
    let kernel = ctx.kernel;
    let unknown = ctx
        .facts
        .assumptions
        .iter()
        .filter_map(|one| match &one.symbol {
            Assumed::Named(name) if one.source == UNKNOWN => Some(name),
            _ => None,
        });
    unknown.into_iter().any(|name| {
        let (mut divides, mut wraps) = (false, false);
        parts(&kernel.body, &mut |part| {
            if let Part::Expression(expression) = part
                && let ExprKind::Binary(op @ (BinaryOp::Div | BinaryOp::Rem), _, by) =
                    &expression.kind
                && is_factor(kernel, by, name)
            {
                divides |= *op == BinaryOp::Div;
                wraps |= *op == BinaryOp::Rem;
            }
        });
        divides && !wraps
    })
}

/// True where a warp spans several rows of the block.
fn is_narrow(ctx: &Context<'_>) -> bool {
    ctx.facts.launch.block[0] < u64::from(ctx.facts.warp_size)
}

/// True where the distance between lanes is a parameter that nothing gives and nothing shows to be large: an increment may be
/// one. A leading dimension is no less than the row that another term of the index walks along; what bounds a coordinate is
/// as large as the problem, and so is what a loop sums floating-point numbers over: an inner dimension. What bounds another
/// counter from a constant on alone may be the length of a short row, of a beam or of a point's features.
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
        names(&stride.text, name).then_some(name)
    });
    guessed.into_iter().any(|name| {
        let bounds = Bounds::of(ctx, name);
        !bounds.is_large() && (bounds.a_counter || !stride.unit_elsewhere)
    })
}

/// True where an access's figures rest on values that another launch or other arguments would take back: not where a sample
/// of the launch was counted, nor where sizes that nothing gives are taken to be large and are an extent of the problem.
pub(crate) fn is_guess(ctx: &Context<'_>, access: &Access) -> bool {
    if access.certainty == Certainty::Exact {
        return false;
    }
    if ctx.facts.launch.block_source.is_assumption() && !is_one_row(ctx.kernel) {
        return true;
    }
    let stride = access.stride.as_ref().map_or("", |stride| &*stride.text);
    let texts = [&*access.index, &*access.text, stride];
    let named = ctx
        .facts
        .assumptions
        .iter()
        .filter(|one| match &one.symbol {
            Assumed::Named(name) => texts.iter().any(|text| names(text, name)),
            _ => false,
        });
    let mut named = named.peekable();
    if named.peek().is_none() {
        return access.why != Some(Why::ManyCases) && !only_sizes(ctx.facts);
    }
    named.any(|one| {
        let Assumed::Named(name) = &one.symbol else {
            return true;
        };
        one.source != UNKNOWN || !Bounds::of(ctx, name).is_large()
    })
}

/// True where a text has the name of a value, which may be that of a member: `shape.x`.
fn names(text: &str, name: &str) -> bool {
    if name.contains('.') {
        text.contains(name)
    } else {
        words_in(text).any(|word| word == name)
    }
}

/// True where all that is assumed of a kernel is its launch, that sizes which nothing gives are large, and that macros are
/// defined.
pub(crate) fn only_sizes(facts: &SourceFacts) -> bool {
    let is_size = |one: &Assumption| match &one.symbol {
        Assumed::Block
        | Assumed::Grid
        | Assumed::DynamicShared
        | Assumed::Alignment
        | Assumed::Sample => true,
        Assumed::Named(_) => {
            one.source == UNKNOWN || one.value == DEFINED || one.value == NOT_DEFINED
        }
        _ => false,
    };
    facts.assumptions.iter().all(is_size)
}

/// What is assumed of a macro that is only asked after.
const DEFINED: &str = "defined as 1";
const NOT_DEFINED: &str = "not defined";

/// What is compared with a parameter.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// The counter of a loop that begins at a constant.
    a_counter: bool,
    /// The same, of a loop that sums or compares floating-point numbers over its iterations.
    a_sum: bool,
    /// Anything else, such as what a thread computes of its place in the launch.
    a_coordinate: bool,
}

impl Bounds {
    /// True for an extent of the problem.
    fn is_large(self) -> bool {
        self.a_coordinate || self.a_sum
    }

    fn of(ctx: &Context<'_>, name: &str) -> Bounds {
        let kernel = ctx.kernel;
        let mut bounds = Bounds::default();
        let mut counted: Vec<(Site, Site)> = Vec::new();
        parts(&kernel.body, &mut |part| match part {
            Part::Statement(statement) => {
                if let StmtKind::Loop {
                    init,
                    condition: Some(condition),
                    ..
                } = &statement.kind
                    && init.iter().any(begins_at_a_constant)
                {
                    counted.push((condition.site, statement.site));
                }
            }
            Part::Expression(expression) if compares(kernel, expression, name) => {
                match counted.iter().find(|(test, _)| *test == expression.site) {
                    Some((_, around)) => {
                        bounds.a_counter = true;
                        bounds.a_sum |= sums(ctx, *around);
                    }
                    None => bounds.a_coordinate = true,
                }
            }
            Part::Expression(_) => {}
        });
        bounds
    }
}

/// True where floating-point numbers go from one iteration of the loop to the next.
fn sums(ctx: &Context<'_>, around: Site) -> bool {
    sums_at(ctx, around.line)
}

/// The same of the loops whose head is at a line.
pub(crate) fn sums_at(ctx: &Context<'_>, line: u32) -> bool {
    let carried = ctx.facts.dependence.carried.iter();
    carried
        .filter(|carried| carried.site.line == line)
        .any(|carried| {
            let mut links = carried.chain.links();
            links.any(|(link, _)| matches!(link, Link::Add | Link::Fma))
        })
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
    matches!(value.without_casts().kind, ExprKind::Int(_))
}

/// True where an order is asked for between the parameter and something else.
fn compares(kernel: &Kernel, expression: &Expr, name: &str) -> bool {
    let ExprKind::Binary(BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, a, b) =
        &expression.kind
    else {
        return false;
    };
    [a, b].into_iter().any(|side| is_factor(kernel, side, name))
}

/// True for the parameter and for a product that it is a factor of: `i < rows * columns`.
fn is_factor(kernel: &Kernel, side: &Expr, name: &str) -> bool {
    match &side.without_casts().kind {
        ExprKind::Var(var) => is_parameter(kernel, *var, name),
        ExprKind::Binary(BinaryOp::Mul, a, b) => {
            is_factor(kernel, a, name) || is_factor(kernel, b, name)
        }
        _ => false,
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
