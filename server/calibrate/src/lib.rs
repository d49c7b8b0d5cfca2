//! Measures this machine's GPU and fits a hardware profile to what came out.
//!
//! Three parts that know little of one another: [`measure()`] compiles the micro-benchmarks of [`Interface`] with the user's own
//! compiler, runs them and keeps their raw figures in a file ([`Measurements`]); [`fit()`] is pure and makes figures of them; and
//! [`profile`] writes these as TOML, completed from the built-in GPU that is nearest. A file that was measured elsewhere
//! is fitted without any GPU.
//!
//! Nothing of a workspace is executed: programs are this crate's own, written into a private folder, and the compiler is
//! the one that the user names or that is on the `PATH`.

mod catalogue;
pub mod compare;
mod failure;
pub mod fit;
mod measure;
mod measurements;
mod process;
pub mod profile;
pub mod statistics;

pub use catalogue::{Bench, Interface, write_sources};
pub use failure::Failure;
pub use fit::{ProfileFit, fit};
pub use measure::{Plan, Progress, find_compiler, measure};
pub use measurements::{Device, Measurements, SCHEMA, Sample, check_writable, replace};
