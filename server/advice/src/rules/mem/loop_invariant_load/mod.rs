//! mem/loop-invariant-load: a loop loads in each iteration what never changes in it. Beside it mem/no-restrict: other loads
//! and stores that the compiler repeats because a store may change what they read.
//!
//! The kernel is compiled once more with every pointer parameter `restrict`; what is executed less often then was
//! repeated for that alone.

pub(crate) mod hoist_load;
mod partner;
mod sums;
mod turns;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_codegen::Class;
use warplens_facts::facts::{Access, Alias, Certainty, Op, Space};
use warplens_ir::{AddressSpace, Kernel, Part, Site, Stmt, StmtKind, Storage, Type, VarId, parts};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::rules::mem::no_restrict;
use crate::subjects::flow::iterations;
use crate::wording::{self, number};
use crate::{Context, Cure, Finding, Place, Recompilation};

use turns::{Turn, Turns};

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
    let turns = Turns::of(ctx.kernel);
    let mut findings: Vec<Finding> = restricted(ctx, &turns).into_iter().collect();
    if findings.is_empty() {
        findings.extend(by_hand(ctx, &turns));
    }
    findings.extend(sums::in_memory(ctx, &turns));
    findings
}

// ---- what `restrict` alone would cure ----------------------------------------------------------

fn restricted(ctx: &Context<'_>, turns: &Turns<'_>) -> Option<Finding> {
    let accesses = &ctx.facts.accesses;
    let open = |access: &&Access| {
        access.space == Space::Global && matches!(access.alias, Alias::Parameter | Alias::Unknown)
    };
    let stores = accesses.iter().filter(open).filter(|a| a.op != Op::Load);
    if !any_meet(accesses, stores) {
        return None;
    }
    let mut kernel = ctx.kernel.clone();
    for var in kernel.vars.iter_mut().take(ctx.kernel.params as usize) {
        let global = matches!(var.ty, Type::Pointer(_, AddressSpace::Global));
        var.restrict |= global && !var.volatile;
    }
    let again = ctx.recompile(&kernel)?;
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
    let saved = Saved::by(&again);
    let worst = accesses
        .iter()
        .enumerate()
        .filter(|(_, access)| access.space == Space::Global && access.alias == Alias::Parameter)
        .map(|(index, access)| (index, saved.of(access)))
        .filter(|(_, saved)| *saved >= ONCE)
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?
        .0;
    let worst_access = &accesses[worst];
    let partner = partner::of(accesses, worst_access)?;
    let written = accesses
        .iter()
        .any(|a| a.op != Op::Load && a.array == worst_access.array);
    let invariant = accesses
        .iter()
        .filter(|access| access.space == Space::Global && saved.of(access) >= ONCE)
        .all(|access| access.op == Op::Load && !written && turns.fixed(access));
    let rule = if invariant {
        RULE.id
    } else {
        no_restrict::RULE.id
    };
    let text = &worst_access.text;
    let other = &partner.text;
    let cause = match worst_access.op {
        Op::Load if invariant => format!(
            "`{text}` is the same in every iteration and loaded each time, for the store to `{other}` may change it"
        ),
        Op::Load => format!("`{text}` is loaded again, for the store to `{other}` may change it"),
        _ => format!("`{text}` is stored each time, for the load of `{other}` may read it"),
    };
    let cure = if invariant {
        let array = wording::array_of(worst_access);
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
                "{cure} ({} loads and stores per warp{}, ideal {})",
                number(before),
                wording::on_average(before),
                number(after)
            )),
            Some(format!(
                "{} loads and stores per warp{} (ideal {}): {cause}",
                number(before),
                wording::on_average(before),
                number(after)
            )),
            Some(wording::gain(gain)),
            Some(assumed),
        ]),
        gain,
        related: Some(partner)
            .filter(|partner| partner.site != worst_access.site)
            .map(|partner| match partner.op {
                Op::Load => (partner.site, format!("the load of `{other}`")),
                _ => (partner.site, format!("the store to `{other}`")),
            })
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

/// True where a load may be repeated because of one of these stores, as far as their places say: to another array, both in
/// loops, or the load is at two places.
fn any_meet<'a>(accesses: &[Access], stores: impl Iterator<Item = &'a Access>) -> bool {
    let (mut stored, mut in_loops) = (Arrays::default(), Arrays::default());
    for store in stores {
        stored.hold(&store.array);
        if store.loop_depth > 0 {
            in_loops.hold(&store.array);
        }
    }
    let mut first: FxHashMap<&str, Site> = FxHashMap::default();
    let mut repeated: FxHashSet<&str> = FxHashSet::default();
    for access in accesses {
        if *first.entry(&access.text).or_insert(access.site) != access.site {
            repeated.insert(&access.text);
        }
    }
    let mut loads = accesses.iter().filter(|access| {
        access.op == Op::Load && access.space == Space::Global && access.alias == Alias::Parameter
    });
    loads.any(|load| {
        load.loop_depth > 0 && in_loops.has_other(&load.array)
            || repeated.contains(load.text.as_str()) && stored.has_other(&load.array)
    })
}

/// Names of arrays, as far as it matters whether there is another one than a given one.
#[derive(Default)]
struct Arrays<'a> {
    first: Option<&'a str>,
    others: bool,
}

impl<'a> Arrays<'a> {
    fn hold(&mut self, array: &'a str) {
        self.others |= *self.first.get_or_insert(array) != array;
    }

    fn has_other(&self, array: &str) -> bool {
        self.others || self.first.is_some_and(|first| first != array)
    }
}

fn is_device(class: Class) -> bool {
    matches!(class, Class::Ldg | Class::Stg)
}

/// Executions by a warp that each place has the fewer.
struct Saved(FxHashMap<(Site, Class), f64>);

impl Saved {
    fn by(again: &Recompilation) -> Saved {
        let mut saved: FxHashMap<(Site, Class), f64> = FxHashMap::default();
        for (executed, sign) in [(&again.before, 1.0), (&again.after, -1.0)] {
            for (site, class, times) in executed {
                *saved.entry((*site, *class)).or_insert(0.0) += sign * times;
            }
        }
        Saved(saved)
    }

    fn of(&self, access: &Access) -> f64 {
        let class = if access.op == Op::Load {
            Class::Ldg
        } else {
            Class::Stg
        };
        self.0.get(&(access.site, class)).copied().unwrap_or(0.0)
    }
}

// ---- what only a hand can move -----------------------------------------------------------------

/// Loads that stay in a loop though nothing in it can change them: behind a barrier the compiler loads again.
fn by_hand(ctx: &Context<'_>, turns: &Turns<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let made: FxHashSet<(Site, Class)> = {
        let places = ctx.compiled.places.iter();
        let made = places.filter(|(.., count)| *count > 0);
        made.map(|(site, class, _)| (*site, *class)).collect()
    };
    for (index, access) in ctx.facts.accesses.iter().enumerate() {
        let near = matches!(access.space, Space::Global | Space::Shared);
        if !near || access.op != Op::Load || access.loop_depth == 0 || access.site.callee != 0 {
            continue;
        }
        let told = |other: &Finding| {
            let other = other.access.map(|other| &ctx.facts.accesses[other]);
            other.is_some_and(|other| other.text == access.text)
        };
        if !stays(&made, turns, access) || found.iter().any(told) {
            continue;
        }
        let Some(trips) = iterations(&ctx.input.flow.nodes, index, 1.0) else {
            continue;
        };
        if trips < 2.0 || !movable(ctx.kernel, turns, access) {
            continue;
        }
        let Some(gain) = ctx.trial(&[Change::BeforeLoop(vec![index])]) else {
            break;
        };
        found.push(Finding {
            rule: RULE.id,
            severity: wording::severity(gain, access.certainty, false),
            place: Place::Site(access.site),
            message: wording::sentence([
            Some(format!(
                    "load from `{}` once, before the loop ({} loads, ideal 1)",
                    wording::array_of(access),
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
fn stays(made: &FxHashSet<(Site, Class)>, turns: &Turns<'_>, access: &Access) -> bool {
    let class = if access.space == Space::Shared {
        Class::Lds
    } else {
        Class::Ldg
    };
    made.contains(&(access.site, class)) && turns.fixed(access)
}

/// True where a load may move before its loop: there is a barrier that has it loaded again, and nothing in the loop
/// can write to where it reads.
fn movable(kernel: &Kernel, turns: &Turns<'_>, access: &Access) -> bool {
    let Some((turn, place)) = turns.around(access) else {
        return false;
    };
    let Some(own) = place.base_variable() else {
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
                StmtKind::Loop { .. } if holds(statement, access) => settled = !open,
                _ => {}
            },
            Part::Expression(expression) => {
                let mut turn = Turn::default();
                turn.expression(expression);
                open |=
                    turn.unknown || turn.stored.contains(&Some(own)) || turn.stored.contains(&None);
            }
        });
    }
    settled
}

/// True where the access is in this statement.
fn holds(statement: &Stmt, access: &Access) -> bool {
    let mut held = false;
    parts(std::slice::from_ref(statement), &mut |part| {
        if let Part::Expression(expression) = part {
            held |= turns::is_access(expression) && expression.site == access.site;
        }
    });
    held
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
