//! The macros that compilers define by themselves.

use warplens_machine::{Profile, Vendor};
use warplens_syntax::Language;
use warplens_syntax::preprocess::Macros;

/// The macros in force before a file's first line.
pub(crate) fn predefined(language: Language, profile: &Profile) -> Macros {
    let mut macros = Macros::default();
    let mut define = |list: &[(&str, &str)]| {
        for (name, body) in list {
            macros.define(name, body);
        }
    };
    match language {
        Language::OpenCl => define(&[
            ("__OPENCL_VERSION__", "300"),
            ("__OPENCL_C_VERSION__", "200"),
            ("CL_VERSION_1_0", "100"),
            ("CL_VERSION_1_1", "110"),
            ("CL_VERSION_1_2", "120"),
            ("CL_VERSION_2_0", "200"),
            ("CL_VERSION_3_0", "300"),
            ("__ENDIAN_LITTLE__", "1"),
            ("__IMAGE_SUPPORT__", "1"),
            ("__kernel_exec(X, T)", "__kernel"),
            ("cl_khr_fp64", "1"),
            ("cl_khr_fp16", "1"),
            ("cl_khr_global_int32_base_atomics", "1"),
            ("cl_khr_local_int32_base_atomics", "1"),
            ("cl_khr_int64_base_atomics", "1"),
            ("cl_khr_subgroups", "1"),
            ("__opencl_c_fp64", "1"),
        ]),
        Language::Cuda | Language::Hip => define(&[
            ("__cplusplus", "201703L"),
            ("__GNUC__", "11"),
            ("__GNUC_MINOR__", "4"),
            ("__x86_64__", "1"),
            ("__linux__", "1"),
            ("__LP64__", "1"),
            ("__CHAR_BIT__", "8"),
            ("__SIZEOF_POINTER__", "8"),
            // GNU's spellings, which the grammar lacks.
            ("__typeof__(...)", "decltype(__VA_ARGS__)"),
            ("__typeof(...)", "decltype(__VA_ARGS__)"),
            ("typeof(...)", "decltype(__VA_ARGS__)"),
            ("__const", "const"),
            ("__const__", "const"),
            ("__signed__", "signed"),
            ("__volatile", "volatile"),
        ]),
    }
    match language {
        Language::OpenCl => {}
        Language::Cuda => {
            define(&[
                ("__CUDACC__", "1"),
                ("__NVCC__", "1"),
                ("__CUDACC_VER_MAJOR__", "12"),
                ("__CUDACC_VER_MINOR__", "4"),
                ("CUDART_VERSION", "12040"),
                ("CUDA_VERSION", "12040"),
                ("__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__", "1"),
            ]);
        }
        Language::Hip => define(&[
            ("__HIPCC__", "1"),
            ("__HIP__", "1"),
            ("__HIP_PLATFORM_AMD__", "1"),
            ("__HIP_PLATFORM_HCC__", "1"),
            ("__HIP_DEVICE_COMPILE__", "1"),
            ("HIP_VERSION", "60000000"),
        ]),
    }
    if language != Language::OpenCl {
        define(&[
            ("INT8_C(c)", "c"),
            ("UINT8_C(c)", "c"),
            ("INT16_C(c)", "c"),
            ("UINT16_C(c)", "c"),
            ("INT32_C(c)", "c"),
            ("UINT32_C(c)", "c##U"),
            ("INT64_C(c)", "c##LL"),
            ("UINT64_C(c)", "c##ULL"),
            ("HIP_KERNEL_NAME(...)", "__VA_ARGS__"),
            (
                "HIP_DYNAMIC_SHARED(type, name)",
                "extern __shared__ type name[];",
            ),
        ]);
    }
    if language != Language::OpenCl {
        dispatch_over_types(&mut macros);
    }
    if language == Language::Cuda {
        // The device pass is what costs; AMD targets of CUDA sources are read as for the default capability.
        let (major, minor) = profile.compute_capability.unwrap_or((8, 0));
        macros.define("__CUDA_ARCH__", &format!("{}", major * 100 + minor * 10));
    }
    if language != Language::Cuda && profile.vendor == Vendor::Amd {
        amd_target(&mut macros, profile);
    }
    macros
}

/// Defined where clang compiles for an AMD GPU.
pub(crate) const AMD_TARGET: &str = "__AMDGCN__";

/// What clang says of an AMD GPU (clang, lib/Basic/Targets/AMDGPU.cpp): the architecture, its family, the lanes of a wave.
fn amd_target(macros: &mut Macros, profile: &Profile) {
    for name in [AMD_TARGET, "__AMDGPU__", "__AMD__"] {
        macros.define(name, "1");
    }
    let architecture = &profile.architecture;
    macros.define(&format!("__{architecture}__"), "1");
    macros.define("__amdgcn_processor__", &format!("\"{architecture}\""));
    // Minor version and stepping are a digit each: gfx90a is of family 9, gfx1100 of family 11.
    let version = architecture.strip_prefix("gfx").unwrap_or_default();
    if let Some(family) = version
        .len()
        .checked_sub(2)
        .and_then(|end| version.get(..end))
    {
        macros.define(&format!("__GFX{family}__"), "1");
    }
    let lanes = profile.warp_size.to_string();
    for name in ["__AMDGCN_WAVEFRONT_SIZE", "__AMDGCN_WAVEFRONT_SIZE__"] {
        macros.define(name, &lanes);
    }
}

/// What `PyTorch`'s extensions launch their kernels through (ATen/Dispatch.h): a lambda for each type of an element, under
/// `scalar_t`. A file or header that defines one of them says otherwise.
fn dispatch_over_types(macros: &mut Macros) {
    const FLOATING: &[&str] = &["float", "double"];
    const INTEGRAL: &[&str] = &["int", "int64_t", "uint8_t", "int8_t", "int16_t"];
    const ALL: &[&str] = &[
        "float", "double", "int", "int64_t", "uint8_t", "int8_t", "int16_t",
    ];
    const HALF: &[&str] = &["__half"];
    const REDUCED: &[&str] = &["__half", "__nv_bfloat16"];
    let case = |ty: &str| format!("{{ using scalar_t = {ty}; __VA_ARGS__(); }} ");
    let said = |at: usize| case(&format!("at::scalar_of<T{at}>"));
    // The name, types that are parameters of the macro, the others.
    let all: [(&str, usize, [&[&str]; 2]); 15] = [
        ("FLOATING_TYPES", 0, [FLOATING, &[]]),
        ("FLOATING_TYPES_AND_HALF", 0, [FLOATING, HALF]),
        ("FLOATING_TYPES_AND", 1, [FLOATING, &[]]),
        ("FLOATING_TYPES_AND2", 2, [FLOATING, &[]]),
        ("FLOATING_TYPES_AND3", 3, [FLOATING, &[]]),
        ("REDUCED_FLOATING_TYPES", 0, [REDUCED, &[]]),
        ("INTEGRAL_TYPES", 0, [INTEGRAL, &[]]),
        ("INTEGRAL_TYPES_AND", 1, [INTEGRAL, &[]]),
        ("ALL_TYPES", 0, [ALL, &[]]),
        ("ALL_TYPES_AND_HALF", 0, [ALL, HALF]),
        ("ALL_TYPES_AND", 1, [ALL, &[]]),
        ("ALL_TYPES_AND2", 2, [ALL, &[]]),
        ("ALL_TYPES_AND3", 3, [ALL, &[]]),
        ("FLOATING_AND_COMPLEX_TYPES", 0, [FLOATING, &[]]),
        ("ALL_TYPES_AND_COMPLEX", 0, [ALL, &[]]),
    ];
    for (name, given, types) in all {
        let names: Vec<String> = (0..given).map(|at| format!("T{at}, ")).collect();
        let names = names.concat();
        let cases = types.into_iter().flatten().map(|ty| case(ty));
        let cases: Vec<String> = cases.chain((0..given).map(said)).collect();
        let cases = cases.concat();
        let head = format!("AT_DISPATCH_{name}({names}TYPE, NAME, ...)");
        macros.define(&head, &format!("{{ {cases}}}"));
        macros.define(&format!("AT_DISPATCH_CASE_{name}({names}...)"), &cases);
    }
    // What its kernels stride over a grid with (ATen/cuda/detail/KernelUtils.h).
    let strides = "for (TYPE i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)";
    macros.define("CUDA_KERNEL_LOOP_TYPE(i, n, TYPE)", strides);
    macros.define("CUDA_KERNEL_LOOP(i, n)", &strides.replace("TYPE", "int"));
    macros.define("CUDA_KERNEL_ASSERT(condition)", "assert(condition)");
    // The same of libraries made after it.
    macros.define("CUDA_1D_KERNEL_LOOP(i, n)", &strides.replace("TYPE", "int"));
    macros.define("AT_DISPATCH_SWITCH(TYPE, NAME, ...)", "{ __VA_ARGS__ }");
    macros.define("AT_DISPATCH_CASE(T0, ...)", &said(0));
}

/// Names that are certainly not defined: of other compilers, hosts, languages and, where an AMD GPU is compiled for, of others.
pub(crate) fn known_absent(language: Language, for_amd: bool, name: &str) -> bool {
    if for_amd && (name.starts_with("__gfx") || name.starts_with("__GFX")) {
        return true;
    }
    if matches!(
        name,
        "_WIN32"
            | "_WIN64"
            | "WIN32"
            | "_MSC_VER"
            | "__APPLE__"
            | "__MINGW32__"
            | "__CYGWIN__"
            | "__ANDROID__"
            | "__INTEL_COMPILER"
            | "__ICC"
            | "__PGI"
            | "__clang__"
            | "__SYCL_DEVICE_ONLY__"
            | "SYCL_LANGUAGE_VERSION"
            | "__METAL_VERSION__"
            | "__aarch64__"
            | "__arm__"
            | "__CUDACC_RTC__"
            | "__CUDACC_DEBUG__"
            | "_OPENMP"
            | "_OPENACC"
            | "__CUDA__"
            | "__INTELLISENSE__"
            | "__MUSACC__"
            | "__BIG_ENDIAN__"
            | "_NVHPC_CUDA"
            | "__NVCOMPILER"
            | "__CLION_IDE__"
            | "__JETBRAINS_IDE__"
    ) {
        return true;
    }
    match language {
        Language::Cuda => {
            matches!(
                name,
                "__HIPCC__"
                    | "__HIP__"
                    | "__HIP_PLATFORM_AMD__"
                    | "__HIP_PLATFORM_HCC__"
                    | "__HIP_DEVICE_COMPILE__"
                    | "__OPENCL_VERSION__"
                    | "__OPENCL_C_VERSION__"
                    | "__OPENCL_CPP_VERSION__"
            ) || name.starts_with("__gfx")
        }
        Language::Hip => {
            matches!(
                name,
                "__CUDACC__"
                    | "__NVCC__"
                    | "__CUDA_ARCH__"
                    | "__OPENCL_VERSION__"
                    | "__OPENCL_C_VERSION__"
                    | "__HIP_PLATFORM_NVIDIA__"
                    | "__HIP_PLATFORM_NVCC__"
            )
        }
        Language::OpenCl => matches!(
            name,
            "__cplusplus"
                | "__CUDACC__"
                | "__CUDA_ARCH__"
                | "__NVCC__"
                | "__HIPCC__"
                | "__OPENCL_CPP_VERSION__"
        ),
    }
}
