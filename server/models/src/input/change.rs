//! What-ifs: a change of what warps execute, by what it would be in the source or in the launch.
//!
//! A change is data. [`ModelInput::with`] applies it to a copy, so that facts and the compiled kernel stay as they are.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_machine::{Mix, Pipe};

use warplens_facts::facts::{IndexExpression, Node, Op, Space, TripCount};

use super::executed::ExecutedAccess;
use super::join::{ModelInput, residence};
use super::reshape::{self, Instructions};

/// Bytes of a block's shared memory that hold its words at a time, where it stages them.
const TILE_BYTES: f64 = 8192.0;
/// Instructions that find a word's place in the array and in the tile, and whether it is there.
const PLACING: f64 = 12.0;
/// Bytes that a thread loads at once, at most.
const WIDEST: u32 = 16;
/// Copies of a loop's body in an iteration of the compiled one, at most: all iterations lie within that many times its trip count.
const APART: i64 = 64;
/// Bytes of a bank.
const BANK: f64 = 4.0;

/// One change of what warps execute.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Another grid, the work of a block unchanged.
    Grid([u64; 3]),
    /// Registers of a thread.
    Registers(u32),
    /// Bytes of a block's shared memory that are not needed, of what the kernel declares before what the launch asks for.
    LessSharedMemory(u64),
    /// These accesses are not made.
    WithoutAccesses(Vec<usize>),
    /// A part of the executions of an access, from 0 to 1.
    PartOfAccess {
        /// The access.
        access: usize,
        /// The part that stays.
        part: f64,
    },
    /// Each of these loads is in front of the innermost loop around it.
    BeforeLoop(Vec<usize>),
    /// Each of these accesses is behind the loop whose head is at the line beside it.
    BehindLoop(Vec<(usize, u32)>),
    /// An atomic is made once for a warp, not by each of its lanes.
    OneLane {
        /// The atomic.
        access: usize,
    },
    /// Copies past the registers are waited for in a later iteration.
    CopiesAhead {
        /// The copies' loads.
        accesses: Vec<usize>,
        /// How many iterations later.
        iterations: u32,
    },
    /// No barriers on a line.
    WithoutBarriers {
        /// The line.
        line: u32,
    },
    /// The trip count of the loops at a line is multiplied.
    TripCount {
        /// The line of the loop's head.
        line: u32,
        /// By how much.
        factor: f64,
    },
    /// The same of one loop.
    TripCountAt {
        /// Where it is: an index into each list of nodes from the outermost, and true but for the other side of a
        /// branch.
        path: Vec<(usize, bool)>,
        /// By how much.
        factor: f64,
    },
    /// The trip counts of outermost loops are divided: their iterations go to as many times the blocks.
    SplitLoops {
        /// The loops, as in [`Change::TripCountAt`].
        loops: Vec<Vec<(usize, bool)>>,
        /// Into how many parts.
        parts: u64,
        /// The axis of the grid along which the parts are.
        axis: usize,
    },
    /// The chain of a loop's sums is shorter: several sums side by side.
    SplitSums {
        /// The line of the loop's head.
        head: u32,
        /// The lines of the sums.
        lines: Vec<u32>,
        /// Additions in a row in an iteration.
        waits: f64,
        /// Sums in place of one.
        sums: u32,
    },
    /// Other instructions in place of some.
    Instead {
        /// Those that go.
        before: Instructions,
        /// Those that come.
        after: Instructions,
    },
    /// More instructions on a line.
    More {
        /// The line.
        line: u32,
        /// What is executed each time.
        mix: Mix,
        /// How often a warp executes it.
        times: f64,
    },
    /// A call's body is in its place: nothing is executed beside it.
    WithoutCall {
        /// The call's number among the kernel's.
        call: usize,
    },
    /// The loads of an array share nothing in the caches.
    NoReuse {
        /// The array.
        array: String,
    },
    /// All blocks read the same of an array.
    OneBlockRead {
        /// The array.
        array: String,
    },
    /// Loads come from shared memory, where the block puts each word once.
    Staged {
        /// The loads.
        accesses: Vec<usize>,
        /// Distinct words that a block reads by them.
        words: f64,
        /// They are a factor of a product: a loop of known length walks along a tile's rows, and takes several words at once.
        product: bool,
    },
    /// Loads come from constant memory, one word per request.
    FromConstants {
        /// The loads.
        accesses: Vec<usize>,
    },
}

impl ModelInput {
    /// The same kernel with something changed.
    #[must_use]
    pub fn with(&self, changes: &[Change]) -> ModelInput {
        let mut changed = self.clone();
        for change in changes {
            change.apply(&mut changed);
        }
        changed.occupancy = residence(
            &changed.profile,
            &changed.launch,
            &changed.resources,
            changed.launch.blocks(),
        );
        changed
    }
}

impl Change {
    /// Makes it.
    fn apply(&self, input: &mut ModelInput) {
        let nodes = &mut input.flow.nodes;
        match self {
            Change::Grid(grid) => input.launch.grid = *grid,
            Change::Registers(registers) => input.resources.registers_per_thread = *registers,
            Change::LessSharedMemory(bytes) => {
                let own = &mut input.resources.static_shared_bytes;
                let of_launch = &mut input.launch.dynamic_shared_bytes;
                let from_launch = bytes.saturating_sub(*own);
                *own = own.saturating_sub(*bytes);
                *of_launch = of_launch.saturating_sub(from_launch);
            }
            Change::WithoutAccesses(accesses) => reshape::drop_accesses(nodes, accesses),
            Change::PartOfAccess { access, part } => reshape::thin(nodes, *access, *part),
            Change::BeforeLoop(accesses) => {
                reshape::hoist(nodes, &mut accesses.iter().copied().collect());
            }
            Change::BehindLoop(accesses) => {
                let mut wanted: FxHashMap<u32, FxHashSet<usize>> = FxHashMap::default();
                for &(access, line) in accesses {
                    wanted.entry(line).or_default().insert(access);
                }
                reshape::sink(nodes, &mut wanted);
            }
            Change::OneLane { access } => {
                if let Some(access) = input.accesses.get_mut(*access) {
                    access.passes_per_request = Some(1.0);
                    access.active_lanes_per_request = Some(1.0);
                }
            }
            Change::CopiesAhead {
                accesses,
                iterations,
            } => {
                for &access in accesses {
                    if let Some(access) = input.accesses.get_mut(access) {
                        access.ahead = Some(*iterations);
                    }
                }
            }
            Change::WithoutBarriers { line } => reshape::drop_barriers(nodes, *line),
            Change::TripCount { line, factor } => reshape::shorten(nodes, *line, *factor),
            Change::TripCountAt { path, factor } => {
                if let Some(Node::Loop { trips, .. }) = reshape::at(nodes, path) {
                    *trips *= factor;
                }
            }
            Change::SplitLoops { loops, parts, axis } => {
                split_loops(input, loops, *parts, *axis);
            }
            Change::SplitSums {
                head,
                lines,
                waits,
                sums,
            } => reshape::split_sums(&mut input.flow, *head, lines, *waits, *sums),
            Change::Instead { before, after } => reshape::replace(nodes, before, after),
            Change::More { line, mix, times } => reshape::add(nodes, *line, mix, *times),
            Change::WithoutCall { call } => input.take_call_away(*call),
            Change::NoReuse { array } => read_as(input, array, &|_| None),
            Change::OneBlockRead { array } => {
                read_as(input, array, &|index| Some(index.in_first_block()));
            }
            Change::Staged {
                accesses,
                words,
                product,
            } => stage(input, accesses, *words, *product),
            Change::FromConstants { accesses } => {
                for &access in accesses {
                    let access = &mut input.accesses[access];
                    as_shared(access, 1.0);
                    access.space = Space::Constant;
                }
            }
        }
    }
}

/// Gives the loads of an array another index, which alone says then what they share.
fn read_as(
    input: &mut ModelInput,
    array: &str,
    index: &dyn Fn(&IndexExpression) -> Option<IndexExpression>,
) {
    for access in &mut input.accesses {
        if access.object.is(array) && access.op == Op::Load {
            let other = access.index.as_deref().and_then(index);
            access.index = other.map(Arc::new);
            access.linear = None;
            access.linear_in_blocks = None;
            access.parts = None;
        }
    }
}

/// Divides the iterations of outermost loops among as many times the blocks.
fn split_loops(input: &mut ModelInput, loops: &[Vec<(usize, bool)>], parts: u64, axis: usize) {
    input.launch.grid[axis] *= parts;
    for path in loops {
        let Some(Node::Loop { trips, body, .. }) = reshape::at(&mut input.flow.nodes, path) else {
            continue;
        };
        let all = *trips as i64;
        *trips /= parts as f64;
        let mut inside = Vec::new();
        accesses_of(body, &mut inside);
        inside.sort_unstable();
        inside.dedup();
        for index in inside {
            let access = &mut input.accesses[index];
            let addresses = [&mut access.linear, &mut access.linear_in_blocks];
            for linear in addresses.into_iter().flatten() {
                // The parts share nothing; how far apart they are is no matter.
                let step = linear.loops.first().copied().unwrap_or(0);
                let far = step.saturating_mul(all).saturating_mul(APART);
                linear.block[axis] = linear.block[axis].saturating_add(far);
            }
        }
    }
}

/// The accesses of some nodes.
fn accesses_of(nodes: &[Node], found: &mut Vec<usize>) {
    for node in nodes {
        match node {
            Node::Access { access, .. } => found.push(*access),
            Node::Loop { body, .. } => accesses_of(body, found),
            Node::Branch {
                then, otherwise, ..
            } => {
                accesses_of(then, found);
                accesses_of(otherwise, found);
            }
            _ => {}
        }
    }
}

/// Leaves each word of the block one load from device memory; threads take it from shared memory.
fn stage(input: &mut ModelInput, staged: &[usize], words: f64, product: bool) {
    let Some(&first) = staged.first() else {
        return;
    };
    let launch = &input.launch;
    let threads = launch.threads_per_block() as f64;
    let warp_size = input.facts.warp_size;
    let warp = f64::from(warp_size.max(1));
    let warps = (threads / warp).ceil().max(1.0);
    let loads = words / warp;
    let bytes = (words * f64::from(input.accesses[first].bytes_per_lane)).min(TILE_BYTES);
    let mut load = input.accesses[first].clone();
    load.requests = Some(loads * launch.blocks() as f64);
    load.active_lanes_per_request = Some(warp.min(words));
    load.transactions_per_request = whole_rows(&load, warp.min(words));
    // Words of 8 bytes take two passes, and so do two short rows.
    let rows = |row: bool| if row { 2.0 } else { 1.0 };
    let short = launch.block[0] < u64::from(warp_size);
    let each = (f64::from(load.bytes_per_lane) / 4.0).ceil().max(1.0);
    let mut store = load.clone();
    store.op = Op::Store;
    as_shared(&mut store, each * rows(short));
    let block = launch.block;
    for &index in staged {
        let access = &mut input.accesses[index];
        // Half as many words as there are banks have a pitch of the tile that puts each into a bank of its own.
        let taken = words_of_request(access, block, u64::from(warp_size));
        let few = taken * 2.0 <= warp;
        if product && few && is_walked_along(access, warp) {
            let bytes = taken * f64::from(WIDEST);
            as_shared(access, (bytes / (warp * BANK)).ceil().max(1.0));
            let part = f64::from(access.bytes_per_lane) / f64::from(WIDEST);
            reshape::thin(&mut input.flow.nodes, index, part);
        } else {
            as_shared(access, each * rows(short && !few));
        }
    }
    let next = input.accesses.len();
    input.accesses.extend([load, store]);
    let line = input.accesses[first].site.line;
    let staging = Node::Loop {
        trips: loads / warps,
        known: true,
        count: TripCount::Number,
        body: vec![
            Node::Compute {
                mix: Mix::from([(Pipe::Int, PLACING)]),
                uses: Vec::new(),
                chain: PLACING,
                line,
            },
            Node::Access {
                access: next,
                uses: Vec::new(),
            },
            Node::Access {
                access: next + 1,
                uses: vec![next],
            },
        ],
        line,
    };
    let nodes = &mut input.flow.nodes;
    nodes.splice(0..0, [staging, Node::Barrier { line }]);
    input.resources.static_shared_bytes += bytes as u64;
}

/// True where each iteration of the innermost loop takes the next word, and lanes at most those of other rows.
fn is_walked_along(access: &ExecutedAccess, warp: f64) -> bool {
    let element = i64::from(access.bytes_per_lane);
    let rows = warp as i64 * element;
    access.bytes_per_lane < WIDEST
        && access.linear.as_ref().is_some_and(|linear| {
            linear.loops.last() == Some(&element)
                && linear
                    .thread
                    .iter()
                    .all(|step| *step == 0 || step.abs() >= rows)
        })
}

/// Transactions of a request for neighbouring words, as a tile is filled.
fn whole_rows(access: &ExecutedAccess, words: f64) -> Option<f64> {
    let bytes = words * f64::from(access.bytes_per_lane);
    let unit = f64::from(access.transaction_bytes);
    if unit > 0.0 {
        Some((bytes / unit).ceil())
    } else {
        access.ideal_transactions_per_request
    }
}

/// Distinct words that the lanes of a block's first warp take; all of its lanes' where addresses are no sums of
/// coordinates.
fn words_of_request(access: &ExecutedAccess, block: [u64; 3], warp_size: u64) -> f64 {
    let lanes = warp_size.min(block.iter().product());
    let Some(linear) = &access.linear else {
        return lanes as f64;
    };
    let [x, y] = [block[0].max(1), block[1].max(1)];
    let mut words: Vec<i64> = (0..lanes)
        .map(|lane| [lane % x, lane / x % y, lane / (x * y)])
        .map(|at| {
            let steps = at.iter().zip(linear.thread);
            steps
                .map(|(at, step)| (*at as i64).wrapping_mul(step))
                .fold(0, i64::wrapping_add)
        })
        .collect();
    words.sort_unstable();
    words.dedup();
    words.len() as f64
}

/// A request to shared memory that takes this number of passes.
fn as_shared(access: &mut ExecutedAccess, passes: f64) {
    access.space = Space::Shared;
    access.transactions_per_request = None;
    access.ideal_transactions_per_request = None;
    access.transaction_bytes = 0;
    access.bytes_moved_per_request = None;
    access.passes_per_request = Some(passes);
    access.ideal_passes_per_request = Some(passes);
    access.linear = None;
}
