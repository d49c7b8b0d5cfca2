//! What a call may mean.

use crate::definition::Definition;
use warplens_ir::{Bindings, Expr};

/// A function that a call may mean.
pub(super) struct Candidate {
    pub(super) definition: Definition,
    /// What binds the template parameters of the class it belongs to.
    pub(super) bindings: Bindings,
    /// The object, for a member function.
    pub(super) this: Option<Expr>,
}
