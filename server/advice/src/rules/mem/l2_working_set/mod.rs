//! mem/l2-working-set: what is read again was pushed out of L2 in between.

use warplens_facts::facts::{Access, LinearAddress, Node, Op, Space};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::wording::{self, number};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "mem/l2-working-set",
    title: "a loop or later blocks read the same bytes again after more than L2 holds was read in between",
    severity: "by predicted gain: hint, information or warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Requests of one pass may move this many times its distinct bytes: beyond, it is not this reuse that counts.
const REPEATED: f64 = 1.5;
/// More bytes than this have no meaning.
const MOST: f64 = 1e15;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let Some(l2) = ctx.profile.l2_bytes.map(|bytes| bytes as f64) else {
        return Vec::new();
    };
    let mut found: Vec<Finding> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for (index, access) in ctx.facts.accesses.iter().enumerate() {
        if access.space != Space::Global
            || access.op != Op::Load
            || told.contains(&access.array.as_str())
        {
            continue;
        }
        let finding = again(ctx, access, index, l2);
        if let Some(finding) = finding {
            told.push(&access.array);
            found.push(finding);
        }
    }
    found
}

fn again(ctx: &Context<'_>, access: &Access, index: usize, l2: f64) -> Option<Finding> {
    let linear = access.linear.as_ref()?;
    let trips = trips(&ctx.input.flow.nodes, index)?;
    if trips.len() != linear.loops.len() {
        return None;
    }
    let reuse = of_a_loop(ctx, access, linear, &trips, l2)
        .or_else(|| of_later_blocks(ctx, access, linear, &trips, l2))?;
    let array = access.array.clone();
    // Without an index the model knows of no reuse. Without the block's coordinates all blocks read the same, which L2
    // holds. In between lies what the first read of each byte costs.
    let before = match reuse.by {
        By::Loop => ctx.slowdown(&[Change::NoReuse {
            array: array.clone(),
        }])?,
        By::Blocks => 1.0,
    };
    let resident = ctx.trial(&[Change::OneBlockRead { array }])?.recip();
    let gain = crate::believed(before / (resident + (before - resident) / reuse.times));
    if gain < wording::WORTH_KNOWING {
        return None;
    }
    let who = match reuse.by {
        By::Loop => format!("{} iterations of a loop", number(reuse.times)),
        By::Blocks => format!("{} waves of blocks", number(reuse.times)),
    };
    let reservation = wording::reservation(ctx.facts, access);
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, access.certainty, reservation.is_some()),
        place: Place::Site(access.site),
        message: wording::sentence([
            Some(format!(
                "work on one part of `{}` at a time ({} read again, L2 holds {})",
                wording::array_of(access),
                mebibytes(reuse.bytes),
                mebibytes(l2)
            )),
            Some(format!(
                "{} read again by {who}, L2 holds {}: `{}` comes from DRAM each time",
                mebibytes(reuse.bytes),
                mebibytes(l2),
                access.array
            )),
            Some(
                "a block of it at a time would fit, and from sm_80 on a window of addresses can be kept"
                    .to_owned(),
            ),
            Some(wording::gain(gain)),
            reservation,
        ]),
        gain,
        related: Vec::new(),
        access: Some(index),
        shared_array: None,
        cure: None,
    })
}

/// Bytes that are read several times, and more of them than L2 holds.
struct Reuse {
    bytes: f64,
    times: f64,
    by: By,
}

enum By {
    Loop,
    Blocks,
}

/// An outer loop that moves the address by nothing, around what touches more than L2 holds.
fn of_a_loop(
    ctx: &Context<'_>,
    access: &Access,
    linear: &LinearAddress,
    trips: &[f64],
    l2: f64,
) -> Option<Reuse> {
    let still = linear
        .loops
        .iter()
        .zip(trips)
        .position(|(&moves, &times)| moves == 0 && times >= 2.0)?;
    let wave = wave(ctx)?;
    let inner = &linear.loops[still + 1..];
    let bytes = distinct(ctx, access, linear, wave, inner, &trips[still + 1..]);
    let outer: f64 = trips[..=still].iter().product();
    let grid: f64 = ctx.facts.launch.grid.iter().map(|&n| n as f64).product();
    let waves = (grid / wave.iter().product::<f64>()).max(1.0);
    let moved = access.requests? * access.bytes_moved_per_request? / outer.max(1.0) / waves;
    (bytes > l2 && bytes < MOST && moved <= bytes * REPEATED).then_some(Reuse {
        bytes,
        times: trips[still],
        by: By::Loop,
    })
}

/// Blocks of later waves that read what those of the first one did.
fn of_later_blocks(
    ctx: &Context<'_>,
    access: &Access,
    linear: &LinearAddress,
    trips: &[f64],
    l2: f64,
) -> Option<Reuse> {
    let grid = ctx.facts.launch.grid.map(|n| n as f64);
    let wave = wave(ctx)?;
    // Blocks run in the order of x, y, z: the slowest coordinate that does not move the address.
    let still = (1..3)
        .rev()
        .find(|&axis| grid[axis] > 1.0 && linear.block[axis] == 0)?;
    let waves = grid[still] / wave[still];
    if waves < 2.0 {
        return None;
    }
    let mut others = grid;
    others[still] = 1.0;
    let bytes = distinct(ctx, access, linear, others, &linear.loops, trips);
    (bytes > l2 && bytes < MOST).then_some(Reuse {
        bytes,
        times: waves,
        by: By::Blocks,
    })
}

/// The blocks that run together, x first.
fn wave(ctx: &Context<'_>) -> Option<[f64; 3]> {
    let resident = f64::from(ctx.occupancy.active_blocks_per_sm) * f64::from(ctx.profile.sms);
    if resident < 1.0 {
        return None;
    }
    let grid = ctx.facts.launch.grid.map(|n| n as f64);
    let x = grid[0].min(resident);
    let y = grid[1].min((resident / grid[0]).max(1.0));
    let z = grid[2].min((resident / (grid[0] * grid[1])).max(1.0));
    Some([x, y, z])
}

/// Distinct bytes that this many blocks touch with some of the loops: what moves on by less than is covered makes the
/// stretch longer, what steps over it makes another one.
fn distinct(
    ctx: &Context<'_>,
    access: &Access,
    linear: &LinearAddress,
    blocks: [f64; 3],
    loops: &[i64],
    trips: &[f64],
) -> f64 {
    let threads = ctx.facts.launch.block.map(|n| n as f64);
    let mut moves: Vec<(f64, f64)> = linear
        .thread
        .iter()
        .zip(&threads)
        .chain(linear.block.iter().zip(&blocks))
        .chain(loops.iter().zip(trips))
        .map(|(&by, &times)| (by.unsigned_abs() as f64, times))
        .filter(|&(by, times)| by > 0.0 && times > 1.0)
        .collect();
    moves.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut stretch = f64::from(access.bytes_per_lane);
    let mut stretches = 1.0;
    for (by, times) in moves {
        if by <= stretch {
            stretch += by * (times - 1.0);
        } else {
            stretches *= times;
        }
    }
    stretch * stretches
}

/// The iterations of the loops around an access, outermost first; `None` where one is not known.
fn trips(flow: &[Node], wanted: usize) -> Option<Vec<f64>> {
    flow.iter().find_map(|node| match node {
        Node::Access { access, .. } if *access == wanted => Some(Vec::new()),
        Node::Loop {
            trips: times,
            known: true,
            body,
            ..
        } => {
            let mut inner = trips(body, wanted)?;
            inner.insert(0, *times);
            Some(inner)
        }
        Node::Branch {
            then, otherwise, ..
        } => trips(then, wanted).or_else(|| trips(otherwise, wanted)),
        _ => None,
    })
}

fn mebibytes(bytes: f64) -> String {
    format!("{} MiB", number(bytes / 1_048_576.0))
}
