//! The line above a kernel.

use std::collections::BTreeSet;

use warplens_advice::VISIBLE_GAIN;
use warplens_db::{FileAnalysis, PlacedKernel};
use warplens_facts::facts::{Assumed, Assumption, Launch, Reason, Source, UNKNOWN};
use warplens_report::check;
use warplens_report::figure;
use warplens_report::figure::words;

use crate::earlier::EarlierTime;

/// A title is at most as long: it is shown above code, often beside other lenses.
const LONGEST: usize = 80;
/// Assumptions beyond these are counted, not named.
const MOST_NAMED: usize = 3;
/// Kernels of a file whose times are formulas, up to which lenses give these.
const MOST_FORMULAS: usize = 32;

/// `132 µs · memory bandwidth · occupancy 50 % (registers) · A100 SXM4 40GB`: the time, what bounds it and the occupancy; then, as
/// far as [`LONGEST`] lets them in, its limiter and the GPU. `before`: what the kernel took, which is given before what it takes.
pub fn title(kernel: &PlacedKernel, formulas: bool, before: Option<&EarlierTime>) -> String {
    let profile = &kernel.analysis.profile;
    if let Some(impossible) = &kernel.analysis.input.occupancy.why_impossible {
        return format!("cannot launch: {impossible} · {}", profile.plain_name());
    }
    let limiter = limiter(kernel);
    let (gpu, model) = (profile.plain_name(), profile.model_name());
    let fits = |title: &String| title.chars().count() <= LONGEST;
    // Two long formulas leave no room for anything else; what a formula adds whatever the sizes goes before the GPU does.
    let kinds = [(before, false), (before, true), (None, false), (None, true)];
    let titles = kinds.into_iter().flat_map(|(before, in_short)| {
        let costs = costs(kernel, formulas, before, in_short);
        let with_gpu = [
            format!("{costs}{limiter} · {gpu}"),
            format!("{costs}{limiter} · {model}"),
            format!("{costs} · {gpu}"),
            format!("{costs} · {model}"),
        ];
        with_gpu.into_iter().chain(in_short.then_some(costs))
    });
    let mut longest = String::new();
    for title in titles {
        if fits(&title) {
            return title;
        }
        longest = title;
    }
    longest
}

/// `assumes block 256, n 1024 and 2 more`, where something is assumed.
pub fn assumptions(kernel: &PlacedKernel) -> Option<String> {
    let known = kernel.analysis.input.occupancy.why_impossible.is_none();
    let assumed = known.then(|| assumed(kernel))?;
    let names = (0..=MOST_NAMED).rev();
    let all: Vec<String> = names.filter_map(|most| name_some(&assumed, most)).collect();
    let fits = |title: &&String| title.chars().count() <= LONGEST;
    all.iter().find(fits).or(all.last()).cloned()
}

/// ``set `n`…``, where the time depends on sizes that nothing gives: a click leads to where they are given.
pub fn open_sizes(kernel: &PlacedKernel) -> Option<String> {
    let stand_ins = kernel.analysis.stand_ins();
    let (named, more) = stand_ins.split_at(stand_ins.len().min(MOST_NAMED));
    let named: Vec<String> = named.iter().map(|(name, _)| format!("`{name}`")).collect();
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| format!("set {}{more}…", named.join(", ")))
}

/// The parts of a formula that depend on sizes, `117 ps × n` of `117 ps × n + 1.60 µs`.
fn slopes(formula: &str) -> String {
    let slopes: Vec<&str> = formula
        .split(" + ")
        .filter(|part| part.contains('×'))
        .collect();
    if slopes.is_empty() || formula.contains('(') {
        return formula.to_owned();
    }
    slopes.join(" + ")
}

/// The time, what bounds it, and the occupancy; `in_short` the time as far as it depends on sizes.
fn costs(
    kernel: &PlacedKernel,
    formulas: bool,
    before: Option<&EarlierTime>,
    in_short: bool,
) -> String {
    let analysis = &kernel.analysis;
    let mut parts = Vec::new();
    let shown = formulas || !analysis.has_unknown_sizes();
    let estimate = shown.then(|| analysis.estimate());
    if let Some(estimate) = &estimate {
        let time = check::shown_time(estimate).unwrap_or_else(|| no_estimate(kernel));
        let changed = before.filter(|before| before.is_comparable(kernel) && before.text != time);
        let short = |time: &str| {
            if in_short {
                slopes(time)
            } else {
                time.to_owned()
            }
        };
        parts.push(match changed {
            Some(before) => format!("{} → {}", short(&before.text), short(&time)),
            None => short(&time),
        });
        if let Some(bottleneck) = estimate.bottleneck {
            parts.push(words(bottleneck.name()));
        }
    } else {
        let unknown = analysis.unknown_sizes().join("`, `");
        parts.push(format!("hover for the time by `{unknown}`"));
    }
    let occupancy = analysis.input.occupancy.fraction * 100.0;
    // What nothing says of a block's shared memory leaves room for fewer.
    let mut assumptions = analysis.facts.assumptions.iter();
    let bound = if assumptions.any(|one| one.symbol == Assumed::DynamicShared) {
        "at most "
    } else {
        ""
    };
    if !analysis.is_opaque() {
        parts.push(format!("occupancy {bound}{occupancy:.0} %"));
    }
    parts.join(" · ")
}

/// Why there is no time, in a few words.
fn no_estimate(kernel: &PlacedKernel) -> String {
    let mut lost = kernel.analysis.facts.not_understood.iter();
    let layouts = lost.find(|one| one.reason == Reason::Layouts);
    let why = layouts.map(|one| one.reason.to_string());
    let why = why.as_deref().and_then(|why| why.split(':').next());
    why.unwrap_or("no estimate").to_owned()
}

/// What keeps the occupancy below 100 %.
fn limiter(kernel: &PlacedKernel) -> String {
    let occupancy = &kernel.analysis.input.occupancy;
    if occupancy.fraction >= 1.0 {
        return String::new();
    }
    format!(" ({})", occupancy.limiter.name())
}

/// Whether lenses give times as formulas of sizes that nothing gives: each takes several analyses of its kernel, which a file of
/// many such kernels would have a keystroke wait for. The hover gives it for one.
pub fn formulas_are_shown(file: &FileAnalysis) -> bool {
    let open = |kernel: &&PlacedKernel| kernel.analysis.has_unknown_sizes();
    file.kernels.iter().filter(open).count() <= MOST_FORMULAS
}

/// `2 statements not understood`, where there are some.
pub fn losses(kernel: &PlacedKernel) -> Option<String> {
    figure::losses(kernel.analysis.facts.not_understood.len())
}

/// `launch 1 of 3: <<<64, 256>>>`, where there are several; `launch set: <<<64, 256>>>` of one that the user set.
pub fn launch(kernel: &PlacedKernel) -> Option<String> {
    let (number, of, text) = (kernel.number(), kernel.order.len(), kernel.launch_text());
    if kernel.set.is_some() {
        return Some(format!("launch set: {text}"));
    }
    (of > 1).then(|| format!("launch {number} of {of}: {text}"))
}

/// `1.58x: smem/bank-conflict (1 of 3 findings)`: of what the user sees of a kernel, in it and at its launch, the finding whose
/// removal gains most; where none gains visibly, how many there are.
pub fn help(kernel: &PlacedKernel, file: &FileAnalysis) -> Option<String> {
    let causes = file.causes(kernel);
    let best = causes
        .iter()
        .reduce(|best, next| if next.gain > best.gain { next } else { best })?;
    let count = causes.len();
    if best.gain < VISIBLE_GAIN {
        return Some(format!(
            "what would help? ({})",
            figure::counted(count as u64, "finding")
        ));
    }
    let of = if count > 1 {
        format!(" (1 of {count} findings)")
    } else {
        String::new()
    };
    Some(format!("{:.2}x: {}{of}", best.gain, best.rule))
}

/// `40 registers (nvcc)`: registers from a compiler report, marked where the text has changed since. Estimates are left to the
/// hover.
pub fn registers(kernel: &PlacedKernel) -> Option<String> {
    let said = kernel.compiler.as_ref()?;
    let source = kernel.analysis.registers_source;
    let word = &said.report;
    // The name without the version.
    let tool = word.tool.split(' ').next().unwrap_or(&word.tool);
    match (said.current, source) {
        (true, "compiler") if word.kernel.spill_store_bytes > 0 => Some(format!(
            "{} registers, {} B spilled ({tool})",
            word.kernel.registers, word.kernel.spill_store_bytes
        )),
        (true, "compiler") => Some(format!("{} registers ({tool})", word.kernel.registers)),
        // The user's override replaces it.
        (true, _) => None,
        (false, _) => Some(format!(
            "{} registers ({tool}, before the last edit)",
            word.kernel.registers
        )),
    }
}

/// The assumptions: the launch first, then arguments and guesses, each once.
fn assumed(kernel: &PlacedKernel) -> Vec<String> {
    let (facts, profile) = (&kernel.analysis.facts, &kernel.analysis.profile);
    let clock = profile
        .limited_to_w
        .map(|_| format!("SM clock {:.0} MHz", profile.sm_clock_mhz));
    let mut launch = facts.launch;
    if kernel.analysis.grid_formula().is_some() {
        // The time depends on it, or says what it needs.
        launch.grid_source = Source::LaunchSite;
    }
    listed(&launch, clock, &facts.assumptions)
}

fn listed(launch: &Launch, clock: Option<String>, assumptions: &[Assumption]) -> Vec<String> {
    let mut named = Vec::new();
    if launch.block_source.is_assumption() {
        named.push(format!("block {}", extents(launch.block)));
    }
    if launch.grid_source.is_assumption() {
        named.push(format!("grid {}", extents(launch.grid)));
    }
    named.extend(clock);
    let mut seen = BTreeSet::new();
    for assumption in assumptions {
        // The launch is named above; the alignment of pointers is assumed everywhere.
        if matches!(
            assumption.symbol,
            Assumed::Block | Assumed::Grid | Assumed::Alignment
        ) || assumption.source == UNKNOWN
        {
            continue;
        }
        // Of a loop's guessed length the number is enough; the kernel's page says which loop.
        let kind = assumption.symbol.kind();
        if seen.insert((kind, &assumption.value)) {
            named.push(format!("{kind} {}", assumption.value));
        }
    }
    named
}

/// `assumes block 256, n 1024 and 2 more`: the first `most` by name.
fn name_some(assumed: &[String], most: usize) -> Option<String> {
    let (named, more) = assumed.split_at(most.min(assumed.len()));
    match (named, more.len()) {
        ([], 0) => None,
        ([], more) => Some(format!("assumes {}", figure::counted(more as u64, "value"))),
        (named, 0) => Some(format!("assumes {}", named.join(", "))),
        (named, more) => Some(format!("assumes {} and {more} more", named.join(", "))),
    }
}

fn extents(extents: [u64; 3]) -> String {
    let used = extents.iter().rposition(|extent| *extent != 1).unwrap_or(0);
    let numbers: Vec<String> = extents[..=used].iter().map(u64::to_string).collect();
    numbers.join("×")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assumption(symbol: &str, value: &str) -> Assumption {
        Assumption {
            symbol: match (symbol, symbol.split_once("(`")) {
                ("block", _) => Assumed::Block,
                ("alignment", _) => Assumed::Alignment,
                (_, Some((_, condition))) => {
                    Assumed::Trips(condition.trim_end_matches("`)").to_owned())
                }
                (name, None) => Assumed::Named(name.to_owned()),
            },
            value: value.to_owned(),
            source: "default".to_owned(),
        }
    }

    #[test]
    fn what_was_assumed_is_named_shortly() {
        let known = Launch {
            grid: [64, 1, 1],
            block: [16, 16, 1],
            dynamic_shared_bytes: 0,
            block_source: Source::Directive,
            grid_source: Source::LaunchSite,
            shared_source: Source::LaunchSite,
        };
        let said = |launch: &Launch, all: &[Assumption], most: usize| {
            name_some(&listed(launch, None, all), most)
        };
        assert_eq!(
            said(&known, &[assumption("alignment", "256-byte")], 3),
            None
        );
        // A parameter may well be called like that.
        assert_eq!(
            said(&known, &[assumption("block_count", "1024")], 3).as_deref(),
            Some("assumes block_count 1024")
        );
        let assumed = Launch {
            block_source: Source::Assumed,
            grid_source: Source::Assumed,
            shared_source: Source::Assumed,
            ..known
        };
        let many = [
            assumption("block", "16,16,1"),
            assumption("n", "1024"),
            assumption("m", "1024"),
            assumption("trips(`while (p)`)", "16"),
        ];
        assert_eq!(
            said(&assumed, &many, 3).as_deref(),
            Some("assumes block 16×16, grid 64, n 1024 and 2 more")
        );
        assert_eq!(
            said(&assumed, &many, 1).as_deref(),
            Some("assumes block 16×16 and 4 more")
        );
        assert_eq!(
            said(&assumed, &many, 0).as_deref(),
            Some("assumes 5 values")
        );
        assert_eq!(
            said(&known, &many[3..], 3).as_deref(),
            Some("assumes trips 16")
        );
    }

    #[test]
    fn extents_are_as_long_as_they_need_to_be() {
        assert_eq!(extents([256, 1, 1]), "256");
        assert_eq!(extents([16, 16, 1]), "16×16");
        assert_eq!(extents([1, 1, 4]), "1×1×4");
        assert_eq!(extents([1, 1, 1]), "1");
    }
}
