//! The worked example of Hong and Kim 2009 (Table 2), the three cases, and kernels as facts.

use crate::common::{self, Kernel, Target, fp32, int, repeat, touch};
use warplens_facts::facts::{Node, Op};
use warplens_models::mwp_cwp::{Case, Parameters};
use warplens_models::{Bottleneck, ModelId};

fn worked_example() -> Parameters {
    Parameters {
        mem_ld: 420.0,
        departure_del_uncoal: 10.0,
        departure_del_coal: 4.0,
        issue_cycles: 4.0,
        freq_ghz: 1.0,
        bandwidth_gb_s: 80.0,
        active_sms: 16.0,
        warps_per_block: 4.0,
        blocks: 80.0,
        active_blocks_per_sm: 5.0,
        active_warps_per_sm: 20.0,
        comp_insts: 27.0,
        uncoal_mem_insts: 6.0,
        coal_mem_insts: 0.0,
        synch_insts: 6.0,
        uncoal_per_mw: 32.0,
        load_bytes_per_warp: 128.0,
    }
}

#[track_caller]
fn close(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{value} is not {expected}"
    );
}

#[test]
fn every_figure_of_the_worked_example() {
    let q = worked_example().quantities();
    close(q.departure_delay, 320.0, 0.0);
    close(q.mem_l, 730.0, 0.0);
    close(q.mwp_without_bw_full, 2.28125, 1e-12);
    close(q.mwp_without_bw, 2.28125, 1e-12);
    // The paper prints 0.175 and 28.57 from it; unrounded they are 0.17534 and 28.516.
    close(q.bw_per_warp_gb_s, 0.175, 0.0005);
    close(q.mwp_peak_bw, 28.5156, 0.0001);
    close(q.mwp, 2.28125, 1e-12);
    close(q.comp_cycles, 132.0, 0.0);
    close(q.mem_cycles, 4380.0, 0.0);
    close(q.cwp_full, 34.18, 0.005);
    close(q.cwp, 20.0, 0.0);
    close(q.rep, 1.0, 0.0);
    assert_eq!(q.case, Case::MemoryBound);
    assert!(
        (38428.0..=38450.0).contains(&q.exec_cycles),
        "{}",
        q.exec_cycles
    );
    assert!(
        (12288.0..=12300.0).contains(&q.synch_cost),
        "{}",
        q.synch_cost
    );
    assert!(
        (50728.0..=50739.0).contains(&q.total_cycles),
        "{}",
        q.total_cycles
    );
    // 33 instructions of 20 warps on each SM.
    close(q.cpi, q.exec_cycles / 660.0, 1e-9);
}

#[test]
fn few_warps_are_case_22() {
    let parameters = Parameters {
        active_warps_per_sm: 2.0,
        active_blocks_per_sm: 1.0,
        uncoal_mem_insts: 0.0,
        coal_mem_insts: 6.0,
        blocks: 16.0,
        ..worked_example()
    };
    let q = parameters.quantities();
    assert_eq!(q.case, Case::NotEnoughWarps);
    assert_eq!((q.mwp, q.cwp), (2.0, 2.0));
    // Mem 6 * 420, Comp 4 * 33, a sixth of it for the second warp.
    close(q.exec_cycles, 2520.0 + 132.0 + 22.0, 1e-9);
}

#[test]
fn much_computation_is_case_24() {
    let parameters = Parameters {
        comp_insts: 994.0,
        uncoal_mem_insts: 0.0,
        coal_mem_insts: 6.0,
        synch_insts: 0.0,
        ..worked_example()
    };
    let q = parameters.quantities();
    assert_eq!(q.case, Case::ComputeBound);
    // One memory period, then every warp's computation in turn.
    close(q.exec_cycles, 420.0 + 4000.0 * 20.0, 1e-9);
}

#[test]
fn a_fractional_repetition_stays_one() {
    let q = Parameters {
        blocks: 100.0,
        ..worked_example()
    }
    .quantities();
    close(q.rep, 1.25, 1e-12);
    close(
        q.exec_cycles / worked_example().quantities().exec_cycles,
        1.25,
        1e-9,
    );
}

#[test]
fn nothing_breaks_without_memory_computation_or_warps() {
    let base = worked_example();
    let quiet = Parameters {
        uncoal_mem_insts: 0.0,
        ..base
    };
    close(quiet.quantities().exec_cycles, 27.0 * 4.0 * 20.0, 1e-9);
    for parameters in [
        Parameters {
            comp_insts: 0.0,
            ..base
        },
        Parameters {
            comp_insts: 0.0,
            uncoal_mem_insts: 0.0,
            ..base
        },
        Parameters {
            active_warps_per_sm: 0.0,
            active_blocks_per_sm: 0.0,
            ..base
        },
        Parameters {
            bandwidth_gb_s: 1e-3,
            ..base
        },
        Parameters {
            mem_ld: 0.0,
            departure_del_uncoal: 0.0,
            ..base
        },
    ] {
        let q = parameters.quantities();
        for figure in [
            q.total_cycles,
            q.synch_cost,
            q.exec_cycles,
            q.cpi,
            q.mwp,
            q.cwp,
        ] {
            assert!(figure.is_finite() && figure >= 0.0, "{parameters:?}: {q:?}");
        }
    }
}

/// The tiled matrix multiplication of the paper's Figures 12 and 13 as facts: three iterations of two
/// uncoalesced loads, two barriers and nine computation instructions (barriers and shared accesses included).
fn tiled_multiplication() -> Kernel {
    let mut kernel = Kernel::new([80, 1, 1], [128, 1, 1]);
    let a = kernel.global(Op::Load, 32.0, 2.0, 64, 13);
    let b = kernel.global(Op::Load, 32.0, 2.0, 64, 14);
    let store_a = kernel.shared(Op::Store, 2.0, 2.0, 13);
    let store_b = kernel.shared(Op::Store, 2.0, 2.0, 14);
    let load_a = kernel.shared(Op::Load, 2.0, 2.0, 19);
    let load_b = kernel.shared(Op::Load, 2.0, 2.0, 19);
    kernel.flow(vec![repeat(
        3.0,
        vec![
            touch(a, &[]),
            touch(store_a, &[a]),
            touch(b, &[]),
            touch(store_b, &[b]),
            Node::Barrier { line: 16 },
            touch(load_a, &[]),
            touch(load_b, &[]),
            fp32(1.0, &[load_a, load_b], 19),
            Node::Barrier { line: 21 },
            int(2.0, 9),
        ],
        9,
    )])
}

#[test]
fn the_example_as_a_kernel_gives_the_papers_counts() {
    let mut kernel = tiled_multiplication();
    // Five blocks per SM, as in the paper: eleven registers short of six.
    kernel.code.resources.registers_per_thread = 12;
    let target = Target::new("quadro-fx-5600");
    let estimate = target.estimate(ModelId::MwpCwp, &kernel.code);
    let detail = |name: &str| estimate.detail[name];
    assert_eq!(detail("comp_insts"), 27.0);
    assert_eq!(detail("uncoal_mem_insts"), 6.0);
    assert_eq!(detail("coal_mem_insts"), 0.0);
    assert_eq!(detail("synch_insts"), 6.0);
    assert_eq!(detail("uncoal_per_mw"), 32.0);
    assert_eq!(detail("load_bytes_per_warp"), 128.0);
    assert_eq!(detail("active_warps_per_sm"), 20.0);
    // The profile's figures are the paper's Table 6, so these are the example's too.
    assert_eq!(detail("departure_delay"), 320.0);
    assert_eq!(detail("mem_l"), 730.0);
    assert_eq!(detail("mwp"), 2.28125);
    assert!((50728.0..=50739.0).contains(&detail("total_cycles")));
    assert_eq!(detail("case"), 23.0);
    assert_eq!(estimate.bottleneck, Some(Bottleneck::MemoryBandwidth));
    let lines: f64 = estimate.lines.iter().map(|line| line.1).sum();
    close(lines, detail("total_cycles"), 1e-6);
}

#[test]
fn a_coalesced_warp_is_one_transaction() {
    let target = Target::new("gtx-280");
    let mut kernel = Kernel::new([3000, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, 2.0, 2.0, 64, 1);
    let kernel = kernel.flow(vec![int(2.0, 1), touch(load, &[]), fp32(1.0, &[load], 1)]);
    let estimate = target.estimate(ModelId::MwpCwp, &kernel.code);
    assert_eq!(estimate.detail["coal_mem_insts"], 1.0);
    assert_eq!(estimate.detail["departure_delay"], 4.0);
    assert_eq!(estimate.detail["mem_l"], 450.0);
}

#[test]
fn unknown_addresses_are_the_worst_case_and_counted() {
    let target = Target::new("quadro-fx-5600");
    let mut kernel = Kernel::new([100, 1, 1], [128, 1, 1]);
    let mut gather = common::access(1);
    gather.transaction_bytes = 64;
    kernel.code.accesses.push(gather);
    let kernel = kernel.flow(vec![touch(0, &[]), fp32(1.0, &[0], 1)]);
    let estimate = target.estimate(ModelId::MwpCwp, &kernel.code);
    assert_eq!(estimate.detail["uncoal_mem_insts"], 1.0);
    assert_eq!(estimate.detail["uncoal_per_mw"], 32.0);
    assert_eq!(estimate.detail["unknown_accesses"], 1.0);
    assert!(estimate.cycles.is_some_and(f64::is_finite));
}

#[test]
fn profiles_of_the_papers_gpus_have_the_papers_figures() {
    let sheet = [
        ("geforce-8800-gtx", "1.0", 16, 1350.0, 86.4, 420.0, 10.0),
        ("quadro-fx-5600", "1.0", 16, 1350.0, 76.8, 420.0, 10.0),
        ("geforce-8800-gt", "1.1", 14, 1500.0, 57.6, 420.0, 10.0),
        ("gtx-280", "1.3", 30, 1300.0, 141.7, 450.0, 40.0),
    ];
    for (id, capability, sms, clock, bandwidth, mem_ld, uncoalesced) in sheet {
        let profile = Target::new(id).profile;
        assert_eq!(
            profile.architecture,
            format!("sm_{}", capability.replace('.', ""))
        );
        assert_eq!(profile.sms, sms, "{id}");
        // The GTX 280's 1296 MHz is 1.3 GHz in the paper's table.
        close(profile.sm_clock_mhz, clock, 5.0);
        assert_eq!(profile.dram_bandwidth_gb_s, bandwidth, "{id}");
        assert_eq!(profile.mem_ld, Some(mem_ld), "{id}");
        assert_eq!(profile.departure_del_uncoal, Some(uncoalesced), "{id}");
        assert_eq!(profile.departure_del_coal, Some(4.0), "{id}");
        assert_eq!(profile.issue_cycles, Some(4.0), "{id}");
    }
}

#[test]
fn a_warp_of_words_apart_is_32_transactions_on_the_first_gpus() {
    // Table 3's `uncoal_per_mw`, by the request rule of each profile.
    use warplens_machine::{Access, global_request};
    let apart: Vec<i64> = (0..32).map(|lane| lane * 4096).collect();
    for id in ["geforce-8800-gtx", "quadro-fx-5600", "geforce-8800-gt"] {
        let profile = Target::new(id).profile;
        let request = global_request(&profile, Access::Load, 4, &apart, u64::MAX);
        assert_eq!(request.transactions, 32, "{id}");
    }
}

#[test]
fn latency_and_delay_are_weighted_by_the_kinds_of_accesses() {
    // Equations 12 to 15 with a third of the memory instructions uncoalesced.
    let q = Parameters {
        uncoal_mem_insts: 2.0,
        coal_mem_insts: 4.0,
        ..worked_example()
    }
    .quantities();
    close(q.mem_l_uncoal, 730.0, 0.0);
    close(q.mem_l_coal, 420.0, 0.0);
    close(q.mem_l, 730.0 / 3.0 + 420.0 * 2.0 / 3.0, 1e-9);
    close(q.departure_delay, 320.0 / 3.0 + 4.0 * 2.0 / 3.0, 1e-9);
    close(q.mwp_without_bw_full, q.mem_l / q.departure_delay, 1e-12);
    close(q.mem_cycles, 730.0 * 2.0 + 420.0 * 4.0, 1e-9);
    close(q.comp_cycles, 4.0 * 33.0, 1e-9);
}

#[test]
fn bandwidth_bounds_the_memory_warps() {
    // Equations 5 to 7: coalesced warps leave 4 cycles apart, but memory serves fewer of them at a time.
    let q = Parameters {
        uncoal_mem_insts: 0.0,
        coal_mem_insts: 6.0,
        bandwidth_gb_s: 8.0,
        ..worked_example()
    }
    .quantities();
    close(q.mwp_without_bw_full, 105.0, 1e-9);
    close(q.mwp_without_bw, 20.0, 0.0);
    close(q.bw_per_warp_gb_s, 128.0 / 420.0, 1e-12);
    close(q.mwp_peak_bw, 8.0 / (128.0 / 420.0 * 16.0), 1e-12);
    close(q.mwp, q.mwp_peak_bw, 0.0);
}
