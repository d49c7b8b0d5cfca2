//! Active work groups of an SM: equations 1 to 7 of the paper.

use warplens_machine::Profile;

/// What the equations need of the kernel and of the GPU (Table II, rows 2 to 14 and 17).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// `S_local`: work items of a work group.
    pub local_size: u64,
    /// `N_reg`: registers of a work item.
    pub registers: u64,
    /// `N_sm`: bytes of shared memory of a work group.
    pub shared_bytes: u64,
    /// `T_warp`: work items of a warp.
    pub warp_size: u64,
    /// `B_wg_SM`: most work groups of an SM.
    pub groups_per_sm: u64,
    /// `B_warp_SM`: most warps of an SM.
    pub warps_per_sm: u64,
    /// `B_reg_wi`: most registers of a work item.
    pub registers_per_item: u64,
    /// `B_reg_SM`: registers of an SM.
    pub registers_per_sm: u64,
    /// `B_reg_wg`: most registers of a work group.
    pub registers_per_group: u64,
    /// `B_sm_wg`: most shared memory of a work group, in bytes.
    pub shared_per_group: u64,
    /// `B_sm_SM`: shared memory of an SM, in bytes.
    pub shared_per_sm: u64,
    /// `G_reg`: registers are handed out in multiples of this many.
    pub register_unit: u64,
    /// `G_warp`: warps are handed out in multiples of this many.
    pub warp_unit: u64,
    /// `G_sm`: shared memory is handed out in multiples of this many bytes.
    pub shared_unit: u64,
}

/// What they give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// Equation 2: warps of a work group.
    pub warps_per_group: u64,
    /// Equation 1: by the architecture.
    pub by_architecture: u64,
    /// Equation 4: warps whose registers fit.
    pub warps_by_registers: u64,
    /// Equation 3: by registers; `None` where the kernel's registers are not known (0).
    pub by_registers: Option<u64>,
    /// Equation 6: shared memory that a work group gets, in bytes.
    pub shared_allocated: u64,
    /// Equation 5: by shared memory; `None` where a work group takes none.
    pub by_shared: Option<u64>,
    /// Equation 7.
    pub active: u64,
}

impl Parameters {
    /// The GPU's part from its profile. A work group may have all registers of an SM, and the shared memory that it
    /// opts in to; what the system keeps of it counts as the kernel's.
    pub fn new(profile: &Profile, local_size: u64, registers: u64, shared_bytes: u64) -> Self {
        let reserved = u64::from(profile.shared_reserved_per_block);
        Parameters {
            local_size,
            registers,
            shared_bytes: shared_bytes.saturating_add(reserved),
            warp_size: u64::from(profile.warp_size),
            groups_per_sm: u64::from(most_groups(profile, local_size)),
            warps_per_sm: u64::from(profile.max_warps_per_sm),
            registers_per_item: u64::from(profile.max_registers_per_thread),
            registers_per_sm: u64::from(profile.registers_per_sm),
            registers_per_group: u64::from(profile.registers_per_sm),
            shared_per_group: u64::from(profile.shared_per_block_max()) + reserved,
            shared_per_sm: u64::from(profile.shared_per_sm),
            register_unit: u64::from(profile.register_unit),
            warp_unit: u64::from(profile.warp_granularity),
            shared_unit: u64::from(profile.shared_unit),
        }
    }

    /// The equations.
    pub fn groups(&self) -> Groups {
        let warps_per_group = self.local_size.div_ceil(self.warp_size.max(1)).max(1);
        let by_architecture = self.groups_per_sm.min(self.warps_per_sm / warps_per_group);
        let of_warp = up(
            self.registers.saturating_mul(self.warp_size),
            self.register_unit,
        );
        let fitting = self.registers_per_group / of_warp.max(1);
        let warps_by_registers = fitting - fitting % self.warp_unit.max(1);
        let by_registers = if self.registers == 0 {
            None
        } else if self.registers > self.registers_per_item {
            Some(0)
        } else {
            let rounds = self.registers_per_sm / self.registers_per_group.max(1);
            Some(warps_by_registers / warps_per_group * rounds)
        };
        let shared_allocated = up(self.shared_bytes, self.shared_unit);
        let by_shared = if shared_allocated == 0 {
            None
        } else if shared_allocated > self.shared_per_group {
            Some(0)
        } else {
            Some(self.shared_per_sm / shared_allocated)
        };
        let active = [by_registers, by_shared]
            .into_iter()
            .flatten()
            .fold(by_architecture, u64::min);
        Groups {
            warps_per_group,
            by_architecture,
            warps_by_registers,
            by_registers,
            shared_allocated,
            by_shared,
            active,
        }
    }
}

/// `B_wg_SM`; groups of several warps each take one of an SM's barriers where it has few.
fn most_groups(profile: &Profile, local_size: u64) -> u32 {
    match profile.barriers_per_sm {
        Some(barriers) if local_size > u64::from(profile.warp_size) => {
            profile.max_blocks_per_sm.min(barriers)
        }
        _ => profile.max_blocks_per_sm,
    }
}

/// `ceil(x, y)` of the paper: `x` rounded up to a multiple of `y`.
fn up(x: u64, y: u64) -> u64 {
    x.div_ceil(y.max(1)).saturating_mul(y.max(1))
}
