//! What a call may mean.

use crate::definition::Definition;
use warplens_ir::{Bindings, Expr};

/// The name of a function where it is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Callee<'a> {
    /// Without qualifiers and template arguments.
    pub(super) name: &'a str,
    /// As it is written.
    pub(super) full: &'a str,
    /// The namespaces around the call.
    pub(super) space: &'a str,
}

impl<'a> Callee<'a> {
    /// A function by its name with all its namespaces.
    pub(super) fn of(full: &'a str) -> Callee<'a> {
        Callee {
            name: full.rsplit("::").next().unwrap_or(full),
            full,
            space: "",
        }
    }
}

/// A function that a call may mean.
pub(super) struct Candidate {
    pub(super) definition: Definition,
    /// What binds the template parameters of the class it belongs to.
    pub(super) bindings: Bindings,
    /// The object, for a member function.
    pub(super) this: Option<Expr>,
}
