//! call/not-inlined: a call in a loop whose body the compiler cannot put in its place.

pub(crate) mod inline_call;

use warplens_facts::facts::Certainty;
use warplens_ir::{
    Controls, ExprKind, Language, MachineCall, Part, StaysCall, Stmt, StmtKind, expressions, parts,
};
use warplens_machine::{Mix, Pipe};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "call/not-inlined",
    title: "a loop calls a function that stays a call: `__noinline__`, recursive, or through a pointer",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[inline_call::fixes],
};

/// What nvcc 13 makes of any call for `sm_80`: the return address in two registers, there and back.
const CALL: [(Pipe, f64); 2] = [(Pipe::Int, 2.0), (Pipe::Branch, 2.0)];
/// A loop with fewer iterations per warp is not hot.
const CALLS: f64 = 4.0;
/// More calls of a kernel than this are not looked at: each walks the kernel.
const MOST: usize = 32;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let calls = &ctx.kernel.calls;
    if calls.is_empty() {
        return Vec::new();
    }
    let controls = Controls::of(ctx.kernel);
    let of_call = |call| finding(ctx, &controls, call);
    calls.iter().take(MOST).filter_map(of_call).collect()
}

fn finding(ctx: &Context<'_>, controls: &Controls, call: &MachineCall) -> Option<Finding> {
    let made = executions(ctx, controls, call)?;
    let launch = &ctx.facts.launch;
    let warps = launch.warps_per_block(ctx.facts.warp_size) as f64 * launch.blocks() as f64;
    let of_a_warp = made.times / warps.max(1.0);
    if of_a_warp < CALLS {
        return None;
    }
    let gain = ctx.slowdown(&[Change::More {
        line: call.site.line,
        mix: Mix::from(CALL),
        times: of_a_warp,
    }]);
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let certainty = match call.why {
        StaysCall::Recursive => Certainty::Unknown,
        _ if made.exact => Certainty::Exact,
        _ => Certainty::Assumed,
    };
    let assumed = (certainty == Certainty::Assumed)
        .then(|| wording::assumes(ctx.facts, &[]))
        .flatten();
    let name = &call.name;
    let calls = format!("{} calls per warp", number(of_a_warp));
    let each = format!(
        "{} instructions each beside the body",
        number(Mix::from(CALL).total())
    );
    let what = match call.why {
        StaysCall::NoInline if ctx.kernel.language == Language::OpenCl => {
            format!("{calls}, {each}: `{name}` is `noinline`")
        }
        StaysCall::NoInline => format!("{calls}, {each}: `{name}` is `__noinline__`"),
        StaysCall::Recursive => format!(
            "an unknown number of calls, at least {each}: `{name}` calls itself, and its registers wait in local memory"
        ),
        StaysCall::Pointer => {
            format!("{calls}, at least {each}: data say whether it is {name}")
        }
        StaysCall::Virtual => {
            format!("{calls}, at least {each}: the object's class says which `{name}` it is")
        }
    };
    let short = wording::short(name);
    let headline = match call.why {
        StaysCall::NoInline => format!("inline `{short}` ({calls})"),
        StaysCall::Recursive => format!("`{short}` calls itself: registers wait in local memory"),
        StaysCall::Pointer => format!("call a function that the compiler knows ({calls})"),
        StaysCall::Virtual => format!("avoid the virtual call of `{short}` ({calls})"),
    };
    let in_memory = in_memory(ctx, call);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, certainty, assumed.is_some()),
        place: Place::Site(call.site),
        message: wording::sentence([
            Some(headline),
            Some(what),
            in_memory,
            Some(wording::gain(gain)),
            assumed,
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}

/// What lies in local memory because the function takes its address.
fn in_memory(ctx: &Context<'_>, call: &MachineCall) -> Option<String> {
    let names: Vec<String> = call
        .addressed
        .iter()
        .map(|&var| format!("`{}`", ctx.kernel.var(var).name))
        .collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!(
            "{one} lies in local memory for it, as its address is handed over"
        )),
        _ => Some(format!(
            "{} lie in local memory for it, as their addresses are handed over",
            names.join(", ")
        )),
    }
}

/// How often warps make a call.
struct Made {
    times: f64,
    exact: bool,
}

/// Of a call in a loop; `None` where it is in none, is not made, or its number is not known.
fn executions(ctx: &Context<'_>, controls: &Controls, call: &MachineCall) -> Option<Made> {
    let site = call.site;
    let calls = |statements: &[Stmt]| {
        let mut found = false;
        expressions(statements, &mut |expression| {
            found |= expression.site == site
                && matches!(expression.kind, ExprKind::Inline(..) | ExprKind::Apply(..));
        });
        found
    };
    let way = |control: Option<warplens_ir::Control>| {
        let way = ctx.facts.ways.get(control?.0 as usize)?;
        way.as_ref()
    };
    let mut in_loop = false;
    // The innermost way that leads there: outer ones are met before.
    let mut innermost: Option<Made> = None;
    let mut look = |part: Part<'_>| {
        let Part::Statement(statement) = part else {
            return;
        };
        match &statement.kind {
            // A function that calls itself is a loop at its call: as often as its body, the call.
            StmtKind::Loop { body, .. }
                if calls(body) || (call.why == StaysCall::Recursive && statement.site == site) =>
            {
                in_loop = true;
                innermost = way(controls.of_loop(statement)).map(|way| Made {
                    times: way.taken,
                    exact: way.exact,
                });
            }
            StmtKind::If(condition, then, otherwise) => {
                let taken = calls(then);
                if taken || calls(otherwise) {
                    innermost = way(controls.of_condition(condition)).map(|way| Made {
                        times: if taken { way.taken } else { way.other },
                        exact: way.exact,
                    });
                }
            }
            _ => {}
        }
    };
    parts(&ctx.kernel.body, &mut look);
    for routine in &ctx.kernel.routines {
        parts(&routine.body, &mut look);
    }
    innermost.filter(|made| in_loop && made.times.is_finite())
}
