//! What is predicted of a table's rows: time, and what the counters of the GPU count.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use rayon::prelude::*;
use warplens_db::settings::Settings;
use warplens_db::{Configured, Engine, KernelAnalysis, Overrides, Project, WarpInstructions};
use warplens_facts::facts::{Node, SourceFacts, Space};
use warplens_machine::{Profile, Profiles, Vendor};
use warplens_models::auto::{Mechanism, cycles_without};
use warplens_models::{Estimate, ModelId, ModelInput, Question};
use warplens_syntax::{Document, Language};
use warplens_tuning::Extents;

use super::commands::WithCommands;
use super::row::{Row, Table};

/// Stack of a thread that analyses source.
const STACK: usize = 64 << 20;

/// What is predicted of a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Predicted {
    /// Milliseconds, the launch's overhead included.
    pub ms: Option<f64>,
    /// SM clock cycles.
    pub cycles: Option<f64>,
    /// Why it cannot be launched, or why nothing is predicted.
    pub why_not: Option<String>,
    /// True where it is said that it cannot be launched.
    pub invalid: bool,
    /// What the hardware would count.
    pub counted: BTreeMap<Counter, f64>,
    /// The model's own quantities.
    pub detail: BTreeMap<String, f64>,
    /// Cycles without each mechanism, in the order of [`mechanisms`].
    pub without: Vec<Option<f64>>,
}

/// What is held against a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Warp instructions executed.
    Instructions,
    /// Passes of shared memory.
    Wavefronts,
    /// Sectors of 32 bytes between L1 and L2.
    L2Sectors,
    /// Sectors of 32 bytes between L2 and memory.
    DramSectors,
    /// Resident warps of the most, in per cent.
    Occupancy,
    /// Active threads of a warp instruction.
    ActiveThreads,
    /// Registers of a thread.
    Registers,
}

impl Counter {
    /// Every counter, in the order shown.
    pub const ALL: [Counter; 7] = [
        Counter::Instructions,
        Counter::Wavefronts,
        Counter::L2Sectors,
        Counter::DramSectors,
        Counter::Occupancy,
        Counter::ActiveThreads,
        Counter::Registers,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Instructions => "warp instructions",
            Counter::Wavefronts => "shared wavefronts",
            Counter::L2Sectors => "L2 sectors",
            Counter::DramSectors => "DRAM sectors",
            Counter::Occupancy => "achieved occupancy",
            Counter::ActiveThreads => "active threads per instruction",
            Counter::Registers => "registers",
        }
    }

    /// The table's names; what they count is added up.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Counter::Instructions => &["warp_inst_executed"],
            Counter::Wavefronts => &["shared_ld_wavefronts", "shared_st_wavefronts"],
            Counter::L2Sectors => &["l2_rd_sectors", "l2_wr_sectors"],
            Counter::DramSectors => &["dram_rd_sectors", "dram_wr_sectors"],
            Counter::Occupancy => &["achieved_occupancy_pct"],
            Counter::ActiveThreads => &["avg_active_threads_per_warp_inst"],
            Counter::Registers => &["regs"],
        }
    }

    /// What a row's counters say.
    pub fn measured(self, row: &Row) -> Option<f64> {
        let columns = self.columns().iter();
        columns.map(|name| row.counters.get(*name)).sum()
    }

    /// The error of a prediction: in the counter's own unit for shares of the hardware (points), else a ratio, which is
    /// infinite where one of the two is nothing.
    pub fn error(self, predicted: f64, measured: f64) -> f64 {
        match self {
            Counter::Occupancy => (predicted - measured).abs(),
            _ if predicted == measured => 0.0,
            _ => (predicted / measured).ln().abs(),
        }
    }
}

/// What can be taken out of the model, by name.
pub fn mechanisms() -> impl Iterator<Item = &'static str> {
    Mechanism::ALL.into_iter().map(Mechanism::name)
}

/// The profile of a GPU as tables call it.
pub fn profile(profiles: &Profiles, gpu: &str) -> Option<Arc<Profile>> {
    /// Names that are no profile's: another board with the same chip, clock and memory, or several that one name covers.
    const SAME: [(&str, &str); 7] = [
        ("a100-40gb", "a100-sxm4-40gb"),
        ("a100-sxm4-40gb-mig-7g-40gb", "a100-sxm4-40gb"),
        // Of the boards with this chip only the SXM5 one has HBM3.
        ("h100-80gb-hbm3", "h100-sxm5"),
        ("k40m", "tesla-k40c"),
        ("p100-pcie-16gb", "tesla-p100"),
        ("v100", "v100-sxm2-16gb"),
        ("v100-900-gb-s", "v100-sxm2-16gb"),
    ];
    let words = gpu
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .map(str::to_ascii_lowercase)
        .filter(|word| !word.is_empty());
    let plain = words.filter(|word| {
        ![
            "nvidia", "amd", "intel", "geforce", "tesla", "radeon", "gpu",
        ]
        .contains(&word.as_str())
    });
    let plain = plain.collect::<Vec<_>>().join("-");
    let same = SAME.iter().find(|(name, _)| *name == plain);
    same.and_then(|(_, id)| profiles.get(id))
        .or_else(|| profiles.get(&plain))
        .or_else(|| profiles.get(&format!("tesla-{plain}")))
        .or_else(|| profiles.get(&format!("radeon-{plain}")))
}

/// Which text a row's kernel is built from.
type TextKey = (String, Language, Vec<String>);

/// The kernels of a table, ready to be predicted under any of its configurations.
pub struct Subject<'a> {
    engine: Engine,
    profiles: &'a Profiles,
    model: ModelId,
    ablation: bool,
    paths: HashMap<String, PathBuf>,
    documents: HashMap<TextKey, Document>,
}

impl<'a> Subject<'a> {
    /// Reads the sources that the rows name, below `sources`.
    pub fn new(
        table: &Table,
        sources: &Path,
        profiles: &'a Profiles,
        model: ModelId,
        ablation: bool,
    ) -> anyhow::Result<Subject<'a>> {
        let mut texts: HashMap<String, String> = HashMap::new();
        let mut paths = HashMap::new();
        let mut documents = HashMap::new();
        let mut folders = Vec::new();
        let mut options = BTreeMap::new();
        for row in &table.rows {
            if !texts.contains_key(&row.source) {
                let (path, text) = read(sources, &row.source)?;
                folders.extend(path.parent().map(Path::to_owned));
                options.insert(path.clone(), row.options.clone());
                texts.insert(row.source.clone(), text);
                paths.insert(row.source.clone(), path);
            }
            let language = language(row, &paths[&row.source], profiles);
            documents.entry(key(row, language)).or_insert_with(|| {
                let text = row.configuration.text(&texts[&row.source]);
                Document::new(&text, language)
            });
        }
        folders.sort();
        folders.dedup();
        let project = Project::new(Arc::new(WithCommands::new(&options)), folders);
        Ok(Subject {
            engine: Engine::with_project(profiles.clone(), project),
            profiles,
            model,
            ablation,
            paths,
            documents,
        })
    }

    /// What is predicted of each row, in their order.
    pub fn predict(&self, rows: &[&Row]) -> anyhow::Result<Vec<Predicted>> {
        let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK).build()?;
        Ok(pool.install(|| rows.par_iter().map(|row| self.row(row)).collect()))
    }

    fn row(&self, row: &Row) -> Predicted {
        let not = |why: String| Predicted {
            why_not: Some(why),
            ..Predicted::default()
        };
        let Some(profile) = profile(self.profiles, &row.gpu) else {
            return not(format!("no profile of {}", row.gpu));
        };
        let overrides = overrides(row, &profile);
        let configured = self.configured(row, &profile, &overrides);
        // The table gives the types in their order, the engine takes them by name.
        let configured = configured.and_then(|first| {
            let names = first.analysis.template_args.iter().map(|(name, _)| name);
            let types: BTreeMap<String, String> =
                names.cloned().zip(row.types.iter().cloned()).collect();
            if types.is_empty() {
                return Ok(first);
            }
            let mut overrides = overrides.clone();
            overrides.template_args.extend(types);
            self.configured(row, &profile, &overrides)
        });
        let Configured {
            analysis,
            why_invalid,
        } = match configured {
            Ok(configured) => configured,
            Err(why) => return not(why),
        };
        if let Some(why) = why_invalid {
            return Predicted {
                invalid: true,
                ..not(why)
            };
        }
        let question = Question {
            warps_per_sm: overrides.warps_per_sm,
            ..Question::of(&analysis.input)
        };
        let estimate = warplens_models::estimate(self.model, &question);
        Predicted {
            ms: positive(estimate.time_ms.map(|ms| {
                let launch = if row.with_launch {
                    estimate.launch_overhead_ms
                } else {
                    0.0
                };
                ms + launch
            })),
            cycles: positive(estimate.cycles),
            why_not: estimate.why.clone(),
            invalid: false,
            counted: counted(&analysis, &estimate),
            detail: estimate.detail,
            without: if self.ablation {
                let each = Mechanism::ALL.into_iter();
                each.map(|one| cycles_without(&question, one)).collect()
            } else {
                Vec::new()
            },
        }
    }

    fn configured(
        &self,
        row: &Row,
        profile: &Profile,
        overrides: &Overrides,
    ) -> Result<Configured, String> {
        let path = &self.paths[&row.source];
        let key = key(row, language(row, path, self.profiles));
        let document = self.documents.get(&key).ok_or("its text was not read")?;
        let settings = Settings {
            gpu: Some(profile.id.clone()),
            defines: row.configuration.defines.clone(),
            ..Settings::default()
        };
        let named = |kernel: &str| {
            self.engine
                .configured(document, path, &settings, overrides, kernel)
        };
        // Tables give kernels of one purpose one name, and sources of other years name them without the last word.
        named(&row.kernel).or_else(|why| match row.kernel.strip_suffix("_kernel") {
            Some(short) => named(short).map_err(|_| why),
            None => Err(why),
        })
    }
}

fn key(row: &Row, language: Language) -> TextKey {
    let without = row.configuration.without_unroll.clone();
    (row.source.clone(), language, without)
}

/// CUDA's sources are HIP's on a GPU of AMD.
fn language(row: &Row, path: &Path, profiles: &Profiles) -> Language {
    let language = Language::from_path(path).unwrap_or(Language::Cuda);
    let amd = || profile(profiles, &row.gpu).is_some_and(|gpu| gpu.vendor == Vendor::Amd);
    if language == Language::Cuda && amd() {
        Language::Hip
    } else {
        language
    }
}

/// A source and where it lies: `a/b.cu`, or `a/{b,c}.cl (…)` for several one behind the other.
fn read(sources: &Path, named: &str) -> anyhow::Result<(PathBuf, String)> {
    let named = named.split(" (").next().unwrap_or(named);
    let parts: Vec<String> = match (named.split_once('{'), named.split_once('}')) {
        (Some((before, _)), Some((inside, behind))) => {
            let inside = inside.get(before.len() + 1..).unwrap_or("");
            let part = |part| format!("{before}{part}{behind}");
            inside.split(',').map(part).collect()
        }
        _ => vec![named.to_owned()],
    };
    let mut text = String::new();
    for part in &parts {
        let path = sources.join(part);
        let read = std::fs::read_to_string(&path);
        text.push_str(&read.with_context(|| format!("no source at {}", path.display()))?);
    }
    match parts.first() {
        Some(first) => Ok((sources.join(first), text)),
        None => bail!("no source is named"),
    }
}

/// Warps of a block of a row's launch.
pub fn warps_per_block(row: &Row, profile: &Profile) -> Option<u32> {
    let Extents(block) = row.configuration.block?;
    let threads = block.into_iter().fold(1_u64, u64::saturating_mul);
    let warps = threads.div_ceil(u64::from(profile.warp_size));
    Some(u32::try_from(warps).unwrap_or(u32::MAX))
}

fn overrides(row: &Row, profile: &Profile) -> Overrides {
    let warps_per_sm = row
        .blocks_per_sm
        .zip(warps_per_block(row, profile))
        .map(|(blocks, warps)| blocks.saturating_mul(warps));
    Overrides {
        warps_per_sm,
        array_bytes: row.array_bytes.clone(),
        ..Overrides::of_configuration(&row.configuration)
    }
}

fn positive(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value > 0.0)
}

/// What the hardware would count.
fn counted(analysis: &KernelAnalysis, estimate: &Estimate) -> BTreeMap<Counter, f64> {
    let facts = &analysis.facts;
    let warps = facts.launch.blocks() as f64 * facts.launch.warps_per_block(facts.warp_size) as f64;
    let detail = |name: &str| estimate.detail.get(name).copied();
    let executed = analysis
        .input
        .instructions
        .as_ref()
        .map(WarpInstructions::total);
    let per_warp = || Some(detail("instructions_per_warp")? * warps);
    let counted = [
        (Counter::Instructions, executed.or_else(per_warp)),
        (
            Counter::Wavefronts,
            Some(wavefronts(&analysis.input.flow.nodes, &analysis.input) * warps),
        ),
        (
            Counter::L2Sectors,
            detail("l2_bytes").map(|bytes| bytes / 32.0),
        ),
        (
            Counter::DramSectors,
            detail("dram_bytes").map(|bytes| bytes / 32.0),
        ),
        (
            Counter::Occupancy,
            Some(analysis.input.occupancy.fraction * 100.0),
        ),
        (Counter::ActiveThreads, active_threads(facts)),
        (
            Counter::Registers,
            Some(f64::from(analysis.input.resources.registers_per_thread)),
        ),
    ];
    let known = counted.into_iter();
    known
        .filter_map(|(counter, value)| Some((counter, value?)))
        .collect()
}

/// Passes of shared memory of an average warp.
fn wavefronts(flow: &[Node], input: &ModelInput) -> f64 {
    flow.iter()
        .map(|node| match node {
            Node::Access { access, .. } => match input.accesses.get(*access) {
                Some(access) if access.space == Space::Shared => {
                    access.passes_per_request.unwrap_or(1.0)
                }
                _ => 0.0,
            },
            Node::Loop { trips, body, .. } => trips * wavefronts(body, input),
            Node::Branch {
                taken,
                other,
                then,
                otherwise,
                ..
            } => taken * wavefronts(then, input) + other * wavefronts(otherwise, input),
            Node::Compute { .. } | Node::Barrier { .. } => 0.0,
        })
        .sum()
}

/// Active lanes of a warp's operation, averaged over the source's operations and accesses.
fn active_threads(facts: &SourceFacts) -> Option<f64> {
    let (mut threads, mut warps) = (0.0, 0.0);
    for operation in &facts.operations {
        threads += operation.threads;
        warps += operation.warps;
    }
    for access in &facts.accesses {
        if let (Some(requests), Some(lanes)) = (access.requests, access.active_lanes_per_request) {
            threads += requests * lanes;
            warps += requests;
        }
    }
    (warps > 0.0).then(|| threads / warps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_profiles() {
        let profiles = Profiles::builtin();
        for (gpu, id) in [
            ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
            ("GeForce RTX 2080 Ti", "rtx-2080-ti"),
            ("NVIDIA RTX A4000", "rtx-a4000"),
            ("NVIDIA A100-40GB", "a100-sxm4-40gb"),
            ("A100-SXM4-40GB MIG 7g.40gb", "a100-sxm4-40gb"),
            ("NVIDIA V100 (900 GB/s)", "v100-sxm2-16gb"),
            ("NVIDIA V100-PCIE-16GB", "v100-pcie-16gb"),
            ("Tesla K40c", "tesla-k40c"),
            ("Tesla K40m", "tesla-k40c"),
            ("Tesla P100-PCIE-16GB", "tesla-p100"),
            ("AMD RX 6900 XT", "rx-6900-xt"),
            ("TITAN Xp", "titan-xp"),
            ("NVIDIA GeForce RTX 3060 Laptop GPU", "rtx-3060-laptop"),
        ] {
            let found = profile(&profiles, gpu).map(|profile| profile.id.clone());
            assert_eq!(found.as_deref(), Some(id), "{gpu}");
        }
        assert!(profile(&profiles, "Tesla K20X").is_none());
        assert!(profile(&profiles, "").is_none());
    }

    #[test]
    fn a_source_may_be_several_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.cl"), "one\n").unwrap();
        std::fs::write(folder.path().join("b.cl"), "two\n").unwrap();
        let (path, text) = read(folder.path(), "{a,b}.cl (concatenated in that order)").unwrap();
        assert_eq!(
            (path, text.as_str()),
            (folder.path().join("a.cl"), "one\ntwo\n")
        );
        for missing in ["c.cl", "{a,c}.cl", "}{", ""] {
            assert!(read(folder.path(), missing).is_err(), "{missing}");
        }
    }

    #[test]
    fn counters_are_compared_in_their_units() {
        assert_eq!(Counter::Occupancy.error(50.0, 47.0), 3.0);
        assert_eq!(Counter::Registers.error(32.0, 32.0), 0.0);
        assert_eq!(Counter::Wavefronts.error(0.0, 0.0), 0.0);
        assert_eq!(Counter::Wavefronts.error(0.0, 5.0), f64::INFINITY);
        assert_eq!(Counter::Wavefronts.error(5.0, 0.0), f64::INFINITY);
    }
}
