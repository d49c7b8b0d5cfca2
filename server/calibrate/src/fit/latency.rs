//! Latencies from pointer chases: the steps of the curve over the footprint are the levels of the hierarchy.

use super::Fitter;
use crate::statistics;

/// Points within this fraction above the first belong to its level.
const SAME_LEVEL: f64 = 1.15;

/// A first level that is no faster than this part of the second is the second.
const NO_LEVEL: f64 = 0.85;

pub(super) fn fit(fitting: &mut Fitter) {
    global(fitting);
    for (bench, key) in [
        ("latency_shared", Some("shared_latency")),
        ("latency_constant", None),
    ] {
        let sample = fitting.measurements.of(bench).next();
        let cycles = sample.and_then(|sample| fitting.cycles(sample));
        match (cycles, key) {
            (Some(cycles), Some(key)) => fitting.measured(key, cycles, bench),
            (Some(cycles), None) => {
                fitting.note(format!("constant memory answers in {cycles:.1} cycles"));
            }
            (None, Some(key)) => fitting.without(key, bench),
            (None, None) => {}
        }
    }
}

fn global(fitting: &mut Fitter) {
    const BENCH: &str = "latency_global";
    let mut curve: Vec<(f64, f64)> = fitting
        .measurements
        .of(BENCH)
        .filter_map(|sample| Some((sample.number("bytes")?, fitting.cycles(sample)?)))
        .collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(_, first)) = curve.first() else {
        fitting.without("l1_latency, l2_latency, dram_latency", "latency_global");
        return;
    };
    let middle = |keep: &dyn Fn(f64) -> bool| {
        let level: Vec<f64> = curve
            .iter()
            .filter(|(bytes, _)| keep(*bytes))
            .map(|(_, cycles)| *cycles)
            .collect();
        statistics::median(&level)
    };
    let near = curve
        .iter()
        .take_while(|(_, cycles)| *cycles <= first * SAME_LEVEL);
    let l1_end = near.last().map_or(0.0, |(bytes, _)| *bytes);
    let Some(l2_bytes) = fitting.known("l2_bytes") else {
        // Without L2 whatever is not near is DRAM.
        match middle(&|bytes| bytes > 4.0 * l1_end) {
            Some(cycles) => fitting.measured("dram_latency", cycles, BENCH),
            None => fitting.measured("dram_latency", first, BENCH),
        }
        return;
    };
    // Small beside L2: its far half and what pages cost are not in it.
    let l2 = [8.0, 4.0, 2.0]
        .into_iter()
        .find_map(|part| middle(&|bytes| bytes > 2.0 * l1_end && bytes <= l2_bytes / part));
    let l1 = middle(&|bytes| bytes <= l1_end);
    match (l1, l2) {
        (Some(l1), Some(l2)) if l1 < NO_LEVEL * l2 => {
            fitting.measured("l1_latency", l1, BENCH);
            fitting.measured("l2_latency", l2, BENCH);
        }
        (Some(first), None) if l1_end >= l2_bytes / 4.0 => {
            fitting.measured("l2_latency", first, BENCH);
            fitting.miss("l1_latency: small footprints are no faster than L2".to_owned());
        }
        (_, Some(l2)) => {
            fitting.measured("l2_latency", l2, BENCH);
            fitting.miss("l1_latency: small footprints are no faster than L2".to_owned());
        }
        (Some(l1), None) => {
            fitting.measured("l1_latency", l1, BENCH);
            fitting.miss("l2_latency: no footprint between L1 and L2 was measured".to_owned());
        }
        (None, None) => {}
    }
    match middle(&|bytes| bytes >= 2.0 * l2_bytes) {
        Some(cycles) => fitting.measured("dram_latency", cycles, BENCH),
        None => fitting.miss("dram_latency: no footprint of twice L2 was measured".to_owned()),
    }
}
