//! Code actions: what they make of kernels, and where they must not be offered.

mod actions;
mod arith;
mod blocks;
mod calls;
mod fixed;
mod launch;
mod loops;
mod memory;
mod offered;
mod promised;
mod staging;
mod sync;
