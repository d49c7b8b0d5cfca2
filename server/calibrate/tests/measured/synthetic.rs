//! A machine whose parameters are known, measured with noise: the fit finds them again.

use crate::machine::{Machine, counts, nearest, opencl_counts};
use proptest::prelude::*;
use warplens_calibrate::{ProfileFit, compare, fit, profile};
use warplens_machine::{Profiles, Property};

fn fitted(machine: &Machine, seed: u64, noise: f64) -> ProfileFit {
    fit(&machine.measured(seed, noise), &nearest(), counts())
}

/// How far a fitted figure is from the machine's.
fn error(fitted: &ProfileFit, key: &str, truth: f64) -> f64 {
    let found = fitted.figures.get(key);
    let value = found
        .unwrap_or_else(|| panic!("{key} is missing: {:?}", fitted.missing))
        .value;
    (value / truth - 1.0).abs()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn latencies_and_bandwidths_are_found_within_three_percent(seed: u64, scale in 0.5f64..2.0) {
        let machine = Machine::default().scaled(scale);
        let fitted = fitted(&machine, seed, 0.01);
        for (key, truth) in machine.latencies().into_iter().chain(machine.bandwidths()) {
            let error = error(&fitted, key, truth);
            prop_assert!(error < 0.03, "{key}: {:.1} %", 100.0 * error);
        }
        prop_assert!(fitted.missing.is_empty(), "{:?}", fitted.missing);
    }

    #[test]
    fn weights_are_found_within_five_percent(seed: u64, scale in 0.3f64..3.0, opencl: bool) {
        let machine = Machine::default().scaled(scale);
        let fitted = if opencl {
            fit(&machine.measured_through_opencl(seed, 0.005), &nearest(), opencl_counts())
        } else {
            fitted(&machine, seed, 0.005)
        };
        let weights = fitted.weights.expect("weights");
        let mut told = 0;
        for (property, truth) in &machine.weights {
            if !weights.undetermined.contains(property) {
                let error = (weights.weights[property] / truth - 1.0).abs();
                prop_assert!(error < 0.05, "{property}: {:.1} %", 100.0 * error);
                told += 1;
            }
        }
        prop_assert!(told >= 20, "{told} told apart");
    }

    #[test]
    fn departure_delays_are_those_with_which_the_model_was_run(seed: u64, latency in 300.0f64..900.0, line in 20.0f64..60.0, sector in 4.0f64..30.0) {
        let machine = Machine { mem_ld: latency, departure_coalesced: line, departure_uncoalesced: sector, ..Machine::default() };
        let fitted = fitted(&machine, seed, 0.02);
        for (key, truth) in [("mem_ld", latency), ("departure_del_coal", line), ("departure_del_uncoal", sector)] {
            let error = error(&fitted, key, truth);
            prop_assert!(error < 0.05, "{key}: {:.1} %", 100.0 * error);
        }
    }

    #[test]
    fn any_part_of_a_file_gives_a_profile_that_loads(seed: u64, kept in proptest::collection::vec(any::<bool>(), 17)) {
        let machine = Machine::default();
        let mut measured = machine.measured(seed, 0.3);
        let benches = machine.benches();
        measured.samples.retain(|sample| {
            benches.iter().position(|bench| *bench == sample.bench).is_none_or(|at| kept[at % kept.len()])
        });
        let nearest = nearest();
        let mut fitted = fit(&measured, &nearest, counts());
        let (text, loaded) = profile::write(&measured, &mut fitted, &nearest, "some-gpu").unwrap();
        prop_assert_eq!(&loaded.id, "some-gpu");
        prop_assert!(text.contains("estimated: as on"));
        for (at, bench) in benches.iter().enumerate() {
            // Of what was not measured nothing is said to have been.
            if !kept[at % kept.len()] {
                let word = format!("({bench}, ");
                prop_assert!(!text.contains(&word), "{bench}");
            }
        }
    }
}

/// A price means the same whichever way it was measured.
#[test]
fn the_opencl_kernels_have_the_operations_of_the_cuda_ones() {
    let (cuda, opencl) = (counts(), opencl_counts());
    assert!(cuda.len() >= 100, "{}", cuda.len());
    assert!(cuda.keys().eq(opencl.keys()));
    for (which, operations) in cuda {
        let (kernel, threads) = which;
        let mut operations = operations.clone();
        // `blockIdx.x * blockDim.x + threadIdx.x` is an operation of OpenCL's own.
        for name in ["int_add", "int_mul"] {
            let property = Property::named(name).expect("a property");
            if let Some(count) = operations.get_mut(&property) {
                *count -= *threads as f64;
            }
        }
        operations.retain(|_, count| *count > 0.0);
        assert_eq!(operations, opencl[which], "{kernel}, {threads}");
    }
}

#[test]
fn every_figure_says_where_it_comes_from() {
    let machine = Machine::default();
    let measured = machine.measured(1, 0.01);
    let nearest = nearest();
    let mut fitted = fit(&measured, &nearest, counts());
    let (_, loaded) = profile::write(&measured, &mut fitted, &nearest, "synthetic").unwrap();
    assert_eq!(
        loaded.figures()["l2_latency"].source,
        format!(
            "measured by warplens calibrate {} (latency_global, {})",
            measured.warplens, measured.date
        )
    );
    assert!(
        loaded.figures()["sms"]
            .source
            .starts_with("reported by the driver")
    );
    assert!(
        loaded.figures()["register_unit"]
            .source
            .starts_with("estimated: as on ")
    );
    assert_eq!(
        loaded.figures()["simd_engine"].source,
        "derived: fp32_lanes"
    );
    assert_eq!(loaded.compute_capability, Some((9, 0)));
    assert!(
        loaded.linear_weights[&Property::Launch]
            .source
            .contains("(linear, ")
    );
    for word in ["MWP-CWP", "linear model", "conflict", "atomic"] {
        assert!(
            fitted.notes.iter().any(|note| note.contains(word)),
            "{word}: {:?}",
            fitted.notes
        );
    }
}

#[test]
fn a_comparison_names_what_changed_with_its_ratio() {
    let machine = Machine::default();
    let measured = machine.measured(1, 0.0);
    let nearest = nearest();
    let mut fitted = fit(&measured, &nearest, counts());
    let (_, loaded) = profile::write(&measured, &mut fitted, &nearest, "synthetic").unwrap();
    let changes = compare::changes(&loaded, &nearest);
    let l2 = changes
        .iter()
        .find(|change| change.key == "l2_latency")
        .expect("a change");
    assert_eq!(l2.from, nearest.l2_latency);
    let ratio = machine.l2_latency / nearest.l2_latency.unwrap();
    assert!((l2.ratio().unwrap() / ratio - 1.0).abs() < 1e-3);
    assert!(!changes.iter().any(|change| change.key == "register_unit"));
    assert!(compare::changes(&nearest, &nearest).is_empty());
}

#[test]
fn nonsense_in_a_file_costs_what_it_concerns() {
    let machine = Machine::default();
    let mut measured = machine.measured(1, 0.0);
    for sample in &mut measured.samples {
        match sample.bench.as_str() {
            "barrier" => sample.repetitions = vec![f64::NAN, 1e300],
            "latency_shared" => sample.repetitions = vec![-3.0],
            "launch" => sample.parameters.clear(),
            "bandwidth_l2" => "parsecs".clone_into(&mut sample.unit),
            "bandwidth_l1" => sample.repetitions = vec![1e30],
            _ => {}
        }
    }
    measured.device.properties.insert("sms".to_owned(), -3.0);
    measured
        .device
        .properties
        .insert("shared_per_block".to_owned(), 1e7);
    measured.device.name = "a \"name\"\nwith\\all".to_owned();
    let nearest = nearest();
    let mut fitted = fit(&measured, &nearest, counts());
    let (text, loaded) = profile::write(&measured, &mut fitted, &nearest, "odd").unwrap();
    assert!(Profiles::from_toml("odd.toml", &text).is_ok());
    for key in [
        "barrier_latency",
        "shared_latency",
        "launch_overhead_us",
        "l2_bandwidth_gb_s",
        "l1_bandwidth_b_clk",
        "shared_per_block",
        "sms",
    ] {
        assert!(
            fitted.missing.iter().any(|line| line.contains(key)),
            "{key}: {:?}",
            fitted.missing
        );
        assert!(loaded.figures()[key].is_estimated(), "{key}");
    }
}
