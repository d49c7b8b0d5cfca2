//! `cargo lab`: what is measured about warplens. How near its figures come to compilers, counters and times, how much of other
//! people's code it understands, what a keystroke costs. Nothing of it is shipped.

// A task talks on standard output; that is its purpose.
#![allow(clippy::print_stdout)]

mod accuracy;
mod amd;
mod budget;
mod compiled;
mod corpus;
mod count;
mod counters;
mod history;
#[cfg(unix)]
mod hosts;
mod judge;
mod keystrokes;
mod labels;
mod machine_code;
mod measure;
mod memory;
mod outputs;
mod programs;
mod recipes;
mod sessions;
mod sound;
mod speed;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo lab", bin_name = "cargo lab", max_term_width = 100)]
/// The laboratory of the warplens repository
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Corpus(corpus::Corpus),
    History(history::History),
    #[cfg(unix)]
    Hosts(hosts::Hosts),
    Judge(judge::Judge),
    Keystrokes(keystrokes::Keystrokes),
    Labels(labels::Labels),
    Measure(measure::Measure),
    Memory(memory::Memory),
    Outputs(outputs::Outputs),
    Programs(programs::Programs),
    Counters(counters::Counters),
    Recipes(recipes::Recipes),
    Compiled(compiled::Compiled),
    Amd(amd::Amd),
    Accuracy(accuracy::Accuracy),
    Sessions(sessions::Sessions),
    Sound(sound::Sound),
    Speed(speed::Speed),
    Budget(budget::Budget),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Corpus(corpus) => corpus.run(),
        Task::History(history) => history.run(),
        #[cfg(unix)]
        Task::Hosts(hosts) => hosts.run(),
        Task::Judge(judge) => judge.run(),
        Task::Keystrokes(keystrokes) => keystrokes.run(),
        Task::Labels(labels) => labels.run(),
        Task::Measure(measure) => measure.run(),
        Task::Memory(memory) => memory.run(),
        Task::Outputs(outputs) => outputs.run(),
        Task::Programs(programs) => programs.run(),
        Task::Counters(counters) => counters.run(),
        Task::Recipes(recipes) => recipes.run(),
        Task::Compiled(compiled) => compiled.run(),
        Task::Amd(amd) => amd.run(),
        Task::Accuracy(accuracy) => accuracy.run(),
        Task::Sessions(sessions) => sessions.run(),
        Task::Sound(sound) => sound.run(),
        Task::Speed(speed) => speed.run(),
        Task::Budget(budget) => budget.run(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
