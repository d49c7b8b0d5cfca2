//! Loads of one thread that share their sectors: what one leaves of a sector the next one takes out of the cache.

use warplens_codegen::Class;
use warplens_facts::facts::{Access, Op, Space};
use warplens_machine::GlobalRule;

use crate::Context;
use crate::subjects::flow::iterations;

/// A sector of which less than this part is used loses what a cache cannot give back.
const USED: f64 = 0.75;
/// Threads whose elements are further apart keep more lines than those before them leave in the cache, in bytes.
const SPAN: u64 = 128;

/// True where this load and others of the same thread take nearly all bytes between neighbouring lanes, and the lines of
/// all resident warps find room in L1: memory is read once, whatever each request alone looks like.
pub(crate) fn use_the_rest(ctx: &Context<'_>, index: usize) -> bool {
    let access = &ctx.facts.accesses[index];
    let cached = !matches!(
        ctx.profile.global_rule,
        GlobalRule::HalfWarpStrict | GlobalRule::HalfWarpSegments
    );
    let Some(span) = span(access).filter(|span| *span <= SPAN) else {
        return false;
    };
    let lanes = u64::from(ctx.facts.warp_size) * u64::from(ctx.occupancy.active_warps_per_sm);
    let room = ctx.profile.l1_bytes.is_some_and(|l1| lanes * span <= l1);
    cached && room && access.op == Op::Load && covered(ctx, index, span) >= USED * span as f64
}

/// True where the compiler makes one instruction of this access and others, which moves all bytes between neighbouring lanes:
/// `p[i].x = a; p[i].y = b; …` stores a vector.
pub(crate) fn is_joined(ctx: &Context<'_>, index: usize) -> bool {
    let access = &ctx.facts.accesses[index];
    let Some(span) = span(access) else {
        return false;
    };
    // The instruction is at the line of one of them.
    let beside = |other: &Access| match (&other.linear, &access.linear) {
        (Some(a), Some(b)) => {
            (a.thread, a.block) == (b.thread, b.block)
                && a.loops == b.loops
                && a.constant.abs_diff(b.constant) < span
        }
        _ => other.site == access.site,
    };
    let mut all = ctx.facts.accesses.iter().zip(&ctx.input.accesses);
    all.any(|(other, executed)| {
        let moves_all = |merged: f64| f64::from(other.bytes_per_lane) * merged >= span as f64;
        // Of stores it is asked last, for few: it goes through the instructions.
        let is_store = other.op == Op::Store;
        other.op == access.op
            && other.array == access.array
            && self::span(other) == Some(span)
            && (is_store || moves_all(executed.merged))
            && beside(other)
            && (!is_store || moves_all(stores_of_one(ctx, other.site.line)))
    })
}

/// Stores of the source that one instruction of a line does.
fn stores_of_one(ctx: &Context<'_>, line: u32) -> f64 {
    let code = ctx.input.compiled.code.iter();
    let stores = code.filter(|code| code.class == Class::Stg && code.site.line == line);
    let (all, instructions) = stores.fold((0, 0), |(all, instructions), code| {
        (all + code.stores, instructions + code.count)
    });
    f64::from(all) / f64::from(instructions.max(1))
}

/// True where the access is a piece of a structure or a vector that its statement moves as a whole, and the pieces' sectors are
/// no more than the whole has.
pub(crate) fn is_piece(ctx: &Context<'_>, index: usize) -> bool {
    let access = &ctx.facts.accesses[index];
    let pieces = ctx.facts.accesses.iter().filter(|other| {
        other.site == access.site && other.text == access.text && other.op == access.op
    });
    let (mut count, mut bytes) = (0, 0.0);
    for piece in pieces {
        count += 1;
        bytes += f64::from(piece.bytes_per_lane);
    }
    let lanes = access.active_lanes_per_request;
    let whole =
        lanes.map(|lanes| (lanes * bytes / f64::from(access.transaction_bytes.max(1))).ceil());
    count > 1
        && access
            .transactions_per_request
            .zip(whole)
            .is_some_and(|(moved, whole)| moved <= whole + 1e-6)
}

/// Bytes between neighbouring lanes, where some lie between their elements.
fn span(access: &Access) -> Option<u64> {
    let apart = access.stride.as_ref()?.bytes.unsigned_abs();
    (access.space == Space::Global && apart > u64::from(access.bytes_per_lane)).then_some(apart)
}

/// Bytes of one lane's span that its thread loads at about the same time.
fn covered(ctx: &Context<'_>, index: usize, span: u64) -> f64 {
    let access = &ctx.facts.accesses[index];
    if let Some(field) = &access.field
        && u64::from(field.size) == span
    {
        return f64::from(field.touched.min(field.size));
    }
    let mut taken = vec![false; span as usize];
    for (at, other) in ctx.facts.accesses.iter().enumerate() {
        let alike = other.op == Op::Load
            && other.array == access.array
            && other.loop_depth == access.loop_depth
            && self::span(other) == Some(span)
            && other.requests == access.requests;
        let Some(linear) = other.linear.as_ref().filter(|_| alike) else {
            continue;
        };
        let bytes = u64::from(other.bytes_per_lane);
        // A loop that goes on by one element takes its neighbours.
        let step = linear.loops.last().map_or(0, |step| step.unsigned_abs());
        let turns = if step == bytes {
            iterations(&ctx.input.flow.nodes, at, 1.0).unwrap_or(1.0)
        } else {
            1.0
        };
        let bytes = (bytes as f64 * turns.max(1.0)).min(span as f64) as u64;
        let from = linear.constant.rem_euclid(span as i64) as u64;
        for byte in from..from + bytes {
            taken[(byte % span) as usize] = true;
        }
    }
    taken.iter().filter(|taken| **taken).count() as f64
}
