//! Registers, spills, shared memory and what an SM holds of a kernel as text.

use warplens_db::wire::{KernelResult, Resources};
use warplens_facts::facts::Assumed;

use crate::figure::{bytes, counted, percent};

/// `24 registers per thread (estimated)`, on AMD `24 VGPRs per lane, 18 SGPRs per wave (estimated)`; in place of
/// `estimated`, the compiler whose report it is: `(nvcc 12.4)`.
pub fn registers(resources: &Resources) -> String {
    let source = match &resources.compiler {
        Some(said) if said.current && resources.registers_source == "compiler" => said.tool.clone(),
        Some(said) if !said.current => format!(
            "{}; {} by {} before the last edit",
            resources.registers_source, said.registers_per_thread, said.tool
        ),
        _ => resources.registers_source.to_owned(),
    };
    let registers = resources.registers_per_thread;
    match resources.sgprs_per_wave {
        Some(shared) => format!("{registers} VGPRs per lane, {shared} SGPRs per wave ({source})"),
        None => format!("{registers} registers per thread ({source})"),
    }
}

/// `64 B spilled`, with `some` where it is estimated; `None` where nothing spills.
pub fn spilled(resources: &Resources) -> Option<String> {
    let spilled = bytes(resources.spill_bytes.filter(|spilled| *spilled > 0)?);
    let some = if resources.registers_source == "estimated" {
        "some "
    } else {
        ""
    };
    Some(format!("{some}{spilled} spilled"))
}

/// True where nothing says how many bytes of dynamic shared memory each block has: what an SM holds is then a bound.
fn is_shared_memory_open(result: &KernelResult) -> bool {
    let mut assumptions = result.assumptions.iter();
    assumptions.any(|one| one.symbol == Assumed::DynamicShared.kind())
}

/// `4.1 KB shared memory per block`; what nothing gives is named, and is no number.
pub(crate) fn shared_memory(result: &KernelResult) -> String {
    let fixed = result.resources.static_shared_bytes;
    match (is_shared_memory_open(result), fixed) {
        (false, _) => {
            let all = bytes(fixed + result.launch.dynamic_shared_bytes);
            format!("{all} shared memory per block")
        }
        (true, 0) => "unknown dynamic shared memory per block".to_owned(),
        (true, fixed) => format!(
            "{} shared memory per block beside unknown dynamic shared memory",
            bytes(fixed)
        ),
    }
}

/// `50 %: 32 warps in 4 blocks on each SM, limited by registers`.
pub(crate) fn residency(result: &KernelResult) -> String {
    if result.is_opaque {
        return "not known".to_owned();
    }
    let occupancy = &result.occupancy;
    let bound = if is_shared_memory_open(result) {
        "at most "
    } else {
        ""
    };
    format!(
        "{bound}{}: {} in {} on each SM, limited by {}",
        percent(occupancy.fraction),
        counted(u64::from(occupancy.active_warps_per_sm), "warp"),
        counted(u64::from(occupancy.active_blocks_per_sm), "block"),
        occupancy.limiter
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_say_whose_word_they_are() {
        let mut resources = Resources {
            registers_per_thread: 38,
            sgprs_per_wave: None,
            registers_source: "estimated",
            static_shared_bytes: 0,
            local_bytes_per_thread: 0,
            spill_bytes: None,
            compiler: None,
        };
        assert_eq!(registers(&resources), "38 registers per thread (estimated)");
        let said = warplens_db::wire::Compiler {
            tool: "nvcc".to_owned(),
            current: false,
            registers_per_thread: 40,
            static_shared_bytes: 0,
            stack_bytes: 0,
            spill_store_bytes: 0,
            spill_load_bytes: 0,
            instructions: std::collections::BTreeMap::new(),
        };
        resources.compiler = Some(said.clone());
        assert_eq!(
            registers(&resources),
            "38 registers per thread (estimated; 40 by nvcc before the last edit)"
        );
        resources.compiler = Some(warplens_db::wire::Compiler {
            current: true,
            ..said
        });
        resources.registers_source = "compiler";
        resources.registers_per_thread = 40;
        assert_eq!(registers(&resources), "40 registers per thread (nvcc)");
        // The user's figure overrides the compiler report.
        resources.registers_source = "user";
        assert_eq!(registers(&resources), "40 registers per thread (user)");
        resources.sgprs_per_wave = Some(18);
        assert_eq!(
            registers(&resources),
            "40 VGPRs per lane, 18 SGPRs per wave (user)"
        );
    }

    #[test]
    fn what_is_spilled_is_said_with_its_certainty() {
        let mut resources = Resources {
            registers_per_thread: 32,
            sgprs_per_wave: None,
            registers_source: "estimated",
            static_shared_bytes: 0,
            local_bytes_per_thread: 0,
            spill_bytes: Some(0),
            compiler: None,
        };
        assert_eq!(spilled(&resources), None);
        resources.spill_bytes = Some(64);
        assert_eq!(spilled(&resources).as_deref(), Some("some 64 B spilled"));
        resources.registers_source = "compiler";
        assert_eq!(spilled(&resources).as_deref(), Some("64 B spilled"));
        resources.spill_bytes = None;
        assert_eq!(spilled(&resources), None);
    }
}
