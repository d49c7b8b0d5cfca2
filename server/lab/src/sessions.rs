//! `cargo lab sessions`: the recorded sessions, typed anew.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use warplens_latency::client::Client;
use warplens_latency::typist::{SESSIONS, Typist};

use xtask::repository;

/// Type the sessions of tests/sessions anew, at a person's pace, into a server that records them
#[derive(Debug, Args)]
pub struct Sessions {
    /// The server
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// A tenth of the usual pause between two keys, in milliseconds
    #[arg(long, default_value_t = 12)]
    pace: u64,
}

/// Where the recordings are.
pub fn folder() -> PathBuf {
    repository::root().join("tests/sessions")
}

impl Sessions {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let server = self
            .server
            .unwrap_or_else(|| repository::built("release", "warplens"));
        std::fs::create_dir_all(folder())?;
        for (name, file, script) in SESSIONS {
            let text = std::fs::read_to_string(repository::root().join(file))?;
            let recording = folder().join(format!("{name}.jsonl"));
            let mut command = Command::new(&server);
            command.args(["lsp", "--stdio", "--record"]).arg(&recording);
            let mut client = Client::start(&mut command)?;
            let pace = Duration::from_millis(self.pace);
            Typist::perform(&mut client, file, &text, script, pace)?;
            client.end()?;
            println!("wrote tests/sessions/{name}.jsonl");
        }
        Ok(ExitCode::SUCCESS)
    }
}
