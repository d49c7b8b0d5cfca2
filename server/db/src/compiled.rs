//! How a kernel is compiled: under which limits.

use warplens_base::Command;
use warplens_codegen::{Backend, MOST_REGISTERS, MatrixUnits, Options, Target, WARPS_REGISTERS};
use warplens_ir::Kernel;
use warplens_machine::{Profile, Vendor, registers_for_blocks};
use warplens_syntax::Language;

/// Work-items of the largest block that HIP launches.
const LARGEST_BLOCK: u32 = 1024;

/// The options with which a kernel is compiled: its compile command's, and what it says of itself.
pub(crate) fn options(kernel: &Kernel, command: Option<&Command>, profile: &Profile) -> Options {
    // As for ptxas, a kernel that bounds itself has no use for the command's bound.
    let (most, occupancy_given) = if let Some(most) = kernel.max_registers {
        (u32::try_from(most).ok(), true)
    } else if let Some(threads) = kernel.max_threads.or_else(|| required_threads(kernel)) {
        // HIP's second number counts warps.
        let of_blocks = kernel.language == Language::Cuda;
        let blocks = kernel.min_blocks.filter(|_| of_blocks);
        let blocks = blocks.and_then(|blocks| u32::try_from(blocks).ok());
        let most = registers_for_blocks(profile, threads, blocks.unwrap_or(1));
        (most, blocks.is_some())
    } else {
        let most = command.and_then(|command| command.max_registers);
        (
            most.or_else(|| without_bounds(kernel, profile)),
            most.is_some(),
        )
    };
    Options {
        target: Target::of(profile.compute_capability),
        backend: match profile.vendor {
            Vendor::Amd => Backend::Amdgpu,
            Vendor::Nvidia | Vendor::Intel => Backend::Nvidia,
        },
        matrices: MatrixUnits::of(&profile.architecture),
        fast_math: command.is_some_and(|command| command.fast_math),
        max_registers: most
            .unwrap_or(MOST_REGISTERS)
            .min(profile.max_registers_per_thread)
            .min(MOST_REGISTERS),
        warps: warps(profile),
        occupancy_given,
    }
}

/// What clang leaves a lane of a HIP kernel that does not bound its blocks: they may have 1024 work-items (its
/// `-gpu-max-threads-per-block`).
fn without_bounds(kernel: &Kernel, profile: &Profile) -> Option<u32> {
    if profile.vendor != Vendor::Amd || kernel.language == Language::OpenCl {
        return None;
    }
    let registers = profile.registers_per_sm * profile.sms_per_block();
    Some((registers / LARGEST_BLOCK).max(1))
}

/// The most warps that share [`WARPS_REGISTERS`] registers of an SM.
fn warps(profile: &Profile) -> u32 {
    let warps = u64::from(profile.max_warps_per_sm) * u64::from(WARPS_REGISTERS)
        / u64::from(profile.registers_per_sm.max(1));
    // No thread has fewer than eight registers.
    warps.min(64) as u32
}

fn required_threads(kernel: &Kernel) -> Option<u64> {
    let [x, y, z] = kernel.required_block?;
    x.checked_mul(y)?.checked_mul(z)
}
