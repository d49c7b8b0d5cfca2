//! `warplens config`: the shape of `warplens.toml` and of the JSON we print.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use warplens_calibrate::{Measurements, SCHEMA as MEASUREMENTS};
use warplens_db::settings::Settings;
use warplens_db::wire::SweepLine;
use warplens_db::wire::{CheckDocument, DiffDocument, EstimateDocument, ProgramDocument};
use warplens_report::baseline::{Baseline, SCHEMA as BASELINE};
use warplens_report::gpus::GpusDocument;

use crate::output;

/// The shape of warplens.toml
#[derive(Debug, Args)]
pub struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the JSON Schema of warplens.toml, or of what a command prints with --format json
    Schema {
        /// Of what
        #[arg(value_enum, default_value_t = Of::Config)]
        of: Of,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Of {
    /// warplens.toml
    Config,
    /// `warplens check --format json`
    Check,
    /// `warplens check --write-baseline`
    Baseline,
    /// `warplens diff --format json`
    Diff,
    /// `warplens estimate --format json`
    Estimate,
    /// `warplens gpus --format json`
    Gpus,
    /// `warplens program --format json`
    Program,
    /// A line of `warplens sweep`
    Sweep,
    /// The measurements file of `warplens calibrate`
    Measurements,
}

impl Config {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let Command::Schema { of } = self.command;
        let schema = match of {
            Of::Config => read::<Settings>("warplens.toml"),
            Of::Check => {
                written::<CheckDocument>("warplens check --format json", "warplens.check/1")
            }
            Of::Baseline => {
                let mut schema = read::<Baseline>("warplens check --write-baseline");
                schema["properties"]["schema"]["const"] = BASELINE.into();
                schema
            }
            Of::Diff => written::<DiffDocument>("warplens diff --format json", "warplens.diff/1"),
            Of::Estimate => written::<EstimateDocument>(
                "warplens estimate --format json",
                "warplens.estimate/1",
            ),
            Of::Program => {
                written::<ProgramDocument>("warplens program --format json", "warplens.program/1")
            }
            Of::Sweep => line::<SweepLine>("a line of warplens sweep"),
            Of::Gpus => written::<GpusDocument>("warplens gpus --format json", "warplens.gpus/1"),
            Of::Measurements => {
                let mut schema = read::<Measurements>("measurements of warplens calibrate");
                schema["properties"]["schema"]["const"] = MEASUREMENTS.into();
                schema
            }
        };
        output::emit_json(&schema)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What we accept.
fn read<T: JsonSchema>(title: &str) -> serde_json::Value {
    let mut schema = schemars::schema_for!(T).to_value();
    schema["title"] = title.into();
    schema
}

/// One of many lines that we print.
fn line<T: JsonSchema>(title: &str) -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    schema["title"] = title.into();
    schema
}

/// What we print; `version` is the constant in its `schema` member.
fn written<T: JsonSchema>(title: &str, version: &str) -> serde_json::Value {
    let mut schema = line::<T>(title);
    schema["properties"]["schema"]["const"] = version.into();
    schema
}
