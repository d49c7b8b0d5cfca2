//! Why a compiler gave no report.

use std::path::PathBuf;
use std::time::Duration;

/// Why a compiler gave no report: one line each, shown once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No file of that name.
    #[error("compiler not found: {}", .0.display())]
    NotFound(PathBuf),
    /// The system refuses to execute it.
    #[error("compiler cannot be executed: {}: {reason}", .tool.display())]
    NotExecutable {
        /// The compiler.
        tool: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// It runs, and is not a compiler that the server knows.
    #[error("unknown compiler (expected nvcc, ptxas, clang or hipcc): {}", .0.display())]
    Unknown(PathBuf),
    /// Older than the first version whose output the server reads.
    #[error("{tool} is too old: version {oldest_supported} or later is required")]
    TooOld {
        /// `nvcc 9.2`.
        tool: String,
        /// `10.0`.
        oldest_supported: String,
    },
    /// A tool of the compiler's toolkit is missing.
    #[error("{program} is missing from the compiler's folder")]
    Incomplete {
        /// `nvdisasm`.
        program: String,
    },
    /// Compilers pass file names to a shell.
    #[error("not compiled: its path contains a character that a shell would interpret: {}", .0.display())]
    Refused(PathBuf),
    /// The private folder could not be made or read.
    #[error("cannot create a temporary folder: {0}")]
    Folder(String),
    /// The compiler rejects the file or a flag.
    #[error("compilation failed: {0}")]
    Failed(String),
    /// It exceeded the time limit and was killed.
    #[error("compiler took longer than {} s", .0.as_secs_f64())]
    TooLong(Duration),
    /// It exceeded the output limit and was killed.
    #[error("compiler wrote more than {0} MiB")]
    TooMuch(u64),
    /// The caller cancelled the request.
    #[error("cancelled")]
    Cancelled,
    /// It succeeded, and its output has an unknown format.
    #[error("cannot read the output of {0}")]
    NotUnderstood(String),
}
