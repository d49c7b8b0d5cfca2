//! A kernel's flow as a control flow graph, and what decides the way of each warp through it.
//!
//! Warps differ in the iterations of their loops and in the sides of branches that they take. The facts say how many
//! warps have how many iterations and which fraction takes a side; who these are is decided here: a warp has a place
//! among all warps between 0 and 1, and those with the lowest places take a branch. Where the condition is the same for
//! all warps the iteration decides in its place, and where it depends on data both do.

use crate::ModelInput;
use warplens_facts::facts::{Branch, BranchKind, LinearAddress, Node as Flow, Uniformity};

use super::cfg::Cfg;
use super::search::{Warp, walk};
use crate::input::positive;

/// Iterations of one loop that are told apart, at most; beyond, numbers are no longer exact.
const MOST_TRIPS: f64 = 1e15;

/// Iterations that are left of an outer loop before loops within it are cut.
const FEWEST: f64 = 6.0;

/// Blocks between two looks at whether anybody still waits.
const LOOK: usize = 1024;

/// How far the place of a decision moves with an iteration of each loop around it: irrational, so that decisions
/// spread evenly.
const STEPS: [f64; 4] = [
    0.618_033_988_749_894_9,
    0.754_877_666_246_692_7,
    0.569_840_290_998_053_2,
    0.414_213_562_373_095_1,
];

/// What a decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Warp,
    Iteration,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Then,
    Otherwise,
}

#[derive(Debug)]
struct Decision {
    taken: f64,
    other: f64,
    by: By,
    /// Loops around it, innermost first.
    loops: Vec<usize>,
}

#[derive(Debug)]
struct Loop {
    trips: f64,
    /// Iterations and the fraction of warps that have no more than that; empty where all have the average.
    turns: Vec<(f64, f64)>,
    /// Loops around it, innermost first.
    loops: Vec<usize>,
}

impl Loop {
    fn most(&self) -> f64 {
        self.turns
            .last()
            .map_or(self.trips.ceil(), |(turns, _)| *turns)
    }
}

#[derive(Debug, Default)]
struct Block {
    nodes: Vec<usize>,
    inside: Vec<(usize, Side)>,
}

/// An operation of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entry {
    /// The node of the kernel's graph.
    pub node: usize,
    /// The warp executes the other side of this branch too.
    pub split: bool,
    /// What the iterations add to its address, in bytes.
    pub offset: i64,
    /// Executions that this one represents, by the iterations left out.
    pub stands_for: f64,
    /// It belongs to the first or the last iteration of the outermost loop, in which the pipeline fills and drains.
    pub edge: bool,
}

/// The kernel as a graph of blocks.
#[derive(Debug)]
pub(crate) struct Program<'f> {
    pub cfg: Cfg,
    blocks: Vec<Block>,
    decisions: Vec<Decision>,
    loops: Vec<Loop>,
    /// Of each node the address, where it is an access and linear.
    addresses: Vec<Option<&'f LinearAddress>>,
    /// Of each node the block that it is in.
    places: Vec<usize>,
}

impl<'f> Program<'f> {
    /// `average`: warps that split are imagined to take one side. `None` where there are too many blocks.
    pub fn new(input: &'f ModelInput, average: bool) -> Option<Program<'f>> {
        let mut builder = Builder {
            input,
            average,
            blocks: vec![Block::default()],
            edges: Vec::new(),
            decisions: Vec::new(),
            loops: Vec::new(),
            addresses: Vec::new(),
            around: Vec::new(),
            inside: Vec::new(),
        };
        builder.sequence(&input.flow.nodes, 0);
        let cfg = Cfg::new(builder.blocks.len(), &builder.edges)?;
        let mut places = vec![0; builder.addresses.len()];
        for (number, block) in builder.blocks.iter().enumerate() {
            for &node in &block.nodes {
                places[node] = number;
            }
        }
        Some(Program {
            cfg,
            blocks: builder.blocks,
            decisions: builder.decisions,
            loops: builder.loops,
            addresses: builder.addresses,
            places,
        })
    }

    /// How much shorter each loop's sampled iterations are, so that a warp's trace has at most `most` steps.
    ///
    /// Outer loops are cut first, which leaves each iteration whole, and down to [`FEWEST`] iterations before loops
    /// within them are; where that is not enough all are cut to one number. Warps that have fewer iterations than
    /// others have them cut by the same factor.
    pub fn scales(&self, most: f64) -> Vec<f64> {
        let deepest = self.loops.iter().map(|of| of.loops.len() + 1).max();
        let deepest = deepest.unwrap_or(0);
        let longest = self.loops.iter().map(Loop::most).fold(1.0, f64::max);
        // The most iterations of a loop by the number of loops around it.
        let mut caps = vec![longest; deepest];
        let fits = |caps: &[f64]| self.length(caps) <= most;
        for depth in 0..deepest {
            if fits(&caps) {
                break;
            }
            caps[depth] = FEWEST.min(longest);
            if fits(&caps) {
                let (mut low, mut high) = (caps[depth], longest);
                // As many halvings as numbers of iterations have bits.
                for _ in 0..50 {
                    let middle = f64::midpoint(low, high).floor();
                    if middle <= low {
                        break;
                    }
                    caps[depth] = middle;
                    if fits(&caps) {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                caps[depth] = low;
            }
        }
        let mut all = FEWEST;
        while all > 1.0 && !fits(&caps) {
            all -= 1.0;
            caps.fill(all);
        }
        let cap = |of: &Loop| caps[of.loops.len()];
        let factor = |of: &Loop| (cap(of) / of.most().max(1.0)).min(1.0);
        self.loops.iter().map(factor).collect()
    }

    /// Steps of the longest warp's search with this many iterations at most, by the number of loops around a loop.
    fn length(&self, caps: &[f64]) -> f64 {
        (0..self.blocks.len())
            .map(|block| {
                let around = self.cfg.around(block).iter().map(|&of| &self.loops[of]);
                let visits: f64 = around
                    .map(|of| of.most().clamp(1.0, caps[of.loops.len()].max(1.0)))
                    .product();
                visits * (1 + self.blocks[block].nodes.len()) as f64
            })
            .sum()
    }

    /// What one line that a node touches represents: lines of the iterations that were left out and go elsewhere.
    pub fn lines_stand_for(&self, node: usize, scales: &[f64]) -> f64 {
        let around = self.cfg.around(self.places[node]);
        let moves = |level: usize| match self.address(node) {
            Some(address) => address.loops[around.len() - 1 - level] != 0,
            None => true,
        };
        (0..around.len())
            .filter(|&level| moves(level))
            .map(|level| 1.0 / scales[around[level]])
            .product()
    }

    /// The part of a node's executions that belong to the first and the last iteration of the outermost loop around it.
    pub fn edge_part(&self, node: usize) -> f64 {
        let around = self.cfg.around(self.places[node]);
        around
            .last()
            .map_or(0.0, |&of| (2.0 / self.loops[of].trips.max(1.0)).min(1.0))
    }

    /// The linear address of a node, where the loops around it are those that the address counts.
    pub fn address(&self, node: usize) -> Option<&'f LinearAddress> {
        let depth = self.cfg.around(self.places[node]).len();
        self.addresses[node].filter(|address| address.loops.len() == depth)
    }

    /// What tells the trace of the warp at `place` from those of others: warps with equal keys have equal traces.
    pub fn key(&self, place: f64) -> Vec<u64> {
        let mut key = Vec::new();
        for decision in &self.decisions {
            match decision.by {
                By::Warp => {
                    let (then, otherwise) = decision.sides(place);
                    key.push(u64::from(then) | u64::from(otherwise) << 1);
                }
                By::Iteration => {}
                By::Both if decision.open() => key.push(place.to_bits()),
                By::Both => {}
            }
        }
        for of in &self.loops {
            if of.loops.is_empty() {
                key.push(of.turns_at(place) as u64);
            } else if of.varies() {
                key.push(place.to_bits());
            }
        }
        key
    }

    /// The trace of the warp at `place`, in this many steps of the search at most; `None` once `cancelled` says so.
    pub fn trace(
        &self,
        place: f64,
        scales: &[f64],
        most: usize,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Vec<Entry>> {
        let way = Way {
            program: self,
            place,
            scales,
        };
        let mut entries = Vec::new();
        let start = vec![0; self.loops.len()];
        let outermost: Vec<u64> = (0..self.loops.len())
            .map(|of| {
                if self.loops[of].loops.is_empty() {
                    way.trips(of, &start)
                } else {
                    0
                }
            })
            .collect();
        let mut blocks = 0_usize;
        let mut stopped = false;
        walk(&self.cfg, &way, most, &mut |block, iterations| {
            let around = self.cfg.around(block);
            let split = self.blocks[block].inside.iter().any(|&(of, side)| {
                side == Side::Otherwise && way.sides(of, iterations) == (true, true)
            });
            let stands_for: f64 = around
                .iter()
                .map(|&of| self.loops[of].stands_for(iterations[of], scales[of]))
                .product();
            let edge = around
                .last()
                .is_some_and(|&of| iterations[of] == 0 || iterations[of] + 1 >= outermost[of]);
            for &node in &self.blocks[block].nodes {
                let offset = self.address(node).map_or(0, |address| {
                    let outermost_first = around.iter().rev();
                    outermost_first
                        .zip(&address.loops)
                        .map(|(&of, bytes)| bytes.wrapping_mul(iterations[of] as i64))
                        .fold(0, i64::wrapping_add)
                });
                entries.push(Entry {
                    node,
                    split,
                    offset,
                    stands_for,
                    edge,
                });
            }
            blocks += 1;
            stopped = blocks.is_multiple_of(LOOK) && cancelled();
            !stopped
        });
        (!stopped).then_some(entries)
    }
}

impl Decision {
    fn sides(&self, place: f64) -> (bool, bool) {
        (place < self.taken, place >= 1.0 - self.other)
    }

    /// True where not all agree.
    fn open(&self) -> bool {
        (self.taken > 0.0 && self.taken < 1.0) || (self.other > 0.0 && self.other < 1.0)
    }
}

impl Loop {
    fn varies(&self) -> bool {
        self.turns.len() > 1 || (self.turns.is_empty() && self.trips.fract() > 0.0)
    }

    fn turns_at(&self, place: f64) -> f64 {
        if self.turns.is_empty() {
            return self.trips.floor() + f64::from(u8::from(place < self.trips.fract()));
        }
        let upto = self.turns.iter().find(|(_, upto)| place < *upto);
        upto.or(self.turns.last()).map_or(0.0, |(turns, _)| *turns)
    }

    /// The first iteration represents itself, the others for those left out as well.
    fn stands_for(&self, iteration: u64, scale: f64) -> f64 {
        let sampled = (self.trips * scale).max(1.0);
        if iteration == 0 || scale >= 1.0 || sampled <= 1.0 {
            1.0
        } else {
            (self.trips - 1.0) / (sampled - 1.0)
        }
    }
}

/// One warp's way.
struct Way<'p, 'f> {
    program: &'p Program<'f>,
    place: f64,
    scales: &'p [f64],
}

impl Way<'_, '_> {
    fn place_in(&self, by: By, loops: &[usize], iterations: &[u64]) -> f64 {
        let moved: f64 = loops
            .iter()
            .zip(STEPS)
            .map(|(&of, step)| iterations[of] as f64 * step)
            .sum();
        match by {
            By::Warp => self.place,
            By::Iteration => (0.5 + moved).fract(),
            By::Both => (self.place + moved).fract(),
        }
    }

    fn sides(&self, decision: usize, iterations: &[u64]) -> (bool, bool) {
        let decision = &self.program.decisions[decision];
        decision.sides(self.place_in(decision.by, &decision.loops, iterations))
    }

    fn goes(&self, block: usize, iterations: &[u64]) -> bool {
        let inside = &self.program.blocks[block].inside;
        inside.iter().all(|&(of, side)| {
            let (then, otherwise) = self.sides(of, iterations);
            match side {
                Side::Then => then,
                Side::Otherwise => otherwise,
            }
        })
    }
}

impl Warp for Way<'_, '_> {
    fn trips(&self, number: usize, iterations: &[u64]) -> u64 {
        let of = &self.program.loops[number];
        if !self.goes(self.program.cfg.loops()[number], iterations) {
            return 0;
        }
        let turns = of.turns_at(self.place_in(By::Both, &of.loops, iterations));
        if turns <= 0.0 {
            0
        } else {
            (turns * self.scales[number]).round().max(1.0) as u64
        }
    }

    fn misses(&self, block: usize, iterations: &[u64]) -> bool {
        !self.goes(block, iterations)
    }
}

struct Builder<'f> {
    input: &'f ModelInput,
    average: bool,
    blocks: Vec<Block>,
    edges: Vec<(usize, usize)>,
    decisions: Vec<Decision>,
    loops: Vec<Loop>,
    addresses: Vec<Option<&'f LinearAddress>>,
    /// Loops around what is being built, innermost first.
    around: Vec<usize>,
    inside: Vec<(usize, Side)>,
}

impl<'f> Builder<'f> {
    fn block(&mut self, before: &[usize]) -> usize {
        let number = self.blocks.len();
        self.blocks.push(Block {
            nodes: Vec::new(),
            inside: self.inside.clone(),
        });
        self.edges.extend(before.iter().map(|&from| (from, number)));
        number
    }

    /// Appends to a block; the block that comes behind. Nodes are numbered as [`Graph::new`](crate::wfg::graph) does.
    fn sequence(&mut self, flow: &'f [Flow], mut at: usize) -> usize {
        for item in flow {
            match item {
                Flow::Compute { .. } | Flow::Barrier { .. } => self.node(at, None),
                Flow::Access { access, .. } => {
                    if let Some(facts) = self.input.accesses.get(*access) {
                        self.node(at, facts.linear.as_ref());
                    }
                }
                Flow::Loop {
                    trips, body, line, ..
                } => {
                    let number = self.loops.len();
                    let trips = positive(*trips).min(MOST_TRIPS);
                    self.loops.push(Loop {
                        trips,
                        turns: turns(&self.input.facts.branches, *line, trips),
                        loops: self.around.clone(),
                    });
                    self.around.insert(0, number);
                    let header = self.block(&[at]);
                    let latch = self.sequence(body, header);
                    self.edges.push((latch, header));
                    self.around.remove(0);
                    at = self.block(&[latch]);
                }
                Flow::Branch {
                    taken,
                    other,
                    then,
                    otherwise,
                    line,
                } => {
                    let number = self.decisions.len();
                    let decision = self.decision(*taken, *other, *line);
                    self.decisions.push(decision);
                    self.inside.push((number, Side::Then));
                    let on = self.block(&[at]);
                    let on = self.sequence(then, on);
                    self.inside.pop();
                    if otherwise.is_empty() {
                        at = self.block(&[on, at]);
                        continue;
                    }
                    self.inside.push((number, Side::Otherwise));
                    let off = self.block(&[at]);
                    let off = self.sequence(otherwise, off);
                    self.inside.pop();
                    at = self.block(&[on, off]);
                }
            }
        }
        at
    }

    fn node(&mut self, block: usize, address: Option<&'f LinearAddress>) {
        self.blocks[block].nodes.push(self.addresses.len());
        self.addresses.push(address);
    }

    fn decision(&self, taken: f64, other: f64, line: u32) -> Decision {
        let (mut taken, mut other) = (positive(taken).min(1.0), positive(other).min(1.0));
        if self.average && taken + other > 1.0 {
            let both = taken + other;
            (taken, other) = (taken / both, other / both);
        }
        let alike = |branch: &&Branch| {
            branch.kind != BranchKind::Loop && branch.site.line == line && line > 0
        };
        let near = |branch: &&Branch| {
            let fraction = branch.taken_warp_fraction.unwrap_or(f64::MAX);
            (fraction - taken).abs() < 1e-6
        };
        let of = self.input.facts.branches.iter().filter(alike);
        let by = match of.clone().find(near).or(of.clone().next()) {
            Some(branch) => match branch.uniformity {
                Uniformity::Uniform => By::Iteration,
                Uniformity::WarpUniform | Uniformity::Divergent => By::Warp,
                Uniformity::DataDependent => By::Both,
            },
            None => By::Both,
        };
        let by = match by {
            By::Both if self.around.is_empty() => By::Warp,
            by => by,
        };
        Decision {
            taken,
            other,
            by,
            loops: self.around.clone(),
        }
    }
}

/// How many warps have how many iterations, as fractions that add up, where the facts say so of this loop.
fn turns(branches: &[Branch], line: u32, trips: f64) -> Vec<(f64, f64)> {
    let of = branches.iter().find(|branch| {
        branch.kind == BranchKind::Loop
            && branch.site.line == line
            && !branch.turns.is_empty()
            && branch
                .trips
                .is_some_and(|known| (known - trips).abs() <= 1e-6 * trips.max(1.0))
    });
    let Some(of) = of else {
        return Vec::new();
    };
    let all: f64 = of.turns.iter().map(|(_, warps)| positive(*warps)).sum();
    if all <= 0.0 {
        return Vec::new();
    }
    let mut sorted = of.turns.clone();
    sorted.sort_by_key(|(turns, _)| *turns);
    let mut upto = 0.0;
    sorted
        .into_iter()
        .map(|(turns, warps)| {
            upto += positive(warps) / all;
            ((turns as f64).min(MOST_TRIPS), upto)
        })
        .collect()
}
