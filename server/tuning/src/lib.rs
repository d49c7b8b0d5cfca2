//! Configuration spaces of tunable kernels.
//!
//! A [`Configuration`] is what one build and one launch of a kernel are given. They come from lines of JSON
//! ([`lines`]) or from a space in Kernel Tuner's T1 format ([`Space`]), which is walked without being held in memory;
//! what was predicted of them can be written as a cache file that Kernel Tuner opens ([`Cache`]).

mod cache;
mod configuration;
mod expression;
mod lines;
mod space;

pub use cache::Cache;
pub use configuration::{Configuration, Extents};
pub use expression::{Expression, Value};
pub use lines::lines;
pub use space::{Configurations, Space};
