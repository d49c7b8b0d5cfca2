//! The hardware profiles as a table, one in full, and as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use warplens_codegen::Class;
use warplens_machine::{Profile, Profiles};

use crate::figure::number;
use crate::style::{Paint, Style, printable};
use crate::table::{Align, Cell, Table};

/// `warplens gpus --format json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GpusDocument {
    /// `warplens.gpus/1`.
    pub schema: &'static str,
    /// The profiles.
    pub gpus: Vec<Gpu>,
}

/// One profile.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Gpu {
    /// Id, as `--gpu` takes it.
    pub id: String,
    /// As its vendor calls it.
    pub name: String,
    /// Who makes it.
    pub vendor: String,
    /// Its generation.
    pub architecture: String,
    /// Every figure by name.
    pub figures: BTreeMap<String, Figure>,
    /// What the figures make of each class of machine instructions that does not depend on addresses.
    pub instructions: BTreeMap<&'static str, Instruction>,
}

/// One warp instruction of a class.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Instruction {
    /// Cycles of an SM until its next one may issue, all its units taken together.
    pub issue: f64,
    /// Cycles until an instruction that needs its result may issue.
    pub latency: f64,
}

/// One figure and where it comes from.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Figure {
    /// A number, a text, true or false, or a list of those.
    pub value: serde_json::Value,
    /// Its unit; empty for a pure number.
    pub unit: String,
    /// Data sheet, paper, measurement, or `estimated` and how.
    #[schemars(length(min = 1))]
    pub source: String,
}

/// A profile as the JSON shows it; rules that are names are listed with the figures, without a unit.
pub fn gpu(profile: &Profile) -> Gpu {
    let weights = profile.linear_weights.iter();
    let weights = weights.map(|(property, figure)| (format!("linear_weights.{property}"), figure));
    let figures = profile.figures().iter();
    let figures = figures.map(|(name, figure)| (name.clone(), figure));
    let numbers = figures.chain(weights).map(|(name, figure)| {
        let value = serde_json::to_value(figure).map_or_else(
            |_| figure.value.into(),
            |mut figure| {
                figure
                    .get_mut("value")
                    .map(serde_json::Value::take)
                    .unwrap_or_default()
            },
        );
        let figure = Figure {
            value,
            unit: figure.unit.to_owned(),
            source: figure.source.clone(),
        };
        (name, figure)
    });
    let names = profile.rules().iter().map(|(name, rule)| {
        let figure = Figure {
            value: rule.value.clone().into(),
            unit: String::new(),
            source: rule.source.clone(),
        };
        (name.clone(), figure)
    });
    Gpu {
        id: profile.id.clone(),
        name: profile.name.clone(),
        vendor: profile.vendor.name().to_owned(),
        architecture: profile.architecture.clone(),
        figures: numbers.chain(names).collect(),
        instructions: instructions(profile),
    }
}

fn instructions(profile: &Profile) -> BTreeMap<&'static str, Instruction> {
    let of = |&class: &Class| {
        let timing = class.timing(profile)?;
        let (issue, latency) = (timing.issue, timing.latency);
        Some((class.name(), Instruction { issue, latency }))
    };
    Class::ALL.iter().filter_map(of).collect()
}

fn value(gpu: &Gpu, name: &str) -> String {
    match gpu.figures.get(name).map(|figure| &figure.value) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value.as_f64().map_or_else(|| value.to_string(), number),
        None => "-".to_owned(),
    }
}

/// In the order in which they are listed.
const VENDORS: [&str; 3] = ["nvidia", "amd", "intel"];
/// GPUs that a target is held against where none are named.
const MOST_BESIDE: usize = 4;
/// Bytes.
const MIB: f64 = 1_048_576.0;

/// What the GPUs of an architecture share, above them, and what they have of their own, a row each.
pub fn list(gpus: &[Gpu], style: Style) -> String {
    const OWN: [(&str, &str); 4] = [
        ("SMs", "sms"),
        ("MHz", "sm_clock_mhz"),
        ("DRAM GB/s", "dram_bandwidth_gb_s"),
        ("L2", "l2_bytes"),
    ];
    let mut columns = vec![("id", Align::Left), ("name", Align::Left)];
    columns.extend(OWN.map(|(title, _)| (title, Align::Right)));
    columns.push(("TFLOPS", Align::Right));
    let mut table = Table::new(&columns).elastic(1);
    for (shared, group) in by_architecture(gpus) {
        table.heading(shared);
        for gpu in group {
            let mut row = vec![
                Cell::new(gpu.id.clone(), Paint::Strong),
                gpu.name.clone().into(),
            ];
            row.extend(OWN.map(|(_, key)| Cell::from(cell(gpu, key))));
            row.push(teraflops(gpu).map_or_else(|| "-".to_owned(), number).into());
            table.row(row);
        }
    }
    table.render(style, 0)
}

/// The GPUs under a line on their architecture: vendor by vendor, and there from the oldest to the newest.
fn by_architecture(gpus: &[Gpu]) -> Vec<(String, Vec<&Gpu>)> {
    let mut groups: BTreeMap<(usize, Generation, String), Vec<&Gpu>> = BTreeMap::new();
    for gpu in gpus {
        let vendor = VENDORS.iter().position(|known| *known == gpu.vendor);
        // A user's own profile may differ in what the others share.
        let key = (
            vendor.unwrap_or(usize::MAX),
            generation(&gpu.architecture),
            shared(gpu),
        );
        groups.entry(key).or_default().push(gpu);
    }
    groups
        .into_iter()
        .map(|((.., shared), gpus)| (shared, gpus))
        .collect()
}

/// The GPUs by families: vendor by vendor, there the newest architecture first, and there by their names.
pub fn in_families(mut gpus: Vec<Gpu>) -> Vec<Gpu> {
    let vendor = |gpu: &Gpu| VENDORS.iter().position(|known| *known == gpu.vendor);
    gpus.sort_by_cached_key(|gpu| {
        let newest_first = std::cmp::Reverse(generation(&gpu.architecture));
        let vendor = vendor(gpu).unwrap_or(usize::MAX);
        (vendor, newest_first, gpu.name.clone(), gpu.id.clone())
    });
    gpus
}

/// GPUs to hold a target against: the largest of each of the vendor's newest other architectures.
pub fn beside(profiles: &Profiles, target: &str) -> Vec<String> {
    let Some(own) = profiles.get(target) else {
        return Vec::new();
    };
    let others = profiles.iter();
    let others =
        others.filter(|one| one.vendor == own.vendor && one.architecture != own.architecture);
    let mut architectures: Vec<Generation> =
        others.map(|one| generation(&one.architecture)).collect();
    architectures.sort_unstable();
    architectures.dedup();
    let newest = architectures.into_iter().rev().take(MOST_BESIDE);
    newest
        .filter_map(|architecture| {
            let of = |one: &Profile| {
                one.vendor == own.vendor && generation(&one.architecture) == architecture
            };
            Some(profiles.largest(of)?.id.clone())
        })
        .collect()
}

/// The family of an architecture, how many digits its number has, and the number: `sm_90` is older than `sm_100`.
type Generation = (String, usize, String);

fn generation(architecture: &str) -> Generation {
    let digits = architecture.find(|c: char| c.is_ascii_digit());
    let (family, number) = architecture.split_at(digits.unwrap_or(architecture.len()));
    (family.to_owned(), number.len(), number.to_owned())
}

/// The line above the GPUs of an architecture.
fn shared(gpu: &Gpu) -> String {
    let of = |key| value(gpu, key);
    let words = match gpu.vendor.as_str() {
        "amd" => ["waves", "a compute unit", "LDS"],
        "intel" => ["SIMD threads", "an Xe-core", "SLM"],
        _ => ["warps", "an SM", "shared memory"],
    };
    let [warps, sm, memory] = words;
    printable(&format!(
        "{} {}: {sm} has {} {warps} of {}, {} registers, {} {memory}, {} FP32 lanes",
        gpu.vendor,
        gpu.architecture,
        of("max_warps_per_sm"),
        of("warp_size"),
        of("registers_per_sm"),
        cell(gpu, "shared_per_sm"),
        of("fp32_lanes"),
    ))
}

/// A figure for a table: bytes in their units, others with all their digits.
fn cell(gpu: &Gpu, key: &str) -> String {
    let Some(figure) = gpu.figures.get(key) else {
        return "-".to_owned();
    };
    match figure.value.as_f64() {
        Some(size) if figure.unit == "bytes" && size >= MIB => {
            format!("{} MiB", number(size / MIB))
        }
        Some(size) if figure.unit == "bytes" => format!("{} KiB", number(size / 1024.0)),
        Some(plain) => plain.to_string(),
        None => figure.value.to_string(),
    }
}

/// Single-precision operations in a second, two a lane, in millions of millions.
fn teraflops(gpu: &Gpu) -> Option<f64> {
    let of = |key: &str| gpu.figures.get(key)?.value.as_f64();
    Some(2.0 * of("sms")? * of("fp32_lanes")? * of("sm_clock_mhz")? / 1e6)
}

/// One profile, every figure with its source.
pub fn full(gpu: &Gpu, style: Style) -> String {
    let mut out = style.paint(Paint::Strong, &gpu.id);
    let named = format!("  {}, {} {}", gpu.name, gpu.vendor, gpu.architecture);
    let _ = writeln!(out, "{}\n", printable(&named));
    let mut table = Table::new(&[
        ("figure", Align::Left),
        ("value", Align::Right),
        ("unit", Align::Left),
        ("source", Align::Left),
    ])
    .elastic(3);
    // Numbers in the order of the schema, which is the order in which people want to read them.
    let numbers = Profile::keys().iter().map(|key| key.name);
    let names = gpu.figures.keys().map(String::as_str);
    let mut shown: Vec<&str> = Vec::new();
    for name in numbers.chain(names) {
        let Some(figure) = gpu.figures.get(name).filter(|_| !shown.contains(&name)) else {
            continue;
        };
        shown.push(name);
        let estimated = figure.source.starts_with("estimated");
        table.row([
            name.into(),
            value(gpu, name).into(),
            figure.unit.clone().into(),
            Cell::new(
                printable(&figure.source),
                if estimated {
                    Paint::Information
                } else {
                    Paint::Quiet
                },
            ),
        ]);
    }
    out.push_str(&table.render(style, 0));
    out.push_str("\nOne warp instruction of each class, in cycles:\n\n");
    let mut table = Table::new(&[
        ("class", Align::Left),
        ("next one of the SM", Align::Right),
        ("result", Align::Right),
    ]);
    for class in Class::ALL {
        if let Some(instruction) = gpu.instructions.get(class.name()) {
            table.row([
                class.name().into(),
                number(instruction.issue).into(),
                number(instruction.latency).into(),
            ]);
        }
    }
    out.push_str(&table.render(style, 0));
    out
}
