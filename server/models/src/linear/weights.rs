//! What a unit of each property costs: fitted where the profile has it, else by a rule from its published rates.
//!
//! The rule takes each property at the throughput of the whole device, all SMs busy and nothing else in the way.

use warplens_machine::{
    Arithmetic, Direction, GlobalRule, Memory, Number, Profile, Property, Reach,
};

use super::PICOSECONDS;

/// A price.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price {
    /// Picoseconds a unit.
    pub ps: f64,
    /// From the profile's table; else by rule.
    pub fitted: bool,
}

/// The price of a property; the error is the figure that the rule needs and the profile lacks.
pub(super) fn price(profile: &Profile, property: Property) -> Result<Price, &'static str> {
    if let Some(figure) = profile.linear_weights.get(&property) {
        return Ok(Price {
            ps: figure.value,
            fitted: true,
        });
    }
    let device = Device::new(profile);
    let seconds = match property {
        Property::Arithmetic(arithmetic) => device.arithmetic(arithmetic)?,
        Property::Access {
            memory,
            direction,
            bits,
        } => device.access(memory, direction, f64::from(bits) / 8.0),
        Property::BankConflict => device.shared(f64::from(profile.bank_rule.banks) * 4.0),
        // Lanes that update one address take a sector's time at the L2 each.
        Property::AtomicConflict => device.far(32.0),
        Property::Barrier => {
            device.cycle * profile.barrier_warp_cycles / f64::from(profile.warp_size)
        }
        Property::Block => profile.block_start_cycles() / profile.cycles_per_second(),
        Property::Launch => profile.launch_overhead_us * 1e-6,
        // Reads and writes share the memory's bus, and the bandwidth that streaming kernels reach was measured
        // with both: nothing is left to save.
        Property::Overlap => 0.0,
    };
    Ok(Price {
        ps: seconds * PICOSECONDS,
        fitted: false,
    })
}

/// Rates of the whole device.
struct Device<'a> {
    profile: &'a Profile,
    /// A clock cycle over the SMs: what one unit takes that an SM does one of in a cycle. In seconds.
    cycle: f64,
}

impl Device<'_> {
    fn new(profile: &Profile) -> Device<'_> {
        Device {
            profile,
            cycle: 1.0 / (profile.cycles_per_second() * f64::from(profile.sms)),
        }
    }

    fn arithmetic(&self, arithmetic: Arithmetic) -> Result<f64, &'static str> {
        let profile = self.profile;
        let single = self.cycle / profile.fp32_lanes;
        let special = self.cycle / profile.sfu_lanes;
        let integer = self.cycle / profile.int_lanes;
        // Without arithmetic of its own half precision is computed in single.
        let half = profile
            .fp16_lanes
            .map_or(single, |lanes| self.cycle / lanes);
        let double = || {
            let lanes = profile.fp64_lanes.ok_or("fp64_lanes")?;
            Ok::<f64, &'static str>(self.cycle / lanes)
        };
        Ok(match arithmetic {
            Arithmetic::Sum(of) | Arithmetic::Product(of) => match of {
                Number::Half => half,
                Number::Single => single,
                Number::Double => double()?,
                Number::Integer if matches!(arithmetic, Arithmetic::Product(_)) => {
                    self.cycle / profile.int_mul_lanes
                }
                Number::Integer => integer,
            },
            // Instructions in place of a division, as nvcc makes them (server/codegen/recipes/sm_80.tsv).
            Arithmetic::Quotient(of) => match of {
                Number::Half | Number::Single => 13.0 * single + special,
                Number::Double => 8.0 * double()? + 12.0 * single + special,
                Number::Integer => {
                    22.0 * integer
                        + special
                        + self.cycle / profile.conversion_lanes
                        + self.cycle / profile.conversion_to_float_lanes
                }
            },
            // The special unit's operation and the range reduction around it, as the analysis takes them.
            Arithmetic::Special(of) => match of {
                Number::Double => special + 20.0 * double()?,
                _ => special + 4.0 * single,
            },
            Arithmetic::Conversion => self.cycle / profile.conversion_lanes,
            // A thread's share of a 16 x 8 x 16 product.
            Arithmetic::Matrix => {
                let rate = profile.tensor_fp16_fma.ok_or("tensor_fp16_fma")?;
                self.cycle * 64.0 / rate
            }
        })
    }

    fn access(&self, memory: Memory, direction: Direction, bytes: f64) -> f64 {
        let issue = self.cycle / self.profile.load_store_lanes;
        let moved = match memory {
            Memory::Global(reach) => {
                let once = self.global(reach, bytes);
                // An atomic reads and writes.
                if direction == Direction::Atomic {
                    2.0 * once
                } else {
                    once
                }
            }
            Memory::Shared => self.shared(bytes),
            // One word serves the whole warp.
            Memory::Constant => issue,
            Memory::Local => match self.profile.l1_bandwidth_b_clk {
                Some(bandwidth) => self.cycle * bytes / bandwidth,
                None => self.dram(bytes),
            },
        };
        moved.max(issue)
    }

    /// What one thread's access of device memory takes where nothing else is in the way.
    fn global(&self, reach: Reach, bytes: f64) -> f64 {
        let profile = self.profile;
        let sector = f64::from(profile.uncoalesced_transaction_bytes).max(bytes);
        // What a warp's request moves for one thread.
        let moved = match reach {
            Reach::Uniform => return self.dram(bytes / f64::from(profile.warp_size)),
            Reach::Unit => return self.dram(bytes),
            Reach::Stride { stride, .. } if profile.global_rule != GlobalRule::HalfWarpStrict => {
                (f64::from(stride) * bytes).min(sector)
            }
            Reach::Stride { .. } | Reach::Uncoalesced { .. } => sector,
        };
        if profile.l2_bytes.is_none() {
            return self.dram(moved);
        }
        // Its part of what comes from DRAM: the cache keeps the rest for its next use.
        let own = match reach {
            Reach::Uncoalesced { quarters: 1 } => moved,
            _ => (bytes / reach.utilisation()).min(moved),
        };
        self.dram(own).max(self.far(moved))
    }

    fn shared(&self, bytes: f64) -> f64 {
        self.cycle * bytes / self.profile.shared_bandwidth_b_clk
    }

    fn dram(&self, bytes: f64) -> f64 {
        bytes / (self.profile.achieved_dram_bandwidth_gb_s() * 1e9)
    }

    /// Bytes through L2, or DRAM where there is none.
    fn far(&self, bytes: f64) -> f64 {
        match self.profile.l2_bandwidth_gb_s {
            Some(bandwidth) => bytes / (bandwidth * 1e9),
            None => self.dram(bytes),
        }
    }
}
