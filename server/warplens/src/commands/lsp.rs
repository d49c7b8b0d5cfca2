//! `warplens lsp`: the language server.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// The language server over standard input and output
#[derive(Debug, Args)]
pub struct Lsp {
    /// Speak over standard input and output (the default, and the only way)
    #[arg(long)]
    stdio: bool,
    /// Write the log to a file instead of to standard error
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Record the client's messages in a file, to show a problem to others (it holds your source)
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// With --record: without the contents and names of your files; lines, lengths and places remain
    #[arg(long, requires = "record")]
    redact: bool,
    // Editors' client libraries add it; the server learns the same from `initialize`.
    #[arg(long = "clientProcessId", hide = true, value_name = "PID")]
    client_process_id: Option<u32>,
}

impl Lsp {
    /// Serves until the client ends the session.
    pub fn run(self) -> ExitCode {
        let options = warplens_lsp::Options {
            log: self.log,
            record: self.record,
            redact: self.redact,
            ..Default::default()
        };
        let code = warplens_lsp::main_stdio(&options);
        ExitCode::from(u8::try_from(code).unwrap_or(2))
    }
}
