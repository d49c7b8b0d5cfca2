//! Objects of the toolkit's C++ library: atomics, group copies, operators of groups; and floating point of 16 bits.

use warplens_codegen::Class;
use warplens_db::FileAnalysis;
use warplens_facts::facts::{Op, OpClass, Space};

use crate::modern::{analyse, instructions};

/// What the first kernel does to memory outside the threads: operation, space, bytes per lane.
fn operations(file: &FileAnalysis) -> Vec<(Op, Space, u32)> {
    let input = &file.kernels[0].analysis.input;
    let accesses = file.kernels[0].analysis.facts.accesses.iter();
    let memory = accesses.filter(|access| input.is_memory(access));
    memory
        .map(|access| (access.op, access.space, access.bytes_per_lane))
        .collect()
}

fn with(parameters: &str, body: &str) -> FileAnalysis {
    analyse(&format!(
        "__global__ void k({parameters}) {{ {body} }}\n\
         void go({parameters}) {{ k<<<4, 64>>>(o); }}\n"
    ))
}

#[test]
fn a_member_of_an_atomic_is_a_load_a_store_or_an_atomic_of_its_element() {
    for (ty, bytes) in [("int", 4), ("unsigned long long", 8), ("double", 8)] {
        for (call, op) in [
            ("r.fetch_add(1, cuda::memory_order_relaxed);", Op::Atomic),
            ("r++;", Op::Atomic),
            ("r += 2;", Op::Atomic),
            ("r.exchange(3);", Op::Atomic),
            ("r.store(4, cuda::std::memory_order_release);", Op::Store),
            ("r = 5;", Op::Store),
        ] {
            let body = format!(
                "cuda::atomic_ref<{ty}, cuda::thread_scope_device> r(o[threadIdx.x]); {call}"
            );
            let file = with(&format!("{ty} *o"), &body);
            assert_eq!(
                operations(&file),
                [(op, Space::Global, bytes)],
                "{ty}: {call}"
            );
        }
    }
}

#[test]
fn what_is_read_of_an_atomic_is_loaded() {
    for read in ["r.load()", "r.load(cuda::memory_order_acquire)", "r"] {
        let file = with(
            "int *o",
            &format!("cuda::std::atomic_ref<int> r(o[0]); o[1 + threadIdx.x] = {read};"),
        );
        let expected = [(Op::Load, Space::Global, 4), (Op::Store, Space::Global, 4)];
        assert_eq!(operations(&file), expected, "{read}");
    }
}

#[test]
fn each_load_and_store_of_an_atomic_is_made() {
    for (body, made) in [
        ("o[1] = r.load() + r.load();", [2, 1]),
        ("r.store(1); r.store(2); o[1] = r.load();", [1, 3]),
    ] {
        let file = with("int *o", &format!("cuda::atomic_ref<int> r(o[0]); {body}"));
        let done = instructions(&file, [Class::Ldg, Class::Stg]);
        assert_eq!(done, made, "{body}");
    }
}

#[test]
fn exchanges_that_compare_are_atomics() {
    let file = with(
        "int *o",
        "cuda::atomic_ref<int, cuda::thread_scope_device> r(*o);\n\
         int seen = r.load();\n\
         while (!r.compare_exchange_weak(seen, seen + 1)) { }",
    );
    let expected = [(Op::Load, Space::Global, 4), (Op::Atomic, Space::Global, 4)];
    assert_eq!(operations(&file), expected);
    assert_eq!(instructions(&file, [Class::Ldg, Class::Stg]), [1, 0]);
}

#[test]
fn atomics_that_are_declared_lie_where_they_are_declared() {
    let file = analyse(
        "__global__ void k(int *o) {\n\
         \x20 __shared__ cuda::atomic<int, cuda::thread_scope_block> count;\n\
         \x20 if (threadIdx.x == 0) count = 0;\n\
         \x20 __syncthreads();\n\
         \x20 count++;\n\
         \x20 __syncthreads();\n\
         \x20 if (threadIdx.x == 0) o[blockIdx.x] = count;\n\
         }\n\
         void go(int *o) { k<<<4, 64>>>(o); }\n",
    );
    let expected = [
        (Op::Store, Space::Shared, 4),
        (Op::Atomic, Space::Shared, 4),
        (Op::Load, Space::Shared, 4),
        (Op::Store, Space::Global, 4),
    ];
    assert_eq!(operations(&file), expected);
    let array = analyse(
        "__global__ void k(cuda::atomic<float, cuda::thread_scope_device> *o) {\n\
         \x20 o[threadIdx.x % 4].fetch_add(1.f);\n\
         }\n\
         void go(cuda::atomic<float, cuda::thread_scope_device> *o) { k<<<4, 64>>>(o); }\n",
    );
    assert_eq!(operations(&array), [(Op::Atomic, Space::Global, 4)]);
}

#[test]
fn the_operators_of_groups_that_are_called_as_comparisons_choose() {
    for (operator, sums) in [("greater", 0), ("less", 0), ("plus", 3)] {
        let file = analyse(&format!(
            "namespace cg = cooperative_groups;\n\
             __global__ void k(const float *a, float *o) {{\n\
             \x20 auto tile = cg::tiled_partition<8>(cg::this_thread_block());\n\
             \x20 o[threadIdx.x] = cg::reduce(tile, a[threadIdx.x], cg::{operator}<float>());\n\
             }}\n\
             void go(float *a, float *o) {{ k<<<1, 256>>>(a, o); }}\n"
        ));
        // A minimum is one instruction of its own, no comparison and no choice.
        let made = instructions(&file, [Class::Shfl, Class::Fadd, Class::Fsetp, Class::Sel]);
        assert_eq!(made, [3, sums, 0, 0], "{operator}");
    }
}

#[test]
fn a_group_copies_elements_side_by_side() {
    for (copy, bytes, requests) in [
        (
            "cg::memcpy_async(block, s, a + blockIdx.x * 256, sizeof(s)); cg::wait(block);",
            4,
            8.0,
        ),
        (
            "cuda::memcpy_async(block, s, a + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(s)), bar);\n\
             bar.arrive_and_wait();",
            16,
            2.0,
        ),
        (
            "const auto shape = cuda::aligned_size_t<alignof(float4)>(sizeof(float4));\n\
             __shared__ alignas(16) float t[1024];\n\
             cuda::memcpy_async(t + threadIdx.x * 4, a + blockIdx.x * 1024 + threadIdx.x * 4, shape, bar);\n\
             bar.arrive_and_wait();",
            16,
            8.0,
        ),
    ] {
        let file = analyse(&format!(
            "namespace cg = cooperative_groups;\n\
             __global__ void k(const float *a, float *o) {{\n\
             \x20 __shared__ alignas(16) float s[256];\n\
             \x20 __shared__ cuda::barrier<cuda::thread_scope_block> bar;\n\
             \x20 auto block = cg::this_thread_block();\n\
             \x20 {copy}\n\
             \x20 o[blockIdx.x * 256 + threadIdx.x] = s[threadIdx.x ^ 1];\n\
             }}\n\
             void go(float *a, float *o) {{ k<<<1, 256>>>(a, o); }}\n"
        ));
        let accesses = &file.kernels[0].analysis.facts.accesses;
        let load = &accesses[0];
        assert_eq!((load.op, load.bytes_per_lane), (Op::Load, bytes), "{copy}");
        assert_eq!(load.requests, Some(requests), "{copy}");
        assert_eq!(
            load.transactions_per_request,
            Some(f64::from(bytes)),
            "{copy}"
        );
        let store = &accesses[1];
        assert_eq!(
            (store.op, store.space),
            (Op::Store, Space::Shared),
            "{copy}"
        );
        let mut counts = file.kernels[0].analysis.facts.counts.iter();
        let barriers =
            counts.any(|count| count.class == OpClass::Barrier && count.value > Some(0.0));
        assert_eq!(barriers, copy.contains("cg::wait"), "{copy}");
    }
}

#[test]
fn half_and_bfloat16_are_two_types() {
    let file = analyse(
        "template <class T> struct Step { static constexpr int value = 1; };\n\
         template <> struct Step<__half> { static constexpr int value = 2; };\n\
         template <> struct Step<__nv_bfloat16> { static constexpr int value = 4; };\n\
         __device__ int pick(__half) { return 1; }\n\
         __device__ int pick(__nv_bfloat16) { return 8; }\n\
         template <class T> __global__ void k(T *o) {\n\
         \x20 o[threadIdx.x * Step<T>::value] = T(1.f);\n\
         \x20 o[threadIdx.x * pick(o[0])] = T(1.f);\n\
         \x20 if constexpr (std::is_same_v<T, __half>) o[threadIdx.x * 16] = T(2.f);\n\
         }\n\
         void go(__nv_bfloat16 *b, __half *h) { k<<<1, 32>>>(b); k<<<1, 64>>>(h); }\n",
    );
    let named: Vec<&str> = (file.kernels.iter())
        .map(|kernel| kernel.analysis.template_args[0].1.as_str())
        .collect();
    assert_eq!(named, ["__nv_bfloat16", "half"]);
    let stores = |at: usize| -> Vec<Option<f64>> {
        let accesses = file.kernels[at].analysis.facts.accesses.iter();
        let stores = accesses.filter(|access| access.op == Op::Store);
        stores.map(|store| store.transactions_per_request).collect()
    };
    assert_eq!(stores(0), [Some(8.0), Some(16.0)]);
    assert_eq!(stores(1), [Some(4.0), Some(2.0), Some(32.0)]);
}

#[test]
fn a_dispatch_over_types_has_those_that_it_names() {
    let file = analyse(
        "template <class T> __global__ void k(const T *x, T *y) {\n\
         \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20 y[i] = x[i];\n\
         }\n\
         void go(at::Tensor x, at::Tensor y) {\n\
         \x20 AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::ScalarType::BFloat16, x.scalar_type(), \"k\", [&] {\n\
         \x20   k<scalar_t><<<64, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>());\n\
         \x20 });\n\
         }\n",
    );
    let mut named: Vec<&str> = (file.kernels.iter())
        .map(|kernel| kernel.analysis.template_args[0].1.as_str())
        .collect();
    named.sort_unstable();
    assert_eq!(named, ["__nv_bfloat16", "double", "float", "half"]);
}

#[test]
fn what_is_no_built_in_number_is_no_floating_point_of_the_standard_library() {
    let file = analyse(
        "template <class T> __global__ void k(T *o) {\n\
         \x20 constexpr int n = std::is_floating_point_v<T> ? 1 : 2;\n\
         \x20 o[threadIdx.x * n] = T(1.f);\n\
         }\n\
         void go(float *f, __half *h) { k<<<1, 32>>>(f); k<<<1, 32>>>(h); }\n",
    );
    let index = |at: usize| file.kernels[at].analysis.facts.accesses[0].index.clone();
    assert_eq!(index(0), "threadIdx.x");
    assert_eq!(index(1), "threadIdx.x * 2");
}

#[test]
fn fragments_of_both_types_of_16_bits_are_fragments() {
    for ty in ["__half", "__nv_bfloat16"] {
        let file = analyse(&format!(
            "using namespace nvcuda;\n\
             __global__ void k(const {ty} *a, float *o) {{\n\
             \x20 wmma::fragment<wmma::matrix_a, 16, 16, 16, {ty}, wmma::row_major> x;\n\
             \x20 wmma::fragment<wmma::matrix_b, 16, 16, 16, {ty}, wmma::col_major> y;\n\
             \x20 wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;\n\
             \x20 wmma::fill_fragment(z, 0.f);\n\
             \x20 wmma::load_matrix_sync(x, a, 16);\n\
             \x20 wmma::load_matrix_sync(y, a, 16);\n\
             \x20 wmma::mma_sync(z, x, y, z);\n\
             \x20 wmma::store_matrix_sync(o, z, 16, wmma::mem_row_major);\n\
             }}\n\
             void go({ty} *a, float *o) {{ k<<<1, 32>>>(a, o); }}\n"
        ));
        assert_eq!(instructions(&file, [Class::Hmma]), [2], "{ty}");
    }
}

#[test]
fn more_collectives_of_cub_move_what_they_say_between_threads() {
    let kernel = |storage: &str, call: &str| {
        format!(
            "struct Less {{ template <class T> __device__ bool operator()(const T &a, const T &b) const {{ return a < b; }} }};\n\
             struct Minus {{ template <class T> __device__ T operator()(const T &a, const T &b) const {{ return a - b; }} }};\n\
             // warplens: block=(128) grid=(8)\n\
             __global__ void k(const int *a, int *o) {{\n\
                 using B = cub::{storage}; __shared__ typename B::TempStorage s[4];\n\
                 int x[4], f[4] = {{}}; __shared__ unsigned h[256]; int w = threadIdx.x / 32;\n\
                 for (int j = 0; j < 4; j++) x[j] = a[blockIdx.x * 512 + j * 128 + threadIdx.x];\n\
                 {call}\n\
                 for (int j = 0; j < 4; j++) o[blockIdx.x * 512 + j * 128 + threadIdx.x] = x[j] + f[j];\n\
             }}\n"
        )
    };
    let all = [
        ("BlockMergeSort<int, 128, 4>", "B(s[0]).Sort(x, Less());"),
        (
            "BlockMergeSort<int, 128, 4, int>",
            "B(s[0]).Sort(x, f, Less());",
        ),
        ("WarpMergeSort<int, 4>", "B(s[w]).Sort(x, Less());"),
        (
            "BlockDiscontinuity<int, 128>",
            "B(s[0]).FlagHeads(f, x, Less());",
        ),
        (
            "BlockDiscontinuity<int, 128>",
            "B(s[0]).FlagTails(f, x, Less(), 3);",
        ),
        (
            "BlockAdjacentDifference<int, 128>",
            "B(s[0]).SubtractLeft(x, f, Minus());",
        ),
        (
            "BlockAdjacentDifference<int, 128>",
            "B(s[0]).SubtractRight(x, f, Minus());",
        ),
        ("BlockShuffle<int, 128>", "B(s[0]).Rotate(x[0], f[0], 3);"),
        ("BlockShuffle<int, 128>", "B(s[0]).Up(x, f);"),
        (
            "BlockHistogram<int, 128, 4, 256, cub::BLOCK_HISTO_ATOMIC>",
            "B(s[0]).Histogram(x, h);",
        ),
        (
            "BlockHistogram<int, 128, 4, 256>",
            "B(s[0]).Histogram(x, h);",
        ),
        ("WarpExchange<int, 4>", "B(s[w]).StripedToBlocked(x, f);"),
        (
            "WarpLoad<int, 4, cub::WARP_LOAD_TRANSPOSE>",
            "B(s[w]).Load(a + blockIdx.x * 512 + w * 128, f);",
        ),
        (
            "WarpStore<int, 4, cub::WARP_STORE_TRANSPOSE>",
            "B(s[w]).Store(o + blockIdx.x * 512 + w * 128, x);",
        ),
    ];
    for (storage, call) in all {
        let file =
            crate::reads::analysed(&kernel(storage, call), &warplens_db::Overrides::default());
        let facts = &file.kernels[0].analysis.facts;
        assert_eq!(facts.not_understood, [], "{storage}: {call}");
        let shared = facts
            .accesses
            .iter()
            .filter(|one| one.space == Space::Shared);
        assert!(shared.count() > 1, "{storage}: {call}");
    }
    // A transposed load of four items conflicts in four banks where the lanes read their own.
    let load = kernel(
        "WarpLoad<int, 4, cub::WARP_LOAD_TRANSPOSE>",
        "B(s[w]).Load(a + w * 128, f);",
    );
    assert!(crate::reads::sectors(&load).contains(&4.0));
}

#[test]
fn the_loops_of_pytorchs_kernels_and_views_of_several_dimensions_are_read() {
    let text = "__global__ void k(int n, const float *a, float *o) { CUDA_KERNEL_LOOP(i, n) { o[i] = a[8 * i]; } }\n\
                void run(int n, const float *a, float *o) { k<<<10, 256>>>(n, a, o); }\n";
    assert_eq!(crate::reads::sectors(text), [32.0, 4.0]);
    let view = |layout: &str| {
        format!(
            "using M = cuda::std::mdspan<float, cuda::std::dextents<int, 2>, cuda::std::{layout}>;\n\
             __global__ void k(M a, float *o) {{ o[threadIdx.x] = a(blockIdx.y, threadIdx.x); }}\n\
             void run(M a, float *o) {{ k<<<dim3(4, 5), 256>>>(a, o); }}\n"
        )
    };
    assert_eq!(crate::reads::sectors(&view("layout_right")), [4.0, 4.0]);
    assert_eq!(crate::reads::sectors(&view("layout_left")), [32.0, 4.0]);
}

#[test]
fn what_a_tensor_is_by_itself_is_where_pytorch_declares_it() {
    let text = "#include <ATen/cuda/detail/TensorInfo.cuh>\n\
                template <class T> struct Offset {\n\
                    static __device__ int get(int i, const at::cuda::detail::TensorInfo<T, int> &info) {\n\
                        return i % info.sizes[info.dims - 1] * info.strides[info.dims - 1];\n\
                    }\n\
                };\n\
                __global__ void k(const at::cuda::detail::TensorInfo<long, int> info, float *o) {\n\
                    int at = at::cuda::detail::IndexToOffset<long, int, -1>::get(threadIdx.x, info);\n\
                    o[threadIdx.x] = info.data[at] + info.data[Offset<long>::get(threadIdx.x, info)];\n\
                }\n";
    assert_eq!(crate::reads::losses(text), 0);
}

#[test]
fn quaternions_and_matrices_of_glm_change_in_place() {
    for changed in [
        "q *= 2.f;",
        "q /= a[4];",
        "q += p;",
        "q -= p;",
        "q *= p;",
        "q = q - p;",
        "m *= m; q.x = m[0].x;",
        "m *= 2.f; q.x = m[1].y;",
    ] {
        let text = format!(
            "#include <glm/glm.hpp>\n#include <glm/gtc/quaternion.hpp>\n\
             __global__ void k(float *o, const float *a) {{\n\
             glm::quat q(a[0], a[1], a[2], a[3]), p(a[5], a[6], a[7], a[8]); glm::mat3 m = glm::make_mat3(a);\n\
             {changed} o[threadIdx.x] = q.x + q.w; }}\n"
        );
        assert_eq!(crate::reads::losses(&text), 0, "{changed}");
    }
}
