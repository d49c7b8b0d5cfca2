//! Why nothing could be measured or written.

use std::path::PathBuf;
use std::time::Duration;

/// Why nothing could be measured or written: one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No compiler of that name.
    #[error(
        "no compiler: {wanted} is not on the PATH; name one with --compiler, or fit an earlier run with --from"
    )]
    NoCompiler {
        /// `nvcc`, or all that were looked for.
        wanted: String,
    },
    /// The compiler does not start.
    #[error("compiler cannot be executed: {}: {problem}", .tool.display())]
    NotExecutable {
        /// The compiler, or a program that it made.
        tool: PathBuf,
        /// The system's message.
        problem: String,
    },
    /// The compiler refuses a benchmark.
    #[error("{program} does not compile: {problem}")]
    Compilation {
        /// The benchmark program.
        program: String,
        /// The first line that says why.
        problem: String,
    },
    /// There is no device to measure.
    #[error("no GPU to measure through {interface}: {why} (--interface selects another interface)")]
    NoDevice {
        /// `cuda`, `hip` or `opencl`.
        interface: &'static str,
        /// The driver's message.
        why: String,
    },
    /// The driver does not let this user do it.
    #[error("the driver refuses: {0}; ask for the permission, or run as a user who has it")]
    Permission(String),
    /// The device query printed no valid description.
    #[error("cannot read the device's description: {0}")]
    Description(String),
    /// A benchmark ended badly.
    #[error("{program} failed: {problem}")]
    Program {
        /// The benchmark.
        program: String,
        /// Its message.
        problem: String,
    },
    /// A program was ended.
    #[error("{program} took longer than {} s", .bound.as_secs())]
    TooLong {
        /// The benchmark or the compiler.
        program: String,
        /// The time it was given.
        bound: Duration,
    },
    /// The user wants to stop.
    #[error("stopped")]
    Cancelled,
    /// A measurements file that cannot be used.
    #[error("{}: {problem}", .file.display())]
    Measurements {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {problem}", .file.display())]
    Unwritable {
        /// The file.
        file: PathBuf,
        /// The system's message.
        problem: String,
    },
}
