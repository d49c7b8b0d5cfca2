//! What compilers say of the resources of kernels while they compile them.

use super::number_after;

/// Resources of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// The linker's name.
    pub mangled: String,
    /// Registers of a thread; vector registers on AMD.
    pub registers: u32,
    /// Static shared memory of a block.
    pub shared_bytes: u64,
    /// Local memory of a thread.
    pub stack_bytes: u64,
    /// Bytes that a thread writes for want of registers.
    pub spill_store_bytes: u64,
    /// Bytes that a thread reads back.
    pub spill_load_bytes: u64,
}

/// Reads what `ptxas -v` prints; other lines may stand between.
pub fn ptxas_verbose(text: &str) -> Vec<Usage> {
    let mut found: Vec<Usage> = Vec::new();
    // The lines on a function's stack are its own, not always the kernel's before.
    let mut of_kernel = false;
    for line in text.lines() {
        if line.contains("Compiling entry function") {
            let name = line.split('\'').nth(1).unwrap_or_default();
            found.push(Usage {
                mangled: name.to_owned(),
                ..Usage::default()
            });
            of_kernel = true;
        }
        let Some(kernel) = found.last_mut() else {
            continue;
        };
        if let Some((_, name)) = line.split_once("Function properties for ") {
            of_kernel = name.trim().trim_matches('\'') == kernel.mangled;
        } else if line.contains("bytes stack frame") {
            if of_kernel {
                let before = |mark: &str| number_before(line, mark).unwrap_or(0);
                kernel.stack_bytes = before(" bytes stack frame");
                kernel.spill_store_bytes = before(" bytes spill stores");
                kernel.spill_load_bytes = before(" bytes spill loads");
            }
        } else if let Some(registers) = number_after(line, "Used ") {
            kernel.registers = registers;
            kernel.shared_bytes = number_before(line, " bytes smem").unwrap_or(0);
        }
    }
    found.retain(|kernel| kernel.registers > 0 && !kernel.mangled.is_empty());
    found
}

/// Reads clang's remarks on the resources of kernels for AMD (`-Rpass-analysis=kernel-resource-usage`).
pub fn amd_remarks(text: &str) -> Vec<Usage> {
    let mut found: Vec<Usage> = Vec::new();
    for line in text.lines() {
        let Some((_, remark)) = line.split_once("remark: ") else {
            continue;
        };
        // With debug information the place is repeated before each.
        let remark = remark.trim();
        if let Some((_, name)) = remark.split_once("Function Name: ") {
            let name = name.split_whitespace().next().unwrap_or_default();
            found.push(Usage {
                mangled: name.to_owned(),
                ..Usage::default()
            });
            continue;
        }
        let Some(kernel) = found.last_mut() else {
            continue;
        };
        // `AGPRs` and `TotalSGPRs` are others' registers.
        if let Some(number) = field(remark, "VGPRs:") {
            kernel.registers = number as u32;
        } else if let Some(number) = field(remark, "ScratchSize [bytes/lane]:") {
            kernel.stack_bytes = number;
        } else if let Some(number) = field(remark, "VGPRs Spill:") {
            // A register that is spilled is written once and read once at least.
            kernel.spill_store_bytes = number.saturating_mul(4);
            kernel.spill_load_bytes = number.saturating_mul(4);
        } else if let Some(number) = field(remark, "LDS Size [bytes/block]:") {
            kernel.shared_bytes = number;
        }
    }
    found.retain(|kernel| !kernel.mangled.is_empty());
    found
}

/// The number of a remark `NAME: 12 [-R…]`; the remark may begin with its place.
fn field(remark: &str, name: &str) -> Option<u64> {
    let (before, _) = remark.split_once(name)?;
    let whole = before.chars().next_back().is_none_or(char::is_whitespace);
    whole.then(|| number_after(remark, name)).flatten()
}

/// The number right before `mark`.
fn number_before(text: &str, mark: &str) -> Option<u64> {
    let (before, _) = text.split_once(mark)?;
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}
