//! Query family: the facts of a kernel's source under one launch.
//!
//! In: a kernel in IR, a launch with its arguments, what the user gives of conditions and arrays, a GPU. Out: [`SourceFacts`]. What
//! holds: neither how the kernel is compiled, nor a compiler's report, nor what is asked of models and rules is part of it: facts stay
//! when these change.

use std::hash::Hash;
use std::sync::Arc;

use warplens_facts::facts::{Alias, Launch, SourceFacts};
use warplens_facts::{Contents as ArrayContents, Cover, Request, analyze};
use warplens_ir::{Kernel, Storage, Type, Var};
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
            &(&resolved.array_bytes, &resolved.boxes, resolved.cluster),
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

    /// The facts of a changed copy of the kernel, whose own are `known`, under the same launch.
    pub(crate) fn of_changed(&self, known: &SourceFacts, kernel: &Kernel) -> SourceFacts {
        let restricted = restricted(known, &self.lowered.kernel, kernel);
        restricted.unwrap_or_else(|| self.of_other(kernel))
    }

    fn of_other(&self, kernel: &Kernel) -> SourceFacts {
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
            cluster: self.resolved.cluster,
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

/// The facts of a kernel that differs from another one, whose facts are known, in what is `__restrict__` alone: by that they say how
/// the arrays of its parameters are reached, and nothing else.
fn restricted(known: &SourceFacts, before: &Kernel, after: &Kernel) -> Option<SourceFacts> {
    let mut as_before = after.clone();
    for (var, old) in as_before.vars.iter_mut().zip(&before.vars) {
        var.restrict = old.restrict;
    }
    if as_before != *before {
        return None;
    }
    let mut facts = known.clone();
    for access in &mut facts.accesses {
        if !matches!(access.alias, Alias::Parameter | Alias::Restrict) {
            continue;
        }
        let is_parameter = |var: &&Var| {
            let of_launch = matches!(var.storage, Storage::Param(_));
            of_launch && matches!(var.ty, Type::Pointer(..)) && var.name == access.array
        };
        let mut parameters = after.vars.iter().filter(is_parameter);
        let (Some(parameter), None) = (parameters.next(), parameters.next()) else {
            return None;
        };
        access.alias = if parameter.restrict {
            Alias::Restrict
        } else {
            Alias::Parameter
        };
    }
    Some(facts)
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

#[cfg(test)]
mod tests {
    use warplens_facts::facts::Source;
    use warplens_hir::{TemplateArguments, lower};
    use warplens_machine::Profiles;
    use warplens_syntax::{Expanded, Language};

    use super::*;

    #[test]
    fn what_is_restrict_changes_how_parameters_are_reached_and_nothing_else() {
        let text = "__device__ void add(float *to, const float *from, int i) { to[i] += from[i]; }\n\
            __global__ void k(float *out, const float *in, volatile int *flags, float *const *rows) {\n\
            \x20 __shared__ float tile[256];\n  int i = threadIdx.x;\n  tile[i] = in[i];\n\
            \x20 __syncthreads();\n  for (int j = 0; j < 8; j++) add(out, tile, i + j);\n\
            \x20 out[i] = rows[i][2] + in[2 * i] + flags[0];\n}\n";
        let contents = Contents::default();
        let text = Expanded::fragment(text, Language::Cuda);
        let program = contents.program(&text, &[]);
        let kernel = program.items.last().expect("the kernel");
        let kernel = lower(&text, kernel, &program.unit, &TemplateArguments::default());
        let kernel = kernel.expect("it is lowered");
        let profiles = Profiles::builtin();
        let profile = profiles.get("a100-sxm4-40gb").expect("a profile of ours");
        let facts = |kernel: &Kernel| {
            analyze(&Request {
                kernel,
                launch: Launch {
                    grid: [4, 1, 1],
                    block: [256, 1, 1],
                    dynamic_shared_bytes: 0,
                    block_source: Source::Directive,
                    grid_source: Source::Directive,
                    shared_source: Source::Directive,
                },
                profile: &profile,
                arguments: &[],
                reals: &[],
                covers: &[],
                probabilities: &[],
                contents: &[],
                extents: &[],
                boxes: &[],
                cluster: None,
            })
        };
        let known = facts(&kernel);
        let mut changed = kernel.clone();
        for var in changed.vars.iter_mut().take(kernel.params as usize) {
            var.restrict = !var.volatile;
        }
        let expected = facts(&changed);
        assert_ne!(known, expected);
        assert_eq!(restricted(&known, &kernel, &changed), Some(expected));
        let other = Kernel {
            params: 3,
            ..changed
        };
        assert_eq!(restricted(&known, &kernel, &other), None);
    }
}
