//! What CUDA C++, HIP and OpenCL C mean: the items of a text, what a file declares, and kernels lowered to the IR.
//!
//! In: preprocessed texts with their trees. Out: [`outline`] lists a text's items, a [`Unit`] holds what a file and its
//! headers declare, [`lower`] makes a kernel's IR. Lowering never fails: what is not understood becomes an opaque statement
//! or value with a reason, and the rest goes on. Host code is read with the same types and constants through [`Lowering`].

mod atomic;
mod complex;
mod copies;
mod cub;
mod declare;
mod definition;
mod glm;
mod lower;
mod mdspan;
mod mentioned;
pub mod misread;
mod names;
mod namespaces;
mod on_demand;
mod optional;
mod outline;
mod random;
pub mod semantics;
mod standard;
mod torch_random;
mod types;
mod unit;

pub use definition::{Definition, node_ending, text_hash};
pub use lower::{
    HostName, Lowering, Signature, Source, TemplateArguments, default_value, following, is_cut_off,
    lacks_body, lower,
};
pub use mentioned::Mentioned;
pub use names::{Named, Scope};
pub use namespaces::{Space, namespaces_around, nearest};

pub use outline::{Item, ItemKind, function_declarator, outline};
pub use semantics::Semantics;
pub use types::{Callable, Class, by_name, says_all_of};
pub use unit::{Constant, Unit};
