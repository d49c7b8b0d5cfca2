//! How many blocks and warps an SM holds at a time, what limits them, and what would let in more.
//!
//! Registers, from compute capability 2.0 on: a warp takes its registers rounded up to the unit,
//! out of the share of one sub-partition, and a block needs room for all its warps. On 1.x a block
//! takes its registers at once, its warps counted in pairs. Shared memory: what the block asks for
//! and what the system keeps, rounded up to the unit.

use crate::launch::block_too_big;
use crate::profile::Profile;
use crate::rules::RegisterScope;

/// What keeps another block out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limiter {
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
    /// The warps an SM holds.
    Warps,
    /// The blocks an SM holds, or its barriers.
    Blocks,
    /// The grid has no more blocks.
    Grid,
}

impl Limiter {
    /// The name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Registers => "registers",
            Self::Shared => "shared",
            Self::Warps => "warps",
            Self::Blocks => "blocks",
            Self::Grid => "grid",
        }
    }
}

/// Blocks on one SM that each limit allows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// By registers; `None` where the kernel's registers are not known (0).
    pub registers: Option<u32>,
    /// By shared memory; `None` where a block takes none.
    pub shared: Option<u32>,
    /// By warps.
    pub warps: u32,
    /// By blocks.
    pub blocks: u32,
    /// By the grid: the most blocks any SM gets while they are dealt out evenly.
    pub grid: u32,
}

impl Limits {
    /// The smallest limit; ties go to registers, shared, warps, blocks, grid in that order.
    fn smallest(&self) -> (u32, Limiter) {
        let all = [
            (self.registers.unwrap_or(u32::MAX), Limiter::Registers),
            (self.shared.unwrap_or(u32::MAX), Limiter::Shared),
            (self.warps, Limiter::Warps),
            (self.blocks, Limiter::Blocks),
            (self.grid, Limiter::Grid),
        ];
        all.into_iter().min().unwrap_or((0, Limiter::Registers))
    }
}

/// Resident blocks and warps of one SM.
#[derive(Debug, Clone, PartialEq)]
pub struct Occupancy {
    /// Blocks on one SM; 0 where the launch is impossible.
    pub active_blocks_per_sm: u32,
    /// Warps on one SM.
    pub active_warps_per_sm: u32,
    /// Active warps of the most the SM holds, 0 to 1.
    pub fraction: f64,
    /// What keeps another block out.
    pub limiter: Limiter,
    /// The smallest change that raises `fraction`, in words; `None` where nothing would.
    pub next_step: Option<String>,
    /// What that change is.
    pub step: Option<Step>,
    /// Why no block can run at all, in words; `None` where one can.
    pub why_impossible: Option<String>,
    /// Blocks each limit allows.
    pub limits: Limits,
}

/// A change that makes more warps resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A larger grid.
    Grid,
    /// Less of what a block takes.
    Lighter {
        /// Registers of a thread.
        registers: u32,
        /// Bytes of shared memory of a block.
        shared: u64,
    },
    /// Blocks of this many threads, as many threads in all.
    Block(u64),
}

impl Occupancy {
    /// The same of a launch that the driver refuses for its grid or its block.
    #[must_use]
    pub fn refused(self, why: String) -> Occupancy {
        Occupancy {
            active_blocks_per_sm: 0,
            active_warps_per_sm: 0,
            fraction: 0.0,
            limiter: Limiter::Grid,
            next_step: None,
            step: None,
            why_impossible: Some(why),
            limits: self.limits,
        }
    }
}

/// What a block takes.
#[derive(Clone, Copy)]
struct Demand {
    threads: u64,
    registers: u32,
    shared: u64,
    blocks: u64,
}

/// Resident blocks and warps of a launch.
///
/// `registers_per_thread` 0 means not known and limits nothing. `shared_bytes_per_block` is static
/// and dynamic shared memory together, and the kernel's arguments where
/// [`kernel_arguments`](Profile::kernel_arguments) says that they live there. `total_blocks` is the
/// grid's size.
pub fn occupancy(
    p: &Profile,
    threads_per_block: u64,
    registers_per_thread: u32,
    shared_bytes_per_block: u64,
    total_blocks: u64,
) -> Occupancy {
    let demand = Demand {
        threads: threads_per_block,
        registers: registers_per_thread,
        shared: shared_bytes_per_block,
        blocks: total_blocks,
    };
    let limits = limits(p, demand);
    if let Some((limiter, why)) = impossible(p, demand, &limits) {
        return Occupancy {
            active_blocks_per_sm: 0,
            active_warps_per_sm: 0,
            fraction: 0.0,
            limiter,
            next_step: None,
            step: None,
            why_impossible: Some(why),
            limits,
        };
    }
    let (blocks, limiter) = limits.smallest();
    let warps = resident_warps(p, demand, blocks);
    let (next_step, step) = next_step(p, demand, &limits).unzip();
    Occupancy {
        active_blocks_per_sm: blocks,
        active_warps_per_sm: warps,
        fraction: f64::from(warps) / f64::from(p.max_warps_per_sm),
        limiter,
        next_step,
        step,
        why_impossible: None,
        limits,
    }
}

fn warps_of_block(p: &Profile, threads: u64) -> u64 {
    threads.div_ceil(u64::from(p.warp_size))
}

fn resident_warps(p: &Profile, demand: Demand, blocks: u32) -> u32 {
    (u64::from(blocks) * warps_of_block(p, demand.threads)).min(u64::from(p.max_warps_per_sm))
        as u32
}

fn limits(p: &Profile, demand: Demand) -> Limits {
    let warps = warps_of_block(p, demand.threads).max(1);
    let narrow = |blocks: u64| u32::try_from(blocks).unwrap_or(u32::MAX);
    Limits {
        registers: (demand.registers > 0)
            .then(|| narrow(register_limit(p, warps, demand.registers))),
        shared: shared_limit(p, demand.shared).map(narrow),
        warps: narrow(u64::from(p.max_warps_per_sm) / warps),
        blocks: block_limit(p, warps),
        grid: narrow(demand.blocks.div_ceil(u64::from(p.sms))),
    }
}

/// Blocks with this number of warps that an SM keeps track of. A block of one warp takes no barrier.
fn block_limit(p: &Profile, warps: u64) -> u32 {
    match p.barriers_per_sm {
        Some(barriers) if warps > 1 => p.max_blocks_per_sm.min(barriers),
        _ => p.max_blocks_per_sm,
    }
}

/// Blocks whose registers fit.
fn register_limit(p: &Profile, warps: u64, registers: u32) -> u64 {
    let whole = registers_hold(p, warps, registers);
    if whole > 0 {
        return whole;
    }
    // One that a single SM does not hold may lie on two.
    let part = warps.div_ceil(u64::from(p.sms_per_block()));
    registers_hold(p, part, registers).min(1)
}

/// Blocks of that many warps whose registers one SM holds.
fn registers_hold(p: &Profile, warps: u64, registers: u32) -> u64 {
    let unit = u64::from(p.register_unit);
    let of_warp = u64::from(registers) * u64::from(p.warp_size);
    match p.register_scope {
        RegisterScope::Block => {
            let paired = warps.next_multiple_of(u64::from(p.warp_granularity));
            let of_block = paired.saturating_mul(of_warp).next_multiple_of(unit);
            u64::from(p.registers_per_sm) / of_block
        }
        RegisterScope::Warp => {
            let parts = u64::from(p.sub_partitions);
            let of_part = u64::from(p.registers_per_sm) / parts;
            parts * (of_part / of_warp.next_multiple_of(unit)) / warps
        }
    }
}

/// Blocks whose shared memory fits.
fn shared_limit(p: &Profile, bytes: u64) -> Option<u64> {
    let all = bytes.saturating_add(u64::from(p.shared_reserved_per_block));
    let unit = u64::from(p.shared_unit);
    let of_block = all.div_ceil(unit).saturating_mul(unit);
    (of_block > 0).then(|| u64::from(p.shared_per_sm) / of_block)
}

/// Why no block can run, and which limit says so.
fn impossible(p: &Profile, demand: Demand, limits: &Limits) -> Option<(Limiter, String)> {
    let Demand {
        threads,
        registers,
        shared,
        blocks,
    } = demand;
    let name = &p.name;
    if threads == 0 {
        return Some((Limiter::Warps, "a block without threads".to_owned()));
    }
    if threads > u64::from(p.max_threads_per_block) {
        return Some((Limiter::Warps, block_too_big(p, threads)));
    }
    if registers > p.max_registers_per_thread {
        let most = p.max_registers_per_thread;
        let words = p.register_words();
        let why = format!("{registers} {words}; {name} has at most {most}");
        return Some((Limiter::Registers, why));
    }
    if limits.registers == Some(0) {
        let most = most_registers(p, demand, 1);
        let cure = most.map_or_else(
            || "use smaller blocks".to_owned(),
            |most| format!("at most {most} {} fit that block", p.register_words()),
        );
        let why = format!(
            "{threads} threads of {registers} registers need more than the {} of an SM; {cure}",
            p.registers_per_sm
        );
        return Some((Limiter::Registers, why));
    }
    let most = u64::from(p.shared_per_block_max()).min(most_shared(p, 1).unwrap_or(0));
    if shared > most {
        let why = format!("{shared} bytes of shared memory per block; {name} has at most {most}");
        return Some((Limiter::Shared, why));
    }
    if limits.warps == 0 {
        let most = u64::from(p.max_warps_per_sm) * u64::from(p.warp_size);
        let why = format!("a block of {threads} threads; an SM of {name} holds {most}");
        return Some((Limiter::Warps, why));
    }
    (blocks == 0).then(|| (Limiter::Grid, "a grid without blocks".to_owned()))
}

/// The most registers that a thread can have where an SM must hold this number of blocks; `None` where none are few
/// enough, and of a block without threads.
pub fn registers_for_blocks(p: &Profile, threads_per_block: u64, blocks: u32) -> Option<u32> {
    if threads_per_block == 0 {
        return None;
    }
    let demand = Demand {
        threads: threads_per_block,
        registers: 0,
        shared: 0,
        blocks: 0,
    };
    most_registers(p, demand, blocks)
}

/// The most registers that a thread can have so that `blocks` fit.
fn most_registers(p: &Profile, demand: Demand, blocks: u32) -> Option<u32> {
    let warps = warps_of_block(p, demand.threads);
    (1..=p.max_registers_per_thread)
        .rev()
        .find(|registers| register_limit(p, warps, *registers) >= u64::from(blocks))
}

/// The most shared memory that a block can ask for so that `blocks` fit.
fn most_shared(p: &Profile, blocks: u32) -> Option<u64> {
    let unit = u64::from(p.shared_unit);
    let of_block = u64::from(p.shared_per_sm) / u64::from(blocks.max(1)) / unit * unit;
    of_block.checked_sub(u64::from(p.shared_reserved_per_block))
}

/// The smallest change to what limits that raises the number of resident warps.
fn next_step(p: &Profile, demand: Demand, limits: &Limits) -> Option<(String, Step)> {
    let (blocks, limiter) = limits.smallest();
    let now = resident_warps(p, demand, blocks);
    if now >= p.max_warps_per_sm {
        return None;
    }
    if limiter == Limiter::Grid {
        let fit = Limits {
            grid: u32::MAX,
            ..*limits
        }
        .smallest()
        .0;
        let wanted = u64::from(fit) * u64::from(p.sms);
        let blocks = demand.blocks;
        let text = format!("launch at least {wanted} blocks (now {blocks}) to fill every SM");
        return Some((text, Step::Grid));
    }
    fewer_resources(p, demand, limits, blocks).or_else(|| other_block(p, demand, now))
}

/// Fewer registers, less shared memory or both, for at least one more block.
fn fewer_resources(
    p: &Profile,
    demand: Demand,
    limits: &Limits,
    blocks: u32,
) -> Option<(String, Step)> {
    let target = blocks + 1;
    if limits.warps < target || limits.blocks < target || limits.grid < target {
        return None;
    }
    let mut lighter = demand;
    let mut steps = Vec::new();
    if limits.registers.is_some_and(|limit| limit < target) {
        lighter.registers = most_registers(p, demand, target)?;
        steps.push(format!(
            "{} {} (now {})",
            lighter.registers,
            p.register_words(),
            demand.registers
        ));
    }
    if limits.shared.is_some_and(|limit| limit < target) {
        lighter.shared = most_shared(p, target)?;
        let bytes = if lighter.shared == 0 {
            "no".to_owned()
        } else {
            format!("{} bytes of", lighter.shared)
        };
        steps.push(format!(
            "{bytes} shared memory per block (now {})",
            demand.shared
        ));
    }
    let reached = self::limits(p, lighter).smallest().0;
    let step = Step::Lighter {
        registers: lighter.registers,
        shared: lighter.shared,
    };
    (reached >= target && !steps.is_empty()).then(|| {
        let steps = steps.join(" and ");
        (format!("use at most {steps} for {reached} blocks"), step)
    })
}

/// The block size nearest to the present one, in whole warps, that makes more warps resident. The
/// number of threads launched stays.
fn other_block(p: &Profile, demand: Demand, now: u32) -> Option<(String, Step)> {
    let present = warps_of_block(p, demand.threads);
    let most = u64::from(p.max_threads_per_block / p.warp_size);
    let all = demand.threads.saturating_mul(demand.blocks);
    let better = |warps: u64| {
        let threads = warps * u64::from(p.warp_size);
        // A larger block is taken to need shared memory in proportion.
        let shared = demand.shared.saturating_mul(warps).div_ceil(present);
        let changed = Demand {
            threads,
            shared,
            blocks: all.div_ceil(threads),
            ..demand
        };
        let limits = limits(p, changed);
        if impossible(p, changed, &limits).is_some() {
            return None;
        }
        let blocks = limits.smallest().0;
        let resident = resident_warps(p, changed, blocks);
        (resident > now).then(|| {
            let text = format!(
                "use blocks of {threads} threads (now {}) for {resident} of {} warps",
                demand.threads, p.max_warps_per_sm
            );
            (text, Step::Block(threads))
        })
    };
    (1..most).find_map(|away| {
        let smaller = present.checked_sub(away).filter(|warps| *warps > 0);
        let larger = Some(present + away).filter(|warps| *warps <= most);
        smaller.and_then(better).or_else(|| larger.and_then(better))
    })
}
