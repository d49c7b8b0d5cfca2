//! Functions that every kernel may call.

use std::sync::Arc;

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

/// Integer arithmetic that has no operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bits {
    /// Ones.
    Population,
    /// Zeros above the highest one; the width where there is none.
    LeadingZeros,
    /// Zeros below the lowest one; the width where there is none.
    TrailingZeros,
    /// The place of the lowest one counted from 1; 0 where there is none.
    FirstSet,
    /// All bits in the other order.
    Reverse,
    /// The upper half of a product of two 32-bit numbers.
    MultiplyHigh,
    /// A product of 24-bit numbers and a sum.
    MultiplyAdd24,
    /// Between two bounds.
    Clamp,
    /// The first operand; the second is what it is likely to be.
    Expect,
}

/// A known function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Function {
    /// Arithmetic on data, with the name that the source has for it, without its namespace; empty where it has none.
    Math(MathClass, Arc<str>),
    /// `min` of integers.
    Min,
    /// `max` of integers.
    Max,
    /// `abs` of an integer.
    Abs,
    /// `__mul24`, `mul24`.
    Mul24,
    /// Integer arithmetic with a name: the operands have the type that the function works in.
    Bits(Bits),
    /// An atomic on the address that its first argument gives, by name.
    Atomic(Arc<str>),
    /// A load through the address that its first argument gives.
    Load,
    /// A store through the address that its first argument gives of its second.
    Store,
    /// The copy that its argument is, from device memory into shared memory without a register in between.
    CopyPastRegisters,
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
    /// A packet that is read from a pipe or written to it; the runtime decides where it lies.
    Pipe {
        /// A store.
        store: bool,
    },
    /// An access to the place that its argument is, in a launch that the kernel makes: not one of this launch.
    Launched {
        /// A store.
        store: bool,
    },
    /// A call of the runtime; what it gives may differ from thread to thread.
    Runtime,
    /// A vote or shuffle among the lanes of a warp, by name.
    WarpExchange(Arc<str>),
    /// Makes no access that counts: `__syncwarp`, fences, `printf`, `assert`, by name.
    Ignored(Arc<str>),
}

/// What a name means.
pub fn known(name: &str, opencl: bool) -> Option<Function> {
    use Function::{Abs, Bits, Load, Max, Min, Mul24, Store};
    use MathClass::{Convert, Float, Int, Special};
    let name = name.rsplit("::").next().unwrap_or(name);
    let math = |class| Function::Math(class, name.into());
    let exchange = || Function::WarpExchange(name.into());
    let exact = match name {
        "min" | "umin" | "llmin" | "ullmin" => Min,
        "max" | "umax" | "llmax" | "ullmax" => Max,
        "abs" | "labs" | "llabs" | "__sad" => Abs,
        "__mul24" | "__umul24" | "mul24" => Mul24,
        "mad24" => Bits(self::Bits::MultiplyAdd24),
        "clamp" => Bits(self::Bits::Clamp),
        "__builtin_expect" => Bits(self::Bits::Expect),
        "__popc" | "__popcll" | "popcount" | "__popcount" | "__builtin_popcount" | "popcountll" => {
            Bits(self::Bits::Population)
        }
        "__clz" | "__clzll" | "clz" | "__builtin_clz" | "countl_zero" => {
            Bits(self::Bits::LeadingZeros)
        }
        "ctz" | "__builtin_ctz" => Bits(self::Bits::TrailingZeros),
        "__ffs" | "__ffsll" | "__ffs_ll" => Bits(self::Bits::FirstSet),
        "__brev" => Bits(self::Bits::Reverse),
        "__umulhi" | "__mulhi" | "mul_hi" => Bits(self::Bits::MultiplyHigh),
        "__usad" | "abs_diff" | "add_sat" | "sub_sat" | "hadd" | "rhadd" => math(Int(2)),
        "__brevll" | "__byte_perm" | "__mul64hi" | "__umul64hi" | "rotate" | "__funnelshift_l"
        | "__funnelshift_r" | "__funnelshift_lc" | "__funnelshift_rc" | "isnan" | "isinf"
        | "isfinite" | "isnormal" | "signbit" | "isequal" | "isgreater" | "isless" | "any"
        | "all" | "select" | "bitselect" | "shuffle" | "shuffle2" | "__dp4a" | "__dp2a_lo"
        | "__dp2a_hi" | "clock" | "clock64" | "wall_clock64" | "__clock" | "__clock64"
        | "globaltimer" | "__isShared" | "__isGlobal" | "bit_count" | "strlen"
        | "__bitinsert_u32" | "__ubfe" | "amd_bitalign" | "upsample" | "get_image_width"
        | "get_image_height" | "get_image_depth" | "get_image_dim" | "lower_bound"
        | "isgreaterequal" | "islessequal" | "isnotequal" | "isunordered" | "__isnanf"
        | "__isinff" | "__finitef" | "__finite" | "__signbitf" | "__signbit" | "__isnan"
        | "__isinf" | "isnanf" | "isinff" | "finite" | "__isLocal" | "__isConstant"
        | "__isGridConstant" | "__isClusterShared" | "__fns" | "__rhadd" | "__urhadd"
        | "__uhadd" | "IADD3" | "PRMT" | "BFE" | "SHL_ADD" => math(Int(1)),
        "fma" | "fmaf" | "mad" | "__hfma" | "__hfma2" | "fmal" => math(Float(2)),
        "dot" | "cross" | "length" | "distance" | "normalize" | "fast_length"
        | "fast_normalize" | "fast_distance" | "reflect" => math(Float(4)),
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
        | "__builtin_amdgcn_update_dpp" => exchange(),
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
        | "__fence" => Function::Ignored(name.into()),
        _ if name.starts_with("__nv_bswap") => math(Int(1)),
        _ if is_atomic(name, opencl) => Function::Atomic(name.into()),
        _ if name.starts_with("dot_acc_sat_") || name.starts_with("dot_4x8packed") => math(Int(1)),
        _ if is_exchange(name) => exchange(),
        _ if is_conversion(name, opencl) => math(Convert),
        _ if name.starts_with("curand") || name.starts_with("hiprand") => math(Special),
        // Byte-wise video instructions: __vaddus4, __vcmpeq2, __viaddmax_s16x2_relu.
        _ if name.starts_with("__v")
            && (name.ends_with(['2', '4'])
                || ["_s16x2", "_u16x2", "_s32", "_u32"]
                    .iter()
                    .any(|lanes| name.contains(lanes))) =>
        {
            math(Int(1))
        }
        _ => return arithmetic(name).map(math),
    };
    Some(exact)
}

/// Floating-point functions, under all their spellings: `__fsqrt_rn`, `native_sqrt`, `sqrtf`, `hsqrt`.
fn arithmetic(name: &str) -> Option<MathClass> {
    let mut base = name.trim_start_matches('_');
    for prefix in ["builtin_", "native_", "half_", "fast_", "nv_", "ocml_"] {
        base = base.strip_prefix(prefix).unwrap_or(base);
    }
    base = base.strip_suffix("_relu").unwrap_or(base);
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
                | "isinf"
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
            return Some(MathClass::Float(1));
        }
        if matches!(inner, "ma" | "fma" | "maf" | "maf_ieee") {
            return Some(MathClass::Float(2));
        }
        if matches!(
            inner,
            "div" | "2div" | "rcp" | "dividef" | "divide" | "sqrt" | "rsqrt"
        ) {
            return Some(MathClass::Special);
        }
    }
    // hexp, h2exp.
    let inner = base.strip_prefix("h2").or(base.strip_prefix('h'))?;
    arithmetic_base(inner)
}

fn arithmetic_base(name: &str) -> Option<MathClass> {
    let plain = name.strip_suffix('f').unwrap_or(name);
    let one = MathClass::Float(1);
    let special = MathClass::Special;
    let found = |name: &str| match name {
        "fabs" | "fmin" | "fmax" | "copysign" | "floor" | "ceil" | "rint" | "round" | "trunc"
        | "nearbyint" | "saturate" | "step" | "mix" | "lerp" | "sign" | "smoothstep" | "fdim"
        | "lrint" | "llrint" | "lround" | "llround" | "degrees" | "radians" | "fract" | "modf"
        | "minmag" | "maxmag" | "nextafter" | "nan" | "fracf" | "ldexp" | "scalbn" | "scalbln"
        | "frexp" | "logb" | "ilogb" => Some(one),
        "sqrt" | "rsqrt" | "exp" | "exp2" | "exp10" | "expm1" | "log" | "log2" | "log10"
        | "log1p" | "sin" | "cos" | "tan" | "asin" | "acos" | "atan" | "atan2" | "sinh"
        | "cosh" | "tanh" | "asinh" | "acosh" | "atanh" | "sinpi" | "cospi" | "tanpi"
        | "atan2pi" | "sincos" | "sincospi" | "pow" | "pown" | "powr" | "rootn" | "cbrt"
        | "rcbrt" | "hypot" | "rhypot" | "norm3d" | "norm4d" | "norm" | "rnorm3d" | "rnorm4d"
        | "rnorm" | "erf" | "erfc" | "erfinv" | "erfcinv" | "erfcx" | "normcdf" | "normcdfinv"
        | "lgamma" | "tgamma" | "fmod" | "remainder" | "remquo" | "fdivide" | "frcp" | "recip"
        | "divide" | "powi" | "fdividef" | "j0" | "j1" | "jn" | "y0" | "y1" | "yn"
        | "cyl_bessel_i0" | "cyl_bessel_i1" | "frsqrt" | "fsqrt" | "fdiv" | "rcp" | "cexp"
        | "cuCdiv" | "cuCdivf" | "cuCabs" | "cuCabsf" => Some(special),
        "cuCadd" | "cuCaddf" | "cuCsub" | "cuCsubf" | "cuConj" | "cuConjf" | "cuCreal"
        | "cuCrealf" | "cuCimag" | "cuCimagf" => Some(MathClass::Float(2)),
        "cuCmul" | "cuCmulf" | "cuCfma" | "cuCfmaf" => Some(MathClass::Float(6)),
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
        || name.starts_with("qcom_sub_group_shuffle")
}

/// What a conversion gives: `__float2int_rn`, `__float_as_uint`, `convert_int4_sat`, `as_float`.
pub fn converted(name: &str) -> Option<Type> {
    let name = name.trim_start_matches('_');
    if let Some((_, target)) = vendor_conversion(name) {
        return Some(target);
    }
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

/// `nv_cvt_float2_to_fp8x2` and its like: from, and what comes out as it is stored.
fn vendor_conversion(name: &str) -> Option<(&str, Type)> {
    let rest = name
        .strip_prefix("nv_cvt_")
        .or_else(|| name.strip_prefix("hip_cvt_"))?;
    let (from, to) = rest.split_once("_to_")?;
    let bytes = |bits| Type::Int {
        bits,
        signed: false,
    };
    let half = Type::Float { bits: 16 };
    let to = match to.split('_').next().unwrap_or(to) {
        "fp8" | "fp6" | "fp4" | "fp4x2" | "e8m0" => bytes(8),
        "fp8x2" | "fp6x2" | "fp4x4" | "e8m0x2" => bytes(16),
        "fp8x4" | "fp6x4" => bytes(32),
        "halfraw" | "bf16raw" | "bfloat16raw" => half,
        "halfraw2" | "bf162raw" | "bfloat162raw" => Type::Vector(half.into(), 2),
        "float" => Type::FLOAT,
        "double" => Type::DOUBLE,
        _ => return None,
    };
    Some((from, to))
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
    if inner.contains("_as_") || inner == "float_to_tf32" || vendor_conversion(inner).is_some() {
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
        "floats",
        "lowhigh",
        "ints",
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
            // PyTorch's, on every type.
            | "gpuAtomicAdd"
            | "gpuAtomicAddNoReturn"
            | "gpuAtomicMax"
            | "gpuAtomicMin"
            | "gpuAtomicMul"
    ) || (opencl && (base.starts_with("atomic_") || base.starts_with("atom_")))
}

/// A barrier of the whole block.
pub fn is_barrier(name: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_mathematical_interface_are_known() {
        let lost: Vec<&str> = NAMES
            .split_whitespace()
            .filter(|name| known(name, false).is_none())
            .collect();
        assert_eq!(lost, Vec::<&str>::new());
    }

    #[test]
    fn conversions_give_what_is_stored() {
        let vector = Type::Vector(Type::Float { bits: 16 }.into(), 2);
        for (name, ty) in [
            ("__nv_cvt_float_to_fp8", Type::BYTE),
            (
                "__nv_cvt_float2_to_fp8x2",
                Type::named("ushort", false).expect("built in"),
            ),
            ("__nv_cvt_fp8x2_to_halfraw2", vector),
            ("__float2int_rn", Type::INT),
            ("__double2float_rd", Type::FLOAT),
            ("__float_as_uint", Type::UINT),
        ] {
            assert_eq!(converted(name), Some(ty), "{name}");
        }
    }

    const NAMES: &str = "
        acosf acoshf asinf asinhf atan2f atanf atanhf cbrtf ceilf copysignf cosf coshf cospif
        cyl_bessel_i0f cyl_bessel_i1f erfcf erfcinvf erfcxf erff erfinvf exp10f exp2f expf expm1f
        fabsf fdimf fdividef floorf fmaf fmaxf fminf fmodf frexpf hypotf ilogbf isfinite isinf isnan
        j0f j1f jnf ldexpf lgammaf llrintf llroundf log10f log1pf log2f logbf logf lrintf lroundf
        modff nanf nearbyintf nextafterf norm3df norm4df normcdff normcdfinvf normf powf rcbrtf
        remainderf remquof rhypotf rintf rnorm3df rnorm4df rnormf roundf rsqrtf scalblnf scalbnf
        signbit sincosf sincospif sinf sinhf sinpif sqrtf tanf tanhf tgammaf truncf y0f y1f ynf
        __cosf __exp10f __expf __fadd_rd __fadd_rn __fadd_ru __fadd_rz __fdiv_rn __fdividef
        __fmaf_ieee_rn __fmaf_rd __fmaf_rn __fmul_rd __fmul_rn __frcp_rn __frsqrt_rn __fsqrt_rn
        __fsub_rn __log10f __log2f __logf __powf __saturatef __sincosf __sinf __tanf
        __dadd_rn __ddiv_rn __dmul_rn __drcp_rn __dsqrt_rn __dsub_rn __fma_rn
        __brev __brevll __byte_perm __clz __clzll __ffs __ffsll __fns __funnelshift_l
        __funnelshift_lc __funnelshift_r __funnelshift_rc __hadd __mul24 __mul64hi __mulhi
        __nv_bswap16 __nv_bswap32 __nv_bswap64 __popc __popcll __rhadd __sad __uhadd __umul24
        __umul64hi __umulhi __urhadd __usad __dp2a_hi __dp2a_lo __dp4a
        __double2float_rn __double2hiint __double2int_rn __double2ll_rn __double2loint
        __double2uint_rn __double2ull_rn __double_as_longlong __float2half_rn __float2int_rd
        __float2ll_rz __float2uint_rn __float2ull_rn __float_as_int __float_as_uint __half2float
        __hiloint2double __int2double_rn __int2float_rn __int_as_float __ll2double_rn __ll2float_rn
        __longlong_as_double __uint2double_rn __uint2float_rn __uint_as_float __ull2double_rn
        __vabs2 __vabsdiffs4 __vadd2 __vaddss4 __vavgs2 __vcmpeq4 __vhaddu2 __vmaxs2 __vminu4
        __vneg2 __vsads4 __vseteq2 __vsub4 __vibmax_s16x2 __vibmin_u32 __vimax3_s32_relu
        __vimin_s16x2_relu __viaddmax_u16x2 __viaddmin_s32
        __habs __habs2 __hadd __hadd2 __hadd2_rn __hadd_rn __hadd_sat __hadd2_sat __hdiv __h2div
        __hfma __hfma2 __hfma2_relu __hfma_relu __hfma_sat __hmul __hmul2 __hneg __hneg2 __hsub
        __hsub2 __heq __heq2 __hge __hgt2 __hmax __hmax2 __hmax_nan __hmin __hmin2 __hisinf
        __hisnan __hisnan2 __hle __hlt __hne __hbeq2 __hbgt2
        __float2half2_rn __floats2half2_rn __half22float2 __half2half2 __half2int_rn __half2short_rz
        __half2uint_ru __half_as_short __halves2half2 __high2float __high2half __high2half2
        __highs2half2 __int2half_rn __low2float __low2half __low2half2 __lowhigh2highlow
        __lows2half2 __short2half_rn __short_as_half __uint2half_rn __ushort_as_half
        __bfloat1622float2 __bfloat162bfloat162 __bfloat162float __float2bfloat16
        __float2bfloat162_rn __float2bfloat16_rn __floats2bfloat162_rn __bfloat16_as_ushort
        hceil hcos hexp hexp10 hexp2 hfloor hlog hlog10 hlog2 hrcp hrint hrsqrt hsin hsqrt htrunc
        h2ceil h2cos h2exp h2floor h2log h2rcp h2rint h2rsqrt h2sin h2sqrt h2trunc
        __nv_cvt_float_to_fp8 __nv_cvt_double_to_fp8x2 __nv_cvt_fp8_to_halfraw
        __nv_cvt_float2_to_fp4x2 __nv_cvt_halfraw2_to_fp8x2 __float_to_tf32
        __shfl_sync __shfl_xor_sync __reduce_add_sync __match_any_sync __ballot_sync __all_sync
        __ldg __ldcs __stwt atomicAdd atomicCAS_block __threadfence __syncwarp __nanosleep";
}
