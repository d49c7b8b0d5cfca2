//! Dynamic instruction counts: the compiled kernel's code, each piece as often as the analysis counted warps at the loops
//! and branches around it.

use std::cell::Cell;
use std::collections::BTreeMap;

use warplens_codegen::{Class, CompiledKernel, Executions, WarpsAtControl};
use warplens_facts::facts::{Site, SourceFacts};

/// Instructions that the warps of a launch execute, by class. They are an estimate, as the compiled kernel is.
#[derive(Debug, Clone, PartialEq)]
pub struct WarpInstructions {
    /// By class, over the launch.
    pub classes: BTreeMap<Class, f64>,
    /// What its products of matrices are as work, over the launch: in instructions of half precision.
    pub products: f64,
    /// True where how often the code runs depends on something assumed: the launch, an argument, a probability.
    pub assumed: bool,
}

impl WarpInstructions {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.classes.values().sum()
    }
}

/// The compiled kernel's code under one launch, and how often a warp of it runs each piece.
#[derive(Debug)]
pub struct DynamicCounts<'a> {
    pub(super) compiled: &'a CompiledKernel,
    pub(super) executions: Executions,
    pub(super) warps: f64,
    assumed: bool,
}

impl<'a> DynamicCounts<'a> {
    /// `None` where the kernel was not compiled to its end, or the analysis did not come to some part of it.
    pub fn new(compiled: &'a CompiledKernel, facts: &SourceFacts) -> Option<DynamicCounts<'a>> {
        if !compiled.complete || compiled.code.is_empty() {
            return None;
        }
        let launch = &facts.launch;
        let assumed =
            Cell::new(launch.block_source.is_assumption() || launch.grid_source.is_assumption());
        let executions = compiled.executions(&|control| {
            let way = facts.ways.get(control.0 as usize)?.as_ref()?;
            assumed.set(assumed.get() || !way.exact);
            Some(WarpsAtControl {
                reached: way.reached,
                taken: way.taken,
                other: way.other,
                turns: &way.turns,
            })
        });
        let warps = launch.blocks() as f64 * launch.warps_per_block(facts.warp_size) as f64;
        (executions.followed && warps.is_finite()).then(|| DynamicCounts {
            compiled,
            executions,
            warps,
            assumed: assumed.get(),
        })
    }

    /// Loads and stores that a warp executes, on average, by their places.
    pub fn accessed(&self) -> Vec<(Site, Class, f64)> {
        let accesses = self.compiled.code.iter().filter(|code| code.accesses > 0);
        accesses
            .map(|code| {
                let times = self.executions.of(code.frequency);
                (code.site, code.class, f64::from(code.accesses) * times)
            })
            .collect()
    }

    /// Instructions that a warp executes, on average.
    pub fn of_a_warp(&self) -> f64 {
        let all = self.compiled.code.iter();
        all.map(|code| f64::from(code.count) * self.executions.of(code.frequency))
            .sum()
    }

    /// By class.
    pub fn by_class(&self) -> WarpInstructions {
        let (mut classes, mut products) = (BTreeMap::new(), 0.0);
        for code in &self.compiled.code {
            let times = self.executions.of(code.frequency) * self.warps;
            *classes.entry(code.class).or_insert(0.0) += f64::from(code.count) * times;
            if code.class == Class::Hmma {
                products += f64::from(code.work) * times;
            }
        }
        WarpInstructions {
            classes,
            products,
            assumed: self.assumed,
        }
    }
}
