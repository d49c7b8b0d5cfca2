//! Counts as functions of the parameters: made on request, from what the analysis was made from.

use std::sync::{Arc, OnceLock};

use warplens_facts::facts::{Count, Launch};
use warplens_facts::{Expressions, LaneRequest, Request, count_expressions, lane_requests};
use warplens_ir::Kernel;
use warplens_machine::Profile;
use warplens_models::{Estimate, ModelId, linear};

use crate::KernelAnalysis;
use crate::lowered::{Lowered, argument_bytes};
use crate::panics::unless_it_panics;

/// A kernel with its launch and arguments, and what was made from them.
#[derive(Debug)]
pub(crate) struct Counting {
    /// Nothing where it is never asked for: a kernel in IR may be larger than all else that is known of it.
    lowered: Option<Arc<Lowered>>,
    launch: Launch,
    arguments: Vec<(String, i64, bool)>,
    expressions: OnceLock<Expressions>,
}

impl Counting {
    pub(crate) fn new(
        lowered: Option<Arc<Lowered>>,
        launch: Launch,
        arguments: Vec<(String, i64, bool)>,
    ) -> Counting {
        Counting {
            lowered,
            launch,
            arguments,
            expressions: OnceLock::new(),
        }
    }

    /// The kernel in IR; `None` where it was not kept.
    pub(crate) fn kernel(&self) -> Option<&Kernel> {
        self.lowered.as_ref().map(|lowered| &lowered.kernel)
    }

    /// Integer parameters that have a value: name, value, assumed.
    pub(crate) fn arguments(&self) -> &[(String, i64, bool)] {
        &self.arguments
    }

    fn expressions(&self, profile: &Profile) -> &Expressions {
        self.expressions
            .get_or_init(|| self.ask(profile, count_expressions))
    }

    /// What a question about the kernel is answered; nothing where the kernel was not kept, or the answer failed.
    fn ask<T: Default>(&self, profile: &Profile, question: impl FnOnce(&Request) -> T) -> T {
        let Some(lowered) = &self.lowered else {
            return T::default();
        };
        let request = Request {
            kernel: &lowered.kernel,
            launch: self.launch,
            profile,
            arguments: &self.arguments,
            covers: &[],
            probabilities: &[],
            contents: &[],
            reals: &[],
            extents: &[],
            boxes: &[],
            cluster: None,
        };
        unless_it_panics(|| question(&request)).unwrap_or_default()
    }
}

impl KernelAnalysis {
    /// Operations and iterations as functions of the parameters. Made when first asked for.
    pub fn expressions(&self) -> &Expressions {
        self.counting.expressions(&self.profile)
    }

    /// One request, lane by lane, of each access that is wanted and whose addresses are known; by the accesses' numbers.
    /// Empty where the kernel was analysed among many files. Worked out at each call.
    pub fn lane_requests(&self, wanted: &dyn Fn(usize) -> bool) -> Vec<LaneRequest> {
        let asked = |request: &Request| lane_requests(request, wanted);
        let mut found = self.counting.ask(&self.profile, asked);
        found.retain(|request| {
            let access = self.facts.accesses.get(request.access);
            access.is_some_and(|access| access.site == request.site)
        });
        found
    }

    /// Bytes of the arguments where they live in shared memory; 0 where the kernel was not kept.
    pub(crate) fn argument_bytes(&self) -> u64 {
        let lowered = self.counting.lowered.as_ref();
        lowered.map_or(0, |lowered| argument_bytes(&lowered.kernel, &self.profile))
    }

    /// The cycles as a formula: the linear model's in the closed forms of its counts where they have some.
    pub(crate) fn cycles_function(&self, model: ModelId, estimate: &Estimate) -> Option<String> {
        let of_counts = || {
            let made = unless_it_panics(|| linear::function(&self.question(), self.expressions()));
            made.unwrap_or_default()
        };
        let formula = (model == ModelId::Linear && estimate.cycles.is_some())
            .then(of_counts)
            .flatten();
        formula.or_else(|| estimate.cycles_function.clone())
    }

    /// A count's formula, where there is one that agrees with what was counted for this launch, and its
    /// value: the formula's own where the launch was only sampled.
    pub(crate) fn counted(&self, count: &Count) -> (Option<&str>, Option<f64>) {
        let Some(formula) = self.expressions().of(count.class) else {
            return (None, count.value);
        };
        let agrees = count
            .value
            .is_some_and(|value| (value - formula.value).abs() < 0.5);
        if agrees {
            (Some(&formula.text), count.value)
        } else if !count.complete && formula.proved {
            (Some(&formula.text), Some(formula.value))
        } else {
            (None, count.value)
        }
    }
}
