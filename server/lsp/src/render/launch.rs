//! A launch and the blocks that it could have, as Markdown.

use std::fmt::Write as _;

use warplens_db::{BlockChoice, FixedBlock, PlacedKernel};
use warplens_report::check;
use warplens_report::estimate as estimate_text;
use warplens_report::figure::{bytes, counted, extents, number, percent, time, words};
use warplens_report::table::{Align, Table};

use crate::trial::Trial;

/// Letters of source that a reason quotes.
const LONGEST_TEXT: usize = 60;

/// The launch, what it takes and how it fills the GPU, then a row for each block.
pub fn markdown(trial: &Trial) -> String {
    let kernel = &trial.kernel;
    let analysis = &kernel.analysis;
    let occupancy = &analysis.input.occupancy;
    let (name, gpu) = (&analysis.facts.name, &analysis.profile.name);
    let mut out = String::new();
    if let Some(why) = &occupancy.why_impossible {
        let _ = writeln!(out, "`{name}` on {gpu} cannot launch: {why}\n");
        return out;
    }
    let estimate = analysis.estimate();
    let took = check::shown_time(&estimate).unwrap_or_else(|| "no estimate".to_owned());
    let bound = estimate.bottleneck.map(|bound| words(bound.name()));
    let bound = bound.map_or_else(String::new, |bound| format!(", {bound}"));
    let _ = writeln!(out, "`{name}` on {gpu}: **{took}**{bound}\n");
    let launch = analysis.facts.launch;
    let grid = match analysis.grid_formula() {
        Some(formula) => format!("`{}`", formula.replace('`', "'")),
        None => extents(launch.grid),
    };
    let _ = write!(
        out,
        "Grid {grid} ({}), block {} ({})",
        launch.grid_source.name(),
        extents(launch.block),
        launch.block_source.name()
    );
    if launch.dynamic_shared_bytes > 0 {
        let shared = bytes(launch.dynamic_shared_bytes);
        let _ = write!(out, ", {shared} of dynamic shared memory");
    }
    let _ = write!(
        out,
        ". Occupancy {} ({}): {} in {} on an SM.",
        percent(occupancy.fraction),
        occupancy.limiter.name(),
        counted(u64::from(occupancy.active_warps_per_sm), "warp"),
        counted(u64::from(occupancy.active_blocks_per_sm), "block"),
    );
    if let Some(waves) = analysis.waves() {
        let _ = write!(out, " {}.", self::waves(waves));
    }
    if let Some(early) = kernel.early_start() {
        let early = estimate_text::early_start(early.waits_at);
        let _ = write!(out, " It {early}.");
    }
    out.push_str("\n\n");
    out.push_str(&choices(trial));
    out
}

/// `4.74 waves`, `Less than one wave (0.15)`.
pub fn waves(waves: f64) -> String {
    if waves < 1.0 {
        format!(
            "Less than one wave ({})",
            number((waves * 100.0).round() / 100.0)
        )
    } else {
        let rounded = (waves * 100.0).round() / 100.0;
        let plural = if rounded == 1.0 { "" } else { "s" };
        format!("{} wave{plural}", number(rounded))
    }
}

/// A row for each block, or why there is one only.
fn choices(trial: &Trial) -> String {
    let choices = &trial.choices;
    if let Some(fixed) = &choices.fixed {
        return format!("{}\n", why_fixed(fixed));
    }
    let mut out = String::new();
    let mut table = Table::new(&[
        ("block", Align::Left),
        ("grid", Align::Left),
        ("time", Align::Right),
        ("occupancy", Align::Right),
    ]);
    for choice in &choices.choices {
        let now = if choice.is_present { " (now)" } else { "" };
        table.row([
            format!("{}{now}", extents(choice.block)).into(),
            extents(choice.grid).into(),
            shown_time(choice).into(),
            percent(choice.occupancy).into(),
        ]);
    }
    out.push_str(&table.aligned_markdown());
    if let Some(stated) = stand_ins(trial) {
        let _ = write!(out, "\nWith {stated}, which nothing gives.\n");
    }
    if choices.left_out > 0 {
        let _ = write!(
            out,
            "\nThe kernel is large: {} not tried.\n",
            counted(choices.left_out as u64, "other block")
        );
    }
    out
}

/// The time of a row, or that it cannot be launched.
pub fn shown_time(choice: &BlockChoice) -> String {
    match (choice.time_ms, &choice.why_impossible) {
        (Some(milliseconds), _) => time(milliseconds),
        (None, Some(_)) => "cannot launch".to_owned(),
        (None, None) => "unknown".to_owned(),
    }
}

/// `` `n` = 884736 ``: what the rows rest on; `None` where everything is given.
pub fn stand_ins(trial: &Trial) -> Option<String> {
    let stand_ins = trial.choices.stand_ins.iter();
    let mut named: Vec<String> = stand_ins
        .map(|(name, value)| format!("`{name}` = {value}"))
        .collect();
    if grid_stands_in(&trial.kernel) {
        named.push(format!(
            "grid {}",
            extents(trial.kernel.analysis.facts.launch.grid)
        ));
    }
    (!named.is_empty()).then(|| named.join(", "))
}

/// True where nothing says how many blocks there are, not even by sizes that have stand-ins.
fn grid_stands_in(kernel: &PlacedKernel) -> bool {
    let stand_ins = kernel.analysis.stand_ins();
    stand_ins.iter().any(|(name, _)| name == "grid")
}

/// Why there is one block only, as a sentence.
pub fn why_fixed(fixed: &FixedBlock) -> String {
    match fixed {
        FixedBlock::Attribute => "An attribute of the kernel fixes its block.".to_owned(),
        FixedBlock::Read(line, text) => {
            let text: String = text.chars().take(LONGEST_TEXT).collect();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            format!(
                "The kernel computes with its block: line {} reads `{}` by itself. Another block would be another computation.",
                line + 1,
                text.replace('`', "'")
            )
        }
        FixedBlock::Shared => {
            "The threads of a block share memory. Another block would be another computation."
                .to_owned()
        }
        FixedBlock::Unknown => {
            "Not all of the kernel was understood: it may depend on its block.".to_owned()
        }
        FixedBlock::Impossible => "The launch cannot happen as it is.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_are_told_shortly() {
        assert_eq!(waves(4.7407), "4.74 waves");
        assert_eq!(waves(1.0), "1 wave");
        assert_eq!(waves(0.148), "Less than one wave (0.15)");
    }
}
