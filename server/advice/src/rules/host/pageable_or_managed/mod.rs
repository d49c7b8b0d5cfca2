//! host/pageable-or-managed: what a kernel works on crosses the bus slowly, or each time it is used.

use warplens_facts::facts::{Op, Space};
use warplens_host::{HostMemory, HostMemoryKind};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::host;
use crate::wording::{self, number};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "host/pageable-or-managed",
    title: "a kernel's array is copied from pageable memory in a loop, faulted in page by page, or read over the bus again",
    severity: "information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Less than this crosses the bus in the time that a copy takes to begin.
const LEAST: u64 = 64 * 1024;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for (at, memory) in ctx.memory.iter().enumerate() {
        let Some(what) = what(ctx, memory) else {
            continue;
        };
        found.push(Finding {
            rule: RULE.id,
            severity: Severity::Information,
            place: Place::Host(at),
            message: what,
            gain: 1.0,
            related: Vec::new(),
            access: None,
            shared_array: None,
            cure: None,
        });
    }
    found
}

fn what(ctx: &Context<'_>, memory: &HostMemory) -> Option<String> {
    let kernel = &ctx.facts.name;
    let name = &memory.name;
    let size = memory.bytes.filter(|bytes| *bytes >= LEAST);
    let message = match memory.kind {
        HostMemoryKind::Pageable => wording::sentence([
            Some(format!(
                "pin the host's side of `{}` ({} are copied twice around each launch)",
                wording::short(name),
                host::mebibytes(size?)
            )),
            Some(format!(
                "{} cross the bus around each launch of `{kernel}`, through a second copy: the host's side of `{name}` is pageable",
                host::mebibytes(size?)
            )),
            Some(
                "pinned memory (`cudaMallocHost`) is copied as it is, beside the kernels"
                    .to_owned(),
            ),
        ]),
        HostMemoryKind::Managed => wording::sentence([
            Some(format!(
                "prefetch `{}` before the launch ({} come by page faults)",
                wording::short(name),
                host::mebibytes(size?)
            )),
            Some(format!(
                "{} come to the GPU by page faults while `{kernel}` runs: nothing moves `{name}` ahead",
                host::mebibytes(size?)
            )),
            Some("`cudaMemPrefetchAsync` before the launch moves it at once".to_owned()),
        ]),
        // host/repeated-copy
        HostMemoryKind::Repeated => return None,
        HostMemoryKind::Mapped => {
            let times = reads(ctx, memory.argument)?;
            wording::sentence([
                Some(format!(
                    "copy `{}` to the GPU once ({} reads of the bus per thread)",
                    wording::short(name),
                    number(times)
                )),
                Some(format!(
                    "{} reads of the bus a thread: `{name}` is the host's memory, and `{kernel}` reads it again",
                    number(times)
                )),
                Some("copied to the GPU once, it crosses once".to_owned()),
            ])
        }
    };
    Some(message)
}

/// How often a thread loads through a parameter in a loop that comes back to the same elements; `None` where it does not.
fn reads(ctx: &Context<'_>, argument: usize) -> Option<f64> {
    let name = &ctx.kernel.vars.get(argument)?.name;
    let warps = ctx.facts.launch.warps_per_block(ctx.facts.warp_size) as f64
        * ctx.facts.launch.blocks() as f64;
    let again = ctx.facts.accesses.iter().find(|access| {
        access.array == *name
            && access.op == Op::Load
            && access.space == Space::Global
            && access
                .linear
                .as_ref()
                .is_some_and(|linear| linear.loops.contains(&0) || linear.block == [0; 3])
    })?;
    let times = again.requests? / warps.max(1.0);
    (times >= 2.0).then_some(times)
}
