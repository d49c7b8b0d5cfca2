//! mem/async-copy: a loop fills shared memory through registers, where the machine copies past them.

pub(crate) mod copy_past_registers;

use warplens_codegen::{Class, Target};
use warplens_facts::facts::{Op, Space};
use warplens_ir::{
    Expr, ExprKind, Function, Kernel, Language, Part, Runs, Site, Stmt, StmtKind, Storage, Type,
    known_function, parts,
};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::flow::iterations;
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "mem/async-copy",
    title: "a loop copies from device memory into shared memory through registers, where the machine copies past them",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[copy_past_registers::fixes],
};

/// What the instruction copies.
const SIZES: [u64; 3] = [4, 8, 16];
/// Less than this part of the kernel's loads and stores is not worth a word.
const PART: f64 = 0.05;
/// Speedups below this are none: the kernel is predicted slower.
const SLOWER: f64 = 0.9995;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let capability = ctx.profile.compute_capability?;
    let may = ctx.kernel.language == Language::Cuda
        && Target::of(Some(capability)).copies_past_registers()
        && !ctx.facts.shared_arrays.is_empty();
    if !may {
        return None;
    }
    let mut copies: Vec<Copy> = Vec::new();
    in_loops(ctx.kernel, &ctx.kernel.body, false, &mut copies);
    copies.retain(|copy| copy.is_repeated(ctx));
    let first = copies.first()?;
    let index = first.store(ctx)?;
    let access = &ctx.facts.accesses[index];
    let mut changed = ctx.kernel.clone();
    past_registers(&mut changed.body, &copies, &mut false);
    let again = ctx.recompile(&changed)?;
    let executed = |all: &[(Site, Class, f64)], of: &dyn Fn(Class) -> bool| -> f64 {
        let all = all.iter().filter(|(_, class, _)| of(*class));
        all.map(|(.., times)| times).sum()
    };
    let stores = |all| executed(all, &|class| class == Class::Sts);
    let saved = stores(&again.before) - stores(&again.after);
    let all = executed(&again.before, &|_| true);
    if saved < (all * PART).max(1.0) || again.gain < SLOWER {
        return None;
    }
    let gain = crate::believed(again.gain);
    let load = &ctx.facts.accesses[first.load(ctx)?];
    let [before, after] = again.registers;
    let registers = (before > after)
        .then(|| wording::counted(f64::from(before - after), "register", "registers") + " fewer");
    let reservation = wording::reservation(ctx.facts, access);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, reservation.is_some()),
        place: Place::Site(first.site),
        message: wording::sentence([
            Some(format!(
                "copy `{}` to `{}` past the registers ({} stores per warp less)",
                wording::array_of(load),
                wording::array_of(access),
                number(saved)
            )),
            Some(format!(
                "{} stores per warp into shared memory that need not be: `{}` goes to `{}` through a register, and from sm_80 on \
                 `__pipeline_memcpy_async` copies past it",
                number(saved),
                load.text,
                access.text,
            )),
            registers,
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: copies[1..]
            .iter()
            .map(|copy| (copy.site, "so does this".to_owned()))
            .collect(),
        access: Some(index),
        shared_array: access.shared_array,
        cure: None,
    })
}

/// A statement that does nothing but copy a word from device memory into shared memory.
struct Copy {
    site: Site,
    to: Site,
    from: Site,
}

impl Copy {
    fn access(&self, ctx: &Context<'_>, site: Site, op: Op, space: Space) -> Option<usize> {
        let mut all = ctx.facts.accesses.iter();
        all.position(|access| access.site == site && access.op == op && access.space == space)
    }

    fn store(&self, ctx: &Context<'_>) -> Option<usize> {
        self.access(ctx, self.to, Op::Store, Space::Shared)
    }

    fn load(&self, ctx: &Context<'_>) -> Option<usize> {
        self.access(ctx, self.from, Op::Load, Space::Global)
    }

    /// True where its loop is known to run more than once.
    fn is_repeated(&self, ctx: &Context<'_>) -> bool {
        let (Some(_), Some(store)) = (self.load(ctx), self.store(ctx)) else {
            return false;
        };
        iterations(&ctx.input.flow.nodes, store, 1.0).is_some_and(|times| times >= 2.0)
    }
}

/// The copies in loops in which the block waits for itself, in the kernel's own text.
fn in_loops(kernel: &Kernel, statements: &[Stmt], inside: bool, found: &mut Vec<Copy>) {
    for statement in statements {
        if let StmtKind::Expr(expression) = &statement.kind
            && inside
            && statement.site.callee == 0
        {
            found.extend(copy(kernel, expression));
        }
        for (runs, inner) in statement.blocks() {
            let waits = runs == Runs::Repeatedly && has_barrier(inner);
            in_loops(kernel, inner, inside || waits, found);
        }
    }
}

fn has_barrier(statements: &[Stmt]) -> bool {
    let mut found = false;
    parts(statements, &mut |part| {
        found |= matches!(part, Part::Statement(statement) if statement.kind == StmtKind::Barrier);
    });
    found
}

fn copy(kernel: &Kernel, expression: &Expr) -> Option<Copy> {
    let ExprKind::Assign(None, to, from) = &expression.kind else {
        return None;
    };
    let word = matches!(
        to.ty,
        Type::Int { .. } | Type::Float { .. } | Type::Vector(..)
    );
    let shared = root(to).map(|var| kernel.var(var))?;
    let source = root(from).map(|var| kernel.var(var))?;
    let fits = word
        && to.ty == from.ty
        && SIZES.contains(&to.ty.size())
        && matches!(shared.storage, Storage::Shared | Storage::DynamicShared)
        && !shared.volatile
        && !source.volatile;
    fits.then_some(Copy {
        site: expression.site,
        to: to.site,
        from: from.site,
    })
}

/// The array that a place lies in.
fn root(place: &Expr) -> Option<warplens_ir::VarId> {
    match &place.kind {
        ExprKind::Index(base, _) | ExprKind::Deref(base) => below(base),
        _ => None,
    }
}

fn below(base: &Expr) -> Option<warplens_ir::VarId> {
    match &base.kind {
        ExprKind::Var(var) => Some(*var),
        ExprKind::Index(inner, _) => below(inner),
        _ => None,
    }
}

/// Makes them the machine's own copies, and waits for them before the barrier behind, as the code action does.
fn past_registers(statements: &mut Vec<Stmt>, copies: &[Copy], made: &mut bool) {
    let mut barriers = Vec::new();
    for (at, statement) in statements.iter_mut().enumerate() {
        if let StmtKind::Expr(expression) = &mut statement.kind
            && copies.iter().any(|copy| copy.site == expression.site)
            && matches!(expression.kind, ExprKind::Assign(..))
        {
            *made = true;
            let copy = called(Function::CopyPastRegisters, Vec::new(), expression.site);
            let copied = std::mem::replace(expression, copy);
            if let ExprKind::Call(_, arguments) = &mut expression.kind {
                arguments.push(copied);
            }
        }
        if *made && statement.kind == StmtKind::Barrier {
            barriers.push((at, statement.site));
            *made = false;
        }
        for (_, inner) in statement.blocks_mut() {
            past_registers(inner, copies, made);
        }
    }
    for (at, site) in barriers.into_iter().rev() {
        for name in ["__pipeline_wait_prior", "__pipeline_commit"] {
            let Some(function) = known_function(name, false) else {
                continue;
            };
            let kind = StmtKind::Expr(called(function, Vec::new(), site));
            statements.insert(at, Stmt { kind, site });
        }
    }
}

fn called(function: Function, arguments: Vec<Expr>, site: Site) -> Expr {
    Expr {
        kind: ExprKind::Call(function, arguments),
        ty: Type::Void,
        site,
    }
}
