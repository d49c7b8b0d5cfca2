//! call/not-inlined: a call in a loop whose body the compiler cannot put in its place.

pub(crate) mod inline_call;

use warplens_facts::facts::Certainty;
use warplens_facts::{CallExecutions, call_executions};
use warplens_ir::{Language, MachineCall, StaysCall};
use warplens_models::{Change, ExecutedCall};

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

/// A loop with fewer iterations per warp is not hot.
const CALLS: f64 = 4.0;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let made = call_executions(ctx.kernel, ctx.facts).into_iter();
    made.filter_map(|made| finding(ctx, made)).collect()
}

fn finding(ctx: &Context<'_>, made: CallExecutions) -> Option<Finding> {
    let call = ctx.kernel.calls.get(made.call)?;
    let of_a_warp = made.of_a_warp;
    if of_a_warp < CALLS {
        return None;
    }
    let gain = ctx.trial(&[Change::WithoutCall { call: made.call }])?;
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
        number(ExecutedCall::instructions().total())
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
