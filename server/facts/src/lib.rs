//! Facts about one kernel under one launch on one GPU.
//!
//! [`analyze`] executes the kernel symbolically: every integer is an expression over thread and block
//! coordinates, loop counters and parameters. What each warp of the launch does at each access and branch
//! is then summed over all of them.

// A byte that is no boundary would cost the kernel.
#![cfg_attr(not(test), deny(clippy::string_slice))]

mod access;
mod advances;
mod alignment;
mod bodies;
mod boxes;
mod branch;
mod calls;
mod cases;
mod chance;
mod contents;
mod context;
mod copies;
mod counts;
mod cycles;
mod dependence;
mod described;
mod draft;
mod elements;
mod env;
mod evaluate;
mod evenly;
mod execute;
mod executor;
pub mod facts;
mod flow;
mod fragments;
mod guesses;
mod index;
mod issued;
mod iterations;
mod lanes;
mod linear;
mod lockstep;
mod loops;
mod members;
mod motion;
mod open;
mod parts;
mod reals;
mod results;
mod rings;
mod rounds;
mod routine;
mod undefined;
mod value;
mod waits;
mod ways;
mod why;

use warplens_ir::Kernel;
use warplens_machine::Profile;

pub use calls::{CallExecutions, call_executions};
pub use contents::Contents;
pub use counts::{AccessCount, Expression, Expressions, count_expressions};
use facts::{Launch, SourceFacts};
pub use lanes::{LaneRequest, lane_requests};
pub use value::DEFAULT_ARGUMENT;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its launch.
    pub launch: Launch,
    /// The GPU.
    pub profile: &'a Profile,
    /// Values of integer parameters by name, and whether each was assumed.
    pub arguments: &'a [(String, i64, bool)],
    /// Parameters of floating point, and members of parameters, whose numbers are known: by name, as the bits of a double.
    pub reals: &'a [(String, u64)],
    /// Parameters that the launch covers with its blocks, where both were assumed.
    pub covers: &'a [Cover],
    /// Probabilities of conditions that depend on data, by the line of their sites.
    pub probabilities: &'a [(u32, f64)],
    /// What array parameters point to when the kernel begins, where that is known.
    pub contents: &'a [Contents],
    /// Bytes of the memory that pointer parameters, and members of parameters, point to, by name, where that is known.
    pub extents: &'a [(String, u64)],
    /// What a copy by a tensor map brings, by the parameter that is the map.
    pub boxes: &'a [(String, TensorBox)],
    /// Blocks of a cluster, where the launch says them.
    pub cluster: Option<[u64; 3]>,
}

impl Request<'_> {
    /// Blocks of a cluster, as the launch or the kernel says.
    pub(crate) fn cluster(&self) -> Option<[u64; 3]> {
        self.cluster.or(self.kernel.cluster)
    }
}

/// What one copy brings of a tensor, as the host encodes its map.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorBox {
    /// Bytes of an element.
    pub element: u64,
    /// The dimensions, the nearest first.
    pub dimensions: Vec<TensorDimension>,
}

/// One dimension of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorDimension {
    /// Elements of the box along it.
    pub side: u64,
    /// Elements of the tensor along it, where the host says them.
    pub size: Option<u64>,
    /// Bytes from one element to the next along it, where the host says them.
    pub stride: Option<u64>,
}

/// The launch's own expression for its grid, read the other way round: along an axis there are
/// `parameter / divisor` blocks wherever that divides.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cover {
    /// An integer parameter.
    pub parameter: String,
    /// 0 to 2.
    pub axis: u8,
    /// At least 1.
    pub divisor: i64,
}

/// Everything about the kernel. Never fails: what is not understood is listed and costs only itself.
pub fn analyze(request: &Request) -> SourceFacts {
    let mut executor = executor::Executor::new(request);
    executor.execute();
    executor.facts()
}
