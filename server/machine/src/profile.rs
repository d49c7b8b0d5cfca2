//! A GPU as data. The table at the end of this file is the schema of the profile files: key, type,
//! unit, range.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::property::Property;
use crate::rules::{BankRule, GlobalRule, KernelArguments, RULES, RegisterScope, Rule, RuleSpec};

/// Who makes the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Intel.
    Intel,
}

impl Vendor {
    /// The name in profile files and in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia",
            Self::Amd => "amd",
            Self::Intel => "intel",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Nvidia, Self::Amd, Self::Intel]
            .into_iter()
            .find(|vendor| vendor.name() == text)
    }
}

/// One number of a profile, with its unit and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The number, in `unit`.
    #[serde(serialize_with = "plain_number")]
    pub value: f64,
    /// The unit, fixed by the key.
    pub unit: &'static str,
    /// A guide, a paper, a data sheet or a measurement; `estimated: <rule>` where it is not
    /// published, `derived: <rule>` where the profile does not state it and other figures give it.
    pub source: String,
}

impl Figure {
    /// Whether the number is unpublished: it is estimated or derived from others.
    pub fn is_estimated(&self) -> bool {
        self.source.starts_with("estimated") || self.source.starts_with("derived")
    }
}

/// Whole numbers without a trailing `.0`.
// serde asks for a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn plain_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < 9.0e15 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// What the schema says about one key of a profile file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeySpec {
    /// The key.
    pub name: &'static str,
    /// The unit of its value.
    pub unit: &'static str,
    /// Whether the value is a whole number.
    pub whole: bool,
    /// Whether every profile must have it.
    pub required: bool,
    /// The smallest value accepted.
    pub min: f64,
    /// The largest value accepted.
    pub max: f64,
    /// What it means, in one or two sentences.
    pub about: &'static str,
}

/// The type of a profile field.
trait Field: Sized {
    const WHOLE: bool;
    const REQUIRED: bool;
    /// The field from its figure; `None` where a required one is missing.
    fn take(value: Option<f64>) -> Option<Self>;
}

macro_rules! field {
    ($($number:ty, $whole:literal);+) => {$(
        impl Field for $number {
            const WHOLE: bool = $whole;
            const REQUIRED: bool = true;
            // The schema's ranges keep whole numbers within the type.
            fn take(value: Option<f64>) -> Option<Self> {
                value.map(|value| value as $number)
            }
        }
        impl Field for Option<$number> {
            const WHOLE: bool = $whole;
            const REQUIRED: bool = false;
            fn take(value: Option<f64>) -> Option<Self> {
                Some(value.map(|value| value as $number))
            }
        }
    )+};
}
field!(u32, true; u64, true; f64, false);

/// The parts of a profile that are not numbers.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub id: String,
    pub name: String,
    pub vendor: Vendor,
    pub architecture: String,
    pub compute_capability: Option<(u32, u32)>,
    pub global_rule: GlobalRule,
    pub bank_rule: BankRule,
    pub register_scope: RegisterScope,
    pub kernel_arguments: KernelArguments,
}

/// The struct, the schema and the constructor from one table.
macro_rules! profile {
    ($($(#[doc = $about:literal])+ $name:ident: $kind:ty = $unit:literal, $range:expr;)+) => {
        /// A GPU: every figure that the analysis and the models use.
        ///
        /// A figure's origin is under the field's name in
        /// [`figures`](Self::figures).
        #[derive(Debug, Clone, PartialEq)]
        pub struct Profile {
            /// The id users write, such as `a100-sxm4-40gb`.
            pub id: String,
            /// The name on the box.
            pub name: String,
            /// Who makes it.
            pub vendor: Vendor,
            /// The architecture, such as `sm_80` or `gfx90a`.
            pub architecture: String,
            /// NVIDIA's compute capability, major and minor; `None` elsewhere.
            pub compute_capability: Option<(u32, u32)>,
            /// How global requests become transactions.
            pub global_rule: GlobalRule,
            /// How shared memory is banked.
            pub bank_rule: BankRule,
            /// What registers are allocated to.
            pub register_scope: RegisterScope,
            /// Where kernel arguments live.
            pub kernel_arguments: KernelArguments,
            $($(#[doc = $about])+ pub $name: $kind,)+
            /// What one unit of a property costs (table `[linear_weights]`), in picoseconds of the whole device;
            /// empty where the linear model was not fitted to this GPU.
            pub linear_weights: BTreeMap<Property, Figure>,
            /// The limit on its power (W) that its clock follows, where a user gave one; no key of a file.
            pub limited_to_w: Option<f64>,
            pub(crate) figures: BTreeMap<String, Figure>,
            pub(crate) rules: BTreeMap<String, Rule>,
        }

        /// Every numeric key of a profile file.
        pub(crate) static KEYS: &[KeySpec] = &[$(KeySpec {
            name: stringify!($name),
            unit: $unit,
            whole: <$kind as Field>::WHOLE,
            required: <$kind as Field>::REQUIRED,
            min: *$range.start(),
            max: *$range.end(),
            about: concat!($($about),+),
        }),+];

        impl Profile {
            /// A profile from checked figures; the error is a required key that is missing.
            pub(crate) fn assemble(
                header: Header,
                figures: BTreeMap<String, Figure>,
                rules: BTreeMap<String, Rule>,
                linear_weights: BTreeMap<Property, Figure>,
            ) -> Result<Self, &'static KeySpec> {
                let value = |name: &str| figures.get(name).map(|figure| figure.value);
                let missing = |name: &str| {
                    KEYS.iter().find(|key| key.name == name).unwrap_or(&KEYS[0])
                };
                Ok(Self {
                    id: header.id,
                    name: header.name,
                    vendor: header.vendor,
                    architecture: header.architecture,
                    compute_capability: header.compute_capability,
                    global_rule: header.global_rule,
                    bank_rule: header.bank_rule,
                    register_scope: header.register_scope,
                    kernel_arguments: header.kernel_arguments,
                    $($name: <$kind as Field>::take(value(stringify!($name)))
                        .ok_or_else(|| missing(stringify!($name)))?,)+
                    linear_weights,
                    limited_to_w: None,
                    figures,
                    rules,
                })
            }
        }
    };
}

impl Profile {
    /// Every figure under its key, with unit and source.
    pub fn figures(&self) -> &BTreeMap<String, Figure> {
        &self.figures
    }

    /// The same GPU with the 8-byte mode of its banks, where they have two modes (3.x): what
    /// `cudaDeviceSetSharedMemConfig` asks for.
    pub fn with_eight_byte_banks(&self) -> Option<Profile> {
        if !self.bank_rule.kepler_four_byte {
            return None;
        }
        let mut profile = self.clone();
        profile.bank_rule.kepler_four_byte = false;
        profile.bank_rule.kepler_eight_byte = true;
        if let Some(rule) = profile.rules.get_mut("bank_mode") {
            "kepler-8-byte".clone_into(&mut rule.value);
        }
        Some(profile)
    }

    /// The rules that are names (`coalescing`, `bank_mode`, `register_scope`, `kernel_arguments`),
    /// with their sources.
    pub fn rules(&self) -> &BTreeMap<String, Rule> {
        &self.rules
    }

    /// The schema of the numeric keys, in the order in which people want to read them.
    pub fn keys() -> &'static [KeySpec] {
        KEYS
    }

    /// The schema of the keys whose value is a name.
    pub fn rule_keys() -> &'static [RuleSpec] {
        RULES
    }

    /// What a thread's registers are called.
    pub fn register_words(&self) -> &'static str {
        match self.vendor {
            Vendor::Amd => "VGPRs per lane",
            Vendor::Nvidia | Vendor::Intel => "registers per thread",
        }
    }

    /// Most threads of a block in x, y and z.
    pub fn max_block(&self) -> [u64; 3] {
        [self.max_block_x, self.max_block_y, self.max_block_z].map(u64::from)
    }

    /// Most blocks of a grid in x, y and z.
    pub fn max_grid(&self) -> [u64; 3] {
        [self.max_grid_x, self.max_grid_y, self.max_grid_z].map(u64::from)
    }

    /// The least and the largest price that a property may have, in picoseconds: up to a second, and only what
    /// overlaps saves.
    pub fn weight_range(property: Property) -> (f64, f64) {
        const SECOND: f64 = 1e12;
        match property {
            Property::Overlap => (-SECOND, 0.0),
            _ => (0.0, SECOND),
        }
    }

    /// SM clock cycles in a second.
    pub fn cycles_per_second(&self) -> f64 {
        self.sm_clock_mhz * 1e6
    }

    /// Most shared memory that a block can have, opted in where the GPU asks for that, in bytes.
    pub fn shared_per_block_max(&self) -> u32 {
        self.shared_per_block_opt_in
            .unwrap_or(self.shared_per_block)
            .max(self.shared_per_block)
    }

    /// SMs that the warps of one block lie on: both compute units of a work group processor of RDNA (RDNA 2 instruction set,
    /// work group processor mode, which clang compiles for), else one.
    pub fn sms_per_block(&self) -> u32 {
        if self.vendor == Vendor::Amd && self.warp_size == 32 {
            2
        } else {
            1
        }
    }

    /// DRAM bandwidth that kernels reach, in GB/s.
    pub fn achieved_dram_bandwidth_gb_s(&self) -> f64 {
        self.dram_bandwidth_gb_s * self.dram_efficiency
    }

    /// One SM's share of the peak DRAM bandwidth, in bytes per clock cycle.
    pub fn dram_bytes_per_cycle_per_sm(&self) -> f64 {
        self.dram_bandwidth_gb_s * 1e9 / self.cycles_per_second() / f64::from(self.sms)
    }

    /// Cycles between two blocks started anywhere on the device. Blocks are handed out one after the other, so that what an SM waits
    /// for its next one grows with the SMs: an RTX 3080 of 68 starts one in 1.4 cycles, an H100 of 132 in 1.2. Between these is
    /// what is estimated of NVIDIA's others from Volta on; of other GPUs nothing is known, which is 0.
    pub fn block_start_cycles(&self) -> f64 {
        const ESTIMATED: f64 = 1.3;
        let measured = self.block_launch_cycles;
        let alike = self.compute_capability.is_some_and(|of| of >= (7, 0));
        let estimated = if alike { ESTIMATED } else { 0.0 };
        measured.map_or(estimated, |cycles| cycles / f64::from(self.sms))
    }

    /// What a kernel takes besides its blocks, in cycles: its parameters and first instructions come from DRAM before the first block
    /// computes, and its last stores are waited for. 1.6 us on an H100, measured less predicted at the median of 114 launches of
    /// `tests/kernels` of under 15 us; estimated to be the same on others.
    pub fn kernel_overhead_cycles(&self) -> f64 {
        const ESTIMATED: f64 = 1.6;
        self.kernel_overhead_us.unwrap_or(ESTIMATED) * self.sm_clock_mhz
    }

    /// Warp instructions one SM issues in a clock cycle.
    pub fn issue_per_clock(&self) -> f64 {
        f64::from(self.schedulers_per_sm) * self.issue_per_scheduler
    }
}

profile! {
    /// Lanes of a warp (wave, SIMD thread).
    warp_size: u32 = "lanes", 16.0..=64.0;
    /// Streaming multiprocessors (compute units, Xe-cores) of the device.
    sms: u32 = "SMs", 1.0..=4096.0;
    /// SM clock under load; the shader clock on 1.x.
    sm_clock_mhz: f64 = "MHz", 50.0..=10_000.0;
    /// What the board may draw (TDP, TBP, TGP).
    board_power_w: Option<f64> = "W", 1.0..=100_000.0;
    /// Warp schedulers of an SM.
    schedulers_per_sm: u32 = "schedulers", 1.0..=64.0;
    /// Warp instructions one scheduler issues in a clock cycle (0.25 where an instruction occupies
    /// four).
    issue_per_scheduler: f64 = "instructions/clk", 0.03125..=8.0;
    /// Most threads of a block.
    max_threads_per_block: u32 = "threads", 32.0..=65_536.0;
    /// Most threads of a block in x.
    max_block_x: u32 = "threads", 1.0..=65_536.0;
    /// Most threads of a block in y.
    max_block_y: u32 = "threads", 1.0..=65_536.0;
    /// Most threads of a block in z.
    max_block_z: u32 = "threads", 1.0..=65_536.0;
    /// Most blocks of a grid in x.
    max_grid_x: u32 = "blocks", 1.0..=4_294_967_295.0;
    /// Most blocks of a grid in y.
    max_grid_y: u32 = "blocks", 1.0..=4_294_967_295.0;
    /// Most blocks of a grid in z.
    max_grid_z: u32 = "blocks", 1.0..=4_294_967_295.0;
    /// Most warps resident on an SM.
    max_warps_per_sm: u32 = "warps", 1.0..=1024.0;
    /// Most blocks resident on an SM.
    max_blocks_per_sm: u32 = "blocks", 1.0..=1024.0;
    /// Barriers of an SM; each resident block of several warps takes one.
    barriers_per_sm: Option<u32> = "barriers", 1.0..=1024.0;
    /// 32-bit registers of an SM.
    registers_per_sm: u32 = "registers", 1024.0..=16_777_216.0;
    /// Most registers of a thread.
    max_registers_per_thread: u32 = "registers", 16.0..=1024.0;
    /// Registers are handed out in multiples of this many, to a block or a warp (`register_scope`).
    register_unit: u32 = "registers", 1.0..=65_536.0;
    /// Register allocation counts the warps of a block in multiples of this many.
    warp_granularity: u32 = "warps", 1.0..=64.0;
    /// Parts of an SM that each hold an equal share of the registers and of a block's warps.
    sub_partitions: u32 = "sub-partitions", 1.0..=64.0;
    /// Shared memory of an SM in the largest configuration.
    shared_per_sm: u32 = "bytes", 1024.0..=16_777_216.0;
    /// Most shared memory of a block without opting in for more; the limit of static shared memory.
    shared_per_block: u32 = "bytes", 1024.0..=16_777_216.0;
    /// Most shared memory of a block that opts in.
    shared_per_block_opt_in: Option<u32> = "bytes", 1024.0..=16_777_216.0;
    /// Shared memory is handed out to a block in multiples of this many.
    shared_unit: u32 = "bytes", 1.0..=65_536.0;
    /// Shared memory the system keeps in every block, on top of what the block asks for.
    shared_reserved_per_block: u32 = "bytes", 0.0..=65_536.0;
    /// Banks of shared memory, each 4 bytes wide to the program.
    banks: u32 = "banks", 16.0..=32.0;

    /// Half-precision results in a clock cycle of an SM.
    fp16_lanes: Option<f64> = "lanes/clk/SM", 0.01..=65_536.0;
    /// Single-precision results in a clock cycle of an SM.
    fp32_lanes: f64 = "lanes/clk/SM", 0.01..=65_536.0;
    /// Double-precision results in a clock cycle of an SM.
    fp64_lanes: Option<f64> = "lanes/clk/SM", 0.01..=65_536.0;
    /// 32-bit integer additions in a clock cycle of an SM.
    int_lanes: f64 = "lanes/clk/SM", 0.01..=65_536.0;
    /// 32-bit integer multiplications in a clock cycle of an SM.
    int_mul_lanes: f64 = "lanes/clk/SM", 0.01..=65_536.0;
    /// Special functions (reciprocal, square root, sine, exponential) in a clock cycle of an SM.
    sfu_lanes: f64 = "lanes/clk/SM", 0.01..=65_536.0;
    /// Conversions from floating point to 32-bit integer in a clock cycle of an SM.
    conversion_lanes: f64 = "lanes/clk/SM", 0.01..=65_536.0;
    /// Conversions from 32-bit integer to floating point in a clock cycle of an SM.
    conversion_to_float_lanes: f64 = "lanes/clk/SM", 0.01..=65_536.0;
    /// Lanes whose addresses the load and store units take in a clock cycle of an SM.
    load_store_lanes: f64 = "lanes/clk/SM", 0.01..=65_536.0;
    /// Warp shuffles in a clock cycle of an SM.
    shuffle_lanes: Option<f64> = "lanes/clk/SM", 0.01..=65_536.0;
    /// Dense half-precision multiply-adds of the matrix units in a clock cycle of an SM,
    /// accumulated in single precision.
    tensor_fp16_fma: Option<f64> = "FMA/clk/SM", 0.01..=1_048_576.0;
    /// Multiply-adds of one half-precision matrix instruction of a warp.
    tensor_instruction_fma: Option<f64> = "FMA", 1.0..=1_048_576.0;

    /// Latency of a dependent single-precision operation.
    arithmetic_latency: f64 = "cycles", 1.0..=1000.0;
    /// Latency of a dependent double-precision operation.
    fp64_latency: Option<f64> = "cycles", 1.0..=1000.0;
    /// Latency of a special function.
    sfu_latency: f64 = "cycles", 1.0..=1000.0;
    /// Latency of a dependent half-precision operation.
    fp16_latency: Option<f64> = "cycles", 1.0..=1000.0;
    /// Latency of a dependent 32-bit integer multiplication or multiply-add.
    int_mul_latency: Option<f64> = "cycles", 1.0..=1000.0;
    /// Latency of a dependent conversion.
    conversion_latency: Option<f64> = "cycles", 1.0..=1000.0;
    /// Latency of a dependent warp shuffle.
    shuffle_latency: Option<f64> = "cycles", 1.0..=1000.0;
    /// Latency of a dependent half-precision matrix instruction, accumulated in single precision.
    tensor_latency: Option<f64> = "cycles", 1.0..=1000.0;
    /// Latency of a shared-memory load without conflict.
    shared_latency: f64 = "cycles", 1.0..=1000.0;
    /// Latency of a global load that hits L1; none where L1 does not cache global loads.
    l1_latency: Option<f64> = "cycles", 1.0..=1000.0;
    /// Latency of a global load that hits L2.
    l2_latency: Option<f64> = "cycles", 1.0..=10_000.0;
    /// Latency of a global load that goes to DRAM, no other traffic.
    dram_latency: f64 = "cycles", 1.0..=100_000.0;
    /// Latency of a barrier that all warps reach at once, without the cycles of each warp.
    barrier_latency: f64 = "cycles", 0.0..=10_000.0;
    /// Cycles each warp of the block adds to a barrier.
    barrier_warp_cycles: f64 = "cycles", 0.0..=1000.0;
    /// From the end of a block to the first instruction of the one that takes its place.
    block_turnover: Option<f64> = "cycles", 0.0..=10_000.0;

    /// L1 data cache of an SM; shares its memory with shared memory from 7.0 on.
    l1_bytes: Option<u64> = "bytes", 1024.0..=1_073_741_824.0;
    /// L2 cache of the device.
    l2_bytes: Option<u64> = "bytes", 1024.0..=17_179_869_184.0;
    /// Line of the caches that global memory goes through; none where there is no such cache.
    cache_line_bytes: Option<u32> = "bytes", 16.0..=1024.0;
    /// L1 bandwidth of an SM.
    l1_bandwidth_b_clk: Option<f64> = "B/clk/SM", 1.0..=65_536.0;
    /// Shared-memory bandwidth of an SM.
    shared_bandwidth_b_clk: f64 = "B/clk/SM", 1.0..=65_536.0;
    /// L2 bandwidth of the device.
    l2_bandwidth_gb_s: Option<f64> = "GB/s", 1.0..=1_000_000.0;
    /// Peak DRAM bandwidth of the device.
    dram_bandwidth_gb_s: f64 = "GB/s", 0.1..=1_000_000.0;
    /// Share of the peak DRAM bandwidth that streaming kernels reach.
    dram_efficiency: f64 = "fraction", 0.05..=1.0;
    /// Peak bandwidth of the link to the host in one direction.
    host_link_gb_s: Option<f64> = "GB/s", 0.01..=100_000.0;
    /// From the call that launches a kernel to its first block, for one launch after another.
    launch_overhead_us: f64 = "us", 0.0..=10_000.0;
    /// Duration of a kernel whose blocks take no time.
    kernel_overhead_us: Option<f64> = "us", 0.0..=1000.0;
    /// Cycles between two blocks started on one SM, where all SMs ask for blocks.
    block_launch_cycles: Option<f64> = "cycles", 0.0..=100_000.0;

    /// MWP-CWP (Hong and Kim 2009): DRAM latency.
    mem_ld: Option<f64> = "cycles", 1.0..=100_000.0;
    /// MWP-CWP: delay between two transactions of one uncoalesced request.
    departure_del_uncoal: Option<f64> = "cycles", 0.01..=10_000.0;
    /// MWP-CWP: delay between two coalesced requests of an SM.
    departure_del_coal: Option<f64> = "cycles", 0.01..=10_000.0;
    /// MWP-CWP: cycles in which one warp instruction issues.
    issue_cycles: Option<f64> = "cycles", 0.01..=1000.0;
    /// Work flow graph (Baghsorkhi et al. 2010): latency of the arithmetic pipeline.
    pipeline_latency: f64 = "cycles", 1.0..=1000.0;
    /// Work flow graph: lanes of an SM that execute one instruction in a clock cycle.
    simd_engine: f64 = "lanes", 1.0..=4096.0;
    /// Work flow graph: latency of global memory.
    memory_latency: f64 = "cycles", 1.0..=100_000.0;
    /// Bytes that move for each lane of a request that does not coalesce.
    uncoalesced_transaction_bytes: u32 = "bytes", 4.0..=1024.0;

    /// Timing model (Lai and Seznec 2011): cycles between two choices of the issue engine; where absent, the issue slot of
    /// a scheduler.
    issue_period: Option<f64> = "cycles", 0.01..=1000.0;
    /// Timing model: cycles until a warp issues again after an arithmetic instruction; where absent, those of the pipe.
    same_warp_issue: Option<f64> = "cycles", 0.01..=1000.0;
    /// Timing model: cycles until a warp issues again after a global memory instruction; where absent, those of the load
    /// and store units.
    same_warp_memory_issue: Option<f64> = "cycles", 0.01..=10_000.0;
    /// Timing model: single-precision multiplications in a clock cycle of an SM, where another unit takes some of them.
    fp32_multiply_lanes: Option<f64> = "lanes/clk/SM", 0.01..=65_536.0;
    /// Timing model: latency of an arithmetic instruction with an operand in shared memory, where instructions have such.
    shared_operand_latency: Option<f64> = "cycles", 1.0..=1000.0;
    /// Timing model: the same where all lanes of each group that is served together hit one bank.
    shared_operand_conflict_latency: Option<f64> = "cycles", 1.0..=10_000.0;
    /// Timing model: SMs that share one way to memory (a TPC); where absent, each has its own.
    sms_per_cluster: Option<u32> = "SMs", 1.0..=64.0;
    /// Timing model: channels of the device memory.
    memory_channels: Option<u32> = "channels", 1.0..=1024.0;
    /// Timing model: neighbouring bytes that lie in one channel before the next one's begin.
    channel_bytes: Option<u32> = "bytes", 16.0..=1_048_576.0;
}
