//! The line above a kernel.

use std::collections::BTreeSet;

use warplens_db::{FileAnalysis, PlacedKernel, PlacedReport};
use warplens_facts::facts::{Assumed, Assumption, Launch, Source, UNKNOWN};
use warplens_models::ModelId;
use warplens_report::check;
use warplens_report::figure;
use warplens_report::figure::words;

/// Assumptions beyond these are counted, not named.
const MOST_NAMED: usize = 3;
/// Kernels of a file whose times are formulas, up to which lenses give these.
const MOST_FORMULAS: usize = 32;

/// `A100 SXM4 40GB · 132 µs · memory bandwidth · occupancy 100 % (warps) · MWP 12.1 CWP 8.0 · assumes block
/// 256, n 1024`
pub fn title(kernel: &PlacedKernel, formulas: bool) -> String {
    let analysis = &kernel.analysis;
    let mut parts = vec![gpu_name(&analysis.profile.name).to_owned()];
    if let Some(impossible) = &analysis.input.occupancy.why_impossible {
        parts.push(format!("cannot launch: {impossible}"));
        return parts.join(" · ");
    }
    let shown = formulas || !analysis.has_unknown_sizes();
    let estimate = shown.then(|| analysis.estimate());
    if let Some(estimate) = &estimate {
        let time = check::shown_time(estimate);
        parts.push(time.unwrap_or_else(|| "no estimate".to_owned()));
        if let Some(bottleneck) = estimate.bottleneck {
            parts.push(words(bottleneck.name()));
        }
    } else {
        let unknown = analysis.unknown_sizes().join("`, `");
        parts.push(format!("hover for the time by `{unknown}`"));
    }
    parts.push(format!(
        "occupancy {:.0} % ({})",
        analysis.input.occupancy.fraction * 100.0,
        analysis.input.occupancy.limiter.name()
    ));
    parts.extend(kernel.compiler.as_ref().and_then(|said| {
        let source = kernel.analysis.registers_source;
        registers(said, source)
    }));
    let detail = |name: &str| {
        let shown = estimate
            .as_ref()
            .and_then(|of| of.detail.get(name).copied());
        shown.or_else(|| analysis.detail(ModelId::MwpCwp, name))
    };
    if let (Some(mwp), Some(cwp)) = (detail("mwp"), detail("cwp")) {
        parts.push(format!("MWP {mwp:.1} CWP {cwp:.1}"));
    }
    parts.extend(assumed(kernel));
    parts.join(" · ")
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

/// `launch 1 of 3: <<<64, 256>>>`, where there are several.
pub fn launch(kernel: &PlacedKernel) -> Option<String> {
    let shown = kernel.variants.get(kernel.variant)?;
    (kernel.variants.len() > 1).then(|| {
        format!(
            "launch {} of {}: {shown}",
            kernel.variant + 1,
            kernel.variants.len()
        )
    })
}

/// `what would help? (3 findings)`, where something was found.
pub fn help(kernel: &PlacedKernel) -> Option<String> {
    match kernel.analysis.findings.len() {
        0 => None,
        1 => Some("what would help? (1 finding)".to_owned()),
        many => Some(format!("what would help? ({many} findings)")),
    }
}

/// `40 registers (nvcc)`: registers from a compiler report, marked where the text has changed since. Estimates are left out
/// for want of room.
fn registers(said: &PlacedReport, source: &str) -> Option<String> {
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

/// A GPU's name without its maker: there is little room.
fn gpu_name(name: &str) -> &str {
    let makers = ["NVIDIA ", "AMD ", "Intel "];
    makers
        .iter()
        .find_map(|maker| name.strip_prefix(maker))
        .unwrap_or(name)
}

/// The assumptions: the launch first, then arguments and guesses, each once.
fn assumed(kernel: &PlacedKernel) -> Option<String> {
    let (facts, profile) = (&kernel.analysis.facts, &kernel.analysis.profile);
    let clock = profile
        .limited_to_w
        .map(|_| format!("SM clock {:.0} MHz", profile.sm_clock_mhz));
    let mut launch = facts.launch;
    if kernel.analysis.grid_formula().is_some() {
        // The time depends on it, or says what it needs.
        launch.grid_source = Source::LaunchSite;
    }
    name_some(&launch, clock, &facts.assumptions)
}

fn name_some(launch: &Launch, clock: Option<String>, assumptions: &[Assumption]) -> Option<String> {
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
    let more = named.len().saturating_sub(MOST_NAMED);
    if named.is_empty() {
        return None;
    }
    named.truncate(MOST_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Some(format!("assumes {}{more}", named.join(", ")))
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
        };
        assert_eq!(
            name_some(&known, None, &[assumption("alignment", "256-byte")]),
            None
        );
        // A parameter may well be called like that.
        assert_eq!(
            name_some(&known, None, &[assumption("block_count", "1024")]).as_deref(),
            Some("assumes block_count 1024")
        );
        let assumed = Launch {
            block_source: Source::Assumed,
            grid_source: Source::Assumed,
            ..known
        };
        let many = [
            assumption("block", "16,16,1"),
            assumption("n", "1024"),
            assumption("m", "1024"),
            assumption("trips(`while (p)`)", "16"),
        ];
        assert_eq!(
            name_some(&assumed, None, &many).as_deref(),
            Some("assumes block 16×16, grid 64, n 1024 and 2 more")
        );
        assert_eq!(
            name_some(&known, None, &many[3..]).as_deref(),
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
