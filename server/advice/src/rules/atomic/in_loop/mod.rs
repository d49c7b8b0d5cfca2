//! atomic/in-loop: a thread adds to one address in every iteration of a loop.

pub(crate) mod add_once;

use warplens_facts::facts::{BranchKind, Certainty};
use warplens_ir::{
    BinaryOp, Expr, ExprKind, Fold, Function, Part, Real, Runs, Site, Stmt, StmtKind, Storage,
    Type, Var, VarId, fold_block, fold_expression, parts,
};
use warplens_models::Change;

use crate::rule::{Look, Rule, State};
use crate::subjects::atomics::{Atomic, invariant, root};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "atomic/in-loop",
    title: "a thread updates one address atomically in every iteration, where once after the loop is enough",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("atomic/hot-address"),
    actions: &[add_once::fixes],
};

/// Fewer atomics than this of a warp are not worth a variable.
const UPDATES: f64 = 2.0;

/// The finding about one addition.
pub(crate) fn finding(ctx: &Context<'_>, atomic: &Atomic<'_>) -> Option<Finding> {
    let around = atomic
        .loops
        .iter()
        .find(|around| leaves_alone(ctx, atomic, around))?;
    let StmtKind::Loop {
        condition: Some(condition),
        ..
    } = &around.kind
    else {
        return None;
    };
    let entered = ctx.facts.branches.iter().find(|branch| {
        branch.kind == BranchKind::Loop && branch.site.span == condition.site.span
    })?;
    let access = atomic.facts(ctx);
    let updates = access.requests? / entered.evaluations.filter(|times| *times > 0.0)?;
    if updates < UPDATES || access.certainty == Certainty::Unknown {
        return None;
    }
    let gain = match once_behind(ctx, atomic, around) {
        Some(gain) => gain,
        None => {
            let behind = vec![(atomic.access, around.site.line)];
            ctx.trial(&[Change::BehindLoop(behind)])?
        }
    };
    let reservation = wording::reservation(ctx.facts, access);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, reservation.is_some()),
        place: Place::Site(atomic.site),
        message: wording::sentence([
            Some(format!(
                "add to `{}` once, after the loop ({} atomics per warp, ideal 1)",
                wording::array_of(access),
                number(updates)
            )),
            Some(format!(
                "{} atomics per warp (ideal 1): `{}` is one address in all iterations of the loop",
                number(updates),
                access.text
            )),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: vec![(around.site, "the loop".to_owned())],
        access: Some(atomic.access),
        shared_array: None,
        cure: None,
    })
}

/// The predicted speedup of a sum in a variable of the thread, added to memory behind the loop: the loop's loads are free to
/// be in flight together then. `None` where the changed kernel cannot be followed.
fn once_behind(ctx: &Context<'_>, atomic: &Atomic<'_>, around: &Stmt) -> Option<f64> {
    if !ctx.may_recompile() {
        return None;
    }
    let mut kernel = ctx.kernel.clone();
    let sum = VarId(u32::try_from(kernel.vars.len()).ok()?);
    let mut behind = Behind {
        atomic: atomic.site,
        around: around.site,
        sum,
        ty: None,
    };
    behind.block(Runs::Once, &mut kernel.body);
    kernel.vars.push(Var {
        name: "sum".to_owned(),
        ty: behind.ty?,
        storage: Storage::Local,
        site: around.site,
        extent_sites: Vec::new(),
        escapes: false,
        restrict: false,
        volatile: false,
    });
    let again = ctx.recompile(&kernel)?;
    Some(crate::believed(again.gain))
}

/// Moves an atomic behind a loop.
struct Behind {
    atomic: Site,
    around: Site,
    sum: VarId,
    /// Of what is added to, once the loop was met.
    ty: Option<Type>,
}

impl Behind {
    fn expr(&self, kind: ExprKind, ty: &Type) -> Expr {
        Expr {
            kind,
            ty: ty.clone(),
            site: self.around,
        }
    }

    /// What is put around the loop: the sum that begins at zero, and the atomic.
    fn around(&self, mut call: Expr) -> [Stmt; 2] {
        let ty = call.ty.clone();
        let zero = || match ty {
            Type::Float { .. } => ExprKind::Float(Some(Real::from(0.0))),
            _ => ExprKind::Int(0),
        };
        let sum = || self.expr(ExprKind::Var(self.sum), &ty);
        if let ExprKind::Call(_, arguments) = &mut call.kind
            && let Some(value) = arguments.get_mut(1)
        {
            *value = sum();
        }
        let some = ExprKind::Binary(
            BinaryOp::Ne,
            Box::new(sum()),
            Box::new(self.expr(zero(), &ty)),
        );
        let stmt = |kind| Stmt {
            kind,
            site: self.around,
        };
        let begins = StmtKind::Declare(self.sum, Some(self.expr(zero(), &ty)));
        let adds = StmtKind::If(
            self.expr(some, &Type::INT),
            vec![stmt(StmtKind::Expr(call))],
            Vec::new(),
        );
        [stmt(begins), stmt(adds)]
    }
}

impl Fold for Behind {
    fn block(&mut self, _: Runs, statements: &mut Vec<Stmt>) {
        let is_loop =
            |one: &Stmt| one.site == self.around && matches!(one.kind, StmtKind::Loop { .. });
        let Some(at) = statements.iter().position(is_loop) else {
            return fold_block(self, statements);
        };
        let mut taken = Taken {
            atomic: self.atomic,
            sum: self.sum,
            call: None,
        };
        taken.statement(&mut statements[at]);
        if let Some(call) = taken.call {
            self.ty = Some(call.ty.clone());
            let [begins, adds] = self.around(call);
            statements.insert(at + 1, adds);
            statements.insert(at, begins);
        }
    }
}

/// Puts an addition to a variable in place of an atomic, which it takes.
struct Taken {
    atomic: Site,
    sum: VarId,
    call: Option<Expr>,
}

impl Fold for Taken {
    fn expression(&mut self, expression: &mut Expr) {
        if expression.site == self.atomic
            && let ExprKind::Call(Function::Atomic(..), arguments) = &expression.kind
            && let Some(value) = arguments.get(1)
        {
            let (ty, site) = (expression.ty.clone(), expression.site);
            let sum = Expr {
                kind: ExprKind::Var(self.sum),
                ty: ty.clone(),
                site,
            };
            let add = Some(BinaryOp::Add);
            let kind = ExprKind::Assign(add, Box::new(sum), Box::new(value.clone()));
            self.call = Some(std::mem::replace(expression, Expr { kind, ty, site }));
        }
        fold_expression(self, expression);
    }
}

/// True where the sum can wait for the loop's end: the address stays, nothing in the loop names what is there or waits
/// for other threads, the test reads no memory, and every way out of it leads behind it.
fn leaves_alone(ctx: &Context<'_>, atomic: &Atomic<'_>, around: &Stmt) -> bool {
    let StmtKind::Loop {
        init,
        condition,
        step,
        body,
        ..
    } = &around.kind
    else {
        return false;
    };
    let Some(array) = root(atomic.pointer) else {
        return false;
    };
    if !invariant(ctx.kernel, atomic.pointer, &[init, body], step.as_ref()) {
        return false;
    }
    let mut quiet = true;
    let mut seen = 0;
    let mut look = |part: Part<'_>| match part {
        Part::Statement(statement) => {
            let returns = matches!(statement.kind, StmtKind::Return(_));
            quiet &= !returns && !statement.may_change_memory();
        }
        Part::Expression(expression) => {
            seen += usize::from(names(expression, array));
            quiet &= !matches!(
                &expression.kind,
                ExprKind::Apply(..)
                    | ExprKind::Opaque(..)
                    | ExprKind::Inline(..)
                    | ExprKind::Call(Function::Ignored(..) | Function::WarpExchange(..), _)
            );
        }
    };
    parts(body, &mut look);
    for head in condition.iter().chain(step) {
        head.parts(&mut look);
    }
    quiet && seen == 1 && !condition.as_ref().is_some_and(Expr::reads_or_forks)
}

fn names(expression: &Expr, array: VarId) -> bool {
    matches!(expression.kind, ExprKind::Var(var) if var == array)
}
