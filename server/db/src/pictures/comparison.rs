//! The same launch on other GPUs.

use std::path::Path;

use warplens_syntax::Document;

use crate::settings::Settings;
use crate::{Cancel, Engine, Overrides, PlacedKernel};

/// What a kernel is predicted to take on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Elsewhere {
    /// Profile id.
    pub gpu: String,
    /// The GPU's name.
    pub name: String,
    /// True for the GPU that the rest of the page is about.
    pub target: bool,
    /// Milliseconds, as a profiler's duration of the kernel; `None` where nothing is predicted.
    pub time_ms: Option<f64>,
    /// A key of an estimate's `breakdown`.
    pub bottleneck: Option<&'static str>,
    /// Why nothing is predicted.
    pub why: Option<String>,
}

impl Engine {
    /// For each of the kernels, which were analysed under `settings`, its times on the other GPUs and its own, the fastest
    /// first. `None` where it was cancelled.
    #[allow(clippy::too_many_arguments, reason = "all of it is the question")]
    pub(crate) fn elsewhere(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        shown: &[&PlacedKernel],
        gpus: &[String],
        cancel: &Cancel,
    ) -> Option<Vec<Vec<Elsewhere>>> {
        let mut found: Vec<Vec<Elsewhere>> = vec![Vec::new(); shown.len()];
        if gpus.is_empty() {
            return Some(found);
        }
        let mut overrides = overrides.clone();
        for placed in shown {
            let launch = placed.analysis.facts.launch;
            if launch.grid_source.is_assumption() {
                // A grid that fills each GPU would be other work on each.
                let name = placed.analysis.facts.name.clone();
                overrides.editor.entry(name).or_default().grid = Some(launch.grid);
            }
        }
        let target = shown
            .first()
            .map(|placed| placed.analysis.profile.id.clone());
        for (found, placed) in found.iter_mut().zip(shown) {
            found.push(on(placed, true));
        }
        for gpu in gpus.iter().filter(|gpu| Some(*gpu) != target.as_ref()) {
            if self.profiles().get(gpu).is_none() {
                continue;
            }
            let settings = Settings {
                gpu: Some(gpu.clone()),
                ..settings.clone()
            };
            let file = self.analyze(document, path, &settings, &overrides, cancel)?;
            for (found, placed) in found.iter_mut().zip(shown) {
                let mut kernels = file.kernels.iter();
                let same = kernels.find(|other| {
                    other.start == placed.start
                        && other.variant == placed.variant
                        && other.analysis.template_args == placed.analysis.template_args
                });
                found.extend(same.map(|other| on(other, false)));
            }
        }
        for found in &mut found {
            let key = |one: &Elsewhere| one.time_ms.unwrap_or(f64::INFINITY);
            found.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.gpu.cmp(&b.gpu)));
        }
        Some(found)
    }
}

fn on(placed: &PlacedKernel, target: bool) -> Elsewhere {
    let analysis = &placed.analysis;
    let estimate = analysis.estimate();
    Elsewhere {
        gpu: analysis.profile.id.clone(),
        name: analysis.profile.name.clone(),
        target,
        time_ms: estimate.time_ms.filter(|time| time.is_finite()),
        bottleneck: estimate.bottleneck.map(warplens_models::Bottleneck::name),
        why: estimate.why.clone(),
    }
}
