//! Given contents of memory: the launch is run on them, and what depended on data is counted.
//!
//! Baghsorkhi et al. 2010 (section 4.3) run a slice of the kernel that reveals the structure of its data on the GPU,
//! one warp on each SM. Here [`lockstep`] runs the integers of the kernel on the contents: all blocks where that is
//! not too much, else blocks spread over the launch that stand for all.

use crate::why::Why;
use std::sync::Arc;

use crate::branch;
use crate::context::Executions;
use crate::executor::Executor;
use crate::facts::{Access, Assumed, Assumption, Branch, BranchKind, Certainty, Space, TripCount};
use crate::flow::Draft;
use crate::lockstep::{self, BranchCounts, Record};

/// What an array parameter points to when the kernel begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Contents {
    /// The parameter.
    pub parameter: String,
    /// Its elements one behind the other, little-endian.
    pub bytes: Arc<[u8]>,
    /// The host program fills it so: where it cannot be used nothing is said.
    pub of_run: bool,
}

/// Warps that come by, and threads.
type Population = (f64, f64);

impl Executor<'_> {
    /// True where the address of an access or how often something runs depends on data.
    fn data_decides(&self) -> bool {
        let mut accesses = self.accesses.iter();
        accesses.any(|draft| self.arena.opaque(draft.address) == Some(true))
            || self.contexts.iter().any(|context| context.by_data)
            || self.branches.iter().any(|branch| {
                branch
                    .condition
                    .is_none_or(|id| self.arena.opaque(id) == Some(true))
            })
    }

    /// Runs the launch on the given contents and makes what depends on data what was counted; false where there are none,
    /// or that cannot be done.
    pub(crate) fn run_on_contents(
        &mut self,
        assumed: bool,
        accesses: &mut [Access],
        branches: &mut [Branch],
        executions: &mut [Executions],
    ) -> bool {
        let contents = self.request.contents;
        if contents.is_empty() || contents.iter().all(|one| one.of_run) && !self.data_decides() {
            return false;
        }
        let question = lockstep::LaunchInput {
            kernel: self.kernel,
            profile: self.profile,
            launch: &self.request.launch,
            arguments: self.arguments,
            contents: self.request.contents,
        };
        let losses = self.has_losses();
        let record = if losses {
            None
        } else {
            lockstep::run(&question)
        };
        let Some(record) = record else {
            let reason = if losses {
                "not used: not all of the kernel was understood"
            } else {
                "not used: the kernel is too much to run, or does what is not followed"
            };
            for contents in self.request.contents {
                self.note(&contents.parameter, reason.to_owned());
            }
            return false;
        };
        for (name, element) in &record.past_end {
            self.note(
                name,
                format!("too short: element {element} is read and taken as unknown"),
            );
        }
        for name in &record.written {
            self.note(name, "not used: the kernel writes to the array".to_owned());
        }
        let blocks = self.request.launch.blocks();
        let assumed = assumed || self.argument_assumed();
        let why = if record.blocks < blocks {
            let ran = record.blocks;
            self.guesses.push(Assumption {
                symbol: Assumed::Sample,
                value: format!("{ran} of {blocks} blocks run on the given contents"),
                source: "contents".to_owned(),
            });
            Some(Why::BlocksRun { ran, blocks })
        } else {
            assumed.then_some(Why::RunAssumed)
        };

        let ways = self.routines.ways();
        let by_data = |context: usize| self.contexts[context].why.is_some();
        let mut counted = Vec::new();
        for (access, draft) in accesses.iter_mut().zip(&self.accesses) {
            let depends = self.arena.opaque(draft.address) == Some(true) || by_data(draft.context);
            // All that ran under given values is counted, whatever it was left open for.
            let open = depends || why.is_none() && draft.space != Space::Local;
            if access.exact() || !open || draft.doubt.is_some() {
                continue;
            }
            if let Some(requests) = record.access(draft, &ways) {
                crate::access::counted(access, &requests.sums);
                qualify(&mut access.certainty, &mut access.why, why.as_ref());
            } else if let Some(doubt) = doubt(&record) {
                access.why = Some(doubt);
            }
        }
        for (at, (branch, draft)) in branches.iter_mut().zip(&self.branches).enumerate() {
            let depends = draft.why.is_some()
                || by_data(draft.context)
                || draft
                    .condition
                    .is_some_and(|condition| self.arena.opaque(condition) == Some(true));
            if branch.certainty == Certainty::Exact || !(depends || why.is_none()) {
                continue;
            }
            if let Some(found) = record.branch(draft, &ways) {
                branch::counted(branch, found);
                qualify(&mut branch.certainty, &mut branch.why, why.as_ref());
                counted.push((at, found));
            } else if let Some(doubt) = doubt(&record) {
                branch.why = Some(doubt);
            }
        }
        let before = executions.to_vec();
        self.follow(&record, &counted, why.is_none(), executions);
        // Of what is still not known it is known how often it is executed.
        for (access, draft) in accesses.iter_mut().zip(&self.accesses) {
            let now = executions[draft.context];
            if access.certainty == Certainty::Unknown && now != before[draft.context] {
                access.requests = Some(now.warps);
                access.active_lanes_per_request = (now.warps > 0.0).then(|| now.lanes / now.warps);
            }
        }
        for (branch, draft) in branches.iter_mut().zip(&self.branches) {
            let now = executions[draft.context];
            if branch.certainty == Certainty::Unknown && now != before[draft.context] {
                branch.evaluations = Some(now.warps);
            }
        }
        for (at, _) in counted {
            self.decide(at);
        }
        let mut flow = std::mem::take(&mut self.flow);
        self.settle_loops(&mut flow, executions);
        self.flow = flow;
        true
    }

    /// Says something of the contents of an array.
    fn note(&mut self, name: &str, value: String) {
        let mut all = self.request.contents.iter();
        if all.any(|contents| contents.parameter == name && contents.of_run) {
            return;
        }
        self.guesses.push(Assumption {
            symbol: Assumed::Contents(name.to_owned()),
            value,
            source: "contents".to_owned(),
        });
    }

    /// True where an integer argument has a value that was not given.
    fn argument_assumed(&self) -> bool {
        self.kernel.integers().any(|(_, var)| {
            let given = self.arguments.iter().find(|(name, ..)| *name == var.name);
            given.is_none_or(|(.., assumed)| *assumed)
        })
    }

    /// Nothing is assumed of this branch any more.
    fn decide(&mut self, branch: usize) {
        let draft = &self.branches[branch];
        if draft.kind == BranchKind::Loop {
            let symbol = Assumed::Trips(draft.text.clone());
            self.guesses.retain(|guess| guess.symbol != symbol);
        }
        self.decided.insert(branch);
    }

    /// Makes the executions of contexts that depend on data what was counted. A context of which nothing was recorded
    /// keeps its share of the one around it.
    fn follow(
        &self,
        record: &Record,
        counted: &[(usize, BranchCounts)],
        exact: bool,
        executions: &mut [Executions],
    ) {
        let mut known: Vec<Option<Population>> = vec![None; executions.len()];
        let ways = self.routines.ways();
        for (at, ways) in counted {
            let draft = &self.branches[*at];
            known[draft.context] = Some((ways.evaluations, ways.threads));
            if let (BranchKind::Loop, Some(inner)) = (draft.kind, draft.inner) {
                known[inner] = Some((ways.iterations, ways.thread_iterations));
            }
            if !matches!(draft.kind, BranchKind::If | BranchKind::Select) {
                continue;
            }
            for parted in self.ways.iter().filter(|parted| parted.branch == *at) {
                known[parted.taken] = Some((ways.taken, ways.taken_threads));
                if let Some(other) = parted.other {
                    let warps = ways.evaluations - ways.taken + ways.split;
                    known[other] = Some((warps, ways.threads - ways.taken_threads));
                }
            }
        }
        for draft in &self.accesses {
            if known[draft.context].is_none()
                && let Some(requests) = record.access(draft, &ways)
            {
                known[draft.context] = Some(requests.sums.population());
            }
        }
        let before = executions.to_vec();
        for (context, population) in known.into_iter().enumerate() {
            if before[context].exact {
                continue;
            }
            if let Some((warps, lanes)) = population {
                executions[context] = Executions {
                    warps,
                    lanes,
                    exact,
                };
                continue;
            }
            if let Some(parent) = self.contexts[context].parent {
                let share = |now: f64, part: f64, whole: f64| {
                    if whole > 0.0 { now * part / whole } else { 0.0 }
                };
                let (now, then, part) = (executions[parent], before[parent], before[context]);
                executions[context].warps = share(now.warps, part.warps, then.warps);
                executions[context].lanes = share(now.lanes, part.lanes, then.lanes);
            }
        }
    }

    /// The loops that were counted have trips like any other.
    fn settle_loops(&self, drafts: &mut [Draft], executions: &[Executions]) {
        for draft in drafts {
            match draft {
                Draft::Loop {
                    outer,
                    inner,
                    known,
                    count,
                    body,
                    ..
                } => {
                    let counted = self
                        .decided
                        .iter()
                        .any(|at| self.branches[*at].inner == Some(*inner));
                    if counted && executions[*outer].warps > 0.0 {
                        *known = true;
                        *count = TripCount::Number;
                    }
                    self.settle_loops(body, executions);
                }
                Draft::Branch {
                    then, otherwise, ..
                } => {
                    self.settle_loops(then, executions);
                    self.settle_loops(otherwise, executions);
                }
                Draft::Compute { .. }
                | Draft::Access { .. }
                | Draft::Barrier { .. }
                | Draft::Call { .. } => {}
            }
        }
    }
}

/// What was counted on a sample, or for an assumed launch, is as sure as that.
fn qualify(certainty: &mut Certainty, why: &mut Option<Why>, sample: Option<&Why>) {
    if let Some(sample) = sample {
        *certainty = Certainty::Assumed;
        *why = Some(sample.clone());
    }
}

/// Why something is still not known.
fn doubt(record: &Record) -> Option<Why> {
    let beyond = record
        .past_end
        .first()
        .map(|(name, element)| Why::ContentsEnd {
            array: name.clone(),
            element: *element,
        });
    let written = record.written.first();
    beyond.or(written.map(|name| Why::ContentsWritten(name.clone())))
}
