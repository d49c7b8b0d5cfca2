//! The rule catalogue: facts and estimates in, findings and code actions out. One rule a folder.
//!
//! [`run`] applies every rule to one kernel; [`actions`] offers the edits that answer findings. What a rule means, why it
//! costs and how sure it is are in its page, which is what `warplens explain` prints and what the diagnostics' links
//! open ([`catalogue`], [`href`]).
//!
//! A folder `rules/<category>/<rule>/` has all of a rule: what it finds (`mod.rs`), its code actions, `page.md`, and
//! `fixtures/`. `rules/mod.rs` is the registry, which `cargo xtask generate` writes from the folders. What several rules
//! read of a kernel is in `subjects`, what several actions do to a text in `fixes`; neither knows a rule.

mod brief;
mod catalogue;
mod evidence;
pub mod fixes;
mod rule;
mod rules;
mod subjects;
mod wording;

#[cfg(test)]
mod testing;

use std::cell::Cell;
use std::fmt;

use warplens_codegen::{Class, CompiledKernel};
use warplens_facts::facts::{Site, SourceFacts};
use warplens_host::{HostLoop, HostMemory};
use warplens_ir::{Kernel, stop};
use warplens_machine::{Occupancy, Profile};
use warplens_models::{Change, Factor, ModelInput};

pub use catalogue::{catalogue, find, href};
pub use rule::{Rule, State};
pub use wording::{VISIBLE as VISIBLE_GAIN, times};

use rule::{Look, When};
use rules::RULES;

/// How loud a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something that may be worth a look: predicted gain under 5 %.
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

/// Where a finding is.
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
    /// The head of the loop around the launch, or the host's call in it by its number.
    HostLoop(Option<usize>),
}

/// The loop of the host program around a launch.
#[derive(Debug, Clone, Copy)]
pub struct AroundLaunch<'a> {
    /// The loop.
    pub turns: &'a HostLoop,
    /// How often the program makes the launch, where a run of it says so.
    pub launches: Option<u64>,
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
    /// A headline of at most 100 letters, what it gains and what to do; then lines with the cause and what it depends on.
    pub message: String,
    /// Predicted whole-kernel speedup of removing the cause; 1.0 when there is none.
    pub gain: f64,
    /// Further places.
    pub related: Vec<(Site, String)>,
    /// Index into the facts' accesses, where the finding is about one.
    pub access: Option<usize>,
    /// Index into the facts' shared arrays, where the finding is about one.
    pub shared_array: Option<usize>,
    /// The alternative, where a code action cannot see it from the rule alone.
    pub cure: Option<Cure>,
}

impl Finding {
    /// The first line of the message.
    pub fn headline(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

/// The alternative to what a finding is about.
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
    /// The loop unrolled by this factor; `None` is as often as it runs.
    Unroll(Option<u64>),
    /// This many sums in place of one.
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
    /// The kernel as the machine executes it.
    pub input: &'a ModelInput,
    /// The source as written: the input's.
    pub facts: &'a SourceFacts,
    /// The kernel as the source says it, its device functions in place of their calls.
    pub kernel: &'a Kernel,
    /// What the machine executes.
    pub compiled: &'a CompiledKernel,
    /// The GPU.
    pub profile: &'a Profile,
    /// Resident blocks and warps.
    pub occupancy: &'a Occupancy,
    /// True for a rule that is enabled: what is on trial is not looked for otherwise.
    pub enabled: &'a dyn Fn(&str) -> bool,
    /// True where the registers are the compiler's or the user's word, false where they are estimated.
    pub registers_known: bool,
    /// True where one statement launches the kernel with several blocks, of which this is one: a program that tries them.
    pub block_varies: bool,
    /// True where the text of the launch says the grid, whatever the program is started with.
    pub grid_by_text: bool,
    /// The program that launches asks for more dynamic shared memory than every block is granted; `None` where no program
    /// is seen to launch it.
    pub asks_for_shared: Option<bool>,
    /// Blocks of a cluster, on each axis: what the launch asks for, else what the kernel's attribute says.
    pub cluster: Option<[u64; 3]>,
    /// The program that launches allows clusters of more than eight blocks; `None` where no program is seen to launch it.
    pub allows_large_clusters: Option<bool>,
    /// Integer parameters that the program's launch divides by the block, rounding up, to get its grid.
    pub rounded_up: &'a [String],
    /// What the host does with the memory of the arguments, where the file that launches says so.
    pub memory: &'a [HostMemory],
    /// The loop of the host program around the launch, where the function that launches has one.
    pub around: Option<&'a AroundLaunch<'a>>,
    /// Predicted cycles of the whole launch; `None` where there is no prediction.
    pub cycles: &'a dyn Fn() -> Option<f64>,
    /// Predicted whole-kernel speedup of removing one cause: 1.0 is none. Whatever is not a finite number
    /// above 1 counts as none.
    pub gain: &'a dyn Fn(Removal) -> f64,
    /// Predicted whole-kernel speedup of some changes, below 1 where it becomes slower. A block of another shape is
    /// [`Removal::Launch`]'s.
    pub trial: Trial<'a>,
    /// The trials that the rule at work has made.
    pub trials: &'a Cell<usize>,
    /// Compiles a changed copy of the kernel: what it executes then. `None` where it cannot be followed.
    pub recompiled: Recompile<'a>,
}

/// Compiles a changed copy of a kernel and predicts it under the same launch.
pub type Recompile<'a> = &'a dyn Fn(&Kernel) -> Option<Recompilation>;

/// A kernel compiled as it is and with something changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Recompilation {
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

/// Predicts the kernel with some changes.
pub type Trial<'a> = &'a dyn Fn(&[Change]) -> f64;

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("kernel", &self.facts.name)
            .finish_non_exhaustive()
    }
}

/// Changes of one kernel that a rule may always try one by one: a model walks the whole kernel for each.
pub(crate) const MOST_APART: usize = 16;
/// Accesses that the models may walk for the trials of one rule beyond those.
pub(crate) const MOST_WALKED: usize = 16_000;

/// Changed copies of one kernel that a rule may compile, and the accesses that these may have in all: each
/// is compiled and counted from the start.
const MOST_COMPILED: usize = 4;
const MOST_COMPILED_ACCESSES: usize = 1_000;

/// The largest speedup a finding may promise.
const MOST_GAIN: f64 = 1000.0;

impl Context<'_> {
    /// The predicted gain, never less than 1 and never a non-number. Where a model leaves no time at all
    /// when a cause is gone, it has left its domain: nothing is believed beyond [`MOST_GAIN`].
    fn gain(&self, removal: Removal) -> f64 {
        believed((self.gain)(removal))
    }

    /// The predicted gain of some changes, likewise; `None` where one rule has tried so much on so long a kernel that more
    /// would keep the reader waiting: each trial walks the whole kernel.
    fn trial(&self, changes: &[Change]) -> Option<f64> {
        self.try_out(changes).map(believed)
    }

    /// How many times as long the kernel takes with some changes: what it gains where the source has what they take away.
    fn slowdown(&self, changes: &[Change]) -> Option<f64> {
        self.try_out(changes).map(|gain| believed(gain.recip()))
    }

    /// The kernel with something changed, compiled and counted anew; `None` where it cannot be followed, and where one rule has
    /// asked for so much of so long a kernel that more would keep the reader waiting.
    fn recompile(&self, changed: &Kernel) -> Option<Recompilation> {
        let may = self.may_recompile();
        self.trials.set(self.trials.get() + 1);
        may.then(|| (self.recompiled)(changed))?
    }

    /// True where [`Context::recompile`] would try: to be asked before a large kernel is copied.
    fn may_recompile(&self) -> bool {
        let tried = self.trials.get();
        let little = (tried + 1) * self.facts.accesses.len() <= MOST_COMPILED_ACCESSES;
        tried < MOST_COMPILED && little
    }

    fn try_out(&self, changes: &[Change]) -> Option<f64> {
        let tried = self.trials.get();
        self.trials.set(tried + 1);
        let few = tried < MOST_APART || (tried + 1) * self.facts.accesses.len() <= MOST_WALKED;
        few.then(|| (self.trial)(changes))
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
    let mut findings = impossible(ctx);
    // A launch that cannot happen has no cost: its figures would be fiction.
    let moments: &[When] = if findings.is_empty() {
        &[
            When::Traffic,
            When::Reload,
            When::Cost,
            When::Trial,
            When::Always,
        ]
    } else {
        &[When::Always]
    };
    findings.extend(moments.iter().flat_map(|&moment| looked(ctx, moment)));
    brief::lower(ctx, &mut findings);
    findings.iter_mut().for_each(wording::headed);
    findings.sort_by_key(|finding| match finding.place {
        Place::Launch | Place::Kernel | Place::Host(_) | Place::HostLoop(_) => (0, 0),
        Place::Site(site) => (1, site.span.start),
    });
    findings
}

/// The findings about a launch that cannot happen, and no others.
pub fn impossible(ctx: &Context<'_>) -> Vec<Finding> {
    looked(ctx, When::Launch)
}

/// What the rules find that look at this moment, in the order of their ids.
fn looked(ctx: &Context<'_>, moment: When) -> Vec<Finding> {
    let rules = RULES.iter().filter_map(|rule| match rule.look {
        Look::At(When::Trial, _) if !(ctx.enabled)(rule.id) => None,
        Look::At(when, check) if when == moment => Some(check),
        _ => None,
    });
    let findings = rules.flat_map(|check| {
        stop::check();
        check(&Context {
            trials: &Cell::new(0),
            ..*ctx
        })
    });
    findings
        .map(|finding| evidence::weighed(ctx, finding))
        .collect()
}

/// Every code action for a range, each proved: in the order of the rules that they answer.
pub fn actions(request: &fixes::Request<'_>) -> Vec<fixes::Fix> {
    RULES
        .iter()
        .flat_map(|rule| rule.actions)
        .flat_map(|action| action(request))
        .map(|fix| fixes::Fix {
            title: wording::titled(&fix.title),
            ..fix
        })
        .collect()
}

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
    fn what_is_found_with_another_rule_names_one_that_looks() {
        for rule in RULES {
            if let Look::With(other) = rule.look {
                let other = find(other).unwrap_or_else(|| panic!("{}: no rule {other}", rule.id));
                assert!(matches!(other.look, Look::At(..)), "{}", rule.id);
            }
        }
    }

    #[test]
    fn what_is_looked_for_only_when_it_is_enabled_is_a_preview() {
        for rule in RULES {
            if let Look::At(When::Trial, _) = rule.look {
                assert_eq!(rule.state, State::Preview, "{}", rule.id);
            }
        }
    }

    #[test]
    fn what_is_tried_out_is_looked_for_only_when_it_is_enabled() {
        let mut gather = access(10);
        gather.pattern = warplens_facts::facts::Pattern::DataDependent;
        gather.stride = None;
        gather.transactions_per_request = None;
        let kernel = Kernel::new().access(gather);
        let rules = |enabled: &dyn Fn(&str) -> bool| -> Vec<&str> {
            let findings = kernel.findings_of(enabled, |_| 1.5);
            findings.iter().map(|finding| finding.rule).collect()
        };
        assert_eq!(rules(&|rule| rule == "mem/gather"), ["mem/gather"]);
        assert_eq!(rules(&|_| false), [""; 0]);
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
