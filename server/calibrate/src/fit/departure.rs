//! MWP-CWP's memory parameters: those with which the model tells its micro-benchmarks best.
//!
//! Hong and Kim 2009, section 5.1: `Mem_LD`, `Departure_del_coal` and `Departure_del_uncoal` are varied until the model's
//! times fit the measured ones (Table 6 has what came of it). The search goes from what the latency and bandwidth of
//! DRAM suggest, one parameter at a time, by the golden section over a factor of 16 to either side, on a logarithmic
//! scale, for the least squares of logarithms of measured over predicted.

use warplens_models::mwp_cwp::Parameters;

use super::Fitter;

/// How far from its beginning a parameter may go, as a factor.
const REACH: f64 = 16.0;

/// Rounds over the three parameters.
const ROUNDS: usize = 12;

/// Steps of the golden section: 0.618^24 of a factor of 256 is a 1e-4 of it.
const STEPS: usize = 24;

/// One micro-benchmark: the model's inputs and the cycles that were measured.
struct Run {
    inputs: Parameters,
    cycles: f64,
}

pub(super) fn fit(fitting: &mut Fitter) {
    const BENCH: &str = "departure";
    let runs: Vec<Run> = fitting
        .measurements
        .of(BENCH)
        .filter_map(|sample| run(fitting, sample))
        .collect();
    let has = |coalesced: bool| {
        runs.iter()
            .any(|run| (run.inputs.coal_mem_insts > 0.0) == coalesced)
    };
    if !(has(true) && has(false)) {
        // The profile derives them from what was measured of DRAM.
        fitting.without(
            "mem_ld, departure_del_coal, departure_del_uncoal",
            "departure",
        );
        return;
    }
    let share = fitting.nearest.dram_bytes_per_cycle_per_sm().max(1e-3);
    let latency = fitting.known("dram_latency").unwrap_or(500.0);
    let mut best = [latency, 128.0 / share, 32.0 / share];
    let begin = best;
    for _ in 0..ROUNDS {
        for at in 0..best.len() {
            best[at] = golden(begin[at], |value| {
                let mut tried = best;
                tried[at] = value;
                error(&runs, tried)
            });
        }
    }
    let keys = ["mem_ld", "departure_del_coal", "departure_del_uncoal"];
    for (key, value) in keys.into_iter().zip(best) {
        fitting.measured(key, value, BENCH);
    }
    let mean = error(&runs, best).sqrt().exp_m1();
    fitting.note(format!(
        "MWP-CWP tells its {} micro-benchmarks with an error of {:.1} % (root mean square of logarithms)",
        runs.len(),
        100.0 * mean
    ));
}

/// The model's inputs of a sample: one block on every SM.
fn run(fitting: &Fitter, sample: &crate::Sample) -> Option<Run> {
    let number = |name: &str| sample.number(name).filter(|x| x.is_finite() && *x >= 0.0);
    let (rounds, warps, sms) = (number("rounds")?, number("warps")?, fitting.known("sms")?);
    let loads = rounds * number("loads")?;
    let transactions = number("transactions")?;
    let coalesced = transactions <= 1.0;
    let lanes = fitting.known("fp32_lanes")?;
    let inputs = Parameters {
        mem_ld: 1.0,
        departure_del_uncoal: 1.0,
        departure_del_coal: 1.0,
        issue_cycles: (fitting.warp() / lanes).max(1.0 / fitting.nearest.issue_per_clock()),
        freq_ghz: fitting.known("sm_clock_mhz")? / 1e3,
        bandwidth_gb_s: fitting.known("dram_bandwidth_gb_s")?,
        active_sms: sms,
        warps_per_block: warps,
        blocks: sms,
        active_blocks_per_sm: 1.0,
        active_warps_per_sm: warps,
        comp_insts: rounds * number("computations")?,
        uncoal_mem_insts: if coalesced { 0.0 } else { loads },
        coal_mem_insts: if coalesced { loads } else { 0.0 },
        synch_insts: 0.0,
        uncoal_per_mw: transactions.max(1.0),
        load_bytes_per_warp: number("bytes")?,
    };
    let cycles = fitting.cycles(sample)?;
    (loads > 0.0 && warps > 0.0).then_some(Run { inputs, cycles })
}

/// The mean square of the logarithms of measured over predicted.
fn error(runs: &[Run], [mem_ld, coalesced, uncoalesced]: [f64; 3]) -> f64 {
    let squares = runs.iter().map(|run| {
        let inputs = Parameters {
            mem_ld,
            departure_del_coal: coalesced,
            departure_del_uncoal: uncoalesced,
            ..run.inputs
        };
        let ratio = run.cycles / inputs.quantities().total_cycles;
        // What the model cannot tell at all is far off.
        if ratio.is_finite() && ratio > 0.0 {
            ratio.ln().powi(2)
        } else {
            1e3
        }
    });
    squares.sum::<f64>() / runs.len().max(1) as f64
}

/// Where a function of a parameter is least, around where it began.
fn golden(begin: f64, of: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = ((begin / REACH).ln(), (begin * REACH).ln());
    let mut inner = [high - ratio * (high - low), low + ratio * (high - low)];
    let mut errors = inner.map(|at| of(at.exp()));
    for _ in 0..STEPS {
        // Of equal ones the upper goes: a delay that nothing depends on is taken as small.
        if errors[0] <= errors[1] {
            high = inner[1];
            inner = [high - ratio * (high - low), inner[0]];
            errors = [of(inner[0].exp()), errors[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + ratio * (high - low)];
            errors = [errors[1], of(inner[1].exp())];
        }
    }
    f64::midpoint(low, high).exp()
}
