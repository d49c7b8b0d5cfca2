//! smem/over-pad: a padded shared array whose accesses have no conflict to cure.

pub(crate) mod unpad_shared;

use std::sync::Arc;

use warplens_facts::facts::{Access, Certainty, Pattern, SharedArray, Space};
use warplens_ir::{Expr, Fold, Storage, Type, VarId, fold_block, fold_expression};
use warplens_models::Change;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::subscripts::{ArrayUses, Values};
use crate::wording;
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "smem/over-pad",
    title: "rows of a shared array are padded, and no access needs it",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[unpad_shared::fixes],
};

/// More elements than this are no padding.
const MOST_PADDING: u64 = 4;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let arrays = ctx.facts.shared_arrays.iter().enumerate();
    arrays
        .filter_map(|(index, array)| finding(ctx, index, array))
        .collect()
}

fn finding(ctx: &Context<'_>, index: usize, array: &SharedArray) -> Option<Finding> {
    let (padded, plain) = padding(array)?;
    // A warp is a part of one row of threads: what its lanes have in common, the row of the array among it, stays in
    // common.
    let launch = &ctx.facts.launch;
    let rows = launch.block[0].is_multiple_of(u64::from(ctx.facts.warp_size).max(1));
    if launch.block_source.is_assumption() || !rows {
        return None;
    }
    let mut accesses = ctx
        .facts
        .accesses
        .iter()
        .filter(|access| access.space == Space::Shared && access.shared_array == Some(index))
        .peekable();
    accesses.peek()?;
    if !accesses.all(|access| along_its_row(access, array) && access.site.callee == 0) {
        return None;
    }
    let within = within_plain_rows(ctx, array, plain)?;
    if !within {
        return None;
    }
    let rows: u64 = array.bytes / padded / u64::from(array.element_bytes.max(1));
    let saved = (padded - plain) * rows * u64::from(array.element_bytes);
    let gain = unpadded(ctx, array, plain)
        .map_or_else(|| ctx.trial(&[Change::LessSharedMemory(saved)]), Some)?;
    let name = &array.name;
    Some(Finding {
        rule: RULE.id,
        severity: wording::severity(gain, Certainty::Exact, true),
        place: Place::Site(array.site),
        message: wording::sentence([
            Some(format!(
                "drop the padding of `{}` ({saved} bytes per block, no bank conflict without it)",
                wording::short(name)
            )),
            Some(format!(
                "{saved} bytes of padding a block: rows of `{name}` are {padded} elements, and no access to it has a \
                 bank conflict with {plain}"
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

/// The predicted speedup of the kernel without the padding, compiled anew: rows that begin on a boundary may be loaded several elements
/// at once. `None` where it cannot be followed.
fn unpadded(ctx: &Context<'_>, array: &SharedArray, plain: u64) -> Option<f64> {
    if !ctx.may_recompile() {
        return None;
    }
    let mut kernel = ctx.kernel.clone();
    let at = kernel
        .vars
        .iter()
        .position(|var| var.storage == Storage::Shared && var.site == array.site)?;
    let padded = kernel.vars[at].ty.clone();
    // Where another array is alike, its rows cannot be told from these by their type.
    if kernel.vars.iter().filter(|var| var.ty == padded).count() > 1 {
        return None;
    }
    let mut rows = Vec::new();
    without_padding(&padded, plain, &mut rows)?;
    let mut write = Rows { rows: &rows };
    write.becomes(&mut kernel.vars[at].ty);
    fold_block(&mut write, &mut kernel.body);
    let again = ctx.recompile(&kernel)?;
    Some(crate::believed(again.gain))
}

/// An array's type and those of its rows, each with what it is with rows of this many elements.
fn without_padding(ty: &Type, plain: u64, rows: &mut Vec<(Type, Type)>) -> Option<Type> {
    let Type::Array(inner, extent) = ty else {
        return None;
    };
    let unpadded = match without_padding(inner, plain, rows) {
        Some(row) => Type::Array(Arc::new(row), *extent),
        None => Type::Array(Arc::clone(inner), Some(plain)),
    };
    rows.push((ty.clone(), unpadded.clone()));
    Some(unpadded)
}

/// Makes rows as long as they are without the padding.
struct Rows<'a> {
    rows: &'a [(Type, Type)],
}

impl Rows<'_> {
    fn becomes(&self, ty: &mut Type) {
        if let Some((_, unpadded)) = self.rows.iter().find(|(padded, _)| padded == ty) {
            *ty = unpadded.clone();
        }
    }
}

impl Fold for Rows<'_> {
    fn expression(&mut self, expression: &mut Expr) {
        self.becomes(&mut expression.ty);
        fold_expression(self, expression);
    }
}

/// The elements of a row, and how many there would be without the padding.
fn padding(array: &SharedArray) -> Option<(u64, u64)> {
    if array.dynamic || array.extents.len() < 2 || array.element_bytes != 4 {
        return None;
    }
    let padded = array.extents.last()?.0;
    let plain = padded / 16 * 16;
    let more = padded - plain;
    (plain > 0 && plain.is_power_of_two() && (1..=MOST_PADDING).contains(&more))
        .then_some((padded, plain))
}

/// True where neighbouring lanes touch neighbouring elements, or all one: no conflict, whatever the rows' length is.
fn along_its_row(access: &Access, array: &SharedArray) -> bool {
    let bytes = u64::from(array.element_bytes);
    let steps = match access.pattern {
        Pattern::Coalesced => access
            .stride
            .as_ref()
            .is_some_and(|stride| stride.bytes.unsigned_abs() == bytes),
        Pattern::Broadcast => true,
        _ => false,
    };
    access.certainty == Certainty::Exact
        && access.constraints.is_empty()
        && u64::from(access.bytes_per_lane) == bytes
        && steps
        && access
            .bank_conflict_degree
            .is_some_and(|degree| degree <= 1.0)
}

/// True where every last subscript stays within the row without its padding.
fn within_plain_rows(ctx: &Context<'_>, array: &SharedArray, plain: u64) -> Option<bool> {
    let kernel = ctx.kernel;
    let at = kernel.vars.iter().position(|var| {
        var.storage == Storage::Shared && var.name == array.name && var.site == array.site
    })?;
    let uses = ArrayUses::of(kernel);
    let uses = uses.whole(VarId(u32::try_from(at).ok()?), array.extents.len())?;
    let values = Values::new(kernel, ctx.facts.launch.block);
    let plain = i64::try_from(plain).ok()?;
    let within = |range: (i64, i64), extent: i64| range.0 >= 0 && range.1 < extent;
    Some(uses.iter().all(|subscript| {
        subscript
            .indices
            .last()
            .and_then(|index| values.of(index))
            .is_some_and(|range| within(range, plain))
    }))
}
