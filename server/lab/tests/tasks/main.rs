//! Tasks of the laboratory, run as its users run them.

mod accuracy;
mod history;
mod outputs;
