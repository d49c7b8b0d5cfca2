//! What warps execute: the compiled kernel's code, each piece as often as the analysis counted warps at the loops and
//! branches around it.

use std::cell::Cell;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use warplens_analysis::facts::{KernelFacts, Mix, Node};
use warplens_compile::{Class, Compiled, Executions, Ways};

/// Instructions that the warps of a launch execute, by class. They are an estimate, as the compiled kernel is.
#[derive(Debug, Clone, PartialEq)]
pub struct Executed {
    /// By class, over the launch.
    pub classes: BTreeMap<Class, f64>,
    /// True where how often the code runs hangs on something assumed: the launch, an argument, a probability.
    pub assumed: bool,
}

impl Executed {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.classes.values().sum()
    }
}

/// The compiled kernel's code under one launch.
pub(crate) struct Running<'a> {
    compiled: &'a Compiled,
    executions: Executions,
    warps: f64,
    assumed: bool,
}

impl<'a> Running<'a> {
    /// `None` where the kernel was not compiled to its end, or the analysis did not come to some part of it.
    pub(crate) fn new(compiled: &'a Compiled, facts: &KernelFacts) -> Option<Running<'a>> {
        if !compiled.complete || compiled.code.is_empty() {
            return None;
        }
        let launch = &facts.launch;
        let assumed =
            Cell::new(launch.block_source.is_assumption() || launch.grid_source.is_assumption());
        let executions = compiled.executions(&|control| {
            let way = facts.ways.get(control.0 as usize)?.as_ref()?;
            assumed.set(assumed.get() | !way.exact);
            Some(Ways {
                reached: way.reached,
                taken: way.taken,
                other: way.other,
                turns: &way.turns,
            })
        });
        let warps = launch.blocks() as f64 * launch.warps_per_block(facts.warp_size) as f64;
        (executions.followed && warps.is_finite()).then(|| Running {
            compiled,
            executions,
            warps,
            assumed: assumed.get(),
        })
    }

    /// By class.
    pub(crate) fn executed(&self) -> Executed {
        let mut classes = BTreeMap::new();
        for code in &self.compiled.code {
            let times = self.executions.of(code.frequency) * self.warps;
            *classes.entry(code.class).or_insert(0.0) += f64::from(code.count) * times;
        }
        Executed {
            classes,
            assumed: self.assumed,
        }
    }

    /// Puts the instructions of the compiled kernel in place of the source's operations. The flow keeps its shape: what
    /// a line became goes to the stretches of that line as its operations did, and what stands on no such line to all.
    /// Accesses and barriers are nodes of their own and stay.
    pub(crate) fn weigh(&self, flow: &mut [Node]) {
        let mut lines: FxHashMap<u32, Line> = FxHashMap::default();
        let mut operations = 0.0;
        each_stretch(flow, 1.0, &mut |mix, _, line, visits| {
            let total = mix.total() * visits;
            lines.entry(line).or_default().operations += total;
            operations += total;
        });
        if operations <= 0.0 {
            return;
        }
        let mut anywhere = Mix::default();
        for code in &self.compiled.code {
            let count = f64::from(code.count) * self.executions.of(code.frequency);
            let to = match lines.get_mut(&code.site.line) {
                Some(line) if line.operations > 0.0 => &mut line.compiled,
                _ => &mut anywhere,
            };
            if let Some(pipe) = pipe(to, code.class) {
                *pipe += count;
            }
        }
        each_stretch(flow, 1.0, &mut |mix, chain, line, _| {
            let before = mix.total();
            let mut now = Mix::default();
            if let Some(line) = lines.get(&line)
                && line.operations > 0.0
            {
                now.add(&line.compiled, before / line.operations);
            }
            now.add(&anywhere, before / operations);
            *chain = chain.min(now.total());
            *mix = now;
        });
    }
}

/// What a line has and what it became, by one warp.
#[derive(Debug, Default)]
struct Line {
    operations: f64,
    compiled: Mix,
}

/// Visits the stretches of computation with how often one warp comes there.
fn each_stretch(
    nodes: &mut [Node],
    visits: f64,
    visit: &mut dyn FnMut(&mut Mix, &mut f64, u32, f64),
) {
    for node in nodes {
        match node {
            Node::Compute {
                mix, chain, line, ..
            } => visit(mix, chain, *line, visits),
            Node::Loop { trips, body, .. } => each_stretch(body, visits * *trips, visit),
            Node::Branch {
                taken,
                other,
                then,
                otherwise,
                ..
            } => {
                each_stretch(then, visits * *taken, visit);
                each_stretch(otherwise, visits * *other, visit);
            }
            Node::Access { .. } | Node::Barrier { .. } => {}
        }
    }
}

/// The pipe that a class issues to; `None` for memory and barriers.
fn pipe(mix: &mut Mix, class: Class) -> Option<&mut f64> {
    Some(match class {
        Class::Ffma | Class::Fadd | Class::Fmul => &mut mix.fp32,
        Class::Dfma | Class::Dadd | Class::Dmul => &mut mix.fp64,
        Class::Hfma2 | Class::Hmma => &mut mix.fp16,
        Class::Mufu => &mut mix.sfu,
        Class::I2f | Class::F2i | Class::F2f => &mut mix.conversion,
        Class::Bra => &mut mix.branch,
        Class::Imad
        | Class::Iadd3
        | Class::Lea
        | Class::Lop3
        | Class::Shf
        | Class::Isetp
        | Class::Fsetp
        | Class::Sel
        | Class::Shfl
        | Class::Vote
        | Class::Mov
        | Class::Other => &mut mix.int,
        Class::Ldg
        | Class::Stg
        | Class::Lds
        | Class::Sts
        | Class::Ldl
        | Class::Stl
        | Class::Ldc
        | Class::Atom
        | Class::Red
        | Class::Bar
        | Class::Tex => return None,
    })
}
