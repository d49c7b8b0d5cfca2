//! Query family: what the rules find in a kernel.
//!
//! In: a [`ModelInput`] with what it was joined from, what the host does with the memory of the arguments, the rules that are
//! enabled. Out: findings, by the kernel's own numbers for places. What holds: what a rule tries (another launch, a changed kernel, a
//! cause removed) is tried when the rule asks, and once.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_advice::{Recompilation, Recompile, Removal};
use warplens_codegen::{Class, CompiledKernel};
use warplens_facts::facts::{Launch, Site, SourceFacts, Space};
use warplens_ir::Kernel;
use warplens_models::{self as models, Change, DynamicCounts, Factor, ModelInput, Resources};

use crate::contents::Contents;
use crate::launch::{self, Given};
use crate::memo::hash;
use crate::queries::facts::FactsQuestion;
use crate::queries::model_inputs::Compilation;
use crate::settings::Settings;
use crate::{Finding, Overrides, suppress};

/// What findings depend on.
pub(crate) struct FindingsQuestion<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) facts: &'a FactsQuestion<'a>,
    pub(crate) compilation: &'a Compilation<'a>,
    pub(crate) input: &'a Arc<ModelInput>,
    /// What the input is known by.
    pub(crate) input_key: u64,
    pub(crate) given: &'a Given,
    pub(crate) settings: &'a Settings,
    pub(crate) overrides: &'a Overrides,
}

impl Contents {
    /// What the rules find in a kernel.
    pub(crate) fn findings(&self, question: &FindingsQuestion<'_>) -> Arc<Vec<Finding>> {
        self.findings
            .get_or(question.key(), || question.answer(self))
    }
}

/// Lanes of requests may differ by this part between two launches of one work: a grid is rounded up to whole blocks.
const ROUNDING: f64 = 0.1;

/// True where as many elements of global memory are accessed, by the grid or by a thread. A block that is a row's does a part of
/// the rows where the same threads are fewer blocks.
fn does_the_same(before: &SourceFacts, after: &SourceFacts) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.max(b);
    let [(was, threads), (is, others)] = [before, after].map(|facts| {
        let global = facts
            .accesses
            .iter()
            .filter(|access| access.space == Space::Global);
        let lanes =
            global.filter_map(|access| Some(access.requests? * access.active_lanes_per_request?));
        let threads = facts.launch.blocks() * facts.launch.threads_per_block();
        (lanes.sum::<f64>(), threads.max(1) as f64)
    });
    close(was, is) || close(was / threads, is / others)
}

/// A kernel as it executes: loads and stores by place and class, instructions of a warp, cycles.
type Executed = (Vec<(Site, Class, f64)>, f64, f64);

impl FindingsQuestion<'_> {
    fn key(&self) -> u64 {
        let memory = self.given.memory.iter();
        let memory =
            memory.map(|memory| (memory.argument, &memory.name, memory.kind, memory.bytes));
        hash(&[
            &self.input_key,
            &suppress::on_trial(self.settings),
            &self.overrides.unadvised,
            &self.overrides.without,
            &self.overrides.warps_per_sm,
            &(
                self.given.block_varies,
                self.given.grid_by_text,
                self.given.asks_for_shared,
            ),
            &(self.given.cluster, self.given.allows_large_clusters),
            &self.given.rounded_up(),
            &memory.collect::<Vec<_>>(),
            &self.given.loop_key(),
        ])
    }

    fn asked(&self) -> models::Question<'_> {
        models::Question {
            without: &self.overrides.without,
            warps_per_sm: self.overrides.warps_per_sm,
            ..models::Question::of(self.input)
        }
    }

    fn answer(&self, contents: &Contents) -> Vec<Finding> {
        let predicted = OnceCell::new();
        self.look(&|changed| {
            let as_it_is = &self.compilation.predicted;
            let before = predicted.get_or_init(|| self.executed(as_it_is, &self.input.facts));
            let (before, slower, slow) = before.clone()?;
            let compiled =
                contents.compiled_kernel(changed, changed.shape(), self.compilation.options);
            let facts = Arc::new(self.facts.of_changed(&self.input.facts, changed));
            let (after, faster, fast) = self.executed(&compiled, &facts)?;
            Some(Recompilation {
                before,
                after,
                registers: [as_it_is.registers, compiled.registers],
                instructions: (slower, faster),
                spill_bytes: (as_it_is.spill_bytes, compiled.spill_bytes),
                gain: slow / fast.max(1.0),
            })
        })
    }

    /// The kernel as it would execute so compiled; `None` where it cannot be followed.
    fn executed(
        &self,
        compiled: &Arc<CompiledKernel>,
        facts: &Arc<SourceFacts>,
    ) -> Option<Executed> {
        let counts = DynamicCounts::new(compiled, facts)?;
        let resources = Resources {
            registers_per_thread: self.compilation.registers(compiled),
            ..self.input.resources
        };
        let profile = Arc::clone(&self.input.profile);
        let input = ModelInput::new(Arc::clone(facts), Arc::clone(compiled), profile, resources);
        let cycles = models::cycles(&models::Question {
            input: &input,
            ..self.asked()
        })?;
        Some((counts.accessed(), counts.of_a_warp(), cycles))
    }

    /// Cycles per thread under another launch; `None` where the grid then does other work.
    fn per_thread(&self, grid: [u64; 3], block: [u64; 3]) -> Option<f64> {
        let launch = Launch {
            block,
            grid,
            ..self.input.launch
        };
        let facts = self.facts.under(launch);
        if !does_the_same(&self.input.facts, &facts) {
            return None;
        }
        let input = ModelInput::new(
            Arc::new(facts),
            Arc::clone(&self.input.compiled),
            Arc::clone(&self.input.profile),
            self.input.resources,
        );
        let question = models::Question {
            input: &input,
            ..self.asked()
        };
        let threads = (launch.blocks() * launch.threads_per_block()) as f64;
        models::cycles(&question).map(|cycles| cycles / threads)
    }

    fn look(&self, recompiled: Recompile<'_>) -> Vec<Finding> {
        let (input, question) = (self.input, self.asked());
        let base = OnceCell::new();
        let before = || *base.get_or_init(|| models::cycles(&question));
        let relaunched = |before: f64, grid, block| {
            let launch = &input.launch;
            let threads = (launch.blocks() * launch.threads_per_block()) as f64;
            let after = self.per_thread(grid, block);
            after.map_or(1.0, |after| models::speedup(before, after * threads))
        };
        let trial = |changes: &[Change]| {
            let Some(before) = before() else {
                return 1.0;
            };
            let after = models::cycles(&models::Question {
                input: &input.with(changes),
                ..question
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
                    ..question
                }),
                Removal::Factor(factor) => {
                    let mut without: Vec<Factor> = question.without.to_vec();
                    without.push(factor);
                    models::cycles(&models::Question {
                        without: &without,
                        ..question
                    })
                }
                Removal::IdleLanes => {
                    let Launch { grid, block, .. } = input.launch;
                    let whole = launch::whole_warps(block, input.facts.warp_size);
                    // As many blocks as before where nothing says how many threads there are.
                    let grid = if input.launch.grid_source.is_assumption() {
                        grid
                    } else {
                        launch::whole_warps_grid(grid, block, whole)
                    };
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
        let rounded_up = self.given.rounded_up();
        let around = self.given.around.as_ref();
        let around = around.map(|(around, launches)| warplens_advice::AroundLaunch {
            turns: around,
            launches: *launches,
        });
        let context = warplens_advice::Context {
            input,
            facts: &input.facts,
            kernel: self.kernel,
            compiled: &input.compiled,
            profile: &input.profile,
            occupancy: &input.occupancy,
            registers_known: self.compilation.registers_known(),
            enabled: &|rule| suppress::is_enabled(rule, self.settings),
            block_varies: self.given.block_varies,
            grid_by_text: self.given.grid_by_text,
            asks_for_shared: self.given.asks_for_shared,
            cluster: self.given.cluster.or(self.kernel.cluster),
            allows_large_clusters: self.given.allows_large_clusters,
            rounded_up: &rounded_up,
            memory: &self.given.memory,
            around: around.as_ref(),
            cycles: &before,
            gain: &gain,
            trial: &trial,
            trials: &Cell::new(0),
            recompiled,
        };
        if self.overrides.unadvised {
            warplens_advice::impossible(&context)
        } else {
            warplens_advice::run(&context)
        }
    }
}
