//! Loads of one thread that share their sectors: what one leaves of a sector the next one takes out of the cache.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use warplens_codegen::Class;
use warplens_facts::facts::{Access, Node, Op, Site, Space};
use warplens_machine::GlobalRule;

use crate::Context;
use crate::subjects::flow::iterations_of_all;

/// A sector of which less than this part is used loses what a cache cannot give back.
const USED: f64 = 0.75;
/// Bytes that a thread stores at once, at most.
const WIDEST: u64 = 16;
/// Threads whose elements are further apart keep more lines than those before them leave in the cache, in bytes.
const SPAN: u64 = 128;

/// Iterations of the innermost loop around each access, counted when they are first asked for.
pub(crate) struct Turns<'a> {
    flow: &'a [Node],
    of: OnceCell<FxHashMap<usize, f64>>,
}

impl<'a> Turns<'a> {
    pub(crate) fn new(ctx: &Context<'a>) -> Turns<'a> {
        Turns {
            flow: &ctx.input.flow.nodes,
            of: OnceCell::new(),
        }
    }

    fn around(&self, access: usize) -> f64 {
        let of = self.of.get_or_init(|| iterations_of_all(self.flow));
        of.get(&access).copied().unwrap_or(1.0)
    }
}

/// True where this load and others of the same thread take nearly all bytes between neighbouring lanes, and the lines of
/// all resident warps find room in L1: memory is read once, whatever each request alone looks like.
pub(crate) fn use_the_rest(ctx: &Context<'_>, index: usize, turns: &Turns<'_>) -> bool {
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
    cached
        && room
        && access.op == Op::Load
        && covered(ctx, index, span, turns) >= USED * span as f64
}

/// True where this store and others of the same thread fill the small element between neighbouring lanes, such as both parts of
/// a complex number.
pub(crate) fn stores_the_rest(ctx: &Context<'_>, index: usize, turns: &Turns<'_>) -> bool {
    let access = &ctx.facts.accesses[index];
    access.op == Op::Store
        && span(access)
            .filter(|span| *span <= WIDEST)
            .is_some_and(|span| covered(ctx, index, span, turns) >= span as f64)
}

/// What the library's functions load and store of the states that it keeps for threads, such as those of generators.
pub(crate) struct States<'a> {
    /// Calls that make several accesses, by place.
    calls: FxHashMap<(Site, &'a str), usize>,
}

impl<'a> States<'a> {
    /// Those of a kernel.
    pub(crate) fn of(ctx: &Context<'a>) -> States<'a> {
        let mut calls: FxHashMap<(Site, &'a str), usize> = FxHashMap::default();
        let all = ctx.facts.accesses.iter();
        for access in all.filter(|access| is_call(&access.text)) {
            *calls.entry((access.site, &access.text)).or_default() += 1;
        }
        States { calls }
    }

    /// True where this access is of such a call: the text of its body is the library's, so that its place is the call's.
    pub(crate) fn holds(&self, access: &Access) -> bool {
        let calls = self.calls.get(&(access.site, access.text.as_str()));
        calls.is_some_and(|accesses| *accesses > 1)
    }
}

/// `curand(&state[i])`, in place of an element.
fn is_call(text: &str) -> bool {
    text.ends_with(')') && text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// What the compiler makes one instruction of, which moves all bytes between neighbouring lanes: `p[i].x = a; p[i].y = b; …` stores a
/// vector.
pub(crate) struct Joined<'a> {
    /// The accesses at whose lines such instructions are: each access is held against these alone.
    whole: Vec<&'a Access>,
}

impl<'a> Joined<'a> {
    /// Those of a kernel.
    pub(crate) fn of(ctx: &Context<'a>) -> Joined<'a> {
        let stores = StoresOfOne::of(ctx);
        let all = ctx.facts.accesses.iter().zip(&ctx.input.accesses);
        let whole = all.filter(|(access, executed)| {
            let merged = match access.op {
                Op::Store => stores.at(access.site.line),
                _ => executed.merged,
            };
            let moved = f64::from(access.bytes_per_lane) * merged;
            span(access).is_some_and(|span| moved >= span as f64)
        });
        Joined {
            whole: whole.map(|(access, _)| access).collect(),
        }
    }

    /// True where this access is of such an instruction.
    pub(crate) fn hold(&self, access: &Access) -> bool {
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
        self.whole.iter().any(|other| {
            other.op == access.op
                && other.array == access.array
                && self::span(other) == Some(span)
                && beside(other)
        })
    }
}

/// Stores of the source that one instruction of a line does, by line.
struct StoresOfOne(BTreeMap<u32, (u64, u64)>);

impl StoresOfOne {
    fn of(ctx: &Context<'_>) -> StoresOfOne {
        let mut lines: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let code = ctx.input.compiled.code.iter();
        for code in code.filter(|code| code.class == Class::Stg) {
            let (all, instructions) = lines.entry(code.site.line).or_default();
            *all += u64::from(code.stores);
            *instructions += u64::from(code.count);
        }
        StoresOfOne(lines)
    }

    fn at(&self, line: u32) -> f64 {
        let (all, instructions) = self.0.get(&line).copied().unwrap_or_default();
        all as f64 / instructions.max(1) as f64
    }
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

/// Bytes between neighbouring lanes, or between neighbouring rows of lanes that take one word each, where some lie between their
/// elements.
fn span(access: &Access) -> Option<u64> {
    let by_lane = access.stride.as_ref().map_or(0, |stride| stride.bytes);
    let by_row = || {
        let thread = access.linear.as_ref()?.thread;
        (thread[0] == 0).then(|| thread.into_iter().find(|step| *step != 0))?
    };
    let apart = if by_lane == 0 { by_row()? } else { by_lane };
    let apart = apart.unsigned_abs();
    (access.space == Space::Global && apart > u64::from(access.bytes_per_lane)).then_some(apart)
}

/// Bytes of one lane's span that its thread loads at about the same time.
fn covered(ctx: &Context<'_>, index: usize, span: u64, turns: &Turns<'_>) -> f64 {
    let access = &ctx.facts.accesses[index];
    if let Some(field) = &access.field
        && u64::from(field.size) == span
    {
        return f64::from(field.touched.min(field.size));
    }
    let mut taken = vec![false; span as usize];
    for (at, other) in ctx.facts.accesses.iter().enumerate() {
        let alike = other.op == access.op
            && other.array == access.array
            && other.loop_depth == access.loop_depth
            && self::span(other) == Some(span)
            // What a branch stores as well, or does not, is for the same statement to store.
            && (other.requests == access.requests || access.op == Op::Store);
        let Some(linear) = other.linear.as_ref().filter(|_| alike) else {
            continue;
        };
        let bytes = u64::from(other.bytes_per_lane);
        // A loop that goes on by one element takes its neighbours.
        let step = linear.loops.last().map_or(0, |step| step.unsigned_abs());
        let turns = if step == bytes { turns.around(at) } else { 1.0 };
        let bytes = (bytes as f64 * turns.max(1.0)).min(span as f64) as u64;
        let from = linear.constant.rem_euclid(span as i64) as u64;
        for byte in from..from + bytes {
            taken[(byte % span) as usize] = true;
        }
    }
    taken.iter().filter(|taken| **taken).count() as f64
}
