//! `warplens estimate`: the full prediction of the kernels in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use warplens_base::read_regular;
use warplens_db::settings::{Settings, unknown_gpu};
use warplens_db::wire::EstimateDocument;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_models::Factor;
use warplens_report::{estimate as page, graph};

use crate::assembly::{self, Assembly};
use crate::output::{self, Colour};
use crate::values::{self, Clock, Models, Preprocessing};
use crate::{compiler, config, input, profiles, suggest};

/// The full prediction of the kernels in a file
///
/// Where a value comes from, first that applies: the command line; a `// warplens:` directive above the
/// kernel; `reqd_work_group_size`; a run of the program (`--run`, `[[run]]` of warplens.toml, a Makefile, CMake,
/// README beside it); the launch in the source; warplens.toml; the default (block 256, or 16,16 where the kernel
/// uses y, or 8,8,4 where it uses z). A grid without a value follows the kernel's guard, and a time that depends
/// on a size without a value is a formula of it.
#[derive(Debug, Args)]
pub struct Estimate {
    /// Source file (.cu, .cuh, .cl, .hip; any other extension is read as CUDA), or compiled code (.ptx,
    /// .sass, .cubin): its resources, occupancy and instructions
    file: PathBuf,
    /// Only kernels of that name (repeatable)
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Target GPU, a profile id (repeatable; `all`) [default: warplens.toml's, else a100-sxm4-40gb]
    #[arg(long, value_name = "ID")]
    gpu: Vec<String>,
    /// Blocks of the launch
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = values::extents)]
    grid: Option<[u64; 3]>,
    /// Threads of a block
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = values::extents)]
    block: Option<[u64; 3]>,
    /// OpenCL's global size, in work-items
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = values::extents, conflicts_with = "grid")]
    global: Option<[u64; 3]>,
    /// OpenCL's local size, in work-items
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = values::extents, conflicts_with = "block")]
    local: Option<[u64; 3]>,
    /// Dynamic shared memory of a block
    #[arg(long, value_name = "BYTES")]
    dynamic_shared: Option<u64>,
    /// Registers of a thread, where you know them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    registers: Option<u32>,
    /// Run at most this many warps at a time on each SM (scaling curves)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    warps_per_sm: Option<u32>,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    preprocessing: Preprocessing,
    /// Bind a template parameter (repeatable)
    #[arg(short = 'T', value_name = "NAME=VALUE", value_parser = values::binding)]
    template: Vec<(String, String)>,
    /// Value of a scalar kernel parameter (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::argument)]
    arg: Vec<(String, Option<i64>)>,
    /// Which model answers
    #[arg(long, default_value = "auto", value_parser = values::models())]
    model: Models,
    /// Estimate again without: bank-conflicts, uncoalesced, divergence, latency, synchronisation,
    /// occupancy (repeatable)
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    without: Vec<Factor>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Contents of an array parameter, its elements in a file, little-endian: what depends on them (trip
    /// counts, conditions, addresses) is counted by running the kernel's integers (repeatable)
    #[arg(long, value_name = "NAME=FILE", value_parser = values::binding)]
    data: Vec<(String, String)>,
    /// Draw the work flow graph of the kernel (model wfg), which has to be one: before and after its reduction
    #[arg(long, value_name = "OUT.svg")]
    graph: Option<PathBuf>,
    /// Take registers, spills and instructions from this compiler (nvcc, ptxas, clang, hipcc); of a .cubin,
    /// the disassembler beside it
    #[arg(long, value_name = "PATH")]
    compiler: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// One JSON document, warplens.estimate/1
    Json,
}

fn factor(text: &str) -> Result<Factor, String> {
    Factor::ALL
        .into_iter()
        .find(|factor| factor.name() == text)
        .ok_or_else(|| {
            let names = Factor::ALL.map(Factor::name);
            suggest::unknown(
                "factor",
                text,
                names,
                &format!("one of {}", names.join(", ")),
            )
        })
}

impl Estimate {
    /// Runs it.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        let format = self.format;
        // The analysis recurses as deep as the source nests; give it room.
        let document = std::thread::Builder::new()
            .stack_size(super::STACK)
            .spawn(move || self.document())?
            .join()
            .map_err(|_| anyhow!("no result, because of the internal error above"))??;
        match format {
            Format::Json => output::emit_json(&document)?,
            Format::Human => output::emit(&page::page(&document, output::style(colour)))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn document(self) -> anyhow::Result<EstimateDocument> {
        let models = self.model.0.clone();
        let (profiles, left_out) = profiles::of(std::slice::from_ref(&self.file));
        let gpus = self.gpus(&profiles)?;
        let mut config = config::of(&self.file, &profiles);
        config.diagnostics.splice(0..0, left_out);
        self.preprocessing.apply(&mut config.settings);
        self.clock.apply(&mut config.settings);
        if let [model] = models.as_slice() {
            config.settings.model = Some(model.name().to_owned());
        }
        let mut overrides = Overrides {
            argument: LaunchValues {
                grid: self.grid,
                block: self.block.or(self.local),
                global: self.global,
                dynamic_shared_bytes: self.dynamic_shared,
                args: self
                    .arg
                    .iter()
                    .filter_map(|(name, value)| value.map(|value| (name.clone(), value)))
                    .collect(),
            },
            contents: self.contents()?,
            registers: self.registers,
            warps_per_sm: self.warps_per_sm,
            without: self.without.clone(),
            template_args: self.template.iter().cloned().collect::<BTreeMap<_, _>>(),
            ..Overrides::default()
        };
        if let Some(kind) = Assembly::of(&self.file) {
            if self.graph.is_some() || !self.data.is_empty() {
                bail!("--graph and --data need source code, and this is compiled code");
            }
            let assembled = assembly::read(&self.file, kind, self.compiler.as_deref())?;
            return Engine::new(profiles)
                .estimate_assembled(
                    &assembled,
                    &self.file,
                    &config.settings,
                    &overrides,
                    &gpus,
                    &models,
                    &self.kernel,
                )
                .map_err(|message| anyhow!(message));
        }
        let source =
            input::read(&self.file).map_err(|unreadable| anyhow!(unreadable.line(&self.file)))?;
        let project = input::project(std::slice::from_ref(&self.file));
        let engine = Engine::with_project(profiles, project);
        self.refuse_unknown_names(&engine, &source, &config.settings)?;
        if let Some(compiler) = &self.compiler {
            overrides.said =
                compiler::reports(compiler, &engine, &self.file, &config.settings, &gpus);
        }
        let mut document = engine
            .estimate(
                &source.document,
                &self.file,
                &config.settings,
                &overrides,
                &gpus,
                &models,
                &self.kernel,
            )
            .map_err(|message| anyhow!(message))?;
        document.diagnostics.splice(0..0, config.diagnostics);
        if let Some(out) = &self.graph {
            if gpus.len() > 1 {
                bail!("--graph draws for one GPU, and {} are given", gpus.len());
            }
            let settings = Settings {
                gpu: gpus.first().cloned().or(config.settings.gpu.clone()),
                ..config.settings.clone()
            };
            self.draw(&engine, &source, &settings, &overrides, out)?;
        }
        Ok(document)
    }

    /// Writes the picture of `--graph`.
    fn draw(
        &self,
        engine: &Engine,
        source: &input::Source,
        settings: &Settings,
        overrides: &Overrides,
        out: &Path,
    ) -> anyhow::Result<()> {
        let flow = engine
            .work_flow(
                &source.document,
                &self.file,
                settings,
                overrides,
                &self.kernel,
            )
            .map_err(|message| anyhow!(message))?;
        std::fs::write(out, graph::svg(&flow))
            .map_err(|error| anyhow!("{}: cannot write the graph: {error}", out.display()))
    }

    /// A kernel or a parameter that the file does not have is a mistyped one.
    fn refuse_unknown_names(
        &self,
        engine: &Engine,
        source: &input::Source,
        settings: &Settings,
    ) -> anyhow::Result<()> {
        if self.kernel.is_empty() && self.arg.is_empty() {
            return Ok(());
        }
        let (overrides, cancel) = (Overrides::default(), Cancel::default());
        let all = engine.analyze(&source.document, &self.file, settings, &overrides, &cancel);
        let names: Vec<&str> = all
            .iter()
            .flat_map(|all| &all.kernels)
            .map(|kernel| kernel.analysis.facts.name.as_str())
            .collect();
        if let Some(name) = self
            .kernel
            .iter()
            .find(|name| !names.contains(&name.as_str()))
        {
            let file = self.file.display();
            let look = if names.is_empty() {
                format!("{file} has no kernels")
            } else {
                format!("{file} has {}", names.join(", "))
            };
            bail!(suggest::unknown(
                "kernel",
                name,
                names.iter().copied(),
                &look
            ));
        }
        let wanted =
            |kernel: &str| self.kernel.is_empty() || self.kernel.iter().any(|of| of == kernel);
        let kernels = all.iter().flat_map(|all| &all.kernels);
        let mut scalars: Vec<&str> = kernels
            .filter(|kernel| wanted(&kernel.analysis.facts.name))
            .flat_map(|kernel| &kernel.analysis.scalars)
            .map(String::as_str)
            .collect();
        scalars.sort_unstable();
        scalars.dedup();
        let known = |name: &str| {
            // A member that the kernel does not read changes nothing.
            let of = name.split(['.', '[']).next().unwrap_or(name);
            scalars.contains(&name) || of != name && scalars.contains(&of)
        };
        if let Some((name, _)) = self.arg.iter().find(|(name, _)| !known(name)) {
            let look = if scalars.is_empty() {
                "there are no scalar parameters".to_owned()
            } else {
                format!("scalar parameters: {}", scalars.join(", "))
            };
            bail!(suggest::unknown(
                "parameter",
                name,
                scalars.iter().copied(),
                &look
            ));
        }
        Ok(())
    }

    /// The files of `--data`.
    fn contents(&self) -> anyhow::Result<BTreeMap<String, Arc<[u8]>>> {
        let mut contents = BTreeMap::new();
        for (name, file) in &self.data {
            let bytes = read_regular(Path::new(file), input::LARGEST)
                .map_err(|error| anyhow!("{file}: contents of `{name}`: {error}"))?;
            if contents.insert(name.clone(), bytes.into()).is_some() {
                bail!("the contents of `{name}` are given twice");
            }
        }
        Ok(contents)
    }

    fn gpus(&self, profiles: &Profiles) -> anyhow::Result<Vec<String>> {
        let mut gpus = Vec::new();
        for gpu in &self.gpu {
            if gpu == "all" {
                return Ok(profiles.ids().map(str::to_owned).collect());
            }
            if profiles.get(gpu).is_none() {
                bail!(unknown_gpu(gpu, profiles));
            }
            if !gpus.contains(gpu) {
                gpus.push(gpu.clone());
            }
        }
        Ok(gpus)
    }
}
