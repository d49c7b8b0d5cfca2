//! `warplens report`: everything about a file's kernels as one page that opens anywhere.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use warplens_db::{Cancel, Engine, Overrides};
use warplens_models::ModelId;
use warplens_report::{html, markdown};

use crate::input::StandardInput;
use crate::output::{self, Progress};
use crate::values::{Clock, Preprocessing};
use crate::{config, input, profiles};

/// Everything about a file's kernels as one page that needs nothing but itself
#[derive(Debug, Args)]
pub struct Report {
    /// Source file; "-" is standard input
    file: PathBuf,
    #[command(flatten)]
    standard_input: StandardInput,
    /// HTML, or Markdown; by default what the name of --output says
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Only kernels of that name (repeatable)
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Target GPU, a profile id (repeatable; `all`) [default: warplens.toml's, else a100-sxm4-40gb]
    #[arg(long, value_name = "ID")]
    gpu: Vec<String>,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    preprocessing: Preprocessing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One page, light or dark as the reader's system is
    Html,
    /// For a wiki or a pull request
    Markdown,
}

impl Report {
    /// Runs it.
    pub fn run(mut self) -> anyhow::Result<ExitCode> {
        let file = std::slice::from_mut(&mut self.file);
        self.standard_input.read(file)?;
        let (profiles, left_out) = profiles::here();
        for problem in left_out {
            output::complain(&problem);
        }
        let gpus = profiles::ids(&self.gpu, &profiles)?;
        let mut config = config::of(&self.file, &profiles);
        self.preprocessing.apply(&mut config.settings);
        self.clock.apply(&mut config.settings);
        let source = input::read(&self.file).map_err(|why| anyhow!(why.line(&self.file)))?;
        let engine = Engine::with_project(
            profiles,
            self.preprocessing.project(std::slice::from_ref(&self.file)),
        );
        let named = output::redirected().and_then(|out| out.extension());
        let format = self.format.unwrap_or(match named {
            Some(extension) if extension == "md" || extension == "markdown" => Format::Markdown,
            _ => Format::Html,
        });
        let progress = Progress::new("writing the report", 0);
        let text = match format {
            Format::Html => {
                let pictures = engine.pictures(
                    &source.document,
                    &self.file,
                    &config.settings,
                    &Overrides::default(),
                    &gpus,
                    &ModelId::ALL,
                    &self.kernel,
                    &Cancel::default(),
                );
                let here = std::env::current_dir().ok();
                html(&pictures.map_err(|why| anyhow!(why))?, here.as_deref())
            }
            Format::Markdown => {
                let document = engine.estimate(
                    &source.document,
                    &self.file,
                    &config.settings,
                    &Overrides::default(),
                    &gpus,
                    &ModelId::ALL,
                    &self.kernel,
                );
                let mut document = document.map_err(|why| anyhow!(why))?;
                engine.add_help(
                    &source.document,
                    &self.file,
                    &config.settings,
                    &Overrides::default(),
                    &mut document,
                );
                let pages: Vec<String> = document.results.iter().map(markdown::breakdown).collect();
                pages.join("\n")
            }
        };
        drop(progress);
        output::emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
