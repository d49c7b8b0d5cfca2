//! `warplens estimate`: the full prediction of the kernels in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use warplens_base::read_regular;
use warplens_db::settings::Settings;
use warplens_db::wire::{EstimateDocument, KernelResult};
use warplens_db::{Cancel, DEFAULT_GPU, Engine, LOST_KERNEL, Overrides};
use warplens_machine::Profiles;
use warplens_models::Factor;
use warplens_report::{estimate as page, graph};

use crate::assembly::{self, Assembly};
use crate::input::StandardInput;
use crate::launching::{Launching, Names};
use crate::output::{self, Colour, Progress};
use crate::values::{self, Clock, Models, Preprocessing};
use crate::{compiler, config, input, profiles, suggest};

/// The full prediction of the kernels in files
///
/// Where a value comes from, first that applies: the command line; a `// warplens:` directive above the
/// kernel; `reqd_work_group_size`; a run of the program (`--run`, `[[run]]` of warplens.toml, a Makefile, CMake,
/// README beside it); the launch in the source; warplens.toml; the default (block 256, or 16,16 where the kernel
/// uses y, or 8,8,4 where it uses z). A grid without a value follows the kernel's guard, and a time that depends
/// on a size without a value is a formula of it.
#[derive(Debug, Args)]
pub struct Estimate {
    /// Source files (.cu, .cuh, .cl, .hip; any other extension is read as CUDA; "-": standard input), or compiled
    /// code (.ptx, .sass, .cubin): its resources, occupancy and instructions
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    standard_input: StandardInput,
    #[command(flatten)]
    launching: Launching,
    /// Target GPU, a profile id (repeatable; `all`) [default: warplens.toml's, else a100-sxm4-40gb]
    #[arg(long, value_name = "ID")]
    gpu: Vec<String>,
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
    /// Print only the N kernels that take longest, the longest first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
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
        let mut diagnostics = document.diagnostics.iter();
        let lost = diagnostics.any(|finding| finding.rule == LOST_KERNEL);
        Ok(ExitCode::from(if lost { 2 } else { 0 }))
    }

    fn document(mut self) -> anyhow::Result<EstimateDocument> {
        self.standard_input.read(&mut self.files)?;
        if self.graph.is_some() && self.files.len() > 1 {
            bail!(
                "--graph draws one kernel, and {} files are given",
                self.files.len()
            );
        }
        let progress = Progress::new("estimating", self.files.len());
        let (profiles, left_out) = profiles::of(&self.files);
        let gpus = profiles::ids(&self.gpu, &profiles)?;
        let overrides = Overrides {
            argument: self.launching.values(),
            contents: self.contents()?,
            registers: self.registers,
            warps_per_sm: self.warps_per_sm,
            without: self.without.clone(),
            template_args: self.template.iter().cloned().collect::<BTreeMap<_, _>>(),
            ..Overrides::default()
        };
        let engine =
            Engine::with_project(profiles.clone(), self.preprocessing.project(&self.files));
        let mut whole = EstimateDocument {
            schema: "warplens.estimate/1",
            results: Vec::new(),
            diagnostics: left_out,
            missing_includes: Vec::new(),
        };
        let mut sources = Vec::new();
        let mut names = Names::default();
        for file in &self.files {
            let mut config = config::of(file, &profiles);
            whole
                .diagnostics
                .extend(std::mem::take(&mut config.diagnostics));
            self.preprocessing.apply(&mut config.settings);
            self.clock.apply(&mut config.settings);
            if let [model] = self.model.0.as_slice() {
                config.settings.model = Some(model.name().to_owned());
            }
            let settings = config.settings;
            if let Some(kind) = Assembly::of(file) {
                let assembled = self.assembled(file, kind, &profiles, &settings, &overrides, &gpus);
                whole.results.extend(assembled?.results);
                continue;
            }
            self.refuse_block(&gpus, &settings, &profiles)?;
            let source = input::read(file).map_err(|why| anyhow!(why.line(file)))?;
            if self.launching.names_something() || !self.template.is_empty() {
                let plain = Overrides::default();
                let document = &source.document;
                let known = engine.analyze(document, file, &settings, &plain, &Cancel::default());
                let known = known.map(|analysis| Names::of(&analysis, &self.launching));
                names.add(known.unwrap_or_default());
            }
            sources.push((file, source, settings));
        }
        if !sources.is_empty() {
            let place = match self.files.as_slice() {
                [file] => format!("{} has", file.display()),
                _ => "the files have".to_owned(),
            };
            let refused = names.refuse(&self.launching, &self.template, &place);
            refused.map_err(|line| anyhow!(line))?;
        }
        for (file, source, settings) in &sources {
            let one = self.of_source(&engine, file, source, settings, &overrides, &gpus)?;
            whole.results.extend(one.results);
            whole.diagnostics.extend(one.diagnostics);
            whole.missing_includes.extend(one.missing_includes);
            progress.step();
        }
        whole.missing_includes.sort_unstable();
        whole.missing_includes.dedup();
        if let Some(most) = self.top {
            keep_longest(&mut whole, most as usize);
        }
        Ok(whole)
    }

    /// Compiled code.
    fn assembled(
        &self,
        file: &Path,
        kind: Assembly,
        profiles: &Profiles,
        settings: &Settings,
        overrides: &Overrides,
        gpus: &[String],
    ) -> anyhow::Result<EstimateDocument> {
        if self.graph.is_some() || !self.data.is_empty() {
            bail!("--graph and --data need source code, and this is compiled code");
        }
        let assembled = assembly::read(file, kind, self.compiler.as_deref())?;
        let (models, kernels) = (&self.model.0, &self.launching.kernel);
        Engine::new(profiles.clone())
            .estimate_assembled(&assembled, file, settings, overrides, gpus, models, kernels)
            .map_err(|message| anyhow!(message))
    }

    /// One file of source code; of several, those without a kernel that is asked for give nothing.
    fn of_source(
        &self,
        engine: &Engine,
        file: &Path,
        source: &input::Source,
        settings: &Settings,
        overrides: &Overrides,
        gpus: &[String],
    ) -> anyhow::Result<EstimateDocument> {
        let mut overrides = overrides.clone();
        if let Some(compiler) = &self.compiler {
            overrides.said = compiler::reports(compiler, engine, file, settings, gpus);
        }
        let (models, kernels) = (&self.model.0, &self.launching.kernel);
        let mut of_file = kernels.clone();
        if self.files.len() > 1 && !kernels.is_empty() {
            let plain = Overrides::default();
            let known =
                engine.analyze(&source.document, file, settings, &plain, &Cancel::default());
            let known: Vec<String> = known
                .iter()
                .flat_map(|analysis| &analysis.kernels)
                .map(|kernel| kernel.analysis.facts.name.clone())
                .collect();
            of_file.retain(|name| known.contains(name));
            if of_file.is_empty() {
                return Ok(EstimateDocument {
                    schema: "warplens.estimate/1",
                    results: Vec::new(),
                    diagnostics: Vec::new(),
                    missing_includes: Vec::new(),
                });
            }
        }
        let mut document = engine
            .estimate(
                &source.document,
                file,
                settings,
                &overrides,
                gpus,
                models,
                &of_file,
            )
            .map_err(|message| anyhow!(message))?;
        engine.add_help(&source.document, file, settings, &overrides, &mut document);
        if let Some(out) = &self.graph {
            if gpus.len() > 1 {
                bail!("--graph draws for one GPU, and {} are given", gpus.len());
            }
            let settings = Settings {
                gpu: gpus.first().cloned().or(settings.gpu.clone()),
                ..settings.clone()
            };
            let flow = engine
                .work_flow(&source.document, file, &settings, &overrides, kernels)
                .map_err(|message| anyhow!(message))?;
            std::fs::write(out, graph::svg(&flow))
                .map_err(|error| anyhow!("{}: cannot write the graph: {error}", out.display()))?;
        }
        Ok(document)
    }

    /// A block that no launch on the target can have is refused.
    fn refuse_block(
        &self,
        gpus: &[String],
        settings: &Settings,
        profiles: &Profiles,
    ) -> anyhow::Result<()> {
        let targets = gpus.iter().map(String::as_str);
        let default = settings.gpu.as_deref().unwrap_or(DEFAULT_GPU);
        let targets = targets.chain(gpus.is_empty().then_some(default));
        for profile in targets.filter_map(|id| profiles.get(id)) {
            let refused = self.launching.refuse_block(&profile);
            refused.map_err(|line| anyhow!(line))?;
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
}

/// Leaves the kernels that take longest, the longest first, each with all its launches and GPUs and with its findings. One
/// without a time counts as the shortest.
fn keep_longest(document: &mut EstimateDocument, most: usize) {
    let name = |result: &KernelResult| (result.file.clone(), result.kernel.clone());
    let time = |result: &KernelResult| {
        let mut times = result.estimates.values().map(|one| one.time_ms);
        times.next().flatten().unwrap_or(0.0)
    };
    let mut longest: BTreeMap<(String, String), f64> = BTreeMap::new();
    for result in &document.results {
        let kept = longest.entry(name(result)).or_default();
        *kept = kept.max(time(result));
    }
    let mut order: Vec<_> = longest.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    order.truncate(most);
    let rank = |wanted: &(String, String)| order.iter().position(|(kept, _)| kept == wanted);
    document.results.retain(|one| rank(&name(one)).is_some());
    document.results.sort_by_key(|one| rank(&name(one)));
    document.diagnostics.retain(|one| {
        one.kernel
            .as_ref()
            .is_none_or(|kernel| rank(&(one.file.clone(), kernel.clone())).is_some())
    });
}
