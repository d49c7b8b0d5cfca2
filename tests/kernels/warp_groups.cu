// A product of matrices of half precision, C = A Bᵀ, as it is written for tensor cores that read shared memory by themselves: one
// warp group copies tiles by their tensor maps into a ring of stages, two others multiply what has arrived (`wgmma`). Who waits
// for whom is told by two barriers a stage, full and empty. Tiles of 128 by 128, steps of 64, rows of 128 bytes that the copy
// swizzles.
// architecture: sm_90a
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "harness.cuh"

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 4, CONSUMERS = 2;

struct Ring {
    alignas(1024) half left[STAGES][BM * BK];
    alignas(1024) half right[STAGES][BN * BK];
    alignas(8) uint64_t full[STAGES];
    uint64_t empty[STAGES];
};

__device__ __forceinline__ uint32_t address_of(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void set_up(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(arrivals));
}

__device__ __forceinline__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}

__device__ __forceinline__ void expect(uint64_t* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
}

__device__ __forceinline__ void wait(uint64_t* barrier, int phase) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\n"
        "bra again;\n"
        "over:\n"
        "}" ::"r"(address_of(barrier)), "r"(phase) : "memory");
}

__device__ __forceinline__ void bring(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(address_of(to)),
        "l"(reinterpret_cast<uint64_t>(map)), "r"(x), "r"(y), "r"(address_of(barrier)) : "memory");
}

// Rows of 128 bytes, eight of them 1024 bytes on; the pieces of 16 bytes in each are changed about.
__device__ __forceinline__ uint64_t descriptor(const half* tile) {
    uint64_t of = 0;
    of |= static_cast<uint64_t>((address_of(tile) & 0x3ffff) >> 4);
    of |= static_cast<uint64_t>(1) << 16;
    of |= static_cast<uint64_t>(1024 >> 4) << 32;
    of |= static_cast<uint64_t>(1) << 62;
    return of;
}

// 64 by 128 by 16: each thread of a warp group has 64 of the sums.
__device__ __forceinline__ void multiply(float (&d)[16][4], uint64_t left, uint64_t right) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 0;"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
          "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
          "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),
          "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]), "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),
          "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
          "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
          "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
        : "l"(left), "l"(right));
}

// A stage and the phase of its barriers; one turn of the ring is one phase.
struct Place {
    int stage = 0, phase = 0;
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
};

__device__ __forceinline__ void prepare(Ring& ring) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            set_up(&ring.full[i], 1);
            set_up(&ring.empty[i], CONSUMERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
}

// One thread copies: what is in flight is as much as there are stages.
__device__ __forceinline__ void produce(Ring& ring, Place& place, const CUtensorMap* a, const CUtensorMap* b, int row, int column, int steps) {
    for (int k = 0; k < steps; k++) {
        wait(&ring.empty[place.stage], place.phase ^ 1);
        expect(&ring.full[place.stage], (BM + BN) * BK * static_cast<int>(sizeof(half)));
        bring(ring.left[place.stage], a, k * BK, row, &ring.full[place.stage]);
        bring(ring.right[place.stage], b, k * BK, column, &ring.full[place.stage]);
        place.next();
    }
}

// 64 rows of the tile. Products of the last step still run while those of this one are issued; its stage is free once they are done.
__device__ __forceinline__ void consume(Ring& ring, Place& place, float (&sum)[16][4], int rows, int steps) {
    int last = 0;
    for (int k = 0; k < steps; k++) {
        wait(&ring.full[place.stage], place.phase);
        const half *left = &ring.left[place.stage][rows * BK], *right = ring.right[place.stage];
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < BK; i += 16) multiply(sum, descriptor(left + i), descriptor(right + i));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (k > 0 && threadIdx.x % 128 == 0) arrive(&ring.empty[last]);
        last = place.stage;
        place.next();
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 128 == 0) arrive(&ring.empty[last]);
}

__device__ __forceinline__ void store(half* c, int n, int row, int column, const float (&sum)[16][4]) {
    const int t = threadIdx.x % 128;
    half* to = &c[(row + t / 32 * 16 + t % 32 / 4) * n + column + t % 4 * 2];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        *(half2*)&to[j * 8] = __floats2half2_rn(sum[j][0], sum[j][1]);
        *(half2*)&to[8 * n + j * 8] = __floats2half2_rn(sum[j][2], sum[j][3]);
    }
}

// A tile a block.
// warplens: block=(384) grid=(32,32) n=4096 dynamic_shared=132096
// registers 168 STG 32 BAR 1 HMMA 12
__launch_bounds__(384, 1)
__global__ void warp_groups(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, half* __restrict__ c, int n) {
    extern __shared__ __align__(1024) unsigned char dynamic[];
    Ring& ring = *reinterpret_cast<Ring*>(dynamic);
    const int row = blockIdx.y * BM, column = blockIdx.x * BN, group = threadIdx.x / 128;
    prepare(ring);
    Place place;
    if (group == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x % 128 == 0) produce(ring, place, &a, &b, row, column, n / BK);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float sum[16][4] = {};
        consume(ring, place, sum, group * 64, n / BK);
        store(c, n, row + group * 64, column, sum);
    }
}

// As many blocks as there are multiprocessors: each goes on with another tile, and the next one's copies begin while this one is
// stored.
// warplens: block=(384) grid=(132) n=4096 dynamic_shared=132096
// registers 168 STG 32 BAR 1 HMMA 12
__launch_bounds__(384, 1)
__global__ void warp_groups_persistent(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, half* __restrict__ c, int n) {
    extern __shared__ __align__(1024) unsigned char dynamic[];
    Ring& ring = *reinterpret_cast<Ring*>(dynamic);
    const int across = n / BN, tiles = across * (n / BM), group = threadIdx.x / 128;
    prepare(ring);
    Place place;
    if (group == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x % 128 == 0)
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
                produce(ring, place, &a, &b, tile / across * BM, tile % across * BN, n / BK);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            float sum[16][4] = {};
            consume(ring, place, sum, group * 64, n / BK);
            store(c, n, tile / across * BM + group * 64, tile % across * BN, sum);
        }
    }
}

// A matrix by rows of n, in boxes of 64 columns: the toolkit has the function from the driver.
static CUtensorMap boxes(half* matrix, int n, int rows) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result));
    const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
    CUtensorMap map;
    const cuuint64_t size[2] = {static_cast<cuuint64_t>(n), static_cast<cuuint64_t>(n)};
    const cuuint64_t stride[1] = {static_cast<cuuint64_t>(n) * sizeof(half)};
    const cuuint32_t box[2] = {BK, static_cast<cuuint32_t>(rows)}, step[2] = {1, 1};
    if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
        std::fprintf(stderr, "no tensor map\n");
        std::exit(2);
    }
    return map;
}

int main(int argc, char** argv) {
    harness::Program program(argc, argv, 4096, 384, /*fixed_block=*/true);
    const int n = program.n;
    if (n > 8192 || n % BM != 0) {
        std::fprintf(stderr, "--n must be a multiple of %d and at most 8192\n", BM);
        return 2;
    }
    const size_t count = static_cast<size_t>(n) * n;
    std::vector<half> host_a(count), host_b(count);
    for (size_t i = 0; i < count; ++i) {
        host_a[i] = __float2half(static_cast<float>(i % 1009) / 1009 - 0.5f);
        host_b[i] = __float2half(static_cast<float>(i % 997) / 997 - 0.5f);
    }
    // Every element of a large product would take the host minutes: rows and columns with odd distances meet every tile.
    const int distance = n / 64 - 1 + n / 64 % 2;
    std::vector<size_t> sample;
    std::vector<float> want;
    for (int row = 0; row < n; row += distance)
        for (int column = 0; column < n; column += distance) {
            double sum = 0.0;
            for (int k = 0; k < n; ++k) {
                const size_t left = static_cast<size_t>(row) * n + k, right = static_cast<size_t>(column) * n + k;
                sum += static_cast<double>(__half2float(host_a[left])) * __half2float(host_b[right]);
            }
            sample.push_back(static_cast<size_t>(row) * n + column);
            want.push_back(static_cast<float>(sum));
        }

    harness::DeviceBuffer<half> a(host_a), b(host_b), c(count);
    auto prepare = [&] { c.clear(); };
    auto error = [&] {
        const std::vector<half> all = c.download();
        std::vector<float> got;
        for (size_t at : sample) got.push_back(__half2float(all[at]));
        return harness::max_error(got, want);
    };
    const double tolerance = 5e-3;

    const CUtensorMap left = boxes(a.get(), n, BM), right = boxes(b.get(), n, BN);
    int device = 0, processors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    constexpr int SHARED = sizeof(Ring);
    CUDA_CHECK(cudaFuncSetAttribute(warp_groups, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    CUDA_CHECK(cudaFuncSetAttribute(warp_groups_persistent, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    const dim3 grid(n / BN, n / BM), block(384);
    const harness::Launch with = {grid, block, SHARED, {{"n", n}}}, persistent = {dim3(processors), block, SHARED, {{"n", n}}};
    program.run(
        "warp_groups", with, prepare, [&] { warp_groups<<<grid, block, SHARED>>>(left, right, c.get(), n); }, error, tolerance);
    program.run(
        "warp_groups_persistent", persistent, prepare,
        [&] { warp_groups_persistent<<<processors, block, SHARED>>>(left, right, c.get(), n); }, error, tolerance);
    return program.exit_status();
}
