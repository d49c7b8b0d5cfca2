//! Query family: a kernel in IR.
//!
//! In: an item of a [`Program`], the launch that binds its template parameters. Out: [`Lowered`], or that it was lost. What holds:
//! places are beside the IR; a panic while lowering costs this kernel and nothing else.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHasher;
use warplens_hir::{Item, TemplateArguments, lower};
use warplens_host::LaunchSite;
use warplens_ir::{Assumption, AssumptionKind, CalleeLine, Kernel};
use warplens_syntax::Expanded;

use crate::lowered::Lowered;
use crate::memo::hash;
use crate::panics::unless_it_panics;
use crate::program::{Program, kernel_name};
use crate::{Engine, Overrides};

impl Engine {
    /// A kernel in IR, and whether it had to be made; `Err` where lowering it failed.
    pub(crate) fn lowered(
        &self,
        program: &Program,
        item: &Item,
        site: &LaunchSite,
        overrides: &Overrides,
    ) -> (Result<Option<Arc<Lowered>>, ()>, bool) {
        let template = TemplateArguments {
            given: overrides
                .template_args
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            explicit: site.template_args.clone(),
            argument_types: site.argument_types.clone(),
        };
        let text = &program.text.text[item.range.clone()];
        let source = &program.text.source[item.source.clone()];
        let template_key = if text.starts_with("template") {
            template.spelled()
        } else {
            String::new()
        };
        let unassumed = program.unassumed.as_ref().and_then(|plain| {
            let name = kernel_name(item);
            if plain.launched_otherwise.contains(name) {
                return None;
            }
            let plain = &plain.program;
            let is_it =
                |other: &&Item| other.kind == item.kind && other.source.start == item.source.start;
            Some((plain, plain.items.iter().find(is_it)?))
        });
        let key = hash(&[
            &program.unit_key,
            &text,
            &item.reading,
            &item.space,
            &source,
            &template_key,
            &program.build_key(),
            &program.text.assumed,
            &directives_within(&program.text, &item.source),
            &program.linked,
            &unassumed
                .as_ref()
                .map(|(plain, item)| (plain.unit_key, &plain.text.text[item.range.clone()])),
        ]);
        if let Some(lowered) = self.contents().kernels.get(key) {
            return (Ok(Some(lowered)), false);
        }
        let made = unless_it_panics(|| {
            #[cfg(debug_assertions)]
            failing::at(failing::Stage::Lowering, text);
            lower(&program.text, item, &program.unit, &template)
        });
        let lowered = match made {
            Some(Some(mut kernel)) => {
                for file in &program.linked {
                    let read = |callee: &CalleeLine| callee.path.as_deref() == Some(file.as_path());
                    if kernel.places.callees().iter().any(read) {
                        let name = file.file_name().unwrap_or_default().to_string_lossy();
                        kernel.assumed.push(Assumption {
                            name: name.into_owned(),
                            value: "linked with this file".to_owned(),
                            kind: AssumptionKind::Linked,
                        });
                    }
                }
                if let Some((plain, item)) = unassumed
                    && let Some(other) = lower(&plain.text, item, &plain.unit, &template)
                {
                    forget_idle_definitions(&mut kernel, other);
                }
                kernel.assumed.extend(program.assumed_of_build());
                Ok(Some(self.contents().kernels.put(key, Lowered::new(kernel))))
            }
            Some(None) => Ok(None),
            None => Err(()),
        };
        (lowered, true)
    }
}

/// Definitions that were assumed for the file and without which this kernel is the same matter nothing to it.
fn forget_idle_definitions(kernel: &mut Kernel, mut without: Kernel) {
    let assumed = std::mem::take(&mut kernel.assumed);
    without.assumed.clear();
    let is_same = *kernel == without;
    let is_definition =
        |one: &Assumption| matches!(one.kind, AssumptionKind::Conditional { taken: true });
    kernel.assumed = assumed;
    if is_same {
        kernel.assumed.retain(|one| !is_definition(one));
    }
}

/// A hash of what the directives in these bytes of the source mean to a kernel there: what is above decides that as well.
fn directives_within(text: &Expanded, kernel: &Range<usize>) -> u64 {
    let mut hasher = FxHasher::default();
    for conditional in &text.undecided {
        let branches = conditional.branches.iter();
        for branch in branches.filter(|branch| kernel.contains(&branch.range.start)) {
            (&conditional.names, branch.range.start - kernel.start).hash(&mut hasher);
        }
    }
    let problems = text.problems.iter();
    for problem in problems.filter(|problem| kernel.contains(&problem.range.start)) {
        let at = problem.range.start - kernel.start;
        (at, problem.range.len(), &problem.message).hash(&mut hasher);
    }
    hasher.finish()
}

/// Panics on purpose, for tests of what a panic costs. No part of a release.
#[cfg(debug_assertions)]
pub(crate) mod failing {
    use std::cell::RefCell;
    use std::sync::OnceLock;

    /// For tests of the program: `lowering:WORD` or `analysing:WORD`.
    const VARIABLE: &str = "WARPLENS_TEST_PANIC";

    /// A query that can be made to fail.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Stage {
        Lowering,
        Analysing,
    }

    /// The stage, and a word of the kernels that fail in it.
    type Failure = (Stage, String);

    thread_local! {
        static OF_THREAD: RefCell<Option<Failure>> = const { RefCell::new(None) };
    }
    static OF_PROGRAM: OnceLock<Option<Failure>> = OnceLock::new();

    /// From now on, on this thread, the query fails for kernels with that in their text; `None` for none.
    #[cfg(test)]
    pub(crate) fn set(fails: Option<(Stage, &str)>) {
        OF_THREAD.set(fails.map(|(stage, word)| (stage, word.to_owned())));
    }

    fn of_program() -> Option<Failure> {
        let value = std::env::var(VARIABLE).ok()?;
        let (stage, word) = value.split_once(':')?;
        let stage = match stage {
            "lowering" => Stage::Lowering,
            "analysing" => Stage::Analysing,
            _ => return None,
        };
        Some((stage, word.to_owned()))
    }

    pub(crate) fn at(stage: Stage, text: &str) {
        let fails = |failure: &Option<Failure>| {
            let failure = failure.as_ref();
            failure.is_some_and(|(of, word)| *of == stage && text.contains(word.as_str()))
        };
        let fails = OF_THREAD.with_borrow(fails) || fails(OF_PROGRAM.get_or_init(of_program));
        assert!(!fails, "made to fail");
    }
}
