//! What people and tools read: terminal pages, Markdown, HTML, SARIF and other forms for services, made from the engine's results.
//!
//! Nothing here computes a figure; every number comes from the engine and is only laid out. Each function
//! is pure (data in, text out), so that the command line and the language server print the same thing.

pub mod baseline;
pub mod check;
pub mod compare;
pub mod diff;
mod escape;
pub mod estimate;
pub mod figure;
mod fingerprint;
pub mod github;
pub mod gitlab;
pub mod gpus;
pub mod graph;
mod html;
pub mod markdown;
mod models;
pub mod pages;
pub mod pair;
pub mod patch;
mod plots;
pub mod program;
pub mod repeats;
mod resources;
pub mod sarif;
mod sheet;
pub mod style;
pub mod sweep;
pub mod table;

pub use html::{graph_page, html, lanes_page, program_page};
pub use plots::lanes_text::lanes_text;
pub use style::{Paint, Style};
