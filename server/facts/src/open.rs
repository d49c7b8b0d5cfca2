//! Parameters that are left open, so that counts become functions of them.

use rustc_hash::FxHashMap;
use warplens_ir::VarId;
use warplens_symbolic::{Id, Name, Symbol};

/// A kernel whose parameters have no values.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// Parameters, and counters of loops whose length depends on one, each with its value under this
    /// launch's arguments: the value, a counter that ends where the loop then does.
    pub(crate) symbols: Vec<(Symbol, Id)>,
    /// Counters of loops whose length is not one number: their condition is a guard.
    pub(crate) guarded: Vec<Symbol>,
    /// The one symbol of each parameter: a variable is read anew wherever a loop was only looked at.
    pub(crate) parameters: FxHashMap<VarId, Id>,
    /// Values of the parameters by the number of their symbol.
    pub(crate) values: FxHashMap<Name, i64>,
    /// True once some arithmetic was taken as free of wrapping that may wrap for this launch's arguments.
    pub(crate) unwrapped: bool,
}
