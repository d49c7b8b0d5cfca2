//! What rules about the host program ask of the loop around a launch.

use warplens_host::{LoopCall, LoopCallKind};

use super::launch;
use crate::wording::number;
use crate::{AroundLaunch, Context, Finding, Place, Severity};

/// A program that makes the launch less often than this does not wait long for anything in its loop.
const FEW: u64 = 16;

/// The loop around a launch that is made often, as far as that is known, and is the first in it: what is said of a loop is said once.
pub(crate) fn busy_loop<'a>(ctx: &Context<'a>) -> Option<&'a AroundLaunch<'a>> {
    let around = ctx.around?;
    let launches = around.turns.calls.iter();
    let mut launches = launches.filter_map(|call| match call.kind {
        LoopCallKind::Launch(made) => Some(made),
        _ => None,
    });
    // With whatever arguments.
    let made = launches.next().flatten().or(around.launches);
    let often = made.is_none_or(|launches| launches >= FEW);
    (around.turns.is_first && often).then_some(around)
}

/// The loop launches nothing else, so that a time of its kernel says how long an iteration takes.
pub(crate) fn launches_once(around: &AroundLaunch<'_>) -> bool {
    let launches = around.turns.calls.iter();
    let launches = launches.filter(|call| matches!(call.kind, LoopCallKind::Launch(_)));
    launches.count() == 1
}

/// Microseconds that the kernel runs and that the host takes to launch it, where the time rests on nothing assumed.
pub(crate) fn times_us(ctx: &Context<'_>) -> Option<(f64, f64)> {
    let assumed = ctx.facts.assumptions.iter();
    let mut assumed = assumed.filter(|one| one.symbol.to_string() != "alignment");
    if !launch::grid_given(ctx) || assumed.next().is_some() {
        return None;
    }
    let cycles = (ctx.cycles)()?;
    Some((
        cycles / ctx.profile.sm_clock_mhz,
        ctx.profile.launch_overhead_us,
    ))
}

/// The first call of the loop that does one of these, and its number.
pub(crate) fn first_call<'a>(
    around: &AroundLaunch<'a>,
    kinds: &[LoopCallKind],
) -> Option<(usize, &'a LoopCall)> {
    let mut calls = around.turns.calls.iter().enumerate();
    calls.find(|(_, call)| kinds.contains(&call.kind))
}

/// A finding about the host program: it makes no kernel faster, so it has no gain.
pub(crate) fn finding(rule: &'static str, place: Place, message: String) -> Finding {
    Finding {
        rule,
        severity: Severity::Information,
        place,
        message,
        gain: 1.0,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    }
}

/// A time of some microseconds.
pub(crate) fn microseconds(time: f64) -> String {
    let places = usize::from(time < 100.0);
    format!("{time:.places$} µs")
}

/// Bytes in MiB.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", number(bytes as f64 / 1_048_576.0))
}
