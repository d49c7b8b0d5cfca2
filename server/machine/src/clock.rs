//! A GPU at another clock than its profile's: locked, or kept down by a limit on its power.

use crate::{Figure, Profile};

/// What [`Profile::clock_within`] takes for granted.
pub const CUBE_ROOT: &str = "the kernel draws all of it, and the clock goes with its cube root";

impl Profile {
    /// The same GPU with its SMs at this clock (MHz).
    ///
    /// The SMs, their caches and L2 go with the clock. DRAM and the way to it do not: their bandwidth stays, and of a
    /// latency in cycles what lies behind L2 shrinks with a slower clock.
    #[must_use]
    pub fn at_clock(&self, mhz: f64) -> Profile {
        let ratio = mhz / self.sm_clock_mhz;
        let near = self.l2_latency.unwrap_or(0.0).min(self.dram_latency);
        let behind_l2 = |cycles: f64| {
            let near = near.min(cycles);
            near + (cycles - near) * ratio
        };
        let mut profile = self.clone();
        profile.sm_clock_mhz = mhz;
        profile.dram_latency = behind_l2(self.dram_latency);
        profile.memory_latency = behind_l2(self.memory_latency);
        profile.mem_ld = self.mem_ld.map(behind_l2);
        profile.departure_del_coal = self.departure_del_coal.map(|cycles| cycles * ratio);
        profile.departure_del_uncoal = self.departure_del_uncoal.map(|cycles| cycles * ratio);
        profile.l2_bandwidth_gb_s = self.l2_bandwidth_gb_s.map(|rate| rate * ratio);
        let changed = [
            ("sm_clock_mhz", Some(mhz)),
            ("dram_latency", Some(profile.dram_latency)),
            ("memory_latency", Some(profile.memory_latency)),
            ("mem_ld", profile.mem_ld),
            ("departure_del_coal", profile.departure_del_coal),
            ("departure_del_uncoal", profile.departure_del_uncoal),
            ("l2_bandwidth_gb_s", profile.l2_bandwidth_gb_s),
        ];
        for (key, value) in changed {
            let figure: Option<&mut Figure> = profile.figures.get_mut(key);
            if let (Some(figure), Some(value)) = (figure, value) {
                figure.value = value;
                figure.source = format!("at {mhz:.0} MHz: {}", figure.source);
            }
        }
        profile
    }

    /// The clock (MHz) that a limit on the board's power (W) leaves, at most the profile's; `None` where the profile does not say what
    /// the board may draw.
    ///
    /// Dynamic power goes with the clock and the square of the voltage, and the voltage with the clock. A kernel that draws
    /// less than the limit keeps its clock: what this gives is the least.
    pub fn clock_within(&self, watts: f64) -> Option<f64> {
        let share = watts / self.board_power_w?;
        Some(self.sm_clock_mhz * share.min(1.0).cbrt())
    }
}

#[cfg(test)]
mod tests {
    use crate::Profiles;

    #[test]
    fn a_slower_clock_brings_memory_nearer() {
        let profiles = Profiles::builtin();
        let a100 = profiles.get("a100-sxm4-40gb").expect("built in");
        let half = a100.at_clock(705.0);
        assert_eq!(half.sm_clock_mhz, 705.0);
        // In cycles less, in time more: the way through L2 is as many cycles as before.
        assert!(half.dram_latency < a100.dram_latency);
        assert!(half.dram_latency / 705.0 > a100.dram_latency / 1410.0);
        assert_eq!(half.dram_bandwidth_gb_s, a100.dram_bandwidth_gb_s);
        assert_eq!(
            half.dram_bytes_per_cycle_per_sm(),
            2.0 * a100.dram_bytes_per_cycle_per_sm()
        );
        assert_eq!(half.figures()["sm_clock_mhz"].value, 705.0);
        assert!(
            half.figures()["sm_clock_mhz"]
                .source
                .starts_with("at 705 MHz: ")
        );
        for profile in profiles.iter() {
            assert_eq!(
                profile.at_clock(profile.sm_clock_mhz).dram_latency,
                profile.dram_latency,
                "{}",
                profile.id
            );
        }
    }

    #[test]
    fn an_eighth_of_the_power_halves_the_clock() {
        let profiles = Profiles::builtin();
        let a100 = profiles.get("a100-sxm4-40gb").expect("built in");
        assert_eq!(a100.clock_within(50.0), Some(705.0));
        assert_eq!(a100.clock_within(400.0), Some(1410.0));
        assert_eq!(a100.clock_within(1000.0), Some(1410.0));
        let unknown = profiles.get("gtx-645").expect("built in");
        assert_eq!(unknown.clock_within(50.0), None);
    }
}
