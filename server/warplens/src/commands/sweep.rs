//! `warplens sweep`: many configurations of one kernel, predicted without a GPU.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use rayon::prelude::*;
use warplens_base::open_regular;
use warplens_db::wire::SweepLine;
use warplens_db::{Engine, TunedKernel};
use warplens_models::ModelId;
use warplens_report::sweep::{Best, Pareto};
use warplens_tuning::{Cache, Configuration, Space, lines};

use crate::output::{self, Colour};
use crate::values::{self, Clock, Preprocessing};
use crate::{config, input, profiles};

/// Configurations predicted in parallel before their lines are written.
const CHUNK: usize = 256;

/// Many configurations of one kernel, ranked without a GPU
///
/// Writes a line of JSON for each configuration, in their order (`warplens config schema sweep`). A configuration that
/// cannot be launched or read gets a line with its error. Exit status 2 where none could be predicted.
#[derive(Debug, Args)]
pub struct Sweep {
    /// Source file that holds the kernel; with --space by default the one that the space names
    file: Option<PathBuf>,
    /// The kernel; with --space by default the one that the space names
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Target GPU, a profile id [default: warplens.toml's, else a100-sxm4-40gb]
    #[arg(long, value_name = "ID")]
    gpu: Option<String>,
    /// Configurations, one a line ("-": standard input): `{"id":…, "defines":{…}, "template":{…}, "args":{…},
    /// "grid":[x,y,z], "block":[x,y,z], "dynamic_shared_bytes":0}`
    #[arg(
        long,
        value_name = "CONFIGS.jsonl",
        required_unless_present = "space",
        conflicts_with = "space"
    )]
    configs: Option<PathBuf>,
    /// A space in Kernel Tuner's T1 format: every configuration that fulfils its conditions
    #[arg(long, value_name = "T1.json")]
    space: Option<PathBuf>,
    /// Which model predicts
    #[arg(long, default_value = "auto", value_parser = values::model())]
    model: ModelId,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    preprocessing: Preprocessing,
    /// The fastest K as a table instead of lines
    #[arg(long, value_name = "K", value_parser = values::count, conflicts_with = "pareto")]
    top: Option<usize>,
    /// As a table instead of lines: those that no other beats in time, registers and shared memory together
    #[arg(long)]
    pareto: bool,
    /// Also write the predictions as a cache file that Kernel Tuner opens (with --space)
    #[arg(long, value_name = "OUT.json", requires = "space")]
    cache: Option<PathBuf>,
}

impl Sweep {
    /// Runs it.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        let (profiles, left_out) = profiles::here();
        for problem in left_out {
            output::complain(&problem);
        }
        let named = self.gpu.as_deref();
        let named = named.map(|gpu| profiles::id(gpu, &profiles)).transpose()?;
        let space = self.space.as_deref().map(read_space).transpose()?;
        let file = self.file(space.as_ref())?;
        let kernel = match (&self.kernel, &space) {
            (Some(kernel), _) => kernel.clone(),
            (None, Some(space)) if !space.kernel.is_empty() => space.kernel.clone(),
            _ => bail!("which kernel? Name it with --kernel NAME"),
        };
        let mut config = config::of(&file, &profiles);
        self.preprocessing.apply(&mut config.settings);
        self.clock.apply(&mut config.settings);
        if named.is_some() {
            config.settings.gpu = named;
        }
        let source = input::read(&file).map_err(|unreadable| anyhow!(unreadable.line(&file)))?;
        let gpu = config.settings.gpu.clone();
        let device = gpu
            .as_deref()
            .and_then(|id| profiles.get(id))
            .map(|profile| profile.name.clone());
        let engine = Engine::with_project(
            profiles,
            self.preprocessing.project(std::slice::from_ref(&file)),
        );
        let mut tuned = TunedKernel::new(
            Arc::new(engine),
            source.document,
            &file,
            config.settings,
            &kernel,
            self.model,
        );
        let mut cache = space
            .as_ref()
            .filter(|_| self.cache.is_some())
            .map(|space| Cache::new(space, device.as_deref().unwrap_or("")));
        let configurations: Box<dyn Iterator<Item = Result<Configuration, String>>> =
            match (&space, &self.configs) {
                (Some(space), _) => Box::new(space.configurations()),
                (None, Some(path)) => Box::new(lines(open(path)?)),
                (None, None) => bail!("--configs or --space is required"),
            };
        let mut out = Out {
            best: self.top.map(Best::new),
            front: self.pareto.then(Pareto::default),
            lines: BufWriter::new(output::Out),
        };
        let (mut seen, mut valid) = (0_u64, 0_u64);
        let pool = rayon::ThreadPoolBuilder::new()
            .stack_size(super::STACK)
            .build()?;
        let mut configurations = configurations.peekable();
        while configurations.peek().is_some() {
            let chunk: Vec<_> = configurations.by_ref().take(CHUNK).collect();
            tuned.prepare(chunk.iter().flatten());
            let found: Vec<SweepLine> = pool.install(|| {
                let one = |configuration: &Result<Configuration, String>| match configuration {
                    Ok(configuration) => tuned.line(configuration),
                    Err(why) => SweepLine::invalid(serde_json::Value::Null, why.clone()),
                };
                chunk.par_iter().map(one).collect()
            });
            for line in found {
                seen += 1;
                valid += u64::from(line.valid);
                if let Some(cache) = &mut cache {
                    cache.add(&line.id, line.time_ms);
                }
                if !out.line(&line)? {
                    // The reader closed the pipe.
                    return Ok(ExitCode::SUCCESS);
                }
            }
        }
        out.finish(colour)?;
        if let (Some(cache), Some(path)) = (cache, &self.cache) {
            std::fs::write(path, cache.text()).with_context(|| format!("{}", path.display()))?;
        }
        if seen == 0 {
            bail!("there are no configurations");
        }
        if valid == 0 {
            output::complain(&format!(
                "none of the {seen} configurations can be launched"
            ));
            return Ok(ExitCode::from(2));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The source file: as given, or beside the space that names it.
    fn file(&self, space: Option<&Space>) -> anyhow::Result<PathBuf> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let named = space.and_then(|space| space.file.as_deref());
        let beside = self.space.as_deref().and_then(Path::parent);
        match (named, beside) {
            (Some(named), Some(folder)) => Ok(folder.join(named)),
            _ => bail!("which file holds the kernel? Name it before the options"),
        }
    }
}

fn read_space(path: &Path) -> anyhow::Result<Space> {
    let text = input::text(path).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    Space::read(&text).map_err(|why| anyhow!("{}: {why}", path.display()))
}

fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = open_regular(path).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Where predictions go.
struct Out<W: Write> {
    best: Option<Best>,
    front: Option<Pareto>,
    lines: BufWriter<W>,
}

impl<W: Write> Out<W> {
    /// Writes one; false where the reader has closed the pipe.
    fn line(&mut self, line: &SweepLine) -> anyhow::Result<bool> {
        if let Some(best) = &mut self.best {
            best.add(line);
        } else if let Some(front) = &mut self.front {
            front.add(line);
        } else {
            let mut text = serde_json::to_string(line)?;
            text.push('\n');
            match self.lines.write_all(text.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
                other => other?,
            }
        }
        Ok(true)
    }

    fn finish(mut self, colour: Colour) -> anyhow::Result<()> {
        match self.lines.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            other => other?,
        }
        drop(self.lines);
        let table = match (&self.best, &self.front) {
            (Some(best), _) => best.table(output::style(colour)),
            (None, Some(front)) => front.table(output::style(colour)),
            (None, None) => return Ok(()),
        };
        output::emit(&table)
    }
}
