//! Facts of what an execution noted: accesses and branches measured over the launch, counts summed, assumptions listed.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use warplens_ir::Storage;
use warplens_ir::{AssumptionKind, Type, stop};
use warplens_symbolic::{Arena, Id};

use crate::access::Measure as MeasureAccess;
use crate::branch::Measure as MeasureBranch;
use crate::cases::Cases;
use crate::chance;
use crate::context::{Budget, Executions};
use crate::dependence::latency_on;
use crate::draft::{AccessDraft, From};
use crate::executor::Executor;
use crate::facts::{
    self, Assumed, Assumption, BranchKind, Count, OpClass, Operation, Operator, Source, SourceFacts,
};
use crate::value::DEFAULT_ARGUMENT;
use crate::{flow, lockstep};

impl Executor<'_> {
    pub(crate) fn facts(mut self) -> SourceFacts {
        let budget = Budget::new();
        let mut executions = self.executions(&budget);
        let launch = self.request.launch;
        let block_assumed = launch.block_source.is_assumption();
        let grid_assumed = launch.grid_source.is_assumption();
        let taken: Vec<&str> = self
            .kernel
            .assumed
            .iter()
            .filter(|assumption| assumption.is_taken() && !assumption.is_of_own_layout())
            .map(|assumption| assumption.name.as_str())
            .collect();
        let layouts: Vec<(&str, &str)> = self
            .kernel
            .assumed
            .iter()
            .filter(|assumption| assumption.is_of_own_layout())
            .map(|assumption| (assumption.name.as_str(), assumption.value.as_str()))
            .collect();
        let symbols = |ids: [Id; 3], arena: &Arena| {
            ids.map(|id| arena.as_symbol(id).expect("made as symbols"))
        };
        let threads = symbols(self.thread, &self.arena);
        let blocks = symbols(self.block, &self.arena);

        let mut cache: FxHashMap<_, facts::Access> = FxHashMap::default();
        let mut accesses = Vec::with_capacity(self.accesses.len());
        let covers = self.request.covers.to_vec();
        let mut cases = Cases::new(grid_assumed.then_some(blocks), covers);
        let mut measure = MeasureAccess {
            arena: &mut self.arena,
            domain: &self.domain,
            budget: &budget,
            cases: &mut cases,
            profile: self.profile,
            threads,
            blocks,
            block_dim: self.block_dim,
            grid_dim: self.grid_dim,
            block_assumed,
            grid_assumed,
            taken: &taken,
            layouts: &layouts,
            reasons: &self.reasons,
            evenly: &self.evenly,
        };
        for draft in &self.accesses {
            stop::check();
            let key = (
                draft.address,
                draft.context,
                draft.kind(),
                draft.element,
                (draft.unseen, draft.of_tensor),
            );
            let known = cache
                .get(&key)
                .filter(|known| draft.array == known.array && draft.doubt.is_none())
                .cloned();
            let access = match known {
                Some(known) => facts::Access {
                    site: draft.site,
                    text: draft.text.clone(),
                    field: draft.field.clone(),
                    alias: draft.alias,
                    instruction: draft.instruction.clone(),
                    ahead: draft.ahead,
                    combines: draft.combines,
                    ..known
                },
                None => {
                    let context = &self.contexts[draft.context];
                    let access = measure.access(draft, context, executions[draft.context]);
                    cache.insert(key, access.clone());
                    access
                }
            };
            accesses.push(access);
        }
        touched_fields(&mut accesses);

        let mut measure = MeasureBranch {
            arena: &mut self.arena,
            domain: &self.domain,
            budget: &budget,
            cases: &mut cases,
            contexts: &self.contexts,
            executions: &executions,
            blocks,
            block: self.block,
            threads_per_block: launch.threads_per_block(),
            block_assumed: block_assumed || !taken.is_empty(),
            grid_assumed,
            reasons: &self.reasons,
        };
        let mut branches: Vec<facts::Branch> = self
            .branches
            .iter()
            .map(|draft| measure.branch(draft))
            .collect();
        measure.hazards(&self.barriers, &mut branches);
        let taken = !taken.is_empty() || !layouts.is_empty();
        let assumed = block_assumed || grid_assumed || taken;
        let ran = self.run_on_contents(assumed, &mut accesses, &mut branches, &mut executions);
        if !ran && !assumed {
            self.count_what_is_open(&mut accesses, &mut branches);
        }

        let mut constraints: Vec<String> = accesses
            .iter()
            .flat_map(|access| &access.constraints)
            .chain(branches.iter().flat_map(|branch| &branch.constraints))
            .cloned()
            .collect();
        constraints.sort_unstable();
        constraints.dedup();
        let counts = self.sum_counts(&executions, assumed);
        let operations = self.sum_operations(&executions);
        let mut assumptions = self.assumptions();
        assumptions.append(&mut self.guesses);
        let static_shared_bytes = self.static_shared_bytes();
        let bodies = self.routines.totals(&executions);
        let flow = flow::finish(std::mem::take(&mut self.flow), &executions, &bodies);
        let ways = self.finished_ways(&executions, &branches, assumed);
        let latency = |link| latency_on(self.profile, link);
        let (dependence, first_uses) =
            self.dependence
                .finish(accesses.len(), &executions, &latency);
        for (access, first_use) in accesses.iter_mut().zip(first_uses) {
            access.first_use = first_use;
        }
        SourceFacts {
            name: self.kernel.name.clone(),
            name_site: self.kernel.name_site,
            copied_lines: self.copied_lines.into(),
            launch,
            warp_size: self.profile.warp_size,
            accesses,
            branches,
            counts,
            operations,
            flow,
            ways,
            dependence,
            shared_arrays: self.shared.into_iter().map(|(_, array)| array).collect(),
            static_shared_bytes,
            max_threads_per_block: self.kernel.max_threads,
            assumptions,
            constraints,
            not_understood: self.lost,
        }
    }

    /// Runs the launch on numbers where the symbolic execution left something open that depends on no data.
    fn count_what_is_open(&self, accesses: &mut [facts::Access], branches: &mut [facts::Branch]) {
        // What a thread's own array holds passes for data.
        let own_arrays = !self.indexed_local.is_empty();
        let by_data = |id: Id| self.arena.opaque(id) == Some(true) && !own_arrays;
        // Lanes of which data decides whether they are there: a run does not know them either.
        let unsure = |context: usize| self.contexts[context].by_data && !own_arrays;
        // Where C gives no value, one run says nothing.
        let is_open = |access: &facts::Access, draft: &AccessDraft| {
            let no_value = draft.doubt.is_some() && access.certainty == facts::Certainty::Unknown;
            !access.exact() && draft.space != facts::Space::Local && !no_value
        };
        let open_access = accesses.iter().zip(&self.accesses).any(|(access, draft)| {
            is_open(access, draft) && !by_data(draft.address) && !unsure(draft.context)
        });
        let open_branch = branches.iter().zip(&self.branches).any(|(branch, draft)| {
            branch.certainty != facts::Certainty::Exact
                && !draft.condition.is_some_and(by_data)
                && !unsure(draft.context)
        });
        if self.has_losses() || !(open_access || open_branch) {
            return;
        }
        let Some(record) = lockstep::run(&lockstep::LaunchInput {
            kernel: self.kernel,
            profile: self.profile,
            launch: &self.request.launch,
            arguments: self.arguments,
            contents: &[],
        }) else {
            return;
        };
        let ways = self.routines.ways();
        for (access, draft) in accesses.iter_mut().zip(&self.accesses) {
            if is_open(access, draft)
                && let Some(requests) = record.access(draft, &ways)
            {
                crate::access::counted(access, &requests.sums);
            }
        }
        for (branch, draft) in branches.iter_mut().zip(&self.branches) {
            if branch.certainty != facts::Certainty::Exact
                && let Some(found) = record.branch(draft, &ways)
            {
                crate::branch::counted(branch, found);
            }
        }
    }

    fn sum_counts(&self, executions: &[Executions], launch_assumed: bool) -> Vec<Count> {
        let mut counts = Vec::new();
        for class in OpClass::ALL {
            let sure = !launch_assumed && !self.has_losses();
            let (mut value, mut exact, mut some) = (0.0, sure, false);
            let mut complete = !self.has_losses();
            for (&(context, of), &operations) in &self.counts {
                if of != class {
                    continue;
                }
                some = true;
                value += operations * executions[context].lanes;
                complete &= executions[context].exact;
                exact &= executions[context].exact
                    && !self.contexts[context].depends_on_assumption(&self.arena);
            }
            if some {
                counts.push(Count {
                    class,
                    value: Some(value),
                    exact,
                    complete,
                });
            }
        }
        counts
    }

    fn sum_operations(&self, executions: &[Executions]) -> Vec<Operation> {
        let mut sums: BTreeMap<(u32, Operator), (f64, f64)> = BTreeMap::new();
        // In a fixed order, so that sums are the same every time.
        let mut counted: Vec<_> = self.operators.iter().collect();
        counted.sort_unstable_by_key(|(key, _)| **key);
        for (&(context, line, operator), &operations) in counted {
            let (threads, warps) = sums.entry((line, operator)).or_default();
            *threads += operations * executions[context].lanes;
            *warps += operations * executions[context].warps;
        }
        sums.into_iter()
            .map(|((line, operator), (threads, warps))| Operation {
                operator,
                line,
                threads,
                warps,
            })
            .collect()
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let launch = self.request.launch;
        let list = |extents: [u64; 3]| format!("{},{},{}", extents[0], extents[1], extents[2]);
        let mut found = Vec::new();
        let mut add = |symbol: Assumed, value: String, source: &str| {
            found.push(Assumption {
                symbol,
                value,
                source: source.to_owned(),
            });
        };
        for (symbol, extents, source) in [
            (Assumed::Block, launch.block, launch.block_source),
            (Assumed::Grid, launch.grid, launch.grid_source),
        ] {
            if source.is_assumption() {
                let from = if source == Source::Config {
                    "config"
                } else {
                    "default"
                };
                add(symbol, list(extents), from);
            }
        }
        let dynamic = self.shared.iter().any(|(_, array)| array.dynamic);
        if dynamic && launch.shared_source.is_assumption() && !launch.block_source.is_assumption() {
            let bytes = launch.dynamic_shared_bytes;
            add(Assumed::DynamicShared, bytes.to_string(), "default");
        }
        for assumption in &self.kernel.assumed {
            // For what the build defines: the option that settles it.
            let source = match &assumption.kind {
                AssumptionKind::Build { .. } => format!("-D {}=…", assumption.name),
                AssumptionKind::Options {
                    place,
                    one_of_several: false,
                } => format!("build options, {place}"),
                AssumptionKind::Options { place, .. } => {
                    format!("build options, {place}, the first of several builds")
                }
                AssumptionKind::Template
                | AssumptionKind::Target
                | AssumptionKind::Unread
                | AssumptionKind::Layout { .. }
                | AssumptionKind::Linked
                | AssumptionKind::Conditional { .. } => "default".into(),
            };
            let name = Assumed::Named(assumption.name.clone());
            add(name, assumption.value.clone(), &source);
        }
        let mut aligned = false;
        for var in &self.kernel.vars {
            aligned |= matches!(
                (&var.ty, var.storage),
                (Type::Pointer(..), Storage::Param(_))
            );
        }
        for (_, var) in self.kernel.integers() {
            let given = self.arguments.iter().find(|(name, ..)| *name == var.name);
            let (value, assumed) =
                given.map_or((DEFAULT_ARGUMENT, true), |(_, v, assumed)| (*v, *assumed));
            let mut covers = self.request.covers.iter();
            let covered = covers.any(|one| one.parameter == var.name);
            if assumed {
                let source = match given {
                    Some(_) if covered => "launch-site",
                    Some(_) => "config",
                    None => "default",
                };
                let name = Assumed::Named(var.name.clone());
                add(name, value.to_string(), source);
            }
        }
        if aligned || !self.shared.is_empty() {
            add(
                Assumed::Alignment,
                "pointers and shared arrays 256-byte aligned".to_owned(),
                "default",
            );
        }
        let mut stated: Vec<From> = Vec::new();
        let undecided = self.branches.iter().enumerate();
        for (_, branch) in undecided.filter(|(at, _)| !self.decided.contains(at)) {
            let data = branch.kind != BranchKind::Loop
                && branch
                    .condition
                    .is_some_and(|id| self.arena.opaque(id) == Some(true));
            let from = branch.probability_from;
            // One line for all that have the default, one for each expectation.
            let again = from == From::Default && stated.contains(&from);
            if !data || from == From::Directive || again {
                continue;
            }
            stated.push(from);
            let probability = chance::text(branch.probability);
            let condition = (from != From::Default).then(|| branch.text.clone());
            let source = match from {
                From::Expectation => "__builtin_expect",
                _ => "default",
            };
            add(Assumed::Probability(condition), probability, source);
        }
        found
    }

    fn static_shared_bytes(&self) -> u64 {
        self.shared
            .iter()
            .filter(|(_, array)| !array.dynamic)
            .map(|(_, array)| array.bytes)
            .sum()
    }
}

/// For each array of structures the bytes of the structure that the kernel touches.
fn touched_fields(accesses: &mut [facts::Access]) {
    let mut touched: FxHashMap<(String, String), Vec<(String, u32)>> = FxHashMap::default();
    for access in accesses.iter() {
        if let Some(field) = &access.field {
            let fields = touched
                .entry((access.array.clone(), field.structure.clone()))
                .or_default();
            if !fields.iter().any(|(name, _)| *name == field.field) {
                fields.push((field.field.clone(), access.bytes_per_lane));
            }
        }
    }
    for access in accesses.iter_mut() {
        if let Some(field) = &mut access.field
            && let Some(fields) = touched.get(&(access.array.clone(), field.structure.clone()))
        {
            field.touched = fields.iter().map(|(_, bytes)| bytes).sum();
        }
    }
}
