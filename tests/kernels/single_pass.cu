// Passes over data that other kernels take in several: a histogram in shared memory, a prefix sum that looks back at what the
// blocks before have published, rows of tokens put in the order of their experts and back.
#include <cstdint>

#include "harness.cuh"

constexpr int THREADS = 256, ITEMS = 8, BINS = 256, EXPERTS = 8, WIDTH = 1024;

// Each warp has bins of its own: fewer threads meet at one.
// warplens: block=(256) grid=(864) n=16777216
// registers 32 LDG 1 LDS 8 STS 8 BAR 2
__global__ void histogram(unsigned* __restrict__ counts, const uint4* __restrict__ keys, int n) {
    __shared__ unsigned bins[THREADS / 32][BINS];
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) bins[i][threadIdx.x] = 0;
    __syncthreads();
    unsigned* own = bins[threadIdx.x / 32];
#pragma unroll 1
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n / 16; i += gridDim.x * THREADS) {
        const uint4 of = keys[i];
        const unsigned words[4] = {of.x, of.y, of.z, of.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            atomicAdd(&own[words[j] & 255], 1u);
            atomicAdd(&own[words[j] >> 8 & 255], 1u);
            atomicAdd(&own[words[j] >> 16 & 255], 1u);
            atomicAdd(&own[words[j] >> 24], 1u);
        }
    }
    __syncthreads();
    unsigned sum = 0;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) sum += bins[i][threadIdx.x];
    if (sum > 0) atomicAdd(&counts[threadIdx.x], sum);
}

// What a block has told of its part: nothing, its own sum, or the sum of all up to it. Both words are one store.
constexpr unsigned NOTHING = 0, OWN = 1, ALL = 2;

__device__ __forceinline__ uint64_t packed(unsigned state, unsigned sum) { return static_cast<uint64_t>(state) << 32 | sum; }

__device__ __forceinline__ int scan_of_warp(int x) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int below = __shfl_up_sync(~0u, x, d);
        if (lane >= d) x += below;
    }
    return x;
}

// One pass: blocks take numbers in the order in which they begin, so that none waits for one that has not begun.
// warplens: block=(256) grid=(8192) n=16777216
// registers 36 LDG 9 STG 10 LDS 4 STS 4 BAR 3
__global__ void scan_looking_back(int* __restrict__ out, const int* __restrict__ in, volatile uint64_t* states, unsigned* tickets, int n) {
    __shared__ int warps[THREADS / 32];
    __shared__ int before;
    __shared__ unsigned ticket;
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (t == 0) ticket = atomicAdd(tickets, 1u);
    __syncthreads();
    const int block = ticket, first = (block * THREADS + t) * ITEMS;
    int own[ITEMS], sum = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        own[i] = first + i < n ? in[first + i] : 0;
        sum += own[i];
    }
    const int within = scan_of_warp(sum);
    if (lane == 31) warps[warp] = within;
    __syncthreads();
    if (warp == 0) {
        const int all = scan_of_warp(lane < THREADS / 32 ? warps[lane] : 0);
        if (lane < THREADS / 32) warps[lane] = all;
        const int whole = __shfl_sync(~0u, all, THREADS / 32 - 1);
        if (lane == 0) states[block] = packed(block == 0 ? ALL : OWN, whole);
        int past = 0;
        // 32 blocks at a time, until one of them knows all before it.
        for (int at = block - 1 - lane; block > 0; at -= 32) {
            uint64_t told = packed(ALL, 0);
            if (at >= 0)
                do told = states[at];
                while (told >> 32 == NOTHING);
            const unsigned knows = __ballot_sync(~0u, told >> 32 == ALL);
            const int nearest = knows ? __ffs(knows) - 1 : 31;
            int part = lane <= nearest ? static_cast<int>(told) : 0;
#pragma unroll
            for (int d = 16; d > 0; d /= 2) part += __shfl_xor_sync(~0u, part, d);
            past += part;
            if (knows) break;
        }
        if (lane == 0) {
            if (block > 0) states[block] = packed(ALL, past + whole);
            before = past;
        }
    }
    __syncthreads();
    int running = before + (warp > 0 ? warps[warp - 1] : 0) + within - sum;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        running += own[i];
        if (first + i < n) out[first + i] = running;
    }
}

// Where a token goes among those of its expert, and how many each has: one atomic operation for the lanes that have the same.
// warplens: block=(256) grid=(512) n=131072
// registers 14 LDG 1 STG 1
__global__ void place_tokens(int* __restrict__ place, int* __restrict__ counts, const int* __restrict__ expert, int n) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const int own = expert[i], lane = threadIdx.x % 32;
    const unsigned same = __match_any_sync(__activemask(), own);
    const int leader = __ffs(same) - 1;
    int first = 0;
    if (lane == leader) first = atomicAdd(&counts[own], __popc(same));
    first = __shfl_sync(same, first, leader);
    place[i] = first + __popc(same & ((1u << lane) - 1));
}

// Rows of tokens, each to its place behind those of the experts before.
// warplens: block=(256) grid=(131072)
// registers 14 LDG 4 STG 1 LDS 1 STS 1 BAR 1
__global__ void gather_tokens(float* __restrict__ to, const float* __restrict__ from, const int* __restrict__ place, const int* __restrict__ counts, const int* __restrict__ expert) {
    __shared__ int row;
    const int token = blockIdx.x;
    if (threadIdx.x < 32) {
        const int own = expert[token], lane = threadIdx.x;
        int before = lane < own ? counts[lane] : 0;
#pragma unroll
        for (int d = 4; d > 0; d /= 2) before += __shfl_xor_sync(~0u, before, d);
        if (lane == 0) row = before + place[token];
    }
    __syncthreads();
    reinterpret_cast<float4*>(to)[static_cast<size_t>(row) * (WIDTH / 4) + threadIdx.x] =
        reinterpret_cast<const float4*>(from)[static_cast<size_t>(token) * (WIDTH / 4) + threadIdx.x];
}

int main(int argc, char** argv) {
    harness::Program program(argc, argv, 65536, THREADS, /*fixed_block=*/true);
    const int n = program.n;
    if (n % 16 != 0 || n > 1 << 22) {
        std::fprintf(stderr, "--n must be a multiple of 16 and at most 2^22\n");
        return 2;
    }
    std::vector<uint8_t> host_keys(n);
    std::vector<int> host_in(n), host_expert(n);
    std::vector<float> bins(BINS), sums(n), of_experts(EXPERTS);
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        host_keys[i] = static_cast<uint8_t>(i * 2654435761u >> 11);
        bins[host_keys[i]] += 1.0f;
        host_in[i] = i % 7 - 2;
        sum += host_in[i];
        sums[i] = static_cast<float>(sum);
        host_expert[i] = static_cast<int>(i * 2654435761u >> 17) % EXPERTS;
        of_experts[host_expert[i]] += 1.0f;
    }
    const auto floats = [](const auto& all) { return std::vector<float>(all.begin(), all.end()); };

    harness::DeviceBuffer<uint8_t> keys(host_keys);
    harness::DeviceBuffer<unsigned> counts(BINS), tickets(1);
    const int few = std::min(864, harness::ceil_div(n / 16, THREADS));
    const harness::Launch by_bins = {few, THREADS, 0, {{"n", n}}};
    program.run(
        "histogram", by_bins, [&] { counts.clear(); },
        [&] { histogram<<<few, THREADS>>>(counts.get(), reinterpret_cast<const uint4*>(keys.get()), n); },
        [&] { return harness::max_error(floats(counts.download()), bins); });

    harness::DeviceBuffer<int> in(host_in), out(n);
    const int parts = harness::ceil_div(n, THREADS * ITEMS);
    harness::DeviceBuffer<uint64_t> states(parts);
    const harness::Launch by_parts = {parts, THREADS, 0, {{"n", n}}};
    program.run(
        "scan_looking_back", by_parts, [&] { out.clear(); },
        [&] {
            // A memset beside the kernel, as everybody's scan has: what was told must be forgotten.
            CUDA_CHECK(cudaMemsetAsync(states.get(), 0, parts * sizeof(uint64_t)));
            CUDA_CHECK(cudaMemsetAsync(tickets.get(), 0, sizeof(unsigned)));
            scan_looking_back<<<parts, THREADS>>>(out.get(), in.get(), states.get(), tickets.get(), n);
        },
        [&] { return harness::max_error(floats(out.download()), sums); });

    harness::DeviceBuffer<int> expert(host_expert), place(n), loads(EXPERTS);
    const int blocks = harness::ceil_div(n, THREADS);
    const harness::Launch by_tokens = {blocks, THREADS, 0, {{"n", n}}};
    program.run(
        "place_tokens", by_tokens, [&] { loads.clear(); },
        [&] { place_tokens<<<blocks, THREADS>>>(place.get(), loads.get(), expert.get(), n); },
        [&] {
            // Any order is right: each place of an expert once.
            const std::vector<int> got = place.download();
            std::vector<std::vector<char>> taken(EXPERTS);
            for (int e = 0; e < EXPERTS; ++e) taken[e].resize(static_cast<size_t>(of_experts[e]));
            for (int i = 0; i < n; ++i) {
                std::vector<char>& of = taken[host_expert[i]];
                if (got[i] < 0 || got[i] >= static_cast<int>(of.size()) || of[got[i]]++) return 1.0;
            }
            return harness::max_error(floats(loads.download()), of_experts);
        });

    // What was launched above may have counted often; here it is set down once.
    const int tokens = std::min(n, 4096);
    std::vector<int> host_place(tokens), host_loads(EXPERTS), first(EXPERTS);
    for (int i = 0; i < tokens; ++i) host_place[i] = host_loads[host_expert[i]]++;
    for (int e = 1; e < EXPERTS; ++e) first[e] = first[e - 1] + host_loads[e - 1];
    const std::vector<float> rows = harness::ramp(static_cast<size_t>(tokens) * WIDTH);
    std::vector<float> want(rows.size());
    for (int i = 0; i < tokens; ++i)
        std::copy_n(&rows[static_cast<size_t>(i) * WIDTH], WIDTH, &want[static_cast<size_t>(first[host_expert[i]] + host_place[i]) * WIDTH]);
    harness::DeviceBuffer<float> from(rows), to(rows.size());
    harness::DeviceBuffer<int> places(host_place), load(host_loads);
    const harness::Launch by_rows = {tokens, THREADS, 0, {}};
    program.run(
        "gather_tokens", by_rows, [&] { to.clear(); },
        [&] { gather_tokens<<<tokens, THREADS>>>(to.get(), from.get(), places.get(), load.get(), expert.get()); },
        [&] { return harness::max_error(to.download(), want); });
    return program.exit_status();
}
