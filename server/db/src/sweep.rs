//! One kernel under many configurations: what each is predicted to take, without advice.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_ir::Real;
use warplens_models::{Bottleneck, ModelId, OpenTime};
use warplens_syntax::Document;
use warplens_tuning::Configuration;

use crate::results::assumptions;
use crate::settings::Settings;
use crate::wire::{Assumption, SweepLine};
use crate::{Cancel, Engine, KernelAnalysis, LaunchValues, Overrides};

/// What is predicted of one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// SM clock cycles.
    pub cycles: Option<f64>,
    /// Milliseconds, as a profiler's duration of the kernel.
    pub time_ms: Option<f64>,
    /// What the time depends on that neither the configuration nor the source gives.
    pub open: Option<OpenTime>,
    /// What most of the time goes to.
    pub bottleneck: Option<&'static str>,
    /// Resident warps over the most that the GPU holds.
    pub occupancy: f64,
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Shared memory of a block, static and dynamic, in bytes.
    pub shared_bytes: u64,
    /// Why it cannot be launched, or why nothing is predicted.
    pub why_invalid: Option<String>,
    /// What is not given, apart from how pointers are aligned.
    pub assumptions: Vec<Assumption>,
}

/// One kernel under one configuration, analysed.
#[derive(Debug, Clone)]
pub struct Configured {
    /// What is known of it.
    pub analysis: Arc<KernelAnalysis>,
    /// Why it cannot be launched.
    pub why_invalid: Option<String>,
}

impl Engine {
    /// Analyses one kernel of a file under one configuration: its macros stand in the settings, its launch and arguments in the
    /// overrides. `Err` is one line: there is no such kernel.
    pub fn configured(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        kernel: &str,
    ) -> Result<Configured, String> {
        let overrides = Overrides {
            unadvised: true,
            ..overrides.clone()
        };
        let wanted = |name: &str| name == kernel;
        let never = Cancel::default();
        let analysis = self.analyze_some(document, path, settings, &overrides, &never, &wanted);
        let mut kernels = analysis.iter().flat_map(|file| &file.kernels);
        let Some(placed) = kernels.find(|placed| placed.analysis.facts.name == kernel) else {
            return Err(format!("no kernel named `{kernel}` with these macros"));
        };
        let analysis = Arc::clone(&placed.analysis);
        let impossible = analysis.findings.iter();
        let mut impossible = impossible.filter(|finding| finding.rule == "launch/impossible");
        let given = &overrides.argument;
        let why_invalid = match (given.grid, given.block) {
            (Some(grid), _) if grid.contains(&0) => Some("a grid without blocks".to_owned()),
            (_, Some(block)) if block.contains(&0) => Some("a block without threads".to_owned()),
            _ => impossible
                .next()
                .map(|finding| finding.headline().to_owned()),
        };
        Ok(Configured {
            analysis,
            why_invalid,
        })
    }

    /// Predicts one kernel of a file under one configuration, given as for [`Engine::configured`].
    pub fn predict(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        kernel: &str,
        model: ModelId,
    ) -> Result<Prediction, String> {
        let Configured {
            analysis,
            why_invalid,
        } = self.configured(document, path, settings, overrides, kernel)?;
        let facts = &analysis.facts;
        let mut prediction = Prediction {
            cycles: None,
            time_ms: None,
            open: None,
            bottleneck: None,
            occupancy: analysis.input.occupancy.fraction,
            registers_per_thread: analysis.input.resources.registers_per_thread,
            shared_bytes: analysis.input.resources.static_shared_bytes
                + facts.launch.dynamic_shared_bytes,
            why_invalid,
            assumptions: assumptions(&analysis)
                .filter(|assumption| !assumption.symbol.starts_with("alignment"))
                .collect(),
        };
        if prediction.why_invalid.is_some() {
            return Ok(prediction);
        }
        let estimate = analysis.estimate_by(model, &Cancel::default());
        let estimate = estimate.ok_or("no prediction")?;
        prediction.cycles = estimate.cycles;
        prediction.time_ms = estimate.time_ms;
        prediction.open.clone_from(&estimate.open);
        prediction.bottleneck = estimate.bottleneck.map(Bottleneck::name);
        if prediction.cycles.is_none() && prediction.open.is_none() {
            prediction.why_invalid.clone_from(&estimate.why);
        }
        Ok(prediction)
    }
}

/// A kernel that is predicted under many configurations.
#[derive(Debug)]
pub struct TunedKernel {
    engine: Arc<Engine>,
    path: PathBuf,
    kernel: String,
    model: ModelId,
    settings: Settings,
    text: String,
    /// The text, parsed, without the pragmas by these unroll factors.
    documents: HashMap<Vec<String>, Document>,
}

impl TunedKernel {
    /// The kernel of that name in the text of `document`, which is at `path`; the settings are those of every configuration.
    pub fn new(
        engine: Arc<Engine>,
        document: Document,
        path: &Path,
        settings: Settings,
        kernel: &str,
        model: ModelId,
    ) -> TunedKernel {
        TunedKernel {
            engine,
            path: path.to_owned(),
            kernel: kernel.to_owned(),
            model,
            settings,
            text: document.rope().to_string(),
            documents: HashMap::from([(Vec::new(), document)]),
        }
    }

    /// Parses the texts that these configurations need, before [`TunedKernel::line`] is asked about them.
    pub fn prepare<'a>(&mut self, configurations: impl IntoIterator<Item = &'a Configuration>) {
        for configuration in configurations {
            let without = &configuration.without_unroll;
            if !self.documents.contains_key(without) {
                let language = self.documents[&Vec::new()].language();
                let document = Document::new(&configuration.text(&self.text), language);
                self.documents.insert(without.clone(), document);
            }
        }
    }

    /// What is predicted of one configuration; from any thread.
    pub fn line(&self, configuration: &Configuration) -> SweepLine {
        let id = configuration.id.clone();
        let Some(document) = self.documents.get(&configuration.without_unroll) else {
            return SweepLine::invalid(id, "its text was not prepared".to_owned());
        };
        let mut settings = self.settings.clone();
        settings.defines.extend(configuration.defines.clone());
        let predicted = self.engine.predict(
            document,
            &self.path,
            &settings,
            &Overrides::of_configuration(configuration),
            &self.kernel,
            self.model,
        );
        match predicted {
            Ok(found) => SweepLine {
                id,
                time_ms: found.time_ms,
                time_formula: found.open.as_ref().and_then(|open| open.formula.clone()),
                unknowns: found.open.map(|open| open.unknowns).unwrap_or_default(),
                cycles: found.cycles,
                bottleneck: found.bottleneck,
                occupancy: Some(found.occupancy),
                registers_per_thread: Some(found.registers_per_thread),
                shared_bytes: Some(found.shared_bytes),
                valid: found.why_invalid.is_none(),
                why_invalid: found.why_invalid,
                assumptions: found.assumptions,
            },
            Err(why) => SweepLine::invalid(id, why),
        }
    }
}

impl Overrides {
    /// The launch, the arguments and the template arguments of a configuration. Its macros belong into the settings.
    pub fn of_configuration(configuration: &Configuration) -> Overrides {
        Overrides {
            argument: LaunchValues {
                grid: configuration.grid.map(|grid| grid.0),
                block: configuration.block.map(|block| block.0),
                dynamic_shared_bytes: configuration.dynamic_shared_bytes,
                args: configuration.args.clone(),
                reals: (configuration.reals.iter())
                    .map(|(name, real)| (name.clone(), Real::from(*real)))
                    .collect(),
                ..LaunchValues::default()
            },
            template_args: configuration.template.clone(),
            ..Overrides::default()
        }
    }
}
