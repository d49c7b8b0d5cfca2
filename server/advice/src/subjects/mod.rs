//! What several rules read of a kernel. Facts and IR in, a view of them out; no rule is named here.

pub(crate) mod access;
mod agreed;
pub(crate) mod arith;
pub(crate) mod atomics;
mod coordinates;
pub(crate) mod exchange;
pub(crate) mod flow;
pub(crate) mod host;
pub(crate) mod instructions;
pub(crate) mod iterations;
pub(crate) mod launch;
pub(crate) mod siblings;
pub(crate) mod spills;
pub(crate) mod subscripts;
