//! Functions that every kernel may call.

use crate::Type;

/// What arithmetic a function stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MathClass {
    /// That many floating-point operations of its type.
    Float(u8),
    /// A special function.
    Special,
    /// That many integer operations.
    Int(u8),
    /// A conversion.
    Convert,
    /// One matrix instruction of the warp.
    Tensor,
}

/// A known function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Function {
    /// Arithmetic on data.
    Math(MathClass),
    /// `min` of integers.
    Min,
    /// `max` of integers.
    Max,
    /// `abs` of an integer.
    Abs,
    /// `__mul24`, `mul24`.
    Mul24,
    /// An atomic on the address that its first argument gives.
    Atomic,
    /// A load through the address that its first argument gives.
    Load,
    /// A store through the address that its first argument gives of its second.
    Store,
    /// An access through the address that its first argument gives, by the whole warp or block: which lane
    /// touches what is the library's affair.
    Tile {
        /// A store.
        store: bool,
    },
    /// An access through a texture, a surface or an image.
    Texture {
        /// A store.
        store: bool,
    },
    /// A vote or shuffle among the lanes of a warp.
    WarpExchange,
    /// Costs nothing that counts: `__syncwarp`, fences, `printf`, `assert`.
    Ignored,
}

/// What a name means.
pub fn known(name: &str, opencl: bool) -> Option<Function> {
    use Function::{Abs, Atomic, Ignored, Load, Math, Max, Min, Mul24, Store, WarpExchange};
    use MathClass::{Convert, Float, Int, Special};
    let name = name.rsplit("::").next().unwrap_or(name);
    let exact = match name {
        "min" | "umin" | "llmin" | "ullmin" => Min,
        "max" | "umax" | "llmax" | "ullmax" => Max,
        "abs" | "labs" | "llabs" | "__sad" => Abs,
        "__mul24" | "__umul24" | "mul24" => Mul24,
        "mad24" | "clamp" | "__usad" | "abs_diff" | "add_sat" | "sub_sat" | "hadd" | "rhadd" => {
            Math(Int(2))
        }
        "__popc" | "__popcll" | "popcount" | "__clz" | "__clzll" | "clz" | "ctz" | "__ffs"
        | "__ffsll" | "__brev" | "__brevll" | "__byte_perm" | "__umulhi" | "__mulhi"
        | "__mul64hi" | "__umul64hi" | "mul_hi" | "rotate" | "__funnelshift_l"
        | "__funnelshift_r" | "__funnelshift_lc" | "__funnelshift_rc" | "isnan" | "isinf"
        | "isfinite" | "isnormal" | "signbit" | "isequal" | "isgreater" | "isless" | "any"
        | "all" | "select" | "bitselect" | "shuffle" | "shuffle2" | "__dp4a" | "__dp2a_lo"
        | "__dp2a_hi" | "clock" | "clock64" | "wall_clock64" | "__clock" | "__clock64"
        | "globaltimer" | "__isShared" | "__isGlobal" | "__popcount" | "__builtin_popcount"
        | "__builtin_clz" | "__builtin_ctz" | "__builtin_expect" | "bit_count" | "countl_zero"
        | "popcountll" | "__ffs_ll" | "strlen" | "__bitinsert_u32" | "__ubfe" | "amd_bitalign"
        | "upsample" | "get_image_width" | "get_image_height" | "get_image_depth"
        | "get_image_dim" | "lower_bound" | "isgreaterequal" | "islessequal" | "isnotequal"
        | "isunordered" => Math(Int(1)),
        "fma" | "fmaf" | "mad" | "__hfma" | "__hfma2" | "fmal" => Math(Float(2)),
        "dot" | "cross" | "length" | "distance" | "normalize" | "fast_length"
        | "fast_normalize" | "fast_distance" | "reflect" => Math(Float(4)),
        "__ldg"
        | "__ldcg"
        | "__ldca"
        | "__ldcs"
        | "__ldlu"
        | "__ldcv"
        | "__builtin_nontemporal_load"
        | "__atomic_load_n"
        | "__hip_atomic_load"
        | "__nv_atomic_load_n"
        | "atomic_load"
        | "atomic_load_explicit" => Load,
        "__atomic_store_n"
        | "__hip_atomic_store"
        | "__nv_atomic_store_n"
        | "__builtin_nontemporal_store"
        | "__stcg"
        | "__stcs"
        | "__stwb"
        | "__stwt"
        | "atomic_store"
        | "atomic_store_explicit"
        | "atomic_init" => Store,
        "__lanemask_lt"
        | "__lane_id"
        | "__builtin_amdgcn_readfirstlane"
        | "__builtin_amdgcn_ds_bpermute"
        | "__builtin_amdgcn_readlane"
        | "__activemask"
        | "__builtin_amdgcn_mov_dpp"
        | "__builtin_amdgcn_update_dpp" => WarpExchange,
        "__syncwarp"
        | "__threadfence"
        | "__threadfence_block"
        | "__threadfence_system"
        | "mem_fence"
        | "read_mem_fence"
        | "write_mem_fence"
        | "sub_group_barrier"
        | "atomic_work_item_fence"
        | "atomic_thread_fence"
        | "printf"
        | "vprintf"
        | "assert"
        | "__assert_fail"
        | "__assertfail"
        | "__assume"
        | "__builtin_assume"
        | "__trap"
        | "__builtin_trap"
        | "__builtin_unreachable"
        | "__nanosleep"
        | "abort"
        | "exit"
        | "__brkpt"
        | "__prof_trigger"
        | "free"
        | "malloc"
        | "prefetch"
        | "__builtin_prefetch"
        | "wait_group_events"
        | "__pipeline_commit"
        | "__pipeline_wait_prior"
        | "cudaGridDependencySynchronize"
        | "cudaTriggerProgrammaticLaunchCompletion"
        | "__cluster_barrier_arrive"
        | "__cluster_barrier_wait"
        | "wait"
        | "wait_prior"
        | "sync"
        | "curand_init"
        | "hiprand_init"
        | "skipahead"
        | "__builtin_amdgcn_s_barrier"
        | "__builtin_amdgcn_sched_barrier"
        | "__builtin_amdgcn_s_sleep"
        | "__fence" => Ignored,
        _ if is_atomic(name, opencl) => Atomic,
        _ if name.starts_with("dot_acc_sat_") || name.starts_with("dot_4x8packed") => Math(Int(1)),
        _ if is_exchange(name) => WarpExchange,
        _ if is_conversion(name, opencl) => Math(Convert),
        _ if name.starts_with("curand") || name.starts_with("hiprand") => Math(Special),
        // Byte-wise video instructions: __vaddus4, __vcmpeq2.
        _ if name.starts_with("__v") && name.ends_with(['2', '4']) => Math(Int(1)),
        _ => return arithmetic(name),
    };
    Some(exact)
}

/// Floating-point functions, under all their spellings: `__fsqrt_rn`, `native_sqrt`, `sqrtf`, `hsqrt`.
fn arithmetic(name: &str) -> Option<Function> {
    let mut base = name.trim_start_matches('_');
    for prefix in ["builtin_", "native_", "half_", "fast_", "nv_", "ocml_"] {
        base = base.strip_prefix(prefix).unwrap_or(base);
    }
    for suffix in ["_rn", "_rz", "_ru", "_rd", "_sat", "_f32", "_f64"] {
        base = base.strip_suffix(suffix).unwrap_or(base);
    }
    if let Some(found) = arithmetic_base(base) {
        return Some(found);
    }
    if name.starts_with("__") {
        // __fadd_rn, __dmul_rn, __hsub, __hadd2, hlog.
        let inner = base.strip_prefix(['f', 'd', 'h']).unwrap_or(base);
        let inner = inner.strip_suffix('2').unwrap_or(inner);
        if let Some(found) = arithmetic_base(inner) {
            return Some(found);
        }
        if matches!(
            inner,
            "add"
                | "sub"
                | "mul"
                | "neg"
                | "abs"
                | "max"
                | "min"
                | "eq"
                | "ne"
                | "lt"
                | "le"
                | "gt"
                | "ge"
                | "isnan"
                | "equ"
                | "gtu"
                | "ltu"
                | "max_nan"
                | "min_nan"
                | "beq"
                | "bne"
                | "blt"
                | "bgt"
                | "ble"
                | "bge"
                | "mul_rn"
                | "add_rn"
        ) {
            return Some(Function::Math(MathClass::Float(1)));
        }
        if matches!(inner, "ma" | "fma" | "fma_relu") {
            return Some(Function::Math(MathClass::Float(2)));
        }
        if matches!(
            inner,
            "div" | "rcp" | "dividef" | "divide" | "sqrt" | "rsqrt"
        ) {
            return Some(Function::Math(MathClass::Special));
        }
    }
    // hexp, h2exp.
    let inner = base.strip_prefix("h2").or(base.strip_prefix('h'))?;
    arithmetic_base(inner)
}

fn arithmetic_base(name: &str) -> Option<Function> {
    let plain = name.strip_suffix('f').unwrap_or(name);
    let one = Function::Math(MathClass::Float(1));
    let special = Function::Math(MathClass::Special);
    let found = |name: &str| match name {
        "fabs" | "fmin" | "fmax" | "copysign" | "floor" | "ceil" | "rint" | "round" | "trunc"
        | "nearbyint" | "saturate" | "step" | "mix" | "lerp" | "sign" | "smoothstep" | "fdim"
        | "lrint" | "llrint" | "lround" | "llround" | "degrees" | "radians" | "fract" | "modf"
        | "minmag" | "maxmag" | "nextafter" | "nan" | "fracf" | "ldexp" | "scalbn" | "scalbln"
        | "frexp" | "logb" | "ilogb" => Some(one.clone()),
        "sqrt" | "rsqrt" | "exp" | "exp2" | "exp10" | "expm1" | "log" | "log2" | "log10"
        | "log1p" | "sin" | "cos" | "tan" | "asin" | "acos" | "atan" | "atan2" | "sinh"
        | "cosh" | "tanh" | "asinh" | "acosh" | "atanh" | "sinpi" | "cospi" | "tanpi"
        | "atan2pi" | "sincos" | "sincospi" | "pow" | "pown" | "powr" | "rootn" | "cbrt"
        | "rcbrt" | "hypot" | "rhypot" | "norm3d" | "norm4d" | "norm" | "rnorm3d" | "rnorm"
        | "erf" | "erfc" | "erfinv" | "erfcinv" | "erfcx" | "normcdf" | "normcdfinv" | "lgamma"
        | "tgamma" | "fmod" | "remainder" | "remquo" | "fdivide" | "frcp" | "recip" | "divide"
        | "powi" | "fdividef" | "j0" | "j1" | "jn" | "y0" | "y1" | "yn" | "cyl_bessel_i0"
        | "frsqrt" | "fsqrt" | "fdiv" | "rcp" | "cexp" | "cuCdiv" | "cuCdivf" | "cuCabs"
        | "cuCabsf" => Some(special.clone()),
        "cuCadd" | "cuCaddf" | "cuCsub" | "cuCsubf" | "cuConj" | "cuConjf" | "cuCreal"
        | "cuCrealf" | "cuCimag" | "cuCimagf" => Some(Function::Math(MathClass::Float(2))),
        "cuCmul" | "cuCmulf" | "cuCfma" | "cuCfmaf" => Some(Function::Math(MathClass::Float(6))),
        _ => None,
    };
    found(name).or_else(|| found(plain))
}

fn is_exchange(name: &str) -> bool {
    name.starts_with("__shfl")
        || name.starts_with("__ballot")
        || name.starts_with("__any")
        || name.starts_with("__all")
        || name.starts_with("__match_")
        || name.starts_with("__reduce_")
        || name.starts_with("sub_group_")
        || name.starts_with("work_group_")
        || name.starts_with("intel_sub_group_")
}

/// What a conversion gives: `__float2int_rn`, `__float_as_uint`, `convert_int4_sat`, `as_float`.
pub(crate) fn converted(name: &str) -> Option<Type> {
    let name = name.trim_start_matches('_');
    if let Some(target) = name.strip_prefix("convert_").or(name.strip_prefix("as_")) {
        let target = target.split('_').next().unwrap_or(target);
        return Type::named(target, true);
    }
    let target = match name.split_once("_as_") {
        Some((_, target)) => target,
        None => name.split_once('2')?.1,
    };
    let target = target.split('_').next().unwrap_or(target);
    match target {
        "ll" | "longlong" => Some(Type::LONG),
        "ull" | "ulonglong" => Some(Type::SIZE),
        "loint" | "hiint" => Some(Type::INT),
        "bfloat16" | "bfloat162" => Type::named("__nv_bfloat16", false),
        target => Type::named(target, false),
    }
}

fn is_conversion(name: &str, opencl: bool) -> bool {
    if opencl && (name.starts_with("convert_") || name.starts_with("as_")) {
        return true;
    }
    let Some(inner) = name.strip_prefix("__") else {
        return matches!(
            name,
            "as_float" | "as_int" | "as_uint" | "float_to_half" | "bit_cast"
        );
    };
    if inner.contains("_as_") {
        return true;
    }
    let sources = [
        "float",
        "double",
        "half",
        "int",
        "uint",
        "ll",
        "ull",
        "short",
        "ushort",
        "low",
        "high",
        "halves",
        "bfloat16",
        "hiloint",
        "nv",
        "bfloat162",
        "half2",
        "lows",
        "highs",
    ];
    inner
        .split_once('2')
        .is_some_and(|(from, _)| sources.contains(&from.split('_').next().unwrap_or(from)))
}

fn is_atomic(name: &str, opencl: bool) -> bool {
    if [
        "unsafeAtomic",
        "safeAtomic",
        "__hip_atomic_",
        "__atomic_",
        "__nv_atomic_",
        "__sync_fetch",
        "__sync_add",
        "__builtin_amdgcn_global_atomic",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
    {
        return true;
    }
    let base = name
        .strip_suffix("_block")
        .or(name.strip_suffix("_system"))
        .unwrap_or(name);
    matches!(
        base,
        "atomicAdd"
            | "atomicSub"
            | "atomicMin"
            | "atomicMax"
            | "atomicExch"
            | "atomicCAS"
            | "atomicAnd"
            | "atomicOr"
            | "atomicXor"
            | "atomicInc"
            | "atomicDec"
    ) || (opencl && (base.starts_with("atomic_") || base.starts_with("atom_")))
}

/// A barrier of the whole block.
pub(crate) fn is_barrier(name: &str) -> bool {
    matches!(
        name,
        "__syncthreads"
            | "barrier"
            | "work_group_barrier"
            | "__syncthreads_count"
            | "__syncthreads_and"
            | "__syncthreads_or"
    )
}
