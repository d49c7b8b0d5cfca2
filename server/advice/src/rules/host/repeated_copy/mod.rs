//! host/repeated-copy: each iteration of a loop copies the same memory to the GPU again.
//!
//! The loop names the host's memory in that copy alone and the GPU's in the copy and the launch alone, and the kernel only reads it.
//! Other pointers to either are not followed.

use warplens_facts::facts::{Op, Space};
use warplens_host::{HostMemory, HostMemoryKind};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::host;
use crate::wording;
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "host/repeated-copy",
    title: "each iteration of a loop copies the same memory to the GPU, which only reads it",
    severity: "information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let copies = ctx.memory.iter().enumerate();
    let copies = copies
        .filter(|(_, memory)| memory.kind == HostMemoryKind::Repeated && is_only_read(ctx, memory));
    copies
        .map(|(at, memory)| finding(ctx, at, memory))
        .collect()
}

/// True where the kernel loads through the parameter and never stores through it.
fn is_only_read(ctx: &Context<'_>, memory: &HostMemory) -> bool {
    let Some(parameter) = ctx.kernel.vars.get(memory.argument) else {
        return false;
    };
    let global = ctx.facts.accesses.iter();
    let mut global = global.filter(|access| access.space == Space::Global);
    let mut loads = false;
    let only = global.all(|access| {
        let own = access.array == parameter.name;
        loads |= own && access.op == Op::Load;
        !own || access.op == Op::Load
    });
    only && loads && ctx.facts.not_understood.is_empty()
}

fn finding(ctx: &Context<'_>, at: usize, memory: &HostMemory) -> Finding {
    let bytes = memory
        .bytes
        .map_or("the same memory".to_owned(), host::mebibytes);
    let verb = if memory.bytes.is_some() {
        "cross"
    } else {
        "crosses"
    };
    let least = memory.bytes.zip(ctx.profile.host_link_gb_s);
    let least = least.map(|(bytes, link)| {
        format!(
            "{} at least each time",
            host::microseconds(bytes as f64 / link / 1e3)
        )
    });
    let message = wording::sentence([
        Some(format!(
            "copy `{}` once, before the loop ({bytes} {verb} in each iteration)",
            wording::short(&memory.name)
        )),
        Some(format!(
            "{bytes} {verb} to the GPU in each iteration: `{}` is copied again, `{}` only reads it and the loop does not name it elsewhere",
            memory.name, ctx.facts.name
        )),
        least,
        Some("copied before the loop it crosses once".to_owned()),
    ]);
    host::finding(RULE.id, Place::Host(at), message)
}
