//! What the models say of a kernel: worked out on request.
//!
//! A folder's findings depend on the models only where a gain is named; a keystroke shows the estimates, but hardly
//! ever what each factor costs. The graph of a kernel may have tens of thousands of nodes, so that none pays for what
//! is not shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warplens_models::{Estimate, Factor, ModelId, ModelInput, Question};

use crate::panics::unless_it_panics;
use crate::{Cancel, KernelAnalysis, Overrides};

/// The answers of the models, and what they depend on.
#[derive(Debug)]
pub(crate) struct Estimates {
    input: Arc<ModelInput>,
    without: Vec<Factor>,
    warps_per_sm: Option<u32>,
    by_model: OnceLock<BTreeMap<ModelId, Estimate>>,
    simulated: Mutex<BTreeMap<ModelId, Arc<Estimate>>>,
}

impl Estimates {
    pub(crate) fn new(input: Arc<ModelInput>, overrides: &Overrides) -> Estimates {
        Estimates {
            input,
            without: overrides.without.clone(),
            warps_per_sm: overrides.warps_per_sm,
            by_model: OnceLock::new(),
            simulated: Mutex::default(),
        }
    }

    fn question(&self) -> Question<'_> {
        Question {
            without: &self.without,
            warps_per_sm: self.warps_per_sm,
            ..Question::of(&self.input)
        }
    }
}

/// What follows from the estimate that is shown first.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// What each model says without numbers that rest on sizes that nothing gives.
    estimates: OnceLock<BTreeMap<ModelId, Estimate>>,
    estimate: OnceLock<Arc<Estimate>>,
    lines: OnceLock<Vec<(u32, f64)>>,
    what_if: OnceLock<Vec<(Factor, f64, f64)>>,
}

impl KernelAnalysis {
    /// What each model says that answers within a keystroke.
    pub fn estimates(&self) -> &BTreeMap<ModelId, Estimate> {
        self.shown.estimates.get_or_init(|| {
            let said = self.stand_in_estimates();
            self.find(&ModelId::analytical());
            let honest = said.iter();
            honest
                .map(|(&model, estimate)| (model, self.honest(model, estimate)))
                .collect()
        })
    }

    /// The same with the stand-ins of sizes that nothing gives: to be compared with what else has the same stand-ins, never
    /// shown.
    pub(crate) fn stand_in_estimates(&self) -> &BTreeMap<ModelId, Estimate> {
        self.estimates.by_model.get_or_init(|| {
            // A defect of a model costs its figures, nothing else.
            let made = unless_it_panics(|| warplens_models::estimates(&self.question()));
            made.unwrap_or_else(|| {
                let models = ModelId::analytical().into_iter();
                models.map(|model| (model, failed())).collect()
            })
        })
    }

    /// A quantity of a model's own that is one of a warp or an SM.
    pub fn detail(&self, model: ModelId, name: &str) -> Option<f64> {
        self.stand_in_estimates()
            .get(&model)?
            .detail
            .get(name)
            .copied()
    }

    /// What one model says, run now if it simulates and was not run before. `None` where it was cancelled.
    pub fn estimate_by(&self, model: ModelId, cancel: &Cancel) -> Option<Arc<Estimate>> {
        if !model.simulates() {
            let said = self.stand_in_estimates().get(&model)?;
            return Some(Arc::new(self.honest(model, said)));
        }
        if let Some(known) = self.simulated(model) {
            return Some(known);
        }
        let question = Question {
            cancel: Some(cancel.flag()),
            ..self.question()
        };
        let made = unless_it_panics(|| warplens_models::estimate(model, &question));
        if cancel.is_cancelled() {
            return None;
        }
        let estimate = Arc::new(made.unwrap_or_else(failed));
        lock(&self.estimates.simulated).insert(model, estimate);
        self.simulated(model)
    }

    /// What a model that simulates has said, if it was run.
    pub fn simulated(&self, model: ModelId) -> Option<Arc<Estimate>> {
        let known = lock(&self.estimates.simulated).get(&model).cloned()?;
        Some(Arc::new(self.honest(model, &known)))
    }

    /// The estimate shown first: of the chosen model, or [`ModelId::Auto`]'s until it has run.
    pub fn estimate(&self) -> Arc<Estimate> {
        let shown = self.simulated(self.model);
        shown.unwrap_or_else(|| {
            let known = &self.shown.estimate;
            let honest = || {
                let (model, said) = self.stood();
                Arc::new(self.honest(model, said))
            };
            Arc::clone(known.get_or_init(honest))
        })
    }

    /// The cycles of the estimate shown first, with stand-ins for sizes that nothing gives: to be compared with those of the
    /// same kernel changed.
    pub(crate) fn stand_in_cycles(&self) -> Option<f64> {
        if self.model.simulates() || self.estimates.by_model.get().is_some() {
            return self.stood().1.cycles;
        }
        // One model answers while nothing is shown.
        let question = self.question();
        unless_it_panics(|| warplens_models::cycles_by(self.model, &question)).flatten()
    }

    /// What an analytical model says with stand-ins: the chosen one, or [`ModelId::Auto`].
    fn stood(&self) -> (ModelId, &Estimate) {
        let estimates = self.stand_in_estimates();
        match estimates.get_key_value(&self.model) {
            Some((&model, estimate)) => (model, estimate),
            None => (ModelId::Auto, &estimates[&ModelId::Auto]),
        }
    }

    /// Share of each line (relative) in the kernel's cycles, largest first; shares add up to 1.
    pub fn lines(&self) -> Vec<(u32, f64)> {
        if let Some(simulated) = self.simulated(self.model) {
            return shares(&simulated.lines);
        }
        let lines = &self.shown.lines;
        lines.get_or_init(|| shares(&self.stood().1.lines)).clone()
    }

    /// The kernel without one factor, by the model shown first: factor, cycles, speedup.
    pub fn what_if(&self) -> &[(Factor, f64, f64)] {
        self.shown.what_if.get_or_init(|| {
            let made = unless_it_panics(|| warplens_models::what_if(self.model, &self.question()));
            made.unwrap_or_default()
        })
    }

    pub(crate) fn question(&self) -> Question<'_> {
        self.estimates.question()
    }
}

fn failed() -> Estimate {
    Estimate {
        why: Some("the model failed; please report it".to_owned()),
        ..Estimate::default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Each line's share of the cycles, largest first.
fn shares(lines: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let mut by_line: BTreeMap<u32, f64> = BTreeMap::new();
    for &(line, cycles) in lines {
        *by_line.entry(line).or_insert(0.0) += cycles;
    }
    let total: f64 = by_line.values().sum();
    let mut shares: Vec<(u32, f64)> = by_line
        .into_iter()
        .map(|(line, cycles)| (line, if total > 0.0 { cycles / total } else { 0.0 }))
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}
