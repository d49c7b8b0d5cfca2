//! Which launch and which arguments a kernel is analysed under, in the order of the contract.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use warplens_facts::Cover;
use warplens_facts::facts::{Launch, Source};
use warplens_hir::Item;
use warplens_host::{Blocks, HostMemory, LaunchSite};
use warplens_ir::{Kernel, Type};
use warplens_machine::Profile;
use warplens_syntax::{Directive, DirectiveKind, Language};

use crate::settings::Settings;
use crate::{LaunchValues, Overrides};

/// Everything given for one kernel, before defaults.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    block: Option<([u64; 3], Source)>,
    grid: Option<([u64; 3], Source)>,
    /// Total threads along each axis (OpenCL), from which the grid follows.
    global: Option<([u64; 3], Source)>,
    /// How the grid follows from arguments, where the launch says so and nothing before it gives the grid: the
    /// parameter's name in place of its position.
    follows: Option<[(Blocks, String); 3]>,
    dynamic_shared: u64,
    /// Integer parameters: name, value, assumed.
    arguments: Vec<(String, i64, bool)>,
    /// Line as the kernel's sites number it, probability in millionths.
    probabilities: Vec<(u32, u32)>,
    /// Where the launch stands in the file.
    pub(crate) place: Option<Range<usize>>,
    /// The same statement launches it with other blocks too.
    pub(crate) block_varies: bool,
    /// What the host does with the memory of the arguments.
    pub(crate) memory: Vec<HostMemory>,
}

impl Hash for Given {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The place does not change what the kernel costs.
        let extents = |value: &Option<([u64; 3], Source)>| *value;
        (
            extents(&self.block),
            extents(&self.grid),
            extents(&self.global),
            &self.follows,
        )
            .hash(state);
        (self.dynamic_shared, &self.arguments, &self.probabilities).hash(state);
        self.block_varies.hash(state);
        for memory in &self.memory {
            (memory.argument, &memory.name, memory.kind, memory.bytes).hash(state);
        }
    }
}

impl Given {
    pub(crate) fn of(
        kernel: &Kernel,
        item: &Item,
        between: Range<usize>,
        directives: &[Directive],
        site: Option<(&LaunchSite, bool)>,
        settings: &Settings,
        overrides: &Overrides,
    ) -> Given {
        let mut sources: Vec<(LaunchValues, Source)> = Vec::new();
        let by_name =
            |map: &std::collections::BTreeMap<String, LaunchValues>| map.get(&kernel.name).cloned();
        sources.push((overrides.argument.clone(), Source::Argument));
        sources.extend(by_name(&overrides.set_launch).map(|values| (values, Source::SetLaunch)));
        let mut place = None;
        let mut follows = None;
        let mut probabilities = Vec::new();
        for directive in directives {
            let DirectiveKind::Values(values) = &directive.kind else {
                continue;
            };
            if item.source.contains(&directive.range.start) {
                for (name, value) in values {
                    if name == "probability"
                        && let Ok(probability) = value.parse::<f64>()
                        && (0.0..=1.0).contains(&probability)
                    {
                        // The line that the directive stands on, and the one below it.
                        let at = directive.line.saturating_sub(item.line);
                        let lines = kernel.places.lines().iter().enumerate();
                        probabilities.extend(
                            lines
                                .filter(|(_, line)| **line == at || **line == at + 1)
                                .map(|(number, _)| (number as u32, (probability * 1e6) as u32)),
                        );
                    }
                }
            } else if between.contains(&directive.range.start) {
                sources.push((directive_values(values), Source::Directive));
                place = Some(directive.range.clone());
            }
        }
        if let Some(block) = kernel.required_block {
            sources.push((
                LaunchValues {
                    block: Some(block),
                    ..LaunchValues::default()
                },
                Source::Attribute,
            ));
        }
        if let Some((site, here)) = site {
            let args = kernel
                .vars
                .iter()
                .zip(&site.arguments)
                .filter_map(|(var, value)| Some((var.name.clone(), (*value)?)))
                .collect();
            sources.push((
                LaunchValues {
                    grid: site.grid,
                    block: site.block,
                    global: site.global,
                    dynamic_shared_bytes: site.dynamic_shared_bytes,
                    args,
                },
                if site.of_run {
                    Source::Run
                } else {
                    Source::LaunchSite
                },
            ));
            let before = |(values, _): &(LaunchValues, Source)| {
                values.grid.is_some() || values.global.is_some()
            };
            if !sources.iter().any(before) {
                follows = site.follows.and_then(|blocks| named(blocks, kernel));
            }
            if place.is_none() && here && !site.range.is_empty() {
                place = Some(site.range.clone());
            }
        }
        sources.extend(by_name(&overrides.editor).map(|values| (values, Source::Settings)));
        if let Some(config) = settings.kernels.get(&kernel.name) {
            let extents = |list: &Option<Vec<u64>>| list.as_ref().map(|list| three(list));
            sources.push((
                LaunchValues {
                    grid: extents(&config.grid),
                    block: extents(&config.block),
                    global: None,
                    dynamic_shared_bytes: config.dynamic_shared,
                    args: config.args.clone(),
                },
                Source::Config,
            ));
        }
        sources.push((
            LaunchValues {
                args: settings.assume.clone(),
                ..LaunchValues::default()
            },
            Source::Config,
        ));

        let first = |get: &dyn Fn(&LaunchValues) -> Option<[u64; 3]>| {
            sources
                .iter()
                .find_map(|(values, source)| Some((get(values)?, *source)))
        };
        let arguments = kernel
            .vars
            .iter()
            .take(kernel.params as usize)
            .filter(|var| matches!(var.ty, Type::Int { .. }))
            .filter_map(|var| {
                sources.iter().find_map(|(values, source)| {
                    let value = *values.args.get(&var.name)?;
                    Some((var.name.clone(), value, source.is_assumption()))
                })
            })
            .collect();
        // A grid and a global size say the same in two ways: the first that is given counts.
        let size = sources
            .iter()
            .find(|(values, _)| values.grid.is_some() || values.global.is_some());
        let size = |get: &dyn Fn(&LaunchValues) -> Option<[u64; 3]>| {
            size.and_then(|(values, source)| Some((get(values)?, *source)))
        };
        Given {
            follows,
            block: first(&|values| values.block),
            grid: size(&|values| values.grid),
            global: size(&|values| values.global),
            dynamic_shared: sources
                .iter()
                .find_map(|(values, _)| values.dynamic_shared_bytes)
                .unwrap_or(0),
            arguments,
            probabilities,
            place,
            block_varies: false,
            memory: match site {
                Some((site, true)) => site.memory.clone(),
                _ => Vec::new(),
            },
        }
    }

    pub(crate) fn probabilities(&self) -> Vec<(u32, f64)> {
        self.probabilities
            .iter()
            .map(|&(line, p)| (line, f64::from(p) / 1e6))
            .collect()
    }

    /// True where the source, a directive or the user gave the block.
    pub(crate) fn block_from_source(&self) -> bool {
        matches!(
            self.block,
            Some((
                _,
                Source::Directive | Source::Attribute | Source::LaunchSite | Source::Run
            ))
        )
    }

    /// The launch with its arguments, defaults filled in. `residency` tells how many blocks of a launch one SM
    /// holds.
    pub(crate) fn launch(
        &self,
        kernel: &Kernel,
        profile: &Profile,
        residency: &dyn Fn(&Launch) -> u32,
    ) -> Resolved {
        let (block, block_source) = self.block.unwrap_or_else(|| {
            let block = match kernel.axes {
                [_, _, true] => [8, 8, 4],
                [_, true, false] => [16, 16, 1],
                _ => [256, 1, 1],
            };
            // Launch bounds bound a block, they never set one.
            let block = match kernel.max_threads {
                Some(most) if most > 0 && most < 256 => [most, 1, 1],
                _ => block,
            };
            (block, Source::Assumed)
        });
        let block = block.map(|extent| extent.max(1));
        let mut launch = Launch {
            grid: [1; 3],
            block,
            dynamic_shared_bytes: self.dynamic_shared,
            block_source,
            grid_source: Source::Assumed,
        };
        let mut arguments = self.arguments.clone();
        let mut covers = Vec::new();
        if let Some((grid, source)) = self.followed() {
            launch.grid = grid;
            launch.grid_source = source;
        } else if let Some((grid, source)) = self.grid {
            launch.grid = grid.map(|extent| extent.max(1));
            launch.grid_source = source;
        } else if let Some((global, source)) = self.global {
            for axis in 0..3 {
                launch.grid[axis] = global[axis].div_ceil(block[axis]).max(1);
            }
            launch.grid_source = source;
        } else {
            let blocks = 4 * u64::from(profile.sms) * u64::from(residency(&launch).max(1));
            if let Some(follows) = &self.follows {
                launch.grid = self.covered(follows, blocks, &mut arguments, &mut covers);
            } else {
                launch.grid = match (kernel.axes, kernel.language) {
                    ([_, true, _], _) => near_square(blocks),
                    (_, Language::Cuda | Language::Hip | Language::OpenCl) => [blocks, 1, 1],
                };
            }
        }
        Resolved {
            launch,
            arguments,
            covers,
        }
    }

    /// The grid that the launch computes from arguments that are all given.
    fn followed(&self) -> Option<([u64; 3], Source)> {
        let mut grid = [1; 3];
        let mut source = Source::LaunchSite;
        for (extent, (blocks, name)) in grid.iter_mut().zip(self.follows.as_ref()?) {
            let given = self.arguments.iter().find(|(of, ..)| of == name);
            *extent = blocks.count(&|_| given.map(|&(_, value, _)| value))?;
            if matches!(blocks, Blocks::Follow { .. }) && given.is_some_and(|given| given.2) {
                source = Source::Config;
            }
        }
        Some((grid, source))
    }

    /// About so many blocks in all, and the values of the arguments from which the launch computes them.
    fn covered(
        &self,
        follows: &[(Blocks, String); 3],
        blocks: u64,
        arguments: &mut Vec<(String, i64, bool)>,
        covers: &mut Vec<Cover>,
    ) -> [u64; 3] {
        let value = |arguments: &[(String, i64, bool)], name: &String| {
            let given = arguments.iter().find(|(of, ..)| of == name);
            given.map(|&(_, value, _)| value)
        };
        let mut left = blocks;
        let mut open = 0;
        for (extent, name) in follows {
            match extent.count(&|_| value(&self.arguments, name)) {
                Some(known) => left = (left / known).max(1),
                None => open += 1,
            }
        }
        let mut shares = match open {
            1 => vec![left],
            2 => near_square(left)[..2].to_vec(),
            _ => vec![(left as f64).cbrt() as u64; 3],
        }
        .into_iter();
        for (axis, (extent, name)) in follows.iter().enumerate() {
            let Blocks::Follow {
                add,
                divisor,
                times,
                ..
            } = *extent
            else {
                continue;
            };
            if value(&self.arguments, name).is_some() {
                continue;
            }
            let share = shares.next().unwrap_or(1) as i64;
            if value(arguments, name).is_none() {
                let quotient = (share / times).max(1) - add.div_euclid(divisor);
                arguments.push((name.clone(), quotient.max(1) * divisor, true));
            }
            if times == 1 && (0..divisor).contains(&add) {
                covers.push(Cover {
                    parameter: name.clone(),
                    axis: axis as u8,
                    divisor,
                });
            }
        }
        std::array::from_fn(|axis| {
            let (extent, name) = &follows[axis];
            let found = extent.count(&|_| value(arguments, name));
            found.unwrap_or(1)
        })
    }
}

/// A launch with nothing open.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) launch: Launch,
    /// Integer parameters: name, value, assumed.
    pub(crate) arguments: Vec<(String, i64, bool)>,
    pub(crate) covers: Vec<Cover>,
}

/// The same with the parameters' names; `None` where one is no integer.
fn named(follows: [Blocks; 3], kernel: &Kernel) -> Option<[(Blocks, String); 3]> {
    let name = |blocks: Blocks| match blocks {
        Blocks::Known(_) => Some(String::new()),
        Blocks::Follow { argument, .. } => kernel
            .vars
            .iter()
            .take(kernel.params as usize)
            .nth(argument)
            .filter(|var| matches!(var.ty, Type::Int { .. }))
            .map(|var| var.name.clone()),
    };
    let [x, y, z] = follows;
    Some([(x, name(x)?), (y, name(y)?), (z, name(z)?)])
}

/// The most nearly square x by y of exactly so many.
fn near_square(blocks: u64) -> [u64; 3] {
    let mut y = (blocks as f64).sqrt() as u64;
    while y > 1 && !blocks.is_multiple_of(y) {
        y -= 1;
    }
    [blocks / y.max(1), y.max(1), 1]
}

/// One to three extents.
pub(crate) fn three(list: &[u64]) -> [u64; 3] {
    let mut extents = [1; 3];
    for (to, from) in extents.iter_mut().zip(list) {
        *to = *from;
    }
    extents
}

/// The block with its threads rounded up to whole warps along x.
pub(crate) fn whole_warps(block: [u64; 3], warp_size: u32) -> [u64; 3] {
    let [mut x, y, z] = block;
    while (x * y * z) % u64::from(warp_size) != 0 && x < 1 << 20 {
        x += 1;
    }
    [x, y, z]
}

/// The grid with which another block covers the same threads along x.
pub(crate) fn whole_warps_grid(grid: [u64; 3], old: [u64; 3], new: [u64; 3]) -> [u64; 3] {
    [(grid[0] * old[0]).div_ceil(new[0]).max(1), grid[1], grid[2]]
}

fn directive_values(values: &[(String, String)]) -> LaunchValues {
    let mut found = LaunchValues::default();
    for (name, value) in values {
        let list: Option<Vec<u64>> = value
            .trim_matches(['(', ')'])
            .split(',')
            .map(|part| part.trim().parse().ok())
            .collect();
        let extents = list
            .filter(|list| (1..=3).contains(&list.len()))
            .map(|list| three(&list));
        match name.as_str() {
            "block" | "local" => found.block = extents,
            "grid" => found.grid = extents,
            "global" => found.global = extents,
            "dynamic_shared" => found.dynamic_shared_bytes = value.parse().ok(),
            "probability" => {}
            _ => {
                if let Ok(value) = value.parse() {
                    found.args.insert(name.clone(), value);
                }
            }
        }
    }
    found
}
