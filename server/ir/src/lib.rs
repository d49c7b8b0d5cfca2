//! Typed kernel IR: what a kernel executes, with the functions of the toolkits that it calls by what they do.
//!
//! In: kernels that a front end (`hir`) builds. Out: statements and expressions with types, walked by `walk`, numbered by
//! [`Places`] and told apart by their fingerprints. Nothing here knows text, trees or GPUs.

// A byte that is no boundary would cost the kernel.
#![cfg_attr(not(test), deny(clippy::string_slice))]

mod controls;
mod fragment;
pub mod functions;
mod kernel;
mod place;
mod places;
mod reason;
mod shape;
mod types;
pub mod walk;

pub use controls::{Control, Controls};
pub use fragment::{Fragment, Matrix};
pub use functions::{Bits, Effect, Exchange, Function, MathClass, Update, known as known_function};
pub use kernel::{
    AssignOp, Assumption, AssumptionKind, BinaryOp, Builtin, Expr, ExprKind, Kernel, LoopKind,
    MachineCall, Opaque, Real, Routine, RoutineId, StaysCall, Stmt, StmtKind, Storage, UnaryOp,
    Unknown, Var, VarId,
};
pub use place::{CalleeLine, Launch, NotUnderstood, Site, Source, Span};
pub use places::{Places, in_one_line};
pub use reason::Reason;
pub use types::{
    AddressSpace, Bindings, Bound, Field, Known, Origin, Struct, Type, spell_type, wrapped,
};
/// The language that a kernel is written in.
pub use warplens_syntax::Language;
/// Work on a kernel that is given up in its midst.
pub use warplens_syntax::stop;

pub use walk::{
    Fold, Part, Runs, Visitor, any_in_iteration, any_statement, each_site, executed, expressions,
    fold_block, fold_expression, fold_statement, parts, walk_block, walk_expression,
    walk_statement,
};
