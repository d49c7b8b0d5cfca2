//! Query family: one kernel under each of its launches that is looked at.
//!
//! In: a kernel of a file taken apart, its launches. Out: its analyses at their places, their findings, and what failed. What holds:
//! a launch, a branch that nothing decided, or a definition that fails costs itself alone.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use warplens_advice::{Place, Severity};
use warplens_base::Command;
use warplens_facts::facts::Source;
use warplens_hir::Item;
use warplens_host::LaunchSite;
use warplens_machine::Profile;
use warplens_syntax::{Document, Expanded};

use crate::launch::Given;
use crate::program::{FileParts, Launched, Program};
use crate::queries::analyses::AnalysisQuestion;
use crate::queries::expansion::Buffer;
use crate::settings::Settings;
use crate::{
    Cancel, Engine, LOST_KERNEL, LaunchValues, Overrides, PlacedFinding, PlacedKernel, RunLaunch,
    Variants,
};

/// Where such a kernel is reported to us.
const REPORT: &str = "https://github.com/warplens/warplens/issues/new?template=crash.yml";

/// Launches of one kernel whose times are compared to find the one that is shown: a keystroke waits for each.
const MOST_COMPARED: usize = 3;

/// Branches inside one kernel that are offered.
const MOST_BRANCHES: usize = 4;

/// What is asked about a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileQuestion<'a> {
    pub(crate) document: &'a Document,
    pub(crate) path: &'a Path,
    pub(crate) settings: &'a Settings,
    pub(crate) overrides: &'a Overrides,
    pub(crate) cancel: &'a Cancel,
}

/// A definition of a kernel.
pub(crate) struct KernelQuestion<'a> {
    pub(crate) program: &'a Program,
    pub(crate) item: &'a Item,
    pub(crate) name: &'a str,
    /// Bytes between it and the item before, where directives may stand.
    pub(crate) between: Range<usize>,
    pub(crate) launched: &'a Launched,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct KernelResults {
    pub(crate) kernels: Vec<PlacedKernel>,
    pub(crate) findings: Vec<PlacedFinding>,
    /// What failed, in words, for the log.
    pub(crate) problems: Vec<String>,
    /// Analyses that were not kept from before.
    pub(crate) computed: usize,
}

impl Engine {
    /// One definition of a kernel, under each of its launches that is looked at.
    pub(crate) fn kernel_results(
        &self,
        asked: &FileQuestion<'_>,
        parts: &FileParts,
        kernel: &KernelQuestion<'_>,
        profile: &Arc<Profile>,
        command: Option<&Command>,
    ) -> KernelResults {
        let FileQuestion {
            document,
            path,
            settings,
            overrides,
            ..
        } = *asked;
        let KernelQuestion {
            program,
            item,
            name,
            between,
            launched,
        } = kernel;
        let (program, item, name) = (*program, *item, *name);
        let mut made = KernelResults::default();
        let buffer = Buffer {
            document,
            path,
            settings,
            profile,
            neighbours: false,
        };
        let mut branches: Vec<Vec<(String, String)>> = Vec::new();
        let mut variants = launched.sites.clone();
        let blocks: Vec<_> = variants.iter().map(|(site, _)| site.block).collect();
        if variants.is_empty() {
            variants.push((LaunchSite::unknown(name), false));
        }
        // A launch that the user sets takes the place of those of the text.
        let set = overrides.set_launch.get(name);
        let from_outside = [Some(&overrides.argument), set];
        let sites = variants.iter().map(|(site, _)| site);
        let mut names: Vec<String> = sites.map(|site| describe(site, &from_outside)).collect();
        // Branches inside the kernel that nothing decided: the kernel with each of them taken.
        let launches = variants.len();
        for assume in undecided_within(&program.text, &item.source) {
            names.push(format!("with {}", spelled(&assume)));
            variants.push(variants[0].clone());
            branches.push(assume);
        }
        let by_name = match &overrides.variants {
            Variants::All => &overrides.set_on,
            Variants::Chosen(by_name) => by_name,
        };
        let picked = by_name.get(name).map(|at| at % variants.len());
        // Copies of a text that prove an edit are not numbered: they are looked at under the launch that is shown.
        let first = match picked {
            Some(_) if overrides.estimated_only => 0,
            _ => {
                let sites = &variants[..launches];
                self.costliest(asked, parts, kernel, sites, profile, command)
            }
        };
        let chosen = match (&overrides.variants, picked.unwrap_or(first)) {
            (Variants::All, _) if set.is_none() => 0..variants.len(),
            (_, at) => at..at + 1,
        };
        for at in chosen {
            let (site, here) = &variants[at];
            let other = at.checked_sub(launches).and_then(|branch| {
                let assume = branches.get(branch)?;
                let linked = &parts.programs[0].linked;
                let (mut other, item) = self.with_branch(buffer, assume, linked, item)?;
                other.options.clone_from(&program.options);
                Some((other, item))
            });
            let (program, item) = match &other {
                Some((program, item)) => (program, item),
                None => (program, item),
            };
            let known = launched.lowered.clone();
            let known = known.filter(|_| at < launches && at == largest(&variants));
            let lower = || self.lowered(program, item, site, overrides).0;
            let lowered = match known.unwrap_or_else(lower) {
                Ok(Some(lowered)) => lowered,
                Ok(None) => continue,
                Err(()) => {
                    made.lose(program, item, name, &names[at]);
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
            let seen = !site.range.is_empty();
            given.asks_for_shared = seen.then_some(site.asks_for_shared);
            given.allows_large_clusters = seen.then_some(site.allows_large_clusters);
            given.cluster = site.cluster;
            given.grid_by_text = *here
                && parts.sites.iter().any(|said| {
                    said.range == site.range && said.grid.is_some() && said.grid == site.grid
                });
            given.block_varies = site.block_varies
                || variants[..launches]
                    .iter()
                    .any(|(other, _)| other.range == site.range && other.block != site.block);
            let said = self.reports.of(
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
            let word = word.map(|said| &*said.report);
            let analysis = self.analysis(&AnalysisQuestion {
                lowered: &lowered,
                given: &given,
                profile,
                command,
                settings,
                overrides,
                word,
            });
            let Some((analysis, computed)) = analysis else {
                made.lose(program, item, name, &names[at]);
                continue;
            };
            made.computed += usize::from(computed);
            // What a comment or an attribute at the kernel says counts before what the launch does.
            let launch = analysis.facts.launch;
            let at_kernel = |source| matches!(source, Source::Directive | Source::Attribute);
            let by_kernel = LaunchValues {
                grid: at_kernel(launch.grid_source).then_some(launch.grid),
                block: at_kernel(launch.block_source).then_some(launch.block),
                ..LaunchValues::default()
            };
            let mut told = names.clone();
            if at < launches {
                let from_outside = [Some(&overrides.argument), set, Some(&by_kernel)];
                told[at] = describe(site, &from_outside);
            }
            let placed = PlacedKernel {
                start: item.source.start,
                line: item.line,
                column: item.column,
                end: item.source.end,
                analysis,
                language: program.text.language,
                variant: at,
                order: match set {
                    Some(_) => vec![at],
                    None => told_order(first, launches, names.len()),
                },
                set: set.cloned(),
                variants: told,
                blocks: blocks.clone(),
                compiler: said,
                launched_at: given.place.clone(),
                run: site.of_run.as_ref().map(|said| RunLaunch {
                    said: Arc::clone(said),
                    count: site.count,
                    arguments: site.arguments.clone(),
                    extents: site.extents.clone(),
                }),
                begins_early: site.begins_early,
                site: (overrides.program.is_some()).then(|| Arc::new(site.clone())),
                places: Arc::clone(&lowered.kernel.places),
                functions: program.functions(),
            };
            for finding in placed.analysis.findings.iter() {
                made.findings.push(place(finding, &placed, &given));
            }
            made.kernels.push(placed);
        }
        made
    }

    /// Which of a kernel's launches takes longest, by the predicted time of one: the first of the largest where none is known.
    fn costliest(
        &self,
        asked: &FileQuestion<'_>,
        parts: &FileParts,
        kernel: &KernelQuestion<'_>,
        sites: &[(LaunchSite, bool)],
        profile: &Arc<Profile>,
        command: Option<&Command>,
    ) -> usize {
        if sites.len() < 2 {
            return 0;
        }
        // What the user sets is the same for all of them.
        let overrides = Overrides {
            unadvised: true,
            set_launch: BTreeMap::new(),
            ..asked.overrides.clone()
        };
        let time = |(site, here): &(LaunchSite, bool)| {
            let (lowered, _) = self.lowered(kernel.program, kernel.item, site, &overrides);
            let lowered = lowered.ok().flatten()?;
            let given = Given::of(
                &lowered.kernel,
                kernel.item,
                kernel.between.clone(),
                &parts.directives,
                Some((site, *here)),
                asked.settings,
                &overrides,
            );
            let (analysis, _) = self.analysis(&AnalysisQuestion {
                lowered: &lowered,
                given: &given,
                profile,
                command,
                settings: asked.settings,
                overrides: &overrides,
                word: None,
            })?;
            Some((!analysis.has_unknown_sizes(), analysis.stand_in_cycles()?))
        };
        // Another instance of a template is lowered and compiled anew, which a keystroke does not wait for: of instances the first
        // with most threads counts.
        let instance = |at: usize| (&sites[at].0.template_args, &sites[at].0.argument_types);
        let largest = largest(sites);
        let of_instance = (0..sites.len()).filter(|at| instance(*at) == instance(largest));
        let sizes: Vec<(usize, Size)> = of_instance.map(|at| (at, size_of(&sites[at].0))).collect();
        let mut best = (largest, None);
        for at in likely(sizes, MOST_COMPARED) {
            let time = time(&sites[at]);
            if time > best.1 {
                best = (at, time);
            }
        }
        best.0
    }
}

/// The first of a kernel's launches with most threads: its instance is looked at before any other.
pub(crate) fn largest(sites: &[(LaunchSite, bool)]) -> usize {
    let threads = |at: &usize| sites.get(*at).map(|(site, _)| size_of(site).0);
    (0..sites.len()).rev().max_by_key(threads).unwrap_or(0)
}

/// Threads of a launch and the product of its integer arguments.
type Size = (u128, u128);

/// What is compared before any time is.
fn size_of(site: &LaunchSite) -> Size {
    let product = |factors: &mut dyn Iterator<Item = u64>| {
        factors.fold(1, |product: u128, factor| {
            product.saturating_mul(u128::from(factor.max(1)))
        })
    };
    let extents = [site.grid, site.block].into_iter().flatten().flatten();
    let arguments = site.arguments.iter().flatten();
    let members = site.members.iter().map(|member| &member.value);
    let mut arguments = arguments.chain(members).map(|value| value.unsigned_abs());
    (product(&mut extents.into_iter()), product(&mut arguments))
}

/// Of launches by their sizes the few that may take longest, in their order: what has most threads, and what has the largest
/// arguments for the fewest threads, whose loops run longest where threads share a fixed amount of work.
fn likely(sizes: Vec<(usize, Size)>, most: usize) -> Vec<usize> {
    let (mut wide, mut long) = (sizes.clone(), sizes);
    wide.sort_by_key(|(_, size)| Reverse(*size));
    long.sort_by_key(|(_, (threads, arguments))| (Reverse(*arguments), *threads));
    let mut found: Vec<usize> = Vec::new();
    for (at, _) in wide.iter().zip(&long).flat_map(|(wide, long)| [wide, long]) {
        if found.len() < most && !found.contains(at) {
            found.push(*at);
        }
    }
    found.sort_unstable();
    found
}

/// The order in which variants are told, of which that many at the front are launches: the costliest, those behind it in the text, then
/// those before it; last what is no launch of the text.
fn told_order(first: usize, launches: usize, variants: usize) -> Vec<usize> {
    let first = first.min(launches);
    (first..launches)
        .chain(0..first)
        .chain(launches..variants)
        .collect()
}

impl KernelResults {
    /// A kernel whose analysis failed: that is a finding at its name, once however many of its launches fail.
    fn lose(&mut self, program: &Program, item: &Item, name: &str, launch: &str) {
        let problem =
            format!("the analysis of `{name}` failed; please report it with the kernel's source");
        if self.problems.contains(&problem) {
            return;
        }
        self.problems.push(problem);
        self.findings.push(PlacedFinding {
            rule: LOST_KERNEL,
            severity: Severity::Error,
            range: name_of(item, &program.text.source, name),
            message: format!("`{name}` was not analysed: warplens failed in it; please report it"),
            details: vec![
                format!("report it: {REPORT}"),
                "what it needs: `warplens --version`, the line \"internal error\" of the log, the kernel cut down"
                    .to_owned(),
                format!("the launch that it failed under: {launch}"),
            ],
            gain: 1.0,
            related: Vec::new(),
            callee: None,
            kernel: Some(name.to_owned()),
        });
    }
}

/// The bytes of a kernel's name in its file; where the name is not spelled there, those of its first line.
fn name_of(item: &Item, source: &str, name: &str) -> Range<usize> {
    let text = source.get(item.source.clone()).unwrap_or_default();
    let is_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let before = |at: usize| at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
    let whole =
        |at: &usize| !is_word(before(*at)) && !is_word(text.as_bytes().get(at + name.len()));
    let found = text.match_indices(name).map(|(at, _)| at).find(whole);
    let (at, length) = match found {
        Some(at) => (at, name.len()),
        None => (0, text.lines().next().unwrap_or_default().len()),
    };
    let start = item.source.start + at;
    start..start + length
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

/// A launch in a few words, to tell variants apart, with the values from outside of the text that take the place of its own.
fn describe(site: &LaunchSite, from_outside: &[Option<&LaunchValues>]) -> String {
    let given = |get: &dyn Fn(&LaunchValues) -> Option<[u64; 3]>| {
        from_outside.iter().flatten().find_map(|values| get(values))
    };
    let block = given(&|values| values.block).or(site.block);
    let covering = |values: &LaunchValues| {
        let (global, block) = (values.global?, block?);
        Some([0, 1, 2].map(|axis| global[axis].div_ceil(block[axis].max(1))))
    };
    let grid = given(&|values| values.grid.or_else(|| covering(values))).or(site.grid);

    let extents = |extents: Option<[u64; 3]>| match extents {
        Some([x, 1, 1]) => x.to_string(),
        Some([x, y, 1]) => format!("{x}x{y}"),
        Some([x, y, z]) => format!("{x}x{y}x{z}"),
        None => "?".to_owned(),
    };
    let mut text = format!("<<<{}, {}>>>", extents(grid), extents(block));
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
        Place::HostLoop(call) => given.around.as_ref().map_or(name, |(around, _)| {
            let call = call.and_then(|call| around.calls.get(call));
            call.map_or_else(|| around.range.clone(), |call| call.range.clone())
        }),
    };
    let mut lines = finding.message.lines().map(str::to_owned);
    PlacedFinding {
        rule: finding.rule,
        severity: finding.severity,
        range,
        message: lines.next().unwrap_or_default(),
        details: lines.collect(),
        gain: finding.gain,
        related: finding
            .related
            .iter()
            .map(|(site, text)| (kernel.place(site.span), text.clone()))
            .collect(),
        callee: match finding.place {
            Place::Site(site) => kernel.callee(site),
            Place::Kernel | Place::Launch | Place::Host(_) | Place::HostLoop(_) => None,
        },
        kernel: Some(kernel.analysis.facts.name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_with_most_threads_and_with_the_longest_loops_are_compared() {
        // Blocks of 128 to 1024 threads, each over two lengths of a row.
        let sizes = [128, 256, 512, 1024].map(|threads| (256 * threads, 1000));
        let longer = sizes.map(|(threads, _)| (threads, 3906));
        let sizes: Vec<(usize, Size)> = sizes.into_iter().chain(longer).enumerate().collect();
        assert_eq!(likely(sizes.clone(), 3), [3, 4, 7]);
        assert_eq!(likely(sizes[..1].to_vec(), 3), [0]);
        assert_eq!(likely(Vec::new(), 3), [0; 0]);
    }

    #[test]
    fn the_costliest_launch_is_the_first_and_the_others_follow_in_order() {
        assert_eq!(told_order(0, 4, 5), [0, 1, 2, 3, 4]);
        assert_eq!(told_order(2, 4, 5), [2, 3, 0, 1, 4]);
    }
}
