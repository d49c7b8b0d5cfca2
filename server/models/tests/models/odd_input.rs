//! What no model may stumble over: all of them answer, or say what they lack while the others answer.

use crate::common::{Code, Kernel, Target, compute, fp32, input, int, question, repeat, touch};
use warplens_facts::facts::{Node, Op};
use warplens_machine::{Mix, Pipe};
use warplens_models::{Estimate, ModelId, Question, estimate};

const GPUS: [&str; 4] = ["geforce-8800-gtx", "gtx-280", "a100-sxm4-40gb", "mi210"];

/// A finite number of cycles whose parts and lines add up, or a reason.
#[track_caller]
fn sound(model: ModelId, estimate: &Estimate) {
    let name = model.name();
    let Some(cycles) = estimate.cycles else {
        assert!(estimate.why.is_some(), "{name}: no reason");
        return;
    };
    assert!(cycles.is_finite() && cycles >= 0.0, "{name}: {cycles}");
    let parts = &estimate.breakdown;
    let sum = parts.compute
        + parts.memory_bandwidth
        + parts.memory_latency
        + parts.shared
        + parts.divergence
        + parts.synchronisation;
    assert!(
        (sum - cycles).abs() <= 1e-6 * cycles,
        "{name}: {sum} {cycles}"
    );
    let lines: f64 = estimate.lines.iter().map(|(_, cycles)| cycles).sum();
    assert!(
        estimate.lines.is_empty() || (lines - cycles).abs() <= 1e-6 * cycles,
        "{name}: {lines} {cycles}"
    );
}

/// Every model on every GPU.
fn each(code: &Code, see: impl Fn(ModelId, &str, &Estimate)) {
    for gpu in GPUS {
        let target = Target::new(gpu);
        for model in ModelId::ALL {
            let estimate = target.estimate(model, code);
            sound(model, &estimate);
            see(model, gpu, &estimate);
        }
    }
}

fn kernel() -> Kernel {
    Kernel::new([600, 1, 1], [256, 1, 1])
}

/// A load and what is made of it, so often.
fn streaming(trips: f64) -> Kernel {
    let mut kernel = kernel();
    let load = kernel.global(Op::Load, 4.0, 4.0, 32, 1);
    let store = kernel.global(Op::Store, 4.0, 4.0, 32, 3);
    let body = vec![int(2.0, 1), touch(load, &[]), fp32(4.0, &[load], 2)];
    kernel.flow(vec![repeat(trips, body, 1), touch(store, &[])])
}

#[test]
fn computation_alone_and_memory_alone() {
    let computes = kernel().flow(vec![repeat(100.0, vec![fp32(8.0, &[], 1)], 1)]);
    each(&computes.code, |model, gpu, estimate| {
        // The model's price is of what the launch counts, and these facts count nothing.
        if model != ModelId::Linear && estimate.cycles.is_some() {
            assert!(
                estimate.cycles > Some(100.0),
                "{} {gpu}: {estimate:?}",
                model.name()
            );
            assert_eq!(estimate.breakdown.memory_bandwidth, 0.0);
            assert_eq!(estimate.breakdown.memory_latency, 0.0);
        }
    });
    let mut copies = kernel();
    let load = copies.global(Op::Load, 4.0, 4.0, 32, 1);
    let store = copies.global(Op::Store, 4.0, 4.0, 32, 1);
    let copies = copies.flow(vec![touch(load, &[]), touch(store, &[load])]);
    each(&copies.code, |model, gpu, estimate| {
        assert!(
            estimate.cycles.is_none_or(|cycles| cycles > 0.0),
            "{} {gpu}",
            model.name()
        );
    });
}

#[test]
fn nothing_at_all() {
    each(&kernel().code, |_, _, _| {});
    let waits = kernel().flow(vec![Node::Barrier { line: 1 }]);
    each(&waits.code, |_, _, _| {});
    let turns = kernel().flow(vec![repeat(1e18, Vec::new(), 1)]);
    each(&turns.code, |_, _, _| {});
}

#[test]
fn no_warps() {
    let code = streaming(10.0).code;
    for gpu in GPUS {
        let target = Target::new(gpu);
        for model in ModelId::ALL {
            let mut occupancy = target.occupancy(&code);
            let made = input(&code, &target.profile, &occupancy);
            let capped = Question {
                warps_per_sm: Some(0),
                ..question(&made, &[])
            };
            sound(model, &estimate(model, &capped));
            occupancy.active_blocks_per_sm = 0;
            occupancy.active_warps_per_sm = 0;
            let none = estimate(
                model,
                &question(&input(&code, &target.profile, &occupancy), &[]),
            );
            assert_eq!(none.cycles, None, "{}", model.name());
            let why = none.why.expect("a reason");
            assert!(why.contains("no block"), "{}: {why}", model.name());
        }
    }
}

#[test]
fn as_many_iterations_as_there_may_be() {
    for trips in [1e9, 1e18] {
        each(&streaming(trips).code, |model, gpu, estimate| {
            if model != ModelId::Linear {
                assert!(
                    estimate.cycles.is_none_or(|cycles| cycles > trips),
                    "{} {gpu}: {:?}",
                    model.name(),
                    estimate.cycles
                );
            }
        });
    }
    // Loops in loops, and a fraction of an instruction each time.
    let body = vec![repeat(1e18, vec![int(1e-9, 2)], 2), int(1.0, 3)];
    let nested = kernel().flow(vec![repeat(1e18, body, 1)]);
    each(&nested.code, |_, _, _| {});
}

#[test]
fn who_lacks_a_figure_says_so_and_the_others_answer() {
    let doubles = kernel().flow(vec![compute(Mix::from([(Pipe::Fp64, 4.0)]), 4.0, &[], 1)]);
    let mut profile = (*Target::new("gtx-280").profile).clone();
    profile.departure_del_uncoal = None;
    let no_doubles = Target::new("geforce-8800-gtx");
    for (code, profile, model, named) in [
        (
            &streaming(10.0).code,
            &profile,
            ModelId::MwpCwp,
            "departure delays",
        ),
        (&doubles.code, &*no_doubles.profile, ModelId::Trace, "fp64"),
    ] {
        let occupancy = no_doubles.occupancy(code);
        for other in ModelId::ALL {
            let estimate = estimate(other, &question(&input(code, profile, &occupancy), &[]));
            sound(other, &estimate);
            if other == model {
                let why = estimate.why.expect("a reason");
                assert_eq!(estimate.cycles, None, "{why}");
                assert!(why.contains(named), "{why}");
            } else {
                assert!(
                    estimate.cycles.is_some(),
                    "{}: {:?}",
                    other.name(),
                    estimate.why
                );
            }
        }
    }
}
