//! Configuration spaces of tunable kernels.
//!
//! A [`Configuration`] holds the macros, arguments and launch of one build of a kernel. They come from lines of JSON
//! ([`lines`]) or from a space in Kernel Tuner's T1 format ([`Space`]), which is walked without being held in memory;
//! [`Cache`] writes predictions as a cache file that Kernel Tuner opens.

mod cache;
mod configuration;
mod expression;
mod lines;
mod space;

pub use cache::Cache;
pub use configuration::{Configuration, Extents};
pub use expression::{ExprValue, Expression};
pub use lines::lines;
pub use space::{Configurations, Space};
