//! What the machine code of one architecture has and another has not, as nvcc writes it.

use crate::Class;

/// The architecture that is compiled for: the newest measured one that is not newer than the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target(u8);

/// How the machine code of an architecture is written.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Its name, which its recipes are kept under.
    pub name: &'static str,
    /// Its compute capability.
    capability: (u32, u32),
    /// Parameters and the launch's sizes are loaded from the constant bank before they are used; else they are operands
    /// of what uses them.
    pub loads_parameters: bool,
    /// Accesses of device memory name a descriptor, which a kernel loads once.
    pub descriptor: bool,
    /// Accesses of shared memory scale their subscript: `[R0.X4]`.
    pub scales_subscripts: bool,
    /// Instructions for a warp's matrix product of 16 · 16 · 16 in half precision.
    pub products: u8,
    /// It multiplies matrices of floats of 8 bits; else they are made halves.
    pub small_floats: bool,
    /// It multiplies matrices of integers of 4 bits; else they are made bytes.
    pub nibbles: bool,
    /// It multiplies matrices of single bits; else they are made bytes.
    pub single_bits: bool,
    /// It multiplies matrices of 8 · 8 · 4 in half precision for each quarter of a warp; else a routine does it by shuffles.
    pub quarters: bool,
    /// Matrices of 8 · 8 in half precision that an instruction loads from shared memory for one of 16 · 16.
    pub matrices: u32,
    /// Copies from device memory into shared memory pass the registers by: `LDGSTS`.
    pub copies: bool,
    /// What the address of shared memory costs a kernel: since clusters, a block's shared memory is a window in theirs.
    pub window: &'static [(Class, u32)],
    /// The same for each further array.
    pub further_array: &'static [(Class, u32)],
}

/// Operands from the constant bank, shared memory that begins at 0.
const BEFORE_CLUSTERS: Machine = Machine {
    name: "",
    capability: (0, 0),
    loads_parameters: false,
    descriptor: true,
    scales_subscripts: true,
    products: 2,
    small_floats: false,
    nibbles: true,
    single_bits: true,
    quarters: false,
    matrices: 4,
    copies: true,
    window: &[],
    further_array: &[],
};

/// `LDC` for what is in the constant bank; `CgaCtaId`, `0x400` and their `LEA` for the window.
const WITH_CLUSTERS: Machine = Machine {
    name: "",
    capability: (0, 0),
    loads_parameters: true,
    descriptor: true,
    scales_subscripts: false,
    products: 2,
    small_floats: false,
    nibbles: false,
    single_bits: false,
    quarters: false,
    matrices: 4,
    copies: true,
    window: &[(Class::Other, 1), (Class::Mov, 1), (Class::Lea, 1)],
    further_array: &[(Class::Iadd3, 1), (Class::Lea, 1)],
};

/// The architectures that were measured, the oldest first.
pub(crate) const MEASURED: [Machine; 7] = [
    Machine {
        name: "sm_75",
        capability: (7, 5),
        descriptor: false,
        products: 4,
        quarters: true,
        matrices: 2,
        copies: false,
        ..BEFORE_CLUSTERS
    },
    Machine {
        name: "sm_80",
        capability: (8, 0),
        ..BEFORE_CLUSTERS
    },
    Machine {
        name: "sm_86",
        capability: (8, 6),
        ..BEFORE_CLUSTERS
    },
    Machine {
        name: "sm_89",
        capability: (8, 9),
        small_floats: true,
        ..BEFORE_CLUSTERS
    },
    Machine {
        name: "sm_90",
        capability: (9, 0),
        single_bits: true,
        ..WITH_CLUSTERS
    },
    Machine {
        name: "sm_100",
        capability: (10, 0),
        ..WITH_CLUSTERS
    },
    Machine {
        name: "sm_120",
        capability: (12, 0),
        small_floats: true,
        ..WITH_CLUSTERS
    },
];

/// The one for GPUs without a compute capability.
const USUAL: (u32, u32) = (8, 0);

impl Target {
    /// The target for a GPU of that compute capability: the newest measured one that is not newer, else the oldest.
    pub fn of(capability: Option<(u32, u32)>) -> Target {
        let capability = capability.unwrap_or(USUAL);
        let newer = MEASURED
            .iter()
            .take_while(|machine| machine.capability <= capability)
            .count();
        Target(newer.saturating_sub(1) as u8)
    }

    /// The architecture as compilers name it: `sm_80`.
    pub fn name(self) -> &'static str {
        self.machine().name
    }

    /// True where copies from device memory into shared memory pass the registers by.
    pub fn copies_past_registers(self) -> bool {
        self.machine().copies
    }

    pub(crate) fn machine(self) -> &'static Machine {
        &MEASURED[self.index()]
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Target {
    fn default() -> Target {
        Target::of(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_takes_the_newest_measured_architecture_that_is_not_newer() {
        let name = |capability| Target::of(capability).name();
        assert_eq!(name(Some((8, 6))), "sm_86");
        assert_eq!(name(Some((8, 7))), "sm_86");
        assert_eq!(name(Some((10, 3))), "sm_100");
        assert_eq!(name(Some((13, 0))), "sm_120");
        assert_eq!(name(Some((3, 5))), "sm_75");
        assert_eq!(name(None), "sm_80");
        let capabilities = MEASURED.map(|machine| machine.capability);
        assert!(capabilities.is_sorted());
    }
}
