//! Query family: what models, rules, the report and the JSON read of a kernel: its facts and what the machine executes, joined.
//!
//! In: facts, a [`Compilation`], a GPU. Out: [`ModelInput`]. What holds: it is a function of the two; nothing that is asked of a model
//! or a rule is part of it.

use std::sync::Arc;

use warplens_codegen::{CompiledKernel, Options};
use warplens_facts::call_executions;
use warplens_facts::facts::{Source, SourceFacts};
use warplens_ir::{Kernel, Language, Storage};
use warplens_machine::{Profile, launch_problem};
use warplens_models::{ExecutedCall, ModelInput, Resources};
use warplens_toolchain::KernelReport;

use crate::compiler_reports;
use crate::contents::Contents;
use crate::launch::Given;
use crate::lowered::{Lowered, argument_bytes};
use crate::memo::hash;

/// A compiled kernel by who knows best: the user, a compiler's report, the prediction.
pub(crate) struct Compilation<'a> {
    /// As predicted.
    pub(crate) predicted: Arc<CompiledKernel>,
    /// The prediction with a compiler's report in the place of what that is about.
    pub(crate) compiled: Arc<CompiledKernel>,
    /// How it is compiled.
    pub(crate) options: Options,
    report: Option<&'a KernelReport>,
    /// The user's.
    registers: Option<u32>,
    key: u64,
}

impl<'a> Compilation<'a> {
    pub(crate) fn new(
        lowered: &Lowered,
        predicted: Arc<CompiledKernel>,
        options: Options,
        report: Option<&'a KernelReport>,
        registers: Option<u32>,
    ) -> Compilation<'a> {
        let compiled = match report {
            Some(report) => Arc::new(compiler_reports::in_place_of(&predicted, report)),
            None => Arc::clone(&predicted),
        };
        Compilation {
            key: hash(&[&lowered.shape, &options, &report, &registers]),
            predicted,
            compiled,
            options,
            report,
            registers,
        }
    }

    /// Who gives the registers: `user`, `compiler` or `estimated`.
    pub(crate) fn registers_source(&self) -> &'static str {
        match (self.registers, self.report) {
            (Some(_), _) => "user",
            (None, Some(_)) => "compiler",
            (None, None) => "estimated",
        }
    }

    /// True where the user or a compiler gives the registers.
    pub(crate) fn registers_known(&self) -> bool {
        self.registers.is_some() || self.report.is_some()
    }

    /// Registers of a thread where this is executed.
    pub(crate) fn registers(&self, compiled: &CompiledKernel) -> u32 {
        self.registers.unwrap_or(compiled.registers)
    }

    /// What a thread and a block take of an SM; `declared` is the shared memory that the source declares, which counts where no
    /// compiler reported a block's.
    fn resources(&self, kernel: &Kernel, profile: &Profile, declared: u64) -> Resources {
        let reported = match self.report {
            Some(report) => Some(report.static_shared_bytes),
            None => self.compiled.shared_bytes,
        };
        Resources {
            registers_per_thread: self.registers(&self.compiled),
            static_shared_bytes: reported.unwrap_or(declared),
            argument_shared_bytes: argument_bytes(kernel, profile),
            local_bytes_per_thread: self.compiled.local_bytes,
            spill_bytes_per_thread: self.compiled.spill_frame,
        }
    }

    /// What they take as far as it is known before the source is followed: a launch that nothing gives follows from it.
    pub(crate) fn before_launch(&self, kernel: &Kernel, profile: &Profile) -> Resources {
        self.resources(kernel, profile, static_shared_bytes(kernel))
    }
}

/// Shared memory of a block that the kernel declares with its size.
fn static_shared_bytes(kernel: &Kernel) -> u64 {
    let arrays = kernel.vars.iter();
    let arrays = arrays.filter(|var| var.storage == Storage::Shared);
    arrays.map(|var| var.ty.size()).sum()
}

/// The calls that a warp makes, as far as their number is known.
fn calls(kernel: &Kernel, facts: &SourceFacts) -> Vec<ExecutedCall> {
    let made = call_executions(kernel, facts).into_iter();
    made.filter_map(|made| {
        let site = kernel.calls.get(made.call)?.site;
        Some(ExecutedCall {
            call: made.call,
            line: site.line,
            times: made.of_a_warp,
        })
    })
    .collect()
}

impl Contents {
    /// A kernel's facts, known by `facts_key`, joined with its compilation; and what the result is known by.
    pub(crate) fn model_input(
        &self,
        kernel: &Kernel,
        (facts, facts_key): (&Arc<SourceFacts>, u64),
        compilation: &Compilation<'_>,
        profile: &Arc<Profile>,
        given: &Given,
    ) -> (Arc<ModelInput>, u64) {
        let empty = given.without_threads();
        let key = hash(&[&facts_key, &compilation.key, &empty]);
        let make = || {
            let resources = compilation.resources(kernel, profile, facts.static_shared_bytes);
            let (facts, compiled) = (Arc::clone(facts), Arc::clone(&compilation.compiled));
            // What a compiler reported has the instructions of its calls.
            let calls = match compilation.report {
                Some(_) => Vec::new(),
                None => calls(kernel, &facts),
            };
            let grid = facts.launch.grid;
            // OpenCL has no limit of work groups: how a driver makes a launch of a range is its own.
            let limited = kernel.language != Language::OpenCl;
            let too_large = || match facts.launch.grid_source {
                Source::Assumed => None,
                _ if limited || grid.contains(&0) => launch_problem(profile, grid, [1; 3]),
                _ => None,
            };
            let why = empty.map(str::to_owned).or_else(too_large);
            let input =
                ModelInput::new(Arc::clone(&facts), compiled, Arc::clone(profile), resources);
            match why {
                Some(why) => input.refused(why),
                None => input.with_calls(calls),
            }
        };
        (self.inputs.get_or(key, make), key)
    }
}
