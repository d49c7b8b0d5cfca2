//! `warplens man`: the manual pages, for those who package the program.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};

/// The manual pages, one a command, written into a folder
#[derive(Debug, Args)]
pub struct Man {
    /// Where to write them; made where it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    /// Runs it.
    pub fn run(self, commands: Command) -> anyhow::Result<ExitCode> {
        let folder = &self.folder;
        std::fs::create_dir_all(folder)
            // Pages about `help` would say nothing.
            .and_then(|()| clap_mangen::generate_to(commands.disable_help_subcommand(true), folder))
            .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
