//! `cargo xtask`: everything one does with the repository besides editing it.
//!
//! What measures warplens itself is the laboratory's (`cargo lab`), which this hands its tasks over to.
//!
//! Needs only what `cargo` and the registries give; what a task installs for itself is in `.test-tools/`.

// A task talks on standard output; that is its purpose.
#![allow(clippy::print_stdout)]

mod additions;
mod fuzz;
mod generate;
mod install;
mod new_model;
mod new_rule;
mod package;
mod test;
mod workspace_tests;

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::{Parser, Subcommand};
use xtask::repository;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
#[command(
    after_help = "Any other task is the laboratory's: `cargo lab --help` lists them, `cargo xtask TASK` runs `cargo lab TASK`."
)]
/// Tasks of the warplens repository
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Test(test::Test),
    Fuzz(fuzz::Fuzz),
    Install(install::Install),
    NewModel(new_model::NewModel),
    NewRule(new_rule::NewRule),
    Generate(generate::Generate),
    Package(package::Package),
    /// A task of the laboratory
    #[command(external_subcommand)]
    Lab(Vec<OsString>),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test(test) => test.run(),
        Task::Fuzz(fuzz) => fuzz.run(),
        Task::Install(install) => install.run(),
        Task::NewModel(model) => model.run(),
        Task::NewRule(rule) => rule.run(),
        Task::Generate(generate) => generate.run(),
        Task::Package(package) => package.run(),
        Task::Lab(arguments) => lab(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

/// Hands a task over to the laboratory: its status is this task's.
fn lab(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "lab", "--manifest-path"])
        .arg(repository::root().join("Cargo.toml"))
        .arg("--")
        .args(arguments)
        .status()
        .context("cannot run cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(2)))
}
