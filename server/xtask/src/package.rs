//! `cargo xtask package`: what is given away, made from a checkout.

mod archive;
mod build;
mod crates;
mod debian;
mod editors;
mod parts;
mod program;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use xtask::repository;

/// Make the packages of a release, or check that they can be made
#[derive(Debug, Args)]
pub struct Package {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Crates(crates::Crates),
    Program(program::Program),
    Editors(editors::Editors),
    Reproduce(build::Reproduce),
}

impl Package {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            What::Crates(crates) => crates.run(),
            What::Program(program) => program.run(),
            What::Editors(editors) => editors.run(),
            What::Reproduce(reproduce) => reproduce.run(),
        }
    }
}

/// The version of everything.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where packages are put.
#[derive(Debug, Args)]
struct Out {
    /// Where to put what is made [default: target/packages]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Out {
    fn folder(&self) -> anyhow::Result<PathBuf> {
        let folder = self
            .out
            .clone()
            .unwrap_or_else(|| repository::target().join("packages"));
        std::fs::create_dir_all(&folder)?;
        Ok(std::path::absolute(folder)?)
    }
}
