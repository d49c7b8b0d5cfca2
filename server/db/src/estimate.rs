//! One kernel under one launch on one GPU: facts and the compiled kernel in, what models and rules say of it out.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_advice::{Recompiled, Removal};
use warplens_codegen::{CompiledKernel, Options};
use warplens_facts::facts::{Launch, SourceFacts};
use warplens_facts::{Contents, Request, analyze};
use warplens_ir::{Kernel, Storage, Var};
use warplens_machine::Profile;
use warplens_models::{
    self as models, Change, DynamicCounts, Factor, ModelId, ModelInput, Resources, residence,
};

use crate::compilers::CompilerWord;
use crate::counting::Counting;
use crate::estimates::Estimates;
use crate::launch::{self, Given, Resolved};
use crate::lowered::{Lowered, argument_bytes};
use crate::said;
use crate::settings::Settings;
use crate::sizes::Sizes;
use crate::suppress;
use crate::{KernelAnalysis, Overrides};

/// One kernel and all that its analysis depends on.
pub(crate) struct Question<'a> {
    /// The kernel.
    pub lowered: &'a Arc<Lowered>,
    /// What the machine executes, as predicted.
    pub predicted: &'a Arc<CompiledKernel>,
    /// How it was compiled.
    pub options: &'a Options,
    /// Where its launch and its arguments come from.
    pub given: &'a Given,
    /// The GPU.
    pub profile: &'a Arc<Profile>,
    /// Settings of the workspace.
    pub settings: &'a Settings,
    /// Values from outside the file.
    pub overrides: &'a Overrides,
    /// What a compiler reported of it.
    pub word: Option<&'a CompilerWord>,
    /// Whether its counts are asked for as formulas later.
    pub formulas: bool,
    /// Compiles a changed copy of it.
    pub compile: &'a dyn Fn(&Kernel, &Options) -> Arc<CompiledKernel>,
}

impl Question<'_> {
    /// The kernel's facts, estimates and findings.
    pub(crate) fn answer(&self) -> KernelAnalysis {
        let Question {
            lowered,
            predicted,
            options,
            given,
            profile,
            settings,
            overrides,
            word,
            ..
        } = *self;
        let kernel = &lowered.kernel;
        let mut compiled = Arc::clone(predicted);
        let probabilities = given.probabilities();
        // A compiler's word counts before what the compile room makes of the kernel.
        let asked = overrides
            .said
            .get(&profile.architecture)
            .and_then(|said| said::of_kernel(kernel, said));
        let said = asked.or(word.map(|word| &word.kernel));
        if let Some(said) = said {
            compiled = Arc::new(said::in_place_of(&compiled, said));
        }
        // What a compiler reported of a block's shared memory counts before what the source declares.
        let said_shared = match said {
            Some(said) => Some(said.static_shared_bytes),
            None => compiled.shared_bytes,
        };
        let resources = Resources {
            registers_per_thread: overrides.registers.unwrap_or(compiled.registers),
            static_shared_bytes: said_shared.unwrap_or_else(|| static_shared_bytes(kernel)),
            argument_shared_bytes: argument_bytes(kernel, profile),
            local_bytes_per_thread: compiled.local_bytes,
            spill_bytes_per_thread: compiled.spill_bytes,
        };
        // The default grid is so many full waves: it needs the residency.
        let resolved = given.launch(kernel, profile, &|launch| {
            residence(profile, launch, &resources, u64::MAX).active_blocks_per_sm
        });
        let contents = contents_of(kernel, overrides);
        let sizes = Sizes::new(
            lowered,
            self.formulas,
            &resolved,
            probabilities.clone(),
            contents.clone(),
        );
        let Resolved {
            launch,
            arguments,
            covers,
            ..
        } = resolved;
        let facts_for = |changed: Launch| {
            // Blocks of another shape cover something else.
            let same = changed.block == launch.block;
            let mut facts = analyze(&Request {
                kernel,
                launch: changed,
                profile,
                arguments: &arguments,
                covers: if same { &covers } else { &[] },
                probabilities: &probabilities,
                contents: &contents,
            });
            sizes.assumed(&mut facts.assumptions);
            facts
        };
        let facts = Arc::new(facts_for(launch));
        let resources = Resources {
            static_shared_bytes: said_shared.unwrap_or(facts.static_shared_bytes),
            ..resources
        };
        let joined = |compiled: &Arc<CompiledKernel>, facts: &Arc<SourceFacts>, resources| {
            let (facts, compiled) = (Arc::clone(facts), Arc::clone(compiled));
            ModelInput::new(facts, compiled, Arc::clone(profile), resources)
        };
        let input = joined(&compiled, &facts, resources);
        let asked = models::Question {
            without: &overrides.without,
            warps_per_sm: overrides.warps_per_sm,
            ..models::Question::of(&input)
        };
        let model = settings
            .model
            .as_deref()
            .and_then(ModelId::named)
            .unwrap_or(ModelId::Auto);
        let registers_known = overrides.registers.is_some() || said.is_some();
        let under = |compiled: &Arc<CompiledKernel>| {
            let counts = DynamicCounts::new(compiled, &facts)?;
            let resources = Resources {
                registers_per_thread: overrides.registers.unwrap_or(compiled.registers),
                ..resources
            };
            let input = joined(compiled, &facts, resources);
            let cycles = models::cycles(&models::Question {
                input: &input,
                ..asked
            })?;
            Some((counts.accessed(), counts.of_a_warp(), cycles))
        };
        let findings = findings(
            &asked,
            kernel,
            registers_known,
            !overrides.unadvised,
            &|rule| suppress::heard(rule, settings),
            given,
            &|changed| {
                let (before, slower, slow) = under(predicted)?;
                let compiled = (self.compile)(changed, options);
                let (after, faster, fast) = under(&compiled)?;
                Some(Recompiled {
                    before,
                    after,
                    registers: [predicted.registers, compiled.registers],
                    instructions: (slower, faster),
                    spill_bytes: (predicted.spill_bytes, compiled.spill_bytes),
                    gain: slow / fast.max(1.0),
                })
            },
            &|grid, block| {
                let changed = Launch {
                    block,
                    grid,
                    ..launch
                };
                let input = joined(&compiled, &Arc::new(facts_for(changed)), resources);
                let question = models::Question {
                    input: &input,
                    ..asked
                };
                let threads = (changed.blocks() * changed.threads_per_block()) as f64;
                models::cycles(&question).map(|cycles| cycles / threads)
            },
        );
        KernelAnalysis {
            profile: Arc::clone(profile),
            registers_source: match (overrides.registers, &said) {
                (Some(_), _) => "user",
                (None, Some(_)) => "compiler",
                (None, None) => "estimated",
            },
            estimates: Estimates::new(overrides),
            model,
            findings,
            name_site: kernel.name_site,
            launch_known: given.block_from_source(),
            template_args: kernel.template_args.clone(),
            counting: Counting::new(
                self.formulas.then(|| Arc::clone(lowered)),
                launch,
                arguments.clone(),
            ),
            sizes,
            arrays: arrays(kernel),
            fingerprint: lowered.fingerprint,
            facts,
            input,
        }
    }
}

/// What the rules say; `per_thread` re-analyses under another block: cycles per thread.
#[allow(clippy::too_many_arguments, reason = "all of it is the question")]
fn findings(
    question: &models::Question,
    kernel: &Kernel,
    registers_known: bool,
    advised: bool,
    heard: &dyn Fn(&str) -> bool,
    given: &Given,
    recompiled: warplens_advice::Recompile<'_>,
    per_thread: &dyn Fn([u64; 3], [u64; 3]) -> Option<f64>,
) -> Vec<warplens_advice::Finding> {
    let input = question.input;
    let base = OnceCell::new();
    let before = || *base.get_or_init(|| models::cycles(question));
    let relaunched = |before: f64, grid, block| {
        let launch = &input.launch;
        let threads = (launch.blocks() * launch.threads_per_block()) as f64;
        per_thread(grid, block).map_or(1.0, |after| models::speedup(before / threads, after))
    };
    let trial = |changes: &[Change]| {
        let Some(before) = before() else {
            return 1.0;
        };
        let after = models::cycles(&models::Question {
            input: &input.with(changes),
            ..*question
        });
        after.map_or(1.0, |after| before / after.max(1.0))
    };
    let removed = |removal: Removal| {
        let Some(before) = before() else {
            return 1.0;
        };
        let after = match removal {
            Removal::Access(access) => models::cycles(&models::Question {
                ideal_access: Some(access),
                ..*question
            }),
            Removal::Factor(factor) => {
                let mut without: Vec<Factor> = question.without.to_vec();
                without.push(factor);
                models::cycles(&models::Question {
                    without: &without,
                    ..*question
                })
            }
            Removal::IdleLanes => {
                let Launch { grid, block, .. } = input.launch;
                let whole = launch::whole_warps(block, input.facts.warp_size);
                let grid = launch::whole_warps_grid(grid, block, whole);
                return relaunched(before, grid, whole);
            }
            Removal::Launch { grid, block } => return relaunched(before, grid, block),
        };
        after.map_or(1.0, |after| models::speedup(before, after))
    };
    // Findings ask for the same again: what all accesses of a kind would save together bounds each of them.
    let gains: RefCell<FxHashMap<Removal, f64>> = RefCell::default();
    let gain = |removal: Removal| {
        let known = gains.borrow().get(&removal).copied();
        known.unwrap_or_else(|| {
            let gain = removed(removal);
            gains.borrow_mut().insert(removal, gain);
            gain
        })
    };
    let context = warplens_advice::Context {
        input,
        facts: &input.facts,
        kernel,
        compiled: &input.compiled,
        profile: &input.profile,
        occupancy: &input.occupancy,
        registers_known,
        heard,
        block_varies: given.block_varies,
        memory: &given.memory,
        cycles: &before,
        gain: &gain,
        trial: &trial,
        recompiled,
    };
    if advised {
        warplens_advice::run(&context)
    } else {
        warplens_advice::impossible(&context)
    }
}

/// Given contents of the kernel's array parameters.
fn contents_of(kernel: &Kernel, overrides: &Overrides) -> Vec<Contents> {
    let given = arrays(kernel).into_iter().filter_map(|(parameter, _)| {
        let bytes = Arc::clone(overrides.contents.get(&parameter)?);
        Some(Contents { parameter, bytes })
    });
    given.collect()
}

/// The kernel's array parameters, and the bytes of their elements.
fn arrays(kernel: &Kernel) -> Vec<(String, u64)> {
    let parameters = kernel.vars.iter().take(kernel.params as usize);
    let element = |var: &Var| Some((var.name.clone(), var.ty.element()?.size().max(1)));
    parameters.filter_map(element).collect()
}

/// Shared memory of a block that the kernel declares with its size.
fn static_shared_bytes(kernel: &Kernel) -> u64 {
    let arrays = kernel
        .vars
        .iter()
        .filter(|var| var.storage == Storage::Shared);
    arrays.map(|var| var.ty.size()).sum()
}
