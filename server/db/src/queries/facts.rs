//! Query family: the facts of a kernel's source under one launch.
//!
//! In: a kernel in IR, a launch with its arguments, what the user gives of conditions and arrays, a GPU. Out: [`SourceFacts`]. What
//! holds: neither how the kernel is compiled, nor a compiler's report, nor what is asked of models and rules is part of it: facts stay
//! when these change.

use std::hash::Hash;
use std::sync::Arc;

use warplens_facts::facts::{Launch, SourceFacts};
use warplens_facts::{Contents as ArrayContents, Cover, Request, analyze};
use warplens_ir::Kernel;
use warplens_machine::Profile;

use crate::Overrides;
use crate::contents::Contents;
use crate::launch::{Given, Resolved};
use crate::lowered::{Lowered, arrays};
use crate::memo::hash;
use crate::sizes::Sizes;

/// What facts depend on.
pub(crate) struct FactsQuestion<'a> {
    lowered: &'a Lowered,
    profile: &'a Profile,
    resolved: &'a Resolved,
    sizes: &'a Sizes,
    pub(crate) probabilities: Vec<(u32, f64)>,
    pub(crate) contents: Vec<ArrayContents>,
    /// What they are kept under.
    pub(crate) key: u64,
}

impl<'a> FactsQuestion<'a> {
    pub(crate) fn new(
        lowered: &'a Lowered,
        given: &Given,
        (resolved, sizes): (&'a Resolved, &'a Sizes),
        profile: &'a Profile,
        overrides: &Overrides,
    ) -> FactsQuestion<'a> {
        let given_contents = arrays(&lowered.kernel)
            .into_iter()
            .filter_map(|(parameter, _)| {
                let of_run = given.contents.iter().find(|(of, _)| *of == parameter);
                let (bytes, of_run) = match overrides.contents.get(&parameter) {
                    Some(bytes) => (bytes, false),
                    None => (&of_run?.1, true),
                };
                Some(ArrayContents {
                    parameter,
                    bytes: Arc::clone(bytes),
                    of_run,
                })
            });
        let contents: Vec<ArrayContents> = given_contents.collect();
        let probabilities = given.probabilities();
        let of_lines = probabilities.iter();
        let of_lines: Vec<_> = of_lines.map(|&(line, p)| (line, p.to_bits())).collect();
        let key = hash(&[
            &lowered.fingerprint,
            &figures(profile),
            &resolved.launch,
            &resolved.arguments,
            &resolved.reals,
            &resolved.covers,
            &(&resolved.array_bytes, &resolved.boxes),
            &sizes.taken(),
            &of_lines,
            &contents,
        ]);
        FactsQuestion {
            lowered,
            profile,
            resolved,
            sizes,
            probabilities,
            contents,
            key,
        }
    }

    /// The facts under another launch: a rule asks for them once. What the launch's blocks cover together follows the block.
    pub(crate) fn under(&self, launch: Launch) -> SourceFacts {
        let (arguments, covers) = self.covered_by(&launch);
        self.counted(&self.lowered.kernel, launch, &arguments, &covers)
    }

    /// The facts of a changed copy of the kernel under the same launch.
    pub(crate) fn of_changed(&self, kernel: &Kernel) -> SourceFacts {
        let resolved = self.resolved;
        let launch = resolved.launch;
        self.counted(kernel, launch, &resolved.arguments, &resolved.covers)
    }

    fn counted(
        &self,
        kernel: &Kernel,
        launch: Launch,
        arguments: &[(String, i64, bool)],
        covers: &[Cover],
    ) -> SourceFacts {
        let mut facts = analyze(&Request {
            kernel,
            launch,
            profile: self.profile,
            arguments,
            reals: &self.resolved.reals,
            covers,
            probabilities: &self.probabilities,
            contents: &self.contents,
            extents: &self.resolved.array_bytes,
            boxes: &self.resolved.boxes,
        });
        self.sizes.assumed(&mut facts.assumptions);
        facts
    }

    /// The arguments under another launch, and those that its blocks cover: an assumed `n` of a grid of `ceil(n / 100)` is a
    /// multiple of 128 where the blocks have 128 threads.
    fn covered_by(&self, launch: &Launch) -> (Vec<(String, i64, bool)>, Vec<Cover>) {
        let mut arguments = self.resolved.arguments.clone();
        let old = &self.resolved.launch;
        let covers = self.resolved.covers.iter().filter_map(|cover| {
            let axis = usize::from(cover.axis);
            let (before, after) = (old.block[axis] as i64, launch.block[axis] as i64);
            let scaled = cover.divisor.checked_mul(after)?;
            // Blocks that another axis decides cover something else.
            let follows = before > 0 && scaled % before == 0;
            follows.then(|| Cover {
                divisor: scaled / before,
                ..cover.clone()
            })
        });
        let covers: Vec<Cover> = covers.collect();
        if launch.block == old.block {
            return (arguments, covers);
        }
        for (name, value, assumed) in &mut arguments {
            let own = covers.iter().find(|cover| cover.parameter == *name);
            if let Some(cover) = own.filter(|_| *assumed) {
                let blocks = launch.grid[usize::from(cover.axis)];
                *value = i64::try_from(blocks)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(cover.divisor);
            }
        }
        (arguments, covers)
    }
}

/// What of a GPU tells it from others: its name, and what settings change of it.
pub(crate) fn figures(profile: &Profile) -> impl Hash + '_ {
    (
        &profile.id,
        profile.bank_rule,
        profile.sm_clock_mhz.to_bits(),
        profile.limited_to_w.map(f64::to_bits),
    )
}

impl Contents {
    /// A kernel's facts under the launch that it is analysed under.
    pub(crate) fn facts(&self, question: &FactsQuestion<'_>) -> Arc<SourceFacts> {
        let make = || question.under(question.resolved.launch);
        self.facts.get_or(question.key, make)
    }
}
