//! What the pictures of a report show beyond the JSON: each is plain data, for whatever draws it.

mod comparison;
mod lanes;
mod occupancy;
mod roofline;
mod scaling;

use std::path::Path;

use warplens_models::ModelId;
use warplens_syntax::Document;

pub use comparison::Elsewhere;
pub use lanes::{LanePicture, Touched};
pub use occupancy::{OccupancyCurve, Residence};
pub use roofline::{Ceiling, Roofline};
pub use scaling::Scaling;

use crate::settings::Settings;
use crate::wire::EstimateDocument;
use crate::{Cancel, Engine, Overrides, PlacedKernel, Variants, WorkFlow};

/// Lines of a kernel that are quoted, at most.
const MOST_LINES: usize = 400;
/// Accesses of a kernel whose lanes are pictured in a report, at most: those that move the most beyond their ideal.
const MOST_LANES: usize = 3;
/// Kernels up to which a file is compared on every GPU that is known.
const MOST_COMPARED: usize = 16;

/// A file's prediction with what its pictures show.
#[derive(Debug, Clone)]
pub struct Pictures {
    /// The prediction.
    pub estimate: EstimateDocument,
    /// One for each of its results, in their order.
    pub kernels: Vec<KernelPictures>,
}

/// What the pictures of one kernel show.
#[derive(Debug, Clone)]
pub struct KernelPictures {
    /// The kernel's source with what each line costs.
    pub source: Vec<SourceLine>,
    /// Lines of it that were left out at the end.
    pub more_lines: usize,
    /// Its place under the roofs of the GPU; `Err` says why it has none.
    pub roofline: Result<Roofline, String>,
    /// Its time by resident warps.
    pub scaling: Scaling,
    /// Occupancy over what it depends on.
    pub residence: Residence,
    /// The lanes of its costliest accesses.
    pub lanes: Vec<LanePicture>,
    /// Its work flow graph; `Err` says why there is none.
    pub work_flow: Result<WorkFlow, String>,
    /// The same launch on other GPUs, the fastest first; empty where none were asked.
    pub elsewhere: Vec<Elsewhere>,
}

/// A line of source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceLine {
    /// From 1.
    pub number: u32,
    /// As it is.
    pub text: String,
    /// Its part of the kernel's cycles, 0 to 1; `None` for a line without any.
    pub share: Option<f64>,
}

impl Engine {
    /// A file's prediction with its pictures. GPUs to compare on are those of the settings' `compare`, or all that are known
    /// where none are named and the file has few kernels. `Err` is one line: an unknown GPU or kernel, or it was cancelled.
    #[allow(
        clippy::too_many_arguments,
        reason = "one question, asked in one place"
    )]
    pub fn pictures(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        gpus: &[String],
        models: &[ModelId],
        kernels: &[String],
        cancel: &Cancel,
    ) -> Result<Pictures, String> {
        let mut estimate =
            self.estimate(document, path, settings, overrides, gpus, models, kernels)?;
        self.add_help(document, path, settings, overrides, &mut estimate);
        let overrides = Overrides {
            variants: Variants::All,
            ..overrides.clone()
        };
        let mut targets: Vec<&str> = Vec::new();
        for result in &estimate.results {
            if !targets.contains(&result.gpu.as_str()) {
                targets.push(&result.gpu);
            }
        }
        let cancelled = || "cancelled".to_owned();
        let mut pictured = Vec::with_capacity(estimate.results.len());
        for (number, gpu) in targets.iter().enumerate() {
            let settings = Settings {
                gpu: Some((*gpu).to_owned()),
                ..settings.clone()
            };
            let file = self.analyze(document, path, &settings, &overrides, cancel);
            let file = file.ok_or_else(cancelled)?;
            let wanted = |placed: &&PlacedKernel| {
                kernels.is_empty() || kernels.contains(&placed.analysis.facts.name)
            };
            let shown: Vec<&PlacedKernel> = file.kernels.iter().filter(wanted).collect();
            let others = match settings.compare.as_slice() {
                // Where several GPUs were asked for, the pages about them stand side by side.
                _ if number > 0 || targets.len() > 1 => Vec::new(),
                [] if shown.len() > MOST_COMPARED => Vec::new(),
                [] => self.profiles().ids().map(str::to_owned).collect(),
                named => named.to_vec(),
            };
            let mut elsewhere = self
                .elsewhere(
                    document, path, &settings, &overrides, &shown, &others, cancel,
                )
                .ok_or_else(cancelled)?;
            for (placed, elsewhere) in shown.iter().zip(&mut elsewhere) {
                if cancel.is_cancelled() {
                    return Err(cancelled());
                }
                pictured.push(of_kernel(placed, document, std::mem::take(elsewhere)));
            }
        }
        Ok(Pictures {
            estimate,
            kernels: pictured,
        })
    }
}

fn of_kernel(
    placed: &PlacedKernel,
    document: &Document,
    elsewhere: Vec<Elsewhere>,
) -> KernelPictures {
    let (source, more_lines) = source(placed, document);
    let analysis = &placed.analysis;
    KernelPictures {
        source,
        more_lines,
        roofline: Roofline::of(analysis),
        scaling: Scaling::of(analysis),
        residence: Residence::of(analysis),
        lanes: placed.costliest_lanes(MOST_LANES),
        work_flow: placed.work_flow(),
        elsewhere,
    }
}

/// The kernel's lines, and how many were left out.
fn source(placed: &PlacedKernel, document: &Document) -> (Vec<SourceLine>, usize) {
    let rope = document.rope();
    let byte = |at: usize| rope.byte_to_line(at.min(rope.len_bytes()));
    let (first, last) = (byte(placed.start), byte(placed.end.max(placed.start)));
    let mut shares = std::collections::BTreeMap::new();
    for (line, share) in placed.analysis.lines() {
        *shares.entry(placed.place_line(line)).or_insert(0.0) += share;
    }
    let quoted = (first..=last).take(MOST_LINES).map(|line| SourceLine {
        number: line as u32 + 1,
        text: rope.line(line).to_string().trim_end().to_owned(),
        share: shares.get(&(line as u32)).copied(),
    });
    (
        quoted.collect(),
        (last - first + 1).saturating_sub(MOST_LINES),
    )
}

impl KernelPictures {
    /// The largest share of a quoted line: what the heat is scaled to.
    pub fn hottest(&self) -> f64 {
        let shares = self.source.iter().filter_map(|line| line.share);
        shares.fold(0.0, f64::max)
    }
}
