//! Figures of Lai and Seznec 2011, measured by micro-kernels as the paper does, and what the issue engine must keep to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use warplens_machine::{Mix, Pipe};

use crate::common::{Kernel, Target, branch, compute, fp32, input, int, question, repeat, touch};
use warplens_facts::facts::{Node, Op, Pattern, Stride};
use warplens_models::{Estimate, Factor, ModelId, Question};

const GPU: &str = "gtx-280";

/// One block of this many warps.
fn kernel(warps: u64) -> Kernel {
    Kernel::new([1, 1, 1], [32 * warps, 1, 1])
}

fn cycles(kernel: &Kernel) -> f64 {
    Target::new(GPU).cycles(ModelId::Timing, &kernel.code)
}

/// Cycles that `more` of something adds, for each.
fn each(make: impl Fn(usize) -> Kernel, more: usize) -> f64 {
    let few = 40;
    (cycles(&make(few + more)) - cycles(&make(few))) / more as f64
}

fn mix(class: &str, n: f64) -> Mix {
    let mut mix = Mix::default();
    match class {
        "int" => mix[Pipe::Int] = n,
        "double" => mix[Pipe::Fp64] = n,
        "mul" => mix[Pipe::Fp32Multiply] = n,
        _ => mix[Pipe::Fp32] = n,
    }
    mix
}

/// `n` instructions of a class, all waiting for one another or none, by this many warps.
fn arithmetic(class: &str, n: usize, dependent: bool, warps: u64) -> Kernel {
    let chain = if dependent { n as f64 } else { 1.0 };
    kernel(warps).flow(vec![compute(mix(class, n as f64), chain, &[], 1)])
}

#[test]
fn table_1() {
    let table = [
        ("int", [24.0, 4.0, 8.0]),
        ("add", [24.0, 4.0, 8.0]),
        ("mul", [24.0, 2.0, 8.0]),
        ("mad", [24.0, 4.0, 8.0]),
        ("double", [48.0, 32.0, 32.0]),
    ];
    for (class, [latency, other_warp, same_warp]) in table {
        let found = each(|n| arithmetic(class, n, true, 1), 20);
        assert_eq!(found, latency, "{class}: execution latency");
        let found = each(|n| arithmetic(class, n, false, 1), 20);
        assert_eq!(found, same_warp, "{class}: issue latency, one warp");
        let found = each(|n| arithmetic(class, n, false, 16), 20) / 16.0;
        assert_eq!(found, other_warp, "{class}: issue latency, many warps");
    }
}

/// `n` loads, each of whose addresses the one before loaded.
fn chase(n: usize, shared: bool) -> Kernel {
    let mut kernel = kernel(1);
    let mut flow = Vec::new();
    let mut last: Vec<usize> = Vec::new();
    for line in 0..n {
        let line = line as u32;
        let access = if shared {
            kernel.shared(Op::Load, 2.0, 2.0, line)
        } else {
            kernel.global(Op::Load, 2.0, 2.0, 64, line)
        };
        flow.push(touch(access, &last));
        last = vec![access];
    }
    kernel.flow(flow)
}

#[test]
fn latencies_of_memory() {
    assert_eq!(each(|n| chase(n, true), 20), 38.0);
    let global = each(|n| chase(n, false), 20);
    assert!((436.0..=443.0).contains(&global), "{global}");
}

/// A sum over shared memory: each addition has an operand there.
fn sum_of_shared(n: usize, passes: f64) -> Kernel {
    let mut kernel = kernel(1);
    let access = kernel.shared(Op::Load, passes, 2.0, 1);
    let body = vec![touch(access, &[]), fp32(1.0, &[access], 1)];
    kernel.flow(vec![repeat(n as f64, body, 1)])
}

#[test]
fn a_shared_operand_is_part_of_an_instruction() {
    assert_eq!(each(|n| sum_of_shared(n, 2.0), 20), 74.0);
    // All lanes of each half-warp in one bank.
    let conflict = each(|n| sum_of_shared(n, 32.0), 20);
    assert!((conflict - 266.0).abs() < 1e-6, "{conflict}");
}

#[test]
fn a_conflicts_latency_is_not_its_throughput() {
    let many = |n: usize| {
        let mut sum = sum_of_shared(n, 32.0);
        sum.code.launch.block = [32 * 8, 1, 1];
        sum
    };
    // 32 passes of 2 cycles for each of 8 warps, not 266.
    let found = each(many, 64) / 8.0;
    assert!((found - 64.0).abs() < 0.5, "{found}");
}

/// `n` loads that nothing waits for.
fn loads(n: usize, warps: u64) -> Kernel {
    let mut kernel = kernel(warps);
    let flow = (0..n)
        .map(|line| touch(kernel.global(Op::Load, 2.0, 2.0, 64, line as u32), &[]))
        .collect();
    kernel.flow(flow)
}

#[test]
fn issue_latency_of_global_loads() {
    assert_eq!(each(|n| loads(n, 1), 20), 60.0);
    // The first load of each of two warps: the second follows 4 cycles behind.
    let alone = cycles(&loads(1, 1));
    let found = cycles(&loads(1, 2)) - alone;
    // Their bytes follow one another on the way to memory, where the issue is quicker than that.
    let transfer = 128.0 / bytes_per_cycle();
    assert!((found - transfer.max(4.0)).abs() < 1e-6, "{found}");
}

fn detail(kernel: &Kernel, name: &str) -> f64 {
    Target::new(GPU)
        .estimate(ModelId::Timing, &kernel.code)
        .detail[name]
}

fn bytes_per_cycle() -> f64 {
    detail(&loads(1, 1), "bytes_per_cycle")
}

#[test]
fn quantities_of_the_memory_pipeline() {
    let some = loads(1, 1);
    assert_eq!(detail(&some, "c_mem_double"), 18.0);
    assert_eq!(detail(&some, "issue_every_cycles"), 2.0);
    assert_eq!(detail(&some, "sms_per_tpc"), 3.0);
    assert_eq!(detail(&some, "tpcs"), 10.0);
    assert_eq!(detail(&some, "channels"), 8.0);
    assert_eq!(detail(&some, "channel_width_bytes"), 256.0);
}

/// Blocks of 16 warps that stream doubles, two at a time.
fn stream(blocks: u64) -> Kernel {
    let mut kernel = Kernel::new([blocks, 1, 1], [512, 1, 1]);
    let first = doubles(&mut kernel, 1);
    let second = doubles(&mut kernel, 2);
    let body = vec![
        touch(first, &[]),
        touch(second, &[]),
        fp32(1.0, &[first, second], 3),
    ];
    kernel.flow(vec![repeat(128.0, body, 1)])
}

/// A load of neighbouring doubles.
fn doubles(kernel: &mut Kernel, line: u32) -> usize {
    let access = kernel.global(Op::Load, 2.0, 2.0, 128, line);
    kernel.code.accesses[access].bytes_per_lane = 8;
    access
}

#[test]
fn three_sms_share_a_way_to_memory() {
    let bytes = 256.0 * 16.0 * 256.0;
    for (blocks, sharers) in [(10, 1.0), (20, 2.0), (30, 3.0)] {
        let found = cycles(&stream(blocks));
        let least = bytes * sharers / bytes_per_cycle();
        assert!(
            found >= least && found < least * 1.1,
            "{blocks}: {found} {least}"
        );
    }
}

#[test]
fn channels_that_all_lanes_share_are_an_eighth_of_the_bandwidth() {
    let walk = |bytes: i64| {
        let mut kernel = Kernel::new([30, 1, 1], [512, 1, 1]);
        let access = kernel.global(Op::Load, 32.0, 2.0, 32, 1);
        let code = &mut kernel.code.accesses[access];
        code.pattern = Pattern::Strided;
        code.stride = Some(Stride {
            bytes,
            text: String::new(),
            symbolic: false,
            in_bytes: false,
            unit_elsewhere: false,
        });
        let body = vec![touch(access, &[]), fp32(1.0, &[access], 1)];
        cycles(&kernel.flow(vec![repeat(64.0, body, 1)]))
    };
    let ratio = walk(2048) / walk(2048 + 256);
    assert!((ratio - 8.0).abs() < 0.5, "{ratio}");
}

fn sums(estimate: &Estimate) {
    let cycles = estimate.cycles.expect("answers");
    let parts = &estimate.breakdown;
    let sum = parts.compute
        + parts.memory_bandwidth
        + parts.memory_latency
        + parts.shared
        + parts.divergence
        + parts.synchronisation;
    assert!((sum - cycles).abs() <= 1e-6 * cycles, "{parts:?} {cycles}");
    let lines: f64 = estimate.lines.iter().map(|(_, cycles)| cycles).sum();
    assert!((lines - cycles).abs() <= 1e-6 * cycles, "{lines} {cycles}");
}

/// Something of everything: scattered loads, conflicts, a split branch, barriers.
fn all_at_once() -> Kernel {
    let mut kernel = Kernel::new([60, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, 32.0, 2.0, 32, 1);
    let store = kernel.shared(Op::Store, 2.0, 2.0, 2);
    let read = kernel.shared(Op::Load, 32.0, 2.0, 4);
    let write = kernel.global(Op::Store, 2.0, 2.0, 64, 7);
    kernel.flow(vec![
        int(3.4, 1),
        repeat(
            100.0,
            vec![
                int(1.3, 1),
                touch(load, &[]),
                touch(store, &[load]),
                Node::Barrier { line: 3 },
                touch(read, &[]),
                fp32(2.0, &[read], 4),
                branch(
                    0.6,
                    0.8,
                    vec![fp32(30.0, &[], 5)],
                    vec![fp32(37.5, &[], 6)],
                    5,
                ),
                Node::Barrier { line: 6 },
            ],
            1,
        ),
        touch(write, &[]),
    ])
}

#[test]
fn parts_and_lines_add_up_and_factors_only_take_away() {
    let target = Target::new(GPU);
    let kernel = all_at_once();
    let whole = target.estimate(ModelId::Timing, &kernel.code);
    sums(&whole);
    let parts = &whole.breakdown;
    assert!(parts.divergence > 0.0 && parts.shared > 0.0, "{parts:?}");
    for factor in Factor::ALL {
        let less = target.estimate_without(ModelId::Timing, &kernel.code, &[factor]);
        sums(&less);
        let (now, then) = (less.cycles.unwrap(), whole.cycles.unwrap());
        if factor == Factor::Occupancy {
            assert!(now <= then * 1.02, "{factor:?}: {now} {then}");
        } else {
            assert!(now < then, "{factor:?}: {now} {then}");
        }
    }
}

#[test]
fn fractions_become_whole_instructions() {
    // A warp ends with up to one instruction too few or too many; iterations that are skipped have those of a window of sixteen, whole ones.
    for (trips, tolerance) in [(23.0, 0.015), (400.0, 0.03)] {
        let body = vec![
            compute(mix("add", 0.3), 0.3, &[], 1),
            branch(0.25, 0.75, vec![int(1.0, 2)], vec![fp32(0.6, &[], 3)], 2),
        ];
        let kernel = kernel(4).flow(vec![repeat(trips, body, 1)]);
        let issued = detail(&kernel, "wave_instructions");
        let expected = 4.0 * trips * (0.3 + 0.25 + 0.75 * 0.6);
        let apart = (issued - expected).abs();
        assert!(apart <= tolerance * expected, "{issued} {expected}");
    }
}

#[test]
fn a_steady_loop_is_as_long_as_all_its_iterations() {
    // The unrolled loop has no iterations to skip.
    let body = |kernel: &mut Kernel| {
        let load = kernel.global(Op::Load, 4.0, 2.0, 64, 1);
        let read = kernel.shared(Op::Load, 8.0, 2.0, 2);
        vec![
            int(2.3, 1),
            touch(load, &[]),
            touch(read, &[]),
            fp32(5.7, &[read], 2),
            fp32(1.0, &[load], 3),
            Node::Barrier { line: 4 },
        ]
    };
    for warps in [1, 8, 16] {
        let make = || {
            let mut kernel = Kernel::new([30, 1, 1], [32 * warps, 1, 1]);
            let body = body(&mut kernel);
            (kernel, body)
        };
        let (kernel, iteration) = make();
        let looped = kernel.flow(vec![repeat(300.0, iteration, 1)]);
        let (kernel, iteration) = make();
        let written = iteration
            .iter()
            .cloned()
            .cycle()
            .take(iteration.len() * 300);
        let written = kernel.flow(written.collect());
        let (short, long) = (cycles(&looped), cycles(&written));
        assert!(
            (short - long).abs() <= 0.01 * long,
            "{warps}: {short} {long}"
        );
        let simulated = detail(&looped, "simulated_instructions");
        assert!(simulated < 0.4 * detail(&written, "simulated_instructions"));
    }
}

/// A tile fetched, a barrier, a loop over the tile, a barrier; nodes of one iteration of the outer loop with the inner
/// loop as it is or unrolled.
fn tile(kernel: &mut Kernel, inner: usize, written: bool) -> Vec<Node> {
    let load = kernel.global(Op::Load, 4.0, 4.0, 32, 1);
    let store = kernel.shared(Op::Store, 1.0, 1.0, 2);
    let read = kernel.shared(Op::Load, 2.0, 1.0, 4);
    let body = vec![touch(read, &[]), int(0.3, 4), fp32(2.0, &[read], 4)];
    let mut nodes = vec![
        int(2.0, 1),
        touch(load, &[]),
        touch(store, &[load]),
        Node::Barrier { line: 3 },
    ];
    if written {
        let length = body.len() * inner;
        nodes.extend(body.into_iter().cycle().take(length));
    } else {
        nodes.push(repeat(inner as f64, body, 4));
    }
    nodes.push(Node::Barrier { line: 5 });
    nodes
}

#[test]
fn nested_loops_are_as_long_as_all_their_iterations() {
    for (gpu, warps, inner, outer) in [
        ("gtx-280", 1, 40, 48),
        ("gtx-280", 8, 40, 48),
        ("gtx-280", 8, 24, 60),
        ("a100-sxm4-40gb", 8, 40, 48),
        ("a100-sxm4-40gb", 16, 24, 40),
        ("a100-sxm4-40gb", 32, 20, 25),
    ] {
        let target = Target::new(gpu);
        let blocks = u64::from(target.profile.sms);
        let make = |written| {
            let mut kernel = Kernel::new([blocks, 1, 1], [32 * warps, 1, 1]);
            let nodes = tile(&mut kernel, inner, written);
            if written {
                let length = nodes.len() * outer;
                let all = nodes.into_iter().cycle().take(length).collect();
                kernel.flow(vec![repeat(1.0, all, 1)])
            } else {
                kernel.flow(vec![repeat(outer as f64, nodes, 1)])
            }
        };
        let estimate = |written| target.estimate(ModelId::Timing, &make(written).code);
        let (looped, written) = (estimate(false), estimate(true));
        assert_eq!(written.detail["simulated_to_the_end"], 1.0, "{gpu} {warps}");
        let (short, long) = (looped.cycles.unwrap(), written.cycles.unwrap());
        assert!(
            (short - long).abs() <= 0.01 * long,
            "{gpu} {warps}: {short} {long}"
        );
        let simulated = |of: &Estimate| of.detail["simulated_instructions"];
        assert!(
            simulated(&looped) < 0.4 * simulated(&written),
            "{gpu} {warps}: {} {}",
            simulated(&looped),
            simulated(&written)
        );
    }
}

/// Long runs are simulated for one scheduler, with its share of the units; short ones for the whole SM.
#[test]
fn one_scheduler_of_several_stands_for_all() {
    let target = Target::new("a100-sxm4-40gb");
    let blocks = u64::from(target.profile.sms) * 8;
    let estimate = |trips: f64, arithmetic: f64, barrier: bool| {
        let mut kernel = Kernel::new([blocks, 1, 1], [256, 1, 1]);
        let load = kernel.global(Op::Load, 4.0, 4.0, 32, 1);
        let read = kernel.shared(Op::Load, 2.0, 1.0, 2);
        let mut body = vec![
            int(2.0, 1),
            touch(load, &[]),
            touch(read, &[]),
            fp32(arithmetic, &[read, load], 2),
        ];
        if barrier {
            body.push(Node::Barrier { line: 3 });
        }
        let kernel = kernel.flow(vec![repeat(trips, body, 1)]);
        target.estimate(ModelId::Timing, &kernel.code)
    };
    for arithmetic in [1.0, 8.0, 64.0] {
        for barrier in [false, true] {
            let each = 64.0 * (4.0 + arithmetic + f64::from(u8::from(barrier)));
            let few = (49_000.0 / each).floor();
            let many = (51_000.0 / each).ceil();
            let (whole, one) = (
                estimate(few, arithmetic, barrier),
                estimate(many, arithmetic, barrier),
            );
            // A quarter of the warps issue a quarter of the instructions.
            assert!(4.0 * one.detail["simulated_instructions"] <= one.detail["wave_instructions"]);
            assert_eq!(one.detail["wave_instructions"], each * many);
            let ratio = one.cycles.unwrap() / many / (whole.cycles.unwrap() / few);
            assert!(
                (ratio - 1.0).abs() < 0.04,
                "{arithmetic} {barrier}: {ratio}"
            );
        }
    }
}

#[test]
fn the_scoreboards_policy_moves_the_result_a_little() {
    // Addresses, a load and a sum by 16 warps in two blocks.
    let mut kernel = Kernel::new([60, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, 8.0, 2.0, 32, 1);
    let body = vec![int(3.0, 1), touch(load, &[]), fp32(5.0, &[load], 2)];
    let kernel = kernel.flow(vec![repeat(20.0, body, 1)]);
    let estimate = Target::new(GPU).estimate(ModelId::Timing, &kernel.code);
    let [low, high] = estimate.interval.expect("a short run");
    let cycles = estimate.cycles.expect("answers");
    assert!(low <= cycles && cycles <= high, "{low} {cycles} {high}");
    assert!(low < high && high < 1.3 * low, "{low} {high}");
}

#[test]
fn more_warps_hide_latency_until_something_is_full() {
    let target = Target::new(GPU);
    let mut kernel = Kernel::new([30, 1, 1], [512, 1, 1]);
    let load = doubles(&mut kernel, 1);
    let flow = vec![repeat(
        64.0,
        vec![touch(load, &[]), fp32(8.0, &[load], 1)],
        1,
    )];
    let kernel = kernel.flow(flow);
    let occupancy = target.occupancy(&kernel.code);
    let wave = |warps: u32| {
        let estimate = warplens_models::estimate(
            ModelId::Timing,
            &Question {
                warps_per_sm: Some(warps),
                ..question(&input(&kernel.code, &target.profile, &occupancy), &[])
            },
        );
        sums(&estimate);
        assert_eq!(estimate.detail["active_warps"], f64::from(warps));
        estimate.detail["wave_cycles"]
    };
    let curve: Vec<f64> = [1, 2, 4, 8, 16].map(wave).into();
    assert!(
        curve.windows(2).all(|pair| pair[0] <= pair[1] + 1e-6),
        "{curve:?}"
    );
    assert!(curve[1] < 1.1 * curve[0], "{curve:?}");
    assert!(curve[4] > 1.5 * curve[2], "{curve:?}");
}

#[test]
fn who_no_longer_asks_gets_no_answer_and_nobody_waits_long() {
    let target = Target::new(GPU);
    let kernel = all_at_once();
    let occupancy = target.occupancy(&kernel.code);
    let cancel = AtomicBool::new(true);
    let made = input(&kernel.code, &target.profile, &occupancy);
    let input = Question {
        cancel: Some(&cancel),
        ..question(&made, &[])
    };
    let begun = Instant::now();
    let estimate = warplens_models::estimate(ModelId::Timing, &input);
    assert_eq!(estimate.cycles, None);
    assert!(estimate.why.is_some());
    assert!(begun.elapsed().as_millis() < 100, "{:?}", begun.elapsed());
}

#[test]
fn a_run_under_way_stops_soon_after_nobody_waits() {
    let target = Target::new("a100-sxm4-40gb");
    // Straight code has nothing to skip: 64 warps run to where a run is cut off.
    let kernel = Kernel::new([432, 1, 1], [512, 1, 1]);
    let kernel = kernel.flow((0..4000).map(|line| fp32(8.0, &[], line)).collect());
    let occupancy = target.occupancy(&kernel.code);
    let cancel = AtomicBool::new(false);
    let made = input(&kernel.code, &target.profile, &occupancy);
    let input = Question {
        cancel: Some(&cancel),
        ..question(&made, &[])
    };
    let mut longest = Duration::ZERO;
    let since = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(3));
            cancel.store(true, Ordering::Relaxed);
            Instant::now()
        });
        loop {
            let begun = Instant::now();
            if warplens_models::estimate(ModelId::Timing, &input)
                .cycles
                .is_none()
            {
                break;
            }
            longest = longest.max(begun.elapsed());
        }
        other.join().expect("no panic").elapsed()
    });
    eprintln!("stopped after {since:?}; a whole answer took {longest:?}");
    assert!(since.as_millis() < 100, "{since:?}");
}

#[test]
fn any_input_has_a_finite_answer() {
    let odd = [0.0, 1e18, f64::NAN, f64::INFINITY, -3.0, 1e-12, 0.5];
    for gpu in [GPU, "a100-sxm4-40gb", "mi210"] {
        let target = Target::new(gpu);
        for (trips, count) in odd.iter().flat_map(|a| odd.iter().map(move |b| (*a, *b))) {
            let mut kernel = Kernel::new([1000, 1, 1], [256, 1, 1]);
            let load = kernel.global(Op::Load, count, count, 32, 1);
            let read = kernel.shared(Op::Load, count, count, 2);
            let flow = vec![repeat(
                trips,
                vec![
                    touch(load, &[load]),
                    repeat(trips, vec![int(count, 1)], 2),
                    touch(read, &[]),
                    compute(mix("double", count), trips, &[load, read, 99], 2),
                    touch(77, &[]),
                    branch(
                        count,
                        trips,
                        vec![Node::Barrier { line: 3 }],
                        vec![repeat(trips, Vec::new(), 4)],
                        3,
                    ),
                ],
                1,
            )];
            let kernel = kernel.flow(flow);
            let estimate = target.estimate(ModelId::Timing, &kernel.code);
            match estimate.cycles {
                Some(cycles) => {
                    assert!(cycles.is_finite() && cycles >= 0.0);
                    if cycles > 0.0 && cycles < 1e15 {
                        sums(&estimate);
                    }
                }
                None => assert!(estimate.why.is_some()),
            }
        }
        let empty = Kernel::new([1, 1, 1], [32, 1, 1]);
        assert_eq!(target.cycles(ModelId::Timing, &empty.code), 0.0);
    }
}
