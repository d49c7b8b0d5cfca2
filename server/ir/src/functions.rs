//! Functions that every kernel may call.

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
    /// A vote or shuffle among the lanes of a warp.
    WarpExchange,
    /// Costs nothing that counts: `__syncwarp`, fences, `printf`, `assert`.
    Ignored,
}

/// What a name means, with the name of its type where it forces one (`f` suffix: float).
pub fn known(name: &str, opencl: bool) -> Option<Function> {
    use Function::{Abs, Atomic, Ignored, Load, Math, Max, Min, Mul24, Store, WarpExchange};
    use MathClass::{Convert, Float, Int, Special};
    let name = name
        .strip_prefix("std::")
        .or(name.strip_prefix("::"))
        .unwrap_or(name);
    let function = match name {
        "min" | "umin" | "llmin" => Min,
        "max" | "umax" | "llmax" => Max,
        "abs" | "labs" | "llabs" => Abs,
        "__mul24" | "__umul24" | "mul24" => Mul24,
        "fmaf" | "fma" | "__fmaf_rn" | "mad" | "__fma_rn" | "__hfma" | "__hfma2" => Math(Float(2)),
        "fabsf" | "fabs" | "fminf" | "fmaxf" | "fmin" | "fmax" | "__fadd_rn" | "__fmul_rn"
        | "__fsub_rn" | "__dadd_rn" | "__dmul_rn" | "copysignf" | "copysign" | "__hadd"
        | "__hmul" | "__hsub" | "__hadd2" | "__hmul2" | "floorf" | "ceilf" | "floor" | "ceil"
        | "rintf" | "roundf" | "truncf" | "trunc" | "round" | "rint" | "clamp" | "step" | "mix"
        | "saturate" | "__saturatef" => Math(Float(1)),
        "dot" | "cross" | "length" | "distance" | "normalize" => Math(Float(4)),
        "sqrtf" | "sqrt" | "rsqrtf" | "rsqrt" | "expf" | "exp" | "exp2f" | "exp2" | "exp10f"
        | "logf" | "log" | "log2f" | "log2" | "log10f" | "log10" | "log1pf" | "expm1f" | "sinf"
        | "sin" | "cosf" | "cos" | "tanf" | "tan" | "tanhf" | "tanh" | "powf" | "pow" | "atanf"
        | "atan" | "atan2f" | "atan2" | "acosf" | "acos" | "asinf" | "asin" | "erff" | "erf"
        | "erfcf" | "erfc" | "cbrtf" | "cbrt" | "hypotf" | "hypot" | "__expf" | "__logf"
        | "__sinf" | "__cosf" | "__powf" | "__fdividef" | "__frcp_rn" | "__fsqrt_rn"
        | "__frsqrt_rn" | "sincosf" | "sincos" | "fmodf" | "fmod" | "native_exp" | "native_log"
        | "native_sin" | "native_cos" | "native_sqrt" | "native_rsqrt" | "native_divide"
        | "native_recip" | "half_exp" | "half_sqrt" | "sinpif" | "cospif" | "normcdff"
        | "lgammaf" | "tgammaf" | "ldexpf" | "rcbrtf" => Math(Special),
        "__float2half" | "__half2float" | "__float2int_rn" | "__float2int_rz"
        | "__int2float_rn" | "__float2uint_rn" | "__double2float_rn" | "__float_as_int"
        | "__int_as_float" | "as_float" | "as_int" | "as_uint" | "__float_as_uint"
        | "__uint_as_float" => Math(Convert),
        "__popc" | "__popcll" | "popcount" | "__clz" | "__clzll" | "clz" | "__ffs" | "__ffsll"
        | "__brev" | "__byte_perm" | "__umulhi" | "__mulhi" | "mul_hi" | "rotate"
        | "__funnelshift_l" | "__funnelshift_r" | "isnan" | "isinf" | "isfinite" | "__dp4a"
        | "__sad" => Math(Int(1)),
        "__ldg" | "__ldcg" | "__ldca" | "__ldcs" | "__ldlu" | "__ldcv" => Load,
        "__stcg" | "__stcs" | "__stwb" | "__stwt" => Store,
        "__shfl"
        | "__shfl_sync"
        | "__shfl_up"
        | "__shfl_up_sync"
        | "__shfl_down"
        | "__shfl_down_sync"
        | "__shfl_xor"
        | "__shfl_xor_sync"
        | "__ballot"
        | "__ballot_sync"
        | "__any"
        | "__any_sync"
        | "__all"
        | "__all_sync"
        | "__activemask"
        | "__match_any_sync"
        | "__match_all_sync"
        | "__reduce_add_sync"
        | "__reduce_max_sync"
        | "__reduce_min_sync"
        | "sub_group_reduce_add"
        | "sub_group_broadcast"
        | "__lanemask_lt" => WarpExchange,
        "__syncwarp"
        | "__threadfence"
        | "__threadfence_block"
        | "__threadfence_system"
        | "mem_fence"
        | "read_mem_fence"
        | "write_mem_fence"
        | "printf"
        | "assert"
        | "__assume"
        | "__builtin_assume"
        | "__trap"
        | "__nanosleep"
        | "static_assert" => Ignored,
        _ if is_atomic(name, opencl) => Atomic,
        _ if opencl && (name.starts_with("convert_") || name.starts_with("as_")) => Math(Convert),
        _ => return None,
    };
    Some(function)
}

fn is_atomic(name: &str, opencl: bool) -> bool {
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
