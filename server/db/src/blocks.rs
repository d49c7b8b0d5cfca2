//! A launch with other blocks: what each is predicted to take.
//!
//! In: a kernel analysed under its launch. Out: the same threads dealt out to blocks of other sizes, each analysed as a launch of its
//! own. What holds: only blocks with which the kernel does the same work ([`crate::flat`]); sizes that nothing gives have the same
//! stand-ins in all of them, and these are named.

use std::path::Path;
use std::sync::Arc;

use warplens_facts::facts::Source;
use warplens_ir::Kernel;
use warplens_machine::{Profile, launch_problem, occupancy};
use warplens_syntax::Document;

use crate::flat::{Coordinates, coordinates};
use crate::settings::Settings;
use crate::{Cancel, Engine, KernelAnalysis, LaunchValues, Overrides, PlacedKernel, Variants};

/// Threads of the blocks that are tried.
const THREADS: [u64; 6] = [32, 64, 128, 256, 512, 1024];
/// Blocks that are tried where a kernel has two coordinates.
const SQUARES: [[u64; 2]; 8] = [
    [8, 8],
    [32, 4],
    [16, 8],
    [64, 4],
    [32, 8],
    [16, 16],
    [32, 16],
    [32, 32],
];

/// Compiled instructions that all blocks together may have: a kernel of 2,000 is tried with ten, one of 20,000 with its own alone.
const MOST_INSTRUCTIONS: usize = 20_000;

/// A launch with one block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockChoice {
    /// Threads of a block.
    pub block: [u64; 3],
    /// Blocks.
    pub grid: [u64; 3],
    /// Milliseconds, as a profiler's duration of the kernel; `None` where nothing is predicted.
    pub time_ms: Option<f64>,
    /// Resident warps over the most that an SM holds, from 0 to 1.
    pub occupancy: f64,
    /// The launch that the kernel was analysed under.
    pub is_present: bool,
    /// Why it cannot be launched.
    pub why_impossible: Option<String>,
}

/// Why a kernel has one block only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixedBlock {
    /// An attribute of the kernel fixes it.
    Attribute,
    /// The kernel reads a coordinate or an extent of the block by itself: 0-based line and the text there.
    Read(u32, String),
    /// The threads of a block share memory.
    Shared,
    /// Not all of the kernel was understood.
    Unknown,
    /// The launch cannot happen as it is.
    Impossible,
}

/// A launch with the blocks that it could have.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockChoices {
    /// Blocks of few threads first; the launch's own is one of them. Empty where the block is fixed.
    pub choices: Vec<BlockChoice>,
    /// Sizes that nothing gives, with the values they have in all these.
    pub stand_ins: Vec<(String, i64)>,
    /// Why there are no others.
    pub fixed: Option<FixedBlock>,
    /// Blocks that were left out because each takes long: the kernel is large.
    pub left_out: usize,
}

/// An integer that a launch gives a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchArgument {
    /// The parameter, or a member of one.
    pub name: String,
    /// Its value, given or in place of what nothing gives; `None` for one that the kernel does not read.
    pub value: Option<i64>,
    /// True where something gives it.
    pub is_given: bool,
}

impl Engine {
    /// The blocks that a kernel's launch could have. `document` to `overrides`: what `placed` was analysed under. `None` when
    /// cancelled.
    pub fn block_choices(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        placed: &PlacedKernel,
        cancel: &Cancel,
    ) -> Option<BlockChoices> {
        let analysis = &placed.analysis;
        let fixed = |fixed| {
            Some(BlockChoices {
                choices: Vec::new(),
                stand_ins: Vec::new(),
                fixed: Some(fixed),
                left_out: 0,
            })
        };
        if analysis.input.occupancy.why_impossible.is_some() {
            return fixed(FixedBlock::Impossible);
        }
        let Some(kernel) = analysis.kernel() else {
            return fixed(FixedBlock::Unknown);
        };
        if kernel.required_block.is_some() {
            return fixed(FixedBlock::Attribute);
        }
        let (axes, whole_warps) = match coordinates(kernel) {
            Coordinates::Flat { axes, whole_warps } => (axes, whole_warps),
            Coordinates::OfBlock(site) => {
                let text = document.rope();
                let bytes = placed.place(site.span);
                let bytes = bytes.start.min(text.len_bytes())..bytes.end.min(text.len_bytes());
                let source = text.get_byte_slice(bytes).map(|text| text.to_string());
                let line = placed.place_line(site.line);
                return fixed(FixedBlock::Read(line, source.unwrap_or_default()));
            }
            Coordinates::Shared => return fixed(FixedBlock::Shared),
            Coordinates::Unknown => return fixed(FixedBlock::Unknown),
        };
        let profile = &*analysis.profile;
        let launch = analysis.facts.launch;
        let warp = u64::from(profile.warp_size.max(1));
        let most = kernel.max_threads.unwrap_or(u64::MAX);
        let mut blocks: Vec<[u64; 3]> = other_blocks(launch.block, axes)
            .into_iter()
            .filter(|block| {
                let threads: u64 = block.iter().product();
                (warp..=u64::from(profile.max_threads_per_block).min(most)).contains(&threads)
                    && (!whole_warps || block[0] % warp == 0)
            })
            .collect();
        blocks.push(launch.block);
        blocks.sort_unstable_by_key(|[x, y, z]| (x * y * z, *x, *y));
        blocks.dedup();
        let room = (MOST_INSTRUCTIONS / analysis.input.compiled.code.len().max(1)).max(1);
        let left_out = blocks.len().saturating_sub(room);
        keep_nearest(&mut blocks, launch.block, room);
        let stand_ins = analysis.parameter_stand_ins();
        let mut choices = Vec::new();
        for block in blocks {
            if cancel.is_cancelled() {
                return None;
            }
            let grid = std::array::from_fn(|axis| {
                let threads = launch.grid[axis].saturating_mul(launch.block[axis]);
                threads.div_ceil(block[axis].max(1)).max(1)
            });
            let is_present = block == launch.block;
            if let Some(why) = launch_problem(profile, grid, block) {
                choices.push(BlockChoice {
                    block,
                    grid,
                    time_ms: None,
                    occupancy: 0.0,
                    is_present,
                    why_impossible: Some(why),
                });
                continue;
            }
            // The launch's own is what is shown of it elsewhere.
            let as_shown = is_present && stand_ins.is_empty() && !analysis.has_unknown_sizes();
            let tried = if as_shown {
                Arc::clone(analysis)
            } else {
                let values = LaunchValues {
                    grid: Some(grid),
                    block: Some(block),
                    dynamic_shared_bytes: Some(launch.dynamic_shared_bytes),
                    args: stand_ins.iter().cloned().collect(),
                    ..LaunchValues::default()
                };
                self.relaunched(document, path, settings, overrides, placed, values, cancel)?
            };
            let occupancy = &tried.input.occupancy;
            choices.push(BlockChoice {
                block,
                grid,
                time_ms: match occupancy.why_impossible {
                    None => tried.estimate().time_ms,
                    Some(_) => None,
                },
                occupancy: occupancy.fraction,
                is_present,
                why_impossible: occupancy.why_impossible.clone(),
            });
        }
        Some(BlockChoices {
            choices,
            stand_ins,
            fixed: None,
            left_out,
        })
    }

    /// The same kernel under other values of its launch.
    #[allow(
        clippy::too_many_arguments,
        reason = "what one analysis depends on, and what is changed of it"
    )]
    fn relaunched(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        placed: &PlacedKernel,
        values: LaunchValues,
        cancel: &Cancel,
    ) -> Option<Arc<KernelAnalysis>> {
        let name = &placed.analysis.facts.name;
        let chosen = [(name.clone(), placed.variant)].into_iter().collect();
        let overrides = Overrides {
            argument: values,
            variants: Variants::Chosen(chosen),
            unadvised: true,
            ..overrides.clone()
        };
        let wanted = |of: &str| of == name;
        let file = self.analyze_some(document, path, settings, &overrides, cancel, &wanted)?;
        let kernels = file.kernels.iter();
        kernels
            .filter(|other| other.start == placed.start)
            .map(|other| Arc::clone(&other.analysis))
            .next()
    }
}

/// Keeps those whose number of threads is nearest to a block's, itself first; the order stays.
fn keep_nearest(blocks: &mut Vec<[u64; 3]>, own: [u64; 3], most: usize) {
    let threads = |block: &[u64; 3]| block.iter().product::<u64>().max(1) as f64;
    let mut nearest = blocks.clone();
    nearest.sort_by(|a, b| {
        let far = |block: &[u64; 3]| (threads(block) / threads(&own)).log2().abs();
        let other = |block: &[u64; 3]| *block != own;
        (other(a).cmp(&other(b))).then(far(a).total_cmp(&far(b)))
    });
    nearest.truncate(most);
    blocks.retain(|block| nearest.contains(block));
}

/// Blocks with other extents along these axes.
fn other_blocks(own: [u64; 3], axes: [bool; 3]) -> Vec<[u64; 3]> {
    let open: Vec<usize> = (0..3).filter(|axis| axes[*axis]).collect();
    match open[..] {
        [x, y] | [x, y, _] if own[y] > 1 || own[x] == 1 => SQUARES
            .iter()
            .map(|square| {
                let mut block = own;
                [block[x], block[y]] = *square;
                block
            })
            .collect(),
        [x, ..] => {
            let others: u64 = (0..3)
                .filter(|axis| *axis != x)
                .map(|axis| own[axis])
                .product();
            let others = others.max(1);
            let fits = THREADS.iter().filter(|threads| *threads % others == 0);
            fits.map(|threads| {
                let mut block = own;
                block[x] = threads / others;
                block
            })
            .filter(|block| block[x] > 0)
            .collect()
        }
        [] => Vec::new(),
    }
}

impl KernelAnalysis {
    /// The kernel in IR; `None` where it was not kept.
    fn kernel(&self) -> Option<&Kernel> {
        self.counting.kernel()
    }

    /// Parameters that the kernel reads and nothing gives, with the values that stand for them.
    fn parameter_stand_ins(&self) -> Vec<(String, i64)> {
        let names = self.stand_ins().into_iter();
        names
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .collect()
    }

    /// The integers of the launch, in the order of the kernel's parameters; empty where the kernel was not kept.
    pub fn launch_arguments(&self) -> Vec<LaunchArgument> {
        let Some(kernel) = self.kernel() else {
            return Vec::new();
        };
        let open = self.parameter_stand_ins();
        let arguments = self.counting.arguments();
        let integers = kernel.integers().map(|(_, var)| {
            let known = arguments.iter().find(|(name, ..)| *name == var.name);
            let stand_in = open.iter().find(|(name, _)| *name == var.name);
            LaunchArgument {
                name: var.name.clone(),
                value: stand_in
                    .map(|(_, value)| *value)
                    .or(known.map(|(_, value, _)| *value)),
                is_given: stand_in.is_none() && known.is_some(),
            }
        });
        integers.collect()
    }

    /// The blocks of the launch over those that the GPU holds at a time: 1 fills it once. `None` where nothing gives the grid, or
    /// the launch cannot happen.
    pub fn waves(&self) -> Option<f64> {
        let launch = self.facts.launch;
        if self.grid_formula().is_some() || launch.grid_source == Source::Assumed {
            return None;
        }
        waves(self, &self.profile)
    }
}

fn waves(analysis: &KernelAnalysis, profile: &Profile) -> Option<f64> {
    let launch = analysis.facts.launch;
    let resources = &analysis.input.resources;
    let shared =
        resources.static_shared_bytes + launch.dynamic_shared_bytes + analysis.argument_bytes();
    // The blocks of an endless grid: one that is small keeps no block out.
    let resident = occupancy(
        profile,
        launch.threads_per_block(),
        resources.registers_per_thread,
        shared,
        u64::MAX,
    );
    let at_once = u64::from(resident.active_blocks_per_sm) * u64::from(profile.sms);
    (at_once > 0 && resident.why_impossible.is_none())
        .then(|| launch.blocks() as f64 / at_once as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_large_kernel_the_nearest_blocks_are_tried() {
        let all: Vec<[u64; 3]> = THREADS.iter().map(|threads| [*threads, 1, 1]).collect();
        let kept = |most: usize| {
            let mut blocks = all.clone();
            keep_nearest(&mut blocks, [256, 1, 1], most);
            blocks.iter().map(|block| block[0]).collect::<Vec<_>>()
        };
        assert_eq!(kept(1), [256]);
        assert_eq!(kept(3), [128, 256, 512]);
        assert_eq!(kept(9), THREADS);
    }
}
