//! What of a kernel's figures depends on sizes that nothing gives, and how.
//!
//! In: a kernel analysed with a stand-in for each unknown size. Out: which of them the time and the counts depend on, and the figures
//! as formulas in these. The analysis is run again for a few other values, its kernel not compiled again, on request; a
//! kernel without unknown sizes costs nothing. What holds: a figure that depends on an unknown size is never given as a number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warplens_facts::facts::{Assumed, Assumption, Count, Launch, OpClass, UNKNOWN};
use warplens_facts::{Contents, Cover, Request, analyze};
use warplens_ir::{Expr, ExprKind, Function, Kernel, Type, expressions};
use warplens_models::{Bottleneck, Estimate, ModelId, ModelInput, OpenTime, Question};

use crate::KernelAnalysis;
use crate::formula::{Formula, Sample, milliseconds};
use crate::launch::Resolved;
use crate::lowered::Lowered;
use crate::panics::unless_it_panics;
use crate::size::Size;

/// By this each unknown is raised, once and twice.
const RAISED: i64 = 4;
/// A figure depends on a size where that changes it by more.
const CHANGED: f64 = 0.002;
/// In place of how often a size is its stand-in: it is 1.
const LEAST: i64 = 0;
/// A figure has two formulas where a flag or an increment between lanes changes it by more.
const TWOFOLD: f64 = 1.25;
/// More unknowns than this make no formula that helps anybody.
const MOST_UNKNOWNS: usize = 3;
/// Combinations of more flags are not tried: each is one analysis.
const MOST_FLAGS: usize = 2;
/// A time over this many milliseconds is no prediction: some size was meant otherwise.
const LONGEST: f64 = 3.6e6;

/// What is taken of a size that nothing gives.
const LARGE: &str = "a large multiple of 32";
/// What is taken of a flag that nothing gives.
const SET: &str = "true";
/// Where the value of an argument comes from that is an extent of the assumed block.
const TIED: &str = "default";

/// The unknown sizes of a kernel under its launch, and what was found of them.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// Each with its stand-in.
    unknowns: Vec<(Size, i64)>,
    /// Of these, which are flags: parameters of one bit, taken to be set.
    flags: Vec<bool>,
    /// Parameters that nothing gives, read or not.
    not_given: Vec<String>,
    /// Blocks by the unknowns; `None` where something gives the grid.
    extents: Option<[Size; 3]>,
    /// Kept where there are unknowns and they may be asked for.
    lowered: Option<Arc<Lowered>>,
    launch: Launch,
    arguments: Vec<(String, i64, bool)>,
    /// Those of them that are an extent of the block, which is assumed.
    tied: Vec<String>,
    covers: Vec<Cover>,
    probabilities: Vec<(u32, f64)>,
    contents: Vec<Contents>,
    found: Mutex<BTreeMap<ModelId, Arc<Depends>>>,
    counts: OnceLock<BTreeMap<OpClass, Option<String>>>,
}

/// What a model's time depends on.
#[derive(Debug, Default)]
struct Depends {
    /// `None`: on no unknown size.
    open: Option<OpenTime>,
    /// Whether one thing bounds the kernel at every sample.
    one_bottleneck: bool,
}

/// The analysis at other sizes.
struct Sampled {
    values: Vec<i64>,
    estimates: BTreeMap<ModelId, Estimate>,
    counts: Vec<Count>,
}

impl Sizes {
    pub(crate) fn new(lowered: &Arc<Lowered>, kept: bool, resolved: &Resolved) -> Sizes {
        let not_given = resolved.unknowns.iter().filter_map(|(size, _)| match size {
            Size::Parameter(name) => Some(name.clone()),
            _ => None,
        });
        let not_given = not_given.collect();
        let read = parameters_read(&lowered.kernel);
        let mut unknowns = resolved.unknowns.clone();
        let in_grid = |symbol: &Size| {
            let mut within = false;
            for extent in resolved.extents.iter().flatten() {
                extent.each_symbol(&mut |of| within |= of == symbol);
            }
            within
        };
        unknowns.retain(|(symbol, _)| match symbol {
            Size::Parameter(name) => read.contains(name) || in_grid(symbol),
            _ => true,
        });
        let kept = kept && !unknowns.is_empty();
        let is_flag = |symbol: &Size| {
            let mut flags = lowered
                .kernel
                .integers()
                .filter(|(_, var)| is_flag(&var.ty));
            matches!(symbol, Size::Parameter(name) if flags.any(|(_, var)| var.name == *name))
        };
        let flags: Vec<bool> = unknowns.iter().map(|(symbol, _)| is_flag(symbol)).collect();
        for ((_, value), _) in unknowns.iter_mut().zip(&flags).filter(|(_, flag)| **flag) {
            *value = 1;
        }
        Sizes {
            lowered: kept.then(|| Arc::clone(lowered)),
            unknowns,
            flags,
            not_given,
            extents: resolved.extents.clone(),
            launch: resolved.launch,
            arguments: resolved.arguments.clone(),
            tied: resolved.tied.clone(),
            covers: resolved.covers.clone(),
            probabilities: Vec::new(),
            contents: Vec::new(),
            found: Mutex::default(),
            counts: OnceLock::new(),
        }
    }

    /// The same, with what the user gives of conditions and arrays.
    pub(crate) fn with(self, probabilities: Vec<(u32, f64)>, contents: Vec<Contents>) -> Sizes {
        Sizes {
            probabilities,
            contents,
            ..self
        }
    }

    /// What decides how facts name their assumptions.
    pub(crate) fn taken(&self) -> (Vec<&Size>, &[String], bool) {
        let unknowns = self.unknowns.iter().map(|(size, _)| size);
        (unknowns.collect(), &self.not_given, self.grid_is_open())
    }

    /// The launch and the arguments with other values in place of the unknowns.
    fn at(&self, values: &[i64]) -> (Launch, Vec<(String, i64, bool)>) {
        let value = |symbol: &Size| {
            let unknown = self.unknowns.iter().position(|(of, _)| of == symbol);
            unknown.map(|at| values[at]).or_else(|| match symbol {
                Size::Parameter(name) => {
                    let given = self.arguments.iter().find(|(of, ..)| of == name);
                    given.map(|(_, value, _)| *value)
                }
                _ => None,
            })
        };
        let mut launch = self.launch;
        if let Some(extents) = &self.extents {
            launch.grid = std::array::from_fn(|axis| {
                extents[axis]
                    .blocks(&value)
                    .unwrap_or(self.launch.grid[axis])
            });
        }
        let mut arguments = self.arguments.clone();
        for ((symbol, _), value) in self.unknowns.iter().zip(values) {
            if let Size::Parameter(name) = symbol {
                arguments.retain(|(of, ..)| of != name);
                arguments.push((name.clone(), *value, true));
            }
        }
        (launch, arguments)
    }

    /// What is assumed: of the unknown sizes that they are large, where the kernel reads them; of a grid that follows from
    /// them nothing.
    pub(crate) fn assumed(&self, assumptions: &mut Vec<Assumption>) {
        let unknown = |name: &str| {
            let mut of = self.unknowns.iter();
            of.any(|(size, _)| matches!(size, Size::Parameter(of) if of == name))
        };
        let flag = |name: &str| {
            let mut of = self.unknowns.iter().zip(&self.flags);
            of.any(|((size, _), flag)| *flag && matches!(size, Size::Parameter(of) if of == name))
        };
        assumptions.retain_mut(|assumption| match &assumption.symbol {
            Assumed::Grid => !self.grid_is_open(),
            Assumed::Named(name) if self.tied.contains(name) => {
                TIED.clone_into(&mut assumption.source);
                true
            }
            Assumed::Named(name) if self.not_given.contains(name) => {
                if flag(name) {
                    SET.clone_into(&mut assumption.value);
                } else {
                    LARGE.clone_into(&mut assumption.value);
                    UNKNOWN.clone_into(&mut assumption.source);
                }
                unknown(name)
            }
            _ => true,
        });
    }

    fn grid_is_open(&self) -> bool {
        let mut open = false;
        for extent in self.extents.iter().flatten() {
            extent.each_symbol(&mut |symbol| {
                open |= self.unknowns.iter().any(|(of, _)| of == symbol);
            });
        }
        open
    }

    fn names(&self, of: &[usize]) -> Vec<String> {
        of.iter()
            .map(|&at| self.unknowns[at].0.to_string())
            .collect()
    }
}

/// Names of the integer parameters, and members of parameters, that the kernel's statements read; what they read of a texture
/// names it and is no size.
fn parameters_read(kernel: &Kernel) -> Vec<String> {
    let mut read = vec![0_usize; kernel.vars.len()];
    let mut of_textures = read.clone();
    let mut visit = |expr: &Expr| match &expr.kind {
        ExprKind::Var(id) => {
            if let Some(read) = read.get_mut(id.0 as usize) {
                *read += 1;
            }
        }
        ExprKind::Call(Function::Texture { .. }, arguments) => {
            for argument in arguments {
                let argument = argument.without_casts();
                if let ExprKind::Var(id) = argument.kind
                    && argument.ty == Type::SIZE
                    && let Some(read) = of_textures.get_mut(id.0 as usize)
                {
                    *read += 1;
                }
            }
        }
        _ => {}
    };
    expressions(&kernel.body, &mut visit);
    for routine in &kernel.routines {
        expressions(&routine.body, &mut visit);
    }
    let integers = kernel.integers().filter(|(id, _)| {
        let id = id.0 as usize;
        read[id] > of_textures[id]
    });
    integers.map(|(_, var)| var.name.clone()).collect()
}

impl KernelAnalysis {
    /// The grid, or how it follows from what nothing gives.
    pub fn grid_formula(&self) -> Option<String> {
        let sizes = &self.sizes;
        let extents = sizes.extents.as_ref()?;
        if !sizes.grid_is_open() {
            return None;
        }
        let last = extents
            .iter()
            .rposition(|extent| *extent != Size::Number(1));
        let texts = extents[..=last.unwrap_or(0)].iter().map(Size::to_string);
        Some(texts.collect::<Vec<_>>().join(", "))
    }

    /// True where nothing that the kernel does was understood and no compiler says its registers: they are not known then, nor is
    /// the occupancy.
    pub fn is_opaque(&self) -> bool {
        self.registers_source == "estimated"
            && self.input.flow.nodes.is_empty()
            && !self.facts.not_understood.is_empty()
    }

    /// True where nothing gives a size that the kernel reads.
    pub fn has_unknown_sizes(&self) -> bool {
        !self.sizes.unknowns.is_empty()
    }

    /// Names of the sizes that nothing gives and that the kernel reads.
    pub fn unknown_sizes(&self) -> Vec<String> {
        self.sizes
            .unknowns
            .iter()
            .map(|(size, _)| size.to_string())
            .collect()
    }

    /// The same with the values that stand for them, as a directive states them: `("n", "884736")`, `("grid", "(864,1,1)")`.
    pub fn stand_ins(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (size, value) in &self.sizes.unknowns {
            if let Size::Parameter(name) = size {
                found.push((name.clone(), value.to_string()));
            }
        }
        let open = |(size, _): &(Size, i64)| matches!(size, Size::Blocks(_));
        if self.sizes.unknowns.iter().any(open) {
            let [x, y, z] = self.facts.launch.grid;
            found.push(("grid".to_owned(), format!("({x},{y},{z})")));
        }
        found
    }

    /// What a model said with stand-ins, without the numbers that rest on them.
    pub(crate) fn honest(&self, model: ModelId, estimate: &Estimate) -> Estimate {
        let mut honest = estimate.clone();
        let Some(cycles) = estimate.cycles else {
            return honest;
        };
        let depends = self.depends(model);
        let too_long = estimate.time_ms.is_some_and(|time| time > LONGEST);
        if depends.open.is_none() && !too_long {
            return honest;
        }
        honest.cycles = None;
        honest.time_ms = None;
        let one = depends.open.as_ref();
        let one = one.is_some_and(|open| open.unknowns.len() == 1);
        if !one || self.sizes.grid_is_open() {
            // Its numbers rest on the other sizes.
            honest.cycles_function = None;
        }
        honest.interval = None;
        if too_long && depends.open.is_none() {
            honest.why = Some("over an hour as the arguments are given".to_owned());
        }
        honest.open.clone_from(&depends.open);
        if !depends.one_bottleneck {
            honest.bottleneck = None;
        }
        let breakdown = &mut honest.breakdown;
        for part in [
            &mut breakdown.compute,
            &mut breakdown.tensor,
            &mut breakdown.async_copy,
            &mut breakdown.memory_bandwidth,
            &mut breakdown.memory_latency,
            &mut breakdown.shared,
            &mut breakdown.divergence,
            &mut breakdown.synchronisation,
        ] {
            *part /= cycles.max(1.0);
        }
        honest
    }

    fn depends(&self, model: ModelId) -> Arc<Depends> {
        if self.sizes.unknowns.is_empty() {
            return Arc::new(Depends {
                open: None,
                one_bottleneck: true,
            });
        }
        let known = lock(&self.sizes.found).get(&model).cloned();
        known.unwrap_or_else(|| {
            self.find(&[model]);
            lock(&self.sizes.found)
                .get(&model)
                .cloned()
                .unwrap_or_default()
        })
    }

    /// Finds what the times of several models depend on: one analysis of each sample serves them all.
    pub(crate) fn find(&self, models: &[ModelId]) {
        let sizes = &self.sizes;
        if sizes.unknowns.is_empty() {
            return;
        }
        let mut wanted: Vec<ModelId> = models
            .iter()
            .copied()
            .filter(|model| !lock(&sizes.found).contains_key(model))
            .collect();
        if wanted.is_empty() {
            return;
        }
        let shown = self.stand_in_estimates();
        // What simulates is not run again: it depends on what the equations depend on.
        let stood: BTreeMap<ModelId, Estimate> = shown.clone();
        let simulated: Vec<ModelId> = wanted
            .iter()
            .copied()
            .filter(|model| model.simulates())
            .collect();
        wanted.retain(|model| !model.simulates());
        if !simulated.is_empty() && !wanted.contains(&ModelId::Auto) {
            wanted.push(ModelId::Auto);
        }
        let base = Sampled {
            values: sizes.unknowns.iter().map(|(_, value)| *value).collect(),
            estimates: stood,
            counts: self.facts.counts.clone(),
        };
        let mut sampler = Sampler {
            analysis: self,
            models: &wanted,
            samples: vec![base],
        };
        let mut made = sampler.all();
        for model in simulated {
            let auto = made.get(&ModelId::Auto);
            let open = auto.and_then(|of| of.open.clone()).map(|open| OpenTime {
                formula: None,
                from: Vec::new(),
                least: None,
                range: None,
                ..open
            });
            made.insert(
                model,
                Depends {
                    open,
                    one_bottleneck: true,
                },
            );
        }
        let mut found = lock(&sizes.found);
        for (model, depends) in made {
            found.entry(model).or_insert_with(|| Arc::new(depends));
        }
    }

    /// A count's formula where it depends on an unknown size: `Some(None)` where it does and there is none.
    #[expect(
        clippy::option_option,
        reason = "no open count, an open one without a formula, one with"
    )]
    pub(crate) fn open_count(&self, class: OpClass) -> Option<Option<String>> {
        if self.sizes.unknowns.is_empty() {
            return None;
        }
        let found = self.sizes.counts.get_or_init(|| {
            let sizes = &self.sizes;
            let base = Sampled {
                values: sizes.unknowns.iter().map(|(_, value)| *value).collect(),
                estimates: BTreeMap::new(),
                counts: self.facts.counts.clone(),
            };
            let mut sampler = Sampler {
                analysis: self,
                models: &[],
                samples: vec![base],
            };
            sampler.counts()
        });
        found.get(&class).cloned()
    }

    /// True where some unknown size changes how often things run.
    pub fn depends_on_sizes(&self) -> bool {
        self.depends(ModelId::Auto).open.is_some()
    }
}

struct Sampler<'a> {
    analysis: &'a KernelAnalysis,
    models: &'a [ModelId],
    samples: Vec<Sampled>,
}

impl Sampler<'_> {
    /// The analysis where each unknown is this many times its stand-in, or [`LEAST`] of it, and a flag that is raised not set; the
    /// number of the sample.
    fn at(&mut self, times: &[i64]) -> Option<usize> {
        let sizes = &self.analysis.sizes;
        let values: Option<Vec<i64>> = sizes
            .unknowns
            .iter()
            .zip(&sizes.flags)
            .zip(times)
            .map(|(((_, value), flag), times)| {
                if *flag {
                    Some(i64::from(*times == 1))
                } else if *times == LEAST {
                    Some(1)
                } else {
                    value.checked_mul(*times)
                }
            })
            .collect();
        let values = values?;
        if let Some(known) = self
            .samples
            .iter()
            .position(|sample| sample.values == values)
        {
            return Some(known);
        }
        let lowered = sizes.lowered.as_ref()?;
        let (launch, arguments) = sizes.at(&values);
        let made = unless_it_panics(|| {
            let facts = analyze(&Request {
                kernel: &lowered.kernel,
                launch,
                profile: &self.analysis.profile,
                arguments: &arguments,
                covers: &sizes.covers,
                probabilities: &sizes.probabilities,
                contents: &sizes.contents,
                reals: &[],
                extents: &[],
                boxes: &[],
                cluster: None,
            });
            let counts = facts.counts.clone();
            let input = &self.analysis.input;
            let input = ModelInput::new(
                Arc::new(facts),
                Arc::clone(&input.compiled),
                Arc::clone(&self.analysis.profile),
                input.resources,
            );
            let question = Question {
                input: &input,
                ..self.analysis.question()
            };
            let models = self.models.iter();
            let estimates = models
                .map(|&model| (model, warplens_models::estimate(model, &question)))
                .collect();
            (estimates, counts)
        });
        let (estimates, counts) = made?;
        self.samples.push(Sampled {
            values,
            estimates,
            counts,
        });
        Some(self.samples.len() - 1)
    }

    /// Each unknown raised alone, which says whether it matters.
    fn raise(&mut self) -> Vec<Option<usize>> {
        let count = self.analysis.sizes.unknowns.len();
        let raised = (0..count).map(|at| {
            let mut times = vec![1; count];
            times[at] = RAISED;
            self.at(&times)
        });
        raised.collect()
    }

    /// What each model's time depends on.
    fn all(&mut self) -> BTreeMap<ModelId, Depends> {
        let count = self.analysis.sizes.unknowns.len();
        let raised = self.raise();
        let matter = |of: &Sampler<'_>, differs: &dyn Fn(&Sampled, &Sampled) -> bool| {
            let all = 0..count;
            all.filter(|&at| {
                raised[at].is_none_or(|sample| differs(&of.samples[0], &of.samples[sample]))
            })
            .collect::<Vec<usize>>()
        };
        let by_model: Vec<(ModelId, Vec<usize>)> = self
            .models
            .iter()
            .map(|&model| {
                let cycles = |of: &Sampled| of.estimates.get(&model)?.cycles;
                let differs = |a: &Sampled, b: &Sampled| match (cycles(a), cycles(b)) {
                    (Some(a), Some(b)) => changed(a, b),
                    (None, None) => false,
                    _ => true,
                };
                (model, matter(self, &differs))
            })
            .collect();
        let mut found = BTreeMap::new();
        for (model, of) in by_model {
            let closed = Depends {
                open: None,
                one_bottleneck: true,
            };
            if of.is_empty() {
                found.insert(model, closed);
                continue;
            }
            let figure = |sample: &Sampled| sample.estimates.get(&model)?.time_ms;
            let (flags, of): (Vec<usize>, Vec<usize>) =
                of.iter().partition(|&&at| self.analysis.sizes.flags[at]);
            if of.is_empty() {
                found.insert(model, self.by_flags(&flags, model));
                continue;
            }
            let base = vec![1; count];
            let together = self.together(&of, model);
            let varied: Vec<usize> = together.iter().map(|group| group[0]).collect();
            let of = together.concat();
            let points = self.points(&varied, &base);
            let formula = self.formula(&together, points.as_ref(), &figure);
            // What they change of it is less than a formula tells.
            if formula.as_ref().is_some_and(Formula::is_constant) {
                found.insert(model, closed);
                continue;
            }
            let first = self.samples[0].estimates.get(&model);
            let first = first.and_then(|estimate| estimate.bottleneck);
            let (made, others) = points.unwrap_or_default();
            let one_bottleneck = made.iter().chain(&others).all(|&at| {
                let of = self.samples[at].estimates.get(&model);
                of.and_then(|estimate| estimate.bottleneck) == first
            });
            let names = self.analysis.sizes.names(&of);
            let from = formula.as_ref().map(|formula| {
                let least = formula.from.iter().map(|least| *least as i64);
                names.iter().cloned().zip(least).collect()
            });
            // Flags, and increments that may be one: the formula with them as they are assumed, and the other way.
            let loose = self.loose(&of, &flags, model);
            let mut least = None;
            let formula = if loose.is_empty() {
                let floor = formula
                    .as_ref()
                    .and_then(|formula| self.floor(formula, &of, model));
                least = floor;
                formula.map(|formula| formula.time(&names))
            } else {
                let mut other = base;
                for &at in &loose {
                    let is_flag = self.analysis.sizes.flags[at];
                    other[at] = if is_flag { RAISED } else { LEAST };
                }
                let points = self.points(&varied, &other);
                let other = self.formula(&together, points.as_ref(), &figure);
                formula
                    .zip(other)
                    .and_then(|(a, b)| a.time_between(&b, &names))
            };
            let mut names = names;
            names.extend(self.analysis.sizes.names(&loose));
            found.insert(
                model,
                Depends {
                    open: Some(OpenTime {
                        unknowns: names,
                        formula,
                        from: from.unwrap_or_default(),
                        least,
                        range: None,
                    }),
                    one_bottleneck,
                },
            );
        }
        found
    }

    /// Flags, and parameters that are the distance between lanes, of which the time has two forms.
    fn loose(&mut self, of: &[usize], flags: &[usize], model: ModelId) -> Vec<usize> {
        let count = self.analysis.sizes.unknowns.len();
        let accesses = &self.analysis.facts.accesses;
        let is_increment = |name: &str| {
            let mut strides = accesses.iter().filter_map(|access| access.stride.as_ref());
            strides.any(|stride| {
                stride.symbolic
                    && !stride.unit_elsewhere
                    && warplens_syntax::words_in(&stride.text).any(|word| word == name)
            })
        };
        let increments = (0..count).filter(|at| {
            let named = match &self.analysis.sizes.unknowns[*at].0 {
                Size::Parameter(name) => is_increment(name),
                _ => false,
            };
            named && !of.contains(at) && !self.analysis.sizes.flags[*at]
        });
        let tried: Vec<usize> = flags.iter().copied().chain(increments).collect();
        let time = |of: &Self, at: usize| of.samples[at].estimates.get(&model)?.time_ms;
        let differs = |of: &mut Self, at: usize| {
            let mut times = vec![1; count];
            times[at] = if of.analysis.sizes.flags[at] {
                RAISED
            } else {
                LEAST
            };
            let sample = of.at(&times);
            match (time(of, 0), sample.and_then(|sample| time(of, sample))) {
                (Some(a), Some(b)) => a.max(b) > TWOFOLD * a.min(b),
                _ => true,
            }
        };
        tried.into_iter().filter(|&at| differs(self, at)).collect()
    }

    /// What a time does not fall below where one of the sizes, which only says how often something is repeated, is small: the
    /// formula of the others there. `None` where the formula of all says as much.
    fn floor(&mut self, formula: &Formula, of: &[usize], model: ModelId) -> Option<String> {
        let sizes = &self.analysis.sizes;
        let extents: Vec<Size> = sizes.extents.iter().flatten().cloned().collect();
        let in_grid = |at: usize| {
            let mut within = false;
            for extent in &extents {
                extent.each_symbol(&mut |symbol| within |= *symbol == sizes.unknowns[at].0);
            }
            within
        };
        let repeats: Vec<usize> = of.iter().copied().filter(|&at| !in_grid(at)).collect();
        let figure = |sample: &Sampled| sample.estimates.get(&model)?.time_ms;
        for at in repeats {
            let mut base = vec![1; self.analysis.sizes.unknowns.len()];
            base[at] = LEAST;
            let sample = self.at(&base)?;
            let there = &self.samples[sample];
            let values: Vec<f64> = of.iter().map(|&one| there.values[one] as f64).collect();
            if figure(there)? <= TWOFOLD * formula.value(&values) {
                continue;
            }
            let others: Vec<usize> = of.iter().copied().filter(|&one| one != at).collect();
            if others.is_empty() {
                return Some(milliseconds(figure(there)?));
            }
            let points = self.points(&others, &base);
            let floor = self.formula(&alone(&others), points.as_ref(), &figure)?;
            return Some(floor.time(&self.analysis.sizes.names(&others)));
        }
        None
    }

    /// The formula of unknowns, of some of which only the product counts.
    fn formula(
        &self,
        together: &[Vec<usize>],
        points: Option<&(Vec<usize>, Vec<usize>)>,
        figure: &dyn Fn(&Sampled) -> Option<f64>,
    ) -> Option<Formula> {
        let (made, others) = points?;
        let formula = Formula::of(
            &self.figures(together, made, figure)?,
            &self.figures(together, others, figure)?,
            RAISED as f64,
        )?;
        let each = together.iter().map(|group| {
            let values = group.iter().map(|&at| self.samples[0].values[at] as f64);
            values.collect()
        });
        Some(formula.spread(&each.collect::<Vec<Vec<f64>>>()))
    }

    /// Each unknown by itself; where these are more than make a formula, those are together of which only the product counts.
    fn together(&mut self, of: &[usize], model: ModelId) -> Vec<Vec<usize>> {
        if of.len() <= MOST_UNKNOWNS {
            return alone(of);
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &at in of {
            let mut all = groups.iter().map(|group| group[0]);
            match all.position(|first| self.only_multiply(first, at, model)) {
                Some(group) => groups[group].push(at),
                None => groups.push(vec![at]),
            }
        }
        groups
    }

    /// True where raising one of two sizes takes as long as raising the other, and raising both as long as raising one twice.
    fn only_multiply(&mut self, a: usize, b: usize, model: ModelId) -> bool {
        let count = self.analysis.sizes.unknowns.len();
        let mut time = |each: &[(usize, i64)]| {
            let mut times = vec![1; count];
            for &(unknown, by) in each {
                times[unknown] = by;
            }
            let sample = self.at(&times)?;
            self.samples[sample].estimates.get(&model)?.time_ms
        };
        let pairs = [
            (time(&[(a, RAISED)]), time(&[(b, RAISED)])),
            (
                time(&[(a, RAISED * RAISED)]),
                time(&[(a, RAISED), (b, RAISED)]),
            ),
        ];
        pairs
            .into_iter()
            .all(|pair| matches!(pair, (Some(one), Some(other)) if !changed(one, other)))
    }

    /// What a time depends on that these flags alone change: each combination is tried.
    fn by_flags(&mut self, flags: &[usize], model: ModelId) -> Depends {
        let count = self.analysis.sizes.unknowns.len();
        let tried = flags.len() <= MOST_FLAGS;
        let combinations = if tried { 1_usize << flags.len() } else { 0 };
        let samples: Option<Vec<usize>> = (0..combinations)
            .map(|bits| {
                let mut times = vec![1; count];
                for (bit, &flag) in flags.iter().enumerate() {
                    times[flag] = if bits >> bit & 1 == 1 { RAISED } else { 1 };
                }
                self.at(&times)
            })
            .collect();
        let estimates = |of: &Self| -> Option<Vec<(f64, Option<Bottleneck>)>> {
            let each = samples.iter().flatten().map(|&at| {
                let estimate = of.samples[at].estimates.get(&model)?;
                Some((estimate.time_ms?, estimate.bottleneck))
            });
            each.collect()
        };
        let estimates = estimates(self).filter(|all| !all.is_empty());
        let times = || estimates.iter().flatten().map(|(time, _)| *time);
        let range = estimates.is_some().then(|| {
            [
                times().fold(f64::INFINITY, f64::min),
                times().fold(0.0, f64::max),
            ]
        });
        let mut bottlenecks = estimates.iter().flatten().map(|(_, bottleneck)| bottleneck);
        let first = bottlenecks.next();
        Depends {
            one_bottleneck: bottlenecks.all(|of| Some(of) == first),
            open: Some(OpenTime {
                unknowns: self.analysis.sizes.names(flags),
                formula: range.map(|[least, most]| {
                    format!("{} to {}", milliseconds(least), milliseconds(most))
                }),
                from: Vec::new(),
                least: None,
                range,
            }),
        }
    }

    /// Samples that vary these unknowns from `base` on: those that a formula is made from, those that it is held against. `None` where there are too
    /// many unknowns, or an analysis failed.
    fn points(&mut self, of: &[usize], base: &[i64]) -> Option<(Vec<usize>, Vec<usize>)> {
        if of.len() > MOST_UNKNOWNS {
            return None;
        }
        let at = |each: &[(usize, i64)]| {
            let mut times = base.to_vec();
            for &(unknown, by) in each {
                times[unknown] = by;
            }
            times
        };
        let mut made = vec![base.to_vec()];
        for (number, &one) in of.iter().enumerate() {
            made.push(at(&[(one, RAISED)]));
            made.push(at(&[(one, RAISED * RAISED)]));
            made.extend(
                of[..number]
                    .iter()
                    .map(|&other| at(&[(one, RAISED), (other, RAISED)])),
            );
        }
        // Products of unknowns stay within what an `int` counts.
        let by = [64, 8, 4][of.len().clamp(1, 3) - 1];
        let far: Vec<(usize, i64)> = of.iter().map(|&one| (one, by)).collect();
        let made: Option<Vec<usize>> = made.iter().map(|times| self.at(times)).collect();
        Some((made?, vec![self.at(&at(&far))?]))
    }

    fn figures(
        &self,
        together: &[Vec<usize>],
        samples: &[usize],
        figure: &dyn Fn(&Sampled) -> Option<f64>,
    ) -> Option<Vec<Sample>> {
        let samples = samples.iter().map(|&at| {
            let sample = &self.samples[at];
            Some(Sample {
                at: together
                    .iter()
                    .map(|group| {
                        let values = group.iter().map(|&unknown| sample.values[unknown] as f64);
                        values.product()
                    })
                    .collect(),
                figure: figure(sample)?,
            })
        });
        samples.collect()
    }

    /// Counts that depend on unknown sizes, as formulas where the samples make some.
    fn counts(&mut self) -> BTreeMap<OpClass, Option<String>> {
        let mut found = BTreeMap::new();
        let of_class = |sample: &Sampled, class: OpClass| {
            let mut counts = sample.counts.iter();
            counts.find(|count| count.class == class)?.value
        };
        let unknowns = self.analysis.sizes.unknowns.len();
        self.raise();
        for class in OpClass::ALL {
            let first = of_class(&self.samples[0], class);
            let of: Vec<usize> = (0..unknowns)
                .filter(|&at| {
                    self.samples.iter().any(|sample| {
                        let base = &self.samples[0].values;
                        let alone = (0..unknowns)
                            .all(|other| (sample.values[other] == base[other]) == (other != at));
                        alone
                            && match (first, of_class(sample, class)) {
                                (Some(a), Some(b)) => changed(a, b),
                                (None, None) => false,
                                _ => true,
                            }
                    })
                })
                .collect();
            if of.is_empty() {
                continue;
            }
            let points = self.points(&of, &vec![1; unknowns]);
            let figure = |sample: &Sampled| of_class(sample, class);
            let formula = self.formula(&alone(&of), points.as_ref(), &figure);
            let names = self.analysis.sizes.names(&of);
            found.insert(class, formula.map(|formula| formula.count(&names)));
        }
        found
    }
}

/// Each by itself.
fn alone(of: &[usize]) -> Vec<Vec<usize>> {
    of.iter().map(|&at| vec![at]).collect()
}

/// True for `bool`.
fn is_flag(ty: &Type) -> bool {
    matches!(ty, Type::Int { bits: 1, .. })
}

fn changed(a: f64, b: f64) -> bool {
    (a - b).abs() > CHANGED * a.abs().max(b.abs())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
