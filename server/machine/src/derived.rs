//! Figures of the papers' models that other figures give: the rules by which a profile that does not state one gets it.
//!
//! In go the figures that the files state, out come those that follow from them, each with `derived: ` and its rule as source.
//! A stated figure is never touched: where the paper's authors measured a GPU, or someone measured since, that holds.

use crate::profile::{Figure, KEYS, KeySpec};

/// A figure from those that it needs, which are asked for by their keys.
type Derivation = fn(&dyn Fn(&str) -> Option<f64>) -> Option<f64>;

/// How a figure follows from others.
pub(crate) struct DerivedKey {
    /// The key.
    key: &'static str,
    /// The rule in words, for people.
    rule: &'static str,
    /// Significant digits that it is given with; no input is known to more.
    digits: usize,
    /// The figure from those that it needs, `None` where one is missing.
    of: Derivation,
}

/// Bytes that a request which does not coalesce moves for a lane: a sector.
const SECTOR: f64 = 32.0;
/// Bytes that a coalesced request of a warp's words moves: a line.
const LINE: f64 = 128.0;
/// Digits of figures that are taken over as they are.
const ALL: usize = 17;

/// Every rule. The equations are numbered as in the papers.
const RULES: [DerivedKey; 7] = [
    // S. Hong and H. Kim, ISCA 2009, equations (10) and (11): Mem_LD is the latency of DRAM.
    DerivedKey {
        key: "mem_ld",
        rule: "dram_latency",
        digits: ALL,
        of: |figure| figure("dram_latency"),
    },
    // Equation (15) departs requests at the rate at which memory serves them. Where the delays were not measured as in the
    // paper's section 5, an SM is taken to have its equal share of the peak bandwidth.
    DerivedKey {
        key: "departure_del_uncoal",
        rule: "one 32-byte sector over an SM's share of the peak DRAM bandwidth",
        digits: 3,
        of: |figure| Some(SECTOR / share(figure)?),
    },
    DerivedKey {
        key: "departure_del_coal",
        rule: "one 128-byte line over an SM's share of the peak DRAM bandwidth",
        digits: 3,
        of: |figure| Some(LINE / share(figure)?),
    },
    // Equation (19): #Issue_cycles, 4 on the paper's GPUs, whose warps of 32 go through 8 lanes.
    DerivedKey {
        key: "issue_cycles",
        rule: "a warp over the SM's single-precision lanes, no less than one issue slot of its schedulers",
        digits: 4,
        of: |figure| {
            let slots = figure("schedulers_per_sm")? * figure("issue_per_scheduler")?;
            Some((figure("warp_size")? / figure("fp32_lanes")?).max(1.0 / slots))
        },
    },
    // S. Baghsorkhi et al., PPoPP 2010, equations (3) and (6) and Figure 1: the machine's parameters.
    DerivedKey {
        key: "pipeline_latency",
        rule: "arithmetic_latency",
        digits: ALL,
        of: |figure| figure("arithmetic_latency"),
    },
    DerivedKey {
        key: "simd_engine",
        rule: "fp32_lanes",
        digits: ALL,
        of: |figure| figure("fp32_lanes"),
    },
    DerivedKey {
        key: "memory_latency",
        rule: "dram_latency",
        digits: ALL,
        of: |figure| figure("dram_latency"),
    },
];

/// An SM's share of the peak DRAM bandwidth, in bytes per clock cycle.
fn share(figure: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
    let bytes = figure("dram_bandwidth_gb_s")? * 1e9;
    Some(bytes / (figure("sm_clock_mhz")? * 1e6) / figure("sms")?)
}

impl KeySpec {
    /// The rule that gives the figure where a profile does not state it, in words.
    pub fn derived_by(&self) -> Option<&'static str> {
        let known = RULES.iter().find(|known| known.key == self.name)?;
        Some(known.rule)
    }
}

/// The figures that follow from the stated ones and are none of them.
pub(crate) fn figures(
    stated: &dyn Fn(&str) -> Option<f64>,
) -> impl Iterator<Item = (&'static str, Figure)> {
    RULES.iter().filter_map(|known| {
        let key = KEYS.iter().find(|key| key.name == known.key)?;
        let value = match stated(known.key) {
            Some(_) => return None,
            None => rounded((known.of)(stated)?, known.digits),
        };
        let figure = Figure {
            value: value.clamp(key.min, key.max),
            unit: key.unit,
            source: format!("derived: {}", known.rule),
        };
        Some((known.key, figure))
    })
}

/// A number rounded to a number of significant digits.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures that follow from these.
    fn of(stated: &[(&str, f64)]) -> Vec<(&'static str, f64)> {
        let value = |key: &str| {
            let found = stated.iter().find(|(name, _)| *name == key);
            found.map(|(_, value)| *value)
        };
        let found = figures(&value).map(|(key, figure)| (key, figure.value));
        found.collect()
    }

    #[test]
    fn each_rule_is_a_key_once() {
        for (at, known) in RULES.iter().enumerate() {
            assert!(
                KEYS.iter().any(|key| key.name == known.key),
                "{}",
                known.key
            );
            assert!(RULES[..at].iter().all(|other| other.key != known.key));
        }
    }

    #[test]
    fn departure_delays_are_what_an_sms_share_of_the_bandwidth_takes() {
        let a100 = [
            ("dram_bandwidth_gb_s", 1555.0),
            ("sm_clock_mhz", 1410.0),
            ("sms", 108.0),
        ];
        assert_eq!(
            of(&a100),
            [("departure_del_uncoal", 3.13), ("departure_del_coal", 12.5)]
        );
    }

    #[test]
    fn a_stated_figure_stays_and_gives_no_other() {
        let stated = [("dram_latency", 440.0), ("mem_ld", 450.0)];
        assert_eq!(of(&stated), [("memory_latency", 440.0)]);
        assert_eq!(
            of(&[("fp32_lanes", 8.0), ("warp_size", 32.0)]),
            [("simd_engine", 8.0)]
        );
    }

    #[test]
    fn a_warp_issues_in_no_less_than_a_slot() {
        let cycles = |lanes: f64| {
            let stated = [
                ("warp_size", 32.0),
                ("fp32_lanes", lanes),
                ("schedulers_per_sm", 4.0),
                ("issue_per_scheduler", 1.0),
            ];
            of(&stated)
                .into_iter()
                .find(|(key, _)| *key == "issue_cycles")
        };
        assert_eq!(cycles(8.0), Some(("issue_cycles", 4.0)));
        assert_eq!(cycles(192.0), Some(("issue_cycles", 0.25)));
    }
}
