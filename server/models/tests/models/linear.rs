//! The linear model: what is counted, what it costs, and prices from measurements.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{Code, Kernel, Target, access, input, named, question, sum, thread};
use proptest::prelude::*;
use warplens_facts::facts::{Arithmetic, Number, Op, Operation, Operator, Pattern, Space, Stride};
use warplens_machine::{Direction, Memory, Profile, Profiles, Property, Reach};
use warplens_models::linear::fit::{self, Measurement, fit, predict};
use warplens_models::linear::{properties, weight};
use warplens_models::{Bottleneck, Estimate, Factor, ModelId, Object, Question};

const GPU: &str = "a100-sxm4-40gb";

fn global(direction: Direction, reach: Reach) -> Property {
    Property::Access {
        memory: Memory::Global(reach),
        direction,
        bits: 32,
    }
}

fn single(of: fn(Number) -> Arithmetic) -> Property {
    Property::Arithmetic(of(Number::Single))
}

fn operation(operator: Operator, line: u32, warps: f64, threads: f64) -> Operation {
    Operation {
        operator,
        line,
        threads,
        warps,
    }
}

fn arithmetic(of: Arithmetic, line: u32, warps: f64, threads: f64) -> Operation {
    operation(Operator::Arithmetic(of), line, warps, threads)
}

/// `out[i, j] = 2 * a[i, j] + b[i, j]` over this many warps, on line 3.
fn example(warps: f64) -> Code {
    let mut kernel = Kernel::new([warps as u64 / 8, 1, 1], [256, 1, 1]);
    kernel.global(Op::Load, 4.0, 4.0, 32, 3);
    kernel.global(Op::Load, 4.0, 4.0, 32, 3);
    kernel.global(Op::Store, 4.0, 4.0, 32, 3);
    for access in &mut kernel.code.accesses {
        access.requests = Some(warps);
    }
    kernel.code.operations = vec![
        arithmetic(Arithmetic::Sum(Number::Single), 3, warps, 32.0 * warps),
        arithmetic(Arithmetic::Product(Number::Single), 3, warps, 32.0 * warps),
    ];
    kernel.code
}

fn estimate(code: &Code) -> Estimate {
    Target::new(GPU).estimate(ModelId::Linear, code)
}

fn without(code: &Code, factor: Factor) -> Estimate {
    Target::new(GPU).estimate_without(ModelId::Linear, code, &[factor])
}

fn properties_of(code: &Code) -> BTreeMap<Property, f64> {
    let target = Target::new(GPU);
    let occupancy = target.occupancy(code);
    properties(&question(&input(code, &target.profile, &occupancy), &[]))
}

/// The A100 with a table of weights.
fn fitted(table: &str) -> Profile {
    let text = include_str!("../../../../hw-profiles/a100-sxm4-40gb.toml");
    Profiles::from_toml("fitted.toml", &format!("{text}\n{table}")).expect("a profile")
}

fn estimate_on(profile: &Profile, code: &Code) -> Estimate {
    let occupancy = Target::new(GPU).occupancy(code);
    warplens_models::estimate(
        ModelId::Linear,
        &question(&input(code, profile, &occupancy), &[]),
    )
}

#[track_caller]
fn close(found: f64, wanted: f64) {
    let apart = (found - wanted).abs();
    assert!(apart <= 1e-9 * wanted.abs().max(1e-300), "{found} {wanted}");
}

#[test]
fn the_example_of_the_paper_has_its_statistics() {
    let warps = 4096.0;
    let nm = 32.0 * warps;
    let found = properties_of(&example(warps));
    let wanted = BTreeMap::from([
        (global(Direction::Load, Reach::Unit), 2.0 * nm),
        (global(Direction::Store, Reach::Unit), nm),
        (single(Arithmetic::Product), nm),
        (single(Arithmetic::Sum), nm),
        (Property::Block, warps / 8.0),
        (Property::Launch, 1.0),
        // Bytes of loads and of stores: the lesser of both.
        (Property::Overlap, 4.0 * nm),
    ]);
    assert_eq!(found, wanted);
    let detail = estimate(&example(warps)).detail;
    for (property, count) in wanted {
        assert_eq!(
            detail.get(&property.to_string()),
            Some(&count),
            "{property}"
        );
    }
    assert_eq!(detail["global_load_32_stride1"], 2.0 * nm);
}

#[test]
fn cycles_are_counts_times_prices() {
    let code = example(4096.0);
    let found = estimate(&code);
    let target = Target::new(GPU);
    let clock = target.profile.cycles_per_second() * 1e-12;
    let mut wanted = 0.0;
    for (property, count) in properties_of(&code) {
        let cost = weight(&target.profile, property).expect("a price") * count * clock;
        close(found.detail[&format!("{property}.cycles")], cost);
        if property != Property::Launch {
            wanted += cost;
        }
    }
    close(found.cycles.expect("cycles"), wanted);
    assert_eq!(found.bottleneck, Some(Bottleneck::MemoryBandwidth));
    // 12 bytes per thread at the bandwidth that streaming kernels reach.
    let seconds = 12.0 * 32.0 * 4096.0 / (1555e9 * 0.89);
    close(found.breakdown.memory_bandwidth, seconds * 1.41e9);
    let lines: f64 = found.lines.iter().map(|line| line.1).sum();
    close(lines, wanted);
    assert_eq!(found.detail["weights_fitted"], 0.0);
}

#[test]
fn rules_follow_the_published_rates() {
    let profile = &Target::new(GPU).profile;
    let price = |property| weight(profile, property).expect("a price");
    let slot = 1e12 / (1.41e9 * 108.0);
    close(price(single(Arithmetic::Sum)), slot / 64.0);
    close(
        price(Property::Arithmetic(Arithmetic::Sum(Number::Double))),
        slot / 32.0,
    );
    close(
        price(single(Arithmetic::Special)),
        slot / 16.0 + 4.0 * slot / 64.0,
    );
    close(price(Property::Launch), profile.launch_overhead_us * 1e6);
    close(price(Property::Barrier), slot * 2.0 / 32.0);
    close(price(Property::Overlap), 0.0);
    // A wider reach never costs less, and what fills the gaps makes it cheaper.
    let reach = |reach| price(global(Direction::Load, reach));
    let strided = |stride, used| reach(Reach::Stride { stride, used });
    let wide = |quarters| reach(Reach::Uncoalesced { quarters });
    assert!(reach(Reach::Uniform) < reach(Reach::Unit));
    close(strided(2, 1), 2.0 * reach(Reach::Unit));
    close(strided(3, 1), 3.0 * reach(Reach::Unit));
    assert!(strided(2, 2) < strided(2, 1) && strided(2, 2) >= reach(Reach::Unit));
    close(wide(1), 8.0 * reach(Reach::Unit));
    assert!(wide(4) <= wide(3) && wide(3) <= wide(2) && wide(2) < wide(1));
    // Every property has a price on a GPU that has all units, and none is negative.
    for property in Property::all() {
        assert!(price(property) >= 0.0, "{property}");
        assert_eq!(Property::named(&property.to_string()), Some(property));
    }
}

#[test]
fn a_missing_rate_is_named() {
    let mut code = example(4096.0);
    let double = arithmetic(Arithmetic::Sum(Number::Double), 4, 8.0, 256.0);
    code.operations.push(double);
    let found = Target::new("geforce-8800-gtx").estimate(ModelId::Linear, &code);
    assert_eq!(found.cycles, None);
    assert!(found.why.is_some_and(|why| why.contains("fp64_lanes")));
}

/// One access of 4 bytes with its neighbours this many bytes apart.
fn strided(bytes: i64, fill: impl Fn(&mut Code)) -> Property {
    let mut kernel = Kernel::new([8, 1, 1], [256, 1, 1]);
    kernel.global(Op::Load, 8.0, 4.0, 32, 3);
    let only = &mut kernel.code.accesses[0];
    only.pattern = Pattern::Strided;
    only.index = Some(Arc::new(sum(0, &[(&thread(0), 2)])));
    only.requests = Some(64.0);
    only.stride = Some(Stride {
        bytes,
        text: String::new(),
        symbolic: false,
        in_bytes: false,
        unit_elsewhere: false,
    });
    fill(&mut kernel.code);
    let found = properties_of(&kernel.code);
    let mut found = found
        .into_iter()
        .filter(|(property, _)| matches!(property, Property::Access { .. }));
    let (property, _) = found.next().expect("an access");
    assert!(found.next().is_none());
    property
}

#[test]
fn accesses_are_classed_by_stride_and_by_what_is_used() {
    let class = |reach| global(Direction::Load, reach);
    let alone = |bytes| strided(bytes, |_| ());
    let with = |bytes, shift: i64| {
        strided(bytes, |code| {
            let mut twin = code.accesses[0].clone();
            twin.index = Some(Arc::new(sum(shift, &[(&thread(0), 2)])));
            code.accesses.push(twin);
        })
    };
    let stride = |stride, used| class(Reach::Stride { stride, used });
    assert_eq!(alone(8), stride(2, 1));
    assert_eq!(alone(-12), stride(3, 1));
    assert_eq!(with(8, 1), stride(2, 2));
    assert_eq!(with(8, 2), stride(2, 1));
    assert_eq!(with(12, -1), stride(3, 2));
    assert_eq!(alone(4096), class(Reach::Uncoalesced { quarters: 1 }));
    assert_eq!(alone(4), class(Reach::Unit));
    let walks = strided(4096, |code| {
        if let Some(stride) = &mut code.accesses[0].stride {
            stride.unit_elsewhere = true;
        }
    });
    assert_eq!(walks, class(Reach::Uncoalesced { quarters: 4 }));
    let by_data = strided(4, |code| {
        code.accesses[0].pattern = Pattern::DataDependent;
    });
    assert_eq!(by_data, class(Reach::Uncoalesced { quarters: 1 }));
    let same = strided(0, |code| code.accesses[0].pattern = Pattern::Broadcast);
    assert_eq!(same, class(Reach::Uniform));
}

/// Conflicts, walks down a column, split warps and barriers.
fn troubled() -> Code {
    let mut kernel = Kernel::new([512, 1, 1], [256, 1, 1]);
    kernel.global(Op::Load, 32.0, 4.0, 32, 3);
    kernel.shared(Op::Load, 32.0, 1.0, 4);
    kernel.global(Op::Store, 4.0, 4.0, 32, 7);
    for access in &mut kernel.code.accesses {
        access.requests = Some(4096.0);
    }
    kernel.code.operations = vec![
        arithmetic(Arithmetic::Sum(Number::Single), 5, 4096.0, 16.0 * 4096.0),
        operation(Operator::Barrier, 6, 4096.0, 32.0 * 4096.0),
    ];
    kernel.code
}

#[test]
fn each_factor_takes_away_its_own() {
    let code = troubled();
    let now = estimate(&code);
    let cycles = |estimate: &Estimate| estimate.cycles.expect("cycles");
    assert_eq!(now.detail["bank_conflict"], 31.0 * 4096.0);
    let gone = without(&code, Factor::BankConflicts);
    assert_eq!(gone.detail.get("bank_conflict"), None);
    assert!(gone.breakdown.shared < now.breakdown.shared);
    close(
        cycles(&now) - cycles(&gone),
        now.detail["bank_conflict.cycles"],
    );

    let gone = without(&code, Factor::Uncoalesced);
    assert_eq!(gone.detail["global_load_32_stride1"], 32.0 * 4096.0);
    assert!(gone.breakdown.memory_bandwidth < now.breakdown.memory_bandwidth);

    assert!(now.breakdown.divergence > 0.0);
    assert_eq!(now.detail["idle_lanes"], 16.0 * 4096.0);
    close(now.breakdown.divergence, now.detail["f32_add.cycles"]);
    let gone = without(&code, Factor::Divergence);
    assert_eq!(gone.breakdown.divergence, 0.0);
    close(cycles(&now) - cycles(&gone), now.breakdown.divergence);

    let gone = without(&code, Factor::Synchronisation);
    close(cycles(&now) - cycles(&gone), now.breakdown.synchronisation);
    assert!(now.breakdown.synchronisation > 0.0);
    // Nothing here knows of latency or of how many warps there are.
    for factor in [Factor::Latency, Factor::Occupancy] {
        assert_eq!(without(&code, factor), now);
    }
}

#[test]
fn one_access_can_be_imagined_ideal() {
    let code = troubled();
    let target = Target::new(GPU);
    let occupancy = target.occupancy(&code);
    let ideal = |at| {
        let made = input(&code, &target.profile, &occupancy);
        let input = Question {
            ideal_access: Some(at),
            ..question(&made, &[])
        };
        warplens_models::estimate(ModelId::Linear, &input).detail
    };
    assert!(ideal(0).contains_key("global_load_32_stride1"));
    assert!(ideal(0).contains_key("bank_conflict"));
    assert!(!ideal(1).contains_key("bank_conflict"));
}

#[test]
fn fitted_prices_come_before_the_rule_and_overlap_is_the_lesser_of_both() {
    let code = example(4096.0);
    let nm = 32.0 * 4096.0;
    // 1 ps a byte each way, and most of the lesser way is hidden.
    let table = "[linear_weights]\n\
        global_load_32_stride1 = { value = 4, source = \"a test\" }\n\
        global_store_32_stride1 = { value = 4, source = \"a test\" }\n\
        launch = { value = 5e6, source = \"a test\" }\n";
    let overlap = |ps: f64| {
        let line = format!("overlap = {{ value = {ps:?}, source = \"a test\" }}\n");
        estimate_on(&fitted(&format!("{table}{line}")), &code)
    };
    let clock = 1.41e9 * 1e-12;
    close(overlap(0.0).breakdown.memory_bandwidth, 12.0 * nm * clock);
    let found = overlap(-0.75);
    close(found.breakdown.memory_bandwidth, (12.0 - 3.0) * nm * clock);
    close(found.launch_overhead_ms, 5e-3);
    let milliseconds = found.cycles.expect("cycles") / 1.41e6;
    close(found.time_ms.expect("a time"), milliseconds);
    assert_eq!(found.detail["weights_fitted"], 4.0);
    let lines: f64 = found.lines.iter().map(|line| line.1).sum();
    close(lines, found.cycles.expect("cycles"));
    // No more is hidden than there is.
    close(overlap(-100.0).breakdown.memory_bandwidth, 8.0 * nm * clock);
}

// ---- fitting -----------------------------------------------------------------------------------

/// Prices of a made-up GPU in picoseconds.
fn planted() -> BTreeMap<Property, f64> {
    BTreeMap::from([
        (global(Direction::Load, Reach::Unit), 2.9),
        (global(Direction::Store, Reach::Unit), 3.1),
        (
            global(Direction::Load, Reach::Stride { stride: 2, used: 1 }),
            5.7,
        ),
        (
            global(Direction::Load, Reach::Stride { stride: 2, used: 2 }),
            3.3,
        ),
        (
            global(Direction::Store, Reach::Uncoalesced { quarters: 4 }),
            9.5,
        ),
        (single(Arithmetic::Sum), 0.103),
        (single(Arithmetic::Product), 0.109),
        (single(Arithmetic::Quotient), 1.9),
        (single(Arithmetic::Special), 0.81),
        (Property::Barrier, 0.62),
        (Property::Block, 610.0),
        (Property::Launch, 4.8e6),
        (Property::Overlap, -0.55),
    ])
}

/// Kernels like the papers': each property alone at four sizes, loads with stores, and the empty kernel.
fn suite() -> Vec<BTreeMap<Property, f64>> {
    let mut rows = Vec::new();
    for blocks in [1.0, 256.0, 4096.0, 65536.0] {
        rows.push(BTreeMap::from([
            (Property::Launch, 1.0),
            (Property::Block, blocks),
        ]));
    }
    for size in [2e6, 8e6, 3.2e7, 1.28e8] {
        for &property in planted().keys() {
            let much = match property {
                Property::Launch | Property::Block | Property::Overlap => continue,
                Property::Access { .. } => 1.0,
                _ => 64.0,
            };
            rows.push(BTreeMap::from([
                (Property::Launch, 1.0),
                (Property::Block, size / 256.0),
                (property, size * much),
            ]));
        }
        for (loads, stores) in [(1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (1.0, 2.0)] {
            rows.push(BTreeMap::from([
                (Property::Launch, 1.0),
                (Property::Block, size / 256.0),
                (global(Direction::Load, Reach::Unit), loads * size),
                (global(Direction::Store, Reach::Unit), stores * size),
                (Property::Overlap, 4.0 * f64::min(loads, stores) * size),
            ]));
        }
    }
    rows
}

fn measured(noise: &mut dyn FnMut() -> f64) -> Vec<Measurement> {
    let rows = suite().into_iter().enumerate();
    rows.map(|(at, properties)| Measurement {
        kernel: format!("kernel {at}"),
        seconds: predict(&planted(), &properties) * (1.0 + noise()),
        properties,
    })
    .collect()
}

#[test]
fn planted_prices_are_found_again() {
    let found = fit(&measured(&mut || 0.0)).expect("a fit");
    assert_eq!(found.undetermined, []);
    for (property, ps) in planted() {
        let apart = (found.weights[&property] - ps).abs() / ps.abs();
        assert!(
            apart < 1e-9,
            "{property}: {} {ps}",
            found.weights[&property]
        );
    }
    assert!(found.largest_error() < 1e-10);
    assert!(found.mean_error() < 1e-10);
}

#[test]
fn noise_costs_no_more_than_twice_itself() {
    for (seed, noise) in [(1_u64, 0.02), (2, 0.02), (3, 0.05), (4, 0.1)] {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut chance = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        };
        let found = fit(&measured(&mut || noise * chance())).expect("a fit");
        assert!(
            found.mean_error() < noise,
            "{noise}: {}",
            found.mean_error()
        );
        assert!(
            found.largest_error() < 2.0 * noise,
            "{}",
            found.largest_error()
        );
        // What the fit says of the same kernels measured without noise, and of others.
        let mut others = suite();
        for row in suite().windows(3) {
            let mut mixed = row[0].clone();
            for (property, count) in row[1].iter().chain(&row[2]) {
                *mixed.entry(*property).or_insert(0.0) += count;
            }
            mixed.insert(Property::Launch, 1.0);
            others.push(mixed);
        }
        for properties in others {
            let truth = predict(&planted(), &properties);
            let apart = (predict(&found.weights, &properties) - truth).abs() / truth;
            assert!(apart < 2.0 * noise, "{noise}: {apart} {properties:?}");
        }
        for (property, ps) in found.weights {
            assert!(
                ps >= 0.0 || property == Property::Overlap,
                "{property}: {ps}"
            );
        }
    }
}

#[test]
fn no_price_has_the_wrong_sign() {
    // By free least squares the second kernel's sums would cost less than nothing.
    let row = |seconds, adds, products| Measurement {
        kernel: String::new(),
        seconds,
        properties: BTreeMap::from([
            (single(Arithmetic::Sum), adds),
            (single(Arithmetic::Product), products),
        ]),
    };
    let found = fit(&[
        row(1e-3, 1e6, 1e9),
        row(0.9e-3, 1e9, 1e9),
        row(2e-3, 0.0, 2e9),
    ]);
    let found = found.expect("a fit");
    assert_eq!(found.weights[&single(Arithmetic::Sum)], 0.0);
    // Then one price is left: with errors relative it lies between 0.9 and 1 ps.
    let products = found.weights[&single(Arithmetic::Product)];
    assert!((0.9..1.0).contains(&products), "{products}");
    assert!(found.largest_error() > 0.01);
}

#[test]
fn what_cannot_be_told_apart_is_said() {
    let row = |size: f64| Measurement {
        kernel: String::new(),
        seconds: size * 3e-12,
        properties: BTreeMap::from([
            (single(Arithmetic::Sum), size),
            (single(Arithmetic::Product), 2.0 * size),
            (Property::Barrier, 0.0),
        ]),
    };
    let found = fit(&[row(1e6), row(2e6), row(5e6)]).expect("a fit");
    let both = [single(Arithmetic::Sum), single(Arithmetic::Product)];
    assert_eq!(found.undetermined, both);
    assert!(found.largest_error() < 1e-9);
    assert!(!found.weights.contains_key(&Property::Barrier));
    assert!(!found.to_toml("a test").contains("f32_"));
}

#[test]
fn what_is_wrong_with_measurements_is_said() {
    let row = |seconds, count| Measurement {
        kernel: "copy".to_owned(),
        seconds,
        properties: BTreeMap::from([(Property::Barrier, count)]),
    };
    let why = |rows: &[Measurement]| fit(rows).expect_err("not a fit");
    assert!(why(&[]).contains("no measurements"));
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(why(&[row(seconds, 1.0)]).contains("copy"));
    }
    for count in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(why(&[row(1.0, count)]).contains("barrier"));
    }
    assert!(why(&[row(1e-300, 1e300)]).contains("too large"));
}

#[test]
fn measurements_are_read_from_json_and_the_fit_is_a_profiles_table() {
    let json = r#"{"schema": "warplens.linear-measurements/1", "device": "made up", "measurements": [
        {"kernel": "empty", "seconds": 5e-6, "properties": {"launch": 1, "block": 1}},
        {"kernel": "empty, many", "seconds": 1.5e-5, "properties": {"launch": 1, "block": 16385}},
        {"kernel": "load", "seconds": 2.5e-5,
         "properties": {"launch": 1, "block": 1, "global_load_32_stride1": 5e6}}]}"#;
    let rows = fit::read(json).expect("measurements");
    assert_eq!(rows.len(), 3);
    let found = fit(&rows).expect("a fit");
    close(found.weights[&global(Direction::Load, Reach::Unit)], 4.0);
    let profile = fitted(&found.to_toml("three runs of \"nothing\""));
    let price = |property| weight(&profile, property).expect("a price");
    close(price(global(Direction::Load, Reach::Unit)), 4.0);
    close(price(Property::Block), 1e-5 * 1e12 / 16384.0);
    for wrong in [
        json.replace("/1\"", "/2\""),
        json.replace("block", "blocks"),
        json.replace("seconds", "second"),
        "{".to_owned(),
    ] {
        assert!(fit::read(&wrong).is_err());
    }
}

#[test]
fn a_wrong_table_is_told_by_file_and_key() {
    let told = |line: &str| {
        let text = include_str!("../../../../hw-profiles/a100-sxm4-40gb.toml");
        let text = format!("{text}\n[linear_weights]\n{line}\n");
        let error = Profiles::from_toml("mine.toml", &text).expect_err("wrong");
        error.to_string()
    };
    let near = told("f32_sum = { value = 1, source = \"x\" }");
    assert!(
        near.contains("mine.toml") && near.contains("linear_weights.f32_sum"),
        "{near}"
    );
    assert!(told("f32add = { value = 1, source = \"x\" }").contains("`f32_add`"));
    assert!(told("f32_add = { value = -1, source = \"x\" }").contains("from 0"));
    assert!(told("overlap = { value = 1, source = \"x\" }").contains("to 0"));
    assert!(told("f32_add = { value = 1 }").contains("source"));
    assert!(told("f32_add = 1").contains("source"));
}

// ---- whatever comes ----------------------------------------------------------------------------

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1e9_f64,
        1 => prop::sample::select(&[
            0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e18, 1e300, f64::MAX, 1e-300,
        ][..]),
    ]
}

fn maybe() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![3 => numbers().prop_map(Some), 1 => Just(None)]
}

fn any_code() -> impl Strategy<Value = Code> {
    let operators = prop::sample::select(
        [
            Number::Half,
            Number::Single,
            Number::Double,
            Number::Integer,
        ]
        .into_iter()
        .flat_map(|of| {
            [
                Arithmetic::Sum(of),
                Arithmetic::Product(of),
                Arithmetic::Quotient(of),
                Arithmetic::Special(of),
            ]
        })
        .chain([Arithmetic::Conversion, Arithmetic::Matrix])
        .map(Operator::Arithmetic)
        .chain([Operator::Barrier])
        .collect::<Vec<_>>(),
    );
    let operations = prop::collection::vec((operators, 0..9_u32, numbers(), numbers()), 0..8);
    let places = (0..5_usize, 0..3_usize, 0..6_usize, 0..300_u32);
    let figures = (maybe(), maybe(), maybe(), maybe(), maybe());
    let accesses = prop::collection::vec((places, figures, any::<i64>()), 0..8);
    let launch = (0..u64::MAX, 1..1025_u64, 0..4_u32);
    (operations, accesses, launch).prop_map(|(operations, accesses, (blocks, threads, index))| {
        let blocks = if index == 0 { blocks } else { blocks % 10_000 };
        let mut kernel = Kernel::new([blocks, 1, 1], [threads, 1, 1]);
        kernel.code.operations = operations
            .into_iter()
            .map(|(operator, line, threads, warps)| operation(operator, line, warps, threads))
            .collect();
        for (at, ((space, op, pattern, bytes), figures, stride)) in accesses.into_iter().enumerate()
        {
            let mut made = access(at as u32);
            made.object = Object::Array(format!("a{}", at / 3).into());
            made.space = [
                Space::Global,
                Space::Shared,
                Space::Local,
                Space::Constant,
                Space::Texture,
            ][space];
            made.op = [Op::Load, Op::Store, Op::Atomic][op];
            made.pattern = [
                Pattern::Coalesced,
                Pattern::Broadcast,
                Pattern::Strided,
                Pattern::Scattered,
                Pattern::DataDependent,
                Pattern::Unknown,
            ][pattern];
            made.bytes_per_lane = bytes;
            made.index = Some(Arc::new(sum(stride / 3, &[(&named("i"), stride)])));
            (
                made.requests,
                made.active_lanes_per_request,
                made.transactions_per_request,
                made.passes_per_request,
                made.ideal_passes_per_request,
            ) = figures;
            if stride % 3 != 0 {
                made.stride = Some(Stride {
                    bytes: if stride % 2 == 0 { stride } else { stride % 32 },
                    text: String::new(),
                    symbolic: false,
                    in_bytes: false,
                    unit_elsewhere: stride % 5 == 0,
                });
            }
            kernel.code.accesses.push(made);
        }
        kernel.code
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_code_get_a_finite_answer_or_a_reason(
        code in any_code(),
        gpu in prop::sample::select(&["geforce-8800-gtx", "gtx-280", "tesla-k40c", GPU, "mi210"][..]),
        factor in prop::sample::select(&Factor::ALL[..]),
        overlap in -1e3..0.0_f64,
    ) {
        let target = Target::new(gpu);
        let occupancy = target.occupancy(&code);
        let mut profile = (*target.profile).clone();
        if gpu == GPU {
            let table = format!(
                "[linear_weights]\noverlap = {{ value = {overlap:?}, source = \"a test\" }}\n"
            );
            profile = fitted(&table);
        }
        let without = [factor];
        for imagined in [&[][..], &without] {
            let found = warplens_models::estimate(
                ModelId::Linear,
                &question(&input(&code, &profile, &occupancy), imagined),
            );
            let Some(cycles) = found.cycles else {
                prop_assert!(found.why.is_some_and(|why| !why.is_empty()));
                continue;
            };
            prop_assert!(cycles.is_finite() && cycles >= 0.0);
            let parts = &found.breakdown;
            let all = [
                parts.compute,
                parts.memory_bandwidth,
                parts.memory_latency,
                parts.shared,
                parts.divergence,
                parts.synchronisation,
            ];
            prop_assert!(all.iter().all(|part| *part >= 0.0));
            let sum: f64 = all.iter().sum();
            prop_assert!((sum - cycles).abs() <= 1e-9 * cycles);
            let lines: f64 = found.lines.iter().map(|line| line.1).sum();
            prop_assert!((lines - cycles).abs() <= 1e-9 * cycles, "{lines} {cycles}");
            prop_assert!(found.detail.values().all(|value| value.is_finite()));
            prop_assert!(found.time_ms.is_some_and(f64::is_finite));
        }
    }

    #[test]
    fn any_measurements_get_prices_of_the_right_sign_or_a_reason(
        rows in prop::collection::vec(
            (1e-9..1.0_f64, prop::collection::vec((0..14_usize, 0.0..1e12_f64), 0..6)),
            0..20,
        ),
    ) {
        let all: Vec<Property> = planted().into_keys().collect();
        let rows: Vec<Measurement> = rows
            .into_iter()
            .map(|(seconds, counts)| Measurement {
                kernel: String::new(),
                seconds,
                properties: counts
                    .into_iter()
                    .map(|(at, count)| (all[at % all.len()], count))
                    .collect(),
            })
            .collect();
        if let Ok(found) = fit(&rows) {
            for (property, ps) in &found.weights {
                prop_assert!(ps.is_finite());
                prop_assert!(*ps >= 0.0 || *property == Property::Overlap);
            }
            // Paying nothing is wrong by the whole time: no fit may be worse.
            let squares: f64 = found.errors.iter().map(|error| error * error).sum();
            prop_assert!(squares <= found.errors.len() as f64 * (1.0 + 1e-9));
        }
    }
}
