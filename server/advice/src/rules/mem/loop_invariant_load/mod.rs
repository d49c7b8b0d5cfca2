//! mem/loop-invariant-load: a loop loads in each iteration what never changes in it. Beside it mem/no-restrict: other loads
//! and stores that the compiler repeats because a store may change what they read.
//!
//! The kernel is compiled once more with every pointer parameter `restrict`; what is executed less often then was
//! repeated for that alone.

pub(crate) mod hoist_load;

use warplens_codegen::Class;
use warplens_facts::facts::{Access, Alias, Certainty, Op, SourceFacts, Space};
use warplens_ir::{
    AddressSpace, Expr, ExprKind, Function, Kernel, Part, Site, Stmt, StmtKind, Storage, Type,
    VarId, parts,
};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::rules::mem::no_restrict;
use crate::subjects::flow::iterations;
use crate::wording::{self, number};
use crate::{Context, Cure, Finding, Place, Recompilation};

pub(crate) const RULE: Rule = Rule {
    id: "mem/loop-invariant-load",
    title: "a loop loads the same word in each iteration, for the compiler cannot know that nothing changes it",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Reload, check),
    actions: &[hoist_load::fixes],
};

/// Less than this part of the kernel's loads and stores is not worth a word.
const PART: f64 = 0.05;
/// Speedups below this are none: the kernel is predicted slower.
const SLOWER: f64 = 0.9995;
/// Executions counted for the compiled kernel may be this much above the source's: averages of other warps.
const WIDER: f64 = 1.05;
/// Fewer executions of a warp than this are none.
const ONCE: f64 = 0.9;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = restricted(ctx).into_iter().collect();
    if findings.is_empty() {
        findings.extend(by_hand(ctx));
    }
    findings
}

// ---- what `restrict` alone would cure ----------------------------------------------------------

fn restricted(ctx: &Context<'_>) -> Option<Finding> {
    let accesses = &ctx.facts.accesses;
    let open = |access: &&Access| {
        access.space == Space::Global && matches!(access.alias, Alias::Parameter | Alias::Unknown)
    };
    let mut stores = accesses.iter().filter(open).filter(|a| a.op != Op::Load);
    if !stores
        .clone()
        .any(|store| accesses.iter().any(|load| meets(ctx.facts, load, store)))
    {
        return None;
    }
    let mut kernel = ctx.kernel.clone();
    for var in kernel.vars.iter_mut().take(ctx.kernel.params as usize) {
        let global = matches!(var.ty, Type::Pointer(_, AddressSpace::Global));
        var.restrict |= global && !var.volatile;
    }
    let again = (ctx.recompiled)(&kernel)?;
    let device = |all: &[(Site, Class, f64)]| -> f64 {
        let all = all.iter().filter(|(_, class, _)| is_device(*class));
        all.map(|(.., times)| times).sum()
    };
    let (before, after) = (device(&again.before), device(&again.after));
    // What the source does not repeat no store has repeated.
    if let Some(written) = written_per_warp(ctx)
        && before > written * WIDER
    {
        return None;
    }
    // More values in registers may cost more than the loads did.
    if before - after < ONCE.max(before * PART) || again.gain < SLOWER {
        return None;
    }
    let worst = accesses
        .iter()
        .enumerate()
        .filter(|(_, access)| access.space == Space::Global && access.alias == Alias::Parameter)
        .map(|(index, access)| (index, saved(&again, access)))
        .filter(|(_, saved)| *saved >= ONCE)
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?
        .0;
    let worst_access = &accesses[worst];
    let store = stores
        .clone()
        .find(|store| store.array != worst_access.array && store.loop_depth > 0)
        .or_else(|| stores.find(|store| store.array != worst_access.array));
    let written = accesses
        .iter()
        .any(|a| a.op != Op::Load && a.array == worst_access.array);
    let invariant = accesses
        .iter()
        .filter(|access| access.space == Space::Global && saved(&again, access) >= ONCE)
        .all(|access| access.op == Op::Load && !written && invariant(ctx.kernel, access));
    let rule = if invariant {
        RULE.id
    } else {
        no_restrict::RULE.id
    };
    let text = &worst_access.text;
    let cause = match (store, written) {
        (Some(store), false) if invariant => format!(
            "`{text}` is the same in every iteration and loaded each time, for the store to `{}` may change it",
            store.text
        ),
        (Some(store), false) => {
            format!(
                "`{text}` is loaded again, for the store to `{}` may change it",
                store.text
            )
        }
        _ => {
            let other = accesses
                .iter()
                .find(|a| a.alias == Alias::Parameter && a.array != worst_access.array)?;
            format!(
                "`{text}` goes through memory each time, for `{}` may lie in the same place",
                other.array
            )
        }
    };
    let cure = if invariant {
        let array = wording::short(&worst_access.array);
        format!("load from `{array}` once, before the loop")
    } else {
        "mark the pointers `restrict`".to_owned()
    };
    let gain = crate::believed(again.gain);
    let assumed = "assumes that no two arrays overlap, as `restrict` would say".to_owned();
    Some(Finding {
        rule,
        // What is assumed is what the answer asks of the user, no figure depends on it.
        severity: wording::severity(gain, Certainty::Exact, true),
        place: Place::Site(worst_access.site),
        message: wording::sentence([
            Some(format!(
                "{cure} ({} loads and stores per warp, ideal {})",
                number(before),
                number(after)
            )),
            Some(format!(
                "{} loads and stores per warp (ideal {}): {cause}",
                number(before),
                number(after)
            )),
            Some(wording::gain(gain)),
            Some(assumed),
        ]),
        gain,
        related: store
            .filter(|store| store.site != worst_access.site)
            .map(|store| (store.site, format!("the store to `{}`", store.text)))
            .into_iter()
            .collect(),
        access: Some(worst),
        shared_array: None,
        cure: Some(Cure::Restrict),
    })
}

/// Loads and stores of device memory that the source has a warp make, on average; `None` where some are not counted.
fn written_per_warp(ctx: &Context<'_>) -> Option<f64> {
    let launch = &ctx.facts.launch;
    let warps = launch.blocks() as f64 * launch.warps_per_block(ctx.facts.warp_size) as f64;
    let mut all = 0.0;
    for access in &ctx.facts.accesses {
        if access.space == Space::Global && access.op != Op::Atomic {
            all += access.requests?;
        }
    }
    (warps > 0.0).then(|| all / warps)
}

/// True where a load may be repeated because of a store, as far as their places say.
fn meets(facts: &SourceFacts, load: &Access, store: &Access) -> bool {
    load.op == Op::Load
        && load.space == Space::Global
        && load.alias == Alias::Parameter
        && load.array != store.array
        && (load.loop_depth > 0 && store.loop_depth > 0
            || facts
                .accesses
                .iter()
                .any(|other| other.site != load.site && other.text == load.text))
}

fn is_device(class: Class) -> bool {
    matches!(class, Class::Ldg | Class::Stg)
}

/// Executions by a warp that the access has the fewer.
fn saved(again: &Recompilation, access: &Access) -> f64 {
    let class = if access.op == Op::Load {
        Class::Ldg
    } else {
        Class::Stg
    };
    executed(&again.before, access.site, class) - executed(&again.after, access.site, class)
}

fn executed(all: &[(Site, Class, f64)], site: Site, class: Class) -> f64 {
    let here = all.iter().filter(|(at, of, _)| *at == site && *of == class);
    here.map(|(.., times)| times).sum()
}

// ---- what only a hand can move -----------------------------------------------------------------

/// Loads that stay in a loop though nothing in it can change them: behind a barrier the compiler loads again.
fn by_hand(ctx: &Context<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for (index, access) in ctx.facts.accesses.iter().enumerate() {
        let near = matches!(access.space, Space::Global | Space::Shared);
        if !near || access.op != Op::Load || access.loop_depth == 0 || access.site.callee != 0 {
            continue;
        }
        let told = |other: &Finding| {
            let other = other.access.map(|other| &ctx.facts.accesses[other]);
            other.is_some_and(|other| other.text == access.text)
        };
        if found.iter().any(told) || !stays(ctx, access) {
            continue;
        }
        let Some(trips) = iterations(&ctx.input.flow.nodes, index, 1.0) else {
            continue;
        };
        if trips < 2.0 || !movable(ctx.kernel, access) {
            continue;
        }
        let gain = ctx.trial(&[Change::BeforeLoop { access: index }]);
        found.push(Finding {
            rule: RULE.id,
            severity: wording::severity(gain, access.certainty, false),
            place: Place::Site(access.site),
            message: wording::sentence([
            Some(format!(
                    "load from `{}` once, before the loop ({} loads, ideal 1)",
                    wording::short(&access.array),
                    number(trips)
                )),
                Some(format!(
                    "{} loads (ideal 1): `{}` is the same in every iteration and nothing in the loop writes it, \
                     but each barrier has it loaded again",
                    number(trips),
                    access.text
                )),
                Some(wording::gain(gain)),
                wording::reservation(ctx.facts, access),
            ]),
            gain,
            related: Vec::new(),
            access: Some(index),
            shared_array: access.shared_array,
            cure: None,
        });
    }
    found
}

/// True where the compiled kernel loads it in each iteration.
fn stays(ctx: &Context<'_>, access: &Access) -> bool {
    let class = if access.space == Space::Shared {
        Class::Lds
    } else {
        Class::Ldg
    };
    let made: u32 = ctx
        .compiled
        .places
        .iter()
        .filter(|(site, of, _)| *site == access.site && *of == class)
        .map(|(.., count)| *count)
        .sum();
    made > 0 && invariant(ctx.kernel, access)
}

/// What one iteration of the innermost loop around an access does.
#[derive(Default)]
struct Turn {
    /// Variables that it gives another value.
    assigned: Vec<VarId>,
    /// What it stores through; `None` for what is not a plain variable.
    stored: Vec<Option<VarId>>,
    /// It has a barrier, or something that is not understood.
    barrier: bool,
    unknown: bool,
    /// The access.
    place: Option<Expr>,
}

impl Turn {
    fn around(kernel: &Kernel, access: &Access) -> Option<Turn> {
        let mut innermost = None;
        parts(&kernel.body, &mut |part| {
            if let Part::Statement(statement) = part
                && let StmtKind::Loop { .. } = statement.kind
                && let Some(turn) = Turn::of(statement, access)
            {
                innermost = Some(turn);
            }
        });
        innermost
    }

    /// `None` where the loop does not hold the access.
    fn of(statement: &Stmt, access: &Access) -> Option<Turn> {
        let mut turn = Turn::default();
        parts(std::slice::from_ref(statement), &mut |part| match part {
            Part::Statement(inner) => match &inner.kind {
                StmtKind::Declare(id, _) => turn.assigned.push(*id),
                StmtKind::Barrier => turn.barrier = true,
                StmtKind::Unknown(_) => turn.unknown = true,
                _ => {}
            },
            Part::Expression(expression) => turn.expression(expression, access),
        });
        turn.place.is_some().then_some(turn)
    }

    fn expression(&mut self, expression: &Expr, access: &Access) {
        match &expression.kind {
            ExprKind::Index(..) | ExprKind::Deref(_) if expression.site == access.site => {
                self.place.get_or_insert_with(|| expression.clone());
            }
            ExprKind::Assign(_, place, _) | ExprKind::Step(_, _, place) => self.changes(place),
            ExprKind::AddressOf(place) => self.changes(place),
            ExprKind::Call(Function::Math(..) | Function::Load, _) => {}
            ExprKind::Call(function, values) => {
                let pure = matches!(
                    function,
                    Function::Min
                        | Function::Max
                        | Function::Abs
                        | Function::Mul24
                        | Function::Bits(_)
                );
                if !pure {
                    match values.first() {
                        Some(place) => self.stored.push(place.base_variable()),
                        None => self.unknown = true,
                    }
                }
            }
            ExprKind::Apply(..) | ExprKind::Opaque(..) => self.unknown = true,
            _ => {}
        }
    }

    fn changes(&mut self, place: &Expr) {
        match &place.kind {
            ExprKind::Var(id) => self.assigned.push(*id),
            ExprKind::Index(..) | ExprKind::Deref(_) => self.stored.push(place.base_variable()),
            _ => {
                let through = place.base_variable();
                self.assigned.extend(through);
                self.stored.push(through);
            }
        }
    }
}

/// True where the address is the same in each iteration of the innermost loop, and depends on no memory.
fn invariant(kernel: &Kernel, access: &Access) -> bool {
    Turn::around(kernel, access).is_some_and(|turn| turn.fixed())
}

impl Turn {
    fn fixed(&self) -> bool {
        let Some(place) = &self.place else {
            return false;
        };
        let (ExprKind::Index(base, _) | ExprKind::Deref(base)) = &place.kind else {
            return false;
        };
        let inner = match &place.kind {
            ExprKind::Index(_, index) => Some(&**index),
            _ => None,
        };
        !place.reads(&self.assigned)
            && inner.is_none_or(|index| !index.reads_or_forks())
            && base.base_variable().is_some()
    }
}

/// True where a load may move before its loop: there is a barrier that has it loaded again, and nothing in the loop
/// can write to where it reads.
fn movable(kernel: &Kernel, access: &Access) -> bool {
    let Some(turn) = Turn::around(kernel, access) else {
        return false;
    };
    let Some(own) = turn.place.as_ref().and_then(Expr::base_variable) else {
        return false;
    };
    let apart = |other: &Option<VarId>| {
        other.is_some_and(|other| other != own && are_apart(kernel, own, other))
    };
    turn.barrier
        && !turn.unknown
        && !kernel.var(own).volatile
        && turn.stored.iter().all(apart)
        && is_settled(kernel, access, own)
}

/// True where a barrier is between the last store to an array and the innermost loop around an access to it: what
/// the loop's own barrier would make visible is visible before it.
fn is_settled(kernel: &Kernel, access: &Access, own: VarId) -> bool {
    let (mut open, mut settled) = (false, true);
    // Once more from the start: what an outer loop stores behind, its next iteration finds before.
    for _ in 0..access.loop_depth.min(2) {
        parts(&kernel.body, &mut |part| match part {
            Part::Statement(statement) => match &statement.kind {
                StmtKind::Barrier => open = false,
                StmtKind::Loop { .. } if Turn::of(statement, access).is_some() => settled = !open,
                _ => {}
            },
            Part::Expression(expression) => {
                let mut turn = Turn::default();
                turn.expression(expression, access);
                open |=
                    turn.unknown || turn.stored.contains(&Some(own)) || turn.stored.contains(&None);
            }
        });
    }
    settled
}

/// True where two variables never lead to the same memory.
fn are_apart(kernel: &Kernel, a: VarId, b: VarId) -> bool {
    let own = |id: VarId| {
        let var = kernel.var(id);
        let array = !matches!(var.ty, Type::Pointer(..));
        match var.storage {
            Storage::Shared | Storage::DynamicShared | Storage::Constant => true,
            Storage::Local => array && !var.escapes,
            Storage::Param(_) => var.restrict,
            Storage::Global => array,
        }
    };
    own(a) || own(b)
}

#[cfg(test)]
mod tests {
    use warplens_facts::facts::{Node, TripCount};

    use super::*;

    fn load(access: usize) -> Node {
        Node::Access {
            access,
            uses: Vec::new(),
        }
    }

    fn turns(trips: f64, known: bool, body: Vec<Node>) -> Node {
        Node::Loop {
            trips,
            known,
            count: TripCount::Number,
            body,
            line: 1,
        }
    }

    #[test]
    fn a_guessed_number_of_iterations_is_none() {
        let flow = vec![turns(100.0, false, vec![load(0)])];
        assert_eq!(iterations(&flow, 0, 1.0), Some(0.0));
        assert_eq!(iterations(&flow, 1, 1.0), None);
    }
}
