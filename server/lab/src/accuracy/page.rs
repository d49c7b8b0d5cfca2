//! The page: scores as tables, and what they were made of.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;

use super::description::{Change, Tier, described};
use super::plot;
use super::predict::{Counter, mechanisms};
use super::score::{self, Errors};
use super::set::{Ablated, Kind, Set, Summary};
use super::speedups::{Pair, Speedups};
use super::targets::{Unit, factor, targets};

/// What is above the tables.
const HEAD: &str = "# Predicted and measured times\n\n\
`cargo lab accuracy` writes this page: warplens predicts from the source what launches take, and here the predictions\n\
are held against times and counters that others measured on real GPUs and published. No GPU is needed for it, and nothing\n\
is executed. Neither the tables of times nor the kernels are part of this repository; `SOURCES` is a folder with the kernels,\n\
which the tables name.\n\n\
*Rho* is Spearman's rank correlation of predicted and measured times over the configurations of a table, *regret* what the\n\
configuration predicted best takes over the best one measured. Errors of times are factors, too long or too short alike:\n\
`2.00x` is half or twice what was measured, `1.00x` is right. Their median and their 90th percentile are given: *scaled* after\n\
one factor for each kernel and GPU, which takes away the clock, which is not known, *raw* without, and of *cycles* where the clock\n\
is known. Of equal predictions the slowest counts for the regret. A table of several kernels that do the same work has one\n\
factor for its GPU.\n\n\
The programs of the streams hold an SM to some blocks at a time, which is given to the model, and pass `false` for a\n\
condition that nothing else fixes; conditions on data are taken to hold for every second warp.\n\n\
What was calibrated on what: each table has a tier. Of *calibration* a constant of a model or a figure of a profile was taken, or\n\
chosen by its scores: they say how well the model fits, not how well it predicts. Of *validation* no constant is recorded as\n\
chosen, but its scores were read while rules were written. What is *unseen* was not scored while anything was chosen.\n\
[Constants and what they were chosen on](accuracy/constants.md) lists every constant with its tables.\n";

/// What made the scores.
#[derive(Debug, Clone)]
pub struct Run {
    /// The model.
    pub model: &'static str,
    /// The command, without this machine's folders.
    pub command: String,
}

const BEGIN: &str = "<!-- begin: scores -->\n";
const END: &str = "<!-- end: scores -->\n";

/// Writes the page and its plots, which go into the folder of the page's name beside it. What is behind the scores stays.
pub fn write(page: &Path, run: &Run, sets: &[Set], summary: &Summary) -> anyhow::Result<()> {
    let plots = page.with_extension("");
    std::fs::create_dir_all(&plots).with_context(|| format!("cannot make {}", plots.display()))?;
    let folder = plots.file_name().and_then(|name| name.to_str());
    let folder = folder.unwrap_or("accuracy");
    let mut images = String::new();
    for (name, svg, what) in plot::plots(sets) {
        let file = plots.join(name);
        std::fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
        let _ = writeln!(images, "![{what}]({folder}/{name})\n");
    }
    let before = std::fs::read_to_string(page).unwrap_or_default();
    let behind = before
        .split_once(END)
        .map_or(String::new(), |(_, behind)| behind.to_owned());
    let text = format!(
        "{HEAD}\n{BEGIN}Model `{}`, by `{}`.\n\n{}\n{images}{END}{behind}",
        run.model,
        run.command,
        tables(sets, summary)
    );
    std::fs::write(page, text).with_context(|| format!("cannot write {}", page.display()))
}

/// What is said of a table as soon as it is scored.
pub fn lines(set: &Set) -> String {
    let mut text = format!(
        "{:<26} {:>4} rows  rho {}  regret {}  scaled {}  raw {}  cycles {}  bandwidth {}  [{:.0} s]\n",
        set.id,
        set.points.len(),
        number(set.rho),
        number(set.regret),
        errors(set.scaled),
        errors(set.raw),
        errors(set.cycles),
        percent(set.bandwidth),
        set.seconds
    );
    for (why, count) in &set.unpredicted {
        let _ = writeln!(text, "    {count} without a prediction: {why}");
    }
    text
}

/// All tables.
pub fn tables(sets: &[Set], summary: &Summary) -> String {
    let mut text = String::new();
    ranked(&mut text, sets, summary);
    streams(&mut text, sets);
    counters(&mut text, sets);
    speedups(&mut text, sets);
    launches(&mut text, sets);
    ablation(&mut text, sets);
    origins(&mut text, sets);
    let _ = writeln!(
        text,
        "## Targets\n\n| | is | wanted | met |\n| --- | ---: | ---: | --- |"
    );
    for target in targets(sets, summary) {
        let met = if target.met() { "yes" } else { "no" };
        let (is, wanted) = (target.value(), target.bound());
        let _ = writeln!(text, "| {} | {is} | {wanted} | {met} |", target.what);
    }
    text
}

/// The targets that are missed, in words.
pub fn missed(sets: &[Set], summary: &Summary) -> Vec<String> {
    targets(sets, summary)
        .iter()
        .filter(|target| !target.met())
        .map(|target| {
            format!(
                "{} is {}, not {}",
                target.what,
                target.value(),
                target.bound()
            )
        })
        .collect()
}

fn ranked(text: &mut String, sets: &[Set], summary: &Summary) {
    let ranked: Vec<&Set> = sets
        .iter()
        .filter(|set| set.kind != Kind::Streams)
        .collect();
    if ranked.is_empty() {
        return;
    }
    text.push_str(
        "## Configurations\n\n\
         | table | tier | profile | rows | rho | regret | scaled | 90 % | raw | 90 % | cycles | 90 % |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for set in &ranked {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            set.id,
            tier(set),
            profiles(set),
            of(set.points.len(), set.timed),
            number(set.rho),
            number(set.regret),
            median(set.scaled),
            p90(set.scaled),
            median(set.raw),
            p90(set.raw),
            median(set.cycles),
            p90(set.cycles),
        );
    }
    let _ = writeln!(
        text,
        "| all: mean, geometric mean, mean | | | | {} | {} | {} | | | | | |\n",
        number(summary.rho),
        number(summary.regret),
        factors(summary.scaled)
    );
    for of in Tier::ALL {
        let of_tier: Vec<&Set> = (ranked.iter().copied())
            .filter(|set| described().set(&set.id).is_some_and(|set| set.tier == of))
            .collect();
        let scaled: Vec<f64> = (of_tier.iter())
            .filter_map(|set| Some(set.scaled?.median))
            .collect();
        let rhos: Vec<f64> = of_tier.iter().filter_map(|set| set.rho).collect();
        if !of_tier.is_empty() {
            let _ = writeln!(
                text,
                "Of {}: mean rho {}, mean scaled error {}.\n",
                of.name(),
                number(score::mean(&rhos)),
                factors(score::mean(&scaled))
            );
        }
    }
}

fn streams(text: &mut String, sets: &[Set]) {
    let streams: Vec<&Set> = sets
        .iter()
        .filter(|set| set.kind == Kind::Streams)
        .collect();
    if streams.is_empty() {
        return;
    }
    text.push_str(
        "## Streams\n\nThe mean of |predicted / measured - 1| of the bandwidth, median and 90th percentile of the times' factors; rho over the launches of\n\
         each GPU, their mean.\n\n\
         | table | tier | profiles | rows | mean error | median | 90 % | rho |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for set in streams {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            set.id,
            tier(set),
            profiles(set),
            of(set.points.len(), set.timed),
            percent(set.bandwidth),
            median(set.raw),
            p90(set.raw),
            number(set.rho),
        );
        for (profile, error) in set.bandwidths() {
            let _ = writeln!(text, "| | | {profile} | | {} | | | |", percent(Some(error)));
        }
        for gpu in &set.unknown {
            let _ = writeln!(text, "| | | no profile: {gpu} | | | | | |");
        }
    }
    text.push('\n');
}

fn counters(text: &mut String, sets: &[Set]) {
    let counted: Vec<&Set> = sets.iter().filter(|set| !set.counters.is_empty()).collect();
    if counted.is_empty() {
        return;
    }
    text.push_str(
        "## Counters\n\nErrors of what the hardware counted, as factors; of the occupancy, which is the theoretical one, in points.\n\n\
         | table | counter | rows | median | 90 % |\n| --- | --- | ---: | ---: | ---: |\n",
    );
    for set in counted {
        for counter in Counter::ALL {
            let Some(errors) = set.counters.get(&counter) else {
                continue;
            };
            let unit = if counter == Counter::Occupancy {
                Unit::Points
            } else {
                Unit::Factor
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                set.id,
                counter.name(),
                errors.count,
                unit.show(errors.median),
                unit.show(errors.p90)
            );
        }
    }
    text.push('\n');
}

fn speedups(text: &mut String, sets: &[Set]) {
    let all: Vec<Pair> = sets.iter().flat_map(|set| &set.speedups).copied().collect();
    let Some(whole) = Speedups::of(&all) else {
        return;
    };
    text.push_str(
        "## Speedups\n\nRows that differ in no more than what a code action does to a kernel, of tuned kernels in the next larger value of one\n\
         parameter: the speedup predicted for it against the one measured. Errors are |predicted / measured - 1|. Many such\n\
         changes do little on these GPUs, so those beside are counted alone that measure more than 5 % faster or slower:\n\
         their mean error, and of how many it is predicted whether they help or harm.\n\n\
         | change | table | pairs | mean error | median | measured | above 5 % | mean error | right way |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut line = |change: &str, table: &str, found: &Speedups| {
        let (least, most) = found.measured;
        let (told, mean, same_way) = match found.told {
            Some((told, mean, same_way)) => {
                (told, percent(Some(mean)), format!("{same_way} of {told}"))
            }
            None => (0, "-".to_owned(), "-".to_owned()),
        };
        let _ = writeln!(
            text,
            "| {change} | {table} | {} | {} | {} | {least:.2} to {most:.2} | {told} | {mean} | {same_way} |",
            found.pairs,
            percent(Some(found.mean)),
            percent(Some(found.median)),
        );
    };
    for change in Change::ALL {
        let of = |pairs: &[Pair]| -> Vec<Pair> {
            let alike = pairs.iter().filter(|pair| pair.change == change);
            alike.copied().collect()
        };
        if let Some(found) = Speedups::of(&of(&all)) {
            line(change.name(), "", &found);
        }
        for set in sets {
            if let Some(found) = Speedups::of(&of(&set.speedups)) {
                line("", &set.id, &found);
            }
        }
    }
    line("all", "", &whole);
    text.push('\n');
}

fn launches(text: &mut String, sets: &[Set]) {
    text.push_str(
        "## Launches that fail\n\n\
         | table | failed, and said to | ran, but said to fail | not predicted |\n\
         | --- | ---: | ---: | ---: |\n",
    );
    for set in sets {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            set.id,
            of(set.invalid.0, set.invalid.1),
            of(set.refused.0, set.refused.1),
            set.timed - set.points.len() - set.refused.0
        );
    }
    text.push('\n');
}

fn ablation(text: &mut String, sets: &[Set]) {
    let sets: Vec<&Set> = sets.iter().filter(|set| !set.without.is_empty()).collect();
    if sets.is_empty() {
        return;
    }
    text.push_str(
        "## Without each mechanism\n\n\
         Rho / regret / scaled median error, where the model does without; of streams the mean error of the bandwidth.\n\n\
         | without | mean rho |",
    );
    for set in &sets {
        let _ = write!(text, " {} |", set.id);
    }
    let _ = writeln!(text, "\n| --- | ---: |{}", " ---: |".repeat(sets.len()));
    let mut line = |name: &str, of: &dyn Fn(&Set) -> Ablated| {
        let ranked = sets.iter().filter(|set| set.kind != Kind::Streams);
        let rhos: Vec<f64> = ranked.filter_map(|set| of(set).rho).collect();
        let _ = write!(text, "| {name} | {} |", number(score::mean(&rhos)));
        for set in &sets {
            let scores = of(set);
            let _ = if set.kind == Kind::Streams {
                write!(text, " {} |", percent(scores.bandwidth))
            } else {
                let (rho, regret) = (number(scores.rho), number(scores.regret));
                write!(text, " {rho} / {regret} / {} |", factors(scores.scaled))
            };
        }
        text.push('\n');
    };
    line("nothing", &Set::whole);
    for (at, mechanism) in mechanisms().enumerate() {
        line(mechanism, &|set| {
            set.without.get(at).copied().unwrap_or_default()
        });
    }
    text.push('\n');
}

fn origins(text: &mut String, sets: &[Set]) {
    if sets.iter().all(|set| set.origin.is_empty()) {
        return;
    }
    text.push_str("## Who measured\n\n| table | from | tier |\n| --- | --- | --- |\n");
    for set in sets.iter().filter(|set| !set.origin.is_empty()) {
        let tier = described().set(&set.id).map_or(String::new(), |set| {
            format!("{}: {}", set.tier.name(), set.why)
        });
        let from = set.origin.replace('|', "/");
        let _ = writeln!(text, "| {} | {from} | {tier} |", set.id);
    }
    text.push('\n');
}

fn tier(set: &Set) -> &'static str {
    described().set(&set.id).map_or("", |set| set.tier.name())
}

fn profiles(set: &Set) -> String {
    match set.profiles.len() {
        0 | 1 => set.profiles.iter().cloned().collect(),
        many => format!("{many} GPUs"),
    }
}

fn of(part: usize, whole: usize) -> String {
    if part == whole && whole > 0 {
        part.to_string()
    } else {
        format!("{part} of {whole}")
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.0} %", value * 100.0))
}

/// An error that is the logarithm of a factor.
fn factors(log: Option<f64>) -> String {
    log.map_or_else(|| "-".to_owned(), factor)
}

fn median(errors: Option<Errors>) -> String {
    factors(errors.map(|errors| errors.median))
}

fn p90(errors: Option<Errors>) -> String {
    factors(errors.map(|errors| errors.p90))
}

fn errors(errors: Option<Errors>) -> String {
    format!("{} ({})", median(errors), p90(errors))
}
