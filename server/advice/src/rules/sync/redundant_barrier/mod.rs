//! sync/redundant-barrier: a barrier of the block that nothing crosses, or only within warps.

pub(crate) mod drop_barrier;

use warplens_facts::facts::{Certainty, Operator, Source};
use warplens_ir::{Builtin, ExprKind, expressions};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::exchange::{self, Crossing, Reach, crossings};
use crate::wording::{self, counted};
use crate::{Context, Cure, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "sync/redundant-barrier",
    title: "a barrier of the block across which no thread hands anything to another warp",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[drop_barrier::fixes],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let facts = ctx.facts;
    let barriers = facts
        .operations
        .iter()
        .any(|operation| operation.operator == Operator::Barrier);
    if !barriers || !facts.not_understood.is_empty() {
        return Vec::new();
    }
    let launch_known = !facts.launch.block_source.is_assumption();
    let mut crossings = crossings(ctx.kernel, facts.launch.block, facts.warp_size);
    if reads_block(ctx) {
        // It is written for blocks of other sizes too: what holds has to hold for those.
        let [x, y, z] = facts.launch.block;
        let larger = exchange::crossings(ctx.kernel, [2 * x, y, z], facts.warp_size);
        for (crossing, larger) in crossings.iter_mut().zip(larger) {
            crossing.reach = crossing.reach.max(larger.reach);
        }
    }
    crossings
        .into_iter()
        .filter(|crossing| match crossing.reach {
            Reach::Nothing => true,
            Reach::Threads | Reach::Warp => launch_known,
            Reach::Block => false,
        })
        .filter_map(|crossing| finding(ctx, crossing))
        .collect()
}

/// True where the kernel asks how large its block is, or only a launch says it, and nothing says that it cannot be larger.
fn reads_block(ctx: &Context<'_>) -> bool {
    let threads = ctx.facts.launch.threads_per_block();
    let bounded = ctx.kernel.max_threads.is_some_and(|most| most <= threads);
    if bounded || ctx.kernel.required_block.is_some() {
        return false;
    }
    // The size at a launch may be a variable of the host, of which one value was read.
    let mut found = matches!(
        ctx.facts.launch.block_source,
        Source::LaunchSite | Source::Run
    );
    expressions(&ctx.kernel.body, &mut |expression| {
        found |= matches!(
            expression.kind,
            ExprKind::Builtin(Builtin::BlockDim(_) | Builtin::GlobalIdx(_))
        );
    });
    found
}

fn finding(ctx: &Context<'_>, crossing: Crossing) -> Option<Finding> {
    let site = crossing.site;
    // The grid's barriers, and those of a called function, are not this rule's.
    let quoted = ctx.kernel.places.quote(site);
    let name = quoted.split('(').next().unwrap_or_default().trim();
    let of_block = matches!(name, "__syncthreads" | "barrier" | "work_group_barrier");
    if site.callee != 0 || !of_block {
        return None;
    }
    let launch = &ctx.facts.launch;
    let warps = (launch.blocks() * launch.warps_per_block(ctx.facts.warp_size)) as f64;
    let waits = ctx
        .facts
        .operations
        .iter()
        .filter(|one| one.operator == Operator::Barrier && one.line == site.line)
        .map(|one| one.warps / warps)
        .sum::<f64>();
    // A barrier that few warps come to costs nothing; OpenCL has none for a warp.
    if waits.is_nan() || waits < 0.5 || (name != "__syncthreads" && crossing.reach == Reach::Warp) {
        return None;
    }
    let gain = ctx.trial(&[Change::WithoutBarriers { line: site.line }])?;
    if gain < wording::WORTH_KNOWING && crossing.reach == Reach::Warp {
        return None;
    }
    let block = wording::extents(launch.block);
    let one_warp = launch.threads_per_block() <= u64::from(ctx.facts.warp_size);
    let cause = match crossing.reach {
        Reach::Nothing if !crossing.after => {
            "no memory is touched between it and the next barrier or the end".to_owned()
        }
        Reach::Nothing => {
            "no memory is touched between the barrier before, or the beginning, and it".to_owned()
        }
        Reach::Threads => format!(
            "in a block of {block} no thread touches behind it what another one wrote, or writes what another one \
             read, since the last barrier"
        ),
        Reach::Warp if one_warp => {
            format!("the block of {block} is one warp, `__syncwarp()` will do")
        }
        Reach::Warp | Reach::Block => format!(
            "in a block of {block} only lanes of one warp touch the same memory on both sides, `__syncwarp()` will do"
        ),
    };
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, Certainty::Exact, true),
        place: Place::Site(site),
        message: wording::sentence([
            Some(format!(
                "{} ({} per warp for nothing that crosses warps)",
                match crossing.reach {
                    Reach::Nothing | Reach::Threads => "remove this barrier",
                    Reach::Warp | Reach::Block => "let only the warp wait, not the block",
                },
                counted(waits, "wait", "waits")
            )),
            Some(format!(
                "{} per warp for nothing that crosses warps: {cause}",
                counted(waits, "wait", "waits")
            )),
            Some(wording::gain(gain)),
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: Some(match crossing.reach {
            Reach::Nothing => Cure::Nothing,
            Reach::Threads => Cure::NothingHere,
            Reach::Warp | Reach::Block => Cure::WithinWarp,
        }),
    })
}
