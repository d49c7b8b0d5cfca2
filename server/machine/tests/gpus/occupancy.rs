//! Resident blocks and warps against hand-worked cases and figures of the CUDA 12.9 occupancy
//! calculator.

use std::sync::Arc;

use warplens_machine::{Limiter, Occupancy, Profile, Profiles, launch_problem, occupancy};

fn gpu(id: &str) -> Arc<Profile> {
    Profiles::builtin()
        .get(id)
        .unwrap_or_else(|| panic!("no profile {id}"))
}

/// A grid that never limits.
const MANY: u64 = 1 << 40;

fn resident(id: &str, threads: u64, registers: u32, shared: u64) -> Occupancy {
    occupancy(&gpu(id), threads, registers, shared, MANY)
}

#[test]
fn the_best_practices_example_on_7_0() {
    // 37 registers: 1280 a warp, 12 warps in each quarter of the registers.
    let narrow = resident("v100-sxm2-16gb", 128, 37, 0);
    assert_eq!(
        (narrow.active_blocks_per_sm, narrow.active_warps_per_sm),
        (12, 48)
    );
    assert_eq!(narrow.fraction, 0.75);
    assert_eq!(narrow.limiter, Limiter::Registers);
    let step = narrow
        .next_step
        .expect("fewer registers let more blocks in");
    assert_eq!(
        step,
        "use at most 32 registers per thread (now 37) for 16 blocks"
    );

    let wide = resident("v100-sxm2-16gb", 320, 37, 0);
    assert_eq!(
        (wide.active_blocks_per_sm, wide.active_warps_per_sm),
        (4, 40)
    );
    assert_eq!(wide.fraction, 0.625);
}

#[test]
fn registers_are_allocated_to_blocks_on_1_x() {
    // 8 warps x 32 lanes x 10 registers = 2560 of 8192: three blocks of 256 fill the 768 threads.
    let full = resident("geforce-8800-gtx", 256, 10, 0);
    assert_eq!((full.active_blocks_per_sm, full.fraction), (3, 1.0));
    // One register more and only two fit.
    let less = resident("geforce-8800-gtx", 256, 11, 0);
    assert_eq!(
        (less.active_blocks_per_sm, less.limiter),
        (2, Limiter::Registers)
    );
    // 3 warps count as 4: 4 x 32 x 10 = 1280, six blocks, though 3 x 32 x 10 = 960 would let in
    // eight.
    assert_eq!(
        resident("geforce-8800-gtx", 96, 10, 0).active_blocks_per_sm,
        6
    );
    // The unit is 256 on 1.0 and 512 on 1.3: 2 x 32 x 17 = 1088 becomes 1280 (6 of 8192) or 1536
    // (10 of 16384, but an SM holds 8 blocks).
    assert_eq!(
        resident("quadro-fx-5600", 64, 17, 0).active_blocks_per_sm,
        6
    );
    let gt200 = resident("gtx-280", 64, 17, 0);
    assert_eq!(
        (gt200.active_blocks_per_sm, gt200.limits.registers),
        (8, Some(10))
    );
}

#[test]
fn shared_memory_is_rounded_up_with_what_the_system_keeps() {
    // 1.x keeps 16 bytes: four blocks of 4 KiB no longer fit 16 KiB.
    assert_eq!(resident("gtx-280", 64, 8, 4096).limits.shared, Some(3));
    assert_eq!(resident("gtx-280", 64, 8, 4096 - 16).limits.shared, Some(4));
    // 7.0 keeps nothing, 8.0 keeps 1 KiB of each block.
    assert_eq!(resident("v100-sxm2-16gb", 64, 8, 0).limits.shared, None);
    assert_eq!(
        resident("a100-sxm4-40gb", 64, 8, 40_960).limits.shared,
        Some(4)
    );
    assert_eq!(
        resident("a100-sxm4-40gb", 64, 8, 40_961).limits.shared,
        Some(3)
    );
    let step = resident("a100-sxm4-40gb", 256, 32, 40_961)
        .next_step
        .expect("less shared memory");
    assert_eq!(
        step,
        "use at most 40960 bytes of shared memory per block (now 40961) for 4 blocks"
    );
}

/// Threads, registers, shared bytes, blocks.
type Row = (u64, u32, u64, u32);

#[test]
fn agrees_with_the_cuda_occupancy_calculator() {
    let rows: [(&str, &[Row]); 6] = [
        (
            "tesla-k40c",
            &[
                (256, 33, 0, 6),
                (192, 40, 6144, 8),
                (1024, 64, 0, 1),
                (33, 20, 128, 16),
            ],
        ),
        (
            "v100-sxm2-16gb",
            &[
                (672, 48, 0, 1),
                (96, 169, 0, 2),
                (256, 63, 32_768, 3),
                (1, 254, 0, 8),
            ],
        ),
        (
            "rtx-2080-ti",
            &[
                (128, 63, 8192, 8),
                (544, 32, 0, 1),
                (64, 16, 100, 16),
                (256, 124, 0, 2),
            ],
        ),
        (
            "a100-sxm4-40gb",
            &[
                (416, 69, 0, 2),
                (256, 40, 10_000, 6),
                (64, 24, 4224, 32),
                (512, 124, 0, 1),
            ],
        ),
        (
            "rtx-a4000",
            &[
                (768, 40, 0, 2),
                (160, 50, 0, 7),
                (32, 20, 6144, 14),
                (1024, 32, 0, 1),
            ],
        ),
        (
            "h100-sxm5",
            &[
                (224, 94, 0, 2),
                (640, 32, 49_152, 3),
                (128, 32, 232_448, 1),
                (800, 79, 0, 0),
            ],
        ),
    ];
    for (id, rows) in rows {
        for &(threads, registers, shared, blocks) in rows {
            let found = resident(id, threads, registers, shared);
            let case = format!("{id}: {threads} threads, {registers} registers, {shared} bytes");
            assert_eq!(found.active_blocks_per_sm, blocks, "{case}");
            assert_eq!(found.why_impossible.is_some(), blocks == 0, "{case}");
        }
    }
}

#[test]
fn ties_name_registers_before_warps_and_so_on() {
    // Registers, warps: 8 blocks of 256 threads at 32 registers.
    assert_eq!(
        resident("a100-sxm4-40gb", 256, 32, 0).limiter,
        Limiter::Registers
    );
    assert_eq!(
        resident("a100-sxm4-40gb", 256, 31, 19_456).limiter,
        Limiter::Registers
    );
    // Shared memory and warps at 8 blocks: (167936 / 8) - 1024 = 19968.
    let tied = resident("a100-sxm4-40gb", 256, 24, 19_968);
    assert_eq!(
        (tied.active_blocks_per_sm, tied.limiter),
        (8, Limiter::Shared)
    );
    // Warps and blocks at 32 blocks of two warps.
    assert_eq!(
        resident("a100-sxm4-40gb", 64, 24, 0).limiter,
        Limiter::Warps
    );
    assert_eq!(
        resident("a100-sxm4-40gb", 32, 24, 0).limiter,
        Limiter::Blocks
    );
}

#[test]
fn a_small_grid_is_a_limit_of_its_own() {
    let a100 = gpu("a100-sxm4-40gb");
    let small = occupancy(&a100, 256, 32, 0, 109);
    assert_eq!(
        (small.active_blocks_per_sm, small.limiter),
        (2, Limiter::Grid)
    );
    let step = small.next_step.expect("more blocks");
    assert_eq!(
        step,
        "launch at least 864 blocks (now 109) to fill every SM"
    );
    // Exactly full: a tie, which the grid loses.
    let exact = occupancy(&a100, 256, 32, 0, 864);
    assert_eq!(
        (exact.fraction, exact.limiter, exact.next_step),
        (1.0, Limiter::Registers, None)
    );
}

#[test]
fn unknown_registers_limit_nothing() {
    let open = resident("a100-sxm4-40gb", 256, 0, 0);
    assert_eq!(
        (open.limits.registers, open.active_blocks_per_sm),
        (None, 8)
    );
}

#[test]
fn an_impossible_launch_says_why() {
    let why = |threads, registers, shared| {
        let found = resident("a100-sxm4-40gb", threads, registers, shared);
        assert_eq!((found.active_blocks_per_sm, found.fraction), (0, 0.0));
        (found.limiter, found.why_impossible.expect("impossible"))
    };
    let (limiter, text) = why(2000, 32, 0);
    assert_eq!(limiter, Limiter::Warps);
    assert_eq!(
        text,
        "a block of 2000 threads; NVIDIA A100 SXM4 40GB takes at most 1024"
    );
    let (limiter, text) = why(256, 32, 200_000);
    assert_eq!(limiter, Limiter::Shared);
    assert!(text.contains("200000") && text.contains("166912"), "{text}");
    let (limiter, text) = why(256, 300, 0);
    assert_eq!(limiter, Limiter::Registers);
    assert!(text.contains("300") && text.contains("255"), "{text}");
    let (limiter, text) = why(1024, 65, 0);
    assert_eq!(limiter, Limiter::Registers);
    assert!(text.contains("at most 64 registers per thread"), "{text}");
    assert_eq!(why(0, 32, 0).0, Limiter::Warps);
    let a100 = gpu("a100-sxm4-40gb");
    assert_eq!(occupancy(&a100, 256, 32, 0, 0).limiter, Limiter::Grid);
    // 16 KiB and the 16 bytes the system keeps are more than an SM of 1.x has.
    assert!(resident("gtx-280", 64, 8, 16_384).why_impossible.is_some());
    assert!(resident("gtx-280", 64, 8, 16_368).why_impossible.is_none());
    assert!(
        resident("a100-sxm4-40gb", u64::MAX, u32::MAX, u64::MAX)
            .why_impossible
            .is_some()
    );
}

/// The number after `before` in a step's text.
fn number_after(text: &str, before: &str) -> u64 {
    let rest = &text[text
        .find(before)
        .unwrap_or_else(|| panic!("{before} in {text}"))
        + before.len()..];
    rest.split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number")
}

#[test]
fn taking_the_step_delivers_what_it_promises() {
    let mut seen = [0; 3];
    for profile in Profiles::builtin().iter() {
        for threads in (32..=u64::from(profile.max_threads_per_block)).step_by(96) {
            for registers in [10, 33, 37, 60, 100] {
                for shared in [0, 3000, 9000, 40_000] {
                    let now = occupancy(&profile, threads, registers, shared, MANY);
                    let Some(step) = now.next_step else { continue };
                    let case = format!("{} {threads} {registers} {shared}: {step}", profile.id);
                    if step.contains("use blocks of ") {
                        let threads = number_after(&step, "use blocks of ");
                        let promised = number_after(&step, " for ");
                        let warp = u64::from(profile.warp_size);
                        let shared = (shared * threads.div_ceil(warp)).div_ceil(u64::from(
                            now.active_warps_per_sm / now.active_blocks_per_sm,
                        ));
                        let after = occupancy(&profile, threads, registers, shared, MANY);
                        assert_eq!(u64::from(after.active_warps_per_sm), promised, "{case}");
                        assert!(after.fraction > now.fraction, "{case}");
                        seen[0] += 1;
                        continue;
                    }
                    let (mut registers, mut shared) = (registers, shared);
                    if step.contains("registers per thread") || step.contains("VGPRs per lane") {
                        registers = number_after(&step, "use at most ") as u32;
                        seen[1] += 1;
                    }
                    if step.contains("shared memory per block") {
                        let from = if step.contains(" and ") {
                            " and "
                        } else {
                            "use at most "
                        };
                        shared = if step.contains("no shared") {
                            0
                        } else {
                            number_after(&step, from)
                        };
                        seen[2] += 1;
                    }
                    let promised = number_after(&step, " for ");
                    let after = occupancy(&profile, threads, registers, shared, MANY);
                    assert_eq!(u64::from(after.active_blocks_per_sm), promised, "{case}");
                    assert!(
                        after.active_blocks_per_sm > now.active_blocks_per_sm,
                        "{case}"
                    );
                }
            }
        }
    }
    assert!(
        seen.iter().all(|count| *count > 20),
        "each kind of step occurs: {seen:?}"
    );
}

#[test]
fn dimensions_are_checked_by_axis() {
    let a100 = gpu("a100-sxm4-40gb");
    assert_eq!(launch_problem(&a100, [1, 1, 1], [32, 32, 1]), None);
    assert_eq!(
        launch_problem(&a100, [2_147_483_647, 1, 1], [1, 1, 64]),
        None
    );
    let problem = |grid, block| launch_problem(&a100, grid, block).expect("a problem");
    assert!(problem([1, 1, 1], [1, 1, 65]).contains("65 threads in z"));
    assert!(problem([1, 65_536, 1], [1, 1, 1]).contains("65536 blocks in y"));
    assert!(problem([1, 1, 1], [32, 33, 1]).contains("1056 threads"));
    assert!(problem([1, 0, 1], [32, 1, 1]).contains("no blocks in y"));
    // 1.x has no third grid dimension and blocks of 512.
    let g80 = gpu("geforce-8800-gtx");
    assert!(launch_problem(&g80, [1, 1, 2], [32, 1, 1]).is_some());
    assert!(launch_problem(&g80, [1, 1, 1], [1024, 1, 1]).is_some());
}

/// GCN: 40 waves of 64 lanes and 16 barriers a compute unit; VGPRs in fours of 64 lanes, 256 for each of four SIMDs (LLVM's
/// user guide for AMDGPU).
#[test]
fn blocks_of_several_waves_share_the_barriers_of_gcn() {
    // One wave takes no barrier: 40 blocks. Two waves: 20 blocks of waves, but 16 barriers.
    let one = resident("mi50", 64, 24, 0);
    assert_eq!((one.active_blocks_per_sm, one.fraction), (40, 1.0));
    let two = resident("mi50", 128, 24, 0);
    assert_eq!(
        (two.active_blocks_per_sm, two.limiter),
        (16, Limiter::Blocks)
    );
    assert_eq!(two.active_warps_per_sm, 32);
    let four = resident("mi50", 256, 24, 0);
    assert_eq!((four.active_blocks_per_sm, four.fraction), (10, 1.0));
    // 25 VGPRs count as 28: 9 waves of each SIMD, 36 of a compute unit, 9 blocks of 4.
    let more = resident("mi50", 256, 25, 0);
    assert_eq!(
        (more.active_blocks_per_sm, more.limiter),
        (9, Limiter::Registers)
    );
    // 84 VGPRs: 3 waves of each SIMD.
    assert_eq!(resident("vega-fe", 64, 84, 0).active_warps_per_sm, 12);
}

/// RDNA 2 and 3 in waves of 32: 1024 and 1536 VGPRs per lane of a SIMD, in sixteens and twenty-fours, two SIMDs a compute unit.
#[test]
fn registers_of_rdna() {
    // 64 VGPRs: 1024 / 64 = 16 waves of each SIMD; 65 count as 80: 12.
    assert_eq!(resident("rx-6900-xt", 256, 64, 0).active_warps_per_sm, 32);
    let more = resident("rx-6900-xt", 256, 65, 0);
    assert_eq!((more.active_warps_per_sm, more.fraction), (24, 0.75));
    // 1536 / 96 = 16; 97 count as 120: 12.
    assert_eq!(resident("rx-7900-xtx", 256, 96, 0).active_warps_per_sm, 32);
    assert_eq!(resident("rx-7900-xtx", 256, 97, 0).active_warps_per_sm, 24);
    // 64 KiB of LDS a compute unit, handed out by the KiB.
    let lds = resident("rx-6900-xt", 256, 32, 20_000);
    assert_eq!(
        (lds.active_blocks_per_sm, lds.limiter),
        (3, Limiter::Shared)
    );
}

/// Xe-HPG: 128 hardware threads of 16 lanes an Xe-core, 32 barriers, 64 KiB of SLM a group (Intel's GPU occupancy calculator).
#[test]
fn threads_and_barriers_of_xe_hpg() {
    let full = resident("arc-a770", 256, 32, 0);
    assert_eq!((full.active_blocks_per_sm, full.fraction), (8, 1.0));
    // 32 work-items are two threads: 64 groups of threads, but 32 barriers.
    let barriers = resident("arc-a770", 32, 32, 0);
    assert_eq!(
        (barriers.active_blocks_per_sm, barriers.limiter),
        (32, Limiter::Blocks)
    );
    assert_eq!(resident("arc-a770", 16, 32, 0).active_blocks_per_sm, 128);
    // A thread has its 4 KiB of registers whatever it uses.
    assert_eq!(resident("arc-a770", 256, 64, 0).active_warps_per_sm, 128);
    let slm = resident("arc-a770", 256, 32, 40_000);
    assert_eq!(
        (slm.active_blocks_per_sm, slm.limiter),
        (3, Limiter::Shared)
    );
    assert!(
        resident("arc-a770", 256, 32, 65_537)
            .why_impossible
            .is_some()
    );
}

/// 2.0: registers go to warps in 64s, warps in pairs (CUDA occupancy calculator spreadsheet). 21 registers: 672 count as 704;
/// 46 warps: 5 blocks of 8, and shared memory in units of 128.
#[test]
fn registers_of_fermi() {
    let fermi = resident("tesla-c2070", 256, 21, 0);
    assert_eq!(
        (fermi.active_blocks_per_sm, fermi.limits.registers),
        (5, Some(5))
    );
    assert_eq!(resident("tesla-c2070", 192, 20, 0).fraction, 1.0);
    assert_eq!(
        resident("tesla-c2070", 128, 63, 12_300).limits.shared,
        Some(3)
    );
}

/// 6.0 has two sub-partitions: 65536 / 2 / (37 registers as 1280) = 25 warps in each, 50 in all; 7.0's four hold 12 each.
#[test]
fn the_halves_of_gp100() {
    assert_eq!(resident("tesla-p100", 32, 37, 0).limits.registers, Some(50));
    assert_eq!(resident("titan-v", 32, 37, 0).limits.registers, Some(48));
}
