//! What results look like in an editor: labels, titles and Markdown. No protocol types here.

pub mod config;
pub mod hint;
pub mod hover;
pub mod launch;
pub mod lens;
pub mod line;
pub mod page;
pub mod plain;
#[cfg(test)]
pub mod testing;
