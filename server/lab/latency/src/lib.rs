//! What a person typing waits for, measured: a client that replays recorded sessions in step with a language server.
//!
//! For benchmarks and tests only. The server is any program that speaks the protocol over its standard input and output.

pub mod client;
pub mod figures;
pub mod floor;
pub mod kernels;
pub mod session;
pub mod typist;
