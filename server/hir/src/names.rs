//! What names mean where something is lowered.

use std::collections::HashMap;

use warplens_ir::{Expr, Type, VarId};

/// What a name means inside a function.
#[derive(Debug, Clone)]
pub enum Named {
    /// A variable.
    Var(VarId),
    /// Another name for an expression: a reference, a constant.
    Alias(Box<Expr>),
    /// A type.
    Type(Type),
    /// The arguments that a parameter pack took.
    Pack(Vec<Named>),
}

/// The names of one block.
pub type Scope = HashMap<String, Named>;
