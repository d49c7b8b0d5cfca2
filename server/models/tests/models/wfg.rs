//! Figure 1 of Baghsorkhi et al. 2010 and the reductions of Figures 2 to 4.

use crate::common::{Kernel, Target, branch, compute, fp32, int, repeat, touch};
use warplens_facts::facts::{Node, Op, TripCount};
use warplens_machine::{Mix, Pipe};
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
        bytes: vec![32.0 * 4.0],
        scratchpad: vec![0.0],
        barriers: true,
        stretches: Vec::new(),
        branching: Branching::Weighted,
    };
    (kernel, parameters)
}

fn model(flow: &[Node], kernel: &Kernel, parameters: &Parameters) -> Model {
    Model::new(&Graph::new(flow, &kernel.code.accesses), parameters)
}

#[test]
fn every_figure_of_figure_1() {
    let (kernel, parameters) = figure_1();
    let model = model(&kernel.code.flow, &kernel, &parameters);
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
    let model = model(&kernel.code.flow, &kernel, &parameters);
    // 16 warps of 128 bytes at 4 bytes per cycle; one warp's 142 cycles hide behind it.
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
    let model = model(&kernel.code.flow, &kernel, &alone);
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
    let mix = Mix::from([(Pipe::Fp32, 8.0)]);
    let chained = model(&[compute(mix, 8.0, &[], 1)], &kernel, &alone);
    let free = model(&[compute(mix, 2.0, &[], 1)], &kernel, &alone);
    assert_eq!(chained.entry_to_exit, 8.0 * 24.0);
    assert_eq!(free.entry_to_exit, chained.entry_to_exit / 4.0);
}

#[test]
fn a_loop_is_its_body_times_its_trips() {
    let (kernel, parameters) = figure_1();
    let body = kernel.code.flow.clone();
    let once = model(&body, &kernel, &parameters);
    let looped = model(&[repeat(10.0, body, 1)], &kernel, &parameters);
    assert_eq!(looped.cyc_compute, 10.0 * once.cyc_compute);
    assert_eq!(looped.num_mem, 10.0);
    let graph = Graph::new(
        &[repeat(10.0, kernel.code.flow.clone(), 1)],
        &kernel.code.accesses,
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
    let graph = Graph::new(&flow, &kernel.code.accesses);
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
        Graph::new(&flow, &kernel.code.accesses)
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
    let graph = Graph::new(&flow, &kernel.code.accesses);
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
    let graph = Graph::new(&flow, &kernel.code.accesses);
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
        target.cycles(ModelId::Wfg, &kernel.code)
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
fn a_trip_count_that_depends_on_data_appears_in_the_function() {
    let target = Target::new("gtx-280");
    let mut kernel = Kernel::new([3000, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, 2.0, 2.0, 64, 1);
    let body = vec![touch(load, &[]), fp32(1.0, &[load], 2)];
    let flow = |known, count: TripCount| {
        vec![Node::Loop {
            trips: 16.0,
            known,
            count,
            body: body.clone(),
            line: 7,
        }]
    };
    let symbolic = kernel
        .clone()
        .flow(flow(true, TripCount::Expression("n / 16".into())));
    let function = target
        .estimate(ModelId::Wfg, &symbolic.code)
        .cycles_function;
    assert!(
        function.as_ref().is_some_and(|f| f.ends_with("* (n / 16)")),
        "{function:?}"
    );
    let fixed = kernel.clone().flow(flow(true, TripCount::Number));
    assert_eq!(
        target.estimate(ModelId::Wfg, &fixed.code).cycles_function,
        None
    );
    let unknown = kernel.flow(flow(false, TripCount::Unknown));
    let function = target.estimate(ModelId::Wfg, &unknown.code).cycles_function;
    assert!(function.is_some_and(|f| f.contains("trips(loop 1)")));
}

#[test]
fn blocks_elsewhere_contribute_average_parallelism() {
    // Equations 1 and 2: a region that half of the warps reach, seen from 1, 2 and 4 resident blocks.
    let (kernel, parameters) = figure_1();
    let chained = |n: f64, chain: f64, line| {
        let mix = Mix::from([(Pipe::Int, n)]);
        compute(mix, chain, &[], line)
    };
    let flow = [
        chained(6.0, 6.0, 1),
        branch(0.5, 0.5, vec![chained(6.0, 2.0, 2)], vec![], 1),
    ];
    let slow = Parameters {
        pipeline_latency: 960.0,
        ..parameters
    };
    for blocks in [1.0, 2.0, 4.0] {
        let parameters = Parameters {
            active_blocks: blocks,
            ..slow.clone()
        };
        let model = model(&flow, &kernel, &parameters);
        // Equation 7: (6 * 16 + 6 * 8) / 12; equation 8: (6 * 1 + 3 * 3) / 9.
        assert_eq!(model.wlp_avg, 12.0);
        assert!((model.ilp_avg - 15.0 / 9.0).abs() < 1e-12);
        let effective = |local: f64, average: f64| (local + (blocks - 1.0) * average) / blocks;
        let instruction =
            |wlp: f64, ilp: f64| 960.0 / (effective(ilp, 15.0 / 9.0) * effective(wlp, 12.0));
        let weights = &model.compute_weights;
        assert!(
            (weights[0] - 6.0 * instruction(16.0, 1.0)).abs() < 1e-9,
            "{blocks}"
        );
        assert!(
            (weights[1] - 6.0 * instruction(8.0, 3.0)).abs() < 1e-9,
            "{blocks}"
        );
    }
}

#[test]
fn the_regions_of_figure_5() {
    // The top region holds n instructions and a branch whose sides hold p and q; rho_3 of the warps come there.
    let (kernel, parameters) = figure_1();
    let (n, p, q) = (10.0, 4.0, 8.0);
    let (rho_1, rho_2, rho_3) = (0.75, 0.5, 0.5);
    let flow = [branch(
        rho_3,
        0.5,
        vec![
            int(n, 1),
            branch(rho_1, rho_2, vec![int(p, 2)], vec![int(q, 3)], 1),
        ],
        vec![],
        1,
    )];
    let model = model(&flow, &kernel, &parameters);
    let most = parameters.active_warps;
    let expected = (p * rho_3 * rho_1 + q * rho_3 * rho_2 + n * rho_3) * most / (p + q + n);
    assert!(
        (model.wlp_avg - expected).abs() < 1e-12,
        "{}",
        model.wlp_avg
    );
    // Every region is one chain.
    assert_eq!(model.ilp_avg, 1.0);
}

#[test]
fn a_loops_instructions_weigh_its_trips() {
    let (kernel, parameters) = figure_1();
    let side = |trips: f64| {
        let body = vec![repeat(trips, vec![int(2.0, 2)], 2)];
        let flow = [int(2.0, 1), branch(0.25, 0.75, body, vec![], 1)];
        model(&flow, &kernel, &parameters).wlp_avg
    };
    assert_eq!(side(1.0), (2.0 * 16.0 + 2.0 * 4.0) / 4.0);
    assert_eq!(side(9.0), (2.0 * 16.0 + 18.0 * 4.0) / 20.0);
}

#[test]
fn dependences_within_a_stretch_give_its_parallelism() {
    let (kernel, parameters) = figure_1();
    let alone = Parameters {
        active_warps: 1.0,
        active_blocks: 1.0,
        stretches: vec![(1, 1.0), (4, 3.0)],
        ..parameters
    };
    let model = model(
        &[int(6.0, 2), repeat(1.0, vec![int(6.0, 5)], 4)],
        &kernel,
        &alone,
    );
    // Equation 2 with one block is the local parallelism: 24 cycles per instruction, or 8.
    assert_eq!(model.compute_weights, [6.0 * 24.0, 6.0 * 8.0]);
}

#[test]
fn equation_4_shares_the_uncovered_transfer_among_the_operations() {
    let (mut kernel, parameters) = figure_1();
    let second = kernel.global(Op::Load, 1.0, 1.0, 128, 1);
    let narrow = Parameters {
        bandwidth_bytes_per_cycle_per_sm: 2.0,
        bytes: vec![128.0, 64.0],
        ..parameters
    };
    let flow = [touch(0, &[]), int(3.0, 1), touch(second, &[]), int(1.0, 1)];
    let model = model(&flow, &kernel, &narrow);
    // 192 bytes at 2 a cycle are 96 cycles; compute covers 4 + 12 + 4 + 4 of them.
    assert_eq!(
        (model.cyc_mem, model.cyc_compute, model.num_mem),
        (96.0, 24.0, 2.0)
    );
    assert_eq!(model.latency_bw, (96.0 - 24.0) / 2.0 + 4.0);
    // Equation 5.
    assert_eq!(model.nbc_avg, 24.0 / 3.0);
    // Equation 4 has no negative stall.
    let wide = Parameters {
        bandwidth_bytes_per_cycle_per_sm: 64.0,
        ..narrow
    };
    let model = Model::new(&Graph::new(&flow, &kernel.code.accesses), &wide);
    assert_eq!(model.latency_bw, 4.0);
}

#[test]
fn barriers_are_context_switches() {
    let (kernel, parameters) = figure_1();
    let mut flow = kernel.code.flow.clone();
    flow.push(Node::Barrier { line: 2 });
    let model = model(&flow, &kernel, &parameters);
    // Equation 5: 16 cycles and the barrier's 4, among a load, a barrier and one.
    assert_eq!(model.num_sync, 1.0);
    assert_eq!(model.nbc_avg, 20.0 / 3.0);
    // Equation 6.
    assert!((model.latency_exposed - (250.0 - 15.0 * 20.0 / 3.0)).abs() < 1e-12);
}

#[test]
fn latency_that_a_path_covers_is_not_added() {
    // Figure 4 (a) and (b): the load M, computation A and B, and the use C.
    let mut kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
    let load = kernel.global(Op::Load, 1.0, 1.0, 128, 1);
    let flow = [
        touch(load, &[]),
        int(1.0, 2),
        int(1.0, 3),
        fp32(1.0, &[load], 4),
    ];
    let graph = Graph::new(&flow, &kernel.code.accesses);
    let reduce = |exposed: f64| {
        let weights = [20.0, 30.0, 40.0, 4.0];
        graph.reduce(&weights, &[exposed, 0.0, 0.0, 0.0], Branching::Weighted)
    };
    // W_NewBC = max(0, exposed - (W_MA + W_AB + W_BC)) + W_BC.
    let covered = reduce(80.0);
    assert_eq!(covered.transitions[2], 40.0);
    assert_eq!(covered.entry_to_exit, 94.0);
    let exposed = reduce(130.0);
    assert_eq!(exposed.transitions[2], 130.0 - 90.0 + 40.0);
    assert_eq!(exposed.entry_to_exit, 134.0);
}

#[test]
fn a_load_is_duplicated_into_both_paths() {
    // Figure 3: M before the branch, its use C on the true side, and a second load used behind the branch at G.
    let mut kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
    let m = kernel.global(Op::Load, 1.0, 1.0, 128, 1);
    let flow = [
        touch(m, &[]),
        branch(0.25, 0.75, vec![int(1.0, 2)], vec![int(1.0, 3)], 1),
        fp32(1.0, &[m], 4),
    ];
    let graph = Graph::new(&flow, &kernel.code.accesses);
    let weights = [4.0, 200.0, 20.0, 4.0];
    let reduction = graph.reduce(&weights, &[100.0, 0.0, 0.0, 0.0], Branching::Weighted);
    // The long side covers the latency, the short one leaves 100 - 4 - 20 of it.
    let long = 4.0 + 200.0 + 4.0;
    let short = 4.0 + 20.0 + 76.0 + 4.0;
    assert_eq!(reduction.entry_to_exit, 0.25 * long + 0.75 * short);
    assert_eq!(reduction.exposed[0], 0.75 * 76.0);
}

#[test]
fn a_load_on_one_path_delays_that_path_behind_the_branch() {
    let mut kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
    let m = kernel.global(Op::Load, 1.0, 1.0, 128, 2);
    let flow = [
        branch(0.25, 0.75, vec![touch(m, &[])], vec![int(1.0, 3)], 1),
        fp32(1.0, &[m], 4),
    ];
    let graph = Graph::new(&flow, &kernel.code.accesses);
    let reduction = graph.reduce(&[4.0, 8.0, 4.0], &[100.0, 0.0, 0.0], Branching::Weighted);
    let with = 4.0 + 96.0 + 4.0;
    let without = 8.0 + 4.0;
    assert_eq!(reduction.entry_to_exit, 0.25 * with + 0.75 * without);
}

#[test]
fn an_empty_side_is_no_path_for_warps_that_split() {
    // All warps execute the condition's side with some lane, half of them skip it with some lane.
    let kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
    let flow = [branch(1.0, 0.5, vec![int(1.0, 2)], vec![], 1)];
    let graph = Graph::new(&flow, &kernel.code.accesses);
    let time = |branching| graph.reduce(&[30.0], &[0.0], branching).entry_to_exit;
    assert_eq!(time(Branching::Weighted), 30.0);
    assert_eq!(time(Branching::Average), 20.0);
}

#[test]
fn an_uncoalesced_word_moves_64_bytes_on_the_8800() {
    let target = Target::new("geforce-8800-gtx");
    let bytes = |transactions: f64, ideal: f64, moved: f64| {
        let mut kernel = Kernel::new([100, 1, 1], [256, 1, 1]);
        let load = kernel.global(Op::Load, transactions, ideal, 64, 1);
        kernel.code.accesses[load].bytes_moved_per_request = Some(moved);
        let kernel = kernel.flow(vec![touch(load, &[]), fp32(1.0, &[load], 1)]);
        target.estimate(ModelId::Wfg, &kernel.code).detail["num_bytes"]
    };
    // The request rule moves 32 bytes for each of 32 lanes; the paper's GPU fetches 16 words.
    assert_eq!(bytes(32.0, 2.0, 32.0 * 32.0), 32.0 * 64.0);
    assert_eq!(bytes(2.0, 2.0, 128.0), 128.0);
}

#[test]
fn a_free_loop_under_a_branch_appears_in_the_function() {
    let target = Target::new("gtx-280");
    let mut kernel = Kernel::new([3000, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, 2.0, 2.0, 64, 1);
    let flow = |trips: f64, count: TripCount| {
        let body = vec![touch(load, &[]), fp32(1.0, &[load], 2)];
        let rows = Node::Loop {
            trips,
            known: true,
            count,
            body,
            line: 7,
        };
        vec![int(2.0, 1), branch(0.75, 0.25, vec![rows], vec![], 1)]
    };
    let symbolic = kernel
        .clone()
        .flow(flow(16.0, TripCount::Expression("n".into())));
    let function = target
        .estimate(ModelId::Wfg, &symbolic.code)
        .cycles_function;
    let function = function.expect("a free loop");
    // The function at n is the estimate once n is known.
    let (fixed, slope) = function.split_once(" + ").expect("two terms");
    let slope = slope.strip_suffix(" * (n)").expect("of n");
    let (fixed, slope): (f64, f64) = (
        fixed.parse().expect("number"),
        slope.parse().expect("number"),
    );
    for n in [16.0, 40.0, 1000.0] {
        let known = kernel.clone().flow(flow(n, TripCount::Number));
        let estimate = target.estimate(ModelId::Wfg, &known.code);
        assert_eq!(estimate.cycles_function, None);
        let cycles = estimate.cycles.expect("applies");
        let said = fixed + slope * n;
        assert!(
            (said / cycles - 1.0).abs() < 1e-3,
            "{said} at {n}, not {cycles}"
        );
    }
}

#[test]
fn a_drawing_has_the_weights_of_figure_1() {
    use warplens_models::wfg::drawing::{Relation, Role, draw};
    let (kernel, _) = figure_1();
    let target = Target::new("geforce-8800-gtx");
    let drawing = target.with_input(&kernel.code, draw).expect("drawn");
    let roles: Vec<Role> = drawing.nodes.iter().map(|node| node.role).collect();
    assert_eq!(
        roles,
        [
            Role::Entry,
            Role::Compute,
            Role::Memory,
            Role::Compute,
            Role::Exit
        ]
    );
    let transitions: Vec<(usize, usize)> = drawing
        .arcs
        .iter()
        .filter(|arc| arc.relation == Relation::Transition)
        .map(|arc| (arc.from, arc.to))
        .collect();
    assert_eq!(transitions, [(0, 1), (1, 2), (2, 3), (3, 4)]);
    let waits: Vec<_> = drawing
        .arcs
        .iter()
        .filter(|arc| arc.relation == Relation::Dependence)
        .collect();
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].from, waits[0].to), (2, 3));
    let estimate = target.estimate(ModelId::Wfg, &kernel.code);
    assert_eq!(waits[0].weight, estimate.detail["latency_exposed"]);
    assert_eq!(drawing.entry_to_exit, estimate.detail["entry_to_exit"]);
    assert_eq!(drawing.cyc_compute, estimate.detail["cyc_compute"]);
}

#[test]
fn a_huge_graph_is_drawn_in_part() {
    use warplens_models::wfg::drawing::{Role, draw};
    let kernel = Kernel::new([64, 1, 1], [256, 1, 1]);
    let flow = (0..5000)
        .map(|at| {
            branch(
                0.5,
                0.5,
                vec![int(1.0, at)],
                vec![repeat(3.0, vec![int(2.0, at)], at)],
                at,
            )
        })
        .collect();
    let kernel = kernel.flow(flow);
    let target = Target::new("geforce-8800-gtx");
    let drawing = target.with_input(&kernel.code, draw).expect("drawn");
    assert!(drawing.nodes.len() < 200 && drawing.arcs.len() < 2000);
    assert_eq!(drawing.elided, 10_000 - 160);
    assert_eq!(drawing.nodes[161].role, Role::Elided);
    assert!(
        drawing
            .arcs
            .iter()
            .all(|arc| arc.from.max(arc.to) < drawing.nodes.len())
    );
}

#[test]
fn a_conflict_repeats_the_instruction_of_the_whole_warp() {
    let target = Target::new("geforce-8800-gtx");
    let cycles = |passes: f64, ideal: f64| {
        let mut kernel = Kernel::new([100, 1, 1], [256, 1, 1]);
        let load = kernel.shared(Op::Load, passes, ideal, 1);
        let kernel = kernel.flow(vec![touch(load, &[]), fp32(1.0, &[load], 1)]);
        target.estimate(ModelId::Wfg, &kernel.code).detail["cyc_compute"] - 4.0
    };
    // 16 banks serve a warp in two passes of two cycles each, which is its issue.
    assert_eq!(cycles(2.0, 2.0), 4.0);
    assert_eq!(cycles(32.0, 2.0), 16.0 * 4.0);
    // Half a warp with eight lanes on a bank.
    assert_eq!(cycles(8.0, 1.0), 8.0 * 4.0);
}
