//! Values of a thread that found no register: how many bytes, and how sure that is.

use crate::{Context, Severity};

/// Fewer bytes are a value or two, once.
const SOME: u64 = 16;

/// Bytes spilled, where they are worth a word.
pub(crate) fn bytes(ctx: &Context<'_>) -> Option<u64> {
    let bytes = ctx.compiled.spill_bytes;
    (bytes >= SOME && ctx.compiled.complete).then_some(bytes)
}

/// How loud a word about spills is, and what it says of its source.
pub(crate) fn trust(ctx: &Context<'_>) -> (Severity, &'static str) {
    if ctx.registers_known {
        (Severity::Information, "")
    } else {
        (Severity::Hint, " (predicted)")
    }
}
