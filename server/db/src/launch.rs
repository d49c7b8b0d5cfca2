//! Which launch and which arguments a kernel is analysed under, in the order of the contract.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use warplens_facts::facts::{Launch, Source};
use warplens_facts::{Cover, DEFAULT_ARGUMENT, TensorBox, TensorDimension};
use warplens_hir::Item;
use warplens_host::{
    Blocks, HostLoop, HostMemory, LaunchSite, LoopCallKind, MAP_ELEMENT, MAP_SIDES, MAP_SIZES,
    MAP_STRIDES, Real,
};
use warplens_ir::{Builtin, ExprKind, Kernel, Stmt, StmtKind, Type};
use warplens_machine::Profile;
use warplens_syntax::{Directive, DirectiveKind};

use crate::fitting::fitting;
use crate::guard;
use crate::settings::{KernelSettings, Scalar, Settings};
use crate::size::Size;
use crate::{LaunchValues, Overrides};

/// Everything given for one kernel, before defaults.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    block: Option<([u64; 3], Source)>,
    /// Of a block that nothing gives whole the extents that the launch says.
    block_sides: [Option<u64>; 3],
    grid: Option<([u64; 3], Source)>,
    /// Total threads along each axis (OpenCL), from which the grid follows.
    global: Option<([u64; 3], Source)>,
    /// How the grid follows from arguments, where the launch says so and nothing before it gives the grid.
    follows: Option<[Size; 3]>,
    dynamic_shared: u64,
    shared_source: Source,
    /// Integer parameters: name, value, assumed.
    arguments: Vec<(String, i64, bool)>,
    /// Those of them that are an extent of the block, which is assumed.
    tied: Vec<String>,
    /// Parameters of floating point and members of parameters, by name, as bits.
    reals: Vec<(String, u64)>,
    /// Line as the kernel's sites number it, probability in millionths.
    probabilities: Vec<(u32, u32)>,
    /// Where the launch is in the file.
    pub(crate) place: Option<Range<usize>>,
    /// The same statement launches it with other blocks too.
    pub(crate) block_varies: bool,
    /// The text of the launch says the grid, whatever the program is started with.
    pub(crate) grid_by_text: bool,
    /// The program that launches asks for more dynamic shared memory than every block is granted.
    pub(crate) asks_for_shared: Option<bool>,
    /// Blocks of a cluster, where the launch says them.
    pub(crate) cluster: Option<[u64; 3]>,
    /// The program that launches allows clusters of more than eight blocks.
    pub(crate) allows_large_clusters: Option<bool>,
    /// What the host does with the memory of the arguments.
    pub(crate) memory: Vec<HostMemory>,
    /// Bytes of the memory behind pointer parameters, by their names.
    array_bytes: Vec<(String, u64)>,
    /// What a copy brings by a parameter that is a tensor map.
    boxes: Vec<(String, TensorBox)>,
    /// What the run knows of the arrays' contents.
    pub(crate) contents: Vec<(String, Arc<[u8]>)>,
    /// The loop of the host program around the launch, and how often a run makes the launch, where that is known.
    pub(crate) around: Option<(Arc<HostLoop>, Option<u64>)>,
}

/// The launch is the first in the loop; how often it is made; the calls.
type LoopKey<'a> = (bool, Option<u64>, Vec<(LoopCallKind, &'a str)>);

impl Hash for Given {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The place does not change what the kernel costs.
        let extents = |value: &Option<([u64; 3], Source)>| *value;
        (
            (extents(&self.block), &self.block_sides),
            extents(&self.grid),
            extents(&self.global),
            &self.follows,
        )
            .hash(state);
        (self.dynamic_shared, self.shared_source).hash(state);
        (&self.arguments, &self.probabilities).hash(state);
        self.reals.hash(state);
        (self.block_varies, self.grid_by_text, self.asks_for_shared).hash(state);
        (self.cluster, self.allows_large_clusters).hash(state);
        (&self.array_bytes, &self.boxes, &self.contents).hash(state);
        for memory in &self.memory {
            (memory.argument, &memory.name, memory.kind, memory.bytes).hash(state);
        }
        self.loop_key().hash(state);
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
                        // The line that the directive is on, and the one below it.
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
            let mut args: BTreeMap<String, i64> = kernel
                .vars
                .iter()
                .zip(&site.arguments)
                .filter_map(|(var, value)| Some((var.name.clone(), (*value)?)))
                .collect();
            args.extend(site.members.iter().filter_map(|member| {
                let var = kernel.vars.get(member.argument)?;
                Some((format!("{}.{}", var.name, member.path), member.value))
            }));
            let source = if site.of_run.is_some() {
                Source::Run
            } else {
                Source::LaunchSite
            };
            let size = LaunchValues {
                grid: site.grid,
                block: site.block,
                global: site.global,
                dynamic_shared_bytes: site.dynamic_shared_bytes,
                ..LaunchValues::default()
            };
            // Registers may leave room for fewer blocks than the program was told.
            let of_size = if site.assumes_residency {
                Source::Assumed
            } else {
                source
            };
            sources.push((size, of_size));
            let values = LaunchValues {
                args,
                ..LaunchValues::default()
            };
            sources.push((values, source));
            let before = |(values, _): &(LaunchValues, Source)| {
                values.grid.is_some() || values.global.is_some()
            };
            if !sources.iter().any(before) {
                follows = site
                    .follows
                    .as_ref()
                    .and_then(|blocks| named(blocks, kernel));
            }
            if place.is_none() && here && !site.range.is_empty() {
                place = Some(site.range.clone());
            }
        }
        sources.extend(by_name(&overrides.editor).map(|values| (values, Source::Settings)));
        if let Some(config) = settings.kernels.get(&kernel.name) {
            sources.push((LaunchValues::from(config), Source::Config));
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
            .integers()
            .filter_map(|(_, var)| {
                sources.iter().find_map(|(values, source)| {
                    let value = *values.args.get(&var.name)?;
                    Some((var.name.clone(), value, source.is_assumption()))
                })
            })
            .collect();
        // Of floating point: what is said beside the program before what it passes.
        let said = sources
            .iter()
            .filter(|(_, source)| !matches!(source, Source::LaunchSite | Source::Run));
        let said: Vec<&LaunchValues> = said.map(|(values, _)| values).collect();
        let given_reals = |name: &str| said.iter().find_map(|values| values.real(name));
        // A grid and a global size say the same in two ways: the first that is given counts.
        let size = sources
            .iter()
            .find(|(values, _)| values.grid.is_some() || values.global.is_some());
        let size = |get: &dyn Fn(&LaunchValues) -> Option<[u64; 3]>| {
            size.and_then(|(values, source)| Some((get(values)?, *source)))
        };
        let shared = sources
            .iter()
            .find_map(|(values, source)| Some((values.dynamic_shared_bytes?, *source)));
        let (dynamic_shared, shared_source) = shared.unwrap_or((0, Source::Assumed));
        Given {
            follows,
            block: first(&|values| values.block),
            block_sides: site.map_or([None; 3], |(site, _)| site.block_sides),
            grid: size(&|values| values.grid),
            global: size(&|values| values.global),
            dynamic_shared,
            shared_source,
            arguments,
            tied: Vec::new(),
            reals: reals(
                site.map_or(&[], |(site, _)| &site.reals),
                kernel,
                &given_reals,
            ),
            probabilities,
            place,
            block_varies: false,
            grid_by_text: false,
            asks_for_shared: None,
            cluster: None,
            allows_large_clusters: None,
            boxes: boxes(kernel, site.map(|(site, _)| site)),
            array_bytes: array_bytes(kernel, site.map(|(site, _)| &site.extents[..]), overrides),
            contents: site.map_or_else(Vec::new, |(site, _)| {
                // Floating point decides no subscripts.
                let vars = kernel.vars.iter().zip(&site.contents);
                vars.filter(|(var, _)| !var.ty.element().is_none_or(Type::is_float))
                    .filter_map(|(var, bytes)| Some((var.name.clone(), bytes.clone()?)))
                    .collect()
            }),
            memory: match site {
                Some((site, true)) => site.memory.clone(),
                _ => Vec::new(),
            },
            around: match site {
                Some((site, true)) => site.around.clone().map(|around| (around, site.count)),
                _ => None,
            },
        }
    }

    /// What findings about the loop around the launch depend on: not where it is.
    pub(crate) fn loop_key(&self) -> Option<LoopKey<'_>> {
        let (around, count) = self.around.as_ref()?;
        let calls = around
            .calls
            .iter()
            .map(|call| (call.kind, call.name.as_str()));
        Some((around.is_first, *count, calls.collect()))
    }

    pub(crate) fn probabilities(&self) -> Vec<(u32, f64)> {
        self.probabilities
            .iter()
            .map(|&(line, p)| (line, f64::from(p) / 1e6))
            .collect()
    }

    /// Integer parameters that the launch divides by the block, rounding up, to get its grid.
    pub(crate) fn rounded_up(&self) -> Vec<String> {
        let extents = self.follows.iter().flatten();
        let parts = extents.filter_map(Size::of_one);
        parts
            .filter(|(_, add, divisor)| (1..*divisor).contains(add))
            .map(|(name, ..)| name.to_owned())
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

    /// Why the driver refuses a launch without threads.
    pub(crate) fn without_threads(&self) -> Option<&'static str> {
        let empty =
            |given: Option<([u64; 3], Source)>| given.is_some_and(|(all, _)| all.contains(&0));
        if empty(self.block) {
            Some("the block has no threads")
        } else if empty(self.grid) || empty(self.global) {
            Some("the grid has no blocks")
        } else {
            None
        }
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
            let block = partly_known(self.block_sides, kernel);
            let block = block.or_else(|| fitted(kernel));
            (block.unwrap_or_else(|| guessed(kernel)), Source::Assumed)
        });
        let block = block.map(|extent| extent.max(1));
        if block_source == Source::Assumed
            && let Some(tied) = self.tied_to(block)
        {
            return tied.launch(kernel, profile, residency);
        }
        let mut launch = Launch {
            grid: [1; 3],
            block,
            dynamic_shared_bytes: self.dynamic_shared,
            block_source,
            grid_source: Source::Assumed,
            shared_source: self.shared_source,
        };
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
            let blocks = WAVES * u64::from(profile.sms) * u64::from(residency(&launch).max(1));
            return self.opened(kernel, launch, blocks);
        }
        let unknowns = self
            .not_given(kernel)
            .map(|name| (Size::Parameter(name.clone()), DEFAULT_ARGUMENT));
        Resolved {
            launch,
            arguments: self.arguments.clone(),
            tied: self.tied.clone(),
            reals: self.reals.clone(),
            covers: Vec::new(),
            unknowns: unknowns.collect(),
            extents: None,
            array_bytes: self.array_bytes.clone(),
            boxes: self.boxes.clone(),
            cluster: self.cluster,
        }
    }

    /// The same where the grid divides by an argument that nothing gives: that is the extent of the block, which is assumed, and both
    /// must fit each other. `None` where none is.
    fn tied_to(&self, block: [u64; 3]) -> Option<Given> {
        let follows = self.follows.as_ref()?;
        let mut tied: Vec<(String, i64)> = Vec::new();
        for (size, extent) in follows.iter().zip(block) {
            size.each_divisor(&mut |name| {
                let given = self.arguments.iter().any(|(of, ..)| of == name);
                if !given && !tied.iter().any(|(of, _)| of == name) {
                    tied.push((name.to_owned(), i64::try_from(extent).unwrap_or(i64::MAX)));
                }
            });
        }
        if tied.is_empty() {
            return None;
        }
        let mut given = self.clone();
        for (name, extent) in tied {
            let follows = given.follows.take();
            given.follows = follows.map(|all| all.map(|size| size.with(&name, extent)));
            given.arguments.push((name.clone(), extent, true));
            given.tied.push(name);
        }
        Some(given)
    }

    /// Integer parameters that nothing gives.
    fn not_given<'a>(&'a self, kernel: &'a Kernel) -> impl Iterator<Item = &'a String> {
        kernel
            .integers()
            .map(|(_, var)| &var.name)
            .filter(|name| !self.arguments.iter().any(|(of, ..)| of == *name))
    }

    /// The grid that the launch computes from arguments that are all given.
    fn followed(&self) -> Option<([u64; 3], Source)> {
        let mut grid = [1; 3];
        let mut source = Source::LaunchSite;
        for (extent, blocks) in grid.iter_mut().zip(self.follows.as_ref()?) {
            *extent = blocks.blocks(&|symbol| {
                let (_, value, _) = self.argument(symbol)?;
                Some(*value)
            })?;
            blocks.each_symbol(&mut |symbol| {
                if self.argument(symbol).is_some_and(|given| given.2) {
                    source = Source::Config;
                }
            });
        }
        Some((grid, source))
    }

    fn argument(&self, symbol: &Size) -> Option<&(String, i64, bool)> {
        let Size::Parameter(name) = symbol else {
            return None;
        };
        self.arguments.iter().find(|(of, ..)| of == name)
    }

    /// A launch whose grid nothing gives: it follows the launch's own expression or the kernel's guards, and represents
    /// about this many blocks where it depends on sizes without a value.
    fn opened(&self, kernel: &Kernel, mut launch: Launch, blocks: u64) -> Resolved {
        let mut stride = None;
        // What the launch says of its axes.
        let mut said = match &self.follows {
            Some(follows) => follows.each_ref().map(|size| match size {
                Size::Blocks(_) => None,
                size => Some(size.clone()),
            }),
            None => [None, None, None],
        };
        let (extents, source) = if said.iter().all(Option::is_some) {
            let [x, y, z] = said.map(|size| size.unwrap_or(Size::Number(1)));
            ([x, y, z], Source::Assumed)
        } else {
            let used = guard::block_axes(kernel);
            let asked = guard::asked(kernel, launch.block);
            let guarded = asked.blocks.iter().any(Option::is_some);
            let one = used == [false; 3];
            let mut extents = asked.blocks;
            let grid_fits = asked.strided.is_some() && !guarded;
            if grid_fits {
                stride = asked.strided;
            }
            let full = if grid_fits && used.iter().filter(|used| **used).count() == 1 {
                // A grid that strides over the elements is made for the GPU: some full waves.
                Size::Number(i64::try_from(blocks).unwrap_or(i64::MAX))
            } else {
                stride = None;
                Size::Number(0)
            };
            let extents = std::array::from_fn(|axis| {
                let open = used[axis] || one && axis == 0;
                let known = said[axis].take().or_else(|| extents[axis].take());
                match known {
                    Some(size) => size,
                    None if !open && self.follows.is_none() => Size::Number(1),
                    None if full != Size::Number(0) => full.clone(),
                    None => Size::Blocks(axis as u8),
                }
            });
            (
                extents,
                if guarded {
                    Source::Guard
                } else {
                    Source::Assumed
                },
            )
        };
        let mut values = StandIns {
            given: self,
            chosen: Vec::new(),
        };
        values.cover(&extents, blocks);
        if let Some(elements) = &stride {
            let threads = blocks.saturating_mul(launch.threads_per_block());
            values.reach(elements, threads.saturating_mul(TURNS));
        }
        for name in self.not_given(kernel) {
            let symbol = Size::Parameter(name.clone());
            if values.of(&symbol).is_none() {
                values.chosen.push((symbol, DEFAULT_ARGUMENT));
            }
        }
        launch.grid = std::array::from_fn(|axis| {
            let extent = extents[axis].blocks(&|symbol| values.of(symbol));
            extent.unwrap_or(1)
        });
        launch.grid_source = source;
        let mut arguments = self.arguments.clone();
        let mut covers = Vec::new();
        for (symbol, value) in &values.chosen {
            if let Size::Parameter(name) = symbol
                && *value != DEFAULT_ARGUMENT
            {
                arguments.push((name.clone(), *value, true));
            }
        }
        for (axis, extent) in extents.iter().enumerate() {
            if let Some((name, add, divisor)) = extent.of_one()
                && (0..divisor).contains(&add)
                && values
                    .chosen
                    .iter()
                    .any(|(of, _)| matches!(of, Size::Parameter(of) if of == name))
            {
                covers.push(Cover {
                    parameter: name.to_owned(),
                    axis: axis as u8,
                    divisor,
                });
            }
        }
        Resolved {
            launch,
            arguments,
            tied: self.tied.clone(),
            reals: self.reals.clone(),
            covers,
            unknowns: values.chosen,
            extents: Some(extents),
            array_bytes: self.array_bytes.clone(),
            boxes: self.boxes.clone(),
            cluster: self.cluster,
        }
    }
}

/// Values in place of what nothing gives.
struct StandIns<'a> {
    given: &'a Given,
    chosen: Vec<(Size, i64)>,
}

impl StandIns<'_> {
    fn of(&self, symbol: &Size) -> Option<i64> {
        let given = self.given.argument(symbol).map(|(_, value, _)| *value);
        given.or_else(|| {
            let mut chosen = self.chosen.iter();
            chosen.find(|(of, _)| of == symbol).map(|(_, value)| *value)
        })
    }

    /// About this many blocks in all.
    fn cover(&mut self, extents: &[Size; 3], blocks: u64) {
        let mut left = blocks;
        let mut open = 0;
        for extent in extents {
            match extent.blocks(&|symbol| self.of(symbol)) {
                Some(known) => left = (left / known).max(1),
                None => open += 1,
            }
        }
        let shares = match open {
            1 => vec![left],
            2 => near_square(left)[..2].to_vec(),
            _ => vec![(left as f64).cbrt() as u64; 3],
        };
        let mut shares = shares.into_iter();
        for extent in extents {
            if extent
                .blocks(&|symbol| self.given.argument(symbol).map(|given| given.1))
                .is_none()
            {
                self.reach(extent, shares.next().unwrap_or(1));
            }
        }
    }

    /// Values of the symbols of a size that have none yet, with which it is about `wanted`.
    fn reach(&mut self, size: &Size, wanted: u64) {
        // Behind its limit a size is large all the same.
        if let Size::AtMost(inner, _) = size {
            return self.reach(inner, wanted);
        }
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX).max(1);
        let mut open: Vec<Size> = Vec::new();
        size.each_symbol(&mut |symbol| {
            if self.of(symbol).is_none() && !open.contains(symbol) {
                open.push(symbol.clone());
            }
        });
        // With the last one it grows: what it is divided by comes before, and what is taken away from it, such as where a range begins.
        let mut divisors: Vec<&str> = Vec::new();
        size.each_divisor(&mut |name| divisors.push(name));
        let shrinks = |symbol: &Size| {
            let at = |value: i64| {
                size.value(&|of| match self.of(of) {
                    None if of == symbol => Some(value),
                    None => Some(MOST),
                    known => known,
                })
            };
            matches!((at(MOST), at(MOST / 2)), (Some(more), Some(less)) if more < less)
        };
        open.sort_by_cached_key(|symbol| match symbol {
            Size::Parameter(name) => (!divisors.contains(&name.as_str()), !shrinks(symbol)),
            _ => (true, true),
        });
        let Some(last) = open.pop() else { return };
        let first = self.chosen.len();
        // All but one are about powers of two, of about equal size, the last what is then left.
        let whole = |symbol: &Size, value: i64| {
            let granule = size.granule(symbol, 1);
            let over = value.max(1).saturating_add(granule - 1);
            over - over % granule
        };
        let root = |size: &Size, open: &[Size], chosen: &StandIns<'_>| {
            (5..24).map(|power| 1_i64 << power).find(|value| {
                let at = size.value(&|symbol| match chosen.of(symbol) {
                    None if open.contains(symbol) || *symbol == last => Some(whole(symbol, *value)),
                    known => known,
                });
                at.is_none_or(|at| at >= wanted)
            })
        };
        let value = if open.is_empty() {
            1
        } else {
            root(size, &open, self).unwrap_or(1024)
        };
        let wholes = open.into_iter().map(|symbol| {
            let value = whole(&symbol, value);
            (symbol, value)
        });
        self.chosen.extend(wholes);
        let granule = match last {
            Size::Blocks(_) => 1,
            _ => size.granule(&last, GRANULE),
        };
        let at = |value: i64| {
            size.value(&|symbol| {
                if *symbol == last {
                    Some(value)
                } else {
                    self.of(symbol)
                }
            })
        };
        // It grows with each of its symbols, or it is left as others are.
        let enough = |multiple: i64| {
            multiple
                .checked_mul(granule)
                .is_none_or(|value| at(value).is_none_or(|at| at >= wanted))
        };
        let (mut below, mut above) = (0_i64, 1_i64);
        while !enough(above) {
            (below, above) = (above, above.saturating_mul(2));
        }
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if enough(middle) {
                above = middle;
            } else {
                below = middle;
            }
        }
        let found = above.saturating_mul(granule);
        if at(found).is_some_and(|at| at >= wanted) && found < MOST {
            self.chosen.push((last, found));
        } else {
            self.chosen.truncate(first);
        }
    }
}

/// Waves of resident blocks in a grid that nothing gives: what bounds the kernel is what bounds many.
const WAVES: u64 = 4;
/// Turns of a grid that strides over elements of unknown number.
const TURNS: u64 = 4;
/// What a size is a multiple of that nothing gives.
const GRANULE: i64 = 32;
/// No size that nothing gives is larger.
const MOST: i64 = 1 << 31;

/// A launch with a value in place of what nothing gives.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) launch: Launch,
    /// Integer parameters: name, value, assumed.
    pub(crate) arguments: Vec<(String, i64, bool)>,
    /// Those of them that are an extent of the block, which is assumed.
    pub(crate) tied: Vec<String>,
    /// Parameters of floating point and members of parameters, by name, as bits.
    pub(crate) reals: Vec<(String, u64)>,
    pub(crate) covers: Vec<Cover>,
    /// Integer parameters and extents of the grid that nothing gives, with the values that the launch and the arguments have in
    /// their place.
    pub(crate) unknowns: Vec<(Size, i64)>,
    /// The blocks as they follow from parameters, where nothing gives the grid.
    pub(crate) extents: Option<[Size; 3]>,
    /// Bytes of the memory behind pointer parameters, by their names, as far as the launch says.
    pub(crate) array_bytes: Vec<(String, u64)>,
    /// What a copy brings by a parameter that is a tensor map.
    pub(crate) boxes: Vec<(String, TensorBox)>,
    /// Blocks of a cluster, where the launch says them.
    pub(crate) cluster: Option<[u64; 3]>,
}

/// The numbers of floating point that a launch gives, in the parameters' names; `said` is what is given by name.
fn reals(
    given: &[Real],
    kernel: &Kernel,
    said: &dyn Fn(&str) -> Option<f64>,
) -> Vec<(String, u64)> {
    let parameters = kernel
        .vars
        .get(..kernel.params as usize)
        .unwrap_or_default();
    let by_name = parameters.iter().filter_map(|var| match var.ty {
        Type::Float { .. } => Some((var.name.clone(), said(&var.name)?.to_bits())),
        _ => None,
    });
    let by_name: Vec<(String, u64)> = by_name.collect();
    let named = given.iter().filter_map(|real| {
        let name = &parameters.get(real.argument)?.name;
        let name = match real.path.as_str() {
            "" => name.clone(),
            path => format!("{name}.{path}"),
        };
        let known = by_name.iter().any(|(said, _)| *said == name);
        (!known).then(|| (name, real.value().to_bits()))
    });
    let named: Vec<_> = named.collect();
    by_name.into_iter().chain(named).collect()
}

/// The same in the parameters' names; `None` where one is no integer.
fn named(follows: &[Blocks; 3], kernel: &Kernel) -> Option<[Size; 3]> {
    let name = |argument: usize| {
        let mut parameters = kernel.vars.iter().take(kernel.params as usize);
        let var = parameters.nth(argument)?;
        matches!(var.ty, Type::Int { .. }).then(|| var.name.clone())
    };
    let [x, y, z] = follows;
    Some([
        Size::of_launch(x, 0, &name)?,
        Size::of_launch(y, 1, &name)?,
        Size::of_launch(z, 2, &name)?,
    ])
}

/// The most nearly square x by y of exactly that many.
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

/// Threads of a block that nothing gives.
const USUAL_THREADS: u64 = 256;

/// The block that a kernel is written for, by its own numbers.
fn fitted(kernel: &Kernel) -> Option<[u64; 3]> {
    let fitting = fitting(kernel);
    let sides = std::array::from_fn(|axis| {
        if kernel.axes[axis] {
            fitting[axis]
        } else {
            Some(1)
        }
    });
    partly_known(sides, kernel)
}

/// The block of a kernel whose launch is not known: by how it uses its coordinates.
fn guessed(kernel: &Kernel) -> [u64; 3] {
    let block = match kernel.axes {
        [_, _, true] => [8, 8, 4],
        [_, true, false] if numbers_warps(kernel) => [32, 8, 1],
        [_, true, false] => [16, 16, 1],
        _ => [USUAL_THREADS, 1, 1],
    };
    // Launch bounds bound a block, they never set one.
    match kernel.max_threads {
        Some(most) if (32..USUAL_THREADS).contains(&most) && numbers_warps(kernel) => {
            [32, most / 32, 1]
        }
        Some(most) if most > 0 && most < USUAL_THREADS => [most, 1, 1],
        _ => block,
    }
}

/// The block of a launch that says some of its extents: the first that it leaves open fills the block up. `None` where it says none
/// but ones.
fn partly_known(sides: [Option<u64>; 3], kernel: &Kernel) -> Option<[u64; 3]> {
    let known: u64 = sides.iter().flatten().product();
    if known <= 1 {
        return None;
    }
    let most = kernel.max_threads.filter(|most| *most > 0);
    let threads = most.map_or(USUAL_THREADS, |most| most.min(USUAL_THREADS));
    let mut left = (threads / known).max(1);
    Some(sides.map(|side| side.unwrap_or_else(|| std::mem::replace(&mut left, 1))))
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

/// What a copy brings by a parameter that is a tensor map, where the program encodes it in sight.
fn boxes(kernel: &Kernel, site: Option<&LaunchSite>) -> Vec<(String, TensorBox)> {
    let members = site.map_or(&[][..], |site| &site.members);
    let number = |argument: usize, path: &str| {
        let of =
            |member: &&warplens_host::Member| member.argument == argument && member.path == path;
        let found = members.iter().find(of)?;
        u64::try_from(found.value).ok()
    };
    let maps = members.iter().filter(|member| member.path == MAP_ELEMENT);
    let of_maps = maps.filter_map(|member| {
        let map = member.argument;
        let along = |name: &str, dimension: usize| number(map, &format!("{name}[{dimension}]"));
        let sides = (0..).map_while(|dimension| along(MAP_SIDES, dimension));
        let dimensions: Vec<TensorDimension> = sides
            .enumerate()
            .map(|(dimension, side)| TensorDimension {
                side,
                size: along(MAP_SIZES, dimension),
                stride: match dimension.checked_sub(1) {
                    Some(behind) => along(MAP_STRIDES, behind),
                    None => None,
                },
            })
            .collect();
        let of_map = TensorBox {
            element: number(map, MAP_ELEMENT)?,
            dimensions,
        };
        let var = kernel.vars.get(map)?;
        (!of_map.dimensions.is_empty()).then(|| (var.name.clone(), of_map))
    });
    of_maps.collect()
}

/// Bytes of what pointers point to, as the caller or the launch says them.
fn array_bytes(
    kernel: &Kernel,
    extents: Option<&[Option<u64>]>,
    overrides: &Overrides,
) -> Vec<(String, u64)> {
    let vars = kernel.vars.iter().enumerate();
    let known = vars.filter_map(|(number, var)| {
        let given = overrides.array_bytes.get(&var.name).copied();
        let launched = || extents.and_then(|extents| extents.get(number).copied().flatten());
        Some((var.name.clone(), given.or_else(launched)?))
    });
    known.collect()
}

impl From<&KernelSettings> for LaunchValues {
    fn from(settings: &KernelSettings) -> LaunchValues {
        let mut values = LaunchValues {
            grid: settings.grid.as_deref().map(three),
            block: settings.block.as_deref().map(three),
            dynamic_shared_bytes: settings.dynamic_shared,
            ..LaunchValues::default()
        };
        for (name, value) in &settings.args {
            values.give(name, *value);
        }
        values
    }
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
                if let Ok(value) = Scalar::parse(value.trim_end_matches(',')) {
                    found.give(name, value);
                }
            }
        }
    }
    found
}

/// True where a kernel takes `threadIdx.y` for the number of a warp, or `threadIdx.x` for a lane, by the name it gives it: `warp`,
/// `warp_id`, `warpIdx`, `lane_id`; not `warped`.
fn numbers_warps(kernel: &Kernel) -> bool {
    let mut numbers = |statement: &Stmt| {
        let StmtKind::Declare(id, Some(value)) = &statement.kind else {
            return false;
        };
        let name = kernel.var(*id).name.to_ascii_lowercase();
        let of = |word: &str| {
            let rest = name
                .strip_prefix(word)
                .map(|rest| rest.trim_start_matches('_'));
            matches!(rest, Some("" | "id" | "idx" | "index" | "y" | "x"))
        };
        match value.without_casts().kind {
            ExprKind::Builtin(Builtin::ThreadIdx(1)) => of("warp"),
            ExprKind::Builtin(Builtin::ThreadIdx(0)) => of("lane"),
            _ => false,
        }
    };
    kernel.axes == [true, true, false]
        && warplens_ir::walk::any_statement(&kernel.body, &mut numbers)
}
