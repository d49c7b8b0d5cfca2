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
