//! What the models say of a kernel: worked out when somebody asks.
//!
//! A folder's findings depend on the models only where a gain is named; a keystroke shows the estimates, but hardly
//! ever what each factor costs. The graph of a kernel may have tens of thousands of nodes, so nobody pays for what
//! is not shown.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warplens_models::{Estimate, Factor, ModelId, Question};

use crate::{Cancel, KernelAnalysis, Overrides};

/// The answers, and what they depend on beside the facts.
#[derive(Debug)]
pub(crate) struct Estimates {
    without: Vec<Factor>,
    warps_per_sm: Option<u32>,
    by_model: OnceLock<BTreeMap<ModelId, Estimate>>,
    honest: OnceLock<BTreeMap<ModelId, Estimate>>,
    shown: OnceLock<Arc<Estimate>>,
    simulated: Mutex<BTreeMap<ModelId, Arc<Estimate>>>,
    lines: OnceLock<Vec<(u32, f64)>>,
    what_if: OnceLock<Vec<(Factor, f64, f64)>>,
}

impl Estimates {
    pub(crate) fn new(overrides: &Overrides) -> Estimates {
        Estimates {
            without: overrides.without.clone(),
            warps_per_sm: overrides.warps_per_sm,
            by_model: OnceLock::new(),
            honest: OnceLock::new(),
            shown: OnceLock::new(),
            simulated: Mutex::default(),
            lines: OnceLock::new(),
            what_if: OnceLock::new(),
        }
    }
}

impl KernelAnalysis {
    /// What each model says that answers within a keystroke.
    pub fn estimates(&self) -> &BTreeMap<ModelId, Estimate> {
        self.estimates.honest.get_or_init(|| {
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
            let made = catch_unwind(AssertUnwindSafe(|| {
                warplens_models::estimates(&self.question())
            }));
            made.unwrap_or_else(|_| {
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
        let made = catch_unwind(AssertUnwindSafe(|| {
            warplens_models::estimate(model, &question)
        }));
        if cancel.is_cancelled() {
            return None;
        }
        let estimate = made.unwrap_or_else(|_| failed());
        let estimate = Arc::new(self.honest(model, &estimate));
        let mut simulated = lock(&self.estimates.simulated);
        simulated.insert(model, Arc::clone(&estimate));
        Some(estimate)
    }

    /// What a model that simulates has said, if it was run.
    pub fn simulated(&self, model: ModelId) -> Option<Arc<Estimate>> {
        lock(&self.estimates.simulated).get(&model).cloned()
    }

    /// The estimate shown first: of the chosen model, or [`ModelId::Auto`]'s until it has run.
    pub fn estimate(&self) -> Arc<Estimate> {
        let shown = self.simulated(self.model);
        shown.unwrap_or_else(|| {
            let known = &self.estimates.shown;
            let honest = || {
                let (model, said) = self.shown();
                Arc::new(self.honest(model, said))
            };
            Arc::clone(known.get_or_init(honest))
        })
    }

    /// The cycles of the estimate shown first, with stand-ins for sizes that nothing gives: to be compared with those of the
    /// same kernel changed.
    pub(crate) fn stand_in_cycles(&self) -> Option<f64> {
        self.shown().1.cycles
    }

    /// What an analytical model says with stand-ins: the chosen one, or [`ModelId::Auto`].
    fn shown(&self) -> (ModelId, &Estimate) {
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
        let lines = &self.estimates.lines;
        lines.get_or_init(|| shares(&self.shown().1.lines)).clone()
    }

    /// The kernel without one factor, by the model shown first: factor, cycles, speedup.
    pub fn what_if(&self) -> &[(Factor, f64, f64)] {
        self.estimates.what_if.get_or_init(|| {
            let made = catch_unwind(AssertUnwindSafe(|| {
                warplens_models::what_if(self.model, &self.question())
            }));
            made.unwrap_or_default()
        })
    }

    pub(crate) fn question(&self) -> Question<'_> {
        Question {
            without: &self.estimates.without,
            warps_per_sm: self.estimates.warps_per_sm,
            ..Question::of(&self.input)
        }
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
