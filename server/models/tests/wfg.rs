//! Figure 1 of Baghsorkhi et al. 2010 and the reductions of Figures 2 to 4.

mod common;

use common::{Kernel, Target, branch, compute, fp32, int, repeat, touch};
use warplens_analysis::facts::{Mix, Node, Op};
use warplens_models::ModelId;
use warplens_models::wfg::graph::{Branching, Graph};
use warplens_models::wfg::{Model, Parameters};

/// `x = A[threadID] + y`: two address calculations, a load, an add.
fn figure_1() -> (Kernel, Parameters) {
    let mut kernel = Kernel::new([64, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, 1.0, 1.0, 128, 1);
    let kernel = kernel.flow(vec![int(2.0, 1), touch(load, &[]), fp32(1.0, &[load], 1)]);
    let parameters = Parameters {
        pipeline_latency: 24.0,
        warp_size: 32.0,
        simd_engine: 8.0,
        special: None,
        double: None,
        active_warps: 16.0,
        active_blocks: 2.0,
        bandwidth_bytes_per_cycle_per_sm: 4.0,
        memory_latency: 250.0,
        cycles_per_pass: 2.0,
        bytes: vec![32.0 * 4.0],
        passes: vec![0.0],
        barriers: true,
        stretches: Vec::new(),
        branching: Branching::Weighted,
    };
    (kernel, parameters)
}

fn model(flow: &[Node], kernel: &Kernel, parameters: &Parameters) -> Model {
    Model::new(&Graph::new(flow, &kernel.facts.accesses), parameters)
}

#[test]
fn every_figure_of_figure_1() {
    let (kernel, parameters) = figure_1();
    let model = model(&kernel.facts.flow, &kernel, &parameters);
    assert_eq!(model.latency_comp, 1.0);
    assert_eq!(model.cyc_compute, 16.0);
    assert_eq!(model.nbc_avg, 8.0);
    assert_eq!(model.latency_bw, 20.0);
    assert_eq!(model.latency_exposed, 130.0);
    assert_eq!(model.weight_after_collapse, 130.0);
    assert_eq!(model.entry_to_exit, 142.0);
    assert_eq!(model.num_mem, 1.0);
    assert_eq!(model.num_bytes, 128.0);
    // Two calculations, the load, the add.
    assert_eq!(model.reduction.transitions, [8.0, 130.0, 4.0]);
}

#[test]
fn a_round_is_never_shorter_than_its_transfers() {
    let (kernel, parameters) = figure_1();
    let model = model(&kernel.facts.flow, &kernel, &parameters);
    // 16 warps of 128 bytes at 4 bytes a cycle; one warp's 142 cycles hide behind it.
    assert_eq!(model.round_cycles(), 512.0);
}

#[test]
fn few_warps_expose_the_pipeline() {
    let (kernel, parameters) = figure_1();
    let alone = Parameters {
        active_warps: 1.0,
        active_blocks: 1.0,
        ..parameters
    };
    let model = model(&kernel.facts.flow, &kernel, &alone);
    // Equation 3: 24 / (4 * 1 * 1) cycles, four times a warp instruction.
    assert_eq!(model.latency_comp, 6.0);
    assert_eq!(model.cyc_compute, 3.0 * 24.0 + 4.0);
    assert_eq!(model.latency_exposed, 250.0);
    assert_eq!(model.round_cycles(), model.entry_to_exit);
}

#[test]
fn independent_instructions_cover_the_pipeline() {
    let (kernel, parameters) = figure_1();
    let alone = Parameters {
        active_warps: 1.0,
        active_blocks: 1.0,
        ..parameters
    };
    let mix = Mix {
        fp32: 8.0,
        ..Mix::default()
    };
    let chained = model(&[compute(mix, 8.0, &[], 1)], &kernel, &alone);
    let free = model(&[compute(mix, 2.0, &[], 1)], &kernel, &alone);
    assert_eq!(chained.entry_to_exit, 8.0 * 24.0);
    assert_eq!(free.entry_to_exit, chained.entry_to_exit / 4.0);
}

#[test]
fn a_loop_is_its_body_times_its_trips() {
    let (kernel, parameters) = figure_1();
    let body = kernel.facts.flow.clone();
    let once = model(&body, &kernel, &parameters);
    let looped = model(&[repeat(10.0, body, 1)], &kernel, &parameters);
    assert_eq!(looped.cyc_compute, 10.0 * once.cyc_compute);
    assert_eq!(looped.num_mem, 10.0);
    let graph = Graph::new(
        &[repeat(10.0, kernel.facts.flow.clone(), 1)],
        &kernel.facts.accesses,
    );
    let reduction = graph.reduce(&[8.0, 20.0, 4.0], &[0.0, 130.0, 0.0], Branching::Average);
    assert_eq!(reduction.entry_to_exit, 10.0 * 142.0);
}

#[test]
fn only_the_first_iteration_waits_for_a_load_before_the_loop() {
    let mut kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
    let load = kernel.global(Op::Load, 1.0, 1.0, 128, 1);
    let flow = vec![
        touch(load, &[]),
        repeat(5.0, vec![fp32(1.0, &[load], 2)], 2),
    ];
    let graph = Graph::new(&flow, &kernel.facts.accesses);
    let reduction = graph.reduce(&[4.0, 10.0], &[100.0, 0.0], Branching::Average);
    assert_eq!(reduction.entry_to_exit, 4.0 + 96.0 + 50.0);
    assert_eq!(reduction.exposed[0], 96.0);
}

#[test]
fn a_branch_is_the_weighted_average_of_its_sides() {
    let kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
    let sides = |taken, other| {
        let flow = [branch(
            taken,
            other,
            vec![int(1.0, 2)],
            vec![int(1.0, 3)],
            1,
        )];
        Graph::new(&flow, &kernel.facts.accesses)
    };
    let reduce = |graph: &Graph, branching| graph.reduce(&[30.0, 10.0], &[0.0; 2], branching);
    let uniform = sides(0.25, 0.75);
    assert_eq!(reduce(&uniform, Branching::Average).entry_to_exit, 15.0);
    assert_eq!(reduce(&uniform, Branching::Sum).entry_to_exit, 15.0);
    let split = sides(1.0, 1.0);
    assert_eq!(reduce(&split, Branching::Average).entry_to_exit, 20.0);
    assert_eq!(reduce(&split, Branching::Sum).entry_to_exit, 40.0);
    assert!(split.diverges() && !uniform.diverges());
}

#[test]
fn a_use_in_a_branch_waits_on_that_side_alone() {
    let mut kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
    let load = kernel.global(Op::Load, 1.0, 1.0, 128, 1);
    let flow = vec![
        touch(load, &[]),
        branch(0.5, 0.5, vec![fp32(1.0, &[load], 2)], vec![int(1.0, 3)], 1),
    ];
    let graph = Graph::new(&flow, &kernel.facts.accesses);
    let reduction = graph.reduce(&[4.0, 10.0, 10.0], &[100.0, 0.0, 0.0], Branching::Average);
    assert_eq!(
        reduction.entry_to_exit,
        4.0 + 0.5 * (96.0 + 10.0) + 0.5 * 10.0
    );
}

#[test]
fn overlapped_latency_counts_once() {
    // Figure 4 (c) to (e): two loads, each used by one of two instructions in order.
    let mut kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
    let m = kernel.global(Op::Load, 1.0, 1.0, 128, 1);
    let n = kernel.global(Op::Load, 1.0, 1.0, 128, 2);
    let flow = vec![
        touch(m, &[]),
        touch(n, &[]),
        fp32(1.0, &[m], 3),
        fp32(1.0, &[n], 4),
    ];
    let graph = Graph::new(&flow, &kernel.facts.accesses);
    let (bw, ab, exposed) = (20.0, 4.0, 130.0);
    let weights = [bw, bw, ab, 4.0];
    let reduction = graph.reduce(&weights, &[exposed, exposed, 0.0, 0.0], Branching::Average);
    let w_na = exposed - 2.0 * bw + bw;
    assert_eq!(reduction.transitions[1], w_na);
    let w_ab = (exposed - (w_na + ab)).max(0.0) + ab;
    assert_eq!(reduction.transitions[2], w_ab);
    assert_eq!(reduction.entry_to_exit, bw + w_na + w_ab + 4.0);
}

#[test]
fn time_grows_with_the_work_and_stays_above_the_bandwidth_bound() {
    let target = Target::new("gtx-280");
    let time = |blocks: u64| {
        let mut kernel = Kernel::new([blocks, 1, 1], [256, 1, 1]);
        let load = kernel.global(Op::Load, 2.0, 2.0, 64, 1);
        let store = kernel.global(Op::Store, 2.0, 2.0, 64, 2);
        let kernel = kernel.flow(vec![
            int(2.0, 1),
            touch(load, &[]),
            touch(store, &[load]),
            int(1.0, 2),
        ]);
        target.cycles(ModelId::Wfg, &kernel.facts)
    };
    let peak = target.profile.dram_bytes_per_cycle_per_sm() * 30.0;
    for blocks in [1, 30, 120, 121, 12_000] {
        let bytes = blocks as f64 * 8.0 * 256.0;
        assert!(time(blocks) >= bytes / peak - 1e-6, "{blocks} blocks");
        assert!(time(2 * blocks) >= time(blocks), "{blocks} blocks");
    }
    let ratio = time(24_000) / time(12_000);
    assert!((1.99..2.01).contains(&ratio), "{ratio}");
}

#[test]
fn a_trip_count_that_hangs_on_data_appears_in_the_function() {
    let target = Target::new("gtx-280");
    let mut kernel = Kernel::new([3000, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, 2.0, 2.0, 64, 1);
    let body = vec![touch(load, &[]), fp32(1.0, &[load], 2)];
    let flow = |known, text: &str| {
        vec![Node::Loop {
            trips: 16.0,
            known,
            text: text.to_owned(),
            body: body.clone(),
            line: 7,
        }]
    };
    let symbolic = kernel.clone().flow(flow(true, "n / 16"));
    let function = target
        .estimate(ModelId::Wfg, &symbolic.facts)
        .cycles_function;
    assert!(
        function.as_ref().is_some_and(|f| f.ends_with("* (n / 16)")),
        "{function:?}"
    );
    let fixed = kernel.clone().flow(flow(true, "16"));
    assert_eq!(
        target.estimate(ModelId::Wfg, &fixed.facts).cycles_function,
        None
    );
    let unknown = kernel.flow(flow(false, ""));
    let function = target
        .estimate(ModelId::Wfg, &unknown.facts)
        .cycles_function;
    assert!(function.is_some_and(|f| f.contains("trips(loop 1)")));
}
