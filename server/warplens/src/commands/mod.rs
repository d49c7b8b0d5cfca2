//! One subcommand a file.

pub mod calibrate;
pub mod check;
pub mod config;
pub mod diff;
pub mod estimate;
pub mod explain;
pub mod gpus;
pub mod lsp;
pub mod replay;
pub mod report;
pub mod sweep;

/// Stack of a thread that analyses source: real code nests deeply, and a stack is only reserved, not used.
pub const STACK: usize = 64 << 20;
