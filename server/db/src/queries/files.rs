//! Query family: everything about one file.
//!
//! In: a document, its path, settings, what the user gives beside them. Out: [`FileAnalysis`]. What holds: it depends on these and
//! on the files as they are, not on what was asked before.

use std::ops::Range;
use std::path::Path;

use rustc_hash::FxHashSet;
use std::sync::Arc;
use warplens_advice::Place;
use warplens_hir::{Item, ItemKind};
use warplens_host::LaunchSite;
use warplens_syntax::{DirectiveKind, Document, Expanded, Language};

use crate::launch::Given;
use crate::parallel;
use crate::program::{Launched, Program, kernels_of};
use crate::settings::Settings;
use crate::suppress;
use crate::surroundings::Surroundings;
use crate::{Cancel, Engine, FileAnalysis, Overrides, PlacedFinding, PlacedKernel, Variants};

/// Branches inside one kernel that are offered.
const MOST_BRANCHES: usize = 4;

/// What came of one definition of a kernel.
#[derive(Default)]
struct KernelResults {
    kernels: Vec<PlacedKernel>,
    findings: Vec<PlacedFinding>,
    problems: Vec<String>,
    /// Analyses that were not kept from before.
    computed: usize,
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
        let mut file =
            self.analyze_as(document, path, settings, overrides, cancel, wanted, false)?;
        // OpenCL that lacks what its host puts in front: the neighbours may have it. A file that includes others
        // says itself what it needs.
        let alone = || !includes_others(document.source());
        let lacks = |file: &FileAnalysis| (losses(file), left_to_the_build(file));
        if document.language() == Language::OpenCl && lacks(&file) > (0, 0) && alone() {
            let second =
                self.analyze_as(document, path, settings, overrides, cancel, wanted, true)?;
            if places(&second) >= places(&file) && lacks(&second) < lacks(&file) {
                file = second;
            }
        }
        Some(file)
    }

    #[allow(clippy::too_many_arguments, reason = "all of it is the question")]
    fn analyze_as(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        cancel: &Cancel,
        wanted: &dyn Fn(&str) -> bool,
        neighbours: bool,
    ) -> Option<FileAnalysis> {
        let (profile, mut problems) = self.target(settings, path);
        let (options, builder) = self
            .build_options(document, path, settings, &profile)
            .map(|(options, host)| (Arc::new(options), host))
            .unzip();
        // What is defined for the kernels means nothing to the programs around them.
        let around = settings;
        let built = options.as_ref().map(|options| options.applied(settings));
        let settings = built.as_ref().unwrap_or(settings);
        let (mut parts, launched) = self.linked_parts(
            document,
            path,
            settings,
            around,
            overrides,
            &profile,
            neighbours,
            options.as_ref(),
            cancel,
        )?;
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
                items.push((program, item, name, between, launched));
            }
        }
        self.contents().kernels.make_room(items.len());
        self.contents().compiled.make_room(items.len());
        self.contents().analyses.make_room(items.len());
        // One definition of a kernel, under each of its launches that is looked at; `None` when cancelled.
        let make = |one: &(&Program, &Item, &String, Range<usize>, &Launched)| {
            if cancel.is_cancelled() {
                return None;
            }
            let (program, item, name, between, launched) = one;
            let (program, item, name) = (*program, *item, name.as_str());
            let mut made = KernelResults::default();
            let mut branches: Vec<Vec<(String, String)>> = Vec::new();
            let mut variants = launched.sites.clone();
            let blocks: Vec<_> = variants.iter().map(|(site, _)| site.block).collect();
            if variants.is_empty() {
                variants.push((LaunchSite::unknown(name), false));
            }
            let mut names: Vec<String> = variants.iter().map(|(site, _)| describe(site)).collect();
            // Branches inside the kernel that nothing decided: the kernel with each of them taken.
            let launches = variants.len();
            for assume in undecided_within(&program.text, &item.source) {
                names.push(format!("with {}", spelled(&assume)));
                variants.push(variants[0].clone());
                branches.push(assume);
            }
            let chosen = match &overrides.variants {
                Variants::All => 0..variants.len(),
                Variants::Chosen(by_name) => {
                    let at = by_name.get(name).copied().unwrap_or(0) % variants.len();
                    at..at + 1
                }
            };
            for at in chosen {
                let (site, here) = &variants[at];
                let other = at.checked_sub(launches).and_then(|branch| {
                    let assume = branches.get(branch)?;
                    let (mut other, item) = self.with_branch(
                        document,
                        path,
                        settings,
                        &profile,
                        assume,
                        &parts.programs[0].linked,
                        item,
                    )?;
                    other.options.clone_from(&program.options);
                    Some((other, item))
                });
                let (program, item) = match &other {
                    Some((program, item)) => (program, item),
                    None => (program, item),
                };
                let known = launched.lowered.clone().filter(|_| at == 0);
                let lower = || self.lowered(program, item, site, overrides).0;
                let lowered = match known.unwrap_or_else(lower) {
                    Ok(Some(lowered)) => lowered,
                    Ok(None) => continue,
                    Err(()) => {
                        made.problems.push(lost(name));
                        continue;
                    }
                };
                let mut given = Given::of(
                    &lowered.kernel,
                    item,
                    between.clone(),
                    &parts.directives,
                    Some((site, *here)),
                    settings,
                    overrides,
                );
                given.block_varies = variants[..launches]
                    .iter()
                    .any(|(other, _)| other.range == site.range && other.block != site.block);
                let said = self.words.of(
                    path,
                    &profile.architecture,
                    &lowered.kernel.name,
                    &lowered.kernel.template_args,
                    lowered.fingerprint,
                );
                let said = said
                    .filter(|_| !overrides.estimated_only)
                    .map(|said| said.placed(document, item.line, &lowered.kernel.places));
                let word = said.as_ref().filter(|said| said.current);
                let word = word.map(|said| &*said.word);
                let command = command.as_deref();
                let analysis = self.analysis(
                    &lowered, &given, &profile, command, settings, overrides, word,
                );
                let Some((analysis, computed)) = analysis else {
                    made.problems.push(lost(name));
                    continue;
                };
                made.computed += usize::from(computed);
                let placed = PlacedKernel {
                    start: item.source.start,
                    line: item.line,
                    column: item.column,
                    end: item.source.end,
                    analysis,
                    language: program.text.language,
                    variant: at,
                    variants: names.clone(),
                    blocks: blocks.clone(),
                    compiler: said,
                    launched_at: given.place.clone(),
                    places: Arc::clone(&lowered.kernel.places),
                    functions: program.functions(),
                };
                for finding in &placed.analysis.findings {
                    made.findings.push(place(finding, &placed, &given));
                }
                made.kernels.push(placed);
            }
            Some(made)
        };
        // What is known already takes no time. Where several have to be computed most will: a file just opened, another GPU.
        let mut made = Vec::with_capacity(items.len());
        let mut computed = 0;
        for one in &items {
            if self.shares && computed >= parallel::FEW {
                break;
            }
            let one = make(one)?;
            computed += one.computed;
            made.push(one);
        }
        let rest = &items[made.len()..];
        for one in parallel::in_order(rest, make) {
            made.push(one?);
        }
        let mut kernels: Vec<PlacedKernel> = Vec::new();
        let mut findings = Vec::new();
        for one in made {
            kernels.extend(one.kernels);
            findings.extend(one.findings);
            problems.extend(one.problems);
        }
        suppress::apply(
            &mut findings,
            &parts.directives,
            &parts.programs[0].text.source,
            settings,
            ignored,
        );
        findings.sort_by_key(|finding| (finding.range.start, finding.range.end));
        findings.dedup();
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

fn lost(name: &str) -> String {
    format!("the analysis of `{name}` failed; please report it with the kernel's source")
}

/// Branches in these bytes of the source that nothing decided and that are left out: what takes each.
fn undecided_within(text: &Expanded, kernel: &Range<usize>) -> Vec<Vec<(String, String)>> {
    text.undecided
        .iter()
        .flat_map(|conditional| &conditional.branches)
        .filter(|branch| !branch.taken && kernel.contains(&branch.range.start))
        .filter_map(|branch| {
            let assume: Option<Vec<(String, String)>> = branch
                .assume
                .iter()
                .map(|(name, value)| Some((name.clone(), value.clone()?)))
                .collect();
            assume.filter(|assume| !assume.is_empty())
        })
        .take(MOST_BRANCHES)
        .collect()
}

/// `A, B=3`.
fn spelled(assume: &[(String, String)]) -> String {
    let all: Vec<String> = assume
        .iter()
        .map(|(name, value)| match value.as_str() {
            "" | "1" => name.clone(),
            value => format!("{name}={value}"),
        })
        .collect();
    all.join(", ")
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

/// A launch in a few words, to tell variants apart.
fn describe(site: &LaunchSite) -> String {
    let extents = |extents: Option<[u64; 3]>| match extents {
        Some([x, 1, 1]) => x.to_string(),
        Some([x, y, 1]) => format!("{x}x{y}"),
        Some([x, y, z]) => format!("{x}x{y}x{z}"),
        None => "?".to_owned(),
    };
    let mut text = format!("<<<{}, {}>>>", extents(site.grid), extents(site.block));
    if !site.template_args.is_empty() {
        let arguments: Vec<String> = site
            .template_args
            .iter()
            .map(|bound| {
                bound
                    .as_ref()
                    .map_or_else(|| "?".to_owned(), warplens_ir::Bound::spelled)
            })
            .collect();
        text = format!("<{}>{text}", arguments.join(", "));
    }
    text
}

fn place(
    finding: &warplens_advice::Finding,
    kernel: &PlacedKernel,
    given: &Given,
) -> PlacedFinding {
    let name = kernel.place(kernel.analysis.name_site.span);
    let range = match finding.place {
        Place::Site(site) => kernel.place(site.span),
        Place::Kernel => name,
        Place::Launch => given.place.clone().unwrap_or(name),
        Place::Host(at) => given
            .memory
            .get(at)
            .map_or(name, |memory| memory.range.clone()),
    };
    PlacedFinding {
        rule: finding.rule,
        severity: finding.severity,
        range,
        message: finding.message.clone(),
        gain: finding.gain,
        related: finding
            .related
            .iter()
            .map(|(site, text)| (kernel.place(site.span), text.clone()))
            .collect(),
        callee: match finding.place {
            Place::Site(site) => kernel.callee(site),
            Place::Kernel | Place::Launch | Place::Host(_) => None,
        },
    }
}

#[cfg(test)]
mod tests {
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
            (names, file.problems)
        };
        let said = ["the analysis of `broken` failed; please report it with the kernel's source"];
        for stage in [Stage::Lowering, Stage::Analysing] {
            let (names, problems) = kernels(Some(stage));
            assert_eq!(names, ["sound"], "{stage:?}");
            assert_eq!(problems, said, "{stage:?}");
            // What failed is not kept, and nothing else is lost.
            if stage == Stage::Analysing {
                let (names, problems) = kernels(None);
                assert_eq!(names, ["sound", "broken"]);
                assert_eq!(problems, [""; 0]);
            }
        }
    }
}
