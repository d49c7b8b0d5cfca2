//! What no prediction may say: work of the source that the compiled kernel does not do, and figures that no GPU can have.
//!
//! In goes a [`ModelInput`], out come its defects, none of a prediction that can be true. Tests and `cargo lab sound` ask.

use std::collections::BTreeMap;
use std::fmt;

use warplens_codegen::{MOST_REGISTERS, Work};
use warplens_facts::facts::{Form, Op, OpClass, Space};

use super::ModelInput;

/// More local memory than this a thread, in bytes, is none that a compiler makes of a kernel.
const MOST_LOCAL: u64 = 64 << 10;

/// Longer than this, in milliseconds, no launch is left to run: an hour.
const LONGEST: f64 = 3_600_000.0;

/// Of a bound from below a time may miss this part: rounding.
const TOLERANCE: f64 = 0.01;

/// What it takes to begin and end a launch, in cycles, is none of the kernel's time: of an empty one nothing is left.
const RAMP: f64 = 1000.0;

/// A defect of a prediction.
#[derive(Debug, Clone, PartialEq)]
pub enum Defect {
    /// The source does such work, the compiled kernel does none of it, and nothing says why it may be left out.
    Vanished(Work),
    /// A figure that no GPU can have, in words.
    Absurd(String),
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::Vanished(work) => write!(f, "vanished: {work:?}"),
            Defect::Absurd(what) => write!(f, "absurd: {what}"),
        }
    }
}

impl ModelInput {
    /// The defects of the compiled kernel, and of a predicted time in cycles where there is one.
    pub fn defects(&self, cycles: Option<f64>) -> Vec<Defect> {
        let mut found: Vec<Defect> = self.vanished().map(Defect::Vanished).collect();
        found.extend(self.absurd(cycles).into_iter().map(Defect::Absurd));
        found
    }

    /// Kinds of work that the source does and the compiled kernel has no instruction of. What was there and had no effect may go,
    /// unless something reads a value that nothing gives: then the effect is what was lost.
    fn vanished(&self) -> impl Iterator<Item = Work> {
        let compiled = &self.compiled;
        let lost = !compiled.unwritten.is_empty();
        Work::ALL.into_iter().filter(move |work| {
            let done = (work.classes().iter()).any(|class| {
                compiled
                    .instructions
                    .get(class)
                    .is_some_and(|count| *count > 0)
            });
            compiled.complete
                && !done
                && self.is_in_source(*work)
                && (lost || !compiled.built.contains(work))
        })
    }

    fn is_in_source(&self, work: Work) -> bool {
        let accesses = |space: Space, op: Op| {
            self.facts.accesses.iter().any(|access| {
                // What matrix units read by themselves is no load of a warp.
                let executed =
                    access.requests != Some(0.0) && !matches!(access.form, Form::Described { .. });
                // The copy's one instruction moves past the registers: it is a load of the compiled kernel.
                let copied = (access.instruction.as_deref())
                    .is_some_and(|instruction| instruction.starts_with("cp."));
                let executed = executed && !(copied && op == Op::Store);
                access.space == space && access.op == op && executed
            })
        };
        let counts = |class: OpClass| {
            let counts = self.facts.counts.iter();
            let mut counts = counts.filter(|count| count.class == class);
            counts.any(|count| count.value != Some(0.0))
        };
        match work {
            Work::GlobalLoad => accesses(Space::Global, Op::Load),
            Work::GlobalStore => accesses(Space::Global, Op::Store),
            Work::SharedLoad => accesses(Space::Shared, Op::Load),
            Work::SharedStore => accesses(Space::Shared, Op::Store),
            Work::Atomic => counts(OpClass::Atomic),
            Work::Barrier => counts(OpClass::Barrier),
            Work::Float => counts(OpClass::Fp16) || counts(OpClass::Fp32) || counts(OpClass::Fp64),
            Work::Tensor => counts(OpClass::Tensor),
        }
    }

    fn absurd(&self, cycles: Option<f64>) -> Vec<String> {
        let mut found = Vec::new();
        let registers = self.resources.registers_per_thread;
        if registers > MOST_REGISTERS {
            found.push(format!("{registers} registers per thread"));
        }
        let local = self.resources.local_bytes_per_thread + self.resources.spill_bytes_per_thread;
        if local > MOST_LOCAL {
            found.push(format!("{local} bytes of local memory per thread"));
        }
        let occupancy = &self.occupancy;
        if !(0.0..=1.0).contains(&occupancy.fraction) {
            found.push(format!("an occupancy of {}", occupancy.fraction));
        }
        let Some(cycles) = cycles else { return found };
        let milliseconds = cycles / self.profile.sm_clock_mhz / 1e3;
        if milliseconds > LONGEST {
            found.push(format!("{milliseconds:.0} ms"));
        }
        for (what, least) in self.least_cycles() {
            if cycles + RAMP < least * (1.0 - TOLERANCE) {
                found.push(format!("{cycles:.0} cycles, {what} take {least:.0}"));
            }
        }
        found
    }

    /// What a time cannot be less than, in cycles: the instructions of each pipe on all SMs, the passes of shared memory.
    fn least_cycles(&self) -> Vec<(String, f64)> {
        let sms = f64::from(self.profile.sms).max(1.0);
        let mut pipes: BTreeMap<String, f64> = BTreeMap::new();
        for (class, count) in self.instructions.iter().flat_map(|all| &all.classes) {
            if let (Some(pipe), Some(timing)) = (class.pipe(), class.timing(&self.profile)) {
                *pipes.entry(format!("{pipe:?}")).or_default() += count * timing.issue / sms;
            }
        }
        let mut found: Vec<(String, f64)> = pipes.into_iter().collect();
        // What a wide access takes is not the sum of what its parts take.
        let shared = (self.accesses.iter())
            .filter(|access| access.space == Space::Shared && access.merged <= 1.0);
        let passes = shared.map(|access| {
            access.requests.unwrap_or(0.0) * access.passes_per_request.unwrap_or(1.0)
        });
        found.push((
            "passes of shared memory".to_owned(),
            passes.sum::<f64>() / sms,
        ));
        found
    }
}
