//! A GPU of formulas: what its benchmarks would print.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use warplens_calibrate::fit::{Counts, linear};
use warplens_calibrate::{Device, Measurements, Sample};
use warplens_machine::{Profile, Profiles, Property};
use warplens_models::linear::fit::predict;
use warplens_models::mwp_cwp::Parameters;

/// Sizes of the linear model's kernels.
const SIZES: [u64; 4] = [1 << 16, 1 << 18, 1 << 20, 1 << 22];

/// The built-in GPU that the machine is compared with.
pub fn nearest() -> Arc<Profile> {
    Profiles::builtin().get("h100-sxm5").unwrap()
}

/// What the linear model counts in its measurement kernels, found once.
pub fn counts() -> &'static Counts {
    static COUNTS: OnceLock<Counts> = OnceLock::new();
    COUNTS.get_or_init(|| counted("cuda"))
}

/// The same in their OpenCL form.
pub fn opencl_counts() -> &'static Counts {
    static COUNTS: OnceLock<Counts> = OnceLock::new();
    COUNTS.get_or_init(|| counted("opencl"))
}

fn counted(interface: &str) -> Counts {
    let mut sizes = Measurements::new(Device {
        interface: interface.to_owned(),
        ..Device::default()
    });
    for n in SIZES {
        sizes
            .samples
            .push(sample("linear", json!({"n": n}), "s", vec![1.0]));
    }
    linear::counts(&sizes, "h100-sxm5").unwrap()
}

#[derive(Debug, Clone)]
pub struct Machine {
    pub clock: f64,
    pub l1_latency: f64,
    pub l2_latency: f64,
    pub dram_latency: f64,
    pub shared_latency: f64,
    pub l1_bandwidth: f64,
    pub l2_bandwidth: f64,
    pub copy_bandwidth: f64,
    pub shared_bandwidth: f64,
    pub arithmetic_latency: f64,
    pub fp32_lanes: f64,
    pub sfu_latency: f64,
    pub sfu_lanes: f64,
    pub barrier: f64,
    pub barrier_warp: f64,
    pub launch: f64,
    pub block: f64,
    pub mem_ld: f64,
    pub departure_coalesced: f64,
    pub departure_uncoalesced: f64,
    pub weights: BTreeMap<Property, f64>,
}

const SMS: f64 = 100.0;
const L2_BYTES: f64 = 41_943_040.0;
/// 1.25 GHz, 5120 bits.
const PEAK: f64 = 1600.0;

impl Default for Machine {
    fn default() -> Machine {
        let mut weights = BTreeMap::new();
        for property in counts().values().flat_map(BTreeMap::keys) {
            let name = property.to_string();
            let price = match property {
                Property::Launch => 4e6,
                Property::Block => 900.0,
                Property::Overlap => -0.4,
                Property::Barrier => 0.4,
                Property::BankConflict => 9.0,
                Property::AtomicConflict => 60.0,
                Property::Arithmetic(_) if name.ends_with("div") => 1.5,
                Property::Arithmetic(_) if name.ends_with("special") => 0.8,
                Property::Arithmetic(_) => 0.1,
                Property::Access { bits, .. } => {
                    f64::from(*bits)
                        * if name.starts_with("global") {
                            0.1
                        } else {
                            0.01
                        }
                }
            };
            weights.insert(*property, price);
        }
        Machine {
            clock: 1600.0,
            l1_latency: 37.0,
            l2_latency: 230.0,
            dram_latency: 560.0,
            shared_latency: 28.0,
            l1_bandwidth: 120.0,
            l2_bandwidth: 5000.0,
            copy_bandwidth: 1400.0,
            shared_bandwidth: 127.0,
            arithmetic_latency: 4.2,
            fp32_lanes: 126.0,
            sfu_latency: 20.0,
            sfu_lanes: 15.8,
            barrier: 21.0,
            barrier_warp: 2.2,
            launch: 4.0,
            block: 120.0,
            mem_ld: 560.0,
            departure_coalesced: 30.0,
            departure_uncoalesced: 9.0,
            weights,
        }
    }
}

impl Machine {
    /// The same machine, slower by a factor.
    pub fn scaled(mut self, by: f64) -> Machine {
        for latency in [
            &mut self.l1_latency,
            &mut self.l2_latency,
            &mut self.dram_latency,
            &mut self.shared_latency,
            &mut self.arithmetic_latency,
            &mut self.sfu_latency,
        ] {
            *latency *= by;
        }
        for rate in [
            &mut self.l1_bandwidth,
            &mut self.l2_bandwidth,
            &mut self.shared_bandwidth,
            &mut self.fp32_lanes,
            &mut self.sfu_lanes,
        ] {
            *rate /= by;
        }
        for price in self.weights.values_mut() {
            *price *= by;
        }
        self
    }

    pub fn latencies(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("l1_latency", self.l1_latency),
            ("l2_latency", self.l2_latency),
            ("dram_latency", self.dram_latency),
            ("shared_latency", self.shared_latency),
            ("arithmetic_latency", self.arithmetic_latency),
            ("sfu_latency", self.sfu_latency),
            ("launch_overhead_us", self.launch),
        ]
    }

    pub fn bandwidths(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("l1_bandwidth_b_clk", self.l1_bandwidth),
            ("l2_bandwidth_gb_s", self.l2_bandwidth),
            ("dram_efficiency", self.copy_bandwidth / PEAK),
            ("dram_bandwidth_gb_s", PEAK),
            ("shared_bandwidth_b_clk", self.shared_bandwidth),
            ("fp32_lanes", self.fp32_lanes),
            ("sfu_lanes", self.sfu_lanes),
            ("uncoalesced_transaction_bytes", 32.0),
        ]
    }

    pub fn benches(&self) -> Vec<String> {
        let mut all: Vec<String> = self
            .measured(0, 0.0)
            .samples
            .into_iter()
            .map(|sample| sample.bench)
            .collect();
        all.dedup();
        all
    }

    /// Nine repetitions each, with normal noise, a third of them with an outlier.
    pub fn measured(&self, seed: u64, noise: f64) -> Measurements {
        let mut noise = Noise {
            state: seed | 1,
            noise,
        };
        let properties = [
            ("sms", SMS),
            ("warp_size", 32.0),
            ("l2_bytes", L2_BYTES),
            ("max_threads_per_sm", 2048.0),
            ("memory_clock_khz", 1_250_000.0),
            ("memory_bus_bits", 5120.0),
            ("shared_per_block", 49_152.0),
        ];
        let mut kept = Measurements::new(Device {
            name: "Synthetic GPU".to_owned(),
            vendor: "nvidia".to_owned(),
            architecture: "sm_90".to_owned(),
            interface: "cuda".to_owned(),
            properties: properties
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..Device::default()
        });
        let mut print = |bench: &str, parameters: Value, unit: &str, figure: f64| {
            kept.samples
                .push(sample(bench, parameters, unit, noise.repetitions(figure)));
        };
        print("clock", json!({}), "MHz", self.clock);
        let mut bytes = 4096.0;
        while bytes <= 256.0 * 1024.0 * 1024.0 {
            let cycles = match bytes {
                b if b <= 131_072.0 => self.l1_latency,
                b if b <= L2_BYTES => self.l2_latency,
                // A part is still in L2.
                b if b < 1.9 * L2_BYTES => f64::midpoint(self.l2_latency, self.dram_latency),
                _ => self.dram_latency,
            };
            print("latency_global", json!({"bytes": bytes}), "cycles", cycles);
            bytes *= 2.0;
        }
        print("latency_shared", json!({}), "cycles", self.shared_latency);
        for (class, latency, lanes) in [
            ("fp32", self.arithmetic_latency, self.fp32_lanes),
            ("sfu", self.sfu_latency, self.sfu_lanes),
        ] {
            for warps in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0] {
                for chains in [1.0, 4.0] {
                    let cycles = f64::max(latency / chains, warps * 32.0 / lanes);
                    print(
                        "instruction",
                        json!({"class": class, "warps": warps, "chains": chains}),
                        "cycles",
                        cycles,
                    );
                }
            }
        }
        for degree in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0] {
            let cycles = degree * 128.0 / self.shared_bandwidth;
            print(
                "shared_conflict",
                json!({"degree": degree, "width": 4, "warps": 16}),
                "cycles",
                cycles,
            );
        }
        for warps in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0] {
            print(
                "barrier",
                json!({"warps": warps}),
                "cycles",
                self.barrier + self.barrier_warp * warps,
            );
        }
        for (addresses, hot, ns) in [(32, 0, 0.1), (1, 0, 0.9), (1, 1, 3.0)] {
            print(
                "atomic",
                json!({"addresses": addresses, "hot": hot}),
                "ns",
                ns,
            );
        }
        for blocks in [1.0, 64.0 * SMS, 256.0 * SMS, 1024.0 * SMS] {
            let us = self.launch.max(blocks / SMS * self.block / self.clock);
            print("launch", json!({"blocks": blocks}), "us", us);
        }
        // A saturated level: few warps and narrow accesses reach a part of it.
        for (bench, unit, most) in [
            ("bandwidth_l1", "B/clk/SM", self.l1_bandwidth),
            ("bandwidth_l2", "GB/s", self.l2_bandwidth),
            ("bandwidth_dram", "GB/s", self.copy_bandwidth * 1.02),
            ("bandwidth_copy", "GB/s", self.copy_bandwidth),
        ] {
            for (warps, part) in [(4, 0.3), (16, 0.8), (64, 1.0)] {
                print(
                    bench,
                    json!({"width": 16, "warps": warps}),
                    unit,
                    most * part,
                );
            }
        }
        for stride in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0] {
            let useful = self.copy_bandwidth / f64::min(stride, 8.0);
            print(
                "coalescing",
                json!({"stride": stride, "offset": 0}),
                "GB/s",
                useful,
            );
        }
        for transactions in [1.0, 32.0] {
            for loads in [1.0, 2.0, 4.0] {
                for warps in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
                    let parameters = json!({"loads": loads, "rounds": 601, "computations": 15, "warps": warps,
                                            "transactions": transactions, "bytes": 128});
                    let cycles = self.departure(loads, warps, transactions);
                    print("departure", parameters, "cycles", cycles);
                }
            }
        }
        for ((kernel, n), properties) in counts() {
            let seconds = predict(&self.weights, properties);
            print("linear", json!({"kernel": kernel, "n": n}), "s", seconds);
        }
        kept
    }

    /// Only the linear model's kernels, through OpenCL.
    pub fn measured_through_opencl(&self, seed: u64, noise: f64) -> Measurements {
        let mut noise = Noise {
            state: seed | 1,
            noise,
        };
        let mut kept = Measurements::new(Device {
            name: "Synthetic GPU".to_owned(),
            interface: "opencl".to_owned(),
            ..Device::default()
        });
        for ((kernel, n), properties) in opencl_counts() {
            let seconds = noise.repetitions(predict(&self.weights, properties));
            let parameters = json!({"kernel": kernel, "n": n});
            kept.samples
                .push(sample("linear", parameters, "s", seconds));
        }
        kept
    }

    /// The model itself, with the machine's parameters.
    fn departure(&self, loads: f64, warps: f64, transactions: f64) -> f64 {
        let memory = 601.0 * loads;
        let inputs = Parameters {
            mem_ld: self.mem_ld,
            departure_del_uncoal: self.departure_uncoalesced,
            departure_del_coal: self.departure_coalesced,
            issue_cycles: 32.0 / self.fp32_lanes,
            freq_ghz: self.clock / 1e3,
            bandwidth_gb_s: PEAK,
            active_sms: SMS,
            warps_per_block: warps,
            blocks: SMS,
            active_blocks_per_sm: 1.0,
            active_warps_per_sm: warps,
            comp_insts: 601.0 * 15.0,
            uncoal_mem_insts: if transactions > 1.0 { memory } else { 0.0 },
            coal_mem_insts: if transactions > 1.0 { 0.0 } else { memory },
            synch_insts: 0.0,
            uncoal_per_mw: transactions,
            load_bytes_per_warp: 128.0,
        };
        inputs.quantities().total_cycles
    }
}

fn sample(bench: &str, parameters: Value, unit: &str, repetitions: Vec<f64>) -> Sample {
    let parameters = match parameters {
        Value::Object(parameters) => parameters.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    Sample {
        bench: bench.to_owned(),
        parameters,
        unit: unit.to_owned(),
        repetitions,
    }
}

/// Normal noise from a xorshift generator.
struct Noise {
    state: u64,
    noise: f64,
}

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }

    fn repetitions(&mut self, figure: f64) -> Vec<f64> {
        let mut all: Vec<f64> = (0..9)
            .map(|_| {
                let normal: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
                (figure * (1.0 + self.noise * normal)).max(0.0)
            })
            .collect();
        if self.noise > 0.0 && self.uniform() < 0.33 {
            all[4] = figure * 3.0;
        }
        all
    }
}
