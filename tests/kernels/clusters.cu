// Blocks of a cluster that read and write each other's shared memory: a sum over rows that are too long for one block, a
// histogram whose bins are spread over the blocks.
// architecture: sm_90
#include <cooperative_groups.h>

#include <cstdint>

#include "harness.cuh"

namespace cg = cooperative_groups;

constexpr int BLOCKS = 4, THREADS = 256, BINS = 4096;

__device__ __forceinline__ float sum_of_warp(float x) {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    return x;
}

// The sum of a block, in every thread of its first warp.
__device__ __forceinline__ float sum_of_block(float x, float (&warps)[THREADS / 32]) {
    x = sum_of_warp(x);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    return sum_of_warp(threadIdx.x < THREADS / 32 ? warps[threadIdx.x] : 0.0f);
}

// A row a cluster: each block tells its part to the first one, and all read the total there.
// warplens: block=(256) grid=(4096) n=16384
// registers 31 LDG 30 STG 2 LDS 2 STS 1 BAR 2
__cluster_dims__(BLOCKS, 1, 1)
__global__ void normalise_rows(float* __restrict__ out, const float* __restrict__ in, int n) {
    __shared__ float warps[THREADS / 32], parts[BLOCKS];
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank();
    const size_t first = static_cast<size_t>(blockIdx.x / BLOCKS) * n;
    float sum = 0.0f;
    for (int i = rank * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS) sum += in[first + i];
    sum = sum_of_block(sum, warps);
    if (threadIdx.x < BLOCKS) {
        float* there = cluster.map_shared_rank(parts, threadIdx.x);
        there[rank] = sum;
    }
    cluster.sync();
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) total += parts[i];
    const float scale = 1.0f / total;
#pragma unroll 1
    for (int i = rank * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS) out[first + i] = in[first + i] * scale;
}

__device__ __forceinline__ uint32_t address_of(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// The same by the addresses that the instructions take: one thread reads what the others have.
// warplens: block=(256) grid=(4096) n=16384
__cluster_dims__(BLOCKS, 1, 1)
__global__ void sum_rows(float* __restrict__ out, const float* __restrict__ in, int n) {
    __shared__ float warps[THREADS / 32], part;
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const size_t first = static_cast<size_t>(blockIdx.x / BLOCKS) * n;
    float sum = 0.0f;
    for (int i = rank * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS) sum += in[first + i];
    sum = sum_of_block(sum, warps);
    if (threadIdx.x == 0) part = sum;
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    if (rank == 0 && threadIdx.x == 0) {
        float total = part;
#pragma unroll
        for (int i = 1; i < BLOCKS; i++) {
            uint32_t there;
            float more;
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_of(&part)), "r"(i));
            asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(more) : "r"(there));
            total += more;
        }
        out[blockIdx.x / BLOCKS] = total;
    }
    // No block may leave while another reads its shared memory.
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Bins that one block's shared memory need not hold alone.
// warplens: block=(256) grid=(528) n=16777216
// registers 22 LDG 1 LDS 4 STS 4 BAR 2
__cluster_dims__(BLOCKS, 1, 1)
__global__ void histogram_of_cluster(unsigned* __restrict__ counts, const unsigned* __restrict__ keys, int n) {
    __shared__ unsigned bins[BINS / BLOCKS];
    const cg::cluster_group cluster = cg::this_cluster();
#pragma unroll
    for (int i = 0; i < BINS / BLOCKS / THREADS; i++) bins[i * THREADS + threadIdx.x] = 0;
    cluster.sync();
#pragma unroll 1
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        const unsigned bin = keys[i] % BINS;
        atomicAdd(cluster.map_shared_rank(bins, bin / (BINS / BLOCKS)) + bin % (BINS / BLOCKS), 1u);
    }
    cluster.sync();
#pragma unroll
    for (int i = 0; i < BINS / BLOCKS / THREADS; i++) {
        const unsigned bin = i * THREADS + threadIdx.x;
        atomicAdd(&counts[cluster.block_rank() * (BINS / BLOCKS) + bin], bins[bin]);
    }
}

int main(int argc, char** argv) {
    harness::Program program(argc, argv, 16384, THREADS, /*fixed_block=*/true);
    const int n = program.n, rows = 256;
    if (n > 65536) {
        std::fprintf(stderr, "--n must be at most 65536\n");
        return 2;
    }
    const size_t count = static_cast<size_t>(rows) * n;
    const std::vector<float> host = harness::ramp(count);
    std::vector<unsigned> host_keys(count);
    std::vector<float> sums(rows), scaled(count), bins(BINS);
    for (int row = 0; row < rows; ++row) {
        double sum = 0.0;
        for (int i = 0; i < n; ++i) sum += host[static_cast<size_t>(row) * n + i];
        sums[row] = static_cast<float>(sum);
        for (int i = 0; i < n; ++i) scaled[static_cast<size_t>(row) * n + i] = static_cast<float>(host[static_cast<size_t>(row) * n + i] / sum);
    }
    for (size_t i = 0; i < count; ++i) {
        host_keys[i] = static_cast<unsigned>(i * 2654435761u >> 7);
        bins[host_keys[i] % BINS] += 1.0f;
    }
    harness::DeviceBuffer<float> in(host), out(count), totals(rows);
    harness::DeviceBuffer<unsigned> keys(host_keys), counts(BINS);
    const int grid = rows * BLOCKS, length = static_cast<int>(count);
    const harness::Launch with = {grid, THREADS, 0, {{"n", n}}}, all = {528, THREADS, 0, {{"n", length}}};
    program.run(
        "normalise_rows", with, [&] { out.clear(); }, [&] { normalise_rows<<<grid, THREADS>>>(out.get(), in.get(), n); },
        [&] { return harness::max_error(out.download(), scaled); });
    program.run(
        "sum_rows", with, [&] { totals.clear(); }, [&] { sum_rows<<<grid, THREADS>>>(totals.get(), in.get(), n); },
        [&] { return harness::max_error(totals.download(), sums); }, 1e-4);
    program.run(
        "histogram_of_cluster", all, [&] { counts.clear(); },
        [&] { histogram_of_cluster<<<528, THREADS>>>(counts.get(), keys.get(), length); },
        [&] {
            const std::vector<unsigned> got = counts.download();
            return harness::max_error(std::vector<float>(got.begin(), got.end()), bins);
        });
    return program.exit_status();
}
