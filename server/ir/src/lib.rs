//! Typed kernel IR: what a kernel's source says, lowered from the syntax tree, and how it is launched.
//!
//! Lowering never fails: what is not understood becomes an opaque statement or value with a reason, and the
//! rest goes on.

mod controls;
mod fragment;
mod functions;
mod kernel;
mod launch;
mod lower;
mod misread;
mod outline;
mod place;
mod places;
mod shape;
mod standard;
mod types;
mod unit;
mod walk;

pub use controls::{Control, Controls};
pub use fragment::{Fragment, Matrix};
pub use functions::{Bits, Function, MathClass, known as known_function};
pub use kernel::{
    AssignOp, Assumption, AssumptionKind, BUILD, BinaryOp, Builtin, Expr, ExprKind, Kernel, LOADED,
    LoopKind, MachineCall, Real, Routine, RoutineId, StaysCall, Stmt, StmtKind, Storage, UnaryOp,
    Var, VarId,
};
pub use launch::{
    Blocks, Build, HostMemory, HostMemoryKind, LAUNCH_WORDS, LaunchSite, LaunchWords, builds,
    launch_sites, launch_sites_through, may_build,
};
pub use lower::{TemplateArguments, lower};
pub use outline::{Item, ItemKind, outline};
pub use place::{CalleeLine, Launch, NotUnderstood, Site, Source, Span};
pub use places::Places;
pub use types::{AddressSpace, Bound, Callable, Callee, Class, Field, Struct, Type};
pub use unit::{Constant, Definition, Unit, text_hash};
/// The language that a kernel is written in.
pub use warplens_syntax::Language;

pub use walk::{Part, each_site, expressions, parts};
