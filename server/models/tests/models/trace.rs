//! The parts of Wang et al. 2019, each by hand-worked cases, and the model they make.

use crate::common::{Kernel, Target, branch, compute, fp32, input, int, question, repeat, touch};
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use warplens_facts::facts::{Branch, BranchKind, Certainty, Node, Op, Site, Uniformity};
use warplens_machine::{Mix, Pipe};
use warplens_machine::{Profiles, RegisterScope, occupancy};
use warplens_models::trace::cfg::Cfg;
use warplens_models::trace::groups::Parameters;
use warplens_models::trace::operations::{Class, arithmetic};
use warplens_models::trace::pipeline::{Operation, Part, Port, Round, Step, Timing, run};
use warplens_models::trace::reuse::Stack;
use warplens_models::trace::search::{Warp, trace};
use warplens_models::{Estimate, Factor, ModelId, Question, estimate};

// ---- Algorithms 1 to 3 ----

/// A warp by two functions: iterations of a loop, and which blocks it misses.
struct Fixed<T, M>(T, M);

impl<T: Fn(usize, &[u64]) -> u64, M: Fn(usize, &[u64]) -> bool> Warp for Fixed<T, M> {
    fn trips(&self, of: usize, iterations: &[u64]) -> u64 {
        (self.0)(of, iterations)
    }

    fn misses(&self, block: usize, iterations: &[u64]) -> bool {
        (self.1)(block, iterations)
    }
}

fn search(
    blocks: usize,
    edges: &[(usize, usize)],
    trips: impl Fn(usize, &[u64]) -> u64,
    misses: impl Fn(usize, &[u64]) -> bool,
) -> Vec<usize> {
    let cfg = Cfg::new(blocks, edges).expect("a graph");
    trace(&cfg, &Fixed(trips, misses), 10_000)
}

fn no_loops(_: usize, _: &[u64]) -> u64 {
    unreachable!("the graph has no loop")
}

#[test]
fn the_edges_are_split_and_the_loops_are_found() {
    // 0 -> 1 -> 2 -> 3, 2 -> 2, 3 -> 1, 3 -> 4.
    let cfg = Cfg::new(5, &[(0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (3, 4)]).expect("a graph");
    assert_eq!(cfg.loops(), [1, 2]);
    assert_eq!((cfg.back(2), cfg.back(3)), (&[2usize][..], &[1usize][..]));
    assert_eq!(cfg.around(2), [1, 0]);
    assert_eq!(cfg.around(3), [0]);
    assert_eq!(cfg.around(4), [0usize; 0]);
    assert!(cfg.reaches(1, 4) && !cfg.reaches(3, 1));
    assert_eq!(Cfg::new(0, &[]), None);
}

#[test]
fn of_the_blocks_that_follow_only_the_closest_count() {
    // An `if` without `else`: its end lies behind its body.
    let cfg = Cfg::new(3, &[(0, 2), (0, 1), (1, 2)]).expect("a graph");
    assert_eq!(cfg.closest(0), [1]);
}

#[test]
fn both_sides_of_a_branch_come_before_their_end() {
    let edges = [(0, 1), (0, 2), (1, 3), (2, 3)];
    let sides = |missed: usize| search(4, &edges, no_loops, move |block, _| block == missed);
    assert_eq!(sides(9), [0, 1, 2, 3]);
    assert_eq!(sides(1), [0, 2, 3]);
    assert_eq!(sides(2), [0, 1, 3]);
}

#[test]
fn cases_of_a_switch_with_one_that_falls_through() {
    // 0: 1, 2, 3, or none of them (4); 2 falls through to 3.
    let edges = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 4), (2, 3), (3, 4)];
    let all = search(5, &edges, no_loops, |_, _| false);
    assert_eq!(all, [0, 1, 2, 3, 4]);
}

#[test]
fn a_branch_within_a_side_of_a_branch() {
    // 0 { 1 { 2 | 3 } 4 | 5 } 6: the stack is not empty at the inner branch.
    let edges = [
        (0, 1),
        (0, 5),
        (1, 2),
        (1, 3),
        (2, 4),
        (3, 4),
        (4, 6),
        (5, 6),
    ];
    let all = search(7, &edges, no_loops, |_, _| false);
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn nested_loops() {
    // 0; 1 { 2 itself twice; 3 } three times; 4.
    let edges = [(0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (3, 4)];
    let found = search(5, &edges, |of, _| [3, 2][of], |_, _| false);
    assert_eq!(found, [0, 1, 2, 2, 3, 1, 2, 2, 3, 1, 2, 2, 3, 4]);
}

#[test]
fn two_loops_that_end_in_one_block() {
    // 0; 1 { 2 3 } with both ends in 3.
    let edges = [(0, 1), (1, 2), (2, 3), (3, 2), (3, 1), (3, 4)];
    let found = search(5, &edges, |of, _| [2, 3][of], |_, _| false);
    assert_eq!(found, [0, 1, 2, 3, 2, 3, 2, 3, 1, 2, 3, 2, 3, 2, 3, 4]);
}

#[test]
fn a_bound_that_depends_on_the_loop_around() {
    // for i < 4 { 1; for j < i { 2 } 3 }
    let edges = [(0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (3, 4)];
    let trips = |of: usize, iterations: &[u64]| if of == 0 { 4 } else { iterations[0] };
    let found = search(5, &edges, trips, |_, _| false);
    assert_eq!(found, [0, 1, 3, 1, 2, 3, 1, 2, 2, 3, 1, 2, 2, 2, 3, 4]);
}

#[test]
fn a_loop_that_is_never_entered() {
    let edges = [(0, 1), (1, 2), (2, 1), (2, 3)];
    assert_eq!(search(4, &edges, |_, _| 0, |_, _| false), [0, 3]);
}

#[test]
fn a_branch_in_a_loop_by_the_iteration() {
    // for i < 4 { 1; if (i odd) 2 else 3; 4 }
    let edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 1), (4, 5)];
    let misses = |block: usize, iterations: &[u64]| {
        let odd = iterations[0] % 2 == 1;
        (block == 2 && !odd) || (block == 3 && odd)
    };
    let found = search(6, &edges, |_, _| 4, misses);
    assert_eq!(found, [0, 1, 3, 4, 1, 2, 4, 1, 3, 4, 1, 2, 4, 5]);
}

#[test]
fn a_loop_with_several_exits() {
    // for i < 5 { 1; if (i == 2) break; 2 } 3, and a second way out of 2 through 4.
    let edges = [(0, 1), (1, 2), (1, 3), (2, 4), (2, 1), (2, 3), (4, 3)];
    // The warp leaves in the third iteration: what would follow is missed, as is the other way out.
    let misses = |block: usize, iterations: &[u64]| {
        let left = iterations[0] > 2 || (iterations[0] == 2 && block == 2);
        (left && (block == 1 || block == 2)) || block == 4
    };
    let found = search(5, &edges, |_, _| 5, misses);
    assert_eq!(found, [0, 1, 2, 1, 2, 1, 3]);
    // A warp that stays to the end goes out through 4.
    let found = search(5, &edges, |_, _| 2, |_, _| false);
    assert_eq!(found, [0, 1, 2, 1, 2, 4, 3]);
}

#[test]
fn exits_of_an_inner_loop_come_once_in_each_iteration_of_the_outer() {
    // for i < 2 { 1; for j < 2 { 2; if .. 5; 3 } 4 }: 5 is behind the inner loop.
    let edges = [
        (0, 1),
        (1, 2),
        (2, 3),
        (2, 5),
        (3, 2),
        (3, 4),
        (5, 4),
        (4, 1),
        (4, 6),
    ];
    let found = search(7, &edges, |_, _| 2, |_, _| false);
    assert_eq!(found, [0, 1, 2, 3, 2, 3, 5, 4, 1, 2, 3, 2, 3, 5, 4, 6]);
}

#[test]
fn a_loop_whose_header_leaves_it() {
    // while: 1 tests, 2 and 3 are the body.
    let edges = [(0, 1), (1, 4), (1, 2), (2, 3), (3, 1)];
    let found = search(5, &edges, |_, _| 2, |_, _| false);
    assert_eq!(found, [0, 1, 2, 3, 1, 2, 3, 4]);
}

#[test]
fn a_search_is_bounded() {
    let cfg = Cfg::new(3, &[(0, 1), (1, 1), (1, 2)]).expect("a graph");
    let warp = Fixed(|_: usize, _: &[u64]| u64::MAX, |_: usize, _: &[u64]| false);
    assert_eq!(trace(&cfg, &warp, 1000).len(), 1000);
}

/// A structured program.
#[derive(Debug, Clone)]
enum Code {
    Plain,
    /// Iterations, more in each iteration of the loop around, body.
    Loop(u64, bool, Vec<Code>),
    /// By the warp's bit or the iteration, and the sides.
    If(bool, Vec<Code>, Vec<Code>),
}

fn code() -> impl Strategy<Value = Vec<Code>> {
    let leaf = Just(Code::Plain);
    let one = leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner, 0..4);
        prop_oneof![
            (0..4u64, any::<bool>(), list.clone())
                .prop_map(|(n, grows, b)| Code::Loop(n, grows, b)),
            (any::<bool>(), list.clone(), list).prop_map(|(by, a, b)| Code::If(by, a, b)),
        ]
    });
    prop::collection::vec(one, 1..5)
}

/// What a plain reading executes, and the graph of it.
#[derive(Default)]
struct Reading {
    blocks: usize,
    edges: Vec<(usize, usize)>,
    /// Of each block the sides around it: (branch, loops around, by the iteration, which side).
    sides: Vec<Vec<(Option<usize>, bool, bool)>>,
    /// Iterations, growing with which loop.
    loops: Vec<(u64, Option<usize>)>,
}

impl Reading {
    fn block(&mut self, from: &[usize], sides: &[(Option<usize>, bool, bool)]) -> usize {
        self.sides.push(sides.to_vec());
        self.edges.extend(from.iter().map(|&b| (b, self.blocks)));
        self.blocks += 1;
        self.blocks - 1
    }

    fn build(
        &mut self,
        code: &[Code],
        mut at: usize,
        around: Option<usize>,
        sides: &mut Vec<(Option<usize>, bool, bool)>,
    ) -> usize {
        for one in code {
            match one {
                Code::Plain => at = self.block(&[at], sides),
                Code::Loop(trips, grows, body) => {
                    let number = self.loops.len();
                    self.loops.push((*trips, around.filter(|_| *grows)));
                    let header = self.block(&[at], sides);
                    let latch = self.build(body, header, Some(number), sides);
                    self.edges.push((latch, header));
                    at = self.block(&[latch], sides);
                }
                Code::If(by_iteration, then, otherwise) => {
                    sides.push((around, *by_iteration, true));
                    let on = self.block(&[at], sides);
                    let on = self.build(then, on, around, sides);
                    sides.last_mut().expect("pushed").2 = false;
                    let off = self.block(&[at], sides);
                    let off = self.build(otherwise, off, around, sides);
                    sides.pop();
                    at = self.block(&[on, off], sides);
                }
            }
        }
        at
    }

    fn taken(side: (Option<usize>, bool, bool), bit: bool, iterations: &[u64]) -> bool {
        let (around, by_iteration, then) = side;
        let iteration = around.map_or(0, |of| iterations[of]);
        let on = if by_iteration {
            iteration % 2 == 0
        } else {
            bit
        };
        on == then
    }

    fn trips(&self, of: usize, iterations: &[u64]) -> u64 {
        let (trips, grows) = self.loops[of];
        trips + grows.map_or(0, |around| iterations[around])
    }
}

/// Runs the code as it reads, numbering blocks as [`Reading::build`] does.
struct Running<'r> {
    reading: &'r Reading,
    bit: bool,
    iterations: Vec<u64>,
    executed: Vec<usize>,
}

impl Running<'_> {
    /// `next` and `loops` number what is passed over too.
    fn list(
        &mut self,
        code: &[Code],
        next: &mut usize,
        loops: &mut usize,
        runs: bool,
        around: Option<usize>,
    ) {
        let enter = |executed: &mut Vec<usize>, next: &mut usize, runs: bool| {
            if runs {
                executed.push(*next);
            }
            *next += 1;
        };
        for one in code {
            match one {
                Code::Plain => enter(&mut self.executed, next, runs),
                Code::Loop(_, _, body) => {
                    let number = *loops;
                    *loops += 1;
                    let trips = if runs {
                        self.reading.trips(number, &self.iterations)
                    } else {
                        0
                    };
                    let first = (*next, *loops);
                    for iteration in 0..trips.max(1) {
                        (*next, *loops) = first;
                        self.iterations[number] = iteration;
                        let within = trips > 0;
                        enter(&mut self.executed, next, within);
                        self.list(body, next, loops, within, Some(number));
                    }
                    enter(&mut self.executed, next, runs);
                }
                Code::If(by_iteration, then, otherwise) => {
                    let on =
                        Reading::taken((around, *by_iteration, true), self.bit, &self.iterations);
                    enter(&mut self.executed, next, runs && on);
                    self.list(then, next, loops, runs && on, around);
                    enter(&mut self.executed, next, runs && !on);
                    self.list(otherwise, next, loops, runs && !on, around);
                    enter(&mut self.executed, next, runs);
                }
            }
        }
    }
}

proptest! {
    /// The search gives what the program executes.
    #[test]
    fn a_trace_is_what_runs(code in code(), bit in any::<bool>()) {
        let mut reading = Reading::default();
        reading.block(&[], &[]);
        reading.build(&code, 0, None, &mut Vec::new());
        let cfg = Cfg::new(reading.blocks, &reading.edges).expect("a graph");
        prop_assert_eq!(cfg.loops().len(), reading.loops.len());
        let goes = |block: usize, iterations: &[u64]| {
            reading.sides[block].iter().all(|&side| Reading::taken(side, bit, iterations))
        };
        let warp = Fixed(
            |of: usize, iterations: &[u64]| {
                let reached = goes(cfg.loops()[of], iterations);
                if reached { reading.trips(of, iterations) } else { 0 }
            },
            |block: usize, iterations: &[u64]| !goes(block, iterations),
        );
        let found = trace(&cfg, &warp, 1_000_000);
        let mut running = Running {
            reading: &reading,
            bit,
            iterations: vec![0; reading.loops.len()],
            executed: vec![0],
        };
        running.list(&code, &mut 1, &mut 0, true, None);
        prop_assert_eq!(found, running.executed);
    }
}

// ---- Equations 1 to 7 ----

/// Kepler, 3.0: 64 warps, 16 groups, 65536 registers, 48 KiB.
fn kepler(local_size: u64, registers: u64, shared_bytes: u64) -> Parameters {
    let profile = Profiles::builtin().get("quadro-k600").expect("embedded");
    Parameters::new(&profile, local_size, registers, shared_bytes)
}

#[test]
fn groups_limited_by_the_architecture() {
    // 64 work items are 2 warps: 64 / 2 = 32 groups of warps, but no more than 16.
    let groups = kepler(64, 16, 0).groups();
    assert_eq!((groups.warps_per_group, groups.by_architecture), (2, 16));
    assert_eq!(groups.active, 16);
    // 200 are 7 warps: 64 / 7 = 9.
    let groups = kepler(200, 16, 0).groups();
    assert_eq!((groups.warps_per_group, groups.by_architecture), (7, 9));
    assert_eq!((groups.active, groups.by_shared), (9, None));
}

#[test]
fn groups_limited_by_registers() {
    // 37 registers of 32 items: 1184, in units of 256: 1280; 65536 / 1280 = 51 warps, in fours: 48; of 8 warps: 6.
    let groups = kepler(256, 37, 0).groups();
    assert_eq!(groups.warps_by_registers, 48);
    assert_eq!((groups.by_registers, groups.active), (Some(6), 6));
    // More than 63 registers an item cannot be had.
    assert_eq!(kepler(256, 64, 0).groups().by_registers, Some(0));
    assert_eq!(kepler(256, 63, 0).groups().by_registers, Some(4));
    assert_eq!(kepler(256, 64, 0).groups().active, 0);
    // Not known: no limit.
    assert_eq!(kepler(256, 0, 0).groups().by_registers, None);
    // A GPU whose SM has twice the registers that a group may have: the second factor of equation 3.
    let twice = Parameters {
        registers_per_sm: 131_072,
        ..kepler(256, 37, 0)
    };
    assert_eq!(twice.groups().by_registers, Some(12));
}

#[test]
fn groups_limited_by_shared_memory() {
    // 5000 bytes in units of 256: 5120; 49152 / 5120 = 9.
    let groups = kepler(32, 16, 5000).groups();
    assert_eq!((groups.shared_allocated, groups.by_shared), (5120, Some(9)));
    assert_eq!(groups.active, 9);
    // More than a group may have.
    let groups = kepler(32, 16, 49_153).groups();
    assert_eq!((groups.by_shared, groups.active), (Some(0), 0));
}

#[test]
fn where_warps_hold_the_registers_the_equations_are_our_occupancy() {
    let mut compared = 0;
    for profile in Profiles::builtin().iter() {
        // On 1.x a block's registers are handed out at once; where the parts of an SM are not those that equation 4
        // rounds to, the paper's formula is another one.
        if profile.register_scope == RegisterScope::Block
            || profile.sub_partitions != profile.warp_granularity
        {
            continue;
        }
        for threads in [32, 96, 200, 256, 672, 1024] {
            for registers in [1, 16, 33, 37, 48, 63, 64, 128, 255] {
                for shared in [0, 1, 5000, 16_384, 40_000, 49_152] {
                    let groups =
                        Parameters::new(&profile, threads, u64::from(registers), shared).groups();
                    let ours = occupancy(&profile, threads, registers, shared, u64::MAX);
                    assert_eq!(
                        groups.active,
                        u64::from(ours.active_blocks_per_sm),
                        "{} {threads} {registers} {shared}",
                        profile.id
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn where_a_block_holds_the_registers_the_equations_give_another_number() {
    // 1.3: 16384 registers, blocks in units of 512 registers and two warps. 3 warps of 17 registers: equation 4 has
    // ceil(544, 512) = 1024 registers per warp, 16 warps, 5 groups; the hardware ceil(4 * 544, 512) = 2560 a block: 6.
    let profile = Profiles::builtin().get("gtx-280").expect("embedded");
    let groups = Parameters::new(&profile, 96, 17, 0).groups();
    assert_eq!(groups.by_registers, Some(5));
    assert_eq!(
        occupancy(&profile, 96, 17, 0, u64::MAX).limits.registers,
        Some(6)
    );
}

// ---- Table I ----

#[test]
fn classes_have_the_figures_of_the_profile() {
    let profile = Profiles::builtin().get("quadro-k600").expect("embedded");
    let of = |mix: Mix| arithmetic(&mix, 1.0, &profile);
    let one = Mix::from([(Pipe::IntMul, 1.0)]);
    // A product of integers on 32 lanes, a double on 8: the warp waits for the latency of 11 or for the lanes.
    assert_eq!(of(one), Ok((1.0, 11.0)));
    let one = Mix::from([(Pipe::Fp64, 4.0)]);
    assert_eq!(of(one), Ok((16.0, 16.0)));
    let half = Mix::from([(Pipe::Fp16, 1.0)]);
    assert_eq!(of(half), Err("fp16_lanes"));
    assert_eq!(Class::Single.pipes(), [Pipe::Fp32, Pipe::Fp32Multiply]);
    // 12 additions hold 192 lanes for 2 cycles; 4 sines hold 32 lanes for 4; the warp waits
    // for half of all latencies, 12 * 11 + 4 * 22.
    let mix = Mix::from([(Pipe::Fp32, 12.0), (Pipe::Sfu, 4.0)]);
    let (hold, latency) = arithmetic(&mix, 8.0, &profile).expect("it has the figures");
    assert_eq!((hold, latency), (4.0, 110.0));
    assert_eq!(arithmetic(&Mix::default(), 0.0, &profile), Ok((0.0, 0.0)));
}

// ---- The caches ----

#[test]
fn reuse_distances_by_hand() {
    let mut stack = Stack::default();
    // a b c a: b, c and a itself lie between.
    assert_eq!([1, 2, 3].map(|line| stack.touch(line, 1.0)), [None; 3]);
    assert_eq!(stack.touch(1, 1.0), Some(3.0));
    // a again: nothing between.
    assert_eq!(stack.touch(1, 1.0), Some(1.0));
    // b: c and a, each once.
    assert_eq!(stack.touch(2, 1.0), Some(3.0));
    // What never comes again counts as well, and a line that represents ten counts ten.
    stack.pass(5.0);
    assert_eq!(stack.touch(4, 10.0), None);
    assert_eq!(stack.touch(2, 1.0), Some(16.0));
}

proptest! {
    /// The tree gives what a list of what was used last gives.
    #[test]
    fn reuse_distances(lines in prop::collection::vec(0..12u64, 1..200)) {
        let mut stack = Stack::default();
        let mut recent: Vec<u64> = Vec::new();
        for line in lines {
            let at = recent.iter().rev().position(|&known| known == line);
            let expected = at.map(|at| (at + 1) as f64);
            prop_assert_eq!(stack.touch(line, 1.0), expected);
            recent.retain(|&known| known != line);
            recent.push(line);
        }
    }
}

// ---- The pipeline ----

/// Operations with the values they need, warp by warp.
struct Case {
    warps: Vec<Vec<(Operation, Vec<usize>)>>,
    per_group: usize,
}

impl Round for Case {
    fn warps(&self) -> usize {
        self.warps.len()
    }

    fn group(&self, warp: usize) -> usize {
        warp / self.per_group
    }

    fn step(&self, warp: usize, place: usize) -> Option<Step<'_>> {
        let (operation, needs) = self.warps[warp].get(place)?;
        Some(Step {
            operation: *operation,
            needs,
            source: place,
        })
    }

    fn values(&self) -> usize {
        4
    }

    fn sources(&self) -> usize {
        16
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Many warps that do the same again and again, and how many operations they were asked for between two looks at
/// whether anybody waits.
struct Watched {
    warps: usize,
    operations: usize,
    since: Cell<usize>,
    longest: Cell<usize>,
}

impl Round for Watched {
    fn warps(&self) -> usize {
        self.warps
    }

    fn group(&self, warp: usize) -> usize {
        warp / 8
    }

    fn step(&self, warp: usize, place: usize) -> Option<Step<'_>> {
        self.since.set(self.since.get() + 1);
        self.longest.set(self.longest.get().max(self.since.get()));
        let operation = match (place + warp) % 3 {
            _ if place >= self.operations => return None,
            _ if place % 16 == 15 => barrier(2.0).0,
            0 => memory(Port::Global, 4.0, 300.0, Some(0)).0,
            _ => arithmetic_of(1.0, 4.0).0,
        };
        Some(Step {
            operation,
            needs: &[0],
            source: 0,
        })
    }

    fn values(&self) -> usize {
        1
    }

    fn sources(&self) -> usize {
        1
    }

    fn is_cancelled(&self) -> bool {
        self.since.set(0);
        false
    }
}

#[test]
fn the_pipeline_looks_often_whether_anybody_waits() {
    for (warps, operations) in [(1, 100_000), (64, 2_000), (2048, 50)] {
        let round = Watched {
            warps,
            operations,
            since: Cell::new(0),
            longest: Cell::new(0),
        };
        assert!(run(&round).complete);
        assert!(
            round.longest.get() <= 512,
            "{warps}: {}",
            round.longest.get()
        );
    }
}

fn arithmetic_of(hold: f64, latency: f64) -> (Operation, Vec<usize>) {
    (Operation::Compute { hold, latency }, Vec::new())
}

fn needing(hold: f64, value: usize) -> (Operation, Vec<usize>) {
    let latency = hold;
    (Operation::Compute { hold, latency }, vec![value])
}

fn memory(port: Port, delay: f64, latency: f64, loads: Option<usize>) -> (Operation, Vec<usize>) {
    let operation = Operation::Memory {
        port,
        issue: 1.0,
        delay,
        latency,
        loads,
    };
    (operation, Vec::new())
}

fn barrier(latency: f64) -> (Operation, Vec<usize>) {
    (Operation::Barrier { latency }, Vec::new())
}

/// Runs warps that all have one trace.
fn same(warps: usize, per_group: usize, trace: &[(Operation, Vec<usize>)]) -> Timing {
    let timing = run(&Case {
        warps: vec![trace.to_vec(); warps],
        per_group,
    });
    accounted(&timing);
    timing
}

fn part(timing: &Timing, part: Part) -> f64 {
    timing.by_source.iter().map(|of| of[part as usize]).sum()
}

/// Every cycle is noted once.
fn accounted(timing: &Timing) {
    let noted: f64 = timing.by_source.iter().flatten().sum();
    assert!((noted - timing.cycles).abs() < 1e-9 * timing.cycles.max(1.0));
}

#[test]
fn one_warp_waits_for_its_own_latency() {
    let timing = same(1, 1, &[arithmetic_of(4.0, 10.0), arithmetic_of(4.0, 10.0)]);
    assert_eq!(timing.cycles, 20.0);
    assert_eq!(
        (timing.units_held, part(&timing, Part::Compute)),
        (8.0, 20.0)
    );
}

#[test]
fn warps_take_turns_at_the_units() {
    // 0-4 4-8 8-12 | the first is ready at 10 and waits until 12: 12-16 16-20 20-24, the last result at 30.
    let timing = same(3, 1, &[arithmetic_of(4.0, 10.0), arithmetic_of(4.0, 10.0)]);
    assert_eq!((timing.cycles, timing.units_held), (30.0, 24.0));
}

#[test]
fn a_load_is_waited_for_where_its_value_is_needed() {
    // Issue 0-1, 46 cycles there, the port from 47 to 55, 46 back: 101; then 4 cycles.
    let load = memory(Port::Global, 8.0, 100.0, Some(0));
    let timing = same(1, 1, &[load.clone(), needing(4.0, 0)]);
    assert_eq!(timing.cycles, 105.0);
    let parts = [Part::Compute, Part::Bandwidth, Part::Latency].map(|of| part(&timing, of));
    assert_eq!(parts, [5.0, 8.0, 92.0]);
    assert_eq!(timing.waited_for_values, 100.0);
    // Work in between is covered: 1-61, then 40 cycles of waiting.
    let timing = same(1, 1, &[load, arithmetic_of(60.0, 60.0), needing(4.0, 0)]);
    assert_eq!((timing.cycles, timing.waited_for_values), (105.0, 40.0));
}

#[test]
fn warps_contend_for_the_port() {
    // Two loads at 0 and 0 of 8 cycles each: ports 47-55 and 55-63, values at 101 and 109.
    let load = memory(Port::Global, 8.0, 100.0, Some(0));
    let timing = same(2, 1, &[load, needing(4.0, 0)]);
    assert_eq!((timing.cycles, timing.global_held), (113.0, 16.0));
}

#[test]
fn a_store_stops_no_warp_but_holds_the_port() {
    // Issue 0-1, the port from 47 to 55; 30 cycles of work beside it.
    let store = memory(Port::Global, 8.0, 100.0, None);
    let timing = same(1, 1, &[store, arithmetic_of(30.0, 30.0)]);
    assert_eq!(timing.cycles, 55.0);
    assert_eq!(part(&timing, Part::Bandwidth), 55.0 - 31.0);
}

#[test]
fn a_barrier_waits_for_the_last_warp_of_its_group() {
    // The first comes at 4, the second at 24; both go on at 34.
    let warps = vec![
        vec![
            arithmetic_of(4.0, 4.0),
            barrier(10.0),
            arithmetic_of(4.0, 4.0),
        ],
        vec![
            arithmetic_of(20.0, 20.0),
            barrier(10.0),
            arithmetic_of(4.0, 4.0),
        ],
    ];
    let together = run(&Case {
        warps: warps.clone(),
        per_group: 2,
    });
    accounted(&together);
    assert_eq!((together.cycles, together.waited_at_barriers), (42.0, 40.0));
    assert_eq!(part(&together, Part::Synchronisation), 10.0);
    // In groups of their own neither waits for the other.
    let apart = run(&Case {
        warps,
        per_group: 1,
    });
    assert_eq!((apart.cycles, apart.waited_at_barriers), (38.0, 20.0));
}

#[test]
fn a_barrier_that_some_warps_never_reach_opens_for_the_others() {
    let timing = run(&Case {
        warps: vec![
            vec![arithmetic_of(4.0, 4.0), barrier(1.0), barrier(1.0)],
            vec![arithmetic_of(4.0, 50.0)],
        ],
        per_group: 2,
    });
    accounted(&timing);
    assert!(timing.complete);
    // The other is done at 54; then two barriers of one cycle each.
    assert_eq!((timing.cycles, timing.waited_at_barriers), (56.0, 52.0));
}

/// The sample of Figure 2: two work groups of four warps.
fn figure_2(shared_latency: f64) -> Timing {
    let mut trace = vec![
        arithmetic_of(20.0, 20.0),
        memory(Port::Constant, 1.0, 8.0, Some(0)),
        needing(20.0, 0),
        memory(Port::Shared, 4.0, shared_latency, Some(1)),
        barrier(0.0),
        needing(20.0, 1),
        memory(Port::Global, 10.0, 60.0, None),
    ];
    for (operation, _) in &mut trace {
        if let Operation::Memory { issue, .. } = operation {
            *issue = 0.0;
        }
    }
    same(8, 4, &trace)
}

#[test]
fn figure_2_is_bound_by_computation() {
    // Three times 20 cycles of eight warps without a gap; then the last store: 25 cycles there, 10 in the port.
    let timing = figure_2(20.0);
    assert_eq!(timing.cycles, 8.0 * 3.0 * 20.0 + 35.0);
    assert_eq!(part(&timing, Part::Synchronisation), 0.0);
}

#[test]
fn with_more_memory_before_the_barrier_figure_2_has_a_gap() {
    let timing = figure_2(600.0);
    assert!(timing.cycles > 600.0);
    assert_eq!(timing.units_held, 480.0);
    assert!(part(&timing, Part::Shared) > 100.0);
}

// ---- The model ----

/// `c[i] = a[i] + b[i]`, coalesced.
fn vector_add() -> Kernel {
    let mut kernel = Kernel::new([256, 1, 1], [256, 1, 1]);
    let a = kernel.global(Op::Load, 4.0, 4.0, 32, 2);
    let b = kernel.global(Op::Load, 4.0, 4.0, 32, 3);
    let c = kernel.global(Op::Store, 4.0, 4.0, 32, 4);
    kernel.flow(vec![
        int(4.0, 1),
        touch(a, &[]),
        touch(b, &[]),
        fp32(1.0, &[a, b], 4),
        touch(c, &[]),
    ])
}

/// Tiles through shared memory with a barrier, as a matrix multiplication has them.
fn tiled(trips: f64, passes: f64, sectors: f64) -> Kernel {
    let mut kernel = Kernel::new([512, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, sectors, 4.0, 32, 3);
    let put = kernel.shared(Op::Store, passes, 1.0, 4);
    let get = kernel.shared(Op::Load, passes, 1.0, 6);
    let store = kernel.global(Op::Store, 4.0, 4.0, 32, 9);
    let body = vec![
        int(3.0, 2),
        touch(load, &[]),
        touch(put, &[load]),
        Node::Barrier { line: 5 },
        repeat(16.0, vec![touch(get, &[]), fp32(2.0, &[get], 7)], 6),
        Node::Barrier { line: 8 },
    ];
    kernel.flow(vec![int(5.0, 1), repeat(trips, body, 2), touch(store, &[])])
}

fn of(kernel: &Kernel, gpu: &str) -> Estimate {
    Target::new(gpu).estimate(ModelId::Trace, &kernel.code)
}

/// Parts and lines sum to the cycles, and everything is finite.
fn sound(estimate: &Estimate) -> f64 {
    let cycles = estimate
        .cycles
        .unwrap_or_else(|| panic!("{:?}", estimate.why));
    assert!(cycles.is_finite() && cycles >= 0.0);
    let b = &estimate.breakdown;
    let parts = [
        b.compute,
        b.memory_bandwidth,
        b.memory_latency,
        b.shared,
        b.divergence,
        b.synchronisation,
    ];
    assert!(parts.iter().all(|part| *part >= 0.0));
    let near = |sum: f64| (sum - cycles).abs() <= 1e-9 * cycles.max(1.0);
    assert!(near(parts.iter().sum()), "{parts:?} {cycles}");
    assert!(near(estimate.lines.iter().map(|(_, part)| part).sum()));
    assert!(estimate.detail.values().all(|value| value.is_finite()));
    cycles
}

#[test]
fn it_answers_on_every_gpu_and_says_the_same_each_time() {
    for profile in Profiles::builtin().iter() {
        for kernel in [vector_add(), tiled(32.0, 2.0, 8.0)] {
            let estimate = of(&kernel, &profile.id);
            assert!(sound(&estimate) > 0.0, "{}", profile.id);
            assert_eq!(estimate, of(&kernel, &profile.id));
        }
    }
}

#[test]
fn equation_8() {
    // K600: one SM, 8 groups of 8 warps at a time.
    let mut kernel = vector_add();
    let one = of(&kernel, "quadro-k600");
    let detail = |name: &str| one.detail[name];
    assert_eq!((detail("n_awg"), detail("active_work_groups")), (8.0, 8.0));
    assert_eq!(detail("rounds"), 256.0 / 8.0);
    let expected = detail("t_pipeline") * detail("rounds");
    assert!((sound(&one) - expected).abs() < 1e-6 * expected);
    // Twice the groups take twice as long; groups that share SMs are rounded up to whole ones on each.
    kernel.code.launch.grid = [512, 1, 1];
    assert!((sound(&of(&kernel, "quadro-k600")) / expected - 2.0).abs() < 1e-9);
    kernel.code.launch.grid = [100, 1, 1];
    let three = of(&kernel, "quadro-k620");
    assert_eq!(three.detail["rounds"], 34.0 / 8.0);
}

#[test]
fn a_copy_is_bound_by_bandwidth() {
    // 256 x 256 threads, 12 bytes each; DRAM moves 29 GB/s x 0.78 at 876 MHz: 25.8 bytes per cycle.
    let estimate = of(&vector_add(), "quadro-k600");
    let least = 65_536.0 * 12.0 / (29e9 * 0.78 / 876e6);
    // Equation 8 begins each round anew: once its latency.
    let cycles = sound(&estimate);
    let most = least + 400.0 * estimate.detail["rounds"];
    assert!(cycles >= least && cycles < most, "{cycles} {least}");
    assert_eq!(
        estimate.bottleneck,
        Some(warplens_models::Bottleneck::MemoryBandwidth)
    );
}

#[test]
fn without_a_factor_nothing_takes_longer() {
    let mut kernels = vec![vector_add(), tiled(32.0, 8.0, 32.0)];
    let split = vec![branch(
        1.0,
        1.0,
        vec![int(200.0, 2)],
        vec![int(150.0, 3)],
        1,
    )];
    kernels.push(Kernel::new([512, 1, 1], [256, 1, 1]).flow(split));
    for gpu in ["quadro-k620", "gtx-280", "a100-sxm4-40gb"] {
        let target = Target::new(gpu);
        for kernel in &kernels {
            let now = sound(&target.estimate(ModelId::Trace, &kernel.code));
            for factor in Factor::ALL {
                let without = target.estimate_without(ModelId::Trace, &kernel.code, &[factor]);
                let then = sound(&without);
                assert!(then <= now * 1.001, "{gpu} {factor:?}: {then} {now}");
            }
        }
    }
}

#[test]
fn factors_take_away_what_they_name() {
    let target = Target::new("quadro-k620");
    let gain = |kernel: &Kernel, factor: Factor| {
        let now = target.cycles(ModelId::Trace, &kernel.code);
        let then = target.estimate_without(ModelId::Trace, &kernel.code, &[factor]);
        now / then.cycles.expect("the model answers")
    };
    assert!(gain(&tiled(32.0, 16.0, 4.0), Factor::BankConflicts) > 4.0);
    assert!(gain(&tiled(32.0, 1.0, 32.0), Factor::Uncoalesced) > 2.0);
    assert!(gain(&tiled(32.0, 1.0, 4.0), Factor::BankConflicts) < 1.0001);
    let split = vec![branch(
        1.0,
        1.0,
        vec![int(200.0, 2)],
        vec![int(200.0, 3)],
        1,
    )];
    let split = Kernel::new([512, 1, 1], [256, 1, 1]).flow(split);
    let of_both = target.estimate(ModelId::Trace, &split.code);
    // Half the arithmetic, and the latency of the last operation.
    let divergent = of_both.breakdown.divergence / sound(&of_both);
    assert!(divergent > 0.5 && divergent < 0.6, "{divergent}");
    // That latency stays.
    let gained = gain(&split, Factor::Divergence);
    assert!(gained > 1.6 && gained < 2.0, "{gained}");
    let mut few = tiled(32.0, 1.0, 4.0);
    few.code.launch.grid = [3, 1, 1];
    assert!(gain(&few, Factor::Latency) > 1.3);
    assert!(gain(&few, Factor::Synchronisation) > 1.02);
}

/// A loop or a condition of the facts.
fn condition(kind: BranchKind, uniformity: Uniformity, line: u32) -> Branch {
    Branch {
        site: Site {
            line,
            ..Site::default()
        },
        text: "c".to_owned(),
        kind,
        uniformity,
        divergent_warp_fraction: Some(0.0),
        taken_warp_fraction: None,
        taken_threads: None,
        evaluations: None,
        trips: None,
        turns: Vec::new(),
        certainty: Certainty::Exact,
        why: None,
        constraints: Vec::new(),
        taken_operations: 0,
        other_operations: 0,
        guard: false,
        barrier_hazard: None,
    }
}

#[test]
fn warps_differ_by_the_sides_they_take() {
    // A quarter of the warps, those that come first in each group, have more to do.
    let mut kernel = Kernel::new([512, 1, 1], [256, 1, 1]).flow(vec![
        int(10.0, 1),
        branch(0.25, 0.75, vec![int(400.0, 3)], Vec::new(), 2),
    ]);
    let mut by_warp = condition(BranchKind::If, Uniformity::WarpUniform, 2);
    by_warp.taken_warp_fraction = Some(0.25);
    kernel.code.branches.push(by_warp);
    let estimate = of(&kernel, "quadro-k620");
    sound(&estimate);
    assert_eq!(estimate.detail["distinct_warps"], 2.0);
    assert!((estimate.detail["trace_length"] - 1.25).abs() < 1e-9);
}

#[test]
fn warps_differ_by_their_iterations() {
    let with = |turns: Vec<(u64, f64)>| {
        let trips = turns.iter().map(|(n, w)| *n as f64 * w).sum::<f64>()
            / turns.iter().map(|(_, w)| w).sum::<f64>();
        let mut kernel = Kernel::new([64, 1, 1], [256, 1, 1]).flow(vec![repeat(
            trips,
            vec![fp32(4.0, &[], 3)],
            2,
        )]);
        let mut of_loop = condition(BranchKind::Loop, Uniformity::WarpUniform, 2);
        of_loop.trips = Some(trips);
        of_loop.turns = turns;
        kernel.code.branches.push(of_loop);
        of(&kernel, "quadro-k620")
    };
    let even = with(vec![(50, 512.0)]);
    let uneven = with(vec![(1, 384.0), (60, 64.0), (336, 64.0)]);
    assert_eq!(even.detail["distinct_warps"], 1.0);
    assert_eq!(uneven.detail["distinct_warps"], 3.0);
    // As much work, but a warp that has far more of it is alone in the end.
    assert!(sound(&uneven) > 1.3 * sound(&even));
}

#[test]
fn a_condition_by_the_iteration_is_the_same_for_all_warps() {
    let kernel = |uniformity| {
        let body = vec![branch(
            0.5,
            0.5,
            vec![int(9.0, 3)],
            vec![fp32(9.0, &[], 4)],
            2,
        )];
        let mut kernel = Kernel::new([64, 1, 1], [256, 1, 1]).flow(vec![repeat(64.0, body, 1)]);
        let mut inner = condition(BranchKind::If, uniformity, 2);
        inner.taken_warp_fraction = Some(0.5);
        kernel.code.branches.push(inner);
        let estimate = of(&kernel, "quadro-k620");
        sound(&estimate);
        estimate.detail["distinct_warps"]
    };
    assert_eq!(kernel(Uniformity::Uniform), 1.0);
    assert_eq!(kernel(Uniformity::WarpUniform), 2.0);
    assert!(kernel(Uniformity::DataDependent) > 16.0);
}

#[test]
fn reuse_hits_and_streams_do_not() {
    use warplens_facts::facts::LinearAddress;
    // Every warp reads 4 bytes per lane; by the address they are new, the same for all groups, or not known.
    let rate = |block: i64, loops: i64, known: bool| {
        let mut kernel = Kernel::new([256, 1, 1], [256, 1, 1]);
        let load = kernel.global(Op::Load, 4.0, 4.0, 32, 2);
        kernel.code.accesses[load].linear = known.then(|| LinearAddress {
            constant: 0,
            thread: [4, 0, 0],
            block: [block, 0, 0],
            loops: vec![loops],
        });
        let body = vec![touch(load, &[]), fp32(1.0, &[load], 3)];
        let estimate = of(&kernel.flow(vec![repeat(8.0, body, 1)]), "quadro-k620");
        sound(&estimate);
        estimate.detail["l2_hit_rate"]
    };
    let all = 256.0 * 1024.0;
    assert_eq!(rate(1024, all as i64, true), 0.0);
    assert_eq!(rate(0, 0, false), 0.0);
    // The same line in each of 8 iterations; new lines that all groups share.
    assert_eq!(rate(1024, 0, true), 7.0 / 8.0);
    assert!(rate(0, 1024, true) > 0.9);
    // What all groups together touch between two uses is more than L2 has: 8 MB of strides.
    assert!(rate(1 << 20, 1 << 10, true) < 0.01);
}

#[test]
fn a_cache_that_is_too_small_forgets() {
    use warplens_facts::facts::LinearAddress;
    // One warp an SM walks `lines` lines of 128 bytes, three times over.
    let rate = |lines: f64| {
        let mut kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
        let load = kernel.global(Op::Load, 4.0, 4.0, 32, 2);
        kernel.code.accesses[load].linear = Some(LinearAddress {
            constant: 0,
            thread: [4, 0, 0],
            block: [0; 3],
            loops: vec![0, 128],
        });
        let walk = repeat(lines, vec![touch(load, &[]), fp32(1.0, &[load], 3)], 2);
        let estimate = of(
            &kernel.flow(vec![repeat(3.0, vec![walk], 1)]),
            "quadro-k600",
        );
        sound(&estimate);
        estimate.detail["l2_hit_rate"]
    };
    // L2 has 256 KiB: 2048 such lines.
    assert!((rate(2000.0) - 2.0 / 3.0).abs() < 1e-6);
    assert_eq!(rate(2100.0), 0.0);
    // Far more than are simulated: the lines that were stand for the others.
    assert_eq!(rate(1e6), 0.0);
}

#[test]
fn loops_that_are_cut_take_as_long_as_whole_ones() {
    // Simulated whole, the time is a line in the iterations; what is cut lies on it.
    let target = Target::new("quadro-k620");
    for (passes, sectors) in [(1.0, 4.0), (8.0, 32.0), (1.0, 32.0)] {
        let at = |trips: f64| target.estimate(ModelId::Trace, &tiled(trips, passes, sectors).code);
        let [four, eight] = [4.0, 8.0].map(at);
        assert_eq!(eight.detail["loop_sampling"], 1.0);
        let slope = (sound(&eight) - sound(&four)) / 4.0;
        for trips in [64.0, 128.0, 20_000.0] {
            let cut = at(trips);
            assert!(cut.detail["loop_sampling"] < 1.0);
            let line = sound(&eight) + (trips - 8.0) * slope;
            let ratio = sound(&cut) / line;
            assert!(
                (ratio - 1.0).abs() < 0.02,
                "{trips} {passes} {sectors}: {ratio}"
            );
        }
    }
}

#[test]
fn forced_warps_run_fewer_at_a_time() {
    let kernel = tiled(8.0, 1.0, 4.0);
    let target = Target::new("quadro-k620");
    let occupancy = target.occupancy(&kernel.code);
    let cycles = |warps| {
        let made = input(&kernel.code, &target.profile, &occupancy);
        let input = Question {
            warps_per_sm: Some(warps),
            ..question(&made, &[])
        };
        let estimate = estimate(ModelId::Trace, &input);
        assert_eq!(estimate.detail["active_warps"], f64::from(warps));
        sound(&estimate)
    };
    assert!(cycles(1) > 1.5 * cycles(8) && cycles(8) > cycles(64));
}

#[test]
fn a_missing_figure_is_named() {
    let kernel = Kernel::new([64, 1, 1], [256, 1, 1]).flow(vec![compute(
        Mix::from([(Pipe::Fp64, 4.0)]),
        4.0,
        &[],
        1,
    )]);
    let estimate = of(&kernel, "geforce-8800-gtx");
    assert_eq!(estimate.cycles, None);
    let why = estimate.why.expect("it says why");
    assert!(why.contains("fp64_l") && why.contains("8800"), "{why}");
}

#[test]
fn it_stops_when_nobody_waits() {
    let kernel = tiled(1e6, 1.0, 4.0);
    let target = Target::new("quadro-k620");
    let occupancy = target.occupancy(&kernel.code);
    let cancel = AtomicBool::new(true);
    let made = input(&kernel.code, &target.profile, &occupancy);
    let input = Question {
        cancel: Some(&cancel),
        ..question(&made, &[])
    };
    let estimate = estimate(ModelId::Trace, &input);
    assert_eq!(estimate.cycles, None);
    assert_eq!(estimate.why.as_deref(), Some("cancelled"));
}

#[test]
fn no_input_is_too_strange() {
    let strange = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        1e-300,
        0.5,
        1e18,
        f64::MAX,
    ];
    for &a in &strange {
        for &b in &strange {
            let mut kernel = Kernel::new([64, 1, 1], [100, 1, 1]);
            let load = kernel.global(Op::Load, a, b, 32, 2);
            let shared = kernel.shared(Op::Load, a, b, 3);
            let body = vec![
                touch(load, &[7, load]),
                touch(shared, &[]),
                touch(99, &[]),
                fp32(a, &[load, shared], 3),
                compute(Mix::default(), b, &[], 3),
                Node::Barrier { line: 4 },
            ];
            let sides = vec![branch(a, b, body.clone(), body.clone(), 5)];
            let flow = vec![
                repeat(a, vec![repeat(b, sides, 2)], 1),
                branch(b, a, body, vec![], 6),
            ];
            let estimate = of(&kernel.flow(flow), "a100-sxm4-40gb");
            match estimate.cycles {
                Some(_) => {
                    sound(&estimate);
                }
                None => assert!(estimate.why.is_some()),
            }
        }
    }
    let empty = of(&Kernel::new([64, 1, 1], [100, 1, 1]), "quadro-k600");
    assert_eq!(sound(&empty), 0.0);
    let none = of(&Kernel::new([0, 1, 1], [100, 1, 1]), "quadro-k600");
    assert!(none.cycles.is_none() && none.why.is_some());
    let huge = of(&tiled(1e18, 2.0, 8.0), "quadro-k600");
    assert!(sound(&huge) > 1e18);
    let mut wide = vector_add();
    wide.code.launch.grid = [2_147_483_647, 65_535, 65_535];
    assert!(sound(&of(&wide, "a100-sxm4-40gb")) > 1e12);
}

#[test]
fn deep_nests_and_many_branches_stay_bounded() {
    let mut body = vec![int(1.0, 1)];
    for depth in 0..40 {
        body = vec![repeat(1000.0, body, depth)];
    }
    let nest = Kernel::new([64, 1, 1], [256, 1, 1]).flow(body);
    let estimate = of(&nest, "quadro-k620");
    assert!(estimate.cycles.is_some_and(f64::is_finite) || estimate.why.is_some());
    let many = (0..3000).map(|line| branch(0.5, 0.5, vec![int(1.0, line)], vec![], line));
    let many = Kernel::new([64, 1, 1], [256, 1, 1]).flow(many.collect());
    let estimate = of(&many, "quadro-k620");
    assert_eq!(estimate.cycles, None);
    assert!(estimate.why.is_some_and(|why| why.contains("blocks")));
}
