//! atomic/histogram: a warp counts into a small table in device memory, at places that data decides.
//!
//! Each lane's update is a request of its own to L2, for the whole launch. A table that fits shared memory is counted there by
//! each block, and added to device memory once.

use warplens_facts::facts::{Access, AddressPart, Certainty, Pattern, Space};
use warplens_ir::{
    BinaryOp, Builtin, Expr, ExprKind, Fold, LoopKind, Runs, Site, Stmt, StmtKind, Storage, Type,
    Var, VarId, fold_expression, parts,
};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::atomics::{Atomic, root, unused};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "atomic/histogram",
    title: "a small table in device memory is counted into one lane at a time, where shared memory could hold it",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[],
};

/// The most bytes of the table: several blocks of an SM keep one each.
const MOST: u64 = 16 * 1024;

/// Fewer updates of a thread do not pay for a table of its block that is cleared and added up.
const UPDATES: f64 = 1.0;

fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let counts = unused(ctx).into_iter().filter(Atomic::adds);
    counts.filter_map(|atomic| finding(ctx, &atomic)).collect()
}

fn finding(ctx: &Context<'_>, atomic: &Atomic<'_>) -> Option<Finding> {
    let access = atomic.facts(ctx);
    let words = words(access)?;
    let array = root(atomic.pointer)?;
    if !is_only_counted(ctx, atomic, array) {
        return None;
    }
    let threads = ctx.facts.launch.threads_per_block() * ctx.facts.launch.blocks();
    let lanes = access.requests? * access.active_lanes_per_request?;
    if lanes < UPDATES * threads as f64 {
        return None;
    }
    let gain = in_shared(ctx, atomic, array, words)?;
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let name = wording::array_of(access);
    let requests = number(access.requests?);
    Some(Finding {
        rule: RULE.id,
        // Which words the lanes meet at is data's.
        severity: wording::severity(gain, Certainty::Assumed, false),
        place: Place::Site(atomic.site),
        message: wording::sentence([
            Some(format!(
                "count into a table of the block, then add it to `{name}` ({words} words in device memory)"
            )),
            Some(format!(
                "the lanes of a warp go to one of {words} words of `{name}` each, as data decides: {requests} requests of \
                 up to {} updates, where a table in shared memory takes them and each block adds {words} words once",
                ctx.facts.warp_size
            )),
            Some(wording::gain(gain)),
            wording::reservation(ctx.facts, access),
        ]),
        gain,
        related: Vec::new(),
        access: Some(atomic.access),
        shared_array: None,
        cure: None,
    })
}

/// Words that the updates may go to, where they are whole numbers and a block can hold them all.
fn words(access: &Access) -> Option<u64> {
    let by_data = access.space == Space::Global && access.pattern == Pattern::DataDependent;
    let bytes = u64::from(access.bytes_per_lane);
    if !by_data || bytes == 0 {
        return None;
    }
    let by_index = match access.parts.as_deref()? {
        [(step, AddressPart::Values { count, .. })] => {
            count.filter(|_| step.unsigned_abs() == bytes)
        }
        _ => None,
    };
    let by_array = access.array_bytes.map(|all| all / bytes);
    let words = match (by_index, by_array) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    words.filter(|words| *words > 1 && words * bytes <= MOST)
}

/// True where the kernel does nothing else with the table, and counts in whole numbers.
fn is_only_counted(ctx: &Context<'_>, atomic: &Atomic<'_>, array: VarId) -> bool {
    let mut named = 0;
    let mut whole = false;
    parts(&ctx.kernel.body, &mut |part| {
        if let warplens_ir::Part::Expression(expression) = part {
            named += usize::from(expression.kind == ExprKind::Var(array));
            whole |= expression.site == atomic.site && expression.ty.is_int();
        }
    });
    let pointer = matches!(ctx.kernel.var(array).ty, Type::Pointer(..));
    named == 1 && whole && pointer
}

/// The predicted speedup with the table in shared memory; `None` where the changed kernel cannot be followed.
fn in_shared(ctx: &Context<'_>, atomic: &Atomic<'_>, array: VarId, words: u64) -> Option<f64> {
    let mut kernel = ctx.kernel.clone();
    let element = kernel.var(array).ty.element()?.clone();
    let site = atomic.site;
    let new = |vars: &mut Vec<Var>, name: &str, ty: Type, storage| {
        let id = VarId(u32::try_from(vars.len()).ok()?);
        vars.push(Var {
            name: name.to_owned(),
            ty,
            storage,
            site,
            extent_sites: Vec::new(),
            escapes: false,
            restrict: false,
            volatile: false,
        });
        Some(id)
    };
    let table = Type::Array(element.clone().into(), Some(words));
    let own = new(&mut kernel.vars, "table", table.clone(), Storage::Shared)?;
    let first = new(&mut kernel.vars, "word", Type::INT, Storage::Local)?;
    let last = new(&mut kernel.vars, "count", Type::INT, Storage::Local)?;
    let mut moved = Moved {
        from: array,
        to: own,
        ty: table.clone(),
        call: None,
        site,
    };
    moved.block(Runs::Once, &mut kernel.body);
    let call = moved.call?;
    let write = Words {
        site,
        count: words,
        element,
    };
    let of_table = |counter| write.element(own, table.clone(), counter);
    let clear = write.expr(
        ExprKind::Assign(None, Box::new(of_table(first)), Box::new(write.int(0))),
        write.element.clone(),
    );
    let ExprKind::Call(function, _) = call.kind else {
        return None;
    };
    let pointer = kernel.var(array).ty.clone();
    let to = write.element(array, pointer.clone(), last);
    let to = write.expr(ExprKind::AddressOf(Box::new(to)), pointer);
    let add = ExprKind::Call(function, vec![to, of_table(last)]);
    let add = write.expr(add, call.ty);
    let mut begin = vec![write.each(first, clear), write.stmt(StmtKind::Barrier)];
    begin.append(&mut kernel.body);
    begin.extend([write.stmt(StmtKind::Barrier), write.each(last, add)]);
    kernel.body = begin;
    let again = ctx.recompile(&kernel)?;
    Some(crate::believed(again.gain))
}

/// Statements for all words of the table, a thread each.
struct Words {
    site: Site,
    count: u64,
    element: Type,
}

impl Words {
    fn expr(&self, kind: ExprKind, ty: Type) -> Expr {
        let site = self.site;
        Expr { kind, ty, site }
    }

    fn int(&self, value: i64) -> Expr {
        self.expr(ExprKind::Int(value), Type::INT)
    }

    fn stmt(&self, kind: StmtKind) -> Stmt {
        let site = self.site;
        Stmt { kind, site }
    }

    fn element(&self, array: VarId, ty: Type, counter: VarId) -> Expr {
        let base = self.expr(ExprKind::Var(array), ty);
        let counter = self.expr(ExprKind::Var(counter), Type::INT);
        let kind = ExprKind::Index(Box::new(base), Box::new(counter));
        self.expr(kind, self.element.clone())
    }

    /// `for (int counter = threadIdx.x; counter < words; counter += blockDim.x) does;`
    fn each(&self, counter: VarId, does: Expr) -> Stmt {
        let var = || Box::new(self.expr(ExprKind::Var(counter), Type::INT));
        let builtin = |which| self.expr(ExprKind::Builtin(which), Type::INT);
        let words = self.int(i64::try_from(self.count).unwrap_or(i64::MAX));
        let test = ExprKind::Binary(BinaryOp::Lt, var(), Box::new(words));
        let step = ExprKind::Assign(
            Some(BinaryOp::Add),
            var(),
            Box::new(builtin(Builtin::BlockDim(0))),
        );
        self.stmt(StmtKind::Loop {
            kind: LoopKind::For,
            init: vec![self.stmt(StmtKind::Declare(
                counter,
                Some(builtin(Builtin::ThreadIdx(0))),
            ))],
            condition: Some(self.expr(test, Type::INT)),
            step: Some(self.expr(step, Type::INT)),
            body: vec![self.stmt(StmtKind::Expr(does))],
            unroll: None,
        })
    }
}

/// Lets an atomic go to another array.
struct Moved {
    from: VarId,
    to: VarId,
    ty: Type,
    site: Site,
    /// The atomic as it was.
    call: Option<Expr>,
}

impl Fold for Moved {
    fn expression(&mut self, expression: &mut Expr) {
        if expression.site == self.site && matches!(expression.kind, ExprKind::Call(..)) {
            self.call = Some(expression.clone());
        }
        if expression.kind == ExprKind::Var(self.from) {
            expression.kind = ExprKind::Var(self.to);
            expression.ty = self.ty.clone();
        }
        fold_expression(self, expression);
    }
}
