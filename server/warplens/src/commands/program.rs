//! `warplens program`: what whole programs do with the GPU.

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use warplens_db::wire::{ProgramAccount, ProgramDocument};
use warplens_db::{Cancel, Engine};
use warplens_report::{program, program_page};

use crate::output::{self, Colour, Progress};
use crate::values::{Clock, Preprocessing};
use crate::{config, input, profiles};

/// A whole program's account: its kernels by launches × time, its copies, what to look at first
///
/// The host program is followed from `main` as it would run, with the arguments of `--run`, of `[[run]]` in warplens.toml, of a
/// Makefile, CMake or README beside it; it is never executed. A number of launches that a condition of the host program decides is
/// not a number but a formula, which names the condition. Copies take as long as the link to the GPU needs at least.
///
/// Exit status: 0 fine, 2 bad usage, nothing could be read, or no program launches a kernel.
#[derive(Debug, Args)]
pub struct Program {
    /// Folder of a program, or the file with its `main`
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// How to print it; by default what the name of --output says
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Target GPU, a profile id [default: warplens.toml's, else a100-sxm4-40gb]
    #[arg(long, value_name = "ID")]
    gpu: Option<String>,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    preprocessing: Preprocessing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// One JSON document, warplens.program/1
    Json,
    /// One page, light or dark as the reader's system is
    Html,
}

impl Program {
    /// Runs it.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        let format = self.format;
        let progress = Progress::new("following the program", 0);
        // The analysis recurses as deep as the source nests; give it room.
        let document = std::thread::Builder::new()
            .stack_size(super::STACK)
            .spawn(move || self.document())?
            .join()
            .map_err(|_| anyhow!("no result, because of the internal error above"))??;
        drop(progress);
        let named = output::redirected().and_then(|out| out.extension()?.to_str());
        let format = format.unwrap_or(match named {
            Some("html" | "htm") => Format::Html,
            Some("json") => Format::Json,
            _ => Format::Human,
        });
        let text = match format {
            Format::Json => {
                let mut text = warplens_report::style::json(&document)?;
                text.push('\n');
                text
            }
            Format::Human => program::page(&document, output::style(colour)),
            Format::Html => program_page(&document),
        };
        output::emit(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn document(mut self) -> anyhow::Result<ProgramDocument> {
        // Of a folder by way of another one what is around a program is found by its own name.
        let given = self.folder.clone();
        if given.components().any(|part| part == Component::ParentDir) {
            self.folder = warplens_base::normalise(&std::path::absolute(&given)?);
        }
        let (profiles, left_out) = profiles::of(std::slice::from_ref(&self.folder));
        for problem in left_out {
            output::complain(&problem.message);
        }
        let named = self.gpu.as_deref();
        let named = named.map(|gpu| profiles::id(gpu, &profiles)).transpose()?;
        let mut config = config::of(&self.folder, &profiles);
        if named.is_some() {
            config.settings.gpu = named;
        }
        self.preprocessing.apply(&mut config.settings);
        self.clock.apply(&mut config.settings);
        let engine = Engine::with_project(
            profiles,
            self.preprocessing
                .project(std::slice::from_ref(&self.folder)),
        );
        let mains = self.mains(&engine)?;
        let root = std::path::absolute(&self.folder)?;
        let root = if root.is_dir() {
            root
        } else {
            root.parent().map(Path::to_owned).unwrap_or_default()
        };
        let shown = if given.is_dir() {
            given.clone()
        } else {
            given.parent().map(Path::to_owned).unwrap_or_default()
        };
        let name = |path: &Path| match path.strip_prefix(&root) {
            Ok(inside) if shown == Path::new(".") => inside.display().to_string(),
            Ok(inside) => shown.join(inside).display().to_string(),
            Err(_) => path.display().to_string(),
        };
        let mut programs: Vec<ProgramAccount> = Vec::new();
        let mut without_launches = Vec::new();
        for main in mains {
            let account = engine.account(&main, &config.settings, &name, &Cancel::default());
            match account {
                Some(account) if account.kernels.is_empty() && account.transfers.is_empty() => {
                    without_launches.push(account.file);
                }
                Some(account) => programs.push(account),
                None => {}
            }
        }
        if programs.is_empty() {
            bail!(self.no_program(&without_launches));
        }
        Ok(ProgramDocument {
            schema: "warplens.program/1",
            programs,
            without_launches,
        })
    }

    /// The files with a `main`: the one named, or those of the folder.
    fn mains(&self, engine: &Engine) -> anyhow::Result<Vec<PathBuf>> {
        if self.folder.is_dir() {
            let mut hosts = input::hosts(&self.folder);
            hosts.retain(|path| engine.is_program(path));
            return Ok(hosts);
        }
        input::bytes(&self.folder).map_err(|why| anyhow!(why.line(&self.folder)))?;
        if engine.is_program(&self.folder) {
            return Ok(vec![self.folder.clone()]);
        }
        Ok(engine.programs_near(&self.folder))
    }

    fn no_program(&self, without: &[String]) -> String {
        let folder = self.folder.display();
        let files = input::files(std::slice::from_ref(&self.folder));
        let files = match files.len() {
            0 => "no file with kernels".to_owned(),
            1 => "1 file with kernels".to_owned(),
            many => format!("{many} files with kernels"),
        };
        match without {
            [] => format!(
                "{folder}: no file with a `main`, so no program to account for ({files}; `warplens estimate FILE` predicts a kernel by itself)"
            ),
            [one] => format!(
                "{folder}: `main` of {one} launches no kernel and copies nothing, as far as it was followed ({files})"
            ),
            many => format!(
                "{folder}: none of {} files with a `main` launches a kernel or copies, as far as they were followed ({files})",
                many.len()
            ),
        }
    }
}
