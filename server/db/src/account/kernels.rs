//! The kernels of a program: each launch that a run makes with what it is predicted to take.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use warplens_host::{HostEvent, HostEventKind, LaunchSite, Often};
use warplens_models::{Bottleneck, Estimate, OpenTime};
use warplens_syntax::is_word_part;

use super::formula::{Sum, all_times, milliseconds, placed, times};
use super::{Analysed, Making};
use crate::PlacedKernel;
use crate::wire::{EarlyStart, ProgramKernel, ProgramLaunch};

/// A kernel's name and template arguments.
type Key = (String, Vec<(String, String)>);

/// A launch of the run with its analysis.
pub(super) struct Launched<'a> {
    pub(super) event: &'a HostEvent,
    pub(super) often: &'a Often,
    pub(super) site: &'a LaunchSite,
    /// `None` where no definition of the kernel was found that it can launch.
    pub(super) found: Option<(&'a Analysed, &'a PlacedKernel)>,
    /// The same kernel as another launch's where these are equal.
    pub(super) key: Key,
    estimate: Option<Arc<Estimate>>,
    /// Where it was not analysed itself: its cycles by the launches around it.
    between: Option<f64>,
    /// It was analysed itself.
    is_itself: bool,
    /// Milliseconds of a cycle.
    cycle_ms: f64,
    /// The formula of its time, in names that mean the same in all launches.
    formula: Option<String>,
}

/// The value at a place on the line between the nearest points on both sides of it.
fn on_line(at: f64, points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<f64> {
    let below = points.clone().filter(|(place, _)| *place <= at);
    let above = points.filter(|(place, _)| *place >= at);
    let (from, low) = below.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (to, high) = above.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let part = if to > from {
        (at - from) / (to - from)
    } else {
        0.0
    };
    Some(low + (high - low) * part)
}

/// Blocks of a launch.
fn blocks(site: &LaunchSite) -> Option<f64> {
    let extents = site.grid?;
    Some(extents.iter().map(|extent| *extent as f64).product())
}

impl Launched<'_> {
    /// Time of one launch on the GPU.
    pub(super) fn one_ms(&self) -> Option<f64> {
        let own = self.estimate.as_ref()?.cycles.filter(|_| self.is_itself);
        Some(own.or(self.between)? * self.cycle_ms)
    }

    pub(super) fn interval_ms(&self) -> Option<[f64; 2]> {
        let interval = self.estimate.as_ref()?.interval?;
        self.one_ms().filter(|_| self.is_itself)?;
        Some(interval.map(|cycles| cycles * self.cycle_ms))
    }

    fn open(&self) -> Option<&OpenTime> {
        self.estimate.as_ref()?.open.as_ref()
    }

    fn place(&self) -> (&Path, u32) {
        (&self.event.place.file, self.event.place.line)
    }

    /// Time of all its launches.
    pub(super) fn time(&self) -> Sum {
        match (self.one_ms(), &self.formula) {
            (Some(time), _) => Sum::of(self.often, time),
            (None, Some(formula)) => Sum::of_formula(self.often, formula),
            (None, None) => Sum::lost(),
        }
    }

    pub(super) fn bottleneck(&self) -> Option<&'static str> {
        self.estimate.as_ref()?.bottleneck.map(Bottleneck::name)
    }

    pub(super) fn certainty(&self) -> &'static str {
        let Some((_, placed)) = self.found else {
            return "unknown";
        };
        let facts = &placed.analysis.facts;
        let assumed = !placed.analysis.launch_known
            || facts
                .assumptions
                .iter()
                .any(|one| !matches!(one.symbol.to_string().as_str(), "alignment"));
        match (self.one_ms(), assumed) {
            (None, _) => "unknown",
            (Some(_), true) => "assumed",
            (Some(_), false) => "estimated",
        }
    }

    fn why(&self) -> Option<String> {
        let Some(estimate) = &self.estimate else {
            return Some(format!("no definition of `{}` was found", self.site.kernel));
        };
        let many =
            || "the program makes more different launches of it than are analysed".to_owned();
        let open = self.is_itself || self.one_ms().is_some() || self.formula.is_some();
        estimate.why.clone().or_else(|| (!open).then(many))
    }
}

/// Writes the formulas of launches. `n` of one kernel need not be `n` of another: a name that launches of several lines have is told
/// with the line, `n(main.cu:31)`.
fn tell_apart(launches: &mut [Launched<'_>]) {
    let mut places: BTreeMap<&str, BTreeSet<(&Path, u32)>> = BTreeMap::new();
    for launch in &*launches {
        for name in launch.open().into_iter().flat_map(|open| &open.unknowns) {
            places.entry(name).or_default().insert(launch.place());
        }
    }
    let formula = |launch: &Launched<'_>| {
        let open = launch.open()?;
        let mut formula = open.formula.clone()?;
        for name in &open.unknowns {
            if places.get(name.as_str()).is_some_and(|all| all.len() > 1) {
                let (file, line) = launch.place();
                formula = with_place(&formula, name, &placed(file, line));
            }
        }
        Some(formula)
    };
    let formulas: Vec<Option<String>> = launches.iter().map(formula).collect();
    for (launch, formula) in launches.iter_mut().zip(formulas) {
        launch.formula = formula;
    }
}

/// A formula with a place behind each use of a name.
fn with_place(formula: &str, name: &str, place: &str) -> String {
    let part = |c: char| is_word_part(c) || c == '.';
    let mut text = String::new();
    let mut rest = formula;
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        text.push_str(before);
        let whole = !text.ends_with(part) && !behind.starts_with(part);
        text.push_str(name);
        if whole {
            text.push_str(place);
        }
        rest = behind;
    }
    text + rest
}

impl<'a> Making<'a> {
    /// The launches of the run, in its order.
    pub(super) fn launches(&self) -> Vec<Launched<'a>> {
        let cycle_ms = 1e3 / self.profile.cycles_per_second();
        let launches = self.run.events.iter().filter_map(|event| match event.kind {
            HostEventKind::Launch(at) => Some((event, self.run.sites.get(at)?)),
            _ => None,
        });
        let mut launches: Vec<Launched<'a>> = launches
            .map(|(event, site)| {
                let same = self.same(site);
                let found = same.or_else(|| self.like(site));
                let args = found.map(|(_, placed)| placed.analysis.template_args.clone());
                Launched {
                    event,
                    often: &event.often,
                    site,
                    key: (site.kernel.clone(), args.unwrap_or_default()),
                    estimate: found.map(|(_, placed)| placed.analysis.estimate()),
                    between: None,
                    is_itself: same.is_some(),
                    found,
                    cycle_ms,
                    formula: None,
                }
            })
            .collect();
        tell_apart(&mut launches);
        let between: Vec<Option<f64>> = (launches.iter().enumerate())
            .map(|(at, one)| {
                let unknown = !one.is_itself && one.found.is_some();
                unknown.then(|| Self::between(at, one.site, &launches))?
            })
            .collect();
        for (launched, between) in launches.iter_mut().zip(between) {
            launched.between = between;
        }
        launches
    }

    /// The analyses of the kernel that a site launches.
    fn analysed(&self, site: &LaunchSite) -> Vec<(&'a Analysed, &'a PlacedKernel)> {
        let all = self.files.iter().flat_map(|file| {
            let named = |placed: &&PlacedKernel| placed.analysis.facts.name == site.kernel;
            file.analysis
                .kernels
                .iter()
                .filter(named)
                .map(move |placed| (file, placed))
        });
        all.collect()
    }

    /// The kernel as it was analysed under a launch.
    fn same(&self, site: &LaunchSite) -> Option<(&'a Analysed, &'a PlacedKernel)> {
        let all = self.analysed(site);
        let same = |(_, placed): &&(&'a Analysed, &'a PlacedKernel)| {
            placed
                .site
                .as_ref()
                .is_some_and(|known| known.same_launch(site))
        };
        // A run that lost its way: the launch as its text says it.
        let at = |(_, placed): &&(&'a Analysed, &'a PlacedKernel)| {
            let range = placed.site.as_ref().map(|known| &known.range);
            placed.run.is_none() && range == Some(&site.range)
        };
        let open = |(_, placed): &&(&'a Analysed, &'a PlacedKernel)| {
            let launch = &placed.analysis.facts.launch;
            placed.run.is_none()
                && site.grid.is_none_or(|grid| grid == launch.grid)
                && site.block.is_none_or(|block| block == launch.block)
        };
        let found = all.iter().find(same);
        found
            .or_else(|| all.iter().find(at))
            .or_else(|| all.iter().find(open))
            .copied()
    }

    /// The kernel under the launch that is the most like one that was not analysed.
    fn like(&self, site: &LaunchSite) -> Option<(&'a Analysed, &'a PlacedKernel)> {
        let all = self.analysed(site);
        let wanted = blocks(site);
        let far = |(_, placed): &&(&'a Analysed, &'a PlacedKernel)| {
            let known = placed.site.as_ref().and_then(|site| blocks(site));
            match (known, wanted) {
                (Some(known), Some(wanted)) => (known - wanted).abs(),
                (None, None) => 0.0,
                _ => f64::INFINITY,
            }
        };
        all.iter().min_by(|a, b| far(a).total_cmp(&far(b))).copied()
    }

    /// The cycles of a launch that was not analysed: between launches of the same block with fewer and with more blocks, else between
    /// those that the same statement makes before it and after it.
    fn between(at: usize, site: &LaunchSite, launches: &[Launched<'_>]) -> Option<f64> {
        let analysed = launches.iter().enumerate();
        let known = analysed
            .filter(|(_, launched)| launched.is_itself)
            .filter_map(|(at, launched)| {
                let one = launched.site;
                let alike = one.kernel == site.kernel && one.template_args == site.template_args;
                let cycles = launched.estimate.as_ref()?.cycles?;
                alike.then_some((at as f64, one, cycles))
            });
        let known: Vec<(f64, &LaunchSite, f64)> = known.collect();
        let of_block = || {
            known
                .iter()
                .filter(|(_, one, _)| one.block == site.block)
                .filter_map(|(_, one, cycles)| Some((blocks(one)?, *cycles)))
        };
        let varies = of_block().any(|(number, _)| of_block().any(|(other, _)| other != number));
        let by_blocks = || on_line(blocks(site)?, of_block());
        let in_order = |same: &dyn Fn(&LaunchSite) -> bool| {
            let of_statement = known.iter().filter(|(_, one, _)| same(one));
            on_line(
                at as f64,
                of_statement.map(|(at, _, cycles)| (*at, *cycles)),
            )
        };
        let statement = |one: &LaunchSite| one.range == site.range;
        by_blocks()
            .filter(|_| varies)
            .or_else(|| in_order(&|one| statement(one) && one.block == site.block))
            .or_else(by_blocks)
            .or_else(|| in_order(&statement))
            .or_else(|| {
                // Before the first of them or behind the last: that one.
                let far = |place: &f64| (place - at as f64).abs();
                let of_statement = known.iter().filter(|(_, one, _)| statement(one));
                let nearest = of_statement.min_by(|a, b| far(&a.0).total_cmp(&far(&b.0)));
                nearest.map(|(_, _, cycles)| *cycles)
            })
    }

    /// The kernels, the most time first.
    pub(super) fn kernels(&self, launches: &[Launched<'_>]) -> Vec<ProgramKernel> {
        let mut groups: Vec<(&Key, Vec<&Launched<'_>>)> = Vec::new();
        for launch in launches {
            match groups.iter_mut().find(|(key, _)| **key == launch.key) {
                Some((_, group)) => group.push(launch),
                None => groups.push((&launch.key, vec![launch])),
            }
        }
        // What was not followed may launch more.
        let begun = || {
            if self.run.is_cut {
                Sum::lost()
            } else {
                Sum::default()
            }
        };
        let mut whole = begun();
        let mut summed: Vec<(Sum, Vec<&Launched<'_>>)> = Vec::new();
        for (_, group) in groups {
            let mut sum = begun();
            for launch in &group {
                sum.add(&launch.time());
            }
            whole.add(&sum);
            summed.push((sum, group));
        }
        summed.sort_by(|(a, _), (b, _)| b.once_at_least().total_cmp(&a.once_at_least()));
        summed
            .iter()
            .map(|(sum, group)| self.kernel(sum, group, &whole))
            .collect()
    }

    fn kernel(&self, sum: &Sum, group: &[&Launched<'_>], whole: &Sum) -> ProgramKernel {
        let first = group[0];
        let longest = group.iter().max_by(|a, b| {
            a.time()
                .once_at_least()
                .total_cmp(&b.time().once_at_least())
        });
        let share = |part: Option<f64>, whole: Option<f64>| match (part, whole) {
            (Some(part), Some(whole)) if whole > 0.0 => Some(part / whole),
            _ => None,
        };
        let (file, line) = match first.found {
            Some((file, placed)) => {
                let line = placed.place_line(placed.analysis.name_site.line) + 1;
                ((self.name)(&file.path), line)
            }
            None => (
                (self.name)(&first.event.place.file),
                first.event.place.line + 1,
            ),
        };
        ProgramKernel {
            kernel: first.site.kernel.clone(),
            template_args: first.key.1.iter().cloned().collect::<BTreeMap<_, _>>(),
            file,
            line,
            launches: all_times(group.iter().map(|launch| launch.often)),
            total_ms: sum.number(),
            at_least_ms: sum.least,
            total_formula: sum.text(&milliseconds),
            share: share(sum.number(), whole.number()),
            share_of_one_iteration: share(sum.once(), whole.once()),
            bottleneck: longest.and_then(|launch| launch.bottleneck()),
            made: group.iter().map(|launch| self.made(launch)).collect(),
        }
    }

    fn made(&self, launch: &Launched<'_>) -> ProgramLaunch {
        let analysis = launch.found.map(|(_, placed)| &placed.analysis);
        let estimate = launch.estimate.as_ref();
        let open = estimate.and_then(|estimate| estimate.open.as_ref());
        // Another launch of the kernel has another grid and block.
        let own = analysis.filter(|_| launch.is_itself);
        let grid_formula = own.and_then(|analysis| analysis.grid_formula());
        let grid = own.map(|analysis| analysis.facts.launch.grid);
        ProgramLaunch {
            file: (self.name)(&launch.event.place.file),
            line: launch.event.place.line + 1,
            grid: grid.filter(|_| grid_formula.is_none()).or(launch.site.grid),
            grid_formula,
            block: own
                .map(|analysis| analysis.facts.launch.block)
                .or(launch.site.block),
            launches: times(launch.often),
            begins_early: launch.site.begins_early.then(|| EarlyStart {
                waits_at: launch.found.and_then(|(_, placed)| placed.waits_at()),
            }),
            time_ms: launch.one_ms(),
            time_formula: open.and_then(|open| open.formula.clone()),
            unknowns: open.map(|open| open.unknowns.clone()).unwrap_or_default(),
            interval_ms: launch.interval_ms(),
            bottleneck: launch.bottleneck(),
            certainty: launch.certainty(),
            interpolated: launch.between.is_some() || launch.site.represents,
            why: launch.why(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_put_behind_whole_names() {
        let told = |formula: &str, name: &str| with_place(formula, name, "(a.cu:3)");
        assert_eq!(
            told("2.1 ns × n × n + 3 ns × p.n", "n"),
            "2.1 ns × n(a.cu:3) × n(a.cu:3) + 3 ns × p.n"
        );
        assert_eq!(
            told("5 µs × gridDim.x", "gridDim.x"),
            "5 µs × gridDim.x(a.cu:3)"
        );
        assert_eq!(told("5 ns × nn", "n"), "5 ns × nn");
    }
}
