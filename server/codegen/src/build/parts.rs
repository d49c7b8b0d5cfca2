//! What a loop of the source consists of.

use warplens_ir::{Control, Expr, LoopKind, Stmt};

/// A loop's parts.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) kind: LoopKind,
    pub(super) control: Option<Control>,
    pub(super) condition: Option<&'a Expr>,
    pub(super) step: Option<&'a Expr>,
    pub(super) body: &'a [Stmt],
}
