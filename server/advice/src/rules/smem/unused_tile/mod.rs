//! smem/unused-tile: shared memory in which each thread finds only what it put there itself.

use std::collections::BTreeSet;

use warplens_facts::facts::{Certainty, SharedArray, Space};
use warplens_ir::{Storage, VarId};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::subscripts::{ArrayUses, Values};
use crate::wording;
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "smem/unused-tile",
    title: "shared memory that is read only by the thread that wrote it",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    if ctx.facts.shared_arrays.is_empty() {
        return Vec::new();
    }
    let uses = ArrayUses::of(ctx.kernel);
    let values = Values::new(ctx.kernel, ctx.facts.launch.block);
    let arrays = ctx.facts.shared_arrays.iter().enumerate();
    arrays
        .filter_map(|(index, array)| finding(ctx, (&uses, &values), index, array))
        .collect()
}

fn finding(
    ctx: &Context<'_>,
    subscripts: (&ArrayUses, &Values<'_>),
    index: usize,
    array: &SharedArray,
) -> Option<Finding> {
    // Parts of one dynamic array may be other arrays.
    if array.dynamic || ctx.facts.launch.block_source.is_assumption() {
        return None;
    }
    let text = own_element(ctx, subscripts, array)?;
    let accesses: Vec<usize> = (0..ctx.facts.accesses.len())
        .filter(|at| {
            let access = &ctx.facts.accesses[*at];
            access.space == Space::Shared && access.shared_array == Some(index)
        })
        .collect();
    let gain = ctx.trial(&[
        Change::LessSharedMemory(array.bytes),
        Change::WithoutAccesses(accesses),
    ])?;
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, Certainty::Exact, true),
        place: Place::Site(array.site),
        message: wording::sentence([
            Some(format!(
                "keep `{}` in a register (each thread reads only what it wrote itself)",
                wording::short(&array.name)
            )),
            Some(format!(
                "{} bytes of shared memory per block without a use: each thread reads only what it wrote itself, \
                 `{}{text}`; a register does",
                array.bytes, array.name
            )),
            Some(wording::gain(gain)),
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: Some(index),
        cure: None,
    })
}

/// The subscripts by which all uses name an element of the thread's own; `None` where some use may name another's.
fn own_element(
    ctx: &Context<'_>,
    (uses, values): (&ArrayUses, &Values<'_>),
    array: &SharedArray,
) -> Option<String> {
    let kernel = ctx.kernel;
    let at = kernel.vars.iter().position(|var| {
        var.storage == Storage::Shared && var.name == array.name && var.site == array.site
    })?;
    if kernel.vars[at].volatile || kernel.vars[at].escapes {
        return None;
    }
    let uses = uses.whole(VarId(u32::try_from(at).ok()?), array.extents.len())?;
    let block = ctx.facts.launch.block;
    let mut own: Option<Vec<u8>> = None;
    for subscript in &uses {
        let axes: Vec<u8> = subscript
            .indices
            .iter()
            .map(|index| values.coordinate(index))
            .collect::<Option<_>>()?;
        if own.as_ref().is_some_and(|known| *known != axes) {
            return None;
        }
        own = Some(axes);
    }
    let own = own?;
    // Two threads of a block differ in a coordinate that is among the subscripts, and no row runs into the next.
    let named: BTreeSet<u8> = own.iter().copied().collect();
    let apart = (0..3).all(|axis| block[usize::from(axis)] == 1 || named.contains(&axis));
    let within = own
        .iter()
        .zip(&array.extents)
        .all(|(axis, (extent, _))| block[usize::from(*axis)] <= *extent);
    let writes = uses.iter().filter(|subscript| subscript.writes).count();
    let reads = uses.iter().any(|subscript| subscript.reads);
    if !(apart && within && writes == 1 && reads) {
        return None;
    }
    let names = ["[threadIdx.x]", "[threadIdx.y]", "[threadIdx.z]"];
    Some(own.iter().map(|axis| names[usize::from(*axis)]).collect())
}
