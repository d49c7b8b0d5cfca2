//! One subcommand a file.

pub mod calibrate;
pub mod check;
pub mod completions;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod estimate;
pub mod explain;
pub mod gpus;
pub mod lsp;
pub mod man;
pub mod program;
pub mod replay;
pub mod report;
pub mod sweep;

pub use warplens_db::STACK;
