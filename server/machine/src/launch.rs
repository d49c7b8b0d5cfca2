//! Limits of a launch's dimensions.

use crate::profile::Profile;

/// Why a grid and a block cannot be launched on that GPU, whatever the kernel needs; `None` where
/// they can.
///
/// Registers and shared memory are [`occupancy`](crate::occupancy)'s part.
pub fn launch_problem(p: &Profile, grid: [u64; 3], block: [u64; 3]) -> Option<String> {
    let axes = ["x", "y", "z"];
    for (what, unit, sizes, most) in [
        ("block", "threads", block, p.max_block()),
        ("grid", "blocks", grid, p.max_grid()),
    ] {
        for ((axis, size), most) in axes.iter().zip(sizes).zip(most) {
            if size == 0 {
                return Some(format!("the {what} has no {unit} in {axis}"));
            }
            if size > most {
                return Some(format!(
                    "the {what} has {size} {unit} in {axis}; {} takes at most {most}",
                    p.name
                ));
            }
        }
    }
    let threads = block
        .iter()
        .fold(1_u64, |all, size| all.saturating_mul(*size));
    (threads > u64::from(p.max_threads_per_block)).then(|| block_too_big(p, threads))
}

/// The message for a block with too many threads.
pub(crate) fn block_too_big(p: &Profile, threads: u64) -> String {
    format!(
        "a block of {threads} threads; {} takes at most {}",
        p.name, p.max_threads_per_block
    )
}
