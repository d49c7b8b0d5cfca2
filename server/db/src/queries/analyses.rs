//! Query family: a kernel's analysis: facts, what warps execute, estimates and findings.
//!
//! In: a kernel in IR, where its launch comes from, a GPU. Out: [`KernelAnalysis`]. What holds: it is known by a fingerprint that says
//! nothing of where the kernel stands; a panic costs this kernel under this launch, is said once, and is not remembered.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use warplens_base::Command;
use warplens_codegen::Options;
use warplens_ir::Kernel;
use warplens_machine::Profile;

use crate::compiled;
use crate::compilers::CompilerWord;
use crate::estimate::Question;
use crate::launch::Given;
use crate::lowered::Lowered;
use crate::memo::hash;
#[cfg(test)]
use crate::queries::kernels::failing;
use crate::settings::Settings;
use crate::suppress;
use crate::{Engine, KernelAnalysis, Overrides};

impl Engine {
    /// A kernel's analysis, and whether it had to be computed; `None` where it failed.
    #[allow(clippy::too_many_arguments, reason = "all of it is the question")]
    pub(crate) fn analysis(
        &self,
        lowered: &Arc<Lowered>,
        given: &Given,
        profile: &Arc<Profile>,
        command: Option<&Command>,
        settings: &Settings,
        overrides: &Overrides,
        word: Option<&CompilerWord>,
    ) -> Option<(Arc<KernelAnalysis>, bool)> {
        let options = compiled::options(&lowered.kernel, command, profile);
        let on_trial = suppress::on_trial(settings);
        let analysis_key = hash(&[
            &on_trial,
            &lowered.fingerprint,
            given,
            &profile.id,
            &profile.bank_rule,
            &profile.sm_clock_mhz.to_bits(),
            &profile.limited_to_w.map(f64::to_bits),
            &OverrideKey(overrides),
            &settings.model,
            &options,
            &word,
        ]);
        if let Some(analysis) = self.contents().analyses.get(analysis_key) {
            return Some((analysis, false));
        }
        let made = catch_unwind(AssertUnwindSafe(|| {
            #[cfg(test)]
            failing::at(failing::Stage::Analysing, &lowered.kernel.name);
            let contents = self.contents();
            let compiled = contents.compiled_kernel(&lowered.kernel, lowered.shape, options);
            let again = |changed: &Kernel, options: &Options| {
                contents.compiled_kernel(changed, changed.shape(), *options)
            };
            let question = Question {
                lowered,
                predicted: &compiled,
                options: &options,
                given,
                profile,
                settings,
                overrides,
                word,
                formulas: self.formulas,
                compile: &again,
            };
            question.answer()
        }));
        made.ok()
            .map(|analysis| (self.contents().analyses.put(analysis_key, analysis), true))
    }
}

/// What of the overrides changes a kernel beside its launch.
struct OverrideKey<'a>(&'a Overrides);

impl Hash for OverrideKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.registers.hash(state);
        for (architecture, said) in &self.0.said {
            architecture.hash(state);
            for kernel in &said.kernels {
                kernel.hash(state);
            }
        }
        self.0.unadvised.hash(state);
        self.0.contents.hash(state);
        self.0.warps_per_sm.hash(state);
        self.0.without.hash(state);
    }
}
