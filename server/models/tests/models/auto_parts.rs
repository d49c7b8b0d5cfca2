//! What the estimate that users see first is made of: its mechanisms, its interval, who finds what in which cache.

use crate::common::{self, Kernel, Target, compute, fp32, input, int, question, repeat, touch};
use warplens_facts::facts::{Assumed, Assumption, LinearAddress, Node, Op, Pattern};
use warplens_machine::{Mix, Pipe};
use warplens_models::auto::{Mechanism, cycles_without};
use warplens_models::{ExecutedAccess, ModelId, Object, cycles};

/// Loads in a loop, shared memory between two barriers, a store.
fn staged(passes: f64) -> Kernel {
    let mut kernel = Kernel::new([4099, 1, 1], [256, 1, 1]);
    let load = kernel.global(Op::Load, 4.0, 4.0, 32, 2);
    let write = kernel.shared(Op::Store, passes, 1.0, 3);
    let read = kernel.shared(Op::Load, passes, 1.0, 5);
    let store = kernel.global(Op::Store, 4.0, 4.0, 32, 6);
    let integers = Mix::from([(Pipe::Int, 24.0)]);
    kernel.code.accesses[load].together = 4.0;
    let body = vec![touch(load, &[]), fp32(2.0, &[load], 2), touch(write, &[])];
    let split = Node::Branch {
        taken: 1.0,
        other: 1.0,
        then: vec![compute(integers, 24.0, &[], 5)],
        otherwise: vec![fp32(16.0, &[], 5)],
        line: 5,
    };
    kernel.flow(vec![
        int(6.0, 1),
        repeat(8.0, body, 2),
        Node::Barrier { line: 4 },
        touch(read, &[]),
        fp32(64.0, &[read], 5),
        split,
        touch(store, &[read]),
    ])
}

/// Blocks that do little, two at a time on each SM: what is waited for is mostly the next block.
#[test]
fn a_place_that_nothing_fills_stands_empty_until_the_next_block_starts() {
    let target = Target::new("rtx-2080-ti");
    let mut kernel = Kernel::new([68 * 2 * 100, 1, 1], [32, 1, 1]);
    let store = kernel.global(Op::Store, 4.0, 4.0, 32, 1);
    let mut kernel = kernel.flow(vec![int(4.0, 1), touch(store, &[])]);
    kernel.code.resources.static_shared_bytes = 32 * 1024;
    let occupancy = target.occupancy(&kernel.code);
    assert_eq!(occupancy.active_blocks_per_sm, 2);
    let made = input(&kernel.code, &target.profile, &occupancy);
    let input = question(&made, &[]);
    let all = cycles(&input).expect("it runs");
    let without = cycles_without(&input, Mechanism::BlockTurnover).expect("it runs");
    let turnover = target.profile.block_turnover.expect("it has a figure");
    assert!(all > 99.0 * turnover, "{all}");
    assert!(all - without <= 99.0 * turnover, "{all} {without}");
    assert!(all > 2.0 * without, "{all} {without}");
}

#[test]
fn each_mechanism_can_be_taken_away() {
    let target = Target::new("rtx-2080-ti");
    let kernel = staged(4.0);
    let occupancy = target.occupancy(&kernel.code);
    let made = input(&kernel.code, &target.profile, &occupancy);
    let input = question(&made, &[]);
    let all = cycles(&input).expect("it runs");
    for mechanism in Mechanism::ALL {
        let without = cycles_without(&input, mechanism).expect("it runs");
        let name = mechanism.name();
        assert!(without.is_finite() && without > 0.0, "{name}: {without}");
        match mechanism {
            // Nothing of this kernel is read twice.
            Mechanism::Caches => assert_eq!(without, all, "{name}"),
            // There is work enough to fill a place that is empty, and for the time in which blocks are started.
            Mechanism::BlockTurnover => assert!(all / without < 1.0001, "{name}"),
            // What overlaps is what takes longer without it.
            Mechanism::LoadsTogether => assert!(without > all, "{name}: {without} {all}"),
            _ => assert!(without < all, "{name}: {without} {all}"),
        }
    }
    let mut names = Mechanism::ALL.map(Mechanism::name).to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Mechanism::ALL.len());
}

#[test]
fn the_interval_spans_what_may_overlap_and_what_was_assumed() {
    let target = Target::new("a100-sxm4-40gb");
    let width = |kernel: &Kernel| {
        let estimate = target.estimate(ModelId::Auto, &kernel.code);
        let (cycles, [low, high]) = (
            estimate.cycles.expect("it runs"),
            estimate.interval.expect("an interval"),
        );
        assert!(
            0.0 < low && low <= cycles && cycles <= high,
            "{low} {cycles} {high}"
        );
        high / low
    };
    let known = staged(4.0);
    let mut guessed = staged(4.0);
    guessed.code.assumptions.push(Assumption {
        symbol: Assumed::Named("n".to_owned()),
        value: "1024".to_owned(),
        source: "default".to_owned(),
    });
    let mut unknown = staged(4.0);
    unknown.code.accesses[0].transactions_per_request = None;
    unknown.code.accesses[0].bytes_moved_per_request = None;
    let mut aligned = staged(4.0);
    aligned.code.assumptions.push(Assumption {
        symbol: Assumed::Alignment,
        value: "256 bytes".to_owned(),
        source: "default".to_owned(),
    });
    assert!(width(&guessed) > 3.9 * width(&known));
    assert!(width(&unknown) > 1.2 * width(&known));
    assert_eq!(width(&aligned), width(&known));
    // One resource alone: there is nothing that may overlap.
    let alone = Kernel::new([1, 1, 1], [32, 1, 1]).flow(vec![fp32(1.0, &[], 1)]);
    assert!(width(&alone) < 2.1);
}

/// A load of 4 bytes at this address.
fn at(linear: LinearAddress, array: &str, op: Op, sectors: f64) -> ExecutedAccess {
    ExecutedAccess {
        object: Object::Array(array.into()),
        op,
        pattern: Pattern::Coalesced,
        transactions_per_request: Some(sectors),
        ideal_transactions_per_request: Some(4.0),
        transaction_bytes: 32,
        bytes_moved_per_request: Some(sectors * 32.0),
        by_width: None,
        expected: None,
        linear: Some(linear),
        ..common::access(2)
    }
}

/// Blocks of 128 x 2 threads read 22 rows of an image for 8 rows of results: 14 are the next blocks' too.
fn rows_of_a_stencil(width: u64) -> Kernel {
    let row = 4 * i64::try_from(width).expect("small");
    let mut kernel = Kernel::new([width / 128, 512, 1], [128, 2, 1]);
    kernel.code.accesses = vec![
        at(
            LinearAddress {
                constant: 0,
                thread: [4, row, 0],
                block: [512, 8 * row, 0],
                loops: vec![2 * row],
            },
            "in",
            Op::Load,
            4.0,
        ),
        at(
            LinearAddress {
                constant: 0,
                thread: [4, row, 0],
                block: [512, 8 * row, 0],
                loops: vec![2 * row],
            },
            "out",
            Op::Store,
            4.0,
        ),
    ];
    kernel.flow(vec![
        repeat(11.0, vec![touch(0, &[]), fp32(1.0, &[0], 2)], 2),
        repeat(4.0, vec![touch(1, &[])], 3),
    ])
}

#[test]
fn a_row_of_blocks_finds_what_the_row_before_has_read() {
    let target = Target::new("rtx-2080-ti");
    let read = |width: u64| {
        let kernel = rows_of_a_stencil(width);
        let estimate = target.estimate(ModelId::Auto, &kernel.code);
        // Results are written once.
        let image = 4.0 * width as f64 * 4096.0;
        estimate.detail["dram_bytes"] / image - 1.0
    };
    let narrow = read(4096);
    assert!(
        (0.95..1.1).contains(&narrow),
        "{narrow} times the image is read"
    );
    // A row of blocks that touches more than L2 holds: 22 rows for each 8.
    let wide = read(128 * 1024);
    assert!((2.6..2.9).contains(&wide), "{wide} times the image is read");
}

#[test]
fn a_block_is_given_its_own_sectors_once() {
    let target = Target::new("rtx-2080-ti");
    let kernel = rows_of_a_stencil(4096);
    let estimate = target.estimate(ModelId::Auto, &kernel.code);
    let blocks = 32.0 * 512.0;
    let expected = blocks * (22.0 + 8.0) * 512.0;
    let l2 = estimate.detail["l2_bytes"];
    assert!((l2 / expected - 1.0).abs() < 0.01, "{l2} {expected}");
}

#[test]
fn iterations_that_are_written_out_wait_once() {
    let target = Target::new("a100-sxm4-40gb");
    let time = |together: f64| {
        let mut kernel = Kernel::new([1, 1, 1], [32, 1, 1]);
        let load = kernel.global(Op::Load, 1.0, 1.0, 32, 2);
        kernel.code.accesses[load].together = together;
        kernel.code.resources.registers_per_thread = 32;
        let body = vec![touch(load, &[]), fp32(1.0, &[load], 2)];
        let kernel = kernel.flow(vec![repeat(1024.0, body, 2)]);
        target.cycles(ModelId::Auto, &kernel.code)
    };
    let (one, four) = (time(1.0), time(4.0));
    assert!((3.5..4.1).contains(&(one / four)), "{one} {four}");
    // 32 registers hold no more than 16 words that were loaded.
    assert_eq!(time(64.0), time(16.0));
}

#[test]
fn a_wide_load_has_no_conflicts_of_its_parts() {
    let target = Target::new("a100-sxm4-40gb");
    let time = |merged: f64| {
        let mut kernel = Kernel::new([4096, 1, 1], [256, 1, 1]);
        let read = kernel.shared(Op::Load, 4.0, 2.0, 2);
        kernel.code.accesses[read].bytes_per_lane = 8;
        kernel.code.accesses[read].merged = merged;
        let kernel = kernel.flow(vec![repeat(64.0, vec![touch(read, &[])], 2)]);
        let estimate = target.estimate(ModelId::Auto, &kernel.code);
        estimate.detail["bound_shared"]
    };
    assert!((time(1.0) / time(2.0) - 2.0).abs() < 1e-9);
    // No fewer passes than without conflicts.
    assert_eq!(time(4.0), time(2.0));
}
