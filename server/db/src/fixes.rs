//! Code actions: what `warplens_advice::fixes` needs of the engine, and its answers as the front ends take them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use warplens_advice::actions;
use warplens_advice::fixes::{Analysis, Fix, Kernel, Request};
use warplens_syntax::Document;

use crate::settings::{RuleLevel, Settings};
use crate::suppress::is_enabled;
use crate::{Cancel, Engine, FileAnalysis, KernelAnalysis, Overrides, PlacedFix, Variants};

impl Engine {
    /// The code actions for a range of bytes (a cursor: an empty one) of a parsed document, each proved by
    /// analysing a copy with its edits made. Rules that the settings turn off offer none.
    pub fn fixes(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        range: Range<usize>,
    ) -> Vec<PlacedFix> {
        let mut found = self.with_request(document, path, settings, overrides, range, &actions);
        found.retain(|fix| !off(settings, fix.rule));
        // One of each rule is preferred, among equals the first. An editor may apply such a one unseen: what
        // leaves work to be done by hand never is.
        let mut best: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
        for (index, fix) in found.iter().enumerate().filter(|(_, fix)| fix.complete) {
            let (kept, gain) = best.entry(fix.rule).or_insert((index, fix.gain));
            if fix.gain > *gain {
                (*kept, *gain) = (index, fix.gain);
            }
        }
        found
            .into_iter()
            .enumerate()
            .map(|(index, fix)| {
                let preferred = best.get(fix.rule).is_some_and(|(kept, _)| *kept == index);
                placed(fix, preferred)
            })
            .collect()
    }

    /// One edit that does everywhere in a document what one action does in one place: all complete actions for a rule
    /// whose titles begin with the same word, or of each rule the best where no rule is named. Where two would change the
    /// same bytes the first counts. All of them together are proved as each one is: `None` where they do not help.
    pub fn fix_all(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        kind: Option<(&str, &str)>,
    ) -> Option<PlacedFix> {
        let all = 0..document.len();
        self.with_request(document, path, settings, overrides, all, &|request| {
            let mut found = actions(request);
            found.retain(|fix| {
                let meant = kind.is_none_or(|(rule, begins)| {
                    fix.rule == rule && first_word(&fix.title) == begins
                });
                fix.complete && meant && !off(settings, fix.rule)
            });
            let kept = compatible(found);
            // What the best of them gains alone.
            let gain = kept.first().map_or(1.0, |fix| fix.gain);
            let (edits, rules) = together(&kept);
            let rule = *rules.first()?;
            warplens_advice::fixes::proved(request, &edits, &rules).then(|| PlacedFix {
                title: format!("{} in this file", rules.len()),
                rule,
                edits,
                gain,
                preferred: false,
                complete: true,
            })
        })
    }

    /// All that may be applied without a person looking: the complete actions that make a kernel faster, of each rule one
    /// kind, none of two that change the same bytes; in the order of the text, with their titles. Together they are proved
    /// as each one is; where they do not help together, the best of them alone. `kernels`: only inside of these, all where
    /// none is named.
    pub fn safe_fixes(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        kernels: &[String],
    ) -> Vec<PlacedFix> {
        let all = 0..document.len();
        self.with_request(document, path, settings, overrides, all, &|request| {
            let in_wanted = |fix: &Fix| {
                let known = request.analysis.kernels();
                let mut wanted = known
                    .iter()
                    .filter(|kernel| kernels.contains(&kernel.facts.name));
                kernels.is_empty()
                    || wanted.any(|kernel| {
                        let inside = kernel.start..kernel.end;
                        fix.edits
                            .iter()
                            .any(|(range, _)| inside.contains(&range.start))
                    })
            };
            let mut found = actions(request);
            found.retain(|fix| {
                fix.complete && fix.gain >= GAINS && !off(settings, fix.rule) && in_wanted(fix)
            });
            let mut kept = compatible(found);
            let (edits, rules) = together(&kept);
            if kept.len() > 1 && !warplens_advice::fixes::proved(request, &edits, &rules) {
                kept.truncate(1);
            }
            kept.sort_by_key(|fix| fix.edits.first().map_or(0, |(range, _)| range.start));
            let kept = kept.into_iter().map(|fix| placed(fix, false));
            kept.collect()
        })
    }

    /// Asks for actions with what they need.
    fn with_request<T>(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        range: Range<usize>,
        ask: &dyn Fn(&Request) -> T,
    ) -> T
    where
        T: Default,
    {
        let never = Cancel::default();
        // No compiler has seen the edited copy: both sides of the comparison are estimated.
        let overrides = &Overrides {
            estimated_only: true,
            ..overrides.clone()
        };
        let analysis = self.analyze(document, path, settings, overrides, &never);
        let Some(analysis) = analysis else {
            return T::default();
        };
        // The launch that is shown stays the one that both sides are compared under.
        let mut overrides = overrides.clone();
        if let Variants::Chosen(by_name) = &mut overrides.variants {
            for placed in &analysis.kernels {
                let name = placed.analysis.facts.name.clone();
                by_name.entry(name).or_insert(placed.variant);
            }
        }
        let overrides = &overrides;
        let reanalyze = |copy: &Document, names: &[String]| {
            let wanted = |name: &str| names.iter().any(|one| one == name);
            let analysis = self.analyze_some(copy, path, settings, overrides, &never, &wanted)?;
            Some(Box::new(analysis) as Box<dyn Analysis>)
        };
        ask(&Request {
            document,
            analysis: &analysis,
            range: &range,
            reanalyze: &reanalyze,
        })
    }
}

/// An action as it is offered.
fn placed(fix: Fix, preferred: bool) -> PlacedFix {
    PlacedFix {
        preferred,
        title: fix.title,
        rule: fix.rule,
        edits: fix.edits,
        complete: fix.complete,
        gain: fix.gain,
    }
}

/// The edits of all these actions in the order of the text, and the rules that they answer.
fn together(fixes: &[Fix]) -> (Vec<(Range<usize>, String)>, Vec<&'static str>) {
    let mut edits: Vec<_> = fixes.iter().flat_map(|fix| fix.edits.clone()).collect();
    edits.sort_by_key(|(range, _)| range.start);
    (edits, fixes.iter().map(|fix| fix.rule).collect())
}

/// The least gain of an action that is applied without a person looking.
const GAINS: f64 = 1.01;

/// Of these actions those that can be made together, the one that gains most first.
fn compatible(mut found: Vec<Fix>) -> Vec<Fix> {
    // Of alternatives the one that gains most, the first among equals.
    found.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    // Two cures of one cause, a padding and a swizzle, are not made together: each rule has one kind.
    let mut kinds: BTreeMap<&str, String> = BTreeMap::new();
    found.retain(|fix| {
        let word = first_word(&fix.title);
        kinds.entry(fix.rule).or_insert_with(|| word.to_owned()) == word
    });
    let mut kept: Vec<Fix> = Vec::new();
    for fix in found {
        let apart = fix.edits.iter().all(|(range, _)| {
            kept.iter()
                .flat_map(|kept| &kept.edits)
                .all(|(other, _)| range.end < other.start || other.end < range.start)
        });
        if apart {
            kept.push(fix);
        }
    }
    kept
}

/// The word that says what an action does.
pub fn first_word(title: &str) -> &str {
    title.split(' ').next().unwrap_or(title)
}

fn off(settings: &Settings, rule: &str) -> bool {
    if !is_enabled(rule, settings) {
        return true;
    }
    let category = rule.split('/').next().unwrap_or(rule);
    let level = settings
        .rules
        .get(rule)
        .or_else(|| settings.rules.get(category));
    level.is_some_and(|level| matches!(level, RuleLevel::Off))
}

/// Instructions that a warp executes, on average.
fn per_warp(analysis: &KernelAnalysis) -> Option<f64> {
    let facts = &analysis.facts;
    let warps = facts.launch.blocks() as f64 * facts.launch.warps_per_block(facts.warp_size) as f64;
    let all = analysis.input.instructions.as_ref()?.total();
    (warps > 0.0).then(|| all / warps)
}

impl Analysis for FileAnalysis {
    fn kernels(&self) -> Vec<Kernel<'_>> {
        self.kernels
            .iter()
            .map(|placed| Kernel {
                start: placed.start,
                end: placed.end,
                facts: &placed.analysis.facts,
                resources: placed.analysis.input.resources,
                findings: &placed.analysis.findings,
                launched_at: placed.launched_at.as_ref(),
                blocks: &placed.blocks,
                places: &placed.places,
                cycles: placed.analysis.stand_in_cycles(),
                instructions: per_warp(&placed.analysis),
                occupancy: placed.analysis.input.occupancy.fraction,
                launchable: placed.analysis.input.occupancy.active_blocks_per_sm > 0
                    && !placed
                        .analysis
                        .findings
                        .iter()
                        .any(|finding| finding.rule == "launch/impossible"),
            })
            .collect()
    }
}
