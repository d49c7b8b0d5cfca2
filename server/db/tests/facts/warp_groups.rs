//! What groups of warps and of blocks do together: products whose factors descriptors say, copies to several blocks, stages that
//! go on from tile to tile; and the functions of other vendors by which lanes access memory side by side.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::wire::{Access, KernelResult};
use warplens_db::{LaunchValues, Overrides};
use warplens_syntax::{Document, Language};

use crate::tensor::{ENGINE, launched};

fn on(gpu: &str, text: &str, language: Language, grid: u64, block: u64) -> KernelResult {
    let launch = LaunchValues {
        grid: Some([grid, 1, 1]),
        block: Some([block, 1, 1]),
        ..LaunchValues::default()
    };
    all_on(gpu, text, language, launch).remove(0)
}

fn all_on(gpu: &str, text: &str, language: Language, launch: LaunchValues) -> Vec<KernelResult> {
    let overrides = Overrides {
        argument: launch,
        ..Overrides::default()
    };
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        ..Settings::default()
    };
    let path = Path::new(match language {
        Language::Cuda => "k.cu",
        Language::Hip => "k.hip",
        Language::OpenCl => "k.cl",
    });
    let document = Document::new(text, language);
    let found = ENGINE.estimate(&document, path, &settings, &overrides, &[], &[], &[]);
    found.expect("a known GPU").results
}

fn of<'r>(found: &'r KernelResult, space: &str, op: &str) -> Vec<&'r Access> {
    let all = found.accesses.iter();
    all.filter(|access| access.space == space && access.op == op)
        .collect()
}

/// One product of 64 · `columns` · 16 of four warps in a loop, which waits for all but the last `left` groups.
fn products(columns: usize, left: usize, descriptors: [&str; 2]) -> KernelResult {
    let sums = columns / 2;
    let names: Vec<String> = (0..sums).map(|at| format!("%{at}")).collect();
    let bound: Vec<String> = (0..sums).map(|at| format!("\"+f\"(d[{at}])")).collect();
    let [a, b] = descriptors;
    let text = format!(
        "#include <cstdint>\n\
         __device__ uint64_t described(const void *p, uint64_t stride) {{\n\
           uint32_t at = (uint32_t)__cvta_generic_to_shared(p);\n\
           return (uint64_t)((at & 0x3FFFF) >> 4) | (uint64_t)1 << 16 | (stride >> 4) << 32 | (uint64_t)1 << 62; }}\n\
         __global__ void k(float *out) {{\n\
           __shared__ __align__(1024) unsigned char left[8192]; __shared__ __align__(1024) unsigned char right[32768];\n\
           float d[{sums}] = {{}}; int step = 0;\n\
           for (int i = 0; i < 4096; i++) {{\n\
             asm volatile(\"wgmma.fence.sync.aligned;\");\n\
             for (int j = 0; j < 4; j++) {{ step = j * 32;\n\
               uint64_t a = {a}, b = {b};\n\
               asm volatile(\"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{}}}, %{sums}, %{}, 1, 1, 1, 0, 0;\" : {} : \"l\"(a), \"l\"(b)); }}\n\
             asm volatile(\"wgmma.commit_group.sync.aligned;\"); asm volatile(\"wgmma.wait_group.sync.aligned {left};\");\n\
           }}\n\
           float sum = 0; for (int i = 0; i < {sums}; i++) sum += d[i];\n\
           out[threadIdx.x] = sum; }}\n",
        names.join(","),
        sums + 1,
        bound.join(","),
    );
    on("h100-sxm5", &text, Language::Cuda, 132, 128)
}

const PLAIN: [&str; 2] = [
    "described(left + step, 1024)",
    "described(right, 1024) + step / 16",
];

#[test]
fn factors_that_descriptors_say_are_read_of_shared_memory() {
    let found = products(64, 1, PLAIN);
    assert!(found.not_understood.is_empty());
    let reads = of(&found, "shared", "load");
    assert_eq!(reads.len(), 2);
    // 64 rows of 32 bytes each, by four warps together.
    for (read, index) in reads.iter().zip(["j * 32", "j * 32"]) {
        assert!(read.exact, "{:?}", read.why);
        assert_eq!(read.bytes_per_request, Some(2048.0));
        assert_eq!(read.passes_per_request, Some(16.0));
        assert_eq!(read.bank_conflict_degree, Some(1.0));
        assert_eq!(read.requests, Some(132.0 * 4096.0 * 4.0));
        assert_eq!(read.index, index);
    }
    let right = products(8, 1, PLAIN);
    let right = of(&right, "shared", "load");
    assert_eq!(right[1].bytes_per_request, Some(256.0));
    assert_eq!(right[1].passes_per_request, Some(2.0));
}

#[test]
fn descriptors_that_cannot_be_are_told() {
    for (wrong, why) in [
        ("described(left, 1048576)", "bits that no field of it has"),
        (
            "(uint64_t)(uint32_t)__cvta_generic_to_shared(left) | (uint64_t)64 << 32 | (uint64_t)1 << 62",
            "in bytes",
        ),
    ] {
        let found = products(8, 1, [wrong, PLAIN[1]]);
        let reads = of(&found, "shared", "load");
        let said = reads[0].why.as_deref().unwrap_or_default();
        assert!(!reads[0].exact && said.contains(why), "{wrong}: {said}");
        // The other factor is what it is.
        assert!(reads[1].exact, "{wrong}");
    }
}

#[test]
fn products_of_a_warp_group_take_their_pipe_or_shared_memory_whichever_is_longer() {
    // Cycles of one instruction on an H100 (measured by others), with one group on its way: N / 2, or 16 + N / 4.
    for (columns, measured) in [(8, 18.9), (32, 24.7), (64, 32.8), (128, 65.0), (256, 129.3)] {
        let found = products(columns, 1, PLAIN);
        let time = found.estimates["auto"].time_ms.expect("a time");
        let cycles = time * 1.98e6 / (4096.0 * 4.0);
        let off = cycles / measured;
        assert!((0.9..1.1).contains(&off), "{cycles} for {measured}");
    }
    // What is waited for at once is waited for.
    let time = |left| {
        products(64, left, PLAIN).estimates["auto"]
            .time_ms
            .expect("a time")
    };
    assert!(time(0) > 1.2 * time(1));
}

#[test]
fn two_instructions_at_one_address_are_two() {
    let text = "#include <cstdint>\n__global__ void k(unsigned *out) {\n\
         __shared__ __align__(128) unsigned tile[32][32]; unsigned r[4], s[4];\n\
         uint32_t at = (uint32_t)__cvta_generic_to_shared(&tile[threadIdx.x % 8 + threadIdx.x / 16 * 8][threadIdx.x / 8 % 2 * 4]);\n\
         asm volatile(\"ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];\" : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3]) : \"r\"(at));\n\
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\" : \"=r\"(s[0]), \"=r\"(s[1]) : \"r\"(at));\n\
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\" : \"=r\"(s[0]), \"=r\"(s[1]), \"=r\"(s[2]), \"=r\"(s[3]) : \"r\"(at));\n\
         out[threadIdx.x] = r[0] + s[0];\n}\n";
    let found = on("h100-sxm5", text, Language::Cuda, 1, 32);
    let reads = of(&found, "shared", "load");
    let said: Vec<_> = reads
        .iter()
        .map(|read| (read.bytes_per_request, read.instruction.as_deref()))
        .collect();
    assert_eq!(reads.len(), 3);
    assert!(reads.iter().all(|read| read.exact));
    assert_eq!(said[0].0, Some(512.0));
    assert_eq!(said[1].0, Some(256.0));
    assert_eq!(said[2].0, Some(512.0));
    assert!(said[0].1.is_some_and(|of| of.starts_with("ld.shared")));
    assert!(said[2].1.is_some_and(|of| of.starts_with("ldmatrix")));
    // Rows of 128 bytes: eight lanes side by side meet in the same four banks.
    let passes: Vec<_> = reads.iter().map(|read| read.passes_per_request).collect();
    assert_eq!(passes, [Some(32.0), Some(16.0), Some(32.0)]);
}

/// A copy of a box by the first block of a cluster of two, or by each block.
fn cluster(dims: &str, instruction: &str, mask: &str, guard: &str) -> KernelResult {
    let text = format!(
        "#include <cuda.h>\n#include <cooperative_groups.h>\n#include <cstdint>\nnamespace cg = cooperative_groups;\n\
         __device__ uint32_t at(const void *p) {{ return (uint32_t)__cvta_generic_to_shared(p); }}\n\
         __global__ void {dims} k(const __grid_constant__ CUtensorMap a, float *out) {{\n\
           __shared__ __align__(128) unsigned short tile[64 * 128]; __shared__ uint64_t bar;\n\
           uint32_t rank; asm(\"mov.u32 %0, %cluster_ctarank;\" : \"=r\"(rank));\n\
           if (threadIdx.x == 0 && {guard}) asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{instruction}\" \
             :: \"r\"(at(tile)), \"l\"(&a), \"r\"(0), \"r\"((int)blockIdx.x / 2 * 128), \"r\"(at(&bar)){mask});\n\
           __syncthreads(); out[threadIdx.x] = tile[threadIdx.x]; }}\n\
         CUtensorMap made(void *p) {{ CUtensorMap m; cuuint64_t all[2] = {{8192, 8192}}; cuuint64_t row[1] = {{16384}};\n\
           cuuint32_t box[2] = {{64, 128}}; cuuint32_t one[2] = {{1, 1}};\n\
           cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, p, all, row, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,\n\
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); return m; }}\n\
         int main() {{ void *p; float *out; cudaMalloc(&p, 8192 * 8192 * 2); cudaMalloc(&out, 512);\n\
           k<<<64, 128>>>(made(p), out); }}\n"
    );
    launched(&text, LaunchValues::default())
}

#[test]
fn a_copy_to_several_blocks_of_a_cluster_is_loaded_once() {
    let dims = "__cluster_dims__(2, 1, 1)";
    let many = ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;";
    let one = " [%0], [%1, {%2, %3}], [%4];";
    let mask = ", \"h\"((uint16_t)3)";
    let all = ", \"h\"((uint16_t)((1 << cg::this_cluster().num_blocks()) - 1))";
    for (found, requests, stored) in [
        (cluster(dims, many, mask, "rank == 0"), 32.0, 32768.0),
        (
            cluster(dims, many, all, "cg::this_cluster().block_rank() == 0"),
            32.0,
            32768.0,
        ),
        (cluster(dims, one, "", "true"), 64.0, 16384.0),
    ] {
        assert!(
            found.not_understood.is_empty(),
            "{:?}",
            found.not_understood
        );
        let (load, store) = (of(&found, "global", "load"), of(&found, "shared", "store"));
        for access in [load[0], store[0]] {
            assert!(access.exact, "{:?}", access.why);
            assert_eq!(access.requests, Some(requests));
        }
        assert_eq!(load[0].bytes_per_request, Some(16384.0));
        assert_eq!(store[0].bytes_per_request, Some(stored));
        assert_eq!(store[0].passes_per_request, Some(stored / 128.0));
    }
    // Which blocks get it is not known: how much is stored is not either.
    let open = cluster(dims, many, ", \"h\"((uint16_t)out[0])", "rank == 0");
    assert_eq!(of(&open, "shared", "store")[0].bytes_per_request, None);
    // Without a cluster its rank is not known.
    let none = cluster("", one, "", "rank == 0");
    assert!(!of(&none, "global", "load")[0].exact);
}

#[test]
fn stages_go_on_from_tile_to_tile() {
    let kernel = |turn: &str| {
        format!(
            "struct State {{ int stage = 0; unsigned phase = 0;\n\
               __device__ void next() {{ if (++stage == 4) {{ stage = 0; phase ^= 1; }} }} }};\n\
             __global__ void k(float *out, const float *in, int steps) {{\n\
             __shared__ float tile[4][64][33]; float sum = 0; int stage = 0, phase = 0; State state;\n\
             for (int t = blockIdx.x; t < 500; t += gridDim.x)\n\
               for (int i = 0; i < 6; i++) {{ sum += tile[stage][threadIdx.x / 32][threadIdx.x % 32]; {turn} }}\n\
             out[blockIdx.x * blockDim.x + threadIdx.x] = sum + phase; }}\n"
        )
    };
    for turn in [
        "if (++stage == 4) { stage = 0; phase ^= 1; }",
        "stage = stage + 1 < 4 ? stage + 1 : 0;",
        "stage++; if (stage >= 4) stage = 0;",
        "stage = (stage + 1) % 4;",
        "stage = (stage + 3) & 3;",
        "state.next(); stage = state.stage; phase = state.phase;",
    ] {
        let found = on("h100-sxm5", &kernel(turn), Language::Cuda, 100, 128);
        let reads = of(&found, "shared", "load");
        assert!(reads[0].exact, "{turn}: {:?}", reads[0].why);
        assert_eq!(reads[0].passes_per_request, Some(1.0), "{turn}");
        assert_eq!(reads[0].requests, Some(500.0 * 6.0 * 4.0), "{turn}");
        assert!(reads[0].index.contains("% 4"), "{turn}: {}", reads[0].index);
        // The branch that begins anew: every fourth time.
        for branch in found.branches.iter().filter(|branch| branch.kind == "if") {
            assert!(branch.exact, "{turn}: {:?}", branch.why);
        }
    }
    // What data adds is on no known place.
    for turn in [
        "stage = (stage + (int)in[i]) % 4;",
        "if (in[i] > 0) stage = (stage + 1) % 4;",
    ] {
        let found = on("h100-sxm5", &kernel(turn), Language::Cuda, 100, 128);
        assert!(
            !of(&found, "shared", "load")[0].index.contains("iteration"),
            "{turn}"
        );
    }
}

#[test]
fn boxes_of_persistent_tiles_lie_in_the_tensor() {
    let spelled = |walk: &str| {
        format!(
            "#include <cuda.h>\n#include <cstdint>\n\
             struct Tiles {{ int it, total, columns; __device__ int next() {{ int n = it * 132 + blockIdx.x;\n\
               if (n >= total) return -1; int group = n / 64, at = n % 64; ++it;\n\
               return (group / (columns / 8) * 8 + at / 8) * columns + group % (columns / 8) * 8 + at % 8; }} }};\n\
             __global__ void k(const __grid_constant__ CUtensorMap a, float *out) {{\n\
               __shared__ __align__(128) unsigned short tile[64 * 128]; __shared__ uint64_t bar;\n\
               {walk} if (threadIdx.x == 0)\n\
                 asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {{%2, %3}}], [%4];\" \
                   :: \"r\"((uint32_t)__cvta_generic_to_shared(tile)), \"l\"(&a), \"r\"(t % 128 * 64), \"r\"(t / 128 * 128), \"r\"((uint32_t)__cvta_generic_to_shared(&bar)));\n\
               out[threadIdx.x] = tile[threadIdx.x]; }}\n\
             CUtensorMap made(void *p) {{ CUtensorMap m; cuuint64_t all[2] = {{8192, 8192}}; cuuint64_t row[1] = {{16384}};\n\
               cuuint32_t box[2] = {{64, 128}}; cuuint32_t one[2] = {{1, 1}};\n\
               cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, p, all, row, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,\n\
                 CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); return m; }}\n\
             int main() {{ void *p; float *out; cudaMalloc(&p, 8192 * 8192 * 2); cudaMalloc(&out, 512);\n\
               k<<<132, 128>>>(made(p), out); }}\n"
        )
    };
    let check = |walk: &str, exact: bool| {
        let found = launched(&spelled(walk), LaunchValues::default());
        let load = of(&found, "global", "load");
        let copy = load.iter().find(|load| load.instruction.is_some());
        let copy = copy.expect("a copy");
        assert_eq!(copy.exact, exact, "{walk}");
        if exact {
            assert_eq!(copy.requests, Some(8192.0), "{walk}");
        }
    };
    // 128 · 64 boxes are all of it; behind them it ends.
    for (tiles, exact) in [("8192", true), ("8193", false), ("(int)out[0]", false)] {
        check(
            &format!("for (int t = blockIdx.x; t < {tiles}; t += gridDim.x)"),
            exact,
        );
    }
    // Handed out by an object, in groups of eight by eight.
    for (rows, exact) in [(64, true), (72, false)] {
        let tiles = format!("Tiles tiles{{0, {rows} * 128, 128}};");
        check(
            &format!("{tiles} for (int t = tiles.next(); t >= 0; t = tiles.next())"),
            exact,
        );
    }
}

#[test]
fn sub_groups_read_blocks_side_by_side() {
    let text = "__kernel void k(__global const uint *in, __global const ushort *few, __global uint *out) {\n\
         size_t group = get_global_id(0) / get_sub_group_size();\n\
         uint4 v = intel_sub_group_block_read4(in + group * 128);\n\
         v.x += intel_sub_group_block_read_us(few + group * 32);\n\
         intel_sub_group_block_write4(out + group * 128, v); }\n";
    let found = on("h100-sxm5", text, Language::OpenCl, 64, 128);
    assert!(found.not_understood.is_empty());
    let loads = of(&found, "global", "load");
    let stores = of(&found, "global", "store");
    assert_eq!((loads.len(), stores.len()), (5, 4));
    for access in loads[..4].iter().chain(&stores) {
        assert!(access.exact, "{:?}", access.why);
        assert_eq!(access.transactions_per_request, Some(4.0));
        assert_eq!(access.requests, Some(256.0));
    }
    assert_eq!(loads[4].transactions_per_request, Some(2.0));
}

#[test]
fn builtins_of_amd_are_what_they_do() {
    let text = "typedef int i2 __attribute__((ext_vector_type(2)));\n\
         __global__ void k(const float *in, float *out) {\n\
         __shared__ float tile[256]; __shared__ unsigned staged[256];\n\
         int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));\n\
         int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();\n\
         float x = in[i];\n\
         auto buffer = __builtin_amdgcn_make_buffer_rsrc((void *)in, 0, 1 << 20, 0x20000);\n\
         auto four = __builtin_amdgcn_raw_buffer_load_b128(buffer, i * 16, 0, 0);\n\
         __builtin_amdgcn_raw_buffer_store_b32(four.x, __builtin_amdgcn_make_buffer_rsrc(out, 0, 1 << 20, 0), i * 8, 1024, 0);\n\
         __builtin_amdgcn_global_load_lds(in + i, staged + threadIdx.x / 64 * 64, 4, 0, 0);\n\
         __builtin_amdgcn_s_waitcnt(0); __builtin_amdgcn_s_setprio(1); __builtin_amdgcn_sched_group_barrier(8, 1, 0);\n\
         __builtin_amdgcn_iglp_opt(0); __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\");\n\
         tile[threadIdx.x] = __builtin_amdgcn_rcpf(x) + __builtin_amdgcn_fmed3f(x, 0.f, 1.f);\n\
         __builtin_amdgcn_s_barrier();\n\
         int y = __builtin_amdgcn_ds_swizzle(lane, 0x041f) + __builtin_amdgcn_ds_permute(lane * 4, lane);\n\
         y += __builtin_amdgcn_perm(y, y, 1) + __builtin_amdgcn_ubfe(y, 3, 4) + __builtin_amdgcn_permlane32_swap(y, y, false, false)[0];\n\
         out[i] = tile[255 - threadIdx.x] + y + staged[threadIdx.x]; }\n";
    let found = on("mi300x", text, Language::Hip, 1024, 256);
    assert!(
        found.not_understood.is_empty(),
        "{:?}",
        found.not_understood
    );
    let taken: Vec<_> = found
        .assumptions
        .iter()
        .filter(|one| one.symbol.starts_with("__builtin"))
        .collect();
    assert!(taken.is_empty(), "{taken:?}");
    let count = |class: &str| {
        let found = found.counts.iter().find(|count| count.class == class);
        found.and_then(|count| count.value)
    };
    // Of each thread.
    assert_eq!(count("barrier"), Some(262_144.0));
    let bytes = |space: &str, op: &str| -> Vec<_> {
        let all = of(&found, space, op);
        assert!(all.iter().all(|access| access.exact), "{space} {op}");
        all.iter().map(|access| access.bytes_per_request).collect()
    };
    assert_eq!(bytes("global", "load"), [256.0, 1024.0, 256.0].map(Some));
    assert_eq!(bytes("global", "store"), [256.0, 256.0].map(Some));
    assert_eq!(bytes("shared", "store"), [256.0, 256.0].map(Some));
}

/// What a function holds that is kept once for all its calls, the kernel executes: warps that give registers away begin with all
/// that the bounds leave them (ptxas 13: 168 of 384 threads), and a block that waits for its cluster waits at a barrier.
#[test]
fn instructions_in_functions_are_the_kernels() {
    let text = |body: &str, dims: &str| {
        format!(
            "__device__ void give() {{ asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\"); }}\n\
             __device__ void arrive() {{ asm volatile(\"barrier.cluster.arrive.release.aligned;\" ::: \"memory\"); }}\n\
             __device__ void wait() {{ asm volatile(\"barrier.cluster.wait.acquire.aligned;\" ::: \"memory\"); }}\n\
             __global__ void {dims} __launch_bounds__(384, 1) k(float *o) {{ {body} o[threadIdx.x] = 1; }}\n"
        )
    };
    let of = |body: &str| on("h100-sxm5", &text(body, ""), Language::Cuda, 132, 384);
    let registers = |body: &str| of(body).resources.registers_per_thread;
    assert_eq!(registers("if (threadIdx.x >= 256) give();"), 168);
    assert!(registers("") < 32);
    let barriers = |body: &str| {
        let found = on(
            "h100-sxm5",
            &text(body, "__cluster_dims__(2, 1, 1)"),
            Language::Cuda,
            132,
            384,
        );
        found.instructions.get("bar").copied().unwrap_or(0.0)
    };
    assert_eq!(barriers("arrive(); wait(); wait();"), 2.0);
    assert_eq!(barriers("arrive();"), 0.0);
    assert_eq!(
        barriers(
            "auto all = cooperative_groups::this_cluster(); all.barrier_arrive(); all.barrier_wait();"
        ),
        1.0
    );
    assert_eq!(barriers("cooperative_groups::this_cluster().sync();"), 1.0);
}

/// Our product on AMD's matrix units: what the matrix units compute, each access, and its conflicts. clang 15 (gfx90a) writes 16
/// `v_mfma` in the loop.
#[test]
fn a_product_on_matrix_units_of_amd_is_read_to_its_end() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let text = std::fs::read_to_string(path.join("hgemm.hip")).expect("our own kernel");
    let found = on("mi250x", &text, Language::Hip, 1024, 256);
    assert!(
        found.not_understood.is_empty(),
        "{:?}",
        found.not_understood
    );
    assert_eq!(found.instructions.get("hmma"), Some(&16.0));
    assert!(found.accesses.iter().all(|access| access.exact));
    let reads = of(&found, "shared", "load");
    for read in reads {
        assert_eq!(read.passes_per_request, read.ideal_passes_per_request);
    }
    // Halves are stored down the columns of the right tile.
    let stores = of(&found, "shared", "store");
    let worst = stores.iter().filter_map(|store| store.passes_per_request);
    assert_eq!(worst.fold(0.0, f64::max), 16.0);
}

/// Sub-groups of OpenCL: who is in one, and what is read by it, on GPUs with 32 and 64 lanes.
#[test]
fn sub_groups_of_our_own_kernels_are_known() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels");
    let text = std::fs::read_to_string(path.join("subgroups.cl")).expect("our own kernels");
    for gpu in ["a100-sxm4-40gb", "mi250x"] {
        let all = all_on(gpu, &text, Language::OpenCl, LaunchValues::default());
        assert_eq!(all.len(), 3);
        for access in all.iter().flat_map(|found| &found.accesses) {
            assert!(access.exact, "{gpu}: {} {:?}", access.text, access.why);
        }
        for found in &all {
            assert!(
                found.not_understood.is_empty(),
                "{:?}",
                found.not_understood
            );
        }
    }
}

/// Fragments that inline PTX loads and stores go where the toolkit's functions go: the same accesses, passes and instructions.
#[test]
fn fragments_of_ptx_are_those_of_the_toolkit() {
    let registers = |first: usize, count: usize| {
        let all: Vec<String> = (first..first + count).map(|at| format!("%{at}")).collect();
        all.join(", ")
    };
    let eight = |name: &str, kind: &str| {
        let all: Vec<String> = (0..8)
            .map(|at| format!("\"{kind}\"({name}[{at}])"))
            .collect();
        all.join(", ")
    };
    for (layout, left, right, sum) in [
        ("row", 16, 24, "row"),
        ("col", 16, 16, "row"),
        ("row", 40, 32, "col"),
    ] {
        let other = if layout == "row" { "col" } else { "row" };
        let toolkit = format!(
            "__global__ void k(float *o) {{ __shared__ __align__(128) half s[16 * {left}], r[16 * {right}];\n\
             nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::{layout}_major> a;\n\
             nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, half, nvcuda::wmma::{other}_major> b;\n\
             nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;\n\
             nvcuda::wmma::fill_fragment(c, 0.0f);\n\
             nvcuda::wmma::load_matrix_sync(a, s, {left});\n\
             nvcuda::wmma::load_matrix_sync(b, r, {right});\n\
             nvcuda::wmma::mma_sync(c, a, b, c);\n\
             nvcuda::wmma::store_matrix_sync(o, c, 32, nvcuda::wmma::mem_{sum}_major); }}\n"
        );
        let ptx = format!(
            "__global__ void k(float *o) {{ __shared__ __align__(128) half s[16 * {left}], r[16 * {right}];\n\
             unsigned a[8], b[8]; float c[8] = {{}};\n\
             asm volatile(\"wmma.load.a.sync.aligned.{layout}.m16n16k16.shared.f16 {{{}}}, [%8], {left};\" : {} : \"r\"((unsigned)__cvta_generic_to_shared(s)));\n\
             asm volatile(\"wmma.load.b.sync.aligned.{other}.m16n16k16.shared.f16 {{{}}}, [%8], %9;\" : {} : \"r\"((unsigned)__cvta_generic_to_shared(r)), \"r\"({right}));\n\
             asm volatile(\"wmma.mma.sync.aligned.{layout}.{other}.m16n16k16.f32.f32 {{{}}}, {{{}}}, {{{}}}, {{{}}};\" : {} : {}, {});\n\
             asm volatile(\"wmma.store.d.sync.aligned.{sum}.m16n16k16.global.f32 [%8], {{{}}}, 32;\" :: {}, \"l\"(o)); }}\n",
            registers(0, 8),
            eight("a", "=r"),
            registers(0, 8),
            eight("b", "=r"),
            registers(0, 8),
            registers(8, 8),
            registers(16, 8),
            registers(0, 8),
            eight("c", "+f"),
            eight("a", "r"),
            eight("b", "r"),
            registers(0, 8),
            eight("c", "f"),
        );
        let of = |text: &str| {
            let found = on("a100-sxm4-40gb", text, Language::Cuda, 1, 32);
            assert!(
                found.not_understood.is_empty(),
                "{:?}",
                found.not_understood
            );
            let accesses = found.accesses.iter().map(|access| {
                assert!(access.exact, "{layout}: {} {:?}", access.text, access.why);
                (
                    (access.space, access.op, access.bytes_per_lane),
                    (access.transactions_per_request, access.passes_per_request),
                    access.requests,
                )
            });
            let classes =
                ["hmma", "lds", "stg"].map(|class| found.instructions.get(class).copied());
            (accesses.collect::<Vec<_>>(), classes)
        };
        assert_eq!(of(&ptx), of(&toolkit), "{layout} {sum}");
    }
}

/// One thread starts a product of `tcgen05` for its block, as the instruction wants it: no lane is idle that could do a part of it.
/// What it computes by itself others could do.
#[test]
fn what_one_thread_starts_for_all_is_no_divergence() {
    let found = |body: &str| {
        let text = format!(
            "__global__ void k(float *o, unsigned idesc) {{\n\
             __shared__ alignas(1024) unsigned short a[128 * 64], b[128 * 64];\n\
             unsigned s = (unsigned)__cvta_generic_to_shared(a), t = (unsigned)__cvta_generic_to_shared(b);\n\
             unsigned long long da = (1ull << 62) | (64ull << 32) | (1ull << 16) | ((s & 0x3ffff) >> 4);\n\
             unsigned long long db = (1ull << 62) | (64ull << 32) | (1ull << 16) | ((t & 0x3ffff) >> 4);\n\
             float x = o[threadIdx.x];\n\
             for (int i = 0; i < 64; i++) {{ if (threadIdx.x == 0) {{ {body} }} __syncthreads(); }}\n\
             o[threadIdx.x] = x; }}\n"
        );
        let found = on("b200", &text, Language::Cuda, 148, 128);
        found.estimates["auto"].breakdown.divergence
            / found.estimates["auto"].cycles.expect("a time")
    };
    let product = "asm volatile(\"{ .reg .pred p; setp.ne.b32 p, 1, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }\" \
                   :: \"r\"(0), \"l\"(da), \"l\"(db), \"r\"((1u << 4) | (16u << 17) | (8u << 24)));";
    assert!(found(product) < 0.01, "{}", found(product));
    let own = "for (int j = 0; j < 100; j++) x = x * x + 1.0f;";
    assert!(found(own) > 0.05, "{}", found(own));
}

/// Integers and exchanges of inline PTX are what the functions of the toolkit are, where addresses are made of them.
#[test]
fn integers_of_ptx_are_the_toolkits() {
    for (ptx, toolkit) in [
        (
            "shfl.sync.idx.b32 %0, %1, 0, 31, -1;",
            "__shfl_sync(~0u, t / 32, 0)",
        ),
        ("popc.b32 %0, %1;", "__popc(t / 32)"),
        ("clz.b32 %0, %1;", "__clz(t / 32)"),
        (
            "brev.b32 %0, %1; shr.u32 %0, %0, 28;",
            "(int)(__brev(t / 32) >> 28)",
        ),
        ("mul24.lo.u32 %0, %1, 3;", "t / 32 * 3"),
        ("mad24.lo.s32 %0, %1, 3, 1;", "t / 32 * 3 + 1"),
    ] {
        let index = |statement: &str| {
            let text = format!(
                "__global__ void k(int *o) {{ int t = threadIdx.x, a; {statement} o[a * 32 + t % 32] = 1; }}\n"
            );
            let found = on("h100-sxm5", &text, Language::Cuda, 132, 128);
            let store = of(&found, "global", "store")[0].clone();
            assert!(store.exact, "{statement}: {:?}", store.why);
            (store.index, store.transactions_per_request)
        };
        let of_ptx = index(&format!(
            "asm volatile(\"{ptx}\" : \"=r\"(a) : \"r\"(t / 32));"
        ));
        assert_eq!(of_ptx.1, index(&format!("a = {toolkit};")).1, "{ptx}");
    }
    // A segment of the warp, and data, are no one value.
    for statement in [
        "asm volatile(\"shfl.sync.idx.b32 %0, %1, 0, 0x181f, -1;\" : \"=r\"(a) : \"r\"(t));",
        "asm volatile(\"shfl.sync.bfly.b32 %0, %1, 1, 31, -1;\" : \"=r\"(a) : \"r\"(t));",
    ] {
        let text = format!(
            "__global__ void k(int *o) {{ int t = threadIdx.x, a; {statement} o[a] = 1; }}\n"
        );
        let found = on("h100-sxm5", &text, Language::Cuda, 132, 128);
        assert!(!of(&found, "global", "store")[0].exact, "{statement}");
    }
}

/// A barrier of some warps of a block is an instruction, as nvcc writes it (`BAR.SYNC`, `BAR.ARV`).
#[test]
fn barriers_of_some_warps_are_instructions() {
    let bars = |body: &str| {
        let text = format!("__global__ void k(float *o) {{ {body} o[threadIdx.x] = 1; }}\n");
        let found = on("h100-sxm5", &text, Language::Cuda, 132, 128);
        found.instructions.get("bar").copied().unwrap_or(0.0)
    };
    assert_eq!(
        bars("asm volatile(\"bar.sync 1, 64;\" ::: \"memory\");"),
        1.0
    );
    assert_eq!(
        bars("asm volatile(\"bar.arrive 2, 128; barrier.sync.aligned 3, 128;\");"),
        2.0
    );
    assert_eq!(bars("asm volatile(\"bar.warp.sync 0xffffffff;\");"), 0.0);
}
