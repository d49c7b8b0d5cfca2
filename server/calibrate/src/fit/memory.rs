//! Bandwidths: the best over residencies and widths, which is what a saturated level delivers.

use super::Fitter;
use crate::measurements::Sample;
use crate::statistics;

/// A peak that the driver reports is believed where kernels reach at least this part of it, and not more than all.
const BELIEVED: f64 = 0.4;

/// The stride, in words of 4 bytes, at which each lane has a line of its own.
const WIDE_STRIDE: f64 = 32.0;

pub(super) fn fit(fitting: &mut Fitter) {
    if let Some(best) = best(fitting, "bandwidth_l1", "B/clk/SM") {
        fitting.measured("l1_bandwidth_b_clk", best, "bandwidth_l1");
    } else {
        fitting.without("l1_bandwidth_b_clk", "bandwidth_l1");
    }
    if let Some(best) = best(fitting, "bandwidth_l2", "GB/s") {
        fitting.measured("l2_bandwidth_gb_s", best, "bandwidth_l2");
    } else {
        fitting.without("l2_bandwidth_gb_s", "bandwidth_l2");
    }
    dram(fitting);
    shared(fitting);
    coalescing(fitting);
    atomics(fitting);
}

/// The most over all configurations.
fn best(fitting: &Fitter, bench: &str, unit: &str) -> Option<f64> {
    let samples = fitting.measurements.of(bench);
    let usable = samples.filter(|sample| sample.unit == unit);
    statistics::plateau(usable.filter_map(Fitter::steady))
}

fn dram(fitting: &mut Fitter) {
    // Copies are what streaming kernels do; reading alone is faster.
    let copies = best(fitting, "bandwidth_copy", "GB/s");
    let reads = best(fitting, "bandwidth_dram", "GB/s");
    let (bench, achieved) = match (copies, reads) {
        (Some(copies), _) => ("bandwidth_copy", copies),
        (None, Some(reads)) => ("bandwidth_dram", reads),
        (None, None) => {
            fitting.miss(
                "dram_efficiency: the benchmarks bandwidth_copy and bandwidth_dram are missing"
                    .to_owned(),
            );
            return;
        }
    };
    if let (Some(copies), Some(reads)) = (copies, reads) {
        fitting.note(format!(
            "DRAM: {copies:.0} GB/s copying, {reads:.0} GB/s reading"
        ));
    }
    let reported = fitting
        .fitted
        .figures
        .get("dram_bandwidth_gb_s")
        .map(|found| found.value);
    match reported {
        Some(peak) if (BELIEVED * peak..=peak).contains(&achieved) => {
            fitting.measured("dram_efficiency", achieved / peak, bench);
        }
        _ => {
            // The product of both is what kernels reach, which is what was measured.
            let efficiency = fitting.nearest.dram_efficiency;
            let source = format!(
                "estimated: {achieved:.0} GB/s, {}, over the dram_efficiency of {}",
                fitting.source(bench),
                fitting.nearest.id
            );
            fitting.keep("dram_bandwidth_gb_s", achieved / efficiency, source);
        }
    }
}

fn shared(fitting: &mut Fitter) {
    const BENCH: &str = "shared_conflict";
    let figures: Vec<(f64, f64, f64)> = fitting
        .measurements
        .of(BENCH)
        .filter_map(|sample: &Sample| {
            let cycles = fitting.cycles(sample)?;
            Some((sample.number("degree")?, sample.number("width")?, cycles))
        })
        .collect();
    let least = |degree: f64, width: Option<f64>| {
        figures
            .iter()
            .filter(|(of, bytes, _)| *of == degree && width.is_none_or(|width| *bytes == width))
            .map(|(_, bytes, cycles)| (*bytes, *cycles))
            .max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))
    };
    let warp = fitting.warp();
    let Some((bytes, cycles)) = least(1.0, None) else {
        fitting.without(
            "shared_bandwidth_b_clk, load_store_lanes",
            "shared_conflict",
        );
        return;
    };
    fitting.measured("shared_bandwidth_b_clk", bytes * warp / cycles, BENCH);
    if let Some((_, cycles)) = least(1.0, Some(4.0)) {
        fitting.measured("load_store_lanes", warp / cycles, BENCH);
        if let Some((_, worst)) = least(32.0, Some(4.0)) {
            let pass = (worst - cycles) / 31.0;
            fitting.note(format!(
                "a further pass of a bank conflict takes {pass:.2} cycles"
            ));
        }
    }
}

fn coalescing(fitting: &mut Fitter) {
    const BENCH: &str = "coalescing";
    let useful = |stride: f64, offset: f64| {
        let mut samples = fitting.measurements.of(BENCH);
        let sample = samples.find(|sample| {
            sample.number("stride") == Some(stride) && sample.number("offset") == Some(offset)
        });
        sample.and_then(Fitter::steady)
    };
    let (Some(unit), Some(wide)) = (useful(1.0, 0.0), useful(WIDE_STRIDE, 0.0)) else {
        fitting.without("uncoalesced_transaction_bytes", "coalescing");
        return;
    };
    let moved = 4.0 * unit / wide;
    let shifted = useful(1.0, 1.0);
    // What moves is a sector or a line, which are powers of two.
    let bytes = 2f64.powf(moved.log2().round()).clamp(32.0, 128.0);
    fitting.measured("uncoalesced_transaction_bytes", bytes, BENCH);
    fitting.note(format!(
        "a lane that is alone in its line moves {moved:.0} bytes of DRAM"
    ));
    if let Some(shifted) = shifted {
        let part = 100.0 * shifted / unit;
        fitting.note(format!(
            "accesses shifted by one word reach {part:.0} % of the aligned bandwidth"
        ));
    }
}

fn atomics(fitting: &mut Fitter) {
    let spread = |addresses: f64, hot: f64| {
        let mut samples = fitting.measurements.of("atomic");
        let sample = samples.find(|sample| {
            sample.number("addresses") == Some(addresses) && sample.number("hot") == Some(hot)
        });
        sample.and_then(Fitter::steady)
    };
    let warp = fitting.warp();
    let (apart, together, hot) = (spread(warp, 0.0), spread(1.0, 0.0), spread(1.0, 1.0));
    if let (Some(apart), Some(together), Some(hot)) = (apart, together, hot) {
        fitting.note(format!(
            "a warp's atomic takes the device {apart:.3} ns on addresses of its own, {together:.3} ns on one, and \
             {hot:.3} ns where all warps meet on it"
        ));
    }
}
