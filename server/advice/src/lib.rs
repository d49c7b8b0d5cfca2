//! The rule catalogue: facts and estimates in, findings out. One rule a file.
//!
//! [`run`] applies every rule to one kernel. What a rule means, why it costs and how sure it is stands in
//! one Markdown page a rule under `docs/`, which is what `warplens explain` prints and what the
//! diagnostics' links open ([`catalogue`], [`href`]).

mod access;
mod alias;
mod arith;
mod arith_double_literal;
mod arith_fast_math;
mod arith_fp64_slow_gpu;
mod arith_half_scalar;
mod arith_int_div_mod;
mod arith_narrow_int;
mod arith_no_fma;
mod arith_pow;
mod arith_sincos;
mod arith_slow_trig_range;
mod atomic_hot_address;
mod atomic_in_loop;
mod atomics;
mod call_not_inlined;
mod catalogue;
mod const_divergent_index;
mod div_early_exit_before_barrier;
mod div_loop_trip;
mod div_tid_branch;
mod exchange;
pub mod fixes;
mod host_pageable_or_managed;
mod ilp_dependent_chain;
mod launch;
mod launch_impossible;
mod launch_not_warp_multiple;
mod launch_one_fat_block;
mod launch_small_grid;
mod launch_tail;
mod launch_tiny_block;
mod local_dynamic_array;
mod local_large_frame;
mod loop_uniform_branch;
mod loop_unroll;
mod loop_unsigned_counter;
mod mem_aos;
mod mem_async_copy;
mod mem_column_walk;
mod mem_gather;
mod mem_l2_working_set;
mod mem_loop_invariant_load;
mod mem_misaligned;
mod mem_narrow_access;
mod mem_no_restrict;
mod mem_redundant_global;
mod mem_strided;
mod mem_uncoalesced;
mod mem_warp_same_address;
mod occ_bounds_spill;
mod occ_limiter;
mod occ_no_launch_bounds;
mod reg_pressure;
mod reg_spill;
mod smem_bank_conflict;
mod smem_over_budget;
mod smem_over_pad;
mod smem_unused_tile;
mod subscripts;
mod sync_redundant_barrier;
mod sync_wide_fence;
mod wording;

#[cfg(test)]
mod testing;

use std::fmt;

use warplens_codegen::{Class, Compiled};
use warplens_facts::facts::{KernelFacts, Node, Site};
use warplens_ir::{HostMemory, Kernel};
use warplens_machine::{Occupancy, Profile};
use warplens_models::Factor;

pub use catalogue::{RuleInfo, State, catalogue, find, href};

/// How loud a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something that may be worth a look: predicted gain under 2 %.
    Hint,
    /// Worth knowing.
    Information,
    /// Certain and costly: predicted gain of 10 % or more.
    Warning,
    /// Cannot work.
    Error,
}

impl Severity {
    /// The name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Hint => "hint",
            Severity::Information => "information",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// Where a finding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Inside the kernel.
    Site(Site),
    /// At the kernel's name.
    Kernel,
    /// Where the launch comes from: the launch site or the directive, else the kernel's name.
    Launch,
    /// The host's call, by its number among [`Context::memory`].
    Host(usize),
}

/// One finding; positions are relative to the kernel's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Rule id.
    pub rule: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// The number first, then the cause, then the assumption.
    pub message: String,
    /// Predicted whole-kernel speedup of removing the cause; 1.0 when there is none.
    pub gain: f64,
    /// Further places.
    pub related: Vec<(Site, String)>,
    /// Index into the facts' accesses, where the finding is about one.
    pub access: Option<usize>,
    /// Index into the facts' shared arrays, where the finding is about one.
    pub shared_array: Option<usize>,
    /// What would do instead, where a code action cannot see it from the rule alone.
    pub cure: Option<Cure>,
}

/// What would do instead of what a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// Nothing, whatever the launch.
    Nothing,
    /// Nothing, under the launch that is known.
    NothingHere,
    /// The same for the lanes of a warp alone.
    WithinWarp,
    /// The same for the threads of a block alone.
    WithinBlock,
    /// Pointers that are said not to overlap.
    Restrict,
    /// The loop written out so many times; `None` is as often as it runs.
    Unroll(Option<u64>),
    /// So many sums in place of one.
    Split(u32),
}

/// One cause that a finding would remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Removal {
    /// This access (index into the facts' accesses) in its ideal number of transactions and passes.
    Access(usize),
    /// All of one factor.
    Factor(Factor),
    /// No idle lanes in the last warp of a block: the kernel with its block rounded up to whole warps and
    /// the grid shrunk to the same number of threads; the ratio of the times per thread.
    IdleLanes,
    /// Another grid and block: the kernel is analysed anew; the ratio of the times per thread.
    Launch {
        /// Blocks.
        grid: [u64; 3],
        /// Threads of a block.
        block: [u64; 3],
    },
}

/// What a rule sees: one kernel under one launch on one GPU.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// What is known about the kernel.
    pub facts: &'a KernelFacts,
    /// The kernel as the source says it, its device functions in place of their calls.
    pub kernel: &'a Kernel,
    /// What the machine executes.
    pub compiled: &'a Compiled,
    /// The GPU.
    pub profile: &'a Profile,
    /// Resident blocks and warps.
    pub occupancy: &'a Occupancy,
    /// True for a rule that somebody hears: what is on trial is not looked for otherwise.
    pub heard: &'a dyn Fn(&str) -> bool,
    /// True where the registers are the compiler's or the user's word, false where they are estimated.
    pub registers_known: bool,
    /// True where one statement launches the kernel with several blocks, of which this is one: a program that tries them.
    pub block_varies: bool,
    /// What the host does with the memory of the arguments, where the file that launches says so.
    pub memory: &'a [HostMemory],
    /// Predicted cycles of the whole launch; `None` where there is no prediction.
    pub cycles: &'a dyn Fn() -> Option<f64>,
    /// Predicted whole-kernel speedup of removing one cause: 1.0 is none. Whatever is not a finite number
    /// above 1 counts as none.
    pub gain: &'a dyn Fn(Removal) -> f64,
    /// Predicted whole-kernel speedup of what a rule makes of a copy of the facts, below 1 where it becomes slower. Registers, shared memory and
    /// launch there decide the occupancy; a block of another shape is [`Removal::Launch`]'s.
    pub trial: Trial<'a>,
    /// Compiles a changed copy of the kernel: what it executes then. `None` where it cannot be followed.
    pub recompiled: Recompile<'a>,
}

/// Compiles a changed copy of a kernel and predicts it under the same launch.
pub type Recompile<'a> = &'a dyn Fn(&Kernel) -> Option<Recompiled>;

/// A kernel compiled as it is and with something changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Recompiled {
    /// Loads and stores that a warp executes, on average, by place and class.
    pub before: Vec<(Site, Class, f64)>,
    /// The same with the change.
    pub after: Vec<(Site, Class, f64)>,
    /// Registers of a thread, as it is and with the change.
    pub registers: [u32; 2],
    /// Instructions that a warp executes, on average, as it is and with the change.
    pub instructions: (f64, f64),
    /// Bytes that find no register, as it is and with the change.
    pub spill_bytes: (u64, u64),
    /// Predicted whole-kernel speedup; below 1 where it becomes slower.
    pub gain: f64,
}

/// Predicts the facts as something that is given a copy of them leaves them.
pub type Trial<'a> = &'a dyn Fn(&mut dyn FnMut(&mut KernelFacts)) -> f64;

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("kernel", &self.facts.name)
            .finish_non_exhaustive()
    }
}

/// The largest speedup a finding may promise.
const MOST_GAIN: f64 = 1000.0;

impl Context<'_> {
    /// The predicted gain, never less than 1 and never a non-number. Where a model leaves no time at all
    /// when a cause is gone, it has left its domain: nothing is believed beyond [`MOST_GAIN`].
    fn gain(&self, removal: Removal) -> f64 {
        believed((self.gain)(removal))
    }

    /// The predicted gain of a change to the facts, likewise.
    fn trial(&self, mut change: impl FnMut(&mut KernelFacts)) -> f64 {
        believed((self.trial)(&mut change))
    }

    /// How many times as long the kernel takes with a change to the facts: what it gains where the source has what the
    /// facts lack.
    fn slowdown(&self, mut change: impl FnMut(&mut KernelFacts)) -> f64 {
        believed((self.trial)(&mut change).recip())
    }
}

/// Takes accesses out of the work of a warp.
fn drop_accesses(flow: &mut Vec<Node>, accesses: &[usize]) {
    flow.retain(|node| !matches!(node, Node::Access { access, .. } if accesses.contains(access)));
    for node in flow {
        match node {
            Node::Loop { body, .. } => drop_accesses(body, accesses),
            Node::Branch {
                then, otherwise, ..
            } => {
                drop_accesses(then, accesses);
                drop_accesses(otherwise, accesses);
            }
            Node::Compute { uses, .. } | Node::Access { uses, .. } => {
                uses.retain(|used| !accesses.contains(used));
            }
            Node::Barrier { .. } => {}
        }
    }
}

fn believed(gain: f64) -> f64 {
    if gain.is_finite() {
        gain.clamp(1.0, MOST_GAIN)
    } else {
        1.0
    }
}

/// Every finding of one kernel, in source order, findings about the launch first.
///
/// One access has one finding at most, by the most specific rule; accesses of one array on one line that
/// share a cause are one finding.
pub fn run(ctx: &Context<'_>) -> Vec<Finding> {
    let mut findings = launch_impossible::check(ctx);
    // A launch that cannot happen has no cost: its figures would be fiction.
    if findings.is_empty() {
        findings.extend(COSTS.iter().flat_map(|check| check(ctx)));
        let heard = ON_TRIAL.iter().filter(|(rule, _)| (ctx.heard)(rule.id));
        findings.extend(heard.flat_map(|(_, check)| check(ctx)));
    }
    findings.extend(ALWAYS.iter().flat_map(|check| check(ctx)));
    findings.sort_by_key(|finding| match finding.place {
        Place::Launch | Place::Kernel | Place::Host(_) => (0, 0),
        Place::Site(site) => (1, site.span.start),
    });
    findings
}

/// The findings about a launch that cannot happen, and no others.
pub fn impossible(ctx: &Context<'_>) -> Vec<Finding> {
    launch_impossible::check(ctx)
}

/// What looks for findings of one rule, or of several that share a subject.
type Check = fn(&Context<'_>) -> Vec<Finding>;

/// Rules about what something costs under the launch.
const COSTS: &[Check] = &[
    access::check,
    alias::check,
    arith_double_literal::check,
    arith_fast_math::check,
    arith_fp64_slow_gpu::check,
    arith_pow::check,
    arith_sincos::check,
    atomics::check,
    const_divergent_index::check,
    div_loop_trip::check,
    div_tid_branch::check,
    launch::check,
    local_dynamic_array::check,
    occ_limiter::check,
    occ_no_launch_bounds::check,
    reg_pressure::check,
    smem_bank_conflict::check,
    smem_over_pad::check,
    smem_unused_tile::check,
    sync_redundant_barrier::check,
];

/// Those of them that are tried out: only for who asked for them, several compile the kernel again.
const ON_TRIAL: &[(RuleInfo, Check)] = &[
    (arith_half_scalar::INFO, arith_half_scalar::check),
    (arith_int_div_mod::INFO, arith_int_div_mod::check),
    (arith_narrow_int::INFO, arith_narrow_int::check),
    (arith_no_fma::INFO, arith_no_fma::check),
    (arith_slow_trig_range::INFO, arith_slow_trig_range::check),
    (call_not_inlined::INFO, call_not_inlined::check),
    (
        host_pageable_or_managed::INFO,
        host_pageable_or_managed::check,
    ),
    (ilp_dependent_chain::INFO, ilp_dependent_chain::check),
    (loop_uniform_branch::INFO, loop_uniform_branch::check),
    (loop_unroll::INFO, loop_unroll::check),
    (loop_unsigned_counter::INFO, loop_unsigned_counter::check),
    (mem_async_copy::INFO, mem_async_copy::check),
    (mem_gather::INFO, mem_gather::check),
    (mem_l2_working_set::INFO, mem_l2_working_set::check),
    (mem_narrow_access::INFO, mem_narrow_access::check),
    (mem_redundant_global::INFO, mem_redundant_global::check),
    (mem_warp_same_address::INFO, mem_warp_same_address::check),
    (smem_over_budget::INFO, smem_over_budget::check),
    (sync_wide_fence::INFO, sync_wide_fence::check),
];

/// Rules about what is right or wrong under any launch.
const ALWAYS: &[Check] = &[
    div_early_exit_before_barrier::check,
    occ_bounds_spill::check,
    reg_spill::check,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kernel, access, bank_conflict, branch, column_walk};

    #[test]
    fn findings_come_in_source_order_with_the_launch_first() {
        let kernel = Kernel::new()
            .block([100, 1, 1])
            .access(bank_conflict(30))
            .access(column_walk(10))
            .branch(branch(20));
        let rules: Vec<_> = kernel.findings(|_| 1.5).iter().map(|f| f.rule).collect();
        assert_eq!(
            rules,
            [
                "launch/not-warp-multiple",
                "mem/column-walk",
                "div/tid-branch",
                "smem/bank-conflict"
            ]
        );
    }

    #[test]
    fn a_launch_that_cannot_happen_has_no_costs() {
        let kernel = Kernel::new().block([2000, 1, 1]).access(column_walk(10));
        let rules: Vec<_> = kernel.findings(|_| 1.5).iter().map(|f| f.rule).collect();
        assert_eq!(rules, ["launch/impossible"]);
    }

    #[test]
    fn what_is_only_looked_for_when_asked_for_is_on_trial() {
        for (rule, _) in ON_TRIAL {
            assert_eq!(rule.state, State::Preview, "{}", rule.id);
        }
    }

    #[test]
    fn a_gain_that_is_no_number_is_none() {
        for strange in [f64::NAN, f64::INFINITY, -3.0, 0.2] {
            let findings = Kernel::new().access(column_walk(10)).findings(|_| strange);
            assert_eq!(findings[0].gain, 1.0);
            assert_eq!(findings[0].severity, Severity::Hint);
        }
    }

    #[test]
    fn a_perfect_kernel_has_no_finding() {
        assert_eq!(Kernel::new().access(access(10)).findings(|_| 2.0), []);
    }
}
