//! `cargo xtask`: everything one does with the repository besides editing it.
//!
//! Needs only what `cargo` and the registries give; what a task installs for itself stands in `.test-tools/`.

// A task talks on standard output; that is its purpose.
#![allow(clippy::print_stdout)]

mod accuracy;
mod amd;
mod budget;
mod compiled;
mod corpus;
mod count;
mod counters;
mod edited;
mod fuzz;
mod generate;
mod install;
mod judge;
mod labels;
mod machine_code;
mod measure;
mod new_rule;
mod package;
mod process;
mod recipes;
mod repository;
mod sessions;
mod speed;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
/// Tasks of the warplens repository
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Test(test::Test),
    Corpus(corpus::Corpus),
    Fuzz(fuzz::Fuzz),
    Install(install::Install),
    Judge(judge::Judge),
    Labels(labels::Labels),
    NewRule(new_rule::NewRule),
    Generate(generate::Generate),
    Measure(measure::Measure),
    Package(package::Package),
    Counters(counters::Counters),
    Recipes(recipes::Recipes),
    Compiled(compiled::Compiled),
    Amd(amd::Amd),
    Accuracy(accuracy::Accuracy),
    Sessions(sessions::Sessions),
    Speed(speed::Speed),
    Budget(budget::Budget),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test(test) => test.run(),
        Task::Corpus(corpus) => corpus.run(),
        Task::Fuzz(fuzz) => fuzz.run(),
        Task::Install(install) => install.run(),
        Task::Judge(judge) => judge.run(),
        Task::Labels(labels) => labels.run(),
        Task::NewRule(rule) => rule.run(),
        Task::Generate(generate) => generate.run(),
        Task::Measure(measure) => measure.run(),
        Task::Package(package) => package.run(),
        Task::Counters(counters) => counters.run(),
        Task::Recipes(recipes) => recipes.run(),
        Task::Compiled(compiled) => compiled.run(),
        Task::Amd(amd) => amd.run(),
        Task::Accuracy(accuracy) => accuracy.run(),
        Task::Sessions(sessions) => sessions.run(),
        Task::Speed(speed) => speed.run(),
        Task::Budget(budget) => budget.run(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
