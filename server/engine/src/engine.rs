//! From a document to its analysis, recomputing only what changed.

use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHasher};
use warplens_analysis::facts::Launch;
use warplens_analysis::{Request, analyze};
use warplens_hardware::{KernelArguments, Profile, Profiles, occupancy};
use warplens_ir::{Item, ItemKind, Kernel, LaunchSite, Unit, launch_sites, lower, outline};
use warplens_models::{Factor, Input, ModelId};
use warplens_rules::{Place, Removal};
use warplens_syntax::{Directive, DirectiveKind, Document, Language, Parsed, directives};

use crate::launch::{self, Given};
use crate::settings::Settings;
use crate::suppress;
use crate::{
    Cancel, FileAnalysis, KernelAnalysis, Overrides, PlacedFinding, PlacedKernel, Severity,
};

/// The target where nobody names one.
pub const DEFAULT_GPU: &str = "a100-sxm4-40gb";

/// Analyses kept; the oldest half goes when there are more.
const MOST_KEPT: usize = 2048;

/// Analyses documents. One engine serves every document and thread of a process.
#[derive(Debug)]
pub struct Engine {
    profiles: Profiles,
    units: Kept<u64, Unit>,
    sites: Kept<u64, Vec<LaunchSite>>,
    kernels: Kept<u64, Lowered>,
    analyses: Kept<u64, KernelAnalysis>,
}

/// A kernel in IR, with what the default launch needs to know of it.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) kernel: Kernel,
    /// Registers and static shared bytes, once some analysis has found them.
    pub(crate) resources: Mutex<Option<(u32, u64)>>,
}

/// What was computed once, by content.
#[derive(Debug)]
struct Kept<K, V>(Mutex<Dated<K, V>>);

/// Values with the moment of their last use, and that clock.
type Dated<K, V> = (FxHashMap<K, (u64, Arc<V>)>, u64);

impl<K: Hash + Eq + Copy, V> Kept<K, V> {
    fn new() -> Self {
        Kept(Mutex::new((FxHashMap::default(), 0)))
    }

    fn get(&self, key: K) -> Option<Arc<V>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (map, clock) = &mut *kept;
        *clock += 1;
        map.get_mut(&key).map(|(used, value)| {
            *used = *clock;
            Arc::clone(value)
        })
    }

    fn put(&self, key: K, value: V) -> Arc<V> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (map, clock) = &mut *kept;
        *clock += 1;
        if map.len() >= MOST_KEPT {
            let mut ages: Vec<u64> = map.values().map(|(used, _)| *used).collect();
            ages.sort_unstable();
            let limit = ages[ages.len() / 2];
            map.retain(|_, (used, _)| *used > limit);
        }
        match map.entry(key) {
            Entry::Occupied(entry) => Arc::clone(&entry.get().1),
            Entry::Vacant(entry) => Arc::clone(&entry.insert((*clock, Arc::new(value))).1),
        }
    }

    fn get_or(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        self.get(key).unwrap_or_else(|| self.put(key, make()))
    }
}

fn hash(parts: &[&dyn HashInto]) -> u64 {
    let mut hasher = FxHasher::default();
    for part in parts {
        part.hash_into(&mut hasher);
    }
    hasher.finish()
}

/// Anything that hashes, as an object.
trait HashInto {
    fn hash_into(&self, hasher: &mut FxHasher);
}

impl<T: Hash + ?Sized> HashInto for T {
    fn hash_into(&self, hasher: &mut FxHasher) {
        self.hash(hasher);
    }
}

/// A file taken apart: what its kernels need, each with the hash of all it hangs on.
pub(crate) struct FileParts {
    pub(crate) items: Vec<Item>,
    pub(crate) unit: Arc<Unit>,
    pub(crate) unit_key: u64,
    pub(crate) sites: Vec<LaunchSite>,
    pub(crate) directives: Vec<Directive>,
}

impl Engine {
    /// An engine with these profiles.
    pub fn new(profiles: Profiles) -> Engine {
        Engine {
            profiles,
            units: Kept::new(),
            sites: Kept::new(),
            kernels: Kept::new(),
            analyses: Kept::new(),
        }
    }

    /// The profiles.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// The target that the settings name, or the default with a word about what is wrong.
    pub(crate) fn target(&self, settings: &Settings) -> (Arc<Profile>, Vec<String>) {
        let default = || {
            self.profiles
                .get(DEFAULT_GPU)
                .or_else(|| self.profiles.iter().next())
                .expect("profiles are built in")
        };
        match &settings.gpu {
            None => (default(), Vec::new()),
            Some(id) => match self.profiles.get(id) {
                Some(profile) => (profile, Vec::new()),
                None => (
                    default(),
                    vec![crate::settings::unknown_gpu(id, &self.profiles)],
                ),
            },
        }
    }

    pub(crate) fn parts(
        &self,
        parsed: &Parsed,
        language: Language,
        settings: &Settings,
    ) -> FileParts {
        let items = outline(parsed, language);
        let text = |item: &Item| &parsed.text[item.range.clone()];
        // Host functions do not matter to a kernel, only their launches do.
        let declares = |item: &Item| match item.kind {
            ItemKind::Kernel(_) => false,
            ItemKind::Declaration => true,
            ItemKind::Function(_) => language == Language::OpenCl || is_device(text(item)),
        };
        let declarations: Vec<Item> = items
            .iter()
            .filter(|item| declares(item))
            .cloned()
            .collect();
        let mut hasher = FxHasher::default();
        language.hash(&mut hasher);
        for item in &declarations {
            text(item).hash(&mut hasher);
        }
        for (name, value) in &settings.defines {
            (name, value).hash(&mut hasher);
        }
        let unit_key = hasher.finish();
        let unit = self.units.get_or(unit_key, || {
            let defines: Vec<(String, String)> = settings
                .defines
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            Unit::new(parsed, language, &declarations, &defines)
        });
        let mut sites = Vec::new();
        for item in &items {
            if matches!(item.kind, ItemKind::Function(_)) && text(item).contains("<<<") {
                let key = hash(&[&unit_key, &text(item)]);
                let found = self.sites.get_or(key, || launch_sites(parsed, item, &unit));
                sites.extend(found.iter().cloned().map(|mut site| {
                    let start = item.range.start;
                    site.range = site.range.start + start..site.range.end + start;
                    site
                }));
            }
        }
        FileParts {
            items,
            unit,
            unit_key,
            sites,
            directives: directives(&parsed.text),
        }
    }

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
        let _ = path;
        let parsed = document.parsed();
        let (profile, mut problems) = self.target(settings);
        let parts = self.parts(parsed, document.language(), settings);
        let ignored = parts
            .directives
            .iter()
            .any(|d| d.kind == DirectiveKind::IgnoreFile);
        let mut kernels = Vec::new();
        let mut findings = Vec::new();
        let mut previous_end = 0;
        for item in &parts.items {
            let ItemKind::Kernel(name) = &item.kind else {
                previous_end = previous_end.max(item.range.end);
                continue;
            };
            if cancel.is_cancelled() {
                return None;
            }
            let between = previous_end..item.range.start;
            previous_end = item.range.end;
            if ignored || !wanted(name) {
                continue;
            }
            let text = &parsed.text[item.range.clone()];
            let site = parts.sites.iter().find(|site| site.kernel == *name);
            let template_args = template_args(site, overrides);
            let key = hash(&[&parts.unit_key, &text, &template_args]);
            let lowered = match self.kernels.get(key) {
                Some(lowered) => lowered,
                None => {
                    let made = catch_unwind(AssertUnwindSafe(|| {
                        lower(parsed, &parts.items, item, &parts.unit, &template_args)
                    }));
                    match made {
                        Ok(Some(kernel)) => self.kernels.put(
                            key,
                            Lowered {
                                kernel,
                                resources: Mutex::new(None),
                            },
                        ),
                        Ok(None) => continue,
                        Err(_) => {
                            problems.push(lost(name));
                            continue;
                        }
                    }
                }
            };
            let given = Given::of(
                &lowered.kernel,
                item,
                between,
                &parts.directives,
                site,
                settings,
                overrides,
            );
            let analysis_key = hash(&[
                &key,
                &given,
                &profile.id,
                &OverrideKey(overrides),
                &settings.model,
            ]);
            let analysis = match self.analyses.get(analysis_key) {
                Some(analysis) => analysis,
                None => {
                    let made = catch_unwind(AssertUnwindSafe(|| {
                        Self::kernel(&lowered, text, &given, &profile, settings, overrides)
                    }));
                    match made {
                        Ok(analysis) => self.analyses.put(analysis_key, analysis),
                        Err(_) => {
                            problems.push(lost(name));
                            continue;
                        }
                    }
                }
            };
            let placed = PlacedKernel {
                start: item.range.start,
                line: item.line,
                column: item.column,
                end: item.range.end,
                analysis,
            };
            for finding in &placed.analysis.findings {
                findings.push(place(finding, &placed, &given));
            }
            kernels.push(placed);
        }
        suppress::apply(&mut findings, &parts.directives, parsed, settings, ignored);
        findings.sort_by_key(|finding| (finding.range.start, finding.range.end));
        Some(FileAnalysis {
            kernels,
            findings,
            profile,
            problems,
        })
    }

    /// One kernel under one launch on one GPU.
    fn kernel(
        lowered: &Lowered,
        text: &str,
        given: &Given,
        profile: &Arc<Profile>,
        settings: &Settings,
        overrides: &Overrides,
    ) -> KernelAnalysis {
        let kernel = &lowered.kernel;
        let arguments = &given.arguments;
        let facts_for = |launch: Launch| {
            analyze(&Request {
                kernel,
                text,
                launch,
                profile,
                arguments,
                probabilities: &given.probabilities(),
            })
        };
        let known = *lowered
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let residency = |registers: u32, shared: u64, launch: &Launch, blocks: u64| {
            let registers = overrides.registers.unwrap_or(registers);
            let bytes = shared + launch.dynamic_shared_bytes + argument_bytes(kernel, profile);
            occupancy(
                profile,
                launch.threads_per_block(),
                registers,
                bytes,
                blocks,
            )
        };
        // The default grid is so many full waves: it needs the residency, and that the resources.
        let (registers, shared) = known.unwrap_or((0, 0));
        let mut launch = given.launch(kernel, profile, &|launch| {
            residency(registers, shared, launch, u64::MAX).active_blocks_per_sm
        });
        let mut facts = facts_for(launch);
        if known.is_none() {
            let found = (facts.registers_per_thread, facts.static_shared_bytes);
            *lowered
                .resources
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(found);
            let again = given.launch(kernel, profile, &|launch| {
                residency(found.0, found.1, launch, u64::MAX).active_blocks_per_sm
            });
            if again != launch {
                launch = again;
                facts = facts_for(launch);
            }
        }
        let residence = residency(
            facts.registers_per_thread,
            facts.static_shared_bytes,
            &launch,
            launch.blocks(),
        );
        if let Some(registers) = overrides.registers {
            facts.registers_per_thread = registers;
        }
        let input = Input {
            facts: &facts,
            profile,
            occupancy: &residence,
            without: &overrides.without,
            warps_per_sm: overrides.warps_per_sm,
            ideal_access: None,
        };
        let estimates: std::collections::BTreeMap<_, _> = ModelId::ALL
            .iter()
            .map(|&model| (model, warplens_models::estimate(model, &input)))
            .collect();
        let model = settings
            .model
            .as_deref()
            .and_then(|name| ModelId::ALL.into_iter().find(|model| model.name() == name))
            .unwrap_or(ModelId::Auto);
        let lines = shares(&estimates[&model].lines);
        let what_if = warplens_models::what_if(&input);
        let findings = Self::findings(&input, overrides.registers.is_some(), &|block| {
            let changed = Launch {
                block,
                grid: launch::whole_warps_grid(launch.grid, launch.block, block),
                ..launch
            };
            let facts = facts_for(changed);
            let residence = residency(
                facts.registers_per_thread,
                facts.static_shared_bytes,
                &changed,
                changed.blocks(),
            );
            let input = Input {
                facts: &facts,
                occupancy: &residence,
                ..input
            };
            let threads = (changed.blocks() * changed.threads_per_block()) as f64;
            warplens_models::cycles(&input).map(|cycles| cycles / threads)
        });
        KernelAnalysis {
            profile: Arc::clone(profile),
            occupancy: residence.clone(),
            registers_source: if overrides.registers.is_some() {
                "user"
            } else {
                "estimated"
            },
            estimates: estimates.clone(),
            model,
            lines,
            what_if,
            findings,
            name_site: kernel.name_site,
            launch_known: given.block_from_source(),
            template_args: kernel.template_args.clone(),
            facts,
        }
    }

    /// What the rules say; `per_thread` re-analyses under another block: cycles per thread.
    fn findings(
        input: &Input,
        registers_known: bool,
        per_thread: &dyn Fn([u64; 3]) -> Option<f64>,
    ) -> Vec<warplens_rules::Finding> {
        let base = warplens_models::cycles(input);
        let gain = |removal: Removal| {
            let Some(before) = base else { return 1.0 };
            let after = match removal {
                Removal::Access(access) => warplens_models::cycles(&Input {
                    ideal_access: Some(access),
                    ..*input
                }),
                Removal::Factor(factor) => {
                    let mut without: Vec<Factor> = input.without.to_vec();
                    without.push(factor);
                    warplens_models::cycles(&Input {
                        without: &without,
                        ..*input
                    })
                }
                Removal::IdleLanes => {
                    let block = input.facts.launch.block;
                    let threads = (input.facts.launch.blocks()
                        * input.facts.launch.threads_per_block())
                        as f64;
                    let whole = launch::whole_warps(block, input.facts.warp_size);
                    return per_thread(whole).map_or(1.0, |after| {
                        warplens_models::speedup(before / threads, after)
                    });
                }
            };
            after.map_or(1.0, |after| warplens_models::speedup(before, after))
        };
        warplens_rules::run(&warplens_rules::Context {
            facts: input.facts,
            profile: input.profile,
            occupancy: input.occupancy,
            registers_known,
            gain: &gain,
        })
    }
}

/// What of the overrides changes a kernel beside its launch.
struct OverrideKey<'a>(&'a Overrides);

impl Hash for OverrideKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.registers.hash(state);
        self.0.warps_per_sm.hash(state);
        self.0.without.hash(state);
    }
}

fn lost(name: &str) -> String {
    format!("the analysis of `{name}` failed; please report it with the kernel's source")
}

fn is_device(text: &str) -> bool {
    let head = &text[..text.find('{').unwrap_or(text.len())];
    head.contains("__device__") || head.contains("constexpr")
}

fn template_args(site: Option<&LaunchSite>, overrides: &Overrides) -> Vec<(String, String)> {
    let mut bound: Vec<(String, String)> = overrides
        .template_args
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(site) = site {
        bound.extend(
            site.template_args
                .iter()
                .enumerate()
                .map(|(at, value)| (at.to_string(), value.clone())),
        );
    }
    bound
}

/// Bytes of a kernel's arguments where they live in shared memory (capability 1.x).
fn argument_bytes(kernel: &Kernel, profile: &Profile) -> u64 {
    if profile.kernel_arguments != KernelArguments::Shared {
        return 0;
    }
    kernel
        .vars
        .iter()
        .take(kernel.params as usize)
        .map(|var| var.ty.size())
        .sum()
}

/// Each line's share of the cycles, largest first.
fn shares(lines: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let mut by_line: std::collections::BTreeMap<u32, f64> = std::collections::BTreeMap::new();
    for &(line, cycles) in lines {
        *by_line.entry(line).or_insert(0.0) += cycles;
    }
    let total: f64 = by_line.values().sum();
    let mut shares: Vec<(u32, f64)> = by_line
        .into_iter()
        .map(|(line, cycles)| (line, if total > 0.0 { cycles / total } else { 0.0 }))
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

fn place(finding: &warplens_rules::Finding, kernel: &PlacedKernel, given: &Given) -> PlacedFinding {
    let name = kernel.place(kernel.analysis.name_site.span);
    let range = match finding.place {
        Place::Site(site) => kernel.place(site.span),
        Place::Kernel => name,
        Place::Launch => given.place.clone().unwrap_or(name),
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
    }
}

/// Severity by its name in settings.
pub(crate) fn cap(severity: Severity, most: Severity) -> Severity {
    if severity == Severity::Error {
        severity
    } else {
        severity.min(most)
    }
}
