//! `warplens gpus`: the hardware profiles.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use warplens_db::settings::gpu_named;
use warplens_machine::Profiles;
use warplens_report::gpus::{self as page, Gpu, GpusDocument};
use warplens_report::style::printable;
use warplens_report::table::{Align, Table};

use crate::detected::DetectedGpu;
use crate::output::{self, Colour};
use crate::{detected, profiles};

/// The hardware profiles with key figures; with ID one in full, every figure with its source
#[derive(Debug, Args)]
pub struct Gpus {
    /// Profile id, name or architecture (`rtx-3090`, "RTX 3090", `h100`, `sm_90`)
    id: Option<String>,
    /// Those of this machine, as nvidia-smi, rocminfo and clinfo list them, with the profile of each
    #[arg(long, conflicts_with = "id")]
    detect: bool,
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
        if self.detect {
            return detect(&profiles, self.format);
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
                    gpus: page::in_families(gpus),
                })?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs the vendors' tools. Exit status 1 where no GPU with a profile was found.
fn detect(profiles: &Profiles, format: Format) -> anyhow::Result<ExitCode> {
    let detected = detected::here(profiles);
    for (tool, why) in &detected.silent {
        output::complain(&format!("{tool} does not list GPUs: {why}"));
    }
    let has_profile = |gpu: &DetectedGpu| gpu.profile.is_some() || gpu.nearest.is_some();
    let found = detected.gpus.iter().any(has_profile);
    match format {
        Format::Json => output::emit_json(&serde_json::json!({
            "schema": "warplens.detected/1",
            "gpus": detected.gpus,
        }))?,
        Format::Human if detected.gpus.is_empty() => {
            let why = if detected.has_tools {
                "no GPU is listed on this machine"
            } else {
                "no nvidia-smi, rocminfo or clinfo on the PATH"
            };
            output::complain(why);
        }
        Format::Human => {
            let mut table = Table::new(&[
                ("GPU", Align::Left),
                ("profile", Align::Left),
                ("listed by", Align::Left),
            ]);
            for gpu in &detected.gpus {
                let profile = match (&gpu.profile, &gpu.nearest) {
                    (Some(own), _) => own.clone(),
                    (None, Some(nearest)) => format!("none, nearest: {nearest}"),
                    (None, None) => "none".to_owned(),
                };
                table.row([printable(&gpu.name).into(), profile.into(), gpu.tool.into()]);
            }
            output::emit(&table.render(output::style(Colour::Auto), 0))?;
        }
    }
    Ok(ExitCode::from(u8::from(!found)))
}
