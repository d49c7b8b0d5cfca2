//! `warplens completions`: what a shell needs to complete our commands and options.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output;

/// Completions for a shell, to be put where it looks for them
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Runs it.
    pub fn run(self, mut commands: Command) -> anyhow::Result<ExitCode> {
        let name = commands.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut commands, name, &mut script);
        output::emit(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}
