//! Query family: a kernel's analysis: its facts, what warps execute, estimates and findings under one name.
//!
//! In: a kernel in IR, where its launch comes from, a GPU, settings, what a compiler reported. Out: [`KernelAnalysis`], which joins the
//! answers of [`facts`](super::facts), [`compiled_kernels`](super::compiled_kernels), [`model_inputs`](super::model_inputs),
//! [`estimates`](super::estimates) and [`findings`](super::findings), each kept by its own content. What holds: it is known by a
//! fingerprint that says nothing of where the kernel is; a panic costs this kernel under this launch, is said once, and is not
//! remembered.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use warplens_base::Command;
use warplens_codegen::Options;
use warplens_ir::{ExprKind, Function, Kernel, Site, executed};
use warplens_machine::Profile;
use warplens_models::{ModelId, residence};

use crate::compilers::KernelWithTool;
use crate::counting::Counting;
use crate::estimates::Shown;
use crate::launch::Given;
use crate::lowered::{Lowered, arrays, scalars};
use crate::memo::hash;
use crate::panics::unless_it_panics;
use crate::queries::facts::{FactsQuestion, figures};
use crate::queries::findings::FindingsQuestion;
#[cfg(debug_assertions)]
use crate::queries::kernels::failing;
use crate::queries::model_inputs::Compilation;
use crate::settings::Settings;
use crate::sizes::Sizes;
use crate::{Engine, KernelAnalysis, Overrides, compiled, compiler_reports, suppress};

/// One kernel and all that its analysis depends on.
#[derive(Clone, Copy)]
pub(crate) struct AnalysisQuestion<'a> {
    pub(crate) lowered: &'a Arc<Lowered>,
    /// Where its launch and its arguments come from.
    pub(crate) given: &'a Given,
    pub(crate) profile: &'a Arc<Profile>,
    /// The compile command of its file.
    pub(crate) command: Option<&'a Command>,
    pub(crate) settings: &'a Settings,
    pub(crate) overrides: &'a Overrides,
    /// What a compiler reported of it as it is.
    pub(crate) word: Option<&'a KernelWithTool>,
}

impl AnalysisQuestion<'_> {
    /// What the analysis is kept under.
    fn key(&self, options: &Options) -> u64 {
        hash(&[
            &suppress::on_trial(self.settings),
            &self.lowered.fingerprint,
            self.given,
            &figures(self.profile),
            &OverrideKey(self.overrides),
            &self.settings.model,
            options,
            &self.word,
        ])
    }
}

impl Engine {
    /// A kernel's analysis, and whether it had to be computed; `None` where it failed.
    pub(crate) fn analysis(
        &self,
        question: &AnalysisQuestion<'_>,
    ) -> Option<(Arc<KernelAnalysis>, bool)> {
        let kernel = &question.lowered.kernel;
        let options = compiled::options(kernel, question.command, question.profile);
        let key = question.key(&options);
        if let Some(analysis) = self.contents().analyses.get(key) {
            return Some((analysis, false));
        }
        let made = unless_it_panics(|| {
            #[cfg(debug_assertions)]
            failing::at(failing::Stage::Analysing, &kernel.name);
            self.analysed(question, options)
        });
        made.map(|analysis| (self.contents().analyses.put(key, analysis), true))
    }

    fn analysed(&self, question: &AnalysisQuestion<'_>, options: Options) -> KernelAnalysis {
        let AnalysisQuestion {
            lowered,
            given,
            profile,
            settings,
            overrides,
            word,
            ..
        } = *question;
        let contents = self.contents();
        let kernel = &lowered.kernel;
        // What was asked of a compiler for this command counts before what one reported of the file.
        let asked = overrides.said.get(&profile.architecture);
        let asked = asked.and_then(|said| compiler_reports::of_kernel(kernel, said));
        let report = asked.or(word.map(|word| &word.kernel));
        let predicted = contents.compiled_kernel(kernel, lowered.shape, options);
        let compilation =
            Compilation::new(lowered, predicted, options, report, overrides.registers);
        // The default grid is a few full waves: it needs the residency.
        let resources = compilation.before_launch(kernel, profile);
        let resolved = given.launch(kernel, profile, &|launch| {
            residence(profile, launch, &resources, u64::MAX).active_blocks_per_sm
        });
        let sizes = Sizes::new(lowered, self.formulas, &resolved);
        let of_source = FactsQuestion::new(lowered, given, (&resolved, &sizes), profile, overrides);
        let facts = contents.facts(&of_source);
        let (input, input_key) = contents.model_input(
            kernel,
            (&facts, of_source.key),
            &compilation,
            profile,
            given,
        );
        let findings = contents.findings(&FindingsQuestion {
            kernel,
            facts: &of_source,
            compilation: &compilation,
            input: &input,
            input_key,
            given,
            settings,
            overrides,
        });
        let (probabilities, array_contents) =
            (of_source.probabilities.clone(), of_source.contents.clone());
        let sizes = sizes.with(probabilities, array_contents);
        let model = settings.model.as_deref().and_then(ModelId::named);
        KernelAnalysis {
            profile: Arc::clone(profile),
            registers_source: compilation.registers_source(),
            estimates: contents.estimates(&input, input_key, overrides),
            shown: Shown::default(),
            model: model.unwrap_or(ModelId::Auto),
            findings,
            name_site: kernel.name_site,
            waits_for_predecessor: waits_for_predecessor(kernel),
            launch_known: given.block_from_source(),
            template_args: kernel.template_args.clone(),
            counting: Counting::new(
                self.formulas.then(|| Arc::clone(lowered)),
                resolved.launch,
                resolved.arguments.clone(),
            ),
            sizes,
            arrays: arrays(kernel),
            scalars: scalars(kernel),
            fingerprint: lowered.fingerprint,
            facts,
            input,
        }
    }
}

/// The first place where a kernel waits for the launch ahead of it (PTX ISA, `griddepcontrol.wait`).
fn waits_for_predecessor(kernel: &Kernel) -> Option<Site> {
    let mut found = None;
    executed(kernel, &mut |expression, site| {
        if let ExprKind::Call(Function::Ignored(_, name), _) = &expression.kind
            && matches!(
                &**name,
                "griddepcontrol.wait" | "cudaGridDependencySynchronize"
            )
        {
            found.get_or_insert(site);
        }
    });
    found
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use warplens_machine::Profiles;
    use warplens_models::Factor;
    use warplens_syntax::{Document, Language};

    use super::*;
    use crate::Cancel;

    fn analysed(
        engine: &Engine,
        settings: &Settings,
        overrides: &Overrides,
    ) -> Arc<KernelAnalysis> {
        let text = "// warplens: block=256 grid=64\n\
            __global__ void k(float *c, const float *a, int n) {\n\
            \x20 int i = blockIdx.x * 256 + threadIdx.x;\n\
            \x20 c[i * 32] = a[i] * n;\n}\n";
        let document = Document::new(text, Language::Cuda);
        let path = Path::new("k.cu");
        let file = engine.analyze(&document, path, settings, overrides, &Cancel::default());
        let file = file.expect("not cancelled");
        Arc::clone(&file.kernels[0].analysis)
    }

    #[test]
    fn what_an_answer_does_not_depend_on_leaves_it_as_it_is() {
        let engine = Engine::new(Profiles::builtin());
        let (settings, overrides) = (Settings::default(), Overrides::default());
        let first = analysed(&engine, &settings, &overrides);
        let same = |other: &KernelAnalysis| {
            [
                Arc::ptr_eq(&first.facts, &other.facts),
                Arc::ptr_eq(&first.input, &other.input),
                Arc::ptr_eq(&first.estimates, &other.estimates),
                Arc::ptr_eq(&first.findings, &other.findings),
            ]
        };
        let other_model = Settings {
            model: Some("linear".to_owned()),
            ..Settings::default()
        };
        let shown = analysed(&engine, &other_model, &overrides);
        assert_eq!(same(&shown), [true, true, true, true]);
        assert_eq!(shown.model, ModelId::Linear);
        let tried = Settings {
            preview: true,
            ..Settings::default()
        };
        let tried = analysed(&engine, &tried, &overrides);
        let on_trial = !suppress::on_trial(&Settings {
            preview: true,
            ..Settings::default()
        })
        .is_empty();
        assert_eq!(same(&tried), [true, true, true, !on_trial]);
        let without = Overrides {
            without: vec![Factor::Latency],
            ..Overrides::default()
        };
        assert_eq!(
            same(&analysed(&engine, &settings, &without)),
            [true, true, false, false]
        );
        let registers = Overrides {
            registers: Some(77),
            ..Overrides::default()
        };
        let registers = analysed(&engine, &settings, &registers);
        assert_eq!(same(&registers), [true, false, false, false]);
        assert_eq!(registers.input.resources.registers_per_thread, 77);
        assert_eq!(registers.registers_source, "user");
        let relaunched = Overrides {
            argument: crate::LaunchValues {
                grid: Some([128, 1, 1]),
                ..Default::default()
            },
            ..Overrides::default()
        };
        assert_eq!(
            same(&analysed(&engine, &settings, &relaunched)),
            [false, false, false, false]
        );
    }
}
