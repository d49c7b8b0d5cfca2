//! The toolkit's own objects and functions: cooperative groups, pipelines, matrix fragments, textures,
//! OpenCL's vector loads, traits of the standard library.
//!
//! Their headers are known, not read. What they do to memory is said here; what they compute is not followed.

use super::candidate::Callee;
use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node};

use super::shared_copies::{asynchronous, with_alignment};
use super::split::{deref, list};
use super::{Lowering, Source, parts, text_of};
use warplens_ir::Fragment;
use warplens_ir::functions;
use warplens_ir::functions::{Effect, Exchange, Function, MathClass};
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{BinaryOp, Builtin, Expr, ExprKind, Opaque, Reason, Stmt, StmtKind, Storage};
use warplens_ir::{Bound, Struct};

/// Elements of a matrix fragment that a lane holds where its template's arguments are not known.
const FRAGMENT: u64 = 8;

/// Types by name.
pub(super) fn type_named(name: &str) -> Option<Type> {
    let sized = |size: u64, align: u64| {
        Some(Type::Struct(Arc::new(Struct {
            name: name.to_owned(),
            space: Arc::from(""),
            fields: Vec::new(),
            size,
            align,
            parts: 1,
            unread: false,
            class: None,
        })))
    };
    let structure = |name: &str, fields: &[(&str, Type)]| {
        let fields = fields
            .iter()
            .map(|(name, ty)| ((*name).to_owned(), ty.clone()))
            .collect();
        Some(Type::Struct(Arc::new(Struct::new(name, fields, false, 1))))
    };
    match name {
        // Sizes as the toolkit's headers lay them out.
        "rocrand_state_xorwow" => sized(48, 8),
        "curandStateMRG32k3a" | "curandStateMRG32k3a_t" => sized(72, 8),
        "cudaExtent" | "hipExtent" | "cudaPos" | "hipPos" => {
            let names = if name.ends_with("Pos") {
                ["x", "y", "z"]
            } else {
                ["width", "height", "depth"]
            };
            let fields = names.map(|name| (name.to_owned(), Type::SIZE)).to_vec();
            Some(Type::Struct(Arc::new(Struct::new(name, fields, false, 1))))
        }
        "cudaTextureObject_t"
        | "cudaSurfaceObject_t"
        | "hipTextureObject_t"
        | "hipSurfaceObject_t" => Some(Type::SIZE),
        "thread_block" | "grid_group" | "coalesced_group" | "thread_group" | "cluster_group"
        | "multi_grid_group" => Some(Type::Library(name.into())),
        "barrier"
        | "pipeline"
        | "cuda_pipeline"
        | "pipeline_shared_state"
        | "event_t"
        | "sampler_t"
        | "queue_t"
        | "ndrange_t"
        | "clk_event_t"
        | "reserve_id_t"
        | "nullptr_t"
        | "row_major"
        | "col_major"
        | "va_list" => Some(Type::Library(name.into())),
        "seq" | "device_t" => Some(Type::Library("policy".into())),
        // The driver's, opaque: 128 bytes of a kernel's parameters.
        "CUtensorMap" => {
            let words = Type::Array(Arc::new(Type::SIZE), Some(16));
            let fields = vec![("opaque".to_owned(), words)];
            Some(Type::Struct(Arc::new(Struct::new(name, fields, false, 64))))
        }
        // The runtime's plain structures, as its reference lists their members.
        "cudaPitchedPtr" | "hipPitchedPtr" => {
            let base = Type::Pointer(Arc::new(Type::Void), AddressSpace::Global);
            structure(
                name,
                &[
                    ("ptr", base),
                    ("pitch", Type::SIZE),
                    ("xsize", Type::SIZE),
                    ("ysize", Type::SIZE),
                ],
            )
        }
        "cudaStream_t" | "hipStream_t" | "cudaEvent_t" | "hipEvent_t" | "cudaGraphExec_t" => {
            Some(Type::Pointer(Arc::new(Type::Void), AddressSpace::Global))
        }
        "__nv_fp8x2_e4m3"
        | "__nv_fp8x2_e5m2"
        | "__nv_fp8x2_storage_t"
        | "__nv_fp6x2_storage_t"
        | "__nv_fp4x4_storage_t"
        | "__nv_fp4x4_e2m1"
        | "__nv_fp6x2_e2m3"
        | "__nv_fp6x2_e3m2"
        | "__hip_fp8x2_storage_t" => Some(Type::Int {
            bits: 16,
            signed: false,
        }),
        "__nv_fp8x4_e4m3"
        | "__nv_fp8x4_e5m2"
        | "__nv_fp8x4_storage_t"
        | "__nv_fp6x4_storage_t"
        | "__hip_fp8x4_storage_t" => Some(Type::UINT),
        "__nv_fp4_e2m1"
        | "__nv_fp4x2_e2m1"
        | "__nv_fp4_storage_t"
        | "__nv_fp4x2_storage_t"
        | "__nv_fp6_e2m3"
        | "__nv_fp6_e3m2"
        | "__nv_fp6_storage_t"
        | "__nv_fp8_e8m0" => Some(Type::BYTE),
        "__nv_fp8_interpretation_t"
        | "__nv_fp6_interpretation_t"
        | "__nv_fp4_interpretation_t"
        | "__nv_saturation_t"
        | "__hip_fp8_interpretation_t"
        | "__hip_saturation_t" => Some(Type::INT),
        "tf32" => Some(Type::FLOAT),
        "__hip_bfloat162" | "bfloat162" => Some(Type::Vector(Arc::new(Type::BFLOAT), 2)),
        "__hip_half2" => Some(Type::Vector(Arc::new(Type::HALF), 2)),
        "__hip_fp8_e4m3_fnuz"
        | "__hip_fp8_e5m2_fnuz"
        | "__hip_fp8_e4m3"
        | "__hip_fp8_e5m2"
        | "__hip_fp8_storage_t"
        | "__nv_fp8_e4m3"
        | "__nv_fp8_e5m2"
        | "__nv_fp8_storage_t"
        | "byte"
        | "float_e4m3_t"
        | "float_e5m2_t" => Some(Type::BYTE),
        "bfloat16_t" | "__hip_bfloat16" => Some(Type::BFLOAT),
        "half_t" | "fp16" => Some(Type::HALF),
        "__nv_bfloat16_raw" | "__half_raw" => {
            let bits = Type::Int {
                bits: 16,
                signed: false,
            };
            structure(name, &[("x", bits)])
        }
        "__int128" | "__uint128_t" | "__int128_t" => Some(Type::Vector(Arc::new(Type::LONG), 2)),
        "clock_t" | "off_t" | "time_t" => Some(Type::LONG),
        "wchar_t" | "char32_t" => Some(Type::UINT),
        "char16_t" => Some(Type::Int {
            bits: 16,
            signed: false,
        }),
        "char8_t" => Some(Type::BYTE),
        "cudaError_t" | "hipError_t" | "cl_mem_fence_flags" | "cl_int" => Some(Type::INT),
        "cl_uint" => Some(Type::UINT),
        _ if name.starts_with("image") && name.ends_with("_t") => {
            Some(Type::Library("texture".into()))
        }
        _ if name.starts_with("atomic_") => Type::named(&name["atomic_".len()..], true),
        _ => None,
    }
}

/// CUB's operators on numbers and pairs that are no templates, with their namespace: `cub::Sum`.
pub(super) fn cub_operator(name: &str) -> Option<Type> {
    let last = name
        .strip_prefix("cub::")
        .or_else(|| name.strip_prefix("hipcub::"));
    let Some(last) = last else {
        return standard_operator(name);
    };
    let of = match last {
        "Sum" => "plus",
        "Difference" => "minus",
        "Division" => "divides",
        "Equality" => "equal_to",
        "Inequality" => "not_equal_to",
        "Max" => "maximum",
        "Min" => "minimum",
        "ArgMax" | "ArgMin" => "choice",
        _ => return None,
    };
    Some(Type::Library(format!("functor {of}").into()))
}

/// The standard library's operators without arguments, which those of a call decide: `std::plus{}`.
fn standard_operator(name: &str) -> Option<Type> {
    let mut spaces = [
        "::cuda::std::",
        "cuda::std::",
        "::cuda::",
        "cuda::",
        "thrust::",
        "std::",
    ]
    .iter();
    let last = spaces.find_map(|space| name.strip_prefix(space))?;
    let known = template_type(last, &[])?;
    matches!(&known, Type::Library(of) if of.starts_with("functor ")).then_some(known)
}

/// `name<arguments>` of the standard library and of the toolkit.
pub(super) fn template_type(name: &str, arguments: &[Bound]) -> Option<Type> {
    let ty = |at: usize| match arguments.get(at) {
        Some(Bound::Type(ty)) => Some(ty.clone()),
        _ => None,
    };
    let value = |at: usize| match arguments.get(at) {
        Some(Bound::Value(value)) => Some(*value),
        _ => None,
    };
    let fields = |fields: Vec<(&str, Type)>| {
        let fields = fields
            .into_iter()
            .map(|(name, ty)| (name.to_owned(), ty))
            .collect();
        Type::Struct(Arc::new(Struct::new(name, fields, false, 1)))
    };
    Some(match name {
        "array" => Type::Array(
            Arc::new(ty(0)?),
            value(1).and_then(|n| u64::try_from(n).ok()),
        ),
        "complex" => Type::Vector(Arc::new(ty(0)?), 2),
        "pair" => fields(vec![("first", ty(0)?), ("second", ty(1)?)]),
        "KeyValuePair" => fields(vec![("key", ty(0)?), ("value", ty(1)?)]),
        "device_ptr" => Type::Pointer(Arc::new(ty(0)?), AddressSpace::Global),
        "conditional_t" => return trait_type("conditional", arguments),
        "enable_if_t" => return trait_type("enable_if", arguments),
        "void_t" => Type::Void,
        "remove_reference_t" | "remove_cv_t" | "remove_const_t" | "decay_t" | "remove_cvref_t"
        | "type_identity_t" | "add_const_t" => ty(0)?,
        "thread_block_tile" => Type::Library(format!("tile {}", value(0).unwrap_or(32)).into()),
        "texture" => match ty(0) {
            Some(ty) => Type::Library(format!("texture {}", warplens_ir::spell_type(&ty)).into()),
            None => Type::Library("texture".into()),
        },
        "surface" => Type::Library("texture".into()),
        // A lane's part of a matrix: registers that are subscripted.
        "fragment" => {
            let spelled = super::instances::spell_instance(name, arguments);
            let held =
                Fragment::spelled(&spelled).map_or(FRAGMENT, |fragment| u64::from(fragment.held()));
            let element = ty(4)
                .filter(|ty| ty.is_int() || ty.is_float())
                .unwrap_or(Type::FLOAT);
            let held = Type::Array(Arc::new(element), Some(held));
            Type::Struct(Arc::new(Struct::new(
                &spelled,
                vec![("x".to_owned(), held)],
                false,
                1,
            )))
        }
        "barrier" | "pipeline" | "pipeline_shared_state" => Type::Library(name.into()),
        "plus" | "minus" | "multiplies" | "divides" | "modulus" | "less" | "greater"
        | "less_equal" | "greater_equal" | "maximum" | "minimum" | "bit_xor" | "bit_or"
        | "bit_and" | "equal_to" | "not_equal_to" | "logical_and" | "logical_or" => {
            Type::Library(format!("functor {name}").into())
        }
        _ if is_cub(name) => Type::Library(format!("cub {name}").into()),
        "tuple" => {
            let fields = arguments.iter().enumerate().map(|(at, bound)| match bound {
                Bound::Type(ty) => Some((at.to_string(), ty.clone())),
                _ => None,
            });
            let spelled = arguments.iter().map(super::instances::spell);
            let name = format!("tuple<{}>", spelled.collect::<Vec<_>>().join(", "));
            let fields = fields.collect::<Option<Vec<_>>>()?;
            Type::Struct(Arc::new(Struct::new(&name, fields, false, 1)))
        }
        _ => return None,
    })
}

/// A group of threads.
fn is_group(of: &str) -> bool {
    of.starts_with("tile ")
        || matches!(
            of,
            "thread_block"
                | "grid_group"
                | "coalesced_group"
                | "thread_group"
                | "cluster_group"
                | "multi_grid_group"
        )
}

/// The function of [`crate::cub`] that a tile of cooperative groups calls.
fn tile_collective(name: &str) -> Option<&'static str> {
    Some(match name {
        "reduce" => crate::cub::TILE_REDUCE,
        "inclusive_scan" => crate::cub::TILE_INCLUSIVE,
        "exclusive_scan" => crate::cub::TILE_EXCLUSIVE,
        _ => return None,
    })
}

/// Operators of cooperative groups with the names of comparisons give one of their operands: `cg::less` the smaller,
/// `cg::greater` the larger.
fn chosen_by_comparison(operator: Expr) -> Expr {
    let chosen = match &operator.ty {
        Type::Library(of) => match &**of {
            "functor less" => "functor minimum",
            "functor greater" => "functor maximum",
            _ => return operator,
        },
        _ => return operator,
    };
    Expr {
        ty: Type::Library(chosen.into()),
        ..operator
    }
}

/// The collectives of CUB and hipCUB.
fn is_cub(name: &str) -> bool {
    let base = name
        .strip_prefix("Block")
        .or(name.strip_prefix("Warp"))
        .unwrap_or("");
    matches!(
        base,
        "Reduce"
            | "Scan"
            | "Load"
            | "Store"
            | "Exchange"
            | "RadixSort"
            | "AdjacentDifference"
            | "Discontinuity"
            | "Histogram"
            | "Shuffle"
            | "MergeSort"
            | "RadixRank"
            | "RunLengthDecode"
    )
}

/// What is called so is no type: what asks for it is no candidate (C++20 13.10.3 [temp.deduct]).
pub(super) const NO_TYPE: &str = "(no type)";

/// What `name<arguments>::type` is.
pub(super) fn trait_type(name: &str, arguments: &[Bound]) -> Option<Type> {
    let ty = |at: usize| match arguments.get(at) {
        Some(Bound::Type(ty)) => Some(ty.clone()),
        _ => None,
    };
    match name {
        "conditional" => match arguments.first() {
            Some(Bound::Value(0)) => ty(2),
            Some(Bound::Value(_)) => ty(1),
            _ => None,
        },
        "enable_if" if arguments.first() == Some(&Bound::Value(0)) => {
            Some(Type::Unknown(NO_TYPE.to_owned()))
        }
        "enable_if" => Some(ty(1).unwrap_or(Type::Void)),
        "remove_reference" | "remove_cv" | "remove_const" | "decay" | "type_identity" => ty(0),
        "iterator_traits" => ty(0)?.element().cloned(),
        "make_unsigned" | "make_signed" => match ty(0)? {
            Type::Int { bits, .. } => Some(Type::Int {
                bits,
                signed: name == "make_signed",
            }),
            _ => None,
        },
        _ => None,
    }
}

/// What small floats call their conversions and their bits.
const CONVERSIONS: [&str; 7] = [
    "bits",
    "get",
    "raw",
    "storage",
    "to_float",
    "to_half",
    "to_half_rn",
];

/// `numeric_limits<T>::digits`, and the parts of a pipeline.
pub(super) fn limits_value(
    text: &str,
    named: impl FnOnce(&str) -> Option<Type>,
) -> Option<(ExprKind, Type)> {
    let text = text
        .trim_start_matches("cuda::")
        .trim_start_matches("std::");
    if text.starts_with("pipeline_role::") {
        // A thread's part in a pipeline: a number that changes no cost.
        return Some((ExprKind::Opaque(Opaque::Unknown, Vec::new()), Type::INT));
    }
    let rest = text.strip_prefix("numeric_limits")?.trim_start();
    let (inner, tail) = rest.strip_prefix('<')?.rsplit_once('>')?;
    let which = tail.trim().trim_start_matches("::");
    Some(limit(&named(inner.trim())?, which.trim_end_matches("()")))
}

fn limit(ty: &Type, which: &str) -> (ExprKind, Type) {
    let (bits, signed) = match ty {
        Type::Int { bits, signed } => (*bits, *signed),
        _ => return (ExprKind::Float(None), ty.clone()),
    };
    let value = match (which, signed) {
        ("max", true) => i64::MAX >> (64 - bits),
        ("max", false) if bits < 64 => (1 << bits) - 1,
        ("max", false) => -1,
        ("min" | "lowest", true) => i64::MIN >> (64 - bits),
        ("digits", _) => i64::from(bits) - i64::from(signed),
        _ => 0,
    };
    (ExprKind::Int(value), ty.clone())
}

/// Names that stand for values.
pub(super) fn value(name: &str) -> Option<(ExprKind, Type)> {
    let int = |value: i64| Some((ExprKind::Int(value), Type::INT));
    let builtin = |builtin: Builtin| Some((ExprKind::Builtin(builtin), Type::INT));
    let unsigned = |value: u32| Some((ExprKind::Int(i64::from(value)), Type::UINT));
    match name {
        "warpSize" => builtin(Builtin::WarpSize),
        "INT_MAX" | "INT32_MAX" => int(i64::from(i32::MAX)),
        "INT_MIN" | "INT32_MIN" => int(i64::from(i32::MIN)),
        "UINT_MAX" | "UINT32_MAX" => unsigned(u32::MAX),
        "UINT8_MAX" | "UCHAR_MAX" => int(255),
        "CHAR_MAX" | "SCHAR_MAX" | "INT8_MAX" => int(127),
        "CHAR_MIN" | "SCHAR_MIN" | "INT8_MIN" => int(-128),
        "CHAR_BIT" => int(8),
        "SHRT_MAX" | "INT16_MAX" => int(32767),
        "SHRT_MIN" | "INT16_MIN" => int(-32768),
        "USHRT_MAX" | "UINT16_MAX" => int(65535),
        "LLONG_MAX" | "LONG_MAX" | "INT64_MAX" => Some((ExprKind::Int(i64::MAX), Type::LONG)),
        "LLONG_MIN" | "LONG_MIN" | "INT64_MIN" => Some((ExprKind::Int(i64::MIN), Type::LONG)),
        "ULLONG_MAX" | "ULONG_MAX" | "UINT64_MAX" | "SIZE_MAX" => {
            Some((ExprKind::Int(-1), Type::SIZE))
        }
        "NULL" | "EOF" => int(0),
        "RAND_MAX" => int(i64::from(i32::MAX)),
        "CLK_LOCAL_MEM_FENCE" => int(1),
        "CLK_GLOBAL_MEM_FENCE" => int(2),
        "CLK_ENQUEUE_FLAGS_NO_WAIT" => int(0),
        "CLK_ENQUEUE_FLAGS_WAIT_KERNEL" => int(1),
        "CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP" => int(2),
        "CLK_SUCCESS" | "CL_COMPLETE" => int(0),
        "CLK_ENQUEUE_FAILURE" => int(-101),
        "CLK_IMAGE_MEM_FENCE" => int(4),
        "hipThreadIdx_x" => builtin(Builtin::ThreadIdx(0)),
        "hipThreadIdx_y" => builtin(Builtin::ThreadIdx(1)),
        "hipThreadIdx_z" => builtin(Builtin::ThreadIdx(2)),
        "hipBlockIdx_x" => builtin(Builtin::BlockIdx(0)),
        "hipBlockIdx_y" => builtin(Builtin::BlockIdx(1)),
        "hipBlockIdx_z" => builtin(Builtin::BlockIdx(2)),
        "hipBlockDim_x" => builtin(Builtin::BlockDim(0)),
        "hipBlockDim_y" => builtin(Builtin::BlockDim(1)),
        "hipBlockDim_z" => builtin(Builtin::BlockDim(2)),
        "hipGridDim_x" => builtin(Builtin::GridDim(0)),
        "hipGridDim_y" => builtin(Builtin::GridDim(1)),
        "hipGridDim_z" => builtin(Builtin::GridDim(2)),
        _ if is_math_constant(name) => {
            let single = name.starts_with("FLT_")
                || name.starts_with("CUDART") && name.ends_with("_F")
                || name.ends_with("_F")
                || matches!(name, "INFINITY" | "NAN" | "HUGE_VALF" | "MAXFLOAT");
            Some((
                ExprKind::Float(None),
                if single { Type::FLOAT } else { Type::DOUBLE },
            ))
        }
        "mem_col_major" => int(1),
        // Orders, scopes, modes and flags of the toolkit: their values change no cost.
        _ if name.starts_with("memory_order")
            || name.starts_with("thread_scope")
            || name.starts_with("memory_scope")
            || name.starts_with("CLK_")
            || name.starts_with("cudaMem")
            || name.starts_with("cudaStream")
            || name.starts_with("hipStream")
            || name.starts_with("cudaEvent")
            || name.starts_with("cudaRound")
            || name.starts_with("cudaAddress")
            || name.starts_with("cudaBoundaryMode")
            || name.starts_with("__ATOMIC_")
            || name.starts_with("__MEMORY_SCOPE")
            || name.starts_with("mem_row_major")
            || ["__NV_", "__HIP_"].iter().any(|vendor| {
                name.strip_prefix(vendor).is_some_and(|mode| {
                    ["E", "SATFINITE", "NOSAT"]
                        .iter()
                        .any(|of| mode.starts_with(of))
                })
            })
            || matches!(
                name,
                "stdout"
                    | "stderr"
                    | "piecewise_construct"
                    | "seq_cst"
                    | "__func__"
                    | "__FUNCTION__"
                    | "__PRETTY_FUNCTION__"
                    | "cudaSuccess"
            ) =>
        {
            int(0)
        }
        _ => None,
    }
}

fn is_math_constant(name: &str) -> bool {
    matches!(
        name,
        "INFINITY" | "NAN" | "HUGE_VAL" | "HUGE_VALF" | "MAXFLOAT" | "pi" | "e" | "sqrt2"
    ) || ["FLT_", "DBL_", "LDBL_", "HALF_", "M_", "CUDART_"]
        .iter()
        .any(|prefix| name.starts_with(prefix) && name.len() > prefix.len())
}

impl Lowering<'_> {
    // ---- coordinates ---------------------------------------------------------------------------

    fn uint(&self, kind: ExprKind, site: Site) -> Expr {
        Expr {
            kind,
            ty: Type::UINT,
            site,
        }
    }

    fn combine(&self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let site = a.site;
        super::construct::operation(op, a, b, site)
    }

    /// `x + y * dx + z * dx * dy`.
    fn rank(&mut self, at: [ExprKind; 3], extent: impl Fn(u8) -> Builtin, site: Site) -> Expr {
        let [x, y, z] = at.map(|kind| self.uint(kind, site));
        let dx = self.uint(ExprKind::Builtin(extent(0)), site);
        let dy = self.uint(ExprKind::Builtin(extent(1)), site);
        // z * dy + y, then times dx, plus x.
        let rows = self.combine(BinaryOp::Mul, z, dy);
        let rows = self.combine(BinaryOp::Add, rows, y);
        let rows = self.combine(BinaryOp::Mul, rows, dx);
        self.combine(BinaryOp::Add, rows, x)
    }

    /// A thread's number in its block.
    pub(super) fn thread_rank(&mut self, site: Site) -> Expr {
        // A rank does not say that the kernel is meant for more than one dimension.
        let axes = self.axes;
        let at = [self.thread(0), self.thread(1), self.thread(2)];
        self.axes = [true, axes[1], axes[2]];
        self.rank(at, Builtin::BlockDim, site)
    }

    /// A block's place in its cluster along an axis, or its cluster's among them.
    pub(super) fn of_cluster(&self, op: BinaryOp, axis: u8, site: Site) -> Expr {
        let block = self.uint(ExprKind::Builtin(Builtin::BlockIdx(axis)), site);
        let blocks = self.uint(ExprKind::Builtin(Builtin::ClusterDim(axis)), site);
        self.combine(op, block, blocks)
    }

    /// A block's number in its cluster.
    pub(super) fn cluster_rank(&mut self, site: Site) -> Expr {
        let at = [0, 1, 2].map(|axis| self.of_cluster(BinaryOp::Rem, axis, site).kind);
        self.rank(at, Builtin::ClusterDim, site)
    }

    /// The blocks of a cluster.
    pub(super) fn cluster_size(&self, site: Site) -> Expr {
        self.product(Builtin::ClusterDim, site)
    }

    pub(super) fn block_rank(&mut self, site: Site) -> Expr {
        let at = [0, 1, 2].map(|axis| ExprKind::Builtin(Builtin::BlockIdx(axis)));
        self.rank(at, Builtin::GridDim, site)
    }

    fn product(&self, of: impl Fn(u8) -> Builtin, site: Site) -> Expr {
        let [x, y, z] = [0, 1, 2].map(|axis| self.uint(ExprKind::Builtin(of(axis)), site));
        let xy = self.combine(BinaryOp::Mul, x, y);
        self.combine(BinaryOp::Mul, xy, z)
    }

    pub(super) fn block_size(&mut self, site: Site) -> Expr {
        self.product(Builtin::BlockDim, site)
    }

    /// A thread's number in its warp.
    pub(super) fn lane(&mut self, site: Site) -> Expr {
        let rank = self.thread_rank(site);
        let warp = self.uint(ExprKind::Builtin(Builtin::WarpSize), site);
        self.combine(BinaryOp::Rem, rank, warp)
    }

    /// A whole coordinate: `dim3 at = threadIdx`.
    pub(super) fn coordinate(&mut self, name: &str, site: Site) -> Option<Expr> {
        let at: [ExprKind; 3] = match name {
            "threadIdx" => [self.thread(0), self.thread(1), self.thread(2)],
            "blockIdx" => [0, 1, 2].map(|axis| ExprKind::Builtin(Builtin::BlockIdx(axis))),
            "blockDim" => [0, 1, 2].map(|axis| ExprKind::Builtin(Builtin::BlockDim(axis))),
            "gridDim" => [0, 1, 2].map(|axis| ExprKind::Builtin(Builtin::GridDim(axis))),
            "clusterIdx" => [0, 1, 2].map(|axis| self.of_cluster(BinaryOp::Rem, axis, site).kind),
            "clusterDim" => [0, 1, 2].map(|axis| ExprKind::Builtin(Builtin::ClusterDim(axis))),
            _ => return None,
        };
        let all = at.map(|kind| self.uint(kind, site)).to_vec();
        Some(list(&Type::Vector(Arc::new(Type::UINT), 3), all, site))
    }

    // ---- barriers ------------------------------------------------------------------------------

    /// A barrier of the whole block, `block.sync()` of cooperative groups among them.
    pub(super) fn is_barrier(&mut self, node: Node, source: Source) -> bool {
        if node.kind() != Kind::CallExpression {
            return false;
        }
        let Some(function) = node.field(Field::Function) else {
            return false;
        };
        let block = |ty: &Type| matches!(ty, Type::Library(name) if matches!(&**name, "thread_block" | "grid_group" | "cluster_group"));
        match function.kind() {
            Kind::Identifier => {
                let name = text_of(function, source);
                functions::is_barrier(name) && !self.unit.has_function(name)
            }
            Kind::FieldExpression => {
                function
                    .field(Field::Field)
                    .is_some_and(|field| matches!(text_of(field, source), "sync" | "barrier_wait"))
                    && function.field(Field::Argument).is_some_and(|object| {
                        let object = self.unevaluated(|lowering| lowering.expr(object, source).ty);
                        block(&object)
                    })
            }
            Kind::QualifiedIdentifier => {
                text_of(function, source).rsplit("::").next() == Some("sync")
                    && node
                        .field(Field::Arguments)
                        .and_then(|arguments| parts(arguments).into_iter().next())
                        .is_some_and(|group| {
                            let group =
                                self.unevaluated(|lowering| lowering.expr(group, source).ty);
                            block(&group)
                        })
            }
            _ => false,
        }
    }

    // ---- objects -------------------------------------------------------------------------------

    pub(super) fn library_member(&mut self, base: &Expr, name: &str, site: Site) -> Option<Expr> {
        match &base.ty {
            Type::Struct(structure)
                if structure.name.starts_with("fragment<") && name == "num_elements" =>
            {
                let held = Fragment::of(&base.ty).map_or(FRAGMENT, |of| u64::from(of.held()));
                Some(Expr {
                    kind: ExprKind::Int(held as i64),
                    ty: Type::INT,
                    site,
                })
            }
            Type::Library(_) => Some(Expr {
                kind: ExprKind::Opaque(Opaque::Unknown, vec![base.clone()]),
                ty: Type::INT,
                site,
            }),
            _ => None,
        }
    }

    /// A member function of a group, a barrier, an atomic, an array.
    pub(super) fn library_method(
        &mut self,
        object: &Expr,
        name: &str,
        explicit: &[Bound],
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let _ = explicit;
        match &object.ty {
            Type::Array(_, Some(extent)) => match name {
                "size" | "max_size" => Some(Expr {
                    kind: ExprKind::Int(*extent as i64),
                    ty: Type::SIZE,
                    site,
                }),
                "data" | "begin" | "cbegin" => Some(object.clone()),
                "at" | "front" | "back" => {
                    let at = |index: i64| Expr {
                        kind: ExprKind::Int(index),
                        ty: Type::INT,
                        site,
                    };
                    let index = match name {
                        "at" => arguments.first()?.clone(),
                        "front" => at(0),
                        _ => at((*extent).checked_sub(1)? as i64),
                    };
                    Some(super::construct::element(object.clone(), index, site))
                }
                "fill" => Some(self.computed(arguments, Type::Void, site)),
                _ => None,
            },
            Type::Vector(element, 2) if matches!(name, "real" | "imag") => {
                let ty = (**element).clone();
                let all = [std::slice::from_ref(object), arguments].concat();
                Some(Expr {
                    kind: ExprKind::List(all),
                    ty,
                    site,
                })
            }
            Type::Library(of) => self.group_method(&of.clone(), name, arguments, site),
            // `half`'s and other small classes' conversions.
            Type::Float { .. } | Type::Int { .. }
                if arguments.is_empty() && CONVERSIONS.contains(&name) =>
            {
                Some(self.computed(std::slice::from_ref(object), object.ty.clone(), site))
            }
            _ => None,
        }
    }

    fn group_method(
        &mut self,
        of: &str,
        name: &str,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let tile = of
            .strip_prefix("tile ")
            .map(|size| size.parse::<i64>().unwrap_or(32));
        let group = is_group(of);
        let size = |value: i64| Expr {
            kind: ExprKind::Int(value),
            ty: Type::UINT,
            site,
        };
        if group {
            match (name, tile) {
                ("thread_rank", Some(width)) => {
                    let rank = self.thread_rank(site);
                    return Some(self.combine(BinaryOp::Rem, rank, size(width)));
                }
                ("meta_group_rank", Some(width)) => {
                    let rank = self.thread_rank(site);
                    return Some(self.combine(BinaryOp::Div, rank, size(width)));
                }
                ("meta_group_size", Some(width)) => {
                    let threads = self.block_size(site);
                    return Some(self.combine(BinaryOp::Div, threads, size(width)));
                }
                ("size" | "num_threads", Some(width)) => return Some(size(width)),
                ("thread_rank", None) if of == "thread_block" => {
                    return Some(self.thread_rank(site));
                }
                ("size" | "num_threads", None) if of == "thread_block" => {
                    return Some(self.block_size(site));
                }
                ("block_rank", None) if of == "cluster_group" => {
                    return Some(self.cluster_rank(site));
                }
                ("num_blocks", None) if of == "cluster_group" => {
                    return Some(self.cluster_size(site));
                }
                ("block_index", None) if of == "cluster_group" => {
                    return self.coordinate("clusterIdx", site);
                }
                ("dim_blocks", None) if of == "cluster_group" => {
                    return self.coordinate("clusterDim", site);
                }
                ("thread_rank", None) if of == "cluster_group" => {
                    let (block, threads, rank) = (
                        self.cluster_rank(site),
                        self.block_size(site),
                        self.thread_rank(site),
                    );
                    let before = self.combine(BinaryOp::Mul, block, threads);
                    return Some(self.combine(BinaryOp::Add, before, rank));
                }
                ("size" | "num_threads", None) if of == "cluster_group" => {
                    let (blocks, threads) = (self.cluster_size(site), self.block_size(site));
                    return Some(self.combine(BinaryOp::Mul, blocks, threads));
                }
                ("thread_index", None) => return self.coordinate("threadIdx", site),
                ("group_index" | "block_index", None) => return self.coordinate("blockIdx", site),
                ("dim_threads" | "group_dim", None) => return self.coordinate("blockDim", site),
                ("dim_blocks" | "group_dim_blocks", None) => {
                    return self.coordinate("gridDim", site);
                }
                ("block_rank", None) if of == "grid_group" => return Some(self.block_rank(site)),
                ("num_blocks", None) if of == "grid_group" => {
                    return Some(self.product(Builtin::GridDim, site));
                }
                ("thread_rank", None) if of == "grid_group" => {
                    let (block, threads, rank) = (
                        self.block_rank(site),
                        self.block_size(site),
                        self.thread_rank(site),
                    );
                    let before = self.combine(BinaryOp::Mul, block, threads);
                    return Some(self.combine(BinaryOp::Add, before, rank));
                }
                ("size" | "num_threads", None) if of == "grid_group" => {
                    let (blocks, threads) =
                        (self.product(Builtin::GridDim, site), self.block_size(site));
                    return Some(self.combine(BinaryOp::Mul, blocks, threads));
                }
                _ => {}
            }
            if name == "map_shared_rank"
                && let [address, rank, ..] = arguments
            {
                let ty = match super::blocks::decayed(&address.ty) {
                    Type::Pointer(to, _) => Type::Pointer(to, AddressSpace::Shared),
                    ty => ty,
                };
                return Some(Expr {
                    ty,
                    kind: ExprKind::Call(Function::Mapped, vec![address.clone(), rank.clone()]),
                    site,
                });
            }
            if name.starts_with("shfl")
                || matches!(name, "any" | "all" | "ballot" | "match_any" | "match_all")
            {
                let ty = arguments
                    .first()
                    .map_or(Type::INT, |first| first.ty.clone());
                let (exchange, ty) = if name.starts_with("shfl") {
                    (Exchange::Shuffle, ty)
                } else {
                    (Exchange::Vote, Type::INT)
                };
                return Some(Expr {
                    kind: ExprKind::Call(
                        Function::WarpExchange(exchange, name.into()),
                        arguments.to_vec(),
                    ),
                    ty,
                    site,
                });
            }
        }
        if of.starts_with("cub ") {
            // Loads and stores go through the pointer as the collective arranges it; the rest exchanges
            // values through shared memory of its own.
            let pointer = arguments
                .first()
                .is_some_and(|first| matches!(first.ty, Type::Pointer(..)));
            if pointer && (name.starts_with("Load") || name.starts_with("Store")) {
                let store = name.starts_with("Store");
                return Some(self.tile(store, &arguments[0], &arguments[1..], site));
            }
            return Some(self.opaque(site, Reason::UnreadFunction, arguments.to_vec()));
        }
        if of == "barrier"
            && ["arrive", "wait", "try_wait"]
                .iter()
                .any(|word| name.starts_with(word))
        {
            // It orders what threads write for each other.
            let function = Function::Ignored(Effect::Fence, format!("mbarrier.{name}").into());
            return Some(Expr {
                kind: ExprKind::Call(function, arguments.to_vec()),
                ty: Type::INT,
                site,
            });
        }
        // What a barrier, a pipeline or a texture object is told costs instructions, not accesses.
        Some(self.computed(arguments, Type::INT, site))
    }

    /// An object that can be called: `cg::plus<int>()`.
    pub(super) fn library_functor(
        &mut self,
        of: &str,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let name = of.strip_prefix("functor ")?;
        let [a, b] = arguments else {
            return Some(list(&Type::Library(of.into()), Vec::new(), site));
        };
        let op = match name {
            "plus" => BinaryOp::Add,
            "minus" => BinaryOp::Sub,
            "multiplies" => BinaryOp::Mul,
            "less" => BinaryOp::Lt,
            "greater" => BinaryOp::Gt,
            "equal_to" => BinaryOp::Eq,
            "bit_xor" => BinaryOp::Xor,
            "bit_or" => BinaryOp::Or,
            "bit_and" => BinaryOp::And,
            "divides" => BinaryOp::Div,
            "modulus" => BinaryOp::Rem,
            "less_equal" => BinaryOp::Le,
            "greater_equal" => BinaryOp::Ge,
            "not_equal_to" => BinaryOp::Ne,
            "logical_and" => BinaryOp::LogicalAnd,
            "logical_or" => BinaryOp::LogicalOr,
            // One of the two; which, the values decide.
            "choice" => {
                let which = self.computed(&[], Type::INT, site);
                let ty = a.ty.clone();
                let kind =
                    ExprKind::Select(Box::new(which), Box::new(a.clone()), Box::new(b.clone()));
                return Some(Expr { kind, ty, site });
            }
            "maximum" | "minimum" => {
                let function = if name == "maximum" {
                    Function::Max
                } else {
                    Function::Min
                };
                return Some(super::construct::known_call(
                    function,
                    name,
                    arguments.to_vec(),
                    site,
                ));
            }
            _ => return None,
        };
        Some(super::construct::operation(op, a.clone(), b.clone(), site))
    }

    /// Something computed from the arguments, at the price of an instruction.
    fn computed(&mut self, arguments: &[Expr], ty: Type, site: Site) -> Expr {
        Expr {
            kind: ExprKind::Call(
                Function::Math(MathClass::Int(1), "".into()),
                arguments.to_vec(),
            ),
            ty,
            site,
        }
    }

    // ---- functions -----------------------------------------------------------------------------

    /// A function of the toolkit that does more than arithmetic.
    pub(super) fn library_call(
        &mut self,
        callee: Callee,
        explicit: &[Bound],
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let Callee { name, full, space } = callee;
        let object = |ty: &str| list(&Type::Library(ty.into()), Vec::new(), site);
        match name {
            "this_thread_block" => return Some(object("thread_block")),
            "this_grid" => return Some(object("grid_group")),
            "this_cluster" => return Some(object("cluster_group")),
            "coalesced_threads" | "labeled_partition" | "binary_partition" => {
                return Some(object("coalesced_group"));
            }
            "this_multi_grid" => return Some(object("multi_grid_group")),
            "tiled_partition" => {
                let width = match (explicit.first(), arguments.get(1)) {
                    (Some(Bound::Value(width)), _) => Some(*width),
                    (None, Some(width)) => super::constants::constant(width),
                    _ => None,
                };
                return Some(object(&format!("tile {}", width.unwrap_or(32))));
            }
            "make_pipeline" | "create_pipeline" => return Some(object("pipeline")),
            "this_thread" => return Some(object("tile 1")),
            // A barrier's own function, found by its argument.
            "init"
                if arguments.first().is_some_and(|first| {
                    let of = first.ty.element().unwrap_or(&first.ty);
                    matches!(of, Type::Library(name) if &**name == "barrier")
                }) =>
            {
                return Some(Expr {
                    kind: ExprKind::Call(
                        Function::Ignored(Effect::Unknown, name.into()),
                        arguments[1..].to_vec(),
                    ),
                    ty: Type::Void,
                    site,
                });
            }
            "move"
            | "forward"
            | "as_const"
            | "launder"
            | "__builtin_assume_aligned"
            | "raw_pointer_cast"
            | "device_pointer_cast"
            | "ref"
            | "cref" => {
                return arguments.first().cloned();
            }
            // A number: what is added to it are bytes, whatever the pointer points to.
            "__cvta_generic_to_shared"
            | "__cvta_generic_to_global"
            | "__cvta_generic_to_local"
            | "__cvta_generic_to_constant" => {
                let pointer = arguments.first()?.clone();
                return Some(self.cast(pointer, Type::SIZE, site));
            }
            "aligned_size_t" => {
                let bytes = arguments.first()?;
                return Some(with_alignment(bytes, explicit.first(), site));
            }
            "wait" | "wait_prior"
                if let Some(Type::Library(of)) = arguments.first().map(|group| &group.ty)
                    && is_group(of) =>
            {
                let left = match explicit.first() {
                    Some(Bound::Value(left)) => *left,
                    _ => 0,
                };
                return Some(self.wait_of_group(&of.clone(), left, site));
            }
            "pipeline_consumer_wait_prior" => {
                return Some(self.computed(&[], Type::Void, site));
            }
            _ if name.starts_with("cuda") && name[4..].starts_with(char::is_uppercase) => {
                // The device runtime: what it starts is its own affair.
                return Some(Expr {
                    kind: ExprKind::Call(
                        Function::Ignored(Effect::Unknown, name.into()),
                        arguments.to_vec(),
                    ),
                    ty: Type::INT,
                    site,
                });
            }
            "bit_cast" if arguments.len() == 1 => {
                let Some(Bound::Type(ty)) = explicit.first() else {
                    return None;
                };
                let (ty, value) = (ty.clone(), arguments[0].clone());
                let held = self.fresh("bits", value.ty.clone(), Storage::Local, site);
                let declared = Stmt {
                    kind: StmtKind::Declare(held, Some(value)),
                    site,
                };
                let place =
                    super::split::address_of(self.var(held, site), AddressSpace::Private, site);
                let pointer = Type::Pointer(Arc::new(ty), AddressSpace::Private);
                let place = deref(self.cast(place, pointer, site), site);
                return Some(super::construct::after(vec![declared], place));
            }
            "addressof" => {
                let place = arguments.first()?.clone();
                return Some(super::split::address_of(place, AddressSpace::Global, site));
            }
            // An object in an operand that is not evaluated.
            "declval" => {
                let Some(Bound::Type(ty)) = explicit.first() else {
                    return None;
                };
                return Some(list(ty, Vec::new(), site));
            }
            "swap" if arguments.len() == 2 => return Some(self.swapped(arguments, site)),
            "memcpy" | "memmove" if arguments.len() == 3 => {
                return Some(self.copied(&arguments[0], &arguments[1], &arguments[2], site));
            }
            "memset" if arguments.len() == 3 => {
                return Some(self.tile(true, &arguments[0], &arguments[1..], site));
            }
            "__pipeline_memcpy_async" if arguments.len() >= 3 => {
                let copy = self.copied(&arguments[0], &arguments[1], &arguments[2], site);
                return Some(asynchronous(copy));
            }
            "memcpy_async" if arguments.len() >= 3 => {
                return self.copy_async(arguments, site);
            }
            "async_work_group_copy" | "async_work_group_strided_copy" if arguments.len() >= 3 => {
                let load = self.tile(false, &arguments[1], &[], site);
                let store = self.tile(true, &arguments[0], &arguments[2..], site);
                return Some(Expr {
                    ty: Type::Library("event_t".into()),
                    ..list(&Type::Void, vec![load, store], site)
                });
            }
            "load_matrix_sync" if arguments.len() >= 2 => {
                // What is held of the matrix says how the lanes share the access.
                let mut others = arguments[2..].to_vec();
                others.push(arguments[0].clone());
                return Some(self.tile(false, &arguments[1], &others, site));
            }
            "store_matrix_sync" if arguments.len() >= 3 => {
                return Some(self.tile(true, &arguments[0], &arguments[1..], site));
            }
            "mma_sync" | "bmma_sync" => {
                return Some(Expr {
                    kind: ExprKind::Call(
                        Function::Math(MathClass::Tensor, name.into()),
                        arguments.to_vec(),
                    ),
                    ty: Type::Void,
                    site,
                });
            }
            // CUB's and rocPRIM's loads and stores of a block's items, each lane where the function says.
            "LoadDirectBlocked"
            | "LoadDirectBlockedVectorized"
            | "LoadDirectStriped"
            | "LoadDirectWarpStriped"
            | "block_load_direct_blocked"
            | "block_load_direct_striped"
                if arguments.len() >= 3 =>
            {
                return Some(self.tile(false, &arguments[1], &arguments[3..], site));
            }
            "StoreDirectBlocked"
            | "StoreDirectBlockedVectorized"
            | "StoreDirectStriped"
            | "StoreDirectWarpStriped"
            | "block_store_direct_blocked"
            | "block_store_direct_striped"
                if arguments.len() >= 3 =>
            {
                return Some(self.tile(true, &arguments[1], &arguments[3..], site));
            }
            "ThreadLoad" if arguments.len() == 1 => {
                let ty = arguments[0].ty.element()?.clone();
                return Some(Expr {
                    kind: ExprKind::Call(Function::Load, arguments.to_vec()),
                    ty,
                    site,
                });
            }
            "ThreadStore" if arguments.len() == 2 => {
                return Some(Expr {
                    kind: ExprKind::Call(Function::Store, arguments.to_vec()),
                    ty: Type::Void,
                    site,
                });
            }
            // Parts of complex numbers: arithmetic on their two components.
            "conj" | "proj" | "polar"
                if arguments
                    .first()
                    .is_some_and(|first| matches!(first.ty, Type::Vector(_, 2))) =>
            {
                let ty = arguments[0].ty.clone();
                return Some(Expr {
                    kind: ExprKind::Call(
                        Function::Math(MathClass::Float(1), name.into()),
                        arguments.to_vec(),
                    ),
                    ty,
                    site,
                });
            }
            "norm" | "arg" | "real" | "imag"
                if arguments
                    .first()
                    .is_some_and(|first| matches!(first.ty, Type::Vector(_, 2))) =>
            {
                let ty = arguments[0].ty.clone();
                let ty = match ty {
                    Type::Vector(element, _) => (*element).clone(),
                    ty => ty,
                };
                let class = match name {
                    "norm" => MathClass::Float(2),
                    "arg" => MathClass::Special,
                    _ => return Some(list(&ty, arguments.to_vec(), site)),
                };
                return Some(Expr {
                    kind: ExprKind::Call(Function::Math(class, name.into()), arguments.to_vec()),
                    ty,
                    site,
                });
            }
            _ if let Some(found) = self.bulk_call(name, arguments, site) => return Some(found),
            "fill_fragment" => {
                let function = Function::Math(MathClass::Int(1), name.into());
                return Some(Expr {
                    kind: ExprKind::Call(function, arguments.to_vec()),
                    ty: Type::Void,
                    site,
                });
            }
            _ => {}
        }
        if let Some((kind, ty)) = limits_value(full, |text| self.type_named(text, space)) {
            return Some(Expr { kind, ty, site });
        }
        if let Some((value, ty)) = self.type_trait(name, explicit) {
            return Some(Expr {
                kind: ExprKind::Int(value),
                ty,
                site,
            });
        }
        if let Some(collective) = tile_collective(name) {
            let [group, value, rest @ ..] = arguments else {
                return None;
            };
            let Type::Library(of) = &group.ty else {
                return None;
            };
            let width = of
                .strip_prefix("tile ")
                .and_then(|width| width.parse().ok());
            let plus = Type::Library("functor plus".into());
            let operator = rest.first().cloned().map(chosen_by_comparison);
            let operator = operator.unwrap_or_else(|| list(&plus, Vec::new(), site));
            let full = format!("cub::{collective}");
            return Some(self.call_by_name(
                Callee::of(&full),
                &[Bound::Value(width.unwrap_or(32))],
                vec![value.clone(), operator],
                site,
            ));
        }
        if self.opencl()
            && let Some(found) = Self::vector_access(name, arguments, site)
                .or_else(|| self.pipe_call(name, arguments, site))
                .or_else(|| self.queue_call(name, arguments, site))
        {
            return Some(found);
        }
        if let Some(found) = self
            .side_by_side(name, arguments, site)
            .or_else(|| self.buffer_access(name, arguments, site))
        {
            return Some(found);
        }
        if let Some(store) = texture_access(name) {
            let element = arguments.first().and_then(|texture| match &texture.ty {
                Type::Library(of) => of.strip_prefix("texture ").and_then(unspelled),
                _ => None,
            });
            let ty = match explicit.first() {
                Some(Bound::Type(ty)) => ty.clone(),
                _ if element.is_some() && !store => element.unwrap_or(Type::FLOAT),
                _ if store => Type::Void,
                _ if name.ends_with("imagei") => Type::Vector(Arc::new(Type::INT), 4),
                _ if name.ends_with("imageui") => Type::Vector(Arc::new(Type::UINT), 4),
                _ if name.starts_with("read_image") => Type::Vector(Arc::new(Type::FLOAT), 4),
                _ => Type::FLOAT,
            };
            let arguments = (arguments.iter())
                .filter(|argument| !is_object(argument))
                .map(|argument| self.gathered(argument.clone()))
                .collect();
            return Some(Expr {
                kind: ExprKind::Call(Function::Texture { store }, arguments),
                ty,
                site,
            });
        }
        None
    }

    /// An access through a pointer whose lanes' addresses the library decides.
    fn tile(&mut self, store: bool, pointer: &Expr, others: &[Expr], site: Site) -> Expr {
        let mut all = vec![pointer.clone()];
        all.extend(
            others
                .iter()
                .filter(|other| !matches!(other.ty, Type::Library(_)))
                .cloned(),
        );
        Expr {
            kind: ExprKind::Call(Function::Tile { store }, all),
            ty: Type::Void,
            site,
        }
    }

    /// `memcpy(to, from, bytes)` by one thread.
    pub(super) fn copied(&mut self, to: &Expr, from: &Expr, bytes: &Expr, site: Site) -> Expr {
        let size = super::constants::constant(bytes).and_then(|bytes| u64::try_from(bytes).ok());
        let Some(size) = size.filter(|size| (1..=256).contains(size)) else {
            let load = self.tile(false, from, &[], site);
            let store = self.tile(true, to, std::slice::from_ref(bytes), site);
            return list(&Type::Void, vec![load, store], site);
        };
        let align = if size.is_power_of_two() {
            size.min(16)
        } else {
            4.min(size)
        };
        let word = if size.is_multiple_of(4) { 4 } else { 1 };
        let words = Type::Array(
            Arc::new(Type::Int {
                bits: 8 * word as u8,
                signed: false,
            }),
            Some(size / word),
        );
        let words = vec![("words".to_owned(), words)];
        // A number is copied as what it is.
        let number = [to, from]
            .into_iter()
            .find_map(|pointer| match &pointer.kind {
                ExprKind::AddressOf(place) if place.ty.size() == size => {
                    matches!(place.ty, Type::Int { .. } | Type::Float { .. })
                        .then(|| place.ty.clone())
                }
                _ => None,
            });
        let piece =
            number.unwrap_or_else(|| Type::Struct(Arc::new(Struct::new("", words, false, align))));
        let place = |pointer: &Expr| {
            let space = match &pointer.ty {
                Type::Pointer(_, space) => *space,
                _ => AddressSpace::Global,
            };
            // `&local` is the local variable, not memory.
            if let ExprKind::AddressOf(place) = &pointer.kind
                && let ExprKind::Var(_) = place.kind
                && place.ty == piece
            {
                return (**place).clone();
            }
            deref(as_pointer_to(&piece, space, pointer), pointer.site)
        };
        let (to, from) = (place(to), place(from));
        Expr {
            kind: ExprKind::Assign(None, Box::new(to), Box::new(from)),
            ty: piece,
            site,
        }
    }

    fn swapped(&mut self, arguments: &[Expr], site: Site) -> Expr {
        let (a, b) = (arguments[0].clone(), arguments[1].clone());
        let mut statements = Vec::new();
        let kept = self.temporary("swapped", a.ty.clone(), site);
        self.assign_to(kept, a.clone(), site, &mut statements);
        for (to, from) in [(a, b.clone()), (b, self.var(kept, site))] {
            let assigned = self.assigned(to, from, site);
            statements.push(Stmt {
                kind: StmtKind::Expr(assigned),
                site,
            });
        }
        Expr {
            kind: ExprKind::Inline(statements, None),
            ty: Type::Void,
            site,
        }
    }

    /// OpenCL's `vloadn(offset, pointer)` and `vstoren(value, offset, pointer)`.
    fn vector_access(name: &str, arguments: &[Expr], site: Site) -> Option<Expr> {
        let (store, rest) = match (name.strip_prefix("vload"), name.strip_prefix("vstore")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return None,
        };
        let rest = rest
            .strip_prefix("a_half")
            .or(rest.strip_prefix("_half"))
            .unwrap_or(rest);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let lanes: u8 = if digits.is_empty() {
            1
        } else {
            digits.parse().ok()?
        };
        let (value, offset, pointer) = match (store, arguments) {
            (false, [offset, pointer]) => (None, offset, pointer),
            (true, [value, offset, pointer, ..]) => (Some(value), offset, pointer),
            _ => return None,
        };
        let Type::Pointer(of, space) = &pointer.ty else {
            return None;
        };
        let ty = if lanes == 1 {
            (**of).clone()
        } else {
            Type::Vector(Arc::clone(of), lanes)
        };
        let at = as_pointer_to(&ty, *space, pointer);
        let place = super::construct::element(at, offset.clone(), site);
        Some(match value {
            None => place,
            Some(value) => Expr {
                kind: ExprKind::Assign(None, Box::new(place), Box::new(value.clone())),
                ty,
                site,
            },
        })
    }
}

/// A pointer to the same place as one to another type, by no cast of the program: it is aligned as before.
fn as_pointer_to(ty: &Type, space: AddressSpace, pointer: &Expr) -> Expr {
    let ty = Type::Pointer(Arc::new(ty.clone()), space);
    if pointer.ty == ty {
        return pointer.clone();
    }
    Expr {
        kind: ExprKind::Cast(false, Box::new(pointer.clone())),
        ty,
        site: pointer.site,
    }
}

/// True for an object of the toolkit that is nothing but its name.
fn is_object(argument: &Expr) -> bool {
    matches!(argument.ty, Type::Library(_))
        && matches!(&argument.kind, ExprKind::List(parts) if parts.is_empty())
}

/// The type of a texture's element, from its name as [`warplens_ir::spell_type`] writes it.
fn unspelled(name: &str) -> Option<Type> {
    if let Some((element, lanes)) = name.rsplit_once('x') {
        return Some(Type::Vector(
            Arc::new(unspelled(element)?),
            lanes.parse().ok()?,
        ));
    }
    if name == warplens_ir::spell_type(&Type::BFLOAT) {
        return Some(Type::BFLOAT);
    }
    let bits = name.get(1..)?.parse().ok()?;
    match name.as_bytes().first()? {
        b'f' => Some(Type::float(bits)),
        b'i' => Some(Type::Int { bits, signed: true }),
        b'u' => Some(Type::Int {
            bits,
            signed: false,
        }),
        _ => None,
    }
}

/// A texture, surface or image access; true for a store.
fn texture_access(name: &str) -> Option<bool> {
    if name.starts_with("tex1D")
        || name.starts_with("tex2D")
        || name.starts_with("tex3D")
        || name.starts_with("texCubemap")
        || name.starts_with("read_image")
        || (name.starts_with("surf") && name.ends_with("read"))
    {
        return Some(false);
    }
    if name.starts_with("write_image") || (name.starts_with("surf") && name.ends_with("write")) {
        return Some(true);
    }
    None
}

/// Fields by the arguments of a library's template: `tuple<int, float>`.
pub(super) fn library_arguments(structure: &Struct, name: &str) -> Option<Vec<Bound>> {
    let spelled = structure.name.split('<').next()?;
    (structure.class.is_none() && spelled == name).then(|| {
        structure
            .fields
            .iter()
            .map(|field| Bound::Type(field.ty.clone()))
            .collect()
    })
}
