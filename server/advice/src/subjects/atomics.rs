//! The atomics of a kernel as the source writes them: what each updates, and the loops around it.

use warplens_facts::facts::{Access, Op, Site};
use warplens_ir::{Expr, ExprKind, Function, Kernel, Part, Runs, Stmt, StmtKind, VarId, parts};

use crate::Context;

/// An atomic whose result is unused, in the kernel's own text.
pub(crate) struct Atomic<'a> {
    /// The call.
    pub site: Site,
    /// Its name.
    pub name: &'a str,
    /// The address that it updates.
    pub pointer: &'a Expr,
    /// Index into the facts' accesses.
    pub access: usize,
    /// The loops around it, outermost first.
    pub loops: Vec<&'a Stmt>,
}

impl Atomic<'_> {
    /// True where it adds.
    pub(crate) fn adds(&self) -> bool {
        let base = self
            .name
            .trim_end_matches("_block")
            .trim_end_matches("_system");
        matches!(
            base,
            "atomicAdd" | "unsafeAtomicAdd" | "atomic_add" | "atom_add"
        )
    }

    /// Its figures.
    pub(crate) fn facts<'c>(&self, ctx: &Context<'c>) -> &'c Access {
        &ctx.facts.accesses[self.access]
    }
}

/// All of them; none where the kernel has no atomic access.
pub(crate) fn unused<'a>(ctx: &Context<'a>) -> Vec<Atomic<'a>> {
    let mut found = Vec::new();
    if ctx.facts.accesses.iter().any(|one| one.op == Op::Atomic) {
        within(ctx, &ctx.kernel.body, &mut Vec::new(), &mut found);
    }
    found
}

fn within<'a>(
    ctx: &Context<'a>,
    statements: &'a [Stmt],
    loops: &mut Vec<&'a Stmt>,
    found: &mut Vec<Atomic<'a>>,
) {
    for statement in statements {
        if let StmtKind::Expr(expression) = &statement.kind {
            found.extend(called(ctx, expression, loops));
        }
        for (runs, inner) in statement.blocks() {
            if runs == Runs::Repeatedly {
                loops.push(statement);
            }
            within(ctx, inner, loops, found);
            if runs == Runs::Repeatedly {
                loops.pop();
            }
        }
    }
}

fn called<'a>(ctx: &Context<'a>, expression: &'a Expr, loops: &[&'a Stmt]) -> Option<Atomic<'a>> {
    let mut at = expression;
    while let ExprKind::Cast(false, inner) = &at.kind {
        at = inner;
    }
    let ExprKind::Call(Function::Atomic(_, name), arguments) = &at.kind else {
        return None;
    };
    let pointer = arguments.first()?;
    let mut written = pointer;
    while let ExprKind::Cast(_, inner) = &written.kind {
        written = inner;
    }
    let access = ctx.facts.accesses.iter().position(|access| {
        access.op == Op::Atomic
            && (access.site.span == pointer.site.span || access.site.span == written.site.span)
    })?;
    (at.site.callee == 0).then(|| Atomic {
        site: at.site,
        name,
        pointer,
        access,
        loops: loops.to_vec(),
    })
}

/// The variable that an address begins at.
pub(crate) fn root(pointer: &Expr) -> Option<VarId> {
    match &pointer.kind {
        ExprKind::Var(var) => Some(*var),
        ExprKind::Index(base, _)
        | ExprKind::Field(base, _)
        | ExprKind::Cast(_, base)
        | ExprKind::AddressOf(base)
        | ExprKind::Deref(base)
        | ExprKind::Binary(_, base, _) => root(base),
        _ => None,
    }
}

/// True where an address reads no memory and depends on nothing that these statements change or declare.
pub(crate) fn invariant(
    kernel: &Kernel,
    pointer: &Expr,
    statements: &[&[Stmt]],
    step: Option<&Expr>,
) -> bool {
    let mut changed: Vec<VarId> = Vec::new();
    let mut change = |target: &Expr| {
        let mut at = target;
        while let ExprKind::Field(base, _) | ExprKind::Cast(_, base) | ExprKind::Index(base, _) =
            &at.kind
        {
            at = base;
        }
        if let ExprKind::Var(var) = at.kind {
            changed.push(var);
        }
    };
    let mut look = |part: Part<'_>| match part {
        Part::Statement(Stmt {
            kind: StmtKind::Declare(var, _),
            site,
        }) => change(&Expr {
            kind: ExprKind::Var(*var),
            ty: warplens_ir::Type::Void,
            site: *site,
        }),
        Part::Expression(Expr {
            kind: ExprKind::Assign(_, target, _) | ExprKind::Step(_, _, target),
            ..
        }) => change(target),
        _ => {}
    };
    for stretch in statements {
        parts(stretch, &mut look);
    }
    if let Some(ExprKind::Assign(_, target, _) | ExprKind::Step(_, _, target)) =
        step.map(|step| &step.kind)
    {
        change(target);
    }
    fixed(kernel, pointer, &changed, true)
}

/// Whether an expression keeps its value; `place` where it is not read but pointed to.
fn fixed(kernel: &Kernel, expression: &Expr, changed: &[VarId], place: bool) -> bool {
    let all = |one: &Expr| fixed(kernel, one, changed, false);
    match &expression.kind {
        ExprKind::Int(_) | ExprKind::Builtin(_) => true,
        ExprKind::Var(var) => {
            let variable = kernel.var(*var);
            !changed.contains(var) && !variable.escapes && !variable.volatile
        }
        ExprKind::AddressOf(inner) => fixed(kernel, inner, changed, true),
        ExprKind::Cast(_, inner) => fixed(kernel, inner, changed, place),
        ExprKind::Field(inner, _) => place && fixed(kernel, inner, changed, true),
        ExprKind::Index(base, index) if place => fixed(kernel, base, changed, true) && all(index),
        ExprKind::Unary(_, a) => all(a),
        ExprKind::Binary(_, a, b) => all(a) && all(b),
        _ => false,
    }
}
