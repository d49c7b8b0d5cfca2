//! Query family: everything about one file.
//!
//! In: a document, its path, settings, what the user gives beside them. Out: [`FileAnalysis`]. What holds: it depends on these and
//! on the files as they are, not on what was asked before.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_hir::ItemKind;
use warplens_host::LaunchSite;
use warplens_machine::Profile;
use warplens_syntax::{DirectiveKind, Document, Language, stop};

use crate::parallel;
use crate::program::{FileParts, Launched, kernels_of};
use crate::queries::hosts::HostProgram;
use crate::queries::variants::{FileQuestion, KernelQuestion};
use crate::settings::Settings;
use crate::shares;
use crate::suppress;
use crate::surroundings::Surroundings;
use crate::{Cancel, Engine, FileAnalysis, LaunchAt, Overrides, PlacedFinding, PlacedKernel};

/// A file with what it is linked with and who launches its kernels.
struct TakenApart<'a> {
    parts: FileParts,
    launched: Vec<Launched>,
    /// The settings, with what the build of its kernels defines.
    settings: Cow<'a, Settings>,
    /// The host program that builds them.
    builder: Option<Arc<HostProgram>>,
}

impl Engine {
    /// Analyses every kernel of a parsed document; `None` when cancelled.
    pub fn analyze(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        cancel: &Cancel,
    ) -> Option<FileAnalysis> {
        self.analyze_some(document, path, settings, overrides, cancel, &|_| true)
    }

    /// The same for the kernels whose names are wanted.
    pub(crate) fn analyze_some(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        cancel: &Cancel,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<FileAnalysis> {
        let asked = FileQuestion {
            document,
            path,
            settings,
            overrides,
            cancel,
        };
        // Also in the midst of one kernel.
        stop::until(cancel.flag(), || self.analyze_whole(&asked, wanted))?
    }

    fn analyze_whole(
        &self,
        asked: &FileQuestion<'_>,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<FileAnalysis> {
        let document = asked.document;
        let mut file = self.analyze_as(asked, wanted, false)?;
        // OpenCL that lacks what its host puts in front: the neighbours may have it. A file that includes others
        // says itself what it needs.
        let alone = || !includes_others(document.source());
        let lacks = |file: &FileAnalysis| (losses(file), left_to_the_build(file));
        if document.language() == Language::OpenCl && lacks(&file) > (0, 0) && alone() {
            let second = self.analyze_as(asked, wanted, true)?;
            if places(&second) >= places(&file) && lacks(&second) < lacks(&file) {
                file = second;
            }
        }
        self.on_nearest(asked, wanted, &mut file);
        Some(file)
    }

    /// A file taken apart, under the settings that its kernels are built with.
    fn taken_apart<'a>(
        &self,
        asked: &FileQuestion<'a>,
        profile: &Arc<Profile>,
        neighbours: bool,
    ) -> Option<TakenApart<'a>> {
        let FileQuestion {
            document,
            path,
            settings,
            ..
        } = *asked;
        let (options, builder) = self
            .build_options(document, path, settings, profile)
            .map(|(options, host)| (Arc::new(options), host))
            .unzip();
        // What is defined for the kernels means nothing to the programs around them.
        let around = settings;
        let settings = match &options {
            Some(options) => Cow::Owned(options.applied(settings)),
            None => Cow::Borrowed(settings),
        };
        let (parts, launched) = self.linked_parts(
            &FileQuestion {
                settings: &settings,
                ..*asked
            },
            around,
            profile,
            neighbours,
            options.as_ref(),
        )?;
        Some(TakenApart {
            parts,
            launched,
            settings,
            builder,
        })
    }

    /// The launch of a kernel of this file that is at a byte of it; `None` where there is none, or when cancelled.
    pub fn launch_at(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        byte: usize,
        cancel: &Cancel,
    ) -> Option<LaunchAt> {
        let asked = FileQuestion {
            document,
            path,
            settings,
            overrides,
            cancel,
        };
        let (profile, _) = self.target(settings, path);
        let TakenApart {
            parts, launched, ..
        } = self.taken_apart(&asked, &profile, false)?;
        let is_here = |site: &LaunchSite| site.range.contains(&byte) && !site.range.is_empty();
        let mut own = parts.sites.iter().filter(|site| is_here(site));
        let here = own.next();
        kernels_of(&parts)
            .zip(&launched)
            .find_map(|((_, item, _), launched)| {
                let ItemKind::Kernel(name) = &item.kind else {
                    return None;
                };
                // A launch that is made twice is looked at once.
                let mut sites = launched.sites.iter();
                let same = |site: &LaunchSite| here.is_some_and(|here| here.same_launch(site));
                let variant =
                    sites.position(|(site, here)| *here && is_here(site) || same(site))?;
                let range = match here {
                    Some(here) => here.range.clone(),
                    None => launched.sites[variant].0.range.clone(),
                };
                Some(LaunchAt {
                    kernel: name.clone(),
                    variant,
                    range,
                })
            })
    }

    pub(super) fn analyze_as(
        &self,
        asked: &FileQuestion<'_>,
        wanted: &dyn Fn(&str) -> bool,
        neighbours: bool,
    ) -> Option<FileAnalysis> {
        let FileQuestion {
            path,
            settings,
            cancel,
            ..
        } = *asked;
        let (profile, mut problems) = self.target(settings, path);
        let TakenApart {
            mut parts,
            launched,
            settings,
            builder,
        } = self.taken_apart(asked, &profile, neighbours)?;
        let settings = &*settings;
        let builder = builder.iter().flat_map(|host| &host.versions);
        parts.read_around.extend(builder.cloned());
        let ignored = parts
            .directives
            .iter()
            .any(|d| d.kind == DirectiveKind::IgnoreFile);
        let command = self.project().command(path);
        let mut found = 0;
        let mut items = Vec::new();
        for ((program, item, between), launched) in kernels_of(&parts).zip(&launched) {
            let ItemKind::Kernel(name) = &item.kind else {
                continue;
            };
            found += 1;
            if !ignored && wanted(name) {
                items.push(KernelQuestion {
                    program,
                    item,
                    name,
                    between,
                    launched,
                });
            }
        }
        self.contents().make_room(items.len());
        let made = parallel::as_needed(&items, self.shares, |kernel| {
            if cancel.is_cancelled() {
                return None;
            }
            let asked = FileQuestion { settings, ..*asked };
            let command = command.as_deref();
            let made = self.kernel_results(&asked, &parts, kernel, &profile, command);
            let computed = made.computed;
            Some((made, computed))
        })?;
        let mut kernels: Vec<PlacedKernel> = Vec::new();
        let mut findings = Vec::new();
        for one in made {
            kernels.extend(one.kernels);
            findings.extend(one.findings);
            problems.extend(one.problems);
        }
        shares::weigh(&mut findings, &kernels);
        suppress::apply(
            &mut findings,
            &parts.directives,
            &parts.programs[0].text.source,
            settings,
            ignored,
        );
        if items.len() == found {
            findings.extend(suppress::misnamed(&parts.directives, &kernels));
        }
        findings.sort_by_key(|finding| (finding.range.start, finding.range.end));
        findings.dedup();
        once_a_file(&mut findings);
        let text = &parts.programs[0].text;
        Some(FileAnalysis {
            kernels,
            findings,
            profile,
            problems,
            found,
            reads: text.reads.clone(),
            missing_includes: text.missing.clone(),
            surroundings: Surroundings::of(path, &parts, &launched),
        })
    }
}

/// Rules about a way of writing kernels that a file has or has not: what they find of several kernels is one finding.
const ONCE_A_FILE: [&str; 1] = ["div/early-exit-before-barrier"];

/// Makes one finding of those of such a rule that say the same of several kernels: the loudest, the others are its places.
fn once_a_file(findings: &mut Vec<PlacedFinding>) {
    let mut told: Vec<PlacedFinding> = Vec::with_capacity(findings.len());
    for finding in findings.drain(..) {
        let known = told.iter_mut().find(|known| {
            ONCE_A_FILE.contains(&finding.rule)
                && (known.rule, &known.message, &known.details, known.severity)
                    == (
                        finding.rule,
                        &finding.message,
                        &finding.details,
                        finding.severity,
                    )
        });
        match known {
            Some(known) => {
                let of = finding.kernel.as_deref().unwrap_or_default();
                known
                    .related
                    .push((finding.range, format!("the same in `{of}`")));
            }
            None => told.push(finding),
        }
    }
    *findings = told;
}

fn losses(analysis: &FileAnalysis) -> usize {
    let lost = analysis
        .kernels
        .iter()
        .map(|kernel| kernel.analysis.facts.not_understood.len());
    lost.sum()
}

/// Kernels of the text, each once: branches of a conditional may begin one in several ways.
fn places(analysis: &FileAnalysis) -> usize {
    let ends: FxHashSet<usize> = analysis.kernels.iter().map(|kernel| kernel.end).collect();
    ends.len()
}

/// True where a line of the text includes another file.
fn includes_others(text: &str) -> bool {
    text.lines().any(|line| {
        line.trim_start()
            .strip_prefix('#')
            .is_some_and(|rest| rest.trim_start().starts_with("include"))
    })
}

/// Names that only the build can define.
fn left_to_the_build(analysis: &FileAnalysis) -> usize {
    let kernels = analysis.kernels.iter();
    kernels
        .flat_map(|kernel| &kernel.analysis.facts.assumptions)
        .filter(|assumption| assumption.source.starts_with("-D "))
        .count()
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use warplens_advice::Severity;
    use warplens_machine::Profiles;

    use super::*;
    use crate::queries::kernels::failing::{Stage, set};

    const TWO: &str = "__global__ void sound(float *p) { p[threadIdx.x] = 1; }\n\
                       __global__ void broken(float *p) { p[threadIdx.x] = 2; }\n";

    #[test]
    fn a_query_that_panics_costs_one_kernel_and_is_said_once() {
        let engine = Engine::new(Profiles::builtin());
        let document = Document::new(TWO, Language::Cuda);
        let kernels = |stage: Option<Stage>| {
            set(stage.map(|stage| (stage, "broken")));
            let (settings, overrides) = (Settings::default(), Overrides::default());
            let path = Path::new("two.cu");
            let file = engine.analyze(&document, path, &settings, &overrides, &Cancel::default());
            set(None);
            let file = file.expect("not cancelled");
            let names = file.kernels.iter();
            let names: Vec<String> = names.map(|one| one.analysis.facts.name.clone()).collect();
            let lost = file.findings.into_iter();
            let lost: Vec<_> = lost
                .filter(|finding| finding.rule == "internal/lost-kernel")
                .map(|finding| (&TWO[finding.range], finding.severity))
                .collect();
            (names, lost, file.problems)
        };
        let said = ["the analysis of `broken` failed; please report it with the kernel's source"];
        for stage in [Stage::Lowering, Stage::Analysing] {
            let (names, lost, problems) = kernels(Some(stage));
            assert_eq!(names, ["sound"], "{stage:?}");
            assert_eq!(lost, [("broken", Severity::Error)], "{stage:?}");
            assert_eq!(problems, said, "{stage:?}");
            // What failed is not kept, and nothing else is lost.
            if stage == Stage::Analysing {
                let (names, lost, problems) = kernels(None);
                assert_eq!(names, ["sound", "broken"]);
                assert_eq!(lost, []);
                assert_eq!(problems, [""; 0]);
            }
        }
    }
}
