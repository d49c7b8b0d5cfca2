//! Latency and issue rate of instructions from chains of them; barriers; launches.

use super::Fitter;
use crate::statistics;

/// A class of instructions: its name in the samples, results of a lane an instruction, the keys of rate and latency.
struct Class {
    name: &'static str,
    /// Multiplied with the lanes of a warp; the products of a matrix instruction, instead of them.
    results: f64,
    matrix: bool,
    lanes: &'static str,
    latency: Option<&'static str>,
}

const fn class(
    name: &'static str,
    results: f64,
    lanes: &'static str,
    latency: Option<&'static str>,
) -> Class {
    Class {
        name,
        results,
        matrix: false,
        lanes,
        latency,
    }
}

const CLASSES: [Class; 10] = [
    class("fp32", 1.0, "fp32_lanes", Some("arithmetic_latency")),
    class("fp64", 1.0, "fp64_lanes", Some("fp64_latency")),
    class("fp16", 2.0, "fp16_lanes", Some("fp16_latency")),
    class("int", 1.0, "int_lanes", None),
    class("int_mul", 1.0, "int_mul_lanes", Some("int_mul_latency")),
    class("sfu", 1.0, "sfu_lanes", Some("sfu_latency")),
    class(
        "conversion",
        1.0,
        "conversion_lanes",
        Some("conversion_latency"),
    ),
    class("to_float", 1.0, "conversion_to_float_lanes", None),
    class("shuffle", 1.0, "shuffle_lanes", Some("shuffle_latency")),
    // A product of 16 x 8 x 16.
    Class {
        name: "tensor",
        results: 2048.0,
        matrix: true,
        lanes: "tensor_fp16_fma",
        latency: Some("tensor_latency"),
    },
];

/// Multiplications count as having more units than multiply-adds only beyond this.
const MORE: f64 = 1.1;

/// The fewest blocks per SM of launches that show what a block takes.
const FEWEST_BLOCKS: f64 = 64.0;

pub(super) fn fit(fitting: &mut Fitter) {
    instructions(fitting);
    barrier(fitting);
    launch(fitting);
}

fn instructions(fitting: &mut Fitter) {
    const BENCH: &str = "instruction";
    if fitting.measurements.of(BENCH).next().is_none() {
        fitting.without("lanes and latencies of instructions", "instruction");
        return;
    }
    for class in &CLASSES {
        // A GPU may have no such instructions.
        let Some(rate) = rate(fitting, class.name) else {
            continue;
        };
        let results = if class.matrix {
            class.results
        } else {
            class.results * fitting.warp()
        };
        fitting.measured(class.lanes, rate * results, BENCH);
        if class.matrix {
            fitting.measured("tensor_instruction_fma", class.results, BENCH);
        }
        if let (Some(key), Some(cycles)) = (class.latency, latency(fitting, class.name)) {
            fitting.measured(key, cycles, BENCH);
        }
    }
    let (multiply, add) = (rate(fitting, "fp32_multiply"), rate(fitting, "fp32"));
    if let (Some(multiply), Some(add)) = (multiply, add)
        && multiply > MORE * add
    {
        fitting.measured("fp32_multiply_lanes", multiply * fitting.warp(), BENCH);
    }
}

/// The most warp instructions of a class that one SM issues in a cycle, over all numbers of warps and chains.
fn rate(fitting: &Fitter, class: &str) -> Option<f64> {
    let samples = fitting.measurements.of("instruction");
    let of_class = samples.filter(|sample| sample.text("class") == Some(class));
    statistics::plateau(of_class.filter_map(|sample| {
        // Warp instructions in a cycle.
        Some(sample.number("warps")? / fitting.cycles(sample)?)
    }))
}

/// Cycles from one instruction of a class to the next that needs its result: one warp, one chain.
fn latency(fitting: &Fitter, class: &str) -> Option<f64> {
    let mut samples = fitting.measurements.of("instruction");
    let alone = samples.find(|sample| {
        sample.text("class") == Some(class)
            && sample.number("warps") == Some(1.0)
            && sample.number("chains") == Some(1.0)
    })?;
    fitting.cycles(alone)
}

fn barrier(fitting: &mut Fitter) {
    let points: Vec<(f64, f64)> = fitting
        .measurements
        .of("barrier")
        .filter_map(|sample| Some((sample.number("warps")?, fitting.cycles(sample)?)))
        .collect();
    match statistics::line(&points) {
        Some((begin, slope)) => {
            fitting.measured("barrier_latency", begin.max(0.0), "barrier");
            fitting.measured("barrier_warp_cycles", slope.max(0.0), "barrier");
        }
        None => fitting.miss(
            "barrier_latency, barrier_warp_cycles: barriers of two numbers of warps are needed"
                .to_owned(),
        ),
    }
}

fn launch(fitting: &mut Fitter) {
    let points: Vec<(f64, f64)> = fitting
        .measurements
        .of("launch")
        .filter(|sample| sample.unit == "us")
        .filter_map(|sample| Some((sample.number("blocks")?, Fitter::steady(sample)?)))
        .collect();
    let fewest = points.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    match fewest {
        Some(&(_, us)) => fitting.measured("launch_overhead_us", us, "launch"),
        None => fitting.without("launch_overhead_us", "launch"),
    }
    let (Some(sms), Some(mhz)) = (fitting.known("sms"), fitting.known("sm_clock_mhz")) else {
        return;
    };
    // Where the blocks take longer than the launch: cycles between two blocks on one SM.
    let many: Vec<(f64, f64)> = points
        .into_iter()
        .filter(|(blocks, _)| *blocks >= FEWEST_BLOCKS * sms)
        .map(|(blocks, us)| (blocks / sms, us * mhz))
        .collect();
    match statistics::line(&many) {
        Some((_, cycles)) if cycles > 0.0 => {
            fitting.measured("block_launch_cycles", cycles, "launch");
        }
        _ => fitting.miss(
            "block_launch_cycles: launches of two numbers of many blocks are needed".to_owned(),
        ),
    }
}
