//! `warplens gpus`: the hardware profiles.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use warplens_db::settings::gpu_named;
use warplens_report::gpus::{self as page, Gpu, GpusDocument};

use crate::output::{self, Colour};
use crate::profiles;

/// The hardware profiles with key figures; with ID one in full, every figure with its source
#[derive(Debug, Args)]
pub struct Gpus {
    /// Profile id, name or architecture (`rtx-3090`, "RTX 3090", `h100`, `sm_90`)
    id: Option<String>,
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// One JSON document, warplens.gpus/1
    Json,
}

impl Gpus {
    /// Runs it.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        let (profiles, left_out) = profiles::here();
        for problem in left_out {
            output::complain(&format!("ignored a profile: {problem}"));
        }
        let gpus: Vec<Gpu> = match &self.id {
            Some(name) => {
                let profile = gpu_named(name, &profiles).map_err(anyhow::Error::msg)?;
                vec![page::gpu(&profile)]
            }
            None => profiles.iter().map(|profile| page::gpu(&profile)).collect(),
        };
        let style = output::style(colour);
        match (self.format, gpus.as_slice()) {
            (Format::Human, [one]) if self.id.is_some() => {
                output::emit(&page::full(one, style))?;
            }
            (Format::Human, gpus) => output::emit(&page::list(gpus, style))?,
            (Format::Json, _) => {
                output::emit_json(&GpusDocument {
                    schema: "warplens.gpus/1",
                    gpus,
                })?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
