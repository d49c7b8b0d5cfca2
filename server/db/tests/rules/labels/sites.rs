//! What there is to find in a kernel, labelled by a person who does not know the rules.

use std::collections::BTreeMap;

use warplens_oracle::{Access, BranchKind, Run, Space, Verdict};

use super::compiler::Words;
use super::kernels::Kernel;

/// What a label is about. Rules of one family name the same thing by its causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Accesses of device memory that move more sectors than their bytes fill.
    Coalescing,
    /// The same of those whose addresses, or lanes, depend on data.
    Gathers,
    /// Those that only begin in the wrong place.
    Alignment,
    /// Accesses of shared memory that take more passes than their width.
    Banks,
    /// Accesses of constant memory for which the lanes name several words.
    Constants,
    /// Loads for which all lanes name one word.
    OneWord,
    /// Loads in loops that go to one address in all iterations.
    Repeated,
    /// Lines whose loads take words again that other threads of the block, or they themselves, have taken.
    Shared,
    /// Atomics with many lanes on one address.
    HotAtomics,
    /// Atomics that go to one address in all iterations.
    LoopAtomics,
    /// `if` and `switch` that part warps where it costs.
    Branches,
    /// Loops whose lanes leave apart where it costs.
    Trips,
    /// Barriers of the block that hold together more than the lanes of warps.
    Barriers,
    /// Barriers that some threads do not come to.
    Parting,
    /// What a compiler says of a kernel, for the rule named.
    Compiled(&'static str),
    /// What follows from the launch by the rule's definition.
    Arithmetic(&'static str),
}

impl Family {
    /// Who labels it.
    pub fn labeller(self) -> &'static str {
        match self {
            Family::Compiled(_) => "compiler",
            Family::Arithmetic(_) => "arithmetic",
            _ => "oracle",
        }
    }

    /// The family of a rule; `None` where it cannot be told.
    pub fn of(rule: &'static str) -> Option<Family> {
        Some(match rule {
            "mem/aos" | "mem/column-walk" | "mem/strided" | "mem/uncoalesced" => Family::Coalescing,
            "mem/gather" => Family::Gathers,
            "mem/misaligned" => Family::Alignment,
            "smem/bank-conflict" => Family::Banks,
            "const/divergent-index" => Family::Constants,
            "mem/warp-same-address" => Family::OneWord,
            "mem/loop-invariant-load" => Family::Repeated,
            "mem/redundant-global" => Family::Shared,
            "atomic/hot-address" => Family::HotAtomics,
            "atomic/in-loop" => Family::LoopAtomics,
            "div/tid-branch" => Family::Branches,
            "div/loop-trip" => Family::Trips,
            "sync/redundant-barrier" => Family::Barriers,
            "div/early-exit-before-barrier" => Family::Parting,
            "arith/double-literal"
            | "arith/fast-math"
            | "arith/half-scalar"
            | "arith/int-div-mod"
            | "arith/narrow-int"
            | "arith/no-fma"
            | "arith/pow"
            | "arith/sincos"
            | "arith/slow-trig-range"
            | "local/dynamic-array"
            | "local/large-frame"
            | "loop/unsigned-counter"
            | "mem/narrow-access"
            | "mem/no-restrict"
            | "reg/spill"
            | "occ/bounds-spill" => Family::Compiled(rule),
            "launch/impossible"
            | "launch/not-warp-multiple"
            | "launch/tiny-block"
            | "launch/small-grid"
            | "launch/one-fat-block"
            | "launch/tail" => Family::Arithmetic(rule),
            _ => return None,
        })
    }

    /// True where a site is a whole kernel.
    pub fn of_kernels(self) -> bool {
        matches!(
            self,
            Family::Parting | Family::Compiled(_) | Family::Arithmetic(_)
        )
    }
}

/// Where: the file, the kernel, the line (0 of a whole kernel).
pub type Where = (String, String, u32);

/// Every labelled site.
pub type Sites = BTreeMap<(Family, Where), Verdict>;

/// Adds the sites of one kernel.
///
/// # Errors
/// It does not run, or does what C leaves undefined.
pub fn label(kernel: &Kernel<'_>, words: &Words, sites: &mut Sites) -> Result<(), String> {
    let at = |line| (kernel.file.name.clone(), kernel.name.clone(), line);
    let mut add = |family, line, verdict: Verdict| {
        let site = sites.entry((family, at(line))).or_insert(verdict);
        // Of several on one line the worst is what a finding is about.
        *site = (*site).max(verdict);
    };
    let threads = by_arithmetic(kernel, words, &mut add);
    words.label(kernel, &mut add);
    if threads > MOST_THREADS {
        return Ok(());
    }
    let run = kernel.run(0)?;
    let other = kernel.run(1)?;
    let missed = run
        .undefined
        .as_ref()
        .filter(|what| what.what == Run::MISSED);
    if let (Some(what), None) = (&run.undefined, missed) {
        return Err(what.to_string());
    }
    let looped = loops(kernel);
    for (key, requests) in &run.tally.accesses {
        // In a called function, that of another line may be told where the call is.
        let line = key.via.first().copied().unwrap_or(key.place.line);
        // With other contents it goes elsewhere.
        let coalescing = if other.tally.accesses.get(key) == Some(requests) {
            Family::Coalescing
        } else {
            Family::Gathers
        };
        let in_loop = looped.iter().any(|lines| lines.contains(&line));
        match (key.space, key.access) {
            (Space::Global, Access::Atomic) => {
                add(Family::HotAtomics, line, requests.hot());
                add(coalescing, line, requests.uncoalesced());
                if in_loop {
                    add(Family::LoopAtomics, line, requests.repeated());
                }
            }
            (Space::Global, access) => {
                add(coalescing, line, requests.uncoalesced());
                add(Family::Alignment, line, requests.misaligned());
                if access == Access::Load {
                    add(Family::OneWord, line, requests.one_word());
                    if in_loop {
                        add(Family::Repeated, line, requests.repeated());
                    }
                }
            }
            (Space::Shared, Access::Load | Access::Store) => {
                add(Family::Banks, line, requests.conflict());
            }
            (Space::Constant, _) => add(Family::Constants, line, requests.several_words()),
            (Space::Shared, Access::Atomic) => {}
        }
    }
    for (line, reuse) in &run.tally.reuse {
        add(Family::Shared, *line, reuse.again());
    }
    for (key, ways) in &run.tally.branches {
        let line = key.via.first().copied().unwrap_or(key.place.line);
        let verdict = ways.splits(run.tally.issued);
        match key.fork {
            BranchKind::If | BranchKind::Switch => add(Family::Branches, line, verdict),
            BranchKind::Loop => add(Family::Trips, line, verdict),
            BranchKind::Select => {}
        }
    }
    barriers(kernel, run.parted, &mut add);
    Ok(())
}

/// The lines of each loop, by counting brackets from its head on.
fn loops(kernel: &Kernel<'_>) -> Vec<std::ops::RangeInclusive<u32>> {
    let mut open: Vec<(u32, i32)> = Vec::new();
    let mut found = Vec::new();
    let mut depth = 0;
    for (line, text) in kernel.text() {
        let code = text.split("//").next().unwrap_or(text);
        let head = ["for (", "while (", "do {"]
            .iter()
            .any(|word| code.contains(word));
        if head && !code.trim_end().ends_with(';') {
            open.push((line, depth));
        } else if head {
            found.push(line..=line);
        }
        depth += code.matches('{').count() as i32 - code.matches('}').count() as i32;
        while let Some(&(from, at)) = open.last() {
            // A head alone waits for its statement.
            let done = depth <= at && (line > from || code.contains('}'));
            if !done || (code.trim_end().ends_with('{')) {
                break;
            }
            found.push(from..=line);
            open.pop();
        }
    }
    found
}

fn barriers(kernel: &Kernel<'_>, parted: bool, add: &mut impl FnMut(Family, u32, Verdict)) {
    let lines: Vec<u32> = kernel
        .text()
        .filter(|(_, text)| {
            let code = text.split("//").next().unwrap_or(text);
            code.contains("__syncthreads()") || code.contains("barrier(CLK")
        })
        .map(|(line, _)| line)
        .collect();
    if lines.is_empty() {
        return;
    }
    add(Family::Parting, 0, Verdict::of(parted));
    let races = |narrowed| kernel.watched(narrowed).is_ok_and(|run| run.race.is_some());
    let sound = !races(None);
    for line in lines {
        let verdict = match (sound, races(Some(line))) {
            (false, _) => Verdict::Open,
            (true, true) => Verdict::No,
            (true, false) => Verdict::Yes,
        };
        add(Family::Barriers, line, verdict);
    }
}

/// Of the default GPU, an A100: threads of a warp and, at most, of a block, SMs, threads that an SM holds, its registers, bytes
/// of its shared memory (of which each block has 1024 besides its own).
const WARP: u64 = 32;
const MOST_THREADS: u64 = 1024;
const SMS: u64 = 108;
const RESIDENT: u64 = 2048;
const REGISTERS: u64 = 65536;
const SHARED: u64 = 164 << 10;

/// Labels a launch; its threads per block.
fn by_arithmetic(
    kernel: &Kernel<'_>,
    words: &Words,
    add: &mut impl FnMut(Family, u32, Verdict),
) -> u64 {
    let launch = &kernel.file.analysis.kernels[kernel.index]
        .analysis
        .facts
        .launch;
    let (threads, blocks) = (launch.threads_per_block(), launch.blocks());
    let mut say = |rule, holds: Option<bool>| {
        let verdict = holds.map_or(Verdict::Open, Verdict::of);
        add(Family::Arithmetic(rule), 0, verdict);
    };
    let waits = kernel
        .text()
        .any(|(_, text)| text.contains("__syncthreads") || text.contains("barrier("));
    say("launch/impossible", Some(threads > MOST_THREADS));
    say(
        "launch/not-warp-multiple",
        Some(!threads.is_multiple_of(WARP)),
    );
    say("launch/tiny-block", Some(threads < 64));
    say(
        "launch/small-grid",
        Some(blocks < SMS || waits && blocks < 2 * SMS),
    );
    let Some(registers) = words.registers(kernel) else {
        say("launch/one-fat-block", None);
        say("launch/tail", None);
        return threads;
    };
    let input = &kernel.file.analysis.kernels[kernel.index].analysis.input;
    let shared = input.resources.static_shared_bytes + launch.dynamic_shared_bytes;
    let resident = (RESIDENT / threads.max(1))
        .min(REGISTERS / (registers.next_multiple_of(8) * threads.next_multiple_of(WARP)).max(1))
        .min(SHARED / (shared + 1024))
        .clamp(1, 32);
    say(
        "launch/one-fat-block",
        Some(waits && threads >= 512 && resident == 1 && blocks > SMS),
    );
    let waves = blocks as f64 / (SMS * resident) as f64;
    let idle = (waves.ceil() - waves) / waves.ceil();
    say("launch/tail", Some(waves > 1.0 && idle >= 0.2));
    threads
}
