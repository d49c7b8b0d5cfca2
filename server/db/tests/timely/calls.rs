//! Calls of every known function with too few arguments, too many, and of the wrong types: nothing panics, and an answer comes.
//!
//! `WARPLENS_CASES=40000` makes that many calls, `WARPLENS_FIRST=1234` begins elsewhere: a failure names its call.

use std::fmt::Write as _;
use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// Calls of one kernel.
const TOGETHER: usize = 25;

/// The text before the kernels.
const BEFORE: &str = "#include <cuda/atomic>\n#include <cuda/barrier>\n#include <cuda/pipeline>\n\
    #include <cooperative_groups.h>\n#include <cuda_fp16.h>\n#include <mma.h>\n#include <cub/cub.cuh>\n\
    namespace cg = cooperative_groups;\n\
    struct Pair { int first; float second; };\n\
    __device__ int counter; __constant__ float weights[64]; texture<float, 2> reference;\n";

/// Objects: what declares each in the kernel, or among its parameters, and how it is spelled in a call.
const OBJECTS: [(&str, &str, &str); 34] = [
    ("cuda::atomic<int> *o0", "", "o0[threadIdx.x]"),
    ("", "cuda::atomic_ref<float> o1(f[threadIdx.x]);", "o1"),
    (
        "",
        "__shared__ cuda::barrier<cuda::thread_scope_block> o2;",
        "o2",
    ),
    ("", "auto o3 = cuda::make_pipeline();", "o3"),
    ("", "auto o4 = cg::this_thread_block();", "o4"),
    ("", "auto o5 = cg::this_grid();", "o5"),
    (
        "",
        "auto o6 = cg::tiled_partition<32>(cg::this_thread_block());",
        "o6",
    ),
    ("", "auto o7 = cg::coalesced_threads();", "o7"),
    ("float4 *o8", "", "o8[threadIdx.x]"),
    ("int2 o9", "", "o9"),
    ("double2 o10", "", "o10"),
    ("half *o11", "", "o11[threadIdx.x]"),
    ("half2 o12", "", "o12"),
    ("__nv_bfloat16 o13", "", "o13"),
    ("cudaTextureObject_t o14", "", "o14"),
    ("cudaSurfaceObject_t o15", "", "o15"),
    ("float *o16", "", "o16"),
    ("const int *__restrict__ o17", "", "o17"),
    ("", "__shared__ float o18[16][33];", "o18"),
    ("", "int o19[4] = {1, 2, 3, 4};", "o19"),
    ("Pair o20", "", "o20"),
    (
        "",
        "nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> o21;",
        "o21",
    ),
    ("curandState *o22", "", "o22"),
    ("dim3 o23", "", "o23"),
    ("uchar4 *o24", "", "o24"),
    ("bool o25", "", "o25"),
    ("unsigned long long *o26", "", "o26"),
    ("", "cuda::std::array<float, 4> o27;", "o27"),
    (
        "",
        "__shared__ cub::BlockReduce<int, 128>::TempStorage o28;",
        "o28",
    ),
    ("", "", "threadIdx"),
    ("", "", "counter"),
    ("", "", "weights"),
    ("", "", "reference"),
    ("", "", "nullptr"),
];

/// What is called besides, as a function or as a method.
const OTHERS: &str = "load store exchange compare_exchange_weak compare_exchange_strong fetch_add fetch_sub fetch_and fetch_or \
    fetch_xor fetch_min fetch_max wait notify_one notify_all arrive arrive_and_wait arrive_and_drop try_wait wait_parity \
    producer_acquire producer_commit consumer_wait consumer_release quit sync thread_rank block_rank num_threads num_blocks size \
    group_index thread_index meta_group_rank meta_group_size shfl shfl_down shfl_up shfl_xor any all ballot match_any match_all \
    barrier_arrive barrier_wait cg::sync cg::this_thread_block cg::this_grid cg::tiled_partition<32> cg::tiled_partition \
    cg::coalesced_threads cg::labeled_partition cg::binary_partition cg::reduce cg::inclusive_scan cg::exclusive_scan \
    cg::memcpy_async cg::wait cg::wait_prior<1> cg::plus<int>() cuda::memcpy_async cuda::make_pipeline cuda::aligned_size_t<16> \
    cuda::device::barrier_expect_tx cuda::ptx::cp_async_bulk cub::BlockReduce<int,128> Sum Reduce ExclusiveSum InclusiveSum Load \
    Store Sort begin end data operator[] x y z first second tex1D<float> tex2D<float> tex3D<float> tex1Dfetch<int> \
    surf2Dread surf2Dwrite surf1Dread nvcuda::wmma::load_matrix_sync nvcuda::wmma::store_matrix_sync nvcuda::wmma::mma_sync \
    nvcuda::wmma::fill_fragment make_float4 make_int2 dim3 float4 int2 half __half22float2 __float22half2_rn __ldg __ldcs __stcs \
    __shfl_sync __shfl_down_sync __ballot_sync __activemask __syncthreads_count __syncwarp __match_any_sync __reduce_add_sync \
    __pipeline_memcpy_async __pipeline_commit __pipeline_wait_prior __cvta_generic_to_shared __nanosleep __trap printf assert \
    malloc free memcpy memset std::min std::max std::swap std::move std::get<0> static_cast<int> reinterpret_cast<float4*> \
    sizeof alignof __builtin_assume __builtin_expect __launch_bounds__ atomicAdd atomicCAS atomicExch atomicInc atomicAdd_block";

/// Every name of the table, with letters in place of a star.
fn names() -> Vec<String> {
    let table = include_str!("../../../ir/functions.toml");
    let mut names: Vec<String> = OTHERS.split_whitespace().map(str::to_owned).collect();
    for row in table
        .lines()
        .filter(|row| !row.trim_start().starts_with('#'))
    {
        let Some((_, rest)) = row.split_once("names = \"") else {
            continue;
        };
        let listed = rest.split('"').next().unwrap_or_default();
        for name in listed.split_whitespace() {
            for name in spelled(name) {
                if row.contains("spelling = \"float\"") {
                    names.extend([
                        format!("{name}f"),
                        format!("__{name}f"),
                        format!("native_{name}"),
                    ]);
                }
                if row.contains("spelling = \"intrinsic\"") {
                    names.extend([
                        format!("__{name}_rn"),
                        format!("__h{name}2"),
                        format!("__f{name}_rz"),
                    ]);
                }
                names.push(name);
            }
        }
    }
    assert!(names.len() > 700, "{}", names.len());
    names
}

/// `a{b,c}*` is `abx1` and `acx1`.
fn spelled(name: &str) -> Vec<String> {
    let Some((before, rest)) = name.split_once('{') else {
        return vec![name.replace('*', "x1")];
    };
    let (choices, after) = rest.split_once('}').expect("a list is closed");
    let each = choices.split(',');
    each.flat_map(|choice| spelled(&format!("{before}{choice}{after}")))
        .collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }
}

/// One call, as a statement. Each number has its own, whatever others there are.
fn call(number: usize, names: &[String]) -> String {
    let mut random = Random(number as u64);
    random.below(2);
    // Each name comes before one comes again.
    let name = &names[number % names.len()];
    let argument = |random: &mut Random| {
        let object = OBJECTS[random.below(OBJECTS.len())].2;
        match random.below(8) {
            0 => format!("&{object}"),
            1 => format!("*{object}"),
            2 => "7".to_owned(),
            3 => "1.5f".to_owned(),
            4 => format!("{object}.x"),
            5 => format!("{object}[i]"),
            _ => object.to_owned(),
        }
    };
    let count = random.below(5);
    let arguments: Vec<String> = (0..count).map(|_| argument(&mut random)).collect();
    let arguments = arguments.join(", ");
    let object = OBJECTS[random.below(OBJECTS.len())].2;
    let called = match random.below(5) {
        0 | 1 => format!("{name}({arguments})"),
        2 | 3 => format!("{object}.{name}({arguments})"),
        _ => format!("{object}->{name}({arguments})"),
    };
    match random.below(6) {
        0 => format!("f[i] = {called};"),
        1 => format!("auto v{number} = {called}; f[i] += v{number};"),
        2 => format!("if ({called}) f[i] = 2.0f;"),
        3 => format!("f[{called}] = 1.0f;"),
        _ => format!("{called};"),
    }
}

/// The objects as OpenCL C has them; what it has no such of is not declared.
const OPENCL: &str = "// warplens: block=128 grid=16\n__kernel void k(__global float *f, __global float4 *o8, int2 o9, \
    double2 o10, __global half *o11, half2 o12, read_only image2d_t o14, write_only image3d_t o15, __global float *o16, \
    __constant int *o17, __local float *o18, sampler_t o21, uint4 o23, __global uchar4 *o24, bool o25, \
    __global volatile ulong *o26, __global atomic_int *o0, pipe int o3) {\n  int i = get_local_id(0);\n  int o19[4];\n";

fn kernel(calls: &[String], language: Language) -> String {
    if language == Language::OpenCl {
        return format!("{OPENCL}  {}\n}}\n", calls.join("\n  "));
    }
    let mut text = BEFORE.to_owned();
    let parameters: Vec<&str> = OBJECTS.iter().map(|object| object.0).collect();
    let parameters: Vec<&str> = parameters
        .into_iter()
        .filter(|one| !one.is_empty())
        .collect();
    let _ = writeln!(
        text,
        "// warplens: block=128 grid=16\n__global__ void k(float *f, {}) {{\n  int i = threadIdx.x;",
        parameters.join(", ")
    );
    for (_, declared, _) in OBJECTS {
        let _ = writeln!(text, "  {declared}");
    }
    for call in calls {
        let _ = writeln!(text, "  {call}");
    }
    text + "}\n"
}

/// Whether a kernel is answered whole.
fn is_answered(engine: &Engine, text: &str, language: Language) -> bool {
    let document = Document::new(text, language);
    let name = match language {
        Language::OpenCl => "k.cl",
        Language::Hip => "k.hip",
        Language::Cuda => "k.cu",
    };
    let file = engine.analyze(
        &document,
        Path::new(name),
        &Settings::default(),
        &Overrides::default(),
        &Cancel::default(),
    );
    let file = file.expect("not cancelled");
    assert_eq!(file.found, 1, "a kernel is no longer one:\n{text}");
    file.problems.is_empty()
        && file.kernels.len() == 1
        && file.kernels.iter().all(|kernel| {
            // What is made on request.
            let estimate = kernel.analysis.estimate();
            estimate.cycles.is_none_or(f64::is_finite)
        })
}

#[test]
fn calls_of_known_functions_with_any_arguments_panic_nowhere() {
    let number = |name: &str, default: usize| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let names = names();
    let first = number("WARPLENS_FIRST", 0);
    let last = first + number("WARPLENS_CASES", 1_500);
    let engine = Engine::new(Profiles::builtin());
    let mut lost = Vec::new();
    let mut at = first;
    while at < last {
        let numbers: Vec<usize> = (at..last.min(at + TOGETHER)).collect();
        at += TOGETHER;
        let calls: Vec<String> = numbers.iter().map(|&number| call(number, &names)).collect();
        let language = match at / TOGETHER % 4 {
            0 => Language::OpenCl,
            1 => Language::Hip,
            _ => Language::Cuda,
        };
        if is_answered(&engine, &kernel(&calls, language), language) {
            continue;
        }
        let alone = numbers.iter().zip(&calls);
        let mut alone: Vec<String> = alone
            .filter(|(_, call)| {
                !is_answered(
                    &engine,
                    &kernel(std::slice::from_ref(*call), language),
                    language,
                )
            })
            .map(|(number, call)| format!("{number}: {call}"))
            .collect();
        if alone.is_empty() {
            alone.push(format!("{numbers:?} together"));
        }
        lost.extend(alone);
    }
    assert!(
        lost.is_empty(),
        "{} calls:\n{}",
        lost.len(),
        lost.join("\n")
    );
}
