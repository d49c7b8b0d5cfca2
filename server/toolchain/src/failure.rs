//! Why a compiler gave no answer.

use std::path::PathBuf;
use std::time::Duration;

/// Why a compiler gave no answer: one line each, to be said once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No file of that name.
    #[error("compiler not found: {}", .0.display())]
    NotFound(PathBuf),
    /// The system refuses it.
    #[error("compiler cannot be executed: {}: {reason}", .tool.display())]
    NotExecutable {
        /// The compiler.
        tool: PathBuf,
        /// In the system's words.
        reason: String,
    },
    /// It runs, and is something else.
    #[error("not a compiler that is known (nvcc, ptxas, clang or hipcc): {}", .0.display())]
    Unknown(PathBuf),
    /// Before the first version whose output is understood.
    #[error("{tool} is too old: {least} or later is needed")]
    TooOld {
        /// `nvcc 9.2`.
        tool: String,
        /// `10.0`.
        least: String,
    },
    /// A program that works beside the compiler is missing.
    #[error("{program} is not beside the compiler")]
    Incomplete {
        /// `nvdisasm`.
        program: String,
    },
    /// Compilers hand names of files to a shell.
    #[error("not given to a compiler, because of a character in its path: {}", .0.display())]
    Refused(PathBuf),
    /// The private folder could not be made or read.
    #[error("no temporary folder: {0}")]
    Folder(String),
    /// It says that the file is wrong, or that it cannot do what is asked.
    #[error("compilation failed: {0}")]
    Failed(String),
    /// It was killed.
    #[error("compiler took longer than {} s", .0.as_secs_f64())]
    TooLong(Duration),
    /// It was killed.
    #[error("compiler wrote more than {0} MiB")]
    TooMuch(u64),
    /// Nobody waits for the answer any more.
    #[error("cancelled")]
    Cancelled,
    /// It ended well and its output says nothing that is understood.
    #[error("output of {0} was not understood")]
    NotUnderstood(String),
}
