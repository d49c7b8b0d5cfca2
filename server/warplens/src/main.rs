//! The `warplens` command: parses arguments, calls the engine, prints text. It computes nothing itself.
//!
//! Exit status: 0 fine, 1 findings at or above the failing level, 2 bad usage or unreadable input, with
//! one line on standard error.

mod assembly;
mod checked;
mod commands;
mod compiler;
mod config;
mod detected;
mod edited;
mod input;
mod launching;
mod output;
mod position;
mod profiles;
mod revision;
mod selection;
mod suggest;
mod values;
mod version;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use output::Colour;

// A sixth less time than with glibc's allocator; musl's makes threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What your CUDA or OpenCL kernel will cost: memory transactions, bank conflicts, divergence,
/// occupancy and time, predicted from the source.
#[derive(Debug, Parser)]
#[command(
    name = "warplens",
    version = version::SHORT,
    long_version = version::long(),
    max_term_width = 100
)]
struct Cli {
    /// When to colour the output (`NO_COLOR` is honoured)
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,
    /// Write what would go to standard output to this file
    #[arg(long, short, global = true, visible_alias = "out", value_name = "FILE")]
    output: Option<std::path::PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(Box<commands::check::Check>),
    Diff(commands::diff::Diff),
    Estimate(Box<commands::estimate::Estimate>),
    Sweep(Box<commands::sweep::Sweep>),
    Program(commands::program::Program),
    Report(commands::report::Report),
    Gpus(commands::gpus::Gpus),
    Calibrate(Box<commands::calibrate::Calibrate>),
    Explain(commands::explain::Explain),
    Doctor(commands::doctor::Doctor),
    Lsp(commands::lsp::Lsp),
    Replay(commands::replay::Replay),
    Config(commands::config::Config),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
}

fn main() -> ExitCode {
    output::one_line_panics();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let mut file = cli.output;
    // Its output is the profile, which it writes itself.
    if !matches!(cli.command, Command::Calibrate(_))
        && let Some(file) = file.take()
    {
        output::redirect(file);
    }
    let result = match cli.command {
        Command::Check(check) => check.run(cli.color),
        Command::Diff(diff) => diff.run(cli.color),
        Command::Estimate(estimate) => estimate.run(cli.color),
        Command::Sweep(sweep) => sweep.run(cli.color),
        Command::Program(program) => program.run(cli.color),
        Command::Report(report) => report.run(),
        Command::Gpus(gpus) => gpus.run(cli.color),
        Command::Calibrate(calibrate) => calibrate.run(file),
        Command::Explain(explain) => explain.run(cli.color),
        Command::Doctor(doctor) => doctor.run(cli.color),
        Command::Lsp(lsp) => Ok(lsp.run()),
        Command::Replay(replay) => replay.run(cli.color),
        Command::Config(config) => config.run(),
        Command::Completions(completions) => completions.run(Cli::command()),
        Command::Man(man) => man.run(Cli::command()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Help and version as they are; anything else as one line.
fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Through clap, which colours help for a terminal; a closed pipe is not an error.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            output::complain("no command given (`warplens --help` lists the commands)");
            ExitCode::from(2)
        }
        _ => {
            let text = error.to_string();
            let paragraph = text.split("\n\n").next().unwrap_or_default();
            let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = line.strip_prefix("error: ").unwrap_or(&line);
            let tip = text
                .lines()
                .find_map(|line| line.trim().strip_prefix("tip: "))
                .map_or_else(String::new, |tip| format!("; {tip}"));
            output::complain(&format!("{line}{tip} (see `--help`)"));
            ExitCode::from(2)
        }
    }
}
