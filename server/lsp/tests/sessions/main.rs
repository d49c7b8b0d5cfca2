//! Whole sessions over a pair of pipes, in the protocol's own JSON.

mod client;
mod compilers;
mod concurrency;
mod configuration;
mod diagnostics;
mod edited;
mod encoding;
mod faults;
mod features;
mod headers;
mod junk;
mod kernels;
mod launches;
mod lifecycle;
mod ordering;
mod progress;
mod protocol;
mod recording;
mod steady;
mod undefined;
